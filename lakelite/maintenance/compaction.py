"""Compaction: the live rows of several fragments become few files. It moves rows, keeps their row ids, and changes none.

A bin becomes one output, in which rows keep their order, source after source; or they are divided by partition and sorted along a
Z-curve, and the rows of each partition cut into outputs. Each output has its composition (composition.py), and all of them land in one
commit. What winners did to the sources meanwhile is taken over by `transaction/rebase.py`. Bins are written one after the other, so that
memory follows the size of an output; what is sorted is held by DuckDB, which spills.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelite import composition, deletion
from lakelite.bounds import limits_of
from lakelite.composition import Composition
from lakelite.contents import TableState
from lakelite.errors import InternalError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.conjuncts import conjuncts
from lakelite.maintenance import zorder
from lakelite.maintenance.bins import Bin, live_rows, output_rows
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import Conjunct, PartitionKey, Table, fold, quote
from lakelite.records import dataclass
from lakelite.storage import fragment as fragments
from lakelite.storage import partitions
from lakelite.storage.fragment import Staged
from lakelite.storage.scan import Addressed
from lakelite.storage.verified import verified_file
from lakelite.transaction import changes as ch
from lakelite.transaction import key_lookup
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.source import execute, render
from lakelite.transaction.transaction import Transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

Partition = tuple[tuple[PartitionKey, str | None], ...]
_PLACES, _ROWS = "temp.lake_sorted_places", "temp.lake_sorted_rows"


Progress = Callable[[int, int], None]  # rows that are written, and rows that there are


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


def stage(
    tx: Transaction, table: Table, bins: Sequence[Bin], sort: Sequence[str] = (), progress: Progress | None = None, most: int | None = None
) -> None:
    """Stages the compaction of `bins` in `tx`, which has done nothing else; the caller commits it. `sort`: columns of a Z-order.

    `most`: rows of a bin in more partitions than that are joined, and not divided.
    """
    state = tx.execution.view.state(table)
    change = ch.TableChange(table, kinds=frozenset({"compaction"}))
    done, total = 0, sum(live_rows(state, f) for one in bins for f in one)
    for one in bins:
        for fragment in one:
            if fragment.path is not None:
                verified_file(tx.execution.paths, fragment)
        rows = _rows(tx.execution, state, one)
        outputs: list[tuple[Staged, Composition]] = []
        for staged, made in _in_order(rows) if not sort and _stays_together(rows, most) else _sorted(rows, sort):
            composition.check(made, staged.fragment.row_count)
            if made.permutation is not None:
                _ = made.row_map  # made now, since publishing holds the commit lock
            outputs.append((staged, made))
            done += staged.fragment.row_count
            if progress is not None:
                progress(done, total)
        change = replace(
            change,
            deleted={**change.deleted, **{f.fragment_id: state.alive(f.fragment_id) for f in one}},
            staged={**change.staged, **{staged.fragment.fragment_id: staged for staged, _ in outputs}},
            made={**change.made, **{staged.fragment.fragment_id: made for staged, made in outputs}},
        )
    if bins:
        tx.work = replace(tx.work, changes=replace(tx.work.changes.with_change(change), blind=False))


def outcome(tx: Transaction, state: TableState, planned: Sequence[Bin]) -> Compacted:
    """What of it landed. `state`: the table as it was read; `planned`: the bins that were staged."""
    change = tx.work.changes.change_of(state.table)
    added = [s.fragment for s in change.live_staged()]
    sources = {source for f in added for source in change.made[f.fragment_id].sources}
    landed = [one for one in planned if not sources.isdisjoint(f.fragment_id for f in one)]
    removed = [f for one in landed for f in one]
    return Compacted(
        bins=len(landed),
        bins_dropped=len(planned) - len(landed),
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
    """The names of the columns of a ZORDER BY; ProgrammingError with near names if there is no such column."""
    columns = {fold(c.name): c for c in table.columns}
    found: list[str] = []
    for one in wanted:
        column = columns.get(fold(one.name))
        if column is None:
            names = [c.name for c in table.columns]
            hint = did_you_mean(one.name, names, f"its columns are: {listed(names)}")
            raise ProgrammingError(f'table {table.qualified} has no column "{one.name}"', hint=hint, position=Position.at(call.text, one.offset))
        found.append(column.name)
    return found


@dataclass(frozen=True, slots=True)
class _Rows:
    """The live rows of a bin. `source`: what they are read from, where m.place is the number of a row's fragment in the bin;
    `columns`: of the table and, under the name `scan.row_id`, the row id."""

    execution: Execution
    state: TableState
    bin: Bin
    scan: Addressed
    source: str
    columns: str

    def composition(self, permutation: NDArray[Any] | None = None, parts: Mapping[int, BitMap] | None = None) -> Composition:
        """That of an output; see composition.of."""
        return composition.of([(f, self.state.vectors.get(f.fragment_id)) for f in self.bin], permutation, parts)


def _rows(execution: Execution, state: TableState, one: Bin) -> _Rows:
    scan = execution.engine.addressed(state, one)
    places = {f.fragment_id: i for i, f in enumerate(one)}
    sources = ", ".join(f"({number}, {places[f.fragment_id]}, {f.first_row_id})" for number, f in scan.fragments.items())
    source = f"({scan.sql}) s JOIN (VALUES {sources}) m(source, place, first) ON m.source = s.{scan.source}"
    columns = [f"s.{quote(c.name)}" for c in state.table.columns]
    columns.append(f"coalesce(s.{scan.row_id}, m.first + s.{scan.position}) AS {scan.row_id}")
    return _Rows(execution, state, one, scan, source, ", ".join(columns))


def _stays_together(rows: _Rows, most: int | None) -> bool:
    """Whether the rows of a bin are one output."""
    if all(f.is_in_place(rows.state.table.partitioning) for f in rows.bin):
        return True
    if most is None:
        return False
    ((count,),) = rows.execution.engine.run(f"SELECT count(DISTINCT {_partition(rows)}) FROM {rows.source}")
    return int(count) > most


def _partition(rows: _Rows) -> str:
    """The values of a row's partition."""
    table = rows.state.table
    return partitions.values(table, table.partitioning, {c.field_id: f"s.{quote(c.name)}" for c in table.columns})


