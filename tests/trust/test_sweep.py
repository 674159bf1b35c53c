"""Sweeps beside writers that die hurt nothing and leave nothing."""

from __future__ import annotations

import pytest

from trust import sweep
from trust.figures import check


@pytest.mark.timeout(300)
def test_sweeps_beside_dying_writers() -> None:
    figures = sweep.run(3, sweep.SIZES[1])
    check("sweep", figures)
    assert figures.counted["kills"] > 0
    assert figures.counted["versions expired"] > 0
