"""Which directories may be opened as a lake (lakelite.storage.place): every refusal leaves all as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelite.errors import CannotOpen
from lakelite.storage import place
from lakelite.storage.files import LakePaths, ensure_directories
from lakelite.storage.place import check_place, network_file_system


def tree(root: Path) -> list[tuple[object, ...]]:
    """Everything below `root`: names, kinds, times and content."""
    found: list[tuple[object, ...]] = []
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found.append((str(path), status.st_mode, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, content))
    return found


def lake(root: Path) -> LakePaths:
    paths = LakePaths(root)
    ensure_directories(paths)
    paths.catalog.write_bytes(b"SQLite format 3\0")
    return paths


def refused(root: Path, words: str, *, create: bool = True, read_only: bool = False, below: Path) -> None:
    before = tree(below)
    with pytest.raises(CannotOpen, match=words) as caught:
        check_place(root, create=create, read_only=read_only)
    assert caught.value.hint
    assert tree(below) == before


def test_places_that_will_do(tmp_path: Path) -> None:
    there = lake(tmp_path / "there")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("there")
    before = tree(tmp_path)
    for create, read_only in ((True, False), (False, False), (True, True), (False, True)):
        assert check_place(there.root, create=create, read_only=read_only) == there
        assert check_place(tmp_path / "link", create=create, read_only=read_only) == there
    for name in ("empty", "new"):
        assert check_place(tmp_path / name, create=True, read_only=False) == LakePaths(tmp_path / name)
    assert tree(tmp_path) == before


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    assert check_place(Path("there"), create=False, read_only=False).root == tmp_path / "there"


def test_a_creation_that_was_cut_short_can_go_on(tmp_path: Path) -> None:
    paths = LakePaths(tmp_path / "half")
    ensure_directories(paths)
    paths.commit_lock.write_bytes(b"")
    assert check_place(paths.root, create=True, read_only=False) == paths
    (paths.data / "1").mkdir()
    refused(paths.root, "has lost its catalog", below=tmp_path)


def test_missing_places(tmp_path: Path) -> None:
    refused(tmp_path / "new", "there is no lake at", create=False, below=tmp_path)
    refused(tmp_path / "new", "there is no lake at", read_only=True, below=tmp_path)
    refused(tmp_path / "no" / "new", "no does not exist, so no lake can be made in it", below=tmp_path)


def test_places_that_are_something_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    refused(tmp_path / "file", "is a file; a lake is a directory", below=tmp_path)
    refused(tmp_path / "file" / "below", "a part of the path is a file", below=tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "diary.txt").write_bytes(b"x")
    refused(tmp_path / "home", "is not a lake: it has no catalog.sqlite, but it holds 'diary.txt'", below=tmp_path)
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "is empty, not a lake", create=False, below=tmp_path)
    refused(tmp_path / "empty", "is empty, not a lake", read_only=True, below=tmp_path)
    (tmp_path / "odd" / "catalog.sqlite").mkdir(parents=True)
    refused(tmp_path / "odd", "catalog.sqlite is no regular file", below=tmp_path)


@pytest.mark.parametrize("name", ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "commit.lock", "data", "leases", "tmp"])
def test_links_in_a_lake(tmp_path: Path, name: str) -> None:
    paths = lake(tmp_path / "there")
    victim = paths.root / name
    if victim.exists():
        victim.rename(tmp_path / "outside")
    victim.symlink_to(tmp_path / "outside")
    refused(paths.root, f"{name} is a symbolic link", below=tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a\0b", "NUL"),
        ("\udcff", "not valid UTF-8"),
        ("a*", "pattern"),
        ("what?", "pattern"),
        ("a[b]", "pattern"),
        ("x" * 300, "could not open the lake"),
    ],
)
def test_names_that_will_not_do(tmp_path: Path, name: str, words: str) -> None:
    refused(tmp_path / name, words, below=tmp_path)


def test_a_pattern_behind_a_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a[b]").mkdir()
    (tmp_path / "link").symlink_to("a[b]")
    refused(tmp_path / "link", "pattern", below=tmp_path)


def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    refused(tmp_path / "loop", "symbolic link", below=tmp_path)


def deny(monkeypatch: pytest.MonkeyPatch, path: Path, denied: int) -> None:
    """Permissions as an ordinary user meets them, whoever runs the tests."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: not (Path(p) == path and mode & denied) and real(p, mode))


