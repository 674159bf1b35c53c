"""The DB-API: parameters, the values that go in and come back, and executemany."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lakelite


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("select a from t where a = ? and b = ?", [2, "two"]),
        ("select a from t where a = ? and b = ?", (2, "two")),
        ("select a from t where a = $1 and b = $2", [2, "two"]),
        ("select a from t where b = $2 and a = $1", [2, "two"]),
        ("select a from t where a = $a and b = $b and a = $a", {"a": 2, "b": "two", "more": 5}),
        ("select a from t where a = :a and b = :b", {"a": 2, "b": "two"}),
        ("select a from t where a=:a", {"a": 2}),
        ("select a from t where a::integer = :a -- :b ?", {"a": 2}),
        ("select a from t where a = $a and '? $1 :a' <> \"b\" /* ? */", {"a": 2}),
    ],
)
def test_styles_of_parameters(con: lakelite.Connection, sql: str, parameters: Any) -> None:
    assert con.execute(sql, parameters).fetchall() == [(2,)]


@pytest.mark.parametrize("first", ["?", "$1", "$a", ":a"])
@pytest.mark.parametrize("second", ["?", "$1", "$a", ":a"])
def test_a_statement_takes_one_style(con: lakelite.Connection, first: str, second: str) -> None:
    sql = f"select a from t where a = {first} or a = {second}"
    named = first[1:] == "a" or second[1:] == "a"
    values: Any = {"a": 2} if named else [2, 2] if (first, second) == ("?", "?") else [2]
    if first == second:
        assert con.execute(sql, values).fetchall() == [(2,)]
        return
    with pytest.raises(lakelite.ProgrammingError, match="takes one style of parameters") as caught:
        con.execute(sql, values)
    assert caught.value.position is not None
    assert caught.value.position.column == sql.rindex(second) + 1


@pytest.mark.parametrize(
    ("sql", "values", "words"),
    [
        ("select ?", None, "has 1 parameter, but the number of values is 0"),
        ("select ?", [], "has 1 parameter, but the number of values is 0"),
        ("select ?", [1, 2], "has 1 parameter, but the number of values is 2"),
        ("select 1", [1], "has 0 parameters, but the number of values is 1"),
        ("select $2", [1], "has 2 parameters, but the number of values is 1"),
        ("select $0", [1], r"there is no parameter \$0"),
        ("select $0, $1", [1], r"there is no parameter \$0"),
        ("select $99999999999999999999", [1], r"there is no parameter \$9999"),
        ("select ?", "x", "a sequence or a mapping"),
        ("select ?", b"x", "a sequence or a mapping"),
        ("select ?", {1}, "a sequence or a mapping"),
        ("select ?", 5, "a sequence or a mapping"),
        ("select ?", iter([1]), "a sequence or a mapping"),
        ("select ?", {"a": 1}, "the parameters have no names"),
        ("select $a", [1], "has a name"),
        ("select $a", {"b": 1}, "no value was given for the parameter a"),
        ("select :a", [1], "or with a mapping [$]name or :name"),
        ("select :a", {"b": 1}, "syntax error"),
    ],
)
def test_values_that_do_not_fit(con: lakelite.Connection, sql: str, values: Any, words: str) -> None:
    with pytest.raises(lakelite.ProgrammingError, match=words):
        con.execute(sql, values)
    assert con.execute("select count(*) from t").fetchone() == (3,)


def test_what_counts_as_a_sequence_of_values(con: lakelite.Connection) -> None:
    """ "A sequence is anything with __getitem__ and a length", in PEP 249's words; so are the sets of an executemany."""

    class Row:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            return (7, 8)[index]

    for values in ((7, 8), [7, 8], range(7, 9), Row(), np.array([7, 8]), np.array([7, 8], dtype=object)):
        assert con.execute("select ? + 0, ? + 0", values).fetchall() == [(7, 8)]
    assert con.executemany("insert into t values (?, ?)", np.array([[7, 8], [9, 10]])).rowcount == 2
    assert con.executemany("insert into t values (?, ?)", ((n, None) for n in range(2))).rowcount == 2
    for wrong in ({"a": 1}, "ab", 5, None):
        with pytest.raises(lakelite.ProgrammingError, match="parameter sets"):
            con.executemany("insert into t values (?, ?)", wrong)


