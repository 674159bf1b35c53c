"""RETURNING, UPDATE … FROM and DELETE … USING against every kind of winner: what lands is a serial execution, and what was handed out is true of it.

The model is plain DuckDB, on which the winner runs and then M. In autocommit M's rows are those of that run. In an explicit transaction they
were handed out before: at `serializable` they have to be the same rows, by default the same with or without a blind append of the winner's,
else M is a conflict, and only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from oracle import Oracle, Rows, multiset
from racing import flush, meeting

import lakelite

SERIALIZABLE, DEFAULT, SNAPSHOT = "serializable", "write serializable", "snapshot"
LEVELS = (SERIALIZABLE, DEFAULT)
Connect = Callable[..., Any]
SETUP = (
    "CREATE TABLE t (k INTEGER, v INTEGER)",
    "CREATE TABLE s (k INTEGER, v INTEGER)",
    "INSERT INTO t SELECT range, range FROM range(8)",
    "INSERT INTO s VALUES (1, 100), (2, 200), (9, 900)",
)
MINE = (
    "UPDATE t SET v = v + 1 WHERE k < 3 RETURNING k, v",
    "UPDATE t SET v = t.v + s.v FROM s WHERE t.k = s.k RETURNING *",
    "UPDATE t SET v = t.v + s.v FROM s WHERE t.k = s.k",
    "UPDATE t SET v = (SELECT max(v) FROM s) WHERE k < 3 RETURNING v, k",
    "DELETE FROM t WHERE v < 3 RETURNING k * 10",
    "DELETE FROM t USING s WHERE t.k = s.k RETURNING t",
    "DELETE FROM t USING s, t AS o WHERE t.k = s.k AND o.k = t.k",
    "DELETE FROM t RETURNING *",
    "INSERT INTO t VALUES (50, 51), (52, 53) RETURNING v",
    "INSERT INTO t SELECT k + 20, v FROM s RETURNING *",
)
WINNERS = (
    "INSERT INTO t VALUES (-1, -1)",
    "INSERT INTO t SELECT -2, count(*) FROM s",
    "INSERT INTO t VALUES (30, 30)",
    "INSERT INTO s VALUES (3, 300)",
    "INSERT INTO s SELECT 4, count(*) FROM t",
    "UPDATE t SET v = v + 1000 WHERE k = 1",
    "UPDATE t SET v = v + 1000 WHERE k = 7",
    "UPDATE s SET v = v + 1 WHERE k = 2",
    "DELETE FROM t WHERE k = 1",
    "DELETE FROM t WHERE k = 6",
    "DELETE FROM s WHERE k = 2",
    "DELETE FROM s WHERE k = 9",
    "TRUNCATE t",
    "INSERT OVERWRITE t SELECT 2, 2",
    "INSERT OVERWRITE t SELECT k, v FROM t",
    "OPTIMIZE t",
    "OPTIMIZE s",
)
BLIND = ("INSERT INTO t VALUES (-1, -1)", "INSERT INTO t VALUES (30, 30)", "INSERT INTO s VALUES (3, 300)")


STORAGES = ("inline", "parquet", "vectors")


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    """Whether rows lie inline, in files, or in files with deletion vectors."""
    return str(request.param)


@pytest.fixture
def connect(tmp_path: Path, storage: str) -> Iterator[Connect]:
    """Opens connections to one lake."""
    made: list[Any] = []

    def open_one(**options: Any) -> Any:
        con = lakelite.connect(tmp_path / "lake", **{"autocommit": True, **options})
        made.append(con)
        con.execute("SET overwrite_append = keep")
        if storage != "inline":
            con.execute("SET inline_rows = 0")
        return con

    con = open_one()
    con.execute("; ".join(SETUP))
    if storage == "vectors":
        con.execute("INSERT INTO t SELECT 40 + range, 1 FROM range(2); DELETE FROM t WHERE k >= 40")
        con.execute("UPDATE t SET v = 4 WHERE k = 4; UPDATE s SET v = v WHERE k = 9")
    yield open_one
    for con in made:
        con.close()


def fresh(con: Any) -> None:
    """The tables as they were made."""
    con.execute("INSERT OVERWRITE t SELECT range, range FROM range(9); INSERT OVERWRITE s VALUES (1, 100), (2, 200), (9, 900)")
    con.execute("DELETE FROM t WHERE k = 8")


def model(*before: str) -> Oracle:
    oracle = Oracle()
    for statement in (*SETUP, *before):
        if not statement.startswith("OPTIMIZE"):
            oracle.run(statement)
    return oracle


def share(mine: str, storage: str) -> list[tuple[str, str]]:
    """The winners that M meets on a storage, each with a level: over the storages all of them, at the levels in turn."""
    first = MINE.index(mine) + STORAGES.index(storage)
    return [(winner, LEVELS[(first + i // 3) % 2]) for i, winner in enumerate(WINNERS) if (i + first) % 3 == 0]


def returned(oracle: Oracle, statement: str) -> list[tuple[Any, ...]]:
    """Runs M on the model; its rows, or how many it changed as the only one."""
    return [tuple(row) for row in oracle.duck.execute(statement).fetchall()]


def given(cursor: Any) -> list[tuple[Any, ...]]:
    return [(cursor.rowcount,)] if cursor.description is None else cursor.fetchall()


def agrees_in_autocommit(m: Any, w: Any, mine: str, winner: str) -> None:
    """M, which the winner overtakes, gives what it gives behind the winner."""
    fresh(w)
    oracle = model(winner)
    with meeting(lambda: w.execute(winner)):
        cursor = m.execute(mine)
    rows = given(cursor)
    assert multiset(rows) == multiset(returned(oracle, mine)), winner
    if "RETURNING" in mine:
        assert cursor.rowcount == len(rows), winner
    same_tables(w, oracle.contents())


def agrees_in_a_transaction(m: Any, w: Any, mine: str, winner: str, level: str) -> None:
    """M commits behind the winner where what it was given is promised and true, and only then."""
    fresh(w)
    m.execute(f"BEGIN ISOLATION LEVEL {level}")
    handed_out = multiset(given(m.execute(mine)))
    w.execute(winner)
    oracle = model(winner)
    without = {table: oracle.content(table) for table in ("t", "s")}
    promised = [multiset(returned(oracle, mine))]
    if level == DEFAULT and (winner in BLIND or "RETURNING" not in mine):
        promised.append(handed_out)
    told = {row[2] for row in m.execute("EXPLAIN COMMIT").fetchall()}
    kinds = set()
    try:
        m.execute("COMMIT")
    except lakelite.TransactionConflict as error:
        kinds = {conflict.kind for conflict in error.conflicts}
    assert (not kinds) == (handed_out in promised), winner
    assert kinds <= {"read changed", "row count changed"}
    assert told <= {"conflict" if kinds else "commit"}, winner
    same_tables(w, without if kinds else oracle.contents())


def same_tables(con: Any, expected: Mapping[str, Rows]) -> None:
    for table in ("t", "s"):
        assert multiset(con.execute(f"FROM {table}").fetchall()) == expected[table]


@pytest.mark.parametrize("mine", MINE)
def test_in_autocommit_the_rows_are_those_of_what_landed(connect: Connect, storage: str, mine: str) -> None:
    m, w = connect(), connect()
    for winner, level in share(mine, storage):
        m.isolation = level
        agrees_in_autocommit(m, w, mine, winner)


@pytest.mark.parametrize("mine", MINE)
def test_what_was_handed_out_decides(connect: Connect, storage: str, mine: str) -> None:
    m, w = connect(), connect()
    for winner, level in share(mine, storage):
        agrees_in_a_transaction(m, w, mine, winner, level)


@pytest.mark.parametrize("mine", ["UPDATE t SET v = v + 1 WHERE k < 3 RETURNING k, v", "DELETE FROM t WHERE k < 3 RETURNING k, v"])
def test_at_snapshot_the_rows_are_those_of_what_landed_too(connect: Connect, mine: str) -> None:
    """New rows of winners are left alone; where a row of M's is gone, autocommit runs it again on the head."""
    m, w = connect(isolation=SNAPSHOT), connect()
    for winner, rows in (
        ("INSERT INTO t VALUES (-1, -1)", [0, 1, 2]),
        ("DELETE FROM t WHERE k = 1", [0, 2]),
        ("DELETE FROM t WHERE k = 6", [0, 1, 2]),
        ("OPTIMIZE t", [0, 1, 2]),
    ):
        fresh(w)
        with meeting(lambda winner=winner: w.execute(winner)):
            cursor = m.execute(mine)
        assert sorted(row[0] for row in cursor.fetchall()) == rows, winner
        assert cursor.rowcount == len(rows)
        left = [k for k in range(8) if (k >= 3 or mine.startswith("UPDATE")) and winner != f"DELETE FROM t WHERE k = {k}"]
        left += [-1] if winner.startswith("INSERT") else []
        assert sorted(row[0] for row in w.execute("SELECT k FROM t").fetchall()) == sorted(left), winner


