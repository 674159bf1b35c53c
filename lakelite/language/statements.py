"""Typed statements: what `parse` makes of SQL text. Values only.

User SQL that DuckDB will run is never regenerated: it is kept as `Sql`, the user's own characters with holes where a
time travel clause stands. Parameters are already normalised to DuckDB's `$1` / `$name` form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from lakelite.language.branch_statements import MergeBranch as MergeBranch
from lakelite.language.branch_statements import OfBranches as OfBranches


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


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, VALUES, FROM-first, SUMMARIZE, PIVOT, EXPLAIN …: DuckDB runs it. `counts`: set when it is exactly
    `SELECT count(*) FROM name`, which the catalog can answer."""

    sql: Sql
    counts: Name | None = None


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
class Delete:
    """`where`: the condition without the word WHERE. `row_local`: resolver.md section 1. `alias`: or None.

    `sources`: what stands behind USING, or None. `returning` as in Insert.
    """

    target: Name
    alias: str | None
    where: Sql | None
    row_local: bool
    ctes: Sql | None
    sources: Sql | None = None
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
    sources: Sql | None = None
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


@dataclass(frozen=True, slots=True)
class Export:
    """EXPORT DATABASE: the whole lake as SQL and Parquet, into a directory. `path` or `parameter` says which."""

    path: str | None
    parameter: str | None


@dataclass(frozen=True, slots=True)
class Import:
    """IMPORT DATABASE: what EXPORT wrote into a directory, or the tables of a DuckDB or SQLite file. `path` or `parameter` says which."""

    path: str | None
    parameter: str | None


@dataclass(frozen=True, slots=True)
class Begin:
    """BEGIN; `isolation` is a level's name, or None: the connection's."""

    isolation: str | None
    read_only: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """COMMIT."""


@dataclass(frozen=True, slots=True)
class ExplainCommit:
    """EXPLAIN COMMIT: what a COMMIT would do now."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """ROLLBACK."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """SAVEPOINT name."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    """RELEASE [SAVEPOINT] name. `offset`: where the name stands in the statement's text."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class RollbackTo:
    """ROLLBACK TO [SAVEPOINT] name; `offset` as in Release."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class SetOption:
    """SET name = value; RESET name has `value` None. `value` is the SQL text of the value, with parameters in DuckDB's form.

    `for_lake`: SET GLOBAL, for all connections to come.
    """

    name: str
    value: str | None
    for_lake: bool = False


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES [FROM schema]; `everything`: SHOW ALL TABLES."""

    schema: str | None
    everything: bool


@dataclass(frozen=True, slots=True)
class ShowSchemas:
    """SHOW SCHEMAS."""


@dataclass(frozen=True, slots=True)
class ShowSettings:
    """SHOW ALL (name None) or SHOW name."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """SHOW CREATE TABLE or VIEW t; `at` as in DescribeTable."""

    target: Name
    at: TimeTravel | None = None


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """DESCRIBE t. `at`: the same table with a time travel clause behind it, or None."""

    target: Name
    at: TimeTravel | None = None


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """DESCRIBE HISTORY [t] [LIMIT n]; without a table: of the whole lake."""

    target: Name | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM [t] [RETAIN n HOURS] [DRY RUN]; `retain_hours` None: the setting."""

    target: Name | None
    retain_hours: float | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of ZORDER BY. `offset`: where its name stands."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE t [WHERE …] [ZORDER BY (…)]; `where` is row-local."""

    target: Name
    where: Sql | None
    zorder: tuple[SortColumn, ...]


@dataclass(frozen=True, slots=True)
class CheckLake:
    """CHECK LAKE."""


Standalone = SetOption | ShowTables | ShowSchemas | ShowSettings | ShowCreateTable | DescribeTable | DescribeHistory | Vacuum | CheckLake

Operation = (
    Query | CreateSchema | DropSchema | CreateTable | CreateTableAs | CreateTableLike | DropTable | AlterTable | TuneTable
    | CreateView | DropView | RenameView | CommentOn
    | Insert | Delete | Update | Merge | Truncate | RestoreTable | CopyFrom | Append | CopyTo
    | Begin | Commit | ExplainCommit | Rollback | Savepoint | Release | RollbackTo | Optimize | Export | Import
    | Standalone | MergeBranch | OfBranches
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a script. `text`: as the user wrote it, without the semicolon; `start`: where in the script (characters).

    `parameters`: all parameter names in order of first use: "1", "2", … for `?` and `$1`, else the name.
    """

    text: str
    start: int
    operation: Operation
    parameters: tuple[str, ...]
