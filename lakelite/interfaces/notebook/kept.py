"""The rows of a result, kept as Arrow for as long as anybody holds the result, and a screenful of them as values when it is shown.

Many rows are kept in a temporary file, from which the system reads what is looked at, and which is gone with the last who holds them.
Promises: what is shown is exactly what DuckDB gave, also of types that Arrow would round. The DuckDB that reads the rows again is one of
its own in memory, so that a result outlives its lake.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from lakelite.batches import uncomplaining
from lakelite.interfaces.exchange import exact_table
from lakelite.interfaces.render import Ends, Row
from lakelite.model import literal
from lakelite.records import dataclass
from lakelite.results import Result
from lakelite.storage import held

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from lakelite.interfaces.dbapi import Cursor

IN_MEMORY_BYTES = 64 * 1024 * 1024
_Taken = TypeVar("_Taken")
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """`columns`: name and DuckDB type of each, of which two may share a name.

    `exact`: all rows, in DuckDB's own types where Arrow has none for the values.
    """

    columns: Columns
    exact: pa.Table

    @property
    def count(self) -> int:
        return int(self.exact.num_rows)

    def opened(self) -> Result:
        """All rows, as a result that DuckDB streams; as often as one likes."""
        cursor = _reading(self.columns, self.exact)
        return Result.of_query(cursor, _at_once, cursor.close)

    def ends(self, most: int) -> Ends:
        """So many rows, if there are as many, as values: the first and the last."""
        hidden, half = self.count - most, most // 2
        if hidden <= 0:
            return Ends(_values(self.columns, self.exact), [], 0)
        first, last = self.exact.slice(0, half), self.exact.slice(self.count - half)
        return Ends(_values(self.columns, first), _values(self.columns, last), hidden)


def kept(cursor: Cursor) -> Kept:
    """The result of a cursor that has one. Raises an error of lakelite's."""
    columns = tuple((str(name), str(kind)) for name, kind, *_ in cursor.description or ())
    return Kept(columns, exact_table(cursor, _gathered))


def _gathered(reader: pa.RecordBatchReader) -> pa.Table:
    import pyarrow as pa

    found: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        found.append(batch)
        size += batch.nbytes
        if size > IN_MEMORY_BYTES:
            return _in_a_file(reader.schema, chain(found, reader))
    return pa.Table.from_batches(found, reader.schema)


def _in_a_file(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """A file without a name: it is gone with whoever maps it, or with the process that was writing it."""
    import pyarrow as pa

    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        return pa.ipc.open_stream(pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))).read_all()


def of_rows(columns: Columns, rows: Sequence[Row]) -> Kept:
    """A few rows that are values of Python's."""
    cursor = held.show(_duckdb().cursor(), columns, [tuple(row) for row in rows])
    try:
        return Kept(columns, uncomplaining(cursor.to_arrow_table))
    finally:
        cursor.close()


def _values(columns: Columns, table: pa.Table) -> list[Row]:
    cursor = _reading(columns, table)
    try:
        return list(cursor.fetchall())
    finally:
        cursor.close()


def _reading(columns: Columns, table: pa.Table) -> duckdb.DuckDBPyConnection:
    """A cursor whose open result are the rows, in the types and the time zone that they had."""
    cursor = _duckdb().cursor()
    zone = next(filter(None, map(_zone, table.schema.types)), None)
    if zone is not None:
        cursor.execute(f"SET TimeZone = {literal(zone)}")
    return held.show_arrow(cursor, columns, table)


def _zone(kind: pa.DataType) -> str | None:
    """The time zone of the moments in a type, of which all have the same."""
    inside = (kind.field(i).type for i in range(kind.num_fields))
    return getattr(kind, "tz", None) or next(filter(None, map(_zone, inside)), None)


def _duckdb() -> duckdb.DuckDBPyConnection:
    return _of_process(os.getpid())


@cache
def _of_process(pid: int) -> duckdb.DuckDBPyConnection:
    """One for each process: after a fork the threads of the other one are not there."""
    import duckdb

    return duckdb.connect()


def _at_once(read: Callable[[], _Taken]) -> _Taken:
    return read()
