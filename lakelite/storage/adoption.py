"""Taking a Parquet file as a fragment, as it is: a second name for it in the lake, and what its footer says.

Owns which files can be taken. Its rows are not read: what they have to meet is tested by whoever takes it. Never touches the catalog, and
never the file under its first name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from lakelite.errors import NotSupportedError, ProgrammingError
from lakelite.mapping.engine_errors import foreign_file_error
from lakelite.mapping.names import did_you_mean
from lakelite.model import Column, Field, FileColumn, Fragment, Statistics, Table, fold, literal, quote
from lakelite.records import dataclass
from lakelite.storage import files, type_text, types
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


@dataclass(frozen=True, slots=True)
class File:
    """A file that was taken. `path`: as its owner calls it; `own`: where the lake has it. Everything is read there, so that it is the same file."""

    path: str
    own: str

    @property
    def rows(self) -> str:
        """What a FROM clause says to mean its rows."""
        return f"read_parquet({literal(self.own)}, hive_partitioning => false)"

    def read(self, engine: Engine, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query that reads nothing else; an error in it is one of the file."""
        try:
            return engine.run(sql)
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise
        except duckdb.Error as error:
            raise foreign_file_error(error, self.path, self.own) from error


def take(place: Place, table_id: int, path: str) -> File:
    """Gives the file a name of the lake's. OperationalError: it is missing, no regular file, or the disk is full."""
    files.make_table_folder(place.paths, table_id)
    files.take_data_file(place.paths, table_id, path, place.file_name)
    return File(path, str(place.paths.data_file(table_id, place.file_name)))


def columns_of(engine: Engine, table: Table, file: File, default: Callable[[Column], str | None]) -> tuple[FileColumn, ...]:
    """How the file has the columns of the table. `default`: the stored value, as text, of a column that the file lacks.

    ProgrammingError: it has another column, or one of another type; NotSupportedError: of a type that files of others do not have;
    DataError: it is no Parquet file.
    """
    _check_once(engine, file)
    there: list[tuple[str, str]] = [(r[0], r[1]) for r in file.read(engine, f"DESCRIBE FROM {file.rows}")]
    by_name = {fold(name): (name, kind) for name, kind in there}
    known = {fold(c.name): c for c in table.columns}
    for name, _ in there:
        if fold(name) not in known or fold(name) in _TAKEN:
            near = did_you_mean(name, [c.name for c in table.columns])
            raise ProgrammingError(f'{file.path} has a column "{name}", and table {table.qualified} has none', hint=near or _OTHERWISE)
    return tuple(_column(table, c, file.path, by_name.get(fold(c.name)), default) for c in table.columns)


def _check_once(engine: Engine, file: File) -> None:
    """DuckDB calls the second of two columns otherwise, so that it is looked up in the schema of the file itself."""
    names: list[str] = []
    inner = 0
    for name, children in file.read(engine, f"SELECT name, num_children FROM parquet_schema({literal(file.own)}) OFFSET 1"):
        if inner:
            inner -= 1
        else:
            names.append(name)
        inner += children or 0
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(fold(name), name)
        if first is not name:
            raise ProgrammingError(f'{file.path} has two columns that a table cannot tell apart: "{first}" and "{name}"', hint=_OTHERWISE)
    if not names:
        raise ProgrammingError(f"{file.path} has no columns", hint=_OTHERWISE)


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


def hides_nan(engine: Engine, table: Table, file: File, columns: Sequence[FileColumn]) -> bool:
    """Whether its footer has bounds that leave a NaN out: DuckDB, for which NaN is above all else, would not find its row.

    Only columns of floating-point numbers with bounds are read for that.
    """
    kinds = {c.field_id: type_text.read(c.type) for c in table.columns}
    tests = {c.name: test for c in columns if c.name is not None and (test := _has_nan(quote(c.name), kinds[c.field_id], 0))}
    if not tests:
        return False
    some = "coalesce(stats_min_value, stats_max_value, stats_min, stats_max) IS NOT NULL"
    bounded = [row[0] for row in file.read(engine, f"SELECT DISTINCT path_in_schema FROM parquet_metadata({literal(file.own)}) WHERE {some}")]
    doubtful = [test for name, test in tests.items() if any(path == name or path.startswith(f"{name}, ") for path in bounded)]
    return bool(doubtful) and bool(file.read(engine, f"SELECT bool_or({' OR '.join(doubtful)}) FROM {file.rows}")[0][0])


def _has_nan(value: str, kind: type_text.Type, depth: int) -> str:
    """SQL that is true where a value has a NaN in it; nothing where its type has no floating-point numbers."""
    match kind.name:
        case "FLOAT" | "DOUBLE":
            return f"isnan({value})"
        case "STRUCT":
            parts = [_has_nan(f"struct_extract({value}, {literal(name)})", member, depth) for name, member in kind.members]
        case "LIST":
            parts = [_any_has_nan(value, kind.members[0][1], depth)]
        case "MAP":
            lists = (f"map_keys({value})", f"map_values({value})")
            parts = [_any_has_nan(values, member, depth) for values, (_, member) in zip(lists, kind.members, strict=True)]
        case _:
            parts = []
    return " OR ".join(filter(None, parts))


def _any_has_nan(values: str, kind: type_text.Type, depth: int) -> str:
    test = _has_nan(f"x{depth}", kind, depth + 1)
    return f"list_bool_or([{test} for x{depth} in {values}])" if test else ""


def staged(engine: Engine, place: Place, table: Table, file: File, columns: tuple[FileColumn, ...]) -> Staged | None:
    """The file, taken at that place, as a staged fragment; None if it has no rows."""
    row_count = int(file.read(engine, f"SELECT num_rows FROM parquet_file_metadata({literal(file.own)})")[0][0])
    if row_count == 0:
        return None
    names = {c.field_id: c.name for c in columns if c.name is not None}
    named = {names[c.field_id]: c.stored for c in table.columns if c.field_id in names}
    own = Path(file.own)
    fragment = Fragment(
        fragment_id=place.staged_id, table_id=table.table_id, storage="parquet", path=place.file_name, row_count=row_count,
        size_bytes=own.stat().st_size, sha256=files.sha256_of(own), first_row_id=0, has_row_ids=False,
        statistics=_statistics(engine, named, file), columns=columns,
    )  # fmt: skip
    return Staged(fragment, None)


def _statistics(engine: Engine, named: Mapping[str, Field], file: File) -> tuple[Statistics, ...]:
    """What the footer, read once, says of the leaf columns; bounds where each row group that holds a value has them."""
    wanted = {name: field for name, field in named.items() if not field.children and ", " not in name}
    alike: dict[str, list[str]] = {}
    for name, field in wanted.items():
        alike.setdefault(_bounds(field.type), []).append(literal(name))
    if not alike:
        return ()
    metadata = f"WITH m AS MATERIALIZED (FROM parquet_metadata({literal(file.own)}))"
    parts = [f"SELECT path_in_schema, {each} FROM m WHERE path_in_schema IN ({', '.join(names)}) GROUP BY ALL" for each, names in alike.items()]
    return tuple(_made(wanted[row[0]], *row[1:]) for row in file.read(engine, f"{metadata} {' UNION ALL '.join(parts)}"))


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
