"""The one door: any exception as what a user is to see. Every public entry point of the session leads through it.

Promises: what DuckDB, SQLite, pyarrow, the operating system or the machine's bounds raise comes out as an error of lakelite with the
original as its cause. What is none of these is a bug: it stays what it is, so that nobody takes it for an answer.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import duckdb

from lakelite.errors import CannotOpen, Error, NotSupportedError, Position, ProgrammingError
from lakelite.mapping.arrow_errors import arrow_error
from lakelite.mapping.catalog_errors import catalog_error
from lakelite.mapping.clauses import call, clause
from lakelite.mapping.engine_errors import carried, engine_error
from lakelite.mapping.names import NO_NAMES, Names
from lakelite.mapping.places import only_place
from lakelite.mapping.sets import tell
from lakelite.mapping.system_errors import python_error

_NAMED = re.compile(r'"([^"]+)"')


def ours(error: BaseException, text: str = "", names: Names = NO_NAMES) -> BaseException:
    """What to raise for `error`: an error of lakelite, KeyboardInterrupt for DuckDB's form of it, or `error` itself.

    `text`: the statement as the user wrote it; `names`: what it could have meant.
    """
    if isinstance(error, Error):
        return error
    if isinstance(error, duckdb.Error):
        return engine_error(error, text, names)
    if isinstance(error, sqlite3.Error):
        return catalog_error(error, "using it")
    if isinstance(error, RuntimeError) and "Query interrupted" in str(error):
        return KeyboardInterrupt()
    engines = carried(error)
    if engines is not None:
        return engine_error(engines, text, names)
    return arrow_error(error) or python_error(error) or error


def reraise(error: BaseException, text: str = "", names: Names = NO_NAMES, place: Callable[[Error], None] = lambda error: None) -> NoReturn:
    """Raises `ours(error, …)`, caused by `error`; `place` may say more of where it belongs."""
    seen = ours(error, text, names)
    if isinstance(seen, Error):
        _show_place(seen, text, names)
        tell(seen, error)
        if seen is not error:
            seen.__cause__ = error  # `place` may ask what it said
        place(seen)
    if seen is error:
        raise error
    raise seen from error


@contextmanager
def mapped(text: str = "", names: Callable[[], Names] = lambda: NO_NAMES) -> Iterator[None]:
    """A block that only errors of lakelite leave, and bugs. `names` is asked only where there is an error."""
    try:
        yield
    except Error as error:
        tell(error, error)
        _show_place(error, text, names())
        raise
    except Exception as error:
        reraise(error, text, names())


def _show_place(error: Error, text: str, names: Names) -> None:
    """The place of the clause, name or call that an error is about, if it has none yet and that is sure."""
    if error.position is not None or not text or names.reads_view(text):
        return
    if error.context is not None:  # the text is not that of the statement that failed
        return
    error.position = clause(error.message, text)
    if error.position is None and isinstance(error, ProgrammingError | NotSupportedError):
        named = _NAMED.search(error.message)
        error.position = only_place(text, named[1]) if named else None
    if error.position is None and (called := call(error.message, text)):
        error.position = Position.at(text, called[1])


@contextmanager
def opening() -> Iterator[None]:
    """The same where a lake is opened: whatever the world has against it is a CannotOpen."""
    try:
        with mapped():
            yield
    except CannotOpen:
        raise
    except Error as error:
        raise CannotOpen(error.message, hint=error.hint) from (error.__cause__ or error)
