"""What SHOW and DESCRIBE answer, as rows. Reads the catalog and the namespace; knows nothing of statements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakelite.catalog.store import Catalog
from lakelite.contents import Namespace
from lakelite.model import Table, fold

HISTORY_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A small result: (name, DuckDB type) of each column, and the rows."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]


def show_tables(namespace: Namespace, schema: str | None) -> Answer:
    """SHOW TABLES: the names, sorted; of one schema or of all."""
    names = sorted(t.name for t in namespace.tables.values() if schema is None or fold(t.schema_name) == fold(schema))
    return Answer((("name", "VARCHAR"),), tuple((n,) for n in names))


def show_all_tables(namespace: Namespace, lake: str) -> Answer:
    """SHOW ALL TABLES, in DuckDB's columns."""
    tables = sorted(namespace.tables.values(), key=lambda t: (t.schema_name, t.name))
    rows = tuple((lake, t.schema_name, t.name, [c.name for c in t.columns], [c.type for c in t.columns], False) for t in tables)
    columns = (("database", "VARCHAR"), ("schema", "VARCHAR"), ("name", "VARCHAR"), ("column_names", "VARCHAR[]"), ("column_types", "VARCHAR[]"))
    return Answer((*columns, ("temporary", "BOOLEAN")), rows)


def show_schemas(namespace: Namespace) -> Answer:
    return Answer((("schema_name", "VARCHAR"),), tuple((s.name,) for s in sorted(namespace.schemas.values(), key=lambda s: s.name)))


def show_settings(settings: Mapping[str, tuple[str, str]], name: str | None) -> Answer:
    """SHOW ALL, or SHOW name: `settings` maps each name to its value and description."""
    if name is not None:
        return Answer(((name, "VARCHAR"),), ((settings[name][0],),))
    rows = tuple((n, value, about) for n, (value, about) in sorted(settings.items()))
    return Answer((("name", "VARCHAR"), ("value", "VARCHAR"), ("description", "VARCHAR")), rows)


def describe_table(table: Table) -> Answer:
    """DESCRIBE t, in DuckDB's columns."""
    names = ("column_name", "column_type", "null", "key", "default", "extra")
    rows = tuple((c.name, c.type, "YES" if c.nullable else "NO", None, c.default, None) for c in table.columns)
    return Answer(tuple((n, "VARCHAR") for n in names), rows)


def describe_history(catalog: Catalog, table: Table | None, limit: int | None) -> Answer:
    """DESCRIBE HISTORY: the newest snapshot first. Rows added and removed are those of the table, or of all tables."""
    found = catalog.rows("history", table_id=table.table_id if table else None, limit=HISTORY_LIMIT if limit is None else limit)
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
