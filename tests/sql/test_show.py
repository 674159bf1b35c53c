"""SHOW and DESCRIBE: against plain DuckDB where it has the statement; SHOW CREATE TABLE by running what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelite

SETUP = """create schema s; create table b (x integer not null default 3, y varchar); create table a as select 1 as one, 'x' as two;
create table s.c (z decimal(5, 2)[]); create table s."A b" (a integer)"""
SAME = ["show tables", "show tables from s", "show tables from main", "from (show tables)", "describe b", "desc b", "show b", "describe table b",
        "show table b", "describe s.c", 'describe s."A b"', "describe tables", "describe select * from a", "show s.c"]  # fmt: skip


def rows(con: Any, sql: str) -> list[Any]:
    return con.execute(sql).fetchall()  # type: ignore[no-any-return]


@pytest.mark.parametrize("sql", SAME)
def test_as_plain_duckdb(lake: lakelite.Connection, sql: str) -> None:
    with duckdb.connect() as plain:
        plain.execute(SETUP)
        lake.execute(SETUP)
        ours, theirs = lake.execute(sql), plain.execute(sql)
        assert [d[0] for d in ours.description or ()] == [d[0] for d in theirs.description or ()]
        assert ours.fetchall() == theirs.fetchall()


@pytest.mark.parametrize("sql", ["show all tables", "show", "describe"])
def test_all_tables(lake: lakelite.Connection, sql: str) -> None:
    """Those of all schemas, without the system views; the database is called as the lake."""
    with duckdb.connect() as plain:
        plain.execute(SETUP)
        lake.execute(SETUP)
        ours, theirs = lake.execute(sql), plain.execute(sql)
        assert [(d[0], str(d[1])) for d in ours.description or ()] == [(d[0], str(d[1])) for d in theirs.description or ()]
        assert ours.fetchall() == [("lake", *row[1:]) for row in theirs.fetchall()]


def test_schemas(lake: lakelite.Connection) -> None:
    lake.execute(SETUP)
    with duckdb.connect() as plain:
        ours, theirs = lake.execute("show schemas"), plain.execute("show schemas")
        assert [(d[0], str(d[1])) for d in ours.description or ()] == [(d[0], str(d[1])) for d in theirs.description or ()]
    assert ours.fetchall() == [("lake", "lake", False), ("lake", "main", True), ("lake", "s", False)]
    assert len(rows(lake, "show tables from LAKE")) == 13


def test_they_open_no_transaction_and_see_the_own_one(lake: lakelite.Connection, tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        for sql in ("show tables", "show all tables", "show schemas", "show all", "describe history"):
            rows(con, sql)
            assert not con.in_transaction
        con.execute("create table t (a integer)")
        assert rows(con, "show tables") == [("t",)]
        assert rows(con, "show create table t") == [("CREATE TABLE t (\n    a INTEGER\n);",)]
        assert rows(lake, "show tables") == []
        con.rollback()
        assert rows(con, "show tables") == []


def test_describe_and_show_create_of_an_earlier_version(lake: lakelite.Connection) -> None:
    lake.execute("create schema s; create table s.t (a integer not null default 3)")
    first = rows(lake, "describe s.t"), rows(lake, "show create table s.t")
    then = rows(lake, "select committed_at from lake.snapshots where snapshot_id = 2")[0][0]
    lake.execute("create or replace table s.t (b varchar)")
    second = rows(lake, "describe s.t")
    lake.execute("drop table s.t; set timezone = 'UTC'")
    for clause in ("at (version => 2)", "for version as of 2", "at (version => $1)", f"at (timestamp => timestamp '{then}')"):
        parameters = (2,) if "$1" in clause else None
        assert lake.execute(f"describe s.t {clause}", parameters).fetchall() == first[0]
        assert lake.execute(f"show s.t {clause}", parameters).fetchall() == first[0]
        assert lake.execute(f"show create table s.t {clause}", parameters).fetchall() == first[1]
    assert rows(lake, "describe s.t at (version => 3)") == second
    for sql in ("describe s.t", "describe s.t at (version => 4)", "describe s.t at (version => 99)", "show create table s.t"):
        with pytest.raises(lakelite.ProgrammingError):
            lake.execute(sql)


# SHOW CREATE TABLE.

TYPES = """BOOLEAN|TINYINT|HUGEINT|UHUGEINT|FLOAT|DECIMAL(4,2)|DECIMAL(38,38)|VARCHAR|BLOB|BIT|DATE|TIME|TIME_NS|TIME WITH TIME ZONE|TIMESTAMP_S|TIMESTAMP_NS
TIMESTAMPTZ_NS|TIMESTAMP WITH TIME ZONE|INTERVAL|UUID|ENUM('a', 'it''s', '', 'x,y')|JSON|BIGNUM|GEOMETRY|"NULL"|STRUCT(a INTEGER, b VARCHAR)
STRUCT("a.b" INTEGER, "q""x" UUID[], "select" BIT)|INTEGER[]|VARCHAR[][]|INTEGER[3]|INTERVAL[2][]|MAP(INTEGER, VARCHAR)
UNION(num INTEGER, str VARCHAR)""".replace("\n", "|").split("|")
DEFAULTS = ["42", "'it''s'", "now()", "1 / 4", "upper('x') || 'y'", "[1, 2]", "{'x': 1}", "date '2020-01-01'", "NULL", "interval 1 month", "-1", "true",
            "CASE WHEN true THEN 1 ELSE 2 END", "current_date", "uuid()", "random()"]  # fmt: skip


def check_round_trip(con: lakelite.Connection, name: str) -> str:
    """The table that the shown statement makes is the same one; the statement."""
    before = rows(con, f"describe {name}")
    text = str(rows(con, f"show create table {name}")[0][0])
    con.execute(f"begin; drop table {name}; {text}")
    assert rows(con, f"describe {name}") == before
    assert rows(con, f"show create table {name}") == [(text,)]
    con.execute("rollback")
    return text


def test_show_create_table_of_every_type_and_default(lake: lakelite.Connection) -> None:
    columns = [f"c{i} {kind}" for i, kind in enumerate(TYPES)]
    columns += [f"d{i} {'VARCHAR' if i % 2 else 'VARCHAR NOT NULL'} DEFAULT {default}" for i, default in enumerate(DEFAULTS)]
    lake.execute(f"create table t ({', '.join(columns)})")
    check_round_trip(lake, "t")
    text = check_round_trip(lake, "main.t")
    with duckdb.connect() as plain:
        plain.execute(text)
        assert rows(plain, "describe t") == rows(lake, "describe t")


def test_every_keyword_as_a_name(lake: lakelite.Connection) -> None:
    with duckdb.connect() as plain:
        words = [row[0] for row in rows(plain, "select distinct keyword_name from duckdb_keywords() order by all")]
    lake.execute('create schema "select"; create table "select"."table" ({})'.format(", ".join(f'"{word}" integer' for word in words)))
    text = check_round_trip(lake, '"select"."table"')
    assert text.startswith('CREATE TABLE "select"."table" (')
    for word in words[::25]:
        lake.execute(f'create table "{word}" (a integer)')
        made = str(rows(lake, f'show create table "{word}"')[0][0])
        lake.execute(f'begin; drop table "{word}"; {made}')
        assert rows(lake, "show tables") == [(word,)], made
        lake.execute("rollback; begin")
        lake.execute(f'drop table "{word}"; commit')


def test_only_names_of_views_that_hide_tables_are_reserved(lake: lakelite.Connection) -> None:
    """information_schema is no place where DuckDB looks for a bare name."""
    for name in ("tables", "schemata", '"columns"', "views"):
        lake.execute(f"create table {name} (a integer); insert into {name} values (7)")
        assert rows(lake, f"from {name}") == [(7,)]
        assert rows(lake, f"select count(*) > 0 from information_schema.{name}") == [(True,)]
    assert rows(lake, "select count(*) from lake.tables, tables") == [(4,)]
    for name in ("pg_class", "duckdb_tables", "sqlite_master"):
        with pytest.raises(lakelite.ProgrammingError, match="reserved"):
            lake.execute(f"create table {name} (a integer)")


@settings(max_examples=15)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8), min_size=1, max_size=4))
def test_any_name(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    quoted = ['"' + name.replace('"', '""') + '"' for name in {lakelite.model.fold(n): n for n in names if n.lower() != "_row_id"}.values()]
    if quoted:
        with lakelite.connect(tmp_path_factory.mktemp("lake") / "lake", autocommit=True) as con:
            con.execute(f"create table {quoted[0]} ({', '.join(f'{name} integer' for name in quoted)})")
            check_round_trip(con, quoted[0])


def test_names_that_need_no_quotes_have_none(lake: lakelite.Connection) -> None:
    lake.execute('create table Plain_1 (Id integer not null, "order" integer, "two words" varchar default \'x\')')
    expected = 'CREATE TABLE Plain_1 (\n    Id INTEGER NOT NULL,\n    "order" INTEGER,\n    "two words" VARCHAR DEFAULT (\'x\')\n);'
    assert rows(lake, "show create table plain_1") == [(expected,)]
    assert [d[0] for d in lake.execute("show create table plain_1").description or ()] == ["sql"]
