"""The catalog's SQLite file: opening it with care, and reading it. `publish.py` writes to it.

Promises: a file that is damaged, foreign, newer or changed by others is refused with one clear error and nothing is
written; reads name the snapshot they want, so they need no long transaction; "database is locked" never reaches a user.
Never opens the file with anything but sqlite3 (closing a plain handle would drop SQLite's locks).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from lakelite import deletion
from lakelite.catalog.queries import migrations, queries
from lakelite.composition import Composition, Run, decode_row_map
from lakelite.contents import Namespace, TableState
from lakelite.errors import CannotOpen, DataError, InternalError, OperationalError
from lakelite.mapping.catalog_errors import cannot_open, catalog_error
from lakelite.model import MAIN_BRANCH_ID, Column, Constraint, Field, FileColumn, Fragment, PartitionKey, Schema, Statistics, Table, View, fold

APPLICATION_ID = 0x4C4B4C54  # "LKLT"
SMALLEST_DATABASE_BYTES = 512
CHECKED_BYTES = 8 * 1024 * 1024
WAL_BYTES_KEPT = 1024 * 1024  # of the WAL, when it starts anew after a checkpoint
BUSY_TIMEOUT_MS = 10_000  # only for foreign readers: our own writers queue on the commit lock
OF_TABLE = 0  # the field id of a comment that is the table's own
Row = tuple[Any, ...]
_Value = TypeVar("_Value")


class Catalog:
    """An open catalog. One per connection; threads may share it (one statement at a time)."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._sqlite = connection
        self._lock = threading.RLock()
        self._queries = queries()
        self.path = path

    def close(self) -> None:
        with self._lock:
            self._sqlite.close()

    def rows(self, query: str, **parameters: Any) -> list[Row]:
        """All rows of a named query. DataError: a parameter is beyond 64 bits."""
        with self._lock:
            try:
                return self._sqlite.execute(self._queries[query], parameters).fetchall()
            except sqlite3.ProgrammingError as error:
                raise InternalError(f"the catalog was used wrongly: {error}") from error
            except OverflowError as error:
                raise DataError("a number is too large: the catalog holds whole numbers of 64 bits") from error
            except UnicodeError as error:
                raise OperationalError("the catalog is damaged: it holds text that is none", hint="restore the lake from a copy") from error
            except sqlite3.Error as error:
                raise catalog_error(error, "reading it") from error

    def row(self, query: str, **parameters: Any) -> Row:
        """The first row of a named query that always has one."""
        found = self.rows(query, **parameters)
        if not found:
            raise InternalError(f"the catalog query {query} found nothing")
        return found[0]

    @contextmanager
    def transaction(self, doing: str) -> Iterator[Writer]:
        """BEGIN IMMEDIATE … COMMIT, or ROLLBACK on an error. Hold the commit lock around it."""
        try:
            with self.publication(doing) as writer:
                yield writer
        except CommitFailed as failed:
            raise failed.args[0] from failed.__cause__

    @contextmanager
    def publication(self, doing: str) -> Iterator[Writer]:
        """As `transaction`, except that an error of COMMIT itself is a `CommitFailed`: the caller has to look whether it landed."""
        with self._lock:
            try:
                self._sqlite.execute("BEGIN IMMEDIATE")
                yield Writer(self._sqlite, self._queries)
            except BaseException as error:
                self._roll_back(error)
                if isinstance(error, sqlite3.Error):
                    raise catalog_error(error, doing) from error
                raise
            try:
                self._sqlite.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back(error)
                is_whole = getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL
                raise CommitFailed(catalog_error(error, doing), is_whole) from error

    def _roll_back(self, error: BaseException) -> None:
        """Ends what `error` left open. If that fails too, `error` stays the one that is told, and the connection is given up:
        it would hold the write lock and read rows that nobody committed."""
        try:
            if self._sqlite.in_transaction:  # on a full disk SQLite has rolled back by itself
                self._sqlite.execute("ROLLBACK")
        except sqlite3.Error as second:
            error.add_note(f"ROLLBACK failed as well: {second}")
            self._sqlite.close()

    def bury_failed_commit(self) -> None:
        """Makes it final that a COMMIT which failed has not landed. Its frames may be whole in the WAL, past the end that
        everybody knows, and a recovery after a crash would take them for a commit: a small commit over them ends that."""
        with self.transaction("undoing a commit that failed") as writer:
            writer.reserve("row", 1)

    def checkpoint(self) -> None:
        """Moves the WAL's pages into the file where no reader needs them. Only under the commit lock (SQLite ≤ 3.51.2 has a WAL-reset bug)."""
        with self._lock:
            try:
                self._sqlite.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error as error:
                raise catalog_error(error, "checkpointing it") from error

    # What a snapshot holds.

    def head(self, branch_id: int = MAIN_BRANCH_ID) -> int:
        """The newest snapshot of a branch. OperationalError: the branch was dropped."""
        if branch_id != MAIN_BRANCH_ID and not self.row("is_branch_living", branch=branch_id)[0]:
            raise OperationalError("this branch was dropped", hint="USE BRANCH main goes on with another one; SHOW BRANCHES lists them")
        return int(self.row("head", branch=branch_id)[0])

    def namespace(self, snapshot_id: int) -> Namespace:
        schemas = {row[0]: Schema(*row) for row in self.rows("schemas", snapshot=snapshot_id)}
        columns = columns_by_table(self.rows("columns", snapshot=snapshot_id))
        constraints = _constraints(self.rows("constraints", snapshot=snapshot_id))
        rows = self.rows("tables", snapshot=snapshot_id)
        tables = (Table(*(*row, columns.get(row[0], ()), tuple(constraints.get(row[0], ())))) for row in rows)
        found = self._described(tables, snapshot_id)
        return Namespace({fold(s.name): s for s in schemas.values()}, {(fold(t.schema_name), fold(t.name)): t for t in found})

    def _described(self, tables: Iterable[Table], snapshot_id: int) -> Iterable[Table]:
        """The same with their comments, options and partitioning, and views with their queries."""
        tables = self._tuned(tables, snapshot_id)
        views = {row[0]: _view(row) for row in self.rows("views", snapshot=snapshot_id)}
        comments = {(row[0], row[1]): row[2] for row in self.rows("comments", snapshot=snapshot_id)}
        return (_commented(replace(t, view=views.get(t.table_id)), comments) for t in tables) if views or comments else tables

    def _tuned(self, tables: Iterable[Table], snapshot_id: int) -> Iterable[Table]:
        options = _grouped((row[0], (row[1], row[2])) for row in self.rows("options", snapshot=snapshot_id))
        keys = _grouped((row[0], PartitionKey(*row[1:])) for row in self.rows("partition_keys", snapshot=snapshot_id))
        if not (options or keys):
            return tables
        return (replace(t, options=options.get(t.table_id, ()), partitioning=keys.get(t.table_id, ())) for t in tables)

    def table_state(self, table: Table, snapshot_id: int) -> TableState:
        """The fragments and deletion vectors of `table` at a snapshot; the whole of it is read."""
        rows = self.rows("fragments", table_id=table.table_id, snapshot=snapshot_id)
        found = self._statistics(table, -1, snapshot_id), self._partitions(table, -1, snapshot_id), self.file_columns(table.table_id)
        fragments = _fragments(rows, *found)
        return TableState(table, fragments, self._vectors(table, -1, snapshot_id))

    def advance(self, state: TableState, table: Table, after: int, snapshot_id: int) -> TableState:
        """The state of `table` at a snapshot, from its state at the older snapshot `after`: only what changed is read."""
        if table.partitioning != state.table.partitioning:
            return self.table_state(table, snapshot_id)
        born = self.rows("fragments_born", table_id=table.table_id, after=after, snapshot=snapshot_id)
        gone = {row[0] for row in self.rows("fragments_gone", table_id=table.table_id, after=after, snapshot=snapshot_id)}
        found = self._statistics(table, after, snapshot_id), self._partitions(table, after, snapshot_id), self.file_columns(table.table_id)
        fragments = {**state.fragments, **_fragments(born, *found)}
        vectors = {**state.vectors, **self._vectors(table, after, snapshot_id)}
        return TableState(table, {k: f for k, f in fragments.items() if k not in gone}, {k: v for k, v in vectors.items() if k not in gone})

    def deaths(self, table: Table, base: int, head: int) -> tuple[list[tuple[int, deletion.DeletionVector]], dict[int, int]]:
        """What was deleted in (base, head]: each version of a deletion vector (fragment id, vector), oldest first, and when fragments ended."""
        versions = self.rows("deaths", table_id=table.table_id, base=base, head=head)
        return [(row[0], _vector(row)) for row in versions], dict(self.rows("ends", table_id=table.table_id, base=base, head=head))

    def blind_births(self, table_id: int, base: int, head: int) -> list[tuple[int, int]]:
        """The row ids that blind appends gave out in (base, head]: first id and count of each fragment."""
        return [(row[0], row[1]) for row in self.rows("blind_births", table_id=table_id, base=base, head=head)]

    def compositions(self, table: Table, base: int, head: int) -> dict[int, Composition]:
        """The compactions of `table` that landed in (base, head], by output. Where a deletion vector was pruned, the counts do not agree."""
        found = self.rows("compositions", table_id=table.table_id, base=base, head=head)
        return {output: self._composition(list(rows)) for output, rows in itertools.groupby(found, key=lambda row: int(row[0]))}

    def _composition(self, rows: list[Row]) -> Composition:
        output, row_count, ordered = rows[0][:3]
        runs = tuple(Run(*row[3:9]) for row in rows)
        dead = {row[3]: _vector((row[3], *row[9:13], row[8])).positions for row in rows if row[9] is not None}
        if ordered:
            return Composition(row_count, runs, dead)
        permutation, elsewhere = decode_row_map(self.row("row_map", output=output)[0], runs, row_count)
        return Composition(row_count, runs, dead, permutation, elsewhere)

    def inline_rows(self, fragment_id: int) -> bytes:
        """The IPC stream of an inline fragment; InternalError if it is not the one that was written."""
        ipc, sha256 = self.row("inline_rows", fragment_id=fragment_id)
        if hashlib.sha256(ipc).hexdigest() != sha256:
            raise InternalError(f"inline fragment {fragment_id} is damaged: its SHA-256 is another one", hint="restore the lake from a copy")
        return bytes(ipc)

    def settings(self) -> dict[str, str]:
        return dict(self.rows("settings"))

    def file_columns(self, table_id: int) -> dict[int, tuple[FileColumn, ...]]:
        """How the adopted files of a table have its columns, by fragment id."""
        found: dict[int, tuple[FileColumn, ...]] = {}
        for fragment_id, *column in self.rows("adopted_columns", table_id=table_id):
            found[fragment_id] = (*found.get(fragment_id, ()), FileColumn(*column))
        return found

    def _statistics(self, table: Table, after: int, snapshot_id: int) -> dict[int, list[Statistics]]:
        found: dict[int, list[Statistics]] = {}
        for fragment_id, field_id, low, high, nulls, exact, nan in self.rows(
            "statistics", table_id=table.table_id, after=after, snapshot=snapshot_id
        ):
            found.setdefault(fragment_id, []).append(Statistics(field_id, low, high, nulls, bool(exact), bool(nan)))
        return found

    def _partitions(self, table: Table, after: int, snapshot_id: int) -> dict[int, tuple[tuple[PartitionKey, str | None], ...]]:
        """Not asked for where the table is not partitioned: nobody needs them then."""
        if not table.partitioning:
            return {}
        rows = self.rows("partitions", table_id=table.table_id, after=after, snapshot=snapshot_id)
        return _grouped((row[0], (PartitionKey(*row[1:4]), row[4])) for row in rows)

    def _vectors(self, table: Table, after: int, snapshot_id: int) -> dict[int, deletion.DeletionVector]:
        rows = self.rows("vectors", table_id=table.table_id, after=after, snapshot=snapshot_id)
        return {row[0]: _vector(row) for row in rows}


