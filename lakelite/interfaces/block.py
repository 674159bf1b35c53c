"""`with con.transaction():` a transaction, or inside of one a savepoint.

Promises: what the block did is committed (or kept, by the transaction around it) at its end, and undone after an exception.
Blocks of several threads that share a connection queue; statements that other threads run meanwhile are part of the block.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lakelite.errors import InterfaceError
from lakelite.session import Session

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import Connection

_ENDED = "the transaction around this block was ended inside it"
_ENDED_HINT = "leave COMMIT and ROLLBACK to the outermost block"


class TransactionBlock:
    """One block; entered once. `queue`: that of the connection's blocks."""

    def __init__(self, connection: Connection, session: Session, queue: threading.RLock) -> None:
        self._connection = connection
        self._session = session
        self._queue = queue
        self._thread: int | None = None
        self._transaction: str | None = None
        self._savepoint: str | None = None

    def __enter__(self) -> Connection:
        if self._thread is not None:
            raise InterfaceError("a transaction block can be entered once", hint="call transaction() again")
        self._queue.acquire()
        try:
            self._begin()
        except BaseException:
            self._queue.release()
            raise
        self._thread = threading.get_ident()
        return self._connection

    def _begin(self) -> None:
        with self._session.exclusive():
            if self._session.in_transaction:
                self._savepoint = f"lakelite_block_{id(self)}"
                self._connection.execute(f"SAVEPOINT {self._savepoint}")
            else:
                self._connection.execute("BEGIN")
            self._transaction = self._session.transaction_id

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: object) -> None:
        if self._thread != threading.get_ident():
            raise InterfaceError("a transaction block ends in the thread in which it began")
        try:
            if self._savepoint is None:
                self._end(failed=kind is not None)
            else:
                self._end_savepoint(self._savepoint, failed=kind is not None)
        finally:
            self._queue.release()

    def _end(self, *, failed: bool) -> None:
        """Ends what is open now: a COMMIT or ROLLBACK inside the block may have ended its own transaction."""
        if not failed:
            self._connection.commit()
        elif self._session.in_transaction:
            self._connection.rollback()

    def _end_savepoint(self, name: str, *, failed: bool) -> None:
        if self._session.transaction_id == self._transaction:
            self._connection.execute(f"ROLLBACK TO {name}; RELEASE {name}" if failed else f"RELEASE {name}")
        elif not failed:
            raise InterfaceError(_ENDED, hint=_ENDED_HINT)
