"""Statistics of a fragment's columns, and what they and its buckets rule out.

Promises: no row of a fragment that `candidates` leaves out meets the condition, by DuckDB's own comparison. Whatever is not known, or is
compared otherwise in Python than in DuckDB, may match.
Never: input or output.

A column keeps its statistics when it is renamed or widened (INTEGER to BIGINT, DATE to TIMESTAMP): bounds are read by the
type that the condition has.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from lakelite.model import ZONED, Comparable, Conjunct, Field, Fragment, PartitionKey, Statistics, quote
from lakelite.storage.buckets import bucket_of

if TYPE_CHECKING:
    import pyarrow as pa

INTEGERS = frozenset("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT HUGEINT".split())
FLOATS = frozenset({"FLOAT", "DOUBLE"})

_INTEGER = re.compile(r"-?\d{1,40}")
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40})?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
_LONGEST_BOUND = 200
SLACK = 1e-6  # a FLOAT keeps 24 bits, and its text fewer: wider than every rounding between FLOAT, DOUBLE, DECIMAL and integers

_Key = tuple[int, int | float | Decimal | bytes]  # the first number puts NaN above all else


def from_copy(fields: Sequence[Field], column_statistics: Mapping[str, Mapping[str, str]], row_count: int) -> tuple[Statistics, ...]:
    """The statistics of the leaf fields among `fields`, from COPY … (RETURN_STATS true)'s `column_statistics`.

    Nested columns have none. A column whose values DuckDB did not count as rows (INTERVAL) has none either.
    """
    leaves = ((field, column_statistics.get(quote(field.name))) for field in fields if not field.children)
    return tuple(_from_one(field, found) for field, found in leaves if found is not None and found.get("num_values") == str(row_count))


def from_arrow(fields: Sequence[Field], rows: pa.Table) -> tuple[Statistics, ...]:
    """The statistics of the leaf fields among `fields` of rows held as Arrow, in columns f<field id>; bounds where their text is sure."""
    return tuple(_from_column(field, rows.column(f"f{field.field_id}")) for field in fields if not field.children)


def _from_column(field: Field, column: pa.ChunkedArray) -> Statistics:
    import pyarrow.compute as pc

    low = high = None
    if field.type in INTEGERS or field.type in ("VARCHAR", "DATE"):
        bounds = pc.min_max(column)
        low, high = (_text(bounds[side]) for side in ("min", "max"))
        if low is None or high is None or max(len(low), len(high)) > _LONGEST_BOUND:
            low = high = None
    return Statistics(field.field_id, low, high, column.null_count, exact=low is not None, may_hold_nan=field.type in FLOATS)


def _text(bound: pa.Scalar) -> str | None:
    try:
        value = bound.as_py()
    except OverflowError:  # a date that Python cannot hold, such as infinity
        return None
    return None if value is None else str(value)


def _from_one(field: Field, found: Mapping[str, str]) -> Statistics:
    null_count = found.get("null_count")
    return Statistics(
        field_id=field.field_id,
        minimum=found.get("min"),
        maximum=found.get("max"),
        null_count=None if null_count is None else int(null_count),
        exact=found.get("min_is_exact") == "true" and found.get("max_is_exact") == "true",
        may_hold_nan=field.type in FLOATS and found.get("has_nan") != "false",
    )


def candidates(fragments: Iterable[Fragment], conjuncts: Iterable[Conjunct]) -> Iterator[Fragment]:
    """Those of the fragments that can hold a row that meets all of the conditions."""
    wanted = [(conjunct, [_key(conjunct.type, value) for value in conjunct.values]) for conjunct in conjuncts]
    for fragment in fragments:
        for conjunct, keys in wanted:
            if not _may_match(fragment, conjunct, keys):
                break
        else:
            yield fragment


def _may_match(fragment: Fragment, conjunct: Conjunct, keys: Sequence[_Key | None]) -> bool:
    """Whether a row of the fragment can meet the condition, whose values are `keys`."""
    if conjunct.operator == "=" and fragment.partition and not all(_may_hold(key, text, conjunct) for key, text in fragment.partition):
        return False
    for known in fragment.statistics:
        if known.field_id == conjunct.field_id:
            break
    else:
        return True
    if conjunct.operator == "is null":
        return known.null_count != 0
    if known.null_count == fragment.row_count:
        return False
    if conjunct.operator == "is not null":
        return True
    lowest, highest = _bounds(known, conjunct.type)
    return any(wanted is None or _within(lowest, highest, conjunct.operator, wanted) for wanted in keys)


def _may_hold(key: PartitionKey, bucket: str | None, conjunct: Conjunct) -> bool:
    """Whether a value that a condition asks for can be in a fragment's bucket."""
    if key.buckets is None or key.field_id != conjunct.field_id:
        return True
    found = [bucket_of(value, conjunct.type, key.buckets) for value in conjunct.values]
    return None in found or (bucket is not None and int(bucket) in found)


def may_share(mine: Fragment, theirs: Fragment, columns: Sequence[tuple[int, str]]) -> bool:
    """Whether a row of each can have the same values, none of them NULL, in all `columns`: (field id, declared type)."""
    return all(_may_meet(_of(mine, field_id), _of(theirs, field_id), declared) for field_id, declared in columns)


