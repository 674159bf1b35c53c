"""Whether rows that were handed out would come out the same on the head (resolver.md, rung 4 and the promise of each level).

The query runs twice: where it stood, and on the head behind the statements that stood before it. The rows are compared as
multisets, in order where the query orders them. What cannot be repeated counts as different. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import duckdb

from lakelite.contents import TableState
from lakelite.errors import Error
from lakelite.language import statements as st
from lakelite.language.analyse import is_ordered, is_volatile, keeps_any_rows
from lakelite.storage.engine import Engine
from lakelite.storage.saved import SavedRows
from lakelite.storage.widening import is_widening
from lakelite.transaction import changes as ch
from lakelite.transaction import row_ids, source, temporary
from lakelite.transaction.execution import Execution
from lakelite.transaction.record import Looked

_BEFORE, _AFTER = "temp.lake_before", "temp.lake_after"


def comes_out_the_same(looked: Looked, execution: Execution, work: ch.Work, *, blind_apart: bool) -> bool:
    """Whether the query gives the same rows in `work` on the view of `execution`; `blind_apart`: or without the rows that blind appends added."""
    texts = (looked.call.text, *execution.texts_within(looked.tables))
    if not looked.repeatable or any(is_volatile(text) or keeps_any_rows(text) for text in texts):
        return False
    execution = replace(execution, temporaries=looked.temporaries)
    try:
        _keep(replace(execution, view=looked.view, pinned=[], _overlays={}), looked.work, looked, _BEFORE)
        now = replace(execution, pinned=[], _overlays={})
        if _gives(now, work, looked):
            return True
        return blind_apart and _gives(without_blind(now, looked.view.snapshot_id), work, looked)
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, Error):
        return False
    finally:
        execution.engine.run(f"DROP TABLE IF EXISTS {_BEFORE}; DROP TABLE IF EXISTS {_AFTER}")


def without_blind(execution: Execution, base: int) -> Execution:
    """`execution` that shows tables as if no blind append had landed since snapshot `base`."""
    return replace(execution, shown_as=partial(_without_blind, execution, base), _overlays={})


def _without_blind(execution: Execution, base: int, state: TableState) -> TableState:
    ranges = execution.catalog.blind_births(state.table.table_id, base, execution.view.snapshot_id)
    return row_ids.without(execution, state, ranges) if ranges else state


def gives_the_same(engine: Engine, before: SavedRows, after: SavedRows) -> bool:
    """Whether what a statement returned is what it returns now."""
    kinds = [[kind for _, kind in rows.columns] for rows in (before, after)]
    return _same_types(*kinds) and _same_rows(engine, before.bare, after.bare)


def _gives(execution: Execution, work: ch.Work, looked: Looked) -> bool:
    """Whether it gives the rows that are kept in _BEFORE."""
    engine = execution.engine
    _keep(execution, work, looked, _AFTER)
    kinds = [[row[1] for row in engine.run(f"DESCRIBE {name}")] for name in (_BEFORE, _AFTER)]
    place = "rowid, " if is_ordered(looked.call.text) else ""
    return _same_types(*kinds) and _same_rows(engine, *(f"SELECT {place}* FROM {name}" for name in (_BEFORE, _AFTER)))


def _same_rows(engine: Engine, before: str, after: str) -> bool:
    """Whether two SELECTs give the same rows, in any order."""
    more = "SELECT count(*) FROM (({}) EXCEPT ALL ({}))"
    differing = engine.run(f"SELECT ({more.format(before, after)}) + ({more.format(after, before)})")
    return int(differing[0][0]) == 0


def _same_types(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the columns are of the types that they had; wider ones give the same values."""
    return len(before) == len(after) and all(map(is_widening, before, after))


def _keep(execution: Execution, work: ch.Work, looked: Looked, name: str) -> None:
    """Runs the query and keeps its rows as a temporary table; of a statement that changed a temporary table, what that holds then."""
    try:
        if looked.sets:
            _keep_changed(execution, work, looked, name)
            return
        assert isinstance(looked.operation, st.Query | st.CopyTo)
        sql = looked.operation.sql if isinstance(looked.operation, st.Query) else looked.operation.reads
        text = source.render(execution, work, sql, looked.call)
        source.prepare(execution, work, text)
        source.execute(execution.engine.work, f"CREATE OR REPLACE TEMP TABLE {name} AS {text}\n", looked.call.values).fetchall()
    finally:
        while execution.pinned:  # emptied: the next run may be of the same execution
            execution.lease.unpin(execution.pinned.pop())


def _keep_changed(execution: Execution, work: ch.Work, looked: Looked, name: str) -> None:
    done = temporary.run(execution, work, looked.operation, looked.call, looked.sets, keeps=True)
    assert done.one is not None, "what read the lake has changed a table"
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT *, {done.rowcount} FROM {done.one.qualified}")
