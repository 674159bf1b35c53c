"""The language end to end: what DuckDB knows too gives what plain DuckDB gives, in names, types and rows; the rest does what it says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from comparing import answer

import lakelite

HERE = Path(__file__).parent
SETUP = """
create table flights (id integer not null, carrier varchar, delay integer, day date, distance double default 100);
create table carriers (code varchar, name varchar, since integer);
create schema s;
create table s.flights (id integer, note varchar);
insert into carriers values ('AA', 'American', 1930), ('UA', 'United', 1926), ('ZZ', null, null);
insert into flights select i, ['AA', 'UA', 'DL', null][1 + i % 4], i % 37 - 5, date '2013-01-01' + (i % 60)::integer, i * 1.5 from range(2500) r(i);
insert into flights (id, carrier, delay) values (2500, 'AA', null), (2501, 'UA', 7);
insert into s.flights values (1, 'first'), (2, 'second'), (2500, 'inline');
delete from flights where id % 10 = 3;
update flights set delay = delay * 2 where carrier = 'UA' and id < 500;
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[lakelite.Connection, duckdb.DuckDBPyConnection]]:
    """The same tables in a lake and in plain DuckDB, for queries."""
    ours = lakelite.connect(tmp_path_factory.mktemp("language") / "lake", autocommit=True)
    plain = duckdb.connect()
    for statement in SETUP.split(";"):
        ours.execute(statement)
        plain.execute(statement)
    yield ours, plain
    ours.close()
    plain.close()


QUERIES = (HERE / "queries.sql").read_text().splitlines()[1:]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_gives_what_duckdb_gives(pair: tuple[lakelite.Connection, duckdb.DuckDBPyConnection], sql: str) -> None:
    ours, plain = pair
    assert answer(ours, sql) == answer(plain, sql)


@pytest.mark.parametrize("sql", QUERIES)
def test_the_same_query_as_the_first_of_a_connection(pair: tuple[lakelite.Connection, duckdb.DuckDBPyConnection], sql: str) -> None:
    """Tables are found in the text, not because an earlier query had named them."""
    ours, plain = pair
    with lakelite.connect(ours._session.lake.paths.root, read_only=True) as fresh:
        assert answer(fresh, sql) == answer(plain, sql)


@pytest.mark.parametrize(
    "sql", ["explain select * from flights f where f.id = 4", "explain analyze select count(*) from flights", "explain (format json) from flights"]
)
def test_explain(pair: tuple[lakelite.Connection, duckdb.DuckDBPyConnection], sql: str) -> None:
    assert len(pair[0].execute(sql).fetchall()[0][1]) > 20


def test_parameters_in_queries(pair: tuple[lakelite.Connection, duckdb.DuckDBPyConnection]) -> None:
    ours, plain = pair
    for sql, parameters in (
        ("select id + ? as x from flights where carrier = ? order by x limit ?", [5, "AA", 3]),
        ("select $2 as b, $1 as a, id from flights where id = $1", [4, "x"]),
        ("select id from flights where carrier = $c and delay > $d order by id", {"c": "UA", "d": 20}),
    ):
        assert answer(ours, sql, parameters) == answer(plain, sql, parameters)
    assert ours.execute("select id from flights where id = :id and carrier is not distinct from :c", {"id": 7, "c": None}).fetchall() == [(7,)]


# Changes: each script runs in both, then all tables are compared.


def scripts() -> dict[str, list[str]]:
    """Each script of changes.sql by its name, as statements."""
    pieces = [piece.split("\n", 1) for piece in (HERE / "changes.sql").read_text().split("\n-- ")[1:]]
    return {name: [line.removesuffix(";") for line in lines.splitlines() if line] for name, lines in pieces}


SCRIPTS = scripts()
TABLES = ["create table t (a integer, b varchar default 'dflt', c double default 0.5)", "create table u (k integer, v varchar)"]


