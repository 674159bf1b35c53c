"""The frames of statements about transactions, settings and the lake itself: BEGIN, COMMIT, SAVEPOINT, SET, SHOW, DESCRIBE, VACUUM."""

from __future__ import annotations

from lakelite.language.changes import read_parameter
from lakelite.language.reader import QUERY_HEADS, Reader
from lakelite.language.source import plain, splice
from lakelite.language.statements import (
    Begin,
    Commit,
    DescribeHistory,
    DescribeTable,
    Name,
    Query,
    Release,
    Rollback,
    RollbackTo,
    Savepoint,
    SetOption,
    ShowCreateTable,
    ShowSchemas,
    ShowSettings,
    ShowTables,
    Sql,
    TimeTravel,
    Vacuum,
)
from lakelite.language.tokens import folded, unquote
from lakelite.model import ISOLATION_LEVELS, MOST_HOURS, SYSTEM_SCHEMAS

_LEVELS = {level.replace(" ", ""): level for level in ISOLATION_LEVELS}
LIMIT_DIGITS = 18  # fits into 64 bits
_WORK = ("TRANSACTION", "WORK")
_SAVEPOINT = "the name of a savepoint"


def read_begin(reader: Reader) -> Begin:
    """Behind BEGIN or START TRANSACTION: [ISOLATION LEVEL level] [READ ONLY|READ WRITE], in any order."""
    reader.accept_one(*_WORK)
    isolation: str | None = None
    access: str | None = None
    while not reader.ended():
        if isolation is None and reader.accept("ISOLATION", "LEVEL"):
            isolation = _isolation_level(reader)
        elif access is None and reader.accept("READ"):
            access = reader.accept_one("ONLY", "WRITE")
            if access is None:
                raise reader.syntax_error("expected READ ONLY or READ WRITE")
        else:
            raise reader.syntax_error("expected ISOLATION LEVEL, READ ONLY or READ WRITE")
        if reader.accept(",") and reader.ended():
            raise reader.syntax_error("expected ISOLATION LEVEL, READ ONLY or READ WRITE behind the comma")
    return Begin(isolation, access == "ONLY")


def read_commit(reader: Reader) -> Commit:
    reader.accept_one(*_WORK)
    reader.finish()
    return Commit()


def read_rollback(reader: Reader) -> Rollback | RollbackTo:
    """Behind ROLLBACK or ABORT: [WORK|TRANSACTION] [TO [SAVEPOINT] name]."""
    reader.accept_one(*_WORK)
    if reader.accept("TO"):
        return RollbackTo(*_savepoint(reader))
    reader.finish()
    return Rollback()


def read_savepoint(reader: Reader) -> Savepoint:
    name = reader.identifier(_SAVEPOINT)
    reader.finish()
    return Savepoint(name)


def read_release(reader: Reader) -> Release:
    return Release(*_savepoint(reader))


def _savepoint(reader: Reader) -> tuple[str, int]:
    """[SAVEPOINT] name, and where the name stands; a savepoint may be called savepoint."""
    if reader.peek(1).kind != "end":
        reader.accept("SAVEPOINT")
    offset = reader.peek().start
    name = reader.identifier(_SAVEPOINT)
    reader.finish()
    return name, offset


def read_set(reader: Reader) -> SetOption:
    """Behind SET: [SESSION|GLOBAL|LOCAL] name = value, or name TO value. The name comes folded."""
    if reader.sees("TIME", "ZONE") and reader.peek(2).word not in ("=", "TO"):
        reader.index += 2
        return SetOption("timezone", _value(reader))
    for_lake = reader.sees("GLOBAL")
    name = _option(reader)
    if reader.accept_one("=", "TO") is None:
        raise reader.syntax_error("expected = or TO")
    return SetOption(name, _value(reader), for_lake)


def read_reset(reader: Reader) -> SetOption:
    name = _option(reader)
    reader.finish()
    return SetOption(name, None)


def read_show(reader: Reader) -> Query | ShowTables | ShowSchemas | ShowSettings | ShowCreateTable | DescribeTable:
    """Behind SHOW."""
    if reader.ended() or reader.sees("ALL", "TABLES"):
        reader.accept("ALL", "TABLES")
        reader.finish()
        return ShowTables(None, True)
    if reader.accept("ALL"):
        reader.finish()
        return ShowSettings(None)
    if reader.accept("CREATE", "TABLE") or reader.accept("CREATE", "VIEW"):
        return ShowCreateTable(*_table(reader))
    if reader.accept("TABLE") or _sees_system_schema(reader):
        return _described(reader)
    if reader.peek().kind == "string" or (reader.peek().word in QUERY_HEADS and reader.peek(1).kind != "end"):
        return Query(splice(reader.source, 0, len(reader.tokens)))
    if reader.accept("TABLES"):
        return _tables(reader)
    if reader.accept("SCHEMAS"):
        reader.finish()
        return ShowSchemas()
    name, at = _table(reader)
    return ShowSettings(name.name) if name.schema is None and at is None else DescribeTable(name, at)


def read_describe(reader: Reader) -> Query | ShowTables | DescribeTable | DescribeHistory:
    """Behind DESCRIBE: HISTORY, a table, or a query, which DuckDB describes."""
    if reader.ended():
        return ShowTables(None, True)
    if reader.accept("HISTORY"):
        return _history(reader)
    if reader.accept("TABLES"):
        return _tables(reader)
    token = reader.peek()
    if (token.word in QUERY_HEADS and token.word != "TABLE") or token.kind == "string":
        return Query(splice(reader.source, 0, len(reader.tokens)))
    reader.accept("TABLE")
    return _described(reader)


