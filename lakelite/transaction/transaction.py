"""One transaction: its base, its statements so far, and what they changed. It runs statements and can run them all again.

The state between two statements is a value (`Work`); a statement that fails leaves it as it was, and with it the
transaction. Nothing here takes a lock; commit.py lands it.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import duckdb

from lakelite import steps
from lakelite.errors import Error
from lakelite.language import statements as st
from lakelite.language.parse import uses_clock
from lakelite.mapping.sets import of_set
from lakelite.model import Isolation, Table
from lakelite.storage import fragment as fragments
from lakelite.storage.saved import SavedRows
from lakelite.storage.temporary import Temporaries
from lakelite.transaction import changes as ch
from lakelite.transaction import clock, temporary
from lakelite.transaction.compare import comes_out_the_same, gives_the_same, without_blind
from lakelite.transaction.execution import Call, Done, Execution, Stream
from lakelite.transaction.named import views_mentioned
from lakelite.transaction.record import Differing, Event, Failed, Logged, Looked, Undone, constants, holds_for, statements, undone
from lakelite.transaction.run import READS_ONLY, again, run
from lakelite.transaction.running_again import running_again
from lakelite.transaction.savepoints import Mark, Savepoint, newest, of_blocks
from lakelite.transaction.view import LakeView


class Transaction:
    """Lives from BEGIN (or the first statement) to COMMIT or ROLLBACK. Used by one thread at a time.

    `events`: what it did, in order. `failed_again`: the statement that failed when it ran once more on a newer snapshot.
    `is_intact`: whether no commit has begun to bring it to a newer head. `stays_open`: whether it is open still behind a COMMIT that failed.
    """

    def __init__(self, execution: Execution, *, explicit: bool, isolation: Isolation, read_only: bool, now_us: int) -> None:
        self.execution = execution
        self.explicit = explicit
        self.isolation = isolation
        self.read_only = read_only
        self.now_us = now_us
        self.first_base = execution.view.snapshot_id
        self.attempts = 1
        self.correction = 0  # by how much winners changed the number of rows that the statements were told to have changed
        self.events: list[Event] = []
        self.failed_again: Logged | None = None
        self.is_intact = True
        self.stays_open = False
        self.work = ch.Work(execution.view.namespace, ch.ChangeSet())
        self._savepoints: list[Savepoint] = []
        self._readers: set[object] = set()
        self._unneeded: list[fragments.Staged] = []
        steps.reached("begin")

    @property
    def transaction_id(self) -> str:
        return self.execution.transaction_id

    @property
    def promises_all(self) -> bool:
        """Whether numbers of rows and errors have to come out the same too, not only rows that were shown."""
        return self.explicit and self.isolation == "serializable"

    @property
    def promises_rows(self) -> bool:
        """Whether rows that were shown have to come out the same. In autocommit nothing is handed out before the commit."""
        return self.explicit and self.isolation != "snapshot"

    @property
    def returned_of(self) -> frozenset[int]:
        """The tables of the statements whose RETURNING has to tell of what lands: where that is something else, they have to run again."""
        is_told_already = self.explicit and not self.promises_rows
        return frozenset() if is_told_already else frozenset().union(*(entry.target for entry in self.log if entry.returned is not None))

    @property
    def log(self) -> list[Logged]:
        """The statements that stand."""
        return statements(self.events)

    @property
    def base(self) -> LakeView:
        return self.execution.view

    def run(self, operation: st.Operation, call: Call, many: Sequence[Mapping[str, Any]] | None = None, told: SavedRows | None = None) -> Done:
        """Runs a statement and takes over its outcome. An error leaves the transaction as it was. `told`: what its RETURNING gave before."""
        done = self._told(operation, call, self._once(operation, call, many))
        self.work = done.work
        if isinstance(operation, READS_ONLY):
            if self.promises_rows and done.tables:
                self._keep_temporary()
                self.events.append(Looked(operation, call, self.base, done.work, done.tables, done.repeatable, self.execution.temporaries))
        else:
            target = self._target(operation)
            self._keep_temporary()
            self.events.append(
                Logged(
                    operation, call, many, done.constant, done.is_constant, done.rowcount, target, done.given, done.repeatable, done.tables,
                    told or done.returned, self.execution.temporaries,
                )
            )  # fmt: skip
        return done

    def change_temporary(self, operation: st.Operation, text: str, sets: Sequence[Mapping[str, Any]]) -> temporary.Changed:
        """Runs a statement that concerns what is temporary; one that reads tables of the lake has handed their rows out."""
        call, before = Call(text, sets[0]), self.execution.temporaries
        self.execution.notes.clear()
        with self.moment(operation, call):
            done = temporary.run(self.execution, self.work, operation, call, sets, keeps=self.promises_rows)
        if done.tables:
            self.work = replace(self.work, changes=self.work.changes.with_shown(done.tables, text))
        if done.tables and self.promises_rows:
            self.events.append(Looked(operation, call, self.base, self.work, done.tables, done.repeatable, before, sets))
        self.execution.temporaries = done.temporaries
        return done

    def _keep_temporary(self) -> None:
        """What the last statement read of what is temporary stays as it was, for running again."""
        if self.explicit and self.execution.read_temporary:
            self.execution.engine.temporary.freeze()

    @contextlib.contextmanager
    def seeing(self, temporaries: Temporaries) -> Iterator[None]:
        """Within the block statements see these."""
        before, self.execution.temporaries = self.execution.temporaries, temporaries
        try:
            yield
        finally:
            self.execution.temporaries = before

    def _told(self, operation: st.Operation, call: Call, done: Done) -> Done:
        """`done` of a statement that hands rows out with RETURNING: it is as if a SELECT with its WHERE had shown them."""
        if not self.explicit or done.returned is None:
            return done
        rows_of = self._target(operation) if isinstance(operation, st.Update | st.Delete) else None
        tables = done.tables | (frozenset() if rows_of is None else {rows_of.table_id})
        changes = done.work.changes.with_shown(tables, call.text, self.work.changes)
        return replace(done, work=replace(done.work, changes=changes), tables=tables)

    def run_sets(self, operation: st.Operation, text: str, sets: Sequence[Mapping[str, Any]]) -> int:
        """A statement once for each parameter set, an INSERT … VALUES for all at once; returns the rows changed."""
        if len(sets) > 1 and isinstance(operation, st.Insert) and operation.is_values and not (operation.overwrite or operation.on_conflict):
            return self.run(operation, Call(text, {}), sets).rowcount
        if len(sets) == 1:
            return self.run(operation, Call(text, sets[0])).rowcount
        count = 0
        for number, values in enumerate(sets, 1):
            with of_set(number, len(sets)):
                count += self.run(operation, Call(text, values)).rowcount
        return count

    @contextlib.contextmanager
    def statement(self, operation: st.Operation, text: str, sets: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """A statement of the user's: an error undoes all of it, and goes on record where it has to come out the same."""
        mark = self.mark()
        try:
            yield
        except BaseException as error:
            self.reset(mark)
            if self.promises_all and isinstance(error, Exception) and not isinstance(error, duckdb.InterruptException):
                self.execution.engine.temporary.freeze()
                self.events.append(Failed(operation, text, sets, _as_told(error), self.execution.temporaries))
            raise

    def final_count(self, count: int) -> int:
        """`count` rows that a statement changed, as the last replay or re-evaluation had it."""
        return count if count < 0 else sum(max(0, entry.rowcount) for entry in self.log) + self.correction

    def _texts(self, operation: st.Operation, call: Call) -> list[str]:
        """The statement's text, those of views that it may read, and the defaults and checks that it may use."""
        table = self._target(operation)
        checks = [c.expression for c in table.constraints if c.expression] if table else []
        defaults = [c.default for c in (table.columns if table else ()) if c.default]
        return [call.text, *views_mentioned(self.work.namespace, call.text), *checks, *defaults, *self.execution.temporaries.texts]

    def _once(self, operation: st.Operation, call: Call, many: Sequence[Mapping[str, Any]] | None) -> Done:
        steps.reached("scan")
        self.execution.notes.clear()
        self.execution.read_temporary = False
        with self.moment(operation, call):
            done = run(self.execution, self.work, operation, call, many)
        steps.reached("write")
        return done if done.again is None else replace(done, again=self._at_the_same_moment(done.again, operation, call))

    def _at_the_same_moment(self, again: Callable[[int], Stream], operation: st.Operation, call: Call) -> Callable[[int], Stream]:
        def run_again(rows_per_batch: int) -> Stream:
            with self.moment(operation, call):
                return again(rows_per_batch)

        return run_again

    def moment(self, operation: st.Operation, call: Call) -> AbstractContextManager[None]:
        """now() is the transaction's; outside an explicit one a query may as well ask DuckDB itself."""
        if isinstance(operation, READS_ONLY) and not self.explicit:
            return nullcontext()
        told = any(map(uses_clock, self._texts(operation, call)))
        return clock.fixed(self.execution.engine, self.now_us) if told else nullcontext()

    def _target(self, operation: st.Operation) -> Table | None:
        """The table that the operation's target means now."""
        name = getattr(operation, "target", None)
        return self.work.namespace.find(name.schema, name.name) if isinstance(name, st.Name) else None

    def mark(self) -> Mark:
        """Where `reset` can come back to."""
        return Mark(self.work, len(self.events), len(self.execution.written), self.execution.temporaries)

    def reset(self, mark: Mark) -> None:
        """Undoes what a statement that failed had done since `mark`: nothing of it was handed out."""
        self.work, self.execution.temporaries = mark.work, mark.temporaries
        del self.events[mark.events :]
        self._discard(self.execution.written[mark.written :])

    # Savepoints.

    def savepoint(self, name: str) -> None:
        """SAVEPOINT."""
        self.execution.engine.temporary.freeze()
        self._savepoints.append(Savepoint(name, self.mark()))

    def release(self, operation: st.Release, call: Call) -> None:
        """Forgets a savepoint and all later ones; what was done since stays."""
        index = newest(self._savepoints, operation, call)
        self._savepoints[index:] = of_blocks(self._savepoints[index:])

    def roll_back_to(self, operation: st.RollbackTo, call: Call) -> None:
        """Takes back all that was done since a savepoint, which stays; later ones are gone, and blocks begin there from now on."""
        index = newest(self._savepoints, operation, call)
        mark = self._savepoints[index].mark
        self._savepoints[index + 1 :] = [replace(s, mark=mark) for s in of_blocks(self._savepoints[index + 1 :])]
        self._take_back(mark)

    def begin_block(self, block: object) -> None:
        """A savepoint without a name, for a block inside the transaction."""
        self.execution.engine.temporary.freeze()
        self._savepoints.append(Savepoint("", self.mark(), block))

    def has_block(self, block: object) -> bool:
        """Whether the block began in this transaction, and no block around it has ended."""
        return any(s.block is block for s in self._savepoints)

    def end_block(self, block: object, *, failed: bool) -> None:
        """Keeps what was done since the beginning of the block, or takes it back. Savepoints that were made inside are gone."""
        index = next(index for index, s in enumerate(self._savepoints) if s.block is block)
        if failed:
            self._take_back(self._savepoints[index].mark)
        del self._savepoints[index:]

    def _take_back(self, mark: Mark) -> None:
        """What was handed out stays handed out, and stays on record with what led to it."""
        changes = mark.work.changes.after_undoing(self.work.changes)
        kept = undone(self.events[mark.events :], whole=self.promises_all)
        self.events[mark.events :] = kept
        self.work, self.execution.temporaries = replace(mark.work, changes=changes), mark.temporaries
        if not any(isinstance(event, Undone) for event in kept):
            self._discard(self.execution.written[mark.written :])

    # Running again.

    def copy(self) -> Transaction:
        """The transaction once more: what is done with the copy concerns this one in nothing, and `discard` removes what the copy wrote."""
        twin = copy.copy(self)
        execution = replace(self.execution, written=[], pinned=[], _overlays={})
        moving, past_external, views_read = dict(execution.moving), set(execution.past_external), dict(execution.views_read)
        twin.execution = replace(execution, moving=moving, past_external=past_external, views_read=views_read)
        twin.events, twin._savepoints = list(self.events), list(self._savepoints)
        twin._readers, twin._unneeded = set(), []
        return twin

    def replay(self, view: LakeView, touched: frozenset[int]) -> list[Differing]:
        """Runs everything again, on a newer snapshot; returns what was handed out and would be something else there.

        `touched`: the tables that winners changed. An error is the statement's own: the transaction is over then.
        """
        kept = set(map(id, constants(self.events)))
        old = [s for s in self.execution.written if id(s) not in kept]  # removed behind the comparisons, which read them
        before = self.work.changes
        self.execution.view = view
        self.attempts += 1
        self.correction = 0
        self.work = ch.Work(view.namespace, ch.ChangeSet(shown=before.shown, own_shown=before.own_shown, blind=not before.shown))
        events, self.events = self.events, []
        with self.seeing(self.execution.temporaries):
            differing = self._again(events, touched)
        self._discard(old)
        return differing

    def _again(self, events: Sequence[Event], touched: frozenset[int]) -> list[Differing]:
        differing: list[Differing] = []
        for event in events:
            if not isinstance(event, Undone):
                self.execution.temporaries = event.temporaries
            match event:
                case Undone():
                    mark = self.mark()
                    try:
                        differing += self._again(event.events, touched)
                    except duckdb.InterruptException:
                        raise
                    except (duckdb.Error, Error):  # what went well once and was taken back does not fail now
                        differing.append(Differing("error changed", event.text, frozenset()))
                        self.failed_again = None
                    self._take_back(mark)
                case Looked():
                    if (event.saw_own or event.tables & touched) and not self._same(event, self.execution, self.work):
                        differing.append(Differing("read changed", event.call.text, event.tables))
                    self.events.append(replace(event, view=self.base, work=self.work))
                case Failed():
                    if not self._fails_again(event):
                        differing.append(Differing("error changed", event.text, frozenset()))
                    self.events.append(event)
                case Logged() if event.is_constant and holds_for(event, self._target(event.operation)):
                    with running_again(self, event):
                        self.work = again(self.execution, self.work, event.operation, event.call, event.constant, event.rowcount).work
                    self.events.append(event)
                case Logged() if event.is_constant and self.explicit and not event.repeatable:
                    differing.append(Differing("external data", event.call.text, frozenset({event.table.table_id} if event.table else ())))
                    self.events.append(event)
                case Logged():
                    before, told = self.work, event.returned if self.promises_rows else None
                    with running_again(self, event):
                        done = self.run(event.operation, event.call, event.many, told)
                    if told is not None and not self._returns_again(event, told, done, before):
                        differing.append(Differing("read changed", event.call.text, event.tables | event.target))
                    if self.promises_all and done.rowcount != event.rowcount:
                        tables = frozenset({event.table.table_id} if event.table else ())
                        differing.append(Differing("row count changed", event.call.text, tables))
        return differing

    def _returns_again(self, event: Logged, told: SavedRows, done: Done, before: ch.Work) -> bool:
        """Whether RETURNING gives what it `told`: in `done`, or by a trial on `before` without the rows that blind appends have added since."""
        assert done.returned is not None
        engine = self.execution.engine
        if gives_the_same(engine, told, done.returned):
            return True
        if self.isolation != "write serializable":
            return False
        mark = self.mark()
        execution = without_blind(self.execution, self.first_base)
        try:
            with self.moment(event.operation, event.call):
                trial = run(execution, before, event.operation, event.call)
            return trial.returned is not None and gives_the_same(engine, told, trial.returned)
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, Error):
            return False
        finally:
            self._discard(execution.written[mark.written :])

    def _fails_again(self, failed: Failed) -> bool:
        """Whether a statement gives the error that it gave."""
        mark = self.mark()
        try:
            if temporary.concerns(failed.operation, failed.temporaries):
                self.change_temporary(failed.operation, failed.text, failed.sets)
            else:
                self.run_sets(failed.operation, failed.text, failed.sets)
        except duckdb.InterruptException:
            raise
        except Exception as error:
            return _as_told(error) == failed.error
        finally:
            self.reset(mark)
        return False

    def look_again_at(self, view: LakeView, touched: frozenset[int]) -> list[Differing]:
        """The queries that would give other rows on a newer snapshot, without running anything else again; they are on record as there.

        Those that saw rows of the transaction's own stay as they are: the verdict is that what winners did does not count for them
        (blind appends, compactions), or the transaction runs again.
        """
        differing: list[Differing] = []
        now = replace(self.execution, view=view, _overlays={})

        def moved(event: Event) -> Event:
            match event:
                case Undone():
                    return Undone(tuple(map(moved, event.events)))
                case Looked() if not event.saw_own:
                    work = replace(event.work, namespace=event.work.changes.names_over(view.namespace))
                    if event.may_change(touched) and not self._same(event, now, work):
                        differing.append(Differing("read changed", event.call.text, event.tables))
                    return replace(event, view=view, work=work)
            return event

        self.events = list(map(moved, self.events))
        return differing

    def _same(self, looked: Looked, execution: Execution, work: ch.Work) -> bool:
        with self.moment(looked.operation, looked.call):
            return comes_out_the_same(looked, execution, work, blind_apart=self.isolation == "write serializable")

    def move(self, view: LakeView, work: ch.Work, correction: int) -> None:
        """Takes over what was done as it is on a newer snapshot. `correction`: how many more rows the statements changed there."""
        self.execution.view = view
        self.work = work
        self.correction += correction

    def discard(self) -> None:
        """Removes the files of everything that was written."""
        self._discard(self.execution.written)

    def discard_unpublished(self) -> None:
        """After a commit: removes the files of fragments that were emptied again, or replaced by a replay."""
        published = {id(s) for s in self.work.changes.staged()}
        self._discard([s for s in self.execution.written if id(s) not in published])

    def _discard(self, staged: list[fragments.Staged]) -> None:
        gone = {id(s) for s in staged}
        self.execution.written = [s for s in self.execution.written if id(s) not in gone]
        self._unneeded += staged
        self._remove_unneeded()

    # Results that are still being read.

    def reading(self, reader: object) -> None:
        """A result is open: what was written stays on disk until `released`, also where it has been undone."""
        self._readers.add(reader)

    def released(self, reader: object) -> None:
        """That result is closed. A file that cannot be removed now is tried again with the next, or VACUUM finds it."""
        self._readers.discard(reader)
        with contextlib.suppress(Error):
            self._remove_unneeded()

    def _remove_unneeded(self) -> None:
        while self._unneeded and not self._readers:
            doomed = self._unneeded.pop()  # a result may be released by another thread: each file is taken by one of them
            try:
                fragments.discard(self.execution.paths, [doomed])
            except BaseException:
                self._unneeded.append(doomed)
                raise


def _as_told(error: Exception) -> str:
    """An error as the application was told of it, without names that it may have meant instead."""
    text = error.message if isinstance(error, Error) else str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}"
