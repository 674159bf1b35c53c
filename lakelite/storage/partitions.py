"""Partitions: the value that each row has for a key, as text, and dividing a file by them.

    column      the value itself
    year …      2024, 2024-03, 2024-03-15, 2024-03-15-10, in UTC
    bucket      its number, from 0 (buckets.py)

NULL is a partition of its own. What a partition rules out is a matter of statistics, which know of a file no less than its partition does,
and of its bucket (statistics.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakelite.model import ROW_ID_COLUMN, ZONED, Field, Fragment, PartitionKey, Table, Transform, fold, literal, quote
from lakelite.storage import buckets, files, scan, statistics, types
from lakelite.storage.engine import Engine
from lakelite.storage.fragment import Place, Staged, copy_form, fields_of
from lakelite.storage.scan import ROW_ID_STORED

MOST_OPEN_FILES = 100  # DuckDB writes so many at once; the rows of more partitions are sorted first
_MOMENTS = frozenset("TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS".split())
_FORMS: dict[Transform, str] = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}
Partition = Sequence[str | None]
_VALUES = "temp.lake_partitions"  # the partitions of a file that is divided, each with a number


def can_be(transform: Transform, declared: str) -> bool:
    """Whether a column of that type can be a key: plain values, and for transforms those that they are about."""
    if transform == "bucket":
        return buckets.is_whole(declared) or declared in _MOMENTS | {"VARCHAR", "UUID", "DATE", ZONED}
    if transform in _FORMS:
        return declared in _MOMENTS | {ZONED} or (declared == "DATE" and transform != "hour")
    return not declared.endswith("]") and not declared.startswith(("STRUCT(", "MAP(", "UNION("))


def value(key: PartitionKey, expression: str, declared: str) -> str:
    """The SQL of a row's value for the key, as text, where `expression` is the column."""
    moment = f"timezone('UTC', {expression})" if declared == ZONED else expression
    if key.transform in _FORMS:
        return f"strftime({moment}, {literal(_FORMS[key.transform])})"
    if key.buckets is not None:
        return f"({buckets.sql(moment, key.buckets)})::VARCHAR"
    return f"CAST({moment} AS VARCHAR)"


def values(table: Table, keys: Sequence[PartitionKey], columns: dict[int, str]) -> str:
    """The same for several keys of a table, as a list. `columns`: the SQL of each column by its field id."""
    types_of = {c.field_id: c.type for c in table.columns}
    return f"list_value({', '.join(value(key, columns[key.field_id], types_of[key.field_id]) for key in keys)})::VARCHAR[]"


# Dividing a file.


def divided(engine: Engine, place: Place, table: Table, staged: Staged) -> tuple[Staged, ...]:
    """The rows of a staged file as files that hold one partition each; inline rows stay as they are until they are moved into files.

    Where the file holds one partition only, it stays. Else it is read once more, and removed.
    """
    if not table.partitioning or staged.fragment.path is None:
        return (staged,)
    fields = fields_of(table, staged.fragment.has_row_ids)
    rows = scan.stored_rows(fields, str(place.paths.data_file(table.table_id, staged.fragment.path)))
    key = values(table, table.partitioning, {c.field_id: types.decode(f"r.f{c.field_id}", c.type) for c in table.columns})
    try:
        engine.run(f"CREATE OR REPLACE TEMP TABLE {_VALUES} AS SELECT {key} AS v, row_number() OVER (ORDER BY v) AS n FROM ({rows}) r GROUP BY v")
        found = [row[0] for row in engine.run(f"SELECT v FROM {_VALUES} ORDER BY n")]
        if len(found) == 1:
            return (Staged(_tagged(staged.fragment, table, found[0]), None),)
        parts = _written(engine, place, table, fields, f"({rows}) r JOIN {_VALUES} p ON p.v IS NOT DISTINCT FROM {key}", found)
    finally:
        engine.run(f"DROP TABLE IF EXISTS {_VALUES}")
    files.remove_data_file(place.paths, table.table_id, staged.fragment.path)
    return parts


def _tagged(fragment: Fragment, table: Table, partition: Partition) -> Fragment:
    return replace(fragment, partition=tuple(zip(table.partitioning, partition, strict=True)))


def _written(engine: Engine, place: Place, table: Table, fields: list[Field], rows: str, partitions: Sequence[Partition]) -> tuple[Staged, ...]:
    """Has DuckDB write a folder of files, and takes each over. `rows`: what is read, as r, beside p.n, the number of a row's partition, from 1."""
    number = _free(fields)
    columns = ", ".join(f"r.f{f.field_id} AS {quote(f.name)}" for f in fields)
    order = " ORDER BY p.n, r.file_row_number" if len(partitions) > MOST_OPEN_FILES else ""
    form = f"{copy_form(place, fields)}, PARTITION_BY ({number}), RETURN_STATS true"
    made: list[Staged] = []
    with files.divided_folder(place.paths, place.file_name) as folder:
        try:
            for answer in engine.run(f"COPY (SELECT {columns}, p.n AS {number} FROM {rows}{order}) TO {literal(str(folder))} ({form})"):
                partition = partitions[int(next(iter(answer[5].values()))) - 1]
                fragment = _taken_over(place.another(), table, fields, answer)
                made.append(Staged(_tagged(fragment, table, partition), None))
        except BaseException:
            for one in made:
                files.remove_data_file(place.paths, table.table_id, str(one.fragment.path))
            raise
    return tuple(made)


def _taken_over(place: Place, table: Table, fields: list[Field], answer: tuple[Any, ...]) -> Fragment:
    """A file that DuckDB has written, from its row of RETURN_STATS: path, rows, bytes, bytes of the footer, statistics, …"""
    path, count, size_bytes, _, column_statistics, *_ = answer
    files.take_over(place.paths, path, table.table_id, place.file_name)
    return Fragment(
        fragment_id=place.staged_id, table_id=table.table_id, storage="parquet", path=place.file_name, row_count=int(count),
        size_bytes=int(size_bytes), sha256=files.sha256_of(place.paths.data_file(table.table_id, place.file_name)), first_row_id=0,
        has_row_ids=ROW_ID_STORED in fields, statistics=statistics.from_copy(fields, column_statistics, int(count)),
    )  # fmt: skip


def _free(fields: Sequence[Field]) -> str:
    """A name that no column has."""
    taken = {fold(f.name) for f in fields} | {ROW_ID_COLUMN}
    name = "_lake_partition"
    while name in taken:
        name += "_"
    return name
