"""Statistics and conditions together: what is ruled out holds no row, by DuckDB's own answer; and what should be ruled out is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelite.language.conjuncts import conjuncts
from lakelite.model import Column, Conjunct, Fragment, Statistics, literal, quote
from lakelite.storage import statistics, types

TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "b", "é", "\x00", "a\x00", "\U0010ffff", "z" * 300, "z" * 299 + "y", "é" * 200, "a" * 256, "\x7f" * 260, "z" * 255 + "{"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
DOUBLES = st.one_of(st.sampled_from(["nan", "-0.0", "0.0", "inf", "-inf", "1.1", "-1.1", "1e-45", "16777217", "0.1"]), st.floats(-100, 100).map(repr))
DAYS = st.one_of(st.sampled_from(["infinity", "-infinity", "5000-01-01 (BC)", "9999-12-31", "12000-01-01", "0001-01-01"]), st.dates().map(str))
MOMENTS = st.one_of(
    st.sampled_from(["infinity", "-infinity", "5000-01-01 (BC) 00:00:00", "12000-01-01 00:00:00", "2020-01-01 00:00:00"]), st.datetimes().map(str)
)
INTEGERS = st.one_of(st.integers(-3, 130), st.integers(-128, 127))
DECIMALS = st.integers(-9999, 9999).map(lambda n: f"{Decimal(n).scaleb(-2)}")


def strings(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return values.map(literal)


# For each type: SQL of values to store, and SQL of literals to compare with (also ones of another type, which must be left alone).
VALUES: dict[str, st.SearchStrategy[str]] = {
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "TINYINT": st.integers(-128, 127).map(str),
    "UTINYINT": st.integers(0, 255).map(str),
    "INTEGER": INTEGERS.map(str),
    "UBIGINT": st.sampled_from(["0", "5", "9223372036854775807", "9223372036854775808", "18446744073709551615"]),
    "BIGINT": st.sampled_from(["-9223372036854775808", "0", "9007199254740993", "9223372036854775807"]),
    "HUGEINT": st.sampled_from(["0", "-5", "99999999999999999999999999999999999999", "18446744073709551616"]),
    "DECIMAL(4,2)": DECIMALS,
    "DECIMAL(38,0)": st.sampled_from(["99999999999999999999999999999999999999", "99999999999999999999999999999999999998", "-5", "0"]),
    "DECIMAL(38,30)": st.sampled_from(["'12345678.000000000000000000000000000001'", "'12345678.000000000000000000000000000002'", "1"]),
    "VARCHAR": strings(TEXTS),
    "FLOAT": strings(DOUBLES),
    "DOUBLE": strings(DOUBLES),
    "DATE": strings(DAYS),
    "TIMESTAMP": strings(MOMENTS),
    "TIMESTAMP_S": strings(MOMENTS),
    "TIMESTAMP WITH TIME ZONE": strings(MOMENTS),
    "UUID": st.uuids().map(lambda u: f"'{u}'"),
    "ENUM('b', 'a')": st.sampled_from(["'a'", "'b'"]),
    "INTERVAL": st.sampled_from(["'1 month'", "'30 days'"]),
    "BLOB": st.sampled_from(["'a'", "'\\xFF'"]),
}
LITERALS = st.one_of(
    st.sampled_from(
        ["true", "false", "NULL", "1e2", "-1.5e0", "99999999999999999999999999999999999998", "1_0", "'nan'::DOUBLE", "(5)", "0.1", "16777216"]
    ),
    st.sampled_from(
        ["DATE '2020-01-01'", "'2020-01-01'::DATE", "TIMESTAMP '2020-01-01 00:00:00'", "'5'", "5::TINYINT", "E'a'", "- 5", "CAST(5 AS DOUBLE)"]
    ),
    st.sampled_from(["12345678.000000000000000000000000000001", "9007199254740992", "18446744073709551615", "9223372036854775808", "'1 month'"]),
    st.integers(-300, 300).map(str),
    DECIMALS,
    st.floats(-100, 100, width=32).map(repr),
    strings(st.dates().map(str)),
    strings(st.datetimes().map(str)),
    st.dates().map(lambda d: f"DATE '{d}'"),
    st.datetimes().map(lambda d: f"TIMESTAMP '{d}'"),
    st.datetimes().map(lambda d: f"TIMESTAMPTZ '{d}{'' if '.' in str(d) else '.0'}+05:30'"),
    strings(TEXTS),
)
PARAMETERS = st.one_of(
    st.integers(-300, 300),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, -(2**63), 9007199254740992, True, False, None, "a", "2020-01-01", "5", float("nan"), float("inf")]),
    st.sampled_from([datetime(2020, 1, 1, tzinfo=UTC), Decimal("12345678.000000000000000000000000000001"), Decimal(10) ** 30, Decimal("0.1")]),
    st.floats(),
    st.dates(),
    st.datetimes(),
    st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-2)),
    TEXTS,
)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb.connect()
    yield con
    con.close()


def column(declared: str, name: str = "x") -> Column:
    ids = count(7)
    return Column(name, declared, types.stored_tree(declared, name, lambda: next(ids)))


def fragment_of(con: duckdb.DuckDBPyConnection, of: Column, values: list[str], folder: Path) -> Fragment:
    """The rows in the table `t`, and a fragment with the statistics that DuckDB gives for them in a file of row groups of 2,048 rows."""
    con.execute(f"CREATE OR REPLACE TABLE t ({quote(of.name)} {of.type})")
    for value in values:
        con.execute(f"INSERT INTO t SELECT {value}")
    path = literal(str(folder / "x.parquet"))
    select = f"SELECT {types.encode(quote(of.name), of.type)} AS {quote(of.name)} FROM t"
    options = f"FORMAT parquet, RETURN_STATS true, ROW_GROUP_SIZE 2048, FIELD_IDS {types.field_ids_clause([of.stored])}"
    answer = con.execute(f"COPY ({select}) TO {path} ({options})").fetchone()
    assert answer is not None
    return fragment(answer[1], statistics.from_copy([of.stored], answer[4], answer[1]))


def may_match(found: Fragment, conditions: Iterable[Conjunct]) -> bool:
    return list(statistics.candidates([found], conditions)) == [found]


def fragment(row_count: int, known: tuple[Statistics, ...]) -> Fragment:
    return Fragment(1, 1, "parquet", "x.parquet", row_count, 0, "", 0, False, known)


@st.composite
def conditions(draw: st.DrawFn, values: list[str]) -> tuple[str, dict[str, object]]:
    """One to three conditions on the column x under AND, OR or NOT, with the stored values, other literals and parameters."""
    parameters: dict[str, object] = {}
    numbers = [value.strip("'") for value in values if value.strip("'-.0123456789") == ""]

    def operand() -> str:
        kind = draw(st.integers(0, 3))
        if values and kind > 1:
            return draw(st.sampled_from([*values, *numbers]))
        if kind:
            return draw(LITERALS)
        name = str(len(parameters) + 1)
        parameters[name] = draw(PARAMETERS)
        return f"${name}"

    def one() -> str:
        x = draw(st.sampled_from(["x", "t.x", '"X"', "(x)"]))
        kind = draw(st.sampled_from(["comparison", "comparison", "flipped", "between", "in", "null", "not null"]))
        operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "==", "<>"]))
        match kind:
            case "comparison":
                return f"{x} {operator} {operand()}"
            case "flipped":
                return f"{operand()} {operator} {x}"
            case "between":
                return f"{x} BETWEEN {operand()} AND {operand()}"
            case "in":
                return f"{x} IN ({', '.join(operand() for _ in range(draw(st.integers(1, 3))))})"
        return f"{x} IS {kind}"

    parts = [draw(st.sampled_from(["", "", "", "NOT "])) + one() for _ in range(draw(st.integers(1, 3)))]
    return draw(st.sampled_from([" AND ", " AND ", " OR ", " AND -- comment\n"])).join(parts), parameters


@pytest.mark.parametrize("declared", VALUES)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_ruled_out_holds_no_row(
    duck: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory, declared: str, data: st.DataObject
) -> None:
    of = column(declared)
    values = data.draw(st.lists(st.one_of(VALUES[declared], VALUES[declared], VALUES[declared], st.just("NULL")), max_size=4))
    found = fragment_of(duck, of, values, tmp_path_factory.getbasetemp())
    for where, parameters in data.draw(st.lists(conditions(values), min_size=1, max_size=6)):
        if not may_match(found, conjuncts(where, [of], "t", parameters)):
            try:
                held = duck.execute(f"SELECT x FROM t WHERE {where}", parameters or None).fetchall()
            except duckdb.Error:
                continue  # DuckDB refuses the condition: there is no answer to contradict
            assert held == [], (where, parameters, found.statistics)


@pytest.mark.parametrize(
    ("declared", "values", "where", "may"),
    [
        ("INTEGER", ["1", "5", "NULL"], "x = 3", True),
        ("INTEGER", ["1", "5"], "x = 6", False),
        ("INTEGER", ["1", "5"], "5 < x", False),
        ("INTEGER", ["1", "5"], "5 <= x", True),
        ("INTEGER", ["1", "5"], "x < 1 AND true", False),
        ("INTEGER", ["1", "5"], "x BETWEEN 6 AND 9", False),
        ("INTEGER", ["1", "5"], "x IN (-1, 9)", False),
        ("INTEGER", ["1", "5"], "x IN (-1, 3)", True),
        ("INTEGER", ["1", "5"], "x = '9'", True),
        ("INTEGER", ["1", "5"], "x = 9.5", True),
        ("INTEGER", ["NULL"], "x = 1", False),
        ("INTEGER", ["NULL"], "x IS NOT NULL", False),
        ("INTEGER", ["1"], "x IS NULL", False),
        ("INTEGER", ["1", "NULL"], "x IS NULL", True),
        ("HUGEINT", ["1"], "x > 5", False),
        ("DECIMAL(18,3)", ["1.5"], "x > 1.6", False),
        ("DECIMAL(18,3)", ["1.5"], "x >= 1.5", True),
        ("DOUBLE", ["1.5"], "x > 2", False),
        ("DOUBLE", ["1.5", "'nan'"], "x > 2", True),
        ("DOUBLE", ["'nan'"], "x < 2", True),
        ("DOUBLE", ["-0.0"], "x = 0.0", True),
        ("FLOAT", ["1.1"], "x >= 1.1e0", True),
        ("FLOAT", ["16777216"], "x = 16777217", True),
        ("DECIMAL(4,2)", ["1.55"], "x = 1.550000000000000000000000000000000000001", True),
        ("DECIMAL(38,0)", ["99999999999999999999999999999999999998"], "x = 99999999999999999999999999999999999998.1", True),
        ("VARCHAR", ["'10'"], "x BETWEEN '5' AND 20", True),
        ("INTEGER", ["1", "5"], "x <= 1", True),
        ("INTEGER", ["1", "5"], "x >= 5", True),
        ("INTEGER", ["1", "5"], "x <= 0", False),
        ("INTEGER", ["1", "5"], "x > 5", False),
        ("VARCHAR", ["'a'", "'é'"], "x > 'z'", True),
        ("VARCHAR", ["'a'", "'b'"], "x > 'z'", False),
        ("VARCHAR", ["repeat('z', 300)"], "x > repeat('z', 299)", True),
        ("VARCHAR", ["repeat('z', 300)"], "x > '{'", False),
        ("DATE", ["'2020-01-01'"], "x >= '2021-01-01'", False),
        ("DATE", ["'2020-01-01'", "'infinity'"], "x >= DATE '2021-01-01'", True),
        ("DATE", ["'2020-01-01'"], "x < TIMESTAMP '2019-01-01 00:00:00'", True),
        ("TIMESTAMP", ["'2020-01-01'"], "x >= DATE '2020-01-02'", False),
        ("TIMESTAMP", ["'2020-01-01 00:00:00.000001'"], "x > '2020-01-01T00:00:00'", True),
        ("BOOLEAN", ["true"], "x = false", False),
        ("UUID", ["uuid()"], "x IS NULL", False),
        ("STRUCT(a INTEGER)", ["{'a': 1}"], "x IS NULL", True),
        ("INTERVAL", ["'1 day'"], "x IS NULL", True),
    ],
)  # fmt: skip
def test_what_is_ruled_out(duck: duckdb.DuckDBPyConnection, tmp_path: Path, declared: str, values: list[str], where: str, may: bool) -> None:
    of = column(declared)
    assert may_match(fragment_of(duck, of, values, tmp_path), conjuncts(where, [of], "t", {})) is may


def test_statistics_of_odd_names_and_several_row_groups(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    of = column("INTEGER", 'q"x.y')
    found = fragment_of(duck, of, ["unnest(range(5000))", "NULL"], tmp_path)
    assert found.statistics == (Statistics(7, "0", "4999", 1, True, False),)


def test_truncated_bounds_are_not_exact_and_nan_is_told(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (text,) = fragment_of(duck, column("VARCHAR"), ["repeat('z', 300)"], tmp_path).statistics
    assert (text.exact, text.maximum) == (False, "z" * 255 + "{")
    (number,) = fragment_of(duck, column("DOUBLE"), ["'nan'", "1"], tmp_path).statistics
    assert (number.may_hold_nan, number.maximum) == (True, "1.0")


def test_one_row_group_without_bounds_leaves_the_whole_file_without(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    values = ["unnest(list_transform(range(2048), lambda i: 'b'))", "unnest(list_transform(range(2048), lambda i: repeat('é', 300)))"]
    (text,) = fragment_of(duck, column("VARCHAR"), values, tmp_path).statistics
    assert (text.minimum, text.maximum, text.null_count) == (None, None, 0)


def test_a_column_that_duckdb_did_not_count_is_unknown() -> None:
    of = column("INTEGER")
    counted = {"min": "1", "max": "2", "null_count": "0", "num_values": "0"}
    assert statistics.from_copy([of.stored], {'"x"': counted}, 5) == ()
    assert statistics.from_copy([of.stored], {}, 5) == ()


def test_bounds_of_a_widened_column_are_read_by_its_new_type() -> None:
    for old, new, value in [
        ("5", "DOUBLE", 6),
        ("5", "DECIMAL(10,2)", Decimal("5.01")),
        ("2020-01-01", "TIMESTAMP", datetime.fromisoformat("2020-01-01 01:00:00")),
        ("5", "BIGINT", 6),
    ]:
        known = Statistics(7, old, old, 0, True, False)
        assert not may_match(fragment(1, (known,)), [Conjunct(7, new, ">=", (value,))])
        assert may_match(fragment(1, (known,)), [Conjunct(7, new, "<", (value,))])


def test_without_statistics_everything_may_match() -> None:
    assert may_match(fragment(5, ()), [Conjunct(7, "INTEGER", "=", (1,))])
    assert may_match(fragment(5, ()), [Conjunct(7, "INTEGER", "is null")])


def test_a_value_of_a_foreign_type_may_match() -> None:
    known = Statistics(7, "1", "2", 0, True, False)
    for declared, value in [
        ("INTEGER", "a"),
        ("INTEGER", 9.0),
        ("VARCHAR", 9),
        ("DATE", "z"),
        ("UUID", "z"),
        ("DOUBLE", date(2020, 1, 1)),
        ("TIME", "z"),
    ]:
        assert may_match(fragment(1, (known,)), [Conjunct(7, declared, "=", (value,))])


def test_bounds_are_read_once() -> None:
    """One statement after the other asks every fragment for them, some under the commit lock."""
    known = Statistics(1, "-7", "12345678", 0, True, False)
    first = statistics._bounds(known, "BIGINT")
    hits = statistics._bounds.cache_info().hits
    assert statistics._bounds(known, "BIGINT") == first == ((0, -7), (0, 12345678))
    assert statistics._bounds.cache_info().hits == hits + 1
