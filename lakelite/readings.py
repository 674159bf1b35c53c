"""What of a session is being read: results, streams of Arrow batches, and DuckDB connections that show a snapshot.

Owns what each of them needs until it is closed: its snapshots stay pinned and its cursor open. Promises: a reading obeys the session's
time limit and interrupts, and is refused in a forked child, where nothing of it is freed either. Never runs a statement.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from lakelite import duckdb_view
from lakelite.batches import Batches, Guard
from lakelite.lake import Lake
from lakelite.mapping.ours import reraise
from lakelite.results import Result
from lakelite.scripts import Where
from lakelite.storage.engine import stop
from lakelite.storage.locks import refuse_fork
from lakelite.transaction.execution import Stream
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import LakeView

if TYPE_CHECKING:
    import duckdb

Again = Callable[[int], Batches]
"""Runs a query once more, as a stream of batches of so many rows."""
Limited = Callable[[Callable[[], Callable[[], None]]], AbstractContextManager[None]]
"""A block that the time limit of statements applies to, from what makes the function that stops it."""


class Readings:
    """The open readings of one session."""

    def __init__(self, lake: Lake, limited: Limited) -> None:
        self._lake = lake
        self._limited = limited
        self._owner_pid = os.getpid()
        self._results: weakref.WeakSet[Result | Batches] = weakref.WeakSet()
        self._views: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()

    def result(
        self, tx: Transaction, cursor: duckdb.DuckDBPyConnection, text: str, where: Where, snapshots: Sequence[int], again: Again | None = None
    ) -> Result:
        """The rows that a cursor gives. `snapshots`: what they are read from."""
        result = Result.of_query(cursor, self._guard(cursor, text, where), self._kept(tx, cursor, snapshots), again)
        self._results.add(result)
        return result

    def batches(self, tx: Transaction, stream: Stream, text: str, where: Where, snapshot: int) -> Batches:
        """The rows of a stream."""
        kept = self._kept(tx, stream.cursor, [snapshot], stream.pinned)
        batches = Batches(stream.reader, self._guard(stream.cursor, text, where), kept)
        self._results.add(batches)
        return batches

    def streamed(self, result: Result) -> Result:
        """The rows that are left of a result whose rows are held, as a result that DuckDB streams."""
        engine = self._lake.engine
        is_over = result.is_over
        cursor = engine.cursor_over(result.columns or (), result.fetch(None))
        streamed = Result.of_query(cursor, self._guard(cursor, "", Where("")), lambda: engine.drop(cursor))
        streamed.is_over = is_over
        self._results.add(streamed)
        return streamed

    def connection(self, base: LakeView | None) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection of its own with the tables of a snapshot (None: the newest) as views."""
        view = duckdb_view.open_view(self._lake, base)
        self._views.add(view)
        return view

    def closers(self) -> list[Callable[[], None]]:
        """The functions that close what is open."""
        return [one.close for one in [*self._results, *self._views]]

    def _kept(self, tx: Transaction, cursor: duckdb.DuckDBPyConnection, snapshots: Sequence[int], pinned: Sequence[int] = ()) -> Callable[[], None]:
        """Pins `snapshots` for what is read from a cursor; the function that frees them, those that are `pinned` already, and the cursor."""
        lake = self._lake
        for snapshot in snapshots:
            lake.lease.pin(snapshot)
        tx.reading(cursor)

        def release() -> None:
            if os.getpid() != self._owner_pid:
                return  # in a forked child nothing of it is the child's
            lake.engine.drop(cursor)
            for snapshot in (*snapshots, *pinned):
                lake.lease.unpin(snapshot)
            tx.released(cursor)

        return release

    def _guard(self, cursor: duckdb.DuckDBPyConnection, text: str, where: Where) -> Guard:
        """What the rows of a query are read in, by any thread."""
        settings = self._lake.settings

        def guarded(read: Callable[[], Any]) -> Any:
            refuse_fork(self._owner_pid)
            try:
                if settings.limits.statement_timeout_ms:
                    with self._limited(lambda: lambda: stop(cursor)):
                        return read()
                return read()
            except Exception as error:
                reraise(error, text, place=where.place)

        return guarded
