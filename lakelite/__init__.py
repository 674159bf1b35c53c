"""lakelite: an embedded lakehouse that resolves conflicts instead of raising them.

    con = lakelite.connect("flights.lake")

Importing this module is cheap: DuckDB, SQLite, pyarrow and sqlglot are loaded by the first `connect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelite import endings as endings  # first, so that its exit function runs last
from lakelite.errors import (
    CannotOpen,
    CommitUnknown,
    Conflict,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    TransactionConflict,
    Warning,  # noqa: A004  (PEP 249 asks for this name)
)
from lakelite.interfaces.type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import CommitResult, Connection, Cursor, Resolution, connect

__version__ = "0.1.0"
apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "CannotOpen", "CommitResult", "CommitUnknown", "Conflict", "Connection", "Cursor",
    "DataError", "DatabaseError", "Date", "DateFromTicks", "Error", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError",
    "OperationalError", "ProgrammingError", "Resolution", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks", "TransactionConflict",
    "Warning", "__version__", "apilevel", "connect", "paramstyle", "threadsafety",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names, those that are loaded later among them."""
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext lakelite`: the magics `%lake` and `%%lake`. Needs the extra `jupyter`."""
    from lakelite.interfaces.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext lakelite`: closes the lake that is open, and takes the magics away."""
    from lakelite.interfaces.notebook import unload

    unload(shell)


def __getattr__(name: str) -> Any:
    """Loads the interface when it is first asked for (PEP 562)."""
    if name in ("connect", "Connection", "Cursor", "CommitResult", "Resolution"):
        from lakelite.interfaces import dbapi

        return getattr(dbapi, name)
    raise AttributeError(f"module 'lakelite' has no attribute {name!r}")
