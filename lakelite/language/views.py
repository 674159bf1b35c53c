"""The frames of CREATE VIEW and ALTER VIEW, and of COMMENT ON. The query of a view stays text: DuckDB reads it whenever the view is used."""

from __future__ import annotations

from lakelite.language.reader import Reader
from lakelite.language.statements import CommentOn, CreateView, Name, RenameView
from lakelite.language.tokens import unquote

_NO_COMMENT = "comments are for tables, views and columns"


def read_create_view(reader: Reader, or_replace: bool) -> CreateView:
    """Behind CREATE [OR REPLACE] VIEW: [IF NOT EXISTS] name [(columns)] AS query."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise reader.wrong("CREATE VIEW takes OR REPLACE or IF NOT EXISTS, not both", index=0, hint="leave one of them out")
    target = reader.name()
    names = reader.columns() if reader.sees("(") else ()
    reader.expect("AS")
    start = reader.peek().start
    sql = reader.query(len(reader.tokens))
    _refuse_parameters(reader)
    return CreateView(target, or_replace, if_not_exists, names, reader.source.text[start : reader.tokens[-1].end], sql)


def _refuse_parameters(reader: Reader) -> None:
    if reader.source.parameters:
        index = next((i for i, token in enumerate(reader.tokens) if token.kind == "param"), None)
        raise reader.wrong("a view cannot hold a parameter", "write the value into the query", index)


def read_alter_view(reader: Reader) -> RenameView:
    """Behind ALTER: VIEW [IF EXISTS] v RENAME TO name."""
    reader.expect("VIEW")
    if_exists = reader.accept("IF", "EXISTS")
    target = reader.name()
    if not reader.accept("RENAME", "TO"):
        raise reader.unsupported("ALTER VIEW other than RENAME TO", "CREATE OR REPLACE VIEW gives it another query")
    new_name = reader.identifier("the new name of the view")
    if reader.sees("."):
        raise reader.wrong("a view stays in its schema: the new name has one part", hint="leave the schema out: RENAME TO name")
    reader.finish()
    return RenameView(target, if_exists, new_name)


def read_comment(reader: Reader) -> CommentOn:
    """Behind COMMENT: ON TABLE|VIEW|COLUMN name IS 'text'|NULL."""
    reader.expect("ON")
    kind = reader.accept_one("TABLE", "VIEW", "COLUMN")
    if kind is None and reader.peek(1).kind in ("word", "quoted"):
        raise reader.unsupported(f"COMMENT ON {reader.peek().word or 'that'}", _NO_COMMENT)
    if kind is None:
        raise reader.syntax_error("expected TABLE, VIEW or COLUMN")
    target, column, offset = _column(reader) if kind == "COLUMN" else (reader.name(), None, 0)
    reader.expect("IS")
    token = reader.peek()
    if not (reader.sees("NULL") or token.kind == "string"):
        raise reader.syntax_error("expected a string, or NULL")
    reader.index += 1
    reader.finish()
    return CommentOn(target, column, reader.source.shown(token), offset)


def _column(reader: Reader) -> tuple[Name, str, int]:
    """`table.column` or `schema.table.column`."""
    first = reader.peek()
    parts = [reader.identifier("the name of a table")]
    while reader.accept("."):
        if reader.peek().kind not in ("word", "quoted"):
            raise reader.syntax_error("expected the name of a column")
        offset = reader.peek().start
        parts.append(unquote(reader.source.shown(reader.peek())))
        reader.index += 1
    if len(parts) not in (2, 3):
        hint = "such as COMMENT ON COLUMN flights.carrier IS 'the airline'"
        raise reader.wrong("a column is named with its table: table.column or schema.table.column", hint, reader.tokens.index(first))
    return Name(parts[0] if len(parts) == 3 else None, parts[-2], first.start), parts[-1], offset
