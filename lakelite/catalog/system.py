"""The system views of schema `lake`: their names, their columns, and which catalog query gives their rows. Data only.

A view of *history* has a column `snapshot_id`; its rows never change, and none is added to a snapshot that is there. The
others show a state: the one that a transaction sees. Times are in UTC.
"""

from __future__ import annotations

import re

from lakelite.model import RESERVED_SCHEMA
from lakelite.records import dataclass

METADATA = re.compile(r"\b(?:information_schema\b|(?:duckdb|pg|pragma|sqlite)_|(?:show|describe)\b)", re.IGNORECASE)
"""What a text has that may name DuckDB's metadata functions, or what stands on them."""
OF_LAKE = re.compile(rf"\b{RESERVED_SCHEMA}\b", re.IGNORECASE)
"""What a text has that may name a system view."""
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SystemView:
    """`columns`: name and DuckDB type of each. `loaded`: those that are loaded, in the order of the query `look_<name>` or of
    the transaction's rows; the others (`named`) are the names of the table whose id is loaded."""

    name: str
    columns: Columns
    loaded: Columns

    @property
    def is_history(self) -> bool:
        return ("snapshot_id", "BIGINT") in self.columns


def _view(name: str, columns: str, named: tuple[str, ...] = ()) -> SystemView:
    pairs = tuple((pair.split()[0], pair.split()[1]) for pair in columns.split(","))
    return SystemView(name, pairs, tuple(pair for pair in pairs if pair[0] not in named))


VIEWS = {
    view.name: view
    for view in (
        _view(
            "snapshots",
            "snapshot_id BIGINT, parent_id BIGINT, branch VARCHAR, committed_at TIMESTAMP, author VARCHAR, message VARCHAR, operation VARCHAR,"
            "statements VARCHAR[], isolation VARCHAR, base_snapshot_id BIGINT, attempts BIGINT, transaction_id VARCHAR, rows_added BIGINT,"
            "rows_removed BIGINT, merge_parent_id BIGINT",
        ),
        _view(
            "tables",
            "table_id BIGINT, schema_name VARCHAR, table_name VARCHAR, row_count BIGINT, fragment_count BIGINT, deleted_count BIGINT,"
            "size_bytes BIGINT, comment VARCHAR",
        ),
        _view("views", "view_id BIGINT, schema_name VARCHAR, view_name VARCHAR, sql VARCHAR, comment VARCHAR"),
        _view(
            "columns",
            "table_id BIGINT, schema_name VARCHAR, table_name VARCHAR, column_name VARCHAR, column_index BIGINT, data_type VARCHAR,"
            "is_nullable BOOLEAN, column_default VARCHAR, field_id BIGINT, comment VARCHAR",
        ),
        _view(
            "table_options",
            "table_id BIGINT, schema_name VARCHAR, table_name VARCHAR, option_name VARCHAR, value VARCHAR, default_value VARCHAR, is_own BOOLEAN",
        ),
        _view(
            "fragments",
            "fragment_id BIGINT, table_name VARCHAR, storage VARCHAR, path VARCHAR, row_count BIGINT, deleted_count BIGINT, size_bytes BIGINT,"
            "first_snapshot_id BIGINT, schema_name VARCHAR, table_id BIGINT, partition VARCHAR",
            named=("table_name", "schema_name"),
        ),
        _view("deletion_vectors", "fragment_id BIGINT, snapshot_id BIGINT, cardinality BIGINT, table_id BIGINT"),
        _view(
            "compositions",
            "output_fragment_id BIGINT, source_fragment_id BIGINT, source_order BIGINT, output_start BIGINT, live_count BIGINT,"
            "physical_count BIGINT, ordered BOOLEAN, snapshot_id BIGINT, table_id BIGINT",
        ),
        _view(
            "resolutions",
            "snapshot_id BIGINT, winner_snapshot_id BIGINT, table_name VARCHAR, rung BIGINT, row_count BIGINT, explanation VARCHAR,"
            "schema_name VARCHAR, table_id BIGINT",
        ),
        _view("branches", "name VARCHAR, head_snapshot_id BIGINT, base_snapshot_id BIGINT, created_at TIMESTAMP"),
        _view("tags", "name VARCHAR, tagged_snapshot_id BIGINT, branch VARCHAR, created_at TIMESTAMP"),
        _view(
            "merge_conflicts",
            "table_name VARCHAR, row_id BIGINT, kind VARCHAR, base VARCHAR, ours VARCHAR, theirs VARCHAR, resolution VARCHAR, key VARCHAR",
        ),
        _view("settings", "name VARCHAR, value VARCHAR, scope VARCHAR, description VARCHAR"),
    )
}
