"""For tests that let processes die: a client of the fork server (crash/server.py), and what to look at after a crash."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import lakelite
import lakelite.interfaces.dbapi  # now, so that the time that opening takes is not that of the import

Event = dict[str, Any]
SERVER = Path(__file__).parent / "crash" / "server.py"


class Server:
    """Runs jobs in forked processes; the events of several jobs may be read in any order."""

    def __init__(self, *under: str) -> None:
        """`under`: the command that runs the server, strace for one."""
        found = [str(Path(lakelite.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]  # the same lakelite as here
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
        self._process = subprocess.Popen(
            [*under, sys.executable, str(SERVER)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ids = itertools.count()
        self._events: dict[int, deque[Event]] = {}

    def start(self, name: str, bug: str | None = None, **arguments: Any) -> Job:
        number = next(self._ids)
        self._events[number] = deque()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "name": name, "bug": bug, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        return Job(self, number)

    def next_event(self, number: int) -> Event:
        assert self._process.stdout is not None
        while not self._events[number]:
            line = self._process.stdout.readline()
            assert line, "the fork server has died"
            event = json.loads(line)
            self._events[event["id"]].append(event)
        return self._events[number].popleft()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)


class Job:
    """A forked process: its events, and how it ends."""

    def __init__(self, server: Server, number: int) -> None:
        self._server = server
        self._number = number
        self.pid: int = self._server.next_event(number)["pid"]

    def wait_for(self, name: str) -> Event:
        """The next event, which has to be `name`."""
        event = self._server.next_event(self._number)
        assert event["event"] == name, event
        return event

    def finish(self) -> tuple[list[Event], int]:
        """All events that are left, and the exit status: negative where a signal ended it."""
        events: list[Event] = []
        while True:
            event = self._server.next_event(self._number)
            if event["event"] == "ended":
                return events, event["status"]
            events.append(event)

    def kill(self) -> tuple[list[Event], int]:
        os.kill(self.pid, signal.SIGKILL)
        return self.finish()


@contextmanager
def opened(lake: Path) -> Iterator[Any]:
    """The lake in autocommit; opening it may take a second of processor time at most (by the clock: trust/reopen.py)."""
    begun = time.process_time()
    con = lakelite.connect(lake, autocommit=True)
    took = time.process_time() - begun
    with closing(con):
        assert took < 1, f"opening took {took:.1f} s"
        yield con


def rows(con: Any, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    return con.execute(sql, parameters).fetchall()


def contents(con: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Every table of the lake (or of a DuckDB database) with its rows, sorted."""
    names = sorted(row[0] for row in rows(con, "SHOW TABLES"))
    return {name: sorted(rows(con, f'SELECT * FROM "{name}"'), key=lambda row: [(value is None, value) for value in row]) for name in names}


def data_files(lake: Path) -> set[tuple[int, str]]:
    return {(int(path.parent.name), path.name) for path in (lake / "data").glob("*/*")}


def catalogued_files(lake: Path) -> set[tuple[int, str]]:
    with closing(sqlite3.connect(lake / "catalog.sqlite")) as catalog:
        return set(catalog.execute("SELECT table_id, path FROM fragments WHERE path IS NOT NULL"))
