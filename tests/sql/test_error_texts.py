"""What wrong statements say: the table error_texts.txt, compared with plain DuckDB, and statements that were broken at random."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import ours as names_of_our_own
from refusing import state

import lakelite
from lakelite.language.tokens import lex

TABLES = """
    create table t (a integer not null, b varchar default 'x', d decimal(5, 2)); create schema s; create table s.u (k bigint, v varchar);
    create table flights (year integer, carrier varchar, dep_delay double, origin varchar);
    insert into t values (1, 'one', 1.5), (2, 'two', null); insert into s.u select range, 'v' || range from range(2000);
    insert into flights values (2013, 'UA', 2, 'JFK')
"""
ELSEWHERE = {  # DuckDB points at a bracket, an argument or a string as a whole, or into a text that the user did not write
    "select * from read_csv('missing.csv', header = 1, delimm = ';')", "select a from t where a in (1, 2", "select count(* from t",
    "select * from t for timestamp as of '1999-01-01'", "select * from t at (version => a)", "begin isolation level chaos",
    "select * from query('selec 1')", "select * from query_table('flihgts')", "select * from query('select * from tt')",
    "select * from query_table('tt')", "pivot t on b using a", "pivot t on b using sum(t.a)", "insert overwrite t select a + from t", "optimize t where a >", "optimize t zorder by (a, a)",
    "create tag x at version 999",
}  # fmt: skip


def cases() -> list[tuple[str, ...]]:
    lines = (Path(__file__).parent / "error_texts.txt").read_text("utf-8").splitlines()[1:]
    return [tuple(part.replace("\\n", "\n").replace("\\t", "\t") for part in line.split(" | ")) for line in lines]


CASES = cases()


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakelite.Connection]:
    con = lakelite.connect(tmp_path_factory.mktemp("errors") / "lake", autocommit=True)
    con.execute(TABLES)
    yield con
    con.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    plain = duckdb.connect(config={"errors_as_json": "true"})
    plain.execute(TABLES)
    yield plain
    plain.close()


def refusal(con: lakelite.Connection, statement: str) -> lakelite.Error:
    with pytest.raises(lakelite.Error) as caught:
        con.execute(statement).fetchall()
    return caught.value


def test_there_are_enough() -> None:
    assert len({case[0] for case in CASES}) == len(CASES) > 250


def test_each_says_what_to_do_next() -> None:
    assert [case[0] for case in CASES if case[4] == "-"] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_it_says(con: lakelite.Connection, case: tuple[str, ...]) -> None:
    statement, kind, place, message, hint = case
    error = refusal(con, statement)
    at = error.position
    assert type(error).__name__ == kind
    assert ("-" if at is None else f"{at.line}:{at.column}") == place
    assert message in error.message
    assert error.hint is None if hint == "-" else hint in (error.hint or "")
    assert "Error:" not in str(error)
    assert len(error.message) <= 500
    assert names_of_our_own(str(error)) <= names_of_our_own(statement)
    if at is not None:
        _, line, caret, *_ = str(error)[len(error.message) - 1 :].split("\n")
        assert line.startswith(f"LINE {at.line}, COLUMN {at.column}: ")
        assert caret.strip() == "^"
    assert not con.in_transaction


def test_all_of_them_in_one_transaction_change_nothing(con: lakelite.Connection) -> None:
    before = state(con)
    con.execute("begin; insert into t values (9, 'nine', 9)")
    try:
        for statement, *_ in CASES:
            refusal(con, statement)
        assert con.in_transaction
        assert con.execute("select b from t where a = 9").fetchall() == [("nine",)]
    finally:
        con.rollback()
    assert state(con) == before


def test_duckdb_does_not_say_more(con: lakelite.Connection, plain: duckdb.DuckDBPyConnection) -> None:
    """Wherever DuckDB knows the place, we say the same one; and what it names in its message, ours names too."""
    compared = 0
    for statement, *_ in CASES:
        error = refusal(con, statement)
        plain.begin()
        try:
            plain.execute(statement).fetchall()
        except duckdb.Error as theirs:
            raw = str(theirs)
            found = json.loads(raw[raw.index("{") :]) if "{" in raw else {}
            if "position" in found and statement not in ELSEWHERE:
                before = statement.encode()[: int(found["position"])].decode()
                at = error.position
                assert at is not None, statement
                assert (at.line, at.column) == (before.count("\n") + 1, len(before) - before.rfind("\n")), statement
                compared += 1
            name = found.get("name", "")
            if name[:1].isalnum():
                assert name.strip('"').rpartition(".")[2].lower() in str(error).lower(), statement
        finally:
            plain.rollback()
    assert compared > 160


# Errors that other libraries hand on.


def test_a_value_that_python_cannot_hold(con: lakelite.Connection) -> None:
    for read in (lakelite.Cursor.fetchone, lakelite.Cursor.fetchmany, lakelite.Cursor.fetchall, list):
        cursor = con.execute("select interval '99999999 years'")
        with pytest.raises(lakelite.DataError, match="too large for the Python type") as caught:
            read(cursor)
        assert isinstance(caught.value.__cause__, OverflowError)
    assert con.execute("select (interval '99999999 years')::varchar").fetchall() == [("99999999 years",)]


def test_a_condition_that_fails_on_a_deleted_row_only(con: lakelite.Connection) -> None:
    """The rows come through Arrow, which hands DuckDB's error on as an OSError: it has to be known as what it is."""
    con.execute("create table deleted (k int, s varchar, l int[])")
    con.execute("insert into deleted select range, case when range = 15000 then 'abc' else range::varchar end, [1] from range(20000)")
    con.execute("delete from deleted where k = 15000")
    assert con.execute("update deleted set l = [2] where cast(s as int) % 100 = 7").rowcount == 200
    con.execute("insert into deleted values (20000, 'abc', [1])")
    with pytest.raises(lakelite.DataError, match="could not convert 'abc' to INTEGER"):
        con.execute("update deleted set l = [3] where cast(s as int) % 100 = 7")
    con.execute("drop table deleted")


