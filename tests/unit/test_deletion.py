"""Deletion vectors: what is written is read again, and nothing else is."""

from __future__ import annotations

import dataclasses

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lakelite import deletion
from lakelite.deletion import DeletionVector
from lakelite.errors import InternalError

ROWS = 3000
positions = st.sets(st.integers(0, ROWS - 1), min_size=1)


@given(positions)
def test_round_trip(marked):
    vector = DeletionVector(BitMap(marked), ROWS)
    again = deletion.decode(deletion.encode(vector), born=7)
    assert (again.positions, again.row_count, again.born) == (vector.positions, ROWS, 7)


@given(positions, st.data())
def test_damage_is_found(marked, data):
    encoded = deletion.encode(DeletionVector(BitMap(marked), ROWS))
    place = data.draw(st.integers(0, len(encoded.bits) - 1))
    flipped = bytes([*encoded.bits[:place], encoded.bits[place] ^ (1 << data.draw(st.integers(0, 7))), *encoded.bits[place + 1 :]])
    for damaged in (
        dataclasses.replace(encoded, bits=flipped),
        dataclasses.replace(encoded, bits=encoded.bits[:-1]),
        dataclasses.replace(encoded, cardinality=encoded.cardinality + 1),
        dataclasses.replace(encoded, row_count=max(marked)),
    ):
        with pytest.raises(InternalError):
            deletion.decode(damaged, born=None)


def test_what_is_never_stored():
    for vector in (DeletionVector(BitMap(), ROWS), DeletionVector(BitMap([ROWS]), ROWS)):
        with pytest.raises(InternalError):
            deletion.encode(vector)


@given(positions, positions)
def test_algebra(one, other):
    vector = DeletionVector(BitMap(one), ROWS)
    assert set(deletion.union(vector, BitMap(other), ROWS).positions) == one | other
    assert set(deletion.union(None, BitMap(other), ROWS).positions) == other
    assert deletion.common(vector, BitMap(other)) == len(one & other)


def test_union_leaves_its_parts_alone():
    vector, more = DeletionVector(BitMap([1]), ROWS), BitMap([2])
    joined = deletion.union(None, more, ROWS)
    deletion.union(vector, more, ROWS)
    more.add(5)
    assert set(vector.positions) == {1}
    assert set(joined.positions) == {2}


@given(positions)
def test_duckdb_reads_the_bitstring(marked):
    vector = DeletionVector(BitMap(marked), ROWS)
    sql = f"SELECT i FROM (SELECT ?::BLOB::BIT AS b), range({ROWS}) r(i) WHERE get_bit(b, i::INTEGER) = 1"
    assert {row[0] for row in duckdb.execute(sql, [deletion.bitstring(vector)]).fetchall()} == marked


def test_positions_of_arrays():
    assert deletion.positions_of(np.array([5, 1, 5], dtype=np.int64)) == deletion.positions_of([1, 5]) == BitMap([1, 5])
    assert len(deletion.everything(10)) == 10