def holding_any(fragments: Iterable[Fragment], field_id: int, declared: str, texts: Iterable[str], *, between: bool = False) -> list[Fragment]:
    """The fragments in which one of some values of a column may be; with `between` also one between the least and the greatest of them.

    `texts`: what DuckDB makes of the values as VARCHAR; none of them NULL.
    """
    read = [_read(declared, text) for text in texts]
    keys = sorted(key for key in read if key is not None)
    if len(keys) < len(read):
        return list(fragments)
    return [f for f in fragments if keys and _may_hold_any(_of(f, field_id), declared, keys, between)]


def _may_hold_any(one: tuple[Statistics | None, int], declared: str, keys: Sequence[_Key], between: bool) -> bool:
    known, rows = one
    if known is None:
        return True
    low, high = _bounds(known, declared)
    first = 0 if low is None else bisect_left(keys, low)
    return known.null_count != rows and first < len(keys) and (high is None or keys[0 if between else first] <= high)


def _of(fragment: Fragment, field_id: int) -> tuple[Statistics | None, int]:
    return next((s for s in fragment.statistics if s.field_id == field_id), None), fragment.row_count


def _may_meet(mine: tuple[Statistics | None, int], theirs: tuple[Statistics | None, int], declared: str) -> bool:
    if any(known is not None and known.null_count == rows for known, rows in (mine, theirs)):
        return False
    if mine[0] is None or theirs[0] is None:
        return True
    (low, high), (other_low, other_high) = _bounds(mine[0], declared), _bounds(theirs[0], declared)
    is_below = high is not None and other_low is not None and high < other_low
    is_above = low is not None and other_high is not None and low > other_high
    return not (is_below or is_above)


def _within(lowest: _Key | None, highest: _Key | None, operator: str, wanted: _Key) -> bool:
    may_reach_down = lowest is None or lowest < wanted or (lowest == wanted and operator != "<")
    may_reach_up = highest is None or highest > wanted or (highest == wanted and operator != ">")
    return (operator in (">", ">=") or may_reach_down) and (operator in ("<", "<=") or may_reach_up)


def is_compared(declared: str) -> bool:
    """Whether bounds of a column of that type leave fragments out."""
    return declared in INTEGERS | FLOATS | {"VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", ZONED} or declared.startswith("DECIMAL(")


@lru_cache(maxsize=65_536)  # the same few statistics are asked by one statement after the other
def _bounds(statistics: Statistics, declared: str) -> tuple[_Key | None, _Key | None]:
    lowest = None if statistics.minimum is None else _read(declared, statistics.minimum)
    highest = None if statistics.maximum is None else _read(declared, statistics.maximum)
    if declared in FLOATS:
        lowest, highest = _loosened(lowest, -1), _loosened(highest, 1)
    if statistics.may_hold_nan:
        highest = (1, 0)
    return lowest, highest


def _loosened(bound: _Key | None, direction: int) -> _Key | None:
    if bound is None or not isinstance(bound[1], float) or math.isinf(bound[1]):
        return bound
    return 0, bound[1] + direction * (abs(bound[1]) * SLACK + 1e-40)


def _read(declared: str, text: str) -> _Key | None:
    """A bound from DuckDB's text; None where Python has no such value (years beyond 9999, BC)."""
    if declared == "VARCHAR":
        return 0, text.encode()
    if declared == "BOOLEAN" or declared in INTEGERS:
        return (0, int(text)) if _INTEGER.fullmatch(text) else None
    if declared.startswith("DECIMAL("):
        return (0, Decimal(text)) if _NUMBER.fullmatch(text) else None
    if declared in FLOATS:
        return None if text == "nan" else (0, float(text))
    if declared in ("DATE", "TIMESTAMP"):
        return _read_moment(text)
    if declared == ZONED:
        return _read_moment(text.removesuffix("+00"))  # DuckDB writes statistics in UTC, whatever the session's time zone
    return None


def _read_moment(text: str) -> _Key | None:
    if text in ("infinity", "-infinity"):
        return 0, math.inf if text == "infinity" else -math.inf
    if not _MOMENT.fullmatch(text) or text.startswith("0000"):
        return None
    return _moment_key(datetime.fromisoformat(text))


def _key(declared: str, value: Comparable) -> _Key | None:
    """A condition's value, to be compared with the bounds of a column of that type; None: not comparable with certainty."""
    if declared == "VARCHAR":
        return (0, value.encode(errors="surrogatepass")) if isinstance(value, str) else None
    if declared in ("DATE", "TIMESTAMP"):
        return _moment_key(value) if isinstance(value, date) else None
    if declared == ZONED:
        return _moment_key(value.replace(tzinfo=None), value.utcoffset()) if isinstance(value, datetime) else None
    if isinstance(value, str | date):
        return None
    if declared in FLOATS:
        return (1, 0) if math.isnan(value) else (0, float(value))
    if declared == "BOOLEAN" or declared in INTEGERS or declared.startswith("DECIMAL("):
        return None if isinstance(value, float) else (0, value)
    return None


def _moment_key(value: date, offset: timedelta | None = None) -> _Key:
    """In microseconds; of a date its midnight. `offset`: from UTC."""
    seconds = value.toordinal() * 86_400 - (0 if offset is None else round(offset.total_seconds()))
    if not isinstance(value, datetime):
        return 0, seconds * 1_000_000
    return 0, (seconds + value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000 + value.microsecond
