"""The frames of INSERT, UPDATE, DELETE, TRUNCATE and COPY. The expressions and queries inside stay the user's text.

Promises: a clause that is not carried out is refused by name; no clause can hide inside a condition.
"""

from __future__ import annotations

from bisect import bisect_left

from lakelite.errors import ProgrammingError
from lakelite.language.analyse import is_row_local
from lakelite.language.merge_source import read_sources
from lakelite.language.reader import QUERY_HEADS, Reader
from lakelite.language.source import merged, plain_with_parameters, splice, splice_text, wrong
from lakelite.language.statements import Assignment, CopyFrom, CopyTo, Delete, Insert, Name, OnConflict, Sql, Truncate, Update
from lakelite.language.tokens import folded, unquote
from lakelite.model import quote

_CLAUSES = ("WHERE", "FROM", "RETURNING")


def read_insert(reader: Reader, ctes: Sql | None) -> Insert:
    """Behind INSERT: [OR IGNORE|OR REPLACE] [OVERWRITE] [INTO|TABLE] name [AS alias] [(columns)] [BY NAME|BY POSITION] source
    [ON CONFLICT …] [RETURNING …]."""
    instead = _instead(reader)
    overwrite = instead is None and reader.accept("OVERWRITE")
    into = reader.accept("INTO")
    into = reader.accept("TABLE") or into
    if not into and not overwrite:
        raise reader.syntax_error("expected INTO")
    target = target_of(reader)
    alias = reader.identifier("an alias") if reader.accept("AS") else None
    columns = reader.columns() if reader.sees("(") and _is_column_list(reader) else None
    _refuse_twice(reader, columns)
    by_name = _by_name(reader, columns)
    stop = min(_conflict_at(reader), reader.scan(lambda index: reader.is_clause(index, "RETURNING")))
    if reader.accept("DEFAULT", "VALUES"):
        if columns is not None or by_name:
            raise reader.wrong(
                "DEFAULT VALUES takes neither a list of columns nor BY NAME", index=0, hint="INSERT INTO t DEFAULT VALUES is all of it"
            )
        on_conflict = _on_conflict(reader, target, alias, instead, overwrite)
        return Insert(target, overwrite, None, False, None, False, ctes, returning_list(reader), alias, on_conflict)
    is_values = _is_values_list(reader, stop)
    if is_values and by_name:
        raise reader.wrong("BY NAME takes the names from a query, and VALUES has none", "write the columns: INSERT INTO t (a, b) VALUES …")
    source = reader.query(stop)
    on_conflict = _on_conflict(reader, target, alias, instead, overwrite)
    return Insert(target, overwrite, columns, by_name, source, is_values, ctes, returning_list(reader), alias, on_conflict)


def _instead(reader: Reader) -> OnConflict | None:
    """OR IGNORE and OR REPLACE."""
    if not reader.accept("OR"):
        return None
    word = reader.accept_one("IGNORE", "REPLACE")
    if word is None:
        raise reader.syntax_error("expected IGNORE or REPLACE")
    return OnConflict(None, "replace" if word == "REPLACE" else "nothing")


def _conflict_at(reader: Reader) -> int:
    """The index of ON CONFLICT behind the source of an INSERT, or the end."""
    tokens, index = reader.tokens, reader.index
    while index < len(tokens):
        is_conflict = tokens[index].word == "CONFLICT" and tokens[index - 1].word == "ON"
        if is_conflict and (index + 1 == len(tokens) or tokens[index + 1].word in ("(", "DO", "ON")):
            return index - 1
        index = reader.source.closing.get(index, index) + 1
    return index


def _on_conflict(reader: Reader, target: Name, alias: str | None, instead: OnConflict | None, overwrite: bool) -> OnConflict | None:
    """ON CONFLICT [(columns)] DO NOTHING | DO UPDATE SET column = value, … [WHERE condition]."""
    first = reader.index
    if not reader.accept("ON", "CONFLICT"):
        return instead
    if instead is not None or overwrite:
        raise reader.wrong("ON CONFLICT stands neither with OR IGNORE, OR REPLACE nor with OVERWRITE", "leave one of them out", first)
    if reader.sees("ON"):
        raise reader.unsupported("ON CONFLICT ON CONSTRAINT", "name the columns of the key: ON CONFLICT (a, b)")
    columns = reader.columns() if reader.sees("(") else None
    if reader.sees("WHERE"):
        raise reader.unsupported("a WHERE for the conflict target", "put the condition behind DO UPDATE SET …")
    reader.expect("DO")
    if reader.accept("NOTHING"):
        return OnConflict(columns, "nothing", text=splice(reader.source, first, reader.index))
    reader.expect("UPDATE", "SET")
    found = assignments(reader, target, alias, _CLAUSES)
    where = _where(reader)
    return OnConflict(columns, "update", found, where, splice(reader.source, first, reader.index))


