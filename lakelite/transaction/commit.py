"""The durable commit, in the order of the steps in `steps.py`, and the loop around it that ends every conflict.

    sync files → sync directories → lock → resolve → publish → COMMIT → checkpoint → unlock

What can be resolved before is resolved before the lock is taken, and checked again inside: what little is left by then is done
under the lock, more of it outside again. The last attempt does all under the lock, where the head cannot move, so that it ends.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from lakelite import deletion, steps
from lakelite.catalog.store import Catalog, CommitFailed, open_catalog
from lakelite.composition import Unplaced
from lakelite.contents import Inline, TableState
from lakelite.errors import CommitUnknown, Conflict, Error, OperationalError, ProgrammingError, TransactionConflict
from lakelite.language import statements as st
from lakelite.language.parse import mentions
from lakelite.language.tokens import without_leading_comments
from lakelite.storage import fragment as fragments
from lakelite.transaction import resolve
from lakelite.transaction.changes import ChangeSet, Work
from lakelite.transaction.delta import Delta
from lakelite.transaction.publish import Published, Record, publish
from lakelite.transaction.rebase import Rebased, delta_of, rebase
from lakelite.transaction.record import Differing, Failed, Undone, looks
from lakelite.transaction.resolve import Candidate, Effect, Resolution, Verdict, Winner
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.unaffected import is_unaffected
from lakelite.transaction.view import LakeView

CHECKPOINT_BYTES = 4 * 1024 * 1024
RECORDED_CHARACTERS = 4_000
SHOWN_KEYS = 10


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A commit that landed: what `con.last_commit` gives.

    `snapshot_id`: the version that it made. `base_snapshot_id`: the one that its transaction began on; all versions in between are
    winners. `attempts`: 1 or more, how often it was tried. `resolutions`: for each winner and table that it met, how it was
    reconciled (Resolution); none where nothing landed meanwhile. `transaction_id`: text, the same in `lake.snapshots` and in
    CommitUnknown. `warnings`: text, what went wrong behind the commit, which stands. `inline`: by table id, what each table that
    was changed had inline before the commit and has now: numbers of fragments and of rows.
    """

    snapshot_id: int
    base_snapshot_id: int
    attempts: int
    resolutions: tuple[Resolution, ...]
    transaction_id: str
    warnings: tuple[str, ...] = ()
    inline: Mapping[int, tuple[Inline, Inline]] = field(default_factory=dict)


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
    """What can be resolved before the lock is taken, so that others need not wait for it."""
    if tx.base.snapshot_id == landing.catalog.head() or tx.work.changes.only_appends:
        return ()
    return take(tx, meet(tx, landing.catalog))


@dataclass(frozen=True, slots=True)
class Step:
    """How the transaction gets from its base to `head`: the verdict, and the deltas of the tables that are moved row by row."""

    head: LakeView
    candidate: Candidate
    winners: list[Winner]
    verdict: Verdict
    deltas: Mapping[int, Delta] = field(default_factory=dict)

    @property
    def touched(self) -> frozenset[int]:
        """The tables that winners touched and whose rows may be others now."""
        return frozenset(table_id for winner in self.winners for table_id in winner.effects) - self.candidate.unaffected

    def is_small(self, tx: Transaction) -> bool:
        """Whether it may be taken under the commit lock."""
        if self.verdict.outcome == "replay" or any(one.may_change(self.touched) for one in looks(tx.events)):
            return False
        rows = sum(len(p) for d in self.deltas.values() for p in d.added.values())
        return rows <= tx.execution.limits.reevaluate_locked_rows


def take(tx: Transaction, step: Step) -> tuple[Resolution, ...]:
    """Brings the transaction to the head of the step; returns the ledger's lines. Raises where what was handed out would differ."""
    if step.head.snapshot_id == tx.base.snapshot_id:
        return ()
    verdict = step.verdict
    if verdict.outcome == "supersede":
        return _superseded(tx, step)
    if verdict.outcome == "rebase":
        lines, contested = _rebase(tx, step)
        if lines is not None:
            return lines
        verdict = resolve.verdict(step.candidate, step.winners, step.head.namespace, contested=contested, must_run_again=True)
        _raise_conflicts(tx, verdict)
    _raise_if(tx, step, tx.replay(step.head, step.touched))
    return tuple(replace(line, rung=4) for line in verdict.resolutions)


def _superseded(tx: Transaction, step: Step) -> tuple[Resolution, ...]:
    """The transaction is taken as the one before the overwrite: nothing is left of its rows."""
    changes = replace(tx.work.changes, tables={})
    tx.move(step.head, Work(changes.names_over(step.head.namespace), changes), -sum(c.rows_added for c in tx.work.changes.tables.values()))
    return step.verdict.resolutions


def _rebase(tx: Transaction, step: Step) -> tuple[tuple[Resolution, ...] | None, frozenset[int]]:
    """Moves the work onto the head; None where only running again tells what it is there, with the tables of which both changed a row."""
    try:
        moved = rebase(tx, step.head, step.deltas, step.verdict.evaluated)
    except Unplaced:  # the compositions do not say where a row is
        return None, frozenset()
    if moved.contested:
        return None, moved.contested
    has_other_counts = bool(moved.lost or moved.gained)
    if has_other_counts and (tx.promises_all or (len(tx.log) > 1 and not tx.explicit)):  # how many rows did each of several statements change?
        return None, frozenset()
    _raise_if(tx, step, tx.look_again_at(step.head, step.touched))
    tx.move(step.head, moved.work, moved.correction)
    several = len(tx.work.changes.tables) > 1
    return tuple(_worded(line, moved, several=several) for line in step.verdict.resolutions), frozenset()


