"""pyarrow's errors. Not imported before pyarrow is loaded: `arrow_error` says None for everything as long as it is not."""

from __future__ import annotations

import sys

from lakelite.errors import DataError, Error, InternalError, NotSupportedError, OperationalError

_KINDS: tuple[tuple[str, type[Error], str, str], ...] = (
    ("ArrowMemoryError", OperationalError, "the process has no memory left", "read or append the data in parts"),
    ("ArrowCancelled", OperationalError, "interrupted", "run it again if you want it"),
    ("ArrowCapacityError", DataError, "a column holds more than Arrow can", "read or append the data in parts"),
    ("ArrowNotImplementedError", NotSupportedError, "Arrow cannot do this", "cast the column to a simpler type, such as VARCHAR"),
    ("ArrowSerializationError", OperationalError, "Arrow data cannot be read", "it was damaged or cut off: get it again"),
    ("ArrowInvalid", DataError, "Arrow data is not valid", "check the data's types and values"),
    ("ArrowTypeError", DataError, "Arrow data has the wrong type", "cast the column to the type that is wanted"),
    ("ArrowKeyError", InternalError, "Arrow does not find a name", "this is a bug: please report it"),
    ("ArrowIndexError", InternalError, "Arrow does not find a place", "this is a bug: please report it"),
    ("ArrowException", InternalError, "Arrow failed", "this is a bug: please report it"),
)


def arrow_error(error: BaseException) -> Error | None:
    """Our error for pyarrow's; None if it is none of pyarrow's."""
    library = sys.modules.get("pyarrow.lib")
    if library is None or not isinstance(error, library.ArrowException):
        return None
    name, kind, what, hint = next(entry for entry in _KINDS if isinstance(error, getattr(library, entry[0])))
    detail = str(error.args[0]) if error.args else ""
    return kind(what if name in ("ArrowMemoryError", "ArrowCancelled") or not detail else f"{what}: {detail}", hint=hint)
