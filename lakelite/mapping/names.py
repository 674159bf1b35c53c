"""Names that could have been meant: the one rule for "did you mean". Pure functions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from lakelite.records import dataclass

NEAR, NEAR_IF_SHORT = 0.7, 0.65  # of difflib's ratio
SHORT = 4  # characters
AS_NEAR = 0.15  # how much less near than the best one another may be
MOST_NEAR = 3
MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class Names:
    """What a statement can name. `tables`: the columns of each by its qualified name.

    `of(kind)`: the names of the kind "function" or "type"; asked only once there is an error. `variable(name)`: what there
    is to say of the caller's variable of that name, which is not what the statement means; None: there is none. `near_variables(name)`:
    those of the caller's that hold a table and that it may be a slip of. `views`: those among
    the tables, without their schemas.
    """

    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)
    schemas: Sequence[str] = ()
    of: Callable[[str], Iterable[str]] = lambda kind: ()
    variable: Callable[[str], str | None] = lambda name: None
    views: Sequence[str] = ()
    near_variables: Callable[[str], Iterable[str]] = lambda name: ()

    def reads_view(self, text: str) -> bool:
        """Whether the text may read a view: an error may then be about the view's text."""
        return bool(self.views) and not {v.lower() for v in self.views}.isdisjoint(w.lower() for w in re.findall(r"\w+", text))


NO_NAMES = Names()


def near(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of `known` that `name` may be a slip of, best first; case does not count. A qualified one is also found by its last part."""
    folded: dict[str, str] = {}
    for one in (one for one in known if one != name):  # a name that is right elsewhere is no slip
        folded.setdefault(one.lower(), one)
        folded.setdefault(one.lower().rpartition(".")[2], one)
    wanted = name.lower()
    least = NEAR_IF_SHORT if len(wanted) <= SHORT else NEAR
    ranked = sorted(
        (-ratio, len(one), one)
        for one in folded
        if abs(len(one) - len(wanted)) <= max(3, len(wanted) // 2) and (ratio := difflib.SequenceMatcher(None, wanted, one).ratio()) >= least
    )
    best = [folded[one] for ratio, _, one in ranked if ratio <= ranked[0][0] + AS_NEAR]
    return list(dict.fromkeys(best))[:MOST_NEAR]


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The hint for an unknown name: the near ones, or `otherwise`."""
    found = near(name, known)
    return f"did you mean {', '.join(found[:-1])}{' or ' if len(found) > 1 else ''}{found[-1]}?" if found else otherwise


def listed(names: Iterable[str]) -> str:
    """The names, and how many more there are if they are many."""
    every = list(names)
    more = len(every) - MOST_LISTED
    return ", ".join(every[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
