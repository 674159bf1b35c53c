"""A table's own limits: what they do, where they are shown, and what keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import lakelite
from lakelite.bounds import _BOUNDS, _CHOICES, TABLE_OPTIONS


def shown(con: Any, table: str = "t") -> str:
    text = con.execute(f"SHOW CREATE TABLE {table}").fetchone()[0]
    return text[text.rindex("\n)") + 2 :]


def storages(con: Any) -> list[tuple[str, int]]:
    return con.execute("SELECT storage, row_count FROM lake.fragments WHERE table_name = 't' ORDER BY fragment_id").fetchall()


def test_every_option_is_a_limit_and_is_shown(lake: Any) -> None:
    values = {name: _CHOICES[name][-1] if name in _CHOICES else str(_BOUNDS[name][0]) for name in TABLE_OPTIONS}
    lake.execute(f"CREATE TABLE t (a INTEGER) WITH ({', '.join(f'{n} = {v}' for n, v in values.items())})")
    listed = ", ".join(f"{n} = {v}" if v.isdecimal() else f"{n} = '{v}'" for n, v in values.items())
    assert shown(lake) == f" WITH ({listed});"
    assert lake.execute("SELECT count(*) FROM lake.settings WHERE list_contains(?, name)", [list(TABLE_OPTIONS)]).fetchone() == (len(TABLE_OPTIONS),)


def test_the_view_of_all_options(lake: Any) -> None:
    lake.execute("CREATE TABLE t (a INTEGER) WITH (inline_rows = 4); CREATE SCHEMA s; CREATE TABLE s.u (a INTEGER); CREATE VIEW v AS FROM t")
    mine = (
        "SELECT value, default_value, is_own FROM lake.table_options WHERE schema_name = 'main' AND table_name = 't' AND option_name = 'inline_rows'"
    )
    assert lake.execute(mine).fetchall() == [("4", "1000", True)]
    lake.execute("SET inline_rows = 7; BEGIN; ALTER TABLE t SET (inline_rows = 5)")
    assert lake.execute(mine).fetchall() == [("5", "7", True)]
    lake.execute("ALTER TABLE t RESET (inline_rows)")
    assert lake.execute(mine).fetchall() == [("7", "7", False)]
    lake.execute("ROLLBACK")
    assert lake.execute(mine).fetchall() == [("4", "7", True)]
    listed = "SELECT schema_name || '.' || table_name, list(option_name ORDER BY option_name) FROM lake.table_options GROUP BY ALL ORDER BY ALL"
    assert lake.execute(listed).fetchall() == [("main.t", sorted(TABLE_OPTIONS)), ("s.u", sorted(TABLE_OPTIONS))]
    assert ("table_options",) in lake.execute("SHOW TABLES FROM lake").fetchall()


def test_a_table_s_inline_limit_goes_before_the_connection_s(lake: Any) -> None:
    lake.execute("SET inline_rows = 2; CREATE TABLE t WITH (inline_rows = 4) AS SELECT 1 AS a")
    lake.execute("INSERT INTO t SELECT * FROM range(4)")
    lake.execute("INSERT INTO t SELECT * FROM range(5)")
    assert storages(lake) == [("inline", 1), ("inline", 4), ("parquet", 5)]
    lake.execute("UPDATE t SET a = a + 1 WHERE a < 2")
    assert storages(lake)[-1] == ("parquet", 5)
    lake.execute("UPDATE t SET a = a + 1 WHERE a = 4")
    assert storages(lake)[-1] == ("inline", 1)
    lake.execute("ALTER TABLE t RESET (inline_rows)")
    lake.execute("INSERT INTO t VALUES (1), (2), (3)")
    assert storages(lake)[-1] == ("parquet", 3)
    assert shown(lake) == ";"


@pytest.mark.parametrize("codec", _CHOICES["compression"])
def test_files_are_compressed_as_the_table_says(lake: Any, tmp_path: Path, codec: str) -> None:
    lake.execute(f"SET inline_rows = 0; CREATE TABLE t WITH (compression = {codec}, row_group_rows = 2048) AS SELECT range AS a FROM range(5000)")
    (path,) = lake.execute("SELECT path FROM lake.fragments").fetchone()
    found = lake.execute(f"SELECT DISTINCT compression FROM parquet_metadata('{tmp_path / 'lake' / path}')").fetchall()
    assert found == [("LZ4_RAW" if codec == "lz4" else codec.upper(),)]
    assert lake.execute(f"SELECT num_row_groups FROM parquet_file_metadata('{tmp_path / 'lake' / path}')").fetchone() == (3,)
    assert lake.execute("SELECT sum(a) FROM t").fetchone() == (12_497_500,)


def test_optimize_and_upkeep_go_by_them(lake: Any) -> None:
    lake.execute("SET inline_rows = 0; SET upkeep_files = 3; CREATE TABLE t (a INTEGER) WITH (target_file_rows = 30, upkeep = off)")
    for i in range(8):
        lake.execute("INSERT INTO t SELECT * FROM range(?)", [10 + i % 2])
    assert len(storages(lake)) == 8
    lake.execute("OPTIMIZE t")
    assert max(rows for _, rows in storages(lake)) <= 30
    assert len(storages(lake)) == 4
    lake.execute("ALTER TABLE t SET (upkeep = 'on', target_file_rows = 1000)")
    for _ in range(6):
        lake.execute("INSERT INTO t SELECT * FROM range(10)")
    assert len(storages(lake)) <= 4


def test_what_keeps_them(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (a INTEGER) PARTITIONED BY (a) WITH (upkeep = off)")
    lake.execute("CREATE TABLE plain (LIKE t); CREATE TABLE whole (LIKE t INCLUDING ALL)")
    assert (shown(lake, "plain"), shown(lake, "whole")) == (";", " PARTITIONED BY (a) WITH (upkeep = 'off');")
    version = lake.last_commit.snapshot_id
    lake.execute(
        "INSERT INTO t VALUES (1); ALTER TABLE t RENAME a TO b; ALTER TABLE t SET (inline_rows = 3); ALTER TABLE t SET PARTITIONED BY (bucket(3, b))"
    )
    assert shown(lake) == " PARTITIONED BY (bucket(3, b)) WITH (inline_rows = 3, upkeep = 'off');"
    assert "WITH (upkeep = 'off')" in lake.execute(f"SHOW CREATE TABLE t AT (VERSION => {version})").fetchone()[0]
    lake.execute(f"EXPORT DATABASE '{tmp_path / 'out'}'")
    with lakelite.connect(tmp_path / "second", autocommit=True) as other:
        other.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        assert shown(other) == " PARTITIONED BY (bucket(3, b)) WITH (inline_rows = 3, upkeep = 'off');"
        assert [shown(other, name) for name in ("plain", "whole")] == [";", " PARTITIONED BY (a) WITH (upkeep = 'off');"]
    with duckdb.connect() as plain:
        plain.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        assert plain.execute("SELECT b FROM t").fetchall() == [(1,)]
    with lakelite.connect(tmp_path / "lake", autocommit=True) as again:
        assert shown(again) == " PARTITIONED BY (bucket(3, b)) WITH (inline_rows = 3, upkeep = 'off');"
    lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert shown(lake) == " PARTITIONED BY (a) WITH (inline_rows = 3, upkeep = 'off');"  # its options are those of now
    lake.execute("CREATE OR REPLACE TABLE t (a INTEGER)")
    assert shown(lake) == ";"
    assert lake.execute("CHECK LAKE").fetchall() == []


def test_they_are_undone_with_the_transaction(lake: Any) -> None:
    lake.execute("CREATE TABLE t (a INTEGER) WITH (inline_rows = 1)")
    lake.execute("BEGIN; ALTER TABLE t SET (inline_rows = 9); SAVEPOINT s; ALTER TABLE t RESET (inline_rows)")
    assert shown(lake) == ";"
    lake.execute("ROLLBACK TO s")
    assert shown(lake) == " WITH (inline_rows = 9);"
    lake.execute("ROLLBACK")
    assert shown(lake) == " WITH (inline_rows = 1);"
    lake.execute("ALTER TABLE IF EXISTS nowhere SET (inline_rows = 1)")


def history(con: Any, table: str) -> int:
    return con.execute(f"SELECT count(*) FROM lake.fragments f WHERE table_name = '{table}'").fetchone()[0]


def test_retention_of_a_table(lake: Any, tmp_path: Path) -> None:
    lake.execute("SET inline_rows = 0; CREATE TABLE brief (a INTEGER) WITH (retention_hours = 0); CREATE TABLE plain (a INTEGER)")
    for table in ("brief", "plain"):
        for i in range(3):
            lake.execute(f"INSERT OVERWRITE {table} SELECT {i} FROM range(10)")
    dry = lake.execute("VACUUM DRY RUN").fetchone()
    assert (dry[2], dry[3]) == (0, 2)
    assert lake.execute("VACUUM").fetchone()[2:] == dry[2:]
    assert lake.execute("VACUUM").fetchone()[3] == 0
    lake.execute("ALTER TABLE plain SET (retention_hours = 1000); SET retention_hours = 0; INSERT OVERWRITE brief SELECT 7")
    assert lake.execute("VACUUM plain DRY RUN").fetchone()[3] == 0
    assert lake.execute("VACUUM").fetchone()[2:4] == (0, 1)  # the versions stay, since a table wants them
    version = lake.execute(
        "SELECT min(snapshot_id) FROM lake.snapshots WHERE operation = 'INSERT' AND list_contains(statements, 'INSERT OVERWRITE plain SELECT 0 FROM range(10)')"
    ).fetchone()[0]
    assert lake.execute(f"SELECT count(*) FROM plain AT (VERSION => {version})").fetchone() == (10,)
    assert lake.execute("VACUUM RETAIN 0 HOURS").fetchone()[3] == 2  # what is said in the statement goes before all
    assert lake.execute("CHECK LAKE").fetchall() == []


def test_the_longest_retention_of_all_branches_counts(lake: Any) -> None:
    lake.execute("SET inline_rows = 0; SET retention_hours = 0; CREATE TABLE t (a INTEGER); CREATE TABLE u (a INTEGER)")
    for table in ("t", "u"):
        lake.execute(f"INSERT OVERWRITE {table} SELECT 1; INSERT OVERWRITE {table} SELECT 2")
    lake.execute("CREATE BRANCH dev; USE BRANCH dev; ALTER TABLE t SET (retention_hours = 1000); USE BRANCH main")
    assert lake.execute("VACUUM t").fetchone()[2:4] == (0, 0)
    assert lake.execute("VACUUM DRY RUN").fetchone()[2:4] == (0, 1)
    assert lake.execute("VACUUM").fetchone()[2:4] == (0, 1)
    lake.execute("DROP BRANCH dev")
    assert lake.execute("VACUUM").fetchone()[3] == 1
    assert lake.execute("CHECK LAKE").fetchall() == []
