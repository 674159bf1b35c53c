"""Statements that are no part of a transaction's changes: SET, SHOW and DESCRIBE, VACUUM, CHECK LAKE, BACKUP."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from lakelite import answers, errors
from lakelite.bounds import limits_of
from lakelite.errors import DataError, NotSupportedError, OperationalError, ProgrammingError
from lakelite.lake import Lake
from lakelite.language import statements as st
from lakelite.language.branch_statements import CreateBranch, CreateTag, DropBranch, DropTag, ShowBranches, ShowTags, UseBranch
from lakelite.maintenance import check
from lakelite.maintenance.backup import backup
from lakelite.maintenance.findings import Finding
from lakelite.maintenance.repair import repaired
from lakelite.maintenance.vacuum import Vacuumed, vacuum, vacuum_each
from lakelite.mapping.names import did_you_mean
from lakelite.model import MAIN_BRANCH_ID, Table, literal
from lakelite.parameters import hours_of, versions_of
from lakelite.results import Message, Result
from lakelite.settings import DUCKDB_SETTINGS, OF_CONNECTION, RESULT_SETTINGS, TEXTS
from lakelite.transaction import commit as committing
from lakelite.transaction import rehearse
from lakelite.transaction.execution import Call, find_table
from lakelite.transaction.transaction import Transaction

_BARE_WORDS = re.compile(r"[^\W\d]\w*(?:\s+[^\W\d]\w*)*")
_READS = (
    st.Query, st.CopyTo, st.Export, st.Backup, st.SetOption, st.CheckLake, ShowBranches, ShowTags,
    st.ShowTables, st.ShowSchemas, st.ShowSettings, st.ShowCreateTable, st.DescribeTable, st.DescribeHistory,
)  # fmt: skip
_OUTSIDE: dict[type, str] = {  # all that is not within the lake
    st.CopyTo: "COPY … TO", st.CopyFrom: "COPY … FROM", st.Append: "append", st.Export: "EXPORT DATABASE", st.Import: "IMPORT DATABASE",
    st.Backup: "BACKUP TO",
}  # fmt: skip
_WITHIN_THE_LAKE = (
    st.Query, st.CreateSchema, st.DropSchema, st.CreateTable, st.CreateTableAs, st.CreateTableLike, st.DropTable, st.AlterTable, st.TuneTable,
    st.CreateView,
    st.DropView, st.RenameView, st.CommentOn, st.Insert, st.Delete, st.Update, st.Merge, st.Truncate, st.RestoreTable, st.Begin, st.Commit,
    st.ExplainCommit, st.Rollback, st.Savepoint, st.Release, st.RollbackTo, st.Optimize, st.SetOption, st.ShowTables, st.ShowSchemas, st.ShowSettings,
    st.ShowCreateTable, st.DescribeTable, st.DescribeHistory, st.Vacuum, st.CheckLake, st.MergeBranch, CreateBranch,
    DropBranch, UseBranch, CreateTag, DropTag, ShowBranches, ShowTags,
)  # fmt: skip


def run(lake: Lake, tx: Transaction | None, operation: st.Operation, call: Call, *, read_only: bool) -> Result:
    """Any of these statements. `tx`: the open transaction."""
    match operation:
        case st.SetOption():
            _set_option(lake, tx, operation, call, read_only=read_only)
            return Result(None, messages=_noted(lake, tx, operation))
        case st.Vacuum():
            check_alone("VACUUM", tx, read_only=read_only)
            return _vacuum(lake, operation, call)
        case st.CheckLake():
            if operation.repair:
                check_alone("CHECK LAKE REPAIR", tx, read_only=read_only)
            return _check_lake(lake, repair=operation.repair)
        case _:
            return _look(lake, tx, operation, call)


def _noted(lake: Lake, tx: Transaction | None, operation: st.Operation) -> list[Message]:
    """What a user should be told of the isolation level where an open transaction has another one than the connection."""
    if not isinstance(operation, st.SetOption | st.ShowSettings) or (operation.name or "").lower() != "isolation_level":
        return []
    if tx is None or tx.isolation == lake.settings.isolation:
        return []
    return [(errors.Warning, f"it is for transactions that begin from now on: this one is {tx.isolation}")]


def check_confined(operation: st.Operation) -> None:
    """Refuses what names a file, on a connection that keeps to its lake. What a query names DuckDB refuses."""
    if not isinstance(operation, _WITHIN_THE_LAKE):
        raise NotSupportedError(f"{_OUTSIDE[type(operation)]} is not there in safe mode", hint="it would use files outside of the lake")


def check_pinned(version: int | None, operation: st.Operation) -> None:
    """Refuses what is more than reading on a connection that is pinned to a version."""
    if version is None or (isinstance(operation, _READS) and operation != st.CheckLake(repair=True)):
        return
    error = OperationalError(
        f"this connection is pinned to version {version}, and only reads", hint="end that first: `.at`, %lake --at newest, or pinned_version = None"
    )
    error.sqlstate = "25006"
    raise error


def check_alone(what: str, tx: Transaction | None, *, read_only: bool) -> None:
    """Refuses a statement that is a snapshot of its own, or changes the lake beside them, inside a transaction and on a read-only connection."""
    if tx is not None:
        raise ProgrammingError(f"{what} cannot run inside a transaction", hint="COMMIT or ROLLBACK first")
    if read_only:
        raise read_only_error(of_connection=True)


def _set_option(lake: Lake, tx: Transaction | None, operation: st.SetOption, call: Call, *, read_only: bool) -> None:
    """SET and RESET: one of DuckDB's settings that are passed on, or one of ours; for the lake with SET GLOBAL."""
    name = operation.name.lower()
    if name in DUCKDB_SETTINGS:
        if name in RESULT_SETTINGS and tx is not None and tx.events:
            raise ProgrammingError(
                f"{name} cannot be changed once a transaction has written, or was shown rows",
                hint="its statements may have to run again; set it before BEGIN",
            )
        text = literal(str(_setting_value(lake, operation.value, call))) if operation.value and call.values else operation.value
        lake.engine.run(f"RESET GLOBAL {name}" if text is None else f"SET GLOBAL {name} = {text}")
        return
    if operation.for_lake:
        check_alone("SET GLOBAL", tx, read_only=read_only)
        if name in OF_CONNECTION:
            raise NotSupportedError(f"{name} cannot be set for a lake", hint=f"SET {name} sets it for this connection")
    value = None if operation.value is None else _setting_value(lake, operation.value, call)
    if operation.value is not None and value is None and name not in TEXTS and name in lake.settings.all():
        raise DataError(f"{name} cannot be NULL", hint=f"RESET {name} gives it the value of the lake again")
    before = lake.settings.limits
    if not lake.settings.change(name, value):
        known = sorted(lake.settings.all().keys() | DUCKDB_SETTINGS)
        hint = did_you_mean(operation.name, known, f"the settings are: {', '.join(known)}")
        raise NotSupportedError(f'there is no setting "{operation.name}"', hint=hint)
    if operation.for_lake:  # for all connections that are opened from now on
        try:
            with lake.locked(), lake.catalog.transaction("changing a setting") as writer:
                writer.run("set_setting", name=name, value=lake.settings.all()[name][0])
        except BaseException:
            lake.settings.limits = before
            raise


