"""What a snapshot holds: its namespace and, per table, its fragments and deletion vectors. Immutable values.

Every `TableState` carries a `stamp` that no other state of this process has, so that what is derived from it (a DuckDB
view, a bitstring) can be kept for as long as the stamp is the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakelite import deletion
from lakelite.deletion import DeletionVector
from lakelite.model import MAIN_SCHEMA, Fragment, Schema, Table, fold
from lakelite.records import dataclass

if TYPE_CHECKING:
    from pyroaring import BitMap

_stamps = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Clutter:
    """What upkeep goes by: how many inline fragments a table has and how many rows are in them, deleted ones too; its files, and its deleted rows."""

    inline_fragments: int
    inline_rows: int
    files: int
    deleted_rows: int


@dataclass(frozen=True, eq=False)
class TableState:
    """One table at one moment. `fragments` and `vectors` are keyed by fragment id; `staged_rows`: IPC bytes of staged inline fragments."""

    table: Table
    fragments: Mapping[int, Fragment]
    vectors: Mapping[int, DeletionVector]
    staged_rows: Mapping[int, bytes] = field(default_factory=dict)
    stamp: int = field(default_factory=lambda: next(_stamps))

    @cached_property
    def row_count(self) -> int:
        """Live rows."""
        return sum(f.row_count for f in self.fragments.values()) - self.deleted_count

    @cached_property
    def deleted_count(self) -> int:
        return sum(v.cardinality for v in self.vectors.values())

    @cached_property
    def clutter(self) -> Clutter:
        found = [f.row_count for f in self.fragments.values() if f.storage == "inline"]
        return Clutter(len(found), sum(found), len(self.fragments) - len(found), self.deleted_count)

    def defined_as(self, table: Table) -> TableState:
        """The same rows under another definition of the table."""
        return self if table == self.table else TableState(table, self.fragments, self.vectors, self.staged_rows)

    def part(self, fragments: Iterable[Fragment]) -> TableState:
        """The rows of some of its fragments."""
        kept = {f.fragment_id: f for f in fragments}
        vectors = {k: v for k, v in self.vectors.items() if k in kept}
        return TableState(self.table, kept, vectors, {k: ipc for k, ipc in self.staged_rows.items() if k in kept})

    def without(self, positions: Mapping[int, BitMap]) -> TableState:
        """The state with those rows deleted as well."""
        vectors = dict(self.vectors)
        for fragment_id, some in positions.items():
            if some:
                vectors[fragment_id] = deletion.union(vectors.get(fragment_id), some, self.fragments[fragment_id].row_count)
        live = {k: f for k, f in self.fragments.items() if k not in vectors or vectors[k].cardinality < f.row_count}
        return TableState(self.table, live, {k: v for k, v in vectors.items() if k in live}, self.staged_rows)

    def alive(self, fragment_id: int) -> BitMap:
        """The positions of a fragment's live rows."""
        vector = self.vectors.get(fragment_id)
        live = deletion.everything(self.fragments[fragment_id].row_count)
        return live if vector is None else live - vector.positions


@dataclass(frozen=True, eq=False)
class Namespace:
    """Schemas, and tables and views by folded name. `stamp` as in TableState."""

    schemas: Mapping[str, Schema]
    tables: Mapping[tuple[str, str], Table]
    stamp: int = field(default_factory=lambda: next(_stamps))

    @cached_property
    def by_id(self) -> Mapping[int, Table]:
        return {t.table_id: t for t in self.tables.values()}

    @cached_property
    def views(self) -> tuple[Table, ...]:
        return tuple(t for t in self.tables.values() if t.view is not None)

    def find(self, schema: str | None, name: str) -> Table | None:
        """The table or view of that name; without a schema, of `main`."""
        return self.tables.get((fold(schema or MAIN_SCHEMA), fold(name)))

    def with_table(self, table: Table) -> Namespace:
        """With `table` added, or put in the place of its older definition."""
        kept = {k: t for k, t in self.tables.items() if t.table_id != table.table_id}
        return replace(self, tables={**kept, (fold(table.schema_name), fold(table.name)): table}, stamp=next(_stamps))

    def without_table(self, table_id: int) -> Namespace:
        return replace(self, tables={k: t for k, t in self.tables.items() if t.table_id != table_id}, stamp=next(_stamps))

    def with_schema(self, schema: Schema) -> Namespace:
        return replace(self, schemas={**self.schemas, fold(schema.name): schema}, stamp=next(_stamps))

    def without_schema(self, name: str) -> Namespace:
        return replace(self, schemas={k: s for k, s in self.schemas.items() if k != fold(name)}, stamp=next(_stamps))
