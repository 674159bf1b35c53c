"""The SQL that reads fragments: pure text, from what a snapshot holds and from where the caches keep it.

A table's rows come from up to six scans under UNION ALL: files and inline rows, each clean, with few deletions, or with
many. Few deleted positions are listed in an ANTI JOIN, which costs nothing to prepare; many are tested in a bitstring per
fragment, whose cost does not grow with their number (measured, see ARCHITECTURE.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from lakelite.contents import TableState
from lakelite.model import ROW_ID_COLUMN, ROW_ID_FIELD, Column, Field, FileColumn, Fragment, Table, fold, literal, quote
from lakelite.records import dataclass
from lakelite.storage import by_name, types

LISTED_POSITIONS = 256  # up to so many deleted positions of a scan are listed
ROW_ID_STORED = Field(ROW_ID_FIELD, ROW_ID_COLUMN, "BIGINT")
_INLINE_SOURCE = 2**40  # the source number of inline rows is this plus their fragment id; of files, their place in the list


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the caches keep what the scans need: the path of each file, the tables to read instead of some,
    the inline rows, and bitstrings, by fragment id."""

    files: Mapping[int, str]
    hot_tables: Mapping[int, str]
    inline_table: str
    vectors_table: str
    vector_numbers: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Addressed:
    """A scan that also gives row addresses: a SELECT of `source`, `position`, `row_id` and then the table's columns.

    `fragments[source]` is the fragment of a row; `row_id` is the stored one or NULL. `direct`: a DuckDB table that holds just this,
    and its columns as the scan calls them (those that were wanted, in any order): to plan a SELECT from it takes DuckDB half as long.
    """

    sql: str
    fragments: Mapping[int, Fragment]
    source: str
    position: str
    row_id: str
    direct: tuple[str, str] | None = None

    def rows(self, alias: str, *texts: str) -> str:
        """What a FROM clause says to mean the scan by a (quoted) name, for expressions whose `texts` are given."""
        if self.direct is None or any("rowid" in text.lower() for text in texts):  # which only a DuckDB table has
            return f"({self.sql}) AS {alias}"
        table, columns = self.direct
        return f"{table} AS {alias}({columns})"


@dataclass(frozen=True, slots=True)
class Groups:
    """Fragments by how they are read."""

    clean: tuple[Fragment, ...]
    listed: tuple[Fragment, ...]
    marked: tuple[Fragment, ...]

    def but(self, ids: Collection[int]) -> Groups:
        """Without the fragments of these ids."""
        if not ids:
            return self
        return Groups(*(tuple(f for f in part if f.fragment_id not in ids) for part in (self.clean, self.listed, self.marked)))

    def only(self, ids: Collection[int]) -> Groups:
        """The fragments of these ids."""
        return Groups(*(tuple(f for f in part if f.fragment_id in ids) for part in (self.clean, self.listed, self.marked)))

    def adopted(self) -> list[frozenset[int]]:
        """The ids of adopted files, those together that have the same columns."""
        found: dict[tuple[FileColumn, ...], set[int]] = {}
        for fragment in (*self.clean, *self.listed, *self.marked):
            if fragment.columns:
                found.setdefault(fragment.columns, set()).add(fragment.fragment_id)
        return [frozenset(ids) for ids in found.values()]


def groups(state: TableState, fragments: Sequence[Fragment], *, live_only: bool = True) -> Groups:
    """Which fragments have no deletions, which have them listed, and which need their bitstring: those with most deletions.

    Not `live_only`: deleted rows may come too, so that all count as clean.
    """
    if not live_only:
        return Groups(tuple(fragments), (), ())
    clean = tuple(f for f in fragments if f.fragment_id not in state.vectors)
    dirty = sorted((f for f in fragments if f.fragment_id in state.vectors), key=lambda f: state.vectors[f.fragment_id].cardinality)
    listed: list[Fragment] = []
    left = LISTED_POSITIONS
    for fragment in dirty:
        left -= state.vectors[fragment.fragment_id].cardinality
        if left < 0:
            break
        listed.append(fragment)
    return Groups(clean, tuple(listed), tuple(dirty[len(listed) :]))


