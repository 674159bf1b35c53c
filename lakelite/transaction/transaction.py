"""One transaction: its base, its statements so far, and what they changed. It runs statements and can run them all again.

The state between two statements is a value (`Work`); a statement that fails leaves it as it was, and with it the
transaction. Nothing here takes a lock; commit.py lands it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from lakelite import steps
from lakelite.language import statements as st
from lakelite.language.parse import is_volatile, uses_clock
from lakelite.model import Table
from lakelite.storage import fragment as fragments
from lakelite.transaction import changes as ch
from lakelite.transaction import clock, execute
from lakelite.transaction.execution import Call, Done, Execution
from lakelite.transaction.run import READS_ONLY, run
from lakelite.transaction.view import LakeView


@dataclass(frozen=True, slots=True)
class Logged:
    """A statement that wrote, with all that a replay needs. `many`: the parameter sets of an executemany. `table`: its target, as it was then."""

    operation: st.Operation
    call: Call
    many: Sequence[Mapping[str, Any]] | None
    constant: fragments.Staged | None
    is_constant: bool
    rowcount: int
    table: Table | None


class Transaction:
    """Lives from BEGIN (or the first statement) to COMMIT or ROLLBACK. Used by one thread at a time."""

    def __init__(self, execution: Execution, *, explicit: bool, isolation: str, read_only: bool, now_us: int) -> None:
        self.execution = execution
        self.explicit = explicit
        self.isolation = isolation
        self.read_only = read_only
        self.now_us = now_us
        self.first_base = execution.view.snapshot_id
        self.attempts = 1
        self.already_gone = 0  # rows of this transaction's deletes that a winner had deleted first; known once it has landed
        self.log: list[Logged] = []
        self.work = ch.Work(execution.view.namespace, ch.ChangeSet())
        steps.reached("begin")

    @property
    def transaction_id(self) -> str:
        return self.execution.transaction_id

    @property
    def base(self) -> LakeView:
        return self.execution.view

    def run(self, operation: st.Operation, call: Call, many: Sequence[Mapping[str, Any]] | None = None) -> Done:
        """Runs a statement and takes over its outcome. An error leaves the transaction as it was."""
        done = self._once(operation, call, many)
        self.work = done.work
        if not isinstance(operation, READS_ONLY):
            self._remember_what_varies(operation, call)
            self.log.append(Logged(operation, call, many, done.constant, done.is_constant, done.rowcount, self._target(operation)))
        return done

    def _remember_what_varies(self, operation: st.Operation, call: Call) -> None:
        """A statement that answers differently each time cannot be repeated once its rows were shown."""
        changes = self.work.changes
        if self.explicit and not changes.volatile and any(map(is_volatile, self._texts(operation, call))):
            self.work = replace(self.work, changes=replace(changes, volatile=True))

    def _texts(self, operation: st.Operation, call: Call) -> list[str]:
        """The statement's text and the defaults that it may use."""
        table = self._target(operation)
        return [call.text, *(c.default for c in (table.columns if table else ()) if c.default)]

    def _once(self, operation: st.Operation, call: Call, many: Sequence[Mapping[str, Any]] | None) -> Done:
        steps.reached("scan")
        with self._moment(operation, call):
            if many is not None:
                assert isinstance(operation, st.Insert)
                done = execute.insert_many(self.execution, self.work, operation, call, many)
            else:
                done = run(self.execution, self.work, operation, call)
        steps.reached("write")
        return done

    def _moment(self, operation: st.Operation, call: Call) -> AbstractContextManager[None]:
        """now() is the transaction's; outside an explicit one a query may as well ask DuckDB itself."""
        if isinstance(operation, READS_ONLY) and not self.explicit:
            return nullcontext()
        told = any(map(uses_clock, self._texts(operation, call)))
        return clock.fixed(self.execution.engine, self.now_us) if told else nullcontext()

    def _target(self, operation: st.Operation) -> Table | None:
        """The table that the operation's target means now."""
        name = getattr(operation, "target", None)
        return self.work.namespace.find(name.schema, name.name) if isinstance(name, st.Name) else None

    def mark(self) -> tuple[ch.Work, int, int]:
        """Where `reset` can come back to."""
        return self.work, len(self.log), len(self.execution.written)

    def reset(self, mark: tuple[ch.Work, int, int]) -> None:
        """Undoes the statements since `mark`; in an autocommit transaction, all that there was."""
        self.work, statements, written = mark
        del self.log[statements:]
        self._discard(self.execution.written[written:])

    def replay(self, view: LakeView) -> list[int]:
        """Runs every statement that wrote again, on a newer snapshot; returns the new rowcounts. What was handed out stays on record.

        An error is the statement's own: the transaction is over then.
        """
        kept = {id(entry.constant) for entry in self.log if entry.constant is not None}
        self._discard([s for s in self.execution.written if id(s) not in kept])
        before = self.work.changes
        self.execution.view = view
        self.attempts += 1
        self.work = ch.Work(view.namespace, ch.ChangeSet(shown=before.shown, own_shown=before.own_shown, blind=not before.shown))
        entries, self.log = self.log, []
        for entry in entries:
            if entry.is_constant and self._target(entry.operation) == entry.table:  # the same columns: its rows are right as they are
                self.work = execute.again(self.work, entry.operation, entry.call, entry.constant, entry.rowcount).work
                self.log.append(entry)
            else:
                self.run(entry.operation, entry.call, entry.many)
        return [entry.rowcount for entry in self.log]

    def discard(self) -> None:
        """Removes the files of everything that was written."""
        self._discard(self.execution.written)

    def discard_unpublished(self) -> None:
        """After a commit: removes the files of fragments that were emptied again, or replaced by a replay."""
        published = {id(s) for s in self.work.changes.staged()}
        self._discard([s for s in self.execution.written if id(s) not in published])

    def _discard(self, staged: list[fragments.Staged]) -> None:
        gone = {id(s) for s in staged}
        fragments.discard(self.execution.paths, staged)
        self.execution.written = [s for s in self.execution.written if id(s) not in gone]
