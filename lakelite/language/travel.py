"""History in SQL text: `t AT (VERSION => 3)` and its other spellings and `table_changes(…)`, made into holes; RESTORE.

Promises: only these forms where a table stands are taken; AT TIME ZONE and columns or aliases called version stay as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Literal

from lakelite.language.reader import Reader
from lakelite.language.source import Edit, Source, plain_with_parameters
from lakelite.language.statements import Name, RestoreTable, TableChanges, TimeTravel
from lakelite.language.tokens import NOT_NAMES, Token, lex, unquote

_BEFORE_TABLE = frozenset(
    "FROM JOIN ( : TABLE VIEW SUMMARIZE DESCRIBE DESC SHOW PIVOT PIVOT_WIDER PIVOT_LONGER UNPIVOT USING UPDATE INTO COPY".split()
)
_LISTS_OF_TABLES = frozenset("FROM JOIN USING".split())
_LISTS_OF_VALUES = frozenset("SELECT WHERE BY HAVING QUALIFY VALUES SET RETURNING LIMIT OFFSET".split())
_CLOCKS = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP")
_BY: dict[str, Literal["version", "timestamp", "branch", "tag"]] = {
    "VERSION": "version", "TIMESTAMP": "timestamp", "SYSTEM_TIME": "timestamp", "BRANCH": "branch", "TAG": "tag",
}  # fmt: skip
_OF_SQL = ("VERSION", "TIMESTAMP", "SYSTEM_TIME")
_CHANGES_HINT = "it takes the name of a table and the first and last version: table_changes('flights', 3, 7)"


def with_history(source: Source) -> Source:
    """The source with its time travel clauses and table_changes calls as edits, in place of the edits of the parameters inside of them."""
    found: list[Edit] = []
    for index in source.clauses:
        if found and source.tokens[index].start < found[-1].end:
            continue
        behind = found[-1].end if found else 0
        if edit := (_changes if source.tokens[index].word == "TABLE_CHANGES" else _clause)(source, index, behind):
            found.append(edit)
    if not found:
        return source
    starts = [hole.start for hole in found]
    kept = [edit for edit in source.edits if edit.start >= found[bisect_right(starts, edit.start) - 1].end or edit.start < starts[0]]
    return replace(source, edits=tuple(sorted(kept + found, key=lambda edit: edit.start)))


def read_restore(reader: Reader) -> RestoreTable:
    """Behind RESTORE: [TABLE] t TO VERSION|TIMESTAMP AS OF moment."""
    reader.accept("TABLE")
    target = reader.name()
    reader.expect("TO")
    kind = reader.accept_one(*_OF_SQL)
    if kind is None:
        raise reader.syntax_error("expected VERSION AS OF n or TIMESTAMP AS OF '…'")
    reader.expect("AS", "OF")
    first = reader.index
    step_over_moment(reader)
    reader.finish()
    return RestoreTable(target, TimeTravel(target, _BY[kind], plain_with_parameters(reader.source, first, reader.index)))


def name_in(text: str) -> Name | None:
    """The name of a table that a text is, qualified and quoted as in SQL; None for any other text."""
    tokens = lex(text)
    parts = [unquote(text[token.start : token.end]) for token in tokens[::2]]
    if len(parts) not in (1, 2) or len(tokens) != 2 * len(parts) - 1 or not all(parts):
        return None
    if any(token.kind not in ("word", "quoted") for token in tokens[::2]) or any(token.word != "." for token in tokens[1::2]):
        return None
    return Name(parts[0] if len(parts) == 2 else None, parts[-1])


# Time travel clauses.


def _clause(source: Source, index: int, behind_hole: int) -> Edit | None:
    """The hole for the clause whose first word is at `index`; `behind_hole`: where the hole before it ends."""
    reader = Reader(source, index)
    if index == 0 or source.tokens[index - 1].kind not in ("word", "quoted") or source.tokens[index - 1].word in NOT_NAMES:
        return None
    if reader.sees("AT", "(", reader.peek(2).word, "=>"):
        return _at(source, reader, index, behind_hole)
    if reader.sees("FOR", reader.peek(1).word, "AS", "OF") and reader.peek(1).word in _OF_SQL:
        return _for(source, reader, index, behind_hole)
    return None


def _at(source: Source, reader: Reader, index: int, behind_hole: int) -> Edit | None:
    kind = reader.peek(2).word
    if kind not in ("VERSION", "TIMESTAMP", "BRANCH", "TAG"):
        return None
    stop = reader.after_bracket(index + 1)
    if stop - 1 == index + 4:
        reader.index = index + 4
        raise reader.syntax_error("expected the version or the time")
    reader.index = index + 4
    if (comma := reader.scan(lambda i: reader.tokens[i].word == "," or i == stop - 1)) < stop - 1 and kind in ("BRANCH", "TAG"):
        raise reader.wrong(f"AT ({kind} => …) takes one name", "versions are numbered across all branches: AT (VERSION => n)", comma)
    _check_place(source, index, behind_hole)
    return _edit(source, index, kind, index + 4, stop - 1, stop)


def _for(source: Source, reader: Reader, index: int, behind_hole: int) -> Edit:
    kind = reader.peek(1).word
    reader.index += 4
    step_over_moment(reader)
    _check_place(source, index, behind_hole)
    return _edit(source, index, kind, index + 4, reader.index, reader.index)


def step_over_moment(reader: Reader) -> None:
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


def _edit(source: Source, index: int, kind: str, first: int, stop: int, behind: int) -> Edit:
    """The hole for the clause at `index`, whose moment is first…stop-1 and which ends before `behind`."""
    begin = _name_begin(source.tokens, index)
    hole = TimeTravel(_table(source, begin, index), _BY[kind], plain_with_parameters(source, first, stop))
    return Edit(source.tokens[begin].start, source.tokens[behind - 1].end, hole)


def _name_begin(tokens: list[Token], index: int) -> int:
    """Where the name in front of `index` begins."""
    begin = index - 1
    while begin >= 2 and tokens[begin - 1].word == "." and tokens[begin - 2].kind in ("word", "quoted"):
        begin -= 2
    return begin


def _check_place(source: Source, index: int, behind_hole: int) -> None:
    if not _may_be_table(source.tokens, _name_begin(source.tokens, index), behind_hole):
        hint = "it stands directly behind the name of a table: FROM t AT (VERSION => 3) AS a"
        raise Reader(source).wrong("a past version is asked of something that is no table", hint, index)


def _table(source: Source, begin: int, index: int) -> Name:
    reader = Reader(source, begin)
    name = reader.name()
    assert reader.index == index, "a name ends where its clause begins"
    return name


def _may_be_table(tokens: list[Token], begin: int, behind_hole: int) -> bool:
    """Whether a table may stand at `begin`: behind a word such as FROM, or in its list, and not in one of values or arguments."""
    before = tokens[begin - 1].word if begin else ""
    if before == ",":
        return _is_list_of_tables(tokens, begin - 1, behind_hole)
    is_call = before == "(" and begin >= 2 and tokens[begin - 2].kind in ("word", "quoted") and tokens[begin - 2].word not in NOT_NAMES
    return before in _BEFORE_TABLE and not is_call


def _is_list_of_tables(tokens: list[Token], comma: int, behind_hole: int) -> bool:
    """Whether the list that the comma belongs to is one of FROM: the nearest word to the left, outside of brackets, that begins a list says so,
    or a hole before it, which stands where a table may."""
    depth = 0
    for index in range(comma - 1, -1, -1):
        token = tokens[index]
        depth += (token.kind == "op" and token.word in ")]}") - (token.kind == "op" and token.word in "([{")
        if depth < 0 or (depth == 0 and token.word in _LISTS_OF_VALUES):
            return False
        if depth == 0 and (token.word in _LISTS_OF_TABLES or token.start < behind_hole):
            return True
    return False


# table_changes.


def _changes(source: Source, index: int, behind_hole: int) -> Edit | None:
    """The hole for `table_changes(table, first, last)`; None where the word is no call. `behind_hole` as in `_clause`."""
    tokens, reader = source.tokens, Reader(source, index + 1)
    if not reader.sees("(") or (index and tokens[index - 1].word == "."):
        return None
    if not _may_be_table(tokens, index, behind_hole):
        raise reader.wrong("table_changes gives rows: it stands where a table may stand", "write FROM table_changes('flights', 3, 7)", index)
    behind = reader.after_bracket()
    reader.index += 1
    texts: list[str] = []
    while reader.index < behind:
        first = reader.index
        reader.index = reader.scan(lambda i: tokens[i].word in (",", ")"))
        if reader.index == first:
            raise reader.wrong("an argument of table_changes is missing", _CHANGES_HINT)
        texts.append(plain_with_parameters(source, first, reader.index))
        reader.index += 1
    if len(texts) != 3:
        raise reader.wrong(f"table_changes takes three arguments, not {len(texts)}", _CHANGES_HINT, index)
    return Edit(tokens[index].start, tokens[behind - 1].end, TableChanges(texts[0], texts[1], texts[2], tokens[index].start))
