"""`python -m tests.trust`: what it prints and writes, and what a failure leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lakelite
from trust import registry, report
from trust.figures import Failure, Figures, check, leave_script

ROOT = Path(__file__).parent.parent.parent


def test_one_harness_and_its_table() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(lakelite.__file__).parent.parent)}
    command = [sys.executable, "-m", "tests.trust", "--tier", "0", "--only", "foreign", "--seed", "5"]
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "tier 0, seed 5" in told[0]
    assert "SQLite" in told[0]
    assert told[1] == "| promise | how it is tried | figures | took |"
    assert "| `foreign`: " in told[3]
    assert "0 got in" in told[3]


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_harness_says_what_it_is(name: str) -> None:
    harness = registry.harness(name)
    assert harness.promise
    assert harness.how
    assert len(harness.sizes) == 3
    assert list(harness.sizes) == sorted(harness.sizes)
    assert "|" not in harness.promise + harness.how


def test_a_failure_leaves_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELITE_TRUST_SCRIPTS", str(tmp_path))
    figures = Figures({"things": 1000, "of them, s": 0.123456}, (Failure("a line\nanother", "from trust import kill\n\nprint(kill.KILLED)\n"),))
    assert str(figures) == "1,000 things, 0.123 of them, s; 1 failures"
    script = leave_script("kill", 0, figures.failures[0])
    environment = {**os.environ, "PYTHONPATH": str(Path(lakelite.__file__).parent.parent)}
    assert subprocess.run([sys.executable, str(script)], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout == "-9\n"
    with pytest.raises(AssertionError, match=r"(?s)kill: 1,000 things.*a line\nanother\n +again: /"):
        check("kill", figures)


def test_the_document() -> None:
    outcome = report.Outcome(registry.harness("foreign"), Figures({"got in": 0}), 1.6)
    assert "| 0 got in | 2 s |" in report.document(1, 5, [outcome])
    assert "--tier 1 --seed 5" in report.document(1, 5, [outcome])
