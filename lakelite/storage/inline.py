"""The rows of an inline fragment, from the bytes that the catalog has of them: the one place that reads them as Arrow.

Arrow believes what it reads: lengths and offsets that do not fit together would have DuckDB read what is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelite.errors import InternalError
from lakelite.model import Fragment

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(fragment: Fragment, ipc: bytes) -> pa.Table:
    """InternalError: the bytes are no rows, or not as many as the catalog says."""
    import pyarrow as pa

    try:
        rows = pa.ipc.open_stream(ipc).read_all()
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InternalError(
            f"inline fragment {fragment.fragment_id} is damaged: its rows cannot be read", hint="restore the lake from a copy"
        ) from error
    if rows.num_rows != fragment.row_count:
        raise InternalError(
            f"inline fragment {fragment.fragment_id} holds {rows.num_rows} rows, the catalog says {fragment.row_count}",
            hint="restore the lake from a copy",
        )
    return rows
