"""What a durable commit costs, against what a disk makes anyone pay for one: figures, no test of time.

In turns, so that both meet the same disk: 10 kB inserted as a Parquet file, and a raw loop of one 10 kB file, two syncs and a SQLite commit;
a delete of one row, and a SQLite commit with the scan that finds the row.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

import lakelite
from trust.figures import Figures

PROMISE = "Wanted, not reached yet: an insert of 10 kB as Parquet costs at most twice a raw loop, a delete 1.5 times a scan and a SQLite commit"
HOW = "medians, in turns on one disk; the raw loop writes 10 kB, syncs file and directory, and commits to SQLite; COPY is DuckDB's alone, without a sync"
SIZES = (20, 60, 500)  # commits of each kind

FILE_BYTES = 10_000
TEN_KB = "SELECT range AS a, md5((range + {0})::VARCHAR) || md5((range * {0})::VARCHAR) || md5((range - {0})::VARCHAR) AS s FROM range(100)"
ROWS = 100_000  # in the table that is deleted from


def run(seed: int, size: int) -> Figures:
    """On the disk that temporary files are on. Milliseconds are medians."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="lakelite-trust-") as folder:
        return Figures({**inserts(Path(folder), chance, size), **deletes(Path(folder), chance, size)})


def in_turns(size: int, *acts: Callable[[], object]) -> list[float]:
    """The median of each in milliseconds; the first two of each do not count."""
    took: list[list[float]] = [[] for _ in acts]
    for _ in range(size + 2):
        for act, times in zip(acts, took, strict=True):
            begun = time.perf_counter()
            act()
            times.append((time.perf_counter() - begun) * 1000)
    return [statistics.median(times[2:]) for times in took]


def raw_catalog(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("CREATE TABLE commits (path TEXT)")
    return connection


def inserts(folder: Path, chance: random.Random, size: int) -> dict[str, float]:
    files = folder / "files"
    files.mkdir()

    def raw() -> None:
        path = files / f"{time.monotonic_ns()}"
        with path.open("wb") as file:
            file.write(chance.randbytes(FILE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        descriptor = os.open(files, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        catalog.execute("INSERT INTO commits VALUES (?)", (path.name,))

    def ours() -> None:
        con.execute(f"INSERT INTO t {TEN_KB.format(chance.randrange(10**6))}")

    def copied() -> None:
        engine.execute(f"COPY ({TEN_KB.format(chance.randrange(10**6))}) TO '{folder}/copied.parquet' (PARQUET_VERSION V2)")

    with (
        closing(raw_catalog(folder / "raw")) as catalog, closing(lakelite.connect(folder / "lake", autocommit=True)) as con,
        closing(duckdb.connect()) as engine,
    ):  # fmt: skip
        con.execute("SET inline_rows = 0; SET upkeep = off; CREATE TABLE t (a BIGINT, s VARCHAR)")
        mine, theirs, copy = in_turns(size, ours, raw, copied)
        [(written,)] = con.execute("SELECT max(size_bytes) FROM lake.fragments").fetchall()
    return {"ms an insert": mine, "ms a raw loop": theirs, "ms a COPY": copy, "times the raw loop (2)": mine / theirs, "bytes a file": written}


def deletes(folder: Path, chance: random.Random, size: int) -> dict[str, float]:
    keys = iter(chance.sample(range(ROWS), 2 * size + 10))
    with (
        closing(raw_catalog(folder / "raw2")) as catalog, closing(lakelite.connect(folder / "lake2", autocommit=True)) as con,
        closing(duckdb.connect()) as engine,
    ):  # fmt: skip
        con.execute(f"SET upkeep = off; CREATE TABLE t AS SELECT range AS a, md5(range::VARCHAR) AS s FROM range({ROWS})")
        [file] = (folder / "lake2" / "data").glob("*/*.parquet")

        def raw() -> Any:
            found = engine.execute(f"SELECT file_row_number FROM read_parquet('{file}', file_row_number => true) WHERE a = {next(keys)}").fetchall()
            catalog.execute("INSERT INTO commits VALUES (?)", (str(found),))

        mine, theirs = in_turns(size, lambda: con.execute(f"DELETE FROM t WHERE a = {next(keys)}"), raw)
    return {"ms a delete": mine, "ms a scan and a SQLite commit": theirs, "times these (1.5)": mine / theirs}
