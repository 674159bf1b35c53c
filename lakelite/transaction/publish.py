"""Writing a commit into the catalog: one snapshot row and everything that belongs to it.

Runs inside one catalog transaction, under the commit lock. Asserts what must hold: a replaced deletion vector is the live
one, and a table's live rows are those of the head plus what was added minus what was removed. Decides nothing.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakelite import composition, deletion
from lakelite.catalog.decoding import OF_TABLE
from lakelite.catalog.store import Writer
from lakelite.composition import Composition
from lakelite.contents import Clutter, TableState
from lakelite.errors import InternalError
from lakelite.model import Column, Field, Table
from lakelite.records import dataclass
from lakelite.storage.fragment import Staged
from lakelite.transaction.changes import ChangeSet, TableChange
from lakelite.transaction.resolve import Resolution

_DATA_KINDS = frozenset({"append", "delete", "update", "overwrite", "supersede"})
_NOTHING = Clutter(0, 0, 0, 0)
_DESCRIBING = ("end_view", "end_comments", "end_options", "end_partition_keys")


@dataclass(frozen=True, slots=True)
class Record:
    """Who and what: the part of a snapshot that is not its content. `now_us`: the time of the commit."""

    transaction_id: str
    base_snapshot_id: int
    attempts: int
    author: str | None
    message: str | None
    operation: str
    statements: tuple[str, ...]
    isolation: str
    now_us: int
    branch_id: int


@dataclass(frozen=True, slots=True)
class Published:
    """`fragments`: per table, the real id of each staged fragment. `clutter`: what upkeep goes by, before the commit and now."""

    snapshot_id: int
    fragments: Mapping[int, Mapping[int, int]]
    clutter: Mapping[int, tuple[Clutter, Clutter]]


def publish(
    writer: Writer, record: Record, changes: ChangeSet, heads: Mapping[int, TableState], head: int, ledger: Iterable[Resolution]
) -> Published:
    """Writes the snapshot behind `head`. `heads`: the head's state of every table that `changes` touches and did not create."""
    snapshot = writer.reserve("snapshot", 1)
    writer.run(
        "add_snapshot", snapshot=snapshot, parent=head, merged=changes.merged, branch=record.branch_id, now_us=record.now_us,
        author=record.author, message=record.message, operation=record.operation, statements=json.dumps(record.statements),
        isolation=record.isolation, base=record.base_snapshot_id,
        attempts=record.attempts, transaction_id=record.transaction_id, blind=int(changes.blind and changes.writes),
    )  # fmt: skip
    if changes.merged is not None:  # what was chosen for this merge has been used, or is out of date
        writer.run("forget_merge_choices", ours=record.branch_id, merged=changes.merged)
    _schemas(writer, snapshot, changes)
    fragments: dict[int, Mapping[int, int]] = {}
    clutter: dict[int, tuple[Clutter, Clutter]] = {}
    for table_id, change in changes.tables.items():
        if not (change.created and change.dropped):
            was_read = table_id in changes.reads or table_id in changes.shown
            fragments[table_id], clutter[table_id] = _table(writer, snapshot, change, heads.get(table_id), was_read=was_read)
    for schema_id in changes.schemas_dropped:
        _one(writer.run("end_schema", snapshot=snapshot, schema_id=schema_id), f"schema {schema_id}")
    for table_id in changes.reads.keys() | changes.shown.keys():
        writer.run("add_read", snapshot=snapshot, table_id=table_id)
    writer.run_many(
        "add_resolution",
        (
            {
                "snapshot": snapshot, "winner": line.winner_snapshot_id, "table_id": line.table_id, "rung": line.rung,
                "row_count": line.row_count, "explanation": line.explanation,
            }
            for line in ledger
        ),
    )  # fmt: skip
    return Published(snapshot, fragments, clutter)


def _schemas(writer: Writer, snapshot: int, changes: ChangeSet) -> None:
    for schema in changes.schemas_created.values():
        writer.run("add_schema", schema_id=schema.schema_id, name=schema.name)
        writer.run("add_schema_life", schema_id=schema.schema_id, snapshot=snapshot)
    created_or_dropped = any({"create", "drop", "rename"} & c.kinds for c in changes.tables.values())
    if changes.schemas_created or changes.schemas_dropped or created_or_dropped:
        writer.run("add_effect", snapshot=snapshot, table_id=None, kinds="namespace", rows_added=0, rows_removed=0)


