"""The durable commit, in the order of the steps in `steps.py`, and the loop around it that ends every conflict.

    sync files → sync directories → lock → resolve → publish → COMMIT → checkpoint → unlock

Cheap resolving is done under the lock; a replay runs outside it and is checked again inside. The last attempt replays
under the lock, where the head cannot move, so that it ends.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import duckdb

from lakelite import deletion, steps
from lakelite.catalog.store import Catalog, CommitFailed, open_catalog
from lakelite.contents import TableState
from lakelite.errors import CommitUnknown, Conflict, Error, OperationalError, ProgrammingError, TransactionConflict
from lakelite.language import statements as st
from lakelite.language.parse import mentions
from lakelite.language.tokens import without_leading_comments
from lakelite.storage import fragment as fragments
from lakelite.transaction import resolve
from lakelite.transaction.changes import ChangeSet, Work
from lakelite.transaction.publish import Published, Record, publish
from lakelite.transaction.resolve import Candidate, Effect, Resolution, Verdict, Winner
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import LakeView

CHECKPOINT_BYTES = 4 * 1024 * 1024
RECORDED_CHARACTERS = 4_000
SHOWN_KEYS = 10


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A commit that landed. `resolutions`: how it was reconciled with the winners it met. `already_gone`: rows that a winner had deleted too.

    `inline`: of each table that was changed, its inline fragments and their rows.
    """

    snapshot_id: int
    base_snapshot_id: int
    attempts: int
    resolutions: tuple[Resolution, ...]
    transaction_id: str
    already_gone: int = 0
    warnings: tuple[str, ...] = ()
    inline: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Landing:
    """What a commit needs of its session. `locked()`: the commit lock, re-entrant; `now_us()`: the clock."""

    catalog: Catalog
    locked: Callable[[], AbstractContextManager[None]]
    now_us: Callable[[], int]
    author: str | None
    message: str | None
    operation: str


def commit(tx: Transaction, landing: Landing) -> CommitResult:
    """Lands the transaction, or raises and leaves nothing of it. Only a true conflict of an explicit one is a TransactionConflict."""
    settled: tuple[Resolution, ...] = ()
    while True:
        _make_durable(tx)
        last = tx.attempts >= tx.execution.limits.commit_attempts
        with landing.locked():
            steps.reached("lock")
            verdict, head = _meet(tx, landing.catalog)
            if verdict.outcome == "replay" and last:
                settled += verdict.resolutions
                tx.replay(tx.base.advanced(head))
                _make_durable(tx)
                verdict = Verdict("rebase")
            if verdict.outcome == "rebase":
                landed, published = _land(tx, landing, head, settled + verdict.resolutions)
                break
        settled += verdict.resolutions
        tx.replay(tx.base.advanced(head))
    warnings = _renumber(tx, published)
    steps.reached("answer")
    return replace(landed, warnings=landed.warnings + warnings)


def _make_durable(tx: Transaction) -> None:
    staged = tx.work.changes.staged()
    fragments.make_durable(tx.execution.paths, staged)
    steps.reached("sync_files")
    fragments.make_names_durable(tx.execution.paths, staged)
    steps.reached("sync_directory")


def _meet(tx: Transaction, catalog: Catalog) -> tuple[Verdict, int]:
    """The verdict against everything that landed since the base; raises where it is a conflict."""
    head = catalog.head()
    if head == tx.base.snapshot_id:
        return Verdict("rebase"), head
    statement = "; ".join(without_leading_comments(entry.call.text) for entry in tx.log)
    won = _winners(catalog, tx.base.snapshot_id, head)
    if len(won) != head - tx.base.snapshot_id:
        return _expired(tx, statement), head
    candidate = Candidate(tx.work.changes, tx.base.namespace, tx.explicit, statement, _words(tx))
    verdict = resolve.verdict(candidate, won, tx.base.advanced(head).namespace)
    steps.reached("resolve")
    if verdict.outcome == "conflict":
        raise _raised(tx, tuple(_with_row_ids(catalog, tx, c) for c in verdict.conflicts))
    return verdict, head


def _raised(tx: Transaction, conflicts: tuple[Conflict, ...]) -> Error:
    """A conflict; in autocommit, where nobody was promised anything, the statement's ordinary error."""
    if tx.explicit:
        return TransactionConflict(conflicts)
    first = conflicts[0]
    return ProgrammingError(
        f"{first.table}: {first.explanation}", hint=f"snapshot {first.winner_snapshot_id} did that meanwhile ({first.winner_statement})"
    )


