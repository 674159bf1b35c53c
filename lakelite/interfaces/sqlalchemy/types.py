"""DuckDB's types as SQLAlchemy's, both ways.

Owns: the types that SQLAlchemy has no class for, how a type is written in DDL, and `type_of`, which reads DuckDB's name of a type.
A type that has no class of its own is a `Native`, which keeps DuckDB's text: no type is lost in reflection.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import duckdb
from sqlalchemy import types as sqltypes
from sqlalchemy.sql import compiler, type_api
from sqlalchemy.sql import sqltypes as sa_types

from lakelite.model import literal

_DOUBLE_BITS = 24  # a FLOAT(n) of more bits than that is a DOUBLE


class TINYINT(sqltypes.Integer):
    """-128 to 127."""

    __visit_name__ = "TINYINT"


class HUGEINT(sqltypes.Integer):
    """A whole number of 128 bits."""

    __visit_name__ = "HUGEINT"


class UTINYINT(sqltypes.Integer):
    """0 to 255."""

    __visit_name__ = "UTINYINT"


class USMALLINT(sqltypes.Integer):
    """A whole number of 16 bits, from 0."""

    __visit_name__ = "USMALLINT"


class UINTEGER(sqltypes.Integer):
    """A whole number of 32 bits, from 0."""

    __visit_name__ = "UINTEGER"


class UBIGINT(sqltypes.Integer):
    """A whole number of 64 bits, from 0."""

    __visit_name__ = "UBIGINT"


class UHUGEINT(sqltypes.Integer):
    """A whole number of 128 bits, from 0."""

    __visit_name__ = "UHUGEINT"


class INTERVAL(type_api.NativeForEmulated, sa_types._AbstractInterval):
    """A duration; a `datetime.timedelta` in Python."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **_: Any) -> INTERVAL:
        return cls()

    @property
    def _type_affinity(self) -> type[sqltypes.Interval]:
        return sqltypes.Interval

    def as_generic(self, allow_nulltype: bool = False) -> sqltypes.Interval:
        return sqltypes.Interval(native=True)

    @property
    def python_type(self) -> type[datetime.timedelta]:
        return datetime.timedelta

    def literal_processor(self, dialect: Any) -> Callable[[datetime.timedelta], str]:
        return lambda value: f"to_microseconds({value // datetime.timedelta(microseconds=1)})"


class STRUCT(sqltypes.TypeEngine[dict[str, Any]]):
    """A row within a column; a dict in Python. `fields`: the type of each, by name."""

    __visit_name__ = "STRUCT"

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = {name: type_api.to_instance(kind) for name, kind in fields.items()}

    @property
    def _static_cache_key(self) -> Any:
        return (STRUCT, *((name, kind._static_cache_key) for name, kind in self.fields.items()))

    @property
    def python_type(self) -> type[dict[str, Any]]:
        return dict


class MAP(sqltypes.TypeEngine[dict[Any, Any]]):
    """Keys of one type, values of another; a dict in Python."""

    __visit_name__ = "MAP"

    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = type_api.to_instance(key), type_api.to_instance(value)

    @property
    def python_type(self) -> type[dict[Any, Any]]:
        return dict


class Native(sqltypes.UserDefinedType[Any]):
    """Any type of DuckDB's by its text, such as `Native("TIMESTAMP_NS")`, `Native("INTEGER[3]")` or `Native("UNION(n INTEGER, t VARCHAR)")`."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **_: Any) -> str:
        return self.text


class Numeric(sqltypes.Numeric[Any]):
    """A DECIMAL. Where an expression of that type comes out as DOUBLE (a division), the value is made what was asked for."""

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any]:
        wanted = Decimal if self.asdecimal else float
        scale = self._effective_decimal_return_scale

        def process(value: Any) -> Any:
            if value is None or isinstance(value, wanted):
                return value
            return Decimal(f"{value:.{scale}f}") if self.asdecimal and isinstance(value, float) else wanted(value)

        return process


def _json_step(step: int | str) -> str:
    if isinstance(step, int):
        return f"[{step}]" if step >= 0 else f"[#{step}]"
    return '."' + step.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _json_path(steps: Any) -> str:
    return "$" + "".join(map(_json_step, steps if isinstance(steps, tuple | list) else (steps,)))


class _Path:
    """A JSON index or path as DuckDB's text `$."a"[1]`."""

    def bind_processor(self, dialect: Any) -> Callable[[Any], str]:
        return _json_path

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        return lambda steps: literal(_json_path(steps))


class JSONIndex(_Path, sqltypes.JSON.JSONIndexType):
    """One step."""


class JSONPath(_Path, sqltypes.JSON.JSONPathType):
    """Several."""


