"""Which conditions are taken from a WHERE text, and which are left alone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from lakelite.language.conjuncts import conjuncts
from lakelite.model import Column, Conjunct, Field

TYPES = {
    "i": "INTEGER", "d": "DECIMAL(6,2)", "f": "DOUBLE", "s": "VARCHAR", "b": "BOOLEAN", "day": "DATE", "ts": "TIMESTAMP", "u": "UHUGEINT",
    "odd name": "INTEGER", "e": "ENUM('a')", "tz": "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip
COLUMNS = [Column(name, declared, Field(n, name, declared)) for n, (name, declared) in enumerate(TYPES.items(), 1)]
PARAMETERS: dict[str, object] = {"1": 5, "name": "x", "nothing": None, "aware": datetime(2020, 1, 1, tzinfo=UTC), "flag": True, "nan": Decimal("NaN")}


def found(where: str, parameters: dict[str, object] | None = None) -> list[tuple[str, str, tuple[object, ...]]]:
    names = {c.field_id: c.name for c in COLUMNS}
    return [(names[c.field_id], c.operator, c.values) for c in conjuncts(where, COLUMNS, "t", PARAMETERS if parameters is None else parameters)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("i = 5", [("i", "=", (5,))]),
        ("I == -5", [("i", "=", (-5,))]),
        ("5 > t.i", [("i", "<", (5,))]),
        ('"ODD NAME" >= (5)', [("odd name", ">=", (5,))]),
        ("i BETWEEN 1 AND $1", [("i", ">=", (1,)), ("i", "<=", (5,))]),
        ("i IN (1, $1, -3)", [("i", "=", (1, 5, -3))]),
        ("(i > 1 AND (s = 'it''s')) AND i < 9", [("i", ">", (1,)), ("s", "=", ("it's",)), ("i", "<", (9,))]),
        ("s = $name", [("s", "=", ("x",))]),
        ("s >= 'a\\'", [("s", ">=", ("a\\",))]),
        ("i IS NULL AND s IS NOT NULL AND e NOTNULL", [("i", "is null", ()), ("s", "is not null", ()), ("e", "is not null", ())]),
        ("d > 1.5", [("d", ">", (Decimal("1.5"),))]),
        ("f > 1.5 AND f < 1e3", [("f", ">", (Decimal("1.5"),)), ("f", "<", (1000.0,))]),
        ("b = true", [("b", "=", (True,))]),
        ("day >= '2020-01-31' AND day < DATE '2020-02-01'", [("day", ">=", (date(2020, 1, 31),)), ("day", "<", (date(2020, 2, 1),))]),
        ("ts >= '2020-01-31 10:00:00.5'", [("ts", ">=", (datetime.fromisoformat("2020-01-31 10:00:00.5"),))]),
        ("ts >= TIMESTAMP '2020-01-31'", [("ts", ">=", (datetime.fromisoformat("2020-01-31"),))]),
        ("ts >= DATE '2020-01-31'", [("ts", ">=", (date(2020, 1, 31),))]),
        ("year(ts) = 2024", [("ts", ">=", (date(2024, 1, 1),)), ("ts", "<", (date(2025, 1, 1),))]),
        ("2024 < YEAR(day) AND year(day) <= $1 + 0 AND year(day) < 2030", [("day", ">=", (date(2025, 1, 1),)), ("day", "<", (date(2030, 1, 1),))]),
        ("year(t.ts) IN (2020, 2019)", [("ts", ">=", (date(2019, 1, 1),)), ("ts", "<", (date(2021, 1, 1),))]),
        ("year(ts) BETWEEN 2019 AND 2021", [("ts", ">=", (date(2019, 1, 1),)), ("ts", "<", (date(2022, 1, 1),))]),
        ("tz > '2020-01-01 00:00:00Z'", [("tz", ">", (datetime(2020, 1, 1, tzinfo=UTC),))]),
        ("i = 1 -- a comment", [("i", "=", (1,))]),
    ],
)
def test_conditions_that_are_taken(where: str, expected: list[tuple[str, str, tuple[object, ...]]]) -> None:
    assert found(where) == expected


LEFT_ALONE = """
i = 5 OR s = 'a'; NOT i = 5; i <> 5; i = 5 IS TRUE; i = 5 IS NULL; i + 1 = 5; i = 5 + 1; i = i; i = 5::INTEGER; abs(i) = 5
i = '5'; i = 5.5; i = 1e3; i = true; i = 5 = true; i = NULL; i = $nothing; i = $flag; i = $missing; i = ?; i = 99999999999999999999
s = 5; s = E'a'; s = $$a$$; s COLLATE NOCASE = 'a'; s = 'a' COLLATE NOCASE; s LIKE 'a'; s = 'a' || 'b'; s IN ('a', 5); s BETWEEN 'a' AND 5
year(i) = 2024; year(tz) = 2024; year(ts) = '2024'; year(ts) = 0; year(ts) = 9999; year(ts) = 2024.5; year(ts + i) = 3; year(ts) IN (2024, $flag)
tz = TIMESTAMP '2020-01-01 00:00:00'; tz = DATE '2020-01-01'; tz = TIMESTAMPTZ '2020-01-01'; tz > '2020-01-01 25:00:00Z'
d = 1.555; d = 10000; d = 1e0; d = $nan; f = $nan; f = 'nan'; e = 'a'; u = 5; tz = '2020-01-01'
day = 'today'; day = '2020-1-1'; day = '2020-02-31'; day = TIMESTAMP '2020-01-01'; day = '2020-01-01 00:00:00'
ts = '2020-01-01 00:00:00+02'; ts = '2020-01-01 00:00:00.0000001'; ts = $aware
x = 5; other.i = 5; main.t.i = 5; i[1] = 5; i IN (SELECT 1); i BETWEEN SYMMETRIC 9 AND 1; i NOT IN (1); i NOT BETWEEN 1 AND 2
i IS DISTINCT FROM 5; (i, s) = (5, 'a'); i = 5); i = 5) OR (true; i =; 'unclosed; i = TRY_CAST('5' AS INTEGER); i = 0x10
"""
TOO_LONG = "i IN (" + ", ".join(map(str, range(300))) + ")"
TOO_DEEP = "(" * 500 + "i = 5" + ")" * 500


@pytest.mark.parametrize("where", [*(w for line in LEFT_ALONE.strip().splitlines() for w in line.split("; ")), "", TOO_LONG, TOO_DEEP])
def test_conditions_that_are_left_alone(where: str) -> None:
    assert found(where) == []


def test_a_qualifier_that_can_also_be_a_struct_column_is_left_alone() -> None:
    columns = [
        Column("t", "STRUCT(i INTEGER)", Field(1, "t", "STRUCT(i INTEGER)", (Field(2, "i", "INTEGER"),))),
        Column("i", "INTEGER", Field(3, "i", "INTEGER")),
    ]
    assert conjuncts("t.i = 5", columns, "t", {}) == ()
    assert conjuncts("i = 5", columns, "t", {}) == (Conjunct(3, "INTEGER", "=", (5,)),)


def test_subclasses_of_natural_types_are_left_alone() -> None:
    class Text(str):
        pass

    assert found("s = $p", {"p": Text("a")}) == []
    assert found("s = $p", {"p": "a"}) == [("s", "=", ("a",))]
