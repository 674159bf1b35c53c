"""What is known of the rows that matter to a query. The last test is the proof: leaving out rows that cannot matter changes no answer."""

from __future__ import annotations

import duckdb
import pytest

from lakelite.language.scans import scans
from lakelite.model import Column, Field, Table

T = Table(1, 1, "main", "t", (Column("k", "INTEGER", Field(1, "k", "INTEGER")), Column("v", "INTEGER", Field(2, "v", "INTEGER"))))

KNOWN = {
    "SELECT * FROM t WHERE k = 5": ["k = 5"],
    "FROM t WHERE k = 5 AND v < 3": ["k = 5 AND v < 3"],
    "FROM main.t AS x WHERE x.k BETWEEN 2 AND 4": ["k BETWEEN 2 AND 4"],
    "SELECT count(*) FROM t WHERE k IN (1, 2) GROUP BY v HAVING count(*) > 1": ["k IN (1, 2)"],
    "SELECT (SELECT max(v) FROM t WHERE k = 1)": ["k = 1"],
    "SELECT k FROM t WHERE k = 1 UNION ALL SELECT v FROM t WHERE k = 2": ["k = 1", "k = 2"],
    "SELECT * FROM t JOIN u ON t.k = u.k WHERE t.v = 3 AND w = 1": ["v = 3"],
    "SELECT * FROM t, u WHERE t.k = 3": ["k = 3"],
    "INSERT INTO u SELECT k, v, 2 FROM t WHERE v = 3": ["v = 3"],
    "DELETE FROM u WHERE k IN (SELECT k FROM t WHERE v = 3)": ["v = 3"],
    "WITH a AS (SELECT * FROM t WHERE k = 3) SELECT * FROM a WHERE v = 1": ["k = 3"],
    "SELECT v AS k FROM t WHERE k = 1": ["k = 1"],  # the column, not the alias
}
UNKNOWN = [
    "SELECT * FROM t",
    "SELECT * FROM t WHERE k + v = 5",
    "SELECT * FROM t WHERE k = 5 OR v = 3",
    "SELECT * FROM t LEFT JOIN u ON t.k = u.k WHERE t.k = 5",
    "SELECT * FROM u LEFT JOIN t ON t.k = u.k WHERE t.k = 5",
    "SELECT * FROM u ANTI JOIN t USING (k) WHERE u.k = 5",
    "SELECT * FROM t NATURAL JOIN u WHERE t.k = 5",
    "SELECT * FROM t JOIN u ON true WHERE k = 5",  # whose k?
    "SELECT * FROM t TABLESAMPLE 10% WHERE k = 5",
    "SELECT * FROM t AS x (v, k) WHERE k = 5",
    "WITH t AS (SELECT 1 AS k) SELECT * FROM t WHERE k = 5",
    "SELECT * FROM query('FROM t') JOIN t ON true WHERE t.k = 5",
    "SELECT * FROM table_changes('t', 1, 2) JOIN t USING (k) WHERE t.k = 5",
    "SELECT k FROM t WHERE k = 1 UNION ALL SELECT k FROM t",
    "SELECT count(*) FROM t WHERE k < 3 USING SAMPLE 10 ROWS",
    "SELECT sum(count) FROM histogram_values('t', k), t WHERE t.k = 5",
    "SELECT sum(count) FROM histogram_values(t, k) JOIN t x ON true WHERE x.k = 3",
    "SELECT * FROM 't'",
    "SUMMARIZE t",
    "SELECT * FROM (PIVOT t ON k USING sum(v)) WHERE v = 1",
    "no SQL at all",
]


@pytest.mark.parametrize(("text", "conditions"), KNOWN.items())
def test_a_row_that_meets_none_of_its_conditions_cannot_matter(text: str, conditions: list[str]) -> None:
    found = scans(text, T, {})
    assert found is not None
    assert len(found) == len(conditions)
    keep = " OR ".join(f"({c})" for c in conditions)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT (range % 6)::INTEGER AS k, (range // 6)::INTEGER AS v FROM range(36)")
        con.execute("INSERT INTO t VALUES (NULL, NULL), (5, NULL); CREATE TABLE u AS SELECT k, v, 1 AS w FROM t")
        answers = []
        for kept in ("true", keep):
            con.execute(f"BEGIN; DELETE FROM t WHERE ({kept}) IS NOT TRUE")
            rows = con.execute(text).fetchall()
            answers.append(sorted(map(repr, [*rows, *con.execute("FROM u").fetchall()])))
            con.execute("ROLLBACK")
    assert answers[0] == answers[1]


@pytest.mark.parametrize("text", UNKNOWN)
def test_of_these_nothing_is_known(text: str) -> None:
    assert scans(text, T, {}) is None


def test_parameters_are_values() -> None:
    found = scans("FROM t WHERE k = $a AND v = $1", T, {"a": 7, "1": 8})
    assert found is not None
    assert [(c.field_id, c.values) for c in found[0]] == [(1, (7,)), (2, (8,))]
    assert scans("FROM t WHERE k = $a", T, {"a": "7"}) is None  # DuckDB may cast the column


def test_a_table_of_another_schema_is_another_one() -> None:
    assert scans("SELECT * FROM s.t, main.t WHERE t.k = 3", T, {}) is not None
    other = Table(2, 2, "s", "t", T.columns)
    assert scans("SELECT * FROM s.t WHERE k = 3", other, {}) is not None
    assert scans("SELECT * FROM t", other, {}) is None  # a name alone may be either
