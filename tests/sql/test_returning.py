"""UPDATE … FROM, DELETE … USING and RETURNING: the same rows, names and types as DuckDB, and the same table afterwards."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from comparing import answer
from oracle import multiset

import lakelite
from lakelite.interfaces.runner import Runner

SETUP = (
    "CREATE TABLE t (a INTEGER, b VARCHAR DEFAULT 'x')",
    "INSERT INTO t VALUES (1, 'p'), (2, 'q'), (9, 'gone'), (NULL, 'n')",
    "INSERT INTO t SELECT 3, 'r'",
    "DELETE FROM t WHERE a = 9",
    "CREATE SCHEMA z",
    "CREATE TABLE z.s (k INTEGER, v VARCHAR)",
    "INSERT INTO z.s VALUES (1, 's1'), (2, 's2'), (7, 's7')",
    "CREATE TABLE u (k INTEGER, w INTEGER[])",
    "INSERT INTO u VALUES (1, [1]), (3, [3, 4])",
)
STATEMENTS = """
INSERT INTO t VALUES (4, 'z') RETURNING *
INSERT INTO t VALUES ('4', 'z'), (5, DEFAULT) RETURNING t.a, b AS bb, a + 1, t.*, b || '!' AS "odd name"
INSERT INTO t VALUES (4, 'z') RETURNING a, a, typeof(a), a + 0.5, NULL, [a], {'x': a}, t
INSERT INTO t (b) VALUES ('only') RETURNING a, b
INSERT INTO t DEFAULT VALUES RETURNING *
INSERT INTO t BY NAME SELECT 5 AS a RETURNING *, a
INSERT INTO t SELECT k, v FROM z.s RETURNING b, a
INSERT INTO t SELECT 1, 'returning' AS returning RETURNING a AS "returning"
INSERT INTO t SELECT * FROM t RETURNING *
INSERT INTO t SELECT * FROM t WHERE false RETURNING *
INSERT INTO t SELECT range, 'n' || range FROM range(3000) RETURNING a * 2 AS d, b
WITH q AS (SELECT 8 AS a, 'cte' AS b) INSERT INTO t FROM q RETURNING *
UPDATE t SET b = 'u' WHERE a < 3 RETURNING *
UPDATE t SET b = 'u', a = a + 1 RETURNING a, b, lower(b) l,
UPDATE t AS y SET b = 'u' WHERE y.a = 1 RETURNING y.*, y.a
UPDATE t SET b = DEFAULT WHERE a = 1 RETURNING main.t.b
UPDATE t SET a = NULL WHERE b = 'nothing' RETURNING *
UPDATE t SET b = 'u' RETURNING * EXCLUDE (a)
UPDATE t SET b = 'u' RETURNING * REPLACE (a + 1 AS a)
UPDATE t SET b = 'u' RETURNING COLUMNS('a')
UPDATE t SET b = 'u' WHERE a = 1 RETURNING now() IS NOT NULL, t
UPDATE t SET a = a + 1 RETURNING CASE WHEN a > 2 THEN 'big' ELSE b END, list_transform([a], lambda x: x + 1)
UPDATE t SET a = (SELECT max(k) FROM z.s) WHERE a IN (SELECT k FROM u) RETURNING a, b
UPDATE t SET b = s.v FROM z.s WHERE t.a = s.k
UPDATE t SET b = z.s.v FROM z.s WHERE main.t.a = z.s.k RETURNING *
UPDATE t AS x SET b = s.v || x.b FROM z.s AS s WHERE x.a = s.k RETURNING x.a, b
UPDATE t SET b = v, a = w[1] FROM z.s JOIN u USING (k) WHERE a = k RETURNING *
UPDATE t SET b = v FROM z.s LEFT JOIN u ON s.k = u.k WHERE a = s.k AND u.k IS NULL RETURNING a
UPDATE t SET b = q.v FROM (SELECT * FROM z.s ORDER BY v DESC LIMIT 1) q WHERE a < q.k RETURNING *
UPDATE t SET b = 'z' FROM t t2 WHERE t.a = t2.a + 1 RETURNING *
UPDATE t SET b = w.y FROM (VALUES (1, 'one'), (3, 'three')) w(x, y) WHERE a = w.x RETURNING *
UPDATE t SET b = (SELECT max(v) FROM z.s WHERE k < u.k) FROM u, z.s WHERE a = u.k AND s.k = 7 RETURNING a, b
UPDATE t SET b = i::VARCHAR FROM range(2) r(i) WHERE i = 1 AND a = 2 RETURNING *
WITH q AS (SELECT 1 AS k, 'cte' AS v) UPDATE t SET b = q.v FROM q WHERE a = q.k RETURNING *
UPDATE z.s SET v = t.b FROM t WHERE k = t.a RETURNING s.k, v
DELETE FROM t RETURNING *
DELETE FROM t WHERE a = 1 RETURNING a, 5, 'x'
DELETE FROM t WHERE a > 100 RETURNING a
DELETE FROM t WHERE a IN (SELECT k FROM z.s) RETURNING b, a
DELETE FROM t USING z.s WHERE t.a = s.k
DELETE FROM t USING z.s
DELETE FROM t USING z.s WHERE t.a = s.k RETURNING *
DELETE FROM t AS y USING z.s, u WHERE y.a = s.k AND u.k = s.k RETURNING y.a, y
DELETE FROM t USING z.s LEFT JOIN u ON s.k = u.k WHERE t.a = s.k RETURNING a
DELETE FROM t USING z.s, z.s AS s2 WHERE t.a = s.k OR t.a = s2.k RETURNING a
DELETE FROM t USING (VALUES (1)) w(x) WHERE a = x RETURNING a
DELETE FROM t USING t t2 WHERE t.a = t2.a - 1 RETURNING a
DELETE FROM t USING (SELECT 2 AS a) q WHERE t.a = q.a RETURNING t.b
DELETE FROM t USING z.s RETURNING t.a + 1
WITH q AS (SELECT 2 AS k) DELETE FROM t USING q WHERE a = q.k RETURNING *
""".strip().splitlines()


@pytest.fixture
def con(connect: Callable[..., Any]) -> Any:
    con = connect()
    for statement in SETUP:
        con.execute(statement)
    return con


def test_each_statement_gives_what_duckdb_gives(con: Any) -> None:
    for statement in STATEMENTS:
        duck = duckdb.connect()
        for setup in SETUP:
            duck.execute(setup)
        expected = answer(duck, statement)
        con.execute("BEGIN")
        cursor = con.execute(statement)
        if "RETURNING" in statement:
            assert ([(d[0], str(d[1])) for d in cursor.description], sorted(map(repr, cursor.fetchall()))) == expected, statement
            assert cursor.rowcount == len(expected[1]), statement
        else:
            assert cursor.description is None
            assert f"({cursor.rowcount},)" == expected[1][0], statement
        for table in ("t", "z.s", "u"):
            assert multiset(con.execute(f"FROM {table}").fetchall()) == multiset(duck.execute(f"FROM {table}").fetchall()), statement
        con.execute("ROLLBACK")


def test_each_statement_gives_the_same_in_autocommit(tmp_path: Path) -> None:
    con = lakelite.connect(tmp_path / "lake", autocommit=True)
    duck = duckdb.connect()
    for setup in SETUP:
        con.execute(setup)
        duck.execute(setup)
    for statement in STATEMENTS[:30]:
        if "RETURNING" in statement and "FROM t" not in statement:
            assert multiset(con.execute(statement).fetchall()) == multiset(duck.execute(statement).fetchall()), statement
    assert multiset(con.execute("FROM t").fetchall()) == multiset(duck.execute("FROM t").fetchall())
    con.close()


def test_a_row_that_several_source_rows_match_is_updated_once_and_always_alike(con: Any) -> None:
    """DuckDB takes any of them, counts each match, and returns rows that nobody stored; here the smallest new values win, whatever the order."""
    for order in ("(1, 'y'), (1, 'x'), (2, 'b')", "(2, 'b'), (1, 'x'), (1, 'y')"):
        con.execute(f"BEGIN; UPDATE t SET b = q.v FROM (VALUES {order}) q(k, v) WHERE a = q.k")
        assert sorted(con.execute("SELECT b FROM t WHERE a < 3").fetchall()) == [("b",), ("x",)]
        con.execute("ROLLBACK; BEGIN")
        cursor = con.execute(f"UPDATE t SET b = q.v FROM (VALUES {order}) q(k, v) WHERE a = q.k RETURNING a, b")
        assert (cursor.rowcount, sorted(cursor.fetchall())) == (2, [(1, "x"), (2, "b")])
        con.execute("ROLLBACK")


def test_many_rows_that_many_match(con: Any) -> None:
    con.execute("CREATE TABLE big (k INTEGER, v INTEGER)")
    con.execute("INSERT INTO big SELECT range, -1 FROM range(20000)")
    cursor = con.execute(
        "UPDATE big SET v = q.v FROM (SELECT range % 20000 AS k, range AS v FROM range(60000)) q WHERE big.k = q.k RETURNING v = big.k"
    )
    assert cursor.rowcount == 20000
    assert cursor.fetchall() == [(True,)] * 20000
    assert con.execute("SELECT count(*), sum(v) FROM big").fetchone() == (20000, sum(range(20000)))
    assert con.execute("DELETE FROM big USING range(3) r(i) WHERE k % 2 = 0").rowcount == 10000
    assert len(con.execute("DELETE FROM big RETURNING k").fetchall()) == 10000


def test_every_type_comes_back_as_it_is(con: Any) -> None:
    values = {
        "BOOLEAN": "true", "HUGEINT": "-12345678901234567890123456789", "UBIGINT": "18446744073709551615", "DOUBLE": "'nan'", "FLOAT": "-0.0",
        "DECIMAL(38, 10)": "1.5", "VARCHAR": "'ü'", "BLOB": "'\\xFF'::BLOB", "DATE": "DATE '2020-02-29'", "TIME": "TIME '12:00:01.000001'",
        "TIMESTAMP": "TIMESTAMP '2020-01-01 00:00:00.000001'", "TIMESTAMPTZ": "TIMESTAMPTZ '2020-01-01 00:00:00+00'",
        "TIMESTAMP_NS": "'2020-01-01 00:00:00.000000001'::TIMESTAMP_NS", "INTERVAL": "INTERVAL '1 month 2 days'",
        "UUID": "'00000000-0000-0000-0000-000000000001'::UUID", "ENUM('a', 'b')": "'b'", "INTEGER[]": "[1, NULL]", "INTEGER[2]": "[1, 2]",
        "STRUCT(x INTEGER, \"y z\" VARCHAR)": "{'x': 1, 'y z': 'w'}", "MAP(VARCHAR, INTEGER)": "MAP {'k': 1}", "JSON": "'{\"a\": [1]}'",
        "UNION(n INTEGER, s VARCHAR)": "'word'", "BIT": "'0101'::BIT",
    }  # fmt: skip
    duck = duckdb.connect()
    for number, (kind, value) in enumerate(values.items()):
        for text in (f"CREATE TABLE x{number} (c {kind}, n INTEGER)", f"INSERT INTO x{number} VALUES (NULL, 0)"):
            duck.execute(text)
            try:
                con.execute(text)
            except lakelite.NotSupportedError:
                break
        else:
            for text in (
                f"INSERT INTO x{number} VALUES ({value}, 1) RETURNING *",
                f"UPDATE x{number} SET n = 2 WHERE n = 1 RETURNING c, n",
                f"DELETE FROM x{number} RETURNING c",
            ):
                assert answer(con, text) == answer(duck, text), text


def test_returning_of_an_overwrite(con: Any) -> None:
    cursor = con.execute("INSERT OVERWRITE t SELECT a + 10, b FROM t WHERE a < 3 RETURNING a")
    assert (cursor.rowcount, sorted(cursor.fetchall())) == (2, [(11,), (12,)])
    assert sorted(con.execute("FROM t").fetchall()) == [(11, "p"), (12, "q")]


def test_an_error_in_returning_undoes_the_statement(con: Any) -> None:
    before = multiset(con.execute("FROM t").fetchall())
    for statement in (
        "INSERT INTO t VALUES (5, 'word') RETURNING b::INTEGER",
        "UPDATE t SET b = 'word' RETURNING b::INTEGER",
        "DELETE FROM t RETURNING error(b)",
        "DELETE FROM t USING z.s RETURNING nothing",
    ):
        with pytest.raises(lakelite.Error):
            con.execute(statement)
        con.execute("BEGIN; INSERT INTO t VALUES (100, 'stays')")
        with pytest.raises(lakelite.Error):
            con.execute(statement)
        assert multiset(con.execute("FROM t WHERE a IS DISTINCT FROM 100").fetchall()) == before
        con.execute("ROLLBACK")
    assert multiset(con.execute("FROM t").fetchall()) == before


def test_columns_are_hidden_that_the_table_has_for_itself(con: Any) -> None:
    for name in ("rowid", "_lake_position", "_lake_s", "position", "file_row_number", "c0"):
        for statement in (f"DELETE FROM t RETURNING {name}", f"UPDATE t SET a = 1 RETURNING {name}", f"DELETE FROM t USING z.s WHERE {name} = 1"):
            with pytest.raises(lakelite.ProgrammingError, match="does not exist"):
                con.execute(statement)


def test_parameters(con: Any) -> None:
    assert con.execute("INSERT INTO t VALUES (?, ?) RETURNING *", [50, "v"]).fetchall() == [(50, "v")]
    assert con.execute("UPDATE t SET b = $b || q.x FROM (SELECT $x AS x) q WHERE a = $a RETURNING b", {"b": "n", "x": "m", "a": 50}).fetchall() == [
        ("nm",)
    ]
    assert con.execute("DELETE FROM t USING (SELECT ?::INTEGER AS k) q WHERE a = q.k RETURNING a", [50]).fetchall() == [(50,)]
    with pytest.raises(lakelite.NotSupportedError, match="a parameter in RETURNING"):
        con.execute("DELETE FROM t RETURNING a + ?", [1])


def test_the_past_and_the_callers_tables_as_sources(con: Any) -> None:
    version = con.last_commit.snapshot_id
    con.execute("DELETE FROM z.s")
    changed = con.execute(f"UPDATE t SET b = s.v FROM z.s AT (VERSION => {version}) s WHERE a = s.k RETURNING b").fetchall()
    assert sorted(changed) == [("s1",), ("s2",)]
    import pyarrow as pa

    keys = pa.table({"k": [1, 3]})  # noqa: F841  (named in SQL)
    assert sorted(con.execute("DELETE FROM t USING keys WHERE a = keys.k RETURNING a").fetchall()) == [(1,), (3,)]


def test_what_cannot_be(con: Any) -> None:
    with pytest.raises(lakelite.ProgrammingError, match="executemany is for INSERT, UPDATE, DELETE and MERGE without RETURNING"):
        con.executemany("INSERT INTO t VALUES (?, 'm') RETURNING a", [(1,), (2,)])
    for statement in ("TRUNCATE t RETURNING *", "DELETE FROM t RETURNING", "UPDATE t SET a = 1 FROM WHERE a = 1", "DELETE FROM t USING"):
        with pytest.raises(lakelite.ProgrammingError, match="syntax error"):
            con.execute(statement)
    with pytest.raises(lakelite.NotSupportedError, match="EXPLAIN UPDATE"):
        con.execute("EXPLAIN UPDATE t SET b = v FROM z.s RETURNING a")
    assert con.executemany("UPDATE t SET b = s.v FROM z.s WHERE a = s.k AND s.k = ?", [(1,), (2,), (50,)]).rowcount == 2


def test_what_a_cursor_gives(con: Any) -> None:
    cursor = con.execute("INSERT INTO t SELECT range, 'c' FROM range(5) RETURNING a")
    con.execute("DELETE FROM t WHERE b = 'c'")  # the rows are the cursor's own by now
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany(2) == [(1,), (2,)]
    assert (cursor.rownumber, cursor.rowcount) == (3, 5)
    assert [*cursor] == [(3,), (4,)]
    assert con.execute("INSERT INTO t VALUES (6, 'd') RETURNING a, a AS b").to_arrow().to_pydict() == {"a": [6], "b": [6]}
    reader = con.execute("DELETE FROM t WHERE b = 'd' RETURNING b").fetch_record_batch()
    assert reader.read_all().to_pydict() == {"b": ["d"]}
    assert con.cursor().executescript("INSERT INTO t VALUES (7, 'e') RETURNING a; SELECT 1").description is None
    assert con.execute("SELECT b FROM t WHERE a = 7").fetchall() == [("e",)]


def test_rows_that_nobody_holds_are_dropped(con: Any) -> None:
    def kept() -> int:
        con.execute("SELECT 1").fetchall()
        engine = con._session.lake.engine
        return int(engine.do("SELECT count(*) FROM system.main.duckdb_tables() WHERE schema_name = 'saved'")[0][0])

    con.execute("BEGIN")
    for _ in range(3):
        con.execute("UPDATE t SET b = 'k' RETURNING a").fetchall()
    assert kept() == 3
    con.execute("COMMIT")
    assert kept() == 0
    left = con.execute("UPDATE t SET b = 'l' RETURNING a")
    assert kept() == 1
    left.close()
    assert kept() == 0


def test_the_command_line_prints_the_rows(con: Any) -> None:
    for mode, expected in (("csv", "a,b\n1,new\n"), ("json", '[{"a":1,"b":"new"}]\n')):
        out = io.StringIO()
        assert Runner(con, out, io.StringIO(), mode=mode).run("UPDATE t SET b = 'new' WHERE a = 1 RETURNING *") == 0
        assert out.getvalue().replace(" ", "") == expected


@pytest.mark.parametrize("seed", range(12))
def test_joins_at_random(con: Any, seed: int) -> None:
    """Generated joins over generated rows, one after the other on the same tables; each target row is matched at most once, or not written."""
    pick = random.Random(seed)
    duck = duckdb.connect()
    for one in (con, duck):
        one.execute("CREATE TABLE x (k INTEGER, v INTEGER); CREATE TABLE y (k INTEGER, w INTEGER)")
    for _ in range(8):
        values = ", ".join(f"({pick.choice([*range(12), 'NULL'])}, {pick.randrange(5)})" for _ in range(pick.randrange(1, 6)))
        low, high, add = pick.randrange(12), pick.randrange(12), pick.randrange(4)
        statement = pick.choice(
            [
                f"INSERT INTO x VALUES {values} RETURNING k, v",
                f"INSERT INTO y VALUES {values} RETURNING y",
                f"INSERT INTO x SELECT k, w + {add} FROM y WHERE k < {high} RETURNING *",
                f"UPDATE x SET v = q.w + x.v FROM (SELECT k, max(w) AS w FROM y GROUP BY k) q WHERE x.k = q.k AND x.k <> {low} RETURNING x.k, v",
                f"UPDATE x SET v = {add} FROM y, y AS y2 WHERE x.k = y.k AND y2.w < {add} RETURNING k",
                f"DELETE FROM x USING y WHERE x.k = y.k AND w = {add} RETURNING *",
                f"DELETE FROM y USING x LEFT JOIN y AS other ON x.k = other.k + {add} WHERE y.k = x.k AND other.k IS NULL RETURNING w, k",
                f"UPDATE y SET k = y.k + {add} FROM (SELECT DISTINCT k FROM x) q WHERE y.k = q.k RETURNING *",
            ]
        )
        mine, theirs = con.execute(statement).fetchall(), duck.execute(statement).fetchall()
        assert set(mine) == set(theirs) if "y2" in statement else multiset(mine) == multiset(theirs), statement
        for table in ("x", "y"):
            assert multiset(con.execute(f"FROM {table}").fetchall()) == multiset(duck.execute(f"FROM {table}").fetchall()), statement
