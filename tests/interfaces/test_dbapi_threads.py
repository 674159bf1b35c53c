"""Threads that share a connection, interrupt() and close()."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakelite


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("create table t (a integer, b varchar); insert into t values (1, 'one'), (2, 'two'), (3, null)")
    return lake


def test_threads_share_a_connection(con: lakelite.Connection) -> None:
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            barrier.wait()
            for n in range(10):
                con.execute("insert into t values (?, ?)", [100 + number, str(n)])
                assert con.execute("select count(*) from t where a = ?", [100 + number]).fetchone() == (n + 1,)
                cursor = con.execute("select a from t")
                assert len(cursor.fetchmany(2)) == 2
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert con.execute("select a, count(*) from t where a >= 100 group by a order by a").fetchall() == [(100 + n, 10) for n in range(4)]


LONG = "select count(*) from range(10000000) a, range(10000000) b where a.range * 3 = b.range * 7 + 1 and hash(a.range, b.range) % 7 = 3"


@pytest.mark.parametrize(
    "sql",
    [LONG, f"insert into t select ({LONG}), 'x'", f"delete from t where a = ({LONG})", f"update t set a = ({LONG})", f"create table u as {LONG}"],
)
@pytest.mark.parametrize("explicit", [False, True])
def test_interrupt_stops_a_long_statement(con: lakelite.Connection, sql: str, explicit: bool) -> None:
    if explicit:
        con.execute("begin; insert into t values (4, 'mine')")
    stopped: list[float] = []
    done = threading.Event()

    def stop() -> None:
        while not done.wait(0.2):
            stopped.append(time.monotonic())
            con.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(lakelite.OperationalError, match="interrupted"):
            con.execute(sql.replace("hash(a.range", "hash(a.range + 0")).fetchall()
        ended = time.monotonic()
    finally:
        done.set()
        thread.join()
    assert ended - stopped[0] < 1.5
    assert con.in_transaction == explicit
    assert con.execute("select count(*) from t").fetchone() == (3 + explicit,)
    con.execute("insert into t values (5, 'after')")
    con.commit()
    assert con.execute("select count(*) from t").fetchone() == (4 + explicit,)
    assert con.execute("show tables").fetchall() == [("t",)]


def test_interrupt_stops_the_reading_of_a_result(con: lakelite.Connection) -> None:
    cursor = con.execute("select a.range from range(100000) a, range(100000) b")
    assert cursor.fetchone() is not None
    con.interrupt()
    with pytest.raises(lakelite.OperationalError, match="interrupted"):
        cursor.fetchall()
    assert con.execute("select 1").fetchone() == (1,)


def test_interrupt_with_nothing_running(con: lakelite.Connection) -> None:
    con.interrupt()
    assert con.execute("select count(*) from t").fetchone() == (3,)
    assert con.execute("insert into t values (4, 'x')").rowcount == 1


def run_in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Starts it; what it raised is in the list once the thread is over."""
    failed: list[BaseException] = []

    def body() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    return thread, failed


@pytest.mark.parametrize("sql", ["select a.range from range(3000000) a", "select sum(hash(a.range)) from range(100000000) a"])
def test_close_waits_for_a_fetch_of_another_thread(con: lakelite.Connection, sql: str) -> None:
    cursor = con.execute(sql)
    begun = threading.Event()

    def read() -> int:
        begun.set()
        return len(cursor.fetchall())

    thread, failed = run_in_thread(read)
    begun.wait()
    time.sleep(0.05)
    con.close()
    thread.join()
    assert all(isinstance(error, lakelite.InterfaceError) and "closed" in str(error) for error in failed)
    with pytest.raises(lakelite.InterfaceError, match="connection is closed"):
        cursor.fetchall()


