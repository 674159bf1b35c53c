"""EXPORT DATABASE and IMPORT DATABASE: a whole lake as SQL and Parquet, and the tables of a DuckDB or SQLite file.

What is exported is what DuckDB exports: `schema.sql`, `load.sql` and a Parquet file per table, so that either can import what the other
exported, as far as it has the statements in it. What DuckDB's tables have not, partitioning and options, is in `tuning.sql`, which it does
not read. All of it is ordinary statements, which the caller runs in one transaction. Never looks into the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from lakelite import errors
from lakelite.answers import alter_tuning, create_table
from lakelite.contents import Namespace
from lakelite.errors import DataError, Error, OperationalError
from lakelite.language import statements as st
from lakelite.language.parse import parse_append, parse_script
from lakelite.language.tokens import shown_name
from lakelite.mapping.ours import mapped
from lakelite.model import MAIN_SCHEMA, Table, literal, quote
from lakelite.results import Message, Result
from lakelite.scripts import Script
from lakelite.storage import databases
from lakelite.storage.files import check_parent
from lakelite.storage.foreign import Rows
from lakelite.transaction.views import reads_history
from lakelite.transaction.views import statement as create_view

Run = Callable[[st.Statement], Result]

SCHEMA_FILE, TUNING_FILE, LOAD_FILE = "schema.sql", "tuning.sql", "load.sql"
_EXPORTED = (("tables", "BIGINT"), ("rows", "BIGINT"), ("directory", "VARCHAR"))
_IMPORTED = (("tables", "BIGINT"), ("rows", "BIGINT"))


def export(namespace: Namespace, views: Sequence[Table], directory: Path, run: Run) -> Result:
    """Writes every table of `namespace` into a directory, which is made, or is there and empty. One row: tables, rows, directory.

    `views`: those whose query does not fail, each behind those that it reads. The others, and those that read history, are left out with a message.

    OperationalError: it cannot be written, or is to be in none, or not empty; DataError: a value that its text does not hold. Nothing is left then.
    """
    with mapped():
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise OperationalError(f"{directory} is there already, and not an empty directory", hint="name a new directory")
        check_parent(directory)
        is_new = not directory.exists()
        directory.mkdir(exist_ok=True)
    tables = sorted((t for t in namespace.tables.values() if t.view is None), key=lambda t: (t.schema_name != MAIN_SCHEMA, t.schema_name, t.name))
    files = _file_names(tables)
    try:
        rows = sum(_write_table(table, directory / file, run) for table, file in zip(tables, files, strict=True))
        with mapped():
            schemas = [f"CREATE SCHEMA {shown_name(s.name)};" for s in namespace.schemas.values() if s.name != MAIN_SCHEMA]
            loads = [f"COPY {_shown(t)} FROM {literal(str(directory / f))} (FORMAT 'parquet');" for t, f in zip(tables, files, strict=True)]
            _write(directory / LOAD_FILE, loads)
            shown = [view for view in views if not reads_history(view)]
            described = [text for relation in (*tables, *shown) for text in _comments(relation)]
            plain = [replace(table, partitioning=(), options=()) for table in tables]
            _write(directory / SCHEMA_FILE, [*schemas, *map(create_table, plain), *map(create_view, shown), *described])
            if tuning := [text for table in tables for text in alter_tuning(table)]:
                _write(directory / TUNING_FILE, tuning)
    except BaseException:
        _remove(directory, [*files, LOAD_FILE, SCHEMA_FILE, TUNING_FILE], whole=is_new)
        raise
    left_out = sorted({view.qualified for view in namespace.views} - {view.qualified for view in shown})
    messages = [(errors.Warning, f"view {name} was left out: its query fails, or reads history, which is not exported") for name in left_out]
    return Result(_EXPORTED, rows=[(len(tables), rows, str(directory))], messages=messages)


def _comments(relation: Table) -> list[str]:
    kind = "TABLE" if relation.view is None else "VIEW"
    own = [] if relation.comment is None else [f"COMMENT ON {kind} {_shown(relation)} IS {literal(relation.comment)};"]
    columns = [(shown_name(c.name), c.comment) for c in relation.columns if c.comment is not None]
    return own + [f"COMMENT ON COLUMN {_shown(relation)}.{name} IS {literal(comment)};" for name, comment in columns]


def _file_names(tables: Iterable[Table]) -> list[str]:
    """A file name for each table, with nothing in it that a file system could mind."""
    found: dict[str, None] = {}
    for table in tables:
        name = table.name if table.schema_name == MAIN_SCHEMA else f"{table.schema_name}_{table.name}"
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:100].lower()
        number = 1
        while (file := f"{plain}{'' if number == 1 else f'_{number}'}.parquet") in found:
            number += 1
        found[file] = None
    return list(found)


def _shown(table: Table) -> str:
    schema = "" if table.schema_name == MAIN_SCHEMA else f"{shown_name(table.schema_name)}."
    return schema + shown_name(table.name)


def _write_table(table: Table, file: Path, run: Run) -> int:
    """Writes the rows of a table, as text those of types that DuckDB's Parquet does not give back as they were; the number of rows."""
    as_text = [c for c in table.columns if not databases.is_plain(c.type)]
    name = f"{quote(table.schema_name)}.{quote(table.name)}"
    if as_text:
        same = ", ".join(f"count_if(CAST(CAST({quote(c.name)} AS VARCHAR) AS {c.type}) IS DISTINCT FROM {quote(c.name)})" for c in as_text)
        with closing(_one(f"SELECT {same} FROM {name}", run)) as result:
            for column, wrong in zip(as_text, result.fetch(None)[0], strict=True):
                if wrong:
                    what = f"{wrong} of the values in {table.qualified}.{column.name} ({column.type}) are others when they are read from text"
                    raise DataError(what, hint="give the column another type first")
    values = [f"CAST({quote(c.name)} AS VARCHAR) AS {quote(c.name)}" if c in as_text else quote(c.name) for c in table.columns]
    return _one(f"COPY (SELECT {', '.join(values)} FROM {name}) TO {literal(str(file))} (FORMAT parquet)", run).rowcount


