"""What RETURNING gives: the user's list over the rows that a change wrote, or deleted.

The list is bound by DuckDB as what it is, behind an UPDATE of an empty copy of the table, which gives the names and types of its columns
and every error. It is evaluated with the statement, whose outcome an error of it undoes, and kept (`storage/saved.py`), since it is
handed out only when nothing can change it any more, and may have to be compared with what it would be on a newer head (`compare.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelite import deletion
from lakelite.contents import TableState
from lakelite.language import statements as st
from lakelite.language.tokens import lex, unquote
from lakelite.model import Table, fold, literal, quote
from lakelite.storage import arrays
from lakelite.storage.engine import Engine
from lakelite.storage.fragment import Staged
from lakelite.storage.saved import Columns, SavedRows
from lakelite.storage.types import decode
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.match import of_target
from lakelite.transaction.source import render

if TYPE_CHECKING:
    import pyarrow as pa
    from pyroaring import BitMap

_HERE = "lake_returning"
_ACTION = "merge_action"


def of_new_rows(
    execution: Execution, work: ch.Work, table: Table, operation: st.Insert | st.Update, call: Call, new: Sequence[Staged]
) -> SavedRows | None:
    """What the RETURNING of a statement gives of the rows that it wrote; None: it has none."""
    if operation.returning is None:
        return None
    with _rows_of(execution.engine, table, new) as rows:
        return _saved(execution, work, table, operation, call, rows)


def of_deleted_rows(
    execution: Execution, work: ch.Work, state: TableState, operation: st.Delete, call: Call, positions: Mapping[int, BitMap]
) -> SavedRows | None:
    """What the RETURNING of a DELETE gives of the rows of `state` at `positions`; None: it has none."""
    if operation.returning is None:
        return None
    with _rows_at(execution.engine, state, positions) as rows:
        return _saved(execution, work, state.table, operation, call, rows)


def of_written(execution: Execution, before: ch.Work, after: ch.Work, table: Table, operation: st.Insert, call: Call) -> SavedRows | None:
    """What the RETURNING of a statement gives of the rows that it wrote and left there, in however many fragments; None: it has none."""
    if operation.returning is None:
        return None
    old, new = (work.changes.tables.get(table.table_id) for work in (before, after))
    written = (new.staged.keys() if new is not None else frozenset()) - (old.staged.keys() if old is not None else frozenset())
    state = execution.state(after, table)
    there = {k: state.fragments[k] for k in written if k in state.fragments}
    vectors = {k: v for k, v in state.vectors.items() if k in there}
    rows = execution.engine.relation(TableState(table, there, vectors, state.staged_rows))
    return _saved(execution, before, table, operation, call, rows)


def of_merged(
    execution: Execution, work: ch.Work, state: TableState, operation: st.Merge, call: Call,
    written: Mapping[str, Sequence[Staged]], deleted: Mapping[int, BitMap],
) -> SavedRows | None:  # fmt: skip
    """What the RETURNING of a MERGE gives of the rows that it wrote, by action, and of those of `state` that it deleted; None: it has none.

    `merge_action` in the list is the action.
    """
    if operation.returning is None:
        return None
    table, alias = state.table, operation.alias
    wanted = of_target(render(execution, work, operation.returning, call), table, alias)
    name = quote(alias or table.name)
    with ExitStack() as stack:
        parts = {action: stack.enter_context(_rows_of(execution.engine, table, new, action)) for action, new in written.items() if new}
        if deleted:
            parts["DELETE"] = stack.enter_context(_rows_at(execution.engine, state, deleted))
        nothing = {} if parts else {"": f"SELECT * FROM {execution.engine.stage(table)} WHERE false"}
        selects = [_select(table, name, _with_action(wanted, action), rows) for action, rows in (parts or nothing).items()]
        return execution.engine.shelf.save(execution.engine.work, " UNION ALL ".join(selects), {}, _merged_columns(execution, table, name, wanted))


def _with_action(wanted: str, action: str) -> str:
    """The list with the action in place of `merge_action`."""
    kept, place = "", 0
    tokens = lex(wanted)
    for before, token in zip([None, *tokens], tokens, strict=False):
        is_one = token.kind in ("word", "quoted") and fold(unquote(wanted[token.start : token.end])) == _ACTION
        if is_one and (before is None or before.word != "."):
            kept, place = f"{kept}{wanted[place : token.start]}CAST({literal(action)} AS VARCHAR)", token.end
    return kept + wanted[place:]


def _merged_columns(execution: Execution, table: Table, name: str, wanted: str) -> Columns:
    stage = execution.engine.stage(replace(table, columns=table.visible))
    nothing = f"MERGE INTO {stage} AS {name} USING (SELECT 1 WHERE false) AS lake_nothing ON false WHEN MATCHED THEN DELETE"
    return execution.engine.columns_of(f"{nothing}\nRETURNING {wanted}")


def _saved(execution: Execution, work: ch.Work, table: Table, operation: st.Insert | st.Delete | st.Update, call: Call, rows: str) -> SavedRows:
    assert operation.returning is not None
    wanted = of_target(render(execution, work, operation.returning, call), table, operation.alias)
    name = quote(operation.alias or table.name)
    select = _select(table, name, wanted, rows)
    return execution.engine.shelf.save(execution.engine.work, select, {}, _columns(execution, table, name, wanted))


def _select(table: Table, name: str, wanted: str, rows: str) -> str:
    shown = ", ".join(quote(c.name) for c in table.visible)
    return f"SELECT {wanted}\n FROM (SELECT {shown} FROM ({rows})) AS {name}"


def _columns(execution: Execution, table: Table, name: str, wanted: str) -> Columns:
    """The names and types of what RETURNING gives; DuckDB's error where it cannot be bound."""
    stage = execution.engine.stage(replace(table, columns=table.visible))
    return execution.engine.columns_of(f"UPDATE {stage} AS {name} SET {quote(table.visible[0].name)} = NULL WHERE false\nRETURNING {wanted}")


