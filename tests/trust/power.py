"""Power loss: the calls and bytes of a workload are recorded with strace, and the states that a disk may legally be in are built and opened.

What is legal is POSIX's minimum: a write is sure to be on disk after a sync of its file, the making, renaming or removal of a name after a
sync of its directory; each one that was not synced may be there or not, and in any company. So a missing sync of a directory shows, which
no file system that is at hand would show. The file of SQLite's shared memory is no part of it: nobody reads it after a crash.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from crashing import catalogued_files, data_files, rows

import lakelite
from lakelite.catalog import opened
from lakelite.transaction import commit as committing
from trust import bugs, strace
from trust.figures import Failure, Figures
from trust.places import folder_in_memory

PROMISE = "Power loss at any moment: every acknowledged commit is on disk, whole, whatever the disk had not been told to keep"
HOW = "the calls and bytes of a workload (a new lake, inline and file commits, ALTER, OPTIMIZE, VACUUM, checkpoints), recorded by strace; legal disk states rebuilt and opened"
SIZES = (40, 140, 4000)  # images

TRACED = "openat,open,write,pwrite64,fsync,fdatasync,ftruncate,rename,link,unlink,unlinkat,mkdir,rmdir,statfs,close,lseek"
MARK = "/acknowledged"  # asked for in vain, to say in the trace what was acknowledged
STATEMENTS = (
    "CREATE TABLE t (a BIGINT)",
    "INSERT INTO t VALUES (1), (2)",
    "INSERT INTO t SELECT range + 10 FROM range(2000)",
    "DELETE FROM t WHERE a % 3 = 0",
    "CREATE TABLE u AS SELECT range AS b, 'x' AS s FROM range(1500)",
    "UPDATE t SET a = a + 10000 WHERE a < 100",
    "INSERT INTO u SELECT range, 'y' FROM range(1200)",
    "ALTER TABLE u ADD COLUMN c INTEGER DEFAULT 7",
    "OPTIMIZE t",
    "DELETE FROM u WHERE b < 40",
    "VACUUM RETAIN 0 HOURS",
    "DROP TABLE u",
    "INSERT INTO t SELECT range FROM range(1100)",
)
ODDS = (0.0, 1.0, 0.5, 0.15, 0.85)  # that something which was not synced is there


# In the process that strace watches.


def work(lake: str, bug: str | None) -> None:
    """Opens a new lake and runs the statements, saying what was acknowledged."""
    committing.CHECKPOINT_BYTES, opened.WAL_BYTES_KEPT = 400_000, 100_000  # so that some commits are followed by a checkpoint, and most are not
    with bugs.bug(bug), closing(lakelite.connect(lake, autocommit=True)) as con:
        con.execute("SET threads = 1; SET upkeep = off")
        for number, sql in enumerate(STATEMENTS, start=1):
            con.execute(sql).close()
            with suppress(OSError):
                os.statvfs(f"{MARK}/{number}")


# What a disk may hold.


@dataclass
class Node:
    """A file: its bytes for sure, and what was done to it since (`offset, bytes`, or None and a length)."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int | None, Any]] = field(default_factory=list)

    def sync(self) -> None:
        self.durable = self.bytes_with(lambda: True)
        self.pending = []

    def bytes_with(self, is_there: Callable[[], bool]) -> bytearray:
        found = bytearray(self.durable)
        for offset, what in self.pending:
            if is_there():
                apply(found, offset, what)
        return found


def apply(content: bytearray, offset: int | None, what: Any) -> None:
    if offset is None:
        del content[what:]
        content.extend(bytes(what - len(content)))
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(what)] = what


@dataclass
class Disk:
    """Files and folders below one root, as the calls so far left them. `names`: path → node (None: a folder), for sure; `steps`: what was
    done to names since, by folder: lists of (path, node or None, made or removed) that belong together."""

    names: dict[str, Node | None] = field(default_factory=dict)
    steps: list[tuple[str, list[tuple[str, Node | None, bool]]]] = field(default_factory=list)
    now: dict[str, Node | None] = field(default_factory=dict)

    def change(self, folder: str, *changes: tuple[str, Node | None, bool]) -> None:
        self.steps.append((folder, list(changes)))
        perform(self.now, list(changes))

    def sync_folder(self, folder: str) -> None:
        for _, changes in [step for step in self.steps if step[0] == folder]:
            perform(self.names, changes)
        self.steps = [step for step in self.steps if step[0] != folder]

    def image(self, is_there: Callable[[], bool]) -> dict[str, bytes | None]:
        """One legal state: path → bytes, or None for a folder. What lies in a folder that is not there is not there."""
        names = dict(self.names)
        for _, changes in self.steps:
            if is_there():
                perform(names, changes)
        found: dict[str, bytes | None] = {}
        contents = {id(node): bytes(node.bytes_with(is_there)) for node in names.values() if node is not None}
        for path in sorted(names):
            node = names[path]
            if os.path.dirname(path) in ("", *found):
                found[path] = None if node is None else contents[id(node)]
        return found


