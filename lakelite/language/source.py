"""One statement's text with its tokens, brackets and parameters, and the splicing of its SQL.

Owns: which characters of a statement are replaced (parameters by DuckDB's form, time travel by a hole) and how a refusal shows
its place. Promises: whatever is not replaced comes out as the user wrote it. Never decides what a statement means.
"""

from __future__ import annotations

from bisect import bisect_left

from lakelite.cells import fitted
from lakelite.errors import NotSupportedError, Position, ProgrammingError
from lakelite.language.statements import Hole, Sql
from lakelite.language.tokens import STATEMENT_BYTES, Piece, Token, is_number, unquote
from lakelite.mapping.keywords import misplaced
from lakelite.records import dataclass

NESTING = 800
MOST_PARAMETERS = 65_535
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters start…end of the text are replaced by `part`. `parameter`: the name, where this is a parameter."""

    start: int
    end: int
    part: str | Hole
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A statement. `closing`: index of an opening bracket's token → that of its closing one. `edits`: in order, apart from each other.

    `clauses`: where the words AT, FOR, WITH and TABLE_CHANGES stand. `nesting`: how deep brackets are nested.
    """

    text: str
    tokens: list[Token]
    closing: dict[int, int]
    edits: tuple[Edit, ...]
    parameters: tuple[str, ...]
    clauses: tuple[int, ...]
    nesting: int

    def shown(self, token: Token) -> str:
        return self.text[token.start : token.end]


def syntax_error(text: str, token: Token | None, hint: str | None = None) -> ProgrammingError:
    """A syntax error at `token`, or at the end of the text. Without a hint of its own it has that of a word that does not fit."""
    if token is None:
        return ProgrammingError(
            "syntax error at the end of the statement", hint=hint or "something is missing", position=Position.at(text, len(text))
        )
    shown = text[token.start : token.end]
    hint = hint or misplaced(text[: token.start], shown)
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    return ProgrammingError(f'syntax error at or near "{shown}"', hint=hint, position=Position.at(text, token.start))


def wrong(text: str, offset: int, message: str, hint: str | None = None) -> ProgrammingError:
    """A ProgrammingError that shows the character `offset` of `text`."""
    return ProgrammingError(message, hint=hint, position=Position.at(text, offset))


def unsupported(text: str, offset: int, what: str, hint: str | None = None) -> NotSupportedError:
    """The refusal of `what`, a plain name such as "ALTER TABLE"."""
    return NotSupportedError(f"{what} is not supported yet", hint=hint, position=Position.at(text, offset))


def read_source(piece: Piece, named: frozenset[str] | None) -> Source:
    """Checks what every statement has to keep to (length, closed quotes and brackets) and finds the parameters."""
    text, tokens = piece.text, piece.tokens
    _check_text(text, tokens)
    open_brackets: list[int] = []
    closing: dict[int, int] = {}
    edits: list[Edit] = []
    clauses: list[int] = []
    nesting = literal = 0
    for index, token in enumerate(tokens):
        word = token.word
        if token.kind == "op":
            if word in _CLOSING:
                open_brackets.append(index)
                literal += word != "("
                nesting = max(nesting, len(open_brackets))
            elif word in ")]}":
                if not open_brackets or _CLOSING[tokens[open_brackets[-1]].word] != word:
                    raise syntax_error(text, token, f"this {word} closes nothing")
                closing[open_brackets.pop()] = index
                literal -= word != ")"
            elif word == ":" and named and not literal and (edit := _named_parameter(text, tokens, index, named)):
                edits.append(edit)
        elif token.kind == "param":
            edits.append(_parameter(text, token, len(edits)))
        elif word in ("AT", "FOR", "WITH", "TABLE_CHANGES"):
            clauses.append(index)
    if open_brackets:
        raise syntax_error(text, tokens[open_brackets[-1]], "it is never closed")
    if nesting > NESTING:
        raise wrong(text, 0, f"the statement nests {nesting} brackets, more than {NESTING}", "split it up, for instance with WITH")
    _check_one_style(text, edits)
    names = dict.fromkeys(edit.parameter for edit in edits if edit.parameter is not None)
    return Source(text, tokens, closing, tuple(edits), tuple(names), tuple(clauses), nesting)


def splice(source: Source, first: int, stop: int) -> Sql:
    """The SQL of the tokens first…stop-1."""
    start, end = source.tokens[first].start, source.tokens[stop - 1].end
    return splice_text(source, 0 if first == 0 else start, end)


