"""The nouns: what a lake, a table and a fragment are. Frozen values; no input or output, nothing that knows how they are stored.

Units: times are microseconds since 1970 in UTC (`_us`), sizes are bytes (`_bytes`), positions count from 0.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from datetime import date
from decimal import Decimal
from typing import Literal, get_args

from lakelite.records import dataclass

Storage = Literal["parquet", "inline"]
Isolation = Literal["serializable", "write serializable", "snapshot"]
Comparison = Literal["=", "<", "<=", ">", ">=", "is null", "is not null"]
ConstraintKind = Literal["check", "unique", "primary key"]
Transform = Literal["identity", "year", "month", "day", "hour", "bucket"]
Comparable = bool | int | float | Decimal | str | date  # a datetime is a date

ZONED = "TIMESTAMP WITH TIME ZONE"
MAIN_BRANCH = "main"
MAIN_BRANCH_ID = 1
MAIN_SCHEMA = "main"
DATABASE = "memory"  # what current_database() says: DuckDB's name of the one that holds the lake's tables
RESERVED_SCHEMA = "lake"
SYSTEM_SCHEMAS = frozenset({RESERVED_SCHEMA, "information_schema", "pg_catalog"})
ROW_ID_COLUMN = "_row_id"
ROW_ID_FIELD = 2147483540  # the field id that Iceberg v3 reserves for _row_id


ISOLATION_LEVELS: tuple[Isolation, ...] = get_args(Isolation)
DEFAULT_LEVEL: Isolation = "write serializable"

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_FOLDED = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def fold(name: str) -> str:
    """The form under which two identifiers are the same one. ASCII only, as DuckDB and SQLite both do; the one place that knows."""
    return name.translate(_FOLDED)


def level_of(name: str) -> Isolation | None:
    """The isolation level of that name, with spaces, hyphens or underscores, in any case; None if there is none."""
    wanted = " ".join(re.split(r"[\s_-]+", fold(name.strip())))
    return next((level for level in ISOLATION_LEVELS if level == wanted), None)


def decimal_of(type_text: str) -> tuple[int, int] | None:
    """Width and scale of a DECIMAL type, by DuckDB's name for it; None for any other type."""
    found = _DECIMAL.fullmatch(type_text)
    return (int(found[1]), int(found[2])) if found else None


def quote(name: str) -> str:
    """`name` as a quoted SQL identifier, right for DuckDB and SQLite. The one quoting function for identifiers."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """`text` as a quoted SQL string, right for DuckDB and SQLite. For paths and names that cannot be bound as parameters."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Field:
    """A node of a column's type as it is *stored* (types.py maps declared to stored types), found by `field_id`, never by name.

    `initial`: the stored value, as DuckDB's text, of rows in fragments that lack the field, since it was added later. None: NULL.
    """

    field_id: int
    name: str
    type: str
    children: tuple[Field, ...] = ()
    initial: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `type` is the declared DuckDB type; `stored` the tree that the files hold; `default` SQL text or None.

    `hidden`: it is not seen by a transaction that is moved to a snapshot where it is new (transaction/binding.py). `comment`: of COMMENT ON.
    """

    name: str
    type: str
    stored: Field
    nullable: bool = True
    default: str | None = None
    hidden: bool = False
    comment: str | None = None

    @property
    def field_id(self) -> int:
        return self.stored.field_id

    @property
    def declared(self) -> str:
        """What stands behind the column's name in a CREATE TABLE."""
        default = "" if self.default is None else f" DEFAULT ({self.default})"
        return f"{self.type}{'' if self.nullable else ' NOT NULL'}{default}"


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of snapshots with a name."""

    branch_id: int
    name: str


MAIN = Branch(MAIN_BRANCH_ID, MAIN_BRANCH)


@dataclass(frozen=True, slots=True)
class Schema:
    """A namespace of tables."""

    schema_id: int
    name: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the rows of a table have to meet, beside NOT NULL. `name`: the user's, or None. `expression`: of a CHECK, DuckDB's text; else None.

    `columns`: name and field id of each column that it is about; the names are those that `expression` uses.
    """

    kind: ConstraintKind
    name: str | None
    expression: str | None
    columns: tuple[tuple[str, int], ...]

    @property
    def is_key(self) -> bool:
        return self.kind != "check"

    @property
    def text(self) -> str:
        """As DuckDB writes it in a CREATE TABLE."""
        inside = self.expression if self.expression is not None else ", ".join(quote(name) for name, _ in self.columns)
        return f"{self.kind.upper()}({inside})"

    @property
    def declared(self) -> str:
        """The same with the user's name in front."""
        return self.text if self.name is None else f"CONSTRAINT {quote(self.name)} {self.text}"


@dataclass(frozen=True, slots=True)
class View:
    """What a view shows: `query`, as the user wrote it; `names`: those that its first columns have instead of their own.

    `comments`: (name of a column, comment).
    """

    query: str
    names: tuple[str, ...] = ()
    comments: tuple[tuple[str, str], ...] = ()

    @property
    def listed(self) -> str:
        """The names as SQL: ` (a, b)`, or nothing."""
        return f" ({', '.join(map(quote, self.names))})" if self.names else ""


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One of the values that all rows of a partition share: of a column, found by its field id, or of a transform of it.

    `buckets`: how many bucket(n, c) has.
    """

    field_id: int
    transform: Transform = "identity"
    buckets: int | None = None

    def shown(self, column: str) -> str:
        """As SQL, where the column's name is `column`."""
        if self.transform == "identity":
            return column
        return f"bucket({self.buckets}, {column})" if self.transform == "bucket" else f"{self.transform}({column})"


