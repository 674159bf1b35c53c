"""Any text: queries of DuckDB pass unchanged, scripts are split as DuckDB splits them, limits hold, and junk is refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as some

from lakelite import errors
from lakelite.language import statements as st
from lakelite.language.parse import is_complete, is_volatile, mentions, parse_piece, parse_script, split_script, uses_clock
from lakelite.language.tokens import Piece, left_open


def op(text: str) -> Any:
    (statement,) = parse_script(text)
    return statement.operation


def test_limits() -> None:
    with pytest.raises(errors.ProgrammingError, match="nests 801 brackets"):
        parse_script("SELECT " + "(" * 801 + "1" + ")" * 801)
    with pytest.raises(errors.ProgrammingError, match="longer than 1000000 bytes"):
        parse_script("SELECT '" + "é" * 500_000 + "'")
    with pytest.raises(errors.ProgrammingError, match="longer than 1000000 bytes"):
        parse_script("INSERT INTO t VALUES " + "(1)," * 3_000_000)
    with pytest.raises(errors.ProgrammingError, match="NUL"):
        parse_script("SELECT '\0'")
    with pytest.raises(errors.ProgrammingError, match="surrogate"):
        parse_script("SELECT '\ud800'")
    assert op("DELETE FROM t WHERE " + "NOT " * 10_000 + "f(a)").row_local is False
    assert op("INSERT INTO t VALUES " + ", ".join(["(1, 'x')"] * 10_000)).is_values


PASS_THROUGH = """
SELECT 1
SELECT a.b, c AS "d e" FROM t a WHERE a.b > 1 GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 10 OFFSET 2
SELECT * EXCLUDE (a) REPLACE (b + 1 AS b) RENAME (c AS d) FROM t
SELECT COLUMNS('a.*') FROM t
SELECT COLUMNS(c -> c LIKE 'a%') FROM t
SELECT x: 42, y: 'a'
FROM t
FROM t SELECT a, b WHERE a = 1
FROM 'data/*.parquet'
FROM read_csv('x.csv', header = true, columns = {'a': 'INTEGER'})
TABLE t
VALUES (1, 'a'), (2, 'b')
(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1
SELECT 1 UNION BY NAME SELECT 2 AS b
((SELECT 1))
WITH a AS (SELECT 1), b(x) AS MATERIALIZED (SELECT 2), c AS NOT MATERIALIZED (FROM a) SELECT * FROM a, b, c
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) FROM r
WITH RECURSIVE r(n) USING KEY (n) AS (SELECT 1 UNION SELECT 2) FROM r
WITH a AS (SELECT 1) FROM a
WITH a AS (SELECT 1) (SELECT * FROM a)
WITH delete AS (SELECT 1 AS update) SELECT update FROM delete
PIVOT t ON year USING sum(n) GROUP BY name
UNPIVOT t ON a, b INTO NAME k VALUE v
FROM t PIVOT (sum(n) FOR year IN (2000, 2010) GROUP BY name)
SUMMARIZE t
SUMMARIZE SELECT * FROM t
DESCRIBE SELECT 1
EXPLAIN SELECT 1
EXPLAIN ANALYZE SELECT 1
EXPLAIN (FORMAT json) FROM t
SELECT * FROM a LEFT JOIN b USING (x) ASOF JOIN c ON a.t >= c.t POSITIONAL JOIN d
SELECT * FROM a SEMI JOIN b ON a.x = b.x ANTI JOIN c USING (x)
SELECT * FROM t, LATERAL (SELECT t.a + 1)
SELECT * FROM range(10) r(i) WHERE i % 2 = 0
SELECT * FROM t TABLESAMPLE reservoir(10 ROWS) REPEATABLE (42)
SELECT * FROM t USING SAMPLE 10%
SELECT row_number() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST) FROM t
SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY b) = 1
SELECT sum(a) FILTER (WHERE b > 1), list(a ORDER BY b), string_agg(c, ', ') FROM t
SELECT [1, 2, 3][1:2], [x * 2 FOR x IN [1, 2] IF x > 1], list_transform([1], lambda x: x + 1)
SELECT {'a': 1, 'b': [2]}.b[1], MAP {'k': 1}['k'], struct_pack(a := 1)
SELECT CASE WHEN a THEN 1 ELSE 2 END, CASE a WHEN 1 THEN 'x' END FROM t
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b FROM t
SELECT ts AT TIME ZONE 'Europe/Berlin', TIMESTAMP WITH TIME ZONE '2020-01-01 00:00:00+00' FROM t
SELECT INTERVAL 1 DAY, INTERVAL '2' MONTH, DATE '2020-01-01' + 1
SELECT '1'::INT, CAST('1' AS DECIMAL(10, 2)), TRY_CAST('x' AS INT)
SELECT a->'$.b', a->>'c', a ^@ 'x', a ~ 'y', a !~~ 'z' FROM t
SELECT 5 // 2, 2 ** 3, 2 ^ 3, 7 % 3, ~1, 1 << 2, 5 & 3, 5 | 3, @(-1)
SELECT 1_000, 1e3, .5, 1., 0.5e-3
SELECT 'it''s', E'a\\'b\\n', $$a;'b$$, $tag$ ; $tag$, x'00'
SELECT "a""b", "select", "ü" FROM "t t"
SELECT ünï, 日本 FROM tablé
SELECT /* a /* nested ; */ comment */ 1 -- and ; this
SELECT * FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND EXISTS (FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE b = ANY (SELECT 1) AND c LIKE 'a!%' ESCAPE '!' AND d ILIKE 'x' AND e SIMILAR TO 'y' AND f GLOB '*'
SELECT grouping(a), count(*) FROM t GROUP BY GROUPING SETS ((a), ()), ROLLUP (b), CUBE (c)
SELECT DISTINCT ON (a) a, b FROM t ORDER BY a
SELECT (SELECT 1), ARRAY(SELECT 2), EXISTS (SELECT 3), 1 IN (FROM t)
SELECT * FROM query_table('t')
SELECT unnest([1, 2]), unnest({'a': 1}, recursive := true)
SELECT #1, a.* FROM t a
SELECT a COLLATE NOCASE FROM t ORDER BY a COLLATE de
SELECT count() FROM t GROUP BY 1, 2
SELECT * FROM generate_series(1, 3) WITH ORDINALITY
SELECT version, at_, "at" FROM t AS version
SELECT nullif(a, b), coalesce(a, b), extract(year FROM d), substring(s FROM 1 FOR 2), position('a' IN s), trim(BOTH 'x' FROM s) FROM t
SELECT * FROM (VALUES (1, 2)) v(a, b) CROSS JOIN (SELECT 1) NATURAL JOIN u
SELECT * FROM t ORDER BY a LIMIT 10%
SELECT t FROM t
SELECT insert, update, delete, merge, copy FROM set
SHOW SELECT 1
"""


@pytest.mark.parametrize("text", PASS_THROUGH.strip().splitlines())
def test_queries_pass_unchanged(text: str) -> None:
    try:
        (parsed,) = duckdb.extract_statements(text)
    except duckdb.ParserException as error:
        pytest.fail(f"DuckDB cannot parse this example: {error}")
    text = text.removesuffix(" -- and ; this")
    assert len(parsed.query) >= len(text)
    operation = op(text)
    assert isinstance(operation, st.Query)
    assert operation.sql == st.Sql((text,), (), 0)
    assert parse_script(f"SELECT 1; {text};")[1].text == text


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", False),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1; SELECT", False),
        ("SELECT ';", False),
        ("SELECT ';';", True),
        ("SELECT (1;", False),
        ("SELECT [1];", True),
        ("SELECT $$ ; ", False),
        ("SELECT /* ; ", False),
        ("SELECT 1; /* ", False),
        ("SELECT 1 -- ;", False),
        ('SELECT "a;', False),
    ],
)
def test_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("SELECT 1", []),
        ("SELECT\n1;\n", ["", ""]),
        ("f(\n[\n1]\n)\n", ["(", "[", "(", ""]),
        ("SELECT 'a\nb'\n", ["'", ""]),
        ('"a\nb\n', ['"', '"']),
        ("`a\n", ["`"]),
        ("$$\n(\n$$\n;", ["$", "$", ""]),
        ("$tag$\n", ["$"]),
        ("(/* x\ny", ["*"]),
        ("-- (\n", [""]),
        ("(;\n", ["("]),
        (")\n(\r\n", ["", "("]),
    ],
)
def test_what_is_open_where_a_line_begins(text: str, opened: list[str]) -> None:
    assert list(left_open(text)) == opened


FRAGMENTS = some.sampled_from(
    "SELECT INSERT INTO t DELETE FROM WHERE UPDATE SET = a , ( ) [ ] { } ; ' \" $$ $1 ? :a -- /* */ \n AT VERSION => FOR AS OF 1 WITH "
    "VALUES CREATE TABLE COPY TO BEGIN ISOLATION LEVEL READ ONLY DROP SHOW DESCRIBE HISTORY VACUUM RETAIN EXPLAIN BY NAME DEFAULT CASE END . NOT "
    "OVERWRITE OR IF EXISTS RETURNING ON CONFLICT DO * 'x' \"y\" é # :: := | ` E'\\' \0 RESET TRUNCATE COMMIT ROLLBACK DISTINCT IS TIMESTAMP".split(
        " "
    )
)
JUNK = some.one_of(some.text(), some.lists(FRAGMENTS, max_size=25).map(" ".join), some.lists(FRAGMENTS, max_size=12).map("".join))


@given(JUNK, some.sampled_from([None, frozenset("a")]))
def test_any_text_is_parsed_or_refused(text: str, named: frozenset[str] | None) -> None:
    is_complete(text)
    assert len(left_open(text)) == text.count("\n")
    mentions(text)
    uses_clock(text)
    is_volatile(text)
    for piece in split_script(text):
        places = [error.position for error in refusals(piece, named)]
        assert None not in places


def refusals(piece: Piece, named: frozenset[str] | None) -> list[errors.DatabaseError]:
    """The error of a piece, if it is one that a user may see."""
    try:
        statement = parse_piece(piece, named)
    except (errors.ProgrammingError, errors.NotSupportedError) as error:
        return [error]
    assert statement.text == piece.text
    return []


@given(some.lists(FRAGMENTS, max_size=25).map(" ".join))
def test_the_pieces_and_what_lies_between_them_are_the_script(script: str) -> None:
    rebuilt = ""
    for piece in split_script(script):
        between = script[len(rebuilt) : piece.start]
        assert not list(split_script(between))
        assert all(token.word != ";" for token in piece.tokens)
        assert [piece.text[token.start : token.end].strip() for token in piece.tokens].count("") == 0
        rebuilt += between + piece.text
    assert not list(split_script(script[len(rebuilt) :]))
    assert script.startswith(rebuilt)


@given(some.lists(some.sampled_from(PASS_THROUGH.strip().splitlines()), min_size=1, max_size=5))
def test_a_script_is_split_as_duckdb_splits_it(lines: list[str]) -> None:
    script = "\n;".join(lines)
    found = [statement.text for statement in parse_script(script)]
    assert len(found) == len(duckdb.extract_statements(script)) == len(lines)
