"""The named statements of sql/queries and the scripts of sql/migrations. Reads package files; never a database.

A condition that several statements of a file share is a `-- fragment: NAME`, which stands for `{NAME}` in those behind it.
"""

from __future__ import annotations

import re
from functools import cache

from lakelite.resources import folder

_NAME = re.compile(r"^-- (name|fragment): (\w+)$", re.MULTILINE)
_SHARED = re.compile(r"\{(\w+)\}")


@cache
def queries() -> dict[str, str]:
    """Every named statement by its name."""
    found: dict[str, str] = {}
    for path in sorted((folder("sql") / "queries").glob("*.sql")):
        pieces = _NAME.split(path.read_text(encoding="utf-8"))
        fragments: dict[str, str] = {}
        for kind, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            assert name not in found, f"two catalog queries are called {name}"
            whole = _SHARED.sub(lambda shared, known=fragments: known[shared[1]], text.strip().removesuffix(";"))
            (fragments if kind == "fragment" else found)[name] = whole
    return found


@cache
def migrations() -> tuple[str, ...]:
    """The migration scripts in order; the n-th one takes a catalog from user_version n - 1 to n."""
    return tuple(p.read_text(encoding="utf-8") for p in sorted((folder("sql") / "migrations").glob("*.sql")))
