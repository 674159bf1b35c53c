"""The values that a caller passes, matched with the parameters of a statement."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import duckdb

from lakelite.errors import DataError, InterfaceError, NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.control import LIMIT_DIGITS
from lakelite.language.tokens import is_number
from lakelite.mapping.clauses import blanked
from lakelite.mapping.names import did_you_mean, listed
from lakelite.mapping.sets import of_set
from lakelite.model import KEEP_FOR_EVER, MOST_HOURS, MOST_VERSIONS

_ADDRESS = re.compile(r"\w[\w+.-]*://|file:", re.IGNORECASE)

Parameters = Mapping[str, Any] | Sequence[Any] | None


def text_of(sql: object) -> str:
    """The text of a statement or script; InterfaceError for what is none."""
    if not isinstance(sql, str):
        raise InterfaceError(f"a statement is a str, not {type(sql).__name__}", hint="bytes become one with .decode()")
    return sql


def names_of(parameters: Parameters) -> frozenset[str] | None:
    """The names that `:name` may mean: those of a mapping."""
    return frozenset(map(str, parameters)) if isinstance(parameters, Mapping) else None


def sets_of(parameter_sets: Iterable[Parameters]) -> list[Parameters]:
    """The parameter sets of an executemany; ProgrammingError if they are not several."""
    if isinstance(parameter_sets, Mapping | str | bytes) or not isinstance(parameter_sets, Iterable):
        raise ProgrammingError("the parameter sets have to be a sequence of sequences or of mappings", hint="for one set write [set]")
    return list(parameter_sets)


def values_of(statement: st.Statement, parameters: Parameters) -> dict[str, Any]:
    """The value of each parameter of the statement by its name; ProgrammingError if the numbers or names do not fit."""
    if isinstance(parameters, Mapping):
        missing = [p for p in statement.parameters if p not in parameters]
        if missing and is_number(missing[0]):
            raise ProgrammingError("the parameters have no names, but the values are a mapping", hint="give a sequence, or write $name")
        if missing:
            raise _without_value(statement.text, missing[0], parameters)
        return {p: _plain(parameters[p]) for p in statement.parameters}
    given = _sequence(parameters)
    names = [p for p in statement.parameters if not is_number(p)]
    if names and not given:
        raise _without_value(statement.text, names[0], {})
    if names:
        raise ProgrammingError(f"the parameter {names[0]} has a name, but the values are a sequence", hint="give a mapping")
    wanted = max((int(p) for p in statement.parameters), default=0)
    if wanted != len(given):
        message = f"the statement has {wanted} parameter{'' if wanted == 1 else 's'}, but the number of values is {len(given)}"
        raise ProgrammingError(message, hint="a parameter is ? or $1, or with a mapping $name or :name")
    return {p: _plain(given[int(p) - 1]) for p in statement.parameters}


def _without_value(text: str, name: str, given: Mapping[str, Any]) -> ProgrammingError:
    found = re.search(rf"\$\"?{re.escape(name)}(?!\w)", blanked(text))
    place = None if found is None else Position.at(text, found.start())
    return ProgrammingError(f"no value was given for the parameter {name}", hint=_of_names(name, given), position=place)


def _of_names(name: str, given: Mapping[str, Any]) -> str | None:
    """What there is instead of a value that a mapping does not have."""
    there = sorted(map(str, given))
    otherwise = f"the values have no {name}; their names are: {listed(there)}" if there else f"there are no values: give a mapping that has {name}"
    return did_you_mean(name, there, otherwise)


def values_of_sets(statement: st.Statement, parameter_sets: Sequence[Parameters]) -> list[dict[str, Any]]:
    """The same for each of several sets; the error says which one does not fit, counted from 1."""
    found: list[dict[str, Any]] = []
    for number, parameters in enumerate(parameter_sets, 1):
        with of_set(number, len(parameter_sets)):
            found.append(values_of(statement, parameters))
    return found


def path_of(operation: st.Export | st.Import | st.Backup, values: Mapping[str, Any]) -> Path:
    """The path that a statement names, or that is the value of its parameter, `~` being the home; ProgrammingError if that is none.

    NotSupportedError: it is an address, as of an object store.
    """
    path = operation.path if operation.path is not None else values[operation.parameter or ""]
    if not isinstance(path, str | os.PathLike) or not os.fsdecode(path).strip():
        raise ProgrammingError("the path has to be a text that names something", hint="pass str(path)")
    text = os.fsdecode(path)
    if _ADDRESS.match(text):
        raise NotSupportedError(f"{text} is an address, and no path of this machine", hint="name a directory here, and copy it to or from there")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ProgrammingError(f"{text}: {error}", hint="write the whole path") from error


def limit_of(operation: st.DescribeHistory, values: Mapping[str, Any]) -> int | None:
    """The LIMIT of DESCRIBE HISTORY; DataError if its parameter is no whole number from 0."""
    if not isinstance(operation.limit, str):
        return operation.limit
    limit = values[operation.limit]
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit < 10**LIMIT_DIGITS:
        raise DataError("the LIMIT of DESCRIBE HISTORY is a whole number, 0 or more", hint="leave LIMIT out for the whole history")
    return limit


def hours_of(operation: st.Vacuum, values: Mapping[str, Any]) -> float | None:
    """For how long VACUUM retains; DataError if its parameter is no number from 0."""
    if not isinstance(operation.retain_hours, str):
        return operation.retain_hours
    hours = values[operation.retain_hours]
    fits = isinstance(hours, int | float) and not isinstance(hours, bool)
    fits = fits or (isinstance(hours, Decimal) and hours.is_finite())
    if not fits or not 0 <= hours <= MOST_HOURS:
        raise DataError(f"RETAIN takes a number of hours from 0 to {MOST_HOURS}", hint=KEEP_FOR_EVER)
    return float(hours)


def versions_of(operation: st.Vacuum, values: Mapping[str, Any]) -> int | None:
    """How many versions VACUUM retains; DataError if its parameter is no whole number from 1."""
    if not isinstance(operation.retain_versions, str):
        return operation.retain_versions
    versions = values[operation.retain_versions]
    if not isinstance(versions, int) or isinstance(versions, bool) or not 1 <= versions <= MOST_VERSIONS:
        raise DataError("RETAIN takes a whole number of versions, 1 or more", hint="the newest version always stays")
    return versions


def explain_colon(error: ProgrammingError, text: str, parameters: Parameters) -> None:
    """Where `:name` was a syntax error, since the values have no such name, the error's hint says so."""
    place = error.position
    if place is None or not error.message.startswith('syntax error at or near ":"'):
        return
    found = re.match(r":(\w+)", text.split("\n")[place.line - 1][place.column - 1 :])
    if found is None:
        return
    if isinstance(parameters, Mapping) and found[1] in map(str, parameters):
        error.hint = f":{found[1]} is no parameter inside of [] and {{}}, where it may mean a slice or a field: write ${found[1]}"
    elif isinstance(parameters, Mapping):
        error.hint = _of_names(found[1], parameters)
    else:
        error.hint = f":{found[1]} is a parameter only where the values are a mapping that has {found[1]}"


def _sequence(parameters: object) -> list[Any]:
    """A list of what has a length and gives values by number, as PEP 249 has it; no text, and no set, whose order means nothing."""
    if parameters is None:
        return []
    if isinstance(parameters, str | bytes | bytearray) or not (hasattr(parameters, "__len__") and hasattr(parameters, "__getitem__")):
        raise ProgrammingError("parameters have to be a sequence or a mapping", hint='for one value write ("value",)')
    return list(cast("Sequence[Any]", parameters))


def _plain(value: Any) -> Any:
    """A value with numpy's scalars as Python's, also inside lists and dicts."""
    kind = type(value)
    if kind is list or kind is tuple:
        return [_plain(v) for v in value]
    if kind is dict:
        return {k: _plain(v) for k, v in value.items()}
    if kind.__module__ != "numpy" or getattr(value, "ndim", None) != 0:
        return value
    if kind.__name__ == "datetime64":
        return _moment(value)
    return _duration(value) if kind.__name__ == "timedelta64" else value.item()


def _moment(value: Any) -> Any:
    """A numpy moment; where Python's datetime cannot say it (nanoseconds, the year 10000), which numpy makes a bare number, DuckDB's own value."""
    item, micros = value.item(), value.astype("datetime64[us]")
    if type(item) is not int:
        return item
    if micros == value:
        item = micros.item()
        return duckdb.TimestampValue(str(micros)) if type(item) is int else item
    nanos = value.astype("datetime64[ns]")
    if nanos != value:
        raise DataError("a moment has at most nanoseconds", hint='round it: value.astype("datetime64[ns]")')
    return duckdb.TimestampNanosecondValue(str(nanos))


def _duration(value: Any) -> Any:
    """A numpy duration to the microsecond, as an INTERVAL is; DataError for months and years, which have no fixed length."""
    if value.dtype.str.rstrip("]").endswith(("[M", "[Y")):
        raise DataError("a duration in months or years has no fixed length", hint="write INTERVAL in the SQL text")
    return value.astype("timedelta64[us]").item()
