"""What a forked child inherits and must not end: DuckDB's threads are not in it, and the end of what they work on would hang or crash.

Owns which objects these are. In a child each of them lives for ever; nothing else is done to it there.
"""

from __future__ import annotations

import os
import weakref

_inherited: weakref.WeakSet[object] = weakref.WeakSet()


def never_ended_by_a_child(thing: object) -> None:
    """`thing` is not collected in a child that is forked from now on."""
    _inherited.add(thing)


def _keep() -> None:
    import ctypes

    for thing in _inherited:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)
