"""Statements that make, change and drop temporary tables and views: DuckDB runs them as they are, over tables of the connection's own.

Nothing of it is the lake's: no snapshot, no change of the transaction's. A statement gives the new `Temporaries` and leaves the old ones as
they were, as far as anybody can come back to them (`storage/temporary.py`). One that read tables of the lake has handed their rows out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelite.errors import NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.language.parse import around_target
from lakelite.language.tokens import lex
from lakelite.mapping.names import did_you_mean
from lakelite.mapping.sets import of_set
from lakelite.mapping.world_wording import HANDED_OVER
from lakelite.model import MAIN_SCHEMA, fold, quote
from lakelite.records import dataclass
from lakelite.storage.temporary import TEMP_SCHEMA, Temporaries, Temporary
from lakelite.transaction import adopt, source
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Call, Execution, missing_schema

_GENERATED = re.compile(r"\bGENERATED ALWAYS AS\(")
_OURS = re.compile(
    r"lake_(arrow|rows|target|handed_over|returning.*|sorted_rows|sorted_places|updated|first|free|before|after|internal.*|names|merge.*)"
)
_Changing = st.Insert | st.Update | st.Delete | st.Merge | st.Truncate | st.CopyFrom | st.Append
_Target = _Changing | st.AlterTable | st.TuneTable | st.RenameView | st.CommentOn | st.RestoreTable
Sets = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Changed:
    """What a statement did. `one`: what it made or changed, as it is now. `tables`: those of the lake that it read.

    Not `repeatable`: it also read what is the caller's. `columns`, `rows`: of its RETURNING.
    """

    temporaries: Temporaries
    one: Temporary | None = None
    rowcount: int = -1
    tables: frozenset[int] = frozenset()
    repeatable: bool = True
    columns: tuple[tuple[str, Any], ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()


def concerns(operation: st.Operation, temporaries: Temporaries) -> bool:
    """Whether a statement makes, changes or drops something temporary."""
    match operation:
        case st.CreateTable() | st.CreateTableAs() | st.CreateView():
            return operation.temporary
        case st.DropTable() | st.DropView():
            return any(_means_one(target, temporaries) for target in operation.targets)
        case st.CreateTableLike():
            return _means_one(operation.like, temporaries)
    return isinstance(operation, _Target) and _means_one(operation.target, temporaries)


def _means_one(name: st.Name, temporaries: Temporaries) -> bool:
    return temporaries.find(name.schema, name.name) is not None or (name.schema is not None and fold(name.schema) == TEMP_SCHEMA)


def run(execution: Execution, work: ch.Work, operation: st.Operation, call: Call, sets: Sets, *, keeps: bool) -> Changed:
    """Runs one; an error leaves all as it was. `sets`: the parameters, for each of which it runs.

    `keeps`: what it read has to stay as it was, where tables of the lake were read too.
    """
    match operation:
        case st.CreateTable() | st.CreateTableAs():
            return _create_table(execution, work, operation, call, keeps)
        case st.CreateView():
            return _create_view(execution, work, operation, call)
        case st.DropTable() | st.DropView():
            return _drop(execution, operation, call)
        case st.AlterTable():
            return _alter(execution, operation, call)
        case st.RenameView():
            return _rename_view(execution, operation, call)
        case st.CommentOn():
            return _comment(execution, operation, call)
        case _ if isinstance(operation, _Changing):
            return _change(execution, work, operation, call, sets, keeps)
        case st.CreateTableLike():
            raise NotSupportedError("CREATE TABLE … (LIKE a temporary table)", hint="use CREATE TABLE new AS FROM old WITH NO DATA")
        case st.TuneTable():
            raise NotSupportedError("options of a temporary table", hint="a temporary table has no files")
    raise NotSupportedError("RESTORE of a temporary table", hint="it has no versions")


# Made and dropped.


def _create_table(execution: Execution, work: ch.Work, operation: st.CreateTable | st.CreateTableAs, call: Call, keeps: bool) -> Changed:
    before, space = execution.temporaries, execution.engine.temporary
    existing = _taken(work, before, operation, call)
    if existing is not None and operation.if_not_exists:
        return Changed(before)
    reads, definition = source.Reads(), operation.body if isinstance(operation, st.CreateTable) else ""
    if isinstance(operation, st.CreateTableAs):
        text = source.render(execution, work, operation.query, call)
        reads = source.prepare(execution, work, text, once=True)
        names = f"({', '.join(map(quote, operation.columns))})" if operation.columns else ""
        definition = f"{names} AS {text}\n{'' if operation.with_data else 'WITH NO DATA'}"
    elif any(token.kind == "word" and token.word == "REFERENCES" for token in lex(definition)):
        raise NotSupportedError("a FOREIGN KEY of a temporary table", hint="leave it out")
    if keeps and reads.tables:
        space.freeze()
    made = Temporary(operation.target.name, definition, space.new_place())
    answer = source.execute(execution.engine.work, f"CREATE TABLE {made.qualified} {definition}", call.values).fetchall()
    if _GENERATED.search(space.statement(made)):
        raise NotSupportedError("generated columns are not supported yet", hint="compute the value in the INSERT, or in the query")
    count = int(answer[0][0]) if answer and isinstance(operation, st.CreateTableAs) else -1
    return Changed(before.with_one(made), made, count, reads.tables, not reads.external)


def _create_view(execution: Execution, work: ch.Work, operation: st.CreateView, call: Call) -> Changed:
    """DuckDB binds the query, so that what it refuses is refused now."""
    before = execution.temporaries
    existing = _taken(work, before, operation, call)
    if existing is not None and operation.if_not_exists:
        return Changed(before)
    if any(not isinstance(part, str) for part in operation.sql.parts):
        raise NotSupportedError("a temporary view of an earlier version", hint="use CREATE VIEW, or CREATE TEMP TABLE … AS")
    source.render(execution, work, operation.sql, call)
    listed = f" ({', '.join(map(quote, operation.names))})" if operation.names else ""
    after = before.with_one(made := Temporary(operation.target.name, operation.query, None, listed))
    source.prepare(replace(execution, temporaries=after), work, f"FROM {TEMP_SCHEMA}.{quote(made.name)}")
    return Changed(after, made)


def _taken(work: ch.Work, temporaries: Temporaries, operation: st.CreateTable | st.CreateTableAs | st.CreateView, call: Call) -> Temporary | None:
    """What has the name already, where the statement may go on with it; else the error."""
    target, position = operation.target, Position.at(call.text, operation.target.offset)
    if target.schema is not None and fold(target.schema) not in (MAIN_SCHEMA, TEMP_SCHEMA):
        if fold(target.schema) not in work.namespace.schemas:
            raise missing_schema(work, target.schema, target.offset, call)
        raise ProgrammingError("temporary tables and views are in no schema of the lake", hint="leave the schema out", position=position)
    if _OURS.fullmatch(fold(target.name)):
        raise ProgrammingError(f'the name "{target.name}" is reserved', hint="choose another name", position=position)
    existing = temporaries.find(None, target.name)
    if existing is None or operation.if_not_exists:
        return existing
    kind = "view" if isinstance(operation, st.CreateView) else "table"
    if not operation.or_replace:
        hint = f"DROP it first, or use CREATE OR REPLACE TEMP {kind.upper()}"
        raise ProgrammingError(f'temporary {existing.kind} "{existing.name}" already exists', hint=hint, position=position)
    if existing.kind != kind:
        message = f'"{existing.name}" is a temporary {existing.kind}: it cannot be replaced by a {kind}'
        raise ProgrammingError(message, hint=f"DROP {existing.kind.upper()} it first", position=position)
    return existing


def _drop(execution: Execution, operation: st.DropTable | st.DropView, call: Call) -> Changed:
    kind = "table" if isinstance(operation, st.DropTable) else "view"
    temporaries = execution.temporaries
    if not all(_means_one(name, temporaries) for name in operation.targets):
        raise NotSupportedError("DROP of what is temporary together with what is the lake's", hint="drop them one by one")
    for name in operation.targets:
        if operation.if_exists and temporaries.find(name.schema, name.name) is None:
            continue
        one = _find(temporaries, name, call)
        if one.kind != kind:
            hint = f"DROP {one.kind.upper()} drops it"
            raise ProgrammingError(f'"{one.name}" is a temporary {one.kind}', hint=hint, position=Position.at(call.text, name.offset))
        temporaries = temporaries.without(one)
    return Changed(temporaries)


def _find(temporaries: Temporaries, name: st.Name, call: Call, *, kind: str | None = None) -> Temporary:
    """What a name means; the error if that is nothing, or not of the `kind`."""
    position = Position.at(call.text, name.offset)
    one = temporaries.find(name.schema, name.name)
    if one is None:
        hint = did_you_mean(name.name, [known.name for known in temporaries.by_name.values()], "SHOW TABLES FROM temp lists them")
        raise ProgrammingError(f'temporary table "{name.name}" does not exist', hint=hint, position=position)
    if kind is not None and one.kind != kind:
        what = "it has no rows of its own" if one.is_view else "not a view"
        raise ProgrammingError(f'"{one.name}" is a temporary {one.kind}: {what}', hint="name another table or view", position=position)
    return one


# Changed.


def _alter(execution: Execution, operation: st.AlterTable, call: Call) -> Changed:
    before, space = execution.temporaries, execution.engine.temporary
    if operation.if_exists and before.find(operation.target.schema, operation.target.name) is None:
        return Changed(before)
    old = _find(before, operation.target, call, kind="table")
    if operation.what == "rename table" and operation.new_name is not None:
        _refuse_name(before, old, operation.new_name)
    table = space.to_change(old)
    execution.engine.run(f"ALTER TABLE {table.qualified} {operation.change}")
    name = operation.new_name if operation.what == "rename table" and operation.new_name is not None else table.name
    after = replace(table, name=name, text=f"{table.text} {operation.change}")
    return Changed(before.without(old).with_one(after), after)


def _rename_view(execution: Execution, operation: st.RenameView, call: Call) -> Changed:
    before = execution.temporaries
    if operation.if_exists and before.find(operation.target.schema, operation.target.name) is None:
        return Changed(before)
    old = _find(before, operation.target, call, kind="view")
    _refuse_name(before, old, operation.new_name)
    return Changed(before.without(old).with_one(replace(old, name=operation.new_name)))


def _refuse_name(temporaries: Temporaries, old: Temporary, name: str) -> None:
    existing = temporaries.find(None, name)
    if existing is not None and existing is not old:
        raise ProgrammingError(f'temporary {existing.kind} "{existing.name}" already exists', hint="DROP it first, or choose another name")
    if _OURS.fullmatch(fold(name)):
        raise ProgrammingError(f'the name "{name}" is reserved', hint="choose another name")


def _comment(execution: Execution, operation: st.CommentOn, call: Call) -> Changed:
    before, space = execution.temporaries, execution.engine.temporary
    old = _find(before, operation.target, call)
    if old.is_view:
        raise NotSupportedError("COMMENT ON a temporary view", hint="comments are for its columns' tables")
    table = space.to_change(old)
    what = f"TABLE {table.qualified}" if operation.column is None else f"COLUMN {table.qualified}.{quote(operation.column)}"
    execution.engine.run(f"COMMENT ON {what} IS {operation.comment}")
    return Changed(before.with_one(table), table)


def _change(execution: Execution, work: ch.Work, operation: _Changing, call: Call, sets: Sets, keeps: bool) -> Changed:
    """Rows in, out or changed: DuckDB's own statement, aimed at where the table is."""
    if isinstance(operation, st.Insert) and operation.overwrite:
        raise NotSupportedError("INSERT OVERWRITE of a temporary table", hint="use CREATE OR REPLACE TEMP TABLE … AS")
    if isinstance(operation, st.CopyFrom) and adopt.is_wanted(operation):
        raise NotSupportedError("ADOPT into a temporary table", hint="a temporary table has no files; use COPY without ADOPT")
    before, engine = execution.temporaries, execution.engine
    old = _find(before, operation.target, call, kind="table")
    reads, aim = _prepared(execution, work, operation, call, sets)
    if keeps and reads.tables:
        engine.temporary.freeze()
    table = engine.temporary.to_change(old)
    text = aim(table.qualified)
    after = before.with_one(table)
    if len(sets) > 1:
        return Changed(after, table, _run_all(execution, text, sets), reads.tables, not reads.external)
    cursor = source.execute(engine.work, text, sets[0])
    columns, rows = tuple((column[0], column[1]) for column in cursor.description or ()), cursor.fetchall()
    if getattr(operation, "returning", None) is not None:
        return Changed(after, table, len(rows), reads.tables, not reads.external, columns, rows)
    return Changed(after, table, int(rows[0][0]) if rows else -1, reads.tables, not reads.external)


