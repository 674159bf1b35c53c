"""INSERT … ON CONFLICT, OR IGNORE and OR REPLACE: rows whose key is free are added, the others change the row that is there, or nothing.

The rows are written as those of any INSERT; those that are not to be there are deleted in what is staged. Of several with one key the first
counts. DuckDB binds the statement on an empty copy of the table, so that what is wrong with it is DuckDB's word. Counts as a read of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelite import deletion
from lakelite.contents import TableState
from lakelite.errors import IntegrityError, NotSupportedError
from lakelite.language import statements as st
from lakelite.model import Constraint, Table, fold, quote
from lakelite.records import dataclass
from lakelite.storage import fragment as fragments
from lakelite.storage.relations import relation
from lakelite.transaction import changes as ch
from lakelite.transaction import constraints, key_lookup, match, returning, row_ids, source
from lakelite.transaction.execution import Call, Done, Execution, find_table

if TYPE_CHECKING:
    from pyroaring import BitMap

_FREE = "temp.lake_free"  # the rows whose keys no row of the table has
_FIRST = "temp.lake_first"  # of these, the ones that no other one comes before
Write = Callable[[Execution, Table, st.Insert, str, str, source.Reads, Call], fragments.Staged | None]


@dataclass(frozen=True, slots=True)
class _Proposed:
    """The rows of the source, staged, and the table as it is without them. `key`: the one that decides; None: each.

    `near`: by key, where in the table its values may be; `given`: the names of the columns that the source gives values to.
    """

    rows: TableState
    there: TableState
    key: Constraint | None
    near: Mapping[Constraint, key_lookup.Near]
    given: Sequence[str]


def upsert(execution: Execution, work: ch.Work, operation: st.Insert, call: Call, write: Write) -> Done:
    """`write` stages the rows of the source. The number of rows is that of those added and changed."""
    table = find_table(work, operation.target, call)
    conflict = operation.on_conflict
    assert conflict is not None
    ctes = source.render(execution, work, operation.ctes, call) if operation.ctes else ""
    text = source.render(execution, work, operation.source, call) if operation.source else "DEFAULT VALUES"
    reads = source.prepare(execution, work, f"{ctes} {text}", once=False) if operation.source else source.Reads()
    _bind(execution, work, table, operation, f"{ctes} ", text, call)
    staged = write(execution, _lenient(table), operation, ctes, text, reads, call)
    changes = replace(work.changes.with_reads(reads.tables | {table.table_id}, call.text), blind=False)
    changes = replace(changes, external=changes.external or call.text) if reads.external else changes
    change, count = changes.change_of(table), 0
    if staged is not None:
        given = operation.columns or [c.name for c in table.visible]
        if operation.by_name:
            given = relation(execution.engine.work, f"{ctes} {text}", source.used_values(f"{ctes} {text}", call.values)).columns
        rows, there, key = _state_of(table, staged), execution.state(work, table), _deciding(table, conflict)
        near = {k: key_lookup.near(execution, rows, there, k) for k in (table.keys if key is None else (key,))}
        execution.written.append(staged)
        proposed = _Proposed(rows, there, key, near, given)
        change, count = _applied(execution, work, change, operation, proposed, staged, call)
    change = replace(change, kinds=change.kinds | {"append"})
    done = Done(replace(work, changes=changes.with_change(change)), count, tables=reads.tables | {table.table_id})
    returned = returning.of_written(execution, work, done.work, table, operation, call)
    return replace(done, repeatable=not reads.external, returned=returned)


def _bind(execution: Execution, work: ch.Work, table: Table, operation: st.Insert, ctes: str, text: str, call: Call) -> None:
    conflict = operation.on_conflict
    assert conflict is not None
    if any(fold(c.name) == "excluded" for c in table.columns):
        raise NotSupportedError(f"ON CONFLICT into {table.qualified}, which has a column called excluded", hint="rename the column")
    clause = source.render(execution, work, conflict.text, call) if conflict.text is not None else ""
    alias = f" AS {quote(operation.alias)}" if operation.alias is not None else ""
    columns = " BY NAME" if operation.by_name else source.column_list(source.targets(table, operation))
    into = f"{execution.engine.stage(table, keyed=True)}{alias}{columns}"
    source.execute(execution.engine.work, f"EXPLAIN {ctes}INSERT {conflict.before}INTO {into} {text} {clause}", call.values).fetchall()


def _lenient(table: Table) -> Table:
    """The table without NOT NULL, but for its primary key: rows that are not added need not meet it."""
    key = next((k for k in table.keys if k.kind == "primary key"), None)
    ids = {field_id for _, field_id in key.columns} if key is not None else set()
    return replace(table, columns=tuple(c if c.field_id in ids else replace(c, nullable=True) for c in table.columns))


def _deciding(table: Table, conflict: st.OnConflict) -> Constraint | None:
    """The key whose conflicts are meant: that of the target, or the only one; None: each."""
    if conflict.columns is not None:
        wanted = {fold(c) for c in conflict.columns}
        return next(k for k in table.keys if set(map(fold, key_lookup.key_names(table, k))) == wanted)
    return table.keys[0] if len(table.keys) == 1 else None


def _state_of(table: Table, staged: fragments.Staged) -> TableState:
    fragment = staged.fragment
    return TableState(table, {fragment.fragment_id: fragment}, {}, {fragment.fragment_id: staged.ipc} if staged.ipc is not None else {})


def _applied(
    execution: Execution, work: ch.Work, change: ch.TableChange, operation: st.Insert, proposed: _Proposed, staged: fragments.Staged, call: Call
) -> tuple[ch.TableChange, int]:
    """The change with the rows added and those changed, and how many they are."""
    table, fragment_id, row_count = proposed.there.table, staged.fragment.fragment_id, staged.fragment.row_count
    added = _added(execution, proposed)
    if added:
        _refuse_nulls(execution, proposed.rows, {fragment_id: added})
    found = None
    if operation.on_conflict is not None and operation.on_conflict.action != "nothing" and len(added) < row_count:
        found = _changed(execution, work, operation, proposed, call)
    if added:
        if staged.fragment.is_in_place(table.partitioning) or staged.ipc is not None:
            change = ch.append(change, [staged], "append")
            if len(added) < row_count:
                change = ch.delete(change, {fragment_id: deletion.everything(row_count) - added}, "append")
        else:
            change = ch.append(change, _divided(execution, table, row_ids.only(proposed.rows, {fragment_id: added})), "append")
    if found is not None and found.count:
        change = ch.append(ch.delete(change, found.positions, "update"), found.staged, "update")
    return change, len(added) + (found.count if found is not None else 0)


def _divided(execution: Execution, table: Table, rows: TableState) -> tuple[fragments.Staged, ...]:
    """The same rows, divided by partition: which of them are added is known by their order in one file."""
    return execution.keep(table, fragments.write(execution.engine, execution.place(table), table, execution.engine.relation(rows), {}))


def _refuse_nulls(execution: Execution, rows: TableState, added: dict[int, BitMap]) -> None:
    column = constraints.column_with_null(execution, row_ids.only(rows, added), [c for c in rows.table.columns if not c.nullable])
    if column is not None:
        message = f"NOT NULL constraint failed: {rows.table.qualified}.{column.name}"
        raise IntegrityError(message, hint="give a value, or a DEFAULT to the column")


# Which rows are added.


def _added(execution: Execution, proposed: _Proposed) -> BitMap:
    """The positions of the rows whose keys are free, of those with one key the first."""
    engine, table = execution.engine, proposed.rows.table
    keys = [(key, key_lookup.key_names(table, key)) for key in proposed.near]
    columns = {name: f"c{i}" for i, name in enumerate(dict.fromkeys(name for _, names in keys for name in names))}
    scan = engine.addressed(proposed.rows, proposed.rows.fragments.values())
    shown = ", ".join([f"{scan.position} AS position", *(f"{quote(name)} AS {column}" for name, column in columns.items())])
    try:
        engine.run(f"CREATE OR REPLACE TEMP TABLE {_FREE} AS SELECT {shown} FROM ({scan.sql})")
        for key, names in keys:
            _take_out(execution, proposed, key, [columns[n] for n in names])
        return _first_ones(execution, [[columns[n] for n in names] for _, names in keys])
    finally:
        engine.run(f"DROP TABLE IF EXISTS {_FREE}; DROP TABLE IF EXISTS {_FIRST}")


def _take_out(execution: Execution, proposed: _Proposed, key: Constraint, columns: list[str]) -> None:
    """Those whose key the table has."""
    columns_of_key = ", ".join(f"{column} AS k{i}" for i, column in enumerate(columns))
    names = key_lookup.key_names(proposed.rows.table, key)
    using = ", ".join(f"k{i}" for i in range(len(columns)))
    for fragments_, condition in proposed.near[key].places:
        theirs = key_lookup.keys_of(execution, proposed.there, fragments_, names, few=bool(condition))
        free = f"SELECT * FROM (SELECT position, {columns_of_key} FROM {_FREE}){condition}"
        execution.engine.run(f"DELETE FROM {_FREE} WHERE position IN (SELECT position FROM ({free}) SEMI JOIN ({theirs}) USING ({using}))")


def _first_ones(execution: Execution, keys: list[list[str]]) -> BitMap:
    """Row by row: one is added where no earlier one that is has one of its keys. Those that are first for all of their keys are, at once,
    and then those that are first among what these leave."""
    engine = execution.engine
    is_first = (f"(row_number() OVER (PARTITION BY {', '.join(k)} ORDER BY position) = 1 OR {_any_null(k)})" for k in keys)
    firsts = f"SELECT * FROM {_FREE} QUALIFY {' AND '.join(is_first)}"
    beaten = " OR ".join(f"position IN (SELECT a.position FROM {_FREE} a SEMI JOIN {_FIRST} b USING ({', '.join(k)}))" for k in keys)
    found = deletion.span(0, 0)
    while True:
        engine.run(f"CREATE OR REPLACE TEMP TABLE {_FIRST} AS {firsts}")
        more = source.execute(engine.work, f"SELECT position FROM {_FIRST}", {}).fetchnumpy()["position"]
        found |= deletion.positions_of(more)
        if len(keys) == 1 or not len(more):
            return found
        engine.run(f"DELETE FROM {_FREE} WHERE position IN (SELECT position FROM {_FIRST}) OR {beaten}")


def _any_null(columns: list[str]) -> str:
    return " OR ".join(f"{column} IS NULL" for column in columns)


# Which rows are changed.


def _changed(execution: Execution, work: ch.Work, operation: st.Insert, proposed: _Proposed, call: Call) -> match.Matched:
    """The rows whose key is proposed, where the WHERE of DO UPDATE lets them, and their new versions."""
    table, key, conflict = proposed.rows.table, proposed.key, operation.on_conflict
    assert key is not None
    assert conflict is not None
    names = key_lookup.key_names(table, key)
    theirs = execution.engine.addressed(proposed.there, [f for fragments_, _ in proposed.near[key].places for f in fragments_])
    ours = execution.engine.addressed(proposed.rows, proposed.rows.fragments.values())
    first = source.first_of_each(f"({ours.sql})", ", ".join(map(quote, names)), ours.position)
    excluded = ", ".join(f"{quote(c.name)} := p.{quote(c.name)}" for c in table.columns)
    same = " AND ".join(f"p.{quote(name)} = t.{quote(name)}" for name in names)
    alias = quote(operation.alias or table.name)
    rows = f"(SELECT t.*, struct_pack({excluded}) AS excluded FROM ({theirs.sql}) t JOIN ({first}) p ON {same}) AS {alias}"
    where = f" WHERE ({source.render(execution, work, conflict.where, call)}\n)" if conflict.where is not None else ""
    assigned = _assigned(execution, work, table, operation, proposed.given, call)
    new = ", ".join(f"{assigned.get(fold(c.name), f'{alias}.{quote(c.name)}')} AS _lake_{i}" for i, c in enumerate(table.columns))
    address = f"{alias}.{theirs.source} AS _lake_s, {alias}.{theirs.position} AS _lake_p, {alias}.{theirs.row_id} AS _lake_r"
    return match.versions(execution, table, f"SELECT {address}, {new} FROM {rows}{where}", theirs, call)


def _assigned(execution: Execution, work: ch.Work, table: Table, operation: st.Insert, given: Sequence[str], call: Call) -> dict[str, str]:
    """The new value of each column that is set, by folded name. OR REPLACE sets those that were given and are in no key."""
    conflict = operation.on_conflict
    assert conflict is not None
    columns = {fold(c.name): c for c in table.visible}
    if conflict.action == "replace":
        return {name: f"excluded.{quote(columns[name].name)}" for name in map(fold, given) if columns[name].field_id not in table.key_fields}
    found: dict[str, str] = {}
    for one in conflict.assignments:
        column = columns[fold(one.column)]
        value = source.render(execution, work, one.value, call) if one.value is not None else column.default or "NULL"
        found[fold(one.column)] = f"CAST(({value}\n) AS {column.type})"
    return found
