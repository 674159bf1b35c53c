"""Columns that were made of other ones by changes of the fields inside of a STRUCT, at any depth. Pure.

Such a column has a field id of its own, since its values were written anew; the fields inside keep theirs (`inherited`). By these, and never by
names, values of the one are read as values of the other: a field that came is NULL, one that went is left out, and another name is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakelite.model import Column, Field, fold, literal
from lakelite.records import dataclass
from lakelite.storage.type_text import Type, map_of, read, sequence, struct
from lakelite.storage.widening import is_widening

_CONTAINERS = ("STRUCT", "LIST", "MAP")
_MAX_LISTS = 6  # DuckDB binds a lambda's body twice: each level that is rebuilt doubles the time to plan a statement


@dataclass(frozen=True, slots=True)
class _Node:
    """A declared type, with the stored field of its values."""

    type: Type
    field: Field

    @property
    def id(self) -> int:
        return self.field.field_id

    @property
    def members(self) -> Sequence[tuple[str, _Node]]:
        """What is inside of a STRUCT, LIST or MAP; nothing else is looked into."""
        if self.type.name not in _CONTAINERS:
            return ()
        return [(name, _Node(kind, field)) for (name, kind), field in zip(self.type.members, self.field.children, strict=True)]

    def is_same_inside(self, other: _Node) -> bool:
        return self.type.text == other.type.text and self.field.children == other.field.children


def _node(column: Column) -> _Node:
    return _Node(read(column.type), column.stored)


# Who is who.


def inherited(new: Column, old: Column, *, renamed: bool = False) -> Column:
    """`new`, whose values were made of those of `old` by a change of fields, with the field ids of the fields inside that are still there: those
    of the same names, or if the change was that one was `renamed`, those in the same places."""
    return replace(new, stored=_with_ids_within(_node(new), _node(old), renamed))


def _with_ids_within(new: _Node, old: _Node, renamed: bool) -> Field:
    if not new.members or new.type.name != old.type.name:
        return new.field
    known = {i if renamed else fold(name): member for i, (name, member) in enumerate(old.members)}
    found = [(known.get(i if renamed else fold(name)), member) for i, (name, member) in enumerate(new.members)]
    children = (member.field if was is None or not _holds(was, member) else _with_ids(member, was, renamed) for was, member in found)
    return replace(new.field, children=tuple(children))


def _with_ids(new: _Node, old: _Node, renamed: bool) -> Field:
    if new.members:
        return replace(_with_ids_within(new, old, renamed), field_id=old.id)
    return replace(new.field, field_id=old.id, children=old.field.children)


def _holds(old: _Node, new: _Node) -> bool:
    return old.type.name == new.type.name if new.members else is_widening(old.type.text, new.type.text)


def is_descendant(new: Column, old: Column) -> bool:
    """Whether `new` is another column that was made of `old`, or `old` of it, and has a place for values of it: some fields inside are the same,
    and none of them has become another type that does not hold all values."""
    if new.field_id == old.field_id:
        return False
    there, here = _node(old), _node(new)
    return bool(there.members) and _lists(here.type) <= _MAX_LISTS and _is_readable(there, here)


def _lists(kind: Type) -> int:
    return (kind.name in ("LIST", "MAP")) + max((_lists(member) for _, member in kind.members), default=0)


def _is_readable(old: _Node, new: _Node) -> bool:
    if not _holds(old, new):
        return False
    both = _shared(old, new)
    if old.type.name == "STRUCT":
        return bool(both) and all(_is_readable(one, other) for one, other in both)
    if old.type.name == "MAP" and (len(both) < 2 or not both[0][0].is_same_inside(both[0][1])):  # two keys of which fields went could become one
        return False
    return len(both) == len(new.members) and all(_is_readable(one, other) for one, other in both)


def _shared(old: _Node, new: _Node) -> list[tuple[_Node, _Node]]:
    known = {member.id: member for _, member in old.members}
    return [(known[member.id], member) for _, member in new.members if member.id in known]


# Their values.


def converted(value: str, old: Column, new: Column) -> str:
    """SQL: a value of `old` as one of its descendant."""
    return f"CAST({_converted(value, _node(old), _node(new), 1)} AS {new.type})"


def _converted(value: str, old: _Node, new: _Node, depth: int) -> str:
    if not new.members or old.is_same_inside(new):
        return value
    if new.type.name == "STRUCT":
        return f"CASE WHEN {value} IS NOT NULL THEN {_packed(value, old, new, depth)} END"
    inside = f"e{depth}"
    if new.type.name == "LIST":
        (one,), (other,) = old.members, new.members
        return f"list_transform({value}, lambda {inside}: {_converted(inside, one[1], other[1], depth + 1)})"
    return f"map_from_entries(list_transform(map_entries({value}), lambda {inside}: {_packed(inside, old, new, depth + 1)}))"


def _packed(value: str, old: _Node, new: _Node, depth: int) -> str:
    known = {member.id: (name, member) for name, member in old.members}

    def part(member: _Node) -> str:
        if member.id not in known:
            return f"CAST(NULL AS {member.type.text})"
        name, was = known[member.id]
        return _converted(f"struct_extract({value}, {literal(name)})", was, member, depth)

    return "{" + ", ".join(f"{literal(name)}: {part(member)}" for name, member in new.members) + "}"


def dropped_fields(old: Column, new: Column) -> str | None:
    """The type of that part of values of `old` which has no place in its descendant; None if all has one."""
    left = _left(_node(old), _node(new))
    return None if left is None else left.text


def _left(old: _Node, new: _Node) -> Type | None:
    if not old.members or old.is_same_inside(new):
        return None
    known = {member.id: member for _, member in new.members}
    parts = ((name, _left(member, known[member.id]) if member.id in known else member.type) for name, member in old.members)
    left = [(name, part) for name, part in parts if part is not None]
    if not left or old.type.name == "STRUCT":
        return struct(left) if left else None
    inner = left[-1][1]
    return sequence(inner) if old.type.name == "LIST" else map_of(old.type.members[0][1], inner)
