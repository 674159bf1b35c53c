"""Lexing of SQL text as DuckDB lexes it, and splitting of a script into statements.

Owns: what a token, a comment, a quoted string and an identifier are. Promises: linear time; never raises for any text (what
cannot be read becomes one `bad` token up to the end); the text of a piece holds no `;` token. Never looks at the meaning of a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from lakelite.model import Limits, fold, quote

STATEMENT_BYTES = Limits().statement_bytes

_START = r"[^\x00-@\[-\^`\{-\x7f\s\u200b\ufeff]"
_INNER = r"[^\x00-#%-/:-@\[-\^`\{-\x7f\s\u200b\ufeff]"
_NAME = rf"{_START}[^\x00-/:-@\[-\^`\{{-\x7f\s\u200b\ufeff]*+"
_TOKEN = re.compile(
    rf"""[\s\u200b\ufeff]*+(?:
      (?P<line>--[^\n\r]*+)
    | (?P<block>/\*)
    | (?P<string>(?:[eE]'(?:[^'\\]++|\\.|'')*+'|[xXbBnN]?'(?:[^']++|'')*+'))
    | (?P<word>{_START}{_INNER}*+)
    | (?P<number>\d[\d_]*+(?:\.[\d_]*+)?(?:[eE][+-]?\d++)?|\.\d[\d_]*+(?:[eE][+-]?\d++)?)
    | (?P<quoted>"(?:[^"]++|"")*+"|`(?:[^`]++|``)*+`)
    | (?P<dollar>\$(?:{_NAME})?\$)
    | (?P<param>\?\d*+|\$(?:\d++|{_NAME}|"(?:[^"]++|"")++"))
    | (?P<op>::|:=|=>|->>|->|.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPACE = re.compile(r"[\s\u200b\ufeff]*+")
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_OPENED = frozenset(("line", "block", "dollar"))
_UNCLOSED = {"'": "quoted string", '"': "quoted identifier", "`": "quoted identifier"}

NOT_NAMES = frozenset(
    """
    ALL ANALYSE ANALYZE AND ANTI ANY ARRAY AS ASC ASOF ASYMMETRIC AT AUTHORIZATION BINARY BOTH BY CASE CAST CHECK COLLATE
    COLLATION COLUMN COLUMNS CONCURRENTLY CONSTRAINT CREATE CROSS DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT
    FALSE FETCH FOR FOREIGN FREEZE FROM FULL GLOB GROUP HAVING ILIKE IN INITIALLY INNER INTERSECT INTO IS ISNULL JOIN LAMBDA
    LATERAL LEADING LEFT LIKE LIMIT NATURAL NOT NOTNULL NULL OFFSET ON ONLY OR ORDER OUTER OVERLAPS PIVOT PIVOT_LONGER PIVOT_WIDER
    PLACING POSITIONAL PRIMARY QUALIFY REFERENCES RETURNING RIGHT SELECT SEMI SHOW SIMILAR SOME SUMMARIZE SYMMETRIC TABLE
    TABLESAMPLE THEN TO TRAILING TRUE UNION UNIQUE UNPACK UNPIVOT USING VARIADIC VERBOSE WHEN WHERE WINDOW WITH
    """.split()
)
"""Words that DuckDB does not take as the name or alias of a table or column unless they are quoted (`duckdb_keywords()`)."""
_SHORT = 10_000


class Token(NamedTuple):
    """`kind`: word, quoted, string, number, param, op or bad. `word`: a word in upper case, an operator as it is, else "".

    For a `bad` token `word` says what is not closed. `start` and `end` count characters from the beginning of the piece.
    """

    kind: str
    start: int
    end: int
    word: str


class Piece(NamedTuple):
    """One statement of a script, without its semicolon: from its first token or comment to its last token.

    A piece longer than the limit, which is refused, reaches to the end of the script.
    """

    text: str
    start: int
    tokens: list[Token]


def split_script(script: str) -> Iterator[Piece]:
    """The statements of a script in order, lexed as they are asked for. Empty ones are skipped."""
    position = 0
    while position < len(script):
        begin = _end_of_space(script, position)
        tokens, position = _scan(script, begin, begin)
        if tokens and tokens[-1].word == ";":
            tokens.pop()
        if tokens:
            yield Piece(script[begin : begin + tokens[-1].end], begin, tokens)


def lex(text: str) -> list[Token]:
    """The tokens of `text`, without comments. Of short texts the last few are kept: a statement is looked at several times."""
    return list(_lexed(text)) if len(text) <= _SHORT else _all_tokens(text)


@lru_cache(maxsize=32)
def _lexed(text: str) -> tuple[Token, ...]:
    return tuple(_all_tokens(text))


def _all_tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found, position = _scan(text, position, 0)
        tokens += found
    return tokens


def without_leading_comments(text: str) -> str:
    """`text` from its first token on; only what is in front of that is looked at."""
    position = 0
    while found := _TOKEN.match(text, position):
        kind = found.lastgroup or ""
        if kind not in ("line", "block"):
            return text[found.start(kind) :]
        position = _opened(text, kind, found.start(kind), found.end())[1]
    return text


def is_complete(text: str) -> bool:
    """Whether `text` ends with a finished statement: a semicolon outside quotes, comments, parentheses and dollar strings."""
    depth = 0
    last = ""
    for token in lex(text):
        last = token.word
        if token.kind == "op" and last in "([{":
            depth += 1
        elif token.kind == "op" and last in ")]}":
            depth = max(0, depth - 1)
    return last == ";" and depth == 0


@lru_cache(maxsize=8)
def left_open(text: str) -> tuple[str, ...]:
    """For each line of `text` but the first, what is open where it begins: a bracket, a quote, `$` or, of a comment without an end, `*`; else ""."""
    found: list[str] = []
    brackets: list[str] = []
    breaks = (place.start() for place in re.finditer("\n", text))
    place = next(breaks, None)
    for token in lex(text):
        while place is not None and place < token.end:
            found.append(_quote_of(text, token) if place >= token.start else "".join(brackets[-1:]))
            place = next(breaks, None)
        if token.kind == "op" and token.word in "([{":
            brackets.append(token.word)
        elif token.kind == "op" and token.word in ")]}":
            del brackets[-1:]
    while place is not None:
        found.append("".join(brackets[-1:]))
        place = next(breaks, None)
    return tuple(found)


def _quote_of(text: str, token: Token) -> str:
    if token.word == "comment":
        return "*"
    return next((mark for mark in text[token.start : token.start + 2] if mark in "'\"`$"), "")


def is_number(name: str) -> bool:
    """Whether the name of a parameter is its number."""
    return name.isascii() and name.isdigit()


def unquote(text: str) -> str:
    """The value of an identifier or of a string literal without escapes, as written in the text."""
    if text[:1] in ('"', "'", "`"):
        return text[1:-1].replace(text[0] * 2, text[0])
    if text[:1] == "$":
        size = text.index("$", 1) + 1
        return text[size:-size]
    return text


def shown_name(name: str) -> str:
    """An identifier as a person writes it: in quotes only where it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) and name.upper() not in NOT_NAMES else quote(name)


def folded(text: str) -> str:
    """`model.fold`, quick for ASCII."""
    return text.lower() if text.isascii() else fold(text)


def _scan(text: str, position: int, base: int) -> tuple[list[Token], int]:
    """The tokens from `position` to the first semicolon, that one included, and where to go on. Their places count from `base`."""
    tokens: list[Token] = []
    while found := _TOKEN.match(text, position):
        kind = found.lastgroup or ""
        start, position = found.span(kind)
        word = ""
        if kind == "word":
            word = found[kind]
            word = word.upper() if word.isascii() else word
        elif kind == "op":
            word = found[kind]
            if word in _UNCLOSED:
                kind, position, word = "bad", len(text), _UNCLOSED[word]
        elif kind in _OPENED:
            kind, position, word = _opened(text, kind, start, position)
        if position - base > STATEMENT_BYTES:
            kind, position, word = "bad", len(text), "statement"
        if kind != "comment":
            tokens.append(Token(kind, start - base, position - base, word))
        if word == ";":
            return tokens, position
    return tokens, len(text)


def _opened(text: str, kind: str, start: int, position: int) -> tuple[str, int, str]:
    """The kind, end and word of a comment or dollar-quoted string whose beginning is start…position-1."""
    if kind == "line":
        return "comment", position, ""
    if kind == "block":
        end = _block_end(text, position)
        return ("comment", end, "") if end else ("bad", len(text), "comment")
    close = text.find(text[start:position], position)
    return ("string", close + position - start, "") if close >= 0 else ("bad", len(text), "dollar-quoted string")


def _block_end(text: str, position: int) -> int:
    """Where the comment that was opened before `position` ends, comments in it counted; 0 if it does not."""
    depth = 1
    for edge in _BLOCK_EDGE.finditer(text, position):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return 0


def _end_of_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
