"""VACUUM beside living and dead writers and readers: nothing goes that anybody may still need, and nothing else stays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crashing import Job, Server, catalogued_files, contents, data_files, rows

import lakelite
from lakelite.storage import files, leases

FILES = 60
FILE_ROWS = 50_000
INSERT = "INSERT INTO t SELECT range FROM range(10)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def connect(path: Path) -> Iterator[Callable[..., Any]]:
    """Makes connections whose every write becomes a file, and closes them."""
    made = []

    def one(**options: Any) -> Any:
        con = lakelite.connect(path, autocommit=True, **options)
        con.execute("SET inline_rows = 0")
        made.append(con)
        return con

    yield one
    for con in made:
        con.close()


def vacuum(con: Any, statement: str = "VACUUM RETAIN 0 HOURS") -> dict[str, Any]:
    cursor = con.execute(statement)
    return dict(zip([d[0] for d in cursor.description], cursor.fetchone(), strict=True))


def test_the_files_of_a_living_writer_stay_and_its_commit_lands(path: Path, connect: Callable[..., Any], server: Server, tmp_path: Path) -> None:
    con = connect()
    con.execute("CREATE TABLE t (a BIGINT)")
    os.mkfifo(tmp_path / "gate")
    writer = server.start("hold", lake=str(path), statements=[INSERT], step="sync_directory", gate=str(tmp_path / "gate"))
    writer.wait_for("stopped")
    written = data_files(path)
    assert len(written) == 1
    assert vacuum(con)["orphans_removed"] == 0
    assert data_files(path) == written
    (tmp_path / "gate").write_bytes(b"")
    writer.wait_for("done")
    assert writer.finish() == ([], 0)
    assert rows(con, "SELECT count(*), sum(a) FROM t") == [(10, 45)]
    assert data_files(path) == catalogued_files(path) == written


@pytest.mark.parametrize("meanwhile", ["it ends", "it begins"])
def test_a_writer_that_ends_or_begins_in_the_middle_of_a_sweep(
    meanwhile: str, path: Path, connect: Callable[..., Any], server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are listed first, then who lives is looked up, then what is committed: no other order is safe."""
    con = connect()
    con.execute("CREATE TABLE t (a BIGINT)")
    os.mkfifo(tmp_path / "gate")

    def begin() -> None:
        writers.append(server.start("hold", lake=str(path), statements=[INSERT], step="sync_directory", gate=str(tmp_path / "gate")))
        writers[0].wait_for("stopped")

    def end() -> None:
        (tmp_path / "gate").write_bytes(b"")
        writers[0].wait_for("done")
        assert writers[0].finish() == ([], 0)

    writers: list[Job] = []
    name, act = ("live_sessions", end) if meanwhile == "it ends" else ("list_data_files", begin)
    module = leases if meanwhile == "it ends" else files
    look = getattr(module, name)
    if meanwhile == "it ends":
        begin()
    with monkeypatch.context() as patched:
        patched.setattr(module, name, lambda paths: (patched.undo(), act(), look(paths))[2])
        assert vacuum(con)["orphans_removed"] == 0
    if meanwhile == "it begins":
        end()
    assert rows(con, "SELECT count(*) FROM t") == [(10,)]
    assert data_files(path) == catalogued_files(path)


@pytest.mark.parametrize("step", ["write", "sync_directory", "publish"])
def test_the_files_of_a_killed_writer_are_orphans_and_go(step: str, path: Path, connect: Callable[..., Any], server: Server, tmp_path: Path) -> None:
    con = connect()
    con.execute("CREATE TABLE t (a BIGINT)")
    con.execute(INSERT)
    kept = data_files(path)
    os.mkfifo(tmp_path / "gate")
    writer = server.start("hold", lake=str(path), statements=[INSERT], step=step, gate=str(tmp_path / "gate"))
    writer.wait_for("stopped")
    writer.kill()
    size_bytes = sum((path / "data" / str(table) / name).stat().st_size for table, name in data_files(path) - kept)
    assert vacuum(con, "VACUUM DRY RUN")["orphans_removed"] == 1
    assert len(data_files(path)) == 2
    done = vacuum(con, "VACUUM")
    assert (done["orphans_removed"], done["bytes_freed"]) == (1, size_bytes)
    assert data_files(path) == catalogued_files(path) == kept
    assert os.listdir(path / "leases") == [f"{con._session.lake.session_id}.lease"]
    assert os.listdir(path / "tmp") in ([], [con._session.lake.session_id])
    con.execute(INSERT)
    assert rows(con, "SELECT count(*) FROM t") == [(20,)]


