"""Running scripts for a person: results to standard output, everything else to standard error.

Owns the exit codes, the wording of failures and what Ctrl-C does to a running statement. Promises: no traceback (but
with LAKELITE_DEBUG=1), no character on standard error that steers a terminal, and statements and dot commands run one by one in order.
Never parses SQL and never opens a lake.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, field
from typing import Any, Protocol, TextIO

from lakelite import errors
from lakelite.interfaces.commands import obey, separated
from lakelite.interfaces.delivery import Display, columns_of
from lakelite.interfaces.progress import Meter
from lakelite.interfaces.render import Row, Rows
from lakelite.interfaces.values import broken, message
from lakelite.mapping.system_errors import python_error
from lakelite.records import dataclass

DONE, FAILED, USAGE, CANNOT_OPEN, CONFLICT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 5, 130, 141
CANCEL_AGAIN_S = 0.02  # what DuckDB is told between two of its statements is lost
LISTEN_S = 0.1  # a signal may be taken by a thread of a library, and then does not wake the one that has to hear it
IMPATIENT = 3
FETCHED_ROWS = 10_000


class Cursor(Rows, Protocol):
    """What a statement leaves behind."""

    @property
    def rowcount(self) -> int: ...

    @property
    def messages(self) -> Sequence[tuple[type[Exception], Any]]: ...


class Connection(Protocol):
    """The part of a lakelite connection that the command line uses."""

    @property
    def in_transaction(self) -> bool: ...

    def statements(self, script: str, /) -> Iterator[Cursor]: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Runner:
    """A connection and where its results go.

    `verbose`: say after each statement what it did and, with `timer`, how long it took. `notes`: where what is no error is said
    (None: `err`). `has_left`: a script said .quit. `last`: the statements that were typed last. `shown`: what was typed last and
    shows something; `shows_again`: whether it only looks. `draft`: what the next prompt is to begin with (None: none). `meter`: shows how far
    a statement is. `found`: the exit code for what statements that did their work have found wrong (CHECK LAKE).
    """

    connection: Connection
    out: TextIO
    err: TextIO
    mode: InitVar[str] = "box"
    verbose: bool = False
    notes: TextIO | None = None
    has_left: bool = False
    timer: bool = True
    last: str = ""
    shown: str = ""
    shows_again: bool = False
    draft: str | None = None
    meter: Meter | None = None
    display: Display = field(init=False)
    found: int = field(init=False, default=DONE)

    def __post_init__(self, mode: str) -> None:
        self.display = Display(self.out, mode)

    def run(self, script: str, *, keep_going: bool = False, file: str | None = None) -> int:
        """Run every statement and dot command; return the exit code of the first that failed. Stops there unless `keep_going`.

        `file`: where the script comes from, for its errors. Raises BrokenPipeError when nobody reads the output any more.
        """
        found = separated(script)
        return self.go_through(iter(self.connection.statements(found.sql)), found.commands, keep_going=keep_going, file=file)

    def go_through(
        self, statements: Iterator[Cursor], commands: Sequence[tuple[int, str]] = (), *, keep_going: bool = False, file: str | None = None
    ) -> int:
        """As `run`, for statements that run when they are asked for. `commands`: each with how many statements are to run before it."""
        code = DONE
        ran, left = 0, deque(commands)
        while not self.has_left:
            stop = threading.Event()
            try:
                if left and left[0][0] == ran:
                    this = obey(left.popleft()[1], self)
                    if this and not keep_going:
                        return this
                    code = code or this
                    continue
                ran += 1
                if not self.supervise(lambda: self._step(statements, stop), stop):  # noqa: B023  (done before the next turn)
                    return code
            except KeyboardInterrupt:
                self.note("interrupted")
                return INTERRUPTED
            except BrokenPipeError:
                raise
            except Exception as error:
                if stop.is_set():  # what Ctrl-C stopped may say so in its own words
                    self.note("interrupted")
                    return INTERRUPTED
                this = self.report(error, file)
                code = code or this
                if not keep_going or not isinstance(error, errors.Error):
                    return code
        return code

    def _step(self, statements: Iterator[Cursor], stop: threading.Event) -> bool:
        """Run the next statement and print its result; False: there was none left."""
        begin = time.perf_counter()
        cursor = next(statements, None)
        if cursor is None:
            return False
        count = self.display.show(Stoppable(cursor, stop, self.meter), cursor)
        self.display.flush()
        if self.meter is not None:
            self.meter.end()
        for kind, text in cursor.messages:
            if issubclass(kind, errors.Error):  # found by a statement that did what it was to do
                self.found = FAILED
                say(f"error: {text}", self.err)
            else:
                self.note(f"{'warning' if issubclass(kind, errors.Warning) else 'note'}: {text}")
        if self.verbose:
            self.note(what_it_did(cursor, count) + (f", {(time.perf_counter() - begin) * 1000:,.0f} ms" if self.timer else ""))
        return True

    def supervise(self, work: Callable[[], bool], stop: threading.Event) -> bool:
        """Does `work` so that Ctrl-C is heard; `stop` is set then. While it lasts, the meter shows how far it is."""
        meter = self.meter
        if meter is not None:
            meter.begin()
        try:
            return supervised(work, lambda: self._cancel(stop), meter.tick if meter is not None else None, lambda: self.display.is_paging)
        finally:
            if meter is not None:
                meter.end()

    def rows(self, script: str) -> list[Row]:
        """The rows of a small result, for what a command works out of them. Raises an error of lakelite's."""
        found: list[Row] = []

        def work() -> bool:
            for cursor in self.connection.statements(script):
                while cursor.description is not None and (batch := cursor.fetchmany(FETCHED_ROWS)):
                    found.extend(batch)
            return True

        self.supervise(work, threading.Event())
        return found

    def _cancel(self, stop: threading.Event) -> None:
        stop.set()
        self.connection.interrupt()

    def note(self, text: str) -> None:
        """Say something that is no error."""
        say(text, self.notes or self.err)

    def report(self, error: Exception, file: str | None = None) -> int:
        """Say what went wrong; return the exit code for it."""
        return report(error, self.err, file)


