"""Compositions: the formula of the output position against the rows themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
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
    made = composition.of(with_vectors)
    composition.check(made, len(output))
    for run in made.runs:
        n, dead = drawn[run.source_fragment_id]
        assert (run.physical_count, run.live_count, run.vector_born) == (n, n - len(dead), 9 if dead else None)
        for position in set(range(n)) - dead:
            there = run.output_start + position - sum(d < position for d in dead)
            assert output[there] == (run.source_fragment_id, position)


def test_runs_that_do_not_add_up_are_refused():
    made = composition.of([(fragment(1, 5), None), (fragment(2, 3), None)])
    composition.check(made, 8)
    with pytest.raises(InternalError, match="of an output of 9"):
        composition.check(made, 9)
    first, second = made.runs
    for wrong in (
        {"row_count": 9},
        {"runs": (second,), "row_count": 3},
        {"runs": (first, dataclasses.replace(second, output_start=4))},
        {"runs": (dataclasses.replace(first, live_count=6), second), "row_count": 9},
        {"permutation": np.arange(7, dtype=np.uint32)},
        {"permutation": np.array([0, 1, 2, 3, 4, 5, 6, 6], dtype=np.uint32)},
    ):
        with pytest.raises(InternalError):
            composition.check(dataclasses.replace(made, **wrong), wrong.get("row_count", 8))


@given(st.permutations(range(40)), st.sets(st.integers(0, 59)))
def test_row_maps_round_trip_and_damaged_ones_are_refused(order, here):
    here |= {0}
    read = [(fragment(1, 60), None), (fragment(2, 39), None), (fragment(3, 1), None)]
    made = composition.of(read, np.array(order, dtype=np.uint32), {1: BitMap(here), 2: BitMap(range(39))})
    assert made.elsewhere == ({1: BitMap(set(range(60)) - here)} if len(here) < 60 else {})
    assert [run.live_count for run in made.runs] == [len(here), 39]
    blob = composition.encode_row_map(made)
    permutation, elsewhere = composition.decode_row_map(blob, made.runs, 40)
    assert permutation.tolist() == list(order)
    assert elsewhere == made.elsewhere
    for wrong, runs, rows in ((blob, made.runs, 41), (blob, made.runs[:1], 40), (blob[:-9], made.runs, 40), (b"", made.runs, 40)):
        with pytest.raises(InternalError, match="row map is damaged"):
            composition.decode_row_map(wrong, runs, rows)
