"""Names are only names; what a statement, a person's history and an error may hold has bounds."""

from __future__ import annotations

import os
import random
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakelite

ROOT = Path(lakelite.__file__).parent
_PARTS = (
    *"abzAZ09 _-.,;:'\"`()[]{}<>/\\|!?@#$%^&*+=~\t\n\r", "--", "/*", "*/", "''", '""', "$$", "::", "select", "from", "drop table t", "null", "main", "lake", "memory", "é", "ß", "Ünï", "e\u0301", "漢字", "😀",
    "\u202e", "\u200b", "\ufeff", "\u00a0", "\x01", "\x7f", "..", "../..", "/etc/passwd", "C:\\", "%s", "%2e", "{0}", "$1", "?", "x.parquet", "@3", "rowid", "_row_id", "lake_internal", "I", "ı", "İ",
)  # fmt: skip


def names(count: int) -> list[str]:
    """Random ones, no two alike to SQL, and none that is taken."""
    draw = random.Random(1)
    found: dict[str, str] = {}
    while len(found) < count:
        name = "".join(draw.choice(_PARTS) for _ in range(draw.randrange(1, 7)))
        key = "".join(c.lower() if c.isascii() else c for c in name)
        if name and key not in ("_row_id", "lake_internal", "main", "lake", "memory", "system", "temp", "information_schema", "pg_catalog"):
            found[key] = name
    return list(found.values())


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakelite.Connection]:
    with lakelite.connect(tmp_path_factory.mktemp("names") / "lake", autocommit=True) as con:
        yield con


COLUMNS_OF_A_TABLE = 50


