"""Rows of the catalog as tables of DuckDB, for the system views of schema `lake`.

Owns the tables of `lake_internal.catalog` and the views that show them. A table is filled in bulk, and again only when its
stamp changes; history only grows, so that of a newer snapshot nothing but the new rows is read. Never reads the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from lakelite.model import RESERVED_SCHEMA, quote
from lakelite.storage import arrays

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ROWS_KEPT = 1_000_000
NOTHING_YET = -1
_TEXTS = ("VARCHAR", "VARCHAR[]")  # the rest comes as whole numbers
_DECODE = {"TIMESTAMP": "make_timestamp({})", "VARCHAR[]": "CAST(CAST({} AS JSON) AS VARCHAR[])", "BOOLEAN": "CAST({} AS BOOLEAN)"}


class LoadedRows:
    """The tables of one DuckDB instance. Used by one thread at a time."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, database: str) -> None:
        self._cursor = cursor
        self._schema = f"{database}.catalog"
        self._known: dict[str, tuple[Hashable, int]] = {}  # table → its stamp, and up to which snapshot it is filled
        self._rows: dict[str, int] = {}
        self._views: dict[str, str] = {}

    def _do(self, sql: str) -> None:
        self._cursor.execute(sql).fetchall()

    def table(self, name: str) -> str:
        """The qualified name of a table."""
        return f"{self._schema}.{quote(name)}"

    def load(
        self, name: str, columns: Sequence[tuple[str, str]], stamp: Hashable, until: int, rows: Callable[[int], Sequence[tuple[Any, ...]]]
    ) -> None:
        """Sees to it that a table holds what `stamp` stands for, up to snapshot `until`; `rows(after)` gives what is behind `after`.

        A value comes as whole microseconds for a TIMESTAMP, 0 or 1 for a BOOLEAN and a JSON list for a VARCHAR[].
        """
        known = self._known.pop(name, None)  # if this is left half-way, the table is made anew
        if known is None or known[0] != stamp:
            found = rows(NOTHING_YET)
            self._do(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            self._put(f"CREATE OR REPLACE TABLE {self.table(name)} AS", columns, found)
            self._rows[name] = len(found)
        elif known[1] < until:
            found = rows(known[1])
            self._put(f"INSERT INTO {self.table(name)}", columns, found)
            self._rows[name] += len(found)
        else:
            until = known[1]
        self._known[name] = (stamp, until)

    def _put(self, head: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> None:
        select = ", ".join(f"{_DECODE.get(kind, '{}').format(quote(name))} AS {quote(name)}" for name, kind in columns)
        self._cursor.register("lake_arrow", _arrow(columns, rows))
        try:
            self._do(f"{head} SELECT {select} FROM lake_arrow")
        finally:
            self._cursor.unregister("lake_arrow")

    def show(self, name: str, query: str) -> None:
        """Makes `lake.name` mean `query`, for every cursor."""
        if self._views.get(name) != query:
            self._do(f"CREATE SCHEMA IF NOT EXISTS {RESERVED_SCHEMA}; CREATE OR REPLACE VIEW {RESERVED_SCHEMA}.{quote(name)} AS {query}")
            self._views[name] = query

    def trim(self) -> None:
        """Drops everything if it has grown past its bound; called between statements."""
        if sum(self._rows.values()) > ROWS_KEPT:
            for name in self._rows:
                self._do(f"DROP TABLE IF EXISTS {self.table(name)}")
            self._known.clear()
            self._rows.clear()


def _arrow(columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    kinds = [pa.string() if kind in _TEXTS else pa.int64() for _, kind in columns]
    return arrays.table({name: arrays.of_values(value, kind) for (name, _), value, kind in zip(columns, values, kinds, strict=True)})
