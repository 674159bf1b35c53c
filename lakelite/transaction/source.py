"""The SQL that DuckDB runs for a statement: the user's own text, put into a frame of ours.

The user's text is never regenerated. What differs between a statement and what DuckDB runs for it is written here: time
travel holes are filled with names of views, a WHERE is run over a scan that also gives row addresses, and a source of
rows is cast to the columns of its target as DuckDB's own INSERT would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelite import deletion
from lakelite.contents import TableState
from lakelite.errors import DataError, NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.parse import mentions
from lakelite.model import Column, Fragment, Table, fold, literal, quote
from lakelite.storage.engine import Engine
from lakelite.storage.statistics import fragment_may_match
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Call, Execution, find_table
from lakelite.transaction.view import check_kept, version_view

if TYPE_CHECKING:
    import duckdb
    from pyroaring import BitMap

UPDATED = "lake_updated"  # the temporary table that an UPDATE is evaluated into, once
ROW_ID = quote("_lake_kept_row_id")
_TARGET = "lake_target"
_FILE_FUNCTION = re.compile(r"\b(read_\w+|\w*parquet_scan|glob|sniff_csv|parquet_\w+)\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reads:
    """The lake tables that a text reads, and whether it also reads files."""

    tables: frozenset[int] = frozenset()
    external: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The rows that a DELETE or UPDATE matches: `sql` gives source and position (and, of an UPDATE, lies in a temporary table)."""

    sql: str
    values: Mapping[str, Any]
    fragments: tuple[Fragment, ...]
    source: str
    position: str
    row_id: str
    reads: Reads


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


def undo(engine: Engine) -> None:
    """ROLLBACK, where an error has not done so already."""
    import duckdb

    try:
        engine.do("ROLLBACK")
    except duckdb.TransactionException as error:
        if "no transaction" not in str(error):
            raise


# Time travel and what is read.


def render(execution: Execution, work: ch.Work, sql: st.Sql, call: Call) -> str:
    """The text for DuckDB: every time travel hole becomes the name of a view of that version."""
    if len(sql.parts) == 1 and isinstance(sql.parts[0], str):
        return sql.parts[0]
    return "".join(part if isinstance(part, str) else _version_name(execution, part, call) for part in sql.parts)


def _version_name(execution: Execution, travel: st.TimeTravel, call: Call) -> str:
    version = _version(execution, travel, call)
    view = version_view(execution.catalog, version)
    old = ch.Work(view.namespace, ch.ChangeSet())
    table = find_table(old, travel.table, call)
    check_kept(execution.catalog, table, version)
    name = execution.engine.show_version(view.state(table), version)
    return name if travel.has_alias else f"{name} AS {quote(table.name)}"


def _version(execution: Execution, travel: st.TimeTravel, call: Call) -> int:
    cast = "BIGINT" if travel.by == "version" else "TIMESTAMPTZ"
    value = execute(execution.engine.work, f"SELECT {'' if cast == 'BIGINT' else 'epoch_us'}(CAST(({travel.moment}\n) AS {cast}))", call.values).fetchall()[0][0]
    position = Position.at(call.text, travel.table.offset)
    if value is None:
        raise DataError("the version of a time travel clause is NULL", position=position)
    if travel.by == "version":
        return int(value)
    found = execution.catalog.row("snapshot_at_time", time_us=value)[0]
    if found is None:
        raise ProgrammingError("the lake is younger than that, or its history has expired", hint="DESCRIBE HISTORY lists the kept versions", position=position)
    return int(found)


def prepare(execution: Execution, work: ch.Work, text: str) -> Reads:
    """Makes the lake tables that `text` names visible to DuckDB, as the transaction sees them; says which they are."""
    execution.engine.show_only(work.namespace.tables.keys())
    tables, files = _names(execution, work, text)
    for table in tables:
        execution.engine.show(execution.state(work, table))
    return Reads(frozenset(t.table_id for t in tables), files)


def _names(execution: Execution, work: ch.Work, text: str) -> tuple[list[Table], bool]:
    """The lake tables that DuckDB's own binder finds in `text`; where it cannot tell, all whose name occurs in it."""
    names = execution.engine.table_names(text)
    if names is None:
        words = mentions(text)
        return [t for t in work.namespace.tables.values() if fold(t.name) in words], True
    found: dict[int, Table] = {}
    external = bool(_FILE_FUNCTION.search(text))
    for name in names:
        parts = _split(name)
        table = work.namespace.find(parts[-2] if len(parts) > 1 else None, parts[-1])
        if table is not None:
            found[table.table_id] = table
        elif "." in parts[-1] or "/" in parts[-1]:
            external = True
    return list(found.values()), external