@dataclass(frozen=True, slots=True)
class Table:
    """A table's identity, name, columns and constraints, as of one snapshot; or those of a view, which has no columns and no rows of its own.

    `options`: (name, value) of those limits that it has itself (bounds.TABLE_OPTIONS), by name. `partitioning`: how its files are divided.
    """

    table_id: int
    schema_id: int
    schema_name: str
    name: str
    columns: tuple[Column, ...]
    constraints: tuple[Constraint, ...] = ()
    view: View | None = None
    comment: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    partitioning: tuple[PartitionKey, ...] = ()

    @property
    def visible(self) -> tuple[Column, ...]:
        """The columns that have a name."""
        return tuple(c for c in self.columns if not c.hidden) if any(c.hidden for c in self.columns) else self.columns

    @property
    def keys(self) -> tuple[Constraint, ...]:
        """Its PRIMARY KEY and UNIQUE constraints."""
        return tuple(c for c in self.constraints if c.is_key)

    @property
    def keys_as_named(self) -> tuple[Constraint, ...]:
        """The same under the names that the columns have here, which may be those of another version (transaction/binding.py)."""
        names = {c.field_id: c.name for c in self.columns}
        return tuple(replace(key, columns=tuple((names[field_id], field_id) for _, field_id in key.columns)) for key in self.keys)

    @property
    def key_fields(self) -> frozenset[int]:
        """The field ids of the columns of its keys."""
        return frozenset(field_id for key in self.keys for _, field_id in key.columns)

    @property
    def body(self) -> str:
        """The list of columns and constraints of a CREATE TABLE, as DuckDB takes it."""
        return f"({', '.join([*(f'{quote(c.name)} {c.declared}' for c in self.columns), *(c.declared for c in self.constraints)])})"

    @property
    def qualified(self) -> str:
        """The name as a person writes it: without the schema where it is `main`."""
        return self.name if self.schema_name == MAIN_SCHEMA else f"{self.schema_name}.{self.name}"


@dataclass(frozen=True, slots=True)
class Statistics:
    """What one fragment knows of one stored column. `minimum`/`maximum`: DuckDB's text form, or None: unknown.

    `exact`: both bounds are values that occur, else they only enclose them. `may_hold_nan`: NaN lies outside the bounds,
    though NaN > anything is true.
    """

    field_id: int
    minimum: str | None
    maximum: str | None
    null_count: int | None
    exact: bool
    may_hold_nan: bool


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition that every wanted row meets: `column operator value` for at least one of `values`.

    `type`: the column's declared type. `values` are of that type's natural Python type; none for `is null`, `is not null`.
    """

    field_id: int
    type: str
    operator: Comparison
    values: tuple[Comparable, ...] = ()


@dataclass(frozen=True, slots=True)
class FileColumn:
    """How an adopted file has a column: under which `name`; or it lacks it (None), and `value` is the one of its rows, as text (None: NULL).

    `type`: the stored type that the column had then.
    """

    field_id: int
    name: str | None
    value: str | None
    type: str


@dataclass(frozen=True, slots=True)
class Fragment:
    """An immutable set of rows of one table. A row address is (fragment_id, position).

    `fragment_id` is negative while the fragment is only staged by an open transaction. `path` is a bare file name
    (parquet only). `has_row_ids`: rows carry a stored `_row_id` (NULL: first_row_id + position). `first_row_id` is 0
    while it is not known: the rows are new, and the commit gives them their ids. `born`: the snapshot that brought it (None: staged).
    `partition`: what all its rows share, each value as text (None: NULL); empty where they were not divided.
    `columns`: of an adopted file, which has no field ids; none of any other.
    """

    fragment_id: int
    table_id: int
    storage: Storage
    path: str | None
    row_count: int
    size_bytes: int
    sha256: str
    first_row_id: int
    has_row_ids: bool
    statistics: tuple[Statistics, ...] = field(default=(), compare=False)
    born: int | None = field(default=None, compare=False)
    partition: tuple[tuple[PartitionKey, str | None], ...] = field(default=(), compare=False)
    columns: tuple[FileColumn, ...] = field(default=(), compare=False)

    def is_in_place(self, partitioning: tuple[PartitionKey, ...]) -> bool:
        """Whether it holds rows of one partition only, where the table is divided so."""
        return tuple(key for key, _ in self.partition) == partitioning or not partitioning


MOST_HOURS = 8_760_000
"""The longest retention: a thousand years, so that its microseconds fit into 64 bits."""
MOST_VERSIONS = 2**62
KEEP_FOR_EVER = "a tag keeps a version for ever: CREATE TAG name AT VERSION n"


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of the longest statement and all that can be set, per lake (table `settings`) and per connection (SET name = value)."""

    statement_bytes: int = 1_000_000
    inline_rows: int = 1_000
    inline_bytes: int = 64 * 1024
    flush_fragments: int = 100
    flush_rows: int = 20_000
    row_group_rows: int = 61_440
    compression: str = "snappy"
    target_file_bytes: int = 128 * 1024 * 1024
    target_file_rows: int = 5_000_000
    rewrite_percent: int = 20
    upkeep: str = "on"
    upkeep_files: int = 16
    upkeep_deleted_rows: int = 10_000
    upkeep_values: int = 400_000
    upkeep_bytes: int = 4 * 1024 * 1024
    commit_attempts: int = 4
    commit_time_ms: int = 10_000
    commit_backoff_ms: int = 5
    overwrite_append: str = "supersede"
    reevaluate_locked_rows: int = 1_000
    lock_timeout_ms: int = 60_000
    statement_timeout_ms: int = 0
    retention_hours: int = 168
    cache_bytes: int = 256 * 1024 * 1024
