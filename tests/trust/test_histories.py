"""The checker of histories finds each phenomenon in the smallest history that has it, and nothing in sound ones."""

from __future__ import annotations

import random
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trust.histories import Op, Ran, anomalies, components


def ran(process: int, *ops: str, landed: bool = True) -> Ran:
    """Operations as `+l1=5` (appends 5 to l1) and `l1=5,6` (reads it)."""
    made = []
    for op in ops:
        key, _, values = op.lstrip("+").partition("=")
        made.append(Op("append" if op.startswith("+") else "read", key, tuple(map(int, values.split(","))) if values else ()))
    return Ran(process, tuple(made), landed)


CASES = {
    "a value of one that was refused": ([ran(1, "+l=1", landed=False), ran(2, "l=1")], {"l": (1,)}, "G1a"),
    "half of what one wrote": ([ran(1, "+l=1", "+l=2"), ran(2, "l=1")], {"l": (1, 2)}, "G1b"),
    "half of what one added": ([ran(1, "+s=1", "+s=2"), ran(2, "s=2")], {"s": (1, 2)}, "G1b"),
    "two tables written in either order": ([ran(1, "+l=1", "+m=2"), ran(2, "+l=3", "+m=4")], {"l": (1, 3), "m": (4, 2)}, "G0"),
    "each read the other's": ([ran(1, "+l=1", "m=2"), ran(2, "+m=2", "l=1")], {"l": (1,), "m": (2,)}, "G1c"),
    "old and new together": ([ran(1, "+l=1", "+m=2"), ran(2, "l=1", "m=")], {"l": (1,), "m": (2,)}, "G-single"),
    "a lost update": ([ran(1, "l=", "+l=1"), ran(2, "l=", "+l=2")], {"l": (1, 2)}, "G-single"),
    "write skew": ([ran(1, "l=", "+m=1"), ran(2, "m=", "+l=2")], {"l": (2,), "m": (1,)}, "G2"),
    "write skew over rows that were added": ([ran(1, "s1=", "+s2=1"), ran(2, "s2=", "+s1=2")], {"s1": (2,), "s2": (1,)}, "G2"),
    "one that does not see what it did before": ([ran(1, "+l=1"), ran(1, "l=")], {"l": (1,)}, "G-single"),
    "one that does not see what it did itself": ([ran(1, "+l=1", "l=")], {"l": (1,)}, "internal"),
    "two orders": ([ran(1, "+l=1"), ran(2, "+l=2"), ran(3, "l=2,1")], {"l": (1, 2)}, "order"),
    "a value that is gone": ([ran(1, "+l=1"), ran(2, "l=1")], {"l": ()}, "lost"),
    "a value twice": ([ran(1, "+l=1")], {"l": (1, 1)}, "doubled"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_phenomenon_is_found(name: str) -> None:
    history, final, wanted = CASES[name]
    assert wanted in {line.split(":")[0] for line in anomalies(history, final, "serializable")}


def test_levels_allow_what_they_allow() -> None:
    skew, final, _ = CASES["write skew"]
    assert anomalies(skew, final, "snapshot") == []
    assert [line.split(":")[0] for line in anomalies(skew, final, "write serializable")] == ["G2"]
    blind = [ran(1, "+s=1"), ran(1, "+l=2"), ran(2, "l=2", "s=", "+l=3")]
    assert anomalies(blind, {"s": (1,), "l": (2, 3)}, "write serializable") == []
    assert [line.split(":")[0] for line in anomalies(blind, {"s": (1,), "l": (2, 3)}, "serializable")] == ["G-single"]


@given(st.integers(0, 10**9))
def test_what_ran_one_after_the_other_is_sound(seed: int) -> None:
    r, values = random.Random(seed), count(1)
    held: dict[str, tuple[int, ...]] = {}
    history = []
    for _ in range(30):
        ops = []
        for key in r.choices(("l1", "l2", "s1"), k=r.randrange(1, 5)):
            if r.random() < 0.5:
                ops.append(Op("append", key, (next(values),)))
                held[key] = (*held.get(key, ()), *ops[-1].values)
            else:
                ops.append(Op("read", key, held.get(key, ())))
        history.append(Ran(r.randrange(3), tuple(ops)))
    assert anomalies(history, held, "serializable") == []


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20))
def test_components_are_the_nodes_that_reach_each_other(edges: set[tuple[int, int]]) -> None:
    graph: dict[int, list[int]] = {}
    for a, b in sorted(edges):
        graph.setdefault(a, []).append(b)
    reach = {n: {n} for n in range(9)}
    for _ in range(9):
        for a, b in edges:
            reach[a] |= reach[b]
    want = {frozenset(m for m in range(9) if m in reach[n] and n in reach[m]) for n in range(9)}
    assert {frozenset(group) for group in components(graph)} == {group for group in want if len(group) > 1}
