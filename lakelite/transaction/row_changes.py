"""table_changes: the rows that came, went and changed in a run of snapshots, as SQL over no more than the fragments that those touched.

One net change per row and snapshot, known by row id: a row that came and went in one snapshot is an update. What a compaction
moved is no change, nor is a row that an overwrite (RESTORE) put back as it was. Only committed snapshots are shown, up to the
base. Pure but for the views and tables that it makes in DuckDB; sets and SQL throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelite import deletion
from lakelite.catalog import history
from lakelite.catalog.history import Life
from lakelite.contents import Namespace, TableState
from lakelite.deletion import DeletionVector
from lakelite.errors import DataError, NotSupportedError, OperationalError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.travel import name_in
from lakelite.model import Fragment, Table, quote
from lakelite.storage import arrays
from lakelite.transaction import changes as ch
from lakelite.transaction import past_columns, versions
from lakelite.transaction.execution import Call, Execution, find_table
from lakelite.transaction.past_columns import ColumnHistory
from lakelite.transaction.versions import Version

if TYPE_CHECKING:
    import pyarrow as pa
    from pyroaring import BitMap

    Picked = tuple[int, int, BitMap]  # rows of a fragment in a snapshot: fragment id, snapshot, positions
    _Vectors = Mapping[int, DeletionVector]  # by fragment id


@dataclass(frozen=True, eq=False)
class Side:
    """The rows that came, or those that went: the live rows of `whole`, each fragment's in a snapshot, and those that were `picked`.

    `read_at`: by these snapshots, the one in which their rows were there.
    """

    whole: TableState
    snapshots: Mapping[int, int]
    picked: Sequence[Picked]
    fragments: Mapping[int, Fragment]  # of the picked rows
    read_at: Mapping[int, int]

    def by_table(self, columns: ColumnHistory) -> list[Side]:
        """The side in parts, each of rows that are read as one table: all snapshots in between had the same columns."""
        tables = {snapshot: columns.at(there) for snapshot, there in self.read_at.items()}
        return [self._part(table, {s for s, t in tables.items() if t == table}) for table in dict.fromkeys(tables.values())]

    def _part(self, table: Table, chosen: set[int]) -> Side:
        snapshots = {k: s for k, s in self.snapshots.items() if s in chosen}
        picked = [one for one in self.picked if one[1] in chosen]
        fragments = {k: f for k, f in self.whole.fragments.items() if k in snapshots}
        whole = TableState(table, fragments, {k: v for k, v in self.whole.vectors.items() if k in snapshots})
        return Side(whole, snapshots, picked, {k: self.fragments[k] for k, _, _ in picked}, {s: self.read_at[s] for s in chosen})

    def by_snapshot(self) -> dict[int, list[Fragment]]:
        """The fragments that rows of each snapshot are in."""
        found: dict[int, list[Fragment]] = {}
        for fragment_id, snapshot in self.snapshots.items():
            found.setdefault(snapshot, []).append(self.whole.fragments[fragment_id])
        for fragment_id, snapshot, _ in self.picked:
            found.setdefault(snapshot, []).append(self.fragments[fragment_id])
        return found


@dataclass(frozen=True, eq=False)
class Happened:
    """What a run of snapshots did to a table."""

    came: Side
    went: Side
    columns: ColumnHistory

    @property
    def both(self) -> frozenset[int]:
        """The snapshots in which one row may have come and gone: a new row has a row id that is greater than all older ones."""
        went = {s: max(f.first_row_id + f.row_count for f in fragments) for s, fragments in self.went.by_snapshot().items()}
        came = self.came.by_snapshot().items()
        return frozenset(s for s, fragments in came if s in went and any(f.has_row_ids or f.first_row_id < went[s] for f in fragments))


def table_name(execution: Execution, hole: st.TableChanges, call: Call) -> str:
    """The name of a DuckDB view, called table_changes, that gives the rows of a call."""
    position = Position.at(call.text, hole.offset)
    first, last = _range(execution, hole, call, position)
    table = _table(execution, hole, call, last)
    _refuse_another(execution, table, first.number, last.number, position)
    what, rewritten = _read(execution, table, first.number, last.number, position)
    execution.notes += past_columns.notes(execution.engine, what.columns, [*what.came.read_at.values(), *what.went.read_at.values()])
    label, schema = f"{first.number}-{last.number}", f"{table.schema_name}.{table.name}"
    view = execution.engine.past.view(
        label, schema, "table_changes", what.came.whole.stamp, lambda: _query(execution, what, rewritten, label, schema)
    )
    for version in (first, last):
        versions.remember_read(execution, version, view, (table.table_id,))
    return view


# What was asked for.


def _range(execution: Execution, hole: st.TableChanges, call: Call, position: Position) -> tuple[Version, Version]:
    def find(text: str, *, is_first: bool) -> Version:
        if not versions.is_time(execution, text, call, position):
            return versions.by_number(execution, text, call, position)
        return (versions.first_since if is_first else versions.at_time)(execution, text, call, position)

    first, last = find(hole.first, is_first=True), find(hole.last, is_first=False)
    nothing_between = first.number == last.number + 1 and (first.is_time or last.is_time)
    if first.number > last.number and not nothing_between:
        message = f"table_changes goes from version {first.number} back to {last.number}"
        raise ProgrammingError(message, hint="the first version comes first, the last one behind it", position=position)
    return first, last


def _table(execution: Execution, hole: st.TableChanges, call: Call, last: Version) -> Table:
    """The table as of the last version."""
    position = Position.at(call.text, hole.offset)
    text = versions.value_of(execution, f"({hole.table}\n)", call, position, "the name of a table")
    if not isinstance(text, str):
        raise DataError("the name of a table is a text", hint="write table_changes('flights', 3, 7)", position=position)
    namespace = versions.view_of(execution, last.number, position).namespace
    exact = namespace.find(None, text)
    return exact if exact is not None and exact.view is None else _named(namespace, text, call, last, hole.offset)


def _named(namespace: Namespace, text: str, call: Call, last: Version, offset: int) -> Table:
    name = name_in(text) or st.Name(None, text)
    return find_table(ch.Work(namespace, ch.ChangeSet()), st.Name(name.schema, name.name, offset), call, last.number)


def _refuse_another(execution: Execution, table: Table, first: int, last: int, position: Position) -> None:
    """Changes are those of one table: where its name was another one's in between, half of what happened would be missing."""
    found = history.namesake(execution.catalog, table, first, last)
    if found is None:
        return
    other, name = max(first, found[0]), table.qualified
    message = f"the table {name} of version {other} is another one than that of version {last}"
    hint = f"ask for each by itself: table_changes('{name}', {other}, {found[1] - 1}) and table_changes('{name}', {found[1]}, {last})"
    raise ProgrammingError(message, hint=hint, position=position)


