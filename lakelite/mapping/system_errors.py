"""Errors of the operating system and of Python itself, in plain words with what to do."""

from __future__ import annotations

import errno

from lakelite.errors import DataError, Error, OperationalError, ProgrammingError

_FULL = ("the disk is full", "free some space, then run it again")
_LOCAL = "keep the lake on a local disk"
_DENIED = ("permission denied", "check the owner and the mode of the lake's files")
_PLAIN: dict[int, tuple[str, str | None]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: ("the disk quota is used up", "free some space or have the quota raised, then run it again"),
    errno.EIO: ("the disk reported an input/output error", "look at the system log, and keep a copy of the lake before you go on"),
    errno.EFBIG: ("the file would be larger than this process may write", "raise the limit (ulimit -f), then run it again"),
    errno.EROFS: ("the file system is read-only", "open the lake read-only, or mount it for writing"),
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EMFILE: ("this process has too many open files", "close connections, or raise the limit (ulimit -n)"),
    errno.ENFILE: ("the system has too many open files", "close other programs, then run it again"),
    errno.ENOENT: ("a file is missing", "something other than lakelite removed it: restore it from a copy of the lake"),
    errno.EEXIST: ("a file of that name is already there", "move it away, then run it again"),
    errno.EISDIR: ("a directory is where a file should be", "check the path"),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", "check the path"),
    errno.ENOTEMPTY: ("a directory is not empty", "look at what is in it: lakelite removes only files of its own"),
    errno.ENAMETOOLONG: ("the path is too long", "give the lake a shorter path"),
    errno.ELOOP: ("a symbolic link where none may be", "replace the link by what it points to"),
    errno.ENOTSUP: ("the file system cannot do it", _LOCAL),
    errno.ENOSYS: ("the file system cannot do it", _LOCAL),
    errno.ENOLCK: ("the file system has no locks to give", _LOCAL),
    errno.ESTALE: ("the network file system lost the file", _LOCAL),
    errno.ETIMEDOUT: ("the file system did not answer in time", "check the connection to it, then run it again"),
    errno.EBUSY: ("the file is in use", "close the program that uses it, then run it again"),
    errno.ENODEV: ("the device is gone", "mount it again, then run it again"),
    errno.ENXIO: ("the device is gone", "mount it again, then run it again"),
    errno.ENOMEM: ("the system has no memory left", "close other programs, then run it again"),
    errno.EAGAIN: ("the system has no resources left for it", "close other programs, then run it again"),
}
_ELSEWHERE: dict[int, str] = {
    errno.ENOENT: "check the path; a relative one starts in the directory in which this process runs",
    errno.EACCES: "check the owner and the mode of the file and of its directories",
    errno.EPERM: "check the owner and the mode of the file and of its directories",
    errno.EROFS: "write to another place",
}


def os_error(exc: OSError, what: str) -> OperationalError:
    """`exc`, about a file of the lake, in plain words with what to do. `what` completes "could not …" and names the file."""
    plain, hint = _PLAIN.get(exc.errno or 0, (exc.strerror or str(exc), None))
    return OperationalError(f"{plain}: could not {what}", hint=hint)


def file_error(number: int | None, reason: str, what: str) -> OperationalError:
    """The same for a file that is none of a lake's. `number`: the errno, or None if only its text `reason` is known."""
    number = number or _NUMBERS.get(reason.lower(), 0)
    plain, hint = _PLAIN.get(number, (reason, None))
    plain = {errno.ENOENT: "there is no such file or directory"}.get(number, plain)
    return OperationalError(f"{plain}: could not {what}", hint=_ELSEWHERE.get(number, hint))


def is_of_the_disk(reason: str) -> bool:
    """Whether the text is one of the operating system's for a file that is there, but cannot be used."""
    return _NUMBERS.get(reason.lower(), errno.ENOENT) != errno.ENOENT


def python_error(error: BaseException) -> Error | None:
    """The errors of Python itself that data, a statement or the machine can cause; None for any other, which is a bug and stays what it is."""
    match error:
        case OSError():
            about = f"use {error.filename}" if isinstance(error.filename, str) else "read or write"
            return file_error(error.errno, error.strerror or str(error) or type(error).__name__, about)
        case MemoryError():
            return OperationalError(
                "the process has no memory left", hint="read the result in parts (fetchmany), or lower DuckDB's share with SET memory_limit = '1GB'"
            )
        case RecursionError():
            return ProgrammingError("the statement or a value is nested too deeply", hint="split it up, for instance with WITH")
        case UnicodeError():
            return DataError("a text is no valid Unicode", hint="a text is made of whole characters: half of a surrogate pair is none")
        case OverflowError():
            return DataError("a value is too large for the Python type that stands for it", hint="cast it to VARCHAR in the query: column::VARCHAR")
    return None


def _numbers() -> dict[str, int]:
    """The errno of each text that the operating system has for one, in lower case."""
    import os

    return {os.strerror(number).lower(): number for number in _PLAIN}


_NUMBERS = _numbers()
