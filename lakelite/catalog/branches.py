"""Branches and tags in the catalog: made, dropped, found; where two branches met last; and what VACUUM has to keep of them.

A branch is a line of snapshots. Its first one holds what its base held: the same rows of the catalog once more, and no data. Names
are looked up when a statement runs: they are no part of a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelite.catalog.store import Catalog, Writer
from lakelite.model import Branch

_COPIED = (
    "schema_lives", "table_lives", "table_names", "columns", "constraints", "views", "comments", "table_options", "partition_keys",
    "fragment_lives", "deletion_vectors",
)  # fmt: skip
NONE_KEPT = 2**62
"""The floor of a branch of which nothing is kept."""


def find(catalog: Catalog, name: str) -> Branch | None:
    """The living branch of a name, in any case."""
    found = catalog.rows("branch", name=name)
    return Branch(*found[0]) if found else None


def of_snapshot(catalog: Catalog, snapshot_id: int) -> Branch | None:
    """The branch that a snapshot is of; None: there is no such snapshot."""
    found = catalog.rows("branch_of", snapshot=snapshot_id)
    return Branch(*found[0]) if found else None


def names(catalog: Catalog) -> list[str]:
    """Of the living ones."""
    return [row[0] for row in catalog.rows("look_branches")]


def tags(catalog: Catalog) -> dict[str, int]:
    """The snapshot of each tag."""
    return {row[0]: row[1] for row in catalog.rows("look_tags")}


def tagged(catalog: Catalog, name: str) -> int | None:
    found = catalog.rows("tag", name=name)
    return int(found[0][0]) if found else None


def create(writer: Writer, name: str, base: int, snapshot: Mapping[str, Any]) -> int:
    """Makes a branch that begins with what `base` holds; its first snapshot. `snapshot`: who made it and how (`add_snapshot`)."""
    branch_id, first = writer.reserve("branch", 1), writer.reserve("snapshot", 1)
    writer.run("add_snapshot", snapshot=first, parent=base, merged=None, branch=branch_id, base=base, **snapshot)
    writer.run("add_branch", branch=branch_id, name=name, base=base, snapshot=first)
    for table in _COPIED:
        writer.run(f"copy_{table}", branch=branch_id, base=base, snapshot=first)
    return first


# Where two branches met.


@dataclass(frozen=True, eq=False)
class Lineage:
    """Every kept snapshot with its parent, the one that it merged, and its branch."""

    parents: Mapping[int, tuple[int | None, int | None, int]]
    _known: dict[int, set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, catalog: Catalog) -> Lineage:
        return cls({row[0]: (row[1], row[2], row[3]) for row in catalog.rows("lineage")})

    def ancestors(self, snapshot: int) -> set[int]:
        """The snapshot and all that led to it, by whatever way."""
        if snapshot in self._known:
            return self._known[snapshot]
        found = self._known[snapshot] = set()
        open_ = [snapshot]
        while open_:
            one = open_.pop()
            if one not in found and one in self.parents:
                found.add(one)
                open_ += [p for p in self.parents[one][:2] if p is not None]
        return found

    def line(self, snapshot: int) -> Iterator[int]:
        """The snapshot, its parent, and so on; what was merged is not followed."""
        one: int | None = snapshot
        while one is not None and one in self.parents:
            yield one
            one = self.parents[one][0]

    def branch(self, snapshot: int) -> int:
        return self.parents[snapshot][2]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Of a branch `theirs` that is merged. `bases`: the newest snapshot that led to both, and others, where none of them led to another
    (merges that crossed). `stretches`: the runs of snapshots, each on one branch, (after, until], on the ways from there to theirs:
    whatever differs between a base and theirs has changed in one of them."""

    bases: tuple[int, ...]
    stretches: tuple[tuple[int, int], ...]


