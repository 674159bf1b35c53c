"""Branches and tags in the catalog: made, dropped, found; where two branches met last; and what VACUUM has to keep of them.

A branch is a line of snapshots. Its first one holds what its base held: the same rows of the catalog once more, and no data. Names
are looked up when a statement runs: they are no part of a snapshot.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lakelite.catalog.store import Catalog, Writer
from lakelite.model import Branch
from lakelite.records import dataclass

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
    """The snapshots at which ways part or meet: heads, the first and the oldest kept one of each branch, what branches were made from, merges
    and what they merged. `parents`: of each, oldest first, the one before it, the one that it merged, and its branch; `starts`: the oldest
    one that leads to it on its branch. Their number follows that of branches and merges, whatever the length of the history.
    """

    parents: dict[int, tuple[int | None, int | None, int]]
    starts: dict[int, int]

    @classmethod
    def of(cls, catalog: Catalog, heads: Sequence[int]) -> Lineage:
        parents: dict[int, tuple[int | None, int | None, int]] = {}
        starts: dict[int, int] = {}
        newest: dict[int, int] = {}  # by branch
        for one, parent, merged, branch, oldest_kept in catalog.rows("lineage", heads=json.dumps(heads)):
            if parent not in parents:  # nothing parts or meets between it and the one before on the branch; or it has expired
                parent = newest[branch] if newest.get(branch, -1) >= oldest_kept else None
            parents[one] = parent, merged if merged in parents else None, branch
            starts[one] = starts[parent] if parent is not None and parents[parent][2] == branch else one
            newest[branch] = one
        return cls(parents, starts)

    def branch(self, snapshot: int) -> int:
        return self.parents[snapshot][2]

    def common(self, heads: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Newest first, the snapshots at which two of `heads` met last: that led to both, and to no other that did; with all such heads."""
        leads = defaultdict[int, int](int, {head: sum(1 << i for i, one in enumerate(heads) if one == head) for head in heads})
        followers = defaultdict[int, list[int]](list)  # to which heads each of them leads, bit by bit
        for one in reversed(self.parents):
            mask = leads[one]
            if mask:
                met = _met_at(mask, followers[one])
                if met:
                    yield one, [head for i, head in enumerate(heads) if met >> i & 1]
                for parent in self.parents[one][:2]:
                    if parent is not None:
                        leads[parent] |= mask
                        followers[parent].append(mask)

    def led(self, heads: Iterable[int]) -> set[int]:
        """All that led to one of `heads`, by whatever way."""
        found = set(heads)
        for one in reversed(self.parents):
            if one in found:
                found.update(parent for parent in self.parents[one][:2] if parent is not None)
        return found

    def fork(self, one: int, other: int) -> int | None:
        """The newest snapshot from which both come, if what was merged is not followed."""
        while self.starts[one] != self.starts[other]:
            if self.starts[one] < self.starts[other]:
                one, other = other, one
            parent = self.parents[self.starts[one]][0]
            if parent is None:
                return None
            one = parent
        return min(one, other)

    def stretches(self, fork: int, end: int) -> Iterator[tuple[int, int]]:
        """From a fork to one that comes from it, newest first: the first snapshot of a branch holds what its parent held."""
        while self.starts[end] != self.starts[fork]:
            start = self.starts[end]
            if start != end:
                yield start, end
            parent = self.parents[start][0]
            assert parent is not None, "a fork leads to its end"
            end = parent
        if fork != end:
            yield fork, end


def _met_at(mask: int, followers: Sequence[int]) -> int:
    """Of the heads to which a snapshot leads, those that meet another one here: none of its followers leads to both."""
    if mask in followers:
        return 0
    met = 0
    for i in range(mask.bit_length()):
        if mask >> i & 1:
            known = 1 << i
            for follower in followers:
                known |= follower if follower >> i & 1 else 0
            met |= 1 << i if mask & ~known else 0
    return met


@dataclass(frozen=True, slots=True)
class Meeting:
    """Of a branch `theirs` that is merged. `bases`: the newest snapshot that led to both, and others, where none of them led to another
    (merges that crossed). `stretches`: the runs of snapshots, each on one branch, (after, until], on the ways from there to theirs:
    whatever differs between a base and theirs has changed in one of them."""

    bases: tuple[int, ...]
    stretches: tuple[tuple[int, int], ...]


def meeting(lineage: Lineage, theirs: int, ours: int) -> Meeting | None:
    """Where two snapshots, of which the lineage knows, met last; None: their histories have expired."""
    bases = tuple(base for base, _ in lineage.common((theirs, ours)))
    stretches: dict[tuple[int, int], None] = {}
    for base in bases:
        fork = lineage.fork(theirs, base)
        if fork is None:
            return None
        stretches.update(dict.fromkeys((*lineage.stretches(fork, theirs), *lineage.stretches(fork, base))))
    return Meeting(bases, tuple(stretches)) if bases else None


# What VACUUM keeps.


@dataclass(frozen=True, slots=True)
class State:
    """A branch as VACUUM found it. `dropped`: the newest snapshot of the lake when it was dropped. `oldest_wanted`: its oldest
    one that is to stay, or None: all are."""

    branch_id: int
    first: int
    base: int | None
    oldest_kept: int
    dropped: int | None
    newest: int
    oldest_wanted: int | None


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


def states(catalog: Catalog, time_us: int, versions: int) -> list[State]:
    """`time_us`, `versions`: what is younger stays, and so do so many of the newest of each branch."""
    found = catalog.rows("branch_states", time_us=time_us, versions=versions)
    return [
        State(one, first, base, oldest, dropped, newest, None if then is None or counted is None else min(then, counted))
        for one, first, base, oldest, dropped, newest, then, counted in found
        if newest is not None
    ]


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
    heads = [state.newest for state in living]
    lineage = Lineage.of(catalog, heads)
    oldest = min(_needed(lineage, heads), default=None)
    led = () if oldest is None else (one for one in lineage.led(heads) if one >= oldest)
    return oldest, frozenset(map(lineage.branch, led))


def _needed(lineage: Lineage, heads: Sequence[int]) -> Iterator[int]:
    """What `meeting` would tell of any two of the heads."""
    for base, met in lineage.common(heads):
        for head in met:
            fork = lineage.fork(head, base)
            if fork is not None:
                yield base
                yield from (after for end in (head, base) for after, _ in lineage.stretches(fork, end))


def _floor(catalog: Catalog, state: State, pinned: int | None) -> int:
    if state.dropped is not None and (pinned is None or pinned > state.dropped):
        return NONE_KEPT
    oldest = max(state.oldest_kept, state.first if state.oldest_wanted is None else state.oldest_wanted)
    if pinned is None or pinned >= oldest:
        return oldest
    return _newest_until(catalog, state, pinned)


def _newest_until(catalog: Catalog, state: State, until: int) -> int:
    """The snapshot that holds what the branch was then; of one that is younger, its first."""
    found = catalog.row("newest_until", branch=state.branch_id, until=until)[0]
    return state.oldest_kept if found is None else max(state.oldest_kept, int(found))