def _with_row_ids(catalog: Catalog, tx: Transaction, conflict: Conflict) -> Conflict:
    """The conflict with up to ten ids of rows that the winner deleted or updated, of fragments whose row ids follow from the position."""
    table = next((t for t in tx.base.namespace.by_id.values() if t.qualified == conflict.table), None)
    if table is None or not conflict.rows:
        return conflict
    before, after = (catalog.table_state(table, conflict.winner_snapshot_id - i) for i in (1, 0))
    found: list[int] = []
    for fragment_id, fragment in before.fragments.items():
        if fragment.has_row_ids or len(found) >= SHOWN_KEYS:
            continue
        gone = deletion.difference(after.vectors.get(fragment_id), before.vectors.get(fragment_id), fragment, alive=fragment_id in after.fragments)
        found += [fragment.first_row_id + position for position in itertools.islice(gone, SHOWN_KEYS - len(found))]
    return replace(conflict, keys=tuple(f"row id {row_id}" for row_id in found))


def _words(tx: Transaction) -> frozenset[str] | None:
    """The names that the statements mention, folded; None where one takes columns by their place or all of them."""
    found: frozenset[str] = frozenset()
    for entry in tx.log:
        by_place = isinstance(entry.operation, st.Insert | st.CopyFrom) and entry.operation.columns is None
        if by_place or "*" in entry.call.text:
            return None
        found |= mentions(entry.call.text)
    return found


def _winners(catalog: Catalog, base: int, head: int) -> list[Winner]:
    """What landed in (base, head], as far as it was kept."""
    effects: dict[int, dict[int, Effect]] = {}
    namespace: set[int] = set()
    for snapshot_id, table_id, kinds, added, removed in catalog.rows("effects", base=base, head=head):
        if table_id is None:
            namespace.add(snapshot_id)
        else:
            effects.setdefault(snapshot_id, {})[table_id] = Effect(frozenset(kinds.split(",")), added, removed)
    return [
        Winner(r[0], r[1], r[2], tuple(json.loads(r[3])), r[4], bool(r[5]), r[6], effects.get(r[0], {}), r[0] in namespace)
        for r in catalog.rows("winners", base=base, head=head)
    ]


def _expired(tx: Transaction, statement: str) -> Verdict:
    """Records of winners were pruned: in autocommit the statement runs on the head; of what was handed out nothing can be said any more."""
    if not tx.explicit:
        return Verdict("replay")
    raise OperationalError(
        f"the history since this transaction's base (snapshot {tx.base.snapshot_id}) has expired, so it cannot be reconciled",
        hint=f"run it again: {statement[:200]}",
    )


def _land(tx: Transaction, landing: Landing, head: int, resolutions: tuple[Resolution, ...]) -> tuple[CommitResult, Published]:
    view = tx.base.advanced(head)
    deleting = (k for k, c in tx.work.changes.tables.items() if not c.created and (c.deleted or c.dropped))
    heads = {k: view.state(view.namespace.by_id[k]) for k in deleting}  # rows that are only added need nothing of the head
    gone = sum(_already_gone(tx, table_id, state) for table_id, state in heads.items())
    resolutions = tuple(_worded(r, _gone_by(tx, landing.catalog, r)) if gone else r for r in resolutions)
    record = Record(
        tx.transaction_id, tx.first_base, tx.attempts, landing.author, landing.message, landing.operation,
        _recorded(tx), tx.isolation, landing.now_us(),
    )  # fmt: skip
    published = _publish(tx, landing, record, heads, head, _distinct(resolutions))
    steps.reached("committed")
    warnings = _checkpoint(landing.catalog)
    result = CommitResult(published.snapshot_id, tx.first_base, tx.attempts, resolutions, tx.transaction_id, gone, warnings, published.inline)
    return result, published


def _renumber(tx: Transaction, published: Published) -> tuple[str, ...]:
    """Keeps what is cached of the committed fragments. The commit has landed, its answer must not be an error: what goes wrong is a warning."""
    try:
        for table_id, ids in published.fragments.items():
            tx.execution.engine.renumber(table_id, ids)
    except duckdb.Error as error:  # the rows are loaded again when they are next needed
        return (f"the cache could not be kept: {error}",)
    return ()


