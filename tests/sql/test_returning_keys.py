"""RETURNING of MERGE and of INSERT … ON CONFLICT: what DuckDB gives, and where winners come in between what the landed rows are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from racing import meeting

import lakelite

SETUP = """
    CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c VARCHAR DEFAULT 'new');
    INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y'), (3, 30, 'z'), (4, 40, 'gone');
    DELETE FROM t WHERE a = 4
"""
MERGE = """MERGE INTO t USING (VALUES (1, 1), (2, 0), (9, 9)) s(a, b) USING (a)
    WHEN MATCHED AND s.b = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET b = t.b + s.b
    WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, s.b)
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET c = 'alone'"""
STATEMENTS = [
    f"{MERGE} RETURNING merge_action, *",
    f"{MERGE} RETURNING *",
    f"{MERGE} RETURNING t.a AS k, lower(merge_action) || c AS what, \"MERGE_ACTION\"",
    f"{MERGE} RETURNING merge_action AS act, b",
    "MERGE INTO t AS q USING (SELECT 5 AS a) s ON q.a = s.a WHEN MATCHED THEN DELETE RETURNING merge_action, q.a",
    "MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN DO NOTHING RETURNING merge_action",
    "WITH s AS (SELECT 1 AS a) MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE RETURNING *",
    "INSERT INTO t VALUES (1, 7, 'q'), (5, 5, 'w') ON CONFLICT DO NOTHING RETURNING *",
    "INSERT INTO t VALUES (1, 7, 'q'), (6, 6, 'w') ON CONFLICT (a) DO UPDATE SET b = excluded.b + t.b RETURNING a, b * 2 AS d, c",
    "INSERT INTO t AS k VALUES (1, 7, 'q') ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE k.b > 100 RETURNING k.a",
    "INSERT INTO t BY NAME SELECT range AS a FROM range(6) ON CONFLICT DO NOTHING RETURNING a, c",
    "INSERT OR REPLACE INTO t VALUES (1, 8, 'r'), (7, 7, 's') RETURNING *",
    "INSERT OR IGNORE INTO t VALUES (1, 8, 'r') RETURNING a",
]  # fmt: skip


@pytest.fixture(params=["inline", "files"])
def con(lake: Any, request: pytest.FixtureRequest) -> Any:
    lake.execute(f"SET inline_rows = {1000 if request.param == 'inline' else 0}")
    lake.executescript(SETUP)
    return lake


@pytest.fixture
def other(con: Any, tmp_path: Path) -> Iterator[Any]:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as winner:
        yield winner


@pytest.mark.parametrize("sql", STATEMENTS)
def test_it_gives_what_duckdb_gives(con: Any, sql: str) -> None:
    with closing(duckdb.connect()) as plain:
        plain.execute(SETUP)
        got, want = con.execute(sql), plain.execute(sql)
        assert [(d[0], str(d[1])) for d in got.description] == [(d[0], str(d[1])) for d in want.description]
        rows = sorted(map(repr, want.fetchall()))
        assert got.rowcount == len(rows)
        assert sorted(map(repr, got.fetchall())) == rows
        assert sorted(con.execute("FROM t").fetchall()) == sorted(plain.execute("FROM t").fetchall())


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("MERGE INTO t USING (SELECT 5 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE RETURNING nothing", '"nothing" does not exist'),
        ("MERGE INTO t USING (SELECT 5 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE RETURNING", "RETURNING \\*"),
        ("MERGE INTO t USING (SELECT 5 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE RETURNING max(a)", "aggregate"),
        ("INSERT INTO t VALUES (1, 1, '') ON CONFLICT DO NOTHING RETURNING merge_action", '"merge_action" does not exist'),
    ],
)
def test_errors(con: Any, sql: str, words: str) -> None:
    before = sorted(con.execute("FROM t").fetchall())
    with pytest.raises(lakelite.ProgrammingError, match=words):
        con.execute(sql)
    assert sorted(con.execute("FROM t").fetchall()) == before


UPSERTS = [
    "INSERT INTO t VALUES (1, 5, 'u') ON CONFLICT (a) DO UPDATE SET b = t.b + excluded.b RETURNING b",
    "MERGE INTO t USING (SELECT 1 AS a, 5 AS b) s USING (a) WHEN MATCHED THEN UPDATE SET b = t.b + s.b RETURNING b",
]


@pytest.mark.parametrize("sql", UPSERTS)
def test_in_autocommit_it_is_of_what_landed(con: Any, other: Any, sql: str) -> None:
    with meeting(lambda: other.execute("UPDATE t SET b = 100 WHERE a = 1")):
        found = con.execute(sql)
    assert found.fetchall() == [(105,)] == other.execute("SELECT b FROM t WHERE a = 1").fetchall()


@pytest.mark.parametrize("sql", UPSERTS)
@pytest.mark.parametrize(("winner", "is_conflict"), [("UPDATE t SET b = 100 WHERE a = 1", True), ("UPDATE t SET b = 100 WHERE a = 2", False)])
def test_in_a_transaction_it_is_compared(con: Any, other: Any, sql: str, winner: str, is_conflict: bool) -> None:
    con.execute("BEGIN")
    assert con.execute(sql).fetchall() == [(15,)]
    other.execute(winner)
    if is_conflict:
        with pytest.raises(lakelite.TransactionConflict):
            con.execute("COMMIT")
    else:
        con.execute("COMMIT")
    assert other.execute("SELECT b FROM t WHERE a = 1").fetchall() == [(100 if is_conflict else 15,)]


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (8, 1, 'u') ON CONFLICT (a) DO UPDATE SET b = t.b + 1 RETURNING b",
    "MERGE INTO t USING (SELECT 8 AS a, 1 AS b) s USING (a) WHEN MATCHED THEN UPDATE SET b = t.b + 1 WHEN NOT MATCHED THEN INSERT BY NAME RETURNING b"])  # fmt: skip
def test_two_upserts_of_one_new_key_return_different_numbers(con: Any, other: Any, sql: str) -> None:
    with meeting(lambda: other.execute(sql)):
        assert con.execute(sql).fetchall() == [(2,)]
