"""What the tests of bad input share: that a refused statement leaves the lake as it was and names nothing of our own."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

import lakelite

OURS = re.compile(
    r"lake_internal|lake_names|lake_target|lake_updated|lake_arrow|_lake_|stage_\d|inline_\d|sqlglot|sqlite|Traceback|column c\d|scratch",
    re.IGNORECASE,
)


def state(con: lakelite.Connection) -> tuple[Any, ...]:
    """Everything that a statement could have changed: the version, the schemas, the tables with their columns, and their rows."""
    version = con.execute("describe history limit 1").fetchall()[0][0]
    tables = con.execute("show all tables").fetchall()
    hashes = [f"select {i}, count(*), bit_xor(hash(x)) from {quoted(t[1])}.{quoted(t[2])} x" for i, t in enumerate(tables)]
    rows = con.execute(" union all ".join([*hashes, "select -1, 0, 0"]) + " order by 1").fetchall()
    return version, con.execute("show schemas").fetchall(), tables, rows


_known: dict[tuple[int, bool], tuple[Any, ...]] = {}


def known_state(con: lakelite.Connection, inside: bool) -> tuple[Any, ...]:
    """The state before a statement, which is the same for all tests on a connection: in a transaction, with its own changes."""
    key = (id(con), inside)
    if key not in _known:
        _known[key] = state(con)
    return _known[key]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def refused(con: lakelite.Connection, sql: str, kind: str, place: str, words: str, parameters: Any = None) -> lakelite.Error:
    """Runs `sql` and checks the error and that nothing changed."""
    inside = con.in_transaction
    before = known_state(con, inside)
    with pytest.raises(lakelite.Error) as caught:
        con.execute(sql, parameters).fetchall()
    error = caught.value
    text = str(error)
    assert type(error).__name__ == kind, text
    for word in words.split(" ;; "):
        assert word in text
    assert (error.position and f"{error.position.line}:{error.position.column}") == (None if place == "-" else f"1:{place}"), text
    assert ours(text) <= ours(sql), f"names of our own objects in: {text}"
    assert error.__cause__ is None or isinstance(error.__cause__, duckdb.Error | sqlite3.Error | OSError | lakelite.Error)
    assert con.in_transaction == inside
    assert state(con) == before
    return error


def ours(text: str) -> set[str]:
    return {found.lower() for found in OURS.findall(text)}


def state_kept(con: lakelite.Connection, call: Callable[[], object]) -> lakelite.Error:
    """The error of `call`, which leaves the lake as it was, and the connection usable."""
    before = state(con)
    with pytest.raises(lakelite.Error) as caught:
        call()
    assert not ours(str(caught.value)), caught.value
    assert state(con) == before
    return caught.value
