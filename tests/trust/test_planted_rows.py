"""Each bug of the table is found by the harness that its row names."""

from __future__ import annotations

import interleave.test_planted as resolver
import pytest
from interleave.test_planted import Bug
from planting import planted

from trust import bugs
from trust.planted import FILES, RESOLVER, ROWS, Row

PLANTED = [row for row in ROWS if isinstance(row.planted, Bug)]


@pytest.mark.parametrize("row", PLANTED, ids=lambda row: row.name.replace(" ", "-"))
def test_a_planted_bug_is_found(row: Row) -> None:
    assert isinstance(row.planted, Bug)
    row.planted.case()
    with planted(row.planted.where, row.planted.right, row.planted.wrong), pytest.raises((AssertionError, pytest.fail.Exception)):
        row.planted.case()


def test_the_other_rows_are_planted_where_they_say() -> None:
    there = {RESOLVER: {bug.name for bug in resolver.BUGS}, FILES: {*bugs.BUGS}}
    for row in ROWS:
        assert isinstance(row.planted, Bug) or row.planted in there[row.where], row.name
