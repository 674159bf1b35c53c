"""The frames of INSERT, UPDATE, DELETE, TRUNCATE and COPY. The expressions and queries inside stay the user's text.

Promises: a clause that is not carried out is refused by name; no clause can hide inside a condition.
"""

from __future__ import annotations

from bisect import bisect_left

from lakelite.errors import ProgrammingError
from lakelite.language.analyse import is_row_local
from lakelite.language.reader import QUERY_HEADS, Reader
from lakelite.language.source import merged, plain_with_parameters, splice, splice_text, wrong
from lakelite.language.statements import Assignment, CopyFrom, CopyTo, Delete, Insert, Name, Sql, Truncate, Update
from lakelite.language.tokens import folded, unquote
from lakelite.model import quote

_NO_RETURNING = "read the rows with a SELECT in the same transaction"


def read_insert(reader: Reader, ctes: Sql | None) -> Insert:
    """Behind INSERT: [OVERWRITE] [INTO|TABLE] name [(columns)] [BY NAME|BY POSITION] source."""
    if reader.peek().word == "OR":
        raise reader.unsupported(f"INSERT OR {reader.peek(1).word or '…'}", "delete the rows with the same key first, in the same transaction")
    overwrite = reader.accept("OVERWRITE")
    into = reader.accept("INTO")
    into = reader.accept("TABLE") or into
    if not into and not overwrite:
        raise reader.syntax_error("expected INTO")
    target = _target(reader)
    if reader.sees("AS"):
        raise reader.unsupported("an alias for the target of INSERT", "leave it out")
    columns = reader.columns() if reader.sees("(") and _is_column_list(reader) else None
    _refuse_twice(reader, columns)
    by_name = _by_name(reader, columns)
    if reader.accept("DEFAULT", "VALUES"):
        _refuse_tail(reader, len(reader.tokens))
        reader.finish()
        if columns is not None or by_name:
            raise reader.wrong("DEFAULT VALUES takes neither a list of columns nor BY NAME", index=0)
        return Insert(target, overwrite, None, False, None, False, ctes)
    is_values = _is_values_list(reader)
    if is_values and by_name:
        raise reader.wrong("BY NAME takes the names from a query, and VALUES has none", "write the columns: INSERT INTO t (a, b) VALUES …")
    _refuse_tail(reader, len(reader.tokens))
    source = reader.query(len(reader.tokens))
    return Insert(target, overwrite, columns, by_name, source, is_values, ctes)


def read_delete(reader: Reader, ctes: Sql | None) -> Delete:
    """Behind DELETE: FROM name [[AS] alias] [WHERE condition]."""
    reader.expect("FROM")
    target = _target(reader)
    alias = _alias(reader)
    if reader.sees("USING"):
        raise reader.unsupported("DELETE … USING", "use WHERE column IN (SELECT …) or WHERE EXISTS (SELECT …)")
    first = reader.index
    where = _where(reader)
    return Delete(target, alias, where, _row_local(reader, target, alias, first, where, ctes), ctes)


def read_update(reader: Reader, ctes: Sql | None) -> Update:
    """Behind UPDATE: name [[AS] alias] SET column = value, … [WHERE condition]."""
    target = _target(reader)
    is_clause = reader.sees("SET") and not (reader.peek(1).word == "SET" and reader.sees_identifier(2))
    alias = None if is_clause else _alias(reader)
    reader.expect("SET")
    first = reader.index
    assignments = _assignments(reader, target, alias)
    if reader.sees("FROM"):
        raise reader.unsupported("UPDATE … FROM", "use a subquery: SET a = (SELECT …) WHERE EXISTS (SELECT …)")
    where = _where(reader)
    return Update(target, alias, assignments, where, _row_local(reader, target, alias, first, where, ctes), ctes)


def read_truncate(reader: Reader) -> Truncate:
    reader.accept("TABLE")
    target = _target(reader)
    reader.finish()
    return Truncate(target)


def read_copy(reader: Reader) -> CopyFrom | CopyTo:
    """Behind COPY: name [(columns)] FROM path [options], or name [(columns)] | (query) TO path [options]."""
    if reader.sees("("):
        return _copy_query(reader)
    first = reader.index
    target = reader.name()
    is_past = _step_over_clause(reader, first)
    behind_name = reader.index
    columns = reader.columns() if reader.sees("(") else None
    _refuse_twice(reader, columns)
    if reader.accept("FROM"):
        if is_past:
            raise _unchangeable(reader, first + 1)
        path, parameter = read_path(reader)
        return CopyFrom(target, columns, path, parameter, _options(reader))
    before, behind = reader.tokens[first].start, reader.tokens[reader.index - 1].end
    reader.expect("TO")
    _check_copy_to(reader)
    shown = "*" if columns is None else ", ".join(quote(column) for column in columns)
    plain = (quote(target.schema) + "." if target.schema is not None else "") + quote(target.name)
    query = [f"SELECT {shown} FROM ", *(splice(reader.source, first, behind_name).parts if is_past else (plain,))]
    head = splice_text(reader.source, 0, before)
    tail = splice_text(reader.source, behind, reader.tokens[-1].end)
    sql = Sql(merged([*head.parts, "(", *query, ")", *tail.parts]), tail.parameters, 0)
    return CopyTo(sql, Sql(merged(query), (), before))


