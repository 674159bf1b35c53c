"""What happened to the fragments and the columns of one table between two snapshots, read from the catalog. Nothing else of the table is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from lakelite import deletion
from lakelite.catalog.decoding import columns_by_table, file_column, grouped
from lakelite.catalog.store import Catalog
from lakelite.model import Column, Fragment, Table, fold
from lakelite.records import dataclass


@dataclass(frozen=True, slots=True)
class Life:
    """A fragment: the snapshots that brought it and took it away (None: it is still there), and its deletion vectors in order.

    Those are the one that was in force before the first snapshot that was asked for, and all that came up to the last.
    """

    fragment: Fragment
    born: int
    gone: int | None
    vectors: Sequence[deletion.DeletionVector]


def lives(catalog: Catalog, table: Table, first: int, last: int) -> list[Life]:
    """The fragments that came, went or lost rows in the snapshots from `first` to `last`, by their ids."""
    rows = catalog.rows("fragments_touched", table_id=table.table_id, first=first, last=last)
    vectors: dict[int, list[deletion.DeletionVector]] = {row[0]: [] for row in rows}
    for row in catalog.rows("vectors_touched", fragments=json.dumps(list(vectors)), first=first, last=last):
        vectors[row[0]].append(deletion.decode(deletion.Encoded(*row[1:5]), row[5]))
    adopted = catalog.rows("adopted_columns_of", table_id=table.table_id, fragments=json.dumps(list(vectors)))
    columns = grouped((row[0], file_column(row[1:])) for row in adopted)
    fragments = [replace(Fragment(*(*row[:8], bool(row[8]))), columns=columns.get(row[0], ())) for row in rows]
    return [Life(fragment, row[9], row[10], vectors[row[0]]) for fragment, row in zip(fragments, rows, strict=True)]


def kinds(catalog: Catalog, table: Table, first: int, last: int) -> dict[int, frozenset[str]]:
    """What each snapshot from `first` to `last` that touched the table did to it."""
    rows = catalog.rows("table_effects", table_id=table.table_id, first=first, last=last)
    return {snapshot: frozenset(text.split(",")) for snapshot, text in rows}


def columns(catalog: Catalog, table: Table, first: int, last: int) -> list[tuple[int, tuple[Column, ...]]]:
    """What columns the table had in the snapshots from `first` to `last`: since which snapshot, in order, and the columns."""
    rows = catalog.rows("columns_between", table_id=table.table_id, first=first, last=last)
    changed = {row[9] for row in rows} | {row[10] for row in rows if row[10] is not None and row[10] <= last}

    def at(snapshot: int) -> tuple[Column, ...]:
        there = [row[:9] for row in rows if row[9] <= snapshot and (row[10] is None or row[10] > snapshot)]
        return columns_by_table(there).get(table.table_id, ())

    return [(snapshot, at(snapshot)) for snapshot in sorted(changed)]


def namesake(catalog: Catalog, table: Table, first: int, last: int) -> tuple[int, int] | None:
    """The newest other table that had the name of `table` in the snapshots from `first` to `last`: when it got the name and when it lost it."""
    found = catalog.rows("namesake", table_id=table.table_id, schema=fold(table.schema_name), name=fold(table.name), first=first, last=last)
    return (int(found[0][0]), int(found[0][1])) if found else None
