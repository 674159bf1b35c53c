"""ALTER TABLE against plain DuckDB: random sequences of changes of columns and rows, equal after each step, flushed, reopened, and in the past."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
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


def fails_by_row(duck: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether DuckDB looks at other rows than we do: it converts a condition only for rows that it looks at, and a column for deleted rows too."""
    duck.execute("BEGIN")
    try:
        duck.execute(sql)
    except duckdb.ConversionException:
        duck.execute("ROLLBACK; BEGIN")
        return sql.startswith("DELETE") or (sql.startswith("ALTER") and tried(duck.execute, _on_live_rows(sql)))
    except duckdb.Error:
        return False
    finally:
        duck.execute("ROLLBACK")
    return False


def _on_live_rows(sql: str) -> str:
    """The same ALTER TABLE on a copy, in which nothing is left of deleted rows."""
    table = sql.split()[2]
    return f"CREATE TABLE copied AS FROM {table}; {sql.replace(f'ALTER TABLE {table} ', 'ALTER TABLE copied ', 1)}"


def compare(lake: lakelite.Connection, duck: duckdb.DuckDBPyConnection) -> str:
    tables = [name for (name,) in duck.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    assert [name for (name,) in lake.execute("SHOW TABLES").fetchall()] == tables
    assert seen(lake.execute, tables[0]) == seen(duck.execute, tables[0])
    assert lake.execute(f"SELECT count(*) FROM {tables[0]}").fetchall() == duck.execute(f"SELECT count(*) FROM {tables[0]}").fetchall()
    return str(tables[0])


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@example(
    steps=["ALTER TABLE t ADD COLUMN c TINYINT", "TRUNCATE t", "ALTER TABLE t DROP COLUMN c", "ALTER TABLE t ALTER COLUMN b TYPE DATE"], inline=False
)
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
                elif not fails_by_row(duck, sql):
                    assert tried(lake.execute, sql) == tried(duck.execute, sql), sql
                name = compare(lake, duck)
                log.append((_version(lake), name, seen(duck.execute, name)[1]))
        with lakelite.connect(path, autocommit=True) as lake:
            compare(lake, duck)
            for version, name, rows in {entry[0]: entry for entry in log}.values():
                assert multiset(lake.execute(f"SELECT * FROM {name} AT (VERSION => {version})").fetchall()) == rows


def _version(lake: lakelite.Connection) -> int:
    return int(lake.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchall()[0][0])


@pytest.fixture(params=["inline", "files"])
def con(tmp_path: Path, request: Any) -> Iterator[Any]:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute(f"SET inline_rows = {1000 if request.param == 'inline' else 0}")
        con.execute("CREATE TABLE t (k INTEGER, v INTEGER)")  # 1
        con.execute("INSERT INTO t VALUES (1, 1), (2, 2)")  # 2
        con.execute("INSERT INTO t VALUES (3, NULL)")  # 3
        yield con


def all_of(con: Any, query: str) -> list[tuple[Any, ...]]:
    return list(con.execute(query).fetchall())


DEFAULTS = (
    ("UUID", "'00000000-0000-0000-0000-00000000000f'"), ("ENUM('a', 'b')", "'b'"), ("INTERVAL", "INTERVAL 3 DAYS"), ("BIT", "'101'"),
    ("UNION(n INTEGER, s VARCHAR)", "'q'"), ("HUGEINT", "99999999999999999999999999999999999999"), ("INTEGER[]", "[1, NULL]"),
    ("MAP(INTEGER, VARCHAR)", "MAP {1: 'a'}"), ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': 'x, ''y'''}"), ("BLOB", "'\\xAA\\x00'"),
    ("TIMESTAMP_S", "'2020-01-01'"), ("TIMESTAMPTZ", "'2020-01-01 00:00:00+00'"), ("JSON", "'{\"a\": 1}'"), ("DOUBLE", "'nan'"), ("FLOAT", "0.1"),
    ("VARCHAR", "''"), ("VARCHAR", "'NULL'"), ("TIME", "'01:02:03'"), ("DATE", "'infinity'"), ("BOOLEAN", "true"), ("INTEGER[2]", "[1, 2]"),
)  # fmt: skip


def test_old_rows_have_the_default_of_every_type(con: Any) -> None:
    with closing(duckdb.connect()) as duck:
        duck.execute("CREATE TABLE t AS SELECT 1 AS k FROM range(3)")
        for number, (kind, default) in enumerate(DEFAULTS):
            sql = f"ALTER TABLE t ADD COLUMN c{number} {kind} DEFAULT {default}"
            con.execute(sql)
            duck.execute(sql)
        query = f"SELECT {', '.join(f'CAST(c{i} AS VARCHAR), typeof(c{i})' for i in range(len(DEFAULTS)))} FROM t"
        assert all_of(con, query) == all_of(duck, query)


def test_a_default_that_differs_by_row_is_drawn_for_each_and_now_is_one_moment(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN u UUID DEFAULT uuid()")
    con.execute("ALTER TABLE t ADD COLUMN n TIMESTAMPTZ DEFAULT now()")
    drawn = all_of(con, "SELECT u, n FROM t")
    assert len({u for u, _ in drawn}) == 3
    assert len({n for _, n in drawn}) == 1
    assert all_of(con, "SELECT u, n FROM t") == drawn


def test_set_default_changes_new_rows_only_and_a_column_of_the_same_name_is_another_one(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 4")
    con.execute("ALTER TABLE t ALTER COLUMN c SET DEFAULT 5")
    con.execute("INSERT INTO t (k) VALUES (9)")
    assert all_of(con, "SELECT k, c FROM t ORDER BY k") == [(1, 4), (2, 4), (3, 4), (9, 5)]
    con.execute("ALTER TABLE t DROP COLUMN c")
    con.execute("ALTER TABLE t ADD COLUMN c VARCHAR")
    assert all_of(con, "SELECT k, c FROM t ORDER BY k") == [(1, None), (2, None), (3, None), (9, None)]


def test_conditions_find_rows_that_lack_the_column_or_were_widened(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 4")
    con.execute("INSERT INTO t VALUES (8, 8, 8)")
    assert con.execute("UPDATE t SET k = k + 10 WHERE c = 4").rowcount == 3
    assert con.execute("DELETE FROM t WHERE c IS NULL").rowcount == 0
    con.execute("ALTER TABLE t ADD COLUMN f FLOAT DEFAULT 0.1")
    con.execute("INSERT INTO t (f) VALUES (0.3), (16777216)")
    for change in ("f TYPE DOUBLE", "c TYPE BIGINT", "v TYPE BIGINT"):
        con.execute(f"ALTER TABLE t ALTER {change}")
    con.execute("INSERT INTO t (v) VALUES (5000000000)")
    assert all_of(con, "SELECT count(*) FROM t WHERE f = 0.1::FLOAT::DOUBLE") == [(4,)]
    assert con.execute("DELETE FROM t WHERE f = 0.3::FLOAT::DOUBLE").rowcount == 1
    assert con.execute("DELETE FROM t WHERE f >= 16777216").rowcount == 1
    assert con.execute("DELETE FROM t WHERE v > 4000000000").rowcount == 1
    assert con.execute("DELETE FROM t WHERE v = 2").rowcount == 1


def test_rows_that_are_written_anew_keep_their_ids_and_their_order(con: Any) -> None:
    con.execute("ALTER TABLE t ALTER COLUMN v TYPE BIGINT USING v * 10")  # 4
    assert all_of(con, "FROM t") == [(1, 10), (2, 20), (3, None)]
    con.execute("UPDATE t SET v = 7 WHERE k = 1")  # 5
    con.execute("ALTER TABLE t ALTER COLUMN v TYPE VARCHAR")  # 6
    assert all_of(con, "FROM t ORDER BY k") == [(1, "7"), (2, "20"), (3, None)]
    con.execute("UPDATE t SET v = 'x' WHERE k < 3")  # 7
    changes = "SELECT snapshot_id, row_id, change_type, k, v FROM table_changes('t', {}, {}) ORDER BY ALL"
    assert all_of(con, changes.format(6, 7)) == [
        (7, 1, "update_postimage", 1, "x"), (7, 1, "update_preimage", 1, "7"), (7, 2, "update_postimage", 2, "x"), (7, 2, "update_preimage", 2, "20"),
    ]  # fmt: skip
    assert len(all_of(con, changes.format(2, 3))) == 3
    assert len(all_of(con, changes.format(4, 5))) == 2
    cursor = con.execute(changes.format(5, 6))
    assert [text for _, text in cursor.messages] == [
        'column "v" was BIGINT before version 6 and is VARCHAR now: its older values are cast, and NULL where that fails'
    ]
    assert cursor.fetchall() == [(5, 1, "update_postimage", 1, "7"), (5, 1, "update_preimage", 1, "10")]
    con.execute("BEGIN; ALTER TABLE t ALTER COLUMN k TYPE VARCHAR; UPDATE t SET v = 'y' WHERE k = '3'; INSERT INTO t VALUES ('9', 'z'); COMMIT")  # 8
    assert all_of(con, changes.format(8, 8)) == [
        (8, 3, "update_postimage", "3", "y"), (8, 3, "update_preimage", "3", None), (8, 17, "insert", "9", "z"),
    ]  # fmt: skip


def test_table_changes_has_the_columns_of_the_last_version(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 4")
    con.execute("ALTER TABLE t RENAME COLUMN v TO w")
    con.execute("DELETE FROM t WHERE k = 1")
    query = "SELECT change_type, k, w, c FROM table_changes('t', 2, 6) ORDER BY ALL"
    assert all_of(con, query) == [("delete", 1, 1, 4), ("insert", 1, 1, 4), ("insert", 2, 2, 4), ("insert", 3, None, 4)]


def test_the_past_and_restore_have_the_columns_of_then(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 4")  # 4
    con.execute("ALTER TABLE t DROP COLUMN v")  # 5
    con.execute("ALTER TABLE t ALTER COLUMN k TYPE VARCHAR USING 'k' || k")  # 6
    con.execute("ALTER TABLE t RENAME TO other")  # 7
    con.execute("INSERT INTO other VALUES ('x', 1)")  # 8
    assert all_of(con, "SELECT * FROM t AT (VERSION => 3) ORDER BY k") == [(1, 1), (2, 2), (3, None)]
    assert all_of(con, "SELECT * FROM t AT (VERSION => 4) JOIN other ON other.k = 'k' || t.k WHERE t.k = 1") == [(1, 1, 4, "k1", 4)]
    con.execute("RESTORE TABLE other TO VERSION AS OF 4")
    assert all_of(con, "SELECT * FROM other ORDER BY k") == [(1, 1, 4), (2, 2, 4), (3, None, 4)]
    con.execute("RESTORE TABLE other TO VERSION AS OF 8")
    assert all_of(con, "SELECT * FROM other ORDER BY k") == [("k1", 4), ("k2", 4), ("k3", 4), ("x", 1)]
    con.execute("RESTORE TABLE other TO VERSION AS OF 2")
    assert all_of(con, "SELECT * FROM other ORDER BY k") == [(1, 1), (2, 2)]


def test_what_tells_of_columns_tells_of_the_new_ones(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN c VARCHAR DEFAULT 'x' NOT NULL")
    con.execute("ALTER TABLE t RENAME COLUMN v TO w")
    con.execute("ALTER TABLE t ALTER COLUMN k TYPE BIGINT")
    assert all_of(con, "SHOW CREATE TABLE t") == [("CREATE TABLE t (\n    k BIGINT,\n    w INTEGER,\n    c VARCHAR NOT NULL DEFAULT ('x')\n);",)]
    names = "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 't'"
    assert all_of(con, names) == [("k", "BIGINT", "YES"), ("w", "INTEGER", "YES"), ("c", "VARCHAR", "NO")]
    assert [row[0] for row in all_of(con, "DESCRIBE t")] == ["k", "w", "c"]
    con.execute("INSERT INTO t VALUES (9, 9, 'y')")
    with closing(con.duckdb()) as duck:
        assert all_of(duck, "SELECT * FROM t ORDER BY k") == [(1, 1, "x"), (2, 2, "x"), (3, None, "x"), (9, 9, "y")]
    assert all_of(con, "SELECT operation FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 2") == [("INSERT",), ("ALTER TABLE",)]


def test_in_a_transaction_with_other_statements_and_savepoints(con: Any) -> None:
    con.execute("BEGIN")
    con.execute("ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 1")
    con.execute("INSERT INTO t (k, z) VALUES (4, 2)")
    con.execute("ALTER TABLE t RENAME COLUMN z TO zz")
    con.execute("UPDATE t SET zz = zz + 1")
    con.execute("ALTER TABLE t ALTER zz TYPE VARCHAR USING 'v' || zz")
    con.execute("SAVEPOINT a")
    con.execute("ALTER TABLE t DROP COLUMN zz")
    con.execute("ALTER TABLE t RENAME TO gone")
    con.execute("ROLLBACK TO a")
    want = [(1, "v2"), (2, "v2"), (3, "v2"), (4, "v3")]
    assert all_of(con, "SELECT k, zz FROM t ORDER BY k") == want
    con.execute("COMMIT")
    assert all_of(con, "SELECT k, zz FROM t ORDER BY k") == want
    assert all_of(con, "SELECT rows_added, rows_removed FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 1") == [(1, 0)]
    con.execute("BEGIN")
    con.execute("ALTER TABLE t RENAME TO gone")
    con.execute("ROLLBACK")
    assert all_of(con, "SELECT k, zz FROM t ORDER BY k") == want


def test_an_if_that_finds_nothing_to_do_is_no_error(con: Any) -> None:
    con.execute("ALTER TABLE IF EXISTS nope ADD COLUMN c INTEGER")
    con.execute("ALTER TABLE t ADD COLUMN IF NOT EXISTS v DATE")
    con.execute("ALTER TABLE t DROP COLUMN IF EXISTS nope CASCADE")
    assert [row[:2] for row in all_of(con, "DESCRIBE t")] == [("k", "INTEGER"), ("v", "INTEGER")]


def test_nested_fields(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN s STRUCT(x INTEGER, l STRUCT(q INTEGER)[]) DEFAULT {'x': 1, 'l': [{'q': 2}]}")
    for change in ("ADD COLUMN s.w INTEGER DEFAULT 5", "RENAME COLUMN s.l.element.q TO z", "DROP COLUMN s.x", "ADD COLUMN s.l.element.y DATE"):
        con.execute(f"ALTER TABLE t {change}")
    assert all_of(con, "SELECT s FROM t LIMIT 1") == [({"l": [{"z": 2, "y": None}], "w": 5},)]
    assert all_of(con, "SELECT s FROM t AT (VERSION => 4) LIMIT 1") == [({"x": 1, "l": [{"q": 2}]},)]
