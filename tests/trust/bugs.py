"""Bugs that harnesses have to find, by name: each a wrong piece in the place of a right one (see planting.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from planting import planted

from lakelite import deletion
from lakelite.catalog import opened
from lakelite.catalog.store import Catalog
from lakelite.maintenance import vacuum
from lakelite.storage import files

BUGS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "no sync of files": (files.fsync_file, "_flush(fd)", "pass"),
    "no sync of directories": (files.fsync_directory, "os.fsync(fd)", "pass"),
    "synchronous NORMAL": (opened._configure, "'FULL' if durable", "'NORMAL' if durable"),
    "plain BEGIN": (Catalog.publication, 'execute("BEGIN IMMEDIATE")', 'execute("BEGIN")'),
    "sweep without asking who lives": (vacuum.orphans, "f.session_id not in sessions.alive and ", ""),
    "deletion vector overwritten": (deletion.union, "vector.positions | more", "more.copy()"),
}


@contextmanager
def bug(name: str | None) -> Iterator[None]:
    """Runs the block with the bug of that name; without one, just so."""
    if name is None:
        yield
        return
    with planted(*BUGS[name]):
        yield
