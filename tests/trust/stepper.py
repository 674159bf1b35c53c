"""Three transactions of three steps each, in every order of their steps, over every pair of kinds of operation.

The lake, its oracle and what may conflict are those of the state machine (`interleave/test_machine.py`); here nothing is left to chance
but which of the many schedules a small run takes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement

import interleave.test_machine as machine

from trust.figures import Failure, Figures, again

PROMISE = "any interleaving is as one after the other, and no conflict is needless"
HOW = (
    "3 transactions of 3 steps (begin, statement, commit), every pair of kinds of statement, against plain DuckDB tables; size: schedules of each "
    "chief pair (1,680: all there are), a tenth of that of each other pair"
)
SIZES = (0, 1, 168)
SLOTS, STEPS, ALL = 3, 3, 1_680
CHIEF = ("append", "append count", "delete", "update", "update key", "merge", "overwrite", "look at all", "optimize")
LEVELS = {"write serializable": machine.Interleavings, "serializable": machine.SerializableInterleavings}
LASTS = 12  # schedules on one lake

Schedule = tuple[int, ...]  # whose step comes next, nine times


def kinds() -> tuple[str, ...]:
    found = {machine.statement(random.Random(n)).kind for n in range(1_000)}
    return (*sorted(found), "optimize", "flush")


def run(seed: int, size: int) -> Figures:
    r = random.Random(seed)
    cases = [case for pair in combinations_with_replacement(kinds(), 2) for case in _of_pair(r, pair, size)]
    r.shuffle(cases)
    wrong: list[Failure] = []
    with _silent():
        for first in range(0, len(cases), LASTS):
            wrong += _on_one_lake(r, cases[first : first + LASTS], seed, size)
    met = {tuple(sorted(case[0][:2])) for case in cases}
    counted = {"schedules": len(cases), "pairs of kinds": len(met), "conflicts": machine.outcomes["conflict"]}
    return Figures(counted, tuple(wrong))


Case = tuple[tuple[str, str, str], Schedule]


def _of_pair(r: random.Random, pair: tuple[str, str], size: int) -> Iterator[Case]:
    """The third transaction is of any kind."""
    wanted = min(ALL, size) if {*pair} <= {*CHIEF} else max(1, size // 10)
    for schedule in every_schedule() if wanted == ALL else (_drawn(r) for _ in range(wanted)):
        yield (*pair, r.choice(kinds())), schedule


def every_schedule(left: tuple[int, ...] = (STEPS,) * SLOTS) -> Iterator[Schedule]:
    if not any(left):
        yield ()
    for slot, n in enumerate(left):
        if n:
            for rest in every_schedule((*left[:slot], n - 1, *left[slot + 1 :])):
                yield (slot, *rest)


def _drawn(r: random.Random) -> Schedule:
    """One in which the first two meet: each begins before the other commits."""
    while True:
        found = r.sample([*range(SLOTS)] * STEPS, SLOTS * STEPS)
        begin, end = ([where(found, slot) for slot in (0, 1)] for where in (list.index, _last))
        if max(begin) < min(end):
            return tuple(found)


def _last(found: list[int], slot: int) -> int:
    return len(found) - 1 - found[::-1].index(slot)


def _on_one_lake(r: random.Random, cases: list[Case], seed: int, size: int) -> list[Failure]:
    """Stops at the first that is wrong, since what comes behind it would be, too."""
    lake = LEVELS[r.choice([*LEVELS])]()
    try:
        for names, schedule in cases:
            changes = [_change(r, name) for name in names]
            try:
                step_through(lake, changes, schedule)
            except Exception as error:  # whatever it is, it is not what has to come out
                said = "; ".join(change.sql for change in changes)
                return [Failure(f"{names} in the order {schedule}, at {lake.level}: {said}: {error!r}", again("stepper", seed, size))]
    finally:
        lake.teardown()
    return []


def _change(r: random.Random, kind: str) -> machine.Change:
    table = r.choice(machine.TABLES)
    if kind == "optimize":
        return machine.optimization(table, r.choice(machine.OPTIMIZES))
    if kind == "flush":
        return machine.Change("flush", "flush", table)
    while True:
        found = machine.statement(r)
        if found.kind == kind and table in (found.table, found.shows):
            return found


def step_through(lake: machine.Interleavings, changes: list[machine.Change], schedule: Schedule) -> None:
    """One step of the transaction that is next, until all are over."""
    runs = [transaction(lake, slot, change) for slot, change in enumerate(changes)]
    for number in schedule:
        next(runs[number])()


def transaction(lake: machine.Interleavings, number: int, change: machine.Change) -> Iterator[Callable[[], None]]:
    """The steps of one; upkeep, which is a transaction of its own, is done in its last."""
    slot = lake.slots[number]
    if change.kind in ("optimize", "flush"):
        yield lambda: None
        yield lambda: None
        yield lambda: lake.upkeep(change.table or "", change.sql.replace(f" {change.table}", " {t}"))
        return
    yield lambda: lake.begin(slot)
    yield lambda: lake.run(slot, change)
    yield lambda: lake.commit(slot)


@contextmanager
def _silent() -> Iterator[None]:
    """The machine reports its steps to hypothesis, which is not there."""
    before, machine.note = machine.note, lambda _: None
    machine.outcomes.clear()
    try:
        yield
    finally:
        machine.note = before
