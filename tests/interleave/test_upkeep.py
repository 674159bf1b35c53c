"""Upkeep: of all that write, only the one whose commit passes a threshold does it; what it leaves; and that it is in nobody's way."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import racing

import lakelite
from lakelite import landing
from lakelite.errors import OperationalError

FLUSHES = "SELECT count(*) FROM lake.snapshots WHERE operation = 'UPKEEP'"


def test_processes_that_append_at_once_do_not_all_flush(tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        assert racing.race(racing.append, [(path, 100)] * 4) == [0, 0, 0, 0]
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
            patch.setattr(landing, "compact", fail)
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
        monkeypatch.setattr(landing, "compact", lambda *_: tried.append(1))
        con.execute("INSERT INTO t VALUES (1)")
        for _ in range(6):
            con.execute("INSERT INTO t VALUES (1)")
        assert len(tried) == 1, "at the fourth"
        con.execute("INSERT INTO t VALUES (2)")
        assert len(tried) == 2, "at the eighth"
        for _ in range(3):
            con.execute("UPDATE t SET a = a + 1 WHERE a > 1")
        assert len(tried) == 2, "eight there were, and eight there are"


@pytest.mark.parametrize("table", ["(k INTEGER, v INTEGER)", "AS SELECT range::INTEGER - 10_000 AS k, 0 AS v FROM range(3000)"])
def test_many_small_writes_leave_few_fragments(table: str, tmp_path: Path) -> None:
    draw = random.Random(11)
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute(f"CREATE TABLE t {table}; SET flush_fragments = 8; SET upkeep_deleted_rows = 30")
        log: dict[int, int] = dict(con.execute("FROM t").fetchall())
        for number in range(240):
            if number % 6 == 4:
                k = draw.choice([*log])
                assert con.execute("UPDATE t SET v = v + 1 WHERE k = ?", [k]).rowcount == 1
                log[k] += 1
            elif number % 6 == 5:
                k = draw.choice([*log])
                assert con.execute("DELETE FROM t WHERE k = ?", [k]).rowcount == 1
                del log[k]
            else:
                assert con.execute("INSERT INTO t VALUES (?, 0)", [number]).messages == []
                log[number] = 0
        assert dict(con.execute("FROM t").fetchall()) == log
        kept = dict(con.execute("SELECT storage, count(*) FROM lake.fragments GROUP BY ALL").fetchall())
        assert kept.pop("inline", 0) <= 9
        assert kept["parquet"] <= 6
        assert con.execute("CHECK LAKE").fetchall() == []


def test_small_files_are_joined_and_large_ones_left(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("SET inline_rows = 0; SET upkeep_files = 4; SET upkeep_values = 100; CREATE TABLE t AS SELECT range AS a FROM range(90)")
        for n in range(3):
            con.execute("INSERT INTO t SELECT range FROM range(?)", [n + 1])
        assert con.execute("SELECT count(*) FROM lake.fragments").fetchone() == (4,)
        con.execute("INSERT INTO t SELECT range FROM range(10)")
        assert con.execute("SELECT row_count FROM lake.fragments ORDER BY ALL").fetchall() == [(16,), (90,)]
        con.execute("SET upkeep = off")
        for _ in range(9):
            con.execute("INSERT INTO t VALUES (1)")
        assert con.execute("SELECT count(*) FROM lake.fragments").fetchone() == (11,)


def test_a_much_deleted_file_is_written_anew(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("SET upkeep_deleted_rows = 1000; CREATE TABLE t AS SELECT range AS a FROM range(4000)")
        con.execute("DELETE FROM t WHERE a < 700")
        assert con.execute("SELECT row_count, deleted_count FROM lake.fragments").fetchall() == [(4000, 700)]
        con.execute("DELETE FROM t WHERE a < 1001")
        assert con.execute("SELECT row_count, deleted_count FROM lake.fragments").fetchall() == [(2999, 0)]
        assert con.execute("SELECT count(*), min(a) FROM t").fetchone() == (2999, 1001)


def test_it_stops_for_nobody_and_nobody_for_it(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        con.execute("SET flush_fragments = 3; CREATE TABLE t (a INTEGER)")
        other.execute("INSERT INTO t VALUES (1)")
        other.execute("BEGIN; UPDATE t SET a = 10 WHERE a = 1; DELETE FROM t WHERE a = 2")
        for n in (2, 3, 4, 5):
            con.execute("INSERT INTO t VALUES (?)", [n])
        assert con.execute("SELECT count(*) FILTER (storage = 'parquet') FROM lake.fragments").fetchone() == (1,)
        other.execute("COMMIT")
        assert con.execute("SELECT a FROM t ORDER BY a").fetchall() == [(3,), (4,), (5,), (10,)]
        assert con.execute("CHECK LAKE").fetchall() == []
