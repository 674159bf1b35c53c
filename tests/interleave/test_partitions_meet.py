"""Partitioned tables, and changes of how a table is kept, against winners of every kind: the same rows as one after the other, each in its partition.

The oracle is plain DuckDB, which knows no partitions: M after W. CHECK LAKE compares every compaction's output with its sources.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from oracle import Oracle
from racing import flush, meeting

import lakelite
from lakelite import errors

# What the oracle runs is the text itself, or nothing where it changes no row.
CHANGES = {
    "insert few": "INSERT INTO t VALUES (500, 0, 1), (501, 7, 1)",
    "insert many": "INSERT INTO t SELECT range + 600, range % 4, 5 FROM range(20)",
    "delete a partition": "DELETE FROM t WHERE p = 1",
    "delete across": "DELETE FROM t WHERE v % 3 = 0",
    "update in place": "UPDATE t SET v = v + 1 WHERE p <> 2",
    "move": "UPDATE t SET p = p + 1 WHERE v < 12",
    "move a few": "UPDATE t SET p = 9 WHERE k = 4",
    "merge": "MERGE INTO t USING (SELECT range AS k FROM range(15, 45)) s USING (k) WHEN MATCHED THEN UPDATE SET p = 3 WHEN NOT MATCHED THEN INSERT VALUES (k, 0, 0)",
    "overwrite": "INSERT OVERWRITE t SELECT range, range % 3, 8 FROM range(25)",
    "truncate": "TRUNCATE t",
}
NO_CHANGES = {
    "optimize": "OPTIMIZE t",
    "zorder": "OPTIMIZE t ZORDER BY (v, k)",
    "flush": None,
    "option": "ALTER TABLE t SET (target_file_rows = 15, compression = 'zstd')",
    "partition": "ALTER TABLE t SET PARTITIONED BY (bucket(3, k), p)",
    "unpartition": "ALTER TABLE t RESET PARTITIONED BY",
    "add column": "ALTER TABLE t ADD extra INTEGER",
    "rename column": "ALTER TABLE t RENAME p TO part",
}
STATES = {
    "files": (),
    "deleted": ("DELETE FROM t WHERE k % 5 = 2",),
    "inline": ("INSERT INTO t VALUES (301, 1, 3), (302, 2, 13)", "INSERT INTO t VALUES (303, 0, 6)", "DELETE FROM t WHERE k = 302 OR k = 7"),
}
SETUP = (
    "SET inline_rows = 4; SET upkeep = off; SET rewrite_percent = 1; SET overwrite_append = keep",
    "CREATE TABLE t (k INTEGER, p INTEGER, v INTEGER) PARTITIONED BY (p)",
    "INSERT INTO t SELECT range, range % 3, range FROM range(30)",
    "INSERT INTO t SELECT range + 30, range % 2, range FROM range(10)",
)
KINDS = {**CHANGES, **NO_CHANGES}
NAMED_ANEW = {("add column", "add column"), ("rename column", "rename column"), ("partition", "rename column")}  # errors, as anywhere
EVERY = [pair for pair in itertools.product([k for k in KINDS if k != "flush"], KINDS, STATES) if pair[:2] not in NAMED_ANEW]
PAIRS = EVERY if os.environ.get("LAKELITE_ALL_PAIRS") else EVERY[::11]  # each kind on each side, in each state


def rows(found: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(row[:3] for row in found)


def run(con: Any, kind: str) -> None:
    text = KINDS[kind]
    if text is None:
        flush(con, "t")
    else:
        con.execute(text)


def in_place(con: Any) -> None:
    """CHECK LAKE finds nothing, and every file holds the rows of its partition only."""
    assert [f for f in con.execute("CHECK LAKE").fetchall() if f[0] != "info"] == []
    lake = con._session.lake
    state = lake.view.state(lake.view.namespace.find(None, "t"))
    (column,) = [c.name for c in state.table.columns if c.name in ("p", "part")]
    for fragment in state.fragments.values():
        if fragment.is_in_place(state.table.partitioning) and state.table.partitioning:
            scan = lake.engine.addressed(state, [fragment])
            (found,) = lake.engine.do(
                f"SELECT list(DISTINCT {column}::VARCHAR), list(DISTINCT (md5_number_lower(k::VARCHAR) % 3)::VARCHAR) FROM ({scan.sql})"
            )
            held = [(found[1] if key.buckets else found[0]) or [None] for key, _ in fragment.partition]
            assert held == [[value] for _, value in fragment.partition]


@pytest.mark.parametrize(("mine", "theirs", "state"), PAIRS, ids=[f"{m}-{w}-{s}" for m, w, s in PAIRS])
def test_one_after_the_other(tmp_path: Path, mine: str, theirs: str, state: str) -> None:
    oracle = Oracle()
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        for each in (con, other):
            each.execute(SETUP[0])
        for text in (*SETUP[1:], *STATES[state]):
            con.execute(text)
            oracle.run(text.partition(" PARTITIONED")[0])
        other.execute("SELECT count(*) FROM t").fetchall()
        with meeting(lambda: run(other, theirs)):
            run(con, mine)
        for kind in (theirs, mine):
            if kind in CHANGES:
                oracle.run(CHANGES[kind])
        assert rows(con.execute("SELECT * FROM t").fetchall()) == rows(oracle.duck.execute("SELECT * FROM t").fetchall())
        in_place(con)
        for _ in range(2):
            con.execute("OPTIMIZE t")
        assert rows(con.execute("SELECT * FROM t").fetchall()) == rows(oracle.duck.execute("SELECT * FROM t").fetchall())
        in_place(con)
    oracle.close()


@pytest.mark.parametrize("mine", ["insert many", "move", "merge", "option", "partition"])
def test_the_table_was_dropped(tmp_path: Path, mine: str) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        for text in SETUP:
            con.execute(text)
        with meeting(lambda: other.execute("DROP TABLE t")), pytest.raises(errors.ProgrammingError, match=r"t.*(dropped|exist)"):
            run(con, mine)
        assert con.execute("CHECK LAKE").fetchall() == []
        con.execute(
            "BEGIN; CREATE TABLE t (k INTEGER, p INTEGER, v INTEGER) PARTITIONED BY (p); INSERT INTO t SELECT range, range % 3, 0 FROM range(30); COMMIT"
        )
        con.execute("BEGIN")
        run(con, mine)
        other.execute("DROP TABLE t")
        with pytest.raises(errors.TransactionConflict):
            con.commit()
        assert con.execute("CHECK LAKE").fetchall() == []


def test_what_divides_the_files_may_not_go_meanwhile(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        con.execute("CREATE TABLE t (k INTEGER, p INTEGER)")
        with meeting(lambda: other.execute("ALTER TABLE t DROP p")), pytest.raises(errors.ProgrammingError, match='no column "p"'):
            con.execute("ALTER TABLE t SET PARTITIONED BY (p)")
        with meeting(lambda: other.execute("ALTER TABLE t SET PARTITIONED BY (k)")), pytest.raises(errors.ProgrammingError, match="partitioned by k"):
            con.execute("ALTER TABLE t ALTER k TYPE BIGINT")
        with meeting(lambda: other.execute("ALTER TABLE t SET (upkeep = off)")):
            con.execute("ALTER TABLE t SET (inline_rows = 7)")
        assert "PARTITIONED BY (k) WITH (inline_rows = 7, upkeep = 'off')" in con.execute("SHOW CREATE TABLE t").fetchone()[0]


STATEMENTS = (
    "INSERT INTO t SELECT range + {a}, range % {n}, {a} FROM range({a})",
    "INSERT INTO t VALUES ({a}, {n}, 0), ({a} + 1, NULL, 1)",
    "DELETE FROM t WHERE p = {n}",
    "DELETE FROM t WHERE k BETWEEN {a} AND {a} + 8",
    "DELETE FROM t WHERE p IS NULL AND k > {a}",
    "UPDATE t SET v = v + 1 WHERE p IN ({n}, 1)",
    "UPDATE t SET p = {n} WHERE k % 4 = 1",
    "UPDATE t SET p = NULL, v = 0 WHERE k = {a}",
    "INSERT INTO t SELECT k + 1, p, v FROM t WHERE p = {n}",
    "INSERT OVERWRITE t SELECT k, p + 1, v FROM t WHERE k > {a}",
)
KEPT = (
    "OPTIMIZE t", "OPTIMIZE t ZORDER BY (v)", "OPTIMIZE t WHERE p = {n}", "ALTER TABLE t SET PARTITIONED BY (p)", "ALTER TABLE t SET PARTITIONED BY (bucket({n}, k))",
    "ALTER TABLE t RESET PARTITIONED BY", "ALTER TABLE t SET (inline_rows = {n})", "ALTER TABLE t SET (target_file_rows = {a})",
)  # fmt: skip
QUERIES = ("p = {n}", "p IN ({n}, 3)", "k = {a}", "k IN ({a}, {n})", "p IS NULL", "p > {n} AND k < {a}", "p = {n} AND k = {a}", "v = {n}")


def steps(texts: tuple[str, ...]) -> some.SearchStrategy[str]:
    return some.builds(lambda t, a, n: t.format(a=a, n=n), some.sampled_from(texts), some.integers(1, 30), some.integers(1, 4))


@given(some.lists(some.tuples(steps(STATEMENTS + KEPT), steps(STATEMENTS + KEPT), steps(QUERIES)), min_size=2, max_size=8))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_statements_meet(tmp_path_factory: Any, rounds: list[tuple[str, str, str]]) -> None:
    """Each round the second statement lands while the first is about to; then a query is asked of both."""
    path, oracle = tmp_path_factory.mktemp("lake") / "lake", Oracle()
    with lakelite.connect(path, autocommit=True) as con, lakelite.connect(path, autocommit=True) as other:
        for each in (con, other):
            each.execute(SETUP[0])
        for text in SETUP[1:]:
            con.execute(text)
            oracle.run(text.partition(" PARTITIONED")[0])
        for mine, theirs, condition in rounds:
            ran: list[str] = []

            def win(text: str = theirs, ran: list[str] = ran) -> None:
                other.execute(text)
                ran.append(text)

            try:
                with meeting(win):
                    con.execute(mine)
            except AssertionError:
                assert not ran  # there was nothing to commit
                win()
            for text in (theirs, mine):
                if text.startswith(("INSERT", "DELETE", "UPDATE")):
                    oracle.run(text)
            for query in ("SELECT * FROM t", f"SELECT * FROM t WHERE {condition}", f"SELECT x.* FROM t AS x, (SELECT 1) AS y WHERE x.{condition}"):
                assert rows(con.execute(query).fetchall()) == rows(oracle.duck.execute(query).fetchall()), (mine, theirs, query)
        assert [f for f in con.execute("CHECK LAKE").fetchall() if f[0] != "info"] == []
    oracle.close()
