"""What can be opened as a lake and what is refused: with one clear message, and without a trace in the directory."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crashing import Server, contents, opened, rows

import lakelite
from lakelite.storage import place

CATALOG = "catalog.sqlite"
EXPECTED = {"t": [(1,), (2,)], "u": [(a,) for a in range(30)]}


def make(path: Path) -> None:
    with opened(path) as con:
        con.execute("SET inline_rows = 5")
        con.execute("CREATE TABLE t (a BIGINT)")
        con.execute("INSERT INTO t VALUES (1), (2), (3)")
        con.execute("DELETE FROM t WHERE a = 3")
        con.execute("CREATE TABLE u AS SELECT range AS a FROM range(30)")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "lake"
    make(path)
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "lake"))


def state(path: Path) -> dict[str, tuple[int, str]]:
    """Every file and folder below `path` with its size and hash."""
    found = {}
    for entry in sorted(path.rglob("*")):
        content = entry.read_bytes() if entry.is_file() else b""
        found[str(entry.relative_to(path))] = (len(content), hashlib.sha256(content).hexdigest())
    return found


def check_refused(path: Path, message: str, **options: Any) -> None:
    before = state(path)
    with pytest.raises(lakelite.CannotOpen, match=message) as caught:
        lakelite.connect(path, **options)
    assert caught.value.message.count("\n") == 0
    assert caught.value.hint
    assert state(path) == before


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path / CATALOG)) as catalog:
        catalog.executescript(script)


# Other files in the place of the catalog.


def test_a_foreign_database(tmp_path: Path) -> None:
    run(tmp_path, "CREATE TABLE t (a)")
    check_refused(tmp_path, "no lakelite catalog")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("PRAGMA application_id = 1", "no lakelite catalog"),
        ("PRAGMA application_id = 0", "no lakelite catalog"),
        ("PRAGMA user_version = 999", "written by a newer lakelite .*999"),
        ("PRAGMA user_version = 0", "changed by another program"),
        ("CREATE TABLE extra (a)", "changed by another program"),
        ("CREATE VIEW extra AS SELECT 1", "changed by another program"),
        ("CREATE TRIGGER extra AFTER INSERT ON settings BEGIN SELECT 1; END", "changed by another program"),
        ("CREATE INDEX extra ON settings (value)", "changed by another program"),
        ("ALTER TABLE settings ADD COLUMN extra TEXT", "changed by another program"),
        ("DROP TABLE compositions", "changed by another program"),
        ("CREATE VIRTUAL TABLE extra USING fts5(a)", "changed by another program"),
    ],
)
def test_a_changed_catalog(script: str, message: str, path: Path) -> None:
    run(path, script)
    check_refused(path, message)


@pytest.mark.parametrize("content", [b"not a database" * 1000, b"x", b"SQLite format 3\0"], ids=["text", "one byte", "a header's beginning"])
def test_no_database(content: bytes, path: Path) -> None:
    (path / CATALOG).write_bytes(content)
    check_refused(path, "damaged|cannot be used|is empty")


def test_an_empty_catalog_among_data(path: Path) -> None:
    """A lake that lost its catalog is no new lake: its files would be swept as orphans."""
    (path / CATALOG).write_bytes(b"")
    check_refused(path, "empty")


def test_an_empty_catalog_alone_is_a_creation_that_was_cut_short(tmp_path: Path) -> None:
    (tmp_path / CATALOG).write_bytes(b"")
    with opened(tmp_path) as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        assert contents(con) == {"t": []}


def test_a_catalog_that_is_missing_among_data(path: Path) -> None:
    (path / CATALOG).unlink()
    check_refused(path, "has lost its catalog: catalog.sqlite is not there")


def test_a_catalog_that_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / CATALOG).mkdir()
    check_refused(tmp_path, "no regular file")


def test_a_catalog_that_is_a_link(path: Path) -> None:
    (path / CATALOG).rename(path / "elsewhere")
    (path / CATALOG).symlink_to(path / "elsewhere")
    check_refused(path, "symbolic link")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_truncated_catalog(part: float, path: Path) -> None:
    os.truncate(path / CATALOG, int((path / CATALOG).stat().st_size * part) // 4096 * 4096)
    check_refused(path, "damaged|cannot be used")


def test_flipped_bits(path: Path) -> None:
    """A catalog with a flipped bit is refused, or it opens and reads as it was, or the statement that meets the damage says so."""
    original = (path / CATALOG).read_bytes()
    outcomes = {"refused": 0, "unharmed": 0, "noticed": 0}
    for number in range(40):
        damaged = bytearray(original)
        offset = number * len(original) // 40 + 37 * number % 97
        damaged[offset] ^= 1 << number % 8
        (path / CATALOG).write_bytes(damaged)
        before = state(path)
        try:
            con = lakelite.connect(path, autocommit=True)
        except lakelite.CannotOpen:
            outcomes["refused"] += 1
            assert state(path) == before
            continue
        with closing(con):
            try:
                found = contents(con)
            except lakelite.DatabaseError:
                outcomes["noticed"] += 1
            else:
                outcomes["unharmed"] += found == EXPECTED
    assert outcomes["refused"] > 0, outcomes
    assert outcomes["unharmed"] > 0, outcomes


# The place.


@pytest.fixture
def read_only(path: Path) -> Iterator[Path]:
    """A read-only mount of the lake, or modes where nobody may mount."""
    mounted = os.geteuid() == 0 and subprocess.run(["mount", "--bind", "-o", "ro", path, path], capture_output=True, check=False).returncode == 0
    if mounted and os.access(path, os.W_OK):
        subprocess.run(["mount", "-o", "remount,ro,bind", path], check=True, capture_output=True)
    if not mounted:
        if os.geteuid() == 0:
            pytest.skip("root, whom modes do not bind, may not mount here")
        path.chmod(0o555)
    yield path
    if mounted:
        subprocess.run(["umount", path], check=True)
    path.chmod(0o755)


def test_a_read_only_place(read_only: Path) -> None:
    check_refused(read_only, "is not writable")
    check_refused(read_only, "writ|read-only", read_only=True)


@pytest.mark.parametrize("name", ["", CATALOG, "data", "leases", "commit.lock"])
def test_what_may_not_be_written(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: ask(p, mode) and not (mode & os.W_OK and Path(p) == path / name))
    check_refused(path, "is not writable")


def test_a_catalog_that_could_be_opened_for_reading_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes that where the system refuses more for a moment (a full disk, an error of it), and says nothing: no commit would ever work."""
    real = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", lambda file, **options: real(f"file:{file}?mode=ro", uri=True, **options))
        with pytest.raises(lakelite.CannotOpen, match="attempt to write a readonly database"):
            lakelite.connect(path)
    with opened(path) as con:
        con.execute("INSERT INTO t VALUES (3)")


