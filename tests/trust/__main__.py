"""`python -m tests.trust`: runs the harnesses of a tier, prints a table of their figures, and exits with 1 if anything did not hold."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent), str(TESTS)]  # a harness and the processes that it starts find `trust` as the tests do

from trust import registry, report  # noqa: E402
from trust.figures import leave_script  # noqa: E402

WRITTEN = TESTS.parent / "lakelite" / "TRUST.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description="What lakelite promises, tried, with figures.")
    parser.add_argument("--tier", type=int, choices=(0, 1, 2), default=1, help="0: about a minute; 1: as in the tests; 2: one to two hours")
    parser.add_argument("--only", choices=registry.NAMES, action="append", metavar="NAME", help=f"one of: {', '.join(registry.NAMES)}")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the same seed gives the same cases; else one is drawn")
    parser.add_argument("--write", action="store_true", help=f"write the table to {WRITTEN.relative_to(TESTS.parent)}")
    asked = parser.parse_args()
    if asked.write and asked.only:
        parser.error("--write is for a whole run, not with --only")
    print(report.heading(asked.tier, asked.seed), flush=True)
    outcomes = [one for name in asked.only or registry.NAMES if (one := run(name, asked.tier, asked.seed))]
    print(report.table(outcomes))
    if asked.write:
        WRITTEN.write_text(report.document(asked.tier, asked.seed, outcomes))
    return int(any(outcome.figures.failures for outcome in outcomes))


def run(name: str, tier: int, seed: int) -> report.Outcome | None:
    """None: not in this tier."""
    harness = registry.harness(name)
    size = harness.sizes[tier]
    if size == 0:
        return None
    print(f"{name} (size {size}) …", file=sys.stderr, flush=True)
    begun = time.monotonic()
    figures = harness.run(seed, size)
    for number, failure in enumerate(figures.failures):
        print(f"{name}: {failure.what}\n    again: {leave_script(name, number, failure)}", file=sys.stderr, flush=True)
    return report.Outcome(harness, figures, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
