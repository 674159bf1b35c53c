"""`with con.transaction():` a transaction, or inside of one a savepoint.

Promises: what the block did is committed (or kept, by the transaction around it) at its end, and undone after an exception.
Nothing inside it ends the transaction: COMMIT and ROLLBACK are refused until then.
Blocks of several threads that share a connection queue; statements that other threads run meanwhile are part of the block.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lakelite.errors import InterfaceError
from lakelite.session import Session

if TYPE_CHECKING:
    from lakelite.interfaces.dbapi import Connection


class TransactionBlock:
    """One block; entered once. `queue`: that of the connection's blocks."""

    def __init__(self, connection: Connection, session: Session, queue: threading.RLock) -> None:
        self._connection = connection
        self._session = session
        self._queue = queue
        self._thread: int | None = None
        self._is_own = False

    def __enter__(self) -> Connection:
        if self._thread is not None:
            raise InterfaceError("a transaction block can be entered once", hint="call transaction() again")
        self._queue.acquire()
        try:
            self._is_own = self._session.begin_block(self)
        except BaseException:
            self._queue.release()
            raise
        self._thread = threading.get_ident()
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: object) -> None:
        if self._thread != threading.get_ident():
            raise InterfaceError(
                "a transaction block ends once, and in the thread in which it began",
                hint="leave it where it was entered; another thread begins a block of its own",
            )
        self._thread = -1
        try:
            with self._connection.call():
                self._connection.messages += self._session.end_block(self, is_own=self._is_own, failed=kind is not None).messages
        finally:
            self._queue.release()
