"""CHECK LAKE names each kind of damage, and finds nothing in a sound lake."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import lakelite


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with files, inline rows, vectors, and compositions with and without a row map; no connection is open."""
    path = tmp_path_factory.mktemp("made") / "lake"
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("SET inline_rows = 10; CREATE TABLE t (k INTEGER, v VARCHAR)")
        con.execute("INSERT INTO t SELECT range, 'a' || range FROM range(200)")
        con.execute("INSERT INTO t SELECT range, 'b' || range FROM range(200)")
        con.execute("DELETE FROM t WHERE k % 3 = 0")
        con.execute("OPTIMIZE t ZORDER BY (v, k)")
        con.execute("INSERT INTO t SELECT range, 'c' || range FROM range(200)")
        con.execute("DELETE FROM t WHERE k = 7")
        con.execute("DELETE FROM t WHERE k = 8")
        con.execute("INSERT INTO t VALUES (1, 'inline')")
        con.execute("CREATE TABLE u AS FROM t; INSERT INTO u SELECT range, 'x' FROM range(20); OPTIMIZE u; DROP TABLE u")
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "lake"))


def check(path: Path) -> list[tuple[str, str, str, str]]:
    with lakelite.connect(path, autocommit=True) as con:
        return con.execute("CHECK LAKE").fetchall()


def edit(path: Path, *statements: str) -> None:
    with sqlite3.connect(path / "catalog.sqlite") as catalog:
        for statement in statements:
            assert catalog.execute(statement).rowcount > 0, statement
    catalog.close()


def live_files(path: Path) -> list[Path]:
    with lakelite.connect(path, autocommit=True) as con:
        return [path / p for (p,) in con.execute("SELECT path FROM lake.fragments WHERE path IS NOT NULL ORDER BY row_count DESC").fetchall()]


def test_a_sound_lake_has_no_findings(path: Path) -> None:
    with lakelite.connect(path, autocommit=True) as con:
        found = con.execute("CHECK LAKE")
        assert [d[0] for d in found.description] == ["severity", "object", "finding", "what_to_do"]
        assert found.fetchall() == []


def flip(path: Path) -> None:
    file = live_files(path)[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def truncate(path: Path) -> None:
    file = live_files(path)[0]
    file.write_bytes(file.read_bytes()[:-10])


def swap(path: Path) -> None:
    a, b = live_files(path)[:2]
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)


@pytest.mark.parametrize(
    ("damage", "words"),
    [(flip, "SHA-256"), (truncate, "bytes"), (lambda p: live_files(p)[0].unlink(), "read the data file"), (swap, "bytes")],
)
def test_damaged_files(path: Path, damage: Callable[[Path], None], words: str) -> None:
    damage(path)
    found = check(path)
    assert found
    assert all(row[0] == "error" and row[1].startswith("data/") for row in found)
    assert any(words in row[2] for row in found), found


@pytest.mark.parametrize(
    ("statement", "name", "words"),
    [
        (
            "UPDATE fragments SET row_count = row_count + 1 WHERE storage = 'parquet'"
            " AND fragment_id IN (SELECT fragment_id FROM fragment_lives WHERE end_snapshot_id IS NULL)",
            "data/",
            "the catalog says",
        ),
        ("UPDATE fragments SET size_bytes = size_bytes + 1 WHERE storage = 'inline'", "fragment ", "bytes"),
        ("UPDATE inline_rows SET ipc = CAST(ipc || x'00' AS BLOB)", "fragment ", "SHA-256"),
        ("DELETE FROM inline_rows", "fragment ", "no rows of it"),
        ("UPDATE deletion_vectors SET crc32 = crc32 + 1 WHERE end_snapshot_id IS NULL", "deletion vector of fragment", "CRC"),
        ("UPDATE deletion_vectors SET cardinality = cardinality + 1 WHERE end_snapshot_id IS NULL", "deletion vector of fragment", "cardinality"),
        ("UPDATE deletion_vectors SET row_count = row_count + 5 WHERE end_snapshot_id IS NULL", "deletion vector of fragment", "rows, but"),
        ("UPDATE deletion_vectors SET end_snapshot_id = end_snapshot_id + 1 WHERE end_snapshot_id IS NOT NULL", "deletion vector of", "at once"),
        ("UPDATE compositions SET output_start = output_start + 1 WHERE source_order = 1", "composition of fragment", "does not fit"),
        ("UPDATE compositions SET live_count = live_count - 1, physical_count = physical_count - 1", "composition of fragment", "composition"),
        ("UPDATE compositions SET vector_snapshot_id = NULL WHERE vector_snapshot_id IS NOT NULL", "composition of fragment", "fit"),
        ("UPDATE compositions SET ordered = 1 - ordered", "fragment ", "go together"),
        ("UPDATE row_maps SET positions = x'00'", "composition of fragment", "row map"),
        ("DELETE FROM row_maps", "fragment ", "go together"),
        (
            "UPDATE fragments SET first_row_id = first_row_id + 1 WHERE has_row_ids = 0 AND storage = 'parquet'",
            "composition of fragment",
            "other rows",
        ),
        ("UPDATE effects SET rows_added = rows_added + 1", "snapshot ", "its effect says"),
        ("DELETE FROM effects WHERE kinds = 'append'", "snapshot ", "nothing"),
        ("UPDATE table_lives SET end_snapshot_id = 100000 WHERE end_snapshot_id IS NULL", "fragment ", "was dropped"),
        ("UPDATE counters SET next_id = 1 WHERE name = 'row'", "counter row", "in use"),
        ("UPDATE fragment_lives SET end_snapshot_id = NULL WHERE end_snapshot_id IS NOT NULL", "snapshot ", "its effect says"),
    ],
)
def test_damaged_catalogs(path: Path, statement: str, name: str, words: str) -> None:
    edit(path, statement)
    found = check(path)
    assert any(row[0] == "error" and row[1].startswith(name) and words in row[2] for row in found), found