def test_vacuum_of_one_table_sweeps_its_orphans_only(path: Path, connect: Callable[..., Any], server: Server, tmp_path: Path) -> None:
    con = connect()
    con.execute("CREATE TABLE t (a BIGINT)")
    con.execute("CREATE TABLE u (a BIGINT)")
    os.mkfifo(tmp_path / "gate")
    for table in "tu":
        writer = server.start("hold", lake=str(path), statements=[INSERT.replace("t ", f"{table} ", 1)], step="write", gate=str(tmp_path / "gate"))
        writer.wait_for("stopped")
        writer.kill()
    assert len(data_files(path)) == 2
    assert vacuum(con, "VACUUM t")["orphans_removed"] == 1
    assert vacuum(con, "VACUUM u")["orphans_removed"] == 1
    assert data_files(path) == set()


def versions(con: Any) -> None:
    """Versions 1 to 4: rows 0…9, without 3, without 3 and 4, all new."""
    con.execute("CREATE TABLE t AS SELECT range AS a FROM range(10)")
    con.execute("DELETE FROM t WHERE a = 3")
    con.execute("DELETE FROM t WHERE a = 4")
    con.execute("INSERT OVERWRITE t SELECT range + 100 FROM range(5)")


def test_old_versions_go_and_are_refused_by_name(path: Path, connect: Callable[..., Any]) -> None:
    con = connect()
    versions(con)
    assert rows(con, "SELECT count(*) FROM t AT (VERSION => 2)") == [(9,)]
    done = vacuum(con)
    assert (done["versions_expired"], done["fragments_expired"], done["oldest_version"], done["orphans_removed"]) == (4, 1, 4, 0)
    assert rows(con, "SELECT sum(a) FROM t AT (VERSION => 4)") == rows(con, "SELECT sum(a) FROM t") == [(510,)]
    for version in range(4):
        with pytest.raises(lakelite.OperationalError, match=f"version {version} has expired; the oldest kept one is 4"):
            con.execute(f"SELECT count(*) FROM t AT (VERSION => {version})")
    assert len(data_files(path)) == 1
    assert data_files(path) == catalogued_files(path)
    assert [row[0] for row in rows(con, "DESCRIBE HISTORY")] == [4]


def test_what_is_younger_stays(path: Path, connect: Callable[..., Any]) -> None:
    con = connect()
    versions(con)
    for statement in ("VACUUM", "VACUUM RETAIN 1 HOURS"):
        assert vacuum(con, statement)["versions_expired"] == 0
    assert rows(con, "SELECT count(*) FROM t AT (VERSION => 2)") == [(9,)]


def test_vacuum_of_one_table_expires_its_rows_only(path: Path, connect: Callable[..., Any]) -> None:
    con = connect()
    versions(con)
    con.execute("CREATE TABLE u AS SELECT 1 AS b")
    con.execute("INSERT OVERWRITE u SELECT 2")
    assert vacuum(con, "VACUUM t RETAIN 0 HOURS")["fragments_expired"] == 1
    assert rows(con, "FROM u AT (VERSION => 5)") == [(1,)]
    with pytest.raises(lakelite.OperationalError, match="version 2 of t has expired; the oldest kept one is 6"):
        con.execute("FROM t AT (VERSION => 2)")
    assert rows(con, "SELECT count(*) FROM t AT (VERSION => 6)") == rows(con, "SELECT count(*) FROM t") == [(5,)]
    assert data_files(path) == catalogued_files(path)


