"""The cells of a short VALUES list, so that each can be cast to the column it is for.

Text in, text out; what is not plainly a list of rows of cells is left to DuckDB as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelite.language.tokens import Token, lex

DEFAULT = "DEFAULT"
NOT_PLAIN = object()
_WORDS = {"NULL": None, "TRUE": True, "FALSE": False}
_RANGES = {f"{kind}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for kind, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64))}
Cells = tuple[tuple[str, ...], ...]


def cells(text: str, most_rows: int) -> Cells | None:
    """The cells of `VALUES (a, b), (c, d)` row by row, as text; None if it is anything else or has more rows. A cell may be DEFAULT."""
    tokens = lex(text)
    if not tokens or tokens[0].word != "VALUES":
        return None
    rows: list[tuple[str, ...]] = []
    index = 1
    while len(rows) < most_rows:
        row = _row(text, tokens, index)
        if row is None or (rows and len(row[0]) != len(rows[0])):  # rows of different lengths: DuckDB says where
            return None
        rows.append(row[0])
        index = row[1]
        if index == len(tokens):
            return tuple(rows)
        if tokens[index].word != ",":
            return None
        index += 1
    return None


def _row(text: str, tokens: list[Token], index: int) -> tuple[tuple[str, ...], int] | None:
    """The cells of the row that opens at `index`, and the index behind it."""
    if index >= len(tokens) or tokens[index].word != "(":
        return None
    found: list[str] = []
    start, depth = tokens[index].end, 1
    for i in range(index + 1, len(tokens)):
        word = tokens[i].word if tokens[i].kind == "op" else ""
        if depth == 1 and word in (",", ")"):
            found.append(text[start : tokens[i].start].strip())
            start = tokens[i].end
            if word == ")":
                return (tuple(found), i + 1) if all(found) else None
        depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
    return None


def constant(text: str, stored: str, parameters: Mapping[str, Any]) -> Any:
    """The value of a cell that is plainly a constant of the column's stored type, or a parameter that is; else NOT_PLAIN.

    Plain are NULL, TRUE and FALSE, whole numbers within the range of an integer column, and text for VARCHAR: what a cast would
    leave as it is.
    """
    tokens = lex(text)
    sign = 1
    if len(tokens) == 2 and tokens[0].word == "-":
        sign, tokens = -1, tokens[1:]
    if len(tokens) != 1:
        return NOT_PLAIN
    shown = text[tokens[0].start : tokens[0].end]
    if tokens[0].kind == "param":
        value = parameters[shown[1:]]
        return value if sign == 1 and type(value) in (int, str, bool, type(None)) and _is_of(value, stored) else NOT_PLAIN
    if shown.isascii() and shown.isdigit():
        value = sign * int(shown)
    elif sign == 1 and tokens[0].word in _WORDS and tokens[0].kind == "word":
        value = _WORDS[tokens[0].word]
    elif sign == 1 and shown[0] == "'" == shown[-1] and tokens[0].kind == "string":
        value = shown[1:-1].replace("''", "'")
    else:
        return NOT_PLAIN
    return value if _is_of(value, stored) else NOT_PLAIN


def _is_of(value: Any, stored: str) -> bool:
    if value is None:
        return True
    if type(value) is int:
        low, high = _RANGES.get(stored, (0, -1))
        return bool(low <= value <= high)
    if type(value) is bool:
        return stored == "BOOLEAN"
    return stored == "VARCHAR" and not any("\ud800" <= c <= "\udfff" for c in value)


def renamed_parameters(text: str, number: int) -> tuple[str, dict[str, str]]:
    """`text` with each parameter `$x` called `$px_number`, and the new name of each."""
    parts: list[str] = []
    names: dict[str, str] = {}
    position = 0
    for token in lex(text):
        if token.kind == "param":
            name = text[token.start + 1 : token.end]
            names[name] = f"p{name}_{number}"
            parts += [text[position : token.start], "$", names[name]]
            position = token.end
    return "".join([*parts, text[position:]]), names