def meeting(lineage: Lineage, theirs: int, ours: int) -> Meeting | None:
    """Where two snapshots met last; None: their histories have expired."""
    bases: list[int] = []
    for one in sorted(lineage.ancestors(theirs) & lineage.ancestors(ours), reverse=True):
        if not any(one in lineage.ancestors(base) for base in bases):
            bases.append(one)
    stretches: dict[tuple[int, int], None] = {}
    for base in bases:
        before = set(lineage.line(base))
        fork = next((one for one in lineage.line(theirs) if one in before), None)
        if fork is None:
            return None
        stretches.update(dict.fromkeys((*_stretches(lineage, fork, theirs), *_stretches(lineage, fork, base))))
    return Meeting(tuple(bases), tuple(stretches)) if bases else None


def _stretches(lineage: Lineage, fork: int, end: int) -> Iterator[tuple[int, int]]:
    """From an ancestor on the line of `end` to that: the first snapshot of a branch holds what its parent held."""
    until = last = end
    for one in lineage.line(end):
        if lineage.branch(one) != lineage.branch(last):
            if last != until:
                yield last, until
            until = one
        if one == fork:
            if one != until:
                yield one, until
            return
        last = one


# What VACUUM keeps.


@dataclass(frozen=True, slots=True)
class State:
    """A branch as VACUUM found it. `dropped`: the newest snapshot of the lake when it was dropped. `at_time`: its newest one at the
    time up to which versions may expire, or None: it is younger."""

    branch_id: int
    first: int
    base: int | None
    oldest_kept: int
    dropped: int | None
    newest: int
    at_time: int | None


@dataclass(frozen=True, slots=True)
class Kept:
    """`floors`: by branch, its oldest snapshot that stays readable; `points`: branch and snapshot of older ones that stay too."""

    floors: Mapping[int, int]
    points: frozenset[tuple[int, int]]

    @property
    def floors_text(self) -> str:
        return json.dumps(self.floors)

    @property
    def points_text(self) -> str:
        return json.dumps(sorted(self.points))


def states(catalog: Catalog, time_us: int) -> list[State]:
    return [State(*row) for row in catalog.rows("branch_states", time_us=time_us) if row[5] is not None]


def kept(catalog: Catalog, found: Sequence[State], pinned: int | None) -> Kept:
    """What stays of each branch: its head, what is young, what a session may read (from `pinned` on, on every branch), tags, and
    all since two living branches met, which a merge of them needs. A dropped branch goes as a whole, unless somebody may read it, or it
    is on the way from one living branch to another."""
    points = frozenset((row[0], row[1]) for row in catalog.rows("tagged"))
    living = [state for state in found if state.dropped is None]
    met, on_the_way = _met(catalog, living) if len(living) > 1 else (None, frozenset[int]())
    floors = {state.branch_id: _floor(catalog, state, pinned) for state in found}
    for state in found:
        if met is not None and (state.dropped is None or state.branch_id in on_the_way):
            floors[state.branch_id] = min(floors[state.branch_id], _newest_until(catalog, state, met))
    return Kept(floors, points)


def _met(catalog: Catalog, living: Sequence[State]) -> tuple[int | None, frozenset[int]]:
    """The oldest snapshot that a merge of two living branches would need, and the branches of what led from it to their heads."""
    lineage = Lineage.of(catalog)
    pairs = [(theirs.newest, ours.newest) for theirs in living for ours in living if theirs is not ours]
    meetings = [one for pair in pairs if (one := meeting(lineage, *pair)) is not None]
    needed = [number for one in meetings for number in (*one.bases, *(after for after, _ in one.stretches))]
    if not needed:
        return None, frozenset()
    led = set[int]().union(*(lineage.ancestors(state.newest) for state in living))
    return min(needed), frozenset(lineage.branch(one) for one in led if one >= min(needed))


def _floor(catalog: Catalog, state: State, pinned: int | None) -> int:
    if state.dropped is not None and (pinned is None or pinned > state.dropped):
        return NONE_KEPT
    oldest = max(state.oldest_kept, state.first if state.at_time is None else state.at_time)
    if pinned is None or pinned >= oldest:
        return oldest
    return _newest_until(catalog, state, pinned)


def _newest_until(catalog: Catalog, state: State, until: int) -> int:
    """The snapshot that holds what the branch was then; of one that is younger, its first."""
    found = catalog.row("newest_until", branch=state.branch_id, until=until)[0]
    return state.oldest_kept if found is None else max(state.oldest_kept, int(found))
