"""SAVEPOINT, RELEASE and ROLLBACK TO: what they take back and what not, and what a commit makes of it when others have committed meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.transaction.record import Event, Undone
from lakelite.transaction.transaction import Transaction


@pytest.fixture
def con(tmp_path: Path) -> Iterator[lakelite.Connection]:
    """With t(a) = 1, 2 and s(a) = 10, in a transaction."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        for sql in ("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1), (2)", "CREATE TABLE s (a INTEGER)", "INSERT INTO s VALUES (10)"):
            con.execute(sql)
        con.execute("BEGIN")
        yield con


@pytest.fixture
def other(tmp_path: Path, con: lakelite.Connection) -> Iterator[lakelite.Connection]:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        yield other


def rows(con: lakelite.Connection, table: str = "t") -> list[int]:
    return sorted(a for (a,) in con.execute(f"SELECT a FROM {table}").fetchall())


def tables(con: lakelite.Connection) -> list[str]:
    return [name for (name,) in con.execute("SHOW TABLES").fetchall()]


def run(con: lakelite.Connection, *statements: str) -> None:
    """Each statement; what a query gives is read to its end."""
    for sql in statements:
        cursor = con.execute(sql)
        if cursor.description:
            cursor.fetchall()


def head(con: lakelite.Connection) -> int:
    return int(con.execute("DESCRIBE HISTORY LIMIT 1").fetchall()[0][0])


def files(root: Path) -> set[str]:
    return {path.name for path in root.glob("lake/data/*/*.parquet")}


# Names.


def test_a_name_may_be_used_again_and_hides_the_older_one(con: lakelite.Connection) -> None:
    run(con, "SAVEPOINT p", "INSERT INTO t VALUES (3)", "SAVEPOINT p", "INSERT INTO t VALUES (4)", "ROLLBACK TO p")
    assert rows(con) == [1, 2, 3]
    run(con, "ROLLBACK TO p")  # the inner one is still there
    assert rows(con) == [1, 2, 3]
    run(con, "RELEASE p", "ROLLBACK TO p")
    assert rows(con) == [1, 2]


def test_rolling_back_to_a_savepoint_keeps_it_and_forgets_later_ones(con: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "INSERT INTO t VALUES (3)", "SAVEPOINT b", "INSERT INTO t VALUES (4)", "ROLLBACK TO a")
    with pytest.raises(lakelite.ProgrammingError, match='savepoint "b" does not exist'):
        con.execute("ROLLBACK TO b")
    run(con, "INSERT INTO t VALUES (5)", "ROLLBACK TO SAVEPOINT a", "INSERT INTO t VALUES (6)", "COMMIT")
    assert rows(con) == [1, 2, 6]


def test_release_keeps_what_was_done_and_forgets_later_ones(con: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "INSERT INTO t VALUES (3)", "SAVEPOINT b", "INSERT INTO t VALUES (4)", "RELEASE SAVEPOINT a")
    for name in ("a", "b"):
        with pytest.raises(lakelite.ProgrammingError, match="does not exist"):
            con.execute(f"RELEASE {name}")
    run(con, "COMMIT")
    assert rows(con) == [1, 2, 3, 4]


def test_names_fold_and_can_be_quoted(con: lakelite.Connection) -> None:
    run(con, 'SAVEPOINT "Before Load"', "TRUNCATE t", 'ROLLBACK WORK TO SAVEPOINT "before load"', "SAVEPOINT savepoint", "RELEASE savepoint")
    run(con, "SAVEPOINT Übung", "ROLLBACK TRANSACTION TO Übung")
    assert rows(con) == [1, 2]


