"""Where branches met, told from the snapshots at which ways part or meet, against the definition over all snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from lakelite.catalog import branches
from lakelite.catalog.branches import Lineage, Meeting, meeting
from lakelite.catalog.opened import open_catalog
from lakelite.catalog.store import Catalog


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    made = open_catalog(tmp_path_factory.mktemp("lineage") / "catalog.sqlite", create=True, durable=False)
    yield made
    made.close()


@dataclass
class History:
    """Snapshots with parent, merged one and branch; by branch its newest one, first one, base, and oldest kept one."""

    parents: dict[int, tuple[int | None, int | None, int]] = field(default_factory=lambda: {0: (None, None, 1)})
    newest: dict[int, int] = field(default_factory=lambda: {1: 0})
    first: dict[int, int] = field(default_factory=lambda: {1: 0})
    base: dict[int, int | None] = field(default_factory=lambda: {1: None})
    kept: dict[int, int] = field(default_factory=lambda: {1: 0})

    def add(self, kind: str, one: int, other: int) -> None:
        number = max(self.parents) + 1
        branch = sorted(self.newest)[one % len(self.newest)]
        if kind == "branch":
            base = sorted(self.parents)[other % len(self.parents)]
            branch = max(self.newest) + 1
            self.parents[number] = base, None, branch
            self.first[branch], self.base[branch], self.kept[branch] = number, base, number
        elif kind == "expire":
            own = sorted(n for n, found in self.parents.items() if found[2] == branch and n >= self.kept[branch])
            self.kept[branch] = own[other % len(own)]
            for old in own[: other % len(own)]:
                if (old + other) % 3:  # the others are tagged
                    del self.parents[old]
            return
        else:
            merged = self.newest[sorted(self.newest)[other % len(self.newest)]] if kind == "merge" else None
            self.parents[number] = self.newest[branch], None if merged == self.newest[branch] else merged, branch
        self.newest[branch] = number

    def store(self, catalog: Catalog) -> None:
        sqlite = catalog._sqlite
        for table in ("snapshots", "branches"):
            sqlite.execute(f"DELETE FROM {table}")
        insert = "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, NULL, NULL, 'x', '[]', 'x', ?, 1, ?, 0)"
        sqlite.executemany(insert, [(n, p, m, b, n, p, str(n)) for n, (p, m, b) in self.parents.items()])
        rows = [(b, f"b{b}", self.base[b], self.first[b], self.kept[b]) for b in self.newest]
        sqlite.executemany("INSERT INTO branches VALUES (?, ?, ?, ?, ?, 0, NULL)", rows)

    def ancestors(self, one: int) -> set[int]:
        found: set[int] = set()
        open_ = [one]
        while open_:
            one = open_.pop()
            if one in self.parents and one not in found:
                found.add(one)
                open_ += [p for p in self.parents[one][:2] if p is not None]
        return found

    def line(self, one: int | None) -> Iterator[int]:
        while one is not None and one in self.parents:
            yield one
            one = self.parents[one][0]

    def meeting(self, theirs: int, ours: int) -> Meeting | None:
        common = self.ancestors(theirs) & self.ancestors(ours)
        bases = sorted((one for one in common if not any(one in self.ancestors(other) for other in common - {one})), reverse=True)
        stretches: dict[tuple[int, int], None] = {}
        for base in bases:
            fork = next((one for one in self.line(theirs) if one in set(self.line(base))), None)
            if fork is None:
                return None
            for end in (theirs, base):
                way = [one for one in self.line(end) if one >= fork]
                for branch in dict.fromkeys(self.parents[one][2] for one in way):
                    own = [one for one in way if self.parents[one][2] == branch]
                    if own[-1] != own[0]:
                        stretches[own[-1], own[0]] = None
        return Meeting(tuple(bases), tuple(stretches)) if bases else None


STEPS = st.lists(
    st.tuples(st.sampled_from(["commit", "commit", "branch", "merge", "merge", "expire"]), st.integers(0, 50), st.integers(0, 50)), max_size=30
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_branches_met_where_the_definition_says(catalog: Catalog, steps: Sequence[tuple[str, int, int]]) -> None:
    history = History()
    for step in steps:
        history.add(*step)
    history.store(catalog)
    heads = list(history.newest.values())
    lineage = Lineage.of(catalog, heads)
    met = {(a, b): history.meeting(a, b) for a in heads for b in heads}
    assert {(a, b): meeting(lineage, a, b) for a in heads for b in heads} == met
    needed = {n for (a, b), one in met.items() if a != b and one for n in (*one.bases, *(after for after, _ in one.stretches))}
    assert set(branches._needed(lineage, heads)) >= needed
    if all(met.values()):
        assert set(branches._needed(lineage, heads)) == needed


def test_a_long_history_costs_nothing(catalog: Catalog) -> None:
    """What is read follows the number of branches and merges."""
    history = History()
    for number in range(12):
        history.add("branch", 0, number)
    for number in range(5_000):
        history.add("commit", number, 0)
    history.add("merge", 0, 5)
    history.store(catalog)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    catalog._sqlite.set_progress_handler(count, 100)
    lineage = Lineage.of(catalog, list(history.newest.values()))
    catalog._sqlite.set_progress_handler(None, 0)
    assert len(lineage.parents) < 40
    assert steps < 100, "hundreds of SQLite's instructions"
    assert min(branches._needed(lineage, list(history.newest.values()))) == 0
