"""Typed statements about branches and tags. Values only; `statements.py` has the rest."""

from __future__ import annotations

from typing import Literal

from lakelite.records import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """AT VERSION n, TIMESTAMP t, TAG x or BRANCH b: `text` is an expression of the user's, as in `TimeTravel`."""

    by: Literal["version", "timestamp", "branch", "tag"]
    text: str


@dataclass(frozen=True, slots=True)
class CreateBranch:
    """CREATE BRANCH [IF NOT EXISTS] b [AT VERSION n]. `at` None: the head. `offset`: where the name stands."""

    name: str
    if_not_exists: bool
    at: Moment | None
    offset: int


@dataclass(frozen=True, slots=True)
class DropBranch:
    """DROP BRANCH [IF EXISTS] b."""

    name: str
    if_exists: bool
    offset: int


@dataclass(frozen=True, slots=True)
class UseBranch:
    """USE BRANCH b."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class MergeBranch:
    """MERGE BRANCH b [DRY RUN] [ON CONFLICT OURS | THEIRS | FAIL]."""

    name: str
    dry_run: bool
    on_conflict: Literal["ours", "theirs", "fail"]
    offset: int


@dataclass(frozen=True, slots=True)
class CreateTag:
    """CREATE TAG [IF NOT EXISTS] x [AT VERSION n]; as CreateBranch."""

    name: str
    if_not_exists: bool
    at: Moment | None
    offset: int


@dataclass(frozen=True, slots=True)
class DropTag:
    """DROP TAG [IF EXISTS] x."""

    name: str
    if_exists: bool
    offset: int


@dataclass(frozen=True, slots=True)
class ShowBranches:
    """SHOW BRANCHES."""


@dataclass(frozen=True, slots=True)
class ShowTags:
    """SHOW TAGS."""


OfBranches = CreateBranch | DropBranch | UseBranch | CreateTag | DropTag | ShowBranches | ShowTags
