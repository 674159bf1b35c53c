"""A lake that somebody else made: refused, or read without leaving it, waiting for ever, or an error that is not lakelite's."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from forging import CATALOG, forge, lake_of_everything

import lakelite

WORK = (
    "SELECT count(*), max(v) FROM t", "FROM w", "FROM u", "DESCRIBE t", "SHOW CREATE TABLE t", "FROM t AT (VERSION => 3)", "INSERT INTO t (k) VALUES (5000)", "UPDATE t SET v = 'q' WHERE k = 2",
    "DELETE FROM t WHERE k = 4", "OPTIMIZE t", "FROM lake.fragments", "FROM lake.columns", "FROM lake.snapshots", "SHOW BRANCHES", "SHOW TAGS", "FROM table_changes('t', 2, 6)", "MERGE BRANCH b",
    "CHECK LAKE", "VACUUM RETAIN 0 HOURS",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lake_of_everything(tmp_path_factory.mktemp("made") / "lake")


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy in a folder of its own, beside something precious."""
    (tmp_path / "precious.parquet").write_bytes(b"precious")
    return Path(shutil.copytree(made, tmp_path / "lake"))


def go_through(path: Path, *, safe: bool = False) -> list[str]:
    """Everything that one does with a lake; what the errors said. Any error that is not lakelite's goes on."""
    said: list[str] = []
    try:
        with lakelite.connect(path, autocommit=True, safe=safe) as con:
            for statement in WORK:
                try:
                    con.execute(statement)
                except lakelite.Error as error:
                    said.append(f"{statement}: {error}")
    except lakelite.Error as error:
        said.append(f"open: {error}")
    return said


# Values of types that a catalog cannot hold.

