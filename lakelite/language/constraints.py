"""The names that a CREATE TABLE gives to its constraints: DuckDB reads the constraints themselves, and forgets their names.

Promises: only words outside of inner brackets count, so that no expression is taken for a constraint. Never input or output.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelite.language.tokens import Token, folded, lex, unquote
from lakelite.model import Constraint

FIRST_WORDS = frozenset("CHECK PRIMARY UNIQUE FOREIGN REFERENCES".split())
_NAMED = frozenset("CHECK PRIMARY UNIQUE".split())


def names(body: str, kinds: Sequence[str]) -> list[str | None]:
    """The name of each constraint in a list of columns in brackets; None for one without.

    `kinds`: of the constraints as DuckDB lists them (CHECK, PRIMARY KEY, UNIQUE); those of one kind stand in the order of the text.
    """
    found = [(tokens[-1].word, _name(body, tokens)) for tokens in _starts(body)]
    left = {kind: iter([name for word, name in found if kind.startswith(word)]) for kind in kinds}
    return [next(left[kind], None) for kind in kinds]


def _starts(body: str) -> list[list[Token]]:
    """The tokens in front of each constraint (at most two) and its first word."""
    tokens = lex(body)
    depth = 0
    found: list[list[Token]] = []
    for index, token in enumerate(tokens):
        depth += (token.word in ("(", "[", "{")) - (token.word in (")", "]", "}"))
        if depth == 1 and token.kind == "word" and token.word in _NAMED and tokens[index - 1].word != ".":
            found.append(tokens[max(0, index - 2) : index + 1])
    return found


def _name(body: str, tokens: list[Token]) -> str | None:
    if len(tokens) < 3 or tokens[0].word != "CONSTRAINT":
        return None
    return unquote(body[tokens[1].start : tokens[1].end])


def without_table(expression: str, table: str) -> str:
    """The expression with `table.column` written as `column`, so that it stays right when the table gets another name."""
    tokens = lex(expression)
    kept, position = "", 0
    for index, token in enumerate(tokens[:-1]):
        is_name = token.kind in ("word", "quoted") and folded(unquote(expression[token.start : token.end])) == folded(table)
        if is_name and tokens[index + 1].word == "." and (index == 0 or tokens[index - 1].word != "."):
            kept, position = kept + expression[position : token.start], tokens[index + 2].start
    return kept + expression[position:]


def with_ids(constraint: Constraint) -> tuple[object, ...]:
    """What a constraint says, whatever its columns are called: field ids stand for their names."""
    ids = {folded(name): field_id for name, field_id in constraint.columns}
    text = constraint.expression or ""
    said: list[object] = []
    for token in lex(text):
        word = text[token.start : token.end]
        said.append(ids.get(folded(unquote(word)), word) if token.kind in ("word", "quoted") else word)
    return constraint.kind, constraint.name, [field_id for _, field_id in constraint.columns], said
