"""Bad files, places, names and sizes: what the error is, what it says, and a lake that stays as it was."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy
import pyarrow as pa
import pytest
from exchanging import library
from refusing import quoted, state_kept

import lakelite
from lakelite.mapping.engine_errors import engine_error

# Files.


def test_a_file_that_is_no_parquet_file(con: lakelite.Connection, tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    con.execute("copy t to ?", [str(good)])
    content = good.read_bytes()
    for name, damaged in {
        "text": b"hello, world\n" * 9,
        "empty": b"",
        "cut": content[:-20],
        "head": content[:9],
        "torn": content[:40] + bytes(60) + content[100:],
    }.items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(damaged)
        for sql in (f"copy t from '{path}'", f"insert into t select * from read_parquet('{path}')", f"create table v as from '{path}'"):
            assert isinstance(state_kept(con, lambda: con.execute(sql)), lakelite.DataError | lakelite.OperationalError)  # noqa: B023
    assert con.execute(f"copy t from '{good}'").rowcount == 2
    con.execute("delete from t; insert into t values (1, 'one', 1.5), (2, 'two', null)")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1,one,1.5\nabc,two,2\n", "abc"),
        ("1,one,1.5\n2,two\n", "2"),
        ("1,one,1.5\n2,two,2,2\n", "2"),
        ("1,one,1.5\n2,two,99999\n", "99999"),
        (",one,1.5\n", "NOT NULL constraint failed: t.a"),
    ],
)
def test_a_csv_file_with_a_bad_row(con: lakelite.Connection, tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    error = state_kept(con, lambda: con.execute(f"copy t from '{path}' (header false)"))
    assert isinstance(error, lakelite.DataError | lakelite.IntegrityError), error
    assert words in str(error)


def test_files_and_columns_of_copy(con: lakelite.Connection, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1,x,1\n")
    assert "zz" in str(state_kept(con, lambda: con.execute(f"copy t (a, zz) from '{path}'")))
    assert "nosuch" in str(state_kept(con, lambda: con.execute(f"copy t from '{path}' (nosuch 1)")))
    json = tmp_path / "rows.json"
    json.write_text('{"a": 1, "b": "x"\n')
    assert isinstance(state_kept(con, lambda: con.execute(f"copy t from '{json}'")), lakelite.DataError)
    for target in (tmp_path, tmp_path / "no" / "x.parquet", path / "x.csv"):
        assert isinstance(state_kept(con, lambda: con.execute("copy t to ?", [str(target)])), lakelite.OperationalError)  # noqa: B023
    assert path.read_text() == "1,x,1\n"


# Places.


def test_what_is_no_lake_is_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    file = tmp_path / "file"
    file.write_text("mine")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with sqlite3.connect(foreign / "catalog.sqlite") as other:
        other.execute("create table mine (a)")
    other.close()
    garbage = tmp_path / "garbage"
    garbage.mkdir()
    (garbage / "catalog.sqlite").write_bytes(b"no database at all " * 99)
    before = contents(tmp_path)
    for place in (folder, file, file / "below", foreign, garbage):
        with pytest.raises(lakelite.CannotOpen) as caught:
            lakelite.connect(place)
        assert str(place if place.name != "below" else file) in str(caught.value)
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(lakelite.CannotOpen, match="there is no lake"):
            lakelite.connect(tmp_path / "none", **options)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_options_of_connect_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(lakelite.ProgrammingError, match="chaos"):
        lakelite.connect(tmp_path / "x", isolation="chaos")
    with pytest.raises(lakelite.CannotOpen, match="no lake"):  # a new one has no branch dev
        lakelite.connect(tmp_path / "x", branch="dev")
    with pytest.raises(TypeError):
        lakelite.connect(tmp_path / "x", nosuch="main")
    assert contents(tmp_path) == {}


# Names.

NAMES = [
    "../x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "..",
    ".",
    "x.parquet",
    "a.b",
    'a"b',
    "it's",
    "'; drop table t; --",
    " ",
    " a ",
    "a\tb",
    "a\nb",
    "select",
    "table",
    "memory",
    "lake",
    "main",
    "system",
    "temp",
    "😀",
    "Ünïcode",
    "e\u0301",
    "\u202e",
    "n" * 255,
    "n" * 300,
    "%s",
    "{0}",
    "$1",
    "?",
    ":a",
    "-- x",
    "/* x",
    "*",
    "main@3",
    "rowid",
    "file_index",
    "_lake_source",
    "lake_target",
    "inline_1",
    "vectors",
    "range",
    "t AS x",
    "-",
    "0",
    "1e5",
    "null",
    "\ufeff",
]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakelite.Connection]:
    """A lake in a folder of its own; each test drops what it made."""
    con = lakelite.connect(tmp_path_factory.mktemp("names") / "lake", autocommit=True)
    yield con
    con.close()


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name_is_only_a_name(named: lakelite.Connection, name: str) -> None:
    """As a table, a column, a schema; nothing outside of the lake's own folders and no file is named after it."""
    con, n = named, quoted(name)
    con.execute(f"create table {n} ({n} integer, other integer); insert into {n} values (1, 1)")
    assert con.last_commit is not None
    version = con.last_commit.snapshot_id
    con.execute(f"insert into {n} ({n}) select range + 2 from range(3)")
    con.execute(f"update {n} set {n} = {n} + 10 where {n} = 2")
    con.execute(f"delete from {n} where {n} in (select max({n}) - 9 from {n})")
    con.execute(f"begin; create or replace table {n} as select {n}, other from {n}; update {n} as {n} set other = {n}.{n}; commit")
    assert con.execute(f"select x.{n} from {n} as x order by all").fetchall() == [(1,), (4,), (12,)]
    assert con.execute(f"select * from {n} at (version => {version})").description[0][0] == name
    assert con.execute("show tables").fetchall() == [(name,)]
    s = quoted(name.replace("@", "") + ("2" if name.lower() in {"memory", "lake", "main", "system", "temp", "main@3"} else ""))
    con.execute(f"create schema {s}; create table {s}.{n} ({n} integer); insert into {s}.{n} values (7)")
    assert con.execute(f"select y.* from {s}.{n} y join main.{n} x on x.other <> y.{n}").fetchall() == [(7,)] * 3
    assert con.execute(f"update {s}.{n} set {n} = 8 where {s}.{n}.{n} = 7").rowcount == 1
    con.execute(f"drop schema {s} cascade; drop table {n}")
    root = con._session.lake.paths.root
    assert {path.name for path in root.parent.iterdir()} == {"lake"}
    assert all(re.fullmatch(r"[a-z0-9.-]+", path.name) for path in root.rglob("*"))


