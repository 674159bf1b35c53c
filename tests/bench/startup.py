"""Start-up: `import lakelite`, and `lakelite -c "select 1"` against importing DuckDB and sqlglot, by turns."""

from __future__ import annotations

import subprocess
import sys

from measure import alternating_ms, table


def main() -> None:
    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    works = {
        "nothing": lambda i: run("-c", "pass"),
        "import": lambda i: run("-c", "import lakelite"),
        "select": lambda i: run("-m", "lakelite", "-c", "select 1"),
        "floor": lambda i: run("-c", "import duckdb, sqlglot"),
    }
    medians = alternating_ms(works, 15)
    print(f"\nimport lakelite: {medians['import'] - medians['nothing']:.0f} ms more than an empty Python (wanted: under 250)")
    table('start-up, median ms, other = python -c "import duckdb, sqlglot"', [('lakelite -c "select 1"', medians["select"], medians["floor"], 1.5)])


if __name__ == "__main__":
    main()
