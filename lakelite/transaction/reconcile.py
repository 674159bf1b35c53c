"""From a transaction's base to the head: what it meets there, and the step that takes it over.

`meet` reads what landed since and asks `resolve.py` for the verdict; `take` carries it out: moved (`rebase.py`), run again, or a
conflict that is raised. Takes no lock and publishes nothing; `commit.py` is the loop around it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from lakelite import deletion, steps
from lakelite.catalog.store import Catalog
from lakelite.composition import Unplaced
from lakelite.contents import Namespace
from lakelite.errors import Conflict, Error, OperationalError, ProgrammingError, TransactionConflict
from lakelite.language import statements as st
from lakelite.language.parse import mentions
from lakelite.language.reads import names_read
from lakelite.language.tokens import without_leading_comments
from lakelite.records import dataclass
from lakelite.transaction import keys, resolve
from lakelite.transaction.binding import names_at
from lakelite.transaction.changes import REDEFINING, Work
from lakelite.transaction.conflicts import differing as conflicts_of
from lakelite.transaction.delta import Delta
from lakelite.transaction.meetings import Candidate, Effect, Winner
from lakelite.transaction.rebase import Rebased, delta_of, rebase
from lakelite.transaction.record import Differing, Event, Failed, Logged, Undone, looks, returning
from lakelite.transaction.resolve import Resolution, Verdict
from lakelite.transaction.running_again import told_of
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.unaffected import is_unaffected
from lakelite.transaction.view import LakeView

SHOWN_KEYS = 10


@dataclass(frozen=True, slots=True)
class Step:
    """How the transaction gets from its base to `head`: the verdict, and the deltas of the tables that are moved row by row.

    `head`: under the names of the base, where they are right; `namespace`: its own names.
    """

    head: LakeView
    namespace: Namespace
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
        whole = tx.returned_of  # may have to run again on all of it
        try:
            rows = sum(d.head.row_count if k in whole else sum(map(len, d.added.values())) for k, d in self.deltas.items())
        except Unplaced:  # then it has to run again
            return False
        return rows <= tx.execution.limits.reevaluate_locked_rows


def meet(tx: Transaction, catalog: Catalog) -> Step:
    """How to get to the head, past everything that landed since the base; raises where it is a conflict."""
    head = tx.base.advanced(catalog.head(tx.execution.branch))
    statement = "; ".join(without_leading_comments(entry.call.text) for entry in tx.log)
    won = _winners(catalog, tx.base, head.snapshot_id) if head is not tx.base else []
    candidate = _candidate(tx, head, won, statement)
    line = [tx.base.snapshot_id, *(winner.snapshot_id for winner in won)]
    if [winner.parent_id for winner in won] != line[:-1] or line[-1] != head.snapshot_id:
        return Step(head, head.namespace, candidate, won, _expired(tx, statement))
    verdict = resolve.verdict(candidate, won, head.namespace)
    if won:
        steps.reached("resolve")
    _raise_conflicts(tx, verdict)
    shown = head.under(names_at(tx.base.namespace, head.namespace, verdict.bound))
    return Step(shown, head.namespace, candidate, won, verdict, {k: delta_of(tx, shown, k) for k in verdict.moved})


def _candidate(tx: Transaction, head: LakeView, won: list[Winner], statement: str) -> Candidate:
    touched = frozenset(table_id for winner in won for table_id in winner.effects)
    there = head.namespace.by_id.keys() & tx.base.namespace.by_id.keys()
    looked = {*tx.work.changes.reads, *tx.work.changes.shown} & touched & there
    unaffected = frozenset(k for k in looked if is_unaffected(tx, tx.base.namespace.by_id[k], delta_of(tx, head, k)))
    own = any(one.saw_own and one.may_change(touched - unaffected) for one in looks(tx.events))
    own = own or not _undone_returning(tx.events).isdisjoint(touched - unaffected)
    promised = tx.promises_all and any(isinstance(e, Failed) or (isinstance(e, Undone) and e.is_promised) for e in tx.events)
    is_other = bool(tx.base.bound) or any(effect.kinds & REDEFINING for winner in won for effect in winner.effects.values())
    words, read = (_words(tx), _read_words(tx)) if is_other else (None, None)  # to read the statements takes longer than all the rest
    undone = frozenset(_undone_targets(tx.events))
    return Candidate(
        tx.work.changes, tx.base.namespace, tx.explicit, statement, tx.isolation, words, read, unaffected, own, promised,
        tx.isolation == "write serializable" and tx.execution.limits.overwrite_append == "supersede", tx.base.bound, undone,
        keys.gave(tx), frozenset().union(*(entry.target for entry in tx.log if _by_place(entry.operation))),
    )  # fmt: skip


def _undone_targets(events: Iterable[Event], *, inside: bool = False) -> Iterator[int]:
    """The tables of statements that were taken back and have to run again all the same."""
    for event in events:
        if isinstance(event, Undone):
            yield from _undone_targets(event.events, inside=True)
        elif inside and isinstance(event, Logged) and event.table is not None:
            yield event.table.table_id


def _undone_returning(events: Iterable[Event]) -> frozenset[int]:
    """The tables of statements that were taken back behind a RETURNING, and those that they read: only running again tells what it gives now."""
    found = [entry.tables | entry.target for event in events if isinstance(event, Undone) for entry in returning((event,))]
    return frozenset().union(*found)


def _words(tx: Transaction) -> frozenset[str] | None:
    """The names that the statements mention, folded; None where one takes all columns."""
    found: frozenset[str] = frozenset()
    for entry in tx.log:
        texts = (entry.call.text, *tx.execution.texts_within(entry.tables))
        if any("*" in text for text in texts):
            return None
        found = found.union(*map(mentions, texts))
    return found


def _by_place(operation: st.Operation) -> bool:
    """Whether a statement writes columns without naming them."""
    match operation:
        case st.Insert() | st.CopyFrom():
            return operation.columns is None
        case st.Merge():
            return any(clause.columns is None and clause.action in ("insert", "update") for clause in operation.clauses)
    return isinstance(operation, st.Append)


def _read_words(tx: Transaction) -> frozenset[str] | None:
    """The names in what the statements and the queries that were shown read, folded; None where one may read all columns."""
    found: frozenset[str] = frozenset()
    pieces = [piece for entry in tx.log for piece in _reading(entry)] + [(one.call.text, ()) for one in looks(tx.events)]
    read = frozenset[int]().union(*(entry.tables for entry in tx.log), *(one.tables for one in looks(tx.events)))
    for text, tables in [*pieces, *((text, ()) for text in tx.execution.texts_within(read))]:
        names = names_read(text, tables)
        if names is None:
            return None
        found |= names
    return found


def _reading(entry: Logged) -> list[tuple[str, tuple[str, ...]]]:
    """The parts of a statement that read columns, as queries, with the names that mean its table in them."""
    operation = entry.operation
    if isinstance(operation, st.Insert) and entry.is_constant:
        return _lists([operation.returning], (operation.target.name,))
    if entry.is_constant or isinstance(operation, st.Truncate):
        return []
    if not isinstance(operation, st.Update | st.Delete) or operation.ctes is not None or operation.sources is not None:
        return [(entry.call.text, ())]
    values = [a.value for a in operation.assignments] if isinstance(operation, st.Update) else []
    return _lists([operation.where, *values, operation.returning], (operation.target.name, operation.alias or operation.target.name))


def _lists(pieces: Iterable[st.Sql | None], names: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Expressions, or lists of them, each as a query."""
    return [(f"SELECT {part}\n", names) for sql in pieces if sql is not None for part in sql.parts if isinstance(part, str)]


