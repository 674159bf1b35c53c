"""The SQL that DuckDB runs for a statement: the user's own text, put into a frame of ours.

The user's text is never regenerated. What differs between a statement and what DuckDB runs for it is written here: time
travel holes are filled with names of views, a WHERE is run over a scan that also gives row addresses, and a source of
rows is cast to the columns of its target as DuckDB's own INSERT would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from lakelite.catalog.system import METADATA
from lakelite.errors import NotSupportedError, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.tokens import lex, unquote
from lakelite.language.values import DEFAULT, NOT_PLAIN, Cells, constant, renamed_parameters
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import Column, Table, fold, literal, quote
from lakelite.records import dataclass
from lakelite.storage.engine import INTERNAL
from lakelite.storage.foreign import can_be_read_again
from lakelite.storage.fragment import stored_value
from lakelite.storage.mirror import MIRROR
from lakelite.storage.past import PREFIX
from lakelite.storage.relations import relation
from lakelite.transaction import changes as ch
from lakelite.transaction import system_views, views
from lakelite.transaction.execution import Call, Execution

if TYPE_CHECKING:
    import duckdb

_ROWS_PER_SELECT = 100
QUERY_WORD = re.compile(r"\b(select|from|table|with|pivot|unpivot|summarize|describe|show)\b", re.IGNORECASE)
_BY_STRING = re.compile(r"\bquery(_table)?\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reads:
    """The lake tables that a text reads, and whether it also reads what is not the lake's; whether that is a caller's table, and a stream."""

    tables: frozenset[int] = frozenset()
    external: bool = False
    frames: bool = False
    streams: bool = False


# Running text with parameters.


def execute(cursor: duckdb.DuckDBPyConnection, text: str, values: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Runs one statement with those of `values` that it uses (DuckDB refuses ones that it does not)."""
    if not values:
        return cursor.execute(text)
    statement = cursor.extract_statements(text)[0]
    used = statement.named_parameters
    return cursor.execute(statement, {name: values[name] for name in used}) if used else cursor.execute(statement)


