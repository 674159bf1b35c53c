"""The columns that a table had over a run of snapshots, in the eyes of the last one.

A column of the last snapshot is found in an older one by its field id, else by its name, if that was another column that is
gone by now: then its values are cast. Asks DuckDB whether a cast is there at all; never reads a row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter

import duckdb

from lakelite.model import Column, Table, fold, quote
from lakelite.storage.engine import Engine
from lakelite.transaction.binding import names_within


@dataclass(frozen=True)
class ColumnHistory:
    """`table`: as of the last snapshot. `versions`: since which snapshot it had which columns, in order, the last ones included."""

    table: Table
    versions: Sequence[tuple[int, tuple[Column, ...]]]

    def at(self, snapshot: int) -> Table:
        """The table as it is to be read in a snapshot: for each column of the last one, the column that it was, under the name of now."""
        return self._tables[max(0, bisect_right(self.versions, snapshot, key=itemgetter(0)) - 1)]

    @cached_property
    def _tables(self) -> list[Table]:
        return [replace(self.table, columns=tuple(self._source(column, then) for column in self.table.columns)) for _, then in self.versions]

    def _source(self, column: Column, then: Sequence[Column]) -> Column:
        kept = {c.field_id for c in self.table.columns}
        if column.field_id in {c.field_id for c in then}:
            return column
        named = (c for c in then if fold(c.name) == fold(column.name) and c.field_id not in kept)
        return next((replace(c, name=column.name) for c in named), column)

    def torn_in(self) -> tuple[int, str] | None:
        """The version in which some fields inside of a column were renamed or dropped, and the column: a cast would find others by their names."""
        for (start, _), table in reversed([*zip(self.versions[1:], self._tables, strict=False)]):
            for old, new in zip(table.columns, self.table.columns, strict=True):
                before, now = names_within(old.stored), names_within(new.stored)
                if old.field_id != new.field_id and before & now and not before <= now:
                    return start, new.name
        return None

    def changed_in(self, snapshot: int) -> bool:
        """Whether a snapshot gave the table other columns."""
        return any(start == snapshot for start, _ in self.versions[1:])


def casts(engine: Engine, read: Table, table: Table, scan: str) -> str:
    """The columns of `table` as c0, c1, … from a scan of `read`, which is the same table as it was: ColumnHistory.at."""
    pairs = enumerate(zip(read.columns, table.columns, strict=True))
    return ", ".join(f"{_cast(engine, old, new, f'{scan}.{quote(new.name)}')} AS c{i}" for i, (old, new) in pairs)


def _cast(engine: Engine, old: Column, new: Column, value: str) -> str:
    if old.type == new.type:
        return value
    return f"TRY_CAST({value} AS {new.type})" if _can_cast(engine, old, new) else f"NULL::{new.type}"


def _can_cast(engine: Engine, old: Column, new: Column) -> bool:
    try:
        engine.do(f"SELECT TRY_CAST(NULL::{old.type} AS {new.type})")
    except duckdb.Error:  # DuckDB knows of no such cast, between two structs for instance
        return False
    return True


def notes(engine: Engine, history: ColumnHistory, snapshots: Iterable[int]) -> Iterator[str]:
    """What a user should know of values that were of another type in any of `snapshots`, from which rows are read."""
    read = set(snapshots)
    for (start, _), (end, _) in pairwise(history.versions):
        if any(start <= snapshot < end for snapshot in read):
            yield from _notes_of(history.at(start), history.table, end, lambda old, new: _can_cast(engine, old, new))


def _notes_of(then: Table, now: Table, end: int, can_cast: Callable[[Column, Column], bool]) -> Iterator[str]:
    for old, new in zip(then.columns, now.columns, strict=True):
        if old.type != new.type:
            outcome = "are cast, and NULL where that fails" if can_cast(old, new) else "are NULL, since there is no such cast"
            yield f'column "{new.name}" was {old.type} before version {end} and is {new.type} now: its older values {outcome}'
