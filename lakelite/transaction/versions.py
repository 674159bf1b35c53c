"""Which version a moment of the user's means, and what a table was then. What is read stays pinned until the transaction is over.

A version that was given by its number is the same for ever. One that was given as a time and comes out as the transaction's
base might be a newer one on a newer head: who reads it has read the table.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NoReturn

import duckdb

from lakelite.catalog import branches
from lakelite.catalog.store import Catalog
from lakelite.contents import TableState
from lakelite.errors import DataError, OperationalError, Position, ProgrammingError
from lakelite.language import statements as st
from lakelite.mapping.engine_errors import engine_error
from lakelite.mapping.names import did_you_mean, listed
from lakelite.model import Branch, Table, fold
from lakelite.records import dataclass
from lakelite.transaction.execution import Call, Execution
from lakelite.transaction.view import LakeView, check_kept, check_version

_HISTORY = "DESCRIBE HISTORY lists the versions"
# A text that takes a zone at its end has none. (A cast to TIMESTAMP would leave out the one that it has.)
_MICROSECONDS = """(SELECT epoch_us(CASE
    WHEN typeof(v) = 'VARCHAR' THEN COALESCE(TRY_CAST(CAST(v AS VARCHAR) || ' UTC' AS TIMESTAMPTZ),
        TRY_CAST(CAST(v AS VARCHAR) || ' 00:00:00 UTC' AS TIMESTAMPTZ), CAST({moment} AS TIMESTAMPTZ))
    WHEN typeof(v) IN ('DATE', 'TIMESTAMP', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS') THEN timezone('UTC', TRY_CAST(v AS TIMESTAMP))
    ELSE CAST({moment} AS TIMESTAMPTZ) END) FROM (SELECT {moment} AS v))"""


@dataclass(frozen=True, slots=True)
class Version:
    """`is_time`: it was given as a time, not by its number."""

    number: int
    is_time: bool


def lake_at(execution: Execution, travel: st.TimeTravel, call: Call) -> tuple[Version, LakeView]:
    """The version that a time travel clause names, and the lake then."""
    position = Position.at(call.text, travel.table.offset)
    version = moment(execution, travel.by, travel.moment, call, position)
    return version, view_of(execution, version.number, position)


def moment(execution: Execution, by: str, text: str, call: Call, position: Position) -> Version:
    """The version that an expression means: a number, a time, or the name of a tag or of a branch."""
    return {"timestamp": at_time, "version": by_number, "branch": of_branch, "tag": of_tag}[by](execution, text, call, position)


def state_at(execution: Execution, view: LakeView, table: Table, travel: st.TimeTravel, call: Call) -> TableState:
    """A table as of a version. OperationalError: its rows have expired."""
    state = view.state(table)  # before it is asked what is kept: VACUUM may come between
    check_kept(execution.catalog, table, view.snapshot_id, Position.at(call.text, travel.table.offset))
    return state


def view_of(execution: Execution, number: int, position: Position | None) -> LakeView:
    """A version of the lake, pinned. OperationalError: it has expired."""
    execution.pin(number)
    check_version(execution.catalog, number, position)
    view = execution.versions.get(number) or LakeView.load(execution.catalog, number)
    execution.versions[number] = view
    return view


def remember_read(execution: Execution, version: Version, name: str, tables: Iterable[int]) -> None:
    """Notes that who reads the view `name` has read the tables, if the version may be another one on a newer head."""
    if version.is_time and version.number >= execution.view.snapshot_id:
        execution.moving[name] = frozenset(tables)


# Moments: the user's expressions. They see no table.


def by_number(execution: Execution, text: str, call: Call, position: Position) -> Version:
    """ProgrammingError: there is no such version, or it is one that the transaction does not see."""
    value = value_of(execution, f"({text}\n)", call, position)
    if type(value) is not int and not (isinstance(value, str) and value.isascii() and value.isdecimal()):
        raise DataError("a version is a whole number", hint=f"{_HISTORY}; AT (TAG => '…') reads the one of a tag", position=position)
    number = int(value)
    if number < 0:
        raise ProgrammingError(f"there is no version {number}: the first one is 0", hint=_HISTORY, position=position)
    if number > execution.view.snapshot_id and not _is_elsewhere(execution, number):
        message = f"there is no version {number}; the newest one that this statement sees is {execution.view.snapshot_id}"
        raise ProgrammingError(message, hint=_HISTORY, position=position)
    return Version(number, is_time=False)


def _is_elsewhere(execution: Execution, number: int) -> bool:
    """Whether a version is there, and of another branch than the transaction."""
    branch = branches.of_snapshot(execution.catalog, number) if number <= execution.catalog.row("newest")[0] else None
    return branch is not None and branch.branch_id != execution.branch


def of_branch(execution: Execution, text: str, call: Call, position: Position) -> Version:
    """The newest version of a branch, as it was when the transaction first named that."""
    name = _name_of(execution, text, call, position, "branch")
    known = execution.named.get(("branch", fold(name)))
    if known is None:
        branch = find_branch(execution.catalog, name, position)
        own = branch.branch_id == execution.branch
        known = execution.view.snapshot_id if own else execution.catalog.head(branch.branch_id)
        if not own:
            execution.named["branch", fold(name)] = known
    return Version(known, is_time=False)


def of_tag(execution: Execution, text: str, call: Call, position: Position) -> Version:
    """The version of a tag, as it was when the transaction first named that."""
    name = _name_of(execution, text, call, position, "tag")
    known = execution.named.get(("tag", fold(name)))
    if known is None:
        known = execution.named["tag", fold(name)] = find_tag(execution.catalog, name, position)
    return Version(known, is_time=False)


def _name_of(execution: Execution, text: str, call: Call, position: Position, kind: str) -> str:
    name = value_of(execution, f"({text}\n)", call, position, f"the name of a {kind}")
    if not isinstance(name, str):
        raise DataError(f"the name of a {kind} is a text", hint=f"write AT ({kind.upper()} => 'name')", position=position)
    return name


def find_branch(catalog: Catalog, name: str, position: Position | None) -> Branch:
    """ProgrammingError with near names: there is no such branch."""
    branch = branches.find(catalog, name)
    if branch is None:
        known = branches.names(catalog)
        raise ProgrammingError(
            f'branch "{name}" does not exist', hint=did_you_mean(name, known, f"the branches are: {listed(known)}"), position=position
        )
    return branch


def find_tag(catalog: Catalog, name: str, position: Position | None) -> int:
    """The version of a tag; ProgrammingError with near names: there is none."""
    version = branches.tagged(catalog, name)
    if version is None:
        known = sorted(branches.tags(catalog))
        hint = did_you_mean(name, known, f"the tags are: {listed(known)}" if known else "CREATE TAG makes one")
        raise ProgrammingError(f'tag "{name}" does not exist', hint=hint, position=position)
    return version


def at_time(execution: Execution, text: str, call: Call, position: Position) -> Version:
    """The newest version that was there at a time; a note says so where the time is still to come."""
    time_us = microseconds(execution, text, call, position)
    found = _newest_at(execution, time_us)
    if found is None:
        _raise_too_early(execution, position)
    if time_us > time.time_ns() // 1000:
        execution.notes.append(f"that time lies in the future: the newest version, {found}, is taken")
    return Version(found, is_time=True)


def first_since(execution: Execution, text: str, call: Call, position: Position) -> Version:
    """The first version that came at a time or later; one more than the base if none did."""
    before = _newest_at(execution, microseconds(execution, text, call, position) - 1)
    if before is None and execution.catalog.row("oldest_snapshot", base=execution.view.snapshot_id)[0] > 0:
        _raise_too_early(execution, position)
    return Version(0 if before is None else before + 1, is_time=True)


def _newest_at(execution: Execution, time_us: int) -> int | None:
    """The newest kept version that was there at a time, up to the base; None if none was."""
    found = execution.catalog.row("snapshot_at_time", time_us=time_us, base=execution.view.snapshot_id)[0]
    return None if found is None else int(found)


def is_time(execution: Execution, text: str, call: Call, position: Position) -> bool:
    """Whether an expression is a time, and not a number or a text."""
    return str(value_of(execution, f"typeof(({text}\n))", call, position)).startswith(("TIMESTAMP", "DATE"))


def microseconds(execution: Execution, text: str, call: Call, position: Position) -> int:
    """A time in microseconds since 1970; one without a zone is UTC, as every time that lakelite shows, and a date its midnight."""
    return int(value_of(execution, _MICROSECONDS.format(moment=f"({text}\n)"), call, position))


def value_of(execution: Execution, expression: str, call: Call, position: Position, what: str = "the version of a table") -> Any:
    """The value of an expression of the user's, which is `what`. DataError: it is NULL."""
    try:
        value = execution.engine.without_tables(f"SELECT {expression}", call.values)
    except duckdb.CatalogException as error:
        hint = "read it first, and pass it as a parameter"
        raise ProgrammingError(f"{what} is computed where no table can be seen", hint=hint, position=position) from error
    except duckdb.InterruptException:
        raise  # who stopped it says so
    except duckdb.Error as error:
        ours = engine_error(error, "")
        raise type(ours)(ours.message, hint=ours.hint, position=position) from error
    if value is None:
        raise DataError(f"{what} is NULL", hint="DESCRIBE HISTORY lists the versions", position=position)
    return value


def _raise_too_early(execution: Execution, position: Position) -> NoReturn:
    oldest, time_us = execution.catalog.row("oldest_snapshot", base=execution.view.snapshot_id)
    when = f"{datetime(1970, 1, 1) + timedelta(microseconds=time_us)} UTC"  # noqa: DTZ001  (to the microsecond, so that it can be copied)
    if oldest == 0:
        raise ProgrammingError(f"the lake is younger than that: it was made on {when}", hint=_HISTORY, position=position)
    message = f"the versions of that time have expired; the oldest kept one is {oldest}, of {when}"
    raise OperationalError(message, hint="DESCRIBE HISTORY lists the kept versions", position=position)