def _in_order(rows: _Rows) -> Iterator[tuple[Staged, Composition]]:
    """The output of a bin."""
    first, keys = rows.bin[0], rows.state.table.partitioning
    partition = first.partition if keys and all(f.is_in_place(keys) for f in rows.bin) else ()
    select = f"SELECT {rows.columns} FROM {rows.source} ORDER BY m.place, s.{rows.scan.position}"
    yield _written(rows, select, partition), rows.composition()


def _sorted(rows: _Rows, sort: Sequence[str]) -> Iterator[tuple[Staged, Composition]]:
    """The outputs of a bin whose rows are divided by partition, and put in Z-order within each."""
    engine, there, keys = rows.execution.engine, rows.scan.position, rows.state.table.partitioning
    try:
        _sort(rows, sort)
        most = output_rows(rows.state, rows.bin, limits_of(rows.state.table, rows.execution.limits))
        for values, first, count in engine.run(f"SELECT part, min(there), count(*) FROM {_PLACES} GROUP BY part ORDER BY min(there)"):
            step = math.ceil(count / math.ceil(count / most))
            for start in range(first, first + count, step):
                size = min(step, first + count - start)
                select = f"SELECT * FROM {_ROWS} WHERE {there} BETWEEN {start} AND {start + size - 1} ORDER BY {there}"
                staged = _written(rows, select, tuple(zip(keys, values, strict=True)))
                yield staged, rows.composition(*_where_from(rows, start, size))
    finally:
        engine.run(f"DROP TABLE IF EXISTS {_ROWS}; DROP TABLE IF EXISTS {_PLACES}")


def _sort(rows: _Rows, sort: Sequence[str]) -> None:
    """Makes _PLACES, where each row of the bin comes from (place, position), its partition (part), and where it goes, from 0 on (there);
    and _ROWS, the rows in their new order, with that number under the name `scan.position`."""
    engine, position = rows.execution.engine, rows.scan.position
    address = f"m.place AS lake_place, s.{position} AS lake_at, {_partition(rows)} AS lake_part"
    columns = ", ".join(["", *(f"s.{quote(c)} AS {value}" for c, value in zip(sort, zorder.values(len(sort)), strict=True))])
    keys = zorder.keys(f"SELECT {address}{columns} FROM {rows.source}", len(sort))
    there = "row_number() OVER (ORDER BY part, z, place, position) - 1 AS there"
    engine.run(f"CREATE OR REPLACE TEMP TABLE {_PLACES} AS SELECT place, position, part, {there} FROM ({keys})")
    joined = f"{rows.source} JOIN {_PLACES} k ON k.place = m.place AND k.position = s.{position}"
    engine.run(f"CREATE OR REPLACE TEMP TABLE {_ROWS} AS SELECT {rows.columns}, k.there AS {position} FROM {joined} ORDER BY k.there")


def _where_from(rows: _Rows, start: int, count: int) -> tuple[NDArray[Any], dict[int, BitMap]]:
    """The permutation of the output that begins at row `start` of the sorted rows, and which rows of each source it has."""
    import numpy as np

    found = rows.execution.engine.work.execute(
        f"SELECT place, position, (there - {start})::UINTEGER AS there FROM {_PLACES}"
        f" WHERE there BETWEEN {start} AND {start + count - 1} ORDER BY place, position"
    ).fetchnumpy()
    places, firsts = np.unique(found["place"], return_index=True)
    pieces = zip(places.tolist(), np.split(found["position"], firsts[1:]), strict=True)
    return found["there"], {rows.bin[place].fragment_id: deletion.positions_of(some) for place, some in pieces}


def _written(rows: _Rows, select: str, partition: Partition) -> Staged:
    """A file with the rows of `select`, never inline."""
    execution, table = rows.execution, rows.state.table
    place = execution.place(table)
    place = replace(place, limits=replace(place.limits, inline_rows=0, inline_bytes=0))
    staged = fragments.write(execution.engine, place, table, select, {}, row_id=rows.scan.row_id)
    if staged is None:
        raise InternalError(f"a compaction of {table.qualified} found no rows; nothing was committed")
    staged = replace(staged, fragment=replace(staged.fragment, partition=partition))
    execution.written.append(staged)
    key_lookup.make_filters(execution, TableState(table, {staged.fragment.fragment_id: staged.fragment}, {}))
    return staged