def test_a_dry_run_changes_nothing_and_says_what_would_happen(path: Path, connect: Callable[..., Any]) -> None:
    con = connect()
    versions(con)
    files, history = data_files(path), rows(con, "DESCRIBE HISTORY")
    planned = vacuum(con, "VACUUM RETAIN 0 HOURS DRY RUN")
    assert planned.pop("dry_run") is True
    assert (data_files(path), rows(con, "DESCRIBE HISTORY")) == (files, history)
    assert rows(con, "SELECT count(*) FROM t AT (VERSION => 1)") == [(10,)]
    done = vacuum(con)
    assert done.pop("dry_run") is False
    assert done == planned


def test_an_open_transaction_pins_its_base(path: Path, connect: Callable[..., Any]) -> None:
    con, reader = connect(), connect()
    versions(con)
    con.execute("DROP TABLE t")
    con.execute("CREATE TABLE t AS SELECT range AS a FROM range(10)")
    reader.execute("BEGIN")
    con.execute("DELETE FROM t WHERE a < 5")
    con.execute("DROP TABLE t")
    assert vacuum(con)["oldest_version"] == 6
    assert rows(reader, "SELECT count(*), sum(a) FROM t") == [(10, 45)]
    reader.execute("COMMIT")
    assert vacuum(con)["oldest_version"] == 8
    assert data_files(path) == set()
    assert contents(reader) == {}


def test_a_half_read_result_pins_its_snapshot(path: Path, connect: Callable[..., Any]) -> None:
    con, reader = connect(), connect()
    for start in range(0, 300_000, 100_000):
        con.execute(f"{'CREATE TABLE t AS' if start == 0 else 'INSERT INTO t'} SELECT range + {start} AS a FROM range(100000)")
    cursor = reader.execute("SELECT a FROM t")
    first = cursor.fetchmany(5)
    con.execute("INSERT OVERWRITE t SELECT 1")
    assert vacuum(con)["versions_expired"] == 3
    assert len(data_files(path)) == 4
    assert sorted(first + cursor.fetchall()) == [(a,) for a in range(300_000)]
    vacuum(con)
    assert len(data_files(path)) == 1


def test_a_half_read_old_version_is_pinned_too(path: Path, connect: Callable[..., Any]) -> None:
    """More files than DuckDB has opened by the time that VACUUM comes."""
    con, reader = connect(), connect()
    con.execute("SET upkeep = off; CREATE TABLE t (a BIGINT)")
    for n in range(FILES):
        con.execute(f"INSERT INTO t SELECT {n} FROM range({FILE_ROWS})")
    con.execute("INSERT OVERWRITE t SELECT 1")
    reader.execute("BEGIN")
    cursor = reader.execute(f"SELECT a FROM t AT (VERSION => {FILES + 1})")
    first = cursor.fetchmany(5)
    reader.execute("COMMIT")
    assert vacuum(con)["oldest_version"] == FILES + 1
    assert len(first + cursor.fetchall()) == FILES * FILE_ROWS
    assert vacuum(con)["oldest_version"] == FILES + 2


def test_an_open_transaction_pins_the_old_versions_that_it_has_read(path: Path, connect: Callable[..., Any]) -> None:
    con, reader = connect(), connect()
    versions(con)
    reader.execute("BEGIN")
    assert vacuum(con, "VACUUM RETAIN 0 HOURS DRY RUN")["oldest_version"] == 4
    for _ in range(2):
        assert rows(reader, "SELECT count(*) FROM t AT (VERSION => 2)") == [(9,)]
        assert vacuum(con)["oldest_version"] == 2
    reader.execute("ROLLBACK")
    assert vacuum(con)["oldest_version"] == 4


def test_a_closed_result_and_a_dead_reader_pin_nothing(path: Path, connect: Callable[..., Any], server: Server, tmp_path: Path) -> None:
    con, reader = connect(), connect()
    versions(con)
    reader.execute("SELECT a FROM t").close()
    os.mkfifo(tmp_path / "gate")
    dead = server.start("hold", lake=str(path), statements=["BEGIN", "FROM t"], step="scan", gate=str(tmp_path / "gate"))
    dead.wait_for("stopped")
    con.execute("INSERT OVERWRITE t SELECT 7")
    assert vacuum(con)["oldest_version"] == 4
    dead.kill()
    assert vacuum(con)["oldest_version"] == 5
    assert len(data_files(path)) == 1


