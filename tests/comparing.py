"""Comparing lakelite with plain DuckDB."""

from __future__ import annotations

from typing import Any


def answer(con: Any, sql: str, parameters: Any = None) -> tuple[list[tuple[str, str]], list[Any]]:
    """Names and types of the columns, and the rows as a multiset that keeps NULL, NaN and types apart."""
    cursor = con.execute(sql, parameters)
    columns = [(d[0], str(d[1])) for d in cursor.description]
    rows = cursor.fetchall()
    return columns, rows if "order by" in sql else sorted(map(repr, rows))
