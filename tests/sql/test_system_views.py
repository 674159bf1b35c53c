"""The system views of schema `lake`, against what the test did."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from racing import meeting

import lakelite
from lakelite.catalog.system import VIEWS
from lakelite.storage import loaded

CONTRACT = {
    "snapshots": "snapshot_id, parent_id, branch, committed_at, author, message, operation, statements, isolation, base_snapshot_id, attempts, transaction_id",
    "tables": "table_id, schema_name, table_name, row_count, fragment_count, deleted_count, size_bytes",
    "views": "view_id, schema_name, view_name, sql, comment",
    "columns": "",
    "table_options": "table_id, schema_name, table_name, option_name, value, default_value, is_own",
    "fragments": "fragment_id, table_name, storage, path, row_count, deleted_count, size_bytes, first_snapshot_id",
    "deletion_vectors": "fragment_id, snapshot_id, cardinality",
    "compositions": "output_fragment_id, source_fragment_id, source_order, output_start, live_count, physical_count, ordered",
    "resolutions": "snapshot_id, winner_snapshot_id, table_name, rung, row_count, explanation",
    "settings": "name, value, scope, description",
    "branches": "name, head_snapshot_id, base_snapshot_id, created_at",
    "tags": "name, tagged_snapshot_id, branch, created_at",
    "merge_conflicts": "table_name, row_id, kind, base, ours, theirs, resolution",
}


def rows(con: Any, sql: str, parameters: Any = None) -> list[Any]:
    return con.execute(sql, parameters).fetchall()  # type: ignore[no-any-return]


# What each view shows, against a log.


@pytest.mark.parametrize("view", CONTRACT)
def test_the_columns_are_those_of_the_contract_and_may_be_described(lake: lakelite.Connection, view: str) -> None:
    expected = [(name, kind, "YES", None, None, None) for name, kind in VIEWS[view].columns]
    named = [name.strip() for name in CONTRACT[view].split(",") if name]
    assert [row[0] for row in expected][: len(named)] == named
    for sql in (
        f"describe lake.{view}",
        f"DESC LAKE.{view.upper()}",
        f"show lake.{view}",
        f"describe select * from lake.{view}",
        f'describe "lake"."{view}"',
    ):
        assert rows(lake, sql) == expected, sql
    assert [(d[0], str(d[1])) for d in lake.execute(f"from lake.{view}").description or ()] == list(VIEWS[view].columns)
    catalogued = (
        "select column_name, data_type from information_schema.columns where table_schema = 'lake' and table_name = ? order by ordinal_position"
    )
    assert rows(lake, catalogued, [view]) == list(VIEWS[view].columns)
    assert set(CONTRACT) == set(VIEWS)


def test_snapshots(tmp_path: Path) -> None:
    log: list[tuple[Any, ...]] = []
    with lakelite.connect(tmp_path / "lake", autocommit=True, author="ann") as con:

        def did(operation: str, statements: list[str], added: int, removed: int, message: str | None = None) -> None:
            n = len(log) + 1
            log.append((n, n - 1, "main", "ann", message, operation, statements, "write serializable", n - 1, 1, added, removed))

        for sql, operation, added, removed in (
            ("create table t (a integer)", "CREATE TABLE", 0, 0),
            ("insert into t values (1), (2), (3)", "INSERT", 3, 0),
            ("update t set a = a + 10 where a > 1", "UPDATE", 2, 2),
            ("delete from t where a = 1", "DELETE", 0, 1),
        ):
            con.execute(sql)
            did(operation, [sql], added, removed)
        con.execute("set commit_message = 'two at once'; begin; insert into t values (4); create schema s; commit")
        did("INSERT, CREATE SCHEMA", ["insert into t values (4)", "create schema s"], 1, 0, "two at once")
        con.execute("begin; insert into t values (5); rollback")
        shown = (
            "snapshot_id, parent_id, branch, author, message, operation, statements, isolation, base_snapshot_id, attempts, rows_added, rows_removed"
        )
        assert rows(con, f"select {shown} from lake.snapshots where snapshot_id > 0 order by snapshot_id") == log
        first = rows(con, "select operation, parent_id, author, statements from lake.snapshots where snapshot_id = 0")
        assert first == [("create lake", None, None, [])]
        history = rows(con, "describe history")
        seen = rows(con, "select snapshot_id, committed_at, transaction_id from lake.snapshots order by snapshot_id desc")
        assert seen == [(row[0], row[1], row[12]) for row in history]
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        assert all(now - datetime.timedelta(minutes=10) < row[1] <= now for row in seen)


def check_states(con: lakelite.Connection, root: Path) -> None:
    """lake.tables, lake.columns and lake.fragments say what the tables themselves say, and the files on the disk."""
    tables = rows(con, "select schema_name, table_name, table_id, row_count, fragment_count, deleted_count, size_bytes from lake.tables")
    assert sorted(t[:2] for t in tables) == [row[1:3] for row in rows(con, "show all tables")]
    for schema, name, table_id, *counts in tables:
        assert rows(con, f'select count(*) from (from "{schema}"."{name}")') == [(counts[0],)]
        summed = "sum(row_count) - sum(deleted_count), count(*), sum(deleted_count), sum(size_bytes)"
        found = rows(con, f"select {summed} from lake.fragments where table_id = ? and schema_name = ? and table_name = ?", [table_id, schema, name])
        assert [value or 0 for value in found[0]] == counts, name
        described = [(r[0], r[1], r[2] == "YES", r[4]) for r in rows(con, f'describe "{schema}"."{name}"')]
        listed = "select column_name, data_type, is_nullable, column_default from lake.columns where table_id = ? order by column_index"
        assert rows(con, listed, [table_id]) == described
    for storage, path, count, size in rows(con, "select storage, path, row_count, size_bytes from lake.fragments"):
        assert (path is None) == (storage == "inline")
        if path:
            assert os.stat(root / path).st_size == size
            assert pyarrow.parquet.read_metadata(root / path).num_rows == count


def test_tables_columns_and_fragments_with_own_changes(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create schema s; create table s.t (a integer not null default 3, b varchar); create table u as select range as i from range(5000)")
    lake.execute(
        "insert into s.t values (1, 'x'); insert into u values (1); delete from u where i < 10; create table emptied as select 1 as x; delete from emptied"
    )
    root = tmp_path / "lake"
    check_states(lake, root)
    before = {view: rows(lake, f"from lake.{view} order by all") for view in ("tables", "columns", "fragments")}
    with lakelite.connect(root, autocommit=True) as other:
        lake.execute(
            "begin; insert into u values (7), (8); delete from u where i = 4000; create table new as select range from range(3000); drop table emptied"
        )
        lake.execute("create or replace table s.t (z double); update u set i = -1 where i = 50; create schema s2; create table s2.v (a integer)")
        check_states(lake, root)
        fresh = rows(lake, "select count(*), bool_and(fragment_id < 0) from lake.fragments where first_snapshot_id is null")
        assert fresh == [(3, True)]
        assert rows(lake, "select row_count, deleted_count from lake.fragments where table_name = 'u' and storage = 'parquet'") == [(5000, 12)]
        assert {view: rows(other, f"from lake.{view} order by all") for view in before} == before
        lake.execute("rollback")
        assert {view: rows(lake, f"from lake.{view} order by all") for view in before} == before
        lake.execute("begin; delete from u where i > 100; drop table s.t; commit")
        check_states(lake, root)
        assert rows(lake, "from lake.fragments order by all") == rows(other, "from lake.fragments order by all")
        assert rows(lake, "select row_count from lake.tables where table_name = 'u'") == [(91,)]


def test_deletion_vectors_and_compositions(lake: lakelite.Connection) -> None:
    lake.execute("set flush_fragments = 3; create table t (a integer); create table big as select range::integer as a from range(2000)")
    big = rows(lake, "select fragment_id from lake.fragments where table_name = 'big'")[0][0]
    log = []
    for count, upto in ((5, 5), (12, 12)):
        lake.execute(f"delete from big where a < {upto}")
        log.append((big, lake.last_commit.snapshot_id, count))  # type: ignore[union-attr]
    assert rows(lake, "select fragment_id, snapshot_id, cardinality from lake.deletion_vectors order by all") == log
    assert rows(lake, "from lake.compositions") == []
    for n in range(4):  # the fourth one makes four fragments, which are moved into a file
        lake.execute(f"insert into t values ({n}), ({n + 10})")
        if n == 1:
            lake.execute("delete from t where a = 0")
    flushed = rows(lake, "select snapshot_id from lake.snapshots where operation = 'UPKEEP'")[0][0]
    found = rows(lake, "from lake.compositions order by source_order")
    output = rows(lake, "select fragment_id, table_id from lake.fragments where table_name = 't'")
    assert len(output) == 1
    assert {(row[0], row[8]) for row in found} == set(output)
    assert [(row[2], *row[5:]) for row in found] == [(i, 2, True, flushed, output[0][1]) for i in range(4)]
    assert sorted(row[4] for row in found) == [1, 2, 2, 2]
    assert [row[3] for row in found] == [sum(row[4] for row in found[:i]) for i in range(4)]
    assert rows(lake, "select count(*) from lake.fragments join lake.compositions on fragment_id = source_fragment_id") == [(0,)]


def test_resolutions(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create schema s; create table s.t as select range as a from range(100)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        lake.execute("begin; delete from s.t where a in (1, 2, 3)")
        other.execute("delete from s.t where a in (3, 4)")
        lake.execute("commit")
        commit = lake.last_commit
        assert commit is not None
        found = rows(lake, "select snapshot_id, winner_snapshot_id, schema_name, table_name, rung, row_count, explanation from lake.resolutions")
        assert [row[:4] for row in found] == [(commit.snapshot_id, commit.snapshot_id - 1, "s", "t")]
        assert [(row[4], row[5], row[6]) for row in found] == [(r.rung, r.row_count, r.explanation) for r in commit.resolutions]
        assert rows(lake, "select base_snapshot_id, attempts >= 1 from lake.snapshots where snapshot_id = ?", [commit.snapshot_id])[0][1]
        assert rows(other, "from lake.resolutions") == rows(lake, "from lake.resolutions")
        lake.execute("drop table s.t; drop schema s")
        assert rows(lake, "select schema_name, table_name from lake.resolutions") == [("s", "t")]


def test_settings_are_those_of_show_all(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("set inline_rows = 7; set global retention_hours = 12; set threads = 1; set author = 'ann'")
    listed = rows(lake, "select name, value, description from lake.settings order by name")
    assert listed == rows(lake, "show all")
    for name, value, _ in listed:
        assert rows(lake, f"show {name}") == [(value,)]
    assert {"inline_rows": "7", "retention_hours": "12", "threads": "1", "author": "ann"}.items() <= {n: v for n, v, _ in listed}.items()
    scopes = dict(rows(lake, "select name, scope from lake.settings"))
    assert {scopes["inline_rows"], scopes["retention_hours"]} == {"lake"}
    assert {scopes["threads"], scopes["isolation_level"], scopes["author"]} == {"connection"}
    for name, scope in scopes.items():
        if scope == "connection" and name not in (
            "threads",
            "memory_limit",
            "max_memory",
            "timezone",
            "calendar",
            "default_order",
            "default_null_order",
        ):
            with pytest.raises(lakelite.NotSupportedError):
                lake.execute(f"set global {name} = 'x'")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        assert rows(other, "select value from lake.settings where name in ('inline_rows', 'retention_hours') order by name") == [("1000",), ("12",)]


# Where they may stand.

EVERYWHERE = """select count(*) from lake.tables
select count(*) from "lake"."tables"
select count(*) from LAKE.Tables as x
select count(*) from memory.lake.tables
select count(*) from (select * from lake.tables) x
with x as (from lake.tables) select count(*) from x
with tables as (select 1) select count(*) from lake.tables
select count(lake.tables.table_id) from lake.tables
select (select count(*) from lake.tables)
select count(*) from t, lake.tables where t.a = 1 and table_name <> ''
select count(*) from lake.tables join lake.columns using (table_id) where column_index = 1
select count(*) from lake.tables l join information_schema.tables i on (l.schema_name, l.table_name) = (i.table_schema, i.table_name)
select count(*) from duckdb_tables() join lake.tables using (schema_name, table_name)
select count(*) from t at (version => 2) x, lake.tables where x.a = 1
select count(*) from query('from lake.tables')
select count(*) from query_table('lake.tables')
from lake.tables select count(*)
select max(n) from (select row_number() over (order by table_id) as n from lake.tables)
select count(*) from (summarize lake.tables) s, lake.tables where s.column_name = 'table_id'
select count(*) from lake.tables where exists (from lake.columns c where c.table_id = tables.table_id)
select count(*) from (table lake.tables)""".splitlines()


@pytest.mark.parametrize("sql", EVERYWHERE)
def test_wherever_a_table_may_stand(lake: lakelite.Connection, sql: str) -> None:
    lake.execute("create table t (a integer); insert into t values (1), (2); create schema s; create table s.u as from t")
    assert rows(lake, sql) == [(2,)]
    assert rows(lake, sql) == [(2,)]  # also where it is cached


def test_in_statements_that_change(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table log as select snapshot_id, operation from lake.snapshots")
    lake.execute("insert into log select snapshot_id, operation from lake.snapshots where snapshot_id = 1")
    lake.execute("insert into log by name select 0 as snapshot_id, table_name as operation from lake.tables")
    lake.execute("insert into log values ((select max(snapshot_id) from lake.snapshots), 'last')")
    expected = [(0, "create lake"), (0, "log"), (1, "CREATE TABLE AS"), (3, "last")]
    assert rows(lake, "from log order by all") == expected
    assert lake.execute("update log set operation = 'big' where snapshot_id in (select max(snapshot_id) - 1 from lake.snapshots)").rowcount == 1
    assert lake.execute("delete from log where operation in (select table_name from lake.tables)").rowcount == 1
    assert rows(lake, "select operation from log order by all") == [("CREATE TABLE AS",), ("big",), ("create lake",)]
    path = tmp_path / "out.csv"
    for source in ("lake.tables", "(select * from lake.tables)"):
        assert lake.execute(f"copy {source} to '{path}' (format csv)").rowcount == 1
        assert path.read_text().splitlines()[0] == ",".join(name for name, _ in VIEWS["tables"].columns)
    assert "plan" in rows(lake, "explain select * from lake.tables join log on true")[0][0]
    with lakelite.connect(tmp_path / "lake", read_only=True) as reader:
        assert rows(reader, "select table_name from lake.tables") == [("log",)]


# What a transaction sees, and what it does not read.


def test_history_is_that_of_the_base(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t as select range as a from range(2000)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        lake.execute("begin; insert into t values (1)")
        for _ in range(2):
            assert rows(lake, "select max(snapshot_id) from lake.snapshots") == [(1,)]
            assert rows(lake, "from lake.deletion_vectors") == []
            other.execute("delete from t where a < 5; create table more (x integer)")
            other.execute("drop table more")
            assert rows(other, "select max(snapshot_id) from lake.snapshots") == [(other.last_commit.snapshot_id,)]  # type: ignore[union-attr]
            assert rows(lake, "select table_name from information_schema.tables where table_schema = 'main'") == [("t",)]
        lake.execute("rollback")
        assert rows(lake, "select max(snapshot_id) from lake.snapshots") == rows(other, "select max(snapshot_id) from lake.snapshots")
        assert rows(lake, "from lake.deletion_vectors") == rows(other, "from lake.deletion_vectors")


def test_reading_them_is_no_read_of_tables(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t (a integer); create table u (a integer); insert into t values (1)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        lake.execute("begin")
        for sql in ("from lake.tables", "from lake.fragments", "from lake.snapshots", "from information_schema.columns", "from duckdb_tables()"):
            rows(lake, sql)
        lake.execute("insert into u select row_count from lake.tables where table_name = 't'")
        other.execute("update t set a = 5; insert into t values (9)")
        lake.execute("commit")
        assert rows(other, "from u") == [(1,)]
        with meeting(lambda: other.execute("create table v (a integer); insert into t values (10)")):
            lake.execute("insert into u select count(*) from lake.tables")
        assert rows(other, "from u order by all") == [(1,), (2,)]  # as its first run read them


def test_a_result_that_is_being_read_keeps_what_it_reads(lake: lakelite.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.execute("create table t (a integer)")
    wide = "select snapshot_id, table_name, range as n from lake.snapshots, lake.tables, range(100000)"
    streams = [
        lake.execute(wide),
        lake.execute("select column_name, range from information_schema.columns, range(10000) where table_schema <> 'lake'"),
    ]
    started = [stream.fetchmany(10) for stream in streams]
    lake.execute("insert into t values (1); create table u (b integer); drop table t")
    assert rows(lake, "select count(*) from lake.snapshots") == [(5,)]
    assert rows(lake, "select table_name from lake.tables") == rows(lake, "select table_name from duckdb_tables()") == [("u",)]
    monkeypatch.setattr(loaded, "ROWS_KEPT", 1)
    assert rows(lake, "select count(*) from lake.snapshots") == [(5,)]
    found = [*started[0], *streams[0].fetchall()]
    assert len(found) == 200_000
    assert {row[:2] for row in found} == {(0, "t"), (1, "t")}
    assert {row[0] for row in [*started[1], *streams[1].fetchall()]} == {"a"}


def test_vacuum_takes_history_away(lake: lakelite.Connection) -> None:
    lake.execute("create table t as select range as a from range(2000); delete from t where a < 10; insert overwrite t select 1")
    assert rows(lake, "select count(*) from lake.deletion_vectors") == [(1,)]
    lake.execute("vacuum t retain 0 hours")
    assert rows(lake, "select count(*) from lake.deletion_vectors") == [(0,)]
    assert rows(lake, "select count(*) from lake.snapshots") == [(4,)]
    lake.execute("vacuum retain 0 hours")
    assert rows(lake, "select snapshot_id from lake.snapshots") == [(3,)]


def test_only_what_is_new_is_loaded(lake: lakelite.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = lake._session.lake.catalog
    asked: list[tuple[str, Any]] = []
    original = catalog.rows

    def spying(query: str, **parameters: Any) -> list[Any]:
        if query.startswith("look_") and query != "look_expired":
            asked.append((query, parameters.get("after")))
        return original(query, **parameters)

    monkeypatch.setattr(catalog, "rows", spying)
    lake.execute("create table t (a integer)")
    rows(lake, "from t")
    assert asked == []
    for _ in range(2):
        rows(lake, "from lake.snapshots")
        rows(lake, "from lake.fragments")
    assert asked == [("look_snapshots", -1), ("look_fragments", None), ("look_tables", None)]
    lake.execute("insert into t values (1)")
    del asked[:]
    rows(lake, "from lake.snapshots")
    assert asked == [("look_snapshots", 1)]


def test_a_load_that_was_stopped_half_way_is_made_anew(lake: lakelite.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(lake, "from lake.snapshots")
    lake.execute("create table t (a integer)")
    held = lake._session.lake.engine.loaded
    whole = held._put

    def stopped(*arguments: Any) -> None:
        whole(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(held, "_put", stopped)
    with pytest.raises(KeyboardInterrupt):
        lake.execute("from lake.snapshots")
    monkeypatch.undo()
    assert rows(lake, "select snapshot_id from lake.snapshots order by all") == [(0,), (1,)]
