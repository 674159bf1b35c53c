"""Every pair of kinds of statement is stepped through, and every schedule can be drawn."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from trust import stepper
from trust.figures import check


@pytest.mark.timeout(300)
def test_every_pair_of_kinds_in_one_order_or_another() -> None:
    figures = stepper.run(11, stepper.SIZES[1])
    check("stepper", figures)
    assert figures.counted["pairs of kinds"] == len([*combinations_with_replacement(stepper.kinds(), 2)])
    assert figures.counted["conflicts"] > 0


def test_all_schedules_are_there() -> None:
    found = [*stepper.every_schedule()]
    assert len(found) == len({*found}) == stepper.ALL
