"""The commit lock, and the descriptors that all locks of this process hold.

Owns commit.lock: at most one thread of one process holds it, waiters come in turn, every wait has a deadline, and the
kernel frees it when its holder dies. One descriptor per acquisition: two threads on one descriptor would not exclude
each other. A forked child closes what it inherited and can use none of these objects; it never says LOCK_UN, which
would free its parent's lock too. Never opens the catalog's files.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

from lakelite.errors import InterfaceError, InternalError, OperationalError
from lakelite.mapping.system_errors import os_error

if sys.platform != "win32":
    import fcntl

# --- descriptors and fork -----------------------------------------------------------------------------------------

_LONGEST_WAIT_S = 1_000_000.0
_fork_guard = threading.RLock()
_descriptors: set[int] = set()


def open_descriptor(path: Path, flags: int) -> int:
    """os.open, never through a link, close-on-exec, and closed in a forked child. The caller maps the OSError."""
    with _fork_guard:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        _descriptors.add(fd)
    return fd


def close_descriptor(fd: int) -> None:
    """os.close. What the caller locked it has to free before: closing alone does not while a duplicate lives elsewhere."""
    with _fork_guard:
        _descriptors.discard(fd)
        os.close(fd)


def free_descriptor(fd: int) -> None:
    """Free the lock, and close."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        close_descriptor(fd)


def refuse_fork(owner_pid: int) -> None:
    """InterfaceError in any process but the one that made the object."""
    if os.getpid() != owner_pid:
        raise InterfaceError("this connection was opened in another process", hint="open a new one after fork")


def _forget_in_child() -> None:
    global _fork_guard, _queues
    for fd in _descriptors:
        os.close(fd)
    _descriptors.clear()
    _fork_guard = threading.RLock()
    _queues = WeakValueDictionary()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _fork_guard.acquire(),
        after_in_parent=lambda: _fork_guard.release(),
        after_in_child=_forget_in_child,
    )


# --- the turn of a thread within this process ---------------------------------------------------------------------


class _Turn:
    """One acquisition: a thread's place in the queue, and the descriptor it owns by now. `gate` opens when the turn comes."""

    __slots__ = ("fd", "gate")

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.fd: int | None = None


class _Queue:
    """The threads of this process that want one lock file: first come, first served.

    `left_behind` is the helper of a waiter that gave up; the next waiter takes it over, so there is never more than one.
    """

    __slots__ = ("__weakref__", "holder", "left_behind", "mutex", "waiting")

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.holder: _Turn | None = None
        self.waiting: deque[_Turn] = deque()
        self.left_behind: _Helper | None = None

    def join(self, turn: _Turn, timeout_s: float) -> bool:
        """Whether the turn came in time. Whatever happens, `leave` afterwards is right."""
        with self.mutex:
            if self.holder is None:
                self.holder = turn
                return True
            turn.gate.acquire()
            self.waiting.append(turn)
        return turn.gate.acquire(timeout=timeout_s) or self.holder is turn

    def leave(self, turn: _Turn) -> None:
        """Pass the turn on, or give the place up. Doing it twice is harmless."""
        with self.mutex:
            if self.holder is turn:
                self.holder = self.waiting.popleft() if self.waiting else None
                if self.holder is not None:
                    self.holder.gate.release()
            elif turn in self.waiting:
                self.waiting.remove(turn)


_queues: WeakValueDictionary[str, _Queue] = WeakValueDictionary()


def _queue_of(path: Path) -> _Queue:
    key = os.path.realpath(path)
    with _fork_guard:
        queue = _queues.get(key)
        if queue is None:
            queue = _queues[key] = _Queue()
        return queue


# --- waiting for another process ----------------------------------------------------------------------------------


class _Helper:
    """A thread in a blocking flock, because Python has no timed one and polling starves (most/fewest up to 9.9).

    The thread opens its own descriptor, which `take` hands over once it is locked: none changes hands around the start of
    the thread, where Ctrl-C could leave it two owners, or none. A lock that nobody wants any more is freed at once.
    """

    __slots__ = ("_error", "_fd", "_gate", "_mutex", "_path", "_running", "_wanted", "finished")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._gate = threading.Lock()
        self._gate.acquire()
        self._fd: int | None = None
        self._error: OSError | None = None
        self._wanted = True
        self._running = False
        self.finished = False

    def engage(self) -> None:
        """Start the thread, or want again what it waits for. Whatever happens, `give_up` afterwards is right."""
        with self._mutex:
            self._wanted = not self.finished
            if self._running:
                return
        try:
            threading.Thread(target=self._run, name="lakelite-commit-lock", daemon=True).start()
        except RuntimeError as exc:
            raise OperationalError(f"no thread could be started to wait for the commit lock: {exc}", hint="run fewer threads") from exc

    def _run(self) -> None:
        self._running = True
        fd = error = None
        try:
            fd = open_descriptor(self._path, os.O_RDWR | os.O_CREAT)
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as exc:
            error = exc
        with self._mutex:
            self.finished = True
            if fd is not None and (error is not None or not self._wanted):
                (free_descriptor if error is None else close_descriptor)(fd)
                fd = None
            self._fd, self._error = fd, error
        self._gate.release()

    def take(self, timeout_s: float) -> int | None:
        """The locked descriptor, the caller's from now on; None when time ran out: then `give_up`."""
        self._gate.acquire(timeout=timeout_s)
        with self._mutex:
            if self._error is not None:
                raise self._error
            return self._fd

    def give_up(self) -> bool:
        """Whether the thread goes on waiting, for nobody. A lock that it has is freed."""
        with self._mutex:
            self._wanted = False
            fd, self._fd = self._fd, None
            if fd is not None:
                free_descriptor(fd)
            return self._running and not self.finished


