"""The processes of a long run: some commit small changes, some read versions that are old by then, one sweeps; and what they measured."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lakelite

OWN_ROWS = 100
SAMPLES = 60
PATIENCE_S = 100


@dataclass(frozen=True, slots=True)
class Sample:
    """At some moment: `catalog`, `wal`, `data`, `memory` in bytes, `files` in `data`, `latency_s` the mean since the one before."""

    catalog: int
    wal: int
    files: int
    data: int
    memory: int
    latency_s: float


@dataclass(slots=True)
class Wrote:
    """`commits` that were acknowledged; the rows that are alive; `samples` in the order of time."""

    commits: int = 0
    alive: dict[int, int] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)


def write(barrier: Any, path: str, number: int, seconds: float) -> Wrote:
    """Commits one-row changes of its own keys: inserts, updates, deletes of the oldest, so that it never has more than OWN_ROWS."""
    found, r = Wrote(), random.Random(number)
    with lakelite.connect(path, autocommit=True, author=f"writer {number}") as con:
        for moment in _spread(barrier, seconds, SAMPLES):
            begun, before = time.monotonic(), found.commits
            while time.monotonic() < moment or found.commits == before:
                _change(con, r, found, 10**9 * number)
            found.samples.append(_sample(Path(path), (time.monotonic() - begun) / (found.commits - before)))
    return found


def _change(con: Any, r: random.Random, found: Wrote, first: int) -> None:
    key = first + found.commits
    if len(found.alive) > OWN_ROWS:
        oldest = next(iter(found.alive))
        assert con.execute("DELETE FROM t WHERE k = ?", [oldest]).rowcount == 1
        del found.alive[oldest]
    elif found.alive and r.random() < 0.4:
        some = r.choice([*found.alive])
        assert con.execute("UPDATE t SET v = v + 1 WHERE k = ?", [some]).rowcount == 1
        found.alive[some] += 1
    else:
        con.execute("INSERT INTO t VALUES (?, 0)", [key])
        found.alive[key] = 0
    found.commits += 1


def _spread(barrier: Any, seconds: float, parts: int) -> Iterator[float]:
    """When each part is to end, once all processes are there."""
    barrier.wait(PATIENCE_S)
    begun = time.monotonic()
    return (begun + seconds * (n + 1) / parts for n in range(parts))


def _sample(lake: Path, latency_s: float) -> Sample:
    """Sizes are asked of the directory: only SQLite opens the catalog's files."""
    files = [size for size in map(_size, (lake / "data").glob("*/*")) if size is not None]
    catalog = lake / "catalog.sqlite"
    wal = _size(catalog.with_name("catalog.sqlite-wal")) or 0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(_size(catalog) or 0, wal, len(files), sum(files), pages * os.sysconf("SC_PAGE_SIZE"), latency_s)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a sweep was here
        return None


def read_old(barrier: Any, path: str, number: int, seconds: float) -> tuple[int, int]:
    """Reads in transactions that stay open for a while: each reading gives the same, by the table's name and by the version's number.

    How many readings there were, and how many versions behind the head the oldest was.
    """
    readings = oldest = 0
    r = random.Random(number)
    with lakelite.connect(path, autocommit=True) as con, lakelite.connect(path, autocommit=True) as other:
        barrier.wait(PATIENCE_S)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            con.execute("BEGIN")
            ((version,),) = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchall()
            texts = ("SELECT count(*), sum(k), sum(v) FROM t", f"SELECT count(*), sum(k), sum(v) FROM t AT (VERSION => {version})")
            first = con.execute(texts[0]).fetchall()
            over = min(end, time.monotonic() + r.uniform(0, seconds / 8))
            while time.monotonic() < over:
                time.sleep(0.05)
                assert [con.execute(text).fetchall() for text in texts] == [first, first], f"version {version} is another one by now"
                readings += 2
            ((head,),) = other.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchall()
            oldest = max(oldest, head - version)
            con.execute("COMMIT")
    return readings, oldest


def sweep(barrier: Any, path: str, seconds: float, retain_s: float) -> int:
    """VACUUMs four times in what is retained; how often."""
    sweeps = 0
    with lakelite.connect(path, autocommit=True) as con:
        barrier.wait(PATIENCE_S)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            con.execute(f"VACUUM RETAIN {retain_s / 3600:.9f} HOURS")
            sweeps += 1
            time.sleep(retain_s / 4)
    return sweeps


def take_part(barrier: Any, path: str, number: int, seconds: float, writers: int, readers: int) -> Any:
    """The first ones write, the next ones read, the last one sweeps. An hour of 24 is what is retained."""
    if number < writers:
        return write(barrier, path, number, seconds)
    return read_old(barrier, path, number, seconds) if number < writers + readers else sweep(barrier, path, seconds, seconds / 24)
