"""Which fragments of a MERGE's target may hold a row that matches one of the source's: those that the equalities of ON do not rule out.

By the statistics of each column that has to equal one of the source's, and by the filters of a key that is all among these columns.
A condition that would have failed on a row that is not read fails no more: nothing says in which order DuckDB evaluates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelite.contents import TableState
from lakelite.language.equalities import Side, equalities
from lakelite.model import Column, Constraint, Fragment, fold, quote
from lakelite.storage.relations import relation
from lakelite.storage.statistics import INTEGERS, holding_any
from lakelite.transaction import key_lookup
from lakelite.transaction.execution import Execution

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_VALUES = 10_000
"""Of a column with more different values, only the least and the greatest are asked."""

_FEW_FRAGMENTS = 2  # of fewer, nothing is gained by asking


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


def matched(execution: Execution, state: TableState, target: str, source: Source, on: str | Iterable[str]) -> list[Fragment]:
    """The fragments to be read. `target`: what the target's rows are called in `on`, which is a condition, or the columns of USING."""
    columns = source.types
    targets = {fold(c.name): c for c in state.table.visible}
    if isinstance(on, str):
        pairs = equalities(on, Side(target, [c.name for c in state.table.visible]), Side(source.name, list(columns)))
    else:
        known = {fold(column): column for column in columns}
        pairs = [(column, known[fold(column)]) for column in on]
    chosen = list(state.fragments.values())
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
