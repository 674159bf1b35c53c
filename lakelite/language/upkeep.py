"""The frames of OPTIMIZE and CHECK LAKE."""

from __future__ import annotations

from lakelite.language.analyse import is_row_local
from lakelite.language.reader import Reader
from lakelite.language.source import plain_with_parameters
from lakelite.language.statements import CheckLake, Name, Optimize, SortColumn, Sql
from lakelite.language.tokens import folded

MOST_SORT_COLUMNS = 8


def read_check(reader: Reader) -> CheckLake:
    """Behind CHECK: LAKE."""
    reader.expect("LAKE")
    repair = reader.accept("REPAIR")
    reader.finish()
    return CheckLake(repair)


def read_optimize(reader: Reader) -> Optimize:
    """Behind OPTIMIZE: [TABLE] t [WHERE condition] [ZORDER BY (columns)]."""
    if reader.sees("TABLE") and reader.sees_identifier(1):
        reader.index += 1
    target = reader.name()
    where = _condition(reader, target) if reader.accept("WHERE") else None
    zorder = _columns(reader) if reader.accept("ZORDER", "BY") else ()
    reader.finish()
    return Optimize(target, where, zorder)


def _condition(reader: Reader, target: Name) -> Sql:
    first = reader.index
    condition = reader.expression("ZORDER")
    source = reader.source
    names = frozenset((folded(target.name),))
    statement = f"DELETE FROM t WHERE {plain_with_parameters(source, first, reader.index)}"
    if any(not isinstance(part, str) for part in condition.parts) or not is_row_local(
        source.text, [], source.tokens[first : reader.index], names, statement
    ):
        raise reader.unsupported("more than conditions on the row's own columns in OPTIMIZE … WHERE", "compare columns with constants", first)
    return condition


def _columns(reader: Reader) -> tuple[SortColumn, ...]:
    """`(a, b)`, or without the parentheses."""
    bracket = reader.accept("(")
    found: list[SortColumn] = []
    while True:
        offset = reader.peek().start
        found.append(SortColumn(reader.identifier("the name of a column"), offset))
        if len({folded(c.name) for c in found}) < len(found):
            raise reader.wrong(f'column "{found[-1].name}" stands twice in ZORDER BY', "name each column once", reader.index - 1)
        if len(found) > MOST_SORT_COLUMNS:
            raise reader.wrong(
                f"ZORDER BY takes at most {MOST_SORT_COLUMNS} columns", index=reader.index - 1, hint="name those that queries filter by most"
            )
        if not reader.accept(","):
            break
    if bracket:
        reader.expect(")")
    return tuple(found)