def test_a_network_file_system(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_system_mounts", lambda: f"/dev/sda / ext4 rw 0 0\nserver:/x {path.parent} nfs4 rw 0 0\n")
    monkeypatch.delenv(place.ALLOW_NETWORK, raising=False)
    check_refused(path, r"network file system \(nfs4\)")
    monkeypatch.setenv(place.ALLOW_NETWORK, "1")
    with opened(path) as con:
        assert contents(con) == EXPECTED


def test_a_lake_that_is_not_there(tmp_path: Path) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(lakelite.CannotOpen, match="there is no lake at"):
            lakelite.connect(tmp_path / "none", **options)
    assert state(tmp_path) == {}


def test_a_directory_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important")
    check_refused(tmp_path, "not a lake.*thesis.tex")


# What is missing, and copies.


@pytest.mark.parametrize("name", ["commit.lock", "leases", "tmp"])
def test_what_is_made_again(name: str, path: Path) -> None:
    victim = path / name
    victim.unlink() if victim.is_file() else shutil.rmtree(victim)
    with opened(path) as con:
        con.execute("INSERT INTO t VALUES (3)")
        assert contents(con) == {**EXPECTED, "t": [(1,), (2,), (3,)]}


def test_a_commit_lock_that_is_deleted_under_two_sessions(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        one.execute("INSERT INTO t VALUES (3)")
        (path / "commit.lock").unlink()
        for n, con in enumerate((one, other) * 3):
            con.execute(f"INSERT INTO t VALUES ({n})")
        assert len(rows(one, "FROM t")) == len(rows(other, "FROM t")) == 9


def test_a_copy_of_a_closed_lake(path: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-r", path, tmp_path / "copy"], check=True)
    with opened(tmp_path / "copy") as copy, opened(path) as con:
        copy.execute("INSERT INTO t VALUES (10)")
        con.execute("INSERT INTO t VALUES (11)")
        assert contents(copy)["t"] == [(1,), (2,), (10,)]
        assert contents(con)["t"] == [(1,), (2,), (11,)]


def test_a_copy_of_a_lake_that_another_process_has_open(path: Path, tmp_path: Path, server: Server) -> None:
    """Nothing is being written meanwhile. The copy holds all that was committed, and the leases in it hold nothing back."""
    os.mkfifo(tmp_path / "gate")
    other = server.start("hold", lake=str(path), statements=["INSERT INTO u VALUES (77)", "FROM t"], step="answer", gate=str(tmp_path / "gate"))
    other.wait_for("stopped")
    assert (path / f"{CATALOG}-wal").stat().st_size > 0
    subprocess.run(["cp", "-r", path, tmp_path / "copy"], check=True)
    (tmp_path / "gate").write_bytes(b"")
    other.wait_for("done")
    assert other.finish() == ([], 0)
    with opened(tmp_path / "copy") as copy:
        assert contents(copy) == {**EXPECTED, "u": sorted([*EXPECTED["u"], (77,)])}
        copy.execute("VACUUM")
        assert len(os.listdir(tmp_path / "copy" / "leases")) == 1


def test_a_missing_log(path: Path, tmp_path: Path, server: Server) -> None:
    """Whoever deletes the WAL of a killed session loses what was not checkpointed, and nothing that was: the lake stays whole."""
    os.mkfifo(tmp_path / "gate")
    other = server.start("hold", lake=str(path), statements=["INSERT INTO u VALUES (77)"], step="answer", gate=str(tmp_path / "gate"))
    other.wait_for("stopped")
    other.kill()
    for ending in ("-wal", "-shm"):
        (path / (CATALOG + ending)).unlink()
    with opened(path) as con:
        assert contents(con) == {**EXPECTED, "u": sorted(EXPECTED["u"])}
        assert rows(con, "VACUUM")[0][4] == 1


def test_a_log_that_is_missing_from_a_young_lake(tmp_path: Path, server: Server) -> None:
    """All of the catalog was in the WAL: what is left looks like a new lake, and VACUUM would sweep the data as orphans."""
    path = tmp_path / "lake"
    os.mkfifo(tmp_path / "gate")
    other = server.start("hold", lake=str(path), statements=["CREATE TABLE u AS FROM range(9)", "FROM u"], step="answer", gate=str(tmp_path / "gate"))
    other.wait_for("stopped")
    other.kill()
    for ending in ("-wal", "-shm"):
        (path / (CATALOG + ending)).unlink()
    check_refused(path, "empty")


def test_sessions_that_come_and_go_do_not_drop_the_locks_of_others(path: Path) -> None:
    with opened(path) as con:
        con.execute("INSERT INTO t VALUES (3)")
        lakelite.connect(path).close()
        con.execute("INSERT INTO t VALUES (4)")
        with closing(sqlite3.connect(path / CATALOG)) as foreign:
            assert foreign.execute("SELECT max(snapshot_id) FROM snapshots").fetchone() == (6,)
        con.execute("INSERT INTO t VALUES (5)")
    with opened(path) as con:
        assert len(rows(con, "FROM t")) == 5
