"""A DuckDB connection for others (Ibis, DuckDB's own relations, plotting): the tables of one snapshot as views.

It is a DuckDB of its own, read-only but for temporary tables and views. The snapshot stays pinned until the connection, or
the lakelite connection that it came from, is closed or collected.
"""

from __future__ import annotations

import tempfile
import weakref
from contextlib import closing
from pathlib import Path

import duckdb

from lakelite.forks import never_ended_by_a_child
from lakelite.lake import Lake
from lakelite.model import Table
from lakelite.storage.engine import Engine, open_again
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
    never_ended_by_a_child(connection)
    return connection


def _show_views(engine: Engine, view: LakeView) -> None:
    """Shows the views, each as soon as what it reads is there. Left out are those that read history or system views, and those whose query fails."""
    left = list(view.namespace.views)
    while left:
        failed: list[Table] = []
        for table in left:
            assert table.view is not None
            try:
                engine.show_view(table, table.view.query, view.namespace.stamp)
            except duckdb.Error:
                failed.append(table)
        if len(failed) == len(left):
            return
        left = failed


def _filled(lake: Lake, view: LakeView) -> duckdb.DuckDBPyConnection:
    """DuckDB opens only files read-only. They are gone from the directory once they are open, so that nothing of them is ever left."""
    spill = lake.spill_folder()
    with tempfile.TemporaryDirectory(dir=spill) as name:
        folder = Path(name)
        engine = Engine(lake.paths, spill, lake.catalog.inline_rows, lake.settings.limits.cache_bytes, folder)
        with closing(engine):
            for schema in view.namespace.schemas.values():
                engine.need_schema(schema.name)
            for table in view.namespace.tables.values():
                if table.view is None:
                    engine.show(view.state(table))
            _show_views(engine, view)
        return open_again(folder, spill)
