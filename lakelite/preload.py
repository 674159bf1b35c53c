"""Loads in the background what the first write of a process would otherwise wait for (pyarrow, sqlglot: 0.3 s).

Once per process. A fork waits for it, so that no child inherits a half-loaded library.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading

_LIBRARIES = ("numpy", "pyroaring", "pyarrow", "pyarrow.compute", "sqlglot", "sqlglot.dialects.duckdb")
_thread: threading.Thread | None = None
_mutex = threading.Lock()


def start() -> None:
    """Begins to load, unless that has been done. Libraries that are missing are found missing where they are needed."""
    global _thread
    with _mutex:
        if _thread is None and any(name not in sys.modules for name in _LIBRARIES):
            _thread = threading.Thread(target=_load, name="lakelite-preload")
            _thread.start()


def _load() -> None:
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            return


def wait() -> None:
    """Until nothing is being loaded any more."""
    thread = _thread
    if thread is not None and thread is not threading.current_thread():
        thread.join()


os.register_at_fork(before=wait)
