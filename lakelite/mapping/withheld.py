"""Values of parameters in messages: they may be secrets, and messages are logged, so none is shown. `?1` or `$name` stands instead.

What the statement's own text says as well is no secret. A message keeps what is too short to be told from its own words: less than
three characters of a value, or of a plain word less than six, unless they stand in quotes. An interruption and a lock are told in words of
ours alone, which stay. Errors of other libraries that an
error of ours is chained to keep what they say. Pure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import duckdb

from lakelite.errors import Error, TransactionConflict

PIECE = 8  # characters of a value that are found wherever they stand
_SHORT, _SHORT_WORD = 3, 6
_LONGEST = 10_000  # characters at the beginning and the end of a value, pieces of which are looked for
_SPEAKS_OF_NO_VALUE = (duckdb.InterruptException, duckdb.OutOfMemoryException, MemoryError)
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")


def withhold(error: Error, text: str, *calls: object) -> None:
    """Puts the names of parameters in place of their values in what an error says. `text`: the SQL; `calls`: a sequence or a mapping each."""
    if isinstance(error, TransactionConflict) or error.is_passing or isinstance(error.__cause__, _SPEAKS_OF_NO_VALUE):
        return  # statements as they were written, or words of ours, and nothing else
    found: dict[str, str] = {}
    for name, value in (pair for values in calls for pair in _named(values)):
        for said in filter(None, _texts(value)):
            found.setdefault(said, name)
    if not found:
        return
    ordered = sorted(found, key=len, reverse=True)
    error.message = _without(error.message, text, ordered, found)
    error.hint = error.hint and _without(error.hint, text, ordered, found)
    error.args = (error.message,)


def _named(values: Any) -> Iterable[tuple[str, object]]:
    """Each value with a name for it; none of what cannot be parameters."""
    if isinstance(values, Mapping):
        return [(f"?{name}" if str(name).isdigit() else f"${name}", value) for name, value in values.items()]
    is_one = isinstance(values, str | bytes | bytearray) or not (hasattr(values, "__len__") and hasattr(values, "__getitem__"))
    return [] if is_one else [(f"?{number}", value) for number, value in enumerate(values, 1)]


def _without(message: str, text: str, ordered: Iterable[str], names: Mapping[str, str]) -> str:
    """Whole values first, then what stands in quotes, then pieces: what is a piece of one value may be the whole of another."""
    for step in (_without_whole, _without_quoted, _without_pieces):
        for value in ordered:
            message = step(message, text, value, names[value])
    return message


def _without_whole(message: str, text: str, value: str, name: str) -> str:
    if value not in message or not _is_telling(value) or _stands(value, text):
        return message
    quoted = re.sub(rf"(['\"]){_any_zeros(value)}\1", lambda _: _told(name), message)
    return re.sub(rf"(?<![\w$?]){_any_zeros(value)}(?!\w)", lambda _: name, quoted)


def _without_quoted(message: str, text: str, value: str, name: str) -> str:
    if "'" not in message and '"' not in message:
        return message
    if "\n" in value and not _stands(value, text):  # a quote ends with its line, but for a value of several
        for quote in "'\"":
            message = message.replace(f"{quote}{value}{quote}", _told(name))
    return _QUOTED.sub(lambda found: _quoted(found, text, value, name), message)


def _without_pieces(message: str, text: str, value: str, name: str) -> str:
    """The message without runs of characters of the value, which other libraries cut, and quote as they like."""
    if len(value) < PIECE:
        return message
    shown = value if len(value) <= 2 * _LONGEST else f"{value[:_LONGEST]}\n{value[-_LONGEST:]}"
    found = [start for start in range(len(message) - PIECE + 1) if message[start : start + PIECE] in shown]
    if not found:
        return message
    is_of_value = [False] * len(message)
    for start in found:
        if message[start : start + PIECE] not in text:
            is_of_value[start : start + PIECE] = [True] * PIECE
    return "".join(
        character if not inside else "" if start and is_of_value[start - 1] else name
        for start, (character, inside) in enumerate(zip(message, is_of_value, strict=True))
    )


def _quoted(found: re.Match[str], text: str, value: str, name: str) -> str:
    """What stands in quotes, or the name if that is the value or a piece of it."""
    inside = found[1] if found[1] is not None else found[2]
    is_piece = len(inside) >= _SHORT and all(part in value for part in inside.split("…"))
    if not (inside == value or is_piece) or _stands(inside, text):
        return found[0]
    return _told(name)


def _told(name: str) -> str:
    """In the place of a value in quotes: in quotes the name would look like a value itself."""
    return f"the value of {name}"


def _is_telling(value: str) -> bool:
    return len(value) >= (_SHORT_WORD if value.isalpha() else _SHORT)


def _stands(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def _any_zeros(value: str) -> str:
    """A pattern for a value; a number with a point may have more zeros behind it."""
    return re.escape(value) + ("0*" if re.fullmatch(r"-?\d+\.\d+", value) else "")


def _texts(value: object) -> Iterator[str]:
    """The texts that a value and what is in it may be told with."""
    match value:
        case None | bool():
            return
        case str():
            yield value
        case bytes() | bytearray():
            yield "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02X}" for byte in value)
        case os.PathLike():
            yield os.fsdecode(value)
        case Mapping():
            for key, inner in value.items():
                yield from (*_texts(key), *_texts(inner))
        case list() | tuple() | set() | frozenset():
            for inner in value:
                yield from _texts(inner)
        case int() | float() | Decimal():
            yield str(value)
        case _ if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
            yield from _texts(value.tolist())
        case _ if type(value).__module__ in ("datetime", "uuid", "numpy", "duckdb"):
            yield str(value)
