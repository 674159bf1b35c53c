"""Session leases, with real processes (lakelite.storage.leases)."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelite.errors import InterfaceError, OperationalError
from lakelite.storage import leases, locks
from lakelite.storage.files import LakePaths, ensure_directories
from lakelite.storage.leases import SessionLease, Sessions, live_sessions, remove_dead_lease

A, B, C = "a" * 16, "b" * 16, "c" * 16
PRELUDE = """
import os, sys
from pathlib import Path
from lakelite.errors import InterfaceError
from lakelite.storage.files import LakePaths
from lakelite.storage.leases import SessionLease, live_sessions
paths = LakePaths(Path(sys.argv[1]))
def say(*words):
    os.write(1, (' '.join(map(str, words)) + '\\n').encode())
"""


@pytest.fixture
def paths(tmp_path: Path) -> LakePaths:
    made = LakePaths(tmp_path / "lake")
    ensure_directories(made)
    return made


def start(paths: LakePaths, script: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PRELUDE + script, str(paths.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def names(paths: LakePaths) -> list[str]:
    return sorted(os.listdir(paths.leases))


def test_the_oldest_pin_counts(paths: LakePaths) -> None:
    lease = SessionLease(paths, A)

    def pinned() -> int | None:
        return live_sessions(paths).alive[A]

    assert pinned() is None
    for act, snapshot_id, oldest in (
        (lease.pin, 7, 7),
        (lease.pin, 9, 7),
        (lease.pin, 7, 7),
        (lease.unpin, 7, 7),
        (lease.pin, 3, 3),
        (lease.unpin, 7, 3),
        (lease.unpin, 3, 9),
        (lease.unpin, 9, None),
    ):
        act(snapshot_id)
        assert pinned() == oldest
    lease.pin(2**40)
    assert pinned() == 2**40
    lease.close()
    assert live_sessions(paths) == Sessions({}, frozenset())
    assert names(paths) == []
    assert not locks._descriptors


@pytest.mark.parametrize("when", ["pin", "unpin"])
def test_a_garbage_collection_inside_of_pin_or_unpin_may_unpin(paths: LakePaths, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    lease = SessionLease(paths, A)
    for snapshot_id in (5, 7, 7):
        lease.pin(snapshot_id)
    real, collected = os.pwrite, []

    def collect_first(fd: int, data: bytes, offset: int) -> int:
        if not collected:
            collected.append(7)
            lease.unpin(7)
        return real(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", collect_first)
    if when == "pin":
        lease.pin(3)
        lease.unpin(5)
        lease.unpin(3)
    else:
        lease.unpin(5)
    assert collected == [7]
    assert live_sessions(paths).alive == {A: 7}
    lease.unpin(7)
    assert live_sessions(paths).alive == {A: None}
    lease.close()


@given(st.lists(st.integers(1, 5)))
def test_pins_are_a_multiset(numbers: list[int]) -> None:
    stored = []
    lease = object.__new__(SessionLease)
    lease._owner_pid, lease._mutex, lease._pins, lease._unpinned, lease._fd = os.getpid(), threading.Lock(), Counter(), deque(), -1
    lease._write = stored.append  # type: ignore[method-assign]
    held: list[int] = []
    for number in numbers:
        if number in held[: len(held) // 2]:
            lease.unpin(number)
            held.remove(number)
        else:
            lease.pin(number)
            held.append(number)
        assert stored[-1] == min(held, default=0)
    assert all(before != after for before, after in itertools.pairwise(stored)), "only changes are written"


def test_closing_is_final_and_may_be_repeated(paths: LakePaths) -> None:
    lease = SessionLease(paths, A)
    lease.pin(4)
    lease.close()
    lease.close()
    with pytest.raises(InterfaceError, match="closed"):
        lease.pin(3)
    lease.unpin(4)
    gone = SessionLease(paths, B)
    (paths.leases / f"{B}.lease").unlink()
    gone.close()
    assert not locks._descriptors


def test_alive_dead_and_own(paths: LakePaths) -> None:
    own = SessionLease(paths, A)
    own.pin(5)
    script = f"lease = SessionLease(paths, '{B}'); lease.pin(3); say(sorted(live_sessions(paths).alive.items())); sys.stdin.readline()"
    with start(paths, script) as other:
        assert line(other) == str([(A, 5), (B, 3)])
        assert live_sessions(paths) == Sessions({A: 5, B: 3}, frozenset())
        assert remove_dead_lease(paths, A) is remove_dead_lease(paths, B) is False
        other.kill()
        assert other.wait() == -signal.SIGKILL
    assert live_sessions(paths) == Sessions({A: 5}, frozenset({B}))
    assert names(paths) == [f"{A}.lease", f"{B}.lease"]
    assert remove_dead_lease(paths, B) is True
    assert remove_dead_lease(paths, B) is False
    assert live_sessions(paths) == Sessions({A: 5}, frozenset())
    own.close()


def test_two_sweeps_do_not_take_each_other_for_the_session(paths: LakePaths) -> None:
    (paths.leases / f"{A}.lease").write_bytes(b"\7" + b"\0" * 7)
    with open(paths.leases / f"{A}.lease", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert live_sessions(paths).dead == {A}
        assert remove_dead_lease(paths, A) is False


def test_only_leases_are_tried(paths: LakePaths, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"")
    (paths.leases / f"{A}.lease").symlink_to(tmp_path / "outside")
    (paths.leases / f"{B}.lease").mkdir()
    os.mkfifo(paths.leases / f"{C}.lease")
    (paths.leases / "notes.txt").write_bytes(b"")
    assert live_sessions(paths) == Sessions({}, frozenset())
    with pytest.raises(OperationalError, match="symbolic link"):
        remove_dead_lease(paths, A)
    assert len(names(paths)) == 4
    assert live_sessions(LakePaths(tmp_path / "nothing")) == Sessions({}, frozenset())


def test_a_lease_under_its_name_is_never_seen_unlocked(paths: LakePaths) -> None:
    stop = threading.Event()
    wrong: list[Sessions] = []

    def sweep() -> None:
        while not stop.is_set():
            for name in names(paths):
                if name.endswith(".lease"):
                    try:
                        alive, _ = leases._try_lease(paths.leases / name)
                    except FileNotFoundError:
                        continue
                    if not alive and (paths.leases / name).exists():
                        wrong.append(live_sessions(paths))

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    for number in range(200):
        SessionLease(paths, f"{number:016d}").close()
    stop.set()
    sweeper.join()
    assert wrong == []


def test_sweeps_beside_sessions_that_come_and_go(paths: LakePaths) -> None:
    script = """