def test_several_winners_and_one_that_lands_while_the_first_is_resolved(connect: Connect) -> None:
    m, w = connect(), connect()
    wins = ["INSERT INTO t VALUES (-1, 0)", "UPDATE t SET v = 70 WHERE k = 1", "DELETE FROM t WHERE k = 0"]
    with meeting(*(lambda win=win: w.execute(win) for win in wins)):
        cursor = m.execute("UPDATE t SET v = v + o.n FROM (SELECT 1 AS n) o WHERE k < 2 RETURNING k, v")
    assert sorted(cursor.fetchall()) == [(-1, 1), (1, 71)]
    with meeting(lambda: w.execute("UPDATE t SET v = 80 WHERE k = 1; INSERT INTO t VALUES (-2, 0); DELETE FROM t WHERE k = -1")):
        cursor = m.execute("UPDATE t SET v = v + 1 WHERE k < 2 RETURNING k, v")
    assert sorted(cursor.fetchall()) == [(-2, 1), (1, 81)]
    w.execute("UPDATE t SET k = -1, v = 1 WHERE k = -2")
    m.execute("SET reevaluate_locked_rows = 1")
    with meeting(lambda: w.execute("UPDATE t SET v = 70 WHERE k = 1"), lambda: w.execute("UPDATE t SET v = 75 WHERE k = 1")):
        assert m.execute("UPDATE t SET v = v + 1 WHERE k = 1 RETURNING v").fetchall() == [(76,)]
    flush(w, "t")
    m.execute("BEGIN")
    handed_out = m.execute("DELETE FROM t USING s WHERE t.k = s.k + 1 RETURNING t.k").fetchall()
    for win in ("INSERT INTO t VALUES (-3, 3)", "OPTIMIZE t", "INSERT INTO s VALUES (-4, 4)", "DELETE FROM t WHERE k = 7"):
        w.execute(win)
    m.execute("COMMIT")
    assert sorted(handed_out) == [(2,), (3,)]
    left = sorted(w.execute("SELECT k FROM t").fetchall())  # the row -3, which came and matches by now, is deleted too: M is the last one
    assert left == [(-1,), (1,), (4,), (5,), (6,)]


