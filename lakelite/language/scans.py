"""Which rows of a table can matter to a query: the conditions under which each of its scans of the table keeps a row.

Promises: a row that meets the conditions of none of the scans could as well not be there. Says so only of scans in the FROM of a
SELECT without outer joins, whose WHERE has conditions that `conjuncts.py` understands; of anything else nothing is known (None).
Never: input or output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakelite.language.analyse import mentions
from lakelite.language.conjuncts import conditions, parsed
from lakelite.model import MAIN_SCHEMA, Conjunct, Table, fold

if TYPE_CHECKING:
    from sqlglot import exp

_BY_STRING = frozenset(("query", "query_table", "table_changes"))  # they read the table that a string names
_CLAUSES = frozenset("with_ with expressions from_ from joins where group having qualify windows order distinct limit offset kind".split())
_KINDS = frozenset(("", "INNER", "CROSS"))


def scans(text: str, table: Table, parameters: Mapping[str, object]) -> list[tuple[Conjunct, ...]] | None:
    """The conditions of each scan of `table` in a statement that does not change it, all of one to be met; None: nothing is known.

    `parameters`: values by name without `$`; in `text` they stand as DuckDB takes them.
    """
    from sqlglot import exp

    names = mentions(text)
    tree = None if names & _BY_STRING else parsed(text)
    if tree is None or tree.find(exp.TableSample) or any(not isinstance(node.this, exp.Identifier) for node in tree.find_all(exp.Table)):
        return None  # a function may read the table too, and a sample depends on the rows that are left out
    if any(fold(cte.alias) == fold(table.name) for cte in tree.find_all(exp.CTE)):
        return None
    found = []
    for node in tree.find_all(exp.Table):
        if _means(node, table):
            known = _conditions(node, table, parameters)
            if not known:
                return None
            found.append(known)
    return found or None


def _means(node: exp.Table, table: Table) -> bool:
    """Whether it may be the table; a name without a schema may."""
    return fold(node.name) == fold(table.name) and (not node.db or fold(node.db) in (fold(table.schema_name), MAIN_SCHEMA))


def _conditions(node: exp.Table, table: Table, parameters: Mapping[str, object]) -> tuple[Conjunct, ...]:
    from sqlglot import exp

    select = node.parent.parent if isinstance(node.parent, exp.From | exp.Join) else None
    if not isinstance(select, exp.Select) or not _is_plain(node, select):
        return ()
    where = select.args.get("where")
    if where is None:
        return ()
    is_alone = not select.args.get("joins")
    return conditions(where.this, table.columns, node.alias or table.name, parameters, only_qualified=not is_alone)


def _is_plain(node: exp.Table, select: exp.Select) -> bool:
    """Whether the WHERE of the SELECT is all that comes between the table's rows and anybody who looks at them."""
    if any(value for key, value in select.args.items() if key not in _CLAUSES):
        return False
    joins = select.args.get("joins") or ()
    is_bare = not any(value for key, value in node.args.items() if key not in ("this", "db", "alias"))
    alias = node.args.get("alias")
    return (
        is_bare
        and not (alias and alias.args.get("columns"))
        and not select.args.get("laterals")
        and all(not j.side and not j.method and j.kind.upper() in _KINDS for j in joins)
    )
