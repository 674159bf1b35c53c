"""What MERGE BRANCH finds changed on both branches, and not alike: how `lake.merge_conflicts` shows it, and the error that names it.

A conflict is about a row, of which there are three versions then, or about a table: what each side did to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelite.errors import Conflict
from lakelite.mapping.names import listed
from lakelite.model import Table
from lakelite.transaction import merge_rows
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.meetings import Winner
from lakelite.transaction.merge_sides import Sides

SHOWN_KEYS = 10
_FOUND = "temp.lake_merge_conflicts"
COLUMNS = (
    ("table_name", "VARCHAR"), ("row_id", "BIGINT"), ("kind", "VARCHAR"), ("base", "VARCHAR"), ("ours", "VARCHAR"), ("theirs", "VARCHAR"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Torn:
    """A table, and what is wrong. `rows`: how many rows both changed (None: it is about the table itself)."""

    table: str
    why: str
    rows: int | None = None
    keys: tuple[str, ...] = ()


def begin(execution: Execution) -> None:
    """Nothing is found yet."""
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_conflicts ({', '.join(map(' '.join, COLUMNS))})")


def of_table(execution: Execution, table: Table, why: str, here: str, there: str) -> Torn:
    """Notes a conflict about a table itself. `here`, `there`: what each side did to it."""
    told = {"table": table.qualified, "kind": why, "here": here, "there": there}
    execution.engine.run(f"INSERT INTO {_FOUND} VALUES ($table, NULL, $kind, NULL, $here, $there)", told)
    return Torn(table.qualified, f"{why} (here: {here}; there: {there})")


def of_rows(execution: Execution, table: Table, count: int) -> Torn:
    """Notes the rows of a table that `merge_rows.three_ways` has found changed on both branches."""
    execution.engine.run(f"INSERT INTO {_FOUND} {merge_rows.conflicts(table)}")
    keys = merge_rows.shown_keys(execution, table, SHOWN_KEYS)
    rows = "1 row was" if count == 1 else f"{count} rows were"
    return Torn(table.qualified, f"{rows} changed on both branches, and not alike", count, keys)


def keep(execution: Execution) -> None:
    """What `lake.merge_conflicts` shows from now on is what was noted."""
    execution.merge.conflicts = execution.engine.shelf.save(execution.engine.work, f"SELECT * FROM {_FOUND}", {}, COLUMNS)


def error(execution: Execution, sides: Sides, torn: Torn, call: Call) -> Conflict:
    head = sides.head.snapshot_id
    theirs = Winner.of_row(execution.catalog.rows("winners", base=head - 1, head=head)[0], {}, False)
    shown = f" ({listed(torn.keys)})" if torn.keys else ""
    return Conflict(
        kind="merge conflict", table=torn.table, winner_snapshot_id=head, winner_committed_at=theirs.committed_at, winner_author=theirs.author,
        winner_statement=theirs.statement, statement=call.text, explanation=f"{torn.why}{shown}",
        what_to_do=f"lake.merge_conflicts shows the rows; MERGE BRANCH {sides.branch.name} ON CONFLICT OURS or THEIRS decides them all",
        rows=torn.rows, keys=torn.keys,
    )  # fmt: skip
