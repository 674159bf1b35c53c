"""Names were bound once: how the head is shown to a transaction whose statements were bound at its base. Pure.

By table and field id, so that what winners renamed, added, widened or dropped leaves the statements right. A column that was added is
*hidden*: no name and no star means it, and rows that are changed keep it. One that was dropped stays as a name: what is written to it
is in no table, and nothing reads it (`resolve.py` sees to that).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakelite.contents import Namespace
from lakelite.model import Column, Table, fold


def lost(base: Table, head: Table) -> list[Column]:
    """The columns that are gone at the head."""
    there = {c.field_id for c in head.columns}
    return [c for c in base.visible if c.field_id not in there]


def is_replaced(base: Table, head: Table) -> bool:
    """Whether a name of the base means another column at the head, where its own is gone."""
    names = {fold(c.name) for c in head.columns}
    return any(fold(c.name) in names for c in lost(base, head))


def bound(base: Table, head: Table) -> Table:
    """The table of the head under the names of the base."""
    there = {c.field_id: c for c in head.columns}
    shown = [_named(there[c.field_id], c.name) if c.field_id in there else replace(c, nullable=True) for c in base.visible]
    known = {c.field_id for c in base.visible}
    rest = [replace(_named(c, f"_lake_hidden_{c.field_id}"), hidden=True) for c in head.columns if c.field_id not in known]
    return replace(head, schema_id=base.schema_id, schema_name=base.schema_name, name=base.name, columns=(*shown, *rest))


def _named(column: Column, name: str) -> Column:
    return replace(column, name=name, stored=replace(column.stored, name=name))


def names_at(base: Namespace, head: Namespace, tables: Collection[int]) -> Namespace:
    """The names of the head, where each of `tables`, which are there at both, has the names of the base."""
    found = head
    for table_id in tables:
        now = head.by_id[table_id]
        if (again := bound(base.by_id[table_id], now)) != now:
            found = found.with_table(again)
    return found
