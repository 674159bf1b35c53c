"""Durability as the kernel sees it, under strace: the order of a commit's system calls. What follows when one fails: trust/inject.py."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from crash_workload import WATCHED

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

WORKLOAD = Path(__file__).parent.parent / "crash_workload.py"
LINE = re.compile(r"(\d+) +(\w+)\((.*)")
PATH = re.compile(r'<([^>]*)>|"([^"]*)"')


@dataclass(frozen=True)
class SystemCall:
    name: str
    path: str
    text: str


def strace(trace: Path, options: list[str], *arguments: str) -> None:
    command = ["strace", "-f", "--seccomp-bpf", "-y", "-s", "200", "-o", str(trace), *options, sys.executable, str(WORKLOAD), *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=100)


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
    strace(folder / "trace", ["-e", "trace=fsync,fdatasync,openat,close,rename,link,linkat,unlink,unlinkat,flock,write"], str(folder / "lake"))
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
    linked = {path for path in linked if path.endswith(".parquet")}  # filters never have to be there, and none is synced
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
