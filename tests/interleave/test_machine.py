"""Random interleavings of three open transactions, single statements, flushes and OPTIMIZE, against a serial execution.

The oracle runs the statements of each transaction on plain DuckDB tables when it has committed, so in the order of the
snapshots: M is always the last one. Each open transaction also has an oracle of its own, made at its BEGIN: what it sees is its
base with its own changes. A conflict is right only if rows were handed out that somebody changed. Blind appends that met a
replacement of the table are superseded: the oracle does not run them.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from drawing import rounds
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from oracle import Oracle, multiset
from racing import flush, meeting

import lakelite

KEYS = 8
TABLES = ("t", "u")
PHASES = set(Phase) - {Phase.shrink, Phase.explain}  # a failing run is reported at once: shrinking it takes many minutes
SEEDS = st.binary(min_size=6, max_size=6)
pairs: Counter[tuple[str, str]] = Counter()
outcomes: Counter[str] = Counter()


@dataclass(frozen=True)
class Change:
    """A statement: its kind, the table that it changes (None: it only shows rows), the tables that it shows."""

    kind: str
    sql: str
    table: str | None
    shows: str | None = None


@dataclass
class Slot:
    """An open transaction. `base`: how many transactions had committed when it began."""

    con: Any
    number: int
    view: Oracle | None = None
    base: int = 0
    log: list[Change] = field(default_factory=list)
    told: list[Counter[str] | int] = field(default_factory=list)  # of each of the log: the rows of a look, the number of rows changed

    @property
    def shown(self) -> set[str]:
        return {c.shows for c in self.log if c.shows}


@dataclass(frozen=True)
class Committed:
    """What a transaction did. `touched`: tables in which its statements matched rows; `changed`: those that hold other rows since.

    `blind`: it only appended constants. `kinds`: its statements' by table. `supersedes`: tables that it replaced before it did
    anything else there, and never read.
    """

    touched: frozenset[str]
    changed: frozenset[str]
    blind: bool
    kinds: tuple[tuple[str, str], ...]
    supersedes: frozenset[str] = frozenset()


UNCOUNTED = ("replace", "optimize")  # statements that tell of no number of rows
READS_ITS_OWN = {"append from itself", "delete by subquery", "update by subquery", "overwrite", "merge", "merge one"}
READS_THE_OTHER = {"append from other", "append count", "delete by subquery", "update by subquery", "merge"}
BLIND = ("append", "append two")


def reads(change: Change) -> set[str]:
    """The tables whose rows decide what it writes, or that it shows."""
    assert len(TABLES) == 2
    own = {change.table} if change.table and change.kind in READS_ITS_OWN else set()
    other = {t for t in TABLES if t != change.table} if change.kind in READS_THE_OTHER else set()
    return own | other | ({change.shows} if change.shows else set())


def superseded(log: list[Change], winners: list[Committed]) -> bool:
    """Whether a transaction that did `log` is one of blind appends to one table that a winner replaced."""
    tables = {c.table for c in log}
    return len(tables) == 1 and all(c.kind in BLIND for c in log) and any(tables & w.supersedes for w in winners)


def statement(r: random.Random) -> Change:
    t = r.choice((*TABLES, "t"))
    u = "u" if t == "t" else "t"
    a, b, n = r.randrange(KEYS), r.randrange(KEYS), r.randrange(5)
    made = {
        "append": (f"INSERT INTO {t} VALUES ({a}, {n})", t),
        "append two": (f"INSERT INTO {t} VALUES ({a}, {n}), ({b}, NULL)", t),
        "append from itself": (f"INSERT INTO {t} SELECT k, v + 10 FROM {t} WHERE k = {a}", t),
        "append from other": (f"INSERT INTO {t} SELECT * FROM {u} WHERE v < {n}", t),
        "append count": (f"INSERT INTO {t} SELECT {a}, count(*) FROM {u}", t),
        "delete": (f"DELETE FROM {t} WHERE k IN ({a}, {b})", t),
        "delete by value": (f"DELETE FROM {t} WHERE v > {n + 3}", t),
        "delete by subquery": (f"DELETE FROM {t} WHERE k IN (SELECT k FROM {u} WHERE v = {n})", t),
        "update": (f"UPDATE {t} SET v = v + 1 WHERE k IN ({a}, {b})", t),
        "update key": (f"UPDATE {t} SET k = (k + 1) % {KEYS} WHERE v = {n}", t),
        "update all": (f"UPDATE {t} SET v = coalesce(v, 0) % 7", t),
        "update by subquery": (f"UPDATE {t} SET v = (SELECT count(*) FROM {u}) WHERE k = {a}", t),
        "merge": (
            f"MERGE INTO {t} USING (SELECT k, max(v) AS v FROM {u} GROUP BY k) AS s ON {t}.k = s.k WHEN MATCHED AND {t}.v > {n + 2} THEN DELETE"
            f" WHEN MATCHED AND s.k < {a} THEN UPDATE SET v = s.v + {n} WHEN NOT MATCHED AND k > {b} THEN INSERT *"
            f" WHEN NOT MATCHED BY SOURCE AND k = {a} THEN UPDATE SET v = NULL",
            t,
        ),
        "merge one": (
            f"MERGE INTO {t} USING (SELECT {a} AS k, {n} AS v) AS s USING (k) WHEN MATCHED THEN UPDATE SET v = coalesce({t}.v, 0) + s.v"
            " WHEN NOT MATCHED THEN INSERT *",
            t,
        ),
        "overwrite": (f"INSERT OVERWRITE {t} SELECT k, max(v) AS v FROM {t} GROUP BY k", t),
        "truncate": (f"TRUNCATE {t}", t),
        "replace": (f"CREATE OR REPLACE TABLE {t} (k INTEGER, v INTEGER)", t),
    }
    looks = {"look": f"SELECT * FROM {t} WHERE k = {a}", "look at all": f"SELECT count(*), sum(v) FROM {t}"}
    rare = ("truncate", "replace", "overwrite", "look at all")
    kind = r.choice([*(k for k in (*made, *looks) if k not in rare), *made, "append", "delete", "update", "look"])
    return Change(kind, looks[kind], None, t) if kind in looks else Change(kind, made[kind][0], made[kind][1])


def optimization(name: str, sql: str) -> Change:
    return Change("optimize", sql.format(t=name), name)


OPTIMIZES = (
    "OPTIMIZE {t}",
    "OPTIMIZE {t} WHERE k < 4",
    "OPTIMIZE {t} ZORDER BY (v)",
    "OPTIMIZE {t} WHERE k > 2 ZORDER BY (k, v)",
)


class Interleavings(RuleBasedStateMachine):
    level: ClassVar[str] = "write serializable"  # of the open transactions

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.oracle = Oracle()
        self.idle: list[Oracle] = []  # to make one takes longer than all that is done with it
        self.committed: list[Committed] = []
        self.free, self.winner = self.connect(), self.connect()
        self.slots = [Slot(self.connect(), n) for n in range(3)]
        self.flusher = self.connect()
        self.flusher.execute("SET flush_fragments = 0")
        script = [
            "CREATE TABLE t (k INTEGER, v INTEGER)", "CREATE TABLE u (k INTEGER, v INTEGER)",
            f"INSERT INTO t SELECT range, range % 5 FROM range({KEYS})",
            f"INSERT INTO t SELECT range, 9 - range FROM range({KEYS})",
            f"INSERT INTO u SELECT range, range FROM range({KEYS})", "INSERT INTO u VALUES (1, 1), (2, NULL)",
        ]  # fmt: skip
        for sql in script:
            self.free.execute(sql)
            self.oracle.run(sql)

    def connect(self) -> Any:
        con = lakelite.connect(f"{self.folder.name}/lake", autocommit=True)
        con.execute("SET inline_rows = 3; SET target_file_rows = 6")
        return con

    def teardown(self) -> None:
        for con in (self.free, self.winner, self.flusher, *(s.con for s in self.slots)):
            con.close()
        for oracle in (self.oracle, *self.idle, *(slot.view for slot in self.slots if slot.view)):
            oracle.close()
        self.folder.cleanup()

    @rule(number=st.integers(0, 2), seed=SEEDS)
    def step(self, number: int, seed: bytes) -> None:
        r = random.Random(seed)
        slot = self.slots[number]
        match r.randrange(13):
            case 0:
                self.upkeep(r.choice(TABLES), r.choice(("flush", *OPTIMIZES)))
            case 11:
                self.optimize(r.choice(TABLES), r.choice(OPTIMIZES), statement(r))
            case 12 if r.random() < 0.2:  # a meeting that chance alone seldom brings about
                t, k = r.choice(TABLES), r.randrange(KEYS)
                append, replace = Change("append", f"INSERT INTO {t} VALUES ({k}, 1)", t), "CREATE OR REPLACE TABLE {} (k INTEGER, v INTEGER)"
                self.alone(append, Change("replace", replace.format(t), t))
            case 1 | 2 | 12:
                change = statement(r)
                self.alone(change, statement(r) if r.random() < 0.8 else optimization(r.choice(TABLES), r.choice(OPTIMIZES)))
            case 3 if slot.view:
                self.rollback(slot)
            case 4 | 5 | 6 if slot.view and slot.log:
                self.commit(slot)
            case _:
                if slot.view is None:
                    self.begin(slot)
                self.run(slot, statement(r))

    def begin(self, slot: Slot) -> None:
        note(f"{slot.number}: BEGIN")
        slot.con.execute(f"BEGIN ISOLATION LEVEL {self.level}")
        slot.view, slot.base, slot.log, slot.told = self.copy(), len(self.committed), [], []

    def copy(self) -> Oracle:
        """The oracle as it is now."""
        copy = self.idle.pop() if self.idle else Oracle()
        definitions = self.oracle.definitions()
        for name in TABLES:
            copy.run(definitions[name].replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1))
            rows = self.oracle.duck.execute(f"FROM {name}").fetchall()
            if rows:
                copy.run(f"INSERT INTO {name} VALUES {', '.join(f'({k}, {v})' for k, v in rows)}".replace("None", "NULL"))
        return copy

    def looks_differ(self, slot: Slot) -> bool:
        """Whether the transaction, run on the head, would be told something else of what its level promises."""
        with self.oracle.taken_back():
            now = [self.told_of(self.oracle, change) for change in slot.log]
        promised = [c.shows is not None or (self.level == "serializable" and c.kind not in UNCOUNTED) for c in slot.log]
        return any(p and a != b for p, a, b in zip(promised, slot.told, now, strict=True))

    @staticmethod
    def told_of(oracle: Oracle, change: Change) -> Counter[str] | int:
        return multiset(oracle.duck.execute(change.sql).fetchall()) if change.shows else oracle.run(change.sql)

    def run(self, slot: Slot, change: Change) -> None:
        note(f"{slot.number}: {change.sql}")
        cursor = slot.con.execute(change.sql)
        assert slot.view is not None
        slot.told.append(self.told_of(slot.view, change))
        assert change.kind in UNCOUNTED or slot.told[-1] == (multiset(cursor.fetchall()) if change.shows else cursor.rowcount)
        slot.log.append(change)

    def alone(self, change: Change, winner: Change) -> None:
        """In autocommit, with the three others open; mostly `winner` commits while it is on its way."""
        if change.shows or winner.shows:
            note(f"alone: {change.sql}")
            cursor = self.free.execute(change.sql)
            met = []
        else:
            note(f"alone: {change.sql}; while it runs: {winner.sql}")
            with meeting(lambda: self.winner.execute(winner.sql)):
                cursor = self.free.execute(change.sql)
            self.land([winner])
            met = [winner] if winner.table == change.table else []
        if not change.shows:
            is_superseded = bool(met) and superseded([change], self.committed[-1:])
            counts = self.land([] if is_superseded else [change]) or [0]
            outcomes["superseded"] += is_superseded
            assert change.kind in UNCOUNTED or [cursor.rowcount] == counts
        pairs.update((change.kind, w.kind) for w in met)
        self.compare()

    def upkeep(self, name: str, what: str) -> None:
        """A flush or OPTIMIZE that nobody meets."""
        note(f"{what} {name}")
        before = self.head()
        if what == "flush":
            flush(self.flusher, name)
        else:
            self.flusher.execute(what.format(t=name))
        if self.head() > before:
            self.committed.append(Committed(frozenset(), frozenset(), False, ((name, what.split()[0].lower()),)))
        self.compare()

    def optimize(self, name: str, sql: str, winner: Change) -> None:
        """An OPTIMIZE while `winner` commits. It has something to do: the inline fragment that comes before it."""
        self.alone(append := Change("append", f"INSERT INTO {name} VALUES (0, 0), (7, 7)", name), append)
        if not winner.shows:
            self.alone(optimization(name, sql), winner)

    def head(self) -> int:
        return self.free.execute("DESCRIBE HISTORY LIMIT 1").fetchall()[0][0]

    def rollback(self, slot: Slot) -> None:
        note(f"{slot.number}: ROLLBACK")
        slot.con.execute("ROLLBACK")
        self.over(slot)
        self.compare()

    def over(self, slot: Slot) -> None:
        assert slot.view is not None
        self.idle.append(slot.view)
        slot.view = None
        assert not slot.con.in_transaction

    def commit(self, slot: Slot) -> None:
        note(f"{slot.number}: COMMIT")
        winners = self.committed[slot.base :]
        writes = [c for c in slot.log if c.table]
        differ = self.looks_differ(slot)
        try:
            slot.con.execute("COMMIT")
        except lakelite.TransactionConflict as conflict:
            outcomes["conflict"] += 1
            self.check_needed(conflict, may_conflict=differ and bool(writes))
        else:
            self.take_over(slot, winners, writes, differ=differ)
        self.over(slot)
        self.compare()

    @staticmethod
    def check_needed(conflict: lakelite.TransactionConflict, *, may_conflict: bool) -> None:
        assert may_conflict, f"needless: {conflict}"
        assert {c.kind for c in conflict.conflicts} <= {"read changed", "row count changed"}

    def take_over(self, slot: Slot, winners: list[Committed], writes: list[Change], *, differ: bool) -> None:
        """Runs the transaction on the oracle. What it was shown has to come out the same, unless blind appends made the difference."""
        if writes:
            is_blind = self.level != "serializable" and any(w.blind and w.touched for w in winners)
            assert not differ or is_blind, "something was handed out that would be another now, and it committed"
            met = any(table in {c.table for c in writes} for w in winners for table, _ in w.kinds)
            outcomes["met winners" if met else "met none"] += 1
            pairs.update((c.kind, kind) for c in writes for w in winners for table, kind in w.kinds if table == c.table)
            if self.level != "serializable" and superseded(slot.log, winners):
                outcomes["superseded"] += 1
                writes = []
            self.land(writes, looked=slot.shown)

    def land(self, writes: list[Change], *, looked: Iterable[str] = ()) -> list[int]:
        before = self.oracle.contents()
        counts = [0 if c.kind == "optimize" else self.oracle.run(c.sql) for c in writes]
        after = self.oracle.contents()
        touched = frozenset(c.table for c, n in zip(writes, counts, strict=True) if n != 0 and c.table)
        changed = frozenset(t for t in TABLES if before[t] != after[t])
        blind = not looked and all(c.kind in BLIND for c in writes)
        read = {*looked, *(t for c in writes for t in reads(c))}
        first = {c.table or "": c.kind for c in reversed(writes)}
        supersedes = frozenset(t for t, kind in first.items() if kind == "replace" and t not in read and (before[t] or after[t]))
        self.committed.append(Committed(touched, changed, blind, tuple((c.table or "", c.kind) for c in writes), supersedes))
        return counts

    def compare(self) -> None:
        got = {name: multiset(self.free.execute(f"SELECT * FROM {name}").fetchall()) for name in TABLES}
        want = self.oracle.contents()
        assert got == want, "; ".join(f"{t}: too much {got[t] - want[t]}, missing {want[t] - got[t]}" for t in TABLES)


class SerializableInterleavings(Interleavings):
    """Numbers of rows are promised as well, and rows of blind appends count."""

    level = "serializable"


@pytest.mark.timeout(700)
@pytest.mark.parametrize("machine", [Interleavings, SerializableInterleavings])
def test_interleavings_are_as_one_after_the_other(machine: type[Interleavings]) -> None:
    pairs.clear()
    outcomes.clear()
    checks = settings(max_examples=5, stateful_step_count=40, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    wanted = {(m, w) for m in ("append", "delete", "update") for w in ("append", "delete", "update")}
    met: set[tuple[str, str]] = set()
    flushed = False
    for _ in rounds(machine, checks, most=24):
        met = {(m.split()[0], w.split()[0]) for m, w in pairs}
        flushed = any("flush" in pair for pair in pairs)
        compacted = {mine == "optimize" for mine, theirs in pairs if "optimize" in (mine, theirs)}
        if wanted <= met and len(pairs) > 60 and outcomes["conflict"] and outcomes["superseded"] and flushed and len(compacted) == 2:
            break
    assert wanted <= met, f"never met: {wanted - met}; met: {dict(pairs)}"
    assert len(pairs) > 60
    assert outcomes["conflict"]
    assert outcomes["met winners"]
    assert flushed
    assert any("merge" in pair or "merge one" in pair for pair in pairs)
    assert outcomes["superseded"]
    assert any(w == "optimize" != m for m, w in pairs), "nothing met a compaction"
    assert any(m == "optimize" for m, w in pairs), "no compaction met anything"
