"""MERGE INTO: which clause each row of the target and of the source meets, and what becomes of the rows.

    source   the rows of the source, read once
    pairs    the rows of the target with their partners in it; those without one follow from what is not in it
    rows     one for each row that a clause acts on: its address, the number of the clause, and the new values

Each of the three is a temporary table, which DuckDB can spill. Then deletions, updates (which keep their row ids) and inserts
are staged as those of any other statement. The names of each clause mean what they do in DuckDB's MERGE, which binds it first. The values
of a clause are evaluated for its own rows only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from lakelite.errors import IntegrityError, NotSupportedError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.model import ROW_ID_FIELD, Column, Fragment, Table, fold, quote
from lakelite.records import dataclass
from lakelite.storage import fragment as fragments
from lakelite.storage.relations import relation
from lakelite.storage.scan import Addressed
from lakelite.transaction import changes as ch
from lakelite.transaction import merge_target, returning
from lakelite.transaction.execution import Call, Done, Execution, find_table
from lakelite.transaction.match import TARGET, addresses, unqualified
from lakelite.transaction.merge_target import Source
from lakelite.transaction.source import Reads, execute, first_of_each, prepare, render, used_values

if TYPE_CHECKING:
    from pyroaring import BitMap

_SOURCE, _PAIRS, _ROWS = "temp._lake_merge_source", "temp._lake_merge_pairs", "temp._lake_merge_rows"
_ADDRESS = "_lake_s, _lake_p, _lake_r"
_KEPT_ROW_ID = quote("_lake_kept_row_id")
_SHOWN_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class _Frame:
    """The pieces of a MERGE over its target. `ctes`: the WITH in front; `target`, `source`: what their rows are called, quoted.

    `condition`: of the join, ON or USING. `source_columns`: their names; they and what `scan` reads are known once the source has been read.
    `merged`: columns of the target's that mean the source's where they stand alone.
    """

    execution: Execution
    work: ch.Work
    table: Table
    operation: st.Merge
    call: Call
    scan: Addressed
    ctes: str
    condition: str
    source_columns: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return quote(self.operation.alias or self.table.name)

    @property
    def source(self) -> str:
        return quote(self.operation.source_name.name)

    @property
    def partners(self) -> str:
        """The rows of the source beside those of the target. USING, here with no rows, is what makes a name alone mean the source's column."""
        rows, names = f"{_SOURCE} AS {self.source}", ", ".join(map(quote, self.merged))
        return f"({rows} LEFT JOIN (SELECT {names} FROM {_SOURCE} LIMIT 0) AS _lake_merged USING ({names}))" if names else rows

    def render(self, sql: st.Sql) -> str:
        """A piece of the user's, in which the target and the source have names without a schema."""
        text = render(self.execution, self.work, sql, self.call)
        text = text if self.operation.alias else unqualified(text, self.table.schema_name, self.table.name)
        for named in (self.operation.source_name, *self.operation.joined):
            text = text if named.schema is None else unqualified(text, named.schema, named.name)
        return text

    def create(self, name: str, query: str) -> None:
        self.execution.engine.run(
            f"CREATE OR REPLACE TEMP TABLE {name.removeprefix('temp.')} AS {self.ctes} {query}",
            used_values(f"{self.ctes} {query}", self.call.values),
        )

    def clauses(self, when: st.MergeWhen) -> list[tuple[int, st.MergeClause]]:
        """Those of one kind with their numbers."""
        return [(i, clause) for i, clause in enumerate(self.operation.clauses) if clause.when == when]

    def numbers(self, action: str) -> list[int]:
        """The numbers of the clauses with an action; one that no clause has, so that the list can stand in SQL."""
        return [i for i, clause in enumerate(self.operation.clauses) if clause.action == action] or [-1]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What becomes of the rows: positions by fragment id, new versions, and new rows. `count`: pairs of rows that were acted on."""

    deleted: Mapping[int, BitMap]
    updated: Mapping[int, BitMap]
    versions: tuple[fragments.Staged, ...]
    inserted: tuple[fragments.Staged, ...]
    count: int


def merge(execution: Execution, work: ch.Work, operation: st.Merge, call: Call) -> Done:
    """It counts as a read of its target and of its sources, and as the changes that it has clauses for, also where no row met them."""
    table = find_table(work, operation.target, call)
    frame = _frame(execution, work, table, operation, call)
    reads = _reads(frame)
    _bind(frame)
    with _temporary(frame):
        outcome = _outcome(_with_rows(frame))
    read = reads.tables | {table.table_id}
    changes = replace(work.changes.with_reads(read, call.text), blind=False)
    changes = replace(changes, external=changes.external or (call.text if reads.external else None))
    written = {"INSERT": outcome.inserted, "UPDATE": outcome.versions}
    returned = returning.of_merged(execution, work, execution.state(work, table), operation, call, written, outcome.deleted)
    done = Done(replace(work, changes=changes.with_change(_change(frame, changes, outcome))), outcome.count, tables=read)
    return replace(done, repeatable=not reads.external, returned=returned)


def _change(frame: _Frame, changes: ch.ChangeSet, outcome: _Outcome) -> ch.TableChange:
    actions = {clause.action for clause in frame.operation.clauses}
    change = changes.change_of(frame.table)
    if "delete" in actions:
        change = ch.delete(change, outcome.deleted, "delete")
    if "insert" in actions:
        change = ch.append(change, outcome.inserted, "append")
    if "update" in actions or not actions & {"insert", "delete"}:
        change = ch.append(ch.delete(change, outcome.updated, "update"), outcome.versions, "update")
    return change


def _frame(execution: Execution, work: ch.Work, table: Table, operation: st.Merge, call: Call) -> _Frame:
    scan = execution.engine.addressed(execution.state(work, table), ())
    ctes = render(execution, work, operation.ctes, call) if operation.ctes else ""
    frame = _Frame(execution, work, table, operation, call, scan, ctes, f"USING ({', '.join(map(quote, operation.using))})")
    return frame if operation.on is None else replace(frame, condition=f"ON ({frame.render(operation.on)}\n)")


def _scan(frame: _Frame, source: Source) -> Addressed:
    """The rows of the target that a clause can be about."""
    state, operation = frame.execution.state(frame.work, frame.table), frame.operation
    fragments: Iterable[Fragment] = state.fragments.values()
    if not frame.clauses("NOT MATCHED BY SOURCE"):
        on = operation.using if operation.on is None else frame.render(operation.on)
        fragments = merge_target.matched(frame.execution, state, operation.alias or frame.table.name, source, on)
    return frame.execution.engine.addressed(state, fragments)


def _reads(frame: _Frame) -> Reads:
    """The tables of the source and of subqueries; the target stands under another name there, so that it counts only if it is one of them."""
    operation = frame.operation
    clauses = [sql for clause in operation.clauses for sql in (clause.condition, *(clause.values or ())) if sql is not None]
    pieces = [f"({frame.render(sql)}\n)" for sql in (operation.on, *clauses) if sql is not None]
    source = render(frame.execution, frame.work, operation.source, frame.call)
    return prepare(frame.execution, frame.work, f"{frame.ctes} SELECT {', '.join(pieces) or '1'} FROM {TARGET} AS {frame.target}, {source}")


def _bind(frame: _Frame) -> None:
    """Lets DuckDB bind the statement as it is, on a table without rows: every error is in the user's own terms."""
    source = render(frame.execution, frame.work, frame.operation.source, frame.call)
    stage = frame.execution.engine.stage(replace(frame.table, columns=frame.table.visible))
    text = f"{frame.ctes} MERGE INTO {stage} AS {frame.target} USING {source} {frame.render(frame.operation.behind)}"
    execute(frame.execution.engine.work, f"EXPLAIN {text}", frame.call.values).fetchall()


