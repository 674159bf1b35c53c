"""What a DuckDB or SQLite file has and a lake does not take over, in words for a person.

Promises: one text for each thing, which begins with its kind and says its name. Never reads rows, and never touches the lake.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from lakelite.model import literal

if TYPE_CHECKING:
    import duckdb

_OF_DUCKDB = """
    SELECT format('view {}.{}', schema_name, view_name) FROM duckdb_views() WHERE database_name = current_database() AND NOT internal
    UNION ALL SELECT DISTINCT format('macro {}.{}', schema_name, function_name) FROM duckdb_functions()
        WHERE database_name = current_database() AND NOT internal AND function_type IN ('macro', 'table_macro')
    UNION ALL SELECT format('{}index {}.{} of {}', if(is_unique, 'unique ', ''), schema_name, index_name, table_name) FROM duckdb_indexes()
        WHERE database_name = current_database()
    UNION ALL SELECT format('sequence {}.{}', schema_name, sequence_name) FROM duckdb_sequences() WHERE database_name = current_database()
    UNION ALL SELECT format('type {}.{}', schema_name, type_name) FROM duckdb_types() WHERE database_name = current_database() AND NOT internal
    UNION ALL SELECT format('trigger {}.{} of {}', schema_name, trigger_name, table_name) FROM duckdb_triggers()
        WHERE database_name = current_database()
    ORDER BY ALL"""
_OF_SQLITE = """
    SELECT CASE WHEN type = 'index' AND sql LIKE 'CREATE UNIQUE%' THEN 'unique ' ELSE '' END || type || ' main.' || name
        || CASE type WHEN 'view' THEN '' ELSE ' of ' || tbl_name END
    FROM sqlite_master WHERE type IN ('view', 'trigger', 'index') AND sql IS NOT NULL ORDER BY 1"""

_PIECE = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] | (?P<comment>--[^\n]* | /\*.*?(?:\*/|\Z)) | [^\W\d]\w* | [^\s\w] | \w+""",
    re.VERBOSE | re.DOTALL,
)
_COLLATION = re.compile(r"""\s+("[^"]*"|\w+(?:\.\w+)*)""")


def of_duckdb(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """What the file has besides tables, sorted."""
    return tuple(text for (text,) in connection.execute(_OF_DUCKDB).fetchall())


def of_sqlite(connection: sqlite3.Connection) -> tuple[str, ...]:
    """What the file has besides tables, sorted; indexes without those that constraints made."""
    return tuple(text for (text,) in connection.execute(_OF_SQLITE))


def of_sqlite_table(connection: sqlite3.Connection, table: str, text: str) -> list[str]:
    """What the definition of a table has besides names, types, NOT NULL, defaults and primary key; `text`: its CREATE TABLE."""
    return [*clauses(text, ("CHECK", "COLLATE", "AS", "AUTOINCREMENT")), *_unique(connection, table), *_foreign(connection, table)]


def clauses(text: str, words: tuple[str, ...]) -> list[str]:
    """The clauses of a CREATE TABLE that begin with one of `words`, each with the column that it stands at, if it is one's.

    CHECK and AS have a condition in brackets, COLLATE a name, AUTOINCREMENT nothing. `CREATE TABLE t AS SELECT` is not asked for.
    """
    pieces = [piece for piece in _PIECE.finditer(text) if piece["comment"] is None]
    found, depth, first, is_first = [], 0, "", False
    for at, piece in enumerate(pieces):
        word = piece[0].upper()
        if depth == 1 and is_first:
            first, is_first = piece[0], False
        if depth == 1 and word in words:
            found.append(_clause(text, pieces[at:], word, first))
        depth += (word == "(") - (word == ")")
        is_first = is_first or (depth == 1 and word in "(,")
    return found


def _clause(text: str, pieces: list[re.Match[str]], word: str, first: str) -> str:
    column = "" if first.upper() in ("CHECK", "CONSTRAINT") else f" of {first}"
    if word == "COLLATE":
        name = _COLLATION.match(text, pieces[0].end())
        return f"COLLATE {'' if name is None else name[1]}{column}"
    if word in ("CHECK", "AS"):
        condition = _in_brackets(text, pieces[1:])
        return f"CHECK {condition}{column}" if word == "CHECK" else generated(first, condition)
    return f"{word}{column}"


def _in_brackets(text: str, pieces: list[re.Match[str]]) -> str:
    depth = 0
    for piece in pieces:
        depth += (piece[0] == "(") - (piece[0] == ")")
        if depth == 0:
            break
    return " ".join(text[pieces[0].start() : piece.end()].split())


def generated(column: str, expression: str) -> str:
    """A generated column, which comes as one with the values that it has."""
    return f"GENERATED ALWAYS AS {expression} of {column} (a plain column now, with the values that it had)"


def _unique(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    names = "SELECT l.name, i.name FROM pragma_index_list({}) AS l, pragma_index_info(l.name) AS i WHERE l.origin = 'u' ORDER BY l.seq DESC, i.seqno"
    for _, rows in groupby(connection.execute(names.format(literal(table))), lambda row: str(row[0])):
        yield f"UNIQUE ({', '.join(str(column) for _, column in rows)})"


def _foreign(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    keys = f'SELECT id, "from", "table" FROM pragma_foreign_key_list({literal(table)}) ORDER BY id DESC, seq'
    for _, group in groupby(connection.execute(keys), lambda row: int(row[0])):
        rows = list(group)
        yield f"FOREIGN KEY ({', '.join(str(column) for _, column, _ in rows)}) REFERENCES {rows[0][2]}"
