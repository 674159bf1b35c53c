"""What the end of the interpreter must not meet: a daemon thread inside of DuckDB. It unwinds such a thread (before Python 3.14), which C++
answers by an abort of the process.

Owns what is waited for then: openings, and what sessions run. Any other thread that comes to one, or back from it, waits for ever: outside
it could only print that it was stopped, to a stream that is being closed.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PATIENCE_S = 3.0

_changed = threading.Condition()
_openings: set[int] = set()  # threads
_is_over = False


class Settled(Protocol):
    """What is used by threads, one at a time."""

    def settle(self, deadline: float) -> None:
        """Stops what runs, and takes the turn for good, so that no other thread gets it; waits at most until `deadline` (monotonic seconds)."""


_users: weakref.WeakSet[Settled] = weakref.WeakSet()


def settle_at_exit(user: Settled) -> None:
    """`user.settle` is called at the end of the interpreter, if it is there still."""
    atexit.unregister(_end)
    atexit.register(_end)  # what is registered last runs first: before DuckDB's own, which stops queries and lets their threads go on
    _users.add(user)


@contextmanager
def entering() -> Iterator[None]:
    """The block opens something that `settle_at_exit` will know."""
    me = threading.get_ident()
    with _changed:
        _wait_if_over()
        _openings.add(me)
    try:
        yield
    finally:
        with _changed:
            _openings.discard(me)
            _changed.notify_all()
            _wait_if_over()


def wait_for_ever() -> None:
    """Until the process is gone: for a thread that may run no more."""
    while True:
        threading.Event().wait()


def _wait_if_over() -> None:
    while _is_over and threading.current_thread() is not threading.main_thread():
        _changed.wait()


def _end() -> None:
    global _is_over
    deadline = time.monotonic() + PATIENCE_S
    with _changed:
        _is_over = True
        _changed.wait_for(lambda: not _openings, PATIENCE_S)
    for user in list(_users):
        user.settle(deadline)


def _forget_in_child() -> None:
    """Threads of the parent are not in a forked child."""
    global _changed
    _changed = threading.Condition()
    _openings.clear()
    _users.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
