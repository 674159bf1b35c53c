"""Writing fragments: rows become a Parquet file, or Arrow IPC bytes where they are few.

Owns the form of both storages. A fragment made here is *staged*: its id is negative, nothing refers to it, and its file
is not durable before `make_durable`. Never touches the catalog.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelite.mapping.engine_errors import NOT_NULL_MARK
from lakelite.model import ROW_ID_COLUMN, ROW_ID_FIELD, Column, Field, Fragment, Limits, Table, literal, quote
from lakelite.records import dataclass
from lakelite.storage import files, statistics, types
from lakelite.storage.engine import Engine
from lakelite.storage.scan import ROW_ID_STORED, renamed

if TYPE_CHECKING:
    import pyarrow as pa

_ONE_THREAD = f" QUALIFY row_number() OVER () <> {2**63 - 1}"  # true of every row; DuckDB counts rows with one thread, in their order


@dataclass(frozen=True, slots=True)
class Staged:
    """A fragment that is not committed yet. `ipc`: its rows where it is inline."""

    fragment: Fragment
    ipc: bytes | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how a fragment is written: the file name of a Parquet one, the staged id, the limits of its table."""

    paths: files.LakePaths
    file_name: str
    staged_id: int
    limits: Limits


def stored_select(table: Table, rows: str, *, row_id: str | None) -> str:
    """A SELECT of the stored form of `rows` (a SELECT with the table's columns by name), for a file. `row_id`: a column of `rows`, or None."""
    select = [f"{stored_value(table, c, f'r.{quote(c.name)}')} AS {quote(c.stored.name)}" for c in table.columns]
    if row_id is not None:
        select.append(f"r.{row_id}::BIGINT AS {quote(ROW_ID_COLUMN)}")
    return f"SELECT {', '.join(select)} FROM ({rows}) r"


def stored_value(table: Table, column: Column, value: str) -> str:
    """The stored form of a declared value; an error for NULL where the column is NOT NULL."""
    if not column.nullable:
        message = literal(f"{NOT_NULL_MARK}{table.qualified}.{column.name}")
        value = f"CASE WHEN {value} IS NULL THEN error({message}) ELSE {value} END"
    return types.encode(value, column.type)


def write(
    engine: Engine, place: Place, table: Table, rows: str, parameters: Mapping[str, Any], *, row_id: str | None = None, one_by_one: bool = False
) -> Staged | None:
    """Runs `rows` once and writes what it gives, in its order: as a file, or inline if it turns out to be little. None: no rows.

    `one_by_one`: by one thread, so that memory does not grow with the number of rows. Else DuckDB reads ahead of the thread
    that writes, as far as its memory limit allows.
    """
    fields = fields_of(table, row_id is not None)
    select = stored_select(table, rows, row_id=row_id) + (_ONE_THREAD if one_by_one else "")
    fragment = _copy(engine, place, table.table_id, fields, select, parameters, order=", PRESERVE_ORDER false" if one_by_one else "")
    if fragment is None:
        return None
    if fragment.row_count > place.limits.inline_rows or fragment.size_bytes > 4 * place.limits.inline_bytes:
        return Staged(fragment, None)
    path = literal(str(place.paths.data_file(table.table_id, place.file_name)))
    schema = types.schema_clause([renamed(f) for f in fields])
    select = ", ".join(f"f{f.field_id}" for f in fields)
    held = engine.arrow(f"SELECT {select} FROM read_parquet({path}, schema => {schema}, hive_partitioning => false)", {})
    staged = _inline(place, table.table_id, fields, held)
    if staged is None:
        return Staged(fragment, None)
    files.remove_data_file(place.paths, table.table_id, place.file_name)
    return staged


def write_arrow(engine: Engine, place: Place, table: Table, rows: pa.Table) -> Staged | None:
    """Writes rows that are held as Arrow in their stored form, with columns f<field id> (and that of the row id, or not)."""
    if rows.num_rows == 0:
        return None
    fields = fields_of(table, f"f{ROW_ID_FIELD}" in rows.column_names)
    staged = _inline(place, table.table_id, fields, rows)
    if staged is not None:
        return staged
    engine.work.register("lake_arrow", rows)
    try:
        select = ", ".join(f"f{f.field_id}::{f.type} AS {quote(f.name)}" for f in fields)
        fragment = _copy(engine, place, table.table_id, fields, f"SELECT {select} FROM lake_arrow", {})
    finally:
        engine.work.unregister("lake_arrow")
    assert fragment is not None, "rows that are held are written"
    return Staged(fragment, None)


def put_back(place: Place, fragment: Fragment, load_inline: Callable[[int], bytes]) -> Staged:
    """A committed fragment as a new one with the same rows and row ids: no data is written, a file gets a second name."""
    again = replace(fragment, fragment_id=place.staged_id)
    if fragment.path is None:
        return Staged(again, load_inline(fragment.fragment_id))
    place.paths.existing_data_file(fragment.table_id, fragment.path, fragment.size_bytes)
    files.link_data_file(place.paths, fragment.table_id, fragment.path, place.file_name)
    return Staged(replace(again, path=place.file_name), None)


def fields_of(table: Table, row_ids: bool) -> list[Field]:
    """The columns of a file of the table, with that of the row ids or without."""
    return [c.stored for c in table.columns] + ([ROW_ID_STORED] if row_ids else [])


def _copy(
    engine: Engine, place: Place, table_id: int, fields: list[Field], select: str, parameters: Mapping[str, Any], *, order: str = ""
) -> Fragment | None:
    """A file with the rows of `select`, whose columns are called as the fields; None, and no file, if there are none."""
    path = place.paths.data_file(table_id, place.file_name)
    files.make_table_folder(place.paths, table_id)
    try:
        answer = engine.run(f"COPY ({select}) TO {literal(str(path))} ({copy_form(place, fields)}, RETURN_STATS true{order})", parameters)[0]
        row_count, size_bytes = int(answer[1]), int(answer[2])
        if row_count == 0:
            files.remove_data_file(place.paths, table_id, place.file_name)
            return None
        return Fragment(
            fragment_id=place.staged_id, table_id=table_id, storage="parquet", path=place.file_name, row_count=row_count,
            size_bytes=size_bytes, sha256=files.sha256_of(path), first_row_id=0, has_row_ids=ROW_ID_STORED in fields,
            statistics=statistics.from_copy(fields, answer[4], row_count),
        )  # fmt: skip
    except BaseException:
        files.remove_data_file(place.paths, table_id, place.file_name)
        raise


def copy_form(place: Place, fields: list[Field]) -> str:
    """The options of a COPY that writes files as they are in a lake."""
    limits = place.limits
    form = f"FORMAT parquet, PARQUET_VERSION V2, COMPRESSION {limits.compression}, ROW_GROUP_SIZE {limits.row_group_rows}"
    return f"{form}, FIELD_IDS {types.field_ids_clause(fields)}"


def _inline(place: Place, table_id: int, fields: list[Field], rows: pa.Table) -> Staged | None:
    """The rows as an inline fragment, or None if they are too many."""
    if not 0 < rows.num_rows <= place.limits.inline_rows:
        return None
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    ipc = sink.getvalue().to_pybytes()
    if len(ipc) > place.limits.inline_bytes:
        return None
    fragment = Fragment(
        fragment_id=place.staged_id, table_id=table_id, storage="inline", path=None, row_count=rows.num_rows, size_bytes=len(ipc),
        sha256=hashlib.sha256(ipc).hexdigest(), first_row_id=0, has_row_ids=ROW_ID_STORED in fields,
        statistics=statistics.from_arrow(fields, rows),
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
