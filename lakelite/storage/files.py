"""The files of a lake: where they lie, how they become durable, how they are hashed and deleted.

    catalog.sqlite                                the catalog (only its place is known here)
    commit.lock                                   see locks.py
    data/<table id>/<transaction id>-<n>.parquet  immutable; a transaction id is <session id>-<counter>
    data/<table id>/<transaction id>-<n>.keys     what its key filters are kept in, see key_filters.py; may be missing
    leases/<session id>.lease                     see locks.py
    tmp/<session id>/                             what DuckDB spills
    quarantine/                                   files that CHECK LAKE REPAIR took out of data/; nobody reads them

Promises: one function joins a name from the catalog to the root, and neither it nor any that deletes follows a link
below the root; only names of our own form are listed or deleted.
Never opens catalog.sqlite, its -wal or its -shm: closing a plain handle on them drops SQLite's locks in this process.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from lakelite.errors import InternalError, OperationalError
from lakelite.mapping.system_errors import os_error
from lakelite.records import dataclass
from lakelite.storage.regular import open_regular

if sys.platform != "win32":
    import fcntl

SESSION_ID = re.compile(r"[a-z0-9]{16}")
_CATALOGUED_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,199}\.(?:parquet|keys)")
_OUR_NAME = re.compile(r"([a-z0-9]{16})-(?:0|[1-9][0-9]*)-(?:0|[1-9][0-9]*)\.(?:parquet|keys)")
_OUR_FOLDER = re.compile(r"0|[1-9][0-9]{0,18}")

_NO_LINKS = frozenset({errno.EPERM, errno.EMLINK, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_durable_folders: set[tuple[str, int]] = set()  # path and inode of table folders whose name this process has synced


class DataFile(NamedTuple):
    """A file found in data/, whose name says which session wrote it."""

    table_id: int
    file_name: str
    session_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LakePaths:
    """Where everything of one lake lies. `root` is absolute and may itself have been reached through links."""

    root: Path

    @property
    def catalog(self) -> Path:
        return self.root / "catalog.sqlite"

    @property
    def commit_lock(self) -> Path:
        return self.root / "commit.lock"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def leases(self) -> Path:
        return self.root / "leases"

    @property
    def quarantine(self) -> Path:
        return self.root / "quarantine"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    def spill_folder(self, session_id: str) -> Path:
        """Where DuckDB may spill for this session."""
        assert SESSION_ID.fullmatch(session_id), session_id
        return self.tmp / session_id

    def table_folder(self, table_id: int) -> Path:
        """The folder of a table's data files. InternalError for what is no table id."""
        return self.data / _folder_name(table_id)

    def data_file(self, table_id: int, file_name: str) -> Path:
        """The path of a data file, there or not: the one place that joins a catalogued name to the root.

        InternalError: not a bare file name of our alphabet. OperationalError: a link on the way below the root.
        """
        if not _CATALOGUED_NAME.fullmatch(file_name):
            raise InternalError(f"the catalog names a data file {file_name!r}, which is no bare name of [a-z0-9-] and .parquet")
        data = f"{self.root}/data"  # strings, not Paths: a scan comes by here for each of its thousands of files
        folder = f"{data}/{_folder_name(table_id)}"
        path = f"{folder}/{file_name}"
        for step in (data, folder, path):
            _refuse_link(step)
        return Path(path)

    def existing_data_file(self, table_id: int, file_name: str, size_bytes: int | None = None) -> Path:
        """`data_file` for reading. OperationalError: missing, no regular file, or not `size_bytes` long where that is given."""
        path = self.data_file(table_id, file_name)
        try:
            status = os.lstat(path)
        except OSError as exc:
            raise os_error(exc, f"read the data file {path}") from exc
        if not stat.S_ISREG(status.st_mode):
            raise OperationalError(f"the data file {path} is no regular file", hint="CHECK LAKE lists what is wrong; restore the lake from a copy")
        if size_bytes is not None and status.st_size != size_bytes:
            raise OperationalError(
                f"the data file {path} has {status.st_size} bytes, the catalog says {size_bytes}: it was changed or cut off",
                hint="restore the file from a copy of the lake",
            )
        return path


def data_file_name(transaction_id: str, number: int) -> str:
    """The bare name of the `number`-th file of a transaction."""
    name = f"{transaction_id}-{number}.parquet"
    assert _OUR_NAME.fullmatch(name), name
    return name


def filters_file_name(file_name: str) -> str:
    """The name of the file with the key filters of a data file."""
    return f"{file_name.removesuffix('.parquet')}.keys"


