"""What statements run in, and what one of them gives back: the nouns of execute.py, define.py and source.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelite.bounds import limits_of
from lakelite.catalog.store import Catalog
from lakelite.catalog.system import VIEWS
from lakelite.contents import TableState
from lakelite.errors import Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import MAIN_BRANCH_ID, MAIN_SCHEMA, RESERVED_SCHEMA, Branch, Limits, Table, fold
from lakelite.records import dataclass
from lakelite.storage import fragment as fragments
from lakelite.storage.engine import INTERNAL, NAMELESS, Engine
from lakelite.storage.files import LakePaths, data_file_name
from lakelite.storage.leases import SessionLease
from lakelite.storage.mirror import MIRROR
from lakelite.storage.partitions import divided
from lakelite.storage.saved import SavedRows
from lakelite.storage.temporary import NOTHING, Temporaries
from lakelite.transaction import changes as ch
from lakelite.transaction.view import LakeView

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

RESERVED_SCHEMAS = frozenset({RESERVED_SCHEMA, INTERNAL, NAMELESS, MIRROR, "information_schema", "pg_catalog", "memory", "system", "temp"})


@dataclass(slots=True)
class MergeReport:
    """Of the last MERGE BRANCH of a connection: what it found changed on both branches (`lake.merge_conflicts`; None: nothing), and for each
    table its name, the rows added, updated, deleted and changed on both, and what else became of it. `theirs`: the branch that it merged,
    into the one of the id `ours_id`; `has_found`: something while it runs."""

    conflicts: SavedRows | None = None
    lines: list[tuple[str, int, int, int, int, str]] = field(default_factory=list)
    theirs: Branch | None = None
    ours_id: int = MAIN_BRANCH_ID
    has_found: bool = False


@dataclass(slots=True)
class Execution:
    """What the statements of one transaction attempt run in. `reserve(counter, n)` gives new ids; `number()` a number never used in this session.

    `settings()`: name, value, scope and description of each.
    """

    engine: Engine
    catalog: Catalog
    paths: LakePaths
    limits: Limits
    view: LakeView
    transaction_id: str
    number: Callable[[], int]
    reserve: Callable[[str, int], int]
    lease: SessionLease
    versions: dict[int, LakeView]
    settings: Callable[[], list[tuple[str, str, str, str]]]
    branch: int = MAIN_BRANCH_ID
    named: dict[tuple[str, str], int] = field(default_factory=dict)  # what the transaction took a branch or tag to mean when it first named it
    merge: MergeReport = field(default_factory=MergeReport)
    written: list[fragments.Staged] = field(default_factory=list)
    pinned: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the user should know of the statement that runs, or ran last
    moving: dict[str, frozenset[int]] = field(default_factory=dict)  # views of past states that would be newer ones on a newer head → table ids
    past_external: set[str] = field(default_factory=set)  # past states of views whose queries read files
    views_read: dict[int, frozenset[str]] = field(default_factory=dict)  # view id → the queries that it had when something read it
    temporaries: Temporaries = NOTHING  # what the connection has for itself, as the statement sees it
    read_temporary: bool = False  # whether the statement that runs, or ran last, read any of that
    shown_as: Callable[[TableState], TableState] | None = None  # what a table is shown as, where a query is to see less of it
    _overlays: dict[int, tuple[ch.TableChange, TableState]] = field(default_factory=dict)

    def state(self, work: ch.Work, table: Table) -> TableState:
        """The table as the transaction sees it now: its base with its own changes."""
        state = self._state(work, table)
        return state if self.shown_as is None else self.shown_as(state)

    def _state(self, work: ch.Work, table: Table) -> TableState:
        change = work.changes.tables.get(table.table_id)
        if change is None:
            return self.view.state(table)
        known = self._overlays.get(table.table_id)
        if known is None or known[0] is not change:
            base = TableState(table, {}, {}) if change.created else self.view.state(table)
            known = (change, ch.overlay(base, change))
            self._overlays[table.table_id] = known
        return known[1]

    def texts_within(self, table_ids: Iterable[int]) -> frozenset[str]:
        """The queries of those of the tables that are views."""
        return frozenset(text for table_id in table_ids for text in self.views_read.get(table_id, ()))

    def pin(self, version: int) -> None:
        """Keeps a version older than the base from expiring until the transaction is over."""
        if 0 <= version < self.view.snapshot_id:
            self.lease.pin(version)
            self.pinned.append(version)

    def place(self, table: Table) -> fragments.Place:
        number = self.number()
        return fragments.Place(self.paths, data_file_name(self.transaction_id, number), -number, limits_of(table, self.limits))

    def keep(self, table: Table, staged: fragments.Staged | None) -> tuple[fragments.Staged, ...]:
        """What was written, as a fragment for each partition; it is remembered, so that a rollback can remove it."""
        if staged is None:
            return ()
        self.written.append(staged)
        parts = divided(self.engine, partial(self.place, table), table, staged)
        self.written[-1:] = parts
        return parts


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows of a query as Arrow batches. `cursor`: DuckDB's, to be dropped behind them; `pinned`: versions to be unpinned then."""

    reader: pa.RecordBatchReader
    cursor: duckdb.DuckDBPyConnection
    pinned: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What a statement did. `rowcount`: -1 where none applies. `rows`: a DuckDB cursor with the result, or None.

    `again(rows_per_batch)` runs a query once more, as a stream; None where that could give other rows.
    `constant`: the fragments of a statement that read nothing of the lake, which a replay uses again as they are.
    `given`: the names, folded, of the columns that rows which were taken by name had; None: as its text says. `tables`: the lake tables that
    it read; not `repeatable`: it also read what is the caller's. `returned`: what its RETURNING gives, or None.
    """

    work: ch.Work
    rowcount: int = -1
    rows: duckdb.DuckDBPyConnection | None = None
    constant: tuple[fragments.Staged, ...] = ()
    is_constant: bool = False
    again: Callable[[int], Stream] | None = None
    given: frozenset[str] | None = None
    tables: frozenset[int] = frozenset()
    repeatable: bool = True
    returned: SavedRows | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One statement to run: its text (for the record) and the values of its parameters by name."""

    text: str
    values: Mapping[str, Any]


