"""ALTER TABLE. DuckDB makes the change on an empty copy of the table, and says what its columns are then and what is wrong with it.

Columns go by field id, so that most changes are metadata only: rows that lack an added column have its `initial` value, a dropped one is
not read, a widened one is cast as it is read. Where stored values have to be others, all rows are written anew, with their row ids and in
their order, and the column gets a new field id; fields inside of it that are there still keep theirs. What a new NOT NULL promises is validated
against the rows there are.
"""

from __future__ import annotations

from dataclasses import replace

from lakelite.contents import TableState
from lakelite.errors import IntegrityError, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.parse import is_volatile
from lakelite.model import ROW_ID_COLUMN, Column, Constraint, Table, fold, literal, quote
from lakelite.storage import fragment as fragments
from lakelite.storage.fields import inherited
from lakelite.storage.widening import is_widening
from lakelite.transaction import alter_constraints, define, describe, redefinition, tuning
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Call, Done, Execution, find_relation, find_table

_ROW_ID = quote("_lake_kept_row_id")


def alter_table(execution: Execution, work: ch.Work, operation: st.AlterTable, call: Call) -> Done:
    """One change of a table's definition; raises the statement's ordinary error and changes nothing then."""
    if operation.if_exists and work.namespace.find(operation.target.schema, operation.target.name) is None:
        return Done(define.defined(work, conditional=True))
    if operation.what == "rename table" and find_relation(work, operation.target, call).view is not None:  # DuckDB renames it as well
        return describe.rename_view(execution, work, st.RenameView(operation.target, False, operation.new_name or ""), call)
    table = find_table(work, operation.target, call)
    if operation.what == "rename table":
        return Done(define.defined(_renamed(execution, work, table, operation, call)))
    if operation.what in alter_constraints.HANDLED:
        changed = alter_constraints.changed(execution, work, table, operation)
        return Done(define.defined(_found(work, table) if changed is None else _put(execution, work, changed)))
    _refuse_reserved(operation)
    _refuse_partition_key(table, operation)
    described = define.altered(execution, replace(table, constraints=_concerned(table, operation)), operation.change)
    if operation.what == "add" and len(operation.path) == 1:
        altered = _added(execution, work, table, described.columns)
    elif operation.what == "drop" and len(operation.path) == 1:
        altered = _dropped(execution, work, table, described.columns)
    else:
        altered = _changed(execution, work, table, operation, described)
    return Done(define.defined(_found(work, table) if altered is None else altered))


def tune_table(execution: Execution, work: ch.Work, operation: st.TuneTable, call: Call) -> Done:
    """Options and partitioning: nothing of what anybody has written is wrong because of them."""
    if operation.if_exists and work.namespace.find(operation.target.schema, operation.target.name) is None:
        return Done(define.defined(work, conditional=True))
    tuned = find_table(work, operation.target, call)
    if operation.options is not None:
        tuned = tuning.with_options(tuned, operation.options, call)
    if operation.partitioned_by is not None:
        tuned = tuning.partitioned(tuned, operation.partitioned_by, call)
    return Done(define.defined(_put(execution, work, tuned)))


def _refuse_partition_key(table: Table, operation: st.AlterTable) -> None:
    """A column by which the files are divided has to stay what it is."""
    keys = {key.field_id for key in table.partitioning}
    column = next((c for c in table.columns if operation.path and fold(c.name) == fold(operation.path[0])), None)
    if operation.what in ("drop", "type") and column is not None and column.field_id in keys:
        what = f"{table.qualified} is partitioned by {column.name}: it can be renamed, but not dropped or given another type"
        raise ProgrammingError(what, hint=f"ALTER TABLE {table.qualified} RESET PARTITIONED BY first")


def _found(work: ch.Work, table: Table) -> ch.Work:
    """It is so already: who changes the definition decides what is to be done."""
    return replace(work, changes=replace(work.changes, found=work.changes.found | {table.table_id}))


def _refuse_reserved(operation: st.AlterTable) -> None:
    name = {"add": operation.path[0], "rename": operation.new_name}.get(operation.what)
    if name is not None and len(operation.path) == 1 and fold(name) == ROW_ID_COLUMN:
        raise ProgrammingError(f'the column name "{name}" is reserved', hint="choose another name")


