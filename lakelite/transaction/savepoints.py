"""Savepoints: the nouns, and how one is found by its name. Values only; `Transaction` keeps them and goes back to them.

A name may be used again: the newest savepoint of a name is the one that is meant, until it is released. The beginning of a
`transaction()` block is one too, which no statement names: it lasts as long as the block.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelite.errors import Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.names import did_you_mean
from lakelite.model import fold
from lakelite.records import dataclass
from lakelite.storage.temporary import Temporaries
from lakelite.transaction.changes import Work
from lakelite.transaction.execution import Call


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a transaction stood: its state, how many events of its record and written fragments there were, and the temporary tables."""

    work: Work
    events: int
    written: int
    temporaries: Temporaries


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A mark with a name. `block`: of what block it is the beginning; None: SQL made it."""

    name: str
    mark: Mark
    block: object | None = None


def newest(savepoints: Sequence[Savepoint], operation: st.Release | st.RollbackTo, call: Call) -> int:
    """The index of the savepoint that the statement means; ProgrammingError with near names if there is none."""
    named = [(index, s.name) for index, s in enumerate(savepoints) if s.block is None]
    found = [index for index, name in named if fold(name) == fold(operation.name)]
    if found:
        return found[-1]
    otherwise = f"the newest one is {named[-1][1]}" if named else "SAVEPOINT name makes one"
    hint = did_you_mean(operation.name, [name for _, name in named], otherwise)
    raise ProgrammingError(f'savepoint "{operation.name}" does not exist', hint=hint, position=Position.at(call.text, operation.offset))


def of_blocks(savepoints: Sequence[Savepoint]) -> list[Savepoint]:
    """Those that last, whatever statements do: the beginnings of blocks."""
    return [s for s in savepoints if s.block is not None]
