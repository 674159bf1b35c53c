"""A DELETE or UPDATE runs over a scan that also gives row addresses: nothing of that may be seen by the statement."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import lakelite
from lakelite.errors import ProgrammingError

SETUP = (
    "CREATE TABLE t (a INTEGER, b INTEGER)",
    "INSERT INTO t VALUES (1, 9), (8, 9), (3, 4)",
    "DELETE FROM t WHERE a = 3",
    "CREATE SCHEMA s",
    "CREATE TABLE s.t (a INTEGER)",
    "INSERT INTO s.t VALUES (1)",
)
RIGHT = (
    "DELETE FROM t WHERE t::VARCHAR LIKE '%1%'",
    "DELETE FROM t WHERE t = {'a': 1, 'b': 9}",
    "DELETE FROM t WHERE hash(t) = hash({'a': 1, 'b': 9})",
    "DELETE FROM t AS q WHERE q.a = 1 AND q::VARCHAR LIKE '%9%'",
    "UPDATE t SET a = length(t::VARCHAR)",
    "UPDATE t SET a = (SELECT max(a) FROM t) + 1 WHERE t.a = 1",
    "DELETE FROM t WHERE main.t.a = 1",
)
WRONG = (
    "DELETE FROM t WHERE _lake_position = 0",
    "UPDATE t SET a = _lake_position",
    "UPDATE t SET a = position",
    "UPDATE t SET a = 9 WHERE source > 0",
    "UPDATE t SET a = row_id",
    "UPDATE t SET a = _lake_s",
    "DELETE FROM t WHERE COLUMNS(*) IS NOT NULL",
    "UPDATE t SET a = unnest([1, 2])",
    "UPDATE t SET a = row_number() OVER ()",
    "UPDATE t SET a = sum(b)",
)


@pytest.fixture(params=["inline", "parquet"])
def both(request):
    """The same tables in a lake and in DuckDB."""
    with lakelite.connect(autocommit=True) as lake, duckdb.connect() as plain:
        if request.param == "parquet":
            lake.execute("SET inline_rows = 0")
        for statement in SETUP:
            lake.execute(statement)
            plain.execute(statement).fetchall()
        yield lake, plain


@pytest.mark.parametrize("statement", RIGHT)
def test_as_in_duckdb(both, statement):
    lake, plain = both
    lake.execute(statement)
    plain.execute(statement).fetchall()
    assert sorted(lake.execute("FROM t").fetchall()) == sorted(plain.execute("FROM t").fetchall())


@pytest.mark.parametrize("statement", WRONG)
def test_refused_as_in_duckdb(both, statement):
    lake, plain = both
    with pytest.raises(duckdb.Error):
        plain.execute(statement).fetchall()
    with pytest.raises(ProgrammingError):
        lake.execute(statement)
    assert sorted(lake.execute("FROM t").fetchall()) == [(1, 9), (8, 9)]


def test_a_qualified_name_never_means_the_inner_table(both):
    """`main.t.a` in a subquery over s.t is either the outer table's or an error, never that of s.t."""
    lake, _ = both
    with pytest.raises(ProgrammingError):
        lake.execute("DELETE FROM t WHERE EXISTS (SELECT 1 FROM s.t WHERE s.t.a = main.t.a)")
    assert len(lake.execute("FROM t").fetchall()) == 2


def test_the_columns_that_a_change_does_not_set_stay_bit_for_bit(tmp_path: Path) -> None:
    """DuckDB's optimizer makes an arg_min of the whole row of "the first of each group": a -0.0 came out as 0.0."""
    changes = [
        "UPDATE t SET w = 'a' FROM range(5) q(r) WHERE t.k = q.r",
        "UPDATE t SET w = 'a' FROM (VALUES (1), (1), (1)) q(r) WHERE t.k = q.r",
        "MERGE INTO t USING (VALUES (1), (1)) q(r) ON t.k = q.r WHEN MATCHED THEN UPDATE SET w = 'a'",
        "INSERT INTO t VALUES (1, 5, 'a'), (1, 6, 'b') ON CONFLICT (k) DO UPDATE SET w = excluded.w",
        "INSERT INTO t SELECT 1, '-0'::DOUBLE, 'a' FROM range(3) ON CONFLICT (k) DO UPDATE SET v = excluded.v, w = excluded.w",
    ]
    for number, change in enumerate(changes):
        with lakelite.connect(tmp_path / str(number), autocommit=True) as con:
            con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v DOUBLE, w VARCHAR); INSERT INTO t VALUES (1, '-0'::DOUBLE, 'x')")
            con.execute(change)
            assert con.execute("SELECT v::VARCHAR, w FROM t").fetchall() == [("-0.0", "a")], change
