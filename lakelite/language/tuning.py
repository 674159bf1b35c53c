"""How a table is kept: PARTITIONED BY (…) and options, in CREATE TABLE and in ALTER TABLE … SET and RESET.

Promises: an error that shows its place for all it cannot read. Which options there are, and whether there is such a column, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lakelite.language.reader import Reader
from lakelite.language.statements import Name, Option, PartitionBy, TuneTable, Tuning
from lakelite.language.tokens import unquote
from lakelite.mapping.names import did_you_mean

TRANSFORMS = ("year", "month", "day", "hour", "bucket")
_WHAT = "expected a column, or year(c), month(c), day(c), hour(c) or bucket(n, c)"
_MOST_BUCKETS = 1_000_000
_Item = TypeVar("_Item")


def read_tuning(reader: Reader) -> Tuning:
    """The clauses behind the columns of a CREATE TABLE, in any order; none of them is no error."""
    found = Tuning()
    while True:
        if not found.partitioned_by and reader.accept("PARTITIONED", "BY"):
            found = Tuning(_listed(reader, _partition_by), found.options)
        elif not found.options and reader.sees("WITH", "("):
            reader.index += 1
            found = Tuning(found.partitioned_by, _listed(reader, _option))
        else:
            return found


def read_tune(reader: Reader, target: Name, if_exists: bool) -> TuneTable:
    """ALTER TABLE t, at SET or RESET."""
    is_set = reader.accept_one("SET", "RESET") == "SET"
    if reader.accept("PARTITIONED", "BY"):
        made = TuneTable(target, if_exists, partitioned_by=_listed(reader, _partition_by) if is_set else ())
    elif reader.sees("("):
        made = TuneTable(target, if_exists, options=_listed(reader, _option if is_set else _reset))
    else:
        raise reader.syntax_error(f"expected (option{' = value' if is_set else ''}, …) or PARTITIONED BY{' (…)' if is_set else ''}")
    reader.finish()
    return made


def _listed(reader: Reader, one: Callable[[Reader], _Item]) -> tuple[_Item, ...]:
    """`(item, …)`; at least one."""
    reader.expect("(")
    found = [one(reader)]
    while reader.accept(","):
        found.append(one(reader))
    reader.expect(")")
    return tuple(found)


def _reset(reader: Reader) -> Option:
    offset = reader.peek().start
    return Option(_text(reader, "the name of an option"), None, offset)


def _option(reader: Reader) -> Option:
    name = _reset(reader)
    if not reader.accept_one("=", "=>"):
        raise reader.syntax_error("expected = and a value")
    return Option(name.name, _text(reader, "a value: a number, a word or a text in quotes"), name.offset)


def _text(reader: Reader, what: str) -> str:
    """A word, a number or a string, as text."""
    sign = "-" if reader.accept("-") else ""
    token = reader.peek()
    if token.kind not in ("word", "number", "string", "quoted"):
        raise reader.syntax_error(f"expected {what}")
    reader.index += 1
    shown = reader.source.shown(token)
    if token.kind == "string":
        return shown[1:-1].replace("''", "'")
    return sign + (unquote(shown) if token.kind == "quoted" else shown)


def _partition_by(reader: Reader) -> PartitionBy:
    offset = reader.peek().start
    if reader.peek(1).word != "(":
        return PartitionBy(reader.identifier("a column"), None, None, offset)
    name = reader.source.shown(reader.peek())
    if name.lower() not in TRANSFORMS:
        near = did_you_mean(name, TRANSFORMS, "the others are year, month, day and hour")
        raise reader.unsupported(f"PARTITIONED BY {name}(…)", f"{_WHAT.removeprefix('expected ')}; {near}")
    reader.index += 2
    buckets = _buckets(reader) if name.lower() == "bucket" else None
    column = reader.identifier("a column")
    reader.expect(")")
    return PartitionBy(column, name.lower(), buckets, offset)


def _buckets(reader: Reader) -> int:
    shown = reader.source.shown(reader.peek())
    if reader.peek().kind != "number" or not shown.isdecimal() or not 1 <= int(shown) <= _MOST_BUCKETS:
        raise reader.wrong(
            f"bucket(n, c) takes a whole number n from 1 to {_MOST_BUCKETS} first", hint="such as PARTITIONED BY (bucket(16, user_id))"
        )
    reader.index += 1
    reader.expect(",")
    return int(shown)
