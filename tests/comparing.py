"""Comparing lakelite with plain DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from oracle import multiset

from lakelite.errors import DataError, IntegrityError, ProgrammingError


def answer(con: Any, sql: str, parameters: Any = None) -> tuple[list[tuple[str, str]], list[Any]]:
    """Names and types of the columns, and the rows as a multiset that keeps NULL, NaN and types apart."""
    cursor = con.execute(sql, parameters)
    columns = [(d[0], str(d[1])) for d in cursor.description]
    rows = cursor.fetchall()
    return columns, rows if "order by" in sql else sorted(map(repr, rows))


def both(con: Any, duck: Any, sql: str) -> None:
    """Runs a statement here and in DuckDB: the same errors, numbers of added rows, and rows of t afterwards."""
    try:
        found = duck.execute(sql).fetchall()
        failed = None
    except duckdb.Error as error:
        failed = error
    if failed is None:
        count = con.execute(sql).rowcount
        assert not sql.startswith("INSERT") or count == found[0][0], sql
    else:
        with pytest.raises(IntegrityError if isinstance(failed, duckdb.ConstraintException) else (ProgrammingError, DataError)):
            con.execute(sql)
    assert multiset(con.execute("FROM t").fetchall()) == multiset(duck.execute("FROM t").fetchall()), sql
