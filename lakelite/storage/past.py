"""The DuckDB databases in which past states of tables can be read: `lake@3` for version 3, `lake@3-7` for what happened from 3 to 7.

A table has its own schema and name there, so that whatever refers to it binds as it does to the table itself. Never decides
what a version holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakelite.model import RESERVED_SCHEMA, quote

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

PREFIX = f"{RESERVED_SCHEMA}@"
DATABASES_KEPT = 64


class PastViews:
    """Those of one DuckDB instance. Used by one thread at a time. Only `trim`, between statements, drops any of them."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._stamps: dict[str, dict[str, int]] = {}  # versions → view → stamp of what it shows; those used last come last

    def _do(self, sql: str) -> list[tuple[Any, ...]]:
        return self._cursor.execute(sql).fetchall()

    @staticmethod
    def name(versions: str, schema: str, name: str) -> str:
        """The qualified name of a view or table there."""
        return f"{_schema(versions, schema)}.{quote(name)}"

    def view(self, versions: str, schema: str, name: str, stamp: int, query: Callable[[], str]) -> str:
        """The qualified name of a view that shows `query`, made anew if it is of another stamp."""
        stamps = self._of(versions)
        view = self.name(versions, schema, name)
        if stamps.get(view) != stamp:
            text = query()
            self._do(f"CREATE SCHEMA IF NOT EXISTS {_schema(versions, schema)}; CREATE OR REPLACE VIEW {view} AS {text}")
            stamps[view] = stamp
        return view

    def table(self, versions: str, schema: str, name: str, rows: pa.Table) -> str:
        """The qualified name of a table that holds `rows`."""
        self._of(versions)
        table = self.name(versions, schema, name)
        self._cursor.register("lake_arrow", rows)
        try:
            self._do(f"CREATE SCHEMA IF NOT EXISTS {_schema(versions, schema)}; CREATE OR REPLACE TABLE {table} AS SELECT * FROM lake_arrow")
        finally:
            self._cursor.unregister("lake_arrow")
        return table

    def _of(self, versions: str) -> dict[str, int]:
        """What is known of the database for these versions, which is there from now on."""
        known = self._stamps.pop(versions, None)
        if known is None:
            self._do(f"ATTACH IF NOT EXISTS ':memory:' AS {quote(PREFIX + versions)}")
        return self._stamps.setdefault(versions, known or {})

    def forget_views(self) -> None:
        """What the views read has been dropped: they are made anew."""
        self._stamps = {versions: {} for versions in self._stamps}

    def trim(self) -> None:
        """Drops the databases that were not used for longest."""
        while len(self._stamps) > DATABASES_KEPT:
            versions = next(iter(self._stamps))
            self._do(f"DETACH DATABASE IF EXISTS {quote(PREFIX + versions)}")
            del self._stamps[versions]


def _schema(versions: str, name: str) -> str:
    return f"{quote(PREFIX + versions)}.{quote(name)}"
