"""The rows that a DELETE or UPDATE matches: their addresses and, of an UPDATE, their new versions.

The user's WHERE and SET run over a scan that also gives row addresses. An UPDATE is evaluated once: few rows are taken over
as Arrow and become an inline fragment without a detour; many go through a temporary table, which DuckDB can spill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb

from lakelite import deletion
from lakelite.bounds import limits_of
from lakelite.contents import TableState
from lakelite.errors import Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.parse import mentions
from lakelite.language.tokens import lex, unquote
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import DATABASE, ROW_ID_FIELD, Column, Conjunct, Fragment, Table, fold, quote
from lakelite.records import dataclass
from lakelite.storage import arrays
from lakelite.storage import fragment as fragments
from lakelite.storage.scan import Addressed
from lakelite.storage.statistics import candidates
from lakelite.transaction import changes as ch
from lakelite.transaction import merge_target
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.source import QUERY_WORD, Reads, execute, first_of_each, prepare, render, used_values

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyroaring import BitMap

_UPDATED = "temp.lake_updated"  # the temporary table of a large UPDATE
_KEPT_ROW_ID = quote("_lake_kept_row_id")
TARGET = "lake_target"
_FEW_DELETED = 0.2  # up to this share of deleted rows, reading them costs less than joining with what is deleted


@dataclass(frozen=True, slots=True)
class Matched:
    """`positions`: of the matched rows, by fragment id. `staged`: their new versions (none of a DELETE)."""

    positions: dict[int, BitMap]
    count: int
    reads: Reads
    staged: tuple[fragments.Staged, ...] = ()


@dataclass(frozen=True, slots=True)
class _Frame:
    """The pieces of a statement over its target: the scan, its alias, FROM or USING with its sources (or nothing), the WHERE clause
    (or nothing), the WITH in front, and what it reads beside the target.

    `rows`: the target in FROM, where `alias` names the table's rows and `address` those of the scan, whose addresses it has.
    """

    scan: Addressed
    alias: str
    sources: str
    condition: str
    ctes: str
    reads: Reads
    rows: str
    address: str

    @property
    def matched(self) -> str:
        """The FROM and WHERE of a SELECT of the rows that match, once for each match. A source sees nothing of the target: DuckDB has bound it so."""
        return f" FROM {self.rows}{f', {self.sources}' if self.sources else ''}{self.condition}"

    def kept(self, index: int, column: Column) -> str:
        """The value of a column that the statement does not see."""
        return f"{self.address}.{quote(column.name) if self.address == self.alias else f'_lake_{index}'}"


def deleted(execution: Execution, work: ch.Work, table: Table, operation: st.Delete, call: Call) -> Matched:
    """The rows that a DELETE matches."""
    return _leniently(lambda live_only: _deleted(execution, work, table, operation, call, live_only), execution.state(work, table))


def updated(execution: Execution, work: ch.Work, table: Table, operation: st.Update, call: Call) -> Matched:
    """The rows that an UPDATE matches and their new versions, which keep the row ids of the old."""
    return _leniently(lambda live_only: _updated(execution, work, table, operation, call, live_only), execution.state(work, table))


def finds_nothing(execution: Execution, work: ch.Work, table: Table, operation: st.Delete | st.Update, call: Call) -> bool:
    """Whether the statistics alone tell that a row-local statement matches no row."""
    if operation.where is None:
        return False
    where = of_target(render(execution, work, operation.where, call), table, operation.alias)
    conditions = _conditions(table, where, operation.alias or table.name, call.values)
    return not any(True for _ in candidates(execution.state(work, table).fragments.values(), conditions))


def _leniently(run: Callable[[bool], Matched], state: TableState) -> Matched:
    """Reads deleted rows too where they are few, and leaves them out afterwards: cheaper than a join with what is deleted.

    The condition may fail on a row that is deleted, and only there: then it is run again over the live rows.
    """
    if not state.vectors:
        return run(True)
    if state.deleted_count > _FEW_DELETED * (state.row_count + state.deleted_count):
        return run(True)
    try:
        return run(False)
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        return run(True)


def _deleted(execution: Execution, work: ch.Work, table: Table, operation: st.Delete, call: Call, live_only: bool) -> Matched:
    frame = _frame(execution, work, table, operation, call, live_only)
    scan = frame.scan
    using = f" USING {frame.sources}" if frame.sources else ""
    text = f"{frame.ctes} DELETE FROM {execution.engine.stage(table)} AS {frame.alias}{using}{frame.condition}"
    with _bound_as(execution, text, call, first=_needs_binding(operation, frame.condition)):
        distinct = "DISTINCT " if frame.sources else ""
        sql = f"{frame.ctes} SELECT {distinct}{frame.address}.{scan.source}, {frame.address}.{scan.position}{frame.matched}"
        positions = addresses(execution, sql, scan, call.values)
    if not live_only:
        positions = _alive(positions, execution.state(work, table))
    return Matched(positions, sum(map(len, positions.values())), frame.reads)


def _alive(positions: Mapping[int, BitMap], state: TableState) -> dict[int, BitMap]:
    """Without those that the deletion vectors mark."""
    left = {k: p - state.vectors[k].positions if k in state.vectors else p for k, p in positions.items()}
    return {k: p for k, p in left.items() if p}


def _updated(execution: Execution, work: ch.Work, table: Table, operation: st.Update, call: Call, live_only: bool) -> Matched:
    assigned = _assigned(execution, work, table, operation, call)
    frame = _frame(execution, work, table, operation, call, live_only, tuple(assigned.values()))
    scan, alias = frame.scan, frame.alias
    values = [assigned.get(fold(c.name), f"{alias}.{quote(c.name)}") if not c.hidden else frame.kept(i, c) for i, c in enumerate(table.columns)]
    new = ", ".join(f"{value} AS _lake_{i}" for i, value in enumerate(values))
    address = f"{frame.address}.{scan.source} AS _lake_s, {frame.address}.{scan.position} AS _lake_p, {frame.address}.{scan.row_id} AS _lake_r"
    inner = f"SELECT {address}, {new}{frame.matched}"
    if frame.sources:
        inner = _one_of_many(inner, [i for i, c in enumerate(table.columns) if fold(c.name) in assigned])
    pairs = ", ".join(f"{quote(column)} = {value}" for column, value in assigned.items())
    source = f" FROM {frame.sources}" if frame.sources else ""
    text = f"{frame.ctes} UPDATE {execution.engine.stage(table)} AS {alias} SET {pairs}{source}{frame.condition}"
    with _bound_as(execution, text, call, first=_needs_binding(operation, frame.condition, *assigned.values())):
        rows = _few_versions(execution, table, inner, call, frame.ctes)
    if rows is None:
        return (
            _updated_many(execution, table, f"{frame.ctes} {inner}", scan, frame.reads, call)
            if live_only
            else _updated(execution, work, table, operation, call, True)
        )
    return _updated_few(execution, table, rows, scan, frame.reads, None if live_only else execution.state(work, table))


def _one_of_many(matches: str, assigned: Sequence[int]) -> str:
    """A row that several source rows match is updated once. DuckDB takes any of them; here it is the one with the smallest new values,
    in the order of the columns, so that it is the same whenever the statement runs again."""
    order = ", ".join(f"_lake_{i}" for i in assigned)
    return first_of_each(f"({matches})", "_lake_s, _lake_p", order)


def versions(execution: Execution, table: Table, sql: str, scan: Addressed, call: Call) -> Matched:
    """The rows whose addresses a SELECT gives as _lake_s, _lake_p and _lake_r, and their new versions, the values of which are _lake_0, …"""
    rows = _few_versions(execution, table, sql, call)
    if rows is None:
        return _updated_many(execution, table, sql, scan, Reads(), call)
    return _updated_few(execution, table, rows, scan, Reads(), None)


def _few_versions(execution: Execution, table: Table, sql: str, call: Call, ctes: str = "") -> pa.Table | None:
    """What such a SELECT gives, values as they are stored; None if that is more than may lie inline."""
    stored = ", ".join(f"{fragments.stored_value(table, c, f's._lake_{i}')} AS f{c.field_id}" for i, c in enumerate(table.columns))
    columns = [(n, "BIGINT") for n in ("_lake_s", "_lake_p", "_lake_r")] + [(f"f{c.field_id}", c.stored.type) for c in table.columns]
    text = f"{ctes} SELECT s._lake_s, s._lake_p, s._lake_r, {stored} FROM ({sql}) s"
    return execution.engine.held(text, used_values(text, call.values), columns, limits_of(table, execution.limits).inline_rows)


def _updated_few(execution: Execution, table: Table, rows: pa.Table, scan: Addressed, reads: Reads, state: TableState | None) -> Matched:
    """From the addresses, row ids and new versions in `rows`; those that are deleted in `state` are left out."""
    positions = _by_fragment(arrays.to_numpy(rows.column(0)), arrays.to_numpy(rows.column(1)), scan)
    if state is not None:
        alive = _alive(positions, state)
        if alive != positions:
            rows = rows.filter(_is_in(rows, alive, scan.fragments))
            positions = alive
    new_rows = rows.select(range(3, rows.num_columns)).append_column(f"f{ROW_ID_FIELD}", _row_ids(rows, scan.fragments))
    staged = execution.keep(table, fragments.write_arrow(execution.engine, execution.place(table), table, new_rows))
    return Matched(positions, rows.num_rows, reads, staged)


def _is_in(rows: pa.Table, positions: Mapping[int, BitMap], by_source: Mapping[int, Fragment]) -> pa.Array:
    """A mask: whether the address of each row is among `positions`."""
    import numpy as np

    sources, where = arrays.to_numpy(rows.column(0)), arrays.to_numpy(rows.column(1))
    mask = np.zeros(len(sources), dtype=bool)
    for number in arrays.distinct(sources):
        wanted = positions.get(by_source[int(number)].fragment_id)
        if wanted is not None:
            mask |= (sources == number) & np.isin(where, np.asarray(wanted.to_array()))
    return arrays.of_numpy(mask)


def _updated_many(execution: Execution, table: Table, sql: str, scan: Addressed, reads: Reads, call: Call) -> Matched:
    engine = execution.engine
    try:
        engine.run(f"CREATE OR REPLACE TEMP TABLE {_UPDATED} AS {sql}", used_values(sql, call.values))
        found = f"SELECT _lake_s AS {scan.source}, _lake_p AS {scan.position} FROM {_UPDATED}"
        positions = addresses(execution, found, scan, {})
        firsts = ", ".join(f"({source}, {f.first_row_id or 'NULL'})" for source, f in scan.fragments.items())
        columns = ", ".join(f"u._lake_{i} AS {quote(c.name)}" for i, c in enumerate(table.columns))
        rows = (
            f"SELECT {columns}, coalesce(u._lake_r, m.first + u._lake_p) AS {_KEPT_ROW_ID}"
            f" FROM {_UPDATED} u JOIN (VALUES {firsts}) m(source, first) ON m.source = u._lake_s"
        )
        staged = execution.keep(table, fragments.write(engine, execution.place(table), table, rows, {}, row_id=_KEPT_ROW_ID))
    finally:
        engine.run(f"DROP TABLE IF EXISTS {_UPDATED}")
    return Matched(positions, sum(map(len, positions.values())), reads, staged)


def _frame(
    execution: Execution, work: ch.Work, table: Table, operation: st.Delete | st.Update, call: Call, live_only: bool, values: tuple[str, ...] = ()
) -> _Frame:
    where = of_target(render(execution, work, operation.where, call), table, operation.alias) if operation.where else None
    ctes = render(execution, work, operation.ctes, call) if operation.ctes else ""
    sources = render(execution, work, operation.sources.sql, call) + "\n" if operation.sources else ""
    name = operation.alias or table.name
    condition = f" WHERE ({where}\n)" if where is not None else ""
    reads = _reads(execution, work, operation, f"{ctes} SELECT {', '.join(values) or '1'} FROM", f"AS {quote(name)}", sources, condition)
    state = execution.state(work, table)
    only = mentions(where) if where is not None and operation.row_local and isinstance(operation, st.Delete) else None
    chosen = _pruned(state, where, name, call.values)
    if operation.sources is not None and where is not None:
        change = merge_target.Change(name, where, operation.sources, ctes, call, reads)
        chosen = merge_target.with_partner(execution, work, state, list(chosen), change)
    scan = execution.engine.addressed(state, chosen, live_only=live_only, only=only)
    if operation.row_local or not any(_names_alone(text, name) for text in (condition, *values)):
        return _Frame(scan, quote(name), sources, condition, ctes, reads, scan.rows(quote(name), condition, sources, *values), quote(name))
    # The table's name as a value is the whole row, which must not hold the address: the rows stand beside the scan, not for it.
    hidden = ", ".join([scan.source, scan.position, scan.row_id, *(f"{quote(c.name)} AS _lake_{i}" for i, c in enumerate(table.columns))])
    shown = ", ".join(f"_lake_scan._lake_{i} AS {quote(c.name)}" for i, c in enumerate(table.columns) if not c.hidden)
    rows = f"(SELECT {hidden} FROM ({scan.sql})) AS _lake_scan, LATERAL (SELECT {shown}) AS {quote(name)}"
    return _Frame(scan, quote(name), sources, condition, ctes, reads, rows, "_lake_scan")


def _names_alone(text: str, name: str) -> bool:
    """Whether the name stands in the text as a value: with no dot beside it."""
    tokens = lex(text)
    words = [fold(unquote(text[t.start : t.end])) if t.kind in ("word", "quoted") else t.word for t in tokens]
    beside = zip(["", *words], words, [*words[1:], ""], strict=False)
    return any(word == fold(name) and before != "." and after not in (".", "(") for before, word, after in beside)


@contextmanager
def _bound_as(execution: Execution, text: str, call: Call, *, first: bool) -> Iterator[None]:
    """Lets DuckDB bind the DELETE or UPDATE as it is, on a table without rows: `first`, or to have the error in the user's own terms."""
    if first:
        execute(execution.engine.work, f"EXPLAIN {text}", call.values).fetchall()
    try:
        yield
    except duckdb.BinderException:
        execute(execution.engine.work, f"EXPLAIN {text}", call.values).fetchall()
        raise


