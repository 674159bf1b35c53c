"""Variables of the caller as tables in SQL: which ones, under which names, in which statements, and for how long."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from exchanging import Array, Stream, library, reader

import lakelite

at_module_level = pa.table({"id": [7]})
shadowed = pa.table({"id": [1]})


@pytest.fixture
def con(lake: Any) -> Any:
    lake.execute("CREATE TABLE t AS SELECT range AS id, range * 2 AS v FROM range(10)")
    return lake


def rows_of(con: Any, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Not among the variables of the test: this is the caller that lakelite sees."""
    local = pa.table({"id": [1, 2], "s": ["a", "b"]})
    assert local.num_rows == 2
    return con.execute(sql, parameters).fetchall()


def test_locals_then_globals_of_who_calls(con: Any) -> None:
    shadowed = pa.table({"id": [2]})
    of_the_test = shadowed
    assert con.execute("FROM shadowed").fetchall() == con.cursor().execute("FROM of_the_test").fetchall() == [(2,)]
    assert con.execute("FROM at_module_level").fetchall() == [(7,)]
    assert of_the_test is shadowed
    assert rows_of(con, "FROM local") == [(1, "a"), (2, "b")]
    with pytest.raises(lakelite.ProgrammingError, match='"of_the_test" does not exist'):
        rows_of(con, "FROM of_the_test")
    assert rows_of(con, "FROM shadowed") == [(1,)]


def test_statements_that_run_one_by_one_see_who_asks_for_each(con: Any) -> None:
    first = second = pa.table({"id": [2]})
    found = con.statements("FROM first; FROM local; FROM second; FROM nowhere")
    assert next(found).fetchall() == [(2,)]

    def elsewhere() -> list[tuple[Any, ...]]:
        local = pa.table({"id": [5]})
        assert local.num_rows == 1
        return next(found).fetchall()

    assert elsewhere() == [(5,)]
    assert next(found).fetchall() == [(2,)]
    with pytest.raises(lakelite.ProgrammingError, match='"nowhere" does not exist'):
        next(found)
    assert first is second


def test_variables_of_an_enclosing_function_that_this_one_uses(con: Any) -> None:
    outer = pa.table({"id": [3]})

    def inner() -> list[tuple[Any, ...]]:
        return con.execute("SELECT id FROM outer_one").fetchall() if outer_one else []

    outer_one = outer
    assert inner() == [(3,)]


def test_code_that_is_run_from_a_text_as_a_notebook_does(con: Any) -> None:
    namespace: dict[str, Any] = {"con": con, "frame": pa.table({"n": [5]})}
    exec("found = con.execute('FROM frame').fetchall()", namespace)
    assert namespace["found"] == [(5,)]


def test_lakelites_own_variables_are_never_seen(con: Any) -> None:
    for name in ("variables", "result", "parameters", "HANDLERS"):
        with pytest.raises(lakelite.ProgrammingError, match="does not exist") as raised:
            con.execute(f"FROM {name}")
        assert "variable" not in str(raised.value.hint)


