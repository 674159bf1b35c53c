"""What a harness gives back: what it counted, and what did not hold."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Number = int | float


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that did not hold. `what`: in a line or more; `script`: Python that shows it again, run in the root of the checkout."""

    what: str
    script: str


@dataclass(frozen=True, slots=True)
class Figures:
    """`counted`: by name, with the unit in it (`kills`, `slowest reopening, s`), whole numbers or floats; `failures`: none where all held."""

    counted: Mapping[str, Number]
    failures: tuple[Failure, ...] = field(default=())

    def __str__(self) -> str:
        found = ", ".join(f"{value:.3g} {name}" if isinstance(value, float) else f"{value:,} {name}" for name, value in self.counted.items())
        return f"{found}; {len(self.failures)} failures" if self.failures else found


PREAMBLE = "import sys\n\nsys.path[:0] = ['.', 'tests']\n\n"


def again(name: str, seed: int, size: int) -> str:
    """The script that runs a whole harness again; one with a smaller case writes a shorter one."""
    return f"from trust import {name}\n\nprint(*{name}.run({seed}, {size}).failures, sep='\\n')\n"


def leave_script(name: str, number: int, failure: Failure) -> Path:
    """Writes a failure's script where LAKELITE_TRUST_SCRIPTS says, or below the temporary directory; its path."""
    folder = Path(os.environ.get("LAKELITE_TRUST_SCRIPTS") or Path(tempfile.gettempdir(), "lakelite-trust"))
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / f"{name}-{os.getpid()}-{number}.py"
    said = "".join(f"# {line}\n" for line in failure.what.splitlines())
    script.write_text(said + PREAMBLE + failure.script)
    return script


def check(name: str, figures: Figures) -> None:
    """For tests: AssertionError with every failure and the path of its script."""
    told = [f"{failure.what}\n    again: {leave_script(name, i, failure)}" for i, failure in enumerate(figures.failures[:20])]
    assert not told, f"{name}: {figures}\n" + "\n".join(told)
