"""What somebody who used lakelite for the first time stumbled over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.language.tokens import split_script, without_leading_comments
from lakelite.settings import DUCKDB_SETTINGS


def test_a_script_goes_on_behind_each_broken_statement(lake: lakelite.Connection) -> None:
    found: list[Any] = []
    statements = lake.statements("SELEC 1; SELECT 4; ALTER VIEW t; SELECT (; SELECT $1; SELECT 5")
    while True:
        try:
            found.append(next(statements).fetchall())
        except StopIteration:
            break
        except lakelite.Error as error:
            found.append(type(error))
    assert found == [lakelite.ProgrammingError, [(4,)], lakelite.NotSupportedError, *[lakelite.ProgrammingError] * 2, [(5,)]]


@pytest.mark.parametrize("path", [None, 5, b"x", Path])
def test_a_path_is_a_str_or_a_path(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lakelite.InterfaceError, match=r"a str or a pathlib\.Path, not"):
        lakelite.connect(path)
    assert list(tmp_path.iterdir()) == []


def test_the_public_names_are_listed() -> None:
    assert dir(lakelite) == sorted(lakelite.__all__)
    assert {"connect", "Connection", "Cursor", "CommitResult", "Resolution"} <= set(dir(lakelite))


def test_comments_in_front_of_a_statement_are_not_recorded(lake: lakelite.Connection) -> None:
    lake.execute("-- one\n/* two /* three */ */ create /* kept */ table t (a integer); -- of the table\n insert into t values (1)")
    history = lake.execute("describe history")
    column = [d[0] for d in history.description].index("statements")
    assert [row[column] for row in history.fetchall()] == ["insert into t values (1)", "create /* kept */ table t (a integer)", ""]


@pytest.mark.parametrize("text", ["", "select 1", "--", "-- a\r-- b\n;", "/* a", "/**/ x /* y */", "- -1", "/ *", "--\n$a$ -- $a$"])
def test_a_text_without_its_leading_comments_has_the_same_tokens(text: str) -> None:
    shorter = without_leading_comments(text)
    assert text.endswith(shorter)
    pieces = list(split_script(text))
    assert [p.text[p.tokens[0].start :] for p in pieces[:1]] == [p.text for p in list(split_script(shorter))[:1]]
    assert not pieces or shorter.startswith(pieces[0].text[pieces[0].tokens[0].start :])


def test_version_0_is_of_the_level_that_there_is(lake: lakelite.Connection) -> None:
    history = lake.execute("describe history")
    column = [d[0] for d in history.description].index("isolation")
    assert history.fetchall()[0][column] == "write serializable"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("from flights at (version => 0)", 'table "flights" does not exist in version 0'),
        ("from flihgts at (version => 1)", "did you mean flights? DESCRIBE HISTORY lists the versions"),
        ("from s.flights at (version => 0)", 'schema "s" does not exist in version 0'),
    ],
)
def test_a_table_that_was_not_there_yet(lake: lakelite.Connection, query: str, error: str) -> None:
    lake.execute("create table flights (a integer); create schema s; create table s.flights (a integer)")
    with pytest.raises(lakelite.ProgrammingError) as caught:
        lake.execute(query)
    assert error in str(caught.value)
    assert "SHOW ALL TABLES" not in str(caught.value)


def test_show_knows_the_settings_of_duckdb(lake: lakelite.Connection) -> None:
    lake.execute("set threads = 1; set TimeZone = 'Asia/Tokyo'")
    listed = {name: value for name, value, _ in lake.execute("show all").fetchall()}
    assert listed.keys() >= DUCKDB_SETTINGS
    for name in DUCKDB_SETTINGS:
        assert lake.execute(f"show {name}").fetchall() == [(listed[name],)]
        assert lake.execute(f"select current_setting('{name}')::varchar").fetchall() == [(listed[name],)]
    assert (listed["threads"], listed["timezone"]) == ("1", "Asia/Tokyo")


def test_a_conflict_says_whose_rows_it_counts(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t (a integer); insert into t values (1), (2)")
    other = lakelite.connect(tmp_path / "lake", autocommit=True)
    lake.execute("begin; -- mine\n select sum(a) from t; update t set a = 7 where a = 1")
    other.execute("-- theirs\n update t set a = a + 1")
    other.close()
    with pytest.raises(lakelite.TransactionConflict) as caught:
        lake.execute("commit")
    assert "  rows changed by the winner: 2" in str(caught.value)
    assert "--" not in str(caught.value)
