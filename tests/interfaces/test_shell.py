"""The runner, the prompt and its history over a pretended connection."""

from __future__ import annotations

import io
import os
import signal
import stat
import threading

import pytest

from lakelite import errors
from lakelite.interfaces import history, shell
from lakelite.interfaces.demo import scenes
from lakelite.interfaces.runner import CONFLICT, DONE, FAILED, INTERRUPTED, Runner, report


class Cursor:
    def __init__(self, rows=None, rowcount=-1, messages=()):
        self.description = None if rows is None else [("a", "INTEGER")]
        self.rowcount = rowcount
        self.messages = messages
        self._rows = rows or []

    def fetchmany(self, size, /):
        batch, self._rows = self._rows[:size], self._rows[size:]
        return batch


class Statements:
    """An iterator that goes on after an error."""

    def __init__(self, answers):
        self._answers = iter(answers)

    def __iter__(self):
        return self

    def __next__(self):
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


class Connection:
    """Answers the statements `a; b` with what `answers` holds under `a` and `b`."""

    def __init__(self, **answers):
        self.answers = answers
        self.in_transaction = False
        self.ran = []
        self.interrupts = threading.Semaphore(0)

    def statements(self, script, /):
        names = [name.strip() for name in script.split(";") if name.strip()]
        self.ran += names
        return Statements([self.answers[name] for name in names])

    def interrupt(self):
        self.interrupts.release()

    def close(self):
        pass


CONFLICTED = errors.TransactionConflict((errors.Conflict("read changed", "t", 3, "now", None, "DELETE", "UPDATE", "it changed", "run it again"),))


def ran(script, *, keep_going=False, verbose=False, **answers):
    out, err = io.StringIO(), io.StringIO()
    code = Runner(Connection(**answers), out, err, "csv", verbose).run(script, keep_going=keep_going)
    return code, out.getvalue(), err.getvalue()


def test_results_and_messages_go_apart():
    answers = {"q": Cursor([(1,), (2,)]), "w": Cursor(rowcount=3, messages=[(errors.Warning, "mind \x1b[2J this")])}
    assert ran("q; w", **answers) == (DONE, "a\n1\n2\n", "warning: mind \\x1b[2J this\n")


def test_the_first_failure_gives_the_code():
    answers = {"e": errors.ProgrammingError("no such table", hint="make it"), "c": CONFLICTED, "q": Cursor([(1,)])}
    assert ran("e; c; q", **answers) == (FAILED, "", "error: no such table\nHint: make it\n")
    code, out, err = ran("c; e; q", keep_going=True, **answers)
    assert (code, out) == (CONFLICT, "a\n1\n")
    assert err.count("error: ") == 2


def test_a_bug_is_one_line_and_ends_the_script(monkeypatch):
    code, out, err = ran("b; q", keep_going=True, b=KeyError("x\ny"), q=Cursor([(1,)]))
    assert (code, out) == (FAILED, "")
    assert err.startswith("internal error: KeyError: ")
    assert err.count("\n") == 1
    monkeypatch.setenv("LAKELITE_DEBUG", "1")
    assert "Traceback" in ran("b", b=KeyError("x"))[2]


def test_opening_has_its_own_code():
    assert report(errors.CannotOpen("x is a file"), io.StringIO()) == 3


@pytest.mark.parametrize(
    ("cursor", "said"),
    [(Cursor([(1,)]), "1 row, "), (Cursor([]), "0 rows, "), (Cursor(rowcount=1234), "1,234 rows changed, "), (Cursor(), "done, ")],
)
def test_verbose_says_what_was_done(cursor, said):
    err = ran("q", verbose=True, q=cursor)[2]
    assert err.startswith(said)
    assert err.endswith(" ms\n")


def test_the_bar_is_wiped_before_anything_is_said_or_shown():
    class Bar:
        def begin(self):
            self.drawn = True

        def tick(self):
            pass

        def end(self):
            self.drawn = False

    class Out(io.StringIO):
        def write(self, text):
            assert not bar.drawn
            return super().write(text)

    bar = Bar()
    runner = Runner(Connection(q=Cursor([(1,)]), w=Cursor(rowcount=3), e=errors.DataError("bad")), Out(), Out(), "csv", verbose=True, meter=bar)
    assert runner.run("q; w; e") == FAILED
    assert runner.out.getvalue() == "a\n1\n"
    assert runner.err.getvalue().count("\n") == 3


def test_ctrl_c_cancels_until_the_statement_hears_it():
    def deaf_at_first():
        for _ in range(3):
            assert connection.interrupts.acquire(timeout=10)
        raise errors.OperationalError("interrupted")

    connection = Connection(q=deaf_at_first, next=Cursor([(1,)]))
    out, err = io.StringIO(), io.StringIO()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert Runner(connection, out, err).run("q; next", keep_going=True) == INTERRUPTED
    assert (out.getvalue(), err.getvalue()) == ("", "interrupted\n")


