"""RESTORE TABLE: a table becomes what it was at a version, as a new snapshot. No data is written: files get a second name.

For the resolver it is an overwrite that reads its table. Rows keep their ids. A fragment that is the same at both ends stays.
"""

from __future__ import annotations

from dataclasses import replace

from lakelite.contents import TableState
from lakelite.errors import Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.model import Table
from lakelite.storage import fragment as fragments
from lakelite.storage.fragment import Staged
from lakelite.transaction import changes as ch
from lakelite.transaction import versions
from lakelite.transaction.execution import Call, Done, Execution, find_table, no_such_table
from lakelite.transaction.view import LakeView


def restore_table(execution: Execution, work: ch.Work, operation: st.RestoreTable, call: Call) -> Done:
    """The rows and the columns of the version, with types, defaults, constraints, comments and partitioning; name and options stay those of now."""
    _, view = versions.lake_at(execution, operation.version, call)
    table = _current(work, view, operation, call)
    past = view.namespace.by_id.get(table.table_id)
    if past is None:
        raise _another(table, view, operation, call)
    then, now = versions.state_at(execution, view, past, operation.version, call), execution.state(work, table)
    kept = {k for k in then.fragments if k in now.fragments and _dead(then, k) == _dead(now, k)}
    back = {k: _put_back(execution, then, k) for k in then.fragments if k not in kept}
    change = _overwritten(work.changes.change_of(table), now, then, kept, back)
    restored = replace(table, columns=past.columns, constraints=past.constraints, comment=past.comment, partitioning=past.partitioning)
    if restored != table:
        change = replace(change, table=restored, kinds=change.kinds | {"schema"})
    changes = work.changes.with_reads(frozenset({table.table_id}), call.text).with_change(change)
    changes = replace(changes, defines=True)  # which columns come back, and what is replaced, is said by the head
    return Done(ch.Work(work.namespace.with_table(restored), changes))


def _overwritten(change: ch.TableChange, now: TableState, then: TableState, kept: set[int], back: dict[int, Staged]) -> ch.TableChange:
    """`change` with every row of now deleted that is not of a kept fragment, and the fragments of then staged."""
    gone = {k: now.alive(k) for k in now.fragments if k not in kept}
    dead = {staged.fragment.fragment_id: then.vectors[k].positions for k, staged in back.items() if k in then.vectors}
    staged = {s.fragment.fragment_id: s for s in back.values()}
    return ch.delete(replace(change, staged={**change.staged, **staged}), {**gone, **dead}, "overwrite")


def _put_back(execution: Execution, then: TableState, fragment_id: int) -> Staged:
    staged = fragments.put_back(execution.place(then.table), then.fragments[fragment_id], execution.catalog.inline_rows)
    execution.written.append(staged)
    return staged


def _dead(state: TableState, fragment_id: int) -> object:
    vector = state.vectors.get(fragment_id)
    return None if vector is None else vector.positions


# Which table.


def _current(work: ch.Work, view: LakeView, operation: st.RestoreTable, call: Call) -> Table:
    """The table of now; where only the version has it, the error says how it comes back."""
    target = operation.target
    table = work.namespace.find(target.schema, target.name)
    if table is not None:
        return find_table(work, target, call)
    error = no_such_table(work, target, call)
    dropped = view.namespace.find(target.schema, target.name)
    if dropped is not None:
        past = f"{dropped.qualified} AT (VERSION => {view.snapshot_id})"
        error.hint = f"it was dropped: SHOW CREATE TABLE {past} defines it again, INSERT INTO {dropped.qualified} FROM {past} takes its rows"
    raise error


def _another(table: Table, view: LakeView, operation: st.RestoreTable, call: Call) -> ProgrammingError:
    position = Position.at(call.text, operation.target.offset)
    if view.namespace.find(table.schema_name, table.name) is None:
        hint = f"DESCRIBE HISTORY {table.qualified} lists its versions"
        return ProgrammingError(f"table {table.qualified} was not there in version {view.snapshot_id}", hint=hint, position=position)
    message = f"the table {table.qualified} of version {view.snapshot_id} is another one: it was dropped, and made anew"
    hint = f"INSERT OVERWRITE {table.qualified} SELECT * FROM {table.qualified} AT (VERSION => {view.snapshot_id}) takes its rows"
    return ProgrammingError(message, hint=hint, position=position)
