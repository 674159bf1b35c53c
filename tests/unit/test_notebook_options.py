"""What stands behind %lake: options, a path, or SQL."""

from __future__ import annotations

import pytest

from lakelite.errors import ProgrammingError
from lakelite.interfaces.notebook.options import Line, read_cell, read_line, version_of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", Line()),
        ("shop.lake", Line("shop.lake")),
        ("'my shop.lake' --read-only", Line("my shop.lake", given={"read-only": ""})),
        ('--at 3 --branch=b "select"', Line("select", given={"at": "3", "branch": "b"})),
        ("./commit --author 'Ann B'", Line("./commit", given={"author": "Ann B"})),
        ("commit.lake", Line("commit.lake")),
        ("with-dash", Line("with-dash")),
        (":memory:", Line(":memory:")),
        ("/select/x", Line("/select/x")),
        ("..", Line("..")),
        (".hidden.lake", Line(".hidden.lake")),
        ("./.hidden", Line("./.hidden")),
        (".tables", Line(sql=".tables")),
        (".diff 1 2;", Line(sql=".diff 1 2;")),
        ("\\d t", Line(sql="\\d t")),
        ("commit", Line(sql="commit")),
        ("COMMIT;", Line(sql="COMMIT;")),
        ("select(1)", Line(sql="select(1)")),
        ("SELECT * FROM t -- it's", Line(sql="SELECT * FROM t -- it's")),
        ("--out df --as pl FROM t", Line(sql="FROM t", given={"out": "df", "as": "pl"})),
        ("--at newest", Line(given={"at": "newest"})),
        ("--help", Line(given={"help": ""})),
    ],
)
def test_what_a_line_means(text: str, line: Line) -> None:
    assert read_line(text) == line


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a b", "%lake takes one path, and then options: b is neither", "a path with spaces goes in quotes"),
        ("--read-onyl x", "there is no option --read-onyl", "did you mean read-only?"),
        ("--at", "--at takes a value", "%lake --help lists the options"),
        ("--out df x.lake", "--out means nothing with a path", "%lake --help says where it does"),
        ("--author ann SELECT 1", "--author means nothing with SQL", "%lake --help says where it does"),
        ("--read-only", "--read-only means nothing without a path", "%lake --help says where it does"),
        ("--out df --as pd SELECT 1", "--as takes df, pl or arrow, not pd", None),
        ("--as pl SELECT 1", "--as says what --out makes: a variable is missing", "--out df --as pl"),
        ("--out 1x SELECT 1", "--out takes the name of a variable, not 1x", None),
        ("--out class SELECT 1", "--out takes the name of a variable, not class", None),
    ],
)
def test_what_a_line_cannot_mean(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(ProgrammingError) as caught:
        read_line(text)
    assert caught.value.message == message
    if hint is not None:
        assert caught.value.hint == hint


def test_a_cell_is_sql_whatever_it_begins_with() -> None:
    assert read_cell("--out df", "shop.lake") == Line(sql="shop.lake", given={"out": "df"})
    with pytest.raises(ProgrammingError, match="%%lake takes options, and SQL from the next line on, not SELECT 1"):
        read_cell("SELECT 1", "")


def test_versions() -> None:
    assert version_of("7") == 7
    assert version_of("NEWEST") is None
    for text in ("-1", "1.5", "²", "9" * 30, "x"):
        with pytest.raises(ProgrammingError, match="--at takes the number of a version, or newest"):
            version_of(text)
