"""Which values a limit can have, for a lake, a connection or one table, and which of them a table can have of its own. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakelite.errors import DataError
from lakelite.model import MOST_HOURS, Limits, Table, fold

SHOWN_VALUE = 40  # characters
TABLE_OPTIONS = (
    "compression", "inline_bytes", "inline_rows", "retention_hours", "row_group_rows", "target_file_bytes", "target_file_rows", "upkeep",
)  # fmt: skip
_CHOICES = {
    "overwrite_append": ("supersede", "keep"),
    "upkeep": ("on", "off"),
    "compression": ("snappy", "zstd", "gzip", "lz4", "uncompressed"),
}
_BOUNDS = {
    "inline_rows": (0, 1_000_000),
    "inline_bytes": (0, 100_000_000),  # SQLite holds values of up to 10^9 bytes
    "flush_fragments": (0, 1_000_000),
    "flush_rows": (0, 1_000_000_000),
    "row_group_rows": (1, 100_000_000),
    "target_file_bytes": (1, 2**40),
    "target_file_rows": (1, 1_000_000_000),
    "rewrite_percent": (1, 100),
    "upkeep_files": (1, 1_000_000),
    "upkeep_deleted_rows": (1, 1_000_000_000),
    "upkeep_values": (1, 1_000_000_000),
    "upkeep_bytes": (1, 2**40),
    "commit_attempts": (1, 1_000),
    "commit_time_ms": (0, 86_400_000),
    "commit_backoff_ms": (0, 60_000),
    "reevaluate_locked_rows": (0, 1_000_000_000),
    "lock_timeout_ms": (0, 86_400_000),
    "statement_timeout_ms": (0, 86_400_000),
    "retention_hours": (0, MOST_HOURS),
    "cache_bytes": (0, 2**40),
}


def value_of(name: str, text: str) -> Any:
    """The value of a limit; DataError if it is not one."""
    if name in _CHOICES:
        choice = fold(text.strip())
        if choice not in _CHOICES[name]:
            raise DataError(f'{name} cannot be "{text[:SHOWN_VALUE]}"', hint=f"it is one of: {', '.join(_CHOICES[name])}")
        return choice
    low, high = _BOUNDS[name]
    try:
        number = int(text)
    except ValueError:
        hint = f"it is a whole number from {low} to {high}"
        raise DataError(f'{name} has to be a whole number, not "{text[:SHOWN_VALUE]}"', hint=hint) from None
    if not low <= number <= high:
        raise DataError(f"{name} cannot be {text[:SHOWN_VALUE]}", hint=f"it is a whole number from {low} to {high}")
    return number


def limits_of(table: Table, limits: Limits) -> Limits:
    """The limits that hold for a table: its own options go before those of the connection. Options of a newer version are ignored."""
    if not table.options:
        return limits
    return replace(limits, **{name: value_of(name, value) for name, value in table.options if name in TABLE_OPTIONS})
