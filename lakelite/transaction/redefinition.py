"""What a change of a table's definition is to those who meet it: the kinds of rules.py. One rule, for ALTER and for MERGE BRANCH.

    extend   what was bound to the definition of before stays right: columns that came, other names, wider types, options, comments
    shrink   columns went
    rename   the table has another name
    schema   anything else: what is stored, allowed or filled in is another one

Never changes anything; a default is evaluated only to tell whether the rows of before have it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakelite.language.constraints import with_ids
from lakelite.language.parse import is_volatile, uses_clock
from lakelite.model import Column, Constraint, Table, fold
from lakelite.storage import types
from lakelite.storage.widening import is_widening
from lakelite.transaction.changes import Kind
from lakelite.transaction.execution import Execution


def kind_of(execution: Execution, before: Table, after: Table) -> frozenset[Kind]:
    """The kinds of a change of one definition into another one; none where nothing changed."""
    if before == after:
        return frozenset()
    is_renamed = (before.schema_id, before.name) != (after.schema_id, after.name)
    found: set[Kind] = {"rename"} if is_renamed else set()
    if not _stands(execution, before, after):
        found.add("schema")
        return frozenset(found)
    kept = {c.field_id for c in after.columns}
    if any(c.field_id not in kept for c in before.columns):
        found.add("shrink")
    if is_renamed or _without_lost(before, after) != after:
        found.add("extend")
    return frozenset(found)


def initial(execution: Execution, column: Column) -> tuple[str | None, bool]:
    """The stored value of a column's default, evaluated once, as text, and whether that text is the same value when it is read."""
    if column.default is None:
        return None, True
    stored = types.encode(f"CAST(({column.default}) AS {column.type})", column.type)
    again = f"CAST(CAST(s AS VARCHAR) AS {column.stored.type})"
    found = execution.engine.run(f"WITH d AS MATERIALIZED (SELECT {stored} AS s) SELECT CAST(s AS VARCHAR), {again} IS NOT DISTINCT FROM s FROM d")
    return found[0][0], bool(found[0][1])


def _without_lost(before: Table, after: Table) -> Table:
    """The table of before without the columns that went, and what went with them."""
    kept = {c.field_id for c in after.columns}
    return replace(before, columns=tuple(c for c in before.columns if c.field_id in kept), constraints=_about(before, kept))


def _about(table: Table, field_ids: Collection[int]) -> tuple[Constraint, ...]:
    """The constraints that are about these columns alone."""
    return tuple(c for c in table.constraints if all(field_id in field_ids for _, field_id in c.columns))


def _stands(execution: Execution, before: Table, after: Table) -> bool:
    """Whether what was written for the definition of before is right beside the other one, by field id."""
    known, now = {c.field_id: c for c in before.columns}, {c.field_id: c for c in after.columns}
    common = [c for c in after.columns if c.field_id in known]
    added = [c for c in after.columns if c.field_id not in known]
    lost_names = {fold(c.name) for c in before.columns if c.field_id not in now}
    return (
        _query(before) == _query(after)
        and [c.field_id for c in common] == [c.field_id for c in before.columns if c.field_id in now]
        and all(_is_same(known[c.field_id], c) for c in common)
        and not any(fold(c.name) in lost_names for c in added)
        and [with_ids(c) for c in _about(before, now.keys() & known.keys())] == [with_ids(c) for c in after.constraints]
        and all(_is_as_if_there(execution, c) for c in added)
    )


def _query(table: Table) -> object:
    return table.view and (table.view.query, table.view.names)


def _is_same(old: Column, new: Column) -> bool:
    """Whether rows that are right in one are in the other: it may have another name, a comment and a wider type."""
    return (
        (old.nullable, old.default) == (new.nullable, new.default) and is_widening(old.type, new.type) and old.stored.children == new.stored.children
    )


def _is_as_if_there(execution: Execution, column: Column) -> bool:
    """Whether rows of before have in a column that came what they would have if they were written now."""
    if column.default is not None and (is_volatile(column.default) or uses_clock(column.default)):
        return False
    value = column.stored.initial
    return (column.nullable or value is not None) and initial(execution, column) == (value, True)
