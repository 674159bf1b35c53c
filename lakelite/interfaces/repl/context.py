"""Where in a text the cursor stands, as far as completion asks: what can stand there, what is typed of it, which tables there are.

Pure functions over the lexer's tokens; a text that is not finished, or wrong, is the usual case. Never looks at a lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakelite.language.tokens import Token, folded, lex, unquote
from lakelite.records import dataclass

RELATION_HEADS = frozenset("FROM JOIN INTO UPDATE TABLE DESCRIBE DESC TRUNCATE OPTIMIZE SUMMARIZE USING HISTORY".split())
CLAUSES = RELATION_HEADS | frozenset("SELECT WHERE ON SET BY HAVING QUALIFY VALUES RETURNING LIMIT SCHEMA SHOW RESET AS WHEN THEN TO".split())
_FILE_HEADS = frozenset(("FROM", "TO", "DATABASE", "JOIN", "(", ",", "["))
_NO_ALIAS = CLAUSES | frozenset(
    "AT CROSS DO ELSE EXCEPT FOR FULL GROUP INNER INTERSECT LEFT NATURAL ORDER OUTER PIVOT POSITIONAL RIGHT SEMI ANTI ASOF TABLESAMPLE UNION "
    "UNPIVOT WINDOW WITH DEFAULT OR AND NOT IN".split()
)
Name = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class Context:
    """`kind`: what can stand here: statement, relation, member, column, clause, version, setting, show, schema, branch, type, file, or none.

    `prefix`: what is typed of it, in front of the cursor, as it stands there. `qualifier`: the names with a dot in front of it.
    `tables`: those of the statement, under the folded names by which it calls them; the value is (schema, name) as written.
    `ctes`: names that the statement makes.
    """

    kind: str
    prefix: str = ""
    qualifier: tuple[str, ...] = ()
    tables: tuple[tuple[str, Name], ...] = ()
    ctes: tuple[str, ...] = ()


NOTHING = Context("none")


def context_at(text: str, cursor: int) -> Context:
    """What can stand at the cursor, a number of characters."""
    before = text[:cursor]
    tokens = lex(before)
    if tokens and tokens[-1].kind == "bad":
        return _in_open(before, tokens)
    if _is_comment(before[tokens[-1].end if tokens else 0 :]):
        return NOTHING
    typed = tokens[-1] if tokens and tokens[-1].end == cursor and tokens[-1].kind in ("word", "number", "quoted") else None
    own = _statement(tokens[:-1] if typed else tokens)
    if typed and typed.kind == "quoted":
        return NOTHING
    prefix = before[typed.start :] if typed else ""
    start = own[0].start if own else typed.start if typed else cursor
    return _around(text, start, own, prefix, before)


def _around(text: str, start: int, own: Sequence[Token], prefix: str, before: str) -> Context:
    """The context of what is typed behind the tokens of its own statement, which begins at `start`."""
    whole = _statement_from(text, start)
    tables, ctes = tuple(_tables(text[start:], whole)), tuple(_ctes(text[start:], whole))
    qualifier, rest = _qualifier(before, own)
    kind = "member" if qualifier else "none" if own and own[-1].word == "." else _kind(rest)
    return Context(kind, prefix, qualifier, tables, ctes)


def _in_open(before: str, tokens: Sequence[Token]) -> Context:
    """Inside of quotes that are not closed: the name of a file, or a name."""
    opened, own = tokens[-1], _statement(tokens[:-1])
    inside = before[opened.start + 1 :]
    if opened.word == "quoted string" and own and own[-1].word in _FILE_HEADS and _takes_file(own):
        return Context("file", inside)
    if opened.word == "quoted identifier":
        return _around(before, own[0].start if own else opened.start, own, before[opened.start :], before)
    return NOTHING


def _takes_file(own: Sequence[Token]) -> bool:
    """Whether a string behind these tokens names a file: behind FROM, TO and DATABASE, and in the brackets of a function that reads."""
    if own[-1].word in ("FROM", "TO", "DATABASE", "JOIN"):
        return True
    opener = next((i for i in range(len(own) - 1, -1, -1) if own[i].word == "("), 0)
    name = own[opener - 1].word if opener else ""
    return name.startswith(("READ_", "PARQUET_", "GLOB", "SNIFF_")) or name.endswith("_SCAN")


def _is_comment(behind: str) -> bool:
    """Whether a line ends inside of a comment, `behind` being what follows the last token."""
    return "--" in behind.rpartition("\n")[2]


def _statement(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of the last statement."""
    last = max((i for i, token in enumerate(tokens) if token.word == ";"), default=-1)
    return list(tokens[last + 1 :])


