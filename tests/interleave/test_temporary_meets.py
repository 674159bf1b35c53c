"""Temporary tables against every kind of winner: what was read of them is what it was, and rows of the lake that they hold were handed out.

The model is plain DuckDB, on which the winner runs and then M, with the temporary rows that M had.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oracle import Oracle, multiset
from racing import flush, meeting

import lakelite

SETUP = (
    "CREATE TABLE t (k INTEGER, v INTEGER)",
    "CREATE TABLE s (k INTEGER, v INTEGER)",
    "INSERT INTO t SELECT range, range FROM range(8)",
    "INSERT INTO s VALUES (1, 100), (2, 200), (9, 900)",
    "DELETE FROM t WHERE k = 7",
)
OWN = ("CREATE TEMP TABLE x (k INTEGER, v INTEGER)", "INSERT INTO x VALUES (1, 10), (2, 20), (11, 110)")
WINNERS = (
    "INSERT INTO t VALUES (1, -1)",
    "DELETE FROM t WHERE k = 1",
    "DELETE FROM t WHERE k = 6",
    "UPDATE t SET v = v + 1000 WHERE k = 2",
    "UPDATE t SET k = 3 WHERE k = 5",
    "TRUNCATE t",
    "INSERT OVERWRITE t VALUES (1, 77), (5, 78)",
    "INSERT INTO s SELECT 1, count(*) FROM t",
    "ALTER TABLE t ADD COLUMN more INTEGER",
    "OPTIMIZE t",
    "FLUSH",
)
LEVELS = ("serializable", "write serializable")
READING = (
    "INSERT INTO t SELECT k, v FROM x",
    "INSERT INTO t SELECT x.k, t.v FROM x JOIN t USING (k)",
    "UPDATE t SET v = t.v + x.v FROM x WHERE t.k = x.k",
    "UPDATE t SET v = (SELECT max(v) FROM x) WHERE k < 3",
    "DELETE FROM t WHERE k IN (SELECT k FROM x)",
    "DELETE FROM t USING x, s WHERE t.k = x.k AND s.k = x.k",
    "MERGE INTO t USING x ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = t.v + x.v WHEN NOT MATCHED THEN INSERT VALUES (x.k, x.v)",
    "INSERT INTO s SELECT k, (SELECT count(*) FROM t) FROM v",
)
KEEPING = (
    "CREATE TEMP TABLE y AS SELECT * FROM t WHERE k < 3",
    "CREATE TEMP TABLE y AS SELECT count(*)::INTEGER AS k, 0 AS v FROM t, x",
    "INSERT INTO x SELECT k, v FROM t WHERE v > 100",
    "UPDATE x SET v = t.v FROM t WHERE t.k = x.k",
    "DELETE FROM x WHERE k IN (SELECT k FROM t)",
    "MERGE INTO x USING t ON t.k = x.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT",
    "CREATE OR REPLACE TEMP TABLE x AS SELECT k, v FROM v",
)
ON_THE_MODEL = {  # of the rows that match one, DuckDB takes any, and lakelite the smallest values
    "UPDATE x SET v = t.v FROM t WHERE t.k = x.k": "UPDATE x SET v = g.v FROM (SELECT k, min(v) AS v FROM t GROUP BY k) AS g WHERE g.k = x.k",
}


@pytest.fixture(params=["inline", "files"])
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pair(tmp_path: Path, storage: str) -> Iterator[tuple[Any, Any]]:
    """M and W, with rows inline, or in files of which one has a deletion vector."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as m, lakelite.connect(tmp_path / "lake", autocommit=True) as w:
        for con in (m, w):
            con.execute(f"SET overwrite_append = keep; SET inline_rows = {1000 if storage == 'inline' else 0}")
        m.execute("; ".join(SETUP))
        yield m, w


def fresh(pair: tuple[Any, Any]) -> None:
    m, w = pair
    if len(w.execute("FROM t LIMIT 0").description) > 2:
        w.execute("ALTER TABLE t DROP COLUMN more")
    w.execute("BEGIN; INSERT OVERWRITE t SELECT range, range FROM range(8); INSERT OVERWRITE s VALUES (1, 100), (2, 200), (9, 900); COMMIT")
    w.execute("DELETE FROM t WHERE k = 7")
    m.execute("DROP TABLE IF EXISTS temp.x; DROP TABLE IF EXISTS temp.y; DROP VIEW IF EXISTS temp.v")
    m.execute("; ".join(OWN))
    m.execute("CREATE TEMP VIEW v AS SELECT t.k, x.v FROM t JOIN x USING (k)")


