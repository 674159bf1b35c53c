"""CHECK LAKE finds each kind of damage, wherever it is, and names it; what would make damage lasting looks before it reads."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import lakelite

CATALOG = "catalog.sqlite"
FLIPS = 24  # positions that are tried, spread over the file


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files, one with deleted rows; rows inline; a composition with a row map; no connection is open."""
    path = tmp_path_factory.mktemp("made") / "lake"
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("SET upkeep = off; SET inline_rows = 10; SET compression = 'zstd'; CREATE TABLE t (k INTEGER, v VARCHAR)")
        con.execute("INSERT INTO t SELECT range, 'a' || range FROM range(300)")
        con.execute("INSERT INTO t SELECT range + 300, 'b' || range FROM range(300)")
        con.execute("DELETE FROM t WHERE k % 100 = 0; OPTIMIZE t ZORDER BY (v, k)")
        con.execute("INSERT INTO t SELECT range + 600, 'c' || range FROM range(300)")
        con.execute("DELETE FROM t WHERE k % 50 = 1; INSERT INTO t VALUES (1000, 'inline'), (1001, 'inline'); CREATE BRANCH dev; CREATE TAG x")
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "lake"))


def live_files(con: lakelite.Connection, path: Path) -> list[Path]:
    return [path / name for (name,) in con.execute("SELECT path FROM lake.fragments WHERE path IS NOT NULL ORDER BY ALL").fetchall()]


def test_a_flipped_bit_anywhere_in_a_file_is_found_and_the_file_named(path: Path) -> None:
    with lakelite.connect(path, autocommit=True) as con:
        assert con.execute("CHECK LAKE").fetchall() == []
        file = live_files(con, path)[0]
        whole = file.read_bytes()
        positions = {0, 3, 4, len(whole) - 1, len(whole) - 5, *range(7, len(whole), len(whole) // FLIPS)}
        for number, position in enumerate(sorted(positions)):
            content = bytearray(whole)
            content[position] ^= 1 << number % 8
            file.write_bytes(content)
            found = con.execute("CHECK LAKE").fetchall()
            assert [row[:2] for row in found if "SHA-256" in row[2]] == [("error", str(file.relative_to(path)))], (position, found)
            assert all(row[3] for row in found)
        file.write_bytes(whole)
        assert con.execute("CHECK LAKE").fetchall() == []


@pytest.mark.parametrize("statement", ["OPTIMIZE t WHERE k < 2000", "OPTIMIZE t ZORDER BY (k)", "BACKUP TO '{}'"])
def test_damage_is_not_carried_over_in_silence(path: Path, tmp_path: Path, statement: str) -> None:
    """What a compaction writes has a hash of its own: behind it nothing would tell that a source was damaged."""
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("SET rewrite_percent = 1")
        file = live_files(con, path)[-1]
        content = bytearray(file.read_bytes())
        content[100] ^= 1
        file.write_bytes(content)
        before = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchall()
        with pytest.raises(lakelite.OperationalError, match=f"{file.name} is damaged: its SHA-256") as caught:
            con.execute(statement.format(tmp_path / "backup"))
        assert "CHECK LAKE" in str(caught.value)
        assert con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchall() == before
        assert not (tmp_path / "backup").exists()
        content[100] ^= 1
        file.write_bytes(content)
        con.execute(statement.format(tmp_path / "backup"))
        assert con.execute("CHECK LAKE").fetchall() == []


def test_upkeep_behind_a_commit_leaves_a_damaged_file_alone_and_says_so(path: Path) -> None:
    with lakelite.connect(path, autocommit=True) as con:
        file = live_files(con, path)[-1]
        content = bytearray(file.read_bytes())
        content[100] ^= 1
        file.write_bytes(content)
        con.execute("SET upkeep = on; SET upkeep_files = 2; SET inline_rows = 0")
        cursor = con.execute("INSERT INTO t VALUES (5000, 'new')")
        assert any("SHA-256" in str(message) for _, message in cursor.messages), cursor.messages
        assert file in live_files(con, path)


def loosened(path: Path, table: str, *statements: str) -> None:
    """Runs statements on the catalog, for which the table has none of its rules, and puts them back: what only a damaged disk, or an attacker, does."""
    with closing(sqlite3.connect(path / CATALOG, isolation_level=None)) as catalog:
        catalog.execute("PRAGMA ignore_check_constraints = ON")
        catalog.execute("PRAGMA writable_schema = ON")
        ((sql,),) = catalog.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchall()
        loose = sql.replace("STRICT, ", "").replace("STRICT", "").replace("NOT NULL", "")
        for rule in (" INTEGER ", " TEXT ", " BLOB "):
            loose = loose.replace(rule, " ") if "PRIMARY KEY CHECK" not in loose else loose
        catalog.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (loose, table))
    with closing(sqlite3.connect(path / CATALOG, isolation_level=None)) as catalog:
        catalog.execute("PRAGMA ignore_check_constraints = ON")
        catalog.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            assert catalog.execute(statement).rowcount != 0, statement
        catalog.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, table))


def without_entries(path: Path, index: str) -> None:
    """Empties an index of the catalog: what a lost page leaves."""
    with closing(sqlite3.connect(path / CATALOG, isolation_level=None)) as catalog:
        catalog.execute("PRAGMA writable_schema = ON")
        ((sql,),) = catalog.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,)).fetchall()
        catalog.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (f"{sql.partition(' WHERE ')[0]} WHERE 0", index))
    with closing(sqlite3.connect(path / CATALOG, isolation_level=None)) as catalog:
        catalog.execute(f"REINDEX {index}")
        catalog.execute("PRAGMA writable_schema = ON")
        catalog.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, index))


def indexes(path: Path) -> list[str]:
    with closing(sqlite3.connect(path / CATALOG)) as catalog:
        return [name for (name,) in catalog.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")]


def test_indexes_of_the_catalog_that_lost_entries_are_found_and_made_anew(path: Path) -> None:
    broken = sorted({"snapshots_of_branch", "fragment_lives_born", "columns_of_branch"} & {*indexes(path)})
    assert len(broken) == 3
    for index in broken:
        without_entries(path, index)
    with lakelite.connect(path, autocommit=True) as con:
        found = con.execute("CHECK LAKE").fetchall()
        assert sorted(row[1] for row in found if row[0] == "error") == [f"catalog index {index}" for index in broken], found
        with pytest.raises(lakelite.InternalError, match="CHECK LAKE says what is wrong"):
            con.execute("FROM t")
        mended = con.execute("CHECK LAKE REPAIR").fetchall()
        assert {row[1] for row in mended if row[0] == "repaired"} == {f"catalog index {index}" for index in broken}
        assert con.execute("CHECK LAKE").fetchall() == []


def test_values_that_the_catalog_does_not_allow_are_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a catalog that is too large to be looked at when it is opened."""
    monkeypatch.setattr("lakelite.catalog.opened.CHECKED_BYTES", 0)
    loosened(path, "settings", "INSERT INTO settings VALUES ('odd', x'00')")
    with lakelite.connect(path, autocommit=True) as con:
        (severity, name, what, todo), (_, _, rest, _) = con.execute("CHECK LAKE").fetchall()
    assert (severity, name) == ("error", "the catalog")
    assert "settings.value" in what
    assert todo
    assert "was not looked at" in rest
    with pytest.raises(lakelite.CannotOpen, match=r"settings\.value"):
        lakelite.connect(path, safe=True)
