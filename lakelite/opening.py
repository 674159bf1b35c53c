"""Opening a lake: the checks, the catalog, the commit lock. What can be refused is refused before anything is written."""

from __future__ import annotations

import secrets
import shutil
import string
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from lakelite.catalog.opened import check_catalog, open_catalog
from lakelite.catalog.store import Catalog
from lakelite.errors import CannotOpen, OperationalError
from lakelite.model import Limits
from lakelite.records import dataclass
from lakelite.storage import files
from lakelite.storage.locks import CommitLock
from lakelite.storage.place import NO_LAKE, check_place

CLOSE_LOCK_MS = 2_000
_ID_LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class Opened:
    """A lake that is open. `temporary`: the directory that goes with it, or None."""

    paths: files.LakePaths
    catalog: Catalog
    lock: CommitLock
    session_id: str
    temporary: str | None

    def close(self) -> None:
        """Closes the catalog. The last one to close checkpoints the WAL, so that is done under the commit lock where it can be had."""
        try:
            with self.lock.held(0 if sys.is_finalizing() else CLOSE_LOCK_MS):  # a thread that waits could not start any more
                self.catalog.close()
        except OperationalError:
            self.catalog.close()
        if self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)


def open_lake(path: str, *, create: bool, read_only: bool, whole: bool = False, private: bool = False) -> Opened:
    """Opens the lake at `path`, or makes one there; ":memory:" is a temporary one. CannotOpen says why not.

    `whole`: all of the catalog is looked at, however large it is. `private`: only the owner may enter a lake that is made.
    """
    temporary = tempfile.mkdtemp(prefix="lakelite-") if path == ":memory:" else None
    try:
        paths = check_place(Path(temporary or path), create=create or temporary is not None, read_only=read_only and temporary is None)
        if not paths.catalog.exists() and read_only and temporary is None:
            raise CannotOpen(f"there is no lake at {paths.root}", hint=NO_LAKE)
        lock, catalog = _open(paths, create=create or temporary is not None, durable=temporary is None, whole=whole, private=private)
    except BaseException:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    return Opened(paths, catalog, lock, "".join(secrets.choice(_ID_LETTERS) for _ in range(16)), temporary)


def _open(paths: files.LakePaths, *, create: bool, durable: bool, whole: bool, private: bool) -> tuple[CommitLock, Catalog]:
    def holds_data() -> bool:
        return next(files.list_data_files(paths), None) is not None

    if paths.catalog.exists() and not paths.commit_lock.exists():  # before anything is made beside it: is it a lake at all?
        check_catalog(paths.catalog, holds_data)
    try:
        files.ensure_directories(paths, private=private)
        lock = CommitLock(paths.commit_lock)

        def locked() -> AbstractContextManager[None]:
            return lock.held(Limits().lock_timeout_ms)  # two processes may be creating the same lake

        return lock, open_catalog(paths.catalog, create=create, durable=durable, holds_data=holds_data, locked=locked, whole=whole)
    except CannotOpen:
        raise
    except OperationalError as error:
        raise CannotOpen(
            error.message, hint="a lake needs a directory that can be written to, also for reading (locks, and the catalog's log)"
        ) from error
