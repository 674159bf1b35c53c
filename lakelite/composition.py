"""Compositions: which source rows became which rows of a compaction's output.

A source row at physical position i, alive when it was read, stands in the output at

    output_start + i - #(positions of the read-time deletion vector that are < i)

so a composition needs one run per source, not one entry per row. Pure values; nothing here reads or writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelite.deletion import DeletionVector
from lakelite.errors import InternalError
from lakelite.model import Fragment


@dataclass(frozen=True, slots=True)
class Run:
    """The live rows of one source, in order, at `output_start` of the output. `vector_born`: the snapshot of the deletion
    vector that was applied when the source was read (None: it had none)."""

    source_fragment_id: int
    source_order: int
    output_start: int
    live_count: int
    physical_count: int
    vector_born: int | None


def in_order(sources: Sequence[tuple[Fragment, DeletionVector | None]]) -> tuple[Run, ...]:
    """The runs of an output that holds the live rows of `sources` one source after the other. Sources without a live row have none."""
    runs: list[Run] = []
    start = 0
    for order, (fragment, vector) in enumerate(sources):
        live = fragment.row_count - (vector.cardinality if vector else 0)
        if live > 0:
            runs.append(Run(fragment.fragment_id, order, start, live, fragment.row_count, vector.born if vector else None))
        start += live
    return tuple(runs)


def check(runs: Sequence[Run], output_rows: int) -> None:
    """InternalError unless the runs tile the output exactly."""
    start = 0
    for run in runs:
        if run.output_start != start or not 0 < run.live_count <= run.physical_count:
            raise InternalError(f"composition run {run.source_order} does not fit: starts at {run.output_start}, expected {start}")
        start += run.live_count
    if start != output_rows:
        raise InternalError(f"a composition accounts for {start} rows of an output of {output_rows}")
