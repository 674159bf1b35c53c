"""What happens when a transaction (mine) meets a committed one (theirs) on one table: the whole policy as one table.

    STANDS      nothing to do: the result is that of running mine after theirs
    REMAP       my positions are found where compactions moved the rows; as a compaction, I take over what they deleted
    REEVALUATE  my row-local statements run on just the rows that are new at the head, and let go of those that are gone
    COMPARE     what I handed out is compared with what it would be now: if it differs, that is a conflict
    REPLAY      mine runs again on the head, and what it handed out is compared there
    GONE        the table was dropped: a conflict, or in autocommit the ordinary error
    ABANDON     mine is maintenance that has nothing to do any more

Of a change of columns: `extend` adds one (nullable, or with a default), renames, or widens; `shrink` drops one; `schema` is any other. What
was bound at the base is right beside the first two, by field id (`binding.py`), as long as nothing has to read a column that is gone.

resolver.md, sections 3 and 4, at level `write serializable`. Values only. A statement that is not row-local counts as a read
of its own table (`execute.py`), so that it is replayed.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, get_args

Mine = Literal["append", "delete", "update", "overwrite", "define", "compaction", "read", "shown"]
Theirs = Literal["append", "delete", "update", "overwrite", "schema", "extend", "shrink", "drop", "compaction"]


class Rule(Enum):
    """The numbers order them: the highest of all meetings decides."""

    STANDS = 1
    REMAP = 2
    REEVALUATE = 3
    COMPARE = 4
    REPLAY = 5
    ABANDON = 6
    GONE = 7

    @property
    def rung(self) -> int:
        """The rung of the ladder (resolver.md, section 3)."""
        return min(self.value, 4) if self.value <= Rule.REPLAY.value else 5


_S, _M, _E, _C, _R, _A, _G = Rule.STANDS, Rule.REMAP, Rule.REEVALUATE, Rule.COMPARE, Rule.REPLAY, Rule.ABANDON, Rule.GONE

_TABLE: dict[Mine, tuple[Rule, ...]] = {
    #              append  delete  update  overwrite  schema  extend  shrink  drop  compaction
    "append":     (_S,     _S,     _S,     _S,        _R,     _S,     _S,     _G,   _S),
    "delete":     (_E,     _M,     _E,     _E,        _R,     _S,     _S,     _G,   _M),
    "update":     (_E,     _M,     _E,     _E,        _R,     _S,     _S,     _G,   _M),
    "overwrite":  (_E,     _M,     _E,     _E,        _R,     _S,     _S,     _G,   _M),
    "define":     (_R,     _R,     _R,     _R,        _R,     _R,     _R,     _G,   _R),
    "compaction": (_S,     _M,     _M,     _M,        _M,     _S,     _S,     _A,   _M),
    "read":       (_R,     _R,     _R,     _R,        _R,     _S,     _S,     _G,   _S),
    "shown":      (_C,     _C,     _C,     _C,        _C,     _S,     _S,     _G,   _S),
}  # fmt: skip

RULES: dict[tuple[Mine, Theirs], Rule] = {
    (mine, theirs): rule for mine, row in _TABLE.items() for theirs, rule in zip(get_args(Theirs), row, strict=True)
}


def rule(mine: Mine, theirs: Theirs, *, blind_winner: bool) -> Rule:
    """The rule for one meeting. Rows of a blind append do not count against what was handed out (they are only added)."""
    if mine == "shown" and theirs == "append" and blind_winner:
        return Rule.STANDS
    return RULES[(mine, theirs)]