say('ready')
for number in range(150):
    lease = SessionLease(paths, f'{number:016d}')
    assert live_sessions(paths).alive == {f'{number:016d}': None}
    lease.pin(number + 1)
    assert live_sessions(paths).alive == {f'{number:016d}': number + 1}
    lease.close()
say('done')
"""
    with start(paths, script) as sessions:
        assert line(sessions) == "ready"
        while sessions.poll() is None:
            for session_id in live_sessions(paths).dead:
                remove_dead_lease(paths, session_id)
        assert line(sessions) == "done"
    assert names(paths) == []


def test_a_creation_that_is_swept_before_its_lock_starts_again(paths: LakePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    real, swept = fcntl.flock, []

    def sweep_first(fd: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX and not swept:
            assert live_sessions(paths).dead == {A}
            swept.append(remove_dead_lease(paths, A))
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    lease = SessionLease(paths, A)
    assert swept == [True]
    assert live_sessions(paths) == Sessions({A: None}, frozenset())
    lease.close()


def test_a_creation_that_was_cut_short_is_swept(paths: LakePaths) -> None:
    (paths.leases / f"{A}.new").write_bytes(b"")
    assert live_sessions(paths) == Sessions({}, frozenset({A}))
    assert remove_dead_lease(paths, A) is True
    assert names(paths) == []


def test_a_slow_sweep_does_not_remove_a_newer_file_of_the_same_name(paths: LakePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    new = paths.leases / f"{A}.new"
    new.write_bytes(b"")
    real = fcntl.flock

    def replace_first(fd: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX and new.read_bytes() == b"":
            new.unlink()
            new.write_bytes(b"newer")
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", replace_first)
    remove_dead_lease(paths, A)
    assert new.read_bytes() == b"newer"


def test_a_session_id_is_not_used_twice(paths: LakePaths) -> None:
    lease = SessionLease(paths, A)
    with pytest.raises(OperationalError, match="could not create the lease"):
        SessionLease(paths, A)
    assert live_sessions(paths).alive == {A: None}
    assert names(paths) == [f"{A}.lease"]
    lease.close()


def test_something_that_deletes_every_lease_is_reported(paths: LakePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(old: Path, new: Path) -> None:
        old.unlink()
        raise FileNotFoundError(errno.ENOENT, "gone")

    monkeypatch.setattr(os, "rename", gone)
    with pytest.raises(OperationalError, match="was removed each time"):
        SessionLease(paths, A)
    assert not locks._descriptors


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_pin_that_could_not_be_written_does_not_count(paths: LakePaths, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    lease = SessionLease(paths, A)
    lease.pin(5)

    def fail(fd: int, data: bytes, offset: int) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", fail)
        with pytest.raises(OperationalError, match="could not write the lease"):
            lease.pin(3)
        with pytest.raises(OperationalError, match="could not create the lease"):
            SessionLease(paths, B)
        assert live_sessions(paths) == Sessions({A: 5}, frozenset())
        lease.unpin(5)  # no error: this may be the end of a commit that has landed
    assert live_sessions(paths).alive == {A: 5}
    lease.pin(8)
    assert live_sessions(paths).alive == {A: 8}
    lease.unpin(8)
    assert live_sessions(paths).alive == {A: None}
    lease.close()
    assert names(paths) == []


def test_a_lease_that_cannot_be_tried_stops_the_sweep(paths: LakePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    (paths.leases / f"{A}.lease").write_bytes(b"")

    def denied(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(leases, "open_descriptor", denied)
    for act in (lambda: live_sessions(paths), lambda: remove_dead_lease(paths, A)):
        with pytest.raises(OperationalError, match="permission denied: could not try the lease"):
            act()


def test_threads_pin_together(paths: LakePaths) -> None:
    lease = SessionLease(paths, A)
    lease.pin(1000)

    def work(number: int) -> None:
        for _ in range(50):
            lease.pin(number)
            assert (live_sessions(paths).alive[A] or 1000) <= number
            lease.unpin(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert live_sessions(paths).alive == {A: 1000}
    lease.close()


def test_a_forked_child_neither_frees_nor_removes_the_lease(paths: LakePaths) -> None:
    script = f"""
