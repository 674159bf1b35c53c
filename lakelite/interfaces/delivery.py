"""Where results go, and how they look there: the terminal, a pager, a file.

Owns what the ending of a file's name means. Promises: rows are passed on as they come, a file is opened only once there is a result
for it, and who leaves the pager early gets no error.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from lakelite.errors import DataError, NotSupportedError, ProgrammingError
from lakelite.interfaces.render import SHOWN_ROWS, Rows, Style, show
from lakelite.interfaces.values import message
from lakelite.mapping.system_errors import file_error

if TYPE_CHECKING:
    from lakelite.interfaces.excel import Book

PARQUET, EXCEL = ".parquet", ".xlsx"
BY_ENDING = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".md": "markdown", ".html": "html", ".sql": "insert",
    ".tex": "latex",
}  # fmt: skip
LINES_AROUND = 8  # of a terminal, for the frame of a box, the prompt and what is said
LEAST_ROWS = 4
LEFT_EARLY = -1  # nobody knows how many rows there were
PAGER = "less -SRFX"


class Streamed(Protocol):
    """What a Parquet file is written from."""

    @property
    def description(self) -> Sequence[Sequence[Any]] | None: ...

    def fetch_record_batch(self) -> Any: ...


@dataclass(slots=True)
class Display:
    """`mode`: one of render's. `table`: what mode insert fills. `pager`: results go through one. `whole`: nothing is left out.

    `see_all`: how a person at a prompt sees what is left out; empty where nothing would show it. `is_confined`: no
    other program and no file is used. `is_paging`: a pager has the terminal. `file`: where everything goes, and `once`
    where just the next result goes, instead of `out`; `book`: a workbook, with where it goes, that results become
    sheets of.
    """

    out: TextIO
    mode: str = "box"
    table: str = "t"
    pager: bool = False
    whole: bool = False
    see_all: str = ""
    is_confined: bool = False
    is_paging: bool = False
    file: TextIO | None = None
    file_mode: str | None = None
    once: Path | None = None
    book: tuple[Book, Path] | None = None

    def show(self, rows: Rows, source: object) -> int:
        """Passes a result on; returns how many rows it had, or LEFT_EARLY. `source`: the cursor itself, for what takes it whole.

        Raises an error of lakelite's.
        """
        if rows.description is None:
            return 0
        once, self.once = self.once, None
        if once is not None:
            return _to_file(once, rows, source, self.mode, self.table)
        if self.book is not None:
            return self.book[0].add(rows)
        if self.file is not None:
            return show(rows, self.file, Style(self.file_mode or self.mode, table=self.table))
        if (self.pager or self.whole) and not self.is_confined and (command := pager_for(self.out)):
            return self._through_pager(command, rows)
        return show(rows, self._harmless(self.out), self._style())

    def _through_pager(self, command: Sequence[str], rows: Rows) -> int:
        count = LEFT_EARLY
        self.is_paging = True
        try:
            with _paged(command) as out:
                count = show(rows, self._harmless(out), Style(self.mode, color=_has_colours(), table=self.table))
        finally:
            self.is_paging = False
        return count

    def _harmless(self, out: TextIO) -> TextIO:
        """What leads to a person's eyes gets no character that steers the terminal; a box takes care of that itself, and has colours."""
        return _Harmless(out) if self.out.isatty() and self.mode != "box" else out

    def text(self, text: str) -> None:
        """Passes on text that is no result, such as a statement; a line end is added."""
        out = self.file or self.out
        out.write((message(text) if out.isatty() else text) + "\n")

    def insert_into(self, table: str, rows: Rows) -> None:
        """Passes on rows as INSERT statements."""
        out = self.file or self.out
        show(rows, _Harmless(out) if out.isatty() else out, Style("insert", table=table))

    def flush(self) -> None:
        (self.file or self.out).flush()

    def to_file(self, path: Path) -> None:
        """From now on everything goes to a file. OperationalError: it cannot be written."""
        if path.suffix.lower() == PARQUET:
            raise ProgrammingError("a Parquet file holds one result", hint=f".once {path} writes the next result to it")
        self.to_out()
        if path.suffix.lower() == EXCEL:
            self.book = _book_for(path), path
            return
        self.file, self.file_mode = _opened(path), BY_ENDING.get(path.suffix.lower())

    def to_out(self) -> None:
        """From now on everything goes where it went at first."""
        file, self.file, self.file_mode = self.file, None, None
        if file is not None:
            file.close()
        book, self.book = self.book, None
        if book is not None:
            with closing(book[0]):
                _save(*book)

    def _style(self) -> Style:
        size = size_of(self.out)
        if size is None:
            return Style(self.mode, table=self.table)
        if self.whole:
            return Style(self.mode, color=_has_colours(), table=self.table)
        rows = max(LEAST_ROWS, min(SHOWN_ROWS, size.lines - LINES_AROUND)) // 2 * 2
        return Style(self.mode, size.columns, _has_colours(), rows, self.table, self.see_all)


