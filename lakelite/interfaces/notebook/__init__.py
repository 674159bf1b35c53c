"""lakelite in a notebook: `%load_ext lakelite`, then `%lake PATH` and cells of SQL that begin with `%%lake`.

Owns what is put into a shell of IPython's, and takes all of it out again. IPython is not required by anything else of lakelite.
"""

from __future__ import annotations

import atexit
from typing import Any

from lakelite.errors import InterfaceError

__all__ = ["load", "unload"]

_NOTEBOOK = "_lakelite_notebook"


def load(shell: Any) -> None:
    """Adds the magics, completion and short errors to a shell. Again: nothing happens. InterfaceError: IPython is not there."""
    if getattr(shell, _NOTEBOOK, None) is not None:
        return
    try:
        from lakelite.interfaces.notebook.completion import matcher
        from lakelite.interfaces.notebook.failure import SHORT, show_short
        from lakelite.interfaces.notebook.magic import Notebook
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "IPython":
            raise
        raise InterfaceError("IPython is not installed", hint='pip install "lakelite[jupyter]"') from error
    notebook = Notebook(shell)
    shell.register_magic_function(notebook.magic, magic_kind="line_cell", magic_name="lake")
    shell.set_custom_exc(SHORT, show_short)
    shell.Completer.custom_matchers.append(matcher(notebook))
    atexit.register(notebook.close)
    setattr(shell, _NOTEBOOK, notebook)


def unload(shell: Any) -> None:
    """Closes the lake and takes out what `load` added."""
    notebook = getattr(shell, _NOTEBOOK, None)
    if notebook is None:
        return
    notebook.close()
    atexit.unregister(notebook.close)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("lake", None)
    shell.set_custom_exc((), None)
    shell.Completer.custom_matchers[:] = [one for one in shell.Completer.custom_matchers if getattr(one, "notebook", None) is not notebook]
    setattr(shell, _NOTEBOOK, None)
