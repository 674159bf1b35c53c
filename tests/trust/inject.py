"""Every file call of a commit, made to fail or to be the last: strace injects SIGKILL, EIO or ENOSPC into one call of one statement.

No code of lakelite, SQLite, pyarrow or DuckDB knows of it. strace counts the calls of each thread for itself, from 0 for a new one, and
one rule (`when=K`) holds for all processes that it watches: the statement runs in a thread of its own, which makes K − n calls for
nothing first, so that the n-th call of the statement is the one. K is greater than what the server makes by itself.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import duckdb
from crashing import Event, Server, catalogued_files, data_files, rows

import lakelite
from lakelite.transaction import commit as committing
from trust import strace
from trust.figures import Failure, Figures
from trust.places import folder_in_memory

PROMISE = (
    "Whatever file call of a commit fails, or is the last before kill -9: a typed error that tells the truth, the session goes on, the next commit works, "
    "nothing acknowledged is lost, nothing is left"
)
HOW = "strace injects SIGKILL, EIO and ENOSPC (six in a row) into each file call of seven kinds of commit, and of opening; the lake is opened again each time"
SIZES = (30, 126, 10**6)  # cases at most

MARGIN = 2000  # more calls of one name than a case makes: a session that opens the lake eight times makes some 200 each time
A_SERVER = 100  # cases: by what a server does for each of them it comes nearer to the faults itself
Fault = Literal["kill", "EIO", "ENOSPC"]
FAULTS: Mapping[Fault, tuple[str, int]] = {"kill": ("signal=KILL", 1), "EIO": ("error=EIO", 1), "ENOSPC": ("error=ENOSPC", 6)}
WRITING = frozenset({"pwrite64", "write", "openat", "mkdir", "fsync", "fdatasync", "ftruncate", "rename", "link"})
NUMBERS = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "lseek": 8, "pread64": 17, "pwrite64": 18, "access": 21,
    "fcntl": 72, "flock": 73, "fsync": 74, "fdatasync": 75, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "link": 86, "unlink": 87,
    "readlink": 89, "getdents64": 217, "openat": 257, "newfstatat": 262, "unlinkat": 263, "faccessat": 269, "fallocate": 285,
}  # fmt: skip

SETUP = (
    "SET inline_rows = 0",
    "CREATE TABLE t AS SELECT range AS a FROM range(20)",
    "INSERT INTO t SELECT range + 50 FROM range(20)",
    "DELETE FROM t WHERE a = 60",
    "INSERT INTO t SELECT range + 80 FROM range(5)",
)
KINDS = {
    "inline insert": ("SET inline_rows = 1000", "INSERT INTO t VALUES (1000), (1001)"),
    "parquet insert": ("SET inline_rows = 0", "INSERT INTO t SELECT range + 100 FROM range(20)"),
    "delete": ("SET inline_rows = 0", "DELETE FROM t WHERE a < 5 OR a = 55"),
    "update": ("SET inline_rows = 0", "UPDATE t SET a = -a WHERE a > 10 AND a < 60"),
    "create table as": ("SET inline_rows = 0", "CREATE TABLE u AS SELECT range AS b FROM range(5)"),
    "optimize": ("SET inline_rows = 0", "OPTIMIZE t"),
    "vacuum": ("SET inline_rows = 0", "VACUUM RETAIN 0 HOURS"),
    "opening": ("SET inline_rows = 0", "FROM t"),  # the statement comes behind the opening, which meets the fault as well
}
LOOKING = ("optimize", "vacuum", "opening")  # change no row
NEXT = "INSERT INTO t VALUES (-1)"
BEGIN, END = "/begin", "/end"  # asked for in vain, so that the trace shows where the statement begins and ends
Tables = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Case:
    """The `nth` call `call` of a statement of `kind` meets `fault`. `goes_on`: else the session dies behind the answer."""

    kind: str
    call: str
    nth: int
    fault: Fault
    goes_on: bool


# In the process that strace watches.


def act(tell: Callable[..., None], lake: str, kind: str, call: str, dummies: int, tries: int, goes_on: bool) -> None:
    """Runs the statement in a thread that makes `dummies` calls first; tells its outcome and, if it goes on, that of the next commit; then dies."""
    committing.CHECKPOINT_BYTES = 0
    session = Session(lake, kind)
    if kind != "opening":
        session.opened()
    make = ctypes.PyDLL(None).syscall

    def work() -> None:
        for _ in range(dummies):
            make(ctypes.c_long(NUMBERS[call]), ctypes.c_long(-1), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0))
        with suppress(OSError):
            os.statvfs(BEGIN)
        answer = session.outcome(KINDS[kind][1])
        with suppress(OSError):
            os.statvfs(END)
        tell("outcome", **answer)
        left = tries if goes_on else 0
        while left and next_fails(tell, session):
            left -= 1
        os.kill(os.getpid(), signal.SIGKILL)  # what is not durable by now never will be

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Session:
    """A connection that is opened when it is first needed."""

    def __init__(self, lake: str, kind: str) -> None:
        self.lake, self.kind = lake, kind
        self.connection: Any = None

    def opened(self) -> Any:
        if self.connection is None:
            con = lakelite.connect(self.lake, autocommit=True)
            con.execute(f"{KINDS[self.kind][0]}; SET threads = 1; SET upkeep = off")  # one thread: strace counts each for itself
            con.execute("FROM t").fetchall()
            self.connection = con
        return self.connection

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.opened().execute("FROM t").fetchall())

    def outcome(self, sql: str) -> dict[str, Any]:
        """`error`: the class of what was raised, or None; `message`; `typed`: whether it is one that tells of the world, and not of a bug."""
        try:
            self.opened().execute(sql).close()
        except BaseException as error:
            return {"error": type(error).__name__, "message": str(error), "typed": isinstance(error, lakelite.OperationalError)}
        return {"error": None, "message": "", "typed": True}


def next_fails(tell: Callable[..., None], session: Session) -> bool:
    """Tries the next commit; whether that failed. What is there then is read twice where a late fault meets the first reading."""
    found = session.outcome(NEXT)
    tell("next", **found)
    if found["error"] is None:
        typed = True
        try:
            rows = session.rows()
        except Exception as error:
            typed = isinstance(error, lakelite.OperationalError)
            rows = session.rows()
        tell("rows", typed=typed, rows=rows)
    return found["error"] is not None


# The harness.


def run(seed: int, size: int, faults: tuple[Fault, ...] = tuple(FAULTS)) -> Figures:
    """`size` cases, drawn so that kinds, calls and faults come up alike; all of them, if there are no more."""
    assert strace.IS_THERE, strace.MISSING
    with folder_in_memory() as folder:
        template = folder / "template"
        make_lake(template)
        floor, made = recorded(folder, template)
        every = [case for case in all_cases(made) if case.fault in faults]
        cases = drawn(random.Random(seed), every, size)
        found = {fault: done(folder, template, floor, [c for c in cases if c.fault == fault], fault) for fault in faults}
    told = [one for outcomes in found.values() for one in outcomes]
    failures = tuple(Failure(f"{case}: {what}", again(case)) for case, _, what in told if what)
    counted = {
        "file calls of seven statements and of opening": sum(sum(c.values()) for c in made.values()), "cases": len(told), "possible cases": len(every),
        "killed": sum(heard == "killed" for _, heard, _ in told), "kills that were not met": sum(c.fault == "kill" and h != "killed" for c, h, _ in told),
        "answered by an error": sum(heard == "error" for _, heard, _ in told),
        "errors not seen": sum(c.fault != "kill" and h == "done" for c, h, _ in told),
    }  # fmt: skip
    return Figures(counted, failures)


def again(case: Case) -> str:
    return f"from trust import inject\nfrom trust.inject import Case\n\nprint(inject.one({case!r}))\n"


def one(case: Case) -> str:
    """For a script: runs one case; what is wrong, or nothing."""
    with folder_in_memory() as folder:
        make_lake(folder / "template")
        floor, _ = recorded(folder, folder / "template")
        return done(folder, folder / "template", floor, [case], case.fault)[0][2]


def make_lake(lake: Path) -> None:
    with closing(lakelite.connect(lake, autocommit=True)) as con:
        for sql in SETUP:
            con.execute(sql)


def recorded(folder: Path, template: Path) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """How often each call is made: by the server itself, and by the statement of each kind."""
    trace = folder / "trace"
    threads: list[Counter[str]] = []
    with closing(Server(*strace.command(trace, "-e", "trace=statfs," + ",".join(NUMBERS)))) as server:
        for number, kind in enumerate(KINDS):
            lake = shutil.copytree(template, folder / f"recorded{number}")
            server.start("trust.inject:act", lake=str(lake), kind=kind, call="read", dummies=0, tries=1, goes_on=False).finish()
    floor: Counter[str] = Counter()
    main, inside = 0, 0
    for call in strace.calls(trace):
        main = main or call.thread
        if call.name == "statfs":
            if f'"{BEGIN}"' in call.text:
                inside = call.thread
                threads.append(Counter())
            elif f'"{END}"' in call.text:
                inside = 0
        elif call.thread == main:
            floor[call.name] += 1
        elif call.thread == inside:
            threads[-1][call.name] += 1
    return floor, dict(zip(KINDS, threads, strict=True))


def all_cases(made: Mapping[str, Counter[str]]) -> Iterator[Case]:
    for number, (kind, counts) in enumerate(made.items()):
        for call, count in counts.items():
            for nth in range(1, count + 1):
                for fault in FAULTS:
                    if fault != "ENOSPC" or call in WRITING:
                        yield Case(kind, call, nth, fault, goes_on=fault == "ENOSPC" or (fault == "EIO" and (number + nth) % 2 == 0))


def drawn(chance: random.Random, cases: list[Case], size: int) -> list[Case]:
    """Of each kind, call and fault as many as fit, in turns."""
    chance.shuffle(cases := list(cases))
    turns: Counter[tuple[str, str, str]] = Counter()
    ranked: list[tuple[int, int, Case]] = []
    for number, case in enumerate(cases):
        stratum = (case.kind, case.call, case.fault)
        ranked.append((turns[stratum], number, case))
        turns[stratum] += 1
    return [case for _, _, case in sorted(ranked, key=lambda r: r[:2])[:size]]


def done(folder: Path, template: Path, floor: Counter[str], cases: list[Case], fault: Fault) -> list[tuple[Case, str, str]]:
    """Each case with what was heard (killed, error, done), and what is wrong, or nothing."""
    told: list[tuple[Case, str, str]] = []
    for begin in range(0, len(cases), A_SERVER):
        told += done_by_one(folder, template, floor, cases[begin : begin + A_SERVER], fault)
    return told


def done_by_one(folder: Path, template: Path, floor: Counter[str], cases: list[Case], fault: Fault) -> list[tuple[Case, str, str]]:
    told: list[tuple[Case, str, str]] = []
    with injecting(floor, fault) as (server, first):
        for case in cases:
            lake = shutil.copytree(template, folder / "lake")
            events, status = server.start(
                "trust.inject:act", lake=str(lake), kind=case.kind, call=case.call, dummies=first[case.call] - case.nth, tries=FAULTS[fault][1] + 1,
                goes_on=case.goes_on,
            ).finish()  # fmt: skip
            told.append((case, heard(events), wrong(case, lake, events, status)))
            shutil.rmtree(lake)
    return told


@contextmanager
def injecting(floor: Counter[str], fault: Fault) -> Iterator[tuple[Server, dict[str, int]]]:
    """A server in whose children the calls from number `first[call]` on meet the fault."""
    what, length = FAULTS[fault]
    first = {call: floor[call] * 5 // 4 + MARGIN for call in NUMBERS}
    rules = [option for call, k in first.items() for option in ("-e", f"inject={call}:{what}:when={k}..{k + length - 1}")]
    with closing(Server(*strace.command("/dev/null", "-e", "trace=" + ",".join(NUMBERS), *rules, signals=fault == "kill"))) as server:
        yield server, first


def heard(events: list[Event]) -> str:
    answers = [event for event in events if event["event"] == "outcome"]
    return "killed" if not answers else "error" if answers[0]["error"] else "done"


def wrong(case: Case, lake: Path, events: list[Event], status: int) -> str:
    """What does not hold, or nothing."""
    answers = [event for event in events if event["event"] == "outcome"]
    nexts = [event for event in events if event["event"] == "next"]
    if status != -signal.SIGKILL or any(event["event"] == "error" for event in events):
        return f"the session ended by itself: {status}, {events}"
    if not all(event.get("typed", True) for event in events):
        return f"an error that is no OperationalError: {events}"
    if case.goes_on and answers and (not nexts or nexts[-1]["error"]):
        return f"the next commit does not work: {events}"
    if sum(event.get("error") is not None for event in events) > FAULTS[case.fault][1]:
        return f"more errors than faults: {events}"
    before, after = states(case.kind)
    if not answers or answers[0]["error"] == "CommitUnknown":
        allowed = [before, after]
    else:
        allowed = [before if answers[0]["error"] else after]
    if nexts and nexts[-1]["error"] is None:
        allowed = [{**state, "t": sorted([*state["t"], (-1,)])} for state in allowed]
    seen = [[tuple(row) for row in event["rows"]] for event in events if event["event"] == "rows"]
    if any(found not in [state["t"] for state in allowed] for found in seen):
        return f"the session sees {seen}, behind {events}"
    return wrong_again(lake, allowed, events)


def wrong_again(lake: Path, allowed: list[Tables], events: list[Event]) -> str:
    """The same for a session that opens the lake afterwards."""
    try:
        with closing(lakelite.connect(lake, autocommit=True)) as con:
            found = {name: sorted(rows(con, f"FROM {name}")) for (name, *_) in rows(con, "SHOW TABLES")}
            con.execute("VACUUM").close()
            if found not in allowed:
                return f"the lake holds {found}, behind {events}"
            if data_files(lake) != catalogued_files(lake):
                return f"left behind or missing: {data_files(lake) ^ catalogued_files(lake)}"
            if damage := rows(con, "CHECK LAKE"):
                return f"CHECK LAKE: {damage}, behind {events}"
            con.execute(NEXT)
    except Exception as error:
        return f"opened again: {type(error).__name__}: {error}"
    return ""


@cache
def states(kind: str) -> tuple[Tables, Tables]:
    """What the lake holds before the statement and after it, by plain DuckDB."""
    with closing(duckdb.connect()) as model:
        for sql in SETUP[1:]:
            model.execute(sql)
        before = tables_of(model)
        if kind not in LOOKING:
            model.execute(KINDS[kind][1])
        return before, tables_of(model)


def tables_of(model: duckdb.DuckDBPyConnection) -> Tables:
    return {name: sorted(rows(model, f"FROM {name}")) for (name,) in rows(model, "SHOW TABLES")}