class CommitFailed(Exception):
    """COMMIT itself gave an error: the transaction may or may not have landed.

    `args[0]`: the mapped error; `args[1]`: whether the WAL may hold all of it (not if a write found the disk full).
    """


class Writer:
    """The statements of one catalog transaction; made by `Catalog.transaction` only."""

    def __init__(self, connection: sqlite3.Connection, named: Mapping[str, str]) -> None:
        self._sqlite = connection
        self._queries = named

    def run(self, query: str, **parameters: Any) -> int:
        """Runs a named statement; returns the number of rows that it changed."""
        return self._sqlite.execute(self._queries[query], parameters).rowcount

    def run_many(self, query: str, parameters: Iterable[Mapping[str, Any]]) -> None:
        self._sqlite.executemany(self._queries[query], parameters)

    def row(self, query: str, **parameters: Any) -> Row:
        found = self._sqlite.execute(self._queries[query], parameters).fetchall()
        if not found:
            raise InternalError(f"the catalog statement {query} gave no row")
        return tuple(found[0])

    def reserve(self, counter: str, count: int) -> int:
        """The first of `count` new ids, never given out before."""
        return int(self.row("reserve", name=counter, count=count)[0])


def columns_by_table(rows: Iterable[Row]) -> dict[int, tuple[Column, ...]]:
    roots: dict[int, list[Row]] = {}
    children: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        table_id, _, parent = row[:3]
        (roots.setdefault(table_id, []) if parent is None else children.setdefault((table_id, parent), [])).append(row)

    def tree(row: Row) -> Field:
        return Field(row[1], row[3], row[5], tuple(tree(child) for child in children.get((row[0], row[1]), [])), row[8])

    return {
        table_id: tuple(Column(name=row[3], type=row[4], stored=tree(row), nullable=bool(row[6]), default=row[7]) for row in found)
        for table_id, found in roots.items()
    }