def _needs_binding(operation: st.Delete | st.Update, *texts: str) -> bool:
    """Whether DuckDB has to bind the statement as what it is: what is right in a SELECT over a scan of ours (unnest, a window, a star,
    the names that addresses have) may be wrong in a DELETE or UPDATE of the table."""
    return not operation.row_local or any("_lake_" in text.lower() for text in texts)


def of_target(text: str, table: Table, alias: str | None) -> str:
    """`text` as it is right where a scan stands for the table: its name there has no schema."""
    return text if alias else unqualified(text, table.schema_name, table.name)


def unqualified(text: str, schema: str, table: str) -> str:
    """`text` with schema.table.column, or the same behind the name of the database, written as table.column."""
    if quote(schema)[1:-1].lower() not in text.lower():
        return text
    tokens = lex(text)
    if any(t.kind == "word" and QUERY_WORD.fullmatch(t.word) for t in tokens):
        return text  # in a subquery the shorter name could mean another table
    names = [fold(unquote(text[t.start : t.end])) if t.kind in ("word", "quoted") else t.word for t in tokens]
    wanted = [fold(schema), ".", fold(table), "."]
    kept, position = "", 0
    for i in range(len(tokens)):
        first = i - 2 if names[max(i - 2, 0) : i] == [DATABASE, "."] else i
        if names[i : i + 4] == wanted and names[max(first - 1, 0) : first] != ["."]:
            kept, position = kept + text[position : tokens[first].start], tokens[i + 2].start
    return kept + text[position:]


