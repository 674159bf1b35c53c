"""CHECK LAKE REPAIR: mends what follows from the data, and nothing else. No row changes, and no file of a lake's data is deleted.

    orphans       moved to the folder quarantine of the lake, under their own names
    key filters   removed: they are made again when they are needed
    indexes       of the catalog: made anew from the rows of their tables
    statistics    the bounds and NULLs that the catalog tells of a fragment are those of its rows again

What connections that are open have read already, they keep until they are opened again. Whatever else CHECK LAKE finds stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

from lakelite.catalog.store import Catalog
from lakelite.maintenance.findings import Bounds, CatalogIndex, Filters, Finding
from lakelite.mapping.system_errors import os_error
from lakelite.storage import files
from lakelite.storage.files import DataFile, LakePaths

_AGAIN = "; connections that are open see it when they are opened again"


def repaired(catalog: Catalog, paths: LakePaths, locked: Callable[[], AbstractContextManager[None]], found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, those that could be mended with what was done. OperationalError: a file cannot be moved or removed."""
    for finding in found:
        match finding.cure:
            case DataFile() as orphan:
                yield replace(finding, severity="repaired", what_to_do=f"moved to {_quarantined(paths, orphan)}")
            case Filters(table_id, file_name):
                _remove(paths, table_id, file_name)
                yield replace(finding, severity="repaired", what_to_do=f"removed, and made again when it is needed{_AGAIN}")
            case Bounds() as bounds:
                with locked():
                    _write(catalog, bounds)
                yield replace(finding, severity="repaired", what_to_do=f"the catalog tells of what is there{_AGAIN}")
            case CatalogIndex(name):
                with locked(), catalog.transaction("repairing an index") as writer:
                    writer.make_index_anew(name)
                yield replace(finding, severity="repaired", what_to_do="made anew from the rows of its table")
            case None:
                yield finding


def _quarantined(paths: LakePaths, orphan: DataFile) -> str:
    """Moves the file; where to, from the root of the lake."""
    folder = files.quarantine_folder(paths)
    name = f"{orphan.table_id}-{orphan.file_name}"
    try:
        os.rename(paths.data_file(orphan.table_id, orphan.file_name), folder / name)
    except OSError as error:
        raise os_error(error, f"move the file {orphan.file_name}") from error
    files.fsync_directory(folder)
    return f"{folder.name}/{name}"


def _remove(paths: LakePaths, table_id: int, file_name: str) -> None:
    path = paths.data_file(table_id, file_name)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise os_error(error, f"remove the file {path}") from error


def _write(catalog: Catalog, bounds: Bounds) -> None:
    known = bounds.statistics
    with catalog.transaction("repairing statistics") as writer:
        writer.run(
            "set_statistics",
            fragment_id=bounds.fragment_id,
            field_id=known.field_id,
            minimum=known.minimum,
            maximum=known.maximum,
            null_count=known.null_count,
            exact=known.exact,
            may_hold_nan=known.may_hold_nan,
        )
