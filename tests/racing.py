"""Ways to let transactions meet: one that is stopped before the commit lock while others win, and real processes that race.

A worker opens the lake by itself, waits at the barrier, and gives what it found.
"""

from __future__ import annotations

import faulthandler
import itertools
import multiprocessing
import random
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lakelite
from lakelite import landing, steps
from lakelite.contents import TableState

PATIENCE_S = 100


@contextmanager
def meeting(*wins: Callable[[], object]) -> Iterator[None]:
    """Runs the functions one by one, each when an attempt to commit inside is about to take the commit lock."""
    left = list(wins)
    busy: list[bool] = []

    def hook(step: steps.Step) -> None:
        if step == "sync_directory" and left and not busy:
            busy.append(True)
            left.pop(0)()
            busy.clear()

    before, steps.hook = steps.hook, hook
    try:
        yield
    finally:
        steps.hook = before
    assert not left, f"{len(left)} winners never ran"


def race(work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], patience_s: float = PATIENCE_S) -> list[Any]:
    """Runs `work(barrier, *arguments[i])` in a process each, all at once; what each gave, in that order.

    A failure of one raises with its traceback; one that dies, with its exit code; one that is late, with the stacks of its threads.
    `work` has to stand where a new process finds it: in this directory, and not in a test.
    """
    assert "." not in work.__module__, f"{work.__module__} cannot be imported by a new process"
    context = multiprocessing.get_context("forkserver")  # as new as a spawned one, but for what it would have to import
    context.set_forkserver_preload(["lakelite.interfaces.dbapi", "numpy", "pyarrow.types", "pyroaring", "sqlglot", "duckdb"])
    barrier = context.Barrier(len(arguments))
    with tempfile.TemporaryDirectory() as directory:
        stacks = [Path(directory) / str(i) for i in range(len(arguments))]
        pipes = [context.Pipe(duplex=False) for _ in arguments]
        processes = [
            context.Process(target=_run, args=(work, barrier, answer, stack, patience_s, a))
            for (_, answer), stack, a in zip(pipes, stacks, arguments, strict=True)
        ]
        found: list[tuple[bool, Any]] = []
        try:
            for process, (_, answer) in zip(processes, pipes, strict=True):
                process.start()
                answer.close()
            deadline = time.monotonic() + patience_s + 5
            for (reader, _), process, stack in zip(pipes, processes, stacks, strict=True):
                try:
                    found.append(reader.recv() if reader.poll(deadline - time.monotonic()) else (False, stack.read_text()))
                except EOFError:
                    process.join(PATIENCE_S)
                    found.append((False, f"a process ended with exit code {process.exitcode} and without an answer"))
            for process in processes if all(ok for ok, _ in found) else []:
                process.join(PATIENCE_S)
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
                    process.join()
            for reader, _ in pipes:
                reader.close()
    failed = [answer for ok, answer in found if not ok]
    assert not failed, "\n".join(failed)
    return [answer for _, answer in found]


def _run(work: Callable[..., Any], barrier: Any, answer: Any, stacks: Path, patience_s: float, arguments: tuple[Any, ...]) -> None:
    with stacks.open("w") as file:
        faulthandler.dump_traceback_later(patience_s, file=file)
        try:
            answer.send((True, work(barrier, *arguments)))
        except BaseException:
            barrier.abort()
            answer.send((False, traceback.format_exc()))
        finally:
            faulthandler.cancel_dump_traceback_later()


def mixed(barrier: Any, path: str, number: int, rounds: int) -> dict[str, int]:
    """Appends rows of its own, deletes some of them and of rows that all delete, and adds to rows that all add to; returns the rowcounts."""
    counts = {"shared deletes": 0, "own": 0}
    with lakelite.connect(path, autocommit=True, author=f"worker {number}") as con:
        con.execute("SET inline_rows = 3; SET flush_fragments = 5")
        barrier.wait(PATIENCE_S)
        for i in range(rounds):
            own = 1000 * (number + 1) + 10 * i
            counts["own"] += con.execute("INSERT INTO t SELECT ? + range, 1 FROM range(?)", [own, 2 + i % 4]).rowcount
            counts["own"] -= con.execute("DELETE FROM t WHERE k = ?", [own]).rowcount
            counts["shared deletes"] += con.execute("DELETE FROM t WHERE k BETWEEN ? AND ?", [100 + 5 * i, 100 + 5 * i + 4]).rowcount
            assert con.execute("UPDATE t SET v = v + 1 WHERE k < 3").rowcount == 3
    return counts


def count_up(barrier: Any, path: str, times: int) -> list[int]:
    """Adds one to the counter, `times` times; returns how many winners each met."""
    met = []
    with lakelite.connect(path, autocommit=True) as con:
        barrier.wait(PATIENCE_S)
        for _ in range(times):
            assert con.execute("UPDATE t SET v = v + 1").rowcount == 1
            met.append(len(con.last_commit.resolutions))
    return met


