"""Queries and changes of rows: each function runs one typed operation on a transaction's state and gives the new one.

A statement that fails raises and leaves nothing behind: states are values, so the old one simply stays. Rows are found by
DuckDB over the snapshot that the transaction reads, with its own changes laid over it. Nothing here commits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelite.errors import Error, ProgrammingError
from lakelite.language import statements as st
from lakelite.language import values
from lakelite.mapping.sets import belongs_to
from lakelite.mapping.world_wording import HANDED_OVER
from lakelite.model import Table, fold, quote
from lakelite.storage import foreign, held, types
from lakelite.storage import fragment as fragments
from lakelite.storage.foreign import Rows
from lakelite.transaction import adopt, match, returning, source
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Call, Done, Execution, Stream, find_table
from lakelite.transaction.upsert import upsert

if TYPE_CHECKING:
    import duckdb

_SHORT_ROWS = 50
_SHORT_TEXT = 10_000

# Queries.


def query(execution: Execution, work: ch.Work, operation: st.Query, call: Call) -> Done:
    """DuckDB runs it over views of the transaction's tables; the catalog answers a bare count(*)."""
    cursor = execution.engine.cursor()
    try:
        text, values, reads = _to_run(execution, work, operation, call, cursor)
        source.execute(cursor, text, values)
    except BaseException:
        execution.engine.drop(cursor)
        raise
    seen = replace(execution, written=[], _overlays={})  # the snapshot as it is now: a replay moves the transaction's on
    again = None if reads.frames or execution.read_temporary else partial(_stream, seen, work, operation, call)
    return Done(_shown(work, reads.tables, call), rows=cursor, again=again, tables=reads.tables, repeatable=not reads.external)


def _to_run(
    execution: Execution, work: ch.Work, operation: st.Query, call: Call, cursor: duckdb.DuckDBPyConnection
) -> tuple[str, Mapping[str, Any], source.Reads]:
    """The text and the values for DuckDB, and what it reads."""
    counted = work.namespace.find(operation.counts.schema, operation.counts.name) if operation.counts else None
    if operation.counts and execution.temporaries.find(operation.counts.schema, operation.counts.name) is not None:
        counted = None
    if counted is not None and counted.view is None:
        text = f'SELECT {execution.state(work, counted).row_count}::BIGINT AS "count_star()"'
        return text, {}, source.Reads(frozenset({counted.table_id}))
    text = source.render(execution, work, operation.sql, call)
    return text, call.values, source.prepare(execution, work, text, cursor, values=call.values)


def _stream(seen: Execution, work: ch.Work, operation: st.Query, call: Call, rows_per_batch: int) -> Stream:
    """The query once more, on the same snapshot. DuckDB gives rows as Arrow without a copy only if it is told so when it begins."""
    execution = replace(seen, pinned=[])
    cursor = execution.engine.cursor()
    try:
        text, values, _ = _to_run(execution, work, operation, call, cursor)
        reader = cursor.sql(text, params=source.used_values(text, values)).to_arrow_reader(rows_per_batch)
    except BaseException:
        execution.engine.drop(cursor)
        for version in execution.pinned:
            execution.lease.unpin(version)
        raise
    return Stream(reader, cursor, tuple(execution.pinned))


def copy_to(execution: Execution, work: ch.Work, operation: st.CopyTo, call: Call) -> Done:
    reads = source.prepare(execution, work, source.render(execution, work, operation.reads, call), execution.engine.work)
    answer = source.execute(execution.engine.work, source.render(execution, work, operation.sql, call), call.values).fetchall()
    count = int(answer[0][0]) if answer else -1
    return Done(_shown(work, reads.tables, call), rowcount=count, tables=reads.tables, repeatable=not reads.external)


def _shown(work: ch.Work, tables: frozenset[int], call: Call) -> ch.Work:
    return replace(work, changes=work.changes.with_shown(tables, call.text)) if tables else work


