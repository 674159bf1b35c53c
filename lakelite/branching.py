"""Branches and tags: making, dropping, showing and going to them. MERGE BRANCH is a change of rows (`transaction/merge_branch.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from lakelite import errors, landing
from lakelite.catalog import branches
from lakelite.errors import Error, OperationalError, Position, ProgrammingError
from lakelite.lake import Lake
from lakelite.language import branch_statements as bs
from lakelite.language import statements as st
from lakelite.mapping.names import listed
from lakelite.model import MAIN_BRANCH_ID, Branch
from lakelite.results import Message, Result
from lakelite.standalone import check_alone
from lakelite.transaction import commit as committing
from lakelite.transaction import merge_conflicts, merge_rows, versions
from lakelite.transaction.commit import CommitResult
from lakelite.transaction.execution import Call
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import check_version

_BRANCHES = (("name", "VARCHAR"), ("version", "BIGINT"), ("base_version", "BIGINT"), ("created_at", "TIMESTAMP"), ("current", "BOOLEAN"))
_TAGS = (("name", "VARCHAR"), ("version", "BIGINT"), ("branch", "VARCHAR"), ("created_at", "TIMESTAMP"))


def run(lake: Lake, tx: Transaction | None, operation: bs.OfBranches, call: Call, *, read_only: bool) -> Result:
    """Any of these statements. `tx`: the open transaction, which none but SHOW may run in."""
    match operation:
        case bs.ShowBranches():
            rows = [(*row[:3], _time(row[3]), row[0] == lake.branch.name) for row in lake.catalog.rows("look_branches")]
            return Result(_BRANCHES, rows=rows)
        case bs.ShowTags():
            return Result(_TAGS, rows=[(*row[:3], _time(row[3])) for row in lake.catalog.rows("look_tags")])
        case bs.UseBranch():
            use(lake, tx, operation.name, Position.at(call.text, operation.offset))
            return Result(None)
    check_alone(_what(operation), tx, read_only=read_only)
    match operation:
        case bs.CreateBranch():
            return Result(None, messages=_create_branch(lake, operation, call))
        case bs.DropBranch():
            _drop_branch(lake, operation, call)
        case bs.CreateTag():
            return Result(None, messages=_create_tag(lake, operation, call))
        case bs.DropTag():
            _drop_tag(lake, operation, call)
    return Result(None)


def use(lake: Lake, tx: Transaction | None, name: str, position: Position | None) -> None:
    """USE BRANCH: transactions are on that branch from now on. ProgrammingError: there is none, or a transaction is open."""
    check_alone("USE BRANCH", tx, read_only=False)
    lake.use(versions.find_branch(lake.catalog, name, position))


_NO_CONFLICTS = "this connection has seen no conflicts: MERGE BRANCH … DRY RUN shows those of a merge"
_MERGED = (
    ("table_name", "VARCHAR"), ("rows_added", "BIGINT"), ("rows_updated", "BIGINT"), ("rows_deleted", "BIGINT"), ("conflicts", "BIGINT"),
    ("what", "VARCHAR"),
)  # fmt: skip


def merge(
    lake: Lake, tx: Transaction | None, operation: bs.MergeBranch, call: Call, limited: AbstractContextManager[None], *, read_only: bool
) -> tuple[CommitResult | None, Result]:
    """MERGE BRANCH, as a snapshot of its own: what landed (None: nothing was to be done, or it is a DRY RUN), and one row for each table.

    `limited`: the block of what may be stopped, which a commit may not.
    """
    check_alone("MERGE BRANCH", tx, read_only=read_only)
    merging = lake.start(explicit=False, isolation="serializable", read_only=False)
    try:
        with merging.statement(operation, call.text, [call.values]), limited:
            merging.run(operation, call)
        if operation.dry_run or not merging.work.changes.writes:
            merging.discard()
            return None, Result(_MERGED, rows=lake.merge.lines)
        committed, messages = landing.land(lake, merging)
        return committed, Result(_MERGED, rows=lake.merge.lines, messages=messages)
    finally:
        lake.unpin(merging)


def resolve(
    lake: Lake, tx: Transaction | None, operation: st.Update, call: Call, limited: AbstractContextManager[None], *, read_only: bool
) -> Result:
    """UPDATE lake.merge_conflicts: what the next merge of that branch is to do with rows that both changed. No part of any snapshot."""
    check_alone("UPDATE lake.merge_conflicts", tx, read_only=read_only)
    report, looking = lake.merge, lake.start(explicit=False, isolation=lake.settings.isolation, read_only=True)
    try:
        with limited, looking.moment(operation, call):
            choices = merge_conflicts.choose(looking.execution, looking.work, operation, call)
        if report.theirs is not None:
            _choose(lake, report.theirs, report.ours_id, choices)
        merge_conflicts.show_chosen(looking.execution)
        return Result(None, rowcount=len(json.loads(choices)), messages=[] if report.conflicts else [(errors.Warning, _NO_CONFLICTS)])
    finally:
        merge_rows.forget(looking.execution)
        lake.unpin(looking)


def _choose(lake: Lake, theirs: Branch, ours_id: int, choices: str) -> None:
    """OperationalError: one of the branches was dropped meanwhile."""
    pair = {"ours": ours_id, "theirs": theirs.branch_id}
    with lake.locked():
        if not {row[0] for row in lake.catalog.rows("living_branches")}.issuperset(pair.values()):
            raise OperationalError(f"branch {theirs.name}, or the one that it was merged into, was dropped", hint="SHOW BRANCHES lists the branches")
        with lake.catalog.transaction("choosing a side of conflicts") as writer:
            writer.run("drop_merge_choices", choices=choices, **pair)
            writer.run("add_merge_choices", choices=choices, **pair)


def _what(operation: bs.OfBranches) -> str:
    verb = "CREATE" if isinstance(operation, bs.CreateBranch | bs.CreateTag) else "DROP"
    return f"{verb} {'BRANCH' if isinstance(operation, bs.CreateBranch | bs.DropBranch) else 'TAG'}"


def _time(microseconds: int) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).replace(tzinfo=None)


@contextmanager
def _reader(lake: Lake) -> Iterator[Transaction]:
    """A transaction that only looks; what it reads stays until the end of the block."""
    seen = lake.start(explicit=False, isolation=lake.settings.isolation, read_only=True)
    try:
        yield seen
    finally:
        lake.unpin(seen)


def _create_branch(lake: Lake, operation: bs.CreateBranch, call: Call) -> list[Message]:
    with _reader(lake) as seen:
        base = _base(lake, seen, operation, call)
        with lake.locked():
            _check_whole(lake, base, operation, call)
            if branches.find(lake.catalog, operation.name) is not None:
                if operation.if_not_exists:
                    return []
                raise _taken("branch", operation, call)
            made = {
                "now_us": committing.now_us(), "author": lake.settings.author, "message": None, "operation": "CREATE BRANCH",
                "statements": json.dumps([call.text]), "isolation": seen.isolation, "attempts": 1, "transaction_id": seen.transaction_id, "blind": 0,
            }  # fmt: skip
            with lake.catalog.transaction("making a branch") as writer:
                branches.create(writer, operation.name, base, made)
        return landing.noted(seen)


def _base(lake: Lake, seen: Transaction, operation: bs.CreateBranch | bs.CreateTag, call: Call) -> int:
    """The version that a branch or tag is made at, pinned by `seen`."""
    if operation.at is None:
        return seen.base.snapshot_id
    place = call.text.find(operation.at.text, operation.offset)
    position = Position.at(call.text, place if place >= 0 else operation.offset)
    number = versions.moment(seen.execution, operation.at.by, operation.at.text, call, position).number
    versions.view_of(seen.execution, number, position)
    return number


def _check_whole(lake: Lake, base: int, operation: bs.CreateBranch | bs.CreateTag, call: Call) -> None:
    """OperationalError: VACUUM has removed the version, or rows that a table had then."""
    check_version(lake.catalog, base, Position.at(call.text, operation.offset))
    torn = [row[0] for row in lake.catalog.rows("torn_tables", snapshot=base)]
    if torn:
        message = f"version {base} is not whole any more: VACUUM has removed what was in {listed(torn)}"
        raise OperationalError(
            message, hint="DESCRIBE HISTORY lists the versions; take a newer one", position=Position.at(call.text, operation.offset)
        )


def _taken(kind: str, operation: bs.CreateBranch | bs.CreateTag, call: Call) -> Error:
    hint = f"CREATE {kind.upper()} IF NOT EXISTS leaves it, DROP {kind.upper()} drops it"
    return ProgrammingError(f'{kind} "{operation.name}" already exists', hint=hint, position=Position.at(call.text, operation.offset))


def _drop_branch(lake: Lake, operation: bs.DropBranch, call: Call) -> None:
    position = Position.at(call.text, operation.offset)
    with lake.locked():
        branch = branches.find(lake.catalog, operation.name)
        if branch is None and operation.if_exists:
            return
        branch = versions.find_branch(lake.catalog, operation.name, position)
        if branch.branch_id == MAIN_BRANCH_ID:
            raise ProgrammingError("branch main cannot be dropped", hint="every lake has it", position=position)
        if branch.branch_id == lake.branch.branch_id:
            raise ProgrammingError(f"branch {branch.name} is the one that you are on", hint="USE BRANCH main leaves it", position=position)
        with lake.catalog.transaction("dropping a branch") as writer:
            writer.run("drop_branch", branch=branch.branch_id)


def _create_tag(lake: Lake, operation: bs.CreateTag, call: Call) -> list[Message]:
    with _reader(lake) as seen:
        version = _base(lake, seen, operation, call)
        with lake.locked():
            _check_whole(lake, version, operation, call)
            if branches.tagged(lake.catalog, operation.name) is not None:
                if operation.if_not_exists:
                    return []
                raise _taken("tag", operation, call)
            with lake.catalog.transaction("making a tag") as writer:
                writer.run("add_tag", name=operation.name, snapshot=version, now_us=committing.now_us())
        return landing.noted(seen)


def _drop_tag(lake: Lake, operation: bs.DropTag, call: Call) -> None:
    with lake.locked():
        if operation.if_exists and branches.tagged(lake.catalog, operation.name) is None:
            return
        versions.find_tag(lake.catalog, operation.name, Position.at(call.text, operation.offset))
        with lake.catalog.transaction("dropping a tag") as writer:
            writer.run("drop_tag", name=operation.name)
