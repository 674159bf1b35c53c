"""A fork server: one interpreter that has everything imported and forks a child for each job, which may die in it.

It reads one job per line from standard input (JSON: `id`, `name`, `arguments`), and writes events to standard output, one
JSON object per line: what the job says with `tell`, and in the end its exit status. A job is one of `JOBS`, or `module:function` of this folder's
parent. It may name a bug (trust/bugs.py), which it then runs with.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  (so that no child has to import it)
import pyarrow
import pyarrow.compute
import pyroaring  # noqa: F401
import sqlglot

import lakelite
import lakelite.interfaces.dbapi
import lakelite.mapping.wording
from lakelite import steps
from lakelite.catalog import opened
from lakelite.catalog.queries import migrations
from lakelite.transaction import commit as committing

sys.path.insert(0, str(Path(__file__).parent.parent))
from crashing import catalogued_files, contents, data_files
from trust.bugs import bug

Tell = Callable[..., None]
running: dict[int, int] = {}  # process id → job id
sqlglot.parse_one("SELECT 1 WHERE a = 1", dialect="duckdb")  # so that its dialect is loaded
opened._expected_objects(len(migrations()))
pyarrow.array([0])  # where pandas is installed, pyarrow imports it with its first array: a quarter of a second in every child


# Jobs.


def kill(
    tell: Tell, lake: str, before: list[str], statements: list[str], step: str, nth: int, winner: str | None, lands: str, looks: bool = False
) -> None:
    """Runs `before`, then `statements`, and dies when `step` is reached for the `nth` time. `winner` lands when the step `lands` is reached first.

    With `looks` it tells first what is there, as who comes after a crash.
    """
    committing.CHECKPOINT_BYTES = 0
    con = lakelite.connect(lake, autocommit=True)
    if looks:
        tell("found", **state_of(con, Path(lake)))
    other = lakelite.connect(lake, autocommit=True) if winner else None
    for sql in before:
        con.execute(sql)
        tell("acknowledged", sql=sql)
    left = nth

    def hook(reached: str) -> None:
        nonlocal left, other
        if reached == step:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        if other is not None and reached == lands:
            steps.hook = lambda _: None
            other.execute(winner)
            other = None
            tell("acknowledged", sql=winner)
            steps.hook = hook

    steps.hook = hook
    for sql in statements:
        con.execute(sql)
        tell("acknowledged", sql=sql)


def state_of(con: Any, lake: Path) -> dict[str, Any]:
    """Every table with its rows, and what one sweep leaves: files that the catalog does not know, and such as it only knows."""
    tables = contents(con)
    con.execute("VACUUM").close()
    files, catalogued = data_files(lake), catalogued_files(lake)
    return {"tables": tables, "orphans": sorted(files - catalogued), "missing": sorted(catalogued - files)}


def write_until_killed(tell: Tell, lake: str, scripts: list[tuple[int, list[str]]]) -> None:
    """Tells what is there, then runs each script on a connection and a thread of its own, and acknowledges every statement by the script's number."""
    first = lakelite.connect(lake, autocommit=True)
    tell("found", **state_of(first, Path(lake)))

    def run(number: int, script: list[str]) -> None:
        con = first if number == scripts[0][0] else lakelite.connect(lake, autocommit=True)
        con.execute("SET inline_rows = 4")
        for sql in script:
            con.execute(sql)
            tell("acknowledged", script=number)

    threads = [threading.Thread(target=run, args=script) for script in scripts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hold(tell: Tell, lake: str, statements: list[str], step: str, gate: str) -> None:
    """Runs `statements`; at the first `step` it says so and waits until somebody has opened the FIFO `gate` for writing and closed it."""
    con = lakelite.connect(lake, autocommit=True)
    con.execute("SET inline_rows = 0")

    def hook(reached: str) -> None:
        if reached == step:
            steps.hook = lambda _: None
            tell("stopped")
            Path(gate).read_bytes()

    steps.hook = hook
    for sql in statements:
        con.execute(sql)
    tell("done")
    con.close()


def write(tell: Tell, lake: str, statements: list[str]) -> None:
    """Runs `statements` again and again in new sessions until it is killed, {n} being the round; tells of each round whose first one is done."""
    for number in itertools.count():
        con = lakelite.connect(lake, autocommit=True)
        con.execute("SET inline_rows = 0")
        for place, sql in enumerate(statements):
            con.execute(sql.format(n=number))
            if place == 0:
                tell("round", number=number)
        con.close()


def use_in_fork(tell: Tell, lake: str) -> None:
    """A forked child tries its parent's connection; the parent goes on."""
    con = lakelite.connect(lake, autocommit=True)
    con.execute("CREATE TABLE t (a INTEGER)")
    cursor = con.execute("SELECT range FROM range(10000)")
    cursor.fetchmany(3)
    for sql in ("SELECT 1", "INSERT INTO t VALUES (1)", "COMMIT", "VACUUM"):
        pid = os.fork()
        if pid == 0:
            try:
                con.execute(sql)
                tell("child", error=None)
            except lakelite.Error as error:
                tell("child", error=type(error).__name__)
            con.close()
            os._exit(0)
        os.waitpid(pid, 0)
        con.execute("INSERT INTO t VALUES (2)")
    tell("parent", rows=con.execute("SELECT count(*) FROM t").fetchall()[0][0], cursor=len(cursor.fetchall()))
    con.close()


JOBS: dict[str, Callable[..., None]] = {job.__name__: job for job in (kill, write_until_killed, hold, write, use_in_fork)}


def job_of(name: str) -> Callable[..., None]:
    if name in JOBS:
        return JOBS[name]
    module, function = name.split(":")
    found: Callable[..., None] = getattr(importlib.import_module(module), function)
    return found


# The server.


def say(**event: Any) -> None:
    # One call: lines of several processes do not mix. And one that SQLite and DuckDB do not make: harnesses let the calls of these fail.
    os.writev(1, [(json.dumps(event) + "\n").encode()])


def child(job: dict[str, Any]) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def tell(event: str, **details: Any) -> None:
        say(id=job["id"], event=event, **details)

    tell("started", pid=os.getpid())
    try:
        with bug(job["bug"]):
            job_of(job["name"])(tell, **job["arguments"])
    except BaseException as error:
        tell("error", error=type(error).__name__, message=str(error))
        return 1
    return 0


def reap(*_: Any) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        say(id=running.pop(pid), event="ended", status=os.waitstatus_to_exitcode(status))


def main() -> None:
    signal.signal(signal.SIGCHLD, reap)
    for line in iter(sys.stdin.readline, ""):
        job = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # a child may end before it is in `running`
        pid = os.fork()
        if pid == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            os._exit(child(job))
        running[pid] = job["id"]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


if __name__ == "__main__":
    main()
