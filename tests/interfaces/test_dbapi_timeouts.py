"""`statement_timeout_ms`: what runs longer is stopped, and nothing else."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.transaction.transaction import Transaction

LONG = "select count(*) from range(10000000) a, range(10000000) b where a.range * 3 = b.range * 7 + 1 and hash(a.range, b.range) % 7 = 3"
ROWS = "select a.range from range(1000000) a, range(1000000) b"


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("create table t (a integer, b varchar); insert into t values (1, 'one'), (2, 'two'), (3, null)")
    return lake


@pytest.mark.parametrize(
    "sql",
    [
        LONG,
        f"insert into t select ({LONG}), 'x'",
        f"delete from t where a = ({LONG})",
        f"update t set a = ({LONG})",
        f"create table u as {LONG}",
        f"copy ({LONG}) to '/dev/null' (format csv)",
        f"set statement_timeout_ms = ({LONG})",
        f"set author = ({LONG})::varchar",
    ],
)
@pytest.mark.parametrize("explicit", [False, True])
def test_a_statement_that_runs_too_long_is_stopped_and_undone(con: lakelite.Connection, sql: str, explicit: bool) -> None:
    con.execute("set statement_timeout_ms = 200")
    if explicit:
        con.execute("begin; insert into t values (4, 'mine')")
    begin = time.monotonic()
    with pytest.raises(lakelite.OperationalError, match="200 ms, the limit that statement_timeout_ms sets") as caught:
        con.execute(sql).fetchall()
    assert 0.2 <= time.monotonic() - begin < 2
    assert "SET statement_timeout_ms = 0" in str(caught.value.hint)
    assert caught.value.__cause__ is not None
    assert con.in_transaction == explicit
    con.execute("insert into t values (5, 'after')")
    con.commit()
    assert con.execute("select count(*) from t").fetchone() == (4 + explicit,)
    assert con.execute("show tables").fetchall() == [("t",)]


@pytest.mark.parametrize(
    "sql",
    ["from t at (version => ({}))", "from table_changes('t', 0, ({}))", "restore table t to version as of ({})", "describe t at (version => ({}))"],
)
def test_the_expression_of_a_version_is_limited_too_and_can_be_interrupted(con: lakelite.Connection, sql: str) -> None:
    con.execute("set statement_timeout_ms = 200")
    with pytest.raises(lakelite.OperationalError, match="200 ms, the limit that statement_timeout_ms sets"):
        con.execute(sql.format(LONG)).fetchall()
    con.execute("set statement_timeout_ms = 0")
    timer = threading.Timer(0.2, con.interrupt)
    timer.start()
    with pytest.raises(lakelite.OperationalError, match=r"^interrupted"):
        con.execute(sql.format(LONG)).fetchall()
    timer.join()
    assert con.execute("select count(*) from t").fetchone() == (3,)


@pytest.mark.parametrize("explicit", [False, True])
def test_an_interrupt_where_duckdb_does_not_run_undoes_the_statement(
    con: lakelite.Connection, explicit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Python reads parameters, DuckDB hears nothing of it: the change must not be kept all the same."""
    if explicit:
        con.execute("begin; insert into t values (4, 'mine')")
    run_sets = Transaction.run_sets

    def interrupted(*arguments: Any) -> int:
        other = threading.Thread(target=con.interrupt)
        count = run_sets(*arguments)
        other.start()
        other.join()
        return count

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "run_sets", interrupted)
        with pytest.raises(lakelite.OperationalError, match=r"^interrupted"):
            con.executemany("insert into t values (?, ?)", [(n, "x") for n in range(10)])
    con.interrupt()
    con.execute("insert into t values (5, 'after')")
    con.commit()
    assert con.execute("select count(*) from t").fetchone() == (4 + explicit,)


