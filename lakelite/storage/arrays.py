"""Arrow arrays from NumPy arrays and few Python values, and NumPy arrays from them, by their buffers.

`pyarrow.array`, `pyarrow.scalar` and `to_numpy` import pandas wherever it is installed, to ask whether they were given a Series: 0.35 s in the first
statement of a process that needs no pandas. What is made here asks nobody (tests/unit/test_arrays.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_WIDE = Context(prec=100)  # no digit of a 38-digit DECIMAL is rounded away
_MANY = 1_000  # from here on pyarrow's own loop over Python values is worth the import
_MOST_BYTES = 2**31 - 1  # of the texts of an Arrow array, whose offsets have 32 bits


def of_numpy(values: NDArray[Any], missing: NDArray[Any] | None = None) -> pa.Array:
    """An array of numbers or truth values; `missing`: a mask of those that are NULL."""
    import numpy as np
    import pyarrow as pa

    is_truth = values.dtype == np.bool_
    plain = np.packbits(values, bitorder="little") if is_truth else np.ascontiguousarray(values)
    kind = pa.bool_() if is_truth else pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [_validity(missing), pa.py_buffer(plain)])


def of_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of Python values, None for NULL, that are what `kind` holds. pyarrow makes it where they are many, or of a rarer kind."""
    import numpy as np
    import pyarrow as pa

    if len(values) < _MANY:
        missing = np.array([value is None for value in values], dtype=np.bool_) if None in values else None
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            pieces = [b"" if value is None else value.encode() if isinstance(value, str) else bytes(value) for value in values]
            ends = np.cumsum([0, *map(len, pieces)])
            if ends[-1] <= _MOST_BYTES:
                parts = [_validity(missing), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(pieces))]
                return pa.Array.from_buffers(kind, len(values), parts)
        elif pa.types.is_decimal128(kind):
            whole = (0 if value is None else int(_WIDE.scaleb(value, kind.scale)) for value in values)
            shifted = b"".join(number.to_bytes(16, "little", signed=True) for number in whole)
            return pa.Array.from_buffers(kind, len(values), [_validity(missing), pa.py_buffer(shifted)])
        elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return of_numpy(np.array([0 if value is None else value for value in values], dtype=kind.to_pandas_dtype()), missing)
    return pa.array(values, kind)


def to_numpy(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    """The numbers or truth values of an Arrow column; anything where it is NULL."""
    import numpy as np
    import pyarrow as pa

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    plain = whole.buffers()[1]
    if pa.types.is_boolean(whole.type):
        bits = np.unpackbits(np.frombuffer(plain, np.uint8), count=whole.offset + len(whole), bitorder="little")
        return bits[whole.offset :].astype(np.bool_)
    kind = np.dtype(whole.type.to_pandas_dtype())
    return np.frombuffer(plain, kind, len(whole), whole.offset * kind.itemsize)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The values once each, ascending. NumPy's plain `unique` imports numpy.ma in its first call: 11 ms."""
    import numpy as np

    return np.unique(values, return_index=True)[0]


def table(columns: Mapping[str, NDArray[Any] | pa.Array | pa.ChunkedArray]) -> pa.Table:
    """A table of NumPy or Arrow arrays."""
    import numpy as np
    import pyarrow as pa

    return pa.table({name: of_numpy(column) if isinstance(column, np.ndarray) else column for name, column in columns.items()})


def _validity(missing: NDArray[Any] | None) -> pa.Buffer | None:
    import numpy as np
    import pyarrow as pa

    return None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
