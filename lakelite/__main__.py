"""The command `lakelite`: reads the arguments, opens the lake, hands over to the runner, the prompt or the demo.

Owns the arguments and the exit code. Imports late, so that a statement on the command line starts fast.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lakelite.model import DEFAULT_LEVEL, ISOLATION_LEVELS, level_of

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import Connection
    from lakelite.interfaces.runner import Runner

TEMPORARY = ":memory:"
EPILOG = """\
without -c and -f, statements are read from standard input, with a prompt on a terminal
`lakelite demo [DIR]` loads a lake with real flights and shows two transactions that meet
`lakelite -c ".help"` lists the commands and statements, `lakelite -c ".help update"` explains one of them, a setting, a view or an error

exit codes: 0 done, 1 a statement failed, or CHECK LAKE found errors, 2 usage, 3 the lake cannot be opened, 5 conflict, 130 interrupted
-c and -f stop at the first error; standard input goes on (but with --bail) and ends with the code of the first
json: an array per result with exact numbers; NaN and infinities are strings. csv: NULL is nothing, empty text is "\""""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code. Never raises, but SystemExit for usage, --help and --version."""
    arguments = sys.argv[1:] if arguments is None else arguments
    from lakelite.interfaces import runner

    try:
        _write_utf8()
        code = _demo(arguments[1:]) if arguments[:1] == ["demo"] else _command(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # What Python would still flush at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return runner.BROKEN_PIPE
    except KeyboardInterrupt:
        return runner.INTERRUPTED
    except Exception as error:
        return runner.report(error, sys.stderr)


def _write_utf8() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _parser() -> argparse.ArgumentParser:
    from lakelite import __version__
    from lakelite.interfaces.render import MODES

    parser = argparse.ArgumentParser(
        "lakelite",
        description="An embedded lakehouse: SQL on a directory of Parquet files.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("lake", nargs="?", metavar="LAKE", help="a directory; created if missing. Without it: a temporary lake")
    parser.add_argument(
        "-c", dest="work", action="append", metavar="SQL", type=_statements, help="run these statements (repeatable, in order with -f)"
    )
    parser.add_argument("-f", dest="work", action="append", metavar="FILE", type=_file, help="run the statements of this file; - is standard input")
    parser.add_argument("--mode", choices=tuple(MODES), default="box", help="how results are printed (default: box)")
    parser.add_argument("--json", dest="mode", action="store_const", const="json", help="the same as --mode json")
    parser.add_argument("--csv", dest="mode", action="store_const", const="csv", help="the same as --mode csv")
    parser.add_argument("--bail", action="store_true", help="standard input stops at the first error too")
    parser.add_argument("--no-init", action="store_true", help="do not run ~/.config/lakelite/rc, with which the prompt begins")
    parser.add_argument("--read-only", action="store_true", help="refuse every change")
    parser.add_argument("--no-create", action="store_true", help="refuse a lake that does not exist")
    parser.add_argument("--author", metavar="NAME", help="recorded with every snapshot; DESCRIBE HISTORY and conflicts show it")
    parser.add_argument(
        "--isolation",
        metavar="LEVEL",
        type=_level,
        default=DEFAULT_LEVEL,
        help=f"{', '.join(ISOLATION_LEVELS)} (default: {DEFAULT_LEVEL})",
    )
    parser.add_argument("--branch", metavar="NAME", default="main", help="work on this branch (default: main)")
    parser.add_argument(
        "--safe",
        action="store_true",
        help="no file outside of the lake is used, but for those of -f",
    )
    parser.add_argument("--private", action="store_true", help="a lake that is made can be entered by its owner only (mode 0700)")
    parser.add_argument("--version", action="version", version=f"lakelite {__version__}")
    return parser


class _Script(NamedTuple):
    """Statements to run: how to read them, and the file that they are from, or None."""

    read: Callable[[], str]
    file: str | None = None


def _statements(text: str) -> _Script:
    return _Script(lambda: text)


def _file(name: str) -> _Script:
    """A file is read at once, so that nothing runs when one of them is missing."""
    if name == "-":
        return _Script(_standard_input)
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
        return _Script(lambda: text, name)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"{name} is not UTF-8 text (byte {error.start})") from error


def _standard_input() -> str:
    from lakelite.errors import DataError

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig") if sys.stdin else ""
    except UnicodeDecodeError as error:
        raise DataError(f"standard input is not UTF-8 text (byte {error.start})", hint="convert it first, such as with iconv -t UTF-8") from error


def _level(text: str) -> str:
    level = level_of(text)
    if level is None:
        raise argparse.ArgumentTypeError(f"there is no isolation level {text!r}; there are: {', '.join(ISOLATION_LEVELS)}")
    return level


@contextmanager
def _loading() -> Iterator[None]:
    """Within the block nothing is looked through for garbage: what is loaded stays, and the search is a tenth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _command(arguments: Sequence[str]) -> int:
    with _loading():
        options = _options(arguments)
        runner = _runner(options)
    try:
        return _work(runner, options)
    finally:
        runner.display.to_out()
        runner.connection.close()


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.lake == "demo":
        parser.error("`lakelite demo [DIR]` is the demonstration and takes no options; a lake called demo is opened as ./demo")
    if options.lake == "":
        parser.error("the name of the lake is empty")
    options.is_prompt = options.work is None and sys.stdin is not None and sys.stdin.isatty()
    return options