def check_parent(directory: Path) -> None:
    """OperationalError: a directory that is to be made would stand in none. (A parent that is made in silence is most often a name mistyped.)"""
    parent = directory.parent
    if not parent.is_dir():
        raise OperationalError(f"there is no directory {parent}", hint=f"create it first: mkdir -p {parent}")


@contextmanager
def divided_folder(paths: LakePaths, file_name: str) -> Iterator[Path]:
    """An empty folder below the spill folder of the session that writes that file, gone behind the block with all in it."""
    match = _OUR_NAME.fullmatch(file_name)
    assert match, file_name
    folder = paths.spill_folder(match[1]) / file_name.removesuffix(".parquet")
    for step in (paths.tmp, folder.parent):
        _refuse_link(step)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as exc:
        raise os_error(exc, f"write below the directory {folder}") from exc
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # what is left, VACUUM removes


def take_over(paths: LakePaths, written: str, table_id: int, file_name: str) -> None:
    """Moves a file from a divided folder to where a data file of that name lies. Not durable yet."""
    try:
        os.rename(written, paths.data_file(table_id, file_name))
    except OSError as exc:
        raise os_error(exc, f"move the file {written}") from exc


def _folder_name(table_id: int) -> str:
    if type(table_id) is not int or table_id < 0:
        raise InternalError(f"the catalog names a table {table_id!r}, which is no table id")
    return str(table_id)


