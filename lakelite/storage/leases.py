"""Session leases: which sessions are alive, and the oldest snapshot that each still needs.

A lease is leases/<session id>.lease, locked exclusively by the kernel for as long as its session lives; nothing else says
whether a session, and with it all its transactions and files, is alive. Its eight bytes are the oldest snapshot pinned
(little-endian, all ones: none). They are never synced: a dead lease pins nothing. Never opens the catalog's files.
"""

from __future__ import annotations

import os
import re
import struct
import sys
import threading
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path

from lakelite.errors import InterfaceError, OperationalError
from lakelite.mapping.system_errors import os_error
from lakelite.records import dataclass
from lakelite.storage.files import SESSION_ID, LakePaths
from lakelite.storage.locks import close_descriptor, free_descriptor, open_descriptor, refuse_fork

if sys.platform != "win32":
    import fcntl

_PIN = struct.Struct("<Q")
_NONE = 2**64 - 1
_LEASE = re.compile(r"([a-z0-9]{16})\.(lease|new)")
_CREATE_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class Sessions:
    """What the leases say. `alive`: session id → oldest snapshot pinned, or None; `dead`: sessions whose lease nobody holds."""

    alive: dict[str, int | None]
    dead: frozenset[str]


class SessionLease:
    """The lease of one living session. Thread-safe; InterfaceError from `pin` once it is closed, and in a forked child.

    `unpin` may run at any moment, also from a garbage collection inside of `pin` or `unpin`: it never waits for the mutex. Who
    holds the mutex works off what was unpinned meanwhile.
    """

    def __init__(self, paths: LakePaths, session_id: str) -> None:
        """Create and lock the lease. OperationalError if the file cannot be made."""
        assert SESSION_ID.fullmatch(session_id), session_id
        self._path = _lease_path(paths, session_id, "lease")
        self._owner_pid = os.getpid()
        self._mutex = threading.Lock()
        self._pins: Counter[int] = Counter()
        self._unpinned: deque[int] = deque()
        try:
            self._fd: int | None = _create(_lease_path(paths, session_id, "new"), self._path)
        except OSError as exc:
            raise os_error(exc, f"create the lease {self._path}") from exc

    def pin(self, snapshot_id: int) -> None:
        """Keep `snapshot_id` and all after it. Each `pin` needs its own `unpin`. OperationalError: nothing was pinned."""
        assert snapshot_id >= 0, snapshot_id
        refuse_fork(self._owner_pid)
        try:
            with self._mutex:
                oldest = min(self._pins, default=None)
                if oldest is None or snapshot_id < oldest:
                    self._write(snapshot_id)
                self._pins[snapshot_id] += 1
        finally:
            self._settle()

    def unpin(self, snapshot_id: int) -> None:
        """Undo one `pin(snapshot_id)`; nothing happens once the lease is closed.

        Where the file cannot be written, the lease keeps more than it has to until the next pin.
        """
        refuse_fork(self._owner_pid)
        self._unpinned.append(snapshot_id)
        self._settle()

    def close(self) -> None:
        """Remove and free the lease, pins and all. Again, or in a forked child: nothing happens."""
        if os.getpid() != self._owner_pid:
            return
        with self._mutex:
            fd, self._fd = self._fd, None
            if fd is None:
                return
            try:
                self._path.unlink(missing_ok=True)
            except OSError as exc:
                raise os_error(exc, f"remove the lease {self._path}") from exc
            finally:
                free_descriptor(fd)

    def _settle(self) -> None:
        """Works off what was unpinned. Who comes while the mutex is held leaves it to the holder, who looks again after letting go."""
        while self._unpinned and self._mutex.acquire(blocking=False):
            try:
                while self._unpinned:
                    self._forget(self._unpinned.popleft())
            finally:
                self._mutex.release()

    def _forget(self, snapshot_id: int) -> None:
        if self._fd is None:
            return
        assert self._pins[snapshot_id] > 0, snapshot_id
        oldest = min(self._pins)
        self._pins[snapshot_id] -= 1
        if not self._pins[snapshot_id]:
            del self._pins[snapshot_id]
            if snapshot_id == oldest:
                with suppress(OperationalError):  # this may be the end of a commit that has landed, whose answer must not be an error
                    self._write(min(self._pins, default=_NONE))

    def _write(self, oldest: int) -> None:
        if self._fd is None:
            raise InterfaceError("the session is closed", hint="lakelite.connect(…) opens another")
        try:
            os.pwrite(self._fd, _PIN.pack(oldest), 0)
        except OSError as exc:
            raise os_error(exc, f"write the lease {self._path}") from exc