def relation(state: TableState, files: Groups, inline: Groups, kept: Kept) -> str:
    """A SELECT of the table's columns over its live rows."""
    visible = state.table.visible
    table = state.table if visible is state.table.columns else replace(state.table, columns=visible)
    select = _select(table)
    parts = [f"SELECT {select} FROM {part.sql}" for part in _parts(state, table, files, inline, kept, row_ids=False)]
    return " UNION ALL ".join(parts) or _nothing(table.columns)


def addressed(state: TableState, files: Groups, inline: Groups, kept: Kept, only: frozenset[str] | None = None) -> Addressed:
    """The same rows with their addresses. `only`: the folded names of the columns that are wanted, without row ids; None: all, with them."""
    taken = {fold(c.name) for c in state.table.columns}
    names = [_free(name, taken) for name in ("_lake_source", "_lake_position", "_lake_row_id")]
    table = narrowed(state.table, only)
    row_id = f"p.f{ROW_ID_FIELD}" if only is None else "NULL::BIGINT"
    parts: list[str] = []
    fragments: dict[int, Fragment] = {}
    found = _parts(state, table, files, inline, kept, row_ids=only is None, numbered=True)
    for part in found:
        source = f"p.file_index::BIGINT + {len(fragments)}" if part.is_file else f"p.fragment + {_INLINE_SOURCE}"
        position = "p.file_row_number" if part.is_file else "p.position"
        address = f"{source} AS {names[0]}, {position} AS {names[1]}, {row_id} AS {names[2]}"
        parts.append(f"SELECT {', '.join(filter(None, (address, _select(table))))} FROM {part.sql}")
        start = len(fragments)
        fragments.update({start + i if part.is_file else _INLINE_SOURCE + f.fragment_id: f for i, f in enumerate(part.fragments)})
    nothing = f"SELECT 0::BIGINT AS {names[0]}, 0::BIGINT AS {names[1]}, NULL::BIGINT AS {names[2]}, * FROM ({_nothing(state.table.columns)})"
    direct = _direct(table, found, names, kept, row_ids=only is None)
    return Addressed(" UNION ALL ".join(parts) or nothing, fragments, names[0], names[1], names[2], direct)


def _direct(table: Table, parts: Sequence[_Part], names: Sequence[str], kept: Kept, *, row_ids: bool) -> tuple[str, str] | None:
    """The one hot table that a scan reads whole, if its values are stored as they are."""
    if len(parts) != 1 or not table.columns or any(types.decode("p", c.type) != "p" for c in table.columns):
        return None
    hot = [name for name in kept.hot_tables.values() if parts[0].sql == f"{name} p"]
    source, position, row_id = names
    columns = [*(quote(c.name) for c in table.columns), *([row_id] if row_ids else []), position, source]  # in the order of `stored_rows`
    return (hot[0], ", ".join(columns)) if hot else None


def narrowed(table: Table, only: frozenset[str] | None) -> Table:
    """The table with the columns of these folded names only; None: as it is."""
    return table if only is None else replace(table, columns=tuple(c for c in table.columns if fold(c.name) in only))


@dataclass(frozen=True, slots=True)
class _Part:
    """One scan of fragments of one kind."""

    sql: str
    fragments: tuple[Fragment, ...]
    is_file: bool


def _parts(state: TableState, table: Table, files: Groups, inline: Groups, kept: Kept, *, row_ids: bool, numbered: bool = False) -> list[_Part]:
    """The scans that are not empty, files first (`addressed` numbers them by their place). `table`: with the columns that are wanted."""
    found: list[_Part] = []
    apart = [*(frozenset({f}) for f in sorted(kept.hot_tables)), *files.adopted()]
    for group in (files.but(frozenset().union(*apart)), *map(files.only, apart), inline):
        is_file = group is not inline
        if group.clean:
            found.append(_Part(_rows(table, group.clean, kept, is_file, row_ids, numbered), group.clean, is_file))
        if group.listed:
            rows = _rows(table, group.listed, kept, is_file, row_ids, True)
            found.append(_Part(rows + _not_listed(state, group.listed, is_file=is_file), group.listed, is_file))
        if group.marked:
            rows = _rows(table, group.marked, kept, is_file, row_ids, True)
            found.append(_Part(rows + _not_marked(group.marked, kept, is_file=is_file), group.marked, is_file))
    return found


