"""A shell of IPython's in this process, in which cells run as in a notebook, and what they show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from html5lib import HTMLParser
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config


class Cells:
    """Runs cells, one after the other. `said`: what the last one printed; `shown`: what it displayed beside its value."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.said = ""
        self.shown: list[Any] = []

    def __call__(self, text: str) -> Any:
        """The value of a cell that succeeds."""
        outcome = self._run(text)
        assert outcome.success, self.said
        return outcome.result

    def fails(self, text: str) -> str:
        """What a cell that fails shows."""
        assert not self._run(text).success, text
        return self.said

    def _run(self, text: str) -> Any:
        with capture_output() as captured:
            outcome = self.shell.run_cell(text, store_history=True)
        self.said, self.shown = captured.stdout, [one.data for one in captured.outputs]
        return outcome

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]


@contextmanager
def notebook(directory: Path, monkeypatch: Any) -> Iterator[Cells]:
    """A notebook that has loaded lakelite."""
    monkeypatch.setenv("IPYTHONDIR", str(directory / "ipython"))
    monkeypatch.chdir(directory)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    monkeypatch.setattr(sys, "path", [*sys.path])  # a shell adds to it
    shell = InteractiveShell.instance(config=config, user_module=ModuleType("cells"))  # and would take the place of __main__
    try:
        cells = Cells(shell)
        cells("%load_ext lakelite")
        yield cells
        cells("%unload_ext lakelite")
    finally:
        InteractiveShell.clear_instance()


def values(result: Any) -> list[tuple[Any, ...]]:
    """The rows of a result."""
    return [tuple(row.values()) for row in result.to_arrow().to_pylist()]


def parsed(html: str) -> Any:
    """The tree of a fragment of HTML; an error for what is malformed."""
    tree = HTMLParser(strict=True, namespaceHTMLElements=False).parseFragment(html)
    for one in tree.iter():
        if isinstance(one.tag, str):
            one.tag = one.tag.rpartition("}")[2]  # SVG has a namespace
    return tree
