"""kill -9, at every named step of every kind of commit, in replays, re-evaluations and flushes, and at times that chance draws.

Owns a fork server for the run. Each child opens what the one before it left, tells what it finds and what one sweep leaves, writes, and is
killed; acknowledgements come over a pipe. A model (plain DuckDB) runs what was acknowledged, and what had passed its commit point.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
from crashing import Event, Server, contents, rows

import lakelite
from lakelite.steps import STEPS
from trust.figures import Failure, Figures
from trust.places import folder_in_memory

PROMISE = "kill -9 at any moment: no acknowledged commit is lost or doubled, what was not acknowledged is there whole or not at all, one sweep leaves no orphan"
HOW = "a fork server; every step of every kind of commit, alone and meeting a winner, then random steps and random times"
SIZES = (40, 500, 5000)  # kills

KILLED = -9
A_LAKE = 26  # kills on one lake, so that its tables stay small
RANDOM_TIMES = 0.07  # of the kills that are drawn
LONGEST_WAIT_S = 0.02
STATEMENTS = 8  # of each writer that is killed at a random time

SETUP = (
    "CREATE TABLE acknowledged (n INTEGER)",
    "CREATE TABLE t (k INTEGER, v VARCHAR)",
    "INSERT INTO t SELECT range::INTEGER, 'v' || range FROM range(120)",
    "CREATE TABLE u (k INTEGER)",
    "INSERT INTO u SELECT range::INTEGER FROM range(60)",
    "CREATE TABLE d (a INTEGER)",
    "CREATE TABLE writers (writer INTEGER, i INTEGER, x BIGINT)",
)
APPEND = "INSERT INTO t VALUES (-{n}, 'winner')"


@dataclass(frozen=True)
class Kind:
    """A kind of commit; {n} is the number of the kill. `before`: run and acknowledged first; `winner`: what may land meanwhile."""

    statements: tuple[str, ...]
    before: tuple[str, ...] = ("SET inline_rows = 2",)
    winner: str = APPEND


KINDS = {
    "inline insert": Kind(("INSERT INTO t VALUES (1000 + {n}, 'inline'), (2000 + {n}, NULL)",), before=()),
    "parquet insert": Kind(("INSERT INTO t SELECT 1000 * {n} + range, 'file' FROM range(30)",)),
    "delete": Kind(("DELETE FROM t WHERE k % 20 = {n} % 20",), winner="DELETE FROM t WHERE k % 20 = {n} % 20 AND k > 50"),
    "update": Kind(("UPDATE t SET v = v || '!' WHERE k % 20 = {n} % 20",)),
    "create table as": Kind(("CREATE TABLE c{n} AS SELECT k, v FROM t WHERE k % 20 = {n} % 20",)),
    "transaction": Kind(
        ("BEGIN", "INSERT INTO t SELECT 1000 + {n}, 'tx' FROM range(5)", "DELETE FROM u WHERE k % 20 = {n} % 20", "CREATE TABLE x{n} AS FROM u", "COMMIT"),
    ),
    "drop": Kind(
        ("DROP TABLE d",),
        before=("CREATE TABLE IF NOT EXISTS d (a INTEGER)", "INSERT INTO d VALUES ({n})"),
        winner="CREATE TABLE w{n} (a INTEGER)",
    ),
}  # fmt: skip
REPLAYED = Kind(("UPDATE t SET v = v || '!' WHERE k % 20 = {n} % 20 AND k <= (SELECT max(k) FROM t)",))
FLUSHED = Kind(
    ("INSERT INTO f{n} VALUES ({n})",), before=("CREATE TABLE f{n} (k INTEGER)", "INSERT INTO f{n} VALUES (-1)", "SET flush_fragments = 1")
)
SWEPT = replace(KINDS["parquet insert"], winner="VACUUM")
LATE = "sync_directory"  # the winner lands when all is ready for the commit lock


@dataclass(frozen=True)
class Kill:
    """Where one child dies: at the `nth` time of `step`, or, with no step, `wait_s` behind acknowledgement number `nth` of three writers."""

    kind: Kind = KINDS["inline insert"]
    step: str = ""
    nth: int = 1
    meets: bool = False
    lands: str = "scan"
    wait_s: float = 0.0

    def has_landed(self) -> bool:
        """Whether what dies at the step has passed its commit point: a flush comes behind an insert that has."""
        return self.kind is FLUSHED or STEPS.index(self.step) >= STEPS.index("committed")  # type: ignore[arg-type]


def systematic() -> Iterator[Kill]:
    """Every step of every kind, the resolve step with a winner; a flush; a replay and a re-evaluation, before files are synced and after; a sweep."""
    for kind in KINDS.values():
        yield from (Kill(kind, step, meets=step == "resolve") for step in STEPS)
    yield from (Kill(FLUSHED, step, nth=2) for step in STEPS if step not in ("scan", "write", "resolve"))
    replayed = [(step, 2, LATE) for step in ("scan", "write", "sync_files", "sync_directory", "lock")]
    replayed += [("scan", 2, "scan"), ("write", 2, "scan"), ("sync_files", 1, "scan"), ("committed", 1, "scan"), ("committed", 1, LATE)]
    yield from (Kill(REPLAYED, step, nth, True, lands) for step, nth, lands in replayed)
    yield from (Kill(KINDS["update"], step, 1, True, LATE) for step in ("lock", "resolve", "sync_again", "publish", "commit", "committed"))
    yield from (Kill(SWEPT, step, 1, True, LATE) for step in ("lock", "publish", "committed", "answer"))


def drawn(random: random.Random, count: int) -> list[Kill]:
    """`count` kills: the systematic ones (a sample, where there is no room for all), then random ones."""
    first = list(systematic())
    if count < len(first):
        return random.sample(first, count)
    planned = first + [drawn_one(random) for _ in range(count - len(first))]
    random.shuffle(planned)
    return planned


def drawn_one(random: random.Random) -> Kill:
    if random.random() < RANDOM_TIMES:
        return Kill(nth=random.randint(1, STATEMENTS), wait_s=random.uniform(0, LONGEST_WAIT_S))
    steps = [step for step in STEPS if step not in ("scan", "write", "sync_again")]  # reached by every kind
    step = random.choice(steps)
    return Kill(random.choice(list(KINDS.values())), step, 1, step == "resolve" or random.random() < 0.5, random.choice(["scan", LATE]))


@dataclass
class Tally:
    """What was counted; `failures` by kill."""

    kills: int = 0
    acknowledged: int = 0
    in_flight_landed: int = 0
    sweeps: int = 0
    found: list[tuple[Kill | None, str]] = field(default_factory=list)


def run(seed: int, size: int, bug: str | None = None, kills: list[Kill] | None = None) -> Figures:
    """`size` kills, or those given, with a bug or without. A lake on which something did not hold is left at that."""
    chance = random.Random(seed)
    planned = drawn(chance, size) if kills is None else kills
    tally = Tally()
    with closing(Server()) as server:
        for first in range(0, len(planned), A_LAKE):
            with folder_in_memory() as folder, Rounds(server, folder / "lake", tally, bug).all_done() as rounds:
                rounds.go(planned[first : first + A_LAKE])
    return figures(tally)


def figures(tally: Tally) -> Figures:
    script = "from trust import kill\nfrom trust.kill import Kill, Kind\n\nprint(*kill.run(0, 0, kills=[{kill!r}] * 10).failures, sep='\\n')\n"
    counted = {
        "kills": tally.kills, "acknowledged statements": tally.acknowledged, "commits that landed without an answer": tally.in_flight_landed,
        "sweeps behind a kill": tally.sweeps, "lost, doubled or left": len(tally.found),
    }  # fmt: skip
    return Figures(counted, tuple(Failure(f"killed at {kill}: {what}", script.format(kill=kill)) for kill, what in tally.found))


class Wrong(Exception):
    """What the lake holds is not what the model says."""


class Rounds:
    """The kills on one lake, and the model of it."""

    def __init__(self, server: Server, lake: Path, tally: Tally, bug: str | None) -> None:
        self.server, self.lake, self.tally, self.bug = server, lake, tally, bug
        self.model = duckdb.connect()
        self.open: dict[int, tuple[int, list[str]]] = {}  # writers that died at a random time: acknowledged statements, script
        self.last: Kill | None = None

    @contextmanager
    def all_done(self) -> Iterator[Rounds]:
        with closing(self.model):
            yield self

    def go(self, kills: list[Kill]) -> None:
        try:
            with closing(lakelite.connect(self.lake, autocommit=True)) as con:
                con.execute("SET inline_rows = 2")
                for sql in SETUP:
                    con.execute(sql)
                    self.model.execute(sql)
            for n, kill in enumerate(kills, start=1):
                (self.at_step if kill.step else self.at_time)(n, kill)
                self.last = kill
            self.end()
        except Wrong as wrong:
            self.tally.found.append((self.last, str(wrong)))

    def at_step(self, n: int, kill: Kill) -> None:
        winner = kill.kind.winner.format(n=n) if kill.meets else None
        before = [sql.format(n=n) for sql in (*kill.kind.before, "INSERT INTO acknowledged VALUES ({n})")]
        statements = [sql.format(n=n) for sql in kill.kind.statements]
        job = self.server.start(
            "kill", self.bug, lake=str(self.lake), before=before, statements=statements, step=kill.step, nth=kill.nth, winner=winner, lands=kill.lands,
            looks=True,
        )  # fmt: skip
        events, status = job.finish()
        self.look(events)
        self.dead(kill, status, [e for e in events if e["event"] == "error"])
        landed = [e["sql"] for e in events if e["event"] == "acknowledged" and e["sql"] in (*before, winner)]
        if kill.has_landed():
            landed += statements
            self.tally.in_flight_landed += 1
        for sql in landed:
            if not sql.startswith(("SET ", "VACUUM")):
                self.model.execute(sql)

    def at_time(self, n: int, kill: Kill) -> None:
        scripts = {number: script_of(number) for number in range(3 * n, 3 * n + 3)}
        job = self.server.start("write_until_killed", self.bug, lake=str(self.lake), scripts=list(scripts.items()))
        seen = [job.wait_for("found"), *(job.wait_for("acknowledged") for _ in range(kill.nth))]
        time.sleep(kill.wait_s)  # a random time is the point
        events, status = job.kill()
        self.look([*seen, *events])
        self.dead(kill, status, [e for e in events if e["event"] == "error"])
        done = dict.fromkeys(scripts, 0)
        for event in (*seen[1:], *events):
            done[event["script"]] += 1
        self.open = {number: (done[number], script) for number, script in scripts.items()}

    def dead(self, kill: Kill, status: int, errors: list[Event]) -> None:
        self.last = kill
        if errors or status != KILLED:
            raise Wrong(f"ended with {status} instead: {errors}")
        self.tally.kills += 1

    def look(self, events: list[Event]) -> None:
        """What the child found, against the model, in which each writer that died at a random time stands where it was found."""
        if not events or events[0]["event"] != "found":
            raise Wrong(f"it cannot be opened and read: {events}")
        found = events[0]
        self.tally.acknowledged += sum(event["event"] == "acknowledged" for event in events)
        self.tally.sweeps += 1
        tables = {name: [tuple(row) for row in table] for name, table in found["tables"].items()}
        self.settle(tables)
        expected = contents(self.model)
        for name in sorted(tables.keys() | expected.keys()):
            if tables.get(name) != expected.get(name):
                raise Wrong(difference(name, expected.get(name), tables.get(name)))
        if found["orphans"] or found["missing"]:
            raise Wrong(f"orphans behind a sweep: {found['orphans']}; missing: {found['missing']}")

    def settle(self, tables: dict[str, list[tuple[Any, ...]]]) -> None:
        for number, (acknowledged, script) in self.open.items():
            mine = [row for row in tables["writers"] if row[0] == number]
            for sql in script[:acknowledged]:
                self.model.execute(sql)
            if mine != self.rows_of(number) and acknowledged < len(script):
                self.model.execute(script[acknowledged])
                self.tally.in_flight_landed += 1
        self.open = {}

    def rows_of(self, number: int) -> list[tuple[Any, ...]]:
        return rows(self.model, f"FROM writers WHERE writer = {number} ORDER BY ALL")

    def end(self) -> None:
        """Behind the last kill: a child that only looks; then the lake is whole, and takes a commit."""
        job = self.server.start("kill", lake=str(self.lake), before=[], statements=[], step="", nth=1, winner=None, lands="", looks=True)
        self.look(job.finish()[0])
        with closing(lakelite.connect(self.lake, autocommit=True)) as con:
            if damage := rows(con, "CHECK LAKE"):
                raise Wrong(f"CHECK LAKE: {damage}")
            con.execute("INSERT INTO acknowledged VALUES (-1)")


def difference(name: str, expected: list[Any] | None, found: list[Any] | None) -> str:
    if expected is None or found is None:
        return f"table {name} is {'there' if expected is None else 'lost'}"
    lost, more = [row for row in expected if row not in found], [row for row in found if row not in expected]
    return f"table {name}: {len(expected)} rows expected, {len(found)} found; lost {lost[:5]}, too many {more[:5]}"


def script_of(number: int) -> list[str]:
    """Statements of one writer, on rows that are its own, in a table that all share."""
    return [
        [
            f"INSERT INTO writers SELECT {number}, {i}, range FROM range(10)",
            f"INSERT INTO writers VALUES ({number}, {i}, 0)",
            f"UPDATE writers SET x = x + 1 WHERE writer = {number} AND i % 2 = 0",
            f"DELETE FROM writers WHERE writer = {number} AND x % 3 = 0 AND i < {i - 3}",
        ][i % 4]
        for i in range(STATEMENTS)
    ]
