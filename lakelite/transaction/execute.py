"""Queries and changes of rows: each function runs one typed operation on a transaction's state and gives the new one.

A statement that fails raises and leaves nothing behind: states are values, so the old one simply stays. Rows are found by
DuckDB over the snapshot that the transaction reads, with its own changes laid over it. Nothing here commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakelite.language import statements as st
from lakelite.model import Table
from lakelite.storage import fragment as fragments
from lakelite.transaction import changes as ch
from lakelite.transaction import source
from lakelite.transaction.execution import Call, Done, Execution, find_table

# Queries.


def query(execution: Execution, work: ch.Work, operation: st.Query, call: Call) -> Done:
    """DuckDB runs it over views of the transaction's tables; the catalog answers a bare count(*)."""
    cursor = execution.engine.cursor()
    counted = work.namespace.find(operation.counts.schema, operation.counts.name) if operation.counts else None
    if counted is not None:
        cursor.execute(f'SELECT {execution.state(work, counted).row_count}::BIGINT AS "count_star()"')
        return Done(_shown(work, frozenset({counted.table_id}), call), rows=cursor)
    text = source.render(execution, work, operation.sql, call)
    reads = source.prepare(execution, work, text)
    source.execute(cursor, text, call.values)
    return Done(_shown(work, reads.tables, call), rows=cursor)


def copy_to(execution: Execution, work: ch.Work, operation: st.CopyTo, call: Call) -> Done:
    reads = source.prepare(execution, work, source.render(execution, work, operation.reads, call))
    answer = source.execute(execution.engine.work, source.render(execution, work, operation.sql, call), call.values).fetchall()
    return Done(_shown(work, reads.tables, call), rowcount=int(answer[0][0]) if answer else -1)


def _shown(work: ch.Work, tables: frozenset[int], call: Call) -> ch.Work:
    return replace(work, changes=work.changes.with_shown(tables, call.text)) if tables else work


# Rows in.


def insert(execution: Execution, work: ch.Work, operation: st.Insert, call: Call) -> Done:
    table = find_table(work, operation.target, call)
    ctes = source.render(execution, work, operation.ctes, call) if operation.ctes else ""
    text = source.render(execution, work, operation.source, call) if operation.source else "DEFAULT VALUES"
    if operation.source is None:
        reads = source.Reads()
    else:
        reads = source.prepare(execution, work, f"{ctes} {text}")
    if operation.is_values or operation.source is None:
        staged = _insert_values(execution, table, operation, f"{ctes} ", text, call)
    else:
        rows = source.select_for_insert(execution, table, operation.columns, by_name=operation.by_name, ctes=ctes, query=text, values=call.values)
        staged = execution.keep(fragments.write(execution.engine, execution.place(), table, rows, source.used_values(rows, call.values)))
    changes = work.changes.with_reads(reads.tables, call.text)
    if reads.external and reads.tables:
        changes = replace(changes, external=changes.external or call.text)
    change = changes.change_of(table)
    if operation.overwrite:
        change = ch.delete_all(change, execution.state(work, table), "overwrite")
        changes = replace(changes, blind=False)
    changes = changes.with_change(ch.append(change, staged, "overwrite" if operation.overwrite else "append"))
    constant = not operation.overwrite and not reads.tables
    return Done(replace(work, changes=changes), _rows(staged), constant=staged if constant else None, is_constant=constant)


def _insert_values(execution: Execution, table: Table, operation: st.Insert, ctes: str, text: str, call: Call) -> fragments.Staged | None:
    """DuckDB's own INSERT into an empty copy of the table, so that every cast, default and error is DuckDB's."""
    engine = execution.engine
    stage = engine.stage(table)
    columns = source.column_list(operation.columns)
    by_name = " BY NAME" if operation.by_name else ""
    try:
        source.execute(engine.work, f"{ctes}INSERT INTO {stage}{columns}{by_name} {text}", call.values).fetchall()
        return _held(execution, table, stage)
    finally:
        engine.do(f"TRUNCATE {stage}")


