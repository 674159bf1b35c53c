"""Where a transaction and the winners met: the nouns, and every meeting with its rule of rules.py. Pure; reads and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, cast, get_args

from lakelite.contents import Namespace
from lakelite.model import Isolation, fold
from lakelite.records import dataclass
from lakelite.transaction.binding import demands_more, fills_late, is_replaced, lost
from lakelite.transaction.changes import ChangeSet
from lakelite.transaction.rules import Mine, Rule, Theirs, for_keys, redefining, rule

_THEIRS = frozenset(get_args(Theirs))


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
        return datetime.fromtimestamp(self.committed_at_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")

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


DEFINING = ("define", "found")


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


def _is_replaced(mine: Candidate, head: Namespace, table_id: int) -> bool:
    before, after = mine.base.by_id.get(table_id), head.by_id.get(table_id)
    return before is not None and after is not None and is_replaced(before, after)


def bound_names(mine: Candidate, met: Sequence[Meeting], head: Namespace) -> frozenset[int]:
    """The tables for which the names of my base are still right: nobody dropped what they mean, and I do not redefine them myself."""
    here = {m.table_id for m in met if m.table_id is not None}
    defined = {m.table_id for m in met if m.mine in DEFINING}
    there = (mine.bound | here) & head.by_id.keys() & mine.base.by_id.keys()
    return frozenset(k for k in there - defined if _is_right(mine, [m for m in met if m.table_id == k], head, k))


def _is_right(mine: Candidate, met: Sequence[Meeting], head: Namespace, table_id: int) -> bool:
    base, now = mine.base.by_id[table_id], head.by_id[table_id]
    if base == now:
        return True
    is_redefined = any(m.theirs in redefining(mine.isolation) for m in met)
    return not demands_more(base, now) and not (is_redefined and (lost(base, now) or fills_late(base, now)))