def upsert(barrier: Any, path: str, keys: int, times: int) -> int:
    """Counts in rows that it makes where they are not there yet, and takes some away; returns what it has counted and taken."""
    with lakelite.connect(path, autocommit=True) as con:
        barrier.wait(PATIENCE_S)
        for i in range(times):
            counted = con.execute("INSERT INTO t VALUES (?, 1) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v", [i % keys]).rowcount
            assert counted == 1
            con.execute("INSERT OR IGNORE INTO t VALUES (?, 0)", [100 + i])
    return times


def optimize(barrier: Any, path: str, texts: Sequence[str], times: int) -> list[tuple[int, int]]:
    """Compacts again and again; how many bins each time landed and were dropped."""
    found = []
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("SET target_file_rows = 60")
        barrier.wait(PATIENCE_S)
        for i in range(times):
            landed, dropped, *_ = con.execute(texts[i % len(texts)]).fetchone()
            found.append((landed, dropped))
    return found


def work_or_optimize(barrier: Any, path: str, number: int, rounds: int) -> Any:
    """Of several workers the first compacts, the others are `mixed`."""
    texts = ("OPTIMIZE t", "OPTIMIZE t ZORDER BY (v, k)", "OPTIMIZE t WHERE k < 100")
    return optimize(barrier, path, texts, rounds) if number == 0 else mixed(barrier, path, number, rounds)


def count_up_looking(barrier: Any, path: str, times: int) -> int:
    """The same through the application: reads the counter, writes it, and does it again after each conflict; returns the conflicts."""
    conflicts = 0
    with lakelite.connect(path) as con:
        barrier.wait(PATIENCE_S)
        for _ in range(times):
            while True:
                (value,) = con.execute("SELECT v FROM t").fetchone()
                con.execute("UPDATE t SET v = ?", [value + 1])
                try:
                    con.commit()
                    break
                except lakelite.TransactionConflict:
                    conflicts += 1
    return conflicts


def create(barrier: Any, path: str, number: int) -> str:
    """Creates the lake, a table that all want, and one of its own."""
    barrier.wait(PATIENCE_S)
    with lakelite.connect(path, autocommit=True) as con:
        con.execute(f"CREATE TABLE own_{number} AS SELECT {number} AS n")
        try:
            con.execute("CREATE TABLE wanted (n INTEGER)")
        except lakelite.ProgrammingError as error:
            return "second" if "already exists" in str(error) else repr(error)
    return "first"


def flush(con: Any, name: str) -> None:
    """Moves the inline fragments of a table into a file, as upkeep after a commit does, and no others."""

    def inline(state: TableState) -> list[tuple[Any, ...]]:
        found = tuple(f for _, f in sorted(state.fragments.items()) if f.storage == "inline")
        return [found] if found else []

    con.execute(f"SELECT 1 FROM {name}").fetchall()
    lake = con._session.lake
    landing.compact(lake, lake.view.namespace.find(None, name).table_id, inline)


def append(barrier: Any, path: str, count: int) -> int:
    """Appends rows one by one; returns how many of the commits had a message."""
    with lakelite.connect(path, autocommit=True) as con:
        barrier.wait(PATIENCE_S)
        return sum(bool(con.execute("INSERT INTO t VALUES (?)", [i]).messages) for i in range(count))


def append_flights(barrier: Any, path: str, number: int) -> int:
    """Appends five flights, one by one; returns `number`."""
    con = lakelite.connect(path, autocommit=True)
    barrier.wait(PATIENCE_S)
    for n in range(5):
        con.execute("insert into flights values (?, 'P', ?)", [number, n])
    con.close()
    return number


def merge(barrier: Any, path: str, times: int) -> int:
    """Adds one to each of four counters in turn, each made by whoever is first; returns how many winners were met."""
    met = 0
    with lakelite.connect(path, autocommit=True) as con:
        barrier.wait(PATIENCE_S)
        for i in range(times):
            con.execute(
                "MERGE INTO t USING (SELECT ? AS k) AS s USING (k) WHEN MATCHED THEN UPDATE SET v = v + 1 WHEN NOT MATCHED THEN INSERT VALUES (k, 1)",
                [i % 4],
            )
            met += len(con.last_commit.resolutions)
    return met


