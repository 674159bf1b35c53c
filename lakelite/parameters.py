"""The values that a caller passes, matched with the parameters of a statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelite.errors import ProgrammingError
from lakelite.language import statements as st

Parameters = Mapping[str, Any] | Sequence[Any] | None


def names_of(parameters: Parameters) -> frozenset[str] | None:
    """The names that `:name` may mean: those of a mapping."""
    return frozenset(map(str, parameters)) if isinstance(parameters, Mapping) else None


def values_of(statement: st.Statement, parameters: Parameters) -> dict[str, Any]:
    """The value of each parameter of the statement by its name; ProgrammingError if the numbers or names do not fit."""
    if isinstance(parameters, Mapping):
        missing = [p for p in statement.parameters if p not in parameters]
        if missing and missing[0].isdigit():
            raise ProgrammingError("the parameters have no names, but the values are a mapping", hint="give a sequence, or write $name")
        if missing:
            raise ProgrammingError(f"no value was given for the parameter {missing[0]}", hint="add it to the mapping")
        return {p: _plain(parameters[p]) for p in statement.parameters}
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence | None):
        raise ProgrammingError("parameters have to be a sequence or a mapping", hint='for one value write ("value",)')
    given = list(parameters or ())
    names = [p for p in statement.parameters if not p.isdigit()]
    if names:
        raise ProgrammingError(f"the parameter {names[0]} has a name, but the values are a sequence", hint="give a mapping")
    wanted = max((int(p) for p in statement.parameters), default=0)
    if wanted != len(given):
        raise ProgrammingError(f"the statement has {wanted} parameters, {len(given)} values were given")
    return {p: _plain(given[int(p) - 1]) for p in statement.parameters}


def _plain(value: Any) -> Any:
    """A numpy number or truth value as Python's; its moments DuckDB takes as they are."""
    kind = type(value)
    return (
        value.item()
        if kind.__module__ == "numpy" and getattr(value, "ndim", 1) == 0 and not kind.__name__.startswith(("datetime", "timedelta"))
        else value
    )
