"""Bad input: for each error path its class, what the message says, its place, a lake that stays as it was, and a connection that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from refusing import refused, state, state_kept

import lakelite


def cases() -> dict[str, list[tuple[str, ...]]]:
    """The lines of refused.txt as (statement, class, place, words), by section."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for line in (Path(__file__).parent / "refused.txt").read_text().splitlines()[1:]:
        if line.startswith("# ["):
            section = found.setdefault(line[3:-1], [])
        else:
            section.append(tuple(part.strip() for part in line.split(" | ")))
    return found


CASES = cases()
ANYWHERE, OUTSIDE, INSIDE = (CASES[name] for name in ("anywhere", "outside of a transaction", "inside of a transaction"))


@pytest.mark.parametrize("case", ANYWHERE + OUTSIDE, ids=lambda case: case[0])
def test_a_wrong_statement_is_refused_and_changes_nothing(con: lakelite.Connection, case: tuple[str, ...]) -> None:
    refused(con, *case)
    assert not con.in_transaction


def test_in_a_transaction_each_undoes_only_itself(con: lakelite.Connection) -> None:
    before = state(con)
    con.execute("begin")
    try:
        con.execute("insert into t values (10, 'ten', 1); create table own (a int); insert into own values (7)")
        for case in ANYWHERE + INSIDE:
            if case[0].startswith("set timezone"):  # refused for a reason of its own here, before its value is looked at
                case = (case[0], "ProgrammingError", "5", "once a transaction has written")
            refused(con, *case)
        con.execute("update t set b = 'TEN' where a = 10")
        assert con.execute("select b from t where a = 10 union all from own").fetchall() == [("TEN",), ("7",)]
    finally:
        con.rollback()
    assert state(con) == before


@pytest.mark.parametrize(
    ("sql", "parameters", "kind", "words"),
    [
        ("select ?", None, "ProgrammingError", "1 parameter ;; number of values is 0"),
        ("select ?", [], "ProgrammingError", "1 parameter ;; number of values is 0"),
        ("select ?", [1, 2], "ProgrammingError", "1 parameter ;; number of values is 2"),
        ("select 1", [1], "ProgrammingError", "0 parameters ;; number of values is 1"),
        ("select $2", [1], "ProgrammingError", "2 parameters ;; number of values is 1"),
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
        ("select ?", [object()], "NotSupportedError", "the Python type object ;; pass a number"),
        ("select ?", [2**200], "DataError", "too large"),
        ("select ?", ["\ud800"], "DataError", "surrogate"),
        ("select ?::int", ["abc"], "DataError", "the value of ?1 to INTEGER"),
        ("insert into t values (?, ?, ?)", ["abc", "x", 1], "DataError", "the value of ?1 to INTEGER"),
        ("insert into t values (?, ?, ?)", [2**40, "x", 1], "DataError", "out of range"),
        ("insert into t values (?, ?, ?)", [None, "x", 1], "IntegrityError", "t.a"),
        ("insert into t values (?, ?)", [1, "x"], "ProgrammingError", "3 columns"),
        ("delete from t where a = ?", ["abc"], "DataError", "the value of ?1 to INTEGER"),
        ("update t set a = ?", [None], "IntegrityError", "t.a"),
        ("copy t from ?", [5], "ProgrammingError", "path of COPY"),
        ("copy t from ?", [None], "ProgrammingError", "path of COPY"),
        ("copy t from ?", ["none.csv"], "OperationalError", "no file matches the value of ?1"),
    ],
)
def test_wrong_parameters_are_refused(con: lakelite.Connection, sql: str, parameters: Any, kind: str, words: str) -> None:
    error = state_kept(con, lambda: con.execute(sql, parameters).fetchall())
    assert type(error).__name__ == kind, error
    assert all(word in str(error) for word in words.split(" ;; ")), error


@pytest.mark.parametrize("sql", ["create table v (a int default ?)", "select :a", "select * from ?", "select [1, 2][:a]", "select {b: :a}"])
def test_a_parameter_where_none_can_stand_is_refused(con: lakelite.Connection, sql: str) -> None:
    for parameters in ([1], {"b": 1}):
        assert isinstance(state_kept(con, lambda: con.execute(sql, parameters)), lakelite.ProgrammingError)  # noqa: B023
