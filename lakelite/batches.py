"""A result as a stream of Arrow batches, which DuckDB makes when they are asked for.

Owns how such a stream ends: read to its end, after an error, closed or collected, it frees what it reads, once.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from lakelite.errors import InterfaceError
from lakelite.forks import never_ended_by_a_child
from lakelite.mapping.engine_errors import carried
from lakelite.storage.locks import refuse_fork

if TYPE_CHECKING:
    import pyarrow as pa

_Taken = TypeVar("_Taken")


class Guard(Protocol):
    """Runs one reading of a DuckDB cursor: within the time limit, and with errors that are ours."""

    def __call__(self, read: Callable[[], _Taken], /) -> _Taken: ...


class Batches(Iterator["pa.RecordBatch"]):
    """The batches of `reader`, read within `guard`. `release` frees the snapshot that they are read from. `owner` lives as long."""

    def __init__(self, reader: pa.RecordBatchReader, guard: Guard, release: Callable[[], None]) -> None:
        never_ended_by_a_child(self)
        self.schema: pa.Schema = reader.schema
        self._reader: pa.RecordBatchReader | None = reader
        self._guard = guard
        self._release: Callable[[], None] | None = release
        self.owner: object = None
        self._ended = False
        self._owner_pid = os.getpid()
        self._lock = threading.RLock()

    def reader(self) -> pa.RecordBatchReader:
        """The batches as pyarrow has them. The errors of a batch are ours; pyarrow's `close` of it does not reach this object."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self)

    def __next__(self) -> pa.RecordBatch:
        refuse_fork(self._owner_pid)
        with self._lock:
            reader = self._reader
            if reader is None and not self._ended:
                raise InterfaceError("the reader was closed, or its connection was", hint="execute the query again")
            batch = None if reader is None else self._read(reader)
            if batch is None:
                self._ended = True
                self.close()
                raise StopIteration
            return batch

    def _read(self, reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
        try:
            return self._guard(lambda: _next(reader))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Frees the snapshot, after a reading that goes on in another thread. Again, or in a forked child: nothing happens."""
        if os.getpid() != self._owner_pid:
            return
        with self._lock:
            reader, self._reader = self._reader, None
            release, self._release = self._release, None
        if reader is not None and release is not None:
            reader.close()
            release()

    def __del__(self) -> None:
        self.close()


def _next(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    """The next batch, or None at the end."""
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except OSError as error:
        theirs = carried(error)
        if theirs is None:
            raise
        raise theirs from error


def uncomplaining(export: Callable[[], _Taken]) -> _Taken:
    """What a cursor's Arrow export gives, without DuckDB's warning that it is a copy: there is no other way to rows that are left."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
        return export()
