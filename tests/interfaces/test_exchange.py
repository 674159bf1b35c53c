"""Results for other libraries: what they hold, that they stream, what they keep and when they let it go."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from exchanging import library, pinned
from hypothesis import given
from hypothesis import strategies as some

import lakelite

TYPES = {
    "BOOLEAN": "true", "TINYINT": "-1", "SMALLINT": "300", "INTEGER": "70000", "BIGINT": "-9000000000", "HUGEINT": "170141183460469231",
    "UTINYINT": "255", "USMALLINT": "65535", "UINTEGER": "4294967295", "UBIGINT": "18446744073709551615", "UHUGEINT": "7", "BIGNUM": "8",
    "FLOAT": "1.5", "DOUBLE": "0.1", "DECIMAL(4,1)": "123.4", "DECIMAL(18,3)": "-0.001", "DECIMAL(38,10)": "1.25", "VARCHAR": "'a''b'",
    "BLOB": "'\\xAA'::BLOB", "BIT": "'10101'", "UUID": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "DATE": "'2024-02-29'",
    "TIME": "'12:34:56.789'", "TIMETZ": "'12:34:56+02:00'", "TIMESTAMP": "'2024-02-29 01:02:03.000004'", "TIMESTAMP_S": "'2024-02-29 01:02:03'",
    "TIMESTAMP_MS": "'2024-02-29 01:02:03.004'", "TIMESTAMP_NS": "'2024-02-29 01:02:03.000000004'", "TIMESTAMPTZ": "'2024-02-29 01:02:03+02'",
    "INTERVAL": "INTERVAL '1 month 2 days 3 seconds'", "ENUM('a','b')": "'b'", "JSON": "'{\"a\": 1}'", "INTEGER[]": "[1, NULL]", "INTEGER[2]": "[1, 2]",
    "STRUCT(a INTEGER, b VARCHAR[])": "{'a': 1, 'b': ['x']}", "MAP(VARCHAR, INTEGER)": "MAP {'k': 1}", "UNION(n INTEGER, s VARCHAR)": "'u'",
    "STRUCT(a DECIMAL(9,2), e ENUM('q','r'))[]": "[{'a': 1.5, 'e': 'r'}]",
}  # fmt: skip


@pytest.fixture
def numbers(lake: Any) -> Any:
    lake.execute("CREATE TABLE t AS SELECT range::INTEGER AS i, 's' || range AS s FROM range(10000)")
    return lake


@pytest.fixture(scope="module")
def shared() -> Iterator[Any]:
    with lakelite.connect(autocommit=True) as con:
        yield con


def outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:  # DuckDB's own export cannot do all types: then ours must not either
        return type(error)


def own_export(kind: str, value: str) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().sql(f"SELECT c::{kind} AS c FROM (VALUES (CAST({value} AS {kind})), (NULL)) v(c)")


@pytest.mark.parametrize("kind", TYPES)
def test_types_and_values_are_those_of_duckdbs_own_arrow_export(shared: Any, kind: str) -> None:
    shared.execute(f"CREATE OR REPLACE TABLE t (c {kind})")
    shared.execute(f"INSERT INTO t VALUES ({TYPES[kind]}), (NULL)")
    wanted = own_export(kind, TYPES[kind]).to_arrow_table()
    cursor = shared.cursor()
    found = [
        cursor.execute("FROM t").to_arrow(),
        cursor.execute("FROM t").fetch_record_batch().read_all(),
        pa.table(cursor.execute("FROM t")),
    ]
    for table in found:
        assert table.schema == wanted.schema
        assert table.equals(wanted)


@pytest.mark.parametrize("kind", TYPES)
def test_types_and_values_are_those_of_duckdbs_own_pandas_export(shared: Any, kind: str) -> None:
    pandas = library("pandas")
    shared.execute(f"CREATE OR REPLACE TABLE t (c {kind})")
    shared.execute(f"INSERT INTO t VALUES ({TYPES[kind]}), (NULL)")
    wanted = outcome(lambda: own_export(kind, TYPES[kind]).df())
    found = outcome(lambda: shared.execute("FROM t").df())
    if isinstance(wanted, type):
        assert issubclass(found, lakelite.NotSupportedError)
    else:
        pandas.testing.assert_frame_equal(found, wanted)


@pytest.mark.parametrize("kind", TYPES)
def test_types_and_values_are_those_of_duckdbs_own_polars_export(shared: Any, kind: str) -> None:
    testing = library("polars") and library("polars.testing")
    shared.execute(f"CREATE OR REPLACE TABLE t (c {kind})")
    shared.execute(f"INSERT INTO t VALUES ({TYPES[kind]}), (NULL)")
    wanted = outcome(lambda: own_export(kind, TYPES[kind]).pl())
    found = outcome(lambda: shared.execute("FROM t").pl())
    if isinstance(wanted, type):
        assert issubclass(found, lakelite.NotSupportedError)
    else:
        testing.assert_frame_equal(found, wanted)


@pytest.mark.parametrize("query", ["SELECT 1 AS a, 2 AS a, 3 AS \"A\"", "EXPLAIN FROM t", "SUMMARIZE t", "DESCRIBE FROM t", "VALUES (1, 'x'), (2, NULL)",
                                   "PIVOT (SELECT i % 2 AS k, i % 3 AS v FROM t) ON k USING sum(v)", "SELECT count(*) FROM t", "TABLE t",
                                   "WITH x AS (FROM t) SELECT sum(i) FROM x", "SELECT i FROM t WHERE i = $n", "SELECT i FROM t WHERE false"])  # fmt: skip
def test_any_query_can_be_streamed_and_gives_what_it_gives_without(numbers: Any, query: str) -> None:
    values = {"n": 7} if "$n" in query else None
    table = numbers.execute(query, values).to_arrow()
    streamed = numbers.execute(query, values).fetch_record_batch().read_all()
    assert streamed.schema == table.schema
    assert streamed.column_names == [name for name, *_ in numbers.execute(query, values).description]
    assert streamed == table


def lists(cursor: Any, way: str) -> list[int]:
    """What is left of a column i."""
    if way == "df":
        library("pandas")
        return cursor.df()["i"].tolist()
    if way == "pl":
        library("polars")
        return cursor.pl()["i"].to_list()
    found = {"to_arrow": cursor.to_arrow, "reader": lambda: cursor.fetch_record_batch(100).read_all(), "capsule": lambda: pa.table(cursor)}[way]()
    return found["i"].to_pylist()


@pytest.mark.parametrize("way", ["to_arrow", "reader", "capsule", "df", "pl"])
def test_each_takes_what_is_left(numbers: Any, way: str) -> None:
    query = "SELECT i FROM t WHERE i < 5000 ORDER BY i"
    assert lists(numbers.execute(query), way) == list(range(5000))
    cursor = numbers.execute(query)
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany(99)[-1] == (99,)
    assert lists(cursor, way) == list(range(100, 5000))
    assert cursor.fetchall() == []
    if way == "capsule":  # who does not know that the rows were read is not to take the end of them for all
        with pytest.raises(lakelite.InterfaceError, match="have been read already"):
            lists(cursor, way)
    else:
        assert lists(cursor, way) == []


@given(some.lists(some.integers(0, 3000), max_size=3), some.sampled_from(["to_arrow", "reader", "capsule"]), some.integers(0, 5000))
def test_rows_that_were_fetched_and_those_that_are_exported_are_all_rows(shared: Any, sizes: list[int], way: str, rows: int) -> None:
    cursor = shared.execute("SELECT range AS i, 's' || range AS s FROM range(?)", (rows,))
    fetched = [cursor.fetchmany(size) for size in sizes]
    seen = [row[0] for found in fetched for row in found]
    if way == "capsule" and any(len(found) < size for found, size in zip(fetched, sizes, strict=True)):
        with pytest.raises(lakelite.InterfaceError, match="have been read already"):
            lists(cursor, way)
        assert len(seen) == rows
    else:
        assert seen + lists(cursor, way) == list(range(rows))


def test_the_end_of_a_result_still_has_its_columns(numbers: Any) -> None:
    cursor = numbers.execute("SELECT i, s, 1.5::DECIMAL(9,3) AS d, 'a'::ENUM('a') AS e, NULL AS n FROM t LIMIT 3")
    whole = numbers.execute("SELECT i, s, 1.5::DECIMAL(9,3) AS d, 'a'::ENUM('a') AS e, NULL AS n FROM t LIMIT 3").to_arrow()
    assert len(cursor.fetchall()) == 3
    assert cursor.to_arrow() == whole.slice(0, 0)
    assert [name for name, *_ in cursor.description] == ["i", "s", "d", "e", "n"]


@pytest.mark.parametrize(
    "statement", ["SHOW TABLES", "SHOW ALL TABLES", "DESCRIBE t", "DESCRIBE HISTORY t", "SHOW ALL", "SHOW SCHEMAS", "VACUUM DRY RUN"]
)
def test_results_that_are_held_can_be_exported_too(numbers: Any, statement: str) -> None:
    cursor = numbers.execute(statement)
    names = [name for name, *_ in cursor.description]
    rows = cursor.fetchall()
    assert rows
    table = numbers.execute(statement).to_arrow()
    assert table.column_names == names
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert pa.table(numbers.execute(statement)) == table
    cursor = numbers.execute(statement)
    first = cursor.fetchone()
    assert [first, *(tuple(row.values()) for row in cursor.to_arrow().to_pylist())] == rows


def test_held_results_as_frames(numbers: Any) -> None:
    library("pandas")
    assert numbers.execute("DESCRIBE t").df()["column_name"].tolist() == ["i", "s"]
    assert numbers.execute("SHOW TABLES").df()["name"].tolist() == ["t"]


def test_where_there_is_no_result_there_is_nothing_to_export(numbers: Any) -> None:
    for cursor in (numbers.cursor(), numbers.execute("INSERT INTO t VALUES (1, 'x')")):
        for call in (cursor.df, cursor.pl, cursor.to_arrow, cursor.fetch_record_batch, cursor.__arrow_c_stream__):
            if call in (cursor.df, cursor.pl):
                library({"df": "pandas", "pl": "polars"}[call.__name__])
            with pytest.raises(lakelite.InterfaceError, match="no result"):
                call()
    closed = numbers.execute("FROM t")
    closed.close()
    with pytest.raises(lakelite.InterfaceError, match="closed"):
        closed.to_arrow()


@pytest.mark.parametrize("rows", [0, -1, 1.5, "10", None])
def test_a_batch_has_at_least_a_row(numbers: Any, rows: Any) -> None:
    with pytest.raises(lakelite.InterfaceError, match="rows_per_batch"):
        numbers.execute("FROM t").fetch_record_batch(rows)


def test_batches_are_about_as_large_as_they_are_wanted(numbers: Any) -> None:
    sizes = [batch.num_rows for batch in numbers.execute("FROM t").fetch_record_batch(2048)]
    assert sum(sizes) == 10000
    assert max(sizes) <= 2048


@pytest.mark.parametrize("missing", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_named(numbers: Any, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    cursor = numbers.execute("FROM t")
    with pytest.raises(lakelite.InterfaceError, match=f"{missing} is not installed") as raised:
        cursor.df() if missing == "pandas" else cursor.pl()
    assert raised.value.hint == f'pip install "lakelite[{missing}]"'
    assert len(cursor.fetchall()) == 10000  # nothing was taken


# Errors.

BREAKS = "SELECT CAST(CASE WHEN i = 9000 THEN 'x' ELSE s[2:] END AS INTEGER) AS n FROM t"


def test_an_error_in_the_middle_of_a_stream_is_ours(numbers: Any, tmp_path: Path) -> None:
    reader = numbers.execute(BREAKS).fetch_record_batch(1000)
    with pytest.raises(lakelite.DataError, match="'x'") as raised:
        for _ in reader:
            pass
    assert raised.value.__cause__ is not None
    assert "Conversion Error" not in str(raised.value)
    assert pinned(tmp_path / "lake") is None
    with pytest.raises(lakelite.InterfaceError, match="closed"):
        reader.read_next_batch()
    for export in ("to_arrow", "fetchall"):
        with pytest.raises(lakelite.DataError, match="'x'"):
            getattr(numbers.execute(BREAKS), export)()
    assert numbers.execute("SELECT count(*) FROM t").fetchone() == (10000,)


def test_who_reads_the_capsule_is_told_our_words(numbers: Any) -> None:
    with pytest.raises(pa.ArrowException, match="could not convert 'x'"):
        pa.table(numbers.execute(BREAKS))


def test_a_stream_can_be_interrupted(numbers: Any) -> None:
    reader = numbers.execute("SELECT a.i FROM t a, t b").fetch_record_batch(1000)
    reader.read_next_batch()
    numbers.interrupt()
    with pytest.raises(lakelite.OperationalError, match="interrupted"):
        for _ in reader:
            pass
    assert numbers.execute("SELECT 1").fetchone() == (1,)


def test_a_batch_that_takes_too_long_is_stopped(numbers: Any) -> None:
    reader = numbers.execute("SELECT a.i FROM t a, t b WHERE sin(a.i * b.i) > 2 OR (a.i = 0 AND b.i < 3000)").fetch_record_batch(1000)
    numbers.execute("SET statement_timeout_ms = 30")
    with pytest.raises(lakelite.OperationalError, match="30 ms"):
        for _ in reader:
            pass
    numbers.execute("SET statement_timeout_ms = 0")


# What is kept, and how long.


@pytest.mark.parametrize("end", ["read", "collected", "unread", "error", "connection"])
def test_the_snapshot_is_pinned_as_long_as_the_stream_is_open(numbers: Any, tmp_path: Path, end: str) -> None:
    place = tmp_path / "lake"
    assert pinned(place) is None
    reader = numbers.execute(BREAKS if end == "error" else "FROM t").fetch_record_batch(1000)
    assert pinned(place) == 1
    if end == "unread":
        del reader
    elif end != "error":
        reader.read_next_batch()
        assert pinned(place) == 1
    if end == "read":
        reader.read_all()
    elif end == "collected":
        del reader
    elif end == "error":
        with pytest.raises(lakelite.DataError):
            reader.read_all()
    elif end == "connection":
        numbers.close()
        assert not list((place / "leases").iterdir())
        with pytest.raises(lakelite.InterfaceError, match="closed"):
            reader.read_next_batch()
        return
    gc.collect()
    assert pinned(place) is None


def test_a_reader_keeps_its_connection_open(numbers: Any, tmp_path: Path) -> None:
    def opened(how: str) -> Any:
        con = lakelite.connect(tmp_path / "lake", autocommit=True)
        cursor = con.execute("SELECT i FROM t")
        return cursor.fetch_record_batch() if how == "batches" else pa.RecordBatchReader.from_stream(cursor)

    for how in ("batches", "stream"):
        reader = opened(how)
        gc.collect()
        assert reader.read_all().num_rows == numbers.execute("SELECT count(*) FROM t").fetchone()[0]
        del reader
        gc.collect()
    assert pinned(tmp_path / "lake") is None


def test_a_capsule_that_nobody_reads_lets_the_snapshot_go(numbers: Any, tmp_path: Path) -> None:
    capsule = numbers.execute("FROM t").__arrow_c_stream__()
    assert pinned(tmp_path / "lake") == 1
    del capsule
    gc.collect()
    assert pinned(tmp_path / "lake") is None


def test_after_the_connection_is_closed_there_are_errors_and_no_crash(numbers: Any) -> None:
    cursor, begun, unread = numbers.execute("FROM t"), numbers.execute("FROM t"), numbers.execute("FROM t").fetch_record_batch(10)
    begun.fetchone()
    numbers.close()
    for call in (cursor.to_arrow, begun.to_arrow, cursor.fetch_record_batch, begun.__arrow_c_stream__, unread.read_all):
        with pytest.raises(lakelite.InterfaceError, match="closed"):
            call()
    with pytest.raises(lakelite.InterfaceError, match="closed"):
        numbers.append("t", pa.table({"i": [1]}))
    with pytest.raises(lakelite.InterfaceError, match="closed"):
        numbers.duckdb()


def test_a_result_keeps_its_snapshot_while_others_write_and_vacuum(numbers: Any, tmp_path: Path) -> None:
    numbers.execute("DELETE FROM t WHERE i % 2 = 0")
    unread, begun = numbers.execute("SELECT i FROM t"), numbers.execute("SELECT i FROM t").fetch_record_batch(500)
    past = numbers.execute("SELECT i FROM t AT (VERSION => 1)")
    first = begun.read_next_batch()
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("INSERT OVERWRITE t SELECT 0 AS i, 'x' AS s")
        other.execute("VACUUM RETAIN 0 HOURS")
        odd = list(range(1, 10000, 2))
        assert first["i"].to_pylist() + begun.read_all()["i"].to_pylist() == odd
        assert unread.fetch_record_batch().read_all()["i"].to_pylist() == odd
        assert past.fetch_record_batch().read_all()["i"].to_pylist() == list(range(10000))
        assert numbers.execute("SELECT i FROM t").to_arrow()["i"].to_pylist() == [0]
        for _ in range(2):  # once to mark what has expired, once to remove it
            other.execute("VACUUM RETAIN 0 HOURS")
        with pytest.raises(lakelite.OperationalError, match="expired"):
            numbers.execute("FROM t AT (VERSION => 1)")


def test_a_result_of_an_open_transaction_outlives_its_end(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("CREATE TABLE t AS SELECT range AS i FROM range(5000)")
        con.commit()
        for end in (con.rollback, con.commit):
            con.execute("INSERT INTO t SELECT 5000 + range FROM range(5000)")
            con.execute("INSERT INTO t VALUES (-1)")
            unread, begun = con.execute("SELECT i FROM t"), con.execute("SELECT i FROM t").fetch_record_batch(100)
            end()
            wanted = {-1, *range(10000)}
            assert set(unread.fetch_record_batch().read_all()["i"].to_pylist()) == wanted
            assert set(begun.read_all()["i"].to_pylist()) == wanted


def test_a_stream_reads_the_base_of_its_transaction_also_behind_a_replay(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("CREATE TABLE t AS SELECT range AS i FROM range(100); CREATE TABLE u (n BIGINT)")
        result = con.execute("SELECT i FROM t AT (VERSION => 1) WHERE i < 50 UNION ALL SELECT n FROM u")
        con.execute("INSERT INTO u SELECT 7 WHERE (SELECT count(*) FROM u) >= 0")
        other.execute("INSERT INTO u VALUES (1)")
        con.commit()
        assert con.last_commit.attempts == 2
        assert sorted(result.fetch_record_batch().read_all()["i"].to_pylist()) == list(range(50))


def test_now_is_the_same_moment_in_the_stream_of_a_transaction(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        moment = con.execute("SELECT now() AS n").fetchone()[0]
        assert con.execute("SELECT now() AS n").fetch_record_batch().read_all()["n"].to_pylist() == [moment]


def test_other_statements_go_on_while_a_stream_is_read(numbers: Any) -> None:
    reader = numbers.execute("SELECT i FROM t").fetch_record_batch(1000)
    seen: list[int] = []
    for number, batch in enumerate(reader):
        numbers.execute("INSERT INTO t VALUES (?, 'new')", (-number,))
        numbers.execute("DELETE FROM t WHERE i = ?", (number * 1000,))
        seen += batch["i"].to_pylist()
    assert seen == list(range(10000))


# Consumers.


def test_a_cursor_is_a_table_for_duckdb_pandas_and_polars(numbers: Any) -> None:
    other = duckdb.connect()
    other.register("cursor_of_lake", pa.RecordBatchReader.from_stream(numbers.execute("SELECT i FROM t")))
    assert other.execute("SELECT sum(i) FROM cursor_of_lake").fetchone() == (49995000,)
    other.close()
    requested = pa.schema([("i", pa.int64())])
    assert pa.RecordBatchReader.from_stream(numbers.execute("SELECT i FROM t"), schema=requested).read_all().schema == requested


def test_polars_takes_the_cursor_itself(numbers: Any) -> None:
    polars = library("polars")
    assert polars.DataFrame(numbers.execute("SELECT i FROM t"))["i"].sum() == 49995000


def test_pandas_takes_the_cursor_itself(numbers: Any) -> None:
    pandas = library("pandas")
    assert pandas.DataFrame.from_arrow(numbers.execute("SELECT i FROM t"))["i"].sum() == 49995000


# Memory.

PEAK = """
import sys, lakelite, pyarrow as pa, pyarrow.compute, numpy as np
what, small, large = sys.argv[2], 200_000, 3_000_000
names = pa.array(["some name"] * 50_000)
schema = pa.schema([("id", pa.int64()), ("s", pa.string())])

