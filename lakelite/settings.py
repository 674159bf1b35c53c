"""Settings of a connection: our limits, the isolation level, and the few settings of DuckDB that are passed on.

A limit has its default in `model.Limits`, can be set for a lake (SET GLOBAL, the catalog's table `settings`) and for a connection (SET).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lakelite.errors import CannotOpen, DataError, NotSupportedError, ProgrammingError
from lakelite.model import MOST_HOURS, Limits, fold

ISOLATION_LEVELS = ("serializable", "write serializable", "snapshot")
DEFAULT_LEVEL = "write serializable"
RESULT_SETTINGS = frozenset({"timezone", "calendar", "default_order", "default_null_order"})  # what a statement gives depends on them
DUCKDB_SETTINGS = RESULT_SETTINGS | {"threads", "memory_limit", "max_memory"}
SHOWN_VALUE = 40  # characters
_ABOUT = {
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
_BOUNDS = {
    "inline_rows": (0, 1_000_000),
    "inline_bytes": (0, 100_000_000),  # SQLite holds values of up to 10^9 bytes
    "flush_fragments": (0, 1_000_000),
    "flush_rows": (0, 1_000_000_000),
    "row_group_rows": (1, 100_000_000),
    "commit_attempts": (1, 1_000),
    "lock_timeout_ms": (0, 86_400_000),
    "retention_hours": (0, MOST_HOURS),
    "cache_bytes": (0, 2**40),
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
        """`lake`: what the catalog holds; names that a newer version may have added are ignored. CannotOpen: values that cannot be."""
        try:
            self._lake = Limits(**{name: _number(name, value) for name, value in lake.items() if name in _ABOUT})
        except DataError as error:
            raise CannotOpen(f"the catalog was changed by another program: {error.message}", hint="restore the lake from a copy") from error
        self.limits = self._lake
        self.isolation = level_named(isolation)

    def change(self, name: str, value: Any) -> bool:
        """Sets one of ours (`value` None: back to the lake's). False: the name is none of ours. DataError: not a sensible value."""
        if name == "isolation_level":
            self.isolation = level_named(DEFAULT_LEVEL if value is None else str(value))
            return True
        if name not in _ABOUT:
            return False
        number = getattr(self._lake, name) if value is None else _number(name, str(value))
        self.limits = dataclasses.replace(self.limits, **{name: number})
        return True

    def all(self) -> dict[str, tuple[str, str]]:
        """Each of our settings with its value and description."""
        found = {name: (str(getattr(self.limits, name)), about) for name, about in _ABOUT.items()}
        return {**found, "isolation_level": (self.isolation, "what a commit promises of what was handed out")}


def _number(name: str, text: str) -> int:
    """The value of a limit; DataError if it is not one."""
    try:
        number = int(text)
    except ValueError:
        raise DataError(f'{name} has to be a whole number, not "{text[:SHOWN_VALUE]}"') from None
    low, high = _BOUNDS[name]
    if not low <= number <= high:
        raise DataError(f"{name} cannot be {text[:SHOWN_VALUE]}", hint=f"it is a whole number from {low} to {high}")
    return number
