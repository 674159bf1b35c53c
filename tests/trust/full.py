"""A full disk: no file of the process may grow beyond a limit (RLIMIT_FSIZE), which is drawn anew for each statement.

The kernel, not strace, refuses the writes, so that parts of them get through. Statements, and what has to hold, are those of `inject`.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from crashing import Server

from lakelite.transaction import commit as committing
from trust import inject
from trust.figures import Failure, Figures
from trust.places import folder_in_memory

PROMISE = "On a full disk: a typed error, the session goes on, the next commit works once there is room"
HOW = "the size of files limited (RLIMIT_FSIZE) at drawn places, for each of seven kinds of commit; the lake is opened again each time"
SIZES = (14, 28, 2000)  # statements

LARGEST = (9_000, 60_000, 400_000)  # of a data file; of the WAL in one commit; of the catalog


def act(tell: Callable[..., None], lake: str, kind: str, limit: int) -> None:
    """Runs the statement while no file may grow beyond `limit` bytes, tells its outcome and that of the next commit without the limit, and dies."""
    committing.CHECKPOINT_BYTES = 0
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    session = inject.Session(lake, kind)
    session.opened()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    tell("outcome", **session.outcome(inject.KINDS[kind][1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    inject.next_fails(tell, session)
    os.kill(os.getpid(), signal.SIGKILL)


def run(seed: int, size: int) -> Figures:
    """`size` statements, the kinds in turns."""
    chance = random.Random(seed)
    kinds = [kind for kind in inject.KINDS if kind != "opening"]
    planned = [(kinds[n % len(kinds)], chance.randrange(LARGEST[n % len(LARGEST)])) for n in range(size)]
    with folder_in_memory() as folder, closing(Server()) as server:
        inject.make_lake(folder / "template")
        told = [(kind, limit, *one(server, folder, kind, limit)) for kind, limit in planned]
    script = "from trust import full\n\nprint(full.again({0!r}, {1}))\n"
    failures = tuple(Failure(f"{kind}, {limit} bytes: {what}", script.format(kind, limit)) for kind, limit, _, what in told if what)
    counted = {"statements": size, "answered by an error": sum(heard == "error" for *_, heard, _ in told)}
    return Figures(counted, failures)


def one(server: Server, folder: Path, kind: str, limit: int) -> tuple[str, str]:
    lake = Path(shutil.copytree(folder / "template", folder / "lake"))
    events, status = server.start("trust.full:act", lake=str(lake), kind=kind, limit=limit).finish()
    case = inject.Case(kind, "any", 0, "ENOSPC", goes_on=True)
    found = inject.heard(events), inject.wrong(case, lake, events, status)
    shutil.rmtree(lake)
    return found


def again(kind: str, limit: int) -> str:
    """For a script: runs one statement; what is wrong, or nothing."""
    with folder_in_memory() as folder, closing(Server()) as server:
        inject.make_lake(folder / "template")
        return one(server, folder, kind, limit)[1]