def test_an_unknown_name_shows_its_place_and_near_names(con: lakelite.Connection) -> None:
    run(con, "SAVEPOINT before_load", "SAVEPOINT x")
    with pytest.raises(lakelite.ProgrammingError) as caught:
        con.execute("ROLLBACK TO SAVEPOINT befor_load")
    assert caught.value.position.column == 23
    assert caught.value.hint == "did you mean before_load?"
    with pytest.raises(lakelite.ProgrammingError) as caught:
        con.execute("RELEASE q")
    assert caught.value.hint == "the newest one is x"
    run(con, "RELEASE before_load")
    with pytest.raises(lakelite.ProgrammingError, match="SAVEPOINT name makes one"):
        con.execute("RELEASE x")
    assert con.in_transaction


# Where there is no transaction.


@pytest.mark.parametrize("sql", ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"])
def test_outside_a_transaction_they_are_refused_in_autocommit(lake: lakelite.Connection, sql: str) -> None:
    with pytest.raises(lakelite.ProgrammingError, match="none is open"):
        lake.execute(sql)
    assert not lake.in_transaction


def test_with_autocommit_off_they_open_the_implicit_transaction(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("SAVEPOINT a")
        assert con.in_transaction
        run(con, "CREATE TABLE t (a INTEGER)", "ROLLBACK TO a")
        con.commit()
        with pytest.raises(lakelite.ProgrammingError, match="does not exist"):
            con.execute("ROLLBACK TO a")  # it ended with its transaction
        assert con.in_transaction
        assert tables(con) == []


def test_a_read_only_transaction_has_savepoints(con: lakelite.Connection) -> None:
    run(con, "COMMIT", "BEGIN READ ONLY", "SAVEPOINT a", "SELECT * FROM t")
    with pytest.raises(lakelite.OperationalError, match="read-only"):
        con.execute("INSERT INTO t VALUES (3)")
    run(con, "ROLLBACK TO a", "RELEASE a", "COMMIT")
    assert rows(con) == [1, 2]


# What is taken back.


def test_definitions_are_taken_back(con: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "CREATE TABLE u AS SELECT a + 1 AS b FROM t", "DROP TABLE t", "CREATE SCHEMA w", "CREATE TABLE w.v (c INTEGER)")
    run(con, "CREATE OR REPLACE TABLE s (z VARCHAR)", "INSERT INTO s VALUES ('z')", "ROLLBACK TO a")
    assert tables(con) == ["s", "t"]
    assert rows(con) == [1, 2]
    assert rows(con, "s") == [10]
    run(con, "CREATE SCHEMA w", "CREATE TABLE u (other VARCHAR)", "INSERT INTO u VALUES ('x')", "COMMIT")
    assert con.execute("SELECT * FROM u").fetchall() == [("x",)]
    assert [d[0] for d in con.execute("SELECT * FROM u").description] == ["other"]


def test_after_a_statement_that_failed(con: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "INSERT INTO t VALUES (3)")
    for sql in ("INSERT INTO t VALUES ('x')", "SELECT nothing FROM t", "DROP TABLE nothing", "SAVEPOINT"):
        with pytest.raises(lakelite.Error):
            con.execute(sql)
    assert rows(con) == [1, 2, 3]
    run(con, "ROLLBACK TO a")
    assert rows(con) == [1, 2]


def test_executemany_is_taken_back(con: lakelite.Connection) -> None:
    con.execute("SAVEPOINT a")
    con.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100)])
    con.executemany("UPDATE t SET a = a + 1 WHERE a = ?", [(1,), (2,)])
    assert len(rows(con)) == 102
    run(con, "ROLLBACK TO a")
    assert rows(con) == [1, 2]


def test_many_savepoints(con: lakelite.Connection) -> None:
    for n in range(200):
        run(con, f"SAVEPOINT p{n}")
        if n % 30 == 0:
            run(con, f"INSERT INTO t VALUES ({100 + n})")
    run(con, "ROLLBACK TO p150")
    assert rows(con) == [1, 2, 100, 130, 160, 190, 220]
    run(con, "COMMIT")
    assert rows(con) == [1, 2, 100, 130, 160, 190, 220]


