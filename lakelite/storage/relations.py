"""DuckDB's relations: the form in which it hands out columns and Arrow without a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb


def relation(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any]) -> duckdb.DuckDBPyRelation:
    """One statement that gives rows, bound. Where that fails it is bound again as a statement, whose error says in which place."""
    try:
        return cursor.sql(sql, params=dict(parameters))
    except (duckdb.BinderException, duckdb.CatalogException):
        cursor.execute(f"EXPLAIN {sql}", dict(parameters)).fetchall()
        raise
