"""Branches and tags: what each of them sees, what is shared, what VACUUM keeps of them, and what their names mean."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from racing import meeting

import lakelite
from lakelite.__main__ import main
from lakelite.maintenance import vacuum as vacuuming


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def con(path: Path) -> Iterator[Any]:
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER, v INTEGER)")  # 1
        con.execute("INSERT INTO t SELECT r, 0 FROM range(2000) q(r)")  # 2
        con.execute("INSERT INTO t VALUES (5000, 0), (5001, 0)")  # 3
        con.execute("DELETE FROM t WHERE k < 10")  # 4
        con.execute("CREATE BRANCH dev")  # 5
        yield con


@pytest.fixture
def dev(path: Path, con: Any) -> Iterator[Any]:
    with lakelite.connect(path, autocommit=True, branch="dev") as dev:
        yield dev


def answer(con: Any, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = con.execute(sql, parameters).fetchall()
    return found


def files(path: Path) -> set[str]:
    return {p.name for p in path.glob("data/*/*.parquet")}


def vacuum(con: Any, statement: str = "VACUUM RETAIN 0 HOURS") -> dict[str, Any]:
    cursor = con.execute(statement)
    return dict(zip([d[0] for d in cursor.description], cursor.fetchone(), strict=True))


COUNT = "SELECT count(*), sum(v) FROM t"


# What a branch is.


def test_a_branch_begins_with_what_its_base_holds_and_no_data_is_written(path: Path, con: Any) -> None:
    before = files(path)
    con.execute("CREATE BRANCH other AT VERSION 2; USE BRANCH other")
    assert con.branch == "other"
    assert answer(con, COUNT) == [(2000, 0)]
    con.execute("USE BRANCH DEV")
    assert con.branch == "dev"
    assert answer(con, COUNT) == [(1992, 0)]
    assert files(path) == before
    assert answer(con, "CHECK LAKE") == []


def test_what_is_done_on_one_branch_is_not_seen_on_another(con: Any, dev: Any) -> None:
    dev.execute(
        "UPDATE t SET v = 1 WHERE k < 20; DELETE FROM t WHERE k = 5000; CREATE TABLE only_dev (a INTEGER); ALTER TABLE t ADD COLUMN w INTEGER"
    )
    con.execute("INSERT INTO t VALUES (1, 7); CREATE SCHEMA s; DROP TABLE IF EXISTS only_dev")
    assert answer(con, "SELECT * FROM t WHERE k IN (1, 15, 5000) ORDER BY k") == [(1, 7), (15, 0), (5000, 0)]
    assert answer(dev, "SELECT * FROM t WHERE k IN (1, 15, 5000) ORDER BY k") == [(15, 1, None)]
    assert answer(con, "SHOW TABLES") == [("t",)]
    assert answer(dev, "SHOW TABLES") == [("only_dev",), ("t",)]
    assert answer(dev, "SELECT table_name FROM lake.tables ORDER BY 1") == [("only_dev",), ("t",)]
    assert answer(con, "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 's'") == [(1,)]
    assert answer(dev, "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 's'") == [(0,)]
    assert answer(con, "CHECK LAKE") == []


def test_a_commit_on_another_branch_is_no_winner(con: Any, dev: Any) -> None:
    with meeting(lambda: dev.execute("UPDATE t SET v = 100")):
        con.execute("UPDATE t SET v = v + 1")
    assert con.last_commit.resolutions == ()
    assert con.last_commit.attempts == 1
    assert answer(con, COUNT) == [(1992, 1992)]
    assert answer(dev, COUNT) == [(1992, 199200)]


def test_winners_on_ones_own_branch_are_met_as_ever(path: Path, dev: Any) -> None:
    with lakelite.connect(path, autocommit=True, branch="dev") as second:
        with meeting(lambda: second.execute("UPDATE t SET v = 10; DELETE FROM t WHERE k = 5000")):
            dev.execute("UPDATE t SET v = v + 1")
        assert len(dev.last_commit.resolutions) == 2
        assert answer(second, COUNT) == [(1991, 1991 * 11)]
        dev.execute("BEGIN; DELETE FROM t WHERE k = 100; SELECT count(*) FROM t")
        dev.execute("SELECT count(*) FROM t").fetchall()
        second.execute("DELETE FROM t WHERE k = 101")
        with pytest.raises(lakelite.TransactionConflict, match="read changed"):
            dev.execute("COMMIT")


def test_snapshots_are_numbered_across_branches(con: Any, dev: Any) -> None:
    dev.execute("INSERT INTO t VALUES (6000, 0)")
    con.execute("INSERT INTO t VALUES (6001, 0)")
    assert answer(con, "SELECT snapshot_id, parent_id, branch, operation FROM lake.snapshots WHERE snapshot_id > 3") == [
        (4, 3, "main", "DELETE"),
        (5, 4, "dev", "CREATE BRANCH"),
        (6, 5, "dev", "INSERT"),
        (7, 4, "main", "INSERT"),
    ]
    assert answer(dev, "SELECT name, head_snapshot_id, base_snapshot_id FROM lake.branches") == [("main", 7, None), ("dev", 6, 4)]
    assert [(row[0], row[1], row[2], row[4]) for row in answer(dev, "SHOW BRANCHES")] == [("main", 7, None, False), ("dev", 6, 4, True)]
    assert [row[0] for row in answer(dev, "DESCRIBE HISTORY t")] == [6, 4, 3, 2, 1]
    assert [row[0] for row in answer(con, "DESCRIBE HISTORY t")] == [7, 4, 3, 2, 1]


# Reading another one, and the past.


def test_other_branches_and_versions_are_read_by_name_and_number(con: Any, dev: Any) -> None:
    dev.execute("DELETE FROM t WHERE k < 1000")  # 6
    con.execute("INSERT INTO t VALUES (1, 1)")  # 7
    assert answer(con, "SELECT count(*) FROM t AT (BRANCH => 'dev')") == [(1002,)]
    assert answer(dev, "SELECT count(*) FROM t AT (BRANCH => 'Main') AS m") == [(1993,)]
    assert answer(con, "SELECT count(*) FROM t AT (BRANCH => ?)", ["main"]) == [(1993,)]
    assert answer(con, "SELECT count(*) FROM t AT (VERSION => 6)") == [(1002,)]
    assert answer(dev, "SELECT count(*) FROM t AT (VERSION => 2)") == [(2000,)]
    assert answer(dev, "SELECT count(*) FROM t AT (VERSION => 7)") == [(1993,)]  # newer, and of another branch
    assert answer(con, "SELECT count(*) FROM t a ANTI JOIN t AT (BRANCH => 'dev') b ON a.k = b.k") == [(991,)]
    with pytest.raises(lakelite.ProgrammingError, match="no version 7"):
        con.execute("DROP BRANCH dev; BEGIN; SELECT * FROM t AT (VERSION => 700)")  # the message names it
    con.execute("ROLLBACK")


def test_within_a_transaction_a_branch_stays_as_it_was_first_named(con: Any, dev: Any) -> None:
    con.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert answer(con, "SELECT count(*) FROM t AT (BRANCH => 'dev')") == [(1992,)]
    dev.execute("DELETE FROM t")
    assert answer(con, "SELECT count(*) FROM t AT (BRANCH => 'dev')") == [(1992,)]
    con.execute("INSERT INTO t SELECT count(*), 5 FROM t AT (BRANCH => 'dev'); COMMIT")
    assert answer(con, "SELECT k FROM t WHERE v = 5") == [(1992,)]
    assert answer(con, "SELECT count(*) FROM t AT (BRANCH => 'dev')") == [(0,)]


def test_times_before_the_branch_are_those_of_its_base(con: Any, dev: Any) -> None:
    dev.execute("DELETE FROM t")
    times = dict(answer(con, "SELECT snapshot_id, committed_at FROM lake.snapshots"))
    at = "SELECT count(*) FROM t AT (TIMESTAMP => ?::TIMESTAMP AT TIME ZONE 'UTC')"
    con.execute("INSERT INTO t VALUES (1, 1)")
    assert answer(dev, at, [times[2]]) == [(2000,)]
    assert answer(dev, at, [times[4]]) == [(1992,)]
    assert answer(con, at, [times[4]]) == [(1992,)]
    assert answer(dev, "SELECT count(*) FROM t AT (TIMESTAMP => now())") == [(0,)]
    assert answer(con, "SELECT count(*) FROM t AT (TIMESTAMP => now())") == [(1993,)]


def test_restore_optimize_changes_and_export_on_a_branch(con: Any, dev: Any, tmp_path: Path) -> None:
    dev.execute("UPDATE t SET v = 1 WHERE k = 20")  # 6
    con.execute("INSERT INTO t VALUES (1, 1)")  # 7
    dev.execute("OPTIMIZE t")  # 8
    dev.execute("DELETE FROM t WHERE k = 21")  # 9
    assert answer(dev, "SELECT snapshot_id, change_type, k, v FROM table_changes('t', 6, 9) ORDER BY ALL") == [
        (6, "update_postimage", 20, 1),
        (6, "update_preimage", 20, 0),
        (9, "delete", 21, 0),
    ]
    with pytest.raises(lakelite.ProgrammingError, match="begins with version 5") as caught:
        dev.execute("SELECT * FROM table_changes('t', 2, 9)")
    assert caught.value.hint == "ask for the changes from version 6 on, and there up to version 4"
    dev.execute("RESTORE t TO VERSION AS OF 2")
    assert answer(dev, COUNT) == [(2000, 0)]
    assert answer(con, COUNT) == [(1993, 1)]
    dev.execute(f"EXPORT DATABASE '{tmp_path / 'out'}'")
    with lakelite.connect(autocommit=True) as fresh:
        fresh.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        assert answer(fresh, COUNT) == [(2000, 0)]
    assert answer(con, "CHECK LAKE") == []
    for _ in range(101):
        dev.execute("INSERT INTO t VALUES (1, 1)")  # upkeep looks after it here, and not there
    assert answer(dev, "SELECT count(*) < 90 FROM lake.fragments WHERE storage = 'inline'") == [(True,)]
    assert answer(con, COUNT) == [(1993, 1)]
    assert answer(con, "CHECK LAKE") == []


# Tags.


def test_tags_name_versions(con: Any, dev: Any) -> None:
    dev.execute("DELETE FROM t WHERE k > 100; CREATE TAG small; CREATE TAG IF NOT EXISTS Small AT VERSION 1")
    con.execute("CREATE TAG v1 AT VERSION 2; CREATE TAG v2 AT TAG v1")
    assert answer(con, "SELECT count(*) FROM t AT (TAG => 'v1')") == answer(dev, "SELECT count(*) FROM t AT (TAG => 'V2')") == [(2000,)]
    assert answer(con, "SELECT count(*) FROM t AT (TAG => 'small')") == [(91,)]
    assert answer(con, "SELECT name, tagged_snapshot_id, branch FROM lake.tags") == [("small", 6, "dev"), ("v1", 2, "main"), ("v2", 2, "main")]
    assert [row[:3] for row in answer(con, "SHOW TAGS")] == [("small", 6, "dev"), ("v1", 2, "main"), ("v2", 2, "main")]
    con.execute("DROP TAG v2; DROP TAG IF EXISTS v2; CREATE BRANCH old AT TAG v1; USE BRANCH old")
    assert answer(con, COUNT) == [(2000, 0)]
    with pytest.raises(lakelite.ProgrammingError, match='tag "v2" does not exist') as caught:
        con.execute("SELECT * FROM t AT (TAG => 'v2')")
    assert caught.value.hint == "the tags are: small, v1"
    with pytest.raises(lakelite.ProgrammingError, match="already exists"):
        con.execute("CREATE TAG V1")


# What cannot be done.


@pytest.mark.parametrize("statement", ["CREATE BRANCH b", "DROP BRANCH dev", "USE BRANCH dev", "CREATE TAG x", "DROP TAG x", "MERGE BRANCH dev"])
def test_not_inside_a_transaction_nor_read_only(path: Path, con: Any, statement: str) -> None:
    con.execute("BEGIN")
    with pytest.raises(lakelite.ProgrammingError, match="cannot run inside a transaction"):
        con.execute(statement)
    con.execute("ROLLBACK")
    with lakelite.connect(path, read_only=True) as reader:
        if statement.startswith("USE"):
            reader.execute(statement)
            assert answer(reader, COUNT) == [(1992, 0)]
        else:
            with pytest.raises(lakelite.OperationalError, match="read-only"):
                reader.execute(statement)


def test_a_branch_that_somebody_drops(con: Any, dev: Any) -> None:
    dev.execute("BEGIN; INSERT INTO t VALUES (1, 1)")
    con.execute("DROP BRANCH dev; DROP BRANCH IF EXISTS dev")
    with pytest.raises(lakelite.OperationalError, match="this branch was dropped") as caught:
        dev.execute("COMMIT")
    assert "USE BRANCH main" in caught.value.hint
    with pytest.raises(lakelite.OperationalError, match="this branch was dropped"):
        dev.execute(COUNT)
    dev.execute("USE BRANCH main")
    assert answer(dev, COUNT) == [(1992, 0)]
    con.execute("CREATE BRANCH dev AT VERSION 2")  # another one of that name
    assert answer(con, "SELECT count(*) FROM t AT (BRANCH => 'dev')") == [(2000,)]
    assert answer(con, "CHECK LAKE") == []


def test_the_branch_that_one_is_on_is_not_dropped(dev: Any) -> None:
    with pytest.raises(lakelite.ProgrammingError, match="the one that you are on"):
        dev.execute("DROP BRANCH Dev")
    with pytest.raises(lakelite.ProgrammingError, match='branch "DEV" already exists'):
        dev.execute("CREATE BRANCH DEV")
    dev.execute("CREATE BRANCH IF NOT EXISTS DEV")


# VACUUM.


def test_vacuum_keeps_what_a_branch_holds_and_frees_it_with_the_branch(path: Path, con: Any, dev: Any) -> None:
    before = files(path)
    con.execute("DROP TABLE t")
    assert vacuum(con)["bytes_freed"] == 0
    assert files(path) == before
    assert answer(dev, COUNT) == [(1992, 0)]
    dev.execute("UPDATE t SET v = 1 WHERE k = 1500; OPTIMIZE t")
    assert answer(dev, COUNT) == [(1992, 1)]
    dev.execute("USE BRANCH main")
    con.execute("DROP BRANCH dev")
    told = vacuum(con, "VACUUM RETAIN 0 HOURS DRY RUN")
    assert told["bytes_freed"] > 0
    assert files(path) > before
    assert vacuum(con) == told | {"dry_run": False}
    assert files(path) == set()
    assert answer(con, "CHECK LAKE") == []


def test_vacuum_keeps_a_tagged_version_and_nothing_around_it(path: Path, con: Any) -> None:
    con.execute("DROP BRANCH dev; CREATE TAG keep AT VERSION 2; INSERT INTO t VALUES (1, 1); OPTIMIZE t")
    vacuum(con)
    assert answer(con, "SELECT count(*) FROM t AT (TAG => 'keep')") == [(2000,)]
    assert answer(con, "SELECT count(*) FROM t AT (VERSION => 2)") == [(2000,)]
    for gone in (1, 3, 4):
        with pytest.raises(lakelite.OperationalError, match=f"version {gone} has expired"):
            con.execute(f"SELECT * FROM t AT (VERSION => {gone})")
    assert [row[0] for row in answer(con, "SELECT snapshot_id FROM lake.snapshots ORDER BY 1")] == [2, 7]
    assert answer(con, "CHECK LAKE") == []
    con.execute("CREATE BRANCH old AT TAG keep; DROP TAG keep")
    vacuum(con)
    con.execute("USE BRANCH old")
    assert answer(con, COUNT) == [(2000, 0)]
    con.execute("USE BRANCH main; DROP BRANCH old")
    vacuum(con)
    assert files(path) == {Path(row[0]).name for row in answer(con, "SELECT path FROM lake.fragments WHERE path IS NOT NULL")}
    assert answer(con, "CHECK LAKE") == []


def test_vacuum_of_a_table_keeps_tags_and_refuses_new_ones_at_what_is_gone(con: Any) -> None:
    con.execute("DROP BRANCH dev; CREATE TAG keep AT VERSION 2; CREATE TABLE other (a INTEGER); DELETE FROM t; INSERT INTO t VALUES (1, 1)")
    vacuum(con, "VACUUM t RETAIN 0 HOURS")
    assert answer(con, "SELECT count(*) FROM t AT (TAG => 'keep')") == [(2000,)]
    for statement in ("CREATE TAG late AT VERSION 4", "CREATE BRANCH late AT VERSION 4"):
        with pytest.raises(lakelite.OperationalError, match="not whole any more: VACUUM has removed what was in t"):
            con.execute(statement)
    con.execute("CREATE BRANCH whole AT TAG keep; USE BRANCH whole")
    assert answer(con, COUNT) == [(2000, 0)]
    assert answer(con, "CHECK LAKE") == []


def test_vacuum_keeps_what_a_session_reads_on_any_branch(path: Path, con: Any, dev: Any) -> None:
    con.execute("DROP TABLE t")
    dev.execute("BEGIN")
    assert answer(dev, "SELECT count(*) FROM t") == [(1992,)]
    with lakelite.connect(path, autocommit=True, branch="dev") as second:
        second.execute("DROP TABLE t")
        second.execute("USE BRANCH main; DROP BRANCH dev")
        vacuum(second)
        assert answer(dev, COUNT) == [(1992, 0)]
        dev.execute("ROLLBACK; USE BRANCH main")
        vacuum(second)
        assert files(path) == set()


def test_files_of_a_branch_are_no_orphans(path: Path, con: Any, dev: Any) -> None:
    dev.execute("INSERT INTO t SELECT r, 1 FROM range(5000) q(r); CREATE TABLE own AS SELECT r FROM range(5000) q(r)")
    dev.execute("USE BRANCH main")
    con.execute("DELETE FROM t")
    assert vacuum(con)["orphans_removed"] == 0
    con.execute("USE BRANCH dev")
    assert answer(con, COUNT) == [(6992, 5000)]
    assert answer(con, "SELECT count(*) FROM own") == [(5000,)]
    assert answer(con, "CHECK LAKE") == []


def test_a_branch_that_is_made_while_vacuum_runs_waits_for_it(path: Path, con: Any, dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what it is made from could go meanwhile."""
    con.execute("DELETE FROM t WHERE k < 1000; OPTIMIZE t")
    dev.execute("SET lock_timeout_ms = 50")
    kept = vacuuming.branches.kept
    refused: list[str] = []

    def meanwhile(*arguments: Any) -> Any:
        with pytest.raises(lakelite.OperationalError) as caught:
            dev.execute("CREATE BRANCH late AT VERSION 2")
        refused.append(str(caught.value))
        return kept(*arguments)

    monkeypatch.setattr(vacuuming.branches, "kept", meanwhile)
    vacuum(con)
    monkeypatch.undo()
    assert len(refused) == 1
    assert answer(con, "CHECK LAKE") == []