ODD = ("'text'", "x'00ff'", "NULL", "-1", "9e999", "1.5", "9223372036854775807", "''", "zeroblob(100000)", "0")
_PLACES = (
    "settings.value", "effects.kinds", "effects.rows_added", "table_names.name", "table_names.schema_id", "columns.name", "columns.stored_type", "columns.field_id", "columns.default_sql", "inline_rows.ipc",
    "fragments.sha256", "fragment_statistics.minimum", "fragment_statistics.null_count", "deletion_vectors.bits", "deletion_vectors.row_count", "deletion_vectors.cardinality", "compositions.output_start",
    "compositions.live_count", "row_maps.positions", "constraints.columns", "constraints.kind", "views.query", "views.names", "comments.comment", "branches.name", "branches.first_snapshot_id", "tags.created_at_us",
    "snapshots.branch_id", "snapshots.committed_at_us", "snapshots.statements", "counters.next_id", "schemas.name", "table_lives.oldest_kept_id", "fragments.path", "fragments.storage", "fragments.row_count",
    "fragments.size_bytes", "fragments.first_row_id", "table_options.value", "partition_keys.transform", "partition_keys.buckets", "fragment_partitions.value", "adopted_columns.type",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_odd_values_in_a_catalog_that_is_too_large_to_be_looked_at(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("lakelite.catalog.opened.CHECKED_BYTES", 0)
    draw = random.Random(seed)
    whole = (path / CATALOG).read_bytes()
    for place in _PLACES[seed::4]:
        table, _, column = place.partition(".")
        (path / CATALOG).write_bytes(whole)
        with suppress(sqlite3.IntegrityError):
            forge(path, f"UPDATE OR IGNORE {table} SET {column} = {draw.choice(ODD)}")
        go_through(Path(shutil.copytree(path, tmp_path / "copy")))
        shutil.rmtree(tmp_path / "copy")


def test_odd_values_are_refused_when_a_lake_is_opened_and_in_safe_mode_always(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(path, "UPDATE snapshots SET committed_at_us = 'yesterday'")
    with pytest.raises(lakelite.CannotOpen, match=r"snapshots\.committed_at_us"):
        lakelite.connect(path)
    monkeypatch.setattr("lakelite.catalog.opened.CHECKED_BYTES", 0)
    with pytest.raises(lakelite.CannotOpen, match=r"snapshots\.committed_at_us"):
        lakelite.connect(path, safe=True)
    with lakelite.connect(path) as con, pytest.raises(lakelite.InternalError, match="the catalog is damaged: the catalog: non-INTEGER"):
        con.execute("DESCRIBE HISTORY t")


@pytest.mark.parametrize(
    "name",
    ["../../precious.parquet", "/etc/passwd.parquet", "..", "precious", "a/b.parquet", "A.parquet", "a\\b.parquet", ".parquet", "x.sqlite", ""],
)
def test_names_of_files_that_leave_the_lake(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    forge(path, f"UPDATE fragments SET path = '{name}' WHERE fragment_id = (SELECT max(fragment_id) FROM fragments WHERE path IS NOT NULL)")
    with pytest.raises(lakelite.CannotOpen, match="CHECK constraint failed in fragments"):
        lakelite.connect(path)
    monkeypatch.setattr("lakelite.catalog.opened.CHECKED_BYTES", 0)
    with lakelite.connect(path, autocommit=True) as con:
        for statement in ("FROM u", "OPTIMIZE u", f"BACKUP TO '{tmp_path}/backup'", "DROP TABLE u", "VACUUM RETAIN 0 HOURS"):
            with suppress(lakelite.Error):
                con.execute(statement).fetchall() if statement.startswith("FROM") else con.execute(statement)
    assert (tmp_path / "precious.parquet").read_bytes() == b"precious"
    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE extra (a, b GENERATED ALWAYS AS (zeroblob(1000000000)))",
        "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT 'trigger', 'extra', 'settings', 0, 'CREATE TRIGGER extra AFTER INSERT ON settings BEGIN SELECT load_extension(''x''); END'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (name <> '''')', '') WHERE name = 'schemas'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'fragments'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'view' WHERE name = 'settings'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'settings'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 9999999 WHERE name = 'settings'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'fragments') WHERE name = 'branches'",
    ],
)  # fmt: skip
def test_another_schema(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path / CATALOG, isolation_level=None)) as catalog:
        catalog.executescript(script)
    with pytest.raises(lakelite.CannotOpen):
        lakelite.connect(path)


# Kinds of files. In a process of its own, which a wait would hold up.

_AS_A = """
import os, shutil, socket, stat, sys
from pathlib import Path
import lakelite

made, base, kinds = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
names = [str(p.relative_to(made)) for p in sorted(made.rglob("*")) if p.is_file()]
pairs = {Path(name).suffix: name for name in names if name.startswith("data")}
names = [*pairs.values(), "catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "catalog.sqlite-journal", "commit.lock", "leases", "tmp", "data",
         str(Path(pairs[".keys"]).parent), "leases/aaaaaaaaaaaaaaaa.lease", "tmp/aaaaaaaaaaaaaaaa", "quarantine", str(Path(pairs[".keys"]).parent / "aaaaaaaaaaaaaaaa-1-1.parquet")]
for kind in kinds:
    for name in names:
        lake, elsewhere = base / "lake", base / "elsewhere"
        shutil.rmtree(lake, ignore_errors=True)
        shutil.rmtree(elsewhere, ignore_errors=True)
        shutil.copytree(made, lake)
        elsewhere.mkdir()
        (elsewhere / "aaaaaaaaaaaaaaaa-1-1.parquet").write_bytes(b"x")
        victim = lake / name
        if victim.is_dir():
            shutil.rmtree(victim)
        else:
            victim.unlink(missing_ok=True)
        {"fifo": os.mkfifo, "link": lambda p: os.symlink(elsewhere, p), "device": lambda p: os.mknod(p, stat.S_IFCHR | 0o666, os.makedev(1, 5))}[kind](victim)
        print(kind, name, flush=True)
        try:
            with lakelite.connect(lake, autocommit=True) as con:
                for sql in ("SELECT count(*) FROM t", "INSERT INTO t (k) VALUES (4), (9999)", "DELETE FROM t WHERE k = 100", "OPTIMIZE t", "CHECK LAKE REPAIR", "VACUUM RETAIN 0 HOURS", f"BACKUP TO '{base}/b'"):
                    shutil.rmtree(base / "b", ignore_errors=True)
                    try:
                        con.execute(sql)
                    except lakelite.Error:
                        pass
        except lakelite.Error:
            pass
        assert os.listdir(elsewhere) == ["aaaaaaaaaaaaaaaa-1-1.parquet"], (kind, name)
print("done")
"""


@pytest.mark.parametrize("kind", ["fifo", "link", "device"])
def test_what_stands_where_a_file_or_a_folder_should(made: Path, tmp_path: Path, kind: str) -> None:
    if kind == "device":
        try:
            os.mknod(tmp_path / "probe", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        except PermissionError:
            kind = "fifo"  # only the superuser makes devices
    try:
        done = subprocess.run([sys.executable, "-c", _AS_A, made, tmp_path, kind], capture_output=True, text=True, timeout=100, check=False)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"it waits for ever: {error.stdout!r}") from error
    assert done.stdout.endswith("done\n"), done.stdout[-300:] + done.stderr


# Texts of SQL, which stay in their place, and read in safe mode no more than any other.


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE columns SET declared_type = 'INTEGER); COPY (SELECT 1) TO ''{0}''; --' WHERE name = 'k'",
        "UPDATE columns SET stored_type = 'INTEGER); COPY (SELECT 1) TO ''{0}''; --' WHERE name = 'k'",
        "UPDATE columns SET stored_type = 'INTEGER'')}}); COPY (SELECT 1) TO ''{0}''; --' WHERE name = 'k'",
        "UPDATE columns SET declared_type = 'INTEGER) --' WHERE name = 'k'", "UPDATE columns SET declared_type = 'INTEGER /*' WHERE name = 'k'",
        "UPDATE columns SET default_sql = '1); COPY (SELECT 1) TO ''{0}''; --' WHERE name = 'v'", "UPDATE columns SET default_sql = '''x' WHERE name = 'v'",
        "UPDATE constraints SET expression = 'true); COPY (SELECT 1) TO ''{0}''; --' WHERE expression IS NOT NULL", "UPDATE constraints SET expression = '$$x' WHERE expression IS NOT NULL",
        "UPDATE views SET query = 'SELECT 1 AS k; COPY (SELECT 1) TO ''{0}'''", "UPDATE views SET query = 'COPY (SELECT 1) TO ''{0}'''", "UPDATE views SET query = ''",
        "UPDATE adopted_columns SET name = NULL, value = '1', type = 'BIGINT)) AS f1); COPY (SELECT 1) TO ''{0}''; --'",
        "UPDATE columns SET initial_value = '1''); COPY (SELECT 1) TO ''{0}''; --'", "UPDATE fragment_statistics SET minimum = '1''); COPY (SELECT 1) TO ''{0}''; --'",
        "UPDATE fragment_partitions SET value = '1''); COPY (SELECT 1) TO ''{0}''; --'", "UPDATE table_names SET name = 't\"; COPY (SELECT 1) TO ''{0}''; --' WHERE name = 't'",
        "UPDATE columns SET name = 'k\n; COPY (SELECT 1) TO ''{0}''; --' WHERE name = 'k'", "UPDATE settings SET name = 'compression', value = 'zstd''); COPY (SELECT 1) TO ''{0}''; --'",
        "UPDATE table_options SET name = 'compression', value = 'x''); COPY (SELECT 1) TO ''{0}''; --'",
    ],
)  # fmt: skip
def test_no_text_of_the_catalog_becomes_a_statement(path: Path, tmp_path: Path, statement: str) -> None:
    with suppress(sqlite3.IntegrityError):
        forge(path, statement.format(str(tmp_path / "written.csv").replace("'", "''")))
    go_through(path)
    assert not (tmp_path / "written.csv").exists()


