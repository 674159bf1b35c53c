"""Views made, dropped and renamed, comments, and tables made LIKE others: definitions that leave the rows alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lakelite.errors import NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import MAIN_SCHEMA, Table, View, fold
from lakelite.storage.engine import names_database
from lakelite.transaction import changes as ch
from lakelite.transaction import define, redefinition, source, tuning, views
from lakelite.transaction.execution import Call, Done, Execution, find_relation, find_table
from lakelite.transaction.key_lookup import key_names

# Views.


def create_view(execution: Execution, work: ch.Work, operation: st.CreateView, call: Call) -> Done:
    """DuckDB binds the query, so that what it refuses is refused now; a view that reads itself as well."""
    existing = define.taken_by(execution, work, operation, call)
    if existing is not None and operation.if_not_exists:
        return Done(define.defined(work, conditional=True))
    if existing is not None and existing.view is None:
        raise _another_kind(existing, call, operation.target, "it cannot be replaced by a view", "DROP TABLE it first, or choose another name")
    source.render(execution, work, operation.sql, call)
    if names_database(operation.query):
        raise NotSupportedError("a view that names the database is not supported", hint="write schema.table, or the table alone")
    view = View(operation.query, operation.names)
    made = _new(execution, work, operation.target, view) if existing is None else replace(existing, view=view, comment=None)
    new = _with(work, made, "create" if existing is None else "schema")
    read = _bind(execution, new, made)
    elsewhere = fold(made.schema_name) != MAIN_SCHEMA  # a table that comes into that schema takes the place of one of main in the query
    return Done(define.defined(replace(new, changes=_found(new.changes, read)), conditional=elsewhere))


def _new(execution: Execution, work: ch.Work, target: st.Name, view: View) -> Table:
    schema = work.namespace.schemas[fold(target.schema or MAIN_SCHEMA)]
    return Table(execution.reserve("table", 1), schema.schema_id, schema.name, target.name, (), view=view)


def _bind(execution: Execution, work: ch.Work, view: Table) -> list[int]:
    """Has DuckDB make the view; the tables and views that it reads."""
    assert view.view is not None
    hidden = views.found_in(execution, work.namespace, view.view.query).temporary
    if hidden:
        raise NotSupportedError(f"a view of the lake that reads the temporary {hidden[0].kind} {hidden[0].name}", hint="use CREATE TEMP VIEW")
    found = views.found_within(execution, work.namespace, view)
    shown = found.views.pop(view.table_id)
    source.prepare_found(execution, work, found, shown.text)
    execution.engine.show_view(view, shown.text, work.namespace.stamp, run=True)
    return [*found.tables, *found.views]


def drop_view(execution: Execution, work: ch.Work, operation: st.DropView, call: Call) -> Done:
    for name in operation.targets:
        if operation.if_exists and work.namespace.find(name.schema, name.name) is None:
            work = define.defined(work, conditional=True)
            continue
        work = define.without(work, _find_view(work, name, call, "DROP TABLE drops it"))
    return Done(define.defined(work))


def rename_view(execution: Execution, work: ch.Work, operation: st.RenameView, call: Call) -> Done:
    if operation.if_exists and work.namespace.find(operation.target.schema, operation.target.name) is None:
        return Done(define.defined(work, conditional=True))
    view = _find_view(work, operation.target, call, "ALTER TABLE … RENAME TO renames it")
    if fold(operation.new_name) != fold(view.name):
        target = st.Name(view.schema_name, operation.new_name, call.text.rfind(operation.new_name))
        define.taken_by(execution, work, st.CreateView(target, False, False, (), "", st.Sql((), (), 0)), call)
    return Done(define.defined(_redefined(execution, work, view, replace(view, name=operation.new_name))))


def _find_view(work: ch.Work, name: st.Name, call: Call, hint: str) -> Table:
    found = find_relation(work, name, call, kind="view")
    if found.view is None:
        raise _another_kind(found, call, name, "not a view", hint)
    return found


def _another_kind(found: Table, call: Call, name: st.Name, what: str, hint: str) -> ProgrammingError:
    kind = "table" if found.view is None else "view"
    return ProgrammingError(f'"{found.qualified}" is a {kind}: {what}', hint=hint, position=Position.at(call.text, name.offset))


# Comments.


def comment_on(execution: Execution, work: ch.Work, operation: st.CommentOn, call: Call) -> Done:
    old = find_relation(work, operation.target, call)
    comment = execution.engine.do(f"SELECT {operation.comment}")[0][0]
    if operation.column is None:
        new = replace(old, comment=comment)
    else:
        new = _commented(execution, work, old, operation, operation.column, comment, call)
    return Done(define.defined(_redefined(execution, work, old, new)))


def _commented(execution: Execution, work: ch.Work, table: Table, operation: st.CommentOn, column: str, comment: str | None, call: Call) -> Table:
    shown = table if table.view is None else views.described(execution, work, table)
    names = [c.name for c in shown.columns]
    if fold(column) not in map(fold, names):
        kind, hint = "table" if table.view is None else "view", did_you_mean(column, names, f"its columns are: {listed(names)}")
        raise ProgrammingError(f'{kind} {table.qualified} has no column "{column}"', hint=hint, position=Position.at(call.text, operation.offset))
    if table.view is None:
        return replace(table, columns=tuple(replace(c, comment=comment) if fold(c.name) == fold(column) else c for c in table.columns))
    others = tuple(pair for pair in table.view.comments if fold(pair[0]) != fold(column))
    return replace(table, view=replace(table.view, comments=others if comment is None else (*others, (column, comment))))


def _redefined(execution: Execution, work: ch.Work, old: Table, new: Table) -> ch.Work:
    if new == old:
        return replace(work, changes=_found(work.changes, [old.table_id]))
    return _with(work, new, *redefinition.kind_of(execution, old, new))


# Tables like others.


def create_table_like(execution: Execution, work: ch.Work, operation: st.CreateTableLike, call: Call) -> Done:
    existing = define.taken_by(execution, work, operation, call)
    if existing is not None and operation.if_not_exists:
        return Done(define.defined(work, conditional=True))
    like = find_table(work, operation.like, call)
    columns = [(c.name, c.type, c.nullable, c.default if operation.whole else None) for c in like.visible]
    kept = like.constraints if operation.whole else ()
    constraints: list[define.ConstraintText] = [
        (c.kind, c.expression, [name for name, _ in c.columns] if c.expression else key_names(like, c)) for c in kept
    ]
    described = define.Described(columns, constraints)
    tune = (tuning.of(like), call) if operation.whole else None
    new, table = define.put(execution, work, operation.target, existing, described, names=[c.name for c in kept], tune=tune)
    if operation.whole:
        comments = {c.name: c.comment for c in like.visible}
        commented = tuple(replace(c, comment=comments[c.name]) for c in table.columns)
        new = _with(new, replace(table, columns=commented, comment=like.comment))
    return Done(replace(new, changes=_found(new.changes, [like.table_id])))


def _with(work: ch.Work, table: Table, *kinds: ch.Kind) -> ch.Work:
    change = work.changes.change_of(table)
    made = "create" in kinds or change.created
    change = replace(change, table=table, created=made, kinds=change.kinds | set(kinds))
    return ch.Work(work.namespace.with_table(table), work.changes.with_change(change))


def _found(changes: ch.ChangeSet, table_ids: Iterable[int]) -> ch.ChangeSet:
    """The statement counts on these definitions: where somebody changes one, it runs again."""
    return replace(changes, found=changes.found | frozenset(table_ids))
