"""Settings of a connection: our limits, the isolation level, and the few settings of DuckDB that are passed on.

A limit has its default in `model.Limits`, can be set for a lake (SET GLOBAL, the catalog's table `settings`) and for a connection (SET).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lakelite.errors import DataError, NotSupportedError, ProgrammingError
from lakelite.model import Limits, fold

ISOLATION_LEVELS = ("serializable", "write serializable", "snapshot")
DEFAULT_LEVEL = "write serializable"
DUCKDB_SETTINGS = frozenset({"threads", "memory_limit", "max_memory", "timezone", "calendar", "default_order", "default_null_order"})
_ABOUT = {
    "statement_bytes": "longest statement, in bytes of UTF-8",
    "inline_rows": "a write of at most so many rows is kept inline, in the catalog",
    "inline_bytes": "and of at most so many bytes",
    "flush_fragments": "more inline fragments than this are moved into a Parquet file",
    "flush_rows": "as are more inline rows than this",
    "row_group_rows": "rows of a Parquet row group",
    "commit_attempts": "how often a commit is tried before the last attempt runs under the commit lock",
    "lock_timeout_ms": "how long a commit waits for its turn",
    "retention_hours": "VACUUM keeps versions that are younger",
    "cache_bytes": "memory for bitstrings of deletion vectors",
}


def level_named(name: str) -> str:
    """The isolation level of that name, with spaces or underscores, in any case; the ones that are not built yet are refused."""
    level = fold(name.strip()).replace("_", " ")
    if level not in ISOLATION_LEVELS:
        raise ProgrammingError(f'there is no isolation level "{name}"', hint=f"the levels are: {', '.join(ISOLATION_LEVELS)}")
    if level != DEFAULT_LEVEL:
        raise NotSupportedError(f"isolation level {level} is not supported yet", hint=f'use "{DEFAULT_LEVEL}", the default')
    return level


class Settings:
    """The settings of one connection."""

    def __init__(self, lake: Mapping[str, str], isolation: str) -> None:
        """`lake`: what the catalog holds; names that a newer version may have added are ignored."""
        known = {f.name for f in dataclasses.fields(Limits)}
        self._lake = Limits(**{name: int(value) for name, value in lake.items() if name in known})
        self.limits = self._lake
        self.isolation = level_named(isolation)

    def change(self, name: str, value: Any) -> bool:
        """Sets one of ours (`value` None: back to the lake's). False: the name is none of ours. DataError: not a sensible value."""
        if name == "isolation_level":
            self.isolation = level_named(DEFAULT_LEVEL if value is None else str(value))
            return True
        if name not in _ABOUT:
            return False
        if value is None:
            value = getattr(self._lake, name)
        try:
            number = int(str(value))
        except ValueError:
            raise DataError(f'{name} has to be a whole number, not "{value}"') from None
        if not 0 <= number < 2**62 or (number == 0 and name in ("statement_bytes", "row_group_rows", "commit_attempts")):
            raise DataError(f"{name} cannot be {number}")
        self.limits = dataclasses.replace(self.limits, **{name: number})
        return True

    @staticmethod
    def is_limit(name: str) -> bool:
        """Whether it is one of the limits, which a lake can have a value for."""
        return name in _ABOUT

    def all(self) -> dict[str, tuple[str, str]]:
        """Each of our settings with its value and description."""
        found = {name: (str(getattr(self.limits, name)), about) for name, about in _ABOUT.items()}
        return {**found, "isolation_level": (self.isolation, "what a commit promises of what was handed out")}