def _step_over_clause(reader: Reader, first: int) -> bool:
    """Steps over the time travel clause of the table whose name begins with the token `first`; whether it has one."""
    begin, behind_name = reader.tokens[first].start, reader.index
    end = next((edit.end for edit in reader.source.edits if edit.start == begin), begin)
    while not reader.ended() and reader.peek().start < end:
        reader.index += 1
    return reader.index > behind_name


def _copy_query(reader: Reader) -> CopyTo:
    stop = reader.after_bracket() - 1
    reader.index += 1
    reads = reader.query(stop)
    reader.expect(")")
    reader.expect("TO")
    _check_copy_to(reader)
    return CopyTo(splice(reader.source, 0, len(reader.tokens)), reads)


def _check_copy_to(reader: Reader) -> None:
    if reader.ended():
        raise reader.syntax_error("expected the path of a file")
    if reader.sees("("):
        reader.index = reader.after_bracket()
    else:
        read_path(reader)
    _options(reader)


def read_path(reader: Reader, of: str = "a file") -> tuple[str | None, str | None]:
    """(path, parameter): one of them is None."""
    _refuse_streams(reader)
    token = reader.peek()
    start = reader.source.text[token.start : token.start + 1]
    if token.kind == "string" and start in ("'", "$"):
        reader.index += 1
        return unquote(reader.source.shown(token)), None
    parameters = splice(reader.source, reader.index, reader.index + 1).parameters if not reader.ended() else ()
    if token.word == ":" and reader.index + 1 < len(reader.tokens):
        parameters = splice(reader.source, reader.index, reader.index + 2).parameters
        reader.index += 1
    if not parameters:
        raise reader.syntax_error(f"expected the path of {of}: a string in single quotes, or a parameter")
    reader.index += 1
    return None, parameters[0]


def _refuse_streams(reader: Reader) -> None:
    if reader.peek().word in ("STDIN", "STDOUT", "PROGRAM"):
        raise reader.unsupported(f"COPY with {reader.peek().word}", "write the path of a file")


def _options(reader: Reader) -> tuple[tuple[str, str | None], ...]:
    """`(name [value], …)`, with WITH in front or not, up to the end of the statement."""
    if reader.ended():
        return ()
    reader.accept("WITH")
    if reader.peek().kind == "word":
        hint = f"write ({reader.peek().word}): COPY t FROM 'file.csv' (FORMAT csv, HEADER)"
        raise reader.unsupported("an option of COPY outside of parentheses", hint)
    reader.expect("(")
    options: dict[str, str | None] = {}
    while not (options and reader.sees(")")):
        token = reader.peek()
        if token.kind not in ("word", "quoted"):
            raise reader.syntax_error("expected the name of an option")
        name = folded(unquote(reader.source.shown(token)))
        if name in options:
            raise reader.wrong(f'the option "{name}" is given twice')
        reader.index += 1
        first = reader.index
        reader.index = reader.scan(lambda index: reader.tokens[index].word in (",", ")"))
        options[name] = plain_with_parameters(reader.source, first, reader.index) if reader.index > first else None
        if not reader.sees(")"):
            reader.expect(",")
    reader.expect(")")
    reader.finish()
    return tuple(options.items())


def _target(reader: Reader) -> Name:
    """The table that is changed: not an earlier version of it."""
    name = reader.name()
    if reader.sees("AT", "(") or (reader.sees("FOR") and reader.sees("FOR", reader.peek(1).word, "AS", "OF")):
        raise _unchangeable(reader)
    return name


def _unchangeable(reader: Reader, index: int | None = None) -> ProgrammingError:
    return reader.wrong("an earlier version of a table cannot be changed", "leave the AT or FOR clause out", index)


def _alias(reader: Reader) -> str | None:
    if reader.accept("AS") or reader.sees_identifier():
        return reader.identifier("an alias")
    return None


def _where(reader: Reader) -> Sql | None:
    where = reader.expression("RETURNING") if reader.accept("WHERE") else None
    _refuse_returning(reader)
    reader.finish()
    return where


def _refuse_returning(reader: Reader) -> None:
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING", _NO_RETURNING)