@pytest.mark.parametrize("look", ["FROM t", "SHOW TABLES", "UPDATE t SET a = a WHERE a = 0"])
def test_an_idle_session_sees_the_head_after_a_vacuum(look: str, path: Path, connect: Callable[..., Any]) -> None:
    """Its view is older than what is kept; tables that it had loaded may have lost, won or exchanged rows, files and columns."""
    con, idle = connect(), connect()
    for name in "tuvwx":
        con.execute(f"CREATE TABLE {name} AS SELECT range AS a FROM range(10)")
    con.execute("DELETE FROM v WHERE a = 1")
    before = contents(idle)
    assert len(before["v"]) == 9
    con.execute("INSERT OVERWRITE t SELECT range + 50 FROM range(3)")  # the file of t is exchanged, then deleted from
    con.execute("DELETE FROM t WHERE a = 51")
    con.execute("INSERT INTO u VALUES (77)")
    con.execute("DELETE FROM v WHERE a = 2")  # the vector is replaced
    con.execute("DROP TABLE w")
    con.execute("CREATE OR REPLACE TABLE x (b VARCHAR)")
    con.execute("INSERT INTO x VALUES ('new')")
    assert vacuum(con)["oldest_version"] == 13
    idle.execute(look).close()
    ten = [(a,) for a in range(10)]
    expected = {"t": [(50,), (52,)], "u": [*ten, (77,)], "v": [(0,), *ten[3:]], "x": [("new",)]}
    assert {name: sorted(found) for name, found in contents(idle).items()} == expected
    idle.execute("INSERT INTO t VALUES (1)")
    assert sorted(rows(con, "FROM t")) == [(1,), (50,), (52,)]


def test_an_idle_session_after_a_vacuum_of_one_table(path: Path, connect: Callable[..., Any]) -> None:
    con, idle = connect(), connect()
    versions(con)
    con.execute("DELETE FROM t WHERE a = 101")
    assert len(rows(idle, "FROM t")) == 4
    con.execute("DELETE FROM t WHERE a = 102")
    con.execute("INSERT OVERWRITE t SELECT range FROM range(4)")
    con.execute("DELETE FROM t WHERE a = 1")
    vacuum(con, "VACUUM t RETAIN 0 HOURS")
    assert sorted(rows(idle, "FROM t")) == [(0,), (2,), (3,)]


def test_a_commit_whose_history_has_expired_is_impossible(path: Path, connect: Callable[..., Any]) -> None:
    """A transaction pins its base, so its winners are never pruned, however often it is vacuumed meanwhile."""
    con, slow = connect(), connect()
    con.execute("CREATE TABLE t AS SELECT range AS a, 0 AS b FROM range(10)")
    slow.execute("BEGIN")
    slow.execute("UPDATE t SET b = 1 WHERE a = 5")
    for a in (1, 2):
        con.execute(f"DELETE FROM t WHERE a = {a}")
        assert vacuum(con)["versions_expired"] == (1 if a == 1 else 0)
    slow.execute("COMMIT")
    assert sorted(rows(con, "FROM t")) == [(0, 0), (3, 0), (4, 0), (5, 1), *((a, 0) for a in range(6, 10))]


def test_what_a_vacuum_cannot_be(path: Path, connect: Callable[..., Any]) -> None:
    con = connect()
    versions(con)
    reader = connect(read_only=True)
    with pytest.raises(lakelite.OperationalError, match="read-only"):
        reader.execute("VACUUM")
    con.execute("BEGIN")
    with pytest.raises(lakelite.ProgrammingError, match="inside a transaction"):
        con.execute("VACUUM")
    con.execute("ROLLBACK")
    with pytest.raises(lakelite.ProgrammingError, match="nope"):
        con.execute("VACUUM nope")