def _one(text: str, run: Run) -> Result:
    (statement,) = parse_script(text)
    return _ours(statement, run)


def _ours(statement: st.Statement, run: Run) -> Result:
    """Runs a statement that the user did not write, and whose places mean nothing to them."""
    try:
        return run(statement)
    except Error as error:
        error.position = None
        raise


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")


def _remove(directory: Path, names: Iterable[str], *, whole: bool) -> None:
    with suppress(OSError):
        for name in names:
            (directory / name).unlink(missing_ok=True)
        if whole:
            directory.rmdir()


def take_in(path: Path, run: Run) -> Result:
    """Runs what an export wrote into a directory, or takes over the tables of a DuckDB or SQLite file. One row: tables, rows.

    OperationalError: there is no such thing; any error of the statements, with the file and the place in it.
    """
    if path.is_dir():
        return _from_directory(path, run)
    if not path.exists():
        raise OperationalError(f"there is no {path}", hint="IMPORT DATABASE takes a directory that EXPORT DATABASE made, or a DuckDB or SQLite file")
    return _from_file(path, run)


def _from_directory(directory: Path, run: Run) -> Result:
    tables = rows = 0
    messages: list[Message] = []
    tuning = [TUNING_FILE] if (directory / TUNING_FILE).exists() else []
    for name in (SCHEMA_FILE, *tuning, LOAD_FILE):
        for operation, result in _script(directory, name, run):
            tables += isinstance(operation, st.CreateTable | st.CreateTableAs)
            rows += max(result.rowcount, 0) if isinstance(operation, st.CopyFrom | st.Insert) else 0
            messages += result.messages
    return Result(_IMPORTED, rows=[(tables, rows)], messages=messages)


def _script(directory: Path, name: str, run: Run) -> Iterable[tuple[st.Operation, Result]]:
    """Runs a file of statements, one by one."""
    with mapped():
        text = (directory / name).read_bytes().decode()  # as it is: a name may hold a carriage return
    ran: list[st.Operation] = []

    def moved(statement: st.Statement) -> Result:
        ran.append(statement.operation)
        return run(replace(statement, operation=_beside(statement.operation, directory)))

    try:
        for result in Script(text, None, lambda statement, _: moved(statement)):
            yield ran[-1], result
    except Error as error:
        place = "" if error.position is None else f"\n{error.position.render()}"
        error.message, error.position = f"{directory / name}: {error.message}{place}", None  # it is one of the file, not of IMPORT
        raise


def _beside(operation: st.Operation, directory: Path) -> st.Operation:
    """A COPY FROM of the file that lies in the directory now, wherever that was when it was exported."""
    if not isinstance(operation, st.CopyFrom) or operation.path is None:
        return operation
    here = directory / Path(operation.path).name
    return replace(operation, path=str(here)) if here.exists() else operation


def _from_file(path: Path, run: Run) -> Result:
    rows = 0
    with databases.contents_of(path) as contents:
        for schema in contents.schemas:
            _one(f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}", run)
        for table in contents.tables:
            rows += _take_over(table, run)
        lost = [f"{table.schema}.{table.name}: {what}" for table in contents.tables for what in table.left_out] + [*contents.left_out]
    messages: list[Message] = [(errors.Warning, f"{what} was left out") for what in lost]
    return Result(_IMPORTED, rows=[(len(contents.tables), rows)], messages=messages)


def _take_over(table: databases.ForeignTable, run: Run) -> int:
    """Makes one table of a file, with its rows; their number. Errors say which table they are about."""
    name = f"{quote(table.schema)}.{quote(table.name)}"
    try:
        _one(f"CREATE TABLE {name} ({', '.join(table.parts)})", run)
        with closing(Rows(table.rows())) as data:
            rows = _ours(parse_append(name, data), run).rowcount
        for comment in table.comments:
            _one(comment, run)
    except Error as error:
        error.message = f"{table.schema}.{table.name}: {error.message}"
        raise
    return rows
