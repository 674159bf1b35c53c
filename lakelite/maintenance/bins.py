"""Which fragments of a table a compaction joins, and into how many outputs. Pure: works on what the catalog says of them.

A bin is a list of fragments in the order of their ids, whose live rows become one output, in that order, or several where they
are sorted or divided. In a partitioned table it is of one partition, or of fragments that hold several, which are divided. Unless it is
to be sorted or divided, a file takes part only where that gains enough: what joins it and its own deleted rows have to be a share of it
(`rewrite_percent`). So a large file is not written again for a few rows; these are joined among themselves, and what is left grows by a
factor from one file to the next: the files of a bin that stay are as many as the logarithm of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lakelite.contents import Clutter, TableState
from lakelite.model import Conjunct, Fragment, Limits, PartitionKey
from lakelite.storage.statistics import candidates

Bin = tuple[Fragment, ...]
OUTPUTS_AT_ONCE = 32  # of upkeep: each is a file to be written and synced


def is_upkeep_due(before: Clutter, after: Clutter, limits: Limits) -> bool:
    """Whether it is for this commit to look after the table: it took it past a bound.

    One writer of many finds that: the one whose commit passes the bound, or a multiple of it where that was not enough or has failed.
    """

    def passed(most: int, old: int, new: int) -> bool:
        return new // (most + 1) > old // (most + 1)

    return limits.upkeep == "on" and (
        passed(limits.flush_fragments, before.inline_fragments, after.inline_fragments)
        or passed(limits.flush_rows, before.inline_rows, after.inline_rows)
        or passed(limits.upkeep_files, before.files, after.files)
        or passed(limits.upkeep_deleted_rows, before.deleted_rows, after.deleted_rows)
    )


def due(state: TableState, conditions: Sequence[Conjunct], limits: Limits) -> list[Bin]:
    """Inline and small fragments, joined up to the target size, and those with many deleted rows, also alone; where it gains enough.

    `conditions`: only fragments whose statistics may hold a row that meets them.
    """
    partitioning = state.table.partitioning
    wanted = [f for f in _in_order(state, conditions) if not f.is_in_place(partitioning) or _is_small(state, f, limits) or _is_worn(state, f, limits)]
    return [one for place, some in _by_place(state, wanted).items() for one in (_packed if place is None else _gaining)(state, some, limits)]


def due_at_once(state: TableState, limits: Limits) -> list[Bin]:
    """As `due`, but no more than `upkeep_values`, `upkeep_bytes` and OUTPUTS_AT_ONCE in all: the bins that join the most fragments.

    No large files, and none that only has to be divided: OPTIMIZE does that.
    """
    rows = max(1, limits.upkeep_values // max(1, len(state.table.columns)))
    limits = replace(limits, target_file_rows=rows, target_file_bytes=limits.upkeep_bytes)
    fitting = [f for f in _in_order(state, ()) if f.storage == "inline" or _fill(state, f, limits) <= 1]
    wanted = [f for f in fitting if _is_small(state, f, limits) or _is_worn(state, f, limits)]
    found = [one for some in _by_place(state, wanted).values() for one in _gaining(state, some, limits)]
    chosen: list[Bin] = []
    filled = 0.0
    for one in sorted(found, key=len, reverse=True)[:OUTPUTS_AT_ONCE]:
        fill = sum(_fill(state, f, limits) for f in one)
        if filled + fill <= 1 or not chosen:
            chosen.append(one)
            filled += fill
    return chosen


def whole(state: TableState, conditions: Sequence[Conjunct]) -> list[Bin]:
    """All fragments that may hold a row that meets the conditions: as one bin, or one for each partition if all of them hold just one."""
    found = _in_order(state, conditions)
    places = _by_place(state, found)
    return [tuple(found)] if None in places else [tuple(each) for each in places.values()]


def output_rows(state: TableState, one: Bin, limits: Limits) -> int:
    """How many rows each output of a bin is to have, so that they are as few as the target size allows, and as large."""
    outputs = max(1, math.ceil(sum(_fill(state, f, limits) for f in one)))
    return math.ceil(sum(live_rows(state, f) for f in one) / outputs)


def live_rows(state: TableState, fragment: Fragment) -> int:
    vector = state.vectors.get(fragment.fragment_id)
    return fragment.row_count - (vector.cardinality if vector else 0)


def _in_order(state: TableState, conditions: Sequence[Conjunct]) -> list[Fragment]:
    return sorted(candidates(state.fragments.values(), conditions), key=lambda f: f.fragment_id)


def _fill(state: TableState, fragment: Fragment, limits: Limits) -> float:
    """Which part of a full output the fragment's live rows would be."""
    live = live_rows(state, fragment)
    live_bytes = fragment.size_bytes * live / fragment.row_count
    return max(live_bytes / limits.target_file_bytes, live / limits.target_file_rows)


_Place = tuple[tuple[PartitionKey, str | None], ...]


def _by_place(state: TableState, fragments: Iterable[Fragment]) -> dict[_Place | None, list[Fragment]]:
    """The fragments of each partition, and under None those that hold several; of a table without partitions all together."""
    partitioning = state.table.partitioning
    found: dict[_Place | None, list[Fragment]] = {}
    for fragment in fragments:
        place = (fragment.partition if partitioning else ()) if fragment.is_in_place(partitioning) else None
        found.setdefault(place, []).append(fragment)
    return found


def _is_small(state: TableState, fragment: Fragment, limits: Limits) -> bool:
    return fragment.storage == "inline" or _fill(state, fragment, limits) < 0.5


def _is_worn(state: TableState, fragment: Fragment, limits: Limits) -> bool:
    return _gains(state, fragment, 0, limits)


def _gains(state: TableState, fragment: Fragment, joining: int, limits: Limits) -> bool:
    """Whether to move a fragment, where so many other rows go into the same output. Inline ones cost nothing to write again."""
    gained = joining + fragment.row_count - live_rows(state, fragment)
    return fragment.storage == "inline" or gained * 100 >= limits.rewrite_percent * fragment.row_count


def _gaining(state: TableState, wanted: Sequence[Fragment], limits: Limits) -> list[Bin]:
    """Bins in which each fragment gains enough. What stays is taken out, the largest first, and the others are packed anew."""
    while True:
        bins = _packed(state, wanted, limits)
        staying = {f.fragment_id for one in bins for f in _staying(state, one, limits)}
        if not staying:
            return bins
        wanted = [f for f in wanted if f.fragment_id not in staying]


def _staying(state: TableState, one: Bin, limits: Limits) -> list[Fragment]:
    """The fragments of a bin that do not gain enough in it."""
    rows = sum(live_rows(state, f) for f in one)
    return [f for f in one if not _gains(state, f, rows - live_rows(state, f), limits)]


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
