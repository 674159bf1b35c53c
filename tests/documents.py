"""The code blocks of a Markdown text, and how each is run: the one rule for README.md and the guide in lakelite/docs.

    sql       a script, on a new lake. `-->` behind a statement, or below it, is the result: `-->  [rows]`, `--> has: a part of their text`, or
              `--> error: a part of the error`. A line `-- ann:` says whose connection runs what follows.
    python    runs; what `print(…)  # text` prints is `text`
    console   lines that begin with `$ ` run in a shell, and the lines below each are what it prints
    sh        commands that set something up; a test of their own looks after them
    ipython   cells of a notebook; the tests of the notebook run them
    text      no code: the form of a statement, a picture, another product

`sql continued` goes on where the block of SQL before it in the text ended.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lakelite

ROOT = Path(__file__).parents[1]
GUIDE = Path(lakelite.__file__).parent / "docs"
PAGES = sorted(GUIDE.glob("*.md"))
DOCUMENTS = [ROOT / "README.md", *PAGES]
LANGUAGES = ("sql", "python", "console", "sh", "ipython", "text")
_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(r"(.+?);[ ]*(?:\s*-->[ ]*([^\n]*)|--[^\n]*)?$\s*", re.DOTALL | re.MULTILINE)
_SWITCH = re.compile(r"^-- (\w+):\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """`parts`: the blocks of one session, in order. `line`: where the first one begins."""

    language: str
    parts: tuple[str, ...]
    line: int


def blocks(document: Path) -> list[Block]:
    """The sessions of a document. ValueError: a block has a tag that is none of ours."""
    found: list[Block] = []
    text = document.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        language, _, how = match[1].partition(" ")
        line = text.count("\n", 0, match.start()) + 1
        if language not in LANGUAGES or how not in ("", "continued") or (how and language != "sql"):
            raise ValueError(f"{document.name}, line {line}: {match[1]!r} is no tag of a block")
        if not how:
            found.append(Block(language, (match[2],), line))
            continue
        last = max(index for index, block in enumerate(found) if block.language == language)
        found[last] = Block(language, (*found[last].parts, match[2]), found[last].line)
    return found


def statements(script: str) -> list[tuple[str, str | None]]:
    """Each statement of a script with the result that `-->` promises, or None. Statements end at the end of a line."""
    return [(text.strip(), result or None) for text, result in _STATEMENT.findall(script)]


def run_sql(parts: tuple[str, ...], directory: Path) -> int:
    """Runs the blocks of a session in `directory`, which has to be the current one; returns how many results were compared."""
    compared = 0
    who = "me"
    with ExitStack() as stack:
        people: dict[str, Any] = {}
        for part in parts:
            first, *rest = _SWITCH.split(part)
            for name, script in [(who, first), *zip(rest[::2], rest[1::2], strict=True)]:
                who = name
                session = statements(script)
                assert len(session) == re.sub("-->.*", "", script).count(";"), script
                if session and who not in people:
                    people[who] = stack.enter_context(contextlib.closing(lakelite.connect(directory / "shop.lake", autocommit=True, author=who)))
                for statement, promised in session:
                    _check(people[who], statement, promised)
                    compared += promised is not None
    return compared


def _check(connection: Any, statement: str, promised: str | None) -> None:
    found, failure = _outcome(connection, statement)
    if promised is not None and promised.startswith("error: "):
        assert promised.removeprefix("error: ") in (failure or ""), f"{statement}\n{failure}"
        return
    assert failure is None, f"{statement}\n{failure}"
    if promised is not None and promised.startswith("has: "):
        assert promised.removeprefix("has: ") in found, f"{statement}\n{found}"
    elif promised is not None:
        assert found == promised, f"{statement}\n{found}"


def _outcome(connection: Any, statement: str) -> tuple[str, str | None]:
    """The rows as text, and the error's text if it failed."""
    try:
        cursor = connection.execute(statement)
        return ("" if cursor.description is None else str(cursor.fetchall())), None
    except lakelite.Error as error:
        return "", str(error)


def run_python(code: str) -> None:
    """Runs a session in the current directory and compares what it prints."""
    promised = re.findall(r"^ *print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert promised, "the session shows results"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "<session>", "exec"), {"__name__": "document"})
    assert printed.getvalue().splitlines() == promised


def run_console(session: str, directory: Path) -> None:
    """Each command line gives, on standard output, the lines below it."""
    command = directory / "bin" / "lakelite"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lakelite "$@"\n')
    command.chmod(0o755)
    path = {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, flags=re.MULTILINE)
    assert len(found) == session.count("$ ")
    for line, promised in found:
        done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=directory, env=os.environ | path, timeout=60)
        assert (done.stdout, done.stderr) == (promised, ""), line
