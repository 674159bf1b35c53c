"""Small things that a person meets: what a view of DuckDB lists, variables that are described, what an error of many sets tells."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import lakelite


def test_the_view_of_duckdb_lists_nothing_of_ours(lake: Any) -> None:
    lake.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); CREATE VIEW v AS FROM t; CREATE SCHEMA s; CREATE TABLE s.u (b INTEGER)")
    lake.execute("SET inline_rows = 0; INSERT INTO t SELECT range FROM range(1000); DELETE FROM t WHERE a % 2 = 0")
    view = lake.duckdb()
    assert [(r[0], r[1], r[2]) for r in view.execute("SHOW ALL TABLES").fetchall()] == [
        ("memory", "main", "t"),
        ("memory", "main", "v"),
        ("memory", "s", "u"),
    ]
    assert view.execute("SHOW DATABASES").fetchall() == [("memory",)]
    assert view.execute("SELECT table_name FROM information_schema.tables ORDER BY 1").fetchall() == [("t",), ("u",), ("v",)]
    assert view.execute("SELECT count(*) FROM v").fetchone() == (501,)


def test_a_variable_is_described(lake: Any) -> None:
    frame = pd.DataFrame({"a": [1], "b": ["x"]})
    arrow = pa.table({"c": [1.5]})
    stream = arrow.to_reader()  # noqa: F841
    lake.execute("CREATE TABLE table_of_ours (z INTEGER)")
    expected = [("a", "BIGINT", "YES", None, None, None), ("b", "VARCHAR", "YES", None, None, None)]
    for text in ("DESCRIBE frame", "DESC frame", "SHOW frame"):
        assert lake.execute(text).fetchall() == expected
    assert lake.execute("DESCRIBE arrow").fetchall() == [("c", "DOUBLE", "YES", None, None, None)]
    assert lake.execute("DESCRIBE stream").fetchall() == [("c", "DOUBLE", "YES", None, None, None)]
    assert lake.execute("FROM stream").fetchall() == [(1.5,)]
    table_of_ours = frame  # noqa: F841
    assert lake.execute("DESCRIBE table_of_ours").fetchall()[0][0] == "z"
    with pytest.raises(lakelite.ProgrammingError, match="does not exist"):
        lake.execute("DESCRIBE nothing")


@pytest.mark.parametrize(
    "text",
    ["DELETE FROM e WHERE a = (SELECT a FROM t)", "UPDATE e SET a = (SELECT a FROM t)", "UPDATE e SET a = 1 WHERE a = (SELECT a FROM t)",
     "DELETE FROM e USING t WHERE e.a = (SELECT a FROM t)", "SELECT * FROM e WHERE a = (SELECT a FROM t)", "DELETE FROM e WHERE a IN (SELECT a FROM t)",
     "INSERT INTO t SELECT a FROM e WHERE a = (SELECT 1 UNION ALL SELECT 2)"],
)  # fmt: skip
def test_a_subquery_beside_a_table_without_rows_fails_as_in_duckdb(lake: Any, text: str) -> None:
    plain = duckdb.connect()
    for con in (plain, lake):
        con.execute("CREATE TABLE e (a INTEGER)")
        con.execute("CREATE TABLE t (a INTEGER)")
        con.execute("INSERT INTO t VALUES (1), (2)")
    failed = []
    for con in (plain, lake):
        try:
            con.execute(text)
            failed.append(False)
        except (duckdb.Error, lakelite.Error):
            failed.append(True)
    assert failed[0] == failed[1]


@pytest.mark.parametrize("temp", ["", "TEMP "])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("INSERT INTO t VALUES (?, 1)", "parameter set 3 of 5"),
        ("INSERT INTO t SELECT ?, 2", "parameter set 3 of 5"),
        ("UPDATE t SET a = ?::INTEGER", "parameter set 3 of 5"),
        ("DELETE FROM t WHERE a = CAST(? AS INTEGER)", "parameter set 3 of 5"),
    ],
)
def test_which_set_of_many_has_failed(lake: Any, temp: str, text: str, words: str) -> None:
    lake.execute(f"CREATE {temp}TABLE t (a INTEGER NOT NULL, b INTEGER); INSERT INTO t VALUES (0, 0)")
    cursor = lake.cursor()
    with pytest.raises(lakelite.Error, match=words) as told:
        cursor.executemany(text, [("1",), ("2",), ("three",), ("4",), ("five",)])
    assert str(told.value).count("parameter set") == 1
    assert lake.execute("FROM t").fetchall() == [(0, 0)]
    with pytest.raises(lakelite.IntegrityError, match=r"parameter set 2 of 2"):
        cursor.executemany("INSERT INTO t VALUES (?, 1)", [(1,), (None,)])
    with pytest.raises(lakelite.Error) as alone:
        cursor.executemany("INSERT INTO t VALUES (?, 1)", [("one",)])
    assert "parameter set" not in str(alone.value)