def _runner(options: argparse.Namespace) -> Runner:
    """What runs statements on the lake, with all that it needs loaded; the editor of a prompt while DuckDB starts."""
    from lakelite.interfaces.progress import Meter
    from lakelite.interfaces.runner import Runner
    from lakelite.interfaces.shell import loading_editor

    with loading_editor(options.is_prompt):
        connection = _connection(options)
    try:
        runner = Runner(connection, sys.stdout, sys.stderr, options.mode)
        runner.display.is_confined = options.safe
        if sys.stderr.isatty():
            runner.meter = Meter(sys.stderr, connection.query_progress)
            connection.on_progress = runner.meter.rows
            connection.follow_progress()
    except BaseException:
        connection.close()
        raise
    return runner


def _connection(options: argparse.Namespace) -> Connection:
    import lakelite

    create = not (options.no_create or (options.read_only and options.lake))
    return lakelite.connect(
        options.lake or TEMPORARY,
        autocommit=True,
        isolation=options.isolation,
        read_only=options.read_only,
        create=create,
        author=options.author,
        branch=options.branch,
        preload=False,
        safe=options.safe,
        private=options.private,
    )


def _work(runner: Runner, options: argparse.Namespace) -> int:
    if options.is_prompt:
        return _prompt(runner, options.lake, init=not options.no_init and not options.safe)
    code = 0
    if options.work is None:
        code = runner.run(_standard_input(), keep_going=not options.bail)
    for script in options.work or ():
        code = runner.run(script.read(), file=script.file)
        if code or runner.has_left:
            break
    if runner.connection.in_transaction:
        runner.note("note: the transaction that was still open was rolled back")
    return code or runner.found


def _prompt(runner: Runner, lake: str | None, *, init: bool) -> int:
    from lakelite import __version__
    from lakelite.interfaces.runner import DONE
    from lakelite.interfaces.shell import Shell, reader, run_init

    runner.verbose = True
    what = f"lake {lake}" if lake else "a temporary lake, gone when you leave"
    runner.note(f"lakelite {__version__}: {what}.\nStatements end with a semicolon; .help lists the commands.")
    if init:
        run_init(runner)
    return DONE if runner.has_left else Shell(runner, reader(runner), lake).loop()


def _demo(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("lakelite demo", description="Load a lake with real flights and show what a lake can do, in a few seconds.")
    parser.add_argument("dir", nargs="?", metavar="DIR", help="where to make the lake: new or empty. Without it: a temporary directory")
    directory = parser.parse_args(arguments).dir
    from lakelite.interfaces.demo import run

    return run(directory, sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
