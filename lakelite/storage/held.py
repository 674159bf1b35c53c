"""Few rows, held in memory as Arrow.

For a handful of rows DuckDB's Python values cost a third of its Arrow output, and for the types in `_EXACT` they are the
same values: those go the short way, all others through Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lakelite.mapping.engine_errors import carried
from lakelite.model import decimal_of, quote
from lakelite.storage import arrays
from lakelite.storage.relations import relation

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_EXACT: dict[str, str] = {
    "BOOLEAN": "bool_", "TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32", "BIGINT": "int64", "UTINYINT": "uint8",
    "USMALLINT": "uint16", "UINTEGER": "uint32", "UBIGINT": "uint64", "FLOAT": "float32", "DOUBLE": "float64", "VARCHAR": "string",
    "BLOB": "binary",
}  # fmt: skip


@lru_cache(maxsize=256)
def _schema(columns: tuple[tuple[str, str], ...]) -> pa.Schema | None:
    """The Arrow schema of the columns, or None if one is of a type that has to go through Arrow."""
    import pyarrow as pa

    fields: list[tuple[str, pa.DataType]] = []
    for name, stored in columns:
        decimal = decimal_of(stored)
        if decimal:
            fields.append((name, pa.decimal128(*decimal)))
        elif stored in _EXACT:
            fields.append((name, getattr(pa, _EXACT[stored])()))
        else:
            return None
    return pa.schema(fields)


def fetch(
    cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any], columns: Sequence[tuple[str, str]], most: int | None
) -> pa.Table | None:
    """The rows of a SELECT whose columns are `columns` (name and stored type); None if they are more than `most` (None: any number will do)."""
    schema = _schema(tuple(columns))
    if schema is None:
        return _as_arrow(cursor, sql, parameters, most)
    answer = cursor.execute(sql, dict(parameters)) if parameters else cursor.execute(sql)
    rows = answer.fetchall() if most is None else answer.fetchmany(most + 1)
    if most is not None and len(rows) > most:
        answer.abort()  # what is open keeps the cursor from being given a table of the caller's
        return None
    if most is not None:
        answer.fetchall()  # DuckDB is done with a statement only when its result has been read to the end
    return _table(rows, schema)


def of_values(columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> pa.Table | None:
    """An Arrow table of Python values that are what they have to be; None for types that have to go through DuckDB."""
    schema = _schema(tuple(columns))
    return None if schema is None else _table(rows, schema)


def show(cursor: duckdb.DuckDBPyConnection, columns: Sequence[tuple[str, Any]], rows: Sequence[tuple[Any, ...]]) -> duckdb.DuckDBPyConnection:
    """Makes rows of Python values the open result of `cursor`. `columns`: name and DuckDB type of each."""
    typed = cursor.sql(f"SELECT {', '.join(f'NULL::{kind} AS c{i}' for i, (_, kind) in enumerate(columns))} LIMIT 0")
    return show_arrow(cursor, columns, _table(rows, typed.to_arrow_table().schema))


def show_arrow(cursor: duckdb.DuckDBPyConnection, columns: Sequence[tuple[str, Any]], table: pa.Table) -> duckdb.DuckDBPyConnection:
    """Makes the rows of an Arrow table the open result of `cursor`. `columns`: name, which may be there twice, and DuckDB type of each."""
    cursor.register("lake_rows", table.rename_columns([f"c{i}" for i in range(len(columns))]))
    return cursor.execute(f"SELECT {', '.join(f'c{i}::{kind} AS {quote(name)}' for i, (name, kind) in enumerate(columns))} FROM lake_rows")


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    return pa.table([arrays.of_values([row[i] for row in rows], kind) for i, kind in enumerate(schema.types)], schema=schema)


def _as_arrow(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any], most: int | None) -> pa.Table | None:
    import pyarrow as pa

    found = relation(cursor, sql, parameters)
    if most is None:
        return found.to_arrow_table()
    reader = found.to_arrow_reader(most + 1)
    batches: list[pa.RecordBatch] = []
    try:
        for batch in reader:
            batches.append(batch)
            if sum(b.num_rows for b in batches) > most:
                return None
        return pa.Table.from_batches(batches, reader.schema)
    except OSError as error:
        theirs = carried(error)
        if theirs is None:
            raise
        raise theirs from error
    finally:
        reader.close()
