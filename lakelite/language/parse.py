"""SQL text → typed statements. The only way in: `parse_script`, or `iter_statements` to have each parsed when it is asked for.

Owns: which statements there are, and the queries. Promises: an error of lakelite for any text that is no statement, with its
place; a statement that DuckDB runs keeps the user's own characters. Never: input or output, or a look at the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from lakelite.errors import NotSupportedError
from lakelite.language import alter, branching, changes, control, definitions, merging, transfer, upkeep, views
from lakelite.language.analyse import is_volatile, mentions, uses_clock
from lakelite.language.reader import CHANGES, QUERY_HEADS, Reader, refuse_changes_in_ctes, skip_with
from lakelite.language.refusals import BY_FIRST_WORDS
from lakelite.language.source import Source, read_source, splice, splice_text, syntax_error, unsupported
from lakelite.language.statements import Append, ExplainCommit, Name, Operation, Query, Sql, Statement
from lakelite.language.tokens import Piece, is_complete, split_script
from lakelite.language.travel import read_restore, with_history
from lakelite.mapping.names import did_you_mean

__all__ = [
    "around_target",
    "is_complete",
    "is_volatile",
    "iter_statements",
    "last_operation",
    "mentions",
    "parse_append",
    "parse_piece",
    "parse_script",
    "parse_view",
    "split_script",
    "uses_clock",
]

_READERS: dict[str, Callable[[Reader], Operation]] = {
    "INSERT": lambda reader: changes.read_insert(reader, None),
    "DELETE": lambda reader: changes.read_delete(reader, None),
    "UPDATE": lambda reader: changes.read_update(reader, None),
    "MERGE": lambda reader: branching.read_merge(reader) if reader.sees("BRANCH") else merging.read_merge(reader.source, reader.index, None),
    "TRUNCATE": changes.read_truncate,
    "COPY": changes.read_copy,
    "CREATE": lambda reader: branching.read_create(reader) if reader.peek().word in branching.KINDS else definitions.read_create(reader),
    "DROP": lambda reader: branching.read_drop(reader) if reader.peek().word in branching.KINDS else definitions.read_drop(reader),
    "ALTER": lambda reader: views.read_alter_view(reader) if reader.sees("VIEW") else alter.read_alter(reader),
    "COMMENT": views.read_comment,
    "BEGIN": control.read_begin,
    "COMMIT": control.read_commit,
    "END": control.read_commit,
    "ROLLBACK": control.read_rollback,
    "ABORT": control.read_rollback,
    "SAVEPOINT": control.read_savepoint,
    "RELEASE": control.read_release,
    "SET": control.read_set,
    "RESET": control.read_reset,
    "SHOW": lambda reader: branching.read_show(reader) if branching.is_show(reader) else control.read_show(reader),
    "USE": branching.read_use,
    "DESCRIBE": control.read_describe,
    "DESC": control.read_describe,
    "VACUUM": control.read_vacuum,
    "RESTORE": read_restore,
    "OPTIMIZE": upkeep.read_optimize,
    "CHECK": upkeep.read_check,
    "EXPORT": transfer.read_export,
    "IMPORT": transfer.read_import,
    "BACKUP": transfer.read_backup,
}
_REFUSED_FIRST = frozenset(words[0] for words, _, _ in BY_FIRST_WORDS)
_FIRST_WORDS = sorted((set(_READERS) | _REFUSED_FIRST | QUERY_HEADS | {"START", "EXPLAIN"}) - {"("})


def parse_script(text: str, named: frozenset[str] | None = None) -> tuple[Statement, ...]:
    """All statements of a script. `named`: the parameters' names if the caller passed a mapping, for `:name`.

    Raises ProgrammingError for what cannot be read and NotSupportedError for what is refused by name, for the first such statement.
    """
    return tuple(iter_statements(text, named))


def iter_statements(text: str, named: frozenset[str] | None = None) -> Iterator[Statement]:
    """As `parse_script`, but each statement is parsed when it is asked for: the ones before a broken one can be run."""
    for piece in split_script(text):
        yield parse_piece(piece, named)


def parse_piece(piece: Piece, named: frozenset[str] | None = None) -> Statement:
    """One statement of `split_script`."""
    source = read_source(piece, named)
    _refuse_by_name(source)
    source = with_history(source)
    operation = _operation(source)
    refuse_changes_in_ctes(source)
    return Statement(piece.text, piece.start, operation, source.parameters)


def last_operation(text: str, named: frozenset[str] | None = None) -> Operation | None:
    """What the last statement of a script is; None: there is no statement."""
    pieces = list(split_script(text))
    return parse_piece(pieces[-1], named).operation if pieces else None


def parse_append(name: str, rows: Any) -> Statement:
    """What `con.append` runs, and how history tells of it. `name`: of a table, as it is written in SQL; ProgrammingError if it is none."""
    pieces = list(split_script(f"append to {name}"))
    source = read_source(pieces[0], None)
    reader = Reader(source, 2)
    target = reader.name()
    reader.finish()
    if len(pieces) > 1:
        raise reader.syntax_error("expected the name of a table")
    return Statement(pieces[0].text, 0, Append(target, rows), ())


@lru_cache(maxsize=256)
def parse_view(query: str) -> Sql:
    """The query of a view as SQL with holes where it reads history."""
    (piece,) = split_script(query)
    source = with_history(read_source(piece, None))
    return splice(source, 0, len(source.tokens))


def around_target(text: str, offset: int, named: frozenset[str]) -> tuple[Sql, Sql]:
    """What stands before and behind the name of a statement's target, which begins at `offset`. `named`: the names of its parameters."""
    (piece,) = split_script(text)
    source = with_history(read_source(piece, named))
    reader = Reader(source, next(i for i, token in enumerate(source.tokens) if token.start == offset))
    reader.name()
    end = source.tokens[reader.index - 1].end
    return splice_text(source, 0, offset), splice_text(source, end, source.tokens[-1].end)