class _Harmless(io.StringIO):
    """Passes text on with every character that could steer a terminal spelled out."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out

    def write(self, text: str, /) -> int:
        return self._out.write(message(text))


def size_of(out: TextIO) -> os.terminal_size | None:
    """Of the terminal that `out` is; None: it is none."""
    import shutil

    return shutil.get_terminal_size() if out.isatty() else None


def columns_of(out: TextIO) -> int | None:
    """How many cells a line of the terminal has; None: it is none."""
    size = size_of(out)
    return None if size is None else size.columns


def _has_colours() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _book_for(path: Path) -> Book:
    """A workbook for that file. OperationalError: it could not be written."""
    from lakelite.interfaces.excel import Book

    if path.is_dir():
        raise file_error(errno.EISDIR, os.strerror(errno.EISDIR), f"write {path}")
    part = _part(path)
    _opened(part).close()
    part.unlink()
    return Book()


def _to_workbook(path: Path, rows: Rows) -> int:
    from lakelite.interfaces.excel import Book

    with closing(Book()) as book:
        count = book.add(rows)
        _save(book, path)
        return count


def _save(book: Book, path: Path) -> None:
    if not book.is_empty:
        with _complete(path) as written:
            book.save(written)


def _to_file(path: Path, rows: Rows, source: object, mode: str, table: str) -> int:
    if path.suffix.lower() == EXCEL:
        return _to_workbook(path, rows)
    with _complete(path) as written:
        if path.suffix.lower() == PARQUET:
            return _to_parquet(written, source)
        with _opened(written) as file:
            return show(rows, file, Style(BY_ENDING.get(path.suffix.lower(), mode), table=table))


@contextmanager
def _complete(path: Path) -> Iterator[Path]:
    """Where to write what becomes the file at the end of the block, or after an error nothing. What is no file (a device) is written directly."""
    if path.exists() and not path.is_file():
        yield path
        return
    part = _part(path)
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        raise file_error(error.errno, error.strerror or str(error), f"write {path}") from error
    finally:
        part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _opened(path: Path) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise file_error(error.errno, error.strerror or str(error), f"write {path}") from error


def _to_parquet(path: Path, source: object) -> int:
    """Rows as they stream, so that memory does not grow with them."""
    if not hasattr(source, "fetch_record_batch"):
        raise NotSupportedError("this result cannot be written as Parquet", hint="write that of a SELECT, or to a .csv or .json file")
    streamed: Streamed = source  # type: ignore[assignment]
    _refuse_rounding(streamed)
    import pyarrow as pa
    from pyarrow import parquet

    count = 0
    try:
        reader = streamed.fetch_record_batch()
        with parquet.ParquetWriter(path, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                count += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise NotSupportedError(f"a column has a type that Parquet has not: {error}", hint="cast it to VARCHAR in the query") from error
    except OSError as error:
        raise file_error(error.errno, error.strerror or str(error), f"write {path}") from error
    return count


def _refuse_rounding(source: Streamed) -> None:
    from lakelite.storage.databases import ROUNDED

    for name, kind, *_ in source.description or ():
        if any(rounded in str(kind) for rounded in ROUNDED):
            raise DataError(f'a Parquet file would round "{name}", which is {kind}', hint="cast it to VARCHAR in the query")


def pager_for(out: TextIO) -> list[str] | None:
    """The command that shows text page by page; None where nobody looks at a terminal, or there is no such command."""
    if not out.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    import shutil

    command = shlex.split(os.environ.get("PAGER") or PAGER)
    return command if command and shutil.which(command[0]) else None


@contextmanager
def _paged(command: Sequence[str]) -> Iterator[TextIO]:
    """What is written within the block is shown page by page; the block ends when the pager does."""
    import subprocess

    with subprocess.Popen(command, stdin=subprocess.PIPE) as pager:
        assert pager.stdin is not None
        with suppress(BrokenPipeError), io.TextIOWrapper(pager.stdin, "utf-8", "backslashreplace") as out:  # who has seen enough leaves
            yield out
