"""Writing fragments: rows become a Parquet file, or Arrow IPC bytes where they are few.

Owns the form of both storages. A fragment made here is *staged*: its id is negative, nothing refers to it, and its file
is not durable before `make_durable`. Never touches the catalog.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakelite.model import ROW_ID_COLUMN, ROW_ID_FIELD, Column, Field, Fragment, Limits, Table, literal, quote
from lakelite.storage import files, statistics, types
from lakelite.storage.engine import ROW_ID_STORED, Engine

NOT_NULL_MARK = "lakelite: NOT NULL constraint failed: "  # how errors.py of the engine knows its own error() call


@dataclass(frozen=True, slots=True)
class Staged:
    """A fragment that is not committed yet. `ipc`: its rows where it is inline."""

    fragment: Fragment
    ipc: bytes | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how a statement's fragments are written: the file name for a Parquet fragment, the staged id, the limits."""

    paths: files.LakePaths
    file_name: str
    staged_id: int
    limits: Limits


def stored_select(table: Table, rows: str, *, inline: bool, row_id: str | None) -> str:
    """A SELECT of the stored form of `rows` (a SELECT with the table's columns by name). `row_id`: a column of `rows`, or None."""
    select = [f"{types.encode(_checked(table, c), c.type)} AS {_stored_name(c.stored, inline)}" for c in table.columns]
    if row_id is not None:
        select.append(f"r.{row_id}::BIGINT AS {_stored_name(ROW_ID_STORED, inline)}")
    return f"SELECT {', '.join(select)} FROM ({rows}) r"


def _stored_name(stored: Field, inline: bool) -> str:
    return f"f{stored.field_id}" if inline else quote(stored.name)


def _checked(table: Table, column: Column) -> str:
    """The column's value; an error for NULL where it is NOT NULL."""
    value = f"r.{quote(column.name)}"
    if column.nullable:
        return value
    message = literal(f"{NOT_NULL_MARK}{table.qualified}.{column.name}")
    return f"CASE WHEN {value} IS NULL THEN error({message}) ELSE {value} END"


def write(engine: Engine, place: Place, table: Table, rows: str, parameters: Mapping[str, Any], *, row_id: str | None = None) -> Staged | None:
    """Runs `rows` once and writes what it gives: as a file, or inline if it turns out to be little. None: no rows.

    Memory does not grow with the number of rows.
    """
    path = place.paths.data_file(table.table_id, place.file_name)
    files.make_table_folder(place.paths, table.table_id)
    fields = [c.stored for c in table.columns] + ([ROW_ID_STORED] if row_id is not None else [])
    select = stored_select(table, rows, inline=False, row_id=row_id)
    options = f"FORMAT parquet, RETURN_STATS true, ROW_GROUP_SIZE {place.limits.row_group_rows}, FIELD_IDS {types.field_ids_clause(fields)}"
    try:
        answer = engine.do(f"COPY ({select}) TO {literal(str(path))} ({options})", parameters)[0]
        row_count, size_bytes = int(answer[1]), int(answer[2])
        if row_count == 0:
            files.remove_data_file(place.paths, table.table_id, place.file_name)
            return None
        fragment = Fragment(
            fragment_id=place.staged_id, table_id=table.table_id, storage="parquet", path=place.file_name, row_count=row_count,
            size_bytes=size_bytes, sha256=files.sha256_of(path), first_row_id=0, has_row_ids=row_id is not None,
            statistics=statistics.from_copy(fields, answer[4], row_count),
        )  # fmt: skip
    except BaseException:
        files.remove_data_file(place.paths, table.table_id, place.file_name)
        raise
    if row_count > place.limits.inline_rows or size_bytes > 4 * place.limits.inline_bytes:
        return Staged(fragment, None)
    return _read_back(engine, place, fragment, fields) or Staged(fragment, None)


def _read_back(engine: Engine, place: Place, fragment: Fragment, fields: list[Field]) -> Staged | None:
    """The inline form of a small file that was just written, which is then removed; None if it is not small enough."""
    path = place.paths.data_file(fragment.table_id, place.file_name)
    select = ", ".join(f"p.f{f.field_id}" for f in fields)
    renamed = [Field(f.field_id, f"f{f.field_id}", f.type, f.children) for f in fields]
    staged = _inline(engine, place, fragment.table_id, f"SELECT {select} FROM read_parquet({literal(str(path))}, schema => {types.schema_clause(renamed)}) p")
    if staged is not None:
        files.remove_data_file(place.paths, fragment.table_id, place.file_name)
    return staged


def write_held(engine: Engine, place: Place, table: Table, rows: str, row_count: int, *, row_id: str | None = None) -> Staged | None:
    """As `write`, for `rows` that DuckDB already holds in a table of its own and whose number is known: few of them need no file."""
    if row_count == 0:
        return None
    if row_count <= place.limits.inline_rows:
        staged = _inline(engine, place, table.table_id, stored_select(table, rows, inline=True, row_id=row_id))
        if staged is not None:
            return staged
    return write(engine, place, table, rows, {}, row_id=row_id)


def _inline(engine: Engine, place: Place, table_id: int, select: str) -> Staged | None:
    import pyarrow as pa

    rows = engine.work.sql(select).to_arrow_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    ipc = sink.getvalue().to_pybytes()
    if len(ipc) > place.limits.inline_bytes:
        return None
    fragment = Fragment(
        fragment_id=place.staged_id, table_id=table_id, storage="inline", path=None, row_count=rows.num_rows, size_bytes=len(ipc),
        sha256=hashlib.sha256(ipc).hexdigest(), first_row_id=0, has_row_ids=f"f{ROW_ID_FIELD}" in rows.column_names,
    )  # fmt: skip
    return Staged(fragment, ipc)


def make_durable(paths: files.LakePaths, staged: Iterable[Staged]) -> None:
    """Syncs the files of staged fragments. A failure is final: the files are useless and the commit must fail."""
    for one in staged:
        if one.fragment.path is not None:
            files.fsync_file(paths.data_file(one.fragment.table_id, one.fragment.path))


def make_names_durable(paths: files.LakePaths, staged: Iterable[Staged]) -> None:
    """Syncs the folders that got new files."""
    for table_id in sorted({s.fragment.table_id for s in staged if s.fragment.path is not None}):
        files.fsync_directory(paths.table_folder(table_id))


def discard(paths: files.LakePaths, staged: Iterable[Staged]) -> None:
    """Removes the files of fragments that will not be committed."""
    for one in staged:
        if one.fragment.path is not None:
            files.remove_data_file(paths, one.fragment.table_id, one.fragment.path)
