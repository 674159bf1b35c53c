"""A cursor over the tokens of one statement, for recursive descent, and the pieces of grammar that all statements share.

Owns: names, column lists, and where an expression or query ends. Promises: an error that shows its place for all it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable

from lakelite.errors import NotSupportedError, ProgrammingError
from lakelite.language.source import Source, splice, syntax_error, unsupported, wrong
from lakelite.language.statements import Name, Sql
from lakelite.language.tokens import NOT_NAMES, Token, unquote
from lakelite.mapping.names import did_you_mean

QUERY_HEADS = frozenset("( SELECT WITH VALUES FROM TABLE PIVOT PIVOT_WIDER PIVOT_LONGER UNPIVOT SUMMARIZE DESCRIBE DESC".split())
CHANGES = frozenset("INSERT UPDATE DELETE MERGE".split())
_NOT_IN_EXPRESSION = frozenset(
    """SELECT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT WINDOW QUALIFY INTO USING RETURNING AS
    CREATE TABLE DESCRIBE SHOW PIVOT UNPIVOT SUMMARIZE JOIN""".split()
)
_END = Token("end", 0, 0, "")


class Reader:
    """Reads one statement from left to right. `index` is the next token's; a method that fails raises an error with its place."""

    def __init__(self, source: Source, index: int = 0) -> None:
        self.source = source
        self.tokens = source.tokens
        self.index = index

    def peek(self, ahead: int = 0) -> Token:
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def ended(self) -> bool:
        return self.index >= len(self.tokens)

    def sees(self, *words: str) -> bool:
        """Whether the next tokens are these words, in order."""
        return all(self.peek(ahead).word == word for ahead, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Steps over these words if they come next."""
        found = self.sees(*words)
        if found:
            self.index += len(words)
        return found

    def accept_one(self, *words: str) -> str | None:
        """Steps over the next token if it is one of these words."""
        word = self.peek().word
        if not word or word not in words:
            return None
        self.index += 1
        return word

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.syntax_error(f"expected {' '.join(words)}")

    def finish(self) -> None:
        if not self.ended():
            raise self.syntax_error("the statement is complete without it: a semicolon is missing in front of it, or it is too much")

    def syntax_error(self, hint: str | None = None) -> ProgrammingError:
        return syntax_error(self.source.text, None if self.ended() else self.peek(), hint)

    def wrong(self, message: str, hint: str | None = None, index: int | None = None) -> ProgrammingError:
        return wrong(self.source.text, self._place(index), message, hint)

    def unsupported(self, what: str, hint: str | None = None, index: int | None = None) -> NotSupportedError:
        return unsupported(self.source.text, self._place(index), what, hint)

    def sees_identifier(self, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "quoted" or (token.kind == "word" and token.word not in NOT_NAMES)

    def identifier(self, what: str = "a name") -> str:
        """An identifier, unquoted."""
        if not self.sees_identifier():
            reserved = self.peek().kind == "word"
            raise self.syntax_error(f"expected {what}" + (", and this word is one only in double quotes" if reserved else ""))
        return self._take_name()

    def name(self) -> Name:
        """`table` or `schema.table`."""
        offset = self.peek().start
        first = self.identifier("the name of a table")
        if not self.accept("."):
            return Name(None, first, offset)
        if self.peek().kind not in ("word", "quoted"):
            raise self.syntax_error("expected the name of a table")
        second = self._take_name()
        if self.sees("."):
            raise self.wrong("the name of a table has at most two parts, schema.table", "a name with a dot inside stands in double quotes")
        return Name(first, second, offset)

    def columns(self) -> tuple[str, ...]:
        """`(a, b, …)`: names only; a comma at the end may stand, as in DuckDB."""
        self.expect("(")
        names: list[str] = []
        while not (names and self.sees(")")):
            names.append(self.identifier("the name of a column"))
            if not self.sees(")"):
                self.expect(",")
        self.expect(")")
        return tuple(names)

    def after_bracket(self, index: int | None = None) -> int:
        """The index behind the bracket that is closed for the one at `index` (the next token)."""
        return self.source.closing[self.index if index is None else index] + 1

    def scan(self, stops: Callable[[int], bool]) -> int:
        """The index of the first token outside of brackets, from here on, for which `stops` is true; or the end."""
        index = self.index
        while index < len(self.tokens) and not stops(index):
            index = self.source.closing.get(index, index) + 1
        return index

    def is_clause(self, index: int, *words: str) -> bool:
        """Whether the token begins a clause with one of these words, and is no field or label of that name (x.returning, 1 AS returning)."""
        return self.tokens[index].word in words and self.tokens[index - 1].word not in (".", "AS")

    def expression(self, *ends: str) -> Sql:
        """An expression: up to one of the words or commas `ends` outside of brackets, or the end of the statement."""
        first = self.index
        self.index = self.scan(lambda index: self._ends_expression(index, ends))
        if self.index == first or not (self.ended() or self.peek().word in ends):
            raise self.syntax_error("expected an expression" if self.index == first else None)
        return splice(self.source, first, self.index)

    def query(self, stop: int) -> Sql:
        """The query from here up to the token `stop`, whose first word is one that begins a query."""
        first = self.index
        if first >= stop or self.peek().word not in QUERY_HEADS:
            raise self.syntax_error(did_you_mean(self.peek().word, QUERY_HEADS, "expected a query"))
        if self.sees("WITH"):
            verb = skip_with(self.source, first)
            if verb is not None and verb < stop and self.tokens[verb].word in CHANGES:
                raise syntax_error(self.source.text, self.tokens[verb], "expected a query")
        self.index = stop
        return splice(self.source, first, stop)

    def _ends_expression(self, index: int, ends: tuple[str, ...]) -> bool:
        word = self.tokens[index].word
        if word == "FROM" and index >= 2 and self.tokens[index - 1].word == "DISTINCT" and self._is_before(index - 1):
            return False
        after_dot = index > 0 and self.tokens[index - 1].word == "."
        return word in ends or ((word in _NOT_IN_EXPRESSION or word == ",") and not after_dot)

    def _is_before(self, index: int) -> bool:
        """Whether DISTINCT at `index` belongs to IS [NOT] DISTINCT FROM."""
        return self.tokens[index - 1].word == "IS" or (self.tokens[index - 1].word == "NOT" and self.tokens[index - 2].word == "IS")

    def _take_name(self) -> str:
        token = self.peek()
        name = unquote(self.source.shown(token))
        if not name:
            raise self.syntax_error("a name has at least one character")
        self.index += 1
        return name

    def _place(self, index: int | None) -> int:
        index = self.index if index is None else index
        return self.tokens[index].start if index < len(self.tokens) else len(self.source.text)


def skip_with(source: Source, index: int) -> int | None:
    """The index of the verb behind the list of CTEs whose WITH stands at `index`; None if it is no such list."""
    reader = Reader(source, index + 1)
    reader.accept("RECURSIVE")
    while reader.sees_identifier():
        reader.index += 1
        if reader.sees("("):
            reader.index = reader.after_bracket()
        if reader.accept("USING", "KEY") and reader.sees("("):
            reader.index = reader.after_bracket()
        if not reader.accept("AS"):
            return None
        reader.accept("NOT")
        reader.accept("MATERIALIZED")
        if not reader.sees("("):
            return None
        reader.index = reader.after_bracket()
        if not reader.accept(","):
            return None if reader.ended() else reader.index
    return None


def refuse_changes_in_ctes(source: Source) -> None:
    """`WITH x AS (DELETE … RETURNING …)`, at any depth: DuckDB would run it."""
    tokens = source.tokens
    lists = [index for index in source.clauses if tokens[index].word == "WITH"]
    verbs = [verb for index in lists if index and (verb := skip_with(source, index)) is not None]
    bodies = range(2, len(tokens)) if lists else range(0)
    inside = [i for i in bodies if tokens[i].word in CHANGES and tokens[i - 1].word == "(" and tokens[i - 2].word in ("AS", "MATERIALIZED")]
    for index in verbs + inside:
        if (word := tokens[index].word) in CHANGES:
            raise unsupported(source.text, tokens[index].start, f"{word} inside WITH", f"run the {word} as a statement of its own")
