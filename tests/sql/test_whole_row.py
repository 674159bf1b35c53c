"""A DELETE or UPDATE runs over a scan that also gives row addresses: nothing of that may be seen by the statement."""

from __future__ import annotations

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
