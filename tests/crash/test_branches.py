"""kill -9 at steps of a MERGE BRANCH: it is there whole or not at all, and no file of any branch is taken for an orphan."""

from __future__ import annotations

from pathlib import Path

from crashing import Server, catalogued_files, data_files, opened, rows

import lakelite
from lakelite.steps import STEPS, Step

KILLED = -9
KILLED_AT: tuple[Step, ...] = ("scan", "sync_files", "resolve", "publish", "committed")


def test_a_merge_that_is_killed_on_the_way(tmp_path: Path, server: Server) -> None:
    lake = tmp_path / "lake"
    with lakelite.connect(lake, autocommit=True) as con:
        con.executescript("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t SELECT r, 0 FROM range(2000) q(r); CREATE BRANCH dev")
    expected = dict.fromkeys(range(2000), 0)
    for n, step in enumerate(KILLED_AT, start=1):
        change = (
            f"USE BRANCH dev; UPDATE t SET v = {n} WHERE k % 5 = 0; INSERT INTO t SELECT {3000 * n} + r, 0 FROM range(1500) q(r); USE BRANCH main"
        )
        winner = f"INSERT INTO t VALUES (-{n}, {n})" if step == "resolve" else None
        before = ["SET inline_rows = 2", *change.split("; "), f"CREATE TABLE only_{n} AS SELECT {n} AS a"]
        job = server.start("kill", lake=str(lake), before=before, statements=["MERGE BRANCH dev"], step=step, nth=1, winner=winner, lands="scan")
        events, status = job.finish()
        assert status == KILLED, (step, events)
        merged = {k: n if k % 5 == 0 and (k < 2000 or k >= 3000) else v for k, v in expected.items()} | {3000 * n + r: 0 for r in range(1500)}
        if winner is not None:
            merged[-n] = expected[-n] = n
        with opened(lake) as con:
            con.execute("VACUUM RETAIN 0 HOURS")
            assert data_files(lake) == catalogued_files(lake), step
            found = dict(rows(con, "FROM t"))
            assert found == (merged if STEPS.index(step) >= STEPS.index("committed") else expected), step
            con.execute("MERGE BRANCH dev")  # it is not there yet, or nothing is left to do
            assert dict(rows(con, "FROM t")) == merged, step
            assert rows(con, "SELECT count(*) FROM t AT (BRANCH => 'dev')") == [(len(merged) - sum(k < 0 for k in merged),)]
            assert rows(con, "CHECK LAKE") == []
        expected = merged