# What happened.

_ROWS_CHANGED = frozenset({"append", "delete", "update", "overwrite"})


def _read(execution: Execution, table: Table, first: int, last: int, position: Position) -> tuple[Happened, frozenset[int]]:
    """What happened, and the snapshots that may have put rows back as they were. OperationalError: some of it has expired."""
    catalog = execution.catalog
    born, of_branch, parent = catalog.row("table_born", table_id=table.table_id, snapshot=last)
    if born == of_branch and parent is not None and first <= born:  # it came with the branch, which adds no row
        message = f"the branch of version {last} begins with version {born}: what led to its version {parent} is on the branch that it was made from"
        raise ProgrammingError(message, hint=f"ask for the changes from version {born + 1} on, and there up to version {parent}", position=position)
    needed = born if first <= born else first - 1
    execution.pin(needed)
    kinds = history.kinds(catalog, table, first, last)
    found = history.lives(catalog, table, first, last)
    oldest = max(catalog.row("removed_before", table_id=table.table_id, snapshot=last))
    if needed < oldest:  # asked behind the reading: VACUUM may have come between
        message = f"the changes of {table.qualified} in version {first} have expired; the oldest kept ones are those of version {oldest + 1}"
        raise OperationalError(message, hint="DESCRIBE HISTORY lists the kept versions", position=position)
    moved = frozenset(snapshot for snapshot, what in kinds.items() if "compaction" in what or ("rewrite" in what and not what & _ROWS_CHANGED))
    columns = ColumnHistory(table, history.columns(catalog, table, needed, last))
    _refuse_torn(columns, position)
    same = frozenset(snapshot for snapshot, what in kinds.items() if what & {"overwrite", "rewrite"})
    return happened(columns, found, first, last, moved), same


