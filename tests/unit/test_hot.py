"""Files that are kept in memory because one change after the other scans them: the answers are those of the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.storage import hot

ROWS = 3_000  # above what stays inline


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    with lakelite.connect(tmp_path / "l.lake", autocommit=True) as con:
        con.execute(f"CREATE TABLE t AS SELECT range AS id, range % 10 AS k, 'n' || range AS s FROM range({ROWS})")
        yield con


def _held(con: Any) -> dict[Any, str]:
    tables: dict[Any, str] = con._session.lake.engine._hot._tables
    return tables


def _ids(con: Any) -> list[int]:
    return [row[0] for row in con.execute("SELECT id FROM t ORDER BY id").fetchall()]


def test_a_file_is_taken_over_after_as_many_scans_as_it_has_columns_that_are_wanted(con: Any) -> None:
    con.execute("DELETE FROM t WHERE id = 5")
    assert not _held(con)
    con.execute("DELETE FROM t WHERE id = 7")
    assert len(_held(con)) == 1
    assert con.execute("DELETE FROM t WHERE id = 5").rowcount == 0
    assert con.execute("DELETE FROM t WHERE id IN (8, 9)").rowcount == 2
    assert len(_held(con)) == 1
    assert _ids(con) == [i for i in range(ROWS) if i not in (5, 7, 8, 9)]


def test_updates_of_a_hot_file_keep_row_ids_and_see_their_own_new_rows(con: Any) -> None:
    for _ in range(10):
        assert con.execute("UPDATE t SET k = k + 100 WHERE id BETWEEN 10 AND 12").rowcount == 3
    assert len(_held(con)) == 1
    assert con.execute("SELECT id, k, s FROM t WHERE k >= 100 ORDER BY id").fetchall() == [(i, i % 10 + 1000, f"n{i}") for i in (10, 11, 12)]
    assert con.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)


def test_hot_and_cold_files_and_inline_rows_are_read_together(con: Any) -> None:
    for i in range(3):
        con.execute(f"DELETE FROM t WHERE id = {i}")
    con.execute(f"INSERT INTO t SELECT range, 0, 'second' FROM range({ROWS}, {2 * ROWS})")
    con.execute("INSERT INTO t VALUES (1000000, 0, 'inline')")
    assert con.execute("DELETE FROM t WHERE id % 1000 = 0").rowcount == 2 + 3 + 1
    assert _ids(con) == [i for i in range(2 * ROWS) if i > 2 and i % 1000]
    con.execute("DELETE FROM t WHERE id % 500 = 0")
    assert len(_held(con)) == 2


def test_a_file_beyond_the_bounds_is_read_as_it_is(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot, "CELLS_OF_ONE", ROWS - 1)
    for i in range(4):
        con.execute(f"DELETE FROM t WHERE id = {i}")
    assert not _held(con)
    assert _ids(con) == list(range(4, ROWS))


@pytest.mark.parametrize(("bound", "kept"), [("CELLS_KEPT", ROWS + 1), ("TABLES_KEPT", 1)])
def test_what_does_not_fit_together_is_dropped_and_then_taken_over_less_readily(
    con: Any, monkeypatch: pytest.MonkeyPatch, bound: str, kept: int
) -> None:
    monkeypatch.setattr(hot, bound, kept)
    for column in ("id", "k"):
        for _ in range(2):
            con.execute(f"DELETE FROM t WHERE {column} = -1")
    assert len(_held(con)) == 2
    con.execute("DELETE FROM t WHERE id = -1")
    assert not _held(con)
    con.execute("DELETE FROM t WHERE id = -1")
    assert not _held(con)
    con.execute("DELETE FROM t WHERE id = 3")
    assert len(_held(con)) == 1
    assert 3 not in _ids(con)


def test_scans_are_not_counted_for_ever(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot, "SCANS_KEPT", 0)
    for i in range(6):
        con.execute(f"DELETE FROM t WHERE id = {i}")
    assert not _held(con)