def _raise_conflicts(tx: Transaction, verdict: Verdict) -> None:
    if verdict.outcome == "conflict":
        raise _raised(tx, tuple(_with_row_ids(tx.execution.catalog, tx, c) for c in verdict.conflicts))


def _raise_if(tx: Transaction, step: Step, differing: list[Differing]) -> None:
    if differing:
        conflicts = resolve.differing(step.candidate, step.winners, step.head.namespace, differing)
        raise _raised(tx, tuple(_with_row_ids(tx.execution.catalog, tx, c) for c in conflicts))


def _make_durable(tx: Transaction, before: frozenset[int] | None = None) -> frozenset[int]:
    """Syncs what was staged and not synced `before` (ids of staged fragments; None: the first time); returns what is synced now."""
    staged = [s for s in tx.work.changes.staged() if before is None or s.fragment.fragment_id not in before]
    fragments.make_durable(tx.execution.paths, staged)
    steps.reached("sync_files" if before is None else "sync_again")
    fragments.make_names_durable(tx.execution.paths, staged)
    if before is None:
        steps.reached("sync_directory")
    return (before or frozenset()) | {s.fragment.fragment_id for s in staged}


def meet(tx: Transaction, catalog: Catalog) -> Step:
    """How to get to the head, past everything that landed since the base; raises where it is a conflict."""
    head = tx.base.advanced(catalog.head())
    statement = "; ".join(without_leading_comments(entry.call.text) for entry in tx.log)
    won = _winners(catalog, tx.base.snapshot_id, head.snapshot_id) if head is not tx.base else []
    candidate = _candidate(tx, head, won, statement)
    if len(won) != head.snapshot_id - tx.base.snapshot_id:
        return Step(head, candidate, won, _expired(tx, statement))
    verdict = resolve.verdict(candidate, won, head.namespace)
    if won:
        steps.reached("resolve")
    _raise_conflicts(tx, verdict)
    return Step(head, candidate, won, verdict, {k: delta_of(tx, head, k) for k in verdict.moved})


def _candidate(tx: Transaction, head: LakeView, won: list[Winner], statement: str) -> Candidate:
    touched = frozenset(table_id for winner in won for table_id in winner.effects)
    there = head.namespace.by_id.keys() & tx.base.namespace.by_id.keys()
    looked = {*tx.work.changes.reads, *tx.work.changes.shown} & touched & there
    unaffected = frozenset(k for k in looked if is_unaffected(tx, tx.base.namespace.by_id[k], delta_of(tx, head, k)))
    own = any(one.saw_own and one.may_change(touched - unaffected) for one in looks(tx.events))
    promised = tx.promises_all and any(isinstance(e, Failed) or (isinstance(e, Undone) and e.is_promised) for e in tx.events)
    return Candidate(
        tx.work.changes, tx.base.namespace, tx.explicit, statement, tx.isolation, _words(tx) if won else None, unaffected, own, promised,
        tx.isolation == "write serializable" and tx.execution.limits.overwrite_append == "supersede",
    )  # fmt: skip


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
        if by_place or isinstance(entry.operation, st.Append) or "*" in entry.call.text:
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
        Winner(r[0], r[1], r[2], r[3], r[4], bool(r[5]), r[6], effects.get(r[0], {}), r[0] in namespace)
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
    deleting = (k for k, c in tx.work.changes.tables.items() if not c.created and (c.deleted or c.dropped))
    heads = {k: tx.base.state(tx.base.namespace.by_id[k]) for k in deleting}  # rows that are only added need nothing of the head
    record = Record(
        tx.transaction_id, tx.first_base, tx.attempts, landing.author, landing.message, landing.operation,
        _recorded(tx), tx.isolation, landing.now_us(),
    )  # fmt: skip
    resolutions = tuple(_distinct(resolutions))
    published = _publish(tx, landing, record, heads, head, resolutions)
    steps.reached("committed")
    warnings = _checkpoint(landing.catalog)
    return CommitResult(published.snapshot_id, tx.first_base, tx.attempts, resolutions, tx.transaction_id, warnings, published.inline), published


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


def _worded(line: Resolution, moved: Rebased, *, several: bool) -> Resolution:
    """The line with the rows that it was about, in the words that a user is told; with the table's name where there are several."""
    key = (line.table_id or 0, line.winner_snapshot_id)
    lost, gained = moved.lost.get(key, 0), moved.gained.get(key, 0)
    if not (lost or gained):
        return line
    of = f" of {line.table}" if several else ""
    did, winner = "deleted" if line.rung == 2 else "deleted or changed", f"snapshot {line.winner_snapshot_id}"
    gone = f"{_rows(lost)}{of} {'was' if lost == 1 else 'were'} already {did} by {winner}" if lost else ""
    new = f"{_rows(gained)}{of} that {winner} added or changed {'is' if gained == 1 else 'are'} changed too" if gained else ""
    return replace(line, row_count=lost + gained, noticeable=True, explanation="; ".join(filter(None, (gone, new))))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


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
    wal = catalog.path.with_name(catalog.path.name + "-wal")
    try:
        if wal.stat().st_size > CHECKPOINT_BYTES:
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


def view_of_head(catalog: Catalog, known: LakeView | None) -> LakeView:
    """The head as it is now, with what is still right of an older view."""
    head = catalog.head()
    return LakeView.load(catalog, head) if known is None else known.advanced(head)
