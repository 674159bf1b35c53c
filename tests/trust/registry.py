"""Which harnesses there are, in the order of the table."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from trust.figures import Figures

NAMES: tuple[str, ...] = (
    "kill",
    "inject",
    "power",
    "full",
    "reopen",
    "foreign",
    "commit_path",
    "elle",
    "stepper",
    "partition",
    "sweep",
    "fairness",
    "long_run",
)


@dataclass(frozen=True, slots=True)
class Harness:
    """A module of this package; see its docstring for the parts."""

    name: str
    promise: str
    how: str
    sizes: tuple[int, int, int]
    run: Callable[[int, int], Figures]


def harness(name: str) -> Harness:
    module = importlib.import_module(f"trust.{name}")
    return Harness(name, module.PROMISE, module.HOW, module.SIZES, module.run)
