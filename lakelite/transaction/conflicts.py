"""What is a conflict, and what a person is told of it. Pure; reads and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from lakelite.contents import Namespace
from lakelite.errors import Conflict, ConflictKind
from lakelite.language.tokens import without_leading_comments
from lakelite.model import fold
from lakelite.transaction.binding import lost
from lakelite.transaction.meetings import DEFINING, Candidate, Meeting, Winner, bound_names, meetings
from lakelite.transaction.record import Differing
from lakelite.transaction.rules import Rule


def differing(mine: Candidate, winners: Sequence[Winner], head: Namespace, handed_out: Sequence[Differing]) -> tuple[Conflict, ...]:
    """The conflicts for what would be something else now: one for each winner that may be why."""
    met = meetings(mine, winners, head)
    found: list[Conflict] = []
    for one in handed_out:
        reasons = [m for m in met if m.rule is Rule.COMPARE and m.table_id in one.tables] or [m for m in met if m.table_id in one.tables] or met[:1]
        found += [_differs(mine, one, m.winner, m.table_id, m.theirs) for m in reasons]
        if not reasons:
            found += [_differs(mine, one, w, next(iter(w.effects), None), "change") for w in winners[-1:]]
    return tuple(dict.fromkeys(found))


def _differs(mine: Candidate, one: Differing, winner: Winner, table_id: int | None, theirs: str) -> Conflict:
    what = {
        "read changed": f"its rows were shown to you, and snapshot {winner.snapshot_id} changed them ({theirs})",
        "row count changed": f"after snapshot {winner.snapshot_id} ({theirs}) your statement changes another number of rows than you were told",
        "external data": "it read files or DataFrames and has to run again, which would not be exactly as it was",
        "error changed": f"after snapshot {winner.snapshot_id} ({theirs}) your statement does not fail as you were told that it did",
    }[one.kind]
    is_only_read = one.kind != "read changed" or table_id not in mine.changes.tables
    is_default_enough = one.kind in ("row count changed", "error changed") or (mine.isolation == "serializable" and winner.blind)
    accepted_at = "write serializable" if is_default_enough else "snapshot" if is_only_read else None
    return conflict(mine, Meeting(winner, table_id, "shown", "update", Rule.COMPARE), one.kind, what, one.text, accepted_at)


def against_replay(mine: Candidate, met: Sequence[Meeting], head: Namespace) -> list[Conflict]:
    """Why a replay would not be exact, if so."""
    reason = max(met, key=lambda m: m.rule.value)
    if not mine.explicit:  # it runs again as it is, with its ordinary error
        return []
    found = [conflict(mine, reason, "schema changed", why) for why in _unbound(mine, met, head)]
    if mine.changes.external is not None:
        found.append(conflict(mine, reason, "external data", "a statement read files or DataFrames, so it cannot be repeated exactly as it was"))
    return found


def missing(mine: Candidate, met: Sequence[Meeting], head: Namespace, *, runs_again: bool) -> list[tuple[Meeting, str]]:
    """Columns that are gone and would have to be read again: rows of their tables are others now, or all has to run again."""
    found: list[tuple[Meeting, str]] = []
    for table_id in sorted(bound_names(mine, met, head)):
        here = [m for m in met if m.table_id == table_id] or list(met[:1])
        if here and (runs_again or max(m.rule.value for m in here) >= Rule.REEVALUATE.value):
            reason = next((m for m in here if m.theirs == "shrink"), here[0])
            found += [
                (reason, f'column "{name}" was dropped by snapshot {reason.winner.snapshot_id}') for name in _read_and_lost(mine, head, table_id)
            ]
    return found


def _read_and_lost(mine: Candidate, head: Namespace, table_id: int) -> list[str]:
    """The columns of a table that I read and that are gone."""
    before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
    if before is None or after is None or table_id not in {*mine.changes.tables, *mine.changes.reads, *mine.changes.shown}:
        return []
    return [c.name for c in lost(before, after) if mine.read_words is None or fold(c.name) in mine.read_words]


def _unbound(mine: Candidate, met: Sequence[Meeting], head: Namespace) -> list[str]:
    """Columns and tables that my statements were bound to and that mean something else, or nothing, at the head."""
    gone: list[str] = []
    settled = bound_names(mine, met, head) | {m.table_id for m in met if m.mine in DEFINING}  # my own DDL has its ordinary errors
    for table_id in sorted({*mine.changes.tables, *mine.changes.reads}):
        before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
        if before is None or table_id in settled or (after is not None and before == after):
            continue
        if after is None:
            gone.append(f'table "{before.qualified}" was dropped')
        else:
            names = [c.name for c in lost(before, after) if mine.may_name(table_id, c.name)]
            gone.extend(f'column "{before.qualified}.{name}" was dropped, or fields inside of it' for name in names)
    for table_id in sorted(m.table_id for m in met if m.mine in DEFINING and m.table_id is not None):
        gone += [f'column "{mine.base.by_id[table_id].qualified}.{name}" was renamed or dropped' for name in _moved_under_me(mine, head, table_id)]
    return list(dict.fromkeys(gone))


def _moved_under_me(mine: Candidate, head: Namespace, table_id: int) -> list[str]:
    """Of a table that I alter and whose rows I change as well: the columns whose names mean something else at the head, where mine run again."""
    change, before, after = mine.changes.tables.get(table_id), mine.base.by_id.get(table_id), head.by_id.get(table_id)
    if change is None or before is None or after is None:
        return []
    if "overwrite" in change.kinds or not change.kinds & {"append", "delete", "update"}:
        return []
    there = {(fold(c.name), c.field_id) for c in after.columns}
    return [c.name for c in before.visible if (fold(c.name), c.field_id) not in there]


def conflict(
    mine: Candidate,
    meeting: Meeting,
    kind: ConflictKind | None = None,
    why: str | None = None,
    statement: str | None = None,
    accepted_at: str | None = None,
) -> Conflict:
    winner = meeting.winner
    effect = winner.effects.get(meeting.table_id) if meeting.table_id is not None else None
    by_rule: dict[Rule, tuple[ConflictKind, str]] = {
        Rule.GONE: ("table dropped", f"it was dropped by snapshot {winner.snapshot_id}"),
        Rule.ABANDON: ("superseded maintenance", f"it was dropped by snapshot {winner.snapshot_id} while its rows were being moved"),
        Rule.YIELD: ("changed first", f"snapshot {winner.snapshot_id} changed it first ({meeting.theirs}), and at level snapshot the first one wins"),
    }
    shown = f"its rows were shown to you, and snapshot {winner.snapshot_id} changed them ({meeting.theirs})"
    default_kind, explanation = by_rule.get(meeting.rule, ("read changed", shown))
    again = "the transaction was rolled back: run it again, it will see the new rows"
    return Conflict(
        kind=kind or default_kind,
        table=name_of(meeting.table_id, mine.base),
        winner_snapshot_id=winner.snapshot_id,
        winner_committed_at=winner.committed_at,
        winner_author=winner.author,
        winner_statement=winner.statement,
        statement=without_leading_comments(statement or mine.statement),
        explanation=why or explanation,
        what_to_do="create the table again, or leave it" if meeting.rule is Rule.GONE else again,
        rows=effect.rows_changed if effect else None,
        accepted_at="write serializable" if meeting.rule is Rule.YIELD else accepted_at,
    )


def name_of(table_id: int | None, names: Namespace) -> str:
    if table_id is None:
        return "(schemas)"
    table = names.by_id.get(table_id)
    return table.qualified if table else f"#{table_id}"
