"""ALTER TABLE … ADD and DROP CONSTRAINT. DuckDB reads a new constraint; the rows there are have to meet it."""

from __future__ import annotations

from dataclasses import replace

from lakelite.errors import IntegrityError, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import Column, Constraint, Table, fold
from lakelite.transaction import changes as ch
from lakelite.transaction import constraints, define
from lakelite.transaction.execution import Execution

HANDLED = ("add constraint", "drop constraint", "drop constraint if exists")


def changed(execution: Execution, work: ch.Work, table: Table, operation: st.AlterTable) -> Table | None:
    """The table with the constraint, or without it; None where IF EXISTS found none. Raises the statement's ordinary error."""
    return _added(execution, work, table, operation) if operation.what == "add constraint" else _dropped(table, operation)


def _added(execution: Execution, work: ch.Work, table: Table, operation: st.AlterTable) -> Table:
    name = operation.new_name
    if name is not None and fold(name) in {fold(known) for known in names(table)}:
        raise ProgrammingError(f'table {table.qualified} already has a constraint "{name}"', hint="choose another name, or drop that one first")
    described = define.with_constraint(execution, table, operation.using or "")
    columns = tuple(replace(c, nullable=text[2]) for c, text in zip(table.columns, described.columns, strict=True))
    given = [*(c.name for c in table.constraints), name]
    new = replace(table, columns=columns, constraints=define.constraints_of(table.name, described.constraints, columns, given))
    state = execution.state(work, table)
    _refuse_nulls(execution, table, [c for c, old in zip(columns, table.columns, strict=True) if old.nullable and not c.nullable], work)
    constraints.check_table(execution, state.defined_as(replace(new, constraints=new.constraints[-1:])))
    return new


def _refuse_nulls(execution: Execution, table: Table, columns: list[Column], work: ch.Work) -> None:
    """A PRIMARY KEY is NOT NULL as well."""
    column = constraints.column_with_null(execution, execution.state(work, table), columns)
    if column is not None:
        hint = f"give each row a value first: UPDATE {table.qualified} SET {column.name} = … WHERE {column.name} IS NULL"
        raise IntegrityError(f"NOT NULL constraint failed: {table.qualified}.{column.name}: there is a row with NULL", hint=hint)


def _dropped(table: Table, operation: st.AlterTable) -> Table | None:
    known = names(table)
    assert operation.new_name is not None
    index = next((i for i, name in enumerate(known) if fold(name) == fold(operation.new_name)), None)
    if index is not None:
        return replace(table, constraints=(*table.constraints[:index], *table.constraints[index + 1 :]))
    if operation.what == "drop constraint if exists":
        return None
    hint = did_you_mean(operation.new_name, known, f"its constraints are: {listed(known)}" if known else "it has none beside NOT NULL")
    raise ProgrammingError(f'table {table.qualified} has no constraint "{operation.new_name}"', hint=hint)


def names(table: Table) -> list[str]:
    """The name of each constraint: the user's, or the one that DuckDB gives it (`duckdb_constraints()`)."""
    return [c.name or _given(table, c) for c in table.constraints]


def _given(table: Table, constraint: Constraint) -> str:
    ending = {"check": "check", "unique": "key", "primary key": "pkey"}[constraint.kind]
    return "_".join([table.name, *(name for name, _ in constraint.columns), ending])
