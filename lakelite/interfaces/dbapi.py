"""The Python interface: PEP 249 with `con.execute` as a shortcut. A thin layer over the session."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelite import errors
from lakelite.endings import entering
from lakelite.errors import InterfaceError
from lakelite.interfaces.block import TransactionBlock
from lakelite.interfaces.cursor import Cursor, Cursors
from lakelite.maintenance.check import told_as_damage
from lakelite.mapping.ours import opening
from lakelite.model import DEFAULT_LEVEL, MAIN_BRANCH, fold
from lakelite.opening import open_lake
from lakelite.parameters import Parameters
from lakelite.results import Message
from lakelite.session import Session
from lakelite.settings import level_named, text_setting
from lakelite.storage.foreign import Variables
from lakelite.transaction.commit import CommitResult
from lakelite.transaction.resolve import Resolution

if TYPE_CHECKING:
    import duckdb

__all__ = ["CommitResult", "Connection", "Cursor", "Resolution", "connect"]


def connect(
    path: str | os.PathLike[str] = ":memory:",
    *,
    autocommit: bool = False,
    isolation: str = DEFAULT_LEVEL,
    read_only: bool = False,
    create: bool = True,
    author: str | None = None,
    branch: str = MAIN_BRANCH,
    preload: bool = True,
    safe: bool = False,
    private: bool = False,
) -> Connection:
    """Opens the lake in directory `path`, or makes one there unless `create` is False; ":memory:" is a temporary one.

    `autocommit`: each statement commits by itself; else (PEP 249) a statement opens a transaction that `commit()` ends.
    `isolation`: the level of its transactions. `branch`: the one that they are on. `author`: recorded with every snapshot.
    `preload`: load now what the first write of a process would wait for (0.2 s). `safe`: as `confine()`, before anything is read, and
    all of the catalog is looked at first: for a lake, or SQL, from somebody else. `private`: a lake that is made can be entered by its
    owner only (mode 0700). Raises CannotOpen, and nothing was written;
    InterfaceError or DataError for wrong arguments, ProgrammingError for a branch that is not there.
    """
    level_named(isolation)
    _check_arguments(author, branch, autocommit=autocommit, read_only=read_only, create=create, preload=preload, safe=safe, private=private)
    place = _text(path)
    with entering(), opening():
        is_made = create and fold(branch) == MAIN_BRANCH  # a new lake has no other one
        opened = open_lake(place, create=is_made, read_only=read_only, whole=safe, private=private)
        try:
            with told_as_damage(opened.catalog):
                session = Session(opened, read_only=read_only, author=author, isolation=isolation, autocommit=autocommit)
        except BaseException:
            opened.close()
            raise
    connection = Connection(session)
    try:
        if safe:
            session.confine()
        if branch != MAIN_BRANCH:
            session.use_branch(branch)
        if preload:  # the words for errors too: a process that has no descriptor or disk left could not load them when it needs them
            for module in ("lakelite.mapping.wording", *(() if read_only else ("pyarrow.compute", "pyroaring"))):
                importlib.import_module(module)
    except BaseException:
        connection.close()
        raise
    return connection


def _text(path: str | os.PathLike[str]) -> str:
    """The path of a lake as text; InterfaceError for what is none: `str(None)` would make a lake called None."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InterfaceError(f"the path of a lake is a str or a pathlib.Path, not {type(path).__name__}", hint='":memory:" is a temporary lake')
    if not text:
        raise InterfaceError("the path of the lake is empty", hint='"." is the current directory, ":memory:" a temporary lake')
    return text


def _check_switch(name: str, value: object) -> None:
    if value not in (True, False):
        raise InterfaceError(f"{name} is True or False", hint="give one of them")


def _check_arguments(author: object, branch: object, **switches: object) -> None:
    for name, value in switches.items():
        _check_switch(name, value)
    if author is not None and not isinstance(author, str):
        raise InterfaceError(f"an author is a str, not {type(author).__name__}", hint="None stands for the name of the user")
    text_setting("author", author)
    if not isinstance(branch, str):
        raise InterfaceError(f"a branch is a str, not {type(branch).__name__}", hint='"main" is the one that each lake has')


