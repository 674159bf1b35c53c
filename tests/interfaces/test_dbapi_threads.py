"""Threads that share a connection, and interrupt()."""

from __future__ import annotations

import threading
import time

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
