"""Views: what a text reads through them, how DuckDB is shown them, and what they were at an older version.

A view is the text of its query. Names in it are bound whenever it is used, by DuckDB, in which a view of the same name stands for it; so
what it reads counts as read by whoever uses it. Where its query fails, the error names the view. Its past is that of its query, and of
what that reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial

import duckdb

from lakelite.catalog.system import METADATA
from lakelite.contents import Namespace
from lakelite.errors import Error, NotSupportedError, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.parse import parse_view
from lakelite.language.tokens import shown_name
from lakelite.mapping.engine_errors import engine_error
from lakelite.model import MAIN_SCHEMA, Column, Field, Table, fold, quote
from lakelite.records import dataclass
from lakelite.storage.temporary import Temporary
from lakelite.transaction import changes as ch
from lakelite.transaction import row_changes, versions
from lakelite.transaction.execution import Call, Execution, find_relation
from lakelite.transaction.named import Named, named_in
from lakelite.transaction.pruning import pruned
from lakelite.transaction.versions import Version
from lakelite.transaction.view import LakeView


@dataclass(frozen=True, slots=True)
class Shown:
    """A view, the text that DuckDB runs for it, and what that names itself. Not `needed`: it may only look as if it were read."""

    view: Table
    text: str
    named: Named
    needed: bool


@dataclass(slots=True)
class Found:
    """What a text reads, through views too. `views`, `temporary`: each behind those that it reads itself. `others`, `external` as in Named."""

    tables: dict[int, Table] = field(default_factory=dict)
    views: dict[int, Shown] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    external: bool = False
    temporary: list[Temporary] = field(default_factory=list)


def statement(view: Table) -> str:
    """The statement that makes a view like this one."""
    assert view.view is not None
    schema = "" if view.schema_name == MAIN_SCHEMA else f"{shown_name(view.schema_name)}."
    names = f" ({', '.join(map(shown_name, view.view.names))})" if view.view.names else ""
    return f"CREATE VIEW {schema}{shown_name(view.name)}{names} AS {view.view.query};"


# What is read.


def found_in(execution: Execution, namespace: Namespace, text: str) -> Found:
    """What `text` reads. ProgrammingError: a view of it would read itself."""
    named = named_in(execution.engine, namespace, text, temporaries=execution.temporaries)
    found = Found(others=named.others)
    _add(execution, namespace, found, named, ())
    return found


def found_within(execution: Execution, namespace: Namespace, view: Table) -> Found:
    """What a view reads, with itself as the last one."""
    found = Found()
    _add_view(execution, namespace, found, view, (), needed=True)
    return found


def _add(execution: Execution, namespace: Namespace, found: Found, named: Named, inside: tuple[int, ...], *, needed: bool = True) -> None:
    found.external = found.external or named.external
    for one in named.temporary:
        _add_temporary(execution, namespace, found, one, inside)
    for table_id, relation in named.relations.items():
        is_certain = table_id in named.certain
        if relation.view is None:
            found.tables[relation.table_id] = relation
        elif table_id not in inside:
            _add_view(execution, namespace, found, relation, inside, needed=needed and is_certain)
        elif is_certain:
            hint = "in a view, a name without a schema means what is in the view's own schema first: write main.name for one of main"
            raise ProgrammingError(f"view {relation.qualified} reads itself", hint=hint)


def _add_temporary(execution: Execution, namespace: Namespace, found: Found, one: Temporary, inside: tuple[int, ...]) -> None:
    if one in found.temporary:
        return
    if one.is_view:
        others = execution.temporaries.without(one)  # DuckDB refuses a view that reads itself
        named = named_in(execution.engine, namespace, one.text, temporaries=others)
        within = Found()
        _add(execution, namespace, within, named, inside)
        for table_id in (*within.tables, *within.views):
            execution.views_read[table_id] = execution.views_read.get(table_id, frozenset()) | {one.text}
        _add(execution, namespace, found, named, inside)
    found.temporary.append(one)


def all_temporary(execution: Execution, work: ch.Work) -> list[Temporary]:
    """What is temporary, each view behind what it reads, and that is visible; without views whose query fails."""
    found = Found()
    for one in execution.temporaries.by_name.values():
        _add_temporary(execution, work.namespace, found, one, ())
    show(execution, work, found)
    return found.temporary


def _add_view(execution: Execution, namespace: Namespace, found: Found, view: Table, inside: tuple[int, ...], *, needed: bool) -> None:
    if view.table_id in found.views and (found.views[view.table_id].needed or not needed):
        return
    text = text_of(execution, view)
    named = named_in(execution.engine, namespace, text, view.schema_name, execution.temporaries, of_lake=True)
    _add(execution, namespace, found, named, (*inside, view.table_id), needed=needed)
    found.views[view.table_id] = Shown(view, text, named, needed)


def text_of(execution: Execution, view: Table) -> str:
    """The query of a view as DuckDB runs it: history that it reads is the name of a view of that."""
    assert view.view is not None
    sql = parse_view(view.view.query)
    try:
        return "".join(part if isinstance(part, str) else filled(execution, part, Call(view.view.query, {})) for part in sql.parts)
    except Error as error:
        raise type(error)(f"view {view.qualified} cannot be read: {error.message}", hint=error.hint) from error


# Showing them to DuckDB.


def show(execution: Execution, work: ch.Work, found: Found, query: Call | None = None) -> None:
    """Makes the names of what was found mean what the transaction sees. ProgrammingError: the query of a view fails by now.

    `query`: what will run, and nothing else: it need not see more of a table than it can find rows in.
    """
    execution.engine.show_only(work.namespace.tables.keys())
    for table in found.tables.values():
        state = execution.state(work, table)
        execution.engine.show(state if query is None or found.views else pruned(state, query.text, query.values))
    for one in found.views.values():
        assert one.view.view is not None
        execution.views_read[one.view.table_id] = execution.views_read.get(one.view.table_id, frozenset()) | {one.view.view.query}
        try:
            execution.engine.show_view(one.view, one.text, work.namespace.stamp)
        except duckdb.Error as error:
            if one.needed:
                raise _broken(one.view, error) from error
            execution.engine.hide(one.view)


def _broken(view: Table, error: duckdb.Error) -> ProgrammingError:
    ours = engine_error(error, "")
    hint = f"SHOW CREATE VIEW {view.qualified} tells its query, CREATE OR REPLACE VIEW gives it another one"
    return ProgrammingError(f"view {view.qualified} cannot be read: {ours.message}", hint=hint)


def described(execution: Execution, work: ch.Work, view: Table) -> Table:
    """The view as a table with the columns that it has now."""
    show(execution, work, found_within(execution, work.namespace, view))
    return _with_columns(execution, view, f"memory.{quote(view.schema_name)}.{quote(view.name)}")


def _with_columns(execution: Execution, view: Table, name: str) -> Table:
    assert view.view is not None
    rows = execution.engine.do(f"DESCRIBE {name}")
    comments = {fold(column): comment for column, comment in view.view.comments}
    return replace(view, columns=tuple(Column(r[0], r[1], Field(0, r[0], r[1]), comment=comments.get(fold(r[0]))) for r in rows))


def texts(execution: Execution, namespace: Namespace) -> list[tuple[Table, str | None]]:
    """Every view, each behind those that it reads, with the text that DuckDB runs; None where there is none: its query fails."""
    found = Found()
    broken: list[Table] = []
    for view in namespace.views:
        try:
            _add_view(execution, namespace, found, view, (), needed=True)
        except Error:
            broken.append(view)
    return [(one.view, one.text) for one in found.views.values()] + [(view, None) for view in broken]


def sound(execution: Execution, work: ch.Work) -> list[Table]:
    """The views whose query does not fail now, with the columns that they have, each behind those that it reads."""
    found: list[Table] = []
    for view, _ in texts(execution, work.namespace):
        try:
            found.append(described(execution, work, view))
        except Error:
            continue
    return found


# History.


def reads_history(view: Table) -> bool:
    """Whether the query of a view names versions of this lake."""
    assert view.view is not None
    return any(not isinstance(part, str) for part in parse_view(view.view.query).parts)


def filled(execution: Execution, hole: st.Hole, call: Call) -> str:
    """The name of the DuckDB view that a hole stands for."""
    if isinstance(hole, st.TableChanges):
        return row_changes.table_name(execution, hole, call)
    return past(execution, hole, call)[0]


def past(execution: Execution, travel: st.TimeTravel, call: Call) -> tuple[str, Table]:
    """A DuckDB view that shows what a time travel clause names as it was then, and the table or view that this is."""
    hiding = execution.temporaries.find(travel.table.schema, travel.table.name)
    if hiding is not None:
        hint = f"it hides the {hiding.kind} of the lake that is called the same, if there is one: DROP or rename it first"
        raise ProgrammingError(f'"{hiding.name}" is a temporary {hiding.kind}: it has no versions', hint=hint)
    version, lake = versions.lake_at(execution, travel, call)
    relation = find_relation(ch.Work(lake.namespace, ch.ChangeSet()), travel.table, call, version.number)
    if relation.view is None:
        name = execution.engine.show_version(versions.state_at(execution, lake, relation, travel, call), version.number)
        versions.remember_read(execution, version, name, (relation.table_id,))
        return name, relation
    found = found_within(execution, lake.namespace, relation)
    for table in found.tables.values():
        execution.engine.show_version(versions.state_at(execution, lake, table, travel, call), version.number)
    names = [_past_view(execution, version, lake, one) for one in found.views.values()]
    versions.remember_read(execution, version, names[-1], (*found.tables, *found.views))
    if found.external:
        execution.past_external.add(names[-1])
    return names[-1], relation


def described_at(execution: Execution, travel: st.TimeTravel, call: Call) -> Table:
    """The table of a time travel clause; of a view, as a table with the columns that it had."""
    name, relation = past(execution, travel, call)
    return relation if relation.view is None else _with_columns(execution, relation, name)


def _past_view(execution: Execution, version: Version, lake: LakeView, one: Shown) -> str:
    view = one.view
    assert view.view is not None
    if METADATA.search(one.text) or one.named.system:
        raise NotSupportedError(f"a past version of view {view.qualified}, which reads system views,", hint="they show the lake as it is now")
    label, stamp = str(version.number), lake.namespace.stamp
    for other in _from_main(lake.namespace, one):  # DuckDB would look for it in the database of now
        known = execution.engine.past.name(label, other.schema_name, other.name)
        execution.engine.past.view(label, view.schema_name, other.name, stamp, partial(str, f"SELECT * FROM {known}"))
    text = f"SELECT * FROM ({one.text}\n) AS q{view.view.listed}" if view.view.names else one.text
    try:
        return execution.engine.past.view(label, view.schema_name, view.name, stamp, partial(str, text))
    except duckdb.Error as error:
        raise _broken(view, error) from error


def _from_main(namespace: Namespace, one: Shown) -> Sequence[Table]:
    """What the query of a view in another schema may find in `main`, by a name without a schema."""
    schema = one.view.schema_name
    if fold(schema) == MAIN_SCHEMA:
        return ()
    return [r for r in one.named.relations.values() if fold(r.schema_name) == MAIN_SCHEMA and namespace.find(schema, r.name) is None]
