"""MERGE INTO: each clause as plain DuckDB has it, over rows that lie inline, in files and behind deletion vectors; what it counts as."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from oracle import Oracle, multiset

import lakelite

STATES = ("inline", "files", "deletion vectors")
TABLES = ("CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER DEFAULT 7, w VARCHAR)", "CREATE OR REPLACE TABLE s (v INTEGER, k INTEGER, w VARCHAR)")
ROWS = (
    "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (90, 0, 'gone')",
    "INSERT INTO t VALUES (3, 3, 'c'), (NULL, 4, 'd')",
    "INSERT INTO s VALUES (20, 2, 'B'), (30, 3, NULL), (40, 4, 'D'), (50, NULL, 'E')",
)
ON = "MERGE INTO t USING s ON t.k = s.k "
STATEMENTS = (
    # what becomes of a row with a partner
    ON + "WHEN MATCHED THEN UPDATE SET v = s.v",
    ON + "WHEN MATCHED THEN UPDATE SET v = s.v + t.v, w = NULL,",
    ON + "WHEN MATCHED THEN UPDATE SET v = DEFAULT",
    ON + "WHEN MATCHED THEN UPDATE SET *",
    ON + "WHEN MATCHED THEN UPDATE",
    ON + "WHEN MATCHED THEN UPDATE BY POSITION",
    ON + "WHEN MATCHED THEN UPDATE BY NAME",
    ON + "WHEN MATCHED THEN DELETE",
    ON + "WHEN MATCHED THEN INSERT *",
    ON + "WHEN MATCHED THEN INSERT (k, v) VALUES (t.k + 100, s.v)",
    ON + "WHEN MATCHED THEN DO NOTHING",
    ON + "WHEN MATCHED THEN UPDATE SET v = CASE WHEN s.v = 20 THEN 5 ELSE 6 END WHEN NOT MATCHED THEN DO NOTHING",
    ON + "WHEN MATCHED THEN UPDATE SET w = t::VARCHAR",
    ON + "WHEN MATCHED THEN UPDATE SET w = s::VARCHAR",
    ON + "WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM s) + (SELECT count(*) FROM t)",
    ON + "WHEN MATCHED AND EXISTS (FROM s AS x WHERE x.k = t.k + 1) THEN DELETE",
    # a row of the source without one
    ON + "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, s.w)",
    ON + "WHEN NOT MATCHED THEN INSERT VALUES (k, DEFAULT, w || '!')",
    ON + "WHEN NOT MATCHED THEN INSERT (w, k) VALUES (w, k)",
    ON + "WHEN NOT MATCHED BY TARGET THEN INSERT (k,) VALUES (k + (SELECT 1),)",
    ON + "WHEN NOT MATCHED THEN INSERT *",
    ON + "WHEN NOT MATCHED THEN INSERT",
    ON + "WHEN NOT MATCHED THEN INSERT BY POSITION *",
    ON + "WHEN NOT MATCHED THEN INSERT BY NAME",
    ON + "WHEN NOT MATCHED THEN INSERT BY NAME *",
    ON + "WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
    ON + "WHEN NOT MATCHED AND k IS NULL THEN INSERT BY NAME WHEN NOT MATCHED THEN DO NOTHING",
    # a row of the target without one
    ON + "WHEN NOT MATCHED BY SOURCE THEN DELETE",
    ON + "WHEN NOT MATCHED BY SOURCE AND v > 2 THEN UPDATE SET v = v * 10, w = w || v",
    ON + "WHEN NOT MATCHED BY SOURCE THEN INSERT (k) VALUES (t.k + 10)",
    ON + "WHEN NOT MATCHED BY SOURCE THEN DO NOTHING",
    # several clauses: the first that fits
    ON + "WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME",
    ON + "WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME WHEN NOT MATCHED BY SOURCE THEN DELETE",
    ON + "WHEN MATCHED AND s.v > 100 THEN DELETE WHEN MATCHED AND s.v = 20 THEN DO NOTHING WHEN MATCHED AND true THEN DELETE WHEN MATCHED THEN ERROR",
    ON + "WHEN NOT MATCHED BY SOURCE AND t.k = 1 THEN DELETE WHEN NOT MATCHED AND s.v = 40 THEN INSERT (k) VALUES (s.k)"
    " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = -v WHEN NOT MATCHED THEN INSERT VALUES (0, 0, '0') WHEN MATCHED THEN DELETE",
    ON + "WHEN MATCHED AND NULL THEN DELETE WHEN MATCHED AND s.w IS NULL THEN UPDATE SET w = 'was null'",
    # conditions and names
    "MERGE INTO t USING s USING (k) WHEN MATCHED THEN UPDATE SET v = k + s.v WHEN NOT MATCHED THEN INSERT (k) VALUES (k)",
    "MERGE INTO t USING s USING (k, w) WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND k = 1 THEN UPDATE SET v = k + 100",
    "MERGE INTO t AS a USING s AS b ON a.k = b.k AND b.v > 20 WHEN MATCHED THEN UPDATE SET v = b.v WHEN NOT MATCHED THEN INSERT BY NAME",
    "MERGE INTO main.t USING main.s ON main.t.k = main.s.k WHEN MATCHED AND main.t.v = 2 THEN UPDATE SET v = main.s.v",
    "MERGE INTO t USING s ON t.k IS NOT DISTINCT FROM s.k WHEN MATCHED THEN UPDATE SET v = s.v",
    "MERGE INTO t USING s ON t.k < s.k AND s.k = 4 WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT BY NAME",
    "MERGE INTO t USING s ON t.k = (SELECT max(k) - 1 FROM s) AND s.k = 3 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT BY NAME",
    "MERGE INTO t USING s ON false WHEN NOT MATCHED THEN INSERT BY NAME WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO t USING s ON CASE WHEN t.k = s.k THEN true END WHEN MATCHED AND CASE WHEN t.k = 2 THEN true ELSE false END THEN DELETE",
    # sources
    "MERGE INTO t USING (SELECT k, v * 2 AS v FROM s WHERE k > 2) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME",
    "MERGE INTO t USING (FROM s) ON t.k = unnamed_subquery.k WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (SELECT 2 AS j) ON k = j WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (VALUES (2, 5), (8, 9)) AS x(a, b) ON t.k = a WHEN MATCHED THEN UPDATE SET v = b WHEN NOT MATCHED THEN INSERT (k, v) VALUES (a, b)",
    "MERGE INTO t USING VALUES (2, 5) x(a, b) ON t.k = a WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING range(3) ON t.k = range.range WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (range)",
    "MERGE INTO t USING unnest([1, 2]) AS q(x) ON t.k = q.x WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING t AS b ON t.k = b.k + 1 WHEN MATCHED THEN UPDATE SET v = b.v WHEN NOT MATCHED THEN INSERT VALUES (100, b.v, 'n')",
    "WITH x AS (SELECT 2 AS k, 99 AS v) MERGE INTO t USING x ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = x.v",
    "WITH x AS (FROM s), y AS (FROM x WHERE k > 2) MERGE INTO t USING y ON t.k = y.k WHEN NOT MATCHED AND v IN (SELECT v FROM x) THEN INSERT BY NAME",
    "MERGE INTO t USING (SELECT 1 WHERE false) AS n(x) ON true WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0",
    # several partners
    "MERGE INTO t USING (VALUES (2, 5), (2, 6)) s(k, v) ON t.k = s.k WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (VALUES (2, 5), (2, 6)) s(k, v) ON t.k = s.k WHEN MATCHED AND s.v = 6 THEN UPDATE SET v = s.v",
    "MERGE INTO t USING (VALUES (2, 5), (2, 6)) s(k, v) ON t.k = s.k WHEN MATCHED AND s.v = 6 THEN UPDATE SET v = s.v WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (VALUES (2, 5), (2, 6)) s(k, v) ON t.k = s.k WHEN MATCHED AND s.v = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v",
    "MERGE INTO t USING (VALUES (2, 5), (2, 5)) s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v",
    "MERGE INTO t USING (VALUES (2, 5), (2, 6)) s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = t.v + 1",
    "MERGE INTO t USING (VALUES (5, 5), (5, 6)) s(k, v) ON t.k = s.k WHEN NOT MATCHED THEN INSERT BY NAME",
    "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
    # errors
    ON + "WHEN MATCHED THEN ERROR",
    ON + "WHEN NOT MATCHED THEN ERROR 'no ' || s.k",
    ON + "WHEN NOT MATCHED BY SOURCE AND t.k IS NULL THEN ERROR t.w",
    ON + "WHEN MATCHED AND s.k = 77 THEN ERROR 'not met' WHEN MATCHED THEN DELETE",
    ON + "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (1, 'x')",
    ON + "WHEN MATCHED THEN UPDATE SET v = 99999999999",
)


class Pair:
    """A lake and plain DuckDB with the same two tables."""

    def __init__(self, path: Path, state: str) -> None:
        self.con = lakelite.connect(path, autocommit=True)
        self.oracle = Oracle()
        self.state = state
        if state != "inline":
            self.con.execute("SET inline_rows = 0")

    def fill(self) -> None:
        gone = ["DELETE FROM t WHERE k = 90"] if self.state == "deletion vectors" else []
        self.con.execute("; ".join(["BEGIN", *TABLES, *ROWS, "COMMIT", *gone]))
        for sql in (*TABLES, *ROWS, *gone):
            self.oracle.run(sql)

    def run(self, sql: str) -> None:
        """Both run it, and do the same: the same rows and count, or an error that leaves the lake as it was."""
        before = self.rows()
        try:
            count = self.oracle.run(sql)
        except duckdb.Error:
            with pytest.raises(lakelite.Error):
                self.con.execute(sql)
            assert self.rows() == before
        else:
            assert self.con.execute(sql).rowcount == count
            assert self.rows() == self.oracle.content("t")

    def rows(self) -> Any:
        return multiset(self.con.execute("FROM t").fetchall())


@pytest.fixture(scope="module", params=STATES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("merge") / "lake", request.param)
    yield made
    made.con.close()
    made.oracle.close()


@pytest.mark.parametrize("sql", STATEMENTS)
def test_as_duckdb_does(pair: Pair, sql: str) -> None:
    pair.fill()
    pair.run(sql)


def test_of_its_own_changes_in_a_transaction(pair: Pair) -> None:
    pair.fill()
    script = (
        "INSERT INTO t VALUES (4, 1, 'own'), (5, 1, 'own')",
        "UPDATE t SET v = v + 1 WHERE k IN (2, 4)",
        "DELETE FROM t WHERE k IN (1, 5)",
        ON + "WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT BY NAME WHEN NOT MATCHED BY SOURCE THEN DELETE",
        ON + "WHEN MATCHED AND t.v > 25 THEN DELETE WHEN NOT MATCHED THEN INSERT BY NAME",
    )
    pair.con.execute("BEGIN")
    for sql in script:
        pair.run(sql)
    pair.con.execute("COMMIT")
    assert pair.rows() == pair.oracle.content("t")


# Random ones.

CONDITIONS = {
    "MATCHED": ("t.v > s.v", "s.v % 2 = 0", "t.k IN (SELECT v FROM s)", "t.w IS NULL", "NULL"),
    "NOT MATCHED": ("v > 3", "k % 2 = 0", "v IN (SELECT v FROM t)", "w IS NOT NULL"),
    "NOT MATCHED BY SOURCE": ("v > 3", "k % 2 = 0", "t.k IN (SELECT v FROM s)"),
}
ACTIONS = {
    "MATCHED": ("UPDATE SET v = t.v + s.v", "UPDATE", "UPDATE BY NAME", "UPDATE SET k = s.v, w = NULL", "DELETE", "DO NOTHING", "INSERT BY NAME"),
    "NOT MATCHED": ("INSERT BY NAME", "INSERT *", "INSERT (v, k) VALUES (k, v)", "INSERT DEFAULT VALUES", "DO NOTHING"),
    "NOT MATCHED BY SOURCE": ("UPDATE SET v = k", "DELETE", "DO NOTHING", "INSERT VALUES (v, k, DEFAULT)"),
}
JOINS = (
    "ON t.k = s.k",
    "ON t.k = s.k AND t.v < s.v",
    "ON t.k + s.k = 5",
    "ON t.k IS NOT DISTINCT FROM s.k",
    "USING (k)",
    "USING (k, v)",
    "ON t.k > s.k",
)
NUMBERS = st.one_of(st.none(), st.integers(0, 5))
CONTENT = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from(("x", None))), max_size=7)


@st.composite
def merges(draw: st.DrawFn) -> str:
    clauses = []
    for when in draw(st.permutations(sorted(ACTIONS)))[: draw(st.integers(1, 3))]:
        conditions = draw(st.lists(st.sampled_from(CONDITIONS[when]), max_size=2))
        clauses += [f"WHEN {when} AND {condition} THEN {draw(st.sampled_from(ACTIONS[when]))}" for condition in conditions]
        if not conditions or draw(st.booleans()):
            clauses.append(f"WHEN {when} THEN {draw(st.sampled_from(ACTIONS[when]))}")
    return f"MERGE INTO t USING s {draw(st.sampled_from(JOINS))} {' '.join(clauses)}"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sql=merges(), targets=CONTENT, sources=CONTENT, gone=st.integers(-1, 5))
def test_random_ones(pair: Pair, sql: str, targets: list[Any], sources: list[Any], gone: int) -> None:
    pair.con.execute("; ".join(["BEGIN", *TABLES]))
    for one in TABLES:
        pair.oracle.run(one)
    for name, rows in (("t", targets), ("s", sources)):
        pair.con.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        pair.oracle.many(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    pair.con.execute("COMMIT")
    pair.con.execute(f"DELETE FROM t WHERE k = {gone}")
    pair.oracle.run(f"DELETE FROM t WHERE k = {gone}")
    try:
        count = pair.con.execute(sql).rowcount
    except lakelite.ProgrammingError as error:
        if "in several ways" not in str(error):
            raise
        event("DuckDB leaves open which partner counts")
    else:
        assert count == pair.oracle.run(sql)
        assert pair.rows() == pair.oracle.content("t")


# What DuckDB leaves open, or does not have.


@pytest.fixture
def con(lake: Any) -> Any:
    for sql in (*TABLES, *ROWS, "DELETE FROM t WHERE k = 90"):
        lake.execute(sql)
    return lake


def test_a_row_that_would_be_updated_in_several_ways_is_an_error_that_shows_it(con: Any) -> None:
    before = con.execute("FROM t").fetchall()
    with pytest.raises(lakelite.ProgrammingError, match="several ways: k = 2, v = 2, w = b") as caught:
        con.execute("MERGE INTO t USING (VALUES (2, 5), (2, 6)) s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v")
    assert "GROUP BY" in caught.value.hint
    assert con.execute("FROM t").fetchall() == before


def test_a_value_is_evaluated_only_for_the_rows_of_its_clause(con: Any) -> None:
    con.execute(
        "MERGE INTO t USING (VALUES (2, 'x'), (3, '4')) s(k, v) ON t.k = s.k"
        " WHEN MATCHED AND s.v = 'x' THEN DO NOTHING WHEN MATCHED THEN UPDATE SET v = s.v::INTEGER"
    )
    assert con.execute("SELECT v FROM t WHERE k IN (2, 3) ORDER BY k").fetchall() == [(2,), (4,)]


def test_the_source_is_read_once(con: Any) -> None:
    con.execute(
        "MERGE INTO t USING (SELECT range AS k, random() AS r FROM range(1000)) AS s ON t.k = s.k AND s.r < 0.5"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND r < 0.5 THEN INSERT (k, w) VALUES (k, 'low') WHEN NOT MATCHED THEN INSERT (k, w) VALUES (k, 'high')"
    )
    assert (
        con.execute("SELECT count(*) FROM t WHERE w IN ('low', 'high')").fetchone()[0]
        + con.execute("SELECT 3 - count(*) FROM t WHERE w IN ('a', 'b', 'c')").fetchone()[0]
        == 1000
    )


def test_a_null_where_none_may_be_is_an_error(con: Any) -> None:
    con.execute("CREATE TABLE n (k INTEGER NOT NULL, v INTEGER)")
    con.execute("INSERT INTO n VALUES (2, 2)")
    for action in ("WHEN MATCHED THEN UPDATE SET k = NULL", "WHEN NOT MATCHED AND s.k IS NULL THEN INSERT (k) VALUES (s.k)"):
        with pytest.raises(lakelite.IntegrityError, match=r"NOT NULL constraint failed: n\.k"):
            con.execute(f"MERGE INTO n USING s ON n.k = s.k {action}")
    assert con.execute("FROM n").fetchall() == [(2, 2)]


# What it is to others: row ids, history, table_changes.


def test_updates_keep_their_row_ids_and_are_told_from_inserts_and_deletes(con: Any) -> None:
    before = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0]
    con.execute(
        ON + "WHEN MATCHED AND t.k = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED AND s.k = 4 THEN INSERT BY NAME"
        " WHEN NOT MATCHED BY SOURCE AND t.k = 1 THEN UPDATE SET w = 'alone'"
    )
    (version,) = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()
    assert version == before + 1
    changes = con.execute(f"SELECT change_type, k, v, w FROM table_changes('t', {version}, {version})").fetchall()
    assert sorted(changes) == [
        ("delete", 3, 3, "c"),
        ("insert", 4, 40, "D"),
        ("update_postimage", 1, 1, "alone"),
        ("update_postimage", 2, 20, "b"),
        ("update_preimage", 1, 1, "a"),
        ("update_preimage", 2, 2, "b"),
    ]
    (operation,) = con.execute("SELECT operation FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 1").fetchone()
    assert operation == "MERGE"
    assert con.execute("CHECK LAKE").fetchall() == []


def test_many_rows_go_into_files(lake: Any) -> None:
    lake.execute("CREATE TABLE t AS SELECT range AS k, 0 AS v FROM range(20000)")
    statement = (
        "MERGE INTO t USING (SELECT range * 2 AS k FROM range(15000)) AS s USING (k) WHEN MATCHED THEN UPDATE SET v = 1"
        " WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 2) WHEN NOT MATCHED BY SOURCE AND k % 3 = 0 THEN DELETE"
    )
    assert lake.execute(statement).rowcount == 10000 + 5000 + 3333
    assert lake.execute("SELECT v, count(*), sum(k) FROM t GROUP BY v ORDER BY v").fetchall() == [
        (0, 6667, sum(k for k in range(20000) if k % 2 and k % 3)),
        (1, 10000, sum(range(0, 20000, 2))),
        (2, 5000, sum(range(20000, 30000, 2))),
    ]
    assert lake.execute("SELECT DISTINCT storage FROM lake.fragments").fetchall() == [("parquet",)]
    assert lake.execute("CHECK LAKE").fetchall() == []


# Parameters, objects of the caller, time travel, types.


def test_parameters(con: Any) -> None:
    sql = "MERGE INTO t USING (SELECT ?::INTEGER AS k, ? AS w) AS s USING (k) WHEN MATCHED AND t.v < ? THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME"
    assert con.execute(sql, [2, "two", 10]).rowcount == 1
    assert con.execute(sql, [2, "no", 0]).rowcount == 0
    assert con.executemany(sql, [[8, "eight", 0], [9, "nine", 0], [8, "again", 9]]).rowcount == 3
    assert con.execute("SELECT k, v, w FROM t WHERE k IN (2, 8, 9) ORDER BY k").fetchall() == [(2, 2, "two"), (8, 7, "again"), (9, 7, "nine")]


def test_a_table_of_the_callers_and_a_file(con: Any, tmp_path: Path) -> None:
    arrow = pa.table({"k": [2, 70], "v": [5, 6]})
    assert (
        con.execute("MERGE INTO t USING arrow USING (k) WHEN MATCHED THEN UPDATE SET v = arrow.v WHEN NOT MATCHED THEN INSERT BY NAME").rowcount == 2
    )
    assert arrow.num_rows == 2
    (tmp_path / "more.csv").write_text("k,w\n70,seventy\n71,new\n")
    con.execute(f"MERGE INTO t USING '{tmp_path}/more.csv' ON t.k = more.k WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME")
    assert con.execute("FROM t WHERE k IN (2, 70, 71) ORDER BY k").fetchall() == [(2, 5, "b"), (70, 6, "seventy"), (71, 7, "new")]


def test_from_an_earlier_version(con: Any) -> None:
    (version,) = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()
    con.execute("DELETE FROM t WHERE k = 1; UPDATE t SET v = 0 WHERE k = 2; INSERT INTO t VALUES (60, 60, 'new')")
    back = "USING (k) WHEN MATCHED AND t IS DISTINCT FROM old THEN UPDATE WHEN NOT MATCHED AND k IS NOT NULL THEN INSERT WHEN NOT MATCHED BY SOURCE AND k IS NOT NULL THEN DELETE"
    assert con.execute(f"MERGE INTO t USING t AT (VERSION => {version}) AS old {back}").rowcount == 3
    assert multiset(con.execute("FROM t").fetchall()) == multiset(con.execute(f"FROM t AT (VERSION => {version})").fetchall())


def test_all_types_come_through(lake: Any) -> None:
    types = {
        "DECIMAL(9, 2)": "1.25", "HUGEINT": "99999999999999999999999999999999999999", "DOUBLE": "'nan'", "TIMESTAMPTZ": "'2024-02-29 12:00:00.000001+00'",
        "INTERVAL": "INTERVAL 3 MONTH", "TIME": "'12:00:00.5'", "UUID": "'00000000-0000-0000-0000-00000000000f'", "BLOB": "'\\x00\\xFF'",
        "ENUM('a', 'b')": "'b'", "STRUCT(m INTEGER, n VARCHAR[])": "{'m': 1, 'n': ['x', NULL]}", "MAP(VARCHAR, INTEGER)": "MAP {'x': 1}",
        "JSON": "'{\"a\": [1]}'", "INTEGER[3]": "[1, 2, 3]",
    }  # fmt: skip
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(types))
    oracle = Oracle()
    for name in ("a", "b"):
        for run in (lake.execute, oracle.run):
            run(f"CREATE TABLE {name} (k INTEGER, {columns})")
    for sql in (
        f"INSERT INTO a VALUES (1, {', '.join(types.values())}), (2, {', '.join(types.values())})",
        "INSERT INTO b (k) VALUES (1), (3)",
        "MERGE INTO b USING a USING (k) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT",
    ):
        lake.execute(sql)
        oracle.run(sql)
    assert multiset(lake.execute("FROM b").fetchall()) == oracle.content("b")
    oracle.close()


def test_odd_names(lake: Any) -> None:
    oracle = Oracle()
    for sql in (
        'CREATE TABLE "a ""t" ("k.1" INTEGER, "select" INTEGER, "_lake_s" INTEGER, "Ünï" VARCHAR)',
        "INSERT INTO \"a \"\"t\" VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y')",
        'MERGE INTO "a ""t" AS "when" USING (SELECT 2 AS "k.1", 5 AS "then") AS "matched" USING ("k.1")'
        ' WHEN MATCHED AND "when"."Ünï" = \'y\' THEN UPDATE SET "select" = "then", "_lake_s" = "when"."select" + 1'
        ' WHEN NOT MATCHED BY SOURCE THEN UPDATE SET "Ünï" = "when"::VARCHAR',
    ):
        lake.execute(sql)
        oracle.run(sql)
    assert multiset(lake.execute('FROM "a ""t"').fetchall()) == multiset(oracle.duck.execute('FROM "a ""t"').fetchall())
    oracle.close()


def test_what_is_left_behind_of_one_that_fails(con: Any) -> None:
    for sql in (ON + "WHEN MATCHED THEN ERROR", ON + "WHEN MATCHED THEN UPDATE SET v = s.w::INTEGER"):
        with pytest.raises(lakelite.Error):
            con.execute(sql)
        with pytest.raises(lakelite.ProgrammingError, match="does not exist"):
            con.execute("FROM _lake_merge_rows")
    assert con.execute(ON + "WHEN MATCHED THEN DELETE").rowcount == 2
