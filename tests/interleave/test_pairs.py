"""Every kind of statement against every kind of statement on one table, as named pairs, at each isolation level.

M meets W, the winner, at its commit (`pairing.py`). What has to come out is worked out on plain DuckDB (`promises.py`): what the lake
holds, what M was told, and whether it lands, conflicts or fails. A needless conflict is as wrong as one that was not raised.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from oracle import Oracle
from pairing import LEVELS, OVERLAPS, STATES, Case, Contents, Kind, Level, Outcome, State, Three
from promises import Promise, by_name, promise

from lakelite.errors import TransactionConflict

EVERYTHING = os.environ.get("LAKELITE_ALL_PAIRS") == "1"  # all combinations, about two hours of one processor; else a part that covers each pair
SUPERSEDING = ("overwrite", "replace, same columns", "replace, other columns", "replace, not null and default", "replace, then append")


def kind(name: str, *statements: str, shown: tuple[str, ...] = (), redefines: bool = False, blind: bool = False, by_id: bool = False) -> Kind:
    by_keys = any("{keys}" in s for s in (*statements, *shown))
    return Kind(name, statements, shown, by_keys, redefines, blind, by_id=by_id, supersedes=name in SUPERSEDING)


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
    Kind(
        "told of an error, then append",
        ("INSERT INTO {t} VALUES (900, 9, 'after an error')",),
        by_keys=True,
        blind=True,
        fails=("UPDATE {u} SET v = (SELECT v FROM {t} WHERE k IN ({keys}))",),
    ),
    Kind(
        "undone, then other",
        ("INSERT INTO {u} VALUES (900, 9, 'after it was undone')",),
        by_keys=True,
        undone=("DELETE FROM {t} WHERE k IN ({keys})",),
    ),
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
    "told of an error, then append",
    "undone, then other",
    "flush",
    "optimize",
    "optimize in z-order",
    "add column with default",
    "drop column",
    "rename table",
    "retype column",
}


def cases() -> list[Case]:
    """Pairs of the chief kinds all meet, at a level each, the usual ones at every level; the others meet the usual ones; and a few pairs in
    every way there is."""
    found: list[Case] = []
    turn = itertools.count()
    for (i, mine), (j, theirs) in itertools.product(enumerate(KINDS), enumerate(KINDS)):
        is_usual = mine.name in USUAL and theirs.name in USUAL
        levels = LEVELS if EVERYTHING or is_usual else (LEVELS[(i + j) % len(LEVELS)],)
        found += [] if theirs.is_only_mine else _of_pair(mine, theirs, levels, turn)
    for number, case in enumerate(found):
        case.number = number
    return found


def _of_pair(mine: Kind, theirs: Kind, levels: tuple[Level, ...], turn: Iterator[int]) -> list[Case]:
    found: list[Case] = []
    for level in levels:
        modes = [False] if mine.upkeep else [False, True] if mine.is_single else [True]
        overlaps = OVERLAPS if mine.by_keys and theirs.by_keys else OVERLAPS[:1]
        combinations = list(itertools.product(STATES, overlaps, modes))
        if not EVERYTHING:
            often = mine.name in ("delete", "update") and theirs.name in ("delete", "update")
            chief = (mine.name in CHIEF and theirs.name in CHIEF) or mine.name in USUAL or theirs.name in USUAL
            first = next(turn) * 5
            combinations = combinations if often else [combinations[first % len(combinations)]] if chief else []
        found += [Case(mine, theirs, *c, level, number=0) for c in combinations]
    return found


CASES = cases()


def test_every_chief_pair_meets_and_every_kind_at_every_level() -> None:
    there = {(case.mine.name, case.theirs.name) for case in CASES}
    winners = CHIEF - {kind.name for kind in KINDS if kind.is_only_mine}
    assert there >= set(itertools.product(CHIEF, winners))
    levels = {(name, case.level) for case in CASES for name in (f"M {case.mine.name}", f"W {case.theirs.name}")}
    assert levels >= set(itertools.product([*(f"M {k}" for k in CHIEF), *(f"W {k}" for k in winners)], LEVELS))
    usual = {(case.mine.name, case.theirs.name, case.level) for case in CASES}
    assert usual >= set(itertools.product(USUAL, USUAL, LEVELS))


def check(lake: Three, case: Case, oracle: Oracle) -> list[str]:
    """What is wrong with the case: nothing, if all is well."""
    outcome, right = lake.meet(case), promise(case, oracle)
    got, want = lake.contents(case.names), right.contents if outcome.error is None else right.without
    if right.by_name:
        got, want = by_name(got), by_name(want)
    wrong = _wrong_ending(case, outcome, right)
    if outcome.shown != (right.told.shown if case.explicit else []) or outcome.undone != (right.told.undone if case.explicit else []):
        wrong.append(f"M was told {outcome}, but of its base {right.told} is true")
    if got != want:
        wrong.append(f"the lake holds {got}, but right is {want}; outcome {outcome}")
    counts = right.told.counts if case.explicit else right.counts
    if (case.explicit or outcome.error is None) and case.mine.counted(outcome.counts) != case.mine.counted(counts):
        wrong.append(f"rowcounts {outcome.counts}, but right is {counts}")
    if outcome.error is None and not case.mine.upkeep:
        wrong += _wrong_record(lake, case, right, got)
    return [f"{case}: {one}" for one in wrong]


def _wrong_ending(case: Case, outcome: Outcome, right: Promise) -> list[str]:
    error = outcome.error
    endings = {right.ending, right.or_else}
    if error is None:
        return [] if "commits" in endings else [f"M committed, but {right.ending} is right"]
    if case.mine.upkeep:
        return [] if "fails" in endings and "was dropped" in str(error) else [f"upkeep failed with {error!r}"]
    if not case.explicit and isinstance(error, TransactionConflict):
        return ["a conflict in autocommit"]
    if "fails" in endings or ("conflicts" in endings and isinstance(error, TransactionConflict)):
        return []
    return [f"needless: {error!r}" if right.ending == "commits" else f"no conflict: {error!r}"]


def _wrong_record(lake: Three, case: Case, right: Promise, got: Contents) -> list[str]:
    """The ledger: where W changed the table that M changes, history says how the two were reconciled."""
    name = case.text("{t}")
    if name not in right.without or name not in got:
        return []
    history = lake.w.execute(f"DESCRIBE HISTORY {name} LIMIT 2").fetchall()
    last = lake.m.last_commit
    if last is None or len(history) < 2 or history[0][0] != last.snapshot_id or history[1][0] <= last.base_snapshot_id:
        return []
    return [] if history[0][7] else [f"history says nothing of the meeting: {history}"]


GROUPS = list(dict.fromkeys((case.mine.name, case.state, case.level) for case in CASES))


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


@pytest.mark.parametrize(("mine", "state", "level"), GROUPS, ids=lambda value: value.replace(" ", "-").replace(",", ""))
def test_pair(mine: str, state: State, level: Level, lakes: Callable[[State], tuple[Three, Oracle]]) -> None:
    lake, oracle = lakes(state)
    chosen = [c for c in CASES if c.mine.name == mine and c.state == state and c.level == level]
    lake.build(chosen, oracle)
    wrong: list[str] = []
    try:
        for case in chosen:
            wrong += check(lake, case, oracle)
    finally:
        for name in oracle.tables():
            oracle.run(f"DROP TABLE {name}")
    assert not wrong, "\n".join([f"{len(wrong)} wrong:", *wrong])