@contextmanager
def _rows_of(engine: Engine, table: Table, new: Sequence[Staged], part: str = "") -> Iterator[str]:
    """A SELECT of the rows of staged fragments; within the block. Few rows are taken as they are, which spares the cache."""
    ipc = next((s.ipc for s in new), None)  # inline rows are in one fragment
    if ipc is None:
        yield engine.relation(TableState(table, {s.fragment.fragment_id: s.fragment for s in new}, {}))
        return
    import pyarrow as pa

    columns = (f"{decode(f'f{c.field_id}::{c.stored.type}', c.type)} AS {quote(c.name)}" for c in table.visible)
    with _registered(engine, pa.ipc.open_stream(ipc).read_all(), f"{_HERE}{part.lower()}") as here:
        yield f"SELECT {', '.join(columns)} FROM {here}"


@contextmanager
def _rows_at(engine: Engine, state: TableState, positions: Mapping[int, BitMap]) -> Iterator[str]:
    """A SELECT of the rows at some positions, by fragment id; within the block. Joined with them, DuckDB reads no more than their row groups."""
    fragments = {k: state.fragments[k] for k in positions}
    scan = engine.addressed(TableState(state.table, fragments, {}, state.staged_rows), fragments.values())
    numbers = {fragment.fragment_id: source for source, fragment in scan.fragments.items()}
    with _registered(engine, _as_arrow(positions, numbers), _HERE) as here:
        yield f"SELECT p.* FROM ({scan.sql}) p JOIN {here} d ON d.source = p.{scan.source} AND d.position = p.{scan.position}"


@contextmanager
def _registered(engine: Engine, rows: pa.Table, name: str) -> Iterator[str]:
    """Within the block the rows have the name, which is given."""
    engine.work.register(name, rows)
    try:
        yield name
    finally:
        engine.work.unregister(name)


def _as_arrow(positions: Mapping[int, BitMap], numbers: Mapping[int, int]) -> pa.Table:
    """Positions as the number of their source in a scan and their place there."""
    import numpy as np

    places = [deletion.to_array(some) for some in positions.values()]
    nothing = np.zeros(0, dtype=np.int64)
    sources = np.repeat([numbers[k] for k in positions], [len(a) for a in places]) if places else nothing
    return arrays.table({"source": sources.astype(np.int64), "position": np.concatenate([nothing, *places]).astype(np.int64)})
