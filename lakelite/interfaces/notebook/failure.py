"""Errors of lakelite's in a notebook: the message, the place and the hint, without a wall of traceback. `%tb` still shows all of it."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from lakelite.errors import Error
from lakelite.interfaces.notebook.work import Interrupted
from lakelite.interfaces.values import message

SHORT = (Error, Interrupted)


def show_short(shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None, tb_offset: int | None = None) -> list[str]:
    """What IPython calls instead of showing the traceback."""
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    lines = message(f"{kind.__name__}: {error}").split("\n")
    shell._showtraceback(kind, error, lines)
    return lines
