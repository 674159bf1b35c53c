"""The prompt: reads statements from a terminal, runs them, says what they did.

Owns line editing and the way out. Promises: Ctrl-C clears the line or cancels the running statement,
Ctrl-D leaves, and an open transaction is never rolled back without having been mentioned once. Never parses SQL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

from lakelite import errors
from lakelite.interfaces import history
from lakelite.interfaces.commands import is_quit
from lakelite.interfaces.runner import DONE, Runner


class Shell:
    """One interactive session on one connection."""

    def __init__(self, runner: Runner, is_complete: Callable[[str], bool]) -> None:
        """`is_complete`: whether a text holds only whole statements."""
        self._runner = runner
        self._is_complete = is_complete
        self._readline = _readline()
        self._history_path = history.history_path()
        self._keeps_history = True
        self._warned = False

    def loop(self) -> int:
        """Read and run until the user leaves; return the exit code."""
        self._load_history()
        while True:
            try:
                if not self._obey(self._read()):
                    return DONE
            except KeyboardInterrupt:
                self._runner.note("")

    def _obey(self, entry: str) -> bool:
        """Do what was typed; False: leave."""
        if not is_quit(entry):
            self._warned = False
            self._remember(entry)
        try:
            self._runner.run(entry)
        except errors.Error as error:
            self._runner.report(error)
        if self._runner.has_left:
            self._runner.has_left = self._may_leave()
        return not self._runner.has_left

    def _may_leave(self) -> bool:
        if not self._runner.connection.in_transaction or self._warned:
            return True
        self._warned = True
        self._runner.note("A transaction is open: COMMIT keeps it; leave again to roll it back.")
        return False

    def _read(self) -> str:
        """The next dot command or complete text of statements; the end of the input is `.quit`. Raises KeyboardInterrupt."""
        text = ""
        while True:
            try:
                line = self._input(self._prompt(text))
            except EOFError:
                self._runner.note("")
                return ".quit"
            if not text and line.lstrip().startswith((".", "\\")):
                return line
            if not text and line.strip(" \t;").casefold() in ("exit", "quit"):  # as in psql; no statement begins so
                return ".quit"
            text = f"{text}\n{line}" if text else line
            if not text.strip():
                text = ""
            elif ";" in text and self._is_complete(text):
                return text

    def _prompt(self, text: str) -> str:
        if text:
            return "  ...> "
        return "lake*> " if self._runner.connection.in_transaction else "lake> "

    def _input(self, prompt: str) -> str:
        if sys.stdout.isatty():
            return input(prompt)
        # input() would print the prompt between the results.
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return input()

    def _load_history(self) -> None:
        if self._readline is None:
            return
        self._readline.set_auto_history(False)
        try:
            lines = history.load(self._history_path)
        except OSError as error:
            self._stop_history(error)
        else:
            for line in lines:
                self._readline.add_history(line)

    def _remember(self, entry: str) -> None:
        if self._readline is None or not history.may_keep(entry):
            return
        for line in entry.splitlines():
            self._readline.add_history(line)
        if self._keeps_history:
            try:
                history.append(self._history_path, entry)
            except OSError as error:
                self._stop_history(error)

    def _stop_history(self, error: OSError) -> None:
        """A history that cannot be kept is no reason to leave: say so once and go on without."""
        self._keeps_history = False
        self._runner.note(f"note: no history is kept: {error}")


def _readline() -> ModuleType | None:
    """Line editing, where this Python has it and somebody types."""
    if not sys.stdin.isatty():
        return None
    try:
        import readline
    except ImportError:
        return None
    return readline
