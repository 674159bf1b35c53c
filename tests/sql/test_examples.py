"""The examples of sql/examples for two connections: they run as they stand there, and give the results that stand there."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.resources import folder

SWITCH = re.compile(r"^-- (\w+):$", re.MULTILINE)
STATEMENT = re.compile(r"^((?:BEGIN|COMMIT|[A-Z]+ [^;]+));(?: --> (.*))?$", re.MULTILINE)


@pytest.mark.parametrize("name", ["two_at_once.sql"])
def test_an_example_for_two_connections(name: str, tmp_path: Path) -> None:
    script = (folder("sql") / "examples" / name).read_text("utf-8")
    _, *parts = SWITCH.split(script)
    ran = checked = 0
    with ExitStack() as stack:
        people: dict[str, Any] = {}
        for who, text in zip(parts[::2], parts[1::2], strict=True):
            if who not in people:
                people[who] = stack.enter_context(lakelite.connect(tmp_path / "shop.lake", autocommit=True, author=who))
            for statement, result in STATEMENT.findall(text):
                rows = people[who].execute(statement)
                ran += 1
                if result:
                    assert str(rows.fetchall()) == result, statement
                    checked += 1
        assert people.keys() == {"ann", "bob"}
        found = people["ann"].execute("SELECT rung, explanation FROM lake.resolutions ORDER BY snapshot_id").fetchall()
    assert ran == script.count(";")
    assert checked == script.count("-->") - 1, "the first one is in the introduction"
    assert [rung for rung, _ in found] == [2, 3, 1, 4], found