def _reads(execution: Execution, work: ch.Work, operation: st.Delete | st.Update, select: str, alias: str, sources: str, condition: str) -> Reads:
    """The tables in sources and subqueries; the target itself stands under another name there, so that it counts only if it is one of them."""
    if operation.row_local:
        return Reads()
    return prepare(execution, work, f"{select} {TARGET} {alias}{f', {sources}' if sources else ''}{condition}")


def _pruned(state: TableState, where: str | None, name: str, values: Mapping[str, Any]) -> Iterable[Fragment]:
    """The fragments that may hold a matching row, by their statistics."""
    if where is None or len(state.fragments) < 2:
        return state.fragments.values()
    conditions = _conditions(state.table, where, name, values)
    return list(candidates(state.fragments.values(), conditions))


def _conditions(table: Table, where: str, name: str, values: Mapping[str, Any]) -> tuple[Conjunct, ...]:
    from lakelite.language.conjuncts import conjuncts

    return conjuncts(where, table.columns, name, values)


def _assigned(execution: Execution, work: ch.Work, table: Table, operation: st.Update, call: Call) -> dict[str, str]:
    """The new value of each column that is SET, cast as UPDATE casts, by folded name."""
    assigned: dict[str, str] = {}
    columns = {fold(c.name): c for c in table.columns}
    for one in operation.assignments:
        column = columns.get(fold(one.column))
        if column is None:
            names = [c.name for c in table.visible]
            hint = did_you_mean(one.column, names, f"its columns are: {listed(names)}")
            raise ProgrammingError(f'table {table.qualified} has no column "{one.column}"', hint=hint, position=Position.at(call.text, one.offset))
        value = of_target(render(execution, work, one.value, call), table, operation.alias) if one.value else column.default or "NULL"
        assigned[fold(one.column)] = f"CAST(({value}\n) AS {column.type})"
    return assigned


