"""Opening a file of the lake to read it, whatever somebody has put in its place.

Promises: never through a link as the last step, never waits (a FIFO would, until somebody writes to it), never reads what has no end (a device).
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """The file, for reading. OSError: it is not there, a link, or no regular file."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise
