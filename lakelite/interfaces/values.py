"""One value as text: as a person reads it, and as JSON.

Owns the wording of values for every output mode and the escaping that keeps a terminal safe. Values are what DuckDB's
Python client gives. Pure functions: nothing is printed here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite, isnan
from types import NoneType
from typing import Any

from lakelite.cells import cells_of, width
from lakelite.interfaces.type_objects import NUMBER

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# C0, DEL and C1 steer a terminal; the others break lines or turn the direction of what follows.
_CONTROL = [*range(0x20), *range(0x7F, 0xA0)]
_TURNING = [0x061C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_VISIBLE = {c: _NAMED.get(chr(c), f"\\x{c:02x}") for c in _CONTROL} | {c: f"\\u{c:04x}" for c in _TURNING}
_MESSAGE = {c: shown for c, shown in _VISIBLE.items() if chr(c) not in "\n\t"}
_C1_AS_JSON = {c: f"\\u{c:04x}" for c in range(0x80, 0xA0)}
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


def is_numeric(type_name: str) -> bool:
    """Whether a column of this DuckDB type is aligned to the right."""
    return type_name == NUMBER


def visible(text: str) -> str:
    """`text` on one line, with every character that could steer a terminal spelled out (`\\n`, `\\x1b`)."""
    return text if text.isprintable() else text.translate(_VISIBLE)


def message(text: str) -> str:
    """As `visible`, for messages of several lines: line ends and tabs stay."""
    return text if text.isprintable() else text.translate(_MESSAGE)


def broken(line: str, cells: int) -> str:
    """A line, and if it takes more than so many cells in several ones; no word that fits is cut."""
    if width(line) <= cells:
        return line
    import textwrap

    return "\n".join(textwrap.wrap(line, cells, expand_tabs=False, replace_whitespace=False, break_on_hyphens=False))


def elide(text: str, cells: int) -> str:
    """`text` in at most `cells` (at least 1) terminal cells; what is cut off ends in `…`."""
    if width(text) <= cells:
        return text
    used = 0
    for end, character in enumerate(text):
        used += cells_of(character)
        if used > cells - 1:
            return text[:end] + "…"
    raise AssertionError("text wider than the limit reaches the limit")


def plain(value: object, type_name: str = "") -> str:
    """`value` as DuckDB would print it. NULL is `NULL`; text is unchanged, so it may hold any character."""
    if isinstance(value, str):
        return value
    if type_name == "FLOAT" and isinstance(value, float):
        return _single(value)
    return _PLAIN.get(type(value), str)(value)


def _nested(value: object) -> str:
    text = plain(value)
    return text if value is None or isinstance(value, (bool, int, float, Decimal, list, tuple, dict)) else "'" + text.replace("'", "''") + "'"


def _list(value: Sequence[object]) -> str:
    return "[" + ", ".join(map(_nested, value)) + "]"


def _single(value: float) -> str:
    """The shortest decimal that is this single-precision number: 0.1, and not 0.10000000149011612."""
    if not isfinite(value):
        return repr(value)
    wanted = struct.pack("f", value)
    return next(repr(short) for digits in (6, 7, 8, 9) if struct.pack("f", short := float(f"{value:.{digits}g}")) == wanted)


def _bytes(value: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b"\\'\"" else f"\\x{b:02X}" for b in value)


def _short_fraction(text: str) -> str:
    head, point, tail = text.partition(".")
    return head + point + tail[:6].rstrip("0") + tail[6:] if point else text


def _interval(value: timedelta) -> str:
    total_us = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    sign, total_us = ("-", -total_us) if total_us < 0 else ("", total_us)
    days, rest_us = divmod(total_us, 86_400_000_000)
    seconds, us = divmod(rest_us, 1_000_000)
    clock = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (f".{us:06}".rstrip("0") if us else "")
    words = f"{sign}{days} day{'' if days == 1 else 's'}"
    return clock if not days else f"{words} {clock}" if rest_us else words


_PLAIN: dict[type, Callable[[Any], str]] = {
    NoneType: lambda value: "NULL",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: repr,
    Decimal: lambda value: format(value, "f"),
    bytes: _bytes,
    bytearray: _bytes,
    datetime: lambda value: _short_fraction(value.isoformat(" ")),
    time: lambda value: _short_fraction(value.isoformat()),
    timedelta: _interval,
    list: _list,
    tuple: _list,
    dict: lambda value: "{" + ", ".join(f"{_nested(k)}: {_nested(v)}" for k, v in value.items()) + "}",
}


def as_json(value: object, type_name: str = "") -> str:
    """`value` as JSON text on one line. Numbers are exact, however long; NaN and infinities are strings, for JSON has none.

    Dates and times are ISO 8601 strings, intervals and bytes strings as DuckDB prints them, columns of type JSON go in as
    they are, structs and maps are objects (a map whose keys are no scalars comes as an object of keys and values).
    """
    if type_name == "JSON" and isinstance(value, str):
        return _embedded(value)
    if type_name == "FLOAT" and isinstance(value, float) and isfinite(value):
        return _single(value)
    return _JSON.get(type(value), _plain_string)(value)


def _json_string(text: str) -> str:
    encoded = _ENCODE(text)
    return encoded if encoded.isascii() else encoded.translate(_C1_AS_JSON)


def _plain_string(value: object) -> str:
    return _json_string(plain(value))


def _json_float(value: float) -> str:
    return repr(value) if isfinite(value) else '"NaN"' if isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _embedded(text: str) -> str:
    """JSON text on one line; a string, where it is no JSON after all."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _json_string(text)
    return text.replace("\n", " ").replace("\r", " ").translate(_C1_AS_JSON)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_JSON: dict[type, Callable[[Any], str]] = {
    NoneType: lambda value: "null",
    str: _json_string,
    bool: _PLAIN[bool],
    int: str,
    float: _json_float,
    Decimal: lambda value: plain(value) if value.is_finite() else _json_string(str(value)),
    date: lambda value: f'"{value.isoformat()}"',
    datetime: lambda value: f'"{value.isoformat()}"',
    time: lambda value: f'"{value.isoformat()}"',
    list: lambda value: "[" + ", ".join(map(as_json, value)) + "]",
    tuple: lambda value: "[" + ", ".join(map(as_json, value)) + "]",
    dict: lambda value: "{" + ", ".join(f"{_json_string(plain(k))}: {as_json(v)}" for k, v in value.items()) + "}",
}
