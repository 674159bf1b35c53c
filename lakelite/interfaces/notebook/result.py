"""What a statement gave, as a notebook shows it: its rows as a table, or one line of what it did; and the rows for other libraries."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

from lakelite import results
from lakelite.errors import InterfaceError
from lakelite.interfaces.exchange import ROWS_PER_BATCH, Exports
from lakelite.interfaces.notebook.html import Shown, page
from lakelite.interfaces.notebook.kept import Columns, Kept
from lakelite.interfaces.render import Ends, Style, is_text, show_ends
from lakelite.interfaces.values import message, visible
from lakelite.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS, MOST_ROWS = 20, 10_000
SEE_ALL, SEE_THE_REST = ".show_all() shows them, .df() has all", ".df() has all"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`done`: what was done, in a few words. `version`: the one that it made, or None. `carried`: how its commit was carried past others.

    `notes`: what a person could want to know beside that.
    """

    done: str
    version: int | None
    carried: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        """One line, and one for each note."""
        made = [] if self.version is None else [f"version {self.version}" + (f" ({'; '.join(self.carried)})" if self.carried else "")]
        line = ", ".join([self.done, *made, f"{self.seconds * 1000:,.0f} ms"])
        return message("\n".join([visible(line), *(f"note: {note}" for note in self.notes)]))


@dataclass(frozen=True, slots=True)
class Said:
    """Text that is no result, as a dot command says it."""

    text: str

    def __repr__(self) -> str:
        return message(self.text)


class Result(Exports):
    """What a statement gave. `.df()`, `.pl()`, `.to_arrow()` and any Arrow consumer take all its rows, as often as wanted.

    `columns`: name and DuckDB type of each, or None. `outcome`: what the statement did. `len(result)`: how many rows there are.
    """

    def __init__(self, outcome: Outcome, rows: Kept | None, shown: int = SHOWN_ROWS) -> None:
        self.outcome = outcome
        self._rows = rows
        self._shown = shown
        self._ends: Ends | None = None

    @property
    def columns(self) -> Columns | None:
        return None if self._rows is None else self._rows.columns

    def __len__(self) -> int:
        return 0 if self._rows is None else self._rows.count

    def __bool__(self) -> bool:
        return True

    def show_all(self) -> Result:
        """The same with all rows, 10,000 at most, all columns and whole values where it is shown."""
        return Result(self.outcome, self._rows, MOST_ROWS)

    def fetch_record_batch(self, rows_per_batch: int = ROWS_PER_BATCH) -> pa.RecordBatchReader:
        """All rows as a pyarrow RecordBatchReader."""
        import pyarrow as pa

        table = self.to_arrow()
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(rows_per_batch))

    def _left(self) -> results.Result:
        return self._kept().opened()

    def _kept(self) -> Kept:
        if self._rows is None:
            raise InterfaceError("the statement gave no rows", hint="RETURNING gives those that it wrote")
        return self._rows

    def _first(self, rows: Kept) -> Ends:
        """The rows that are shown; a shell asks for them as text and as HTML."""
        if self._ends is None:
            self._ends = rows.ends(self._shown)
        return self._ends

    def _is_whole(self) -> bool:
        return self._shown > SHOWN_ROWS

    def _how_to_see(self) -> str:
        return SEE_THE_REST if self._is_whole() else SEE_ALL

    def __repr__(self) -> str:
        """The table as text, fitted to the screen, and what was done below."""
        if self._rows is None:
            return str(self.outcome)
        out = io.StringIO()
        width = 10_000 if self._is_whole() else shutil.get_terminal_size().columns
        show_ends(self._rows.columns, self._first(self._rows), out, Style(columns=width, see_all=self._how_to_see()))
        return f"{out.getvalue()}{self.outcome}"

    def _repr_html_(self) -> str | None:
        """The table as HTML; None where there is none, or its lines are text."""
        if self._rows is None or is_text([name for name, _ in self._rows.columns]):
            return None
        return page(Shown(self._rows.columns, self._first(self._rows), str(self.outcome), self._is_whole(), self._how_to_see()))
