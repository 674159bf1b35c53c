"""The frame of MERGE INTO: its condition and its WHEN clauses (its source: merge_source.py). The expressions inside stay the user's text.

Promises: a clause that can never be reached, or that needs a row which is not there, is an error with its place.
"""

from __future__ import annotations

from dataclasses import replace

from lakelite.errors import ProgrammingError
from lakelite.language.changes import assignments, returning_list, target_alias, target_of
from lakelite.language.merge_source import read_source
from lakelite.language.reader import Reader
from lakelite.language.source import Source, splice, wrong
from lakelite.language.statements import Merge, MergeClause, MergeWhen, Name, Sql

_ENDS = (",", "WHEN", "RETURNING")


def read_merge(source: Source, index: int, ctes: Sql | None) -> Merge:
    """Behind MERGE: INTO name [[AS] alias] USING source ON condition | USING (columns), then WHEN … THEN … as often as wanted."""
    reader = Reader(replace(source, closing=_with_cases(source)), index)
    reader.expect("INTO")
    target = target_of(reader)
    alias = target_alias(reader)
    reader.expect("USING")
    rows, named, is_aliased, joined = read_source(reader)
    first = reader.index
    on, using = _condition(reader)
    clauses: list[MergeClause] = []
    while not (clauses and reader.ended()):
        clauses.append(_clause(reader, target, alias, clauses))
        if reader.sees("RETURNING"):
            break
    behind = splice(source, first, reader.index)
    return Merge(target, alias, rows, named, is_aliased, on, using, tuple(clauses), behind, ctes, returning_list(reader), joined)


def _with_cases(source: Source) -> dict[int, int]:
    """The brackets, and CASE … END as one more kind of them: the WHEN and THEN inside are not those of MERGE."""
    closing = dict(source.closing)
    opened: list[int] = []
    for index, token in enumerate(source.tokens):
        if token.word == "CASE":
            opened.append(index)
        elif token.word == "END" and opened:
            closing[opened.pop()] = index
    return closing


def _condition(reader: Reader) -> tuple[Sql | None, tuple[str, ...]]:
    """ON condition, or USING (columns)."""
    if reader.accept("USING"):
        found: tuple[Sql | None, tuple[str, ...]] = (None, reader.columns())
    else:
        reader.expect("ON")
        found = (reader.expression("WHEN"), ())
    if not reader.sees("WHEN"):
        raise reader.syntax_error("expected WHEN MATCHED or WHEN NOT MATCHED")
    return found


def _clause(reader: Reader, target: Name, alias: str | None, before: list[MergeClause]) -> MergeClause:
    """WHEN [NOT] MATCHED [BY SOURCE | BY TARGET] [AND condition] THEN action."""
    offset = reader.peek().start
    reader.expect("WHEN")
    when = _when(reader)
    if any(clause.when == when and clause.condition is None for clause in before):
        hint = f"a WHEN {when} without a condition stands before it: put it last, or give that one a condition"
        raise wrong(reader.source.text, offset, "this clause can never be reached", hint)
    condition = reader.expression("THEN") if reader.accept("AND") else None
    reader.expect("THEN")
    blank = MergeClause(when, condition, "nothing", offset)
    match reader.accept_one("UPDATE", "DELETE", "INSERT", "DO", "ERROR"):
        case "UPDATE":
            found = _update(reader, target, alias, replace(blank, action="update"))
        case "DELETE":
            found = replace(blank, action="delete")
        case "INSERT":
            found = _insert(reader, replace(blank, action="insert"))
        case "DO":
            reader.expect("NOTHING")
            found = blank
        case "ERROR":
            message = None if reader.ended() or reader.peek().word in _ENDS else reader.expression(*_ENDS)
            found = replace(blank, action="error", values=() if message is None else (message,))
        case _:
            raise reader.syntax_error("expected UPDATE, DELETE, INSERT, DO NOTHING or ERROR")
    if not (reader.ended() or reader.sees("WHEN") or reader.sees("RETURNING")):
        raise reader.syntax_error("expected WHEN, RETURNING or the end of the statement")
    _check_rows(reader, found)
    return found


def _when(reader: Reader) -> MergeWhen:
    if not reader.accept("NOT"):
        reader.expect("MATCHED")
        return "MATCHED"
    reader.expect("MATCHED")
    if not reader.accept("BY"):
        return "NOT MATCHED"
    if (side := reader.accept_one("SOURCE", "TARGET")) is None:
        raise reader.syntax_error("expected SOURCE or TARGET")
    return "NOT MATCHED BY SOURCE" if side == "SOURCE" else "NOT MATCHED"


def _check_rows(reader: Reader, clause: MergeClause) -> None:
    """An action has to have the row that it needs."""
    if clause.when == "NOT MATCHED" and clause.action in ("update", "delete"):
        message = "WHEN NOT MATCHED has no row of the target to change"
        raise _lacking(reader, clause, message, "use WHEN MATCHED, or WHEN NOT MATCHED BY SOURCE")
    if clause.when == "NOT MATCHED BY SOURCE" and clause.action in ("update", "insert") and clause.values is None:
        form = "SET column = value" if clause.action == "update" else "VALUES (…)"
        raise _lacking(reader, clause, "WHEN NOT MATCHED BY SOURCE has no row of the source to take values from", f"write {form}")


def _lacking(reader: Reader, clause: MergeClause, message: str, hint: str) -> ProgrammingError:
    return wrong(reader.source.text, clause.offset, message, hint)


def _update(reader: Reader, target: Name, alias: str | None, clause: MergeClause) -> MergeClause:
    """Behind UPDATE: SET *, SET column = value, …, [BY POSITION], or BY NAME."""
    if not reader.accept("SET"):
        return replace(clause, by_name=_by_name(reader))
    if reader.accept("*"):
        return clause
    found = assignments(reader, target, alias, ("WHEN", "RETURNING"))
    return replace(clause, columns=tuple(one.column for one in found), values=tuple(one.value for one in found))


def _insert(reader: Reader, clause: MergeClause) -> MergeClause:
    """Behind INSERT: DEFAULT VALUES, [(columns)] VALUES (…), or [BY POSITION | BY NAME] [*]."""
    if reader.accept("DEFAULT", "VALUES"):
        return replace(clause, columns=(), values=())
    columns = reader.columns() if reader.sees("(") else None
    if columns is not None or reader.sees("VALUES"):
        reader.expect("VALUES")
        return replace(clause, columns=columns, values=_values(reader))
    by_name = _by_name(reader)
    reader.accept("*")
    return replace(clause, by_name=by_name)


def _by_name(reader: Reader) -> bool:
    if not reader.accept("BY"):
        return False
    if (way := reader.accept_one("NAME", "POSITION")) is None:
        raise reader.syntax_error("expected NAME or POSITION")
    return way == "NAME"


def _values(reader: Reader) -> tuple[Sql | None, ...]:
    """`(value, …)`; a value of None is DEFAULT, and a comma at the end may stand."""
    reader.expect("(")
    found: list[Sql | None] = []
    while not (found and reader.sees(")")):
        if reader.sees("DEFAULT") and reader.peek(1).word in (",", ")"):
            reader.index += 1
            found.append(None)
        else:
            found.append(reader.expression(",", ")"))
        if not reader.sees(")"):
            reader.expect(",")
    reader.expect(")")
    return tuple(found)
