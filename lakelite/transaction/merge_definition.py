"""The definition of a table in a merge of two branches: what both come to, and whether the rows of a side can be read under it. Pure.

A column is known by its field id. The rows of a side have no values of a column that the side dropped, nor of one that the other side put in the
place of one of theirs (another type, CREATE OR REPLACE, RESTORE): then rows go with the definition that was made for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from lakelite.language.constraints import with_ids
from lakelite.model import Column, Field, Table, fold
from lakelite.records import dataclass
from lakelite.storage.fields import dropped_fields, is_descendant
from lakelite.storage.widening import is_widening

_T = TypeVar("_T")
Wins = Literal["theirs", "ours"]
_Columns = tuple[Mapping[int, Column], bool]
"""Those of a side, and whether it put columns in the place of others."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a table that both have: `made` is its definition; `takes`: the rows that theirs changed, all rows of theirs (with those that
    ours changed in their place, or since all of ours are alike), or none.
    `rebuilt`: the columns of `made`, by field id, that one side has under another field id (`converted`).
    """

    theirs: Table
    ours: Table
    made: Table
    takes: Literal["changes", "all", "all and ours", "alike", "nothing"]
    rebuilt: Collection[int] = ()


def merged(base: Table | None, theirs: Table, ours: Table, replaced: Collection[Wins], wins: Wins | None = None) -> Table | None:
    """The definition that both come to, each part of it as the one has it that changed it; None: they changed it in ways that do not go together.
    A part that both changed, and not alike, is as the side that `wins` has it. `replaced`: the sides that put columns in the place of others."""
    if theirs in (base, ours):
        return ours
    if base is None or ours == base:
        return theirs
    try:
        schema_id, schema_name, name = _one_of(_placed(base), _placed(theirs), _placed(ours), wins)
        made = replace(
            ours, schema_id=schema_id, schema_name=schema_name, name=name,
            columns=_columns(base, theirs, ours, replaced, wins), constraints=_set_of(base.constraints, theirs.constraints, ours.constraints),
            view=_one_of(base.view, theirs.view, ours.view, wins), comment=_one_of(base.comment, theirs.comment, ours.comment, wins),
            options=_options(base, theirs, ours, wins), partitioning=_one_of(base.partitioning, theirs.partitioning, ours.partitioning, wins),
        )  # fmt: skip
    except _Unlike:
        return None
    return made if _is_sound(made) and all(_is_divided_as(table, made) for table in (theirs, ours)) else None


def are_alike(theirs: Table, ours: Table) -> bool:
    """Whether only the identities of columns tell the definitions apart: both did the same to the table."""
    return _unnumbered(theirs) == _unnumbered(ours)


def _unnumbered(table: Table) -> object:
    """What is said of a table, with names in the place of field ids. (What a column had at first tells of its rows alone.)"""
    names = {c.field_id: c.name for c in table.columns}
    columns = [(c.name, c.type, c.nullable, c.default, c.comment) for c in table.columns]
    said = [(c.kind, c.name, c.expression, [name for name, _ in c.columns]) for c in table.constraints]
    parts = [(names.get(key.field_id), key.transform, key.buckets) for key in table.partitioning]
    return table.schema_name, table.name, columns, said, parts, table.options, table.comment, table.view


class _Unlike(Exception):
    """Both changed it, and not alike."""


def _one_of(base: _T, theirs: _T, ours: _T, wins: Wins | None) -> _T:
    """The one that was changed, or the one that wins."""
    if theirs in (base, ours):
        return ours
    if ours == base or wins == "theirs":
        return theirs
    if wins is None:
        raise _Unlike
    return ours


def _set_of(base: Collection[_T], theirs: Collection[_T], ours: Collection[_T]) -> tuple[_T, ...]:
    """What neither took away, and what either added."""
    return (*(one for one in ours if one in theirs or one not in base), *(one for one in theirs if one not in base and one not in ours))


def _placed(table: Table) -> tuple[int, str, str]:
    return table.schema_id, table.schema_name, table.name


def _options(base: Table, theirs: Table, ours: Table, wins: Wins | None) -> tuple[tuple[str, str], ...]:
    sides = [dict(table.options) for table in (base, theirs, ours)]
    was, there, here = sides
    values = ((name, _one_of(was.get(name), there.get(name), here.get(name), wins)) for name in sorted(frozenset[str]().union(*sides)))
    return tuple((name, value) for name, value in values if value is not None)


def _columns(base: Table, theirs: Table, ours: Table, replaced: Collection[Wins], wins: Wins | None) -> tuple[Column, ...]:
    before, there, here = ({c.field_id: c for c in table.columns} for table in (base, theirs, ours))
    left = _left_out(before, (there, "theirs" in replaced), (here, "ours" in replaced), wins)
    theirs_kept, ours_kept = ({k: c for k, c in side.items() if k in before or k not in left} for side in (there, here))
    ids = [k for k in _order(before, theirs_kept, ours_kept, wins) if k not in left]
    return tuple(_column(before.get(k), there[k], here[k], wins) if k in there and k in here else (there.get(k) or here[k]) for k in ids)


def _left_out(before: Mapping[int, Column], there: _Columns, here: _Columns, wins: Wins | None) -> Collection[int]:
    """The columns that go: that one of both has no more, or has another one in the place of."""
    left = set[int]()
    for k in before.keys() - (there[0].keys() & here[0].keys()):
        heirs = [_heir(before[k], before, *side) for side in (there, here)]
        chosen = _one_of(before[k], heirs[1] if _are_alike(*heirs) else heirs[0], heirs[1], wins)
        left |= {k, *(heir.field_id for heir in heirs if heir is not None)} - ({chosen.field_id} if chosen is not None else set())
    return left


def _heir(column: Column, before: Mapping[int, Column], side: Mapping[int, Column], is_replaced: bool) -> Column | None:
    """The column as a side has it, or the one that this side put in its place: made of it, or of its name (else that is one that was added)."""
    others = [c for k, c in side.items() if k not in before]
    made_of = next((c for c in others if is_descendant(c, column)), None)
    return side.get(column.field_id) or made_of or next((c for c in others if is_replaced and fold(c.name) == fold(column.name)), None)


def _are_alike(theirs: Column | None, ours: Column | None) -> bool:
    """Whether both made the same of a column: only the values tell them apart."""
    if theirs is None or ours is None or not is_descendant(theirs, ours):
        return False
    return replace(theirs, stored=replace(theirs.stored, field_id=ours.field_id)) == ours


def _order(before: Mapping[int, Column], there: Mapping[int, Column], here: Mapping[int, Column], wins: Wins | None) -> Sequence[int]:
    """The columns as the one has them that put them in another order, or put others between them; those that the other one added are behind,
    or in the place of one of that name which it dropped. Where one `wins`, as that one has them."""
    if wins is None and (list(there) == list(before) or list(here) == list(before)):
        return list(here if list(there) == list(before) else there)
    common = before.keys() & there.keys() & here.keys()
    known, theirs, ours = ([k for k in side if k in common] for side in (before, there, here))
    first, second = (here, there) if wins == "ours" or (wins is None and _one_of(known, theirs, ours, None) == ours) else (there, here)
    added = {fold(c.name): k for k, c in second.items() if k not in before and k not in first}
    places = [added.pop(fold(c.name), k) if k not in second and k in before else k for k, c in first.items()]
    return [*places, *added.values()]


def _column(base: Column | None, theirs: Column, ours: Column, wins: Wins | None) -> Column:
    if base is None:
        return _one_of(None, theirs, ours, wins) or ours
    name = _one_of(base.name, theirs.name, ours.name, wins)
    was, there, here = ((c.type, replace(c.stored, name="")) for c in (base, theirs, ours))
    kind, stored = _one_of(was, there, here, wins)
    return replace(
        ours, name=name, type=kind, stored=replace(stored, name=name), nullable=_one_of(base.nullable, theirs.nullable, ours.nullable, wins),
        default=_one_of(base.default, theirs.default, ours.default, wins), comment=_one_of(base.comment, theirs.comment, ours.comment, wins),
    )  # fmt: skip


def _is_divided_as(side: Table, made: Table) -> bool:
    """Whether the columns by which files of a side were divided are what they were: a wider type has other buckets."""
    has, now = ({c.field_id: c.type for c in table.columns} for table in (side, made))
    return all(has[key.field_id] == now.get(key.field_id, has[key.field_id]) for key in side.partitioning)


def _is_sound(table: Table) -> bool:
    """Whether the parts go together: names that are given once, constraints and partitioning over columns that are there, and called so."""
    names = {c.field_id: c.name for c in table.columns}
    optional = {c.field_id for c in table.columns if c.nullable}
    primary = [c for c in table.constraints if c.kind == "primary key"]
    given = [fold(c.name) for c in table.constraints if c.name is not None]
    return (
        len({fold(name) for name in names.values()}) == len(names)
        and all(fold(names.get(field_id, "")) == fold(name) for c in table.constraints for name, field_id in c.columns)
        and len(primary) <= 1
        and not any(field_id in optional for c in primary for _, field_id in c.columns)
        and len(set(given)) == len(given)
        and all(key.field_id in names for key in table.partitioning)
    )


def can_read(base: Table | None, side: Table, made: Table, *, is_replaced: bool, rebuilt: Collection[int] = ()) -> bool:
    """Whether rows of `side` have all values that `made` asks for, but for the columns `rebuilt`. `is_replaced`: the other side put columns in
    the place of others."""
    has, known = _fields(side), _fields(base or made)
    wanted = _fields(replace(made, columns=tuple(c for c in made.columns if c.field_id not in rebuilt)))
    if any(field_id not in has and (is_replaced or field_id in known) for field_id in wanted):
        return False
    common = ((has[k], wanted[k]) for k in wanted.keys() & has.keys())
    return all(old.children or new.children or is_widening(old.type, new.type) for old, new in common)


def converted(side: Table, made: Table) -> dict[int, Column]:
    """The columns of `made`, by field id, that `side` has under another one, of which they differ in fields inside: as it has them."""
    has, wanted = {c.field_id for c in side.columns}, {c.field_id for c in made.columns}
    others = [c for c in side.columns if c.field_id not in wanted]
    return {new.field_id: old for new in made.columns if new.field_id not in has for old in others if is_descendant(new, old)}


def is_replaced(base: Table | None, side: Table, kinds: frozenset[str]) -> bool:
    """Whether a side, which did these kinds of change, put columns in the place of others, and wrote or took back all rows with them."""
    known, has = _fields(base or side).keys(), _fields(side).keys()
    return bool(has - known) and ("rewrite" in kinds or ("overwrite" in kinds and bool(known - has)))


def lost(base: Table, side: Table, made: Table, rebuilt: Mapping[int, Column]) -> list[tuple[Column, str]]:
    """The columns, as `side` has them, that base had, and that are not, or not whole, in `made`; with the type of what is lost of each."""
    known, wanted = _fields(base).keys(), _fields(made).keys()
    become = {rebuilt[c.field_id].field_id: c for c in made.columns if c.field_id in rebuilt}
    gone = [c for c in side.columns if {f.field_id for f in _within(c.stored)} & known - wanted]
    types = ((c, dropped_fields(c, become[c.field_id]) if c.field_id in become else c.type) for c in gone)
    return [(c, kind) for c, kind in types if kind is not None]


def both_added(base: Table | None, theirs: Table, ours: Table) -> str | None:
    """Why definitions do not go together where both sides added columns of one name, and what helps; None: they did not."""
    known = {c.field_id for c in base.columns} if base is not None else set()
    there = {fold(c.name) for c in theirs.columns if c.field_id not in known}
    names = [c.name for c in ours.columns if c.field_id not in known and fold(c.name) in there and c not in theirs.columns]
    return f"both branches added a column {', '.join(names)} to its definition: DROP it on one of them first" if names else None


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
