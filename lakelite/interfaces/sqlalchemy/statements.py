"""Statements of lakelite that SQLAlchemy has no construct for: `insert` with ON CONFLICT, and `at_version`.

Owns the constructs; `compiler.py` writes them.
"""

from __future__ import annotations

import datetime
from typing import Any

from sqlalchemy import literal
from sqlalchemy.dialects.sqlite import dml
from sqlalchemy.sql import coercions, roles, selectable
from sqlalchemy.sql.visitors import InternalTraversal


class Insert(dml.Insert):
    """An INSERT with `on_conflict_do_update`, `on_conflict_do_nothing` and `excluded`, as SQLAlchemy's for SQLite has them."""

    stringify_dialect = "lakelite"
    inherit_cache = True


def insert(table: Any) -> Insert:
    """`insert(table).values(…).on_conflict_do_update(index_elements=["id"], set_={…})`."""
    return Insert(table)


class AtVersion(selectable.FromClauseAlias):
    """A table as it was; see `at_version`."""

    __visit_name__ = "lakelite_at_version"
    stringify_dialect = "lakelite"
    _traverse_internals = [  # noqa: RUF012
        *selectable.FromClauseAlias._traverse_internals,
        ("word", InternalTraversal.dp_string),
        ("moment", InternalTraversal.dp_clauseelement),
    ]

    def _init(self, selectable: Any, *, name: str | None = None, **when: Any) -> None:
        self.word: str = when["word"]
        self.moment: Any = when["moment"]
        super()._init(selectable, name=name)


def at_version(table: Any, version: int | datetime.datetime | str, name: str | None = None) -> AtVersion:
    """A table or mapped class as it was: at the snapshot of that number, at a moment, or (a str) at the head of a branch.

    It is an alias: `past = at_version(stock, 3)`, then `select(past.c.item)`; `aliased(Stock, past)` gives entities, which are to be
    read only. `name`: of the alias.
    """
    word = "VERSION" if isinstance(version, int) else "BRANCH" if isinstance(version, str) else "TIMESTAMP"
    moment = literal(version)
    return AtVersion._construct(coercions.expect(roles.FromClauseRole, table), name=name, word=word, moment=moment)
