"""Rows that a statement hands out before its transaction is over, kept as tables of the connection's own DuckDB, which can spill them.

Owns the tables of `lake_internal.saved`. One stands for as long as anybody holds its `SavedRows`, and goes between statements then.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelite.model import quote

if TYPE_CHECKING:
    import duckdb

Columns = Sequence[tuple[str, str]]


class SavedRows:
    """Some rows, of which nothing changes any more. `columns`: name and DuckDB type of each; two may have one name."""

    def __init__(self, table: str, columns: Columns, forget: Callable[[str], None]) -> None:
        self.columns = tuple(columns)
        self._table = table
        self._forget = forget

    @property
    def sql(self) -> str:
        """A SELECT of the rows, in their order."""
        shown = ", ".join(f"c{i}::{kind} AS {quote(name)}" for i, (name, kind) in enumerate(self.columns))
        return f"SELECT {shown} FROM {self._table}"

    @property
    def bare(self) -> str:
        """The same rows under names of ours, of which no two are equal: for comparing."""
        return f"SELECT * FROM {self._table}"

    def __del__(self) -> None:
        self._forget(self._table)


class Shelf:
    """The saved rows of one DuckDB instance. Used by one thread at a time; what was saved may be let go by any."""

    def __init__(self, do: Callable[[str], object], database: str) -> None:
        self._do = do
        self._schema = f"{database}.saved"
        self._numbers = itertools.count(1)
        self._doomed: list[str] = []
        self._readers: dict[int, SavedRows] = {}

    def save(self, cursor: duckdb.DuckDBPyConnection, select: str, parameters: Mapping[str, Any], columns: Columns) -> SavedRows:
        """Runs `select`, a SELECT of as many columns as `columns`, to its end on `cursor`, and keeps what it gives."""
        self._do(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
        table = f"{self._schema}.rows_{next(self._numbers)}"
        names = ", ".join(f"c{i}" for i in range(len(columns)))
        statement = f"CREATE TABLE {table} AS SELECT * FROM ({select}\n) r({names})"
        (cursor.execute(statement, dict(parameters)) if parameters else cursor.execute(statement)).fetchall()
        return SavedRows(table, columns, self._doomed.append)

    def open(self, cursor: duckdb.DuckDBPyConnection, rows: SavedRows) -> duckdb.DuckDBPyConnection:
        """Makes the rows the open result of `cursor`, for which they stay until `closed`."""
        self._readers[id(cursor)] = rows
        return cursor.execute(rows.sql)

    def closed(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """The cursor reads no more. One that read nothing of ours: nothing happens."""
        self._readers.pop(id(cursor), None)

    def trim(self) -> None:
        """Drops the tables that nobody holds; called between statements."""
        while self._doomed:
            self._do(f"DROP TABLE IF EXISTS {self._doomed.pop()}")
