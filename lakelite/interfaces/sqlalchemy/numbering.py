"""Numbers for integer primary keys: an INSERT that gives none takes the greatest of the table plus one.

A lake has no sequences. The number is part of the statement, so that it is found again where the statement runs again on a newer head:
in autocommit a number is never given twice, and a transaction that was shown its numbers (RETURNING) is a conflict where others took them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Identity, Table, exc, func, inspect, literal_column, select
from sqlalchemy.sql import dml

ROW = "sen_counter"  # of SQLAlchemy's own form INSERT … SELECT … FROM (VALUES …) AS imp_sen(…, sen_counter), counted from 0


def numbered_column(table: Any) -> Any:
    """The column that is numbered: the integer primary key, where neither its model nor its DDL has a default; else None."""
    column = table._autoincrement_column if isinstance(table, Table) else None
    if column is None:
        return None
    of_model = column.default is None or column.default.is_sequence
    of_table = column.server_default is None or isinstance(column.server_default, Identity)
    return column if of_model and of_table else None


def next_number(column: Any, offset: str) -> Any:
    """The greatest number in the table, plus `offset`, which is SQL text."""
    last = column.table.alias("lakelite_last")
    greatest = select(func.max(last.c[column.key])).correlate(None).scalar_subquery()
    return func.coalesce(greatest, literal_column("0")) + literal_column(offset)


class Numbered(NamedTuple):
    """`one_by_one`: the sets of parameters must not be joined to one INSERT, since all of its rows would get one number."""

    statement: dml.Insert
    one_by_one: bool = False


def numbered(statement: dml.Insert, given: Sequence[str] | None, *, many: bool) -> Numbered:
    """The statement with the number of each row, if it has none. `given`: keys of the values that come with its execution; `many`: there are
    several sets of them."""
    column = numbered_column(statement.table)
    if column is None or _has(statement, column, given) or (given is None and not _has_values(statement)):
        return Numbered(statement)
    if statement.select is not None:
        return Numbered(_numbered_select(statement, column))
    if statement._multi_values:
        return Numbered(_numbered_rows(statement, column))
    if not many:
        return Numbered(statement.values({column: next_number(column, "1")}))
    return _numbered_sets(statement, column, given)


def _numbered_sets(statement: dml.Insert, column: Any, given: Sequence[str] | None) -> Numbered:
    if not statement._returning and not statement.table.implicit_returning:
        what = f"table {statement.table.name} has implicit_returning=False: rows of an executemany cannot be numbered there"
        raise exc.CompileError(f"{what}; give a value for {column.key}")
    if not statement._returning and not statement._return_defaults:
        statement = statement.return_defaults(column)
    if not _is_counted(statement, column, given):
        return Numbered(statement.values({column: next_number(column, "1")}), one_by_one=True)
    changed = statement.values({column: next_number(column, f"{ROW} + 1")})
    changed._sort_by_parameter_order = True  # the rows of such an INSERT are counted
    return Numbered(changed)


def _is_counted(statement: dml.Insert, column: Any, given: Sequence[str] | None) -> bool:
    """Whether SQLAlchemy counts the rows: not for a table with another sentinel, nor where a row has no value but its number."""
    table: Any = statement.table
    sentinels = table._sentinel_column_characteristics.columns
    others = bool(given or statement._values) or any(c.default is not None for c in table.c if c is not column)
    return others and sentinels is not None and list(sentinels) == [column]


def _has_values(statement: dml.Insert) -> bool:
    return bool(statement._values or statement._multi_values or statement.select is not None)


def _has(statement: dml.Insert, column: Any, given: Sequence[str] | None) -> bool:
    rows: Sequence[Any] = statement._multi_values[0] if statement._multi_values else [statement._values or ()]
    keys = [*(given or ()), *(statement._select_names or ()), *rows[0]]
    return not {getattr(key, "key", key) for key in keys}.isdisjoint(_names(statement, column))


def _names(statement: dml.Insert, column: Any) -> set[str]:
    """What a column may be called: by the table, and by the attribute of the mapped class."""
    entity = statement._propagate_attrs.get("plugin_subject")
    names = {column.key}
    if entity is not None:
        names.add(inspect(entity).mapper.get_property_by_column(column).key)
    return names


def _numbered_rows(statement: dml.Insert, column: Any) -> dml.Insert:
    changed = statement._generate()
    rows: list[Any] = [row for rows in statement._multi_values for row in rows]
    changed._multi_values = ([{**row, column: next_number(column, str(number))} for number, row in enumerate(rows, 1)],)
    return changed


def _numbered_select(statement: dml.Insert, column: Any) -> dml.Insert:
    assert statement.select is not None
    rows = statement.select.subquery("lakelite_rows")
    number = next_number(column, "row_number() OVER ()")
    changed = statement._generate()
    changed.select = select(*rows.c, number)
    changed._select_names = [*(statement._select_names or ()), column.key]
    return changed