def read_only_error(*, of_connection: bool) -> OperationalError:
    """What a change is refused with where the connection is read-only, or else only the transaction."""
    if of_connection:
        error = OperationalError("this connection is read-only", hint="open the lake without read_only to change it")
    else:
        error = OperationalError("this transaction is read-only: it began with READ ONLY", hint="end it, and BEGIN one without READ ONLY")
    error.sqlstate = "25006"
    return error


def _setting_value(lake: Lake, text: str, call: Call) -> Any:
    """The text of bare words, such as snapshot, or what an expression gives. NotSupportedError: it reads a table."""
    if _BARE_WORDS.fullmatch(text) and text.upper() != "NULL":
        return text
    expression = f"SELECT {text}"
    if lake.engine.table_names(expression):
        raise NotSupportedError("the value of a setting cannot be read from a table", hint="fetch it first, and pass it as a parameter: SET name = ?")
    return lake.engine.without_tables(expression, call.values)


def _look(lake: Lake, tx: Transaction | None, operation: st.Operation, call: Call) -> Result:
    """SHOW and DESCRIBE, as the open transaction sees the lake, or of the head."""
    seen = tx or lake.start(explicit=False, isolation=lake.settings.isolation, read_only=True)
    try:
        answer = answers.answer(operation, seen.execution, seen.work, call, lake.paths.root.name)
    finally:
        if tx is None:
            lake.unpin(seen)
    return Result(answer.columns, rows=answer.rows, messages=_noted(lake, tx, operation))


