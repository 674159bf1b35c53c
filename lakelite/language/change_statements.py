"""Typed statements that change the rows of tables. Values only; `statements.py` has the rest."""

from __future__ import annotations

from typing import Any, Literal

from lakelite.language.texts import Name, Sql, TimeTravel
from lakelite.records import dataclass


@dataclass(frozen=True, slots=True)
class Assignment:
    """SET column = value; a `value` of None is DEFAULT."""

    column: str
    value: Sql | None
    offset: int


@dataclass(frozen=True, slots=True)
class OnConflict:
    """What becomes of a row whose key is there already: nothing, DO UPDATE SET `assignments` [WHERE `where`], or OR REPLACE.

    `columns`: the conflict target, or None. `text`: the clause as DuckDB takes it behind the source; `before`: OR IGNORE or OR REPLACE instead.
    """

    columns: tuple[str, ...] | None
    action: Literal["nothing", "update", "replace"]
    assignments: tuple[Assignment, ...] = ()
    where: Sql | None = None
    text: Sql | None = None

    @property
    def before(self) -> str:
        return "" if self.text is not None else "OR REPLACE " if self.action == "replace" else "OR IGNORE "


@dataclass(frozen=True, slots=True)
class Insert:
    """`source`: the query or VALUES list; None is DEFAULT VALUES. `is_values`: the source is a VALUES list.

    `ctes`: the text `WITH …` that stood in front of INSERT, or None (a WITH that belongs to the source query stays in it).
    `returning`: the list behind RETURNING, or None.
    """

    target: Name
    overwrite: bool
    columns: tuple[str, ...] | None
    by_name: bool
    source: Sql | None
    is_values: bool
    ctes: Sql | None
    returning: Sql | None = None
    alias: str | None = None
    on_conflict: OnConflict | None = None


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One table, query, file or function among sources. `name`: what its rows are called."""

    name: str
    sql: Sql


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of an UPDATE or DELETE, and each of them; none where not all is understood."""

    sql: Sql
    items: tuple[SourceItem, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """`where`: the condition without the word WHERE. `row_local`: resolver.md section 1. `alias`: or None.

    `sources`: what stands behind USING, or None. `returning` as in Insert.
    """

    target: Name
    alias: str | None
    where: Sql | None
    row_local: bool
    ctes: Sql | None
    sources: Sources | None = None
    returning: Sql | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE t SET …; the rest as in Delete. `sources`: what stands behind FROM."""

    target: Name
    alias: str | None
    assignments: tuple[Assignment, ...]
    where: Sql | None
    row_local: bool
    ctes: Sql | None
    sources: Sources | None = None
    returning: Sql | None = None


MergeWhen = Literal["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]


@dataclass(frozen=True, slots=True)
class MergeClause:
    """WHEN … [AND condition] THEN action. `columns`: those that are written, or None: all of the table, in order.

    `values`: of these columns (None: DEFAULT), or the message of an error; None: the columns of the source, `by_name` or by position.
    """

    when: MergeWhen
    condition: Sql | None
    action: Literal["update", "delete", "insert", "nothing", "error"]
    offset: int
    columns: tuple[str, ...] | None = None
    values: tuple[Sql | None, ...] | None = None
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO t USING source ON condition | USING (columns) WHEN …; of `on` and `using` one is given.

    `source_name`: by what the rows of the source are known; its schema counts where it `is_aliased` not. `behind`: all text behind the source, up to
    RETURNING. `returning` as in Insert. `joined`: by what the tables of a source are known that is a join without an alias.
    """

    target: Name
    alias: str | None
    source: Sql
    source_name: Name
    is_aliased: bool
    on: Sql | None
    using: tuple[str, ...]
    clauses: tuple[MergeClause, ...]
    behind: Sql
    ctes: Sql | None
    returning: Sql | None = None
    joined: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE t."""

    target: Name


@dataclass(frozen=True, slots=True)
class RestoreTable:
    """RESTORE [TABLE] t TO VERSION AS OF n, TO TIMESTAMP AS OF …; `version.table` is the target."""

    target: Name
    version: TimeTravel


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """COPY t [(columns)] FROM 'path' [(options)]. `path`: a literal, or None when it is the parameter `path_parameter`.

    `options`: (name folded to lower case, SQL text of the value or None), in order.
    """

    target: Name
    columns: tuple[str, ...] | None
    path: str | None
    path_parameter: str | None
    options: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Append:
    """No text of SQL, but `con.append`. `rows`: what the caller handed over (storage.foreign.Rows)."""

    target: Name
    rows: Any


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY (query) TO … and COPY t TO …: DuckDB runs it whole, over the transaction's snapshot. `reads`: only the source, for its tables."""

    sql: Sql
    reads: Sql
