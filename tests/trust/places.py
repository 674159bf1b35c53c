"""Where harnesses put their lakes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder on a file system in memory, where there is one: what a killed process leaves is the kernel's, and no disk need be waited for."""
    is_there = MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK)
    with tempfile.TemporaryDirectory(prefix="lakelite-trust-", dir=MEMORY if is_there else None) as folder:
        yield Path(folder)
