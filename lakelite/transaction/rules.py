"""What happens when a transaction (mine) meets a committed one (theirs) on one table: the whole policy as one table.

    STANDS    nothing to do: the result is that of running mine after theirs
    UNION     newly deleted positions are added to the head's deletion vectors; rows both deleted are simply gone
    REPLAY    mine runs again on the head
    CONFLICT  raised: mine handed rows out that would come out differently
    GONE      the table was dropped: a conflict, or in autocommit the ordinary error
    ABANDON   mine is maintenance that has nothing to do any more

resolver.md, sections 3 and 4, at level `write serializable`, with the rungs that are built: as it stands, remap by union,
replay, conflict. Values only.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, get_args

Mine = Literal["append", "delete", "update", "overwrite", "define", "compaction", "read", "shown"]
Theirs = Literal["append", "delete", "update", "overwrite", "schema", "drop", "compaction"]


class Rule(Enum):
    """The numbers order them: the highest of all meetings decides."""

    STANDS = 1
    UNION = 2
    REPLAY = 4
    ABANDON = 5
    GONE = 6
    CONFLICT = 7


_S, _U, _R, _A, _G, _C = Rule.STANDS, Rule.UNION, Rule.REPLAY, Rule.ABANDON, Rule.GONE, Rule.CONFLICT

_TABLE: dict[Mine, tuple[Rule, ...]] = {
    #              append  delete  update  overwrite  schema  drop  compaction
    "append":     (_S,     _S,     _S,     _R,        _R,     _G,   _S),
    "delete":     (_R,     _U,     _R,     _R,        _R,     _G,   _R),
    "update":     (_R,     _R,     _R,     _R,        _R,     _G,   _R),
    "overwrite":  (_R,     _R,     _R,     _R,        _R,     _G,   _R),
    "define":     (_R,     _R,     _R,     _R,        _R,     _G,   _R),
    "compaction": (_S,     _A,     _A,     _A,        _A,     _A,   _A),
    "read":       (_R,     _R,     _R,     _R,        _R,     _G,   _S),
    "shown":      (_C,     _C,     _C,     _C,        _C,     _G,   _S),
}  # fmt: skip

RULES: dict[tuple[Mine, Theirs], Rule] = {
    (mine, theirs): rule for mine, row in _TABLE.items() for theirs, rule in zip(get_args(Theirs), row, strict=True)
}


def rule(mine: Mine, theirs: Theirs, *, blind_winner: bool) -> Rule:
    """The rule for one meeting. Rows of a blind append do not count against what was handed out (they are only added)."""
    if mine == "shown" and theirs == "append" and blind_winner:
        return Rule.STANDS
    return RULES[(mine, theirs)]
