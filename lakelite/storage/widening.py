"""Which type takes every value of another as it is stored, so that a column can have it without new data. Pure.

The statistics of fragments stay right: bounds are read by the type of the condition (statistics.py).
"""

from __future__ import annotations

import re

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def is_widening(old: str, new: str) -> bool:
    """Whether `new` (DuckDB's canonical text, as `old`) holds every value of `old` exactly, and files of `old` can be read as `new`."""
    if old == new or (old, new) == ("FLOAT", "DOUBLE"):
        return True
    if new in _SIGNED:
        return old in _SIGNED[: _SIGNED.index(new)] or old in _UNSIGNED[: _SIGNED.index(new)]
    if new in _UNSIGNED:
        return old in _UNSIGNED[: _UNSIGNED.index(new)]
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if before is None or after is None:
        return False
    (width, scale), (new_width, new_scale) = ((int(m[1]), int(m[2])) for m in (before, after))
    return new_scale >= scale and new_width - new_scale >= width - scale
