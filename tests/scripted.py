"""SQL scripts with expected results, in the form of sqllogictest (https://www.sqlite.org/sqllogictest, as DuckDB has it), and their runner.

    statement ok [connection]            a statement that succeeds
    statement error [connection]         one that fails; below ---- a text that its error holds
    query TYPES [rowsort] [connection]   its rows below ----, one a line, values with tabs between; T, I, R stand for one column each
    skipif ENGINE, onlyif ENGINE         of the record that follows: `lakelite` or `duckdb`

A record ends with an empty line. NULL is NULL, an empty text (empty). Connections have names and share the database; without a name it is
always the same one. A script is run from its beginning on each engine: what both give is then no expectation of ours alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENGINES = ("lakelite", "duckdb")


@dataclass(frozen=True)
class Record:
    """One statement. `line`: where it begins. `expected`: the lines below ----. `only`: the engines that it is for."""

    line: int
    kind: str
    columns: int
    is_sorted: bool
    connection: str
    sql: str
    expected: tuple[str, ...]
    only: frozenset[str]


def records(text: str) -> Iterator[Record]:
    """The records of a script; ValueError for what is none."""
    only = frozenset(ENGINES)
    for number, block in _blocks(text):
        lines = block
        while lines and lines[0].split()[0] in ("skipif", "onlyif"):
            word, engine = lines[0].split()
            if engine not in ENGINES:
                raise ValueError(f"line {number}: {engine} is no engine")
            only = only & {engine} if word == "onlyif" else only - {engine}
            number, lines = number + 1, lines[1:]
        yield _record(number, lines, only)
        only = frozenset(ENGINES)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip() and not (line.startswith("#") and not block):
            block.append(line)
        elif block and not line.strip():
            yield number - len(block), block
            block = []


def _record(number: int, lines: list[str], only: frozenset[str]) -> Record:
    head, *rest = lines
    words = head.split()
    split = rest.index("----") if "----" in rest else len(rest)
    sql, expected = "\n".join(rest[:split]), tuple(rest[split + 1 :])
    match words:
        case ["statement", ("ok" | "error") as kind, *connection] if len(connection) < 2:
            if (kind == "error") != bool(expected) or not sql:
                raise ValueError(f"line {number}: a statement that fails needs a text below ----, and any needs SQL")
            return Record(number, kind, 0, False, "".join(connection), sql, expected, only)
        case ["query", types, *more] if set(types) <= set("TIR") and sql and split < len(rest):
            is_sorted = more[:1] == ["rowsort"]
            return Record(number, "query", len(types), is_sorted, "".join(more[is_sorted:]), sql, expected, only)
    raise ValueError(f"line {number}: no record begins with {head!r}")


def run(script: Path, engine: str, connect: Callable[[str], Any], failures: tuple[type[Exception], ...]) -> int:
    """Runs a script; AssertionError with the line for the first record that is not as expected. Returns how many records ran."""
    ran = 0
    for record in records(script.read_text(encoding="utf-8")):
        if engine in record.only:
            _check(record, connect(record.connection), f"{script.name}, line {record.line}, {engine}", failures)
            ran += 1
    return ran


def _check(record: Record, connection: Any, place: str, failures: tuple[type[Exception], ...]) -> None:
    rows, columns, failure = _outcome(record, connection, failures)
    if record.kind == "error":
        wanted = "\n".join(record.expected)
        assert wanted in (failure or ""), f"{place}: it should fail with {wanted!r}, and not with {failure}"
        return
    assert failure is None, f"{place}: {failure}"
    if record.kind == "query":
        assert columns == record.columns, f"{place}: it has {columns} columns"
        wanted_rows = list(record.expected)
        assert (sorted(rows) == sorted(wanted_rows)) if record.is_sorted else (rows == wanted_rows), f"{place}:\n" + "\n".join(rows)


def _outcome(record: Record, connection: Any, failures: tuple[type[Exception], ...]) -> tuple[list[str], int, str | None]:
    """The rows of a query, as lines, how many columns they have, and the error's text if it failed."""
    try:
        cursor = connection.execute(record.sql)
        if record.kind != "query":
            return [], 0, None
        return ["\t".join(map(shown, row)) for row in cursor.fetchall()], len(cursor.description), None
    except failures as error:
        return [], 0, str(error)


def shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if value != "" else "(empty)"
