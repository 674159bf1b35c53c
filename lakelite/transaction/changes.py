"""What a transaction has done so far: immutable values that statements produce and a commit publishes.

Nothing here reads or writes. `overlay` is how a transaction sees its own writes; `rebased` states on a newer snapshot come
from the same function, so that both are the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from lakelite import deletion
from lakelite.composition import Composition
from lakelite.contents import Namespace, TableState
from lakelite.model import Schema, Table
from lakelite.records import dataclass
from lakelite.storage.fragment import Staged

if TYPE_CHECKING:
    from pyroaring import BitMap

Kind = Literal[
    "create", "drop", "schema", "extend", "shrink", "rename", "rewrite", "append", "delete", "update", "overwrite", "supersede", "compaction"
]  # fmt: skip
REDEFINING: frozenset[Kind] = frozenset({"schema", "extend", "shrink"})


@dataclass(frozen=True, slots=True)
class TableChange:
    """The net change of one table. `deleted`: newly deleted positions of the base's fragments; `staged_deleted` of staged ones.

    `created`: the table is not in the base. `kinds`: what the statements were, also those that matched no row; "supersede": an
    overwrite was the first of them, so that whatever was appended meanwhile may be taken to have come before it.
    `made`: of a compaction, the composition of each staged output by its staged id.
    """

    table: Table
    created: bool = False
    kinds: frozenset[Kind] = frozenset()
    deleted: Mapping[int, BitMap] = field(default_factory=dict)
    staged: Mapping[int, Staged] = field(default_factory=dict)
    staged_deleted: Mapping[int, BitMap] = field(default_factory=dict)
    made: Mapping[int, Composition] = field(default_factory=dict)

    @property
    def dropped(self) -> bool:
        return "drop" in self.kinds

    @property
    def redefines(self) -> bool:
        """Whether the columns or the name are other ones than before."""
        return bool(REDEFINING & self.kinds)

    @property
    def rows_added(self) -> int:
        return sum(s.fragment.row_count for s in self.staged.values()) - sum(len(d) for d in self.staged_deleted.values())

    @property
    def rows_removed(self) -> int:
        return sum(len(d) for d in self.deleted.values())

    def live_staged(self) -> list[Staged]:
        """The staged fragments that still have a live row."""
        return [s for k, s in self.staged.items() if len(self.staged_deleted.get(k, ())) < s.fragment.row_count]


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Everything that a transaction would publish, and what it learnt on the way.

    `reads`: tables whose rows decided what was written (not the rows that a row-local UPDATE or DELETE of the same table
    looked at); `shown`: tables whose rows were handed out; each with the statement that did it first. `external`: a statement
    whose outcome cannot be repeated exactly, because it also read files.
    `conditional`: an IF [NOT] EXISTS found nothing to do. `found`: tables whose definition was already what an ALTER wanted.
    `own_shown`: tables that were shown after they had been written. `merged`: the snapshot of another branch that was merged.
    """

    tables: Mapping[int, TableChange] = field(default_factory=dict)
    schemas_created: Mapping[int, Schema] = field(default_factory=dict)
    schemas_dropped: frozenset[int] = frozenset()
    defines: bool = False
    writes: bool = False
    blind: bool = True
    reads: Mapping[int, str] = field(default_factory=dict)
    shown: Mapping[int, str] = field(default_factory=dict)
    own_shown: frozenset[int] = frozenset()
    external: str | None = None
    conditional: bool = False
    found: frozenset[int] = frozenset()
    merged: int | None = None

    @property
    def only_appends(self) -> bool:
        """Whether nothing but rows was added, and nothing was read: it stands beside nearly everything."""
        return not (self.reads or self.shown or self.defines) and all(c.kinds == {"append"} for c in self.tables.values())

    def change_of(self, table: Table) -> TableChange:
        return self.tables.get(table.table_id) or TableChange(table)

    def with_change(self, change: TableChange) -> ChangeSet:
        return replace(self, tables={**self.tables, change.table.table_id: change}, writes=True)

    def with_reads(self, table_ids: frozenset[int], statement: str) -> ChangeSet:
        return replace(self, reads={**dict.fromkeys(table_ids, statement), **self.reads}, blind=self.blind and not table_ids)

    def with_shown(self, table_ids: frozenset[int], statement: str, before: ChangeSet | None = None) -> ChangeSet:
        """`before`: what had been done before the statement, where it did something itself."""
        return replace(
            self,
            shown={**dict.fromkeys(table_ids, statement), **self.shown},
            own_shown=self.own_shown | (table_ids & (before or self).tables.keys()),
            blind=self.blind and not table_ids,
        )

    def after_undoing(self, undone: ChangeSet) -> ChangeSet:
        """These changes, once the statements that led on to `undone` have been taken back: what they handed out stays handed out.

        Where rows that the transaction itself had written were shown, what they came from counts as shown too.
        """
        if not undone.own_shown:
            return replace(self, shown=undone.shown, blind=self.blind and not undone.shown)
        came_from = {k: s for k, s in undone.reads.items() if k not in self.reads}
        return replace(
            self,
            shown={**came_from, **undone.shown},
            own_shown=undone.own_shown,
            external=undone.external,
            blind=False,
        )

    def names_over(self, namespace: Namespace) -> Namespace:
        """A snapshot's names with what the transaction made and dropped."""
        for schema in self.schemas_created.values():
            namespace = namespace.with_schema(schema)
        for change in self.tables.values():
            if change.dropped:
                namespace = namespace.without_table(change.table.table_id)
            elif change.created or change.redefines:
                namespace = namespace.with_table(change.table)
        for schema in list(namespace.schemas.values()):
            if schema.schema_id in self.schemas_dropped:
                namespace = namespace.without_schema(schema.name)
        return namespace

    def staged(self) -> list[Staged]:
        """Every staged fragment that the commit would publish."""
        return [s for change in self.tables.values() if not change.dropped for s in change.live_staged()]


