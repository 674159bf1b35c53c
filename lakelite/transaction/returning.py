"""What RETURNING gives: the user's list over the rows that a change wrote, or deleted.

The list is bound by DuckDB as what it is, behind an UPDATE of an empty copy of the table, which gives the names and types of its columns
and every error. It is evaluated with the statement, whose outcome an error of it undoes, and kept (`storage/saved.py`), since it is
handed out only when nothing can change it any more, and may have to be compared with what it would be on a newer head (`compare.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelite import deletion
from lakelite.contents import TableState
from lakelite.language import statements as st
from lakelite.model import Table, quote
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


def of_new_rows(
    execution: Execution, work: ch.Work, table: Table, operation: st.Insert | st.Update, call: Call, new: Staged | None
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


def _saved(execution: Execution, work: ch.Work, table: Table, operation: st.Insert | st.Delete | st.Update, call: Call, rows: str) -> SavedRows:
    assert operation.returning is not None
    alias = operation.alias
    wanted = of_target(render(execution, work, operation.returning, call), table, alias)
    name = quote(alias or table.name)
    shown = ", ".join(quote(c.name) for c in table.visible)
    select = f"SELECT {wanted}\n FROM (SELECT {shown} FROM ({rows})) AS {name}"
    return execution.engine.shelf.save(execution.engine.work, select, {}, _columns(execution, table, name, wanted))


def _columns(execution: Execution, table: Table, name: str, wanted: str) -> Columns:
    """The names and types of what RETURNING gives; DuckDB's error where it cannot be bound."""
    stage = execution.engine.stage(replace(table, columns=table.visible))
    return execution.engine.columns_of(f"UPDATE {stage} AS {name} SET {quote(table.visible[0].name)} = NULL WHERE false\nRETURNING {wanted}")


@contextmanager
def _rows_of(engine: Engine, table: Table, new: Staged | None) -> Iterator[str]:
    """A SELECT of the rows of a staged fragment; within the block. Few rows are taken as they are, which spares the cache."""
    if new is None or new.ipc is None:
        yield engine.relation(TableState(table, {} if new is None else {new.fragment.fragment_id: new.fragment}, {}))
        return
    import pyarrow as pa

    columns = (f"{decode(f'f{c.field_id}::{c.stored.type}', c.type)} AS {quote(c.name)}" for c in table.visible)
    with _registered(engine, pa.ipc.open_stream(new.ipc).read_all()):
        yield f"SELECT {', '.join(columns)} FROM {_HERE}"


@contextmanager
def _rows_at(engine: Engine, state: TableState, positions: Mapping[int, BitMap]) -> Iterator[str]:
    """A SELECT of the rows at some positions, by fragment id; within the block. Joined with them, DuckDB reads no more than their row groups."""
    fragments = {k: state.fragments[k] for k in positions}
    scan = engine.addressed(TableState(state.table, fragments, {}, state.staged_rows), fragments.values())
    numbers = {fragment.fragment_id: source for source, fragment in scan.fragments.items()}
    with _registered(engine, _as_arrow(positions, numbers)):
        yield f"SELECT p.* FROM ({scan.sql}) p JOIN {_HERE} d ON d.source = p.{scan.source} AND d.position = p.{scan.position}"


@contextmanager
def _registered(engine: Engine, rows: pa.Table) -> Iterator[None]:
    """Within the block `_HERE` is the name of these rows."""
    engine.work.register(_HERE, rows)
    try:
        yield
    finally:
        engine.work.unregister(_HERE)


def _as_arrow(positions: Mapping[int, BitMap], numbers: Mapping[int, int]) -> pa.Table:
    """Positions as the number of their source in a scan and their place there."""
    import numpy as np
    import pyarrow as pa

    arrays = [deletion.to_array(some) for some in positions.values()]
    nothing = np.zeros(0, dtype=np.int64)
    sources = np.repeat([numbers[k] for k in positions], [len(a) for a in arrays]) if arrays else nothing
    return pa.table({"source": pa.array(sources, pa.int64()), "position": pa.array(np.concatenate([nothing, *arrays]), pa.int64())})
