"""CREATE and DROP of schemas and tables. DuckDB reads every definition, in a scratch schema, so that its types and names are DuckDB's.

Constraints that are not enforced are refused by name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from lakelite.contents import TableState
from lakelite.errors import NotSupportedError, Position, ProgrammingError
from lakelite.language import constraints as constraint_names
from lakelite.language import statements as st
from lakelite.language.tokens import lex
from lakelite.model import MAIN_SCHEMA, ROW_ID_COLUMN, Column, Constraint, ConstraintKind, Field, Schema, Table, fold, quote
from lakelite.records import dataclass
from lakelite.storage import fragment as fragments
from lakelite.storage import types
from lakelite.storage.engine import INTERNAL, Engine
from lakelite.transaction import changes as ch
from lakelite.transaction import source, tuning
from lakelite.transaction.execution import Call, Done, Execution, find_relation, find_table, is_reserved, missing_schema

_SCRATCH = f"{INTERNAL}.scratch"
_INTERNAL_VIEW = "SELECT 1 FROM system.main.duckdb_views() WHERE internal AND schema_name <> 'information_schema' AND view_name = ?"
_GENERATED = re.compile(r"\bGENERATED ALWAYS AS\(")
_NO_FOREIGN_KEY = "leave it out: look for rows without their partner with a query (ANTI JOIN), in the transaction that writes them"
ColumnText = tuple[str, str, bool, str | None]  # name, type, nullable, default
ConstraintText = tuple[str, str | None, list[str]]  # kind, expression, names of columns
_KINDS = ("CHECK", "UNIQUE", "PRIMARY KEY")


@dataclass(frozen=True, slots=True)
class Described:
    """A table as DuckDB understands its definition: its columns, and its constraints beside NOT NULL, in order."""

    columns: list[ColumnText]
    constraints: list[ConstraintText]


# Schemas.


def create_schema(execution: Execution, work: ch.Work, operation: st.CreateSchema, call: Call) -> Done:
    if is_reserved(operation.name) or not operation.name or "@" in operation.name:
        raise ProgrammingError(f'the schema name "{operation.name}" is reserved', hint="choose another name")
    if fold(operation.name) in work.namespace.schemas:
        if operation.if_not_exists:
            return Done(defined(work, conditional=True))
        raise ProgrammingError(f'schema "{operation.name}" already exists', hint="leave it, or use CREATE SCHEMA IF NOT EXISTS")
    schema = Schema(execution.reserve("schema", 1), operation.name)
    changes = replace(work.changes, schemas_created={**work.changes.schemas_created, schema.schema_id: schema})
    return Done(defined(ch.Work(work.namespace.with_schema(schema), changes)))


def drop_schema(execution: Execution, work: ch.Work, operation: st.DropSchema, call: Call) -> Done:
    schema = work.namespace.schemas.get(fold(operation.name))
    if schema is None:
        if is_reserved(operation.name):
            raise ProgrammingError(f'schema "{operation.name}" is reserved', hint="only a schema of your own can be dropped")
        if operation.if_exists:
            return Done(defined(work, conditional=True))
        raise missing_schema(work, operation.name, None, call)
    if fold(schema.name) == MAIN_SCHEMA:
        raise ProgrammingError("the schema main cannot be dropped", hint="DROP TABLE drops what is in it")
    inside = [t for t in work.namespace.tables.values() if t.schema_id == schema.schema_id]
    if inside and not operation.cascade:
        raise ProgrammingError(f'schema "{schema.name}" still holds {_count(inside)}', hint="drop them first, or use DROP SCHEMA … CASCADE")
    for table in inside:
        work = without(work, table)
    created = dict(work.changes.schemas_created)
    dropped = work.changes.schemas_dropped
    if created.pop(schema.schema_id, None) is None:
        dropped |= {schema.schema_id}
    changes = replace(work.changes, schemas_created=created, schemas_dropped=dropped)
    return Done(defined(ch.Work(work.namespace.without_schema(schema.name), changes)))


def _count(tables: list[Table]) -> str:
    kinds = " and ".join(sorted({"table" if t.view is None else "view" for t in tables}))
    return f"1 {kinds} ({tables[0].name})" if len(tables) == 1 else f"{len(tables)} {kinds}s ({tables[0].name}, …)".replace("table and", "tables and")


def defined(work: ch.Work, *, conditional: bool = False) -> ch.Work:
    conditional = conditional or work.changes.conditional
    return replace(work, changes=replace(work.changes, defines=True, writes=True, blind=False, conditional=conditional))


# Tables.


def create_table(execution: Execution, work: ch.Work, operation: st.CreateTable, call: Call) -> Done:
    existing = taken_by(execution, work, operation, call)
    if existing is not None and operation.if_not_exists:
        return Done(defined(work, conditional=True))
    described = _described(execution, operation.target, operation.body)
    names = _distinct(operation.target, constraint_names.names(operation.body, [kind for kind, *_ in described.constraints]))
    return Done(put(execution, work, operation.target, existing, described, names=names, tune=(operation.tuning, call))[0])


def create_table_as(execution: Execution, work: ch.Work, operation: st.CreateTableAs, call: Call) -> Done:
    existing = taken_by(execution, work, operation, call)
    if existing is not None and operation.if_not_exists:
        return Done(defined(work, conditional=True))
    text = source.render(execution, work, operation.query, call)
    reads = source.prepare(execution, work, text, once=True, values=call.values)
    names = f"({', '.join(map(quote, operation.columns))})" if operation.columns else ""
    values = source.used_values(text, call.values)
    described = _described(execution, operation.target, f"{names} AS {text}\n WITH NO DATA", values)
    before = None if existing is None else execution.state(work, existing)
    new, table = put(execution, work, operation.target, existing, described, before, tune=(operation.tuning, call))
    if not operation.with_data:
        return Done(new, 0)
    rows = source.select_for_insert(execution, table, None, by_name=False, ctes="", query=text, values=call.values)
    given = source.used_values(rows, call.values)
    staged = execution.keep(table, fragments.write(execution.engine, execution.place(table), table, rows, given, one_by_one=reads.streams))
    changes = new.changes.with_reads(reads.tables, call.text)
    if reads.external:
        changes = replace(changes, external=changes.external or call.text)
    kind: ch.Kind = "overwrite" if existing is not None else "append"
    changes = changes.with_change(ch.append(changes.change_of(table), staged, kind))
    return Done(replace(new, changes=changes), sum(s.fragment.row_count for s in staged), tables=reads.tables)


def drop_table(execution: Execution, work: ch.Work, operation: st.DropTable, call: Call) -> Done:
    for name in operation.targets:
        if operation.if_exists and work.namespace.find(name.schema, name.name) is None:
            work = defined(work, conditional=True)
            continue
        if find_relation(work, name, call).view is not None:
            raise ProgrammingError(f'"{name.name}" is a view', hint="DROP VIEW drops it", position=Position.at(call.text, name.offset))
        work = without(work, find_table(work, name, call))
    return Done(defined(work))


def taken_by(
    execution: Execution, work: ch.Work, operation: st.CreateTable | st.CreateTableAs | st.CreateTableLike | st.CreateView, call: Call
) -> Table | None:
    """The table (or view) of that name, where the statement may go on with it; else the error."""
    target = operation.target
    schema = target.schema or MAIN_SCHEMA
    if is_reserved(schema):
        raise ProgrammingError(
            f'schema "{schema}" is reserved',
            hint="create it in main or in a schema of your own",
            position=Position.at(call.text, target.offset),
        )
    if fold(schema) not in work.namespace.schemas:
        raise missing_schema(work, schema, target.offset, call)
    if fold(schema) == MAIN_SCHEMA and execution.engine.do(_INTERNAL_VIEW, [fold(target.name)]):
        hint = "choose another name: DuckDB would read its own view"
        raise ProgrammingError(f'the name "{target.name}" is reserved', hint=hint, position=Position.at(call.text, target.offset))
    existing = work.namespace.find(target.schema, target.name)
    if existing is not None and not (operation.or_replace or operation.if_not_exists):
        hint = "DROP it first, or use CREATE OR REPLACE TABLE or CREATE TABLE IF NOT EXISTS"
        if isinstance(operation, st.CreateView) or existing.view is not None:
            hint = "DROP it first, or choose another name" if existing.view is None else "DROP VIEW it first, or use CREATE OR REPLACE VIEW"
        what = "table" if existing.view is None else "view"
        raise ProgrammingError(f'{what} "{existing.qualified}" already exists', hint=hint, position=Position.at(call.text, target.offset))
    if existing is not None and existing.view is not None and operation.or_replace and not isinstance(operation, st.CreateView):
        hint = "DROP VIEW it first, or choose another name"
        message = f'"{existing.qualified}" is a view: it cannot be replaced by a table'
        raise ProgrammingError(message, hint=hint, position=Position.at(call.text, target.offset))
    return existing


def without(work: ch.Work, table: Table) -> ch.Work:
    change = work.changes.change_of(table)
    changes = work.changes.with_change(replace(change, kinds=change.kinds | {"drop"}))
    return ch.Work(work.namespace.without_table(table.table_id), changes)


def put(
    execution: Execution,
    work: ch.Work,
    target: st.Name,
    existing: Table | None,
    described: Described,
    before: TableState | None = None,
    names: Sequence[str | None] = (),
    tune: tuple[st.Tuning, Call] | None = None,
) -> tuple[ch.Work, Table]:
    """The work with the new table, or with the old one emptied and redefined.

    That one keeps its table id, and the field ids of its columns of the same name and type. `tune`: the options and the partitioning.
    """
    made = with_ids(execution, described.columns, existing)
    constraints = constraints_of(target.name, described.constraints, made, names)
    if existing is None:
        schema = work.namespace.schemas[fold(target.schema or MAIN_SCHEMA)]
        table = _tuned(Table(execution.reserve("table", 1), schema.schema_id, schema.name, target.name, made, constraints), tune)
        change = ch.TableChange(table, created=True, kinds=frozenset({"create"}))
    else:
        table = _tuned(replace(existing, columns=made, constraints=constraints, comment=None, options=(), partitioning=()), tune)
        state = before if before is not None else execution.state(work, existing)
        change = ch.overwrite(work.changes.change_of(existing), state)
        redefined: frozenset[ch.Kind] = frozenset({"schema"} if table != existing else ())
        change = replace(change, table=table, kinds=change.kinds | redefined)
    return defined(ch.Work(work.namespace.with_table(table), work.changes.with_change(change))), table


def _tuned(table: Table, tune: tuple[st.Tuning, Call] | None) -> Table:
    return table if tune is None else tuning.tuned(table, *tune)


def _distinct(target: st.Name, names: list[str | None]) -> list[str | None]:
    given = [fold(name) for name in names if name is not None]
    twice = next((name for name in names if name is not None and given.count(fold(name)) > 1), None)
    if twice is not None:
        raise ProgrammingError(f'table {target.name} would have two constraints that are called "{twice}"', hint="give each a name of its own")
    return names


def altered(execution: Execution, table: Table, change: str) -> Described:
    """`table` once DuckDB has made the change of an ALTER TABLE; its error if it cannot."""
    return _described(execution, st.Name(None, table.name), table.body, change=change)


def with_constraint(execution: Execution, table: Table, text: str) -> Described:
    """`table` with one more constraint; DuckDB's error if there can be no such one."""
    return _described(execution, st.Name(None, table.name), f"{table.body[:-1]}, {text}\n)")


