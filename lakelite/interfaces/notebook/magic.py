"""`%lake` and `%%lake`: opens a lake in a shell of IPython's, runs its SQL, and shows what that gave."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from IPython.core.magic import needs_local_scope, no_var_expand
from IPython.display import display

from lakelite.errors import InterfaceError, ProgrammingError
from lakelite.interfaces.notebook.commands import Output
from lakelite.interfaces.notebook.html import counted
from lakelite.interfaces.notebook.lake import Lake
from lakelite.interfaces.notebook.line import drawing
from lakelite.interfaces.notebook.options import TEMPORARY, USAGE, Line, read_cell, read_line, version_of
from lakelite.interfaces.notebook.result import Result
from lakelite.interfaces.notebook.variables import path_in
from lakelite.language.tokens import shown_name

NAME = "lake"
_NO_LAKE = "no lake is open"
_HOW_TO_OPEN = "%lake PATH opens one, %lake :memory: a temporary one"


class Notebook:
    """What the magics of one shell share: the lake that is open, or None."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.lake: Lake | None = None

    @no_var_expand
    @needs_local_scope
    def magic(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Lake | Output | None:
        """Opens a lake and runs SQL; %lake --help says how."""
        asked = read_line(line) if cell is None else read_cell(line, cell)
        if "help" in asked.given:
            print(USAGE)
            return None
        names = ChainMap(dict(local_ns or {}), self.shell.user_ns)
        if asked.path is not None:
            return self._open(asked, path_in(asked.path, names))
        lake = self._opened()
        return _moved(lake, asked) if asked.sql is None else self._run(lake, asked, names)

    def close(self) -> None:
        """Closes the lake that is open, and takes its name out of the shell."""
        lake, self.lake = self.lake, None
        if lake is not None:
            if self.shell.user_ns.get(NAME) is lake:
                del self.shell.user_ns[NAME]
            lake.close()

    def _opened(self) -> Lake:
        if self.lake is None:
            raise InterfaceError(_NO_LAKE, hint=_HOW_TO_OPEN)
        return self.lake

    def _open(self, asked: Line, path: str) -> Lake:
        """Another lake takes the place of the one that is open, once it could be opened."""
        if self.lake is not None and self.lake.connection.in_transaction:
            raise ProgrammingError(f"a transaction is open in {self.lake.path}", hint="%lake COMMIT keeps it, %lake ROLLBACK does not")
        opened = _connected(asked, path, self.shell)
        self.close()
        self.lake = opened
        if isinstance(self.shell.user_ns.get(NAME, opened), Lake):
            self.shell.user_ns[NAME] = opened
        else:
            print(f"note: your variable {NAME} stays what it is: name = %lake {asked.path} gives the lake another name")
        return opened

    def _run(self, lake: Lake, asked: Line, names: Mapping[str, Any]) -> Output | None:
        """Shows what each statement gave, at once; what the last one gave is the value of the cell, or goes where --out says."""
        last: Output | None = None
        if "out" in asked.given:
            lake.check_gives_rows(asked.sql or "", names)
        left, steps = lake.steps(asked.sql or "", names)
        try:
            with _at(lake, asked.given.get("at")):
                for outputs in steps:
                    left -= 1
                    last = outputs.pop() if outputs and not left else None
                    for one in outputs:
                        display(one)
        except BaseException:
            if last is not None:  # a command that gave something, and failed then
                display(last)
            raise
        name = asked.given.get("out")
        if name is None or last is None:
            return last
        if not isinstance(last, Result):
            raise InterfaceError("what the cell gave last is text, and no result", hint="--out is for cells that end with a query")
        self._keep(name, last, asked)
        return None

    def _keep(self, name: str, last: Result, asked: Line) -> None:
        made, what = {"df": (last.df, "pandas DataFrame"), "pl": (last.pl, "Polars DataFrame"), "arrow": (last.to_arrow, "pyarrow Table")}[asked.kind]
        self.shell.user_ns[name] = made()
        print(f"{name} is a {what}: {counted(len(last.columns or ()), 'column')}, {last.outcome}")


def _connected(asked: Line, path: str, shell: Any) -> Lake:
    from lakelite.interfaces.dbapi import connect
    from lakelite.model import DEFAULT_LEVEL

    given = asked.given
    read_only = "read-only" in given
    connection = connect(
        path,
        autocommit=True,
        read_only=read_only,
        create=not (read_only or "no-create" in given) or path == TEMPORARY,
        branch=given.get("branch", "main"),
        author=given.get("author"),
        isolation=given.get("isolation", DEFAULT_LEVEL),
    )
    try:
        if "at" in given:
            connection.pinned_version = version_of(given["at"])
        return Lake(connection, path, drawing(shell))
    except BaseException:
        connection.close()
        raise


def _moved(lake: Lake, asked: Line) -> Lake:
    """The same lake, on the branch and at the version that are asked for."""
    if "at" in asked.given:
        lake.connection.pinned_version = version_of(asked.given["at"])
    if "branch" in asked.given:
        lake.sql(f"USE BRANCH {shown_name(asked.given['branch'])}")
    return lake


@contextmanager
def _at(lake: Lake, version: str | None) -> Iterator[None]:
    """Within the block the lake is read at a version; None: as it is."""
    if version is None:
        yield
        return
    connection, before = lake.connection, lake.connection.pinned_version
    connection.pinned_version = version_of(version)
    try:
        yield
    finally:
        connection.pinned_version = before
