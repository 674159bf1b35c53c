"""Names are bound once, over several rounds of winners too; what is read without being named; and what a transaction is told of a lost value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from racing import meeting

import lakelite

SWAP = "ALTER TABLE t RENAME v TO tmp; ALTER TABLE t RENAME c TO v; ALTER TABLE t RENAME tmp TO c"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """M and W, on t (c, k, v), s (a, c) and the empty u (x) and z (x)."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as m, lakelite.connect(tmp_path / "lake", autocommit=True) as w:
        w.execute("CREATE TABLE t (c INTEGER, k INTEGER, v INTEGER); INSERT INTO t VALUES (7, 1, 10), (8, 2, 20)")
        w.execute("CREATE TABLE s (a VARCHAR, c INTEGER); CREATE TABLE u (x INTEGER); CREATE TABLE z (x INTEGER)")
        m.execute("SELECT 1")
        yield m, w


def rows(con: Any, sql: str) -> list[tuple[Any, ...]]:
    return sorted(con.execute(sql).fetchall())


# Rounds.


@pytest.mark.parametrize(
    ("mine", "query", "want"),
    [
        ("UPDATE t SET v = 0", "SELECT k, c, v FROM t", [(1, 0, 7), (2, 0, 8)]),
        ("INSERT INTO t VALUES (100, 3, 300)", "SELECT k, c, v FROM t", [(1, 10, 7), (2, 20, 8), (3, 300, 100)]),
    ],
)
def test_what_was_bound_stays_bound_in_the_next_round(pair: tuple[Any, Any], mine: str, query: str, want: list[Any]) -> None:
    m, w = pair
    m.execute(f"BEGIN; {mine}; INSERT INTO z SELECT count(*) FROM u")
    w.execute(SWAP)
    with meeting(lambda: w.execute("INSERT INTO u VALUES (1)")):
        m.execute("COMMIT")
    assert rows(m, query) == want
    assert rows(m, "FROM z") == [(1,)]


@pytest.mark.parametrize("change", ["ALTER TABLE t RENAME v TO w", "ALTER TABLE t ADD COLUMN n INTEGER"])
def test_a_column_that_came_or_was_renamed_in_the_first_round(pair: tuple[Any, Any], change: str) -> None:
    m, w = pair
    m.execute("BEGIN; UPDATE t SET v = 0 WHERE k = 1; INSERT INTO t VALUES (9, 9, 9); INSERT INTO z SELECT count(*) FROM u")
    w.execute(change)
    with meeting(lambda: w.execute("INSERT INTO u VALUES (1)")):
        m.execute("COMMIT")
    assert [row[:3] for row in rows(m, "FROM t")] == [(7, 1, 0), (8, 2, 20), (9, 9, 9)]


# Columns that are read without being named.


@pytest.mark.parametrize(
    "mine",
    [
        "DELETE FROM t WHERE t::VARCHAR LIKE '%NULL%'",
        "INSERT INTO s (a) SELECT a FROM t AS q(a, b)",
        "CREATE TABLE q AS SELECT a FROM t AS q(a, b)",
        "UPDATE t SET v = len(t::VARCHAR)",
        "UPDATE t SET v = (SELECT sum(a) FROM t AS q(a, b, d))",
        "INSERT INTO z SELECT sum(v) FROM t NATURAL JOIN s",
        "INSERT INTO z SELECT count(DISTINCT t) FROM t",
        "INSERT INTO z SELECT len(x::VARCHAR) FROM t AS x",
    ],
)
def test_a_dropped_column_is_never_read_as_null(pair: tuple[Any, Any], mine: str) -> None:
    m, w = pair
    before = rows(w, "SELECT k, v FROM t")
    with meeting(lambda: w.execute("ALTER TABLE t DROP COLUMN c; INSERT INTO t VALUES (3, 30)")), pytest.raises(lakelite.ProgrammingError):
        m.execute(mine)
    assert rows(w, "SELECT k, v FROM t") == [*before, (3, 30)]
    assert rows(w, "FROM z") == rows(w, "FROM s") == []