def constraints_of(
    table_name: str, described: Sequence[ConstraintText], columns: Sequence[Column], names: Sequence[str | None]
) -> tuple[Constraint, ...]:
    """The constraints that DuckDB describes, with the user's `names`, one for each."""
    ids = {fold(c.name): c.field_id for c in columns}

    def made(text: ConstraintText, name: str | None) -> Constraint:
        kind, expression, about = text
        shown = None if expression is None else constraint_names.without_table(expression, table_name)
        return Constraint(cast(ConstraintKind, kind.lower()), name, shown, tuple((c, ids[fold(c)]) for c in about))

    return tuple(made(text, name) for text, name in zip(described, names, strict=True))


@contextmanager
def copied(execution: Execution, table: Table, rows: str) -> Iterator[str]:
    """A DuckDB table called as `table` that holds `rows`, for the length of the block."""
    name = f"{_SCRATCH}.{quote(table.name)}"
    try:
        execution.engine.run(f"CREATE OR REPLACE TABLE {name} AS {rows}")
        yield name
    finally:
        execution.engine.do(f"DROP TABLE IF EXISTS {name}")


def _described(execution: Execution, target: st.Name, definition: str, values: Any = None, *, change: str | None = None) -> Described:
    """The table, as DuckDB understands a CREATE TABLE with the definition, and an ALTER TABLE with the `change` behind it."""
    engine = execution.engine
    name = f"{_SCRATCH}.{quote(target.name)}"
    engine.do(f"CREATE SCHEMA IF NOT EXISTS {_SCRATCH}")
    try:
        _make(engine, f"CREATE TABLE {name} {definition}", values)
        if change is not None:
            engine.run(f"ALTER TABLE {name} {change}")
        _refuse(execution, target)
        return _read(engine, target.name)
    finally:
        engine.do(f"DROP TABLE IF EXISTS {name}")


