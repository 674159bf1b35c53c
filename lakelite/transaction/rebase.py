"""Moving what a transaction did from its base onto the head without running it again: rungs 1 to 3 of the ladder (resolver.md, section 3).

    remap         its deleted rows are found where compactions moved them; those that winners deleted are simply gone
    drop          what it had staged for a row that is gone: nothing is resurrected
    re-evaluate   its row-local statements run, in order, on just the rows that are new at the head

The outcome is what it would have done on the head. Decides nothing: resolve.py says whether this is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelite import deletion
from lakelite.composition import Composition, Unplaced
from lakelite.contents import TableState
from lakelite.deletion import DeletionVector
from lakelite.language import statements as st
from lakelite.records import dataclass
from lakelite.transaction import changes as ch
from lakelite.transaction import constraints, keys, match, row_ids
from lakelite.transaction.delta import Delta
from lakelite.transaction.record import Logged
from lakelite.transaction.run import run
from lakelite.transaction.running_again import running_again
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import LakeView

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True)
class Rebased:
    """`work`: the transaction's state on the head. By table and the winner's snapshot: `lost`, rows that it had changed and that the
    winner had deleted or changed before; `gained`, rows that the winner had added or changed and that it changes as well.

    `contested`: tables of which both changed a row, one that both deleted not counted; only asked at level `snapshot`.
    """

    work: ch.Work
    lost: Mapping[tuple[int, int], int]
    gained: Mapping[tuple[int, int], int]
    contested: frozenset[int]

    @property
    def correction(self) -> int:
        """How many rows more its statements changed than on the base. An overwrite counts the rows that it inserts, and those are the same."""
        changes = self.work.changes.tables
        counted = [(n, table_id) for side, sign in ((self.gained, 1), (self.lost, -1)) for (table_id, _), m in side.items() for n in [sign * m]]
        return sum(n for n, table_id in counted if "overwrite" not in changes[table_id].kinds)


def delta_of(tx: Transaction, head: LakeView, table_id: int) -> Delta:
    """What happened to a table that is there at the base and at the head."""
    catalog = tx.execution.catalog
    before, after = tx.base.namespace.by_id[table_id], head.namespace.by_id[table_id]
    base, now = tx.base.state(before), head.state(after)
    moved = any(fragment_id not in now.fragments for fragment_id in base.fragments)
    return Delta(base, now, catalog.compositions(before, tx.base.snapshot_id, head.snapshot_id) if moved else {})


def rebase(tx: Transaction, head: LakeView, deltas: Mapping[int, Delta], evaluated: frozenset[int], keyed: Collection[int]) -> Rebased:
    """`head`: under the names of the transaction's base. `deltas`: of every table that the transaction changed and winners touched;
    `evaluated`: those whose new rows matter; `keyed`: those to which the transaction gave rows with keys of their own.

    Unplaced where compositions do not tell. IntegrityError where a row breaks a constraint.
    """
    tables = dict(tx.work.changes.tables)
    lost: Counter[tuple[int, int]] = Counter()
    gained: Counter[tuple[int, int]] = Counter()
    added: dict[int, Mapping[int, BitMap]] = {}
    contested: set[int] = set()
    for table_id, delta in deltas.items():
        if "compaction" in tables[table_id].kinds:
            tables[table_id] = compaction(tables[table_id], delta)
            continue
        before = tables[table_id]
        gone = delta.lost(before.deleted)
        lost.update(_killers(tx, head, delta.base, gone))
        tables[table_id] = _moved(tx, before, delta, gone)
        if tx.isolation == "snapshot" and gone and _is_contested(tx, delta, before, gone):
            contested.add(table_id)
        if table_id in evaluated and (new := delta.added):
            added[table_id] = new
    contested |= _colliding(tx, tables, {k: d for k, d in deltas.items() if k in keyed})
    for table_id, more in _reevaluated(tx, head, deltas, added).items():
        tables[table_id] = _joined(tables[table_id], more)
        for fragment_id, positions in more.deleted.items():
            gained[(table_id, deltas[table_id].head.fragments[fragment_id].born or 0)] += len(positions)
    changes = replace(tx.work.changes, tables=tables)
    return Rebased(ch.Work(changes.names_over(head.namespace), changes), lost, gained, frozenset(contested))


def _colliding(tx: Transaction, tables: Mapping[int, ch.TableChange], deltas: Mapping[int, Delta]) -> set[int]:
    """The tables in which a winner took a key of the transaction's first, at level `snapshot`; at the others an IntegrityError."""
    found = {k: keys.collision(tx, _staged(tables[k]), delta) for k, delta in deltas.items()}
    if tx.isolation != "snapshot":
        for table_id, one in found.items():
            if one is not None:
                wrote = [entry for entry in tx.log if table_id in entry.target]
                tx.failed_again = wrote[0] if len(wrote) == 1 else None
                raise constraints.duplicate_key(*one)
    return {k for k, one in found.items() if one is not None}


