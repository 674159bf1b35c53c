"""The tables of a DuckDB file or a SQLite file, to be taken over: their columns, and their rows as Arrow batches.

Opens the file for reading only. Values come in the types that carry them exactly; what the lake declares otherwise (HUGEINT, INTERVAL,
ENUM …) comes as text, which a cast reads back. Never touches the lake.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelite.errors import DataError, OperationalError
from lakelite.mapping.ours import mapped
from lakelite.model import literal, quote
from lakelite.records import dataclass
from lakelite.storage import left_out, type_text

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 10_000
_SQLITE_MAGIC = b"SQLite format 3\0"
_DUCKDB_MAGIC = b"DUCK"
ROUNDED = frozenset({"HUGEINT", "UHUGEINT", "INTERVAL", "TIME WITH TIME ZONE"})
_NOT_IN_ARROW = frozenset({"BIT", "BIGNUM"})


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """`parts`: the columns with their types, NOT NULL and DEFAULT, and the constraints, as CREATE TABLE has them. `rows()`: an Arrow
    stream, by name. `left_out`: for a person. `comments`: statements."""

    schema: str
    name: str
    parts: tuple[str, ...]
    rows: Callable[[], pa.RecordBatchReader]
    left_out: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """`schemas`: all but main. `left_out`: what the file has besides tables."""

    schemas: tuple[str, ...]
    tables: tuple[ForeignTable, ...]
    left_out: tuple[str, ...]


@contextmanager
def contents_of(path: Path) -> Iterator[Contents]:
    """What is in the file within the block. OperationalError: it is neither a DuckDB nor a SQLite file."""
    with mapped(), path.open("rb") as file:
        head = file.read(16)
    if head == _SQLITE_MAGIC:
        # DuckDB reads the rows in a thread of its own, one at a time.
        with mapped(), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)) as connection:
            tables = tuple(_sqlite_table(connection, name, text) for name, text in connection.execute(_SQLITE_TABLES).fetchall())
            yield Contents((), tables, left_out.of_sqlite(connection))
    elif head[8:12] == _DUCKDB_MAGIC:
        import duckdb

        with mapped(), closing(duckdb.connect(str(path), read_only=True)) as connection:
            schemas = tuple(name for (name,) in connection.execute(_DUCKDB_SCHEMAS).fetchall())
            tables = tuple(_duckdb_table(connection, *row) for row in connection.execute(_DUCKDB_TABLES).fetchall())
            yield Contents(schemas, tables, left_out.of_duckdb(connection))
    else:
        hint = "IMPORT DATABASE takes a directory that EXPORT DATABASE made, or such a file; COPY t FROM and read_csv take others"
        raise OperationalError(f"{path} is neither a DuckDB nor a SQLite file", hint=hint)


# DuckDB.

_DUCKDB_SCHEMAS = """
    SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database() AND NOT internal AND schema_name <> 'main' ORDER BY ALL"""
_DUCKDB_TABLES = """
    SELECT t.schema_name, t.table_name, t.sql, t.comment,
           list({'name': c.column_name, 'type': c.data_type, 'default': c.column_default, 'nullable': c.is_nullable, 'comment': c.comment,
                 'generated': c.generation_expression} ORDER BY c.column_index)
    FROM duckdb_tables() t JOIN duckdb_columns() c USING (database_oid, table_oid)
    WHERE t.database_name = current_database() AND NOT t.temporary GROUP BY ALL ORDER BY ALL"""
_DUCKDB_CONSTRAINTS = """
    SELECT constraint_type = 'FOREIGN KEY', constraint_text FROM duckdb_constraints()
    WHERE database_name = current_database() AND schema_name = ? AND table_name = ? AND constraint_type <> 'NOT NULL' ORDER BY constraint_index"""


def _duckdb_table(
    connection: duckdb.DuckDBPyConnection, schema: str, name: str, text: str, comment: str | None, columns: list[dict[str, Any]]
) -> ForeignTable:
    table = f"{quote(schema)}.{quote(name)}"
    constraints = connection.execute(_DUCKDB_CONSTRAINTS, [schema, name]).fetchall()
    lost = [text for is_foreign, text in constraints if is_foreign] + left_out.clauses(text, ("COLLATE",))
    described: list[str] = []
    for column in columns:
        default = column["default"]
        if column["generated"] is not None:
            lost.append(left_out.generated(column["name"], column["generated"]))
            default = None
        elif default is not None and "nextval(" in default:
            lost.append(f"{column['name']} DEFAULT {default}")
            default = None
        described.append(_column(column["name"], column["type"], nullable=column["nullable"], default=default))
    values = ", ".join(f"{_carried(column['name'], column['type'])} AS {quote(column['name'])}" for column in columns)

    def rows() -> pa.RecordBatchReader:
        return connection.sql(f"SELECT {values} FROM {table}").to_arrow_reader(BATCH_ROWS)

    kept = (text for is_foreign, text in constraints if not is_foreign)
    return ForeignTable(schema, name, (*described, *kept), rows, tuple(lost), tuple(_comments(table, comment, columns)))


def _comments(table: str, comment: str | None, columns: list[dict[str, Any]]) -> Iterator[str]:
    if comment is not None:
        yield f"COMMENT ON TABLE {table} IS {literal(comment)}"
    for column in columns:
        if column["comment"] is not None:
            yield f"COMMENT ON COLUMN {table}.{quote(column['name'])} IS {literal(column['comment'])}"


def _column(name: str, declared: str, *, nullable: bool, default: str | None = None) -> str:
    return f"{quote(name)} {declared}{'' if nullable else ' NOT NULL'}{'' if default is None else f' DEFAULT {default}'}"


def _carried(name: str, declared: str) -> str:
    """SQL: the value in a type that Arrow has."""
    return quote(name) if _holds_none(type_text.read(declared), ROUNDED | _NOT_IN_ARROW) else f"CAST({quote(name)} AS VARCHAR)"


def is_plain(declared: str) -> bool:
    """Whether DuckDB's own Parquet and Arrow give the type's values back as they were; the others go as text.

    A HUGEINT becomes a DOUBLE there, an INTERVAL loses its microseconds and a TIMETZ its offset.
    """
    return _holds_none(type_text.read(declared), ROUNDED)


def _holds_none(declared: type_text.Type, names: frozenset[str]) -> bool:
    return declared.name not in names and all(_holds_none(member, names) for _, member in declared.members)


# SQLite: each value has a type of its own, so that a column's is found by looking at all of them.

_SQLITE_TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_MOMENTS = {  # what a text has to be like, and SQLite's function that gives it back as it is if there is such a day and time
    "DATE": (_DAY, "date({}, '+0 days')", 10),
    "TIMESTAMP": (f"{_DAY}[ T][0-9][0-9]:[0-9][0-9]:[0-9][0-9]*", "datetime({}, '+0 days')", 19),
}
_DECLARED_MOMENTS = {"DATE": "DATE", "DATETIME": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP"}


def _sqlite_table(connection: sqlite3.Connection, name: str, text: str) -> ForeignTable:
    found = connection.execute(f'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo({literal(name)}) WHERE hidden <> 1').fetchall()
    declared = {column: _sqlite_type(connection, name, column, str(kind).upper()) for column, kind, *_ in found}
    lost = [f"{column} DEFAULT {default}" for column, _, _, default, _ in found if default is not None]
    key = [quote(column) for column, _, _, _, place in sorted(found, key=lambda row: row[4]) if place]
    parts = [_column(column, declared[column], nullable=not is_needed) for column, _, is_needed, _, _ in found]
    if key:
        has_null = connection.execute(f"SELECT 1 FROM {quote(name)} WHERE {' OR '.join(f'{column} IS NULL' for column in key)}").fetchone()
        (lost if has_null else parts).append(f"PRIMARY KEY({', '.join(key)})")  # which may hold NULLs in SQLite
    lost += left_out.of_sqlite_table(connection, name, text)
    return ForeignTable("main", name, tuple(parts), lambda: _sqlite_rows(connection, name, declared), tuple(lost))


def _sqlite_type(connection: sqlite3.Connection, table: str, column: str, declared: str) -> str:
    """The DuckDB type that holds every value of a column."""
    value = quote(column)
    kinds = {kind for (kind,) in connection.execute(f"SELECT DISTINCT typeof({value}) FROM {quote(table)}")} - {"null"}
    if kinds == {"blob"}:
        return "BLOB"
    if "blob" in kinds:
        raise DataError(f'column "{column}" of {table} holds blobs and other values', hint="make them one in SQLite first: CAST(column AS BLOB)")
    if kinds == {"text"}:
        moment = _DECLARED_MOMENTS.get(declared)
        return moment if moment and _are_all(connection, table, value, moment) else "VARCHAR"
    if "text" in kinds:
        return "VARCHAR"
    if kinds == {"integer"}:
        is_flag = declared in ("BOOL", "BOOLEAN") and not connection.execute(f"SELECT 1 FROM {quote(table)} WHERE {value} NOT IN (0, 1)").fetchone()
        return "BOOLEAN" if is_flag else "BIGINT"
    return "DOUBLE" if kinds else _of_affinity(declared)


def _are_all(connection: sqlite3.Connection, table: str, value: str, moment: str) -> bool:
    """Whether all texts of a column are moments of a kind, without a time zone."""
    pattern, function, length = _MOMENTS[moment]
    is_there = f"{function.format(value)} IS substr(replace({value}, 'T', ' '), 1, {length})"
    is_one = f"{value} GLOB '{pattern}' AND {is_there} AND substr({value}, {length + 1}) NOT GLOB '*[^.0-9]*' AND length({value}) <= 26"
    return connection.execute(f"SELECT 1 FROM {quote(table)} WHERE {value} IS NOT NULL AND NOT ({is_one})").fetchone() is None


def _of_affinity(declared: str) -> str:
    """The type of a column without values, by SQLite's own rules for what is declared (datatype3.html, section 3.1)."""
    if "INT" in declared:
        return "BIGINT"
    if "BLOB" in declared:
        return "BLOB"
    is_text = any(word in declared for word in ("CHAR", "CLOB", "TEXT")) or not declared
    return "VARCHAR" if is_text else _DECLARED_MOMENTS.get(declared, "DOUBLE")


def _sqlite_rows(connection: sqlite3.Connection, table: str, declared: dict[str, str]) -> pa.RecordBatchReader:
    import pyarrow as pa

    carriers = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BLOB": pa.binary(), "BOOLEAN": pa.int64()}
    schema = pa.schema([(name, carriers.get(kind, pa.string())) for name, kind in declared.items()])
    cast = {"DOUBLE": "REAL", "VARCHAR": "TEXT"}
    values = ", ".join(f"CAST({quote(n)} AS {cast[kind]})" if kind in cast else quote(n) for n, kind in declared.items())

    def batches() -> Iterator[pa.RecordBatch]:
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"SELECT {values} FROM {quote(table)}")
            while rows := cursor.fetchmany(BATCH_ROWS):
                columns = zip(*rows, strict=True)
                yield pa.record_batch([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
