"""What is kept in DuckDB of immutable things: rows of inline fragments and bitstrings of deletion vectors.

Both are DuckDB tables, so that every cursor sees them. They are only ever added to while a statement runs; `trim`, between
statements, is where they are dropped, and a result that is still being read keeps DuckDB's own snapshot of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lakelite.contents import TableState
from lakelite.deletion import DeletionVector, bitstring
from lakelite.model import ROW_ID_FIELD, Field, Fragment, Table, literal
from lakelite.storage import arrays
from lakelite.storage.inline import rows_of
from lakelite.storage.scan import renamed

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

INLINE_ROWS_KEPT = 1_000_000
INLINE_TABLES_KEPT = 400  # DuckDB needs 20 to 100 kB for each, however few rows it has
_FEW_POSITIONS = 1_000  # up to so many, DuckDB makes the bitstring from a list faster than it takes one over


@dataclass(slots=True, eq=False)
class _Inline:
    """A DuckDB table of inline rows. `rows`: how many are held of each fragment. `is_doubtful`: it is being changed, or was when that failed."""

    name: str
    fields: tuple[Field, ...]
    rows: dict[int, int] = field(default_factory=dict)
    is_doubtful: bool = False

    @property
    def columns(self) -> str:
        """Each field with the value that it has in fragments that lack it."""
        initial = ((f, "" if f.initial is None else f" DEFAULT CAST({literal(f.initial)} AS {f.type})") for f in self.fields)
        return ", ".join([*(f"f{f.field_id} {f.type}{default}" for f, default in initial), f"f{ROW_ID_FIELD} BIGINT"])

    @property
    def names(self) -> frozenset[str]:
        return frozenset({"fragment", "position", f"f{ROW_ID_FIELD}", *(f"f{f.field_id}" for f in self.fields)})


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
        self._inline: dict[tuple[int, tuple[Field, ...]], _Inline] = {}  # by table id and stored columns, the last used last
        self._used: set[tuple[int, tuple[Field, ...]]] = set()  # since `trim`

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
        """The DuckDB table that holds the rows of these inline fragments (among others), as the columns of the state's table are
        stored: fragment, position, f<field id> … Each definition of a table has its own, since one query can read several."""
        kept = self._kept_for(state.table)
        with self._changing(kept):
            self._load(state, fragments, kept)
        return kept.name

    def _kept_for(self, table: Table) -> _Inline:
        key = (table.table_id, _stored(table))
        kept = self._inline.pop(key, None) or _Inline(f"{self._database}.main.inline_{table.table_id}_{next(self._numbers)}", key[1])
        self._inline[key] = kept
        self._used.add(key)
        return kept

    @contextmanager
    def _changing(self, kept: _Inline) -> Iterator[None]:
        """A block that changes an inline table and what is known of it. If one was left half-way, the table is made anew."""
        if kept.is_doubtful:
            self._do(f"DROP TABLE IF EXISTS {kept.name}")
            kept.rows.clear()
        if not kept.rows:
            self._do(f"CREATE TABLE IF NOT EXISTS {kept.name} (fragment BIGINT, position BIGINT, {kept.columns})")
        kept.is_doubtful = True
        yield
        kept.is_doubtful = False

    def _load(self, state: TableState, fragments: Sequence[Fragment], kept: _Inline) -> None:
        """Loads what is missing, fragments of the same columns together: of one that they lack, DuckDB puts the default."""
        missing = [f for f in fragments if f.fragment_id not in kept.rows]
        together: dict[str, list[tuple[Fragment, pa.Table]]] = {}
        for fragment in missing:
            rows = rows_of(fragment, state.staged_rows.get(fragment.fragment_id) or self._load_inline(fragment.fragment_id))
            rows = rows.select([n for n in rows.column_names if n in kept.names])
            together.setdefault(str(rows.schema), []).append((fragment, rows))
        for pieces in together.values():
            self._cursor.register("lake_arrow", _numbered(pieces))
            try:
                self._do(f"INSERT INTO {kept.name} BY NAME SELECT * FROM lake_arrow")
            finally:
                self._cursor.unregister("lake_arrow")
        kept.rows.update({f.fragment_id: f.row_count for f in missing})

    def renumber(self, table_id: int, fragments: Mapping[int, int]) -> None:
        """Staged inline fragments have been committed: from their negative ids to the real ones, where they are held."""
        for (of, _), kept in self._inline.items():
            if of != table_id or not kept.rows.keys() & fragments.keys():
                continue
            with self._changing(kept):
                for staged, real in fragments.items():
                    if staged in kept.rows:
                        self._do(f"UPDATE {kept.name} SET fragment = {real} WHERE fragment = {staged}")
                        kept.rows[real] = kept.rows.pop(staged)

    def trim(self) -> bool:
        """Drops everything if it has grown past the bounds, or what was not used of too many tables.

        True if anything was dropped: what was derived from it has to be made anew.
        """
        used, self._used = self._used, set()
        rows = sum(sum(kept.rows.values()) for kept in self._inline.values())
        if self._vector_bytes <= self._bytes_kept and rows <= INLINE_ROWS_KEPT:
            return len(self._inline) > INLINE_TABLES_KEPT and self._drop_oldest(used)
        for kept in self._inline.values():
            self._do(f"DROP TABLE IF EXISTS {kept.name}")
        if self._has_vectors_table:
            self._do(f"DELETE FROM {self.vectors_table}")
        self._inline.clear()
        self._vectors.clear()
        self._vector_bytes = 0
        return True

    def _drop_oldest(self, used: Collection[object]) -> bool:
        """So many that it is seldom done: all views are made anew behind it. What the last statement used stays."""
        oldest = [key for key in self._inline if key not in used][: len(self._inline) - INLINE_TABLES_KEPT // 2]
        for key in oldest:
            self._do(f"DROP TABLE IF EXISTS {self._inline.pop(key).name}")
        return bool(oldest)


@lru_cache(maxsize=256)
def _stored(table: Table) -> tuple[Field, ...]:
    return tuple(renamed(c.stored) for c in table.columns)


def _numbered(pieces: Sequence[tuple[Fragment, pa.Table]]) -> pa.Table:
    """The rows of inline fragments of the same columns, one behind the other, with their fragment ids and positions."""
    import numpy as np
    import pyarrow as pa

    rows = pa.concat_tables([rows for _, rows in pieces]).combine_chunks()  # DuckDB takes each chunk for a piece of work
    counts = [f.row_count for f, _ in pieces]
    ends = np.cumsum(counts)
    position = np.arange(sum(counts)) - np.repeat(ends - counts, counts)
    fragment = np.repeat([f.fragment_id for f, _ in pieces], counts)
    columns = dict(zip(rows.column_names, rows.columns, strict=True))  # none, where the table has not one of the fragments' columns any more
    return arrays.table({"fragment": fragment, "position": position, **columns})
