"""Types that differ in the fields inside of a STRUCT, at any depth: whether one can be read as the other, field by field of a name. Pure.

DuckDB's cast between two such types goes by name: a field that came is NULL, one that went is left out.
"""

from __future__ import annotations

from lakelite.model import fold
from lakelite.storage.type_text import Type, map_of, read, sequence, struct
from lakelite.storage.widening import is_widening


def differ_in_fields(old: str, new: str) -> bool:
    """Whether two types (DuckDB's text) differ, and in nothing but fields that came, went, or became wider."""
    return old != new and "STRUCT" in old and _is_readable(read(old), read(new))


def dropped_fields(old: str, new: str) -> str | None:
    """The type of that part of values of `old` which has no place in `new`; None if all has one. The two differ in fields."""
    left = _left(read(old), read(new))
    return None if left is None else left.text


def _is_readable(old: Type, new: Type) -> bool:
    if old.name != new.name or not old.members or old.text == new.text:
        return is_widening(old.text, new.text)
    if old.name == "STRUCT":
        has = {fold(name): member for name, member in old.members}
        both = [(has[fold(name)], member) for name, member in new.members if fold(name) in has]
        return bool(both) and all(_is_readable(one, other) for one, other in both)
    if old.name == "MAP" and old.members[0] != new.members[0]:  # two keys of which fields went could become one
        return False
    return old.name in ("LIST", "MAP") and all(_is_readable(one, other) for (_, one), (_, other) in zip(old.members, new.members, strict=True))


def _left(old: Type, new: Type) -> Type | None:
    if old.text == new.text or old.name not in ("STRUCT", "LIST", "MAP"):
        return None
    if old.name == "STRUCT":
        there = {fold(name): member for name, member in new.members}
        parts = ((name, _left(member, there[fold(name)]) if fold(name) in there else member) for name, member in old.members)
        left = [(name, part) for name, part in parts if part is not None]
        return struct(left) if left else None
    inner = _left(old.members[-1][1], new.members[-1][1])
    if inner is None:
        return None
    return sequence(inner) if old.name == "LIST" else map_of(old.members[0][1], inner)
