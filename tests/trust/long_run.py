"""Small commits for a long time, beside readers of old versions and a process that sweeps: nothing grows without bound.

The time is compressed: what a lake keeps for an hour of a day, it keeps for the 24th part of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import lasting
import racing

import lakelite
from trust.figures import Failure, Figures, Number, again

PROMISE = "catalog, WAL, file count, memory and latency stay bounded with maintenance on; a reader never misses a file"
HOW = "2 processes commit one-row changes, 2 read versions that they hold open, one runs VACUUM, retention 1/24 of the run; size: seconds"
SIZES = (5, 15, 1_200)
WRITERS, READERS = 2, 2
MIB = 2**20
# How much more the last third may need than the second, as a factor and as a sum; and what it may need at all.
BOUNDS: dict[str, tuple[Callable[[lasting.Sample], float], float, float]] = {
    "MiB of catalog": (lambda s: s.catalog / MIB, 1.5, 1),
    "MiB of WAL": (lambda s: s.wal / MIB, 1.5, 2),
    "files": (lambda s: s.files, 1.5, 20),
    "MiB of files": (lambda s: s.data / MIB, 1.5, 1),
    "MiB of memory": (lambda s: s.memory / MIB, 1.2, 20),
}
WAL_MIB = 16
SLOWER = 2.0


def run(seed: int, size: int) -> Figures:
    """Nothing is drawn by the seed: when processes meet is chance."""
    counted, wrong = taken(size)
    slower = "times the latency of the second third in the last"
    wrong += [f"{counted[slower]} {slower}"] if counted[slower] > SLOWER else []
    return Figures(counted, tuple(Failure(one, again("long_run", seed, size)) for one in wrong))


def taken(size: int) -> tuple[dict[str, Number], list[str]]:
    """The figures, and what is wrong whatever else the machine does: latency is left to `run`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lake"
        with lakelite.connect(path, autocommit=True) as con:
            con.execute("CREATE TABLE t (k BIGINT, v BIGINT); INSERT INTO t VALUES (-1, 0)")
        arguments = [(str(path), n, size, WRITERS, READERS) for n in range(WRITERS + READERS + 1)]
        *found, sweeps = racing.race(lasting.take_part, arguments, racing.PATIENCE_S + size)
        wrote: list[lasting.Wrote] = found[:WRITERS]
        with lakelite.connect(path, autocommit=True) as con:
            rows = sorted(con.execute("FROM t WHERE k >= 0").fetchall())
            wrong = [f"CHECK LAKE: {row}" for row in con.execute("CHECK LAKE").fetchall() if row[0] == "error"]
    wrong += [] if rows == sorted(item for one in wrote for item in one.alive.items()) else ["rows were lost, doubled, or came back"]
    counted: dict[str, Number] = {
        "commits": sum(one.commits for one in wrote), "readings of old versions": sum(n for n, _ in found[WRITERS:]),
        "versions behind, at most": max(n for _, n in found[WRITERS:]), "sweeps": sweeps,
    }  # fmt: skip
    return counted | grown([sample for one in wrote for sample in one.samples], wrong), wrong


def grown(samples: Sequence[lasting.Sample], wrong: list[str]) -> dict[str, Number]:
    """The most that each needed in the last third of the run; what is over its bounds is added to `wrong`."""
    each = len(samples) // WRITERS
    thirds = [[s for n, s in enumerate(samples) if n % each * 3 // each == third] for third in range(3)]
    found: dict[str, Number] = {}
    for name, (of, factor, more) in BOUNDS.items():
        before, last = (max(map(of, third)) for third in thirds[1:])
        found[name] = last
        wrong += [f"{name}: {last:.1f} in the last third, {before:.1f} in the second"] if last > before * factor + more else []
    wrong += [f"a WAL of {found['MiB of WAL']:.1f} MiB"] if found["MiB of WAL"] > WAL_MIB else []
    before, last = (sum(s.latency_s for s in third) / len(third) for third in thirds[1:])
    return found | {"ms each commit in the last third": last * 1000, "times the latency of the second third in the last": last / before}
