"""The frames of CREATE and DROP for schemas and tables; views.py has those of views. Column lists stay text: DuckDB reads them."""

from __future__ import annotations

from dataclasses import replace

from lakelite.language import views
from lakelite.language.reader import Reader
from lakelite.language.refusals import CREATED
from lakelite.language.source import plain
from lakelite.language.statements import (
    CreateSchema,
    CreateTable,
    CreateTableAs,
    CreateTableLike,
    CreateView,
    DropSchema,
    DropTable,
    DropView,
    Name,
    Tuning,
)
from lakelite.language.tokens import folded
from lakelite.language.tuning import read_tuning
from lakelite.model import DATABASE

_OTHER_VIEWS = {
    "RECURSIVE": "write WITH RECURSIVE inside the query of a view",
    "MATERIALIZED": "create a table with CREATE TABLE … AS",
}


def read_create(reader: Reader) -> CreateSchema | CreateTable | CreateTableAs | CreateTableLike | CreateView:
    """Behind CREATE."""
    or_replace = reader.accept("OR", "REPLACE")
    if reader.peek().word in ("TEMP", "TEMPORARY"):
        return _create_temporary(reader, or_replace)
    word = reader.peek().word
    if word == "UNLOGGED":
        raise reader.unsupported(f"CREATE {word} {reader.peek(1).word or 'TABLE'}", "a temporary table is not written to disk: CREATE TEMP TABLE")
    if word in ("RECURSIVE", "MATERIALIZED") and reader.peek(1).word == "VIEW":
        raise reader.unsupported(f"CREATE {word} VIEW", _OTHER_VIEWS[word])
    if word in ("UNIQUE", "PERSISTENT") and reader.peek(1).word in CREATED:
        if (both := f"{word} {reader.peek(1).word}") in CREATED:
            raise reader.unsupported(f"CREATE {both}", CREATED[both])
        reader.index += 1
        word = reader.peek().word
    if word in CREATED:
        raise reader.unsupported(f"CREATE {word}", CREATED[word])
    if reader.accept("VIEW"):
        return views.read_create_view(reader, or_replace)
    if reader.accept("SCHEMA"):
        if or_replace:
            raise reader.unsupported("CREATE OR REPLACE SCHEMA", "use CREATE SCHEMA IF NOT EXISTS", 0)
        return _create_schema(reader)
    if not reader.accept("TABLE"):
        raise reader.syntax_error("expected TABLE, VIEW or SCHEMA")
    return _create_table(reader, or_replace)


def _create_temporary(reader: Reader, or_replace: bool) -> CreateTable | CreateTableAs | CreateView:
    """TEMP TABLE and TEMP VIEW: what DuckDB has of them."""
    word = reader.accept_one("TEMP", "TEMPORARY")
    kind = reader.accept_one("TABLE", "VIEW")
    if kind is None:
        if reader.peek().word in (*CREATED, "RECURSIVE", "MATERIALIZED"):
            raise reader.unsupported(f"CREATE {word} {reader.peek().word}", CREATED.get(reader.peek().word) or _OTHER_VIEWS[reader.peek().word])
        raise reader.syntax_error("expected TABLE or VIEW")
    first = reader.scan(lambda index: reader.tokens[index].word in ("PARTITIONED", "CLUSTERED", "SORTED") or _begins_options(reader, index))
    if kind == "TABLE" and first < len(reader.tokens):
        raise reader.unsupported(f"{reader.tokens[first].word} of a temporary table", "leave it out: a temporary table has no files", first)
    made = views.read_create_view(reader, or_replace) if kind == "VIEW" else _create_table(reader, or_replace)
    if isinstance(made, CreateTableLike):
        raise reader.unsupported("CREATE TEMP TABLE … (LIKE …)", "use CREATE TEMP TABLE new AS FROM old WITH NO DATA", 0)
    return replace(made, temporary=True)


def _begins_options(reader: Reader, index: int) -> bool:
    return [token.word for token in reader.tokens[index : index + 2]] == ["WITH", "("]


def read_drop(reader: Reader) -> DropSchema | DropTable | DropView:
    """Behind DROP."""
    word = reader.peek().word
    if word in CREATED:
        raise reader.unsupported(f"DROP {word}", "there is none in a lake")
    kind = reader.accept_one("TABLE", "VIEW", "SCHEMA")
    if kind is None:
        raise reader.syntax_error("expected TABLE, VIEW or SCHEMA")
    if_exists = reader.accept("IF", "EXISTS")
    if kind == "SCHEMA":
        return _drop_schema(reader, if_exists)
    targets = _dropped(reader, kind)
    return DropTable(targets, if_exists) if kind == "TABLE" else DropView(targets, if_exists)


