"""A DuckDB connection for others (Ibis, DuckDB's own relations, plotting): the tables of one snapshot as views.

It is a DuckDB of its own in memory: what is done in it never reaches the lake. The snapshot stays pinned until the
connection, or the lakelite connection that it came from, is closed or collected.
"""

from __future__ import annotations

import weakref

import duckdb

from lakelite.lake import Lake
from lakelite.storage.engine import Engine
from lakelite.transaction.view import LakeView

SNAPSHOT_FUNCTION = "lake_snapshot_id"


class _Snapshot:
    """The number of the snapshot, as a function in SQL. DuckDB lets go of it when the connection ends, and so tells us."""

    def __init__(self, snapshot_id: int) -> None:
        self._snapshot_id = snapshot_id

    def __call__(self) -> int:
        return self._snapshot_id


def open_view(lake: Lake, view: LakeView | None) -> duckdb.DuckDBPyConnection:
    """The connection. `view`: what it shows; None: the head. `lake_snapshot_id()` in it tells the snapshot."""
    if view is None:
        with lake.head() as head:
            return open_view(lake, head)
    lake.lease.pin(view.snapshot_id)
    try:
        connection = _filled(lake, view)
        told = _Snapshot(view.snapshot_id)
        connection.create_function(SNAPSHOT_FUNCTION, told, [], "BIGINT")
    except BaseException:
        lake.lease.unpin(view.snapshot_id)
        raise
    weakref.finalize(told, lake.lease.unpin, view.snapshot_id).atexit = False
    return connection


def _filled(lake: Lake, view: LakeView) -> duckdb.DuckDBPyConnection:
    engine = Engine(lake.paths, lake.spill_folder(), lake.catalog.inline_rows, lake.settings.limits.cache_bytes)
    try:
        for schema in view.namespace.schemas.values():
            engine.need_schema(schema.name)
        for table in view.namespace.tables.values():
            engine.show(view.state(table))
    except BaseException:
        engine.close()
        raise
    connection = engine.give_away()
    connection.execute("SET python_enable_replacements = true")  # variables of its own user are tables, as in any other
    return connection
