"""Rows of the catalog as values: tables with columns, constraints, comments and views; fragments; deletion vectors. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from lakelite import deletion
from lakelite.errors import InternalError
from lakelite.model import Column, Constraint, Field, FileColumn, Fragment, PartitionKey, Statistics, Table, View

OF_TABLE = 0  # the field id of a comment that is the table's own
Row = tuple[Any, ...]
_TYPE = re.compile(r"""(?:[^;'"/$\\-]|'(?:[^']|'')*+'|"(?:[^"]|"")*+")++""")
_Value = TypeVar("_Value")


def columns_by_table(rows: Iterable[Row]) -> dict[int, tuple[Column, ...]]:
    roots: dict[int, list[Row]] = {}
    children: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        table_id, _, parent = row[:3]
        (roots.setdefault(table_id, []) if parent is None else children.setdefault((table_id, parent), [])).append(row)

    def tree(row: Row) -> Field:
        return Field(row[1], row[3], row[5], tuple(tree(child) for child in children.get((row[0], row[1]), [])), row[8])

    return {
        table_id: tuple(Column(name=row[3], type=row[4], stored=tree(row), nullable=bool(row[6]), default=row[7]) for row in found)
        for table_id, found in roots.items()
    }


def grouped(pairs: Iterable[tuple[int, _Value]]) -> dict[int, tuple[_Value, ...]]:
    found: dict[int, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def constraints_by_table(rows: Iterable[Row]) -> dict[int, list[Constraint]]:
    found: dict[int, list[Constraint]] = {}
    for table_id, kind, name, expression, columns in rows:
        named = tuple((column, field_id) for column, field_id in json.loads(columns))
        found.setdefault(table_id, []).append(Constraint(kind, name, expression, named))
    return found


def view_of(row: Row) -> View:
    return View(row[1], tuple(json.loads(row[2])), tuple((name, comment) for name, comment in json.loads(row[3])))


def file_column(row: Row) -> FileColumn:
    """InternalError: its type is none, and would not stay in the place of one."""
    if not _TYPE.fullmatch(row[3]):
        raise InternalError(f"the catalog was changed by another program: {row[3][:80]!r} is no type", hint="restore the lake from a copy")
    return FileColumn(*row)


def commented(table: Table, comments: Mapping[tuple[int, int], str]) -> Table:
    if not comments:
        return table
    columns = tuple(replace(c, comment=comments.get((table.table_id, c.field_id))) for c in table.columns)
    return replace(table, columns=columns, comment=comments.get((table.table_id, OF_TABLE)))


def vector_of(row: Row) -> deletion.DeletionVector:
    try:
        return deletion.decode(deletion.Encoded(*row[1:5]), row[5])
    except InternalError as error:
        raise InternalError(f"fragment {row[0]}: {error.message}", hint="restore the lake from a copy") from error


def fragments_by_id(
    rows: Iterable[Row],
    statistics: Mapping[int, list[Statistics]],
    partitions: Mapping[int, tuple[tuple[PartitionKey, str | None], ...]],
    columns: Mapping[int, tuple[FileColumn, ...]],
) -> dict[int, Fragment]:
    def made(row: Row) -> Fragment:
        found, known = Fragment(*(*row[:8], bool(row[8]))), tuple(statistics.get(row[0], ()))
        return replace(found, statistics=known, born=row[9], partition=partitions.get(row[0], ()), columns=columns.get(row[0], ()))

    return {row[0]: made(row) for row in rows}
