"""Sets of hashes: what is there is never denied, what is not is seldom taken for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from lakelite.storage import fingerprints

HASH = some.integers(0, 2**64 - 1)
EDGES = [0, 1, 2**16 - 1, 2**16, 2**63, 2**64 - 2, 2**64 - 1]


def array(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@given(some.lists(HASH | some.sampled_from(EDGES), max_size=300), some.lists(HASH | some.sampled_from(EDGES), max_size=30))
def test_what_is_there_is_never_denied(there: list[int], asked: list[int]) -> None:
    made = fingerprints.of(array(there))
    for filter_ in (made, fingerprints.decode(fingerprints.encode(made))):
        assert filter_.may_hold(array(there)).all()
        found = filter_.may_hold(array(asked + there[:5]))
        assert found.dtype == bool
        assert len(found) == len(asked) + len(there[:5])
        assert all(known for known, hash_ in zip(found, asked + there[:5], strict=True) if hash_ in there)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100, 4_095, 4_096, 100_000])
def test_what_is_not_there_is_seldom_taken_for_it(count: int) -> None:
    random = np.random.default_rng(count)
    there, others = (random.integers(0, 2**64, n, dtype=np.uint64) for n in (count, 200_000))
    filter_ = fingerprints.of(there)
    assert filter_.may_hold(there).all()
    assert filter_.may_hold(others).mean() <= 1 / 6_000
    assert len(fingerprints.encode(filter_)) <= 3.1 * count + 32


def test_equal_hashes_and_ones_that_differ_late() -> None:
    filter_ = fingerprints.of(array([5, 5, 5, 2**64 - 1]))
    assert filter_.may_hold(array([5, 2**64 - 1])).all()
    assert not filter_.may_hold(array([2**63])).any()
    assert not fingerprints.of(array([])).may_hold(array(EDGES)).any()
