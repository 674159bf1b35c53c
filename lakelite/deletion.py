"""Deletion vectors: which positions of a fragment are deleted.

Owns the encoding (roaring bitmaps in their portable serialisation, with CRC, cardinality and row count beside them), the
set algebra that the resolver needs, and the bitstring that DuckDB tests per row. Never reads or writes anything.

Format: https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import itertools
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lakelite.errors import InternalError
from lakelite.model import Fragment
from lakelite.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap


_stamps = itertools.count(1)


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The deleted positions of one fragment of `row_count` rows. `born`: the snapshot that wrote it (None: staged).

    `stamp`: no other vector of this process has it, so that what is derived from this one can be kept by it.
    """

    positions: BitMap
    row_count: int
    born: int | None = None
    stamp: int = field(default_factory=lambda: next(_stamps), compare=False)

    @property
    def cardinality(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A deletion vector as the catalog keeps it."""

    bits: bytes
    cardinality: int
    row_count: int
    crc32: int


def positions_of(values: NDArray[Any] | Iterable[int]) -> BitMap:
    """The set of the given positions (any integer array or iterable; duplicates count once)."""
    from pyroaring import BitMap  # here and below: numpy and pyroaring take 0.1 s to load, and many sessions never need them

    if hasattr(values, "astype"):
        return BitMap(array("I", values.astype("uint32").tobytes()))  # five times faster than from the numpy array itself
    return BitMap(values)


def everything(row_count: int) -> BitMap:
    """All positions of a fragment of `row_count` rows."""
    return span(0, row_count)


def span(start: int, stop: int) -> BitMap:
    """The positions start … stop - 1."""
    from pyroaring import BitMap

    return BitMap(range(start, stop))


def to_array(positions: BitMap) -> NDArray[Any]:
    """The positions in ascending order, int64."""
    import numpy as np

    return np.frombuffer(positions.to_array(), dtype=np.uint32).astype(np.int64)


def encode(vector: DeletionVector) -> Encoded:
    """The checked form for the catalog. An empty vector or a position outside the fragment is a bug: InternalError."""
    positions = vector.positions
    if not positions:
        raise InternalError("an empty deletion vector is never stored")
    if positions.max() >= vector.row_count:
        raise InternalError(f"deletion vector marks position {positions.max()} of a fragment of {vector.row_count} rows")
    compact = positions.copy()
    compact.run_optimize()
    bits = compact.serialize()
    return Encoded(bits, len(positions), vector.row_count, zlib.crc32(bits))


def decode(encoded: Encoded, born: int | None) -> DeletionVector:
    """The vector that `encode` wrote; InternalError when its CRC, cardinality or range do not agree.

    The CRC is checked first: the library's own parser accepts many damaged inputs.
    """
    if zlib.crc32(encoded.bits) != encoded.crc32:
        raise InternalError("a deletion vector is damaged: its CRC does not match")
    from pyroaring import BitMap

    try:
        positions = BitMap.deserialize(encoded.bits)
    except ValueError as error:
        raise InternalError("a deletion vector is damaged: its bits are none of its format") from error
    if len(positions) != encoded.cardinality or not positions or positions.max() >= encoded.row_count:
        raise InternalError("a deletion vector is damaged: its cardinality or range does not match")
    return DeletionVector(positions, encoded.row_count, born)


def union(vector: DeletionVector | None, more: BitMap, row_count: int) -> DeletionVector:
    """`vector` (None: nothing deleted yet) with the positions of `more` added; staged, so without a birth."""
    return DeletionVector(more.copy() if vector is None else vector.positions | more, row_count)


def bitstring(vector: DeletionVector) -> bytes:
    """One bit per position, the first in the highest bit of the first byte, as DuckDB's BLOB → BIT cast reads them."""
    import numpy as np

    bits = np.zeros(vector.row_count, dtype=np.uint8)
    bits[np.frombuffer(vector.positions.to_array(), dtype=np.uint32)] = 1
    return np.packbits(bits).tobytes()


def common(vector: DeletionVector, positions: BitMap) -> int:
    """How many of `positions` the vector marks."""
    return int(vector.positions.intersection_cardinality(positions))


def difference(after: DeletionVector | None, before: DeletionVector | None, fragment: Fragment, *, alive: bool) -> BitMap:
    """The positions of `fragment` that are deleted in `after` and were not in `before`; not `alive`: all of it is gone."""
    from pyroaring import BitMap

    now = everything(fragment.row_count) if not alive else after.positions if after is not None else BitMap()
    return now - before.positions if before is not None else now
