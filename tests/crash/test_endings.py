"""What may come in the middle of a commit: Ctrl-C, the end of the interpreter, a fork; and clocks that go backwards or ahead."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from crashing import rows

import lakelite
from lakelite import steps
from lakelite.transaction import commit as committing

HOUR_NS = 3_600 * 10**9


# Ctrl-C.


@pytest.mark.parametrize("kind", ["inline", "file", "transaction"])
def test_ctrl_c_at_each_step_of_a_commit_leaves_all_of_it_or_nothing(lake: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "CHECKPOINT_BYTES", 0)
    lake.execute("CREATE TABLE t (a INTEGER); CREATE TABLE u (a INTEGER)")
    lake.execute(f"SET inline_rows = {1000 if kind == 'inline' else 0}")
    reached = set()
    for number, step in enumerate(steps.STEPS):

        def hook(now: steps.Step, wanted: steps.Step = step) -> None:
            if now == wanted:
                steps.hook = lambda _: None
                reached.add(wanted)
                raise KeyboardInterrupt

        monkeypatch.setattr(steps, "hook", hook)
        text = f"INSERT INTO t VALUES ({number})"
        try:
            lake.execute(f"BEGIN; {text}; INSERT INTO u VALUES ({number}); COMMIT" if kind == "transaction" else text)
        except KeyboardInterrupt:
            if lake.in_transaction:
                lake.execute("ROLLBACK")
        there = [rows(lake, f"SELECT count(*) FROM {name} WHERE a = {number}")[0][0] for name in "tu"]
        assert there in (([0, 0], [1, 1]) if kind == "transaction" else ([0, 0], [1, 0])), step
        lake.execute(f"INSERT INTO t VALUES (-{number + 1})")
    assert {"lock", "publish", "commit", "committed", "checkpoint", "answer"} <= reached
    assert rows(lake, "SELECT count(*) FROM t WHERE a < 0") == [(len(steps.STEPS),)]
    lake.execute("VACUUM")
    assert rows(lake, "CHECK LAKE") == []


# The end of the interpreter, and forks, while other threads are in the middle of commits.

ENDING = """
import os, sys, threading, time
import lakelite

def work(number):
    con = lakelite.connect(sys.argv[1], autocommit=True)
    con.execute("SET inline_rows = " + ("0" if number else "1000"))
    n = 0
    while True:
        con.execute("INSERT INTO t VALUES (?, ?)", [number, n])
        os.write(1, f"{number} {n}\\n".encode())
        n += 1
        done.append(number)

done = []
for number in range(2):
    threading.Thread(target=work, args=(number,), daemon=True).start()
while len(done) < int(sys.argv[2]) or {*done} != {0, 1}:
    time.sleep(0.001)
"""
BUSY = """
import sys, threading, time
import lakelite

con = lakelite.connect(sys.argv[1], autocommit=True)
begun = threading.Event()

def work():
    begun.set()
    con.execute("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3").fetchall()

def connect():
    while True:
        lakelite.connect(":memory:").close()

for body in (work, connect):
    threading.Thread(target=body, daemon=True).start()
begun.wait()
time.sleep(float(sys.argv[2]))
"""
BUSY_LATE = """
import os, signal, sys, threading, time
import lakelite
from lakelite.interfaces import dbapi

con = lakelite.connect(autocommit=True)
opened = dbapi.open_lake

def slow(*given, **named):
    time.sleep(60 if sys.argv[1] == "opening" else 1)
    return opened(*given, **named)

def work():
    time.sleep(0.6)
    while True:
        con.execute("SELECT count(*) FROM range(20000) a, range(20000) b WHERE a.range * b.range % 7 = 3").fetchall()

def interrupt():
    time.sleep(0.8)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=work, daemon=True).start()
dbapi.open_lake = slow
threading.Thread(target=lambda: lakelite.connect(), daemon=True).start()
if sys.argv[1] == "Ctrl-C":
    threading.Thread(target=interrupt, daemon=True).start()
time.sleep(0.3)
"""
WAITING = """
is_over = threading.Event()

def work():
    is_over.wait()
    con.execute("INSERT INTO t VALUES (1)")

def stop():
    is_over.set()
    thread.join()

atexit.register(stop)
thread = threading.Thread(target=work, daemon=True)
import sys, lakelite
con = lakelite.connect(sys.argv[1], autocommit=True)
thread.start()
"""
FORKING = """
import os, sys, threading
import lakelite

con = lakelite.connect(sys.argv[1], autocommit=True)
over = False

def work():
    n = 0
    while not over:
        con.execute("INSERT INTO t VALUES (0, ?)", [n])
        os.write(1, f"0 {n}\\n".encode())
        n += 1

thread = threading.Thread(target=work)
thread.start()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        try:
            con.execute("SELECT 1")
        except lakelite.InterfaceError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
