"""Compositions: which source rows became which rows of a compaction's output.

A source row at physical position i, alive when it was read, has in the output the rank

    output_start + i - #(positions of the read-time deletion vector that are < i)

so a composition needs one run per source, not one entry per row. In an output that keeps the order of rows the rank is the
position; one that was sorted anew has a permutation as well, from ranks to positions. Where rows were sorted over several outputs,
a source has a run in each: rows that another output has are left out of the rank like deleted ones. Pure values; nothing here
reads or writes.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakelite import deletion
from lakelite.deletion import DeletionVector
from lakelite.errors import InternalError
from lakelite.model import Fragment
from lakelite.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap


class Unplaced(Exception):
    """A row whose place in the output does not follow from the composition. Never shown: the resolver goes on with its next rung."""


@dataclass(frozen=True, slots=True)
class Run:
    """The live rows of one source that the output has, in order, at `output_start` of it. `vector_born`: the snapshot of the deletion
    vector that was applied when the source was read (None: it had none)."""

    source_fragment_id: int
    source_order: int
    output_start: int
    live_count: int
    physical_count: int
    vector_born: int | None


@dataclass(frozen=True, eq=False)
class Composition:
    """Of one output of `row_count` rows. `dead`: by source, what its deletion vector marked when it was read, where it had one.

    `permutation`: the output position of each rank, or None where they are the same. `elsewhere`: by source, the rows that were
    alive and that other outputs have.
    """

    row_count: int
    runs: tuple[Run, ...]
    dead: Mapping[int, BitMap]
    permutation: NDArray[Any] | None = None
    elsewhere: Mapping[int, BitMap] = field(default_factory=dict)

    @cached_property
    def _by_source(self) -> Mapping[int, Run]:
        return {run.source_fragment_id: run for run in self.runs}

    @cached_property
    def row_map(self) -> bytes:
        """What `encode_row_map` makes of a permutation, made once: that takes a second for 5,000,000 rows."""
        return encode_row_map(self)

    @property
    def sources(self) -> tuple[int, ...]:
        return tuple(self._by_source)

    def has_source(self, fragment_id: int) -> bool:
        return fragment_id in self._by_source

    def place(self, source: int, positions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """A mask of the `positions` (int64) whose rows the output has, and where those stand in it.

        Unplaced: a position outside the source, counts that disagree, a source without a run.
        """
        import numpy as np

        run = self.run(source)
        if len(positions) and not (positions.min() >= 0 and positions.max() < run.physical_count):
            raise Unplaced(f"a position is outside fragment {source}")
        absent = self.absent(source)
        if not absent:
            return np.ones(len(positions), dtype=bool), self._at(run.output_start + positions)
        marked = deletion.to_array(absent)
        before = np.searchsorted(marked, positions)
        mask = marked[np.minimum(before, len(marked) - 1)] != positions
        return mask, self._at(run.output_start + (positions - before)[mask])

    def absent(self, source: int) -> BitMap:
        """The rows of a source that the output has not: they were deleted, or stand elsewhere."""
        none = deletion.span(0, 0)
        return self.dead.get(source, none) | self.elsewhere.get(source, none)

    def all_of(self, source: int) -> BitMap:
        """Where all rows of a source that the output has stand in it."""
        run = self.run(source)
        ranks = slice(run.output_start, run.output_start + run.live_count)
        return deletion.span(ranks.start, ranks.stop) if self.permutation is None else deletion.positions_of(self.permutation[ranks])

    def run(self, source: int) -> Run:
        """The run of a source, whose counts agree."""
        run = self._by_source.get(source)
        if run is None or run.physical_count - len(self.absent(source)) != run.live_count:
            raise Unplaced(f"fragment {source} does not fit its run")
        if run.output_start + run.live_count > self.row_count or (self.permutation is not None and len(self.permutation) != self.row_count):
            raise Unplaced(f"the run of fragment {source} does not fit the output")
        return run

    def _at(self, ranks: NDArray[Any]) -> NDArray[Any]:
        """The positions of ranks."""
        return ranks if self.permutation is None else self.permutation[ranks].astype("int64")


def of(
    sources: Sequence[tuple[Fragment, DeletionVector | None]],
    permutation: NDArray[Any] | None = None,
    parts: Mapping[int, BitMap] | None = None,
) -> Composition:
    """The composition of an output that holds the live rows of `sources`, in this order or in that of `permutation` (see Composition).

    `parts`: by source, which of its rows these are, where other outputs hold the rest.
    """
    alive = {f.fragment_id: deletion.everything(f.row_count) - v.positions if v else deletion.everything(f.row_count) for f, v in sources}
    here = alive if parts is None else {f: p & parts[f] if f in parts else deletion.span(0, 0) for f, p in alive.items()}
    starts = itertools.accumulate((len(p) for p in here.values()), initial=0)
    runs = tuple(
        Run(f.fragment_id, order, start, len(here[f.fragment_id]), f.row_count, v.born if v else None)
        for order, ((f, v), start) in enumerate(zip(sources, starts, strict=False))
        if here[f.fragment_id]
    )
    return Composition(
        sum(run.live_count for run in runs),
        runs,
        {f.fragment_id: v.positions for f, v in sources if v is not None and here[f.fragment_id]},
        permutation,
        {f: there for f, p in alive.items() if here[f] and (there := p - here[f])},
    )


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


def encode_row_map(made: Composition) -> bytes:
    """The permutation, and which rows of each run's source stand elsewhere, as the catalog keeps it:

    for each run the length of its bitmap (0: none), these bitmaps, and the output position of each rank; numbers are little-endian
    32-bit ones, and all of it is compressed by zlib.
    """
    bitmaps = [made.elsewhere[r.source_fragment_id].serialize() if r.source_fragment_id in made.elsewhere else b"" for r in made.runs]
    assert made.permutation is not None
    lengths = struct.pack(f"<{len(bitmaps)}I", *map(len, bitmaps))
    return zlib.compress(b"".join([lengths, *bitmaps, made.permutation.astype("<u4").tobytes()]), 1)


def decode_row_map(blob: bytes, runs: Sequence[Run], row_count: int) -> tuple[NDArray[Any], dict[int, BitMap]]:
    """Permutation and `elsewhere` of an output of `row_count` rows, as `encode_row_map` made them; InternalError where it did not."""
    import numpy as np
    from pyroaring import BitMap

    try:
        raw = zlib.decompress(blob, bufsize=4 * (len(runs) + row_count))
        ends = list(itertools.accumulate(np.frombuffer(raw, "<u4", len(runs)).tolist(), initial=4 * len(runs)))
        if len(raw) != ends[-1] + 4 * row_count:
            raise ValueError(f"it has {len(raw)} bytes")
        bitmaps = ((run.source_fragment_id, raw[start:end]) for run, (start, end) in zip(runs, itertools.pairwise(ends), strict=True))
        return np.frombuffer(raw, "<u4", row_count, ends[-1]), {source: BitMap.deserialize(bits) for source, bits in bitmaps if bits}
    except (zlib.error, ValueError) as error:
        raise InternalError(f"a row map is damaged: {error}") from error
