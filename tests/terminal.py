"""`lakelite` on a real pseudo-terminal whose screen can be read: what a person would see after what they type."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte

SECONDS = 30  # a busy machine takes its time; nothing here waits for longer than it has to


class _Screen(pyte.HistoryScreen):
    """Answers what a program asks a terminal, such as where the cursor is."""

    answer: Callable[[str], object]

    def write_process_input(self, data: str) -> None:
        self.answer(data)


class Terminal:
    """A session. `columns`, `lines`: of the screen. What scrolled out of the screen is in `everything` still."""

    def __init__(self, directory: Path, *arguments: str, columns: int = 80, lines: int = 30, **environment: str) -> None:
        inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES", "PAGER", "EDITOR", "VISUAL")}
        homes = {"XDG_STATE_HOME": str(directory / "state"), "XDG_CONFIG_HOME": str(directory / "config")}
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "lakelite", *arguments],
            cwd=directory,
            env={**inherited, **homes, "TERM": "xterm", **environment},
            dimensions=(lines, columns),
            encoding="utf-8",
            timeout=SECONDS,
        )
        self.raw = ""
        self._screen = _Screen(columns, lines, history=10_000, ratio=0.5)
        self._screen.answer = self.process.send
        self._stream = pyte.Stream(self._screen)

    def type(self, text: str) -> None:
        self.process.send(text)

    def resize(self, columns: int, lines: int) -> None:
        self.process.setwinsize(lines, columns)
        self._screen.resize(lines, columns)

    def until(self, seen: str | Callable[[list[str]], bool], seconds: float = SECONDS) -> list[str]:
        """Waits until the screen is as wanted (a text: that the last line of it ends so); returns its lines without the empty ones at the end."""
        is_seen = (lambda lines: bool(lines) and lines[-1].endswith(seen)) if isinstance(seen, str) else seen
        end = time.monotonic() + seconds
        while not is_seen(lines := self.lines):
            left = end - time.monotonic()
            assert left > 0, f"{seen!r} did not come, but:\n" + "\n".join(lines)
            self._read(left)
        return lines

    def shows(self, text: str, seconds: float = SECONDS) -> list[str]:
        """Waits until a text stands anywhere on the screen."""
        return self.until(lambda lines: text in "\n".join(lines), seconds)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without spaces at their ends and empty lines at its end."""
        found = [line.rstrip() for line in self._screen.display]
        while found and not found[-1]:
            found.pop()
        return found

    @property
    def everything(self) -> list[str]:
        """As `lines`, with what scrolled out of the screen."""
        above = ["".join(line[x].data for x in range(self._screen.columns)).rstrip() for line in self._screen.history.top]
        return [*above, *self.lines]

    @property
    def cells(self) -> list[list[pyte.screens.Char]]:
        """The lines of the screen, cell by cell, each with its text and colour."""
        return [[self._screen.buffer[y][x] for x in range(self._screen.columns)] for y in range(self._screen.lines)]

    def _read(self, seconds: float) -> None:
        try:
            text = self.process.read_nonblocking(65_536, seconds)
        except pexpect.TIMEOUT:
            return
        except pexpect.EOF:
            raise AssertionError("lakelite has ended:\n" + "\n".join(self.lines)) from None
        self.raw += text
        self._stream.feed(text)

    def ends(self) -> int | None:
        """The exit code, once the process is over."""
        self.process.expect(pexpect.EOF)
        self._stream.feed(self.process.before)
        self.process.wait()
        return self.process.exitstatus

    def close(self) -> None:
        self.process.close(force=True)
