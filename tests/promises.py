"""What each isolation level promises where M meets a winner W, worked out on plain DuckDB tables. Shares no code with lakelite.

    serializable        W and then M. What M was told (rows, numbers of rows, errors) comes out the same then, or M conflicts.
    write serializable  the same for rows only, those of blind appends apart; what W overwrote blindly supersedes a blind append of M.
    snapshot            what M changed of its base is laid over what W left, row by row. Where both changed a row, or W replaced or
                        redefined what M writes, W was first: M conflicts, or in autocommit runs again (W and then M).

Changes of columns that leave what was bound by field id right are the same before and after: there it is M and then W.
"""

from __future__ import annotations

from ast import literal_eval
from dataclasses import dataclass, replace
from typing import Any, Literal

import duckdb
from oracle import Oracle, multiset
from pairing import Case, Contents

Ending = Literal["commits", "conflicts", "fails"]
Counts = list[int]
Rows = dict[int, tuple[Any, ...]]  # by DuckDB's row id
Tables = dict[str, Rows]  # t and u


@dataclass(frozen=True)
class Told:
    """What M hands out before it commits. A query or undone statement that fails gives its error; `stands`: the error of M's statements."""

    errors: list[str]
    undone: list[Any]
    shown: list[Any]
    counts: Counts
    stands: str | None


@dataclass(frozen=True)
class Promise:
    """How M has to end: `ending`, or `or_else`; "fails" is any error. `contents`: of the lake if it commits, `without`: if not.

    `counts`: the numbers of rows that M's statements change in the end, `told`: what M was told before W came.
    `by_name`: columns are compared by name, as W moved one.
    """

    ending: Ending
    contents: Contents
    without: Contents
    counts: Counts
    told: Told
    or_else: Ending | None = None
    by_name: bool = False


def promise(case: Case, oracle: Oracle) -> Promise:
    """How the case has to end; the tables of the oracle are its own afterwards."""
    told = _told(case, oracle)
    assert told.stands is None, f"M has to be right by itself: {told.stands}"
    is_bound = case.theirs.by_id and not case.mine.defines and not (case.theirs.drops_column and case.level != "write serializable")
    if is_bound:
        with oracle.taken_back():
            oracle.together([case.their(s) for s in case.theirs.statements])
            without = _contents(oracle, case)
        counts = oracle.together([case.my(s) for s in case.mine.statements])
        oracle.together([case.their(s) for s in case.theirs.statements])
        return Promise("commits", _contents(oracle, case), without, counts, told)
    in_place = bool(case.theirs.in_place) and not case.mine.defines
    level = _at_snapshot if case.level == "snapshot" else _one_after_the_other
    found = level(case, oracle, told, [case.their(s) for s in (case.theirs.in_place if in_place else case.theirs.statements)])
    return replace(found, by_name=in_place)


# Running on the oracle.


def _told(case: Case, oracle: Oracle) -> Told:
    """What M would be told on the tables as they are, which it leaves as they are."""

    def tried(sql: str, *, rows: bool) -> Any:
        try:
            with oracle.taken_back():
                return multiset(oracle.duck.execute(case.my(sql)).fetchall()) if rows else oracle.run(case.my(sql))
        except duckdb.Error as error:
            return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"

    errors = [tried(sql, rows=False) for sql in case.mine.fails]
    undone = [tried(sql, rows=False) for sql in case.mine.undone]
    shown = [tried(sql, rows=True) for sql in case.mine.queries]
    counts, stands = [], None
    try:
        with oracle.taken_back():
            counts = oracle.together([case.my(s) for s in case.mine.statements])
    except duckdb.Error as error:
        stands = str(error)
    return Told(errors, undone, shown, counts, stands)


def _contents(oracle: Oracle, case: Case) -> Contents:
    there = oracle.tables()
    return {name: (oracle.columns(name), oracle.content(name)) for name in case.names if name in there}


def by_name(contents: Contents) -> Contents:
    """The same with the columns of each table in order of their names."""
    found = {}
    for table, (columns, content) in contents.items():
        order = sorted(range(len(columns)), key=columns.__getitem__)
        rows = [tuple(literal_eval(row)[i] for i in order) for row in content.elements()]
        found[table] = ([columns[i] for i in order], multiset(rows))
    return found


# The levels.


def _gone(case: Case) -> Ending | None:
    """How M ends where W dropped the table that it means; None: it means none, or whatever has the name then.

    What counts as meaning it: at snapshot only writing it, at write serializable also rows that were shown, at serializable everything.
    """
    mine = case.mine
    told = {"snapshot": (), "write serializable": mine.queries, "serializable": (*mine.queries, *mine.fails, *mine.undone)}[case.level]
    reads = mine.reads_t and case.level != "snapshot"
    if not case.theirs.drops or mine.upkeep or not ("t" in mine.writes or reads or any("{t}" in s for s in told)):
        return None
    if case.explicit:
        return "conflicts"
    return None if mine.defines and not mine.reads_t else "fails"


