"""The one pipeline: SQL text → statements → operations → changes → commit → result. One session per connection.

Owns the transaction that is open, the view of the head, the lease and the settings. Threads may share a session: its
statements queue. Nothing of sqlglot, DuckDB or SQLite leaves it as it is: errors are ours, with the cause chained.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from lakelite import answers, errors, results
from lakelite.catalog.look import Answer
from lakelite.catalog.store import Catalog
from lakelite.errors import CommitUnknown, Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError, TransactionConflict
from lakelite.language import statements as st
from lakelite.language.parse import iter_statements, parse_piece, split_script
from lakelite.maintenance import flush as flushing
from lakelite.maintenance.vacuum import vacuum
from lakelite.opening import Opened
from lakelite.parameters import Parameters, names_of, values_of
from lakelite.results import Result
from lakelite.settings import DUCKDB_SETTINGS, RESULT_SETTINGS, Settings, level_named
from lakelite.storage import files
from lakelite.storage.engine import Engine
from lakelite.storage.engine_errors import translate
from lakelite.storage.leases import SessionLease
from lakelite.transaction import commit as committing
from lakelite.transaction.changes import Work
from lakelite.transaction.commit import CommitResult, Landing
from lakelite.transaction.execution import Call, Execution, find_table
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import LakeView

VERSIONS_KEPT = 64


class Session:
    """An open lake, as one connection uses it. `autocommit` as in PEP 249: False means that a statement opens a transaction."""

    def __init__(self, opened: Opened, *, read_only: bool, author: str | None, isolation: str, autocommit: bool) -> None:
        self.autocommit = autocommit
        self.read_only = read_only
        self.author = author
        self.last_commit: CommitResult | None = None
        self._opened = opened
        self._catalog: Catalog = opened.catalog
        self._settings = Settings(opened.catalog.settings(), isolation)
        self._lease = SessionLease(opened.paths, opened.session_id)
        self._engine = Engine(
            opened.paths, str(opened.paths.spill_folder(opened.session_id)), opened.catalog.inline_rows, self._settings.limits.cache_bytes
        )
        self._mutex = threading.RLock()
        self._owner_pid = os.getpid()
        self._locks_held = 0
        self._view: LakeView | None = None
        self._versions: dict[int, LakeView] = {}  # of time travel, as long as they are few
        self._tx: Transaction | None = None
        self._transactions = 0
        self._numbers = 0
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
            self._engine.trim()
            if len(self._versions) > VERSIONS_KEPT:
                self._versions.clear()
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
        namespace = self._tx.work.namespace if self._tx else self._view.namespace if self._view else None
        if namespace is None:
            return translate(error, text)
        return translate(error, text, [t.qualified for t in namespace.tables.values()], [s.name for s in namespace.schemas.values()])

    def _dispatch(self, statement: st.Statement, values: Mapping[str, Any]) -> Result:
        operation = statement.operation
        match operation:
            case st.Begin():
                return self._begin(operation)
            case st.Commit():
                return self.commit()
            case st.Rollback():
                return self.rollback()
            case st.SetOption():
                return self._set(operation)
            case st.Vacuum():
                return self._vacuum(operation, Call(statement.text, values))
            case st.ShowTables() | st.ShowSchemas() | st.ShowSettings() | st.DescribeTable() | st.DescribeHistory():
                return self._look(operation, Call(statement.text, values))
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
        return self._settings.isolation

    def _begin(self, operation: st.Begin) -> Result:
        if self._tx is not None:
            raise ProgrammingError("a transaction is already open", hint="COMMIT or ROLLBACK it first; nested transactions are not there")
        level = level_named(operation.isolation) if operation.isolation else self.isolation
        self._tx = self._start(explicit=True, isolation=level, read_only=operation.read_only or self.read_only)
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
                self._unpin(tx)

    def rollback(self) -> Result:
        """Undoes the open transaction; without one nothing happens."""
        with self._mutex:
            self._check_usable()
            tx, self._tx = self._tx, None
            if tx is not None:
                self._unpin(tx)
                tx.discard()
            return Result(None)

    def _start(self, *, explicit: bool, isolation: str, read_only: bool) -> Transaction:
        view = self._pinned_view()
        self._transactions += 1
        transaction_id = f"{self._opened.session_id}-{self._transactions}"
        execution = Execution(
            self._engine,
            self._catalog,
            self._opened.paths,
            self._settings.limits,
            view,
            transaction_id,
            self._number,
            self._reserve,
            self._lease,
            self._versions,
        )
        return Transaction(execution, explicit=explicit, isolation=isolation, read_only=read_only, now_us=committing.now_us())

    def _unpin(self, tx: Transaction) -> None:
        """The end of a transaction: what it read may go."""
        for snapshot in (tx.first_base, *tx.execution.pinned):
            self._lease.unpin(snapshot)

    def _pinned_view(self) -> LakeView:
        """The head, pinned by the lease. An older snapshot is pinned first, so that nothing between the two reads can be vacuumed."""
        first = self._view.snapshot_id if self._view else self._catalog.head()
        self._lease.pin(first)
        try:
            self._view = committing.view_of_head(self._catalog, self._view)
            self._lease.pin(self._view.snapshot_id)
        finally:
            self._lease.unpin(first)
        return self._view

    @contextmanager
    def _ready(self) -> Iterator[Transaction]:
        """The open transaction, or a new one that is open from now on (PEP 249), or in autocommit one for this statement only."""
        if self._tx is None and self.autocommit:
            tx = self._start(explicit=False, isolation=self.isolation, read_only=self.read_only)
            try:
                yield tx
            finally:
                self._unpin(tx)
            return
        if self._tx is None:
            self._tx = self._start(explicit=True, isolation=self.isolation, read_only=self.read_only)
        yield self._tx

    def _query(self, statement: st.Statement, values: Mapping[str, Any]) -> Result:
        text = statement.text
        with self._ready() as tx:
            done = tx.run(statement.operation, Call(text, values))
            if done.rows is None:
                return Result(None, rowcount=done.rowcount)
            snapshot, cursor = min([tx.first_base, *tx.execution.pinned]), done.rows
            self._lease.pin(snapshot)

            def release() -> None:
                self._engine.drop(cursor)
                self._lease.unpin(snapshot)

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

    def _land(self, tx: Transaction) -> list[results.Message]:
        """Commits; what was written is removed if it did not land. Returns what a user should be told."""
        landing = Landing(self._catalog, self._locked, committing.now_us, self.author, None, _operation(tx))
        try:
            committed = committing.commit(tx, landing)
        except CommitUnknown:
            raise  # it may turn out to have landed: the files stay, and VACUUM will know once this session is over
        except BaseException:
            self._remove_unless_landed(tx)
            raise
        self.last_commit = committed
        tx.already_gone = committed.already_gone
        messages: list[results.Message] = [(errors.Warning, r.explanation) for r in committed.resolutions if r.noticeable]
        messages += [(errors.Warning, w) for w in committed.warnings]
        try:
            tx.discard_unpublished()
        except Error as error:  # the commit has landed: its answer must not be an error, and VACUUM will find the file
            messages.append((errors.Warning, f"a file that is not needed could not be removed: {error.message}"))
        return messages + self._flush_what_is_due(committed)

    def _remove_unless_landed(self, tx: Transaction) -> None:
        """After a failed commit. Where the catalog cannot be asked, files stay: VACUUM will know, once this session is over."""
        try:
            landed = self._catalog.rows("snapshot_of_transaction", transaction_id=tx.transaction_id)
        except Error:
            return
        if not landed:
            tx.discard()

    def _flush_what_is_due(self, committed: CommitResult) -> list[results.Message]:
        """Upkeep after a commit. It never fails the statement: what went wrong is a message, and the next commit tries again."""
        try:
            for table_id, counts in committed.inline.items():
                if flushing.is_due(*counts, self._settings.limits):
                    self._flush(table_id)
        except (Error, duckdb.Error) as error:
            return [] if isinstance(error, TransactionConflict) else [(errors.Warning, f"small fragments could not be moved into a file: {error}")]
        return []

    def _flush(self, table_id: int) -> None:
        tx = self._start(explicit=True, isolation=self.isolation, read_only=False)
        try:
            table = tx.work.namespace.by_id.get(table_id)
            if table is None:
                return
            flushing.flush(tx, table)
            if tx.work.changes.writes:
                committing.commit(tx, Landing(self._catalog, self._locked, committing.now_us, self.author, None, "FLUSH"))
        except CommitUnknown:
            raise
        except BaseException:
            self._remove_unless_landed(tx)
            raise
        finally:
            self._unpin(tx)

    # Locks and ids.

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The commit lock; re-entrant for this session."""
        if self._locks_held == 0:
            self._opened.lock.acquire(self._settings.limits.lock_timeout_ms)
        self._locks_held += 1
        try:
            yield
        finally:
            self._locks_held -= 1
            if self._locks_held == 0:
                self._opened.lock.release()

    def _reserve(self, counter: str, count: int) -> int:
        """Lake-wide ids for new tables and columns: the files that a transaction writes already carry them. Those of a rollback stay unused."""
        with self._locked(), self._catalog.transaction("reserving ids") as writer:
            return writer.reserve(counter, count)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # Settings, looking, upkeep.

    def _set(self, operation: st.SetOption) -> Result:
        name = operation.name.lower()
        if name in DUCKDB_SETTINGS:
            if name in RESULT_SETTINGS and self._tx is not None and self._tx.log:
                raise ProgrammingError(
                    f"{name} cannot be changed once a transaction has written", hint="its statements may have to run again; set it before BEGIN"
                )
            self._engine.do(f"RESET GLOBAL {name}" if operation.value is None else f"SET GLOBAL {name} = {operation.value}")
            return Result(None)
        if operation.for_lake:
            self._check_set_for_lake(name)
        value = None if operation.value is None else self._setting_value(operation.value)
        if not self._settings.change(name, value):
            known = ", ".join(sorted(self._settings.all().keys() | DUCKDB_SETTINGS))
            raise NotSupportedError(f"there is no setting {operation.name}", hint=f"the settings are: {known}")
        if operation.for_lake:
            self._set_for_lake(name)
        return Result(None)

    def _check_set_for_lake(self, name: str) -> None:
        if self._tx is not None:
            raise ProgrammingError("SET GLOBAL cannot run inside a transaction", hint="COMMIT or ROLLBACK first")
        if self.read_only:
            raise OperationalError("this connection is read-only", hint="open the lake without read_only to change it")
        if name == "isolation_level":
            raise NotSupportedError(f"{name} cannot be set for a lake", hint=f"SET {name} sets it for this connection")

    def _set_for_lake(self, name: str) -> None:
        """Keeps the connection's value of a limit in the catalog, for all connections that are opened from now on."""
        with self._locked(), self._catalog.transaction("changing a setting") as writer:
            writer.run("set_setting", name=name, value=self._settings.all()[name][0])

    def _setting_value(self, text: str) -> Any:
        try:
            return self._engine.do(f"SELECT {text}")[0][0]
        except duckdb.Error:
            return text  # a bare word, such as snapshot

    def _look(self, operation: st.Operation, call: Call) -> Result:
        if self._tx is not None:
            answer = self._answer(operation, self._tx.work, call)
        else:
            view = self._pinned_view()
            try:
                answer = self._answer(operation, committing.work_on(view), call)
            finally:
                self._lease.unpin(view.snapshot_id)
        return Result(answer.columns, rows=answer.rows)

    def _answer(self, operation: st.Operation, work: Work, call: Call) -> Answer:
        settings = {**self._settings.all(), **self._duckdb_settings()} if isinstance(operation, st.ShowSettings) else {}
        return answers.answer(operation, work, call, self._catalog, settings, self._opened.paths.root.name)

    def _duckdb_settings(self) -> dict[str, tuple[str, str]]:
        """Those of DuckDB that are passed on, each with its value and description."""
        rows = self._engine.do("SELECT lower(name), value, description FROM duckdb_settings()")
        return {name: (value, about) for name, value, about in rows if name in DUCKDB_SETTINGS}

    def _vacuum(self, operation: st.Vacuum, call: Call) -> Result:
        if self._tx is not None:
            raise ProgrammingError("VACUUM cannot run inside a transaction", hint="COMMIT or ROLLBACK first")
        if self.read_only:
            raise OperationalError("this connection is read-only", hint="open the lake without read_only to change it")
        table = None
        if operation.target is not None:
            view = self._pinned_view()
            self._lease.unpin(view.snapshot_id)
            table = find_table(committing.work_on(view), operation.target, call)
        hours = self._settings.limits.retention_hours if operation.retain_hours is None else operation.retain_hours
        done = vacuum(self._catalog, self._opened.paths, self._locked, committing.now_us(), hours, table, dry_run=operation.dry_run)
        names = ("dry_run", "oldest_version", "versions_expired", "fragments_expired", "orphans_removed", "bytes_freed")
        columns = tuple((n, "BOOLEAN" if n == "dry_run" else "BIGINT") for n in names)
        return Result(columns, rows=[tuple(getattr(done, n) for n in names)])

    # The end.

    def interrupt(self) -> None:
        """Stops the running statement, from another thread: it raises OperationalError and is undone."""
        self._engine.interrupt()

    def close(self) -> None:
        """Rolls back what is open and frees everything, also after an error, which is raised then. Again, or in a forked child: nothing happens."""
        if self._closed or os.getpid() != self._owner_pid:
            return
        with self._mutex:
            tx, self._tx = self._tx, None
            self._closed = True
            acts: list[Callable[[], None]] = [] if tx is None else [tx.discard]
            acts += [result.close for result in list(self._results)]
            acts += [self._engine.close, self._lease.close]
            acts += [lambda: files.remove_spill_folder(self._opened.paths, self._opened.session_id), self._opened.close]
            _do_all(acts)


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


def _do_all(acts: Sequence[Callable[[], None]]) -> None:
    """Does each of them, whatever becomes of the others; raises the first error."""
    failed: list[BaseException] = []
    for act in acts:
        try:
            act()
        except BaseException as error:
            failed.append(error)
    if failed:
        for other in failed[1:]:
            failed[0].add_note(f"after it: {other}")
        raise failed[0]


def _operation(tx: Transaction) -> str:
    """What history calls the snapshot: the statement's kind, or all kinds of a transaction."""
    kinds = dict.fromkeys(_LABELS.get(type(entry.operation), type(entry.operation).__name__.upper()) for entry in tx.log)
    return ", ".join(kinds)


_LABELS: dict[type, str] = {
    st.CreateTable: "CREATE TABLE", st.CreateTableAs: "CREATE TABLE AS", st.DropTable: "DROP TABLE", st.CreateSchema: "CREATE SCHEMA",
    st.DropSchema: "DROP SCHEMA", st.CopyFrom: "COPY",
}  # fmt: skip