def read_delete(reader: Reader, ctes: Sql | None) -> Delete:
    """Behind DELETE: FROM name [[AS] alias] [USING sources] [WHERE condition] [RETURNING …]."""
    reader.expect("FROM")
    target = target_of(reader)
    alias = target_alias(reader)
    sources = read_sources(reader) if reader.accept("USING") else None
    first = reader.index
    where = _where(reader)
    row_local = sources is None and _row_local(reader, target, alias, first, where, ctes)
    return Delete(target, alias, where, row_local, ctes, sources, returning_list(reader))


def read_update(reader: Reader, ctes: Sql | None) -> Update:
    """Behind UPDATE: name [[AS] alias] SET column = value, … [FROM sources] [WHERE condition] [RETURNING …]."""
    target = target_of(reader)
    is_clause = reader.sees("SET") and not (reader.peek(1).word == "SET" and reader.sees_identifier(2))
    alias = None if is_clause else target_alias(reader)
    reader.expect("SET")
    first = reader.index
    found = assignments(reader, target, alias, _CLAUSES)
    sources = read_sources(reader) if reader.accept("FROM") else None
    where = _where(reader)
    row_local = sources is None and _row_local(reader, target, alias, first, where, ctes)
    return Update(target, alias, found, where, row_local, ctes, sources, returning_list(reader))


def read_truncate(reader: Reader) -> Truncate:
    reader.accept("TABLE")
    target = target_of(reader)
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
    parameter = read_parameter(reader)
    if parameter is None:
        raise reader.syntax_error(f"expected the path of {of}: a string in single quotes, or a parameter")
    return None, parameter


def read_parameter(reader: Reader) -> str | None:
    """The name of the parameter that comes next; None, and nothing is read: there is none."""
    if reader.ended():
        return None
    end = reader.index + (2 if reader.peek().word == ":" and reader.index + 1 < len(reader.tokens) else 1)
    parameters = splice(reader.source, reader.index, end).parameters
    if not parameters:
        return None
    reader.index = end
    return parameters[0]


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
            raise reader.wrong(f'the option "{name}" is given twice', hint="give it once")
        reader.index += 1
        first = reader.index
        reader.index = reader.scan(lambda index: reader.tokens[index].word in (",", ")"))
        options[name] = plain_with_parameters(reader.source, first, reader.index) if reader.index > first else None
        if not reader.sees(")"):
            reader.expect(",")
    reader.expect(")")
    reader.finish()
    return tuple(options.items())


def target_of(reader: Reader) -> Name:
    """The table that is changed: not an earlier version of it."""
    name = reader.name()
    if reader.sees("AT", "(") or (reader.sees("FOR") and reader.sees("FOR", reader.peek(1).word, "AS", "OF")):
        raise _unchangeable(reader)
    return name


def _unchangeable(reader: Reader, index: int | None = None) -> ProgrammingError:
    return reader.wrong("an earlier version of a table cannot be changed", "leave the AT or FOR clause out", index)


def target_alias(reader: Reader) -> str | None:
    """`[AS] alias`, or None."""
    if reader.accept("AS") or reader.sees_identifier():
        return reader.identifier("an alias")
    return None


def _where(reader: Reader) -> Sql | None:
    return reader.expression("RETURNING") if reader.accept("WHERE") else None


def returning_list(reader: Reader) -> Sql | None:
    """The list behind RETURNING, to the end of the statement: DuckDB binds it as it is, and says what is wrong in it."""
    if not reader.accept("RETURNING"):
        reader.finish()
        return None
    first = reader.index
    if reader.ended():
        raise reader.syntax_error("expected what to return: RETURNING *, or a list of expressions")
    found = splice(reader.source, first, len(reader.tokens))
    if found.parameters:
        raise reader.unsupported("a parameter in RETURNING", "return the columns, and compute with them where you read the rows", first)
    return found


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
            raise reader.wrong(f'the column "{column}" is named twice', "give each column once", index=reader.index - 1)
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


