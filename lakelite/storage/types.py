"""Declared types and stored types: the one table that maps them, the same for Parquet files and for inline fragments.

Owns: what each DuckDB type is stored as, the SQL expressions both ways, and the two clauses that carry field ids.
Promises: `decode(encode(value))` is the value again, bit for bit, at every nesting level and in both storages, NULLs kept
apart from empty and NULL-filled containers; what cannot be promised is refused by name when a table is created. A value
that the stored type cannot hold (HUGEINT beyond 38 digits, malformed JSON from outside) is an error when it is written.
Never: input or output. Type texts are DuckDB's canonical ones, as `duckdb_columns().data_type` prints them.

    declared                                    stored                                       how
    BOOLEAN, integers to 64 bits, FLOAT,        the same                                     as it is
      DOUBLE, DECIMAL, VARCHAR, BLOB, DATE,
      TIME, TIME_NS, TIMESTAMP, TIMESTAMP_NS,
      TIMESTAMPTZ, TIMESTAMPTZ_NS, GEOMETRY
    UUID, JSON                                  the same (inline: text)                      cast back
    HUGEINT, UHUGEINT                           DECIMAL(38,0)                                cast
    TIMESTAMP_S, TIMESTAMP_MS                   TIMESTAMP                                    cast
    ENUM, BIT, BIGNUM, TIMETZ                   VARCHAR                                      cast
    "NULL"                                      INTEGER                                      cast
    T[n]                                        T[]                                          cast
    TUPLE                                       STRUCT(element1, element2 …)                 cast
    INTERVAL                                    STRUCT(months, days, micros)                 expression
    UNION                                       STRUCT(tag, one field for each member)       expression
    STRUCT, T[], MAP                            the same, of stored types                    as their members
    VARIANT, TYPE, PARQUET_VARIANT              refused
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from lakelite.errors import NotSupportedError
from lakelite.model import Field, fold, literal, quote
from lakelite.storage import type_text
from lakelite.storage.type_text import Type

Direction = Literal["encode", "decode"]

_AS_IT_IS = frozenset(
    "BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE DECIMAL VARCHAR BLOB DATE TIME TIME_NS "
    "TIMESTAMP TIMESTAMP_NS TIMESTAMPTZ_NS GEOMETRY UUID JSON".split()
) | {"TIMESTAMP WITH TIME ZONE"}
_OTHERWISE = {
    "HUGEINT": "DECIMAL(38,0)",
    "UHUGEINT": "DECIMAL(38,0)",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "ENUM": "VARCHAR",
    "BIT": "VARCHAR",
    "BIGNUM": "VARCHAR",
    "TIME WITH TIME ZONE": "VARCHAR",
    "NULL": "INTEGER",
}
_INTERVAL = type_text.struct([("months", type_text.leaf("INTEGER")), ("days", type_text.leaf("INTEGER")), ("micros", type_text.leaf("BIGINT"))])
_REFUSED = {
    "VARIANT": "the types inside a VARIANT change when it is written (UTINYINT becomes SMALLINT); use JSON or a STRUCT",
    "PARQUET_VARIANT": "use STRUCT(metadata BLOB, value BLOB)",
    "TYPE": "store the type's text as VARCHAR",
}
_FIELD_ID_KEY = "__duckdb_field_id"  # DuckDB's own key inside FIELD_IDS: no field can have this name

_AS_IS, _CAST, _REBUILD = range(3)
_MAX_LAMBDAS = 6  # DuckDB binds a lambda's body twice: each level that is rebuilt doubles the time and memory to plan a statement


def stored_tree(type_text: str, name: str, next_id: Callable[[], int]) -> Field:
    """The stored field of a new column `name`, ids taken from `next_id` depth-first, root first.

    Children, down to the leaves: a struct's fields, a list's `element`, a map's `key` and `value`; `type` is the whole
    stored type's text at every level. Raises NotSupportedError, naming the type, for what has no exact storage.
    """
    return _field(_stored(_read(type_text)), name, next_id)


@lru_cache(maxsize=4096)
def encode(expression: str, type_text: str) -> str:
    """SQL: a declared value to the stored one. `expression` itself where they are the same."""
    return _converted(expression, _read(type_text), "encode", 1)


@lru_cache(maxsize=4096)
def decode(expression: str, type_text: str) -> str:
    """SQL: a stored value, from either storage, to the declared one. `expression` itself where they are the same."""
    return _converted(expression, _read(type_text), "decode", 1)


def field_ids_clause(fields: Sequence[Field]) -> str:
    """`{"a": 1, "s": {__duckdb_field_id: 2, "x": 3}}`, for COPY … (FIELD_IDS …)."""
    return "{" + ", ".join(f"{quote(field.name)}: {_field_ids(field)}" for field in fields) + "}"


def schema_clause(fields: Sequence[Field]) -> str:
    """`MAP {1: {name, type, default_value, children}}` at every level, for read_parquet(…, schema => …)."""
    return "MAP {" + ", ".join(f"{field.field_id}: {_schema(field)}" for field in fields) + "}"


def _field_ids(field: Field) -> str:
    if not field.children:
        return str(field.field_id)
    return "{" + ", ".join([f"{_FIELD_ID_KEY}: {field.field_id}", *(f"{quote(child.name)}: {_field_ids(child)}" for child in field.children)]) + "}"


def _schema(field: Field) -> str:
    children = schema_clause(field.children) if field.children else "NULL"
    initial = "NULL" if field.initial is None else literal(field.initial)
    return f"{{'name': {literal(field.name)}, 'type': {literal(field.type)}, 'default_value': {initial}::VARCHAR, 'children': {children}}}"


def _field(stored: Type, name: str, next_id: Callable[[], int]) -> Field:
    if fold(name) == _FIELD_ID_KEY:
        raise NotSupportedError(f"a field cannot be named {name}", hint="DuckDB keeps this name for itself; choose another")
    field_id = next_id()
    return Field(field_id, name, stored.text, tuple(_field(child, member, next_id) for member, child in stored.members))


def _read(text: str) -> Type:
    declared = type_text.read(text)
    _check(declared, declared)
    if _lambdas(declared) > _MAX_LAMBDAS:
        hint = "flatten it, or store the INTERVAL or UNION inside it as another type"
        raise NotSupportedError(f"an INTERVAL or UNION inside more than {_MAX_LAMBDAS} lists and maps ({declared.text[:100]})", hint=hint)
    return declared


def _lambdas(declared: Type) -> int:
    """How many lambdas are nested in the expression that rebuilds a value."""
    if _effort(declared, "encode") != _REBUILD:
        return 0
    below = max((_lambdas(member) for _, member in declared.members), default=0)
    return below + (declared.name in ("LIST", "ARRAY", "MAP"))


def _check(declared: Type, whole: Type) -> None:
    for _, member in declared.members:
        _check(member, whole)
    if declared.members or declared.name == "INTERVAL" or declared.name in _AS_IT_IS or declared.name in _OTHERWISE:
        return
    inside = f" (in {whole.text[:100]})" if declared is not whole else ""
    hint = _REFUSED.get(declared.name, "store it as VARCHAR or BLOB")
    raise NotSupportedError(f"type {declared.name}{inside} cannot be stored exactly", hint=hint)


def _stored(declared: Type, json: str = "JSON") -> Type:
    """The stored type; with `json` "VARCHAR", the same with text in place of JSON."""
    inner = [(name, _stored(member, json)) for name, member in declared.members]
    match declared.name:
        case "INTERVAL":
            return _INTERVAL
        case "STRUCT" | "TUPLE":
            return type_text.struct(inner)
        case "UNION":
            return type_text.struct([(_tag_name(declared), type_text.leaf("UTINYINT")), *inner])
        case "MAP":
            return type_text.map_of(inner[0][1], inner[1][1])
        case "LIST" | "ARRAY":
            return type_text.sequence(inner[0][1])
        case "JSON":
            return type_text.leaf(json)
    return type_text.leaf(_OTHERWISE.get(declared.name, declared.text))


def _tag_name(union: Type) -> str:
    taken = {fold(name) for name, _ in union.members}
    name = "tag"
    while name in taken:
        name = "_" + name
    return name


def _effort(declared: Type, direction: Direction) -> int:
    """How much it takes to convert: nothing, one cast of the whole value, or building it anew."""
    match declared.name:
        case "INTERVAL" | "UNION":
            own = _REBUILD
        case "ARRAY" | "TUPLE" | "JSON":
            own = _CAST
        case "UUID":
            own = _AS_IS if direction == "encode" else _CAST
        case _:
            own = _CAST if declared.name in _OTHERWISE else _AS_IS
    return max([own, *(_effort(member, direction) for _, member in declared.members)])


def _converted(value: str, declared: Type, direction: Direction, depth: int) -> str:
    effort = _effort(declared, direction)
    if effort == _AS_IS:
        return value
    if effort == _REBUILD:
        value = _rebuilt(value, declared, direction, depth)
    elif direction == "encode":
        # Files and DataFrames can bring malformed JSON into a JSON column. Through text it is checked while it can still be refused.
        as_text, stored = _stored(declared, json="VARCHAR").text, _stored(declared).text
        return f"CAST({value} AS {as_text})" if as_text == stored else f"CAST(CAST({value} AS {as_text}) AS {stored})"
    return f"CAST({value} AS {_stored(declared).text if direction == 'encode' else declared.text})"


def _rebuilt(value: str, declared: Type, direction: Direction, depth: int) -> str:
    """The value built anew of its converted members. A NULL stays NULL, apart from a container of NULLs."""
    match declared.name:
        case "INTERVAL":
            return _interval(value, direction)
        case "LIST" | "ARRAY":
            element = declared.members[0][1]
            if direction == "encode" and declared.name == "ARRAY":
                value = f"CAST({value} AS {element.text}[])"
            return f"list_transform({value}, lambda e{depth}: {_converted(f'e{depth}', element, direction, depth + 1)})"
        case "MAP":
            pair = _packed([(n, _converted(_part(f"e{depth}", n), t, direction, depth + 1)) for n, t in declared.members])
            return f"map_from_entries(list_transform(map_entries({value}), lambda e{depth}: {pair}))"
    members = [(n, _converted(_member(value, declared, n, direction), t, direction, depth)) for n, t in declared.members]
    if declared.name == "UNION":
        tag = _tag_name(declared)
        members.insert(0, (tag, f"enum_code(union_tag({value}))" if direction == "encode" else _part(value, tag)))
    return f"CASE WHEN {value} IS NOT NULL THEN {_packed(members)} END"


def _member(value: str, declared: Type, name: str, direction: Direction) -> str:
    if direction == "decode" or declared.name == "STRUCT":
        return _part(value, name)
    if declared.name == "UNION":
        return f"union_extract({value}, {literal(name)})"
    return f"struct_extract_at({value}, {name.removeprefix('element')})"


def _interval(value: str, direction: Direction) -> str:
    if direction == "decode":
        return f"to_months({_part(value, 'months')}) + to_days({_part(value, 'days')}) + to_microseconds({_part(value, 'micros')})"

    def part(unit: str) -> str:
        return f"date_part('{unit}', {value})"

    micros = f"3600000000 * {part('hour')} + 60000000 * {part('minute')} + {part('microsecond')}"
    packed = _packed([("months", f"12 * {part('year')} + {part('month')}"), ("days", part("day")), ("micros", micros)])
    return f"CASE WHEN {value} IS NOT NULL THEN {packed} END"


def _part(value: str, name: str) -> str:
    return f"struct_extract({value}, {literal(name)})"


def _packed(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{literal(name)}: {value}" for name, value in members) + "}"