def test_history_holds_what_stands(con: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "DELETE FROM t", "ROLLBACK TO a", "INSERT INTO t VALUES (3)", "COMMIT")
    history = con.execute("DESCRIBE HISTORY LIMIT 1")
    found = dict(zip([d[0] for d in history.description], history.fetchall()[0], strict=True))
    assert (found["operation"], found["statements"], found["rows_added"], found["rows_removed"]) == ("INSERT", "INSERT INTO t VALUES (3)", 1, 0)


# Files.


def test_files_of_undone_writes_are_removed(con: lakelite.Connection, tmp_path: Path) -> None:
    before = files(tmp_path)
    run(con, "COMMIT", "SET inline_rows = 0", "BEGIN", "INSERT INTO t VALUES (3)")
    standing = files(tmp_path)
    assert len(standing - before) == 1
    run(con, "SAVEPOINT a", "INSERT INTO t VALUES (4)", "UPDATE t SET a = a + 1", "CREATE TABLE u AS SELECT * FROM t")
    assert len(files(tmp_path)) > len(standing)
    run(con, "ROLLBACK TO a")
    assert files(tmp_path) == standing
    run(con, "COMMIT")
    assert files(tmp_path) == standing
    assert rows(con) == [1, 2, 3]


@pytest.mark.parametrize("end", ["ROLLBACK TO a", "ROLLBACK", "close"])
def test_a_result_that_is_being_read_goes_on(con: lakelite.Connection, tmp_path: Path, end: str) -> None:
    """DuckDB opens the later files only when it comes to them."""
    run(con, "SET threads = 1", "SAVEPOINT a")
    for n in range(8):
        run(con, f"INSERT INTO t SELECT range + {n} * 300000 FROM range(300000)")
    written = files(tmp_path)
    cursor = con.execute("SELECT a FROM t")
    cursor.fetchmany(3)
    if end == "close":
        run(con, "ROLLBACK TO a")
        cursor.close()
    else:
        run(con, end)
        assert files(tmp_path) == written
        assert len(cursor.fetchall()) == 8 * 300_000 + 2 - 3
    if end != "ROLLBACK":  # rows of them were shown: a commit may have to compare those with what they would be then
        assert files(tmp_path) & written
        run(con, "ROLLBACK")
    assert not files(tmp_path) & written


def test_a_result_goes_on_where_the_commit_does_not_need_its_files(con: lakelite.Connection, tmp_path: Path) -> None:
    run(con, "SET threads = 1", "CREATE TABLE u (a INTEGER)")
    for _ in range(8):
        run(con, "INSERT INTO u SELECT * FROM range(300000)")
    cursor = con.execute("SELECT a FROM u")
    cursor.fetchmany(3)
    run(con, "DELETE FROM u", "COMMIT")
    assert len(cursor.fetchall()) == 8 * 300_000 - 3
    assert files(tmp_path) == set()


# What the commit makes of it.


def committed(root: Path) -> dict[str, Any]:
    with sqlite3.connect(root / "lake" / "catalog.sqlite") as catalog:
        catalog.row_factory = sqlite3.Row
        found = dict(catalog.execute("SELECT * FROM snapshots ORDER BY snapshot_id DESC LIMIT 1").fetchone())
    catalog.close()
    return found


def test_a_transaction_whose_every_write_was_undone_always_commits(con: lakelite.Connection, other: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "SELECT * FROM t", "UPDATE t SET a = a + 1", "DROP TABLE s", "SELECT sum(a) FROM t", "ROLLBACK TO a")
    run(other, "DELETE FROM t WHERE a = 1", "DROP TABLE s")
    before = head(other)
    run(con, "COMMIT")
    assert (head(con), con.last_commit.snapshot_id if con.last_commit else None) == (before, 4)
    assert rows(con) == [2]


