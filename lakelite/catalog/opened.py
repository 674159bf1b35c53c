"""Opening the catalog's SQLite file with care.

Promises: a file that is damaged, foreign, newer or changed by others is refused with one clear error and nothing is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path

from lakelite.catalog.decoding import Row
from lakelite.catalog.queries import migrations
from lakelite.catalog.store import Catalog
from lakelite.errors import CannotOpen
from lakelite.mapping.catalog_errors import cannot_open, found_damaged
from lakelite.model import MAIN_BRANCH_ID

APPLICATION_ID = 0x4C4B4C54  # "LKLT"
SMALLEST_DATABASE_BYTES = 512
CHECKED_BYTES = 8 * 1024 * 1024
WAL_BYTES_KEPT = 1024 * 1024  # of the WAL, when it starts anew after a checkpoint
BUSY_TIMEOUT_MS = 10_000  # only for foreign readers: our own writers queue on the commit lock


def open_catalog(
    path: Path,
    *,
    create: bool,
    durable: bool = True,
    holds_data: Callable[[], bool] = lambda: False,
    locked: Callable[[], AbstractContextManager[None]] = nullcontext,
    whole: bool = False,
) -> Catalog:
    """Opens the catalog at `path`; with `create`, makes one where there is none. CannotOpen says why not; nothing is written then.

    Not `durable`: for a temporary lake, which need not survive a crash. `holds_data`: whether there are data files, so that
    an empty catalog is not one that is just being made. `locked`: takes the commit lock, which is not held while pages are checked.
    `whole`: all pages are, also those of a large catalog.
    """
    existed = path.exists()
    if not existed and not create:
        raise CannotOpen(f"there is no lake at {path.parent}", hint="check the path, or leave out create=False (--no-create)")
    connection = _connect(path)
    with _closed_on_error(connection, path):
        _check_pages(connection, path, whole=whole)
        with locked():
            if existed or path.stat().st_size > 0:  # another process may have made it meanwhile
                _check_ours(connection, path, holds_data)
            _configure(connection, durable)
            _migrate(connection)
            _check_writable(connection)
            connection.execute("PRAGMA foreign_keys = ON")  # a migration may make a table anew that others refer to

    def again() -> sqlite3.Connection:
        new = _connect(path)
        with _closed_on_error(new, path):
            _configure(new, durable)
            new.execute("PRAGMA foreign_keys = ON")
        return new

    return Catalog(connection, path, again)


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


def _check_pages(connection: sqlite3.Connection, path: Path, *, whole: bool = False) -> None:
    """Refuses a damaged catalog, and values that its tables do not allow. Not a large one, unless the `whole` is asked for: all pages
    are read, about 12 ms per MB, and what is damaged shows when it is used."""
    size = path.stat().st_size
    if not size or (size > CHECKED_BYTES and not whole):
        return
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise found_damaged(path, damage)


@cache
def _expected_objects(version: int) -> frozenset[Row]:
    """What such a catalog has; made once in a process, for it takes as long as to make a lake."""
    fresh = sqlite3.connect(":memory:")
    try:
        for script in migrations()[:version]:
            fresh.executescript(script)
        return frozenset(fresh.execute("SELECT type, name, sql FROM sqlite_schema").fetchall())
    finally:
        fresh.close()


def _configure(connection: sqlite3.Connection, durable: bool) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise CannotOpen("the file system of this lake does not support SQLite's WAL mode", hint="put the lake on a local disk")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
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


def _check_writable(connection: sqlite3.Connection) -> None:
    """SQLite opens a file for reading alone where the system refused more, if only for a moment: every commit would fail from then on."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("UPDATE settings SET value = value WHERE false")  # BEGIN IMMEDIATE would say nothing
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # another program writes: so can we, later
            raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


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
