"""DuckDB, as one connection of lakelite uses it: a private in-memory database that shows the lake's tables as views.

Owns the DuckDB connection, the views, and what is cached of immutable things: decoded inline fragments and bitstrings of
deletion vectors (both as DuckDB tables, so that every cursor sees them). Never decides what a snapshot holds and never
writes to the lake.

A view is made for one `TableState` and remade when the state's stamp changes. Everything internal lives in the attached
database `lake_internal`, away from the user's names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from lakelite.contents import TableState
from lakelite.deletion import DeletionVector, bitstring
from lakelite.model import MAIN_SCHEMA, ROW_ID_COLUMN, ROW_ID_FIELD, Column, Field, Fragment, Table, fold, literal, quote
from lakelite.storage import types
from lakelite.storage.files import LakePaths

if TYPE_CHECKING:
    import pyarrow as pa

INTERNAL = "lake_internal"
VECTORS = f"{INTERNAL}.main.vectors"
VERSION_VIEWS_KEPT = 64
INLINE_ROWS_KEPT = 1_000_000
ROW_ID_STORED = Field(ROW_ID_FIELD, ROW_ID_COLUMN, "BIGINT")


@dataclass(frozen=True, slots=True)
class Addressed:
    """A scan that also gives row addresses. `sql`: a SELECT; its columns `source`, `position`, `row_id` come before the table's own.

    `fragments[source]` is the fragment of a row; `row_id` is the stored one or NULL.
    """

    sql: str
    fragments: tuple[Fragment, ...]
    source: str
    position: str
    row_id: str


class Engine:
    """One DuckDB instance; used by one thread at a time, except for the cursors that it hands out."""

    def __init__(self, paths: LakePaths, spill: str, load_inline: Callable[[int], bytes], cache_bytes: int) -> None:
        self._paths = paths
        self._load_inline = load_inline
        self._cache_bytes = cache_bytes
        self._duckdb = duckdb.connect(":memory:", config={"python_enable_replacements": "false", "autoinstall_known_extensions": "false", "temp_directory": spill})
        self.work = self._duckdb.cursor()  # for everything that is not a result a user reads from
        self.do(f"ATTACH ':memory:' AS {INTERNAL}; CREATE TABLE {VECTORS} (vector BIGINT, bits BIT)")
        self._names = self._duckdb.cursor()
        self._names.execute("ATTACH ':memory:' AS lake_names; USE lake_names").fetchall()
        self._views: dict[tuple[str, str], int] = {}
        self._version_views: dict[tuple[int, str, str], int] = {}
        self._schemas: set[str] = {MAIN_SCHEMA}
        self._vectors: dict[int, int] = {}  # stamp of a deletion vector → its number in VECTORS
        self._vector_bytes = 0
        self._numbers = itertools.count(1)
        self._inline: dict[int, dict[int, int]] = {}  # table id → fragment id → rows, of what the inline table holds
        self._inline_fields: dict[int, dict[int, str]] = {}  # table id → field id → stored type
        self._stages: dict[int, Table] = {}  # table id → the definition that its stage has
        self._sized: set[int] = set()  # committed files whose size was found as catalogued

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor of its own for a result that a user reads from."""
        return self._duckdb.cursor()

    def do(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs SQL on the working cursor to its end: DuckDB streams, and a statement is only done when its result has been read."""
        return self.work.execute(sql, parameters).fetchall() if parameters else self.work.execute(sql).fetchall()

    def table_names(self, text: str) -> set[str] | None:
        """The qualified names of the tables that DuckDB's binder finds in `text`, without CTEs; None where it cannot tell.

        Asked where the views are not visible: a name that is a view is answered with what is inside it.
        """
        if "memory" in text.lower():  # the name of the database that holds the views
            return None
        try:
            return self._names.get_table_names(text, qualified=True)
        except duckdb.Error:
            return None

    def interrupt(self) -> None:
        self.work.interrupt()

    def close(self) -> None:
        self._names.close()
        self.work.close()
        self._duckdb.close()

    # Views.

    def show(self, state: TableState) -> None:
        """Makes the name of the table mean `state`, for every cursor."""
        table = state.table
        key = (fold(table.schema_name), fold(table.name))
        if self._views.get(key) == state.stamp:
            return
        self._need_schema(table.schema_name)
        self.do(f"CREATE OR REPLACE VIEW {quote(table.schema_name)}.{quote(table.name)} AS {self.relation(state)}")
        self._views[key] = state.stamp

    def show_only(self, tables: Iterable[tuple[str, str]]) -> None:
        """Drops the views of tables (folded schema and name) that are not among `tables`."""
        for schema, name in self._views.keys() - set(tables):
            self.do(f"DROP VIEW IF EXISTS {quote(schema)}.{quote(name)}")
            del self._views[(schema, name)]

    def show_version(self, state: TableState, version: int) -> str:
        """A qualified name for `state`, the table as of a version; its last part is the table's own name."""
        schema = f"{state.table.schema_name}@{version}"
        name = f"{INTERNAL}.{quote(schema)}.{quote(state.table.name)}"
        key = (version, fold(state.table.schema_name), fold(state.table.name))
        if self._version_views.get(key) != state.stamp:
            self.do(f"CREATE SCHEMA IF NOT EXISTS {INTERNAL}.{quote(schema)}; CREATE OR REPLACE VIEW {name} AS {self.relation(state)}")
            self._version_views[key] = state.stamp
            while len(self._version_views) > VERSION_VIEWS_KEPT:
                (old_version, old_schema, old_name) = next(iter(self._version_views))
                self.do(f"DROP VIEW IF EXISTS {INTERNAL}.{quote(f'{old_schema}@{old_version}')}.{quote(old_name)}")
                del self._version_views[(old_version, old_schema, old_name)]
        return name

    def _need_schema(self, name: str) -> None:
        if fold(name) not in self._schemas:
            self.do(f"CREATE SCHEMA IF NOT EXISTS {quote(name)}")
            self._schemas.add(fold(name))

    # Relations: the rows of a table state as a SELECT.

    def relation(self, state: TableState) -> str:
        """A SELECT of the table's columns over its live rows: clean files in one scan, files with deletions in another, inline rows in a third."""
        columns = state.table.columns
        select = ", ".join(f"{types.decode(_column(c), c.type)} AS {quote(c.name)}" for c in columns)
        parts = [f"SELECT {select} FROM {scan.sql}" for scan in self._scans(state, state.fragments.values())]
        return " UNION ALL ".join(parts) if parts else self._nothing(columns)

    def addressed(self, state: TableState, fragments: Iterable[Fragment] | None = None) -> Addressed:
        """The live rows of the given fragments (None: of all) with their row addresses."""
        columns = state.table.columns
        taken = {fold(c.name) for c in columns}
        source, position, row_id = (_free(name, taken) for name in ("_lake_source", "_lake_position", "_lake_row_id"))
        select = ", ".join(["", *(f"{types.decode(_column(c), c.type)} AS {quote(c.name)}" for c in columns)])
        parts: list[str] = []
        order: list[Fragment] = []
        for scan in self._scans(state, state.fragments.values() if fragments is None else fragments, row_ids=True):
            address = f"{scan.source(len(order))} AS {source}, {scan.position} AS {position}, {scan.row_id} AS {row_id}"
            parts.append(f"SELECT {address}{select} FROM {scan.sql}")
            order.extend(scan.fragments)
        sql = " UNION ALL ".join(parts) or f"SELECT 0::BIGINT AS {source}, 0::BIGINT AS {position}, NULL::BIGINT AS {row_id}, * FROM ({self._nothing(columns)})"
        return Addressed(sql, tuple(order), source, position, row_id)

    def _nothing(self, columns: Sequence[Column]) -> str:
        return "SELECT " + ", ".join(f"NULL::{c.type} AS {quote(c.name)}" for c in columns) + " WHERE false"

    def _scans(self, state: TableState, fragments: Iterable[Fragment], *, row_ids: bool = False) -> list[_Scan]:
        chosen = list(fragments)
        self._need_vectors([state.vectors[f.fragment_id] for f in chosen if f.fragment_id in state.vectors])
        inline = [f for f in chosen if f.storage == "inline"]
        if inline:
            self._need_inline(state, inline)
        scans: list[_Scan] = []
        for storage in ("parquet", "inline"):
            for dirty in (False, True):
                some = tuple(f for f in chosen if f.storage == storage and (f.fragment_id in state.vectors) == dirty)
                if some:
                    vectors = [self._vectors[state.vectors[f.fragment_id].stamp] for f in some] if dirty else None
                    scans.append(self._parquet(state.table, some, vectors, row_ids) if storage == "parquet" else self._inline_scan(state.table, some, vectors))
        return scans

    def _parquet(self, table: Table, fragments: tuple[Fragment, ...], vectors: list[int] | None, row_ids: bool) -> _Scan:
        files = ", ".join(literal(self._file(f)) for f in fragments)
        stored = [_renamed(c.stored) for c in table.columns] + ([_renamed(ROW_ID_STORED)] if row_ids else [])
        numbered = ", file_row_number => true" if row_ids or vectors else ""
        sql = f"read_parquet([{files}], schema => {types.schema_clause(stored)}{numbered}) p"
        if vectors:
            values = ", ".join(f"({i}, {v})" for i, v in enumerate(vectors))
            sql += (
                f" JOIN (SELECT m.source, d.bits FROM (VALUES {values}) m(source, vector) JOIN {VECTORS} d ON d.vector = m.vector) v"
                " ON v.source = p.file_index::BIGINT WHERE get_bit(v.bits, p.file_row_number::INTEGER) = 0"
            )
        return _Scan(sql, fragments, lambda start: f"p.file_index::BIGINT + {start}", "p.file_row_number", f"p.f{ROW_ID_FIELD}")

    def _file(self, fragment: Fragment) -> str:
        """The path of a fragment's file, whose size is compared with the catalog once per session."""
        assert fragment.path is not None
        if fragment.fragment_id in self._sized:
            return str(self._paths.data_file(fragment.table_id, fragment.path))
        path = self._paths.existing_data_file(fragment.table_id, fragment.path, fragment.size_bytes)
        if fragment.fragment_id > 0:
            self._sized.add(fragment.fragment_id)
        return str(path)

    def _inline_scan(self, table: Table, fragments: tuple[Fragment, ...], vectors: list[int] | None) -> _Scan:
        keys = [f.fragment_id for f in fragments]
        rows = [(i, k, *([vectors[i]] if vectors else [])) for i, k in enumerate(keys)]
        values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
        names = "source, fragment" + (", vector" if vectors else "")
        sql = f"{self._inline_table(table.table_id)} p JOIN (VALUES {values}) m({names}) ON m.fragment = p.fragment"
        if vectors:
            sql += f" JOIN {VECTORS} v ON v.vector = m.vector WHERE get_bit(v.bits, p.position::INTEGER) = 0"
        return _Scan(sql, fragments, lambda start: f"m.source::BIGINT + {start}", "p.position", f"p.f{ROW_ID_FIELD}")

    # Caches.

    def _need_vectors(self, vectors: Sequence[DeletionVector]) -> None:
        missing = [v for v in vectors if v.stamp not in self._vectors]
        for vector in missing:
            number = next(self._numbers)
            bits = bitstring(vector)
            self.do(f"INSERT INTO {VECTORS} SELECT ?, ?::BLOB::BIT", [number, bits])
            self._vectors[vector.stamp] = number
            self._vector_bytes += len(bits)

    def _need_inline(self, state: TableState, fragments: Sequence[Fragment]) -> None:
        held = self._inline.setdefault(state.table.table_id, {})
        self._need_inline_table(state.table)
        missing = [f for f in fragments if f.fragment_id not in held]
        if not missing:
            return
        import pyarrow as pa

        pieces = [self._numbered(f, state.staged_rows.get(f.fragment_id) or self._load_inline(f.fragment_id)) for f in missing]
        self.insert_arrow(self._inline_table(state.table.table_id), pa.concat_tables(pieces, promote_options="default"))
        held.update({f.fragment_id: f.row_count for f in missing})

    @staticmethod
    def _numbered(fragment: Fragment, ipc: bytes) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        rows = pa.ipc.open_stream(ipc).read_all()
        if rows.num_rows != fragment.row_count:
            from lakelite.errors import InternalError

            raise InternalError(f"inline fragment {fragment.fragment_id} holds {rows.num_rows} rows, the catalog says {fragment.row_count}")
        where = pa.table({"fragment": np.full(rows.num_rows, fragment.fragment_id), "position": np.arange(rows.num_rows)})
        for name in rows.column_names:
            where = where.append_column(name, rows.column(name))
        return where

    def insert_arrow(self, target: str, rows: pa.Table) -> None:
        """INSERT INTO target BY NAME the rows of an Arrow table."""
        self.work.register("lake_arrow", rows)
        try:
            self.do(f"INSERT INTO {target} BY NAME SELECT * FROM lake_arrow")
        finally:
            self.work.unregister("lake_arrow")

    def renumber(self, table_id: int, fragments: Mapping[int, int]) -> None:
        """Staged inline fragments have been committed: from their negative ids to the real ones, where they are held."""
        held = self._inline.get(table_id, {})
        for staged, real in fragments.items():
            if staged in held:
                self.do(f"UPDATE {self._inline_table(table_id)} SET fragment = ? WHERE fragment = ?", [real, staged])
                held[real] = held.pop(staged)

    @staticmethod
    def _inline_table(table_id: int) -> str:
        return f"{INTERNAL}.main.inline_{table_id}"

    def _need_inline_table(self, table: Table) -> None:
        wanted = {c.field_id: c.stored.type for c in table.columns} | {ROW_ID_FIELD: "BIGINT"}
        known = self._inline_fields.get(table.table_id)
        if known is None:
            columns = ", ".join(f"f{field} {stored}" for field, stored in wanted.items())
            self.do(f"CREATE TABLE {self._inline_table(table.table_id)} (fragment BIGINT, position BIGINT, {columns})")
            self._inline_fields[table.table_id] = wanted
            return
        for field, stored in wanted.items():
            if field not in known:
                self.do(f"ALTER TABLE {self._inline_table(table.table_id)} ADD COLUMN f{field} {stored}")
                known[field] = stored

    def trim(self) -> None:
        """Bounds the caches; called between statements. What is dropped is loaded again when it is next needed, and a result
        that is still being read keeps DuckDB's snapshot of it."""
        if self._vector_bytes <= self._cache_bytes and sum(sum(held.values()) for held in self._inline.values()) <= INLINE_ROWS_KEPT:
            return
        for table_id in self._inline:
            self.do(f"DROP TABLE IF EXISTS {self._inline_table(table_id)} CASCADE")
        self.do(f"DELETE FROM {VECTORS}")
        self._inline.clear()
        self._inline_fields.clear()
        self._vectors.clear()
        self._vector_bytes = 0
        self._views = dict.fromkeys(self._views, 0)
        self._version_views = dict.fromkeys(self._version_views, 0)

    # Statements that DuckDB itself runs on an empty copy of a table.

    def stage(self, table: Table) -> str:
        """The qualified name of an empty DuckDB table with the columns, NOT NULLs and defaults of `table`."""
        known = self._stages.get(table.table_id)
        name = f"{INTERNAL}.stage_{table.table_id}.{quote(table.name)}"
        if known != table:
            columns = ", ".join(
                f"{quote(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}{f' DEFAULT {c.default}' if c.default is not None else ''}" for c in table.columns
            )
            self.do(f"CREATE SCHEMA IF NOT EXISTS {INTERNAL}.stage_{table.table_id}; CREATE OR REPLACE TABLE {name} ({columns})")
            self._stages[table.table_id] = table
        return name


@dataclass(frozen=True, slots=True)
class _Scan:
    """A FROM clause (with its WHERE) over fragments of one kind. `source(n)`: the number of a row's fragment when n came before."""

    sql: str
    fragments: tuple[Fragment, ...]
    source: Callable[[int], str]
    position: str
    row_id: str


def _column(column: Column) -> str:
    return f"p.f{column.field_id}"


def _renamed(stored: Field) -> Field:
    """The field under the name `f<id>`, which no column, file_row_number or file_index can clash with."""
    return Field(stored.field_id, f"f{stored.field_id}", stored.type, stored.children)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
