"""now() is one moment per transaction, also when its statements run again.

DuckDB takes the time anew for every statement that we send. Macros of the same names, in the connection's own database,
stand in front of the built-in functions; they exist only while a statement that asks for the time is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from lakelite.model import literal
from lakelite.storage.engine import Engine

_MOMENT = "CAST({moment} AS TIMESTAMPTZ)"
_FUNCTIONS = {
    "now": _MOMENT,
    "get_current_timestamp": _MOMENT,
    "transaction_timestamp": _MOMENT,
    "current_date": f"CAST({_MOMENT} AS DATE)",
    "today": f"CAST({_MOMENT} AS DATE)",
    "current_localtimestamp": f"CAST({_MOMENT} AS TIMESTAMP)",
    "current_localtime": f"CAST(CAST({_MOMENT} AS TIMESTAMP) AS TIME)",
    "get_current_time": f"CAST({_MOMENT} AS TIMETZ)",
}


@contextmanager
def fixed(engine: Engine, moment_us: int) -> Iterator[None]:
    """Within the block every function that tells the time tells `moment_us`, for every cursor of this DuckDB."""
    moment = literal(datetime.fromtimestamp(moment_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00"))
    try:
        engine.do("; ".join(f"CREATE OR REPLACE MACRO {name}() AS {body.format(moment=moment)}" for name, body in _FUNCTIONS.items()))
        yield
    finally:
        engine.do("; ".join(f"DROP MACRO IF EXISTS {name}" for name in _FUNCTIONS))