def test_names_that_differ_only_in_case_are_the_same(lake: lakelite.Connection) -> None:
    lake.execute("create table Abc (Def integer); insert into ABC (DEF) values (1); create schema Sch")
    assert lake.execute('select "dEF" from "aBC"').description[0][0] == "Def"
    for sql in ("create table aBC (x int)", "create schema SCH", "create table x (a int, A int)"):
        state_kept(lake, lambda: lake.execute(sql))  # noqa: B023


# Sizes.


def test_a_statement_just_below_the_limit_runs_and_above_it_is_refused(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer, b varchar)")
    values = ",".join(f"({i},'{'x' * 60}')" for i in range(14_000))
    assert 900_000 < len(values) < 1_000_000
    assert lake.execute(f"insert into t values {values}").rowcount == 14_000
    assert lake.execute("select count(*), sum(a) from t").fetchall() == [(14_000, 14_000 * 13_999 // 2)]
    text = "é" * 499_990
    assert lake.execute(f"select length('{text}')").fetchall() == [(499_990,)]
    for sql in (f"insert into t values {values},{values}", f"select length('{text}{'x' * 20}')", "select 1 -- " + "x" * 1_000_001):
        error = state_kept(lake, lambda: lake.execute(sql))  # noqa: B023
        assert isinstance(error, lakelite.ProgrammingError)
        assert "longer than 1000000 bytes" in str(error)
        assert len(str(error)) < 1_000


def test_deep_nesting(lake: lakelite.Connection) -> None:
    lake.execute("create table t (a integer); insert into t values (1), (2)")
    for form in (
        "select {}1{}",
        "delete from t where {}a{} = 5",
        "update t set a = {}a{}",
        "insert into t select {}a{} from t where a < 0",
        "insert into t values ({}3{})",
    ):
        lake.execute(form.format("(" * 400, ")" * 400))
        for deep in (2_000, 20_000):
            error = state_kept(lake, lambda: lake.execute(form.format("(" * deep, ")" * deep)))  # noqa: B023
            assert isinstance(error, lakelite.ProgrammingError)
            assert "split it up" in str(error)
    assert lake.execute("select a from t order by a").fetchall() == [(1,), (2,), (3,)]
    for text in ("- " * 5_000 + "1", "1" + " + 1" * 5_000, "case when true then " * 1_500 + "1" + " end" * 1_500, "not " * 5_000 + "true"):
        assert isinstance(state_kept(lake, lambda: lake.execute("select " + text)), lakelite.ProgrammingError)  # noqa: B023


def test_a_long_list(lake: lakelite.Connection) -> None:
    lake.execute("create table t as select range as a from range(5000)")
    inside = ",".join(str(i) for i in range(2, 20_000, 2))
    assert lake.execute(f"select count(*) from t where a in ({inside})").fetchall() == [(2_499,)]
    assert lake.execute(f"delete from t where a in ({inside})").rowcount == 2_499
    assert lake.execute("select count(*), min(a) from t").fetchall() == [(2_501, 0)]


@pytest.mark.parametrize(
    "sql", ["\0", "select 1\0", "select '\0'", 'create table "a\0b" (a int)', "select '\ud800'", "/*", "select 'x", ")", "(", "select $$x", "'"]
)
def test_characters_that_are_no_text(con: lakelite.Connection, sql: str) -> None:
    assert isinstance(state_kept(con, lambda: con.execute(sql)), lakelite.ProgrammingError)


@pytest.mark.parametrize("sql", ["", ";", " ; ;\n", "-- nothing", "/* nothing */"])
def test_nothing_to_do(con: lakelite.Connection, sql: str) -> None:
    assert con.execute(sql).description is None


def test_the_place_counts_lines(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.ProgrammingError) as caught:
        con.execute("select a\nfrom t\nwhere  aaa = 1")
    assert caught.value.position == lakelite.errors.Position(3, 8, "where  aaa = 1")
    _, line, caret, *_ = str(caught.value).splitlines()
    assert caret.index("^") == line.index("aaa")


def test_an_error_in_a_script_stops_there(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.ProgrammingError, match="nosuch"):
        con.execute("create table made (a int); select * from nosuch; drop table t")
    assert con.execute("show tables").fetchall() == [("made",), ("t",)]
    con.execute("drop table made")


def test_read_only(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("create table t as select 1 as a")
    with lakelite.connect(tmp_path / "lake", read_only=True, autocommit=True) as con:
        for sql in (
            "insert into t values (2)",
            "delete from t",
            "create table u (a int)",
            "drop table t",
            "truncate t",
            "create schema s",
            "begin; insert into t values (2)",
        ):
            with pytest.raises(lakelite.OperationalError, match="read-only"):
                con.execute(sql)
            con.rollback()
        assert con.execute("from t").fetchall() == [(1,)]


# Objects of the caller, and a catalog that is gone.

HALF = pa.table({"ok": [1], "half": pa.array([numpy.float16(1)], pa.float16())})
WIDE = pa.table({"ok": [1], "wide": pa.array([{"x": None}], pa.struct([("x", pa.decimal256(50, 2))]))})
TORN = pa.table({"a": [1], "b": pa.Array.from_buffers(pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")])})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HALF, 'the column "half" of a Table of pyarrow is of the type halffloat'),
        (HALF.to_batches()[0], 'the column "half" of a RecordBatch of pyarrow is of the type halffloat'),
        (WIDE, 'the column "wide" of a Table of pyarrow is of the type decimal256(50, 2)'),
        (TORN, "the data holds a text that is not UTF-8"),
        (pa.table({}), "columns"),
    ],
)
def test_objects_that_cannot_be_read(con: lakelite.Connection, data: pa.Table, message: str) -> None:
    for statement in ("from data", None):
        with pytest.raises(lakelite.Error, match=re.escape(message)) as caught:  # noqa: PT012
            cursor = con.execute(statement) if statement else con.append("t", data)
            cursor.fetchall()
        assert "TRY" not in str(caught.value.hint or "TRY")
        assert caught.value.position is None or "append" not in caught.value.position.source


def test_a_plan_that_fails(con: lakelite.Connection) -> None:
    polars = library("polars")
    plan = polars.LazyFrame({"a": ["x"], "b": ["y"], "d": [1.5]}).with_columns(polars.col("a").cast(polars.Int64))
    for what in ("plan", "the rows"):
        with pytest.raises(lakelite.DataError, match=f"^reading {what} failed: .*conversion from") as caught:  # noqa: PT012
            cursor = con.execute("select b from plan where a = 1") if what == "plan" else con.append("t", plan)
            cursor.fetchall()
        assert caught.value.hint == "look at the object that gives the rows"


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("read_csv('{0}', delim = '|||||||')", "function_name = 'read_csv'"),
        ("read_csv('{0}', quote = 'xx')", "function_name = 'read_csv'"),
        ("read_csv('{0}', sample_size = 0)", "function_name = 'read_csv'"),
        ("read_csv('{0}', encoding = 'nosuch')", "there are: utf-8, utf-16 and latin-1"),
        ("'{0}.parquet'", "check the path and how the file was made"),
    ],
)
def test_options_of_files_get_no_advice_for_expressions(con: lakelite.Connection, tmp_path: Path, call: str, hint: str) -> None:
    path = tmp_path / "x"
    path.write_text("a|b\n1|2\n")
    path.with_suffix(".parquet").touch()
    with pytest.raises(lakelite.Error) as caught:
        con.execute(f"from {call.format(path)}").fetchall()
    assert hint in str(caught.value.hint)


def test_a_catalog_that_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "lake"
    with lakelite.connect(path, autocommit=True) as lake:
        lake.execute("set inline_rows = 0; create table t as select 1 as a")
        (path / "catalog.sqlite").rename(tmp_path / "gone")
        for statement in ("insert into t values (2)", "create table u (a integer)"):
            with pytest.raises(lakelite.OperationalError, match="was removed or replaced while the lake was open"):
                lake.execute(statement)
        assert lake.execute("from t").fetchall() == [(1,)]
    for arguments in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(lakelite.OperationalError, match="has lost its catalog") as caught:
            lakelite.connect(path, **arguments)
        assert "restore" in str(caught.value.hint)


def test_flipped_bytes_in_a_data_file_are_told_as_damage(tmp_path: Path) -> None:
    """What DuckDB's Parquet reader says of bytes names no file: CHECK LAKE does."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t AS SELECT range AS n, 'text ' || range AS v FROM range(20000)")
        (data,) = (tmp_path / "lake" / "data").glob("*/*.parquet")
        whole = data.read_bytes()
        data.chmod(0o644)
        data.write_bytes(whole[:4] + b"\xff" * 8 + whole[12:])  # the first page's header
        with pytest.raises(lakelite.OperationalError, match="a Parquet file that the statement reads is damaged: ") as caught:
            con.execute("SELECT count(*), sum(n) FROM t").fetchall()
        assert "CHECK LAKE names the damaged files" in (caught.value.hint or "")
        assert any(data.name in str(row) for row in con.execute("CHECK LAKE").fetchall())


@pytest.mark.parametrize(
    "said",
    [
        "TProtocolException: Invalid data", "Out of buffer", "don't know what type: \x0f", "ZSTD Decompression failure", "No more data to read (TTransportException)",
        "The width (90) of the bitpacked data exceeds the supported max width (64), the file might be corrupted.",
        "Parquet file has invalid block sizes for DELTA_BINARY_PACKED", "Parquet file is likely corrupted, dictionary offset out of range",
    ],
)  # fmt: skip
def test_what_the_parquet_reader_says_of_bytes(said: str) -> None:
    error = engine_error(duckdb.InvalidInputException(f"Invalid Input Error: {said}"), "FROM t")
    assert (type(error), error.message) == (lakelite.OperationalError, f"a Parquet file that the statement reads is damaged: {said}")
    value = engine_error(duckdb.ConversionException(f'Conversion Error: Could not convert string "{said}" to INT32'), "FROM t")
    assert type(value) is lakelite.DataError
