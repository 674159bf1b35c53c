"""The prompt: reads statements from a person, runs them, says what they did.

Owns the way out, and which line editing there is. Promises: Ctrl-C clears what is typed or cancels the running statement, Ctrl-D
leaves, and an open transaction is never rolled back without having been mentioned once. Never parses SQL.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from lakelite import errors
from lakelite.interfaces import history
from lakelite.interfaces.commands import shows_again
from lakelite.interfaces.entry import continuation, is_quit_word, is_whole, prompt
from lakelite.interfaces.render import SEE_ALL
from lakelite.interfaces.runner import DONE, Runner
from lakelite.mapping.system_errors import file_error


class Reader(Protocol):
    """Where entries come from."""

    def read(self, prompt: str, draft: str = "") -> str:
        """A whole entry. `draft`: what it begins with. Raises EOFError at the end, KeyboardInterrupt for Ctrl-C."""


class Shell:
    """One interactive session on one connection. `lake`: the path of the lake; None: a temporary one."""

    def __init__(self, runner: Runner, reader: Reader, lake: str | None = None) -> None:
        self._runner = runner
        self._runner.draft = ""
        self._reader = reader
        self._lake = lake
        self._warned = False

    def loop(self) -> int:
        """Read and run until the user leaves; return the exit code."""
        while True:
            try:
                if not self._obey(self._read()):
                    return DONE
            except KeyboardInterrupt:
                self._runner.note("")

    def _obey(self, entry: str) -> bool:
        """Do what was typed; False: leave."""
        repeatable = _is_repeatable(entry)
        self._runner.display.see_all = SEE_ALL if repeatable else ""
        try:
            self._runner.run(entry)
        except errors.Error as error:
            self._runner.report(error)
        if self._runner.has_left:
            self._runner.has_left = self._may_leave()
        else:
            self._warned = False
        is_sql = bool(entry.strip()) and not entry.lstrip().startswith((".", "\\"))
        if is_sql:
            self._runner.last = entry
        if entry.strip() and (is_sql or repeatable):
            self._runner.shown, self._runner.shows_again = entry, repeatable
        return not self._runner.has_left

    def _may_leave(self) -> bool:
        if not self._runner.connection.in_transaction or self._warned:
            return True
        self._warned = True
        self._runner.note("A transaction is open: COMMIT keeps it; leave again to roll it back.")
        return False

    def _read(self) -> str:
        """The next entry; the end of the input, and the bare words, are `.quit`."""
        try:
            draft, self._runner.draft = self._runner.draft, ""
            entry = self._reader.read(prompt(self._runner.connection, self._lake), draft or "")
        except EOFError:
            self._runner.note("")
            return ".quit"
        return ".quit" if is_quit_word(entry) else entry


def _is_repeatable(entry: str) -> bool:
    """As `shows_again`; what is no statement is not, and running it says why."""
    try:
        return shows_again(entry)
    except errors.Error:
        return False


class PlainReader:
    """Reads line by line, where no line can be edited: a terminal that is dumb, or output that goes elsewhere."""

    def read(self, prompt: str, draft: str = "") -> str:
        text = draft
        if text:
            _say(f"{prompt}{text}\n")
        while not text or not is_whole(text):
            line = self._line(_next_prompt(prompt, text))
            text = f"{text}\n{line}" if text else line.strip() and line
        return text

    def _line(self, prompt: str) -> str:
        if sys.stdout.isatty():
            return input(prompt)
        _say(prompt)  # input() would print the prompt between the results
        return input()


def _next_prompt(first: str, text: str) -> str:
    from lakelite.language.tokens import left_open

    return continuation(first, left_open(f"{text}\n")[-1]) if text else first


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def run_init(runner: Runner) -> None:
    """Runs the person's own commands and statements, if there are any; what fails is said, and the rest runs."""
    path = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")) / "lakelite" / "rc"
    verbose, runner.verbose = runner.verbose, False
    try:
        if path.exists():
            runner.run(path.read_bytes().decode("utf-8-sig"), keep_going=True, file=str(path))
    except OSError as error:
        runner.note(f"note: {file_error(error.errno, error.strerror or str(error), f'read {path}').message}")
    except UnicodeError:
        runner.note(f"note: {path} is not read: it is not UTF-8 text")
    finally:
        runner.verbose = verbose


@contextmanager
def loading_editor(is_prompt: bool) -> Iterator[None]:
    """Loads what a prompt needs to edit lines, if it can edit them, beside what is done in the block."""
    loading = threading.Thread(target=_load_editor, name="lakelite editor")
    if is_prompt and _edits():
        loading.start()
    try:
        yield
    finally:
        if loading.ident is not None:
            loading.join()


def _load_editor() -> None:
    import lakelite.interfaces.repl.editor  # noqa: F401


def _edits() -> bool:
    return os.environ.get("TERM", "dumb") != "dumb" and sys.stdout.isatty()


def reader(runner: Runner) -> Reader:
    """The best reader that this terminal allows."""
    if not _edits():
        return PlainReader()
    from lakelite.interfaces.repl.completion import LakeCompleter
    from lakelite.interfaces.repl.editor import Editor
    from lakelite.interfaces.repl.vocabulary import Vocabulary

    if runner.display.is_confined:
        return Editor(None, runner.note, LakeCompleter(Vocabulary(runner.connection), files=False))
    return Editor(history.history_path(), runner.note, LakeCompleter(Vocabulary(runner.connection)))