# The command line.


def test_the_command_line_begins_on_a_branch(path: Path, dev: Any, capfd: pytest.CaptureFixture[str]) -> None:
    dev.execute("DELETE FROM t WHERE k < 100")
    assert main([str(path), "--branch", "dev", "--csv", "-c", "SELECT count(*) AS n FROM t"]) == 0
    assert capfd.readouterr().out.split() == ["n", "1902"]
    assert main([str(path), "--branch", "dve", "-c", "SELECT 1"]) != 0
    assert "did you mean dev?" in capfd.readouterr().err


# Lakes of before.


def test_a_lake_of_an_older_version_opens(path: Path) -> None:
    """A catalog as versions before this one left it, with what all of its tables may hold."""
    make_old(path)
    with lakelite.connect(path, autocommit=True) as con:
        assert answer(con, "SELECT * FROM t ORDER BY k") == [(1, 10), (3, 30)]
        assert answer(con, "SELECT * FROM t AT (VERSION => 2) ORDER BY k") == [(1, 10), (2, 20), (3, 30)]
        assert answer(con, "SELECT * FROM v") == [(2,)]
        assert answer(con, "SELECT DISTINCT branch FROM lake.snapshots") == [("main",)]
        con.execute("INSERT INTO t VALUES (4, 40); CREATE BRANCH dev; USE BRANCH dev; DELETE FROM t WHERE k = 1; USE BRANCH main; MERGE BRANCH dev")
        assert answer(con, "SELECT k FROM t ORDER BY k") == [(3,), (4,)]
        assert answer(con, "CHECK LAKE") == []
        con.execute("DROP BRANCH dev; VACUUM RETAIN 0 HOURS")
        assert answer(con, "CHECK LAKE") == []


