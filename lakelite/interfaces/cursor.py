"""A cursor (PEP 249): one statement at a time and its result. A thin layer over the session."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from lakelite.errors import Error, InterfaceError
from lakelite.interfaces import scope
from lakelite.interfaces.exchange import Exports
from lakelite.parameters import Parameters, sets_of
from lakelite.results import Message, Result
from lakelite.session import Session
from lakelite.storage.foreign import Variables

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import Connection

Row = tuple[Any, ...]
Description = list[tuple[str, Any, None, None, None, None, None]]

_READ_TO_END = 10_000


class Cursor(Exports):
    """One statement at a time and its result (PEP 249). Threads may share a connection, but each takes a cursor of its own.

    `messages`: (class, text) of everything that a user could want to know of the last call, such as how a commit met others,
    or the error that it raised. `arraysize`: how many rows `fetchmany()` gives.
    """

    def __init__(self, connection: Connection, session: Session) -> None:
        self.connection = connection
        self.arraysize = 1
        self.messages: list[Message] = []
        self._session = session
        self._result: Result | None = None
        self._fetched = 0
        self._closed = False

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Runs a statement, or several separated by semicolons; the result is that of the last. Returns the cursor."""
        with scope.of_caller() as variables, self._call():
            for result in self._session.statements(sql, parameters, variables):
                self._take(result)
        return self

    def executemany(self, sql: str, parameter_sets: Iterable[Parameters]) -> Cursor:
        """Runs INSERT, UPDATE or DELETE once per parameter set, as one snapshot: all of it, or after an error nothing."""
        with scope.of_caller() as variables, self._call():
            self._take(self._session.execute_many(sql, sets_of(parameter_sets), variables))
        return self

    def executescript(self, script: str) -> Cursor:
        """Runs the statements of a script one by one, each to its end, up to the first that fails. Rows of queries are not kept."""
        with scope.of_caller() as variables, self._call():
            for result in self._session.statements(script, variables=variables):
                self._take(result)
                while result.columns is not None and result.fetch(_READ_TO_END):
                    pass
            self._forget()
        return self

    @contextmanager
    def _call(self) -> Iterator[None]:
        """What every call that runs SQL begins with; an error is among the messages too."""
        self._check_open()
        self._forget()
        self.messages.clear()
        try:
            yield
        except Error as error:
            self.messages.append((type(error), str(error)))
            raise

    def _forget(self) -> None:
        """Lets the last result go."""
        result, self._result, self._fetched = self._result, None, 0
        if result is not None:
            result.close()

    def _take(self, result: Result) -> Cursor:
        self._forget()
        self._result = result
        self.messages += result.messages
        return self

    @property
    def description(self) -> Description | None:
        """(name, type, None, None, None, None, None) of each column, or None; a type's str() is DuckDB's name for it."""
        if self._result is None or self._result.columns is None:
            return None
        return [(name, kind, None, None, None, None, None) for name, kind in self._result.columns]

    @property
    def rowcount(self) -> int:
        """Rows inserted, deleted or updated, of the final effect; -1 where none applies."""
        return -1 if self._result is None else self._result.rowcount

    @property
    def rownumber(self) -> int | None:
        """How many rows were fetched, which is the index of the next one; None without a result. What an export took is not counted."""
        return None if self.description is None else self._fetched

    @property
    def lastrowid(self) -> None:
        """None: rows have no ids that SQL could use."""
        return

    def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        row = self._rows().fetch_one()
        if row is not None:
            self._fetched += 1
        return row

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` rows (None: `arraysize`); fewer, or none, at the end."""
        rows = self._rows().fetch(_count(self.arraysize if size is None else size))
        self._fetched += len(rows)
        return rows

    def fetchall(self) -> list[Row]:
        """The rows that are left."""
        rows = self._rows().fetch(None)
        self._fetched += len(rows)
        return rows

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def _rows(self) -> Result:
        self._check_open()
        result = self._result
        if result is None or result.columns is None:
            raise InterfaceError("there are no results to fetch", hint="execute a query first")
        return result

    def _left(self) -> Result:
        result = self._rows()
        if not result.is_streamed:
            self._result = result = self._session.streamed(result)
        return result

    def _alone(self, *, whole: bool) -> AbstractContextManager[None]:
        return self._session.exporting(whole=whole)

    def append(self, table: str, data: object) -> Cursor:
        """Adds rows to a table by column name, as one statement; see Connection.append."""
        with self._call():
            self._take(self._session.append(table, data))
        return self

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed", hint="con.cursor() makes another")
        self._session.check_usable()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """PEP 249; does nothing."""
        self._check_open()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """PEP 249; does nothing."""
        self._check_open()

    def close(self) -> None:
        """Lets the result go. Again: nothing happens."""
        self._forget()
        self._closed = True

    def __enter__(self) -> Cursor:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursors(Iterator[Cursor]):
    """The statements of a script, one cursor each, run when they are asked for."""

    def __init__(self, connection: Connection, session: Session, script: str, parameters: Parameters, variables: Variables | None) -> None:
        self._connection, self._session = connection, session
        self._variables = scope.Latest()
        self._found = session.statements(script, parameters, variables or self._variables)

    def __next__(self) -> Cursor:
        with scope.of_caller() as self._variables.scope:
            return Cursor(self._connection, self._session)._take(next(self._found))


def _count(size: Any) -> int:
    """A number of rows; InterfaceError for what is none."""
    try:
        count = operator.index(size)
    except TypeError:
        count = -1
    if count < 0:
        raise InterfaceError("the number of rows to fetch is a whole number, 0 or more", hint="fetchall() gives all of them")
    return min(count, sys.maxsize)
