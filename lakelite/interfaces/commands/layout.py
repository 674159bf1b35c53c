"""Commands for how results look and where they go: .mode .output .once .all .pager .timer, \\x \\timing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelite.errors import ProgrammingError
from lakelite.interfaces.commands.command import Command, path_of, switch_of, table_of, words
from lakelite.interfaces.delivery import BY_ENDING, EXCEL, PARQUET, pager_for
from lakelite.interfaces.render import MODES
from lakelite.mapping.names import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from lakelite.interfaces.runner import Runner


def _mode(runner: Runner, argument: str) -> int:
    mode, _, table = argument.partition(" ")
    if not mode:
        runner.note(runner.display.mode)
        return 0
    if mode not in MODES:
        raise ProgrammingError(f"there is no mode {mode}", hint=did_you_mean(mode, MODES, f"the modes are: {', '.join(MODES)}"))
    if table and mode != "insert":
        raise ProgrammingError(f"mode {mode} takes no table", hint=".mode insert TABLE names the one that the statements fill")
    runner.display.table = table_of(".mode insert", table.strip()) if table else "t"
    runner.display.mode = mode
    return 0


def _expanded(runner: Runner, argument: str) -> int:
    runner.display.mode = "line" if switch_of("\\x", argument, runner.display.mode == "line") else "box"
    return 0


def _output(runner: Runner, argument: str) -> int:
    names = words(".output", argument, 0, 1, "one file name, in quotes if it holds spaces")
    if names:
        path = path_of(names[0])
        runner.display.to_file(path)
        _tell_format(runner, path)
    else:
        runner.display.to_out()
    return 0


def _once(runner: Runner, argument: str) -> int:
    (name,) = words(".once", argument, 1, 1, "one file name, in quotes if it holds spaces")
    path = runner.display.once = path_of(name)
    _tell_format(runner, path)
    return 0


def _tell_format(runner: Runner, path: Path) -> None:
    """Says which format a file gets whose ending names none; one without an ending, or with .txt, is for whatever is on."""
    if path.suffix and path.suffix.lower() not in (*BY_ENDING, PARQUET, EXCEL, ".txt"):
        endings = ", ".join((*BY_ENDING, PARQUET, EXCEL))
        runner.note(f'{path.name} will be of mode {runner.display.mode}: "{path.suffix}" names no format (there are {endings})')


def _all(runner: Runner, argument: str) -> int:
    """A query is run again rather than kept: a result may be larger than memory."""
    script = argument or runner.shown
    if not script:
        raise ProgrammingError(".all shows the result of the last query whole: there was none yet", hint=".all SELECT … takes a query too")
    if not (only_looks(argument) if argument else runner.shows_again):
        raise ProgrammingError(".all runs a query again, and the last statement was none", hint=".all SELECT … takes a query too")
    display = runner.display
    display.whole = True
    try:
        return runner.run(script)
    finally:
        display.whole = False


def only_looks(script: str) -> bool:
    """Whether statements may run a second time: queries, and what shows and describes. Raises an error of lakelite's for what is no statement."""
    from lakelite.language.parse import iter_statements
    from lakelite.language.statements import LOOKS

    return all(isinstance(one.operation, LOOKS) for one in iter_statements(script))


def _pager(runner: Runner, argument: str) -> int:
    runner.display.pager = switch_of(".pager", argument, runner.display.pager)
    runner.note(f"pager {'on' if runner.display.pager else 'off'}")
    if runner.display.pager and runner.display.out.isatty() and pager_for(runner.display.out) is None:
        runner.note("note: it cannot be used here: $PAGER, or less, is no program that is there, or the terminal is dumb")
    return 0


def _timer(runner: Runner, argument: str) -> int:
    runner.timer = switch_of(".timer", argument, runner.timer)
    runner.note(f"timer {'on' if runner.timer else 'off'}")
    return 0


_ON_OFF = (("on", "off"),)
COMMANDS = (
    Command((".mode",), "[MODE] [TABLE]", f"how results are printed: {', '.join(MODES)}", _mode, (tuple(MODES), ("table",))),
    Command(("\\x",), "[on|off]", "mode line, and back to box", _expanded, _ON_OFF),
    Command(
        (".output",),
        "[FILE]",
        "results go to a file, in the format of its ending; without FILE to the screen again",
        _output,
        (("file",),),
        leaves_lake=True,
    ),
    Command(
        (".once",),
        "FILE",
        "the next result goes to a file: .parquet .xlsx .csv .tsv .json .jsonl .md .html .sql .tex",
        _once,
        (("file",),),
        leaves_lake=True,
    ),
    Command((".all",), "[SQL]", "the result of a query, or of the last one again, with nothing left out", _all),
    Command((".pager",), "[on|off]", "results go through $PAGER, or less, with nothing left out", _pager, _ON_OFF, leaves_lake=True),
    Command((".timer", "\\timing"), "[on|off]", "how long each statement took", _timer, _ON_OFF),
)
