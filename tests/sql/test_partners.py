"""UPDATE … FROM and DELETE … USING read no more of their target than what may match: with the results that plain DuckDB gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest
from comparing import both
from exchanging import library
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from oracle import multiset
from racing import meeting

import lakelite
from lakelite.language import statements as st
from lakelite.language.parse import parse_script
from lakelite.storage.engine import Engine
from lakelite.transaction import merge_target

KEYED = "CREATE OR REPLACE TABLE t (k INTEGER, l VARCHAR, v INTEGER, PRIMARY KEY (k, l))"
PLAIN = "CREATE OR REPLACE TABLE t (k INTEGER, l VARCHAR, v INTEGER)"
FILLED = [f"INSERT INTO t SELECT range + {first}, 'l' || (range % 3), range FROM range(10)" for first in (0, 100, 200)]
OTHERS = (
    "CREATE OR REPLACE TABLE s (k INTEGER, l VARCHAR, big BIGINT, d DOUBLE, n INTEGER, m INTEGER)",
    "CREATE OR REPLACE TABLE u (k INTEGER, x INTEGER, m INTEGER)",
    "INSERT INTO u VALUES (1, 5, 5), (2, 105, 105), (3, NULL, NULL), (NULL, 205, 7)",
)
SOURCES = (
    "s",
    "(FROM s) s",
    "(SELECT k, l, big, d, n FROM s WHERE k > 4) AS s",
    "s, u",
    "u CROSS JOIN s",
    "s JOIN u ON s.n = u.k",
    "u FULL JOIN s ON u.x = s.k",
    "s LEFT JOIN u USING (k)",
    "s LEFT JOIN u USING (m)",
    "(s SEMI JOIN u ON s.n = u.k)",
    "s, LATERAL (SELECT s.n + 1 AS m) u(x)",
    "s POSITIONAL JOIN u",
)
CONDITIONS = (
    "t.k = s.k",
    "s.k = t.k AND t.l = s.l",
    "(t.k) = s.k AND t.l = s.l AND t.v < s.n + 100",
    "t.k = s.k OR t.v = s.n",
    "t.k = s.big",
    "t.k = s.k + 1",
    "NOT (t.k = s.k)",
    "t.k IS NOT DISTINCT FROM s.k",
    "t.k = s.d",
    "t.l = s.l COLLATE NOCASE",
    "t.k BETWEEN 100 AND 150 AND t.k = s.k",
    "t.k = x",
    "t.k = m",
    "v = x AND t.k = s.k",
)


@pytest.fixture
def all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_target, "FEW_ROWS", 0)
    monkeypatch.setattr(merge_target, "_bytes", lambda fragments: 0)


@pytest.fixture
def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Opens connections to one new lake, in autocommit mode, whose changes all lie in files that have key filters."""
    monkeypatch.setattr("lakelite.transaction.key_lookup.FILTERED_ROWS", 1)
    with ExitStack() as stack:

        def open_one(**options: Any) -> Any:
            con = stack.enter_context(lakelite.connect(tmp_path / "lake", **{"autocommit": True, **options}))
            con.execute("SET inline_rows = 0; SET upkeep = off")
            return con

        yield open_one


@pytest.fixture
def con(connect: Callable[..., Any], all_sizes: None) -> Any:
    return connect()


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=some.sampled_from([KEYED, PLAIN]),
    sources=some.sampled_from(SOURCES),
    where=some.sampled_from(CONDITIONS),
    change=some.sampled_from(["UPDATE t SET v = 1 FROM", "DELETE FROM t USING"]),
    keys=some.lists(some.none() | some.sampled_from([0, 3, 5, 9, 10, 50, 99, 100, 105, 203, 210, -1]), max_size=6),
    large=some.sampled_from([1, 10**9]),
)
@example(KEYED, "s", "t.k = s.k", "UPDATE t SET v = 1 FROM", [50], 1)
@example(PLAIN, "u FULL JOIN s ON u.x = s.k", "t.k = x", "DELETE FROM t USING", [5], 1)
@example(PLAIN, "s LEFT JOIN u USING (m)", "t.k = m", "DELETE FROM t USING", [5, 105, 203], 1)
def test_as_duckdb_does(con: Any, table: str, sources: str, where: str, change: str, keys: list[int | None], large: int) -> None:
    filled = f"INSERT INTO s SELECT k, 'l' || (k % 3), k::BIGINT * {large}, k, k % 5, k FROM (SELECT unnest({keys}::INTEGER[]) AS k)"
    with duckdb.connect() as duck:
        for sql in (table, *FILLED, "DELETE FROM t WHERE k % 10 = 6", *OTHERS, filled.replace("None", "NULL")):
            for each in (duck, con):
                each.execute(sql)
        both(con, duck, f"{change} {sources} WHERE {where}")


