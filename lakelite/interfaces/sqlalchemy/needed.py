"""Whether SQLAlchemy is there, in a version that the dialect is made for. Imported before anything that needs it."""

from __future__ import annotations

from importlib import metadata

_VERSION = (2, 1)
_HOW = 'pip install "lakelite[sqlalchemy]"'


def check() -> None:
    """ImportError that says what to install."""
    try:
        found = metadata.version("sqlalchemy")
    except metadata.PackageNotFoundError as error:
        raise ImportError(f"SQLAlchemy is not installed: {_HOW}") from error
    if tuple(int(part) for part in found.split(".")[:2]) != _VERSION:
        raise ImportError(f"lakelite is made for SQLAlchemy 2.1, and this is {found}: {_HOW}")


check()
