"""The picture in the README: a real session at the prompt, drawn as SVG. `python tests/picture.py` draws it anew; a test compares its text.

Owns what is typed. Nothing in the picture depends on the clock: the timer is off, and the line that greets with the version is left out.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import terminal

import lakelite

PICTURE = Path(lakelite.__file__).parent / "docs" / "session.svg"
COLUMNS, LINES = 92, 40
CELL, LINE = 8.4, 19
COLORS = {"default": "#d0d7de", "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#76e3ea"}
SESSION = (
    "CREATE TABLE stock AS FROM (VALUES ('bolt', 40), ('nut', 70)) AS v(item, amount);",
    "BEGIN;",
    "UPDATE stock SET amount = amount - 15 WHERE item = 'nut';",
    None,  # Bob commits what he has to say
    "COMMIT;",
    "FROM stock;",
    "SELECT amout FROM stock;",
    ".diff 1 3",
)
HIS = "UPDATE stock SET amount = amount - 5; OPTIMIZE stock"
Run = tuple[str, str, bool]


@contextlib.contextmanager
def played(directory: Path) -> Iterator[terminal.Terminal]:
    """The session, at its end, in a new lake in `directory`."""
    rc = directory / "config" / "lakelite" / "rc"
    rc.parent.mkdir(parents=True)
    rc.write_text(".timer off\n")
    session = terminal.Terminal(directory, "shop.lake", "--author", "ann", columns=COLUMNS, lines=LINES, COLORTERM="")
    try:
        session.until("shop>")
        for line in SESSION:
            _do(session, line, directory)
        yield session
    finally:
        session.close()


def _do(session: terminal.Terminal, line: str | None, directory: Path) -> None:
    if line is None:
        with lakelite.connect(directory / "shop.lake", autocommit=True, author="bob") as bob:
            bob.execute(HIS)
        return
    session.type(line)
    session.until(line)
    session.type("\r")
    session.until("shop*>" if line in ("BEGIN;", SESSION[2]) else "shop>")


def texts(session: terminal.Terminal) -> list[str]:
    """The lines of the screen from the first prompt on; the last prompt, where nothing is typed, is left out."""
    lines = session.lines
    return lines[next(i for i, line in enumerate(lines) if line.startswith("shop")) : -1]


def drawn(session: terminal.Terminal) -> str:
    """The same lines with their colours, as SVG."""
    wanted = texts(session)
    first = len(session.lines) - 1 - len(wanted)
    screen = session.cells
    lines = [_line(number, list(_runs(screen[first + number]))) for number in range(len(wanted))]
    width, height = round(COLUMNS * CELL) + 32, len(wanted) * LINE + 32
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="A session at the prompt of lakelite">',
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            f'<g font-family="monospace" font-size="14" fill="{COLORS["default"]}">',
            *lines,
            "</g>",
            "</svg>\n",
        ]
    )


def _runs(cells: list[Any]) -> Iterator[Run]:
    """Neighbouring cells of one colour: text, colour, whether it is bold."""
    for (color, bold), run in groupby(cells, key=lambda cell: (cell.fg, cell.bold)):
        yield "".join(cell.data for cell in run), color, bold


def _line(number: int, runs: list[Run]) -> str:
    spans, column = [], 0
    for index, (text, color, bold) in enumerate(runs):
        fill = f' fill="{COLORS.get(color, f"#{color}")}"' if color != "default" else ""
        weight = ' font-weight="bold"' if bold else ""
        shown = escape(text.rstrip() if index == len(runs) - 1 else text, quote=False)
        spans.append(f'<tspan x="{16 + column * CELL:.1f}"{fill}{weight}>{shown}</tspan>')
        column += len(text)
    return f'<text y="{30 + number * LINE}" xml:space="preserve">{"".join(spans)}</text>'


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, played(Path(folder)) as session:
        PICTURE.write_text(drawn(session), "utf-8")
