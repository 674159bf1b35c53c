"""Real processes append to lists and read them, beside one that compacts and one that sweeps; no history has a cycle that its level forbids."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import racing

import lakelite
from trust.figures import Failure, Figures, again
from trust.histories import FORBIDDEN, Op, Ran, anomalies

PROMISE = "transactions come out as one after the other, as their level has it: `serializable`, `write serializable`, `snapshot`"
HOW = (
    "list-append by 3 processes, beside one that compacts and one that sweeps; histories searched for G0, G1a, G1b, G1c, G-single, G2; size: "
    "transactions of each process at each level"
)
SIZES = (10, 25, 1_000)
WORKERS = 3


def run(seed: int, size: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        lakes = prepared(Path(folder))
        arguments = [(lakes, number, seed, size, WORKERS) for number in (*range(1, WORKERS + 1), 0, -1)]
        *found, compactions, sweeps = racing.race(racing.append_or_tidy, arguments, racing.PATIENCE_S + size)
        wrong, landed, refused = judged(lakes, found)
    counted = {"transactions": landed, "conflicts": refused, "compactions": compactions, "sweeps": sweeps, "anomalies": len(wrong)}
    return Figures(counted, tuple(Failure(one, again("elle", seed, size)) for one in wrong))


def prepared(folder: Path) -> list[tuple[str, str]]:
    """A lake for each level."""
    lakes = [(str(folder / level.replace(" ", "_")), level) for level in FORBIDDEN]
    for path, _ in lakes:
        with lakelite.connect(path, autocommit=True) as con:
            con.executescript(racing.LIST_TABLES)
    return lakes


def judged(lakes: Sequence[tuple[str, str]], found: Sequence[list[list[tuple[Any, bool]]]]) -> tuple[list[str], int, int]:
    """What is wrong; how many landed; how many were refused. `found`: what each process gave."""
    wrong: list[str] = []
    everything: list[Ran] = []
    for i, (path, level) in enumerate(lakes):
        history = [Ran(n, tuple(Op(*op) for op in ops), landed) for n, lists in enumerate(found) for ops, landed in lists[i]]
        final, findings = held(path)
        wrong += [f"{level}: {one}" for one in anomalies(history, final, level)] + [f"{level}: CHECK LAKE: {one}" for one in findings]
        everything += history
    landed = sum(ran.landed for ran in everything)
    return wrong, landed, len(everything) - landed


def held(path: str) -> tuple[dict[str, tuple[int, ...]], list[tuple[Any, ...]]]:
    """What each key holds now, and what CHECK LAKE finds."""
    final: dict[str, tuple[int, ...]] = {}
    with lakelite.connect(path, autocommit=True) as con:
        for name in "lm":
            for k, values in con.execute(f"FROM {name}").fetchall():
                final[f"{name}{k}"] = (*final.get(f"{name}{k}", ()), *values)
        for k, v in con.execute("FROM s").fetchall():
            final[f"s{k}"] = (*final.get(f"s{k}", ()), v)
        return final, [row for row in con.execute("CHECK LAKE").fetchall() if row[0] == "error"]


def in_threads(seed: int, size: int, levels: Sequence[str]) -> list[str]:
    """What is wrong, with threads of this process in the place of processes, and without upkeep."""
    with tempfile.TemporaryDirectory() as folder:
        lakes = [lake for lake in prepared(Path(folder)) if lake[1] in levels]
        barrier = threading.Barrier(WORKERS)
        with ThreadPoolExecutor(WORKERS) as pool:
            ran = [pool.submit(racing.append_lists, barrier, lakes, number, seed, size) for number in range(1, WORKERS + 1)]
        failed = [f"an error reached the user: {error!r}" for one in ran if (error := one.exception())]
        return failed or judged(lakes, [one.result() for one in ran])[0]
