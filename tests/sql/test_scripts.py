"""The scripts of `scripts/`, one for each row of statements that lakelite has: on a lake, and on plain DuckDB what is DuckDB's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
import scripted

import lakelite

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.test"))


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Callable[[str], Any]]]:
    """For an engine, a function that gives its connection of a name. Files that a script writes go to a directory of its own."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        database = stack.enter_context(closing(duckdb.connect()))

        def opened(engine: str) -> Any:
            if engine == "duckdb":
                return stack.enter_context(closing(database.cursor()))
            return stack.enter_context(lakelite.connect(tmp_path / "lake", autocommit=True))

        def of(engine: str) -> Callable[[str], Any]:
            known: dict[str, Any] = {}

            def named(name: str) -> Any:
                if name not in known:
                    known[name] = opened(engine)
                return known[name]

            return named

        yield of


@pytest.mark.parametrize("engine", scripted.ENGINES)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script: Path, engine: str, engines: Callable[[str], Callable[[str], Any]]) -> None:
    failures: tuple[type[Exception], ...] = (duckdb.Error,) if engine == "duckdb" else (lakelite.Error,)
    assert scripted.run(script, engine, engines(engine), failures) > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("statement maybe\nSELECT 1", "line 1"),
        ("\nquery X\nSELECT 1\n----\n1", "line 2"),
        ("query I\nSELECT 1", "line 1"),
        ("statement error\nSELECT 1", "needs a text"),
        ("onlyif postgres\nstatement ok\nSELECT 1", "no engine"),
    ],
)
def test_what_is_no_script(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(scripted.records(text))


@pytest.mark.parametrize(
    "text",
    [
        "query I\nSELECT 1\n----\n2",
        "query II\nSELECT 1\n----\n1",
        "query I\nFROM (VALUES (1), (2)) ORDER BY 1\n----\n2\n1",
        "query I\nSELECT 1\n----\n1\n1",
        "statement ok\nSELECT nothing",
        "statement error\nSELECT 1\n----\nanything",
        "statement error\nSELECT nothing\n----\nanother text",
    ],
)
def test_what_is_not_as_expected_fails(text: str, tmp_path: Path, engines: Callable[[str], Callable[[str], Any]]) -> None:
    (tmp_path / "x.test").write_text(text)
    with pytest.raises(AssertionError, match=r"x\.test, line 1, duckdb"):
        scripted.run(tmp_path / "x.test", "duckdb", engines("duckdb"), (duckdb.Error,))
