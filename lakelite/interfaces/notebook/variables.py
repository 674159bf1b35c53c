"""The variables of Python that SQL in a notebook can name: `:name` and `$name` are bound, never pasted, and tables are found by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from lakelite.errors import ProgrammingError
from lakelite.interfaces.commands.command import path_of
from lakelite.interfaces.notebook.options import TEMPORARY
from lakelite.mapping.names import did_you_mean

_NAMED = re.compile(r"[:$]([^\W\d]\w*)")


def parameters_in(script: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that a script may use as parameters: those only, since an error looks through the values to show none of them."""
    return {name: names[name] for name in _NAMED.findall(script) if name in names}


def path_in(path: str, names: Mapping[str, Any]) -> str:
    """A path with the home directory for `~`, or that in the variable of a `:name`. ProgrammingError: there is none, or it holds no path."""
    if path == TEMPORARY or not path.startswith(":") or not path[1:].isidentifier():
        return str(path_of(path))
    if path[1:] not in names:
        raise ProgrammingError(_missing(path[1:]), hint=_near(path[1:], names))
    value = names[path[1:]]
    if not isinstance(value, str | os.PathLike):
        wrong = f"the variable {path[1:]} holds no path, but a value of the type {type(value).__name__}"
        raise ProgrammingError(wrong, hint="a path is a str or a pathlib.Path")
    return os.fsdecode(value)


def explain_missing(error: ProgrammingError, script: str, names: Mapping[str, Any]) -> None:
    """Where a parameter was an error since there is no variable of that name, the error says so."""
    missing = next((name for name in _NAMED.findall(script) if name not in names and _is_about(error, name)), None)
    if missing is not None:
        error.message = _missing(missing)
        error.args = (error.message,)
        error.hint = _near(missing, names)


def _missing(name: str) -> str:
    return f"there is no variable {name} in Python, which :{name} would be"


def _near(name: str, names: Mapping[str, Any]) -> str | None:
    """A variable that holds a value: functions (those of the shell's own among them) and modules are none."""
    held = [one for one, value in names.items() if not one.startswith("_") and not callable(value) and not isinstance(value, ModuleType)]
    return did_you_mean(name, held, f"{name} = … makes it")


def _is_about(error: ProgrammingError, name: str) -> bool:
    if error.message == f"no value was given for the parameter {name}":
        return True
    place = error.position
    at_colon = error.message.startswith('syntax error at or near ":"') and place is not None
    return at_colon and place is not None and re.match(rf":{name}\b", place.source[place.column - 1 :]) is not None
