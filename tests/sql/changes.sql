-- Changes that lakelite and plain DuckDB do alike, run by test_language.py: after each line beginning with -- a script.

-- insert values
insert into t values (1, 'a', 1.5), (2, default, null);
insert into t values (3, 'c', 3), (4, 'd', 4),;

-- insert into a list of columns
insert into t (c, a) values (1.5, 1), (2.5, 2);
insert into t (A) values (3);
insert into t (b) select 'x';

-- insert default
insert into t values (default, default, default);
insert into t default values;
insert into t (a, b) values (1 + 1, default);

-- insert expressions
insert into t values ((select 40 + 2), upper('x') || 'y', 1 / 4), (length('abc'), null, -1e3);

-- insert select
insert into t select range, 'r' || range, range / 3 from range(5);
insert into t select a + 10, b, c from t;
insert into t from t where a = 1;

-- insert select with casts
insert into t select '12', 34, '5.5';
insert into t select 1.6, true, 2;
insert into t values ('12', 34, '5.5'), (1.6, true, 2);

-- insert by name
insert into t by name select 1.5 as c, 7 as A;
insert into t by name select 'q' as b;
insert into t by position select 1, 'x', 2;

-- insert with a CTE
with x as (select 5 as n) insert into t select n, 'cte', n from x;
insert into t with y as (select 6 as n) select n, 'in', n from y;

-- insert with a parenthesis
insert into t (select 1, 'p', 2);
insert into t ((values (2, 'q', 3)));
insert into t (a, b) (select 3, 'r');

-- insert table
insert into t values (1, 'a', 1);
insert into t table t;
insert into t from t select a + 1, b, c;
insert into u (v) select b from t;

-- insert from set operations
insert into t select 1, 'a', 2 union all select 2, 'b', 3;
insert into t (select 3, 'c', 4) union (select 4, 'd', 5) order by 1 desc limit 1;

-- insert many
insert into t select range, 'many', 0.5 from range(5000);
delete from t where a % 3 = 1;
update t set b = 'less' where a % 3 = 0 and a > 4000;

-- delete
insert into t select range, 'x', range from range(20);
delete from t where a > 15;
delete from t as x where x.a between 3 and 5;
delete from main.t where t.a = 1;

-- delete all
insert into t select range, 'x', range from range(20);
delete from t;
insert into t values (1, 'after', 1);

-- delete nothing
insert into t values (1, 'a', 1);
delete from t where false;
delete from t where a = null;
delete from t where b is null;

-- delete by subquery
insert into t select range, 'x', range from range(20);
insert into u values (3, 'v'), (4, null);
delete from t where a in (select k from u);
delete from t x where exists (select 1 from t y where y.a = x.a + 1 and y.a > 10);

-- delete with a CTE
insert into t select range, 'x', range from range(20);
with big as (select max(a) as m from t) delete from t where a = (select m from big);

-- delete by a window
insert into t select range % 5, 'x', range from range(20);
delete from t where c in (select c from (select c, row_number() over (partition by a order by c) as n from t) where n > 1);

-- update
insert into t select range, 'x', range from range(20);
update t set b = 'y' where a < 5;
update t as x set c = x.c + x.a, b = upper(x.b) where x.a > 17;
update t set a = a + 100;

-- update swaps
insert into t select range, 'x', range * 2 from range(5);
update t set a = c, c = a;
update t set a = a + 1, c = a;

-- update default
insert into t values (1, 'a', 1), (2, 'b', 2);
update t set b = default where a = 1;
update t set c = default, a = 3 where a = 2;

-- update by subquery
insert into t select range, 'x', range from range(9);
insert into u values (3, 'three'), (4, null);
update t set b = (select v from u where k = a) where a in (select k from u);
update t set c = (select sum(c) from t);

-- update with a CTE
insert into t values (1, 'a', 1), (2, 'b', 2);
with m as (select max(c) as m from t) update t set c = (select m from m) * 2 where a = 1;

-- update casts
insert into t values (1, 'a', 1), (2, 'b', 2);
update t set a = '7', b = 5, c = '1.25' where a = 1;
update t set a = 2.6 where a = 2;
update t set b = a > 1;

-- update nothing
insert into t values (1, 'a', 1);
update t set a = 9 where b = 'z';
update t set b = null where c > 5;

-- update twice
insert into t select range, 'x', 0 from range(50);
update t set c = c + 1 where a < 25;
update t set c = c + 1 where a < 10;
delete from t where c = 1;
update t set c = c + 1;

-- truncate
insert into t values (1, 'a', 1);
truncate t;
insert into t values (2, 'b', 2);
insert into u values (1, 'v');
truncate table u;

-- create as
create table made as select range as n, 'x' || range as s, null as nothing, [range] as l from range(5);
create table empty as from made where false;
insert into empty from made;

-- create as with columns
create table made (p, q) as select 1, 'two';
create table again as from made with no data;
insert into again values (3, 'four');
create table more as (from made) with data;

-- create as with names
create table made as select 1 as a, 2 as a, 3, 4 + 1;
create table other as values (1, 'a'), (2, 'b');
create table third as with x as (select 1 as y) select * from x;

-- create or replace
create or replace table t (x varchar, a bigint);
insert into t values ('one', 1);
create or replace table t as select a + 1 as a, x from t;
create or replace table t as from t union all from t;

-- create or replace keeps nothing
insert into t values (1, 'a', 1);
create or replace table t (a integer, b varchar, c double);
insert into t (a) values (2);

-- create if not exists
insert into t values (1, 'a', 1);
create table if not exists t (z int);
create table if not exists t as select 1 as z;
create table if not exists made (z int);
insert into made values (1);

-- drop
create table made (z int);
drop table made;
create table made (y varchar);
insert into made values ('new');
drop table if exists nothing;
create table m2 (a int);
drop table m2;
drop table made;

-- schemas
create schema x;
create schema if not exists x;
create table x.t (a int);
insert into x.t values (1), (2);
insert into t select a, 'from x', a from x.t;
update x.t set a = 5 where x.t.a = 1;
delete from x.t where t.a = 2;
create or replace table x.t as select a, 'x' as b from x.t;
create schema y;
create table y.t as from x.t;
drop schema y cascade;
drop schema if exists y;

-- transaction
begin;
insert into t values (1, 'a', 1);
update t set b = 'b';
create table made as from t;
insert into made values (2, 'c', 2);
delete from t;
commit;

-- transaction undone
insert into t values (1, 'a', 1);
begin transaction;
insert into t values (2, 'b', 2);
drop table u;
create table made (a int);
delete from t where a = 1;
rollback;
insert into t values (3, 'c', 3);

-- transaction with the table again
insert into t values (1, 'a', 1);
begin;
drop table t;
create table t (z varchar);
insert into t values ('new');
update t set z = z || '!';
commit;
insert into t values ('last');

-- types of constants
create table made as select 1 as i, 1.5 as d, 1e0 as f, 'x' as s, date '2020-01-01' as day, timestamp '2020-01-01 01:02:03.123456' as ts, interval 1 day as iv, true as b, null as n, 10000000000 as big, 1::hugeint as h, 'a'::blob as bl, uuid '00000000-0000-0000-0000-000000000001' as u, [1, 2] as l, {'a': 1} as st, map {'k': 1} as m, time '01:02:03' as t;

-- quoted names
create table "My Table" ("a b" int, "select" varchar default 'd''d', "x""y" int);
insert into "My Table" ("a b") values (1);
update "My Table" set "select" = "x""y" where "a b" = 1;
delete from "my table" where "A B" = 2;
create table "T.x" as from "My Table";
