"""Values as constants of SQL, written by DuckDB itself: for types of which neither Python nor a text holds every value.

Owns the SQL that gives the constant's text. Pure: nothing is run here.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakelite.model import literal, quote
from lakelite.storage.type_text import Type, read


def has_union(type_name: str) -> bool:
    """Whether a UNION is in a type: which member a value is of, its text does not say."""
    return _has_union(read(type_name))


def _has_union(kind: Type) -> bool:
    return kind.name == "UNION" or any(_has_union(member) for _, member in kind.members)


def constant(expression: str, type_name: str) -> str:
    """SQL that gives the text of a constant of exactly that type and value; for NULL it is the text NULL."""
    return _constant(expression, read(type_name), 1)


def _constant(value: str, kind: Type, depth: int) -> str:
    match kind.name:
        case "UNION":
            text = _union(value, kind, depth)
        case "LIST" | "ARRAY":
            text = _around("[", _each(f"{value}::{kind.members[0][1].text}[]", _constant(f"e{depth}", kind.members[0][1], depth + 1), depth), "]")
        case "MAP":
            pair = " || ': ' || ".join(_constant(f"e{depth}.{n}", member, depth + 1) for n, member in kind.members)
            text = _around("MAP {", _each(f"map_entries({value})", pair, depth), "}")
        case "STRUCT":
            fields = [(literal(f"{literal(n)}: "), _constant(f"struct_extract({value}, {literal(n)})", m, depth)) for n, m in kind.members]
            text = _around("{", _joined(f"{name} || {inner}" for name, inner in fields), "}")
        case "TUPLE":
            text = _around("row(", _joined(_constant(f"struct_extract_at({value}, {n})", m, depth) for n, (_, m) in enumerate(kind.members, 1)), ")")
        case _:
            text = _quoted(value)
    return f"CASE WHEN {value} IS NULL THEN 'NULL' ELSE {text} || {literal(f'::{kind.text}')} END"


def _union(value: str, kind: Type, depth: int) -> str:
    def case(name: str, member: Type) -> str:
        inner = _constant(f"union_extract({value}, {literal(name)})", member, depth)
        return f"WHEN {literal(name)} THEN {_around(f'union_value({quote(name)} := ', inner, ')')}"

    return f"CASE union_tag({value}) {' '.join(case(name, member) for name, member in kind.members)} END"


def _each(items: str, constant_of_one: str, depth: int) -> str:
    return f"coalesce(array_to_string(list_transform({items}, lambda e{depth}: {constant_of_one}), ', '), '')"


def _joined(parts: Iterable[str]) -> str:
    return " || ', ' || ".join(parts)


def _around(before: str, inner: str, after: str) -> str:
    return f"{literal(before)} || {inner} || {literal(after)}"


def _quoted(value: str) -> str:
    """A quoted text in brackets; no string of SQL can have a NUL in it."""
    quotes = f"replace(CAST({value} AS VARCHAR), '''', '''''')"
    return _around("('", f"replace({quotes}, chr(0), ''' || chr(0) || ''')", "')")
