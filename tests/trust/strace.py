"""strace: whether it is there, how a fork server is run under it, and what it has written."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IS_THERE = shutil.which("strace") is not None and platform.machine() == "x86_64"
MISSING = "strace on x86-64 is needed: install it, or leave this harness out"
_LINE = re.compile(r"(\d+) +(\w+)\((.*)")
_RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)")
_UNFINISHED = " <unfinished ...>"


@dataclass(frozen=True, slots=True)
class Call:
    """A system call: the thread, its name, the arguments and the result as text."""

    thread: int
    name: str
    text: str


def command(trace: Path | str, *options: str, signals: bool = False) -> list[str]:
    """What a program is run under. Only the calls that `options` name stop it; all do where a signal is injected, which else is lost."""
    return ["strace", "-f", *([] if signals else ["--seccomp-bpf"]), "-o", str(trace), *options]


def calls(trace: Path) -> Iterator[Call]:
    """Each call, whole, in the order of their ends."""
    begun: dict[str, tuple[str, str]] = {}
    with trace.open(errors="replace") as lines:
        for line in lines:
            if match := _LINE.match(line):
                text = match[3].rstrip("\n")
                if text.endswith(_UNFINISHED):
                    begun[match[1]] = match[2], text.removesuffix(_UNFINISHED)
                else:
                    yield Call(int(match[1]), match[2], text)
            elif match := _RESUMED.match(line):
                name, text = begun.pop(match[1])
                yield Call(int(match[1]), name, text + match[3])
