"""Which commands there are: one list, by which they are run, explained and completed."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

from lakelite.errors import NotSupportedError, ProgrammingError
from lakelite.interfaces.commands import layout, look, past, work
from lakelite.interfaces.commands.command import Command
from lakelite.interfaces.commands.script import separated
from lakelite.mapping.names import did_you_mean
from lakelite.resources import folder

if TYPE_CHECKING:
    from lakelite.interfaces.runner import Runner

_HELP_COLUMNS = 100
_TITLE_CELLS = 24
_WIDE = 70
_HEAD = """\
Statements end with a semicolon and may span lines: Enter runs what is whole, Alt-Enter begins a line.
Tab completes, Ctrl-R searches the history, Ctrl-C cancels, Ctrl-D leaves."""


def obey(line: str, runner: Runner) -> int:
    """Does what a command says; returns the exit code of what it ran. Raises an error of lakelite's."""
    name, _, argument = line.partition(" ")
    command = _found(name.rstrip(";"))
    if command.leaves_lake and runner.display.is_confined:
        raise NotSupportedError(f"{name} is not there in safe mode", hint="it would use files outside of the lake")
    return command.run(runner, argument.strip().removesuffix(";").rstrip())


def is_quit(line: str) -> bool:
    """Whether a line is the command to leave."""
    return _BY_NAME.get(line.strip().rstrip(";")) is _QUIT


def command_candidates() -> list[tuple[str, str]]:
    """Each command, and what it does."""
    return [(name, command.about) for name, command in _BY_NAME.items()]


def argument_kinds(name: str, index: int) -> tuple[str, ...]:
    """What the argument of a command can be, by its number; none for a command that is none."""
    command = _BY_NAME.get(name)
    return command.kinds[index] if command is not None and index < len(command.kinds) else ()


def help_candidates() -> list[tuple[str, str]]:
    """What `.help` can explain: commands, and the names in the guide."""
    from lakelite.interfaces.topics import topics

    return [*command_candidates(), *((name, topic.kind) for topic in topics() for name in topic.names)]


def shows_again(entry: str) -> bool:
    """Whether what was typed only looks, so that `.all` may run it again."""
    found = separated(entry)
    commands = [_BY_NAME.get(line.partition(" ")[0].rstrip(";")) for _, line in found.commands]
    return all(command is not None and command.shows for command in commands) and layout.only_looks(found.sql)


def _found(name: str) -> Command:
    command = _BY_NAME.get(name)
    if command is None:
        raise ProgrammingError(f"there is no command {name}", hint=did_you_mean(name, _BY_NAME, ".help lists them"))
    return command


def _help(runner: Runner, argument: str) -> int:
    columns = min(_HELP_COLUMNS, shutil.get_terminal_size().columns)
    runner.note("\n\n".join(_explained(argument, columns)) if argument else "\n".join(_listed(columns)))
    return 0


def _explained(name: str, columns: int) -> list[str]:
    """What there is on a name: a command, and what the guide says. ProgrammingError: nothing."""
    from lakelite.interfaces.topics import find

    if name[0] in ".\\":
        return [_found(name).explanation]
    command = _BY_NAME.get(f".{name.lower()}")
    found, more = find(name)
    parts = [*([command.explanation] if command else []), *(topic.shown(columns) for topic in found)]
    if not parts and not more:
        raise ProgrammingError(
            f"there is no help on {name}", hint=did_you_mean(name, [one for one, _ in help_candidates()], ".help lists what there is")
        )
    return [*parts, textwrap.fill(f"See also: {', '.join(more)}", columns)] if more else parts


def _listed(columns: int) -> list[str]:
    from lakelite.interfaces.topics import STATEMENT, topics

    indent = _TITLE_CELLS + 3 if columns >= _WIDE else 6
    lines = [
        textwrap.fill(f"  {c.title:<{_TITLE_CELLS}} {c.about}", columns, subsequent_indent=" " * indent, break_on_hyphens=False) for c in COMMANDS
    ]
    statements = ", ".join(topic.title for topic in topics() if topic.kind == STATEMENT)
    behind = ".help and a name explains a command, a statement, a setting, a view of schema lake, or an error. Statements:"
    guide = f"  The whole guide is in {folder('docs')}; index.md is its first page."
    filled = (textwrap.fill(text, columns, initial_indent="  ", subsequent_indent="  ") for text in (behind, statements))
    return [_HEAD, *lines, "", *filled, guide]


def _quit(runner: Runner, argument: str) -> int:
    runner.has_left = True
    return 0


_QUIT = Command((".quit", ".exit", "\\q"), "", "leave", _quit)
COMMANDS = (
    Command((".help", "\\?", "\\h"), "[NAME]", "this list, or what a command, statement, setting, view or error is", _help, (("help",),)),
    *look.COMMANDS,
    *past.COMMANDS,
    *layout.COMMANDS,
    *work.COMMANDS,
    _QUIT,
)
_BY_NAME = {name: command for command in COMMANDS for name in command.names}
