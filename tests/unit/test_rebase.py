"""A compaction on the head: which of its outputs land, from values alone."""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap

from lakelite import composition
from lakelite.contents import TableState
from lakelite.deletion import DeletionVector
from lakelite.model import Fragment, Table
from lakelite.storage.fragment import Staged
from lakelite.transaction.changes import TableChange
from lakelite.transaction.delta import Delta
from lakelite.transaction.rebase import compaction

TABLE = Table(1, 1, "main", "t", ())


def fragment(fragment_id: int, rows: int = 4) -> Fragment:
    return Fragment(fragment_id, 1, "inline", None, rows, 1, "", 1, False)


BASE = TableState(TABLE, {k: fragment(k) for k in range(1, 6)}, {})


def half_and_half(first: int, second: int) -> composition.Composition:
    """An output with two rows of each: the last two of the first, the first two of the second."""
    read = [(fragment(first), None), (fragment(second), None)]
    return composition.of(read, np.arange(4, dtype=np.uint32)[::-1], {first: BitMap([2, 3]), second: BitMap([0, 1])})


CHAIN = {-1: half_and_half(1, 2), -2: half_and_half(2, 3), -3: half_and_half(3, 4), -4: composition.of([(fragment(5), None)])}


def landed(head: TableState, made: dict[int, composition.Composition]) -> TableChange:
    change = TableChange(
        TABLE,
        kinds=frozenset({"compaction"}),
        deleted={k: BASE.alive(k) for k in BASE.fragments},
        staged={k: Staged(fragment(k), b"") for k in CHAIN},
        made=CHAIN,
    )
    return compaction(change, Delta(BASE, head, made))


def test_outputs_that_share_sources_with_a_dropped_one_are_dropped_through_any_number_of_others():
    head = TableState(TABLE, {k: f for k, f in BASE.fragments.items() if k != 1} | {9: fragment(9)}, {})
    change = landed(head, {9: composition.of([(fragment(1), None)])})
    assert change.made.keys() == change.staged.keys() == {-4}
    assert change.deleted.keys() == {5}


def test_what_winners_deleted_of_a_source_is_deleted_in_each_output_that_has_it():
    vectors = {2: DeletionVector(BitMap([0, 3]), 4, 7)}
    change = landed(TableState(TABLE, {k: f for k, f in BASE.fragments.items() if k != 5}, vectors), {})
    assert change.made.keys() == CHAIN.keys()
    assert dict(change.staged_deleted) == {-1: BitMap([1]), -2: BitMap([2]), -4: BitMap([0, 1, 2, 3])}
    assert [s.fragment.fragment_id for s in change.live_staged()] == [-1, -2, -3]
