"""What a primary key costs: INSERTs into a large table that has one, against the same table without."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import alternating_ms, table

import lakelite

FILES = 8
WANTED = 3.0


def filled(con: Any, name: str, key: str, rows: int) -> None:
    """A table of even keys, which lie in all files alike."""
    con.execute(f"CREATE TABLE {name} (k BIGINT{key}, w VARCHAR)")
    for i in range(FILES):
        con.execute(f"INSERT INTO {name} SELECT (range * {FILES} + {i}) * 2, 'row ' || range FROM range({rows // FILES})")


def inserts(con: Any, first: int, apart: int, count: int) -> dict[str, Callable[[int], object]]:
    """INSERTs of `count` odd keys, `apart` from each other, into either table."""

    def into(name: str) -> Callable[[int], object]:
        return lambda i: con.execute(f"INSERT INTO {name} SELECT {first} + range * {apart} + {2 * i + 41}, 'new' FROM range({count})")

    return {name: into(name) for name in ("keyed", "plain")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, lakelite.connect(Path(folder) / "lake", autocommit=True) as con:
        con.execute("SET upkeep = 'off'")
        filled(con, "plain", "", given.rows)
        filled(con, "keyed", " PRIMARY KEY", given.rows)
        behind = 4 * given.rows
        cases = {
            "1 row": inserts(con, 0, 1, 1),
            "1,000 rows, keys behind all others": inserts(con, behind, 1000, 1000),
            "1,000 rows, keys spread over all files": inserts(con, 200, 2 * given.rows // 1000, 1000),
        }
        found = [(what, alternating_ms(works, given.times)) for what, works in cases.items()]
    table(
        f"INSERT into {given.rows} rows, ms, with a primary key (lakelite) and without (other)",
        [(w, ms["keyed"], ms["plain"], WANTED) for w, ms in found],
    )


if __name__ == "__main__":
    main()
