"""Bulk loading: INSERT … SELECT against COPY + SHA-256 + fsync of the same rows, by turns; and memory by the number of rows."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
from measure import alternating_ms, table

import lakelite

ROWS = "SELECT range::BIGINT AS id, (range % 1000)::BIGINT AS k, 'name_' || (range % 5000) AS s FROM range({})"
MEMORY = """
import resource, sys, tempfile, lakelite
with tempfile.TemporaryDirectory() as folder, lakelite.connect(folder, autocommit=True) as con:
    con.execute("CREATE TABLE t (id BIGINT, k BIGINT, s VARCHAR)")
    con.execute("INSERT INTO t " + sys.argv[1])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "darwin" else 1024) // 1)
"""


def raw_load(folder: str, rows: int, number: int) -> None:
    """The least that a durable, checked load does."""
    path = Path(folder) / f"raw{number}.parquet"
    duckdb.sql(f"COPY ({ROWS.format(rows)}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 61440)")
    with path.open("rb") as file:
        hashlib.file_digest(file, "sha256")
        os.fsync(file.fileno())
    path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder, lakelite.connect(f"{folder}/lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (id BIGINT, k BIGINT, s VARCHAR)")
        works = {"a": lambda i: con.execute(f"INSERT INTO t {ROWS.format(options.rows)}"), "b": lambda i: raw_load(folder, options.rows, i + 9)}
        medians = alternating_ms(works, options.times)
    table("bulk load, median ms, other = COPY + SHA-256 + fsync", [(f"INSERT … SELECT of {options.rows} rows", medians["a"], medians["b"], 1.3)])
    print("\npeak memory of a process that loads n rows, MB")
    for rows in (options.rows, 4 * options.rows, 16 * options.rows):
        done = subprocess.run([sys.executable, "-c", MEMORY, ROWS.format(rows)], check=True, capture_output=True, text=True)
        print(f"{rows:12} {float(done.stdout):8.0f}")


if __name__ == "__main__":
    main()
