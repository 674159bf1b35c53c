"""Temporary tables and views: what a connection has for itself, held by its own DuckDB and by nothing else.

Owns the tables of `lake_internal.temp_<n>`. What there is of them is a value (`Temporaries`), so that whatever goes back to an earlier one has
undone all that was done since. A table is changed where it stands as long as nobody can come back to it: `freeze` says that somebody may, and
the next change is then made to a copy. Each cursor that runs the user's text is shown what the text names, as DuckDB's own temporary views.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

import duckdb

from lakelite.model import MAIN_SCHEMA, fold, literal, quote
from lakelite.records import dataclass

TEMP_SCHEMA = "temp"
_SCHEMAS = frozenset({None, MAIN_SCHEMA, TEMP_SCHEMA})
_HEAD = re.compile(r"CREATE TABLE temp_\d+\.")


class _Place:
    """A schema of `lake_internal` that holds one table. It goes when nobody holds this any more. `epoch`: when the table was last made."""

    def __init__(self, schema: str, epoch: int, forget: Callable[[str], None]) -> None:
        self.schema = schema
        self.epoch = epoch
        self._forget = forget

    def __del__(self) -> None:
        self._forget(self.schema)


@dataclass(frozen=True, slots=True)
class Temporary:
    """A temporary table (with a `place`) or view. `text`: of a view its query with history filled in, of a table how it was defined.

    `listed`: the names of a view's columns as SQL, or nothing.
    """

    name: str
    text: str
    place: _Place | None = None
    listed: str = ""

    @property
    def is_view(self) -> bool:
        return self.place is None

    @property
    def kind(self) -> str:
        return "view" if self.is_view else "table"

    @property
    def qualified(self) -> str:
        """Where DuckDB has a table."""
        assert self.place is not None
        return f"{self.place.schema}.{quote(self.name)}"


@dataclass(frozen=True, slots=True)
class Temporaries:
    """All of a connection, by folded name."""

    by_name: Mapping[str, Temporary] = field(default_factory=dict)

    def find(self, schema: str | None, name: str) -> Temporary | None:
        """What a name means; one of `main` means it too, as in DuckDB."""
        return self.by_name.get(fold(name)) if self.by_name and (schema if schema is None else fold(schema)) in _SCHEMAS else None

    def with_one(self, one: Temporary) -> Temporaries:
        return Temporaries({**self.by_name, fold(one.name): one})

    def without(self, one: Temporary) -> Temporaries:
        return Temporaries({k: v for k, v in self.by_name.items() if k != fold(one.name)})

    @property
    def texts(self) -> list[str]:
        """What may tell the time when one of them is used."""
        return [one.text for one in self.by_name.values()]


NOTHING = Temporaries()


class Space:
    """The temporary tables of one DuckDB instance. Used by one thread at a time. `current`: those between transactions."""

    def __init__(self, do: Callable[..., list[tuple[Any, ...]]], work: duckdb.DuckDBPyConnection, database: str) -> None:
        """`work`: the cursor that runs more than one text."""
        self.current = NOTHING
        self._do = do
        self._work = work
        self._database = database
        self._epoch = 0
        self._numbers = itertools.count(1)
        self._doomed: list[str] = []
        self._shown: dict[str, tuple[str, Temporary]] = {}  # on the working cursor, by folded name: as a TABLE or a VIEW

    def freeze(self) -> None:
        """Somebody may come back to the tables as they are now."""
        self._epoch += 1

    def new_place(self) -> _Place:
        """A place for a table that is about to be made."""
        schema = f"{self._database}.temp_{next(self._numbers)}"
        self._do(f"CREATE SCHEMA {schema}")
        return _Place(schema, self._epoch, self._doomed.append)

    def to_change(self, table: Temporary) -> Temporary:
        """The table where it may be changed: itself, or a copy."""
        assert table.place is not None
        if table.place.epoch == self._epoch:
            return table
        copy = replace(table, place=self.new_place())
        self._do(self._made(table, f"CREATE TABLE {self._database}.{_bare(copy)}."))
        self._do(f"INSERT INTO {copy.qualified} SELECT * FROM {table.qualified}")
        for comment in self._comments(table, copy.qualified):
            self._do(comment)
        return copy

    def statement(self, one: Temporary) -> str:
        """The statement that makes one like this."""
        return f"CREATE TEMP VIEW {quote(one.name)}{one.listed} AS {one.text};" if one.is_view else self._made(one, "CREATE TEMP TABLE ")

    def _made(self, table: Temporary, head: str) -> str:
        found = self._do(f"SELECT sql FROM system.main.duckdb_tables() WHERE {self._is(table)}")
        return _HEAD.sub(lambda _: head, str(found[0][0]), count=1)

    def _comments(self, table: Temporary, name: str) -> list[str]:
        whole = self._do(f"SELECT comment FROM system.main.duckdb_tables() WHERE {self._is(table)} AND comment IS NOT NULL")
        columns = self._do(f"SELECT column_name, comment FROM system.main.duckdb_columns() WHERE {self._is(table)} AND comment IS NOT NULL")
        found = [f"COMMENT ON TABLE {name} IS {literal(comment)}" for (comment,) in whole]
        return found + [f"COMMENT ON COLUMN {name}.{quote(column)} IS {literal(comment)}" for column, comment in columns]

    def _is(self, table: Temporary) -> str:
        return f"database_name = {literal(self._database)} AND schema_name = {literal(_bare(table))}"

    # Showing them.

    def show(
        self, cursor: duckdb.DuckDBPyConnection, all_of: Temporaries, shown: Sequence[Temporary], named: Collection[Temporary], *, described: bool
    ) -> None:
        """Makes names mean what they are to mean on a cursor, where `all_of` are there. `shown`: those that the text needs, each view behind
        what it reads itself.

        `described`: the text may ask DuckDB which tables there are, so that they are there as what they are; only those of `named` have rows.
        A view of the others whose query fails by now is left out.
        """
        kept = self._kept(NOTHING if described else all_of) if cursor is self._work else frozenset()
        for one in shown:
            if one in kept:
                continue
            if cursor is self._work:
                self._shown[fold(one.name)] = ("TABLE" if described and not one.is_view else "VIEW", one)
            with suppress(*(() if one in named or not one.is_view else (duckdb.CatalogException, duckdb.BinderException))):
                for statement in self._showing(one, described=described, filled=one in named):
                    cursor.execute(statement).fetchall()

    def _kept(self, all_of: Temporaries) -> frozenset[Temporary]:
        """The tables that the working cursor goes on to show, and what is not as it was hidden: each part of a statement is shown what it names."""
        kept = {name: pair for name, pair in self._shown.items() if pair[0] == "VIEW" and all_of.by_name.get(name) == pair[1]}
        for name, (kind, _) in self._shown.items() - kept.items():
            self._work.execute(f"DROP {kind} IF EXISTS temp.{quote(name)}").fetchall()
        self._shown = kept
        return frozenset(one for _, one in kept.values() if not one.is_view)

    def _showing(self, one: Temporary, *, described: bool, filled: bool) -> Iterator[str]:
        if one.is_view:
            yield f"CREATE OR REPLACE TEMP VIEW {quote(one.name)}{one.listed} AS {one.text}\n"
        elif not described:
            yield f"CREATE OR REPLACE TEMP VIEW {quote(one.name)} AS FROM {one.qualified}"
        else:
            yield self._made(one, "CREATE OR REPLACE TEMP TABLE ")
            yield from self._comments(one, f"temp.{quote(one.name)}")
            if filled:
                yield f"INSERT INTO temp.{quote(one.name)} SELECT * FROM {one.qualified}"

    def columns(self, one: Temporary) -> list[tuple[Any, ...]]:
        """DESCRIBE of a table, in DuckDB's columns."""
        return self._do(f"DESCRIBE {one.qualified}")

    def trim(self) -> None:
        """Drops the tables that nobody can come back to; called between statements."""
        while self._doomed:
            self._do(f"DROP SCHEMA IF EXISTS {self._doomed.pop()} CASCADE")


def _bare(table: Temporary) -> str:
    """The schema without the database."""
    assert table.place is not None
    return table.place.schema.partition(".")[2]
