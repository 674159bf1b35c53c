"""What a transaction did to the keys of tables, and whether its rows' keys are taken by rows that winners added (resolver.md, section 3)."""

from __future__ import annotations

from lakelite.contents import TableState
from lakelite.language import statements as st
from lakelite.model import Constraint, Table
from lakelite.transaction import constraints, row_ids
from lakelite.transaction.delta import Delta
from lakelite.transaction.record import Logged
from lakelite.transaction.transaction import Transaction

_REMOVING = (st.Delete, st.Truncate)


def gave(tx: Transaction) -> dict[int, bool]:
    """The tables with keys to which it gave rows with keys of their own, and whether that is all that it did to keys there.

    One whose rows it replaced as a whole is none of them: what winners added is not there any more.
    """
    found: dict[int, set[str]] = {}
    for entry in tx.log:
        table = tx.base.namespace.by_id.get(entry.table.table_id) if entry.table is not None else None
        if table is not None and table.keys:
            found.setdefault(table.table_id, set()).add(_what(entry, table))
    return {k: uses <= {"adds", "leaves"} for k, uses in found.items() if uses & {"adds", "writes"} and "replaces" not in uses}


def _what(entry: Logged, table: Table) -> str:
    operation = entry.operation
    if isinstance(operation, _REMOVING):
        return "removes"
    if isinstance(operation, st.Insert) and operation.overwrite:
        return "replaces"
    if isinstance(operation, st.Insert) and operation.on_conflict is not None:
        return "writes"
    if isinstance(operation, st.Insert | st.CopyFrom | st.Append):
        return "adds"
    return "writes" if constraints.writes_keys(table, operation) else "leaves"


def collision(tx: Transaction, mine: TableState, delta: Delta) -> tuple[Constraint, tuple[str, ...]] | None:
    """A key that a staged row has and a row that winners added too, with its values."""
    theirs = row_ids.only(delta.head, delta.added)
    return constraints.duplicate(tx.execution, mine, theirs) if theirs.fragments else None
