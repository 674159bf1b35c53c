"""Eight processes commit without a pause: each gets its turn, none waits long, and nobody is told that the lake is busy."""

from __future__ import annotations

import tempfile
from pathlib import Path

import racing

import lakelite
from trust.figures import Failure, Figures, Number, again

PROMISE = "8 writers: slowest commit at most 1 s, most / fewest commits at most 4, no busy error"
HOW = "8 processes append rows to one table without a pause; size: seconds; overtaken: commits of others between the start and the landing of one"
SIZES = (2, 4, 60)
WRITERS = 8
SLOWEST_S, RATIO, OVERTAKEN = 1.0, 4.0, 100


def run(seed: int, size: int) -> Figures:
    """Nothing is drawn: the seed changes nothing."""
    counted, wrong = taken(size)
    slow = "s the slowest"
    wrong += [f"{counted[slow]} {slow}, more than {SLOWEST_S}"] if counted[slow] > SLOWEST_S else []
    return Figures(counted, tuple(Failure(one, again("fairness", seed, size)) for one in wrong))


def taken(size: int) -> tuple[dict[str, Number], list[str]]:
    """The figures, and what is wrong whatever else the machine does: what depends on its clock is left to `run`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lake"
        with lakelite.connect(path, autocommit=True) as con:
            con.execute("CREATE TABLE t (writer INTEGER, n INTEGER); CREATE TABLE warm (writer INTEGER, n INTEGER)")
        found = racing.race(racing.commit_without_pause, [(str(path), n, size) for n in range(WRITERS)], racing.PATIENCE_S + size)
        with lakelite.connect(path, autocommit=True) as con:
            rows = con.execute("SELECT writer, count(*), count(DISTINCT n) FROM t GROUP BY ALL ORDER BY ALL").fetchall()
    counts = [len(one.waits_s) for one in found]
    errors = [error for one in found for error in one.errors]
    counted = {
        "commits": sum(counts),
        "s the slowest": max(wait for one in found for wait in one.waits_s),
        "most / fewest commits": max(counts) / max(1, min(counts)),
        "most often overtaken": max(n for one in found for n in one.overtaken),
        "errors": len(errors),
    }
    wrong = [f"an error reached the user: {error}" for error in errors]
    if rows != [(n, count, count) for n, count in enumerate(counts)]:
        wrong.append(f"{counts} rows were acknowledged, {rows} are there")
    for name, most in (("most / fewest commits", RATIO), ("most often overtaken", OVERTAKEN)):
        wrong += [f"{counted[name]} {name}, more than {most}"] if counted[name] > most else []
    return counted, wrong
