"""Statements that fail when COMMIT runs them again behind winners: whose error it is, where it is, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakelite
from tests.racing import flush, meeting

ROLLED_BACK = "The whole transaction was rolled back."


@pytest.fixture
def mine(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("create table t (k integer, v integer, w varchar); insert into t values (1, 1, '1')")
    return lake


@pytest.fixture
def other(mine: lakelite.Connection, tmp_path: Path) -> Any:
    with lakelite.connect(tmp_path / "lake", autocommit=True, author="ana") as con:
        yield con


def _failing(kind: type[lakelite.Error], commit: Callable[[], object]) -> lakelite.Error:
    with pytest.raises(kind) as caught:
        commit()
    assert type(caught.value) is kind
    assert str(caught.value).splitlines().count(ROLLED_BACK) == 1
    return caught.value


ENDS: dict[str, Callable[[lakelite.Connection], object]] = {
    "commit()": lambda con: con.commit(),
    "COMMIT": lambda con: con.execute("commit"),
    "in a script": lambda con: con.executescript("select 'abc'; commit; select 2"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("level", ["write serializable", "serializable"])
@pytest.mark.parametrize("flushed", [False, True])
def test_the_place_is_in_the_statement_that_failed(
    mine: lakelite.Connection, other: lakelite.Connection, end: str, level: str, flushed: bool
) -> None:
    if flushed:
        flush(mine, "t")
    mine.execute(f"begin isolation level {level}")
    mine.execute("update t\nset v = w::integer + 1")
    mine.execute("select 'abc'").fetchall()
    with meeting(lambda: other.execute("insert into t values (3, 3, 'abc')")):
        error = _failing(lakelite.DataError, lambda: ENDS[end](mine))
    assert error.message.startswith("could not convert 'abc' to INTEGER")
    assert error.position is not None
    assert (error.position.line, error.position.source) == (2, "set v = w::integer + 1")
    assert "at COMMIT of the statement: update t set v = w::integer + 1" in str(error)
    assert "by ana: insert into t values (3, 3, 'abc')" in str(error)
    assert not mine.in_transaction
    assert mine.execute("select k, v from t order by k").fetchall() == [(1, 1), (3, 3)]


WINS = {
    "append": "insert into t values (3, 3, 'abc')",
    "update": "update t set w = 'abc' where k = 1",
    "overwrite": "insert overwrite t values (3, 3, 'abc')",
    "alter": "alter table t alter column v type varchar; insert into t values (3, '3', 'abc')",
}


@pytest.mark.parametrize("win", WINS)
def test_of_every_winner_with_which_a_statement_fails(mine: lakelite.Connection, other: lakelite.Connection, win: str) -> None:
    mine.execute("begin; create table more (a integer); update t set v = w::integer + 1")
    other.execute("create table unrelated (a integer)")
    other.execute(WINS[win])
    head = other.last_commit
    assert head is not None
    other.execute("insert into unrelated values (1)")
    error = _failing(lakelite.DataError, mine.commit)
    assert error.position is not None
    assert error.position.source == "update t set v = w::integer + 1"
    assert f"beside snapshot {head.snapshot_id}" in str(error)
    assert [row[0] for row in mine.execute("show tables").fetchall()] == ["t", "unrelated"]


def test_a_key_that_a_winner_took(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table k (a integer primary key)")
    lake.execute("begin; insert into k values (2); create table more (a integer)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("insert into k values (2)")
    error = _failing(lakelite.IntegrityError, lake.commit)
    assert "of the statement: insert into k values (2)" in str(error)
    assert error.position is None


def test_a_constraint_that_a_winner_added(mine: lakelite.Connection, other: lakelite.Connection) -> None:
    mine.execute("begin; insert into t values (4, -1, 'x')")
    mine.execute("select 1").fetchall()
    other.execute("alter table t add check (v >= 0)")
    error = _failing(lakelite.IntegrityError, mine.commit)
    assert "of the statement: insert into t values (4, -1, 'x')" in str(error)
    assert "alter table t add check (v >= 0)" in str(error)


def test_a_type_with_which_a_statement_no_longer_binds(mine: lakelite.Connection, other: lakelite.Connection) -> None:
    mine.execute("begin; update t set v = length(w)")
    other.execute("alter table t alter column w type integer")
    error = _failing(lakelite.ProgrammingError, mine.commit)
    assert error.position is not None
    assert error.position.source == "update t set v = length(w)"
    assert "alter table t alter column w type integer" in str(error)


def test_in_autocommit_it_is_the_ordinary_error(mine: lakelite.Connection, other: lakelite.Connection) -> None:
    with meeting(lambda: other.execute("insert into t values (3, 3, 'abc')")), pytest.raises(lakelite.DataError) as caught:
        mine.execute("select 1; update t set v = w::integer + 1")
    assert caught.value.context is None
    assert caught.value.position is not None
    assert (caught.value.position.statement, caught.value.position.column) == (2, 29)
    assert ROLLED_BACK not in str(caught.value)


def test_explain_commit_says_no_more_than_the_error(mine: lakelite.Connection, other: lakelite.Connection) -> None:
    mine.execute("begin; update t set v = w::integer + 1")
    other.execute("insert into t values (3, 3, 'abc')")
    rows = mine.execute("explain commit").fetchall()
    assert [(row[2], row[5]) for row in rows] == [("error", "could not convert 'abc' to INTEGER (column w)")]
    assert mine.in_transaction
