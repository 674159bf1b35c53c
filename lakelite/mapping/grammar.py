"""Where a statement cannot be parsed: what DuckDB's parser says of the text as the user wrote it.

A change runs as other statements, around its parts: an expression that ends too early is then met at a bracket that nobody wrote.
Promises: nothing is run, and a statement with words that only a lake knows is left to what was said already.
"""

from __future__ import annotations

import re

import duckdb

from lakelite.mapping.places import Quoted

TOO_EARLY = "syntax error: the statement, or an expression in it, ends too early"
_OURS = re.compile(r"\)|\s*WITH (?:NO )?DATA\b")  # how we go on, in a line of its own, behind a part of the user's
_LAKE = re.compile(
    r":[A-Za-z_]|\b(?:OVERWRITE|OPTIMIZE|ZORDER|RESTORE|VACUUM|RETAIN|HISTORY|PARTITIONED|ADOPT|BRANCH|TAG|LAKE|BACKUP|AT|OF|ISOLATION"
    r"|SAVEPOINT|TABLE_CHANGES|OPTION|RESET|SET\s*\()\b",
    re.IGNORECASE,
)


def parsed(text: str) -> duckdb.ParserException | None:
    """The error of DuckDB's parser about the text itself; None if it has none, or if the text is not DuckDB's alone."""
    if _LAKE.search(text):
        return None
    with duckdb.connect(":memory:") as parser:
        try:
            parser.extract_statements(text)
        except duckdb.ParserException as error:
            return error
    return None


def ran_out(quoted: Quoted, text: str) -> bool:
    """Whether the parser stopped at what we put behind a part of the user's text."""
    return _OURS.match(quoted.line[quoted.index :]) is not None and not quoted.line[: quoted.index].strip() and quoted.line not in text
