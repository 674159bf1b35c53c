"""The one pipeline: SQL text → statements → operations → changes → commit → result. One session per connection.

Owns the transaction that is open. Threads may share a session: its statements queue. Nothing of sqlglot, DuckDB or SQLite
leaves it as it is: errors are ours, with the cause chained.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from lakelite import branching, errors, landing, standalone
from lakelite.batches import Batches
from lakelite.endings import settle_at_exit
from lakelite.errors import Error, InterfaceError, ProgrammingError
from lakelite.lake import Lake
from lakelite.language import statements as st
from lakelite.language.parse import iter_statements, parse_append
from lakelite.maintenance.check import told_as_damage
from lakelite.mapping.names import NO_NAMES, Names
from lakelite.mapping.ours import mapped, reraise
from lakelite.mapping.sets import failed_in
from lakelite.mapping.withheld import withhold
from lakelite.model import Isolation
from lakelite.opening import Opened
from lakelite.parameters import Parameters, explain_colon, names_of, path_of, text_of, values_of, values_of_sets
from lakelite.readings import Readings
from lakelite.results import Message, Result
from lakelite.scripts import Script, Where
from lakelite.settings import DUCKDB_SETTINGS, level_named
from lakelite.storage.foreign import Rows, Variables
from lakelite.storage.locks import refuse_fork
from lakelite.storage.temporary import NOTHING, Temporaries
from lakelite.timeouts import Watch
from lakelite.transaction import merge_conflicts, temporary
from lakelite.transaction.commit import CommitResult
from lakelite.transaction.execution import Call, Stream
from lakelite.transaction.nameable import nameable
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.views import sound
from lakelite.transfer import export, take_in

SETTLING_S = 0.05
_UNLIMITED = nullcontext()
_LOST: tuple[Message, ...] = ((errors.Warning, "nothing was committed: the transaction was over when its COMMIT failed"),)
_LEAVE_THE_BLOCK = "leave the block to commit what it did, or raise an exception in it to roll it back"


class Session:
    """An open lake, as one connection uses it. `autocommit` as in PEP 249: False means that a statement opens a transaction."""

    def __init__(self, opened: Opened, *, read_only: bool, author: str | None, isolation: str, autocommit: bool) -> None:
        self.autocommit = autocommit
        self.read_only = read_only
        self.last_commit: CommitResult | None = None
        self.lake = Lake(opened, isolation, author)
        self._turns = self.lake.engine.turns
        self._owner_pid = os.getpid()
        self._tx: Transaction | None = None
        self._blocks: set[object] = set()
        self._where = Where("")
        self._readings = Readings(self.lake, self._limited)
        self._watch = Watch()
        self._closed = False
        self._lost: tuple[Message, ...] = ()  # what a COMMIT is told behind one that failed
        self._is_confined = False
        self._exports = threading.RLock()
        settle_at_exit(self)

    # Statements.

    def statements(self, script: str, parameters: Parameters = None, variables: Variables | None = None) -> Iterator[Result]:
        """Runs a script, one result per statement, each run when it is asked for; an error belongs to its statement, and one may ask on.

        `parameters`: a sequence for `?` and `$1`, a mapping for `$name` and `:name`. `variables`: the caller's, of which those
        that hold a table can be named in SQL.
        """
        return Script(script, parameters, lambda statement, where: self.run(statement, parameters, where, variables))

    def execute_many(self, text: str, parameter_sets: Sequence[Parameters], variables: Variables | None = None) -> Result:
        """One statement for many parameter sets, as one snapshot: INSERT … VALUES is one statement, others run one after the other."""
        try:
            with self._statement(text_of(text), variables):
                return self._execute_many(text, parameter_sets)
        except Error as error:
            if isinstance(error, ProgrammingError) and parameter_sets:
                explain_colon(error, text, parameter_sets[0])
            withhold(error, text, *failed_in(error, parameter_sets))
            raise

    def _execute_many(self, text: str, parameter_sets: Sequence[Parameters]) -> Result:
        found = list(iter_statements(text, names_of(parameter_sets[0]) if parameter_sets else None))
        if len(found) != 1:
            raise ProgrammingError(f"executemany takes one statement, not {len(found)}", hint="executescript runs several, without values")
        statement = found[0]
        operation = statement.operation
        if not isinstance(operation, st.Insert | st.Update | st.Delete | st.Merge) or operation.returning is not None:
            what = "executemany is for INSERT, UPDATE, DELETE and MERGE without RETURNING"
            raise ProgrammingError(what, hint="use execute for other statements")
        sets = values_of_sets(statement, parameter_sets)
        if isinstance(operation, st.Update) and merge_conflicts.are_meant(operation):
            return Result(None, rowcount=sum(self._resolve(operation, Call(statement.text, values)).rowcount for values in sets))
        return self._change(statement, sets) if sets else Result(None, rowcount=0)

    def run(self, statement: st.Statement, parameters: Parameters, where: Where, variables: Variables | None = None) -> Result:
        """Runs one parsed statement. An error counts its place from the beginning of the statement; one of a fetch is placed by `where`."""
        try:
            with self._statement(statement.text, variables):
                self._where = where
                return self._dispatch(statement, values_of(statement, parameters))
        except ProgrammingError as error:
            explain_colon(error, statement.text, parameters)
            raise

    def append(self, name: str, data: object) -> Result:
        """Adds the rows of `data` to a table, by column name. `name`: of the table, as it is written in SQL; `data`: see storage.foreign."""
        self.check_usable()
        if not isinstance(name, str):
            raise InterfaceError(
                f"the name of a table is a str, not {type(name).__name__}", hint='the data is the second argument: con.append("t", data)'
            )
        try:
            with closing(Rows(data)) as rows:
                statement = parse_append(name, rows)
                with self._statement(statement.text):
                    return self._change(statement, [{}])
        except Error as error:
            error.position = None  # nobody wrote the text that history has for it
            raise

    @contextmanager
    def _statement(self, text: str, variables: Variables | None = None) -> Iterator[None]:
        """One statement at a time, in the process that opened the session; errors of other libraries become ours."""
        with self.exclusive(), self._watch.interruptible(), self._framed(text, variables):
            self.lake.trim()
            yield

    @contextmanager
    def _framed(self, text: str, variables: Variables | None = None) -> Iterator[None]:
        with self._turns.statement(), self.lake.engine.frames.visible(None if self._is_confined else variables), mapped(text, self._names):
            yield

    def check_usable(self) -> None:
        """InterfaceError where the session was closed, or was opened by another process."""
        refuse_fork(self._owner_pid)
        if self._closed:
            raise InterfaceError("the connection is closed", hint="lakelite.connect(…) opens another")

    def _names(self) -> Names:
        view = self.lake.view
        namespace = self._tx.work.namespace if self._tx else view.namespace if view else None
        return NO_NAMES if namespace is None else nameable(self.lake.engine, namespace, self._temporaries)

    def _dispatch(self, statement: st.Statement, values: Mapping[str, Any]) -> Result:
        operation = statement.operation
        standalone.check_pinned(self.lake.pinned_version, operation)
        if self._is_confined:
            standalone.check_confined(operation)
        call = Call(statement.text, values)
        match operation:
            case st.Begin():
                return self._begin(operation)
            case st.Commit():
                return self._ended(self.commit, "COMMIT")
            case st.Rollback():
                return self._ended(self.rollback, "ROLLBACK")
            case st.ExplainCommit():
                return standalone.explain_commit(self.lake, self._tx)
            case st.Savepoint() | st.Release() | st.RollbackTo():
                return self._savepoint(operation, call)
            case st.Optimize():
                return self._optimize(operation, call)
            case st.Export() | st.Import():
                return self._transfer(operation, values)
            case st.Backup():
                with self._limited(self.lake.engine.stopper):
                    return standalone.back_up(self.lake, self._tx, path_of(operation, values), self._watch.check_stopped)
            case st.Query() | st.CopyTo():
                return self._query(statement, values)
            case st.MergeBranch():
                return self._merge_branch(operation, call)
            case st.Update() if merge_conflicts.are_meant(operation):
                return self._resolve(operation, call)
            case _ if isinstance(operation, st.OfBranches):
                return branching.run(self.lake, self._tx, operation, call, read_only=self.read_only)
            case _ if isinstance(operation, st.Standalone):
                with self._limited(self.lake.engine.stopper):
                    return standalone.run(self.lake, self._tx, operation, call, read_only=self.read_only)
            case _:
                return self._change(statement, [values])

    # Transactions.

    @property
    def in_transaction(self) -> bool:
        return self._tx is not None

    @property
    def branch(self) -> str:
        """The branch that transactions are on."""
        return self.lake.branch.name

    def use_branch(self, name: str) -> None:
        """As USE BRANCH."""
        with self.exclusive(), mapped():
            branching.use(self.lake, self._tx, name, None)

    @property
    def isolation(self) -> Isolation:
        """The level of the transactions that begin from now on."""
        return self.lake.settings.isolation

    @isolation.setter
    def isolation(self, level: str) -> None:
        with self.exclusive():
            self.lake.settings.isolation = level_named(level)

    @property
    def pinned_version(self) -> int | None:
        """The version that all statements read; None: the newest. Can be set while no transaction is open."""
        return self.lake.pinned_version

    @pinned_version.setter
    def pinned_version(self, version: int | None) -> None:
        with self.exclusive(), mapped():
            if self._tx is not None:
                raise InterfaceError("a transaction is open", hint="COMMIT or ROLLBACK it first")
            self.lake.stay_at(version)

    @contextmanager
    def exclusive(self, *, exports: bool = False) -> Iterator[None]:
        """No other thread runs a statement within the block. InterfaceError in code whose rows a statement reads, since that waits for it.

        `exports`: the block gives the rows of a result, and may do so where a statement of this thread only begins to read them.
        """
        refuse_fork(self._owner_pid)  # a thread that had its turn is not in the child, and never gives it back
        with self._turns.taken(exports=exports), told_as_damage(self.lake.catalog):
            self.check_usable()
            yield

    @contextmanager
    def exporting(self, *, whole: bool) -> Iterator[None]:
        """No other thread makes an Arrow table of a result within the block; `whole`: nor runs a statement, which may keep rows as Arrow."""
        with self._exports, self.exclusive(exports=True) if whole else nullcontext():
            yield

    def _begin(self, operation: st.Begin) -> Result:
        if self._tx is not None:
            raise ProgrammingError("a transaction is already open", hint="COMMIT or ROLLBACK it first; SAVEPOINT marks a point inside it")
        level = level_named(operation.isolation) if operation.isolation else self.isolation
        self._tx = self._start(level, read_only=operation.read_only)
        return Result(None)

    def _start(self, isolation: Isolation, *, read_only: bool = False) -> Transaction:
        """A transaction that lasts for several statements."""
        self._lost = ()
        return self.lake.start(explicit=True, isolation=isolation, read_only=read_only or self.read_only)

    def commit(self, *, keep: bool = True) -> Result:
        """Commits the open transaction; without one nothing happens. After an error it is over.

        `keep`: it stays open instead where nothing stands against trying again: nothing was published, and its work is as it was.
        """
        with self._ending("COMMIT"):
            return self._commit(keep=keep)

    def rollback(self) -> Result:
        """Undoes the open transaction; without one nothing happens."""
        with self._ending("ROLLBACK"):
            return self._roll_back()

    def _ended(self, end: Callable[[], Result], what: str) -> Result:
        """COMMIT or ROLLBACK as a statement, of which somebody who forgot BEGIN should hear. (PEP 249's calls are silent.)"""
        is_idle = self.autocommit and self._tx is None
        result = end()
        if is_idle and not result.messages:
            result.messages.append((errors.Warning, f"no transaction was open: {what} did nothing"))
        return result

    @contextmanager
    def _ending(self, what: str) -> Iterator[None]:
        """The block ends the transaction. ProgrammingError within `transaction()`, which ends it at its own end."""
        with self.exclusive(), mapped():
            if self._blocks:
                raise ProgrammingError(f"{what} inside a transaction() block", hint=_LEAVE_THE_BLOCK)
            yield

    def _commit(self, *, keep: bool) -> Result:
        tx, self._tx = self._tx, None
        if tx is None:
            lost, self._lost = self._lost, ()
            return Result(None, messages=lost)
        self._lost = _LOST
        try:
            messages: list[Message] = []
            with mapped():
                if tx.work.changes.writes:
                    messages = self._land(tx, keep=keep)
                else:
                    tx.discard()
            self.lake.engine.temporary.current = tx.execution.temporaries
            self._lost = ()
            return Result(None, messages=messages)
        except Error as error:
            landing.say_what_became(tx, error)
            raise
        finally:
            if tx.stays_open:
                self._tx = tx
            else:
                self.lake.unpin(tx)

    def _roll_back(self) -> Result:
        tx, self._tx = self._tx, None
        self._lost = ()
        if tx is not None:
            self.lake.unpin(tx)
            tx.discard()
        return Result(None)

    def _savepoint(self, operation: st.Savepoint | st.Release | st.RollbackTo, call: Call) -> Result:
        """SAVEPOINT, RELEASE and ROLLBACK TO; as any statement, they open the implicit transaction where there is none."""
        if self._tx is None and self.autocommit:
            raise ProgrammingError("savepoints are for transactions, and none is open", hint="BEGIN opens one")
        with self._ready() as tx:
            match operation:
                case st.Savepoint():
                    tx.savepoint(operation.name)
                case st.Release():
                    tx.release(operation, call)
                case st.RollbackTo():
                    tx.roll_back_to(operation, call)
        return Result(None)

    def begin_block(self, block: object) -> bool:
        """Begins a `transaction()` block; until `end_block` nothing else ends the transaction. Whether it has a transaction of its own."""
        with self.exclusive(), mapped():
            is_own = self._tx is None
            if self._tx is None:
                self._tx = self._start(self.isolation)
            else:
                self._tx.begin_block(block)
            self._blocks.add(block)
            return is_own

    def end_block(self, block: object, *, is_own: bool, failed: bool) -> Result:
        """Commits or rolls back what the block did, or inside a transaction keeps it or takes it back.

        InterfaceError where the transaction is over and nothing has failed: the connection was closed, or an outer block ended first.
        """
        self._blocks.discard(block)
        if self._closed and failed:
            return Result(None)
        with self.exclusive(), mapped():
            if is_own:
                return self._roll_back() if failed else self._commit(keep=False)
            if self._tx is not None and self._tx.has_block(block):
                self._tx.end_block(block, failed=failed)
            elif not failed:
                raise InterfaceError("the transaction of this block has ended before it", hint="end inner blocks before outer ones")
            return Result(None)

    def _land(self, tx: Transaction, *, keep: bool = False) -> list[Message]:
        self.last_commit, messages = landing.land(self.lake, tx, keep=keep)
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
            self._tx = self._start(self.isolation)
        yield self._tx

    def _limited(self, stopper: Callable[[], Callable[[], None]]) -> AbstractContextManager[None]:
        """A block that statement_timeout_ms applies to. `stopper` makes the function that stops it."""
        milliseconds = self.lake.settings.limits.statement_timeout_ms
        return self._watch.limit(milliseconds, stopper()) if milliseconds else _UNLIMITED

    def _query(self, statement: st.Statement, values: Mapping[str, Any]) -> Result:
        text = statement.text
        with self._ready() as tx:
            with tx.statement(statement.operation, text, [values]), self._limited(self.lake.engine.stopper):
                done = tx.run(statement.operation, Call(text, values))
            if done.rows is None:
                return Result(None, rowcount=done.rowcount, messages=landing.noted(tx))
            snapshot = min([tx.first_base, *tx.execution.pinned])
            again = None if done.again is None else partial(self._stream, tx, done.again, snapshot, text, self._where)
            result = self._readings.result(tx, done.rows, text, self._where, [snapshot], again)
            result.messages += landing.noted(tx)
            return result

    def _stream(self, tx: Transaction, again: Callable[[int], Stream], snapshot: int, text: str, where: Where, rows_per_batch: int) -> Batches:
        """A query once more, as Arrow batches; its result has to be open still, which keeps the snapshot."""
        with self.exclusive(exports=True), mapped(text, self._names):
            try:
                with self._limited(self.lake.engine.stopper):
                    stream = again(rows_per_batch)
            except Exception as error:
                reraise(error, text, self._names(), where.place)
            return self._readings.batches(tx, stream, text, where, snapshot)

    def streamed(self, result: Result) -> Result:
        """The rows that are left of a result whose rows are held, as a result that DuckDB streams."""
        with self.exclusive(exports=True), mapped():
            return self._readings.streamed(result)

    def open_duckdb(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection of its own with the lake's tables as views, at the snapshot that a transaction reads now."""
        with self.exclusive(), mapped():
            if self._is_confined:
                raise InterfaceError("a connection in safe mode gives no DuckDB connection", hint="open the lake without it")
            return self._readings.connection(None if self._tx is None else self._tx.base)

    def _change(self, statement: st.Statement, sets: Sequence[Mapping[str, Any]]) -> Result:
        operation = statement.operation
        standalone.check_pinned(self.lake.pinned_version, operation)
        if temporary.concerns(operation, self._temporaries):
            return self._change_temporary(statement, sets)
        with self._ready() as tx:
            if tx.read_only:
                raise standalone.read_only_error(of_connection=self.read_only)
            with tx.statement(operation, statement.text, sets), self._limited(self.lake.engine.stopper):
                count = tx.run_sets(operation, statement.text, sets)
                self._watch.check()
            messages = [] if tx.explicit else self._land(tx)
            saved = tx.log[-1].returned
            result = Result(None)
            if saved is not None:
                result = self._readings.result(tx, self.lake.engine.cursor_of(saved), statement.text, self._where, [])
            result.rowcount, result.messages = count if tx.explicit else tx.final_count(count), landing.noted(tx) + messages
            return result

    @property
    def _temporaries(self) -> Temporaries:
        return self._tx.execution.temporaries if self._tx else self.lake.engine.temporary.current

    def _change_temporary(self, statement: st.Statement, sets: Sequence[Mapping[str, Any]]) -> Result:
        """Nothing of it is the lake's: in autocommit nothing is committed."""
        with self._ready() as tx:
            with tx.statement(statement.operation, statement.text, sets), self._limited(self.lake.engine.stopper):
                done = tx.change_temporary(statement.operation, statement.text, sets)
                self._watch.check()
            if not tx.explicit:
                self.lake.engine.temporary.current = done.temporaries
            return Result(done.columns, rows=done.rows, rowcount=done.rowcount, messages=landing.noted(tx))

    def _optimize(self, operation: st.Optimize, call: Call) -> Result:
        standalone.check_alone("OPTIMIZE", self._tx, read_only=self.read_only)
        landed, result = landing.optimize(self.lake, operation, call, self._limited(self.lake.engine.stopper))
        self.last_commit = landed or self.last_commit
        return result

    def _merge_branch(self, operation: st.MergeBranch, call: Call) -> Result:
        limited = self._limited(self.lake.engine.stopper)
        landed, result = branching.merge(self.lake, self._tx, operation, call, limited, read_only=self.read_only)
        self.last_commit = landed or self.last_commit
        return result

    def _resolve(self, operation: st.Update, call: Call) -> Result:
        limited = self._limited(self.lake.engine.stopper)
        return branching.resolve(self.lake, self._tx, operation, call, limited, read_only=self.read_only)

    def _transfer(self, operation: st.Export | st.Import, values: Mapping[str, Any]) -> Result:
        """Many statements as one: in autocommit a transaction of their own, else a part of the open one, of which a failure leaves nothing."""
        path = path_of(operation, values)
        if self._tx is None and not self.autocommit:
            self._tx = self._start(self.isolation)
        block = object()
        is_own = self.begin_block(block)
        try:
            assert self._tx is not None
            with self._tx.seeing(NOTHING):
                result = self._export(self._tx, path) if isinstance(operation, st.Export) else take_in(path, self._nested)
        except BaseException:
            self.end_block(block, is_own=is_own, failed=True)
            raise
        result.messages += self.end_block(block, is_own=is_own, failed=False).messages
        return result

    def _export(self, tx: Transaction, path: Path) -> Result:
        return export(tx.work.namespace, sound(tx.execution, tx.work), path, self._nested)

    def _nested(self, statement: st.Statement) -> Result:
        with self._framed(statement.text):
            return self._dispatch(statement, {})

    # The end.

    def interrupt(self) -> None:
        """Stops the running statement, from another thread: it raises OperationalError and is undone."""
        self.check_usable()
        self._watch.interrupt(self.lake.engine.interrupt)

    def confine(self) -> None:
        """From now on, for good, statements use no file outside of the lake, and no variable of the caller's."""
        with self.exclusive(), mapped():
            if not self._is_confined:
                self.lake.engine.confine(DUCKDB_SETTINGS)
                self._is_confined = True

    def follow_progress(self) -> None:
        """From now on `query_progress` can say something."""
        with self.exclusive():
            self.lake.engine.follow()

    def query_progress(self) -> float | None:
        """How many percent of the running statement are done, from another thread; None where DuckDB cannot say."""
        return self.lake.engine.progress()

    def settle(self, deadline: float) -> None:
        """See `endings.Settled`."""
        while not self._turns.keep(SETTLING_S):
            if not self._closed:
                self.lake.engine.interrupt()
            if time.monotonic() >= deadline:
                return

    def close(self) -> None:
        """Rolls back what is open and frees everything, also after an error, which is raised then. Again, or in a forked child: nothing happens."""
        if self._closed or os.getpid() != self._owner_pid:
            return
        with self._turns.taken(), mapped():
            tx, self._tx = self._tx, None
            self._closed = True
            first: list[Callable[[], None]] = [] if tx is None else [tx.discard]
            self.lake.close([*first, *self._readings.closers()])
