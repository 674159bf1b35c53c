"""The progress bar of a terminal: redrawn in its place, on standard error. Elsewhere one line per step, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

BAR_CELLS = 20


def drawn(done: int, total: int) -> str:
    """A bar of `BAR_CELLS` cells; `total` is not 0."""
    filled = BAR_CELLS * done // total
    return f"[{'#' * filled}{'-' * (BAR_CELLS - filled)}]"


def bar(err: TextIO) -> Callable[[int, int], None] | None:
    """What draws how many rows of all are done, and wipes the line at the end; None where `err` is no terminal.

    The cursor stays at the beginning of the line, so that an error is written over the bar.
    """
    if not err.isatty():
        return None

    def draw(done: int, total: int) -> None:
        err.write(f"\x1b[K{drawn(done, total)} {done:,} of {total:,} rows\r" if done < total else "\x1b[K")
        err.flush()

    return draw