SECRET = "the-secret-of-the-house"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE views SET query = 'SELECT content AS k FROM read_text(''{0}'')'", "UPDATE columns SET default_sql = '(SELECT content FROM read_text(''{0}''))' WHERE name = 'v'",
        "UPDATE columns SET default_sql = 'getenv(''LAKELITE_SECRET'')' WHERE name = 'v'", "UPDATE constraints SET expression = '(SELECT content FROM read_text(''{0}'')) = v' WHERE expression IS NOT NULL",
        "UPDATE columns SET declared_type = 'VARCHAR) || (SELECT content FROM read_text(''{0}'')) || CAST(1 AS VARCHAR' WHERE name = 'v'", "UPDATE views SET query = 'FROM enable_logging(storage = ''file'', storage_path = ''{0}.log'')'",
        "UPDATE views SET query = 'FROM ''{0}'''", "UPDATE views SET query = 'SELECT getenv(''LAKELITE_SECRET'') AS k'",
    ],
)  # fmt: skip
def test_what_the_definitions_of_a_lake_read_in_safe_mode(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    monkeypatch.setenv("LAKELITE_SECRET", SECRET)
    secret = tmp_path / "secret.csv"
    secret.write_text(f"k\n{SECRET}\n")
    forge(path, statement.format(secret))
    assert SECRET not in "".join(go_through(path, safe=True))
    with lakelite.connect(path, autocommit=True, safe=True) as con:
        for query in ("FROM w", "INSERT INTO t (k) VALUES (123456) RETURNING *", "SELECT v FROM t", "FROM w AT (VERSION => 8)", "SUMMARIZE w"):
            with suppress(lakelite.Error):
                assert SECRET not in str(con.execute(query).fetchall())
    assert not Path(f"{secret}.log").exists()


# Numbers and contents that are forged, with hashes that fit them.


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE fragments SET row_count = 4611686018427387904 WHERE path IS NOT NULL", "UPDATE fragments SET row_count = 1 WHERE path IS NOT NULL", "UPDATE fragments SET size_bytes = 4611686018427387904",
        "UPDATE fragments SET first_row_id = 9223372036854775806", "UPDATE fragments SET row_count = 4611686018427387904 WHERE path IS NULL", "UPDATE deletion_vectors SET row_count = 4611686018427387904",
        "UPDATE compositions SET live_count = 4611686018427387904, physical_count = 4611686018427387904", "UPDATE compositions SET output_start = 4611686018427387904", "UPDATE counters SET next_id = 9223372036854775807",
        "UPDATE counters SET next_id = 1", "UPDATE effects SET rows_added = 9223372036854775807", "UPDATE row_maps SET positions = zeroblob(1000000)", "UPDATE inline_rows SET ipc = zeroblob(1000000)",
        "UPDATE snapshots SET statements = 'no json'", "UPDATE snapshots SET committed_at_us = 9223372036854775807", "UPDATE snapshots SET committed_at_us = -9223372036854775808",
        "UPDATE constraints SET columns = 'no json'", "UPDATE constraints SET columns = '[[]]'", "UPDATE constraints SET columns = '[[\"k\", 99]]'", "UPDATE views SET names = '{}'", "UPDATE views SET comments = '[1]'",
        "UPDATE table_names SET schema_id = 77", "UPDATE columns SET parent_field_id = field_id", "UPDATE columns SET field_id = 2147483540 WHERE name = 'k'", "UPDATE partition_keys SET buckets = 9223372036854775807",
        "UPDATE partition_keys SET field_id = 99", "UPDATE branches SET first_snapshot_id = 9999, oldest_kept_id = 9999", "UPDATE branches SET base_snapshot_id = 9999", "UPDATE fragments SET born_snapshot_id = 9999",
        "DELETE FROM tables", "DELETE FROM schemas", "DELETE FROM snapshots WHERE snapshot_id > 3", "DELETE FROM columns", "DELETE FROM fragments", "DELETE FROM counters", "DELETE FROM branches", "DELETE FROM inline_rows",
    ],
)  # fmt: skip
def test_forged_numbers_and_rows(path: Path, statement: str) -> None:
    forge(path, statement)
    assert all("Traceback" not in one for one in go_through(path))


