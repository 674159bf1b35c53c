"""What a statement hands back: columns and rows, streamed from DuckDB or held, a row count, and messages."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from lakelite.batches import Batches, Guard, uncomplaining
from lakelite.errors import InterfaceError

if TYPE_CHECKING:
    import pyarrow as pa

Columns = tuple[tuple[str, Any], ...]
Message = tuple[type[Exception], str]
_Taken = TypeVar("_Taken")
_GONE = "the rows of this result have been read already"
_READ_ONCE = "execute the query again, or read it into a table first: cursor.to_arrow()"


@dataclass(slots=True)
class Offer:
    """Batches that several may be given, of whom the first to read has them."""

    batches: Batches
    is_taken: bool = False


class Result:
    """The outcome of one statement. Rows are read once, in order; `close` frees what they hold. `columns` is None where there are none.

    `columns`: (name, type) each; a type's str() is DuckDB's name for it. `rowcount`: -1 where none applies. `is_over`: whether the
    rows have been read to their end.
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
        self.is_over = False
        self._offer: Offer | None = None
        self._is_broken = False
        self._is_handed_on = False  # to a stream, the only place where the rows are now
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
            self._begin()
            cursor = self._cursor
            if cursor is None:
                stop = len(self._rows) if count is None else self._next + count
                found = self._rows[self._next : stop]
                self._next += len(found)
            else:
                found = self._read(cursor.fetchall if count is None else lambda: cursor.fetchmany(count))
            if count is None or len(found) < count:
                self.is_over = True
                if cursor is not None:
                    self.close()
            return found

    def fetch_one(self) -> tuple[Any, ...] | None:
        """The next row; None at the end."""
        with self._lock:
            self._begin()
            if self._cursor is None:
                return next(iter(self.fetch(1)), None)
            row = self._read(self._cursor.fetchone)
            if row is None:
                self.is_over = True
                self.close()
            return row

    def _begin(self) -> None:
        """Rows are read: what was offered of them is no longer there for others."""
        self._again = None
        self._check()
        if self._is_handed_on and not self.is_over:
            raise InterfaceError("the rows that are left were handed on as a stream", hint="read that one, or execute the query again")
        offer, self._offer = self._offer, None
        if offer is not None:
            offer.is_taken = True
            offer.batches.close()

    @property
    def is_streamed(self) -> bool:
        """Whether DuckDB still holds rows of it: then `take` and `batches` work. Otherwise `fetch` gives what is left."""
        self._check()
        return self._cursor is not None or self._offer is not None

    def take(self, convert: Callable[[duckdb.DuckDBPyConnection], _Taken]) -> _Taken:
        """What `convert` makes of all the rows that are left; the result is at its end then."""
        with self._lock:
            self._begin()
            cursor = self._open()
            taken = self._read(lambda: convert(cursor))
            self.is_over = True
            self.close()
            return taken

    def batches(self, rows_per_batch: int) -> Batches:
        """The rows that are left as Arrow batches, read when they are asked for; the result is at its end then.

        If none was read before, the query runs once more as a stream, and memory does not grow with the number of rows. After
        that DuckDB hands the rest on as a copy.
        """
        if self._offer is not None:
            self._begin()
        batches = self._batches(rows_per_batch)
        self.is_over = True
        self.close()
        return batches

    def offered(self, rows_per_batch: int, owner: object) -> pa.RecordBatchReader:
        """The same, except that whoever reads the first batch has the rows. Until then the result stays as it is, and can be offered again.

        InterfaceError: the rows have been read to their end. `owner` lives as long as the reader.
        """
        import pyarrow as pa

        if self.is_over:
            raise InterfaceError(_GONE, hint=_READ_ONCE)
        if self._offer is None:
            self._offer = Offer(self._batches(rows_per_batch))
        return pa.RecordBatchReader.from_batches(self._offer.batches.schema, self._taking(self._offer, owner))

    def _taking(self, offer: Offer, owner: object) -> Iterator[pa.RecordBatch]:
        with self._lock:
            if offer.is_taken:
                raise InterfaceError(_GONE, hint=_READ_ONCE)
            offer.is_taken = self.is_over = True
            self.close()
        yield from offer.batches

    def _batches(self, rows_per_batch: int) -> Batches:
        again = self._again
        if again is not None:  # without the lock: this waits for a statement of another thread, which may be about to close this result
            return again(rows_per_batch)
        with self._lock:
            cursor, guard, release = self._open(), self._guard, self._release
            assert guard is not None
            assert release is not None
            reader = self._read(lambda: uncomplaining(lambda: cursor.to_arrow_reader(rows_per_batch)))
            self._cursor, self._release = None, None
            self._is_handed_on = True
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
            self._cursor, self._offer = None, None
            release, self._release = self._release, None
            self._rows, self._next = [], 0
        if release is not None:
            release()

    def __del__(self) -> None:
        self.close()