def insert_many(execution: Execution, work: ch.Work, operation: st.Insert, call: Call, rows: list[Mapping[str, Any]]) -> Done:
    """One INSERT … VALUES for many parameter sets: one statement, one fragment."""
    table = find_table(work, operation.target, call)
    assert operation.source is not None and not operation.overwrite
    text = source.render(execution, work, operation.source, call)
    reads = source.prepare(execution, work, text)
    engine = execution.engine
    stage = engine.stage(table)
    statement = f"INSERT INTO {stage}{source.column_list(operation.columns)} {text}"
    engine.do("BEGIN")
    try:
        for values in rows:
            source.execute(engine.work, statement, values).fetchall()
        engine.do("COMMIT")
        staged = _held(execution, table, stage)
    except BaseException:
        source.undo(engine)
        raise
    finally:
        engine.do(f"TRUNCATE {stage}")
    changes = work.changes.with_reads(reads.tables, call.text)
    changes = changes.with_change(ch.append(changes.change_of(table), staged, "append"))
    return Done(replace(work, changes=changes), _rows(staged), constant=staged, is_constant=not reads.tables)


def _held(execution: Execution, table: Table, stage: str) -> fragments.Staged | None:
    count = int(execution.engine.do(f"SELECT count(*) FROM {stage}")[0][0])
    return execution.keep(fragments.write_held(execution.engine, execution.place(), table, f"SELECT * FROM {stage}", count))


def copy_from(execution: Execution, work: ch.Work, operation: st.CopyFrom, call: Call) -> Done:
    table = find_table(work, operation.target, call)
    text = source.file_query(table, operation, call.values)
    rows = source.select_for_insert(execution, table, operation.columns, by_name=False, ctes="", query=text, values={})
    staged = execution.keep(fragments.write(execution.engine, execution.place(), table, rows, {}))
    changes = work.changes.with_change(ch.append(work.changes.change_of(table), staged, "append"))
    return Done(replace(work, changes=changes), _rows(staged), constant=staged, is_constant=True)


def _rows(staged: fragments.Staged | None) -> int:
    return staged.fragment.row_count if staged else 0


def again(work: ch.Work, operation: st.Operation, call: Call, staged: fragments.Staged | None, rowcount: int) -> Done:
    """The replay of a statement that read nothing of the lake: the rows of its first run, as they were."""
    assert isinstance(operation, st.Insert | st.CopyFrom)
    change = work.changes.change_of(find_table(work, operation.target, call))
    return Done(replace(work, changes=work.changes.with_change(ch.append(change, staged, "append"))), rowcount, constant=staged, is_constant=True)


# Rows out, and rows changed.


def delete(execution: Execution, work: ch.Work, operation: st.Delete, call: Call) -> Done:
    table = find_table(work, operation.target, call)
    state = execution.state(work, table)
    changes = replace(work.changes, blind=False)
    if operation.where is None:
        change = ch.delete_all(changes.change_of(table), state, "delete")
        return Done(replace(work, changes=changes.with_change(change)), state.row_count)
    found = source.matching(execution, work, table, operation, call)
    positions, count = source.positions(found, execution.engine.work)
    if not operation.row_local:
        changes = changes.with_reads(found.reads.tables | {table.table_id}, call.text)
    change = ch.delete(changes.change_of(table), positions, "delete")
    return Done(replace(work, changes=changes.with_change(change)), count)


def truncate(execution: Execution, work: ch.Work, operation: st.Truncate, call: Call) -> Done:
    return delete(execution, work, st.Delete(operation.target, None, None, True, None), call)


def update(execution: Execution, work: ch.Work, operation: st.Update, call: Call) -> Done:
    """The old versions are deleted, the new ones appended with the row ids of the old."""
    table = find_table(work, operation.target, call)
    found = source.matching(execution, work, table, operation, call)
    engine = execution.engine
    try:
        positions, count = source.positions(found, engine.work)
        rows = source.updated_rows(table, found)
        staged = execution.keep(fragments.write_held(engine, execution.place(), table, rows, count, row_id=source.ROW_ID))
    finally:
        engine.do(f"DROP TABLE IF EXISTS {source.UPDATED}")
    changes = replace(work.changes, blind=False)
    if not operation.row_local:
        changes = changes.with_reads(found.reads.tables | {table.table_id}, call.text)
    change = ch.append(ch.delete(changes.change_of(table), positions, "update"), staged, "update")
    return Done(replace(work, changes=changes.with_change(change)), count)
