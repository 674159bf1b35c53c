"""VACUUM: removes the files of dead writers, and old versions that nobody may read any more.

The order makes it safe beside living writers and readers (reliability.md):

    orphans    list the data files → which sessions live → read the catalog → remove what is neither
    versions   read the branches → which snapshots are pinned → forget what only older ones need → remove its files

A file is removed only after the catalog has durably forgotten it; a session that lives keeps all its files and everything
from its oldest pinned snapshot on, on every branch. What a branch keeps beyond that: `catalog/branches.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from lakelite.catalog import branches
from lakelite.catalog.store import Catalog
from lakelite.model import MAIN_BRANCH_ID, Table
from lakelite.records import dataclass
from lakelite.storage import files, leases
from lakelite.storage.files import LakePaths

HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What was removed, or with `dry_run` would be."""

    dry_run: bool
    oldest_version: int
    versions_expired: int
    fragments_expired: int
    orphans_removed: int
    bytes_freed: int


def vacuum(
    catalog: Catalog,
    paths: LakePaths,
    locked: Callable[[], AbstractContextManager[None]],
    now_us: int,
    retain_hours: float,
    retain_versions: int,
    table: Table | None,
    *,
    dry_run: bool,
) -> Vacuumed:
    """Runs both parts. What is younger than `retain_hours` stays, and so do the newest `retain_versions` (1 or more) of each branch.

    With `table`, only its files; the versions of the lake then stay, and only this table's old rows go.
    """
    orphans, orphan_bytes = _sweep(catalog, paths, table, dry_run=dry_run)
    with locked():  # so that no branch and no tag is made meanwhile
        # Before the leases: a reader that pins later reads none older.
        states = branches.states(catalog, now_us - int(retain_hours * HOUR_US), retain_versions)
        pinned = [base for base in leases.live_sessions(paths).alive.values() if base is not None]
        kept = branches.kept(catalog, states, min(pinned, default=None))
        wanted = {"floors": kept.floors_text, "points": kept.points_text}
        table_id = table.table_id if table else None
        expired = catalog.rows("expired_fragments", table_id=table_id, **wanted)
        versions = 0 if table else int(catalog.row("expired_snapshots", **wanted)[0])
        if not dry_run:
            _forget(catalog, table_id, wanted)
    for owner, name, _ in () if dry_run else expired:
        if name is not None:
            files.remove_data_file(paths, owner, name)
    oldest = kept.floors[MAIN_BRANCH_ID] if table is None else min(state.oldest_kept for state in states if state.branch_id == MAIN_BRANCH_ID)
    freed = orphan_bytes + sum(size for _, name, size in expired if name is not None)
    return Vacuumed(dry_run, oldest, versions, len(expired), orphans, freed)


def vacuum_each(run: Callable[[float, Table | None, bool], Vacuumed], hours: float, kept: Mapping[Table, float], *, dry_run: bool) -> Vacuumed:
    """The whole lake, whose tables have hours of their own. `run(hours, table, dry_run)`: `vacuum`.

    Versions are of the whole lake, and stay for the longest time that any table wants; rows of tables that want less go before.
    """
    longest = max([hours, *kept.values()])
    done = run(longest, None, dry_run)
    for table, wanted in kept.items():
        if wanted < longest:
            more = run(wanted, table, dry_run)
            again = run(longest, table, True) if dry_run else None  # what has been counted, since nothing was removed
            fragments = more.fragments_expired - (again.fragments_expired if again else 0)
            freed = more.bytes_freed - (again.bytes_freed if again else 0)
            done = replace(done, fragments_expired=done.fragments_expired + fragments, bytes_freed=done.bytes_freed + freed)
    return done


def orphans(catalog: Catalog, paths: LakePaths, table: Table | None = None) -> tuple[list[files.DataFile], leases.Sessions]:
    """The data files that no living session may still commit and that the catalog does not know, and which sessions live."""
    found = [f for f in files.list_data_files(paths) if table is None or f.table_id == table.table_id]
    sessions = leases.live_sessions(paths)
    known = set(catalog.rows("data_files"))
    return [f for f in found if f.session_id not in sessions.alive and (f.table_id, f.file_name) not in known], sessions


def _sweep(catalog: Catalog, paths: LakePaths, table: Table | None, *, dry_run: bool) -> tuple[int, int]:
    """Removes the orphans; their number and bytes."""
    found, sessions = orphans(catalog, paths, table)
    if not dry_run:
        for orphan in found:
            files.remove_data_file(paths, orphan.table_id, orphan.file_name)
        for session_id in sessions.dead:
            files.remove_spill_folder(paths, session_id)
            leases.remove_dead_lease(paths, session_id)
    return len(found), sum(f.size_bytes for f in found)


_OF_LAKE = (
    "columns", "constraints", "views", "comments", "options", "partition_keys", "table_names", "table_lives", "schema_lives", "tables",
    "schemas", "snapshots",
)  # fmt: skip


def _forget(catalog: Catalog, table_id: int | None, wanted: Mapping[str, str]) -> None:
    """Removes what is expired from the catalog."""
    with catalog.transaction("expiring old versions") as writer:
        writer.run("delete_fragment_lives", table_id=table_id, **wanted)
        writer.run("delete_fragments", table_id=table_id)  # with their compositions, which keep vectors
        writer.run("delete_vectors", table_id=table_id, **wanted)
        if table_id is not None:
            writer.run("set_table_oldest_kept", table_id=table_id, floors=wanted["floors"])
        else:
            for what in _OF_LAKE:
                writer.run(f"delete_{what}", **wanted)
            writer.run("set_oldest_kept", floors=wanted["floors"])
            writer.run("delete_branches")
    catalog.checkpoint()
