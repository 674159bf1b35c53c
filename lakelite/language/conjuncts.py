"""From a WHERE text to the conditions that every wanted row meets, for ruling out fragments by their statistics.

Promises: each condition returned is one that DuckDB demands of every row, compared in the column's own type. Takes only
`column op literal or parameter` (either way round), BETWEEN, IN (literals) and IS [NOT] NULL that stand at the top level under AND, and
the first three of `year(column)`,
and only with values whose type is the natural one of the column's: in all other cases DuckDB may cast the column, not the value.
What is not understood is left out, also a text that cannot be parsed: fewer conditions rule out less, never too much.
Never: input or output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from lakelite.model import ZONED, Column, Comparable, Comparison, Conjunct, decimal_of, fold

if TYPE_CHECKING:
    from sqlglot import exp

_MAX_VALUES = 256  # of IN: each is compared with each fragment
_SIMPLE = re.compile(r"\s*([A-Za-z_]\w*)\s*(=|<=|>=|<|>)\s*(-?\d{1,18})\s*", re.ASCII)
_NATURAL: dict[str, tuple[type, ...]] = {
    **dict.fromkeys("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT HUGEINT".split(), (int,)),
    **dict.fromkeys(("FLOAT", "DOUBLE"), (int, float, Decimal)),
    "DECIMAL": (int, Decimal),
    "VARCHAR": (str,),
    "BOOLEAN": (bool,),
    "DATE": (date,),
    "TIMESTAMP": (date, datetime),
    ZONED: (datetime,),
}
_FLIPPED: dict[Comparison, Comparison] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?", re.ASCII)
_ZONED_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d(:\d\d)?)", re.ASCII)


def conjuncts(where_text: str, columns: Sequence[Column], alias_or_table: str, parameters: Mapping[str, object]) -> tuple[Conjunct, ...]:
    """The conditions in `where_text` (without the word WHERE) on the columns of one table.

    `alias_or_table`: by which name the text can qualify them. `parameters`: values by name without `$`.
    """
    simple = _simple(where_text, columns)
    if simple is not None:
        return (simple,)
    select = parsed(f"SELECT 1 WHERE (\n{where_text}\n)")
    where = None if select is None else select.args.get("where")
    return () if where is None else conditions(where.this, columns, alias_or_table, parameters)


def conditions(
    where: exp.Expr, columns: Sequence[Column], alias_or_table: str, parameters: Mapping[str, object], *, only_qualified: bool = False
) -> tuple[Conjunct, ...]:
    """The same of a WHERE that has been parsed. `only_qualified`: a name alone may be another table's."""
    from sqlglot import exp

    scope = _Scope(columns, alias_or_table, parameters)
    known = [t for t in terms(where) if not only_qualified or all(c.table for c in t.find_all(exp.Column))]
    return tuple(found for term in known for found in scope.conditions(term))


def _simple(where_text: str, columns: Sequence[Column]) -> Conjunct | None:
    """The condition of `integer column op whole number`, the commonest one, for which no parser is needed; None: it is anything else."""
    found = _SIMPLE.fullmatch(where_text)
    if found is None or fold(found[1]) in ("true", "false"):
        return None
    column = next((c for c in columns if fold(c.name) == fold(found[1])), None)
    if column is None or _NATURAL.get(column.type) != (int,):
        return None
    return Conjunct(column.field_id, column.type, cast("Comparison", found[2]), (int(found[3]),))


