"""ALTER TABLE against other transactions: what is bound by field id stays right, and the rest is as one after the other. Named cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from racing import flush, meeting

import lakelite
from lakelite.errors import IntegrityError, ProgrammingError, TransactionConflict

START = ("CREATE TABLE t (a INTEGER, v INTEGER)", "CREATE TABLE u (a INTEGER, v INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2)")


@pytest.fixture(params=["inline", "files"])
def pair(tmp_path: Path, request: Any) -> Iterator[tuple[Any, Any]]:
    """M and W."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as m, lakelite.connect(tmp_path / "lake", autocommit=True) as w:
        for con in (m, w):
            con.execute(f"SET inline_rows = {1000 if request.param == 'inline' else 0}")
        m.executescript("; ".join(START))
        w.execute("SELECT 1")
        yield m, w


def rows(con: Any, table: str = "t") -> tuple[list[str], list[tuple[Any, ...]]]:
    cursor = con.execute(f"SELECT * FROM {table} ORDER BY ALL")
    return [d[0] for d in cursor.description], cursor.fetchall()


def meet(pair: tuple[Any, Any], theirs: str, mine: str) -> None:
    """Runs `mine`, in autocommit if it is one statement, and what the winner does (statements with ; between) before it lands."""
    m, w = pair
    with meeting(lambda: w.executescript(theirs)):
        if ";" in mine:
            m.executescript(f"BEGIN; {mine}; COMMIT")
        else:
            m.execute(mine)


