"""Bad input: for each error path its class, what the message says, its place, a lake that stays as it was, and a connection that goes on."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lakelite

OURS = re.compile(
    r"lake_internal|lake_names|lake_target|lake_updated|lake_arrow|_lake_|stage_\d|inline_\d|sqlglot|sqlite|Traceback|column c\d|scratch",
    re.IGNORECASE,
)

# statement | class | place of the caret (line 1, column n), or - | words of the message, separated by ;;
STATEMENTS = """
selec 1 | ProgrammingError | 1 | selec ;; did you mean SELECT?
frobnicate t | ProgrammingError | 1 | frobnicate ;; a statement begins with
select a from t whre a = 1 | ProgrammingError | 22 | syntax error at or near "a"
select * frm t | ProgrammingError | 14 | syntax error at or near "t"
select a, from t where | ProgrammingError | 18 | syntax error
select (1 | ProgrammingError | 8 | never closed
select 1) | ProgrammingError | 9 | closes nothing
select 'abc | ProgrammingError | 8 | unterminated quoted string
select "abc | ProgrammingError | 8 | unterminated quoted identifier
select $$abc | ProgrammingError | 8 | unterminated dollar-quoted string
select 1 /* abc | ProgrammingError | 10 | unterminated comment
select sum(a) over (partition by) from t | ProgrammingError | 33 | syntax error
select * from tt | ProgrammingError | 15 | table "tt" does not exist ;; did you mean t?
select * from zzzzzz | ProgrammingError | 15 | table "zzzzzz" does not exist ;; SHOW TABLES
select * from s.uu | ProgrammingError | 15 | uu" does not exist ;; did you mean s.u?
select * from nos.u | ProgrammingError | 15 | schema "nos" does not exist ;; main, s
select * from lake.snapshotz | ProgrammingError | 15 | does not exist
select * from a.b.c.d | ProgrammingError | 15 | "a.b.c" does not exist ;; main, s
select aa from t | ProgrammingError | 8 | "aa" not found ;; Candidate bindings: "a"
select t.aa from t | ProgrammingError | 8 | "t" does not have a column named "aa"
select x.a from t | ProgrammingError | 8 | "x" not found
select nofunction(1) | ProgrammingError | 8 | nofunction does not exist
select a from t group by b | ProgrammingError | 8 | must appear in the GROUP BY
select sum(b) from t | ProgrammingError | 8 | sum(VARCHAR)
select a + 'x' from t | ProgrammingError | 10 | explicit type casts
select 1 limit -1 | ProgrammingError | 16 | cannot be negative
select columns('nope') from t | ProgrammingError | 8 | No matching columns
select * from range(1e30) | ProgrammingError | 15 | range(DOUBLE)
select a // 0 from t | DataError | - | Division by zero ;; TRY
select a % 0 from t | DataError | - | Division by zero
select (select a from t) | DataError | - | More than one row returned by a subquery
select cast('abc' as integer) | DataError | 8 | 'abc' to INT32
select 'abc'::date | DataError | 13 | invalid date
select date '2024-13-01' | DataError | 8 | out of range
select 200::tinyint | DataError | 11 | out of range
select 9223372036854775807 + 1 | DataError | - | Overflow in addition
select 2147483647::int * 2::int | DataError | - | Overflow in multiplication
select 12345.6::decimal(5,2) | DataError | 15 | out of range
select interval '1 foo' | DataError | - | foo
select 'x'::uuid | DataError | 11 | UUID
select '{'::json | DataError | 11 | Malformed JSON
select regexp_matches('a', '(') | DataError | - | missing )
select strptime('x', '%Y') | DataError | - | Could not parse string
select map([1, 1], [2, 3]) | DataError | - | Map keys must be unique
select error('my own') | DataError | - | my own
select * from t where b | DataError | 23 | 'one' to BOOL
insert into tt values (1) | ProgrammingError | 13 | table "tt" does not exist ;; did you mean t?
insert into nos.t values (1) | ProgrammingError | 13 | schema "nos" does not exist
insert into lake.tables values (1) | ProgrammingError | 13 | reserved
insert into t values (1) | ProgrammingError | - | 3 columns ;; 1 values
insert into t values (1, 'x', 1, 1) | ProgrammingError | - | 3 columns ;; 4 values
insert into t values (1, 'x', 1), (2, 'y') | ProgrammingError | - | 3 columns ;; 2 values
insert into t (a, b) values (1) | ProgrammingError | - | 1 value
insert into t select 1 | ProgrammingError | - | 3 columns ;; 1 values ;; BY NAME
insert into t (a, b) select 1 | ProgrammingError | - | 2 columns are listed ;; 1 values
insert into t (a, zz) values (1, 2) | ProgrammingError | - | no column "zz" ;; a, b, d
insert into t (a, zz) select 1, 2 | ProgrammingError | - | no column "zz" ;; a, b, d
insert into t by name select 1 as zz | ProgrammingError | - | no column "zz" ;; a, b, d
insert into t by name select 1 as a, 2 as "A" | ProgrammingError | - | twice
insert into t (a, a) values (1, 2) | ProgrammingError | 20 | "a" is named twice
insert into t values ('abc', 'x', 1) | DataError | - | 'abc' to INT32
insert into t select 'abc', 'x', 1 | DataError | - | 'abc' to INT32 ;; column a
insert into t values (3000000000, 'x', 1) | DataError | - | out of range
insert into t select 3000000000, 'x', 1 | DataError | - | out of range
insert into t values (1, 'x', 12345.6) | DataError | - | out of range
insert into t values (null, 'x', 1) | IntegrityError | - | NOT NULL constraint failed: t.a ;; DEFAULT
insert into t select null, 'x', 1 | IntegrityError | - | NOT NULL constraint failed: t.a ;; DEFAULT
insert into t values (1, 'x', 1), (null, 'x', 1) | IntegrityError | - | t.a
insert into t (b) values ('x') | IntegrityError | - | NOT NULL constraint failed: t.a
insert into t default values | IntegrityError | - | NOT NULL constraint failed: t.a
insert into t select range, 'x', 1 from range(2999999999, 3000000001) | DataError | - | out of range
insert into t values (1, 'x', 1) returning a | NotSupportedError | 34 | RETURNING ;; SELECT
insert into t values (1, 'x', 1) on conflict do nothing | NotSupportedError | 34 | ON CONFLICT ;; NOT EXISTS
insert or replace into t values (1, 'x', 1) | NotSupportedError | 8 | INSERT OR REPLACE ;; delete
insert into t at (version => 1) values (1, 'x', 1) | ProgrammingError | 15 | earlier version
insert overwrite t select zz from t | ProgrammingError | - | "zz"
insert overwrite tt select 1 | ProgrammingError | 18 | "tt" does not exist
insert overwrite t select 1 | ProgrammingError | - | 3 columns
insert overwrite t select null, 'x', 1 | IntegrityError | - | t.a
insert into t select * from s.uu | ProgrammingError | - | uu" does not exist ;; did you mean s.u?
update tt set a = 1 | ProgrammingError | 8 | "tt" does not exist
update t set zz = 1 | ProgrammingError | 14 | no column "zz" ;; a, b, d
update t set a = zz | ProgrammingError | 18 | "zz" not found
update t set a = 1 where zz = 1 | ProgrammingError | 26 | "zz" not found
update t set a = 1, a = 2 | ProgrammingError | 21 | set twice
update t set a = null | IntegrityError | - | NOT NULL constraint failed: t.a
update t set a = default | IntegrityError | - | NOT NULL constraint failed: t.a
update t set a = 'abc' | DataError | - | 'abc' to INT32
update t set a = a * 2000000000 | DataError | - | Overflow
update t set d = 99999 | DataError | - | DECIMAL(5,2)
update t set a = (select a from t) | DataError | - | More than one row
update t set a = 1 from s.u | NotSupportedError | 20 | UPDATE … FROM ;; subquery
update t set a = 1 returning a | NotSupportedError | 20 | RETURNING
update t set (a, b) = (1, 'x') | NotSupportedError | 14 | SET a = …
update t at (version => 1) set a = 1 | ProgrammingError | 10 | earlier version
delete from tt | ProgrammingError | 13 | "tt" does not exist
delete from t where | ProgrammingError | 20 | expected an expression
delete from t where zz = 1 | ProgrammingError | 21 | "zz" not found
delete from t where a = 'abc' | DataError | 25 | 'abc' to INT32
delete from t where a in (select zz from s.u) | ProgrammingError | 34 | "zz"
delete from t where a // 0 = 1 | DataError | - | Division by zero
delete from t using s.u | NotSupportedError | 15 | DELETE … USING ;; EXISTS
delete from t where a = 1 limit 1 | ProgrammingError | 27 | limit
with x as (select 1) delete from t where a in (select y from x) | ProgrammingError | 55 | "y"
with x as (delete from t returning a) select * from x | NotSupportedError | 12 | DELETE inside WITH
truncate tt | ProgrammingError | 10 | "tt" does not exist
create table t (a int) | ProgrammingError | 14 | already exists ;; OR REPLACE
create table T (a int) | ProgrammingError | 14 | "t" already exists
create table nos.v (a int) | ProgrammingError | 14 | schema "nos" does not exist ;; main, s
create table v () | ProgrammingError | - | at least one column
create table v (a int, A int) | ProgrammingError | - | already exists
create table v (a nosuchtype) | ProgrammingError | 19 | nosuchtype does not exist
create table v (a int default zz) | ProgrammingError | 31 | DEFAULT
create table v (a int default (select max(a) from t)) | ProgrammingError | - | DEFAULT ;; subqueries
create table v (a int primary key) | NotSupportedError | - | PRIMARY KEY ;; leave the constraint out
create table v (a int, primary key (a)) | NotSupportedError | - | PRIMARY KEY
create table v (a int unique) | NotSupportedError | - | UNIQUE ;; leave the constraint out
create table v (a int check (a > 0)) | NotSupportedError | - | CHECK ;; leave the constraint out
create table v (a int references t(a)) | NotSupportedError | - | FOREIGN KEY ;; leave the constraint out
create table v (a int, foreign key (a) references t (a)) | NotSupportedError | - | FOREIGN KEY
create table v (a int, b int generated always as (a + 1)) | NotSupportedError | - | generated columns ;; compute
create table v (a int, b int as (a + 1)) | NotSupportedError | - | generated columns
create table v (a varchar collate nocase) | NotSupportedError | - | COLLATE ;; in the query
create table v as select 'a' collate nocase as a | NotSupportedError | - | COLLATE
create table v (a variant) | NotSupportedError | - | VARIANT ;; JSON
create table v as select 1::variant as a | NotSupportedError | - | VARIANT
create table v (_row_id int) | ProgrammingError | - | "_row_id" is reserved ;; another name
create table v as select 1 as "_ROW_ID" | ProgrammingError | - | is reserved
create table v as select zz from t | ProgrammingError | 26 | "zz"
create table v as select * from tt | ProgrammingError | 33 | "tt" does not exist
create table v (x, y) as select 1 | ProgrammingError | - | more column names
create table v as select cast(b as int) as a from t | DataError | 26 | 'one' to INT32
create table v like t | NotSupportedError | 16 | LIKE ;; WITH NO DATA
create table v (like t) | NotSupportedError | 17 | LIKE ;; WITH NO DATA
create table v (a int) partitioned by (a) | NotSupportedError | 24 | PARTITIONED BY
create table v (a int) with (x = 1) | NotSupportedError | 24 | WITH (options)
create or replace table t as select zz from t | ProgrammingError | 37 | "zz"
create or replace table t (a int primary key) | NotSupportedError | - | PRIMARY KEY
create table lake.v (a int) | ProgrammingError | 14 | schema "lake" is reserved
create table memory.v (a int) | ProgrammingError | 14 | schema "memory" is reserved
create table information_schema.v (a int) | ProgrammingError | 14 | is reserved
create table a.b.v (a int) | ProgrammingError | 17 | at most two parts
create table "" (a int) | ProgrammingError | 14 | at least one character
create table v ("" int) | ProgrammingError | 17 | zero-length
create table v as select 1 as "" | ProgrammingError | 31 | zero-length
create table select (a int) | ProgrammingError | 14 | double quotes
create schema lake | ProgrammingError | - | "lake" is reserved ;; another name
create schema memory | ProgrammingError | - | "memory" is reserved
create schema pg_catalog | ProgrammingError | - | is reserved
create schema temp | ProgrammingError | - | is reserved
create schema "main@3" | ProgrammingError | - | is reserved
create schema "" | ProgrammingError | 15 | at least one character
create schema main | ProgrammingError | - | already exists ;; IF NOT EXISTS
create schema S | ProgrammingError | - | already exists
create or replace schema s | NotSupportedError | 1 | CREATE OR REPLACE SCHEMA
drop schema nos | ProgrammingError | 1 | "nos" does not exist ;; main, s
drop schema main | ProgrammingError | - | main cannot be dropped
drop schema s | ProgrammingError | - | still holds 1 table ;; CASCADE
drop table tt | ProgrammingError | 12 | "tt" does not exist ;; did you mean t?
drop table t, tt | ProgrammingError | 15 | "tt" does not exist
drop table s | ProgrammingError | 12 | "s" does not exist
drop table t cascade | NotSupportedError | 14 | CASCADE
drop view v | NotSupportedError | 6 | DROP VIEW
alter table t add column z int | NotSupportedError | 1 | ALTER TABLE ;; CREATE TABLE … AS
merge into t using s.u on t.a = u.k when matched then delete | NotSupportedError | 1 | MERGE INTO ;; UPDATE
create view v as select 1 | NotSupportedError | 8 | CREATE VIEW ;; CREATE TABLE … AS
create temp table v (a int) | NotSupportedError | 8 | CREATE TEMP TABLE ;; WITH
create index i on t (a) | NotSupportedError | 8 | CREATE INDEX ;; no indexes
create unique index i on t (a) | NotSupportedError | 15 | CREATE INDEX
create sequence q | NotSupportedError | 8 | CREATE SEQUENCE ;; uuid()
create macro m(a) as a | NotSupportedError | 8 | CREATE MACRO ;; query
create type m as enum ('a') | NotSupportedError | 8 | CREATE TYPE ;; ENUM
comment on table t is 'x' | NotSupportedError | 1 | COMMENT ON
attach 'x' as y | NotSupportedError | 1 | ATTACH ;; read_parquet
detach y | NotSupportedError | 1 | DETACH
use s | NotSupportedError | 1 | USE ;; schema.table
install json | NotSupportedError | 1 | INSTALL
load json | NotSupportedError | 1 | LOAD
pragma table_info('t') | NotSupportedError | 1 | PRAGMA
call pragma_version() | NotSupportedError | 1 | CALL
prepare p as select 1 | NotSupportedError | 1 | PREPARE ;; parameters
checkpoint | NotSupportedError | 1 | CHECKPOINT ;; COMMIT
savepoint x | NotSupportedError | 1 | SAVEPOINT ;; undoes only itself
release x | NotSupportedError | 1 | RELEASE
rollback to x | NotSupportedError | 1 | ROLLBACK TO SAVEPOINT
optimize t | NotSupportedError | 1 | OPTIMIZE ;; INSERT OVERWRITE
restore table t to version as of 1 | NotSupportedError | 1 | RESTORE ;; INSERT OVERWRITE
check lake | NotSupportedError | 1 | CHECK LAKE
backup to 'x' | NotSupportedError | 1 | BACKUP
export database 'x' | NotSupportedError | 1 | EXPORT ;; COPY
import database 'x' | NotSupportedError | 1 | IMPORT ;; COPY
create branch b | NotSupportedError | 1 | CREATE BRANCH ;; VERSION
use branch b | NotSupportedError | 1 | USE BRANCH
merge branch b | NotSupportedError | 1 | MERGE BRANCH
explain delete from t | NotSupportedError | 9 | EXPLAIN DELETE ;; SELECT
show create table t | NotSupportedError | 1 | SHOW CREATE TABLE ;; DESCRIBE
select * from t at (version => 999) | ProgrammingError | 15 | no version 999 ;; DESCRIBE HISTORY
select * from t at (version => -1) | ProgrammingError | 15 | no version -1
select * from t at (version => 99999999999999999999) | ProgrammingError | 15 | no version 9999
select * from t at (version => 1.5) | DataError | 15 | a whole number
select * from t at (version => 'abc') | DataError | 15 | a whole number
select * from t at (version => null) | DataError | 15 | NULL
select * from t at (version => a) | ProgrammingError | - | "a"
select * from t at (version => 0) | ProgrammingError | 15 | "t" does not exist
select * from t for version as of 999 | ProgrammingError | 15 | no version 999
select * from tt at (version => 1) | ProgrammingError | 15 | "tt" does not exist
select * from t at (timestamp => timestamp '2000-01-01') | ProgrammingError | 15 | younger ;; DESCRIBE HISTORY
select * from t for timestamp as of '1999-12-31 23:59' | ProgrammingError | 15 | younger
select * from t for timestamp as of 'yesterday' | DataError | - | "yesterday"
select * from t at (foo => 1) | ProgrammingError | 21 | syntax error
select * from t at (branch => 'b') | NotSupportedError | 17 | BRANCH ;; VERSION
select * from (select 1) at (version => 1) | ProgrammingError | 26 | syntax error
select * from t as x at (version => 1) | ProgrammingError | 22 | directly behind the name
select * from lake_internal.main.vectors | ProgrammingError | - | reserved ;; SHOW TABLES
set nosuch = 1 | NotSupportedError | - | no setting nosuch ;; inline_rows ;; threads
reset nosuch | NotSupportedError | - | no setting nosuch
set default_collation = 'nocase' | NotSupportedError | - | no setting default_collation
set enable_external_access = false | NotSupportedError | - | no setting
set inline_rows = 'abc' | DataError | - | inline_rows has to be a whole number
set inline_rows = -1 | DataError | - | inline_rows cannot be -1
set inline_rows = 1.5 | DataError | - | whole number
set statement_bytes = 0 | DataError | - | statement_bytes cannot be 0
set retention_hours = 99999999999999999999999 | DataError | - | cannot be
set threads = 'abc' | DataError | - | 'abc'
set threads = -5 | ProgrammingError | - | at least 1 thread
set memory_limit = 'abc' | ProgrammingError | - | Memory
set timezone = 'Nowhere/Here' | NotSupportedError | - | Nowhere/Here
set isolation_level = 'serializable' | NotSupportedError | - | serializable is not supported yet ;; write serializable
set isolation_level = 'snapshot' | NotSupportedError | - | snapshot is not supported yet
set isolation_level = 'foo' | ProgrammingError | - | no isolation level "foo" ;; write serializable
set inline_rows | ProgrammingError | 16 | expected = or TO
show nosuch | ProgrammingError | - | neither a setting nor a table ;; SHOW TABLES
show tables from nos | ProgrammingError | 1 | "nos" does not exist ;; main, s
describe tt | ProgrammingError | 10 | "tt" does not exist
describe history tt | ProgrammingError | 18 | "tt" does not exist
describe history t limit x | ProgrammingError | 26 | whole number
describe t at (version => 1) | NotSupportedError | 12 | earlier version ;; SELECT
copy tt to 'x.csv' | ProgrammingError | - | "tt" does not exist
copy t (zz) to 'x.csv' | ProgrammingError | - | "zz"
copy (select zz from t) to 'x.csv' | ProgrammingError | 14 | "zz"
copy t to 'x.csv' (nosuch 1) | NotSupportedError | - | "nosuch"
copy t to 'x.abc' (format abc) | ProgrammingError | - | abc
copy t to '/nonexistent/folder/x.csv' | OperationalError | - | /nonexistent/folder/x.csv
copy t to stdout | NotSupportedError | 11 | STDOUT ;; path
copy tt from 'x.csv' | ProgrammingError | 6 | "tt" does not exist
copy t from 'none.csv' | OperationalError | - | none.csv
copy t from 'none.parquet' | OperationalError | - | none.parquet
copy t from 'none.json' | OperationalError | - | none.json
copy t from 'x.csv' (format xlsx) | NotSupportedError | - | xlsx ;; csv, parquet and json
copy t from 'x.csv' (nosuch 1) | ProgrammingError | - | nosuch
copy t (a, a) from 'x.csv' | ProgrammingError | 13 | "a" is named twice
copy t from x | ProgrammingError | 13 | single quotes
select * from 'none.csv' | OperationalError | - | none.csv
select * from read_parquet('none.parquet') | OperationalError | 15 | none.parquet
insert into t select * from read_csv('none.csv') | OperationalError | - | none.csv
"""

# The same, for statements that mean something else inside a transaction.
OUTSIDE = """
vacuum tt | ProgrammingError | 8 | "tt" does not exist
vacuum retain -1 hours | ProgrammingError | 15 | hours, 0 or more
vacuum full | NotSupportedError | 8 | VACUUM [t] [RETAIN n HOURS]
begin isolation level snapshot | NotSupportedError | - | snapshot is not supported yet ;; write serializable
begin isolation level serializable | NotSupportedError | - | serializable is not supported yet
begin isolation level chaos | NotSupportedError | 23 | CHAOS
begin deferred | ProgrammingError | 7 | READ ONLY
commit and chain | NotSupportedError | 1 | BEGIN
"""
INSIDE = """
begin | ProgrammingError | - | already open ;; COMMIT or ROLLBACK
vacuum | ProgrammingError | - | inside a transaction ;; COMMIT or ROLLBACK
commit and chain | NotSupportedError | 1 | BEGIN
"""


def cases(text: str) -> list[tuple[str, ...]]:
    return [tuple(part.strip() for part in line.split(" | ")) for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakelite.Connection]:
    """A lake with rows in files and inline, with deletions; each test leaves it as it was."""
    con = lakelite.connect(str(tmp_path_factory.mktemp("bad") / "lake"), autocommit=True)
    con.execute(
        "create table t (a integer not null, b varchar default 'x', d decimal(5, 2)); create schema s; create table s.u (k bigint, v varchar)"
    )
    con.execute("insert into t values (1, 'one', 1.5), (2, 'two', null); insert into s.u select range, 'v' || range from range(2000)")
    con.execute("insert into t values (3, 'three', 0); delete from t where a = 3; delete from s.u where k < 5")
    yield con
    con.close()


def state(con: lakelite.Connection) -> tuple[Any, ...]:
    """Everything that a statement could have changed: the version, the schemas, the tables with their columns, and their rows."""
    version = con.execute("describe history limit 1").fetchall()[0][0]
    tables = con.execute("show all tables").fetchall()
    hashes = [f"select {i}, count(*), bit_xor(hash(x)) from {quoted(t[1])}.{quoted(t[2])} x" for i, t in enumerate(tables)]
    rows = con.execute(" union all ".join([*hashes, "select -1, 0, 0"]) + " order by 1").fetchall()
    return version, con.execute("show schemas").fetchall(), tables, rows


_known: dict[tuple[int, bool], tuple[Any, ...]] = {}


def known_state(con: lakelite.Connection, inside: bool) -> tuple[Any, ...]:
    """The state before a statement, which is the same for all tests on a connection: in a transaction, with its own changes."""
    key = (id(con), inside)
    if key not in _known:
        _known[key] = state(con)
    return _known[key]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def refused(con: lakelite.Connection, sql: str, kind: str, place: str, words: str, parameters: Any = None) -> lakelite.Error:
    """Runs `sql` and checks the error and that nothing changed."""
    inside = con.in_transaction
    before = known_state(con, inside)
    with pytest.raises(lakelite.Error) as caught:
        con.execute(sql, parameters).fetchall()
    error = caught.value
    text = str(error)
    assert type(error).__name__ == kind, text
    for word in words.split(" ;; "):
        assert word in text
    assert (error.position and f"{error.position.line}:{error.position.column}") == (None if place == "-" else f"1:{place}"), text
    assert ours(text) <= ours(sql), f"names of our own objects in: {text}"
    assert error.__cause__ is None or isinstance(error.__cause__, duckdb.Error | sqlite3.Error | OSError | lakelite.Error)
    assert con.in_transaction == inside
    assert state(con) == before
    return error


def ours(text: str) -> set[str]:
    return {found.lower() for found in OURS.findall(text)}


@pytest.mark.parametrize("case", cases(STATEMENTS) + cases(OUTSIDE), ids=lambda case: case[0])
def test_a_wrong_statement_is_refused_and_changes_nothing(con: lakelite.Connection, case: tuple[str, ...]) -> None:
    refused(con, *case)
    assert not con.in_transaction


def test_in_a_transaction_each_undoes_only_itself(con: lakelite.Connection) -> None:
    before = state(con)
    con.execute("begin")
    try:
        con.execute("insert into t values (10, 'ten', 1); create table own (a int); insert into own values (7)")
        for case in cases(STATEMENTS) + cases(INSIDE):
            refused(con, *case)
        con.execute("update t set b = 'TEN' where a = 10")
        assert con.execute("select b from t where a = 10 union all from own").fetchall() == [("TEN",), ("7",)]
    finally:
        con.rollback()
    assert state(con) == before


@pytest.mark.parametrize(
    ("sql", "parameters", "kind", "words"),
    [
        ("select ?", None, "ProgrammingError", "1 parameters, 0 values"),
        ("select ?", [], "ProgrammingError", "1 parameters, 0 values"),
        ("select ?", [1, 2], "ProgrammingError", "1 parameters, 2 values"),
        ("select 1", [1], "ProgrammingError", "0 parameters, 1 values"),
        ("select $2", [1], "ProgrammingError", "2 parameters, 1 values"),
        ("select ?, $1", [1], "ProgrammingError", "one style"),
        ("select ?, $a", {"a": 1}, "ProgrammingError", "one style"),
        ("select $a", {}, "ProgrammingError", "no value was given for the parameter a ;; mapping"),
        ("select $a, $A", {"a": 1}, "ProgrammingError", "the parameter A"),
        ("select $a", [1], "ProgrammingError", "has a name ;; give a mapping"),
        ("select ?", {"a": 1}, "ProgrammingError", "have no names ;; give a sequence"),
        ("select ?", "x", "ProgrammingError", 'a sequence or a mapping ;; ("value",)'),
        ("select ?", b"x", "ProgrammingError", "a sequence or a mapping"),
        ("select ?", 5, "ProgrammingError", "a sequence or a mapping"),
        ("select ?", {1, 2}, "ProgrammingError", "a sequence or a mapping"),
        ("select ?", [object()], "NotSupportedError", "type '<class 'object'>'"),
        ("select ?", [2**200], "DataError", "too large"),
        ("select ?", ["\ud800"], "DataError", "surrogate"),
        ("select ?::int", ["abc"], "DataError", "'abc' to INT32"),
        ("insert into t values (?, ?, ?)", ["abc", "x", 1], "DataError", "'abc' to INT32"),
        ("insert into t values (?, ?, ?)", [2**40, "x", 1], "DataError", "out of range"),
        ("insert into t values (?, ?, ?)", [None, "x", 1], "IntegrityError", "t.a"),
        ("insert into t values (?, ?)", [1, "x"], "ProgrammingError", "3 columns"),
        ("delete from t where a = ?", ["abc"], "DataError", "'abc' to INT32"),
        ("update t set a = ?", [None], "IntegrityError", "t.a"),
        ("copy t from ?", [5], "ProgrammingError", "path of COPY"),
        ("copy t from ?", [None], "ProgrammingError", "path of COPY"),
        ("copy t from ?", ["none.csv"], "OperationalError", "none.csv"),
    ],
)
def test_wrong_parameters_are_refused(con: lakelite.Connection, sql: str, parameters: Any, kind: str, words: str) -> None:
    error = state_kept(con, lambda: con.execute(sql, parameters).fetchall())
    assert type(error).__name__ == kind, error
    assert all(word in str(error) for word in words.split(" ;; ")), error


@pytest.mark.parametrize(
    "sql", ["create table v (a int default ?)", "set inline_rows = ?", "select :a", "select * from ?", "select [1, 2][:a]", "select {b: :a}"]
)
def test_a_parameter_where_none_can_stand_is_refused(con: lakelite.Connection, sql: str) -> None:
    for parameters in ([1], {"b": 1}):
        assert isinstance(state_kept(con, lambda: con.execute(sql, parameters)), lakelite.ProgrammingError)  # noqa: B023


def state_kept(con: lakelite.Connection, call: Callable[[], object]) -> lakelite.Error:
    """The error of `call`, which leaves the lake as it was, and the connection usable."""
    before = state(con)
    with pytest.raises(lakelite.Error) as caught:
        call()
    assert not ours(str(caught.value)), caught.value
    assert state(con) == before
    return caught.value


# Files.


def test_a_file_that_is_no_parquet_file(con: lakelite.Connection, tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    con.execute("copy t to ?", [str(good)])
    content = good.read_bytes()
    for name, damaged in {
        "text": b"hello, world\n" * 9,
        "empty": b"",
        "cut": content[:-20],
        "head": content[:9],
        "torn": content[:40] + bytes(60) + content[100:],
    }.items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(damaged)
        for sql in (f"copy t from '{path}'", f"insert into t select * from read_parquet('{path}')", f"create table v as from '{path}'"):
            assert isinstance(state_kept(con, lambda: con.execute(sql)), lakelite.DataError | lakelite.OperationalError)  # noqa: B023
    assert con.execute(f"copy t from '{good}'").rowcount == 2
    con.execute("delete from t; insert into t values (1, 'one', 1.5), (2, 'two', null)")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1,one,1.5\nabc,two,2\n", "abc"),
        ("1,one,1.5\n2,two\n", "2"),
        ("1,one,1.5\n2,two,2,2\n", "2"),
        ("1,one,1.5\n2,two,99999\n", "99999"),
        (",one,1.5\n", "NOT NULL constraint failed: t.a"),
    ],
)
def test_a_csv_file_with_a_bad_row(con: lakelite.Connection, tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    error = state_kept(con, lambda: con.execute(f"copy t from '{path}' (header false)"))
    assert isinstance(error, lakelite.DataError | lakelite.IntegrityError), error
    assert words in str(error)


def test_files_and_columns_of_copy(con: lakelite.Connection, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1,x,1\n")
    assert "zz" in str(state_kept(con, lambda: con.execute(f"copy t (a, zz) from '{path}'")))
    assert "nosuch" in str(state_kept(con, lambda: con.execute(f"copy t from '{path}' (nosuch 1)")))
    json = tmp_path / "rows.json"
    json.write_text('{"a": 1, "b": "x"\n')
    assert isinstance(state_kept(con, lambda: con.execute(f"copy t from '{json}'")), lakelite.DataError)
    for target in (tmp_path, tmp_path / "no" / "x.parquet", path / "x.csv"):
        assert isinstance(state_kept(con, lambda: con.execute("copy t to ?", [str(target)])), lakelite.OperationalError)  # noqa: B023
    assert path.read_text() == "1,x,1\n"


# Places.


def test_what_is_no_lake_is_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    file = tmp_path / "file"
    file.write_text("mine")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with sqlite3.connect(foreign / "catalog.sqlite") as other:
        other.execute("create table mine (a)")
    other.close()
    garbage = tmp_path / "garbage"
    garbage.mkdir()
    (garbage / "catalog.sqlite").write_bytes(b"no database at all " * 99)
    before = contents(tmp_path)
    for place in (folder, file, file / "below", foreign, garbage):
        with pytest.raises(lakelite.CannotOpen) as caught:
            lakelite.connect(place)
        assert str(place if place.name != "below" else file) in str(caught.value)
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(lakelite.CannotOpen, match="there is no lake"):
            lakelite.connect(tmp_path / "none", **options)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_options_of_connect_that_do_not_exist(tmp_path: Path) -> None:
    for level, kind in (("snapshot", lakelite.NotSupportedError), ("serializable", lakelite.NotSupportedError), ("chaos", lakelite.ProgrammingError)):
        with pytest.raises(kind, match=level):
            lakelite.connect(tmp_path / "x", isolation=level)
    with pytest.raises(TypeError):
        lakelite.connect(tmp_path / "x", branch="main")
    assert contents(tmp_path) == {}


# Names.

NAMES = [
    "../x", "/etc/passwd", "a/b", "a\\b", "..", ".", "x.parquet", "a.b", 'a"b', "it's", "'; drop table t; --", " ", " a ", "a\tb", "a\nb", "select", "table",
    "memory", "lake", "main", "system", "temp", "😀", "Ünïcode", "e\u0301", "\u202e", "n" * 255, "n" * 300, "%s", "{0}", "$1", "?", ":a", "-- x",
    "/* x", "*", "main@3", "rowid", "file_index", "_lake_source", "lake_target", "inline_1", "vectors", "range", "t AS x", "-", "0", "1e5", "null", "\ufeff",
]  # fmt: skip


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakelite.Connection]:
    """A lake in a folder of its own; each test drops what it made."""
    con = lakelite.connect(tmp_path_factory.mktemp("names") / "lake", autocommit=True)
    yield con
    con.close()


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name_is_only_a_name(named: lakelite.Connection, name: str) -> None:
    """As a table, a column, a schema; nothing outside of the lake's own folders and no file is named after it."""
    con, n = named, quoted(name)
    con.execute(f"create table {n} ({n} integer, other integer); insert into {n} values (1, 1)")
    assert con.last_commit is not None
    version = con.last_commit.snapshot_id
    con.execute(f"insert into {n} ({n}) select range + 2 from range(3)")
    con.execute(f"update {n} set {n} = {n} + 10 where {n} = 2")
    con.execute(f"delete from {n} where {n} in (select max({n}) - 9 from {n})")
    con.execute(f"begin; create or replace table {n} as select {n}, other from {n}; update {n} as {n} set other = {n}.{n}; commit")
    assert con.execute(f"select x.{n} from {n} as x order by all").fetchall() == [(1,), (4,), (12,)]
    assert con.execute(f"select * from {n} at (version => {version})").description[0][0] == name
    assert con.execute("show tables").fetchall() == [(name,)]
    s = quoted(name.replace("@", "") + ("2" if name.lower() in {"memory", "lake", "main", "system", "temp", "main@3"} else ""))
    con.execute(f"create schema {s}; create table {s}.{n} ({n} integer); insert into {s}.{n} values (7)")
    assert con.execute(f"select y.* from {s}.{n} y join main.{n} x on x.other <> y.{n}").fetchall() == [(7,)] * 3
    assert con.execute(f"update {s}.{n} set {n} = 8 where {s}.{n}.{n} = 7").rowcount == 1
    con.execute(f"drop schema {s} cascade; drop table {n}")
    root = con._session._opened.paths.root
    assert {path.name for path in root.parent.iterdir()} == {"lake"}
    assert all(re.fullmatch(r"[a-z0-9.-]+", path.name) for path in root.rglob("*"))


def test_names_that_differ_only_in_case_are_the_same(lake: lakelite.Connection) -> None:
    lake.execute("create table Abc (Def integer); insert into ABC (DEF) values (1); create schema Sch")
    assert lake.execute('select "dEF" from "aBC"').description[0][0] == "Def"
    for sql in ("create table aBC (x int)", "create schema SCH", "create table x (a int, A int)"):
        state_kept(lake, lambda: lake.execute(sql))  # noqa: B023


# Sizes.


def test_a_statement_just_below_the_limit_runs_and_above_it_is_refused(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer, b varchar)")
    values = ",".join(f"({i},'{'x' * 60}')" for i in range(14_000))
    assert 900_000 < len(values) < 1_000_000
    assert lake.execute(f"insert into t values {values}").rowcount == 14_000
    assert lake.execute("select count(*), sum(a) from t").fetchall() == [(14_000, 14_000 * 13_999 // 2)]
    text = "é" * 499_990
    assert lake.execute(f"select length('{text}')").fetchall() == [(499_990,)]
    for sql in (f"insert into t values {values},{values}", f"select length('{text}{'x' * 20}')", "select 1 -- " + "x" * 1_000_001):
        error = state_kept(lake, lambda: lake.execute(sql))  # noqa: B023
        assert isinstance(error, lakelite.ProgrammingError)
        assert "statement_bytes" in str(error)
        assert len(str(error)) < 1_000


def test_deep_nesting(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer); insert into t values (1), (2)")
    for form in (
        "select {}1{}",
        "delete from t where {}a{} = 5",
        "update t set a = {}a{}",
        "insert into t select {}a{} from t where a < 0",
        "insert into t values ({}3{})",
    ):
        lake.execute(form.format("(" * 400, ")" * 400))
        for deep in (2_000, 100_000):
            error = state_kept(lake, lambda: lake.execute(form.format("(" * deep, ")" * deep)))  # noqa: B023
            assert isinstance(error, lakelite.ProgrammingError)
            assert "split it up" in str(error)
    assert lake.execute("select a from t order by a").fetchall() == [(1,), (2,), (3,)]
    for text in ("- " * 5_000 + "1", "1" + " + 1" * 5_000, "case when true then " * 1_500 + "1" + " end" * 1_500, "not " * 5_000 + "true"):
        assert isinstance(state_kept(lake, lambda: lake.execute("select " + text)), lakelite.ProgrammingError)  # noqa: B023


def test_a_long_list(lake: lakelite.Connection) -> None:
    lake.execute("create table t as select range as a from range(5000)")
    inside = ",".join(str(i) for i in range(2, 20_000, 2))
    assert lake.execute(f"select count(*) from t where a in ({inside})").fetchall() == [(2_499,)]
    assert lake.execute(f"delete from t where a in ({inside})").rowcount == 2_499
    assert lake.execute("select count(*), min(a) from t").fetchall() == [(2_501, 0)]


@pytest.mark.parametrize(
    "sql", ["\0", "select 1\0", "select '\0'", 'create table "a\0b" (a int)', "select '\ud800'", "/*", "select 'x", ")", "(", "select $$x", "'"]
)
def test_characters_that_are_no_text(con: lakelite.Connection, sql: str) -> None:
    assert isinstance(state_kept(con, lambda: con.execute(sql)), lakelite.ProgrammingError)


@pytest.mark.parametrize("sql", ["", ";", " ; ;\n", "-- nothing", "/* nothing */"])
def test_nothing_to_do(con: lakelite.Connection, sql: str) -> None:
    assert con.execute(sql).description is None


def test_the_place_counts_lines(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.ProgrammingError) as caught:
        con.execute("select a\nfrom t\nwhere  aaa = 1")
    assert caught.value.position == lakelite.errors.Position(3, 8, "where  aaa = 1")
    assert str(caught.value).splitlines()[-1].index("^") == str(caught.value).splitlines()[-2].index("aaa")


def test_an_error_in_a_script_stops_there(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.ProgrammingError, match="nosuch"):
        con.execute("create table made (a int); select * from nosuch; drop table t")
    assert con.execute("show tables").fetchall() == [("made",), ("t",), ("u",)]
    con.execute("drop table made")


def test_read_only(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("create table t as select 1 as a")
    with lakelite.connect(tmp_path / "lake", read_only=True, autocommit=True) as con:
        for sql in (
            "insert into t values (2)",
            "delete from t",
            "create table u (a int)",
            "drop table t",
            "truncate t",
            "create schema s",
            "begin; insert into t values (2)",
        ):
            with pytest.raises(lakelite.OperationalError, match="read-only"):
                con.execute(sql)
            con.rollback()
        assert con.execute("from t").fetchall() == [(1,)]