def _rows(table: Table, fragments: Sequence[Fragment], kept: Kept, is_file: bool, row_ids: bool, numbered: bool) -> str:
    """All rows of the fragments, as `p`."""
    if not is_file:
        return f"({_inline_rows(fragments, kept)}) p"
    hot = kept.hot_tables.get(fragments[0].fragment_id)
    if hot is not None:
        return f"{hot} p"
    if fragments[0].columns:
        files = [kept.files[f.fragment_id] for f in fragments]
        return f"({by_name.rows([c.stored for c in table.columns], fragments[0].columns, files, row_ids=row_ids, numbered=numbered)}) p"
    paths = ", ".join(literal(kept.files[f.fragment_id]) for f in fragments)
    number = ", file_row_number => true" if numbered else ""
    return f"read_parquet([{paths}], schema => {_schema(table, row_ids)}, hive_partitioning => false{number}) p"


def _inline_rows(fragments: Sequence[Fragment], kept: Kept) -> str:
    return f"SELECT * FROM {kept.inline_table} WHERE fragment IN ({', '.join(str(f.fragment_id) for f in fragments)})"


def _not_listed(state: TableState, fragments: Sequence[Fragment], *, is_file: bool) -> str:
    """An ANTI JOIN with the deleted positions."""
    sources: list[int] = []
    positions: list[int] = []
    for number, fragment in enumerate(fragments):
        deleted = state.vectors[fragment.fragment_id].positions
        sources += [number if is_file else fragment.fragment_id] * len(deleted)
        positions += deleted
    where = "d.position = p.file_row_number" if is_file else "d.position = p.position"
    if len(fragments) != 1 or not is_file:
        where += f" AND d.source = {'p.file_index::BIGINT' if is_file else 'p.fragment'}"
    return f" ANTI JOIN (SELECT unnest({sources}::BIGINT[]) AS source, unnest({positions}::BIGINT[]) AS position) d ON {where}"


def _not_marked(fragments: Sequence[Fragment], kept: Kept, *, is_file: bool) -> str:
    """A JOIN with the bitstrings and a test of the row's bit."""
    pairs = ", ".join(f"({i if is_file else f.fragment_id}, {kept.vector_numbers[f.fragment_id]})" for i, f in enumerate(fragments))
    source, position = ("p.file_index::BIGINT", "p.file_row_number") if is_file else ("p.fragment", "p.position")
    return (
        f" JOIN (SELECT m.source, d.bits FROM (VALUES {pairs or '(0, 0)'}) m(source, vector) JOIN {kept.vectors_table} d ON d.vector = m.vector) v"
        f" ON v.source = {source} WHERE get_bit(v.bits, {position}::INTEGER) = 0"
    )


@lru_cache(maxsize=256)
def _select(table: Table) -> str:
    return ", ".join(f"{types.decode(f'p.f{c.field_id}', c.type)} AS {quote(c.name)}" for c in table.columns)


@lru_cache(maxsize=256)
def _schema(table: Table, row_ids: bool) -> str:
    """The `schema` of a file scan: columns are found by field id, under names that nothing can clash with.

    It cannot be empty: at least the row id, which a file may lack.
    """
    fields = [renamed(c.stored) for c in table.columns]
    return types.schema_clause(fields + ([renamed(ROW_ID_STORED)] if row_ids or not fields else []))


def stored_rows(wanted: Sequence[Field], path: str) -> str:
    """A SELECT of all rows of one file, as they are stored: f<field id> …, and the columns that a file scan adds."""
    schema = types.schema_clause([renamed(field) for field in wanted or [ROW_ID_STORED]])
    rows = f"read_parquet({literal(path)}, schema => {schema}, hive_partitioning => false, file_row_number => true)"
    return f"SELECT *, 0::BIGINT AS file_index FROM {rows}"


def _nothing(columns: Sequence[Column]) -> str:
    """No rows, which DuckDB does not know before it looks: it evaluates what stands beside them, and its errors, as for a table without rows."""
    return "SELECT " + ", ".join(f"NULL::{c.type} AS {quote(c.name)}" for c in columns) + " FROM range(0)"


def renamed(stored: Field) -> Field:
    """The field under the name `f<id>`, which no column, file_row_number or file_index can clash with."""
    return replace(stored, name=f"f{stored.field_id}")


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