def _concerned(table: Table, operation: st.AlterTable) -> tuple[Constraint, ...]:
    """The constraints that are about the column: because of them DuckDB may refuse the change, or change them too."""
    ids = {c.field_id for c in table.columns if fold(c.name) == fold(operation.path[0])}
    return tuple(c for c in table.constraints if operation.what != "add" and not ids.isdisjoint(field_id for _, field_id in c.columns))


def _put(execution: Execution, work: ch.Work, table: Table) -> ch.Work:
    before, change = work.namespace.by_id[table.table_id], work.changes.change_of(table)
    if table == before:
        return _found(work, table)
    kinds = redefinition.kind_of(execution, before, table)
    change = replace(change, table=table, kinds=change.kinds | kinds)
    return ch.Work(work.namespace.with_table(table), work.changes.with_change(change))


def _renamed(execution: Execution, work: ch.Work, table: Table, operation: st.AlterTable, call: Call) -> ch.Work:
    assert operation.new_name is not None
    if fold(operation.new_name) != fold(table.name):
        target = st.Name(table.schema_name, operation.new_name, call.text.rfind(operation.new_name))
        define.taken_by(execution, work, st.CreateTable(target, or_replace=False, if_not_exists=False, body=""), call)
    return _put(execution, work, replace(table, name=operation.new_name))


# Columns that come and go.


def _added(execution: Execution, work: ch.Work, table: Table, described: list[define.ColumnText]) -> ch.Work | None:
    if len(described) == len(table.columns):  # IF NOT EXISTS
        return None
    column = define.with_ids(execution, described[-1:], None)[0]
    default = column.default if column.default is not None else "NULL"
    if is_volatile(default):  # each row has a value of its own
        return _rewritten(execution, work, table, replace(table, columns=(*table.columns, column)), {column.field_id: default})
    initial, is_exact = redefinition.initial(execution, column)
    if not is_exact:
        return _rewritten(execution, work, table, replace(table, columns=(*table.columns, column)), {column.field_id: default})
    if not column.nullable and initial is None and execution.state(work, table).row_count:
        hint = "add it with a DEFAULT, or without NOT NULL"
        raise IntegrityError(f"NOT NULL constraint failed: {table.qualified}.{column.name}: the rows there have no value for it", hint=hint)
    made = replace(column, stored=replace(column.stored, initial=initial))
    return _put(execution, work, replace(table, columns=(*table.columns, made)))


def _dropped(execution: Execution, work: ch.Work, table: Table, described: list[define.ColumnText]) -> ch.Work | None:
    if len(described) == len(table.columns):  # IF EXISTS
        return None
    left = {name for name, *_ in described}
    columns = tuple(c for c in table.columns if c.name in left)
    ids = {c.field_id for c in columns}
    constraints = tuple(c for c in table.constraints if ids.issuperset(field_id for _, field_id in c.columns))
    return _put(execution, work, replace(table, columns=columns, constraints=constraints))


# Columns that become others.


def _changed(execution: Execution, work: ch.Work, table: Table, operation: st.AlterTable, described: define.Described) -> ch.Work | None:
    index = next(i for i, c in enumerate(table.columns) if fold(c.name) == fold(operation.path[0]))
    old, (name, kind, nullable, default) = table.columns[index], described.columns[index]
    is_nested = len(operation.path) > 1
    if operation.what == "default":
        new = replace(old, default=default)
    elif operation.what == "not null":
        new = replace(old, nullable=nullable)
        if old.nullable and not nullable:
            _validate_not_null(execution, work, table, old)
    elif operation.what == "rename" and not is_nested:
        new = replace(old, name=name, stored=replace(old.stored, name=name))
    elif kind == old.type and operation.using is None:
        return None
    elif is_nested or operation.using is not None or not is_widening(old.type, kind):
        return _retyped(execution, work, table, operation, index, described.columns[index])
    else:
        new = _widened(execution, old, kind)
    if new == old:
        return None
    changed = replace(table, columns=(*table.columns[:index], new, *table.columns[index + 1 :]))
    if operation.what == "rename":
        changed = replace(changed, constraints=_renamed_in(changed, _concerned(table, operation), described))
    return _put(execution, work, changed)


