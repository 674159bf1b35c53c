"""MERGE among others: it runs again where winners touched what it read, and what is handed out still has to be true.

That it meets, and wins against, every kind of statement is in test_pairs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from racing import flush, meeting, merge, race

import lakelite

Connect = Callable[..., Any]
UPSERT = (
    "MERGE INTO t USING (SELECT {k} AS k, {v} AS v) AS s USING (k)"
    " WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
)


@pytest.fixture
def connect(connect: Connect) -> Connect:
    """Opens connections to one lake with t (k, v), k 0 to 9 with v = k but for k = 5, which is deleted, and an empty s (k, v)."""
    con = connect()
    con.execute("CREATE TABLE t (k INTEGER, v INTEGER); CREATE TABLE s (k INTEGER, v INTEGER)")
    con.execute("INSERT INTO t SELECT range, range FROM range(10); DELETE FROM t WHERE k = 5")
    return connect


def value(con: Any, k: int) -> list[int]:
    return [v for (v,) in con.execute("SELECT v FROM t WHERE k = ?", [k]).fetchall()]


def upserting(k: int, v: int) -> str:
    return UPSERT.format(k=k, v=v)


@pytest.mark.parametrize("level", ["serializable", "write serializable"])
def test_11_of_two_upserts_of_one_new_key_the_loser_updates(connect: Connect, level: str) -> None:
    m, w = connect(isolation=level), connect(isolation=level)
    with meeting(lambda: w.execute(upserting(50, 1))):
        cursor = m.execute(upserting(50, 10))
    assert cursor.rowcount == 1
    assert value(m, 50) == [11]
    assert [line.rung for line in m.last_commit.resolutions] == [4]


def test_11_an_upsert_against_an_append_of_its_key(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("INSERT INTO t VALUES (50, 1)")):
        m.execute(upserting(50, 10))
    assert value(m, 50) == [11]


def test_an_append_stands_beside_an_upsert_that_won(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute(upserting(50, 10))):
        m.execute("INSERT INTO t VALUES (50, 1)")
    assert sorted(value(m, 50)) == [1, 10]


def test_an_upsert_finds_its_row_gone_and_inserts(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("DELETE FROM t WHERE k = 3")):
        m.execute(upserting(3, 10))
    assert value(m, 3) == [10]


def test_an_upsert_follows_its_row_through_a_compaction(connect: Connect) -> None:
    m, w = connect(), connect()
    w.execute("INSERT INTO t VALUES (20, 20)")
    with meeting(lambda: w.execute("OPTIMIZE t"), lambda: flush(w, "t")):
        m.execute(upserting(3, 10))
        m.execute(upserting(20, 1))
    assert (value(m, 3), value(m, 20)) == ([13], [21])
    assert m.execute("SELECT count(*) FROM t").fetchone() == (10,)
    assert m.execute("CHECK LAKE").fetchall() == []


def test_a_merge_runs_again_where_its_source_was_changed(connect: Connect) -> None:
    m, w = connect(), connect()
    w.execute("INSERT INTO s VALUES (1, 100)")
    sql = "MERGE INTO t USING s USING (k) WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE"
    with meeting(lambda: w.execute("UPDATE s SET v = 200"), lambda: w.execute("INSERT INTO s VALUES (2, 300)")):
        m.execute(sql)
    assert sorted(m.execute("FROM t").fetchall()) == [(1, 200), (2, 300)]


def test_a_merge_stands_where_the_rows_of_its_source_cannot_have_changed(connect: Connect) -> None:
    m, w = connect(), connect()
    w.execute("INSERT INTO s VALUES (1, 100)")
    with meeting(lambda: w.execute("INSERT INTO s VALUES (9, 900)")):
        m.execute("MERGE INTO t USING (SELECT * FROM s WHERE k < 5) AS s USING (k) WHEN MATCHED THEN UPDATE SET v = s.v")
    assert (value(m, 1), value(m, 9)) == ([100], [9])
    assert [line.rung for line in m.last_commit.resolutions] == [1]


def test_at_snapshot_two_upserts_of_a_new_key_both_insert_and_of_an_old_one_the_first_wins(connect: Connect) -> None:
    m, w = connect(isolation="snapshot", autocommit=False), connect()
    m.execute(upserting(50, 10))
    w.execute(upserting(50, 1))
    m.commit()
    assert sorted(value(w, 50)) == [1, 10]
    m.execute(upserting(3, 10))
    w.execute(upserting(3, 1))
    with pytest.raises(lakelite.TransactionConflict):
        m.commit()
    assert value(w, 3) == [4]


def test_at_serializable_a_count_that_was_told_has_to_come_out_the_same(connect: Connect) -> None:
    m, w = connect(isolation="serializable", autocommit=False), connect()
    sql = "MERGE INTO t USING (SELECT 3 AS k) AS s USING (k) WHEN MATCHED AND t.v > 2 THEN DELETE"
    assert m.execute(sql).rowcount == 1
    w.execute("UPDATE t SET v = v + 1 WHERE k = 3")
    m.commit()
    assert value(w, 3) == []
    assert m.execute(sql.replace("3", "4")).rowcount == 1
    w.execute("UPDATE t SET v = 0 WHERE k = 4")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        m.commit()
    assert caught.value.conflicts[0].kind == "row count changed"
    assert value(w, 4) == [0]


def test_rows_that_it_wrote_and_that_were_shown_are_compared(connect: Connect) -> None:
    m, w = connect(autocommit=False), connect()
    m.execute(upserting(3, 10))
    assert value(m, 3) == [13]
    w.execute("UPDATE t SET v = 100 WHERE k = 7")
    m.commit()
    m.execute(upserting(3, 10))
    assert value(m, 3) == [23]
    w.execute("UPDATE t SET v = 100 WHERE k = 3")
    with pytest.raises(lakelite.TransactionConflict):
        m.commit()
    assert value(w, 3) == [100]


def test_from_a_table_of_the_callers(connect: Connect) -> None:
    m, w = connect(), connect()
    rows = pa.table({"k": [3, 50], "v": [10, 10]})
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    sql = "MERGE INTO t USING {} AS s USING (k) WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT BY NAME"
    with meeting(lambda: w.execute("UPDATE t SET v = 100 WHERE k = 3")):
        m.execute(sql.format("reader"))
    assert (reader.schema, value(m, 3), value(m, 50)) == (rows.schema, [110], [10])
    m.execute("BEGIN")
    m.execute(sql.format("rows"))
    w.execute("DELETE FROM t WHERE k = 3")
    with pytest.raises(lakelite.TransactionConflict, match="external data"):
        m.execute("COMMIT")


def test_an_error_that_a_winner_brings_about(connect: Connect) -> None:
    m, w = connect(), connect()
    sql = "MERGE INTO t USING (SELECT 3 AS k) AS s USING (k) WHEN MATCHED AND t.v > 50 THEN ERROR 'too much' WHEN MATCHED THEN DELETE"
    with meeting(lambda: w.execute("UPDATE t SET v = 100 WHERE k = 3")), pytest.raises(lakelite.IntegrityError, match="too much"):
        m.execute(sql)
    assert value(m, 3) == [100]


@pytest.mark.parametrize(
    ("alter", "rows"),
    [
        ("ADD COLUMN c INTEGER DEFAULT 8", [(3, 30, 8), (50, 50, 8)]),
        ("RENAME COLUMN v TO w", [(3, 30), (50, 50)]),
        ("ALTER COLUMN v TYPE BIGINT", [(3, 30), (50, 50)]),
        ("ALTER COLUMN v TYPE VARCHAR", [(3, "30"), (50, "50")]),
    ],
)
def test_a_winner_that_alters_its_table(connect: Connect, alter: str, rows: list[Any]) -> None:
    m, w = connect(), connect()
    source = "(VALUES (3, 30), (50, 50)) AS s(k, v)"
    with meeting(lambda: w.execute(f"ALTER TABLE t {alter}; DELETE FROM t WHERE k = 0")):
        m.execute(f"MERGE INTO t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT *")
    assert sorted(m.execute("FROM t WHERE k IN (3, 50)").fetchall()) == rows


def test_upserts_of_many_processes_count_each_once(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
        race(merge, [(str(tmp_path / "lake"), 12)] * 3)
        assert con.execute("SELECT k, v FROM t ORDER BY k").fetchall() == [(k, 9) for k in range(4)]
        assert con.execute("CHECK LAKE").fetchall() == []