def _recorded(tx: Transaction) -> tuple[str, ...]:
    """The statements for the history: each run of equal ones once, and of a very long one the beginning."""
    texts = [text for text, _ in itertools.groupby(without_leading_comments(entry.call.text) for entry in tx.log)]
    return tuple(t if len(t) <= RECORDED_CHARACTERS else f"{t[:RECORDED_CHARACTERS]} … ({len(t)} characters)" for t in texts)


def _already_gone(tx: Transaction, table_id: int, head: TableState) -> int:
    """How many of the rows that I delete a winner had deleted as well."""
    count = 0
    for fragment_id, positions in tx.work.changes.tables[table_id].deleted.items():
        vector = head.vectors.get(fragment_id)
        if fragment_id not in head.fragments:
            count += len(positions)
        elif vector is not None:
            count += deletion.common(vector, positions)
    return count


def _gone_by(tx: Transaction, catalog: Catalog, line: Resolution) -> int:
    """How many of the rows that I delete this winner deleted first."""
    change = tx.work.changes.tables.get(line.table_id) if line.table_id is not None else None
    if change is None or change.created or line.rung != 2 or line.winner_snapshot_id <= tx.base.snapshot_id:
        return 0
    before, after = (catalog.table_state(change.table, line.winner_snapshot_id - i) for i in (1, 0))
    return _already_gone(tx, change.table.table_id, after) - _already_gone(tx, change.table.table_id, before)


def _worded(line: Resolution, gone: int) -> Resolution:
    if line.rung != 2 or not gone or "united" not in line.explanation:
        return line
    rows = "1 row was" if gone == 1 else f"{gone} rows were"
    return replace(line, row_count=gone, noticeable=True, explanation=f"{rows} already deleted by snapshot {line.winner_snapshot_id}")


def _distinct(lines: tuple[Resolution, ...]) -> list[Resolution]:
    """One line per winner and table: the last one, where attempts met the same winner."""
    return list({(r.winner_snapshot_id, r.table_id): r for r in lines}.values())


def _publish(tx: Transaction, landing: Landing, record: Record, heads: dict[int, TableState], head: int, ledger: list[Resolution]) -> Published:
    try:
        with landing.catalog.publication("committing") as writer:
            published = publish(writer, record, tx.work.changes, heads, head, ledger)
            steps.reached("publish")
            steps.reached("commit")
    except CommitFailed as failed:
        if _landed(landing.catalog, record.transaction_id, failed):
            return published
        raise failed.args[0] from failed.__cause__
    return published


def _landed(catalog: Catalog, transaction_id: str, failed: CommitFailed) -> bool:
    """Whether a COMMIT that gave an error is in the catalog all the same.

    A fresh connection says so and makes it final, or nobody can (CommitUnknown).
    """
    try:
        fresh = open_catalog(catalog.path, create=False)
    except Error as error:
        raise CommitUnknown(transaction_id, str(failed.args[0].message)) from error
    try:
        if fresh.rows("snapshot_of_transaction", transaction_id=transaction_id):
            return True
        if failed.args[1]:
            fresh.bury_failed_commit()
        return False
    except Error as error:
        raise CommitUnknown(transaction_id, str(failed.args[0].message)) from error
    finally:
        fresh.close()


def _checkpoint(catalog: Catalog) -> tuple[str, ...]:
    """Once in a while, under the commit lock; what goes wrong is a warning. The WAL's size is asked of the directory: only SQLite opens it."""
    wal = catalog.path.with_name(catalog.path.name + "-wal")
    try:
        if wal.stat().st_size > CHECKPOINT_BYTES:
            catalog.checkpoint()
            steps.reached("checkpoint")
    except FileNotFoundError:
        return ()
    except Error as error:
        return (f"the catalog could not be checkpointed: {error.message}",)
    return ()


def work_on(view: LakeView) -> Work:
    """The state of a transaction that has done nothing yet."""
    return Work(view.namespace, ChangeSet())


def now_us() -> int:
    """The system's clock in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def view_of_head(catalog: Catalog, known: LakeView | None) -> LakeView:
    """The head as it is now, with what is still right of an older view."""
    head = catalog.head()
    return LakeView.load(catalog, head) if known is None else known.advanced(head)