def test_sources_that_were_exchanged(path: Path) -> None:
    edit(
        path,
        "UPDATE compositions SET source_order = source_order + 10 WHERE ordered = 0",
        "UPDATE compositions SET source_fragment_id = 12345 WHERE ordered = 0 AND source_order = 10",
    )
    assert check(path) == []  # an unknown source may have expired
    edit(path, "UPDATE row_maps SET positions = (SELECT positions FROM row_maps)", "UPDATE fragments SET first_row_id = 1 WHERE has_row_ids = 0")
    assert any("other rows in the output" in row[2] for row in check(path))


def test_orphans_are_information(path: Path) -> None:
    stray = live_files(path)[0].with_name("aaaaaaaaaaaaaaaa-1-1.parquet")
    stray.write_bytes(b"x")
    found = check(path)
    assert [(row[0], row[1]) for row in found] == [("info", f"data/{stray.parent.name}/{stray.name}")]


def test_it_runs_in_a_transaction_and_read_only(path: Path) -> None:
    with lakelite.connect(path, read_only=True) as con:
        con.execute("SELECT count(*) FROM t").fetchall()
        assert con.execute("CHECK LAKE").fetchall() == []


def test_it_leaves_the_rows_of_others_as_they_are(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (a HUGEINT, b UUID, c ENUM('x', 'y'), d BIT, e INTERVAL)")
        con.execute("INSERT INTO t VALUES (1, uuid(), 'x', '101', INTERVAL 1 DAY); INSERT INTO t VALUES (2, NULL, 'y', NULL, NULL); OPTIMIZE t")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        assert con.execute("CHECK LAKE").fetchall() == []
        old = con.execute("SELECT * FROM t AT (VERSION => 3)")
        assert [d[1] for d in old.description] == [d[1] for d in con.execute("SELECT * FROM t").description]
        assert sorted(map(str, old.fetchall())) == sorted(map(str, con.execute("SELECT * FROM t").fetchall()))


@pytest.mark.parametrize("seed", range(3))
def test_a_long_random_run_stays_sound(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("SET inline_rows = 5; SET flush_fragments = 4; SET target_file_rows = 60; CREATE TABLE t (k INTEGER, v INTEGER)")
        for _ in range(60):
            k, n = draw.randrange(100), draw.randrange(1, 30)
            text = draw.choice(
                [
                    f"INSERT INTO t SELECT range + {k}, {n} FROM range({n})", f"INSERT INTO t VALUES ({k}, {n})", f"DELETE FROM t WHERE k % 20 = {k % 20}",
                    f"UPDATE t SET v = v + 1 WHERE k BETWEEN {k} AND {k + 5}", "OPTIMIZE t", "OPTIMIZE t ZORDER BY (v, k)", f"OPTIMIZE t WHERE k < {k}",
                    "BEGIN; DELETE FROM t WHERE k = 3; INSERT INTO t VALUES (3, 3); COMMIT", f"INSERT OVERWRITE t SELECT k, v + 1 FROM t WHERE k <> {k}",
                    "VACUUM RETAIN 0 HOURS" if draw.random() < 0.3 else "OPTIMIZE t", "CREATE OR REPLACE TABLE u AS FROM t",
                ]
            )  # fmt: skip
            con.execute(text)
        assert con.execute("CHECK LAKE").fetchall() == []
