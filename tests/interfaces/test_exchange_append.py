"""con.append: rows of other libraries into a table, by column name, as one statement."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from exchanging import Array, Stream, library, pinned, reader
from hypothesis import given
from hypothesis import strategies as some

import lakelite


@pytest.fixture
def table(lake: Any) -> Any:
    lake.execute("CREATE TABLE t (id BIGINT NOT NULL, s VARCHAR DEFAULT 'none', d DECIMAL(5, 2), k TINYINT, made TIMESTAMP DEFAULT now())")
    return lake


def rows(con: Any, columns: str = "id, s, d, k") -> list[tuple[Any, ...]]:
    return con.execute(f"SELECT {columns} FROM t ORDER BY ALL").fetchall()


DATA = pa.table({"k": [1, None], "id": [10, 20], "D": [1.5, 2.25]})
ADDED = [(10, "none", Decimal("1.50"), 1), (20, "none", Decimal("2.25"), None)]


def as_dataset(data: pa.Table, folder: Path) -> Any:
    pyarrow.parquet.write_table(data, folder / "rows.parquet")
    return pyarrow.dataset.dataset(folder / "rows.parquet")


FORMS = {
    "Table": lambda data, folder: data,
    "RecordBatch": lambda data, folder: data.to_batches()[0],
    "RecordBatchReader": lambda data, folder: data.to_reader(),
    "Dataset": as_dataset,
    "Scanner": lambda data, folder: as_dataset(data, folder).scanner(),
    "stream": lambda data, folder: Stream(data),
    "array": lambda data, folder: Array(data.to_batches()[0]),
    "DuckDB": lambda data, folder: duckdb.connect().from_arrow(data),
    "pandas": lambda data, folder: library("pandas") and data.to_pandas(),
    "Polars": lambda data, folder: library("polars").from_arrow(data),
    "LazyFrame": lambda data, folder: library("polars").from_arrow(data).lazy(),
}


@pytest.mark.parametrize("form", FORMS)
def test_whatever_holds_rows_can_be_appended(table: Any, tmp_path: Path, form: str) -> None:
    cursor = table.append("t", FORMS[form](DATA, tmp_path))
    assert cursor.rowcount == 2
    assert rows(table) == ADDED
    assert table.execute("SELECT count(made) FROM t").fetchone() == (2,)
    assert table.last_commit.snapshot_id == 2


def test_a_cursor_is_a_source_too(table: Any) -> None:
    assert table.append("t", table.execute("SELECT range AS id, 'x' AS s FROM range(3)")).rowcount == 3
    assert table.append("t", table.execute("SELECT id + 10 AS id FROM t")).rowcount == 3
    assert rows(table, "id, s") == [(0, "x"), (1, "x"), (2, "x"), (10, "none"), (11, "none"), (12, "none")]


@pytest.mark.parametrize("name", ["t", "main.t", '"t"', "MAIN.T", ' "main" . t '])
def test_the_table_is_named_as_in_sql(table: Any, name: str) -> None:
    assert table.append(name, DATA).rowcount == 2


def test_a_quoted_name_and_a_schema(lake: Any) -> None:
    lake.execute('CREATE SCHEMA "my schema"; CREATE TABLE "my schema"."a.b" ("x y" INTEGER)')
    assert lake.append('"my schema"."a.b"', pa.table({"X Y": [1]})).rowcount == 1
    assert lake.execute('FROM "my schema"."a.b"').fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("name", "words"),
    [("tt", "did you mean t"), ("x.t", "the schemas are: main"), ("", "the name of a table"), ("t u", "syntax error"), ("t; DROP TABLE t", "syntax error"),
     ("'t'", "the name of a table"), ("a.b.c", "two parts"), ("lake.tables", "can only be read"), ("t -- it", None)],
)  # fmt: skip
def test_a_name_that_is_none(table: Any, name: str, words: str | None) -> None:
    if words is None:
        assert table.append(name, DATA).rowcount == 2
        return
    with pytest.raises(lakelite.ProgrammingError, match=words):
        table.append(name, DATA)
    assert rows(table) == []


@pytest.mark.parametrize("name", [None, 5, b"t"])
def test_a_name_is_a_text(table: Any, name: Any) -> None:
    with pytest.raises(lakelite.InterfaceError, match="name of a table is a str"):
        table.append(name, DATA)


@pytest.mark.parametrize(
    "data", [None, 5, "t", [1, 2], {"id": [1]}, [{"id": 1}], pa.Table, pa.array([1]), pa.chunked_array([[1]]), Stream(pa.array([1]))]
)
def test_what_is_no_table_is_refused_with_what_is_one(table: Any, data: Any) -> None:
    with pytest.raises(lakelite.ProgrammingError) as raised:
        table.append("t", data)
    assert raised.value.hint
    assert rows(table) == []


def test_a_series_is_a_column(table: Any) -> None:
    pandas = library("pandas")
    for wrong in ([{"a": 1}], {"a": [1]}, ()):
        with pytest.raises(lakelite.ProgrammingError, match=r"is not a table\nHint: pa\.Table\.from_pylist.*executemany"):
            table.append("t", wrong)
    with pytest.raises(lakelite.ProgrammingError, match="a Series of pandas is not a table") as raised:
        table.append("t", pandas.Series([1], name="id"))
    assert "to_frame" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (pa.table({"s": ["a"]}), lakelite.IntegrityError, "NOT NULL constraint failed: t.id"),
        (pa.table({"id": [1, None]}), lakelite.IntegrityError, "NOT NULL constraint failed: t.id"),
        (pa.table({"id": [1], "k": [1000]}), lakelite.DataError, "1000 is out of range for TINYINT"),
        (pa.table({"id": [1], "d": [12345.5]}), lakelite.DataError, "out of range"),
        (pa.table({"id": ["x"]}), lakelite.DataError, "could not convert 'x' to BIGINT"),
        (pa.table({"id": [1], "ss": ["a"]}), lakelite.ProgrammingError, "no column \"ss\"[^$]*did you mean s"),
        (pa.table({"id": [1], "zebra": ["a"]}), lakelite.ProgrammingError, "its columns are: id, s, d, k, made"),
        (pa.table([[1], [2]], names=["id", "id"]), lakelite.ProgrammingError, 'column "id" is given twice'),
        (pa.table([[1], [2]], names=["id", "ID"]), lakelite.ProgrammingError, 'column "ID" is given twice'),
        (pa.table({}), lakelite.ProgrammingError, "has no columns"),
    ],
)  # fmt: skip
def test_what_does_not_fit_leaves_nothing_behind(table: Any, tmp_path: Path, data: pa.Table, error: type[Exception], words: str) -> None:
    table.append("t", DATA)
    before = table.last_commit.snapshot_id
    for source in (data, data.to_reader()):
        with pytest.raises(error, match=words):
            table.append("t", source)
    assert rows(table) == ADDED
    assert table.last_commit.snapshot_id == before
    assert pinned(tmp_path / "lake") is None


def test_no_rows(table: Any) -> None:
    assert table.append("t", DATA.slice(0, 0)).rowcount == 0
    assert table.append("t", DATA.slice(0, 0).to_reader()).rowcount == 0
    assert rows(table) == []


def test_the_index_of_a_frame_is_no_column(table: Any) -> None:
    pandas = library("pandas")
    frame = pandas.DataFrame({"id": [1], "s": ["a"]}, index=pandas.Index([7], name="number"))
    assert table.append("t", frame).rowcount == 1
    with pytest.raises(lakelite.ProgrammingError, match='"id" is the index of a DataFrame') as raised:
        table.append("t", frame.set_index("id"))
    assert "reset_index" in (raised.value.hint or "")
    assert table.append("t", frame.set_index("id").reset_index()).rowcount == 1
    assert rows(table, "id, s") == [(1, "a"), (1, "a")]


def test_frames_that_do_not_fit(table: Any) -> None:
    pandas = library("pandas")
    for frame, words in [
        (pandas.DataFrame([[1, 2]], columns=["id", "id"]), "given twice"),
        (pandas.DataFrame([[1, 2]]), 'no column "0"'),
        (pandas.DataFrame(), "no columns"),
        (pandas.DataFrame({"id": [1, object()]}), "could not convert"),
    ]:
        with pytest.raises(lakelite.Error, match=words):
            table.append("t", frame)
    assert table.append("t", pandas.DataFrame({"id": []})).rowcount == 0
    assert rows(table) == []


def test_a_reader_that_fails_in_the_middle(table: Any, tmp_path: Path) -> None:
    batches = [{"id": list(range(n * 5000, n * 5000 + 5000))} for n in range(5)]
    with pytest.raises(lakelite.DataError, match=r"reading the rows failed.*the source broke") as raised:
        table.append("t", reader(*batches, fails="the source broke"))
    assert raised.value.__cause__ is not None
    assert rows(table) == []
    assert not list((tmp_path / "lake" / "data").rglob("*.parquet"))
    assert table.append("t", reader(*batches)).rowcount == 25000


def test_a_reader_can_be_read_once_and_says_so(table: Any) -> None:
    source = reader({"id": [1]}, {"id": [2]})
    assert table.append("t", source).rowcount == 2
    with pytest.raises(lakelite.DataError, match="already been consumed"):
        table.append("t", source)
    assert rows(table, "id") == [(1,), (2,)]


def test_a_reader_is_read_batch_by_batch_in_order(table: Any) -> None:
    log: list[int] = []
    source = reader(*({"id": list(range(n * 1000, n * 1000 + 1000))} for n in range(200)), log=log)
    assert table.append("t", source).rowcount == 200_000
    assert log == list(range(200))
    assert table.execute("SELECT id FROM t").to_arrow()["id"].to_pylist() == list(range(200_000))


@given(some.lists(some.lists(some.integers(-(2**62), 2**62) | some.none(), max_size=40), max_size=6), some.booleans())
def test_the_rows_are_those_of_the_data(shared: Any, parts: list[list[int | None]], as_reader: bool) -> None:
    data = pa.table({"i": pa.chunked_array([pa.array(part, pa.int64()) for part in parts], pa.int64())})
    shared.execute("CREATE OR REPLACE TABLE p (i BIGINT, n VARCHAR DEFAULT 'x')")
    assert shared.append("p", data.to_reader() if as_reader else data).rowcount == data.num_rows
    assert shared.execute("SELECT i, n FROM p").fetchall() == [(i, "x") for part in parts for i in part]


@pytest.fixture(scope="module")
def shared() -> Any:
    with lakelite.connect(autocommit=True) as con:
        yield con


# Statements and transactions.


def test_an_append_is_one_snapshot_with_a_name_in_the_history(table: Any) -> None:
    table.append("t", DATA)
    history = table.execute("SELECT operation, statements FROM lake.snapshots ORDER BY snapshot_id").fetchall()
    assert [operation for operation, _ in history[-2:]] == ["CREATE TABLE", "APPEND"]
    assert "append to t" in str(history[-1][1])


def test_an_append_is_part_of_its_transaction(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("CREATE TABLE t (i BIGINT)")
        con.append("t", pa.table({"i": [1]}))
        assert con.in_transaction
        con.commit()
        con.append("t", pa.table({"i": [2]}))
        assert con.execute("FROM t ORDER BY i").fetchall() == [(1,), (2,)]
        with pytest.raises(lakelite.ProgrammingError):
            con.append("t", pa.table({"j": [3]}))
        con.execute("SAVEPOINT s")
        con.append("t", pa.table({"i": [4]}))
        con.execute("ROLLBACK TO s")
        con.append("t", pa.table({"i": [5]}))
        con.commit()
        assert con.execute("FROM t ORDER BY i").fetchall() == [(1,), (2,), (5,)]
        con.append("t", pa.table({"i": [6]}))
        con.rollback()
        assert con.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_read_only(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (i BIGINT)")
    with lakelite.connect(tmp_path / "lake", read_only=True) as con, pytest.raises(lakelite.OperationalError, match="read-only"):
        con.append("t", pa.table({"i": [1]}))


def test_a_replay_uses_the_rows_of_the_first_run(tmp_path: Path) -> None:
    """The reader was read, the table changed: the commit runs again, and has the rows all the same."""
    with lakelite.connect(tmp_path / "lake") as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("CREATE TABLE t (i BIGINT, n BIGINT); CREATE TABLE u AS SELECT 0 AS n")
        source = reader({"i": [1, 2]}, {"i": [3]})
        con.append("t", source)
        con.execute("UPDATE t SET n = (SELECT max(n) FROM u)")
        other.execute("UPDATE u SET n = 5")
        con.commit()
        assert con.last_commit.attempts == 2
        assert con.execute("FROM t ORDER BY i").fetchall() == [(1, 5), (2, 5), (3, 5)]


def meanwhile(other: Any, sql: str) -> pa.RecordBatchReader:
    """A reader of the rows 1 and 2, between which another connection runs a statement."""

    def read() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"i": [1]})
        other.execute(sql)
        yield pa.record_batch({"i": [2]})

    return pa.RecordBatchReader.from_batches(pa.schema([("i", pa.int64())]), read())


@pytest.mark.parametrize(
    ("winner", "wanted"),
    [
        ("INSERT INTO t VALUES (9)", [1, 2, 9]),
        ("INSERT OVERWRITE t SELECT max(i) + 9 FROM t", [1, 2, 9]),
        ("INSERT OVERWRITE t SELECT 9", [9]),
        ("DELETE FROM t", [1, 2]),
        ("UPDATE t SET i = 8", [1, 2, 8]),
    ],
)
def test_an_append_that_meets_a_winner_in_autocommit_is_there_once(lake: Any, tmp_path: Path, winner: str, wanted: list[int]) -> None:
    lake.execute("CREATE TABLE t (i BIGINT); INSERT INTO t VALUES (0)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        assert lake.append("t", meanwhile(other, winner)).rowcount == (0 if wanted == [9] else 2)
    found = [i for (i,) in lake.execute("FROM t ORDER BY i").fetchall()]
    assert found == ([0, *wanted] if winner.startswith("INSERT INTO") else wanted)


@pytest.mark.parametrize(("winner", "wanted"), [("CREATE OR REPLACE TABLE t (i BIGINT, j BIGINT)", [(1, None), (2, None)]), ("DROP TABLE t", None)])
def test_an_append_to_a_table_that_became_another_one_is_there_or_an_error_and_never_nothing(
    lake: Any, tmp_path: Path, winner: str, wanted: list[Any] | None
) -> None:
    lake.execute("CREATE TABLE t (i BIGINT)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        if wanted is None:
            with pytest.raises(lakelite.Error):
                lake.append("t", meanwhile(other, winner))
        else:
            lake.append("t", meanwhile(other, winner))
            assert sorted(lake.execute("FROM t").fetchall()) == wanted


def test_two_appends_at_the_same_time_both_stay(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as one, lakelite.connect(tmp_path / "lake") as two:
        one.execute("CREATE TABLE t (i BIGINT)")
        one.commit()
        one.append("t", pa.table({"i": [1]}))
        two.append("t", pa.table({"i": [2]}))
        one.commit()
        two.commit()
        assert two.last_commit.attempts == 1
        assert two.execute("FROM t ORDER BY i").fetchall() == [(1,), (2,)]


def test_an_append_to_a_table_of_the_same_transaction_is_not_repeated(tmp_path: Path) -> None:
    """Its rows are gone: rather a conflict than an empty table."""
    with lakelite.connect(tmp_path / "lake") as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("CREATE TABLE u AS SELECT 0 AS n")
        con.execute("CREATE TABLE t (i BIGINT)")
        con.append("t", reader({"i": [1]}))
        con.execute("INSERT INTO u SELECT count(*) FROM u")
        other.execute("INSERT INTO u VALUES (7)")
        with pytest.raises(lakelite.TransactionConflict, match="DataFrames"):
            con.commit()
        assert other.execute("SHOW TABLES").fetchall() == [("u",)]


def test_the_data_is_let_go(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("CREATE TABLE t (i BIGINT)")
        data = Stream(pa.table({"i": list(range(5000))}))
        gone = weakref.ref(data.table)
        con.append("t", data)
        del data
        gc.collect()
        assert gone() is None
        con.commit()
        assert con.execute("SELECT count(*) FROM t").fetchone() == (5000,)
