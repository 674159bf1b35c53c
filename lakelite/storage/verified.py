"""Whether the file of a fragment is the one that was committed. Reads it whole; a plain scan does not come by here, for what that costs.

Before a compaction, since what it writes gets a hash of its own and nothing would tell of the damage any more; and by CHECK LAKE.
"""

from __future__ import annotations

from pathlib import Path

from lakelite.errors import OperationalError
from lakelite.model import Fragment
from lakelite.storage import files
from lakelite.storage.files import LakePaths

NOT_THE_CATALOGS = "its SHA-256 is not the one in the catalog: it was changed or damaged"


def verified_file(paths: LakePaths, fragment: Fragment) -> Path:
    """The path of the file of a Parquet fragment. OperationalError: it is missing, no regular file, or not the one that was committed."""
    assert fragment.path is not None
    path = paths.existing_data_file(fragment.table_id, fragment.path, fragment.size_bytes)
    if files.sha256_of(path) != fragment.sha256:
        raise damaged(path)
    return path


def damaged(path: Path) -> OperationalError:
    """What to raise for a file that is another one than was committed."""
    return OperationalError(
        f"the data file {path} is damaged: {NOT_THE_CATALOGS}", hint="CHECK LAKE lists all that is wrong; restore the file from a copy"
    )