# What is read.


@pytest.fixture
def lake(connect: Callable[..., Any], all_sizes: None) -> Any:
    """t has three files, with k from 0, 100 and 200 on, and one that reaches over all, whose l is x."""
    con = connect()
    for sql in (KEYED, *FILLED):
        con.execute(sql)
    con.execute("INSERT INTO t SELECT range * 10, 'x', 0 FROM range(30); CREATE TABLE s (k INTEGER, l VARCHAR); INSERT INTO s VALUES (5, 'l2')")
    con.execute("CREATE VIEW sometimes AS FROM s USING SAMPLE 50%; CREATE VIEW always AS FROM s; CREATE TABLE u (k BIGINT); INSERT INTO u VALUES (5)")
    return con


@pytest.fixture
def files(lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], int]]:
    """How many of the files of t a statement reads."""
    read: list[int] = []
    addressed = Engine.addressed
    with monkeypatch.context() as patch:
        patch.setattr(
            Engine, "addressed", lambda self, state, chosen, **more: read.append(len(kept := list(chosen))) or addressed(self, state, kept, **more)
        )

        def read_by(sql: str) -> int:
            read.clear()
            lake.execute("BEGIN")
            lake.execute(sql)
            lake.execute("ROLLBACK")
            return max(read)

        yield read_by


READ = (
    ("s", "t.k = s.k", 2),  # the first file, and the one that reaches over all
    ("s", "t.k = s.k AND t.l = s.l", 1),  # which does not hold this key
    ("s AS a", "t.k = a.k AND t.l = a.l", 1),
    ("main.s", "t.k = s.k AND t.l = s.l", 1),
    ("(SELECT k AS key, l AS name FROM s)", "key = k AND l = name", 1),
    ("(VALUES (105, 'l2')) AS q(a, b)", "a = k AND l = b", 1),
    ("always", "t.k = always.k", 2),
    ("s JOIN u USING (k)", "t.k = s.k AND t.l = s.l", 1),
    ("u, s", "t.k = u.k AND t.l = s.l", 1),
    ("s, range(3) AS r(i)", "t.k = s.k AND t.l = s.l", 1),
    ("s AT (VERSION => 7)", "t.k = s.k AND t.l = s.l", 1),
    ("s", "t.k >= s.k", 4),
    ("s", "t.k = s.k OR t.v = 1", 4),
    ("sometimes", "t.k = sometimes.k", 4),
    ("(FROM s LIMIT 1) AS s", "t.k = s.k", 4),
    ("(SELECT 5 + (random() * 0)::INTEGER AS k) AS s", "t.k = s.k", 4),
    ("s, LATERAL (SELECT s.k + 1 AS n) AS r", "t.k = s.k", 4),  # the second means nothing without the first
    ("s, (SELECT {'k': 5} AS t) AS r", "t.k = s.k", 4),  # t.k may be a field
    ("s JOIN u USING (k)", "t.v = k", 4),
)


def test_files_that_can_hold_no_partner_are_not_read(files: Callable[[str], int]) -> None:
    for sources, where, count in READ:
        assert files(f"UPDATE t SET v = -1 FROM {sources} WHERE {where}") == count, (sources, where)
        if "LATERAL" not in sources:  # which DuckDB refuses in DELETE
            assert files(f"DELETE FROM t USING {sources} WHERE {where}") == count, (sources, where)


