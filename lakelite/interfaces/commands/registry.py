"""Which commands there are: one list, by which they are run, explained and completed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelite.errors import NotSupportedError, ProgrammingError
from lakelite.interfaces.commands import layout, look, past, work
from lakelite.interfaces.commands.command import Command
from lakelite.mapping.names import did_you_mean

if TYPE_CHECKING:
    from lakelite.interfaces.runner import Runner

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


def _found(name: str) -> Command:
    command = _BY_NAME.get(name)
    if command is None:
        raise ProgrammingError(f"there is no command {name}", hint=did_you_mean(name, _BY_NAME, ".help lists them"))
    return command


def _help(runner: Runner, argument: str) -> int:
    if argument:
        name = argument if argument[:1] in ".\\" else f".{argument}"
        command = _found(name)
        same = f" (also {', '.join(command.names[1:])})" if command.names[1:] else ""
        runner.note(f"{command.title}{same}\n  {command.about}")
        return 0
    lines = [f"  {command.title:<24} {command.about}" for command in COMMANDS]
    runner.note("\n".join([_HEAD, *lines]))
    return 0


def _quit(runner: Runner, argument: str) -> int:
    runner.has_left = True
    return 0


_QUIT = Command((".quit", ".exit", "\\q"), "", "leave", _quit)
COMMANDS = (
    Command((".help", "\\?"), "[COMMAND]", "this list, or what one of them does", _help, (("command",),)),
    *look.COMMANDS,
    *past.COMMANDS,
    *layout.COMMANDS,
    *work.COMMANDS,
    _QUIT,
)
_BY_NAME = {name: command for command in COMMANDS for name in command.names}
