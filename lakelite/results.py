"""What a statement hands back: columns and rows, streamed from DuckDB or held, a row count, and messages."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import duckdb

from lakelite.batches import Batches, Guard, uncomplaining
from lakelite.errors import InterfaceError

Columns = tuple[tuple[str, Any], ...]
Message = tuple[type[Exception], str]
_Taken = TypeVar("_Taken")


class Result:
    """The outcome of one statement. Rows are read once, in order; `close` frees what they hold. `columns` is None where there are none.

    `columns`: (name, type) each; a type's str() is DuckDB's name for it. `rowcount`: -1 where none applies.
    """

    def __init__(
        self,
        columns: Columns | None,
        *,
        rowcount: int = -1,
        rows: Sequence[tuple[Any, ...]] = (),
        messages: Sequence[Message] = (),
        cursor: duckdb.DuckDBPyConnection | None = None,
        guard: Guard | None = None,
        release: Callable[[], None] | None = None,
        again: Callable[[int], Batches] | None = None,
    ) -> None:
        self.columns = columns
        self.rowcount = rowcount
        self.messages = list(messages)
        self._rows = list(rows)
        self._next = 0
        self._is_broken = False
        self._cursor = cursor
        self._guard = guard
        self._release = release
        self._again = again
        self._owner_pid = os.getpid()
        self._lock = threading.RLock()  # DuckDB refuses a second call on a cursor, instead of waiting

    @classmethod
    def of_query(
        cls, cursor: duckdb.DuckDBPyConnection, guard: Guard, release: Callable[[], None], again: Callable[[int], Batches] | None = None
    ) -> Result:
        """A result that DuckDB streams. `release` frees the cursor; it is called once, when the last row has been read or the result is closed.

        `again(rows_per_batch)` runs the query once more, as a stream of Arrow batches.
        """
        columns = tuple((d[0], d[1]) for d in cursor.description or ())
        return cls(columns, cursor=cursor, guard=guard, release=release, again=again)

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """The next `count` rows (None: all that are left); fewer, or none, at the end."""
        with self._lock:
            self._again = None
            cursor = self._cursor
            self._check()
            if cursor is None:
                stop = len(self._rows) if count is None else self._next + count
                found = self._rows[self._next : stop]
                self._next += len(found)
                return found
            found = self._read(cursor.fetchall if count is None else lambda: cursor.fetchmany(count))
            if count is None or len(found) < count:
                self.close()
            return found

    def fetch_one(self) -> tuple[Any, ...] | None:
        """The next row; None at the end."""
        with self._lock:
            self._again = None
            self._check()
            if self._cursor is None:
                return next(iter(self.fetch(1)), None)
            row = self._read(self._cursor.fetchone)
            if row is None:
                self.close()
            return row

    @property
    def is_streamed(self) -> bool:
        """Whether DuckDB still holds rows of it: then `take` and `batches` work. Otherwise `fetch` gives what is left."""
        self._check()
        return self._cursor is not None

    def take(self, convert: Callable[[duckdb.DuckDBPyConnection], _Taken]) -> _Taken:
        """What `convert` makes of all the rows that are left; the result is at its end then."""
        with self._lock:
            cursor = self._open()
            taken = self._read(lambda: convert(cursor))
            self.close()
            return taken

    def batches(self, rows_per_batch: int) -> Batches:
        """The rows that are left as Arrow batches, read when they are asked for; the result is at its end then.

        If none was read before, the query runs once more as a stream, and memory does not grow with the number of rows. After
        that DuckDB hands the rest on as a copy.
        """
        again, self._again = self._again, None
        if again is not None:  # without the lock: this waits for a statement of another thread, which may be about to close this result
            stream = again(rows_per_batch)
            self.close()
            return stream
        with self._lock:
            cursor, guard, release = self._open(), self._guard, self._release
            assert guard is not None
            assert release is not None
            reader = self._read(lambda: uncomplaining(lambda: cursor.to_arrow_reader(rows_per_batch)))
            self._cursor, self._release = None, None
            return Batches(reader, guard, release)

    def _check(self) -> None:
        """InterfaceError behind an error: what was fetched before is not all there was."""
        if self._is_broken:
            raise InterfaceError("reading this result has failed before its end", hint="execute the query again")

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._cursor is None:
            raise InterfaceError("the result was closed", hint="execute the query again")
        return self._cursor

    def _read(self, read: Callable[[], _Taken]) -> _Taken:
        """One reading from DuckDB; after an error the result is over."""
        assert self._guard is not None
        try:
            return self._guard(read)
        except BaseException:
            self._is_broken = True
            self.close()
            raise

    def close(self) -> None:
        """Frees the cursor and the snapshot that it reads, after a reading that goes on in another thread.

        Again, or in a forked child: nothing happens.
        """
        if os.getpid() != self._owner_pid:
            return
        with self._lock:
            self._cursor = None
            release, self._release = self._release, None
            self._rows, self._next = [], 0
        if release is not None:
            release()

    def __del__(self) -> None:
        self.close()
