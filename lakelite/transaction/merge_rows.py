"""The rows of one table in a merge of two branches: three versions of each row that theirs may have changed, and what becomes of it.

    candidates   the ids of the rows that theirs touched since they met, by deltas
    three_ways   the versions that base, theirs and ours have of them, side by side in DuckDB
    outcome      per row: nothing to do, theirs is taken over, or both changed it, and not alike

Rows are known by their ids, which all branches share, and compared by their values. Cost follows the candidates, not the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelite import deletion
from lakelite.composition import Unplaced
from lakelite.contents import TableState
from lakelite.model import Table, literal, quote
from lakelite.transaction import row_ids
from lakelite.transaction.delta import Delta
from lakelite.transaction.execution import Execution

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyroaring import BitMap

_SIDES = ("base", "theirs", "ours")
_EXACT = frozenset(
    "BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT VARCHAR BLOB UUID DATE TIMESTAMP".split()
)
_WAYS = "temp.lake_merge_ways"
CONFLICT_COLUMNS = (
    ("table_name", "VARCHAR"), ("row_id", "BIGINT"), ("kind", "VARCHAR"), ("base", "VARCHAR"), ("ours", "VARCHAR"), ("theirs", "VARCHAR"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows that theirs added, changed and deleted and that are taken over, and conflicts."""

    added: int
    updated: int
    deleted: int
    conflicts: int


def candidates(execution: Execution, deltas: Iterable[Delta]) -> NDArray[Any]:
    """The ids, sorted, of all rows that came, went or changed in any of the deltas."""
    import numpy as np

    found = [ids for delta in deltas for ids in _touched(execution, delta)]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def _touched(execution: Execution, delta: Delta) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        removed, added = delta.removed, delta.added
    except Unplaced:  # values are compared anyway: all rows that stand elsewhere may have changed
        removed = {k: delta.base.alive(k) for k in delta.base.fragments if _differs(delta, k)}
        added = {k: delta.head.alive(k) for k in delta.head.fragments if _differs(delta, k)}
    return row_ids.ids_of(execution, delta.base, removed), row_ids.ids_of(execution, delta.head, added)


def _differs(delta: Delta, fragment_id: int) -> bool:
    return (
        fragment_id not in delta.head.fragments
        or fragment_id not in delta.base.fragments
        or (delta.base.alive(fragment_id) != delta.head.alive(fragment_id))
    )


# Three versions of a row.


def three_ways(
    execution: Execution, table: Table, bases: Sequence[TableState | None], theirs: TableState, ours: TableState, ids: NDArray[Any]
) -> Counts:
    """Puts the versions of the rows with these ids side by side, as rows of `table`, for the functions below to read. A base of None had no
    such table; several bases have to agree on a row, or it is not known what it was: then both count as having changed it."""
    states = {"base": bases[0], "theirs": theirs, "ours": ours, **{f"base_{i}": base for i, base in enumerate(bases) if i}}
    for side, state in states.items():
        rows = _rows(execution, None if state is None else state.defined_as(table), table, ids, side)
        execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_{side} AS {rows}")
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_ways AS {_ways(table, len(bases))}")
    counted = ", ".join(f"count(*) FILTER (what = {literal(what)})" for what in ("added", "updated", "deleted", "conflict"))
    return Counts(*execution.engine.run(f"SELECT {counted} FROM {_WAYS}")[0])


def _rows(execution: Execution, state: TableState | None, table: Table, ids: NDArray[Any], side: str) -> str:
    """A SELECT of id and c0, c1, … of the rows of `state` with these ids."""
    places = {} if state is None else row_ids.places(execution, state, ids)
    if state is None or not places:
        return "SELECT 0::BIGINT AS id" + "".join(f", NULL::{c.type} AS c{i}" for i, c in enumerate(table.columns)) + " WHERE false"
    fragments = {k: state.fragments[k] for k in places}
    scan = execution.engine.addressed(TableState(table, fragments, {}), fragments.values())
    numbers = {f.fragment_id: source for source, f in scan.fragments.items()}
    execution.engine.work.register(f"lake_places_{side}", _as_arrow(places, numbers))
    try:
        execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_places AS SELECT * FROM lake_places_{side}")
    finally:
        execution.engine.work.unregister(f"lake_places_{side}")
    firsts = ", ".join(f"({source}, {f.first_row_id})" for source, f in scan.fragments.items())
    columns = "".join(f", p.{quote(c.name)} AS c{i}" for i, c in enumerate(table.columns))
    return (
        f"SELECT coalesce(p.{scan.row_id}, m.first + p.{scan.position})::BIGINT AS id{columns} FROM ({scan.sql}) p"
        f" JOIN temp.lake_merge_places d ON d.source = p.{scan.source} AND d.position = p.{scan.position}"
        f" JOIN (VALUES {firsts}) m(source, first) ON m.source = p.{scan.source}"
    )


def _as_arrow(places: Mapping[int, BitMap], numbers: Mapping[int, int]) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    sources = np.repeat([numbers[k] for k in places], [len(positions) for positions in places.values()])
    return pa.table({"source": sources, "position": np.concatenate([deletion.to_array(positions) for positions in places.values()])})


