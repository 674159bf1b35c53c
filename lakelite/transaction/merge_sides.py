"""Where two branches met, and what each of them did since: what MERGE BRANCH looks at. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelite.catalog.branches import Lineage, meeting
from lakelite.contents import TableState
from lakelite.errors import OperationalError, Position
from lakelite.model import Branch
from lakelite.transaction import merge_rows, versions
from lakelite.transaction.delta import Delta
from lakelite.transaction.execution import Execution
from lakelite.transaction.view import LakeView

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Side:
    """What happened on one of the branches since they met. `stretches`: the snapshots (after, until] of it; `kinds`, `newest` snapshot: by table."""

    stretches: Sequence[tuple[int, int]]
    kinds: Mapping[int, frozenset[str]]
    newest: Mapping[int, int]

    @classmethod
    def of(cls, execution: Execution, stretches: Sequence[tuple[int, int]]) -> Side:
        kinds: dict[int, frozenset[str]] = {}
        newest: dict[int, int] = {}
        for after, until in stretches:
            for number, table_id, text, _, _ in execution.catalog.rows("effects", base=after, head=until):
                if table_id is not None:
                    kinds[table_id] = kinds.get(table_id, frozenset()) | frozenset(text.split(","))
                    newest[table_id] = max(number, newest.get(table_id, number))
        return cls(stretches, kinds, newest)


@dataclass(frozen=True, eq=False)
class Sides:
    """`bases`, `head`: the lake where the branches met, and theirs now. `base`: the newest of them."""

    branch: Branch
    bases: tuple[LakeView, ...]
    head: LakeView
    theirs: Side
    ours: Side

    @property
    def base(self) -> LakeView:
        return self.bases[0]

    @property
    def numbers(self) -> list[int]:
        """The snapshots that the merge reads."""
        return [
            *(base.snapshot_id for base in self.bases),
            self.head.snapshot_id,
            *(n for side in (self.theirs, self.ours) for run in side.stretches for n in run),
        ]


def met(execution: Execution, branch: Branch, head: int, position: Position) -> Sides | None:
    """None: all of theirs is here already."""
    mine = execution.view.snapshot_id
    lineage = Lineage.of(execution.catalog, (head, mine))
    there, back = meeting(lineage, head, mine), meeting(lineage, mine, head)
    if there is None or back is None:
        hint = "CREATE TABLE … AS FROM t AT (BRANCH => …) takes a table"
        raise OperationalError(f"where branch {branch.name} and this one met has expired", hint=hint, position=position)
    if there.bases == (head,):
        return None
    for number in (*there.bases, head, *(after for after, _ in (*there.stretches, *back.stretches))):
        execution.pin(number)
    bases = tuple(versions.view_of(execution, number, position) for number in there.bases)
    return Sides(branch, bases, versions.view_of(execution, head, position), Side.of(execution, there.stretches), Side.of(execution, back.stretches))


def has_changed(execution: Execution, side: Side, table_id: int) -> bool:
    """Whether a side has changed a row of a table."""
    return len(touched(execution, side, table_id)) > 0


def touched(execution: Execution, side: Side, table_id: int) -> NDArray[Any]:
    """The ids, sorted, of the rows of a table that a side may have changed."""
    only_moved = side.kinds.get(table_id, frozenset()) <= {"compaction"}
    return merge_rows.candidates(execution, () if only_moved else deltas(execution, side, table_id))


def deltas(execution: Execution, side: Side, table_id: int) -> list[Delta]:
    """What each stretch did to the rows of a table."""
    return [delta for after, until in side.stretches if (delta := _delta(execution, table_id, after, until)) is not None]


def _delta(execution: Execution, table_id: int, after: int, until: int) -> Delta | None:
    before, now = (versions.view_of(execution, number, None) for number in (after, until))
    old, new = before.namespace.by_id.get(table_id), now.namespace.by_id.get(table_id)
    known = new or old
    if known is None or known.view is not None:
        return None
    states = [TableState(known, {}, {}) if table is None else view.state(table) for view, table in ((before, old), (now, new))]
    return Delta(states[0], states[1], execution.catalog.compositions(known, after, until))