def _refuse_link(path: str | Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise os_error(exc, f"look at {path}") from exc
    if stat.S_ISLNK(mode):
        raise OperationalError(f"{path} is a symbolic link; a lake has none", hint="replace the link by what it points to")


# --- durability ---------------------------------------------------------------------------------------------------


def fsync_file(path: Path) -> None:
    """Make the content of a file durable.

    OperationalError when that fails, which is final: the pages may be gone and a second fsync would still say yes. The
    caller discards the file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            _flush(fd)
        finally:
            os.close(fd)
    except OSError as exc:
        raise os_error(exc, f"make the file {path} durable") from exc


def fsync_directory(path: Path) -> None:
    """Make the names in a directory durable. A failure (OperationalError) is as final as that of `fsync_file`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as exc:
        raise os_error(exc, f"make the directory {path} durable") from exc


def _flush(fd: int) -> None:
    """fsync, on macOS through to the platters, which plain fsync does not promise there."""
    full_sync: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is None:
        os.fsync(fd)
        return
    try:
        fcntl.fcntl(fd, full_sync)
    except OSError as exc:
        if exc.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
            raise
        os.fsync(fd)


def ensure_directories(paths: LakePaths, *, private: bool = False) -> None:
    """Create what is missing of the root, data/, leases/ and tmp/, and make it durable. Calling it again changes nothing.

    The umask is respected; `private` gives the root mode 0700. The root's parent must exist.
    """
    made = _make_directory(paths.root, 0o700 if private else 0o777)
    if made:
        fsync_directory(paths.root.parent)
    folders = [_make_directory(folder, 0o777) for folder in (paths.data, paths.leases, paths.tmp)]
    if made or any(folders):
        fsync_directory(paths.root)


def make_table_folder(paths: LakePaths, table_id: int) -> Path:
    """data/<table id>, created if it is not there, its name durable. Cheap when this process has seen to that before."""
    folder = paths.table_folder(table_id)
    _refuse_link(paths.data)
    made = _make_directory(folder, 0o777)
    identity = (str(folder), os.lstat(folder).st_ino)
    # Found there is not enough: the session that made it may not have synced data/ yet.
    if made or identity not in _durable_folders:
        fsync_directory(paths.data)
        _durable_folders.add(identity)
    return folder


def quarantine_folder(paths: LakePaths) -> Path:
    """The folder for files that a repair takes out of data/, made if it is not there, its name durable."""
    if _make_directory(paths.quarantine, 0o777):
        fsync_directory(paths.root)
    return paths.quarantine


def _make_directory(path: Path, mode: int) -> bool:
    """Whether it had to be made. OperationalError: a link or a file is there, or it cannot be made."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        _refuse_link(path)
        if not path.is_dir():
            raise OperationalError(f"{path} is a file; it should be a directory", hint="move it away, or open another path") from None
        return False
    except OSError as exc:
        raise os_error(exc, f"create the directory {path}") from exc
    return True


# --- reading, listing, deleting -----------------------------------------------------------------------------------


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes as 64 hexadecimal digits. Streams; OperationalError if the file cannot be read."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise os_error(exc, f"read the file {path}") from exc


def remove_data_file(paths: LakePaths, table_id: int, file_name: str) -> bool:
    """Delete a data file and its filters; False if it was gone already. OperationalError: a link, no regular file, or it cannot be deleted."""
    path = paths.data_file(table_id, file_name)
    try:
        folder_fd = _open_folder(paths, table_id)
        try:
            if not stat.S_ISREG(os.stat(file_name, dir_fd=folder_fd, follow_symlinks=False).st_mode):
                raise OperationalError(
                    f"the data file {path} is no regular file; it was not deleted", hint="CHECK LAKE lists what is wrong; look at what put it there"
                )
            os.unlink(file_name, dir_fd=folder_fd)
            with suppress(FileNotFoundError):
                os.unlink(filters_file_name(file_name), dir_fd=folder_fd)
        finally:
            os.close(folder_fd)
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise os_error(exc, f"delete the data file {path}") from exc
    return True


def link_data_file(paths: LakePaths, table_id: int, file_name: str, new_name: str) -> None:
    """Give a data file, and its filters, a second name; where the file system has no links, or no more of this file, it is copied. Not durable yet.

    OperationalError: the file is missing, or the disk is full.
    """
    old, new = paths.data_file(table_id, file_name), paths.data_file(table_id, new_name)
    try:
        _link(old, new)
        with suppress(OSError):  # filters never have to be there
            os.link(old.with_name(filters_file_name(file_name)), new.with_name(filters_file_name(new_name)), follow_symlinks=False)
    except BaseException as exc:
        remove_data_file(paths, table_id, new_name)
        if isinstance(exc, OSError):
            raise os_error(exc, f"bring the data file {old} back") from exc
        raise


def take_data_file(paths: LakePaths, table_id: int, source: str, new_name: str) -> None:
    """Give a file from outside of the lake a second name in it; where that cannot be, it is copied. Not durable yet.

    OperationalError: it is missing, no regular file, or the disk is full.
    """
    new = paths.data_file(table_id, new_name)
    try:
        old = Path(source).resolve(strict=True)
        if not old.is_file():
            raise OperationalError(f"{source} is no regular file, and cannot be adopted", hint="give the path of the file itself")
        _link(old, new)
    except BaseException as exc:
        remove_data_file(paths, table_id, new_name)
        if isinstance(exc, OSError):
            raise os_error(exc, f"adopt the file {source}") from exc
        raise


def _link(old: Path, new: Path) -> None:
    """A second name for a file, or a copy where the file system has no links, or no more of this file."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        shutil.copyfile(old, new, follow_symlinks=False)


def _open_folder(paths: LakePaths, table_id: int) -> int:
    """A descriptor on data/<table id>, reached without a link below the root even if someone swaps a folder meanwhile."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    data_fd = os.open(paths.data, flags)
    try:
        return os.open(str(table_id), flags, dir_fd=data_fd)
    finally:
        os.close(data_fd)


def remove_spill_folder(paths: LakePaths, session_id: str) -> None:
    """Delete tmp/<session id>/ with all in it; a missing one is fine. OperationalError: a link, or it cannot be deleted."""
    folder = paths.spill_folder(session_id)
    for step in (paths.tmp, folder):
        _refuse_link(step)
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise os_error(exc, f"delete the folder {folder}") from exc


def list_data_files(paths: LakePaths) -> Iterator[DataFile]:
    """Every regular file in data/ whose name has our form; anything else, links and the filters of a file that is there included, is passed over.

    Files that come or go meanwhile may or may not be seen. OperationalError: data/ is a link, or cannot be read.
    """
    _refuse_link(paths.data)
    for folder in _entries(paths.data):
        if _OUR_FOLDER.fullmatch(folder.name) and folder.is_dir(follow_symlinks=False):
            entries = _entries(Path(folder.path))
            with_filters = {filters_file_name(entry.name) for entry in entries if entry.name.endswith(".parquet")}
            for entry in entries:
                match = _OUR_NAME.fullmatch(entry.name) if entry.name not in with_filters else None
                size_bytes = _regular_size(entry) if match else None
                if match and size_bytes is not None:
                    yield DataFile(int(folder.name), entry.name, match[1], size_bytes)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise os_error(exc, f"list the directory {directory}") from exc


def _regular_size(entry: os.DirEntry[str]) -> int | None:
    """None: no regular file, or gone meanwhile."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise os_error(exc, f"look at the file {entry.path}") from exc
    return status.st_size if stat.S_ISREG(status.st_mode) else None
