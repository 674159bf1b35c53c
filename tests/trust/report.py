"""The table of figures: promise, how it is tried, what came out."""

from __future__ import annotations

import datetime
import os
import platform
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import pyarrow

import lakelite
from trust.figures import Figures
from trust.registry import Harness


@dataclass(frozen=True, slots=True)
class Outcome:
    """A harness that has run, and how long that took."""

    harness: Harness
    figures: Figures
    took_s: float


def heading(tier: int, seed: int) -> str:
    """When, where, with what: a line."""
    versions = f"lakelite {lakelite.__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, DuckDB {duckdb.__version__}"
    where = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores"
    return f"{datetime.date.today()}, {where}; {versions}, pyarrow {pyarrow.__version__}; tier {tier}, seed {seed}"


def row(outcome: Outcome) -> str:
    return f"| {outcome.harness.promise} | `{outcome.harness.name}`: {outcome.harness.how} | {outcome.figures} | {outcome.took_s:.0f} s |"


def table(outcomes: Iterable[Outcome]) -> str:
    return "\n".join(["| promise | how it is tried | figures | took |", "|---|---|---|---|", *map(row, outcomes)])


def document(tier: int, seed: int, outcomes: Iterable[Outcome]) -> str:
    """The file beside ARCHITECTURE.md."""
    return (
        "# What lakelite promises, and the figures of the last whole run\n\n"
        f"Written by `python -m tests.trust --tier {tier} --seed {seed} --write`, which anyone can run in a checkout. {heading(tier, seed)}.\n\n"
        f"{table(outcomes)}\n"
    )
