"""The one exception tree of lakelite.

    Warning
    Error
    ├── InterfaceError               misuse of the API: a closed cursor, a statement that is no text
    └── DatabaseError
        ├── DataError                a value does not fit: overflow, a bad cast, a division of the wrong type
        ├── IntegrityError           NOT NULL (and later keys and checks)
        ├── InternalError            a bug of lakelite, or an invariant of the catalog that does not hold
        ├── NotSupportedError        refused by name, with what to use instead
        ├── ProgrammingError         cannot be parsed or bound: carries line, column and a caret
        └── OperationalError         the world: files, locks, memory, interruption
            ├── CannotOpen           this directory cannot be opened as a lake; nothing was written
            ├── TransactionConflict  a true conflict; the transaction was rolled back (SQLSTATE 40001)
            └── CommitUnknown        the answer to a COMMIT was lost; the transaction id says how to find out

This module owns the classes and how they are shown; what other libraries raise becomes one of them in `mapping`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lakelite.cells import width
from lakelite.records import dataclass

ConflictKind = Literal[
    "read changed", "row count changed", "error changed", "changed first", "schema changed", "table dropped", "external data",
    "superseded maintenance", "merge conflict",
]  # fmt: skip

COLUMNS = 80  # of a terminal, for what is longer than a line
SHOWN_BEFORE, SHOWN = 60, 120  # characters of a source line
LEAST_SHOWN = 40  # cells of a source line behind its number; where there are fewer it stands below
DOTS = "..."
SHOWN_STATEMENT = 200  # characters of a statement in a conflict


class Warning(Exception):  # noqa: A001  (PEP 249 asks for this name)
    """PEP 249 Warning: something important that is no error."""


class Error(Exception):
    """Base of every error that lakelite raises.

    Attributes: `message` (one or more sentences), `hint` (what to do, or None), `position` (where in the SQL text, or
    None), `sqlstate` (five characters, or None), `context` (how it came to the error, where that is not the statement that was run but
    an earlier one of its transaction, in whose text `position` is then; or what became of the transaction at COMMIT; else None),
    `is_passing` (whether nothing was done, and the very same may be done again: a lock was not to be had, the catalog not to be written).
    """

    sqlstate: str | None = None
    context: str | None = None
    is_passing = False
    advice: str | None = None  # the hint of an error that is given none

    def __init__(self, message: str, *, hint: str | None = None, position: Position | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.advice
        self.position = position

    def within(self, script: str, start: int, number: int | None) -> None:
        """Says where in a script the error belongs, whose statement `number` (None: it has only one) begins at the character `start`."""
        if self.context is None or self.position is None:
            self.position = _in_script(self.position, script, start, number)

    def __str__(self) -> str:
        return self.told()

    def told(self, columns: int | None = None) -> str:
        """All of it. `columns`: of the terminal, within which the line at the place is to stand, so that the caret is below it."""
        text = self.message
        if self.position is not None:
            text += f"\n{self.position.render(columns)}"
        if self.context:
            text += f"\n{self.context}"
        if self.hint:
            text += f"\nHint: {self.hint}"
        return text


class InterfaceError(Error):
    """The API was used wrongly."""


class DatabaseError(Error):
    """Base of the errors that concern the lake."""


class DataError(DatabaseError):
    """A value cannot be what it has to be."""

    sqlstate = "22000"


class IntegrityError(DatabaseError):
    """A constraint would be violated; the statement did nothing."""

    sqlstate = "23000"


class InternalError(DatabaseError):
    """An invariant does not hold: a bug of lakelite, or a catalog that contradicts itself."""

    sqlstate = "XX000"
    advice = "please report it with the statement that was run; CHECK LAKE tells whether the lake is damaged"


class NotSupportedError(DatabaseError):
    """A statement, type or option that lakelite refuses by name."""

    sqlstate = "0A000"


class ProgrammingError(DatabaseError):
    """A statement that cannot be parsed or bound."""

    sqlstate = "42000"


class OperationalError(DatabaseError):
    """Files, locks, memory, interruption: the statement was right, the world was not."""

    sqlstate = "58000"


class CannotOpen(OperationalError):
    """The directory cannot be opened as a lake. Nothing was written."""

    sqlstate = "08001"


class TransactionConflict(OperationalError):
    """A true conflict with committed transactions. The transaction was rolled back whole.

    `conflicts` holds every conflict of the commit, not only the first.
    """

    sqlstate = "40001"

    def __init__(self, conflicts: tuple[Conflict, ...], *, hint: str | None = None) -> None:
        assert conflicts, "a TransactionConflict names at least one conflict"
        self.conflicts = conflicts
        advice = dict.fromkeys(c.what_to_do for c in conflicts)
        super().__init__("\n".join(c.describe() for c in conflicts), hint=hint or "; ".join(advice))


class CommitUnknown(OperationalError):
    """COMMIT gave an error and the catalog could not be asked whether it landed."""

    sqlstate = "08007"

    def __init__(self, transaction_id: str, cause: str) -> None:
        self.transaction_id = transaction_id
        super().__init__(
            f"the answer to COMMIT was lost: {cause}\nThe transaction {transaction_id} may or may not have landed.",
            hint="do not run it again before you know: open the lake anew, and run"
            f" SELECT snapshot_id FROM lake.snapshots WHERE transaction_id = '{transaction_id}'; it landed if that gives a row",
        )


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text that was run: `line` and `column` count from 1, `source` is the whole line at it.

    `statement`: which statement of a script it is in, from 1; None where there is only one. `exact`: False if no more is
    known than the statement, which begins at this place.
    """

    line: int
    column: int
    source: str
    statement: int | None = None
    exact: bool = True

    @classmethod
    def at(cls, text: str, offset: int) -> Position:
        """The place of the character `offset` (counted from 0) of `text`."""
        offset = max(0, min(offset, len(text)))
        start = text.rfind("\n", 0, offset) + 1
        end = text.find("\n", offset)
        return cls(text.count("\n", 0, offset) + 1, offset - start + 1, text[start : None if end < 0 else end])

    def render(self, columns: int | None = None) -> str:
        """The source line, shortened around the place, and a caret below it; each tab and control character is shown as a space.

        `columns`: how many cells the line may take at most.
        """
        lead = f"LINE {self.line}, COLUMN {self.column}: " if self.exact else f"LINE {self.line}: "
        if self.statement is not None:
            lead = f"STATEMENT {self.statement}, {lead}"
        shown = "".join(c if c.isprintable() else " " for c in self.source)
        at = self.column - 1 if self.exact else 0
        if columns is None:
            above, start, end = "", max(0, at - SHOWN_BEFORE), max(0, at - SHOWN_BEFORE) + SHOWN
        else:
            above, lead = ("", lead) if columns - len(lead) >= LEAST_SHOWN else (f"{lead.rstrip()}\n", "")
            start, end = _fitting(shown, at, columns - len(lead))
        lead += DOTS if start else ""
        line = f"{above}{lead}{shown[start:end]}{DOTS if end < len(shown) else ''}"
        return f"{line}\n{' ' * width(lead + shown[start:at])}^" if self.exact else line