lease = SessionLease(paths, '{A}')
lease.pin(3)
child = os.fork()
if child == 0:
    for use in (lease.pin, lease.unpin):
        try:
            use(3)
        except InterfaceError as exc:
            say(exc.message)
    lease.close()
    say(live_sessions(paths).alive)
    sys.stdin.readline()
    os._exit(0)
say('child', child)
sys.stdin.readline()
"""
    with start(paths, script) as parent:
        said = sorted(line(parent) for _ in range(4))
        child = int(said[0].split()[1])
        assert said[1:] == ["this connection was opened in another process"] * 2 + [str({A: 3})]
        assert live_sessions(paths) == Sessions({A: 3}, frozenset())
        parent.kill()
        parent.wait()
        assert live_sessions(paths).dead == {A}, "a child that lives on does not keep the lease of a dead parent"
        os.kill(child, signal.SIGKILL)


def test_the_cost_of_a_pin(paths: LakePaths) -> None:
    lease = SessionLease(paths, A)

    def microseconds() -> float:
        begin = time.perf_counter()
        for _ in range(200):
            lease.pin(5)
            lease.unpin(5)
        return (time.perf_counter() - begin) / 200 * 1e6

    assert min(microseconds() for _ in range(10)) < 100, "about 7 on an idle machine"
    lease.close()