# Rows in.


def insert(execution: Execution, work: ch.Work, operation: st.Insert, call: Call) -> Done:
    if operation.on_conflict is not None:
        return upsert(execution, work, operation, call, _stage)
    table = find_table(work, operation.target, call)
    ctes = source.render(execution, work, operation.ctes, call) if operation.ctes else ""
    text = source.render(execution, work, operation.source, call) if operation.source else "DEFAULT VALUES"
    if operation.source is None:
        reads = source.Reads()
    else:
        reads = source.prepare(execution, work, f"{ctes} {text}", once=not operation.is_values, values=call.values)
    staged = execution.keep(table, _stage(execution, table, operation, ctes, text, reads, call))
    change = work.changes.change_of(table)
    constant = not operation.overwrite and not reads.tables and _is_as_in_base(change)
    changes = _read(work.changes, reads, call, constant=constant)
    if operation.overwrite:
        change = ch.overwrite(change, execution.state(work, table))
        changes = replace(changes, blind=False)
    changes = changes.with_change(ch.append(change, staged, "overwrite" if operation.overwrite else "append"))
    kept = staged if constant else ()
    done = Done(replace(work, changes=changes), _rows(staged), constant=kept, is_constant=constant)
    returned = returning.of_new_rows(execution, work, table, operation, call, staged)
    return replace(done, tables=reads.tables, repeatable=not reads.external, returned=returned)


def _stage(
    execution: Execution, table: Table, operation: st.Insert, ctes: str, text: str, reads: source.Reads, call: Call
) -> fragments.Staged | None:
    """The rows of an INSERT's source, written."""
    if operation.is_values or operation.source is None:
        return _insert_values(execution, table, operation, f"{ctes} ", text, [call.values])
    rows = source.select_for_insert(execution, table, operation.columns, by_name=operation.by_name, ctes=ctes, query=text, values=call.values)
    given = source.used_values(rows, call.values)
    return fragments.write(execution.engine, execution.place(table), table, rows, given, one_by_one=reads.streams)


def _is_as_in_base(change: ch.TableChange) -> bool:
    """Whether a replay finds the same table: one that this transaction made or redefined gets new ids then."""
    return not change.created and not change.redefines


def _read(changes: ch.ChangeSet, reads: source.Reads, call: Call, *, constant: bool) -> ch.ChangeSet:
    """`changes` with what a statement read; files cannot be read again as they were, so only a constant one can be repeated."""
    changes = changes.with_reads(reads.tables, call.text)
    return replace(changes, external=changes.external or call.text) if reads.external and not constant else changes


def _insert_values(
    execution: Execution, table: Table, operation: st.Insert, ctes: str, text: str, sets: Sequence[Mapping[str, Any]]
) -> fragments.Staged | None:
    """The rows of a VALUES list, once per parameter set.

    Plain constants are taken as they are, short lists are cast cell by cell, long ones are DuckDB's own INSERT into an empty
    copy of the table: every cast, default and error is DuckDB's either way.
    """
    import pyarrow as pa

    engine = execution.engine
    cells = values.cells(text, _SHORT_ROWS) if len(text) <= _SHORT_TEXT else None
    columns = [(f"f{c.field_id}", c.stored.type) for c in table.columns]
    plain = source.plain_rows(table, operation, cells, sets) if cells is not None else None
    constants = held.of_values(columns, plain) if plain is not None else None
    if constants is not None:
        rows = [constants]
    elif cells is not None:
        rows = [engine.held(sql, given, columns) for sql, given in source.cast_values(table, operation, ctes, cells, sets)]
    else:
        statement = f"{ctes}INSERT INTO {engine.stage(table)}{source.column_list(source.targets(table, operation))} {text}"
        returning = ", ".join(f"{types.encode(quote(c.name), c.type)} AS f{c.field_id}" for c in table.columns)
        rows = [engine.insert_returning(table, statement, returning, source.used_values(statement, given)) for given in sets]
    return fragments.write_arrow(engine, execution.place(table), table, pa.concat_tables(rows))


