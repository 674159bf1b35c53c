"""What is kept in DuckDB of immutable things: rows of inline fragments and bitstrings of deletion vectors.

Both are DuckDB tables, so that every cursor sees them. They are only ever added to while a statement runs; `trim`, between
statements, is where they are dropped, and a result that is still being read keeps DuckDB's own snapshot of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelite.contents import TableState
from lakelite.deletion import DeletionVector, bitstring
from lakelite.errors import InternalError
from lakelite.model import ROW_ID_FIELD, Fragment, Table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

INLINE_ROWS_KEPT = 1_000_000
_FEW_POSITIONS = 1_000  # up to so many, DuckDB makes the bitstring from a list faster than it takes one over


class Cache:
    """The cache of one DuckDB instance. Used by one thread at a time."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, database: str, load_inline: Callable[[int], bytes], bytes_kept: int) -> None:
        self._cursor = cursor
        self._database = database
        self._load_inline = load_inline
        self._bytes_kept = bytes_kept
        self.vectors_table = f"{database}.main.vectors"
        self._has_vectors_table = False
        self._vectors: dict[int, int] = {}  # stamp of a deletion vector → its number
        self._vector_bytes = 0
        self._numbers = itertools.count(1)
        self._rows: dict[int, dict[int, int]] = {}  # table id → fragment id → rows that are held
        self._doubtful: set[int] = set()  # inline tables that are being changed, or were when something went wrong
        self._fields: dict[int, dict[int, str]] = {}  # table id → field id → stored type of the inline table

    def _do(self, sql: str, parameters: Sequence[Any] | None = None) -> None:
        (self._cursor.execute(sql, parameters) if parameters else self._cursor.execute(sql)).fetchall()

    def vectors(self, state: TableState, fragments: Sequence[Fragment]) -> dict[int, int]:
        """The number of each fragment's bitstring, by fragment id."""
        return {f.fragment_id: self._vector(state.vectors[f.fragment_id]) for f in fragments}

    def _vector(self, vector: DeletionVector) -> int:
        known = self._vectors.get(vector.stamp)
        if known is not None:
            return known
        if not self._has_vectors_table:
            self._do(f"CREATE TABLE IF NOT EXISTS {self.vectors_table} (vector BIGINT, bits BIT)")
            self._has_vectors_table = True
        number = next(self._numbers)
        if vector.cardinality <= _FEW_POSITIONS:
            positions = f"(SELECT unnest({list(vector.positions)}::INTEGER[]) AS p)"
            self._do(f"INSERT INTO {self.vectors_table} SELECT {number}, bitstring_agg(p, 0, {vector.row_count - 1}) FROM {positions}")
        else:
            self._do(f"INSERT INTO {self.vectors_table} SELECT ?, ?::BLOB::BIT", [number, bitstring(vector)])
        self._vectors[vector.stamp] = number
        self._vector_bytes += vector.row_count // 8 + 1
        return number

    def inline(self, state: TableState, fragments: Sequence[Fragment]) -> str:
        """The DuckDB table that holds the rows of these inline fragments (among others): fragment, position, f<field id> …"""
        table_id = state.table.table_id
        name = f"{self._database}.main.inline_{table_id}"
        with self._changing(table_id):
            self._load(state, fragments, name)
        return name

    @contextmanager
    def _changing(self, table_id: int) -> Iterator[None]:
        """A block that changes an inline table and what is known of it. If one was left half-way, the table is made anew."""
        if table_id in self._doubtful:
            self._do(f"DROP TABLE IF EXISTS {self._database}.main.inline_{table_id}")
            self._rows.pop(table_id, None)
            self._fields.pop(table_id, None)
        self._doubtful.add(table_id)
        yield
        self._doubtful.discard(table_id)

    def _load(self, state: TableState, fragments: Sequence[Fragment], name: str) -> None:
        self._need_inline_table(state.table, name)
        held = self._rows.setdefault(state.table.table_id, {})
        missing = [f for f in fragments if f.fragment_id not in held]
        if missing:
            import pyarrow as pa

            pieces = [_read(f, state.staged_rows.get(f.fragment_id) or self._load_inline(f.fragment_id)) for f in missing]
            rows = pa.concat_tables(pieces, promote_options="default").combine_chunks()  # DuckDB takes each chunk for a piece of work
            self._cursor.register("lake_arrow", _numbered(missing, rows))
            try:
                self._need_all_columns(state.table, name)
                self._do(f"INSERT INTO {name} BY NAME SELECT * FROM lake_arrow")
            finally:
                self._cursor.unregister("lake_arrow")
            held.update({f.fragment_id: f.row_count for f in missing})

    def _need_inline_table(self, table: Table, name: str) -> None:
        wanted = {c.field_id: c.stored.type for c in table.columns} | {ROW_ID_FIELD: "BIGINT"}
        known = self._fields.get(table.table_id)
        if known is None:
            columns = ", ".join(f"f{field} {stored}" for field, stored in wanted.items())
            self._do(f"CREATE TABLE {name} (fragment BIGINT, position BIGINT, {columns})")
            self._fields[table.table_id] = wanted
            return
        for field in wanted.keys() - known.keys():
            self._do(f"ALTER TABLE {name} ADD COLUMN f{field} {wanted[field]}")
            known[field] = wanted[field]

    def _need_all_columns(self, table: Table, name: str) -> None:
        """Adds what the rows have and the table has no more: a column that was dropped, and that a past version still has."""
        known = self._fields[table.table_id]
        for column, stored in self._cursor.execute("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM lake_arrow)").fetchall():
            if column[:1] == "f" and column[1:].isdecimal() and int(column[1:]) not in known:
                self._do(f"ALTER TABLE {name} ADD COLUMN {column} {stored}")
                known[int(column[1:])] = stored

    def renumber(self, table_id: int, fragments: Mapping[int, int]) -> None:
        """Staged inline fragments have been committed: from their negative ids to the real ones, where they are held."""
        if not self._rows.get(table_id, {}).keys() & fragments.keys():
            return
        with self._changing(table_id):
            held = self._rows.get(table_id, {})
            for staged, real in fragments.items():
                if staged in held:
                    self._do(f"UPDATE {self._database}.main.inline_{table_id} SET fragment = {real} WHERE fragment = {staged}")
                    held[real] = held.pop(staged)

    def trim(self) -> bool:
        """Drops everything if it has grown past the bounds; True then: what was derived from it has to be made anew."""
        if self._vector_bytes <= self._bytes_kept and sum(sum(held.values()) for held in self._rows.values()) <= INLINE_ROWS_KEPT:
            return False
        for table_id in self._fields.keys() | self._doubtful:
            self._do(f"DROP TABLE IF EXISTS {self._database}.main.inline_{table_id}")
        if self._has_vectors_table:
            self._do(f"DELETE FROM {self.vectors_table}")
        self._rows.clear()
        self._fields.clear()
        self._doubtful.clear()
        self._vectors.clear()
        self._vector_bytes = 0
        return True


def _read(fragment: Fragment, ipc: bytes) -> pa.Table:
    import pyarrow as pa

    rows = pa.ipc.open_stream(ipc).read_all()
    if rows.num_rows != fragment.row_count:
        raise InternalError(f"inline fragment {fragment.fragment_id} holds {rows.num_rows} rows, the catalog says {fragment.row_count}")
    return rows


def _numbered(fragments: Sequence[Fragment], rows: pa.Table) -> pa.Table:
    """The rows of inline fragments, one behind the other, with their fragment ids and positions."""
    import numpy as np

    counts = [f.row_count for f in fragments]
    ends = np.cumsum(counts)
    position = np.arange(rows.num_rows) - np.repeat(ends - counts, counts)
    fragment = np.repeat([f.fragment_id for f in fragments], counts)
    return rows.add_column(0, "fragment", [fragment]).add_column(1, "position", [position])
