"""OPTIMIZE against everything else, both ways round and in chains, exact to the physical row.

The oracle runs the statements in the order of the snapshots on plain DuckDB tables. Afterwards the contents are equal as
multisets, every row that nobody changed has the row id that it had, and CHECK LAKE, which compares the row ids of each
compaction's output with those of its sources, has no finding.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from oracle import Oracle, multiset
from racing import flush, meeting

import lakelite
from lakelite import errors
from lakelite.transaction import row_ids

SETTINGS = "SET inline_rows = 4; SET target_file_rows = 40; SET rewrite_percent = 10"
OPTIMIZES = (
    "OPTIMIZE t",
    "OPTIMIZE t ZORDER BY (v, k)",
    "OPTIMIZE t ZORDER BY (k)",
    "OPTIMIZE t WHERE k < 30",
    "OPTIMIZE t WHERE k > 20 ZORDER BY (v)",
)
DUE = "INSERT INTO t VALUES (0, 0), (40, 40)"  # an inline fragment that every OPTIMIZE takes
FILLS = ("INSERT INTO t SELECT range + {a}, range % 7 FROM range({n})", "INSERT INTO t VALUES ({a}, {n}), ({a} + 1, 0)")
CHANGES = (
    "DELETE FROM t WHERE k = {a}",
    "DELETE FROM t WHERE k BETWEEN {a} AND {a} + {n}",
    "DELETE FROM t WHERE v = {n} % 7",
    "DELETE FROM t WHERE k % 2 = 0",
    "UPDATE t SET v = v + 100 WHERE k BETWEEN {a} AND {a} + 8",
    "UPDATE t SET v = v * 2 + 1 WHERE v % 3 = {n} % 3",
    "UPDATE t SET k = k + 1",
    "INSERT INTO t SELECT range + {a}, 50 FROM range({n})",
    "INSERT INTO t VALUES ({a}, {n})",
    "TRUNCATE t",
    "INSERT OVERWRITE t SELECT k, v + 1 FROM t WHERE k > {a}",
)


def texts(templates: tuple[str, ...], most: int, least: int = 0) -> some.SearchStrategy[list[str]]:
    one = some.builds(lambda t, a, n: t.format(a=a, n=n), some.sampled_from(templates), some.integers(0, 45), some.integers(1, 25))
    return some.lists(one, min_size=least, max_size=most)


@contextmanager
def lake_of(*setup: str) -> Iterator[tuple[Any, Any, Oracle]]:
    """Two connections to one lake, and the oracle, after `setup`."""
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lake"
        with lakelite.connect(path, autocommit=True) as con, lakelite.connect(path, autocommit=True) as other:
            for each in (con, other):
                each.execute(SETTINGS)
            for text in ("CREATE TABLE t (k INTEGER, v INTEGER)", *setup):
                con.execute(text)
                oracle.run(text)
            yield con, other, oracle
    oracle.close()


def ids(con: Any) -> dict[int, tuple[int, int]]:
    """The row at each row id."""
    lake = con._session.lake
    tx = lake.start(explicit=False, isolation="write serializable", read_only=True)
    try:
        state = tx.base.state(tx.work.namespace.find(None, "t"))
        scan = lake.engine.addressed(state, state.fragments.values())
        rows = lake.engine.do(f"SELECT {scan.source}, {scan.position}, {scan.row_id}, k, v FROM ({scan.sql})")
        found = {(scan.fragments[s].first_row_id + p if i is None else i): (k, v) for s, p, i, k, v in rows}
        assert len(found) == len(rows), "two rows have one id"
        assert set(row_ids.ids_of(tx.execution, state, {f: state.alive(f) for f in state.fragments})) == found.keys()
        return found
    finally:
        lake.unpin(tx)


def agree(con: Any, oracle: Oracle) -> None:
    assert multiset(con.execute("SELECT * FROM t").fetchall()) == oracle.content("t")
    ids(con)
    assert [f for f in con.execute("CHECK LAKE").fetchall() if f[0] == "error"] == []


def run(con: Any, oracle: Oracle, text: str) -> None:
    con.execute(text)
    if not text.startswith("OPTIMIZE"):
        oracle.run(text)


PHASES = set(Phase) - {Phase.shrink, Phase.explain}  # a failing run is reported at once: shrinking it takes many minutes
examples = settings(max_examples=12, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])


@examples
@given(texts(FILLS, 5, 2), texts(CHANGES[:6], 2), some.sampled_from(OPTIMIZES), texts((*CHANGES, *OPTIMIZES), 3, 1))
def test_forward(fill: list[str], before: list[str], optimize: str, winners: list[str]) -> None:
    """OPTIMIZE lands the first time, behind whatever landed while it was about to commit."""
    with lake_of(*fill, *before, DUE) as (con, other, oracle):
        kept = ids(con)
        with meeting(lambda: [run(other, oracle, text) for text in winners]):
            con.execute(optimize)
        agree(con, oracle)
        agree(other, oracle)
        if all(text.startswith(("DELETE", "INSERT INTO", "OPTIMIZE")) for text in winners):
            now = ids(con)
            assert all(now[i] == kept[i] for i in now.keys() & kept.keys())


@examples
@given(texts(FILLS, 5, 2), texts(CHANGES[:6], 2), texts((*OPTIMIZES, *OPTIMIZES, *CHANGES), 4, 1), texts(CHANGES[:9], 3, 1))
def test_reverse(fill: list[str], before: list[str], winners: list[str], mine: list[str]) -> None:
    """A transaction that was open while others optimized, deleted and optimized again: the oracle runs it last."""
    with lake_of(*fill, *before) as (con, other, oracle):
        con.execute("BEGIN")
        for text in mine:
            con.execute(text)
        for text in winners:
            run(other, oracle, text)
        con.execute("COMMIT")
        for text in mine:
            oracle.run(text)
        agree(con, oracle)
        agree(other, oracle)


@examples
@given(texts(FILLS, 6, 2), texts(CHANGES[:4], 2), some.sampled_from(OPTIMIZES), some.lists(some.sampled_from(OPTIMIZES), min_size=1, max_size=2))
def test_against_each_other(fill: list[str], before: list[str], mine: str, theirs: list[str]) -> None:
    """Bins that both took are moved once; row ids and rows stay what they were."""
    with lake_of(*fill, *before, DUE) as (con, other, oracle):
        kept = ids(con)
        with meeting(lambda: [other.execute(text) for text in theirs]):
            con.execute(mine)
        agree(con, oracle)
        assert ids(con) == ids(other) == kept


@pytest.mark.parametrize("optimize", OPTIMIZES[:2])
def test_a_source_that_a_winner_emptied(optimize: str) -> None:
    with lake_of(FILLS[0].format(a=0, n=10), FILLS[0].format(a=20, n=10)) as (con, other, oracle):
        with meeting(lambda: run(other, oracle, "DELETE FROM t WHERE k < 10")):
            assert con.execute(optimize).fetchone()[0] >= 1
        agree(con, oracle)


@pytest.mark.parametrize("winner", ["DELETE FROM t", "TRUNCATE t", "INSERT OVERWRITE t SELECT 1, 1"])
def test_nothing_is_left_of_a_bin(winner: str) -> None:
    with lake_of(FILLS[0].format(a=0, n=10), FILLS[0].format(a=20, n=10)) as (con, other, oracle):
        with meeting(lambda: run(other, oracle, winner)):
            done = con.execute("OPTIMIZE t")
        assert done.fetchone() == (0, 1, 0, 0, 0, 0, 0, 0)
        assert done.messages
        agree(con, oracle)


def test_restore_lands_meanwhile() -> None:
    with lake_of(FILLS[0].format(a=0, n=10), "DELETE FROM t WHERE k < 4", FILLS[0].format(a=20, n=10)) as (con, other, oracle):
        with meeting(lambda: other.execute("RESTORE TABLE t TO VERSION AS OF 2")):
            con.execute("OPTIMIZE t")
        oracle.run("DELETE FROM t")
        oracle.run(FILLS[0].format(a=0, n=10))
        agree(con, oracle)


def test_an_open_transaction_behind_a_dropped_table() -> None:
    with lake_of(FILLS[0].format(a=0, n=10), FILLS[0].format(a=20, n=10)) as (con, other, _):
        with meeting(lambda: other.execute("DROP TABLE t")), pytest.raises(errors.ProgrammingError, match="was dropped"):
            con.execute("OPTIMIZE t")
        assert con.execute("CHECK LAKE").fetchall() == []


@pytest.mark.parametrize("first", OPTIMIZES[:2])
@pytest.mark.parametrize("second", OPTIMIZES[:2])
def test_chain_while_a_transaction_is_open(first: str, second: str) -> None:
    fill = [FILLS[0].format(a=a, n=8) for a in (0, 10, 20)]
    with lake_of(*fill) as (con, other, oracle):
        con.execute("BEGIN; DELETE FROM t WHERE k % 3 = 0; UPDATE t SET v = v + 1 WHERE k % 3 = 1")
        for text in (first, "DELETE FROM t WHERE k IN (1, 3, 21)", second, "DELETE FROM t WHERE k = 12", first):
            run(other, oracle, text)
        con.execute("COMMIT")
        for text in ("DELETE FROM t WHERE k % 3 = 0", "UPDATE t SET v = v + 1 WHERE k % 3 = 1"):
            oracle.run(text)
        agree(con, oracle)


def test_a_flush_and_an_optimize_of_disjoint_bins() -> None:
    fill = [FILLS[0].format(a=0, n=19), FILLS[0].format(a=20, n=21), "INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 2)"]
    with lake_of(*fill) as (con, other, oracle):
        kept = ids(con)
        with meeting(lambda: flush(other, "t")):
            con.execute("OPTIMIZE t ZORDER BY (k)")
        agree(con, oracle)
        assert ids(con) == kept