def explain_commit(lake: Lake, tx: Transaction | None) -> Result:
    """EXPLAIN COMMIT: one row for each table and winner that a COMMIT would meet now."""
    if tx is None:
        raise ProgrammingError("there is nothing to commit: no transaction is open", hint="BEGIN opens one")
    return Result(rehearse.COLUMNS, rows=rehearse.rehearse(tx, lake.catalog))


def _check_lake(lake: Lake, *, repair: bool) -> Result:
    """CHECK LAKE [REPAIR]; one row per finding, none for a sound lake. That there are errors is a message, by which a command line ends with 1."""
    mend: Callable[[Iterable[Finding]], Iterable[Finding]] = partial(repaired, lake.catalog, lake.paths, lake.locked) if repair else iter
    found = list(mend(check.damage(lake.catalog)))
    if any(finding.severity == "error" for finding in found):
        found.append(Finding("info", "the lake", "the rest of it was not looked at: a damaged catalog tells nothing of it", "mend the catalog first"))
    elif lake.catalog.rows("head", branch=MAIN_BRANCH_ID):
        found += _found(lake, mend)
    else:
        found += check.contradictions(lake.catalog)
    wrong = sum(finding.severity == "error" for finding in found)
    messages: list[Message] = [(errors.DatabaseError, f"CHECK LAKE found {wrong} error{'' if wrong == 1 else 's'}")] if wrong else []
    rows = [(f.severity, f.object, f.finding, f.what_to_do) for f in found]
    return Result(tuple((name, "VARCHAR") for name in check.COLUMNS), rows=rows, messages=messages)


def _found(lake: Lake, mend: Callable[[Iterable[Finding]], Iterable[Finding]]) -> list[Finding]:
    """What is wrong beside the catalog's own damage, mended while what was looked at is pinned."""
    seen = lake.start(explicit=False, isolation=lake.settings.isolation, read_only=True)
    try:
        return list(mend(check.findings(seen.execution)))
    finally:
        lake.unpin(seen)


def back_up(lake: Lake, tx: Transaction | None, directory: Path, check: Callable[[], None]) -> Result:
    """BACKUP TO; one row with what was copied. `check` raises where the statement is to stop."""
    if tx is not None:
        raise ProgrammingError("BACKUP cannot run inside a transaction", hint="COMMIT or ROLLBACK first")
    done = backup(lake.catalog, lake.paths, lake.lease, lake.locked, directory, check)
    columns = (("directory", "VARCHAR"), ("snapshot_id", "BIGINT"), ("files", "BIGINT"), ("bytes", "BIGINT"))
    return Result(columns, rows=[(done.directory, done.snapshot_id, done.files, done.bytes)])


def _kept_hours(lake: Lake) -> dict[Table, float]:
    """For how long each table wants its old rows: the longest time, where living branches differ."""
    found: dict[int, tuple[Table, float]] = {}
    for _, head, *_ in lake.catalog.rows("look_branches"):
        for table in lake.catalog.namespace(head).tables.values():
            if table.view is None:
                hours = limits_of(table, lake.settings.limits).retention_hours
                found[table.table_id] = table, max(hours, found.get(table.table_id, (table, 0))[1])
    return dict(found.values())


def _vacuum(lake: Lake, operation: st.Vacuum, call: Call) -> Result:
    """VACUUM; one row with what it did."""
    with lake.head() as view:
        work = committing.work_on(view)
        table = None if operation.target is None else find_table(work, operation.target, call)
    limits, now_us, hours = lake.settings.limits, committing.now_us(), hours_of(operation, call.values)
    versions = versions_of(operation, call.values)
    if hours is None and versions is not None:
        hours = 0.0

    def run(hours: float, of: Table | None, dry_run: bool) -> Vacuumed:
        return vacuum(lake.catalog, lake.paths, lake.locked, now_us, hours, versions or 1, of, dry_run=dry_run)

    kept = _kept_hours(lake) if hours is None else {}
    if hours is None and table is not None:
        of_table = (wanted for other, wanted in kept.items() if other.table_id == table.table_id)
        hours = next(of_table, limits.retention_hours)
    if hours is not None:
        done = run(hours, table, operation.dry_run)
    else:
        done = vacuum_each(run, limits.retention_hours, kept, dry_run=operation.dry_run)
    names = ("dry_run", "oldest_version", "versions_expired", "fragments_expired", "orphans_removed", "bytes_freed")
    columns = tuple((n, "BOOLEAN" if n == "dry_run" else "BIGINT") for n in names)
    return Result(columns, rows=[tuple(getattr(done, n) for n in names)])