def test_forged_inline_rows_do_not_end_the_process(path: Path, tmp_path: Path) -> None:
    """Bytes of Arrow with flipped bits and a hash that fits: Arrow believes them, and DuckDB would read beyond."""
    with closing(sqlite3.connect(path / CATALOG)) as catalog:
        ((fragment, ipc),) = catalog.execute("SELECT fragment_id, ipc FROM inline_rows ORDER BY 1 DESC LIMIT 1").fetchall()
    assert pa.ipc.open_stream(ipc).read_all().num_rows > 0
    code = (
        "import sys, random, lakelite\n"
        "from lakelite.model import Fragment\nfrom lakelite.storage.inline import rows_of\nimport duckdb\n"
        "ipc = open(sys.argv[1], 'rb').read()\nrefused = 0\n"
        "for seed in range(600):\n"
        "    draw = random.Random(seed); forged = bytearray(ipc)\n"
        "    for _ in range(draw.randrange(1, 4)):\n        forged[draw.randrange(len(forged))] = draw.randrange(256)\n"
        "    try:\n        rows = rows_of(Fragment(1, 1, 'inline', None, int(sys.argv[2]), len(ipc), '', 1, False), bytes(forged))\n"
        "    except lakelite.InternalError:\n        refused += 1; continue\n"
        "    try:\n        duckdb.sql('FROM rows').fetchall()\n    except duckdb.Error:\n        pass\n"
        "print('refused', refused)\n"
    )
    (tmp_path / "ipc").write_bytes(ipc)
    rows = pa.ipc.open_stream(ipc).read_all().num_rows
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "ipc", str(rows)], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    assert int(done.stdout.split()[1]) > 50
    digest = hashlib.sha256(ipc[:-40]).hexdigest()
    forge(
        path,
        f"UPDATE inline_rows SET ipc = x'{ipc[:-40].hex()}' WHERE fragment_id = {fragment}",
        f"UPDATE fragments SET sha256 = '{digest}' WHERE fragment_id = {fragment}",
    )
    assert any("is damaged" in one or "holds" in one for one in go_through(path))


def forged_vectors(bits: bytes) -> Iterator[bytes]:
    for seed in range(60):
        draw = random.Random(seed)
        forged = bytearray(bits)
        forged[draw.randrange(len(forged))] ^= 1 << draw.randrange(8)
        yield bytes(forged)


