"""CHECK LAKE: whether the rows of each table meet what its definition promises, by one query for each promise. Reads only.

    not null    no NULL in a NOT NULL column or a primary key
    check       no row for which a CHECK is false
    keys        no value of a PRIMARY KEY or UNIQUE twice
    filters     each key filter is that of its file's keys: one that denies a key would let it in again
    partitions  every row of a fragment that is said to hold one is of it
    statistics  no value beyond the bounds by which a fragment is left out, and as many NULLs as they say

At the head of each branch; what is the same on several is looked at once. No row comes into Python; memory is DuckDB's (which spills), and
the hashes of one file's keys.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping

from lakelite.bounds import limits_of
from lakelite.contents import TableState
from lakelite.language.tokens import shown_name
from lakelite.maintenance.findings import RESTORE, RESTORE_FILE, Bounds, Filters, Finding, guarded
from lakelite.model import ZONED, Column, Constraint, Fragment, Statistics, Table, fold, literal, quote
from lakelite.storage import fingerprints
from lakelite.storage.engine import Engine
from lakelite.storage.files import filters_file_name
from lakelite.storage.partitions import can_be, values
from lakelite.storage.statistics import FLOATS, SLACK, is_compared
from lakelite.transaction import constraints, key_lookup
from lakelite.transaction.execution import Execution
from lakelite.transaction.view import LakeView, PastView


def findings(execution: Execution, damaged: Collection[int]) -> Iterator[Finding]:
    """What is wrong. `damaged`: fragments that cannot be read; the rows of the others are looked at."""
    seen: set[Hashable] = set()
    for view, suffix in _views(execution):
        for table in view.namespace.tables.values():
            if table.view is None:
                name = f"table {_shown(table)}{suffix}"
                yield from guarded(name, RESTORE, _of_table(execution, view, table, name, damaged, seen))


def _views(execution: Execution) -> Iterator[tuple[LakeView, str]]:
    """What the connection sees, then the heads of the other branches, pinned, and what to say of where that is. From a past version: of all."""
    yield execution.view, ""
    catalog, is_past = execution.catalog, isinstance(execution.view, PastView)
    execution.pin(min((head for _, head, *_ in catalog.rows("look_branches") if head is not None), default=execution.view.snapshot_id))
    for branch, head, *_ in catalog.rows("look_branches"):
        if head is not None and (is_past or catalog.row("branch_of", snapshot=head)[0] != execution.branch):
            yield LakeView.load(catalog, head), f" on branch {shown_name(branch)}"


def _of_table(execution: Execution, view: LakeView, table: Table, name: str, damaged: Collection[int], seen: set[Hashable]) -> Iterator[Finding]:
    """`seen`: what was looked at before, to which this is added."""
    whole = view.state(table)
    content = (table, *((k, v.positions.serialize()) for k, v in sorted(whole.vectors.items())), *sorted(whole.fragments))
    if content in seen:
        return
    seen.add(content)
    yield from guarded(name, RESTORE, _of_definition(execution, table))
    state = whole.part(f for k, f in whole.fragments.items() if k not in damaged)
    if not state.fragments:
        return
    yield from guarded(name, RESTORE, _nulls(execution, state, name))
    fields = {c.field_id for c in table.columns}
    for constraint in (c for c in table.constraints if fields.issuperset(i for _, i in c.columns)):  # else: of `strays` in check.sql
        look = _doubled if constraint.is_key else _broken
        yield from guarded(name, RESTORE, look(execution, state, name, constraint))
    keys = [key for key in table.keys if fields.issuperset(i for _, i in key.columns)]
    for fragment in state.fragments.values():
        tags = {key_lookup.tag(table, key, fragment): key for key in keys if key_lookup.may_have_filter(table, key, fragment)}
        if tags.keys() - seen:
            yield from guarded(_keys_file(fragment), RESTORE_FILE, _of_filters(execution, table, fragment, tags))
        if fragment.partition and fragment not in seen:
            yield from guarded(name, RESTORE, _of_partition(execution.engine, state, fragment))
        if fragment not in seen:
            yield from guarded(name, RESTORE, _of_statistics(execution.engine, state, fragment))
        seen |= {*tags, fragment}


def _of_definition(execution: Execution, table: Table) -> Iterator[Finding]:
    """Nothing, or the error of what uses it: its types, defaults and options; and keys of its partitions that cannot be."""
    execution.engine.stage(table)
    limits_of(table, execution.limits)
    types = {c.field_id: c.type for c in table.columns}
    for key in table.partitioning:
        if key.field_id in types and not can_be(key.transform, types[key.field_id]):
            what = f"it is partitioned by {key.transform} of a column that is {types[key.field_id]}"
            yield Finding("error", f"table {_shown(table)}", what, RESTORE)


def _shown(table: Table) -> str:
    return ".".join(map(shown_name, [table.name] if table.qualified == table.name else [table.schema_name, table.name]))


# Rows.


def _nulls(execution: Execution, state: TableState, name: str) -> Iterator[Finding]:
    table = state.table
    primary = {field_id for key in table.keys if key.kind == "primary key" for _, field_id in key.columns}
    demanded = [c for c in table.columns if not c.nullable or c.field_id in primary]
    if not demanded:
        return
    rows = execution.engine.columns(state, state.fragments.values(), frozenset(fold(c.name) for c in demanded))
    counted = ", ".join(f"count(*) FILTER ({quote(c.name)} IS NULL)" for c in demanded)
    for column, count in zip(demanded, execution.engine.run(f"SELECT {counted} FROM ({rows})")[0], strict=True):
        if count:
            shown = shown_name(column.name)
            kind = "of the primary key" if column.field_id in primary else "NOT NULL"
            todo = f"give them a value: UPDATE {_shown(table)} SET {shown} = … WHERE {shown} IS NULL"
            yield Finding("error", name, f"column {shown} is {kind}, and NULL in {_count(count, 'row')}", todo)


def _broken(execution: Execution, state: TableState, name: str, check: Constraint) -> Iterator[Finding]:
    ((count,),) = execution.engine.run(f"SELECT count(*) {constraints.breaking(execution.engine, state, check)}")
    if count:
        todo = "UPDATE or DELETE them, or drop the constraint: ALTER TABLE … DROP CONSTRAINT"
        yield Finding("error", name, f"{check.text} is false for {_count(count, 'row')}", todo)


def _doubled(execution: Execution, state: TableState, name: str, key: Constraint) -> Iterator[Finding]:
    names = key_lookup.key_names(state.table, key)
    columns = ", ".join(f"k{i}" for i in range(len(names)))
    shown = ", ".join(f"CAST(k{i} AS VARCHAR)" for i in range(len(names)))
    rows = key_lookup.keys_of(execution, state, state.fragments.values(), names)
    doubled = f"SELECT [{shown}] AS shown, count(*) AS n FROM ({rows}) GROUP BY {columns} HAVING count(*) > 1"
    count, surplus, example = execution.engine.run(f"SELECT count(*), sum(n - 1)::BIGINT, min(shown) FROM ({doubled})")[0]
    if count:
        listed = ", ".join(map(shown_name, names))
        such = ", ".join(f"{column}: {value}" for column, value in zip(names, example, strict=True))
        wrong = f"{_count(count, 'value')} of {key.kind} ({listed}) in more than one row, {surplus} too many in all; the first: {such}"
        todo = f"DELETE or UPDATE those too many: SELECT {listed}, count(*) FROM {_shown(state.table)} GROUP BY ALL HAVING count(*) > 1 shows them"
        yield Finding("error", name, wrong, todo)


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


# Key filters.


def _keys_file(fragment: Fragment) -> str:
    assert fragment.path is not None
    return f"data/{fragment.table_id}/{filters_file_name(fragment.path)}"


def _of_filters(execution: Execution, table: Table, fragment: Fragment, tags: Mapping[str, Constraint]) -> Iterator[Finding]:
    """`tags`: by which the filter of each key is known."""
    found = execution.engine.key_filters.stored(fragment)
    assert fragment.path is not None
    cure = Filters(fragment.table_id, filters_file_name(fragment.path))
    again = "nothing: it is made again as soon as many keys are looked up"
    if found is None:
        yield Finding("info", _keys_file(fragment), "there is no such key filter: looking up a key reads the data file", again)
        return
    if not found.is_whole:
        yield Finding("info", _keys_file(fragment), "the key filter is damaged, and not used", again, cure)
    if any(not key_lookup.is_tag_of(tag, fragment) for tag in found.filters):
        yield Finding("info", _keys_file(fragment), "it holds the key filter of another file, which is not used", "nothing, or delete it", cure)
    for tag, key in tags.items():
        content = found.filters.get(tag)
        if content is not None and content != fingerprints.encode(key_lookup.filter_of(execution, table, fragment, key)):
            names = ", ".join(map(shown_name, key_lookup.key_names(table, key)))
            todo = "delete this file, which is made again; what CHECK LAKE says of the table's keys tells whether one was doubled"
            yield Finding(
                "error", _keys_file(fragment), f"the filter of ({names}) is not that of the file's keys: a key could be doubled", todo, cure
            )


# Partitions.


def _of_partition(engine: Engine, state: TableState, fragment: Fragment) -> Iterator[Finding]:
    """Nothing where a column that divided is gone by now."""
    columns = {c.field_id: quote(c.name) for c in state.table.columns}
    if any(key.field_id not in columns for key, _ in fragment.partition):
        return
    scan = engine.addressed(state, [fragment], live_only=False)
    wanted = ", ".join("NULL" if value is None else literal(value) for _, value in fragment.partition)
    found = values(state.table, [key for key, _ in fragment.partition], columns)
    ((count,),) = engine.run(f"SELECT count(*) FROM ({scan.sql}) WHERE {found} IS DISTINCT FROM [{wanted}]::VARCHAR[]")
    if count:
        wrong = f"{count} of its {fragment.row_count} rows are not of the partition that it is said to hold"
        yield Finding("error", f"data/{fragment.table_id}/{fragment.path}", wrong, RESTORE)


# Statistics.


def _of_statistics(engine: Engine, state: TableState, fragment: Fragment) -> Iterator[Finding]:
    """Of the columns that there still are."""
    columns = {c.field_id: c for c in state.table.columns}
    known = [s for s in fragment.statistics if s.field_id in columns and is_compared(columns[s.field_id].type)]
    if not known:
        return
    scan = engine.addressed(state, [fragment], live_only=False)
    counted = ", ".join(
        f"count(*) FILTER ({_beyond(s, columns[s.field_id])}), count(*) FILTER ({quote(columns[s.field_id].name)} IS NULL)" for s in known
    )
    found = engine.run(f"SELECT {counted} FROM ({scan.sql})")[0]
    name = f"fragment {fragment.fragment_id}" if fragment.path is None else f"data/{fragment.table_id}/{fragment.path}"
    for one, beyond, nulls in zip(known, found[::2], found[1::2], strict=True):
        shown, wrong = shown_name(columns[one.field_id].name), []
        if beyond:
            wrong.append(f"{_count(beyond, 'value')} of column {shown} beyond the bounds in the catalog: a WHERE does not find them")
        if one.null_count not in (None, nulls):
            wrong.append(f"column {shown} is NULL in {_count(nulls, 'row')}, the catalog says {one.null_count}")
        if wrong:
            cure = Bounds(fragment.fragment_id, _anew(engine, scan.sql, columns[one.field_id], nulls))
            yield Finding("error", name, "; ".join(wrong), "CHECK LAKE REPAIR writes them anew, if the file is sound", cure)


def _anew(engine: Engine, rows: str, column: Column, nulls: int) -> Statistics:
    """The statistics of a column of some rows. NaN is not within its bounds."""
    name, is_float = quote(column.name), column.type in FLOATS
    wanted = f" FILTER (NOT isnan({name}))" if is_float else ""
    nan = f"count(*) FILTER (isnan({name}))" if is_float else "0"
    value = f"timezone('UTC', {name})" if column.type == ZONED else name
    low, high, may_hold_nan = engine.run(
        f"SELECT CAST(min({value}){wanted} AS VARCHAR), CAST(max({value}){wanted} AS VARCHAR), {nan} > 0 FROM ({rows})"
    )[0]
    if column.type == ZONED:
        low, high = (None if text is None else f"{text}+00" for text in (low, high))
    return Statistics(column.field_id, low, high, nulls, exact=False, may_hold_nan=may_hold_nan)


def _beyond(statistics: Statistics, column: Column) -> str:
    """A condition for values outside of the bounds, not exact for FLOAT and DOUBLE, where NaN always is. (Infinity less infinity is NaN.)"""
    name, is_float = quote(column.name), column.type in FLOATS
    slack = f"(abs({name}) * {SLACK} + 1e-40)" if is_float else "0"
    parts = ["false"]
    for bound, operator, sign in ((statistics.minimum, "<", "-"), (statistics.maximum, ">", "+")):
        if bound is not None:
            limit = f"CAST({literal(bound)} AS {column.type})"
            parts.append(f"({name} {operator} {limit} AND {name} {operator} {limit} {sign} {slack})" if is_float else f"{name} {operator} {limit}")
    outside = " OR ".join(parts)
    return f"({outside}) AND NOT isnan({name})" if is_float and statistics.may_hold_nan else f"({outside})"
