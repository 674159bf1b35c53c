"""Ibis over the tables of one snapshot, through `duckdb_view`. Needs Ibis.

Ibis 12 calls two methods of DuckDB's by names that DuckDB 2 has no longer, or warns of; here they have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelite.batches import uncomplaining
from lakelite.interfaces.extras import needed

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ROWS_PER_BATCH = 1_000_000  # as DuckDB had it


def over(connection: duckdb.DuckDBPyConnection) -> Any:
    """Ibis' DuckDB backend over a connection, which is closed with it. InterfaceError: Ibis is not installed."""
    ibis = needed("ibis")
    return ibis.duckdb.from_connection(_Renamed(connection))


class _Renamed:
    """A DuckDB connection or relation; what is executed on a connection is read from it."""

    def __init__(self, wrapped: duckdb.DuckDBPyConnection | duckdb.DuckDBPyRelation) -> None:
        self._wrapped: Any = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)

    def execute(self, *arguments: Any, **named: Any) -> _Renamed:
        self._wrapped.execute(*arguments, **named)
        return self

    def sql(self, *arguments: Any, **named: Any) -> _Renamed:
        return _Renamed(self._wrapped.sql(*arguments, **named))

    def cursor(self) -> _Renamed:
        return _Renamed(self._wrapped.cursor())

    def fetch_arrow_table(self) -> pa.Table:
        return uncomplaining(self._wrapped.to_arrow_table)

    def fetch_record_batch(self, rows_per_batch: int = ROWS_PER_BATCH) -> pa.RecordBatchReader:
        return uncomplaining(lambda: self._wrapped.to_arrow_reader(rows_per_batch))
