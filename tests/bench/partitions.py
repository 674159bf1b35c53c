"""What partitions cost and spare: a query of one of 100 partitions, and writing all of them, against the same table without."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import alternating_ms, table

import lakelite

PARTITIONS = 100
WANTED = {"sum of one partition": 0.2, "sum of three partitions": 0.3, "sum of all": 1.5, "DELETE of a row of one partition": 1.0}


def rows(count: int, partitions: int) -> str:
    """Rows whose partitions come in no order."""
    return f"SELECT range AS k, ((range * 7919) % {partitions})::INTEGER AS p, 'word ' || range % 1000 AS w, range * 1.5::DOUBLE AS v FROM range({count})"


def fill(con: Any, count: int) -> dict[str, float]:
    """Makes both tables; seconds of each."""
    found = {}
    for name, clause in (("plain", ""), ("divided", " PARTITIONED BY (p)")):
        con.execute(f"CREATE TABLE {name} (k BIGINT, p INTEGER, w VARCHAR, v DOUBLE){clause}")
        start = time.perf_counter()
        con.execute(f"INSERT INTO {name} {rows(count, PARTITIONS)}")
        found[name] = time.perf_counter() - start
    return found


def running(con: Any, text: str) -> Callable[[int], object]:
    return lambda _: con.execute(text).fetchall() if text.startswith("SELECT") else con.execute(text)


def memory_mb(count: int, partitions: int) -> tuple[float, int]:
    """Seconds and peak memory of a process that writes so many rows to so many partitions."""
    text = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import partitions; partitions.write_alone({count}, {partitions})"
    seconds, peak = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), int(peak)


def write_alone(count: int, partitions: int) -> None:
    """What `memory_mb` runs."""
    with tempfile.TemporaryDirectory() as folder, lakelite.connect(Path(folder) / "lake", autocommit=True) as con:
        con.execute(
            f"CREATE TABLE t (k BIGINT, p INTEGER, w VARCHAR, v DOUBLE){' PARTITIONED BY (p)' if partitions else ''}; SET memory_limit = '1GB'"
        )
        start = time.perf_counter()
        con.execute(f"INSERT INTO t {rows(count, max(partitions, 1))}")
        print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--many", type=int, default=10_000, help="partitions of the last write")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, lakelite.connect(Path(folder) / "lake", autocommit=True) as con:
        written = fill(con, given.rows)
        texts = {
            "sum of one partition": "SELECT sum(v), count(*) FROM {} WHERE p = 42",
            "sum of three partitions": "SELECT sum(v), count(*) FROM {} WHERE p IN (1, 50, 99)",
            "sum of all": "SELECT sum(v), count(*) FROM {}, (SELECT 1)",
            "DELETE of a row of one partition": "DELETE FROM {} WHERE p = 7 AND k = -1",
        }
        found = []
        for what, text in texts.items():
            found.append((what, alternating_ms({name: running(con, text.format(name)) for name in written}, given.times)))
    table(
        f"{given.rows} rows, {PARTITIONS} partitions, ms, partitioned (lakelite) and not (other)",
        [("INSERT … SELECT of all rows", written["divided"] * 1000, written["plain"] * 1000, 3.0)]
        + [(w, ms["divided"], ms["plain"], WANTED[w]) for w, ms in found],
    )
    for partitions in (0, PARTITIONS, given.many):
        seconds, peak = memory_mb(given.rows, partitions)
        print(f"written to {partitions or 'no'} partitions by a process of its own, memory_limit 1 GB: {seconds:.1f} s, {peak} MB")


if __name__ == "__main__":
    main()
