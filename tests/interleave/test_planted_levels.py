"""The oracle of the isolation levels bites (`promises.py`): at least three deliberate bugs for each level, and for each a pair that fails for it.

They are planted as in test_planted.py: the pair passes without the bug, and has to fail with it.
"""

from __future__ import annotations

import pytest
from interleave.test_planted import Bug, pair
from planting import planted

from lakelite.transaction import meetings, rebase, reconcile, resolve, rules, unaffected
from lakelite.transaction.transaction import Transaction

SERIALIZABLE = (
    Bug(
        "rows of blind appends stand beside what was shown", Transaction._same,
        'self.isolation == "write serializable"', "True",
        pair("shown, then other", "append values", explicit=True, level="serializable"),
    ),
    Bug(
        "statements that lost rows are not run again", reconcile._rebase,
        "tx.promises_all or", "",
        pair("delete", "delete", explicit=True, level="serializable"),
    ),
    Bug(
        "names stay bound where a column was dropped", rules.redefining,
        'level == "write serializable"', 'level != "snapshot"',
        pair("append values", "drop column", level="serializable"),
    ),
    Bug(
        "appends are superseded", reconcile._candidate,
        'tx.isolation == "write serializable" and', "",
        pair("append values", "overwrite", level="serializable"),
    ),
    Bug(
        "what was told of a statement that was undone is forgotten", Transaction._take_back,
        "whole=self.promises_all", "whole=False",
        pair("undone, then other", "delete", explicit=True, level="serializable"),
    ),
    Bug(
        "an error that was told of is forgotten", reconcile._candidate,
        "isinstance(e, Failed) or", "",
        pair("told of an error, then append", "delete", explicit=True, level="serializable"),
    ),
)  # fmt: skip
DEFAULT = (
    Bug(
        "any overwrite supersedes", resolve._superseding,
        'if table_id in w.effects and "supersede" in w.effects[table_id].kinds', "if table_id in w.effects",
        pair("append values", "overwrite from itself"),
    ),
    Bug(
        "what was shown is not looked at again", Transaction.look_again_at,
        "event.may_change(touched) and", "False and",
        pair("shown, then other", "append count of itself", explicit=True),
    ),
    Bug(
        "what was shown of a column that is another one by now is not looked at again", unaffected.is_unaffected,
        "return not _is_redefined(tx, table, delta)", "return True",
        pair("shown, then other", "drop and add column", explicit=True),
    ),
    Bug(
        "rows of blind appends count for what was shown", Transaction._same,
        'self.isolation == "write serializable"', "False",
        pair("shown, then other", "append values", explicit=True),
    ),
)  # fmt: skip
SNAPSHOT = (
    Bug(
        "a row that mine deleted may live on with theirs", rebase._is_contested,
        "or row_ids.rows_with(tx.execution, theirs, ids)", "",
        pair("delete", "update", explicit=True, level="snapshot"),
    ),
    Bug(
        "a row that both deleted is contested", rebase._is_contested,
        "return bool(", "return True or bool(",
        pair("delete", "delete", explicit=True, level="snapshot"),
    ),
    Bug(
        "an overwrite contests what it replaces", rebase._is_contested,
        'if "overwrite" in change.kinds:', "if False:",
        pair("overwrite from itself", "update", explicit=True, level="snapshot"),
    ),
    Bug(
        "the second one runs again where it should conflict", resolve.verdict,
        "(Rule.YIELD, Rule.ABANDON, Rule.GONE) if", "(Rule.ABANDON, Rule.GONE) if",
        pair("append values", "overwrite from itself", explicit=True, level="snapshot"),
    ),
    Bug(
        "new rows are changed too", rules.rule,
        "RULES[level]", 'RULES["write serializable"]',
        pair("delete by value", "update into range", explicit=True, level="snapshot"),
    ),
    Bug(
        "what was shown of a column that is another one by now counts", meetings.meetings,
        "is_other = counts and", "is_other =",
        pair("shown, then other", "drop and add column", explicit=True, level="snapshot"),
    ),
    Bug(
        "an overwrite counts as a change of the rows that it replaces", resolve.verdict,
        "m.mine in _BY_ROWS", 'm.mine in (*_BY_ROWS, "overwrite")',
        pair("replace, same columns", "update", explicit=True, level="snapshot"),
    ),
    Bug(
        "a definition that read runs again on what winners left", resolve.verdict,
        'mine.isolation == "snapshot"', "False",
        pair("replace with its rows", "append from other", explicit=True, level="snapshot"),
    ),
)  # fmt: skip
BUGS = [pytest.param(bug, id=f"{level}-{bug.name}".replace(" ", "-")) for level, bugs in
        (("serializable", SERIALIZABLE), ("write-serializable", DEFAULT), ("snapshot", SNAPSHOT)) for bug in bugs]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    bug.case()
    with planted(bug.where, bug.right, bug.wrong), pytest.raises(AssertionError):
        bug.case()
