"""The SQL that reads an adopted file: one that was taken as it is, whose columns are found by the names that they had then.

Promises: columns called f<field id>, as a scan by field ids gives them. Pure text.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelite.model import ROW_ID_FIELD, Field, FileColumn, literal, quote


def rows(fields: Sequence[Field], columns: Sequence[FileColumn], paths: Sequence[str], *, row_ids: bool, numbered: bool) -> str:
    """A SELECT of `fields`, as they are stored now, over files that have the same `columns`.

    `row_ids`: their column too, which no such file has; `numbered`: file_row_number and file_index too.
    """
    known = {column.field_id: column for column in columns}
    selected = [f"{_value(field, known.get(field.field_id))} AS f{field.field_id}" for field in fields]
    if row_ids or not fields:
        selected.append(f"NULL::BIGINT AS f{ROW_ID_FIELD}")
    if numbered:
        selected += ["file_row_number", "file_index"]
    number = ", file_row_number => true" if numbered else ""
    return f"SELECT {', '.join(selected)} FROM read_parquet([{', '.join(map(literal, paths))}], hive_partitioning => false{number})"


def _value(field: Field, column: FileColumn | None) -> str:
    if column is None:
        return "NULL::" + field.type if field.initial is None else f"CAST({literal(field.initial)} AS {field.type})"
    if column.name is not None:
        return f"CAST({quote(column.name)} AS {field.type})"
    return "NULL::" + field.type if column.value is None else f"CAST(CAST({literal(column.value)} AS {column.type}) AS {field.type})"
