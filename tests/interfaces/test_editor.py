"""Line editing by a pretended terminal: what Enter does, history, suggestions, colours; and entries and prompts as values."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from pygments.token import Comment, Error, Keyword, Name, Number, String

from lakelite.cells import width
from lakelite.interfaces import history
from lakelite.interfaces.entry import continuation, grouped, is_whole, prompt
from lakelite.interfaces.repl.editor import Editor
from lakelite.interfaces.repl.lexer import SqlLexer

ALT_ENTER, UP, CTRL_R, CTRL_C, CTRL_D = "\x1b\r", "\x1b[A", "\x12", "\x03", "\x04"


@pytest.fixture
def typed(tmp_path):
    """Type keys at an editor with a history in `tmp_path`; the entries that came of it."""
    notes = []

    def typed(*entries, path=tmp_path / "history", draft=""):
        with create_pipe_input() as terminal:
            editor = Editor(path, notes.append, input=terminal, output=DummyOutput())
            return [send(terminal, keys) or editor.read("lake> ", draft) for keys in entries]

    def send(terminal, keys):
        terminal.send_text(keys)

    typed.notes = notes
    return typed


def test_enter_runs_what_is_whole_and_else_begins_a_line(typed):
    assert typed("select 1,\r2;\r") == ["select 1,\n2;"]
    assert typed("select ';\r';\r") == ["select ';\n';"]
    assert typed("select (1;\r);\r") == ["select (1;\n);"]
    assert typed("  select\r1;\r") == ["  select\n  1;"], "the next line begins where this one does"
    assert typed("\r", ".tables\r", "quit\r", "select 1; -- and\r") == ["", ".tables", "quit", "select 1; -- and"]


def test_alt_enter_begins_a_line_also_behind_what_is_whole(typed):
    assert typed(f"select 1;{ALT_ENTER}select 2;\r") == ["select 1;\nselect 2;"]


def test_a_paste_is_one_entry(typed):
    pasted = ".mode csv\nselect 1;\nselect 2;"
    assert typed(f"\x1b[200~{pasted}\x1b[201~\r") == [pasted]


def test_a_draft_stands_there(typed):
    assert typed(" + 1;\r", draft="select 1") == ["select 1 + 1;"]


@pytest.mark.parametrize(("key", "error"), [(CTRL_C, KeyboardInterrupt), (CTRL_D, EOFError)])
def test_keys_that_end_the_entry(typed, key, error):
    with pytest.raises(error):
        typed(key)
    with pytest.raises(KeyboardInterrupt):
        typed(f"select 1{CTRL_C}")


def test_history_holds_whole_entries_over_sessions(typed):
    typed("select 1,\r2;\r", ".tables\r", "select 'my password';\r", "exit\r", ".quit\r")
    assert typed(f"{UP}\r") == [".tables"]
    assert typed(f"{UP}{UP}\r") == ["select 1,\n2;"], "not .tables a second time"
    assert typed(f"{CTRL_R}1,\r\r") == ["select 1,\n2;"], "searched"


def test_a_history_that_cannot_be_kept_is_said_once(typed, tmp_path):
    (tmp_path / "file").write_text("")
    got = typed("select 1;\r", "select 2;\r", f"{UP}{UP}\r", path=tmp_path / "file" / "history")
    assert got == ["select 1;", "select 2;", "select 1;"]
    assert len(typed.notes) == 1
    assert typed.notes[0].startswith("note: no history is kept: ")


def test_what_is_whole():
    for text in ("", "  \n", ".mode", "\\d t", "exit", "Quit ;", "select 1;", ".mode csv\nselect 1;", "select 1;\n.mode", "select '.';"):
        assert is_whole(text), text
    for text in ("select 1", "select ';", "select (1;", ".mode csv\nselect 1", "-- a; comment", "select $$;", "exit now"):
        assert not is_whole(text), text


def test_lines_of_a_history_are_grouped():
    lines = ["select 1,", "2;", ".tables", "select 'not", "ended"]
    assert grouped(lines) == ["select 1,\n2;", ".tables", "select 'not", "ended"]
    assert grouped(["select (x;"] * 300)[0] == "select (x;", "what never ends is not looked at for ever"


@given(st.lists(st.text(alphabet="ab.;'\"()$-/*\\\n \u4e2d", max_size=12), max_size=6))
def test_grouping_loses_no_line(texts):
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    assert "\n".join(grouped(lines)).split("\n") == (lines or [""])


def connection(**values):
    return SimpleNamespace(in_transaction=False, **values)


def test_prompts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert prompt(connection(), None) == "lake> "
    assert prompt(connection(), "a/shop.lake/") == "shop> "
    assert prompt(SimpleNamespace(in_transaction=True), "shop") == "shop*> "
    assert prompt(connection(branch="dev", pinned_version=12), "shop") == "shop:dev@12> "
    assert prompt(connection(branch="main", pinned_version=None), "shop") == "shop> "
    assert "\x1b" not in prompt(connection(), "a\x1b[2Jb")
    assert width(prompt(connection(), "中" * 60)) <= 18


@pytest.mark.parametrize("first", ["lake> ", "a> ", "shop:dev@12*> ", "中文> "])
def test_the_next_lines_stand_below_the_first(first):
    assert width(continuation(first)) == width(continuation(first, "(")) == width(first)
    assert continuation("lake> ", "'") == " ..'> "


def kinds(text):
    return [(str(kind).removeprefix("Token."), piece) for _, kind, piece in SqlLexer().get_tokens_unprocessed(text) if piece.strip()]


def test_colours():
    found = list(SqlLexer().get_tokens_unprocessed("SELECT count(a), 'x', 1.5, $p -- why\nFROM t WHERE b::INTEGER; RESTORE 'open"))
    by_text = {text.strip(): kind for _, kind, text in found}
    assert by_text["SELECT"] is by_text["RESTORE"] is Keyword
    assert by_text["count"] is Name.Function
    assert by_text["a"] is Name
    assert by_text["'x'"] is String
    assert by_text["1.5"] is Number
    assert by_text["$p"] is Name.Variable
    assert by_text["-- why"] is Comment
    assert by_text["INTEGER"] is Keyword.Type
    assert by_text["'open"] is Error
    assert kinds(".mode csv") == [("Keyword", ".mode "), ("Name", "csv")]
    assert kinds("\\d") == [("Keyword", "\\d")]


@given(st.text(alphabet=st.one_of(st.sampled_from(" .\\\n'\"$-/*;ab1("), st.characters())))
def test_any_text_can_be_coloured(text):
    found = list(SqlLexer().get_tokens_unprocessed(text))
    assert "".join(piece for _, _, piece in found) == text
    assert [start for start, _, _ in found] == [sum(len(p) for _, _, p in found[:i]) for i in range(len(found))]


def test_history_file_is_what_it_was(tmp_path):
    """One line of the file for each line: what was written before can be read, and the other way round."""
    history.append(tmp_path / "h", "select 1,\n 2;")
    assert grouped(history.load(tmp_path / "h")) == ["select 1,\n 2;"]
    assert io.StringIO((tmp_path / "h").read_text()).readlines() == ["select 1,\n", " 2;\n"]
