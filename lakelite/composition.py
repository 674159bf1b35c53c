"""Compositions: which source rows became which rows of a compaction's output.

A source row at physical position i, alive when it was read, has in the output the rank

    output_start + i - #(positions of the read-time deletion vector that are < i)

so a composition needs one run per source, not one entry per row. In an output that keeps the order of rows the rank is the
position; one that was sorted anew has a permutation as well, from ranks to positions. Pure values; nothing here reads or writes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakelite import deletion
from lakelite.deletion import DeletionVector
from lakelite.errors import InternalError
from lakelite.model import Fragment

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap


class Unplaced(Exception):
    """A row whose place in the output does not follow from the composition. Never shown: the resolver goes on with its next rung."""


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


@dataclass(frozen=True, eq=False)
class Composition:
    """Of one output of `row_count` rows. `dead`: by source, what its deletion vector marked when it was read, where it had one.

    `permutation`: the output position of each rank, or None where they are the same.
    """

    row_count: int
    runs: tuple[Run, ...]
    dead: Mapping[int, BitMap]
    permutation: NDArray[Any] | None = None

    @cached_property
    def _by_source(self) -> Mapping[int, Run]:
        return {run.source_fragment_id: run for run in self.runs}

    @property
    def sources(self) -> tuple[int, ...]:
        return tuple(self._by_source)

    def has_source(self, fragment_id: int) -> bool:
        return fragment_id in self._by_source

    def place(self, source: int, positions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """A mask of the `positions` (int64) that were alive when the source was read, and where those stand in the output.

        Unplaced: a position outside the source, counts that disagree, a source without a run.
        """
        import numpy as np

        run = self.run(source)
        if len(positions) and not (positions.min() >= 0 and positions.max() < run.physical_count):
            raise Unplaced(f"a position is outside fragment {source}")
        dead = self.dead.get(source)
        if not dead:
            return np.ones(len(positions), dtype=bool), self._at(run.output_start + positions)
        marked = deletion.to_array(dead)
        before = np.searchsorted(marked, positions)
        mask = marked[np.minimum(before, len(marked) - 1)] != positions
        return mask, self._at(run.output_start + (positions - before)[mask])

    def all_of(self, source: int) -> BitMap:
        """Where all rows of a source that were alive stand in the output."""
        run = self.run(source)
        ranks = slice(run.output_start, run.output_start + run.live_count)
        return deletion.span(ranks.start, ranks.stop) if self.permutation is None else deletion.positions_of(self.permutation[ranks])

    def run(self, source: int) -> Run:
        """The run of a source, whose counts agree."""
        run, dead = self._by_source.get(source), self.dead.get(source)
        if run is None or run.physical_count - (len(dead) if dead else 0) != run.live_count:
            raise Unplaced(f"fragment {source} does not fit its run")
        if run.output_start + run.live_count > self.row_count or (self.permutation is not None and len(self.permutation) != self.row_count):
            raise Unplaced(f"the run of fragment {source} does not fit the output")
        return run

    def _at(self, ranks: NDArray[Any]) -> NDArray[Any]:
        """The positions of ranks."""
        return ranks if self.permutation is None else self.permutation[ranks].astype("int64")


def of(sources: Sequence[tuple[Fragment, DeletionVector | None]], permutation: NDArray[Any] | None = None) -> Composition:
    """The composition of an output that holds the live rows of `sources`, in this order or in that of `permutation` (see Composition)."""
    runs = in_order(sources)
    dead = {fragment.fragment_id: vector.positions for fragment, vector in sources if vector is not None}
    return Composition(sum(run.live_count for run in runs), runs, dead, permutation)


def check(made: Composition, output_rows: int) -> None:
    """InternalError unless the runs tile the output, which has so many rows, exactly, and the permutation is one."""
    start = 0
    for run in made.runs:
        if run.output_start != start or not 0 < run.live_count <= run.physical_count:
            raise InternalError(f"composition run {run.source_order} does not fit: starts at {run.output_start}, expected {start}")
        start += run.live_count
    if not start == made.row_count == output_rows:
        raise InternalError(f"a composition accounts for {start} rows of an output of {output_rows}")
    if made.permutation is not None and (len(made.permutation) != start or len(deletion.positions_of(made.permutation)) != start):
        raise InternalError(f"a row map of {len(made.permutation)} places is no permutation of the {start} rows of its output")


def encode_permutation(permutation: NDArray[Any]) -> bytes:
    """As the catalog keeps it."""
    return zlib.compress(permutation.astype("<u4").tobytes(), 1)


def decode_permutation(blob: bytes, row_count: int) -> NDArray[Any]:
    """What `encode_permutation` made; InternalError where it is not one of `row_count` rows."""
    import numpy as np

    try:
        return np.frombuffer(zlib.decompress(blob, bufsize=4 * row_count), dtype="<u4", count=row_count)
    except (zlib.error, ValueError) as error:
        raise InternalError(f"a row map is damaged: {error}") from error
