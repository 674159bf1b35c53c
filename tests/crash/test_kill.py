"""kill -9 at every named step of a commit, and at random times: what was acknowledged is there, the rest whole or not at all."""

from __future__ import annotations

import random
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from crashing import Server, catalogued_files, contents, data_files, opened, rows

from lakelite.steps import STEPS

KILLED = -9
RANDOM_KILLS = 30
LONGEST_WAIT_S = 0.02
STATEMENTS = 8  # of each writer
ROWS = 240

# One round per step, numbered {n}.
SETUP = [
    "CREATE TABLE acknowledged (n INTEGER)",
    "CREATE TABLE t (k INTEGER, v VARCHAR)",
    f"INSERT INTO t SELECT range::INTEGER, 'v' || range FROM range({ROWS})",
    "CREATE TABLE u (k INTEGER)",
    "INSERT INTO u SELECT range::INTEGER FROM range(60)",
    "CREATE TABLE d (a INTEGER)",
]
APPEND = "INSERT INTO t VALUES (-{n}, 'winner')"


@dataclass(frozen=True)
class Kind:
    """A kind of commit. `before`: run and acknowledged first; `winner`: what lands meanwhile in the rounds that meet one."""

    statements: tuple[str, ...]
    before: tuple[str, ...] = ("SET inline_rows = 2",)
    winner: str = APPEND


KINDS = {
    "inline insert": Kind(("INSERT INTO t VALUES (1000 + {n}, 'inline'), (2000 + {n}, NULL)",), before=()),
    "parquet insert": Kind(("INSERT INTO t SELECT 1000 * {n} + range, 'file' FROM range(30)",)),
    "delete": Kind(("DELETE FROM t WHERE k % 20 = {n}",), winner="DELETE FROM t WHERE k % 20 = {n} AND k > 100"),
    "update": Kind(("UPDATE t SET v = v || '!' WHERE k % 20 = {n}",)),
    "create table as": Kind(("CREATE TABLE c{n} AS SELECT k, v FROM t WHERE k % 20 = {n}",)),
    "transaction": Kind(
        ("BEGIN", "INSERT INTO t SELECT 1000 + {n}, 'tx' FROM range(5)", "DELETE FROM u WHERE k % 20 = {n}", "CREATE TABLE x{n} AS FROM u", "COMMIT"),
    ),
    "drop": Kind(
        ("DROP TABLE d",),
        before=("CREATE TABLE IF NOT EXISTS d (a INTEGER)", "INSERT INTO d VALUES ({n})"),
        winner="CREATE TABLE w{n} (a INTEGER)",
    ),
}  # fmt: skip
REPLAYED = Kind(("UPDATE t SET v = v || '!' WHERE k % 20 = {n} AND k <= (SELECT max(k) FROM t)",))


def check_after_crash(lake: Path, oracle: duckdb.DuckDBPyConnection) -> None:
    with opened(lake) as con:
        assert contents(con) == contents(oracle)
        con.execute("VACUUM")
        assert data_files(lake) == catalogued_files(lake)
        for target in (con, oracle):
            target.execute("INSERT INTO acknowledged VALUES (-1)")
        assert rows(con, "FROM acknowledged ORDER BY n") == rows(oracle, "FROM acknowledged ORDER BY n")


def landed(step: str) -> bool:
    return STEPS.index(step) >= STEPS.index("committed")  # type: ignore[arg-type]


def fresh(lake: Path) -> duckdb.DuckDBPyConnection:
    """A new lake, and a DuckDB database that runs the same statements."""
    oracle = duckdb.connect()
    with opened(lake) as con:
        con.execute("SET inline_rows = 2")
        for sql in SETUP:
            con.execute(sql)
            oracle.execute(sql)
    return oracle


def run_killed(
    server: Server, lake: Path, kind: Kind, oracle: Any, n: int, step: str, *, nth: int = 1, winner: str | None = None, lands: str = "scan"
) -> list[str]:
    """One round: the statements of `kind`, killed at `step`. What was acknowledged goes to the oracle too; returns the statements that were not."""
    before = [sql.format(n=n) for sql in (*kind.before, "INSERT INTO acknowledged VALUES ({n})")]
    statements = [sql.format(n=n) for sql in kind.statements]
    events, status = server.start(
        "kill", lake=str(lake), before=before, statements=statements, step=step, nth=nth, winner=winner, lands=lands
    ).finish()
    assert status == KILLED, (step, nth, events)
    for event in events:
        if event["sql"] in (*before, winner) and not event["sql"].startswith("SET "):
            oracle.execute(event["sql"])
    return statements


def check_killed(
    server: Server, lake: Path, kind: Kind, oracle: Any, n: int, step: str, *, nth: int = 1, winner: str | None = None, lands: str = "scan"
) -> None:
    statements = run_killed(server, lake, kind, oracle, n, step, nth=nth, winner=winner, lands=lands)
    if landed(step):
        for sql in statements:
            oracle.execute(sql)
    check_after_crash(lake, oracle)