def _read(engine: Engine, name: str) -> Described:
    where = "WHERE database_name = $database AND schema_name = 'scratch' AND table_name = $name"
    chosen = {"database": INTERNAL, "name": name}
    columns = engine.do(
        f"SELECT column_name, data_type, is_nullable, column_default FROM system.main.duckdb_columns() {where} ORDER BY column_index", chosen
    )
    constraints = engine.do(
        "SELECT constraint_type, expression, constraint_column_names FROM system.main.duckdb_constraints()"
        f" {where} AND constraint_type IN {_KINDS} ORDER BY constraint_index",
        chosen,
    )
    return Described(columns, constraints)


def _make(engine: Engine, text: str, values: Any) -> None:
    """Creates the scratch table. What a foreign key refers to is not there, so that one has to be found by its word."""
    import duckdb

    try:
        engine.run(text, values)
    except duckdb.CatalogException as error:
        if any(token.kind == "word" and token.word == "REFERENCES" for token in lex(text)):
            raise NotSupportedError("FOREIGN KEY is not enforced, so it is refused", hint=_NO_FOREIGN_KEY) from error
        raise


def _refuse(execution: Execution, target: st.Name) -> None:
    """What is read and not carried out: foreign keys, generated columns, collations."""
    chosen = {"database": INTERNAL, "name": target.name}
    where = "WHERE database_name = $database AND schema_name = 'scratch' AND table_name = $name"
    for kind, text in execution.engine.do(f"SELECT constraint_type, constraint_text FROM system.main.duckdb_constraints() {where}", chosen):
        if kind == "FOREIGN KEY":
            raise NotSupportedError(f"{kind} is not enforced, so it is refused: {text}", hint=_NO_FOREIGN_KEY)
    made = execution.engine.do(f"SELECT sql FROM system.main.duckdb_tables() {where}", chosen)
    if _GENERATED.search(str(made[0][0])):
        raise NotSupportedError("generated columns are not supported yet", hint="compute the value in the INSERT, or in the query")
    if any(token.kind == "word" and token.word == "COLLATE" for token in lex(str(made[0][0]))):
        raise NotSupportedError("COLLATE of a column is not supported yet", hint="leave it out, and write COLLATE in the query")


