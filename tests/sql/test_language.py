"""The language end to end: what DuckDB knows too gives what plain DuckDB gives, in names, types and rows; the rest does what it says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lakelite

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


def answer(con: Any, sql: str, parameters: Any = None) -> tuple[list[tuple[str, str]], list[Any]]:
    """Names and types of the columns, and the rows as a multiset that keeps NULL, NaN and types apart."""
    cursor = con.execute(sql, parameters)
    columns = [(d[0], str(d[1])) for d in cursor.description]
    rows = cursor.fetchall()
    return columns, rows if "order by" in sql else sorted(map(repr, rows))


QUERIES = """
select * from flights
select count(*) from flights
select count(*), sum(delay), avg(distance), min(day), max(carrier) from flights
select *, id + 1 as next from flights where delay > 20 order by id
select f.id, c.name from flights f join carriers c on f.carrier = c.code where f.id < 50 order by f.id
select * from flights f left join carriers c on carrier = code where delay is null
select * from carriers right join flights on code = carrier where id > 2400
select * from flights full join carriers on carrier = code where id is null or id < 10
select a.id, b.id from flights a, flights b where a.id = b.id + 1 and a.id < 9 order by all
select * from flights semi join carriers on carrier = code where id < 20
select * from flights anti join carriers on carrier = code where id < 20
select * from flights natural join s.flights
select * from flights join s.flights using (id)
select * from carriers positional join s.flights
select f.id, c.name from flights f asof join carriers c on f.distance >= c.since order by f.id
select * from carriers cross join s.flights
select id, (select name from carriers where code = carrier) as name from flights where id < 8 order by id
select id from flights where carrier in (select code from carriers where since < 1930) and id < 30 order by id
select id from flights f where exists (select 1 from s.flights x where x.id = f.id) order by id
select id, delay > all (select since from carriers where since is not null) as late from flights where id < 5 order by id
select c.code, l.id from carriers c, lateral (select id from flights where carrier = c.code order by id limit 2) l order by all
select id, sum(delay) over (partition by carrier order by id rows between 2 preceding and current row) as s from flights where id < 40 order by id
select id, row_number() over w as n, lag(delay, 1, 0) over w as l from flights where id < 40 window w as (partition by carrier order by id) order by id
select id, carrier from flights qualify row_number() over (partition by carrier order by id desc) = 1 order by id
select carrier, count(*) as n, count(delay) filter (delay > 0) as late from flights group by carrier having n > 10 order by all
select carrier, day, count(*) from flights where id < 100 group by all order by all
select carrier, day, count(*) from flights where id < 40 group by grouping sets ((carrier), (day), ()) order by all
select carrier, count(*) from flights group by rollup (carrier) order by all
select distinct carrier from flights order by all
select distinct on (carrier) carrier, id from flights order by carrier, id
select id from flights where id < 5 union all select id from s.flights order by 1
select id from flights where id < 5 union select id from s.flights order by 1
select id from flights intersect select id from s.flights order by 1
select id from s.flights except all select id from flights order by 1
select id, note as x from s.flights union all by name select id, carrier as y from flights where id < 3 order by all
from flights where id < 3 order by id
from flights select id, delay where id < 3 order by id
select columns('d.*') from flights where id < 5 order by id
select min(columns(*)) from flights
select * exclude (day, distance) replace (delay + 1 as delay) rename (carrier as c) from flights where id < 5 order by id
select flights.* from flights where id < 3 order by id
select f from flights f where f.id = 4
pivot flights on carrier using sum(delay) group by day order by day
from flights pivot (count(*) for carrier in ('AA', 'UA') group by delay) order by delay
unpivot (select id, delay, distance from flights where id < 4) on delay, distance into name what value v order by all
unpivot carriers on name into name k value v order by all
summarize carriers
describe flights
describe select id + 1 as next, day from flights
show flights
values (1, 'a'), (2, 'b') order by 1
table carriers order by code
with x as (select id from flights where id < 5) select * from x order by 1
with flights as (select 7 as id) select * from flights
with flights as (select 7 as id) select * from flights, main.flights as m where m.id < 2 order by all
with flights as (select id from main.flights where id < 3) select * from flights order by all
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select r.n, f.delay from r join flights f on f.id = r.n order by n
with a as materialized (select id from flights), b as (select id from a where id < 3) select * from b order by 1
select list(id order by id) as ids, [x * 2 for x in list(id order by id) if x > 2] as twice from flights where id < 6
select list_transform(list(id order by id), lambda x: x + 1) as up, {'a': min(id), 'b': max(day)} as st, map {'k': count(*)} as m from flights
select unnest([id, id * 10]) as u from flights where id < 3 order by all
select struct_pack(id, carrier) as p, struct_pack(id, carrier).id as i from flights where id < 3 order by id
select id from flights using sample 100%
select count(*) from flights tablesample 100%
select main.flights.id, "flights"."delay" from "main"."flights" where "id" = 4
select "Carrier", FLIGHTS.ID from FLIGHTS where Id = 4
select s.flights.note from s.flights where s.flights.id = 1
select f.id as "a b", f.delay as "select" from flights as f where f.id = 4
select case when delay > 10 then 'late' when delay is null then 'unknown' else 'fine' end as k, count(*) as n from flights group by k order by k
select day + interval 1 month as m, extract(year from day) as y, strftime(day, '%a') as w from flights where id = 4
select carrier || '-' || id as t, carrier like 'A%' as l, carrier similar to '[AU]A' as r from flights where id < 5 order by id
select id from flights order by delay desc nulls last, id limit 5 offset 3
select id from flights order by id limit 1%
select id from flights where day between '2013-01-05' and '2013-01-07' and delay in (1, 2, 3) order by id
select id from flights where id is distinct from 4 and id < 6 order by id
select max(id) - (select min(id) from flights) as d from flights
select arg_max(id, distance) as m, string_agg(carrier, ',' order by id) as s, median(delay), approx_count_distinct(carrier) from flights where id < 30
select * from (values (1, 'AA'), (2, 'UA')) v(n, code) join carriers using (code) order by n
select * from range(3) r(i) join flights on id = i order by i
select count(*) from flights, carriers where code = carrier
select id // 7 as a, id % 7 as b, -id as c, id ** 2 as d, id / 4 as e, id::varchar as f, try_cast(carrier as integer) as g from flights where id < 5 order by id
select 1 as x -- a comment
select /* flights */ 'from nowhere' as x
select count(*) from (select * from flights limit 10)
select t.x.id from (select f as x from flights f where id = 4) t
select coalesce(name, 'none') as n, ifnull(since, 0) as s, nullif(code, 'ZZ') as c from carriers order by all
select id, delay from flights where (carrier, delay) in (select code, 7 from carriers) order by id
select any_value(carrier) as c, bool_and(id > 0) as b, histogram(delay % 3) as h from flights where carrier = 'AA'
select * from flights where id = 2501 or (id = 2500 and delay is null) order by id
select x.id from flights as x(id, c, d, e, f) where c = 'DL' and x.id < 20 order by id
select a: id, b: delay from flights where id = 4
select id from query_table('flights') where id = 4
select count(*) from query('select * from s.flights')
"""


@pytest.mark.parametrize("sql", QUERIES.strip().splitlines())
def test_a_query_gives_what_duckdb_gives(pair: tuple[lakelite.Connection, duckdb.DuckDBPyConnection], sql: str) -> None:
    ours, plain = pair
    assert answer(ours, sql) == answer(plain, sql)


@pytest.mark.parametrize("sql", QUERIES.strip().splitlines())
def test_the_same_query_as_the_first_of_a_connection(pair: tuple[lakelite.Connection, duckdb.DuckDBPyConnection], sql: str) -> None:
    """Tables are found in the text, not because an earlier query had named them."""
    ours, plain = pair
    with lakelite.connect(ours._session._opened.paths.root, read_only=True) as fresh:
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

SCRIPTS = {
    "insert values": "insert into t values (1, 'a', 1.5), (2, default, null); insert into t values (3, 'c', 3), (4, 'd', 4),",
    "insert into a list of columns": "insert into t (c, a) values (1.5, 1), (2.5, 2); insert into t (A) values (3); insert into t (b) select 'x'",
    "insert default": "insert into t values (default, default, default); insert into t default values; insert into t (a, b) values (1 + 1, default)",
    "insert expressions": "insert into t values ((select 40 + 2), upper('x') || 'y', 1 / 4), (length('abc'), null, -1e3)",
    "insert select": "insert into t select range, 'r' || range, range / 3 from range(5); insert into t select a + 10, b, c from t; insert into t from t where a = 1",
    "insert select with casts": "insert into t select '12', 34, '5.5'; insert into t select 1.6, true, 2; insert into t values ('12', 34, '5.5'), (1.6, true, 2)",
    "insert by name": "insert into t by name select 1.5 as c, 7 as A; insert into t by name select 'q' as b; insert into t by position select 1, 'x', 2",
    "insert with a CTE": "with x as (select 5 as n) insert into t select n, 'cte', n from x; insert into t with y as (select 6 as n) select n, 'in', n from y",
    "insert with a parenthesis": "insert into t (select 1, 'p', 2); insert into t ((values (2, 'q', 3))); insert into t (a, b) (select 3, 'r')",
    "insert table": "insert into t values (1, 'a', 1); insert into t table t; insert into t from t select a + 1, b, c; insert into u (v) select b from t",
    "insert from set operations": "insert into t select 1, 'a', 2 union all select 2, 'b', 3; insert into t (select 3, 'c', 4) union (select 4, 'd', 5) order by 1 desc limit 1",
    "insert many": "insert into t select range, 'many', 0.5 from range(5000); delete from t where a % 3 = 1; update t set b = 'less' where a % 3 = 0 and a > 4000",
    "delete": "insert into t select range, 'x', range from range(20); delete from t where a > 15; delete from t as x where x.a between 3 and 5; delete from main.t where t.a = 1",
    "delete all": "insert into t select range, 'x', range from range(20); delete from t; insert into t values (1, 'after', 1)",
    "delete nothing": "insert into t values (1, 'a', 1); delete from t where false; delete from t where a = null; delete from t where b is null",
    "delete by subquery": "insert into t select range, 'x', range from range(20); insert into u values (3, 'v'), (4, null); delete from t where a in (select k from u); delete from t x where exists (select 1 from t y where y.a = x.a + 1 and y.a > 10)",
    "delete with a CTE": "insert into t select range, 'x', range from range(20); with big as (select max(a) as m from t) delete from t where a = (select m from big)",
    "delete by a window": "insert into t select range % 5, 'x', range from range(20); delete from t where c in (select c from (select c, row_number() over (partition by a order by c) as n from t) where n > 1)",
    "update": "insert into t select range, 'x', range from range(20); update t set b = 'y' where a < 5; update t as x set c = x.c + x.a, b = upper(x.b) where x.a > 17; update t set a = a + 100",
    "update swaps": "insert into t select range, 'x', range * 2 from range(5); update t set a = c, c = a; update t set a = a + 1, c = a",
    "update default": "insert into t values (1, 'a', 1), (2, 'b', 2); update t set b = default where a = 1; update t set c = default, a = 3 where a = 2",
    "update by subquery": "insert into t select range, 'x', range from range(9); insert into u values (3, 'three'), (4, null); update t set b = (select v from u where k = a) where a in (select k from u); update t set c = (select sum(c) from t)",
    "update with a CTE": "insert into t values (1, 'a', 1), (2, 'b', 2); with m as (select max(c) as m from t) update t set c = (select m from m) * 2 where a = 1",
    "update casts": "insert into t values (1, 'a', 1), (2, 'b', 2); update t set a = '7', b = 5, c = '1.25' where a = 1; update t set a = 2.6 where a = 2; update t set b = a > 1",
    "update nothing": "insert into t values (1, 'a', 1); update t set a = 9 where b = 'z'; update t set b = null where c > 5",
    "update twice": "insert into t select range, 'x', 0 from range(50); update t set c = c + 1 where a < 25; update t set c = c + 1 where a < 10; delete from t where c = 1; update t set c = c + 1",
    "truncate": "insert into t values (1, 'a', 1); truncate t; insert into t values (2, 'b', 2); insert into u values (1, 'v'); truncate table u",
    "create as": "create table made as select range as n, 'x' || range as s, null as nothing, [range] as l from range(5); create table empty as from made where false; insert into empty from made",
    "create as with columns": "create table made (p, q) as select 1, 'two'; create table again as from made with no data; insert into again values (3, 'four'); create table more as (from made) with data",
    "create as with names": "create table made as select 1 as a, 2 as a, 3, 4 + 1; create table other as values (1, 'a'), (2, 'b'); create table third as with x as (select 1 as y) select * from x",
    "create or replace": "create or replace table t (x varchar, a bigint); insert into t values ('one', 1); create or replace table t as select a + 1 as a, x from t; create or replace table t as from t union all from t",
    "create or replace keeps nothing": "insert into t values (1, 'a', 1); create or replace table t (a integer, b varchar, c double); insert into t (a) values (2)",
    "create if not exists": "insert into t values (1, 'a', 1); create table if not exists t (z int); create table if not exists t as select 1 as z; create table if not exists made (z int); insert into made values (1)",
    "drop": "create table made (z int); drop table made; create table made (y varchar); insert into made values ('new'); drop table if exists nothing; create table m2 (a int); drop table m2; drop table made",
    "schemas": "create schema x; create schema if not exists x; create table x.t (a int); insert into x.t values (1), (2); insert into t select a, 'from x', a from x.t; update x.t set a = 5 where x.t.a = 1; delete from x.t where t.a = 2; create or replace table x.t as select a, 'x' as b from x.t; create schema y; create table y.t as from x.t; drop schema y cascade; drop schema if exists y",
    "transaction": "begin; insert into t values (1, 'a', 1); update t set b = 'b'; create table made as from t; insert into made values (2, 'c', 2); delete from t; commit",
    "transaction undone": "insert into t values (1, 'a', 1); begin transaction; insert into t values (2, 'b', 2); drop table u; create table made (a int); delete from t where a = 1; rollback; insert into t values (3, 'c', 3)",
    "transaction with the table again": "insert into t values (1, 'a', 1); begin; drop table t; create table t (z varchar); insert into t values ('new'); update t set z = z || '!'; commit; insert into t values ('last')",
    "types of constants": "create table made as select 1 as i, 1.5 as d, 1e0 as f, 'x' as s, date '2020-01-01' as day, timestamp '2020-01-01 01:02:03.123456' as ts, interval 1 day as iv, true as b, null as n, 10000000000 as big, 1::hugeint as h, 'a'::blob as bl, uuid '00000000-0000-0000-0000-000000000001' as u, [1, 2] as l, {'a': 1} as st, map {'k': 1} as m, time '01:02:03' as t",
    "quoted names": """create table "My Table" ("a b" int, "select" varchar default 'd''d', "x""y" int); insert into "My Table" ("a b") values (1); update "My Table" set "select" = "x""y" where "a b" = 1; delete from "my table" where "A B" = 2; create table "T.x" as from "My Table" """,
}
TABLES = "create table t (a integer, b varchar default 'dflt', c double default 0.5); create table u (k integer, v varchar)"


@pytest.mark.parametrize("files", [False, True], ids=["inline", "files"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_change_does_what_duckdb_does(lake: lakelite.Connection, script: str, files: bool) -> None:
    plain = duckdb.connect()
    if files:
        lake.execute("set inline_rows = 0")
    for statement in f"{TABLES}; {script}".split("; "):
        cursor = lake.execute(statement)
        expected = plain.execute(statement)
        count = expected.fetchall() if expected.description and expected.description[0][0] == "Count" else None
        if count and not statement.startswith("truncate"):
            assert cursor.rowcount == count[0][0], statement
    same_tables(lake, plain)
    with lakelite.connect(lake._session._opened.paths.root) as again:
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


# COPY.


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_copy_there_and_back(lake: lakelite.Connection, tmp_path: Path, form: str) -> None:
    lake.execute("create table t (id integer, code varchar, day date, price decimal(9, 2), noted timestamp, ok boolean)")
    lake.execute(
        "insert into t values (1, '007', '2020-02-29', 1.50, '2020-01-01 12:34:56.789', true), (2, 'a,\"b\nc', null, -0.01, null, false), (3, null, '1999-12-31', 0, null, null)"
    )
    path = tmp_path / f"out.{form}"
    assert lake.execute(f"copy t to '{path}'").rowcount == 3
    lake.execute("create table back as from t with no data")
    assert lake.execute(f"copy back from '{path}'").rowcount == 3
    assert lake.execute("from t except all from back").fetchall() == []
    lake.execute("copy (select id, code from t where id < 3 order by id) to ? ", [str(tmp_path / f"part.{form}")])
    lake.execute(f"create table part (code varchar, x integer, id bigint); copy part (id, code) from '{tmp_path}/part.{form}'")
    assert lake.execute("select id, code, x from part order by id").fetchall() == [(1, "007", None), (2, 'a,"b\nc', None)]


CSV = {
    "a header": ("id,code,n\n1,007,5\n2,00,6\n", ""),
    "no header": ("1,007,5\n2,00,6\n", ""),
    "no header, said": ("1,007,5\n2,00,6\n", "(header false)"),
    "a header, said": ("x,y,z\n1,007,5\n", "(header)"),
    "a header of text only": ("id,code,n\n", "(header true)"),
    "semicolons": ("1;007;5\n", "(delimiter ';', header false)"),
    "tabs found": ("id\tcode\tn\n1\t007\t5\n", ""),
    "null as a word": ("1,NA,5\nNA,x,NA\n", "(null 'NA', header 0)"),
    "quotes": ("1,'a,b',5\n", "(quote '''', header false)"),
    "empty and quoted empty": ('1,,5\n2,"",6\n', "(header false)"),
    "skip": ("junk\n1,007,5\n", "(skip 1, header false)"),
    "dates": ("1,2020-01-01,5\n2,01/02/2020,6\n", "(header false)"),
    "spaces": ("1, a b ,5\n", "(header false)"),
    "crlf": ("1,007,5\r\n2,008,6\r\n", "(header false)"),
    "bom": ("\ufeffid,code,n\n1,007,5\n", ""),
    "only text": ("code\n", "(header false, null_padding true)"),
    "true": ("1,true,5\n", "(format csv, header false)"),
}


@pytest.mark.parametrize("case", CSV.values(), ids=CSV.keys())
def test_copy_from_csv_does_what_duckdb_does(lake: lakelite.Connection, tmp_path: Path, case: tuple[str, str]) -> None:
    content, options = case
    path = tmp_path / "in.csv"
    path.write_text(content, newline="")
    plain = duckdb.connect()
    for con in (plain, lake):
        con.execute("create table t (id integer, code varchar, n double)")
    sql = f"copy t from '{path}' {options}"
    try:
        plain.execute(sql)
    except duckdb.Error:
        with pytest.raises(lakelite.Error):
            lake.execute(sql)
    else:
        lake.execute(sql)
    assert answer(lake, "from t") == answer(plain, "from t")
    plain.close()


def test_copy_options_and_other_files(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t as select range as a, 'x' || range as b from range(3)")
    lake.execute(f"copy t to '{tmp_path}/a.txt' (format csv, delimiter '|', header false, force_quote (b))")
    assert (tmp_path / "a.txt").read_text() == '0|"x0"\n1|"x1"\n2|"x2"\n'
    lake.execute(f"copy t to '{tmp_path}/z.parquet' (compression zstd); copy t to '{tmp_path}/a.csv.gz'; copy t (b) to '{tmp_path}/b.csv'")
    assert (tmp_path / "b.csv").read_text() == "b\nx0\nx1\nx2\n"
    lake.execute(
        f"create table u as from t with no data; copy u from '{tmp_path}/*.parquet'; copy u from '{tmp_path}/a.csv.gz'; copy u from '{tmp_path}/a.txt' (delim '|')"
    )
    assert lake.execute("select a, b, count(*) from u group by all order by all").fetchall() == [(i, f"x{i}", 3) for i in range(3)]
    (tmp_path / "rows.ndjson").write_text('{"b": "j", "a": 9}\n{"a": 10}\n')
    lake.execute(f"copy u from '{tmp_path}/rows.ndjson'")
    assert lake.execute("from u where a > 8 order by a").fetchall() == [(9, "j"), (10, None)]
    assert lake.execute(f"select count(*) from '{tmp_path}/z.parquet' p join t using (a)").fetchall() == [(3,)]
    lake.execute(f"create table w as from read_csv('{tmp_path}/b.csv', all_varchar = true)")
    assert lake.execute("select count(*) from w").fetchall() == [(3,)]


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
        other.execute("insert into elsewhere values (1)")
        assert lake.execute("show tables").fetchall() == [("elsewhere",), ("t",), ("u",)]
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
        "create table t (a integer); create table u (b integer); insert into t values (1), (2); delete from t where a = 1; update t set a = 5; insert into u values (1)"
    )
    history = lake.execute("describe history t")
    assert [d[0] for d in history.description][:5] == ["version", "committed_at", "author", "operation", "statements"]
    rows = history.fetchall()
    assert [(r[0], r[3], r[4], r[5], r[6]) for r in rows] == [
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
        f"at (timestamp => '{between}'::timestamptz)", f"for timestamp as of '{between}'", f"for timestamp as of timestamp '{between}'", f"for system_time as of '{between}'",
    ):  # fmt: skip
        assert lake.execute(f"select * from t {travel} order by a").fetchall() == old, travel
        assert lake.execute(f"select x.b from main.t {travel} as x where x.a = 1").fetchall() == [("one",)], travel
        assert lake.execute(f"select t.b from t {travel} where t.a = 1").fetchall() == [("one",)], travel
        assert lake.execute(f"with old as (select * from t {travel}) select count(*) from old").fetchall() == [(2,)], travel
    value = 5
    assert lake.execute("from t at (version => ?) order by a", [value]).fetchall() == old
    assert lake.execute("from t for version as of $v order by a", {"v": value}).fetchall() == old
    assert lake.execute("from t at (version => :v) where a = :a", {"v": value, "a": 1}).fetchall() == [(1, "one")]
    many = "select n.a, o.b, p.b, c.n from t n join t at (version => 5) o using (a) join t for version as of 6 p using (a), (select count(*) as n from t at (version => 4)) c"
    assert lake.execute(many).fetchall() == [(2, "two", "two!", 2)]
    assert sorted(lake.execute("from t at (version => 5) except from t at (version => 7)").fetchall()) == old
    assert lake.execute(
        "select (select count(*) from s.u at (version => 5)), a from t where a in (select k from s.u at (version => 8)) order by a"
    ).fetchall() == [(3, 2), (3, 3)]
    lake.execute(
        "create table c as select * from t at (version => 5); insert into c select a + 10, b from t at (version => 6) where a = 1; insert into c by name from t for version as of 8"
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
