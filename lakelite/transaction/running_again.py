"""What a person is told where COMMIT runs a statement of an explicit transaction again, behind winners, and that fails.

The error keeps its class and its message; its place is in the text of that statement, not in what was run last. In autocommit the
statement and its commit are one, and its error is the ordinary one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from lakelite.errors import Error, TransactionConflict, on_one_line
from lakelite.mapping.ours import reraise
from lakelite.mapping.withheld import withhold
from lakelite.transaction.meetings import Winner
from lakelite.transaction.nameable import nameable
from lakelite.transaction.record import Logged

if TYPE_CHECKING:
    from lakelite.transaction.transaction import Transaction

_ROLLED_BACK = "The whole transaction was rolled back."


@contextmanager
def running_again(tx: Transaction, entry: Logged) -> Iterator[None]:
    """The block runs a statement again: an error in it is ours, with its place in the statement's text, and the transaction knows whose it is."""
    try:
        yield
    except duckdb.InterruptException:
        raise
    except Exception as error:
        tx.failed_again = entry
        reraise(error, entry.call.text, nameable(tx.execution.engine, tx.work.namespace, tx.execution.temporaries))


@contextmanager
def told_of(tx: Transaction, winners: Sequence[Winner]) -> Iterator[None]:
    """The block brings an explicit transaction past `winners`: an error in it says that, which statement failed, and beside which winner."""
    try:
        yield
    except TransactionConflict:
        raise
    except Error as error:
        if tx.explicit:
            error.context = _context(tx, tx.failed_again, winners)
            for one in tx.log:
                withhold(error, one.call.text, one.call.values, *(one.many or ()))
        raise


def _context(tx: Transaction, entry: Logged | None, winners: Sequence[Winner]) -> str:
    tables = tx.work.changes.tables.keys() if entry is None else entry.target | entry.tables
    met = [w for w in winners if not tables.isdisjoint(w.effects)] or list(winners)
    of = "" if entry is None else f" of the statement: {on_one_line(entry.call.text)}"
    return "\n".join([f"It came at COMMIT{of}", *([_winners(met)] if met else []), _ROLLED_BACK])


def _winners(met: Sequence[Winner]) -> str:
    last = met[-1]
    by = f" by {last.author}" if last.author else ""
    more = f", the last of {len(met)} snapshots" if len(met) > 1 else ""
    return f"beside snapshot {last.snapshot_id}{more}, committed {last.committed_at}{by}: {on_one_line(last.statement)}"
