"""DuckDB, as one connection of lakelite uses it: a private in-memory database that shows the lake's tables as views.

Owns the DuckDB connection, the views, and the empty copies of tables on which DuckDB's own INSERT runs. Never decides what
a snapshot holds and never writes to the lake.

A view is made for one `TableState` and remade when the state's stamp changes. Everything internal lives in the attached
database `lake_internal`, away from the user's names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from lakelite.contents import TableState
from lakelite.errors import OperationalError
from lakelite.forks import never_ended_by_a_child
from lakelite.model import MAIN_SCHEMA, Fragment, Table, fold, literal, quote
from lakelite.storage import held, scan
from lakelite.storage.cache import Cache
from lakelite.storage.files import LakePaths
from lakelite.storage.foreign import Frames
from lakelite.storage.hot import HotFiles
from lakelite.storage.key_filters import KeyFilters
from lakelite.storage.loaded import LoadedRows
from lakelite.storage.mirror import Mirror
from lakelite.storage.past import PastViews
from lakelite.storage.relations import relation
from lakelite.storage.saved import SavedRows, Shelf
from lakelite.storage.scan import Addressed
from lakelite.storage.temporary import Space
from lakelite.storage.turns import Turns

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

INTERNAL = "lake_internal"
NAMELESS = "lake_names"
_WITH_DATABASE = re.compile(r"\bmemory\b\"?\s*\.", re.IGNORECASE)
_FOLLOWED = "SET enable_progress_bar = true; SET enable_progress_bar_print = false"
STAGE_ROWS_KEPT = 10_000
_CHANGED_LATER = ("enable_progress_bar", "enable_progress_bar_print", "arrow_lossless_conversion")  # by us, also of a connection that is confined
_CONFIG = {"python_enable_replacements": "false", "autoinstall_known_extensions": "false"}


class Engine:
    """One DuckDB instance; used by one thread at a time, except for the cursors that it hands out."""

    def __init__(self, paths: LakePaths, spill: str, load_inline: Callable[[int], bytes], cache_bytes: int, folder: Path | None = None) -> None:
        """`folder`: where DuckDB's databases are files, for `open_again`; None: they are in memory."""
        never_ended_by_a_child(self)
        self._paths = paths
        self._duckdb = duckdb.connect(_database("memory", folder), config={**_CONFIG, "temp_directory": spill})
        self.work = self._duckdb.cursor()  # for SQL that holds the user's text, and can be interrupted
        self._own = self._duckdb.cursor()  # for our own bookkeeping, which must not stop half-way
        self.do(f"ATTACH {literal(_database(INTERNAL, folder))} AS {INTERNAL}")
        self._cache = Cache(self._own, INTERNAL, load_inline, cache_bytes)
        self._hot = HotFiles(self.do, INTERNAL)
        self.key_filters = KeyFilters(paths, spill, cache_bytes)
        self.past = PastViews(self._own)
        self.loaded = LoadedRows(self._own, INTERNAL)
        self.mirror = Mirror(self.do)
        self.shelf = Shelf(self.do, INTERNAL)
        self.turns = Turns()
        self.frames = Frames(self.work, self.turns)
        self.temporary = Space(self.do, self.work, INTERNAL)
        self._cursors: dict[int, duckdb.DuckDBPyConnection] = {}
        self._is_followed = False
        self._names: duckdb.DuckDBPyConnection | None = None
        self._views: dict[tuple[str, str], Hashable] = {}
        self._schemas: set[str] = {MAIN_SCHEMA}
        self._stages: dict[str, Table] = {}  # schema → the definition that the stage in it has
        self._stage_rows: dict[int, int] = {}
        self._sized: set[int] = set()  # committed files whose size was found as catalogued
        self._is_confined = False

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor of its own for a result that a user reads from; `drop` frees it."""
        cursor = self._duckdb.cursor()
        if self._is_followed:
            cursor.execute(_FOLLOWED)
        self._cursors[id(cursor)] = cursor
        return cursor

    def confine(self, settings: Iterable[str]) -> None:
        """From now on, for good, DuckDB opens only files of the lake's data and of its temporary folder, and loads no extension.

        `settings`: those of DuckDB's that can be changed still. (A function changes some, `enable_logging` in a FROM, and writes to a file then.)
        """
        allowed = ", ".join(literal(str(folder.resolve())) for folder in (self._paths.data, self._paths.tmp))
        self.do(f"SET GLOBAL allowed_directories = [{allowed}]")
        self.do("SET GLOBAL enable_external_access = false")
        self.do(f"SET GLOBAL allowed_configs = [{', '.join(map(literal, [*sorted(settings), *_CHANGED_LATER]))}]")
        self.do("SET GLOBAL lock_configuration = true")
        self._is_confined = True

    def follow(self) -> None:
        """Has DuckDB count how far a statement is, from now on; again: nothing happens."""
        if not self._is_followed:
            self._is_followed = True
            self.work.execute(_FOLLOWED)

    def progress(self) -> float | None:
        """How many percent of what runs are done, from another thread; None where DuckDB cannot say."""
        return max((done for cursor in [self.work, *list(self._cursors.values())] if (done := cursor.query_progress()) >= 0), default=None)

    def cursor_over(self, columns: Sequence[tuple[str, Any]], rows: Sequence[tuple[Any, ...]]) -> duckdb.DuckDBPyConnection:
        """A cursor of its own whose result are these rows. `columns`: name and type of each."""
        cursor = self.cursor()
        try:
            return held.show(cursor, columns, rows)
        except BaseException:
            self.drop(cursor)
            raise

    def cursor_of(self, rows: SavedRows) -> duckdb.DuckDBPyConnection:
        """A cursor of its own whose result are rows that were saved. `interrupt` reaches it only when it is open: they may be those of a commit."""
        cursor = self.shelf.open(self._duckdb.cursor(), rows)
        self._cursors[id(cursor)] = cursor
        return cursor

    def drop(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Closes a cursor that `cursor` made."""
        self._cursors.pop(id(cursor), None)
        self.shelf.closed(cursor)
        cursor.close()

    def do(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs SQL of our own to its end (DuckDB streams: a statement is only done when its result has been read). `interrupt` does not reach it."""
        return _all_of(self._own, sql, parameters)

    def run(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs SQL that holds the user's text to its end; `interrupt` stops it."""
        return _all_of(self.work, sql, parameters)

    def without_tables(self, sql: str, parameters: Mapping[str, Any]) -> Any:
        """The one value of a SELECT that sees no table of the lake; of the parameters it takes those that it uses."""
        used = duckdb.extract_statements(sql)[0].named_parameters if parameters else ()
        return _all_of(self._nameless(), sql, {name: parameters[name] for name in used})[0][0]

    def columns_of(self, sql: str) -> list[tuple[str, str]]:
        """The names and types of the columns that a statement without rows gives, run where no table and no macro of ours has a name."""
        cursor = self._nameless().execute(sql)
        found = [(column[0], str(column[1])) for column in cursor.description or ()]
        cursor.fetchall()
        return found

    def _nameless(self) -> duckdb.DuckDBPyConnection:
        """A cursor whose database is empty."""
        if self._names is None:
            self._names = self._duckdb.cursor()
            _all_of(self._names, f"ATTACH ':memory:' AS {NAMELESS}; USE {NAMELESS}", None)
        return self._names

    def table_names(self, text: str) -> set[str] | None:
        """The qualified names of the tables that DuckDB's binder finds in `text`, without CTEs; None where it cannot tell.

        Asked where the views are not visible: a name that is a view is answered with what is inside it.
        """
        if names_database(text):
            return None
        try:
            return self._nameless().get_table_names(text, qualified=True)
        except duckdb.Error:
            return None

    def interrupt(self) -> None:
        """Stops whatever runs, from another thread. Where nothing runs, nothing happens."""
        stop(*self._users(), *list(self._cursors.values()))

    def _users(self) -> list[duckdb.DuckDBPyConnection]:
        """What runs the user's text, beside the cursors of results."""
        return [self.work] if self._names is None else [self.work, self._names]

    def stopper(self) -> Callable[[], None]:
        """A function that stops what is begun from now on; results that are being read already go on."""
        older = set(self._cursors.values())
        return lambda: stop(*self._users(), *(cursor for cursor in list(self._cursors.values()) if cursor not in older))

    def close(self) -> None:
        if self._names is not None:
            self._names.close()
        self.work.close()
        self._own.close()
        self._duckdb.close()

    # Views.

    def show(self, state: TableState) -> None:
        """Makes the name of the table mean `state`, for every cursor."""
        table = state.table
        key = (fold(table.schema_name), fold(table.name))
        if self._views.get(key) == state.stamp:
            return
        self.need_schema(table.schema_name)
        self.do(f"CREATE OR REPLACE VIEW {quote(table.schema_name)}.{quote(table.name)} AS {self.relation(state)}")
        self._views[key] = state.stamp

    def show_view(self, view: Table, query: str, stamp: int, *, run: bool = False) -> None:
        """Makes the name of a view mean `query`, for every cursor. What it reads has to be visible; `stamp`: what that is.

        duckdb.Error: the query fails. `run`: it is the statement of the user's, and can be interrupted.
        """
        assert view.view is not None
        key = (fold(view.schema_name), fold(view.name))
        made = f"{view.view.listed} AS {query}"
        if self._views.get(key) == (stamp, made):
            return
        self.need_schema(view.schema_name)
        do = self.run if run else self.do
        do(f"CREATE OR REPLACE VIEW {quote(view.schema_name)}.{quote(view.name)}{made}\n")
        self._views[key] = (stamp, made)

    def columns_of_view(self, view: Table) -> list[str]:
        """The names of the columns of a view that is shown; none of another one, or where its query fails by now."""
        if (fold(view.schema_name), fold(view.name)) not in self._views:
            return []
        try:
            return [row[0] for row in self.do(f"DESCRIBE {quote(view.schema_name)}.{quote(view.name)}")]
        except duckdb.Error:
            return []

    def hide(self, table: Table) -> None:
        """The name of a table or a view means nothing any more."""
        self.do(f"DROP VIEW IF EXISTS {quote(table.schema_name)}.{quote(table.name)}")
        self._views.pop((fold(table.schema_name), fold(table.name)), None)

    def show_only(self, tables: Iterable[tuple[str, str]]) -> None:
        """Drops the views of tables (folded schema and name) that are not among `tables`."""
        for schema, name in self._views.keys() - set(tables):
            self.do(f"DROP VIEW IF EXISTS {quote(schema)}.{quote(name)}")
            del self._views[(schema, name)]

    def show_version(self, state: TableState, version: int) -> str:
        """A qualified name for `state`, the table as of a version; its last parts are the table's own schema and name."""
        return self.past.view(str(version), state.table.schema_name, state.table.name, state.stamp, lambda: self.relation(state))

    def need_schema(self, name: str) -> None:
        """Sees to it that DuckDB knows a schema."""
        if fold(name) not in self._schemas:
            self.do(f"CREATE SCHEMA IF NOT EXISTS {quote(name)}")
            self._schemas.add(fold(name))

    # The rows of a table state as SQL.

    def relation(self, state: TableState) -> str:
        """A SELECT of the table's columns over its live rows."""
        files, inline = self._groups(state, state.fragments.values())
        return scan.relation(state, files, inline, self._kept(state, files, inline, {}))

    def addressed(self, state: TableState, fragments: Iterable[Fragment], *, live_only: bool = True, only: frozenset[str] | None = None) -> Addressed:
        """The rows of the given fragments with their row addresses; without `live_only` deleted ones too, which is cheaper to read.

        `only`: the folded names of the columns that are wanted, and no row ids; None: all.
        """
        chosen = list(fragments)
        hot = self._hot.tables(scan.narrowed(state.table, only), chosen, self._file, row_ids=only is None)
        files, inline = self._groups(state, chosen, live_only=live_only)
        return scan.addressed(state, files, inline, self._kept(state, files, inline, hot), only)

    def columns(self, state: TableState, fragments: Iterable[Fragment], only: frozenset[str], *, few: bool = False) -> str:
        """A SELECT of some columns, hidden ones too, over the live rows of the given fragments. `only`: their folded names.

        `few`: no more than a few row groups will be read, so that nothing is gained by holding the columns.
        """
        chosen = list(fragments)
        table = scan.narrowed(state.table, only)
        shown = state.defined_as(replace(table, columns=tuple(replace(c, hidden=False) for c in table.columns)))
        hot = {} if few else self._hot.tables(shown.table, chosen, self._file, row_ids=False)
        files, inline = self._groups(shown, chosen)
        return scan.relation(shown, files, inline, self._kept(state, files, inline, hot))

    @staticmethod
    def _groups(state: TableState, fragments: Iterable[Fragment], *, live_only: bool = True) -> tuple[scan.Groups, scan.Groups]:
        chosen = list(fragments)
        files = [f for f in chosen if f.storage == "parquet"]
        inline = [f for f in chosen if f.storage == "inline"]
        return scan.groups(state, files, live_only=live_only), scan.groups(state, inline, live_only=live_only)

    def _kept(self, state: TableState, files: scan.Groups, inline: scan.Groups, hot: Mapping[int, str]) -> scan.Kept:
        """Sees to it that the caches hold what the scans need."""
        paths = {f.fragment_id: self._file(f) for f in (*files.clean, *files.listed, *files.marked) if f.fragment_id not in hot}
        rows = (*inline.clean, *inline.listed, *inline.marked)
        table = self._cache.inline(state, rows) if rows else ""
        return scan.Kept(paths, hot, table, self._cache.vectors_table, self._cache.vectors(state, (*files.marked, *inline.marked)))

    def _file(self, fragment: Fragment) -> str:
        """The path of a fragment's file, whose size, and in safe mode whose number of rows, is compared with the catalog once per session."""
        assert fragment.path is not None
        if fragment.fragment_id in self._sized:
            return str(self._paths.table_folder(fragment.table_id) / fragment.path)
        path = self._paths.existing_data_file(fragment.table_id, fragment.path, fragment.size_bytes)
        if self._is_confined:
            self._check_rows(path, fragment.row_count)
        if fragment.fragment_id > 0:
            self._sized.add(fragment.fragment_id)
        return str(path)

    def _check_rows(self, path: Path, wanted: int) -> None:
        """OperationalError where a file's footer tells of other rows than the catalog: where somebody else made it, it is asked before it is read."""
        ((found,),) = self.do(f"SELECT num_rows FROM parquet_file_metadata({literal(str(path))})")
        if found != wanted:
            raise OperationalError(f"the data file {path} has {found} rows, the catalog says {wanted}", hint="CHECK LAKE lists all that is wrong")

    def renumber(self, table_id: int, fragments: Mapping[int, int]) -> None:
        """Staged fragments have been committed: from their negative ids to the real ones."""
        self._cache.renumber(table_id, fragments)

    def trim(self) -> None:
        """Bounds the caches; called between statements."""
        self.past.trim()
        self._hot.trim()
        self.loaded.trim()
        self.shelf.trim()
        self.temporary.trim()
        if self._cache.trim():
            self._views = dict.fromkeys(self._views)
            self.past.forget_views()

    # Arrow.

    def arrow(self, sql: str, parameters: Mapping[str, Any]) -> pa.Table:
        """Runs one statement that gives rows; all of them as an Arrow table."""
        return relation(self.work, sql, parameters).to_arrow_table()

    def over(self, rows: pa.Table, sql: str) -> dict[str, NDArray[Any]]:
        """The columns that a SELECT gives, as numpy arrays; `lake_arrow` means the rows in it."""
        self.work.register("lake_arrow", rows)
        try:
            return dict(self.work.execute(sql).fetchnumpy())
        finally:
            self.work.unregister("lake_arrow")

    def held(self, sql: str, parameters: Mapping[str, Any], columns: Sequence[tuple[str, str]], most: int | None = None) -> pa.Table | None:
        """The rows of a SELECT as an Arrow table, or None if they are more than `most`. `columns`: name and stored type of each."""
        return held.fetch(self.work, sql, parameters, columns, most)

    # Statements that DuckDB itself runs on an empty copy of a table.

    def stage(self, table: Table, *, keyed: bool = False) -> str:
        """The qualified name of a DuckDB table with the columns, NOT NULLs and defaults of `table`, for DuckDB's own INSERT.

        `keyed`: one with its keys as well, in which nothing is ever put.
        """
        shown = replace(table, constraints=table.keys_as_named if keyed else ())
        schema = f"{INTERNAL}.{'keyed' if keyed else 'stage'}_{table.table_id}"
        if self._stages.get(schema) != shown:
            name = f"{schema}.{quote(table.name)}"
            self.do(f"CREATE SCHEMA IF NOT EXISTS {schema}; CREATE OR REPLACE TABLE {name} {shown.body}")
            self._stages[schema] = shown
        return f"{schema}.{quote(table.name)}"

    def insert_returning(self, table: Table, insert: str, returning: str, parameters: Mapping[str, Any]) -> pa.Table:
        """DuckDB's own INSERT into the stage of `table`, and what its RETURNING gives. What it leaves in the stage is never read."""
        rows = self.arrow(f"{insert}\nRETURNING {returning}", parameters)
        left = self._stage_rows.get(table.table_id, 0) + rows.num_rows
        if left > STAGE_ROWS_KEPT:
            self.do(f"TRUNCATE {self.stage(table)}")
            left = 0
        self._stage_rows[table.table_id] = left
        return rows


def open_again(folder: Path, spill: str) -> duckdb.DuckDBPyConnection:
    """DuckDB, read-only, on the databases that an engine had in `folder`; for somebody else's use, whose variables are tables in it."""
    connection = duckdb.connect(_database("memory", folder), read_only=True, config={"temp_directory": spill})
    try:
        connection.execute(f"ATTACH {literal(_database(INTERNAL, folder))} AS {INTERNAL} (READ_ONLY, HIDDEN)")
    except BaseException:
        connection.close()
        raise
    return connection


def names_database(text: str) -> bool:
    """Whether something may be named with the database that holds the views."""
    return _WITH_DATABASE.search(text) is not None


def _database(name: str, folder: Path | None) -> str:
    """Where DuckDB has a database. Its file is called as the database is, since DuckDB calls it by the file."""
    return ":memory:" if folder is None else str(folder / name)


def stop(*cursors: duckdb.DuckDBPyConnection) -> None:
    """Interrupts what runs on them, from another thread; one that was closed meanwhile runs nothing."""
    for cursor in cursors:
        with suppress(duckdb.ConnectionException):
            cursor.interrupt()


def _all_of(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> list[tuple[Any, ...]]:
    return cursor.execute(sql, parameters).fetchall() if parameters else cursor.execute(sql).fetchall()