def splice_text(source: Source, start: int, end: int) -> Sql:
    """The SQL of the characters start…end-1, which begin and end at tokens."""
    edits = source.edits
    parts: list[str | Hole] = []
    names: dict[str, None] = {}
    position = start
    for index in range(bisect_left(edits, start, key=lambda edit: edit.start), len(edits)):
        edit = edits[index]
        if edit.start >= end:
            break
        parts += [source.text[position : edit.start], edit.part]
        position = edit.end
        if edit.parameter is not None:
            names[edit.parameter] = None
    parts.append(source.text[position:end])
    return Sql(merged(parts), tuple(names), start)


def merged(parts: list[str | Hole]) -> tuple[str | Hole, ...]:
    """The same parts with texts that touch as one text, and without empty ones."""
    found: list[str | Hole] = []
    texts: list[str] = []
    for part in [*parts, None]:
        if isinstance(part, str):
            texts.append(part)
            continue
        if whole := "".join(texts):
            found.append(whole)
        texts = []
        if part is not None:
            found.append(part)
    return tuple(found)


_NO_PARAMETER = "a parameter", "write the value into the text"
_NO_PAST = "a past version of a table", "name a table alone: there its newest version is meant"


def plain(source: Source, first: int, stop: int, where: str) -> str:
    """The text of the tokens first…stop-1, which must hold no parameter and no time travel. `where` names the place for the error."""
    start, end = source.tokens[first].start, source.tokens[stop - 1].end
    for edit in source.edits:
        if start <= edit.start < end:
            what, hint = _NO_PARAMETER if edit.parameter is not None else _NO_PAST
            raise wrong(source.text, edit.start, f"{where} cannot hold {what}", hint)
    return source.text[start:end]


def plain_with_parameters(source: Source, first: int, stop: int) -> str:
    """The text of the tokens first…stop-1 with the parameters in DuckDB's form; for places that hold no time travel."""
    return "".join(part for part in splice(source, first, stop).parts if isinstance(part, str))


def _check_text(text: str, tokens: list[Token]) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > STATEMENT_BYTES:
        hint = "use COPY t FROM a file, executemany or append for much data"
        raise wrong(text, 0, f"the statement is longer than {STATEMENT_BYTES} bytes", hint)
    if tokens[-1].kind == "bad":
        raise wrong(text, tokens[-1].start, f"unterminated {tokens[-1].word}", "it begins here and is never closed")
    if size != len(text) and (lone := next((i for i, c in enumerate(text) if "\ud800" <= c <= "\udfff"), None)) is not None:
        raise wrong(
            text, lone, "the statement holds half of a surrogate pair, which is no character", "pass bytes as a parameter for what is no text"
        )
    if (nul := text.find("\0")) >= 0:
        raise wrong(text, nul, "the statement holds a NUL character", "pass it as a parameter")


def _parameter(text: str, token: Token, count: int) -> Edit:
    """`?` is the next one by count, `?2` and `$2` the second, `$name` the one of that name."""
    shown = text[token.start : token.end]
    if shown == "?":
        return Edit(token.start, token.end, f"${count + 1}", str(count + 1))
    name = unquote(shown[1:])
    if not is_number(name):
        return Edit(token.start, token.end, "$" + shown[1:], name)
    if not 0 < int(name[:9]) <= MOST_PARAMETERS:
        raise wrong(text, token.start, f"there is no parameter {fitted(shown, 20)}", f"they are counted, from $1 to ${MOST_PARAMETERS}")
    return Edit(token.start, token.end, f"${int(name)}", str(int(name)))


def _named_parameter(text: str, tokens: list[Token], index: int, named: frozenset[str]) -> Edit | None:
    """`:name`, where nothing that could make it a slice, an alias or a cast touches the colon from the left."""
    if index + 1 == len(tokens):
        return None
    colon, after = tokens[index], tokens[index + 1]
    name = text[after.start : after.end]
    touches = index > 0 and tokens[index - 1].end == colon.start and tokens[index - 1].kind in ("word", "quoted", "number", "string")
    if after.kind != "word" or after.start != colon.end or touches or name not in named:
        return None
    return Edit(colon.start, after.end, "$" + name, name)


def _check_one_style(text: str, edits: list[Edit]) -> None:
    styles: dict[str, int] = {}
    for edit in edits:
        shown = text[edit.start : edit.end]
        style = "?" if shown == "?" else "$1" if is_number(shown[1:]) else shown[0]
        styles.setdefault(style, edit.start)
    if len(styles) > 1:
        raise wrong(text, max(styles.values()), "a statement takes one style of parameters: ?, $1, $name or :name", "write all of them alike")
