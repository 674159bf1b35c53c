"""The dot commands in a notebook: those that look at the lake and its past, `.help`, `.read` and `.import`. What they give is shown as results are.

The others are about a prompt or a screen, and are refused by name.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakelite.errors import NotSupportedError
from lakelite.interfaces.commands import command_candidates, look, obey, past
from lakelite.interfaces.commands.command import Held
from lakelite.interfaces.delivery import Display
from lakelite.interfaces.notebook.html import counted
from lakelite.interfaces.notebook.kept import kept, of_rows
from lakelite.interfaces.notebook.result import Outcome, Result, Said
from lakelite.interfaces.render import Rows
from lakelite.interfaces.runner import INTERRUPTED, Runner

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import Connection

Output = Result | Said
_HERE = frozenset((".help", ".read", ".import", *(name for command in (*look.COMMANDS, *past.COMMANDS) for name in command.names)))


class Commands:
    """The dot commands on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def obey(self, line: str) -> Iterator[list[Output]]:
        """What a command gives; before it raises an error of lakelite's, or KeyboardInterrupt, what it gave until then."""
        name = line.partition(" ")[0].rstrip(";")
        if name not in _HERE and name in dict(command_candidates()):
            raise NotSupportedError(f"{name} is not there in a notebook", hint=f"there are: {', '.join(sorted(_HERE))}")
        gathered = _Gathered()
        try:
            if obey(line, _Obedient(self._connection, gathered)) == INTERRUPTED:
                raise KeyboardInterrupt
        finally:
            yield gathered.end()


class _Gathered(Display):
    """Keeps results and text instead of showing them. (A pager is said to be there, so that no number of Ctrl-C ends the process.)"""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), is_paging=True)
        self._found: list[Output] = []
        self._lines: list[str] = []
        self._begin = time.perf_counter()

    def show(self, rows: Rows, source: object) -> int:
        if rows.description is None:
            return 0
        self._close_text()
        found = of_rows(tuple(source.columns), source.left) if isinstance(source, Held) else kept(source)  # type: ignore[arg-type]
        self._found.append(Result(Outcome(counted(found.count, "row"), None, (), (), time.perf_counter() - self._begin), found))
        return found.count

    def text(self, text: str) -> None:
        self._lines.append(text)

    def insert_into(self, table: str, rows: Rows) -> None:
        out = io.StringIO()
        Display(out).insert_into(table, rows)
        self._lines.append(out.getvalue().rstrip("\n"))

    def end(self) -> list[Output]:
        """All that came, in order."""
        self._close_text()
        return self._found

    def _close_text(self) -> None:
        if self._lines:
            self._found.append(Said("\n".join(self._lines)))
            self._lines = []


class _Obedient(Runner):
    """Runs what commands ask for; its errors are raised instead of being said."""

    def __init__(self, connection: Connection, display: Display) -> None:
        super().__init__(connection, display.out, display.out)
        self.display = display

    def report(self, error: Exception, file: str | None = None) -> int:
        raise error

    def note(self, text: str) -> None:
        self.display.text(text)