def test_an_undone_write_meets_nobody(con: lakelite.Connection, other: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "UPDATE t SET a = a + 1", "INSERT INTO t SELECT a FROM s", "ROLLBACK TO a", "INSERT INTO s VALUES (11)")
    run(other, "UPDATE t SET a = 5 WHERE a = 1")
    run(con, "COMMIT")
    assert con.last_commit is not None
    assert (con.last_commit.attempts, con.last_commit.resolutions) == (1, ())
    assert (rows(con), rows(con, "s")) == ([2, 5], [10, 11])


def test_a_dropped_table_does_not_matter_to_what_was_undone(con: lakelite.Connection, other: lakelite.Connection) -> None:
    run(con, "SAVEPOINT a", "INSERT INTO t VALUES (3)", "ROLLBACK TO a", "INSERT INTO s VALUES (11)")
    run(other, "DROP TABLE t")
    run(con, "COMMIT")
    assert rows(con, "s") == [10, 11]


@pytest.mark.parametrize(
    ("undone", "winner", "conflict"),
    [
        # resolver.md, trap 30: what was read of one's own undone writes stays handed out
        (("INSERT INTO t VALUES (3)", "SELECT count(*) FROM t"), "DELETE FROM t WHERE a = 1", True),
        (("INSERT INTO t VALUES (3)", "SELECT count(*) FROM t"), "INSERT INTO t SELECT 7 FROM s", True),
        (("INSERT INTO t VALUES (3)", "SELECT count(*) FROM t"), "INSERT INTO t VALUES (7)", False),  # the level allows for blind appends
        (("SELECT sum(a) FROM t",), "UPDATE t SET a = 5 WHERE a = 1", True),
        (("SELECT count(*) FROM t",), "UPDATE t SET a = 5 WHERE a = 1", False),  # it comes out the same
        (("SAVEPOINT b", "SELECT sum(a) FROM t", "RELEASE b"), "UPDATE t SET a = 5 WHERE a = 1", True),
        (("SAVEPOINT b", "SELECT sum(a) FROM t", "ROLLBACK TO b"), "UPDATE t SET a = 5 WHERE a = 1", True),
        # what one's own undone rows came from
        (("INSERT INTO t SELECT a FROM s", "SELECT * FROM t"), "UPDATE s SET a = 20", True),
        (("INSERT INTO t SELECT a FROM s", "SELECT * FROM t"), "INSERT INTO s VALUES (20)", False),
        (("CREATE TABLE x AS SELECT a FROM s", "SELECT * FROM x"), "UPDATE s SET a = 20", True),
        (("INSERT INTO t SELECT a FROM s",), "UPDATE s SET a = 20", False),  # nobody saw them
        (("INSERT INTO t SELECT a FROM s", "SELECT * FROM o"), "UPDATE s SET a = 20", False),
    ],
)
def test_what_was_handed_out_stays_handed_out(
    con: lakelite.Connection, other: lakelite.Connection, undone: tuple[str, ...], winner: str, conflict: bool
) -> None:
    run(con, "COMMIT", "CREATE TABLE o (a INTEGER)", "BEGIN", "SAVEPOINT a", *undone, "ROLLBACK TO a", "INSERT INTO o VALUES (1)")
    run(other, winner)
    if conflict:
        with pytest.raises(lakelite.TransactionConflict) as caught:
            con.execute("COMMIT")
        assert [c.kind for c in caught.value.conflicts] == ["read changed"]
        assert rows(con, "o") == []
    else:
        run(con, "COMMIT")
        assert rows(con, "o") == [1]


ROW_BY_ROW, WHOLE = "UPDATE t SET a = a + 1", "UPDATE t SET a = a + (SELECT 1 FROM t LIMIT 1)"  # the second one has to run again
DRAWN, DRAWN_ONCE = "UPDATE s SET a = (random() * 1000000)::INTEGER", "INSERT INTO s SELECT (random() * 1000000)::INTEGER"
FROM_FILE = "INSERT OVERWRITE s SELECT a FROM '{f}'"


