"""What a command is, and what several of them do with their arguments. Knows no command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lakelite.errors import ProgrammingError
from lakelite.records import dataclass

if TYPE_CHECKING:
    from lakelite.interfaces.render import Row
    from lakelite.interfaces.runner import Connection, Runner


@dataclass(frozen=True, slots=True)
class Command:
    """`names`: the first is its own, the others mean the same. `usage`: its arguments, [in brackets] where they may be left out.

    `run(runner, argument)` returns the exit code of what it ran and raises an error of lakelite's. `kinds`: what each argument can
    be, for completion: "file", "table", "version", "help", or the words themselves. `leaves_lake`: it uses files or programs that
    are none of the lake's. `shows`: it gives a result, and no more, so that it can be asked for again.
    """

    names: tuple[str, ...]
    usage: str
    about: str
    run: Callable[[Runner, str], int]
    kinds: tuple[tuple[str, ...], ...] = ()
    leaves_lake: bool = False
    shows: bool = False

    @property
    def title(self) -> str:
        return f"{self.names[0]} {self.usage}".rstrip()

    @property
    def explanation(self) -> str:
        same = f" (also {', '.join(self.names[1:])})" if self.names[1:] else ""
        return f"{self.title}{same}\n  {self.about}"


@dataclass(slots=True)
class Held:
    """A result whose rows are there already, as a cursor has one. `columns`: name and type of each."""

    columns: Sequence[tuple[str, str]]
    left: list[Sequence[Any]]
    rowcount: int = -1

    @property
    def description(self) -> Sequence[Sequence[Any]]:
        return self.columns

    @property
    def messages(self) -> Sequence[tuple[type[Exception], Any]]:
        return ()

    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]:
        batch, self.left = self.left[:size], self.left[size:]
        return batch


def words(command: str, argument: str, least: int, most: int, usage: str) -> list[str]:
    """The arguments, quoted where they hold spaces. ProgrammingError: they are too few or too many."""
    try:
        found = shlex.split(argument)
    except ValueError as error:
        raise ProgrammingError(f"{command} {argument}: {error}", hint="close each quote; a quote within a name stands after a backslash") from error
    if not least <= len(found) <= most:
        raise ProgrammingError(f"{command} takes {usage}", hint=f".help {command}")
    return found


def path_of(name: str) -> Path:
    """A file as a person names it. ProgrammingError: the home of a user that is not there."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise ProgrammingError(f"{name}: {error}", hint="write the whole path") from error


def table_of(command: str, argument: str) -> str:
    """The name of a table, as it is written in SQL. ProgrammingError: it is none, or more than one."""
    from lakelite.language.tokens import lex

    tokens = lex(argument)
    names, dots = tokens[::2], tokens[1::2]
    if not argument or len(tokens) % 2 == 0 or not all(t.kind in ("word", "quoted") for t in names) or not all(t.word == "." for t in dots):
        raise ProgrammingError(f"{command} takes the name of a table, not {argument or 'nothing'}", hint="in double quotes where it needs them")
    return argument


def number_of(command: str, argument: str) -> int:
    """A whole number, 0 or more. ProgrammingError: it is none."""
    if not (argument.isascii() and argument.isdecimal() and len(argument) < 20):
        raise ProgrammingError(f"{command} takes a whole number, not {argument or 'nothing'}", hint=f".help {command}")
    return int(argument)


def switch_of(command: str, argument: str, now: bool) -> bool:
    """What `on`, `off` or nothing, which turns it over, makes of a switch."""
    if argument.lower() not in ("on", "off", ""):
        raise ProgrammingError(f"{command} is on or off, not {argument}", hint=f".help {command}")
    return not now if not argument else argument.lower() == "on"


class Asking(Protocol):
    """What the lake can be asked with: a connection, and the rows of small results."""

    @property
    def connection(self) -> Connection: ...

    def rows(self, script: str, /) -> list[Row]: ...


@contextmanager
def steady(runner: Asking) -> Iterator[None]:
    """All that is asked within the block is asked of one version."""
    connection = runner.connection
    own = not connection.in_transaction and getattr(connection, "pinned_version", None) is None
    if own:
        runner.rows("BEGIN READ ONLY")
    try:
        yield
    finally:
        if own:
            runner.rows("ROLLBACK")


@contextmanager
def at_version(lake: Asking, version: int) -> Iterator[None]:
    """All that is asked within the block is asked of that version; in a transaction, of what that reads. ProgrammingError: there is no such one."""
    connection: Any = lake.connection
    if connection.in_transaction:
        yield
        return
    before, connection.pinned_version = connection.pinned_version, version
    try:
        yield
    finally:
        connection.pinned_version = before


def tables(runner: Runner) -> list[tuple[str, str, Sequence[str]]]:
    """Schema, name and columns of each table and view."""
    return [(row[1], row[2], row[3]) for row in runner.rows("SHOW ALL TABLES")]


def written(schema: str, name: str) -> str:
    """A name as it is written in SQL, bare where it is of `main`."""
    from lakelite.language.tokens import shown_name
    from lakelite.model import MAIN_SCHEMA

    return ".".join(map(shown_name, (schema, name)[schema == MAIN_SCHEMA :]))
