"""Row ids: of rows at given addresses, and the addresses of rows with given ids. The stable name of a row, which an UPDATE and a compaction keep.

A row's id is the stored one or, where a fragment stores none, its first row id plus the position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelite import deletion
from lakelite.contents import TableState
from lakelite.deletion import DeletionVector
from lakelite.model import ROW_ID_FIELD, Fragment
from lakelite.transaction.execution import Execution

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap


def only(state: TableState, positions: Mapping[int, BitMap]) -> TableState:
    """`state` as if it held nothing but the rows at `positions` (by fragment id; none of them empty)."""
    fragments = {k: state.fragments[k] for k in positions}
    dead = {k: deletion.everything(f.row_count) - positions[k] for k, f in fragments.items()}
    vectors = {k: DeletionVector(d, fragments[k].row_count) for k, d in dead.items() if d}
    return TableState(state.table, fragments, vectors, {k: v for k, v in state.staged_rows.items() if k in fragments})


def ids_of(execution: Execution, state: TableState, positions: Mapping[int, BitMap]) -> NDArray[Any]:
    """The row ids (int64, in no order) of committed rows; files are read only where they store ids."""
    import numpy as np

    plain = {k: p for k, p in positions.items() if not state.fragments[k].has_row_ids}
    found = [state.fragments[k].first_row_id + deletion.to_array(p) for k, p in plain.items()]
    stored = {k: p for k, p in positions.items() if k not in plain}
    if stored:
        addresses = _addresses(execution, only(state, stored))
        found.append(np.where(addresses.has_id, addresses.ids, addresses.firsts + addresses.positions))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def rows_with(execution: Execution, state: TableState, ids: NDArray[Any]) -> dict[int, BitMap]:
    """The positions, by fragment id, of those rows of `state` whose *stored* row id is among `ids`."""
    import numpy as np

    alive = {k: state.alive(k) for k, f in state.fragments.items() if f.has_row_ids}
    alive = {k: positions for k, positions in alive.items() if positions}
    if not alive or not len(ids):
        return {}
    addresses = _addresses(execution, only(state, alive))
    wanted = addresses.has_id & np.isin(addresses.ids, ids)
    return {int(k): deletion.positions_of(addresses.positions[wanted & (addresses.fragments == k)]) for k in np.unique(addresses.fragments[wanted])}


def without(execution: Execution, state: TableState, ranges: Sequence[tuple[int, int]]) -> TableState:
    """`state` without the rows whose ids lie in `ranges` (first id and count, ascending), whatever became of them since."""
    import numpy as np

    hidden: dict[int, BitMap] = {}
    for fragment_id, fragment in state.fragments.items():
        if fragment.first_row_id > 0:
            inside = [(max(0, first - fragment.first_row_id), first + count - fragment.first_row_id) for first, count in ranges]
            spans = [deletion.span(low, min(high, fragment.row_count)) for low, high in inside if low < fragment.row_count and high > 0]
            if spans:
                hidden[fragment_id] = spans[0].union(*spans)
    stored = {k: state.alive(k) for k, f in state.fragments.items() if f.has_row_ids}
    if stored and ranges:
        rows = _addresses(execution, only(state, stored))
        firsts = np.array([first for first, _ in ranges], dtype=np.int64)
        ends = firsts + np.array([count for _, count in ranges], dtype=np.int64)
        place = np.searchsorted(firsts, rows.ids, side="right") - 1
        is_hidden = rows.has_id & (place >= 0) & (rows.ids < ends[np.maximum(place, 0)])
        for k in stored:
            hidden.pop(k, None)  # rows that were carried over have ids of their own
            hidden[k] = deletion.positions_of(rows.positions[is_hidden & (rows.fragments == k)])
    return state.without(hidden)


class _Addresses:
    """Aligned arrays: fragment id, position, stored row id (and whether there is one), and the fragment's first row id."""

    def __init__(self, arrays: Mapping[str, Any], scan: Any) -> None:
        import numpy as np

        sources, where = np.unique(arrays[scan.source], return_inverse=True)
        ids = arrays[scan.row_id]
        by_source = [scan.fragments[int(s)] for s in sources]
        self.fragments = np.array([f.fragment_id for f in by_source], dtype=np.int64)[where] if len(sources) else np.zeros(0, dtype=np.int64)
        self.firsts = np.array([f.first_row_id for f in by_source], dtype=np.int64)[where] if len(sources) else np.zeros(0, dtype=np.int64)
        self.positions = np.asarray(arrays[scan.position], dtype=np.int64)
        self.has_id = ~np.ma.getmaskarray(ids)
        self.ids = np.ma.filled(ids, 0).astype(np.int64)


def _addresses(execution: Execution, state: TableState) -> _Addresses:
    scan = execution.engine.addressed(state, state.fragments.values())
    rows = execution.engine.work.execute(f"SELECT {scan.source}, {scan.position}, {scan.row_id} FROM ({scan.sql})").fetchnumpy()
    return _Addresses(rows, scan)


def places(execution: Execution, state: TableState, ids: NDArray[Any]) -> dict[int, BitMap]:
    """The positions, by fragment id, of the live rows of `state` whose row id, stored or not, is among `ids` (sorted, without doubles)."""
    import numpy as np

    found: dict[int, BitMap] = {}
    for fragment_id, fragment in state.fragments.items():
        if not fragment.has_row_ids:
            low, high = np.searchsorted(ids, (fragment.first_row_id, fragment.first_row_id + fragment.row_count))
            if high > low:
                found[fragment_id] = deletion.positions_of(ids[low:high] - fragment.first_row_id) & state.alive(fragment_id)
    stored = {k: state.alive(k) for k, f in state.fragments.items() if f.has_row_ids and _may_have(f, ids)}
    if stored:
        rows = _addresses(execution, only(state, stored))
        wanted = np.isin(np.where(rows.has_id, rows.ids, rows.firsts + rows.positions), ids)
        for k in np.unique(rows.fragments[wanted]):
            found[int(k)] = deletion.positions_of(rows.positions[wanted & (rows.fragments == k)])
    return {k: positions for k, positions in found.items() if positions}


def _may_have(fragment: Fragment, ids: NDArray[Any]) -> bool:
    """Whether one of `ids` may be stored in a fragment, by its statistics; where ids are missing there, they follow from the position."""
    known = next((s for s in fragment.statistics if s.field_id == ROW_ID_FIELD), None)
    if known is None or known.minimum is None or known.maximum is None or known.null_count != 0:
        return True
    low, high = ids.searchsorted(int(known.minimum)), ids.searchsorted(int(known.maximum), side="right")
    return bool(high > low)
