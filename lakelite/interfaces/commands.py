"""The dot commands, wherever statements come from: the prompt, a pipe, a file, an argument.

Owns which there are, what they do, and how they are told from SQL: a command is a line that begins with a dot (or a
backslash) where a statement could begin. Never looks into a statement but to see where it ends.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelite.errors import ProgrammingError
from lakelite.interfaces.render import MODES
from lakelite.mapping.system_errors import file_error

if TYPE_CHECKING:
    from lakelite.interfaces.runner import Cursor, Runner

HELP = """\
Statements end with a semicolon and may span lines. Ctrl-C cancels, Ctrl-D leaves.
  .help         this text
  .mode [MODE]  how results are printed: {modes}
  .read FILE    run the statements of a file
  .tables       the tables of the lake
  .quit, .exit  leave"""
_LINE = re.compile(r"^[ \t]*[.\\].*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """`sql`: the text with blanks for the commands, so that places in it stay what they are.

    `commands`: in order, how many statements stand before each, and the line.
    """

    sql: str
    commands: tuple[tuple[int, str], ...] = ()


def separated(text: str) -> Script:
    """The statements and the dot commands of a script."""
    from lakelite.language.tokens import is_complete, split_script

    parts: list[str] = []
    commands: list[tuple[int, str]] = []
    start = count = 0
    for line in _LINE.finditer(text):
        before = text[start : line.start()]
        if not _may_end(before):
            continue
        pieces = sum(1 for _ in split_script(before))
        if pieces and not is_complete(before):
            continue
        count += pieces
        commands.append((count, line[0].strip()))
        parts += before, " " * len(line[0])
        start = line.end()
    return Script("".join(parts) + text[start:], tuple(commands))


def _may_end(text: str) -> bool:
    """Whether a statement may end with this text. A quick look at its last line, so that the text is not lexed for every line with a dot."""
    last = text.rstrip().rpartition("\n")[2].strip()
    return not last or ";" in last or last.startswith("--") or last.endswith("*/")


def obey(line: str, runner: Runner) -> int:
    """Does what a command says; returns the exit code of what it ran. Raises an error of lakelite's."""
    name, _, argument = line.partition(" ")
    command = _COMMANDS.get(name.rstrip(";"))
    if command is None:
        raise ProgrammingError(f"there is no command {name}", hint=".help lists them")
    return command(runner, argument.strip().removesuffix(";").rstrip())


def is_quit(line: str) -> bool:
    """Whether a line is the command to leave."""
    return _COMMANDS.get(line.strip().rstrip(";")) is _quit


def _help(runner: Runner, argument: str) -> int:
    runner.note(HELP.format(modes=", ".join(MODES)))
    return 0


def _mode(runner: Runner, mode: str) -> int:
    if mode in MODES:
        runner.mode = mode
    elif mode:
        raise ProgrammingError(f"there is no mode {mode}", hint=f"the modes are: {', '.join(MODES)}")
    else:
        runner.note(runner.mode)
    return 0


def _quit(runner: Runner, argument: str) -> int:
    runner.has_left = True
    return 0


def _tables(runner: Runner, argument: str) -> int:
    return runner.go_through(map(_Qualified, runner.connection.statements("SHOW ALL TABLES")))


def _read(runner: Runner, argument: str) -> int:
    try:
        names = shlex.split(argument)
    except ValueError as error:
        raise ProgrammingError(f".read {argument}: {error}") from error
    if len(names) != 1:
        raise ProgrammingError(".read takes one file name, in quotes if it holds spaces")
    try:
        script = Path(names[0]).expanduser().read_text("utf-8-sig")
    except OSError as error:
        raise file_error(error.errno, error.strerror or str(error), f"read {names[0]}") from error
    except UnicodeError as error:
        raise ProgrammingError(f"{names[0]} is not UTF-8 text") from error
    except RuntimeError as error:  # the home of a user that is not there
        raise ProgrammingError(f"{names[0]}: {error}") from error
    return runner.run(script, file=names[0])


_COMMANDS: dict[str, Callable[[Runner, str], int]] = {
    ".help": _help, ".mode": _mode, ".read": _read, ".tables": _tables, ".quit": _quit, ".exit": _quit, "\\q": _quit,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Qualified:
    """SHOW ALL TABLES as one column: the names as they are written in SQL, those of `main` bare."""

    cursor: Cursor

    @property
    def description(self) -> Sequence[Sequence[Any]]:
        return [("name", "VARCHAR")]

    @property
    def rowcount(self) -> int:
        return self.cursor.rowcount

    @property
    def messages(self) -> Sequence[tuple[type[Exception], Any]]:
        return self.cursor.messages

    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]:
        from lakelite.language.tokens import shown_name
        from lakelite.model import MAIN_SCHEMA

        rows = self.cursor.fetchmany(size)
        return [(".".join(map(shown_name, (schema, name)[schema == MAIN_SCHEMA :])),) for _, schema, name, *_ in rows]
