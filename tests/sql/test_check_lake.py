"""CHECK LAKE names each kind of damage, and finds nothing in a sound lake."""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.maintenance import check as check_module


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


# Rows that break what their table promises, and key filters.

KEYED = 12_000  # in each of two files: enough for filters


@pytest.fixture(scope="module")
def made_keyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with keys, filters, CHECK and NOT NULL, and one of each kind beside it; no connection is open."""
    path = tmp_path_factory.mktemp("keyed") / "lake"
    with lakelite.connect(path, autocommit=True) as con:
        con.execute(
            "CREATE TABLE k (a INTEGER PRIMARY KEY, b VARCHAR, c INTEGER NOT NULL CHECK (c >= 0), UNIQUE (b, c)) PARTITIONED BY (bucket(1, a))"
        )
        con.execute('CREATE SCHEMA s; CREATE TABLE s."odd name" (d STRUCT(e INTEGER), f DOUBLE UNIQUE); COMMENT ON COLUMN s."odd name".f IS \'text\'')
        con.execute("CREATE VIEW v AS FROM k; CREATE TABLE plain WITH (upkeep = off) AS FROM range(3)")
        for first in (0, KEYED):
            con.execute(
                f"INSERT INTO k SELECT range + {first}, CASE WHEN range % 2 = 0 THEN 'b' || (range + {first}) // 4 END, range FROM range({KEYED})"
            )
        con.execute("UPDATE k SET b = NULL WHERE a % 2 = 0 AND a >= 23_990")
        con.execute('INSERT INTO s."odd name" VALUES ({e: 1}, 1.5), ({e: 2}, NULL), (NULL, NULL)')
        con.execute("CREATE BRANCH dev; CREATE TAG x; ALTER TABLE plain ADD COLUMN more INTEGER; DROP TABLE plain")
        assert con.execute("CHECK LAKE").fetchall() == []
    return path


@pytest.fixture
def keyed(made_keyed: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(made_keyed, tmp_path / "keyed"))


_K = "table_id = (SELECT min(table_id) FROM table_names WHERE name = 'k') AND branch_id = 1"
_FIELD = "(SELECT field_id FROM columns WHERE name = '{}' AND branch_id = 1)"


def _constraint(kind: str, expression: str, *names: str) -> str:
    columns = " || ',' || ".join(f"'[\"{name}\",' || {_FIELD.format(name)} || ']'" for name in names)
    return (
        "INSERT INTO constraints (table_id, position, kind, expression, columns, branch_id, begin_snapshot_id)"
        f" SELECT table_id, 9, '{kind}', {expression}, '[' || {columns} || ']', 1, begin_snapshot_id FROM table_names WHERE {_K}"
    )


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (_constraint("unique", "NULL", "c"), "12000 values of unique (c) in more than one row, 12000 too many in all; the first: c: 0"),
        (_constraint("unique", "NULL", "b"), "5997 values of unique (b) in more than one row, 5997 too many"),
        (_constraint("primary key", "NULL", "b", "a"), "column b is of the primary key, and NULL in 12005 rows"),
        (_constraint("check", "'(c < 11999)'", "c"), "CHECK((c < 11999)) is false for 2 rows"),
        (_constraint("check", "'(CAST(b AS INTEGER) > 0)'", "b"), "it cannot be read: could not convert 'b"),
        (f"UPDATE columns SET nullable = 0 WHERE name = 'b' AND {_K}", "column b is NOT NULL, and NULL in 12005 rows"),
    ],
)
def test_rows_that_break_what_their_table_promises(keyed: Path, statement: str, words: str) -> None:
    edit(keyed, statement)
    found = [row for row in check(keyed) if row[0] == "error"]
    assert [(row[0], row[1]) for row in found] == [("error", "table k")], found
    assert words in found[0][2], found
    assert found[0][3]


def test_rows_of_another_branch(keyed: Path) -> None:
    with lakelite.connect(keyed, autocommit=True, branch="dev") as con:
        con.execute("INSERT INTO k SELECT 100_000, 'new', 100_000")
    assert check(keyed) == []
    edit(keyed, _constraint("unique", "NULL", "c").replace("branch_id = 1", "branch_id = 2").replace("']', 1, begin", "']', 2, begin"))
    (wrong,) = check(keyed)
    assert (wrong[1], wrong[2].partition(";")[0]) == (
        "table k on branch dev",
        "12000 values of unique (c) in more than one row, 12000 too many in all",
    )
    with lakelite.connect(keyed, autocommit=True) as con:
        con.execute("INSERT INTO k SELECT 200_000, 'mine', 200_000")
        one, _ = sorted((keyed / "data").glob("*/*.keys"))
        one.unlink()
        found = [row[:2] for row in con.execute("CHECK LAKE").fetchall()]
        assert found == [("info", str(one.relative_to(keyed))), ("error", "table k on branch dev")]


def test_what_to_do_names_the_rows(keyed: Path) -> None:
    edit(keyed, _constraint("unique", "NULL", "c"))
    with lakelite.connect(keyed, autocommit=True) as con:
        ((todo,),) = [row[3:] for row in con.execute("CHECK LAKE").fetchall() if row[0] == "error"]
        assert con.execute(todo.split(": ")[1].removesuffix(" shows them")).fetchall()


def test_a_doubled_key_that_got_in_is_found_beside_the_filter_that_let_it_in(keyed: Path) -> None:
    filters = sorted((keyed / "data").glob("*/*.keys"))
    honest = [file.read_bytes() for file in filters]
    with lakelite.connect(keyed, autocommit=True) as con:
        con.execute("CREATE OR REPLACE TABLE k (a INTEGER PRIMARY KEY, b VARCHAR, c INTEGER)")
    assert check(keyed) == []
    with lakelite.connect(keyed, autocommit=True) as con:
        con.execute(f"INSERT INTO k SELECT range, NULL, 0 FROM range({KEYED})")
        (new,) = set((keyed / "data").glob("*/*.keys")) - set(filters)
        content = bytearray(new.read_bytes())
        con.execute(f"CREATE TABLE other (a INTEGER PRIMARY KEY); INSERT INTO other SELECT range + 1_000_000 FROM range({KEYED})")
        (other,) = set((keyed / "data").glob("*/*.keys")) - {*filters, new}
    lying = bytes(content[-_filter_bytes(content) :]), bytes(other.read_bytes()[-_filter_bytes(other.read_bytes()) :])
    tag = bytes(content[16 : 16 + int.from_bytes(content[:4], "little")])
    new.write_bytes(struct.pack("<IQI", len(tag), len(lying[1]), zlib.crc32(tag + lying[1])) + tag + lying[1])
    with lakelite.connect(keyed, autocommit=True) as con:
        con.execute("INSERT INTO k SELECT range, NULL, 1 FROM range(3)")  # the filter denies that they are there
    found = {row[1]: row for row in check(keyed)}
    assert "3 values of primary key (a) in more than one row" in found["table k"][2]
    assert "the filter of (a) is not that of the file's keys" in found[str(new.relative_to(keyed))][2]
    assert len(found) == 2
    assert [file.read_bytes() for file in filters] == honest


def _filter_bytes(content: bytes | bytearray) -> int:
    return int.from_bytes(content[4:12], "little")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda a, b: a.unlink(), ["there is no such key filter"]),
        (lambda a, b: a.write_bytes(a.read_bytes()[:-1]), ["damaged"]),
        (lambda a, b: a.write_bytes(b""), ["damaged"]),
        (lambda a, b: a.write_bytes(b.read_bytes()), ["key filter of another file"]),
    ],
)
def test_key_filters_that_are_not_used_are_information(keyed: Path, damage: Callable[[Path, Path], None], words: list[str]) -> None:
    one, other = sorted((keyed / "data").glob("*/*.keys"))
    damage(one, other)
    found = check(keyed)
    assert [(row[0], row[1]) for row in found] == [("info", str(one.relative_to(keyed)))], found
    assert all(word in row[2] for word, row in zip(words, found, strict=True))


# Rows of the catalog that nothing explains.


@pytest.mark.parametrize(
    ("statements", "name", "words"),
    [
        (["PRAGMA foreign_keys = OFF", "INSERT INTO row_maps VALUES (999, x'00')"], "catalog table row_maps", "refer to fragments"),
        ([f"UPDATE columns SET branch_id = 7 WHERE name = 'b' AND {_K}"], "catalog table columns", "a branch that is not there"),
        ([f"UPDATE table_names SET begin_snapshot_id = 900 WHERE {_K}"], "catalog table table_names", "their branch does not have"),
        ([f"UPDATE table_names SET end_snapshot_id = 900 WHERE {_K}"], "table ", "it has no name"),
        (["INSERT INTO table_options VALUES (4, 'upkeep', 'on', 1, 1, NULL)"], "table 4", "table_options are in force"),
        ([f"DELETE FROM columns WHERE {_K}"], "table ", "neither columns nor a query"),
        ([f"DELETE FROM columns WHERE name = 'c' AND {_K}"], "table ", "a constraint is of a column"),
        (["DELETE FROM columns WHERE name = 'f' AND branch_id = 1"], "table ", "a comment is of a column"),
        (
            ["UPDATE columns SET end_snapshot_id = begin_snapshot_id + 1 WHERE name = 'd' AND branch_id = 1"],
            "table ",
            "a field inside is of a column",
        ),
        (["UPDATE table_names SET name = 'K' WHERE name = 'v' AND branch_id = 1"], "table ", "its name is also that of table"),
        (["UPDATE fragment_lives SET table_id = table_id + 1 WHERE branch_id = 1"], "fragment ", "says that it is of table"),
        (["UPDATE snapshots SET branch_id = 9 WHERE branch_id = 2"], "snapshot ", "its branch 9"),
        (
            [
                "INSERT INTO columns SELECT table_id, field_id, parent_field_id, position, name, declared_type, stored_type, nullable, default_sql,"
                " begin_snapshot_id + 1, NULL, initial_value, branch_id FROM columns WHERE name = 'a' AND branch_id = 1"
            ],
            "catalog table columns",
            "in force twice at once",
        ),
    ],
)
def test_stray_rows_of_the_catalog(keyed: Path, statements: list[str], name: str, words: str) -> None:
    with sqlite3.connect(keyed / "catalog.sqlite") as catalog:
        for statement in statements:
            assert catalog.execute(statement).rowcount != 0, statement
    catalog.close()
    found = check(keyed)
    assert any(row[0] == "error" and row[1].startswith(name) and words in row[2] and row[3] for row in found), found


def test_a_damaged_vector_of_a_partitioned_table(keyed: Path) -> None:
    edit(keyed, "UPDATE deletion_vectors SET crc32 = crc32 + 1 WHERE branch_id = 1")
    found = check(keyed)
    assert {row[1].split(" of ")[0] for row in found} == {"deletion vector", "table k"}, found


STATISTICS = [
        ("i", "maximum = '6'", "1 value of column i beyond"), ("i", "minimum = '3'", "3 values of column i beyond"),
        ("s", "maximum = 's6'", "1 value of column s beyond"), ("d", "minimum = '2024-01-03'", "2 values of column d beyond"),
        ("i", "null_count = 0", "column i is NULL in 2 rows, the catalog says 0"), ("s", "null_count = 9", "column s is NULL in 2 rows, the catalog says 9"),
        ("f", "maximum = '5'", "2 values of column f beyond"), ("m", "minimum = '1.50'", "1 value of column m beyond"),
        ("b", "minimum = 'true'", "column b beyond"), ("z", "maximum = '2024-01-05 12:00:00+00'", "3 values of column z beyond"),
]  # fmt: skip


@pytest.mark.parametrize(  # what lies inline has no bounds but of integers, text and dates
    ("column", "fault", "finding", "storage"),
    [(*case, storage) for case in STATISTICS for storage in ("parquet", "inline") if storage == "parquet" or case[0] in "isd"],
)
def test_statistics_that_leave_values_out_are_found(tmp_path: Path, column: str, fault: str, finding: str, storage: str) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute(f"SET inline_rows = {0 if storage == 'parquet' else 100}")
        values = "r::INTEGER AS i, 's' || r AS s, (DATE '2024-01-01' + r::INTEGER) AS d, r::DOUBLE AS f, (r + 0.5)::DECIMAL(5, 2) AS m, r > 3 AS b"
        con.execute(f"CREATE TABLE t AS SELECT {values}, (TIMESTAMP '2024-01-01' + r * INTERVAL 1 DAY)::TIMESTAMPTZ AS z FROM range(8) q(r)")
        con.execute(
            "DELETE FROM t WHERE i IS NULL; INSERT INTO t BY NAME SELECT 3 AS i; INSERT OVERWRITE t (SELECT * FROM t WHERE s IS NOT NULL UNION ALL BY NAME SELECT NULL::INTEGER AS i FROM range(2))"
        )
        assert con.execute("CHECK LAKE").fetchall() == []
        ((known,),) = con.execute("SELECT field_id FROM lake.columns WHERE column_name = ?", [column]).fetchall()
    with sqlite3.connect(tmp_path / "lake" / "catalog.sqlite") as catalog:
        changed = catalog.execute(f"UPDATE fragment_statistics SET {fault} WHERE field_id = {known}").rowcount
    catalog.close()
    assert changed > 0
    found = check(tmp_path / "lake")
    assert [row[0] for row in found] == ["error"], found
    assert finding in found[0][2]
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        repaired = con.execute("CHECK LAKE REPAIR").fetchall()
        assert [(row[0], row[1], row[2]) for row in repaired] == [("repaired", *found[0][1:3])]
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        assert con.execute("CHECK LAKE").fetchall() == []
        values = con.execute(f"SELECT DISTINCT {column}::VARCHAR FROM t WHERE {column} IS NOT NULL").fetchall()
        for (value,) in values:
            assert con.execute(f"SELECT count(*) FROM t WHERE {column} = '{value}'").fetchone() > (0,), value
        assert con.execute(f"SELECT count(*) FROM t WHERE {column} IS NULL").fetchone() == (2,)


def test_bounds_that_are_no_numbers_are_no_findings(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("SET inline_rows = 0; SET upkeep = off; CREATE TABLE t (f DOUBLE, g FLOAT)")
        for values in ("'nan'", "'-nan'", "'inf'", "'-inf'", "1e308", "5e-324", "-0.0"):
            con.execute(f"INSERT INTO t VALUES ({values}, 1), (1, least({values}::DOUBLE, 1e30)::FLOAT); INSERT INTO t VALUES ({values}, 1)")
        assert con.execute("CHECK LAKE").fetchall() == []


def test_repair_moves_orphans_and_removes_filters_and_leaves_the_rest(keyed: Path) -> None:
    with lakelite.connect(keyed, autocommit=True) as con:
        rows = con.execute("SELECT * FROM k ORDER BY ALL").fetchall()
    data = next((keyed / "data").glob("*/*.parquet"))
    orphan = data.with_name("0123456789abcdef-1-0.parquet")
    shutil.copyfile(data, orphan)
    one, other = sorted((keyed / "data").glob("*/*.keys"))
    one.write_bytes(one.read_bytes()[:-1])
    edit(keyed, "UPDATE table_names SET name = 'K' WHERE name = 'v' AND branch_id = 1")
    before = check(keyed)
    assert len(before) == 3
    with lakelite.connect(keyed, autocommit=True) as con:
        done = con.execute("CHECK LAKE REPAIR").fetchall()
        assert sorted(row[1:3] for row in done) == sorted(row[1:3] for row in before)
        assert sorted(row[0] for row in done) == ["error", "repaired", "repaired"]
    moved = keyed / "quarantine" / f"{orphan.parent.name}-{orphan.name}"
    assert moved.read_bytes() == data.read_bytes()
    assert not orphan.exists()
    assert not one.exists()
    assert other.exists()
    edit(keyed, "UPDATE table_names SET name = 'v' WHERE name = 'K' AND branch_id = 1")
    assert [row[0] for row in check(keyed)] == ["info"]  # there is no such key filter
    with lakelite.connect(keyed, autocommit=True) as con:
        assert con.execute("SELECT * FROM k ORDER BY ALL").fetchall() == rows
        con.execute("VACUUM RETAIN 0 HOURS")
    assert moved.exists()


def test_where_a_repair_is_refused(path: Path) -> None:
    with lakelite.connect(path, read_only=True) as con, pytest.raises(lakelite.OperationalError, match="read-only"):
        con.execute("CHECK LAKE REPAIR")
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("BEGIN")
        with pytest.raises(lakelite.ProgrammingError, match="inside a transaction"):
            con.execute("CHECK LAKE REPAIR")
        con.rollback()
        con.pinned_version = 2
        with pytest.raises(lakelite.OperationalError, match="pinned"):
            con.execute("CHECK LAKE REPAIR")
        con.pinned_version = None
        assert con.execute("CHECK LAKE REPAIR").fetchall() == []
    assert not (path / "quarantine").exists()


@pytest.mark.parametrize("step", ["_of_fragment", "_of_compositions", "_row_ids"])
def test_what_vacuum_removes_meanwhile_is_no_finding(path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    done = getattr(check_module, step)
    calls = iter(range(1000))
    with lakelite.connect(path, autocommit=True) as con, lakelite.connect(path, autocommit=True) as other:

        def meanwhile(*arguments: Any) -> Any:
            if next(calls) == (step == "_row_ids"):  # where it is the output's turn first, then the first source's
                assert other.execute("VACUUM RETAIN 0 HOURS").fetchall()[0][3] > 0
            return done(*arguments)

        monkeypatch.setattr(check_module, step, meanwhile)
        assert con.execute("CHECK LAKE").fetchall() == []
        assert next(calls) > (step == "_row_ids")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("DELETE FROM branches WHERE branch_id = 1", "branch main"),
        ("UPDATE branches SET branch_id = 7 WHERE branch_id = 1", "branch main"),
        ("UPDATE branches SET name = 'mian' WHERE branch_id = 1", "branch main"),
        ("UPDATE branches SET dropped_snapshot_id = 2 WHERE branch_id = 1", "branch main"),
        ("UPDATE schemas SET name = 'mian' WHERE schema_id = 1", "schema main"),
    ],
)
def test_what_every_lake_has(path: Path, statement: str, name: str) -> None:
    edit(path, statement)
    with lakelite.connect(path, autocommit=True) as con:
        assert any(row[:2] == ("error", name) and "none of this name and number" in row[2] for row in con.execute("CHECK LAKE").fetchall())
        con.execute("CHECK LAKE REPAIR")


def test_a_pinned_connection_looks_at_the_heads_too(keyed: Path) -> None:
    edit(keyed, "UPDATE columns SET nullable = 0 WHERE name = 'b'")
    with lakelite.connect(keyed, autocommit=True) as con:
        con.pinned_version = 1
        found = con.execute("CHECK LAKE").fetchall()
    assert any(row[1] == "table k on branch main" and "column b is NOT NULL, and NULL in" in row[2] for row in found), found