COLSPECS: dict[type[sqltypes.TypeEngine[Any]], type[sqltypes.TypeEngine[Any]]] = {
    sqltypes.Numeric: Numeric,
    sqltypes.Interval: INTERVAL,
    sqltypes.JSON.JSONIndexType: JSONIndex,
    sqltypes.JSON.JSONPathType: JSONPath,
}


class TypeCompiler(compiler.GenericTypeCompiler):
    """How types are written."""

    def visit_float(self, type_: Any, **kw: Any) -> str:
        """Python's float, unless few bits are asked for: DuckDB's FLOAT has 24."""
        return "FLOAT" if type_.precision is not None and type_.precision <= _DOUBLE_BITS else "DOUBLE"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "FLOAT"

    def visit_datetime(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        return "TIME WITH TIME ZONE" if type_.timezone else "TIME"

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        return "UUID" if type_.native_uuid else super().visit_uuid(type_, **kw)

    def visit_enum(self, type_: Any, **kw: Any) -> str:
        if not type_.native_enum:
            return str(super().visit_enum(type_, **kw))
        return f"ENUM({', '.join(literal(value) for value in type_.enums)})"

    def visit_large_binary(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_BINARY(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_VARBINARY(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_CLOB(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        return "JSON"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        return f"{self.process(type_.item_type, **kw)}{'[]' * (type_.dimensions or 1)}"

    def visit_STRUCT(self, type_: STRUCT, **kw: Any) -> str:
        quote = self.dialect.identifier_preparer.quote
        return f"STRUCT({', '.join(f'{quote(name)} {self.process(kind, **kw)}' for name, kind in type_.fields.items())})"

    def visit_MAP(self, type_: MAP, **kw: Any) -> str:
        return f"MAP({self.process(type_.key, **kw)}, {self.process(type_.value, **kw)})"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        return "INTERVAL"

    def visit_TINYINT(self, type_: Any, **kw: Any) -> str:
        return str(type_.__visit_name__)

    visit_HUGEINT = visit_UTINYINT = visit_USMALLINT = visit_UINTEGER = visit_UBIGINT = visit_UHUGEINT = visit_TINYINT


_PLAIN: dict[str, Callable[[], Any]] = {
    "BOOLEAN": sqltypes.BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": sqltypes.SMALLINT,
    "INTEGER": sqltypes.INTEGER,
    "BIGINT": sqltypes.BIGINT,
    "HUGEINT": HUGEINT,
    "UTINYINT": UTINYINT,
    "USMALLINT": USMALLINT,
    "UINTEGER": UINTEGER,
    "UBIGINT": UBIGINT,
    "UHUGEINT": UHUGEINT,
    "FLOAT": sqltypes.FLOAT,
    "DOUBLE": sqltypes.DOUBLE,
    "VARCHAR": sqltypes.VARCHAR,
    "BLOB": sqltypes.BLOB,
    "DATE": sqltypes.DATE,
    "TIME": sqltypes.TIME,
    "TIME WITH TIME ZONE": lambda: sqltypes.TIME(timezone=True),
    "TIMESTAMP": sqltypes.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": lambda: sqltypes.TIMESTAMP(timezone=True),
    "INTERVAL": INTERVAL,
    "UUID": sqltypes.UUID,
    "JSON": sqltypes.JSON,
}


def type_of(text: str) -> sqltypes.TypeEngine[Any]:
    """SQLAlchemy's type for DuckDB's `text`, such as `DECIMAL(10,2)` or `STRUCT(a INTEGER, b VARCHAR[])`."""
    plain = _PLAIN.get(text)
    return plain() if plain is not None else _compound(duckdb.sqltype(text))


def _compound(kind: Any) -> sqltypes.TypeEngine[Any]:
    if kind.id == "decimal":
        parts = dict(kind.children)
        return sqltypes.DECIMAL(parts["precision"], parts["scale"])
    if kind.id == "enum":
        return sqltypes.Enum(*dict(kind.children)["values"])
    if kind.id == "list":
        return _list(kind)
    if kind.id == "struct":
        return STRUCT({name: type_of(str(field)) for name, field in kind.children})
    if kind.id == "map":
        parts = dict(kind.children)
        return MAP(type_of(str(parts["key"])), type_of(str(parts["value"])))
    return Native(str(kind))


def _list(kind: Any) -> sqltypes.TypeEngine[Any]:
    """An ARRAY, which has dimensions where DuckDB has a list of lists."""
    depth = 0
    while kind.id == "list":
        kind, depth = dict(kind.children)["child"], depth + 1
    return sqltypes.ARRAY(type_of(str(kind)), dimensions=depth)
