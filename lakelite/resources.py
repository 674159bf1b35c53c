"""Where the files that come with the package lie: the SQL of `sql` and the tables of `sample_data`.

In a wheel both folders are inside the package, in a checkout (and an editable install) beside it. Reads nothing.
"""

from __future__ import annotations

from pathlib import Path


def folder(name: str) -> Path:
    """The folder `name` (`sql` or `sample_data`)."""
    inside = Path(__file__).parent / name
    return inside if inside.is_dir() else inside.parent.parent / name
