"""A lake with a table and a branch of it, and what tests of merges ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lakelite


def made(path: Path | str = ":memory:", *, inline_rows: int = 1000, deletes: bool = False) -> Any:
    """A lake with a table of ten rows and a branch of it; its connection is on main."""
    con = lakelite.connect(path, autocommit=True)
    con.execute(f"SET inline_rows = {inline_rows}")
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)")
    con.execute("INSERT INTO t SELECT r, r * 10 FROM range(12) q(r)")
    if deletes:
        con.execute("DELETE FROM t WHERE k IN (10, 11)")
    con.execute("CREATE BRANCH dev")
    return con


def on(con: Any, branch: str, script: str) -> None:
    """Runs a script on a branch, and comes back to main."""
    con.execute(f"USE BRANCH {branch}")
    con.executescript(script)
    con.execute("USE BRANCH main")


def answer(con: Any, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = con.execute(sql, parameters).fetchall()
    return found


def table(con: Any, name: str = "t") -> dict[Any, Any]:
    return {row[0]: row[1] if len(row) == 2 else row[1:] for row in answer(con, f"SELECT * FROM {name}")}


def shown(con: Any, branch: str) -> tuple[list[str], list[Any]]:
    """Columns and rows of t on a branch."""
    con.execute(f"USE BRANCH {branch}")
    cursor = con.execute("FROM t ORDER BY k")
    return [c[0] for c in cursor.description], cursor.fetchall()


BASE = {k: k * 10 for k in range(10)}
