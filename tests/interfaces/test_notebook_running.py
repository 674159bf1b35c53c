"""lakelite in a notebook: dot commands, the stop button, the line that says how far it is, completion, and the way in and out."""

from __future__ import annotations

import signal
from pathlib import Path

import documents
import pytest
from IPython.core.completer import provisionalcompleter
from notebooks import Cells, values

import lakelite
from lakelite.interfaces import runner
from lakelite.interfaces.notebook import line
from lakelite.interfaces.notebook.magic import Notebook
from lakelite.interfaces.notebook.options import USAGE
from lakelite.interfaces.notebook.result import Result
from lakelite.interfaces.notebook.svg import Picture
from lakelite.interfaces.runner import supervised

ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range = 7"


def pressed() -> None:
    """The stop button."""
    signal.raise_signal(signal.SIGINT)


def test_dot_commands_run_in_their_place(cells: Cells) -> None:
    last = cells("%%lake\n.at 1\nSELECT count(*) AS n FROM stock;\n.at\n.schema stock\nSELECT 1 AS one;\n.diff 1 2 stock")
    assert [one["text/plain"].splitlines()[0] for one in cells.shown] == [
        "pinned to version 1, which can be read; .at ends it", "┌────────┐", "the newest version again", "CREATE TABLE stock (", "┌─────────┐",
    ]  # fmt: skip
    assert [row[3] for row in values(last)] == ["bolt", "nut", "washer"]
    assert values(cells("%lake .diff 0 2")) == [("stock", 3, 0, 0, None)]
    assert "INSERT INTO stock VALUES\n" in repr(cells("%lake .dump stock"))
    assert "● 1  " in repr(cells("%lake .history"))
    assert repr(cells("%lake .help release")).startswith("RELEASE\n")
    cells("%lake --out names .tables")
    assert "stock" in list(cells["names"]["name"])
    assert "no result" in cells.fails("%lake --out names .schema")


def test_dot_commands_fail_as_statements_do(cells: Cells) -> None:
    assert cells.fails("%lake .diff 2 1").startswith("ProgrammingError: a diff goes forward")
    assert cells.fails("%lake .tabels") == "ProgrammingError: there is no command .tabels\nHint: did you mean .tables?\n"
    for command in (".edit", ".watch 1 SELECT 1", ".mode csv", ".pager on", ".quit", "\\x"):
        assert cells.fails(f"%lake {command}").startswith(
            f"NotSupportedError: {command.split()[0]} is not there in a notebook\nHint: there are: .at, "
        )
    Path("script.sql").write_text("SELECT 1 AS a;\nSELECT nope")
    assert 'column "nope" does not exist' in cells.fails("%lake .read script.sql")
    assert len(cells.shown) == 1, "what came before the error is shown"


