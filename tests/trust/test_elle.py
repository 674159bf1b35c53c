"""Histories of real processes have no anomaly that their level forbids. (That the harness bites: `test_planted_of_trust.py`.)"""

from __future__ import annotations

import pytest

from trust import elle
from trust.figures import check


@pytest.mark.timeout(300)
def test_histories_of_processes_are_as_their_level_has_it() -> None:
    figures = elle.run(7, elle.SIZES[1])
    check("elle", figures)
    assert figures.counted["conflicts"] > 0, "the processes never met"
    assert figures.counted["compactions"] > 0
    assert figures.counted["sweeps"] > 0
