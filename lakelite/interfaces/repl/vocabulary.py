"""The names that can be completed: tables with their columns, schemas, settings, versions, functions.

They are asked of the connection when they are first wanted, and again after `forget`. Never raises: what cannot be asked is not
offered. The functions are DuckDB's own; a thread looks them up, so that nobody waits for them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from lakelite.errors import Error
from lakelite.interfaces.runner import Connection
from lakelite.language.tokens import folded
from lakelite.records import dataclass

VERSIONS = 200
_FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name ~ '^[a-z]' ORDER BY 1"
_RELATIONS = "SHOW ALL TABLES"
OURS = ("table_changes",)
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view. `columns`: name and type of each."""

    schema: str
    name: str
    columns: Columns


class Vocabulary:
    """What one connection can name now. Used by one thread at a time, but for what `warm_up` begins."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked: dict[str, list[Sequence[Any]]] = {}
        self._functions: tuple[str, ...] = OURS

    def forget(self) -> None:
        """A statement ran: tables, settings and versions may be others."""
        self._asked = {}

    def warm_up(self) -> None:
        """Begins to load what the first completion would wait for, and DuckDB's functions; until these are there, ours are offered."""
        threading.Thread(target=self._warm, args=(self._asked,), name="lakelite names").start()

    def _warm(self, asked: dict[str, list[Sequence[Any]]]) -> None:
        """`asked`: of the prompt at which it began; a later one asks for itself."""
        import duckdb

        asked[_RELATIONS] = _fetched(self._connection, _RELATIONS)
        with duckdb.connect(config={"threads": "1"}) as own:
            found = own.execute(_FUNCTIONS).fetchall()
        self._functions = tuple(sorted([*OURS, *(name for (name,) in found)]))

    @property
    def functions(self) -> tuple[str, ...]:
        return self._functions

    def relations(self) -> list[Relation]:
        """The tables and views of all schemas; without the system views, which `system_views` gives."""
        return [Relation(row[1], row[2], tuple(zip(row[3], row[4], strict=True))) for row in self._rows(_RELATIONS)]

    def system_views(self) -> list[Relation]:
        """The views of schema `lake`."""
        from lakelite.catalog.system import VIEWS
        from lakelite.model import RESERVED_SCHEMA

        return [Relation(RESERVED_SCHEMA, name, view.columns) for name, view in VIEWS.items()]

    def schemas(self) -> list[str]:
        return [row[1] for row in self._rows("SHOW SCHEMAS")]

    def branches(self) -> list[str]:
        return [row[0] for row in self._rows("SHOW BRANCHES")]

    def settings(self) -> list[tuple[str, str, str]]:
        """Name, value and description of each."""
        return [(row[0], row[1], row[2]) for row in self._rows("SHOW ALL")]

    def versions(self) -> list[tuple[int, str]]:
        """The newest versions, newest first, each with what it is."""
        return [(row[0], f"{row[1]:%Y-%m-%d %H:%M} {row[3]}") for row in self._rows(f"DESCRIBE HISTORY LIMIT {VERSIONS}")]

    def find(self, schema: str | None, name: str) -> Relation | None:
        """The table of that name; without a schema one of `main`, or else of any."""
        from lakelite.model import MAIN_SCHEMA

        every = [*self.relations(), *self.system_views()]
        same = [r for r in every if folded(r.name) == folded(name) and (schema is None or folded(r.schema) == folded(schema))]
        return min(same, key=lambda r: r.schema != MAIN_SCHEMA, default=None)

    def _rows(self, statement: str) -> list[Sequence[Any]]:
        if statement not in self._asked:
            self._asked[statement] = _fetched(self._connection, statement)
        return self._asked[statement]


def _fetched(connection: Connection, statement: str) -> list[Sequence[Any]]:
    """The rows; none where the lake cannot be asked, which the next statement will say."""
    found: list[Sequence[Any]] = []
    try:
        for cursor in connection.statements(statement):
            while rows := cursor.fetchmany(10_000):
                found += rows
    except Error:
        return []
    return found