def _is_values_list(reader: Reader, stop: int) -> bool:
    """Whether all up to `stop` is VALUES with rows and nothing else; a comma at the end may stand, as in DuckDB."""
    index = reader.index + 1
    tokens = reader.tokens
    if not reader.sees("VALUES", "("):
        return False
    while index < stop and tokens[index].word == "(":
        index = reader.after_bracket(index)
        if index < stop and tokens[index].word == ",":
            index += 1
    return index == stop


def assignments(reader: Reader, target: Name, alias: str | None, ends: tuple[str, ...]) -> tuple[Assignment, ...]:
    """`column = value, …` up to one of the words `ends`, or the end of the statement; a comma at the end may stand."""
    found: list[Assignment] = []
    seen: set[str] = set()
    while not (found and (reader.ended() or reader.peek().word in ends)):
        for assignment in _several(reader, (",", *ends)) if reader.sees("(") else (_assignment(reader, target, alias, (",", *ends)),):
            if folded(assignment.column) in seen:
                raise wrong(reader.source.text, assignment.offset, f'the column "{assignment.column}" is set twice', "set it once")
            seen.add(folded(assignment.column))
            found.append(assignment)
        if not reader.accept(",") and not reader.ended() and reader.peek().word not in ends:
            raise reader.syntax_error("a comma, or the next clause, is missing in front of it")
    return tuple(found)


def _assignment(reader: Reader, target: Name, alias: str | None, ends: tuple[str, ...]) -> Assignment:
    offset = reader.peek().start
    column = reader.identifier("the name of a column")
    if reader.sees("."):
        if folded(column) in {folded(target.name), folded(alias or target.name), folded(target.schema or target.name)}:
            raise reader.wrong("a column in SET is named without its table", f"leave {column}. out", reader.index - 1)
        raise reader.unsupported("SET of a field inside a column", "set the whole column: SET s = struct_update(s, field := value)")
    if reader.sees("["):
        raise reader.unsupported("SET of an element inside a column", "set the whole column")
    reader.expect("=")
    return Assignment(column, _value_or_default(reader, ends), offset)


def _value_or_default(reader: Reader, ends: tuple[str, ...]) -> Sql | None:
    if reader.sees("DEFAULT") and (reader.peek(1).kind == "end" or reader.peek(1).word in ends):
        reader.index += 1
        return None
    return reader.expression(*ends)


def _several(reader: Reader, ends: tuple[str, ...]) -> list[Assignment]:
    """`(a, b) = (value, value)`, with ROW before the values or without; what is no such list is the value of each column."""
    offset = reader.peek().start
    columns = reader.columns()
    reader.expect("=")
    first = reader.index
    reader.accept("ROW")
    behind = reader.after_bracket() if reader.sees("(") else reader.index
    is_list = behind > reader.index and (behind == len(reader.tokens) or reader.tokens[behind].word in ends)
    if not is_list or reader.peek(1).word in QUERY_HEADS - {"("}:
        reader.index = first
        value = reader.expression(*ends)
        return [Assignment(column, value, offset) for column in columns]
    reader.expect("(")
    values: list[Sql | None] = []
    while not (values and reader.sees(")")):
        values.append(_value_or_default(reader, (",", ")")))
        if not reader.sees(")"):
            reader.expect(",")
    reader.expect(")")
    if len(values) != len(columns):
        raise reader.wrong(
            f"{len(columns)} columns are set, but {len(values)} value{' was' if len(values) == 1 else 's were'} supplied",
            "give each column a value",
            first,
        )
    return [Assignment(column, value, offset) for column, value in zip(columns, values, strict=True)]


def _row_local(reader: Reader, target: Name, alias: str | None, first: int, where: Sql | None, ctes: Sql | None) -> bool:
    """`first`: the token behind SET, or where WHERE begins. What follows is looked at whole, so that nothing is left out; RETURNING
    can look at nothing but the row, which DuckDB sees to."""
    source, stop = reader.source, reader.index
    if ctes is not None or any(not isinstance(edit.part, str) for edit in source.edits):
        return False
    split = stop if where is None else bisect_left(source.tokens, where.offset, key=lambda token: token.start)
    statement = plain_with_parameters(source, 0, stop)
    names = frozenset((folded(target.name), folded(alias or target.name)))
    return is_row_local(source.text, source.tokens[first:split], source.tokens[split:stop], names, statement)
