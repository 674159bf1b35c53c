"""Sweeps beside writers that are killed: no file that anybody needs goes, and in the end none is left that nobody needs."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from crashing import Job, Server, catalogued_files, data_files

import lakelite
from trust.figures import Failure, Figures, again

PROMISE = "0 live files deleted by sweeps beside dying writers, 0 orphans left, 0 acknowledged commits lost"
HOW = "VACUUM again and again, without retention, beside 3 processes that write files and are killed at random moments; size: sweeps"
SIZES = (10, 40, 2_689)
WRITERS = 3
STATEMENTS = ("INSERT INTO t SELECT {round}, range FROM range(5000)", "DELETE FROM t WHERE n = {round} AND x = 9")


def run(seed: int, size: int) -> Figures:
    r = random.Random(seed)
    server = Server()
    try:
        with tempfile.TemporaryDirectory() as folder, lakelite.connect(Path(folder) / "lake", autocommit=True) as con:
            con.execute("CREATE TABLE t (n BIGINT, x BIGINT)")
            counted, wrong = _race(r, con, server, Path(folder) / "lake", size)
    finally:
        server.close()
    return Figures(counted, tuple(Failure(one, again("sweep", seed, size)) for one in wrong))


def _race(r: random.Random, con: Any, server: Server, lake: Path, size: int) -> tuple[dict[str, int], list[str]]:
    """Behind every other sweep a writer that has landed something is killed at some moment, and another begins in its place."""
    numbers = iter(range(10**6))
    writers = [_writer(server, lake, next(numbers)) for _ in range(WRITERS)]
    hurt: set[tuple[int, str]] = set()
    orphans = expired = kills = acknowledged = 0
    for _ in range(size):
        *_, versions, _, removed, _ = con.execute("VACUUM RETAIN 0 HOURS").fetchall()[0]
        orphans, expired = orphans + removed, expired + versions
        hurt |= catalogued_files(lake) - data_files(lake)
        if r.random() < 0.5:
            kills += 1
            victim = r.randrange(WRITERS)
            writers[victim].wait_for("round")
            time.sleep(r.random() / 20)
            acknowledged += 1 + _rounds(writers[victim])
            writers[victim] = _writer(server, lake, next(numbers))
    acknowledged += sum(map(_rounds, writers))
    orphans += con.execute("VACUUM RETAIN 0 HOURS").fetchall()[0][4]
    left = data_files(lake) - catalogued_files(lake)
    rounds, whole = con.execute("SELECT count(*), count(*) FILTER (found >= 4999) FROM (SELECT count(*) AS found FROM t GROUP BY n)").fetchall()[0]
    wrong = [f"files that the catalog names are gone: {hurt}"] if hurt else []
    wrong += [f"orphans are left: {left}"] if left else []
    wrong += [f"{rounds} rounds are there, {whole} whole, of {acknowledged} acknowledged ones"] if whole < rounds or rounds < acknowledged else []
    wrong += [f"CHECK LAKE: {row}" for row in con.execute("CHECK LAKE").fetchall() if row[0] == "error"]
    live = len(catalogued_files(lake))
    counted = {
        "sweeps": size + 1, "kills": kills, "acknowledged rounds": acknowledged, "orphans removed": orphans, "versions expired": expired, "live files": live,
        "live files hurt": len(hurt), "orphans left": len(left),
    }  # fmt: skip
    return counted, wrong


def _writer(server: Server, lake: Path, number: int) -> Job:
    statements = [one.replace("{round}", f"{number}000000 + {{n}}") for one in STATEMENTS]
    return server.start("write", lake=str(lake), statements=statements)


def _rounds(writer: Job) -> int:
    """Kills it; the rounds that it has acknowledged since they were last counted."""
    return sum(event["event"] == "round" for event in writer.kill()[0])