over = True
thread.join()
con.close()
"""


@pytest.mark.parametrize(("script", "argument"), [(ENDING, "2"), (ENDING, "25"), (FORKING, "")], ids=["ends early", "ends later", "forks"])
def test_while_threads_commit_the_process(lake: Any, tmp_path: Path, script: str, argument: str) -> None:
    lake.execute("CREATE TABLE t (writer INTEGER, n INTEGER)")
    ran = subprocess.run([sys.executable, "-c", script, tmp_path / "lake", argument], capture_output=True, text=True, timeout=100)
    assert (ran.returncode, ran.stderr) == (0, "")
    acknowledged = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    found = rows(lake, "FROM t ORDER BY ALL")
    assert {*acknowledged} <= {*found}
    assert len(found) == len({*found}) <= len(acknowledged) + 2, "what was not acknowledged can only be the last of each"
    lake.execute("VACUUM")
    assert rows(lake, "CHECK LAKE") == []


@pytest.mark.parametrize("moment", ["0", "0.02", "0.3"])
def test_a_daemon_thread_in_the_middle_of_a_query_or_an_opening_does_not_abort_the_process(tmp_path: Path, moment: str) -> None:
    begun = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", BUSY, tmp_path / "lake", moment], capture_output=True, text=True, timeout=100)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert time.monotonic() - begun < 30, "the query was stopped: whole, it takes hours"


@pytest.mark.parametrize("meanwhile", ["opening", "Ctrl-C"])
def test_while_an_opening_takes_long_what_other_threads_begin_is_stopped(meanwhile: str) -> None:
    """Also where a person who thinks that the program hangs presses Ctrl-C."""
    ran = subprocess.run([sys.executable, "-c", BUSY_LATE, meanwhile], capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_ordinary_error_within_an_exit_function_comes_at_once() -> None:
    script = WAITING.replace("INSERT INTO t VALUES (1)", "FROM nowhere").replace("sys.argv[1]", "':memory:'")
    begun = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", f"import atexit, threading, lakelite\n{script}"], capture_output=True, text=True, timeout=30)
    assert time.monotonic() - begun < 2.9, "the wait of a thread that was interrupted is 3 s"
    assert (ran.returncode, "nowhere" in ran.stderr) == (0, True)


@pytest.mark.parametrize("early", [False, True], ids=["as most programs do", "before lakelite is imported"])
def test_an_exit_function_that_waits_for_a_thread_that_writes(lake: Any, tmp_path: Path, early: bool) -> None:
    """It runs before lakelite's, and what the thread writes is there; else the thread is refused, and nothing hangs."""
    lake.execute("CREATE TABLE t (a INTEGER)")
    begun = time.monotonic()
    script = f"import atexit, threading\n{'' if early else 'import lakelite'}\n{WAITING}"
    ran = subprocess.run([sys.executable, "-c", script, tmp_path / "lake"], capture_output=True, text=True, timeout=100)
    assert time.monotonic() - begun < 30
    assert ran.returncode == 0
    assert ("InterfaceError: the process is about to end" if early else "") in ran.stderr
    assert early or not ran.stderr
    assert rows(lake, "FROM t") == ([] if early else [(1,)])


# Clocks.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Hours that the clock is ahead by, to be set."""
    ahead, real = [0], time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead[0] * HOUR_NS)
    return ahead


def commit_times(con: Any) -> list[Any]:
    return [moment for (moment,) in rows(con, "SELECT committed_at FROM lake.snapshots ORDER BY snapshot_id")]


def test_commit_times_never_go_backwards(lake: Any, clock: list[int]) -> None:
    lake.execute("CREATE TABLE t (a INTEGER)")
    for n, hours in enumerate((0, -30, -30, 48, 0, -1, 0)):
        clock[0] = hours
        lake.execute("INSERT INTO t VALUES (?)", [n])
    times = commit_times(lake)
    assert times == sorted({*times})
    for version, moment in enumerate(times[1:], 1):
        assert rows(lake, f"SELECT count(*) FROM t AT (TIMESTAMP => TIMESTAMP '{moment}')") == [(version - 1,)]


@pytest.mark.parametrize("hours", [-30, 0])
def test_a_clock_that_was_set_back_lets_nothing_expire_too_early(lake: Any, clock: list[int], hours: int) -> None:
    """Of a lake whose last commits were made by a clock that was ahead, or is looked at by one that is behind."""
    lake.execute("CREATE TABLE t AS SELECT 1 AS a; INSERT OVERWRITE t SELECT 2")
    clock[0] = 48 if hours == 0 else 0
    lake.execute("INSERT OVERWRITE t SELECT 3")
    clock[0] = hours
    lake.execute("INSERT OVERWRITE t SELECT 4")
    assert rows(lake, "VACUUM RETAIN 1 HOURS")[0][2] == 0
    assert [rows(lake, f"FROM t AT (VERSION => {n})") for n in (1, 2, 3, 4)] == [[(1,)], [(2,)], [(3,)], [(4,)]]
    clock[0] = 100
    lake.execute("VACUUM RETAIN 1 HOURS")
    assert rows(lake, "SELECT count(*) FROM lake.snapshots") == [(1,)]
    assert rows(lake, "FROM t") == [(4,)]


def test_a_clock_that_is_set_back_while_others_read_leaves_what_they_read(lake: Any, tmp_path: Path, clock: list[int]) -> None:
    lake.execute("SET inline_rows = 0; CREATE TABLE t AS SELECT 1 AS a")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as reader:
        reader.execute("BEGIN")
        for n, hours in enumerate((48, -48, 1000)):
            clock[0] = hours
            lake.execute(f"INSERT OVERWRITE t SELECT {n + 2}")
            lake.execute("VACUUM RETAIN 0 HOURS")
            assert rows(reader, "FROM t") == [(1,)]