@contextmanager
def _temporary(frame: _Frame) -> Iterator[None]:
    try:
        yield
    finally:
        for name in (_SOURCE, _PAIRS, _ROWS):
            frame.execution.engine.run(f"DROP TABLE IF EXISTS {name}")


# Which clause acts on which row.


def _with_rows(frame: _Frame) -> _Frame:
    """Makes the three tables. Returns the frame with the columns of the source."""
    source = _read_source(frame)
    columns = list(source.types)[: len(source.types) - len(frame.operation.joined)]
    frame = replace(frame, source_columns=tuple(columns), scan=_scan(frame, source), merged=_merged(frame, columns))
    targets = frame.table.columns
    kept = [f"_lake_scan._lake_{i}" for i in range(len(targets))] if frame.clauses("MATCHED") else []
    address = [f"_lake_scan.{name}" for name in _ADDRESS.split(", ")]
    pairs = ", ".join([*address, *kept, f"{frame.source}.rowid AS _lake_n"])
    frame.create(_PAIRS, f"SELECT {pairs} FROM {_named(frame, _scanned(frame))} JOIN {frame.partners} {frame.condition}")
    found = [part for part in (_matched(frame), _not_matched(frame), _not_matched_by_source(frame)) if part]
    values = ", ".join(f"_lake_new._lake_{i} AS _lake_{i}" for i in range(len(targets)))
    frame.create(_ROWS, f"SELECT {_ADDRESS}, _lake_new.n AS _lake_n, _lake_new.message AS _lake_message, {values} FROM ({' UNION ALL '.join(found)})")
    return frame


