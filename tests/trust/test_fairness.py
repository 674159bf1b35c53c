"""Writers take turns. How long one waits is for the command to say, on a machine that does nothing else."""

from __future__ import annotations

import pytest

from trust import fairness


@pytest.mark.timeout(300)
def test_writers_take_turns() -> None:
    counted, wrong = fairness.taken(fairness.SIZES[1])
    assert not wrong, counted