def test_nothing_but_the_statement_is_looked_up(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    t = wheel = pa.table({"id": [0]})
    assert t is wheel
    monkeypatch.setattr("lakelite.interfaces.scope.Scope.__call__", lambda self, name: asked.append(name) or self._frame.f_locals.get(name))
    con.execute(
        "WITH c AS (SELECT 1 AS one) SELECT (SELECT max(id) FROM wheel), 'shadowed' FROM t, c, range(3) r, duckdb_tables d WHERE t.id < $n", {"n": 3}
    )
    assert set(asked) == {"wheel"}


TABLE = pa.table({"id": [1, 2, 3], "s": ["a", None, "c"]})


@pytest.mark.parametrize(
    "kind", ["Table", "RecordBatch", "reader", "Dataset", "Scanner", "stream", "array", "pandas", "polars", "LazyFrame", "DuckDB", "cursor"]
)
def test_whatever_holds_rows_is_a_table(con: Any, tmp_path: Path, kind: str) -> None:
    pyarrow.parquet.write_table(TABLE, tmp_path / "rows.parquet")
    dataset = pyarrow.dataset.dataset(tmp_path / "rows.parquet")
    frame = {
        "Table": lambda: TABLE, "RecordBatch": lambda: TABLE.to_batches()[0], "reader": TABLE.to_reader, "Dataset": lambda: dataset,
        "Scanner": dataset.scanner, "stream": lambda: Stream(TABLE), "array": lambda: Array(TABLE.to_batches()[0]),
        "pandas": lambda: library("pandas") and TABLE.to_pandas(), "polars": lambda: library("polars").from_arrow(TABLE),
        "LazyFrame": lambda: library("polars").from_arrow(TABLE).lazy(), "DuckDB": lambda: duckdb.connect().from_arrow(TABLE),
        "cursor": lambda: con.execute("SELECT * FROM (VALUES (1, 'a'), (2, NULL), (3, 'c')) v(id, s)"),
    }[kind]()  # fmt: skip
    assert con.execute("SELECT f.*, v FROM frame f JOIN t USING (id) WHERE id > 1 ORDER BY id").fetchall() == [(2, None, 4), (3, "c", 6)]
    assert frame is not None


QUERIES = {
    "FROM f": [(1,), (2,)],
    "SELECT f.id FROM f": [(1,), (2,)],
    'SELECT q.x FROM "f" AS q(x) WHERE x = 2': [(2,)],
    "SELECT f FROM f": [({"id": 1},), ({"id": 2},)],
    "WITH g AS (FROM f) FROM g": [(1,), (2,)],
    "WITH f AS (SELECT 9 AS id) FROM f": [(9,)],
    "WITH g AS (SELECT 1 AS id) FROM g JOIN f USING (id)": [(1,)],
    "SELECT (SELECT max(id) FROM f) AS m": [(2,)],
    "VALUES ((SELECT count(*) FROM f))": [(2,)],
    "SELECT count(*) FROM t WHERE id IN (FROM f)": [(2,)],
    "SELECT count(*) FROM f a, f b": [(4,)],
    "SELECT count(*) FROM (FROM f UNION ALL SELECT id FROM t)": [(12,)],
    "TABLE f": [(1,), (2,)],
    "FROM query_table('f')": [(1,), (2,)],
    "SELECT count(*) FROM f TABLESAMPLE 100 PERCENT": [(2,)],
    "PIVOT f ON id USING count(*)": [(1, 1)],
    "UNPIVOT f ON id INTO NAME n VALUE v": [("id", 1), ("id", 2)],
    "SELECT column_name FROM (DESCRIBE FROM f)": [("id",)],
    "SELECT column_name, max FROM (SUMMARIZE f)": [("id", "2")],
    "SELECT count(*) FROM f, t AT (VERSION => 1) p WHERE f.id = p.id": [(2,)],
    "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r, f WHERE f.id = 1 AND n < 3) SELECT max(n) FROM r": [(3,)],
}


@pytest.mark.parametrize("query", QUERIES)
def test_wherever_a_table_may_stand(con: Any, query: str) -> None:
    f = pa.table({"id": [1, 2]})
    assert con.execute(query).fetchall() == QUERIES[query]
    assert f.num_rows == 2


def test_changes_read_them(con: Any, tmp_path: Path) -> None:
    f = pa.table({"id": [1, 2]})
    assert con.execute("CREATE TABLE made AS FROM f").rowcount == 2
    assert con.execute("INSERT INTO made SELECT id + 2 FROM f").rowcount == 2
    assert con.execute("INSERT INTO made BY NAME FROM f").rowcount == 2
    assert con.execute("INSERT INTO made VALUES ((SELECT max(id) + 100 FROM f))").rowcount == 1
    assert con.execute("FROM made ORDER BY id").fetchall() == [(1,), (1,), (2,), (2,), (3,), (4,), (102,)]
    assert con.execute("DELETE FROM made WHERE id IN (FROM f)").rowcount == 4
    assert con.execute("UPDATE made SET id = (SELECT sum(id) FROM f) WHERE id > (SELECT max(id) + 1 FROM f)").rowcount == 2
    assert con.execute("FROM made").fetchall() == [(3,), (3,), (3,)]
    assert con.executemany("INSERT INTO made VALUES ((SELECT max(id) FROM f) + ?)", [(10,), (20,)]).rowcount == 2
    assert con.executemany("UPDATE made SET id = ? WHERE id - 10 IN (FROM f)", [(5,), (6,)]).rowcount == 1
    assert con.execute("INSERT OVERWRITE made FROM f").rowcount == 2
    con.executescript("CREATE TABLE more AS FROM f; INSERT INTO more FROM f")
    assert con.execute("SELECT count(*) FROM more").fetchone() == (4,)
    for target in (f"COPY (FROM f) TO '{tmp_path}/f.parquet'", f"COPY f TO '{tmp_path}/g.parquet'"):
        assert con.execute(target).rowcount == 2
    assert con.execute(f"SELECT count(*) FROM '{tmp_path}/*.parquet'").fetchone() == (2 * f.num_rows,)


def test_a_reader_in_every_kind_of_change(con: Any) -> None:
    """Where a change may have to run more than once, its rows are taken into memory; they are never taken for none."""

    def run(sql: str) -> int:
        source = reader({"id": [1]}, {"id": [2]})
        assert source is not None
        return con.execute(sql).rowcount

    assert run("CREATE TABLE made AS FROM source") == 2
    assert run("INSERT INTO made FROM source") == 2
    assert run("INSERT INTO made SELECT id FROM source JOIN t USING (id)") == 2
    assert run("CREATE TABLE joined AS SELECT * FROM source JOIN t USING (id)") == 2
    assert run("DELETE FROM t WHERE id = 9 OR id IN (SELECT id + 6 FROM source)") == 3
    assert run("UPDATE t SET v = 0 WHERE id IN (FROM source)") == 2  # some rows of t are deleted: the condition is run on those, too
    assert run("UPDATE t SET v = (SELECT sum(id) FROM source)") == 7
    assert run("INSERT INTO made VALUES ((SELECT max(id) FROM source)), ((SELECT min(id) FROM source))") == 2
    assert con.execute("SELECT count(*), sum(id) FROM made").fetchone() == (8, 12)
    assert con.execute("SELECT DISTINCT v FROM t").fetchall() == [(3,)]


def test_a_reader_can_be_read_once_and_says_so(con: Any) -> None:
    source = reader({"id": [1]}, {"id": [2]})
    with pytest.raises(lakelite.DataError, match="already been consumed"):
        con.execute("FROM source a, source b").fetchall()
    other = reader({"id": [1]}, {"id": [2]})
    assert con.execute("FROM other").fetchall() == [(1,), (2,)]
    with pytest.raises(lakelite.DataError, match="already been consumed"):
        con.execute("FROM other").fetchall()
    assert source is not other


def test_a_reader_that_fails(con: Any) -> None:
    source = reader({"id": [1]}, fails="the source broke")
    with pytest.raises(lakelite.DataError, match=r"reading source failed.*the source broke"):
        con.execute("SELECT sum(id) FROM source").fetchall()
    assert source is not None


def test_a_reader_that_fails_where_its_rows_are_taken_into_memory(con: Any) -> None:
    source = reader({"id": [1]}, fails="the source broke")
    with pytest.raises(lakelite.DataError, match=r"reading source failed.*the source broke") as raised:
        con.execute("DELETE FROM t WHERE id IN (FROM source)")
    assert isinstance(raised.value.__cause__, ValueError)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (10,)
    assert source is not None


def test_a_streamed_export_of_a_reader_has_all_its_rows(con: Any) -> None:
    """The query cannot run once more as a stream: the rows are gone."""
    source = reader(*({"id": list(range(n * 1000, n * 1000 + 1000))} for n in range(20)))
    assert con.execute("FROM source").fetch_record_batch().read_all()["id"].to_pylist() == list(range(20000))
    assert source is not None


# Names.


def test_what_the_lake_holds_wins(con: Any) -> None:
    t = pa.table({"id": [99]})
    tables = duckdb_tables = t
    assert con.execute("SELECT count(*) FROM t").fetchone() == (10,)
    assert con.execute("SELECT count(*) FROM T").fetchone() == (10,)
    assert con.execute("SELECT table_name FROM duckdb_tables").fetchall() == [("t",)]
    assert con.execute("SELECT table_name FROM lake.tables").fetchall() == [("t",)]
    with pytest.raises(lakelite.ProgrammingError):
        con.execute("FROM main.tables")
    con.execute("DROP TABLE t")
    assert con.execute("FROM t").fetchall() == [(99,)]
    con.execute("CREATE TABLE t AS SELECT id + 1 AS id FROM t")
    assert con.execute("FROM t").fetchall() == [(100,)]
    assert tables is duckdb_tables


@pytest.mark.parametrize(
    "statement", ["DELETE FROM frame", "INSERT INTO frame VALUES (1)", "UPDATE frame SET id = 1", "DROP TABLE frame", "TRUNCATE frame"]
)
def test_a_variable_cannot_be_changed(con: Any, statement: str) -> None:
    frame = pa.table({"id": [1]})
    with pytest.raises(lakelite.ProgrammingError, match='table "frame" does not exist'):
        con.execute(statement)
    assert frame["id"].to_pylist() == [1]


def test_two_variables_that_are_one_name_in_sql(con: Any) -> None:
    frame, FRAME = pa.table({"id": [1]}), pa.table({"id": [2]})
    with pytest.raises(lakelite.ProgrammingError, match="two variables, but one name in SQL"):
        con.execute("SELECT * FROM frame, FRAME")
    assert con.execute("FROM FRAME").fetchall() == [(2,)]
    assert frame is not FRAME


def test_a_variable_that_is_no_table_is_named_in_the_hint(con: Any) -> None:
    number, series, table = 5, pa.array([1]), pa.table({"id": [1]})
    for sql, words in [
        ("FROM number", "the variable number is an int, and no table"),
        ("SELECT * FROM t, series", "the variable series is an Int64Array of pyarrow, and no table"),
        ("FROM sys", "the variable sys is a module, and no table"),
        ("FROM main.table_of_mine", "lists the tables"),
        ("FROM nowhere", "lists the tables"),
    ]:
        with pytest.raises(lakelite.ProgrammingError, match="does not exist") as raised:
            con.execute(sql)
        assert words in (raised.value.hint or "")
        assert raised.value.position is not None
    assert (number, series, table) != (sys, None, None)


# Transactions that run again, and how long an object is kept.


def test_rows_that_were_inserted_are_not_read_again(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("CREATE TABLE t (i BIGINT); CREATE TABLE u AS SELECT 1 AS n")
        frame = pa.table({"i": [1, 2]})
        con.execute("INSERT INTO t FROM frame")
        con.execute("INSERT INTO t SELECT count(*) + 10 FROM u")
        frame = pa.table({"i": [3]})
        other.execute("INSERT INTO u VALUES (2)")
        con.commit()
        assert con.last_commit.attempts == 2
        assert con.execute("FROM t ORDER BY i").fetchall() == [(1,), (2,), (12,)]
        assert frame.num_rows == 1


def test_a_change_that_read_a_variable_is_not_run_again_in_a_transaction(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("CREATE TABLE t AS SELECT range AS i FROM range(5)")
        frame = pa.table({"i": [1]})
        con.execute("DELETE FROM t WHERE i IN (FROM frame)")
        other.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(lakelite.TransactionConflict, match="read files or") as raised:
            con.commit()
        assert "DataFrames" in str(raised.value)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (6,)
        assert frame.num_rows == 1


def test_in_autocommit_it_is_run_again_with_the_same_rows(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS i")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:

        def read() -> Iterator[pa.RecordBatch]:
            other.execute("INSERT INTO t VALUES (2)")
            yield pa.record_batch({"i": [1, 2, 3]})

        source = pa.RecordBatchReader.from_batches(pa.schema([("i", pa.int64())]), read())
        assert lake.execute("DELETE FROM t WHERE i IN (FROM source)").rowcount == 2
        assert lake.last_commit.attempts == 2
        assert source is not None
    assert lake.execute("FROM t").fetchall() == []


def test_a_column_of_a_type_that_cannot_be_read_is_named(con: Any) -> None:
    pd = library("pandas")
    months = pd.DataFrame({"n": [1, 2], "month": pd.period_range("2020", periods=2, freq="M")})
    with pytest.raises(lakelite.NotSupportedError, match=r'the column "month" of the DataFrame is of the type period\[M\]') as caught:
        con.execute("select n from months")
    assert caught.value.hint == 'convert it, for instance to text: df["month"].astype(str)'
    con.execute("create table periods (n int, month varchar)")
    with pytest.raises(lakelite.NotSupportedError, match='the column "month"'):
        con.append("periods", months)
    months["month"] = months["month"].astype(str)
    assert con.execute("select month from months").fetchall() == [("2020-01",), ("2020-02",)]


def test_an_object_is_kept_for_its_statement_and_its_result_only(con: Any) -> None:
    namespace: dict[str, Any] = {"con": con, "pa": pa, "Stream": Stream}
    exec("table = pa.table({'i': list(range(5000))}); f = Stream(table)", namespace)
    gone = weakref.ref(namespace["table"])
    exec("con.execute('CREATE TABLE c AS FROM f'); con.execute('DELETE FROM c WHERE i IN (FROM f)'); result = con.execute('FROM f')", namespace)
    del namespace["table"], namespace["f"]
    gc.collect()
    assert namespace["result"].fetchone() == (0,)
    namespace["result"].close()
    gc.collect()
    assert gone() is None


def test_no_frame_is_kept(con: Any) -> None:
    class Marker:
        pass

    def run() -> tuple[Any, weakref.ref[Marker]]:
        marker = Marker()
        frame = pa.table({"i": [1]})
        assert frame is not None
        return con.execute("FROM frame"), weakref.ref(marker)

    result, gone = run()
    assert gone() is None
    assert result.fetchall() == [(1,)]


def test_nothing_is_left_visible(con: Any) -> None:
    frame = pa.table({"id": [1]})
    con.execute("CREATE TABLE c AS FROM frame")
    con.execute("DELETE FROM c WHERE id IN (FROM frame)")
    del frame
    with pytest.raises(lakelite.ProgrammingError, match='"frame" does not exist'):
        con.execute("DELETE FROM c WHERE id IN (FROM frame)")
    assert con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal AND schema_name <> 'lake'").fetchall() == []


@pytest.mark.parametrize("use", ["select count(id) from source", "insert into t select id, 1 from source"])
def test_an_error_of_a_query_that_another_statement_reads_is_said_once(con: lakelite.Connection, use: str) -> None:
    wrong = "case when range = 300000 then {} end::integer id from range(400000)"
    source = con.execute(f"select {wrong.format(chr(39) + 'abc' + chr(39))}")
    with pytest.raises(lakelite.DataError) as caught:
        con.execute(use).fetchall()
    assert caught.value.message == "reading source failed: could not convert 'abc' to INTEGER"
    assert caught.value.hint == "TRY_CAST gives NULL instead of an error"
    source = con.execute(f"select {wrong.format('error(chr(98))')}")
    with pytest.raises(lakelite.DataError) as caught:
        con.append("t", source)
    assert caught.value.message == "reading the rows failed: b"
    assert str(caught.value).count("Hint") == 1