def find_table(work: ch.Work, name: st.Name, call: Call, version: int | None = None) -> Table:
    """The table a name means; ProgrammingError with near names if there is none, or if it is a view. `version`: the past one that `work` is."""
    table = find_relation(work, name, call, version)
    if table.view is not None:
        hint = "name a table that it reads; CREATE OR REPLACE VIEW changes what it shows, DROP VIEW drops it"
        raise ProgrammingError(f'"{table.qualified}" is a view: it has no rows of its own', hint=hint, position=Position.at(call.text, name.offset))
    return table


def find_relation(work: ch.Work, name: st.Name, call: Call, version: int | None = None, *, kind: str = "table") -> Table:
    """The table or view a name means; else as `find_table`. `kind`: what is looked for."""
    table = work.namespace.find(name.schema, name.name)
    if table is None:
        raise no_such_table(work, name, call, version, kind)
    return table


def no_such_table(work: ch.Work, name: st.Name, call: Call, version: int | None = None, kind: str = "table") -> ProgrammingError:
    """The error for a name that means no table: the position, near names, and what to type next."""
    position = Position.at(call.text, name.offset)
    where = "" if version is None else f" in version {version}"
    if name.schema is not None and fold(name.schema) == RESERVED_SCHEMA and fold(name.name) in VIEWS:
        hint = f"it stands in queries: SELECT * FROM {RESERVED_SCHEMA}.{fold(name.name)}"
        return ProgrammingError(
            f"{RESERVED_SCHEMA}.{fold(name.name)} is a system view: it can only be read, and has no versions", hint=hint, position=position
        )
    if is_reserved(name.schema or MAIN_SCHEMA):
        hint = "leave the schema out, or CREATE SCHEMA one of your own"
        return ProgrammingError(f'schema "{name.schema}" is reserved: it holds no tables of yours', hint=hint, position=position)
    if name.schema is not None and fold(name.schema) not in work.namespace.schemas:
        return missing_schema(work, name.schema, name.offset, call, where)
    near = did_you_mean(name.name, [t.qualified for t in work.namespace.tables.values()])
    if version is not None:
        hint = f"{near or ''} DESCRIBE HISTORY lists the versions".strip()
    else:
        hint = near or "SHOW ALL TABLES lists the tables of this lake"
    shown = f"{name.schema}.{name.name}" if name.schema else name.name
    return ProgrammingError(f'{kind} "{shown}" does not exist{where}', hint=hint, position=position)


def missing_schema(work: ch.Work, name: str, offset: int | None, call: Call, where: str = "") -> ProgrammingError:
    """The error for a schema that is not there. `offset`: of its name; None: the error finds it."""
    known = sorted(s.name for s in work.namespace.schemas.values())
    hint = did_you_mean(name, known, f"the schemas are: {listed(known)}")
    position = None if offset is None else Position.at(call.text, offset)
    return ProgrammingError(f'schema "{name}" does not exist{where}', hint=hint, position=position)


def is_reserved(schema: str) -> bool:
    return fold(schema) in RESERVED_SCHEMAS
