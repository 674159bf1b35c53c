"""Conditions part tables in three, as plain DuckDB tables."""

from __future__ import annotations

import pytest

from trust import partition
from trust.figures import check


@pytest.mark.timeout(300)
def test_conditions_part_a_table() -> None:
    figures = partition.run(5, partition.SIZES[1])
    check("partition", figures)
    assert figures.counted["rows"] > 0
