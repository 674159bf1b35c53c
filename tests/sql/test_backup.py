"""BACKUP TO: a lake of its own with all that the other one holds, also while others write; a failure leaves nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import banking
import pytest
import racing

import lakelite
from lakelite.maintenance import backup

SECONDS = 6.0


@pytest.fixture
def con(tmp_path: Path) -> Iterator[lakelite.Connection]:
    con = lakelite.connect(tmp_path / "lake", autocommit=True)
    con.execute("""
        SET inline_rows = 0;
        CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR) WITH (compression = 'snappy');
        INSERT INTO t SELECT range, 'v' || range FROM range(20000);
        DELETE FROM t WHERE k % 2 = 0;
        CREATE BRANCH dev; CREATE TAG first AT VERSION 2;
        OPTIMIZE t;
        SET inline_rows = 1000;
        INSERT INTO t VALUES (-1, 'inline'); CREATE VIEW w AS SELECT count(*) AS n FROM t; COMMENT ON TABLE t IS 'one';
        USE BRANCH dev; DELETE FROM t WHERE k < 5; USE BRANCH main
    """)
    yield con
    con.close()


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted((folder / "data").rglob("*")) if path.is_file()}


LOOKS = (
    "FROM lake.tables", "SELECT * FROM lake.snapshots", "SELECT * FROM lake.fragments", "FROM lake.columns",
    "FROM lake.deletion_vectors", "FROM lake.compositions", "SELECT name, version FROM (SHOW BRANCHES)", "FROM (SHOW TAGS)", "FROM t ORDER BY k", "FROM w",
    "FROM t AT (VERSION => 2) ORDER BY k", "FROM t AT (VERSION => 3) ORDER BY k", "FROM t AT (BRANCH => 'dev') ORDER BY k", "CHECK LAKE",
)  # fmt: skip


def test_a_copy_holds_all(con: lakelite.Connection, tmp_path: Path) -> None:
    row = con.execute("BACKUP TO ?", [tmp_path / "copy"]).fetchall()[0]
    held = files(tmp_path / "lake")
    size = sum(map(len, held.values())) + (tmp_path / "copy" / "catalog.sqlite").stat().st_size
    assert row == (str(tmp_path / "copy"), 10, sum(name.endswith(".parquet") for name in held), size)
    assert files(tmp_path / "copy") == held
    assert any(name.endswith(".keys") for name in held)
    with lakelite.connect(tmp_path / "copy", autocommit=True, create=False) as copy:
        for look in LOOKS:
            if "SHOW" not in look:
                assert copy.execute(look).fetchall() == con.execute(look).fetchall(), look
        assert copy.execute("SHOW TAGS").fetchall() == con.execute("SHOW TAGS").fetchall()
        assert [b[:3] for b in copy.execute("SHOW BRANCHES").fetchall()] == [b[:3] for b in con.execute("SHOW BRANCHES").fetchall()]
        with pytest.raises(lakelite.IntegrityError):
            copy.execute("INSERT INTO t VALUES (1, 'again')")
        copy.execute("INSERT INTO t VALUES (-2, 'of the copy')")
    assert con.execute("SELECT count(*) FROM t WHERE k = -2").fetchone() == (0,)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_while_others_write_compact_and_vacuum(lake: Any, tmp_path: Path) -> None:
    banking.found(lake)
    (tmp_path / "copies").mkdir()
    arguments = [(str(tmp_path / "lake"), number, SECONDS, str(tmp_path / "copies")) for number in range(4)]
    made, *_ = racing.race(banking.work_or_back_up, arguments, racing.PATIENCE_S + SECONDS)
    assert made >= 3
    seen = set()
    for number in range(made):
        with lakelite.connect(tmp_path / "copies" / str(number), create=False) as copy:
            assert copy.execute("SELECT sum(balance) FROM accounts").fetchone() == (banking.WHOLE,)
            assert copy.execute("CHECK LAKE").fetchall() == []
            seen.add(copy.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone())
            rows = sorted(copy.execute("FROM accounts").fetchall())
        assert banking.plain(tmp_path / "copies" / str(number), "accounts") == rows
    assert len(seen) > 1, "others wrote meanwhile"


def test_what_it_needs_is_not_vacuumed_while_it_runs(con: lakelite.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = [con.execute(look).fetchall() for look in LOOKS if "SHOW" not in look]
    seen: list[Any] = []
    copied = backup._copy

    def meanwhile(source: Path, target: Path, check: Any) -> Any:
        if not seen:
            seen.append(None)
            with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
                other.execute("OPTIMIZE t; DROP TABLE t; DROP BRANCH dev; DROP TAG first; VACUUM RETAIN 0 HOURS")
        return copied(source, target, check)

    monkeypatch.setattr(backup, "_copy", meanwhile)
    con.execute("BACKUP TO ?", [tmp_path / "copy"])
    assert seen
    with lakelite.connect(tmp_path / "copy", autocommit=True) as copy:
        assert [copy.execute(look).fetchall() for look in LOOKS if "SHOW" not in look] == want
    con.execute("VACUUM RETAIN 0 HOURS")
    assert files(tmp_path / "lake") == {}, "nothing is held any longer"


def test_a_damaged_file_is_not_copied(con: lakelite.Connection, tmp_path: Path) -> None:
    file = next((tmp_path / "lake" / "data").rglob("*.parquet"))
    whole = file.read_bytes()
    for damaged in (whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], whole[:-1], None):
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        with pytest.raises(lakelite.OperationalError, match=re.escape(file.name)) as caught:
            con.execute("BACKUP TO ?", [tmp_path / "copy"])
        assert caught.value.hint
        assert not (tmp_path / "copy").exists()
        file.write_bytes(whole)
    con.execute("BACKUP TO ?", [tmp_path / "copy"])


@pytest.mark.parametrize("there", [False, True])
def test_a_failure_at_any_file_leaves_nothing(con: lakelite.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """As on a disk that is full."""
    if there:
        (tmp_path / "copy").mkdir()
    made = backup.files.fsync_file
    failures = 0
    for at in range(100):
        count = iter(range(1000))

        def fsync(path: Path, at: int = at, count: Any = count) -> None:
            if next(count) == at:
                raise OSError(28, "No space left on device", str(path))
            made(path)

        monkeypatch.setattr(backup.files, "fsync_file", fsync)
        try:
            con.execute("BACKUP TO ?", [tmp_path / "copy"])
            break
        except lakelite.OperationalError as error:
            failures += "disk is full" in str(error)
        assert list(tmp_path.glob("copy/*")) == []
        assert (tmp_path / "copy").exists() == there
    assert failures == at >= 3


def test_it_can_be_stopped_and_has_a_time_limit(con: lakelite.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "_PIECE", 1)
    threading.Timer(0.1, con.interrupt).start()
    with pytest.raises(lakelite.OperationalError, match="interrupted"):
        con.execute("BACKUP TO ?", [tmp_path / "copy"])
    assert not (tmp_path / "copy").exists()
    con.execute("SET statement_timeout_ms = 100")
    with pytest.raises(lakelite.OperationalError, match="stopped after 100 ms"):
        con.execute("BACKUP TO ?", [tmp_path / "copy"])
    assert not (tmp_path / "copy").exists()


KILLED = """
import sys, time, lakelite
from pathlib import Path
from lakelite.maintenance import backup
def stop(source, target, check):
    print("there", flush=True)
    time.sleep(100)
