"""EXPLAIN COMMIT: it says what the commit then does, and does nothing itself. (The machine of savepoints asks it before each commit.)"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelite


@pytest.fixture
def connections(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """Mine and the winner's, on a lake with a table t of six rows and an empty one, s."""
    with (
        lakelite.connect(tmp_path / "lake", autocommit=True) as mine,
        lakelite.connect(tmp_path / "lake", autocommit=True, author="Grace") as winner,
    ):
        winner.execute("CREATE TABLE t (k INTEGER, v INTEGER); CREATE TABLE s (n INTEGER NOT NULL); INSERT INTO t SELECT range, range FROM range(6)")
        yield mine, winner


def explained(con: Any) -> list[tuple[Any, ...]]:
    """Without the winner's author and statement."""
    return [row[:6] for row in con.execute("EXPLAIN COMMIT").fetchall()]


def test_its_columns_and_a_row_for_each_winner_and_table(connections: tuple[Any, Any]) -> None:
    mine, winner = connections
    mine.execute("BEGIN; DELETE FROM t WHERE k < 3; INSERT INTO s VALUES (1)")
    assert explained(mine) == []
    winner.execute("DELETE FROM t WHERE k = 0")
    winner.execute("INSERT INTO t VALUES (1, 1)")
    winner.execute("INSERT INTO s VALUES (9)")
    cursor = mine.execute("explain commit;")
    assert [d[0] for d in cursor.description] == [
        "winner_snapshot_id", "table_name", "outcome", "rung", "row_count", "explanation", "winner_author", "winner_statement",
    ]  # fmt: skip
    assert cursor.fetchall() == [
        (4, "t", "commit", 2, 1, "1 row of t was already deleted by snapshot 4", "Grace", "DELETE FROM t WHERE k = 0"),
        (5, "t", "commit", 3, 1, "1 row of t that snapshot 5 added or changed is changed too", "Grace", "INSERT INTO t VALUES (1, 1)"),
        (6, "s", "commit", 1, 1, "append on s stands beside the append of snapshot 6", "Grace", "INSERT INTO s VALUES (9)"),
    ]
    before = explained(mine)
    mine.execute("COMMIT")
    assert (
        mine.execute("SELECT winner_snapshot_id, table_name, 'commit', rung, row_count, explanation FROM lake.resolutions ORDER BY 1").fetchall()
        == before
    )
    assert sorted(mine.execute("SELECT k FROM t").fetchall()) == [(3,), (4,), (5,)]


def test_it_tells_of_a_conflict_and_changes_nothing(connections: tuple[Any, Any], tmp_path: Path) -> None:
    mine, winner = connections
    mine.execute("BEGIN; SET inline_rows = 0")
    assert mine.execute("SELECT sum(v) FROM t").fetchall() == [(15,)]
    mine.execute("INSERT INTO s SELECT sum(v) FROM t")
    files = sorted(tmp_path.rglob("*.parquet"))
    winner.execute("UPDATE t SET v = v + 1 WHERE k = 2")
    for _ in range(2):
        assert explained(mine) == [(4, "t", "conflict", 5, 1, "read changed: its rows were shown to you, and snapshot 4 changed them (update)")]
    assert sorted(tmp_path.rglob("*.parquet")) == files
    assert mine.in_transaction
    assert mine.execute("FROM s").fetchall() == [(15,)]
    with pytest.raises(lakelite.TransactionConflict):
        mine.execute("COMMIT")


def test_it_tells_of_a_replay_and_of_an_error_that_would_be(connections: tuple[Any, Any]) -> None:
    mine, winner = connections
    mine.execute("BEGIN; INSERT INTO s SELECT max(v) FROM t")
    winner.execute("UPDATE t SET v = 50 WHERE k = 2")
    assert explained(mine) == [(4, "t", "commit", 4, 2, "ran again on t as snapshot 4 left it")]
    winner.execute("DELETE FROM t")
    assert [row[:5] for row in explained(mine)] == [(5, None, "error", 5, None)]
    assert "NOT NULL" in explained(mine)[0][5]
    with pytest.raises(lakelite.IntegrityError):
        mine.execute("COMMIT")


def test_where_there_is_nothing_to_say(connections: tuple[Any, Any]) -> None:
    mine, winner = connections
    with pytest.raises(lakelite.ProgrammingError, match="no transaction is open"):
        mine.execute("EXPLAIN COMMIT")
    mine.execute("BEGIN; SELECT * FROM t")
    winner.execute("DELETE FROM t")
    assert explained(mine) == []  # it wrote nothing, and stands at its base
    with pytest.raises(lakelite.ProgrammingError, match="syntax error"):
        mine.execute("EXPLAIN COMMIT t")
