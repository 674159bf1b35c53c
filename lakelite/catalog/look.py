"""What SHOW and DESCRIBE answer, as rows. Reads the catalog and the namespace; knows nothing of statements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lakelite.catalog.store import Catalog
from lakelite.catalog.system import VIEWS
from lakelite.contents import Namespace
from lakelite.model import MAIN_SCHEMA, RESERVED_SCHEMA, Table, fold
from lakelite.records import dataclass

HISTORY_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A small result: (name, DuckDB type) of each column, and the rows."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]


def show_tables(namespace: Namespace, schema: str, temporary: Sequence[str] = ()) -> Answer:
    """SHOW TABLES [FROM schema], in DuckDB's columns: the names, sorted; of `lake`, the system views. `temporary`: more of them."""
    tables = [*(t.name for t in namespace.tables.values() if fold(t.schema_name) == fold(schema)), *temporary]
    return Answer((("name", "VARCHAR"),), tuple((n,) for n in sorted(VIEWS if fold(schema) == RESERVED_SCHEMA else tables)))


def show_all_tables(tables: Sequence[Table], lake: str, temporary: Sequence[tuple[str, Sequence[tuple[Any, ...]]]] = ()) -> Answer:
    """SHOW ALL TABLES, in DuckDB's columns; without the system views. `temporary`: name and description (of DESCRIBE) of each."""
    ordered = sorted(tables, key=lambda t: (t.schema_name, t.name))
    rows = tuple((lake, t.schema_name, t.name, [c.name for c in t.columns], [c.type for c in t.columns], False) for t in ordered)
    rows += tuple(("temp", MAIN_SCHEMA, name, [row[0] for row in found], [row[1] for row in found], True) for name, found in sorted(temporary))
    columns = (("database", "VARCHAR"), ("schema", "VARCHAR"), ("name", "VARCHAR"), ("column_names", "VARCHAR[]"), ("column_types", "VARCHAR[]"))
    return Answer((*columns, ("temporary", "BOOLEAN")), rows)


def show_schemas(namespace: Namespace, lake: str) -> Answer:
    """SHOW SCHEMAS, in DuckDB's columns."""
    names = sorted([*(s.name for s in namespace.schemas.values()), RESERVED_SCHEMA])
    columns = (("database_name", "VARCHAR"), ("schema_name", "VARCHAR"), ("current", "BOOLEAN"))
    return Answer(columns, tuple((lake, name, fold(name) == MAIN_SCHEMA) for name in names))


def show_settings(settings: Sequence[tuple[str, str, str, str]], name: str | None) -> Answer | None:
    """SHOW ALL, or SHOW name: `settings` gives name, value, scope and description of each. None: there is none of that name."""
    if name is None:
        rows = tuple((known, value, about) for known, value, _, about in settings)
        return Answer((("name", "VARCHAR"), ("value", "VARCHAR"), ("description", "VARCHAR")), rows)
    values = [value for known, value, _, _ in settings if known == name]
    return Answer(((name, "VARCHAR"),), ((values[0],),)) if values else None


def show_create_table(text: str) -> Answer:
    """SHOW CREATE TABLE: one row with the statement, in a column that is called as in duckdb_tables()."""
    return Answer((("sql", "VARCHAR"),), ((text,),))


def describe_table(table: Table) -> Answer:
    """DESCRIBE t, in DuckDB's columns."""
    unique = {field_id: "UNI" for key in table.keys for _, field_id in key.columns}
    key = unique | {field_id: "PRI" for key in table.keys if key.kind == "primary key" for _, field_id in key.columns}
    return described([(c.name, c.type, "YES" if c.nullable else "NO", key.get(c.field_id), c.default, None) for c in table.columns])


def described(rows: Sequence[tuple[Any, ...]]) -> Answer:
    """What DESCRIBE gives, in DuckDB's columns."""
    names = ("column_name", "column_type", "null", "key", "default", "extra")
    return Answer(tuple((n, "VARCHAR") for n in names), tuple(rows))


def describe_history(catalog: Catalog, base: int, table: Table | None, limit: int | None) -> Answer:
    """DESCRIBE HISTORY: the snapshots that led to `base`, the newest one first. Rows added and removed are those of the table, or of all tables."""
    found = catalog.rows("history", base=base, table_id=table.table_id if table else None, limit=HISTORY_LIMIT if limit is None else limit)
    rows = tuple(
        (
            r[0],
            datetime.fromtimestamp(r[1] / 1_000_000, UTC).replace(tzinfo=None),
            r[2],
            r[4],
            r[10],
            r[11],
            "; ".join(json.loads(r[5])),
            r[12],
            r[3],
            r[7],
            r[8],
            r[6],
            r[9],
        )
        for r in found
    )
    columns = (
        ("version", "BIGINT"), ("committed_at", "TIMESTAMP"), ("author", "VARCHAR"), ("operation", "VARCHAR"), ("rows_added", "BIGINT"),
        ("rows_removed", "BIGINT"), ("statements", "VARCHAR"), ("resolution", "VARCHAR"), ("message", "VARCHAR"), ("base_version", "BIGINT"),
        ("attempts", "BIGINT"), ("isolation", "VARCHAR"), ("transaction_id", "VARCHAR"),
    )  # fmt: skip
    return Answer(columns, rows)
