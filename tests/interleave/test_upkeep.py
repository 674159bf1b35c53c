"""Who flushes: of all that append, only the one whose commit passes the threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from racing import PATIENCE_S, race

import lakelite
from lakelite import landing
from lakelite.errors import OperationalError

FLUSHES = "SELECT count(*) FROM lake.snapshots WHERE operation = 'FLUSH'"


def append(barrier: Any, path: str, count: int) -> int:
    """Appends rows one by one; returns how many of the commits had a message."""
    with lakelite.connect(path, autocommit=True) as con:
        barrier.wait(PATIENCE_S)
        return sum(bool(con.execute("INSERT INTO t VALUES (?)", [i]).messages) for i in range(count))


def test_processes_that_append_at_once_do_not_all_flush(tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        assert race(append, [(path, 100)] * 4) == [0, 0, 0, 0]
        assert con.execute("SELECT count(*), sum(a) FROM t").fetchone() == (400, 4 * sum(range(100)))
        assert 2 <= con.execute(FLUSHES).fetchone()[0] <= 4, "400 commits pass 100 fragments three times, a fourth time where a flush was slow"


@pytest.mark.parametrize("setting", ["flush_fragments = 3", "flush_rows = 7"])
def test_the_commit_that_passes_the_threshold_flushes_and_a_multiple_makes_up_for_one_that_failed(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def fail(*_: object) -> None:
        tried.append(number)
        raise OperationalError("no space")

    with lakelite.connect(tmp_path / "lake", autocommit=True) as one, lakelite.connect(tmp_path / "lake", autocommit=True) as two:
        one.execute("CREATE TABLE t (a INTEGER)")
        for con in (one, two):
            con.execute(f"SET {setting}")
        with monkeypatch.context() as patch:
            patch.setattr(landing, "flush", fail)
            for number in range(1, 12):
                (one, two)[number % 2].execute("INSERT INTO t VALUES (?), (?)", [number, -number])
        assert tried == [4, 8]
        two.execute("INSERT INTO t VALUES (0), (0)")
        assert one.execute(FLUSHES).fetchone() == (1,)
        assert one.execute("SELECT count(*), count(DISTINCT storage) FROM lake.fragments").fetchone() == (1, 1)
        assert one.execute("SELECT count(*), sum(a) FROM t").fetchone() == (24, 0)


def test_rows_that_replace_others_pass_no_threshold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER); SET flush_fragments = 3")
        tried: list[object] = []
        monkeypatch.setattr(landing, "flush", lambda *_: tried.append(1))
        con.execute("INSERT INTO t VALUES (1)")
        for _ in range(6):
            con.execute("INSERT INTO t VALUES (1)")
        assert len(tried) == 1, "at the fourth"
        con.execute("INSERT INTO t VALUES (2)")
        assert len(tried) == 2, "at the eighth"
        for _ in range(3):
            con.execute("UPDATE t SET a = a + 1 WHERE a > 1")
        assert len(tried) == 2, "eight there were, and eight there are"
