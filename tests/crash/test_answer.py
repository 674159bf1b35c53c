"""COMMITs whose answer is an error, damaged content, and forks: what the user is told is what has happened."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crashing import Server, catalogued_files, data_files, opened, rows

import lakelite
from lakelite.errors import CannotOpen
from lakelite.transaction import commit as committing

LOST = "COMMIT"
GROWTH_KB = 100_000  # the 7,000,000 rows more are some 250 MB


class Wire:
    """A sqlite3 connection whose next COMMIT gives an error, before or after it has really been done."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.fail: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql != LOST or self.fail is None:
            return self._connection.execute(sql, *parameters)
        when, self.fail = self.fail, None
        if when == "after":
            self._connection.execute(sql)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def con(path: Path) -> Iterator[Any]:
    """A connection whose every write is a file, to a lake with a table t of the rows 0 … 9."""
    with opened(path) as con:
        con.execute("SET inline_rows = 0")
        con.execute("CREATE TABLE t AS SELECT range AS a FROM range(10)")
        yield con


def wired(con: Any) -> Wire:
    catalog = con._session.lake.catalog
    catalog._sqlite = Wire(catalog._sqlite)
    return catalog._sqlite


def transaction_ids(con: Any) -> list[str]:
    cursor = con.execute("DESCRIBE HISTORY")
    column = [d[0] for d in cursor.description].index("transaction_id")
    return [row[column] for row in cursor.fetchall()]


WRITES: dict[str, tuple[list[str], int, list[int]]] = {
    "insert": (["INSERT INTO t SELECT 100 FROM range(3)"], 3, [*range(10), 100, 100, 100]),
    "delete": (["DELETE FROM t WHERE a < 4"], 4, [*range(4, 10)]),
    "update": (["UPDATE t SET a = a + 20 WHERE a < 2"], 2, [*range(2, 10), 20, 21]),
    "transaction": (["BEGIN", "INSERT INTO t VALUES (30)", "DELETE FROM t WHERE a = 0", "COMMIT"], -1, [*range(1, 10), 30]),
}


@pytest.mark.parametrize("name", WRITES)
def test_it_has_landed(name: str, con: Any, path: Path) -> None:
    """The normal result, once."""
    statements, count, expected = WRITES[name]
    wire = wired(con)
    for sql in statements:
        if sql == statements[-1]:
            wire.fail = "after"
        cursor = con.execute(sql)
    assert wire.fail is None
    assert cursor.rowcount == count
    assert con.last_commit.snapshot_id == 2
    assert transaction_ids(con)[0] == con.last_commit.transaction_id
    for look in (con, lakelite.connect(path)):
        assert rows(look, "FROM t ORDER BY a") == [(a,) for a in expected]
    look.close()
    assert data_files(path) == catalogued_files(path)


@pytest.mark.parametrize("name", WRITES)
def test_it_has_not_landed(name: str, con: Any, path: Path) -> None:
    """An error, and nothing of it is there; the next commit works. A transaction is open still, and its COMMIT can be tried again."""
    statements, _, expected = WRITES[name]
    wire = wired(con)
    for sql in statements[:-1]:
        con.execute(sql)
    wire.fail = "before"
    with pytest.raises(lakelite.OperationalError, match="disk I/O error") as caught:
        con.execute(statements[-1])
    assert type(caught.value) is lakelite.OperationalError
    assert con.in_transaction == (name == "transaction")
    assert con.last_commit.snapshot_id == 1
    with opened(path) as other:
        assert rows(other, "FROM t ORDER BY a") == [(a,) for a in range(10)]
    if not con.in_transaction:
        assert data_files(path) == catalogued_files(path)
    for sql in ["COMMIT"] if con.in_transaction else statements:
        con.execute(sql)
    assert rows(con, "FROM t ORDER BY a") == [(a,) for a in expected]
    assert data_files(path) == catalogued_files(path)