def addresses(execution: Execution, sql: str, scan: Addressed, values: Mapping[str, Any]) -> dict[int, BitMap]:
    """The row addresses that `sql` gives, as positions by fragment id."""
    arrays = execute(execution.engine.work, sql, values).fetchnumpy()
    return _by_fragment(arrays[scan.source], arrays[scan.position], scan)


def _by_fragment(sources: NDArray[Any], positions: NDArray[Any], scan: Addressed) -> dict[int, BitMap]:
    import numpy as np

    if not len(sources):
        return {}
    order = np.argsort(sources, kind="stable")
    numbers, starts = np.unique(sources[order], return_index=True)
    parts = np.split(positions[order], starts[1:])
    return {scan.fragments[int(n)].fragment_id: deletion.positions_of(part) for n, part in zip(numbers, parts, strict=True)}


def _row_ids(rows: pa.Table, by_source: Mapping[int, Fragment]) -> pa.ChunkedArray:
    """The row id of each old version: the stored one, else first_row_id + position; NULL where the fragment has none yet."""
    import numpy as np
    import pyarrow.compute as pc

    sources, positions = arrays.to_numpy(rows.column(0)), arrays.to_numpy(rows.column(1))
    numbers = arrays.distinct(sources)
    firsts = np.array([by_source[int(n)].first_row_id or -1 for n in numbers], dtype=np.int64)
    first = firsts[np.searchsorted(numbers, sources)]
    missing = arrays.to_numpy(rows.column(2).is_null())
    found: pa.ChunkedArray = pc.coalesce(rows.column(2), arrays.of_numpy(first + positions, missing & (first < 0)))
    return found
