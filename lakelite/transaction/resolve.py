"""Reconciling a transaction with the winners: all meetings as values, then one verdict. Pure; reads and writes nothing.

meetings(mine, winners)  every pair of something I did or read and something a winner did on the same table
verdict(…)               what the strongest rule of rules.py says, with the ledger's lines or the conflicts
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from lakelite.contents import Namespace
from lakelite.errors import Conflict
from lakelite.language.tokens import without_leading_comments
from lakelite.model import Isolation, fold
from lakelite.transaction.binding import demands_more, fills_late, is_replaced, lost
from lakelite.transaction.changes import ChangeSet
from lakelite.transaction.record import Differing
from lakelite.transaction.rules import Mine, Rule, Theirs, for_keys, redefining, rule

_THEIRS = frozenset(get_args(Theirs))
_WORDS = {
    Rule.STANDS: "{mine} on {table} stands beside the {theirs} of snapshot {snapshot}",
    Rule.REMAP: "{mine} on {table} was carried over the {theirs} of snapshot {snapshot}",
    Rule.REEVALUATE: "{mine} on {table} was evaluated again on the rows that snapshot {snapshot} added or changed",
    Rule.COMPARE: "the rows of {table} that were shown are the same after the {theirs} of snapshot {snapshot}",
    Rule.REPLAY: "ran again on {table} as snapshot {snapshot} left it",
    Rule.YIELD: "ran again on {table}, which snapshot {snapshot} had changed first",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a winner did to one table."""

    kinds: frozenset[str]
    rows_added: int
    rows_removed: int

    @property
    def rows_changed(self) -> int:
        """An updated row was removed and added: it counts once."""
        return max(self.rows_added, self.rows_removed) if "update" in self.kinds else self.rows_added + self.rows_removed


