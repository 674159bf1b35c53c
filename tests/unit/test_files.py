"""Paths, durability, hashing and deleting (lakelite.storage.files)."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelite.errors import InternalError, OperationalError
from lakelite.storage import files
from lakelite.storage.files import LakePaths

SESSION = "0123456789abcdef"
NAME = f"{SESSION}-3-0.parquet"


@pytest.fixture
def paths(tmp_path: Path) -> LakePaths:
    made = LakePaths(tmp_path / "lake")
    files.ensure_directories(made)
    files.make_table_folder(made, 7)
    return made


def put(paths: LakePaths, name: str = NAME, content: bytes = b"x") -> Path:
    path = paths.data_file(7, name)
    path.write_bytes(content)
    return path


def test_places(paths: LakePaths) -> None:
    root = paths.root
    assert paths.data_file(7, NAME) == root / "data" / "7" / NAME
    assert paths.table_folder(7) == root / "data" / "7"
    assert (paths.catalog, paths.commit_lock) == (root / "catalog.sqlite", root / "commit.lock")
    assert paths.spill_folder(SESSION) == root / "tmp" / SESSION
    assert files.data_file_name(f"{SESSION}-3", 0) == NAME


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "../x.parquet",
        "/x.parquet",
        "a/b.parquet",
        "x.parquet\n",
        "X.parquet",
        "-x.parquet",
        ".parquet",
        "x.parquet\0",
        "x.csv",
        "a.b.parquet",
    ],
)
def test_only_bare_names_of_our_alphabet_are_joined(paths: LakePaths, name: str) -> None:
    for join in (paths.data_file, paths.existing_data_file, lambda t, n: files.remove_data_file(paths, t, n)):
        with pytest.raises(InternalError, match="no bare name"):
            join(7, name)


@given(st.text())
def test_a_joined_name_never_leaves_its_folder(name: str) -> None:
    paths = LakePaths(Path("/nowhere"))
    try:
        path = paths.data_file(7, name)
    except InternalError:
        return
    assert os.path.normpath(path) == f"/nowhere/data/7/{name}"


@pytest.mark.parametrize("table_id", [-1, True, "7", "../7", 1.0, None])
def test_only_table_ids_are_joined(paths: LakePaths, table_id: int) -> None:
    with pytest.raises(InternalError, match="no table id"):
        paths.data_file(table_id, NAME)
    with pytest.raises(InternalError, match="no table id"):
        files.make_table_folder(paths, table_id)


def test_a_file_to_be_read_must_be_there_regular_and_of_the_right_size(paths: LakePaths) -> None:
    with pytest.raises(OperationalError, match=f"a file is missing: could not read the data file .*{NAME}"):
        paths.existing_data_file(7, NAME)
    path = put(paths, content=b"12345")
    assert paths.existing_data_file(7, NAME) == paths.existing_data_file(7, NAME, 5) == path
    with pytest.raises(OperationalError, match="has 5 bytes, the catalog says 6"):
        paths.existing_data_file(7, NAME, 6)
    paths.data_file(7, "d.parquet").mkdir()
    os.mkfifo(paths.data_file(7, "f.parquet"))
    for name in ("d.parquet", "f.parquet"):
        with pytest.raises(OperationalError, match="no regular file"):
            paths.existing_data_file(7, name)
        with pytest.raises(OperationalError, match="no regular file; it was not deleted"):
            files.remove_data_file(paths, 7, name)
        assert os.path.lexists(paths.root / "data" / "7" / name)


@pytest.mark.parametrize("level", ["data", "folder", "file", "dangling file"])
def test_links_below_the_root_are_refused(paths: LakePaths, tmp_path: Path, level: str) -> None:
    victim = put(paths)
    place = {"data": paths.data, "folder": paths.table_folder(7)}.get(level, victim)
    outside = tmp_path / "outside"
    place.rename(outside)
    place.symlink_to("gone" if level == "dangling file" else outside)
    for act in (paths.data_file, paths.existing_data_file, lambda t, n: files.remove_data_file(paths, t, n)):
        with pytest.raises(OperationalError, match="is a symbolic link"):
            act(7, NAME)
    assert place.is_symlink()
    assert outside.exists()


def test_a_folder_swapped_for_a_link_after_the_check_is_not_followed(paths: LakePaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = put(paths)
    paths.table_folder(7).rename(tmp_path / "outside")
    paths.table_folder(7).symlink_to(tmp_path / "outside")
    monkeypatch.setattr(files, "_refuse_link", lambda path: None)
    with pytest.raises(OperationalError, match="could not delete the data file"):
        files.remove_data_file(paths, 7, NAME)
    assert (tmp_path / "outside" / victim.name).exists()


def test_a_root_reached_through_a_link_is_fine(paths: LakePaths, tmp_path: Path) -> None:
    put(paths)
    (tmp_path / "link").symlink_to(paths.root)
    assert files.remove_data_file(LakePaths(tmp_path / "link"), 7, NAME)


def test_removing_tolerates_what_is_gone(paths: LakePaths) -> None:
    path = put(paths)
    assert files.remove_data_file(paths, 7, NAME) is True
    assert not path.exists()
    assert files.remove_data_file(paths, 7, NAME) is False
    assert files.remove_data_file(paths, 8, NAME) is False


def test_listing_sees_only_our_own_files(paths: LakePaths, tmp_path: Path) -> None:
    ours = put(paths, content=b"123")
    for other in ("other.parquet", f"{SESSION}-3.parquet", f"{SESSION}-03-0.parquet", f"{SESSION}-3-0.parquet.tmp", f"{SESSION.upper()}-1-1.parquet"):
        (ours.parent / other).write_bytes(b"")
    (ours.parent / f"{SESSION}-4-0.parquet").symlink_to(ours)
    (ours.parent / f"{SESSION}-5-0.parquet").mkdir()
    for folder in ("07", "x", "7x"):
        (paths.data / folder).mkdir()
        (paths.data / folder / NAME).write_bytes(b"")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / NAME).write_bytes(b"")
    (paths.data / "8").symlink_to(tmp_path / "outside")
    (paths.data / "9").write_bytes(b"")
    assert list(files.list_data_files(paths)) == [(7, NAME, SESSION, 3)]
    assert list(files.list_data_files(LakePaths(tmp_path / "nothing"))) == []


def test_listing_passes_over_what_goes_meanwhile(paths: LakePaths) -> None:
    for number in range(3):
        put(paths, f"{SESSION}-1-{number}.parquet")
    found = files.list_data_files(paths)
    first = next(found)
    for number in range(3):
        files.remove_data_file(paths, 7, f"{SESSION}-1-{number}.parquet")
    assert first.session_id == SESSION
    assert list(found) == []


def test_listing_refuses_a_linked_data_folder(paths: LakePaths, tmp_path: Path) -> None:
    paths.data.rename(tmp_path / "outside")
    paths.data.symlink_to(tmp_path / "outside")
    with pytest.raises(OperationalError, match="symbolic link"):
        list(files.list_data_files(paths))


def test_spill_folders(paths: LakePaths, tmp_path: Path) -> None:
    folder = paths.spill_folder(SESSION)
    files.remove_spill_folder(paths, SESSION)
    folder.mkdir()
    (folder / "block").write_bytes(b"x")
    files.remove_spill_folder(paths, SESSION)
    assert not folder.exists()
    (tmp_path / "outside").mkdir()
    folder.symlink_to(tmp_path / "outside")
    with pytest.raises(OperationalError, match="symbolic link"):
        files.remove_spill_folder(paths, SESSION)
    assert (tmp_path / "outside").exists()


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_the_hash(paths: LakePaths, size: int) -> None:
    content = os.urandom(size)
    path = put(paths, content=content)
    assert files.sha256_of(path) == hashlib.sha256(content).hexdigest()


def test_hashing_says_which_file(paths: LakePaths, tmp_path: Path) -> None:
    for act in (files.sha256_of, files.fsync_file, files.fsync_directory):
        with pytest.raises(OperationalError, match=r"a file is missing: could not .*nothing"):
            act(tmp_path / "nothing")
    (tmp_path / "link").symlink_to(put(paths))
    with pytest.raises(OperationalError, match="a symbolic link where none may be"):
        files.sha256_of(tmp_path / "link")


# --- durability ---


def record_syncs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    synced: list[tuple[int, int]] = []

    def fsync(fd: int) -> None:
        status = os.fstat(fd)
        synced.append((status.st_dev, status.st_ino))

    monkeypatch.setattr(os, "fsync", fsync)
    return synced


def inode(path: Path) -> tuple[int, int]:
    return path.stat().st_dev, path.stat().st_ino


def test_what_is_made_is_synced_where_its_name_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = record_syncs(monkeypatch)
    paths = LakePaths(tmp_path / "lake")
    files.ensure_directories(paths)
    assert synced == [inode(tmp_path), inode(paths.root)]
    files.ensure_directories(paths)
    assert len(synced) == 2
    for _ in range(2):
        assert files.make_table_folder(paths, 7) == paths.data / "7"
        assert synced[2:] == [inode(paths.data)]
    files.fsync_file(put(paths))
    files.fsync_directory(paths.data / "7")
    assert synced[3:] == [inode(paths.data / "7" / NAME), inode(paths.data / "7")]


def test_a_table_folder_that_another_session_made_is_synced_once(paths: LakePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = record_syncs(monkeypatch)
    (paths.data / "8").mkdir()
    for _ in range(2):
        files.make_table_folder(paths, 8)
        assert synced == [inode(paths.data)]


@pytest.mark.parametrize(("private", "mode"), [(False, 0o750), (True, 0o700)])
def test_the_umask_is_respected(tmp_path: Path, private: bool, mode: int) -> None:
    before = os.umask(0o027)
    try:
        files.ensure_directories(LakePaths(tmp_path / "lake"), private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "lake" / "data").stat().st_mode) == 0o750


def test_directories_are_neither_links_nor_files(tmp_path: Path) -> None:
    paths = LakePaths(tmp_path / "lake")
    paths.root.mkdir()
    paths.data.write_bytes(b"")
    with pytest.raises(OperationalError, match="is a file; it should be a directory"):
        files.ensure_directories(paths)
    paths.data.unlink()
    paths.data.symlink_to(tmp_path)
    with pytest.raises(OperationalError, match="symbolic link"):
        files.ensure_directories(paths)
    with pytest.raises(OperationalError, match="symbolic link"):
        files.make_table_folder(paths, 1)
    with pytest.raises(OperationalError, match="a file is missing: could not create the directory"):
        files.ensure_directories(LakePaths(tmp_path / "no" / "lake"))


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk quota is used up"), (errno.EIO, "the disk reported an input/output error")],
)
def test_a_failed_sync_is_said_plainly_and_tried_once(paths: LakePaths, monkeypatch: pytest.MonkeyPatch, code: int, words: str) -> None:
    path = put(paths)
    calls = []

    def fsync(fd: int) -> None:
        calls.append(fd)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)
    for act, what in ((files.fsync_file, path), (files.fsync_directory, path.parent)):
        with pytest.raises(OperationalError, match=f"{words}: could not make the .*{what.name} durable") as caught:
            act(what)
        assert caught.value.hint
        assert isinstance(caught.value.__cause__, OSError)
    assert len(calls) == 2
    for fd in calls:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


@pytest.mark.parametrize(("code", "falls_back"), [(0, False), (errno.ENOTSUP, True), (errno.EIO, None)])
def test_macos_syncs_through_to_the_platters(paths: LakePaths, monkeypatch: pytest.MonkeyPatch, code: int, falls_back: bool | None) -> None:
    synced = record_syncs(monkeypatch)
    full = []

    def fcntl(fd: int, command: int) -> None:
        full.append(command)
        if code:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=fcntl))
    if falls_back is None:
        with pytest.raises(OperationalError, match="input/output error"):
            files.fsync_file(put(paths))
    else:
        files.fsync_file(put(paths))
    assert full == [51]
    assert len(synced) == (1 if falls_back else 0)


def test_an_unknown_error_keeps_the_words_of_the_system() -> None:
    assert files.os_error(OSError(errno.EXDEV, "Invalid cross-device link"), "move x").message == "Invalid cross-device link: could not move x"
    assert files.os_error(OSError("odd"), "move x").message == "odd: could not move x"


def test_a_file_size_limit_is_said_plainly(tmp_path: Path) -> None:
    script = """
import resource, signal, sys
from lakelite.storage.files import os_error
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with open(sys.argv[1], "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 600)
except OSError as exc:
    print(os_error(exc, "write the file x"))
"""
    run = subprocess.run([sys.executable, "-c", script, tmp_path / "big"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("the file would be larger than this process may write: could not write the file x\nHint: ")
