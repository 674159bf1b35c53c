"""SQLAlchemy 2.1 over lakelite: `create_engine("lakelite:///shop.lake")`.

Owns: the dialect, DuckDB's types for it, `insert` with ON CONFLICT, and `at_version`. Imported by SQLAlchemy (entry point
`sqlalchemy.dialects`) or by whoever uses these names; nothing else of lakelite needs SQLAlchemy.
"""

from __future__ import annotations

from lakelite.interfaces.sqlalchemy import needed as needed  # isort: skip  (before what imports SQLAlchemy)
from lakelite.interfaces.sqlalchemy.dialect import LakeliteDialect
from lakelite.interfaces.sqlalchemy.statements import Insert, at_version, insert
from lakelite.interfaces.sqlalchemy.types import HUGEINT, INTERVAL, MAP, STRUCT, TINYINT, UBIGINT, UHUGEINT, UINTEGER, USMALLINT, UTINYINT, Native

__all__ = [
    "HUGEINT", "INTERVAL", "MAP", "STRUCT", "TINYINT", "UBIGINT", "UHUGEINT", "UINTEGER", "USMALLINT", "UTINYINT",
    "Insert", "LakeliteDialect", "Native", "at_version", "insert",
]  # fmt: skip
