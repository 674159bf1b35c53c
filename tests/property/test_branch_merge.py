"""MERGE BRANCH against a three-way merge over plain dicts: random changes on several branches, merged back and forth.

The model knows rows by a key that is never written again, and the lake by row ids, so that the two share no rule. It keeps the state
of every commit and what led to it, and takes the newest common ones as the base: where merges crossed there are several, and a row is
a conflict if they disagree on it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, event, given, settings

import lakelite

Rows = dict[int, tuple[int | None, str | None]]
BRANCHES = ("main", "a", "b")


@dataclass
class Model:
    """Commits by number: their rows and their parents; the newest one of each branch."""

    rows: list[Rows] = field(default_factory=lambda: [{}])
    parents: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    heads: dict[str, int] = field(default_factory=lambda: {"main": 0})

    def commit(self, branch: str, rows: Rows, *merged: int) -> None:
        self.rows.append(rows)
        self.parents.append((self.heads[branch], *merged))
        self.heads[branch] = len(self.rows) - 1

    def ancestors(self, commit: int) -> set[int]:
        return {commit}.union(*map(self.ancestors, self.parents[commit]))

    def head(self, branch: str) -> Rows:
        return dict(self.rows[self.heads[branch]])

    def merge(self, theirs: str, ours: str, side: str) -> set[int]:
        """Merges if that is possible; the keys that both changed. `side`: as in ON CONFLICT, or theirs for odd keys (CHOSEN)."""
        ancestors = self.ancestors(self.heads[theirs]), self.ancestors(self.heads[ours])
        if self.heads[theirs] in ancestors[1]:
            return set()
        common = ancestors[0] & ancestors[1]
        bases = [self.rows[one] for one in common if not any(one in self.ancestors(other) for other in common - {one})]
        there, here = self.head(theirs), self.head(ours)
        merged, conflicts = dict(here), set()
        for key in there.keys() | here.keys() | frozenset().union(*bases):
            before, theirs_now, ours_now = {base.get(key) for base in bases}, there.get(key), here.get(key)
            if theirs_now == ours_now or before == {theirs_now}:
                continue
            if before != {ours_now}:
                conflicts.add(key)
                if side != "THEIRS" and not (side == "CHOSEN" and key % 2):
                    continue
            merged.pop(key, None)
            if theirs_now is not None:
                merged[key] = theirs_now
        if not (conflicts and side == "FAIL"):
            self.commit(ours, merged, self.heads[theirs])
        return conflicts


def changes() -> st.SearchStrategy[tuple[Any, ...]]:
    some = st.integers(0, 30), st.integers(0, 3)
    return st.one_of(
        st.tuples(st.just("insert"), st.integers(1, 6)),
        st.tuples(st.just("delete"), *some),
        st.tuples(st.just("update"), *some, st.integers(0, 2) | st.none()),
        st.tuples(st.just("label"), *some, st.sampled_from(["x", "y", None])),
        st.tuples(st.just("optimize")),
        st.tuples(st.just("sort")),
    )


def steps() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    branch = st.sampled_from(BRANCHES)
    change = st.tuples(st.just("change"), branch, changes())
    merge = st.tuples(st.just("merge"), branch, branch, st.sampled_from(["FAIL", "OURS", "THEIRS", "CHOSEN"]))
    return st.lists(st.one_of(change, change, change, merge), min_size=4, max_size=14)


class Lake:
    """The same on a lake, with one connection that goes from branch to branch."""

    def __init__(self, path: Path, inline_rows: int) -> None:
        self.con = lakelite.connect(path, autocommit=True)
        self.con.execute(f"SET inline_rows = {inline_rows}; SET rewrite_percent = 1")
        self.con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, w VARCHAR)")
        self.next_key = 0

    def change(self, model: Model, branch: str, change: tuple[Any, ...]) -> None:
        rows, con = model.head(branch), self.con
        con.execute(f"USE BRANCH {branch}")
        match change:
            case ("insert", count):
                keys = range(self.next_key, self.next_key + count)
                self.next_key += count
                con.execute("INSERT INTO t SELECT r, r % 3, 'n' FROM range(?, ?) q(r)", [keys.start, keys.stop])
                rows |= {k: (k % 3, "n") for k in keys}
            case ("delete", first, more):
                con.execute("DELETE FROM t WHERE k BETWEEN ? AND ?", [first, first + more])
                rows = {k: row for k, row in rows.items() if not first <= k <= first + more}
            case ("update", first, more, value):
                con.execute("UPDATE t SET v = ? WHERE k BETWEEN ? AND ?", [value, first, first + more])
                rows |= {k: (value, w) for k, (_, w) in rows.items() if first <= k <= first + more}
            case ("label", first, more, text):
                con.execute("UPDATE t SET w = ? WHERE k BETWEEN ? AND ?", [text, first, first + more])
                rows |= {k: (v, text) for k, (v, _) in rows.items() if first <= k <= first + more}
            case (kind,):
                done = con.execute("OPTIMIZE t" if kind == "optimize" else "OPTIMIZE t ZORDER BY (v, w)").fetchone()
                if done[0] == 0:  # there was nothing to do: no version was made
                    return
        model.commit(branch, rows)

    def merge(self, model: Model, theirs: str, ours: str, side: str) -> None:
        con = self.con
        con.execute(f"USE BRANCH {ours}")
        conflicts = model.merge(theirs, ours, side)
        if conflicts and side == "FAIL":
            with pytest.raises(lakelite.TransactionConflict):
                con.execute(f"MERGE BRANCH {theirs}")
        elif side == "CHOSEN":
            con.execute(f"MERGE BRANCH {theirs} DRY RUN")
            odd = "(coalesce(base, ours, theirs)::JSON ->> 'k')::INT % 2 = 1"
            con.execute(f"UPDATE lake.merge_conflicts SET resolution = CASE WHEN {odd} THEN 'theirs' ELSE 'ours' END")
            con.execute(f"MERGE BRANCH {theirs}")
        else:
            con.execute(f"MERGE BRANCH {theirs} ON CONFLICT {side}")
        shown = con.execute("SELECT coalesce(base, ours, theirs)::JSON ->> 'k' FROM lake.merge_conflicts").fetchall()
        assert {int(k) for (k,) in shown} == conflicts
        event(f"merge {side}: {'conflicts' if conflicts else 'clean'}")

    def check(self, model: Model) -> None:
        for branch in model.heads:
            self.con.execute(f"USE BRANCH {branch}")
            found = self.con.execute("SELECT k, v, w FROM t").fetchall()
            assert sorted(found) == sorted((k, *row) for k, row in model.head(branch).items()), branch
            assert len({row[0] for row in found}) == len(found)


@given(steps(), st.sampled_from([0, 3, 1000]), st.booleans())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_merges_are_those_of_plain_dicts(actions: list[tuple[Any, ...]], inline_rows: int, vacuums: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        lake, model = Lake(Path(directory) / "lake", inline_rows), Model()
        with lake.con:
            lake.change(model, "main", ("insert", 20))
            for branch in BRANCHES[1:]:
                lake.con.execute(f"USE BRANCH {'main' if branch == 'a' else 'a'}; CREATE BRANCH {branch}")
                model.heads[branch] = model.heads["main" if branch == "a" else "a"]
                lake.change(model, "a", ("update", 3, 2, 7))
            for action in actions:
                if action[0] == "change":
                    lake.change(model, *action[1:])
                elif action[1] != action[2]:
                    lake.merge(model, *action[1:])
                if vacuums:
                    lake.con.execute("VACUUM RETAIN 0 HOURS")
            lake.check(model)
            assert lake.con.execute("CHECK LAKE").fetchall() == []