def test_close_waits_for_a_statement_of_another_thread(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t (a bigint)")
    begun = threading.Event()

    def write() -> None:
        begun.set()
        lake.execute("insert into t select hash(range) // 3 from range(2000000)")

    thread, failed = run_in_thread(write)
    begun.wait()
    time.sleep(0.05)
    lake.close()
    thread.join()
    with lakelite.connect(tmp_path / "lake") as other:
        count = other.execute("select count(*) from t").fetchone()[0]
    assert (count, [type(error) for error in failed]) in ((2000000, []), (0, [lakelite.InterfaceError]))


@pytest.mark.parametrize("seed", range(3))
def test_close_and_interrupt_among_busy_threads(tmp_path: Path, seed: int) -> None:
    """Whatever the moment: a statement is done, or fails with an error of ours; nothing hangs, and the lake stays whole."""
    con = lakelite.connect(tmp_path / "lake", autocommit=True)
    con.execute("create table t (n integer, k integer)")
    done: dict[int, int] = {}

    def work(number: int) -> None:
        done[number] = 0
        while True:
            try:
                with con.transaction():
                    con.execute("insert into t values (?, 1)", [number])
                    con.execute("insert into t select ?, 2 from range(1)", [number])
                done[number] += 1
                cursor = con.execute("select * from t a, t b")
                assert len(cursor.fetchmany(1)) == 1
                for _ in cursor:
                    pass
            except lakelite.OperationalError as error:
                assert "interrupted" in str(error)  # noqa: PT017  (others are raised)
            except lakelite.InterfaceError as error:
                assert "connection is closed" in str(error)  # noqa: PT017
                return

    running = [run_in_thread(lambda number=number: work(number)) for number in range(3)]
    for _ in range(40):
        time.sleep(0.005 * (seed + 1))
        con.interrupt()
    con.close()
    for thread, _ in running:
        thread.join(60)
        assert not thread.is_alive()
    assert [failed for _, failed in running] == [[], [], []]
    with pytest.raises(lakelite.InterfaceError, match="closed"):
        con.interrupt()
    with lakelite.connect(tmp_path / "lake", read_only=True) as other:
        found = other.execute("select n, count(*) filter (where k = 1), count(*) filter (where k = 2) from t group by n order by n").fetchall()
    assert all(first == second >= done[n] and first <= done[n] + 1 for n, first, second in found)


def test_threads_that_share_a_cursor_do_not_meet_in_a_fetch(con: lakelite.Connection) -> None:
    """Not promised by threadsafety 2, but each row still comes once."""
    cursor = con.execute("select range from range(200000)")
    found: list[list[tuple[int]]] = []

    def read() -> None:
        while rows := cursor.fetchmany(1000):
            found.append(rows)

    running = [run_in_thread(read) for _ in range(4)]
    for thread, _ in running:
        thread.join()
    assert [failed for _, failed in running] == [[]] * 4
    assert sorted(n for rows in found for (n,) in rows) == list(range(200000))
    assert cursor.rownumber is not None


def test_a_cursor_of_a_forked_child_is_refused(con: lakelite.Connection) -> None:
    cursor = con.execute("select a from t order by a")
    assert cursor.fetchone() == (1,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        pid = os.fork()
    if pid == 0:
        refused = 0
        for use in (cursor.fetchall, lambda: con.execute("select 1"), con.cursor, con.interrupt, lambda: con.transaction().__enter__()):
            try:
                use()
            except lakelite.InterfaceError as error:
                refused += "another process" in str(error)
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    assert cursor.fetchall() == [(2,), (3,)]


def _says_in_a_child(use: Callable[[], object]) -> str:
    """What `use` raises in a forked child."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            use()
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return said


def test_a_stream_of_a_forked_child_is_refused(con: lakelite.Connection) -> None:
    con.execute("insert into t select range, null from range(100000)")
    reader = con.execute("from t").fetch_record_batch(100)
    begun = con.execute("from t").fetch_record_batch(100)
    begun.read_next_batch()
    stream = pa.RecordBatchReader.from_stream(con.execute("from t"))  # what other libraries read
    for one in (reader, begun):
        assert _says_in_a_child(one.read_next_batch).startswith("InterfaceError: this connection was opened in another process")
    assert "this connection was opened in another process" in _says_in_a_child(stream.read_next_batch)
    assert "this connection was opened in another process" in _says_in_a_child(con.execute("from t").fetch_record_batch)
    assert reader.read_all().num_rows == stream.read_all().num_rows == 100003


def test_closing_what_another_thread_read_when_the_child_was_forked_does_not_wait(con: lakelite.Connection) -> None:
    cursor = con.execute("from t")
    assert cursor._result is not None
    held = cursor._result._lock
    taken, free = threading.Event(), threading.Event()

    def hold() -> None:
        with held:
            taken.set()
            free.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    assert _says_in_a_child(cursor.close) == ""
    free.set()
    thread.join()


FORKED = """
import gc, os, sys, warnings
import lakelite
warnings.simplefilter("ignore", DeprecationWarning)
con = lakelite.connect(sys.argv[1], autocommit=True)
con.execute("create table t (a integer)")
con.execute("insert into t select range from range(100000)")
held = [con.execute("select a from t"), con.execute("select a from t").fetch_record_batch(100), con.execute("show tables"), con.execute("from t")]
held.append(held[3].fetchone() and con.execute("select a from t").fetch_record_batch(100))
held.append(con.duckdb())
pid = os.fork()
if pid == 0:
    del held
    gc.collect()
    del con
    gc.collect()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert len(held[0].fetchall()) == 100000
assert held[1].read_all().num_rows == 100000
assert held[-1].execute("select count(*) from t").fetchall() == [(100000,)]
print("read on")
"""


def test_results_that_a_forked_child_collects_say_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path / "lake")], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("read on\n", "")
