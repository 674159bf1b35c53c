"""What CHECK LAKE says: one finding, and that something could not be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

import duckdb

from lakelite.errors import Error
from lakelite.mapping.engine_errors import engine_error
from lakelite.model import Statistics
from lakelite.records import dataclass
from lakelite.storage.files import DataFile

RESTORE = "restore the lake from a copy"
RESTORE_FILE = "restore the file from a copy of the lake"


@dataclass(frozen=True, slots=True)
class Filters:
    """The file with the key filters of a data file, to be removed."""

    table_id: int
    file_name: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is to be known of a column of a fragment."""

    fragment_id: int
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class CatalogIndex:
    """An index of the catalog, to be made anew."""

    name: str


@dataclass(frozen=True, slots=True)
class Finding:
    """`severity`: error, where rows are or may become wrong or unreadable, or info, or repaired.

    `cure`: what REPAIR mends it by: a file that is none of the lake's, filters to remove, bounds to write, an index to make; None: it cannot.
    """

    severity: str
    object: str
    finding: str
    what_to_do: str
    cure: DataFile | Filters | Bounds | CatalogIndex | None = field(default=None, compare=False)


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
