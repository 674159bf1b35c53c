"""Pieces of a statement's text: names, and SQL of the user's with its holes. Values only.

User SQL that DuckDB will run is never regenerated: it is kept as `Sql`, the user's own characters with holes where a
time travel clause stands. Parameters are already normalised to DuckDB's `$1` / `$name` form.
"""

from __future__ import annotations

from typing import Literal

from lakelite.records import dataclass


@dataclass(frozen=True, slots=True)
class Name:
    """A (possibly qualified) table name as the user wrote it, unquoted. `offset`: where it stands in the statement's text."""

    schema: str | None
    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """`name AT (VERSION => n)` and its other spellings. `moment`: the user's expression, run by DuckDB without any table."""

    table: Name
    by: Literal["version", "timestamp", "branch", "tag"]
    moment: str


@dataclass(frozen=True, slots=True)
class TableChanges:
    """`table_changes(table, first, last)`: three expressions of the user's, run as `TimeTravel.moment` is. `offset` as in Name."""

    table: str
    first: str
    last: str
    offset: int


Hole = TimeTravel | TableChanges


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of the user's SQL: text and holes (where history is read) in order; `parameters`: names used in it, without `$`.

    `offset`: where its first part begins in the statement's text, so that an error can be shown at its place.
    """

    parts: tuple[str | Hole, ...]
    parameters: tuple[str, ...]
    offset: int
