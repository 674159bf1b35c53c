"""Random transactions with savepoints, and another connection that commits meanwhile, against SQLite, whose savepoints mean the same.

`head` is an SQLite database to which every commit is applied, in order: a transaction's standing statements when it has
committed, so that it is always the last one. An open transaction has a copy of its own, in which it runs with its savepoints.
What a level promises has to come out the same when the whole of it is run on the head; a conflict is right only where it does not.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from drawing import rounds
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

import lakelite

NAMES = ("a", "B", "b", "c")
PHASES = set(Phase) - {Phase.shrink, Phase.explain}  # a failing run is reported at once: shrinking it takes many minutes
SEEDS = st.binary(min_size=6, max_size=6)  # integers would be small ones most of the time
WANTED = {"undone", "released", "failed", "held", "committed", "nothing stood", "conflict"}
FAILED = "failed"
Told = list[Any] | int | str | None  # the rows of a SELECT, a number of rows, FAILED, or nothing


def table(r: random.Random) -> str:
    return r.choice("tttuuux")  # x is made and dropped


def data(r: random.Random) -> tuple[str, bool]:
    """A change, and whether it is a blind append."""
    t, u, k, v = table(r), table(r), r.randrange(5), r.randrange(5)
    texts = (
        f"INSERT INTO {t} VALUES ({k}, {v})",
        f"INSERT INTO {t} VALUES ({k}, {v}), ({v}, {k}), ({k}, {k})",
        f"INSERT INTO {t} SELECT k + 1, v FROM {u} WHERE v < 3 AND k < 6",
        f"INSERT INTO {t} SELECT {k}, count(*) FROM {u}",
        f"DELETE FROM {t} WHERE k = {k}",
        f"UPDATE {t} SET v = v + 1 WHERE k = {k}",
        f"DELETE FROM {t} WHERE k IN (SELECT v FROM {u})",
    )
    kind = r.randrange(len(texts))
    return texts[kind], kind < 2


def definition(r: random.Random) -> str:
    t, u = table(r), table(r)
    return r.choice(
        (
            f"CREATE TABLE {t} (k INTEGER, v INTEGER)",
            f"DROP TABLE {t}",
            f"CREATE TABLE {t} AS SELECT k, v FROM {u}",
            "CREATE TABLE x (k INTEGER, v INTEGER)",
        )
    )


def sqlite() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


class Savepoints(RuleBasedStateMachine):
    level: ClassVar[str] = "write serializable"
    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.con, self.other = self.connect(), self.connect()
        self.head = sqlite()
        self.view: sqlite3.Connection | None = None
        self.log: list[str] = []
        self.marks: list[tuple[str, int]] = []  # name, statements that stood
        self.events: list[tuple[str, Told]] = []  # every statement, and what was told of it
        self.blind = False  # whether the other connection has appended blindly meanwhile
        self.message = ""
        self.open: list[tuple[Any, list[Any]]] = []
        for sql in ("CREATE TABLE t (k INTEGER, v INTEGER)", "CREATE TABLE u (k INTEGER, v INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 0)"):
            self.con.execute(sql)
            self.head.execute(sql)

    def connect(self) -> lakelite.Connection:
        con = lakelite.connect(f"{self.folder.name}/lake", autocommit=True)
        con.execute("SET inline_rows = 1")
        return con

    def teardown(self) -> None:
        for cursor, rows in self.open:
            assert sorted(cursor.fetchall()) == rows
        self.con.close()
        self.other.close()
        for oracle in (self.head, self.view):
            if oracle is not None:
                oracle.close()
        self.folder.cleanup()

    # One statement on both sides.

    def both(self, sql: str, oracle: sqlite3.Connection) -> tuple[Any, Any]:
        """Runs `sql` on the lake and on SQLite: both go well or both fail. Gives both cursors, or (None, None)."""
        note(sql)
        try:
            expected = oracle.execute(sql)
        except sqlite3.Error as error:
            with pytest.raises(lakelite.ProgrammingError):
                self.con.execute(sql)
            self.reached["failed"] += 1
            note(f"  fails: {error}")
            self.events.append((sql, FAILED))
            return None, None
        return self.con.execute(sql), expected

    def change(self, sql: str) -> None:
        got, expected = self.both(sql, self.view or self.head)
        if got is None:
            return
        assert got.rowcount == expected.rowcount or sql.startswith(("CREATE", "DROP"))
        if self.view is None:
            self.recorded()
        else:
            self.log.append(sql)
            self.events.append((sql, None if sql.startswith(("CREATE", "DROP")) else int(got.rowcount)))

    def recorded(self) -> None:
        """A commit has landed: with the message, which is used then."""
        history = self.con.execute("DESCRIBE HISTORY LIMIT 1")
        names = [d[0] for d in history.description]
        assert (history.fetchall()[0][names.index("message")] or "") == self.message
        self.message = ""

    def look(self, name: str, *, hold: bool) -> None:
        got, expected = self.both(f"SELECT k, v FROM {name}", self.view or self.head)
        if got is None:
            return
        rows = sorted(expected.fetchall())
        self.events.append((f"SELECT k, v FROM {name}", [*rows]))
        if hold and rows:
            rows.remove(got.fetchone())
            self.open.append((got, rows))
            self.reached["held"] += 1
        else:
            assert sorted(got.fetchall()) == rows

    def read_on(self) -> None:
        cursor, rows = self.open.pop(0)
        assert sorted(cursor.fetchall()) == rows

    def set_message(self, message: str) -> None:
        note(f"message {message}")
        self.con.execute("SET commit_message = ?", [message])
        self.message = message

    @rule(seed=SEEDS)
    def step(self, seed: bytes) -> None:
        r = random.Random(seed)
        match r.randrange(24):
            case 0 | 1 if self.open:
                self.read_on()
            case 2:
                self.set_message(r.choice(("one", "two", "")))
            case 3:
                self.change(definition(r))
            case 4 | 5:
                self.meanwhile(*data(r))
            case 6 | 7 | 9 | 19:
                self.look(table(r), hold=r.random() < 0.5)
            case 8 if self.view:
                self.commit()
            case 10 if self.view:
                self.rollback()
            case 11 | 12 | 13 if self.view:
                self.savepoint(r.choice(NAMES))
            case 14 | 15 if self.view:
                self.release(self.name(r))
            case 16 | 17 | 18 if self.view and self.marks:
                self.roll_back_to(self.name(r))
            case 8 | 9 | 10 | 11 | 12 | 13 | 14 if self.view is None:
                self.begin()
            case _:
                self.change(data(r)[0])
        assert self.con.execute("SHOW commit_message").fetchall() == [(self.message,)]

    # Transactions.

    def begin(self) -> None:
        note("BEGIN")
        self.con.execute(f"BEGIN ISOLATION LEVEL {self.level}")
        self.view = sqlite()
        self.head.backup(self.view)
        self.view.execute("BEGIN")
        self.log, self.marks, self.events, self.blind = [], [], [], False

    def savepoint(self, name: str) -> None:
        self.both(f"SAVEPOINT {name}", self.view)
        self.events.append((f"SAVEPOINT {name}", None))
        self.marks.append((name.lower(), len(self.log)))

    def name(self, r: random.Random) -> str:
        """Mostly one that is there."""
        return r.choice([*(name for name, _ in self.marks), r.choice(NAMES)])

    def found(self, name: str) -> int | None:
        return next((i for i in range(len(self.marks) - 1, -1, -1) if self.marks[i][0] == name.lower()), None)

    def release(self, name: str) -> None:
        got, _ = self.both(f"RELEASE {name}", self.view)
        found = self.found(name)
        assert (got is None) == (found is None)
        if found is not None:
            self.reached["released"] += 1
            self.events.append((f"RELEASE {name}", None))
            del self.marks[found:]

    def roll_back_to(self, name: str) -> None:
        got, _ = self.both(f"ROLLBACK TO {name}", self.view)
        found = self.found(name)
        assert (got is None) == (found is None)
        if found is not None:
            self.events.append((f"ROLLBACK TO {name}", None))
            self.reached["undone"] += len(self.log) > self.marks[found][1]
            del self.marks[found + 1 :]
            del self.log[self.marks[found][1] :]

    def differs(self) -> bool:
        """Whether the whole transaction, run on the head with what it took back, would be told something else, or fails there."""
        again = sqlite()
        self.head.backup(again)
        try:
            again.execute("BEGIN")
            return any(now != told for told, now in self.run_again(again))
        except sqlite3.Error:
            return True
        finally:
            again.close()

    def run_again(self, oracle: sqlite3.Connection) -> Iterator[tuple[Told, Told]]:
        """What was told of each statement that the level promises something of, and what would be now."""
        promises_all = self.level == "serializable"
        for sql, told in self.events:
            if told == FAILED:
                if promises_all:
                    yield told, self.again_fails(oracle, sql)
                continue
            cursor = oracle.execute(sql)
            if isinstance(told, list):
                yield told, sorted(cursor.fetchall())
            elif promises_all and told is not None:
                yield told, cursor.rowcount

    def again_fails(self, oracle: sqlite3.Connection, sql: str) -> Told:
        try:
            oracle.execute(sql)
        except sqlite3.Error:
            return FAILED
        return None

    def meanwhile(self, sql: str, blind: bool) -> None:
        """The other connection commits."""
        note(f"other: {sql}")
        try:
            self.head.execute(sql)
        except sqlite3.Error:
            return
        self.other.execute(sql)
        self.blind = self.blind or blind
        self.compare()

    def refused(self) -> lakelite.TransactionConflict | None:
        try:
            self.con.execute("COMMIT")
        except lakelite.TransactionConflict as conflict:
            return conflict
        return None

    def commit(self) -> None:
        note("COMMIT")
        before, differs = self.con.last_commit, self.differs()
        foretold = {row[2] for row in self.con.execute("EXPLAIN COMMIT").fetchall()}
        if conflict := self.refused():
            self.reached["conflict"] += 1
            assert self.log, f"nothing that it wrote stands: {conflict}"
            assert differs, f"needless: {conflict}"
            assert "conflict" in foretold
        elif self.log:
            self.reached["committed"] += 1
            assert foretold <= {"commit"}
            assert (self.blind and self.level != "serializable") or not differs, "something was handed out that would be another now"
            for sql in self.log:
                self.head.execute(sql)
            self.recorded()
        else:
            self.reached["nothing stood"] += 1
            assert self.con.last_commit is before
        self.over()

    def rollback(self) -> None:
        note("ROLLBACK")
        self.con.execute("ROLLBACK")
        self.over()

    def over(self) -> None:
        assert self.view is not None
        self.view.close()
        self.view = None
        assert not self.con.in_transaction
        self.compare()

    def compare(self) -> None:
        """Another connection sees what was committed, and files that nobody needs are gone."""
        tables = [name for (name,) in self.head.execute("SELECT name FROM sqlite_master ORDER BY name")]
        assert [name for (name,) in self.other.execute("SHOW TABLES").fetchall()] == tables
        for name in tables:
            sql = f"SELECT k, v FROM {name}"
            assert sorted(self.other.execute(sql).fetchall()) == sorted(self.head.execute(sql).fetchall())
        if self.view is None and not self.open:
            root = Path(self.folder.name, "lake")
            with sqlite3.connect(root / "catalog.sqlite") as catalog:
                known = {path for (path,) in catalog.execute("SELECT path FROM fragments WHERE path IS NOT NULL")}
            catalog.close()
            assert {path.name for path in root.glob("data/*/*.parquet")} == known


class SerializableSavepoints(Savepoints):
    """Numbers of rows and errors are promised as well, and rows of blind appends count."""

    level = "serializable"
    reached: ClassVar[Counter[str]] = Counter()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("machine", [Savepoints, SerializableSavepoints])
def test_savepoints_are_those_of_sqlite(machine: type[Savepoints]) -> None:
    checks = settings(max_examples=10, stateful_step_count=50, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    for _ in rounds(machine, checks, most=4):
        if machine.reached.keys() >= WANTED:
            break
    assert machine.reached.keys() >= WANTED, machine.reached
