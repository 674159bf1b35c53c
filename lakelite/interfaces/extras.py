"""Libraries that lakelite uses where they are installed, and does without otherwise."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lakelite.errors import InterfaceError


def needed(library: str, extra: str | None = None) -> Any:
    """The module `library`. InterfaceError where it is not installed; `extra`: the extra of lakelite's that brings it, if not called so."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise InterfaceError(f"{library} is not installed", hint=f'pip install "lakelite[{extra or library}]"') from error
