"""Data exchange: peak memory of results that are streamed and of readers that are appended, by the number of rows; and times."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from measure import alternating_ms, table

import lakelite

ROWS = "SELECT range::BIGINT AS id, (range % 1000)::BIGINT AS k, 'name ' || (range % 5000) AS s, random() AS r FROM range({})"
PEAK = """
import resource, sys, lakelite, pyarrow as pa, pyarrow.compute
path, what, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])

def peak():  # on Linux ru_maxrss counts what the parent had
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

def batches(schema):
    for start in range(0, rows, 100_000):
        n = min(100_000, rows - start)
        yield pa.record_batch([pa.array(range(start, start + n)), pa.array(["name"] * n)], schema)

with lakelite.connect(path, autocommit=True) as con:
    read = lambda: con.execute("SELECT * FROM t WHERE id < ?", (rows,))
    con.execute("SELECT * FROM t LIMIT 10").fetch_record_batch().read_all()
    before = peak()
    if what == "fetch_record_batch":
        seen = sum(batch.num_rows for batch in read().fetch_record_batch())
    elif what == "__arrow_c_stream__":
        seen = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(read()))
    elif what == "fetchmany":
        cursor, seen = read(), 0
        while found := cursor.fetchmany(10_000):
            seen += len(found)
    elif what == "append of a reader":
        con.execute("CREATE TABLE copied (id BIGINT, s VARCHAR)")
        schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
        seen = con.append("copied", pa.RecordBatchReader.from_batches(schema, batches(schema))).rowcount
        con.execute("DROP TABLE copied")
    else:
        schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
        reader = pa.RecordBatchReader.from_batches(schema, batches(schema))
        seen = con.execute("CREATE TABLE made AS SELECT * FROM reader").rowcount
        con.execute("DROP TABLE made")
    assert seen == rows, seen
    print(before, peak())
"""
WHAT = ("fetch_record_batch", "__arrow_c_stream__", "fetchmany", "append of a reader", "CREATE TABLE AS of a reader")


def memory(lake: str, sizes: list[int]) -> None:
    print("\npeak memory of a process in MB: before, and how much more for n rows")
    print(f"{'':30} {'before':>8}" + "".join(f"{rows:>12}" for rows in sizes))
    for what in WHAT:
        line, before = "", 0.0
        for rows in sizes:
            done = subprocess.run([sys.executable, "-c", PEAK, lake, what, str(rows)], check=True, capture_output=True, text=True)
            before, after = map(float, done.stdout.split())
            line += f"{after - before:12.0f}"
        print(f"{what:30} {before:8.0f}{line}")


def times(con: lakelite.Connection, rows: int, path: str) -> None:
    """Reading all rows as Arrow, against DuckDB on one file with the same rows."""
    con.execute(f"COPY (SELECT * FROM t WHERE id < {rows}) TO '{path}'")
    other = duckdb.connect()
    scan, whole = f"SELECT * FROM '{path}'", f"SELECT * FROM t WHERE id < {rows}"
    group = "SELECT k, s, sum(r) FROM {} GROUP BY ALL"
    works = {
        "stream": lambda i: [0 for _ in con.execute(whole).fetch_record_batch()],
        "stream'": lambda i: [0 for _ in other.sql(scan).to_arrow_reader()],
        "table": lambda i: con.execute(whole).to_arrow(),
        "table'": lambda i: other.sql(scan).to_arrow_table(),
        "group": lambda i: con.execute(group.format(f"({whole})")).to_arrow(),
        "group'": lambda i: other.sql(group.format(f"({scan})")).to_arrow_table(),
        "group stream": lambda i: con.execute(group.format(f"({whole})")).fetch_record_batch().read_all(),
    }
    found = alternating_ms(works, 5)
    lines = [("all rows, streamed", "stream"), ("all rows, to_arrow()", "table"), ("GROUP BY, to_arrow()", "group")]
    shown = [(what, found[name], found[f"{name}'"], 2.0) for what, name in lines]
    table(f"Arrow out of {rows} rows, median ms, other = DuckDB", [*shown, ("GROUP BY, streamed", found["group stream"], found["group'"], 4.0)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder:
        with lakelite.connect(f"{folder}/lake", autocommit=True) as con:
            start = time.perf_counter()
            con.execute(f"CREATE TABLE t AS {ROWS.format(options.rows)}")
            print(f"{options.rows} rows made in {time.perf_counter() - start:.1f} s")
            times(con, options.rows // 10, str(Path(folder) / "rows.parquet"))
        memory(f"{folder}/lake", [options.rows // 10, options.rows * 2 // 5, options.rows])


if __name__ == "__main__":
    main()
