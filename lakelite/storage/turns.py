"""Whose turn it is on a connection: one statement at a time, other threads queue.

Promises: nothing waits for itself. A statement that reads rows which come from a caller's code waits for that code, in its own
thread or in one of a library's (DuckDB's, Arrow's, Polars'); where such code wants a turn of its own, it is refused.
Never guesses by time, and never refuses a thread that Python has started, unless that runs the statement itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from lakelite.endings import is_ending, over, wait
from lakelite.errors import InterfaceError

_OF_A_LIBRARY = threading._DummyThread  # Python's class for threads that it has not started


class Turns:
    """The queue of the threads that share a connection. A thread that has its turn may take it again."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._changed = threading.Condition()
        self._reader: int | None = None  # the thread whose statement uses objects of its caller
        self._is_read = False
        self._refused = False
        self._depth = 0
        self._kept_by: int | None = None

    @contextmanager
    def taken(self, *, exports: bool = False) -> Iterator[None]:
        """The block has its turn. InterfaceError in code of a caller's that the statement whose turn it is waits for.

        `exports`: the block only gives the rows of a result, which such code may do as long as DuckDB does not run.
        """
        if self._reader == threading.get_ident() and (self._is_read or not exports):
            raise self._refusal()
        is_over = False
        try:
            with self._turn_of_a_library() if isinstance(threading.current_thread(), _OF_A_LIBRARY) else self._mutex:
                if self._depth == 0 and self._is_over():
                    is_over = True
                    raise over()
                self._depth += 1
                try:
                    yield
                except BaseException as error:
                    is_over = is_ending() and _was_interrupted(error)
                    raise
                finally:
                    self._depth -= 1
                    is_over = self._depth == 0 and (is_over or self._is_over())
        finally:
            with self._changed:
                self._changed.notify_all()
            if is_over:
                wait()

    @contextmanager
    def _turn_of_a_library(self) -> Iterator[None]:
        """For one of its threads, which may be what the statement waits for, or come to be while it waits here."""
        with self._changed:
            while not self._mutex.acquire(blocking=False):
                if self._reader is not None:
                    raise self._refusal()
                self._changed.wait()
        try:
            yield
        finally:
            self._mutex.release()

    def _refusal(self) -> InterfaceError:
        self._refused = True
        return _waits_for_itself()

    def keep(self, timeout: float) -> bool:
        """From now on only this thread gets a turn. False: another has still not given back its own within `timeout` seconds."""
        self._kept_by = threading.get_ident()
        is_free = self._mutex.acquire(timeout=timeout)
        if is_free:
            self._mutex.release()
            with self._changed:
                self._changed.notify_all()
        return is_free

    def _is_over(self) -> bool:
        return self._kept_by not in (None, threading.get_ident())

    @contextmanager
    def statement(self) -> Iterator[None]:
        """The block is a statement, and may use what is its caller's. InterfaceError if it failed since their code was refused."""
        before = self._reader, self._is_read, self._refused
        try:
            yield
        except Exception as error:
            if self._refused and not isinstance(error, InterfaceError):
                raise _waits_for_itself() from error
            raise
        finally:
            self._reader, self._is_read, self._refused = before

    def uses(self, *, reads: bool) -> None:
        """The statement uses objects of its caller from now on; `reads`: DuckDB reads their rows."""
        with self._changed:
            self._reader = threading.get_ident()
            self._is_read = self._is_read or reads
            self._changed.notify_all()


def _was_interrupted(error: BaseException | None) -> bool:
    """By DuckDB's exit function, too, behind which it takes no object of Python's any more."""
    while error is not None:
        if isinstance(error, duckdb.InterruptException) or (isinstance(error, duckdb.Error) and "interpreter is shutting down" in str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _waits_for_itself() -> InterfaceError:
    return InterfaceError(
        "the rows that a statement reads come from code that uses its own connection, and each would wait for the other",
        hint="fetch what that code needs before, or give it a connection of its own",
    )
