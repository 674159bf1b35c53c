"""Compaction: the live rows of several fragments become one file. It moves rows, keeps their row ids, and changes none.

Each bin becomes one output with its composition (composition.py), all of them in one commit. Rows keep their order, source after
source, or are sorted along a Z-curve, and then the composition has their permutation. What winners did to the sources meanwhile
is taken over by `transaction/rebase.py`. Bins are written one after the other, so that memory follows the size of an output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelite import composition
from lakelite.contents import TableState
from lakelite.errors import InternalError, NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.conjuncts import conjuncts
from lakelite.maintenance import zorder
from lakelite.maintenance.bins import Bin, live_rows
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import Conjunct, Table, fold, quote
from lakelite.storage import fragment as fragments
from lakelite.storage.fragment import Staged
from lakelite.storage.scan import Addressed
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.source import execute, render
from lakelite.transaction.transaction import Transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEYS = "temp.lake_zorder"
_NESTED = re.compile(r"(STRUCT|MAP|UNION|VARIANT|GEOMETRY)\b|.*\]$", re.DOTALL)
_ROW_ID = quote("_lake_kept_row_id")


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction that landed did. `bins_dropped`: those whose rows another compaction had moved, or of which winners left nothing."""

    bins: int = 0
    bins_dropped: int = 0
    files_removed: int = 0
    files_added: int = 0
    rows: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    deleted_rows_purged: int = 0


def stage(tx: Transaction, table: Table, bins: Sequence[Bin], sort: Sequence[str] = ()) -> None:
    """Stages the compaction of `bins` in `tx`, which has done nothing else; the caller commits it. `sort`: columns of a Z-order."""
    state = tx.execution.view.state(table)
    change = ch.TableChange(table, kinds=frozenset({"compaction"}))
    for one in bins:
        staged, permutation = _written(tx.execution, table, state, one, sort)
        made = composition.of([(f, state.vectors.get(f.fragment_id)) for f in one], permutation)
        if staged.fragment.row_count != made.row_count:
            raise InternalError(f"a compaction wrote {staged.fragment.row_count} rows of {made.row_count}; nothing was committed")
        staged_id = staged.fragment.fragment_id
        change = replace(
            change,
            deleted={**change.deleted, **{f.fragment_id: state.alive(f.fragment_id) for f in one}},
            staged={**change.staged, staged_id: staged},
            made={**change.made, staged_id: made},
        )
    if bins:
        tx.work = replace(tx.work, changes=replace(tx.work.changes.with_change(change), blind=False))


def outcome(tx: Transaction, state: TableState, planned: int) -> Compacted:
    """What of it landed. `state`: the table as it was read; `planned`: how many bins were staged."""
    change = tx.work.changes.tables.get(state.table.table_id)
    if change is None:
        return Compacted(bins_dropped=planned)
    added = [s.fragment for s in change.live_staged()]
    sources = [source for f in added for source in change.made[f.fragment_id].sources]
    removed = [state.fragments[source] for source in sources if source in state.fragments]
    return Compacted(
        bins=len(added),
        bins_dropped=planned - len(added),
        files_removed=len(removed),
        files_added=len(added),
        rows=sum(f.row_count - len(change.staged_deleted.get(f.fragment_id, ())) for f in added),
        bytes_before=sum(f.size_bytes for f in removed),
        bytes_after=sum(f.size_bytes for f in added),
        deleted_rows_purged=sum(f.row_count - live_rows(state, f) for f in removed),
    )


def conditions(tx: Transaction, table: Table, where: st.Sql | None, call: Call) -> Sequence[Conjunct]:
    """What a row-local WHERE demands of statistics; the statement's own error where DuckDB cannot bind it."""
    if where is None:
        return ()
    text = render(tx.execution, tx.work, where, call)
    engine = tx.execution.engine
    execute(engine.work, f"EXPLAIN SELECT 1 FROM {engine.stage(table)} AS {quote(table.name)} WHERE ({text}\n)", call.values).fetchall()
    return conjuncts(text, table.columns, table.name, call.values)


def sort_columns(table: Table, wanted: Sequence[st.SortColumn], call: Call) -> list[str]:
    """The names of the columns of a ZORDER BY. ProgrammingError: no such column; NotSupportedError: a nested one."""
    columns = {fold(c.name): c for c in table.columns}
    found: list[str] = []
    for one in wanted:
        column = columns.get(fold(one.name))
        position = Position.at(call.text, one.offset)
        if column is None:
            names = [c.name for c in table.columns]
            hint = did_you_mean(one.name, names, f"its columns are: {listed(names)}")
            raise ProgrammingError(f'table {table.qualified} has no column "{one.name}"', hint=hint, position=position)
        if _NESTED.match(column.type):
            raise NotSupportedError(
                f"ZORDER BY {column.name}: a column of type {column.type} has no place on a line",
                hint="order by columns that are not nested",
                position=position,
            )
        found.append(column.name)
    return found


def _written(execution: Execution, table: Table, state: TableState, one: Bin, sort: Sequence[str]) -> tuple[Staged, NDArray[Any] | None]:
    """The output of a bin, and where it put the rows if it sorted them."""
    engine = execution.engine
    scan = engine.addressed(state, one)
    places = {f.fragment_id: i for i, f in enumerate(one)}
    sources = ", ".join(f"({number}, {places[f.fragment_id]}, {f.first_row_id})" for number, f in scan.fragments.items())
    joined = f"({scan.sql}) s JOIN (VALUES {sources}) m(source, place, first) ON m.source = s.{scan.source}"
    columns = ", ".join(f"s.{quote(c.name)}" for c in table.columns)
    select = f"SELECT {columns}, coalesce(s.{scan.row_id}, m.first + s.{scan.position}) AS {_ROW_ID} FROM {joined}"
    place = replace(execution.place(), limits=replace(execution.limits, inline_rows=0, inline_bytes=0))
    if not sort:
        return _write(execution, place, table, f"{select} ORDER BY m.place, s.{scan.position}"), None
    try:
        permutation = _permutation(execution, scan, joined, sort)
        rows = f"{select} JOIN {_KEYS} k ON k.place = m.place AND k.position = s.{scan.position} ORDER BY k.z, k.place, k.position"
        return _write(execution, place, table, rows), permutation
    finally:
        engine.run(f"DROP TABLE IF EXISTS {_KEYS}")


def _write(execution: Execution, place: fragments.Place, table: Table, rows: str) -> Staged:
    staged = execution.keep(fragments.write(execution.engine, place, table, rows, {}, row_id=_ROW_ID))
    if staged is None:
        raise InternalError(f"a compaction of {table.qualified} found no rows; nothing was committed")
    return staged


def _permutation(execution: Execution, scan: Addressed, joined: str, sort: Sequence[str]) -> NDArray[Any]:
    """The output position of each rank: the rows' order is total, so that the file will have the same."""
    engine = execution.engine
    columns = ", ".join(f"s.{quote(c)} AS {value}" for c, value in zip(sort, zorder.values(len(sort)), strict=True))
    rows = f"SELECT m.place AS lake_place, s.{scan.position} AS lake_at, {columns} FROM {joined}"
    engine.run(f"CREATE OR REPLACE TEMP TABLE {_KEYS} AS {zorder.keys(rows, len(sort))}")
    ordered = f"SELECT row_number() OVER (ORDER BY z, place, position) - 1 AS there, place, position FROM {_KEYS}"
    found = engine.work.execute(f"SELECT there::UINTEGER AS there FROM ({ordered}) ORDER BY place, position").fetchnumpy()
    return found["there"]
