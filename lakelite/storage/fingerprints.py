"""A set of 64-bit hashes, kept in 20 to 24 bits each, that says of another hash "not there" or "maybe".

A static quotient filter: of each hash its first bits are kept, sorted. The first of these (the quotient) say in which bucket it
is, the next 16 (the remainder) are stored there. Buckets hold 4 to 8 of them on average, so that a hash which is not there is taken
for one that is once in 8,192 to 16,384 times, whatever the size of the set.

Promises: a hash that is there is never denied. Pure. Does not notice damage: whoever keeps the bytes has to.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_REMAINDER_BITS = 16
_BUCKET_BITS = 3  # a bucket holds fewer than 2**3 on average
_MOST_BITS = 32 - _BUCKET_BITS  # of a quotient: there are fewer than 2**32 hashes
_HEAD = struct.Struct("<QB")  # number of hashes, bits of the quotient


@dataclass(frozen=True, eq=False, slots=True)
class Fingerprints:
    """`starts[q]` to `starts[q + 1]`: where the remainders of the quotient q stand (uint32, uint16)."""

    starts: NDArray[Any]
    remainders: NDArray[Any]

    @property
    def size_bytes(self) -> int:
        return int(self.starts.nbytes + self.remainders.nbytes)

    def may_hold(self, hashes: NDArray[Any]) -> NDArray[Any]:
        """For each of the hashes (uint64) whether it may be there (bool)."""
        import numpy as np

        quotients, wanted = _split(hashes, _quotient_bits(len(self.starts) - 1))
        first = self.starts[quotients].astype(np.int64)
        counts = self.starts[quotients + 1].astype(np.int64) - first
        ends = np.cumsum(counts)
        places = np.arange(counts.sum()) + np.repeat(first - ends + counts, counts)
        same = self.remainders[places] == np.repeat(wanted, counts)
        found = np.zeros(len(hashes), dtype=bool)
        found[np.repeat(np.arange(len(hashes)), counts)[same]] = True
        return found


def of(hashes: NDArray[Any]) -> Fingerprints:
    """The set of these (uint64, in any order; fewer than 2**32)."""
    import numpy as np

    bits = max(0, len(hashes).bit_length() - _BUCKET_BITS)
    quotients, remainders = _split(np.sort(hashes), bits)
    starts = np.searchsorted(quotients, np.arange(2**bits + 1), side="left").astype(np.uint32)
    return Fingerprints(starts, remainders)


def encode(fingerprints: Fingerprints) -> bytes:
    """As bytes."""
    head = _HEAD.pack(len(fingerprints.remainders), _quotient_bits(len(fingerprints.starts) - 1))
    return head + fingerprints.starts.astype("<u4").tobytes() + fingerprints.remainders.astype("<u2").tobytes()


def decode(encoded: bytes | memoryview) -> Fingerprints | None:
    """From the bytes that `encode` gave; None for bytes that it never gives."""
    import numpy as np

    if len(encoded) < _HEAD.size:
        return None
    count, bits = _HEAD.unpack_from(encoded)
    if bits > _MOST_BITS or len(encoded) != _HEAD.size + 4 * (2**bits + 1) + 2 * count:
        return None
    starts = np.frombuffer(encoded, dtype="<u4", count=2**bits + 1, offset=_HEAD.size)
    if starts[0] != 0 or starts[-1] != count or (starts[1:] < starts[:-1]).any():
        return None
    return Fingerprints(starts, np.frombuffer(encoded, dtype="<u2", count=count, offset=_HEAD.size + starts.nbytes))


def _quotient_bits(buckets: int) -> int:
    return buckets.bit_length() - 1


def _split(hashes: NDArray[Any], bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Quotients (int64) and remainders (uint16)."""
    import numpy as np

    kept = hashes >> np.uint64(64 - bits - _REMAINDER_BITS)
    return (kept >> np.uint64(_REMAINDER_BITS)).astype(np.int64), (kept & np.uint64(2**_REMAINDER_BITS - 1)).astype(np.uint16)
