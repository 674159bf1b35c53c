"""Whole sessions in a real terminal, by what stands on its screen."""

from __future__ import annotations

import re
from html import unescape

import picture
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
    session.type("select a, a + 1 as b, a + 2 as c, nope, a + 3 as d from t where a > 0;\r")
    seen = session.until(lambda lines: lines[-1] == "x>" and "Hint" in "\n".join(lines[-4:]))
    caret = next(i for i, line in enumerate(seen) if line.strip() == "^")
    assert seen[caret - 2] == "LINE 1, COLUMN 35:"
    assert seen[caret - 1].startswith("nope", seen[caret].index("^"))
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
    slip = "select a, a + 1 as b, a + 2 as c, nope, a + 3 as d from t where a > 0;"
    assert lines == ["select 1 as a,", f"{'y' * 60!r} as long;", "create table t as select 1 as a;", slip, "begin;", "rollback;"]


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


def test_the_screen_of_a_completion(lakelite):
    session = lakelite(columns=60)
    session.until("x>")
    session.type("create table flights (carrier varchar, delay integer);\r")
    session.shows("done, ")
    session.type("select * from flights f where f.\t")
    seen = session.shows("INTEGER")
    assert [line.split() for line in seen[-2:]] == [["carrier", "VARCHAR"], ["delay", "INTEGER"]]
    session.type("\t\t\r")
    session.until("where f.delay")
    session.type(" is null;\r")
    session.shows("0 rows, ")
    session.type("from fli\t")
    session.until("x> from flights")
    session.type(CTRL_C + ".mod\t")
    session.until("x> .mode")


def test_all_is_promised_where_it_shows_all(lakelite, tmp_path):
    """What wrote is not run again, and is not said to be; what shows, describes or looks is."""
    paged = tmp_path / "paged"
    session = lakelite(lines=20, PAGER=f"tee {paged}")
    session.until("x>")
    session.type("create table t as select range + 100 as n from range(50);\r")
    session.shows("50 rows changed")
    session.type("delete from t where n < 140 returning n;\r")
    assert "shows all" not in "\n".join(session.shows("40 rows, 28 of them not shown."))
    session.type(".all\r")
    session.shows("error: .all runs a query again, and the last statement was none")
    for typed, whole in (("show all;", "statement_timeout_ms"), ("describe history;", "CREATE TABLE"), (".files t", "snapshot")):
        session.type(f"{typed}\r")
        session.shows(".all shows all")
        session.type(".all\r")
        session.until(lambda lines, whole=whole: paged.exists() and whole in paged.read_text())


def test_a_long_result_is_elided_to_the_screen_and_shown_whole_by_a_pager(lakelite, tmp_path):
    session = lakelite(lines=20, PAGER=f"tee {tmp_path / 'paged'}")
    session.until("x>")
    session.type("select range + 100 as n, null as nothing from range(500);\r")
    seen = session.shows("500 rows, 488 of them not shown. .all shows all")
    assert [int(n) for n in re.findall(r"│ +(\d+) │", "\n".join(seen))] == [*range(100, 106), *range(594, 600)]
    assert len(seen) <= 20
    assert "\x1b[2mNULL\x1b[0m" in session.raw
    session.type(".all\r")
    session.until(lambda lines: lines[-1] == "x>" and lines[-2].startswith("500 rows, ") and lines[-3].startswith("└") and " 599 " in lines[-4])
    whole = (tmp_path / "paged").read_text()
    assert [int(n) for n in re.findall(r"│ +(\d+) │", whole)] == list(range(100, 600))
    assert "not shown" not in whole
    session.type(".pager on\r")
    session.shows("pager on")
    session.type("select 7 as seven;\r")
    session.until(lambda lines: lines[-1] == "x>" and lines[-2].startswith("1 row, ") and "seven" in "\n".join(lines[-8:]))
    assert "seven" in (tmp_path / "paged").read_text()


def test_who_leaves_the_pager_early_gets_no_error_and_no_more_rows(lakelite):
    session = lakelite(PAGER="head -n 3")
    session.until("x>")
    session.type(".all select * from range(1000000);\r")
    seen = session.shows("done, ")
    assert sum(line.startswith(("┌", "│", "├", "└")) for line in seen) == 3
    session.type("select 42 as answer;\r")
    session.shows("42 │")
    assert "rror" not in "\n".join(session.everything)
    session.close()
    session = lakelite(PAGER="/nowhere/pager")
    session.until("x>")
    session.type(".pager on\rselect 42 as answer;\r")
    assert "note: it cannot be used here" in "\n".join(session.shows("42 │"))


