"""Compositions: the formula of the output position against the rows themselves."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lakelite import composition
from lakelite.deletion import DeletionVector
from lakelite.errors import InternalError
from lakelite.model import Fragment


def fragment(fragment_id: int, row_count: int) -> Fragment:
    return Fragment(fragment_id, 1, "inline", None, row_count, 1, "", 1, False)


sources = st.lists(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))), min_size=1, max_size=6)


@given(sources)
def test_runs_say_where_each_row_went(drawn):
    with_vectors = [(fragment(i, n), DeletionVector(BitMap(dead), n, 9) if dead else None) for i, (n, dead) in enumerate(drawn)]
    output = [(i, p) for i, (n, dead) in enumerate(drawn) for p in range(n) if p not in dead]
    runs = composition.in_order(with_vectors)
    composition.check(runs, len(output))
    for run in runs:
        n, dead = drawn[run.source_fragment_id]
        assert (run.physical_count, run.live_count, run.vector_born) == (n, n - len(dead), 9 if dead else None)
        for position in set(range(n)) - dead:
            there = run.output_start + position - sum(d < position for d in dead)
            assert output[there] == (run.source_fragment_id, position)


def test_runs_that_do_not_add_up_are_refused():
    runs = composition.in_order([(fragment(1, 5), None), (fragment(2, 3), None)])
    composition.check(runs, 8)
    for wrong, rows in (
        (runs, 9),
        (runs[1:], 3),
        ((runs[0], dataclasses.replace(runs[1], output_start=4)), 8),
        ((dataclasses.replace(runs[0], live_count=6), runs[1]), 9),
    ):
        with pytest.raises(InternalError):
            composition.check(wrong, rows)