def _killers(tx: Transaction, head: LakeView, base: TableState, gone: Mapping[int, BitMap]) -> Counter[tuple[int, int]]:
    """Which winner deleted how many of the rows in `gone`; those that a compaction had moved before count for the newest winner."""
    found: Counter[tuple[int, int]] = Counter()
    if not gone:
        return found
    table_id = base.table.table_id
    versions, ends = tx.execution.catalog.deaths(base.table, tx.base.snapshot_id, head.snapshot_id)
    left = {k: p.copy() for k, p in gone.items()}
    for fragment_id, vector in versions:
        if fragment_id in left:
            found[(table_id, vector.born or 0)] += len(left[fragment_id] & vector.positions)
            left[fragment_id] -= vector.positions
    for fragment_id, rest in left.items():
        found[(table_id, ends.get(fragment_id, head.snapshot_id))] += len(rest)
    return +found


def compaction(change: ch.TableChange, delta: Delta) -> ch.TableChange:
    """A compaction on the head: what winners deleted in its sources is deleted in its outputs.

    Outputs whose rows another one took are dropped, and those of which it cannot be told where a deleted row went; with them all
    that hold rows of the same sources, since a source is moved whole.
    """
    dead: dict[int, BitMap] = {}
    staying: set[int] = set()
    for staged_id, made in change.made.items():
        try:
            dead[staged_id] = _dead_in(made, delta) | change.staged_deleted.get(staged_id, deletion.span(0, 0))
        except Unplaced:
            staying |= set(made.sources)
    kept = _without(change.made, staying)
    sources = {source for made in kept.values() for source in made.sources}
    return replace(
        change,
        table=delta.head.table,
        deleted={k: p for k, p in change.deleted.items() if k in sources},
        staged={k: s for k, s in change.staged.items() if k in kept},
        staged_deleted={k: p for k, p in dead.items() if k in kept and p},
        made=kept,
    )


def _dead_in(made: Composition, delta: Delta) -> BitMap:
    """The positions of an output whose rows winners deleted in its sources; Unplaced where that cannot be told."""
    dead = deletion.span(0, 0)
    for source in made.sources:
        if _is_taken(delta, source):
            raise Unplaced(f"another compaction took the rows of fragment {source}")
        if gone := _gone(delta, source):
            dead |= deletion.positions_of(made.place(source, deletion.to_array(gone))[1])
    return dead


def _without(made: Mapping[int, Composition], staying: set[int]) -> dict[int, Composition]:
    """The outputs that share no source with those that hold rows of `staying`, directly or through others."""
    kept = dict(made)
    while out := [k for k, one in kept.items() if not staying.isdisjoint(one.sources)]:
        for staged_id in out:
            staying = staying.union(kept.pop(staged_id).sources)
    return kept


def _is_taken(delta: Delta, source: int) -> bool:
    """Whether another compaction has moved the rows of a source."""
    return source not in delta.head.fragments and any(made.has_source(source) for made in delta.compositions.values())