@dataclass(frozen=True, slots=True)
class Work:
    """A transaction's state between two statements: the namespace as it sees it, and its changes."""

    namespace: Namespace
    changes: ChangeSet


def overlay(base: TableState, change: TableChange) -> TableState:
    """The table as a transaction with `change` sees it, over `base`: the state it read, or a newer one that it was rebased to."""
    fragments = {**base.fragments, **{k: s.fragment for k, s in change.staged.items()}}
    vectors = dict(base.vectors)
    for fragment_id, positions in (*change.deleted.items(), *change.staged_deleted.items()):
        fragment = fragments.get(fragment_id)
        if fragment is not None and positions:
            vectors[fragment_id] = deletion.union(vectors.get(fragment_id), positions, fragment.row_count)
    emptied = {k for k, v in vectors.items() if v.cardinality == fragments[k].row_count}
    rows = {k: s.ipc for k, s in change.staged.items() if s.ipc is not None}
    return TableState(
        change.table,
        {k: f for k, f in fragments.items() if k not in emptied},
        {k: v for k, v in vectors.items() if k not in emptied},
        rows,
    )


def delete(change: TableChange, positions: Mapping[int, BitMap], kind: Kind) -> TableChange:
    """`change` with more deleted rows; staged fragments are known by their negative ids."""
    deleted, staged_deleted = dict(change.deleted), dict(change.staged_deleted)
    for fragment_id, more in positions.items():
        side = staged_deleted if fragment_id < 0 else deleted
        side[fragment_id] = side[fragment_id] | more if fragment_id in side else more
    return replace(change, deleted=deleted, staged_deleted=staged_deleted, kinds=change.kinds | {kind})


def append(change: TableChange, staged: Iterable[Staged], kind: Kind) -> TableChange:
    """`change` with more staged fragments (none: the statement gave no rows)."""
    return replace(change, staged={**change.staged, **{s.fragment.fragment_id: s for s in staged}}, kinds=change.kinds | {kind})


def delete_all(change: TableChange, state: TableState, kind: Kind) -> TableChange:
    """`change` with every live row of `state` (the table as the transaction sees it) deleted."""
    return delete(change, {fragment_id: state.alive(fragment_id) for fragment_id in state.fragments}, kind)


def overwrite(change: TableChange, state: TableState) -> TableChange:
    """The same, to make way for what an overwrite puts there."""
    first: frozenset[Kind] = frozenset({"supersede"} if not change.kinds else ())
    return replace(delete_all(change, state, "overwrite"), kinds=change.kinds | first | {"overwrite"})
