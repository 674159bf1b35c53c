"""Which queries are known to give the same rows again; everything else is read once."""

from __future__ import annotations

import pytest

from lakelite.language.repeatable import dotted, repeats

KNOWN = {("s",), ("main", "s"), ("u",), dotted('"lake@3".main.s')}

SAME = (
    "FROM s",
    "SELECT * EXCLUDE (v) FROM main.s AS a JOIN u USING (k)",
    "SELECT upper(l) || 'x', -k + 1, v::BIGINT, coalesce(v, 0) FROM s WHERE k BETWEEN 1 AND $n AND l LIKE 'a%' AND v IN (1, 2)",
    "WITH c AS (SELECT k FROM s) SELECT * FROM c, u",
    "SELECT * FROM (s SEMI JOIN u ON s.k = u.k) LEFT JOIN (VALUES (1, 'a')) AS q(k, l) USING (k)",
    'SELECT * FROM "lake@3".main.s',
    "SELECT * FROM 'rows.csv', read_parquet('a.parquet'), range(3) AS r(i)",
)
OTHER = (
    "SELECT first(v) AS v FROM s",
    "SELECT last(v) AS v FROM s",
    "SELECT any_value(v) AS v FROM s GROUP BY k",
    "SELECT mode(v) FROM s",
    "SELECT arg_max(v, k) FROM s",
    "SELECT v.first() FROM s",
    "SELECT list(v) FROM s",
    "SELECT string_agg(l, ',') FROM s",
    "SELECT [v, k] FROM (SELECT sum(d) AS v FROM s)",
    "SELECT DISTINCT ON (k) v FROM s",
    "SELECT DISTINCT v FROM s",
    "SELECT v FROM s QUALIFY row_number() OVER (ORDER BY k) = 1",
    "SELECT row_number() OVER (ORDER BY k) AS v FROM s",
    "SELECT v FROM s ORDER BY k LIMIT 1",
    "SELECT v FROM s OFFSET 1",
    "SELECT v FROM s USING SAMPLE 50%",
    "SELECT v FROM s TABLESAMPLE 50%",
    "SELECT v FROM s UNION SELECT k FROM u",
    "SELECT (SELECT v FROM u) FROM s",
    "SELECT v FROM s WHERE k IN (SELECT first(k) FROM u)",
    "SELECT v FROM s WHERE EXISTS (SELECT 1 FROM u)",
    "SELECT * FROM (SELECT first(v) AS v FROM s) s",
    "WITH c AS (SELECT first(v) AS v FROM s) FROM c",
    "WITH RECURSIVE c AS (SELECT 1 AS v) FROM c",
    "SELECT random() FROM s",
    "SELECT nextval('q') FROM s",
    "SELECT getvariable('x') FROM s",
    "SELECT unnest([v, k]) FROM s",
    "SELECT reduce([1, 2], lambda x, y: x + y) FROM s",
    "SELECT a_function_of_mine(v) FROM s",
    "SELECT * FROM a_table_of_mine(1)",
    "SELECT * FROM s POSITIONAL JOIN u",
    "SELECT * FROM s ASOF JOIN u ON s.k >= u.k",
    "SELECT * FROM s, LATERAL (SELECT s.k) AS r",
    "SELECT COLUMNS(*) FROM s",
    "SELECT * FROM s PIVOT (sum(v) FOR k IN (1))",
    "FROM duckdb_settings",
    "FROM s AT (VERSION => 3)",
    "SELECT * FROM not_known",
    "SELECT (",
    "SELECT 1" + " + 1" * 20_000,
)


@pytest.mark.parametrize("text", SAME)
def test_rows_that_come_again(text: str) -> None:
    assert repeats(text, KNOWN)


@pytest.mark.parametrize("text", OTHER)
def test_rows_that_may_be_others(text: str) -> None:
    assert not repeats(text, KNOWN)
