"""Which tables that a transaction read are the same to it at the head: no row that winners added or removed can matter to what it read.

The precise check of resolver.md, section 3: no row of the table's delta meets the conditions under which a scan keeps a row.
Reads only the rows of the delta. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from lakelite.composition import Unplaced
from lakelite.contents import TableState
from lakelite.errors import Error
from lakelite.language import statements as st
from lakelite.language.parse import parse_script
from lakelite.language.scans import scans
from lakelite.model import Conjunct, Table, quote
from lakelite.storage.statistics import candidates
from lakelite.storage.temporary import NOTHING
from lakelite.transaction import changes as ch
from lakelite.transaction import row_ids
from lakelite.transaction.binding import is_replaced, lost
from lakelite.transaction.delta import Delta
from lakelite.transaction.execution import Call
from lakelite.transaction.record import Event, Logged, Looked, Undone
from lakelite.transaction.rules import redefining
from lakelite.transaction.run import run
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import LakeView


def is_unaffected(tx: Transaction, table: Table, delta: Delta) -> bool:
    """Whether nothing that the transaction read of `table`, as it was at the base, can have come out differently. Of a view that is not known."""
    if table.view is not None:
        return False
    try:
        if delta.is_empty:
            return not _is_redefined(tx, table, delta)
        return (
            table.table_id not in tx.work.changes.tables
            and not (lost(table, delta.head.table) or is_replaced(table, delta.head.table))
            and not _concerns(tx, table, delta)
        )
    except Unplaced:
        return False


def _is_redefined(tx: Transaction, table: Table, delta: Delta) -> bool:
    """Whether columns hold something else, or nothing, though no row was moved."""
    now = delta.head.table
    return is_replaced(table, now) or ("shrink" in redefining(tx.isolation) and bool(lost(table, now)))


def _concerns(tx: Transaction, table: Table, delta: Delta) -> bool:
    wanted: list[tuple[Conjunct, ...]] = []
    for call, is_known in _reads(tx, tx.events, table):
        found = scans(call.text, table, call.values) if is_known else None
        if found is None:
            return True
        wanted += found
    if not wanted:  # it was read, and by nothing that is on record
        return True
    states = [row_ids.only(state, rows) for state, rows in ((delta.base, delta.removed), (delta.head.defined_as(table), delta.added)) if rows]
    return any(_holds_one(tx, state, conjuncts) for state in states for conjuncts in dict.fromkeys(wanted))


def _reads(tx: Transaction, events: Sequence[Event], table: Table) -> Iterator[tuple[Call, bool]]:
    """The statements that may have read the table, and whether it is known what of it: not where they read through a view."""
    for event in events:
        match event:
            case Undone():
                yield from _reads(tx, event.events, table)
            case Looked() if table.table_id in event.tables:
                yield event.call, isinstance(event.operation, st.Query) and not tx.execution.texts_within(event.tables)
            case Logged() if table.table_id in event.tables:
                yield event.call, event.many is None and not tx.execution.texts_within(event.tables)
            case Logged() if isinstance(event.operation, st.AlterTable | st.RestoreTable):
                yield event.call, False


def _holds_one(tx: Transaction, state: TableState, conjuncts: tuple[Conjunct, ...]) -> bool:
    """Whether a row of `state` meets them all; an error counts as yes."""
    if not any(True for _ in candidates(state.fragments.values(), conjuncts)):
        return False
    text, values = _query(state.table, conjuncts)
    view = LakeView(tx.execution.catalog, tx.base.snapshot_id, tx.base.namespace, {state.table.table_id: state})
    execution = replace(tx.execution, view=view, pinned=[], _overlays={}, temporaries=NOTHING)
    (statement,) = parse_script(text, frozenset(values))
    try:
        done = run(execution, ch.Work(tx.base.namespace, ch.ChangeSet()), statement.operation, Call(statement.text, values))
        assert done.rows is not None
        try:
            return bool(done.rows.fetchall())
        finally:
            tx.execution.engine.drop(done.rows)
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, Error):
        return True


def _query(table: Table, conjuncts: tuple[Conjunct, ...]) -> tuple[str, Mapping[str, Any]]:
    names = {c.field_id: quote(c.name) for c in table.columns}
    values: dict[str, Any] = {}

    def bound(value: Any) -> str:
        values[f"p{len(values)}"] = value
        return f"$p{len(values) - 1}"

    terms = [
        "(" + " OR ".join(f"{names[c.field_id]} {c.operator} {bound(v)}" for v in c.values) + ")" if c.values else f"{names[c.field_id]} {c.operator}"
        for c in conjuncts
    ]
    return f"SELECT 1 FROM {quote(table.schema_name)}.{quote(table.name)} WHERE {' AND '.join(terms)} LIMIT 1", values
