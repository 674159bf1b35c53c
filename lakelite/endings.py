"""What the end of the interpreter must not meet: a daemon thread inside of DuckDB. It unwinds such a thread (before Python 3.14), which C++
answers by an abort of the process.

Owns what is waited for then: openings, and what sessions run. Registered when lakelite is imported, so that the exit functions of programs,
which are registered later, run before and may use it still, in threads too. Whoever comes afterwards is refused. A thread is told of that,
or that it was interrupted, only after a while in which the process has ended: what it prints then goes to a stream that is being closed.
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

from lakelite.errors import InterfaceError

PATIENCE_S = 3.0

_changed = threading.Condition()
_openings: set[int] = set()  # threads
_is_ending = False
_is_over = False


class Settled(Protocol):
    """What is used by threads, one at a time."""

    def settle(self, deadline: float) -> None:
        """Stops what runs, and refuses what other threads begin from now on; waits at most until `deadline` (monotonic seconds)."""


_users: weakref.WeakSet[Settled] = weakref.WeakSet()


def settle_at_exit(user: Settled) -> None:
    """`user.settle` is called at the end of the interpreter, if it is there still."""
    with _changed:
        _users.add(user)
    atexit.unregister(_begin)
    atexit.register(_begin)  # what is registered last runs first: before DuckDB's own, which interrupts all queries


@contextmanager
def entering() -> Iterator[None]:
    """The block opens something that `settle_at_exit` will know."""
    me = threading.get_ident()
    with _changed:
        is_late = _is_over
        _openings.add(me)
    try:
        if is_late and threading.current_thread() is not threading.main_thread():
            raise over()
        yield
    finally:
        with _changed:
            _openings.discard(me)
            _changed.notify_all()
        if _is_over and threading.current_thread() is not threading.main_thread():
            wait()


def wait() -> None:
    """For as long as the process needs to end, and some more, should one of its exit functions wait for this thread."""
    time.sleep(PATIENCE_S)


def is_ending() -> bool:
    """Whether this thread, if it was interrupted, can only print that, to a stream that is being closed."""
    return _is_ending and threading.current_thread() is not threading.main_thread()


def over() -> InterfaceError:
    """For whoever comes too late."""
    return InterfaceError("the process is about to end", hint="end threads before the program ends, or in a function that atexit calls")


def _begin() -> None:
    global _is_ending
    _is_ending = True


def _end() -> None:
    global _is_over
    _is_over = True
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _settle(deadline)
        except KeyboardInterrupt:  # pressed where a program seems to hang: this ends soon, and an abort would be worse
            continue


def _settle(deadline: float) -> None:
    """What is opened comes last, and then what it has opened: an opening may take all the time there is."""
    for user in _there():
        user.settle(deadline)
    with _changed:
        _changed.wait_for(lambda: not _openings, max(0.0, deadline - time.monotonic()))
    for user in _there():
        user.settle(deadline)


def _there() -> list[Settled]:
    with _changed:
        return list(_users)


atexit.register(_end)


def _forget_in_child() -> None:
    """Threads of the parent are not in a forked child."""
    global _changed, _is_ending, _is_over
    _changed = threading.Condition()
    _is_ending = _is_over = False
    _openings.clear()
    _users.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
