"""What winners cost a DELETE by key: the whole statement, uncontended, on top of one winner, and on top of many, which deleted other rows."""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measure import table
from remap import FILES, ROWS, meeting

import lakelite

WANTED = {1: 1.5, 500: 5.0}
STRIDE = 1_234_577  # keys of one statement after the other lie in different files


def explicit(con: Any, win: Callable[[], object], sql: str) -> float:
    """Milliseconds of a DELETE as a transaction of its own, without the time of `win`, which comes between the statement and its commit."""
    begin = time.perf_counter()
    con.execute("BEGIN")
    con.execute(sql)
    middle = time.perf_counter()
    win()
    again = time.perf_counter()
    con.execute("COMMIT")
    return (middle - begin + time.perf_counter() - again) * 1000


def autocommit(con: Any, win: Callable[[], object], sql: str) -> float:
    """The same where `win` comes when the statement is about to take the commit lock."""
    spent: list[float] = []

    def timed() -> None:
        begin = time.perf_counter()
        win()
        spent.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    with meeting(timed):
        con.execute(sql)
    return (time.perf_counter() - begin - sum(spent)) * 1000


def medians(path: Path, rows: int, times: int, run: Callable[[Any, Callable[[], object], str], float], keys: Iterator[int]) -> dict[int, float]:
    """By number of winners. Before each measurement comes one statement that is not measured, so that all begin from the same state."""
    with lakelite.connect(path, autocommit=True) as con, lakelite.connect(path, autocommit=True) as other:

        def delete() -> str:
            return f"DELETE FROM t WHERE id = {next(keys) * STRIDE % rows}"

        def win(winners: int) -> None:
            for _ in range(winners):
                assert other.execute(delete()).rowcount == 1

        found: dict[int, list[float]] = {0: [], 1: [], 500: []}
        for turn in range(-1, times):
            for winners, spent in found.items():
                con.execute(delete())
                took = run(con, lambda winners=winners: win(winners), delete())
                assert len(con.last_commit.resolutions) == winners
                if turn >= 0:
                    spent.append(took)
    return {winners: statistics.median(spent) for winners, spent in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--files", type=int, default=FILES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder:
        path = Path(folder) / "lake"
        with lakelite.connect(path, autocommit=True) as con:
            con.execute("CREATE TABLE t (id BIGINT, k BIGINT, s VARCHAR)")
            for number in range(options.files):
                con.execute("INSERT INTO t " + ROWS.format(start=number * options.rows // options.files, count=options.rows // options.files))
        keys = itertools.count()
        for run in (autocommit, explicit):
            found = medians(path, options.rows, options.times, run, keys)
            alone = found.pop(0)
            what = [(f"{winners} winner{'s' * (winners > 1)}", took, alone, WANTED[winners]) for winners, took in found.items()]
            table(f"{options.rows} rows, DELETE by key, {run.__name__}, ms; other = uncontended", what)


if __name__ == "__main__":
    main()
