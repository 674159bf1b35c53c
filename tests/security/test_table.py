"""The table of ARCHITECTURE.md's section SECURITY: each of its rows names the tests that show it, and they are there."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

import lakelite
from lakelite.interfaces import history

TESTS = Path(__file__).parent.parent
SECTION = (Path(lakelite.__file__).parent / "ARCHITECTURE.md").read_text().partition("\n## SECURITY\n")[2].partition("\n## ")[0]
ROWS = [line for line in SECTION.splitlines() if line.startswith("| ") and not line.startswith("| threat")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_row_names_tests_that_there_are(row: str) -> None:
    named = re.findall(r"`([a-z_/]+\.py)::(\w+)`", row)
    assert named
    for file, test in named:
        assert f"def {test}(" in (TESTS / file).read_text(), (file, test)


def test_the_table_is_whole() -> None:
    of_design = {
        "names",
        "paths",
        "a foreign catalog",
        "SQL that reaches other files",
        "resources",
        "pickles, secrets, modes",
        "network file systems",
    }
    assert {row.split("|")[1].strip() for row in ROWS} >= of_design
    for file in (TESTS / "security").glob("test_*.py"):
        assert file == Path(__file__) or file.name in SECTION, f"no row names a test of {file.name}"


@pytest.mark.parametrize("entry", ["CREATE SECRET s (TYPE s3)", "set http_proxy_Password = 'x'", "select 1 -- my secret"])
def test_the_history_keeps_no_secret(tmp_path: Path, entry: str) -> None:
    assert not history.may_keep(entry)
    assert history.may_keep("SELECT 1")
    history.append(tmp_path / "state" / "history", "SELECT 1")
    assert stat.S_IMODE((tmp_path / "state" / "history").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