BY_ID = [
    ("ALTER TABLE t ADD c INTEGER DEFAULT 4", "INSERT INTO t VALUES (3, 3)", ["a", "v", "c"], [(1, 1, 4), (2, 2, 4), (3, 3, 4)]),
    ("ALTER TABLE t ADD c INTEGER", "INSERT INTO t VALUES (3, 3)", ["a", "v", "c"], [(1, 1, None), (2, 2, None), (3, 3, None)]),
    ("ALTER TABLE t ADD c INTEGER DEFAULT 4; UPDATE t SET c = 9 WHERE a = 1", "UPDATE t SET v = v + 1", ["a", "v", "c"], [(1, 2, 9), (2, 3, 4)]),
    (
        "ALTER TABLE t ADD c INTEGER DEFAULT 4; UPDATE t SET c = 9 WHERE a = 1",
        "UPDATE t SET v = (SELECT max(v) FROM t)",
        ["a", "v", "c"],
        [(1, 2, 9), (2, 2, 4)],
    ),
    ("ALTER TABLE t RENAME v TO w; INSERT INTO t VALUES (7, 7)", "UPDATE t SET v = v + 1 WHERE v <> 2", ["a", "w"], [(1, 2), (2, 2), (7, 8)]),
    ("ALTER TABLE t RENAME v TO w; INSERT INTO t VALUES (7, 7)", "DELETE FROM t WHERE v = (SELECT max(v) FROM t)", ["a", "w"], [(1, 1), (2, 2)]),
    ("ALTER TABLE t RENAME v TO x; ALTER TABLE t RENAME a TO v", "DELETE FROM t WHERE v = 2 AND a = 2", ["v", "x"], [(1, 1)]),
    ("ALTER TABLE t ALTER v TYPE BIGINT; INSERT INTO t VALUES (5, 5000000000)", "UPDATE t SET v = v + 1", ["a", "v"], [(1, 2), (2, 3), (5, 5000000001)]),
    ("ALTER TABLE t DROP v", "INSERT INTO t VALUES (3, 3)", ["a"], [(1,), (2,), (3,)]),
    ("ALTER TABLE t DROP v; INSERT INTO t VALUES (9)", "UPDATE t SET v = 7 WHERE a > 1", ["a"], [(1,), (2,), (9,)]),
    ("ALTER TABLE t DROP v; INSERT INTO t VALUES (9)", "UPDATE t SET a = a + 10 WHERE a > 1", ["a"], [(1,), (12,), (19,)]),
    ("ALTER TABLE t DROP v", "DELETE FROM t WHERE v = 1", ["a"], [(2,)]),
    ("ALTER TABLE t DROP v", "TRUNCATE t", ["a"], []),
    ("ALTER TABLE t DROP v; ALTER TABLE t ADD v VARCHAR DEFAULT 'q'", "INSERT INTO t VALUES (3, 3)", ["a", "v"], [(1, "q"), (2, "q"), (3, "3")]),
    ("ALTER TABLE t ALTER v TYPE VARCHAR USING 'x' || v", "INSERT INTO t VALUES (3, 3)", ["a", "v"], [(1, "x1"), (2, "x2"), (3, "3")]),
    ("ALTER TABLE t ALTER v TYPE VARCHAR", "DELETE FROM t WHERE v > '1'", ["a", "v"], [(1, "1")]),
    ("ALTER TABLE t ALTER v SET DEFAULT 7", "INSERT INTO t (a) VALUES (3)", ["a", "v"], [(1, 1), (2, 2), (3, 7)]),
    ("ALTER TABLE t ADD c INTEGER; ALTER TABLE t ALTER c SET DEFAULT 8", "INSERT INTO t (a) VALUES (3)", ["a", "v", "c"], [(1, 1, None), (2, 2, None), (3, None, 8)]),
    ("ALTER TABLE t ADD c INTEGER", "ALTER TABLE t ADD d INTEGER DEFAULT 3", ["a", "v", "c", "d"], [(1, 1, None, 3), (2, 2, None, 3)]),
    ("INSERT INTO t VALUES (3, 3)", "ALTER TABLE t ALTER v TYPE VARCHAR", ["a", "v"], [(1, "1"), (2, "2"), (3, "3")]),
    ("UPDATE t SET v = 8 WHERE a = 1", "ALTER TABLE t ALTER v TYPE VARCHAR USING v || '!'", ["a", "v"], [(1, "8!"), (2, "2!")]),
    ("DELETE FROM t WHERE a = 1", "ALTER TABLE t ADD r DOUBLE DEFAULT random() * 0", ["a", "v", "r"], [(2, 2, 0.0)]),
    ("ALTER TABLE t ADD c INTEGER DEFAULT 4; INSERT INTO t VALUES (5, 5, 5)", "INSERT INTO t SELECT a, v + 10 FROM t", ["a", "v", "c"],
     [(1, 1, 4), (1, 11, 4), (2, 2, 4), (2, 12, 4), (5, 5, 5), (5, 15, 4)]),
    ("ALTER TABLE t DROP v", "ALTER TABLE t ADD COLUMN IF NOT EXISTS v INTEGER", ["a", "v"], [(1, None), (2, None)]),
    ("UPDATE t SET a = 3 WHERE a = 1; ALTER TABLE t DROP v", "ALTER TABLE t ADD COLUMN IF NOT EXISTS v INTEGER DEFAULT 5", ["a", "v"], [(2, 5), (3, 5)]),
    ("ALTER TABLE t RENAME v TO w", "ALTER TABLE t ADD COLUMN IF NOT EXISTS v INTEGER", ["a", "w", "v"], [(1, 1, None), (2, 2, None)]),
    ("INSERT INTO t VALUES (3, 3)", "ALTER TABLE t ADD COLUMN IF NOT EXISTS v DATE", ["a", "v"], [(1, 1), (2, 2), (3, 3)]),
    ("ALTER TABLE t ADD c INTEGER; INSERT INTO t VALUES (3, 3, 3)", "ALTER TABLE t DROP COLUMN IF EXISTS c", ["a", "v"], [(1, 1), (2, 2), (3, 3)]),
    ("CREATE OR REPLACE TABLE t AS SELECT 7 AS a", "ALTER TABLE t ADD COLUMN IF NOT EXISTS v INTEGER DEFAULT 5", ["a", "v"], [(7, 5)]),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "mine", "names", "want"), BY_ID)
