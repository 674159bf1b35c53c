"""MERGE BRANCH: what another branch did since the two met comes to the one that the transaction is on, as ordinary changes.

Three-way: base is the newest snapshot that led to both; what only theirs changed is taken over, what both changed alike is left, and
what they changed in different ways is a conflict, decided by ON CONFLICT. Rows: `merge_rows.py`. It counts as a read of every table
that theirs touched, so that it runs again on the head where winners changed one. The other branch stays as it was when it was first named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakelite.catalog.branches import Lineage, meeting
from lakelite.contents import Namespace, TableState
from lakelite.errors import Conflict, IntegrityError, OperationalError, Position, ProgrammingError, TransactionConflict
from lakelite.language.branch_statements import MergeBranch
from lakelite.mapping.names import listed
from lakelite.model import Branch, Column, Schema, Table, fold, quote
from lakelite.storage import fragment as fragments
from lakelite.transaction import changes as ch
from lakelite.transaction import constraints, define, merge_rows, versions
from lakelite.transaction.delta import Delta
from lakelite.transaction.execution import Call, Done, Execution
from lakelite.transaction.meetings import Winner
from lakelite.transaction.view import LakeView, check_version

SHOWN_KEYS = 10
_ROW_ID = quote("_lake_kept_row_id")
_CONFLICTS = "temp.lake_merge_conflicts"


def merge_branch(execution: Execution, work: ch.Work, operation: MergeBranch, call: Call) -> Done:
    """Takes the branch over. TransactionConflict: both changed a row or a table, and nothing says who wins; IntegrityError as ever."""
    position = Position.at(call.text, operation.offset)
    branch = versions.find_branch(execution.catalog, operation.name, position)
    if branch.branch_id == execution.branch:
        raise ProgrammingError(f"branch {branch.name} is the one that you are on", hint="USE BRANCH goes to the one to merge into", position=position)
    head = execution.named.setdefault(("branch", fold(branch.name)), execution.catalog.head(branch.branch_id))
    execution.merge.conflicts, execution.merge.lines = None, []
    sides = _met(execution, branch, head, position)
    if sides is None:
        return Done(work)
    merge = _Merge(execution, operation, sides, work)
    try:
        execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_conflicts ({', '.join(map(' '.join, merge_rows.CONFLICT_COLUMNS))})")
        merge.run()
        merge.report()
        for number in sides.numbers:  # asked behind the reading: VACUUM may have come between where the other branch was dropped meanwhile
            check_version(execution.catalog, number, position)
    finally:
        merge_rows.forget(execution)
    if merge.conflicts and operation.on_conflict == "fail" and not operation.dry_run:
        raise TransactionConflict(tuple(_conflict(execution, sides, one, call) for one in merge.conflicts))
    changes = merge.work.changes.with_reads(merge.looked, call.text)
    changes = replace(changes, defines=True, writes=True, blind=False, merged=head)
    return Done(replace(merge.work, changes=changes), sum(sum(line[1:4]) for line in execution.merge.lines))


# Where they met, and what each did since.


@dataclass(frozen=True, eq=False)
class _Side:
    """What happened on one of the branches since they met. `stretches`: the snapshots (after, until] of it; `kinds`: by table."""

    stretches: Sequence[tuple[int, int]]
    kinds: Mapping[int, frozenset[str]]

    @classmethod
    def of(cls, execution: Execution, stretches: Sequence[tuple[int, int]]) -> _Side:
        kinds: dict[int, frozenset[str]] = {}
        for after, until in stretches:
            for _, table_id, text, _, _ in execution.catalog.rows("effects", base=after, head=until):
                if table_id is not None:
                    kinds[table_id] = kinds.get(table_id, frozenset()) | frozenset(text.split(","))
        return cls(stretches, kinds)


@dataclass(frozen=True, eq=False)
class _Sides:
    """`bases`, `head`: the lake where the branches met, and theirs now. `base`: the newest of them."""

    branch: Branch
    bases: tuple[LakeView, ...]
    head: LakeView
    theirs: _Side
    ours: _Side

    @property
    def base(self) -> LakeView:
        return self.bases[0]

    @property
    def numbers(self) -> list[int]:
        """The snapshots that the merge reads."""
        return [
            *(base.snapshot_id for base in self.bases),
            self.head.snapshot_id,
            *(n for side in (self.theirs, self.ours) for run in side.stretches for n in run),
        ]


def _met(execution: Execution, branch: Branch, head: int, position: Position) -> _Sides | None:
    """None: all of theirs is here already."""
    mine = execution.view.snapshot_id
    lineage = Lineage.of(execution.catalog)
    met, back = meeting(lineage, head, mine), meeting(lineage, mine, head)
    if met is None or back is None:
        hint = "CREATE TABLE … AS FROM t AT (BRANCH => …) takes a table"
        raise OperationalError(f"where branch {branch.name} and this one met has expired", hint=hint, position=position)
    if met.bases == (head,):
        return None
    for number in (*met.bases, head, *(after for after, _ in (*met.stretches, *back.stretches))):
        execution.pin(number)
    bases = tuple(versions.view_of(execution, number, position) for number in met.bases)
    return _Sides(branch, bases, versions.view_of(execution, head, position), _Side.of(execution, met.stretches), _Side.of(execution, back.stretches))


# The merge.


@dataclass(frozen=True, slots=True)
class _Torn:
    """A conflict: a table, and what is wrong. `rows`: how many rows both changed (None: it is about the table itself)."""

    table: str
    why: str
    rows: int | None = None
    keys: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class _Merge:
    """One merge while it runs: `work` is what it has made so far of ours."""

    execution: Execution
    operation: MergeBranch
    sides: _Sides
    work: ch.Work
    conflicts: list[_Torn] = field(default_factory=list)
    looked: frozenset[int] = frozenset()

    def run(self) -> None:
        base, theirs, ours = self.sides.base.namespace.by_id, self.sides.head.namespace.by_id, self.work.namespace.by_id
        self.looked = frozenset((self.sides.theirs.kinds.keys() | (base.keys() ^ theirs.keys())) & ours.keys())
        for schema in _new_schemas(self.sides.base.namespace, self.sides.head.namespace):
            self._add_schema(schema)
        for table_id in sorted(base.keys() & ours.keys() - theirs.keys()):
            self._dropped_there(base[table_id], ours[table_id])
        for table_id in sorted(theirs.keys() & ours.keys()):
            if table_id in self.sides.theirs.kinds:
                self._changed(base.get(table_id), theirs[table_id], ours[table_id])
        for table_id in sorted(theirs.keys() - ours.keys()):
            self._missing_here(base.get(table_id), theirs[table_id])
        for schema in _new_schemas(self.sides.head.namespace, self.sides.base.namespace):
            self._drop_schema(schema)

    @property
    def _wins(self) -> bool:
        """Whether theirs wins a conflict."""
        return self.operation.on_conflict == "theirs"

    def _is_torn(self, torn: _Torn) -> bool:
        """Notes a conflict about a table; whether theirs wins it."""
        self.conflicts.append(torn)
        self.execution.engine.run(f"INSERT INTO {_CONFLICTS} VALUES ($table, NULL, $kind, NULL, NULL, NULL)", {"table": torn.table, "kind": torn.why})
        return self._wins

    def report(self) -> None:
        """What `lake.merge_conflicts` shows from now on."""
        if self.conflicts:
            engine = self.execution.engine
            self.execution.merge.conflicts = engine.shelf.save(engine.work, f"SELECT * FROM {_CONFLICTS}", {}, merge_rows.CONFLICT_COLUMNS)

    def _tell(self, table: Table, what: str, counts: merge_rows.Counts | None = None) -> None:
        told = counts or merge_rows.Counts(0, 0, 0, 0)
        if what or counts is not None:
            self.execution.merge.lines.append((table.qualified, told.added, told.updated, told.deleted, told.conflicts, what))

    # Schemas.

    def _add_schema(self, schema: Schema) -> None:
        if fold(schema.name) not in self.work.namespace.schemas:
            created = {**self.work.changes.schemas_created, schema.schema_id: schema}
            self.work = ch.Work(self.work.namespace.with_schema(schema), replace(self.work.changes, schemas_created=created))

    def _drop_schema(self, schema: Schema) -> None:
        """It stays where ours has something in it."""
        here = self.work.namespace.schemas.get(fold(schema.name))
        inside = any(t.schema_id == schema.schema_id for t in self.work.namespace.tables.values())
        if here is not None and here.schema_id == schema.schema_id and not inside:
            changes = replace(self.work.changes, schemas_dropped=self.work.changes.schemas_dropped | {schema.schema_id})
            self.work = ch.Work(self.work.namespace.without_schema(schema.name), changes)

    def _placed(self, table: Table) -> Table:
        """The table in the schema of its name that ours has."""
        here = self.work.namespace.schemas.get(fold(table.schema_name))
        if here is None:  # ours dropped it
            here = Schema(table.schema_id, table.schema_name)
            self._add_schema(here)
        return replace(table, schema_id=here.schema_id, schema_name=here.name)

    def _makes_room(self, table: Table) -> bool:
        """Whether the name is free for a table of theirs, which wins over another one of ours if conflicts say so."""
        other = self.work.namespace.find(table.schema_name, table.name)
        if other is None or other.table_id == table.table_id:
            return True
        if not self._is_torn(_Torn(table.qualified, "both branches made or renamed a table to this name")):
            return False
        self.work = define.without(self.work, other)
        self._tell(other, "dropped")
        return True

    # Tables that one of both has not.

    def _dropped_there(self, base: Table, ours: Table) -> None:
        if (ours != base or self._has_changed(self.sides.ours, base.table_id)) and not self._is_torn(
            _Torn(ours.qualified, "it was dropped there and changed here")
        ):
            return
        self.work = define.without(self.work, ours)
        self._tell(ours, "dropped")

    def _missing_here(self, base: Table | None, theirs: Table) -> None:
        if base is not None:  # ours dropped it
            if base == theirs and not self._has_changed(self.sides.theirs, base.table_id):
                return
            if not self._is_torn(_Torn(theirs.qualified, "it was dropped here and changed there")):
                return
        made = self._placed(theirs)
        if self._makes_room(made):
            self._take_whole(theirs, ch.TableChange(made, created=True, kinds=frozenset({"create"})), "created")

    def _take_whole(self, theirs: Table, change: ch.TableChange, what: str) -> None:
        """The table with all its rows as theirs has it. No data is written: files get a second name, and rows keep their ids."""
        if theirs.view is None:
            state = self.sides.head.state(theirs)
            staged = {k: self._put_back(state, k) for k in state.fragments}
            dead = {s.fragment.fragment_id: state.vectors[k].positions for k, s in staged.items() if k in state.vectors}
            kind: ch.Kind = "append" if change.created else "overwrite"
            change = ch.append(change, staged.values(), kind) if staged else change
            change = ch.delete(change, dead, kind) if dead else change
            self._tell(change.table, what, merge_rows.Counts(state.row_count, 0, 0, 0))
        else:
            self._tell(change.table, what)
        self.work = ch.Work(self.work.namespace.with_table(change.table), self.work.changes.with_change(change))

    def _put_back(self, state: TableState, fragment_id: int) -> fragments.Staged:
        staged = fragments.put_back(self.execution.place(state.table), state.fragments[fragment_id], self.execution.catalog.inline_rows)
        self.execution.written.append(staged)
        return staged

    # Tables that both have.

    def _changed(self, base: Table | None, theirs: Table, ours: Table) -> None:
        made, what = self._defined(base, theirs, ours), ""
        if made is None:
            wins = self._is_torn(_Torn(ours.qualified, "its columns or its definition were changed on both branches"))
            made = self._placed(theirs) if wins else ours
        if made != ours and not self._makes_room(made):
            made = replace(made, schema_id=ours.schema_id, schema_name=ours.schema_name, name=ours.name)
        if made != ours:
            what = "redefined"
            self._redefine(made, ours)
        if made.view is None and self._rows_go_together(ours):
            self._rows(made, ours, what)
        elif made.view is None and self._is_torn(_Torn(ours.qualified, "its rows were written anew, and changed on the other branch")):
            change = ch.delete_all(self.work.changes.change_of(made), self.execution.view.state(ours), "overwrite")
            self._take_whole(theirs, replace(change, table=self._placed(theirs), kinds=change.kinds | {"schema"}), "overwritten")
        else:
            self._tell(made, what)

    def _defined(self, base: Table | None, theirs: Table, ours: Table) -> Table | None:
        """The definition that both come to; None: they changed it in ways that do not go together."""
        if theirs in (base, ours):
            return ours
        if base is None or ours == base:
            return self._placed(theirs)
        for one, other in ((theirs, ours), (ours, theirs)):
            added = _added(base, one)
            if added is not None and not {fold(c.name) for c in added} & {fold(c.name) for c in other.columns}:
                return self._placed(replace(other, columns=(*other.columns, *added)))
        return None

    def _redefine(self, made: Table, ours: Table) -> None:
        change = self.work.changes.change_of(ours)
        kinds: frozenset[ch.Kind] = frozenset({"schema", "rename"} if (made.name, made.schema_id) != (ours.name, ours.schema_id) else {"schema"})
        changes = self.work.changes.with_change(replace(change, table=made, kinds=change.kinds | kinds))
        self.work = ch.Work(self.work.namespace.with_table(made), changes)

    def _rows_go_together(self, table: Table) -> bool:
        """Not where one branch wrote all rows anew for a column of another type, and the other one changed rows."""
        for one, other in ((self.sides.theirs, self.sides.ours), (self.sides.ours, self.sides.theirs)):
            if "rewrite" in one.kinds.get(table.table_id, ()) and self._has_changed(other, table.table_id):
                return False
        return True

    def _rows(self, made: Table, ours: Table, what: str) -> None:
        execution, before = self.execution, self.execution.view.state(ours)
        ids = merge_rows.candidates(execution, self._deltas(self.sides.theirs, made.table_id))
        change = self.work.changes.change_of(made)
        counts = merge_rows.Counts(0, 0, 0, 0)
        if len(ids):
            bases = [_state(base, made.table_id) for base in self.sides.bases]
            theirs = self.sides.head.state(self.sides.head.namespace.by_id[made.table_id])
            counts = merge_rows.three_ways(execution, made, bases, theirs, before, ids)
            if counts.conflicts:
                self._note_rows(made, counts.conflicts)
            change = self._taken(made, change, before)
        if change.kinds:
            self.work = replace(self.work, changes=self.work.changes.with_change(change))
        if made != ours:
            _validate(execution, ch.overlay(before, change), ours)
        self._tell(made, what, counts if any((counts.added, counts.updated, counts.deleted, counts.conflicts)) else None)

    def _taken(self, made: Table, change: ch.TableChange, before: TableState) -> ch.TableChange:
        """The rows of theirs in place of ours."""
        execution = self.execution
        condition = merge_rows.taken(conflicts_too=self._wins)
        gone = merge_rows.replaced(execution, before, condition)
        rows = merge_rows.new_versions(made, condition, _ROW_ID)
        staged = execution.keep(made, fragments.write(execution.engine, execution.place(made), made, rows, {}, row_id=_ROW_ID))
        kind: ch.Kind = "append" if not gone else "update" if staged else "delete"
        change = ch.delete(change, gone, kind) if gone else change
        return ch.append(change, staged, kind) if staged else change

    def _note_rows(self, table: Table, count: int) -> None:
        self.execution.engine.run(f"INSERT INTO {_CONFLICTS} {merge_rows.conflicts(table)}")
        keys = merge_rows.shown_keys(self.execution, table, SHOWN_KEYS)
        rows = "1 row was" if count == 1 else f"{count} rows were"
        self.conflicts.append(_Torn(table.qualified, f"{rows} changed on both branches, and not alike", count, keys))

    # What a side did to the rows of a table.

    def _has_changed(self, side: _Side, table_id: int) -> bool:
        if side.kinds.get(table_id, frozenset()) <= {"compaction"}:
            return False
        return len(merge_rows.candidates(self.execution, self._deltas(side, table_id))) > 0

    def _deltas(self, side: _Side, table_id: int) -> list[Delta]:
        return [delta for after, until in side.stretches if (delta := self._delta(table_id, after, until)) is not None]

    def _delta(self, table_id: int, after: int, until: int) -> Delta | None:
        before, now = (versions.view_of(self.execution, number, None) for number in (after, until))
        old, new = before.namespace.by_id.get(table_id), now.namespace.by_id.get(table_id)
        known = new or old
        if known is None or known.view is not None:
            return None
        states = [TableState(known, {}, {}) if table is None else view.state(table) for view, table in ((before, old), (now, new))]
        return Delta(states[0], states[1], self.execution.catalog.compositions(known, after, until))


def _state(view: LakeView, table_id: int) -> TableState | None:
    table = view.namespace.by_id.get(table_id)
    return None if table is None else view.state(table)


def _new_schemas(before: Namespace, now: Namespace) -> list[Schema]:
    known = {s.schema_id for s in before.schemas.values()}
    return [s for s in now.schemas.values() if s.schema_id not in known]


def _added(base: Table, now: Table) -> tuple[Column, ...] | None:
    """The columns that were added, if nothing else was changed."""
    is_same = now.columns[: len(base.columns)] == base.columns and replace(now, columns=base.columns) == base
    return now.columns[len(base.columns) :] if is_same else None


def _validate(execution: Execution, state: TableState, before: Table) -> None:
    """IntegrityError: a row breaks what the new definition demands beside the one `before`."""
    nullable = {c.field_id for c in before.columns if not c.nullable}
    demanded = [c for c in state.table.columns if not c.nullable and c.field_id not in nullable]
    found = constraints.column_with_null(execution, state, demanded)
    if found is not None:
        hint = "give each row a value on one of the branches first"
        raise IntegrityError(f"NOT NULL constraint failed: {state.table.qualified}.{found.name}: there is a row with NULL", hint=hint)
    if state.table.constraints != before.constraints:
        constraints.check_table(execution, state)


# The error.


def _conflict(execution: Execution, sides: _Sides, torn: _Torn, call: Call) -> Conflict:
    head = sides.head.snapshot_id
    theirs = Winner.of_row(execution.catalog.rows("winners", base=head - 1, head=head)[0], {}, False)
    shown = f" ({listed(torn.keys)})" if torn.keys else ""
    return Conflict(
        kind="merge conflict", table=torn.table, winner_snapshot_id=head, winner_committed_at=theirs.committed_at, winner_author=theirs.author,
        winner_statement=theirs.statement, statement=call.text, explanation=f"{torn.why}{shown}",
        what_to_do=f"lake.merge_conflicts shows the rows; MERGE BRANCH {sides.branch.name} ON CONFLICT OURS or THEIRS decides them all",
        rows=torn.rows, keys=torn.keys,
    )  # fmt: skip