def _read_source(frame: _Frame) -> Source:
    """Makes the table of the source. Of a join without an alias it also has the rows of each of its tables, as a STRUCT called as the table is,
    so that table.column means what it does in the join."""
    operation = frame.operation
    source = render(frame.execution, frame.work, operation.source, frame.call)
    if operation.joined:
        _refuse_clash(frame, source)
    frame.create(_SOURCE, f"SELECT *{''.join(f', {quote(named.name)}' for named in operation.joined)} FROM {source}")
    found = merge_target.source_of(frame.execution, operation.source_name.name, _SOURCE)
    if "rowid" in map(fold, found.types):
        hint = "give it another name in a query: MERGE INTO t USING (SELECT rowid AS r, … FROM …) AS s"
        raise NotSupportedError('a column called "rowid" in the source of MERGE is not supported', hint=hint)
    return found


def _merged(frame: _Frame, columns: Iterable[str]) -> tuple[str, ...]:
    """Those that a JOIN … USING in the source means where they stand alone, though the target has them too."""
    operation = frame.operation
    source = render(frame.execution, frame.work, operation.source, frame.call)
    shared = {fold(c.name) for c in frame.table.visible}.intersection(map(fold, columns)).difference(map(fold, operation.using))
    return merge_target.merged(frame.execution, frame.ctes, source, shared, frame.call)


def _refuse_clash(frame: _Frame, source: str) -> None:
    """A table's name means a column of that name first."""
    rows = f"{frame.ctes} SELECT * FROM {source}"
    columns = set(map(fold, relation(frame.execution.engine.work, rows, used_values(rows, frame.call.values)).columns))
    for named in frame.operation.joined:
        if fold(named.name) in columns:
            message = f'a join as the source of MERGE that has both a table and a column called "{named.name}" is not supported'
            hint = f'give the join an alias: MERGE INTO t USING (… JOIN …) AS s, or the table "{named.name}" another one'
            raise NotSupportedError(message, hint=hint, position=Position.at(frame.call.text, named.offset))


def _scanned(frame: _Frame) -> str:
    """The target's rows as they are in `pairs`: addresses and columns under names of ours."""
    scan = frame.scan
    columns = "".join(f", {quote(c.name)} AS _lake_{i}" for i, c in enumerate(frame.table.columns))
    return f"(SELECT {scan.source} AS _lake_s, {scan.position} AS _lake_p, {scan.row_id} AS _lake_r{columns} FROM ({scan.sql}))"


def _named(frame: _Frame, rows: str) -> str:
    """`rows`, which have names of ours, and the same once more as the user names them: addresses are no columns of the target."""
    shown = ", ".join(f"_lake_scan._lake_{i} AS {quote(c.name)}" for i, c in enumerate(frame.table.columns) if not c.hidden)
    return f"({rows} AS _lake_scan CROSS JOIN LATERAL (SELECT {shown}) AS {frame.target})"


def _matched(frame: _Frame) -> str | None:
    join = frame.condition if frame.operation.using else f"ON {frame.source}.rowid = _lake_scan._lake_n"
    rows = f"{_named(frame, _PAIRS)} JOIN {frame.partners} {join} WHERE {frame.source}.rowid = _lake_scan._lake_n"
    return _acted_on(frame, "MATCHED", rows)


def _not_matched(frame: _Frame) -> str | None:
    rows = f"{_SOURCE} AS {frame.source} WHERE {frame.source}.rowid NOT IN (SELECT _lake_n FROM {_PAIRS})"
    return _acted_on(frame, "NOT MATCHED", rows)