@pytest.mark.parametrize("name", [".", "catalog.sqlite", "data", "leases", "tmp", "commit.lock"])
def test_what_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    paths = lake(tmp_path / "there")
    paths.commit_lock.write_bytes(b"")
    deny(monkeypatch, paths.root / name, os.W_OK)
    refused(paths.root, "is not writable", below=tmp_path)
    assert check_place(paths.root, create=False, read_only=True) == paths


def test_where_nothing_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, tmp_path, os.W_OK)
    refused(tmp_path / "new", "is not writable", below=tmp_path)


@pytest.mark.parametrize(("name", "words"), [(".", "the directory .* cannot be read"), ("catalog.sqlite", "the catalog .* cannot be read")])
def test_what_is_not_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str) -> None:
    paths = lake(tmp_path / "there")
    deny(monkeypatch, paths.root / name, os.R_OK)
    refused(paths.root, words, read_only=True, below=tmp_path)


def test_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    refused(tmp_path / "new", "does not run on Windows", below=tmp_path)


LINUX = r"""
/dev/sda1 / ext4 rw 0 0
server:/export /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/local xfs rw 0 0
//nas/my\040share /mnt/my\040share cifs rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
portal /mnt/portal fuse.portal rw 0 0
C:\134 /mnt/c 9p rw 0 0
systemd-1 /auto autofs rw 0 0
server:/auto /auto nfs rw 0 0
server:/x /over nfs rw 0 0
tmpfs /over tmpfs rw 0 0
broken line
"""
MACOS = """
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//me@nas/share on /Volumes/my share (smbfs, nodev, nosuid, mounted by me)
nas:/export on /Volumes/nfs (nfs, nodev)
me@host: on /Volumes/ssh (macfuse, nodev)
"""


@pytest.mark.parametrize(
    ("mounts", "path", "kind"),
    [
        (LINUX, "/srv/lake", None),
        (LINUX, "/home", "nfs4"),
        (LINUX, "/home/me/lake", "nfs4"),
        (LINUX, "/homeless/lake", None),
        (LINUX, "/home/local/lake", None),
        (LINUX, "/mnt/my share/lake", "cifs"),
        (LINUX, "/mnt/ssh/lake", "fuse.sshfs"),
        (LINUX, "/mnt/portal/lake", None),
        (LINUX, "/mnt/c/lake", "9p"),
        (LINUX, "/auto/lake", "nfs"),
        (LINUX, "/over/lake", None),
        (MACOS, "/Users/me/lake", None),
        (MACOS, "/Volumes/my share/lake", "smbfs"),
        (MACOS, "/Volumes/nfs/lake", "nfs"),
        ("", "/srv/lake", None),
    ],
)
def test_mounts(mounts: str, path: str, kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "realpath", str)
    assert network_file_system(Path(path), mounts) == kind


def test_the_system_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert network_file_system(tmp_path) is None
    monkeypatch.setattr(sys, "platform", "darwin")
    asked: Callable[..., object] = lambda *args, **options: subprocess.CompletedProcess(args, 0, f"nas:/x on {tmp_path} (nfs, nodev)\n")  # noqa: E731
    monkeypatch.setattr(subprocess, "run", asked)
    assert network_file_system(tmp_path / "lake") == "nfs"


def test_a_network_file_system_is_refused_unless_overridden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_system_mounts", lambda: f"server:/x {tmp_path} nfs4 rw 0 0\n")
    paths = lake(tmp_path / "there")
    for read_only in (False, True):
        refused(paths.root, r"is on a network file system \(nfs4\)", read_only=read_only, below=tmp_path)
    refused(tmp_path / "new", "network file system", below=tmp_path)
    monkeypatch.setenv("LAKELITE_ALLOW_NETWORK_FILESYSTEM", "1")
    assert check_place(paths.root, create=False, read_only=False) == paths
