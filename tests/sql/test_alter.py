"""ALTER TABLE against plain DuckDB: random sequences of changes of columns and rows, equal after each step, flushed, reopened, and in the past."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from oracle import multiset
from racing import flush

import lakelite

COLUMNS = some.sampled_from(["a", "b", "C", "d", "s"])
KINDS = some.sampled_from(["TINYINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(5,2)", "DECIMAL(9,3)", "VARCHAR", "DATE"])
CONSTANTS = {
    "DATE": "'2024-02-29'", "VARCHAR": "'it''s'", "FLOAT": "0.1", "DOUBLE": "0.1", "DECIMAL(5,2)": "1.25", "DECIMAL(9,3)": "1.125",
}  # fmt: skip


@some.composite
def added(draw: Callable[..., Any]) -> str:
    kind = draw(KINDS)
    default = draw(some.sampled_from(["", f" DEFAULT {CONSTANTS.get(kind, '4')}", " DEFAULT NULL"]))
    required = draw(some.sampled_from(["", "", " NOT NULL"]))
    return f"ALTER TABLE t ADD COLUMN {draw(some.sampled_from(['', 'IF NOT EXISTS ']))}{draw(COLUMNS)} {kind}{default}{required}"


ALTERS = some.one_of(
    added(),
    some.builds("ALTER TABLE t DROP COLUMN {}{}".format, some.sampled_from(["", "IF EXISTS "]), COLUMNS),
    some.builds("ALTER TABLE t RENAME COLUMN {} TO {}".format, COLUMNS, COLUMNS),
    some.builds("ALTER TABLE t ALTER COLUMN {} TYPE {}".format, COLUMNS, KINDS),
    some.builds("ALTER TABLE t ALTER {0} TYPE {1} USING coalesce(try_cast({0} AS {1}), NULL)".format, COLUMNS, KINDS),
    some.builds("ALTER TABLE t ALTER COLUMN {} SET DEFAULT {}".format, COLUMNS, some.sampled_from(["7", "NULL", "'2020-01-01'"])),
    some.builds("ALTER TABLE t ALTER COLUMN {} DROP DEFAULT".format, COLUMNS),
    some.builds("ALTER TABLE t ALTER COLUMN {} {} NOT NULL".format, COLUMNS, some.sampled_from(["SET", "DROP"])),
    some.sampled_from(
        [
            "ALTER TABLE t ADD COLUMN s STRUCT(x INTEGER, y STRUCT(z VARCHAR))",
            "ALTER TABLE t ADD COLUMN s STRUCT(x INTEGER, l STRUCT(q INTEGER)[])",
            "ALTER TABLE t ADD COLUMN s.w INTEGER DEFAULT 5",
            "ALTER TABLE t ADD COLUMN s.y.v DATE",
            "ALTER TABLE t ADD COLUMN s.l.element.w INTEGER",
            "ALTER TABLE t DROP COLUMN s.x",
            "ALTER TABLE t DROP COLUMN IF EXISTS s.w",
            "ALTER TABLE t RENAME COLUMN s.y.z TO zz",
            "ALTER TABLE t RENAME COLUMN s.l TO ll",
            "ALTER TABLE t RENAME TO other",
            "ALTER TABLE other RENAME TO t",
        ]
    ),
)
CHANGES = some.one_of(
    some.sampled_from(
        [
            "INSERT INTO t BY NAME SELECT 1 AS k",
            "INSERT INTO t (k) VALUES (7), (8)",
            "INSERT INTO t BY NAME SELECT range + 100 AS k FROM range(1500)",
            "INSERT INTO t SELECT * FROM t WHERE k < 3",
            "INSERT INTO t BY NAME SELECT 3 AS k, {'x': 1, 'y': {'z': 'u'}} AS s",
            "INSERT INTO t BY NAME SELECT 3 AS k, {'x': 1, 'l': [{'q': 1}, NULL]} AS s",
            "DELETE FROM t WHERE k = 7",
            "DELETE FROM t WHERE k % 3 = 0",
            "UPDATE t SET k = k + 1 WHERE k < 5",
            "TRUNCATE t",
        ]
    ),
    some.builds("UPDATE t SET {} = {} WHERE k % 2 = 0".format, COLUMNS, some.sampled_from(["NULL", "DEFAULT", "k", "'2021-12-31'"])),
    some.builds("DELETE FROM t WHERE {} = {}".format, COLUMNS, some.sampled_from(["4", "0.1", "1.125", "'it''s'"])),
)
START = (
    "CREATE TABLE t (k INTEGER, a TINYINT DEFAULT 3, b VARCHAR, d DECIMAL(5,2), s STRUCT(x INTEGER, y STRUCT(z VARCHAR)))",
    "INSERT INTO t VALUES (1, 1, '1', 1, {'x': 1, 'y': {'z': '1'}}), (2, NULL, NULL, NULL, NULL), (7, 3, '2', 4.25, {'x': 2, 'y': NULL})",
)
FLUSH = "flush"
Seen = tuple[list[tuple[Any, ...]], Counter[str]]


def seen(run: Callable[[str], Any], table: str, at: str = "") -> Seen:
    described = [row[:3] + row[4:5] for row in run(f"DESCRIBE {table}{at}").fetchall()] if at == "" else []
    return described, multiset(run(f"SELECT * FROM {table}{at}").fetchall())


def tried(run: Callable[[str], Any], sql: str) -> bool:
    try:
        run(sql)
    except (duckdb.Error, lakelite.Error):
        return False
    return True


def compare(lake: lakelite.Connection, duck: duckdb.DuckDBPyConnection) -> str:
    tables = [name for (name,) in duck.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    assert [name for (name,) in lake.execute("SHOW TABLES").fetchall()] == tables
    assert seen(lake.execute, tables[0]) == seen(duck.execute, tables[0])
    assert lake.execute(f"SELECT count(*) FROM {tables[0]}").fetchall() == duck.execute(f"SELECT count(*) FROM {tables[0]}").fetchall()
    return str(tables[0])


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=some.lists(some.one_of(ALTERS, ALTERS, CHANGES, some.just(FLUSH)), min_size=4, max_size=14), inline=some.booleans())
def test_random_changes_are_those_of_duckdb(steps: list[str], inline: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("alter") / "lake"
    log: list[tuple[int, str, Counter[str]]] = []
    with closing(duckdb.connect()) as duck:
        with lakelite.connect(path, autocommit=True) as lake:
            lake.execute(f"SET inline_rows = {1000 if inline else 0}")
            for sql in START:
                duck.execute(sql)
                lake.execute(sql)
            name = "t"
            for sql in steps:
                if sql == FLUSH:
                    flush(lake, name)
                else:
                    assert tried(lake.execute, sql) == tried(duck.execute, sql), sql
                name = compare(lake, duck)
                log.append((_version(lake), name, seen(duck.execute, name)[1]))
        with lakelite.connect(path, autocommit=True) as lake:
            compare(lake, duck)
            for version, name, rows in dict((entry[0], entry) for entry in log).values():
                assert multiset(lake.execute(f"SELECT * FROM {name} AT (VERSION => {version})").fetchall()) == rows


def _version(lake: lakelite.Connection) -> int:
    return int(lake.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchall()[0][0])
