"""Which fragments take part in a compaction: what each gains, how many stay, and how much one slice of upkeep moves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lakelite import deletion
from lakelite.contents import Clutter, TableState
from lakelite.maintenance import bins
from lakelite.model import Column, Field, Fragment, Limits, Table

LIMITS = Limits(target_file_rows=1_000, upkeep_values=200)
TABLE = Table(1, 1, "main", "t", tuple(Column(name, "BIGINT", Field(n, name, "BIGINT")) for n, name in enumerate("ab")))
PIECES = some.lists(some.tuples(some.integers(1, 1_200), some.integers(0, 99), some.booleans()), max_size=30)


def state(*pieces: tuple[int, int, bool]) -> TableState:
    """`pieces`: of each fragment its rows, how many percent of them are deleted, and whether it is inline (then it has at most 10 rows)."""
    fragments, vectors = {}, {}
    for number, (rows, percent, is_inline) in enumerate(pieces, start=1):
        rows = min(rows, 10) if is_inline else rows
        fragments[number] = Fragment(number, 1, "inline" if is_inline else "parquet", None if is_inline else "f", rows, 8 * rows, "", 1, False)
        if dead := rows * percent // 100:
            vectors[number] = deletion.DeletionVector(deletion.span(0, dead), rows)
    return TableState(TABLE, fragments, vectors)


def ids(planned: list[bins.Bin]) -> list[list[int]]:
    return [[f.fragment_id for f in one] for one in planned]


def compacted(before: TableState, planned: list[bins.Bin]) -> TableState:
    """What is there when the bins have become one file each."""
    moved = {f.fragment_id for one in planned for f in one}
    kept = {k: f for k, f in before.fragments.items() if k not in moved}
    for number, one in enumerate(planned, start=max(before.fragments, default=0) + 1):
        rows = sum(bins.live_rows(before, f) for f in one)
        kept[number] = Fragment(number, 1, "parquet", "f", rows, 8 * rows, "", 1, True)
    return TableState(TABLE, kept, {k: v for k, v in before.vectors.items() if k not in moved})


def test_a_large_file_stays_until_what_joins_it_is_a_share_of_it() -> None:
    assert ids(bins.due(state((400, 0, False), (79, 0, False)), (), LIMITS)) == []
    assert ids(bins.due(state((400, 0, False), (80, 0, False)), (), LIMITS)) == [[1, 2]]
    assert ids(bins.due(state((400, 10, False), (39, 0, False)), (), LIMITS)) == []
    assert ids(bins.due(state((400, 10, False), (40, 0, False)), (), LIMITS)) == [[1, 2]], "its own deleted rows count"
    assert ids(bins.due(state((400, 0, False), (30, 0, False), (30, 0, False)), (), LIMITS)) == [[2, 3]], "small ones are joined among themselves"


def test_a_few_inline_rows_are_moved_without_the_files() -> None:
    assert ids(bins.due(state((400, 0, False), (1, 0, True), (60, 0, False), (1, 0, True)), (), LIMITS)) == [[2, 4]]


def test_what_was_cut_off_by_a_file_that_stays_is_packed_anew() -> None:
    several = state((490, 0, False), (5, 0, False), (490, 0, False), (100, 20, False), (490, 0, False), (5, 0, False))
    assert ids(bins.due(several, (), LIMITS)) == [[1, 2, 3], [4, 6]]
    assert ids(bins.due(state((490, 0, False), (5, 0, False), (1_000, 0, False), (480, 0, False)), (), LIMITS)) == [[1, 2, 4]]


@given(PIECES)
def test_each_fragment_gains_and_few_stay(pieces: list[tuple[int, int, bool]]) -> None:
    now = state(*pieces)
    for _ in range(40):
        planned = bins.due(now, (), LIMITS)
        for one in planned:
            rows = sum(bins.live_rows(now, f) for f in one)
            assert len(one) == 1 or rows <= LIMITS.target_file_rows
            for f in one:
                gained = rows - bins.live_rows(now, f) + f.row_count - bins.live_rows(now, f)
                assert f.storage == "inline" or gained * 5 >= f.row_count
        if not planned:
            break
        now = compacted(now, planned)
    else:
        raise AssertionError("it never ends")
    assert all(f.storage == "parquet" for f in now.fragments.values())
    left = [bins.live_rows(now, f) for f in now.fragments.values()]
    small = [rows for rows in left if rows * 2 < LIMITS.target_file_rows]
    assert len(small) <= (2 * sum(small) / LIMITS.target_file_rows + 1) * (1 + math.log(max(1, sum(small)), 6))


@given(PIECES)
def test_a_slice_moves_no_more_than_its_bound(pieces: list[tuple[int, int, bool]]) -> None:
    now = state(*pieces)
    planned = bins.due_at_once(now, LIMITS)
    moved = [f for one in planned for f in one]
    assert sum(bins.live_rows(now, f) for f in moved) * len(TABLE.columns) <= LIMITS.upkeep_values
    assert len({f.fragment_id for f in moved}) == len(moved)
    inline = [f for f in now.fragments.values() if f.storage == "inline"]
    assert planned or not inline


def test_an_inline_fragment_beyond_the_bound_is_moved_all_the_same() -> None:
    assert ids(bins.due_at_once(state((10, 0, True)), replace(LIMITS, upkeep_values=5))) == [[1]]


@pytest.mark.parametrize(
    ("before", "after", "is_due"),
    [
        ((100, 0, 0, 0), (101, 0, 0, 0), True),
        ((99, 0, 0, 0), (100, 0, 0, 0), False),
        ((101, 0, 0, 0), (102, 0, 0, 0), False),
        ((201, 0, 0, 0), (202, 0, 0, 0), True),
        ((0, 20_000, 0, 0), (0, 20_001, 0, 0), True),
        ((0, 0, 16, 0), (0, 0, 17, 0), True),
        ((0, 0, 17, 0), (0, 0, 33, 0), False),
        ((0, 0, 0, 9_990), (0, 0, 0, 25_000), True),
        ((0, 0, 40, 5_000), (0, 0, 17, 0), False),
    ],
)
def test_who_looks_after_a_table(before: tuple[int, ...], after: tuple[int, ...], is_due: bool) -> None:
    assert bins.is_upkeep_due(Clutter(*before), Clutter(*after), Limits()) is is_due
    assert not bins.is_upkeep_due(Clutter(*before), Clutter(*after), Limits(upkeep="off"))