def test_a_long_query_shows_how_far_it_is(lakelite):
    session = lakelite()
    session.until("x>")
    session.type(LONG + "\r")
    session.until(lambda lines: re.match(r"(\^C)?\[[#-]{20}\] \d+ % after \d+ s", lines[-1]) is not None)
    session.resize(30, 20)
    session.until(lambda lines: bool(lines) and re.match(r"\d+ % after \d+ s", lines[-1]) is not None)
    session.type(CTRL_C)
    session.until(lambda lines: lines[-1] == "x>" and lines[-2].endswith("interrupted") and "%" not in lines[-2], 10)


def test_what_is_pinned_and_in_a_transaction_stands_in_the_prompt(lakelite):
    session = lakelite("a long name of a lake.lake", columns=40)
    session.until("a long name of …>")
    session.type("create table t (a integer);\r")
    session.shows("done, ")
    session.type(".at 0\r")
    session.until("a long name of …@0>")
    session.type("create table u (a integer);\r")
    session.shows("pinned to version 0")
    session.type(".at\r")
    session.until("a long name of …>")
    session.type("create branch dev; use branch dev;\r")
    session.until("a long name of …>")
    session.type("begin;\r")
    session.until("a long name of …*>")
    session.type(CTRL_D)
    session.shows("A transaction is open")
    session.type(CTRL_D)
    assert session.ends() == 0


def test_what_is_edited_stands_at_the_prompt(lakelite, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nkill -INT $PPID\nsed -i 's/forty/42/' \"$1\"\n")
    editor.chmod(0o755)
    session = lakelite(EDITOR=str(editor))
    session.until("x>")
    session.type("select forty as answer;\r")
    session.shows("does not exist")
    session.type("\\e\r")  # Ctrl-C in the editor is the editor's
    session.until("x> select 42 as answer;")
    session.type("\r")
    session.shows("42 │")


def test_the_persons_own_settings(lakelite, tmp_path):
    rc = tmp_path / "config" / "lakelite" / "rc"
    rc.parent.mkdir(parents=True)
    rc.write_text(".timer off\n.nope\nset author = 'ann';\n.mode line\n")
    session = lakelite()
    session.until("x>")
    assert "there is no command .nope" in "".join(session.lines)
    session.type("show author;\r")
    session.until(lambda lines: lines[-3:] == ["author = ann", "1 row", "x>"])
    session.type(CTRL_D)
    assert session.ends() == 0
    plain = lakelite("x.lake", "--no-init")
    plain.until("x>")
    assert "error" not in "\n".join(plain.lines)
    plain.close()
    rc.write_bytes(b"\xff")
    odd = lakelite()
    odd.until("x>")
    assert "is not read" in "\n".join(odd.lines)
    odd.close()
    rc.unlink()
    rc.mkdir()
    (tmp_path / "nothing").write_text("")
    odd = lakelite(XDG_STATE_HOME=str(tmp_path / "nothing"))
    odd.until("x>")
    assert "a directory is where a file should be" in " ".join(odd.lines)
    odd.type("select 41 + 1 as answer;\r")
    odd.shows("42 │")
    said = " ".join(odd.shows("no history is kept"))
    assert "Errno" not in said


def test_wide_and_control_characters_keep_their_place(lakelite):
    session = lakelite(columns=40)
    session.until("x>")
    session.type("select '日本語' as \"列\", e'a\\x1b[2J\\x07' as c;\r")
    seen = session.shows("1 row, ")
    frame = [line for line in seen if line[:1] in "┌│├└"]
    assert len(frame) == 6
    assert any("a\\x1b[2J\\x07" in line for line in frame)
    assert any("日" in line for line in frame)
    for mode in ("csv", "tsv", "json", "insert", "html", "latex", "markdown", "line"):
        session.type(f".mode {mode}\rselect e'b\\x1b[2J\\x07' as d;\r")
        session.until(lambda lines: lines[-1:] == ["x>"] and any(line.startswith("1 row, ") for line in lines))
        assert any("[2J" in line for line in session.lines), mode
        session.type("\x0c")  # Ctrl-L
        session.until(lambda lines: lines == ["x>"])
    assert "\x07" not in session.raw


def test_the_picture_in_the_readme_is_such_a_session(tmp_path):
    """If not, and that is right: `python tests/picture.py` draws it anew."""
    shown = [unescape(re.sub("<[^>]*>", "", line)) for line in picture.PICTURE.read_text("utf-8").splitlines() if line.startswith("<text")]
    with picture.played(tmp_path) as session:
        assert picture.texts(session) == shown
