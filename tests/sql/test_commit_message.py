"""SET commit_message and SET author: which commit they go with, when they are used up, and their bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import lakelite


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("CREATE TABLE t (a INTEGER)")
    return lake


def column(con: lakelite.Connection, name: str, *, of: str = "") -> list[Any]:
    """A column of the history, the oldest snapshot first; not that of the empty lake."""
    history = con.execute(f"DESCRIBE HISTORY {of}")
    index = [d[0] for d in history.description].index(name)
    return [row[index] for row in reversed(history.fetchall()) if row[0] > 0]


def shown(con: lakelite.Connection, name: str = "commit_message") -> str:
    (row,) = con.execute(f"SHOW {name}").fetchall()
    everything = {name: value for name, value, *_ in con.execute("SHOW ALL").fetchall()}
    assert everything[name] == row[0]
    return str(row[0])


# Which commit it goes with.


def test_it_goes_with_the_open_transaction_and_is_used_once(con: lakelite.Connection) -> None:
    con.execute("BEGIN; INSERT INTO t VALUES (1); SET commit_message = 'the first rows'; INSERT INTO t VALUES (2)")
    assert shown(con) == "the first rows"
    con.execute("COMMIT")
    assert shown(con) == ""
    con.execute("INSERT INTO t VALUES (3)")
    assert column(con, "message") == [None, "the first rows", None]
    assert column(con, "message", of="t") == [None, "the first rows", None]


def test_in_autocommit_it_goes_with_the_next_statement_that_commits(con: lakelite.Connection) -> None:
    con.execute("SET commit_message = 'm'")
    con.execute("SELECT * FROM t").fetchall()
    with pytest.raises(lakelite.DataError):
        con.execute("INSERT INTO t VALUES ('x')")
    assert shown(con) == "m"
    con.execute("DELETE FROM t WHERE a = 7")  # a write that matched no row is a commit too
    con.execute("INSERT INTO t VALUES (1)")
    assert column(con, "message") == [None, "m", None]


def test_it_may_be_set_before_begin_and_the_last_one_counts(con: lakelite.Connection) -> None:
    con.execute("SET commit_message = 'a'; SET commit_message = 'b'; BEGIN; INSERT INTO t VALUES (1)")
    con.execute("COMMIT")
    con.execute("BEGIN; SET commit_message TO 'c'; SET commit_message = 'd'; INSERT INTO t VALUES (1); COMMIT")
    assert column(con, "message") == [None, "b", "d"]


def test_with_autocommit_off(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("SET commit_message = 'made'")
        con.commit()  # no transaction is open: nothing happens
        con.execute("CREATE TABLE t (a INTEGER)")
        con.commit()
        con.execute("SET commit_message = 'filled'")
        con.rollback()
        con.execute("INSERT INTO t VALUES (1)")
        con.commit()
        assert column(con, "message") == ["made", "filled"]


@pytest.mark.parametrize(
    "script",
    [
        "SET commit_message = 'm'; RESET commit_message",
        "SET commit_message = 'm'; SET commit_message = ''",
        "SET commit_message = 'm'; SET commit_message = NULL",
    ],
)
def test_when_it_is_dropped(con: lakelite.Connection, script: str) -> None:
    con.execute(script)
    assert shown(con) == ""
    con.execute("INSERT INTO t VALUES (1)")
    assert column(con, "message") == [None, None]


@pytest.mark.parametrize(
    "script",
    [
        "BEGIN; SET commit_message = 'm'; INSERT INTO t VALUES (1); ROLLBACK",
        "SET commit_message = 'm'; BEGIN; ROLLBACK",
        "SET commit_message = 'm'; ROLLBACK; COMMIT",
        "BEGIN; SET commit_message = 'm'; SELECT 1; COMMIT",  # nothing was committed that it could go with
        "BEGIN; SET commit_message = 'x'; SAVEPOINT a; SET commit_message = 'm'; INSERT INTO t VALUES (1); ROLLBACK TO a; COMMIT",
    ],
)
def test_it_waits_for_a_commit_that_uses_it(con: lakelite.Connection, script: str) -> None:
    con.execute(script)
    assert shown(con) == "m"
    con.execute("INSERT INTO t VALUES (1)")
    assert shown(con) == ""
    assert column(con, "message") == [None, "m"]


def test_it_outlives_a_conflict_and_goes_with_the_second_try(con: lakelite.Connection, tmp_path: Path) -> None:
    con.execute("BEGIN; SET commit_message = 'm'")
    con.execute("SELECT * FROM t").fetchall()
    con.execute("INSERT INTO t VALUES (1)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("INSERT INTO t SELECT count(*) FROM t")
    with pytest.raises(lakelite.TransactionConflict):
        con.execute("COMMIT")
    assert shown(con) == "m"
    con.execute("INSERT INTO t VALUES (1)")
    assert column(con, "message") == [None, None, "m"]


def test_a_block_that_fails_leaves_it(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.ProgrammingError), con.transaction():
        con.execute("SET commit_message = 'm'; INSERT INTO t VALUES (1); SELECT nosuch FROM t")
    with con.transaction():
        con.execute("INSERT INTO t VALUES (2)")
    assert column(con, "message") == [None, "m"]


def test_upkeep_does_not_take_it(con: lakelite.Connection) -> None:
    con.execute("SET flush_fragments = 0; SET commit_message = 'mine'; INSERT INTO t VALUES (1)")
    assert column(con, "operation") == ["CREATE TABLE", "INSERT", "UPKEEP"]
    assert column(con, "message") == [None, "mine", None]


def test_it_is_the_connections_own(con: lakelite.Connection, tmp_path: Path) -> None:
    con.execute("SET commit_message = 'mine'")
    with lakelite.connect(tmp_path / "lake", autocommit=True, author="other") as other:
        other.execute("INSERT INTO t VALUES (1)")
    con.execute("INSERT INTO t VALUES (2)")
    assert column(con, "message") == [None, None, "mine"]
    assert column(con, "author") == [None, "other", None]


# Values.


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
@example('it\'s "quoted";\n-- and two lines')
@example("a\0b")
@example("x" * 4_000)
def test_a_text_comes_back_as_it_was(con: lakelite.Connection, text: str) -> None:
    con.execute("SET commit_message = ?", [text])
    con.execute("SET author = $who", {"who": text[:200]})
    assert (shown(con), shown(con, "author")) == (text, text[:200])
    con.execute("INSERT INTO t VALUES (1)")
    assert (column(con, "message", of="LIMIT 1"), column(con, "author", of="LIMIT 1")) == ([text], [text[:200]])


def test_an_expression_and_a_bare_word(con: lakelite.Connection) -> None:
    con.execute("SET commit_message = 'load ' || 2 + 3; SET author = ann")
    con.execute("INSERT INTO t VALUES (1)")
    assert (column(con, "message")[-1], column(con, "author")[-1]) == ("load 5", "ann")


@pytest.mark.parametrize(("name", "most"), [("commit_message", 4_000), ("author", 200)])
def test_what_is_no_text_or_too_long_is_refused(con: lakelite.Connection, name: str, most: int) -> None:
    con.execute(f"SET {name} = 'before'")
    for value, words in ((repeated(most + 1), f"at most {most} characters, not {most + 1}"), ("5", "a text, not int"), ("['a']", "a text, not list")):
        with pytest.raises(lakelite.DataError, match=words):
            con.execute(f"SET {name} = {value}")
    for sql, kind in ((f"SET {name} = 'a' || b", lakelite.ProgrammingError), (f"SET {name} = 'a' 'b", lakelite.ProgrammingError)):
        with pytest.raises(kind):
            con.execute(sql)
    with pytest.raises(lakelite.NotSupportedError, match=f"SET {name} sets it for this connection"):
        con.execute(f"SET GLOBAL {name} = 'x'")
    assert shown(con, name) == "before"
    con.execute(f"SET {name} = {repeated(most)}")
    assert len(shown(con, name)) == most


def repeated(length: int) -> str:
    return f"repeat('x', {length})"


def test_a_duckdb_setting_takes_a_parameter(con: lakelite.Connection) -> None:
    con.execute("SET timezone = ?", ["Europe/Vienna"])
    assert con.execute("SELECT current_setting('TimeZone')").fetchall() == [("Europe/Vienna",)]
    with pytest.raises(lakelite.Error):
        con.execute("SET timezone = ?", ["'; DROP TABLE t"])


# Authors.


def test_the_author_of_a_connection_can_be_changed(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True, author="ann") as con:
        assert shown(con, "author") == "ann"
        con.execute("CREATE TABLE t (a INTEGER)")
        con.execute("BEGIN; INSERT INTO t VALUES (1); SET author = 'bob'; COMMIT")  # whoever commits
        con.execute("RESET author")
        con.execute("INSERT INTO t VALUES (2)")
        assert column(con, "author") == ["ann", "bob", None]
        assert shown(con, "author") == ""


@pytest.mark.parametrize("author", ["x" * 201, 5, b"ann", "\ud800"])
def test_an_author_that_cannot_be_is_refused_before_anything_is_made(tmp_path: Path, author: Any) -> None:
    with pytest.raises(lakelite.Error, match="author"):
        lakelite.connect(tmp_path / "lake", author=author)
    assert not (tmp_path / "lake").exists()


def test_an_empty_author_is_none(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True, author="") as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        assert column(con, "author") == [None]