def _grouped(pairs: Iterable[tuple[int, _Value]]) -> dict[int, tuple[_Value, ...]]:
    found: dict[int, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def _constraints(rows: Iterable[Row]) -> dict[int, list[Constraint]]:
    found: dict[int, list[Constraint]] = {}
    for table_id, kind, name, expression, columns in rows:
        named = tuple((column, field_id) for column, field_id in json.loads(columns))
        found.setdefault(table_id, []).append(Constraint(kind, name, expression, named))
    return found


def _view(row: Row) -> View:
    return View(row[1], tuple(json.loads(row[2])), tuple((name, comment) for name, comment in json.loads(row[3])))


def _commented(table: Table, comments: Mapping[tuple[int, int], str]) -> Table:
    if not comments:
        return table
    columns = tuple(replace(c, comment=comments.get((table.table_id, c.field_id))) for c in table.columns)
    return replace(table, columns=columns, comment=comments.get((table.table_id, OF_TABLE)))


def _vector(row: Row) -> deletion.DeletionVector:
    try:
        return deletion.decode(deletion.Encoded(*row[1:5]), row[5])
    except InternalError as error:
        raise InternalError(f"fragment {row[0]}: {error.message}", hint="restore the lake from a copy") from error


def _fragments(
    rows: Iterable[Row],
    statistics: Mapping[int, list[Statistics]],
    partitions: Mapping[int, tuple[tuple[PartitionKey, str | None], ...]],
    columns: Mapping[int, tuple[FileColumn, ...]],
) -> dict[int, Fragment]:
    def made(row: Row) -> Fragment:
        found, known = Fragment(*(*row[:8], bool(row[8]))), tuple(statistics.get(row[0], ()))
        return replace(found, statistics=known, born=row[9], partition=partitions.get(row[0], ()), columns=columns.get(row[0], ()))

    return {row[0]: made(row) for row in rows}


# Opening.


def open_catalog(
    path: Path,
    *,
    create: bool,
    durable: bool = True,
    holds_data: Callable[[], bool] = lambda: False,
    locked: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Catalog:
    """Opens the catalog at `path`; with `create`, makes one where there is none. CannotOpen says why not; nothing is written then.

    Not `durable`: for a temporary lake, which need not survive a crash. `holds_data`: whether there are data files, so that
    an empty catalog is not one that is just being made. `locked`: takes the commit lock, which is not held while pages are checked.
    """
    existed = path.exists()
    if not existed and not create:
        raise CannotOpen(f"there is no lake at {path.parent}", hint="check the path, or leave out create=False (--no-create)")
    connection = _connect(path)
    with _closed_on_error(connection, path):
        _check_pages(connection, path)
        with locked():
            if existed or path.stat().st_size > 0:  # another process may have made it meanwhile
                _check_ours(connection, path, holds_data)
            _configure(connection, durable)
            _migrate(connection)
    return Catalog(connection, path)


def check_catalog(path: Path, holds_data: Callable[[], bool]) -> None:
    """CannotOpen if the file at `path` is no catalog of ours. Nothing is written."""
    connection = _connect(path)
    with _closed_on_error(connection, path):
        _check_ours(connection, path, holds_data)
        _check_pages(connection, path)
    connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=256)
        connection.execute("PRAGMA cell_size_check = ON")
        return connection
    except sqlite3.Error as error:
        raise cannot_open(error, path, "opened") from error


@contextmanager
def _closed_on_error(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:  # sqlite3 cannot even tell what is wrong: a name in its message is damaged
        connection.close()
        raise CannotOpen(f"the catalog {path} is damaged: it holds text that is none", hint="restore the lake from a copy") from error
    except sqlite3.Error as error:
        connection.close()
        raise cannot_open(error, path, "used") from error
    except BaseException:
        connection.close()
        raise


def _check_ours(connection: sqlite3.Connection, path: Path, holds_data: Callable[[], bool]) -> None:
    """Refuses a file that is not a catalog of this version or an older one, before anything is written to it."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    objects = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    if application_id == 0 and version == 0 and not objects:
        if holds_data() or 0 < path.stat().st_size < SMALLEST_DATABASE_BYTES:  # SQLite takes a file that is too short for an empty one
            raise CannotOpen(
                f"the catalog {path} is empty, but this is no new lake: the catalog or its log was lost", hint="restore the lake from a copy"
            )
        return  # a lake whose creation was interrupted before its first commit
    if application_id != APPLICATION_ID:
        raise CannotOpen(f"{path} is a SQLite file, but no lakelite catalog", hint="give another directory")
    if version > len(migrations()):
        raise CannotOpen(
            f"{path} was written by a newer lakelite (catalog version {version}, this one knows {len(migrations())})", hint="upgrade lakelite"
        )
    if set(objects) != _expected_objects(version):
        raise CannotOpen(
            f"the catalog {path} does not have the tables of version {version}: it was changed by another program",
            hint="restore the lake from a copy",
        )


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses a damaged catalog. Not a large one: all pages are read, about 12 ms per MB, and what is damaged shows when it is used."""
    if not 0 < path.stat().st_size <= CHECKED_BYTES:
        return
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise CannotOpen(f"the catalog {path} is damaged: {damage}", hint="restore the lake from a copy")


def _expected_objects(version: int) -> set[Row]:
    fresh = sqlite3.connect(":memory:")
    try:
        for script in migrations()[:version]:
            fresh.executescript(script)
        return set(fresh.execute("SELECT type, name, sql FROM sqlite_schema").fetchall())
    finally:
        fresh.close()


def _configure(connection: sqlite3.Connection, durable: bool) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise CannotOpen("the file system of this lake does not support SQLite's WAL mode", hint="put the lake on a local disk")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")  # else its size tells nothing after the first checkpoint
    connection.execute("PRAGMA mmap_size = 0")


def _migrate(connection: sqlite3.Connection) -> None:
    """Runs the migrations that the file lacks, each in one transaction; another process may be doing the same."""
    if connection.execute("PRAGMA user_version").fetchone()[0] == len(migrations()):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for number, script in enumerate(migrations()[version:], start=version + 1):
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        if version == 0:
            _first_snapshot(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _first_snapshot(connection: sqlite3.Connection) -> None:
    """Version 0: the empty lake."""
    connection.execute(
        "INSERT INTO snapshots (snapshot_id, branch_id, committed_at_us, operation, statements, isolation, attempts, transaction_id, blind)"
        " VALUES (0, ?, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),"
        " 'create lake', '[]', ?, 1, 'create-lake', 0)",
        (MAIN_BRANCH_ID, "write serializable"),
    )


def _statements(script: str) -> Iterator[str]:
    """The statements of a migration script, one by one: executescript() would commit an open transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
