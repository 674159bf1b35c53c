"""Typed statements: what `parse` makes of SQL text. Values only. Here are those of transactions, of upkeep and of looking; all others,
by kind in modules of their own, are names of this one, too: the rest of lakelite says `st.Insert`.
"""

from __future__ import annotations

from lakelite.language.branch_statements import MergeBranch as MergeBranch
from lakelite.language.branch_statements import OfBranches as OfBranches
from lakelite.language.branch_statements import ShowBranches as ShowBranches
from lakelite.language.branch_statements import ShowTags as ShowTags
from lakelite.language.change_statements import Append as Append
from lakelite.language.change_statements import Assignment as Assignment
from lakelite.language.change_statements import CopyFrom as CopyFrom
from lakelite.language.change_statements import CopyTo as CopyTo
from lakelite.language.change_statements import Delete as Delete
from lakelite.language.change_statements import Insert as Insert
from lakelite.language.change_statements import Merge as Merge
from lakelite.language.change_statements import MergeClause as MergeClause
from lakelite.language.change_statements import MergeWhen as MergeWhen
from lakelite.language.change_statements import OnConflict as OnConflict
from lakelite.language.change_statements import RestoreTable as RestoreTable
from lakelite.language.change_statements import SourceItem as SourceItem
from lakelite.language.change_statements import Sources as Sources
from lakelite.language.change_statements import Truncate as Truncate
from lakelite.language.change_statements import Update as Update
from lakelite.language.define_statements import Alteration as Alteration
from lakelite.language.define_statements import AlterTable as AlterTable
from lakelite.language.define_statements import CommentOn as CommentOn
from lakelite.language.define_statements import CreateSchema as CreateSchema
from lakelite.language.define_statements import CreateTable as CreateTable
from lakelite.language.define_statements import CreateTableAs as CreateTableAs
from lakelite.language.define_statements import CreateTableLike as CreateTableLike
from lakelite.language.define_statements import CreateView as CreateView
from lakelite.language.define_statements import DropSchema as DropSchema
from lakelite.language.define_statements import DropTable as DropTable
from lakelite.language.define_statements import DropView as DropView
from lakelite.language.define_statements import Option as Option
from lakelite.language.define_statements import PartitionBy as PartitionBy
from lakelite.language.define_statements import RenameView as RenameView
from lakelite.language.define_statements import TuneTable as TuneTable
from lakelite.language.define_statements import Tuning as Tuning
from lakelite.language.texts import Hole as Hole
from lakelite.language.texts import Name as Name
from lakelite.language.texts import Sql as Sql
from lakelite.language.texts import TableChanges as TableChanges
from lakelite.language.texts import TimeTravel as TimeTravel
from lakelite.records import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, VALUES, FROM-first, SUMMARIZE, PIVOT, EXPLAIN …: DuckDB runs it. `counts`: set when it is exactly
    `SELECT count(*) FROM name`, which the catalog can answer."""

    sql: Sql
    counts: Name | None = None


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
    """DESCRIBE HISTORY [t] [LIMIT n]; without a table: of the whole lake. `limit`: a text is the name of a parameter."""

    target: Name | None
    limit: int | str | None


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM [t] [RETAIN [n HOURS] [AND] [n VERSIONS]] [DRY RUN]; neither of both: the setting; a text is the name of a parameter."""

    target: Name | None
    retain_hours: float | str | None
    dry_run: bool
    retain_versions: int | str | None = None


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
    """CHECK LAKE [REPAIR]."""

    repair: bool = False


@dataclass(frozen=True, slots=True)
class Backup:
    """BACKUP TO: the whole lake, in another directory. `path` or `parameter` says which."""

    path: str | None
    parameter: str | None


Standalone = SetOption | ShowTables | ShowSchemas | ShowSettings | ShowCreateTable | DescribeTable | DescribeHistory | Vacuum | CheckLake


Operation = (
    Query | CreateSchema | DropSchema | CreateTable | CreateTableAs | CreateTableLike | DropTable | AlterTable | TuneTable
    | CreateView | DropView | RenameView | CommentOn
    | Insert | Delete | Update | Merge | Truncate | RestoreTable | CopyFrom | Append | CopyTo
    | Begin | Commit | ExplainCommit | Rollback | Savepoint | Release | RollbackTo | Optimize | Export | Import | Backup
    | Standalone | MergeBranch | OfBranches
)  # fmt: skip


LOOKS = (
    Query, ShowTables, ShowSchemas, ShowSettings, ShowCreateTable, ShowBranches, ShowTags, DescribeTable, DescribeHistory, ExplainCommit,
)  # fmt: skip
"""What only looks: it may run a second time."""
_WITH_ROWS = (
    *LOOKS, Vacuum, Optimize, CheckLake, Export, Import, Backup, MergeBranch,
)  # fmt: skip


def may_give_rows(operation: Operation) -> bool:
    """Whether a statement can have a result: a query, what shows or reports, and a change with RETURNING."""
    return isinstance(operation, _WITH_ROWS) or getattr(operation, "returning", None) is not None


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a script. `text`: as the user wrote it, without the semicolon; `start`: where in the script (characters).

    `parameters`: all parameter names in order of first use: "1", "2", … for `?` and `$1`, else the name.
    """

    text: str
    start: int
    operation: Operation
    parameters: tuple[str, ...]