def test_rows_of_a_blind_append_that_another_winner_changed_do_not_count(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN")
    assert len(m.execute("UPDATE t SET v = v + 1 WHERE k < 2 RETURNING k").fetchall()) == 2
    w.execute("INSERT INTO t VALUES (-1, 0)")
    w.execute("UPDATE t SET v = 5 WHERE k = -1")
    m.execute("COMMIT")
    assert sorted(w.execute("FROM t WHERE k < 2").fetchall()) == [(-1, 6), (0, 1), (1, 2)]


@pytest.mark.parametrize("storage", ["vectors"], indirect=True)
@pytest.mark.parametrize("winner", [None, "INSERT INTO t VALUES (-1, 0)", "INSERT INTO t SELECT -1, count(*) FROM s", "DELETE FROM t WHERE k = 1"])
@pytest.mark.parametrize("level", [SERIALIZABLE, DEFAULT, SNAPSHOT])
@pytest.mark.parametrize("mine", ["UPDATE t SET v = 0 WHERE k < 2 RETURNING k", "DELETE FROM t USING s WHERE t.k = s.k OR t.k < 0 RETURNING t.k"])
def test_what_a_rollback_to_took_back_was_handed_out_all_the_same(connect: Connect, level: str, mine: str, winner: str | None) -> None:
    m, w = connect(), connect()
    m.execute(f"BEGIN ISOLATION LEVEL {level}; INSERT INTO s VALUES (50, 50); SAVEPOINT a")
    m.execute(mine).fetchall()
    m.execute("ROLLBACK TO a")
    if winner is not None:
        w.execute(winner)
    is_promised = {SERIALIZABLE: winner is not None, DEFAULT: winner not in (None, "INSERT INTO t VALUES (-1, 0)"), SNAPSHOT: False}
    if is_promised[level]:
        with pytest.raises(lakelite.TransactionConflict):
            m.execute("COMMIT")
    else:
        m.execute("COMMIT")
        assert (50, 50) in w.execute("FROM s").fetchall()
    assert (1, 0) not in w.execute("FROM t").fetchall()


@pytest.mark.parametrize("storage", ["vectors"], indirect=True)
@pytest.mark.parametrize("level", [SERIALIZABLE, DEFAULT])
def test_a_later_statement_sees_what_a_returning_one_wrote(connect: Connect, level: str) -> None:
    """M writes, changes that with RETURNING, and changes it again; a winner elsewhere in the table is no conflict."""
    m, w = connect(), connect()
    m.execute(f"BEGIN ISOLATION LEVEL {level}")
    m.execute("INSERT INTO t VALUES (60, 1)")
    assert m.execute("UPDATE t SET v = v + 1 WHERE k >= 60 RETURNING v").fetchall() == [(2,)]
    assert sorted(m.execute("DELETE FROM t WHERE v = 2 RETURNING k").fetchall()) == [(2,), (60,)]
    w.execute("UPDATE t SET v = 44 WHERE k = 4")
    m.execute("COMMIT")
    assert sorted(w.execute("FROM t").fetchall()) == [(0, 0), (1, 1), (3, 3), (4, 44), (5, 5), (6, 6), (7, 7)]


def test_32_an_append_that_read_is_no_blind_one(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN")
    assert len(m.execute("UPDATE s SET v = v + 1 RETURNING *").fetchall()) == 3
    w.execute("INSERT INTO s SELECT 2, count(*) FROM t")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        m.execute("COMMIT")
    assert caught.value.conflicts[0].kind == "read changed"
    assert sorted(w.execute("FROM s").fetchall()) == [(1, 100), (2, 8), (2, 200), (9, 900)]


@pytest.mark.parametrize("storage", ["vectors"], indirect=True)
def test_24_a_statement_that_failed_and_would_succeed_now(connect: Connect) -> None:
    """The error of a RETURNING is handed out, as any."""
    for level in (SERIALIZABLE, DEFAULT):
        m, w = connect(), connect()
        fresh(w)
        w.execute("INSERT INTO t VALUES (70, 0)")
        m.execute(f"BEGIN ISOLATION LEVEL {level}; INSERT INTO s VALUES (70, 70)")
        with pytest.raises(lakelite.Error, match="no zero"):
            m.execute("UPDATE t SET k = k RETURNING CASE WHEN v = 0 THEN error('no zero') END")
        w.execute("DELETE FROM t WHERE v = 0")
        if level == SERIALIZABLE:
            with pytest.raises(lakelite.TransactionConflict) as caught:
                m.execute("COMMIT")
            assert caught.value.conflicts[0].kind == "error changed"
        else:
            m.execute("COMMIT")
            assert (70, 70) in w.execute("FROM s").fetchall()


@pytest.mark.parametrize("storage", ["vectors"], indirect=True)
@pytest.mark.parametrize(
    "winner",
    [
        "ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 7",
        "ALTER TABLE t RENAME v TO w",
        "ALTER TABLE t RENAME TO renamed",
        "ALTER TABLE t ALTER v TYPE BIGINT",
    ],
)
def test_names_stay_bound_beside_a_change_of_columns(connect: Connect, winner: str) -> None:
    m, w = connect(), connect()
    for number, mine in enumerate(MINE[::2]):
        expected = multiset(returned(model(), mine))
        for explicit in (False, True):
            w.execute(
                "DROP TABLE IF EXISTS renamed; CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER); CREATE OR REPLACE TABLE s (k INTEGER, v INTEGER)"
            )
            fresh(w)
            if explicit:
                m.execute("BEGIN")
                rows = given(m.execute(mine))
                w.execute(winner)
                m.execute("COMMIT")
            else:
                with meeting(lambda: w.execute(winner)):
                    cursor = m.execute(mine)
                rows = given(cursor)
                assert cursor.description is None or len(cursor.description) == len(rows[0])
            assert multiset(rows) == expected, (number, explicit)


@pytest.mark.parametrize("storage", ["vectors"], indirect=True)
def test_a_dropped_column_that_returning_reads(connect: Connect) -> None:
    m, w = connect(), connect()
    drop = "ALTER TABLE t DROP COLUMN v"
    with meeting(lambda: w.execute(f"{drop}; INSERT INTO t VALUES (0)")), pytest.raises(lakelite.ProgrammingError, match="was dropped by snapshot"):
        m.execute("DELETE FROM t WHERE k = 0 RETURNING *")
    with meeting(lambda: w.execute("INSERT INTO t VALUES (0)")):
        assert m.execute("DELETE FROM t WHERE k = 0 RETURNING *").fetchall() == [(0,), (0,), (0,)]
    w.execute("ALTER TABLE t ADD COLUMN v INTEGER DEFAULT 1")
    m.execute("BEGIN")
    assert m.execute("DELETE FROM t WHERE k = 1 RETURNING k, v").fetchall() == [(1, 1)]
    w.execute(drop)
    w.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(lakelite.TransactionConflict, match="dropped"):
        m.execute("COMMIT")


@pytest.mark.parametrize("storage", ["vectors"], indirect=True)
def test_a_default_that_a_winner_changes(connect: Connect) -> None:
    """What an INSERT returned is something else with another default; with the same one it runs again and stands."""
    m, w = connect(), connect()
    for level in (SERIALIZABLE, DEFAULT):
        w.execute("ALTER TABLE t ALTER v DROP DEFAULT")
        with meeting(lambda: w.execute("ALTER TABLE t ALTER v SET DEFAULT 9")):
            assert m.execute("INSERT INTO t (k) VALUES (80) RETURNING *").fetchall() == [(80, 9)]
        m.execute(f"BEGIN ISOLATION LEVEL {level}")
        assert m.execute("INSERT INTO t (k) VALUES (81) RETURNING *").fetchall() == [(81, 9)]
        w.execute("ALTER TABLE t ALTER v SET DEFAULT 10")
        with pytest.raises(lakelite.TransactionConflict, match="its rows were shown to you"):
            m.execute("COMMIT")
        m.execute(f"BEGIN ISOLATION LEVEL {level}")
        assert m.execute("INSERT INTO t (v) VALUES (82) RETURNING v").fetchall() == [(82,)]
        w.execute("ALTER TABLE t ALTER v SET DEFAULT 11")
        m.execute("COMMIT")


@pytest.mark.parametrize("storage", ["vectors"], indirect=True)
@pytest.mark.parametrize("mine", MINE)
def test_a_table_that_a_winner_drops(connect: Connect, mine: str) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN")
    given(m.execute(mine))
    with meeting(lambda: w.execute("DROP TABLE t")), pytest.raises(lakelite.TransactionConflict, match="dropped"):
        m.execute("COMMIT")
    w.execute(SETUP[0])
    with meeting(lambda: w.execute("DROP TABLE t")), pytest.raises(lakelite.ProgrammingError, match="dropped"):
        m.execute(mine)


def test_a_superseded_append_tells_of_the_rows_that_it_wrote(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("SET overwrite_append = supersede")
    with meeting(lambda: w.execute("INSERT OVERWRITE t SELECT 1, 1")):
        cursor = m.execute("INSERT INTO t VALUES (90, 1) RETURNING k")
    assert cursor.fetchall() == [(90,)]
    assert "superseded" in str(cursor.messages)
    assert w.execute("FROM t").fetchall() == [(1, 1)]


def test_counters_by_update_returning_never_give_a_number_twice(connect: Connect) -> None:
    first, second = connect(), connect()
    first.execute("CREATE TABLE counter (n BIGINT); INSERT INTO counter VALUES (0)")
    take = "UPDATE counter SET n = n + 1 RETURNING n"
    taken: list[int] = []
    for one, other in ((first, second), (second, first)) * 3:
        with meeting(lambda other=other: taken.append(other.execute(take).fetchone()[0])):
            taken.append(one.execute(take).fetchone()[0])
    assert sorted(taken) == list(range(1, 13))
