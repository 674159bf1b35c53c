"""Results as an Excel workbook, a sheet each.

Promises: memory does not grow with the rows; a value is a number, a date, a time or a truth value where Excel holds it exactly, and
else the text that DuckDB has for it; no text is a formula, a link or a number. Needs XlsxWriter.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from lakelite.errors import DataError
from lakelite.interfaces.extras import needed
from lakelite.interfaces.render import Row, Rows, rows_of
from lakelite.interfaces.values import is_numeric, plain
from lakelite.mapping.system_errors import file_error

MOST_ROWS = 1_048_575  # of a sheet, below the names of the columns
MOST_COLUMNS = 16_384
MOST_UNITS = 32_767  # of UTF-16, in a cell
DIGITS = 15  # of a number; Excel drops the rest
FIRST_DAY = date(1900, 3, 1)  # Excel counts a day before that there was not
OTHERWISE = "write it to a .csv or .parquet file"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LOOKS = {
    "title": {"bold": True},
    "quoted": {"quote_prefix": True},  # stays a text when somebody edits the cell
    "date": {"num_format": "yyyy-mm-dd"},
    "datetime": {"num_format": "yyyy-mm-dd hh:mm:ss.000"},
    "time": {"num_format": "hh:mm:ss.000"},
}
_WIDTHS = {"DATE": 11, "TIME": 13, "TIMESTAMP": 24}
_LEAST_WIDTH, _NUMBER_WIDTH, _MOST_TITLE_WIDTH = 9, 17, 40

Heading = Sequence[tuple[str, str]]  # name and type of each column


class Book:
    """A workbook that is being made: `add` sheets, then `save`; `close` ends it. InterfaceError: XlsxWriter is not installed."""

    def __init__(self) -> None:
        library = needed("xlsxwriter", "excel")
        self._scratch = tempfile.TemporaryDirectory(prefix="lakelite-")
        self._book = library.Workbook(None, {"constant_memory": True, "tmpdir": self._scratch.name})
        self._book.use_zip64()
        self._looks = {name: self._book.add_format(look) for name, look in _LOOKS.items()}

    def add(self, rows: Rows) -> int:
        """A sheet with one result; returns how many rows it had.

        DataError: Excel cannot hold it. What there is of the sheet by then is called incomplete.
        """
        heading = [(str(name), str(kind)) for name, kind, *_ in rows.description or ()]
        if len(heading) > MOST_COLUMNS:
            raise DataError(f"the result has {len(heading):,} columns, and a sheet of Excel holds {MOST_COLUMNS:,}", hint=OTHERWISE)
        sheet = self._book.add_worksheet()
        try:
            with _writing("write a temporary file"):
                self._begin(sheet, heading)
                return self._fill(sheet, heading, rows_of(rows))
        except BaseException:
            sheet.name += " (incomplete)"
            raise

    def _begin(self, sheet: Any, heading: Heading) -> None:
        sheet.freeze_panes(1, 0)
        for column, (name, kind) in enumerate(heading):
            sheet.set_column(column, column, max(_width(kind), min(len(name) + 2, _MOST_TITLE_WIDTH)))
            sheet.write_string(0, column, _fitting(name, name), self._looks["title"])

    def _fill(self, sheet: Any, heading: Heading, rows: Iterator[Row]) -> int:
        columns = [(column, name, kind, self._look(kind)) for column, (name, kind) in enumerate(heading)]
        number = 0
        for number, row in enumerate(islice(rows, MOST_ROWS), 1):
            for (column, name, kind, look), value in zip(columns, row, strict=True):
                if value is not None:
                    self._put(sheet, number, column, value, name, kind, look)
        if next(rows, None) is not None:
            raise DataError(f"the result has more than the {MOST_ROWS:,} rows that a sheet of Excel holds", hint=OTHERWISE)
        return number

    def _look(self, kind: str) -> Any:
        """How the numbers of a column look: with as many decimals as its type has; None for FLOAT and DOUBLE."""
        if not is_numeric(kind) or kind in ("FLOAT", "DOUBLE"):
            return None
        scale = int(kind.rpartition(",")[2].rstrip(")")) if kind.startswith("DECIMAL") else 0
        name = f"0.{'0' * scale}" if scale else "0"
        if name not in self._looks:
            self._looks[name] = self._book.add_format({"num_format": name})
        return self._looks[name]

    def _put(self, sheet: Any, row: int, column: int, value: object, name: str, kind: str, look: Any) -> None:
        match value:
            case bool():
                sheet.write_boolean(row, column, value)
            case int() | float() | Decimal() if _is_exact(value):
                sheet.write_number(row, column, float(plain(value, kind)), look)
            case date() | time() if _is_held(value, kind):
                sheet.write_datetime(row, column, value, self._looks[type(value).__name__])
            case _:
                text = _fitting(plain(value, kind), name)
                sheet.write_string(row, column, text, self._looks["quoted"] if text.startswith(_FORMULA) else None)

    @property
    def is_empty(self) -> bool:
        return not self._book.worksheets()

    def save(self, path: Path) -> None:
        """Writes the file. OperationalError: it cannot be written."""
        self._book.filename = str(path)
        with _writing(f"write {path}"):
            self._book.close()

    def close(self) -> None:
        """Frees what there is in temporary files."""
        for sheet in self._book.worksheets():
            sheet.row_data_fh.close()
        self._scratch.cleanup()


@contextmanager
def _writing(what: str) -> Iterator[None]:
    from xlsxwriter.exceptions import FileCreateError

    try:
        yield
    except (FileCreateError, OSError) as error:
        cause = error.args[0] if isinstance(error, FileCreateError) else error
        raise file_error(cause.errno, cause.strerror or str(cause), what) from error


def _width(kind: str) -> int:
    if is_numeric(kind):
        return _NUMBER_WIDTH if kind not in ("TINYINT", "SMALLINT", "UTINYINT", "USMALLINT") else _LEAST_WIDTH
    return next((width for start, width in reversed(_WIDTHS.items()) if kind.startswith(start)), _LEAST_WIDTH)


def _is_exact(value: int | float | Decimal) -> bool:
    """Whether Excel keeps a number as it is; of a binary fraction it keeps the digits that it shows."""
    if isinstance(value, float):
        return isfinite(value)
    return abs(value) < 10**DIGITS if isinstance(value, int) else value.is_finite() and len(value.as_tuple().digits) <= DIGITS


def _is_held(value: date | time, kind: str) -> bool:
    """Whether Excel has such a day or time: it has whole milliseconds and no time zones, and not every day."""
    if getattr(value, "tzinfo", None) is not None or getattr(value, "microsecond", 0) % 1000 or kind == "TIMESTAMP_NS":
        return False
    day = value.date() if isinstance(value, datetime) else value
    return isinstance(day, time) or day >= FIRST_DAY


def _fitting(text: str, column: str) -> str:
    if len(text) * 2 > MOST_UNITS and (units := len(text.encode("utf-16-le")) // 2) > MOST_UNITS:
        raise DataError(f'"{column}" has a text of {units:,} characters, and a cell of Excel holds {MOST_UNITS:,}', hint=OTHERWISE)
    return text