def _fitting(text: str, at: int, cells: int) -> tuple[int, int]:
    """From where to where a text is shown so that it, or what is around the character `at` between dots, takes no more than so many cells."""
    if width(text) < cells:  # the caret may stand behind it
        return 0, len(text)
    room = cells - 2 * len(DOTS) - 1
    start = end = at
    while start and width(text[start - 1 : at]) <= room // 2:
        start -= 1
    while end < len(text) and width(text[start : end + 1]) <= room:
        end += 1
    return start, end


def _in_script(position: Position | None, script: str, start: int, number: int | None) -> Position | None:
    """The place in the script of a place in the statement that begins at `start`; where that is not known, of the statement if there are several."""
    if position is None:
        return None if number is None else replace(Position.at(script, start), statement=number, exact=False)
    line = script.count("\n", 0, start) + position.line
    before = start - (script.rfind("\n", 0, start) + 1) if position.line == 1 else 0
    return replace(position, line=line, column=before + position.column, source=script.split("\n")[line - 1], statement=number)


@dataclass(frozen=True, slots=True)
class Conflict:
    """One thing that could not be reconciled, with all that a person needs to decide what to do.

    `kind`: see ConflictKind. `rows` counts the winner's rows that matter (None: not known); `keys` names up to ten of
    them; `accepted_at` is the isolation level that would have accepted the commit, or None.
    """

    kind: ConflictKind
    table: str
    winner_snapshot_id: int
    winner_committed_at: str
    winner_author: str | None
    winner_statement: str
    statement: str
    explanation: str
    what_to_do: str
    rows: int | None = None
    keys: tuple[str, ...] = ()
    accepted_at: str | None = None

    def describe(self) -> str:
        """All of it as lines of at most 80 columns, as far as words allow."""
        who = f" by {self.winner_author}" if self.winner_author else ""
        parts = [
            f"transaction conflict ({self.kind}) on table {self.table}: {self.explanation}",
            f"  winner: snapshot {self.winner_snapshot_id}, committed {self.winner_committed_at}{who}:",
            f"    {on_one_line(self.winner_statement)}",
            f"  yours: {on_one_line(self.statement)}",
        ]
        if self.rows is not None:
            parts.append(f"  rows changed by the winner: {self.rows}" + (f" ({', '.join(self.keys)})" if self.keys else ""))
        if self.accepted_at:
            parts.append(f"  isolation level {self.accepted_at} would have accepted it")
        return "\n".join(map(_wrapped, parts))


def on_one_line(statement: str) -> str:
    """A statement without line breaks, and of a long one the beginning."""
    text = " ".join(statement.split())
    return text if len(text) <= SHOWN_STATEMENT else text[: SHOWN_STATEMENT - 1] + "…"


def _wrapped(line: str) -> str:
    """`line` in lines of at most 80 columns; those after its first are indented. No word is cut."""
    import textwrap

    return textwrap.fill(line, COLUMNS, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