def _statement_from(text: str, start: int) -> list[Token]:
    """The tokens of the statement that begins at `start`, up to its semicolon; they count from there."""
    tokens = lex(text[start:])
    end = next((i for i, token in enumerate(tokens) if token.word == ";"), len(tokens))
    return tokens[:end]


def _qualifier(text: str, own: Sequence[Token]) -> tuple[tuple[str, ...], Sequence[Token]]:
    """The names in front of a dot at the end, and the tokens before them."""
    names: list[str] = []
    end = len(own)
    while end >= 2 and own[end - 1].word == "." and own[end - 2].kind in ("word", "quoted"):
        names.insert(0, unquote(text[own[end - 2].start : own[end - 2].end]))
        end -= 2
    return tuple(names), own[:end]


def _kind(own: Sequence[Token]) -> str:
    """What can stand behind these tokens of a statement."""
    if not own:
        return "statement"
    words = [token.word for token in own]
    last = words[-1]
    if words[-2:] == ["VERSION", "=>"] or words[-3:] == ["VERSION", "AS", "OF"] or _is_range(own):
        return "version"
    if last in ("SET", "RESET", "GLOBAL", "LOCAL", "SESSION") and words[0] in ("SET", "RESET"):
        return "setting"
    if last == "::" or (last == "AS" and _open_call(own) in ("CAST", "TRY_CAST")):
        return "type"
    if words == ["SHOW"]:
        return "show"
    if last in ("SCHEMA", "BRANCH"):
        return last.lower()
    if last in RELATION_HEADS or words in (["VACUUM"], ["COPY"]):
        return "relation"
    if last == "," and _clause(own) in ("FROM", "JOIN", "USING") and _open_call(own) == "":
        return "relation"
    if _is_name(own[-1]) and _clause(own) in RELATION_HEADS and not _open_call(own):
        return "clause"
    return "column"


def _is_range(own: Sequence[Token]) -> bool:
    """Whether the next thing is a version of `table_changes('t', from, to)`."""
    return own[-1].word == "," and _open_call(own) == "TABLE_CHANGES"


def _open_call(own: Sequence[Token]) -> str:
    """The word in front of the innermost bracket that is open; "" if none is."""
    depth = 0
    for index in range(len(own) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(own[index].word, 0)
        if depth < 0:
            return own[index - 1].word or "(" if index else "("
    return ""


def _clause(own: Sequence[Token]) -> str:
    """The word that begins the clause at the end, brackets that are closed left out."""
    depth = 0
    for token in reversed(own):
        depth += {")": 1, "(": -1}.get(token.word, 0)
        if depth < 0:
            return ""
        if not depth and token.kind == "word" and token.word in CLAUSES:
            return token.word
    return ""


def _tables(text: str, tokens: Sequence[Token]) -> Iterator[tuple[str, Name]]:
    """The tables that a statement names behind FROM, JOIN and the like, each under its alias or its name."""
    for index, token in enumerate(tokens):
        if token.kind != "word" or token.word not in RELATION_HEADS:
            continue
        at = index + 1
        while at < len(tokens) and _is_name(tokens[at]):
            names, at = _dotted(text, tokens, at)
            alias, at = _alias(text, tokens, at)
            yield folded(alias or names[-1]), (names[-2] if len(names) > 1 else None, names[-1])
            if at >= len(tokens) or tokens[at].word != ",":
                break
            at += 1


def _is_name(token: Token) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and token.word not in _NO_ALIAS)


def _dotted(text: str, tokens: Sequence[Token], at: int) -> tuple[list[str], int]:
    names = [unquote(text[tokens[at].start : tokens[at].end])]
    while at + 2 < len(tokens) and tokens[at + 1].word == "." and tokens[at + 2].kind in ("word", "quoted"):
        at += 2
        names.append(unquote(text[tokens[at].start : tokens[at].end]))
    return names, at + 1


def _alias(text: str, tokens: Sequence[Token], at: int) -> tuple[str | None, int]:
    """The alias behind a table, over a time travel clause in brackets, and where to go on."""
    if at + 1 < len(tokens) and tokens[at].word == "AT" and tokens[at + 1].word == "(":
        at = next((i + 1 for i in range(at, len(tokens)) if tokens[i].word == ")"), len(tokens))
    if at < len(tokens) and tokens[at].word == "AS":
        at += 1
    if at < len(tokens) and _is_name(tokens[at]):
        return unquote(text[tokens[at].start : tokens[at].end]), at + 1
    return None, at


def _ctes(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """The names that WITH makes: those in front of AS (."""
    if not tokens or tokens[0].word != "WITH":
        return
    for index in range(1, len(tokens) - 2):
        if tokens[index].kind in ("word", "quoted") and tokens[index + 1].word == "AS" and tokens[index + 2].word == "(":
            yield unquote(text[tokens[index].start : tokens[index].end])
