"""What MERGE BRANCH finds changed on both branches, and not alike: how `lake.merge_conflicts` shows it, what was chosen for a row of it,
and the error that names it.

A conflict is about a row, of which there are three versions then, or about a table: what each side did to it. `UPDATE lake.merge_conflicts
SET resolution = …` chooses a side for a row; the choice is kept in the catalog with a digest of the two versions that it was made between,
and the next merge of that branch uses it where the row has these still.
"""

from __future__ import annotations

import json

from lakelite.errors import Conflict, DataError, NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.names import listed
from lakelite.model import RESERVED_SCHEMA, Branch, Table, fold, quote
from lakelite.records import dataclass
from lakelite.transaction import changes as ch
from lakelite.transaction import merge_keys, merge_rows, source
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.meetings import Winner
from lakelite.transaction.merge_sides import Sides

SHOWN_KEYS = 10
_FOUND, _CHOICES = "temp.lake_merge_conflicts", "temp.lake_merge_choices"
_CHOICE = (("row_id", "BIGINT"), ("ours", "VARCHAR"), ("theirs", "VARCHAR"), ("resolution", "VARCHAR"))
COLUMNS = (
    ("table_name", "VARCHAR"), ("row_id", "BIGINT"), ("kind", "VARCHAR"), ("base", "VARCHAR"), ("ours", "VARCHAR"), ("theirs", "VARCHAR"),
    ("resolution", "VARCHAR"), ("key", "VARCHAR"), ("ours_digest", "VARCHAR"), ("theirs_digest", "VARCHAR"),
)  # fmt: skip
"""What is kept of each conflict: the columns of `lake.merge_conflicts`, and the digests of its two versions."""


@dataclass(frozen=True, slots=True)
class Torn:
    """A table, and what is wrong. `rows`: how many rows both changed (None: it is about the table itself)."""

    table: Table
    why: str
    rows: int | None = None
    keys: tuple[str, ...] = ()


# What a merge finds.


def begin(execution: Execution, theirs: Branch) -> None:
    """Nothing is found yet."""
    execution.merge.conflicts, execution.merge.lines, execution.merge.has_found = None, [], False
    execution.merge.theirs, execution.merge.ours_id = theirs, execution.branch


def _need_tables(execution: Execution) -> None:
    """Where something is found: the table of it, and one of what was chosen for this merge before. Most merges find nothing."""
    if execution.merge.has_found:
        return
    assert execution.merge.theirs is not None, "begin was called"
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_conflicts ({_listed(COLUMNS)})")
    chosen = execution.catalog.row("merge_choices", ours=execution.branch, theirs=execution.merge.theirs.branch_id)[0]
    shape = json.dumps([dict(_CHOICE)])
    rows = "SELECT unnest(from_json($chosen, $shape), recursive := true)"
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_choices AS {rows}", {"chosen": chosen, "shape": shape})
    execution.merge.has_found = True


