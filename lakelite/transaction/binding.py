"""Names were bound once: how the head is shown to a transaction whose statements were bound at its base. Pure.

By table and field id, so that what winners renamed, added, widened or dropped leaves the statements right. A column that was added is
*hidden*: no name and no star means it, and rows that are changed keep it. One that was dropped stays as a name: what is written to it
is in no table, and nothing reads it (`resolve.py` sees to that). Where another column has its name by now, that is its heir: a column of
another type is one, and nothing tells it from one that was dropped and added again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakelite.contents import Namespace
from lakelite.model import Column, Field, Table, fold


def _heirs(base: Table, head: Table) -> dict[int, Column]:
    """For each column of the base, by field id, the column of the head that it is now; those that are gone are left out."""
    there = {c.field_id: c for c in head.columns}
    ids = {c.field_id for c in base.visible}
    named = {fold(c.name): c for c in head.columns if c.field_id not in ids}
    found: dict[int, Column] = {}
    for column in base.visible:
        heir = there.get(column.field_id) or named.get(fold(column.name))
        if heir is not None and (heir.field_id == column.field_id or names_within(column.stored) <= names_within(heir.stored)):
            found[column.field_id] = heir
    return found


def names_within(field: Field, path: str = "") -> frozenset[str]:
    """The names of the fields inside of a column, each with its path."""
    own = frozenset(f"{path}.{fold(child.name)}" for child in field.children)
    return own.union(*(names_within(child, f"{path}.{fold(child.name)}") for child in field.children))


def lost(base: Table, head: Table) -> list[Column]:
    """The columns that are gone at the head."""
    heirs = _heirs(base, head)
    return [c for c in base.visible if c.field_id not in heirs]


def is_replaced(base: Table, head: Table) -> bool:
    """Whether a name of the base means another column at the head, where its own is gone."""
    return any(heir.field_id != field_id for field_id, heir in _heirs(base, head).items())


def demands_more(base: Table, head: Table) -> bool:
    """Whether the head has a column that rows of the base cannot do without."""
    known = {c.field_id for c in base.columns}
    return any(c.field_id not in known and not c.nullable and c.stored.initial is None for c in head.columns)


def fills_late(base: Table, head: Table) -> bool:
    """Whether the head has a column whose default came later than itself: new rows have it, and those of before do not."""
    known = {c.field_id for c in base.columns}
    return any(c.field_id not in known and c.default is not None and c.stored.initial is None for c in head.columns)


def bound(base: Table, head: Table) -> Table:
    """The table of the head under the names of the base."""
    heirs = _heirs(base, head)
    shown = [_named(heirs[c.field_id], c.name) if c.field_id in heirs else replace(c, nullable=True) for c in base.visible]
    known = {heir.field_id for heir in heirs.values()}
    rest = [replace(_named(c, f"_lake_hidden_{c.field_id}"), hidden=True) for c in head.columns if c.field_id not in known]
    return replace(head, schema_id=base.schema_id, schema_name=base.schema_name, name=base.name, columns=(*shown, *rest))


def _named(column: Column, name: str) -> Column:
    return replace(column, name=name, stored=replace(column.stored, name=name))


def names_at(base: Namespace, head: Namespace, tables: Collection[int]) -> Namespace:
    """The names of the head, where each of `tables`, which are there at both, has the names of the base."""
    found = head
    for table_id in tables:
        now = head.by_id[table_id]
        if now != base.by_id[table_id] and (again := bound(base.by_id[table_id], now)) != now:
            found = found.with_table(again)
    return found