def append_lists(barrier: Any, lakes: Sequence[tuple[str, str]], number: int, seed: int, count: int) -> list[list[tuple[Any, bool]]]:
    """On one lake after the other, each with its level: `count` transactions that read lists and sets, and append to them.

    For each lake what each transaction did, and whether it landed: a list of (kind, key, values). Keys are new ones every 25
    transactions, so that processes of one pace meet. Says with a file in the folder of the lake's name and `.done` that it is over.
    """
    found = []
    for path, level in lakes:
        r = random.Random(f"{seed} {number} {level}")
        with lakelite.connect(path, autocommit=True, author=f"process {number}") as con, finishing(path, number):
            con.execute("SET inline_rows = 3; SET flush_fragments = 5; SET target_file_rows = 60")
            barrier.wait(PATIENCE_S)
            found.append([_read_and_append(con, r, level, n // 25, itertools.count(10**6 * number + 10 * n)) for n in range(count)])
    return found


def _read_and_append(
    con: Any, r: random.Random, level: str, epoch: int, values: Iterator[int]
) -> tuple[list[tuple[str, str, tuple[int, ...]]], bool]:
    """A transaction; each fifth is one append in autocommit, each fifth only adds rows."""
    ops: list[tuple[str, str, tuple[int, ...]]] = []
    kind = r.choice(("alone", "blind", "mixed", "mixed", "mixed"))
    con.execute(f"SET isolation_level = '{level}'" if kind == "alone" else f"BEGIN ISOLATION LEVEL {level}")
    try:
        for _ in range(1 if kind == "alone" else r.randrange(1, 5)):
            table, k = "s" if kind == "blind" else r.choice("lmls"), 2 * epoch + r.randrange(2)
            if kind == "mixed" and r.random() < 0.5:
                rows = con.execute(f"SELECT v FROM {table} WHERE k = ?", [k]).fetchall()
                held = tuple(v for (one,) in rows for v in ([one] if table == "s" else one))
                ops.append(("read", f"{table}{k}", held))
            else:
                ops.append(("append", f"{table}{k}", (next(values),)))
                con.execute(LIST_APPENDS[table], {"k": k, "v": ops[-1][2][0]})
        if kind != "alone":
            con.execute("COMMIT")
    except lakelite.TransactionConflict:
        return ops, False
    return ops, True


LIST_TABLES = """
    CREATE TABLE l (k INTEGER, v BIGINT[]); INSERT INTO l SELECT range, [] FROM range(400);
    CREATE TABLE m (k INTEGER PRIMARY KEY, v BIGINT[]);
    CREATE TABLE s (k INTEGER, v BIGINT);
"""
LIST_APPENDS = {
    "l": "UPDATE l SET v = list_append(v, $v) WHERE k = $k",
    "m": "INSERT INTO m VALUES ($k, [$v]) ON CONFLICT (k) DO UPDATE SET v = list_concat(m.v, excluded.v)",
    "s": "INSERT INTO s VALUES ($k, $v)",
}


@contextmanager
def finishing(path: str, number: int) -> Iterator[None]:
    """However the block ends, a file says that this process is done with the lake."""
    folder = Path(f"{path}.done")
    folder.mkdir(exist_ok=True)
    try:
        yield
    finally:
        (folder / str(number)).touch()


def tidy(barrier: Any, lakes: Sequence[str], statements: Sequence[str], workers: int) -> int:
    """On one lake after the other, until all workers are done with it (`finishing`): the statements in turn; how many were run."""
    ran = 0
    for path in lakes:
        with lakelite.connect(path, autocommit=True, author="upkeep") as con:
            con.execute("SET target_file_rows = 60")
            barrier.wait(PATIENCE_S)
            while not (found := Path(f"{path}.done")).exists() or len([*found.iterdir()]) < workers:
                con.execute(statements[ran % len(statements)])
                ran += 1
                time.sleep(0.05)  # the processor is for the others as well
    return ran


def append_or_tidy(barrier: Any, lakes: Sequence[tuple[str, str]], number: int, seed: int, count: int, workers: int) -> Any:
    """`append_lists` for the numbers from 1 to `workers`; 0 compacts, and -1 sweeps."""
    if number > 0:
        return append_lists(barrier, lakes, number, seed, count)
    upkeep = ("VACUUM RETAIN 0 HOURS",) if number else tuple(f"OPTIMIZE {t}{how}" for how in ("", " ZORDER BY (k)") for t in "lms")
    return tidy(barrier, [path for path, _ in lakes], upkeep, workers)


@dataclass(frozen=True, slots=True)
class Waits:
    """Of each commit the seconds that it took, and how many of others landed between its start and its end; and the errors."""

    waits_s: list[float]
    overtaken: list[int]
    errors: list[str]


def commit_without_pause(barrier: Any, path: str, number: int, seconds: float) -> Waits:
    """Appends a row, again and again, for so long."""
    found = Waits([], [], [])
    with lakelite.connect(path, autocommit=True, author=f"writer {number}") as con:
        con.execute("INSERT INTO warm VALUES (?, ?)", [number, 0])
        barrier.wait(PATIENCE_S)
        end = time.monotonic() + seconds
        while (begun := time.monotonic()) < end:
            try:
                con.execute("INSERT INTO t VALUES (?, ?)", [number, len(found.waits_s)])
            except lakelite.Error as error:
                found.errors.append(repr(error))
            else:
                found.waits_s.append(time.monotonic() - begun)
                found.overtaken.append(con.last_commit.snapshot_id - con.last_commit.base_snapshot_id - 1)
    return found
