"""information_schema, pg_catalog and DuckDB's metadata functions: as plain DuckDB has them, and after whatever is done."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelite
from lakelite.catalog.system import VIEWS

TYPES = """BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|UTINYINT|USMALLINT|UINTEGER|UBIGINT|HUGEINT|UHUGEINT|FLOAT|DOUBLE|DECIMAL(4,2)|DECIMAL(38,38)|VARCHAR
BLOB|BIT|DATE|TIME|TIME_NS|TIME WITH TIME ZONE|TIMESTAMP|TIMESTAMP_S|TIMESTAMP_MS|TIMESTAMP_NS|TIMESTAMPTZ_NS|TIMESTAMP WITH TIME ZONE|INTERVAL|UUID
ENUM('a', 'it''s', '', 'x,y')|JSON|BIGNUM|GEOMETRY|STRUCT(a INTEGER, b VARCHAR)|STRUCT("a.b" INTEGER, "q""x" UUID[], "select" BIT)|INTEGER[]|VARCHAR[][]
INTEGER[3]|INTERVAL[2][]|MAP(INTEGER, VARCHAR)|UNION(num INTEGER, str VARCHAR)""".replace("\n", "|").split("|")
WIDE = f"""({", ".join(f"c{i} {kind}" for i, kind in enumerate(TYPES))}, "a b" INTEGER NOT NULL DEFAULT 42, "select" VARCHAR DEFAULT 'it''s' NOT NULL,
    d DECIMAL(5, 2) DEFAULT 1.255, e INTEGER[] DEFAULT [1, 2], f TIMESTAMP DEFAULT now()::TIMESTAMP, g VARCHAR DEFAULT upper('x') || 'y', "Ünïcode" DATE)"""


def rows(con: Any, sql: str) -> list[Any]:
    return con.execute(sql).fetchall()  # type: ignore[no-any-return]


SAME = """select * from information_schema.columns where table_schema <> 'lake' order by all
select * from information_schema.tables where table_schema <> 'lake' order by all
select * from information_schema.schemata where schema_name <> 'lake' order by all
select * from information_schema.table_constraints order by all
select * from information_schema.views where table_schema <> 'lake' order by all
select * exclude (database_oid, schema_oid, table_oid, data_type_id) from duckdb_columns() where schema_name <> 'lake' order by all
select * exclude (database_oid, schema_oid, table_oid, estimated_size) from duckdb_tables() order by all
select * exclude (database_oid, schema_oid, table_oid) from duckdb_tables order by all
select * exclude (database_oid, schema_oid, table_oid) from duckdb_constraints() order by all
select database_name, schema_name, internal from duckdb_schemas() where schema_name <> 'lake' order by all
select database_name, internal from duckdb_databases() order by all
select view_name from duckdb_views() where schema_name <> 'lake' order by all
select count(*) from duckdb_types()
select count(*) from duckdb_indexes()
select count(*) from duckdb_sequences()
select count(*) from duckdb_functions() where not internal
select * from sqlite_master where type = 'table' order by all
select schemaname, tablename from pg_catalog.pg_tables order by all
select nspname from pg_namespace where nspname <> 'lake' order by all
select c.relname, a.attname, a.attnotnull, a.atthasdef, a.attnum from pg_catalog.pg_attribute a join pg_class c on a.attrelid = c.oid where relname in ('wide', 'T') order by all
select * from pragma_table_info('wide')
select * from pragma_show('memory.main.wide')
select * from pragma_table_info('s."T"')
select database_name from pragma_database_size()
select name from pragma_database_list order by all
from (show tables)
from (show tables from s)
select distinct name from (show all tables) where schema <> 'lake' order by all
select schema_name, current from (show schemas) where schema_name <> 'lake' order by all
from (show databases)
select t.table_name, c.column_name from information_schema.tables t join information_schema.columns c using (table_catalog, table_schema, table_name)
  where table_catalog = current_database() and table_schema = current_schema() order by all""".replace("\n  ", " ").splitlines()


def test_metadata_is_as_in_plain_duckdb(lake: lakelite.Connection) -> None:
    with duckdb.connect() as plain:
        for con in (lake, plain):
            con.execute(
                f'create schema s; create table wide {WIDE}; create table s."T" (a integer not null); create table gone (a integer); drop table gone'
            )
            con.execute('create or replace table s."T" (b varchar, c integer not null); create table "x y" as select 1 as one')
        for _ in range(2):
            for sql in SAME:
                assert rows(lake, sql) == rows(plain, sql), sql


DDL = """create schema s
create table p (k integer, v varchar not null default 'x', w decimal(5, 2), u integer, primary key (k), check (w > 0), unique (u))
create table s.q (a integer, b varchar, c integer, primary key (a, b), unique (c, b), check (a > 0 and c < 10))
create table r as select 1 as x, 'y' as y
comment on table p is 'the p'
comment on column p.v is 'it''s v'
create view vv as select k, upper(v) as uv from p where k > 1
create or replace view s.vw (one, two) as select a, b from s.q
comment on view vv is 'a view'
comment on column vv.uv is 'up'
alter table p add column z integer default 5
alter table p rename column u to uu
alter table r alter x set not null
alter table r add primary key (x)
insert into p (k, w, uu) values (1, 2, 3), (2, 3, 4)""".splitlines()
KEYS_AND_COMMENTS = """from information_schema.table_constraints order by all
from information_schema.key_column_usage order by all
from information_schema.constraint_column_usage order by all
from information_schema.check_constraints order by all
from information_schema.referential_constraints order by all
from information_schema.tables where table_schema <> 'lake' order by all
from information_schema.columns where table_schema <> 'lake' order by all
from information_schema.views where table_schema <> 'lake' order by all
select * exclude (database_oid, schema_oid, table_oid) from duckdb_tables() order by all
select * exclude (database_oid, schema_oid, table_oid) from duckdb_columns() where schema_name <> 'lake' order by all
select * exclude (database_oid, schema_oid, view_oid) from duckdb_views() where schema_name <> 'lake' and not internal order by all
select * exclude (database_oid, schema_oid, table_oid, constraint_index) from duckdb_constraints() order by all
from pg_catalog.pg_tables order by all
from pg_catalog.pg_views where schemaname <> 'lake' order by all
select conname, contype from pg_catalog.pg_constraint order by all
select relname, relkind, relnatts, relchecks from pg_class where relname in ('p', 'q', 'r', 'vv', 'vw') order by all
from pragma_table_info('p')
from pragma_table_info('s.q')
describe p
describe s.q
describe r""".splitlines()


def test_keys_comments_and_views_are_as_in_plain_duckdb(lake: lakelite.Connection) -> None:
    with duckdb.connect() as plain:
        for con in (lake, plain):
            for sql in DDL:
                con.execute(sql)
        for sql in KEYS_AND_COMMENTS:
            assert rows(lake, sql) == rows(plain, sql), sql


def test_the_names_of_constraints_are_shown(lake: lakelite.Connection) -> None:
    lake.execute("create table a (x integer not null, y integer constraint uy unique)")
    lake.execute(
        "create table b (x integer not null, y integer not null, constraint first check (x < y), check (x > 0), constraint pk primary key (y))"
    )
    shown = "select table_name, constraint_name, constraint_type from duckdb_constraints() where constraint_type <> 'NOT NULL' order by all"
    expected = [("a", "uy", "UNIQUE"), ("b", "b_x_check", "CHECK"), ("b", "first", "CHECK"), ("b", "pk", "PRIMARY KEY")]
    assert rows(lake, shown) == expected
    lake.execute("alter table a drop constraint uy; drop table b; create table c (x integer constraint single check (x > 1))")
    assert rows(lake, shown) == [("c", "single", "CHECK")]
    assert rows(lake, "select constraint_name from information_schema.check_constraints order by all") == [("a_x_not_null",), ("single",)]


def test_metadata_of_tables_with_a_default_that_tells_the_time(lake: lakelite.Connection) -> None:
    """now() is a macro of ours while a statement runs that asks for it: it must not get into the default."""
    lake.execute("create table t (a timestamptz default now())")
    with duckdb.connect() as plain:
        plain.execute("create table t (a timestamptz default now())")
        shown = "select column_default from information_schema.columns where table_name = 't'"
        lake.execute("begin")
        assert rows(lake, f"select now() is not null, ({shown})") == [(True, *rows(plain, shown)[0])]
        lake.execute("commit")
        assert rows(lake, shown) == rows(plain, shown)


def test_row_counts_stand_in_duckdb_tables(lake: lakelite.Connection) -> None:
    lake.execute("create table t as select range as a from range(5000); delete from t where a < 10; create schema s; create table s.t (a integer)")
    assert rows(lake, "select schema_name, estimated_size from duckdb_tables() order by all") == [("main", 4990), ("s", 0)]


def test_the_lake_and_its_views_are_listed_and_nothing_internal_is(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer, b varchar default 'x'); insert into t values (1, 'x')")
    lake.execute("insert into t values " + ", ".join(f"({i}, 'y')" for i in range(200)))
    lake.execute("insert into t select range, 'z' from range(5000); delete from t where a % 2 = 0; update t set b = 'w' where a = 3")
    rows(lake, "select count(*) from t at (version => 2), t")
    for view in VIEWS:
        rows(lake, f"from lake.{view}")
    for _ in range(5):  # until the file is held in memory
        lake.execute("delete from t where a = -1")
    assert rows(lake, "select table_name from information_schema.tables where table_schema = 'lake' order by all") == [
        (name,) for name in sorted(VIEWS)
    ]
    assert rows(lake, "select schema_name from information_schema.schemata where catalog_name = 'memory' order by all") == [("lake",), ("main",)]
    everything = ["information_schema.tables", "information_schema.columns", "information_schema.schemata", "information_schema.views"]
    everything += [f"duckdb_{kind}()" for kind in ("tables", "columns", "schemas", "databases", "constraints", "indexes", "types", "sequences")]
    everything += [
        "pg_class",
        "sqlite_master",
        "pragma_database_size()",
        "(show all tables)",
        "(show databases)",
        "(show schemas)",
        "pg_catalog.pg_views",
    ]
    everything += [
        "(from duckdb_views() where not internal)",
        "(from duckdb_functions() where not internal)",
        "duckdb_triggers()",
        "duckdb_tables",
        "duckdb_views",
    ]
    for source in everything:
        text = " ".join(str(row) for row in rows(lake, f"select x::varchar from {source} x"))
        for internal in ("lake_internal", "lake_names", "stage_", "scratch", "inline_1", "@", "lake_arrow"):
            assert internal not in text.replace("snapshots", ""), (source, internal)


NAMES = st.sampled_from([("main", "a"), ("main", "B c"), ("s", "a"), ("s", "Sel")])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["create", "replace", "drop", "insert"]), NAMES, st.integers(1, 3)),
        st.tuples(st.sampled_from(["begin", "commit", "rollback", "schema", "no schema"])),
    ),
    max_size=12,
)


@settings(max_examples=15)
@given(STEPS)
def test_metadata_follows_whatever_is_done(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    """A log of the tables and their rows is kept beside; what the transaction sees is compared with it after every step."""
    log: dict[tuple[str, str], list[int]] = {}  # table → its number of columns, and of rows
    schemas, before = {"main"}, None
    with lakelite.connect(tmp_path_factory.mktemp("lake") / "lake", autocommit=True) as con:
        for step in steps:
            match step:
                case ("create" | "replace" as verb, (schema, name), width) if schema in schemas and (verb == "replace" or (schema, name) not in log):
                    columns = ", ".join(f"c{i} integer" for i in range(width))
                    con.execute(f'create {"or replace " if verb == "replace" else ""}table "{schema}"."{name}" ({columns})')
                    log[schema, name] = [width, 0]
                case ("drop", key, _) if key in log:
                    con.execute('drop table "{}"."{}"'.format(*key))
                    del log[key]
                case ("insert", key, count) if key in log:
                    con.execute('insert into "{}"."{}" (c0) select range from range({})'.format(*key, count))
                    log[key][1] += count
                case ("schema",) if "s" not in schemas:
                    con.execute("create schema s")
                    schemas.add("s")
                case ("no schema",) if "s" in schemas:
                    con.execute("drop schema s cascade")
                    schemas.discard("s")
                    log = {key: value for key, value in log.items() if key[0] != "s"}
                case ("begin",) if before is None:
                    con.execute("begin")
                    before = {key: list(value) for key, value in log.items()}, set(schemas)
                case ("commit" | "rollback" as verb,) if before is not None:
                    con.execute(verb)
                    log, schemas = before if verb == "rollback" else (log, schemas)
                    before = None
            expected = sorted((*key, *value) for key, value in log.items())
            assert rows(con, "select schema_name, table_name, column_count, estimated_size from duckdb_tables() order by all") == expected
            counted = "select schema_name, table_name, (select count(*) from lake.columns c where c.table_id = t.table_id), row_count from lake.tables t order by all"
            assert rows(con, counted) == expected
            assert {name for (name,) in rows(con, "select schema_name from duckdb_schemas() where database_name = 'memory'")} == {*schemas, "lake"}
