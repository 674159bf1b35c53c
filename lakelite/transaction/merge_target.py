"""Which fragments of the target of a MERGE, UPDATE … FROM or DELETE … USING may hold a row that matches one of the source's: those that
the equalities of ON, or WHERE, do not rule out.

By the statistics of each column that has to equal one of the source's, and by the filters of a key that is all among these columns.
A condition that would have failed on a row that is not read fails no more: nothing says in which order DuckDB evaluates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb

from lakelite.contents import TableState
from lakelite.language import statements as st
from lakelite.language.equalities import Side, equalities
from lakelite.language.repeatable import dotted, repeats
from lakelite.model import DATABASE, MAIN_SCHEMA, Column, Constraint, Fragment, fold, quote
from lakelite.records import dataclass
from lakelite.storage.relations import relation
from lakelite.storage.statistics import INTEGERS, holding_any
from lakelite.transaction import changes as ch
from lakelite.transaction import key_lookup, views
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.source import Reads, execute, render, used_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_VALUES = 10_000
"""Of a column with more different values, only the least and the greatest are asked."""

_PARTNERS = "temp._lake_partners"
_FEW_FRAGMENTS = 2  # of fewer, nothing is gained by asking
FEW_ROWS = 50_000
"""Of an UPDATE or DELETE whose target has fewer rows all are read: to read the source twice takes as long."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source that has been read. `name`: what its rows are called; `table`: a temporary table of DuckDB's that holds them;
    `types`: its columns and their types. That of one with a collation, by which other values are equal, is not a type of any column of a lake's."""

    name: str
    table: str
    types: Mapping[str, str]


def source_of(execution: Execution, name: str, table: str) -> Source:
    """The source in a temporary table."""
    found = relation(execution.engine.work, f"FROM {table}", {})
    definition = "SELECT sql FROM system.main.duckdb_tables() WHERE database_name = 'temp' AND table_name = ?"
    ((sql,),) = execution.engine.work.execute(definition, [table.removeprefix("temp.")]).fetchall()
    collated = " COLLATE" if " COLLATE " in sql.upper() else ""
    types = (f"{type_}{collated}" if type_ == "VARCHAR" else str(type_) for type_ in found.types)
    return Source(name, table, dict(zip(found.columns, types, strict=True)))


def merged(execution: Execution, ctes: str, source: str, names: Iterable[str], call: Call) -> tuple[str, ...]:
    """Those of the names of columns, folded, that USING or NATURAL has merged in a join: DuckDB takes a name alone for them, whatever else has it."""
    if "join" not in source.lower():
        return ()

    def wins(name: str) -> bool:
        text = f"EXPLAIN {ctes} SELECT {quote(name)} FROM (SELECT NULL AS {quote(name)}) AS _lake_other, {source}"
        try:
            execute(execution.engine.work, text, call.values).fetchall()
        except duckdb.BinderException:
            return False
        return True

    return tuple(name for name in sorted(names) if wins(name))


def matched(execution: Execution, state: TableState, target: str, source: Source, on: str | Iterable[str]) -> list[Fragment]:
    """The fragments to be read. `target`: what the target's rows are called in `on`, which is a condition, or the columns of USING."""
    columns = source.types
    if isinstance(on, str):
        pairs = equalities(on, _side(state, target), Side(source.name, list(columns)))
    else:
        known = {fold(column): column for column in columns}
        pairs = [(column, known[fold(column)]) for column in on]
    return _narrowed(execution, state, list(state.fragments.values()), source, pairs)


@dataclass(frozen=True, slots=True)
class Change:
    """An UPDATE or DELETE with sources, as DuckDB takes it. `target`: what the target's rows are called; `reads`: what it reads beside them."""

    target: str
    where: str
    sources: st.Sources
    ctes: str
    call: Call
    reads: Reads


def with_partner(execution: Execution, work: ch.Work, state: TableState, chosen: list[Fragment], change: Change) -> list[Fragment]:
    """Those of the chosen fragments in which a row may match one of the sources.

    A source is asked for its values apart from the others, and then read once more with the statement: only if that is sure to give the
    same rows, and not if it costs more than it can save.
    """
    if len(chosen) < _FEW_FRAGMENTS or sum(f.row_count for f in chosen) < FEW_ROWS or not _may_be_asked(execution, work, chosen, change):
        return chosen
    items = {item.name: render(execution, work, item.sql, change.call) for item in change.sources.items}
    columns = _columns(execution, items, change)
    taken = {fold(name) for names in (*columns.values(), [c.name for c in state.table.visible]) for name in names}
    if len(items) < len(change.sources.items) or any(fold(name) in taken for name in (change.target, *items)):
        return chosen  # a name may mean something else
    is_one = len(items) == 1
    target = replace(_side(state, change.target), qualified=not is_one)
    for name, names in columns.items():
        pairs = equalities(change.where, target, Side(name, names, qualified=not is_one))
        if pairs:
            wanted = ", ".join(dict.fromkeys(quote(theirs) for _, theirs in pairs))
            query = f"{change.ctes} SELECT {wanted} FROM {items[name]}"
            chosen = _narrowed_by_query(execution, state, chosen, name, query, pairs, change.call)
    return chosen


