"""Memory, interruption, Python objects, extensions, and DuckDB's own bugs."""

from __future__ import annotations

import re

from lakelite.errors import DataError, ProgrammingError
from lakelite.mapping.words import Rule, Said, Words, rule

_DETAIL = "\n\n"  # Polars shows its plan behind it
HANDED_OVER = "lake_handed_over"  # the name that the rows of con.append have for DuckDB
_TOLD = re.compile(
    r"(?:Invalid: )?(?:Unknown error: )?(?:lakelite\.errors\.\w+: )?(.*?)(?=\nLINE \d|\nHint: |\. Detail: Python exception: |\Z)", re.DOTALL
)
_HINT = re.compile(r"\nHint: (.*?)(?=\. Detail: Python exception: |\Z)", re.DOTALL)
REPORT = "this is a bug of DuckDB's: please report it with the statement; open the lake again if the next statement fails too"


def _interrupted(found: re.Match[str], said: Said) -> Words:
    return Words("interrupted", "the statement was undone; run it again if you want it")


_MORE_MEMORY = "SET memory_limit = '8GB' allows more, SET threads = 1 needs less"


def _memory(found: re.Match[str], said: Said) -> Words:
    used = re.search(r"\(([^()]* used)\)", found[0])
    return Words(f"out of memory{f': {used[1]}' if used else ''}", _MORE_MEMORY)


def _no_room(found: re.Match[str], said: Said) -> Words:
    return Words("the disk has no room for what the statement has to spill", f"free some space; {_MORE_MEMORY}")


def _invalidated(found: re.Match[str], said: Said) -> Words:
    hint = "close the connection and open the lake again: what was committed is safe"
    return Words("DuckDB failed before and can do nothing more in this connection", hint)


def _python(found: re.Match[str], said: Said) -> Words:
    """An error of ours, where the rows are those of a query, comes with its place, which is in another text, its hint, and a traceback."""
    what = "the rows" if found[1] == HANDED_OVER else found[1]
    told, hint = _TOLD.match(found[2].strip()), _HINT.search(found[2])
    assert told is not None
    return Words(
        f"reading {what} failed: {told[1].strip().partition(_DETAIL)[0]}",
        hint[1] if hint else "look at the object that gives the rows",
        kind=DataError,
    )


def _no_columns(found: re.Match[str], said: Said) -> Words:
    return Words("an object without columns is no table", "give it a column", kind=ProgrammingError)


def _no_utf8(found: re.Match[str], said: Said) -> Words:
    return Words("the data holds a text that is not UTF-8", "correct it where it comes from, or give the column as bytes")


def _arrow_type(found: re.Match[str], said: Said) -> Words:
    return Words(f"a column of the Arrow data has a type that cannot be read ({found[1]} in Arrow's own words)", "cast it before, such as to string")


def _extension(found: re.Match[str], said: Said) -> Words:
    return Words(f"the extension {found[1]} is not there", f"install it with DuckDB itself: INSTALL {found[1]}")


RULES: tuple[Rule, ...] = (
    rule(r"^Interrupted!?$", _interrupted),
    rule(r"^failed to offload .*'max_temp_directory_size'", _no_room),
    rule(r"(?:^|\n)Possible solutions:\n\* Reducing the number of threads.*", _memory),
    rule(r"^(?:could not allocate|failed to allocate|failed to offload).*", _memory),
    rule(r"database has been invalidated because of a previous fatal error", _invalidated),
    rule(
        r"^(?:reading the (?:stream|object)|exporting a stream from the object) (?:of the Python object|registered as) '(.+?)' (?:as Arrow data )?"
        r"failed: (.*)",
        _python,
    ),
    rule(r"^(?:Provided table/dataframe must have|Need a DataFrame with) at least one column", _no_columns),
    rule(r"^Invalid unicode \(byte sequence mismatch\) detected in value construction", _no_utf8),
    rule(r"^Unsupported Internal Arrow Type(?: for Decimal)? (\S+)", _arrow_type),
    rule(r"(?:automatically (?:install|load)\w* the required extension|^Extension) ['\"](\w+)", _extension),
)