def _renamed_in(table: Table, concerned: tuple[Constraint, ...], described: define.Described) -> tuple[Constraint, ...]:
    """The constraints of `table`, those that are about a column that has another name by now as DuckDB has them then."""
    new = define.constraints_of(table.name, described.constraints, table.columns, [c.name for c in concerned])
    others = dict(zip(concerned, new, strict=True))
    return tuple(others.get(c, c) for c in table.constraints)


def _validate_not_null(execution: Execution, work: ch.Work, table: Table, column: Column) -> None:
    rows = execution.engine.relation(execution.state(work, table))
    if execution.engine.run(f"SELECT 1 FROM ({rows}) WHERE {quote(column.name)} IS NULL LIMIT 1"):
        hint = f"give each row a value first: UPDATE {table.qualified} SET {column.name} = … WHERE {column.name} IS NULL"
        raise IntegrityError(f"NOT NULL constraint failed: {table.qualified}.{column.name}: there is a row with NULL", hint=hint)


def _widened(execution: Execution, old: Column, kind: str) -> Column:
    initial = old.stored.initial
    if initial is not None:
        initial = execution.engine.do(f"SELECT CAST(CAST(CAST({literal(initial)} AS {old.type}) AS {kind}) AS VARCHAR)")[0][0]
    return replace(old, type=kind, stored=replace(old.stored, type=kind, initial=initial))


def _retyped(execution: Execution, work: ch.Work, table: Table, operation: st.AlterTable, index: int, described: define.ColumnText) -> ch.Work:
    old = table.columns[index]
    column = replace(define.with_ids(execution, [described], None)[0], nullable=old.nullable, comment=old.comment)
    if operation.using is None:
        column = inherited(column, old, renamed=operation.what == "rename")
    new = replace(table, columns=(*table.columns[:index], column, *table.columns[index + 1 :]))
    if len(operation.path) > 1:
        return _rewritten(execution, work, table, new, {column.field_id: quote(old.name)}, first=operation.change)
    return _rewritten(execution, work, table, new, {column.field_id: operation.using or quote(old.name)})


# Where rows have to be written anew.


def _rewritten(execution: Execution, work: ch.Work, old: Table, new: Table, values: dict[int, str], *, first: str | None = None) -> ch.Work:
    """Every row as one of `new`. `values`: by field id, the expression over the old columns; the others stay.

    `first`: a change that DuckDB makes on a copy of the rows before that.
    """
    state = execution.state(work, old)
    rows = _with_row_ids(execution, state)
    select = ", ".join(
        f"CAST(({values[c.field_id]}\n) AS {c.type}) AS {quote(c.name)}" if c.field_id in values else quote(c.name) for c in new.columns
    )
    if first is None:
        staged = _written(execution, new, f"SELECT {select}, {_ROW_ID} FROM ({rows}) AS {quote(old.name)}")
    else:
        with define.copied(execution, old, rows) as copy:
            execution.engine.run(f"ALTER TABLE {copy} {first}")
            staged = _written(execution, new, f"SELECT {select}, {_ROW_ID} FROM {copy}")
    change = ch.append(ch.delete_all(work.changes.change_of(old), state, "rewrite"), staged, "rewrite")
    return _put(execution, replace(work, changes=work.changes.with_change(change)), new)


def _written(execution: Execution, table: Table, rows: str) -> tuple[fragments.Staged, ...]:
    return execution.keep(table, fragments.write(execution.engine, execution.place(table), table, rows, {}, row_id=_ROW_ID))


def _with_row_ids(execution: Execution, state: TableState) -> str:
    """A SELECT of the live rows in their order, with their row ids (NULL: one that is not committed yet)."""
    scan = execution.engine.addressed(state, state.fragments.values())
    columns = ", ".join(f"s.{quote(c.name)}" for c in state.table.columns)
    sources, firsts = list(scan.fragments), [f.first_row_id or None for f in scan.fragments.values()]
    first = f"list_extract({firsts}::BIGINT[], list_position({sources}::BIGINT[], s.{scan.source}))".replace("None", "NULL")
    order = f" ORDER BY s.{scan.source}, s.{scan.position}" if state.vectors else ""  # to leave out deleted rows takes a join, which loses the order
    return f"SELECT {columns}, coalesce(s.{scan.row_id}, {first} + s.{scan.position})::BIGINT AS {_ROW_ID} FROM ({scan.sql}) s{order}"
