"""Results as text: box, csv, json, jsonl, markdown, line, and what `formats` has.

Owns the layout of every output mode. Promises: csv, json, jsonl, line and markdown hold one batch of rows at a time; box
holds the rows that it shows (not on a terminal: the first 10,000, which set the widths). In box, markdown and line no
value can steer the terminal or break a row; csv and the JSON modes carry values as they are. Never talks to a lake.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Protocol, TextIO

from lakelite.cells import width
from lakelite.interfaces import formats
from lakelite.interfaces.values import as_json, broken, elide, is_numeric, plain, visible
from lakelite.records import dataclass

BATCH_ROWS = 1_000
SAMPLE_ROWS = 10_000
SHOWN_ROWS = 40
EXPLAIN = ["explain_key", "explain_value"]
STATEMENT = ["sql"]
LEAST_CELLS = 8
SEE_ALL = ".all shows all"
_QUOTED = re.compile('[,"\r\n]').search

Row = Sequence[Any]


class Rows(Protocol):
    """The part of a PEP 249 cursor that is needed here."""

    @property
    def description(self) -> Sequence[Sequence[Any]] | None: ...

    def fetchmany(self, size: int, /) -> Sequence[Row]: ...


@dataclass(frozen=True, slots=True)
class Style:
    """How to print. `columns`: terminal cells per line, or None: nothing is elided. `color`: dim NULLs. `rows`: of more, a box on a
    terminal shows the first and the last. `table`: that mode insert fills. `see_all`: how a person sees what is left out."""

    mode: str = "box"
    columns: int | None = None
    color: bool = False
    rows: int = SHOWN_ROWS
    table: str = "t"
    see_all: str = SEE_ALL


@dataclass(frozen=True, slots=True)
class Ends:
    """What is shown of many rows: the first and the last ones. `hidden`: how many are between them."""

    first: Sequence[Row]
    last: Sequence[Row]
    hidden: int


@dataclass(frozen=True, slots=True)
class _Heading:
    names: list[str]
    types: list[str]


def show(rows: Rows, out: TextIO, style: Style) -> int:
    """Write the result in the style's mode; return how many rows it had.

    A cursor without a result set writes nothing and counts 0 rows. Raises KeyError for a mode not in `MODES`.
    """
    if rows.description is None:
        return 0
    heading = _Heading([str(d[0]) for d in rows.description], [str(d[1]) for d in rows.description])
    counter = _Counter()
    first = rows.fetchmany(BATCH_ROWS)  # before anything is written: a query that fails at once has no heading
    MODES[style.mode](heading, counter.through(_stream(first, rows)), out, style)
    return counter.count


class _Counter:
    """Counts the rows that pass."""

    def __init__(self) -> None:
        self.count = 0

    def through(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.count += 1
            yield row


def rows_of(rows: Rows) -> Iterator[Row]:
    """The rows of a result one by one; a batch of them is held at a time."""
    return _stream(rows.fetchmany(BATCH_ROWS), rows)


def _stream(batch: Sequence[Row], rows: Rows) -> Iterator[Row]:
    while batch:
        yield from batch
        batch = rows.fetchmany(BATCH_ROWS)


def _csv(heading: _Heading, rows: Iterable[Row], out: TextIO, style: Style) -> None:
    """RFC 4180 with line feeds: a header, NULL as nothing, empty text as ""."""
    out.write(",".join(map(_csv_field, heading.names)) + "\n")
    for row in rows:
        out.write(",".join("" if v is None else _csv_field(plain(v, t)) for v, t in zip(row, heading.types, strict=True)) + "\n")


def _csv_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if not text or _QUOTED(text) else text


def _json(heading: _Heading, rows: Iterable[Row], out: TextIO, style: Style) -> None:
    separator = "["
    for line in _objects(heading, rows):
        out.write(separator + line)
        separator = ",\n"
    out.write("[]\n" if separator == "[" else "]\n")


def _jsonl(heading: _Heading, rows: Iterable[Row], out: TextIO, style: Style) -> None:
    for line in _objects(heading, rows):
        out.write(line + "\n")


def _objects(heading: _Heading, rows: Iterable[Row]) -> Iterator[str]:
    keys = [as_json(name) + ": " for name in _unique(heading.names)]
    for row in rows:
        yield "{" + ", ".join(k + as_json(v, t) for k, v, t in zip(keys, row, heading.types, strict=True)) + "}"


def _unique(names: Sequence[str]) -> list[str]:
    """A JSON object cannot hold a key twice: the second `a` is called `a_1`."""
    taken, unique = set(names), dict[str, None]()
    for name in names:
        free, number = name, 0
        while free in unique or (number and free in taken):
            number += 1
            free = f"{name}_{number}"
        unique[free] = None
    return list(unique)


def _markdown(heading: _Heading, rows: Iterable[Row], out: TextIO, style: Style) -> None:
    _markdown_row(heading.names, out)
    _markdown_row(["---:" if is_numeric(t) else "---" for t in heading.types], out)
    for row in rows:
        _markdown_row([plain(v, t) for v, t in zip(row, heading.types, strict=True)], out)


def _markdown_row(cells: Iterable[str], out: TextIO) -> None:
    out.write("| " + " | ".join(visible(cell).replace("|", "\\|") for cell in cells) + " |\n")


def _line(heading: _Heading, rows: Iterable[Row], out: TextIO, style: Style) -> None:
    names = [visible(name) for name in heading.names]
    widest = max(map(width, names), default=0)
    labels = [" " * (widest - width(name)) + name + " = " for name in names]
    for number, row in enumerate(rows):
        out.write("\n" if number else "")
        for label, value, type_name in zip(labels, row, heading.types, strict=True):
            out.write(label + visible(plain(value, type_name)) + "\n")


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    is_null: bool = False


def _box(heading: _Heading, rows: Iterable[Row], out: TextIO, style: Style) -> None:
    """A frame. On a terminal: fitted to its width, and of too many rows the first and the last ones.

    The plan of EXPLAIN has its own frames, and statements (SHOW CREATE TABLE) are there to be copied: their lines stand as they are.
    """
    if is_text(heading.names):
        _lines(heading, rows, out)
        return
    if style.columns is None:
        titles, right = _titles(heading)
        cells = _cells(heading, rows)
        sample = list(islice(cells, SAMPLE_ROWS))
        _frame(_Layout(list(range(len(right))), _widths(titles + sample), right, style), titles, chain(sample, cells), out)
        return
    _fitted(heading, ends(iter(rows), style.rows), style.columns, out, style)


def is_text(names: Sequence[str]) -> bool:
    """Whether a result of these columns is text with lines of its own."""
    return list(names) in (EXPLAIN, STATEMENT)


def show_ends(columns: Sequence[tuple[str, str]], rows: Ends, out: TextIO, style: Style) -> None:
    """Write in mode box, fitted to the style's `columns`, a result of which only the ends are at hand. `columns`: name and type of each."""
    heading = _Heading([name for name, _ in columns], [kind for _, kind in columns])
    if is_text(heading.names):
        _lines(heading, [*rows.first, *rows.last], out)
    else:
        _fitted(heading, rows, style.columns or LEAST_CELLS, out, style)


