"""Which names of columns a piece of SQL reads, as far as that can be told.

Promises: errs to the safe side. None where all columns of a table may be read without being named: by a star, a table's name as a value,
an alias with a list of columns, a NATURAL join, or a text that cannot be parsed. Never: input or output.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakelite.language.conjuncts import parsed
from lakelite.model import fold


def names_read(text: str, tables: Iterable[str] = ()) -> frozenset[str] | None:
    """Every name in a query or a statement that has one, folded; None: perhaps all columns. `tables`: names that mean a table besides those in it."""
    from sqlglot import exp

    tree = parsed(text)
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery | exp.Insert | exp.Create):
        return None
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)) or tree.find(exp.Columns, exp.Pivot, exp.Command):
        return None
    if any(alias.args.get("columns") for alias in tree.find_all(exp.TableAlias)) or any(join.method for join in tree.find_all(exp.Join)):
        return None
    known = {fold(name) for name in tables}
    for table in tree.find_all(exp.Table):
        known |= {fold(table.name), fold(table.alias)}
    if any(not column.table and fold(column.name) in known for column in tree.find_all(exp.Column)):
        return None
    return frozenset(fold(name.name) for name in tree.find_all(exp.Identifier))
