"""PEP 249's type constructors and type objects.

Owns: which of DuckDB's types count as strings, numbers or moments. A type object equals the type codes of
`cursor.description`, by the name of the type. BOOLEAN, INTERVAL, UUID and nested types equal none of them.
"""

from __future__ import annotations

import datetime
from typing import Any

from lakelite.errors import InterfaceError

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date at `ticks` seconds since 1970."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day at `ticks` seconds since 1970."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local time at `ticks` seconds since 1970, without a zone."""
    return datetime.datetime.fromtimestamp(ticks)  # noqa: DTZ006


def Binary(data: Any) -> bytes:
    """A BLOB value of anything that holds bytes. InterfaceError for what does not: a text has to be encoded first."""
    try:
        return bytes(memoryview(data))
    except TypeError as error:
        raise InterfaceError(f"Binary takes bytes, not {type(data).__name__}", hint="encode a text first: text.encode()") from error


class TypeObject:
    """Equals the type codes of a kind of column."""

    def __init__(self, name: str, *types: str) -> None:
        self._name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self is other
        text = str(other)
        return text.partition("(")[0] in self._types and not text.endswith("]")

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"lakelite.{self._name}"


STRING = TypeObject("STRING", "VARCHAR", "JSON", "ENUM", "BIT")
BINARY = TypeObject("BINARY", "BLOB")
NUMBER = TypeObject(
    "NUMBER", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM", "FLOAT",
    "DOUBLE", "DECIMAL",
)  # fmt: skip
DATETIME = TypeObject(
    "DATETIME", "DATE", "TIME", "TIME_NS", "TIME WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS",
)  # fmt: skip
ROWID = TypeObject("ROWID")
