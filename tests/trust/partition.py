"""A condition parts a table in three: where it holds, where it does not, and where it is NULL. SELECT, UPDATE and DELETE of the parts give the whole.

The same on plain DuckDB tables has to come out the same (`oracle.py`); a condition that fails there has to fail here.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
from oracle import Oracle, Rows, multiset
from property.test_statements import LIMITS, NAMES, Draw

import lakelite
from trust.figures import Failure, Figures, again

PROMISE = "SELECT, UPDATE and DELETE find exactly the rows that their WHERE means"
HOW = "p, not p and p is null part the rows of tables in files, inline, partitioned, with deletion vectors; and plain DuckDB tables agree; size: conditions"
SIZES = (15, 40, 3_000)
DIVIDED = {"a": "", "b": " PARTITIONED BY (k)", "c": " PARTITIONED BY (bucket(3, s))"}
assert DIVIDED.keys() == {*NAMES}


def run(seed: int, size: int) -> Figures:
    r = random.Random(seed)
    counted: Counter[str] = Counter(conditions=size)
    wrong: list[str] = []
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as folder, lakelite.connect(f"{folder}/lake", autocommit=True) as con:
        both = _Both(con, oracle)
        for number in range(size):
            if number % 40 == 0:
                fill(both, Draw(r.randbytes(6), oracle))
            wrong += part(both, Draw(r.randbytes(6), oracle), counted)
        wrong += [f"CHECK LAKE: {row}" for row in con.execute("CHECK LAKE").fetchall() if row[0] == "error"]
    oracle.close()
    return Figures(counted, tuple(Failure(one, again("partition", seed, size)) for one in wrong))


class _Both:
    """The lake and the oracle. `agree`: runs a statement on both, which have to give the same or both to fail; what that is."""

    def __init__(self, con: Any, oracle: Oracle) -> None:
        self.con, self.oracle = con, oracle
        for name, value in LIMITS.items():
            con.execute(f"SET {name} = {value}")

    def change(self, sql: str, lake_sql: str | None = None) -> int | None:
        return self._agree(sql, lambda: self.con.execute(lake_sql or sql).rowcount, lambda: self.oracle.run(sql))

    def rows(self, sql: str) -> Rows | None:
        return self._agree(sql, lambda: multiset(self.con.execute(sql).fetchall()), lambda: multiset(self.oracle.duck.execute(sql).fetchall()))

    @staticmethod
    def _agree(sql: str, mine: Callable[[], Any], theirs: Callable[[], Any]) -> Any:
        """None: both failed."""
        got, want = (_outcome(run) for run in (mine, theirs))
        if got != want and not sql.startswith("CREATE"):
            raise Disagreement(f"{sql}: {got}, by DuckDB {want}")
        return got


class Disagreement(Exception):
    """The lake and DuckDB give different answers."""


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except (lakelite.Error, duckdb.Error):
        return None


def fill(both: _Both, draw: Draw) -> None:
    """New tables, of some fragments each."""
    for name, divided in DIVIDED.items():
        definition = f"CREATE OR REPLACE TABLE {name} (k INTEGER, s VARCHAR, x {draw.one(('BIGINT', 'DATE', 'VARCHAR', 'DOUBLE'))})"
        both.change(definition, definition + divided)
        for first in (0, 8, 4):
            both.change(
                f"INSERT INTO {name} (k, s) SELECT range + {first}, CASE WHEN range % 3 > 0 THEN 'one' WHEN range % 2 > 0 THEN '2' END FROM range(6)"
            )
            both.change(f"INSERT INTO {name} VALUES (NULL, {draw.s()}, {draw.x(name)}), ({draw.k()}, NULL, {draw.x(name)})")


def part(both: _Both, draw: Draw, counted: Counter[str]) -> list[str]:
    """What is wrong with one condition; now and then its rows are changed for good."""
    name = draw.one(NAMES)
    condition = draw.condition(name)
    try:
        whole = both.rows(f"FROM {name}") or Counter()
        parts = [both.rows(f"SELECT * FROM {name} WHERE {p}") for p in _three(condition)]
        if None in parts:
            counted["conditions that fail"] += 1
            return []
        together = sum((found or Counter() for found in parts), Counter())
        wrong = [] if together == whole else [f"{name}: the parts by {condition} are {together}, the whole is {whole}"]
        wrong += [one for p, found in zip(_three(condition), parts, strict=True) for one in changed(both, name, p, whole, found or Counter())]
        if draw.chance(3):
            both.change(draw.one((f"DELETE FROM {name} WHERE {condition}", f"UPDATE {name} SET k = k + 1 WHERE {condition}")))
    except Disagreement as error:
        return [str(error)]
    counted["rows"] += whole.total()
    counted["statements"] += 10
    return wrong


def _three(condition: str) -> tuple[str, str, str]:
    return f"({condition})", f"NOT ({condition})", f"({condition}) IS NULL"


def changed(both: _Both, name: str, condition: str, whole: Rows, found: Rows) -> list[str]:
    """Deletes and updates a part, and takes that back."""
    wrong = []
    for text in (f"DELETE FROM {name} WHERE {condition}", f"UPDATE {name} SET x = NULL WHERE {condition}"):
        both.con.execute("BEGIN")
        with both.oracle.taken_back():
            count, rest = both.change(text), both.rows(f"FROM {name}")
        both.con.execute("ROLLBACK")
        if count != found.total() or (text.startswith("DELETE") and rest != whole - found):
            wrong.append(f"{text}: {count} rows of {found.total()}, and left are {rest}")
    return wrong
