"""The delta of a table between a transaction's base and the head: which rows are gone, which are new, where the others stand now.

One net difference, not one per winner (resolver.md, section 1). Rows that a compaction moved are carried, through chains of
compactions. Pure: works on states and compositions that were read before. Sets and arrays throughout; nothing loops over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakelite import deletion
from lakelite.composition import Composition, Unplaced
from lakelite.contents import TableState

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    Positions = Mapping[int, BitMap]  # by fragment id


@dataclass(frozen=True, eq=False)
class Delta:
    """`base` and `head`: the table's states. `compositions`: of every compaction between them, by output.

    Every method: Unplaced where the compositions do not tell.
    """

    base: TableState
    head: TableState
    compositions: Mapping[int, Composition] = field(default_factory=dict)

    @cached_property
    def added(self) -> dict[int, BitMap]:
        """The rows that are live at the head and not carried from the base, as positions of the head's fragments."""
        known: dict[int, BitMap] = {}
        new = (f for f in self.head.fragments if f not in self.base.fragments)
        return _filled({f: self.head.alive(f) - self._from_base(f, known) for f in new})

    @cached_property
    def removed(self) -> dict[int, BitMap]:
        """The rows that are live at the base and not carried to the head, as positions of the base's fragments."""
        return self.lost({f: self.base.alive(f) for f in self.base.fragments if self._may_differ(f)})

    @property
    def is_empty(self) -> bool:
        """Whether base and head hold the same rows, whatever moved."""
        return not self.added and not self.removed

    def carried(self, positions: Positions) -> dict[int, BitMap]:
        """Where rows of the base stand at the head; those that are gone are left out."""
        found: dict[int, BitMap] = {}
        for fragment_id, some in positions.items():
            if fragment_id in self.head.fragments:
                _add(found, fragment_id, some - self._dead(fragment_id))
                continue
            for target, _, there in self._followed(fragment_id, some):
                _add(found, target, deletion.positions_of(there))
        return _filled(found)

    def lost(self, positions: Positions) -> dict[int, BitMap]:
        """Those rows of the base that are gone at the head."""
        found: dict[int, BitMap] = {}
        for fragment_id, some in positions.items():
            if fragment_id in self.head.fragments:
                found[fragment_id] = some & self._dead(fragment_id)
            else:
                left = (deletion.positions_of(origins) for _, origins, _ in self._followed(fragment_id, some))
                found[fragment_id] = some.difference(*left)
        return _filled(found)

    def _may_differ(self, fragment_id: int) -> bool:
        return fragment_id not in self.head.fragments or self.base.vectors.get(fragment_id) is not self.head.vectors.get(fragment_id)

    def _dead(self, fragment_id: int) -> BitMap:
        vector = self.head.vectors.get(fragment_id)
        return vector.positions if vector is not None else deletion.span(0, 0)

    def _followed(self, fragment_id: int, some: BitMap) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
        """Rows that compactions moved: each fragment where some of them ended up, which of them are still there, and their positions there."""
        import numpy as np

        start = deletion.to_array(some)
        moving = [(fragment_id, start, start)]
        while moving:
            fragment_id, origins, current = moving.pop()
            if fragment_id in self.head.fragments:
                alive = ~np.isin(current, deletion.to_array(self._dead(fragment_id)), kind="sort")
                yield fragment_id, origins[alive], current[alive]
                continue
            placed = np.zeros(len(current), dtype=bool)
            for output, made in self.compositions.items():
                if made.has_source(fragment_id):
                    mask, there = made.place(fragment_id, current)
                    if np.any(placed & mask):
                        raise Unplaced(f"rows of fragment {fragment_id} went into several outputs")
                    placed |= mask
                    moving.append((output, origins[mask], there))

    def _from_base(self, fragment_id: int, known: dict[int, BitMap]) -> BitMap:
        """The positions of a fragment whose rows are rows of the base."""
        if fragment_id in self.base.fragments:
            return self.base.alive(fragment_id)
        made = self.compositions.get(fragment_id)
        if made is None:
            return deletion.span(0, 0)
        if fragment_id not in known:
            known[fragment_id] = deletion.span(0, 0)
            for source in made.sources:
                inside = self._from_base(source, known)
                if not inside:  # emptied before the base: its deletion vector may have expired, and nothing of it is asked
                    continue
                whole = len(inside - made.absent(source)) == made.run(source).live_count
                there = made.all_of(source) if whole else deletion.positions_of(made.place(source, deletion.to_array(inside))[1])
                known[fragment_id] |= there
        return known[fragment_id]


def _add(found: dict[int, BitMap], fragment_id: int, more: BitMap) -> None:
    found[fragment_id] = found[fragment_id] | more if fragment_id in found else more


def _filled(found: Positions) -> dict[int, BitMap]:
    return {fragment_id: positions for fragment_id, positions in found.items() if positions}
