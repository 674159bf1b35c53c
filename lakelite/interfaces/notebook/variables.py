"""The variables of Python that SQL in a notebook can name: `:name` and `$name` are bound, never pasted, and tables are found by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakelite.errors import ProgrammingError
from lakelite.mapping.names import did_you_mean

_NAMED = re.compile(r"[:$]([^\W\d]\w*)")


def parameters_in(script: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that a script may use as parameters: those only, since an error looks through the values to show none of them."""
    return {name: names[name] for name in _NAMED.findall(script) if name in names}


def explain_missing(error: ProgrammingError, script: str, names: Mapping[str, Any]) -> None:
    """Where a parameter was an error since there is no variable of that name, the error says so."""
    missing = next((name for name in _NAMED.findall(script) if name not in names and _is_about(error, name)), None)
    if missing is not None:
        known = [name for name in names if not name.startswith("_")]
        error.message = f"there is no variable {missing} in Python for the parameter"
        error.args = (error.message,)
        error.hint = did_you_mean(missing, known, f"{missing} = … in a cell makes it")


def _is_about(error: ProgrammingError, name: str) -> bool:
    if error.message == f"no value was given for the parameter {name}":
        return True
    place = error.position
    at_colon = error.message.startswith('syntax error at or near ":"') and place is not None
    return at_colon and place is not None and re.match(rf":{name}\b", place.source[place.column - 1 :]) is not None
