"""The frames of statements about branches and tags."""

from __future__ import annotations

from typing import Literal

from lakelite.language.branch_statements import (
    CreateBranch,
    CreateTag,
    DropBranch,
    DropTag,
    MergeBranch,
    Moment,
    ShowBranches,
    ShowTags,
    UseBranch,
)
from lakelite.language.reader import Reader
from lakelite.language.source import plain_with_parameters
from lakelite.language.travel import step_over_moment

KINDS = ("BRANCH", "TAG")
_BY: dict[str, Literal["version", "timestamp", "branch", "tag"]] = {
    "VERSION": "version", "TIMESTAMP": "timestamp", "BRANCH": "branch", "TAG": "tag",
}  # fmt: skip
_SIDES: dict[str, Literal["ours", "theirs", "fail"]] = {"OURS": "ours", "THEIRS": "theirs", "FAIL": "fail"}


def read_create(reader: Reader) -> CreateBranch | CreateTag:
    """Behind CREATE: BRANCH or TAG [IF NOT EXISTS] name [AT VERSION n | AT TIMESTAMP … | AT TAG x | AT BRANCH b]."""
    made = CreateBranch if reader.accept_one(*KINDS) == "BRANCH" else CreateTag
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name, offset = _name(reader, "a branch" if made is CreateBranch else "a tag")
    at = _moment(reader) if reader.accept("AT") else None
    reader.finish()
    return made(name, if_not_exists, at, offset)


def read_drop(reader: Reader) -> DropBranch | DropTag:
    """Behind DROP: BRANCH or TAG [IF EXISTS] name."""
    made = DropBranch if reader.accept_one(*KINDS) == "BRANCH" else DropTag
    if_exists = reader.accept("IF", "EXISTS")
    name, offset = _name(reader, "a branch" if made is DropBranch else "a tag")
    reader.finish()
    return made(name, if_exists, offset)


def read_use(reader: Reader) -> UseBranch:
    """Behind USE: BRANCH b. USE of anything else is refused."""
    if not reader.accept("BRANCH"):
        raise reader.unsupported("USE", "write the schema in front of the table: schema.table; USE BRANCH b goes to a branch", 0)
    name, offset = _name(reader, "a branch")
    reader.finish()
    return UseBranch(name, offset)


def read_merge(reader: Reader) -> MergeBranch:
    """Behind MERGE: BRANCH b [DRY RUN] [ON CONFLICT OURS | THEIRS | FAIL]."""
    reader.expect("BRANCH")
    name, offset = _name(reader, "a branch")
    dry_run = reader.accept("DRY", "RUN")
    side = None
    if reader.accept("ON", "CONFLICT"):
        side = reader.accept_one(*_SIDES)
        if side is None:
            raise reader.syntax_error("expected OURS, THEIRS or FAIL")
    reader.finish()
    return MergeBranch(name, dry_run, _SIDES[side or "FAIL"], offset)


def read_show(reader: Reader) -> ShowBranches | ShowTags:
    """Behind SHOW: BRANCHES or TAGS."""
    shown = ShowBranches() if reader.accept_one("BRANCHES", "TAGS") == "BRANCHES" else ShowTags()
    reader.finish()
    return shown


def is_show(reader: Reader) -> bool:
    """Whether SHOW BRANCHES or SHOW TAGS is all that is left."""
    return reader.peek().word in ("BRANCHES", "TAGS") and reader.peek(1).kind == "end"


def _name(reader: Reader, what: str) -> tuple[str, int]:
    offset = reader.peek().start
    return reader.identifier(f"the name of {what}"), offset


def _moment(reader: Reader) -> Moment:
    kind = reader.accept_one(*_BY)
    if kind is None:
        raise reader.syntax_error("expected VERSION n, TIMESTAMP '…', TAG x or BRANCH b")
    if kind in KINDS and reader.sees_identifier():
        return Moment(_BY[kind], "'" + reader.identifier().replace("'", "''") + "'")
    first = reader.index
    step_over_moment(reader)
    return Moment(_BY[kind], plain_with_parameters(reader.source, first, reader.index))
