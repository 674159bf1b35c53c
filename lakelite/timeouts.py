"""A limit on how long a call may run: `Watch` stops what is over it. Used by the session for statements, by results for fetches.

Promises: nothing is stopped after its block has ended, a stop is repeated until the block ends, and what is not limited costs nothing.
Never decides what a call is, and never touches DuckDB: the caller says how it is stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from lakelite.errors import OperationalError

TICK_S = 0.01
IDLE_S = 1.0


@dataclass(slots=True, eq=False)
class _Call:
    """What runs, until when (monotonic seconds), and how it is stopped."""

    deadline: float
    stop: Callable[[], None]
    stopped: bool = False


class Watch:
    """Watches the limited calls of one session, in a thread that lives while there are any and a moment longer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: set[_Call] = set()
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, milliseconds: int, stop: Callable[[], None]) -> Iterator[None]:
        """Calls `stop` when the block runs longer; OperationalError if that interrupted it."""
        call = _Call(time.monotonic() + milliseconds / 1000, stop)
        self._add(call)
        try:
            yield
        except duckdb.InterruptException as error:
            if call.stopped:
                raise _too_long(milliseconds) from error
            raise
        finally:
            with self._lock:
                self._calls.discard(call)

    def _add(self, call: _Call) -> None:
        with self._lock:
            self._calls.add(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lakelite-timeouts", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        idle_since = time.monotonic()
        while True:
            time.sleep(TICK_S)
            now = time.monotonic()
            with self._lock:
                if self._calls:
                    idle_since = now
                elif now - idle_since > IDLE_S:
                    self._thread = None
                    return
                for call in self._calls:
                    if now >= call.deadline:
                        call.stopped = True
                        call.stop()


def _too_long(milliseconds: int) -> OperationalError:
    return OperationalError(
        f"stopped after {milliseconds} ms, the limit that statement_timeout_ms sets",
        hint="nothing was changed; SET statement_timeout_ms = 0 lifts the limit, a larger number extends it",
    )