def _refuse_torn(columns: ColumnHistory, position: Position) -> None:
    torn = columns.torn_in()
    if torn is not None:
        version, name = torn
        hint = f"ask for the changes up to version {version - 1}, and from version {version + 1} on"
        raise NotSupportedError(f'fields inside of column "{name}" were renamed or dropped in version {version}', hint=hint, position=position)


def happened(columns: ColumnHistory, found: Iterable[Life], first: int, last: int, moved: frozenset[int]) -> Happened:
    """What the snapshots from `first` to `last` did, without those that only moved rows."""
    shown = frozenset(range(first, last + 1)) - moved
    lives = {life.fragment.fragment_id: life for life in found}
    came = {k: life.born for k, life in lives.items() if life.born in shown}
    went = {k: life.gone for k, life in lives.items() if life.gone is not None and life.gone in shown}
    at_birth = {k: v for k in came for v in lives[k].vectors if v.born == lives[k].born}
    at_the_end = {k: lives[k].vectors[-1] for k in went if lives[k].vectors}
    put_back, taken = _same_again(columns, lives, came, went, at_birth, at_the_end)
    came = {k: snapshot for k, snapshot in came.items() if k not in put_back}
    went = {k: snapshot for k, snapshot in went.items() if k not in taken}
    deleted = [*_reduced(lives, shown), *taken.values()]
    table = columns.table
    new, old = _side(table, lives, came, at_birth, put_back.values(), 0), _side(table, lives, went, at_the_end, deleted, -1)
    return Happened(new, old, columns)


def _reduced(lives: Mapping[int, Life], shown: frozenset[int]) -> Iterator[Picked]:
    """The rows that each new deletion vector of a fragment took away."""
    for k, life in lives.items():
        for before, vector in zip((None, *life.vectors), life.vectors, strict=False):
            if vector.born is not None and vector.born in shown and vector.born > life.born:
                yield k, vector.born, vector.positions - before.positions if before else vector.positions


def _same_again(
    columns: ColumnHistory, lives: Mapping[int, Life], came: Mapping[int, int], went: Mapping[int, int], at_birth: _Vectors, at_the_end: _Vectors
) -> tuple[dict[int, Picked], dict[int, Picked]]:
    """Fragments that came and went in one snapshot with the same rows (RESTORE): only those that were dead in one of them have changed."""
    put_back: dict[int, Picked] = {}
    taken: dict[int, Picked] = {}
    by_content = {(_content(lives[k]), snapshot): k for k, snapshot in went.items()}
    for k, snapshot in came.items():
        twin = by_content.get((_content(lives[k]), snapshot))
        if twin is not None and not columns.changed_in(snapshot):
            new, old = _dead(at_birth.get(k)), _dead(at_the_end.get(twin))
            put_back[k], taken[twin] = (k, snapshot, old - new), (twin, snapshot, new - old)
    return put_back, taken


def _content(life: Life) -> tuple[str, int]:
    """Two fragments of a table with the same bytes and row ids hold the same rows."""
    return life.fragment.sha256, life.fragment.first_row_id


def _side(table: Table, lives: Mapping[int, Life], snapshots: Mapping[int, int], dead: _Vectors, chosen: Iterable[Picked], later: int) -> Side:
    picked = [one for one in chosen if one[2]]
    whole = TableState(table, {k: lives[k].fragment for k in snapshots}, {k: v for k, v in dead.items() if k in snapshots})
    read_at = {snapshot: snapshot + later for snapshot in [*snapshots.values(), *(snapshot for _, snapshot, _ in picked)]}
    return Side(whole, snapshots, picked, {k: lives[k].fragment for k, _, _ in picked}, read_at)


def _dead(vector: DeletionVector | None) -> BitMap:
    return deletion.span(0, 0) if vector is None else vector.positions


# The SQL.


def _query(execution: Execution, what: Happened, rewritten: frozenset[int], label: str, schema: str) -> str:
    table, both = what.came.whole.table, what.both
    came, went = (_all_rows(execution, what, side, label, schema, name) for side, name in ((what.came, "came_rows"), (what.went, "went_rows")))
    new = _changes(table, ("came", "went"), ("insert", "update_postimage"), both, rewritten)
    old = _changes(table, ("went", "came"), ("delete", "update_preimage"), both, rewritten)
    return f"WITH came AS NOT MATERIALIZED ({came}), went AS NOT MATERIALIZED ({went}) {new} UNION ALL {old}"