def insert_many(execution: Execution, work: ch.Work, operation: st.Insert, call: Call, sets: Sequence[Mapping[str, Any]]) -> Done:
    """One INSERT … VALUES for many parameter sets: one statement, one fragment."""
    table = find_table(work, operation.target, call)
    assert operation.source is not None
    assert not operation.overwrite
    ctes = source.render(execution, work, operation.ctes, call) if operation.ctes else ""
    text = source.render(execution, work, operation.source, call)
    reads = source.prepare(execution, work, f"{ctes} {text}")
    staged = _insert_sets(execution, table, operation, f"{ctes} ", text, sets)
    change = work.changes.change_of(table)
    constant = not reads.tables and _is_as_in_base(change)
    changes = _read(work.changes, reads, call, constant=constant).with_change(ch.append(change, staged, "append"))
    kept = staged if constant else ()
    done = Done(replace(work, changes=changes), _rows(staged), constant=kept, is_constant=constant)
    return replace(done, tables=reads.tables, repeatable=not reads.external)


def _insert_sets(
    execution: Execution, table: Table, operation: st.Insert, ctes: str, text: str, sets: Sequence[Mapping[str, Any]]
) -> tuple[fragments.Staged, ...]:
    """The rows of all sets. Where that fails, the error says with which set it does: the last of the shortest beginning that fails."""
    import duckdb

    def insert(count: int) -> tuple[fragments.Staged, ...]:
        return execution.keep(table, _insert_values(execution, table, operation, ctes, text, sets[:count]))

    def fails(count: int) -> bool:
        try:
            insert(count)
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, Error):
            return True
        return False

    try:
        return insert(len(sets))
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, Error) as error:
        number = bisect_left(range(1, len(sets)), True, key=fails) + 1
        belongs_to(error, number, len(sets))
        raise


def copy_from(execution: Execution, work: ch.Work, operation: st.CopyFrom, call: Call) -> Done:
    if adopt.is_wanted(operation):
        return adopt.copy_from(execution, work, operation, call)
    table = find_table(work, operation.target, call)
    text = source.file_query(table, operation, call.values)
    rows = source.select_for_insert(execution, table, operation.columns, by_name=False, ctes="", query=text, values={})
    staged = execution.keep(table, fragments.write(execution.engine, execution.place(table), table, rows, {}))
    change = work.changes.change_of(table)
    constant = _is_as_in_base(change)
    changes = _read(work.changes, source.Reads(external=True), call, constant=constant).with_change(ch.append(change, staged, "append"))
    return Done(replace(work, changes=changes), _rows(staged), constant=staged if constant else (), is_constant=constant, repeatable=False)


def append(execution: Execution, work: ch.Work, operation: st.Append, call: Call) -> Done:
    """Rows that a caller handed over, by column name; what is missing gets its default."""
    table = find_table(work, operation.target, call)
    names = _checked_names(table, operation.rows)
    execution.engine.frames.show({HANDED_OVER: operation.rows.scannable}, execution.engine.work)
    rows = source.select_for_insert(execution, table, None, by_name=True, ctes="", query=f"SELECT * FROM {HANDED_OVER}", values={})
    is_stream = not foreign.can_be_read_again(operation.rows.scannable)
    staged = execution.keep(table, fragments.write(execution.engine, execution.place(table), table, rows, {}, one_by_one=is_stream))
    change = work.changes.change_of(table)
    constant = _is_as_in_base(change)
    changes = _read(work.changes, source.Reads(external=True), call, constant=constant).with_change(ch.append(change, staged, "append"))
    done = Done(replace(work, changes=changes), _rows(staged), constant=staged if constant else (), is_constant=constant, repeatable=False)
    return replace(done, given=frozenset(map(fold, names)))