def perform(names: dict[str, Node | None], changes: list[tuple[str, Node | None, bool]]) -> None:
    for path, node, made in changes:
        if made:
            names[path] = node
        else:
            names.pop(path, None)


# From the trace to the disk.

_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_OF_DESCRIPTOR = re.compile(r"<((?:\\x[0-9a-f]{2})+)>(\(deleted\))?")
_RESULT = re.compile(r"\) += (-?\d+)")
IGNORED = "-shm"


class Replay:
    """Follows the calls of a trace in the folder `root`, and stops at every moment at which the power may go."""

    def __init__(self, trace: Path, root: Path) -> None:
        self.trace, self.root = trace, str(root)
        self.disk = Disk()
        self.acknowledged = 0

    def moments(self) -> Iterator[bool]:
        """Behind every call that changes something, or says that something was acknowledged (True)."""
        for call in strace.calls(self.trace):
            strings = [bytes.fromhex(text.replace("\\x", "")).decode("latin-1") for text in _STRING.findall(call.text)]
            if call.name == "statfs":
                if strings and strings[0].startswith(MARK):
                    self.acknowledged = int(strings[0].rsplit("/", 1)[1])
                    yield True
            elif (match := _RESULT.search(call.text)) and int(match[1]) >= 0 and self.see(call, strings):
                yield False

    def see(self, call: strace.Call, strings: list[str]) -> bool:
        descriptors = [bytes.fromhex(found[1].replace("\\x", "")).decode("latin-1") for found in _OF_DESCRIPTOR.finditer(call.text) if not found[2]]
        if call.name in ("openat", "open"):
            return bool(descriptors) and self.see_open(self.below(descriptors[-1]), call.text)
        if call.name in ("pwrite64", "write", "ftruncate", "fsync", "fdatasync"):
            return bool(descriptors) and self.see_file(self.below(descriptors[0]), call, strings)
        base = descriptors[0] if call.name == "unlinkat" and descriptors else ""
        return self.see_names(call.name, [self.below(os.path.join(base, path)) for path in strings])

    def below(self, path: str) -> str | None:
        """The path below the root; "" is the root itself, None what is elsewhere or of no interest."""
        if path == self.root:
            return ""
        inside = path.startswith(self.root + "/") and not path.endswith(IGNORED)
        return path.removeprefix(self.root + "/") if inside else None

    def see_open(self, path: str | None, text: str) -> bool:
        if path is None or "O_CREAT" not in text:
            return False
        node = self.disk.now.get(path)
        if node is None:
            self.disk.change(os.path.dirname(path), (path, Node(), True))
        elif "O_TRUNC" in text:
            node.pending.append((None, 0))
        return node is None or "O_TRUNC" in text

    def see_file(self, path: str | None, call: strace.Call, strings: list[str]) -> bool:
        if path is None:
            return False
        node = self.disk.now.get(path)
        if node is None:
            if call.name.endswith("sync"):
                self.disk.sync_folder(path)
            return True
        numbers = [int(n) for n in re.findall(r", (\d+)", call.text.split('"')[-1])]
        if call.name.endswith("sync"):
            node.sync()
        elif call.name == "ftruncate":
            node.pending.append((None, numbers[0]))
        else:
            data = strings[0].encode("latin-1")
            assert call.name != "write" or not node.durable, "written from its beginning, by one who does not seek"
            at = numbers[1] if call.name == "pwrite64" else sum(len(what) for _, what in node.pending)
            node.pending.append((at, data))
        return True

    def see_names(self, name: str, paths: list[str | None]) -> bool:
        if not paths or paths[-1] is None:
            return False
        last, folder = paths[-1], os.path.dirname(paths[-1])
        if name == "mkdir":
            self.disk.change(folder, (last, None, True))
        elif name in ("unlink", "unlinkat", "rmdir"):
            self.disk.change(folder, (last, self.disk.now.get(last), False))
        elif name in ("rename", "link"):
            first = paths[0]
            assert first is not None
            node = self.disk.now[first]
            gone = [(first, node, False)] if name == "rename" else []
            assert not gone or os.path.dirname(first) == folder, "a file that moves elsewhere"
            self.disk.change(folder, *gone, (last, node, True))
        return True