@pytest.mark.parametrize(
    ("mine", "query", "want"),
    [
        ("UPDATE t SET v = v * 2", "SELECT v FROM t", [(20,), (40,), (60,)]),
        ("INSERT INTO z SELECT count(*) FROM t", "FROM z", [(3,)]),
        ("INSERT INTO s (a) SELECT k FROM t", "SELECT a FROM s", [("1",), ("2",), ("3",)]),
    ],
)
def test_a_dropped_column_that_is_not_read_is_in_nobodys_way(pair: tuple[Any, Any], mine: str, query: str, want: list[Any]) -> None:
    m, w = pair
    with meeting(lambda: w.execute("ALTER TABLE t DROP COLUMN c; INSERT INTO t VALUES (3, 30)")):
        m.execute(mine)
    assert rows(m, query) == want


DROPPED, AGAIN = "ALTER TABLE t DROP v", "BEGIN; ALTER TABLE t DROP v; ALTER TABLE t ADD v INTEGER DEFAULT 5; COMMIT"


@pytest.mark.parametrize(
    ("query", "winner", "refused_at"),
    [
        ("SELECT k, v FROM t", AGAIN, {"serializable", "write serializable"}),
        ("SELECT sum(v) FROM t", AGAIN, {"serializable", "write serializable"}),
        ("SELECT k FROM t", AGAIN, set()),
        ("SELECT k, v FROM t", DROPPED, {"serializable"}),
        ("SELECT k FROM t", DROPPED, set()),
    ],
)
@pytest.mark.parametrize("level", ["serializable", "write serializable", "snapshot"])
def test_what_was_shown_of_a_column_that_is_gone_though_no_row_was_moved(
    pair: tuple[Any, Any], level: str, query: str, winner: str, refused_at: set[str]
) -> None:
    m, w = pair
    m.execute(f"BEGIN ISOLATION LEVEL {level}")
    m.execute(query).fetchall()
    m.execute("INSERT INTO z VALUES (1)")
    w.execute(winner)
    if level in refused_at:
        with pytest.raises(lakelite.TransactionConflict) as caught:
            m.execute("COMMIT")
        assert {c.kind for c in caught.value.conflicts} == {"read changed"}
    else:
        m.execute("COMMIT")
    assert rows(w, "FROM z") == ([] if level in refused_at else [(1,)])


# Beside changes that have everything run again.


@pytest.mark.parametrize("explicit", [False, True])
def test_values_go_to_the_columns_that_were_meant(pair: tuple[Any, Any], explicit: bool) -> None:
    m, w = pair
    begin, end = ("BEGIN; ", "; COMMIT") if explicit else ("", "")
    with meeting(lambda: w.executescript(f"{SWAP}; ALTER TABLE t ALTER k SET DEFAULT 3")):
        m.executescript(f"{begin}UPDATE t SET v = 0{end}")
    assert rows(m, "SELECT k, c, v FROM t") == [(1, 0, 7), (2, 0, 8)]
    with meeting(lambda: w.executescript("ALTER TABLE t ADD n INTEGER; ALTER TABLE t ALTER k SET DEFAULT 4")):
        m.executescript(f"{begin}INSERT INTO t VALUES (1, 2, 3){end}")
    assert (1, 2, 3, None) in rows(m, "FROM t")
    with meeting(lambda: w.executescript("ALTER TABLE t DROP k; ALTER TABLE t ADD k INTEGER")):
        m.executescript(f"{begin}INSERT INTO t (c, k, v) VALUES (5, 6, 7){end}")
    assert rows(m, "SELECT c, k, v FROM t WHERE c = 5") == [(5, 6, 7)]


def test_ones_own_alter_does_not_turn_ones_changes_to_other_columns(pair: tuple[Any, Any]) -> None:
    m, w = pair
    m.execute("BEGIN; ALTER TABLE t ADD n INTEGER; UPDATE t SET v = 0")
    w.execute(SWAP)
    with pytest.raises(lakelite.TransactionConflict, match=r"renamed or\s+dropped"):
        m.execute("COMMIT")
    assert rows(m, "SELECT k, c, v FROM t") == [(1, 10, 7), (2, 20, 8)]


def test_rows_of_a_data_frame_beside_a_new_default(pair: tuple[Any, Any]) -> None:
    m, w = pair
    whole, part = pa.table({"c": [1], "k": [1], "v": [1]}), pa.table({"k": [5]})
    for change, frame, lands in (("SET DEFAULT 4", whole, True), ("SET DEFAULT 5", part, False)):
        m.execute("BEGIN")
        m.append("t", frame)
        w.execute(f"ALTER TABLE t ALTER c {change}")
        if lands:
            m.execute("COMMIT")
        else:
            with pytest.raises(lakelite.TransactionConflict, match="files or DataFrames") as caught:
                m.execute("COMMIT")
            assert caught.value.conflicts[0].kind == "external data"
    assert rows(m, "SELECT k FROM t") == [(1,), (1,), (2,)]


