"""Reconciling a transaction with the winners it met: one verdict, with the ledger's lines or the conflicts. Pure; reads and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from lakelite.contents import Namespace
from lakelite.errors import Conflict
from lakelite.records import dataclass
from lakelite.transaction.binding import lost
from lakelite.transaction.conflicts import against_replay, conflict, missing, name_of
from lakelite.transaction.meetings import Candidate, Meeting, Winner, bound_names, meetings
from lakelite.transaction.rules import Rule

_WORDS = {
    Rule.STANDS: "{mine} on {table} stands beside the {theirs} of snapshot {snapshot}",
    Rule.REMAP: "{mine} on {table} was carried over the {theirs} of snapshot {snapshot}",
    Rule.REEVALUATE: "{mine} on {table} was evaluated again on the rows that snapshot {snapshot} added or changed",
    Rule.COMPARE: "the rows of {table} that were shown are the same after the {theirs} of snapshot {snapshot}",
    Rule.REPLAY: "ran again on {table} as snapshot {snapshot} left it",
    Rule.YIELD: "ran again on {table}, which snapshot {snapshot} had changed first",
}
_BY_ROWS = ("delete", "update", "read", "shown")  # an overwrite does the same to whatever is there; what it selects is read


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a commit was reconciled with one winner on one table: a line of the ledger (`lake.resolutions`).

    `winner_snapshot_id`: the version that had landed before. `table_id`: None where it is about names, not rows. `table`: its name.
    `rung`: 1 both stand, 2 positions of rows were carried over, 3 statements were evaluated again on the rows that the winner
    changed, 4 compared or run again. `row_count`: of the winner's rows those that mattered, or all that it changed. `explanation`: a sentence.
    `noticeable`: a user is told (cursor.messages), since the outcome is another one than without the winner.
    """

    winner_snapshot_id: int
    table_id: int | None
    table: str
    rung: int
    row_count: int
    explanation: str
    noticeable: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """`rebase`: move what was done onto the head (`rebase.py`), the tables in `moved` row by row. `replay`: run again on the head.
    `supersede`: the rows that were appended are not there. `conflict`: raise `conflicts`. `bound`: tables whose names stay those of the base.

    `evaluated`: those of `moved` whose new rows matter as well.
    """

    outcome: Literal["rebase", "replay", "supersede", "conflict"]
    resolutions: tuple[Resolution, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    moved: frozenset[int] = frozenset()
    evaluated: frozenset[int] = frozenset()
    bound: frozenset[int] = frozenset()


def verdict(
    mine: Candidate, winners: Sequence[Winner], head: Namespace, *, contested: frozenset[int] = frozenset(), must_run_again: bool = False
) -> Verdict:
    """The strongest rule decides for the whole commit: it lands with every table resolved, or not at all.

    What only a try has shown: `contested`, tables of which both of us changed a row, at `snapshot`; `must_run_again`, that moving was not enough.
    """
    met = [replace(m, rule=Rule.YIELD) if m.table_id in contested and m.rule is Rule.REMAP else m for m in meetings(mine, winners, head)]
    final = (Rule.YIELD, Rule.ABANDON, Rule.GONE) if mine.explicit else (Rule.ABANDON, Rule.GONE)
    conflicts = [conflict(mine, m) for m in met if m.rule in final]
    if not conflicts and (by := _superseding(mine, winners)) is not None:
        return Verdict("supersede", _superseded(met, mine.base, by))
    strongest = max((m.rule for m in met), key=lambda r: r.value, default=Rule.STANDS)
    if must_run_again or (strongest is Rule.COMPARE and mine.looked_at_own) or (winners and mine.promised):
        strongest = max(strongest, Rule.REPLAY, key=lambda r: r.value)
    runs_again = strongest in (Rule.REPLAY, Rule.YIELD)
    if runs_again and mine.explicit and mine.isolation == "snapshot":  # on the head it would see, and change, what winners left
        conflicts += [conflict(mine, replace(m, rule=Rule.YIELD)) for m in met if m.mine in _BY_ROWS and m.theirs != "compaction"]
    conflicts += [conflict(mine, m, "schema changed", why) for m, why in missing(mine, met, head, runs_again=runs_again)]
    if runs_again:
        conflicts += against_replay(mine, met or [Meeting(winners[-1], None, "shown", "append", Rule.COMPARE)], head)
    if conflicts:
        return Verdict("conflict", conflicts=tuple(dict.fromkeys(conflicts)))
    bound = bound_names(mine, met, head)
    lines = tuple(_told_of_lost(mine, line, met, head) if line.table_id in bound else line for line in _ledger(met, mine.base))
    if runs_again:
        return Verdict("replay", lines, bound=bound)
    return Verdict("rebase", lines, moved=_tables(met, Rule.REMAP, Rule.REEVALUATE), evaluated=_tables(met, Rule.REEVALUATE), bound=bound)


def _tables(met: Sequence[Meeting], *rules: Rule) -> frozenset[int]:
    return frozenset(m.table_id for m in met if m.table_id is not None and m.rule in rules)


def _told_of_lost(mine: Candidate, line: Resolution, met: Sequence[Meeting], head: Namespace) -> Resolution:
    """The line, with what became of values that I wrote to a column that its winner dropped."""
    here = [m for m in met if m.table_id == line.table_id and m.winner.snapshot_id == line.winner_snapshot_id]
    writes = any(m.theirs == "shrink" and m.mine in ("append", "update", "overwrite") for m in here)
    if not writes or line.table_id is None:
        return line
    gone = [c.name for c in lost(mine.base.by_id[line.table_id], head.by_id[line.table_id]) if mine.may_name(line.table_id, c.name)]
    if not gone:
        return line
    text = f"snapshot {line.winner_snapshot_id} dropped {', '.join(gone)}: what was written to it is in no table"
    return replace(line, explanation=text, noticeable=True)


def _superseding(mine: Candidate, winners: Sequence[Winner]) -> int | None:
    """The snapshot that overwrote, without having looked, the one table to which I blindly append: I am taken as the earlier one."""
    if not (mine.may_be_superseded and mine.changes.blind and mine.changes.only_appends and len(mine.changes.tables) == 1):
        return None
    (table_id,) = mine.changes.tables
    found = [w.snapshot_id for w in winners if table_id in w.effects and "supersede" in w.effects[table_id].kinds]
    return found[-1] if found else None


def _superseded(met: Sequence[Meeting], names: Namespace, by: int) -> tuple[Resolution, ...]:
    lines = _ledger([m for m in met if m.winner.snapshot_id == by], names)
    return tuple(replace(line, rung=1, explanation=f"rows superseded by the overwrite in snapshot {by}", noticeable=True) for line in lines)


def _ledger(met: Sequence[Meeting], names: Namespace) -> tuple[Resolution, ...]:
    """One line per winner and table: the strongest rule that was needed there."""
    strongest: dict[tuple[int, int | None], Meeting] = {}
    for meeting in met:
        key = (meeting.winner.snapshot_id, meeting.table_id)
        if key not in strongest or meeting.rule.value > strongest[key].rule.value:
            strongest[key] = meeting
    return tuple(_line(m, names) for m in strongest.values())


def _line(meeting: Meeting, names: Namespace) -> Resolution:
    table = name_of(meeting.table_id, names)
    snapshot = meeting.winner.snapshot_id
    effect = meeting.winner.effects.get(meeting.table_id) if meeting.table_id is not None else None
    rows = effect.rows_added + effect.rows_removed if effect else 0
    words = _WORDS[meeting.rule].format(mine=meeting.mine, table=table, theirs=meeting.theirs, snapshot=snapshot)
    return Resolution(snapshot, meeting.table_id, table, _rung(meeting), rows, words, meeting.rule in (Rule.REPLAY, Rule.YIELD))


def run_again(line: Resolution) -> Resolution:
    """The line of a transaction that ran again as a whole, also where its own rule would have been enough."""
    if line.rung >= Rule.REPLAY.rung:
        return line
    words = _WORDS[Rule.REPLAY].format(table=line.table, snapshot=line.winner_snapshot_id)
    return replace(line, rung=Rule.REPLAY.rung, explanation=line.explanation if line.noticeable else words)


def _rung(meeting: Meeting) -> int:
    """The rung of the ladder (resolver.md, section 3). An append has nothing to remap or to re-evaluate, yet stands only by that rung."""
    if meeting.rule is Rule.STANDS and meeting.mine == "append":
        return {"delete": 2, "compaction": 2, "update": 3}.get(meeting.theirs, 1)
    return meeting.rule.rung
