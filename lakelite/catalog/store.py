"""The catalog's SQLite file, once `opened.py` has opened it: reading it, and the transactions in which `publish.py` writes to it.

Promises: reads name the snapshot they want, so they need no long transaction; "database is locked" never reaches a user.
Never opens the file with anything but sqlite3 (closing a plain handle would drop SQLite's locks).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lakelite import deletion
from lakelite.catalog.decoding import (
    Row,
    columns_by_table,
    commented,
    constraints_by_table,
    file_column,
    fragments_by_id,
    grouped,
    vector_of,
    view_of,
)
from lakelite.catalog.queries import queries
from lakelite.composition import Composition, Run, decode_row_map
from lakelite.contents import Namespace, TableState
from lakelite.errors import DataError, InternalError, OperationalError
from lakelite.mapping.catalog_errors import catalog_error
from lakelite.model import MAIN_BRANCH_ID, FileColumn, PartitionKey, Schema, Statistics, Table, fold, quote


class Catalog:
    """An open catalog. One per connection; threads may share it (one statement at a time)."""

    def __init__(self, connection: sqlite3.Connection, path: Path, again: Callable[[], sqlite3.Connection]) -> None:
        """`again`: another connection to the same file."""
        self._sqlite = connection
        self._again = again
        self._lock = threading.RLock()
        self._queries = queries()
        self._patience_ms: int | None = None
        self._is_given_up = False
        self.path = path
        self._file = _identity(path)

    def close(self) -> None:
        with self._lock:
            self._is_given_up = False  # nothing takes its place
            self._sqlite.close()

    def rows(self, query: str, **parameters: Any) -> list[Row]:
        """All rows of a named query. DataError: a parameter is beyond 64 bits."""
        with self._lock:
            try:
                return self._execute(self._queries[query], parameters).fetchall()
            except sqlite3.ProgrammingError as error:
                raise InternalError(f"the catalog was used wrongly: {error}") from error
            except OverflowError as error:
                raise DataError("a number is too large: the catalog holds whole numbers of 64 bits", hint="give a smaller number") from error
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
            self._check_there()
            try:
                self._execute("BEGIN IMMEDIATE")
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

    def _execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> sqlite3.Cursor:
        """Once more on a new connection, where the locks of this one are lost: what the system refuses to free once, SQLite holds for good."""
        connection = self._usable()
        try:
            return connection.execute(statement, parameters or {})
        except sqlite3.OperationalError as error:
            if not _lost_its_locks(error) or connection.in_transaction:
                raise
        self._give_up()
        return self._usable().execute(statement, parameters or {})

    def _usable(self) -> sqlite3.Connection:
        """The connection, or a new one where it was given up; where that cannot be had, whoever comes next tries again."""
        if self._is_given_up:
            self._check_there()  # where the file is gone, a new connection would make another one
            self._sqlite, self._patience_ms, self._is_given_up = self._again(), None, False
        return self._sqlite

    def _give_up(self) -> None:
        self._is_given_up = True
        self._sqlite.close()

    def _check_there(self) -> None:
        """OperationalError if the path means another file by now, or none: SQLite would go on writing to one that nobody finds again."""
        if _identity(self.path) != self._file:
            raise OperationalError(
                f"the catalog {self.path} was removed or replaced while the lake was open", hint="restore the lake from a copy, and open it anew"
            )

    def _roll_back(self, error: BaseException) -> None:
        """Ends what `error` left open. If that fails too, `error` stays the one that is told, and the connection is given up:
        it would hold the write lock and read rows that nobody committed. So is one whose locks are lost, before another looks what landed."""
        if self._is_given_up:
            return
        try:
            if self._sqlite.in_transaction:  # on a full disk SQLite has rolled back by itself
                self._sqlite.execute("ROLLBACK")
        except sqlite3.Error as second:
            error.add_note(f"ROLLBACK failed as well: {second}")
            self._give_up()
        else:
            if _lost_its_locks(error):
                self._give_up()

    def bury_failed_commit(self) -> None:
        """Makes it final that a COMMIT which failed has not landed. Its frames may be whole in the WAL, past the end that
        everybody knows, and a recovery after a crash would take them for a commit: a small commit over them ends that."""
        with self.transaction("undoing a commit that failed") as writer:
            writer.reserve("row", 1)

    def wait_at_most(self, milliseconds: int) -> None:
        """How long a write waits where another program holds SQLite's own lock."""
        with self._lock:
            if milliseconds != self._patience_ms:
                self._usable().execute(f"PRAGMA busy_timeout = {int(milliseconds)}")
                self._patience_ms = milliseconds

    def checkpoint(self) -> None:
        """Moves the WAL's pages into the file where no reader needs them. Only under the commit lock (SQLite ≤ 3.51.2 has a WAL-reset bug)."""
        with self._lock:
            try:
                self._usable().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error as error:
                raise catalog_error(error, "checkpointing it") from error

    def copy_to(self, path: Path) -> None:
        """A whole copy, in a new file that is not durable yet. Under the commit lock it is of the newest snapshot."""
        with self._lock:
            try:
                self._usable().execute("VACUUM INTO ?", (str(path),))
            except sqlite3.Error as error:
                raise catalog_error(error, "copying it") from error

    # What a snapshot holds.

    def head(self, branch_id: int = MAIN_BRANCH_ID) -> int:
        """The newest snapshot of a branch. OperationalError: the branch was dropped."""
        found = self.rows("head", branch=branch_id)
        if not found:
            raise OperationalError("this branch was dropped", hint="USE BRANCH main goes on with another one; SHOW BRANCHES lists them")
        if found[0][0] is None:
            raise InternalError("the catalog is damaged: it has no snapshot of this branch", hint="CHECK LAKE says what is wrong")
        return int(found[0][0])

    def namespace(self, snapshot_id: int) -> Namespace:
        schemas = {row[0]: Schema(*row) for row in self.rows("schemas", snapshot=snapshot_id)}
        columns = columns_by_table(self.rows("columns", snapshot=snapshot_id))
        constraints = constraints_by_table(self.rows("constraints", snapshot=snapshot_id))
        rows = self.rows("tables", snapshot=snapshot_id)
        tables = (Table(*(*row, columns.get(row[0], ()), tuple(constraints.get(row[0], ())))) for row in rows)
        found = self._described(tables, snapshot_id)
        return Namespace({fold(s.name): s for s in schemas.values()}, {(fold(t.schema_name), fold(t.name)): t for t in found})

    def _described(self, tables: Iterable[Table], snapshot_id: int) -> Iterable[Table]:
        """The same with their comments, options and partitioning, and views with their queries."""
        tables = self._tuned(tables, snapshot_id)
        views = {row[0]: view_of(row) for row in self.rows("views", snapshot=snapshot_id)}
        comments = {(row[0], row[1]): row[2] for row in self.rows("comments", snapshot=snapshot_id)}
        return (commented(replace(t, view=views.get(t.table_id)), comments) for t in tables) if views or comments else tables

    def _tuned(self, tables: Iterable[Table], snapshot_id: int) -> Iterable[Table]:
        options = grouped((row[0], (row[1], row[2])) for row in self.rows("options", snapshot=snapshot_id))
        keys = grouped((row[0], PartitionKey(*row[1:])) for row in self.rows("partition_keys", snapshot=snapshot_id))
        if not (options or keys):
            return tables
        return (replace(t, options=options.get(t.table_id, ()), partitioning=keys.get(t.table_id, ())) for t in tables)

    def table_state(self, table: Table, snapshot_id: int) -> TableState:
        """The fragments and deletion vectors of `table` at a snapshot; the whole of it is read."""
        rows = self.rows("fragments", table_id=table.table_id, snapshot=snapshot_id)
        found = self._statistics(table, -1, snapshot_id), self._partitions(table, -1, snapshot_id), self._file_columns(table, -1, snapshot_id)
        fragments = fragments_by_id(rows, *found)
        return TableState(table, fragments, self._vectors(table, -1, snapshot_id))

    def advance(self, state: TableState, table: Table, after: int, snapshot_id: int) -> TableState:
        """The state of `table` at a snapshot, from its state at the older snapshot `after`: only what changed is read."""
        if table.partitioning != state.table.partitioning:
            return self.table_state(table, snapshot_id)
        born = self.rows("fragments_born", table_id=table.table_id, after=after, snapshot=snapshot_id)
        gone = {row[0] for row in self.rows("fragments_gone", table_id=table.table_id, after=after, snapshot=snapshot_id)}
        fragments = state.fragments
        if born:  # deletes alone bring none, and many of them land at once
            found = (
                self._statistics(table, after, snapshot_id),
                self._partitions(table, after, snapshot_id),
                self._file_columns(table, after, snapshot_id),
            )
            fragments = {**fragments, **fragments_by_id(born, *found)}
        vectors = {**state.vectors, **self._vectors(table, after, snapshot_id)}
        return TableState(table, {k: f for k, f in fragments.items() if k not in gone}, {k: v for k, v in vectors.items() if k not in gone})

    def deaths(self, table: Table, base: int, head: int) -> tuple[list[tuple[int, deletion.DeletionVector]], dict[int, int]]:
        """What was deleted in (base, head]: each version of a deletion vector (fragment id, vector), oldest first, and when fragments ended."""
        versions = self.rows("deaths", table_id=table.table_id, base=base, head=head)
        return [(row[0], vector_of(row)) for row in versions], dict(self.rows("ends", table_id=table.table_id, base=base, head=head))

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
        dead = {row[3]: vector_of((row[3], *row[9:13], row[8])).positions for row in rows if row[9] is not None}
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

    def _file_columns(self, table: Table, after: int, snapshot_id: int) -> dict[int, tuple[FileColumn, ...]]:
        """How the adopted files have the columns, by fragment id."""
        rows = self.rows("adopted_columns", table_id=table.table_id, after=after, snapshot=snapshot_id)
        return grouped((row[0], file_column(row[1:])) for row in rows)

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
        return grouped((row[0], (PartitionKey(*row[1:4]), row[4])) for row in rows)

    def _vectors(self, table: Table, after: int, snapshot_id: int) -> dict[int, deletion.DeletionVector]:
        rows = self.rows("vectors", table_id=table.table_id, after=after, snapshot=snapshot_id)
        return {row[0]: vector_of(row) for row in rows}


def _lost_its_locks(error: BaseException) -> bool:
    """Whether SQLite says of a connection that it holds what the system has refused to free, which is so until it is closed."""
    return isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF == sqlite3.SQLITE_PROTOCOL


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


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

    def make_index_anew(self, name: str) -> None:
        self._sqlite.execute(f"REINDEX {quote(name)}")

    def row(self, query: str, **parameters: Any) -> Row:
        found = self._sqlite.execute(self._queries[query], parameters).fetchall()
        if not found:
            raise InternalError(f"the catalog statement {query} gave no row")
        return tuple(found[0])

    def reserve(self, counter: str, count: int) -> int:
        """The first of `count` new ids, never given out before."""
        return int(self.row("reserve", name=counter, count=count)[0])