def peak():
    if sys.platform == "darwin":
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

def batches(rows):
    return (pa.record_batch([pa.array(np.arange(start, start + 50_000)), names], schema) for start in range(0, rows, 50_000))

def run(rows):
    if what == "append":
        assert con.append("made", pa.RecordBatchReader.from_batches(schema, batches(rows))).rowcount == rows
    elif what == "insert":
        reader = pa.RecordBatchReader.from_batches(schema, batches(rows))
        assert con.execute("INSERT INTO made FROM reader").rowcount == rows
    else:
        result = con.execute("SELECT range AS id, 'some name ' || range AS s FROM range(?)", (rows,))
        stream = pa.RecordBatchReader.from_stream(result) if what == "capsule" else result.fetch_record_batch()
        assert sum(batch.num_rows for batch in stream) == rows

with lakelite.connect(sys.argv[1], autocommit=True) as con:
    con.execute("CREATE TABLE made (id BIGINT, s VARCHAR)")
    run(small)
    before = peak()
    run(large)
    print(peak() - before)
"""


@pytest.mark.parametrize("what", ["reader", "capsule", "append", "insert"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, what: str) -> None:
    """The rows of 3,000,000 are 60 MB or more as Arrow."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path / "lake"), what], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 40


# A cursor as a table of other libraries, which ask for its stream as often as they like.