def _titles(heading: _Heading) -> tuple[list[list[_Cell]], list[bool]]:
    """The lines over the rows, and which columns stand to the right."""
    titles = [[_Cell(visible(name)) for name in heading.names], [_Cell(visible(type_title(t))) for t in heading.types]]
    return titles, [is_numeric(t) for t in heading.types]


def _fitted(heading: _Heading, rows: Ends, columns: int, out: TextIO, style: Style) -> None:
    titles, right = _titles(heading)
    head, tail = list(_cells(heading, rows.first)), list(_cells(heading, rows.last))
    layout = _fit(_widths(titles + head + tail), right, columns, style)
    gap = [[_Cell("·") for _ in right]] if rows.hidden else []
    _frame(layout, titles, chain(head, gap, tail), out)
    _hidden_note(len(head) + len(tail) + rows.hidden, rows.hidden, len(right), sum(c >= 0 for c in layout.order), style, out)


def _lines(heading: _Heading, rows: Iterable[Row], out: TextIO) -> None:
    for row in rows:
        out.write("\n".join(map(visible, plain(row[-1], heading.types[-1]).rstrip("\n").split("\n"))) + "\n")


def _cells(heading: _Heading, rows: Iterable[Row]) -> Iterator[list[_Cell]]:
    for row in rows:
        yield [_Cell(visible(plain(v, t)), v is None) for v, t in zip(row, heading.types, strict=True)]


