"""What may be the source of a MERGE, and SET (a, b) = …, side by side with plain DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from comparing import both
from racing import meeting

import lakelite

TABLES = (
    "CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER)", "CREATE OR REPLACE TABLE a (k INTEGER, v INTEGER)", "CREATE OR REPLACE TABLE b (k INTEGER, w INTEGER)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (7, 7)", "INSERT INTO a VALUES (1, 10), (3, 30)", "INSERT INTO b VALUES (1, 100), (2, 200), (3, 300)",
)  # fmt: skip
MERGES = """
(a JOIN b USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
a JOIN b USING (k) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
a JOIN b ON a.k = b.k ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
a INNER JOIN b ON a.k = b.k USING (k) WHEN MATCHED THEN UPDATE SET v = b.w
(a JOIN b ON a.k = b.k) AS j ON t.k = j.k WHEN MATCHED THEN UPDATE SET v = j.w
(a JOIN b USING (k)) j (k, x, y) ON t.k = j.k WHEN MATCHED THEN UPDATE SET v = j.y
(a JOIN b USING (k)) USING (k) WHEN MATCHED THEN UPDATE SET v = w
(a JOIN b USING (k)) ON t.k = a.k WHEN NOT MATCHED THEN INSERT VALUES (a.k, b.w)
(a JOIN b USING (k)) ON t.k = a.k WHEN NOT MATCHED THEN INSERT
(a JOIN b ON a.k = b.k) ON t.k = a.k WHEN MATCHED THEN UPDATE BY NAME
(a LEFT JOIN b USING (k)) ON t.k = a.k WHEN MATCHED AND b.w IS NULL THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, w)
(b LEFT OUTER JOIN a USING (k)) ON t.k = b.k WHEN MATCHED AND a.v IS NULL THEN DELETE
(a FULL JOIN b USING (k)) ON t.k = a.k WHEN NOT MATCHED THEN INSERT VALUES (k, a.v)
(a SEMI JOIN b USING (k)) ON t.k = a.k WHEN MATCHED THEN DELETE
(b ANTI JOIN a USING (k)) ON t.k = b.k WHEN MATCHED THEN DELETE
(a POSITIONAL JOIN b) ON t.k = a.k WHEN MATCHED THEN DELETE
(a NATURAL JOIN b) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
(a ASOF JOIN b ON a.k >= b.k) ON t.k = b.k WHEN MATCHED THEN UPDATE SET v = b.w
a CROSS JOIN b ON t.k = a.k AND b.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
a LEFT JOIN b ON a.k = b.k AND left('x', 1) = 'x' ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
(a JOIN b USING (k) LEFT JOIN (SELECT 1 AS k, 5 AS z) c ON c.k = a.k AND c.z > b.w - 1000) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = c.z WHEN NOT MATCHED THEN INSERT VALUES (b.k, c.z)
((a JOIN b USING (k)) JOIN (VALUES (1, 4)) AS c(k, q) USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = q
(a JOIN b USING (k)) ON t.k = k WHEN MATCHED AND k < 5 THEN UPDATE SET v = k + w
a JOIN b USING (k) ON t.k + 2 = k WHEN MATCHED THEN UPDATE SET v = k WHEN NOT MATCHED THEN INSERT VALUES (k, 5) WHEN NOT MATCHED BY SOURCE AND k > 5 THEN DELETE
a FULL JOIN b USING (k) ON t.k = k AND k IN (SELECT k FROM b) WHEN MATCHED THEN UPDATE SET v = k
a NATURAL JOIN b ON t.k + 2 = k WHEN MATCHED THEN UPDATE SET v = k
(a SEMI JOIN b USING (k)) ON t.k = k WHEN MATCHED THEN DELETE
a x JOIN a y USING (k, v) USING (k) WHEN MATCHED AND v = 10 THEN UPDATE SET v = v + k
a x JOIN a y USING (v) ON t.v = k AND v = 10 WHEN MATCHED THEN DELETE
(a JOIN b USING (k)) AS j ON t.k = k WHEN MATCHED THEN DELETE
((SELECT 1 AS k) x JOIN b USING (k)) ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = b.w
(a x JOIN a y USING (k)) ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = x.v + y.v
(a x JOIN a y USING (k)) ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = v
(t x JOIN a USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = t.v + x.v
(main.a JOIN b USING (k)) ON t.k = main.a.k WHEN MATCHED THEN UPDATE SET v = main.a.v
(a JOIN b USING (k)) ON t.k = a.k WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED AND b.w > 5 THEN UPDATE SET v = a.v
(a JOIN b USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = len(a::VARCHAR)
(a JOIN b USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = c.w
a JOIN b ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
(a, b) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
a TABLESAMPLE 100% ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = 5
a AS x TABLESAMPLE (100 PERCENT) ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = 5
a TABLESAMPLE reservoir(5 ROWS) REPEATABLE (3) USING (k) WHEN MATCHED THEN UPDATE SET v = 5
a TABLESAMPLE (100 PERCENT) JOIN b USING (k) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
(VALUES (1, 2)) AS s(k, w) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.w
VALUES (1, 2), (9, 9) AS s(k, w) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.w WHEN NOT MATCHED THEN INSERT
range(5) AS s(k) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 9
range(5) ON t.k = range.range WHEN MATCHED THEN UPDATE SET v = 9
unnest([1, 2]) AS u(k) ON t.k = u.k WHEN MATCHED THEN UPDATE SET v = 9
LATERAL (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 9
((SELECT 1 AS k)) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 9
((SELECT 1 AS k) UNION (SELECT 2)) s ON t.k = s.k WHEN MATCHED THEN DELETE
((a)) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 9
a ON t.k = a.k WHEN MATCHED THEN UPDATE SET (v, k) = ROW(a.k + 50, DEFAULT)
a ON t.k = a.k WHEN MATCHED THEN UPDATE SET (k, v) = (a.k, a.v)
""".strip().splitlines()
SETS = """
UPDATE t SET (k, v) = (1, 2)
UPDATE t SET (k, v) = ROW(v, k + 1) WHERE k = 1
UPDATE t SET (k, v) = (v, k) WHERE k = 1
UPDATE t SET (k, v) = (1, 2,)
UPDATE t SET (k, v,) = (1, DEFAULT),
UPDATE t SET k = 1, (v) = (2)
UPDATE t SET (v) = 1
UPDATE t SET (v) = (1) + 2 WHERE k = 1
UPDATE t SET (v) = (SELECT max(k) FROM a)
UPDATE t SET (k, v) = (SELECT max(k) FROM a)
UPDATE t SET (k, v) = ((SELECT max(k) FROM a), 2)
UPDATE t AS x SET (k, v) = (x.v, a.v) FROM a WHERE a.k = x.k
UPDATE t SET (k, v) = (SELECT 1, 2)
UPDATE t SET (k, v) = (1, 2, 3)
UPDATE t SET (k, v) = a FROM a
UPDATE t SET (k, K) = (1, 2)
UPDATE t SET (k, zz) = (1, 2)
UPDATE t SET () = ()
""".strip().splitlines()


@pytest.fixture
def con(connect: Callable[..., Any]) -> Any:
    return connect()


@pytest.mark.parametrize("statements", [[f"MERGE INTO t USING {rest}" for rest in MERGES], SETS], ids=["MERGE", "SET"])
def test_as_duckdb_does(con: Any, statements: list[str]) -> None:
    with duckdb.connect() as duck:
        for statement in statements:
            for each in (duck, con):
                for sql in TABLES:
                    each.execute(sql)
            both(con, duck, statement)


def test_set_of_several_in_on_conflict_and_in_returning(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, w INTEGER DEFAULT 8); INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    cursor = con.execute("INSERT INTO t VALUES (1, 5, 6) ON CONFLICT (k) DO UPDATE SET (v, w) = (excluded.w, DEFAULT) RETURNING v, w")
    assert cursor.fetchall() == [(6, 8)]
    assert con.execute("UPDATE t SET (v, w) = (w, v) WHERE k < $most RETURNING *", {"most": 2}).fetchall() == [(1, 8, 6)]
    merge = "MERGE INTO t USING (a_view JOIN range(3) AS r(k) USING (k)) ON t.k = a_view.k WHEN MATCHED THEN UPDATE SET (v, w) = ($v, a_view.k) RETURNING k, v, w"
    con.execute("CREATE VIEW a_view AS SELECT k FROM t WHERE v = 2")
    assert con.execute(merge, {"v": 70}).fetchall() == [(2, 70, 2)]


def test_a_join_with_an_earlier_version_and_a_table_of_the_callers(con: Any) -> None:
    for sql in TABLES:
        con.execute(sql)
    version = con.last_commit.snapshot_id
    con.execute("DELETE FROM a")
    mine = con.execute("SELECT 1 AS k, 5 AS x").to_arrow()
    con.execute(f"MERGE INTO t USING (a AT (VERSION => {version}) JOIN mine USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v + mine.x")
    assert mine.num_rows == 1
    assert con.execute("SELECT v FROM t WHERE k = 1").fetchall() == [(15,)]


# Beside winners: a join is read as a whole, and with a winner in any of its tables all of it runs again.

JOINED = "MERGE INTO t USING (a JOIN b USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = t.v + a.v + b.w WHEN NOT MATCHED THEN INSERT VALUES (b.k, a.v)"
WINNERS = {
    "append": ("INSERT INTO b VALUES (7, 5); INSERT INTO a VALUES (7, 5)", [(1, 111), (2, 2), (3, 30), (7, 17)]),
    "delete": ("DELETE FROM b WHERE k = 3", [(1, 111), (2, 2), (7, 7)]),
    "update": ("UPDATE a SET v = 0 WHERE k = 1", [(1, 101), (2, 2), (3, 30), (7, 7)]),
    "overwrite": ("INSERT OVERWRITE a SELECT 2, 0", [(1, 1), (2, 202), (7, 7)]),
    "OPTIMIZE": ("OPTIMIZE b; OPTIMIZE t", [(1, 111), (2, 2), (3, 30), (7, 7)]),
    "rename": ("ALTER TABLE b RENAME w TO x", [(1, 111), (2, 2), (3, 30), (7, 7)]),
    "update of the target": ("UPDATE t SET v = 1_000 WHERE k = 1; DELETE FROM t WHERE k = 2", [(1, 1_110), (3, 30), (7, 7)]),
}


@pytest.mark.parametrize("winner", WINNERS)
def test_a_join_beside_winners(connect: Callable[..., Any], winner: str) -> None:
    m, w = connect(), connect()
    for sql in (*TABLES, "INSERT INTO b VALUES (9, 9)", "DELETE FROM b WHERE k = 9"):
        m.execute(sql)
    sql, expected = WINNERS[winner]
    with meeting(lambda: w.execute(sql)):
        m.execute(JOINED)
    assert sorted(m.execute("FROM t").fetchall()) == expected


def test_a_table_of_a_join_that_a_winner_drops(connect: Callable[..., Any]) -> None:
    m, w = connect(), connect()
    for sql in TABLES:
        m.execute(sql)
    with meeting(lambda: w.execute("DROP TABLE b")), pytest.raises(lakelite.ProgrammingError, match="b"):
        m.execute(JOINED)


SWAPPED = {
    "INSERT INTO t VALUES (30, 40)": [(1, 1), (2, 2), (7, 7), (40, 30)],
    "UPDATE t SET k = 50 WHERE k = 7": [(1, 1), (2, 2), (7, 50)],
    "DELETE FROM t WHERE k = 7": [(1, 1), (2, 2)],
    "OPTIMIZE t": [(1, 1), (2, 2), (7, 7)],
    "INSERT OVERWRITE t SELECT 8, 9": [(9, 8)],
    "ALTER TABLE t ADD COLUMN n INTEGER": [(1, 1), (2, 2), (7, 7)],
}


@pytest.mark.parametrize("winner", SWAPPED)
def test_set_of_several_beside_winners(connect: Callable[..., Any], winner: str) -> None:
    m, w = connect(), connect()
    for sql in TABLES:
        m.execute(sql)
    with meeting(lambda: w.execute(winner)):
        m.execute("UPDATE t SET (k, v) = (v, k)")
    assert sorted(m.execute("SELECT k, v FROM t").fetchall()) == SWAPPED[winner]
