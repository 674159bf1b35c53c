"""What a statement can name, for the words of its error. Asks DuckDB only once there is an error."""

from __future__ import annotations

from functools import partial

import duckdb

from lakelite.catalog.system import VIEWS
from lakelite.contents import Namespace
from lakelite.mapping.names import Names
from lakelite.model import RESERVED_SCHEMA
from lakelite.storage.engine import Engine
from lakelite.storage.temporary import Temporaries

_KNOWN = {
    "function": "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name ~ '^[a-z]'",
    "type": "SELECT DISTINCT type_name FROM duckdb_types() WHERE type_name ~ '^[a-z]'",
}


def nameable(engine: Engine, namespace: Namespace, temporaries: Temporaries) -> Names:
    """The tables, views, schemas, functions and types that a statement can name, and the caller's variables."""
    tables = {f"{RESERVED_SCHEMA}.{name}": tuple(column for column, _ in view.columns) for name, view in VIEWS.items()}
    tables |= {t.qualified: tuple(c.name for c in t.columns) for t in namespace.tables.values() if t.view is None}
    tables |= {v.qualified: tuple(engine.columns_of_view(v)) for v in namespace.views}
    tables |= {t.name: tuple(row[0] for row in engine.temporary.columns(t)) for t in temporaries.by_name.values() if not t.is_view}
    views = [v.name for v in namespace.views] + [t.name for t in temporaries.by_name.values() if t.is_view]
    return Names(tables, [s.name for s in namespace.schemas.values()], partial(_known, engine), engine.frames.described, views, engine.frames.near)


def _known(engine: Engine, kind: str) -> list[str]:
    """DuckDB's functions or types; none where it cannot say: another error is being told, which matters more."""
    try:
        return [name for (name,) in engine.do(_KNOWN[kind])]
    except duckdb.Error:
        return []
