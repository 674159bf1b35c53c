"""Lakes whose catalog says what no version of lakelite would write: forged by an attacker, or damaged."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import lakelite

CATALOG = "catalog.sqlite"


def lake_of_everything(path: Path) -> Path:
    """A new lake with something of everything; no connection is open."""
    with pytest.MonkeyPatch.context() as patch, lakelite.connect(path, autocommit=True) as con:
        patch.setattr("lakelite.transaction.key_lookup.FILTERED_ROWS", 1)
        con.execute("SET inline_rows = 10; SET upkeep = off")
        con.execute(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR DEFAULT ('x') CHECK (v <> 'bad'), s STRUCT(a INTEGER)) PARTITIONED BY (bucket(2, k)) WITH (compression = 'zstd')"
        )
        con.execute(
            "INSERT INTO t SELECT range, 'a' || range, {a: range} FROM range(200); DELETE FROM t WHERE k % 3 = 0; OPTIMIZE t ZORDER BY (v, k)"
        )
        con.execute(
            "INSERT INTO t VALUES (1000, 'inline', NULL), (1001, 'inline', {a: 1}); DELETE FROM t WHERE k = 1; CREATE VIEW w AS SELECT k FROM t"
        )
        con.execute(
            "COMMENT ON TABLE t IS 'c'; CREATE BRANCH b; CREATE TAG g; CREATE TABLE u AS SELECT range AS a FROM range(50); SET GLOBAL retention_hours = 5"
        )
        con.execute(f"COPY (SELECT 5::BIGINT AS a) TO '{path.parent}/x.parquet'; COPY u FROM '{path.parent}/x.parquet' (ADOPT)")
        assert con.execute("CHECK LAKE").fetchall() == []
    return path


def forge(path: Path, *statements: str) -> None:
    """Changes the catalog as one can who obeys none of its rules; its schema is as it was."""
    with closing(sqlite3.connect(path / CATALOG, isolation_level=None)) as catalog:
        schema = catalog.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'").fetchall()
        catalog.execute("PRAGMA writable_schema = ON")
        for name, sql in schema:
            loose = re.sub(r"\) STRICT(, )?", r") ", sql).replace(") WITHOUT ROWID", ") WITHOUT ROWID")
            loose = re.sub(r"(?<!IS) NOT NULL| INTEGER(?! PRIMARY)| TEXT| BLOB", "", loose)
            catalog.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (loose, name))
    with closing(sqlite3.connect(path / CATALOG, isolation_level=None)) as catalog:
        catalog.execute("PRAGMA writable_schema = ON")
        catalog.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            assert catalog.execute(statement).rowcount != 0, statement
        for name, sql in schema:
            catalog.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))
