"""The one exception tree of lakelite.

    Warning
    Error
    ├── InterfaceError               misuse of the API: a closed cursor, mixed parameter styles
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

This module owns the classes and their wording. It imports nothing of lakelite and never prints a parameter value.
"""

from __future__ import annotations

from dataclasses import dataclass


class Warning(Exception):  # noqa: A001  (PEP 249 asks for this name)
    """PEP 249 Warning: something important that is no error."""


class Error(Exception):
    """Base of every error that lakelite raises.

    Attributes: `message` (one or more sentences), `hint` (what to do, or None), `position` (where in the SQL text, or
    None), `sqlstate` (five characters, or None).
    """

    sqlstate: str | None = None

    def __init__(self, message: str, *, hint: str | None = None, position: Position | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.position = position

    def __str__(self) -> str:
        text = self.message
        if self.position is not None:
            text += f"\n{self.position.render()}"
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
        super().__init__("\n".join(c.describe() for c in conflicts), hint=hint or conflicts[0].what_to_do)


class CommitUnknown(OperationalError):
    """COMMIT gave an error and the catalog could not be asked whether it landed."""

    sqlstate = "08007"

    def __init__(self, transaction_id: str, cause: str) -> None:
        self.transaction_id = transaction_id
        super().__init__(
            f"the answer to COMMIT was lost ({cause}); transaction {transaction_id} may or may not have landed",
            hint="open the lake again and run DESCRIBE HISTORY: a snapshot with this transaction id means that it did",
        )


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a statement's text: `line` and `column` count from 1, `source` is the whole line at it."""

    line: int
    column: int
    source: str

    @classmethod
    def at(cls, text: str, offset: int) -> Position:
        """The place of the character `offset` (counted from 0) of `text`."""
        offset = max(0, min(offset, len(text)))
        start = text.rfind("\n", 0, offset) + 1
        end = text.find("\n", offset)
        return cls(text.count("\n", 0, offset) + 1, offset - start + 1, text[start : None if end < 0 else end])

    def render(self) -> str:
        """Two lines: the source line, shortened around the place, and a caret below it."""
        lead = f"LINE {self.line}, COLUMN {self.column}: "
        cut = max(0, self.column - 1 - 60)
        shown = self.source[cut : cut + 120]
        dots = "..." if cut else ""
        return f"{lead}{dots}{shown}\n{' ' * (len(lead) + len(dots) + self.column - 1 - cut)}^"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One thing that could not be reconciled, with all that a person needs to decide what to do.

    `kind` is one of: read changed, schema changed, table dropped, external data, history expired. `rows` counts the
    winner's rows that matter (None: not known); `keys` names up to ten of them; `accepted_at` is the isolation level
    that would have accepted the commit, or None.
    """

    kind: str
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
        """All of it as a few lines of text."""
        who = f" by {self.winner_author}" if self.winner_author else ""
        lines = [
            f"transaction conflict ({self.kind}) on table {self.table}: {self.explanation}",
            f"  winner: snapshot {self.winner_snapshot_id}, committed {self.winner_committed_at}{who}: {self.winner_statement}",
            f"  yours: {self.statement}",
        ]
        if self.rows is not None:
            lines.append(f"  rows changed by the winner: {self.rows}" + (f" ({', '.join(self.keys)})" if self.keys else ""))
        if self.accepted_at:
            lines.append(f"  isolation level {self.accepted_at} would have accepted it")
        return "\n".join(lines)
