"""bucket(n, c): which of n buckets a value is in, the same in DuckDB and here, whatever the version of either. Pure.

The last eight bytes of the MD5 of the value's text (UTF-8), as a little-endian number, modulo n. The text is DuckDB's: 42, 2024-03-15,
2024-03-15 10:00:00 (of a timestamp with time zone in UTC), a UUID in lower case.
"""

from __future__ import annotations

import hashlib
from datetime import date
from functools import lru_cache

from lakelite.model import Comparable

_WHOLE = ("INT", "INTEGER")  # what the names of types for whole numbers end with


def is_whole(declared: str) -> bool:
    """Whether a type holds whole numbers."""
    return declared.endswith(_WHOLE)


def sql(expression: str, buckets: int) -> str:
    """The bucket of a value as SQL; NULL for NULL."""
    return f"md5_number_lower(CAST({expression} AS VARCHAR)) % {buckets}"


@lru_cache(maxsize=65_536, typed=True)
def bucket_of(wanted: Comparable, declared: str, buckets: int) -> int | None:
    """The bucket of a value that a condition asks for; None where DuckDB's text of it is not sure."""
    if (type(wanted) is int and is_whole(declared)) or (type(wanted) is str and declared == "VARCHAR"):
        text = str(wanted)
    elif type(wanted) is date and declared == "DATE":
        text = wanted.isoformat()
    else:
        return None
    digest = hashlib.md5(text.encode(errors="surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little") % buckets
