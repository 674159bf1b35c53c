"""Where the keys of some rows may be among other rows of their table: the fragments that statistics and key filters leave.

A filter knows the keys of one file by DuckDB's hash of them (storage/key_filters.py). It is made when the rows of a table with keys
are written or moved, and else when so many keys are looked up that the file would be read anyway. Changes no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import duckdb

from lakelite.contents import TableState
from lakelite.model import Constraint, Fragment, Table, decimal_of, fold, quote
from lakelite.records import dataclass
from lakelite.storage import arrays, fingerprints, types
from lakelite.storage.fingerprints import Fingerprints
from lakelite.storage.key_filters import FILTERED_ROWS
from lakelite.storage.statistics import INTEGERS, may_share
from lakelite.transaction.execution import Execution

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MOST_KEYS = 100_000
"""The keys of more rows are looked up without filters: most of the columns would be read all the same."""
_LISTED_KEYS = 50  # up to so many, DuckDB passes over row groups in which none of them can be
_HASHED_BY_VALUE = INTEGERS | frozenset("UHUGEINT BOOLEAN VARCHAR BLOB DATE TIME TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS UUID".split())
"""Types (and DECIMAL) of which equal values have the same hash. That of a NaN depends on its sign."""


@dataclass(frozen=True, slots=True)
class Near:
    """`places`: fragments, and a WHERE that the keys k0, k1, … which may be in them meet, or nothing.
    `may_repeat`: two of the rows that are looked up may have one key."""

    places: Sequence[tuple[Sequence[Fragment], str]]
    may_repeat: bool


def near(execution: Execution, rows: TableState, others: TableState, key: Constraint) -> Near:
    """Where in `others` a key of `rows` (of the same table) may be."""
    chosen = by_statistics(rows, others, key)
    count = sum(f.row_count for f in rows.fragments.values())
    if count > MOST_KEYS or not has_filters(rows.table, key):
        return Near([(chosen, "")] if chosen else [], may_repeat=count > 1)
    if count == 1 and not chosen:
        return Near([], may_repeat=False)

    hashes = _hashes(execution, rows, rows.fragments.values(), key)
    places = among(execution, others, chosen, key, hashes)
    return Near(places, may_repeat=len(arrays.distinct(hashes)) < len(hashes))


def among(
    execution: Execution, state: TableState, chosen: Iterable[Fragment], key: Constraint, hashes: NDArray[Any]
) -> list[tuple[list[Fragment], str]]:
    """As `Near.places`: those of the chosen fragments in which keys with these hashes may be."""
    import numpy as np

    whole: list[Fragment] = []
    filtered: list[Fragment] = []
    wanted = np.zeros(len(hashes), dtype=bool)
    for fragment in chosen:
        filter_ = _filter_of(execution, state, fragment, key, len(hashes))
        if filter_ is None:
            whole.append(fragment)
        elif (found := filter_.may_hold(hashes)).any():
            filtered.append(fragment)
            wanted |= found
    some = arrays.distinct(hashes[wanted])
    if len(some) > _LISTED_KEYS:
        whole, filtered = [*whole, *filtered], []
    condition = f" WHERE {hash_of(key)} IN ({', '.join(map(str, some.tolist()))})"
    return [place for place in ((whole, ""), (filtered, condition)) if place[0]]


def make_filters(execution: Execution, state: TableState) -> None:
    """Sees to it that the files of a table have filters of its keys."""
    for key in state.table.keys:
        for fragment in state.fragments.values() if has_filters(state.table, key) else ():
            _filter_of(execution, state, fragment, key, fragment.row_count)


def _filter_of(execution: Execution, state: TableState, fragment: Fragment, key: Constraint, keys: int) -> Fingerprints | None:
    """The filter of a fragment. One that is missing is made where so many `keys` are looked up that they can be in all row groups."""
    if not may_have_filter(state.table, key, fragment):
        return None
    filters, name = execution.engine.key_filters, tag(state.table, key, fragment)
    found = filters.find(fragment, name)
    if found is None and keys * execution.limits.row_group_rows >= fragment.row_count:
        found = filter_of(execution, state.table, fragment, key)
        filters.add(fragment, name, found)
    return found


def filter_of(execution: Execution, table: Table, fragment: Fragment, key: Constraint) -> Fingerprints:
    """The filter of all keys in a file, made from its rows; deleted ones count."""
    return fingerprints.of(_hashes(execution, TableState(table, {fragment.fragment_id: fragment}, {}), [fragment], key))


def may_have_filter(table: Table, key: Constraint, fragment: Fragment) -> bool:
    """Whether there are filters of such keys in such fragments."""
    return fragment.path is not None and fragment.row_count >= FILTERED_ROWS and has_filters(table, key)


def has_filters(table: Table, key: Constraint) -> bool:
    """Whether the types of a key let its values be known by their hashes."""
    return all(type_ in _HASHED_BY_VALUE or decimal_of(type_) is not None for _, type_ in _types(table, key))


def tag(table: Table, key: Constraint, fragment: Fragment) -> str:
    """What a filter is known by. Nothing promises that another version of DuckDB has the same hash function."""
    columns = " ".join(f"{field_id}:{type_}" for field_id, type_ in _types(table, key))
    return f"duckdb {duckdb.__version__}, columns {columns}{_content(fragment)}"


def is_tag_of(tag: str, fragment: Fragment) -> bool:
    """Whether it is of a filter of this file, whatever the key and the version."""
    return tag.endswith(_content(fragment))


def _content(fragment: Fragment) -> str:
    return f" of {fragment.sha256}"


def _types(table: Table, key: Constraint) -> list[tuple[int, str]]:
    """Field id and declared type of each column of the key."""
    declared = {c.field_id: c.type for c in table.columns}
    return [(field_id, declared[field_id]) for _, field_id in key.columns]


def hash_of(key: Constraint) -> str:
    """SQL: the hash of the key k0, k1, …"""
    return f"hash({', '.join(f'k{i}' for i in range(len(key.columns)))})"


def _hashes(execution: Execution, state: TableState, fragments: Iterable[Fragment], key: Constraint) -> NDArray[Any]:
    """The hashes (uint64) of the keys in some fragments."""
    chosen = list(fragments)
    rows = _staged_keys(state, chosen, key)
    if rows is None:
        keys = keys_of(execution, state, chosen, key_names(state.table, key))
        hashes: NDArray[Any] = execution.engine.work.execute(f"SELECT {hash_of(key)} AS h FROM ({keys})").fetchnumpy()["h"]
        return hashes
    columns = {c.field_id: c for c in state.table.columns}
    values = (types.decode(f"f{i}::{columns[i].stored.type}", columns[i].type) for _, i in key.columns)
    named = ", ".join(f"{value} AS k{i}" for i, value in enumerate(values))
    given = " AND ".join(f"k{i} IS NOT NULL" for i in range(len(key.columns)))
    return execution.engine.over(rows, f"SELECT {hash_of(key)} AS h FROM (SELECT {named} FROM lake_arrow) WHERE {given}")["h"]


def _staged_keys(state: TableState, fragments: Sequence[Fragment], key: Constraint) -> pa.Table | None:
    """The stored values of the key, if all of the rows have just been staged inline: to take them over into DuckDB would take as long again."""
    import pyarrow as pa

    names = [f"f{field_id}" for _, field_id in key.columns]
    ipcs = [state.staged_rows.get(f.fragment_id) for f in fragments if f.fragment_id not in state.vectors]
    tables = [pa.ipc.open_stream(ipc).read_all() for ipc in ipcs if ipc is not None]
    if not tables or len(tables) < len(fragments) or any(not set(names) <= set(table.column_names) for table in tables):
        return None
    return pa.concat_tables([table.select(names) for table in tables])


def key_names(table: Table, key: Constraint) -> list[str]:
    """What the columns of the key are called now."""
    named = {c.field_id: c.name for c in table.columns}
    return [named[field_id] for _, field_id in key.columns]


def keys_of(execution: Execution, state: TableState, fragments: Iterable[Fragment], names: Sequence[str], *, few: bool = False) -> str:
    """A SELECT of the keys, as k0, k1, …, in some fragments of a table. A key with a NULL is none. `few`: as of `Engine.columns`."""
    rows = execution.engine.columns(state, fragments, frozenset(map(fold, names)), few=few)
    columns = ", ".join(f"{quote(name)} AS k{i}" for i, name in enumerate(names))
    return f"SELECT {columns} FROM ({rows}) WHERE {' AND '.join(f'{quote(name)} IS NOT NULL' for name in names)}"


def by_statistics(rows: TableState, others: TableState, key: Constraint) -> list[Fragment]:
    """The fragments of `others` that may hold a key of `rows`, by their statistics."""
    columns = _types(rows.table, key)
    return [f for f in others.fragments.values() if any(may_share(mine, f, columns) for mine in rows.fragments.values())]