def test_an_error_of_the_callers_own_sets_is_the_callers(con: lakelite.Connection) -> None:
    def sets() -> Iterator[list[Any]]:
        yield [1, "x"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        con.executemany("insert into t values (?, ?)", sets())
    assert con.execute("select count(*) from t").fetchone() == (3,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([np.int64(1), np.int8(2)], [1, 2]),
        ((np.float32(1.5), None), [1.5, None]),
        ({"a": np.int64(1), "b": [np.bool_(True)]}, {"a": 1, "b": [True]}),
        (np.array([1, 2]), [1, 2]),
        (np.array([[1], [2]]), [[1], [2]]),
        (np.float16(0.5), 0.5),
        (np.timedelta64(5, "s"), dt.timedelta(seconds=5)),
        (np.timedelta64(1500, "ns"), dt.timedelta(microseconds=1)),
        (np.timedelta64("NaT"), None),
        (np.datetime64("NaT"), None),
        (np.datetime64("2020-01-01T00:00:00.000001", "ns"), dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
        (np.datetime64("NaT", "ns"), None),
        (np.ma.masked, None),
        (memoryview(b"ab"), b"ab"),
        (decimal.Decimal("NaN"), None),
        ((1, 2), [1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_as_they_come_from_elsewhere(con: lakelite.Connection, value: Any, expected: Any) -> None:
    (found,) = con.execute("select ?", [value]).fetchone()
    assert found == expected or (isinstance(value, decimal.Decimal) and math.isnan(found))


@pytest.mark.parametrize(
    ("value", "type_name", "text"),
    [
        (np.datetime64("2020-01-01T00:00:00.000000001"), "TIMESTAMP_NS", "2020-01-01 00:00:00.000000001"),
        (np.datetime64("1969-12-31T23:59:59.999999999999", "ps").astype("datetime64[ns]"), "TIMESTAMP_NS", "1969-12-31 23:59:59.999999999"),
        (np.datetime64("20000-01-01T00:00:00.5"), "TIMESTAMP", "20000-01-01 00:00:00.5"),
        (np.datetime64("2020-01-01T00:00:00.25", "ms"), "TIMESTAMP", "2020-01-01 00:00:00.25"),
    ],
    ids=str,
)
def test_moments_of_numpy(con: lakelite.Connection, value: Any, type_name: str, text: str) -> None:
    """numpy gives a bare number for one that datetime cannot hold: it must not become one here."""
    con.execute(f"create table m (a {type_name})")
    con.execute("insert into m values (?)", [value])
    con.execute("insert into m select $v", {"v": value})
    con.executemany("insert into m values (?)", [[value], [None]])
    assert con.execute("select typeof(?), a::varchar, count(*) from m group by a order by a", [value]).fetchall() == [
        (type_name, text, 3),
        (type_name, None, 1),
    ]
    assert con.execute("delete from m where a = ?", [value]).rowcount == 3


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        1 + 2j,
        Path("/x"),
        (n for n in ()),
        2**200,
        "half \ud800",
        np.timedelta64(1, "M"),
        np.datetime64(1, "fs"),
        np.complex64(1),
        [object()],
        {"a": {1}},
        print,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_sql_cannot_hold(con: lakelite.Connection, value: Any) -> None:
    for sql in ("select ?", "insert into t values (1, ?)", "insert into t select 1, ?", "delete from t where b = ?"):
        with pytest.raises(lakelite.DatabaseError):
            con.execute(sql, [value])
        with pytest.raises(lakelite.DatabaseError):
            con.execute(sql.replace("?", "[$v]"), {"v": value})
    assert con.execute("select count(*) from t").fetchone() == (3,)


def test_a_colon_is_a_parameter_only_where_the_mapping_has_the_name(con: lakelite.Connection) -> None:
    assert con.execute("select [10, 20, 30][2:a] from t where a = 3", {"b": 1}).fetchall() == [([20, 30],)]
    assert con.execute("select {a: 5}, x: a from t where a = :n", {"n": 1, "a": 9}).fetchall() == [({"a": 5}, 1)]
    assert con.execute("select [1, 2, 3][:a] from t where a = :n", {"n": 2, "a": 1}).fetchall() == [([1, 2],)]
    assert con.execute("select b: a from t where a = :a", {"a": 1}).fetchall() == [(1,)]
    assert con.execute("select time '01:02:03'::varchar", {"02": 1}).fetchall() == [("01:02:03",)]


NOW = dt.datetime.fromisoformat("2020-02-29T12:34:56.789012")
VALUES: list[tuple[Any, str]] = [
    (None, "INTEGER"),
    (True, "BOOLEAN"),
    (False, "BOOLEAN"),
    (0, "INTEGER"),
    (-(2**31), "INTEGER"),
    (2**63 - 1, "BIGINT"),
    (-(2**63), "BIGINT"),
    (2**64 - 1, "UBIGINT"),
    (10**37, "HUGEINT"),
    (-(10**37), "HUGEINT"),
    (1.5, "DOUBLE"),
    (-0.0, "DOUBLE"),
    (math.inf, "DOUBLE"),
    (5e-324, "DOUBLE"),
    (0.1, "FLOAT"),
    (decimal.Decimal("123.45"), "DECIMAL(5,2)"),
    (decimal.Decimal("-0.00000000000000000001"), "DECIMAL(38,20)"),
    (decimal.Decimal("1E+5"), "DECIMAL(10,2)"),
    ("", "VARCHAR"),
    ("it's 😀 \0 x", "VARCHAR"),
    ("null", "VARCHAR"),
    ("x" * 100_000, "VARCHAR"),
    (b"", "BLOB"),
    (b"\x00\xff'", "BLOB"),
    (bytearray(b"ab"), "BLOB"),
    (dt.date(2020, 2, 29), "DATE"),
    (dt.date(1, 1, 1), "DATE"),
    (dt.date(9999, 12, 31), "DATE"),
    (dt.time(23, 59, 59, 999999), "TIME"),
    (NOW, "TIMESTAMP"),
    (dt.datetime.fromisoformat("0001-01-01"), "TIMESTAMP"),
    (NOW.replace(tzinfo=dt.UTC), "TIMESTAMP WITH TIME ZONE"),
    (NOW.replace(tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))), "TIMESTAMP WITH TIME ZONE"),
    (dt.timedelta(days=3, seconds=5, microseconds=7), "INTERVAL"),
    (dt.timedelta(0), "INTERVAL"),
    (uuid.UUID(int=2**127 + 5), "UUID"),
    ([1, None, 3], "INTEGER[]"),
    ([], "INTEGER[]"),
    ([[1], []], "INTEGER[][]"),
    (["a", "b"], "VARCHAR[]"),
    ({"x": 1, "y": "z"}, "STRUCT(x INTEGER, y VARCHAR)"),
    ({"x": None, "y": [1]}, "STRUCT(x INTEGER, y INTEGER[])"),
    ([{"a": 1}, {"a": None}], "STRUCT(a INTEGER)[]"),
    (np.int8(-5), "TINYINT"),
    (np.int64(2**62), "BIGINT"),
    (np.uint16(9), "USMALLINT"),
    (np.float32(1.5), "FLOAT"),
    (np.float64(2.5), "DOUBLE"),
    (np.bool_(True), "BOOLEAN"),
    (np.str_("s"), "VARCHAR"),
    (np.datetime64("2020-02-29"), "DATE"),
    (np.datetime64("2020-02-29T12:34:56.789012"), "TIMESTAMP"),
]


def plain_python(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize(("value", "kind"), VALUES, ids=lambda v: ascii(v)[:30])
def test_a_python_value_goes_in_and_comes_back(lake: lakelite.Connection, value: Any, kind: str) -> None:
    """By INSERT VALUES, executemany, INSERT SELECT, UPDATE, and as a condition."""
    lake.execute(f"create table v (id integer, v {kind})")
    lake.execute("insert into v values (1, ?)", [value])
    lake.executemany("insert into v values (?, ?)", [(2, value), (3, value), (4, None)])
    lake.execute("insert into v select 5, $v", {"v": value})
    lake.execute("insert into v (v, id) values ($v, 6)", {"v": value})
    lake.execute("update v set v = ? where id = 4", [value])
    rows = lake.execute("select id, v from v order by id").fetchall()
    expected = plain_python(value)
    if kind == "FLOAT":
        expected = float(np.float32(expected))
    assert rows == [(i, expected) for i in range(1, 7)]
    assert all(type(v) is type(expected) or isinstance(v, dt.datetime | dt.date) for _, v in rows)
    assert not isinstance(expected, float) or all(math.copysign(1, v) == math.copysign(1, expected) for _, v in rows)
    assert lake.execute(f"select count(*) from v where v is not distinct from ?::{kind}", [value]).fetchone() == (6,)
    assert lake.execute(f"delete from v where v is not distinct from ?::{kind}", [value]).rowcount == 6


def test_nan_as_a_parameter(con: lakelite.Connection) -> None:
    con.execute("create table n (v double)")
    con.execute("insert into n values (?)", [math.nan])
    con.executemany("insert into n values (?)", [[math.nan], [None]])
    assert [v if v is None else math.isnan(v) for (v,) in con.execute("select v from n").fetchall()] == [True, True, None]


def test_executemany_is_one_snapshot(con: lakelite.Connection) -> None:
    def versions() -> int:
        return len(con.execute("describe history").fetchall())

    before = versions()
    assert con.executemany("insert into t values (?, ?)", [(n, str(n)) for n in range(10, 1010)]).rowcount == 1000
    assert con.executemany("update t set b = $b where a = $a", [{"a": n, "b": "new"} for n in range(10, 15)]).rowcount == 5
    assert con.executemany("delete from t where a = ?", [[10], [11], [99999]]).rowcount == 2
    assert con.executemany("insert into t select ?, 's'", iter([[2000], [2001]])).rowcount == 2
    assert con.executemany("insert into t (b) values (:b)", [{"b": "x"}, {"b": "y"}]).rowcount == 2
    assert versions() == before + 5
    assert con.executemany("insert into t values (?, ?)", []).rowcount == 0
    assert versions() == before + 5
    assert con.execute("select count(*), count(a), max(a) from t").fetchone() == (3 + 1000 - 2 + 2 + 2, 3 + 1000 - 2 + 2, 2001)


def test_executemany_is_all_or_nothing(con: lakelite.Connection) -> None:
    con.execute("create table n (a integer not null)")
    before = con.execute("describe history limit 1").fetchall()
    for sql, sets, kind in (
        ("insert into n values (?)", [[1], [None], [2]], lakelite.IntegrityError),
        ("insert into n values (?)", [[1], ["abc"]], lakelite.DataError),
        ("insert into n values (?)", [[1], [1, 2]], lakelite.ProgrammingError),
        ("insert into n select ?::integer", [["1"], ["abc"]], lakelite.DataError),
        ("update t set a = ?::integer", [["1"], ["abc"]], lakelite.DataError),
        ("select ?", [[1]], lakelite.ProgrammingError),
        ("insert into n values (?); insert into n values (?)", [[1]], lakelite.ProgrammingError),
    ):
        with pytest.raises(kind):
            con.executemany(sql, sets)
        assert con.execute("describe history limit 1").fetchall() == before
    con.execute("begin; insert into n values (7)")
    with pytest.raises(lakelite.IntegrityError):
        con.executemany("insert into n values (?)", [[8], [None]])
    con.execute("commit")
    assert con.execute("from n").fetchall() == [(7,)]
    assert con.execute("select sum(a) from t").fetchone() == (6,)
