"""What a transaction did, in order, with all that running it again needs: statements that wrote, queries whose rows were handed
out, and both of what a ROLLBACK TO took back. Values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from lakelite.language import statements as st
from lakelite.language.parse import mentions
from lakelite.model import Table, fold
from lakelite.records import dataclass
from lakelite.storage.fragment import Staged
from lakelite.storage.saved import SavedRows
from lakelite.storage.temporary import NOTHING, Temporaries
from lakelite.transaction.changes import Work
from lakelite.transaction.execution import Call
from lakelite.transaction.view import LakeView


@dataclass(frozen=True, slots=True)
class Logged:
    """A statement that wrote. `many`: the parameter sets of an executemany. `table`: its target, as it was then.

    `constant`: the fragments of one that read nothing of the lake (`is_constant`), which are used again as they are. `given`: the names,
    folded, of the columns that rows which were taken by name had; None: as its text says. Not `repeatable`: it read what is the caller's.
    `tables`: the lake tables whose rows decided what it wrote and what it gave back. `returned`: what its RETURNING gave, or None.
    `temporaries`: those that it saw.
    """

    operation: st.Operation
    call: Call
    many: Sequence[Mapping[str, Any]] | None
    constant: tuple[Staged, ...]
    is_constant: bool
    rowcount: int
    table: Table | None
    given: frozenset[str] | None = None
    repeatable: bool = True
    tables: frozenset[int] = frozenset()
    returned: SavedRows | None = None
    temporaries: Temporaries = NOTHING

    @property
    def target(self) -> frozenset[int]:
        """The id of its table."""
        return frozenset() if self.table is None else frozenset({self.table.table_id})


@dataclass(frozen=True, slots=True)
class Looked:
    """A query whose rows were handed out, or a statement that put rows of the lake into a temporary table, which is the same.

    `view`, `work`, `temporaries`: what it saw. `tables`: the lake tables that it read. Not `repeatable`: it also read what is the caller's.
    `sets`: the parameter sets of a statement that changed a temporary table.
    """

    operation: st.Operation
    call: Call
    view: LakeView
    work: Work
    tables: frozenset[int]
    repeatable: bool
    temporaries: Temporaries = NOTHING
    sets: Sequence[Mapping[str, Any]] = ()

    @property
    def saw_own(self) -> bool:
        """Whether it saw rows that the transaction had written itself, so that only running again tells what they would be now."""
        return bool(self.tables & self.work.changes.tables.keys())

    def may_change(self, touched: frozenset[int]) -> bool:
        """Whether its rows may be others where winners `touched` those tables."""
        return bool(touched & self.tables) or (self.saw_own and bool(touched & self.work.changes.reads.keys()))


@dataclass(frozen=True, slots=True)
class Failed:
    """A statement whose `error` was handed out while the transaction went on. `sets`: its parameter sets."""

    operation: st.Operation
    text: str
    sets: Sequence[Mapping[str, Any]]
    error: str
    temporaries: Temporaries = NOTHING


@dataclass(frozen=True, slots=True)
class Undone:
    """What a ROLLBACK TO took back: it runs again inside its savepoint, and is taken back again."""

    events: tuple[Event, ...]

    @property
    def text(self) -> str:
        """Its first statement."""
        first = self.events[0]
        return first.call.text if isinstance(first, Logged | Looked) else first.text

    @property
    def is_promised(self) -> bool:
        """Whether a statement in it told of a number of rows, or of an error."""
        return any(isinstance(event, Logged | Failed) or (isinstance(event, Undone) and event.is_promised) for event in self.events)


Event = Logged | Looked | Failed | Undone


@dataclass(frozen=True, slots=True)
class Differing:
    """Something that was handed out and would be something else now. `tables`: those that the statement read or changed, as far as it is known."""

    kind: Literal["read changed", "row count changed", "error changed", "external data"]
    text: str
    tables: frozenset[int]


def statements(events: Iterable[Event]) -> list[Logged]:
    """The statements that stand."""
    return [event for event in events if isinstance(event, Logged)]


def looks(events: Iterable[Event]) -> Iterator[Looked]:
    """Every query whose rows were handed out, those of what was undone too."""
    for event in events:
        if isinstance(event, Looked):
            yield event
        elif isinstance(event, Undone):
            yield from looks(event.events)


def returning(events: Iterable[Event]) -> Iterator[Logged]:
    """Every statement whose RETURNING handed rows out, those of what was undone too."""
    for event in events:
        if isinstance(event, Logged) and event.returned is not None:
            yield event
        elif isinstance(event, Undone):
            yield from returning(event.events)


def holds_for(entry: Logged, now: Table | None) -> bool:
    """Whether its rows are right for what its table is now: the same columns, of which none demands more, or would be filled otherwise."""
    table, given = entry.table, _given(entry)
    if table is None or now is None or table.table_id != now.table_id:
        return table is now
    pairs = list(zip(table.visible, now.visible, strict=False))
    same = all(a.field_id == b.field_id and (b.nullable or not a.nullable) for a, b in pairs)
    filled = all(a.default == b.default or given is None or fold(a.name) in given for a, b in pairs)
    return same and filled and len(table.visible) == len(now.visible)


def _given(entry: Logged) -> frozenset[str] | None:
    """The names, folded, of the columns that a statement gave values to, as far as it is known; None: all of them."""
    if entry.given is not None:
        return entry.given
    match entry.operation:
        case st.Insert() as insert if insert.by_name or insert.source is None or "default" in mentions(entry.call.text):
            return frozenset()
        case st.Insert() | st.CopyFrom() as statement if statement.columns is not None:
            return frozenset(map(fold, statement.columns))
    return None


def undone(events: Sequence[Event], *, whole: bool) -> list[Event]:
    """What is left on record of events that were taken back: all of it if rows were handed out that it had written (by RETURNING, too), else
    what was handed out.

    `whole`: all of it in any case.
    """
    if not any(isinstance(event, Logged) for event in events):
        return list(events)
    found = list(looks(events))
    is_needed = whole or any(one.saw_own for one in found) or any(returning(events))
    return [Undone(tuple(events))] if is_needed else [*found]


def constants(events: Iterable[Event]) -> Iterator[Staged]:
    """The fragments that running again uses as they are."""
    for event in events:
        if isinstance(event, Logged):
            yield from event.constant
        elif isinstance(event, Undone):
            yield from constants(event.events)