def test_ctrl_c_that_comes_before_anybody_waits_for_the_statement_cancels_it(monkeypatch):
    """On a busy machine it came while the statement's thread was being started: the prompt came back, and the statement ran on."""
    ended = threading.Event()
    start = threading.Thread.start

    def start_and_press(thread):
        start(thread)
        if thread.name == "lakelite statement":
            signal.raise_signal(signal.SIGINT)

    def runs():
        assert connection.interrupts.acquire(timeout=10)
        ended.set()
        raise errors.OperationalError("interrupted")

    connection = Connection(q=runs)
    monkeypatch.setattr(threading.Thread, "start", start_and_press)
    out, err = io.StringIO(), io.StringIO()
    assert Runner(connection, out, err).run("q") == INTERRUPTED
    assert (ended.is_set(), err.getvalue()) == (True, "interrupted\n")


def test_ctrl_c_ends_the_printing():
    class Endless(Cursor):
        pressed = False

        def fetchmany(self, size, /):
            if not self.pressed:
                self.pressed = True
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            threading.Event().wait(0.001)
            return [(1,)] * size

    assert ran("q", q=Endless([]))[0] == INTERRUPTED


class Typed:
    """Gives the lines to a prompt (an exception is raised instead); keeps the prompts."""

    def __init__(self, lines):
        self._lines = iter(lines)
        self.prompts = []

    def line(self, prompt):
        self.prompts.append(prompt)
        line = next(self._lines)
        if isinstance(line, BaseException):
            raise line
        return line


def session(monkeypatch, lines, connection):
    """Type `lines` at a plain terminal; return what was said and the prompts."""
    typed, reader = Typed(lines), shell.PlainReader()
    monkeypatch.setattr(reader, "_line", typed.line)
    err = io.StringIO()
    assert shell.Shell(Runner(connection, io.StringIO(), err, verbose=True), reader).loop() == DONE
    return err.getvalue(), typed.prompts


def test_statements_span_lines(monkeypatch):
    connection = Connection(**{"a\nb": Cursor([(1,)])})
    _, prompts = session(monkeypatch, ["", "a", "b;", "x", KeyboardInterrupt(), ".quit"], connection)
    assert prompts == ["lake> ", "lake> ", " ...> ", "lake> ", " ...> ", "lake> "]
    assert connection.ran == ["a\nb"]


@pytest.mark.parametrize("word", ["exit", "quit", "EXIT;", " Quit ;", ".quit", "\\q"])
def test_words_that_leave(monkeypatch, word):
    _, prompts = session(monkeypatch, ["a", "exit", "b;", word, "q;"], Connection(**{"a\nexit\nb": Cursor([(1,)])}))
    assert prompts == ["lake> ", " ...> ", " ...> ", "lake> "]


def test_an_open_transaction_is_mentioned_once(monkeypatch):
    connection = Connection(q=Cursor())
    connection.in_transaction = True
    said, prompts = session(monkeypatch, [EOFError(), "q;", ".quit", "\\q"], connection)
    assert said.count("A transaction is open") == 2
    assert prompts == ["lake*> "] * 4


def test_commands(monkeypatch, tmp_path):
    script = tmp_path / "a file.sql"
    script.write_text("q;")
    connection = Connection(**{"SHOW ALL TABLES": Cursor([]), "q": Cursor([(1,)])})
    lines = [".help", ".mode", ".mode csv", ".mode", ".mode x", ".tables", f".read '{script}'", ".read nowhere", ".read", ".x", "\\y", ".exit"]
    said, _ = session(monkeypatch, lines, connection)
    assert connection.ran == ["SHOW ALL TABLES", "q"]
    for words in (".read FILE", "\nbox\n", "\ncsv\n", "no mode x", "no such file", ".read takes one file", "no command .x", "no command \\y"):
        assert words in said


def test_an_error_keeps_the_prompt(monkeypatch):
    said, _ = session(monkeypatch, ["e; q;", "q;", ".quit"], Connection(e=errors.DataError("bad"), q=Cursor([(1,)])))
    assert said.startswith("error: bad\n1 row, ")


def test_history_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = history.history_path()
    assert path == tmp_path / "state" / "lakelite" / "history"
    assert history.load(path) == []
    history.append(path, "select 1,\n\n 2;")
    history.append(path, ".tables")
    assert history.load(path) == ["select 1,", " 2;", ".tables"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not history.may_keep("CREATE SECRET s (KEY 'x')")
    assert not history.may_keep("select 'my PassWord'")


def test_history_is_shortened(tmp_path):
    path = tmp_path / "history"
    for i in range(2 * history.KEPT_LINES + 1):
        history.append(path, f"select {i};")
    assert history.load(path)[-1] == f"select {2 * history.KEPT_LINES};"
    assert len(path.read_text().splitlines()) == history.KEPT_LINES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_scenes_of_the_demonstration():
    script = "-- a comment\n-- say: Look:\nSELECT 1,\n-- say: not this\n2;\n\n-- act: one\nSELECT 3;\n"
    assert list(scenes(script, lambda text: text.endswith(";"))) == [
        ("say", "Look:"),
        ("sql", "SELECT 1,\n-- say: not this\n2;"),
        ("act", "one"),
        ("sql", "SELECT 3;"),
    ]
