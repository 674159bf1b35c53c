"""What CHECK LAKE says: one finding, and that something could not be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import duckdb

from lakelite.errors import Error
from lakelite.mapping.engine_errors import engine_error

RESTORE = "restore the lake from a copy"
RESTORE_FILE = "restore the file from a copy of the lake"


@dataclass(frozen=True, slots=True)
class Finding:
    """`severity`: error, where rows are or may become wrong or unreadable, or info."""

    severity: str
    object: str
    finding: str
    what_to_do: str


def guarded(name: str, what_to_do: str, looking: Iterable[Finding]) -> Iterator[Finding]:
    """What is found by looking at `name`; an error on the way is a finding too. An interrupt goes on."""
    try:
        yield from looking
    except Error as error:
        yield Finding("error", name, error.message, what_to_do)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        yield Finding("error", name, f"it cannot be read: {engine_error(error, '').message}", what_to_do)