# --- the commit lock ----------------------------------------------------------------------------------------------


class CommitLock:
    """The lock that every commit holds. Any number of these may exist for one file; not reentrant; usable from any thread.

    Uncontended it costs about as much as its system calls (open, flock, fstat, flock, close).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue = _queue_of(path)
        self._owner_pid = os.getpid()
        self._held: _Turn | None = None

    def held(self, timeout_ms: int) -> AbstractContextManager[None]:
        """`acquire`, the body, `release`."""
        return _Held(self, timeout_ms)

    def acquire(self, timeout_ms: int) -> None:
        """Wait for the lock, at most `timeout_ms`; 0 only tries. A wait that ends in any exception leaves nothing held.

        OperationalError: time ran out, or the file cannot be opened or locked. InterfaceError: in a forked child.
        """
        refuse_fork(self._owner_pid)
        timeout_s = min(max(timeout_ms / 1000, 0.0), _LONGEST_WAIT_S)
        deadline = time.monotonic() + timeout_s
        turn = _Turn()
        try:
            if not self._queue.join(turn, timeout_s):
                raise self._timed_out("another thread of this process", timeout_s)
            if not self._lock_file(turn, deadline):
                raise self._timed_out("another process", timeout_s)
            self._held = turn
        except BaseException as exc:
            self._give_back(turn)
            if isinstance(exc, OSError):
                failed = os_error(exc, f"lock {self._path}")
                failed.is_passing = True
                raise failed from exc
            raise

    def release(self) -> None:
        """Free the lock. InternalError if it is not held, InterfaceError in a forked child."""
        refuse_fork(self._owner_pid)
        turn = self._held
        if turn is None:
            raise InternalError("the commit lock is not held")
        is_done = False
        try:
            # An error of these two calls leaves the descriptor closed, and the lock free by that; told behind a commit, it would deny that it landed.
            with suppress(OSError):
                self._give_back(turn)
                is_done = True
        finally:
            if not is_done:  # Ctrl-C or an error cut it short, and a lock that stays held stops every process
                self._give_back(turn)

    def _give_back(self, turn: _Turn) -> None:
        """Free, close, pass the turn on: may be done again from any point where it was cut short."""
        try:
            if turn.fd is not None:
                fcntl.flock(turn.fd, fcntl.LOCK_UN)
        finally:
            fd, turn.fd = turn.fd, None
            if fd is not None:
                close_descriptor(fd)
            if self._held is turn:
                self._held = None  # before the turn goes on: the next holder may be a thread with this very object
            self._queue.leave(turn)

    def _lock_file(self, turn: _Turn, deadline: float) -> bool:
        """Whether `turn.fd` is locked in time."""
        while self._lock_once(turn, deadline):
            assert turn.fd is not None
            if os.fstat(turn.fd).st_nlink > 0:
                return True
            fd, turn.fd = turn.fd, None  # the file was deleted meanwhile: a lock on it excludes nobody
            free_descriptor(fd)
        return False

    def _lock_once(self, turn: _Turn, deadline: float) -> bool:
        while True:
            helper = self._queue.left_behind
            if helper is None or helper.finished:
                if self._try_lock(turn):
                    return True
                helper = _Helper(self._path)
                if time.monotonic() >= deadline:
                    return False
            if self._wait(turn, helper, deadline):
                return True
            if time.monotonic() >= deadline:
                return False

    def _try_lock(self, turn: _Turn) -> bool:
        turn.fd = open_descriptor(self._path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(turn.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fd, turn.fd = turn.fd, None
            close_descriptor(fd)
            return False
        return True

    def _wait(self, turn: _Turn, helper: _Helper, deadline: float) -> bool:
        try:
            helper.engage()
            turn.fd = helper.take(max(0.0, deadline - time.monotonic()))
        finally:
            still_waits = turn.fd is None and helper.give_up()
            self._queue.left_behind = helper if still_waits else None
        return turn.fd is not None

    def _timed_out(self, who: str, timeout_s: float) -> OperationalError:
        error = OperationalError(
            f"{who} has held the commit lock for {timeout_s:g} s, or several have taken turns with it",
            hint=f"run it again, raise lock_timeout_ms, or find a process that hangs with: fuser {self._path}",
        )
        error.is_passing = True
        return error


class _Held:
    """A class, since a generator could be left suspended with the lock held when Ctrl-C comes on the way into the body."""

    __slots__ = ("_lock", "_timeout_ms")

    def __init__(self, lock: CommitLock, timeout_ms: int) -> None:
        self._lock = lock
        self._timeout_ms = timeout_ms

    def __enter__(self) -> None:
        self._lock.acquire(self._timeout_ms)

    def __exit__(self, *raised: object) -> None:
        self._lock.release()