def live_sessions(paths: LakePaths) -> Sessions:
    """Try every lease. Own ones show as alive: a second descriptor conflicts within a process too.

    The dead stay dead, except that a session may be called dead while it is being created: it has no files yet, and
    `remove_dead_lease` cannot hurt it. OperationalError: a lease that cannot be tried, since its session may be alive.
    """
    alive: dict[str, int | None] = {}
    dead: set[str] = set()
    for match in _lease_names(paths):
        try:
            is_alive, oldest = _try_lease(paths.leases / match[0])
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise os_error(exc, f"try the lease {paths.leases / match[0]}") from exc
        if is_alive:
            alive[match[1]] = None if oldest == _NONE else oldest
        else:
            dead.add(match[1])
    return Sessions(alive, frozenset(dead - alive.keys()))


def remove_dead_lease(paths: LakePaths, session_id: str) -> bool:
    """Remove the lease of a dead session, under its lock. False: its session lives, or there is no lease."""
    assert SESSION_ID.fullmatch(session_id), session_id
    removed = [_remove_if_free(_lease_path(paths, session_id, ending)) for ending in ("new", "lease")]
    return any(removed)


def _lease_path(paths: LakePaths, session_id: str, ending: str) -> Path:
    return paths.leases / f"{session_id}.{ending}"


def _create(new: Path, lease: Path) -> int:
    """A locked descriptor on `lease`. Locked before it gets its name: under that name it is never seen unlocked."""
    for _ in range(_CREATE_ATTEMPTS):
        fd = open_descriptor(new, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.pwrite(fd, _PIN.pack(_NONE), 0)
            if lease.exists():
                raise FileExistsError(f"{lease} exists: a session id was used twice")
            os.rename(new, lease)
            return fd
        except FileNotFoundError:
            free_descriptor(fd)  # a sweep took the new file for a dead one, which it may before the lock
        except BaseException:
            new.unlink(missing_ok=True)
            free_descriptor(fd)
            raise
    raise OperationalError(f"the lease {lease} was removed each time it was created", hint="see what deletes files in the lake")


def _lease_names(paths: LakePaths) -> list[re.Match[str]]:
    try:
        with os.scandir(paths.leases) as entries:
            found = [_LEASE.fullmatch(entry.name) for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise os_error(exc, f"list the leases in {paths.leases}") from exc
    return [match for match in found if match]


def _try_lease(path: Path) -> tuple[bool, int]:
    """Whether somebody holds it, and the pin. A shared lock: two sweeps at once do not take each other for the session."""
    fd = open_descriptor(path, os.O_RDONLY)
    is_alive = False
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            is_alive = True
        stored = os.pread(fd, _PIN.size, 0)
        return is_alive, _PIN.unpack(stored)[0] if len(stored) == _PIN.size else 0
    finally:
        (close_descriptor if is_alive else free_descriptor)(fd)


def _remove_if_free(path: Path) -> bool:
    try:
        fd = open_descriptor(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise os_error(exc, f"try the lease {path}") from exc
    is_free = False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
        if os.fstat(fd).st_nlink > 0:  # else another sweep was faster, and the name may be a new file's by now
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    except OSError as exc:
        raise os_error(exc, f"remove the dead lease {path}") from exc
    finally:
        (free_descriptor if is_free else close_descriptor)(fd)
    return True
