"""Taking a Parquet file as a fragment, as it is: a second name for it in the lake, and what its footer says.

Owns which files can be taken. Its rows are not read: what they have to meet is tested by whoever takes it. Never touches the catalog, and
never the file under its first name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelite.errors import NotSupportedError, ProgrammingError
from lakelite.mapping.names import did_you_mean
from lakelite.model import Column, Field, FileColumn, Fragment, Statistics, Table, fold, literal
from lakelite.storage import files, types
from lakelite.storage.engine import Engine
from lakelite.storage.fragment import Place, Staged
from lakelite.storage.statistics import FLOATS, INTEGERS

_LONGEST_BOUND = 200
_BOUNDED = INTEGERS | FLOATS | {"VARCHAR", "DATE", "TIMESTAMP"}
_TAKEN = frozenset({"file_row_number", "file_index"})  # what a scan calls its own columns
_OTHERWISE = "COPY without ADOPT converts what it reads, and INSERT INTO … BY NAME SELECT … takes the columns that you name"


def paths(engine: Engine, pattern: str) -> list[str]:
    """The files that a path or a pattern means, by name; DuckDB's error if there is none."""
    found = [row[0] for row in engine.run(f"SELECT file FROM glob({literal(pattern)}) ORDER BY file")]
    if not found:
        engine.run(f"FROM parquet_file_metadata({literal(pattern)})")
    if any("://" in path for path in found or [pattern]):
        raise NotSupportedError("ADOPT of a file that is elsewhere", hint="it is for files of this machine; use COPY without ADOPT")
    return found


def columns_of(engine: Engine, table: Table, path: str, default: Callable[[Column], str | None]) -> tuple[FileColumn, ...]:
    """How the file has the columns of the table. `default`: the stored value, as text, of a column that the file lacks.

    ProgrammingError: it has another column, or one of another type; NotSupportedError: of a type that files of others do not have.
    """
    there: list[tuple[str, str]] = [(r[0], r[1]) for r in engine.run(f"DESCRIBE FROM read_parquet({literal(path)}, hive_partitioning => false)")]
    by_name = {fold(name): (name, kind) for name, kind in there}
    known = {fold(c.name): c for c in table.columns}
    for name, _ in there:
        if fold(name) not in known or fold(name) in _TAKEN:
            near = did_you_mean(name, [c.name for c in table.columns])
            raise ProgrammingError(f'{path} has a column "{name}", and table {table.qualified} has none', hint=near or _OTHERWISE)
    if not there:
        raise ProgrammingError(f"{path} has no columns", hint=_OTHERWISE)
    return tuple(_column(table, c, path, by_name.get(fold(c.name)), default) for c in table.columns)


def _column(table: Table, column: Column, path: str, there: tuple[str, str] | None, default: Callable[[Column], str | None]) -> FileColumn:
    stored = column.stored.type
    if there is None:
        return FileColumn(column.field_id, None, default(column), stored)
    name, kind = there
    if kind != column.type:
        message = f'column "{name}" of {path} is {kind}, and {table.qualified}.{column.name} is {column.type}'
        raise ProgrammingError(message, hint=_OTHERWISE)
    if types.decode("x", column.type) != "x" and column.type != "UUID":
        raise NotSupportedError(f"ADOPT of a file with a column of type {column.type} ({name})", hint="use COPY without ADOPT")
    return FileColumn(column.field_id, name, None, stored)


def take(engine: Engine, place: Place, table: Table, path: str, columns: tuple[FileColumn, ...]) -> Staged | None:
    """The file as a staged fragment, under a name of the lake's; None, and no such name, if it has no rows."""
    files.make_table_folder(place.paths, table.table_id)
    files.take_data_file(place.paths, table.table_id, path, place.file_name)
    try:
        own = place.paths.existing_data_file(table.table_id, place.file_name)
        row_count = int(engine.run(f"SELECT num_rows FROM parquet_file_metadata({literal(str(own))})")[0][0])
        if row_count == 0:
            files.remove_data_file(place.paths, table.table_id, place.file_name)
            return None
        names = {c.field_id: c.name for c in columns if c.name is not None}
        named = [(names[c.field_id], c.stored) for c in table.columns if c.field_id in names]
        fragment = Fragment(
            fragment_id=place.staged_id, table_id=table.table_id, storage="parquet", path=place.file_name, row_count=row_count,
            size_bytes=own.stat().st_size, sha256=files.sha256_of(own), first_row_id=0, has_row_ids=False,
            statistics=_statistics(engine, named, str(own)), columns=columns,
        )  # fmt: skip
    except BaseException:
        files.remove_data_file(place.paths, table.table_id, place.file_name)
        raise
    return Staged(fragment, None)


def _statistics(engine: Engine, named: Sequence[tuple[str, Field]], path: str) -> tuple[Statistics, ...]:
    """What the footer says of the leaf columns; bounds where each row group that holds a value has them."""
    wanted = [(name, field) for name, field in named if not field.children and ", " not in name]
    if not wanted:
        return ()
    metadata = f"FROM parquet_metadata({literal(path)})"
    parts = [f"SELECT {i}, {_bounds(field.type)} {metadata} WHERE path_in_schema = {literal(name)}" for i, (name, field) in enumerate(wanted)]
    return tuple(_made(wanted[row[0]][1], *row[1:]) for row in engine.run(" UNION ALL ".join(parts)))


def _bounds(kind: str) -> str:
    counted = "CASE WHEN bool_and(stats_null_count IS NOT NULL) THEN sum(stats_null_count)::BIGINT END"
    if kind not in _BOUNDED:
        return f"NULL, NULL, {counted}"
    low, high = f"TRY_CAST(stats_min_value AS {kind})", f"TRY_CAST(stats_max_value AS {kind})"
    are_known = f"bool_and(num_values = stats_null_count OR ({low} IS NOT NULL AND {high} IS NOT NULL))"
    return f"CASE WHEN {are_known} THEN min({low})::VARCHAR END, CASE WHEN {are_known} THEN max({high})::VARCHAR END, {counted}"


def _made(field: Field, low: str | None, high: str | None, null_count: int | None) -> Statistics:
    if low is None or high is None or max(len(low), len(high)) > _LONGEST_BOUND:
        low = high = None
    return Statistics(field.field_id, low, high, null_count, exact=False, may_hold_nan=field.type in FLOATS)
