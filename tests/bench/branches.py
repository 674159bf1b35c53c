"""A branch of a large table: to make it, to change rows on it, and to merge it back; with 1,000 changed rows, and with ten times as many."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import lakelite

WANTED_MS = 50


def timed(con: Any, sql: str) -> float:
    begin = time.perf_counter()
    cursor = con.execute(sql)
    if cursor.description:
        cursor.fetchall()
    return (time.perf_counter() - begin) * 1000


def change(con: Any, rows: int, changed: int, number: int) -> None:
    """On the branch: a third updated, a third deleted, a third inserted, spread over the whole table."""
    step = rows // (changed // 3)
    con.execute(f"UPDATE t SET v = v + 1 WHERE k % {step} = {7 * number} AND k < {rows}")
    con.execute(f"DELETE FROM t WHERE k % {step} = {7 * number + 1} AND k < {rows}")
    con.execute(f"INSERT INTO t SELECT {rows * (number + 2)} + r, r, 'new' FROM range({changed // 3}) q(r)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--history", type=int, default=0, help="commits on main since the branches were made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder, lakelite.connect(Path(folder) / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (k BIGINT, v BIGINT, w VARCHAR)")
        each = options.rows // options.files
        for i in range(options.files):
            con.execute(f"INSERT INTO t SELECT r, r % 1000, 'w' || (r % 100) FROM range({i * each}, {(i + 1) * each}) q(r)")
        made = [timed(con, f"CREATE BRANCH b{i}") for i in range(options.times)]
        print(f"CREATE BRANCH of {options.rows:,} rows: median {statistics.median(made):.1f} ms, worst {max(made):.1f} ms ({WANTED_MS} are wanted)")
        con.execute("CREATE TABLE other (a INTEGER)")
        for i in range(options.history):
            con.execute(f"INSERT INTO other VALUES ({i})")
        print(f"VACUUM DRY RUN with {options.history:,} more commits: {timed(con, 'VACUUM DRY RUN'):.0f} ms")
        for number, changed in enumerate((1_000, 10_000, 100_000)):
            con.execute(f"USE BRANCH b{number}")
            change(con, options.rows, changed, number)
            con.execute("USE BRANCH main")
            dry = timed(con, f"MERGE BRANCH b{number} DRY RUN")
            took = timed(con, f"MERGE BRANCH b{number}")
            print(f"MERGE BRANCH with {changed:,} changed rows: {took:.0f} ms (DRY RUN {dry:.0f} ms)")
        print(
            f"SELECT of the whole table: {timed(con, 'SELECT sum(v), count(w) FROM t'):.0f} ms; CHECK LAKE: {len(con.execute('CHECK LAKE').fetchall())} findings"
        )


if __name__ == "__main__":
    main()