def _not_matched_by_source(frame: _Frame) -> str | None:
    partner = "_lake_pair._lake_s = _lake_scan._lake_s AND _lake_pair._lake_p = _lake_scan._lake_p"
    return _acted_on(frame, "NOT MATCHED BY SOURCE", f"{_named(frame, _scanned(frame))} ANTI JOIN {_PAIRS} AS _lake_pair ON {partner}")


def _acted_on(frame: _Frame, when: st.MergeWhen, rows: str) -> str | None:
    """Of `rows`, those that one of the clauses acts on, the first whose condition they meet. None: there is no such clause."""
    cases = []
    for number, clause in frame.clauses(when):
        condition = "true" if clause.condition is None else f"({frame.render(clause.condition)}\n)"
        cases.append(f"WHEN {condition} THEN {_new(frame, number, clause)}")
    if not cases:
        return None
    of = "NULL::BIGINT AS " if when == "NOT MATCHED" else "_lake_scan."
    address = ", ".join(of + name for name in _ADDRESS.split(", "))
    return f"SELECT * FROM (SELECT {address}, CASE {' '.join(cases)} END AS _lake_new FROM {rows}) WHERE _lake_new IS NOT NULL"


def _new(frame: _Frame, number: int, clause: st.MergeClause) -> str:
    """What a clause makes of a row, as a struct; NULL: it leaves it alone."""
    if clause.action == "nothing":
        return "NULL"
    message = "NULL"
    written: dict[str, str] = {}
    if clause.action == "error":
        message = frame.render(clause.values[0]) if clause.values and clause.values[0] else "NULL"
    elif clause.action != "delete":
        written = _written(frame, clause)
    fields = [f"n: {number}", f"message: CAST(({message}\n) AS VARCHAR)"]
    for i, column in enumerate(frame.table.columns):
        otherwise = {"update": f"_lake_scan._lake_{i}", "insert": _default(column)}.get(clause.action, "NULL")
        fields.append(f"_lake_{i}: CAST(({written.get(fold(column.name), otherwise)}\n) AS {column.type})")
    return f"{{{', '.join(fields)}}}"


def _written(frame: _Frame, clause: st.MergeClause) -> dict[str, str]:
    """The values of an UPDATE or INSERT by the folded names of their columns."""
    columns = {fold(c.name): c for c in frame.table.visible}
    given = [f"{frame.source}.{quote(name)}" for name in frame.source_columns]
    if clause.values is not None:
        names = list(columns) if clause.columns is None else [fold(name) for name in clause.columns]
        given = [_default(columns[name]) if sql is None else frame.render(sql) for name, sql in zip(names, clause.values, strict=True)]
    elif clause.by_name:
        names = [fold(name) for name in frame.source_columns]
    else:
        names = list(columns)
    return dict(zip(names, given, strict=True))


def _default(column: Column) -> str:
    return column.default or "NULL"


# What becomes of the rows.


def _outcome(frame: _Frame) -> _Outcome:
    met = dict(frame.execution.engine.run(f"SELECT _lake_n, count(*) FROM {_ROWS} GROUP BY _lake_n"))
    counts = {a: sum(met.get(number, 0) for number in frame.numbers(a)) for a in ("update", "delete", "insert", "error")}
    if counts["error"]:
        _raise_error(frame)
    deleted = _positions(frame, "delete") if counts["delete"] else {}
    updated = _positions(frame, "update") if counts["update"] else {}
    rows = f"SELECT * FROM {_ROWS} WHERE {_is(frame, 'update')}"
    if counts["update"] > sum(map(len, updated.values())) or any(k in deleted and deleted[k] & p for k, p in updated.items()):
        _refuse_twice(frame)
        updated = {k: left for k, p in updated.items() if (left := p - deleted[k] if k in deleted else p)}
        rows = first_of_each(f"({rows} AND {_NOT_DELETED.format(_is(frame, 'delete'))})", "_lake_s, _lake_p")
    versions = _staged(frame, rows, keeps_ids=True) if updated else ()
    inserted = _staged(frame, f"SELECT * FROM {_ROWS} WHERE {_is(frame, 'insert')}", keeps_ids=False) if counts["insert"] else ()
    return _Outcome(deleted, updated, versions, inserted, sum(counts.values()))