def _prepared(execution: Execution, work: ch.Work, operation: _Changing, call: Call, sets: Sets) -> tuple[source.Reads, Callable[[str], str]]:
    """What a statement reads, made visible; and its text for a table that is called so and so."""
    if isinstance(operation, st.Append):
        execution.engine.temporary.show(execution.engine.work, execution.temporaries, (), (), described=False)
        execution.engine.frames.show({HANDED_OVER: operation.rows.scannable}, execution.engine.work)
        return source.Reads(external=True), lambda name: f"INSERT INTO {name} BY NAME SELECT * FROM {HANDED_OVER}"
    head, tail = (source.render(execution, work, part, call) for part in around_target(call.text, operation.target.offset, frozenset(sets[0])))
    reads = source.prepare(execution, work, _reading(execution, work, operation, call), once=len(sets) == 1)
    if isinstance(operation, st.CopyFrom):
        reads = replace(reads, external=True)
    return reads, lambda name: f"{head}{name}{tail}"


def _reading(execution: Execution, work: ch.Work, operation: _Changing, call: Call) -> str:
    """A query that names what a statement reads."""

    def shown(sql: st.Sql | None) -> str:
        return "" if sql is None else source.render(execution, work, sql, call)

    sources: st.Sql | None
    where: list[st.Sql | None] = []
    match operation:
        case st.Insert():
            return f"{shown(operation.ctes)} {shown(operation.source)}"  # DO UPDATE SET holds no subquery
        case st.Update():
            sources, where = operation.sources.sql if operation.sources else None, [*(a.value for a in operation.assignments), operation.where]
        case st.Delete():
            sources, where = operation.sources.sql if operation.sources else None, [operation.where]
        case st.Merge():
            sources = operation.source
            values = [value for clause in operation.clauses for value in clause.values or ()]
            where = [operation.on, *(clause.condition for clause in operation.clauses), *values]
        case _:
            return ""
    selected = "".join(f", ({shown(sql)}\n)" for sql in where if sql is not None)
    return f"{shown(operation.ctes)} SELECT 1{selected}" + (f" FROM {shown(sources)}" if sources is not None else "")


def _run_all(execution: Execution, text: str, sets: Sets) -> int:
    """Runs a statement for each parameter set: all of them, or none; the rows that they changed."""
    work = execution.engine.work
    work.execute("BEGIN").fetchall()
    try:
        count = 0
        for number, values in enumerate(sets, 1):
            with of_set(number, len(sets)):
                count += int(source.execute(work, text, values).fetchall()[0][0])
    except BaseException:
        work.execute("ROLLBACK").fetchall()
        raise
    work.execute("COMMIT").fetchall()
    return count
