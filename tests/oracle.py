"""The oracle: plain in-memory DuckDB tables on which transactions run one after the other. It shares no code with lakelite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

Rows = Counter[str]
_OVERWRITE = re.compile(r"INSERT OVERWRITE (\w+) (.*)", re.DOTALL)


def multiset(rows: Iterable[Sequence[Any]]) -> Rows:
    """Rows as a multiset; values that are equal but of another type (1 and True, 0.0 and -0.0) stay apart."""
    return Counter(repr(tuple(row)) for row in rows)


class Oracle:
    """Tables of one schema. A statement that fails undoes itself only, inside a transaction too."""

    def __init__(self) -> None:
        self.duck = duckdb.connect()
        self.duck.execute("ATTACH ':memory:' AS saved")
        self._saved: dict[str, str] | None = None
        self._together = False

    def close(self) -> None:
        self.duck.close()

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """Runs a statement; the number of rows that it changed, or -1. INSERT OVERWRITE is evaluated, then a DELETE, then an INSERT."""
        overwrite = _OVERWRITE.fullmatch(sql)
        if overwrite:
            return self._overwrite(overwrite[1], overwrite[2])
        found = self.duck.execute(sql, parameters) if parameters is not None else self.duck.execute(sql)
        rows = found.fetchall() if found.description else []
        return int(rows[0][0]) if len(rows) == 1 and isinstance(rows[0][0], int) else -1

    def _overwrite(self, table: str, query: str) -> int:
        parts = [f"CREATE TEMP TABLE new_content AS {query}", f"DELETE FROM {table}", f"INSERT INTO {table} FROM new_content"]
        parts.append("DROP TABLE new_content")
        return [self.run(part) for part in parts][2] if self._together else self.together(parts)[2]

    def together(self, statements: Iterable[str]) -> list[int]:
        """Runs all of them as one transaction or, if one fails, none; inside of `taken_back` they are a part of that."""
        if self._together:
            return [self.run(s) for s in statements]
        self._together = True
        self.duck.execute("BEGIN")
        try:
            counts = [self.run(s) for s in statements]
        except BaseException:
            self.duck.execute("ROLLBACK")
            raise
        finally:
            self._together = False
        self.duck.execute("COMMIT")
        return counts

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """What is done inside has never been."""
        self.duck.execute("BEGIN")
        self._together = True
        try:
            yield
        finally:
            self._together = False
            self.duck.execute("ROLLBACK")

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """An executemany: all of the parameter sets, or none. Returns the rows changed."""
        self.duck.execute("BEGIN")
        try:
            count = sum(self.run(sql, row) for row in rows)
        except BaseException:
            self.duck.execute("ROLLBACK")
            raise
        self.duck.execute("COMMIT")
        return count

    def definitions(self) -> dict[str, str]:
        found = self.duck.execute("SELECT table_name, sql FROM duckdb_tables() WHERE database_name = 'memory' ORDER BY 1").fetchall()
        return dict(found)

    def tables(self) -> list[str]:
        return [n for (n,) in self.duck.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'memory' ORDER BY 1").fetchall()]

    def content(self, table: str) -> Rows:
        return multiset(self.duck.execute(f"SELECT * FROM {table}").fetchall())

    def contents(self) -> dict[str, Rows]:
        return {t: self.content(t) for t in self.tables()}

    def columns(self, table: str) -> list[str]:
        return [d[0] for d in self.duck.execute(f"SELECT * FROM {table} LIMIT 0").description]

    def begin(self) -> None:
        """Keeps all tables, so that `rollback` can bring them back."""
        self._saved = self.definitions()
        for name in self._saved:
            self.duck.execute(f"CREATE OR REPLACE TABLE saved.{name} AS FROM memory.{name}")

    def rollback(self) -> None:
        assert self._saved is not None
        for name in self.tables():
            self.duck.execute(f"DROP TABLE {name}")
        for name, sql in self._saved.items():
            self.duck.execute(sql)
            self.duck.execute(f"INSERT INTO memory.{name} FROM saved.{name}")
        self._saved = None

    def commit(self) -> None:
        self._saved = None