class Connection:
    """A connection to a lake. Threads may share it: its statements queue, and share the transaction that is open.

    `messages`: (class, text) of what a user could want to know of the last commit() or rollback(), or the error that it raised.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: Session) -> None:
        self.messages: list[Message] = []
        self._session = session
        self._blocks = threading.RLock()

    def cursor(self) -> Cursor:
        """A new cursor, without a result. InterfaceError: the connection is closed."""
        self._session.check_usable()
        self.messages.clear()
        return Cursor(self, self._session)

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """A new cursor on which `sql` was executed."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameter_sets: Iterable[Parameters]) -> Cursor:
        """A new cursor on which `sql` was executed once per parameter set, as one snapshot."""
        return self.cursor().executemany(sql, parameter_sets)

    def executescript(self, script: str) -> Cursor:
        """A new cursor on which the statements of a script were executed one by one; rows of queries are not kept."""
        return self.cursor().executescript(script)

    def statements(self, script: str, parameters: Parameters = None, variables: Variables | None = None) -> Iterator[Cursor]:
        """Runs a script: one cursor per statement, each run when it is asked for. After an error the next one may be asked for.

        `variables`: the value of a variable that SQL can name as a table, or None; without it those of the code that asks for a statement.
        """
        return Cursors(self, self._session, script, parameters, variables)

    def append(self, table: str, data: object) -> Cursor:
        """Adds rows to a table, by column name: columns that are missing get their defaults. Returns a cursor; see its rowcount.

        `table`: as it is written in SQL. `data`: a pandas or Polars DataFrame (an index is no column), a pyarrow Table,
        RecordBatch, RecordBatchReader or Dataset, or any object with `__arrow_c_stream__` or `__arrow_c_array__`. One statement:
        all of it, or after an error nothing. Memory does not grow with the rows of a reader.
        """
        return self.cursor().append(table, data)

    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """A read-only DuckDB connection with the lake's tables as views, for Ibis and others; temporary tables can be made in it.

        It shows one committed snapshot, that of the open transaction or else the newest, which is kept until the connection
        (or this one) is closed or collected. `lake_snapshot_id()` in it tells which. What is read there is no part of a transaction.
        """
        return self._session.open_duckdb()

    def ibis(self) -> Any:
        """Ibis' DuckDB backend over what `duckdb()` gives: `con.ibis().table("t")`. Its `disconnect()` frees the snapshot."""
        from lakelite.interfaces.ibis import over

        return over(self.duckdb())

    def commit(self) -> None:
        """Commits the open transaction; without one nothing happens. TransactionConflict: it was rolled back.

        OperationalError: the error says whether it is over, or still open (`in_transaction`), so that `commit` can be called again.
        """
        with self.call():
            self.messages += self._session.commit().messages

    def rollback(self) -> None:
        """Undoes the open transaction; without one nothing happens."""
        with self.call():
            self._session.rollback()

    @contextmanager
    def call(self) -> Iterator[None]:
        """The messages are those of this call, its error among them."""
        self.messages.clear()
        try:
            yield
        except errors.Error as error:
            self.messages.append((type(error), str(error)))
            raise

    def transaction(self) -> TransactionBlock:
        """`with con.transaction():` commits what the block did, or rolls it back on an exception; inside a transaction it is a savepoint.

        Without autocommit a statement in front of the block has opened a transaction: then the block is a savepoint of that one.
        """
        return TransactionBlock(self, self._session, self._blocks)

    def interrupt(self) -> None:
        """Stops the running statement, and results that are not read to their end; to be called from another thread."""
        self._session.interrupt()

    def close(self) -> None:
        """Rolls back an open transaction and closes, once a statement or fetch of another thread is done. Again: nothing happens."""
        self._session.close()

    @property
    def autocommit(self) -> bool:
        """Whether each statement commits by itself; can be switched on while no transaction is open."""
        return self._session.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        with self._session.exclusive():
            _check_switch("autocommit", value)
            if value and self._session.in_transaction:
                raise InterfaceError("a transaction is open", hint="commit() or rollback() before you switch autocommit on")
            self._session.autocommit = bool(value)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, by BEGIN or, without autocommit, by a statement."""
        return self._session.in_transaction

    @property
    def branch(self) -> str:
        """The branch that transactions are on: USE BRANCH changes it."""
        return self._session.branch

    @property
    def isolation(self) -> str:
        """The level of the transactions that begin from now on; can be set."""
        return self._session.isolation

    @isolation.setter
    def isolation(self, level: str) -> None:
        self._session.isolation = level

    @property
    def pinned_version(self) -> int | None:
        """The version of the lake that all statements read, which then cannot change anything; None, the default: the newest.

        Can be set while no transaction is open. ProgrammingError for a version that is none, OperationalError for one that has expired.
        """
        return self._session.pinned_version

    @pinned_version.setter
    def pinned_version(self, version: int | None) -> None:
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise InterfaceError("a version is a whole number, or None", hint="DESCRIBE HISTORY lists the versions; None is the newest")
        self._session.pinned_version = version

    def confine(self) -> None:
        """Safe mode, for good: statements use no file outside of the lake, and no variable of the caller's.

        NotSupportedError, OperationalError or ProgrammingError for those that would. `connect(safe=True)` begins with it.
        """
        self._session.confine()

    def follow_progress(self) -> None:
        """Has DuckDB count how far a statement is, for `query_progress`; it costs a little, so nothing is counted before."""
        self._session.follow_progress()

    def query_progress(self) -> float | None:
        """How many percent of the running statement are done, to be asked from another thread; None where DuckDB cannot say."""
        return self._session.query_progress()

    @property
    def on_progress(self) -> Callable[[int, int], None] | None:
        """What an OPTIMIZE calls for each file that it has written, with the rows written so far and the rows that it writes in all.

        It runs in the statement, and must not use the connection. Can be set; None, the default: nothing is called.
        """
        return self._session.lake.progress

    @on_progress.setter
    def on_progress(self, callback: Callable[[int, int], None] | None) -> None:
        with self._session.exclusive():
            self._session.lake.progress = callback

    @property
    def last_commit(self) -> CommitResult | None:
        """The newest commit of this connection; None where nothing was committed yet. Upkeep that came behind it does not count."""
        return self._session.last_commit

    def __copy__(self) -> Connection:
        raise InterfaceError("a connection cannot be copied", hint="open another one with connect()")

    def __enter__(self) -> Connection:
        self._session.check_usable()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._session.commit(keep=False)
        finally:
            self._session.close()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None:
            session.close()
