"""What a statement hands back: columns and rows, streamed from DuckDB or held, a row count, and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from lakelite.errors import Error

Columns = tuple[tuple[str, Any], ...]
Message = tuple[type[Exception], str]


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
        translate: Callable[[duckdb.Error], Error] | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        self.columns = columns
        self.rowcount = rowcount
        self.messages = list(messages)
        self._rows = list(rows)
        self._next = 0
        self._cursor = cursor
        self._translate = translate
        self._release = release

    @classmethod
    def of_query(cls, cursor: duckdb.DuckDBPyConnection, translate: Callable[[duckdb.Error], Error], release: Callable[[], None]) -> Result:
        """A result that DuckDB streams. `release` frees the cursor; it is called once, when the last row has been read or the result is closed."""
        columns = tuple((d[0], d[1]) for d in cursor.description or ())
        return cls(columns, cursor=cursor, translate=translate, release=release)

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """The next `count` rows (None: all that are left); fewer, or none, at the end."""
        if self._cursor is None:
            stop = len(self._rows) if count is None else self._next + count
            found = self._rows[self._next : stop]
            self._next += len(found)
            return found
        try:
            found = self._cursor.fetchall() if count is None else self._cursor.fetchmany(count)
        except duckdb.Error as error:
            self.close()
            assert self._translate is not None
            raise self._translate(error) from error
        except RuntimeError as error:
            self.close()
            raise interruption(error) from error
        if count is None or len(found) < count:
            self.close()
        return found

    def fetch_one(self) -> tuple[Any, ...] | None:
        found = self.fetch(1)
        return found[0] if found else None

    def close(self) -> None:
        """Frees the cursor and the snapshot that it reads. Rows that were not read are gone. Again: nothing happens."""
        self._cursor = None
        release, self._release = self._release, None
        self._rows, self._next = [], 0
        if release is not None:
            release()

    def __del__(self) -> None:
        self.close()


def interruption(error: RuntimeError) -> BaseException:
    """What DuckDB makes of Ctrl-C is a RuntimeError; for everybody else it is a KeyboardInterrupt. Any other one stays what it is."""
    return KeyboardInterrupt() if "Query interrupted" in str(error) else error
