"""What DuckDB's own metadata functions say of the lake: `duckdb_tables()`, `duckdb_columns()`, …, and all that stands on them.

Owns the database `lake_internal_mirror`, which holds an empty table for each table of the lake and an empty view for each system view,
and macros that are called as DuckDB's functions and show these, and nothing internal, as what the database `memory` holds.
`information_schema`, `pg_catalog`, `sqlite_master` and SHOW TABLES inside of a query read the same functions, so they follow.
Our own bookkeeping asks `system.main.duckdb_columns()` and the like, which the macros do not reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from lakelite.contents import Namespace
from lakelite.model import MAIN_SCHEMA, RESERVED_SCHEMA, Table, fold, literal, quote

MIRROR = "lake_internal_mirror"
_OURS = f"system.main.duckdb_schemas() s ON s.database_name = 'memory' AND s.schema_name = f.schema_name WHERE f.database_name = '{MIRROR}'"
_PLACE = "'memory' AS database_name, s.database_oid AS database_oid, s.oid AS schema_oid"
_THEIRS = "database_name IN ('system', 'temp')"
_NO_COLUMN = "lake_internal_no_column"
_BROKEN = f"SELECT NULL AS {_NO_COLUMN}"
_EACH_IN_SCHEMA = ("constraints", "indexes", "sequences", "triggers")
_VIEWS = f"memory.{RESERVED_SCHEMA}.views v ON v.schema_name = f.schema_name AND v.view_name = f.view_name"
_SQL = f"CASE WHEN f.sql LIKE '%lake_internal%' OR f.sql LIKE '%{RESERVED_SCHEMA}@%' THEN v.sql ELSE f.sql END"  # what is ours is not the user's
_Named = tuple[str, str, int, str]  # schema, table, place among its constraints (NOT NULL is none) from 1, name
_ORDER = "PARTITION BY database_name, schema_name, table_name, constraint_type = 'NOT NULL' ORDER BY constraint_index"
_PLACES = f"(SELECT constraint_index, row_number() OVER ({_ORDER}) AS place FROM system.main.duckdb_constraints())"  # an index of all tables
_SEEN_SCHEMAS = f"schema_name IN (SELECT schema_name FROM system.main.duckdb_schemas() WHERE database_name = '{MIRROR}')"


class Mirror:
    """Of one DuckDB instance. Used by one thread at a time."""

    def __init__(self, do: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self._do = do
        self._stamp = 0
        self._schemas: set[str] = set()
        self._tables: dict[tuple[str, str], Table] = {}
        self._named: list[_Named] = []

    def update(
        self, namespace: Namespace, system: Mapping[str, Sequence[tuple[str, str]]], texts: Callable[[], Sequence[tuple[Table, str | None]]]
    ) -> None:
        """Makes the functions tell of `namespace`, and of the `system` views: (name, type) of each column.

        `texts`: every view with its query, each behind those that it reads; None where the query fails.
        """
        if not self._schemas:
            self._do(_made(system))
            self._schemas = {MAIN_SCHEMA}
        if self._stamp == namespace.stamp:
            return
        statements = [*self._gone(namespace), *self._new(namespace)]
        if (named := _named(namespace)) != self._named:
            statements.append(f"CREATE OR REPLACE MACRO duckdb_constraints() AS TABLE {_constraints(named)}")
            self._named = named
        if statements:
            self._do("; ".join(statements))
        if namespace.views:
            self._show(texts())
        self._schemas = set(namespace.schemas)
        self._tables = dict(namespace.tables)
        self._stamp = namespace.stamp

    def _show(self, views: Sequence[tuple[Table, str | None]]) -> None:
        """Makes the views anew, where their names mean what the mirror holds. One whose query fails has no columns."""
        try:
            self._do(f"USE {MIRROR}.{MAIN_SCHEMA}")
            for view, query in views:
                self._show_one(view, query or _BROKEN)
        finally:
            self._do("USE memory.main")

    def _show_one(self, view: Table, query: str) -> None:
        assert view.view is not None
        name = f"{quote(view.schema_name)}.{quote(view.name)}"
        try:
            self._do(f"CREATE OR REPLACE VIEW {name}{view.view.listed} AS {query}\n")
        except duckdb.Error:
            self._do(f"CREATE OR REPLACE VIEW {name} AS {_BROKEN}")
        there = {fold(row[0]) for row in self._do(f"DESCRIBE {name}")}
        columns = [f"COMMENT ON COLUMN {name}.{quote(c)} IS {literal(comment)}" for c, comment in view.view.comments if fold(c) in there]
        for comment in [*_comments("VIEW", name, view), *columns]:
            self._do(comment)

    def _gone(self, namespace: Namespace) -> list[str]:
        gone = {k: t for k, t in self._tables.items() if k not in namespace.tables or (namespace.tables[k].view is None) != (t.view is None)}
        tables = [f"DROP {'TABLE' if t.view is None else 'VIEW'} IF EXISTS {_name(*key)}" for key, t in gone.items()]
        return tables + [f"DROP SCHEMA IF EXISTS {MIRROR}.{quote(name)} CASCADE" for name in self._schemas - namespace.schemas.keys()]

    def _new(self, namespace: Namespace) -> list[str]:
        schemas = [s.name for key, s in namespace.schemas.items() if key not in self._schemas]
        changed = [t for key, t in namespace.tables.items() if t.view is None and self._tables.get(key) != t]
        made = [f"CREATE SCHEMA IF NOT EXISTS {place}.{quote(name)}" for name in schemas for place in (MIRROR, "memory")]
        tables = [(_name(t.schema_name, t.name), t) for t in changed]
        return made + [text for name, t in tables for text in (f"CREATE OR REPLACE TABLE {name} {t.body}", *_comments("TABLE", name, t))]


def _name(schema: str, table: str) -> str:
    return f"{MIRROR}.{quote(schema)}.{quote(table)}"


def _comments(kind: str, name: str, table: Table) -> list[str]:
    of_table = [f"COMMENT ON {kind} {name} IS {literal(table.comment)}"] if table.comment is not None else []
    return of_table + [f"COMMENT ON COLUMN {name}.{quote(c.name)} IS {literal(c.comment)}" for c in table.columns if c.comment is not None]


def _named(namespace: Namespace) -> list[_Named]:
    """The constraints that a user named. DuckDB forgets that; a table of the mirror has them in the same order."""
    return [
        (t.schema_name, t.name, index, c.name) for t in namespace.tables.values() for index, c in enumerate(t.constraints, 1) if c.name is not None
    ]


def _constraints(named: Sequence[_Named]) -> str:
    nothing = ("", "", -1, "")
    rows = ", ".join(f"({literal(schema)}, {literal(table)}, {index}, {literal(name)})" for schema, table, index, name in named or [nothing])
    same = "n.schema_name = f.schema_name AND n.table_name = f.table_name AND n.place = p.place AND f.constraint_type <> 'NOT NULL'"
    join = f"JOIN {_PLACES} p ON p.constraint_index = f.constraint_index LEFT JOIN (VALUES {rows}) n(schema_name, table_name, place, name) ON {same}"
    return _listed("constraints", join, ", coalesce(n.name, f.constraint_name) AS constraint_name")


def _made(views: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """The database, the system views and the macros."""
    places = [f"ATTACH IF NOT EXISTS ':memory:' AS {MIRROR}"]
    places += [f"CREATE SCHEMA IF NOT EXISTS {place}.{RESERVED_SCHEMA}" for place in (MIRROR, "memory")]
    shown = [
        f"CREATE OR REPLACE VIEW {_name(RESERVED_SCHEMA, name)} AS SELECT {', '.join(f'NULL::{kind} AS {quote(column)}' for column, kind in columns)}"
        for name, columns in views.items()
    ]
    return "; ".join([*places, *shown, *(f"CREATE OR REPLACE MACRO {call} AS TABLE {body}" for call, body in _macros().items())])


def _macros() -> dict[str, str]:
    named = f"'{MIRROR}.' || regexp_replace(table_name, '^memory[.]', '')"
    known = f"memory.{RESERVED_SCHEMA}.tables c ON c.schema_name = f.schema_name AND c.table_name = f.table_name"
    return {
        **{f"duckdb_{kind}()": _listed(kind) for kind in _EACH_IN_SCHEMA},
        "duckdb_tables()": _listed("tables", f"LEFT JOIN {known}", ", coalesce(c.row_count, f.estimated_size) AS estimated_size"),
        "duckdb_columns()": _listed("columns", where=f"f.column_name <> '{_NO_COLUMN}'"),
        "duckdb_views()": _listed("views", f"LEFT JOIN {_VIEWS}", f", CASE WHEN f.schema_name <> '{RESERVED_SCHEMA}' THEN {_SQL} END AS sql"),
        "duckdb_schemas()": f"FROM system.main.duckdb_schemas() WHERE {_THEIRS} OR (database_name = 'memory' AND {_SEEN_SCHEMAS})",
        "duckdb_databases()": f"FROM system.main.duckdb_databases() WHERE {_THEIRS} OR database_name = 'memory'",
        "duckdb_functions()": f"FROM system.main.duckdb_functions() WHERE {_THEIRS}",
        "duckdb_types()": f"FROM system.main.duckdb_types() WHERE {_THEIRS} OR database_name = 'memory'",
        "pragma_database_size()": "FROM system.main.pragma_database_size() WHERE database_name = 'memory'",
        **{f"{name}(table_name)": f"FROM system.main.{name}({named})" for name in ("pragma_table_info", "pragma_show")},
    }


def _listed(kind: str, join: str = "", replaced: str = "", where: str = "true") -> str:
    """The rows of a function that the mirror gives, as those of `memory`, and DuckDB's own."""
    function = f"system.main.duckdb_{kind}()"
    return f"SELECT f.* REPLACE ({_PLACE}{replaced}) FROM {function} f {join} JOIN {_OURS} AND {where} UNION ALL FROM {function} WHERE {_THEIRS}"
