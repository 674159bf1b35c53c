"""How a table is kept: its own limits and its partitioning, from what a statement says of them. Looks at definitions only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from lakelite.bounds import TABLE_OPTIONS, value_of
from lakelite.errors import NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import Column, PartitionKey, Table, Transform, fold
from lakelite.storage.partitions import can_be
from lakelite.transaction.execution import Call


def tuned(table: Table, tuning: st.Tuning, call: Call) -> Table:
    """The table with the options and the partitioning of a CREATE TABLE.

    ProgrammingError, NotSupportedError: there is no such option, column or kind of partition. DataError: not a sensible value.
    """
    return partitioned(with_options(table, tuning.options, call), tuning.partitioned_by, call)


def of(table: Table) -> st.Tuning:
    """What a CREATE TABLE says to have those of `table`."""
    names = {c.field_id: c.name for c in table.columns}
    keys = (st.PartitionBy(names[k.field_id], None if k.transform == "identity" else k.transform, k.buckets, 0) for k in table.partitioning)
    return st.Tuning(tuple(keys), tuple(st.Option(name, value, 0) for name, value in table.options))


def with_options(table: Table, options: Sequence[st.Option], call: Call) -> Table:
    """The table with these options beside those that it has; without those that have no value."""
    found = dict(table.options)
    given: set[str] = set()
    for option in options:
        name = fold(option.name)
        if name not in TABLE_OPTIONS:
            hint = did_you_mean(name, TABLE_OPTIONS, f"the options are: {listed(TABLE_OPTIONS)}")
            raise ProgrammingError(f'a table has no option "{option.name}"', hint=hint, position=Position.at(call.text, option.offset))
        if name in given:
            raise ProgrammingError(f"the option {name} is given twice", hint="give it once", position=Position.at(call.text, option.offset))
        given.add(name)
        if option.value is None:
            found.pop(name, None)
        else:
            found[name] = str(value_of(name, option.value))
    return replace(table, options=tuple(sorted(found.items())))


def partitioned(table: Table, wanted: Sequence[st.PartitionBy], call: Call) -> Table:
    """The table with this partitioning instead of its own."""
    keys = tuple(_key(table, one, call) for one in wanted)
    twice = next((i for i, key in enumerate(keys) if key in keys[:i]), None)
    if twice is not None:
        at = Position.at(call.text, wanted[twice].offset)
        raise ProgrammingError("PARTITIONED BY names the same thing twice", hint="name it once", position=at)
    return replace(table, partitioning=keys)


def _key(table: Table, wanted: st.PartitionBy, call: Call) -> PartitionKey:
    column = _column(table, wanted, call)
    transform = cast(Transform, wanted.transform or "identity")
    if not can_be(transform, column.type):
        what = f"{wanted.transform}({wanted.column})" if wanted.transform else wanted.column
        hint = "year, month and day take a date or a timestamp, hour a timestamp, bucket a whole number, text, date, timestamp or UUID"
        where = Position.at(call.text, wanted.offset)
        raise NotSupportedError(f"PARTITIONED BY {what} is not supported: {column.name} is {column.type}", hint=hint, position=where)
    return PartitionKey(column.field_id, transform, wanted.buckets)


def _column(table: Table, wanted: st.PartitionBy, call: Call) -> Column:
    for column in table.visible:
        if fold(column.name) == fold(wanted.column):
            return column
    names = [c.name for c in table.visible]
    hint = did_you_mean(wanted.column, names, f"its columns are: {listed(names)}")
    message = f'table {table.qualified} has no column "{wanted.column}"'
    raise ProgrammingError(message, hint=hint, position=Position.at(call.text, wanted.offset))
