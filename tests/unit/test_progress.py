"""The progress bar."""

from __future__ import annotations

from io import StringIO

import pytest

from lakelite.interfaces import progress
from lakelite.interfaces.progress import Meter, bar, drawn


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_it_is_drawn_in_its_place_and_wiped_at_the_end() -> None:
    out = Terminal()
    draw = bar(out)
    assert draw is not None
    draw(500, 2_000)
    draw(2_000, 2_000)
    assert out.getvalue() == f"\x1b[K[{'#' * 5}{'-' * 15}] 500 of 2,000 rows\r\x1b[K"


def test_nothing_is_drawn_where_nobody_looks() -> None:
    assert bar(StringIO()) is None


def test_its_ends() -> None:
    assert (drawn(0, 3), drawn(3, 3)) == (f"[{'-' * 20}]", f"[{'#' * 20}]")


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_a_meter_draws_after_a_second_and_wipes_at_the_end(clock: Clock) -> None:
    out = Terminal()
    done: list[float | None] = [25.0]
    meter = Meter(out, lambda: done[0])
    meter.tick()
    meter.begin()
    clock.now += 0.9
    meter.tick()
    meter.end()
    assert out.getvalue() == "", "what is over within a second is not drawn"
    meter.begin()
    clock.now += 5
    meter.tick()
    done[0] = None
    meter.tick()
    assert out.getvalue() == f"\x1b[K[{'#' * 5}{'-' * 15}] 25 % after 5 s, about 15 s left\r"
    meter.end()
    meter.tick()
    assert out.getvalue().endswith("left\r\x1b[K")


def test_a_statement_that_counts_rows_itself_has_one_bar(clock: Clock) -> None:
    out = Terminal()
    meter = Meter(out, lambda: 50.0)
    meter.begin()
    clock.now += 5
    meter.rows(1, 2)
    meter.tick()
    assert out.getvalue() == f"\x1b[K[{'#' * 10}{'-' * 10}] 1 of 2 rows\r"


def test_there_is_no_estimate_before_the_first_percent() -> None:
    assert progress.progress(0.5, 3) == f"[{'-' * 20}] 0 % after 3 s"
    assert progress.progress(100.0, 3).endswith("99 % after 3 s, about 0 s left"), "100 is said by the result"


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(80, f"[{'#' * 5}{'-' * 15}] 25 % after 5 s, about 15 s left"), (40, "25 % after 5 s, about 15 s left"), (20, "25 % after 5 s, ab…")],
)
def test_it_stays_on_one_line_of_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, shown: str) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert progress.fitted(progress.progress(25.0, 5)) == shown