def read_vacuum(reader: Reader) -> Vacuum:
    """Behind VACUUM: [t] [RETAIN n HOURS] [DRY RUN]."""
    if reader.sees("(") or reader.peek().word in ("ANALYZE", "ANALYSE", "FULL", "FREEZE", "VERBOSE"):
        raise reader.unsupported("VACUUM with options", "use VACUUM [t] [RETAIN n HOURS] [DRY RUN]")
    is_clause = (reader.sees("RETAIN") and reader.peek(1).kind not in ("end", "word")) or reader.sees("DRY", "RUN")
    target = None if reader.ended() or is_clause else reader.name()
    hours = _hours(reader) if reader.accept("RETAIN") else None
    dry_run = reader.accept("DRY", "RUN")
    reader.finish()
    return Vacuum(target, hours, dry_run)


def _isolation_level(reader: Reader) -> str:
    """One string or quoted name, or words up to a comma, READ ONLY, READ WRITE or the end."""
    first = reader.index
    texts: list[str] = []
    while not reader.ended() and not reader.sees(","):
        if texts and (reader.sees("READ", "ONLY") or reader.sees("READ", "WRITE")):
            break
        token = reader.peek()
        if token.kind not in ("word", "quoted", "string"):
            raise reader.syntax_error("expected an isolation level")
        texts.append(unquote(reader.source.shown(token)))
        reader.index += 1
    level = " ".join(" ".join(texts).replace("_", " ").split())
    if not level:
        raise reader.syntax_error("expected an isolation level")
    known = _LEVELS.get(folded(level).replace(" ", ""))
    if known is None:
        raise reader.unsupported(f"isolation level {level.upper()}", "use WRITE SERIALIZABLE (the default), SERIALIZABLE or SNAPSHOT", first)
    return known


def _option(reader: Reader) -> str:
    if reader.peek().word in ("SESSION", "GLOBAL", "LOCAL") and reader.peek(1).kind in ("word", "quoted") and reader.peek(1).word != "TO":
        reader.index += 1
    name = folded(reader.identifier("the name of a setting"))
    if reader.sees("."):
        raise reader.syntax_error("the name of a setting has one part")
    return name


def _value(reader: Reader) -> str:
    first = reader.index
    reader.index = reader.scan(lambda index: reader.tokens[index].word == ",")
    if reader.index == first or not reader.ended():
        raise reader.syntax_error("expected one value")
    parts = splice(reader.source, first, reader.index).parts
    if len(parts) != 1 or not isinstance(parts[0], str):
        raise reader.wrong("a setting cannot hold a past version of a table", index=first, hint="give the value itself")
    return parts[0]


def _sees_system_schema(reader: Reader) -> bool:
    """Whether a name comes next that only DuckDB knows: a system view, or one of its own."""
    return reader.peek(1).word == "." and folded(unquote(reader.source.shown(reader.peek()))) in SYSTEM_SCHEMAS


def _described(reader: Reader) -> Query | DescribeTable:
    if not _sees_system_schema(reader):
        return DescribeTable(*_table(reader))
    first = reader.index
    reader.name()
    reader.finish()
    return Query(Sql((f"DESCRIBE {plain(reader.source, first, reader.index, 'DESCRIBE')}",), (), reader.tokens[first].start))


def _table(reader: Reader) -> tuple[Name, TimeTravel | None]:
    """The name of a table, and the clause of time travel that may stand behind it."""
    start = reader.peek().start
    target = reader.name()
    for edit in reader.source.edits:
        if edit.start == start and isinstance(edit.part, TimeTravel):
            while not reader.ended() and reader.peek().start < edit.end:
                reader.index += 1
            reader.finish()
            return target, edit.part
    reader.finish()
    return target, None


def _tables(reader: Reader) -> ShowTables:
    schema = reader.identifier("the name of a schema") if reader.accept("FROM") else None
    reader.finish()
    return ShowTables(schema, False)


def _history(reader: Reader) -> DescribeHistory:
    target = None if reader.ended() or reader.sees("LIMIT") else reader.name()
    limit: int | str | None = None
    if reader.accept("LIMIT") and (limit := read_parameter(reader)) is None:
        shown = reader.source.shown(reader.peek()) if not reader.ended() else ""
        if not (shown.isascii() and shown.isdigit()):
            raise reader.syntax_error("expected a whole number")
        if len(shown) > LIMIT_DIGITS:
            raise reader.wrong(f"the LIMIT of DESCRIBE HISTORY has at most {LIMIT_DIGITS} digits", hint="leave LIMIT out for the whole history")
        limit = int(shown)
        reader.index += 1
    reader.finish()
    return DescribeHistory(target, limit)


def _hours(reader: Reader) -> float | str:
    parameter = read_parameter(reader)
    if parameter is not None:
        _expect_hours(reader)
        return parameter
    token = reader.peek()
    if token.kind != "number":
        raise reader.syntax_error("expected a number of hours, 0 or more")
    try:
        hours = float(reader.source.shown(token))
    except ValueError:  # digits that end with _ are a number for DuckDB's lexer
        raise reader.syntax_error("expected a number of hours, 0 or more") from None
    if hours > MOST_HOURS:
        raise reader.wrong(f"RETAIN takes at most {MOST_HOURS} hours", hint="a tag keeps a version for ever: CREATE TAG name AT VERSION n")
    reader.index += 1
    _expect_hours(reader)
    return hours


def _expect_hours(reader: Reader) -> None:
    if reader.accept_one("HOURS", "HOUR") is None:
        raise reader.syntax_error("expected HOURS")
