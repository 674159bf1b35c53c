"""The commit lock, with real processes (lakelite.storage.locks)."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelite.errors import InternalError, OperationalError
from lakelite.storage import locks
from lakelite.storage.locks import CommitLock

PRELUDE = """
import os, signal, sys, threading, time
from pathlib import Path
from lakelite.errors import InterfaceError, OperationalError
from lakelite.storage.locks import CommitLock
path = Path(sys.argv[1])
lock = CommitLock(path)
def say(*words):
    os.write(1, (' '.join(map(str, words)) + '\\n').encode())
"""
HOLD = "lock.acquire(10_000); say('held'); sys.stdin.readline(); lock.release(); say('free'); sys.stdin.readline()"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "commit.lock"


class Processes:
    """Python processes that are gone when the test is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.started: list[subprocess.Popen[str]] = []

    def start(self, script: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + script, str(self._path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        return process


@pytest.fixture
def processes(path: Path) -> Iterator[Processes]:
    running = Processes(path)
    yield running
    for process in running.started:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


def settles(condition: object) -> bool:
    """Whether `condition()` comes true within five seconds."""
    assert callable(condition)
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(condition())


def helpers() -> int:
    return sum(thread.name == "lakelite-commit-lock" for thread in threading.enumerate())


def test_free_held_free(path: Path) -> None:
    before = descriptors()
    lock, other = CommitLock(path), CommitLock(path)
    with lock.held(0):
        with pytest.raises(OperationalError, match="another thread of this process has held the commit lock for 0 s"):
            other.acquire(0)
        with open(path, "rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with pytest.raises(InternalError, match="not held"):
        lock.release()
    with pytest.raises(KeyError), other.held(0):
        raise KeyError
    other.acquire(0)
    other.release()
    assert descriptors() == before


def test_the_descriptor_is_not_inherited_by_programs(path: Path) -> None:
    with CommitLock(path).held(0):
        assert locks._descriptors
        assert not any(os.get_inheritable(fd) for fd in locks._descriptors)
    assert not locks._descriptors


def test_processes_exclude_each_other(path: Path, processes: Processes) -> None:
    script = """
say('ready'); sys.stdin.readline()
for _ in range(150):
    with lock.held(20_000):
        count = int(path.with_suffix('.count').read_text())
        if _ % 10 == 0: time.sleep(0.0005)
        path.with_suffix('.count').write_text(str(count + 1))
say('done')
"""
    counter = path.with_suffix(".count")
    counter.write_text("0")
    started = [processes.start(script) for _ in range(3)]
    assert [line(p) for p in started] == ["ready"] * 3
    for process in started:
        tell(process)
    assert [line(p) for p in started] == ["done"] * 3
    assert counter.read_text() == "450"


def test_four_processes_get_fair_shares(processes: Processes) -> None:
    script = """
say('ready'); sys.stdin.readline()
end, count, slowest = time.monotonic() + 1.5, 0, 0.0
while time.monotonic() < end:
    start = time.monotonic()
    with lock.held(20_000):
        slowest = max(slowest, time.monotonic() - start)
        time.sleep(0.001)
    count += 1
say(count, slowest)
"""
    started = [processes.start(script) for _ in range(4)]
    assert [line(p) for p in started] == ["ready"] * 4
    for process in started:
        tell(process)
    answers = [line(p).split() for p in started]
    counts = [int(count) for count, _ in answers]
    assert max(counts) / min(counts) <= 4, counts
    assert max(float(slowest) for _, slowest in answers) <= 1.0


def test_time_runs_out_while_another_process_holds_it(path: Path, processes: Processes) -> None:
    before = descriptors()
    holder = processes.start(HOLD)
    assert line(holder) == "held"
    lock = CommitLock(path)
    piped = descriptors()
    for timeout_ms in (0, 50, 50, 50):
        start = time.monotonic()
        with pytest.raises(OperationalError, match=f"another process has held the commit lock for {timeout_ms / 1000:g} s") as caught:
            lock.acquire(timeout_ms)
        assert caught.value.hint
        assert timeout_ms / 1000 <= time.monotonic() - start < timeout_ms / 1000 + 2
    assert helpers() == 1, "a waiter that gave up leaves one helper, which the next one takes over"
    tell(holder)
    assert line(holder) == "free"
    assert settles(lambda: helpers() == 0 and descriptors() == piped)
    with lock.held(0):
        pass
    assert before <= piped


def test_a_later_waiter_takes_over_the_place_of_one_that_gave_up(path: Path, processes: Processes) -> None:
    holder = processes.start(HOLD)
    assert line(holder) == "held"
    lock = CommitLock(path)
    with pytest.raises(OperationalError):
        lock.acquire(20)
    timer = threading.Timer(0.1, tell, [holder])
    timer.start()
    with CommitLock(path).held(10_000):
        assert line(holder) == "free"
        assert not locks._queue_of(path).left_behind
        with pytest.raises(OperationalError):
            lock.acquire(0)
    timer.join()
    assert settles(lambda: helpers() == 0 and not locks._descriptors)


def test_killing_the_holder_frees_it(path: Path, processes: Processes) -> None:
    holder = processes.start(HOLD)
    assert line(holder) == "held"
    timer = threading.Timer(0.1, holder.kill)
    timer.start()
    with CommitLock(path).held(10_000):
        assert holder.wait(10) == -signal.SIGKILL
    timer.join()


def test_threads_exclude_each_other_and_come_in_turn(path: Path) -> None:
    inside = 0
    order: list[int] = []
    shared = CommitLock(path)

    def work(number: int) -> None:
        nonlocal inside
        lock = shared if number % 2 else CommitLock(path)
        with lock.held(20_000):
            inside += 1
            assert inside == 1
            order.append(number)
            time.sleep(0.002)
            inside -= 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    queue = locks._queue_of(path)
    with shared.held(0):
        for waiting, thread in enumerate(threads, start=1):
            thread.start()
            assert settles(lambda waiting=waiting: len(queue.waiting) == waiting)
    for thread in threads:
        thread.join()
    assert order == list(range(8))
    assert queue.holder is None
    assert not locks._descriptors


def test_a_thread_that_gave_up_leaves_the_queue(path: Path) -> None:
    lock, other = CommitLock(path), CommitLock(path)
    failed = threading.Event()

    def wait_in_vain() -> None:
        with pytest.raises(OperationalError, match="another thread"):
            other.acquire(30)
        failed.set()

    with lock.held(0):
        thread = threading.Thread(target=wait_in_vain)
        thread.start()
        assert failed.wait(10)
        thread.join()
        assert not locks._queue_of(path).waiting
    with other.held(0):
        pass


@pytest.mark.parametrize("holder_is", ["another process", "another thread"])
def test_ctrl_c_ends_the_wait_and_leaves_nothing(path: Path, processes: Processes, holder_is: str) -> None:
    lock = CommitLock(path)
    freed = threading.Event()
    if holder_is == "another process":
        holder = processes.start(HOLD)
        assert line(holder) == "held"
    else:
        got = threading.Event()

        def hold() -> None:
            with CommitLock(path).held(0):
                got.set()
                freed.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        assert got.wait(10)
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(20_000)
    assert time.monotonic() - start < 5
    timer.join()
    assert locks._queue_of(path).waiting == locks.deque()
    if holder_is == "another process":
        tell(holder)
        assert line(holder) == "free"
    else:
        freed.set()
        thread.join()
    with lock.held(10_000):
        pass
    assert settles(lambda: helpers() == 0 and not locks._descriptors)


def test_a_deleted_lock_file_excludes_nobody_and_is_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = CommitLock(path)
    real, opened = locks.open_descriptor, []

    def open_and_delete(name: Path, flags: int) -> int:
        fd = real(name, flags)
        opened.append(fd)
        if len(opened) == 1:
            name.unlink()
        return fd

    monkeypatch.setattr(locks, "open_descriptor", open_and_delete)
    with lock.held(0):
        assert len(opened) == 2
        (held,) = locks._descriptors
        assert os.fstat(held).st_ino == path.stat().st_ino


def test_errors_of_the_system_are_said_plainly(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OperationalError, match="a symbolic link where none may be: could not lock"):
        CommitLock(path).acquire(0)
    assert not (tmp_path / "elsewhere").exists()
    path.unlink()

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", failing(fcntl.LOCK_EX | fcntl.LOCK_NB))
        with pytest.raises(OperationalError, match="no locks to give"):
            CommitLock(path).acquire(0)
    assert not locks._descriptors
    assert locks._queue_of(path).holder is None


def test_a_release_that_fails_has_freed_the_lock_and_is_no_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a commit that has landed an error would say that it has not."""
    lock = CommitLock(path)
    lock.acquire(0)
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", failing(fcntl.LOCK_UN))
        lock.release()
    assert not locks._descriptors
    with CommitLock(path).held(0):
        pass


def failing(operation: int) -> Callable[[int, int], None]:
    real = fcntl.flock

    def flock(fd: int, wanted: int) -> None:
        if wanted == operation:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        real(fd, wanted)

    return flock


@pytest.mark.parametrize("fails", ["the wait", "the thread"])
def test_a_wait_that_fails_leaves_nothing(path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    holder = processes.start(HOLD)
    assert line(holder) == "held"
    lock = CommitLock(path)
    real = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        real(fd, operation)

    def no_thread(*args: object) -> int:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        if fails == "the wait":
            patched.setattr(fcntl, "flock", flock)
        else:
            patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(OperationalError, match="no locks to give" if fails == "the wait" else "no thread could be started"):
            lock.acquire(5_000)
    assert settles(lambda: not locks._descriptors)
    tell(holder)
    assert line(holder) == "free"
    with lock.held(0):
        pass


FORK = """
import warnings
warnings.simplefilter('ignore')
lock.acquire(0)
inherited = sorted(__import__('lakelite.storage.locks').storage.locks._descriptors)
child = os.fork()
if child == 0:
    for use in (lambda: lock.acquire(0), lock.release):
        try:
            use()
        except InterfaceError as exc:
            say('child:', exc.message)
    for fd in inherited:
        try:
            os.fstat(fd)
        except OSError:
            say('child: closed')
    try:
        CommitLock(path).acquire(20)
    except OperationalError as exc:
        say('child:', exc.message[:15])
    if KEEP:
        time.sleep(60)
    os._exit(0)
"""


def test_a_forked_child_can_use_nothing_and_frees_nothing(path: Path, processes: Processes) -> None:
    parent = processes.start("KEEP = False\n" + FORK + "os.waitpid(child, 0); say('waited'); sys.stdin.readline()")
    expected = ["child: this connection was opened in another process"] * 2 + ["child: closed", "child: another process", "waited"]
    assert [line(parent) for _ in expected] == expected
    with pytest.raises(OperationalError, match="another process"):
        CommitLock(path).acquire(20)
    parent.kill()
    with CommitLock(path).held(5_000):
        pass


def test_a_forked_child_that_lives_on_does_not_keep_the_lock_of_a_dead_parent(path: Path, processes: Processes) -> None:
    parent = processes.start("KEEP = True\n" + FORK + "say('child', child); sys.stdin.readline()")
    said = [line(parent) for _ in range(5)]
    child = int(next(words for words in said if words.startswith("child ")).split()[1])
    try:
        parent.kill()
        parent.wait()
        with CommitLock(path).held(5_000):
            pass
    finally:
        os.kill(child, signal.SIGKILL)


def test_an_uncontended_commit_lock_costs_about_its_system_calls(path: Path) -> None:
    lock = CommitLock(path)

    def system_calls() -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fstat(fd)
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

    def locked() -> None:
        with lock.held(1000):
            pass

    def seconds(act: Callable[[], None]) -> float:
        start = time.perf_counter()
        for _ in range(200):
            act()
        return time.perf_counter() - start

    ratios = [seconds(locked) / seconds(system_calls) for _ in range(10)]
    assert min(ratios) < 10, f"2 to 4 on an idle machine, now {ratios}"


def test_nothing_is_kept_for_lock_files_that_nobody_uses(path: Path) -> None:
    with CommitLock(path).held(0):
        assert os.path.realpath(path) in locks._queues
    assert os.path.realpath(path) not in locks._queues
