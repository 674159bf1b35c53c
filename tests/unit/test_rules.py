"""The rule table is whole, and no looser than the outcomes of the design: what may stand is listed here a second time."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from lakelite.model import Isolation
from lakelite.transaction.rules import RULES, Mine, Rule, Theirs, rule

SERIALIZABLE, DEFAULT, SNAPSHOT = get_args(Isolation)
DATA = ("append", "delete", "update")

MAY_STAND = {
    ("append", "append"), ("append", "delete"), ("append", "update"), ("append", "overwrite"), ("append", "compaction"),
    ("read", "compaction"), ("shown", "compaction"), ("compaction", "append"),
    *itertools.product(("found",), (*DATA, "overwrite", "compaction")),
    *itertools.product(set(get_args(Mine)) - {"define", "found"}, ("extend", "shrink")),
}  # fmt: skip
MAY_BE_CARRIED = {
    *itertools.product(("delete", "update", "overwrite"), ("delete", "compaction")),
    *itertools.product(("compaction",), ("delete", "update", "overwrite", "compaction", "schema")),
}


def test_every_meeting_has_a_rule():
    assert RULES.keys() == set(get_args(Isolation))
    for rules in RULES.values():
        assert rules.keys() == set(itertools.product(get_args(Mine), get_args(Theirs)))


@pytest.mark.parametrize("level", [SERIALIZABLE, DEFAULT])
@pytest.mark.parametrize(("mine", "theirs"), sorted(RULES[DEFAULT]))
def test_only_these_stand_or_are_carried_over(mine, theirs, level):
    found = RULES[level][(mine, theirs)]
    assert found is not Rule.YIELD
    if level == SERIALIZABLE and theirs == "shrink":  # a dropped column is as any other change of columns
        assert found is RULES[level][(mine, "schema")]
        return
    assert (found is Rule.STANDS) == ((mine, theirs) in MAY_STAND)
    assert (found is Rule.REMAP) == ((mine, theirs) in MAY_BE_CARRIED)
    assert found is not Rule.REEVALUATE or (mine in ("delete", "update", "overwrite") and theirs in ("append", "update", "overwrite"))
    if theirs == "drop":
        assert found in (Rule.GONE, Rule.ABANDON)


@pytest.mark.parametrize(("mine", "theirs"), sorted(RULES[SNAPSHOT]))
def test_at_snapshot_nothing_is_compared_and_new_rows_are_left_alone(mine, theirs):
    found = RULES[SNAPSHOT][(mine, theirs)]
    if mine in ("read", "shown"):
        assert found is Rule.STANDS
    elif mine in DATA:
        expected = {
            "append": Rule.STANDS,
            "drop": Rule.GONE,
            "overwrite": Rule.YIELD,
            "schema": Rule.YIELD,
            "shrink": Rule.YIELD,
            "extend": Rule.STANDS,
        }
        assert found is expected.get(theirs, Rule.STANDS if mine == "append" else Rule.REMAP)
    elif mine == "overwrite":
        assert found is (Rule.YIELD if theirs in ("overwrite", "schema", "shrink") else RULES[DEFAULT][(mine, theirs)])
    else:
        assert found is RULES[DEFAULT][(mine, theirs)]


def test_only_a_blind_append_spares_what_was_shown():
    assert rule("shown", "append", DEFAULT, blind_winner=True) is Rule.STANDS
    assert rule("shown", "append", SERIALIZABLE, blind_winner=True) is Rule.COMPARE
    assert rule("shown", "append", DEFAULT, blind_winner=False) is Rule.COMPARE
    assert rule("shown", "update", DEFAULT, blind_winner=True) is Rule.COMPARE
    assert rule("read", "append", DEFAULT, blind_winner=True) is Rule.REPLAY


def test_the_stronger_rule_has_the_higher_number():
    assert Rule.STANDS.value < Rule.REMAP.value < Rule.REEVALUATE.value < Rule.COMPARE.value < Rule.REPLAY.value < Rule.YIELD.value < Rule.GONE.value
    assert [r.rung for r in Rule] == [1, 2, 3, 4, 4, 4, 5, 5]
