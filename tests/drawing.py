"""Runs of a state machine until what has to be reached was reached."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def rounds(machine: type[RuleBasedStateMachine], checks: settings, most: int) -> Iterator[int]:
    """Runs the machine before each number that it gives. What is drawn is random, and other in each round; in CI it is the same every time."""
    for number in range(most):
        if os.environ.get("CI"):
            seed(number)(machine)
        run_state_machine_as_test(machine, settings=checks)
        yield number
