"""DuckDB's errors as ours: the class by the kind of error, the words in `wording`, the place in the user's text in `places`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import duckdb

from lakelite import errors
from lakelite.errors import Position
from lakelite.mapping import grammar, places
from lakelite.mapping.names import NO_NAMES, Names

if TYPE_CHECKING:
    from lakelite.mapping.words import Words

NOT_NULL_MARK = "lakelite: NOT NULL constraint failed: "  # how our own error() call is known
_CARRIED = re.compile(r"^[^{]*: (\{\"exception_type\":.*\})\s*\Z", re.DOTALL)
_PREFIX = re.compile(r"^([A-Za-z][A-Za-z-]*(?: [A-Za-z-]+){0,3}) (?:Error|Exception): ")
_KINDS: tuple[tuple[type[BaseException], type[errors.DatabaseError]], ...] = (
    (duckdb.InterruptException, errors.OperationalError),
    (duckdb.PermissionException, errors.OperationalError),
    (duckdb.SequenceException, errors.DataError),
    (duckdb.DependencyException, errors.ProgrammingError),
    (duckdb.FatalException, errors.InternalError),
    (duckdb.IntegrityError, errors.IntegrityError),
    (duckdb.DataError, errors.DataError),
    (duckdb.InvalidInputException, errors.DataError),
    (duckdb.NotSupportedError, errors.NotSupportedError),
    (duckdb.ProgrammingError, errors.ProgrammingError),
    (duckdb.InternalError, errors.InternalError),
    (duckdb.OperationalError, errors.OperationalError),
    (duckdb.Error, errors.OperationalError),
)
_BY_PREFIX: dict[str, type[duckdb.Error]] = {
    "interrupt": duckdb.InterruptException,
    "permission": duckdb.PermissionException,
    "sequence": duckdb.SequenceException,
    "dependency": duckdb.DependencyException,
    "fatal": duckdb.FatalException,
    "constraint": duckdb.ConstraintException,
    "conversion": duckdb.ConversionException,
    "out of range": duckdb.OutOfRangeException,
    "mismatch type": duckdb.TypeMismatchException,
    "invalid input": duckdb.InvalidInputException,
    "invalid type": duckdb.InvalidTypeException,
    "not implemented": duckdb.NotImplementedException,
    "parser": duckdb.ParserException,
    "syntax": duckdb.SyntaxException,
    "binder": duckdb.BinderException,
    "catalog": duckdb.CatalogException,
    "internal": duckdb.InternalException,
    "out of memory": duckdb.OutOfMemoryException,
    "io": duckdb.IOException,
    "http": duckdb.HTTPException,
    "connection": duckdb.ConnectionException,
    "serialization": duckdb.SerializationException,
    "transactioncontext": duckdb.TransactionException,
}


def carried(error: BaseException) -> duckdb.Error | None:
    """DuckDB's error where another library hands its message on as one of its own (an Arrow stream does); None if it does not."""
    found = _PREFIX.match(str(error))
    kind = _BY_PREFIX.get(found[1].lower()) if found else None
    return kind(str(error)) if kind else None


def engine_error(error: duckdb.Error, text: str, names: Names = NO_NAMES) -> errors.DatabaseError:
    """Our error for DuckDB's. `text`: the statement as the user wrote it; `names`: what it could have meant."""
    from lakelite.mapping.wording import worded  # patterns that take long to compile

    theirs = type(error)
    own = grammar.parsed(text) if isinstance(error, duckdb.ParserException) else None
    message, quoted = places.quoted_line(str(own or error))
    theirs, bare = _within(theirs, _PREFIX.sub("", message))
    if quoted and own is None and grammar.ran_out(quoted, text):
        bare, quoted = grammar.TOO_EARLY, None
    if NOT_NULL_MARK in bare:
        theirs, bare = duckdb.ConstraintException, f"NOT NULL constraint failed: {bare.split(NOT_NULL_MARK, 1)[1].strip()}"
    at = places.place(text, quoted) if quoted else None
    words = worded(theirs, bare, text, names, at)
    kind = words.kind or next(ours for known, ours in _KINDS if issubclass(theirs, known))
    return kind(words.message, hint=words.hint, position=_position(at, words, text, names))


def _within(kind: type[duckdb.Error], message: str) -> tuple[type[duckdb.Error], str]:
    """The error that another one of DuckDB's carries as JSON, where a thread in the background came upon it; else the same."""
    found = _CARRIED.search(message) if issubclass(kind, duckdb.OperationalError) else None
    if found is None:
        return kind, message
    try:
        told = json.loads(found[1])
        return _BY_PREFIX.get(told["exception_type"].lower(), kind), told["exception_message"]
    except (ValueError, KeyError):  # it only looks like one
        return kind, message


def foreign_file_error(error: duckdb.Error, path: str, own: str) -> errors.DatabaseError:
    """Our error where DuckDB cannot read a file of somebody else's, which is called `path` by them and `own` by DuckDB."""
    message, _ = places.quoted_line(str(error))
    reason = _PREFIX.sub("", message).replace(own, path).strip()
    return errors.DataError(f"{path} is no Parquet file that can be read: {reason}", hint="check the path and how the file was made")


def _position(at: Position | None, words: Words, text: str, names: Names) -> Position | None:
    """DuckDB's place, unless what the message names stands elsewhere."""
    if at is not None and (words.name is None or places.names_at(at, words.name)):
        return at
    if names.reads_view(text):
        return None
    return places.only_place(text, words.thing or words.name or "", item=words.is_item)
