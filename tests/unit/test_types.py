"""Declared and stored types: every type of DuckDB goes through both storages and comes back the same, or is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelite.errors import NotSupportedError
from lakelite.model import Field, literal, quote
from lakelite.storage import type_text, types

DOUBLES = ["'nan'", "'-nan'", "-0.0::DOUBLE", "0.0", "'inf'", "'-inf'", "1.1", "5e-324"]
DATES = ["'2020-02-29'", "'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "'0001-01-01'"]
MOMENTS = ["'2020-01-01'", "'infinity'", "'-infinity'", "'290309-12-22 (BC)'", "'294247-01-10 04:00:54'", "'1500-01-01 00:00:01'"]
NANOS = ["'1677-09-22'", "'2262-04-11 23:47:16.854775806'", "'infinity'", "'-infinity'", "'1969-12-31 23:59:59.999999999'"]
LEAVES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["65535"],
    "UINTEGER": ["4294967295"],
    "UBIGINT": ["18446744073709551615"],
    "HUGEINT": ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0"],
    "UHUGEINT": ["99999999999999999999999999999999999999", "0"],
    "FLOAT": [*DOUBLES, "1e-45", "16777217"],
    "DOUBLE": DOUBLES,
    "DECIMAL(4,2)": ["99.99", "-0.01"],
    "DECIMAL(9,0)": ["999999999"],
    "DECIMAL(18,3)": ["-999999999999999.999"],
    "DECIMAL(38,0)": ["-99999999999999999999999999999999999999"],
    "DECIMAL(38,38)": ["'0.99999999999999999999999999999999999999'", "'-0.00000000000000000000000000000000000001'"],
    "VARCHAR": ["''", "'NULL'", "chr(0) || 'x'", "'it''s 😀'", "repeat('é', 500)"],
    "BLOB": ["'\\x00\\xFF'", "''"],
    "BIT": ["'1'", "'0'", "'101010101'", "'0000000000000000'"],
    "DATE": DATES,
    "TIME": ["'00:00:00'", "'24:00:00'", "'12:34:56.123456'"],
    "TIME_NS": ["'00:00:00'", "'24:00:00'", "'12:34:56.123456789'"],
    "TIME WITH TIME ZONE": ["'00:00:00+00'", "'24:00:00-15:59:59'", "'12:34:56.123456+05:30'", "'00:00:00+15:59:59'", "'12:00:00+00:00:01'"],
    "TIMESTAMP": [*MOMENTS, "'294247-01-10 04:00:54.775806'"],
    "TIMESTAMP_S": MOMENTS,
    "TIMESTAMP_MS": [*MOMENTS, "'2020-01-01 00:00:00.001'"],
    "TIMESTAMP_NS": NANOS,
    "TIMESTAMPTZ_NS": ["'2262-04-11 23:47:16.854775806+00'", "'infinity'", "'1969-12-31 23:59:59.999999999+05:30'"],
    "TIMESTAMP WITH TIME ZONE": ["'2020-03-29 02:30:00+00'", "'infinity'", "'294247-01-10 04:00:54.775806+00'", "'290309-12-23 (BC) 00:00:00+00'"],
    "INTERVAL": [
        "'1 month 40 days 25 hours'", "'-1 month 3 days'", "'30 days'", "'1 month'", "'0 days'", "to_months(2147483647) + to_days(-2147483647)",
        "to_months((-2147483648)::INTEGER)", "to_microseconds(9223372036854775807)", "to_microseconds(-9223372036854775807 - 1)",
        "to_months(-13) + to_days((-2147483648)::INTEGER) + to_microseconds(-3600000001)",
    ],
    "UUID": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "ENUM('a', 'it''s', '', 'x,y', '😀', ' (', 'a\nb')": ["'a'", "'it''s'", "''", "'x,y'", "'😀'", "' ('", "'a\nb'"],
    "JSON": ["'{\"a\": 1}'", "'null'", "'\"text\"'", "' {\"a\" : 1, \"a\":2} '", "'[NaN]'", "'1.10'"],
    "BIGNUM": ["'0'", "'-5'", "'1' || repeat('0', 100)", "'-' || repeat('9', 400)"],
    "GEOMETRY": ["'POINT(1 2)'", "'POINT EMPTY'", "'LINESTRING(0 0,1 1)'", "'POINT Z(1 2 3)'"],
    "GEOMETRY('OGC:CRS84')": ["'POINT(1 2)'"],
    '"NULL"': [],
}  # fmt: skip
ODD = 'STRUCT("a.b" INTEGER, "q""x" VARCHAR, "it\'s" DATE, "😀" UUID, "select" BIT, "A b" INTEGER, "element" INTEGER, "x\ny" BOOLEAN)'
NESTED: dict[str, list[str]] = {
    "STRUCT(a INTEGER)": ["{'a': 1}", "{'a': NULL}"],
    ODD: [
        "{'a.b': 1, 'q\"x': 'v', 'it''s': DATE '2020-01-01', '😀': uuid(), 'select': '01'::BIT, 'A b': 3, 'element': 4, 'x\ny': true}",
        "{'a.b': NULL, 'q\"x': NULL, 'it''s': NULL, '😀': NULL, 'select': NULL, 'A b': NULL, 'element': NULL, 'x\ny': NULL}",
    ],
    "INTEGER[]": ["[1, NULL]", "[]", "[NULL]"],
    "INTEGER[3]": ["[1, 2, NULL]", "[NULL, NULL, NULL]"],
    "INTERVAL[2][]": ["[['1 month', NULL]]", "[NULL, ['30 days', '1 day']]", "[]"],
    "MAP(INTEGER, VARCHAR)": ["map {1: 'a', 2: NULL}", "map {}"],
    "MAP(ENUM('x', 'y'), INTERVAL)": ["map {'x': INTERVAL '1 month', 'y': NULL}", "map {}"],
    'MAP(STRUCT("key" INTEGER, "value" BIT), STRUCT("key" TIMESTAMP_S)[])': [
        "map {{'key': 1, 'value': '1'::BIT}: [{'key': NULL}, NULL]}",
        "map {{'key': 1, 'value': NULL}: NULL}",
    ],
    'MAP("NULL", "NULL")': ["map {}"],
    '"NULL"[]': ["[]", "[NULL]"],
    "UNION(a INTEGER, b VARCHAR)": ["union_value(a := 1)", "union_value(b := '')", "union_value(a := NULL)", "union_value(b := NULL::VARCHAR)"],
    'UNION(tag INTERVAL, "_TAG" BIT, "x.y" INTEGER[2])': [
        "union_value(tag := INTERVAL '40 days')", "union_value(\"_TAG\" := '01'::BIT)", "union_value(\"x.y\" := [1, NULL]::INTEGER[2])",
        "union_value(tag := NULL::INTERVAL)",
    ],
    "TUPLE(INTEGER, VARCHAR)": ["(1, 'a')", "(NULL, NULL)"],
    "TUPLE(INTERVAL, TUPLE(UUID, JSON)[])": ["(INTERVAL '1 month', [(uuid(), '1'::JSON), NULL])", "(NULL, [])"],
    "STRUCT(a STRUCT(b STRUCT(c INTERVAL)[])[])": ["{'a': [{'b': [{'c': '1 month'}, NULL, {'c': NULL}]}, {'b': NULL}, {'b': []}]}", "{'a': NULL}"],
    "JSON[]": ["['\"a\"', 'null', NULL]"],
    "STRUCT(a JSON, b ENUM('x'))": ["{'a': '\"a\"'::JSON, 'b': 'x'}", "{'a': 'null'::JSON, 'b': NULL}", "{'a': NULL, 'b': NULL}"],
    "GEOMETRY[]": ["['POINT(1 2)', NULL]"],
    "STRUCT(g GEOMETRY('OGC:CRS84'), t TIME WITH TIME ZONE, h HUGEINT, n BIGNUM)": ["{'g': 'POINT(1 2)', 't': '01:00:00+02', 'h': 5, 'n': '12'}"],
}  # fmt: skip
UNDERNEATH = "STRUCT(s {0}, l {0}[], f {0}[2], m MAP(VARCHAR, {0}))"


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'America/New_York'")
    yield con
    con.close()


def stored(declared: str, name: str = "x") -> Field:
    ids = count(1)
    return types.stored_tree(declared, name, lambda: next(ids))


def through_parquet(con: duckdb.DuckDBPyConnection, field: Field, select: str, folder: Path) -> None:
    path = literal(str(folder / "x.parquet"))
    con.execute(f"COPY ({select}) TO {path} (FORMAT parquet, FIELD_IDS {types.field_ids_clause([field])})")
    con.execute(f"CREATE OR REPLACE TABLE back AS SELECT * FROM read_parquet({path}, schema => {types.schema_clause([field])})")


def through_arrow(con: duckdb.DuckDBPyConnection, field: Field, select: str) -> None:
    rows = con.sql(select).to_arrow_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    con.register("arrived", pa.ipc.open_stream(sink.getvalue()).read_all())
    con.execute("CREATE OR REPLACE TABLE back AS SELECT * FROM arrived")
    con.unregister("arrived")


def check_round_trip(con: duckdb.DuckDBPyConnection, declared: str, folder: Path, *, by_value: bool = True) -> None:
    """The table `t (x)` goes through both storages; values, types and texts (which show NaN, -0.0, months and days) are the same."""
    value_differs = "b.x IS DISTINCT FROM t.x" if by_value else "false"
    field = stored(declared)
    encoded = f"SELECT {types.encode('x', declared)} AS {quote(field.name)} FROM t"
    (stored_type,) = con.execute(f"SELECT typeof(COLUMNS(*)) FROM ({encoded}) LIMIT 1").fetchone() or ("",)
    assert type_text.read(stored_type).text == field.type
    decoded = types.decode("back.x", declared)
    for storage in ("parquet", "arrow"):
        through_parquet(con, field, encoded, folder) if storage == "parquet" else through_arrow(con, field, encoded)
        if storage == "parquet" or decoded == "back.x":
            kept = con.execute("SELECT DISTINCT typeof(x) FROM back").fetchall()
            assert [type_text.read(k[0]).text for k in kept] == [field.type], storage
        different = con.execute(
            f"SELECT t.x::VARCHAR, b.x::VARCHAR, typeof(b.x) FROM t POSITIONAL JOIN (SELECT {decoded} AS x FROM back) b"
            f" WHERE {value_differs} OR b.x::VARCHAR IS DISTINCT FROM t.x::VARCHAR"
            " OR (b.x IS NULL) <> (t.x IS NULL) OR typeof(b.x) <> typeof(t.x)"
        ).fetchall()
        assert different == [], (storage, declared)


def fill(con: duckdb.DuckDBPyConnection, declared: str, values: list[str]) -> None:
    con.execute(f"CREATE OR REPLACE TABLE t (x {declared})")
    for value in [*values, "NULL"]:
        con.execute(f"INSERT INTO t VALUES ({value})")


@pytest.mark.parametrize("declared", LEAVES)
def test_a_leaf_type_round_trips_alone_and_inside_every_container(duck: duckdb.DuckDBPyConnection, declared: str, tmp_path: Path) -> None:
    fill(duck, declared, LEAVES[declared])
    check_round_trip(duck, declared, tmp_path)
    duck.execute("CREATE OR REPLACE TABLE leaves AS SELECT x FROM t")
    duck.execute(f"CREATE OR REPLACE TABLE t (x {UNDERNEATH.format(declared)})")
    duck.execute("INSERT INTO t SELECT {'s': x, 'l': [x, NULL], 'f': [NULL, x], 'm': map {'k': x}} FROM leaves")
    duck.execute(
        "INSERT INTO t VALUES (NULL), ({'s': NULL, 'l': NULL, 'f': NULL, 'm': NULL}), ({'s': NULL, 'l': [], 'f': [NULL, NULL], 'm': map {}})"
    )
    check_round_trip(duck, UNDERNEATH.format(declared), tmp_path)


@pytest.mark.parametrize("declared", NESTED)
def test_a_nested_type_round_trips(duck: duckdb.DuckDBPyConnection, declared: str, tmp_path: Path) -> None:
    fill(duck, declared, NESTED[declared])
    check_round_trip(duck, declared, tmp_path)


def test_a_union_keeps_which_member_a_null_is_of(duck: duckdb.DuckDBPyConnection) -> None:
    declared = "UNION(a INTEGER, b INTERVAL)"
    fill(duck, declared, ["union_value(b := NULL::INTERVAL)", "union_value(a := NULL::INTEGER)"])
    back = types.decode(types.encode("x", declared), declared)
    assert (
        duck.execute(f"SELECT union_tag({back})::VARCHAR, {back} IS NULL FROM t").fetchall()
        == duck.execute("SELECT union_tag(x)::VARCHAR, x IS NULL FROM t").fetchall()
    )


def test_every_type_that_duckdb_knows_is_stored_or_refused_by_name(duck: duckdb.DuckDBPyConnection) -> None:
    known = {name for (name,) in duck.execute("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()}
    tested = {type_text.read(text).name for text in [*LEAVES, *NESTED]}
    for name in sorted(known - tested):
        with pytest.raises(NotSupportedError, match=name) as caught:
            stored(name)
        assert caught.value.hint
    assert known - tested == {"VARIANT", "TYPE"}


@pytest.mark.parametrize("declared", ["VARIANT", "STRUCT(a VARIANT[])", "PARQUET_VARIANT", "MAP(INTEGER, TYPE)", "UNION(a INTEGER, b VARIANT)"])
def test_what_cannot_be_kept_exactly_is_refused_everywhere(declared: str) -> None:
    for call in (lambda: stored(declared), lambda: types.encode("x", declared), lambda: types.decode("x", declared)):
        with pytest.raises(NotSupportedError, match="cannot be stored exactly"):
            call()


@pytest.mark.parametrize(
    "declared",
    ["", "STRUCT(", "STRUCT(a)", "INTEGER]", "MAP(INTEGER)", "ENUM('a'", 'STRUCT("a INTEGER)', "INTEGER)", "(", "INTEGER[", "'a'", "STRUCT()"],
)
def test_a_text_that_is_no_type_is_refused(declared: str) -> None:
    with pytest.raises(NotSupportedError):
        stored(declared)


@pytest.mark.parametrize(
    "declared", ["INTEGER" + "[]" * 1000, "STRUCT(a " * 1000 + "INTEGER" + ")" * 1000, "TUPLE(" * 40 + "INTEGER[][]" + ")[]" * 40]
)
def test_nesting_is_bounded(declared: str) -> None:
    with pytest.raises(NotSupportedError, match="levels deep"):
        stored(declared)


DEEPEST = [
    ("STRUCT(a " * 13 + "INTERVAL" + "[]" * 6 + ")" * 13, "{'a': " * 13 + "[" * 6 + "INTERVAL '1 month'" + "]" * 6 + "}" * 13),
    ("STRUCT(a " * 10 + "BIT" + "[1]" * 10 + ")" * 10, "{'a': " * 10 + "[" * 10 + "'01'" + "]" * 10 + "}" * 10),
]


@pytest.mark.parametrize(("declared", "value"), DEEPEST, ids=["rebuilt", "cast"])
def test_the_deepest_nesting_works(duck: duckdb.DuckDBPyConnection, tmp_path: Path, declared: str, value: str) -> None:
    fill(duck, declared, [value])
    check_round_trip(duck, declared, tmp_path, by_value=False)  # DuckDB's own comparison takes exponential time in the depth


@pytest.mark.parametrize("declared", ["INTERVAL" + "[]" * 7, "MAP(INTEGER, UNION(a INTEGER)" + "[2]" * 6 + ")"])
def test_what_duckdb_could_not_plan_in_time_is_refused(declared: str) -> None:
    with pytest.raises(NotSupportedError, match="inside more than 6"):
        stored(declared)


@pytest.mark.parametrize("name", ["__duckdb_field_id", "__DUCKDB_field_id"])
def test_a_name_that_duckdb_keeps_for_itself_is_refused(name: str) -> None:
    with pytest.raises(NotSupportedError, match="cannot be named"):
        stored("INTEGER", name)
    with pytest.raises(NotSupportedError, match="cannot be named"):
        stored(f"STRUCT({name} INTEGER)[]")


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("HUGEINT", "100000000000000000000000000000000000000"),
        ("UHUGEINT", "340282366920938463463374607431768211455"),
        ("HUGEINT[]", "[-100000000000000000000000000000000000000]"),
    ],
)
def test_a_value_beyond_the_stored_type_is_an_error_when_written(duck: duckdb.DuckDBPyConnection, declared: str, value: str) -> None:
    fill(duck, declared, [value])
    with pytest.raises(duckdb.ConversionException):
        duck.execute(f"SELECT {types.encode('x', declared)} FROM t").fetchall()


@pytest.mark.parametrize("declared", ["JSON", "JSON[]"])
def test_malformed_json_is_an_error_when_written_not_when_read(duck: duckdb.DuckDBPyConnection, declared: str) -> None:
    malformed = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["{bad"]))
    duck.register("outside", pa.table({"j": malformed}))
    duck.execute(f"CREATE OR REPLACE TABLE t AS SELECT {'[j]' if declared.endswith(']') else 'j'} AS x FROM outside")
    duck.unregister("outside")
    with pytest.raises(duckdb.ConversionException, match="Malformed JSON"):
        duck.execute(f"SELECT {types.encode('x', declared)} FROM t").fetchall()


def test_ids_are_given_depth_first_and_root_first() -> None:
    field = stored("STRUCT(a MAP(INTEGER, VARCHAR[]), b INTERVAL)", "s")
    assert [(f.field_id, f.name) for f in walk(field)] == [
        (1, "s"), (2, "a"), (3, "key"), (4, "value"), (5, "element"), (6, "b"), (7, "months"), (8, "days"), (9, "micros"),
    ]  # fmt: skip
    assert field.children[0].type == "MAP(INTEGER, VARCHAR[])"


def walk(field: Field) -> Iterator[Field]:
    yield field
    for child in field.children:
        yield from walk(child)


def test_columns_are_found_by_id_after_renames_at_every_level(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    field = Field(
        7, 'a"', 'STRUCT("x" INTEGER, "y" INTEGER[])', (Field(8, "x", "INTEGER"), Field(9, "y", "INTEGER[]", (Field(10, "element", "INTEGER"),)))
    )
    now = Field(7, "b.'", 'STRUCT("y" BIGINT, "x" INTEGER[])', (Field(8, "y", "BIGINT"), Field(9, "x", "INTEGER[]", field.children[1].children)))
    path = literal(str(tmp_path / "x.parquet"))
    duck.execute(f"COPY (SELECT {{'x': 1, 'y': [2]}} AS {quote(field.name)}) TO {path} (FORMAT parquet, FIELD_IDS {types.field_ids_clause([field])})")
    read = duck.execute(f"SELECT * FROM read_parquet({path}, schema => {types.schema_clause([now, Field(11, 'new', 'DATE')])})")
    assert [d[0] for d in read.description or ()] == ["b.'", "new"]
    assert read.fetchall() == [({"y": 1, "x": [2]}, None)]


@pytest.mark.parametrize("declared", ["INTEGER", "VARCHAR", "STRUCT(a INTEGER[], b MAP(VARCHAR, DOUBLE))", "TIMESTAMP WITH TIME ZONE", "GEOMETRY"])
def test_types_stored_as_they_are_cost_nothing(declared: str) -> None:
    assert types.encode("r.x", declared) == types.decode("r.x", declared) == "r.x"


def test_duckdb_prints_each_type_as_it_is_read(duck: duckdb.DuckDBPyConnection) -> None:
    for declared in [*LEAVES, *NESTED]:
        duck.execute(f"CREATE OR REPLACE TABLE t (x {declared})")
        (printed,) = duck.execute("SELECT data_type FROM duckdb_columns() WHERE table_name = 't'").fetchone() or ("",)
        assert type_text.read(printed) == type_text.read(declared)
        duck.execute(f"CREATE OR REPLACE TABLE t (x {type_text.read(printed).text})")


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 3) -> tuple[str, st.SearchStrategy[str]]:
    """A random type and a strategy for SQL expressions of its values."""
    kind = draw(st.sampled_from(["leaf"] if depth == 0 else ["leaf", "list", "array", "struct", "map", "union", "tuple"]))
    if kind == "leaf":
        declared = draw(st.sampled_from(list(LEAVES)))
        return declared, nullable(declared, st.sampled_from(LEAVES[declared]) if LEAVES[declared] else st.just("NULL"))
    if kind in ("list", "array"):
        element, values = draw(typed_values(depth=depth - 1))
        size = draw(st.integers(1, 3))
        declared = f"{element}[{size}]" if kind == "array" else f"{element}[]"
        lengths = (size, size) if kind == "array" else (0, 3)
        return declared, nullable(declared, st.lists(values, min_size=lengths[0], max_size=lengths[1]).map(lambda v: f"[{', '.join(v)}]"))
    if kind == "map":
        element, values = draw(typed_values(depth=depth - 1))
        keys = st.lists(st.integers(0, 9), max_size=3, unique=True)
        declared = f"MAP(VARCHAR, {element})"
        return declared, nullable(declared, st.tuples(keys, st.lists(values, min_size=3, max_size=3)).map(mapping))
    members = draw(st.lists(typed_values(depth=depth - 1), min_size=1, max_size=3))
    names = draw(st.lists(NAMES, min_size=len(members), max_size=len(members), unique_by=str.lower))
    if kind == "tuple":
        declared = f"TUPLE({', '.join(t for t, _ in members)})"
        return declared, nullable(declared, st.tuples(*(v for _, v in members)).map(lambda v: f"row({', '.join(v)})"))
    inside = ", ".join(f"{quote(n)} {t}" for n, (t, _) in zip(names, members, strict=True))
    if kind == "union":
        declared = f"UNION({inside})"
        chosen = [v.map(lambda e, n=n: f"union_value({quote(n)} := {e})") for n, (_, v) in zip(names, members, strict=True)]
        return declared, nullable(declared, st.one_of(chosen))
    declared = f"STRUCT({inside})"
    return declared, nullable(declared, st.tuples(*(v for _, v in members)).map(lambda v: packed(names, v)))


NAMES = st.sampled_from(
    ["a", "b.c", 'q"x', "it's", "😀", "select", "tag", "_tag", "element", "key", "value", "element1", "months", "A b", "__proto__"]
)


def nullable(declared: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(values, values, st.just("NULL")).map(lambda value: f"({value})::{declared}")


def mapping(drawn: tuple[list[int], list[str]]) -> str:
    keys, values = drawn
    return "map {" + ", ".join(f"'k{k}': {v}" for k, v in zip(keys, values, strict=False)) + "}"


def packed(names: list[str], values: tuple[str, ...]) -> str:
    return "{" + ", ".join(f"{literal(n)}: {v}" for n, v in zip(names, values, strict=True)) + "}"


@given(st.data())
def test_any_nested_type_with_any_values_round_trips(
    duck: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    declared, values = data.draw(typed_values())
    fill(duck, declared, data.draw(st.lists(values, min_size=1, max_size=4)))
    check_round_trip(duck, declared, tmp_path_factory.getbasetemp())