def say(text: str, err: TextIO) -> None:
    """One message to `err`, harmless for a terminal, and there broken between words."""
    columns = columns_of(err)
    lines = message(text).split("\n")
    err.write("\n".join(lines if columns is None else (broken(line, columns) for line in lines)) + "\n")
    err.flush()


def report(error: Exception, err: TextIO, file: str | None = None) -> int:
    """Say on `err` what went wrong, and in which `file` of statements; return the exit code for it."""
    if os.environ.get("LAKELITE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error, file=err)
    known = error if isinstance(error, errors.Error) else python_error(error)
    if known is not None:
        told = known.told(columns_of(err))
        say(f"error: {file}: {told}" if file else f"error: {told}", err)
    else:
        kind = f"{type(error).__name__}: " if str(error) else type(error).__name__
        say(f"internal error: {kind}{error} (a bug: please report it with the statement and what LAKELITE_DEBUG=1 adds)".replace("\n", " "), err)
    return CONFLICT if isinstance(error, errors.TransactionConflict) else CANNOT_OPEN if isinstance(error, errors.CannotOpen) else FAILED


def what_it_did(cursor: Cursor, count: int) -> str:
    """In a few words. `count`: of the rows that it gave; below 0: not known."""
    if cursor.description is not None and count >= 0:
        return f"{count:,} row{'' if count == 1 else 's'}"
    if cursor.rowcount >= 0:
        return f"{cursor.rowcount:,} row{'' if cursor.rowcount == 1 else 's'} changed"
    return "done"


@dataclass(frozen=True, slots=True)
class Stoppable:
    """A cursor whose printing ends once `stop` is set."""

    cursor: Cursor
    stop: threading.Event
    meter: Meter | None = None

    @property
    def description(self) -> Sequence[Sequence[Any]] | None:
        return self.cursor.description

    def fetchmany(self, size: int, /) -> Sequence[Row]:
        if self.stop.is_set():
            raise errors.OperationalError("interrupted", hint="the statement was undone; run it again if you want it")
        rows = self.cursor.fetchmany(size)
        if self.meter is not None:
            self.meter.end()
        return rows


def supervised(
    work: Callable[[], bool], cancel: Callable[[], None], tick: Callable[[], None] | None = None, is_elsewhere: Callable[[], bool] = lambda: False
) -> bool:
    """Do `work` on a thread of its own and return its result, so that Ctrl-C is heard at once.

    Ctrl-C calls `cancel` again and again, for a statement may not have begun to listen, until the work ends; then
    KeyboardInterrupt is raised. The third Ctrl-C ends the process: a lake survives that. `tick` is called now and then.
    `is_elsewhere`: Ctrl-C is for others too (a program that has the terminal, what else lives in a notebook's process), and ends none.
    """
    result: list[bool | BaseException] = []
    heard: queue.SimpleQueue[bool] = queue.SimpleQueue()  # that the work is done, or else Ctrl-C: what a handler of signals may put into

    def body() -> None:
        try:
            result.append(work())
        except BaseException as error:
            result.append(error)
        heard.put(True)

    interrupts, is_done = 0, False
    with _ctrl_c(lambda: heard.put(False)):
        threading.Thread(target=body, name="lakelite statement", daemon=True).start()
        while not is_done:
            if interrupts:
                cancel()
            elif tick is not None:
                tick()
            try:
                is_done = heard.get(timeout=CANCEL_AGAIN_S if interrupts else LISTEN_S)
            except queue.Empty:
                continue
            interrupts += not is_done
            if interrupts >= IMPATIENT and not is_elsewhere():
                os._exit(INTERRUPTED)
    if interrupts or not heard.empty():  # Ctrl-C may come when the work has just ended, and is for what would come next
        raise KeyboardInterrupt
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]


@contextmanager
def _ctrl_c(came: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls `came`. As an exception it could come before anybody waits for the work, and would leave that running."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