# The harness.


def run(seed: int, size: int, bug: str | None = None) -> Figures:
    """`size` images: the least that a disk may hold behind each acknowledgement, then others, drawn."""
    assert strace.IS_THERE, strace.MISSING
    chance = random.Random(seed)
    with folder_in_memory() as folder:
        root = folder / "disk"
        root.mkdir()
        record(folder / "trace", root / "lake", bug)
        moments = list(Replay(folder / "trace", root).moments())
        wanted = drawn(chance, moments, size)
        expected = states()
        failures, images = [], 0
        for what in checked(folder, root, wanted, expected, chance):
            images += 1
            failures += [what] if what else []
    script = f"from trust import power\n\nprint(*power.run({seed}, {size}, {bug!r}).failures, sep='\\n')\n"
    counted = {"calls that change a disk": len(moments), "acknowledged statements": sum(moments), "different disk states opened": images}
    return Figures(counted, tuple(Failure(what, script) for what in failures))


def record(trace: Path, lake: Path, bug: str | None) -> None:
    paths = [str(Path(__file__).parent.parent), str(Path(lakelite.__file__).parent.parent)]
    program = f"import sys; sys.path[:0] = {paths!r}; from trust import power; power.work({str(lake)!r}, {bug!r})"
    options = ["-y", "-xx", "-s", "100000000", "-e", f"trace={TRACED}"]
    subprocess.run([*strace.command(trace, *options), sys.executable, "-c", program], check=True, capture_output=True, timeout=100)


def drawn(chance: random.Random, moments: list[bool], size: int) -> dict[int, list[float]]:
    """By moment, how likely what was not synced is there, in each of its images."""
    planned = [(number, 0.0) for number, is_answer in enumerate(moments) if is_answer]
    others = [(number, odds) for number in range(len(moments)) for odds in ODDS if (number, odds) not in set(planned)]
    planned += chance.sample(others, min(len(others), max(0, size - len(planned))))
    found: dict[int, list[float]] = {}
    for number, odds in planned:
        found.setdefault(number, []).append(odds)
    return found


def checked(folder: Path, root: Path, wanted: dict[int, list[float]], expected: list[Any], chance: random.Random) -> Iterator[str]:
    """What is wrong with each image, or nothing; none is looked at twice."""
    seen: set[tuple[int, str]] = set()
    replay = Replay(folder / "trace", root)
    for number, _ in enumerate(replay.moments()):
        for odds in wanted.get(number, ()):
            image = replay.disk.image(lambda odds=odds: chance.random() < odds)  # type: ignore[misc]
            key = (replay.acknowledged, hashlib.sha256(repr(sorted(image.items())).encode()).hexdigest())
            if key not in seen:
                seen.add(key)
                what = wrong(folder / "image", image, expected[replay.acknowledged : replay.acknowledged + 2])
                yield f"behind call {number}, {replay.acknowledged} statements acknowledged, odds {odds}: {what}" if what else ""


def wrong(folder: Path, image: dict[str, bytes | None], allowed: list[Any]) -> str:
    build(folder, image)
    try:
        if allowed[0] == {} and not (folder / "lake").exists():
            return ""
        with closing(lakelite.connect(folder / "lake", autocommit=True, create=allowed[0] == {})) as con:
            found = {name: sorted(rows(con, f"FROM {name}")) for (name, *_) in rows(con, "SHOW TABLES")}
            if found not in allowed:
                return f"{ {name: len(table) for name, table in found.items()} } rows, where {[{n: len(t) for n, t in a.items()} for a in allowed]} may be"
            con.execute("VACUUM").close()
            if data_files(folder / "lake") != catalogued_files(folder / "lake"):
                return "orphans behind a sweep, or missing files"
            damage = rows(con, "CHECK LAKE")
            con.execute("CREATE TABLE afterwards (a INTEGER)")
            return f"CHECK LAKE: {damage}" if damage else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder)


def build(folder: Path, image: dict[str, bytes | None]) -> None:
    folder.mkdir()
    for path, content in image.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def states() -> list[dict[str, list[tuple[Any, ...]]]]:
    """The tables behind the first n statements, for every n, by plain DuckDB."""
    with closing(duckdb.connect()) as model:
        found = [tables_of(model)]
        for sql in STATEMENTS:
            if not sql.startswith(("OPTIMIZE", "VACUUM")):
                model.execute(sql)
            found.append(tables_of(model))
        return found


def tables_of(model: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(rows(model, f"FROM {name}")) for (name,) in rows(model, "SHOW TABLES")}
