"""The reference in lakelite/docs and `.help` name what the code has: no statement, setting, view, column, command or error more or less."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import get_args

import documents
import pytest
import reference

import lakelite
from lakelite import errors
from lakelite.bounds import TABLE_OPTIONS
from lakelite.catalog.system import VIEWS
from lakelite.interfaces import topics
from lakelite.interfaces.commands import registry
from lakelite.interfaces.runner import Runner
from lakelite.language import statements as st
from lakelite.language.parse import _FIRST_WORDS, _READERS, _REFUSED_FIRST, parse_script
from lakelite.settings import DUCKDB_SETTINGS, OF_CONNECTION

TEXTS = {page.stem: page.read_text(encoding="utf-8") for page in documents.PAGES}


def of(kind: str) -> list[topics.Topic]:
    return [topic for topic in topics.topics() if topic.kind == kind]


@pytest.mark.parametrize("page", TEXTS)
def test_what_follows_from_the_code_is_up_to_date(page: str) -> None:
    assert reference.written(TEXTS[page]) == TEXTS[page], "run: python tests/reference.py"


def test_each_table_that_follows_from_the_code_stands_once() -> None:
    assert sorted(part for text in TEXTS.values() for part in reference.parts_in(text)) == sorted(reference.PARTS)


def test_system_views_and_their_columns() -> None:
    told = {topic.title: re.findall(r"^\| `(\w+)` \| (\S+) \|", topic.text, re.MULTILINE) for topic in of(topics.VIEW)}
    assert told == {f"lake.{name}": list(view.columns) for name, view in VIEWS.items()}


def test_settings_and_options() -> None:
    told = {topic.title for topic in of(topics.SETTING)}
    with lakelite.connect(autocommit=True) as con:
        there = {name for (name,) in con.execute("SELECT name FROM lake.settings").fetchall()}
    assert told | DUCKDB_SETTINGS == there
    assert told >= OF_CONNECTION | set(TABLE_OPTIONS)


def test_statements_begin_with_the_words_that_the_parser_knows() -> None:
    words = {name.split()[0] for topic in of(topics.STATEMENT) for name in topic.names} - {"table_changes", "RETURNING"}
    assert words == {word for word in _FIRST_WORDS if word in _READERS or word not in _REFUSED_FIRST}


def test_each_kind_of_statement_has_an_example() -> None:
    """In a section that has a name with which it begins."""
    seen: set[type] = {st.Append}  # what con.append runs
    for topic in of(topics.STATEMENT):
        (example,) = re.findall(r"^```sql\n(.*?)^```$", topic.text, re.DOTALL | re.MULTILINE)
        parsed = [one for text, _ in documents.statements(example) for one in parse_script(text)]
        seen |= {type(one.operation) for one in parsed}
        begins = [" ".join(one.text.split()).upper() for one in parsed]
        assert topic.title in ("RETURNING", "table_changes") or any(text.startswith(name) for text in begins for name in topic.names), topic.title
    assert seen == set(get_args(st.Operation))


def test_forms_come_first() -> None:
    assert all(topic.text.startswith("```text\n") for topic in of(topics.STATEMENT))


def test_errors_are_told() -> None:
    classes = [one for one, _ in reference._classes(lakelite.Error)]
    assert {topic.title for topic in of(topics.ERROR)} == {"Warning", *(one.__name__ for one in classes)}
    assert {topic.names[1] for topic in of(topics.ERROR) if len(topic.names) > 1} == {one.sqlstate for one in classes} - {None}


def test_kinds_of_conflicts_are_told() -> None:
    table = re.search(r"^\| kind \|.*\n\|---.*\n((?:\|.*\n)+)", TEXTS["concurrency"], re.MULTILINE)
    assert table is not None
    assert tuple(re.findall(r"^\| ([\w ]+) \|", table[1], re.MULTILINE)) == get_args(errors.ConflictKind)


def test_all_public_names_are_told() -> None:
    text = TEXTS["python"] + TEXTS["errors"]
    assert [name for name in lakelite.__all__ if not re.search(rf"\b{name}\b", text)] == []


def helped(name: str) -> str:
    """What `.help` says on a name."""
    runner = Runner(None, io.StringIO(), io.StringIO())
    registry.obey(f".help {name}".rstrip(), runner)
    return runner.err.getvalue()


def test_help_explains_each_topic() -> None:
    for topic in topics.topics():
        for name in topic.names:
            assert topic.title in helped(name.lower()), name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("update", ["[WITH …] UPDATE t", "match is\nupdated once"]),
        ("Alter", ["See also: ALTER TABLE, ALTER VIEW"]),
        ("import", [".import FILE TABLE", "IMPORT DATABASE 'directory'"]),
        ("show", ["SHOW name | ALL", "See also: SHOW BRANCHES, SHOW TAGS, SHOW TABLES"]),
        ("set  commit", []),
        ("restore", ["RESTORE [TABLE] t TO"]),
        ("retention_hours", ["default: 168", "younger"]),
        ("lake.tags", ["tagged_snapshot_id"]),
        ("40001", ["TransactionConflict", "rolled back whole"]),
        ("attach", ["read other files with read_parquet"]),
    ],
)
def test_help(name: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    if not words:
        with pytest.raises(lakelite.ProgrammingError, match="there is no help on"):
            helped(name)
        return
    said = helped(name)
    assert all(word in said for word in words), said
    assert "```" not in said
    assert "](" not in said


@pytest.mark.parametrize(
    ("slip", "meant"), [("updaet", "UPDATE"), ("snapshots", "lake.snapshots"), ("commit_atempts", "commit_attempts"), (".hsitory", ".history")]
)
def test_help_on_a_slip(slip: str, meant: str) -> None:
    with pytest.raises(lakelite.ProgrammingError) as error:
        helped(slip)
    assert meant in (error.value.hint or "")


def test_help_lists_all_statements() -> None:
    said = " ".join(helped("").split())
    assert ", ".join(topic.title for topic in of(topics.STATEMENT)) in said


def test_a_comparison_names_tests_that_are_there() -> None:
    """Each row of the table of features names the test by which it is true of lakelite."""
    rows = [line for line in TEXTS["compared"].splitlines() if "<!-- tests/" in line]
    features = TEXTS["compared"].partition("## With other prompts")[2]
    assert len(rows) == len(re.findall(r"^\| (?!---|feature)", features, re.MULTILINE))
    for row in rows:
        for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", row):
            assert re.search(rf"^ *def {name}\(", Path(documents.ROOT, path).read_text(encoding="utf-8"), re.MULTILINE), row
