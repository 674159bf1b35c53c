"""Temporary tables where they meet what only lakelite has: the lake, savepoints, appends, DataFrames, streams, threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Oracle, multiset

import lakelite


def rows(con: Any, text: str) -> list[tuple[Any, ...]]:
    return con.execute(text).fetchall()  # type: ignore[no-any-return]


def test_no_snapshot_and_nothing_in_the_lake(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS a")
    before = rows(lake, "SELECT max(snapshot_id) FROM lake.snapshots")
    lake.execute(
        "CREATE TEMP TABLE x AS FROM t; INSERT INTO x VALUES (2); UPDATE x SET a = a + 1; CREATE TEMP VIEW v AS FROM x; ALTER TABLE x ADD b INTEGER"
    )
    lake.execute("BEGIN; INSERT INTO x VALUES (5, 5); DROP VIEW v; COMMIT")
    assert rows(lake, "SELECT max(snapshot_id) FROM lake.snapshots") == before
    assert rows(lake, "SELECT table_name FROM lake.tables") == [("t",)]
    assert rows(lake, "FROM x ORDER BY a") == [(2, None), (3, None), (5, 5)]
    assert lake.duckdb().execute("SHOW TABLES").fetchall() == [("t",)]
    with lakelite.connect(tmp_path / "lake") as other, pytest.raises(lakelite.ProgrammingError, match="does not exist"):
        other.execute("FROM x")
    with lakelite.connect(tmp_path / "lake", read_only=True, autocommit=True) as reader:
        reader.execute("CREATE TEMP TABLE x AS FROM t")
        assert reader.execute("INSERT INTO x VALUES (7)").rowcount == 1
        assert rows(reader, "FROM x ORDER BY a") == [(1,), (7,)]


def test_savepoints_and_blocks(lake: Any) -> None:
    lake.execute("CREATE TEMP TABLE x (a INTEGER PRIMARY KEY, b INTEGER DEFAULT 1); INSERT INTO x (a) VALUES (1)")
    lake.execute("COMMENT ON TABLE x IS 'mine'; COMMENT ON COLUMN x.b IS 'of x'")
    lake.execute(
        "BEGIN; INSERT INTO x VALUES (2, 2); SAVEPOINT a; DELETE FROM x; SAVEPOINT b; INSERT INTO x VALUES (3, 3); ALTER TABLE x RENAME TO y"
    )
    assert rows(lake, "FROM y") == [(3, 3)]
    lake.execute("ROLLBACK TO b")
    assert rows(lake, "FROM x") == []
    lake.execute("ROLLBACK TO a")
    with pytest.raises(lakelite.IntegrityError):
        lake.execute("INSERT INTO x VALUES (9, 9), (2, 9)")
    with pytest.raises(lakelite.IntegrityError), lake.transaction():
        lake.executescript("INSERT INTO x VALUES (4, 4); INSERT INTO x VALUES (4, 4)")
    lake.execute("INSERT INTO x (a) VALUES (5); COMMIT")
    assert rows(lake, "FROM x ORDER BY a") == [(1, 1), (2, 2), (5, 1)]
    assert rows(lake, "SELECT comment FROM duckdb_tables() WHERE table_name = 'x'") == [("mine",)]
    assert rows(lake, "SELECT comment FROM duckdb_columns() WHERE table_name = 'x' AND column_name = 'b'") == [("of x",)]


def test_a_commit_that_fails_takes_the_temporary_rows_back(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TEMP TABLE x AS SELECT 1 AS a")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        lake.execute("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM t; DELETE FROM x; INSERT INTO t VALUES (2)")
        other.execute("UPDATE t SET a = 5")
        with pytest.raises(lakelite.TransactionConflict):
            lake.execute("COMMIT")
    assert rows(lake, "FROM x") == [(1,)]


def test_many_and_appends(lake: Any) -> None:
    lake.execute("CREATE TABLE t AS SELECT range AS a FROM range(3); CREATE TEMP TABLE x (a BIGINT UNIQUE, b VARCHAR DEFAULT 'none')")
    cursor = lake.cursor()
    cursor.executemany("INSERT INTO x VALUES (?, ?)", [(i, str(i)) for i in range(10)])
    assert cursor.rowcount == 10
    with pytest.raises(lakelite.IntegrityError):
        cursor.executemany("INSERT INTO x (a) VALUES (?)", [(20,), (21,), (3,)])
    cursor.executemany("UPDATE x SET b = $word WHERE a IN (SELECT a FROM t) AND a = $a", [{"word": "low", "a": 1}, {"word": "low", "a": 5}])
    assert cursor.rowcount == 1
    assert lake.append("x", pa.table({"a": pa.array([30, 31])})).rowcount == 2
    assert lake.append("temp.x", pa.table({"b": ["named"]})).rowcount == 1
    with pytest.raises(lakelite.Error):
        lake.append("x", pa.table({"nothing": [1]}))
    assert rows(lake, "SELECT b, count(*) FROM x GROUP BY b ORDER BY b") == [(str(i), 1) for i in range(10) if i != 1] + [
        ("low", 1), ("named", 1), ("none", 2),
    ]  # fmt: skip


def test_variables_files_and_streams(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT range AS a FROM range(3)")
    frame = pa.table({"a": [1, 2, 7]})
    assert lake.execute("CREATE TEMP TABLE x AS SELECT a FROM frame").rowcount == 3
    stream = frame.to_reader()  # noqa: F841
    assert lake.execute("INSERT INTO x SELECT stream.a FROM stream JOIN t ON t.a = stream.a").rowcount == 2
    lake.execute("COPY x TO ? (FORMAT csv)", [str(tmp_path / "x.csv")])
    lake.execute("COPY x FROM ? (FORMAT csv)", [str(tmp_path / "x.csv")])
    result = lake.execute("SELECT x.a FROM x JOIN t USING (a) ORDER BY ALL")
    lake.execute("TRUNCATE x")
    assert [value for batch in result.fetch_record_batch() for value in batch.column(0).to_pylist()] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert lake.execute("INSERT INTO x VALUES (1) RETURNING a + 1 AS b").to_arrow().to_pylist() == [{"b": 2}]


def test_what_is_refused_and_what_a_name_means(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW seen AS FROM t; CREATE TEMP TABLE t AS SELECT 2 AS a; CREATE TEMP VIEW v AS FROM t")
    assert rows(lake, "FROM seen") == [(2,)]  # as in DuckDB
    for text, words in {
        "CREATE VIEW w AS FROM t": "CREATE TEMP VIEW",
        "CREATE VIEW w AS SELECT * FROM v, seen": "CREATE TEMP VIEW",
        "FROM t AT (VERSION => 1)": "no versions",
        "RESTORE TABLE t TO VERSION AS OF 1": "no versions",
        "INSERT OVERWRITE t SELECT 1": "CREATE OR REPLACE TEMP TABLE",
        "CREATE TEMP TABLE k (a INTEGER REFERENCES t (a))": "FOREIGN KEY",
        "CREATE TEMP TABLE k (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1))": "generated",
        "CREATE TABLE k (LIKE t)": "WITH NO DATA",
        "CREATE TEMP TABLE lake_arrow (a INTEGER)": "reserved",
        "INSERT INTO v VALUES (1)": "no rows of its own",
        "DROP TABLE t, lakes": "one by one",
        "CREATE TEMP VIEW w AS FROM seen AT (VERSION => 1)": "earlier version",
        "SELECT x.missing FROM t x": "missing",
    }.items():
        with pytest.raises(lakelite.Error, match=words):
            lake.execute(text)
    with pytest.raises(lakelite.Error, match=r"t|a"):
        lake.execute("SELECT aa FROM temp.t")
    assert rows(lake, "SHOW CREATE TABLE t") == [("CREATE TEMP TABLE t(a INTEGER);",)]
    assert [(r[0], r[2], r[5]) for r in rows(lake, "SHOW ALL TABLES")][-2:] == [("temp", "t", True), ("temp", "v", True)]
    lake.execute(f"EXPORT DATABASE '{tmp_path / 'out'}'")
    lake.execute("CREATE TEMP TABLE IF NOT EXISTS t (x INTEGER)")
    with lakelite.connect(":memory:", autocommit=True) as other:
        other.execute("CREATE TEMP TABLE t AS SELECT 9 AS a")
        other.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        assert rows(other, "FROM t") == [(9,)]
        other.execute("DROP TABLE t")
        assert rows(other, "FROM t") == [(1,)]


def test_now_is_the_moment_of_the_transaction(lake: Any) -> None:
    lake.execute("CREATE TEMP TABLE x (a INTEGER, moment TIMESTAMPTZ DEFAULT now()); CREATE TEMP VIEW clock AS SELECT now() AS moment")
    lake.execute("BEGIN; INSERT INTO x (a) VALUES (1)")
    (seen,) = rows(lake, "SELECT moment FROM clock")
    lake.execute("INSERT INTO x (a) VALUES (2); COMMIT")
    assert rows(lake, "SELECT DISTINCT moment FROM x") == [seen]


def test_threads_share_them(lake: Any) -> None:
    lake.execute("CREATE TEMP TABLE x (a INTEGER)")
    failed: list[Exception] = []

    def work(number: int) -> None:
        try:
            cursor = lake.cursor()
            for i in range(20):
                cursor.execute("INSERT INTO x VALUES (?)", [number * 100 + i])
                cursor.execute("SELECT count(*) FROM x").fetchall()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert rows(lake, "SELECT count(DISTINCT a) FROM x") == [(80,)]


# Random statements, against DuckDB.

STEPS = st.lists(
    st.one_of(
        st.builds("INSERT INTO {0} VALUES ({1}, {2})".format, st.sampled_from("xyt"), st.integers(0, 5), st.integers(0, 9)),
        st.builds("INSERT INTO {0} SELECT a + {2}, b FROM {1}".format, st.sampled_from("xyt"), st.sampled_from("xyt"), st.integers(1, 6)),
        st.builds("UPDATE {0} SET b = b + {1} WHERE a > {1}".format, st.sampled_from("xyt"), st.integers(0, 5)),
        st.builds("UPDATE {0} SET b = (SELECT max(b) FROM {1}) WHERE a = {2}".format, st.sampled_from("xyt"), st.sampled_from("xyt"), st.integers(0, 5)),
        st.builds("DELETE FROM {0} WHERE a IN (SELECT a FROM {1} WHERE b > {2})".format, st.sampled_from("xyt"), st.sampled_from("xyt"), st.integers(0, 9)),
        st.builds("CREATE OR REPLACE TEMP TABLE {0} AS SELECT a, b FROM {1}".format, st.sampled_from("xy"), st.sampled_from("xyt")),
        st.sampled_from(["BEGIN", "COMMIT", "ROLLBACK", "ROLLBACK", "TRUNCATE x", "CREATE TEMP TABLE t AS SELECT a, b FROM x", "DROP TABLE temp.t"]),
    ),
    min_size=5,
    max_size=14,
)  # fmt: skip
START = ("CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", "CREATE TEMP TABLE x (a INTEGER PRIMARY KEY, b INTEGER)",
         "CREATE TEMP TABLE y (a INTEGER, b INTEGER CHECK (b < 30))")  # fmt: skip


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_the_same_as_in_duckdb(steps: list[str]) -> None:
    with lakelite.connect(":memory:", autocommit=True) as con:
        oracle = Oracle()
        for text in START:
            con.execute(text)
            oracle.run(text)
        is_open = False
        for text in steps:
            if text in ("BEGIN", "COMMIT", "ROLLBACK"):
                if (text == "BEGIN") == is_open:
                    continue
                is_open = not is_open
            theirs = _outcome(oracle.duck, text)
            assert _outcome(con, text) == theirs, text
            if theirs == "failed" and is_open:
                return  # DuckDB's transaction is over then
        for name in "xyt":
            assert multiset(rows(con, f"FROM {name}")) == multiset(oracle.duck.execute(f"FROM {name}").fetchall())


def _outcome(con: Any, text: str) -> str:
    try:
        con.execute(text)
    except Exception:
        return "failed"
    return "done"
