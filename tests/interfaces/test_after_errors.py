"""What comes behind an error: results that broke, commits that had landed, connections that could not be made, processes that end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite import lake as lakes
from lakelite import landing


def test_a_result_that_broke_does_not_look_like_one_that_ended(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "l") as con:
        cursor = con.execute("SELECT CASE WHEN range = 250000 THEN error('x') ELSE 1 END FROM range(300000)")
        with pytest.raises(lakelite.Error, match="x"):
            cursor.fetchall()
        for again in (cursor.fetchall, cursor.fetchone, lambda: cursor.fetchmany(3), cursor.to_arrow):
            with pytest.raises(lakelite.InterfaceError, match="has failed before its end"):
                again()


@pytest.mark.parametrize("error", [MemoryError(), OSError(28, "No space left on device"), ValueError("odd")])
def test_upkeep_that_fails_is_a_message_and_the_commit_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any) -> None:
        raise error

    with lakelite.connect(tmp_path / "l", autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER); SET flush_fragments = 0")
        monkeypatch.setattr(landing.compaction, "stage", fail)
        cursor = con.execute("INSERT INTO t VALUES (1)")
        assert cursor.rowcount == 1
        assert "could not be joined" in str(cursor.messages)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_a_connection_that_cannot_be_made_leaves_no_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lakelite.connect(tmp_path / "l").close()

    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(lakes, "Engine", fail)
    with pytest.raises(lakelite.Error):
        lakelite.connect(tmp_path / "l")
    assert os.listdir(tmp_path / "l" / "leases") == []


def test_a_commit_of_nothing_leaves_no_file(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "l", autocommit=True) as con:
        con.execute("CREATE TABLE t (a BIGINT)")
        con.execute("BEGIN; SAVEPOINT a; INSERT INTO t SELECT range FROM range(5000)")
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(5000,)]
        con.execute("ROLLBACK TO a; COMMIT")
        assert list((tmp_path / "l" / "data").rglob("*.parquet")) == []


def test_a_process_ends_though_it_did_not_close_and_another_commits(tmp_path: Path) -> None:
    lines = (
        "import sys, lakelite; c = lakelite.connect(sys.argv[1], autocommit=True); c.execute('CREATE TABLE t (a INTEGER)'); print('up', flush=True)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", f"{lines}; sys.stdin.readline()", str(tmp_path / "l")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        with lakelite.connect(tmp_path / "l") as con, con._session.lake.locked():
            child.communicate("\n", timeout=30)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0


def test_a_flush_and_a_blind_append_are_no_conflict_for_ones_own_rows_that_were_shown(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "l", autocommit=True) as other, lakelite.connect(tmp_path / "l") as mine:
        other.execute("CREATE TABLE t (k INTEGER, v INTEGER); SET flush_fragments = 1; INSERT INTO t VALUES (1, 0)")
        mine.execute("DELETE FROM t WHERE true")
        assert mine.execute("SELECT k, v FROM t").fetchall() == []
        other.execute("INSERT INTO t VALUES (2, 0)")
        mine.commit()
        assert mine.execute("FROM t").fetchall() == []


def test_rows_of_winners_count_for_each_statement_of_an_executemany(tmp_path: Path) -> None:
    from racing import meeting

    with lakelite.connect(tmp_path / "l", autocommit=True) as mine, lakelite.connect(tmp_path / "l", autocommit=True) as other:
        mine.execute("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t VALUES (1, 0)")
        with meeting(lambda: other.execute("INSERT INTO t VALUES (1, 0)")):
            assert mine.executemany("UPDATE t SET v = v + ? WHERE k = ?", [(1, 1), (1, 1)]).rowcount == 4
        assert mine.execute("FROM t").fetchall() == [(1, 2), (1, 2)]
