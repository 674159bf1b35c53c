"""Time travel: `t AT (VERSION => 3)`, `t FOR TIMESTAMP AS OF '…'` and their other spellings, made into holes of the text.

Promises: only these forms behind a table's name are taken; AT TIME ZONE and columns or aliases called version stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lakelite.language.reader import Reader
from lakelite.language.source import Edit, Source, plain_with_parameters
from lakelite.language.statements import Name, TimeTravel
from lakelite.language.tokens import NOT_NAMES, Token

_BEFORE_TABLE = frozenset("FROM JOIN , ( : TABLE SUMMARIZE DESCRIBE DESC SHOW PIVOT PIVOT_WIDER PIVOT_LONGER UNPIVOT USING UPDATE INTO".split())
_CLOCKS = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP")
_BY: dict[str, Literal["version", "timestamp"]] = {"VERSION": "version", "TIMESTAMP": "timestamp", "SYSTEM_TIME": "timestamp"}
_REFUSED = ("BRANCH", "TAG")


def with_time_travel(source: Source) -> Source:
    """The source with its time travel clauses as edits, in place of the edits of the parameters inside of them."""
    found: list[Edit] = []
    for index in source.clauses:
        if found and source.tokens[index].start < found[-1].end:
            continue
        if edit := _clause(source, index):
            found.append(edit)
    if not found:
        return source
    kept = [edit for edit in source.edits if not any(hole.start <= edit.start < hole.end for hole in found)]
    return replace(source, edits=tuple(sorted(kept + found, key=lambda edit: edit.start)))


def _clause(source: Source, index: int) -> Edit | None:
    reader = Reader(source, index)
    if index == 0 or source.tokens[index - 1].kind not in ("word", "quoted") or source.tokens[index - 1].word in NOT_NAMES:
        return None
    if reader.sees("AT", "(", reader.peek(2).word, "=>"):
        return _at(source, reader, index)
    if reader.sees("FOR", reader.peek(1).word, "AS", "OF") and reader.peek(1).word in _BY:
        return _for(source, reader, index)
    return None


def _at(source: Source, reader: Reader, index: int) -> Edit | None:
    kind = reader.peek(2).word
    if kind in _REFUSED:
        raise reader.unsupported(f"AT ({kind} => …)", "use AT (VERSION => n) or AT (TIMESTAMP => …)")
    if kind not in ("VERSION", "TIMESTAMP"):
        return None
    stop = reader.after_bracket(index + 1)
    if stop - 1 == index + 4:
        reader.index = index + 4
        raise reader.syntax_error("expected the version or the time")
    return _edit(source, reader, index, kind, index + 4, stop - 1, stop)


def _for(source: Source, reader: Reader, index: int) -> Edit:
    kind = reader.peek(1).word
    reader.index += 4
    _step_over_moment(reader)
    return _edit(source, reader, index, kind, index + 4, reader.index, reader.index)


def _step_over_moment(reader: Reader) -> None:
    """A number, a string, TIMESTAMP 'string', a parameter, a bracketed expression or a function call, with `::type` behind it."""
    hint = "expected a number, a string, TIMESTAMP '…', a parameter, or an expression in parentheses"
    token = reader.peek()
    if token.word == "(":
        reader.index = reader.after_bracket()
    elif token.kind in ("number", "string", "param") or token.word in _CLOCKS:
        reader.index += 1
    elif (token.word, reader.peek(1).kind) in ((":", "word"), ("TIMESTAMP", "string"), ("TIMESTAMPTZ", "string"), ("DATE", "string")):
        reader.index += 2
    elif reader.sees_identifier() and reader.peek(1).word == "(":
        reader.index = reader.after_bracket(reader.index + 1)
    else:
        raise reader.syntax_error(hint)
    while reader.sees("::") and reader.peek(1).kind in ("word", "quoted"):
        reader.index += 2


def _edit(source: Source, reader: Reader, index: int, kind: str, first: int, stop: int, behind: int) -> Edit:
    """The hole for the clause at `index`, whose moment is first…stop-1 and which ends before `behind`."""
    tokens = source.tokens
    begin = index - 1
    while begin >= 2 and tokens[begin - 1].word == "." and tokens[begin - 2].kind in ("word", "quoted"):
        begin -= 2
    before = tokens[begin - 1].word if begin else ""
    if before not in _BEFORE_TABLE:
        hint = "it stands directly behind the name of a table: FROM t AT (VERSION => 3) AS a"
        raise reader.wrong("a past version is asked of something that is no table", hint, index)
    table = _table(source, begin, index)
    aliased = before == ":" or (behind < len(tokens) and _is_alias(tokens[behind]))
    moment = plain_with_parameters(source, first, stop)
    hole = TimeTravel(table, _BY[kind], moment, aliased)
    return Edit(tokens[begin].start, tokens[behind - 1].end, hole)


def _table(source: Source, begin: int, index: int) -> Name:
    reader = Reader(source, begin)
    name = reader.name()
    assert reader.index == index, "a name ends where its clause begins"
    return name


def _is_alias(token: Token) -> bool:
    return token.word == "AS" or token.kind == "quoted" or (token.kind == "word" and token.word not in NOT_NAMES)