def _checked_names(table: Table, rows: Rows) -> list[str]:
    """The names of the columns, looked at before DuckDB does, which would rename the second of two; an index is no column, whatever its name."""
    names = foreign.column_names(rows.scannable)
    if not names:
        names_there = ", ".join(c.name for c in table.visible)
        raise ProgrammingError(f"{rows.kind} has no columns", hint=f"the columns of {table.qualified} are: {names_there}")
    source.check_targets(table, names, names)
    columns = {fold(c.name) for c in table.visible}
    for name in foreign.index_names(rows.scannable):
        if fold(name) in columns - {fold(n) for n in names}:
            raise ProgrammingError(f'"{name}" is the index of {rows.kind}, and no column of it', hint="append frame.reset_index()")
    return names


def _rows(staged: Sequence[fragments.Staged]) -> int:
    return sum(s.fragment.row_count for s in staged)


def again(work: ch.Work, operation: st.Operation, call: Call, staged: tuple[fragments.Staged, ...], rowcount: int) -> Done:
    """The replay of a statement that read nothing of the lake: the rows of its first run, as they were."""
    assert isinstance(operation, st.Insert | st.CopyFrom | st.Append)
    change = work.changes.change_of(find_table(work, operation.target, call))
    return Done(replace(work, changes=work.changes.with_change(ch.append(change, staged, "append"))), rowcount, constant=staged, is_constant=True)


# Rows out, and rows changed.


def delete(execution: Execution, work: ch.Work, operation: st.Delete, call: Call) -> Done:
    table = find_table(work, operation.target, call)
    state = execution.state(work, table)
    changes = replace(work.changes, blind=False)
    if operation.where is None and operation.sources is None:
        change = ch.delete_all(changes.change_of(table), state, "delete")
        everything = {fragment_id: state.alive(fragment_id) for fragment_id in state.fragments} if operation.returning else {}
        returned = returning.of_deleted_rows(execution, work, state, operation, call, everything)
        return Done(replace(work, changes=changes.with_change(change)), state.row_count, returned=returned)
    found = match.deleted(execution, work, table, operation, call)
    returned = returning.of_deleted_rows(execution, work, state, operation, call, found.positions)
    changes = _looked(changes, found, operation, table, call)
    change = ch.delete(changes.change_of(table), found.positions, "delete")
    return Done(replace(work, changes=changes.with_change(change)), found.count, tables=_read_by(found, operation, table), returned=returned)


def _looked(changes: ch.ChangeSet, found: match.Matched, operation: st.Delete | st.Update, table: Table, call: Call) -> ch.ChangeSet:
    """What a DELETE or UPDATE that is not row-local has read: the tables of its subqueries, and its own as a whole."""
    if operation.row_local:
        return changes
    external = changes.external or (call.text if found.reads.external else None)
    return replace(changes.with_reads(_read_by(found, operation, table), call.text), external=external)


def _read_by(found: match.Matched, operation: st.Delete | st.Update, table: Table) -> frozenset[int]:
    return frozenset() if operation.row_local else found.reads.tables | {table.table_id}


def truncate(execution: Execution, work: ch.Work, operation: st.Truncate, call: Call) -> Done:
    return delete(execution, work, st.Delete(operation.target, None, None, True, None), call)


def update(execution: Execution, work: ch.Work, operation: st.Update, call: Call) -> Done:
    """The old versions are deleted, the new ones appended with the row ids of the old."""
    table = find_table(work, operation.target, call)
    found = match.updated(execution, work, table, operation, call)
    returned = returning.of_new_rows(execution, work, table, operation, call, found.staged)
    changes = _looked(replace(work.changes, blind=False), found, operation, table, call)
    change = ch.append(ch.delete(changes.change_of(table), found.positions, "update"), found.staged, "update")
    return Done(replace(work, changes=changes.with_change(change)), found.count, tables=_read_by(found, operation, table), returned=returned)
