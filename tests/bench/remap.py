"""What it costs a compaction to take over what a winner deleted meanwhile, against the compaction that would else be done again."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measure import table

import lakelite
from lakelite import steps

ROWS = "SELECT range + {start} AS id, (range % 1000)::BIGINT AS k, 'name_' || (range % 5000) AS s FROM range({count})"
FILES = 8


@contextmanager
def meeting(win: Callable[[], object]) -> Any:
    """Runs `win` when the commit inside is about to take the lock; gives a list with the moment when it was over."""
    over: list[float] = []

    def hook(step: steps.Step) -> None:
        if step == "sync_directory" and not over:
            over.append(0.0)
            win()
            over[0] = time.perf_counter()

    before, steps.hook = steps.hook, hook
    try:
        yield over
    finally:
        steps.hook = before


def optimize(path: Path, rows: int, text: str, deleted: int) -> tuple[float, float]:
    """Milliseconds of an OPTIMIZE without the winner's part, and of its commit, behind a winner that deletes every so manieth row (0: none)."""
    with lakelite.connect(path, autocommit=True) as con, lakelite.connect(path, autocommit=True) as other:
        con.execute("CREATE TABLE t (id BIGINT, k BIGINT, s VARCHAR)")
        for number in range(FILES):
            con.execute("INSERT INTO t " + ROWS.format(start=number * rows // FILES, count=rows // FILES))
        won: list[float] = []

        def win() -> None:
            begin = time.perf_counter()
            if deleted:
                assert other.execute(f"DELETE FROM t WHERE id % {deleted} = 3").rowcount == rows // deleted
            won.append(time.perf_counter() - begin)

        begin = time.perf_counter()
        with meeting(win) as over:
            con.execute(text)
        end = time.perf_counter()
        assert con.execute("SELECT count(*) FROM t").fetchone() == (rows - (rows // deleted if deleted else 0),)
        return (end - begin - won[0]) * 1000, (end - over[0]) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    found = []
    for text in ("OPTIMIZE t", "OPTIMIZE t ZORDER BY (k, id)"):
        with tempfile.TemporaryDirectory(prefix="bench-lakelite-") as folder:
            alone = optimize(Path(folder) / "alone", options.rows, text, 0)
            behind = optimize(Path(folder) / "behind", options.rows, text, 10)
        found.append((f"{text}: remapping", behind[1] - alone[1], alone[0], 1 / 20))
    table(f"{options.rows} rows, {options.rows // 10} of them deleted by a winner, ms; other = the whole compaction", found)


if __name__ == "__main__":
    main()
