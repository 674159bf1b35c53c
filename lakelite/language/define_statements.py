"""Typed statements that define tables, views and schemas. Values only; `statements.py` has the rest."""

from __future__ import annotations

from typing import Literal

from lakelite.language.texts import Name, Sql
from lakelite.records import dataclass


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] name."""

    name: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP SCHEMA [IF EXISTS] name [CASCADE]."""

    name: str
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True)
class Option:
    """`name = value` of WITH or SET, where `value` is text; RESET has None. `offset`: where the name stands."""

    name: str
    value: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """A column, or year(c), month(c), day(c), hour(c), bucket(n, c), of PARTITIONED BY; `transform` is the function's name. `offset` as in Option."""

    column: str
    transform: str | None
    buckets: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """What stands behind the columns of a CREATE TABLE: PARTITIONED BY (…) and WITH (…)."""

    partitioned_by: tuple[PartitionBy, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`body`: the parenthesised column list, as the user wrote it; DuckDB reads it. `temporary`: it is the connection's, not the lake's."""

    target: Name
    or_replace: bool
    if_not_exists: bool
    body: str
    tuning: Tuning = Tuning()
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """`columns`: new names for the query's columns, or None. `with_data`: False for WITH NO DATA."""

    target: Name
    or_replace: bool
    if_not_exists: bool
    columns: tuple[str, ...] | None
    query: Sql
    with_data: bool
    tuning: Tuning = Tuning()
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS] a, b."""

    targets: tuple[Name, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CreateTableLike:
    """CREATE TABLE new (LIKE old [INCLUDING ALL]); `whole`: INCLUDING ALL, defaults, constraints and comments too."""

    target: Name
    or_replace: bool
    if_not_exists: bool
    like: Name
    whole: bool


@dataclass(frozen=True, slots=True)
class CreateView:
    """`names`: those of the first columns, as listed behind the view's name. `query`: as the user wrote it; `sql`: the same."""

    target: Name
    or_replace: bool
    if_not_exists: bool
    names: tuple[str, ...]
    query: str
    sql: Sql
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP VIEW [IF EXISTS] a, b."""

    targets: tuple[Name, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class RenameView:
    """ALTER VIEW [IF EXISTS] v RENAME TO new_name."""

    target: Name
    if_exists: bool
    new_name: str


@dataclass(frozen=True, slots=True)
class CommentOn:
    """COMMENT ON TABLE or VIEW `target`, or on a `column` of it. `comment`: a literal, or NULL. `offset`: where the column's name stands."""

    target: Name
    column: str | None
    comment: str
    offset: int = 0


Alteration = Literal[
    "add", "drop", "rename", "rename table", "type", "default", "not null", "add constraint", "drop constraint", "drop constraint if exists"
]


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE [IF EXISTS] t change. `what` it changes of `path`: a column, or its parts down to a nested field (none: the table).

    `change`: the text behind the table's name. `new_name`: of RENAME, or of a constraint; `using`: the expression of TYPE … USING, the text
    of a new constraint, or None.
    """

    target: Name
    if_exists: bool
    what: Alteration
    path: tuple[str, ...]
    change: str
    new_name: str | None = None
    using: str | None = None


@dataclass(frozen=True, slots=True)
class TuneTable:
    """ALTER TABLE t SET (option = …), RESET (option), SET PARTITIONED BY (…), RESET PARTITIONED BY. What is None stays."""

    target: Name
    if_exists: bool
    options: tuple[Option, ...] | None = None
    partitioned_by: tuple[PartitionBy, ...] | None = None
