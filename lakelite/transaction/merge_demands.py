"""What the definition that a merge of two branches comes to demands of rows that were made for another one: NOT NULL, CHECK and keys.

    of_taken   of the rows that are taken over, as `merge_rows.three_ways` has put them side by side
    of_all     of all rows of a side, where it is about what that side did not demand before

Of each demand that is not met one row is told, with the branch that it comes from. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakelite.contents import TableState
from lakelite.errors import IntegrityError
from lakelite.language.constraints import with_ids
from lakelite.model import Column, Constraint, Table, quote
from lakelite.transaction import constraints, key_lookup, merge_rows
from lakelite.transaction.execution import Execution


def of_taken(execution: Execution, table: Table, condition: str, taking: merge_rows.Taking, before: Table, branch: str) -> list[IntegrityError]:
    """`condition`: of the ways; `before`: the table as the branch has it that the rows come from."""
    rows = f"SELECT t.* FROM temp.lake_merge_{taking} t SEMI JOIN (SELECT id FROM {merge_rows.WAYS} WHERE {condition}) w ON w.id = t.id"
    columns = [c for c in table.columns if not c.nullable]
    return list(_broken(execution, table, rows, columns, _new(table, before), branch))


def of_all(execution: Execution, state: TableState, before: Table, branch: str) -> list[IntegrityError]:
    """`before`: the table as the rows were made for it."""
    nullable = {c.field_id for c in before.columns if not c.nullable}
    columns = [c for c in state.table.columns if not c.nullable and c.field_id not in nullable]
    demanded = _new(state.table, before)
    if not state.fragments or not (columns or demanded):
        return []
    rows, _ = merge_rows.scanned(execution, state, state.table, ())
    broken = list(_broken(execution, state.table, rows, columns, demanded, branch))
    if not broken:
        key_lookup.make_filters(execution, state)
    return broken


def _new(table: Table, before: Table) -> list[Constraint]:
    known = [with_ids(c) for c in before.constraints]
    return [c for c in table.constraints if with_ids(c) not in known]


def _broken(
    execution: Execution, table: Table, rows: str, columns: Collection[Column], demanded: Collection[Constraint], branch: str
) -> Iterator[IntegrityError]:
    hint = f"change or delete such rows on {branch} first, or drop the constraint on the other one"
    for column in columns:
        shown = _row_with(execution, table, rows, f"{quote(column.name)} IS NULL", ((column.name, column.field_id),))
        if shown is not None:
            yield IntegrityError(f"NOT NULL constraint failed: {table.qualified}.{column.name}: the row {shown} of {branch} breaks it", hint=hint)
    for check in (c for c in demanded if not c.is_key):
        shown = _row_with(execution, table, rows, f"CAST(({check.expression}) AS INTEGER) = 0", check.columns)
        if shown is not None:
            yield IntegrityError(f"{constraints.failed(table, check).args[0]}: the row {shown} of {branch} breaks it", hint=hint)
    for key in (c for c in demanded if c.is_key):
        values = _repeated(execution, table, rows, key)
        if values is not None:
            yield IntegrityError(f"{constraints.duplicate_key(key, values).args[0]}: rows of {branch} share it", hint=hint)


def _row_with(execution: Execution, table: Table, rows: str, broken: str, columns: Collection[tuple[str, int]]) -> str | None:
    """One of the rows for which a condition holds, as JSON. `columns`: the names by which the condition calls columns, with their field ids."""
    places = _places(table)
    whole = ", ".join(f"{quote(c.name)} := r.{places[c.field_id]}" for c in table.columns)
    named = "".join(f", r.{places[field_id]} AS {quote(name)}" for name, field_id in dict.fromkeys(columns))
    named_rows = f"SELECT CAST(to_json(struct_pack({whole})) AS VARCHAR) AS _lake_shown{named} FROM ({rows}) r"
    found = execution.engine.run(f"SELECT _lake_shown FROM ({named_rows}) WHERE {broken} LIMIT 1")
    return found[0][0] if found else None


def _repeated(execution: Execution, table: Table, rows: str, key: Constraint) -> tuple[str, ...] | None:
    """The values of a key that two of the rows have."""
    places = _places(table)
    names = [f"r.{places[field_id]}" for _, field_id in key.columns]
    given = " AND ".join(f"{name} IS NOT NULL" for name in names)
    shown = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
    found = execution.engine.run(f"SELECT {shown} FROM ({rows}) r WHERE {given} GROUP BY {', '.join(names)} HAVING count(*) > 1 LIMIT 1")
    return found[0] if found else None


def _places(table: Table) -> dict[int, str]:
    return {c.field_id: f"c{i}" for i, c in enumerate(table.columns)}
