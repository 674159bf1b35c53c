"""Results for other libraries: pandas, Polars, pyarrow and whatever takes an Arrow stream. What a cursor offers beside `fetch`.

Types are those of DuckDB's own exports. Each call takes what is left of the result. pandas and Polars are never required:
they are imported by the call that is named after them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from lakelite.batches import uncomplaining
from lakelite.errors import InterfaceError, NotSupportedError
from lakelite.interfaces.extras import needed
from lakelite.results import Result

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa

ROWS_PER_BATCH = 131_072


class Exports(ABC):
    """The whole result at once, or as a stream."""

    @abstractmethod
    def _left(self) -> Result:
        """The rows that are left, as a result that DuckDB streams."""

    def _alone(self, *, whole: bool) -> AbstractContextManager[None]:
        """A block in which no other thread makes an Arrow table of a result of the connection; `whole`: nor runs a statement on it."""
        return nullcontext()

    def df(self) -> pandas.DataFrame:
        """The rows that are left as a pandas DataFrame. InterfaceError if pandas is not installed."""
        needed("pandas")
        return self._left().take(lambda cursor: cursor.df())

    def pl(self) -> polars.DataFrame:
        """The rows that are left as a Polars DataFrame. NotSupportedError for a type that Polars has not."""
        library = needed("polars")
        table = self.to_arrow()
        try:
            frame: polars.DataFrame = library.from_arrow(table, rechunk=False)
        except library.exceptions.PolarsError as error:
            raise NotSupportedError(f"Polars cannot take these columns: {error}", hint="cast them in the query, or use to_arrow()") from error
        return frame

    def to_arrow(self) -> pa.Table:
        """The rows that are left as a pyarrow Table."""
        left = self._left()
        with self._alone(whole=False):
            return left.take(lambda cursor: uncomplaining(cursor.to_arrow_table))

    def fetch_record_batch(self, rows_per_batch: int = ROWS_PER_BATCH) -> pa.RecordBatchReader:
        """The rows that are left as a pyarrow RecordBatchReader, which reads them when they are asked for; memory does not grow with them.

        For that the query runs once more, as a stream; where rows were fetched before, or the query reads DataFrames, the rest
        is copied in memory instead. The snapshot is kept until the reader was read to its end or is collected; so is the connection, if it
        is not closed.
        """
        if not isinstance(rows_per_batch, int) or rows_per_batch < 1:
            raise InterfaceError("rows_per_batch is a whole number, 1 or more", hint="leave it out for the usual size")
        batches = self._left().batches(rows_per_batch)
        batches.owner = self
        return batches.reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The same as an Arrow stream in a PyCapsule: pyarrow, pandas, Polars, DuckDB and others take the cursor itself as a table.

        Who reads the first batch has the rows; a stream that nobody reads takes none. InterfaceError: they have been read already.
        """
        capsule: object = self._left().offered(ROWS_PER_BATCH, self).__arrow_c_stream__(requested_schema)
        return capsule


def exact_table(rows: Exports, gather: Callable[[pa.RecordBatchReader], pa.Table]) -> pa.Table:
    """The rows that are left as a pyarrow Table that another DuckDB reads as they are: where Arrow would round, in DuckDB's own types.

    `gather`: makes it of the batches, while the result is open.
    The setting for that is one of the whole connection: a stream that another thread begins in this moment may have such types as well.
    """
    left = rows._left()
    with rows._alone(whole=True):
        return left.take(lambda cursor: _exact(cursor, gather))


def _exact(cursor: duckdb.DuckDBPyConnection, gather: Callable[[pa.RecordBatchReader], pa.Table]) -> pa.Table:
    switch = cursor.cursor()
    try:
        switch.execute("SET GLOBAL arrow_lossless_conversion = true")
        return gather(uncomplaining(lambda: cursor.to_arrow_reader(ROWS_PER_BATCH)))
    finally:
        switch.execute("SET GLOBAL arrow_lossless_conversion = false")
        switch.close()
