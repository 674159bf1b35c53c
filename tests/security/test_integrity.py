"""CHECK LAKE finds each kind of damage, wherever it is, and names it; what would make damage lasting looks before it reads."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from forging import CATALOG, forge, lake_of_everything

import lakelite

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


def test_damaged_pages_of_the_catalog_are_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a catalog that is too large to be looked at when it is opened. The count of free bytes in a page's header is off, which harms no row."""
    monkeypatch.setattr("lakelite.catalog.opened.CHECKED_BYTES", 0)
    catalog = path / CATALOG
    whole, found = catalog.read_bytes(), 0
    with closing(sqlite3.connect(catalog)) as plain:
        size, pages = plain.execute("PRAGMA page_size").fetchone()[0], plain.execute("PRAGMA page_count").fetchone()[0]
    for page in range(2, pages + 1, pages // 8):
        content = bytearray(whole)
        content[(page - 1) * size + 7] ^= 4
        catalog.write_bytes(content)
        with closing(sqlite3.connect(catalog)) as plain:
            said = "\n".join(row[0] for row in plain.execute("PRAGMA integrity_check"))
        with lakelite.connect(path, autocommit=True) as con:
            told = [row for row in con.execute("CHECK LAKE").fetchall() if row[:2] == ("error", "the catalog")]
        assert [row[2] for row in told] == [line for line in said.splitlines() if line != "ok" and not line.startswith("***")]
        found += bool(told)
    assert found >= 4


def test_values_that_the_catalog_does_not_allow_are_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a catalog that is too large to be looked at when it is opened."""
    monkeypatch.setattr("lakelite.catalog.opened.CHECKED_BYTES", 0)
    forge(path, "INSERT INTO settings VALUES ('odd', x'00')")
    with lakelite.connect(path, autocommit=True) as con:
        (severity, name, what, todo), (_, _, rest, _) = con.execute("CHECK LAKE").fetchall()
    assert (severity, name) == ("error", "the catalog")
    assert "settings.value" in what
    assert todo
    assert "was not looked at" in rest
    with pytest.raises(lakelite.CannotOpen, match=r"settings\.value"):
        lakelite.connect(path, safe=True)


# Rows of the catalog that contradict each other: of each of its tables, each kind of contradiction that it can hold.

CONTRADICTIONS = [
    "DELETE FROM counters WHERE name = 'row'",
    "UPDATE counters SET next_id = 1 WHERE name = 'snapshot'",
    "UPDATE counters SET next_id = 1 WHERE name = 'field'",
    "UPDATE counters SET next_id = 1 WHERE name = 'table'",
    "UPDATE counters SET next_id = 1 WHERE name = 'branch'",
    "UPDATE counters SET next_id = 1 WHERE name = 'fragment'",
    "UPDATE counters SET next_id = 1 WHERE name = 'schema'",
    "UPDATE snapshots SET parent_id = NULL WHERE snapshot_id = 5",
    "UPDATE snapshots SET parent_id = 2 WHERE snapshot_id = 5",
    "UPDATE snapshots SET committed_at_us = 5 WHERE snapshot_id = 5",
    "UPDATE snapshots SET branch_id = 2 WHERE snapshot_id = 3",
    "UPDATE snapshots SET isolation = 'none'",
    "UPDATE snapshots SET base_snapshot_id = snapshot_id + 5",
    "UPDATE snapshots SET merge_parent_id = 1 WHERE snapshot_id = 4",
    "DELETE FROM snapshots WHERE snapshot_id = 4",
    "UPDATE effects SET table_id = 99 WHERE table_id IS NOT NULL",
    "UPDATE effects SET kinds = 'nonsense'",
    "INSERT INTO reads VALUES (999, 1)",
    "INSERT INTO resolutions VALUES (999, 1, 1, 1, 1, '')",
    "INSERT INTO resolutions VALUES (4, 5, 1, 1, 1, '')",
    "DELETE FROM schema_lives",
    "UPDATE schema_lives SET schema_id = 99",
    "INSERT INTO schemas VALUES (77, 'none')",
    "INSERT INTO schemas VALUES (77, 'MAIN')",
    "UPDATE table_lives SET table_id = 99 WHERE table_id = 1",
    "INSERT INTO tables VALUES (99)",
    "UPDATE table_lives SET oldest_kept_id = 9999",
    "UPDATE table_names SET schema_id = 77",
    "UPDATE table_names SET table_id = 77 WHERE name = 't'",
    "UPDATE columns SET name = 'k' WHERE name = 'v'",
    "UPDATE columns SET position = 1 WHERE parent_field_id IS NULL",
    "UPDATE columns SET declared_type = 'NONSENSE' WHERE name = 'k'",
    "UPDATE columns SET stored_type = 'VARCHAR' WHERE name = 'k'",
    "UPDATE columns SET default_sql = 'nonsense()' WHERE name = 'v'",
    "UPDATE columns SET field_id = field_id + 100 WHERE name = 's'",
    "UPDATE fragments SET born_snapshot_id = 9999",
    "UPDATE fragments SET born_snapshot_id = 0",
    "UPDATE fragments SET first_row_id = 1",
    "UPDATE fragments SET has_row_ids = 1 - has_row_ids",
    "UPDATE fragments SET sha256 = printf('%064d', 0)",
    "UPDATE fragments SET table_id = 2 WHERE table_id = 1",
    "UPDATE fragment_lives SET begin_snapshot_id = begin_snapshot_id + 1 WHERE end_snapshot_id IS NULL",
    "UPDATE fragment_lives SET branch_id = 2",
    "DELETE FROM fragment_lives",
    "DELETE FROM fragments WHERE path IS NULL",
    "UPDATE inline_rows SET fragment_id = 999",
    "UPDATE fragment_statistics SET null_count = 5000",
    "UPDATE fragment_statistics SET fragment_id = fragment_id + 900",
    "UPDATE compositions SET source_fragment_id = output_fragment_id",
    "UPDATE compositions SET vector_snapshot_id = 999",
    "UPDATE row_maps SET output_fragment_id = output_fragment_id + 900",
    "UPDATE constraints SET table_id = 99",
    "UPDATE constraints SET kind = 'primary key', expression = NULL",
    "UPDATE constraints SET expression = 'nonsense()' WHERE expression IS NOT NULL",
    "UPDATE views SET table_id = 1",
    "UPDATE comments SET table_id = 99",
    "UPDATE branches SET first_snapshot_id = 999",
    "UPDATE branches SET oldest_kept_id = 999",
    "UPDATE branches SET base_snapshot_id = 999 WHERE branch_id = 2",
    "UPDATE branches SET base_snapshot_id = NULL WHERE branch_id = 2",
    "UPDATE branches SET dropped_snapshot_id = 3 WHERE branch_id = 2",
    "UPDATE tags SET snapshot_id = 999",
    "UPDATE table_options SET value = 'nonsense'",
    "UPDATE table_options SET table_id = 99",
    "UPDATE partition_keys SET field_id = 99",
    "UPDATE partition_keys SET transform = 'year', buckets = NULL",
    "UPDATE partition_keys SET position = 5",
    "UPDATE fragment_partitions SET value = '1'",
    "UPDATE fragment_partitions SET value = '99'",
    "UPDATE fragment_partitions SET position = 7",
    "UPDATE fragment_partitions SET transform = 'month'",
    "UPDATE adopted_columns SET name = 'nowhere'",
    "UPDATE adopted_columns SET field_id = 99",
    "DELETE FROM adopted_columns",
    "UPDATE adopted_columns SET table_id = 1",
    "INSERT INTO merge_choices VALUES (1, 77, 1, NULL, NULL, 'ours')",
    "INSERT INTO deletion_vectors (fragment_id, table_id, branch_id, begin_snapshot_id, bits, cardinality, row_count, crc32) VALUES (999, 1, 1, 3, x'00', 1, 1, 0)",
    "INSERT INTO fragment_partitions VALUES (999, 0, 1, 'bucket', 2, '1')",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lake_of_everything(tmp_path_factory.mktemp("whole") / "lake")


@pytest.mark.parametrize("part", range(4))
def test_contradictions_are_found_and_named(whole: Path, tmp_path: Path, part: int) -> None:
    for statement in CONTRADICTIONS[part::4]:
        path = Path(shutil.copytree(whole, tmp_path / "lake"))
        forge(path, statement)
        with lakelite.connect(path, autocommit=True) as con:
            found = [row for row in con.execute("CHECK LAKE").fetchall() if row[0] == "error"]
            assert found, statement
            assert all(name and what and todo for _, name, what, todo in found), statement
        shutil.rmtree(path)


def test_every_table_of_the_catalog_has_a_contradiction_that_is_tried(whole: Path) -> None:
    with closing(sqlite3.connect(whole / CATALOG)) as catalog:
        tables = {name for (name,) in catalog.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    tried = {statement.split()[2 if statement.startswith(("INSERT", "DELETE")) else 1] for statement in CONTRADICTIONS}
    assert tables - tried == {"settings"}  # whose values are looked at when the lake is opened


@pytest.mark.parametrize("value", ["nonsense", "-1", "9999999999999999"])
def test_settings_of_the_lake_are_looked_at_when_it_is_opened(path: Path, value: str) -> None:
    forge(path, f"INSERT INTO settings VALUES ('retention_hours', '{value}')")
    with pytest.raises(lakelite.CannotOpen, match="the catalog was changed by another program: retention_hours"):
        lakelite.connect(path)


def test_sound_inline_rows_of_every_type_are_taken_for_sound(tmp_path: Path) -> None:
    """DuckDB has a time 24:00:00, with which Arrow finds fault."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute(
            "CREATE TABLE t (a TIME, b TIME[], c STRUCT(x TIME, y TIME[2]), d MAP(TIME, TIME[]), e UNION(q TIME, r INTEGER), f TIME_NS, g TIMETZ,"
            " h TIME[2][], i BLOB, k BIT, l UUID, m HUGEINT, n INTERVAL, o ENUM('a'), p DECIMAL(38, 2), q BIGNUM, r TIMESTAMP_NS)"
        )
        con.execute(
            "INSERT INTO t VALUES ('24:00:00', ['24:00:00'], {x: '24:00:00', y: ['24:00:00', NULL]}, MAP {'24:00:00': ['24:00:00']}, '24:00:00'::TIME, '24:00:00',"
            " '24:00:00+00', [['24:00:00', '00:00:01']], 'y', '101', uuid(), 5, INTERVAL 1 DAY, 'a', 1.5, 7, '2020-01-01')"
        )
        con.execute("INSERT INTO t BY NAME SELECT NULL::TIME AS a")
        assert con.execute("SELECT a::VARCHAR, c.x::VARCHAR FROM t ORDER BY ALL").fetchall() == [("24:00:00", "24:00:00"), (None, None)]
        assert con.execute("CHECK LAKE").fetchall() == []