def _create_schema(reader: Reader) -> CreateSchema:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = _schema(reader)
    reader.finish()
    return CreateSchema(name, if_not_exists)


def _create_table(reader: Reader, or_replace: bool) -> CreateTable | CreateTableAs | CreateTableLike:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise reader.wrong("CREATE TABLE takes OR REPLACE or IF NOT EXISTS, not both", index=0, hint="leave one of them out")
    target = reader.name()
    if not reader.sees("("):
        return _create_table_as(reader, target, or_replace, if_not_exists, None, _tuning(reader))
    first, behind = reader.index, reader.after_bracket()
    if reader.sees("(", "LIKE"):
        return _create_table_like(reader, target, or_replace, if_not_exists)
    reader.index = behind
    tuning = _tuning(reader)
    if reader.sees("AS"):
        back, reader.index = reader.index, first
        columns = reader.columns()
        reader.index = back
        return _create_table_as(reader, target, or_replace, if_not_exists, columns, tuning)
    reader.accept("ON", "COMMIT", "PRESERVE", "ROWS")
    if reader.sees("ON", "COMMIT"):
        raise reader.unsupported("ON COMMIT other than PRESERVE ROWS", "drop the table when it is no longer needed")
    reader.finish()
    return CreateTable(target, or_replace, if_not_exists, plain(reader.source, first, behind, "a list of columns"), tuning)


def _create_table_like(reader: Reader, target: Name, or_replace: bool, if_not_exists: bool) -> CreateTableLike:
    reader.expect("(", "LIKE")
    like = reader.name()
    whole = reader.accept("INCLUDING", "ALL")
    if reader.peek().word in ("INCLUDING", "EXCLUDING", ","):
        raise reader.unsupported(f"LIKE … {reader.peek().word}", "use (LIKE old), or (LIKE old INCLUDING ALL) for defaults and comments too")
    reader.expect(")")
    reader.finish()
    return CreateTableLike(target, or_replace, if_not_exists, like, whole)


def _create_table_as(
    reader: Reader, target: Name, or_replace: bool, if_not_exists: bool, columns: tuple[str, ...] | None, tuning: Tuning
) -> CreateTableAs:
    reader.expect("AS")
    words = [token.word for token in reader.tokens[-3:]]
    no_data = words == ["WITH", "NO", "DATA"]
    stop = len(reader.tokens) - (3 if no_data else 2 if words[1:] == ["WITH", "DATA"] else 0)
    query = reader.query(stop)
    return CreateTableAs(target, or_replace, if_not_exists, columns, query, not no_data, tuning)


def _tuning(reader: Reader) -> Tuning:
    """What stands between the columns and the query; clauses of other systems are refused by name."""
    found = read_tuning(reader)
    if reader.sees("LIKE"):
        raise reader.unsupported("CREATE TABLE … LIKE without parentheses", "use CREATE TABLE new (LIKE old)")
    if reader.peek().word in ("PARTITION", "SORTED", "CLUSTERED"):
        raise reader.unsupported(f"{reader.peek().word} BY", "use PARTITIONED BY (…), or OPTIMIZE t ZORDER BY (…)")
    return found


def _drop_schema(reader: Reader, if_exists: bool) -> DropSchema:
    name = _schema(reader)
    if reader.sees(","):
        raise reader.unsupported("DROP SCHEMA of several schemas", "drop them one by one")
    cascade = reader.accept_one("CASCADE", "RESTRICT") == "CASCADE"
    reader.finish()
    return DropSchema(name, if_exists, cascade)


def _dropped(reader: Reader, kind: str) -> tuple[Name, ...]:
    targets = [reader.name()]
    while reader.accept(","):
        targets.append(reader.name())
    if reader.sees("CASCADE"):
        raise reader.unsupported(f"DROP {kind} … CASCADE", "leave CASCADE out: views that read it stay, and are an error when they are read")
    reader.accept("RESTRICT")
    reader.finish()
    return tuple(targets)


def _schema(reader: Reader) -> str:
    name = reader.identifier("the name of a schema")
    if folded(name) == DATABASE and reader.accept("."):
        name = reader.identifier("the name of a schema")
    if reader.sees("."):
        raise reader.wrong("the name of a schema has one part", hint="a schema stands in no other; a name with a dot inside stands in double quotes")
    return name
