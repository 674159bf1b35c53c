"""Random SQL on a lake and on plain DuckDB: the same rows, the same counts, the same failures. `LAKELITE_FUZZ_RUNS` by hand.

A failure shows the seed and all statements, which make the smallest script to begin with.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
import randomsql
from oracle import multiset
from racing import flush

import lakelite

RUNS = int(os.environ.get("LAKELITE_FUZZ_RUNS", "12"))
STEPS = 30
COUNTED = ("INSERT", "UPDATE", "DELETE")
SEED = int(os.environ.get("LAKELITE_FUZZ_SEED") or (1 if os.environ.get("CI") else random.SystemRandom().randrange(10**9)))


def outcome(con: Any, sql: str) -> Counter[str] | Exception:
    """The rows, or the error."""
    try:
        return multiset(con.execute(sql).fetchall())
    except (duckdb.Error, lakelite.Error) as error:
        return error


def changed(con: Any, sql: str) -> int | Exception:
    """How many rows a change has changed, or the error; -1 where that is not counted."""
    try:
        cursor = con.execute(sql)
        return int(cursor.rowcount if isinstance(con, lakelite.Connection) else cursor.fetchone()[0]) if sql.split()[0] in COUNTED else -1
    except (duckdb.Error, lakelite.Error) as error:
        return error


def alike(got: object, want: object) -> bool:
    return isinstance(got, Exception) if isinstance(want, Exception) else got == want


def upkeep(con: Any, writer: randomsql.Writer, draw: random.Random) -> str:
    """Something that changes how rows are stored, and nothing else."""
    table = draw.choice(writer.tables)
    if draw.random() < 0.5:
        flush(con, table.name)
        return f"-- flush {table.name}"
    key = next((n for n, kind in table.columns.items() if kind in randomsql.ORDERED), None)
    sql = f"OPTIMIZE {table.name}" + (f" ZORDER BY ({key})" if key and draw.random() < 0.5 else "")
    con.execute(sql)
    return sql


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(RUNS))
def test_random_sql_gives_what_duckdb_gives(number: int, tmp_path: Path) -> None:
    seed = SEED + number
    draw = random.Random(seed)
    writer = randomsql.Writer(draw)
    said: list[str] = [f"-- LAKELITE_FUZZ_SEED={seed} LAKELITE_FUZZ_RUNS=1"]
    with lakelite.connect(tmp_path / "lake", autocommit=True) as ours, duckdb.connect() as plain:
        ours.execute(f"SET inline_rows = {draw.choice([0, 3, 1000])}; SET flush_fragments = {draw.choice([0, 4])}")
        for sql in writer.schema():
            said.append(sql)
            ours.execute(sql)
            plain.execute(sql)
        for _ in range(STEPS):
            if draw.random() < 0.06:
                said.append(upkeep(ours, writer, draw))
            sql = writer.change()
            said.append(sql)
            script = ";\n".join(said)
            got, want = changed(ours, sql), changed(plain, sql)
            assert alike(got, want), f"{script}\ngives {got!r}, not {want!r}"
            for query in (*(f"FROM {t.name}" for t in writer.tables), writer.query(), writer.query()):
                found, wanted = outcome(ours, query), outcome(plain, query)
                assert alike(found, wanted), f"{script};\n{query}\ngives {found!r}, not {wanted!r}"
        assert [finding for finding in ours.execute("CHECK LAKE").fetchall() if finding[0] == "error"] == []
