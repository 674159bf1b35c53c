"""Many small writes with upkeep on: what they leave, what a query of it costs, and whether the last statements are as fast as the first."""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import alternating_ms, table

import lakelite

QUERY = "SELECT count(*), sum(k), avg(v), max(s) FROM t"
EDGE = 500


def statements(inserts: int, changes: int, seed: int) -> list[tuple[str, list[Any]]]:
    """The workload, in the order in which it runs: inserts of one row, and updates and deletes of one of the rows that are there by then."""
    draw = random.Random(seed)
    kinds = ["insert"] * inserts + ["update", "delete"] * (changes // 2)
    draw.shuffle(kinds)
    found: list[tuple[str, list[Any]]] = []
    alive: list[int] = []
    for number, kind in enumerate(kinds):
        if kind == "insert" or not alive:
            alive.append(number)
            found.append(("INSERT INTO t VALUES (?, ?, ?)", [number, number % 1000, f"name_{number % 500}"]))
        elif kind == "update":
            found.append(("UPDATE t SET v = v + 1 WHERE k = ?", [draw.choice(alive)]))
        else:
            found.append(("DELETE FROM t WHERE k = ?", [alive.pop(draw.randrange(len(alive)))]))
    return found


def timed(con: Any, sql: str, values: list[Any]) -> tuple[float, float]:
    """Milliseconds of a statement, and of the processor's time."""
    begin, worked = time.perf_counter(), time.process_time()
    con.execute(sql, values)
    return (time.perf_counter() - begin) * 1000, (time.process_time() - worked) * 1000


def ranks(found: Sequence[float]) -> str:
    cuts = statistics.quantiles(found, n=100)
    return f"mean {statistics.mean(found):6.2f}  median {cuts[49]:6.2f}  p95 {cuts[94]:6.2f}  p99 {cuts[98]:6.2f}  max {max(found):7.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inserts", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder, lakelite.connect(folder, autocommit=True) as con:
        con.execute("CREATE TABLE t (k BIGINT, v BIGINT, s VARCHAR)")
        took, worked = zip(*(timed(con, *one) for one in statements(options.inserts, options.changes, options.seed)), strict=True)
        for begin in range(0, len(took), max(EDGE, len(took) // 8)):
            print(f"{begin:6} …  {ranks(took[begin : begin + EDGE])}   processor: mean {statistics.mean(worked[begin : begin + EDGE]):5.2f}")
        print(con.execute("SELECT storage, count(*), sum(row_count), sum(deleted_count) FROM lake.fragments GROUP BY ALL ORDER BY ALL").fetchall())
        print(con.execute("SELECT operation, count(*) FROM lake.snapshots GROUP BY ALL ORDER BY ALL").fetchall())
        print(f"catalog: {(Path(folder) / 'catalog.sqlite').stat().st_size / 2**20:.1f} MiB of {len(took)} statements")
        first, last = took[:EDGE], took[-EDGE:]
        con.execute("CREATE TABLE one AS FROM t")
        works = {"soaked": lambda _: con.execute(QUERY).fetchall(), "one file": lambda _: con.execute(QUERY.replace(" t", " one")).fetchall()}
        found = alternating_ms(works, 30)
        table(
            "after the soak; other = the same rows in one file, and the first statements",
            [
                (QUERY[:44], found["soaked"], found["one file"], 2.0),
                (f"last {EDGE} statements, median ms", statistics.median(last), statistics.median(first), 1.5),
                (f"last {EDGE} statements, mean ms", statistics.mean(last), statistics.mean(first), 1.5),
                (f"last {EDGE} statements, mean ms of processor", statistics.mean(worked[-EDGE:]), statistics.mean(worked[:EDGE]), 1.5),
            ],
        )


if __name__ == "__main__":
    main()