def _split(name: str) -> list[str]:
    """The parts of a qualified name as DuckDB prints it: `a."b.c"` → a, b.c."""
    return [q.replace('""', '"') if q else bare for q, bare in re.findall(r'"((?:[^"]|"")*)"|([^".]+)', name)]


# Rows for an INSERT.


def column_list(columns: Sequence[str] | None) -> str:
    return "" if columns is None else f" ({', '.join(map(quote, columns))})"


def select_for_insert(
    execution: Execution, table: Table, columns: Sequence[str] | None, *, by_name: bool, ctes: str, query: str, values: Mapping[str, Any]
) -> str:
    """A SELECT of the target's columns from `query`: by position or by name, cast as INSERT casts, defaults for what is missing."""
    relation = execution.engine.work.sql(f"{ctes} {query}", params=used_values(f"{ctes} {query}", values))
    given = relation.columns
    targets = _targets(table, given if by_name else columns, given)
    inner = [f"c{i}" for i in range(len(given))]
    place = {fold(t): inner[i] for i, t in enumerate(targets)}
    select = ", ".join(f"{_value(c, place.get(fold(c.name)))} AS {quote(c.name)}" for c in table.columns)
    return f"{ctes} SELECT {select} FROM ({query}\n) q({', '.join(inner)})"


def _value(column: Column, given: str | None) -> str:
    value = f"q.{given}" if given else f"({column.default})" if column.default is not None else "NULL"
    return f"CAST({value} AS {column.type})"


def _targets(table: Table, columns: Sequence[str] | None, given: Sequence[str]) -> list[str]:
    """The target column of each given one, or the error that DuckDB would give."""
    targets = [c.name for c in table.columns] if columns is None else list(columns)
    if len(targets) != len(given):
        what = f"table {table.qualified} has {len(targets)} columns" if columns is None else f"{len(targets)} columns are listed"
        raise ProgrammingError(f"{what}, but {len(given)} values were supplied", hint="list the columns that you give, or use INSERT … BY NAME")
    names = {fold(c.name) for c in table.columns}
    seen: set[str] = set()
    for target in targets:
        if fold(target) not in names:
            raise ProgrammingError(f'table {table.qualified} has no column "{target}"', hint=f"its columns are: {', '.join(c.name for c in table.columns)}")
        if fold(target) in seen:
            raise ProgrammingError(f'column "{target}" is given twice')
        seen.add(fold(target))
    return targets


# Files for a COPY FROM.

_CSV_NAMES = {"delimiter": "delim", "null": "nullstr"}


def file_query(table: Table, operation: st.CopyFrom, values: Mapping[str, Any]) -> str:
    """A SELECT of a file's rows, with the target's types for the formats that have none of their own."""
    path = operation.path if operation.path is not None else str(values[operation.path_parameter or ""])
    options = dict(operation.options)
    form = (options.pop("format", None) or _format_of(path)).strip("'").lower()
    columns = [c for c in table.columns if operation.columns is None or fold(c.name) in {fold(x) for x in operation.columns}]
    if operation.columns is not None:
        columns = sorted(columns, key=lambda c: [fold(x) for x in operation.columns or ()].index(fold(c.name)))
    struct = ", ".join(f"{literal(c.name)}: {literal(c.type)}" for c in columns)
    arguments = [literal(path)]
    if form == "csv":
        arguments += [f"columns => {{{struct}}}", *(f"{_CSV_NAMES.get(k, k)} => {'true' if v is None else v}" for k, v in options.items())]
    elif form == "json":
        arguments += [f"columns => {{{struct}}}", *(f"{k} => {'true' if v is None else v}" for k, v in options.items())]
    elif form == "parquet":
        if options:
            raise NotSupportedError(f"COPY FROM a Parquet file takes no option {next(iter(options))}")
    else:
        raise NotSupportedError(f"COPY FROM does not know the format {form}", hint="it reads csv, parquet and json; name one with (FORMAT csv)")
    return f"SELECT * FROM read_{form}({', '.join(arguments)})"


def _format_of(path: str) -> str:
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    for ending, form in ((".parquet", "parquet"), (".json", "json"), (".jsonl", "json"), (".ndjson", "json")):
        if name.endswith(ending):
            return form
    return "csv"


# Rows that a DELETE or UPDATE matches.


