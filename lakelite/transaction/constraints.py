"""What constraints promise: CHECK, UNIQUE and PRIMARY KEY hold for every row that a statement leaves behind. (NOT NULL: by what writes rows.)

Looked at after each statement, on the rows that it wrote: whatever wrote them, the base or the head, at first or in a replay. Keys are
looked up among the other rows of the table that statistics do not rule out. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakelite.contents import TableState
from lakelite.errors import IntegrityError
from lakelite.language import statements as st
from lakelite.model import Column, Constraint, Fragment, Table, fold, quote
from lakelite.storage.statistics import may_share
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Execution

_CHANGING_NO_ROW = (st.AlterTable, st.TuneTable, st.RestoreTable, st.CreateTable, st.CreateTableAs)  # what stood there before met them


def check_statement(execution: Execution, before: ch.Work, after: ch.Work, operation: st.Operation) -> None:
    """IntegrityError if a row that the statement has written breaks a constraint of its table."""
    if isinstance(operation, _CHANGING_NO_ROW):
        return
    for table_id, change in after.changes.tables.items():
        old = before.changes.tables.get(table_id)
        if change is old or change.dropped or not change.table.constraints:
            continue
        written = change.staged.keys() - (old.staged.keys() if old is not None else frozenset())
        if written:
            _check(execution, execution.state(after, change.table), written, rekeyed=writes_keys(change.table, operation))


def writes_keys(table: Table, operation: st.Operation) -> bool:
    """Whether rows that the statement writes may have keys that no row had before."""
    if not isinstance(operation, st.Update):
        return True
    ids = {fold(c.name): c.field_id for c in table.columns}
    return any(ids.get(fold(a.column)) in table.key_fields for a in operation.assignments)


def check_table(execution: Execution, state: TableState) -> None:
    """IntegrityError if a row of the table breaks one of its constraints."""
    _check(execution, state, state.fragments.keys(), rekeyed=True)


def _check(execution: Execution, state: TableState, written: Iterable[int], *, rekeyed: bool) -> None:
    fragments = {k: state.fragments[k] for k in written if k in state.fragments}
    if not fragments:
        return
    rows = _part(state, fragments.values())
    for constraint in state.table.constraints:
        if not constraint.is_key and _breaks(execution, rows, constraint):
            raise _failed(state.table, constraint)
    others = _part(state, (f for k, f in state.fragments.items() if k not in fragments))
    if rekeyed and (found := duplicate(execution, rows, others)) is not None:
        raise duplicate_key(*found)


def _part(state: TableState, fragments: Iterable[Fragment]) -> TableState:
    """The rows of some fragments of a table."""
    kept = {f.fragment_id: f for f in fragments}
    vectors = {k: v for k, v in state.vectors.items() if k in kept}
    return TableState(state.table, kept, vectors, {k: ipc for k, ipc in state.staged_rows.items() if k in kept})


def _failed(table: Table, constraint: Constraint) -> IntegrityError:
    called = f' "{constraint.name}"' if constraint.name is not None else ""
    message = f'CHECK constraint{called} failed on table "{table.name}" with expression {constraint.text}'
    return IntegrityError(message, hint="each row has to meet it; NULL does")


def duplicate_key(key: Constraint, values: Sequence[str]) -> IntegrityError:
    """The error for two rows with the same key."""
    shown = ", ".join(f"{name}: {value}" for (name, _), value in zip(key.columns, values, strict=True))
    kind = "primary key" if key.kind == "primary key" else "unique"
    hint = "INSERT … ON CONFLICT DO NOTHING leaves such rows out, DO UPDATE SET … changes the row that is there"
    return IntegrityError(f'Duplicate key "{shown}" violates {kind} constraint', hint=hint)


# CHECK.


def _breaks(execution: Execution, rows: TableState, check: Constraint) -> bool:
    """Whether there is a row for which the expression is false. DuckDB takes it for an integer, and 0 for false."""
    named = {c.field_id: c.name for c in rows.table.columns}
    columns = [f"{quote(named[field_id])} AS {quote(name)}" for name, field_id in dict.fromkeys(check.columns)]
    wanted = frozenset(fold(named[field_id]) for _, field_id in check.columns) or frozenset(fold(c.name) for c in rows.table.columns[:1])
    inner = f"SELECT {', '.join(columns) or '1'} FROM ({execution.engine.columns(rows, rows.fragments.values(), wanted)})"
    return bool(execution.engine.run(f"SELECT 1 FROM ({inner}) WHERE CAST(({check.expression}) AS INTEGER) = 0 LIMIT 1"))


def column_with_null(execution: Execution, rows: TableState, columns: Sequence[Column]) -> Column | None:
    """The first of `columns` in which there is a NULL."""
    if not columns or not rows.fragments:
        return None
    there = execution.engine.columns(rows, rows.fragments.values(), frozenset(fold(c.name) for c in columns))
    counted = ", ".join(f"bool_or({quote(c.name)} IS NULL)" for c in columns)
    found = execution.engine.run(f"SELECT {counted} FROM ({there})")[0]
    return next((column for column, has_null in zip(columns, found, strict=True) if has_null), None)


# Keys.


def duplicate(execution: Execution, rows: TableState, others: TableState) -> tuple[Constraint, tuple[str, ...]] | None:
    """A key of two of `rows`, or of one of them and one of `others` (the same table), with its values; None if there is none.

    A key with a NULL is no key (SQL).
    """
    for key in rows.table.keys:
        found = execution.engine.run(_lookup(execution, rows, others, key))
        if found:
            return key, found[0]
    return None


def _lookup(execution: Execution, rows: TableState, others: TableState, key: Constraint) -> str:
    names = key_names(rows.table, key)
    mine = keys_of(execution, rows, rows.fragments.values(), names)
    shown = ", ".join(f"CAST(k{i} AS VARCHAR)" for i in range(len(names)))
    columns = ", ".join(f"k{i}" for i in range(len(names)))
    twice = f"SELECT {shown} FROM mine GROUP BY {columns} HAVING count(*) > 1"
    text = f"WITH mine AS MATERIALIZED ({mine}) ({twice} LIMIT 1)"
    near = candidates(rows, others, key)
    if near:
        theirs = keys_of(execution, others, near, names)
        text += f" UNION ALL (SELECT {shown} FROM ({theirs}) SEMI JOIN mine USING ({columns}) LIMIT 1)"
    return f"{text} LIMIT 1"


def key_names(table: Table, key: Constraint) -> list[str]:
    """What the columns of the key are called now."""
    named = {c.field_id: c.name for c in table.columns}
    return [named[field_id] for _, field_id in key.columns]


def keys_of(execution: Execution, state: TableState, fragments: Iterable[Fragment], names: Sequence[str]) -> str:
    """A SELECT of the keys, as k0, k1, …, in some fragments of a table."""
    rows = execution.engine.columns(state, fragments, frozenset(map(fold, names)))
    columns = ", ".join(f"{quote(name)} AS k{i}" for i, name in enumerate(names))
    return f"SELECT {columns} FROM ({rows}) WHERE {' AND '.join(f'{quote(name)} IS NOT NULL' for name in names)}"


def candidates(rows: TableState, others: TableState, key: Constraint) -> list[Fragment]:
    """The fragments of `others` that may hold a key of `rows`, by their statistics."""
    types = {c.field_id: c.type for c in rows.table.columns}
    columns = [(field_id, types[field_id]) for _, field_id in key.columns]
    return [f for f in others.fragments.values() if any(may_share(mine, f, columns) for mine in rows.fragments.values())]
