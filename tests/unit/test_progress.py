"""The progress bar."""

from __future__ import annotations

from io import StringIO

from lakelite.interfaces.progress import bar, drawn


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
