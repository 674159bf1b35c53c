"""Every kind of statement against every kind of statement on one table, as named pairs: M meets W, the winner, at its commit.

W commits after M has read its base and before M takes the commit lock; M is the last one. The oracle runs W and then M on
plain DuckDB tables: the lake has to hold the same multisets. A conflict is right only where rows were handed out that W
changed, or where W dropped the table that M means; the lake is then what W alone leaves. So it is where M only appends, blindly,
and W overwrites without having looked: M's rows are superseded.
"""

from __future__ import annotations

import itertools
import os
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import pytest
from oracle import Oracle, multiset
from racing import flush

import lakelite
from lakelite import steps
from lakelite.errors import Error, TransactionConflict

State = Literal["clean", "with deletion vector", "inline", "inline with deletion vector"]
STATES: tuple[State, ...] = ("clean", "with deletion vector", "inline", "inline with deletion vector")
Overlap = Literal["same rows", "same fragment", "other fragment"]
OVERLAPS: tuple[Overlap, ...] = ("same rows", "same fragment", "other fragment")
EVERYTHING = os.environ.get("LAKELITE_ALL_PAIRS") == "1"  # all combinations, which takes minutes; else a part that covers each pair


@dataclass(frozen=True)
class Kind:
    """What a transaction does. `{t}`, `{u}`: the tables; `{keys}`: two keys, where `by_keys`. `queries`: what it hands out first.

    `by_id`: it changes columns or names in a way that leaves what is bound by field id right, so that it is the same before and after.
    `redefines`: it drops the table or gives it other columns. `blind`: it only appends and reads nothing. `upkeep`: the OPTIMIZE
    statement that it is, or FLUSH; it changes no row. `in_place`: what does the same to the rows and leaves the columns where they are: for
    statements that were bound before, by name, their place is that of then.
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

    @property
    def supersedes(self) -> bool:
        """Whether it overwrites the table as the first thing that it does there, and without reading it."""
        return self.name in SUPERSEDING

    @property
    def defines(self) -> bool:
        return any(s.split()[0] in ("CREATE", "DROP", "ALTER") for s in self.statements)

    @property
    def is_single(self) -> bool:
        return len(self.statements) + len(self.queries) == 1


SUPERSEDING = ("overwrite", "replace, same columns", "replace, other columns", "replace, not null and default", "replace, then append")


def kind(name: str, *statements: str, shown: tuple[str, ...] = (), redefines: bool = False, blind: bool = False, by_id: bool = False) -> Kind:
    return Kind(name, statements, shown, any("{keys}" in s for s in (*statements, *shown)), redefines, blind, by_id=by_id)


KINDS = (
    kind("append values", "INSERT INTO {t} VALUES (2, 7, 'new'), (12, 11, 'new'), (100, 1, NULL)", blind=True),
    kind("append nothing", "INSERT INTO {t} SELECT 1, 1, 'x' WHERE false", blind=True),
    kind("append from itself", "INSERT INTO {t} SELECT k + 200, v, s FROM {t} WHERE k IN ({keys})"),
    kind("append count of itself", "INSERT INTO {t} SELECT 300, count(*), 'count' FROM {t}"),
    kind("append from other", "INSERT INTO {t} SELECT * FROM {u}"),
    kind("append to other from it", "INSERT INTO {u} SELECT * FROM {t} WHERE v > 3"),
    kind("delete", "DELETE FROM {t} WHERE k IN ({keys})"),
    kind("delete by value", "DELETE FROM {t} WHERE v > 10"),
    kind("delete nothing", "DELETE FROM {t} WHERE v = 5000"),
    kind("delete all", "DELETE FROM {t}"),
    kind("truncate", "TRUNCATE {t}"),
    kind("delete by subquery", "DELETE FROM {t} WHERE k IN (SELECT k FROM {u})"),
    kind("delete by own maximum", "DELETE FROM {t} WHERE v = (SELECT max(v) FROM {t})"),
    kind("update", "UPDATE {t} SET v = v + 1 WHERE k IN ({keys})"),
    kind("update into range", "UPDATE {t} SET v = 15 WHERE k IN ({keys})"),
    kind("update key", "UPDATE {t} SET k = k + 1 WHERE k IN ({keys})"),
    kind("update all", "UPDATE {t} SET v = v * 2, s = NULL"),
    kind("update by subquery", "UPDATE {t} SET v = (SELECT count(*) FROM {u}) + (SELECT count(*) FROM {t}) WHERE k IN ({keys})"),
    kind("overwrite", "INSERT OVERWRITE {t} SELECT 2 AS k, 2 AS v, 'over' AS s"),
    kind("overwrite from itself", "INSERT OVERWRITE {t} SELECT k, v + 1, s FROM {t} WHERE k % 2 = 0"),
    kind("replace, same columns", "CREATE OR REPLACE TABLE {t} (k INTEGER, v INTEGER, s VARCHAR)"),
    kind("replace with its rows", "CREATE OR REPLACE TABLE {t} AS SELECT k, v, s FROM {t} WHERE k > 2"),
    kind("replace, other columns", "CREATE OR REPLACE TABLE {t} (k INTEGER, z DATE)", redefines=True),
    kind("replace, not null and default", "CREATE OR REPLACE TABLE {t} (k INTEGER, v INTEGER DEFAULT 77, s VARCHAR NOT NULL)"),
    kind("append one column", "INSERT INTO {t} (k, s) VALUES (800, 'x')", blind=True),
    kind("replace, then append", "CREATE OR REPLACE TABLE {t} (k INTEGER, z DATE)", "INSERT INTO {t} VALUES (8, '2024-02-29')", redefines=True),
    kind("drop", "DROP TABLE {t}", redefines=True),
    kind(
        "drop and create",
        "DROP TABLE {t}",
        "CREATE TABLE {t} (k INTEGER, v INTEGER, s VARCHAR)",
        "INSERT INTO {t} VALUES (9, 9, 'again')",
        redefines=True,
    ),
    kind("two appends", "INSERT INTO {t} VALUES (400, 4, 'x')", "INSERT INTO {t} VALUES (401, 4, 'y')", blind=True),
    kind(
        "append, update, delete",
        "INSERT INTO {t} VALUES (2, 20, 'mine')",
        "UPDATE {t} SET v = v + 1 WHERE k IN ({keys})",
        "DELETE FROM {t} WHERE v > 20",
    ),
    kind("append, delete", "INSERT INTO {t} VALUES (500, 5, 'mine')", "DELETE FROM {t} WHERE k IN ({keys})"),
    kind("delete, truncate, append", "DELETE FROM {t} WHERE k IN ({keys})", "TRUNCATE {t}", "INSERT INTO {t} VALUES (600, 6, 'only')"),
    kind("both tables", "DELETE FROM {t} WHERE k IN ({keys})", "INSERT INTO {u} SELECT k, v, 'kept' FROM {t} WHERE v < 3"),
    kind("shown, then append", "INSERT INTO {t} VALUES (700, 7, 'after looking')", shown=("SELECT * FROM {t} WHERE k IN ({keys})",)),
    kind("shown, then delete", "DELETE FROM {t} WHERE k IN ({keys})", shown=("SELECT * FROM {t} WHERE k < 5 ORDER BY k, v, s",)),
    kind("shown, then other", "INSERT INTO {u} VALUES (700, 7, 'after looking')", shown=("SELECT sum(v), count(*) FROM {t}",)),
    kind(
        "merge",
        "MERGE INTO {t} AS a USING (SELECT k, sum(v)::INTEGER AS v, min(s) AS s FROM {u} GROUP BY k) AS b ON a.k = b.k"
        " WHEN MATCHED THEN UPDATE SET v = a.v + b.v WHEN NOT MATCHED THEN INSERT *",
    ),
    kind(
        "merge by keys",
        "MERGE INTO {t} USING (SELECT unnest([{keys}]) AS k) AS b USING (k) WHEN MATCHED AND v > 4 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET v = v + 1 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (k, 0)",
    ),
    kind(
        "merge by source",
        "MERGE INTO {t} AS a USING {u} AS b ON a.k = b.k WHEN MATCHED THEN DO NOTHING"
        " WHEN NOT MATCHED BY SOURCE AND a.v > 3 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'alone'",
    ),
    kind("merge, insert only", "MERGE INTO {t} AS a USING {u} AS b ON a.k = b.k WHEN NOT MATCHED THEN INSERT BY NAME"),
    kind("merge nothing", "MERGE INTO {t} AS a USING {u} AS b ON a.k = b.k AND false WHEN MATCHED THEN DELETE"),
    Kind("flush", (), upkeep="FLUSH"),
    Kind("optimize", (), upkeep="SET target_file_rows = 40; OPTIMIZE {t}"),
    Kind("optimize in z-order", (), upkeep="SET target_file_rows = 8; OPTIMIZE {t} ZORDER BY (v, k)"),
    kind("add column", "ALTER TABLE {t} ADD COLUMN c INTEGER", by_id=True),
    kind("add column with default", "ALTER TABLE {t} ADD COLUMN c INTEGER DEFAULT 4", by_id=True),
    kind("drop column", "ALTER TABLE {t} DROP COLUMN s", by_id=True),
    kind("rename column", "ALTER TABLE {t} RENAME COLUMN v TO w", by_id=True),
    kind("rename table", "ALTER TABLE {t} RENAME TO {t}_renamed", by_id=True),
    kind("widen column", "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT", by_id=True),
    kind("retype column", "ALTER TABLE {t} ALTER COLUMN v TYPE VARCHAR"),
    kind("set default", "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 77"),
    kind("set not null", "ALTER TABLE {t} ALTER COLUMN v SET NOT NULL"),
    Kind(
        "drop and add column",
        ("ALTER TABLE {t} DROP COLUMN v", "ALTER TABLE {t} ADD COLUMN v INTEGER DEFAULT 5"),
        in_place=("UPDATE {t} SET v = 5", "ALTER TABLE {t} ALTER v SET DEFAULT 5"),
    ),
)
USUAL = ("append values", "delete", "update", "overwrite from itself")
CHIEF = frozenset(USUAL) | {
    "append count of itself",
    "append from other",
    "append to other from it",
    "delete by value",
    "truncate",
    "delete by own maximum",
    "update key",
    "replace with its rows",
    "replace, other columns",
    "drop",
    "append, update, delete",
    "shown, then append",
    "shown, then other",
    "merge",
    "merge by keys",
    "flush",
    "optimize",
    "optimize in z-order",
    "add column with default",
    "drop column",
    "rename table",
    "retype column",
}
KEYS: dict[Overlap, tuple[str, str]] = {"same rows": ("2, 3", "3, 4"), "same fragment": ("2, 3", "5, 6"), "other fragment": ("2, 3", "12, 13")}
GONE = (1, 4, 14)  # keys that the deletion vectors of the states with some hold


@dataclass
class Case:
    mine: Kind
    theirs: Kind
    state: State
    overlap: Overlap
    explicit: bool
    number: int

    def __str__(self) -> str:
        return f"M {self.mine.name} / W {self.theirs.name} [{self.state}, {self.overlap}, {'explicit' if self.explicit else 'autocommit'}]"

    def text(self, sql: str, keys: str = "") -> str:
        return sql.format(t=f"t{self.number}", u=f"u{self.number}", keys=keys)

    def my(self, sql: str) -> str:
        return self.text(sql, KEYS[self.overlap][0])

    def their(self, sql: str) -> str:
        return self.text(sql, KEYS[self.overlap][1])


@dataclass
class Outcome:
    """`queries`: what M was shown. `counts`: rows changed by each statement of M, as it was told. `error`: what M raised."""

    shown: list[Counter[str]]
    counts: list[int]
    messages: list[str]
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
        script = [[], [], []]
        for case in cases:
            script[0] += ["CREATE TABLE {t} (k INTEGER, v INTEGER, s VARCHAR)", "CREATE TABLE {u} (k INTEGER, v INTEGER, s VARCHAR)"]
            script[0] += [
                "INSERT INTO {t} SELECT range, range % 7, 'a' FROM range(10)",
                "INSERT INTO {u} VALUES (3, 3, 'u'), (13, 3, NULL), (30, 3, 'u')",
            ]
            script[1] += ["INSERT INTO {t} SELECT range, range % 7, CASE WHEN range = 12 THEN NULL ELSE 'b' END FROM range(10, 20)"]
            if "vector" in self.state:
                script[2] += [f"DELETE FROM {{t}} WHERE k IN {GONE}"]
            for part in script:
                part[:] = [case.text(s) if "{" in s else s for s in part]
        for part in script:
            self.w.execute("; ".join(["BEGIN", *part, "COMMIT"]))
            for sql in part:
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
        outcome = Outcome([], [], [])
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
        self.m.execute("BEGIN")
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


def cases() -> list[Case]:
    """Pairs of the chief kinds all meet, the others meet the four most usual ones, and a few pairs in every way there is."""
    found: list[Case] = []
    turn = itertools.count()
    for mine, theirs in itertools.product(KINDS, KINDS):
        modes = [False] if mine.upkeep else [False, True] if mine.is_single else [True]
        overlaps = OVERLAPS if mine.by_keys and theirs.by_keys else OVERLAPS[:1]
        combinations = list(itertools.product(STATES, overlaps, modes))
        if not EVERYTHING:
            often = mine.name in ("delete", "update") and theirs.name in ("delete", "update")
            chief = (mine.name in CHIEF and theirs.name in CHIEF) or mine.name in USUAL or theirs.name in USUAL
            first = next(turn) * 5
            combinations = combinations if often else [combinations[first % len(combinations)]] if chief else []
        found += [Case(mine, theirs, *c, number=0) for c in combinations]
    for number, case in enumerate(found):
        case.number = number
    return found


CASES = cases()


def serial(oracle: Oracle, texts: list[str]) -> list[int] | duckdb.Error:
    try:
        return oracle.together(texts)
    except duckdb.Error as error:
        return error


def contents_of(con: Any, names: list[str]) -> dict[str, tuple[list[str], Counter[str]]]:
    found = {}
    there = {name for (name,) in con.execute("SHOW TABLES").fetchall()}
    for name in names:
        if name in there:
            cursor = con.execute(f"SELECT * FROM {name}")
            found[name] = ([d[0] for d in cursor.description], multiset(cursor.fetchall()))
    return found


def by_name(contents: dict[str, tuple[list[str], Counter[str]]]) -> dict[str, tuple[list[str], Counter[str]]]:
    """The same with the columns of each table in order of their names."""
    found = {}
    for table, (columns, content) in contents.items():
        order = sorted(range(len(columns)), key=columns.__getitem__)
        rows = [tuple(literal_eval(row)[i] for i in order) for row in content.elements()]
        found[table] = ([columns[i] for i in order], multiset(rows))
    return found


def expected(oracle: Oracle, names: list[str]) -> dict[str, tuple[list[str], Counter[str]]]:
    there = oracle.tables()
    return {name: (oracle.columns(name), oracle.content(name)) for name in names if name in there}


def check(lake: Three, case: Case, oracle: Oracle) -> list[str]:
    """What is wrong with the case: nothing, if all is well."""
    names = [case.text("{t}"), case.text("{u}"), case.text("{t}_renamed")]
    outcome = lake.meet(case)
    before = [multiset(oracle.duck.execute(case.my(q)).fetchall()) for q in case.mine.queries]
    mine: list[int] | duckdb.Error = []
    is_bound = case.theirs.by_id and not case.mine.defines  # by field id, it is the same which of both is first
    if is_bound:
        mine = serial(oracle, [case.my(s) for s in case.mine.statements])
    is_moved = bool(case.theirs.in_place) and not case.mine.defines
    won = serial(oracle, [case.their(s) for s in (case.theirs.in_place if is_moved else case.theirs.statements)])
    assert not isinstance(won, duckdb.Error), f"W has to be right by itself: {won}"
    w_alone = expected(oracle, names)
    differs = not is_bound and _differs(case, oracle, before)
    if case.mine.blind and case.theirs.supersedes:
        mine = [0] * len(case.mine.statements)
    elif not is_bound:
        mine = serial(oracle, [case.my(s) for s in case.mine.statements])
    got = contents_of(lake.w, names)
    wrong = _wrong_error(case, outcome, mine, differs)
    if outcome.shown != before:
        wrong.append(f"M was shown {outcome.shown}, its base holds {before}")
    want = w_alone if outcome.error is not None else expected(oracle, names)
    if is_moved:
        got, want = by_name(got), by_name(want)
    if got != want:
        wrong.append(f"the lake holds {got}, but W then M is {want}; outcome {outcome}")
    if outcome.error is None and not case.explicit and isinstance(mine, list) and _counted(case.mine) and outcome.counts != mine:
        wrong.append(f"rowcounts {outcome.counts}, but of W then M they are {mine}")
    if outcome.error is None and not case.mine.upkeep:
        wrong += _wrong_record(lake, case, w_alone, outcome)
    return [f"{case}: {one}" for one in wrong]


def _differs(case: Case, oracle: Oracle, before: list[Counter[str]]) -> bool:
    """Whether what M was shown comes out differently after W."""
    try:
        return [multiset(oracle.duck.execute(case.my(q)).fetchall()) for q in case.mine.queries] != before
    except duckdb.Error:
        return True


def _counted(kind: Kind) -> bool:
    return all(s.split()[0] in ("INSERT", "DELETE", "UPDATE", "TRUNCATE", "MERGE") for s in kind.statements)


def _wrong_error(case: Case, outcome: Outcome, mine: list[int] | duckdb.Error, differs: bool) -> list[str]:
    error = outcome.error
    if error is None:
        if isinstance(mine, duckdb.Error):
            return [f"M committed, but after W it fails: {mine}"]
        return ["M was shown rows that come out differently, and committed"] if differs and not case.theirs.blind else []
    if case.mine.upkeep:
        dropped = any(s.startswith("DROP") for s in case.theirs.statements)
        return [] if dropped and "was dropped" in str(error) else [f"upkeep failed with {error!r}"]
    if not case.explicit and isinstance(error, TransactionConflict):
        return ["a conflict in autocommit"]
    if isinstance(mine, duckdb.Error) or (case.theirs.redefines and case.mine.queries) or case.theirs.name == "drop and create":
        return []  # a table of the same name is another table: M was bound to the one that was dropped
    needed = case.mine.queries and differs and not case.theirs.blind and isinstance(error, TransactionConflict)
    return [] if needed else [f"needless: {error!r}"]


def _wrong_record(lake: Three, case: Case, w_alone: Any, outcome: Outcome) -> list[str]:
    """The ledger: where W changed the table that M changes, history says how the two were reconciled."""
    name = case.text("{t}")
    if name not in w_alone or name not in contents_of(lake.w, [name]):
        return []
    history = lake.w.execute(f"DESCRIBE HISTORY {name} LIMIT 2").fetchall()
    last = lake.m.last_commit
    if last is None or len(history) < 2 or history[0][0] != last.snapshot_id or history[1][0] <= last.base_snapshot_id:
        return []
    return [] if history[0][7] else [f"history says nothing of the meeting: {history}"]


GROUPS = [(mine.name, state) for mine in KINDS for state in STATES if any(c.mine is mine and c.state == state for c in CASES)]


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[State], tuple[Three, Oracle]]]:
    """A lake for each state, with the tables of all its cases, made when it is first asked for."""
    made: dict[State, tuple[Three, Oracle]] = {}
    with ExitStack() as stack:

        def get(state: State) -> tuple[Three, Oracle]:
            if state not in made:
                made[state] = (Three(tmp_path_factory.mktemp("pairs") / "lake", state), Oracle())
                stack.callback(made[state][0].close)
                stack.callback(made[state][1].close)
            return made[state]

        yield get


@pytest.mark.parametrize(("mine", "state"), GROUPS, ids=lambda value: value.replace(" ", "-").replace(",", ""))
def test_pair(mine: str, state: State, lakes: Callable[[State], tuple[Three, Oracle]]) -> None:
    lake, oracle = lakes(state)
    chosen = [c for c in CASES if c.mine.name == mine and c.state == state]
    lake.build(chosen, oracle)
    wrong: list[str] = []
    try:
        for case in chosen:
            wrong += check(lake, case, oracle)
    finally:
        for name in oracle.tables():
            oracle.run(f"DROP TABLE {name}")
    assert not wrong, "\n".join([f"{len(wrong)} wrong:", *wrong])
