"""From the condition of a join to the pairs of columns that are equal in every pair of rows that it joins.

Takes only `column = column` that stand at the top level under AND, each of them surely a column of one side. What is not understood is
left out, also a text that cannot be parsed: fewer equalities rule out less. Never: input or output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lakelite.language.conjuncts import parsed, terms
from lakelite.model import fold
from lakelite.records import dataclass

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: the name of its rows, and those of its columns. `qualified`: a name alone may be a third one's."""

    name: str
    columns: Sequence[str]
    qualified: bool = False

    def column(self, node: exp.Column, other: Side) -> str | None:
        """The name of the side's column that a reference means, if it surely is one of this side."""
        if node.args.get("db") is not None or any(fold(side.name) in map(fold, (*self.columns, *other.columns)) for side in (self, other)):
            return None  # perhaps a field of a struct column
        known = {fold(name): name for name in self.columns}
        alone_is_mine = not self.qualified and fold(node.name) not in map(fold, other.columns)
        is_mine = fold(node.table) == fold(self.name) if node.table else alone_is_mine
        return known.get(fold(node.name)) if is_mine else None


def equalities(on: str, left: Side, right: Side) -> list[tuple[str, str]]:
    """Names of a column of `left` and one of `right` that have to be equal."""
    select = parsed(f"SELECT 1 WHERE (\n{on}\n)")
    where = None if select is None else select.args.get("where")
    return [] if where is None else list(_equal(terms(where.this), left, right))


def _equal(conditions: Iterable[exp.Expr], left: Side, right: Side) -> Iterator[tuple[str, str]]:
    from sqlglot import exp

    for term in conditions:
        sides = [s.this if isinstance(s, exp.Paren) else s for s in (term.this, term.expression)] if isinstance(term, exp.EQ) else []
        if sides and all(isinstance(s, exp.Column) for s in sides):
            for one, other in (sides, sides[::-1]):
                mine, theirs = left.column(one, right), right.column(other, left)
                if mine is not None and theirs is not None:
                    yield mine, theirs