def test_forged_vectors_with_a_crc_that_fits(path: Path) -> None:
    with closing(sqlite3.connect(path / CATALOG)) as catalog:
        bits = catalog.execute("SELECT bits FROM deletion_vectors ORDER BY length(bits) DESC").fetchone()[0]
    whole = (path / CATALOG).read_bytes()
    for forged in list(forged_vectors(bits))[:12]:
        (path / CATALOG).write_bytes(whole)
        forge(path, f"UPDATE deletion_vectors SET bits = x'{forged.hex()}', crc32 = {zlib.crc32(forged)}")
        with lakelite.connect(path, autocommit=True) as con:
            for statement in ("SELECT count(*) FROM t", "DELETE FROM t WHERE k = 5", "CHECK LAKE"):
                with suppress(lakelite.Error):
                    con.execute(statement).fetchall() if statement != "DELETE FROM t WHERE k = 5" else con.execute(statement)


def replace_file(path: Path, content: bytes) -> Path:
    """Puts other bytes in the place of the largest file of u, with a size and hash that fit."""
    with closing(sqlite3.connect(path / CATALOG)) as catalog:
        fragment, table, name = catalog.execute(
            "SELECT fragment_id, table_id, path FROM fragments WHERE table_id = (SELECT max(table_id) FROM tables) AND path IS NOT NULL ORDER BY row_count DESC"
        ).fetchone()
    forge(path, f"UPDATE fragments SET size_bytes = {len(content)}, sha256 = '{hashlib.sha256(content).hexdigest()}' WHERE fragment_id = {fragment}")
    file = path / "data" / str(table) / name
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("size", [0, 100, 0xFFFFFFFF])
def test_footers_that_claim_any_size(path: Path, size: int) -> None:
    with closing(sqlite3.connect(path / CATALOG)) as catalog:
        table, name = catalog.execute("SELECT table_id, path FROM fragments WHERE path IS NOT NULL ORDER BY table_id DESC").fetchone()
    content = (path / "data" / str(table) / name).read_bytes()
    replace_file(path, content[:-8] + struct.pack("<I", size) + b"PAR1")
    for safe in (False, True):
        with lakelite.connect(path, autocommit=True, safe=safe) as con:
            for query in ("FROM u", "SELECT count(*) FROM u", "CHECK LAKE", "OPTIMIZE u"):
                with suppress(lakelite.Error):
                    con.execute(query)


def test_a_file_with_other_rows_than_the_catalog_says_is_not_read_in_safe_mode(path: Path, tmp_path: Path) -> None:
    """Such as one of a few bytes that claims, or has, a thousand million rows."""
    with duckdb.connect() as maker:
        maker.execute(f"COPY (SELECT 7::BIGINT AS a FROM range(30_000_000)) TO '{tmp_path}/bomb.parquet' (FIELD_IDS {{a: 1}})")
    content = (tmp_path / "bomb.parquet").read_bytes()
    assert len(content) < 3_000_000
    file = replace_file(path, content)
    with lakelite.connect(path, autocommit=True, safe=True) as con:
        for query in ("SELECT sum(a) FROM u", "FROM u LIMIT 1", "UPDATE u SET a = 1 WHERE a = 7"):
            with pytest.raises(lakelite.OperationalError, match=f"{file.name} has 30000000 rows, the catalog says 50"):
                con.execute(query).fetchall()
    with lakelite.connect(path, autocommit=True) as con:
        assert any("30000000 rows" in row[2] for row in con.execute("CHECK LAKE").fetchall())


def test_filters_that_lie_or_are_large_are_no_filters(path: Path) -> None:
    filters = sorted((path / "data").rglob("*.keys"))
    assert filters
    for content in (
        struct.pack("<QB", 2**60, 60), struct.pack("<QB", 0, 3), b"", struct.pack("<QB", 1, 0) + struct.pack("<II", 5, 1) + b"\0\0", struct.pack("<QB", 2**64 - 1, 255) + bytes(100),
    ):  # fmt: skip
        for file in filters:
            kept = file.read_bytes()
            tag_bytes = int.from_bytes(kept[:4], "little")
            tag = kept[16 : 16 + tag_bytes]
            file.write_bytes(struct.pack("<IQI", len(tag), len(content), zlib.crc32(tag + content)) + tag + content)
        with lakelite.connect(path, autocommit=True) as con, pytest.raises(lakelite.IntegrityError):
            con.execute("INSERT INTO t (k) VALUES (5)")
    with open(filters[0], "wb") as file:
        file.truncate(2**40)  # a hole of a terabyte
    with lakelite.connect(path, autocommit=True) as con, pytest.raises(lakelite.IntegrityError):
        con.execute("INSERT INTO t (k) VALUES (5)")
