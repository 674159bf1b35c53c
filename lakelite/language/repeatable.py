"""Whether a query gives the same rows each time that it is read, as long as what it reads stays the same.

Takes only tables, VALUES, files and functions of a fixed list, joined by their rows, with conditions and columns that are worked out from
one row by functions of a fixed list. Whatever else there is (an aggregate, a window, DISTINCT ON, LIMIT, a sample, a set operation, …)
may choose among equal rows, and is not taken, nor what cannot be parsed. Never: input or output.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

from lakelite.language.analyse import SCALAR
from lakelite.language.conjuncts import parsed
from lakelite.language.tokens import lex, unquote
from lakelite.model import fold

if TYPE_CHECKING:
    from sqlglot import exp

_LONGEST = 50_000  # characters: to parse more takes longer than it saves
_TABLES = frozenset("range generate_series read_csv read_csv_auto read_parquet parquet_scan read_json read_json_auto read_ndjson".split())
_NODES = """Star From Where With CTE TableAlias Alias Column Identifier Literal Null Boolean Placeholder Parameter Paren Tuple Values
    DataType DataTypeParam Cast TryCast Case If And Or Not Neg Add Sub Mul Div Mod IntDiv DPipe EQ NEQ GT GTE LT LTE Is NullSafeEQ
    NullSafeNEQ Between In Like ILike Collate""".split()
_CLAUSES = {
    "Select": frozenset("with_ expressions from_ joins where".split()),
    "Subquery": frozenset("this alias joins".split()),
    "Table": frozenset("this db catalog alias joins".split()),
    "Join": frozenset("this kind side method on using".split()),
    "With": frozenset(("expressions",)),
    "In": frozenset("this expressions".split()),
}
_KINDS = frozenset(("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"))


def dotted(name: str) -> tuple[str, ...]:
    """The parts of a name, folded, as `repeats` compares them."""
    return tuple(fold(unquote(name[t.start : t.end])) for t in lex(name) if t.word != ".")


def repeats(text: str, known: Collection[tuple[str, ...]]) -> bool:
    """Whether that is known of a query. `known`: the names of tables that stay the same, and of views of which the same is asked, in parts."""
    from sqlglot import exp

    tree = parsed(text) if len(text) <= _LONGEST else None
    if not isinstance(tree, exp.Select):
        return False
    names = {*known, *((fold(cte.alias),) for cte in tree.find_all(exp.CTE))}
    return all(_is_plain(node) and (not isinstance(node, exp.Table) or _is_known(node, names)) for node in tree.walk())


def _is_plain(node: exp.Expr) -> bool:
    from sqlglot import exp

    clauses = _CLAUSES.get(type(node).__name__)
    if clauses is not None and not clauses.issuperset(key for key, value in node.args.items() if value):
        return False
    if isinstance(node, exp.Join):
        return node.kind.upper() in _KINDS and node.method.upper() in ("", "NATURAL")
    if isinstance(node, exp.Subquery):
        return isinstance(node.parent, exp.From | exp.Join)
    return clauses is not None or type(node) in _plain_nodes() or (isinstance(node, exp.Func) and _is_function(node))


@cache
def _plain_nodes() -> frozenset[type[exp.Expr]]:
    from sqlglot import exp

    return frozenset(getattr(exp, name) for name in _NODES)


def _is_function(node: exp.Func) -> bool:
    """Whether it is one of those that make a value out of the values of a row; or of rows, where a table may stand."""
    from sqlglot import exp

    if isinstance(node, exp.AggFunc):
        return False
    names = {node.name} if isinstance(node, exp.Anonymous) else set(node.sql_names())
    is_table = isinstance(node.parent, exp.Table) and node.arg_key == "this"
    return not {name.lower() for name in names}.isdisjoint(_TABLES if is_table else SCALAR)


def _is_known(table: exp.Table, names: Collection[tuple[str, ...]]) -> bool:
    """A name that is none of a table is one of a file, if it can be."""
    from sqlglot import exp

    if not isinstance(table.this, exp.Identifier):
        return True  # a function
    parts = tuple(fold(part.name) for part in table.parts)
    return parts in names or (len(parts) == 1 and table.this.args.get("quoted") is True and "." in parts[0])
