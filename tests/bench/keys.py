"""What a primary key costs, and what it saves: changes of 1,000 rows of a large table that has one, against the same table without."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from measure import alternating_ms, table

import lakelite
from lakelite.transaction import merge_target

FILES = 8
WANTED = 3.0
Works = dict[str, Callable[[int], object]]


def filled(con: Any, name: str, key: str, rows: int) -> None:
    """A table of even keys, which lie in all files alike."""
    con.execute(f"CREATE TABLE {name} (k BIGINT{key}, w VARCHAR)")
    for i in range(FILES):
        con.execute(f"INSERT INTO {name} SELECT (range * {FILES} + {i}) * 2, 'row ' || range FROM range({rows // FILES})")


def inserts(con: Any, first: int, apart: int, count: int, behind: str = "") -> Works:
    """INSERTs of `count` odd keys, `apart` from each other, into either table. `behind`: what the one with a key says about conflicts."""

    def into(name: str) -> Callable[[int], object]:
        clause = behind if name == "keyed" else ""
        return lambda i: con.execute(f"INSERT INTO {name} SELECT {first} + range * {apart} + {2 * i + 41}, 'new' FROM range({count}) {clause}")

    return {name: into(name) for name in ("keyed", "plain")}


def merges(con: Any, first: int, apart: int, count: int) -> Works:
    """MERGEs that change every other row and add the rest, into either table; each is undone."""

    def into(name: str) -> Callable[[int], object]:
        def run(i: int) -> None:
            con.execute("BEGIN")
            source = f"(SELECT {first} + range * {apart} + {2 * i} + range % 2 AS k, 'new' AS w FROM range({count})) AS s"
            con.execute(f"MERGE INTO {name} AS t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE SET w = s.w WHEN NOT MATCHED THEN INSERT")
            con.execute("ROLLBACK")

        return run

    return {name: into(name) for name in ("keyed", "plain")}


def updates(con: Any, first: int, apart: int, count: int) -> Works:
    """UPDATE … FROM a table of `count` rows, of the table with a key: as it is, and with all files of its target read. Each is undone."""
    con.execute(f"CREATE OR REPLACE TABLE partners AS SELECT {first} + range * {apart} AS k, 'new' AS w FROM range({count})")

    def reading(rows: float) -> Callable[[int], object]:
        def run(i: int) -> None:
            with mock.patch.object(merge_target, "FEW_ROWS", rows):
                con.execute("BEGIN")
                con.execute("UPDATE keyed AS t SET w = s.w FROM partners AS s WHERE t.k = s.k")
                con.execute("ROLLBACK")

        return run

    return {"pruned": reading(merge_target.FEW_ROWS), "whole": reading(float("inf"))}


def resident_mb() -> float:
    """The memory of this process."""
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")) / 1024


def first_ms(path: Path, apart: int, times: int = 5) -> tuple[float, float]:
    """The first INSERT of a session, in ms: with filters that have to be read, and (once) made anew. Prints what memory they take."""
    found = []
    for round_ in range(times + 1):
        if round_ == times:
            for filter_ in path.glob("data/*/*.keys"):
                filter_.unlink()
        with lakelite.connect(path, autocommit=True) as con:
            con.execute("SET upkeep = 'off'; INSERT INTO plain VALUES (1, 'x')")
            before, start = resident_mb(), time.perf_counter()
            con.execute(f"INSERT INTO keyed SELECT range * {apart} + {1_001 + 2 * round_}, 'new' FROM range(1000)")
            found.append((time.perf_counter() - start) * 1000)
            if round_ == 0:
                print(f"memory of the first key check: {resident_mb() - before:.0f} MB")
    return statistics.median(found[:-1]), found[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lake"
        apart = 2 * given.rows // 1000
        with lakelite.connect(path, autocommit=True) as con:
            con.execute("SET upkeep = 'off'")
            filled(con, "plain", "", given.rows)
            filled(con, "keyed", " PRIMARY KEY", given.rows)
            cases = {
                "1 row": inserts(con, 0, 1, 1),
                "1,000 rows, keys behind all others": inserts(con, 4 * given.rows, 1000, 1000),
                "1,000 rows, keys spread over all files": inserts(con, 200, apart + 2, 1000),
                "the same, ON CONFLICT DO UPDATE": inserts(con, 1_200, apart + 2, 1000, "ON CONFLICT (k) DO UPDATE SET w = excluded.w"),
                "MERGE of 1,000 rows, half of them new": merges(con, 2_000, apart + 2, 1000),
                "the same, close to each other": merges(con, given.rows, 2, 1000),
            }
            found = [(what, alternating_ms(works, given.times)) for what, works in cases.items()]
        table(
            f"1,000 rows of {given.rows}, ms, with a primary key (lakelite) and without (other)",
            [(w, ms["keyed"], ms["plain"], WANTED) for w, ms in found],
        )
        with lakelite.connect(path, autocommit=True) as con:
            con.execute("SET upkeep = 'off'")
            compared = []
            for what, keys, wanted in (("spread over all files, none there", (2_001, apart + 2), 1.0), ("close, all there", (given.rows, 2), 2.0)):
                ms = alternating_ms(updates(con, *keys, 1000), given.times)
                compared.append((f"UPDATE … FROM 1,000 rows, {what}", ms["pruned"], ms["whole"], wanted))
        table("the files of the target that can hold a partner are read (lakelite), and all of them (other)", compared)
        sizes = [
            sum(file.stat().st_size for file in path.glob(pattern)) / 1e6 for pattern in ("data/2/*.parquet", "data/2/*.keys", "catalog.sqlite*")
        ]
        print("\ndata files of the table with a key {:.1f} MB, their key filters {:.1f} MB, catalog {:.1f} MB".format(*sizes))
        print("first INSERT of a session: {:.0f} ms, and {:.0f} ms where the filters have to be made".format(*first_ms(path, apart + 2)))


if __name__ == "__main__":
    main()