def _gone(delta: Delta, source: int) -> BitMap:
    """The positions of a source that winners deleted. One that they emptied must not come back from the dead."""
    if source not in delta.base.fragments:  # emptied before the base, to which the compaction was moved then
        return deletion.span(0, 0)
    alive = delta.base.alive(source)
    return alive - delta.head.alive(source) if source in delta.head.fragments else alive


def _staged(change: ch.TableChange) -> TableState:
    """What a transaction has staged for a table, as a state."""
    ipc = {k: s.ipc for k, s in change.staged.items() if s.ipc is not None}
    dead = {k: DeletionVector(p, change.staged[k].fragment.row_count) for k, p in change.staged_deleted.items() if p}
    return TableState(change.table, {k: s.fragment for k, s in change.staged.items()}, dead, ipc)


def _is_contested(tx: Transaction, delta: Delta, change: ch.TableChange, gone: Mapping[int, BitMap]) -> bool:
    """Whether a row that both deleted lives on with either of them: then one of them has changed it. An overwrite leaves nothing to contest."""
    if "overwrite" in change.kinds:
        return False
    ids = row_ids.ids_of(tx.execution, delta.base, gone)
    theirs = row_ids.only(delta.head, delta.added)
    return bool(row_ids.rows_with(tx.execution, _staged(change), ids) or row_ids.rows_with(tx.execution, theirs, ids))


def _moved(tx: Transaction, change: ch.TableChange, delta: Delta, gone: Mapping[int, BitMap]) -> ch.TableChange:
    staged_deleted = dict(change.staged_deleted)
    if gone and any(s.fragment.has_row_ids for s in change.staged.values()):
        ids = row_ids.ids_of(tx.execution, delta.base, gone)
        staged = _staged(change)
        for staged_id, positions in row_ids.rows_with(tx.execution, staged, ids).items():
            staged_deleted[staged_id] = staged_deleted[staged_id] | positions if staged_id in staged_deleted else positions
    return replace(change, table=delta.head.table, deleted=delta.carried(change.deleted), staged_deleted=staged_deleted)


def _joined(change: ch.TableChange, more: ch.TableChange) -> ch.TableChange:
    """What was moved, and what the re-evaluation did: they concern different rows."""
    joined = ch.delete(change, {**more.deleted, **more.staged_deleted}, "update" if "update" in more.kinds else "delete")
    return replace(joined, staged={**joined.staged, **more.staged}, kinds=change.kinds)


# Re-evaluation.


def _reevaluated(
    tx: Transaction, head: LakeView, deltas: Mapping[int, Delta], added: Mapping[int, Mapping[int, BitMap]]
) -> Mapping[int, ch.TableChange]:
    """What the row-local statements do to the added rows, each on what the ones before it made of them."""
    states = {k: row_ids.only(deltas[k].head, rows) for k, rows in added.items()}
    view = LakeView(tx.execution.catalog, tx.base.snapshot_id, head.namespace, states)
    execution = replace(tx.execution, view=view, _overlays={})
    work = ch.Work(head.namespace, ch.ChangeSet())
    for entry in tx.log:
        operation = _on_rows(entry)
        if operation is not None and entry.table is not None and entry.table.table_id in states:
            with running_again(tx, entry):
                if isinstance(operation, st.Delete | st.Update) and match.finds_nothing(
                    execution, work, states[entry.table.table_id].table, operation, entry.call
                ):
                    continue
                with tx.moment(operation, entry.call):
                    work = run(execution, work, operation, entry.call).work
    return work.changes.tables


def _on_rows(entry: Logged) -> st.Operation | None:
    """What a statement does to rows that it did not insert; None: nothing. What it returns of them is told by running it again."""
    operation = entry.operation
    if isinstance(operation, st.RestoreTable) or (isinstance(operation, st.Insert) and operation.overwrite):
        return st.Truncate(operation.target)
    if isinstance(operation, st.Delete | st.Update):
        return replace(operation, returning=None)
    return operation if isinstance(operation, st.Truncate) else None
