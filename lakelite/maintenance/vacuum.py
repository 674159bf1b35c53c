"""VACUUM: removes the files of dead writers, and old versions that nobody may read any more.

The order makes it safe beside living writers and readers (reliability.md):

    orphans    list the data files → which sessions live → read the catalog → remove what is neither
    versions   read the head → which snapshots are pinned → forget what only older ones need → remove its files

A file is removed only after the catalog has durably forgotten it; a session that lives keeps all its files and everything
from its oldest pinned snapshot on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from lakelite.catalog.store import Catalog
from lakelite.model import Table
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
    table: Table | None,
    *,
    dry_run: bool,
) -> Vacuumed:
    """Runs both parts. With `table`, only its files; the versions of the lake then stay, and only this table's old rows go."""
    orphans, orphan_bytes = _sweep(catalog, paths, table, dry_run=dry_run)
    head = catalog.head()  # before the leases: a reader that pins later has a base of at least this
    pinned = [base for base in leases.live_sessions(paths).alive.values() if base is not None]
    by_time = int(catalog.row("floor_by_time", time_us=now_us - int(retain_hours * HOUR_US))[0])
    floor = min([head, by_time, *pinned])
    table_id = table.table_id if table else None
    expired = catalog.rows("expired_files", floor=floor, table_id=table_id)
    versions, fragments = catalog.row("expired_counts", floor=floor, table_id=table_id)
    if not dry_run:
        _forget(catalog, locked, floor, table_id)
        for owner, name, _ in expired:
            files.remove_data_file(paths, owner, name)
    oldest = floor if table is None else int(catalog.row("snapshot_range")[0])
    freed = orphan_bytes + sum(size for _, _, size in expired)
    return Vacuumed(dry_run, oldest, versions if table is None else 0, fragments, orphans, freed)


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


def _forget(catalog: Catalog, locked: Callable[[], AbstractContextManager[None]], floor: int, table_id: int | None) -> None:
    with locked():
        with catalog.transaction("expiring old versions") as writer:
            for query in ("delete_vectors", "delete_fragments"):
                writer.run(query, floor=floor, table_id=table_id)
            if table_id is not None:
                writer.run("set_oldest_kept", floor=floor, table_id=table_id)
            else:
                for query in (
                    "delete_columns",
                    "delete_constraints",
                    "delete_views",
                    "delete_comments",
                    "delete_options",
                    "delete_partition_keys",
                    "delete_table_names",
                    "delete_tables",
                    "delete_schemas",
                    "delete_snapshots",
                ):
                    writer.run(query, floor=floor)
        catalog.checkpoint()