def _one_after_the_other(case: Case, oracle: Oracle, told: Told, winner: list[str]) -> Promise:
    """W and then M, at either of the serializable levels."""
    oracle.together(winner)
    without = _contents(oracle, case)
    if gone := _gone(case):
        return Promise(gone, without, without, [], told)
    if case.level == "write serializable" and case.mine.blind and case.theirs.supersedes:
        return Promise("commits", without, without, [0] * len(case.mine.statements), told)
    now = _told(case, oracle)
    if now.stands is not None:
        return Promise("fails", without, without, [], told)
    if case.explicit and _differs(case, told, now):
        return Promise("conflicts", without, without, [], told)
    return _after(case, oracle, told, without)


def _after(case: Case, oracle: Oracle, told: Told, without: Contents) -> Promise:
    """M runs where W has run."""
    try:
        counts = oracle.together([case.my(s) for s in case.mine.statements])
    except duckdb.Error:
        return Promise("fails", without, without, [], told)
    is_nothing_left = bool(case.mine.upkeep) and case.theirs.drops
    return Promise("commits", _contents(oracle, case), without, counts, told, "fails" if is_nothing_left else None)


def _differs(case: Case, told: Told, now: Told) -> bool:
    if case.level == "write serializable":
        return told.shown != now.shown and not case.theirs.blind
    then = (told.errors, told.undone, told.shown, case.mine.counted(told.counts))
    return then != (now.errors, now.undone, now.shown, case.mine.counted(now.counts))


def _at_snapshot(case: Case, oracle: Oracle, told: Told, winner: list[str]) -> Promise:
    base = _rows(case, oracle)
    with oracle.taken_back():
        oracle.together([case.my(s) for s in case.mine.statements])
        mine = _rows(case, oracle)
    oracle.together(winner)
    without, theirs = _contents(oracle, case), _rows(case, oracle)
    if gone := _gone(case):
        return Promise(gone, without, without, [], told)
    if case.mine.defines:
        is_touched = case.theirs.defines or base["t"] != theirs["t"]
        yields = is_touched and (case.mine.reads_t or (case.mine.overwrites and _redefined(case)))
    else:
        yields = _redefined(case) or any(_contested(case, base[n], mine[n], theirs[n]) for n in case.mine.writes)
    if yields and case.explicit:
        return Promise("conflicts", without, without, [], told)
    if yields or case.mine.defines or case.mine.upkeep:
        return _after(case, oracle, told, without)
    return _laid_over(case, base, mine, theirs, told, without)


def _laid_over(case: Case, base: Tables, mine: Tables, theirs: Tables, told: Told, without: Contents) -> Promise:
    """What M did to each row, done to the rows that W left; a row that both deleted is counted once."""
    contents, counts = dict(without), told.counts
    for table in case.mine.writes:
        name = case.text(f"{{{table}}}")
        changed = _changed(base[table], mine[table])
        kept = [row for i, row in theirs[table].items() if i not in changed and not case.mine.overwrites]
        written = [row for i, row in mine[table].items() if i in changed or i not in base[table]]
        contents[name] = (without[name][0], multiset([*kept, *written]))
        if case.mine.statements[0].startswith(("DELETE", "TRUNCATE", "MERGE")):
            counts = [counts[0] - len(changed - theirs[table].keys()), *counts[1:]]
    return Promise("commits", contents, without, counts, told)


def _changed(base: Rows, now: Rows) -> set[int]:
    """The rows of the base that are gone or hold other values. (None of the statements writes a value that is there already.)"""
    return {i for i, row in base.items() if now.get(i) != row}


def _rows(case: Case, oracle: Oracle) -> Tables:
    """Of t and u, if they are there. DuckDB keeps the id of a row that is updated, and new rows have new ones."""
    there = oracle.tables()
    found: Tables = {"t": {}, "u": {}}
    for table in found:
        if (name := case.text(f"{{{table}}}")) in there:
            found[table] = {row_id: tuple(row) for row_id, *row in oracle.duck.execute(f"SELECT rowid, * FROM {name}").fetchall()}
    return found


def _redefined(case: Case) -> bool:
    """Whether W replaced or redefined a table that M writes. It redefines and replaces t only."""
    return "t" in case.mine.writes and (case.theirs.overwrites or case.theirs.defines) and not (case.theirs.by_id and not case.theirs.drops_column)


def _contested(case: Case, base: Rows, mine: Rows, theirs: Rows) -> bool:
    """Whether both changed a row that lives on with either. An overwrite of M contests nothing."""
    both = _changed(base, mine) & _changed(base, theirs)
    return not case.mine.overwrites and not both.isdisjoint(mine.keys() | theirs.keys())
