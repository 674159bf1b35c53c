"""Which fragments of a table a compaction joins, and into how many outputs. Pure: works on what the catalog says of them.

A bin is a list of fragments in the order of their ids, whose live rows become one output, in that order, or several where they
are sorted. What is large enough and has few deletions is left alone, unless it is to be sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from lakelite.contents import Inline, TableState
from lakelite.model import Conjunct, Fragment, Limits
from lakelite.storage.statistics import fragment_may_match

Bin = tuple[Fragment, ...]


def is_flush_due(before: Inline, after: Inline, limits: Limits) -> bool:
    """Whether it is for this commit to flush: it took a table past so much inline that reading it costs more than a file would.

    One writer of many finds that: the one whose commit passes a bound, or a multiple of it where the flush before has failed.
    """

    def passed(least: int, old: int, new: int) -> bool:
        return new // least > old // least

    return passed(limits.flush_fragments + 1, before.fragments, after.fragments) or passed(limits.flush_rows + 1, before.rows, after.rows)


def inline(state: TableState) -> list[Bin]:
    """All inline fragments as one bin."""
    return _one_of(f for f in _in_order(state, ()) if f.storage == "inline")


def due(state: TableState, conditions: Sequence[Conjunct], limits: Limits) -> list[Bin]:
    """Inline and small fragments, joined up to the target size, and those with many deleted rows, also alone.

    `conditions`: only fragments whose statistics may hold a row that meets them.
    """
    wanted = [f for f in _in_order(state, conditions) if _is_small(state, f, limits) or _is_worn(state, f, limits)]
    return [one for one in _packed(state, wanted, limits) if len(one) > 1 or one[0].storage == "inline" or _is_worn(state, one[0], limits)]


def whole(state: TableState, conditions: Sequence[Conjunct]) -> list[Bin]:
    """All fragments that may hold a row that meets the conditions, as one bin."""
    return _one_of(_in_order(state, conditions))


def output_rows(state: TableState, one: Bin, limits: Limits) -> int:
    """How many rows each output of a bin is to have, so that they are as few as the target size allows, and as large."""
    outputs = max(1, math.ceil(sum(_fill(state, f, limits) for f in one)))
    return math.ceil(sum(live_rows(state, f) for f in one) / outputs)


def live_rows(state: TableState, fragment: Fragment) -> int:
    vector = state.vectors.get(fragment.fragment_id)
    return fragment.row_count - (vector.cardinality if vector else 0)


def _one_of(fragments: Iterable[Fragment]) -> list[Bin]:
    return [found] if (found := tuple(fragments)) else []


def _in_order(state: TableState, conditions: Sequence[Conjunct]) -> list[Fragment]:
    return sorted((f for f in state.fragments.values() if fragment_may_match(f, conditions)), key=lambda f: f.fragment_id)


def _fill(state: TableState, fragment: Fragment, limits: Limits) -> float:
    """Which part of a full output the fragment's live rows would be."""
    live = live_rows(state, fragment)
    live_bytes = fragment.size_bytes * live / fragment.row_count
    return max(live_bytes / limits.target_file_bytes, live / limits.target_file_rows)


def _is_small(state: TableState, fragment: Fragment, limits: Limits) -> bool:
    return fragment.storage == "inline" or _fill(state, fragment, limits) < 0.5


def _is_worn(state: TableState, fragment: Fragment, limits: Limits) -> bool:
    dead = fragment.row_count - live_rows(state, fragment)
    return dead * 100 >= limits.rewrite_deleted_percent * fragment.row_count


def _packed(state: TableState, wanted: Iterable[Fragment], limits: Limits) -> list[Bin]:
    """The fragments in their order, cut where an output would be more than full."""
    bins: list[list[Fragment]] = []
    filled = 0.0
    for fragment in wanted:
        fill = _fill(state, fragment, limits)
        if not bins or filled + fill > 1:
            bins.append([])
            filled = 0.0
        bins[-1].append(fragment)
        filled += fill
    return [tuple(one) for one in bins]
