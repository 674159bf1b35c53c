"""The line that says how far a statement is which takes longer than a second. It needs no widgets.

In a notebook it is an output that is written anew, elsewhere the last line of the terminal. Drawn by the thread that waits, never by the
one that works.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from lakelite.interfaces.progress import SHOWN_AFTER_S, drawn, progress

Draw = Callable[[str], None]
"""Shows a text in place of the one before; an empty one wipes it."""


class ProgressLine:
    """`asked()`: how many percent are done, or None."""

    def __init__(self, draw: Draw, asked: Callable[[], float | None]) -> None:
        self._draw = draw
        self._asked = asked
        self._since = time.monotonic()
        self._rows: tuple[int, int] | None = None
        self._shown = ""

    def begin(self) -> None:
        self._since, self._rows = time.monotonic(), None

    def rows(self, done: int, total: int) -> None:
        """How many rows of all are done, from a statement that counts them itself; for the next `tick`. Any thread may say so."""
        self._rows = done, total

    def tick(self) -> None:
        """Draws, if it is time to, and there is something new to say."""
        passed = time.monotonic() - self._since
        if passed < SHOWN_AFTER_S:
            return
        text = self._text(passed)
        if text != self._shown:
            self._draw(text)
            self._shown = text

    def _text(self, passed: float) -> str:
        if self._rows is not None:
            done, total = self._rows
            return f"{drawn(done, total or 1)} {done:,} of {total:,} rows"
        percent = self._asked()
        return f"running for {passed:,.0f} s" if percent is None else progress(percent, passed)

    def end(self) -> None:
        """Wipes what was drawn."""
        if self._shown:
            self._draw("")
            self._shown = ""


def drawing(shell: Any) -> Draw:
    """How to draw in this shell: an output of the cell, or a line of the terminal; else nothing is drawn."""
    if getattr(shell, "kernel", None) is not None:
        return _Output()
    return _on_terminal if sys.stderr.isatty() else lambda text: None


def _on_terminal(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


class _Output:
    """An output of the cell that runs, made when there is something to draw and gone once it is wiped."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, text: str) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)
        if not text:
            self._handle = None
