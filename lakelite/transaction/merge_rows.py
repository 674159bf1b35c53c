"""The rows of one table in a merge of two branches: three versions of each row that theirs may have changed, and what becomes of it.

    candidates   the ids of the rows that theirs touched since they met, by deltas
    three_ways   the versions that base, theirs and ours have of them, side by side in DuckDB
    outcome      per row: nothing to do, theirs is taken over, or both changed it, and not alike

Rows are known by their ids, which all branches share, and compared by their values. Cost follows the candidates, not the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from lakelite import deletion
from lakelite.composition import Unplaced
from lakelite.contents import TableState
from lakelite.model import Column, Table, literal, quote
from lakelite.records import dataclass
from lakelite.storage import arrays, fields
from lakelite.storage.scan import Addressed
from lakelite.transaction import row_ids
from lakelite.transaction.delta import Delta
from lakelite.transaction.execution import Execution

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

Taking = Literal["theirs", "ours"]
_SIDES = ("base", "theirs", "ours")
_EXACT = frozenset(
    "BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT VARCHAR BLOB UUID DATE TIMESTAMP".split()
)
WAYS = "temp.lake_merge_ways"
MEETING = "t BIGINT, o BIGINT, key VARCHAR"
"""What merge_keys.py finds: row `t`, which may be taken over, has a key that another row `o` of the side that it comes to has."""


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
    execution: Execution,
    table: Table,
    bases: Sequence[TableState | None],
    theirs: TableState,
    ours: TableState,
    ids: NDArray[Any],
    *,
    rebuilt: Collection[int] = (),
    taking: Taking = "theirs",
) -> None:
    """Puts the versions of the rows with these ids side by side, as rows of `table`, for the functions below to read. A base of None had no
    such table; several bases have to agree on a row, or it is not known what it was: then both count as having changed it.

    `taking`: whose changes come to the other side. `rebuilt`: the columns of `table` that a side may have under another field id.
    """
    states = {"base": bases[0], "theirs": theirs, "ours": ours, **{f"base_{i}": base for i, base in enumerate(bases) if i}}
    read: dict[int, BitMap] = {}  # where the rows of the base stand; a row that stands there for another side too is the same one
    for side, state in states.items():
        places = {} if state is None else row_ids.places(execution, state, ids)
        same = {k: found for k, positions in places.items() if k in read and (found := positions & read[k])}
        rest = {k: left for k, positions in places.items() if (left := positions - same[k] if k in same else positions)}
        parts = [] if state is None or not rest else [_rows(execution, state, table, rest, rebuilt)]
        if same:
            _put(execution, "same", same, {k: k for k in same})
            parts.append("SELECT b.* FROM temp.lake_merge_base b SEMI JOIN temp.lake_merge_same s ON s.source = b.fragment AND s.position = b.place")
        execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_{side} AS {' UNION ALL '.join(parts) or _nothing(table)}")
        if side == "base":
            read = places
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_meetings ({MEETING})")
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_ways AS {_ways(table, len(bases), taking)}")


def counted(execution: Execution) -> Counts:
    """What is to become of the rows that were put side by side."""
    sums = ", ".join(f"count(*) FILTER (what = {literal(what)})" for what in ("added", "updated", "deleted", "conflict"))
    return Counts(*execution.engine.run(f"SELECT {sums} FROM {WAYS}")[0])


def are_updated(execution: Execution, parts: Sequence[tuple[Column, str]], base: TableState, side: TableState, ids: NDArray[Any]) -> bool:
    """Whether a row with one of these ids, in `base` and in `side`, has another value in one of the columns, which are as `side` has them; of
    each only what its type of `parts` has counts."""
    table = replace(side.table, columns=tuple(column for column, _ in parts))
    for name, state in (("base", base), ("theirs", side)):
        put_rows(execution, name, state, table, ids, ())
    joined = "temp.lake_merge_base base JOIN temp.lake_merge_theirs theirs ON theirs.id = base.id"
    differ = " OR ".join(_distinct(f"CAST(base.c{i} AS {kind})", f"CAST(theirs.c{i} AS {kind})", kind) for i, (_, kind) in enumerate(parts))
    return bool(execution.engine.run(f"SELECT 1 FROM {joined} WHERE {differ} LIMIT 1"))


def are_alike(execution: Execution, theirs: TableState, ours: TableState) -> bool:
    """Whether two tables with the same columns, by their places, have the same rows under the same ids. Reads both as a whole."""
    if not (theirs.row_count and ours.row_count):
        return theirs.row_count == ours.row_count
    one, other = (f"({scanned(execution, state, state.table, ())[0]}) {name}" for name, state in (("theirs", theirs), ("ours", ours)))
    differ = f"theirs.id IS NULL OR ours.id IS NULL OR {values_differ(ours.table, 'theirs', 'ours')}"
    return not execution.engine.run(f"SELECT 1 FROM {one} FULL JOIN {other} ON ours.id = theirs.id WHERE {differ} LIMIT 1")


def _nothing(table: Table) -> str:
    columns = "".join(f", NULL::{c.type} AS c{i}" for i, c in enumerate(table.columns))
    return f"SELECT 0::BIGINT AS id, 0::BIGINT AS fragment, 0::BIGINT AS place{columns} WHERE false"


def _rows(execution: Execution, state: TableState, table: Table, places: Mapping[int, BitMap], rebuilt: Collection[int]) -> str:
    """A SELECT of id, fragment, place and c0, c1, … of the rows of `state` at these places, by fragment id."""
    rows, scan = scanned(execution, TableState(state.table, {k: state.fragments[k] for k in places}, {}), table, rebuilt)
    _put(execution, "places", places, {f.fragment_id: source for source, f in scan.fragments.items()})
    return f"{rows} JOIN temp.lake_merge_places d ON d.source = p.{scan.source} AND d.position = p.{scan.position}"


def scanned(execution: Execution, state: TableState, table: Table, rebuilt: Collection[int]) -> tuple[str, Addressed]:
    """A SELECT of id, fragment, place and c0, c1, … of all rows of `state` (one fragment at least), as rows of `table`; `p` is what it reads."""
    sources = [_source(state.table, c) if c.field_id in rebuilt else c for c in table.columns]
    shown = tuple(
        old if old is c else replace(old, name=c.name, stored=replace(old.stored, name=c.name)) for old, c in zip(sources, table.columns, strict=True)
    )
    scan = execution.engine.addressed(state.defined_as(replace(table, columns=shown)), state.fragments.values())
    known = ", ".join(f"({source}, {f.fragment_id}, {f.first_row_id})" for source, f in scan.fragments.items())
    values = ((f"p.{quote(c.name)}", old, c) for old, c in zip(sources, table.columns, strict=True))
    columns = "".join(f", {v if old is c else fields.converted(v, old, c)} AS c{i}" for i, (v, old, c) in enumerate(values))
    text = (
        f"SELECT coalesce(p.{scan.row_id}, m.first + p.{scan.position})::BIGINT AS id, m.fragment::BIGINT AS fragment,"
        f" p.{scan.position}::BIGINT AS place{columns} FROM ({scan.sql}) p"
        f" JOIN (VALUES {known}) m(source, fragment, first) ON m.source = p.{scan.source}"
    )
    return text, scan


def put_rows(execution: Execution, name: str, state: TableState, table: Table, ids: NDArray[Any], rebuilt: Collection[int]) -> None:
    """Makes a temporary table of the rows of `state` with these ids (sorted), as `three_ways` does of those that it compares."""
    places = row_ids.places(execution, state, ids) if len(ids) else {}
    rows = _rows(execution, state, table, places, rebuilt) if places else _nothing(table)
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_{name} AS {rows}")


def _source(table: Table, column: Column) -> Column:
    """The column whose values are to be those of `column`: that one, or one of other fields inside."""
    is_there = any(c.field_id == column.field_id for c in table.columns)
    return column if is_there else next((c for c in table.columns if fields.is_descendant(column, c)), column)


def _put(execution: Execution, name: str, places: Mapping[int, BitMap], numbers: Mapping[int, int]) -> None:
    """Makes a temporary table of places; `numbers`: what stands for each fragment."""
    import numpy as np

    sources = np.repeat([numbers[k] for k in places], [len(positions) for positions in places.values()])
    positions = np.concatenate([deletion.to_array(positions) for positions in places.values()])
    execution.engine.work.register("lake_arrow", arrays.table({"source": sources, "position": positions}))
    try:
        execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_{name} AS SELECT * FROM lake_arrow")
    finally:
        execution.engine.work.unregister("lake_arrow")


def _ways(table: Table, bases: int, taking: Taking) -> str:
    """A SELECT of id, `what` is to be done, and `kind`, what both did, for each row that the one changed and the other not in the same way."""
    onto = "ours" if taking == "theirs" else "theirs"
    others = [f"base_{i}" for i in range(1, bases)]
    there = {side: f"({side}.id IS NOT NULL)" for side in (*_SIDES, *others)}
    torn = " OR ".join(_unlike(table, "base", other, there) for other in others) or "false"
    changed, changed_too = (f"({_unlike(table, 'base', side, there)} OR {torn})" for side in (taking, onto))
    doing = f"CASE WHEN NOT {there[taking]} THEN 'deleted' WHEN NOT {there[onto]} THEN 'added' ELSE 'updated' END"
    kind = (
        f"CASE WHEN NOT {there['base']} THEN 'both added' WHEN NOT {there['theirs']} THEN 'updated here, deleted there'"
        f" WHEN NOT {there['ours']} THEN 'deleted here, updated there' ELSE 'both updated' END"
    )
    joined = "temp.lake_merge_base base FULL JOIN temp.lake_merge_theirs theirs ON theirs.id = base.id"
    joined += " FULL JOIN temp.lake_merge_ours ours ON ours.id = coalesce(base.id, theirs.id)"
    for other in others:
        joined += f" LEFT JOIN temp.lake_merge_{other} {other} ON {other}.id = coalesce(base.id, theirs.id, ours.id)"
    return (
        f"SELECT coalesce(base.id, theirs.id, ours.id) AS id, CASE WHEN {changed_too} THEN 'conflict' ELSE {doing} END AS what, {doing} AS doing,"
        f" CASE WHEN {changed_too} THEN {kind} END AS kind"
        f" FROM {joined} WHERE {changed} AND NOT ({changed_too} AND NOT {_unlike(table, 'theirs', 'ours', there)})"
    )


def _unlike(table: Table, one: str, other: str, there: Mapping[str, str]) -> str:
    """Whether two versions of a row differ, or only one of them is there."""
    return f"({there[one]} <> {there[other]} OR ({there[one]} AND {there[other]} AND ({values_differ(table, one, other)})))"


def values_differ(table: Table, one: str, other: str) -> str:
    return " OR ".join(_distinct(f"{one}.c{i}", f"{other}.c{i}", c.type) for i, c in enumerate(table.columns)) or "false"


def _distinct(one: str, other: str, kind: str) -> str:
    """Two values may be equal and not the same: 0.0 and -0.0, a month and 30 days."""
    differ = f"{one} IS DISTINCT FROM {other}"
    if kind in _EXACT or kind.startswith("DECIMAL"):
        return differ
    return f"{differ} OR CAST({one} AS VARCHAR) IS DISTINCT FROM CAST({other} AS VARCHAR)"


# What becomes of them.


def taken(*, conflicts_too: bool) -> str:
    """The condition for the rows that are taken over."""
    return "what <> 'kept'" if conflicts_too else "what NOT IN ('kept', 'conflict')"


def replaced(execution: Execution, onto: TableState, condition: str) -> dict[int, BitMap]:
    """Where the side that they come to has the rows that were changed or deleted, and those whose keys they take."""
    import numpy as np

    gone = f"SELECT id FROM {WAYS} WHERE {condition} AND doing <> 'added'"
    met = f"SELECT m.o FROM temp.lake_merge_meetings m JOIN {WAYS} w ON w.id = m.t WHERE {condition}"
    found = execution.engine.work.execute(f"SELECT id FROM ({gone} UNION {met}) ORDER BY id").fetchnumpy()["id"]
    return row_ids.places(execution, onto, np.asarray(found, dtype=np.int64))


def new_versions(table: Table, condition: str, row_id: str, taking: Taking) -> str:
    """A SELECT of the rows, as of `table`, that are taken over, with their ids as `row_id`."""
    columns = ", ".join(f"t.c{i} AS {quote(c.name)}" for i, c in enumerate(table.columns))
    wanted = f"(SELECT id FROM {WAYS} WHERE {condition})"
    return f"SELECT {columns}, t.id AS {row_id} FROM temp.lake_merge_{taking} t SEMI JOIN {wanted} w ON w.id = t.id ORDER BY t.id"


def digest(table: Table, side: str) -> str:
    """Of all values of a version of a row, and of which columns they are; NULL where there is no such version."""
    values = ", ".join(f"CAST({side}.c{i} AS VARCHAR)" for i in range(len(table.columns)))
    columns = literal(" ".join(str(c.field_id) for c in table.columns))
    return f"CASE WHEN {side}.id IS NOT NULL THEN sha256({columns} || CAST(to_json([{values}]::VARCHAR[]) AS VARCHAR)) END"


def forget(execution: Execution) -> None:
    """Drops what was put side by side."""
    found = "SELECT table_name FROM system.main.duckdb_tables() WHERE temporary AND starts_with(table_name, 'lake_merge_')"
    for (name,) in execution.engine.work.execute(found).fetchall():
        execution.engine.work.execute(f"DROP TABLE IF EXISTS temp.{name}").fetchall()
