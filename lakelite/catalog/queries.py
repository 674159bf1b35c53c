"""The named statements of sql/queries and the scripts of sql/migrations. Reads package files; never a database."""

from __future__ import annotations

import re
from functools import cache

from lakelite.resources import folder

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """Every named statement by its name."""
    found: dict[str, str] = {}
    for path in sorted((folder("sql") / "queries").glob("*.sql")):
        pieces = _NAME.split(path.read_text(encoding="utf-8"))
        for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
            assert name not in found, f"two catalog queries are called {name}"
            found[name] = text.strip().removesuffix(";")
    return found


@cache
def migrations() -> tuple[str, ...]:
    """The migration scripts in order; the n-th one takes a catalog from user_version n - 1 to n."""
    return tuple(p.read_text(encoding="utf-8") for p in sorted((folder("sql") / "migrations").glob("*.sql")))