def parsed(text: str) -> exp.Expr | None:
    """The tree of a statement, or None: nothing is known of it then; DuckDB itself will judge the text."""
    import sqlglot

    try:
        return sqlglot.parse_one(text, dialect="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def terms(where: exp.Expr) -> list[exp.Expr]:
    """What stands under AND at the top level, in order."""
    from sqlglot import exp

    found, open_ = [], [where]
    while open_:
        node = open_.pop()
        if isinstance(node, exp.Paren):
            open_.append(node.this)
        elif isinstance(node, exp.And):
            open_.extend((node.expression, node.this))
        else:
            found.append(node)
    return found


class _Scope:
    """The names that one WHERE can use: lives for one call of `conjuncts`."""

    def __init__(self, columns: Sequence[Column], alias: str, parameters: Mapping[str, object]) -> None:
        self._columns = {fold(column.name): column for column in columns}
        self._alias = fold(alias)
        self._parameters = parameters

    def conditions(self, term: exp.Expr) -> tuple[Conjunct, ...]:
        from sqlglot import exp

        comparisons: dict[type[exp.Expr], Comparison] = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
        if (operator := comparisons.get(type(term))) is not None:
            return self._condition(term.this, operator, [term.expression]) or self._condition(term.expression, _FLIPPED[operator], [term.this])
        if isinstance(term, exp.In) and 0 < len(term.expressions) <= _MAX_VALUES:
            return self._condition(term.this, "=", term.expressions)
        if isinstance(term, exp.Between) and not term.args.get("symmetric"):
            low, high = self._condition(term.this, ">=", [term.args["low"]]), self._condition(term.this, "<=", [term.args["high"]])
            return low + high if low and high else ()
        negated = isinstance(term, exp.Not)
        inner = term.this if negated else term
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and (column := self._column(inner.this)) is not None:
            return (Conjunct(column.field_id, column.type, "is not null" if negated else "is null"),)
        return ()

    def _condition(self, left: exp.Expr, operator: Comparison, right: Sequence[exp.Expr]) -> tuple[Conjunct, ...]:
        from sqlglot import exp

        if isinstance(left, exp.Year):
            return self._of_year(self._column(left.this), operator, [self._value("", node) for node in right])
        column = self._column(left)
        if column is None:
            return ()
        values = [_natural(column.type, self._value(column.type, node)) for node in right]
        known = tuple(value for value in values if value is not None)
        return (Conjunct(column.field_id, column.type, operator, known),) if len(known) == len(values) else ()

    def _of_year(self, column: Column | None, operator: Comparison, years: Sequence[object]) -> tuple[Conjunct, ...]:
        """What year(column) has to be, as bounds of the column: the first day, and the one behind the last."""
        known = sorted(year for year in years if type(year) is int and date.min.year <= year < date.max.year)
        if column is None or column.type not in ("DATE", "TIMESTAMP") or len(known) < len(years):
            return ()
        first, behind = date(known[0], 1, 1), date(known[-1] + 1, 1, 1)
        bounds: dict[Comparison, tuple[tuple[Comparison, date], ...]] = {
            "=": ((">=", first), ("<", behind)), "<": (("<", first),), "<=": (("<", behind),), ">": ((">=", behind),), ">=": ((">=", first),),
        }  # fmt: skip
        return tuple(Conjunct(column.field_id, column.type, bound, (day,)) for bound, day in bounds[operator])

    def _column(self, node: exp.Expr) -> Column | None:
        from sqlglot import exp

        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or node.args.get("db") is not None:
            return None
        if node.table and (fold(node.table) != self._alias or self._alias in self._columns):
            return None  # of another table, or perhaps a field of a struct column
        return self._columns.get(fold(node.name))

    def _value(self, declared: str, node: exp.Expr) -> object:
        """The Python value of a literal or parameter; None for everything else."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self._value(declared, node.this)
        if isinstance(node, exp.Placeholder):
            return self._parameters.get(node.name) if node.name else None
        if isinstance(node, exp.Neg):
            return _negative(_number(node.this))
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal) and node.is_string:
            return node.this if declared == "VARCHAR" else _moment(declared, node.this)
        if type(node) is exp.Cast and isinstance(node.this, exp.Literal) and node.this.is_string and not node.to.expressions:
            return _moment(
                {exp.DType.DATE: "DATE", exp.DType.TIMESTAMPNTZ: "TIMESTAMP", exp.DType.TIMESTAMPTZ: ZONED}.get(node.to.this, ""), node.this.this
            )
        return _number(node)


def _negative(value: int | float | Decimal | None) -> int | float | Decimal | None:
    return None if value is None else value.copy_negate() if isinstance(value, Decimal) else -value


def _number(node: exp.Expr) -> int | float | Decimal | None:
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text: str = node.this
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"\d+\.\d*|\.\d+", text, re.ASCII):
        return Decimal(text)
    return float(text) if re.fullmatch(r"(\d+\.?\d*|\.\d+)[eE][+-]?\d+", text, re.ASCII) else None


def _moment(kind: str, text: str) -> date | None:
    """A DATE or TIMESTAMP from its strict ISO form, or None. One with time zone has to name it: else it is that of the session."""
    pattern = {"DATE": _DAY, "TIMESTAMP": _MOMENT, ZONED: _ZONED_MOMENT}.get(kind)
    if pattern is None or not pattern.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text) if kind == "DATE" else datetime.fromisoformat(text)
    except ValueError:
        return None  # no day of the calendar: DuckDB will say so


def _natural(declared: str, value: object) -> Comparable | None:
    """`value` if DuckDB compares it with a column of the type `declared` in that column's own type, exactly; else None."""
    decimal = decimal_of(declared)
    kinds = _NATURAL.get("DECIMAL" if decimal else declared, ())
    for kind in kinds:
        if type(value) is kind:  # subclasses (of NumPy, of pandas) may be bound as another type
            assert isinstance(value, bool | int | float | Decimal | str | date)
            return value if _fits(value, decimal) and _is_zoned(value) == (declared == ZONED) else None
    return None


def _is_zoned(value: Comparable) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def _fits(value: Comparable, decimal: tuple[int, int] | None) -> bool:
    """Whether the value keeps DuckDB from widening the column. What DECIMAL(width, scale) cannot hold widens it, in the end to DOUBLE."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    exact = Decimal(value)  # Decimal: comparisons are exact, arithmetic would round
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int):
        return False  # NaN or infinite
    if decimal is None:
        return -(2**63) <= exact < 2**64
    width, scale = decimal
    return exponent >= -scale and exact.copy_abs() < 10 ** (width - scale)
