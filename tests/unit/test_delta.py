"""The delta between two states of a table against row ids: an oracle that knows nothing of compositions.

A model table of fragments whose rows carry ids goes through appends, deletes and compactions (plain and sorted anew, also
ones that read an older state than the one they land on); then base and head are any two of its states.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lakelite import composition
from lakelite.composition import Composition, Run, Unplaced
from lakelite.contents import TableState
from lakelite.deletion import DeletionVector
from lakelite.model import Fragment, Table
from lakelite.transaction.delta import Delta

TABLE = Table(1, 1, "main", "t", ())


def fragment(fragment_id: int, rows: int) -> Fragment:
    return Fragment(fragment_id, 1, "inline", None, rows, 1, "", 1, False)


@dataclass
class Model:
    """`rows`: the row ids of every fragment ever made, by position."""

    rows: dict[int, list[int]] = field(default_factory=dict)
    states: list[TableState] = field(default_factory=lambda: [TableState(TABLE, {}, {})])
    landed: list[dict[int, Composition]] = field(default_factory=lambda: [{}])  # by state, the compositions that it brought
    next_row: int = 1

    @property
    def head(self) -> TableState:
        return self.states[-1]

    def commit(self, fragments: dict[int, Fragment], vectors: dict[int, DeletionVector], made: dict[int, Composition] | None = None) -> None:
        emptied = {k for k, v in vectors.items() if k in fragments and v.cardinality == fragments[k].row_count}
        live = {k: f for k, f in fragments.items() if k not in emptied}
        self.states.append(TableState(TABLE, live, {k: v for k, v in vectors.items() if k in live}))
        self.landed.append(made or {})

    def append(self, count: int) -> None:
        number = len(self.rows) + 1
        self.rows[number] = list(range(self.next_row, self.next_row + count))
        self.next_row += count
        self.commit({**self.head.fragments, number: fragment(number, count)}, dict(self.head.vectors))

    def delete(self, share: float, rng: random.Random) -> None:
        vectors = dict(self.head.vectors)
        for k, f in self.head.fragments.items():
            more = BitMap(p for p in self.head.alive(k) if rng.random() < share)
            if more:
                old = vectors.get(k)
                vectors[k] = DeletionVector(old.positions | more if old else more, f.row_count, len(self.states))
        self.commit(dict(self.head.fragments), vectors)

    def compact(self, read: int, shuffle: bool, rng: random.Random) -> None:
        """Of some of the fragments of the state `read`; lands on the head if nobody compacted one of them meanwhile."""
        then = self.states[read]
        sources = [k for k in then.fragments if rng.random() < 0.7]
        later = [s for made in self.landed[read + 1 :] for c in made.values() for s in c.sources]
        if not sources or set(sources) & set(later):
            return
        rows = [(k, p) for k in sources for p in then.alive(k)]
        if shuffle:
            rng.shuffle(rows)
        step = max(1, len(rows) // rng.randint(1, 3)) if shuffle else len(rows)
        outputs = [rows[start : start + step] for start in range(0, len(rows), step)]
        read_state = [(then.fragments[k], then.vectors.get(k)) for k in sources]
        alive_now = {self.rows[k][p] for k in self.head.fragments for p in self.head.alive(k)}
        fragments = {k: f for k, f in self.head.fragments.items() if k not in sources}
        vectors = {k: v for k, v in self.head.vectors.items() if k not in sources}
        made: dict[int, Composition] = {}
        for output in outputs:
            number = len(self.rows) + 1
            self.rows[number] = [self.rows[k][p] for k, p in output]
            there = {row: position for position, row in enumerate(output)}
            permutation = np.array([there[row] for row in sorted(output, key=lambda row: (sources.index(row[0]), row[1]))], dtype=np.uint32)
            parts = {k: BitMap(p for of, p in output if of == k) for k in {k for k, _ in output}}
            gone = BitMap(p for p, row_id in enumerate(self.rows[number]) if row_id not in alive_now)
            if gone:
                vectors[number] = DeletionVector(gone, len(output), len(self.states))
            fragments[number] = fragment(number, len(output))
            if len(gone) < len(output):
                made[number] = composition.of(read_state, permutation, parts) if shuffle else composition.of(read_state)
        self.commit(fragments, vectors, made)

    def ids(self, state: TableState) -> dict[int, tuple[int, int]]:
        return {self.rows[k][p]: (k, p) for k in state.fragments for p in state.alive(k)}


def addresses(found: dict[int, BitMap]) -> set[tuple[int, int]]:
    assert all(found.values()), "no empty sets"
    return {(k, p) for k, some in found.items() for p in some}


steps = st.lists(st.sampled_from(["append", "delete", "delete", "compact", "shuffle", "late", "empty"]), min_size=1, max_size=14)


@settings(max_examples=400, deadline=None)
@given(steps, st.integers(0, 2**32), st.integers(0, 20), st.integers(0, 20))
def test_carried_lost_added_and_removed_are_those_of_the_row_ids(drawn, seed, low, high):
    rng = random.Random(seed)
    model = Model()
    model.append(rng.randint(1, 12))
    for step in drawn:
        if step == "append":
            model.append(rng.randint(1, 12))
        elif step in ("delete", "empty"):
            model.delete(1.0 if step == "empty" and rng.random() < 0.3 else rng.choice([0.1, 0.5, 0.9]), rng)
        else:
            read = len(model.states) - 1 if step != "late" else rng.randrange(max(0, len(model.states) - 4), len(model.states))
            model.compact(read, step == "shuffle" or rng.random() < 0.2, rng)
    low, high = sorted((low % len(model.states), high % len(model.states)))
    base, head = model.states[low], model.states[high]
    made = {k: c for landed in model.landed[low + 1 : high + 1] for k, c in landed.items()}
    delta = Delta(base, head, made)
    before, after = model.ids(base), model.ids(head)
    assert addresses(delta.removed) == {before[r] for r in before.keys() - after.keys()}
    assert addresses(delta.added) == {after[r] for r in after.keys() - before.keys()}
    chosen = {r: a for r, a in before.items() if rng.random() < 0.5}
    some: dict[int, BitMap] = {}
    for k, p in chosen.values():
        some.setdefault(k, BitMap()).add(p)
    assert addresses(delta.carried(some)) == {after[r] for r in chosen.keys() & after.keys()}
    assert addresses(delta.lost(some)) == {before[r] for r in chosen.keys() - after.keys()}


def _one_moved(**changes) -> tuple[Delta, dict[int, BitMap]]:
    run = {"source_fragment_id": 1, "source_order": 0, "output_start": 0, "live_count": 4, "physical_count": 5, "vector_born": 3} | changes
    base = TableState(TABLE, {1: fragment(1, 5)}, {1: DeletionVector(BitMap([2]), 5, 3)})
    head = TableState(TABLE, {2: fragment(2, 4)}, {})
    return Delta(base, head, {2: Composition(4, (Run(**run),), {1: BitMap([2])})}), {1: BitMap([0, 4])}


def test_compositions_that_do_not_fit_place_nothing():
    delta, some = _one_moved()
    assert delta.carried(some) == {2: BitMap([0, 3])}
    for wrong in ({"live_count": 5}, {"physical_count": 6}, {"output_start": 1}, {"physical_count": 4, "live_count": 3}):
        delta, some = _one_moved(**wrong)
        with pytest.raises(Unplaced):
            delta.carried(some)


def test_a_source_that_was_emptied_before_the_base_need_not_be_known():
    """Its compaction began before that; who reads a later base lets the vector that it read expire."""
    runs = (Run(1, 0, 0, 5, 5, None), Run(2, 1, 5, 3, 4, 7))
    head = TableState(TABLE, {3: fragment(3, 8)}, {3: DeletionVector(BitMap([5, 6, 7]), 8, 9)})
    delta = Delta(TableState(TABLE, {1: fragment(1, 5)}, {}), head, {3: Composition(8, runs, {})})
    assert delta.added == {}
    assert delta.is_empty
    with pytest.raises(Unplaced):
        delta.compositions[3].run(2)


def test_two_outputs_of_one_fragment_place_nothing():
    delta, some = _one_moved()
    twice = Delta(delta.base, delta.head, {**delta.compositions, 3: delta.compositions[2]})
    with pytest.raises(Unplaced, match="several outputs"):
        twice.carried(some)