def _listed(columns: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(map(" ".join, columns))


def of_table(execution: Execution, table: Table, why: str, here: str, there: str) -> Torn:
    """Notes a conflict about a table itself. `here`, `there`: what each side did to it."""
    _need_tables(execution)
    told = {"table": table.qualified, "kind": why, "here": here, "there": there}
    execution.engine.run(f"INSERT INTO {_FOUND} BY NAME SELECT $table AS table_name, $kind AS kind, $here AS ours, $there AS theirs", told)
    return Torn(table, f"{why} (here: {here}; there: {there})")


def of_demand(execution: Execution, table: Table, broken: str) -> None:
    """Notes that rows of a table break a constraint."""
    _need_tables(execution)
    told = {"table": table.qualified, "kind": broken}
    execution.engine.run(f"INSERT INTO {_FOUND} BY NAME SELECT $table AS table_name, $kind AS kind", told)


def of_rows(execution: Execution, table: Table, taking: merge_rows.Taking, *, comes: bool) -> Torn | None:
    """Notes the rows of a table that `merge_rows.three_ways` has found changed on both branches, and those that `merge_keys.meet` has found with
    a key that is taken, and applies what was chosen for them; `comes`: whether the others come. None: nothing is left to be decided."""
    _need_tables(execution)
    execution.engine.run(f"INSERT INTO {_FOUND} BY NAME {merge_keys.decide(execution, table, _CHOICES, taking, comes=comes)}")
    changed, taken = merge_keys.left(execution)
    if not changed + taken:
        return None
    rows = "1 row was" if changed == 1 else f"{changed} rows were"
    keys = "1 row has a key" if taken == 1 else f"{taken} rows have keys"
    told = [f"{rows} changed on both branches, and not alike"] if changed else []
    told += [f"{keys} that another row has on the other branch"] if taken else []
    return Torn(table, "; ".join(told), changed + taken, merge_keys.shown_keys(execution, table, SHOWN_KEYS))


def keep(execution: Execution) -> None:
    """What `lake.merge_conflicts` shows from now on is what was noted."""
    if execution.merge.has_found:
        _save(execution, f"SELECT * FROM {_FOUND}")


def _save(execution: Execution, rows: str) -> None:
    execution.merge.conflicts = execution.engine.shelf.save(execution.engine.work, rows, {}, COLUMNS)


def error(execution: Execution, sides: Sides, torn: Torn, call: Call) -> Conflict:
    """Names what of theirs changed the table last."""
    number, name = sides.theirs.newest.get(torn.table.table_id, sides.head.snapshot_id), sides.branch.name
    theirs = Winner.of_row(execution.catalog.rows("winners", base=number - 1, head=number)[0], {}, False)
    shown = f" ({listed(torn.keys)})" if torn.keys else ""
    return Conflict(
        kind="merge conflict", table=torn.table.qualified, winner_snapshot_id=number, winner_committed_at=theirs.committed_at,
        winner_author=theirs.author, winner_statement=theirs.statement, statement=call.text, explanation=f"{torn.why}{shown}",
        what_to_do="lake.merge_conflicts shows them; UPDATE lake.merge_conflicts SET resolution = 'ours' or 'theirs' WHERE … decides rows for the "
        f"next MERGE BRANCH {name}, and MERGE BRANCH {name} ON CONFLICT OURS or THEIRS all that is left",
        rows=torn.rows, keys=torn.keys,
    )  # fmt: skip


# What is chosen.


def are_meant(operation: st.Update) -> bool:
    """Whether an UPDATE is one of `lake.merge_conflicts`."""
    return operation.target.schema is not None and (fold(operation.target.schema), fold(operation.target.name)) == (
        RESERVED_SCHEMA,
        "merge_conflicts",
    )


def choose(execution: Execution, work: ch.Work, operation: st.Update, call: Call) -> str:
    """Evaluates `UPDATE lake.merge_conflicts SET resolution = …`: the rows that it is about, as a JSON list of choices for the catalog.

    ProgrammingError, NotSupportedError, DataError: it sets anything else, or is about a table.
    """
    _check(operation, call)
    (assignment,) = operation.assignments
    value = "NULL" if assignment.value is None else source.render(execution, work, assignment.value, call)
    where = "" if operation.where is None else f" WHERE {source.render(execution, work, operation.where, call)}"
    ctes = "" if operation.ctes is None else source.render(execution, work, operation.ctes, call)
    alias = "" if operation.alias is None else f" AS {quote(operation.alias)}"
    text = f"{ctes} SELECT row_id, lower(CAST(({value}\n) AS VARCHAR)) AS resolution FROM {RESERVED_SCHEMA}.merge_conflicts{alias}{where}"
    source.prepare(execution, work, text, values=call.values)
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_choices AS {text}", source.used_values(text, call.values))
    _check_choices(execution, Position.at(call.text, assignment.offset))
    saved = execution.merge.conflicts
    if saved is None:
        return "[]"
    row = "{'row_id': s.row_id, 'ours': s.ours_digest, 'theirs': s.theirs_digest, 'resolution': c.resolution}"
    chosen = f"SELECT to_json(coalesce(list({row}), [])) FROM ({saved.sql}) s JOIN {_CHOICES} c ON c.row_id = s.row_id"
    return str(execution.engine.run(chosen)[0][0])


def _check(operation: st.Update, call: Call) -> None:
    for assignment in operation.assignments:
        if fold(assignment.column) != "resolution":
            hint = "resolution is the one that can: 'ours', 'theirs' or NULL"
            what = f'the column "{assignment.column}" of lake.merge_conflicts cannot be set'
            raise ProgrammingError(what, hint=hint, position=Position.at(call.text, assignment.offset))
    if operation.sources is not None or operation.returning is not None:
        clause, hint = ("FROM", "write a subquery in WHERE") if operation.sources is not None else ("RETURNING", "SELECT from it afterwards")
        raise NotSupportedError(f"{clause} in an UPDATE of lake.merge_conflicts is not supported", hint=hint)


def _check_choices(execution: Execution, position: Position) -> None:
    if execution.engine.run(f"SELECT 1 FROM {_CHOICES} WHERE resolution NOT IN ('ours', 'theirs') LIMIT 1"):
        raise DataError("a resolution is 'ours' or 'theirs'", hint="NULL takes a choice back", position=position)
    if execution.engine.run(f"SELECT 1 FROM {_CHOICES} WHERE row_id IS NULL LIMIT 1"):
        hint = "add row_id IS NOT NULL to WHERE; MERGE BRANCH … ON CONFLICT OURS or THEIRS decides tables, or make them alike on both branches"
        raise NotSupportedError("a conflict about a table's definition is not decided in lake.merge_conflicts", hint=hint)


def show_chosen(execution: Execution) -> None:
    """`lake.merge_conflicts` shows what `choose` has found."""
    saved = execution.merge.conflicts
    if saved is not None:
        shown = "* REPLACE (CASE WHEN c.row_id IS NULL THEN s.resolution ELSE c.resolution END AS resolution)"
        _save(execution, f"SELECT s.{shown} FROM ({saved.sql}) s LEFT JOIN {_CHOICES} c ON c.row_id = s.row_id")