def _winners(catalog: Catalog, base: LakeView, head: int) -> list[Winner]:
    """What landed in (base, head], as far as it was kept."""
    effects: dict[int, dict[int, Effect]] = {}
    namespace: set[int] = set()
    for snapshot_id, table_id, kinds, added, removed in base.effects(head):
        if table_id is None:
            namespace.add(snapshot_id)
        else:
            effects.setdefault(snapshot_id, {})[table_id] = Effect(frozenset(kinds.split(",")), added, removed)
    return [Winner.of_row(r, effects.get(r[0], {}), r[0] in namespace) for r in catalog.rows("winners", base=base.snapshot_id, head=head)]


def _expired(tx: Transaction, statement: str) -> Verdict:
    """Records of winners were pruned: in autocommit the statement runs on the head; of what was handed out nothing can be said any more."""
    if not tx.explicit:
        return Verdict("replay")
    raise OperationalError(
        f"the history since this transaction's base (snapshot {tx.base.snapshot_id}) has expired, so it cannot be reconciled",
        hint=f"run it again: {statement[:200]}",
    )


def take(tx: Transaction, step: Step) -> tuple[Resolution, ...]:
    """Brings the transaction to the head of the step; returns the ledger's lines. Raises where what was handed out would differ."""
    if step.head.snapshot_id == tx.base.snapshot_id:
        return ()
    tx.is_intact = False
    with told_of(tx, step.winners):
        return _taken(tx, step)