MANY = "SELECT range AS i FROM range(300_000)"


def of_variable(con: Any, frame: pa.Table) -> Any:
    return con.execute("FROM frame")


ASKING = {
    "a query": lambda con: con.execute(MANY),
    "behind a fetch": lambda con: (cursor := con.execute("SELECT range - 1 AS i FROM range(300_001)"), cursor.fetchone())[0],
    "of variables": lambda con: of_variable(con, pa.table({"i": range(300_000)})),
}


@pytest.mark.parametrize("asking", ASKING)
def test_a_stream_that_nobody_reads_takes_no_rows(shared: Any, asking: str) -> None:
    cursor = ASKING[asking](shared)
    first, second = cursor.__arrow_c_stream__(), pa.RecordBatchReader.from_stream(cursor)
    del first
    third = pa.RecordBatchReader.from_stream(cursor)
    assert max(third.read_all()["i"].to_pylist()) == 299_999
    with pytest.raises(pa.ArrowException, match="have been read already"):
        second.read_all()
    for _ in range(2):
        with pytest.raises(lakelite.InterfaceError, match="have been read already"):
            pa.table(cursor)
    assert cursor.fetchall() == []


@pytest.mark.parametrize("asking", ASKING)
def test_a_query_of_duckdbs_own_over_a_cursor(shared: Any, asking: str) -> None:
    cursor = ASKING[asking](shared)  # noqa: F841  (SQL names it)
    with duckdb.connect() as other:
        assert other.sql("SELECT max(i), min(i) FROM cursor").fetchall() == [(299_999, 0)]
        with pytest.raises(Exception, match="have been read already"):
            other.sql("SELECT count(*) FROM cursor").fetchall()


