"""EXPLAIN COMMIT: what a commit would do now, found by doing it with a copy of the transaction and throwing that away.

Writes nothing into the catalog but the counter of ids, of which DDL takes some; files that the copy staged are removed. What it
says holds for the head of this moment: the commit itself may meet more winners.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelite.catalog.store import Catalog
from lakelite.errors import Conflict, Error, TransactionConflict
from lakelite.mapping.ours import mapped
from lakelite.transaction.meetings import Winner
from lakelite.transaction.reconcile import meet, take
from lakelite.transaction.resolve import Resolution
from lakelite.transaction.transaction import Transaction

COLUMNS = (
    ("winner_snapshot_id", "BIGINT"), ("table_name", "VARCHAR"), ("outcome", "VARCHAR"), ("rung", "INTEGER"), ("row_count", "BIGINT"),
    ("explanation", "VARCHAR"), ("winner_author", "VARCHAR"), ("winner_statement", "VARCHAR"),
)  # fmt: skip
Row = tuple[Any, ...]


def rehearse(tx: Transaction, catalog: Catalog) -> list[Row]:
    """One row (COLUMNS) for each table and winner that the commit would meet; none where it would meet nobody, or has nothing to commit.

    `outcome`: commit, conflict, or error where a statement would fail on the head; `rung` as in resolver.md, 5 where it does not commit.
    """
    if not tx.work.changes.writes:
        return []
    trial = tx.copy()
    winners: Sequence[Winner] = ()
    try:
        with mapped():
            step = meet(trial, catalog)
            winners = step.winners
            found = take(trial, step)
    except TransactionConflict as error:
        return [_refused(conflict) for conflict in error.conflicts]
    except Error as error:
        return [_failed(error, winners)]
    finally:
        trial.discard()
    by_id = {winner.snapshot_id: winner for winner in winners}
    return [_resolved(line, by_id[line.winner_snapshot_id]) for line in found]


def _resolved(line: Resolution, winner: Winner) -> Row:
    return (line.winner_snapshot_id, line.table, "commit", line.rung, line.row_count, line.explanation, winner.author, winner.statement)


def _refused(conflict: Conflict) -> Row:
    return (
        conflict.winner_snapshot_id, conflict.table, "conflict", 5, conflict.rows, f"{conflict.kind}: {conflict.explanation}",
        conflict.winner_author, conflict.winner_statement,
    )  # fmt: skip


def _failed(error: Error, winners: Sequence[Winner]) -> Row:
    last = winners[-1] if winners else None
    return (last and last.snapshot_id, None, "error", 5, None, str(error.message), last and last.author, last and last.statement)
