"""What is kept of inline rows stays small, however many tables come and go, and is right."""

from __future__ import annotations

from typing import Any

import pytest

import lakelite
from lakelite.storage import cache


def _tables(con: Any) -> int:
    [(count,)] = con._session.lake.engine.do("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'inline_%'")
    assert isinstance(count, int)
    return count


def test_a_session_that_makes_one_table_after_the_other_does_not_keep_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each took 20 to 100 kB for as long as the session lived: 8,000 times CREATE OR REPLACE, INSERT and UPDATE grew by 800 MB."""
    monkeypatch.setattr(cache, "INLINE_TABLES_KEPT", 5)
    with lakelite.connect(autocommit=True) as con:
        con.execute("CREATE TABLE other AS SELECT 7 AS a")
        most = 0
        for n in range(20):
            con.execute(
                f"CREATE OR REPLACE TABLE t (a INTEGER, b{n} INTEGER); INSERT INTO t VALUES ({n}, 1), (-1, 1); UPDATE t SET b{n} = 2 WHERE a = {n}"
            )
            assert con.execute("FROM t ORDER BY a").fetchall() == [(-1, 1), (n, 2)]
            assert con.execute("FROM other").fetchall() == [(7,)]
            most = max(most, _tables(con))
        assert 5 <= most <= 8, most


def test_many_tables_at_once_are_all_read_whatever_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "INLINE_TABLES_KEPT", 2)
    with lakelite.connect(autocommit=True) as con:
        con.execute("; ".join(f"CREATE TABLE t{n} AS SELECT {n} AS a" for n in range(6)))
        everything = " UNION ALL ".join(f"FROM t{n}" for n in range(6))
        for _ in range(2):
            open_result = con.execute(everything)
            assert con.execute("SELECT a FROM t3").fetchall() == [(3,)]
            assert sorted(open_result.fetchall()) == [(n,) for n in range(6)]
        con.execute("BEGIN; INSERT INTO t0 VALUES (9); UPDATE t1 SET a = 8; SAVEPOINT s; DELETE FROM t2")
        assert sorted(con.execute(everything).fetchall()) == [(0,), (3,), (4,), (5,), (8,), (9,)]
        con.execute("ROLLBACK TO s; COMMIT")
        assert sorted(con.execute(everything).fetchall()) == [(0,), (2,), (3,), (4,), (5,), (8,), (9,)]
