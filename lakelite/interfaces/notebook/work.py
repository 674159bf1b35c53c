"""Running SQL from a notebook: statements one by one, each on a thread of its own, so that the stop button is heard.

Promises: an interrupt cancels the statement and nothing else, and the third one in a row does not end the kernel; a DataFrame or a
parameter is looked up in the names that the caller gives. Never shows a result.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from lakelite.errors import InterfaceError, ProgrammingError
from lakelite.interfaces.commands import Script, separated
from lakelite.interfaces.commands.command import Held
from lakelite.interfaces.notebook.commands import Commands, Output
from lakelite.interfaces.notebook.html import counted
from lakelite.interfaces.notebook.kept import kept, of_rows
from lakelite.interfaces.notebook.line import ProgressLine
from lakelite.interfaces.notebook.result import Outcome, Result
from lakelite.interfaces.notebook.variables import explain_missing, parameters_in
from lakelite.interfaces.render import Row
from lakelite.interfaces.runner import supervised, what_it_did
from lakelite.interfaces.scope import Given
from lakelite.language.parse import last_operation
from lakelite.language.statements import may_give_rows
from lakelite.language.tokens import split_script
from lakelite.records import dataclass

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import Connection, Cursor
    from lakelite.parameters import Parameters

_Done = TypeVar("_Done")


class Interrupted(KeyboardInterrupt):
    """The stop button: the statement was cancelled and undone, and the session goes on."""

    def __str__(self) -> str:
        return "the statement was undone, and the session goes on"


@dataclass(frozen=True, slots=True)
class Work:
    """A connection, and the line that shows how far it is."""

    connection: Connection
    line: ProgressLine

    def results(self, script: str, names: Mapping[str, Any], parameters: Parameters = None) -> Iterator[Result]:
        """What each statement gave; each runs when it is asked for. `names`: the variables that SQL can use.

        `parameters`: values for the script, or None: those of the variables that it names. Raises an error of lakelite's, or Interrupted.
        """
        given = parameters_in(script, names) if parameters is None else parameters
        statements = self.connection.statements(script, given, Given(names))
        while True:
            try:
                result = self.supervise(lambda: self._next(statements))
            except ProgrammingError as error:
                if parameters is None:
                    explain_missing(error, script, names)
                raise
            if result is None:
                return
            yield result

    def steps(self, script: str, names: Mapping[str, Any]) -> tuple[int, Iterator[list[Output]]]:
        """How many statements and dot commands there are, and what each of them gives; each runs when it is asked for."""
        found = separated(script)
        return sum(1 for _ in split_script(found.sql)) + len(found.commands), self._steps(found, names)

    def check_gives_rows(self, script: str, names: Mapping[str, Any]) -> None:
        """InterfaceError: what stands last in a script gives no rows. (Of a dot command only running it can tell.) Nothing runs."""
        found = separated(script)
        if found.commands and found.commands[-1][0] == sum(1 for _ in split_script(found.sql)):
            return
        last = last_operation(found.sql, frozenset(parameters_in(found.sql, names)))
        if last is not None and not may_give_rows(last):
            hint = "nothing was run; RETURNING behind a change gives the rows that it wrote, or end with a query"
            raise InterfaceError("what stands last gives no rows for --out", hint=hint)

    def _steps(self, found: Script, names: Mapping[str, Any]) -> Iterator[list[Output]]:
        statements, left = self.results(found.sql, names), deque(found.commands)
        ran = 0
        while True:
            while left and left[0][0] == ran:
                yield from self._obeyed(left.popleft()[1])
            result = next(statements, None)
            if result is None:
                return
            ran += 1
            yield [result]

    def _obeyed(self, line: str) -> Iterator[list[Output]]:
        try:
            yield from Commands(self.connection).obey(line)
        except KeyboardInterrupt:
            raise Interrupted from None

    def rows(self, script: str) -> list[Row]:
        """The rows of a small result of ours."""
        return self.supervise(lambda: _fetched(self.connection.statements(script, None, Given({}))))

    def timed(self, work: Callable[[], Held]) -> Result:
        """What was worked out of several answers, as a result of its own."""
        begin = time.perf_counter()
        held = work()
        rows = of_rows(tuple(held.columns), held.left)
        return Result(Outcome(counted(rows.count, "row"), None, (), (), time.perf_counter() - begin), rows)

    def supervise(self, work: Callable[[], _Done]) -> _Done:
        """Does `work` on a thread while this one listens; Interrupted: it was asked to stop, and has."""
        done: list[_Done] = []

        def act() -> bool:
            done.append(work())
            return True

        self.line.begin()
        try:
            supervised(act, self.connection.interrupt, self.line.tick, lambda: True)
        except KeyboardInterrupt:
            raise Interrupted from None
        finally:
            self.line.end()
        return done[0]

    def _next(self, statements: Iterator[Cursor]) -> Result | None:
        begin, before = time.perf_counter(), self.connection.last_commit
        cursor = next(statements, None)
        if cursor is None:
            return None
        rows = None if cursor.description is None else kept(cursor)
        commit = self.connection.last_commit
        landed = None if commit is None or commit is before else commit
        carried = () if landed is None else tuple(dict.fromkeys(one.explanation for one in landed.resolutions))
        notes = tuple(str(text) for _, text in cursor.messages if text not in carried)
        done = what_it_did(cursor, -1 if rows is None else rows.count)
        return Result(Outcome(done, None if landed is None else landed.snapshot_id, carried, notes, time.perf_counter() - begin), rows)


def _fetched(statements: Iterator[Cursor]) -> list[Row]:
    return [row for cursor in statements if cursor.description is not None for row in cursor.fetchall()]