def _table(
    writer: Writer, snapshot: int, change: TableChange, head: TableState | None, *, was_read: bool
) -> tuple[Mapping[int, int], tuple[Clutter, Clutter]]:
    """Writes the change of one table; `head` is None where it neither deletes nor is based on a table."""
    table = change.table
    if change.created:
        writer.run("add_table", table_id=table.table_id)
        writer.run("add_table_life", table_id=table.table_id, snapshot=snapshot)
        writer.run("add_table_name", table_id=table.table_id, schema_id=table.schema_id, name=table.name, snapshot=snapshot)
        _add_columns(writer, snapshot, table)
        _describe(writer, snapshot, table)
    elif change.dropped:
        _drop(writer, snapshot, table.table_id)
        return {}, (_NOTHING, _NOTHING)
    elif change.redefines:
        for query in ("end_columns", "end_constraints"):
            writer.run(query, table_id=table.table_id, snapshot=snapshot)
        _add_columns(writer, snapshot, table)
        for query in _DESCRIBING:
            writer.run(query, snapshot=snapshot, table_id=table.table_id)
        _describe(writer, snapshot, table)
        if "rename" in change.kinds:
            writer.run("end_table_name", table_id=table.table_id, snapshot=snapshot)
            writer.run("add_table_name", table_id=table.table_id, schema_id=table.schema_id, name=table.name, snapshot=snapshot)
    before, clutter_before = (head.row_count, head.clutter) if head is not None else _live_rows(writer, table, snapshot)
    removed = _delete(writer, snapshot, change, head) if head is not None else 0
    ids = _append(writer, snapshot, change)
    after, clutter = _live_rows(writer, table, snapshot)
    if after != before + change.rows_added - removed:
        what = f"{before} + {change.rows_added} - {removed} were expected"
        raise InternalError(f"{table.qualified} would hold {after} rows; {what}; nothing was committed")
    _effect(writer, snapshot, change, removed, was_read=was_read)
    return ids, (clutter_before, clutter)


def _live_rows(writer: Writer, table: Table, snapshot: int) -> tuple[int, Clutter]:
    """The live rows that the catalog counts for a table, and what upkeep goes by."""
    physical, deleted, inline, rows, files = writer.row("row_counts", table_id=table.table_id, snapshot=snapshot)
    return physical - deleted, Clutter(inline, rows, files, deleted)


def _add_columns(writer: Writer, snapshot: int, table: Table) -> None:
    positions = itertools.count()

    def add(field: Field, parent: int | None, column: Column | None) -> None:
        writer.run(
            "add_column", table_id=table.table_id, field_id=field.field_id, parent=parent, position=next(positions), name=field.name,
            declared_type=column.type if column else None, stored_type=field.type, nullable=int(column.nullable if column else True),
            default_sql=column.default if column else None, initial=field.initial, snapshot=snapshot,
        )  # fmt: skip
        for child in field.children:
            add(child, field.field_id, None)

    for column in table.columns:
        add(column.stored, None, column)
    for position, constraint in enumerate(table.constraints):
        writer.run(
            "add_constraint", table_id=table.table_id, position=position, kind=constraint.kind, name=constraint.name,
            expression=constraint.expression, columns=json.dumps(constraint.columns), snapshot=snapshot,
        )  # fmt: skip


def _describe(writer: Writer, snapshot: int, table: Table) -> None:
    """The query of a view, comments, options and partitioning."""
    if table.view is not None:
        names, comments = json.dumps(table.view.names), json.dumps(table.view.comments)
        writer.run("add_view", table_id=table.table_id, text=table.view.query, names=names, comments=comments, snapshot=snapshot)
    commented = [(OF_TABLE, table.comment), *((column.field_id, column.comment) for column in table.columns)]
    for field_id, comment in commented:
        if comment is not None:
            writer.run("add_comment", table_id=table.table_id, field_id=field_id, comment=comment, snapshot=snapshot)
    for name, value in table.options:
        writer.run("add_option", table_id=table.table_id, name=name, value=value, snapshot=snapshot)
    for position, key in enumerate(table.partitioning):
        writer.run(
            "add_partition_key", table_id=table.table_id, position=position, field_id=key.field_id, transform=key.transform,
            buckets=key.buckets, snapshot=snapshot,
        )  # fmt: skip


def _drop(writer: Writer, snapshot: int, table_id: int) -> None:
    _one(writer.run("end_table", snapshot=snapshot, table_id=table_id), f"table {table_id}")
    for query in ("end_table_name", "end_columns", "end_constraints", *_DESCRIBING, "end_table_fragments", "end_table_vectors"):
        writer.run(query, snapshot=snapshot, table_id=table_id)
    writer.run("add_effect", snapshot=snapshot, table_id=table_id, kinds="drop", rows_added=0, rows_removed=0)


def _delete(writer: Writer, snapshot: int, change: TableChange, head: TableState) -> int:
    """Adds the newly deleted positions to the head's vectors; returns how many rows that removed (those already gone do not count)."""
    removed = 0
    for fragment_id, positions in change.deleted.items():
        fragment = head.fragments.get(fragment_id)
        if fragment is None or not positions:  # a winner emptied the fragment: its rows are gone, ours among them
            continue
        old = head.vectors.get(fragment_id)
        new = deletion.union(old, positions, fragment.row_count)
        gained = new.cardinality - (old.cardinality if old else 0)
        if gained == 0:
            continue
        removed += gained
        if old is not None:
            _one(writer.run("end_vector", snapshot=snapshot, fragment_id=fragment_id, born=old.born), f"deletion vector of fragment {fragment_id}")
        if new.cardinality == fragment.row_count:
            _one(writer.run("end_fragment", snapshot=snapshot, fragment_id=fragment_id), f"fragment {fragment_id}")
        else:
            _add_vector(writer, snapshot, change.table.table_id, fragment_id, new)
    return removed


