"""The rule table is whole, and no looser than the outcomes of the design: what may stand is listed here a second time."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from lakelite.transaction.rules import RULES, Mine, Rule, Theirs, rule

MAY_STAND = {
    ("append", "append"), ("append", "delete"), ("append", "update"), ("append", "overwrite"), ("append", "compaction"),
    ("read", "compaction"), ("shown", "compaction"), ("compaction", "append"),
    *itertools.product(set(get_args(Mine)) - {"define"}, ("extend", "shrink")),
}  # fmt: skip
MAY_BE_CARRIED = {
    *itertools.product(("delete", "update", "overwrite"), ("delete", "compaction")),
    *itertools.product(("compaction",), ("delete", "update", "overwrite", "compaction", "schema")),
}


def test_every_meeting_has_a_rule():
    assert RULES.keys() == set(itertools.product(get_args(Mine), get_args(Theirs)))


@pytest.mark.parametrize(("mine", "theirs"), sorted(RULES))
def test_only_these_stand_or_are_carried_over(mine, theirs):
    found = RULES[(mine, theirs)]
    assert (found is Rule.STANDS) == ((mine, theirs) in MAY_STAND)
    assert (found is Rule.REMAP) == ((mine, theirs) in MAY_BE_CARRIED)
    assert found is not Rule.REEVALUATE or (mine in ("delete", "update", "overwrite") and theirs in ("append", "update", "overwrite"))
    if theirs == "drop":
        assert found in (Rule.GONE, Rule.ABANDON)


def test_only_a_blind_append_spares_what_was_shown():
    assert rule("shown", "append", blind_winner=True) is Rule.STANDS
    assert rule("shown", "append", blind_winner=False) is Rule.COMPARE
    assert rule("shown", "update", blind_winner=True) is Rule.COMPARE
    assert rule("read", "append", blind_winner=True) is Rule.REPLAY


def test_the_stronger_rule_has_the_higher_number():
    assert Rule.STANDS.value < Rule.REMAP.value < Rule.REEVALUATE.value < Rule.COMPARE.value < Rule.REPLAY.value < Rule.GONE.value
    assert [r.rung for r in Rule] == [1, 2, 3, 4, 4, 5, 5]
