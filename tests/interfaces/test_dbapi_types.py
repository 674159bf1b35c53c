"""PEP 249's type objects and constructors."""

from __future__ import annotations

import array
import datetime as dt
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

import lakelite

KINDS = {
    lakelite.STRING: ["VARCHAR", "JSON", "BIT", "ENUM('a', 'it''s (b]')"],
    lakelite.BINARY: ["BLOB"],
    lakelite.NUMBER: [
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM", "FLOAT", "DOUBLE",
        "DECIMAL(5,2)", "DECIMAL(38,0)",
    ],
    lakelite.DATETIME: [
        "DATE", "TIME", "TIME_NS", "TIMETZ", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ",
    ],
    None: ["BOOLEAN", "INTERVAL", "UUID", "INTEGER[]", "INTEGER[3]", "DECIMAL(5,2)[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "UNION(a INTEGER)"],
}  # fmt: skip
OBJECTS = (lakelite.STRING, lakelite.BINARY, lakelite.NUMBER, lakelite.DATETIME, lakelite.ROWID)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_type_object_equals_the_codes_of_its_columns(lake: lakelite.Connection, kind: Any) -> None:
    """Of a streamed result, and of the type's name as SHOW and DESCRIBE give it."""
    for type_name in KINDS[kind]:
        code = lake.execute(f"select null::{type_name} as x").description[0][1]
        for found in (code, str(code)):
            assert [one for one in OBJECTS if found == one] == ([] if kind is None else [kind]), type_name
            assert [one for one in OBJECTS if one == found] == ([] if kind is None else [kind]), type_name
            assert [one for one in OBJECTS if found != one] == [one for one in OBJECTS if one is not kind], type_name


def test_type_objects_of_held_results(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer)")
    description = lake.execute("describe history").description
    assert description[0][1] == lakelite.NUMBER
    assert [d[0] for d in description if d[1] == lakelite.STRING] != []
    assert lake.execute("show tables").description[0][1] == lakelite.STRING


def test_type_objects_among_themselves() -> None:
    assert len(set(OBJECTS)) == 5
    assert [[a == b for b in OBJECTS] for a in OBJECTS] == [[a is b for b in OBJECTS] for a in OBJECTS]
    assert [repr(one) for one in OBJECTS] == [f"lakelite.{name}" for name in ("STRING", "BINARY", "NUMBER", "DATETIME", "ROWID")]
    assert lakelite.STRING != 5
    assert lakelite.NUMBER != "ROWID"


@pytest.fixture
def in_new_york() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "EST5EDT"
    time.tzset()
    yield
    os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
    time.tzset()


@pytest.mark.usefixtures("in_new_york")
def test_constructors_make_values_that_go_in_and_come_back(lake: lakelite.Connection) -> None:
    """Ticks are in local time."""
    ticks = dt.datetime(2002, 12, 25, 3, 45, 30, 500000, tzinfo=dt.UTC).timestamp()
    values = {
        "a": lakelite.Date(2002, 12, 25),
        "b": lakelite.Time(13, 45, 30),
        "c": lakelite.Timestamp(2002, 12, 25, 13, 45, 30),
        "d": lakelite.DateFromTicks(ticks),
        "e": lakelite.TimeFromTicks(ticks),
        "f": lakelite.TimestampFromTicks(ticks),
        "g": lakelite.Binary(b"\x00\xff"),
    }
    assert values["d"] == dt.date(2002, 12, 24)
    assert values["e"] == dt.time(22, 45, 30, 500000)
    assert values["f"] == dt.datetime(2002, 12, 24, 22, 45, 30, 500000)
    lake.execute("create table t (a date, b time, c timestamp, d date, e time, f timestamp, g blob)")
    lake.execute("insert into t values ($a, $b, $c, $d, $e, $f, $g)", values)
    cursor = lake.execute("from t")
    assert [d[1] == lakelite.DATETIME for d in cursor.description] == [True] * 6 + [False]
    assert cursor.fetchall() == [tuple(values.values())]


def test_binary_takes_whatever_holds_bytes() -> None:
    for data in (b"ab", bytearray(b"ab"), memoryview(b"ab"), array.array("B", b"ab")):
        assert lakelite.Binary(data) == b"ab"
    for data in ("ab", 2, None, [97, 98]):
        with pytest.raises(lakelite.InterfaceError, match="Binary takes bytes"):
            lakelite.Binary(data)
