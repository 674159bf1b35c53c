"""BACKUP TO: the whole lake as it is at one moment, in another directory, while others write.

    pin        every version, so that no VACUUM removes a file that the copy needs
    claim      the directory, by making `data` in it
    catalog    under the commit lock: its copy, by SQLite, and which files it names
    files      each copied, its size and SHA-256 compared with the catalog's, made durable; with its key filters, if there are any
    name       the copy of the catalog gets its name last: before that the directory is no lake

What is copied is a lake of its own, with all versions, branches and tags. Promises: a failure, or an interrupt, leaves nothing; a file that
is damaged is not copied in silence. Never changes the lake that it copies.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from lakelite.catalog.store import Catalog
from lakelite.errors import OperationalError
from lakelite.mapping.system_errors import file_error
from lakelite.model import Fragment
from lakelite.records import dataclass
from lakelite.storage import files
from lakelite.storage.files import LakePaths
from lakelite.storage.leases import SessionLease
from lakelite.storage.regular import open_regular
from lakelite.storage.verified import damaged

_PIECE = 1 << 20  # bytes that are copied between two looks at whether to go on
_EVERYTHING = 0  # the first snapshot
_UNNAMED = "catalog.partial"


@dataclass(frozen=True, slots=True)
class BackedUp:
    """`snapshot_id`: the newest one in the copy; `files`: data files, and `bytes` of them and the catalog."""

    directory: str
    snapshot_id: int
    files: int
    bytes: int


def backup(
    catalog: Catalog, paths: LakePaths, lease: SessionLease, locked: Callable[[], AbstractContextManager[None]], to: Path, check: Callable[[], None]
) -> BackedUp:
    """Copies the lake into the directory `to`, which is made, or is there and empty. `check` is called often, and raises to stop it.

    OperationalError: the directory is not empty, lies within the lake, or in no directory, a file is damaged or missing, or the disk is full.
    """
    target, made = LakePaths(to.absolute()), list[Path]()
    lease.pin(_EVERYTHING)
    try:
        _claim(target, made, private=_may_go_to(paths, target))
        unnamed = target.root / _UNNAMED
        with locked():
            catalog.copy_to(unnamed)
            kept = [Fragment(*(*row[:8], bool(row[8]))) for row in catalog.rows("kept_fragments")]
            newest = int(catalog.row("newest")[0])
        data = [fragment for fragment in kept if fragment.path is not None]
        copied = _copy_files(paths, target, data, check)
        files.fsync_file(unnamed)
        copied += unnamed.stat().st_size
        check()
        os.rename(unnamed, target.catalog)
        files.fsync_directory(target.root)
    except BaseException as error:
        _remove(target, made)
        if isinstance(error, OSError):
            raise _unwritable(error, to) from error
        raise
    finally:
        lease.unpin(_EVERYTHING)
    return BackedUp(str(to), newest, len(data), copied)


def _may_go_to(paths: LakePaths, target: LakePaths) -> bool:
    """Whether only the owner may look into the lake; OperationalError where the copy cannot stand."""
    root, own, other = target.root, paths.root.resolve(), target.root.resolve()
    if own == other or own in other.parents or other in own.parents:
        raise OperationalError(f"{root} is within the lake, or holds it", hint="name a directory outside of the lake")
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise _in_use(target)
    files.check_parent(root)
    is_private = not own.stat().st_mode & 0o077
    if is_private and root.exists() and root.stat().st_mode & 0o077:
        raise OperationalError(
            f"others may look into {root}, and not into the lake", hint="name a new directory, or take their rights away: chmod 700"
        )
    return is_private


def _in_use(target: LakePaths) -> OperationalError:
    is_partial = target.data.is_dir() and not target.catalog.exists()
    hint = "it looks like a BACKUP that runs, or that was killed: then the directory may be removed" if is_partial else "name a new directory"
    return OperationalError(f"{target.root} is there already, and not an empty directory", hint=hint)


def _claim(target: LakePaths, made: list[Path], *, private: bool) -> None:
    """Makes the directories. Whoever makes `data` has the root for itself. `made`: gets those that were not there, down to `data`."""
    root = target.root
    with suppress(FileExistsError):
        root.mkdir(0o700 if private else 0o777)
        made.append(root)
        files.fsync_directory(root.parent)
    try:
        target.data.mkdir()
    except FileExistsError:
        raise _in_use(target) from None
    made.append(target.data)
    if any(one != target.data for one in root.iterdir()):
        raise _in_use(target)
    files.ensure_directories(target)


def _unwritable(error: OSError, to: Path) -> OperationalError:
    return file_error(error.errno, error.strerror or str(error), f"back the lake up to {to}")


def _copy_files(paths: LakePaths, target: LakePaths, data: Iterable[Fragment], check: Callable[[], None]) -> int:
    """The bytes that were copied."""
    copied = 0
    folders: set[Path] = set()
    for fragment in data:
        assert fragment.path is not None
        source = paths.existing_data_file(fragment.table_id, fragment.path, fragment.size_bytes)
        folders.add(files.make_table_folder(target, fragment.table_id))
        size, digest = _copy(source, target.data_file(fragment.table_id, fragment.path), check)
        if digest != fragment.sha256:
            raise damaged(source)
        copied += size
        filters = files.filters_file_name(fragment.path)
        with suppress(FileNotFoundError):
            copied += _copy(paths.data_file(fragment.table_id, filters), target.data_file(fragment.table_id, filters), check)[0]
    for folder in folders:
        files.fsync_directory(folder)
    return copied


def _copy(source: Path, target: Path, check: Callable[[], None]) -> tuple[int, str]:
    """Copies a file and makes it durable; its bytes and their SHA-256. Reads without following a link."""
    digest, size = hashlib.sha256(), 0
    with open_regular(source) as reading, open(target, "xb") as writing:
        while piece := reading.read(_PIECE):
            check()
            digest.update(piece)
            writing.write(piece)
            size += len(piece)
    files.fsync_file(target)
    return size, digest.hexdigest()


def _remove(target: LakePaths, made: Iterable[Path]) -> None:
    """Removes what was made of the copy, and nothing of another one's; `data`, by which the root is claimed, behind what is beside it."""
    if target.data in made:
        for file in (target.root / _UNNAMED, target.catalog):
            with suppress(OSError):
                file.unlink(missing_ok=True)
        for folder in (target.leases, target.tmp, target.data):
            shutil.rmtree(folder, ignore_errors=True)
    for folder in reversed(list(made)):
        with suppress(OSError):  # it is gone, or somebody else has put something into it
            folder.rmdir()
