"""The README's sessions run as they stand there, and give the results that stand there."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import lakelite

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = ["pip install . && lakelite demo", "pip install '.[test]' && pytest"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def statements(script: str) -> list[tuple[str, str | None]]:
    """Each statement of a block with the result that `-->` behind it promises, or None. Statements end at the end of a line."""
    found = re.findall(r"(.+?);[ ]*(?:-->[ ]*([^\n]*)|--[^\n]*)?$\s*", script, flags=re.DOTALL | re.MULTILINE)
    return [(text.strip(), result or None) for text, result in found]


def test_two_commands_set_up_and_run() -> None:
    assert [block.strip() for block in blocks("sh")] == COMMANDS


def test_ci_runs_the_commands_of_the_readme() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line.strip() for line in lines if line.strip() in COMMANDS] == COMMANDS


@pytest.mark.parametrize("code", blocks("python"))
def test_python_session(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    promised = re.findall(r"^ *print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert promised, "the session shows results"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "<session>", "exec"), {"__name__": "readme"})
    assert printed.getvalue().splitlines() == promised


@pytest.mark.parametrize("script", blocks("sql"))
def test_sql_session(script: str, tmp_path: Path) -> None:
    session = statements(script)
    assert len(session) == script.count(";")
    assert any(result for _, result in session)
    with contextlib.closing(lakelite.connect(tmp_path / "shop.lake", autocommit=True)) as con:
        for statement, result in session:
            cursor = con.execute(statement)
            if result is not None:
                assert str(cursor.fetchall()) == result, statement


@pytest.mark.parametrize("session", blocks("console"))
def test_console_session(session: str, tmp_path: Path) -> None:
    """Each command line gives, on standard output, the lines below it."""
    command = tmp_path / "bin" / "lakelite"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lakelite "$@"\n')
    command.chmod(0o755)
    path = {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, flags=re.MULTILINE)
    assert len(found) == session.count("$ ")
    for line, promised in found:
        done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path, env=os.environ | path, timeout=60)
        assert (done.stdout, done.stderr) == (promised, ""), line
