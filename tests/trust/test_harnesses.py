"""The harnesses at the size of tier 1, in parts that can run beside each other."""

from __future__ import annotations

import random

import pytest

from trust import commit_path, foreign, full, inject, kill, power, reopen, strace
from trust.figures import check

SEED = 20261130  # the same cases each time; `python -m tests.trust` draws others
PARTS = 6


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_killed(part: int) -> None:
    kills = kill.drawn(random.Random(SEED), kill.SIZES[1])[part::PARTS]
    figures = kill.run(SEED, 0, kills=kills)
    check("kill", figures)
    assert figures.counted["kills"] == len(kills)
    assert figures.counted["commits that landed without an answer"] > 0


needs_strace = pytest.mark.skipif(not strace.IS_THERE, reason=strace.MISSING)


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize("fault", inject.FAULTS)
def test_faults_in_file_calls(fault: inject.Fault) -> None:
    figures = inject.run(SEED, inject.SIZES[1] // len(inject.FAULTS), (fault,))
    check("inject", figures)
    seen = figures.counted["killed" if fault == "kill" else "answered by an error"]
    assert seen >= figures.counted["cases"] * (0.8 if fault == "kill" else 0.3), "too few of the faults met a statement"


@needs_strace
@pytest.mark.slow
def test_power_loss() -> None:
    check("power", power.run(SEED, power.SIZES[1]))


@pytest.mark.slow
def test_a_full_disk() -> None:
    figures = full.run(SEED, full.SIZES[1])
    check("full", figures)
    assert figures.counted["answered by an error"] > 0


@pytest.mark.slow
def test_reopened_with_many_files() -> None:
    """How long opening takes is for the figures: here others use the machine as well."""
    figures = reopen.run(SEED, reopen.SIZES[0])
    assert figures.counted["orphans swept"] == reopen.KILLS * reopen.ORPHANS
    assert figures.counted["orphans left"] == 0


def test_another_program_that_writes_to_the_catalog() -> None:
    figures = foreign.run(SEED, foreign.SIZES[1])
    check("foreign", figures)
    assert figures.counted["refused commits inside"] > 100


def test_the_figures_of_a_commit() -> None:
    """They are counted; what they have to be is looked at in a whole run, on a quiet machine."""
    figures = commit_path.run(SEED, 2)
    assert all(value > 0 for value in figures.counted.values())
