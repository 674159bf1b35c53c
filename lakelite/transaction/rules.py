"""What happens when a transaction (mine) meets a committed one (theirs) on one table: the whole policy as one table.

    STANDS      nothing to do: the result is that of running mine after theirs
    REMAP       my positions are found where compactions moved the rows; as a compaction, I take over what they deleted
    REEVALUATE  my row-local statements run on just the rows that are new at the head, and let go of those that are gone
    COMPARE     what I handed out is compared with what it would be now: if it differs, that is a conflict
    REPLAY      mine runs again on the head, and what it handed out is compared there
    YIELD       theirs was first: a conflict, or in autocommit mine runs again on the head
    GONE        the table was dropped: a conflict, or in autocommit the ordinary error
    ABANDON     mine is maintenance that has nothing to do any more

Of a change of columns: `extend` adds one (nullable, or with a default), renames, or widens; `shrink` drops one; `schema` is any other. What
was bound at the base is right beside the first two, by field id (`binding.py`), as long as nothing has to read a column that is gone.

resolver.md, sections 3 and 4: one table for the serializable levels, and the rows that are others at `snapshot`. Values only.
`found` is an ALTER that had nothing to do. A statement that is not row-local counts as a read of its own table (`execute.py`), so that it
is replayed.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, get_args

from lakelite.model import Isolation

Mine = Literal["append", "delete", "update", "overwrite", "define", "found", "compaction", "read", "shown"]
Theirs = Literal["append", "delete", "update", "overwrite", "schema", "extend", "shrink", "drop", "compaction"]


class Rule(Enum):
    """The numbers order them: the highest of all meetings decides."""

    STANDS = 1
    REMAP = 2
    REEVALUATE = 3
    COMPARE = 4
    REPLAY = 5
    YIELD = 6
    ABANDON = 7
    GONE = 8

    @property
    def rung(self) -> int:
        """The rung of the ladder (resolver.md, section 3)."""
        return min(self.value, 4) if self.value <= Rule.YIELD.value else 5


_S, _M, _E, _C, _R, _Y, _A, _G = Rule.STANDS, Rule.REMAP, Rule.REEVALUATE, Rule.COMPARE, Rule.REPLAY, Rule.YIELD, Rule.ABANDON, Rule.GONE

_SERIALIZABLE: dict[Mine, tuple[Rule, ...]] = {
    #              append  delete  update  overwrite  schema  extend  shrink  drop  compaction
    "append":     (_S,     _S,     _S,     _S,        _R,     _S,     _S,     _G,   _S),
    "delete":     (_E,     _M,     _E,     _E,        _R,     _S,     _S,     _G,   _M),
    "update":     (_E,     _M,     _E,     _E,        _R,     _S,     _S,     _G,   _M),
    "overwrite":  (_E,     _M,     _E,     _E,        _R,     _S,     _S,     _G,   _M),
    "define":     (_R,     _R,     _R,     _R,        _R,     _R,     _R,     _G,   _R),
    "found":      (_S,     _S,     _S,     _S,        _R,     _R,     _R,     _G,   _S),
    "compaction": (_S,     _M,     _M,     _M,        _M,     _S,     _S,     _A,   _M),
    "read":       (_R,     _R,     _R,     _R,        _R,     _S,     _S,     _G,   _S),
    "shown":      (_C,     _C,     _C,     _C,        _C,     _S,     _S,     _G,   _S),
}  # fmt: skip

_SNAPSHOT: dict[Mine, tuple[Rule, ...]] = {  # mine sees its base only: what it read counts for nothing, and new rows are left alone
    #              append  delete  update  overwrite  schema  extend  shrink  drop  compaction
    "append":     (_S,     _S,     _S,     _Y,        _Y,     _S,     _Y,     _G,   _S),
    "delete":     (_S,     _M,     _M,     _Y,        _Y,     _S,     _Y,     _G,   _M),
    "update":     (_S,     _M,     _M,     _Y,        _Y,     _S,     _Y,     _G,   _M),
    "overwrite":  (_E,     _M,     _E,     _Y,        _Y,     _S,     _Y,     _G,   _M),
    "read":       (_S,     _S,     _S,     _S,        _S,     _S,     _S,     _S,   _S),
    "shown":      (_S,     _S,     _S,     _S,        _S,     _S,     _S,     _S,   _S),
}  # fmt: skip

_Rules = dict[tuple[Mine, Theirs], Rule]


def _each(table: dict[Mine, tuple[Rule, ...]]) -> _Rules:
    return {(mine, theirs): rule for mine, row in table.items() for theirs, rule in zip(get_args(Theirs), row, strict=True)}


_DEFAULT = _each(_SERIALIZABLE)
RULES: dict[Isolation, _Rules] = {
    "serializable": {(mine, theirs): _DEFAULT[(mine, "schema" if theirs == "shrink" else theirs)] for mine, theirs in _DEFAULT},
    "write serializable": _DEFAULT,
    "snapshot": {**_DEFAULT, **_each(_SNAPSHOT)},
}


def redefining(level: Isolation) -> tuple[Theirs, ...]:
    """What leaves nothing that was bound to a table right. That a column may vanish under what is written to it is of the default level alone."""
    return ("schema", "drop") if level == "write serializable" else ("schema", "drop", "shrink")


def rule(mine: Mine, theirs: Theirs, level: Isolation, *, blind_winner: bool) -> Rule:
    """The rule for one meeting. At `write serializable` rows of a blind append do not count against what was handed out (they are only added)."""
    if mine == "shown" and theirs == "append" and blind_winner and level == "write serializable":
        return Rule.STANDS
    return RULES[level][(mine, theirs)]


def for_keys(met: Rule, mine: Mine, theirs: Theirs, only_adds: bool | None, level: Isolation) -> Rule:
    """The rule for a meeting on a table with keys, to which mine gave rows with keys of their own (None: it did not).

    Those are looked up among the rows that theirs added. That is enough where mine did nothing else to keys (`only_adds`): else they have to
    hold after each of its statements, and only running again tells. At `snapshot` mine sees its base only, and its last state counts.
    """
    if only_adds is None or mine not in ("append", "update", "overwrite") or theirs not in ("append", "update", "overwrite"):
        return met
    needed = Rule.REMAP if level == "snapshot" else Rule.REEVALUATE if only_adds else Rule.REPLAY
    return max(met, needed, key=lambda r: r.value)
