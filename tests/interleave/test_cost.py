"""What resolving reads: the fragments that winners made, and nothing of the table that they left alone.

The table's files are taken away while the transaction commits. Whatever is read again is read from what the winner wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lakelite
from lakelite.model import Fragment
from lakelite.storage.engine import Engine

FILES, ROWS = 6, 5000


@pytest.fixture(params=["inline", "parquet"])
def two(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """Two connections to a lake whose table t (k, v) has FILES files of ROWS rows, with v = 7 in each."""
    path = tmp_path / "lake"
    with lakelite.connect(path, autocommit=True) as m, lakelite.connect(path, autocommit=True) as w:
        w.execute("SET inline_rows = 0; CREATE TABLE t (k INTEGER, v INTEGER)")
        for number in range(FILES):
            w.execute(f"INSERT INTO t SELECT range + {number * ROWS}, range % 100 FROM range({ROWS})")
        for con in (m, w):
            con.execute(f"SET inline_rows = {0 if request.param == 'parquet' else 1000}")
        yield m, w


@contextmanager
def away(files: list[Path]) -> Iterator[None]:
    """Without these files."""
    for file in files:
        file.rename(file.with_suffix(".away"))
    try:
        yield
    finally:
        for file in files:
            file.with_suffix(".away").rename(file)


MINE = ("UPDATE t SET v = v + 1 WHERE v = 7", "DELETE FROM t WHERE v = 7", "UPDATE t SET v = v + 1 WHERE k < 5 OR k = 9999999")
WINNERS = ("INSERT INTO t VALUES (9999999, 7)", "UPDATE t SET v = 7 WHERE k = 3", "DELETE FROM t WHERE k = 7", "UPDATE t SET v = 7 WHERE k IN (7, 8)")


@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("mine", MINE)
def test_a_commit_reads_what_winners_wrote_and_no_other_file(
    two: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: str, winner: str
) -> None:
    m, w = two
    base = sorted(tmp_path.glob("lake/data/*/*.parquet"))
    assert len(base) == FILES
    scanned: set[str] = set()
    addressed = Engine.addressed

    def counted(engine: Engine, state: Any, fragments: Iterable[Fragment], **options: Any) -> Any:
        fragments = list(fragments)
        scanned.update("inline" if f.path is None else Path(f.path).name for f in fragments)
        return addressed(engine, state, fragments, **options)

    m.execute("BEGIN")
    m.execute(mine)
    w.execute(winner)
    with away(base), monkeypatch.context() as patch:
        patch.setattr(Engine, "addressed", counted)
        m.execute("COMMIT")
    assert scanned.isdisjoint(file.name for file in base)
    assert scanned or m.last_commit.resolutions[0].rung == 2 or mine == MINE[2], "what the winner added was read"
    assert m.execute("FROM t ORDER BY ALL").fetchall() == serial(winner, mine)


def serial(*statements: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
        for number in range(FILES):
            plain.execute(f"INSERT INTO t SELECT range + {number * ROWS}, range % 100 FROM range({ROWS})")
        for sql in statements:
            plain.execute(sql)
        return plain.execute("FROM t ORDER BY ALL").fetchall()