def matching(execution: Execution, work: ch.Work, table: Table, operation: st.Delete | st.Update, call: Call) -> Found:
    """Finds the rows: of a DELETE as a SELECT still to run, of an UPDATE evaluated into a temporary table with the new values."""
    where = render(execution, work, operation.where, call) if operation.where else None
    ctes = render(execution, work, operation.ctes, call) if operation.ctes else ""
    alias = quote(operation.alias or table.name)
    state = execution.state(work, table)
    scan = execution.engine.addressed(state, _pruned(state, where, operation.alias or table.name, call.values))
    condition = f" WHERE ({where}\n)" if where is not None else ""
    if isinstance(operation, st.Update):
        new = _new_values(execution, work, table, operation, alias, call)
        select = f"SELECT {alias}.{scan.source}, {alias}.{scan.position}, {alias}.{scan.row_id}, {new} FROM "
        expressions = new
    else:
        select, expressions = f"SELECT {alias}.{scan.source}, {alias}.{scan.position} FROM ", "1"
    reads = Reads() if operation.row_local else prepare(execution, work, f"{ctes} SELECT {expressions} FROM {_TARGET} AS {alias}{condition}")
    sql = f"{ctes} {select}({scan.sql}) AS {alias}{condition}"
    values = used_values(sql, call.values)
    if isinstance(operation, st.Update):
        execution.engine.do(f"CREATE OR REPLACE TEMP TABLE {UPDATED} AS {sql}", values)
        sql, values = f"SELECT {scan.source}, {scan.position} FROM {UPDATED}", {}
    return Found(sql, values, scan.fragments, scan.source, scan.position, scan.row_id, reads)


def _pruned(state: TableState, where: str | None, name: str, values: Mapping[str, Any]) -> Iterable[Fragment]:
    """The fragments that may hold a matching row, by their statistics."""
    if where is None or len(state.fragments) < 2:
        return state.fragments.values()
    from lakelite.language.conjuncts import conjuncts

    conditions = conjuncts(where, state.table.columns, name, values)
    return [f for f in state.fragments.values() if f.storage == "inline" or fragment_may_match(f, conditions)]


def _new_values(execution: Execution, work: ch.Work, table: Table, operation: st.Update, alias: str, call: Call) -> str:
    """The new value of every column, in order, as _lake_0, _lake_1, …"""
    assigned: dict[str, str] = {}
    columns = {fold(c.name): c for c in table.columns}
    for one in operation.assignments:
        column = columns.get(fold(one.column))
        if column is None:
            hint = f"its columns are: {', '.join(c.name for c in table.columns)}"
            raise ProgrammingError(f'table {table.qualified} has no column "{one.column}"', hint=hint, position=Position.at(call.text, one.offset))
        value = render(execution, work, one.value, call) if one.value else column.default or "NULL"
        assigned[fold(one.column)] = f"CAST(({value}\n) AS {column.type})"
    return ", ".join(f"{assigned.get(fold(c.name), f'{alias}.{quote(c.name)}')} AS _lake_{i}" for i, c in enumerate(table.columns))


def positions(found: Found, cursor: duckdb.DuckDBPyConnection) -> tuple[dict[int, BitMap], int]:
    """The row addresses as positions by fragment id, and how many they are."""
    import numpy as np

    arrays = execute(cursor, found.sql, found.values).fetchnumpy()
    sources, where = arrays[found.source], arrays[found.position]
    grouped: dict[int, BitMap] = {}
    if len(sources):
        order = np.argsort(sources, kind="stable")
        numbers, starts = np.unique(sources[order], return_index=True)
        for number, part in zip(numbers, np.split(where[order], starts[1:]), strict=True):
            grouped[found.fragments[int(number)].fragment_id] = deletion.positions_of(part)
    return grouped, len(sources)


def updated_rows(table: Table, found: Found) -> str:
    """A SELECT of the new versions and, as ROW_ID, the row ids of the old ones (NULL for rows that have none yet)."""
    firsts = ", ".join(f"({i}, {f.first_row_id if f.fragment_id > 0 else 'NULL'})" for i, f in enumerate(found.fragments)) or "(0, NULL)"
    columns = ", ".join(f"u._lake_{i} AS {quote(c.name)}" for i, c in enumerate(table.columns))
    return (
        f"SELECT {columns}, coalesce(u.{found.row_id}, m.first + u.{found.position}) AS {ROW_ID}"
        f" FROM {UPDATED} u JOIN (VALUES {firsts}) m(source, first) ON m.source = u.{found.source}"
    )
