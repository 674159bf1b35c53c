"""The durable commit, in the order of the steps in `steps.py`, and the loop around it that ends every conflict.

    sync files → sync directories → lock → resolve → publish → COMMIT → checkpoint → unlock

What can be resolved before is resolved before the lock is taken, and checked again inside: what little is left by then is done
under the lock, more of it outside again. The last attempt does all under the lock, where the head cannot move, so that it ends.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field, replace

from lakelite import steps
from lakelite.catalog.opened import open_catalog
from lakelite.catalog.store import Catalog, CommitFailed
from lakelite.contents import Clutter, TableState
from lakelite.errors import CommitUnknown, Error
from lakelite.language.tokens import without_leading_comments
from lakelite.records import dataclass
from lakelite.storage import fragment as fragments
from lakelite.transaction.changes import ChangeSet, Work
from lakelite.transaction.publish import Published, Record, publish
from lakelite.transaction.reconcile import meet, take
from lakelite.transaction.resolve import Resolution
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import LakeView

CHECKPOINT_BYTES = 4 * 1024 * 1024
RECORDED_CHARACTERS = 4_000
FEW_WINNERS = 8


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A commit that landed: what `con.last_commit` gives.

    `snapshot_id`: the version that it made. `base_snapshot_id`: the one that its transaction began on; all versions in between are
    winners. `attempts`: 1 or more, how often it was tried. `resolutions`: for each winner and table that it met, how it was
    reconciled (Resolution); none where nothing landed meanwhile. `transaction_id`: text, the same in `lake.snapshots` and in
    CommitUnknown. `warnings`: text, what went wrong behind the commit, which stands. `clutter`: by table id, what
    upkeep goes by of each table that was changed, before the commit and now.
    """

    snapshot_id: int
    base_snapshot_id: int
    attempts: int
    resolutions: tuple[Resolution, ...]
    transaction_id: str
    warnings: tuple[str, ...] = ()
    clutter: Mapping[int, tuple[Clutter, Clutter]] = field(default_factory=dict)


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
    limits = tx.execution.limits
    deadline = time.monotonic() + limits.commit_time_ms / 1000
    settled = _catch_up(tx, landing)
    while True:
        synced = _make_durable(tx)
        last = tx.attempts >= limits.commit_attempts or time.monotonic() >= deadline
        with landing.locked():
            steps.reached("lock")
            step = meet(tx, landing.catalog)
            if last or step.is_small(tx):
                settled += take(tx, step)
                _make_durable(tx, synced)
                landed, published = _land(tx, landing, step.head.snapshot_id, settled)
                break
        before = tx.attempts
        settled += take(tx, step)
        tx.attempts = before + 1
        time.sleep(random.uniform(0, limits.commit_backoff_ms / 1000))
    warnings = _renumber(tx, published)
    steps.reached("answer")
    return replace(landed, warnings=landed.warnings + warnings)


def _catch_up(tx: Transaction, landing: Landing) -> tuple[Resolution, ...]:
    """What can be resolved before the lock is taken, so that others need not wait for it.

    Meeting a few winners by positions costs less than meeting them twice: those that land while one waits are met under the lock anyway.
    """
    behind = landing.catalog.head(tx.execution.branch) - tx.base.snapshot_id
    changes = tx.work.changes
    if behind == 0 or changes.only_appends or (behind <= FEW_WINNERS and not (changes.reads or changes.shown or changes.defines)):
        return ()
    return take(tx, meet(tx, landing.catalog))


def _make_durable(tx: Transaction, before: frozenset[int] | None = None) -> frozenset[int]:
    """Syncs what was staged and not synced `before` (ids of staged fragments; None: the first time); returns what is synced now."""
    staged = [s for s in tx.work.changes.staged() if before is None or s.fragment.fragment_id not in before]
    fragments.make_durable(tx.execution.paths, staged)
    steps.reached("sync_files" if before is None else "sync_again")
    fragments.make_names_durable(tx.execution.paths, staged)
    if before is None:
        steps.reached("sync_directory")
    return (before or frozenset()) | {s.fragment.fragment_id for s in staged}


def _land(tx: Transaction, landing: Landing, head: int, resolutions: tuple[Resolution, ...]) -> tuple[CommitResult, Published]:
    deleting = (k for k, c in tx.work.changes.tables.items() if not c.created and (c.deleted or c.dropped))
    heads = {k: tx.base.state(tx.base.namespace.by_id[k]) for k in deleting}  # rows that are only added need nothing of the head
    record = Record(
        tx.transaction_id, tx.first_base, tx.attempts, landing.author, landing.message, landing.operation,
        _recorded(tx), tx.isolation, landing.now_us(), tx.execution.branch,
    )  # fmt: skip
    resolutions = tuple(_distinct(resolutions))
    published = _publish(tx, landing, record, heads, head, resolutions)
    steps.reached("committed")
    warnings = _checkpoint(landing.catalog)
    return CommitResult(published.snapshot_id, tx.first_base, tx.attempts, resolutions, tx.transaction_id, warnings, published.clutter), published


def _renumber(tx: Transaction, published: Published) -> tuple[str, ...]:
    """Keeps what is cached of the committed fragments. The commit has landed, its answer must not be an error: what goes wrong is a warning."""
    try:
        for table_id, ids in published.fragments.items():
            tx.execution.engine.renumber(table_id, ids)
    except Exception as error:  # the rows are loaded again when they are next needed
        return (f"the cache could not be kept: {error}",)
    return ()


def _recorded(tx: Transaction) -> tuple[str, ...]:
    """The statements for the history: each run of equal ones once, and of a very long one the beginning."""
    texts = [text for text, _ in itertools.groupby(without_leading_comments(entry.call.text) for entry in tx.log)]
    return tuple(t if len(t) <= RECORDED_CHARACTERS else f"{t[:RECORDED_CHARACTERS]} … ({len(t)} characters)" for t in texts)


def _distinct(lines: tuple[Resolution, ...]) -> list[Resolution]:
    """One line per winner and table: the last one, where attempts met the same winner."""
    return list({(r.winner_snapshot_id, r.table_id): r for r in lines}.values())


def _publish(tx: Transaction, landing: Landing, record: Record, heads: dict[int, TableState], head: int, ledger: Iterable[Resolution]) -> Published:
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
    try:
        if os.stat(f"{catalog.path}-wal").st_size > CHECKPOINT_BYTES:
            catalog.checkpoint()
            steps.reached("checkpoint")
    except FileNotFoundError:
        return ()
    except Exception as error:  # the commit has landed
        return (f"the catalog could not be checkpointed: {error.message if isinstance(error, Error) else error}",)
    return ()


def work_on(view: LakeView) -> Work:
    """The state of a transaction that has done nothing yet."""
    return Work(view.namespace, ChangeSet())


def now_us() -> int:
    """The system's clock in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def view_of_head(catalog: Catalog, known: LakeView | None, branch: int) -> LakeView:
    """The head as it is now, with what is still right of an older view."""
    head = catalog.head(branch)
    return LakeView.load(catalog, head) if known is None else known.advanced(head)
