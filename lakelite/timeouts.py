"""What stops a call: a limit on how long it may run, or somebody who interrupts it. Used by the session for statements, by results for fetches.

Promises: nothing is stopped after its block has ended, and a stop is repeated until the block ends, since between two calls of DuckDB, where
Python works, one alone would be lost. What is neither limited nor interrupted costs nothing.
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
        self._lock = threading.RLock()  # a signal handler may call `interrupt` in the thread that holds it
        self._calls: set[_Call] = set()
        self._thread: threading.Thread | None = None
        self._is_running = False
        self._interrupt: _Call | None = None

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """The block is what `interrupt` stops; one at a time."""
        self._is_running = True
        try:
            yield
        finally:
            with self._lock:
                self._is_running = False
                if self._interrupt is not None:
                    self._calls.discard(self._interrupt)
                    self._interrupt = None

    def interrupt(self, stop: Callable[[], None]) -> None:
        """Calls `stop`, from another thread, and goes on calling it until the interruptible block ends, if there is one."""
        stop()
        with self._lock:
            if self._is_running and self._interrupt is None:
                self._interrupt = _Call(0.0, stop)
                self._add(self._interrupt)

    def check(self) -> None:
        """Raises what DuckDB would, had it heard of the interrupt: for where a change is about to be kept."""
        if self._interrupt is not None:
            raise duckdb.InterruptException("Interrupted!")

    def check_stopped(self) -> None:
        """The same, and where a limit has passed: for where Python works for long."""
        self.check()
        with self._lock:
            if any(call.stopped for call in self._calls):
                raise duckdb.InterruptException("Interrupted!")

    @contextmanager
    def limit(self, milliseconds: int, stop: Callable[[], None]) -> Iterator[None]:
        """Calls `stop` when the block runs longer; OperationalError if that interrupted it."""
        call = _Call(time.monotonic() + milliseconds / 1000, stop)
        with self._lock:
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
