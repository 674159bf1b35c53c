"""One connection, warm, autocommit, on one table in one file: lakelite against DuckLake on a SQLite catalog."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from measure import median_ms, table

import lakelite

WANTED = {"insert": 1 / 5, "delete": 1 / 3, "update": 1 / 3}


def ours(rows: int, times: int) -> dict[str, float]:
    """Median milliseconds of each kind of statement."""
    with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder, lakelite.connect(folder, autocommit=True) as con:
        con.execute(f"CREATE TABLE t AS SELECT range::BIGINT AS id, (range % 1000)::BIGINT AS k, 'name_' || (range % 5000) AS s FROM range({rows})")
        return {
            "select": median_ms(lambda i: con.execute(f"SELECT * FROM t WHERE id = {abs(i) * 31 + 7}").fetchall(), times),
            "insert": median_ms(lambda i: con.execute(f"INSERT INTO t VALUES ({10**9 + i}, -1, 'new')"), times),
            "delete": median_ms(lambda i: con.execute(f"DELETE FROM t WHERE id = {(i + 10) * 37}"), times),
            "update": median_ms(lambda i: con.execute(f"UPDATE t SET k = -7 WHERE id = {(i + 10) * 41 + 5}"), times),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--peer", help="a Python that has DuckLake")
    options = parser.parse_args()
    mine = ours(options.rows, options.times)
    if options.peer is None:
        print("\n".join(f"{name:8} {value:8.2f} ms" for name, value in mine.items()))
        return
    side = Path(__file__).with_name("ducklake_side.py")
    answer = subprocess.run(
        [options.peer, str(side), str(options.rows), str(max(10, options.times // 3))], check=True, capture_output=True, text=True
    )
    theirs = json.loads(answer.stdout)
    table(f"{options.rows} rows, median ms, other = DuckLake", [(n, mine[n], theirs[n], WANTED.get(n, 1.0)) for n in mine])


if __name__ == "__main__":
    main()
