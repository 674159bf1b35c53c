"""Every type from CREATE TABLE to reading back: inline, in files, after an UPDATE of another column, a flush, and opening again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import lakelite

VALUES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647", "'7'", "1.6"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["65535"],
    "UINTEGER": ["4294967295"],
    "UBIGINT": ["18446744073709551615"],
    "HUGEINT": ["99999999999999999999999999999999999999", "-1", "0"],
    "UHUGEINT": ["99999999999999999999999999999999999999", "0"],
    "FLOAT": ["'nan'", "-0.0::FLOAT", "'-inf'", "1e-45", "16777217", "0.1"],
    "DOUBLE": ["'nan'", "-0.0::DOUBLE", "'inf'", "5e-324", "0.1", "1e308"],
    "DECIMAL(4,2)": ["99.99", "-0.01", "1.005", "'2.5'"],
    "DECIMAL(18,3)": ["-999999999999999.999"],
    "DECIMAL(38,0)": ["-99999999999999999999999999999999999999"],
    "DECIMAL(38,38)": ["'0.99999999999999999999999999999999999999'"],
    "VARCHAR": ["''", "'NULL'", "chr(0) || 'x'", "'it''s 😀'", "repeat('é', 500)", "5", "true", "date '2020-01-01'"],
    "BLOB": ["'\\x00\\xFF'", "'\\xC3\\x28\\xED\\xA0\\x80'", "''", "'abc'"],
    "BIT": ["'1'", "'101010101'", "'0000000000000000'"],
    "DATE": ["'2020-02-29'", "'infinity'", "'5877642-06-25 (BC)'", "'0001-01-01'"],
    "TIME": ["'00:00:00'", "'24:00:00'", "'12:34:56.123456'"],
    "TIME_NS": ["'12:34:56.123456789'"],
    "TIME WITH TIME ZONE": ["'00:00:00+00'", "'12:34:56.123456+05:30'", "'00:00:00+15:59:59'"],
    "TIMESTAMP": ["'2020-01-01'", "'infinity'", "'-infinity'", "'290309-12-22 (BC)'", "'294247-01-10 04:00:54.775806'", "date '2020-01-01'"],
    "TIMESTAMP_S": ["'2020-01-01 00:00:01'", "'infinity'"],
    "TIMESTAMP_MS": ["'2020-01-01 00:00:00.001'", "'-infinity'"],
    "TIMESTAMP_NS": ["'1969-12-31 23:59:59.999999999'", "'infinity'"],
    "TIMESTAMPTZ_NS": ["'2262-04-11 23:47:16.854775806+00'"],
    "TIMESTAMP WITH TIME ZONE": ["'2020-03-29 02:30:00+00'", "'infinity'", "'294247-01-10 04:00:54.775806+00'"],
    "INTERVAL": ["'1 month 40 days 25 hours'", "'-1 month 3 days'", "'30 days'", "'1 month'", "to_microseconds(9223372036854775807)"],
    "UUID": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "ENUM('a', 'it''s', '', 'x,y')": ["'a'", "'it''s'", "''", "'x,y'"],
    "JSON": ["'{\"a\": 1}'", "'null'", "'\"text\"'", "' {\"a\" : 1, \"a\":2} '"],
    "BIGNUM": ["'0'", "'1' || repeat('0', 100)", "'-' || repeat('9', 400)"],
    "GEOMETRY": ["'POINT(1 2)'", "'LINESTRING(0 0,1 1)'"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': NULL}", "row(1, 'y')"],
    'STRUCT("a.b" INTEGER, "q""x" UUID[], "select" BIT)': [
        "{'a.b': 1, 'q\"x': [NULL, uuid '00000000-0000-0000-0000-000000000001'], 'select': '01'::BIT}"
    ],
    "INTEGER[]": ["[1, NULL]", "[]", "[NULL]"],
    "VARCHAR[][]": ["[['a'], NULL, []]"],
    "INTEGER[3]": ["[1, 2, NULL]"],
    "INTERVAL[2][]": ["[['1 month', NULL]]", "[NULL, ['30 days', '1 day']]", "[]"],
    "MAP(INTEGER, VARCHAR)": ["map {1: 'a', 2: NULL}", "map {}"],
    "MAP(VARCHAR, STRUCT(a HUGEINT, b TIMESTAMP_S[]))": ["map {'k': {'a': 5, 'b': ['2020-01-01 00:00:00'::TIMESTAMP_S, NULL]}, 'l': NULL}"],
    "UNION(num INTEGER, str VARCHAR)": ["1::INTEGER", "'x'", "union_value(num := NULL::INTEGER)"],
}  # fmt: skip


def check(con: lakelite.Connection, kind: str, values: list[str], copies: int) -> None:
    """Each value is there `copies` times and is the same, of the same type and with the same text, as plain DuckDB has it."""
    shown = "id % 100 as id, v::varchar as s, typeof(v) as t, v is null as n"
    literals = ", ".join(f"({i}, cast({v} as {kind}))" for i, v in enumerate(values))
    with duckdb.connect() as plain:
        expected = plain.execute(f"select {shown} from (values {literals}) t(id, v) order by all").fetchall()
        kind = plain.execute(f"describe select * from (values {literals}) t(id, v)").fetchall()[1][1]
    assert con.execute(f"select {shown} from t order by all").fetchall() == [row for row in expected for _ in range(copies)]
    same = (
        f"select count(*) from t join (values {literals}) e(id, v) on t.id % 100 = e.id "
        "where t.v is not distinct from e.v and typeof(t.v) = typeof(e.v)"
    )
    assert con.execute(same).fetchall() == [(len(values) * copies,)]
    assert con.execute("describe t").fetchall()[1][:2] == ("v", kind)


@pytest.mark.parametrize("kind", VALUES)
def test_a_type_goes_through_everything(tmp_path: Path, kind: str) -> None:
    values = [*VALUES[kind], "NULL"]
    path = tmp_path / "lake"
    with lakelite.connect(path, autocommit=True) as con:
        con.execute(f"create table t (id integer, v {kind}, other integer default 0)")
        con.execute("insert into t values " + ", ".join(f"({i}, {v}, 0)" for i, v in enumerate(values)))
        assert data_files(path) == 0
        check(con, kind, values, 1)
        con.execute("update t set other = 1; set inline_rows = 0; insert into t (id, v) select id + 100, v from t")
        assert data_files(path) == 1
        check(con, kind, values, 2)
        con.execute("update t set other = id where id >= 100; delete from t where other is null")
        con.execute("reset inline_rows; set flush_fragments = 0; insert into t (id) values (99)")
        con.execute("delete from t where id = 99")
        check(con, kind, values, 2)
        con.execute("optimize t")
        assert con.execute("select count(*), any_value(storage) from lake.fragments where table_name = 't'").fetchall() == [(1, "parquet")]
        check(con, kind, values, 2)
        con.execute("update t set v = v where id >= 100; optimize t zorder by (id)")
        check(con, kind, values, 2)
        con.execute(
            "create or replace table t as select id, v, other from t where id < 100; insert overwrite t from t; "
            "create table copied as from t; insert overwrite t from copied"
        )
    with lakelite.connect(path, autocommit=True) as con:
        check(con, kind, values, 1)


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("kind", VALUES)
def test_a_column_of_a_type_becomes_text(tmp_path: Path, kind: str, inline: bool) -> None:
    """ALTER TYPE is a cast of what is there: the same as in plain DuckDB, from both storages."""
    values = ", ".join(f"({i}, cast({v} as {kind}))" for i, v in enumerate([*VALUES[kind], "NULL"]))
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con, duckdb.connect() as plain:
        con.execute(f"set inline_rows = {1000 if inline else 0}")
        for one in (con, plain):
            one.execute(f"create table t (id integer, v {kind}); insert into t values {values}; alter table t alter v type varchar")
            one.execute("insert into t values (-1, 'more')")
        shown = "select id, v, typeof(v) from t order by all"
        assert con.execute(shown).fetchall() == plain.execute(shown).fetchall()


def data_files(path: Path) -> int:
    return len(list(path.glob("data/*/*.parquet")))


def test_a_text_of_a_megabyte(lake: lakelite.Connection) -> None:
    text = "é" * (1 << 19)
    lake.execute("create table t (a integer, b varchar)")
    lake.execute("insert into t values (1, ?), (2, 'short')", [text])
    lake.execute("insert into t values (3, ?)", ["x" * (1 << 20)])
    lake.execute("update t set b = b || '!' where a = 1; optimize t")
    assert lake.execute("select a, b = ? || '!', length(b) from t order by a", [text]).fetchall() == [
        (1, True, (1 << 19) + 1), (2, False, 5), (3, False, 1 << 20)
    ]  # fmt: skip


def test_small_fragments_are_flushed_into_a_file(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t (a integer, i interval, e enum('x', 'y')); set flush_fragments = 3")
    for n in range(6):
        lake.execute("insert into t values (?, ?::varchar::interval, ?)", [n, f"{n} months {n} days", "xy"[n % 2]])
    assert data_files(tmp_path / "lake") >= 1
    assert lake.execute("select a, i::varchar, e from t order by a").fetchall()[5] == (5, "5 months 5 days", "y")
    assert lake.execute("select count(*), count(distinct a) from t").fetchall() == [(6, 6)]


REFUSED = [
    ("VARIANT", "1::VARIANT", "VARIANT"),
    ("VARIANT[]", "[1::VARIANT]", "VARIANT"),
    ("STRUCT(a INTEGER, b VARIANT)", "{'a': 1, 'b': 2::VARIANT}", "VARIANT"),
]


@pytest.mark.parametrize(("kind", "value", "name"), REFUSED)
def test_a_type_that_cannot_be_stored_is_refused_by_name(lake: lakelite.Connection, kind: str, value: str, name: str) -> None:
    for sql in (
        f"create table t (a {kind})",
        f"create table t as select {value} as a",
        f"create table t as select {value} as a where false",
        f"create or replace table t (x int, a {kind})",
    ):
        with pytest.raises(lakelite.NotSupportedError, match=f"type {name}.*cannot be stored exactly"):
            lake.execute(sql)
    assert lake.execute("show tables").fetchall() == []


def test_values_that_the_stored_type_cannot_hold_are_refused(lake: lakelite.Connection) -> None:
    lake.execute("create table t (h hugeint, j json)")
    for values in ("(170141183460469231731687303715884105727, null)", "(null, '{')"):
        for sql in (f"insert into t values {values}", f"insert into t select * from (values {values}) v(h, j)"):
            with pytest.raises(lakelite.DataError):
                lake.execute(sql)
    assert lake.execute("select count(*) from t").fetchall() == [(0,)]


def test_defaults_of_every_kind(lake: lakelite.Connection) -> None:
    plain = duckdb.connect()
    for con in (lake, plain):
        con.execute(
            "create table t (a integer, b varchar default 'it''s', c date default date '2020-01-01', "
            "d decimal(5, 2) default 1.255, e integer[] default [1, 2],"
            " f struct(x int) default {'x': 1}, g interval default interval 1 month, h boolean default true, "
            "i double default 1 / 4, j varchar default upper('x') || 'y')"
        )
        con.execute("insert into t (a) values (1); insert into t (a) select 2; insert into t (a, b) values (3, default)")
        con.execute("update t set b = 'z', e = null; update t set b = default, e = default where a > 1")
    sql = "select *, typeof(d), typeof(i) from t order by a"
    rows: list[Any] = plain.execute(sql).fetchall()
    assert lake.execute(sql).fetchall() == rows
    assert lake.execute("describe t").fetchall() == plain.execute("describe t").fetchall()
    plain.close()
