"""The one pipeline: SQL text → statements → operations → changes → commit → result. One session per connection.

Owns the transaction that is open. Threads may share a session: its statements queue. Nothing of sqlglot, DuckDB or SQLite
leaves it as it is: errors are ours, with the cause chained.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from lakelite import landing, results, standalone
from lakelite.errors import Error, InterfaceError, OperationalError, ProgrammingError
from lakelite.lake import Lake
from lakelite.language import statements as st
from lakelite.language.parse import iter_statements, parse_piece, split_script
from lakelite.opening import Opened
from lakelite.parameters import Parameters, names_of, values_of
from lakelite.results import Message, Result
from lakelite.settings import level_named
from lakelite.storage.engine_errors import translate
from lakelite.transaction.commit import CommitResult
from lakelite.transaction.execution import Call
from lakelite.transaction.transaction import Transaction


class Session:
    """An open lake, as one connection uses it. `autocommit` as in PEP 249: False means that a statement opens a transaction."""

    def __init__(self, opened: Opened, *, read_only: bool, author: str | None, isolation: str, autocommit: bool) -> None:
        self.autocommit = autocommit
        self.read_only = read_only
        self.author = author
        self.last_commit: CommitResult | None = None
        self.lake = Lake(opened, isolation)
        self._mutex = threading.RLock()
        self._owner_pid = os.getpid()
        self._tx: Transaction | None = None
        self._text = ""
        self._results: weakref.WeakSet[Result] = weakref.WeakSet()
        self._closed = False

    # Statements.

    def statements(self, script: str, parameters: Parameters = None) -> Iterator[Result]:
        """Runs a script, one result per statement, each run when it is asked for; an error belongs to its statement, and one may ask on.

        `parameters`: a sequence for `?` and `$1`, a mapping for `$name` and `:name`.
        """
        return _Script(self, script, parameters)

    def execute_many(self, text: str, parameter_sets: Sequence[Parameters]) -> Result:
        """One statement for many parameter sets, as one snapshot: INSERT … VALUES is one statement, others run one after the other."""
        with self._statement(text):
            found = list(iter_statements(text, names_of(parameter_sets[0]) if parameter_sets else None))
            if len(found) != 1:
                raise ProgrammingError(f"executemany takes one statement, not {len(found)}")
            statement = found[0]
            if not isinstance(statement.operation, st.Insert | st.Update | st.Delete):
                raise ProgrammingError("executemany is for INSERT, UPDATE and DELETE", hint="use execute for other statements")
            sets = [values_of(statement, p) for p in parameter_sets]
            return self._change(statement, sets) if sets else Result(None, rowcount=0)

    def run(self, statement: st.Statement, parameters: Parameters) -> Result:
        """Runs one parsed statement."""
        with self._statement(statement.text):
            return self._dispatch(statement, values_of(statement, parameters))

    @contextmanager
    def _statement(self, text: str) -> Iterator[None]:
        """One statement at a time, in the process that opened the session; DuckDB's errors become ours."""
        with self._mutex:
            self._check_usable()
            self._text = text
            self.lake.trim()
            try:
                yield
            except duckdb.Error as error:
                raise self._translated(error, text) from error
            except RuntimeError as error:
                raise results.interruption(error) from error

    def _check_usable(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")
        if os.getpid() != self._owner_pid:
            raise InterfaceError("this connection was opened in another process", hint="open a new one after the fork")

    def _translated(self, error: duckdb.Error, text: str) -> Error:
        view = self.lake.view
        namespace = self._tx.work.namespace if self._tx else view.namespace if view else None
        if namespace is None:
            return translate(error, text)
        return translate(error, text, [t.qualified for t in namespace.tables.values()], [s.name for s in namespace.schemas.values()])

    def _dispatch(self, statement: st.Statement, values: Mapping[str, Any]) -> Result:
        operation = statement.operation
        call = Call(statement.text, values)
        match operation:
            case st.Begin():
                return self._begin(operation)
            case st.Commit():
                return self.commit()
            case st.Rollback():
                return self.rollback()
            case st.SetOption():
                standalone.set_option(self.lake, self._tx, operation, read_only=self.read_only)
                return Result(None)
            case st.Vacuum():
                return standalone.run_vacuum(self.lake, self._tx, operation, call, read_only=self.read_only)
            case st.ShowTables() | st.ShowSchemas() | st.ShowSettings() | st.DescribeTable() | st.DescribeHistory():
                return standalone.look(self.lake, self._tx, operation, call)
            case st.Query() | st.CopyTo():
                return self._query(statement, values)
            case _:
                return self._change(statement, [values])

    # Transactions.

    @property
    def in_transaction(self) -> bool:
        return self._tx is not None

    @property
    def isolation(self) -> str:
        return self.lake.settings.isolation

    def _begin(self, operation: st.Begin) -> Result:
        if self._tx is not None:
            raise ProgrammingError("a transaction is already open", hint="COMMIT or ROLLBACK it first; nested transactions are not there")
        level = level_named(operation.isolation) if operation.isolation else self.isolation
        self._tx = self.lake.start(explicit=True, isolation=level, read_only=operation.read_only or self.read_only)
        return Result(None)

    def commit(self) -> Result:
        """Commits the open transaction; without one nothing happens. After an error it is rolled back and over."""
        with self._mutex:
            self._check_usable()
            tx, self._tx = self._tx, None
            if tx is None:
                return Result(None)
            try:
                return Result(None, messages=self._land(tx) if tx.work.changes.writes else ())
            except duckdb.Error as error:
                raise self._translated(error, self._text) from error
            finally:
                self.lake.unpin(tx)

    def rollback(self) -> Result:
        """Undoes the open transaction; without one nothing happens."""
        with self._mutex:
            self._check_usable()
            tx, self._tx = self._tx, None
            if tx is not None:
                self.lake.unpin(tx)
                tx.discard()
            return Result(None)

    def _land(self, tx: Transaction) -> list[Message]:
        self.last_commit, messages = landing.land(self.lake, tx, self.author, None)
        return messages

    @contextmanager
    def _ready(self) -> Iterator[Transaction]:
        """The open transaction, or a new one that is open from now on (PEP 249), or in autocommit one for this statement only."""
        if self._tx is None and self.autocommit:
            tx = self.lake.start(explicit=False, isolation=self.isolation, read_only=self.read_only)
            try:
                yield tx
            finally:
                self.lake.unpin(tx)
            return
        if self._tx is None:
            self._tx = self.lake.start(explicit=True, isolation=self.isolation, read_only=self.read_only)
        yield self._tx

    def _query(self, statement: st.Statement, values: Mapping[str, Any]) -> Result:
        text = statement.text
        with self._ready() as tx:
            done = tx.run(statement.operation, Call(text, values))
            if done.rows is None:
                return Result(None, rowcount=done.rowcount)
            snapshot, cursor, lake = min([tx.first_base, *tx.execution.pinned]), done.rows, self.lake
            lake.lease.pin(snapshot)

            def release() -> None:
                lake.engine.drop(cursor)
                lake.lease.unpin(snapshot)

            result = Result.of_query(cursor, lambda error: self._translated(error, text), release)
            self._results.add(result)
            return result

    def _change(self, statement: st.Statement, sets: Sequence[Mapping[str, Any]]) -> Result:
        operation = statement.operation
        with self._ready() as tx:
            if tx.read_only:
                raise OperationalError("this connection or transaction is read-only", hint="open the lake without read_only to change it")
            mark = tx.mark()
            try:
                count = self._run_sets(tx, operation, statement.text, sets)
                if tx.explicit:
                    return Result(None, rowcount=count)
            except BaseException:
                tx.reset(mark)
                raise
            messages = self._land(tx)
            return Result(None, rowcount=self._final_count(tx, count), messages=messages)

    def _run_sets(self, tx: Transaction, operation: st.Operation, text: str, sets: Sequence[Mapping[str, Any]]) -> int:
        if len(sets) > 1 and isinstance(operation, st.Insert) and operation.is_values and not operation.overwrite:
            return tx.run(operation, Call(text, {}), sets).rowcount
        return (
            sum(tx.run(operation, Call(text, values)).rowcount for values in sets)
            if len(sets) != 1
            else tx.run(operation, Call(text, sets[0])).rowcount
        )

    @staticmethod
    def _final_count(tx: Transaction, count: int) -> int:
        """Of the final effect: as the last replay had it, without the rows that a winner had deleted first."""
        return count if count < 0 else sum(max(0, entry.rowcount) for entry in tx.log) - tx.already_gone

    # The end.

    def interrupt(self) -> None:
        """Stops the running statement, from another thread: it raises OperationalError and is undone."""
        self.lake.engine.interrupt()

    def close(self) -> None:
        """Rolls back what is open and frees everything, also after an error, which is raised then. Again, or in a forked child: nothing happens."""
        if self._closed or os.getpid() != self._owner_pid:
            return
        with self._mutex:
            tx, self._tx = self._tx, None
            self._closed = True
            first: list[Callable[[], None]] = [] if tx is None else [tx.discard]
            self.lake.close([*first, *(result.close for result in list(self._results))])


class _Script(Iterator[Result]):
    """The statements of a script, run one by one. An error does not end it: the next statement can be asked for."""

    def __init__(self, session: Session, script: str, parameters: Parameters) -> None:
        self._session = session
        self._parameters = parameters
        self._named = names_of(parameters)
        self._pieces = split_script(script)

    def __next__(self) -> Result:
        piece = next(self._pieces)  # taken before it is parsed: one that is broken does not end the script
        return self._session.run(parse_piece(piece, self._named), self._parameters)