def test_1500_names_come_back_as_they_were(con: lakelite.Connection, tmp_path: Path) -> None:
    """As columns, each in one table of several; 150 of them also as tables, 60 as schemas, 30 as branches and tags; all through an export."""
    every = names(1500)
    schemas = [name for name in every[300:400] if "@" not in name]  # which is for versions: lake@3
    con.execute("BEGIN")
    tables: dict[str, list[str]] = {}
    for number in range(len(every) // COLUMNS_OF_A_TABLE):
        columns = every[number * COLUMNS_OF_A_TABLE :][:COLUMNS_OF_A_TABLE]
        tables[every[number]] = columns
        con.execute(f"CREATE TABLE {quoted(every[number])} ({', '.join(f'{quoted(c)} INTEGER' for c in columns)})")
        con.execute(f"INSERT INTO {quoted(every[number])} ({quoted(columns[3])}) VALUES (?)", (number,))
    for name in every[100:220]:
        con.execute(f"CREATE TABLE {quoted(name)} ({quoted(name)} INTEGER)")
        tables[name] = [name]
    for name in schemas:
        con.execute(f"CREATE SCHEMA {quoted(name)}")
    con.execute("COMMIT")
    for table, columns in tables.items():
        cursor = con.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table)}")
        assert [column[0] for column in cursor.description] == columns
    assert {name for (name,) in con.execute("SHOW TABLES").fetchall()} == {*tables}
    assert {name for (name,) in con.execute("SELECT column_name FROM lake.columns").fetchall()} == {*every}
    assert {name for (name,) in con.execute("SELECT schema_name FROM information_schema.schemata").fetchall()} >= {*schemas}
    con.execute(f"EXPORT DATABASE '{tmp_path}/export'")
    files = [path.relative_to(tmp_path / "export") for path in (tmp_path / "export").rglob("*")]
    assert all(len(path.parts) == 1 for path in files), "a name made a folder"
    with lakelite.connect(tmp_path / "again", autocommit=True) as other:
        other.execute(f"IMPORT DATABASE '{tmp_path}/export'")
        of_columns = "SELECT table_name, column_name FROM lake.columns ORDER BY ALL"
        assert other.execute(of_columns).fetchall() == con.execute(of_columns).fetchall()
        for number, (table, columns) in enumerate([*tables.items()][: len(every) // COLUMNS_OF_A_TABLE]):
            assert other.execute(f"SELECT {quoted(columns[3])} FROM {quoted(table)}").fetchall() == [(number,)]
    root = con._session.lake.paths.root
    assert {path.name for path in root.parent.iterdir()} == {"lake"}
    assert all(re.fullmatch(r"[a-z0-9.-]+", path.name) for path in root.rglob("*"))


def test_names_of_branches_and_tags(con: lakelite.Connection) -> None:
    for number, name in enumerate(names(30)):
        con.execute(f"CREATE BRANCH {quoted(name)}; CREATE TAG {quoted(f'{name} {number}')}")
        assert con.execute(f"SELECT 1 AS a FROM lake.branches WHERE name = '{name.replace(chr(39), chr(39) * 2)}'").fetchall() == [(1,)]
        con.execute(f"USE BRANCH {quoted(name)}; USE BRANCH main; DROP BRANCH {quoted(name)}; DROP TAG {quoted(f'{name} {number}')}")


def test_names_in_the_prompt(con: lakelite.Connection, tmp_path: Path) -> None:
    some = [name for name in names(200) if "\n" not in name and "\r" not in name and name.isprintable()][:80]
    script = ";\n".join([f"CREATE TABLE {quoted(name)} ({quoted(name)} INTEGER)" for name in some] + ["SELECT table_name FROM lake.tables"])
    done = subprocess.run(
        [sys.executable, "-m", "lakelite", str(tmp_path / "lake"), "--json"], input=script, capture_output=True, text=True, timeout=100, check=True
    )
    import json

    found = (
        [row["table_name"] for row in (json.loads(line) for line in done.stdout.splitlines() if "table_name" in line) if isinstance(row, dict)]
        if (done.stdout.lstrip().startswith("{"))
        else [row["table_name"] for row in json.loads(done.stdout)]
    )
    assert sorted(found) == sorted(some)


@pytest.mark.parametrize(
    "sql",
    [
        'CREATE TABLE "" (a INTEGER)',
        'CREATE TABLE x ("" INTEGER)',
        'CREATE SCHEMA ""',
        'CREATE BRANCH ""',
        'CREATE TAG ""',
        'CREATE TABLE "a\0b" (a INTEGER)',
        'CREATE TABLE x ("a\0b" INTEGER)',
        'CREATE BRANCH "a\0"',
    ],
)
def test_names_that_there_are_not(con: lakelite.Connection, sql: str) -> None:
    with pytest.raises(lakelite.Error):
        con.execute(sql)


# Bounds.


def test_nothing_that_is_kept_is_a_pickle() -> None:
    for file in ROOT.rglob("*.py"):
        assert not re.search(r"\b(?:pickle|shelve|marshal|dill|joblib|allow_pickle)\b|\b(?:eval|exec)\(", file.read_text()), file


def test_modes_follow_the_umask_and_a_private_lake_is_its_owner_s(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for name, private, mode in (("open", False, 0o750), ("own", True, 0o700)):
            with lakelite.connect(tmp_path / name, autocommit=True, private=private) as con:
                con.execute("CREATE TABLE t AS SELECT range AS a FROM range(5000)")
                con.execute(f"BACKUP TO '{tmp_path}/{name} copy'")
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
            assert stat.S_IMODE((tmp_path / f"{name} copy").stat().st_mode) == mode
            assert not any(stat.S_IMODE(path.stat().st_mode) & 0o027 for path in (tmp_path / name).rglob("*"))
    finally:
        os.umask(before)


def test_private_on_the_command_line(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "lakelite", str(tmp_path / "own"), "--private", "-c", "SELECT 1"], check=True, capture_output=True, timeout=100
    )
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "sql", ["SELECT " + "(" * 5000 + "1" + ")" * 5000, "SELECT " + "[" * 5000 + "]" * 5000, "SELECT " + "NOT " * 20_000 + "true", "SELECT 1" + " + 1" * 20_000, "SELECT '" + "x" * 1_100_000 + "'", "SELECT " + "case when true then " * 3000]
)  # fmt: skip
def test_statements_that_are_too_deep_or_too_long(con: lakelite.Connection, sql: str) -> None:
    with pytest.raises(lakelite.Error):
        con.execute(sql).fetchall()
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_memory_and_time_have_limits(con: lakelite.Connection) -> None:
    try:
        con.execute("SET memory_limit = '50MB'; SET threads = 1")
        with pytest.raises(lakelite.OperationalError, match=r"[Mm]emory"):
            con.execute("SELECT max(len(l)) FROM (SELECT list(range) AS l FROM range(20_000_000))").fetchall()
        con.execute("SET statement_timeout_ms = 200")
        with pytest.raises(lakelite.OperationalError, match="statement_timeout_ms"):
            con.execute("WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 1e12) SELECT max(a) FROM r").fetchall()
    finally:
        con.execute("RESET statement_timeout_ms; RESET memory_limit; RESET threads")
