"""What all tests share: the `lake` fixture, hypothesis profiles, the no-skip switch, and a check that no test leaves anything running."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import lakelite

hypothesis.settings.register_profile("default", deadline=None, max_examples=50)
# What lands or not is to depend on the change alone: the checks before a change lands draw what they drew before. By hand, each run draws anew.
hypothesis.settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("ci"), max_examples=15)  # for tests that run in full elsewhere
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))

# A shell that starts pytest in the background has Ctrl-C ignored, and every process inherits that: here, and in the processes of the
# tests, it is to mean what it means at a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

NO_SKIP = os.environ.get("LAKELITE_NO_SKIP") == "1"
left_running = pytest.StashKey[list[str]]()
running_before = pytest.StashKey[set[Any]]()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Any]:
    """A connection to a new, empty lake in `tmp_path / "lake"`, in autocommit mode."""
    con = lakelite.connect(tmp_path / "lake", autocommit=True)
    yield con
    con.close()


@pytest.fixture(params=["inline", "parquet"])
def connect(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Opens connections to one new lake, in autocommit mode if nothing else is said.

    Small changes lie inline, or in files, which then have key filters however small they are.
    """
    made: list[Any] = []
    if request.param == "parquet":
        monkeypatch.setattr("lakelite.transaction.key_lookup.FILTERED_ROWS", 1)

    def open_one(**options: Any) -> Any:
        con = lakelite.connect(tmp_path / "lake", **{"autocommit": True, **options})
        made.append(con)
        if request.param == "parquet":
            con.execute("SET inline_rows = 0")
        return con

    yield open_one
    for con in made:
        con.close()


def pytest_report_header() -> str:
    """Which lakelite is tested: the installed one or the source tree."""
    return f"lakelite {lakelite.__version__} from {Path(lakelite.__file__).parent}"


# LAKELITE_NO_SKIP=1 (set in CI): a skipped test, or file, is a failure that shows its reason.


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if NO_SKIP and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        where_and_why = report.longrepr
        reason = where_and_why[2] if isinstance(where_and_why, tuple) else str(where_and_why)
        report.outcome = "failed"
        report.longrepr = f"skipped, though LAKELITE_NO_SKIP=1 forbids it: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    forbid_skip(report)
    return report


# Nothing that a test started may outlive the tests. Not checked under pytest-xdist, whose workers are children and threads themselves.


def running() -> set[Any]:
    """The non-daemon threads and the child processes of this process, without the service processes of multiprocessing."""
    threads: set[Any] = {t for t in threading.enumerate() if not t.daemon}
    return threads | {f"process {pid}: {command}" for pid, command in children() if "multiprocessing." not in command}


def children() -> Iterator[tuple[int, str]]:
    """Process id and command line of each child process: all of them on Linux, elsewhere those of multiprocessing."""
    yield from ((p.pid, p.name) for p in multiprocessing.active_children() if p.pid is not None)
    for listing in Path("/proc/self/task").glob("*/children"):
        for pid in listing.read_text().split():
            command = Path("/proc", pid, "cmdline")
            if command.exists():
                yield int(pid), command.read_text().replace("\0", " ").strip() or "(ended, never waited for)"


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[running_before] = running()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("numprocesses", None):
        return
    left = [str(one) for one in running() - session.config.stash[running_before]]
    session.config.stash[left_running] = left
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for one in config.stash.get(left_running, []):
        terminalreporter.write_line(f"ERROR: left running by the tests: {one}", red=True)