_NOT_DELETED = f"(_lake_s, _lake_p) NOT IN (SELECT (_lake_s, _lake_p) FROM {_ROWS} WHERE {{}})"


def _is(frame: _Frame, action: str) -> str:
    return f"_lake_n IN ({', '.join(map(str, frame.numbers(action)))})"


def _positions(frame: _Frame, action: str) -> dict[int, BitMap]:
    scan = frame.scan
    rows = f"SELECT _lake_s AS {scan.source}, _lake_p AS {scan.position} FROM {_ROWS} WHERE {_is(frame, action)}"
    return addresses(frame.execution, rows, scan, {})


def _raise_error(frame: _Frame) -> NoReturn:
    """For the first row that a clause with ERROR acts on."""
    rows = f"SELECT _lake_n, _lake_message FROM {_ROWS} WHERE {_is(frame, 'error')} LIMIT 1"
    ((number, message),) = frame.execution.engine.run(rows)
    clause = frame.operation.clauses[number]
    text = f"Merge error condition WHEN {clause.when}" + (f": {message}" if message is not None else "")
    raise IntegrityError(
        text, hint="the statement itself refuses such rows, by ERROR; it changed nothing", position=Position.at(frame.call.text, clause.offset)
    )


def _refuse_twice(frame: _Frame) -> None:
    """Several partners may change a row alike, and one that is deleted is gone. Else it depends on their order, which nothing says."""
    values = [f"_lake_{i}" for i in range(len(frame.table.columns))]
    different = f"SELECT DISTINCT _lake_s, _lake_p, {', '.join(values)} FROM {_ROWS} WHERE {_is(frame, 'update')}"
    twice = f"SELECT _lake_s, _lake_p FROM ({different}) WHERE {_NOT_DELETED.format(_is(frame, 'delete'))} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
    for source, position in frame.execution.engine.run(twice):
        _raise_twice(frame, source, position)


def _raise_twice(frame: _Frame, source: int, position: int) -> NoReturn:
    columns = frame.table.visible[:_SHOWN_COLUMNS]
    shown = ", ".join(f"CAST({quote(c.name)} AS VARCHAR)" for c in columns)
    scan = frame.scan
    rows = frame.execution.engine.run(f"SELECT {shown} FROM ({scan.sql}) WHERE {scan.source} = {source} AND {scan.position} = {position}")
    row = ", ".join(f"{c.name} = {value}" for c, value in zip(columns, rows[0], strict=True))
    hint = "let each row of the target match one row of the source, for instance by a GROUP BY or DISTINCT ON in USING (SELECT …)"
    raise ProgrammingError(f"MERGE would update a row of {frame.table.qualified} in several ways: {row}", hint=hint)


def _staged(frame: _Frame, rows: str, *, keeps_ids: bool) -> tuple[fragments.Staged, ...]:
    """New versions with the row ids of the old ones, or new rows; inline where they are few."""
    execution, table = frame.execution, frame.table
    columns = [f"u._lake_{i} AS {quote(c.name)}" for i, c in enumerate(table.columns)]
    types = [(f"f{c.field_id}", c.stored.type) for c in table.columns]
    stored = [f"{fragments.stored_value(table, c, f'u._lake_{i}')} AS f{c.field_id}" for i, c in enumerate(table.columns)]
    source = f"({rows}) u"
    if keeps_ids:
        firsts = ", ".join(f"({number}, {f.first_row_id or 'NULL'})" for number, f in frame.scan.fragments.items())
        source = f"{source} JOIN (VALUES {firsts}) m(source, first) ON m.source = u._lake_s"
        row_id = "coalesce(u._lake_r, m.first + u._lake_p)::BIGINT"
        columns.append(f"{row_id} AS {_KEPT_ROW_ID}")
        stored.append(f"{row_id} AS f{ROW_ID_FIELD}")
        types.append((f"f{ROW_ID_FIELD}", "BIGINT"))
    few = execution.engine.held(f"SELECT {', '.join(stored)} FROM {source}", {}, types, execution.limits.inline_rows)
    if few is not None:
        return execution.keep(table, fragments.write_arrow(execution.engine, execution.place(table), table, few))
    query, kept = f"SELECT {', '.join(columns)} FROM {source}", _KEPT_ROW_ID if keeps_ids else None
    return execution.keep(table, fragments.write(execution.engine, execution.place(table), table, query, {}, row_id=kept))
