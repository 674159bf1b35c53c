"""Commands that look at tables: .tables .schema .dump .files, \\d \\dt."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakelite.interfaces.commands.command import Asking, Command, Held, steady, table_of, tables, written
from lakelite.records import dataclass

if TYPE_CHECKING:
    from lakelite.interfaces.render import Rows
    from lakelite.interfaces.runner import Runner

_FILES = """
SELECT fragment_id, schema_name, table_name, storage, row_count, deleted_count, size_bytes, first_snapshot_id, path
FROM lake.fragments {where} ORDER BY schema_name, table_name, fragment_id"""


def _tables(runner: Runner, argument: str) -> int:
    found = [(written(schema, name),) for schema, name, _ in tables(runner)]
    return runner.go_through(iter([Held([("name", "VARCHAR")], [*found])]))


def _describe(runner: Runner, argument: str) -> int:
    if not argument:
        return _tables(runner, "")
    return runner.run(f"DESCRIBE {table_of(chr(92) + 'd', argument)}")


def _schema(runner: Runner, argument: str) -> int:
    names = [table_of(".schema", argument)] if argument else [written(schema, name) for schema, name, _ in tables(runner)]
    for name in names:
        runner.display.text(_create(runner, name))
    runner.display.flush()
    return 0


def _create(runner: Runner, name: str) -> str:
    return str(runner.rows(f"SHOW CREATE TABLE {name}")[0][0])


def _dump(runner: Runner, argument: str) -> int:
    """Tables with their rows, then views in the order in which they were made; all of one version."""
    only = table_of(".dump", argument) if argument else None
    from lakelite.model import MAIN_SCHEMA, RESERVED_SCHEMA

    with steady(runner):
        if only is not None:
            existing(runner, only)
        views = {(row[0], row[1]) for row in runner.rows("SELECT schema_name, view_name FROM lake.views")}
        every = [(schema, name) for _, schema, name, _, _, temporary in runner.rows("SHOW ALL TABLES") if not temporary]
        runner.display.text("BEGIN;")
        if only is None:
            for _, schema, *_ in runner.rows("SHOW SCHEMAS"):
                if schema not in (MAIN_SCHEMA, RESERVED_SCHEMA):
                    runner.display.text(f"CREATE SCHEMA IF NOT EXISTS {written(MAIN_SCHEMA, schema)};")
        for name in [only] if only else [written(*one) for one in every if one not in views]:
            _dump_table(runner, name)
        if only is None:
            for schema, name in runner.rows("SELECT schema_name, view_name FROM lake.views ORDER BY view_id"):
                runner.display.text(_create(runner, written(schema, name)))
        runner.display.text("COMMIT;")
        runner.display.flush()
    return 0


def _dump_table(runner: Runner, name: str) -> None:
    """The statement that makes a table, and its rows as they stream; as text, or as constants, where Python would not have them exactly."""
    from lakelite.interfaces.constants import constant, has_union
    from lakelite.interfaces.formats import CONSTANT, is_exact
    from lakelite.interfaces.runner import Stoppable
    from lakelite.model import quote

    runner.display.text(_create(runner, name))
    columns = [(row[0], row[1]) for row in runner.rows(f"DESCRIBE {name}")]
    unions = {column for column, kind in columns if has_union(kind)}
    select = ", ".join(
        constant(quote(column), kind) if column in unions else quote(column) if is_exact(kind) else f"{quote(column)}::VARCHAR"
        for column, kind in columns
    )
    shown = [(column, CONSTANT if column in unions else kind) for column, kind in columns]
    stop = threading.Event()

    def rows() -> bool:
        for cursor in runner.connection.statements(f"SELECT {select} FROM {name}"):
            runner.display.insert_into(name, _Retyped(Stoppable(cursor, stop), shown))
        return True

    runner.supervise(rows, stop)


@dataclass(frozen=True, slots=True)
class _Retyped:
    """A cursor that tells other types than those of its query."""

    rows: Rows
    description: Sequence[Sequence[Any]]

    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]:
        return self.rows.fetchmany(size)


def _files(runner: Runner, argument: str) -> int:
    return runner.run(_FILES.format(where=of_table(existing(runner, table_of(".files", argument))) if argument else ""))


def existing(lake: Asking, name: str) -> str:
    """The same name. ProgrammingError: no table or view has it."""
    lake.rows(f"DESCRIBE {name}")
    return name


def of_table(name: str) -> str:
    """The condition that picks a table, whose name is as it is written in SQL, in the views of schema `lake`."""
    from lakelite.language.tokens import lex, unquote
    from lakelite.model import MAIN_SCHEMA, literal

    parts: Sequence[str] = [unquote(name[t.start : t.end]) for t in lex(name)[::2]]
    schema = parts[-2] if len(parts) > 1 else MAIN_SCHEMA
    return f"WHERE lower(schema_name) = lower({literal(schema)}) AND lower(table_name) = lower({literal(parts[-1])})"


_TABLE = (("table",),)
COMMANDS = (
    Command((".tables", "\\dt"), "", "the tables and views of the lake", _tables, shows=True),
    Command(("\\d",), "[TABLE]", "the columns of a table; without TABLE the tables", _describe, _TABLE, shows=True),
    Command((".schema",), "[TABLE]", "the statements that make the tables, or one of them", _schema, _TABLE),
    Command((".dump",), "[TABLE]", "the lake, or a table, as statements that make it again; without history and comments", _dump, _TABLE),
    Command((".files",), "[TABLE]", "the fragments of the tables, or of one: files and inline rows", _files, _TABLE, shows=True),
)
