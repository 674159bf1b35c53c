"""The harnesses bite: each bug of bugs.py, planted, is found by a small part of one that finds nothing without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trust import bugs, foreign, kill, power, strace
from trust.figures import Figures

SEED = 1
DELETES = [kill.Kill(kill.KINDS["delete"], "committed"), kill.Kill(kill.KINDS["delete"], "resolve", meets=True)]
SWEEPS = [kill.Kill(kill.SWEPT, "committed", meets=True, lands=kill.LATE)]


def killed(kills: list[kill.Kill]) -> Callable[[str | None], Figures]:
    return lambda bug: kill.run(SEED, 0, bug, kills)


def acknowledged(bug: str | None) -> Figures:
    """The least that a disk holds behind each acknowledgement."""
    return power.run(SEED, len(power.STATEMENTS), bug)


FOUND_BY: dict[str, Callable[[str | None], Figures]] = {
    "no sync of files": acknowledged,
    "no sync of directories": acknowledged,
    "synchronous NORMAL": acknowledged,
    "plain BEGIN": lambda bug: foreign.run(SEED, 1, bug),
    "sweep without asking who lives": killed(SWEEPS),
    "deletion vector overwritten": killed(DELETES),
}


def test_every_bug_has_a_harness() -> None:
    assert FOUND_BY.keys() == bugs.BUGS.keys()


@pytest.mark.skipif(not strace.IS_THERE, reason=strace.MISSING)
@pytest.mark.parametrize("name", FOUND_BY)
def test_found(name: str) -> None:
    assert FOUND_BY[name](name).failures


@pytest.mark.parametrize("part", [killed(DELETES), killed(SWEEPS)], ids=["deletes", "sweeps"])
def test_nothing_is_found_without_a_bug(part: Callable[[str | None], Figures]) -> None:
    """Of these parts; the others are whole runs elsewhere."""
    assert part(None).failures == ()
