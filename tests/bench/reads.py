"""Reads against raw Parquet in the same process, by turns: a point, aggregates with 1 % and 10 % of the rows deleted, count(*)."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
from measure import alternating_ms, table

import lakelite

AGGREGATE = "SELECT count(*), sum(id), avg(x), max(s) FROM {}"
ROWS = "SELECT range::BIGINT AS id, random() AS x, 'name_' || (range % 5000) AS s FROM range({})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=40)
    options = parser.parse_args()
    found: list[tuple[str, float, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder, lakelite.connect(folder, autocommit=True) as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(options.rows)}")
        raw = duckdb.connect()
        file = f"read_parquet('{next(Path(folder).glob('data/*/*.parquet'))}')"

        def pair(what: str, sql: str, other: str, wanted: float, times: int) -> None:
            works = {
                "a": lambda i: con.execute(sql.format("t", i=i + 999)).fetchall(),
                "b": lambda i: raw.execute(other.format(file, i=i + 999)).fetchall(),
            }
            medians = alternating_ms(works, times)
            found.append((what, medians["a"], medians["b"], wanted))

        point = "SELECT * FROM {} WHERE id = {i} * 311"
        pair("point SELECT", point, point, 2.0, options.times)
        pair("aggregate, nothing deleted", AGGREGATE, AGGREGATE, 2.0, options.times)
        con.execute("DELETE FROM t WHERE id % 100 = 0")
        pair("aggregate, 1 % deleted", AGGREGATE, AGGREGATE, 2.0, options.times)
        pair("point SELECT, 1 % deleted", point, point, 2.0, options.times)
        con.execute("DELETE FROM t WHERE id % 100 < 10")
        pair("aggregate, 10 % deleted", AGGREGATE, AGGREGATE, 2.0, options.times)
        pair("count(*)", "SELECT count(*) FROM {}", "SELECT count(*) FROM {}", 2.0, options.times)
        raw.close()
    table(f"{options.rows} rows in one file, median ms, other = DuckDB on the raw file without deletions", found)


if __name__ == "__main__":
    main()