def _may_be_asked(execution: Execution, work: ch.Work, chosen: Iterable[Fragment], change: Change) -> bool:
    """Whether the sources give the same rows again, and the tables that they read are smaller than what is chosen."""
    tables = [work.namespace.by_id[t] for t in change.reads.tables if t in work.namespace.by_id]
    if sum(_bytes(execution.state(work, table).fragments.values()) for table in tables) > _bytes(chosen):
        return False
    texts = [f"{change.ctes} SELECT * FROM {render(execution, work, change.sources.sql, change.call)}"]
    texts += [*execution.texts_within(change.reads.tables), *(one.text for one in execution.temporaries.by_name.values() if one.is_view)]
    known = frozenset(_names(execution, work, change))
    return not execution.engine.frames.are_lazy and all(repeats(text, known) for text in texts)


def _names(execution: Execution, work: ch.Work, change: Change) -> Iterator[tuple[str, ...]]:
    """What can be called by name and stays the same: tables and views, past versions of tables, and the caller's variables."""
    for table in work.namespace.tables.values():
        schema, name = fold(table.schema_name), fold(table.name)
        yield from ((name,), (schema, name), (DATABASE, schema, name))
    for name in execution.temporaries.by_name:
        yield from ((name,), (MAIN_SCHEMA, name), ("temp", name))
    yield from ((name,) for name in execution.engine.frames.opened)
    for hole in change.sources.sql.parts:
        if isinstance(hole, st.TimeTravel):
            shown, relation = views.past(execution, hole, change.call)
            if relation.view is None:
                yield dotted(shown)


def _columns(execution: Execution, items: Mapping[str, str], change: Change) -> dict[str, list[str]]:
    """The names of the columns of each of the items; of none, where one of them has no meaning without the others."""
    texts = {name: f"{change.ctes} SELECT * FROM {item}" for name, item in items.items()}
    try:
        return {name: list(relation(execution.engine.work, text, used_values(text, change.call.values)).columns) for name, text in texts.items()}
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        return {}


def _narrowed_by_query(
    execution: Execution, state: TableState, chosen: list[Fragment], name: str, query: str, pairs: Sequence[tuple[str, str]], call: Call
) -> list[Fragment]:
    """As `_narrowed`, by the values that a query gives."""
    engine = execution.engine
    try:
        engine.run(f"CREATE OR REPLACE TEMP TABLE {_PARTNERS.removeprefix('temp.')} AS {query}", used_values(query, call.values))
        return _narrowed(execution, state, chosen, source_of(execution, name, _PARTNERS), pairs)
    finally:
        engine.run(f"DROP TABLE IF EXISTS {_PARTNERS}")


def _bytes(fragments: Iterable[Fragment]) -> int:
    return sum(f.size_bytes for f in fragments)


def _side(state: TableState, name: str) -> Side:
    return Side(name, [c.name for c in state.table.visible])


def _narrowed(execution: Execution, state: TableState, chosen: list[Fragment], source: Source, pairs: Iterable[tuple[str, str]]) -> list[Fragment]:
    """Those of the chosen fragments in which a row may have values that a row of the source has. `pairs`: a column of each."""
    columns = source.types
    targets = {fold(c.name): c for c in state.table.visible}
    partners: dict[int, str] = {}  # field id → SQL of the value that it equals, of its own type, or NULL where it has none
    for mine, theirs in pairs:
        column = targets[fold(mine)]
        if columns[theirs] == column.type or {columns[theirs], column.type} <= INTEGERS:
            value = f"TRY_CAST({quote(theirs)} AS {column.type})"
            partners[column.field_id] = value
            chosen = _by_statistics(execution, chosen, column, source.table, value)
    for key in state.table.keys:
        if chosen and {field_id for _, field_id in key.columns} <= partners.keys() and key_lookup.has_filters(state.table, key):
            chosen = _by_filters(execution, state, chosen, key, source.table, partners)
    return chosen


def _by_statistics(execution: Execution, chosen: list[Fragment], column: Column, source: str, value: str) -> list[Fragment]:
    if len(chosen) < _FEW_FRAGMENTS:
        return chosen
    different = f"SELECT DISTINCT {value} AS v FROM {source} WHERE {value} IS NOT NULL"
    ((count,),) = execution.engine.run(f"SELECT count(*) FROM (SELECT 1 FROM ({different}) LIMIT {_MOST_VALUES + 1})")
    between = count > _MOST_VALUES
    values = f"SELECT unnest([min(v), max(v)]) AS v FROM ({different})" if between else different
    texts = [text for (text,) in execution.engine.run(f"SELECT CAST(v AS VARCHAR) FROM ({values})")]
    return holding_any(chosen, column.field_id, column.type, texts, between=between)


def _by_filters(
    execution: Execution, state: TableState, chosen: list[Fragment], key: Constraint, source: str, partners: Mapping[int, str]
) -> list[Fragment]:
    keys = ", ".join(f"{partners[field_id]} AS k{i}" for i, (_, field_id) in enumerate(key.columns))
    given = " AND ".join(f"k{i} IS NOT NULL" for i in range(len(key.columns)))
    sql = f"SELECT DISTINCT {key_lookup.hash_of(key)} AS hash FROM (SELECT {keys} FROM {source}) WHERE {given} LIMIT {key_lookup.MOST_KEYS + 1}"
    hashes: NDArray[Any] = execution.engine.work.execute(sql).fetchnumpy()["hash"]
    if len(hashes) > key_lookup.MOST_KEYS:
        return chosen
    return [f for fragments, _ in key_lookup.among(execution, state, chosen, key, hashes) for f in fragments]