def test_the_stop_button_reaches_a_dot_command(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("endless.sql").write_text(ENDLESS)
    monkeypatch.setattr(runner, "supervised", lambda work, cancel, tick, elsewhere: supervised(work, cancel, pressed, elsewhere))
    assert cells.fails("%lake .read endless.sql") == "Interrupted: the statement was undone, and the session goes on\n"


# The kernel's stop button, and how far it is.


def test_the_stop_button_cancels_the_statement_and_keeps_the_session(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    cells("%%lake\nBEGIN;\nINSERT INTO stock VALUES ('kept', 1)")
    monkeypatch.setattr(line.ProgressLine, "tick", lambda self: pressed())
    assert cells.fails(f"%lake {ENDLESS}") == "Interrupted: the statement was undone, and the session goes on\n"
    assert cells.fails(f"try:\n    lake.sql({ENDLESS!r})\nexcept Exception:\n    pass").startswith("Interrupted: "), "it is a KeyboardInterrupt"
    monkeypatch.undo()
    assert values(cells("%lake SELECT count(*) AS n FROM stock WHERE item = 'kept'")) == [(1,)]


def test_the_stop_button_pressed_again_and_again_ends_no_kernel(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed = []

    def press(*_: object) -> None:
        pressed.append(1)
        if len(pressed) < 6:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(line.ProgressLine, "tick", press)
    monkeypatch.setattr(cells["lake"].connection, "interrupt", lambda: (press(), type(cells["lake"].connection).interrupt(cells["lake"].connection)))
    assert cells.fails(f"%lake {ENDLESS}").startswith("Interrupted: ")
    assert len(pressed) >= 6


def test_a_line_says_how_far_it_is_and_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    asked = iter([None, 20.0, 20.0])
    bar = line.ProgressLine(drawn.append, lambda: next(asked))
    bar.begin()
    bar.tick()
    assert drawn == [], "not in the first second"
    monkeypatch.setattr(line, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(line.time, "monotonic", lambda: bar._since + 4)
    for _ in range(3):
        bar.tick()
    bar.rows(50, 100)
    bar.tick()
    bar.end()
    bar.end()
    assert drawn == [
        "running for 4 s", "[####----------------] 20 % after 4 s, about 16 s left", "[##########----------] 50 of 100 rows", "",
    ]  # fmt: skip


def test_the_line_is_an_output_of_the_cell_that_is_written_anew(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells.shell, "kernel", object(), raising=False)
    draw = line.drawing(cells.shell)
    cells.shell.user_ns["draw"] = draw
    cells("draw('half')\ndraw('more')\ndraw('')\ndraw('again')")
    assert [one["text/plain"] for one in cells.shown] == ["half", "more", "", "again"]
    monkeypatch.delattr(cells.shell, "kernel")
    assert not hasattr(line.drawing(cells.shell), "_handle")


# Completion.


def completed(cells: Cells, text: str) -> list[str]:
    before = text.partition("|")[0]
    with provisionalcompleter():
        return [one.text for one in cells.shell.Completer.completions(text.replace("|", ""), len(before))]


def test_names_are_completed_in_cells_and_lines_of_sql(cells: Cells) -> None:
    assert completed(cells, "%%lake\nSELECT am| FROM stock") == ["amount"]
    assert completed(cells, "%%lake --at 1\nSELECT 1;\nSELECT * FROM sto|") == ["stock"]
    assert completed(cells, "x = 1\n%lake SELECT s.it| FROM stock s") == ["item"]
    assert "stock" not in completed(cells, "sto|"), "outside of SQL nothing is offered"
    assert "amount" not in completed(cells, "%%time\nSELECT am|")


# In and out.


def test_the_cells_of_the_guide(cells: Cells) -> None:
    (block,) = [block for page in documents.DOCUMENTS for block in documents.blocks(page) if block.language == "ipython"]
    assert USAGE in (documents.GUIDE / "notebook.md").read_text("utf-8")
    cells("%unload_ext lakelite")
    cells("import os\nos.mkdir('guide')\nos.chdir('guide')")
    found = [cells(cell.strip()) for cell in block.parts[0].split("\n\n")]
    cells("%lake :memory:\nos.chdir('..')")
    assert [values(one) for one in found if isinstance(one, Result)] == [[("washer", 10), ("bolt", 40), ("nut", 70)], [("bolt",), ("nut",)], [(50,)]]
    assert isinstance(found[-1], Picture)


def test_it_is_loaded_once_and_taken_out_again(cells: Cells) -> None:
    shell = cells.shell
    lakelite.load_ipython_extension(shell)
    assert isinstance(shell._lakelite_notebook, Notebook)
    lake = cells["lake"]
    matchers = len(shell.Completer.custom_matchers)
    cells("%unload_ext lakelite")
    assert "closed" in repr(lake)
    assert "lake" not in shell.user_ns
    assert len(shell.Completer.custom_matchers) == matchers - 1
    assert "lake" not in shell.magics_manager.magics["cell"]
    assert "Traceback" in cells.fails("import lakelite\nlakelite.connect(1)")
    lakelite.unload_ipython_extension(shell)
    cells("%load_ext lakelite")
    assert "%%lake" in (cells("%lake --help"), cells.said)[1]
