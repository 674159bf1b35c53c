"""Settings of a connection: our limits, the isolation level, and the few settings of DuckDB that are passed on.

A limit has its default in `model.Limits`, can be set for a lake (SET GLOBAL, the catalog's table `settings`) and for a connection (SET).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lakelite.bounds import value_of
from lakelite.errors import CannotOpen, DataError, InterfaceError, ProgrammingError
from lakelite.mapping.names import did_you_mean
from lakelite.model import DEFAULT_LEVEL, ISOLATION_LEVELS, Isolation, Limits, level_of

RESULT_SETTINGS = frozenset({"timezone", "calendar", "default_order", "default_null_order"})  # what a statement gives depends on them
DUCKDB_SETTINGS = RESULT_SETTINGS | {"threads", "memory_limit", "max_memory"}
TEXTS = {
    "author": ("who commits: recorded with every snapshot of this connection", 200),
    "commit_message": ("recorded with the next commit, and empty again from then on", 4_000),
}
_ABOUT = {
    "inline_rows": "a write of at most so many rows is kept inline, in the catalog",
    "inline_bytes": "and of at most so many bytes",
    "upkeep": "whether a commit that passes one of the bounds below joins small fragments: on or off",
    "flush_fragments": "more inline fragments than this are moved into a Parquet file",
    "flush_rows": "as are more inline rows than this",
    "upkeep_files": "when a table has more Parquet files than this, or a multiple, its small ones are joined",
    "upkeep_deleted_rows": "with as many deleted rows, or a multiple, files with many of them are written anew",
    "upkeep_values": "at most so many values (rows times columns) are moved behind one commit; larger files are left to OPTIMIZE",
    "upkeep_bytes": "and at most so many bytes",
    "row_group_rows": "rows of a Parquet row group",
    "compression": "of Parquet files",
    "overwrite_append": "what becomes of rows that were appended while another transaction overwrote the table: supersede or keep",
    "target_file_bytes": "OPTIMIZE joins files that are smaller than half of this",
    "target_file_rows": "and that have less than half of these rows; a joined file has at most so many",
    "rewrite_percent": "a file is written anew when what joins it and its own deleted rows are at least this share of it",
    "commit_attempts": "how often a commit is tried before the last attempt runs under the commit lock",
    "commit_time_ms": "and for how long, before its last attempt",
    "commit_backoff_ms": "the longest pause between two attempts, by chance a shorter one",
    "reevaluate_locked_rows": "winners' rows that a commit may look at while it holds the commit lock; more are looked at before it is taken",
    "lock_timeout_ms": "how long a commit waits for its turn",
    "statement_timeout_ms": "a statement, or a fetch of its rows, that runs longer is stopped; 0: none is",
    "retention_hours": "VACUUM keeps versions that are younger",
    "cache_bytes": "memory for bitstrings of deletion vectors",
}
OF_CONNECTION = frozenset({"isolation_level", *TEXTS})  # no default of these is kept in the lake


def level_named(name: object) -> Isolation:
    """The isolation level of that name; ProgrammingError if there is none, InterfaceError if it is no text."""
    if not isinstance(name, str):
        raise InterfaceError(f"an isolation level is a str, not {type(name).__name__}", hint=f"the levels are: {', '.join(ISOLATION_LEVELS)}")
    level = level_of(name)
    if level is not None:
        return level
    hint = did_you_mean(name, ISOLATION_LEVELS, f"the levels are: {', '.join(ISOLATION_LEVELS)}")
    raise ProgrammingError(f'there is no isolation level "{name}"', hint=hint)


def text_setting(name: str, value: object) -> str | None:
    """The value of `author` or `commit_message`; an empty one is None. DataError: no text, or too long a one."""
    most = TEXTS[name][1]
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise DataError(f"{name} has to be a text, not {type(value).__name__}", hint="put it into single quotes")
    if len(value) > most:
        raise DataError(f"{name} has at most {most} characters, not {len(value)}", hint="give a shorter text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name} holds half of a surrogate pair, which is no character", hint="the text was decoded wrongly: read it as UTF-8"
        ) from error
    return value


class Settings:
    """The settings of one connection. `commit_message`: of the next commit, which empties it."""

    def __init__(self, lake: Mapping[str, str], isolation: str, author: str | None = None) -> None:
        """`lake`: what the catalog holds; names that a newer version may have added are ignored. CannotOpen: values that cannot be."""
        try:
            self._lake = Limits(**{name: value_of(name, value) for name, value in lake.items() if name in _ABOUT})
        except DataError as error:
            raise CannotOpen(f"the catalog was changed by another program: {error.message}", hint="restore the lake from a copy") from error
        self.limits = self._lake
        self.isolation = level_named(isolation)
        self.author = text_setting("author", author)
        self.commit_message: str | None = None

    def change(self, name: str, value: Any) -> bool:
        """Sets one of ours (`value` None: back to the lake's). False: the name is none of ours. DataError: not a sensible value."""
        if name == "isolation_level":
            self.isolation = level_named(DEFAULT_LEVEL if value is None else str(value))
            return True
        if name in TEXTS:
            setattr(self, name, text_setting(name, value))
            return True
        if name not in _ABOUT:
            return False
        number = getattr(self._lake, name) if value is None else value_of(name, str(value))
        self.limits = dataclasses.replace(self.limits, **{name: number})
        return True

    def all(self) -> dict[str, tuple[str, str]]:
        """Each of our settings with its value and description."""
        found = {name: (str(getattr(self.limits, name)), about) for name, about in _ABOUT.items()}
        texts = {name: (getattr(self, name) or "", about) for name, (about, _) in TEXTS.items()}
        return {**found, **texts, "isolation_level": (self.isolation, "what a commit promises of what was handed out")}
