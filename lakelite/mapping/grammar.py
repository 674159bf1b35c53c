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
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|::")
_LAKE = re.compile(
    r"\A\s*(?:OPTIMIZE|RESTORE|VACUUM|CHECK|BACKUP|USE|SHOW|DESC|DESCRIBE|SAVEPOINT|RELEASE|ROLLBACK|BEGIN|START|SET|RESET|COMMIT)\b"
    r"|:[A-Za-z_]|\b(?:INSERT\s+OVERWRITE|(?:MERGE|CREATE|DROP)\s+(?:BRANCH|TAG)|PARTITIONED\s+BY|AS\s+OF|ADOPT|TABLE_CHANGES)\b"
    r"|\bAT\s*(?:\(|(?:VERSION|TIMESTAMP|TAG|BRANCH)\b)|\b(?:SET|RESET|WITH)\s*\(",
    re.IGNORECASE,
)


def parsed(text: str) -> duckdb.ParserException | None:
    """The error of DuckDB's parser about the text itself; None if it has none, or if the text is not DuckDB's alone."""
    if _LAKE.search(_QUOTED.sub(" ", text)):
        return None
    with duckdb.connect(":memory:") as parser:
        try:
            parser.extract_statements(text)
        except duckdb.ParserException as error:
            return error
    return None


def ran_out(quoted: Quoted, text: str) -> bool:
    """Whether the parser stopped at what we put behind a part of the user's text."""
    if _OURS.match(quoted.line[quoted.index :]) is None or quoted.line[: quoted.index].strip():
        return False
    lines = text.split("\n")
    return quoted.line not in lines if quoted.whole else not any(line.startswith(quoted.line) for line in lines)
