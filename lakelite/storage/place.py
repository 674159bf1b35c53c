"""Whether a directory may be opened as a lake, or become one: decided before anything is written, and nothing is written here.

Every refusal is a CannotOpen with one message and a hint. Whether the catalog inside is really ours is for the catalog
to say; this module looks at names, kinds, permissions and the file system, and opens nothing in the directory.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from lakelite.errors import CannotOpen
from lakelite.mapping.system_errors import os_error
from lakelite.storage.files import LakePaths

NO_LAKE = "check the path; to make a lake there, leave out read_only (--read-only) and create=False (--no-create)"
ALLOW_NETWORK = "LAKELITE_ALLOW_NETWORK_FILESYSTEM"
_NETWORK_TYPES = frozenset(
    "9p acfs afpfs afs beegfs ceph cifs coda davfs davfs2 drvfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs3 nfs4 ocfs2"
    " orangefs panfs pvfs2 smb2 smb3 smbfs webdav".split()
)
_NETWORK_FUSE = frozenset(
    "blobfuse blobfuse2 ceph curlftpfs davfs2 gcsfuse glusterfs goofys juicefs lizardfs moosefs mfs mountpoint-s3 nfs rclone"
    " s3fs seaweedfs smbnetfs sshfs webdavfs".split()
)
_MACOS_MOUNT = re.compile(r".* on (?P<point>/.*) \((?P<type>[^,()]+)[^()]*\)")
_LEFT_BY_A_CREATION = frozenset({"data", "leases", "tmp", "commit.lock"})
_OF_CATALOG = frozenset({"catalog.sqlite-wal", "catalog.sqlite-shm"})
_FILES = ("catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "catalog.sqlite-journal", "commit.lock")
_FOLDERS = ("data", "leases", "tmp")


def check_place(root: Path, *, create: bool, read_only: bool) -> LakePaths:
    """The paths of the lake at `root`, absolute and with links resolved; or CannotOpen, and all is as it was.

    `create`: a missing or empty directory (or one whose creation was cut short) will do; it is not made here.
    `read_only`: the lake must be there and need not be writable.
    """
    if sys.platform == "win32":
        raise CannotOpen("lakelite does not run on Windows: it has no flock", hint="use it inside WSL, on the Linux file system")
    _check_name(str(root))
    try:
        paths = LakePaths(Path(os.path.realpath(root)))
        _check_name(str(paths.root))
        _check_kind(paths, create and not read_only, read_only)
    except OSError as exc:
        raise CannotOpen(os_error(exc, f"open the lake {root}").message, hint="check the path and its permissions") from exc
    _check_file_system(paths.root)
    return paths


def _check_name(name: str) -> None:
    if "\0" in name:
        raise CannotOpen("the path of a lake cannot hold a NUL character", hint="check the path")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise CannotOpen(f"the path {name!a} is not valid UTF-8", hint="rename the directory") from None
    if set(name) & set("*?["):
        raise CannotOpen(
            f"the path {name} holds one of * ? [, which DuckDB would take for a pattern and so read files of other directories",
            hint="rename the directory",
        )


def _check_kind(paths: LakePaths, create: bool, read_only: bool) -> None:
    try:
        mode = os.stat(paths.root).st_mode
    except FileNotFoundError:
        _check_missing(paths.root, create)
        return
    if not stat.S_ISDIR(mode):
        raise CannotOpen(f"{paths.root} is a file; a lake is a directory", hint="give the path of a directory")
    if not os.access(paths.root, os.R_OK | os.X_OK):
        raise CannotOpen(f"the directory {paths.root} cannot be read: permission denied", hint="check its owner and mode")
    if os.path.lexists(paths.catalog):
        _check_lake(paths, read_only)
    else:
        _check_empty(paths, create)


def _check_missing(root: Path, create: bool) -> None:
    if not create:
        raise CannotOpen(f"there is no lake at {root}", hint=NO_LAKE)
    if not os.path.isdir(root.parent):
        raise CannotOpen(f"the directory {root.parent} does not exist, so no lake can be made in it", hint=f"create it first: mkdir -p {root.parent}")
    _check_writable(root.parent)


def _check_empty(paths: LakePaths, create: bool) -> None:
    names = set(os.listdir(paths.root))
    foreign = names - _LEFT_BY_A_CREATION
    if not foreign and os.path.isdir(paths.data) and os.listdir(paths.data):
        foreign = {"data"}
    if names & _OF_CATALOG or (foreign == {"data"} and names >= {"leases", "commit.lock"}):
        raise CannotOpen(
            f"the lake {paths.root} has lost its catalog: catalog.sqlite is not there, but other files of the lake are",
            hint="restore catalog.sqlite from a copy of the lake; nothing was changed",
        )
    if foreign:
        raise CannotOpen(
            f"the directory {paths.root} is not a lake: it has no catalog.sqlite, but it holds {min(foreign)!r}",
            hint="give the path of a lake, or of a directory that is new or empty",
        )
    if not create:
        raise CannotOpen(f"the directory {paths.root} is empty, not a lake", hint=NO_LAKE)
    _check_kinds(paths.root)
    _check_writable(paths.root)


def _check_lake(paths: LakePaths, read_only: bool) -> None:
    _check_kinds(paths.root)
    if not os.access(paths.catalog, os.R_OK):
        raise CannotOpen(f"the catalog {paths.catalog} cannot be read: permission denied", hint="check its owner and mode")
    if not read_only:
        for path in (paths.root, paths.catalog, paths.data, paths.leases, paths.tmp, paths.commit_lock):
            if os.path.lexists(path):
                _check_writable(path)


def _check_kinds(root: Path) -> None:
    """Refuses links, and what is not what it should be: to open a FIFO waits for ever, and a device has no end."""
    for name in (*_FILES, *_FOLDERS):
        path = root / name
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:  # SQLite's own come and go
            continue
        if stat.S_ISLNK(mode):
            raise CannotOpen(f"{path} is a symbolic link; a lake has none", hint="replace the link by what it points to")
        if name in _FILES and not stat.S_ISREG(mode):
            raise CannotOpen(f"{path} is no regular file", hint="give the path of a lake")
        if name in _FOLDERS and not stat.S_ISDIR(mode):
            raise CannotOpen(f"{path} is a file; it should be a directory", hint="move it away, or open another path")


def _check_writable(path: Path) -> None:
    # access(2) says no on read-only media too, and unlike a trial file it leaves no trace, not even a changed time.
    if not os.access(path, os.W_OK):
        raise CannotOpen(f"{path} is not writable", hint="check owner, mode and mount: reading needs that too, for files beside the catalog")


def _check_file_system(root: Path) -> None:
    if os.environ.get(ALLOW_NETWORK) == "1":
        return
    kind = network_file_system(root)
    if kind is not None:
        raise CannotOpen(
            f"{root} is on a network file system ({kind}); the catalog's write-ahead log needs shared memory and locks of one host",
            hint=f"keep the lake on a local disk, or set {ALLOW_NETWORK}=1 if only ever one host opens it",
        )


def network_file_system(path: Path, mounts_text: str | None = None) -> str | None:
    """The type of the network file system that `path` is on ("nfs4", "fuse.sshfs", …); None: a local one, or not known.

    `mounts_text` is what /proc/self/mounts (Linux) or `mount` (macOS) says; None asks the system.
    """
    real = os.path.realpath(path)
    longest, found = -1, ""
    for point, kind in _mounts(_system_mounts() if mounts_text is None else mounts_text):
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # >=: of two mounts on one point the later one hides the other
            longest, found = len(point), kind
    base, _, flavour = found.partition(".")
    is_network = base in _NETWORK_TYPES or (base in ("fuse", "fuseblk", "macfuse", "osxfuse") and flavour in _NETWORK_FUSE)
    return found if is_network else None


def _mounts(text: str) -> Iterator[tuple[str, str]]:
    """Mount points and types, in the order of mounting."""
    for line in text.split("\n"):
        macos = _MACOS_MOUNT.fullmatch(line)
        fields = line.split(" ")
        if macos:
            yield macos["point"], macos["type"]
        elif len(fields) >= 3:
            yield re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1]), fields[2]


def _system_mounts() -> str:
    if sys.platform == "darwin":
        import subprocess

        return subprocess.run(["/sbin/mount"], capture_output=True, encoding="utf-8", errors="surrogateescape", check=False, timeout=10).stdout
    try:
        return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""  # no /proc (a bare chroot, a BSD): the type is not known
