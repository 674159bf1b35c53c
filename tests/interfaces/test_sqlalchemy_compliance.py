"""SQLAlchemy's own compliance suite, in a process of its own: what fails is what is listed here, and nothing else.

A part of it runs with the tests. The whole: LAKELITE_WHOLE_SUITE=1 pytest -n 0 tests/interfaces/test_sqlalchemy_compliance.py -o timeout=900
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

import lakelite

TESTS = Path(__file__).parents[1]
WHOLE = os.environ.get("LAKELITE_WHOLE_SUITE") == "1"
CHOSEN = """
    ComponentReflection HasTable TableDDL LongNameBlowout InsertBehavior CTETest SimpleUpdateDelete RowCount TransactionTest
    DistinctOn WindowFunction TrueDiv IntervalTest ExceptionTest
""".split()
OPTIONS = "-q -p no:cacheprovider -p no:xdist -p sqlalchemy.testing.plugin.pytestplugin -c /dev/null --rootdir=. --noconftest --tb=short"
SETUP = "[sqla_testing]\nrequirement_cls=requirements:Requirements\nprofile_file=profiles.txt\n"

# Class and test of what fails, and how often: (in the chosen part, in the whole). The README tells of each reason.
NO_LENGTH = "a VARCHAR has no length, as in DuckDB"
NO_INDEXES = "a lake has no indexes"
TEMPORARY = "constraints of temporary tables have the names that DuckDB gives them"
NO_ORDER = "the rows of a query without ORDER BY come in any order"
NO_RETURNING = "rows of an executemany are not numbered where a table forbids RETURNING (implicit_returning=False)"
DOUBLE = "the quotient of two DECIMALs, and a number in JSON, is a DOUBLE, as in DuckDB"
FAILS: dict[str, tuple[int, int, str]] = {
    "ComponentReflectionTestExtra.test_string_length_reflection": (5, 5, NO_LENGTH),
    "ComponentReflectionTest.test_reflect_table_temp_table": (1, 1, NO_LENGTH),
    "ComponentReflectionTest.test_get_temp_table_indexes": (1, 1, NO_INDEXES),
    "LongNameBlowoutTest.test_long_convention_name": (1, 1, NO_INDEXES),
    "ComponentReflectionTest.test_get_temp_table_unique_constraints": (1, 1, TEMPORARY),
    "ComponentReflectionTest.test_get_multi_unique_constraints": (0, 8, TEMPORARY),
    "DistinctOnTest.test_distinct_on": (1, 1, NO_ORDER),
    "WindowFunctionTest.test_window_range": (1, 1, NO_ORDER),
    "WindowFunctionTest.test_window_range_numeric": (1, 1, NO_ORDER),
    "InsertBehaviorTest.test_no_results_for_non_returning_insert": (2, 2, NO_RETURNING),
    "TrueDivTest.test_truediv_divisor": (2, 2, DOUBLE),
    "JSONTest.test_index_typed_access": (0, 1, DOUBLE),
    "JSONTest.test_index_typed_comparison": (0, 1, DOUBLE),
    "JSONTest.test_path_typed_comparison": (0, 1, DOUBLE),
}


def run_suite(folder: Path, chosen: str) -> ElementTree.Element:
    """Runs the tests of the suite that `chosen` chooses on a new lake in `folder`; its report."""
    (folder / "setup.cfg").write_text(SETUP, encoding="utf-8")
    with lakelite.connect(folder / "suite.lake") as con:
        con.execute("CREATE SCHEMA test_schema")
    place = ["--requirements=requirements:Requirements", "--dburi=lakelite:///suite.lake", "--junitxml=report.xml"]
    quiet = ["-W", "ignore::lakelite.interfaces.sqlalchemy.ddl.LeftOut", "-W", "ignore::pytest.PytestUnknownMarkWarning"]
    command = [sys.executable, "-m", "pytest", *OPTIONS.split(), *place, *quiet, "--maxfail=10000", "-k", chosen, str(TESTS / "alchemy" / "suite.py")]
    path = os.pathsep.join([str(TESTS / "alchemy"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=1800)
    assert done.returncode in (0, 1), done.stdout[-4000:] + done.stderr[-4000:]
    return ElementTree.parse(folder / "report.xml").getroot()


def named(case: ElementTree.Element) -> str:
    """Class and function of a test, without its parameters."""
    found = re.search(r"(\w+?)_lakelite\b", case.get("classname", ""))
    return f"{found[1] if found else case.get('classname')}.{case.get('name', '').partition('[')[0]}"


@pytest.mark.timeout(1800 if WHOLE else 600)
def test_only_what_is_documented_fails(tmp_path: Path) -> None:
    report = run_suite(tmp_path, "" if WHOLE else f"({' or '.join(CHOSEN)}) and not get_multi")
    cases = list(report.iter("testcase"))
    failed = Counter(named(case) for case in cases if case.find("failure") is not None or case.find("error") is not None)
    skipped = sum(case.find("skipped") is not None for case in cases)
    assert failed == {name: counts[WHOLE] for name, counts in FAILS.items() if counts[WHOLE]}
    assert len(cases) - skipped - failed.total() >= (1440 if WHOLE else 180)
