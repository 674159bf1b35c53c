"""From a transaction to a commit that landed, and what is due afterwards: files that did not make it, upkeep of the tables. OPTIMIZE, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from lakelite import errors
from lakelite.bounds import limits_of
from lakelite.contents import TableState
from lakelite.errors import CommitUnknown, Error, TransactionConflict
from lakelite.lake import Lake
from lakelite.language import statements as st
from lakelite.maintenance import bins, compaction
from lakelite.maintenance.compaction import Compacted, Progress
from lakelite.model import Limits, Table
from lakelite.results import Message, Result
from lakelite.transaction import commit as committing
from lakelite.transaction.commit import CommitResult, Landing
from lakelite.transaction.execution import Call, find_table
from lakelite.transaction.transaction import Transaction

_STAYS_OPEN = "The transaction is still open, with all that it did: COMMIT tries again, ROLLBACK gives it up."
_ROLLED_BACK = "The whole transaction was rolled back: run it again from its beginning."


def land(lake: Lake, tx: Transaction, *, keep: bool = False) -> tuple[CommitResult, list[Message]]:
    """Commits, with the commit message, which is used then; what was written is removed if it did not land.

    Returns the commit and what a user should be told. `keep`: where nothing landed and the transaction is as its statements left it, it
    `stays_open`.
    """
    committed = _commit(lake, tx, lake.settings.commit_message, _operation(tx), keep=keep)
    lake.settings.commit_message = None
    return committed, _told_of(committed) + _discarded(tx) + _look_after(lake, tx, committed)


def say_what_became(tx: Transaction, error: Error) -> None:
    """Of an explicit transaction whose COMMIT gave `error`, for people."""
    if not isinstance(error, CommitUnknown | TransactionConflict):
        error.context = error.context or (_STAYS_OPEN if tx.stays_open else _ROLLED_BACK)


def noted(tx: Transaction) -> list[Message]:
    """What a user should be told of the statement that ran last."""
    return [(errors.Warning, note) for note in dict.fromkeys(tx.execution.notes)]


def _told_of(committed: CommitResult) -> list[Message]:
    resolutions = [(errors.Warning, r.explanation) for r in committed.resolutions if r.noticeable]
    return [*resolutions, *((errors.Warning, w) for w in committed.warnings)]


def _discarded(tx: Transaction) -> list[Message]:
    """Removes what was written and is not needed. The commit has landed: its answer must not be an error, and VACUUM will find the file."""
    try:
        tx.discard_unpublished()
    except Error as error:
        return [(errors.Warning, f"a file that is not needed could not be removed: {error.message}")]
    return []


def compact(lake: Lake, table_id: int, plan: Callable[[TableState], Sequence[bins.Bin]]) -> list[Message]:
    """Compacts what `plan` says of a table, as a snapshot of its own; nothing happens if there is none, or no such table any more."""
    tx = lake.start(explicit=True, isolation=lake.settings.isolation, read_only=False)
    try:
        table = tx.work.namespace.by_id.get(table_id)
        if table is not None:
            _stage(tx, table, plan(tx.base.state(table)), most=bins.OUTPUTS_AT_ONCE)
        if not tx.work.changes.writes:
            return []
        _commit(lake, tx, None, "UPKEEP")
        return _discarded(tx)
    finally:
        lake.unpin(tx)


def optimize(lake: Lake, operation: st.Optimize, call: Call, limited: AbstractContextManager[None]) -> tuple[CommitResult | None, Result]:
    """OPTIMIZE, as a snapshot of its own: what landed (None: there was nothing to do), and one row that says what it did.

    `limited`: the block of what may be stopped, which a commit may not.
    """
    tx = lake.start(explicit=False, isolation=lake.settings.isolation, read_only=False)
    try:
        with limited:
            state, planned, sort = _planned(tx, operation, call, lake.settings.limits)
            _stage(tx, state.table, planned, sort, lake.progress)
        committed, messages = None, []
        if tx.work.changes.writes:
            committed = _commit(lake, tx, lake.settings.commit_message, "OPTIMIZE")
            lake.settings.commit_message = None
            messages = _told_of(committed) + _discarded(tx)
        return committed, _result(compaction.outcome(tx, state, planned), messages)
    finally:
        lake.unpin(tx)


def _planned(tx: Transaction, operation: st.Optimize, call: Call, limits: Limits) -> tuple[TableState, list[bins.Bin], list[str]]:
    """The table as it is now, what of it is to be joined, and the columns of a Z-order."""
    table = find_table(tx.work, operation.target, call)
    state = tx.base.state(table)
    conditions = compaction.conditions(tx, table, operation.where, call)
    sort = compaction.sort_columns(table, operation.zorder, call)
    return state, bins.whole(state, conditions) if sort else bins.due(state, conditions, limits_of(table, limits)), sort


def _stage(
    tx: Transaction, table: Table, planned: Sequence[bins.Bin], sort: Sequence[str] = (), progress: Progress | None = None, most: int | None = None
) -> None:
    """Writes the bins; what was written is removed if that fails."""
    try:
        compaction.stage(tx, table, planned, sort, progress, most)
    except BaseException:
        tx.discard()
        raise


def _result(done: Compacted, messages: list[Message]) -> Result:
    if done.bins_dropped:
        text = f"{done.bins_dropped} of {done.bins + done.bins_dropped} bins were dropped: meanwhile their rows were moved or deleted"
        messages = [*messages, (errors.Warning, text)]
    names = [f.name for f in dataclasses.fields(done)]
    return Result(tuple((name, "BIGINT") for name in names), rows=[tuple(getattr(done, n) for n in names)], messages=messages)


def _commit(lake: Lake, tx: Transaction, message: str | None, operation: str, *, keep: bool = False) -> CommitResult:
    tx.stays_open = False
    try:
        return committing.commit(tx, Landing(lake.catalog, lake.locked, committing.now_us, lake.settings.author, message, operation))
    except CommitUnknown:
        raise  # it may turn out to have landed: the files stay, and VACUUM will know once this session is over
    except BaseException as error:
        may_stay = keep and tx.is_intact and isinstance(error, Error) and error.is_passing
        _remove_unless_landed(lake, tx, may_stay=may_stay)
        raise


def _remove_unless_landed(lake: Lake, tx: Transaction, *, may_stay: bool) -> None:
    """After a failed commit; of a transaction that stays open nothing is removed.

    Where the catalog cannot be asked, files stay: VACUUM will know, once this session is over.
    """
    try:
        landed = lake.catalog.rows("snapshot_of_transaction", transaction_id=tx.transaction_id)
    except Error:
        return
    tx.stays_open = may_stay and not landed
    if not (landed or tx.stays_open):
        tx.discard()


def _look_after(lake: Lake, tx: Transaction, committed: CommitResult) -> list[Message]:
    """Upkeep after a commit, as much as one slice. It never fails the statement: what went wrong is a message, and a later commit tries again."""
    messages: list[Message] = []
    try:
        for table_id, (before, after) in committed.clutter.items():
            limits = limits_of(tx.work.changes.tables[table_id].table, lake.settings.limits)
            if bins.is_upkeep_due(before, after, limits):
                messages += compact(lake, table_id, partial(bins.due_at_once, limits=limits))
    except TransactionConflict:
        return messages
    except Exception as error:  # the commit has landed: its answer must not be an error, whatever this is
        return [*messages, (errors.Warning, f"small fragments could not be joined: {error}")]
    return messages


def _operation(tx: Transaction) -> str:
    """What history calls the snapshot: the statement's kind, or all kinds of a transaction."""
    kinds = dict.fromkeys(_LABELS.get(type(entry.operation), type(entry.operation).__name__.upper()) for entry in tx.log)
    return ", ".join(kinds)


_LABELS: dict[type, str] = {
    st.CreateTable: "CREATE TABLE", st.CreateTableAs: "CREATE TABLE AS", st.DropTable: "DROP TABLE", st.CreateSchema: "CREATE SCHEMA",
    st.DropSchema: "DROP SCHEMA", st.CopyFrom: "COPY", st.RestoreTable: "RESTORE", st.AlterTable: "ALTER TABLE", st.TuneTable: "ALTER TABLE",
    st.CreateTableLike: "CREATE TABLE", st.CreateView: "CREATE VIEW", st.DropView: "DROP VIEW", st.RenameView: "ALTER VIEW", st.CommentOn: "COMMENT",
    st.MergeBranch: "MERGE BRANCH",
}  # fmt: skip
