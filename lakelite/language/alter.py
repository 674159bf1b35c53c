"""ALTER TABLE: its frame, and what it is about. The change itself stays text: DuckDB reads it.

Promises: an error that shows its place for all it cannot read; foreign keys are refused by name. Never: input or output, or a look at the catalog.
"""

from __future__ import annotations

from lakelite.language.constraints import FIRST_WORDS
from lakelite.language.reader import Reader
from lakelite.language.source import plain
from lakelite.language.statements import Alteration, AlterTable, TuneTable
from lakelite.language.tuning import read_tune

_LATER = "add the column without it, then ALTER TABLE t ADD CONSTRAINT name …"
_CHANGES = "expected ADD, DROP, RENAME, ALTER COLUMN, SET or RESET"


def read_alter(reader: Reader) -> AlterTable | TuneTable:
    """Behind ALTER."""
    if not reader.accept("TABLE"):
        raise reader.syntax_error("expected TABLE")
    if_exists = reader.accept("IF", "EXISTS")
    target = reader.name()
    if reader.peek().word in ("SET", "RESET"):
        return read_tune(reader, target, if_exists)
    first = reader.index
    what, path, new_name, using = _change(reader)
    if reader.sees(","):
        raise reader.unsupported("ALTER TABLE with several changes", "write one ALTER TABLE for each, in one transaction")
    reader.finish()
    return AlterTable(target, if_exists, what, path, plain(reader.source, first, reader.index, "ALTER TABLE"), new_name, using)


_Change = tuple[Alteration, tuple[str, ...], str | None, str | None]


def _change(reader: Reader) -> _Change:
    match reader.accept_one("ADD", "DROP", "RENAME", "ALTER"):
        case "ADD":
            return _add(reader)
        case "DROP":
            return _drop(reader)
        case "RENAME":
            return _rename(reader)
        case "ALTER":
            return _alter(reader)
    raise reader.syntax_error(_CHANGES)


def _add(reader: Reader) -> _Change:
    if reader.sees("CONSTRAINT") or (reader.peek().word in FIRST_WORDS and reader.peek(1).word in ("KEY", "(")):
        return _add_constraint(reader)
    reader.accept("COLUMN")
    reader.accept("IF", "NOT", "EXISTS")
    path = _path(reader)
    if reader.ended():
        raise reader.syntax_error("expected the type of the column")
    refused = reader.scan(lambda index: reader.tokens[index].word in FIRST_WORDS | {"GENERATED", "AS"})
    if refused < len(reader.tokens):
        word = reader.tokens[refused].word
        if word in FIRST_WORDS:
            raise reader.unsupported(f"{word} of a column that is added", _LATER, refused)
        raise reader.unsupported("a generated column", "compute the value in the INSERT, or in the query", refused)
    reader.index = reader.scan(lambda index: reader.tokens[index].word == ",")
    return "add", path, None, None


def _add_constraint(reader: Reader) -> _Change:
    """[CONSTRAINT name] and the constraint, whose text DuckDB reads."""
    name = reader.identifier("the name of the constraint") if reader.accept("CONSTRAINT") else None
    if reader.peek().word not in FIRST_WORDS:
        raise reader.syntax_error("expected CHECK, PRIMARY KEY or UNIQUE")
    if reader.peek().word in ("FOREIGN", "REFERENCES"):
        raise reader.unsupported("FOREIGN KEY", "look for rows without their partner with a query (ANTI JOIN), in the transaction that writes them")
    first = reader.index
    reader.index = reader.scan(lambda index: reader.tokens[index].word == ",")
    return "add constraint", (), name, plain(reader.source, first, reader.index, "a constraint")


def _drop(reader: Reader) -> _Change:
    if reader.accept("CONSTRAINT"):
        what: Alteration = "drop constraint if exists" if reader.accept("IF", "EXISTS") else "drop constraint"
        name = reader.identifier("the name of a constraint")
        reader.accept_one("RESTRICT", "CASCADE")
        return what, (), name, None
    reader.accept("COLUMN")
    reader.accept("IF", "EXISTS")
    path = _path(reader)
    reader.accept_one("RESTRICT", "CASCADE")
    return "drop", path, None, None


def _rename(reader: Reader) -> _Change:
    if reader.accept("TO"):
        name = reader.identifier("the new name of the table")
        if reader.sees("."):
            raise reader.wrong("a table stays in its schema: the new name has one part", hint="leave the schema out: RENAME TO name")
        return "rename table", (), name, None
    reader.accept("COLUMN")
    path = _path(reader)
    reader.expect("TO")
    return "rename", path, reader.identifier("the new name of the column"), None


def _alter(reader: Reader) -> _Change:
    reader.accept("COLUMN")
    path = _path(reader)
    if reader.accept("SET", "DEFAULT"):
        if reader.ended():
            raise reader.syntax_error("expected an expression")
        reader.index = reader.scan(lambda index: reader.tokens[index].word == ",")
        return "default", path, None, None
    if reader.accept("DROP", "DEFAULT"):
        return "default", path, None, None
    if reader.accept("SET", "NOT", "NULL") or reader.accept("DROP", "NOT", "NULL"):
        return "not null", path, None, None
    if reader.accept("SET", "DATA", "TYPE") or reader.accept("SET", "TYPE") or reader.accept("TYPE"):
        return "type", path, None, _using(reader)
    raise reader.syntax_error("expected TYPE, SET DEFAULT, DROP DEFAULT, SET NOT NULL or DROP NOT NULL")


def _using(reader: Reader) -> str | None:
    """Steps over the type; the expression behind USING."""
    first = reader.index
    reader.index = reader.scan(lambda index: reader.tokens[index].word in ("USING", ","))
    if not reader.accept("USING"):
        if reader.index == first:
            raise reader.syntax_error("expected a type")
        return None
    start = reader.index
    reader.index = reader.scan(lambda index: reader.tokens[index].word == ",")
    if reader.index == start:
        raise reader.syntax_error("expected an expression")
    return plain(reader.source, start, reader.index, "USING")


def _path(reader: Reader) -> tuple[str, ...]:
    """A column, or a field inside of one: `c`, `s.x`, `list.element.x`."""
    parts = [reader.identifier("the name of a column")]
    while reader.accept("."):
        parts.append(reader.identifier("the name of a field"))
    return tuple(parts)