def _refuse_tail(reader: Reader, stop: int) -> None:
    """RETURNING and ON CONFLICT behind the source of an INSERT."""
    tokens, index = reader.tokens, reader.index
    while index < stop:
        if tokens[index].word == "RETURNING" and tokens[index - 1].word != ".":
            raise reader.unsupported("RETURNING", _NO_RETURNING, index)
        if tokens[index].word == "CONFLICT" and tokens[index - 1].word == "ON" and (index + 1 == stop or tokens[index + 1].word in ("(", "DO")):
            hint = "delete the rows with the same key first, or leave them out with WHERE NOT EXISTS (SELECT …), in the same transaction"
            raise reader.unsupported("ON CONFLICT", hint, index - 1)
        index = reader.source.closing.get(index, index) + 1


def _is_column_list(reader: Reader) -> bool:
    """Whether the bracket that comes next holds columns, and not a query."""
    behind = reader.after_bracket()
    inside = reader.tokens[reader.index + 1]
    if behind < len(reader.tokens) and (reader.tokens[behind].word in QUERY_HEADS or reader.tokens[behind].word in ("BY", "DEFAULT")):
        return inside.word not in QUERY_HEADS or inside.word == "VALUES"
    return inside.word not in QUERY_HEADS


def _refuse_twice(reader: Reader, columns: tuple[str, ...] | None) -> None:
    seen: set[str] = set()
    for column in columns or ():
        if folded(column) in seen:
            raise reader.wrong(f'the column "{column}" is named twice', index=reader.index - 1)
        seen.add(folded(column))


def _by_name(reader: Reader, columns: tuple[str, ...] | None) -> bool:
    if not reader.sees("BY"):
        return False
    if columns is not None:
        raise reader.syntax_error("BY NAME and BY POSITION take no list of columns")
    if reader.accept("BY", "POSITION"):
        return False
    reader.expect("BY", "NAME")
    if reader.sees("(") and reader.after_bracket() < len(reader.tokens) and _is_column_list(reader):
        raise reader.syntax_error("BY NAME takes no list of columns")
    return True


def _is_values_list(reader: Reader) -> bool:
    """Whether the rest is VALUES with rows and nothing else; a comma at the end may stand, as in DuckDB."""
    index = reader.index + 1
    tokens = reader.tokens
    if not reader.sees("VALUES", "("):
        return False
    while index < len(tokens) and tokens[index].word == "(":
        index = reader.after_bracket(index)
        if index < len(tokens) and tokens[index].word == ",":
            index += 1
    return index == len(tokens)


def _assignments(reader: Reader, target: Name, alias: str | None) -> tuple[Assignment, ...]:
    found: list[Assignment] = []
    seen: set[str] = set()
    while not (found and (reader.ended() or reader.peek().word in ("WHERE", "FROM", "RETURNING"))):
        assignment = _assignment(reader, target, alias)
        if folded(assignment.column) in seen:
            raise wrong(reader.source.text, assignment.offset, f'the column "{assignment.column}" is set twice')
        seen.add(folded(assignment.column))
        found.append(assignment)
        if not reader.accept(",") and not reader.ended() and reader.peek().word not in ("WHERE", "FROM", "RETURNING"):
            raise reader.syntax_error()
    return tuple(found)


def _assignment(reader: Reader, target: Name, alias: str | None) -> Assignment:
    if reader.sees("("):
        raise reader.unsupported("SET (a, b) = …", "set each column: SET a = …, b = …")
    offset = reader.peek().start
    column = reader.identifier("the name of a column")
    if reader.sees("."):
        if folded(column) in {folded(target.name), folded(alias or target.name), folded(target.schema or target.name)}:
            raise reader.wrong("a column in SET is named without its table", f"leave {column}. out", reader.index - 1)
        raise reader.unsupported("SET of a field inside a column", "set the whole column: SET s = struct_update(s, field := value)")
    if reader.sees("["):
        raise reader.unsupported("SET of an element inside a column", "set the whole column")
    reader.expect("=")
    ends = (",", "WHERE", "FROM", "RETURNING")
    if reader.sees("DEFAULT") and (reader.peek(1).kind == "end" or reader.peek(1).word in ends):
        reader.index += 1
        return Assignment(column, None, offset)
    return Assignment(column, reader.expression(*ends), offset)


def _row_local(reader: Reader, target: Name, alias: str | None, first: int, where: Sql | None, ctes: Sql | None) -> bool:
    """`first`: the token behind SET, or where WHERE begins. What follows is looked at whole, so that nothing is left out."""
    source = reader.source
    if ctes is not None or any(not isinstance(edit.part, str) for edit in source.edits):
        return False
    split = len(source.tokens) if where is None else bisect_left(source.tokens, where.offset, key=lambda token: token.start)
    statement = plain_with_parameters(source, 0, len(source.tokens))
    names = frozenset((folded(target.name), folded(alias or target.name)))
    return is_row_local(source.text, source.tokens[first:split], source.tokens[split:], names, statement)