def test_what_may_give_other_rows_is_read_once(lake: Any, files: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = library("polars").DataFrame({"k": [5]})
    monkeypatch.setitem(globals(), "whole_rows", whole)
    monkeypatch.setitem(globals(), "lazy_rows", whole.lazy())
    assert files("DELETE FROM t USING lazy_rows AS s WHERE t.k = s.k") == 4
    assert files("DELETE FROM t USING whole_rows AS s WHERE t.k = s.k") == 2
    lake.execute("CREATE TEMP VIEW often AS SELECT 5 AS k")
    assert files("DELETE FROM t USING often WHERE t.k = often.k") == 2
    lake.execute("CREATE OR REPLACE TEMP VIEW often AS SELECT 5 + (random() * 0)::INTEGER AS k")
    assert files("DELETE FROM t USING often WHERE t.k = often.k") == 4


def test_sources_whose_second_reading_is_another(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.execute("CREATE VIEW one AS SELECT first(k) AS k FROM s; CREATE TABLE many AS SELECT unnest([5, 105]) AS k")
    lake.execute("CREATE OR REPLACE VIEW always AS FROM many")
    version = lake.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0]
    sources = ("(SELECT any_value(k) AS k FROM t GROUP BY l HAVING count(*) > 10)", "(SELECT DISTINCT ON (l) k FROM s)", "one", f"one AT (VERSION => {version})",
               "(SELECT k FROM s QUALIFY row_number() OVER (PARTITION BY l) = 1)", "(SELECT unnest(list(k)) AS k FROM s)")  # fmt: skip
    with monkeypatch.context() as patch:  # whatever is read apart gives nothing, where the statement finds rows
        patch.setattr(merge_target, "_narrowed_by_query", lambda *_: [])
        for source in sources:
            lake.execute("BEGIN")
            assert lake.execute(f"UPDATE t SET v = -1 FROM {source} AS z WHERE t.k = z.k").rowcount > 0, source
            lake.execute("ROLLBACK")
        assert lake.execute("DELETE FROM t USING always AS z WHERE t.k = z.k").rowcount == 0  # which is read twice


def test_a_parameter_a_cte_and_what_the_caller_has(lake: Any) -> None:
    rows = duckdb.sql("SELECT 5 AS k, 'l2' AS l").to_arrow_table()
    assert rows is not None
    assert lake.execute("UPDATE t SET v = 100 FROM rows WHERE t.k = rows.k AND t.l = rows.l").rowcount == 1
    reader = duckdb.sql("SELECT 5 AS k, 'l2' AS l").to_arrow_reader()
    assert reader is not None
    assert lake.execute("UPDATE t SET v = v + 1 FROM reader WHERE t.k = reader.k AND t.l = reader.l").rowcount == 1
    assert lake.execute("WITH c AS (SELECT ?::INTEGER AS k) UPDATE t SET v = v + ? FROM c WHERE t.k = c.k AND t.l = ?", (5, 10, "l2")).rowcount == 1
    lake.execute("CREATE TEMP TABLE mine AS SELECT 105 AS k")
    assert lake.execute("DELETE FROM t USING mine WHERE mine.k = t.k RETURNING k, l").fetchall() == [(105, "l2")]
    assert lake.execute("SELECT v FROM t WHERE k = 5").fetchall() == [(111,)]


def test_a_source_with_a_collation(con: Any) -> None:
    for sql in (PLAIN, "INSERT INTO t VALUES (1, 'a', 0)", "INSERT INTO t VALUES (2, 'b', 0)"):
        con.execute(sql)
    assert con.execute("UPDATE t SET v = 5 FROM (SELECT 'B' COLLATE NOCASE AS l) AS s WHERE t.l = s.l").rowcount == 1


def test_small_tables_and_large_sources_are_read_as_they_are(files: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_target, "FEW_ROWS", 60)
    assert files("DELETE FROM t USING s WHERE t.k = s.k") == 2
    monkeypatch.setattr(merge_target, "FEW_ROWS", 61)
    assert files("DELETE FROM t USING s WHERE t.k = s.k") == 4
    monkeypatch.setattr(merge_target, "FEW_ROWS", 0)
    monkeypatch.setattr(merge_target, "_bytes", lambda fragments: -len(list(fragments)))
    assert files("DELETE FROM t USING s WHERE t.k = s.k") == 4


# Beside winners: what was not read when the statement ran first may be what matters then.

WINNERS = {
    "append": ("INSERT INTO t VALUES (50, 'l2', 1)", [(5, "l2", 10), (50, "l2", 6)]),
    "delete": ("DELETE FROM t WHERE k = 5", []),
    "update": ("UPDATE t SET k = 50, l = 'l2' WHERE k = 203", [(5, "l2", 10), (50, "l2", 8)]),
    "the source": ("UPDATE s SET k = 105 WHERE k = 5", [(5, "l2", 5), (105, "l2", 10)]),
    "overwrite": ("INSERT OVERWRITE t VALUES (50, 'l2', 2)", [(50, "l2", 7)]),
    "OPTIMIZE": ("OPTIMIZE t", [(5, "l2", 10)]),
    "another type": ("ALTER TABLE t ALTER v TYPE BIGINT", [(5, "l2", 10)]),
    "another name": ("ALTER TABLE t RENAME l TO other", [(5, "l2", 10)]),
}


@pytest.mark.parametrize("table", [KEYED, PLAIN])
def test_winners_that_change_what_was_not_read(connect: Callable[..., Any], all_sizes: None, table: str) -> None:
    m, w = connect(), connect()
    for name, (sql, expected) in WINNERS.items():
        for each in (table, *FILLED, "CREATE OR REPLACE TABLE s (k INTEGER)", "INSERT INTO s VALUES (5), (50)"):
            m.execute(each)
        with meeting(lambda sql=sql: w.execute(sql)):  # type: ignore[misc]
            m.execute("UPDATE t SET v = v + 5 FROM s WHERE t.k = s.k")
        assert m.execute("SELECT * FROM t WHERE k IN (5, 50) OR v = 10 ORDER BY k").fetchall() == expected, name


@pytest.mark.parametrize("level", ["serializable", "write serializable", "snapshot"])
def test_an_explicit_transaction_beside_a_winner(connect: Callable[..., Any], all_sizes: None, level: str) -> None:
    m, w = connect(isolation=level), connect()
    for sql in (PLAIN, *FILLED, "CREATE TABLE s AS SELECT unnest([5, 50]) AS k"):
        m.execute(sql)
    m.execute("BEGIN")
    m.execute("DELETE FROM t USING s WHERE t.k = s.k")
    w.execute("INSERT INTO t VALUES (50, 'new', 0)")
    try:
        m.execute("COMMIT")
    except lakelite.TransactionConflict:
        assert level == "serializable"  # the number of rows that was told would be another one
        return
    left = m.execute("SELECT k FROM t WHERE k IN (5, 50)").fetchall()
    assert multiset(left) == multiset([(50,)] if level == "snapshot" else [])


# Which sources there are.


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ("s", [("s", "s")]),
        ("z.s AS a (x, y), (SELECT 1, 2) q", [("a", "z.s AS a (x, y)"), ("q", "(SELECT 1, 2) q")]),
        ("a JOIN b ON a.k = b.k, c", [("a", "a"), ("b", "b"), ("c", "c")]),
        ("(a JOIN (b) USING (k)) LEFT JOIN c ON true", [("a", "a"), ("b", "b"), ("c", "c")]),
        ("(a CROSS JOIN b) AS j", [("j", "(a CROSS JOIN b) AS j")]),
        ("a ANTI JOIN b USING (k)", [("a", "a")]),
        ("a TABLESAMPLE 10%, 'x.csv'", [("a", "a TABLESAMPLE 10%"), ("x", "'x.csv'")]),
        ("a PIVOT (sum(v) FOR k IN (1))", []),
        ("a, ", []),
    ],
)
def test_the_list_of_sources(sources: str, expected: list[tuple[str, str]]) -> None:
    (statement,) = parse_script(f"DELETE FROM t USING {sources} WHERE true")
    operation = statement.operation
    assert isinstance(operation, st.Delete)
    assert operation.sources is not None
    assert [(item.name, "".join(map(str, item.sql.parts))) for item in operation.sources.items] == expected