def test_frames_of_a_cursor_twice(shared: Any) -> None:
    for make in (library("polars").DataFrame, library("pandas").DataFrame.from_arrow, pa.table):
        cursor = shared.execute(MANY)
        cursor.__arrow_c_stream__()
        assert len(make(cursor)) == 300_000
        with pytest.raises(lakelite.InterfaceError, match="have been read already"):
            make(cursor)


def test_rows_that_are_fetched_are_in_no_stream(shared: Any) -> None:
    cursor = shared.execute(MANY)
    offered = pa.RecordBatchReader.from_stream(cursor)
    assert cursor.fetchone() == (0,)
    with pytest.raises(pa.ArrowException, match="have been read already"):
        offered.read_all()
    again = pa.RecordBatchReader.from_stream(cursor)
    with pytest.raises(lakelite.InterfaceError, match="handed on as a stream"):
        cursor.fetchone()
    assert again.read_all().num_rows == 299_999
    cursor = shared.execute(MANY)
    offered = pa.RecordBatchReader.from_stream(cursor)
    assert cursor.fetch_record_batch().read_all().num_rows == 300_000
    with pytest.raises(pa.ArrowException, match="have been read already"):
        offered.read_all()
    offered = pa.RecordBatchReader.from_stream(cursor := shared.execute(MANY))
    cursor.execute("SELECT 1")
    assert offered.read_all().num_rows == 300_000
    assert pa.table(shared.execute("SELECT 1 AS a WHERE false")).num_rows == 0
