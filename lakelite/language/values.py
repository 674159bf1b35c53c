"""The cells of a short VALUES list, so that each can be cast to the column it is for.

Text in, text out; what is not plainly a list of rows of cells is left to DuckDB as a whole.
"""

from __future__ import annotations

from lakelite.language.tokens import Token, lex

DEFAULT = "DEFAULT"
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
        if row is None:
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