def _ways(table: Table, bases: int) -> str:
    """A SELECT of id, `what` is to be done, and `kind`, what both did, for each row that theirs changed and ours not in the same way."""
    others = [f"base_{i}" for i in range(1, bases)]
    there = {side: f"({side}.id IS NOT NULL)" for side in (*_SIDES, *others)}
    torn = " OR ".join(_unlike(table, "base", other, there) for other in others) or "false"
    changed_there, changed_here = (f"({_unlike(table, 'base', side, there)} OR {torn})" for side in ("theirs", "ours"))
    doing = f"CASE WHEN NOT {there['theirs']} THEN 'deleted' WHEN NOT {there['ours']} THEN 'added' ELSE 'updated' END"
    kind = (
        f"CASE WHEN NOT {there['base']} THEN 'both added' WHEN NOT {there['theirs']} THEN 'updated here, deleted there'"
        f" WHEN NOT {there['ours']} THEN 'deleted here, updated there' ELSE 'both updated' END"
    )
    joined = "temp.lake_merge_base base FULL JOIN temp.lake_merge_theirs theirs ON theirs.id = base.id"
    joined += " FULL JOIN temp.lake_merge_ours ours ON ours.id = coalesce(base.id, theirs.id)"
    for other in others:
        joined += f" LEFT JOIN temp.lake_merge_{other} {other} ON {other}.id = coalesce(base.id, theirs.id, ours.id)"
    return (
        f"SELECT coalesce(base.id, theirs.id, ours.id) AS id, CASE WHEN {changed_here} THEN 'conflict' ELSE {doing} END AS what, {doing} AS doing,"
        f" CASE WHEN {changed_here} THEN {kind} END AS kind"
        f" FROM {joined} WHERE {changed_there} AND NOT ({changed_here} AND NOT {_unlike(table, 'theirs', 'ours', there)})"
    )


def _unlike(table: Table, one: str, other: str, there: Mapping[str, str]) -> str:
    """Whether two versions of a row differ, or only one of them is there."""
    values = " OR ".join(_distinct(f"{one}.c{i}", f"{other}.c{i}", c.type) for i, c in enumerate(table.columns)) or "false"
    return f"({there[one]} <> {there[other]} OR ({there[one]} AND {there[other]} AND ({values})))"


def _distinct(one: str, other: str, kind: str) -> str:
    """Two values may be equal and not the same: 0.0 and -0.0, a month and 30 days."""
    differ = f"{one} IS DISTINCT FROM {other}"
    if kind in _EXACT or kind.startswith("DECIMAL"):
        return differ
    return f"{differ} OR CAST({one} AS VARCHAR) IS DISTINCT FROM CAST({other} AS VARCHAR)"


# What becomes of them.


def taken(*, conflicts_too: bool) -> str:
    """The condition for the rows of which theirs is taken over."""
    return "true" if conflicts_too else "what <> 'conflict'"


def replaced(execution: Execution, ours: TableState, condition: str) -> dict[int, BitMap]:
    """Where ours has the rows that theirs changed or deleted."""
    import numpy as np

    found = execution.engine.work.execute(f"SELECT id FROM {_WAYS} WHERE {condition} AND doing <> 'added' ORDER BY id").fetchnumpy()["id"]
    return row_ids.places(execution, ours, np.asarray(found, dtype=np.int64))


def new_versions(table: Table, condition: str, row_id: str) -> str:
    """A SELECT of the rows, as of `table`, that theirs has of what is taken over, with their ids as `row_id`."""
    columns = ", ".join(f"t.c{i} AS {quote(c.name)}" for i, c in enumerate(table.columns))
    wanted = f"(SELECT id FROM {_WAYS} WHERE {condition})"
    return f"SELECT {columns}, t.id AS {row_id} FROM temp.lake_merge_theirs t SEMI JOIN {wanted} w ON w.id = t.id ORDER BY t.id"


def conflicts(table: Table) -> str:
    """A SELECT of the rows that both changed, as `lake.merge_conflicts` shows them."""

    def version(side: str) -> str:
        shown = ", ".join(f"{quote(c.name)} := {side}.c{i}" for i, c in enumerate(table.columns))
        return f"CASE WHEN {side}.id IS NOT NULL THEN CAST(to_json(struct_pack({shown})) AS VARCHAR) END"

    return (
        f"SELECT {literal(table.qualified)}, w.id, w.kind, {version('base')}, {version('ours')}, {version('theirs')} FROM {_WAYS} w"
        " LEFT JOIN temp.lake_merge_base base ON base.id = w.id LEFT JOIN temp.lake_merge_ours ours ON ours.id = w.id"
        " LEFT JOIN temp.lake_merge_theirs theirs ON theirs.id = w.id WHERE w.what = 'conflict' ORDER BY w.id"
    )


def shown_keys(execution: Execution, table: Table, most: int) -> tuple[str, ...]:
    """Up to `most` of the rows that both changed, by their key, or by row id where the table has none."""
    columns = {c.field_id: (f"c{i}", c.name) for i, c in enumerate(table.columns)}
    key = [columns[field_id] for _, field_id in table.keys[0].columns] if table.keys else []
    joined = f"FROM {_WAYS} w LEFT JOIN temp.lake_merge_base base ON base.id = w.id LEFT JOIN temp.lake_merge_theirs theirs ON theirs.id = w.id"
    value = " || ', ' || ".join(
        f"{literal(name + ': ')} || coalesce(CAST(CASE WHEN base.id IS NULL THEN theirs.{place} ELSE base.{place} END AS VARCHAR), 'NULL')"
        for place, name in key
    )
    found = execution.engine.run(f"SELECT {value or repr('row id ') + ' || w.id'} {joined} WHERE w.what = 'conflict' ORDER BY w.id LIMIT {most}")
    return tuple(row[0] for row in found)


def forget(execution: Execution) -> None:
    """Drops what was put side by side."""
    found = "SELECT table_name FROM system.main.duckdb_tables() WHERE temporary AND starts_with(table_name, 'lake_merge_')"
    for (name,) in execution.engine.work.execute(found).fetchall():
        execution.engine.work.execute(f"DROP TABLE IF EXISTS temp.{name}").fetchall()