def make_old(path: Path) -> None:
    import hashlib

    import pyarrow as pa

    from lakelite import deletion
    from lakelite.catalog.opened import APPLICATION_ID
    from lakelite.catalog.queries import migrations

    for folder in ("data", "leases", "tmp"):
        (path / folder).mkdir(parents=True)
    (path / "commit.lock").touch()
    rows = pa.table({"f1": pa.array([1, 2, 3], pa.int32()), "f2": pa.array([10, 20, 30], pa.int32())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    ipc = sink.getvalue().to_pybytes()
    dead = deletion.encode(deletion.DeletionVector(deletion.span(1, 2), 3))
    with closing(sqlite3.connect(path / "catalog.sqlite", isolation_level=None)) as db:
        for script in migrations()[:5]:
            db.executescript(script)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 5")
        for number, (operation, kinds, added, removed) in enumerate(
            [
                ("create lake", None, 0, 0),
                ("CREATE TABLE", "create", 0, 0),
                ("INSERT", "append", 3, 0),
                ("DELETE", "delete", 0, 1),
                ("CREATE VIEW", "create", 0, 0),
            ]
        ):
            parent = number - 1 if number else None
            db.execute(
                "INSERT INTO snapshots VALUES (?, ?, 'main', ?, NULL, NULL, ?, '[]', 'write serializable', ?, 1, ?, 0)",
                (number, parent, 1_700_000_000_000_000 + number, operation, parent, f"old-{number}"),
            )
            if kinds:
                db.execute("INSERT INTO effects VALUES (?, ?, ?, ?, ?)", (number, 2 if operation == "CREATE VIEW" else 1, kinds, added, removed))
        db.execute("INSERT INTO tables VALUES (1, 1, NULL, 0), (2, 4, NULL, 0)")
        db.execute("INSERT INTO table_names VALUES (1, 1, 't', 1, NULL), (2, 1, 'v', 4, NULL)")
        db.execute("INSERT INTO views VALUES (2, 'SELECT count(*) AS n FROM t', '[]', '[]', 4, NULL)")
        for field, name in ((1, "k"), (2, "v")):
            db.execute(
                "INSERT INTO columns VALUES (1, ?, NULL, ?, ?, 'INTEGER', 'INTEGER', 1, NULL, 1, NULL, NULL)",
                (field, field - 1, name),
            )
        sha256 = hashlib.sha256(ipc).hexdigest()
        db.execute("INSERT INTO fragments VALUES (1, 1, 'inline', NULL, 3, ?, ?, 1, 0, 2, NULL)", (len(ipc), sha256))
        db.execute("INSERT INTO inline_rows VALUES (1, ?)", (ipc,))
        db.execute("INSERT INTO deletion_vectors VALUES (1, 1, ?, ?, ?, ?, 3, NULL)", (dead.bits, dead.cardinality, dead.row_count, dead.crc32))
        for name, next_id in (("table", 3), ("field", 3), ("fragment", 2), ("row", 4)):
            db.execute("UPDATE counters SET next_id = ? WHERE name = ?", (next_id, name))


def test_a_vector_that_a_compaction_read_outlives_its_branch(lake: lakelite.Connection) -> None:
    lake.execute(
        "CREATE TABLE t AS SELECT range AS k FROM range(10); CREATE TAG start; CREATE BRANCH one; USE BRANCH one; DELETE FROM t WHERE k < 5; OPTIMIZE t"
    )
    lake.execute("CREATE BRANCH two; USE BRANCH two; INSERT INTO t VALUES (10); DROP BRANCH one; VACUUM RETAIN 0 HOURS")
    assert lake.execute("CHECK LAKE").fetchall() == []
    lake.execute("USE BRANCH main; DROP BRANCH two; VACUUM RETAIN 0 HOURS")
    assert lake.execute("CHECK LAKE").fetchall() == []
    assert lake.execute("SELECT count(*) FROM lake.deletion_vectors").fetchone() == (0,)
