"""What the benchmarks share: medians, alternation, and a table of ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def median_ms(work: Callable[[int], object], times: int, warm: int = 3) -> float:
    """The median wall time of `work(i)` in milliseconds."""
    for i in range(warm):
        work(-1 - i)
    found = []
    for i in range(times):
        start = time.perf_counter()
        work(i)
        found.append((time.perf_counter() - start) * 1000)
    return statistics.median(found)


def alternating_ms(works: Mapping[str, Callable[[int], object]], times: int, warm: int = 2) -> dict[str, float]:
    """Medians of several works that take turns, so that a slow moment of the machine hits all of them.

    What a work returns, if it can be called, clears up behind it, and is not timed.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    for i in range(-warm, times):
        for name, work in works.items():
            start = time.perf_counter()
            clear_up = work(i)
            elapsed = (time.perf_counter() - start) * 1000
            if i >= 0:
                found[name].append(elapsed)
            if callable(clear_up):
                clear_up()
    return {name: statistics.median(values) for name, values in found.items()}


def table(title: str, rows: list[tuple[str, float, float, float]]) -> None:
    """Prints (what, ours, the other's, the wanted highest ratio) with the ratio."""
    print(f"\n{title}")
    print(f"{'':44} {'lakelite':>10} {'other':>10} {'ratio':>7} {'wanted':>7}")
    for what, ours, other, wanted in rows:
        ratio = ours / other
        print(f"{what:44} {ours:10.2f} {other:10.2f} {ratio:7.2f} {'<=' + format(wanted, '.2f'):>7} {'' if ratio <= wanted else 'MISSED'}")