@dataclass(frozen=True, slots=True)
class Winner:
    """A snapshot that landed after my base. `recorded`: its statements, as the catalog keeps them, since most winners' are never asked for.
    `namespace`: it created or dropped a schema or a table.
    """

    snapshot_id: int
    parent_id: int
    committed_at_us: int
    author: str | None
    recorded: str
    operation: str
    blind: bool
    transaction_id: str
    effects: Mapping[int, Effect]
    namespace: bool

    @classmethod
    def of_row(cls, row: Sequence[Any], effects: Mapping[int, Effect], namespace: bool) -> Winner:
        """From a row of the catalog's query `winners`."""
        return cls(row[0], row[1], row[2], row[3], row[4], row[5], bool(row[6]), row[7], effects, namespace)

    @property
    def committed_at(self) -> str:
        return datetime.fromtimestamp(self.committed_at_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

    @property
    def statement(self) -> str:
        """What it ran, or what kind of operation it was."""
        return "; ".join(json.loads(self.recorded)) or self.operation


@dataclass(frozen=True, slots=True)
class Meeting:
    """Something of mine met something of a winner on a table (None: the namespace)."""

    winner: Winner
    table_id: int | None
    mine: Mine
    theirs: Theirs
    rule: Rule


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


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a verdict needs to know of my transaction. `words`: the names in its statements, folded; None where they may name any column.

    `read_words`: of those, the names in what reads. `placed`: tables into which I wrote without naming columns.
    `unaffected`: tables that I read, or whose rows I was shown, and whose delta is empty. `looked_at_own`: I was shown rows of a
    table that winners touched and that I had written before, so that only running again tells what they would be now.
    `promised`: I was told of errors, or of statements that I undid, which would have to come out the same (at `serializable`).
    `may_be_superseded`: the level and the setting overwrite_append allow it. `bound`: tables that are shown under the names of an
    older base than mine by now. `undone`: tables of statements that I took back, and that would have to run again.
    `keyed`: tables with keys to which I gave rows with keys of their own; True where that is all I did to keys there.
    """

    changes: ChangeSet
    base: Namespace
    explicit: bool
    statement: str
    isolation: Isolation
    words: frozenset[str] | None = None
    read_words: frozenset[str] | None = None
    unaffected: frozenset[int] = frozenset()
    looked_at_own: bool = False
    promised: bool = False
    may_be_superseded: bool = False
    bound: frozenset[int] = frozenset()
    undone: frozenset[int] = frozenset()
    keyed: Mapping[int, bool] = field(default_factory=dict)
    placed: frozenset[int] = frozenset()

    def may_name(self, table_id: int, column: str) -> bool:
        """Whether a statement may mean this column of the table."""
        return self.words is None or table_id in self.placed or fold(column) in self.words

    def binds_anew(self, table_id: int) -> bool:
        """Whether I may as well meet another table under the name: DDL in autocommit runs again on the head, whatever that is."""
        is_read = table_id in self.changes.reads and self.changes.merged is None  # what was read is what a MERGE BRANCH compares
        return not self.explicit and self.changes.defines and not is_read


def _fits(mine: ChangeSet, head: Namespace) -> bool:
    """Whether my CREATEs and DROPs of names come out the same on the head: the names are free, the schemas are there, or empty."""
    if mine.conditional:
        return False
    schemas = {s.schema_id: s for s in head.schemas.values()} | dict(mine.schemas_created)
    made = [c.table for c in mine.tables.values() if (c.created or "rename" in c.kinds) and not c.dropped]
    there = ((head.find(t.schema_name, t.name), t) for t in made)
    free = all((found is None or found.table_id == t.table_id) and t.schema_id in schemas for found, t in there)
    new_schemas = all(fold(s.name) not in head.schemas for s in mine.schemas_created.values())
    known = {k for k, c in mine.tables.items() if c.dropped}
    emptied = all(k in schemas for k in mine.schemas_dropped) and all(
        t.schema_id not in mine.schemas_dropped or t.table_id in known for t in head.tables.values()
    )
    return free and new_schemas and emptied


def meetings(mine: Candidate, winners: Iterable[Winner], head: Namespace) -> list[Meeting]:
    """Every meeting, in the order of the winners."""
    fits = _fits(mine.changes, head)
    did = _what_i_did(mine)
    found: list[Meeting] = []
    for winner in winners:
        if mine.changes.defines and winner.namespace:
            found.append(Meeting(winner, None, "define", "schema", Rule.STANDS if fits else Rule.REPLAY))
        for table_id, effect in winner.effects.items():
            for one in did.get(table_id, ()):
                for theirs in sorted(effect.kinds & _THEIRS):
                    kind = cast(Theirs, theirs)
                    is_same = one in ("read", "shown") and table_id in mine.unaffected and kind not in redefining(mine.isolation)
                    met = Rule.STANDS if is_same else rule(one, kind, mine.isolation, blind_winner=winner.blind)
                    met = Rule.REPLAY if met is Rule.GONE and mine.binds_anew(table_id) else met
                    counts = one not in ("read", "shown") or mine.isolation != "snapshot"
                    is_other = counts and kind in ("extend", "shrink") and _is_replaced(mine, head, table_id)
                    met = Rule.REPLAY if met is Rule.STANDS and is_other else met
                    met = for_keys(met, one, kind, mine.keyed.get(table_id), mine.isolation)
                    found.append(Meeting(winner, table_id, one, kind, met))
    return found


def _what_i_did(candidate: Candidate) -> dict[int, list[Mine]]:
    mine = candidate.changes
    did: dict[int, list[Mine]] = {}
    for table_id, change in mine.tables.items():
        if not change.created:
            kinds: set[Mine] = {cast(Mine, k if k in get_args(Mine) else "define") for k in change.kinds - {"supersede"}}
            if mine.defines and "overwrite" in kinds:  # it may be a CREATE OR REPLACE, and DDL always runs again
                kinds.add("define")
            did[table_id] = sorted(kinds)
    for table_id in mine.found:
        did.setdefault(table_id, []).append("found")
    for table_id in mine.reads:
        did.setdefault(table_id, []).append("read")
    for table_id in mine.shown.keys() | candidate.undone:
        did.setdefault(table_id, []).append("shown")
    return did


def verdict(
    mine: Candidate, winners: Sequence[Winner], head: Namespace, *, contested: frozenset[int] = frozenset(), must_run_again: bool = False
) -> Verdict:
    """The strongest rule decides for the whole commit: it lands with every table resolved, or not at all.

    What only a try has shown: `contested`, tables of which both of us changed a row, at `snapshot`; `must_run_again`, that moving was not enough.
    """
    met = [replace(m, rule=Rule.YIELD) if m.table_id in contested and m.rule is Rule.REMAP else m for m in meetings(mine, winners, head)]
    final = (Rule.YIELD, Rule.ABANDON, Rule.GONE) if mine.explicit else (Rule.ABANDON, Rule.GONE)
    conflicts = [_conflict(mine, m) for m in met if m.rule in final]
    if not conflicts and (by := _superseding(mine, winners)) is not None:
        return Verdict("supersede", _superseded(met, mine.base, by))
    strongest = max((m.rule for m in met), key=lambda r: r.value, default=Rule.STANDS)
    if must_run_again or (strongest is Rule.COMPARE and mine.looked_at_own) or (winners and mine.promised):
        strongest = max(strongest, Rule.REPLAY, key=lambda r: r.value)
    runs_again = strongest in (Rule.REPLAY, Rule.YIELD)
    if runs_again and mine.explicit and mine.isolation == "snapshot":  # on the head it would see, and change, what winners left
        conflicts += [_conflict(mine, replace(m, rule=Rule.YIELD)) for m in met if m.mine in _BY_ROWS and m.theirs != "compaction"]
    conflicts += [_conflict(mine, m, "schema changed", why) for m, why in _missing(mine, met, head, runs_again=runs_again)]
    if runs_again:
        conflicts += _no_replay(mine, met or [Meeting(winners[-1], None, "shown", "append", Rule.COMPARE)], head)
    if conflicts:
        return Verdict("conflict", conflicts=tuple(dict.fromkeys(conflicts)))
    bound = _bound(mine, met, head)
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
    return _conflict(mine, Meeting(winner, table_id, "shown", "update", Rule.COMPARE), one.kind, what, one.text, accepted_at)


def _ledger(met: Sequence[Meeting], names: Namespace) -> tuple[Resolution, ...]:
    """One line per winner and table: the strongest rule that was needed there."""
    strongest: dict[tuple[int, int | None], Meeting] = {}
    for meeting in met:
        key = (meeting.winner.snapshot_id, meeting.table_id)
        if key not in strongest or meeting.rule.value > strongest[key].rule.value:
            strongest[key] = meeting
    return tuple(_line(m, names) for m in strongest.values())


def _line(meeting: Meeting, names: Namespace) -> Resolution:
    table = _name(meeting.table_id, names)
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


def _is_replaced(mine: Candidate, head: Namespace, table_id: int) -> bool:
    before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
    return before is not None and after is not None and is_replaced(before, after)


_DEFINING = ("define", "found")
_BY_ROWS = ("delete", "update", "read", "shown")  # an overwrite does the same to whatever is there; what it selects is read


def _bound(mine: Candidate, met: Sequence[Meeting], head: Namespace) -> frozenset[int]:
    """The tables for which the names of my base are still right: nobody dropped what they mean, and I do not redefine them myself."""
    here = {m.table_id for m in met if m.table_id is not None}
    defined = {m.table_id for m in met if m.mine in _DEFINING}
    there = (mine.bound | here) & head.by_id.keys() & mine.base.by_id.keys()
    return frozenset(k for k in there - defined if _is_right(mine, [m for m in met if m.table_id == k], head, k))


def _is_right(mine: Candidate, met: Sequence[Meeting], head: Namespace, table_id: int) -> bool:
    base, now = mine.base.by_id[table_id], head.by_id[table_id]
    if base == now:
        return True
    is_redefined = any(m.theirs in redefining(mine.isolation) for m in met)
    return not demands_more(base, now) and not (is_redefined and (lost(base, now) or fills_late(base, now)))


def _read_and_lost(mine: Candidate, head: Namespace, table_id: int) -> list[str]:
    """The columns of a table that I read and that are gone."""
    before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
    if before is None or after is None or table_id not in {*mine.changes.tables, *mine.changes.reads, *mine.changes.shown}:
        return []
    return [c.name for c in lost(before, after) if mine.read_words is None or fold(c.name) in mine.read_words]


def _missing(mine: Candidate, met: Sequence[Meeting], head: Namespace, *, runs_again: bool) -> list[tuple[Meeting, str]]:
    """Columns that are gone and would have to be read again: rows of their tables are others now, or all has to run again."""
    found: list[tuple[Meeting, str]] = []
    for table_id in sorted(_bound(mine, met, head)):
        here = [m for m in met if m.table_id == table_id] or list(met[:1])
        if here and (runs_again or max(m.rule.value for m in here) >= Rule.REEVALUATE.value):
            reason = next((m for m in here if m.theirs == "shrink"), here[0])
            found += [
                (reason, f'column "{name}" was dropped by snapshot {reason.winner.snapshot_id}') for name in _read_and_lost(mine, head, table_id)
            ]
    return found


def _no_replay(mine: Candidate, met: Sequence[Meeting], head: Namespace) -> list[Conflict]:
    """Why a replay would not be exact, if so."""
    reason = max(met, key=lambda m: m.rule.value)
    if not mine.explicit:  # it runs again as it is, with its ordinary error
        return []
    found = [_conflict(mine, reason, "schema changed", why) for why in _unbound(mine, met, head)]
    if mine.changes.external is not None:
        found.append(_conflict(mine, reason, "external data", "a statement read files or DataFrames, so it cannot be repeated exactly as it was"))
    return found


def _unbound(mine: Candidate, met: Sequence[Meeting], head: Namespace) -> list[str]:
    """Columns and tables that my statements were bound to and that mean something else, or nothing, at the head."""
    gone: list[str] = []
    settled = _bound(mine, met, head) | {m.table_id for m in met if m.mine in _DEFINING}  # my own DDL has its ordinary errors
    for table_id in sorted({*mine.changes.tables, *mine.changes.reads}):
        before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
        if before is None or table_id in settled or (after is not None and before == after):
            continue
        if after is None:
            gone.append(f'table "{before.qualified}" was dropped')
        else:
            names = [c.name for c in lost(before, after) if mine.may_name(table_id, c.name)]
            gone.extend(f'column "{before.qualified}.{name}" was dropped, or fields inside of it' for name in names)
    for table_id in sorted(m.table_id for m in met if m.mine in _DEFINING and m.table_id is not None):
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


def _conflict(
    mine: Candidate, meeting: Meeting, kind: str | None = None, why: str | None = None, statement: str | None = None, accepted_at: str | None = None
) -> Conflict:
    winner = meeting.winner
    effect = winner.effects.get(meeting.table_id) if meeting.table_id is not None else None
    default_kind, explanation = {
        Rule.GONE: ("table dropped", f"it was dropped by snapshot {winner.snapshot_id}"),
        Rule.ABANDON: ("superseded maintenance", f"it was dropped by snapshot {winner.snapshot_id} while its rows were being moved"),
        Rule.YIELD: ("changed first", f"snapshot {winner.snapshot_id} changed it first ({meeting.theirs}), and at level snapshot the first one wins"),
    }.get(meeting.rule, ("read changed", f"its rows were shown to you, and snapshot {winner.snapshot_id} changed them ({meeting.theirs})"))
    again = "the transaction was rolled back: run it again, it will see the new rows"
    return Conflict(
        kind=kind or default_kind,
        table=_name(meeting.table_id, mine.base),
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


def _name(table_id: int | None, names: Namespace) -> str:
    if table_id is None:
        return "(schemas)"
    table = names.by_id.get(table_id)
    return table.qualified if table else f"#{table_id}"
