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
        for column in rows.columns:
            plain = _plain(column.type)
            for chunk in column.chunks:
                (chunk if plain == chunk.type else chunk.view(plain)).validate(full=True)
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


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type, with numbers for times of the day: DuckDB has a time 24:00:00, and Arrow finds fault with it."""
    import pyarrow as pa

    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    fields = [kind.field(index) for index in range(kind.num_fields)]
    plain = [field.with_type(_plain(field.type)) for field in fields]
    if plain == fields:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(plain)
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(plain[0])
    return pa.list_(plain[0], kind.list_size) if pa.types.is_fixed_size_list(kind) else pa.list_(plain[0])
