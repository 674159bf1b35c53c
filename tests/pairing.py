"""Two transactions that meet: M, which has read its base, and W, the winner, which commits before M takes the commit lock.

What a transaction does is a `Kind`; a `Case` is a pair of them in one state of a table, at one level; `Three` lets them meet on a lake.
Says nothing of what is right: that is `promises.py`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from oracle import Oracle, multiset
from racing import flush

import lakelite
from lakelite import steps
from lakelite.errors import Error

State = Literal["clean", "with deletion vector", "inline", "inline with deletion vector"]
STATES: tuple[State, ...] = ("clean", "with deletion vector", "inline", "inline with deletion vector")
Overlap = Literal["same rows", "same fragment", "other fragment"]
OVERLAPS: tuple[Overlap, ...] = ("same rows", "same fragment", "other fragment")
Level = Literal["serializable", "write serializable", "snapshot"]  # of M
LEVELS: tuple[Level, ...] = ("serializable", "write serializable", "snapshot")
KEYS: dict[Overlap, tuple[str, str]] = {"same rows": ("2, 3", "3, 4"), "same fragment": ("2, 3", "5, 6"), "other fragment": ("2, 3", "12, 13")}
GONE = (1, 4, 14)  # keys that the deletion vectors of the states with some hold
Contents = dict[str, tuple[list[str], Counter[str]]]  # by table: its columns, and its rows
DIVIDED = " PARTITIONED BY (bucket(3, k))" if os.environ.get("LAKELITE_PARTITIONED") else ""  # by hand: nothing may come out differently
_TARGET = re.compile(
    r"(?:INSERT INTO|INSERT OVERWRITE|DELETE FROM|UPDATE|TRUNCATE|CREATE (?:OR REPLACE )?TABLE|DROP TABLE|ALTER TABLE|MERGE INTO) \{(\w)\}"
)


@dataclass(frozen=True)
class Kind:
    """What a transaction does. `{t}`, `{u}`: the tables; `{keys}`: two keys, where `by_keys`. `queries`: what it hands out first.

    `fails`: statements before that which fail, as the application is told; `undone`: some that it takes back, of whose numbers of rows it
    was told; kinds with either are only ever M. `by_id`: it changes columns or names in a way that leaves what is bound by field id right, so that it
    is the same before and after. `redefines`: it drops the table or gives it other columns. `blind`: it only appends and reads nothing. `upkeep`:
    the OPTIMIZE statement that it is, or FLUSH; it changes no row. `in_place`: what does the same to the rows and leaves the columns where they
    are: for statements that were bound before, by name, their place is that of then. `supersedes`: it overwrites the table as the first thing
    that it does there, and without reading it.
    """

    name: str
    statements: tuple[str, ...]
    queries: tuple[str, ...] = ()
    by_keys: bool = False
    redefines: bool = False
    blind: bool = False
    upkeep: str = ""
    by_id: bool = False
    in_place: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    supersedes: bool = False

    @property
    def defines(self) -> bool:
        return any(s.split()[0] in ("CREATE", "DROP", "ALTER") for s in self.statements)

    @property
    def overwrites(self) -> bool:
        return any(s.startswith(("INSERT OVERWRITE", "CREATE OR REPLACE")) for s in self.statements)

    @property
    def drops(self) -> bool:
        return any(s.startswith("DROP TABLE") for s in self.statements)

    @property
    def drops_column(self) -> bool:
        return any("DROP COLUMN" in s for s in self.statements)

    @property
    def writes(self) -> set[str]:
        """The tables that it writes, of t and u."""
        return {found[1] for s in self.statements if (found := _TARGET.match(s))}

    @property
    def reads_t(self) -> bool:
        """Whether what it writes depends on rows of t."""
        return any(re.search(r"\{t\}(?!_)", _TARGET.sub("", s, count=1)) for s in self.statements)

    def counted(self, counts: list[int]) -> list[int]:
        """Of the numbers of rows of its statements those that it is told: DDL tells of none, unless rows are selected."""
        of_rows = [s.split()[0] in ("INSERT", "DELETE", "UPDATE", "TRUNCATE", "MERGE") or " AS SELECT " in s for s in self.statements]
        return [n for n, is_told in zip(counts, of_rows, strict=False) if is_told]

    @property
    def is_single(self) -> bool:
        return len(self.statements) == 1 and not (self.queries or self.is_only_mine)

    @property
    def is_only_mine(self) -> bool:
        return bool(self.fails or self.undone)


@dataclass
class Case:
    mine: Kind
    theirs: Kind
    state: State
    overlap: Overlap
    explicit: bool
    level: Level
    number: int

    def __str__(self) -> str:
        mode = "explicit" if self.explicit else "autocommit"
        return f"M {self.mine.name} / W {self.theirs.name} [{self.state}, {self.overlap}, {mode}, {self.level}]"

    def text(self, sql: str, keys: str = "") -> str:
        return sql.format(t=f"t{self.number}", u=f"u{self.number}", keys=keys)

    def my(self, sql: str) -> str:
        return self.text(sql, KEYS[self.overlap][0])

    def their(self, sql: str) -> str:
        return self.text(sql, KEYS[self.overlap][1])

    @property
    def names(self) -> list[str]:
        return [self.text(name) for name in ("{t}", "{u}", "{t}_renamed")]


@dataclass
class Outcome:
    """`shown`: the rows of M's queries. `counts`: rows changed by each statement of M, as it was told, `undone`: by each that it took back.
    `error`: what M raised.
    """

    shown: list[Counter[str]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    undone: list[int] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    error: Error | None = None


class Three:
    """A lake with three connections: M, W, and one for upkeep."""

    def __init__(self, path: Path, state: State) -> None:
        self.state = state
        self.m, self.w, self.f = (lakelite.connect(path, autocommit=True, author=a) for a in ("mine", "winner", "upkeep"))
        self.f.execute("SET flush_fragments = 0")
        if state == "clean":
            for con in (self.m, self.w):
                con.execute("SET inline_rows = 0")

    def close(self) -> None:
        for con in (self.m, self.w, self.f):
            con.close()

    def build(self, cases: list[Case], oracle: Oracle) -> None:
        """The tables of all cases, in few snapshots: each table has two fragments."""
        if "inline" not in self.state:
            self.w.execute("SET inline_rows = 0")
        made = "CREATE TABLE {name} AS SELECT k::INTEGER AS k, v::INTEGER AS v, s::VARCHAR AS s FROM ({rows}) AS rows(k, v, s)"
        parts = [
            [
                made.format(name="{t}", rows="SELECT range, range % 7, 'a' FROM range(10)"),
                made.format(name="{u}", rows="VALUES (3, 3, 'u'), (13, 3, NULL), (30, 3, 'u')"),
            ],
            ["INSERT INTO {t} SELECT range, range % 7, CASE WHEN range = 12 THEN NULL ELSE 'b' END FROM range(10, 20)"],
            [f"DELETE FROM {{t}} WHERE k IN {GONE}"] if "vector" in self.state else [],
        ]
        for part in parts:
            script = [case.text(sql) for case in cases for sql in part]
            self.w.execute("; ".join(["BEGIN", *(sql.replace(" AS SELECT", f"{DIVIDED} AS SELECT", 1) for sql in script), "COMMIT"]))
            for sql in script:
                oracle.run(sql)
        if self.state != "clean":
            self.w.execute("RESET inline_rows")

    def upkeep(self, case: Case, kind: Kind) -> None:
        if kind.upkeep == "FLUSH":
            flush(self.f, case.text("{t}"))
        else:
            self.f.execute(case.text(kind.upkeep))

    def win(self, case: Case) -> None:
        if case.theirs.upkeep:
            self.upkeep(case, case.theirs)
        elif case.theirs.is_single:
            self.w.execute(case.their(case.theirs.statements[0]))
        else:
            self.w.execute("BEGIN")
            for sql in case.theirs.queries:
                self.w.execute(case.their(sql)).fetchall()
            self.w.execute("; ".join([*map(case.their, case.theirs.statements), "COMMIT"]))

    def meet(self, case: Case) -> Outcome:
        outcome = Outcome()
        self.m.isolation = self.f.isolation = case.level
        try:
            if case.explicit:
                self._explicit(case, outcome)
            else:
                self._autocommit(case, outcome)
        except Error as error:
            outcome.error = error
        assert not self.m.in_transaction
        return outcome

    def _explicit(self, case: Case, outcome: Outcome) -> None:
        self.m.execute(f"BEGIN ISOLATION LEVEL {case.level}")
        for sql in case.mine.fails:
            try:
                self.m.execute(case.my(sql))
            except Error:
                continue
            raise AssertionError(f"{sql} has to fail")
        for sql in case.mine.undone:
            self.m.execute("SAVEPOINT a")
            outcome.undone.append(self.m.execute(case.my(sql)).rowcount)
            self.m.execute("ROLLBACK TO a")
        outcome.shown = [multiset(self.m.execute(case.my(sql)).fetchall()) for sql in case.mine.queries]
        outcome.counts = [self.m.execute(case.my(sql)).rowcount for sql in case.mine.statements]
        self.win(case)
        outcome.messages = [text for _, text in self.m.execute("COMMIT").messages]

    def _autocommit(self, case: Case, outcome: Outcome) -> None:
        with before_the_lock(lambda: self.win(case)):
            if case.mine.upkeep:
                self.upkeep(case, case.mine)
            else:
                cursor = self.m.execute(case.my(case.mine.statements[0]))
                outcome.counts, outcome.messages = [cursor.rowcount], [text for _, text in cursor.messages]

    def contents(self, names: list[str]) -> Contents:
        """Of the tables that are there."""
        found = {}
        there = {name for (name,) in self.w.execute("SHOW TABLES").fetchall()}
        for name in names:
            if name in there:
                cursor = self.w.execute(f"SELECT * FROM {name}")
                found[name] = ([d[0] for d in cursor.description], multiset(cursor.fetchall()))
        return found


@contextmanager
def before_the_lock(win: Callable[[], None]) -> Iterator[list[bool]]:
    """Runs `win` once, when the first commit inside has made its files durable and is about to take the commit lock."""
    done: list[bool] = []

    def hook(step: steps.Step) -> None:
        if step == "sync_directory" and not done:
            done.append(True)
            win()

    before, steps.hook = steps.hook, hook
    try:
        yield done
        hook("sync_directory")
    finally:
        steps.hook = before
