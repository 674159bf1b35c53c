"""Commands that run something: .read .import .edit .watch, \\e."""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lakelite.errors import NotSupportedError, OperationalError, ProgrammingError
from lakelite.interfaces.commands.command import Command, path_of, table_of, tables, words, written
from lakelite.mapping.system_errors import file_error

if TYPE_CHECKING:
    from lakelite.interfaces.runner import Runner

MOST_SECONDS = 86_400


def _read(runner: Runner, argument: str) -> int:
    (name,) = words(".read", argument, 1, 1, "one file name, in quotes if it holds spaces")
    return runner.run(_text_of(path_of(name), name), file=name)


def _text_of(path: Path, name: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise file_error(error.errno, error.strerror or str(error), f"read {name}") from error
    except UnicodeError as error:
        raise ProgrammingError(f"{name} is not UTF-8 text", hint="convert it first, such as with iconv -t UTF-8") from error


def _import(runner: Runner, argument: str) -> int:
    """Into a table that is there, or else into a new one with the columns of the file."""
    from lakelite.language.tokens import folded
    from lakelite.model import literal

    file, table = words(".import", argument, 2, 2, "a file and a table")
    name, source = table_of(".import", table), literal(str(path_of(file)))
    is_there = folded(name.replace('"', "")) in {folded(written(s, t).replace('"', "")) for s, t, _ in tables(runner)}
    return runner.run(f"COPY {name} FROM {source}" if is_there else f"CREATE TABLE {name} AS FROM {source}")


def _edit(runner: Runner, argument: str) -> int:
    """What was edited becomes the draft of the next prompt, where it can be looked at and run. NotSupportedError: there is no prompt."""
    if runner.draft is None:
        raise NotSupportedError(".edit is for the prompt", hint=".read FILE runs the statements of a file")
    import subprocess
    import tempfile

    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="lakelite-") as folder:
        path = Path(folder) / "statement.sql"
        path.write_text(f"{argument};" if argument else runner.last, "utf-8", newline="")  # the ; of a command is not part of its argument
        try:
            with _uninterrupted():
                code = subprocess.run([*editor, str(path)]).returncode
        except OSError as error:
            raise file_error(error.errno, error.strerror or str(error), f"run {editor[0]}") from error
        if code:
            raise OperationalError(f"{editor[0]} ended with code {code}, and nothing is run", hint="$EDITOR says which editor is used")
        runner.draft = _text_of(path, "the edited text").strip()
    return 0


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C is for the program that has the terminal. (A handler, since a signal that is ignored would be so in that program too.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _watch(runner: Runner, argument: str) -> int:
    """Until Ctrl-C, or the first error."""
    seconds, _, script = argument.partition(" ")
    pause = _seconds(seconds)
    script = script.strip() or runner.last
    if not script:
        raise ProgrammingError(".watch takes seconds and a statement", hint="such as .watch 2 select count(*) from t")
    while not runner.has_left:
        runner.note(f"-- {time.strftime('%H:%M:%S')}, every {seconds} s; Ctrl-C ends it")
        code = runner.run(script)
        if code:
            return code
        _wait(pause)
    return 0


def _wait(seconds: float) -> None:
    """Hears Ctrl-C also where another thread takes the signal."""
    from lakelite.interfaces.runner import LISTEN_S

    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LISTEN_S))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds <= MOST_SECONDS:
        raise ProgrammingError(f".watch takes a number of seconds first, not {text or 'nothing'}", hint=".watch 2 SELECT count(*) FROM t")
    return seconds


COMMANDS = (
    Command((".read",), "FILE", "run the statements of a file", _read, (("file",),), leaves_lake=True),
    Command(
        (".import",),
        "FILE TABLE",
        "a file (CSV, JSON, Parquet) becomes rows of a table, a new one if need be",
        _import,
        (("file",), ("table",)),
        leaves_lake=True,
    ),
    Command((".edit", "\\e"), "[SQL]", "edit the last statement in $EDITOR; it stands at the next prompt", _edit, leaves_lake=True),
    Command((".watch",), "SECONDS [SQL]", "run a statement, or the last one, again and again", _watch),
)