def _taken(tx: Transaction, step: Step) -> tuple[Resolution, ...]:
    verdict = step.verdict
    if verdict.outcome == "supersede":
        return _superseded(tx, step)
    if verdict.outcome == "rebase":
        lines, contested = _rebase(tx, step)
        if lines is not None:
            return lines
        verdict = resolve.verdict(step.candidate, step.winners, step.namespace, contested=contested, must_run_again=True)
        _raise_conflicts(tx, verdict)
    _raise_if(tx, step, tx.replay(step.head, step.touched))
    return tuple(resolve.run_again(line) for line in verdict.resolutions)


def _superseded(tx: Transaction, step: Step) -> tuple[Resolution, ...]:
    """The transaction is taken as the one before the overwrite: nothing is left of its rows."""
    changes = replace(tx.work.changes, tables={})
    tx.move(step.head, Work(changes.names_over(step.head.namespace), changes), -sum(c.rows_added for c in tx.work.changes.tables.values()))
    return step.verdict.resolutions


def _rebase(tx: Transaction, step: Step) -> tuple[tuple[Resolution, ...] | None, frozenset[int]]:
    """Moves the work onto the head; None where only running again tells what it is there, with the tables of which both changed a row."""
    try:
        moved = rebase(tx, step.head, step.deltas, step.verdict.evaluated, step.candidate.keyed.keys())
    except Unplaced:  # the compositions do not say where a row is
        return None, frozenset()
    if moved.contested:
        return None, moved.contested
    others = {table_id for table_id, _ in (*moved.lost, *moved.gained)}
    counts_are_told = tx.promises_all or (len(tx.log) > 1 and not tx.explicit)  # how many rows did each of several statements change?
    if (others and counts_are_told) or others & tx.returned_of:
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
        conflicts = conflicts_of(step.candidate, step.winners, step.namespace, differing)
        raise _raised(tx, tuple(_with_row_ids(tx.execution.catalog, tx, c) for c in conflicts))


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
    before, after = (catalog.table_state(table, one) for one in catalog.row("with_parent", snapshot=conflict.winner_snapshot_id))
    found: list[int] = []
    for fragment_id, fragment in before.fragments.items():
        if fragment.has_row_ids or len(found) >= SHOWN_KEYS:
            continue
        gone = deletion.difference(after.vectors.get(fragment_id), before.vectors.get(fragment_id), fragment, alive=fragment_id in after.fragments)
        found += [fragment.first_row_id + position for position in itertools.islice(gone, SHOWN_KEYS - len(found))]
    return replace(conflict, keys=tuple(f"row id {row_id}" for row_id in found))


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
