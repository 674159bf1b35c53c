"""The worked notebook of sql/examples: it runs from its top in a kernel, and was saved without outputs."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
import pytest

from lakelite.resources import folder

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of what it imports
    from nbclient import NotebookClient


def test_the_notebook_of_flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.read(folder("sql") / "examples" / "flights.ipynb", as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not [cell for cell in code if cell.outputs or cell.execution_count]
    NotebookClient(book, timeout=100, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {cell.source: [one.get("text") or one.data for one in cell.outputs] for cell in code}
    ((commit,),) = [found for source, found in shown.items() if source == "%lake COMMIT"]
    assert "6773 rows were already deleted by snapshot 5" in commit["text/plain"]
    assert "<svg" in shown["lake.history_plot()"][0]["text/html"]
    assert "<svg" in shown['lake.plot_table("flights")'][0]["text/html"]
    assert not [one for found in shown.values() for one in found if "Traceback" in str(one)]
