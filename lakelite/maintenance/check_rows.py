"""CHECK LAKE: whether the rows of each table meet what its definition promises, by one query for each promise. Reads only.

    not null   no NULL in a NOT NULL column or a primary key
    check      no row for which a CHECK is false
    keys       no value of a PRIMARY KEY or UNIQUE twice
    filters    each key filter is that of its file's keys: one that denies a key would let it in again

Of the tables as the connection sees them. No row comes into Python; memory is DuckDB's (which spills), and the hashes of one file's keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakelite.contents import TableState
from lakelite.language.tokens import shown_name
from lakelite.maintenance.findings import RESTORE, RESTORE_FILE, Finding, guarded
from lakelite.model import Constraint, Fragment, Table, fold, quote
from lakelite.storage import fingerprints
from lakelite.storage.files import filters_file_name
from lakelite.transaction import constraints, key_lookup
from lakelite.transaction.execution import Execution


def findings(execution: Execution, damaged: Collection[int]) -> Iterator[Finding]:
    """What is wrong. `damaged`: fragments that cannot be read; the rows of the others are looked at."""
    for table in execution.view.namespace.tables.values():
        if table.view is None:
            yield from guarded(f"table {_shown(table)}", RESTORE, _of_table(execution, table, damaged))


def _of_table(execution: Execution, table: Table, damaged: Collection[int]) -> Iterator[Finding]:
    whole = execution.view.state(table)
    state = whole.part(f for k, f in whole.fragments.items() if k not in damaged)
    if not state.fragments:
        return
    name = f"table {_shown(table)}"
    yield from guarded(name, RESTORE, _nulls(execution, state))
    fields = {c.field_id for c in table.columns}
    for constraint in (c for c in table.constraints if fields.issuperset(i for _, i in c.columns)):  # else: of `strays` in check.sql
        look = _doubled if constraint.is_key else _broken
        yield from guarded(name, RESTORE, look(execution, state, constraint))
    for fragment in state.fragments.values():
        keys = [key for key in table.keys if fields.issuperset(i for _, i in key.columns) and key_lookup.may_have_filter(table, key, fragment)]
        if keys:
            yield from guarded(_keys_file(fragment), RESTORE_FILE, _of_filters(execution, table, fragment, keys))


def _shown(table: Table) -> str:
    return ".".join(map(shown_name, [table.name] if table.qualified == table.name else [table.schema_name, table.name]))


# Rows.


def _nulls(execution: Execution, state: TableState) -> Iterator[Finding]:
    table = state.table
    primary = {field_id for key in table.keys if key.kind == "primary key" for _, field_id in key.columns}
    demanded = [c for c in table.columns if not c.nullable or c.field_id in primary]
    if not demanded:
        return
    rows = execution.engine.columns(state, state.fragments.values(), frozenset(fold(c.name) for c in demanded))
    counted = ", ".join(f"count(*) FILTER ({quote(c.name)} IS NULL)" for c in demanded)
    for column, count in zip(demanded, execution.engine.run(f"SELECT {counted} FROM ({rows})")[0], strict=True):
        if count:
            name = shown_name(column.name)
            kind = "of the primary key" if column.field_id in primary else "NOT NULL"
            todo = f"give them a value: UPDATE {_shown(table)} SET {name} = … WHERE {name} IS NULL"
            yield Finding("error", f"table {_shown(table)}", f"column {name} is {kind}, and NULL in {_count(count, 'row')}", todo)


def _broken(execution: Execution, state: TableState, check: Constraint) -> Iterator[Finding]:
    ((count,),) = execution.engine.run(f"SELECT count(*) {constraints.breaking(execution.engine, state, check)}")
    if count:
        todo = "UPDATE or DELETE them, or drop the constraint: ALTER TABLE … DROP CONSTRAINT"
        yield Finding("error", f"table {_shown(state.table)}", f"{check.text} is false for {_count(count, 'row')}", todo)


def _doubled(execution: Execution, state: TableState, key: Constraint) -> Iterator[Finding]:
    names = key_lookup.key_names(state.table, key)
    columns = ", ".join(f"k{i}" for i in range(len(names)))
    shown = ", ".join(f"CAST(k{i} AS VARCHAR)" for i in range(len(names)))
    rows = key_lookup.keys_of(execution, state, state.fragments.values(), names)
    doubled = f"SELECT [{shown}] AS shown, count(*) AS n FROM ({rows}) GROUP BY {columns} HAVING count(*) > 1"
    count, surplus, example = execution.engine.run(f"SELECT count(*), sum(n - 1)::BIGINT, min(shown) FROM ({doubled})")[0]
    if count:
        listed = ", ".join(map(shown_name, names))
        such = ", ".join(f"{name}: {value}" for name, value in zip(names, example, strict=True))
        wrong = f"{_count(count, 'value')} of {key.kind} ({listed}) in more than one row, {surplus} too many in all; the first: {such}"
        todo = f"DELETE or UPDATE those too many: SELECT {listed}, count(*) FROM {_shown(state.table)} GROUP BY ALL HAVING count(*) > 1 shows them"
        yield Finding("error", f"table {_shown(state.table)}", wrong, todo)


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


# Key filters.


def _keys_file(fragment: Fragment) -> str:
    assert fragment.path is not None
    return f"data/{fragment.table_id}/{filters_file_name(fragment.path)}"


def _of_filters(execution: Execution, table: Table, fragment: Fragment, keys: list[Constraint]) -> Iterator[Finding]:
    found = execution.engine.key_filters.stored(fragment)
    again = "nothing: it is made again as soon as many keys are looked up"
    if found is None:
        yield Finding("info", _keys_file(fragment), "there is no such key filter: looking up a key reads the data file", again)
        return
    if not found.is_whole:
        yield Finding("info", _keys_file(fragment), "the key filter is damaged, and not used", again)
    if any(not key_lookup.is_tag_of(tag, fragment) for tag in found.filters):
        yield Finding("info", _keys_file(fragment), "it holds the key filter of another file, which is not used", "nothing, or delete it")
    for key in keys:
        content = found.filters.get(key_lookup.tag(table, key, fragment))
        if content is not None and content != fingerprints.encode(key_lookup.filter_of(execution, table, fragment, key)):
            names = ", ".join(map(shown_name, key_lookup.key_names(table, key)))
            todo = "delete this file, which is made again; what CHECK LAKE says of the table's keys tells whether one was doubled"
            yield Finding("error", _keys_file(fragment), f"the filter of ({names}) is not that of the file's keys: a key could be doubled", todo)
