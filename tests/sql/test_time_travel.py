"""Time travel wherever a table may stand, against copies of each version that the test keeps in plain DuckDB."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from comparing import answer
from racing import meeting

import lakelite

STATEMENTS = """
create table t (k integer, v varchar)
insert into t values (1, 'a'), (2, 'b'), (3, null)
create schema s
create table s.t as select 10 * range as z from range(3)
update t set v = 'c' where k = 1
create table "Odd name" ("a b" integer)
insert into "Odd name" values (5), (6)
delete from "Odd name" where "a b" = 5
create table u (k integer)
insert into u values (1), (2), (3), (4)
delete from t where k = 2
insert into t select range, 'many' from range(2000)
update t set v = 'few' where k between 10 and 20
"""
HOLE = re.compile(r"\{([^@}]+)@(\d+)\}")
SPELLINGS = ("{0} AT (VERSION => {1})", "{0} FOR VERSION AS OF {1}", '{0}\nat ( version => "abs"({1}) )', "{0} for version as of ({1} + 0)")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A lake with a history. Nothing in this module changes it, other than in transactions that are rolled back."""
    with lakelite.connect(tmp_path_factory.mktemp("lakes") / "lake", autocommit=True) as con:
        yield con


@pytest.fixture(scope="module")
def copies(lake: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of version n as they were right after its commit, in the database v<n>."""
    with duckdb.connect() as duck:
        for version, statement in enumerate(STATEMENTS.strip().splitlines(), 1):
            lake.execute(statement)
            duck.execute(statement)
            duck.execute(f"ATTACH ':memory:' AS v{version}; CREATE SCHEMA v{version}.s")
            for schema, name in duck.execute("SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'memory'").fetchall():
                duck.execute(f'CREATE TABLE v{version}."{schema}"."{name}" AS FROM memory."{schema}"."{name}"')
        yield duck


QUERIES = """
from {t@2}
from {t@5} select v
table {t@2}
summarize {t@2}
select * from {main.t@12}
select * from {T@13} where k < 30
select count(*) from {t@12}
select t.k, t.v from {t@2}
select main.t.k, t.v from {main.t@2}
select s.t.z from {s.t@4} where s.t.z > 5
select x.k from {t@2} x
select x.k from {t@2} as x
select a, b from {t@2} as x(a, b)
select a, b from {t@2} x(a, b)
select x.k from x: {t@2}
select one: k from {t@2}
select "a b" from {"Odd name"@7}
select "Odd name"."a b" from {main."Odd name"@7} where "Odd name"."a b" > 5
select o.k, o.v, n.v as new from {t@2} o join t n on o.k = n.k
select a.k, a.v, b.v as later from {t@2} a left join {t@5} b using (k) left join {t@11} c using (k) where c.k is not null
select k from {t@2} join {u@10} using (k)
select k from {t@2} natural join u
select x.v, y.v as w from {t@2} x, {t@5} y where x.k = y.k and x.v is distinct from y.v
select * from {t@2} semi join u using (k)
select * from {u@10} anti join {t@2} using (k)
select * from {t@2} asof join u on t.k >= u.k
select t.k, s.t.z from {t@2} join {s.t@4} on t.k * 10 = s.t.z
select * from ({t@2} as x join u on x.k = u.k)
select * from range(2) r, {t@2}
select * from {t@2}, lateral (select count(*) as n from {u@10} u where u.k > t.k)
select u.k, x.v from u left join lateral (select v from {t@2} o where o.k = u.k) x on true
select (select max(k) from {t@2}) as m, exists (from {t@2} where k = 2) as e, (select count(*) from t) as n
select k from u where k in (select k from {t@2}) and k not in (select k from {t@11})
select k, (select v from {t@2} where t.k = u.k) as v from u
select k from u where k > all (select k from {t@2})
select array(select k from {t@2} order by k) as a
select [x for x in (select list(k order by k) from {t@2})] as a
select case when exists (from {t@2} where k = 2) then 1 end as c
with c as (from {t@2}) select c.k, d.v from c join {t@5} d using (k)
with c as materialized (from {t@2}), d as not materialized (from {t@5}) from c union all from d
with t as (select 7 as k) select t.k, o.v from t, {t@2} o
with t as (select 7 as k) select k, v from {t@2}
with recursive r(n) as (select min(k) from {t@2} union all select n + 1 from r where n < (select max(k) from {t@2})) from r
from {t@2} union from {t@5}
from {t@2} except from t
from {t@2} intersect from {t@5}
from {t@5} union by name select k, 3 as q from {u@10}
values ((select count(*) from {t@2}), (select count(*) from {t@12}))
pivot {t@2} on v using count(*)
unpivot {t@2} on v
select k, row_number() over (order by k) as n from {t@2} qualify n > 1
select sum(k) over w as s from {t@2} window w as (order by k)
select v, count(*) as n from {t@13} group by all having n > 1
select columns(*) from {t@2}
select t from {t@2}
select k from {t@12} tablesample 100%
select k from {t@12} order by k desc limit 3 offset 1
describe select * from {t@2}
describe from {s.t@4}
summarize select k from {t@2}
select * from (select * from (from {t@2}) x where k > 1) y
""".strip().splitlines()


def filled(query: str, form: str) -> str:
    return HOLE.sub(lambda hole: form.format(hole[1], hole[2]), query)


def of_copies(query: str) -> str:
    def name(hole: re.Match[str]) -> str:
        return f"v{hole[2]}.{hole[1] if '.' in hole[1] else 'main.' + hole[1]}"

    return HOLE.sub(name, query)


@pytest.mark.parametrize("query", QUERIES)
def test_in_every_place(query: str, lake: Any, copies: duckdb.DuckDBPyConnection) -> None:
    expected = answer(copies, of_copies(query))
    for form in (SPELLINGS[0], SPELLINGS[1 + len(query) % 3]):
        assert answer(lake, filled(query, form)) == expected


@pytest.mark.parametrize("query", QUERIES[:40:4])
def test_as_parameters_and_times(query: str, lake: Any, copies: duckdb.DuckDBPyConnection) -> None:
    expected = answer(copies, of_copies(query))
    versions = [int(hole[1]) for hole in HOLE.findall(query)]
    times = {row[0]: row[1] for row in lake.execute("DESCRIBE HISTORY").fetchall()}
    stamps = [times[v].replace(tzinfo=dt.UTC) for v in versions]
    assert answer(lake, filled(query, "{0} AT (VERSION => ?)"), versions) == expected
    assert answer(lake, filled(query, "{0} AT (TIMESTAMP => ?)"), stamps) == expected
    assert answer(lake, filled(query, "{0} FOR SYSTEM_TIME AS OF $n{1}"), {f"n{v}": t for v, t in zip(versions, stamps, strict=True)}) == expected
    named = HOLE.sub(lambda hole: f"{hole[1]} FOR TIMESTAMP AS OF TIMESTAMPTZ '{times[int(hole[2])].isoformat(' ')}+00'", query)
    assert answer(lake, named) == expected
    if "[" not in query:  # where :v would be the end of a slice
        assert answer(lake, filled(query, "{0} FOR VERSION AS OF :v{1}"), {f"v{v}": str(v) for v in versions}) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE made AS FROM {t@2}",
        "CREATE TABLE made AS FROM {t@2} WITH NO DATA",
        "CREATE OR REPLACE TABLE made AS SELECT t.k, o.v FROM {t@12} t LEFT JOIN {t@2} o USING (k)",
        "INSERT INTO kept SELECT k, v FROM {t@12}",
        "INSERT INTO kept BY NAME SELECT v, k FROM {t@2}",
        "INSERT INTO kept WITH c AS (FROM {t@2}) FROM c",
        "WITH c AS (FROM {t@2}) INSERT INTO kept FROM c",
        "INSERT INTO kept VALUES ((SELECT max(k) FROM {t@2}), 'x')",
        "UPDATE kept SET v = (SELECT v FROM {t@2} o WHERE o.k = kept.k) WHERE k IN (SELECT k FROM {t@2})",
        "DELETE FROM kept WHERE EXISTS (FROM {t@12} o WHERE o.k = kept.k) AND k NOT IN (SELECT k FROM {u@10})",
        "DELETE FROM kept AS x WHERE x.v = (SELECT min(v) FROM {t@5} t WHERE t.k < x.k)",
    ],
)
def test_in_changes(statement: str, lake: Any, copies: duckdb.DuckDBPyConnection) -> None:
    for con, text in ((lake, filled(statement, SPELLINGS[0])), (copies, of_copies(statement))):
        con.execute("BEGIN")
        con.execute("CREATE TABLE kept AS FROM t WHERE k < 1000")
        con.execute(text)
    try:
        table = "made" if "made" in statement else "kept"
        assert answer(lake, f"FROM {table}") == answer(copies, f"FROM {table}")
    finally:
        lake.execute("ROLLBACK")
        copies.execute("ROLLBACK")


@pytest.mark.parametrize("copied", ["(FROM {t@2})", "(SELECT v, k FROM {t@12} JOIN u USING (k))", "{t@2}", '{main."Odd name"@7} ("a b")'])
def test_copy_to(copied: str, lake: Any, copies: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rows = lake.execute(f"COPY {filled(copied, SPELLINGS[0])} TO ? (FORMAT csv)", [str(tmp_path / "mine")]).rowcount
    copies.execute(f"COPY {of_copies(copied)} TO '{tmp_path / 'theirs'}' (FORMAT csv)")
    mine, theirs = ((tmp_path / name).read_text().splitlines() for name in ("mine", "theirs"))
    assert mine[0] == theirs[0]
    assert sorted(mine) == sorted(theirs)
    assert rows == len(mine) - 1


def test_explain(lake: Any, copies: duckdb.DuckDBPyConnection) -> None:
    for head in ("EXPLAIN", "EXPLAIN ANALYZE"):
        plan = lake.execute(f"{head} SELECT count(*) FROM t AT (VERSION => 2) JOIN s.t FOR VERSION AS OF 4 x ON true").fetchall()
        assert "Scan" in plan[0][1]


def test_a_version_of_a_table_that_was_dropped_made_anew_and_redefined(lake: Any, copies: duckdb.DuckDBPyConnection) -> None:
    con = lakelite.connect(":memory:", autocommit=True)
    con.execute("CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR DEFAULT 'x'); INSERT INTO t (a) VALUES (1)")  # 2
    con.execute("DROP TABLE t")  # 3
    con.execute("CREATE TABLE t (b DATE)")  # 4
    con.execute("INSERT INTO t VALUES ('2020-01-01')")  # 5
    con.execute("CREATE OR REPLACE TABLE t (b DATE, c DOUBLE)")  # 6
    con.execute("INSERT INTO t VALUES ('2021-01-01', 1.5)")  # 7
    assert answer(con, "FROM t AT (VERSION => 2)") == ([("a", "INTEGER"), ("b", "VARCHAR")], ["(1, 'x')"])
    assert answer(con, "FROM t AT (VERSION => 5)") == ([("b", "DATE")], ["(datetime.date(2020, 1, 1),)"])
    joined = "SELECT x.a, y.b, z.c FROM t AT (VERSION => 2) x, t AT (VERSION => 5) y, t z"
    assert con.execute(joined).fetchall() == [(1, dt.date(2020, 1, 1), 1.5)]
    with pytest.raises(lakelite.ProgrammingError, match='table "t" does not exist in version 3'):
        con.execute("FROM t AT (VERSION => 3)")
    con.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS one; DROP SCHEMA s CASCADE")  # 8, 9, 10
    assert con.execute("SELECT s.t.one FROM s.t AT (VERSION => 9)").fetchall() == [(1,)]
    with pytest.raises(lakelite.ProgrammingError, match='schema "s" does not exist'):
        con.execute("FROM s.t AT (VERSION => 10)")
    con.close()


def test_inside_a_transaction_its_own_changes_are_no_version(lake: Any, copies: duckdb.DuckDBPyConnection) -> None:
    lake.execute("BEGIN; DELETE FROM t; CREATE TABLE fresh AS SELECT 1 AS a")
    try:
        head = len(STATEMENTS.strip().splitlines())
        assert answer(lake, f"FROM t AT (VERSION => {head})") == answer(copies, "FROM t")
        assert lake.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        with pytest.raises(lakelite.ProgrammingError, match=f"there is no version {head + 1}; the newest one that this statement sees is {head}"):
            lake.execute(f"FROM t AT (VERSION => {head + 1})")
        with pytest.raises(lakelite.ProgrammingError, match='table "fresh" does not exist in version'):
            lake.execute(f"FROM fresh AT (VERSION => {head})")
    finally:
        lake.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("query", "kind", "words", "column"),
    [
        ("FROM t AT (VERSION => 99)", lakelite.ProgrammingError, "no version 99; the newest one that this statement sees is 13", 6),
        ("FROM t AT (VERSION => -1)", lakelite.ProgrammingError, "no version -1", 6),
        ("FROM t AT (VERSION => NULL)", lakelite.DataError, "NULL", 6),
        ("FROM t AT (VERSION => 2.5)", lakelite.DataError, "whole number", 6),
        ("FROM t AT (VERSION => 'two')", lakelite.DataError, "whole number", 6),
        ("FROM t AT (VERSION => true)", lakelite.DataError, "whole number", 6),
        ("FROM t AT (VERSION => 99999999999999999999999)", lakelite.ProgrammingError, "no version 99999999999999999999999", 6),
        ("FROM tt AT (VERSION => 2)", lakelite.ProgrammingError, 'table "tt" does not exist in version 2', 6),
        ("FROM u AT (VERSION => 2)", lakelite.ProgrammingError, 'table "u" does not exist in version 2', 6),
        ("FROM x.t AT (VERSION => 2)", lakelite.ProgrammingError, 'schema "x" does not exist', 6),
        ("FROM t AT (TIMESTAMP => 'noon')", lakelite.DataError, "noon", 6),
        ("FROM t AT (TIMESTAMP => TIMESTAMP '2001-01-01')", lakelite.ProgrammingError, "the lake is younger than that: it was made on 20", 6),
        ("FROM t AT (VERSION => (SELECT max(k) FROM u))", lakelite.ProgrammingError, "where no table can be seen", 6),
        ("FROM t AT (BRANCH => 'b')", lakelite.ProgrammingError, 'branch "b" does not exist', 6),
        ("SELECT 1, t AT (VERSION => 2)", lakelite.ProgrammingError, "no table", 13),
        ("SELECT k FROM t ORDER BY k, t AT (VERSION => 2)", lakelite.ProgrammingError, "no table", 31),
        ("SELECT count(t AT (VERSION => 2)) FROM t", lakelite.ProgrammingError, "no table", 16),
        ("UPDATE t AT (VERSION => 2) SET k = 1", lakelite.ProgrammingError, "cannot be changed", 10),
        ("DELETE FROM t FOR VERSION AS OF 2", lakelite.ProgrammingError, "cannot be changed", 15),
        ("INSERT INTO t AT (VERSION => 2) VALUES (1, 'a')", lakelite.ProgrammingError, "cannot be changed", 15),
        ("COPY t AT (VERSION => 2) FROM 'x'", lakelite.ProgrammingError, "cannot be changed", 8),
        ('FROM "lake@2".main.t', lakelite.ProgrammingError, "reserved", 6),
    ],
)
def test_errors(query: str, kind: type[lakelite.Error], words: str, column: int, lake: Any, copies: duckdb.DuckDBPyConnection) -> None:
    lake.execute("FROM t AT (VERSION => 2)").fetchall()
    with pytest.raises(kind, match=re.escape(words)) as caught:
        lake.execute(query)
    assert caught.value.position.column == column


def test_many_versions_in_one_connection(tmp_path: Path) -> None:
    """Each is a database of DuckDB's; those that were not used for long are dropped, and a result that is being read goes on."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t AS SELECT range AS a FROM range(5000)")
        for i in range(100):
            con.execute("INSERT INTO t VALUES (?)", [i])
        first = con.execute("FROM t AT (VERSION => 1)")
        first.fetchone()
        counts = [con.execute(f"SELECT count(*) FROM t AT (VERSION => {v})").fetchone()[0] for v in range(1, 102)]
        assert counts == list(range(5000, 5101))
        assert len(first.fetchall()) == 4999
        everything = " UNION ALL ".join(f"(SELECT count(*) AS n FROM t AT (VERSION => {v}))" for v in range(1, 102))
        assert con.execute(f"SELECT sum(n) FROM ({everything})").fetchone() == (sum(counts),)


# What has expired.


def test_expired_versions_name_the_oldest_one_that_is_kept(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER); CREATE TABLE u (a INTEGER)")  # 2
        for i in range(3):
            con.execute("INSERT INTO t VALUES (?)", [i])  # 5
        con.execute("DELETE FROM t")  # 6
        con.execute("VACUUM t RETAIN 0 HOURS")
        with pytest.raises(lakelite.OperationalError, match="version 4 of t has expired; the oldest kept one is 6"):
            con.execute("FROM t AT (VERSION => 4)")
        assert con.execute("FROM u AT (VERSION => 4)").fetchall() == con.execute("FROM t AT (VERSION => 6)").fetchall() == []
        con.execute("INSERT INTO u VALUES (1)")  # 7
        con.execute("VACUUM RETAIN 0 HOURS")
        for name in ("t", "u", "gone"):
            with pytest.raises(lakelite.OperationalError, match="version 6 has expired; the oldest kept one is 7") as caught:
                con.execute(f"FROM {name} AT (VERSION => 6)")
            assert "DESCRIBE HISTORY" in (caught.value.hint or "")
        with pytest.raises(lakelite.OperationalError, match="have expired; the oldest kept one is 7, of 20"):
            con.execute("FROM u AT (TIMESTAMP => TIMESTAMP '2001-01-01')")
        assert con.execute("FROM u AT (VERSION => 7)").fetchall() == [(1,)]


def test_what_is_being_read_does_not_expire(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        con.execute("CREATE TABLE t AS SELECT range AS a FROM range(300000)")  # 1
        con.execute("TRUNCATE t")  # 2
        reading = con.execute("FROM t AT (VERSION => 1)")
        reading.fetchone()
        other.execute("VACUUM RETAIN 0 HOURS")
        assert len(reading.fetchall()) == 299_999
        reading.close()
        other.execute("VACUUM RETAIN 0 HOURS")
        with pytest.raises(lakelite.OperationalError, match="version 1 has expired"):
            con.execute("FROM t AT (VERSION => 1)")


# What the resolver is told.


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """Two connections to a lake with two tables."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as mine, lakelite.connect(tmp_path / "lake", autocommit=True) as theirs:
        mine.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE u (n BIGINT)")
        yield mine, theirs


def test_a_version_by_number_is_no_read(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    mine.execute("BEGIN")
    assert mine.execute("FROM t AT (VERSION => 2)").fetchall() == [(1,)]
    mine.execute("INSERT INTO u SELECT count(*) FROM t AT (VERSION => 1)")
    theirs.execute("DELETE FROM t")
    mine.execute("COMMIT")
    assert mine.execute("FROM u").fetchall() == [(1,)]
    assert mine.last_commit.attempts == 1


def test_a_time_that_is_the_base_is_a_read_of_the_table(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    for value in (1, 2):
        mine.execute("BEGIN")
        assert mine.execute("SELECT a FROM t AT (TIMESTAMP => TIMESTAMP '2999-01-01')").fetchall() == [(value,)]
        mine.execute("INSERT INTO u VALUES (1)")
        theirs.execute("UPDATE t SET a = a + 1")
        with pytest.raises(lakelite.TransactionConflict, match="read changed"):
            mine.execute("COMMIT")


def test_a_time_in_a_write_that_runs_again_is_that_of_the_head(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    with meeting(lambda: theirs.execute("INSERT INTO t VALUES (2)")):
        mine.execute("INSERT INTO u SELECT count(*) FROM t AT (TIMESTAMP => TIMESTAMP '2999-01-01')")
    assert mine.execute("FROM u").fetchall() == [(2,)]


def test_a_time_before_the_base_is_no_read(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    time.sleep(0.01)
    before = dt.datetime.now(dt.UTC)
    theirs.execute("INSERT INTO t VALUES (2)")
    mine.execute("BEGIN")
    assert mine.execute("SELECT count(*) FROM t AT (TIMESTAMP => ?)", [before]).fetchall() == [(1,)]
    mine.execute("INSERT INTO u VALUES (1)")
    theirs.execute("DELETE FROM t")
    mine.execute("COMMIT")
    assert mine.execute("FROM u").fetchall() == [(1,)]


def test_a_moment_without_a_zone_is_utc_as_all_times_that_are_shown(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2)")
        (shown,) = con.execute("SELECT committed_at FROM lake.snapshots WHERE snapshot_id = 1").fetchone()
        con.execute("INSERT INTO t VALUES (3)")
        moments = [f"{kind} '{shown}{zone}'" for kind in ("", "TIMESTAMP", "TIMESTAMPTZ") for zone in ("", " UTC", "+00")]
        moments += [f"TIMESTAMP_NS '{shown}'", f"'{shown.isoformat()}Z'"]
        moments += [f"'{shown + dt.timedelta(hours=2)}+02'", f"'{shown - dt.timedelta(hours=5)} EST'"]
        moments.remove(f"TIMESTAMPTZ '{shown}'")
        for zone in ("America/New_York", "Asia/Tokyo", "UTC"):
            con.execute(f"SET TimeZone = '{zone}'")
            for moment in moments:
                assert con.execute(f"SELECT count(*) FROM t AT (TIMESTAMP => ({moment}))").fetchall() == [(1,)], (zone, moment)
            aware = shown.replace(tzinfo=dt.UTC)
            for value in (shown, str(shown), aware, aware.astimezone(dt.timezone(dt.timedelta(hours=5)))):
                assert con.execute("SELECT count(*) FROM t AT (TIMESTAMP => ?)", [value]).fetchall() == [(1,)], (zone, value)
            con.execute(f"CREATE OR REPLACE TEMP TABLE x AS FROM table_changes('t', TIMESTAMP '{shown}', TIMESTAMP '{shown}')")
            assert con.execute("SELECT snapshot_id FROM x").fetchall() == [(1,)]
            con.execute(f"CREATE TAG \"{zone}\" AT TIMESTAMP '{shown}'; CREATE BRANCH \"{zone}\" AT TIMESTAMP '{shown}'")
            for made in ("TAG", "BRANCH"):
                assert con.execute(f"SELECT count(*) FROM t AT ({made} => '{zone}')").fetchall() == [(1,)]
            con.execute(f"BEGIN; RESTORE TABLE t TO TIMESTAMP AS OF '{shown}'")
            assert con.execute("FROM t").fetchall() == [(1,)]
            con.execute("ROLLBACK")
            assert con.execute("SELECT count(*) FROM t AT (TIMESTAMP => now())").fetchall() == [(3,)]
            with pytest.raises(lakelite.ProgrammingError, match="younger") as caught:
                con.execute(f"FROM t AT (TIMESTAMP => DATE '{shown.date()}')")
            told = re.search(r"made on (.* UTC)", str(caught.value))
            assert told is not None
            with pytest.raises(lakelite.ProgrammingError, match="does not exist in version 0"):
                con.execute(f"FROM t AT (TIMESTAMP => '{told[1]}')")


@pytest.mark.parametrize("moment", ["'2999-01-01'", "DATE '2999-01-01'", "TIMESTAMP '200000-01-01'", "(now() + INTERVAL 1 DAY)"])
def test_a_moment_in_the_future_is_answered_with_a_warning(tmp_path: Path, moment: str) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
        for statement in (f"FROM t AT (TIMESTAMP => {moment})", f"CREATE TAG x AT TIMESTAMP {moment}", f"CREATE BRANCH b AT TIMESTAMP {moment}"):
            cursor = con.execute(statement)
            assert cursor.messages == [(lakelite.Warning, "that time lies in the future: the newest version, 1, is taken")]
        assert "lies in the future" in con.execute(f"RESTORE TABLE t TO TIMESTAMP AS OF {moment}").messages[0][1]
        assert con.execute("FROM t AT (TIMESTAMP => now())").messages == []