def _operation(source: Source) -> Operation:
    word = source.tokens[0].word
    reader = Reader(source, 1)
    if word == "WITH":
        return _with(source)
    if word == "EXPLAIN":
        return _explain(source)
    if word == "START":
        reader.expect("TRANSACTION")
        return control.read_begin(reader)
    if (read := _READERS.get(word)) is not None:
        return read(reader)
    if word in QUERY_HEADS:
        return Query(splice(source, 0, len(source.tokens)), _counted(source))
    otherwise = "a statement begins with a word such as SELECT"
    raise syntax_error(source.text, source.tokens[0], did_you_mean(word, _FIRST_WORDS, otherwise) if source.tokens[0].kind == "word" else otherwise)


def _with(source: Source) -> Operation:
    """WITH in front of a query, which DuckDB runs as it is, or of a change."""
    verb = skip_with(source, 0)
    if verb is None or (word := source.tokens[verb].word) not in CHANGES:
        return Query(splice(source, 0, len(source.tokens)))
    ctes: Sql = splice(source, 0, verb)
    reader = Reader(source, verb + 1)
    if word == "INSERT":
        return changes.read_insert(reader, ctes)
    if word == "DELETE":
        return changes.read_delete(reader, ctes)
    if word == "UPDATE":
        return changes.read_update(reader, ctes)
    return merging.read_merge(source, reader.index, ctes)


def _explain(source: Source) -> Query | ExplainCommit:
    """EXPLAIN COMMIT, and EXPLAIN [ANALYZE] [(options)] query."""
    reader = Reader(source, 1)
    if reader.accept("COMMIT"):
        reader.finish()
        return ExplainCommit()
    reader.accept_one("ANALYZE", "ANALYSE")
    options = reader.sees("(") and reader.peek(1).word not in QUERY_HEADS
    index = reader.after_bracket() if options else reader.index
    verb = skip_with(source, index) if index < len(source.tokens) and source.tokens[index].word == "WITH" else index
    if verb is not None and verb < len(source.tokens):
        word = source.tokens[verb].word
        if word in CHANGES or (word in _READERS and word not in QUERY_HEADS) or (word in _REFUSED_FIRST and word not in QUERY_HEADS):
            raise _refused(source, verb, f"EXPLAIN {word}", "EXPLAIN takes a query: explain the SELECT with the same WHERE")
        if word in QUERY_HEADS:
            return Query(splice(source, 0, len(source.tokens)))
    reader.index = index if verb is None else verb
    raise reader.syntax_error("expected a query")


def _counted(source: Source) -> Name | None:
    """The table of `SELECT count(*) FROM table`, if the statement is exactly that."""
    tokens = source.tokens
    words = [token.word for token in tokens[:6]]
    if len(tokens) not in (7, 9) or words != ["SELECT", "COUNT", "(", "*", ")", "FROM"]:
        return None
    reader = Reader(source, 6)
    if not reader.sees_identifier() or (len(tokens) == 9 and reader.peek(1).word != "."):
        return None
    if reader.peek(2).kind not in ("end", "word", "quoted"):
        return None
    return reader.name()


def _refuse_by_name(source: Source) -> None:
    tokens = source.tokens
    if tokens[0].word not in _REFUSED_FIRST:
        return
    for words, what, hint in BY_FIRST_WORDS:
        if len(tokens) >= len(words) and all(token.word == word for token, word in zip(tokens, words, strict=False)):
            raise _refused(source, 0, what, hint)


def _refused(source: Source, index: int, what: str, hint: str | None = None) -> NotSupportedError:
    known = {name: text for _, name, text in BY_FIRST_WORDS}
    return unsupported(source.text, source.tokens[index].start, what, hint or known.get(what))
