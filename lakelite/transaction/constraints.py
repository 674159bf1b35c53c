"""What constraints promise: CHECK, UNIQUE and PRIMARY KEY hold for every row that a statement leaves behind. (NOT NULL: by what writes rows.)

Looked at after each statement, on the rows that it wrote: whatever wrote them, the base or the head, at first or in a replay. Keys are
looked up among the other rows of the table that statistics do not rule out. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from lakelite.contents import TableState
from lakelite.errors import IntegrityError
from lakelite.language import statements as st
from lakelite.model import Column, Constraint, Table, fold, quote
from lakelite.storage.engine import Engine
from lakelite.transaction import changes as ch
from lakelite.transaction import key_lookup
from lakelite.transaction.execution import Execution

_CHANGING_NO_ROW = (st.AlterTable, st.TuneTable, st.RestoreTable, st.CreateTable, st.CreateTableAs)  # what stood there before met them


def check_statement(execution: Execution, before: ch.Work, after: ch.Work, operation: st.Operation) -> None:
    """IntegrityError if a row that the statement has written breaks a constraint of its table. Its files get their key filters."""
    for table_id, change in after.changes.tables.items():
        old = before.changes.tables.get(table_id)
        if change is old or change.dropped or not change.table.constraints:
            continue
        written = change.staged.keys() - (old.staged.keys() if old is not None else frozenset())
        if not written:
            continue
        state = execution.state(after, change.table)
        if isinstance(operation, _CHANGING_NO_ROW):
            key_lookup.make_filters(execution, state.part(state.fragments[k] for k in written if k in state.fragments))
        else:
            keeps = not _sets_keys(change.table, operation)
            rekeyed = {k for k in written if not (keeps and k in state.fragments and state.fragments[k].has_row_ids)}
            _check(execution, state, written, rekeyed)


def writes_keys(table: Table, operation: st.Operation) -> bool:
    """Whether rows that the statement writes may have keys that no row had before."""
    return not isinstance(operation, st.Update) or _sets_keys(table, operation)


def _sets_keys(table: Table, operation: st.Operation) -> bool:
    """Whether rows that were there before may get other keys by the statement. (OR REPLACE leaves keys alone.)"""
    ids = {fold(c.name): c.field_id for c in table.columns}
    if isinstance(operation, st.Update):
        names: Iterable[str] = (a.column for a in operation.assignments)
    elif isinstance(operation, st.Merge):
        names = (name for c in operation.clauses if c.action == "update" for name in (ids if c.columns is None else c.columns))
    elif isinstance(operation, st.Insert) and operation.on_conflict is not None:
        names = (a.column for a in operation.on_conflict.assignments)
    else:
        return True  # MERGE BRANCH brings keys of another branch with row ids that were there
    return any(ids.get(fold(name)) in table.key_fields for name in names)


def check_table(execution: Execution, state: TableState) -> None:
    """IntegrityError if a row of the table breaks one of its constraints."""
    _check(execution, state, state.fragments.keys(), state.fragments.keys())


def _check(execution: Execution, state: TableState, written: Iterable[int], rekeyed: Collection[int]) -> None:
    """Of the fragments that were `written`, the rows of those that were `rekeyed` may have keys that no row had."""
    rows = state.part(state.fragments[k] for k in written if k in state.fragments)
    if not rows.fragments:
        return
    for constraint in state.table.constraints:
        if not constraint.is_key and execution.engine.run(f"SELECT 1 {breaking(execution.engine, rows, constraint)} LIMIT 1"):
            raise failed(state.table, constraint)
    mine, others = (state.part(f for k, f in state.fragments.items() if (k in rekeyed) is is_mine) for is_mine in (True, False))
    if mine.fragments and (found := duplicate(execution, mine, others)) is not None:
        raise duplicate_key(*found)
    key_lookup.make_filters(execution, rows)


def failed(table: Table, constraint: Constraint) -> IntegrityError:
    """The error for a CHECK that a row does not meet."""
    called = f' "{constraint.name}"' if constraint.name is not None else ""
    message = f'CHECK constraint{called} failed on table "{table.name}" with expression {constraint.text}'
    return IntegrityError(message, hint="each row has to meet it; NULL does")


def duplicate_key(key: Constraint, values: Sequence[str]) -> IntegrityError:
    """The error for two rows with the same key."""
    shown = ", ".join(f"{name}: {value}" for (name, _), value in zip(key.columns, values, strict=True))
    kind = "primary key" if key.kind == "primary key" else "unique"
    hint = "each key may stand once; for an INSERT, ON CONFLICT DO NOTHING leaves such rows out, DO UPDATE SET … changes the row that is there"
    return IntegrityError(f'Duplicate key "{shown}" violates {kind} constraint', hint=hint)


# CHECK.


def breaking(engine: Engine, rows: TableState, check: Constraint) -> str:
    """FROM and WHERE of a SELECT of the rows for which the expression is false. DuckDB takes it for an integer, and 0 for false."""
    named = {c.field_id: c.name for c in rows.table.columns}
    columns = [f"{quote(named[field_id])} AS {quote(name)}" for name, field_id in dict.fromkeys(check.columns)]
    wanted = frozenset(fold(named[field_id]) for _, field_id in check.columns) or frozenset(fold(c.name) for c in rows.table.columns[:1])
    inner = f"SELECT {', '.join(columns) or '1'} FROM ({engine.columns(rows, rows.fragments.values(), wanted)})"
    return f"FROM ({inner}) WHERE CAST(({check.expression}) AS INTEGER) = 0"


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
        found = _find(execution, rows, others, key)
        if found is not None:
            return key, found
    return None


def _find(execution: Execution, rows: TableState, others: TableState, key: Constraint) -> tuple[str, ...] | None:
    """The values of the key in two of `rows`, or in one of them and one of `others`; None if there are none."""
    near = key_lookup.near(execution, rows, others, key)
    names = key_lookup.key_names(rows.table, key)
    shown = ", ".join(f"CAST(k{i} AS VARCHAR)" for i in range(len(names)))
    columns = ", ".join(f"k{i}" for i in range(len(names)))
    texts = [f"SELECT {shown} FROM mine GROUP BY {columns} HAVING count(*) > 1"] if near.may_repeat else []
    for fragments, condition in near.places:
        theirs = key_lookup.keys_of(execution, others, fragments, names, few=bool(condition))
        texts.append(f"SELECT {shown} FROM ({theirs}) SEMI JOIN (SELECT * FROM mine{condition}) USING ({columns})")
    if not texts:
        return None
    mine = key_lookup.keys_of(execution, rows, rows.fragments.values(), names)
    parts = " UNION ALL ".join(f"({text} LIMIT 1)" for text in texts)
    return next(iter(execution.engine.run(f"WITH mine AS MATERIALIZED ({mine}) {parts} LIMIT 1")), None)
