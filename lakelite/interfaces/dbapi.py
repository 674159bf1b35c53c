"""The Python interface: PEP 249 with `con.execute` as a shortcut. A thin layer over the session."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from lakelite.errors import InterfaceError
from lakelite.opening import open_lake
from lakelite.parameters import Parameters
from lakelite.results import Message, Result
from lakelite.session import Session
from lakelite.settings import DEFAULT_LEVEL, level_named
from lakelite.transaction.commit import CommitResult

Row = tuple[Any, ...]
Description = list[tuple[str, Any, None, None, None, None, None]]


def connect(
    path: str | os.PathLike[str] = ":memory:",
    *,
    autocommit: bool = False,
    isolation: str = DEFAULT_LEVEL,
    read_only: bool = False,
    create: bool = True,
    author: str | None = None,
    preload: bool = True,
) -> Connection:
    """Opens the lake in directory `path`, or makes one there; ":memory:" is a temporary one.

    `autocommit`: each statement commits by itself; else (PEP 249) a statement opens a transaction that `commit()` ends.
    `author`: recorded with every snapshot. `preload`: load now what the first write of a process would
    wait for (0.2 s). Raises CannotOpen, and nothing was written.
    """
    level_named(isolation)
    opened = open_lake(_text(path), create=create, read_only=read_only)
    try:
        session = Session(opened, read_only=read_only, author=author, isolation=isolation, autocommit=autocommit)
    except BaseException:
        opened.close()
        raise
    if preload and not read_only:
        for library in ("pyarrow.compute", "pyroaring"):
            importlib.import_module(library)
    return Connection(session)


def _text(path: str | os.PathLike[str]) -> str:
    """The path of a lake as text; InterfaceError for what is none: `str(None)` would make a lake called None."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InterfaceError(f"the path of a lake is a str or a pathlib.Path, not {type(path).__name__}")
    return text


class Connection:
    """A connection to a lake. Threads may share it: its statements queue."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def cursor(self) -> Cursor:
        return Cursor(self, self._session)

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """A new cursor on which `sql` was executed."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameter_sets: Sequence[Parameters]) -> Cursor:
        return self.cursor().executemany(sql, parameter_sets)

    def statements(self, script: str, parameters: Parameters = None) -> Iterator[Cursor]:
        """Runs a script: one cursor per statement, each run when it is asked for. After an error the next one may be asked for."""
        return _Cursors(self, self._session, self._session.statements(script, parameters))

    def commit(self) -> None:
        """Commits the open transaction; without one nothing happens. TransactionConflict: it was rolled back."""
        self._session.commit()

    def rollback(self) -> None:
        self._session.rollback()

    def interrupt(self) -> None:
        """Stops the running statement; to be called from another thread."""
        self._session.interrupt()

    def close(self) -> None:
        """Rolls back an open transaction and closes. Again: nothing happens."""
        self._session.close()

    @property
    def autocommit(self) -> bool:
        return self._session.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if value and self._session.in_transaction:
            raise InterfaceError("a transaction is open", hint="commit() or rollback() before you switch autocommit on")
        self._session.autocommit = value

    @property
    def in_transaction(self) -> bool:
        return self._session.in_transaction

    @property
    def isolation(self) -> str:
        return self._session.isolation

    @property
    def last_commit(self) -> CommitResult | None:
        """The newest commit of this connection: snapshot, base, attempts, resolutions."""
        return self._session.last_commit

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._session.commit()
        finally:
            self._session.close()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None:
            session.close()


class Cursor:
    """One statement at a time and its result (PEP 249)."""

    def __init__(self, connection: Connection, session: Session) -> None:
        self.connection = connection
        self.arraysize = 1
        self._session = session
        self._result: Result | None = None
        self._closed = False

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Runs a statement, or several separated by semicolons; the result is that of the last. Returns the cursor."""
        self._reset()
        for result in self._session.statements(sql, parameters):
            if self._result is not None:
                self._result.close()
            self._result = result
        return self

    def executemany(self, sql: str, parameter_sets: Sequence[Parameters]) -> Cursor:
        """Runs INSERT, UPDATE or DELETE once per parameter set, as one snapshot."""
        self._reset()
        self._result = self._session.execute_many(sql, list(parameter_sets))
        return self

    def _reset(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self._result is not None:
            self._result.close()
            self._result = None

    def _take(self, result: Result) -> Cursor:
        self._result = result
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
    def messages(self) -> list[Message]:
        """(class, text) of everything that a user could want to know, such as how a commit met others."""
        return [] if self._result is None else self._result.messages

    def _rows(self) -> Result:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self._result is None or self._result.columns is None:
            raise InterfaceError("there is no result to fetch from", hint="execute a query first")
        return self._result

    def fetchone(self) -> Row | None:
        return self._rows().fetch_one()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        return self._rows().fetch(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        return self._rows().fetch(None)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchone, None)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """PEP 249; does nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """PEP 249; does nothing."""

    def close(self) -> None:
        if self._result is not None:
            self._result.close()
            self._result = None
        self._closed = True


class _Cursors(Iterator[Cursor]):
    """The statements of a script, one cursor each."""

    def __init__(self, connection: Connection, session: Session, found: Iterator[Result]) -> None:
        self._connection, self._session, self._found = connection, session, found

    def __next__(self) -> Cursor:
        return Cursor(self._connection, self._session)._take(next(self._found))
