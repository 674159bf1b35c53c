"""Where the source of a MERGE ends, and by which names its rows are known: a table, query, VALUES, file or function, or a join of such.
And which such there are among the sources of an UPDATE or DELETE, a list of these.

    source  = item { [kind] JOIN item [ON condition | USING (columns)] }
    item    = ( "(" query ")" | "(" source ")" | VALUES … | 'file' | function | table [AT …] ) [[AS] alias [(columns)]] [TABLESAMPLE …]

What is inside stays the user's text. Promises: an error with its place for what cannot be the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakelite.errors import ProgrammingError
from lakelite.language.reader import QUERY_HEADS, Reader
from lakelite.language.source import splice
from lakelite.language.statements import Name, SourceItem, Sources, Sql
from lakelite.language.tokens import unquote
from lakelite.records import dataclass

JOINED = "_lake_joined"
"""What the rows of a join without an alias are called."""
_KINDS = frozenset("INNER LEFT RIGHT FULL OUTER CROSS NATURAL SEMI ANTI ASOF POSITIONAL".split())
_BEHIND_A_QUERY = frozenset(") UNION EXCEPT INTERSECT ORDER LIMIT OFFSET".split())
_WITHOUT_CONDITION = frozenset("CROSS NATURAL POSITIONAL".split())


@dataclass(frozen=True, slots=True)
class _Known:
    """A name of rows, whether that is an alias, and from which token up to which they stand."""

    name: Name
    is_aliased: bool
    place: tuple[int, int] | None = None


def read_source(reader: Reader) -> tuple[Sql, Name, bool, tuple[Name, ...]]:
    """The source, the name by which its rows are known, and whether that is an alias; or, of a join without an alias, those of its tables."""
    first = reader.index
    known = _joined(reader)
    if not _sees_condition(reader):
        raise reader.syntax_error("expected ON condition, or USING (columns)")
    source = splice(reader.source, first, reader.index)
    if len(known) == 1:
        return source, known[0].name, known[0].is_aliased, ()
    return source, Name(None, JOINED, known[0].name.offset), True, tuple(one.name for one in known)


def read_sources(reader: Reader) -> Sources:
    """The sources behind FROM or USING: up to WHERE or RETURNING. DuckDB binds them as they are, and says what is wrong in them."""
    first = reader.index
    reader.index = reader.scan(lambda index: reader.is_clause(index, "WHERE", "RETURNING"))
    if reader.index == first:
        raise reader.syntax_error("expected a table, a query in parentheses or a join")
    within = Reader(replace(reader.source, tokens=reader.tokens[: reader.index]), first)
    return Sources(splice(reader.source, first, reader.index), _items(within))


def _items(reader: Reader) -> tuple[SourceItem, ...]:
    """Each of a list of sources that ends the text; none where anything in it is not understood."""
    try:
        known = _joined(reader)
        while reader.accept(","):
            known += _joined(reader)
        reader.finish()
    except ProgrammingError:
        return ()
    return tuple(SourceItem(one.name.name, splice(reader.source, *one.place)) for one in known if one.place is not None)


def _sees_condition(reader: Reader) -> bool:
    return reader.sees("ON") or reader.sees("USING", "(")


def _joined(reader: Reader) -> list[_Known]:
    """Steps over a table and what is joined with it."""
    known = _item(reader)
    while (kinds := _join_word(reader)) is not None:
        more = _item(reader)
        known += [] if {"SEMI", "ANTI"} & set(kinds) else more  # of which nothing is in the result
        if not _WITHOUT_CONDITION & set(kinds) and _sees_condition(reader):
            _skip_condition(reader)
    return known


def _join_word(reader: Reader) -> Sequence[str] | None:
    """Steps over `[kind …] JOIN`; the kinds. None: there is none."""
    first = reader.index
    kinds: list[str] = []
    while (kind := reader.accept_one(*_KINDS)) is not None:
        kinds.append(kind)
    if reader.accept("JOIN"):
        return kinds
    reader.index = first
    return None


def _skip_condition(reader: Reader) -> None:
    if reader.accept("USING"):
        reader.columns()
        return
    reader.expect("ON")
    first = reader.index
    reader.index = reader.scan(lambda index: index > first and _ends(reader, index))


def _ends(reader: Reader, index: int) -> bool:
    """Whether the token is behind a condition or a sample."""
    return reader.tokens[index].word in ("ON", "USING", "WHEN", ")", ",") or _begins_join(reader, index)


def _begins_join(reader: Reader, index: int) -> bool:
    while index < len(reader.tokens) and reader.tokens[index].word in _KINDS:
        index += 1
    return index < len(reader.tokens) and reader.tokens[index].word == "JOIN"


def _item(reader: Reader) -> list[_Known]:
    first = reader.index
    known = _relation(reader)
    if reader.accept("AS") or reader.sees_identifier():
        offset = known[0].name.offset
        known = [_Known(Name(None, reader.identifier("an alias"), offset), True)]
        if reader.sees("("):
            reader.columns()
    if reader.accept("TABLESAMPLE"):
        _skip_sample(reader)
    return [replace(one, place=(first, reader.index)) if one.place is None else one for one in known]


def _skip_sample(reader: Reader) -> None:
    """Behind TABLESAMPLE: `10%`, `10 PERCENT (system)`, `reservoir(50 ROWS) REPEATABLE (7)` and the like."""
    reader.index = reader.scan(lambda index: _ends(reader, index))


def _relation(reader: Reader) -> list[_Known]:
    """Steps over one table, or a join in brackets; the names that DuckDB gives to its rows."""
    token = reader.peek()
    if reader.accept("LATERAL") or (reader.sees("(") and _is_query(reader, reader.index)):
        reader.index = reader.after_bracket()
        return [_Known(Name(None, "unnamed_subquery", token.start), False)]
    if reader.accept("("):
        known = _joined(reader)
        reader.expect(")")
        return known
    if reader.accept("VALUES"):
        while reader.sees("("):
            reader.index = reader.after_bracket()
            reader.accept(",")
        return [_Known(Name(None, "valueslist", token.start), False)]
    if token.kind == "string":
        reader.index += 1
        file = unquote(reader.source.shown(token)).replace("\\", "/").rpartition("/")[2]
        return [_Known(Name(None, file.rpartition(".")[0] or file, token.start), False)]
    return [_Known(_table_or_function(reader), False)]


def _is_query(reader: Reader, index: int) -> bool:
    """Whether the bracket at `index` holds a query, perhaps in brackets of its own, and not a join."""
    closing, tokens = reader.source.closing, reader.tokens
    if tokens[index + 1].word != "(":
        return tokens[index + 1].word in QUERY_HEADS
    return tokens[closing[index + 1] + 1].word in _BEHIND_A_QUERY and _is_query(reader, index + 1)


def _table_or_function(reader: Reader) -> Name:
    first = reader.index
    name = reader.name()
    if reader.sees("("):
        reader.index = reader.after_bracket()
        return Name(None, name.name, name.offset)
    edit = next((edit for edit in reader.source.edits if edit.start == reader.tokens[first].start), None)
    while edit is not None and not reader.ended() and reader.peek().start < edit.end:
        reader.index += 1
    return name
