"""Savepoints: the nouns, and how one is found by its name. Values only; `Transaction` keeps them and goes back to them.

A name may be used again: the newest savepoint of a name is the one that is meant, until it is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelite.errors import Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.names import did_you_mean
from lakelite.model import fold
from lakelite.transaction.changes import Work
from lakelite.transaction.execution import Call


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a transaction stood: its state, and how many events of its record and written fragments there were."""

    work: Work
    events: int
    written: int


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A mark with a name. `message`: the commit message as it was then."""

    name: str
    mark: Mark
    message: str | None


def newest(savepoints: Sequence[Savepoint], operation: st.Release | st.RollbackTo, call: Call) -> int:
    """The index of the savepoint that the statement means; ProgrammingError with near names if there is none."""
    wanted = fold(operation.name)
    for index in range(len(savepoints) - 1, -1, -1):
        if fold(savepoints[index].name) == wanted:
            return index
    otherwise = f"the newest one is {savepoints[-1].name}" if savepoints else "SAVEPOINT name makes one"
    hint = did_you_mean(operation.name, [s.name for s in savepoints], otherwise)
    raise ProgrammingError(f'savepoint "{operation.name}" does not exist', hint=hint, position=Position.at(call.text, operation.offset))