def test_an_interrupt_is_repeated_until_the_statement_ends(con: lakelite.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes before DuckDB runs, which then is stopped nevertheless."""
    run_sets = Transaction.run_sets

    def interrupted(*arguments: Any) -> int:
        con.interrupt()
        return run_sets(*arguments)

    monkeypatch.setattr(Transaction, "run_sets", interrupted)
    begin = time.monotonic()
    with pytest.raises(lakelite.OperationalError, match=r"^interrupted"):
        con.execute(f"insert into t select ({LONG}), 'x'")
    assert time.monotonic() - begin < 2


def test_a_fetch_that_runs_too_long_is_stopped(con: lakelite.Connection) -> None:
    con.execute("set statement_timeout_ms = 200")
    cursor = con.execute(ROWS)
    assert cursor.fetchone() is not None
    other = con.execute(ROWS)
    assert len(other.fetchmany(3)) == 3
    with pytest.raises(lakelite.OperationalError, match="statement_timeout_ms"):
        cursor.fetchall()
    with pytest.raises(lakelite.InterfaceError, match="has failed before its end"):
        cursor.fetchall()
    assert len(other.fetchmany(3)) == 3
    time.sleep(0.4)  # what passes between two calls does not count
    assert len(other.fetchmany(3)) == 3


def test_what_is_quick_runs_on(con: lakelite.Connection) -> None:
    """Also while a statement of the same connection is stopped in another thread."""
    con.execute("set statement_timeout_ms = 300")
    reading = con.execute(ROWS)
    failed: list[BaseException] = []

    def run_long() -> None:
        try:
            con.execute(LONG).fetchall()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run_long)
    thread.start()
    count = 0
    while thread.is_alive():
        count += len(reading.fetchmany(100))
    thread.join()
    assert [type(error) for error in failed] == [lakelite.OperationalError]
    assert count > 0
    assert reading.fetchone() is not None
    for n in range(50):
        assert con.execute("insert into t values (?, 'x')", [n]).rowcount == 1
    assert con.execute("select count(*) from t").fetchone() == (53,)


def test_the_watching_thread_ends(con: lakelite.Connection) -> None:
    before = set(threading.enumerate())

    def watching() -> list[str]:
        return [thread.name for thread in set(threading.enumerate()) - before]

    assert con.execute("select 1").fetchall() == [(1,)]
    assert watching() == []
    con.execute("set statement_timeout_ms = 50")
    for _ in range(2):
        assert con.execute("select 1").fetchall() == [(1,)]
        assert watching() == ["lakelite-timeouts"]
        end = time.monotonic() + 10
        while watching() and time.monotonic() < end:
            time.sleep(0.05)
        assert watching() == []


def test_a_commit_is_not_cut_short(con: lakelite.Connection) -> None:
    con.execute("begin")
    for n in range(20):
        con.execute("insert into t values (?, 'x')", [n])
    con.execute("set statement_timeout_ms = 1")
    con.execute("commit")
    con.execute("set statement_timeout_ms = 0")
    assert con.execute("select count(*) from t").fetchone() == (23,)


def test_an_interrupt_is_no_timeout(con: lakelite.Connection) -> None:
    con.execute("set statement_timeout_ms = 60000")
    timer = threading.Timer(0.3, con.interrupt)
    timer.start()
    with pytest.raises(lakelite.OperationalError, match="interrupted"):
        con.execute(LONG).fetchall()
    timer.join()


def test_the_setting(con: lakelite.Connection, tmp_path: Path) -> None:
    assert con.execute("show statement_timeout_ms").fetchall() == [("0",)]
    con.execute("set global statement_timeout_ms = 2000")
    with lakelite.connect(tmp_path / "lake") as other:
        assert other.execute("show statement_timeout_ms").fetchall() == [("2000",)]
        other.execute("set statement_timeout_ms = 0")
        assert other.execute("show statement_timeout_ms").fetchall() == [("0",)]
        other.execute("reset statement_timeout_ms")
        assert other.execute("show statement_timeout_ms").fetchall() == [("2000",)]
    for wrong in ("-1", "'soon'", "1.5", "86400001"):
        with pytest.raises(lakelite.DataError, match="statement_timeout_ms"):
            con.execute(f"set statement_timeout_ms = {wrong}")


@pytest.mark.parametrize("export", ["to_arrow", "fetch_record_batch"])
def test_an_export_that_runs_too_long_is_stopped(con: lakelite.Connection, export: str) -> None:
    con.execute("set statement_timeout_ms = 200")
    with pytest.raises(lakelite.OperationalError, match="statement_timeout_ms"):
        for _ in getattr(con.execute(LONG), export)():
            pass
    assert con.execute("select count(*) from t").fetchone() == (3,)