def test_a_renamed_field_inside_of_a_column(pair: tuple[Any, Any]) -> None:
    m, w = pair
    w.execute("CREATE TABLE n (i INTEGER, s STRUCT(a INTEGER, b INTEGER))")
    m.execute("BEGIN; INSERT INTO n VALUES (2, {'a': 10, 'b': 20})")
    w.execute("ALTER TABLE n RENAME s.a TO t")
    with pytest.raises(lakelite.TransactionConflict, match=r"n\.s"):
        m.execute("COMMIT")


def test_it_is_told_that_values_went_nowhere(pair: tuple[Any, Any]) -> None:
    m, w = pair
    m.execute("BEGIN; INSERT INTO s (a, c) VALUES ('x', 2)")
    w.execute("ALTER TABLE s DROP COLUMN c")
    cursor = m.execute("COMMIT")
    assert [text for _, text in cursor.messages] == ["snapshot 6 dropped c: what was written to it is in no table"]
    assert rows(m, "FROM s") == [("x",)]


# Undone statements, and the level snapshot.


@pytest.mark.parametrize(
    ("undone", "winner", "lands"),
    [
        ("UPDATE t SET v = 1", "ALTER TABLE t RENAME v TO w", True),
        ("INSERT INTO t VALUES (1, 2, 3)", "ALTER TABLE t ADD n INTEGER", True),
        ("INSERT INTO t VALUES (1, 2, 3)", "DROP TABLE t", False),
    ],
)
def test_an_undone_statement_that_has_to_run_again(pair: tuple[Any, Any], undone: str, winner: str, lands: bool) -> None:
    m, w = pair
    m.execute(f"BEGIN ISOLATION LEVEL SERIALIZABLE; SAVEPOINT a; {undone}; ROLLBACK TO a; INSERT INTO z VALUES (1)")
    w.execute(winner)
    if lands:
        m.execute("COMMIT")
    else:
        with pytest.raises(lakelite.TransactionConflict):
            m.execute("COMMIT")
    assert rows(m, "FROM z") == ([(1,)] if lands else [])


@pytest.mark.parametrize(
    "define", ["ALTER TABLE t ADD COLUMN n INTEGER", "ALTER TABLE u ADD COLUMN n INTEGER", "CREATE TABLE IF NOT EXISTS u (x INTEGER)"]
)
def test_at_snapshot_an_update_is_not_lost_where_something_has_to_run_again(pair: tuple[Any, Any], define: str) -> None:
    m, w = pair
    m.execute("BEGIN ISOLATION LEVEL SNAPSHOT")
    assert rows(m, "SELECT v FROM t WHERE k = 1") == [(10,)]
    m.execute(f"UPDATE t SET v = 11 WHERE k = 1; {define}")
    w.execute("BEGIN; UPDATE t SET v = 100 WHERE k = 1; INSERT INTO u VALUES (1); CREATE TABLE another (a INTEGER); COMMIT")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        m.execute("COMMIT")
    assert {c.kind for c in caught.value.conflicts} == {"changed first"}
    assert rows(m, "SELECT v FROM t WHERE k = 1") == [(100,)]


def test_at_snapshot_what_was_read_stays_that_of_the_base(pair: tuple[Any, Any]) -> None:
    m, w = pair
    m.execute("BEGIN ISOLATION LEVEL SNAPSHOT; INSERT INTO z SELECT count(*) FROM t; ALTER TABLE u ADD y INTEGER")
    w.execute("INSERT INTO u VALUES (1); INSERT INTO t VALUES (9, 9, 9)")
    with pytest.raises(lakelite.TransactionConflict):
        m.execute("COMMIT")
    assert rows(m, "FROM z") == []


def test_a_conflict_names_the_weakest_level_that_is_needed(pair: tuple[Any, Any]) -> None:
    m, w = pair
    m.execute("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM u; INSERT INTO z VALUES (1)")
    w.execute("INSERT INTO u VALUES (2)")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        m.execute("COMMIT")
    assert caught.value.conflicts[0].accepted_at == "write serializable"
