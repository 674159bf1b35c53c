"""Durability as the kernel sees it, under strace: the order of a commit's system calls, and what follows when one of them fails."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from crash_workload import AFTERWARDS, WATCHED
from crashing import catalogued_files, contents, data_files, opened

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

WORKLOAD = Path(__file__).parent.parent / "crash_workload.py"
LINE = re.compile(r"(\d+) +(\w+)\((.*)")
PATH = re.compile(r'<([^>]*)>|"([^"]*)"')


@dataclass(frozen=True)
class SystemCall:
    name: str
    path: str
    text: str


def strace(trace: Path, options: list[str], *arguments: str) -> str:
    command = ["strace", "-f", "--seccomp-bpf", "-y", "-s", "200", "-o", str(trace), *options, sys.executable, str(WORKLOAD), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout


def calls_in(trace: Path) -> list[SystemCall]:
    """In the order of their beginnings."""
    found = []
    for line in trace.read_text().splitlines():
        match = LINE.match(line)
        if match:
            path = PATH.search(match[3].split(", ", 1)[1] if match[2] == "openat" else match[3])
            found.append(SystemCall(match[2], (path[1] or path[2]) if path else "", match[3]))
    return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[SystemCall], Path]:
    folder = tmp_path_factory.mktemp("watched")
    strace(
        folder / "trace", ["-e", "trace=fsync,fdatasync,openat,close,rename,link,linkat,unlink,unlinkat,flock,write"], "watched", str(folder / "lake")
    )
    return calls_in(folder / "trace"), folder / "lake"


def marked(calls: list[SystemCall], begin: str, end: str) -> list[SystemCall]:
    where = [next(i for i, c in enumerate(calls) if c.name == "write" and c.path == "/dev/null" and f'"{mark}"' in c.text) for mark in (begin, end)]
    return calls[where[0] + 1 : where[1]]


def is_sync(call: SystemCall) -> bool:
    return call.name in ("fsync", "fdatasync")


@pytest.mark.parametrize("name", WATCHED)
def test_the_order_of_a_commit(name: str, watched: tuple[list[SystemCall], Path]) -> None:
    """Data files are synced, then their directories, then the commit lock is taken, then the WAL is synced, then the answer is given."""
    calls, lake = watched
    calls = marked(calls, f"begin {name}", f"end {name}")
    wal = f"{lake}/catalog.sqlite-wal"
    wal_sync = max(i for i, c in enumerate(calls) if is_sync(c) and c.path == wal)
    lock = max(i for i, c in enumerate(calls[:wal_sync]) if c.name == "flock" and c.path == f"{lake}/commit.lock" and "LOCK_EX" in c.text)
    unlock = min(i for i, c in enumerate(calls) if i > wal_sync and c.name == "flock" and "LOCK_UN" in c.text)
    assert lock < wal_sync < unlock
    written = {c.path for c in calls if c.path.endswith(".parquet") and c.name == "openat" and "O_CREAT" in c.text}
    linked = {re.findall(r'"([^"]+)"', c.text)[-1] for c in calls if c.name in ("link", "linkat")}
    assert bool(written) == (name in ("file insert", "create table as", "update")), written
    assert bool(linked) == (name == "restore"), linked
    synced = {c.path: i for i, c in enumerate(calls) if is_sync(c)}
    for path in written | linked:
        assert synced[path] < synced[str(Path(path).parent)] < lock
    if name == "create table as":
        assert synced[f"{lake}/data"] < lock
    assert not any(is_sync(c) for c in calls[lock:wal_sync] if c.path != wal), "the lock is held while a data file is synced"


def test_nobody_but_sqlite_opens_the_catalog(watched: tuple[list[SystemCall], Path]) -> None:
    """Closing any other descriptor on it would drop SQLite's locks: each file is opened once per connection, and closed at its end only."""
    calls, lake = watched
    names = {f"{lake}/catalog.sqlite{ending}" for ending in ("", "-wal", "-shm")}
    used = [c for c in marked(calls, "opened", "closing") if c.path in names and c.name in ("openat", "close")]
    assert used == []
    opening = [c for c in calls if c.path in names and c.name == "openat"]
    assert sorted(c.path for c in opening) == sorted(names)
    assert all("O_NOFOLLOW" in c.text and "O_CREAT" in c.text for c in opening)


# Failing calls.


def check_failures(folder: Path, call: str, error: str, shifts: range, length: int) -> None:
    """The calls from number shifts.stop on, `length` of them, fail; each child is shifted against that by another number."""
    with opened(folder / "lake") as con:
        con.execute("SET inline_rows = 0")
        con.execute("CREATE TABLE t AS SELECT range AS a FROM range(20)")
        con.execute("INSERT INTO t SELECT range + 50 FROM range(20)")
    inject = f"inject={call}:error={error}:when={shifts.stop}..{shifts.stop + length - 1}"
    said = strace(folder / "trace", ["-e", f"trace={call}", "-e", inject], "failing", str(folder), ",".join(map(str, shifts)), call)
    reports = [json.loads(line) for line in said.splitlines()]
    assert [report[0] for report in reports] == list(shifts), said
    assert sum(bool(errors) for _, _, errors in reports) >= len(reports) // 2, "too few of the failures met a statement"
    for shift, landed, errors in reports:
        assert all(e.startswith(("OperationalError: ", "CannotOpen: ")) for e in errors), (shift, errors)
        assert AFTERWARDS in landed or (shift % 2 and errors), (shift, errors)
        check_contents(folder / str(shift), landed)


def check_contents(lake: Path, landed: list[str]) -> None:
    with closing(duckdb.connect()) as oracle, opened(lake) as con:
        for sql in ("CREATE TABLE t AS FROM range(20) r(a)", "INSERT INTO t FROM range(50, 70)", *landed):
            oracle.execute(sql)
        assert contents(con) == contents(oracle)
        con.execute("VACUUM")
        assert data_files(lake) == catalogued_files(lake)


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_a_failing_sync(call: str, tmp_path: Path) -> None:
    """Half of the sessions die at once: what was said to have failed must not come back by the WAL."""
    check_failures(tmp_path, call, "EIO", range(1, 11), 1)


def test_a_full_disk(tmp_path: Path) -> None:
    """Full for a few writes of the lease, a data file or the WAL."""
    check_failures(tmp_path, "pwrite64", "ENOSPC", range(40, 140, 13), 6)
