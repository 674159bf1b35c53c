"""SQLite's errors: class and words by their code. The catalog is the lake's own, so that no user meant to ask SQLite anything."""

from __future__ import annotations

import re
import sqlite3

from lakelite.errors import CannotOpen, DatabaseError, DataError, InternalError, OperationalError

_COPY = "restore the lake from a copy"
_REPORT = "this is a bug: please report it with the statement that was run"
_PERMISSIONS = "check the disk and the permissions of the lake's directory: it has to be writable, also for reading (WAL)"
_HELD = "close programs that have catalog.sqlite open, or raise lock_timeout_ms, then run it again"
_KINDS: dict[int, tuple[type[DatabaseError], str, str]] = {
    sqlite3.SQLITE_FULL: (OperationalError, "the disk is full", "free some space, then run it again"),
    sqlite3.SQLITE_BUSY: (OperationalError, "the catalog is held by another program", _HELD),
    sqlite3.SQLITE_LOCKED: (OperationalError, "the catalog is held by another program", _HELD),
    sqlite3.SQLITE_CORRUPT: (OperationalError, "the catalog is damaged", _COPY),
    sqlite3.SQLITE_NOTADB: (OperationalError, "the catalog is damaged", _COPY),
    sqlite3.SQLITE_READONLY: (OperationalError, "the catalog cannot be written to", _PERMISSIONS),
    sqlite3.SQLITE_CANTOPEN: (OperationalError, "the catalog cannot be opened", _PERMISSIONS),
    sqlite3.SQLITE_PERM: (OperationalError, "access to the catalog was denied", _PERMISSIONS),
    sqlite3.SQLITE_AUTH: (OperationalError, "access to the catalog was denied", _PERMISSIONS),
    sqlite3.SQLITE_IOERR: (OperationalError, "the catalog cannot be read or written", _PERMISSIONS),
    sqlite3.SQLITE_PROTOCOL: (OperationalError, "the locks of the catalog cannot be had", "keep the lake on a local disk"),
    sqlite3.SQLITE_NOLFS: (OperationalError, "the file system cannot hold a file that large", "keep the lake on another disk"),
    sqlite3.SQLITE_NOMEM: (OperationalError, "the process has no memory left", "close other programs, then run it again"),
    sqlite3.SQLITE_INTERRUPT: (OperationalError, "interrupted", "the statement was undone; run it again if you want it"),
    sqlite3.SQLITE_ABORT: (OperationalError, "interrupted", "the statement was undone; run it again if you want it"),
    sqlite3.SQLITE_TOOBIG: (DataError, "a value is too large for the catalog", "it holds texts and rows of up to 1 GB: write it to a file instead"),
}
_FOR_GOOD = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNREAD = re.compile(r"\berror code=(\d+)")
_SPOKEN_FOR = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM}


def catalog_error(error: sqlite3.Error, doing: str) -> DatabaseError:
    """Our error for SQLite's. `doing` completes "… while". An InternalError for all that only a bug of ours can cause."""
    code = _primary(error)
    if code not in _KINDS:
        return InternalError(f"the catalog refused a statement ({error}) while {doing}", hint=_REPORT)
    kind, what, hint = _KINDS[code]
    detail = "" if code in _SPOKEN_FOR else f" ({error})"
    ours = kind(f"{what}{detail} while {doing}", hint=hint)
    ours.is_passing = kind is OperationalError and code not in _FOR_GOOD
    return ours


def cannot_open(error: sqlite3.Error, path: object, what: str) -> CannotOpen:
    """The same where the lake is being opened: `what` is "opened" or "used"."""
    known = _KINDS.get(_primary(error))
    return CannotOpen(f"the catalog {path} cannot be {what}: {error}", hint=known[2] if known else _COPY)


def found_damaged(path: object, finding: str) -> CannotOpen:
    """What SQLite's own check of the file found; a page that the disk did not give is no damage."""
    unread = _UNREAD.search(finding)
    if unread and int(unread[1]) & 0xFF == sqlite3.SQLITE_IOERR:
        return CannotOpen(f"the catalog {path} cannot be read: {finding}", hint=_PERMISSIONS)
    return CannotOpen(f"the catalog {path} is damaged: {finding}", hint=_COPY)


def _primary(error: sqlite3.Error) -> int:
    """The primary result code; 0 where SQLite gave none (Python's own errors)."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
