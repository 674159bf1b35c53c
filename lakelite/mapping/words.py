"""What a wording is made from and what it makes: the nouns of the modules that word DuckDB's messages."""

from __future__ import annotations

import re
from collections.abc import Callable

import duckdb

from lakelite.errors import DatabaseError, Position
from lakelite.mapping.names import Names
from lakelite.records import dataclass

_TYPES = {
    "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT", "INT128": "HUGEINT", "UINT8": "UTINYINT", "UINT16": "USMALLINT",
    "UINT32": "UINTEGER", "UINT64": "UBIGINT", "UINT128": "UHUGEINT", "BOOL": "BOOLEAN", "INTEGER_LITERAL": "INTEGER", "STRING_LITERAL": "VARCHAR",
}  # fmt: skip
_TYPE = re.compile(rf"\b({'|'.join(_TYPES)})\b(?!['\"])")


@dataclass(frozen=True, slots=True)
class Words:
    """`name`: what the message is about, which has to stand at its place. `thing`: the same as it stands in the text, if that is different.

    `kind`: our class, where it is not that of the kind of error. `is_item`: the thing counts only where it is an item of a list:
    it may as well have come from a table.
    """

    message: str
    hint: str | None = None
    name: str | None = None
    thing: str | None = None
    kind: type[DatabaseError] | None = None
    is_item: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What DuckDB said: the kind of its error, the text that the user wrote, the names that could be meant, and the place if it is known."""

    kind: type[duckdb.Error]
    text: str
    names: Names
    at: Position | None

    @property
    def offset(self) -> int | None:
        """The place as a number of characters from the beginning of the text."""
        if self.at is None:
            return None
        return sum(len(line) + 1 for line in self.text.split("\n")[: self.at.line - 1]) + self.at.column - 1

    @property
    def is_quoted(self) -> bool:
        """Whether the place is an identifier in double quotes."""
        return self.at is not None and self.at.source[self.at.column - 1 :].startswith('"')


Rule = tuple[re.Pattern[str], Callable[[re.Match[str], Said], Words]]


def rule(pattern: str, words: Callable[[re.Match[str], Said], Words]) -> Rule:
    """A pattern for DuckDB's message and what to say instead."""
    return re.compile(pattern, re.DOTALL), words


def sql_types(text: str) -> str:
    """`text` with SQL's names of types in place of DuckDB's inner ones."""
    return _TYPE.sub(lambda found: _TYPES[found[1]], text)


def offered(text: str | None) -> list[str]:
    """The names in double quotes in a list of candidates."""
    return re.findall(r'"([^"]*)"', text or "")
