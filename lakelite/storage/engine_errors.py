"""The one place that maps DuckDB's errors to ours, in the user's words: class, place in the user's text, near names.

The text that DuckDB saw may differ from what the user typed (a scan was wrapped around a WHERE), so a place is given only
where the source line that DuckDB quotes is found once in the user's text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import duckdb

from lakelite import errors
from lakelite.storage.fragment import NOT_NULL_MARK

_QUOTED_LINE = re.compile(r"\n\nLINE (\d+): (.*)\n( *)\^+(?:~*)[^\n]*", re.DOTALL)
_PREFIX = re.compile(r"^(?:[A-Z][A-Za-z-]*(?: [A-Za-z-]+)* )?(?:Error|Exception): ")
_DATA_FILE = re.compile(r"/data/\d+/[a-z0-9]{16}-\d+-\d+\.parquet")  # one of a lake: the user names no such file
_MISSING_TABLE = re.compile(r"^Table with name \"?(.+?)\"? does not exist(?:!| because schema \"(.+?)\" does not exist).*", re.DOTALL)
_OTHER_ADVICE = re.compile(r"(?:, or|\n*Use \"?)\s*SET \w+\s*(?:=|TO\b).*", re.DOTALL)  # settings of DuckDB's that are none of ours
_FOUND_BEHIND = re.compile(r"^Values list (?=\")")  # a view is made of one; the user's table is not
_NOT_NULL = "NOT NULL constraint failed: "
_NOT_NULL_HINT = "give a value, or a DEFAULT to the column"
_KINDS: tuple[tuple[type[BaseException], type[errors.Error]], ...] = (
    (duckdb.InterruptException, errors.OperationalError),
    (duckdb.OutOfMemoryException, errors.OperationalError),
    (duckdb.IntegrityError, errors.IntegrityError),
    (duckdb.DataError, errors.DataError),
    (duckdb.InvalidInputException, errors.DataError),
    (duckdb.NotSupportedError, errors.NotSupportedError),
    (duckdb.ProgrammingError, errors.ProgrammingError),
    (duckdb.InternalError, errors.InternalError),
    (duckdb.OperationalError, errors.OperationalError),
    (duckdb.Error, errors.OperationalError),
)


def translate(error: duckdb.Error, text: str, tables: Iterable[str] = (), schemas: Iterable[str] = ()) -> errors.Error:
    """Our error for DuckDB's. `text`: the statement as the user wrote it; `tables`, `schemas`: names to suggest for a missing one."""
    raw = str(error)
    quoted = _QUOTED_LINE.search(raw)
    message = (raw[: quoted.start()] if quoted else raw).strip()
    kind = next(ours for theirs, ours in _KINDS if isinstance(error, theirs))
    if NOT_NULL_MARK in message:
        message = _NOT_NULL + message.split(NOT_NULL_MARK, 1)[1].strip()
        return errors.IntegrityError(message, hint=_NOT_NULL_HINT)
    if isinstance(error, duckdb.InterruptException):
        return errors.OperationalError("interrupted", hint="the statement was undone; run it again if you want it")
    message = _OTHER_ADVICE.sub("", _FOUND_BEHIND.sub("", _PREFIX.sub("", message))).strip()
    if _DATA_FILE.search(message):
        return errors.OperationalError(message, hint="the file was damaged, changed or removed: restore it from a copy of the lake")
    hint = _NOT_NULL_HINT if message.startswith(_NOT_NULL) else None
    if missing := _MISSING_TABLE.match(message):
        message, hint = _missing(missing[1], missing[2], list(tables), list(schemas))
    return kind(message, hint=hint, position=_position(quoted, text) if quoted else None)


def _missing(table: str, schema: str | None, tables: list[str], schemas: list[str]) -> tuple[str, str]:
    """The message and the hint for a table that DuckDB does not find. It knows of a schema only once a table of it was shown."""
    if schema is not None and schema.lower() not in [s.lower() for s in schemas]:
        return f'schema "{schema}" does not exist', f"the schemas are: {', '.join(sorted(schemas))}"
    known = {t.rpartition(".")[2]: t for t in tables} | {t: t for t in tables}
    near = dict.fromkeys(known[name] for name in difflib.get_close_matches(table, list(known), n=3, cutoff=0.5))
    return f'table "{table}" does not exist', f"did you mean {', '.join(near)}?" if near else "SHOW TABLES lists the tables of this lake"


def _position(quoted: re.Match[str], text: str) -> errors.Position | None:
    """Where the character under DuckDB's caret stands in `text`; None if that is not sure."""
    number, line = int(quoted[1]), quoted[2]
    caret = len(quoted[3]) - len(f"LINE {number}: ")
    lead = 3 if line.startswith("...") else 0
    shown = line[lead : -3 if line.endswith("...") and len(line) > 6 else None]
    if caret < lead or not shown.strip():
        return None
    for snippet, start in ((shown, lead), *_around(line, caret)):
        if snippet and text.count(snippet) == 1:
            return errors.Position.at(text, text.index(snippet) + caret - start)
    return None


def _around(line: str, caret: int) -> list[tuple[str, int]]:
    """The pieces of `line` around the caret, from longer to shorter, each with where it starts: one may be the user's own text."""
    word = re.compile(r"[\w.\"']*").match(line, caret)
    end = max(word.end() if word else caret, caret + 1)
    starts = [s for s in (caret - 24, caret - 12, caret - 6, caret) if s >= 0]
    return [(line[s:end], s) for s in starts]