def type_title(type_name: str) -> str:
    """In lower case, unless the type holds names or values of the user (STRUCT, ENUM)."""
    return type_name.lower() if "(" not in type_name or type_name.startswith("DECIMAL") else type_name


def ends(rows: Iterator[Row], most: int) -> Ends:
    """Of rows as they come, `most` (even) at most."""
    head = list(islice(rows, most))
    tail: deque[Row] = deque(maxlen=most // 2)
    later = 0
    for row in rows:
        tail.append(row)
        later += 1
    if not later:
        return Ends(head, [], 0)
    shown = [*head[most // 2 :], *tail][-(most // 2) :]
    return Ends(head[: most // 2], shown, later)


def _hidden_note(rows: int, hidden: int, columns: int, shown: int, style: Style, out: TextIO) -> None:
    notes = [f"{rows:,} rows, {hidden:,} of them not shown"] if hidden else []
    notes += [f"{columns:,} columns, {columns - shown:,} of them not shown"] if shown < columns else []
    if notes:
        note = f"{'; '.join(notes)}. {style.see_all}".rstrip()
        out.write((note if style.columns is None else broken(note, style.columns)) + "\n")


@dataclass(frozen=True, slots=True)
class _Layout:
    """`order`: the columns shown, by number; -1 stands for those left out. `widths` and `right` are per column, not per place."""

    order: list[int]
    widths: list[int]
    right: list[bool]
    style: Style


def _widths(rows: Iterable[Sequence[_Cell]]) -> list[int]:
    return [max(width(cell.text) for cell in column) for column in zip(*rows, strict=True)]


def _fit(widths: list[int], right: list[bool], columns: int, style: Style) -> _Layout:
    """Shorten the widest columns, and where that is not enough leave out columns from the middle."""
    order = _order([min(w, LEAST_CELLS) for w in widths], columns)
    cap = min(max(widths), columns)
    while cap > 1 and _total(order, [min(w, cap) for w in widths]) > columns:
        cap -= 1
    return _Layout(order, [min(w, cap) for w in widths], right, style)


def _order(least: list[int], columns: int) -> list[int]:
    count = len(least)
    for kept in range(min(count, columns // 4), 1, -1):
        left = (kept + 1) // 2
        order = [*range(left), *([] if kept == count else [-1]), *range(count - kept + left, count)]
        if _total(order, least) <= columns:
            return order
    return [0] if count == 1 else [0, -1]


def _total(order: Iterable[int], widths: Sequence[int]) -> int:
    return 1 + sum(3 + (widths[c] if c >= 0 else 1) for c in order)


def _frame(layout: _Layout, titles: Iterable[Sequence[_Cell]], rows: Iterable[Sequence[_Cell]], out: TextIO) -> None:
    bars = ["─" * (2 + (layout.widths[c] if c >= 0 else 1)) for c in layout.order]
    out.write("┌" + "┬".join(bars) + "┐\n")
    for title in titles:
        out.write(_framed(title, layout))
    out.write("├" + "┼".join(bars) + "┤\n")
    for row in rows:
        out.write(_framed(row, layout))
    out.write("└" + "┴".join(bars) + "┘\n")


def _framed(row: Sequence[_Cell], layout: _Layout) -> str:
    return "│ " + " │ ".join(_padded(row[c], layout.widths[c], layout.right[c], layout.style) if c >= 0 else "…" for c in layout.order) + " │\n"


def _padded(cell: _Cell, cells: int, right: bool, style: Style) -> str:
    text = cell.text if style.columns is None else elide(cell.text, cells)
    space = " " * (cells - width(text))
    shown = f"\x1b[2m{text}\x1b[0m" if style.color and cell.is_null else text
    return space + shown if right else shown + space


MODES: dict[str, Callable[[_Heading, Iterable[Row], TextIO, Style], None]] = {
    "box": _box,
    "csv": _csv,
    "json": _json,
    "jsonl": _jsonl,
    "markdown": _markdown,
    "line": _line,
    "tsv": lambda heading, rows, out, style: formats.tsv(heading.names, heading.types, rows, out),
    "html": lambda heading, rows, out, style: formats.html(heading.names, heading.types, rows, out),
    "insert": lambda heading, rows, out, style: formats.insert(style.table, heading.types, rows, out),
    "latex": lambda heading, rows, out, style: formats.latex(heading.names, heading.types, rows, out),
}