@pytest.mark.parametrize("files", [False, True], ids=["inline", "files"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_change_does_what_duckdb_does(lake: lakelite.Connection, script: list[str], files: bool) -> None:
    plain = duckdb.connect()
    if files:
        lake.execute("set inline_rows = 0")
    for statement in [*TABLES, *script]:
        cursor = lake.execute(statement)
        expected = plain.execute(statement)
        count = expected.fetchall() if expected.description and expected.description[0][0] == "Count" else None
        if count and not statement.startswith("truncate"):
            assert cursor.rowcount == count[0][0], statement
    same_tables(lake, plain)
    with lakelite.connect(lake._session.lake.paths.root) as again:
        same_tables(again, plain)
    plain.close()


def same_tables(ours: lakelite.Connection, plain: duckdb.DuckDBPyConnection) -> None:
    names = plain.execute("select schema_name, table_name from duckdb_tables() order by all").fetchall()
    assert [row[1:3] for row in ours.execute("show all tables").fetchall()] == names
    for schema, name in names:
        for sql in ('from "{}"."{}"', 'describe "{}"."{}"'):
            sql = sql.format(schema, name)
            assert answer(ours, sql) == answer(plain, sql)


def test_insert_overwrite(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer, b varchar default 'd'); insert into t select range, 'x' from range(10)")
    assert lake.execute("insert overwrite t select a * 2, b from t where a < 3").rowcount == 3
    assert lake.execute("from t order by a").fetchall() == [(0, "x"), (2, "x"), (4, "x")]
    lake.execute("insert overwrite into t (a) values (7), (8)")
    assert lake.execute("from t order by a").fetchall() == [(7, "d"), (8, "d")]
    lake.execute("insert overwrite table t by name select 'n' as b")
    assert lake.execute("from t").fetchall() == [(None, "n")]
    assert lake.execute("select count(*) from t at (version => 2)").fetchall() == [(10,)]
    lake.execute("insert overwrite t select * from t at (version => 2)")
    assert lake.execute("select count(*), sum(a) from t").fetchall() == [(10, 45)]
    assert lake.execute("insert overwrite t from t where false").rowcount == 0
    assert lake.execute("select count(*) from t").fetchall() == [(0,)]


# Transactions.


def test_a_transaction_reads_its_own_writes(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t (a integer); insert into t values (1)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("create table elsewhere as select 0 as x")
        lake.execute("begin; insert into t values (2); create schema s; create table s.u as from t; update t set a = a + 10; drop table if exists v")
        assert lake.execute("select a from t order by a").fetchall() == [(11,), (12,)]
        assert lake.execute("select count(*) from t, s.u where t.a = u.a + 10").fetchall() == [(2,)]
        assert lake.execute("describe s.u").fetchall()[0][:2] == ("a", "INTEGER")
        assert other.execute("from t").fetchall() == [(1,)]
        assert other.execute("show tables").fetchall() == [("elsewhere",), ("t",)]
        other.execute("insert into elsewhere values (1); create table third as select 1 as x; create schema s2")
        assert lake.execute("show tables").fetchall() == [("elsewhere",), ("t",)]
        assert lake.execute("show tables from s").fetchall() == [("u",)]
        assert lake.execute("from elsewhere").fetchall() == [(0,)]
        lake.execute("commit")
        assert other.execute("select sum(a) from t").fetchall() == [(23,)]
        assert other.execute("from elsewhere order by x").fetchall() == [(0,), (1,)]
        assert other.execute("select count(*) from s.u").fetchall() == [(2,)]
    assert lake.execute("describe history limit 1").fetchall()[0][3] == "INSERT, CREATE SCHEMA, CREATE TABLE AS, UPDATE, DROP TABLE"


def test_several_tables_are_dropped_at_once_or_none(lake: lakelite.Connection) -> None:
    lake.execute("create table a (x int); create table b (x int); create table c (x int)")
    with pytest.raises(lakelite.ProgrammingError, match="nosuch"):
        lake.execute("drop table a, nosuch")
    lake.execute("drop table if exists a, nosuch, b")
    assert lake.execute("show tables").fetchall() == [("c",)]


def test_transaction_forms(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer)")
    for begin in (
        "begin",
        "begin transaction",
        "start transaction",
        "begin work",
        "begin isolation level write serializable",
        "begin isolation level WRITE_SERIALIZABLE read write",
    ):
        for end in ("commit", "commit work", "end", "rollback", "rollback transaction", "abort"):
            lake.execute(begin)
            assert lake.in_transaction
            lake.execute("insert into t values (1)")
            lake.execute(end)
            assert not lake.in_transaction
    assert lake.execute("select count(*) from t").fetchall() == [(18,)]
    lake.execute("begin read only")
    with pytest.raises(lakelite.OperationalError, match="read-only"):
        lake.execute("delete from t")
    assert lake.execute("select count(*) from t").fetchall() == [(18,)]
    lake.execute("commit")
    before = lake.execute("describe history limit 1").fetchall()
    lake.execute("begin; select * from t; commit; begin; commit; begin; insert into t select 1 where false; delete from t where false; rollback")
    assert lake.execute("describe history limit 1").fetchall() == before


# Settings, looking, upkeep.


def test_settings(lake: lakelite.Connection) -> None:
    lake.execute("set inline_rows = 5; set session flush_rows to 7; set time zone 'UTC'; set threads = 1; set Isolation_Level = 'write_serializable'")
    assert lake.execute("show inline_rows").fetchall() == [("5",)]
    shown = {name: value for name, value, _ in lake.execute("show all").fetchall()}
    assert (shown["inline_rows"], shown["flush_rows"], shown["isolation_level"]) == ("5", "7", "write serializable")
    lake.execute("reset inline_rows; reset threads; reset isolation_level")
    assert lake.execute("show inline_rows").fetchall() == [(str(lakelite.model.Limits().inline_rows),)]
    lake.execute("set timezone = 'America/New_York'")
    assert lake.execute("select (timestamptz '2020-01-01 00:00:00+00')::varchar").fetchall() == [("2019-12-31 19:00:00-05",)]


def test_describe_history_and_vacuum(lake: lakelite.Connection) -> None:
    lake.execute(
        "create table t (a integer); create table u (b integer); insert into t values (1), (2); delete from t where a = 1; "
        "update t set a = 5; insert into u values (1)"
    )
    history = lake.execute("describe history t")
    assert [d[0] for d in history.description][:7] == ["version", "committed_at", "author", "operation", "rows_added", "rows_removed", "statements"]
    rows = history.fetchall()
    assert [(r[0], r[3], r[6], r[4], r[5]) for r in rows] == [
        (5, "UPDATE", "update t set a = 5", 1, 1),
        (4, "DELETE", "delete from t where a = 1", 0, 1),
        (3, "INSERT", "insert into t values (1), (2)", 2, 0),
        (1, "CREATE TABLE", "create table t (a integer)", 0, 0),
    ]
    assert [r[0] for r in lake.execute("describe history limit 2").fetchall()] == [6, 5]
    dry = lake.execute("vacuum dry run")
    assert [d[0] for d in dry.description] == ["dry_run", "oldest_version", "versions_expired", "fragments_expired", "orphans_removed", "bytes_freed"]
    assert dry.fetchall()[0][0] is True
    assert lake.execute("from t at (version => 3) order by a").fetchall() == [(1,), (2,)]
    time.sleep(0.002)
    done = lake.execute("vacuum retain 0 hours").fetchall()
    assert done[0][0] is False
    assert done[0][2] > 0
    with pytest.raises(lakelite.OperationalError, match="expired"):
        lake.execute("from t at (version => 3)")
    assert lake.execute("from t").fetchall() == [(5,)]


# Time travel.


def test_time_travel(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t (a integer, b varchar); create schema s; create table s.u (k integer)")
    lake.execute("insert into t values (1, 'one'), (2, 'two'); insert into s.u values (1), (2), (3)")  # 4, 5
    time.sleep(0.01)
    lake.execute("set timezone = 'UTC'")
    between = lake.execute("select now()::timestamp::varchar").fetchall()[0][0]
    time.sleep(0.01)
    lake.execute("update t set b = b || '!'; delete from t where a = 1; insert into t values (3, 'three'); drop table s.u")  # 6, 7, 8, 9
    now = [(2, "two!"), (3, "three")]
    old = [(1, "one"), (2, "two")]
    assert lake.execute("from t order by a").fetchall() == now
    for travel in (
        "at (version => 5)", "AT (Version => 2 + 3)", "for version as of 5", "for version as of (4 + 1)", f"at (timestamp => timestamp '{between}')",
        f"at (timestamp => '{between}'::timestamptz)", f"for timestamp as of '{between}'",
        f"for timestamp as of timestamp '{between}'", f"for system_time as of '{between}'",
    ):  # fmt: skip
        assert lake.execute(f"select * from t {travel} order by a").fetchall() == old, travel
        assert lake.execute(f"select x.b from main.t {travel} as x where x.a = 1").fetchall() == [("one",)], travel
        assert lake.execute(f"select t.b from t {travel} where t.a = 1").fetchall() == [("one",)], travel
        assert lake.execute(f"with old as (select * from t {travel}) select count(*) from old").fetchall() == [(2,)], travel
    value = 5
    assert lake.execute("from t at (version => ?) order by a", [value]).fetchall() == old
    assert lake.execute("from t for version as of $v order by a", {"v": value}).fetchall() == old
    assert lake.execute("from t at (version => :v) where a = :a", {"v": value, "a": 1}).fetchall() == [(1, "one")]
    many = (
        "select n.a, o.b, p.b, c.n from t n join t at (version => 5) o using (a) join t for version as of 6 p using (a), "
        "(select count(*) as n from t at (version => 4)) c"
    )
    assert lake.execute(many).fetchall() == [(2, "two", "two!", 2)]
    assert sorted(lake.execute("from t at (version => 5) except from t at (version => 7)").fetchall()) == old
    assert lake.execute(
        "select (select count(*) from s.u at (version => 5)), a from t where a in (select k from s.u at (version => 8)) order by a"
    ).fetchall() == [(3, 2), (3, 3)]
    lake.execute(
        "create table c as select * from t at (version => 5); insert into c select a + 10, b from t at (version => 6) where a = 1; "
        "insert into c by name from t for version as of 8"
    )
    assert lake.execute("from c order by a, b").fetchall() == [(1, "one"), (2, "two"), (2, "two!"), (3, "three"), (11, "one!")]
    lake.execute(
        "delete from c where a in (select a from t at (version => 5)); update c set b = (select b from t at (version => 5) where a = 1) where a = 3"
    )
    assert lake.execute("from c order by a").fetchall() == [(3, "one"), (11, "one!")]
    lake.execute(f"copy (from t at (version => 5)) to '{tmp_path}/old.csv'")
    assert (tmp_path / "old.csv").read_text().splitlines()[1:] == ["1,one", "2,two"]
    lake.execute("begin; delete from t")
    assert lake.execute("select count(*), (select count(*) from t) from t at (version => 5)").fetchall() == [(2, 0)]
    lake.execute("rollback")
    lake.execute("drop table t")
    assert lake.execute("from t at (version => 5) order by a").fetchall() == old
    lake.execute("create table t (z varchar)")
    assert lake.execute("describe select * from t at (version => 5)").fetchall()[0][:2] == ("a", "INTEGER")
    assert (
        lake.execute("select time_at from (select timestamptz '2020-01-01 00:00:00+00' at time zone 'UTC' as time_at)").fetchall()[0][0].year == 2020
    )


def test_the_words_of_time_travel_stay_names(lake: lakelite.Connection) -> None:
    lake.execute('create table version (version integer, "at" integer); insert into version values (1, 2)')
    assert lake.execute('select version, "at", version.version as timestamp from version').fetchall() == [(1, 2, 1)]
    assert lake.execute('select v."at" from version at (version => 2) v').fetchall() == [(2,)]
    assert lake.execute("select [x for x in [1, 2] if x > 1] as version").fetchall() == [([2],)]