def model(*statements: str) -> Oracle:
    oracle = Oracle()
    for statement in (*SETUP, *OWN, "CREATE TEMP VIEW v AS SELECT t.k, x.v FROM t JOIN x USING (k)", *statements):
        if statement not in ("OPTIMIZE t", "FLUSH"):
            oracle.run(statement)
    return oracle


def behind(winner: str, mine: str) -> tuple[Oracle, int]:
    """M behind the winner, and how many rows it changed. An added column is not one of those that M means."""
    mine = ON_THE_MODEL.get(mine, mine)
    first, second = (mine, winner) if winner.startswith("ALTER") else (winner, mine)
    oracle = model(first)
    count = oracle.run(second)
    return oracle, model().run(mine) if first is mine else count


def win(w: Any, winner: str) -> None:
    if winner == "FLUSH":
        flush(w, "t")
    else:
        w.execute(winner)


def content(con: Any, name: str) -> Any:
    return multiset(con.execute(f"FROM {name}").fetchall())


def same(con: Any, oracle: Oracle, names: tuple[str, ...] = ("t", "s")) -> None:
    for name in names:
        assert content(con, name) == multiset(oracle.duck.execute(f"FROM {name}").fetchall()), name


def with_levels(number: int, storage: str) -> list[tuple[str, str]]:
    """The winners that M meets on a storage, each with a level: a half of them on both, another half with the next M.

    LAKELITE_ALL_PAIRS=1: all of them on both, at both levels.
    """
    if os.environ.get("LAKELITE_ALL_PAIRS"):
        return [(w, level) for w in WINNERS for level in LEVELS for _ in range(2)]
    return [(w, LEVELS[(number // 4 + i) % 2]) for i, w in enumerate(WINNERS) if (i + number) % 4 == 2 * (storage == "files")]


@pytest.mark.parametrize("mine", READING)
def test_what_is_read_of_a_temporary_table_is_what_it_was(pair: tuple[Any, Any], storage: str, mine: str) -> None:
    """In autocommit, and in a transaction that changes the temporary table behind it, in which only a number of rows can differ."""
    m, w = pair
    for number, (winner, level) in enumerate(with_levels(READING.index(mine), storage)):
        fresh(pair)
        if (number + (storage == "files")) % 2:
            in_a_transaction(m, w, mine, winner, level)
            continue
        with meeting(lambda winner=winner: win(w, winner)):
            count = m.execute(mine).rowcount
        oracle, expected = behind(winner, mine)
        assert count == expected, winner
        same(w, oracle)


def in_a_transaction(m: Any, w: Any, mine: str, winner: str, level: str) -> None:
    m.execute(f"BEGIN ISOLATION LEVEL {level}")
    told = m.execute(mine).rowcount
    m.execute("UPDATE x SET v = -1; INSERT INTO x VALUES (1, 1)")
    win(w, winner)
    before, (oracle, expected) = model(winner), behind(winner, mine)
    lands = expected == told or level != "serializable"
    try:
        m.execute("COMMIT")
        has_landed = True
    except lakelite.TransactionConflict:
        has_landed = False
    assert has_landed == lands, winner
    if not has_landed:
        same(w, before)
        assert content(m, "x") == multiset([(1, 10), (2, 20), (11, 110)])
    else:
        same(w, oracle)
        assert content(m, "x") == multiset([(1, -1), (2, -1), (11, -1), (1, 1)])


@pytest.mark.parametrize("mine", KEEPING)
def test_rows_of_the_lake_in_a_temporary_table_were_handed_out(pair: tuple[Any, Any], storage: str, mine: str) -> None:
    """The transaction lands if they, and their number as it was told, would be the same on the head, and only then.

    By default a number may differ, and what only a blind append made another.
    """
    m, w = pair
    kept = "y" if " y " in mine else "x"
    for winner, level in with_levels(KEEPING.index(mine), storage):
        fresh(pair)
        m.execute(f"BEGIN ISOLATION LEVEL {level}")
        m.execute(mine)
        mine_kept = content(m, kept)
        m.execute("TRUNCATE x")
        m.execute(f"INSERT INTO s SELECT k, v FROM {kept}")
        win(w, winner)
        before, (oracle, count) = model(winner), behind(winner, mine)
        is_same = mine_kept == multiset(oracle.duck.execute(f"FROM {kept}").fetchall())
        is_same &= level != "serializable" or count == model().run(mine)
        is_blind = winner.startswith("INSERT INTO t VALUES") and level == "write serializable"
        try:
            m.execute("COMMIT")
            has_landed = True
        except lakelite.TransactionConflict:
            has_landed = False
        assert has_landed == (is_same or is_blind), winner
        if not has_landed:
            same(w, before)
            assert content(m, "x") == multiset([(1, 10), (2, 20), (11, 110)])
        else:
            assert content(m, "x") == multiset([])
            assert len(m.execute("FROM s").fetchall()) == len(before.duck.execute("FROM s").fetchall()) + (kept == "y") * sum(mine_kept.values())


@pytest.mark.parametrize(
    "winner", ["DROP TABLE t", "ALTER TABLE t DROP COLUMN v; DELETE FROM t WHERE k = 1", "ALTER TABLE t ALTER v TYPE VARCHAR USING 'a' || v"]
)
def test_rows_of_a_table_that_is_another_one_now_are_a_conflict(pair: tuple[Any, Any], winner: str) -> None:
    m, w = pair
    fresh(pair)
    m.execute("BEGIN; CREATE TEMP TABLE y AS SELECT * FROM t WHERE k < 3; INSERT INTO s SELECT k, v FROM y")
    w.execute(winner)
    with pytest.raises(lakelite.TransactionConflict):
        m.execute("COMMIT")
    with pytest.raises(lakelite.ProgrammingError, match="y"):
        m.execute("FROM y")


def test_at_snapshot_nothing_that_was_kept_counts(pair: tuple[Any, Any]) -> None:
    m, w = pair
    fresh(pair)
    m.execute("BEGIN ISOLATION LEVEL SNAPSHOT; CREATE TEMP TABLE y AS SELECT * FROM t WHERE k < 2; INSERT INTO s SELECT k, v FROM y")
    w.execute("UPDATE t SET v = 9 WHERE k = 1")
    m.execute("COMMIT")
    assert content(w, "s") == multiset([(1, 100), (2, 200), (9, 900), (0, 0), (1, 1)])


def test_an_error_of_a_change_of_a_temporary_table_is_promised_at_serializable(pair: tuple[Any, Any]) -> None:
    m, w = pair
    for winner, lands in (("DELETE FROM t WHERE k = 1", False), ("DELETE FROM t WHERE k = 6", True)):
        fresh(pair)
        m.execute(
            "BEGIN ISOLATION LEVEL SERIALIZABLE; CREATE TEMP TABLE y (k INTEGER PRIMARY KEY); INSERT INTO y VALUES (1); INSERT INTO s VALUES (5, 5)"
        )
        with pytest.raises(lakelite.IntegrityError):
            m.execute("INSERT INTO y SELECT k FROM t WHERE k = 1")
        w.execute(winner)
        if lands:
            m.execute("COMMIT")
        else:
            with pytest.raises(lakelite.TransactionConflict):
                m.execute("COMMIT")
        assert ((5, 5) in w.execute("FROM s").fetchall()) == lands


def test_what_was_undone_with_a_savepoint_is_compared_with_what_it_saw(pair: tuple[Any, Any]) -> None:
    m, w = pair
    for winner, lands in (("UPDATE t SET v = 9 WHERE k = 1", False), ("UPDATE t SET v = 9 WHERE k = 5", True)):
        fresh(pair)
        m.execute("BEGIN; SAVEPOINT a; DELETE FROM x WHERE k = 2; INSERT INTO t SELECT k, 5 FROM x")
        assert m.execute("SELECT t.k, t.v FROM t JOIN x USING (k) WHERE t.k < 5 ORDER BY ALL").fetchall() == [(1, 1), (1, 5)]
        m.execute("ROLLBACK TO a; INSERT INTO s SELECT k, v FROM x WHERE k = 2")
        w.execute(winner)
        if lands:
            m.execute("COMMIT")
        else:
            with pytest.raises(lakelite.TransactionConflict):
                m.execute("COMMIT")
        assert ((2, 20) in w.execute("FROM s").fetchall()) == lands
        assert content(m, "x") == multiset([(1, 10), (2, 20), (11, 110)])
