"""DuckDB's type text as a tree: the one reader of what `duckdb_columns().data_type` and `typeof` print.

Promises: every type that DuckDB 2.0 prints is read, with any field name and any enum value; nothing is evaluated.
Never: input or output, or an opinion on which types can be stored (types.py has that).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from lakelite.errors import NotSupportedError
from lakelite.model import quote
from lakelite.records import dataclass

MAX_NESTING = 20  # read_parquet's `schema` costs the cube of it to plan: 80 ms at 20 levels, seconds at 64

_Item = TypeVar("_Item")
_TOKEN = re.compile(r"""\s*(?P<token>"(?:[^"]|"")*"|'(?:[^']|'')*'|[^\s"'(),\[\]]+|[(),\[\]])""")


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `name` is its constructor (INTEGER, DECIMAL, STRUCT, LIST, ARRAY …), `text` the whole of it as SQL.

    `members`: (name, type) of STRUCT and UNION; `element` of LIST and ARRAY; `key`, `value` of MAP; `element1` … of TUPLE.
    `depth`: levels below this one.
    """

    name: str
    text: str
    members: tuple[tuple[str, Type], ...] = ()
    depth: int = 0


def leaf(text: str) -> Type:
    return Type(text.partition("(")[0], text)


def struct(members: Sequence[tuple[str, Type]], constructor: str = "STRUCT") -> Type:
    """A STRUCT, or with `constructor` a UNION."""
    inside = ", ".join(f"{quote(name)} {member.text}" for name, member in members)
    return _nested(constructor, f"{constructor}({inside})", members)


def sequence(element: Type, size: str = "") -> Type:
    """A LIST, or with `size` (digits) an ARRAY."""
    return _nested("ARRAY" if size else "LIST", f"{element.text}[{size}]", (("element", element),))


def map_of(key: Type, value: Type) -> Type:
    return _nested("MAP", f"MAP({key.text}, {value.text})", (("key", key), ("value", value)))


def tuple_of(elements: Sequence[Type]) -> Type:
    inside = ", ".join(element.text for element in elements)
    return _nested("TUPLE", f"TUPLE({inside})", [(f"element{n}", element) for n, element in enumerate(elements, 1)])


def _nested(name: str, text: str, members: Sequence[tuple[str, Type]]) -> Type:
    depth = 1 + max(member.depth for _, member in members)
    if depth > MAX_NESTING:
        raise _too_deep()
    return Type(name, text, tuple(members), depth)


def _too_deep() -> NotSupportedError:
    return NotSupportedError(f"a type nested more than {MAX_NESTING} levels deep", hint="flatten it, or store it as JSON")


@lru_cache(maxsize=4096)
def read(text: str) -> Type:
    """The tree of a type's text. Raises NotSupportedError if it is no type text of DuckDB's or is nested too deeply."""
    reader = _Reader(_tokens(text), text)
    found = reader.type(0)
    if not reader.done():
        raise reader.error()
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotSupportedError(f"not the text of a type: {text[:100]}", hint="the types are those of DuckDB")
        tokens.append(match["token"])
        at = match.end()
    return tokens


class _Reader:
    """One pass over the tokens of one type's text."""

    def __init__(self, tokens: list[str], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0

    def done(self) -> bool:
        return self._at == len(self._tokens)

    def error(self) -> NotSupportedError:
        return NotSupportedError(f"not the text of a type: {self._text[:100]}", hint="the types are those of DuckDB")

    def type(self, depth: int) -> Type:
        if depth > MAX_NESTING:
            raise _too_deep()
        found = self._base(depth)
        while self._peek() == "[":
            self._next()
            size = "" if self._peek() == "]" else self._next()
            self._expect("]")
            found = sequence(found, size)
        return found

    def _base(self, depth: int) -> Type:
        name = self._name()
        if self._peek() != "(":
            return Type(name, quote(name) if name == "NULL" else name)
        if name in ("STRUCT", "UNION"):
            return struct(self._list(lambda: (self._identifier(), self.type(depth + 1))), name)
        if name == "TUPLE":
            return tuple_of(self._list(lambda: self.type(depth + 1)))
        if name == "MAP":
            pair = self._list(lambda: self.type(depth + 1))
            if len(pair) != 2:
                raise self.error()
            return map_of(*pair)
        between = "," if name == "DECIMAL" else ", "  # as DuckDB prints them
        return Type(name, f"{name}({between.join(self._list(self._next))})")

    def _name(self) -> str:
        """A type's name: quoted, or one or more words (TIMESTAMP WITH TIME ZONE)."""
        words = [self._identifier()]
        while (token := self._peek()) is not None and token[0] not in "\"'(),[]":
            words.append(self._next())
        return " ".join(words)

    def _identifier(self) -> str:
        token = self._next()
        if token[0] in "'(),[]":
            raise self.error()
        return token[1:-1].replace('""', '"') if token[0] == '"' else token

    def _list(self, item: Callable[[], _Item]) -> list[_Item]:
        self._expect("(")
        items = [item()]
        while self._peek() == ",":
            self._next()
            items.append(item())
        self._expect(")")
        return items

    def _peek(self) -> str | None:
        return None if self.done() else self._tokens[self._at]

    def _next(self) -> str:
        if self.done():
            raise self.error()
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self.error()