@pytest.mark.parametrize(
    ("drawn", "look", "then", "conflict"),
    [
        (DRAWN, "SELECT * FROM s", WHOLE, True),
        (DRAWN, "SELECT 1", WHOLE, False),
        (DRAWN, "SELECT * FROM s", ROW_BY_ROW, False),
        (DRAWN_ONCE, "SELECT * FROM s", WHOLE, False),  # a replay takes the rows of the first run
        (FROM_FILE, "SELECT * FROM s", WHOLE, True),
        (FROM_FILE, "SELECT 1", WHOLE, False),
    ],
)
def test_chance_and_files_count_where_their_rows_were_shown_and_it_has_to_run_again(
    con: lakelite.Connection, other: lakelite.Connection, tmp_path: Path, drawn: str, look: str, then: str, conflict: bool
) -> None:
    (tmp_path / "f.csv").write_text("a\n1\n")
    run(con, "SAVEPOINT a", drawn.format(f=tmp_path / "f.csv"), look, "ROLLBACK TO a", then)
    run(other, "INSERT INTO t VALUES (7)")
    if conflict:
        with pytest.raises(lakelite.TransactionConflict):
            con.execute("COMMIT")
    else:
        run(con, "COMMIT")
        assert rows(con) == [2, 3, 8]


@pytest.mark.parametrize(
    ("statements", "blind"),
    [
        (("SAVEPOINT a", "DELETE FROM t", "ROLLBACK TO a"), True),
        (("SAVEPOINT a", "INSERT INTO t SELECT a FROM s", "ROLLBACK TO a"), True),
        (("SAVEPOINT a", "SELECT * FROM t", "ROLLBACK TO a"), False),
        (("SAVEPOINT a", "INSERT INTO t VALUES (4)", "SELECT * FROM t", "ROLLBACK TO a"), False),
    ],
)
def test_whether_it_is_a_blind_append(con: lakelite.Connection, tmp_path: Path, statements: tuple[str, ...], blind: bool) -> None:
    run(con, *statements, "INSERT INTO t VALUES (3)", "COMMIT")
    assert bool(committed(tmp_path)["blind"]) is blind


def test_a_replay_runs_what_stands(con: lakelite.Connection, other: lakelite.Connection) -> None:
    run(
        con,
        "INSERT INTO t SELECT count(*) FROM s",
        "SAVEPOINT a",
        "DELETE FROM t",
        "ROLLBACK TO a",
        "SAVEPOINT b",
        "UPDATE t SET a = a * 2",
        "RELEASE b",
    )
    run(other, "INSERT INTO s VALUES (20), (30)")
    run(con, "COMMIT")
    assert rows(con) == [2, 4, 6]


# The record of what was undone.


def in_order(events: Iterable[Event]) -> list[Any]:
    """The statements as they were run, those of an undone group as a list of its own."""
    return [in_order(event.events) if isinstance(event, Undone) else event.call.text[-1:] for event in events]


def test_undone_statements_stay_on_record_where_rows_that_they_wrote_were_shown(con: lakelite.Connection) -> None:
    def insert(n: int) -> str:
        return f"INSERT INTO t SELECT {n}"

    run(con, insert(1), "SAVEPOINT a", "SELECT * FROM s", insert(2), "ROLLBACK TO a", insert(3), "SAVEPOINT b", insert(4), "SELECT * FROM t")
    tx: Transaction = con._session._tx  # type: ignore[assignment]
    assert in_order(tx.events) == ["1", "s", "3", "4", "t"]
    run(con, "ROLLBACK TO b", "ROLLBACK TO b", insert(5))
    assert in_order(tx.events) == ["1", "s", "3", ["4", "t"], "5"]
    run(con, "ROLLBACK TO a", insert(6), "ROLLBACK TO a", insert(7))
    assert in_order(tx.events) == ["1", [["s", "3", ["4", "t"], "5"], "6"], "7"]
    assert [entry.call.text[-1:] for entry in tx.log] == ["1", "7"]
    run(con, "COMMIT")
    assert rows(con) == [1, 1, 2, 7]