@pytest.mark.parametrize("when", ["before", "after"])
def test_nobody_can_say(when: str, con: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CommitUnknown with the id by which DESCRIBE HISTORY tells it later. Files stay until that is known."""

    def unreachable(*arguments: Any, **options: Any) -> Any:
        raise CannotOpen("the catalog cannot be opened: unable to open database file")

    wire = wired(con)
    wire.fail = when
    with monkeypatch.context() as patched:
        patched.setattr(committing, "open_catalog", unreachable)
        with pytest.raises(lakelite.CommitUnknown, match="may or may not have landed") as caught:
            con.execute("INSERT INTO t SELECT 100 FROM range(3)")
    assert caught.value.transaction_id in str(caught.value)
    assert len(data_files(path)) == 2
    con.close()
    with opened(path) as again:
        landed = caught.value.transaction_id in transaction_ids(again)
        assert landed == (when == "after")
        assert rows(again, "SELECT count(*) FROM t") == [(13 if landed else 10,)]
        again.execute("VACUUM")
        assert data_files(path) == catalogued_files(path)
        assert len(data_files(path)) == (2 if landed else 1)


@pytest.mark.parametrize(("statement", "made"), [("CREATE TABLE u (a INTEGER)", False), ("VACUUM RETAIN 0 HOURS", None)])
def test_a_lost_answer_elsewhere(statement: str, made: bool | None, con: Any, path: Path) -> None:
    """Reserving ids and forgetting versions are commits of the catalog too; their failure is an ordinary error."""
    con.execute("INSERT OVERWRITE t SELECT range FROM range(10)")
    wired(con).fail = "before"
    with pytest.raises(lakelite.OperationalError, match="disk I/O error"):
        con.execute(statement)
    assert rows(con, "FROM t ORDER BY a") == [(a,) for a in range(10)]
    assert catalogued_files(path) - data_files(path) == set()
    con.execute(statement).close()
    assert len(rows(con, "SHOW TABLES")) == (1 if made is None else 2)


def test_a_checkpoint_that_fails_is_a_warning(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise lakelite.OperationalError("the disk reported an error")

    monkeypatch.setattr(committing, "CHECKPOINT_BYTES", 0)
    monkeypatch.setattr(con._session.lake.catalog, "checkpoint", fail)
    cursor = con.execute("INSERT INTO t VALUES (10)")
    assert cursor.rowcount == 1
    assert [text for _, text in cursor.messages] == ["the catalog could not be checkpointed: the disk reported an error"]
    assert rows(con, "SELECT count(*) FROM t") == [(11,)]


# Damage.


def in_catalog(path: Path, sql: str, *parameters: Any) -> None:
    with closing(sqlite3.connect(path / "catalog.sqlite")) as catalog:
        assert catalog.execute(sql, parameters).rowcount == 1
        catalog.commit()


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def garble(file: Path) -> None:
    file.write_bytes(b"\0" * file.stat().st_size)


@pytest.fixture
def lake(path: Path) -> Path:
    """Tables f (in a file), i (inline) and o (another one), whose vectors are in fragments 1, 2 and 3."""
    with opened(path) as con:
        con.execute("CREATE TABLE f AS SELECT range AS a FROM range(5000)")
        con.execute("CREATE TABLE i AS SELECT range AS a FROM range(50)")
        con.execute("CREATE TABLE o AS SELECT range AS a FROM range(50)")
        for table in "fio":
            con.execute(f"DELETE FROM {table} WHERE a % 10 = 3")
    return path


@pytest.mark.parametrize(
    ("damage", "message"),
    [(Path.unlink, "missing"), (truncate, "bytes, the catalog says"), (garble, "magic bytes")],
    ids=["missing", "cut off", "zeros"],
)
def test_a_damaged_file(damage: Callable[[Path], None], message: str, lake: Path) -> None:
    [(table, name)] = data_files(lake)
    damage(lake / "data" / str(table) / name)
    with opened(lake) as con:
        for sql in ("SELECT sum(a) FROM f", "DELETE FROM f WHERE a = 7", "UPDATE f SET a = 0 WHERE a = 7"):
            with pytest.raises((lakelite.OperationalError, lakelite.InternalError), match=message) as caught:
                con.execute(sql).fetchall()
            assert name in str(caught.value)
        check_the_rest(con, "io")


@pytest.mark.parametrize(("table", "fragment", "rest"), [("f", 1, "io"), ("i", 2, "fo")])
@pytest.mark.parametrize("change", ["bits = zeroblob(length(bits))", "cardinality = cardinality - 1", "crc32 = 1 - crc32"])
def test_a_damaged_deletion_vector(change: str, table: str, fragment: int, rest: str, lake: Path) -> None:
    in_catalog(lake, f"UPDATE deletion_vectors SET {change} WHERE fragment_id = ?", fragment)
    with opened(lake) as con:
        for sql in (f"FROM {table}", f"DELETE FROM {table} WHERE a = 7"):
            with pytest.raises(lakelite.InternalError, match=f"fragment {fragment}: a deletion vector is damaged"):
                con.execute(sql).fetchall()
        check_the_rest(con, rest)


@pytest.mark.parametrize(
    "change", ["zeroblob(length(ipc))", "substr(ipc, 1, length(ipc) - 20)", "x''", "(SELECT ipc FROM inline_rows WHERE fragment_id = 4)", "flip"]
)
def test_a_damaged_inline_fragment(change: str, lake: Path) -> None:
    with opened(lake) as con:
        con.execute("CREATE TABLE extra AS SELECT range + 1 AS a FROM range(50)")
    if change == "flip":
        with closing(sqlite3.connect(lake / "catalog.sqlite")) as catalog:
            ipc = bytearray(catalog.execute("SELECT ipc FROM inline_rows WHERE fragment_id = 2").fetchone()[0])
        ipc[len(ipc) // 2] ^= 1
        in_catalog(lake, "UPDATE inline_rows SET ipc = ? WHERE fragment_id = 2", bytes(ipc))
    else:
        in_catalog(lake, f"UPDATE inline_rows SET ipc = {change} WHERE fragment_id = 2")
    with opened(lake) as con:
        for sql in ("FROM i", "DELETE FROM i WHERE a = 7"):
            with pytest.raises(lakelite.InternalError, match="inline fragment 2 is damaged"):
                con.execute(sql).fetchall()
        check_the_rest(con, "fo")


def check_the_rest(con: Any, tables: str) -> None:
    for table in tables:
        con.execute(f"INSERT INTO {table} VALUES (-1)")
        assert rows(con, f"SELECT count(*) FROM {table}") == [(4501 if table == "f" else 46,)]


# Forks.


def test_a_forked_child_cannot_use_its_parents_connection(path: Path, server: Server) -> None:
    job = server.start("use_in_fork", lake=str(path))
    for _ in range(4):
        assert job.wait_for("child")["error"] == "InterfaceError"
    parent = job.wait_for("parent")
    assert (parent["rows"], parent["cursor"]) == (4, 9997)
    assert job.finish() == ([], 0)
    with opened(path) as con:
        assert rows(con, "FROM t") == [(2,)] * 4


# Memory.

PEAK = """
import resource, sys
import lakelite
con = lakelite.connect(sys.argv[1], autocommit=True)
con.execute("SET threads = 2")
con.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
cursor = con.execute(f"INSERT INTO t SELECT range, 'name ' || range FROM range({sys.argv[2]})")
assert cursor.rowcount == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
con.close()
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    few, many = (
        int(subprocess.run([sys.executable, "-c", PEAK, tmp_path / count, count], check=True, capture_output=True, text=True).stdout)
        for count in ("1000000", "8000000")
    )
    assert many < few + GROWTH_KB, f"{few} kB for 1,000,000 rows, {many} kB for 8,000,000"
