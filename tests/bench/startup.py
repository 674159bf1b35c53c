"""Start-up: `import lakelite`, `lakelite -c "select 1"`, and the prompt in a terminal, against importing DuckDB and sqlglot, by turns.

The modules have to be compiled (`python -m compileall lakelite`, and no PYTHONDONTWRITEBYTECODE), as they are when lakelite is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pexpect
from measure import alternating_ms, table


def main() -> None:
    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    def prompt(directory: str) -> Callable[[], None]:
        session = pexpect.spawn(sys.executable, ["-m", "lakelite", "x.lake"], cwd=directory, env={**os.environ, **environment}, encoding="utf-8")
        session.expect(r"x>\x1b")
        return partial(session.close, force=True)  # pexpect sleeps 0.1 s in it

    directory = tempfile.mkdtemp()
    environment = {"TERM": "xterm", "XDG_STATE_HOME": directory, "XDG_CONFIG_HOME": directory, "PYTHONPATH": str(Path(__file__).parents[2])}
    works = {
        "nothing": lambda i: run("-c", "pass"),
        "import": lambda i: run("-c", "import lakelite"),
        "select": lambda i: run("-m", "lakelite", "-c", "select 1"),
        "prompt": lambda i: prompt(directory),
        "floor": lambda i: run("-c", "import duckdb, sqlglot"),
    }
    medians = alternating_ms(works, 15)
    print(f"\nimport lakelite: {medians['import'] - medians['nothing']:.0f} ms more than an empty Python (wanted: under 250)")
    rows = [('lakelite -c "select 1"', medians["select"], medians["floor"], 1.5), ("the prompt is shown", medians["prompt"], medians["floor"], 2.0)]
    table('start-up, median ms, other = python -c "import duckdb, sqlglot"', rows)


if __name__ == "__main__":
    main()
