"""What SHOW and DESCRIBE answer: which rows of catalog/look.py belong to which statement, and the text of SHOW CREATE TABLE."""

from __future__ import annotations

from typing import Any

from lakelite.catalog import look
from lakelite.errors import Error, NotSupportedError, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.statements import Name
from lakelite.language.tokens import shown_name
from lakelite.mapping.names import did_you_mean
from lakelite.model import MAIN_SCHEMA, RESERVED_SCHEMA, Constraint, Table, fold, literal, quote
from lakelite.parameters import limit_of
from lakelite.storage.temporary import TEMP_SCHEMA, Temporary
from lakelite.transaction import source, views
from lakelite.transaction.changes import Work
from lakelite.transaction.execution import Call, Execution, find_relation, missing_schema


def answer(operation: st.Operation, execution: Execution, work: Work, call: Call, lake_name: str) -> look.Answer:
    """The answer to a statement that only looks, as a transaction sees the lake; raises the statement's ordinary error."""
    match operation:
        case st.ShowTables(everything=True):
            tables = [_described(execution, work, t) for t in work.namespace.tables.values()]
            own = [(one.name, _columns(execution, work, one)) for one in execution.temporaries.by_name.values()]
            return look.show_all_tables(tables, lake_name, own)
        case st.ShowTables():
            schema = operation.schema or MAIN_SCHEMA
            own_names = [one.name for one in execution.temporaries.by_name.values()]
            if operation.schema is None or fold(schema) == TEMP_SCHEMA:
                return look.show_tables(work.namespace, schema, own_names)
            if fold(schema) not in work.namespace.schemas and fold(schema) != RESERVED_SCHEMA:
                raise missing_schema(work, schema, None, call)
            return look.show_tables(work.namespace, schema)
        case st.ShowSchemas():
            return look.show_schemas(work.namespace, lake_name)
        case st.ShowCreateTable() | st.DescribeTable() if operation.at is None and (own_one := _temporary(execution, operation.target)) is not None:
            if isinstance(operation, st.ShowCreateTable):
                return look.show_create_table(execution.engine.temporary.statement(own_one))
            return look.described(_columns(execution, work, own_one))
        case st.ShowCreateTable():
            made = _table(operation, execution, work, call)
            return look.show_create_table(create_table(made) if made.view is None else views.statement(made))
        case st.DescribeTable() if operation.at is not None:
            return look.describe_table(views.described_at(execution, operation.at, call))
        case st.DescribeTable() if (variable := _variable(execution, work, operation.target)) is not None:
            return look.described(variable)
        case st.DescribeTable():
            found = find_relation(work, operation.target, call)
            return look.describe_table(found if found.view is None else views.described(execution, work, found))
        case st.DescribeHistory():
            table = find_relation(work, operation.target, call) if operation.target else None
            return look.describe_history(execution.catalog, execution.view.snapshot_id, table, limit_of(operation, call.values))
        case st.ShowSettings():
            return _settings(operation.name, execution, work)
    raise NotSupportedError(f"{type(operation).__name__} is not supported", hint="it is not known in this version of lakelite")


def _temporary(execution: Execution, name: Name) -> Temporary | None:
    return execution.temporaries.find(name.schema, name.name)


def _columns(execution: Execution, work: Work, one: Temporary) -> list[tuple[Any, ...]]:
    """DESCRIBE of something temporary, in DuckDB's columns."""
    if not one.is_view:
        return execution.engine.temporary.columns(one)
    source.prepare(execution, work, f"FROM temp.{quote(one.name)}")
    return execution.engine.run(f"DESCRIBE temp.{quote(one.name)}")


def _variable(execution: Execution, work: Work, name: Name) -> list[tuple[Any, ...]] | None:
    """DESCRIBE of a caller's variable that holds a table; None where the name is something of the lake, or no such variable."""
    if name.schema is not None or work.namespace.find(None, name.name) is not None:
        return None
    engine = execution.engine
    found = engine.frames.named([name.name])
    engine.frames.show(found, engine.work)
    return engine.run(f"DESCRIBE FROM {quote(name.name)}") if found else None


def create_table(table: Table) -> str:
    """The statement that makes a table like this one."""
    lines = [f"{shown_name(column.name)} {column.declared}" for column in table.columns] + [_constraint(c) for c in table.constraints]
    body = ",\n".join(f"    {line}" for line in lines)
    return f"CREATE TABLE {_shown(table)} (\n{body}\n){_tuning(table)};"


def alter_tuning(table: Table) -> list[str]:
    """The statements that give a table like this one its partitioning and options, which DuckDB does not take for tables of its own."""
    return [f"ALTER TABLE {_shown(table)} SET {clause};" for clause in (_partitioning(table), _options(table)) if clause]


def _tuning(table: Table) -> str:
    partitioning, options = _partitioning(table), _options(table)
    return (f" {partitioning}" if partitioning else "") + (f" WITH {options}" if options else "")


def _partitioning(table: Table) -> str:
    names = {c.field_id: shown_name(c.name) for c in table.columns}
    keys = ", ".join(key.shown(names[key.field_id]) for key in table.partitioning)
    return f"PARTITIONED BY ({keys})" if keys else ""


def _options(table: Table) -> str:
    options = ", ".join(f"{name} = {value if value.isdecimal() else literal(value)}" for name, value in table.options)
    return f"({options})" if options else ""


def _shown(table: Table) -> str:
    return ("" if table.schema_name == MAIN_SCHEMA else f"{shown_name(table.schema_name)}.") + shown_name(table.name)


def _constraint(constraint: Constraint) -> str:
    text = constraint.text
    if constraint.is_key:
        text = f"{constraint.kind.upper()}({', '.join(shown_name(name) for name, _ in constraint.columns)})"
    return text if constraint.name is None else f"CONSTRAINT {shown_name(constraint.name)} {text}"


def _described(execution: Execution, work: Work, table: Table) -> Table:
    """The table, or the view with the columns that it has now; without any where its query fails."""
    if table.view is None:
        return table
    try:
        return views.described(execution, work, table)
    except Error:
        return table


def _table(operation: st.ShowCreateTable, execution: Execution, work: Work, call: Call) -> Table:
    """The table or view that is asked for."""
    if operation.at is not None:
        return views.past(execution, operation.at, call)[1]
    return find_relation(work, operation.target, call)


def _settings(name: str | None, execution: Execution, work: Work) -> look.Answer:
    """SHOW ALL and SHOW name, which is that of a setting or of a table."""
    shown = look.show_settings(execution.settings(), name and fold(name))
    if shown is not None:
        return shown
    own = execution.temporaries.find(None, name) if name else None
    if own is not None:
        return look.described(_columns(execution, work, own))
    table = work.namespace.find(None, name) if name else None
    variable = _variable(execution, work, Name(None, name)) if name else None
    if variable is not None:
        return look.described(variable)
    if table is None:
        known = [*(setting for setting, *_ in execution.settings()), *(t.qualified for t in work.namespace.tables.values())]
        hint = did_you_mean(name or "", known, "SHOW ALL lists the settings, SHOW ALL TABLES the tables")
        raise ProgrammingError(f'"{name}" is neither a setting nor a table', hint=hint)
    return look.describe_table(table if table.view is None else views.described(execution, work, table))
