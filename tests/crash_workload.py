"""What is run under strace: a session whose system calls are watched, or made to fail.

crash_workload.py watched LAKE            marks in the trace what is under way, by writing to /dev/null
crash_workload.py failing DIRECTORY SHIFTS CALL
    for each shift, in a child of its own, the session of `failing` on a copy DIRECTORY/SHIFT of DIRECTORY/lake. strace
    counts calls per process, so a child that makes SHIFT calls for nothing meets the failure SHIFT calls earlier.
    Each child reports one line of JSON, by writev, which is not made to fail.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  (so that no child has to import it)
import pyarrow.types  # noqa: F401
import pyroaring  # noqa: F401
import sqlglot  # noqa: F401

import lakelite
import lakelite.interfaces.dbapi

WATCHED = {
    "inline insert": "INSERT INTO t VALUES (1)",
    "file insert": "INSERT INTO t SELECT range FROM range(100000)",
    "create table as": "CREATE TABLE u AS SELECT range AS a FROM range(100000)",
    "update": "UPDATE t SET a = a + 1 WHERE a < 50000",
    "delete": "DELETE FROM t WHERE a % 2 = 0",
    "restore": "RESTORE TABLE t TO VERSION AS OF 3",
}
UNWATCHED = (
    "FROM t",
    "SHOW TABLES",
    "DESCRIBE t",
    "DESCRIBE HISTORY",
    "FROM t AT (VERSION => 2)",
    "VACUUM RETAIN 0 HOURS",
    "SELECT 1",
    "DROP TABLE u",
)
FAILING = (
    "INSERT INTO t SELECT range + 100 FROM range(20)",
    "DELETE FROM t WHERE a < 5",
    "UPDATE t SET a = -a WHERE a > 110",
    "CREATE TABLE IF NOT EXISTS u AS SELECT 1 AS b",
    "INSERT INTO t VALUES (7)",
    "INSERT INTO t SELECT range + 200 FROM range(20)",
)
AFTERWARDS = "INSERT INTO t VALUES (1000)"


def watched(lake: str) -> None:
    marks = os.open("/dev/null", os.O_WRONLY)

    def mark(text: str) -> None:
        os.write(marks, text.encode())

    con = lakelite.connect(lake, autocommit=True)
    con.execute("CREATE TABLE t (a BIGINT); SET upkeep = off")
    mark("opened")
    for name, sql in WATCHED.items():
        mark(f"begin {name}")
        con.execute(sql)
        mark(f"end {name}")
    for sql in UNWATCHED:
        con.execute(sql).close()
    mark("closing")
    con.close()


CALLS: dict[str, Callable[[int], Any]] = {"fdatasync": os.fdatasync, "fsync": os.fsync, "pwrite64": lambda fd: os.pwrite(fd, b"x", 0)}


def failing(directory: str, shifts: str, call: str) -> None:
    for shift in map(int, shifts.split(",")):
        pid = os.fork()
        if pid == 0:
            lake = Path(directory, str(shift))
            shutil.copytree(Path(directory, "lake"), lake)
            report = json.dumps([shift, *one_failing(str(lake), shift, CALLS[call])]) + "\n"
            os.writev(1, [report.encode()])
            os.kill(os.getpid(), signal.SIGKILL)  # what is not durable by now never will be
        os.waitpid(pid, 0)


def one_failing(lake: str, shift: int, call: Callable[[int], Any]) -> tuple[list[str], list[str]]:
    """The statements that were acknowledged, and the errors of opening and of the others. With an odd shift, the first of these is the end."""
    nothing = os.open(Path(lake).with_suffix(".nothing"), os.O_RDWR | os.O_CREAT)
    for _ in range(shift):
        call(nothing)
    landed: list[str] = []
    errors: list[str] = []
    while not cons:
        errors += attempt(lambda: cons.append(lakelite.connect(lake, autocommit=True)))
    for sql in ("SET inline_rows = 0", "SET threads = 1"):  # strace counts the calls of each thread for itself
        cons[0].execute(sql)
    for sql in (*FAILING, *[AFTERWARDS] * 10):  # as often as it takes until the failures are over
        error = attempt(lambda sql=sql: cons[0].execute(sql))  # type: ignore[misc]
        errors += error
        landed += [] if error else [sql]
        if (error and shift % 2) or (sql == AFTERWARDS and not error):
            break
    return landed, errors


cons: list[Any] = []


def attempt(act: Callable[[], Any]) -> list[str]:
    try:
        act()
    except BaseException as error:
        return [f"{type(error).__name__}: {error}"]
    return []


if __name__ == "__main__":
    {"watched": watched, "failing": failing}[sys.argv[1]](*sys.argv[2:])
