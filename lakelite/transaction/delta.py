"""The delta of a table between a transaction's base and the head: which rows are gone, which are new, where the others stand now.

One net difference, not one per winner (resolver.md, section 1). Rows that a compaction moved are carried, through chains of
compactions. Pure: works on states and compositions that were read before. Sets and arrays throughout; nothing loops over rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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

    @property
    def added(self) -> dict[int, BitMap]:
        """The rows that are live at the head and not carried from the base, as positions of the head's fragments."""
        known: dict[int, BitMap] = {}
        new = (f for f in self.head.fragments if f not in self.base.fragments)
        return _filled({f: self.head.alive(f) - self._from_base(f, known) for f in new})

    @property
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
                target, there = fragment_id, some - self._dead(fragment_id)
            else:
                target, _, targets = self._follow(fragment_id, deletion.to_array(some))
                there = deletion.positions_of(targets)
            found[target] = found[target] | there if target in found else there
        return _filled(found)

    def lost(self, positions: Positions) -> dict[int, BitMap]:
        """Those rows of the base that are gone at the head."""
        found: dict[int, BitMap] = {}
        for fragment_id, some in positions.items():
            if fragment_id in self.head.fragments:
                found[fragment_id] = some & self._dead(fragment_id)
            else:
                _, origins, _ = self._follow(fragment_id, deletion.to_array(some))
                found[fragment_id] = some - deletion.positions_of(origins)
        return _filled(found)

    def _may_differ(self, fragment_id: int) -> bool:
        return fragment_id not in self.head.fragments or self.base.vectors.get(fragment_id) is not self.head.vectors.get(fragment_id)

    def _dead(self, fragment_id: int) -> BitMap:
        vector = self.head.vectors.get(fragment_id)
        return vector.positions if vector is not None else deletion.span(0, 0)

    def _follow(self, fragment_id: int, positions: NDArray[Any]) -> tuple[int, NDArray[Any], NDArray[Any]]:
        """The rows of a fragment that compactions moved: where they ended up, those that are still there, and their positions there."""
        import numpy as np

        origins, current = positions, positions
        while fragment_id not in self.head.fragments:
            outputs = [o for o, made in self.compositions.items() if made.has_source(fragment_id)]
            if not outputs:
                return fragment_id, origins[:0], current[:0]
            if len(outputs) > 1:
                raise Unplaced(f"fragment {fragment_id} went into several outputs")
            mask, current = self.compositions[outputs[0]].place(fragment_id, current)
            origins, fragment_id = origins[mask], outputs[0]
        alive = ~np.isin(current, deletion.to_array(self._dead(fragment_id)), kind="sort")
        return fragment_id, origins[alive], current[alive]

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
                whole = len(inside - made.dead[source] if source in made.dead else inside) == made.run(source).live_count
                there = made.all_of(source) if whole else deletion.positions_of(made.place(source, deletion.to_array(inside))[1])
                known[fragment_id] |= there
        return known[fragment_id]


def _filled(found: Positions) -> dict[int, BitMap]:
    return {fragment_id: positions for fragment_id, positions in found.items() if positions}