def test_it_lands(pair: tuple[Any, Any], theirs: str, mine: str, names: list[str], want: list[tuple[Any, ...]]) -> None:
    meet(pair, theirs, mine)
    assert rows(pair[0]) == rows(pair[1]) == (names, want)


@pytest.mark.parametrize("pair", ["inline"], indirect=True)
@pytest.mark.parametrize(("theirs", "mine", "names", "want"), BY_ID)
def test_it_lands_as_one_of_several_statements(pair: tuple[Any, Any], theirs: str, mine: str, names: list[str], want: list[tuple[Any, ...]]) -> None:
    meet(pair, theirs, f"INSERT INTO u VALUES (1, 1); {mine}")
    assert rows(pair[1]) == (names, want)
    assert rows(pair[1], "u")[1] == [(1, 1)]


@pytest.mark.parametrize(
    ("theirs", "mine", "kind", "words"),
    [
        ("ALTER TABLE t ALTER v SET NOT NULL", "INSERT INTO t (a) VALUES (3)", IntegrityError, "t.v"),
        ("INSERT INTO t (a) VALUES (3)", "ALTER TABLE t ALTER v SET NOT NULL", IntegrityError, "t.v"),
        ("DELETE FROM t; ALTER TABLE t ADD c INTEGER NOT NULL", "INSERT INTO t VALUES (3, 3)", ProgrammingError, "3 columns"),
        ("DELETE FROM t; ALTER TABLE t ADD c INTEGER NOT NULL", "INSERT INTO t (a) VALUES (3)", IntegrityError, "t.c"),
        ("ALTER TABLE t ADD c INTEGER", "ALTER TABLE t RENAME v TO c", ProgrammingError, '"c" already exists'),
        ("ALTER TABLE t ADD c INTEGER", "ALTER TABLE t ADD c INTEGER DEFAULT 3", ProgrammingError, '"c" already exists'),
        ("ALTER TABLE t RENAME TO x", "ALTER TABLE t RENAME TO y", ProgrammingError, '"t" does not exist'),
        ("CREATE TABLE y (a INTEGER)", "ALTER TABLE t RENAME TO y", ProgrammingError, '"y" already exists'),
        ("ALTER TABLE t RENAME TO y", "CREATE TABLE y (a INTEGER)", ProgrammingError, '"y" already exists'),
        ("ALTER TABLE t DROP v", "ALTER TABLE t DROP v", ProgrammingError, '"v"'),
        ("ALTER TABLE t DROP v", "ALTER TABLE t DROP a", ProgrammingError, "one column"),
        ("ALTER TABLE t RENAME v TO w", "ALTER TABLE t ALTER v TYPE BIGINT", ProgrammingError, '"v"'),
        ("ALTER TABLE t DROP v; INSERT INTO t VALUES (9)", "DELETE FROM t WHERE v = 1", ProgrammingError, 'column "v" was dropped by snapshot'),
        ("ALTER TABLE t ALTER v TYPE DATE USING DATE '2020-01-01'", "INSERT INTO t VALUES (3, 3)", lakelite.Error, "DATE"),
    ],
)
def test_the_loser_has_its_ordinary_error(pair: tuple[Any, Any], theirs: str, mine: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as error:
        meet(pair, theirs, mine)
    assert words in str(error.value)
    m, w = pair
    tables = w.execute("SHOW TABLES").fetchall()
    assert m.execute("SHOW TABLES").fetchall() == tables
    assert [rows(m, name) for (name,) in tables] == [rows(w, name) for (name,) in tables]


def test_a_transaction_that_reads_a_column_that_is_gone_conflicts_only_where_rows_are_others(pair: tuple[Any, Any]) -> None:
    m, w = pair
    m.execute("BEGIN")
    m.execute("DELETE FROM t WHERE v = 1")
    w.execute("ALTER TABLE t DROP v")
    m.execute("COMMIT")
    assert rows(w) == (["a"], [(2,)])
    w.executescript("ALTER TABLE t ADD v INTEGER DEFAULT 5")
    m.execute("BEGIN")
    m.execute("DELETE FROM t WHERE v = 5")
    w.executescript("ALTER TABLE t DROP v; INSERT INTO t VALUES (4)")
    with pytest.raises(TransactionConflict, match='column "v" was dropped'):
        m.execute("COMMIT")
    assert rows(w) == (["a"], [(2,), (4,)])


def test_what_was_shown_is_the_same_under_its_old_names(pair: tuple[Any, Any]) -> None:
    m, w = pair
    m.execute("BEGIN")
    assert m.execute("SELECT * FROM t ORDER BY v").fetchall() == [(1, 1), (2, 2)]
    m.execute("INSERT INTO u VALUES (1, 1)")
    w.executescript("ALTER TABLE t ADD c INTEGER DEFAULT 4; ALTER TABLE t RENAME v TO w; INSERT INTO t VALUES (3, 3, 3)")
    m.execute("COMMIT")
    m.execute("BEGIN")
    m.execute("SELECT * FROM t ORDER BY w").fetchall()
    m.execute("INSERT INTO u VALUES (2, 2)")
    w.executescript("ALTER TABLE t RENAME w TO v; DELETE FROM t WHERE a = 3")
    with pytest.raises(TransactionConflict):
        m.execute("COMMIT")
    assert rows(w, "u")[1] == [(1, 1)]


def test_rename_table_against_a_stale_writer_and_a_new_table_of_the_name(pair: tuple[Any, Any]) -> None:
    meet(pair, "ALTER TABLE t RENAME TO x; CREATE TABLE t (z INTEGER)", "INSERT INTO t VALUES (8, 8)")
    assert rows(pair[1], "x") == (["a", "v"], [(1, 1), (2, 2), (8, 8)])
    assert rows(pair[1]) == (["z"], [])
    meet(pair, "ALTER TABLE x RENAME TO y", "CREATE OR REPLACE TABLE x (q INTEGER)")
    assert rows(pair[1], "x") == (["q"], [])
    assert rows(pair[1], "y")[1] == [(1, 1), (2, 2), (8, 8)]


def test_flush_against_alter_both_ways(pair: tuple[Any, Any], tmp_path: Path) -> None:
    m, w = pair
    m.execute("SET inline_rows = 1000")
    m.execute("INSERT INTO t VALUES (3, 3)")
    with meeting(lambda: w.executescript("ALTER TABLE t ADD c INTEGER DEFAULT 4; ALTER TABLE t DROP v; ALTER TABLE t RENAME a TO k")):
        flush(m, "t")
    assert rows(w) == (["k", "c"], [(1, 4), (2, 4), (3, 4)])
    m.execute("INSERT INTO t VALUES (5, 5)")
    with meeting(lambda: flush(w, "t")):
        m.execute("ALTER TABLE t ALTER c TYPE VARCHAR USING c || '!'")
    assert rows(w) == (["k", "c"], [(1, "4!"), (2, "4!"), (3, "4!"), (5, "5!")])


@contextmanager
def counted(con: Any, table: str) -> Iterator[Callable[[], int]]:
    """How many fragments the block wrote."""

    def fragments() -> int:
        return int(con.execute("SELECT max(fragment_id) FROM lake.fragments WHERE table_name = ?", [table]).fetchall()[0][0])

    before = fragments()
    yield lambda: fragments() - before


def test_most_changes_write_no_data(pair: tuple[Any, Any]) -> None:
    m, _ = pair
    with counted(m, "t") as written:
        for change in (
            "ADD c INTEGER DEFAULT 4",
            "ADD d DATE",
            "RENAME c TO cc",
            "DROP d",
            "ALTER v TYPE BIGINT",
            "ALTER v SET DEFAULT 3",
            "ALTER v SET NOT NULL",
            "ALTER v DROP NOT NULL",
        ):
            m.execute(f"ALTER TABLE t {change}")
        assert written() == 0
        m.execute("ALTER TABLE t ALTER v TYPE VARCHAR")
        assert written() == 1
    assert rows(m) == (["a", "v", "cc"], [(1, "1", 4), (2, "2", 4)])
