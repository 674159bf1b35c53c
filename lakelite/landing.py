"""From a transaction to a commit that landed, and what is due afterwards: files that did not make it, the flush of small fragments."""

from __future__ import annotations

from lakelite import errors
from lakelite.errors import CommitUnknown, Error, TransactionConflict
from lakelite.lake import Lake
from lakelite.language import statements as st
from lakelite.maintenance import flush as flushing
from lakelite.results import Message
from lakelite.transaction import commit as committing
from lakelite.transaction.commit import CommitResult, Landing
from lakelite.transaction.transaction import Transaction


def land(lake: Lake, tx: Transaction) -> tuple[CommitResult, list[Message]]:
    """Commits, with the commit message, which is used then; what was written is removed if it did not land.

    Returns the commit and what a user should be told.
    """
    committed = _commit(lake, tx, lake.settings.commit_message, _operation(tx))
    lake.settings.commit_message = None
    messages: list[Message] = [(errors.Warning, r.explanation) for r in committed.resolutions if r.noticeable]
    messages += [(errors.Warning, w) for w in committed.warnings]
    try:
        tx.discard_unpublished()
    except Error as error:  # the commit has landed: its answer must not be an error, and VACUUM will find the file
        messages.append((errors.Warning, f"a file that is not needed could not be removed: {error.message}"))
    return committed, messages + _flush_what_is_due(lake, committed)


def flush(lake: Lake, table_id: int) -> None:
    """Moves the inline fragments of a table into a file, as a snapshot of its own."""
    tx = lake.start(explicit=True, isolation=lake.settings.isolation, read_only=False)
    try:
        table = tx.work.namespace.by_id.get(table_id)
        if table is None:
            return
        try:
            flushing.flush(tx, table)
        except BaseException:
            tx.discard()
            raise
        if tx.work.changes.writes:
            _commit(lake, tx, None, "FLUSH")
    finally:
        lake.unpin(tx)


def _commit(lake: Lake, tx: Transaction, message: str | None, operation: str) -> CommitResult:
    try:
        return committing.commit(tx, Landing(lake.catalog, lake.locked, committing.now_us, lake.settings.author, message, operation))
    except CommitUnknown:
        raise  # it may turn out to have landed: the files stay, and VACUUM will know once this session is over
    except BaseException:
        _remove_unless_landed(lake, tx)
        raise


def _remove_unless_landed(lake: Lake, tx: Transaction) -> None:
    """After a failed commit. Where the catalog cannot be asked, files stay: VACUUM will know, once this session is over."""
    try:
        landed = lake.catalog.rows("snapshot_of_transaction", transaction_id=tx.transaction_id)
    except Error:
        return
    if not landed:
        tx.discard()


def _flush_what_is_due(lake: Lake, committed: CommitResult) -> list[Message]:
    """Upkeep after a commit. It never fails the statement: what went wrong is a message, and the next commit tries again."""
    try:
        for table_id, counts in committed.inline.items():
            if flushing.is_due(*counts, lake.settings.limits):
                flush(lake, table_id)
    except Exception as error:  # the commit has landed: its answer must not be an error, whatever this is
        return [] if isinstance(error, TransactionConflict) else [(errors.Warning, f"small fragments could not be moved into a file: {error}")]
    return []


def _operation(tx: Transaction) -> str:
    """What history calls the snapshot: the statement's kind, or all kinds of a transaction."""
    kinds = dict.fromkeys(_LABELS.get(type(entry.operation), type(entry.operation).__name__.upper()) for entry in tx.log)
    return ", ".join(kinds)


_LABELS: dict[type, str] = {
    st.CreateTable: "CREATE TABLE", st.CreateTableAs: "CREATE TABLE AS", st.DropTable: "DROP TABLE", st.CreateSchema: "CREATE SCHEMA",
    st.DropSchema: "DROP SCHEMA", st.CopyFrom: "COPY", st.RestoreTable: "RESTORE", st.AlterTable: "ALTER TABLE",
}  # fmt: skip
