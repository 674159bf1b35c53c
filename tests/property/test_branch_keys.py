"""MERGE BRANCH of tables with keys against a model over plain lists: rows that got one key on both branches.

The model knows a row by a number that is a column without a key (so that no two rows are alike), and decides row by row what the lake decides by joins.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, event, given, settings

import lakelite

Row = tuple[int, int, int | None]  # a primary key, its value, a UNIQUE value
Rows = dict[int, Row]
_START: Rows = {k: (k, 0, k if k % 2 else None) for k in range(4)}
_KEY = st.integers(0, 6)


def _keys(row: Row) -> set[tuple[str, int]]:
    return {("id", row[0])} | ({("u", row[2])} if row[2] is not None else set())


def _fits(rows: Rows) -> bool:
    keys = [key for row in rows.values() for key in _keys(row)]
    return len(keys) == len(set(keys))


def merged(base: Rows, theirs: Rows, ours: Rows, chosen: dict[int, str], default: str) -> tuple[Rows, set[int]]:
    """The outcome, and the rows (of theirs) that were in conflict."""
    changed = {k for k in base.keys() | theirs.keys() if theirs.get(k) != base.get(k) and theirs.get(k) != ours.get(k)}
    torn = {k for k in changed if ours.get(k) != base.get(k)}

    def comes(k: int) -> bool:
        return chosen.get(k, default) == "theirs"

    going = {k for k in changed if k in theirs}
    meets = {k: {o for o, row in ours.items() if o != k and _keys(row) & _keys(theirs[k])} for k in going}
    for k in going & ours.keys():  # what it had there already is no news
        meets[k] = {o for o in meets[k] if _keys(ours[o]) & (_keys(theirs[k]) - _keys(ours[k]))}
    staying = {o for o in ours if o not in changed or (o in torn and not comes(o))}
    while more := {k for k in going if meets[k] & staying and not comes(k)} - staying:
        staying |= more
    met = {k for k in going if meets[k] & staying}
    taken = {k for k in changed if k not in torn | met or comes(k)}
    rows = {k: row for k, row in ours.items() if k not in taken and not any(k in meets[t] for t in taken & going)}
    return rows | {k: theirs[k] for k in taken & going}, torn | met


def _change(rows: Rows, change: tuple[Any, ...], number: int) -> tuple[Rows, str]:
    match change:
        case ("insert", key, value, unique):
            return rows | {number: (key, value, unique)}, f"INSERT INTO t VALUES ({key}, {value}, {unique or 'NULL'}, {number})"
        case ("delete", key):
            return {k: row for k, row in rows.items() if row[0] != key}, f"DELETE FROM t WHERE id = {key}"
        case ("rekey", old, new):
            return {k: (new if row[0] == old else row[0], *row[1:]) for k, row in rows.items()}, f"UPDATE t SET id = {new} WHERE id = {old}"
        case ("unique", key, new):
            after = {k: (row[0], row[1], new if row[0] == key else row[2]) for k, row in rows.items()}
            return after, f"UPDATE t SET u = {new or 'NULL'} WHERE id = {key}"
        case (_, by):
            return {k: (row[0] + by, *row[1:]) for k, row in rows.items()}, f"UPDATE t SET id = id + {by}"


def changes() -> st.SearchStrategy[tuple[Any, ...]]:
    unique = st.integers(1, 6) | st.none()
    return st.one_of(
        st.tuples(st.just("insert"), _KEY, st.integers(0, 1), unique),
        st.tuples(st.just("delete"), _KEY),
        st.tuples(st.just("rekey"), _KEY, _KEY),
        st.tuples(st.just("unique"), _KEY, unique),
        st.tuples(st.just("shift"), st.sampled_from([1, -1])),
    )


class Lake:
    """The table on two branches; `n`, without a key, is the number by which the model knows a row."""

    def __init__(self, path: Path, inline_rows: int) -> None:
        self.con = lakelite.connect(path, autocommit=True)
        self.con.execute(f"SET inline_rows = {inline_rows}; CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, u INTEGER UNIQUE, n INTEGER)")
        self.con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(*row, k) for k, row in _START.items()])
        self.con.execute("CREATE BRANCH dev")

    def change(self, branch: str, rows: Rows, some: list[tuple[Any, ...]], number: int) -> Rows:
        self.con.execute(f"USE BRANCH {branch}")
        for change in some:
            after, sql = _change(rows, change, number)
            if after != rows and _fits(after):
                self.con.execute(sql)
                rows, number = after, number + 1
        return rows

    def found(self) -> Rows:
        return {n: (a, v, u) for a, v, u, n in self.con.execute("SELECT id, v, u, n FROM t").fetchall()}

    def conflicts(self) -> set[int]:
        shown = self.con.execute("SELECT coalesce(base, theirs)::JSON ->> 'n' FROM lake.merge_conflicts").fetchall()
        assert len(shown) == len(set(shown))
        return {int(n) for (n,) in shown}


def _merge(lake: Lake, base: Rows, theirs: Rows, ours: Rows, side: str) -> Rows:
    con, chosen = lake.con, dict[int, str]()
    if side == "CHOSEN":  # again until nothing is left: a row that stays away may stand in the way of others
        while (found := merged(base, theirs, ours, chosen, "ours")[1]) - chosen.keys():
            con.execute("MERGE BRANCH dev DRY RUN")
            assert lake.conflicts() == found
            odd = "CASE WHEN (coalesce(base, theirs)::JSON ->> 'n')::INT % 2 = 1 THEN 'theirs' ELSE 'ours' END"
            con.execute(f"UPDATE lake.merge_conflicts SET resolution = {odd}")
            chosen |= {k: "theirs" if k % 2 else "ours" for k in found}
    default = "theirs" if side == "THEIRS" else "ours"
    rows, conflicts = merged(base, theirs, ours, chosen, default)
    if side == "FAIL" and conflicts:
        with pytest.raises(lakelite.TransactionConflict):
            con.execute("MERGE BRANCH dev")
        rows = ours
    else:
        con.execute("MERGE BRANCH dev" + (f" ON CONFLICT {side}" if side in ("OURS", "THEIRS") else ""))
    assert lake.conflicts() == conflicts
    event(f"{side}: {'conflicts' if conflicts else 'clean'}")
    return rows


@given(
    st.lists(changes(), max_size=5),
    st.lists(changes(), min_size=1, max_size=5),
    st.sampled_from(["FAIL", "OURS", "THEIRS", "CHOSEN"]),
    st.sampled_from([0, 1000]),
)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_keys_of_both_branches_are_those_of_plain_lists(
    here: list[tuple[Any, ...]], there: list[tuple[Any, ...]], side: str, inline_rows: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        lake = Lake(Path(directory) / "lake", inline_rows)
        with lake.con as con:
            theirs = lake.change("dev", _START, there, 100)
            ours = lake.change("main", _START, here, 201)
            expected = _merge(lake, _START, theirs, ours, side)
            assert lake.found() == expected
            assert con.execute("CHECK LAKE").fetchall() == []
