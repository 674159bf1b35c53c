"""Which fragments of a partitioned table a query need not see. The rows of the others are the only ones that can matter to it.

For other tables DuckDB rules out row groups by itself, once it has opened the files; partitions are many files, and a query wants few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelite.contents import TableState
from lakelite.language.scans import scans
from lakelite.storage.statistics import candidates


def pruned(state: TableState, text: str, values: Mapping[str, Any]) -> TableState:
    """The table without fragments that no scan of it in `text` can find a row in; as it is where nothing is known.

    Right only for this text, and where nothing but the text itself reads the table (no view).
    """
    if not state.table.partitioning or len(state.fragments) < 2:
        return state
    wanted = scans(text, state.table, values)
    if wanted is None:
        return state
    kept = {f.fragment_id: f for conjuncts in dict.fromkeys(wanted) for f in candidates(state.fragments.values(), conjuncts)}
    if len(kept) == len(state.fragments):
        return state
    return state.part(f for k, f in state.fragments.items() if k in kept)
