"""What the tests of data exchange share: the pin in a lease file, readers made by the test, and libraries that may be missing."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

NOT_PINNED = 2**64 - 1


def library(name: str) -> Any:
    """pandas or polars; the test is skipped where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        pytest.skip(f'{name} is not installed: pip install "lakelite[{name}]"')


def pinned(lake: Path) -> int | None:
    """The oldest snapshot that the one lease of a lake pins; None: nothing."""
    (lease,) = (lake / "leases").glob("*.lease")
    found = int.from_bytes(lease.read_bytes(), "little")
    return None if found == NOT_PINNED else found


def reader(*batches: dict[str, list[Any]], fails: str | None = None, log: list[int] | None = None) -> pa.RecordBatchReader:
    """A reader that can be read once, of these batches; with `fails` it raises behind the last one. `log` is told the number of each batch."""
    made = [pa.record_batch(batch) for batch in batches]

    def read() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(made):
            if log is not None:
                log.append(number)
            yield batch
        if fails is not None:
            raise ValueError(fails)

    return pa.RecordBatchReader.from_batches(made[0].schema, read())


class Stream:
    """Nothing but `__arrow_c_stream__`; each stream of a table."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Array:
    """Nothing but `__arrow_c_array__`."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.batch.__arrow_c_array__(requested_schema)