def with_ids(execution: Execution, columns: list[ColumnText], existing: Table | None) -> tuple[Column, ...]:
    """The columns with field ids: new ones, or those of the existing column of the same name and type."""
    kept = {(c.name, c.type): c for c in existing.columns} if existing else {}
    for name, _, _, _ in columns:
        if fold(name) == ROW_ID_COLUMN:
            raise ProgrammingError(f'the column name "{name}" is reserved', hint="choose another name")
    drafts = [kept[(name, kind)].stored if (name, kind) in kept else _draft(name, kind) for name, kind, _, _ in columns]
    needed = sum(_size(d) for d in drafts if d.field_id < 0)
    ids = itertools.count(execution.reserve("field", needed)) if needed else itertools.count(0)
    stored = [
        types.stored_tree(kind, name, lambda: next(ids)) if draft.field_id < 0 else draft
        for draft, (name, kind, _, _) in zip(drafts, columns, strict=True)
    ]
    return tuple(Column(name, kind, field, nullable, default) for field, (name, kind, nullable, default) in zip(stored, columns, strict=True))


def _draft(name: str, kind: str) -> Field:
    """The stored tree with negative ids, to count its nodes; refuses a type that has no exact form."""
    numbers = itertools.count(1)
    return types.stored_tree(kind, name, lambda: -next(numbers))


def _size(field: Field) -> int:
    return 1 + sum(_size(child) for child in field.children)
