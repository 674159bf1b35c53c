"""Small files that one DELETE or UPDATE after the other scans: the columns that they want, held as DuckDB tables.

A scan of a file by key costs its opening and decoding each time, three times what a table in memory does. Taking columns
over costs about one scan each, so that it is done after as many scans as there are columns (the ski rental rule: never more
than twice the best). A file never changes, so what is held of it is always right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from lakelite.model import Field, Fragment, Table
from lakelite.storage import scan

FILES_READ = 4  # so many files of one scan may be hot: each is a scan of its own
CELLS_OF_ONE = 2_000_000
CELLS_KEPT = 4_000_000
TABLES_KEPT = 200  # DuckDB needs 20 to 100 kB for each, however few rows it has
SCANS_KEPT = 10_000
BYTES_OF_ONE = 16 * 1024 * 1024

_Key = tuple[int, tuple[tuple[int, str], ...]]  # fragment id, and field id and type of each column


class HotFiles:
    """What is held of one lake's files. Only `trim`, between statements, drops any of it."""

    def __init__(self, do: Callable[[str], object], database: str) -> None:
        self._do = do
        self._database = database
        self._scans: Counter[_Key] = Counter()
        self._tables: dict[_Key, str] = {}
        self._cells = 0
        self._made = 0
        self._patience = 1

    def tables(self, table: Table, chosen: Sequence[Fragment], path: Callable[[Fragment], str], *, row_ids: bool) -> dict[int, str]:
        """The DuckDB tables to read instead of files, by fragment id; each call counts as a scan of these fragments.

        They have the columns of `table` as f<field id>, with `row_ids` the row id, and file_index and file_row_number as a file scan has.
        """
        wanted = [c.stored for c in table.columns] + ([scan.ROW_ID_STORED] if row_ids else [])
        columns = tuple((field.field_id, field.type) for field in wanted)
        files = [f for f in chosen if f.storage == "parquet" and not f.columns]
        if len(files) > FILES_READ:
            return {}
        found: dict[int, str] = {}
        for fragment in files:
            key = (fragment.fragment_id, columns)
            if key not in self._tables and self._is_hot(fragment, key):
                self._load(fragment, key, wanted, path(fragment))
            if key in self._tables:
                found[fragment.fragment_id] = self._tables[key]
        return found

    def _is_hot(self, fragment: Fragment, key: _Key) -> bool:
        columns = len(key[1])
        if fragment.fragment_id < 0 or fragment.size_bytes > BYTES_OF_ONE or fragment.row_count * columns > CELLS_OF_ONE:
            return False
        self._scans[key] += 1
        return self._scans[key] > columns * self._patience

    def _load(self, fragment: Fragment, key: _Key, wanted: Sequence[Field], path: str) -> None:
        self._made += 1
        name = f"{self._database}.main.hot_{self._made}"
        self._do(f"CREATE TABLE {name} AS {scan.stored_rows(wanted, path)}")
        self._tables[key] = name
        self._cells += fragment.row_count * len(key[1])

    def trim(self) -> None:
        """Drops everything if it has grown past the bounds; what does not fit together is then taken over less readily."""
        if len(self._scans) > SCANS_KEPT:
            self._scans.clear()
        if self._cells <= CELLS_KEPT and len(self._tables) <= TABLES_KEPT:
            return
        self._patience *= 2
        self._scans.clear()
        self._cells = 0
        for key in list(self._tables):
            self._do(f"DROP TABLE {self._tables.pop(key)}")
