"""Whether the SQL of a namespace (types, defaults, conditions, queries of views) stays in the place that it is put into.

It comes from the catalog, which may be somebody else's: a text that ends the statement around it would be a statement of its own.
Pure; what such a text reads is for safe mode to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lakelite.contents import Namespace
from lakelite.errors import InternalError
from lakelite.language.tokens import lex
from lakelite.model import Field, Table

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def check(namespace: Namespace) -> Namespace:
    """The same; InternalError where a text of it would not stay in its place."""
    for table in namespace.tables.values():
        for text in {*_texts(table)}:
            if not stays_in_place(text):
                raise _wrong(table, text)
        if table.view is not None and not stays_in_place(table.view.query, comments=True):
            raise _wrong(table, table.view.query)
    return namespace


def _wrong(table: Table, text: str) -> InternalError:
    return InternalError(
        f"the catalog was changed by another program: the definition of {table.qualified} holds what is no part of one: {text[:80]}",
        hint="restore the lake from a copy",
    )


def _texts(table: Table) -> Iterator[str]:
    for column in table.columns:
        yield column.type
        if column.default is not None:
            yield column.default
        yield from _types(column.stored)
    for constraint in table.constraints:
        if constraint.expression is not None:
            yield constraint.expression


def _types(field: Field) -> Iterator[str]:
    yield field.type
    for child in field.children:
        yield from _types(child)


@lru_cache(maxsize=4096)
def stays_in_place(text: str, *, comments: bool = False) -> bool:
    """Whether it is something, has no semicolon, and closes what it opens and nothing else.

    `comments`: whether it may have some, since a new line follows.
    """
    open_ones: list[str] = []
    end = 0
    for token in lex(text):
        if token.kind == "bad" or token.word == ";" or not (comments or text[end : token.start].isspace() or end == token.start):
            return False
        end = token.end
        if token.kind == "op" and token.word in _CLOSING:
            open_ones.append(_CLOSING[token.word])
        elif token.kind == "op" and token.word in _CLOSING.values() and (not open_ones or open_ones.pop() != token.word):
            return False
    return end > 0 and not open_ones and (comments or not text[end:].strip())
