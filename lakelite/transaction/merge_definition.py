"""The definition of a table in a merge of two branches: what both come to, and whether the rows of a side can be read under it. Pure.

A column is known by its field id. The rows of a side have no values of a column that the side dropped, nor of one that the other side put in the
place of one of theirs (another type, CREATE OR REPLACE, RESTORE): then rows go with the definition that was made for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lakelite.language.constraints import with_ids
from lakelite.model import Column, Field, Table, fold
from lakelite.storage.widening import is_widening


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a table that both have: `made` is its definition; `takes`: the rows that theirs changed, all rows of theirs, or none."""

    theirs: Table
    ours: Table
    made: Table
    takes: Literal["changes", "all", "nothing"]


def merged(base: Table | None, theirs: Table, ours: Table) -> Table | None:
    """The definition that both come to; None: they changed it in ways that do not go together."""
    if theirs in (base, ours):
        return ours
    if base is None or ours == base:
        return theirs
    for one, other in ((theirs, ours), (ours, theirs)):
        added = _added(base, one)
        if added is not None and not {fold(c.name) for c in added} & {fold(c.name) for c in other.columns}:
            return replace(other, columns=(*other.columns, *added))
    return None


def _added(base: Table, now: Table) -> tuple[Column, ...] | None:
    """The columns that were added, if nothing else was changed."""
    is_same = now.columns[: len(base.columns)] == base.columns and replace(now, columns=base.columns) == base
    return now.columns[len(base.columns) :] if is_same else None


def can_read(base: Table | None, side: Table, made: Table, *, is_replaced: bool) -> bool:
    """Whether rows of `side` have all values that `made` asks for. `is_replaced`: the other side put columns in the place of others."""
    has, known, wanted = _fields(side), _fields(base or made), _fields(made)
    if any(field_id not in has and (is_replaced or field_id in known) for field_id in wanted):
        return False
    common = ((has[k], wanted[k]) for k in wanted.keys() & has.keys())
    return all(old.children or new.children or is_widening(old.type, new.type) for old, new in common)


def is_replaced(base: Table | None, side: Table, kinds: frozenset[str]) -> bool:
    """Whether a side, which did these kinds of change, put columns in the place of others, and wrote or took back all rows with them."""
    known, has = _fields(base or side).keys(), _fields(side).keys()
    return bool(has - known) and ("rewrite" in kinds or ("overwrite" in kinds and bool(known - has)))


def lost(base: Table | None, side: Table, made: Table) -> Sequence[Column]:
    """The columns, as `side` has them, that base had, and that are not, or not whole, in `made`."""
    known, wanted = _fields(base).keys() if base is not None else frozenset(), _fields(made).keys()
    return [c for c in side.columns if {f.field_id for f in _within(c.stored)} & known - wanted]


def told(base: Table | None, side: Table | None) -> list[str]:
    """What a side did to the definition of a table, in words."""
    if side is None:
        return [] if base is None else ["dropped"]
    if base is None:
        return ["made"]
    name = [f"renamed to {side.qualified}"] if (base.schema_name, base.name) != (side.schema_name, side.name) else []
    described = {"view": "query", "comment": "comment", "options": "options", "partitioning": "partitioning"}
    return [
        *name,
        *_told_columns(base, side),
        *(f"{c.declared} added" for c in side.constraints if with_ids(c) not in map(with_ids, base.constraints)),
        *(f"{c.declared} dropped" for c in base.constraints if with_ids(c) not in map(with_ids, side.constraints)),
        *(f"another {word}" for attribute, word in described.items() if getattr(base, attribute) != getattr(side, attribute)),
    ]


def _told_columns(base: Table, side: Table) -> Iterator[str]:
    known, has = {c.field_id: c for c in base.columns}, {c.field_id: c for c in side.columns}
    lost = {fold(c.name): c for c in base.columns if c.field_id not in has}
    for column in side.columns:
        old = known.get(column.field_id) or lost.pop(fold(column.name), None)
        yield from (f"column {column.name} {column.type} added",) if old is None else _told_column(old, column)
    yield from (f"column {c.name} dropped" for c in lost.values())


def _told_column(old: Column, new: Column) -> Iterator[str]:
    if old.name != new.name:
        yield f"column {old.name} renamed to {new.name}"
    if old.type != new.type:
        yield f"column {new.name} {new.type} instead of {old.type}"
    elif old.field_id != new.field_id:
        yield f"column {new.name} made anew"
    if old.nullable != new.nullable:
        yield f"column {new.name} {'may be NULL' if new.nullable else 'NOT NULL'}"
    if old.default != new.default:
        yield f"column {new.name} {'without a default' if new.default is None else f'DEFAULT {new.default}'}"
    if old.comment != new.comment:
        yield f"column {new.name} has another comment"


def _fields(table: Table) -> dict[int, Field]:
    return {f.field_id: f for c in table.columns for f in _within(c.stored)}


def _within(field: Field) -> Iterator[Field]:
    yield field
    for child in field.children:
        yield from _within(child)
