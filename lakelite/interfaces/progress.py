"""The progress bar of a terminal: redrawn in its place, on standard error. Elsewhere one line per step, or none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TextIO

from lakelite.interfaces.values import elide

BAR_CELLS = 20
SHOWN_AFTER_S = 1.0
_WIPE = "\x1b[K"


def drawn(done: int, total: int) -> str:
    """A bar of `BAR_CELLS` cells; `total` is not 0."""
    filled = BAR_CELLS * done // total
    return f"[{'#' * filled}{'-' * (BAR_CELLS - filled)}]"


def fitted(line: str) -> str:
    """A line that begins with a bar, without it where the terminal has no room: what is wrapped could not be drawn anew in its place."""
    import shutil

    columns = shutil.get_terminal_size().columns
    return line if len(line) < columns else elide(line.partition("] ")[2], max(1, columns - 1))


def bar(err: TextIO) -> Callable[[int, int], None] | None:
    """What draws how many rows of all are done, and wipes the line at the end; None where `err` is no terminal.

    The cursor stays at the beginning of the line, so that an error is written over the bar.
    """
    if not err.isatty():
        return None

    def draw(done: int, total: int) -> None:
        err.write(f"{_WIPE}{fitted(f'{drawn(done, total)} {done:,} of {total:,} rows')}\r" if done < total else _WIPE)
        err.flush()

    return draw


class Meter:
    """Shows how far a statement is that takes longer than a second, and how long it may take still. Threads may share it.

    `asked()`: how many percent are done, or None. Nothing is drawn any more once `end` was called, until `begin`.
    """

    def __init__(self, err: TextIO, asked: Callable[[], float | None]) -> None:
        self._err = err
        self._asked = asked
        self._lock = threading.Lock()
        self._since: float | None = None
        self._drawn = False
        self._rows = bar(err)

    def begin(self) -> None:
        with self._lock:
            self._since = time.monotonic()

    def tick(self) -> None:
        """Draws, if it is time to."""
        with self._lock:
            if self._since is None or (passed := time.monotonic() - self._since) < SHOWN_AFTER_S:
                return
            done = self._asked()
            if done is not None:
                self._err.write(f"{_WIPE}{fitted(progress(done, passed))}\r")
                self._err.flush()
                self._drawn = True

    def rows(self, done: int, total: int) -> None:
        """Draws how many rows of all are done, for a statement that counts them itself; `tick` draws nothing of it any more."""
        with self._lock:
            self._since = None
            if self._rows is not None:
                self._rows(done, total)

    def end(self) -> None:
        """Wipes what was drawn."""
        with self._lock:
            self._since = None
            if self._drawn:
                self._err.write(_WIPE)
                self._err.flush()
                self._drawn = False


def progress(percent: float, seconds: float) -> str:
    """The line of a query of which so much was done in so many seconds; without an estimate while it is too early for one."""
    whole = min(99, int(percent))
    left = f", about {seconds * (100 - percent) / percent:,.0f} s left" if percent >= 1 else ""
    return f"{drawn(whole, 100)} {whole} % after {seconds:,.0f} s{left}"