# Broken at random.

WHOLE = (
    "select year, count(*) as n, avg(dep_delay) from flights where carrier = 'UA' and year between 2010 and 2020 group by year having n > 1 order by 1",
    "with x as (select a, b from t where d > 1.5), y as (select k from s.u) select x.b, y.k from x join y on x.a = y.k limit 3",
    "select *, row_number() over (partition by carrier order by year) as n from flights qualify n = 1",
    "insert into t (a, b) values (10, 'ten'), (11, 'eleven')",
    "insert into t select k + 100, v, 1 from s.u where k < 3",
    "update t set b = upper(b), d = d + 1 where a in (select k from s.u where k < 5) and b like 'o%'",
    "delete from flights where carrier = 'UA' or (year = 2013 and dep_delay is null)",
    "create table v (a integer not null, b varchar default 'x', c struct(x int, y int[]))",
    "create or replace table v as select a, [b, 'x'] as l from t",
    "select cast('2013-01-01' as date) + interval 3 days, {'a': 1}.a, [1, 2][1], list_transform([1], x -> x + 1)",
    "select * from t at (version => 3) where a::varchar = '1'",
    "describe flights",
    "begin isolation level write serializable",
    "set threads = 2",
    "copy (select a from t) to '/nonexistent/x.csv' (format csv, header)",
)


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A statement with tokens deleted, doubled, swapped, taken from another, or cut off in the middle."""
    text = draw(st.sampled_from(WHOLE))
    tokens = [text[token.start : token.end] for token in lex(text)]
    others = draw(st.sampled_from(WHOLE)).split()
    for _ in range(draw(st.integers(1, 3))):
        act, at = draw(st.integers(0, 5)), draw(st.integers(0, len(tokens) - 1))
        if act == 0 and len(tokens) > 1:
            del tokens[at]
        elif act == 1:
            tokens.insert(at, tokens[at])
        elif act == 2:
            other = draw(st.integers(0, len(tokens) - 1))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif act == 3:
            tokens[at] = draw(st.sampled_from(others))
        elif act == 4:
            tokens[at] = tokens[at][: draw(st.integers(0, len(tokens[at])))] + draw(
                st.sampled_from(("", "x", "'", '"', "é", "\t", "(", "1", ".", "\x00"))
            )
        else:
            del tokens[at + 1 :]
    return draw(st.sampled_from((" ", "\n", "\t "))).join(tokens)


@pytest.mark.parametrize("inside", [False, True])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(statement=broken())
def test_only_our_errors_come_of_a_broken_statement(con: lakelite.Connection, inside: bool, statement: str) -> None:
    """It may still be right: then what it did is undone."""
    version = con.execute("select max(snapshot_id) from lake.snapshots").fetchall()
    con.execute("begin")
    said = "nothing"
    try:
        if inside:
            con.execute("insert into t values (9, 'nine', 9)")
        if not statement.lower().lstrip().startswith(("commit", "rollback", "end", "abort")):
            try:
                con.execute(statement).close()
            except lakelite.Error as caught:
                said = str(caught)
        assert said
        assert "Error:" not in said
        assert con.in_transaction
        assert con.execute("select k from s.u where k = 7").fetchall() == [(7,)]
    finally:
        con.rollback()
        con.execute("reset threads")
    assert con.execute("select max(snapshot_id) from lake.snapshots").fetchall() == version


@pytest.mark.parametrize("tail", ["", " where a = 1", " join flights on true"])
@pytest.mark.parametrize(
    "clause",
    ["at (versin => 1)", "at (version 1)", "at (version = 1)", "at version 1", "as of version 1", "version as of 1", "at (1)", "for version 1",
     "for version of 1", "as of 1", "for system_version as of 1", "as of timestamp '2020-01-01'", "for timestamp '2020-01-01'"],
)  # fmt: skip
def test_a_past_version_that_is_asked_for_in_other_words(con: lakelite.Connection, clause: str, tail: str) -> None:
    error = refusal(con, f"select * from t {clause}{tail}")
    assert isinstance(error, lakelite.ProgrammingError)
    assert "AT (VERSION => 3)" in str(error.hint)
    assert error.position is not None


def test_a_colon_and_a_name_that_the_values_lack(con: lakelite.Connection) -> None:
    cases: list[tuple[str, Any, str]] = [
        ("select :valeu", {"value": 1}, "did you mean value?"),
        ("select\n  a from t where a = :x", {"first": 1, "second": 2}, "the values have no x; their names are: first, second"),
        ("select 1; select :x", None, ":x is a parameter only where the values are a mapping that has x"),
    ]
    for sql, values, words in cases:
        with pytest.raises(lakelite.ProgrammingError, match="syntax error") as caught:
            con.execute(sql, values)
        assert words in str(caught.value.hint)


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("create table x (a int check (a > ?))", 34),
        ("alter table t alter a set default ?", 35),
        ("alter table t alter a type varchar using a || ?", 47),
    ],
)
def test_a_parameter_where_none_can_be(con: lakelite.Connection, statement: str, column: int) -> None:
    with pytest.raises(lakelite.ProgrammingError, match="cannot hold a parameter") as caught:
        con.execute(statement, (1,))
    assert caught.value.position is not None
    assert caught.value.position.column == column
    assert caught.value.hint == "write the value into the text"


def test_a_name_without_a_value(con: lakelite.Connection) -> None:
    for values, hint in (
        ({"carier": 1}, "did you mean carier?"),
        ({"x": 1}, "the values have no carrier; their names are: x"),
        ({}, "give a mapping that has carrier"),
        (None, "give a mapping that has carrier"),
    ):
        with pytest.raises(lakelite.ProgrammingError, match="no value was given for the parameter carrier") as caught:
            con.execute("select '$carrier',\n $carrier", values)
        assert caught.value.position is not None
        assert (caught.value.position.line, caught.value.position.column) == (2, 2)
        assert hint in str(caught.value.hint)


def test_slips_of_a_variable_and_of_excluded(con: lakelite.Connection) -> None:
    flight_frame = pa.table({"a": [1]})  # noqa: F841  (a slip of it is meant)
    with pytest.raises(lakelite.ProgrammingError, match="does not exist") as caught:
        con.execute("select * from flight_fram")
    assert caught.value.hint == "did you mean flight_frame?"
    con.execute("create table planes (tail varchar primary key, seats integer)")
    with pytest.raises(lakelite.ProgrammingError, match="nope") as caught:
        con.execute("insert into planes values ('a', 1) on conflict (tail) do update set seats = excluded.nope")
    assert caught.value.hint == "its columns are: tail, seats"
    con.execute("drop table planes")


def test_what_pandas_has_no_type_for(con: lakelite.Connection) -> None:
    pytest.importorskip("pandas")
    with pytest.raises(lakelite.NotSupportedError, match="pandas has no type for UHUGEINT") as caught:
        con.execute("select 1::uhugeint as a").df()
    assert "::VARCHAR" in str(caught.value.hint)
