"""Where an error without a place belongs: the clause if it is sure, and never a wrong one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import lakelite
from lakelite.mapping.clauses import clause


@pytest.fixture(scope="module")
def con() -> Iterator[lakelite.Connection]:
    con = lakelite.connect(autocommit=True)
    con.execute("create table t (a integer not null, b varchar, c double); insert into t values (1, 'x', 1.5), (2, 'y', null)")
    con.execute("create table u (a integer primary key, d integer check (d > 0), k varchar); insert into u values (1, 1, 'one'), (2, 2, 'two')")
    con.execute('create table n2 (b integer, "a b" integer not null); insert into n2 values (1, 1)')
    con.execute("create table q (b varchar, c varchar); insert into q values ('(a', 'see (a here')")
    con.execute("create view v as select (select a from t) as x, 1 as y")
    yield con
    con.close()


SURE = [
    ('update n2 set b = 5, "a b" = null', "n2 set b"),
    ("insert into t (a, b) select 1 from (values (1)) w", "select 1 from"),
    ("insert into t (a, b) values (1)", "values (1)"),
    ("merge into u using (values (1, 2)) w(a, b) on u.a = w.a when not matched then insert values (w.a)", "insert values (w.a)"),
    ("set global statement_timeout_ms = -1", "statement_timeout_ms"),
    ("create table e (a integer, b integer default coalesce(1, 2), a integer)", "a integer)"),
    ("create table e (a integer check (a in (1, a )), a integer)", "a integer)"),
    ("with x(a) as (select 1), x(b) as (select 2) select 1, x as y from x", "x(b) as"),
    ("create table e (a integer, foreign key (a) references u (a))", "foreign key"),
    ("insert into u values (1, 5, 'again')", "u values"),
    ("insert into u values (3, -5, 'z')", "u values"),
    ("update u set d = -1", "u set"),
    ("merge into u using t on u.a = t.a when matched then update set d = -1", "u using"),
    ("insert into u values (1, -5, 'z') on conflict (a) do update set d = excluded.d", "u values"),
    ("select (select a from t)", "(select a from t)"),
]
NOT_SURE = [
    "select map([1], [2]), map_from_entries([(1, 2), (1, 3)])",
    "select * from v where y in (select 1)",
    "select 1, x from t x, u x",
    "select l[1:[2][1]:0], ['12:00:00'] from (select [1, 2] as l)",
    "select list_slice([1], 1, 2, 0), [1, 2][1:2:0]",
    "select regexp_matches('x', b) from q where c = 'see (a here'",
    "select error('array_agg: is bad'), array_agg(a) from t",
    "select 'union', 1 where (select a from t) = 1 or (select 1) = 1 -- union",
]


@pytest.mark.parametrize(("statement", "place"), SURE)
def test_the_place(con: lakelite.Connection, statement: str, place: str) -> None:
    with pytest.raises(lakelite.Error) as caught:
        con.execute(statement).fetchall()
    assert caught.value.position is not None
    assert statement[caught.value.position.column - 1 :].startswith(place)


@pytest.mark.parametrize("statement", NOT_SURE)
def test_no_place_where_it_is_not_sure(con: lakelite.Connection, statement: str) -> None:
    with pytest.raises(lakelite.Error) as caught:
        con.execute(statement).fetchall()
    assert caught.value.position is None


def test_a_null_that_is_inserted_is_not_looked_for_in_another_clause(con: lakelite.Connection) -> None:
    statement = "insert into u(a, d, k) values (null, 5, 'z') on conflict (a) do update set a = 5"
    with pytest.raises(lakelite.Error) as caught:
        con.execute(statement)
    assert caught.value.position is None or caught.value.position.column == statement.index("u(a") + 1


def test_the_cost_is_linear_in_the_text() -> None:
    """Strings by the thousand, none of which is looked at for each clause: twice the text, and not four times as long."""

    def seconds(count: int) -> float:
        text = "select " + "repeat('x', 5), " * count + "repeat('x', 100000000000)"
        begin = time.process_time()
        assert clause("a string would have 100000000000 bytes", text) is None
        return time.process_time() - begin

    assert min(seconds(40_000) for _ in range(3)) < 10 * min(seconds(10_000) for _ in range(3)) + 0.05