def _all_rows(execution: Execution, what: Happened, side: Side, label: str, schema: str, name: str) -> str:
    """A SELECT of the rows of a side: s (snapshot), r (row id), and the columns as c0, c1, …"""
    table = side.whole.table
    parts = side.by_table(what.columns) or [side]
    return " UNION ALL ".join(_rows(execution, part, table, label, schema, f"{name}_{i}") for i, part in enumerate(parts))


def _rows(execution: Execution, side: Side, shown: Table, label: str, schema: str, name: str) -> str:
    """The same for a part that is read as one table; `shown`: as which it is shown."""
    engine, table = execution.engine, side.whole.table
    columns = past_columns.casts(engine, table, shown, "p")
    scan = engine.addressed(side.whole, side.whole.fragments.values())
    values = [f"({source}, {f.first_row_id}, {side.snapshots[f.fragment_id]})" for source, f in scan.fragments.items()]
    whole = (
        f"SELECT m.snapshot::BIGINT AS s, coalesce(p.{scan.row_id}, m.first + p.{scan.position}) AS r, {columns}"
        f" FROM ({scan.sql}) p JOIN (VALUES {', '.join(values) or '(0, 0, 0)'}) m(source, first, snapshot) ON m.source = p.{scan.source}"
    )
    if not side.picked:
        return whole
    scan = engine.addressed(TableState(table, side.fragments, {}), side.fragments.values())
    numbers = {f.fragment_id: source for source, f in scan.fragments.items()}
    picked = engine.past.table(label, schema, name, _as_arrow(side.picked, numbers))
    firsts = ", ".join(f"({source}, {f.first_row_id})" for source, f in scan.fragments.items())
    return (
        f"{whole} UNION ALL"
        f" SELECT d.snapshot AS s, coalesce(p.{scan.row_id}, m.first + p.{scan.position}) AS r, {columns}"
        f" FROM ({scan.sql}) p JOIN {picked} d ON d.source = p.{scan.source} AND d.position = p.{scan.position}"
        f" JOIN (VALUES {firsts}) m(source, first) ON m.source = p.{scan.source}"
    )


def _changes(table: Table, sides: tuple[str, str], types: tuple[str, str], both: frozenset[int], rewritten: frozenset[int]) -> str:
    """The changes of one side: a row that is on the other one too, in the same snapshot, is of the second type.

    Only of snapshots that may have put rows back (`rewritten`) are such rows compared.
    """
    mine, other = sides
    columns = "".join(f", a.c{i} AS {quote(c.name)}" for i, c in enumerate(table.columns))
    if not both:
        return f"SELECT a.s AS snapshot_id, a.r AS row_id, '{types[0]}' AS change_type{columns} FROM {mine} a"
    kind = f"CASE WHEN o.r IS NULL THEN '{types[0]}' ELSE '{types[1]}' END"
    pair, same = "", ""
    if both & rewritten:
        pair = f" SEMI JOIN {mine} b ON b.s = x.s AND b.r = x.r"
        differs = " OR ".join(f"a.c{i} IS DISTINCT FROM o.c{i}" for i in range(len(table.columns)))
        same = f" WHERE o.r IS NULL OR a.s NOT IN ({_list(both & rewritten)}) OR {differs}"
    matches = f"(SELECT x.* FROM {other} x{pair} WHERE x.s IN ({_list(both)}))"
    return (
        f"SELECT a.s AS snapshot_id, a.r AS row_id, {kind} AS change_type{columns}"
        f" FROM {mine} a LEFT JOIN {matches} o ON o.s = a.s AND o.r = a.r{same}"
    )


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _as_arrow(picked: Sequence[Picked], numbers: Mapping[int, int]) -> pa.Table:
    """Picked rows as source number in the scan, position and snapshot."""
    import numpy as np

    counts = [len(positions) for _, _, positions in picked]
    return arrays.table(
        {
            "source": np.repeat([numbers[fragment_id] for fragment_id, _, _ in picked], counts),
            "position": np.concatenate([deletion.to_array(positions) for _, _, positions in picked]),
            "snapshot": np.repeat([snapshot for _, snapshot, _ in picked], counts),
        }
    )
