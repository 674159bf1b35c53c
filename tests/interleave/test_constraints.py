"""Constraints between transactions (resolver.md, sections 3 and 4): what commits equals one statement after the other, or is an IntegrityError."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oracle import Oracle, multiset
from racing import flush, meeting

import lakelite
from lakelite.errors import Error, IntegrityError, ProgrammingError, TransactionConflict

Connect = Callable[..., Any]
Rows = list[tuple[Any, ...]]
TABLE = "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER CHECK (v < 100))"
FILLED = "INSERT INTO t SELECT range, range FROM range(6)"


def rows(con: Any) -> Rows:
    return sorted(con.execute("FROM t").fetchall())


MINE = [
    "INSERT INTO t VALUES (10, 1)",
    "INSERT INTO t VALUES (3, 1)",
    "INSERT INTO t VALUES (20, 1), (21, 2)",
    "INSERT INTO t SELECT max(k) + 1, 0 FROM t",
    "UPDATE t SET k = k + 1",
    "UPDATE t SET k = k + 10 WHERE k < 3",
    "UPDATE t SET v = v + 50",
    "UPDATE t SET v = v + 1 WHERE k = 1",
    "DELETE FROM t",
    "INSERT OVERWRITE t SELECT 10, 1",
    "INSERT INTO t VALUES (10, 1), (11, 1) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (1, 1), (10, 40), (20, 1) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v",
    "INSERT OR REPLACE INTO t SELECT k + 10, 1 FROM t",
    "ALTER TABLE t ADD CONSTRAINT small CHECK (k < 15)",
    "ALTER TABLE t ADD UNIQUE (v)",
]
THEIRS = [
    "INSERT INTO t VALUES (10, 1)",
    "INSERT INTO t SELECT k + 10, v FROM t",
    "UPDATE t SET v = 60 WHERE k = 1",
    "UPDATE t SET k = 10 WHERE k = 3",
    "DELETE FROM t WHERE k = 3",
    "DELETE FROM t",
    "INSERT OVERWRITE t SELECT 10, 2",
    "INSERT INTO t VALUES (1, 70), (10, 3) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    "OPTIMIZE t",
    "ALTER TABLE t DROP CONSTRAINT t_k_pkey",
    "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7",
    "ALTER TABLE t RENAME COLUMN v TO vv",
]
ONLY_OURS = ("OPTIMIZE", "ALTER TABLE t DROP CONSTRAINT", "ALTER TABLE t ADD CONSTRAINT")


def expected(first: str, second: str, dirty: bool) -> tuple[Any, bool]:
    """What plain DuckDB holds after both, and whether the second one failed. None where it cannot run them."""
    oracle = Oracle()
    oracle.run(TABLE)
    oracle.run(FILLED)
    if dirty:
        oracle.run("DELETE FROM t WHERE k = 5")
    try:
        if first.startswith("ALTER TABLE t DROP CONSTRAINT"):
            oracle.run("CREATE TABLE u (k INTEGER, v INTEGER CHECK (v < 100)); INSERT INTO u FROM t; DROP TABLE t; ALTER TABLE u RENAME TO t")
        elif first != "OPTIMIZE t":
            oracle.run(first)
        try:
            if second.startswith("ALTER TABLE t ADD CONSTRAINT"):
                return multiset(oracle.duck.execute("FROM t").fetchall()), oracle.duck.execute("SELECT max(k) >= 15 FROM t").fetchone() == (True,)
            oracle.run(second)
        except Exception:
            return multiset(oracle.duck.execute("FROM t").fetchall()), True
        return multiset(oracle.duck.execute("FROM t").fetchall()), False
    finally:
        oracle.close()


@pytest.mark.parametrize("variant", range(4))
def test_every_pair_equals_one_after_the_other(tmp_path: Path, variant: int) -> None:
    """Each pair at one of two levels, with or without a deletion vector, inline or in files."""
    level, is_dirty = ("serializable", "write serializable")[variant % 2], variant >= 2
    with lakelite.connect(tmp_path / "lake", autocommit=True, isolation=level) as m, lakelite.connect(tmp_path / "lake", autocommit=True) as w:
        m.execute("SET overwrite_append = 'keep'")
        for i, mine in enumerate(MINE):
            for con in (m, w):
                con.execute(f"SET inline_rows = {0 if (i + variant // 2) % 2 else 1000}")
            for theirs in (theirs for j, theirs in enumerate(THEIRS) if (i + j) % 4 == variant):
                _meet(m, w, is_dirty, mine, theirs)
        assert m.execute("CHECK LAKE").fetchall() == []


def _meet(m: Any, w: Any, is_dirty: bool, mine: str, theirs: str) -> None:
    if theirs.startswith("ALTER TABLE t RENAME") and mine.startswith(
        ("INSERT OVERWRITE", "INSERT OR", "ALTER TABLE t ADD UNIQUE", "UPDATE t SET v", "INSERT INTO t VALUES (1, 1)")
    ):
        return  # bound by id here; DuckDB knows the new name only
    if theirs.startswith("ALTER TABLE t ADD COLUMN") and mine.startswith("INSERT"):
        return  # the two columns that t had: test_alter_bound.py
    for statement in ("DROP TABLE IF EXISTS t", TABLE, FILLED, *(["DELETE FROM t WHERE k = 5"] if is_dirty else [])):
        m.execute(statement)
    content, fails = expected(theirs, mine, is_dirty)
    met: list[object] = []
    failed: Error | None = None
    try:
        with meeting(lambda: met.append(w.execute(theirs))):
            m.execute(mine)
    except Error as error:
        failed = error
    has_no_key = "DROP CONSTRAINT" in theirs and ("CONFLICT" in mine or " OR " in mine)
    assert failed is None or isinstance(failed, ProgrammingError if has_no_key else IntegrityError), (mine, theirs, failed)
    if met:  # else mine failed before it came to meet anybody
        assert (failed is not None) == fails, (mine, theirs, failed)
        assert multiset(m.execute("FROM t").fetchall()) == content, (mine, theirs)


@pytest.mark.parametrize("level", ["serializable", "write serializable", "snapshot"])
@pytest.mark.parametrize("is_explicit", [True, False])
def test_two_appends_of_one_key(connect: Connect, level: str, is_explicit: bool) -> None:
    m, w = connect(isolation=level), connect()
    m.execute(TABLE)
    with pytest.raises(TransactionConflict if is_explicit and level == "snapshot" else IntegrityError) as caught:  # noqa: PT012
        if is_explicit:
            m.execute("BEGIN")
            m.execute("INSERT INTO t VALUES (1, 1)")
            w.execute("INSERT INTO t VALUES (1, 2)")
            m.execute("COMMIT")
        else:
            with meeting(lambda: w.execute("INSERT INTO t VALUES (1, 2)")):
                m.execute("INSERT INTO t VALUES (1, 1)")
    assert is_explicit or 'Duplicate key "k: 1" violates primary key constraint' in str(caught.value)
    assert not m.in_transaction
    assert rows(m) == [(1, 2)]
    m.execute("INSERT INTO t VALUES (2, 2)")


def test_22_keys_where_a_statement_is_evaluated_again(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute("INSERT INTO t VALUES (5, 5)")
    with meeting(lambda: w.execute("INSERT INTO t VALUES (4, 4)")), pytest.raises(IntegrityError, match='"k: 5"'):
        m.execute("UPDATE t SET k = k + 1 WHERE k = 4")
    assert rows(m) == [(4, 4), (5, 5)]


def test_22_a_key_that_a_winner_adds(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
    with meeting(lambda: w.execute("ALTER TABLE t ADD PRIMARY KEY (k)")), pytest.raises(IntegrityError, match='"k: 3"'):
        m.execute("INSERT INTO t VALUES (3, 1), (3, 2)")
    assert rows(m) == []


def test_22_a_key_that_is_written_after_an_insert(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (3, 3)")
    m.execute("UPDATE t SET k = v + 1 WHERE v = 0")
    w.execute("INSERT INTO t VALUES (3, 0)")
    with pytest.raises(IntegrityError, match='"k: 3"'):
        m.execute("COMMIT")
    assert rows(m) == [(3, 0)]


def test_a_key_that_was_free_for_a_moment_is_one_all_the_same(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (3, 3)")
    m.execute("DELETE FROM t WHERE k = 3")
    w.execute("INSERT INTO t VALUES (3, 0)")
    with pytest.raises(IntegrityError, match='"k: 3"'):
        m.execute("COMMIT")
    assert rows(m) == [(3, 0)]


def test_23_each_of_two_updates_meets_the_check_and_both_do_not(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("CREATE TABLE t (k INTEGER, v INTEGER CHECK (v < 3))")
    m.execute("INSERT INTO t VALUES (1, 1)")
    with meeting(lambda: w.execute("UPDATE t SET v = v + 1")), pytest.raises(IntegrityError, match="CHECK constraint failed"):
        m.execute("UPDATE t SET v = v + 1")
    assert rows(m) == [(1, 2)]


def test_33_a_check_holds_after_each_statement(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("CREATE TABLE t (k INTEGER, v INTEGER CHECK (v < 3))")
    m.execute("BEGIN")
    m.execute("UPDATE t SET v = k + 1 WHERE v = 1")
    m.execute("DELETE FROM t WHERE v > 0")
    w.execute("INSERT INTO t VALUES (3, 1)")
    with pytest.raises(IntegrityError, match="CHECK constraint failed"):
        m.execute("COMMIT")
    assert rows(m) == [(3, 1)]


@pytest.mark.parametrize("level", ["serializable", "write serializable", "snapshot"])
@pytest.mark.parametrize(("wrong", "change"), [("INSERT INTO t VALUES (1, 50)", "append"), ("UPDATE t SET v = 50", "update")])
def test_8_what_breaks_a_check_against_adding_it_in_both_orders(connect: Connect, level: str, wrong: str, change: str) -> None:
    adding = "ALTER TABLE t ADD CONSTRAINT small CHECK (v < 10)"
    m, w = connect(isolation=level), connect(isolation=level)
    m.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
    m.execute("INSERT INTO t VALUES (0, 0)")
    for mine, theirs in ((wrong, adding), (adding, wrong)):
        with meeting(lambda theirs=theirs: w.execute(theirs)), pytest.raises(IntegrityError, match='CHECK constraint "small" failed'):
            m.execute(mine)
        w.execute("ALTER TABLE t DROP CONSTRAINT IF EXISTS small")
        w.execute("INSERT OVERWRITE t SELECT 0, 0")


@pytest.mark.parametrize(("level", "is_conflict"), [("serializable", True), ("write serializable", False)])
def test_24_an_insert_that_failed_and_would_succeed_now(connect: Connect, level: str, is_conflict: bool) -> None:
    m, w = connect(isolation=level), connect()
    m.execute(TABLE)
    m.execute("INSERT INTO t VALUES (1, 1)")
    m.execute("BEGIN")
    with pytest.raises(IntegrityError):
        m.execute("INSERT INTO t VALUES (1, 5)")
    m.execute("INSERT INTO t VALUES (2, 2)")
    w.execute("DELETE FROM t WHERE k = 1")
    if is_conflict:
        with pytest.raises(TransactionConflict):
            m.execute("COMMIT")
        assert rows(m) == []
    else:
        m.execute("COMMIT")
        assert rows(m) == [(2, 2)]


def test_keys_are_kept_where_winners_only_moved_or_deleted_rows(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute(FILLED)
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (9, 9)")
    m.execute("UPDATE t SET v = v + 1")
    flush(w, "t")
    w.execute("DELETE FROM t WHERE k = 2")
    w.execute("INSERT INTO t VALUES (2, 0)")
    m.execute("COMMIT")
    assert rows(m) == [(0, 1), (1, 2), (2, 1), (3, 4), (4, 5), (5, 6), (9, 10)]


def test_a_column_that_is_in_no_table_any_more_is_not_checked(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("CREATE TABLE t (k INTEGER, v INTEGER CHECK (v < 10))")
    with meeting(lambda: w.execute("ALTER TABLE t DROP COLUMN v")):
        m.execute("INSERT INTO t VALUES (1, 5)")
    assert rows(m) == [(1,)]


def test_a_winner_that_renames_what_a_check_is_about(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute("INSERT INTO t VALUES (1, 1)")
    w_rename = ["ALTER TABLE t RENAME COLUMN v TO k2", "ALTER TABLE t RENAME COLUMN k TO v", "INSERT INTO t VALUES (2, 60)"]
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (3, 99)")
    m.execute("UPDATE t SET v = v + 50 WHERE k < 3")
    for statement in w_rename:
        w.execute(statement)
    with pytest.raises(IntegrityError, match="CHECK constraint failed"):
        m.execute("COMMIT")
    m.execute("UPDATE t SET k2 = 10")
    with pytest.raises(ProgrammingError):
        m.execute("UPDATE t SET k = 10")


def test_an_explained_commit_tells_of_the_duplicate(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (1, 1)")
    w.execute("INSERT INTO t VALUES (1, 2)")
    explained = m.execute("EXPLAIN COMMIT").fetchall()
    assert [row[2] for row in explained] == ["error"]
    assert "Duplicate key" in explained[0][5]
    m.execute("ROLLBACK")


# ON CONFLICT.


@pytest.mark.parametrize("level", ["serializable", "write serializable", "snapshot"])
@pytest.mark.parametrize(
    "theirs", ["INSERT INTO t VALUES (1, 10)", "INSERT INTO t VALUES (1, 10) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v"]
)
def test_11_of_two_upserts_of_one_new_key_one_inserts_and_the_other_updates(connect: Connect, level: str, theirs: str) -> None:
    m, w = connect(isolation=level), connect(isolation=level)
    m.execute(TABLE)
    with meeting(lambda: w.execute(theirs)):
        cursor = m.execute("INSERT INTO t VALUES (1, 5), (2, 2) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v")
    assert cursor.rowcount == 2
    assert rows(m) == [(1, 15), (2, 2)]


@pytest.mark.parametrize("level", ["serializable", "write serializable"])
def test_11_in_a_transaction_too(connect: Connect, level: str) -> None:
    m, w = connect(isolation=level), connect()
    m.execute(TABLE)
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (9, 9)")
    m.execute("INSERT OR REPLACE INTO t VALUES (1, 5)" if level == "write serializable" else "INSERT OR IGNORE INTO t VALUES (2, 5)")
    w.execute("INSERT INTO t VALUES (1, 10)")
    m.execute("COMMIT")
    assert rows(m) == ([(1, 5), (9, 9)] if level == "write serializable" else [(1, 10), (2, 5), (9, 9)])


def test_11_at_snapshot_the_second_of_two_transactions_yields(connect: Connect) -> None:
    m, w = connect(isolation="snapshot"), connect()
    m.execute(TABLE)
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (1, 5) ON CONFLICT DO NOTHING")
    w.execute("INSERT INTO t VALUES (1, 10)")
    with pytest.raises(TransactionConflict, match="changed it first"):
        m.execute("COMMIT")
    assert rows(m) == [(1, 10)]


def test_an_upsert_of_a_row_that_a_winner_deletes_inserts_it(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute(FILLED)
    with meeting(lambda: w.execute("DELETE FROM t WHERE k = 1"), lambda: flush(w, "t")):
        m.execute("INSERT INTO t VALUES (1, 50) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v")
    assert rows(m) == [(0, 0), (1, 50), (2, 2), (3, 3), (4, 4), (5, 5)]


def test_a_winner_that_drops_the_key_leaves_nothing_to_conflict_with(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    with (
        meeting(lambda: w.execute("ALTER TABLE t DROP CONSTRAINT t_k_pkey")),
        pytest.raises(ProgrammingError, match="need a key, and the table has none"),
    ):
        m.execute("INSERT INTO t VALUES (1, 50) ON CONFLICT DO NOTHING")
    assert rows(m) == []


def test_an_upsert_keeps_the_names_that_it_was_bound_to(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute(TABLE)
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (1, 5) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v")
    w.execute("ALTER TABLE t RENAME COLUMN k TO kk")
    w.execute("ALTER TABLE t RENAME COLUMN v TO k")
    w.execute("INSERT INTO t VALUES (1, 10)")
    m.execute("COMMIT")
    assert rows(m) == [(1, 15)]


def test_a_constraint_that_was_not_there_is_dropped_where_a_winner_adds_it(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("CREATE TABLE t (k INTEGER)")
    with meeting(lambda: w.execute("ALTER TABLE t ADD CONSTRAINT small CHECK (k < 9)")):
        m.execute("ALTER TABLE t DROP CONSTRAINT IF EXISTS small")
    m.execute("INSERT INTO t VALUES (10)")
    assert rows(m) == [(10,)]


@pytest.mark.parametrize("is_explicit", [True, False])
def test_at_snapshot_a_key_that_an_update_wrote_and_a_winner_took(connect: Connect, is_explicit: bool) -> None:
    m, w = connect(isolation="snapshot"), connect()
    m.execute(TABLE)
    m.execute(FILLED)
    m.execute("BEGIN" if is_explicit else "SELECT 1")
    with pytest.raises(TransactionConflict if is_explicit else IntegrityError), meeting(lambda: w.execute("INSERT INTO t VALUES (10, 10)")):  # noqa: PT012
        m.execute("UPDATE t SET k = 10 WHERE k = 4")
        if is_explicit:
            m.execute("COMMIT")
    assert rows(m) == [*((k, k) for k in range(6)), (10, 10)]


def test_at_snapshot_keys_of_other_rows_do_not_matter(connect: Connect) -> None:
    m, w = connect(isolation="snapshot"), connect()
    m.execute(TABLE)
    m.execute(FILLED)
    m.execute("BEGIN")
    m.execute("UPDATE t SET k = k + 20 WHERE k > 3")
    m.execute("INSERT INTO t VALUES (4, 0)")
    w.execute("INSERT INTO t VALUES (10, 10)")
    w.execute("UPDATE t SET v = 9 WHERE k = 1")
    m.execute("COMMIT")
    assert rows(m) == [(0, 0), (1, 9), (2, 2), (3, 3), (4, 0), (10, 10), (24, 4), (25, 5)]
