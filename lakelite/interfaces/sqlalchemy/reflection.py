"""What is in a lake, for SQLAlchemy's inspector: schemas, tables, views, columns, constraints, comments.

Asks DuckDB's metadata functions, which tell of the lake's tables and of the connection's temporary ones. Each question about many
tables is two queries, however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from sqlalchemy import exc
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.reflection import ObjectKind, ObjectScope

from lakelite.interfaces.sqlalchemy.types import type_of

DEFAULT_SCHEMA = "main"
Key = tuple[str | None, str]

_RELATIONS = """
    SELECT table_name AS name, false AS is_view, temporary, comment FROM duckdb_tables() WHERE NOT internal AND schema_name = $1
    UNION ALL
    SELECT view_name, true, temporary, comment FROM duckdb_views() WHERE NOT internal AND schema_name = $1
"""
_COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, column_default, comment, database_name = 'temp' FROM duckdb_columns()
    WHERE NOT internal AND schema_name = $1 ORDER BY table_name, column_index
"""
_CONSTRAINTS = """
    SELECT table_name, constraint_name, constraint_column_names, expression, constraint_type, database_name = 'temp' FROM duckdb_constraints()
    WHERE schema_name = $1 ORDER BY table_name, constraint_name
"""


class Reflection(default.DefaultDialect):
    """The part of the dialect that the inspector asks. A temporary table hides one of the lake that is called the same."""

    @reflection.cache
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        rows = _ask(connection, "SELECT DISTINCT schema_name FROM duckdb_schemas() WHERE database_name = 'memory' ORDER BY 1")
        return [name for (name,) in rows]

    def has_schema(self, connection: Any, schema_name: str, **kw: Any) -> bool:
        return schema_name in self.get_schema_names(connection, **kw)

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        self._ensure_has_table_connection(connection)
        return any(name == table_name for name, *_ in self._relations(connection, schema, **kw))

    @reflection.cache
    def _relations(self, connection: Any, schema: str | None, **kw: Any) -> list[tuple[str, bool, bool, str | None]]:
        """(name, is a view, is temporary, comment) of each table and view that the schema shows."""
        return [row for row in _ask(connection, _RELATIONS, schema or DEFAULT_SCHEMA) if not (row[2] and schema)]

    def _names(self, connection: Any, schema: str | None, kw: dict[str, Any], *, views: bool, temporary: bool) -> list[str]:
        return [name for name, is_view, is_temporary, _ in self._relations(connection, schema, **kw) if (is_view, is_temporary) == (views, temporary)]

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, kw, views=False, temporary=False)

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, kw, views=True, temporary=False)

    def get_temp_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, None, kw, views=False, temporary=True)

    def get_temp_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, None, kw, views=True, temporary=True)

    @reflection.cache
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        sql = "SELECT sql, temporary FROM duckdb_views() WHERE NOT internal AND schema_name = $1 AND view_name = $2 ORDER BY temporary DESC"
        found = [text for text, temporary in _ask(connection, sql, schema or DEFAULT_SCHEMA, view_name) if not (temporary and schema)]
        if not found:
            raise exc.NoSuchTableError(f"{schema}.{view_name}" if schema else view_name)
        return str(found[0])

    # Many tables at once.

    def get_multi_columns(self, connection: Any, **kw: Any) -> Any:
        return self._of_each(connection, _COLUMNS, list, _add_column, kw)

    def get_multi_pk_constraint(self, connection: Any, **kw: Any) -> Any:
        return self._of_each(connection, _CONSTRAINTS, reflection.ReflectionDefaults.pk_constraint, _add_primary_key, kw)

    def get_multi_unique_constraints(self, connection: Any, **kw: Any) -> Any:
        return self._of_each(connection, _CONSTRAINTS, list, _add_unique, kw)

    def get_multi_check_constraints(self, connection: Any, **kw: Any) -> Any:
        return self._of_each(connection, _CONSTRAINTS, list, _add_check, kw)

    def get_multi_foreign_keys(self, connection: Any, **kw: Any) -> Any:
        return self._of_each(connection, None, list, None, kw)

    def get_multi_indexes(self, connection: Any, **kw: Any) -> Any:
        return self._of_each(connection, None, list, None, kw)

    def get_multi_table_comment(self, connection: Any, **kw: Any) -> Any:
        wanted = self._wanted(connection, **kw)
        return [((kw["schema"], name), {"text": comment}) for name, (_, comment) in wanted.items()]

    def _wanted(
        self, connection: Any, schema: str | None, filter_names: Collection[str] | None, scope: ObjectScope, kind: ObjectKind, **kw: Any
    ) -> dict[str, tuple[bool, str | None]]:
        """Whether it is temporary, and the comment, of each table and view that is asked for."""
        kinds = {view for view, one in ((False, ObjectKind.TABLE), (True, ObjectKind.VIEW)) if one in kind}
        scopes = {temporary for temporary, one in ((False, ObjectScope.DEFAULT), (True, ObjectScope.TEMPORARY)) if one in scope}
        rows = [row for row in self._relations(connection, schema, **_cache(kw)) if row[1] in kinds and row[2] in scopes]
        asked = None if filter_names is None else set(filter_names)
        return {name: (temporary, comment) for name, _, temporary, comment in sorted(rows, key=lambda r: r[2]) if asked is None or name in asked}

    def _of_each(self, connection: Any, sql: str | None, empty: Callable[[], Any], add: Callable[..., None] | None, kw: dict[str, Any]) -> Any:
        """(key, value) of each table that is asked for: an empty value, to which each row of `sql` about the table is added."""
        wanted = self._wanted(connection, **kw)
        found: dict[str, Any] = {name: empty() for name in wanted}
        rows = self._rows(connection, sql, kw["schema"], **_cache(kw)) if sql and wanted else []
        for name, *rest, temporary in rows:
            if name in wanted and wanted[name][0] == temporary:
                assert add is not None
                add(found[name], *rest)
        return [((kw["schema"], name), value) for name, value in found.items()]

    @reflection.cache
    def _rows(self, connection: Any, sql: str, schema: str | None, **kw: Any) -> list[Any]:
        return list(_ask(connection, sql, schema or DEFAULT_SCHEMA))

    # One table.

    def _one(self, many: Callable[..., Any], connection: Any, table_name: str, schema: str | None, kw: dict[str, Any]) -> Any:
        found = dict(many(connection, schema=schema, filter_names=[table_name], scope=ObjectScope.ANY, kind=ObjectKind.ANY, **_cache(kw)))
        if (schema, table_name) not in found:
            raise exc.NoSuchTableError(f"{schema}.{table_name}" if schema else table_name)
        return found[schema, table_name]

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._one(self.get_multi_columns, connection, table_name, schema, kw)

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._one(self.get_multi_pk_constraint, connection, table_name, schema, kw)

    def get_unique_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._one(self.get_multi_unique_constraints, connection, table_name, schema, kw)

    def get_check_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._one(self.get_multi_check_constraints, connection, table_name, schema, kw)

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._one(self.get_multi_foreign_keys, connection, table_name, schema, kw)

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._one(self.get_multi_indexes, connection, table_name, schema, kw)

    def get_table_comment(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._one(self.get_multi_table_comment, connection, table_name, schema, kw)


def _ask(connection: Any, sql: str, *values: Any) -> Iterable[Any]:
    rows: Iterable[Any] = connection.exec_driver_sql(sql, values).all()
    return rows


def _cache(kw: dict[str, Any]) -> dict[str, Any]:
    """What the inspector remembers by."""
    return {"info_cache": kw["info_cache"]} if "info_cache" in kw else {}


def _add_column(columns: list[Any], name: str, kind: str, nullable: bool, default: str | None, comment: str | None) -> None:
    columns.append({"name": name, "type": type_of(kind), "nullable": nullable, "default": default, "comment": comment})


def _add_primary_key(key: dict[str, Any], name: str, columns: list[str], expression: str | None, kind: str) -> None:
    if kind == "PRIMARY KEY":
        key.update(name=name, constrained_columns=columns)


def _add_unique(found: list[Any], name: str, columns: list[str], expression: str | None, kind: str) -> None:
    if kind == "UNIQUE":
        found.append({"name": name, "column_names": columns})


def _add_check(found: list[Any], name: str, columns: list[str], expression: str, kind: str) -> None:
    if kind == "CHECK":
        found.append({"name": name, "sqltext": expression.removeprefix("(").removesuffix(")") if _is_bracketed(expression) else expression})


def _is_bracketed(text: str) -> bool:
    """Whether the first bracket of the text is closed by its last character. Brackets in strings make no difference to that in DuckDB's text,
    which puts each operator in brackets of its own."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1
    return False