def used_values(text: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `values` that `text` uses."""
    if not values:
        return {}
    import duckdb

    return {name: values[name] for name in duckdb.extract_statements(text)[0].named_parameters}


# Time travel and what is read.


def render(execution: Execution, work: ch.Work, sql: st.Sql, call: Call) -> str:
    """The text for DuckDB: every hole becomes the name of a view of that version, or of what happened."""
    for part in sql.parts:
        if isinstance(part, str) and (INTERNAL in part.lower() or PREFIX in part.lower()):
            _refuse_internal(part)
    if len(sql.parts) == 1 and isinstance(sql.parts[0], str):
        return sql.parts[0]
    return "".join(part if isinstance(part, str) else views.filled(execution, part, call) for part in sql.parts)


def _refuse_internal(text: str) -> None:
    """Our own caches of this session are no tables of the user's: they hold rows of any version."""
    if _BY_STRING.search(text):
        raise ProgrammingError(f'"{INTERNAL}" is reserved: it holds no tables of yours', hint="SHOW ALL TABLES lists the tables of this lake")
    for token, behind in pairwise(lex(text)):
        name = fold(unquote(text[token.start : token.end])) if behind.word == "." and token.kind in ("word", "quoted") else ""
        if name in (INTERNAL, MIRROR) or name.startswith(PREFIX):
            raise ProgrammingError(f'schema "{name}" is reserved: it holds no tables of yours', hint="SHOW ALL TABLES lists the tables of this lake")


def prepare(
    execution: Execution,
    work: ch.Work,
    text: str,
    cursor: duckdb.DuckDBPyConnection | None = None,
    *,
    once: bool = False,
    values: Mapping[str, Any] | None = None,
) -> Reads:
    """Makes what `text` names visible to DuckDB: the lake's tables and views, as the transaction sees them, and the caller's; says which they are.

    `cursor`: one that will run the text once and never again. Without it, it is the engine's, as often as need be: then the rows
    of a caller's reader are taken into memory, unless with `once` no lake table is read, so that nothing can make it run again.
    `values`: the parameters, where what will run has the scans of this text and no others.
    """
    if not QUERY_WORD.search(text):
        return Reads()  # nothing in it can name a table
    engine = execution.engine
    found = views.found_in(execution, work.namespace, text)
    frames = engine.frames.named(found.others)  # before any view is made: to open a reader may run a query of this very connection
    texts = prepare_found(execution, work, found, text, values)
    described = bool(execution.temporaries.by_name) and any(map(METADATA.search, texts))
    shown = views.all_temporary(execution, work) if described else found.temporary
    engine.temporary.show(cursor or engine.work, execution.temporaries, shown, found.temporary, described=described)
    execution.read_temporary = execution.read_temporary or bool(found.temporary)
    past = frozenset[int]().union(*(ids for name, ids in execution.moving.items() if any(name in each for each in texts)))
    read = frozenset(found.tables) | frozenset(found.views) | past
    if cursor is None and (read or not once):
        frames = {name: engine.frames.hold(name) for name in frames}
    engine.frames.show(frames, cursor or engine.work)
    streams = not all(map(can_be_read_again, frames.values()))
    external = found.external or any(name in each for name in execution.past_external for each in texts)
    return Reads(read, external or bool(frames), bool(frames), streams)


def prepare_found(execution: Execution, work: ch.Work, found: views.Found, text: str, values: Mapping[str, Any] | None = None) -> list[str]:
    """Makes what was found in `text` visible, and system views that it names; the text, and those of the views. `values` as in `prepare`."""
    texts = [text, *(view.text for view in found.views.values()), *(one.text for one in found.temporary if one.is_view)]
    for each in texts:
        system_views.prepare(execution, work, each)
    views.show(execution, work, found, None if values is None else Call(text, values))
    return texts


# Rows for an INSERT.


def column_list(columns: Sequence[str] | None) -> str:
    return "" if columns is None else f" ({', '.join(map(quote, columns))})"


def targets(table: Table, operation: st.Insert) -> tuple[str, ...] | None:
    """The columns that an INSERT lists; all that it sees where DuckDB would take others too."""
    return operation.columns if operation.columns is not None or len(table.visible) == len(table.columns) else tuple(c.name for c in table.visible)


def select_for_insert(
    execution: Execution, table: Table, columns: Sequence[str] | None, *, by_name: bool, ctes: str, query: str, values: Mapping[str, Any]
) -> str:
    """A SELECT of the target's columns from `query`: by position or by name, cast as INSERT casts, defaults for what is missing."""
    given = relation(execution.engine.work, f"{ctes} {query}", used_values(f"{ctes} {query}", values)).columns
    targets = check_targets(table, given if by_name else columns, given)
    inner = [quote(t) for t in targets]  # DuckDB's error for a cast that fails names the column
    place = {fold(t): quote(t) for t in targets}
    select = ", ".join(f"{_value(c, place.get(fold(c.name)))} AS {quote(c.name)}" for c in table.columns)
    return f"{ctes} SELECT {select} FROM ({query}\n) q({', '.join(inner)})"


def _value(column: Column, given: str | None) -> str:
    value = f"q.{given}" if given else f"({column.default})" if column.default is not None else "NULL"
    return f"CAST({value} AS {column.type})"


def first_of_each(rows: str, group: str, order: str = "") -> str:
    """A SELECT of one row of each group, the first in that order. The second window function keeps DuckDB (2.0.1) from making an arg_min
    of the whole row of it, which turns a -0.0 of any of its columns into 0.0."""
    first = f"row_number() OVER (PARTITION BY {group}{f' ORDER BY {order}' if order else ''}) = 1"
    return f"SELECT * FROM {rows} QUALIFY {first} AND count(*) OVER (PARTITION BY {group}) > 0"


def check_targets(table: Table, columns: Sequence[str] | None, given: Sequence[str]) -> list[str]:
    """The target column of each given one, or the error that DuckDB would give."""
    targets = [c.name for c in table.visible] if columns is None else list(columns)
    if len(targets) != len(given):
        what = f"table {table.qualified} has {len(targets)} columns" if columns is None else f"{len(targets)} columns are listed"
        raise ProgrammingError(
            f"{what}, but {len(given)} value{' was' if len(given) == 1 else 's were'} supplied",
            hint="list the columns that you give, or use INSERT … BY NAME",
        )
    names = {fold(c.name) for c in table.visible}
    seen: set[str] = set()
    for target in targets:
        if fold(target) not in names:
            _no_column(table, target)
        if fold(target) in seen:
            raise ProgrammingError(f'column "{target}" is given twice', hint="give each column once")
        seen.add(fold(target))
    return targets


def cast_values(
    table: Table, operation: st.Insert, ctes: str, cells: Cells, sets: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """SELECTs of the stored form of VALUES rows, each with the parameters that it uses; a few parameter sets share one."""
    names = [fold(t) for t in check_targets(table, operation.columns, max(cells, key=len))]
    check_targets(table, operation.columns, min(cells, key=len))
    place = {name: i for i, name in enumerate(names)}
    stored = ", ".join(f"{stored_value(table, c, f'r.{quote(c.name)}')} AS f{c.field_id}" for c in table.columns)
    columns = ", ".join(quote(c.name) for c in table.columns)
    sets_each = max(1, _ROWS_PER_SELECT // len(cells))
    for start in range(0, len(sets), sets_each):
        rows: list[str] = []
        given: dict[str, Any] = {}
        for number, values in enumerate(sets[start : start + sets_each]):
            for row in cells:
                rows.append(f"({', '.join(_cell(c, row, place, number, values, given) for c in table.columns)})")
        if len(rows) == 1 and _is_stored_as_it_is(table):
            select = ", ".join(f"{_cell(c, cells[0], place, 0, sets[start], given)} AS f{c.field_id}" for c in table.columns)
            yield f"{ctes}SELECT {select}", given
        else:
            yield f"{ctes}SELECT {stored} FROM (VALUES {', '.join(rows)}) r({columns})", given


def plain_rows(table: Table, operation: st.Insert, cells: Cells, sets: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]] | None:
    """The values of VALUES rows, column by column of the table, if all of them are plain constants; else DuckDB has to evaluate them."""
    names = [fold(t) for t in check_targets(table, operation.columns, max(cells, key=len))]
    if not _is_stored_as_it_is(table) or len(min(cells, key=len)) != len(names):
        return None
    place = {name: i for i, name in enumerate(names)}
    order = [(place.get(fold(c.name)), c) for c in table.columns]
    if any(index is None and c.default is not None for index, c in order):
        return None
    found: list[tuple[Any, ...]] = []
    for given in sets:
        for row in cells:
            values = tuple(None if index is None else constant(row[index], c.stored.type, given) for index, c in order)
            if NOT_PLAIN in values:
                return None
            found.append(values)
    return found


@lru_cache(maxsize=256)
def _is_stored_as_it_is(table: Table) -> bool:
    """Whether no column of the table needs a conversion or a check on its way to storage."""
    return all(stored_value(table, c, "x") == "x" for c in table.columns)


def _cell(column: Column, row: tuple[str, ...], place: Mapping[str, int], number: int, values: Mapping[str, Any], given: dict[str, Any]) -> str:
    """The value of `column` in a VALUES row, cast; the values of its parameters are put into `given`."""
    index = place.get(fold(column.name))
    text = row[index] if index is not None else DEFAULT
    if text.upper() == DEFAULT:
        text = column.default or "NULL"
    elif values:
        text, names = renamed_parameters(text, number)
        given.update({new: values[old] for old, new in names.items()})
    return f"CAST(({text}\n) AS {column.type})"


def _no_column(table: Table, name: str) -> NoReturn:
    names = [c.name for c in table.visible]
    raise ProgrammingError(f'table {table.qualified} has no column "{name}"', hint=did_you_mean(name, names, f"its columns are: {listed(names)}"))


# Files for a COPY FROM.

_CSV_NAMES = {"delimiter": "delim", "null": "nullstr"}


def file_query(table: Table, operation: st.CopyFrom, values: Mapping[str, Any]) -> str:
    """A SELECT of a file's rows, with the target's types for the formats that have none of their own."""
    path = operation.path if operation.path is not None else values[operation.path_parameter or ""]
    if not isinstance(path, str):
        raise ProgrammingError("the path of COPY has to be a text", hint="pass str(path)")
    options = dict(operation.options)
    form = (options.pop("format", None) or _format_of(path)).strip("'").lower()
    known = {fold(c.name): c for c in table.visible}
    columns = [known.get(fold(name)) or _no_column(table, name) for name in operation.columns or known]
    struct = ", ".join(f"{literal(c.name)}: {literal(c.type)}" for c in columns)
    arguments = [literal(path)]
    if form == "csv":
        arguments += [f"columns => {{{struct}}}", *(f"{_CSV_NAMES.get(k, k)} => {'true' if v is None else v}" for k, v in options.items())]
    elif form == "json":
        arguments += [f"columns => {{{struct}}}", *(f"{k} => {'true' if v is None else v}" for k, v in options.items())]
    elif form == "parquet":
        if options:
            raise NotSupportedError(
                f"COPY FROM a Parquet file takes no option {next(iter(options))}", hint="leave it out: a Parquet file says itself how it is written"
            )
    else:
        raise NotSupportedError(f"COPY FROM does not know the format {form}", hint="it reads csv, parquet and json; name one with (FORMAT csv)")
    return f"SELECT * FROM read_{form}({', '.join(arguments)})"


def _format_of(path: str) -> str:
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    for ending, form in ((".parquet", "parquet"), (".json", "json"), (".jsonl", "json"), (".ndjson", "json")):
        if name.endswith(ending):
            return form
    return "csv"
