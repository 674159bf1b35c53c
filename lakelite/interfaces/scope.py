"""The variables that the code which called lakelite can see: DataFrames among them are tables in SQL.

Promises: lakelite's own frames are never looked into, nothing is looked up before a statement asks for a name, and no frame is
kept once the call is over: a frame keeps everything alive that its variables hold.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Mapping
from types import FrameType
from typing import Any

_OWN = __name__.partition(".")[0]


class Scope:
    """The variables of a caller, for the time of one call."""

    def __init__(self, frame: FrameType | None) -> None:
        self._frame = frame

    def __call__(self, name: str) -> Any:
        """The value of a variable: a local one, else a global one; None where there is none of that name."""
        if self._frame is None:
            return None
        found = self._frame.f_locals.get(name)
        return self._frame.f_globals.get(name) if found is None else found

    @property
    def mapping(self) -> Mapping[str, Any]:
        """All of them by name: those that are local go before the global ones."""
        return {} if self._frame is None else ChainMap(self._frame.f_locals, self._frame.f_globals)

    def names(self) -> list[str]:
        """The names of all of them."""
        return [] if self._frame is None else [*self._frame.f_locals, *self._frame.f_globals]

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *_: object) -> None:
        self._frame = None


class Latest:
    """The variables of whoever called last, where a script goes on from call to call."""

    def __init__(self) -> None:
        self.scope = Scope(None)

    def __call__(self, name: str) -> Any:
        return self.scope(name)

    def names(self) -> list[str]:
        return self.scope.names()


class Given:
    """The variables of a mapping by name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __call__(self, name: str) -> Any:
        return self._values.get(name)

    def names(self) -> list[str]:
        return list(self._values)


def of_caller() -> Scope:
    """The scope of the innermost frame that is none of lakelite's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    return Scope(frame)


def _is_own(frame: FrameType) -> bool:
    """Whether it is code of lakelite's; of `python -m lakelite` only the package says so."""
    return any(str(frame.f_globals.get(key)).partition(".")[0] == _OWN for key in ("__name__", "__package__"))
