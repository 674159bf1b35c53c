"""A short run stays within the bounds that a long one has to keep; the long one is the command's, at tier 2."""

from __future__ import annotations

import pytest
from lasting import Sample

from trust import long_run


@pytest.mark.timeout(300)
def test_nothing_grows_and_no_reader_misses_a_file() -> None:
    counted, wrong = long_run.taken(long_run.SIZES[1])
    assert not wrong, counted
    assert counted["versions behind, at most"] > 0, "no reader was ever behind"


@pytest.mark.parametrize("name", long_run.BOUNDS)
def test_what_grows_is_found(name: str) -> None:
    samples = [Sample(n**2 * 2**20, n**2 * 2**20, n**2, n**2 * 2**20, n**2 * 2**20, 0.01) for n in range(60)]
    wrong: list[str] = []
    long_run.grown(samples * long_run.WRITERS, wrong)
    assert any(one.startswith(name) for one in wrong)
