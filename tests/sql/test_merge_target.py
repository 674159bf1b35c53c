"""MERGE reads no more of its target than what may match: with the results that plain DuckDB gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from comparing import both
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from racing import meeting

import lakelite
from lakelite.language.equalities import Side, equalities
from lakelite.storage.engine import Engine

KEYED = "CREATE OR REPLACE TABLE t (k INTEGER, l VARCHAR, v INTEGER, PRIMARY KEY (k, l))"
PLAIN = "CREATE OR REPLACE TABLE t (k INTEGER, l VARCHAR, v INTEGER)"
FILLED = [f"INSERT INTO t SELECT range + {first}, 'l' || (range % 3), range FROM range(10)" for first in (0, 100, 200)]
ON = (
    "t.k = s.k",
    "s.k = t.k AND t.l = s.l",
    "(t.k) = s.k AND t.l = s.l AND t.v < s.v + 100",
    "t.k = s.k OR t.v = s.v",
    "t.k = s.big AND l = m",
    "t.k = s.k + 1",
    "NOT (t.k = s.k)",
    "t.k IS NOT DISTINCT FROM s.k",
    "t.l = s.m AND t.k = s.d",
    "t.l = s.m COLLATE NOCASE",
    "t.v = t.k",
    "true",
)
WHENS = (
    "WHEN MATCHED THEN UPDATE SET v = 1",
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, l, v) VALUES (s.k + 1_000, 'n' || s.n, s.v)",
    "WHEN MATCHED AND t.v > 2 THEN UPDATE SET v = -1 WHEN NOT MATCHED BY SOURCE AND t.v = 4 THEN DELETE",
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = -2",
)
SOURCE = (
    "(SELECT row_number() OVER () AS n, k, 'l' || (k % 3) AS l, 'l1' AS m, k::BIGINT * {large} AS big, k::DOUBLE AS d, k % 5 AS v"
    " FROM (SELECT unnest({keys}::INTEGER[]) AS k)) AS s"
)


@pytest.fixture
def con(connect: Callable[..., Any]) -> Any:
    return connect()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=some.sampled_from([KEYED, PLAIN]),
    on=some.sampled_from(ON),
    whens=some.sampled_from(WHENS),
    keys=some.lists(some.none() | some.sampled_from([0, 3, 9, 10, 50, 99, 100, 105, 203, 210, -1]), unique=True, max_size=6),
    large=some.sampled_from([1, 10**9]),
)
@example(KEYED, "t.k = s.k", WHENS[0], [50], 1)
@example(KEYED, "s.k = t.k AND t.l = s.l", WHENS[1], [None, 105], 1)
def test_as_duckdb_does(con: Any, table: str, on: str, whens: str, keys: list[int | None], large: int) -> None:
    if "UPDATE" in whens and on in ("true", "NOT (t.k = s.k)", "t.v = t.k"):
        keys = keys[:1]  # else a row would be updated in several ways
    source = SOURCE.format(keys=str(keys).replace("None", "NULL"), large=large)
    with duckdb.connect() as duck:
        for sql in (table, *FILLED, "DELETE FROM t WHERE k % 10 = 6"):
            for each in (duck, con):
                each.execute(sql)
        both(con, duck, f"MERGE INTO t USING {source} ON {on} {whens}")


@pytest.fixture
def files(connect: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """How many of three files of t, with k from 0, 100 and 200 on, the SQL of a statement names."""
    monkeypatch.setattr("lakelite.transaction.key_lookup.FILTERED_ROWS", 1)
    con = connect()
    con.execute("SET inline_rows = 0")
    for sql in (KEYED, *FILLED):
        con.execute(sql)
    con.execute("INSERT INTO t SELECT range * 10, 'x', 0 FROM range(30)")

    def read_by(sql: str) -> int:
        names = {path.name for path in (tmp_path / "lake" / "data").glob("*/*.parquet")}
        texts: list[str] = []
        run = Engine.run
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "run", lambda self, text, *more: texts.append(text) or run(self, text, *more))
            con.execute("BEGIN")
            con.execute(sql)
            con.execute("ROLLBACK")
        return len([name for name in names if any(name in text for text in texts)])

    return read_by


@pytest.mark.parametrize(
    ("on", "then", "count"),
    [
        ("t.k = s.k", "WHEN MATCHED THEN DELETE", 2),  # the first file, and the one that reaches over all
        ("t.k = s.k AND t.l = s.l", "WHEN MATCHED THEN DELETE", 1),  # which does not hold this key
        ("t.k = s.k AND t.l = s.l", "WHEN MATCHED THEN UPDATE SET v = 5 WHEN NOT MATCHED THEN INSERT *", 1),
        ("t.k = s.k AND t.l = s.l", "WHEN NOT MATCHED BY SOURCE THEN DELETE", 4),
        ("t.k >= s.k", "WHEN MATCHED THEN DELETE", 4),
    ],
)
def test_files_that_can_hold_no_partner_are_not_read(files: Callable[[str], int], on: str, then: str, count: int) -> None:
    assert files(f"MERGE INTO t USING (SELECT 5 AS k, 'l2' AS l, 1 AS v) AS s ON {on} {then}") == count
    using = ["k", "l"] if "s.l" in on else ["k"]
    if "=" in on.replace(">=", ""):
        assert files(f"MERGE INTO t USING (SELECT 5::BIGINT AS k, 'l2' AS l, 1 AS v) AS s USING ({', '.join(using)}) {then}") == count


def test_a_source_with_a_collation(con: Any) -> None:
    for sql in (PLAIN, "INSERT INTO t VALUES (1, 'a', 0)", "INSERT INTO t VALUES (2, 'b', 0)"):
        con.execute(sql)
    merge = "MERGE INTO t USING (SELECT 'B' COLLATE NOCASE AS l, 5 AS v) AS s ON t.l = s.l WHEN MATCHED THEN UPDATE SET v = s.v"
    assert con.execute(merge).rowcount == 1


def test_many_different_values(con: Any) -> None:
    for sql in (PLAIN, *FILLED):
        con.execute(sql)
    merge = "MERGE INTO t USING (SELECT range * 2 - 10_000 AS k FROM range(20_000)) AS s USING (k) WHEN MATCHED THEN DELETE"
    assert con.execute(merge).rowcount == 15


def test_an_update_of_other_columns_looks_up_no_key(files: Callable[[str], int]) -> None:
    source = "(SELECT 5 AS k, 'l2' AS l, 1 AS v) AS s USING (k, l)"
    assert files(f"MERGE INTO t USING {source} WHEN MATCHED THEN UPDATE SET v = s.v") == 1


def test_updates_and_inserts_of_one_merge_meet_each_others_keys(con: Any) -> None:
    with duckdb.connect() as duck:
        for each in (duck, con):
            each.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)")
            each.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
        source = "(VALUES (1, 10), (3, 30)) AS s (k, v)"
        both(con, duck, f"MERGE INTO t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (1, 5)")
        both(con, duck, f"MERGE INTO t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (2, 5)")
        both(con, duck, f"MERGE INTO t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *")
        both(con, duck, f"MERGE INTO t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE SET k = 2")


# Beside winners.

WINNERS = {
    "append": ("INSERT INTO t VALUES (50, 'l2', 1)", [(50, "l2", 6)]),
    "append to what was read": ("INSERT INTO t VALUES (5, 'l2', 1)", [(5, "l2", 6), (50, "l2", 5)]),
    "delete": ("DELETE FROM t WHERE k = 203", [(50, "l2", 5)]),
    "update": ("UPDATE t SET k = 50, l = 'l2' WHERE k = 203", [(50, "l2", 8)]),
    "overwrite": ("INSERT OVERWRITE t VALUES (50, 'l2', 2)", [(50, "l2", 7)]),
    "OPTIMIZE": ("OPTIMIZE t", [(50, "l2", 5)]),
    "ADD COLUMN": ("ALTER TABLE t ADD COLUMN n INTEGER", [(50, "l2", 5)]),
    "another type": ("ALTER TABLE t ALTER v TYPE BIGINT", [(50, "l2", 5)]),
}


@pytest.mark.parametrize("table", [KEYED, PLAIN])
@pytest.mark.parametrize("winner", WINNERS)
def test_a_winner_that_changes_what_was_not_read(connect: Callable[..., Any], table: str, winner: str) -> None:
    m, w = connect(), connect()
    for sql in (table, *FILLED, "DELETE FROM t WHERE k = 5"):
        m.execute(sql)
    sql, expected = WINNERS[winner]
    source = "(SELECT 50 AS k, 'l2' AS l, 5 AS v UNION ALL SELECT 5, 'l2', 5) AS s"
    whens = "WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED AND s.k = 50 THEN INSERT (k, l, v) VALUES (s.k, s.l, s.v)"
    with meeting(lambda: w.execute(sql)):
        m.execute(f"MERGE INTO t USING {source} ON t.k = s.k AND t.l = s.l {whens}")
    assert m.execute("SELECT k, l, v FROM t WHERE k IN (5, 50) ORDER BY k").fetchall() == expected


def test_a_winner_that_drops_the_table(connect: Callable[..., Any]) -> None:
    m, w = connect(), connect()
    m.execute(f"{KEYED}; {FILLED[0]}")
    with meeting(lambda: w.execute("DROP TABLE t")), pytest.raises(lakelite.ProgrammingError, match="dropped by snapshot 3"):
        m.execute("MERGE INTO t USING (SELECT 50 AS k, 'a' AS l) AS s USING (k, l) WHEN MATCHED THEN DELETE")


# The equalities themselves.

LEFT, RIGHT = Side("t", ["k", "v", "Odd name"]), Side("s", ["k", "w", "Odd name"])


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("t.k = s.k", [("k", "k")]),
        ("s.K = T.k AND (t.v = s.w)", [("k", "k"), ("v", "w")]),
        ("v = w", [("v", "w")]),
        ("k = w", []),  # of either side
        ('t."Odd name" = s."odd name"', [("Odd name", "Odd name")]),
        ("t.k = s.k OR t.v = s.w", []),
        ("NOT t.k = s.k", []),
        ("t.k = s.k + 0", []),
        ("t.k = t.v", []),
        ("x.t.k = s.k", []),
        ("t.k == s.k", [("k", "k")]),
        ("t.k = s.zz AND 1 = s.k", []),
        ("this is ( no SQL", []),
    ],
)
def test_equalities(on: str, expected: list[tuple[str, str]]) -> None:
    assert equalities(on, LEFT, RIGHT) == expected
    assert equalities(on, Side("t", ["k", "v", "s"]), RIGHT) == []  # s.k may be a field
