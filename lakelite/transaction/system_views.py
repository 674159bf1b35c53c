"""Makes the system views of schema `lake` and DuckDB's metadata functions visible to a statement that names them.

Views of history show what the snapshots up to the transaction's base did; the others, and the metadata functions, show what the
transaction sees, its own uncommitted changes included. None of it is a read of the user's tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any

from lakelite.bounds import TABLE_OPTIONS
from lakelite.catalog.system import METADATA, OF_LAKE, VIEWS, SystemView
from lakelite.contents import TableState
from lakelite.errors import ProgrammingError
from lakelite.language.parse import mentions
from lakelite.language.tokens import lex
from lakelite.model import RESERVED_SCHEMA, Fragment, Table, quote
from lakelite.transaction import changes as ch
from lakelite.transaction import views
from lakelite.transaction.execution import Execution

_UNSEEN = re.compile(r"\bsystem\b", re.IGNORECASE)
_FUNCTION = re.compile(r"(?:duckdb|pragma)_\w+")


def prepare(execution: Execution, work: ch.Work, text: str) -> None:
    """Makes what `text` may name of it visible, for every cursor."""
    if OF_LAKE.search(text):
        words = mentions(text)
        if RESERVED_SCHEMA in words:
            execution.engine.need_schema(RESERVED_SCHEMA)
            for name in VIEWS.keys() & words:
                _show(execution, work, VIEWS[name])
    if METADATA.search(text):
        if _UNSEEN.search(text):
            _refuse_unseen(text)
        _show(execution, work, VIEWS["tables"])  # its row counts stand in duckdb_tables()
        _show(execution, work, VIEWS["views"])  # and texts in duckdb_views()
        system = {view.name: view.columns for view in VIEWS.values()}
        execution.engine.mirror.update(work.namespace, system, lambda: views.texts(execution, work.namespace))


def _refuse_unseen(text: str) -> None:
    """`system.main.duckdb_tables()` would show what is internal."""
    words = [token.word.lower() or text[token.start + 1 : token.end - 1].lower() for token in lex(text)]
    for place in (["system", "."], ["system", ".", "main", "."]):
        for index in range(len(words) - len(place)):
            function = words[index + len(place)]
            if words[index : index + len(place)] == place and _FUNCTION.fullmatch(function):
                raise ProgrammingError(f"{function}() is not called with a database", hint=f"write {function}() alone")


def _show(execution: Execution, work: ch.Work, view: SystemView) -> None:
    if view.name == "merge_conflicts":
        saved = execution.merge.conflicts
        nothing = ", ".join(f"NULL::{kind} AS {quote(name)}" for name, kind in view.columns)
        shown = ", ".join(quote(name) for name, _ in view.columns)
        execution.engine.loaded.show(view.name, f"SELECT {nothing} WHERE false" if saved is None else f"SELECT {shown} FROM ({saved.sql})")
        return
    _load(execution, work, view)
    tables = execution.engine.loaded
    columns = ", ".join(quote(name) for name, _ in view.columns)
    if view.is_history:
        tables.show(view.name, f"SELECT {columns} FROM {tables.table(view.name)} WHERE snapshot_id <= {execution.view.snapshot_id}")
    elif view.loaded == view.columns:
        tables.show(view.name, f"SELECT {columns} FROM {tables.table(view.name)}")
    else:
        _load(execution, work, VIEWS["tables"])
        names = f"(SELECT table_id, schema_name, table_name FROM {tables.table('tables')})"
        tables.show(view.name, f"SELECT {columns} FROM {tables.table(view.name)} JOIN {names} USING (table_id)")


def _load(execution: Execution, work: ch.Work, view: SystemView) -> None:
    load, catalog, base = execution.engine.loaded.load, execution.catalog, execution.view.snapshot_id
    if view.is_history:
        load(view.name, view.loaded, catalog.row("look_expired"), base, lambda after: catalog.rows(f"look_{view.name}", after=after, until=base))
    elif view.name == "settings":
        settings = execution.settings()
        load(view.name, view.loaded, tuple(settings), base, lambda _: settings)
    elif view.name in ("branches", "tags"):
        named = catalog.rows(f"look_{view.name}")
        load(view.name, view.loaded, tuple(named), base, lambda _: named)
    else:
        changed = _changed(execution, work)
        load(view.name, view.loaded, _stamp(execution, work, changed), base, lambda _: _ROWS[view.name](execution, work, changed))


def _changed(execution: Execution, work: ch.Work) -> dict[int, TableState]:
    """The tables that the transaction itself has changed, as it sees them."""
    tables = work.namespace.by_id
    return {i: execution.state(work, tables[i]) for i in work.changes.tables if i in tables}


def _stamp(execution: Execution, work: ch.Work, changed: dict[int, TableState]) -> Hashable:
    return execution.view.snapshot_id, work.namespace.stamp, execution.limits, frozenset(state.stamp for state in changed.values())


def _by_id(work: ch.Work) -> list[Table]:
    return sorted((t for t in work.namespace.tables.values() if t.view is None), key=lambda table: table.table_id)


def _table_rows(execution: Execution, work: ch.Work, changed: dict[int, TableState]) -> list[tuple[Any, ...]]:
    counts = {row[0]: row[1:] for row in execution.catalog.rows("look_tables", snapshot=execution.view.snapshot_id)}
    for table_id, state in changed.items():
        size = sum(f.size_bytes for f in state.fragments.values())
        counts[table_id] = (state.row_count, len(state.fragments), state.deleted_count, size)
    return [(t.table_id, t.schema_name, t.name, *counts.get(t.table_id, (0, 0, 0, 0)), t.comment) for t in _by_id(work)]


def _view_rows(execution: Execution, work: ch.Work, changed: dict[int, TableState]) -> list[tuple[Any, ...]]:
    found = sorted(work.namespace.views, key=lambda view: view.table_id)
    return [(v.table_id, v.schema_name, v.name, views.statement(v), v.comment) for v in found]


def _column_rows(execution: Execution, work: ch.Work, changed: dict[int, TableState]) -> list[tuple[Any, ...]]:
    return [
        (t.table_id, t.schema_name, t.name, c.name, index, c.type, int(c.nullable), c.default, c.field_id, c.comment)
        for t in _by_id(work)
        for index, c in enumerate(t.columns, start=1)
    ]


def _option_rows(execution: Execution, work: ch.Work, changed: dict[int, TableState]) -> list[tuple[Any, ...]]:
    """Each limit that a table can have of its own: the one in force, and what it would be without."""
    defaults = {name: str(getattr(execution.limits, name)) for name in TABLE_OPTIONS}
    return [
        (t.table_id, t.schema_name, t.name, name, own.get(name, default), default, int(name in own))
        for t, own in ((t, dict(t.options)) for t in _by_id(work))
        for name, default in defaults.items()
    ]


def _fragment_rows(execution: Execution, work: ch.Work, changed: dict[int, TableState]) -> list[tuple[Any, ...]]:
    """Those that the transaction has written itself have negative ids until it commits."""

    def rows(*, of_changed: bool) -> list[tuple[Any, ...]]:
        ids = json.dumps(list(changed))
        return execution.catalog.rows("look_fragments", snapshot=execution.view.snapshot_id, changed=ids, of_changed=of_changed)

    born = {row[0]: row[6] for row in rows(of_changed=True)} if changed else {}
    return rows(of_changed=False) + [
        _fragment_row(fragment, state, born.get(fragment.fragment_id)) for state in changed.values() for fragment in state.fragments.values()
    ]


def _fragment_row(fragment: Fragment, state: TableState, born: int | None) -> tuple[Any, ...]:
    path = fragment.path and f"data/{fragment.table_id}/{fragment.path}"
    vector = state.vectors.get(fragment.fragment_id)
    deleted = vector.cardinality if vector else 0
    return (
        fragment.fragment_id,
        fragment.storage,
        path,
        fragment.row_count,
        deleted,
        fragment.size_bytes,
        born,
        fragment.table_id,
        _partition(fragment, state.table),
    )


def _partition(fragment: Fragment, table: Table) -> str | None:
    """What its rows share, as the query look_fragments words it."""
    names = {c.field_id: c.name for c in table.columns}
    return ", ".join(f"{k.shown(names[k.field_id])} = {'NULL' if v is None else v}" for k, v in fragment.partition if k.field_id in names) or None


_ROWS = {"tables": _table_rows, "views": _view_rows, "columns": _column_rows, "table_options": _option_rows, "fragments": _fragment_rows}
