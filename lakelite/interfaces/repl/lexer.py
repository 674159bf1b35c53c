"""SQL in colours, for Pygments: lakelite's own lexer, so that what is coloured as a string or a comment is read as one.

Never raises: whatever cannot be read is coloured as an error up to its end.
"""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace, _TokenType

from lakelite.interfaces.repl.words import KEYWORDS, TYPES
from lakelite.language.tokens import Token, lex

MOST_CHARACTERS = 100_000  # a longer text stays plain: it is lexed anew with each key
_KINDS: dict[str, _TokenType] = {
    "string": String, "number": Number, "quoted": Name, "param": Name.Variable, "bad": Error,
}  # fmt: skip


class SqlLexer(Lexer):
    """DuckDB's SQL, lakelite's statements, and dot commands."""

    name = "lakelite"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """(start, kind, text) of all of the text, in order."""
        if len(text) > MOST_CHARACTERS:
            yield 0, Name, text
            return
        position = 0
        if text.lstrip().startswith((".", "\\")):
            position = len(text) - len(text.lstrip().partition(" ")[2]) if " " in text.lstrip() else len(text)
            yield 0, Keyword, text[:position]
        tokens = lex(text[position:])
        base = position
        for index, token in enumerate(tokens):
            start, end = base + token.start, base + token.end
            if start > position:
                yield from _between(position, text[position:start])
            called = index + 1 < len(tokens) and tokens[index + 1].word == "("
            yield start, _kind(token, called=called), text[start:end]
            position = end
        if position < len(text):
            yield from _between(position, text[position:])


def _kind(token: Token, *, called: bool) -> _TokenType:
    if token.kind == "word":
        return Keyword if token.word in KEYWORDS else Keyword.Type if token.word in TYPES else Name.Function if called else Name
    if token.kind == "op":
        return Punctuation if token.word in "()[]{},;." else Operator
    return _KINDS[token.kind]


def _between(start: int, text: str) -> Iterator[tuple[int, _TokenType, str]]:
    """What stands between two tokens: space and comments."""
    yield start, Whitespace if text.isspace() else Comment if text.strip() else Text, text