backup._copy = stop
lakelite.connect(sys.argv[1]).execute("BACKUP TO ?", [sys.argv[2]])
"""


def test_what_a_killed_one_leaves_is_no_lake(con: lakelite.Connection, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "lake"), str(tmp_path / "copy")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        process.kill()
    with pytest.raises(lakelite.CannotOpen):
        lakelite.connect(tmp_path / "copy")
    with pytest.raises(lakelite.OperationalError, match="not an empty directory") as caught:
        con.execute("BACKUP TO ?", [tmp_path / "copy"])
    assert "killed: then the directory may be removed" in str(caught.value.hint)
    con.execute("VACUUM RETAIN 0 HOURS")
    con.execute("BACKUP TO ?", [tmp_path / "other"])


def test_where_it_may_not_go(con: lakelite.Connection, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    for to, words in (
        ("full", "not an empty directory"), ("file", "not an empty directory"), ("lake", "within the lake"), ("lake/data/b", "within the lake"),
        ("link/b", "within the lake"), ("", "or holds it"), ("full/x/y", "there is no directory"), ("new/copy", "there is no directory"),
    ):  # fmt: skip
        with pytest.raises(lakelite.OperationalError, match=words):
            con.execute("BACKUP TO ?", [tmp_path / to])
    con.execute("BEGIN")
    with pytest.raises(lakelite.ProgrammingError, match="inside a transaction"):
        con.execute("BACKUP TO 'b'")
    con.rollback()
    assert (tmp_path / "full" / "x").read_text() == "x"
    assert sorted(path.name for path in (tmp_path / "lake").iterdir() if not path.name.startswith("catalog")) == [
        "commit.lock",
        "data",
        "leases",
        "tmp",
    ]


def test_a_read_only_connection_may_and_modes_stay(tmp_path: Path) -> None:
    lakelite.connect(tmp_path / "lake").close()
    os.chmod(tmp_path / "lake", 0o700)
    (tmp_path / "a").mkdir()
    with lakelite.connect(tmp_path / "lake", read_only=True) as con:
        con.execute("BACKUP LAKE TO ?", [str(tmp_path / "a" / "b")])
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_of_two_at_one_place_one_is_whole(con: lakelite.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = backup._claim
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:

        def second(*arguments: Any, **options: Any) -> None:
            monkeypatch.setattr(backup, "_claim", claimed)
            other.execute("BACKUP TO ?", [tmp_path / "copy"])
            claimed(*arguments, **options)

        monkeypatch.setattr(backup, "_claim", second)  # behind the look at whether it is empty
        with pytest.raises(lakelite.OperationalError, match="not an empty directory"):
            con.execute("BACKUP TO ?", [tmp_path / "copy"])
    with lakelite.connect(tmp_path / "copy", create=False) as copy:
        assert copy.execute("CHECK LAKE").fetchall() == []


@pytest.mark.parametrize("there", [False, True])
def test_a_failure_at_any_directory_leaves_nothing(con: lakelite.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    (tmp_path / "some").mkdir()
    if there:
        (tmp_path / "some" / "copy").mkdir()
    synced, failures = backup.files.fsync_directory, 0
    for at in range(100):
        count = iter(range(1000))

        def fsync(path: Path, at: int = at, count: Any = count) -> None:
            if next(count) == at:
                raise OSError(28, "No space left on device", str(path))
            synced(path)

        monkeypatch.setattr(backup.files, "fsync_directory", fsync)
        try:
            con.execute("BACKUP TO ?", [tmp_path / "some" / "copy"])
            break
        except lakelite.OperationalError as error:
            failures += "disk is full" in str(error)
        assert sorted((tmp_path / "some").rglob("*")) == ([tmp_path / "some/copy"] if there else [])
    assert failures == at >= 3


@pytest.mark.parametrize("statement", ["BACKUP TO", "EXPORT DATABASE"])
def test_a_directory_in_no_directory_is_refused(statement: str, tmp_path: Path) -> None:
    con = lakelite.connect(tmp_path / "x.lake", autocommit=True)
    with pytest.raises(lakelite.OperationalError, match=r"there is no directory .*some\n") as caught:
        con.execute(f"{statement} '{tmp_path}/some/copy'")
    assert caught.value.hint == f"create it first: mkdir -p {tmp_path}/some"
    assert not (tmp_path / "some").exists()


def test_a_private_lake_goes_to_no_open_directory(tmp_path: Path) -> None:
    lakelite.connect(tmp_path / "lake").close()
    (tmp_path / "open").mkdir()
    os.chmod(tmp_path / "open", 0o755)
    os.chmod(tmp_path / "lake", 0o700)
    with lakelite.connect(tmp_path / "lake") as con:
        with pytest.raises(lakelite.OperationalError, match="others may look into") as caught:
            con.execute("BACKUP TO ?", [tmp_path / "open"])
        assert "chmod 700" in str(caught.value.hint)
        os.chmod(tmp_path / "open", 0o700)
        con.execute("BACKUP TO ?", [tmp_path / "open"])


@pytest.mark.parametrize("statement", ["BACKUP TO", "EXPORT DATABASE", "IMPORT DATABASE"])
def test_what_is_no_directory_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    with lakelite.connect("lake", autocommit=True) as con:
        for path in ("s3://bucket/x", "FILE:///tmp/x", "file:x", "gs://b"):
            with pytest.raises(lakelite.NotSupportedError, match="address"):
                con.execute(f"{statement} '{path}'")
        for path in ("  ", "\t"):
            with pytest.raises(lakelite.ProgrammingError, match="path"):
                con.execute(f"{statement} ?", [path])
        if statement != "IMPORT DATABASE":
            con.execute(f"{statement} '~/x'")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "lake"]
    assert [path.name for path in (tmp_path / "home").iterdir()] == ([] if statement == "IMPORT DATABASE" else ["x"])
