"""COPY t FROM 'x.parquet' (ADOPT): files become fragments as they are. What a row has to meet is tested on them, as on any that were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelite.errors import IntegrityError, NotSupportedError, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.parse import is_volatile, uses_clock
from lakelite.model import Column, FileColumn, Table, fold, quote
from lakelite.storage import adoption, files, fragment, types
from lakelite.storage.fragment import Staged
from lakelite.transaction import changes as ch
from lakelite.transaction import source
from lakelite.transaction.execution import Call, Done, Execution, find_table

_OPTION = "adopt"
_ON = ("true", "1", "on")


def is_wanted(operation: st.CopyFrom) -> bool:
    """Whether the statement says ADOPT."""
    return any(name == _OPTION for name, _ in operation.options)


def copy_from(execution: Execution, work: ch.Work, operation: st.CopyFrom, call: Call) -> Done:
    """Each file that the path means is a fragment of its own. They are used again as they are where the statement runs again."""
    table = find_table(work, operation.target, call)
    path = _path(operation, call.values)
    taken = [_adopted(execution, table, file) for file in adoption.paths(execution.engine, path)]
    staged = tuple(one for _, fragments in taken for one in fragments)
    change = work.changes.change_of(table)
    is_constant = not change.created and not change.redefines
    changes = work.changes.with_change(ch.append(change, staged, "append"))
    if not is_constant:
        changes = replace(changes, external=changes.external or call.text)
    rows = sum(one.fragment.row_count for one in staged)
    done = Done(replace(work, changes=changes), rows, constant=staged if is_constant else (), is_constant=is_constant, repeatable=False)
    return replace(done, given=_given(table, (columns for columns, fragments in taken if fragments)))


def _given(table: Table, files: Iterable[Sequence[FileColumn]]) -> frozenset[str]:
    """The names, folded, of the columns that all files have."""
    missing = {column.field_id for columns in files for column in columns if column.name is None}
    return frozenset(fold(c.name) for c in table.columns if c.field_id not in missing)


def _path(operation: st.CopyFrom, values: Mapping[str, Any]) -> str:
    if operation.columns is not None:
        raise ProgrammingError("ADOPT takes the columns of a file by name", hint="leave the list of columns out")
    for name, value in operation.options:
        shown = (value or "true").strip("'").lower()
        if name == _OPTION and shown not in _ON:
            raise ProgrammingError(f"ADOPT is on or left out, and not {value}", hint="write (ADOPT)")
        if name == "format" and shown != "parquet":
            raise NotSupportedError(f"ADOPT of a {shown} file", hint="it takes Parquet files as they are; use COPY without ADOPT")
        if name not in (_OPTION, "format"):
            raise NotSupportedError(f"ADOPT together with the option {name}", hint="leave it out")
    path = operation.path if operation.path is not None else values[operation.path_parameter or ""]
    if not isinstance(path, str):
        raise ProgrammingError("the path of COPY has to be a text", hint="pass str(path)")
    return path


def _adopted(execution: Execution, table: Table, path: str) -> tuple[Sequence[FileColumn], tuple[Staged, ...]]:
    """How the file has the columns, and its rows: it as a fragment; written anew, as by COPY, where its footer would hide some; none without rows."""
    engine, place = execution.engine, execution.place(table)
    kept: Staged | None = None
    file = adoption.take(place, table.table_id, path)
    try:
        columns = adoption.columns_of(engine, table, file, lambda column: _default(execution, table, column, path))
        _check_not_null(execution, table, file, {fold(c.name): c.name for c in columns if c.name is not None})
        if adoption.hides_nan(engine, table, file, columns):
            return columns, _written(execution, table, file)
        kept = adoption.staged(engine, place, table, file, columns)
    finally:
        if kept is None:
            files.remove_data_file(place.paths, table.table_id, place.file_name)
    if kept is None:
        return columns, ()
    execution.written.append(kept)  # undivided: of a partitioned table OPTIMIZE divides it
    return columns, (kept,)


def _written(execution: Execution, table: Table, file: adoption.File) -> tuple[Staged, ...]:
    rows = source.select_for_insert(execution, table, None, by_name=True, ctes="", query=f"SELECT * FROM {file.rows}", values={})
    return execution.keep(table, fragment.write(execution.engine, execution.place(table), table, rows, {}))


def _default(execution: Execution, table: Table, column: Column, path: str) -> str | None:
    """The stored value, as text, that rows get for a column that the file lacks."""
    if column.default is None:
        if not column.nullable:
            raise _is_null(table, column, path)
        return None
    stored = types.encode(f"CAST(({column.default}) AS {column.type})", column.type)
    again = f"CAST(CAST(s AS VARCHAR) AS {column.stored.type})"
    found = execution.engine.run(f"WITH d AS MATERIALIZED (SELECT {stored} AS s) SELECT CAST(s AS VARCHAR), {again} IS NOT DISTINCT FROM s FROM d")
    if uses_clock(column.default) or is_volatile(column.default) or not found[0][1]:
        message = f"ADOPT of a file without the column {column.name}, whose default is no constant"
        raise NotSupportedError(message, hint="use INSERT INTO … BY NAME SELECT …")
    if found[0][0] is None and not column.nullable:
        raise _is_null(table, column, path)
    return str(found[0][0]) if found[0][0] is not None else None


def _check_not_null(execution: Execution, table: Table, file: adoption.File, names: Mapping[str, str]) -> None:
    wanted = [c for c in table.columns if not c.nullable and fold(c.name) in names]
    if not wanted:
        return
    counts = ", ".join(f"count_if({quote(names[fold(c.name)])} IS NULL)" for c in wanted)
    rows = file.read(execution.engine, f"SELECT {counts} FROM {file.rows}")
    for column, count in zip(wanted, rows[0], strict=True):
        if count:
            raise _is_null(table, column, file.path)


def _is_null(table: Table, column: Column, path: str) -> IntegrityError:
    return IntegrityError(
        f"NOT NULL constraint failed: {table.qualified}.{column.name}: {path} has rows without a value for it",
        hint="leave the file out, or ALTER COLUMN … DROP NOT NULL first",
    )
