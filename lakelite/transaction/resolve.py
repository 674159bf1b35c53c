"""Reconciling a transaction with the winners: all meetings as values, then one verdict. Pure; reads and writes nothing.

meetings(mine, winners)  every pair of something I did or read and something a winner did on the same table
verdict(…)               what the strongest rule of rules.py says, with the ledger's lines or the conflicts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast, get_args

from lakelite.contents import Namespace
from lakelite.errors import Conflict
from lakelite.language.tokens import without_leading_comments
from lakelite.model import Table, fold
from lakelite.transaction.binding import is_replaced, lost
from lakelite.transaction.changes import ChangeSet
from lakelite.transaction.rules import Mine, Rule, Theirs, rule


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
    """A snapshot that landed after my base. `namespace`: it created or dropped a schema or a table."""

    snapshot_id: int
    committed_at_us: int
    author: str | None
    statements: tuple[str, ...]
    operation: str
    blind: bool
    transaction_id: str
    effects: Mapping[int, Effect]
    namespace: bool

    @property
    def committed_at(self) -> str:
        return datetime.fromtimestamp(self.committed_at_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


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
    """A line of the ledger. `rung`: resolver.md section 3. `noticeable`: a user is told, since the outcome is another one than without it."""

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
    `conflict`: raise `conflicts`. `bound`: tables whose names stay those of the base."""

    outcome: Literal["rebase", "replay", "conflict"]
    resolutions: tuple[Resolution, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    moved: frozenset[int] = frozenset()
    bound: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a verdict needs to know of my transaction. `words`: the names in its statements, folded; None where they may name any column.

    `read_words`: of those, the names in what reads.
    `unaffected`: tables that I read, or whose rows I was shown, and whose delta is empty. `looked_at_own`: I was shown rows of a
    table that winners touched and that I had written before, so that only running again tells what they would be now.
    """

    changes: ChangeSet
    base: Namespace
    explicit: bool
    statement: str
    words: frozenset[str] | None = None
    read_words: frozenset[str] | None = None
    unaffected: frozenset[int] = frozenset()
    looked_at_own: bool = False

    def binds_anew(self, table_id: int) -> bool:
        """Whether I may as well meet another table under the name: DDL in autocommit runs again on the head, whatever that is."""
        return not self.explicit and self.changes.defines and table_id not in self.changes.reads


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
    did = _what_i_did(mine.changes)
    found: list[Meeting] = []
    for winner in winners:
        if mine.changes.defines and winner.namespace:
            found.append(Meeting(winner, None, "define", "schema", Rule.STANDS if fits else Rule.REPLAY))
        for table_id, effect in winner.effects.items():
            for one in did.get(table_id, ()):
                for theirs in sorted(effect.kinds & set(get_args(Theirs))):
                    kind = cast(Theirs, theirs)
                    is_same = one in ("read", "shown") and table_id in mine.unaffected and kind not in ("schema", "drop")
                    met = Rule.STANDS if is_same else rule(one, kind, blind_winner=winner.blind)
                    met = Rule.REPLAY if met is Rule.GONE and mine.binds_anew(table_id) else met
                    met = Rule.REPLAY if met is Rule.STANDS and kind in ("extend", "shrink") and _is_replaced(mine, head, table_id) else met
                    found.append(Meeting(winner, table_id, one, kind, met))
    return found


def _what_i_did(mine: ChangeSet) -> dict[int, list[Mine]]:
    did: dict[int, list[Mine]] = {}
    for table_id, change in mine.tables.items():
        if not change.created:
            kinds: set[Mine] = {cast(Mine, k if k in get_args(Mine) else "define") for k in change.kinds}
            if mine.defines and "overwrite" in kinds:  # it may be a CREATE OR REPLACE, and DDL always runs again
                kinds.add("define")
            did[table_id] = sorted(kinds)
    for table_id in mine.reads:
        did.setdefault(table_id, []).append("read")
    for table_id in mine.shown:
        did.setdefault(table_id, []).append("shown")
    return did


def verdict(mine: Candidate, winners: Sequence[Winner], head: Namespace) -> Verdict:
    """The strongest rule decides for the whole commit: it lands with every table resolved, or not at all."""
    met = meetings(mine, winners, head)
    strongest = max((m.rule for m in met), key=lambda r: r.value, default=Rule.STANDS)
    if strongest is Rule.COMPARE and mine.looked_at_own:
        strongest = Rule.REPLAY
    conflicts = [_conflict(mine, m) for m in met if m.rule in (Rule.GONE, Rule.ABANDON)]
    conflicts += [_conflict(mine, m, "schema changed", why) for m, why in _missing(mine, met, strongest, head)]
    if strongest is Rule.REPLAY:
        conflicts += _no_replay(mine, met, head)
    if conflicts:
        return Verdict("conflict", conflicts=tuple(dict.fromkeys(conflicts)))
    lines = _ledger(met, mine.base)
    if strongest is Rule.REPLAY:
        return Verdict("replay", lines, bound=_bound(mine, met, head))
    moved = frozenset(m.table_id for m in met if m.table_id is not None and m.rule in (Rule.REMAP, Rule.REEVALUATE))
    return Verdict("rebase", lines, moved=moved, bound=_bound(mine, met, head))


def differing(mine: Candidate, winners: Sequence[Winner], head: Namespace, shown: Sequence[tuple[str, frozenset[int]]]) -> tuple[Conflict, ...]:
    """The conflicts for queries (text, tables that they read) that would give other rows now: one for each winner that may be why."""
    met = meetings(mine, winners, head)
    found: list[Conflict] = []
    for text, tables in shown:
        reasons = [m for m in met if m.rule is Rule.COMPARE and m.table_id in tables] or met[:1]
        found += [_conflict(mine, m, "read changed", statement=text) for m in reasons]
    return tuple(dict.fromkeys(found))


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
    words = {
        Rule.STANDS: f"{meeting.mine} on {table} stands beside the {meeting.theirs} of snapshot {snapshot}",
        Rule.REMAP: f"{meeting.mine} on {table} was carried over the {meeting.theirs} of snapshot {snapshot}",
        Rule.REEVALUATE: f"{meeting.mine} on {table} was evaluated again on the rows that snapshot {snapshot} added or changed",
        Rule.COMPARE: f"the rows of {table} that were shown are the same after the {meeting.theirs} of snapshot {snapshot}",
        Rule.REPLAY: f"ran again on {table} as snapshot {snapshot} left it",
    }
    return Resolution(snapshot, meeting.table_id, table, _rung(meeting), rows, words[meeting.rule], meeting.rule is Rule.REPLAY)


def _rung(meeting: Meeting) -> int:
    """The rung of the ladder (resolver.md, section 3). An append has nothing to remap or to re-evaluate, yet stands only by that rung."""
    if meeting.rule is Rule.STANDS and meeting.mine == "append":
        return {"delete": 2, "compaction": 2, "update": 3}.get(meeting.theirs, 1)
    return meeting.rule.rung


def _is_replaced(mine: Candidate, head: Namespace, table_id: int) -> bool:
    before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
    return before is not None and after is not None and is_replaced(before, after)


def _bound(mine: Candidate, met: Sequence[Meeting], head: Namespace) -> frozenset[int]:
    """The tables for which the names of my base are still right: nobody redefined them, and I do not either."""
    here = {m.table_id for m in met if m.table_id is not None and m.table_id in head.by_id and m.table_id in mine.base.by_id}
    redefined = {m.table_id for m in met if m.mine == "define" or m.theirs in ("schema", "drop")}
    return frozenset(k for k in here - redefined if not _is_replaced(mine, head, k))


def _read_and_lost(mine: Candidate, head: Namespace, table_id: int) -> list[str]:
    """The columns of a table that I read and that are gone."""
    before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
    if before is None or after is None or table_id not in {*mine.changes.tables, *mine.changes.reads, *mine.changes.shown}:
        return []
    return [c.name for c in lost(before, after) if mine.read_words is None or fold(c.name) in mine.read_words]


def _missing(mine: Candidate, met: Sequence[Meeting], strongest: Rule, head: Namespace) -> list[tuple[Meeting, str]]:
    """Columns that are gone and would have to be read again: rows of their tables are others now, or all has to run again."""
    found: list[tuple[Meeting, str]] = []
    for table_id in sorted(_bound(mine, met, head)):
        here = [m for m in met if m.table_id == table_id]
        if strongest is Rule.REPLAY or max(m.rule.value for m in here) >= Rule.REEVALUATE.value:
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
    settled = _bound(mine, met, head) | {m.table_id for m in met if m.mine == "define"}  # my own DDL has its ordinary errors
    for table_id in sorted({*mine.changes.tables, *mine.changes.reads}):
        before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
        if before is None or table_id in settled or (after is not None and before == after):
            continue
        if after is None:
            gone.append(f'table "{before.qualified}" was dropped')
        else:
            lost = [name for name in _lost_columns(before, after) if mine.words is None or fold(name) in mine.words]
            gone.extend(f'column "{before.qualified}.{name}" was dropped' for name in lost)
    return gone


def _lost_columns(before: Table, after: Table) -> list[str]:
    there = {fold(c.name) for c in after.columns}
    return [c.name for c in before.visible if fold(c.name) not in there]


def _conflict(mine: Candidate, meeting: Meeting, kind: str | None = None, why: str | None = None, statement: str | None = None) -> Conflict:
    winner = meeting.winner
    effect = winner.effects.get(meeting.table_id) if meeting.table_id is not None else None
    default_kind, explanation = {
        Rule.GONE: ("table dropped", f"it was dropped by snapshot {winner.snapshot_id}"),
        Rule.ABANDON: ("superseded maintenance", f"snapshot {winner.snapshot_id} changed the rows that were being moved"),
    }.get(meeting.rule, ("read changed", f"its rows were shown to you, and snapshot {winner.snapshot_id} changed them ({meeting.theirs})"))
    again = "the transaction was rolled back: run it again, it will see the new rows"
    is_only_read = statement is not None and meeting.table_id not in mine.changes.tables
    return Conflict(
        kind=kind or default_kind,
        table=_name(meeting.table_id, mine.base),
        winner_snapshot_id=winner.snapshot_id,
        winner_committed_at=winner.committed_at,
        winner_author=winner.author,
        winner_statement="; ".join(winner.statements) or winner.operation,
        statement=without_leading_comments(statement or mine.statement),
        explanation=why or explanation,
        what_to_do="create the table again, or leave it" if meeting.rule is Rule.GONE else again,
        rows=effect.rows_changed if effect else None,
        accepted_at="snapshot" if is_only_read else None,
    )


def _name(table_id: int | None, names: Namespace) -> str:
    if table_id is None:
        return "(schemas)"
    table = names.by_id.get(table_id)
    return table.qualified if table else f"#{table_id}"
