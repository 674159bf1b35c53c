"""What SHOW and DESCRIBE answer: which rows of catalog/look.py belong to which statement."""

from __future__ import annotations

from collections.abc import Mapping

from lakelite.catalog import look
from lakelite.catalog.store import Catalog
from lakelite.errors import NotSupportedError, ProgrammingError
from lakelite.language import statements as st
from lakelite.model import fold
from lakelite.transaction.changes import Work
from lakelite.transaction.execution import Call, find_table, missing_schema


def answer(operation: st.Operation, work: Work, call: Call, catalog: Catalog, settings: Mapping[str, tuple[str, str]], lake_name: str) -> look.Answer:
    """The answer to a statement that only looks; raises its ordinary error. `settings`: those that SHOW knows, with value and description."""
    match operation:
        case st.ShowTables(everything=True):
            return look.show_all_tables(work.namespace, lake_name)
        case st.ShowTables():
            if operation.schema is not None and fold(operation.schema) not in work.namespace.schemas:
                raise missing_schema(work, operation.schema, 0, call)
            return look.show_tables(work.namespace, operation.schema)
        case st.ShowSchemas():
            return look.show_schemas(work.namespace)
        case st.DescribeTable():
            return look.describe_table(find_table(work, operation.target, call))
        case st.DescribeHistory():
            table = find_table(work, operation.target, call) if operation.target else None
            return look.describe_history(catalog, table, operation.limit)
        case st.ShowSettings():
            return _settings(operation.name, work, settings)
    raise NotSupportedError(f"{type(operation).__name__} is not supported")


def _settings(name: str | None, work: Work, known: Mapping[str, tuple[str, str]]) -> look.Answer:
    if name is None or name.lower() in known:
        return look.show_settings(known, name and name.lower())
    table = work.namespace.find(None, name)
    if table is None:
        raise ProgrammingError(f"{name} is neither a setting nor a table", hint="SHOW ALL lists the settings, SHOW TABLES the tables")
    return look.describe_table(table)