@pytest.mark.parametrize("name", KINDS)
def test_at_every_step(name: str, tmp_path: Path, server: Server) -> None:
    with closing(fresh(tmp_path / "lake")) as oracle:
        for n, step in enumerate(STEPS):
            winner = KINDS[name].winner.format(n=n) if step == "resolve" else None
            check_killed(server, tmp_path / "lake", KINDS[name], oracle, n, step, winner=winner)


def test_at_every_step_of_a_flush(tmp_path: Path, server: Server) -> None:
    """A flush comes after the commit of an insert, which has landed then, though its answer never came."""
    kind = Kind(("INSERT INTO t VALUES ({n}, 'small')",), before=("INSERT INTO t VALUES (-1, 'small')", "SET flush_fragments = 1"))
    with closing(fresh(tmp_path / "lake")) as oracle:
        for n, step in enumerate(s for s in STEPS if s not in ("scan", "write", "resolve")):
            for sql in run_killed(server, tmp_path / "lake", kind, oracle, n, step, nth=2):
                oracle.execute(sql)
            check_after_crash(tmp_path / "lake", oracle)


LATE = "sync_directory"  # the winner lands when all is ready for the commit lock


def test_in_a_replay(tmp_path: Path, server: Server) -> None:
    """The update met a winner and, as its value depends on other rows, runs again: before its files are synced, or after."""
    with closing(fresh(tmp_path / "lake")) as oracle:
        rounds = [(step, 2, LATE) for step in ("scan", "write", "sync_files", "sync_directory", "lock")]
        rounds += [("scan", 2, "scan"), ("write", 2, "scan"), ("sync_files", 1, "scan"), ("committed", 1, "scan"), ("committed", 1, LATE)]
        for n, (step, nth, lands) in enumerate(rounds):
            winner = f"INSERT INTO t VALUES ({n}, 'winner')"
            check_killed(server, tmp_path / "lake", REPLAYED, oracle, n, step, nth=nth, winner=winner, lands=lands)


def test_in_a_reevaluation(tmp_path: Path, server: Server) -> None:
    """The update met a winner, and its statement runs on the winner's rows, under the lock; what that writes is synced there."""
    with closing(fresh(tmp_path / "lake")) as oracle:
        for n, step in enumerate(("lock", "resolve", "sync_again", "publish", "commit", "committed")):
            winner = f"INSERT INTO t VALUES ({n}, 'winner')"
            check_killed(server, tmp_path / "lake", KINDS["update"], oracle, n, step, winner=winner, lands=LATE)


# At random times.


def script_of(number: int, length: int) -> list[str]:
    """Statements of one writer, on rows that are its own, in a table that all share. The even ones of table t write files."""
    statements = []
    for i in range(length):
        statements.append(
            [
                f"INSERT INTO t SELECT {number}, {i}, range FROM range(10)",
                f"INSERT INTO t VALUES ({number}, {i}, 0)",
                f"UPDATE t SET x = x + 1 WHERE writer = {number} AND i % 2 = 0",
                f"DELETE FROM t WHERE writer = {number} AND x % 3 = 0 AND i < {i - 3}",
            ][i % 4]
        )
    return statements


def states_of(script: list[str]) -> list[list[tuple[Any, ...]]]:
    """The rows after the first n statements, for every n."""
    with closing(duckdb.connect()) as oracle:
        oracle.execute("CREATE TABLE t (writer INTEGER, i INTEGER, x BIGINT)")
        found: list[list[tuple[Any, ...]]] = [[]]
        for sql in script:
            oracle.execute(sql)
            found.append(rows(oracle, "FROM t ORDER BY ALL"))
        return found


def test_at_random_times(tmp_path: Path, server: Server) -> None:
    """Three writers on one table. Each one's rows are those of its acknowledged statements, or of one more."""
    lake = tmp_path / "lake"
    expected: list[tuple[Any, ...]] = []
    in_flight_landed = 0
    with opened(lake) as con:
        con.execute("CREATE TABLE t (writer INTEGER, i INTEGER, x BIGINT)")
    for kill in range(RANDOM_KILLS):
        scripts = {number: script_of(number, STATEMENTS) for number in range(3 * kill, 3 * kill + 3)}
        job = server.start("write_until_killed", lake=str(lake), scripts=list(scripts.items()))
        seen = [job.wait_for("acknowledged") for _ in range(random.randint(1, STATEMENTS))]
        time.sleep(random.uniform(0, LONGEST_WAIT_S))  # a random time is the point
        events, status = job.kill()
        assert status == KILLED, events
        done = dict.fromkeys(scripts, 0)
        for event in (*seen, *events):
            assert event["event"] == "acknowledged", event
            done[event["script"]] += 1
        with opened(lake) as con:
            found = rows(con, "FROM t ORDER BY ALL")
            for number, script in scripts.items():
                mine, states = [row for row in found if row[0] == number], states_of(script)
                assert mine in states[done[number] : done[number] + 2], (kill, number, done)
                in_flight_landed += mine != states[done[number]]
            expected = sorted([*expected, *(row for row in found if row[0] in scripts)])
            assert found == expected
            con.execute("VACUUM")
            assert data_files(lake) == catalogued_files(lake)
    assert in_flight_landed > 0, "no kill met a statement between its commit and its answer: the test has lost its point"