def _add_vector(writer: Writer, snapshot: int, table_id: int, fragment_id: int, vector: deletion.DeletionVector) -> None:
    encoded = deletion.encode(vector)
    writer.run(
        "add_vector", fragment_id=fragment_id, table_id=table_id, bits=encoded.bits, cardinality=encoded.cardinality,
        row_count=encoded.row_count, crc32=encoded.crc32, snapshot=snapshot,
    )  # fmt: skip


def _append(writer: Writer, snapshot: int, change: TableChange) -> dict[int, int]:
    ids: dict[int, int] = {}
    for staged in change.live_staged():
        staged_id = staged.fragment.fragment_id
        ids[staged_id] = _add_fragment(writer, snapshot, staged)
        dead = change.staged_deleted.get(staged_id)
        if dead:
            _add_vector(writer, snapshot, change.table.table_id, ids[staged_id], deletion.DeletionVector(dead, staged.fragment.row_count))
        if staged_id in change.made:
            _add_composition(writer, ids[staged_id], change.made[staged_id], staged.fragment.row_count)
    return ids


def _add_composition(writer: Writer, output: int, made: Composition, row_count: int) -> None:
    composition.check(made, row_count)
    for run in made.runs:
        writer.run(
            "add_run", output=output, source=run.source_fragment_id, source_order=run.source_order, output_start=run.output_start,
            live_count=run.live_count, physical_count=run.physical_count, vector_born=run.vector_born, ordered=int(made.permutation is None),
        )  # fmt: skip
    if made.permutation is not None:
        writer.run("add_row_map", output=output, positions=made.row_map)


def _add_fragment(writer: Writer, snapshot: int, staged: Staged) -> int:
    fragment = staged.fragment
    fragment_id = writer.reserve("fragment", 1)
    writer.run(
        "add_fragment", fragment_id=fragment_id, table_id=fragment.table_id, storage=fragment.storage,
        path=Path(fragment.path).name if fragment.path is not None else None, row_count=fragment.row_count, size_bytes=fragment.size_bytes,
        sha256=fragment.sha256, first_row_id=fragment.first_row_id or writer.reserve("row", fragment.row_count),
        has_row_ids=int(fragment.has_row_ids), snapshot=snapshot,
    )  # fmt: skip
    writer.run("add_fragment_life", fragment_id=fragment_id, table_id=fragment.table_id, snapshot=snapshot)
    if staged.ipc is not None:
        writer.run("add_inline_rows", fragment_id=fragment_id, ipc=staged.ipc)
    writer.run_many(
        "add_adopted_column",
        (
            {"table_id": fragment.table_id, "fragment_id": fragment_id, "field_id": c.field_id, "name": c.name, "value": c.value, "type": c.type}
            for c in fragment.columns
        ),
    )
    writer.run_many(
        "add_statistics",
        (
            {
                "fragment_id": fragment_id, "field_id": s.field_id, "minimum": s.minimum, "maximum": s.maximum,
                "null_count": s.null_count, "exact": int(s.exact), "may_hold_nan": int(s.may_hold_nan),
            }
            for s in fragment.statistics
        ),
    )  # fmt: skip
    for position, (key, value) in enumerate(fragment.partition):
        writer.run(
            "add_partition_value", fragment_id=fragment_id, position=position, field_id=key.field_id, transform=key.transform,
            buckets=key.buckets, value=value,
        )  # fmt: skip
    return fragment_id


def _effect(writer: Writer, snapshot: int, change: TableChange, removed: int, *, was_read: bool) -> None:
    """What happened to the rows; a statement that matched none is no effect. An overwrite of what it had read supersedes nothing."""
    added = change.rows_added
    kinds = set(change.kinds) - ({"supersede"} if was_read else set())
    if "rewrite" in kinds:  # rows that were only written anew are not counted
        written = min(added, removed)
        added, removed = added - written, removed - written
    if "compaction" in kinds:
        added = removed = 0
        kinds = kinds if change.live_staged() else set()
    elif added == 0 and removed == 0:
        kinds -= _DATA_KINDS
    else:
        kinds -= ({"append"} if added == 0 else set()) | ({"delete"} if removed == 0 else set())
    if kinds:
        writer.run(
            "add_effect", snapshot=snapshot, table_id=change.table.table_id, kinds=",".join(sorted(kinds)), rows_added=added, rows_removed=removed
        )


def _one(changed: int, what: str) -> None:
    if changed != 1:
        raise InternalError(f"the live {what} is not the one that was read; nothing was committed")
