"""Whole sessions in a real terminal, by what stands on its screen."""

from __future__ import annotations

import re

import pytest
import terminal

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
LONG = "select count(*) from range(100000000000) as r(i) where sqrt(i) < 0;"


@pytest.fixture
def lakelite(tmp_path):
    """Opens terminals in `tmp_path`."""
    opened = []

    def lakelite(*arguments, **options):
        opened.append(terminal.Terminal(tmp_path, *(arguments or ("x.lake",)), **options))
        return opened[-1]

    yield lakelite
    for one in opened:
        one.close()


def test_a_session(lakelite, tmp_path):
    session = lakelite(columns=40)
    session.until("x>")
    session.type("select 1 as a,\r")
    session.until(".>")
    session.type(f"{'y' * 60!r} as long;\r")
    seen = "\n".join(session.shows("1 row, "))
    assert "│       1 │ yyy" in seen
    assert "y… │" in seen
    session.type("create table t as select 1 as a;\r")
    session.shows("1 row changed, ")
    session.type("begin;\r")
    session.until("x*>")
    session.type("select 'my secret' as s;\r")
    session.shows("my secret │")
    session.type(".quit\r")
    session.shows("A transaction is open")
    session.until("x*>")
    session.type("rollback;\r")
    session.until("x>")
    session.type(CTRL_D)
    assert session.ends() == 0
    lines = (tmp_path / "state" / "lakelite" / "history").read_text().splitlines()
    assert lines == ["select 1 as a,", f"{'y' * 60!r} as long;", "create table t as select 1 as a;", "begin;", "rollback;"]


def test_ctrl_c_clears_the_line_and_cancels_a_query(lakelite):
    session = lakelite()
    session.until("x>")
    session.type("select half")
    session.until("x> select half")
    session.type(CTRL_C)
    session.until("x>")
    session.type(LONG + "\r")
    session.until("< 0;")
    session.type(CTRL_C)
    session.until(lambda lines: lines[-2:] == ["^Cinterrupted", "x>"], 10)
    session.type("select * from nowhere;\r")
    session.shows("error: ")
    session.type("select 41 + 1 as answer;\r")
    assert "│      42 │" in session.shows("1 row, ")
    session.type(".quit\r")
    assert session.ends() == 0


def test_history_and_suggestions_from_another_session(lakelite):
    session = lakelite()
    session.until("x>")
    session.type("select 40 +\r2 as answer;\r")
    session.shows("42 │")
    session.type(CTRL_D)
    assert session.ends() == 0
    again = lakelite()
    again.until("x>")
    again.type("sel")
    again.shows("x> select 40 +")  # in grey
    again.type(UP)
    again.shows("2 as answer;")
    again.type("\r")
    again.shows("42 │")


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_without_colours(lakelite, environment):
    session = lakelite(**environment)
    session.until("x>")
    session.type("select null as n,\r1 as one;\r")
    session.shows("1 row, ")
    assert "NULL" in "\n".join(session.lines)
    session.type(CTRL_D)
    assert session.ends() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7][;m]", session.raw)
    assert ("\x1b" in session.raw) == (environment != {"TERM": "dumb"})


def test_a_terminal_that_is_resized(lakelite):
    session = lakelite(columns=100)
    session.until("x>")
    session.type("select repeat('z', 90) as z;\r")
    session.shows("z" * 90)
    session.type("SELECT re")
    session.until("x> SELECT re")
    session.resize(40, 20)
    session.type("peat('w', 90) as w;\r")
    session.shows("1 row, ")
    assert any(line.startswith("│ www") and line.endswith("w… │") and len(line) == 40 for line in session.lines)
