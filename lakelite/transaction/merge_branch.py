"""MERGE BRANCH: what another branch did since the two met comes to the one that the transaction is on, as ordinary changes.

Three-way: base is the newest snapshot that led to both; what only theirs changed is taken over, what both changed alike is left, and
what they changed in different ways is a conflict, decided by ON CONFLICT. Rows: `merge_rows.py`. It counts as a read of every table
that theirs touched, so that it runs again on the head where winners changed one. The other branch stays as it was when it was first named.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from typing import Any, Literal

from lakelite.contents import Namespace, TableState
from lakelite.errors import IntegrityError, Position, ProgrammingError, TransactionConflict
from lakelite.language.branch_statements import MergeBranch
from lakelite.mapping.names import listed
from lakelite.model import Column, Schema, Table, fold, quote
from lakelite.storage import fragment as fragments
from lakelite.transaction import changes as ch
from lakelite.transaction import define, merge_conflicts, merge_demands, merge_keys, merge_rows, merge_sides, redefinition, versions
from lakelite.transaction import merge_definition as definition
from lakelite.transaction.execution import Call, Done, Execution
from lakelite.transaction.merge_conflicts import Torn
from lakelite.transaction.merge_definition import Plan
from lakelite.transaction.merge_sides import Side, Sides
from lakelite.transaction.view import LakeView, check_version

_ROW_ID = quote("_lake_kept_row_id")
Reading = Literal["as it is", "rebuilt", "not"]
_HERE = "the branch that you are on"
_DEFINITIONS = "its columns or its definition were changed on both branches"


def merge_branch(execution: Execution, work: ch.Work, operation: MergeBranch, call: Call) -> Done:
    """Takes the branch over. TransactionConflict: both changed a row or a table, and nothing says who wins; IntegrityError as ever."""
    position = Position.at(call.text, operation.offset)
    branch = versions.find_branch(execution.catalog, operation.name, position)
    if branch.branch_id == execution.branch:
        raise ProgrammingError(f"branch {branch.name} is the one that you are on", hint="USE BRANCH goes to the one to merge into", position=position)
    head = execution.named.setdefault(("branch", fold(branch.name)), execution.catalog.head(branch.branch_id))
    merge_conflicts.begin(execution, branch)
    sides = merge_sides.met(execution, branch, head, position)
    if sides is None:
        return Done(work)
    merge = _Merge(execution, operation, sides, work)
    try:
        merge.run()
        merge.report()
        for number in sides.numbers:  # asked behind the reading: VACUUM may have come between where the other branch was dropped meanwhile
            check_version(execution.catalog, number, position)
    finally:
        merge_rows.forget(execution)
    if merge.conflicts and operation.on_conflict == "fail" and not operation.dry_run:
        raise TransactionConflict(tuple(merge_conflicts.error(execution, sides, one, call) for one in merge.conflicts))
    if merge.broken and not operation.dry_run:
        raise merge.broken[0]
    if merge.broken:
        return Done(work)
    changes = merge.work.changes.with_reads(merge.looked, call.text)
    changes = replace(changes, defines=True, writes=True, blind=False, merged=head)
    return Done(replace(merge.work, changes=changes), sum(sum(line[1:4]) for line in execution.merge.lines))


# The merge.


@dataclass(slots=True, eq=False)
class _Merge:
    """One merge while it runs: `work` is what it has made so far of ours; `broken`: what its rows break of what is demanded of them."""

    execution: Execution
    operation: MergeBranch
    sides: Sides
    work: ch.Work
    conflicts: list[Torn] = field(default_factory=list)
    broken: list[IntegrityError] = field(default_factory=list)
    looked: frozenset[int] = frozenset()

    def run(self) -> None:
        base, theirs, ours = self.sides.base.namespace.by_id, self.sides.head.namespace.by_id, self.work.namespace.by_id
        self.looked = frozenset((self.sides.theirs.kinds.keys() | (base.keys() ^ theirs.keys())) & ours.keys())
        for schema in _new_schemas(self.sides.base.namespace, self.sides.head.namespace):
            self._add_schema(schema)
        for table_id in sorted(base.keys() & ours.keys() - theirs.keys()):
            self._dropped_there(base[table_id], ours[table_id])
        both = sorted(theirs.keys() & ours.keys() & self.sides.theirs.kinds.keys())
        plans = [self._settled(base.get(table_id), theirs[table_id], ours[table_id]) for table_id in both]
        for plan in self._named(plans):
            self._apply(plan)
        for table_id in sorted(theirs.keys() - ours.keys()):
            self._missing_here(base.get(table_id), theirs[table_id])
        for schema in _new_schemas(self.sides.head.namespace, self.sides.base.namespace):
            self._drop_schema(schema)

    @property
    def _wins(self) -> bool:
        """Whether theirs wins a conflict."""
        return self.operation.on_conflict == "theirs"

    def _is_torn(self, table: Table, why: str, other: Table | None = None) -> bool:
        """Notes a conflict about a table; whether theirs wins it. `other`: the one of ours that theirs meets in its place."""
        here = self._did(self.sides.ours, self.execution.view.namespace, (other or table).table_id)
        there = self._did(self.sides.theirs, self.sides.head.namespace, table.table_id)
        torn = merge_conflicts.of_table(self.execution, table, why, here, there)
        self.conflicts.append(torn)
        self._tell(table, torn.why, merge_rows.Counts(0, 0, 0, 1))
        return self._wins

    def _did(self, side: Side, namespace: Namespace, table_id: int) -> str:
        """What a side did to a table, in words."""
        base, now = self.sides.base.namespace.by_id.get(table_id), namespace.by_id.get(table_id)
        did = definition.told(base, now)
        if base is not None and now is not None and merge_sides.has_changed(self.execution, side, table_id):
            did.append("rows written anew" if "rewrite" in side.kinds[table_id] else "rows changed")
        return ", ".join(did) or "nothing"

    def report(self) -> None:
        """What `lake.merge_conflicts` and the statement's own rows show from now on."""
        merge_conflicts.keep(self.execution)
        found: dict[str, list[Any]] = {}
        for name, *counts, what in self.execution.merge.lines:
            known = found.setdefault(name, [0, 0, 0, 0, []])
            known[:4] = map(add, known, counts)
            known[4] += [what] if what else []
        self.execution.merge.lines = [(name, *counts, "; ".join(what)) for name, (*counts, what) in found.items()]

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

    def _makes_room(self, table: Table, moving: Container[int] = ()) -> bool:
        """Whether the name is free for a table of theirs, which wins over another one of ours if conflicts say so; those `moving` give theirs up."""
        other = self._holder(table, moving)
        if other is None:
            return True
        if not self._is_torn(table, "both branches made or renamed a table to this name: DROP or rename it on one of them first", other):
            return False
        self.work = define.without(self.work, other)
        self._tell(other, "dropped")
        return True

    # Tables that one of both has not.

    def _dropped_there(self, base: Table, ours: Table) -> None:
        if (ours != base or merge_sides.has_changed(self.execution, self.sides.ours, base.table_id)) and not self._is_torn(
            ours, "it was dropped there and changed here"
        ):
            return
        self.work = define.without(self.work, ours)
        self._tell(ours, "dropped")

    def _missing_here(self, base: Table | None, theirs: Table) -> None:
        if base is not None:  # ours dropped it
            if base == theirs and not merge_sides.has_changed(self.execution, self.sides.theirs, base.table_id):
                return
            if not self._is_torn(theirs, "it was dropped here and changed there"):
                return
        made = self._placed(theirs)
        if self._makes_room(made):
            self._take_whole(theirs, ch.TableChange(made, created=True, kinds=frozenset({"create"})), "created")

    def _take_whole(self, theirs: Table, change: ch.TableChange, what: str, *, are_new: bool = True) -> Mapping[int, int]:
        """The table with all its rows as theirs has it. No data is written: files get a second name, and rows keep their ids. For each fragment
        of theirs, the one that stands for it. `are_new`: whether ours has not had these rows."""
        staged: dict[int, fragments.Staged] = {}
        if theirs.view is None:
            state = self.sides.head.state(theirs)
            staged = {k: self._put_back(state, k) for k in state.fragments}
            dead = {s.fragment.fragment_id: state.vectors[k].positions for k, s in staged.items() if k in state.vectors}
            kind: ch.Kind = "append" if change.created else "overwrite"
            change = ch.append(change, staged.values(), kind) if staged else change
            change = ch.delete(change, dead, kind) if dead else change
            self._tell(change.table, what, merge_rows.Counts(state.row_count if are_new else 0, 0, 0, 0))
        else:
            self._tell(change.table, what)
        self.work = ch.Work(self.work.namespace.with_table(change.table), self.work.changes.with_change(change))
        return {k: s.fragment.fragment_id for k, s in staged.items()}

    def _put_back(self, state: TableState, fragment_id: int) -> fragments.Staged:
        staged = fragments.put_back(self.execution.place(state.table), state.fragments[fragment_id], self.execution.catalog.inline_rows)
        self.execution.written.append(staged)
        return staged

    # Tables that both have.

    def _settled(self, base: Table | None, theirs: Table, ours: Table) -> Plan:
        """What becomes of the table. On a conflict about its definition, the side that wins decides the parts that both changed; where rows cannot be
        read under what that comes to, its definition is the outcome, and its rows too."""
        ways: tuple[tuple[definition.Wins, Table, Side], ...] = (("theirs", theirs, self.sides.theirs), ("ours", ours, self.sides.ours))
        replaced = [name for name, table, side in ways if self._is_replaced(base, table, side)]
        made = definition.merged(base, theirs, ours, replaced)
        why = definition.both_added(base, theirs, ours) if made is None else self._torn_by(base, theirs, ours, made)
        if (made is None or why is not None) and self._are_alike(theirs, ours):
            return Plan(theirs, ours, theirs, "alike")
        if made is None or why is not None:
            wins: definition.Wins = "theirs" if self._is_torn(ours, why or _DEFINITIONS) else "ours"
            parts = definition.merged(base, theirs, ours, replaced, wins)
            fits = parts is not None and self._torn_by(base, theirs, ours, parts, wins) is None
            made = parts if parts is not None and fits else theirs if wins == "theirs" else ours
        here, there = self._reading(base, ours, made, self.sides.theirs, theirs), self._reading(base, theirs, made, self.sides.ours, ours)
        if here == "as it is":
            rebuilt = definition.converted(theirs, made).keys() if there == "rebuilt" else ()
            return Plan(theirs, ours, made, "nothing" if there == "not" else "changes", rebuilt)
        has_rows = here == "rebuilt" and there == "as it is" and merge_sides.has_changed(self.execution, self.sides.ours, ours.table_id)
        return Plan(theirs, ours, made, "all and ours" if has_rows else "all", definition.converted(ours, made).keys())

    def _are_alike(self, theirs: Table, ours: Table) -> bool:
        """Whether both made the same of the table and of all its rows; then one set of columns is to be known on both branches."""
        states = self.sides.head.state(theirs), self.execution.view.state(ours)
        return ours.view is None and definition.are_alike(theirs, ours) and merge_rows.are_alike(self.execution, *states)

    def _reading(self, base: Table | None, table: Table, made: Table, side: Side, other: Table) -> Reading:
        """How the rows of one side, which has `table`, can be read as of `made`, given what the other `side` did to its `other`."""
        is_replaced = self._is_replaced(base, other, side)
        if definition.can_read(base, table, made, is_replaced=is_replaced):
            return "as it is"
        rebuilt = definition.converted(table, made)
        return "rebuilt" if is_replaced and definition.can_read(base, table, made, is_replaced=True, rebuilt=rebuilt) else "not"

    def _is_replaced(self, base: Table | None, table: Table, side: Side) -> bool:
        return definition.is_replaced(base, table, side.kinds.get(table.table_id, frozenset()))

    def _torn_by(self, base: Table | None, theirs: Table, ours: Table, made: Table, wins: definition.Wins | None = None) -> str | None:
        """Why changed rows of one side do not go together with what the other side did to the definition. Where one side `wins`, values of the
        other one in what it dropped are no reason."""
        ways = ((self.sides.theirs, theirs, self.sides.ours, ours), (self.sides.ours, ours, self.sides.theirs, theirs))
        readings = [self._reading(base, table, made, other_side, other) for _, table, other_side, other in ways]
        for (side, table, _, _), reading in zip(ways, readings, strict=True):
            is_lost = reading == "not" or "as it is" not in readings
            if is_lost and merge_sides.has_changed(self.execution, side, table.table_id):
                return "its rows were written anew, and changed on the other branch"
        for (side, table, _, _), reading, view in zip(ways, readings, (self.sides.head, self.execution.view), strict=True):
            if wins is not None and side is not getattr(self.sides, wins):
                continue
            rebuilt = definition.converted(table, made) if reading == "rebuilt" else {}
            lost = [] if base is None else definition.lost(base, table, made, rebuilt)
            if base is not None and lost and self._are_updated(lost, base, view.state(table), side):
                names = listed([c.name if kind == c.type else f"a field of {c.name}" for c, kind in lost])
                return f"{names} was dropped on one branch, and rows were given other values there on the other"
        return None

    def _are_updated(self, parts: Sequence[tuple[Column, str]], base: Table, state: TableState, side: Side) -> bool:
        ids = merge_sides.touched(self.execution, side, base.table_id)
        return len(ids) > 0 and merge_rows.are_updated(self.execution, parts, self.sides.base.state(base), state, ids)

    def _named(self, plans: Sequence[Plan]) -> list[Plan]:
        """The plans with the names that the tables have in the end: all change at once, so that one may get what another one had."""
        final = {p.ours.table_id: p for p in plans}
        moving = {k: p for k, p in final.items() if _place(p.made) != _place(p.ours)}
        while (clash := next((p for p in moving.values() if self._holder(p.made, moving) is not None), None)) is not None:
            if self._makes_room(clash.made, moving.keys()):
                final = {k: p for k, p in final.items() if k in self.work.namespace.by_id}
            else:
                del moving[clash.ours.table_id]
                final[clash.ours.table_id] = replace(clash, made=_called(clash.made, clash.ours))
        for table_id in moving:
            self.work = replace(self.work, namespace=self.work.namespace.without_table(table_id))
        return list(final.values())

    def _holder(self, table: Table, moving: Container[int] = ()) -> Table | None:
        """Another table of ours that has the name, and keeps it."""
        other = self.work.namespace.find(table.schema_name, table.name)
        return None if other is None or other.table_id == table.table_id or other.table_id in moving else other

    def _apply(self, plan: Plan) -> None:
        made, ours, what = self._placed(plan.made), plan.ours, ""
        if made != ours:
            what = "redefined"
            self._redefine(made, ours, anew=plan.takes not in ("changes", "nothing"))
        if made.view is not None:
            self._tell(made, what)
        elif plan.takes == "changes":
            self._rows(plan, made, what)
        elif plan.takes == "nothing":
            self._keep(made, ours, what)
        else:
            self._overwrite(plan, made)

    def _keep(self, made: Table, ours: Table, what: str) -> None:
        """Ours keeps all its rows. It is noted as rows written anew, since its columns are not those of theirs from here on (Side.kinds)."""
        change = self.work.changes.change_of(made)
        self.work = replace(self.work, changes=self.work.changes.with_change(replace(change, kinds=change.kinds | {"rewrite"})))
        if made != ours:
            self._demand(ch.overlay(self.execution.view.state(ours), change), ours, _HERE)
        self._tell(made, what)

    def _redefine(self, made: Table, ours: Table, *, anew: bool) -> None:
        """`anew`: its rows are others too, written for that definition."""
        change = self.work.changes.change_of(ours)
        written: frozenset[ch.Kind] = frozenset({"schema"} if anew else ())
        kinds = redefinition.kind_of(self.execution, ours, made) | written
        changes = self.work.changes.with_change(replace(change, table=made, kinds=change.kinds | kinds))
        self.work = ch.Work(self.work.namespace.with_table(made), changes)

    def _overwrite(self, plan: Plan, made: Table) -> None:
        """All rows of theirs, and in the place of some what ours made of them."""
        change = ch.delete_all(self.work.changes.change_of(made), self.execution.view.state(plan.ours), "overwrite")
        is_same = plan.takes == "alike"
        put_back = self._take_whole(plan.theirs, change, "changed alike" if is_same else "overwritten", are_new=not is_same)
        if plan.takes == "all and ours":
            change, counts = self._merged(plan, made, self.work.changes.change_of(made), "ours", put_back)
            self.work = replace(self.work, changes=self.work.changes.with_change(change))
            self._tell(made, "with the rows that were changed here", merge_rows.Counts(0, 0, 0, counts.conflicts))
        if made != plan.theirs:
            self._demand(self.execution.state(self.work, made), plan.theirs, self._there)

    def _rows(self, plan: Plan, made: Table, what: str) -> None:
        change, counts = self._merged(plan, made, self.work.changes.change_of(made), "theirs")
        if change.kinds:
            self.work = replace(self.work, changes=self.work.changes.with_change(change))
        if made != plan.ours:
            self._demand(ch.overlay(self.execution.view.state(plan.ours), change), plan.ours, _HERE)
        self._tell(made, what, counts if any((counts.added, counts.updated, counts.deleted, counts.conflicts)) else None)

    @property
    def _there(self) -> str:
        return f"branch {self.sides.branch.name}"

    def _demand(self, state: TableState, before: Table, branch: str) -> None:
        self._is_broken(state.table, merge_demands.of_all(self.execution, state, before, branch))

    def _is_broken(self, table: Table, broken: Sequence[IntegrityError]) -> bool:
        """Notes what rows of a table break; whether they do."""
        for error in broken:
            merge_conflicts.of_demand(self.execution, table, str(error.args[0]))
            self._tell(table, str(error.args[0]), merge_rows.Counts(0, 0, 0, 1))
        self.broken += broken
        return bool(broken)

    def _merged(
        self, plan: Plan, made: Table, change: ch.TableChange, taking: merge_rows.Taking, put_back: Mapping[int, int] | None = None
    ) -> tuple[ch.TableChange, merge_rows.Counts]:
        """`change` with the rows of one side taken over to the other one. `put_back`: for each fragment of that one, the one that stands for it."""
        execution, table_id = self.execution, made.table_id
        sides = {"theirs": self.sides.head.state(plan.theirs), "ours": execution.view.state(plan.ours)}
        ids = merge_rows.candidates(execution, merge_sides.deltas(execution, self.sides.theirs if taking == "theirs" else self.sides.ours, table_id))
        if not len(ids):
            return change, merge_rows.Counts(0, 0, 0, 0)
        bases = [_state(base, table_id) for base in self.sides.bases]
        merge_rows.three_ways(execution, made, bases, sides["theirs"], sides["ours"], ids, rebuilt=plan.rebuilt, taking=taking)
        comes, onto = self._wins == (taking == "theirs"), sides["ours" if taking == "theirs" else "theirs"]
        is_met = merge_keys.meet(execution, made, onto, plan.rebuilt, taking)
        if is_met or merge_rows.counted(execution).conflicts:
            torn = merge_conflicts.of_rows(execution, made, taking, comes=comes)
            self.conflicts += [torn] if torn is not None else []
        counts, condition = merge_rows.counted(execution), merge_rows.taken(conflicts_too=comes)
        before, branch = (plan.theirs, self._there) if taking == "theirs" else (plan.ours, _HERE)
        if self._is_broken(made, merge_demands.of_taken(execution, made, condition, taking, before, branch)):
            return change, counts
        gone = merge_rows.replaced(execution, onto, condition)
        gone = gone if put_back is None else {put_back[k]: positions for k, positions in gone.items()}
        rows = merge_rows.new_versions(made, condition, _ROW_ID, taking)
        staged = execution.keep(made, fragments.write(execution.engine, execution.place(made), made, rows, {}, row_id=_ROW_ID))
        kind: ch.Kind = "append" if not gone else "update" if staged else "delete"
        change = ch.delete(change, gone, kind) if gone else change
        return (ch.append(change, staged, kind) if staged else change), counts


def _state(view: LakeView, table_id: int) -> TableState | None:
    table = view.namespace.by_id.get(table_id)
    return None if table is None else view.state(table)


def _place(table: Table) -> tuple[str, str]:
    return fold(table.schema_name), fold(table.name)


def _called(table: Table, like: Table) -> Table:
    return replace(table, schema_id=like.schema_id, schema_name=like.schema_name, name=like.name)


def _new_schemas(before: Namespace, now: Namespace) -> list[Schema]:
    known = {s.schema_id for s in before.schemas.values()}
    return [s for s in now.schemas.values() if s.schema_id not in known]
