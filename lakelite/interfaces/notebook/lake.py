"""The object `lake` of a notebook: an open lake, what SQL gives, what came between two versions, and pictures of its history and its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakelite.errors import Error, InterfaceError
from lakelite.interfaces import scope
from lakelite.interfaces.commands.command import table_of
from lakelite.interfaces.commands.past import rows_changed, tables_changed
from lakelite.interfaces.entry import MAIN
from lakelite.interfaces.notebook.html import counted
from lakelite.interfaces.notebook.line import Draw, ProgressLine
from lakelite.interfaces.notebook.options import TEMPORARY
from lakelite.interfaces.notebook.result import Result
from lakelite.interfaces.notebook.work import Work
from lakelite.interfaces.values import visible

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import Connection
    from lakelite.interfaces.notebook.commands import Output
    from lakelite.interfaces.notebook.svg import Picture
    from lakelite.parameters import Parameters

NO_NAMES: Mapping[str, Any] = {}
SHOWN_VERSIONS = 50
_HERE = "SELECT (SELECT count(*) FROM lake.tables), (SELECT count(*) FROM lake.views)"


class Lake:
    """An open lake. `connection`: the one that the cells use, as `lakelite.connect` gives it, in autocommit; `path`: as it was typed."""

    def __init__(self, connection: Connection, path: str, draw: Draw) -> None:
        self.connection = connection
        self.path = path
        line = ProgressLine(draw, connection.query_progress)
        connection.on_progress = line.rows
        connection.follow_progress()
        self._work = Work(connection, line)

    def sql(self, text: str, parameters: Parameters = None) -> Result:
        """Runs statements, and gives the result of the last one. `:name` is the value in `parameters`, or without them a variable of the caller."""
        with scope.of_caller() as variables:
            return self._one(text, variables.mapping, parameters)

    def _one(self, text: str, names: Mapping[str, Any] = NO_NAMES, parameters: Parameters = None) -> Result:
        """The result of the last statement."""
        found = list(self._work.results(text, names, parameters))
        if not found:
            raise InterfaceError("there is no statement in the text", hint="lake.sql('FROM t')")
        return found[-1]

    def steps(self, text: str, names: Mapping[str, Any]) -> tuple[int, Iterator[list[Output]]]:
        """How many statements and dot commands a cell has, and what each gives when it is asked for. `names`: the variables that SQL can use."""
        return self._work.steps(text, names)

    def check_gives_rows(self, text: str, names: Mapping[str, Any]) -> None:
        """InterfaceError: what stands last in a cell gives no rows. Nothing runs."""
        self._work.check_gives_rows(text, names)

    def diff(self, older: int, newer: int, table: str | None = None) -> Result:
        """What came between two versions: how many rows of each table, or the rows of one. `table`: as it is written in SQL."""
        for version in (older, newer):
            if not isinstance(version, int) or isinstance(version, bool) or version < 0:
                raise InterfaceError(f"a version is a whole number, 0 or more, not {version!r}", hint="lake.history_plot() shows them")
        if table is not None:
            return self._one(rows_changed(table_of("lake.diff", table), older, newer))
        return self._work.timed(lambda: tables_changed(self._work, older, newer))

    def history_plot(self, versions: int = SHOWN_VERSIONS) -> Picture:
        """The newest versions as a graph: branches, tags, who did what, and how it was carried past others. Tooltips have the statements."""
        from lakelite.interfaces.notebook.history import picture

        return picture(self._work, versions)

    def plot_table(self, table: str) -> Picture:
        """The fragments of a table: their rows, sizes, and how much of them is deleted. `table`: as it is written in SQL."""
        from lakelite.interfaces.notebook.fragments import picture

        return picture(self._work, table_of("lake.plot_table", table))

    def close(self) -> None:
        """Rolls back what is open, and closes the connection. Again: nothing happens."""
        self.connection.close()

    def __repr__(self) -> str:
        """Where one is: the lake, the branch, the version, what there is in it."""
        try:
            return self._described()
        except Error as error:
            return f"{self._place}: {error.message}"

    @property
    def _place(self) -> str:
        return "a temporary lake" if self.path == TEMPORARY else f"lake {visible(self.path)}"

    def _described(self) -> str:
        connection = self.connection
        ((tables, views),) = self._work.rows(_HERE)
        pinned = connection.pinned_version
        version = pinned if pinned is not None else self._work.rows("DESCRIBE HISTORY LIMIT 1")[0][0]
        branch = "" if connection.branch == MAIN else f", branch {connection.branch}"
        at = f"version {version}" + (" (pinned: nothing can be changed)" if pinned is not None else "")
        counts = counted(tables, "table") + (f", {counted(views, 'view')}" if views else "")
        return f"{self._place}{branch}: {at}, {counts}" + (", a transaction is open" if connection.in_transaction else "")
