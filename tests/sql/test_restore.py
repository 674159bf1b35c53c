"""RESTORE TABLE: what comes back, what it costs, what it leaves behind, and what happens when it meets other transactions."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from comparing import answer
from racing import flush, meeting

import lakelite

FEW = "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)"
MANY = "INSERT INTO t SELECT range, 'x' || range FROM range(2000)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def con(path: Path) -> Iterator[Any]:
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER NOT NULL, v VARCHAR DEFAULT 'd')")  # 1
        yield con


@pytest.fixture
def other(path: Path, con: Any) -> Iterator[Any]:
    with lakelite.connect(path, autocommit=True) as other:
        yield other


def files(path: Path) -> dict[str, os.stat_result]:
    return {p.name: p.stat() for p in path.glob("data/*/*.parquet")}


def catalogued(path: Path, *, live: bool = False) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path / "catalog.sqlite")) as db:
        where = "WHERE fragment_id IN (SELECT fragment_id FROM fragment_lives WHERE end_snapshot_id IS NULL)" if live else ""
        return db.execute(f"SELECT fragment_id, path, size_bytes, sha256, first_row_id, row_count FROM fragments {where} ORDER BY 1").fetchall()


def row_ids(con: Any) -> dict[Any, int]:
    """The id of each row that is there, by its key: rows that came, in the order of the snapshots, without those that went."""
    found: dict[Any, int] = {}
    head = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0]
    changes = "SELECT change_type, row_id, k FROM table_changes('t', 0, ?) ORDER BY snapshot_id, change_type IN ('insert', 'update_postimage')"
    for kind, row, key in con.execute(changes, [head]).fetchall():
        if kind in ("insert", "update_postimage"):
            found[key] = row
        else:
            del found[key]
    return found


# What comes back.


@pytest.mark.parametrize("rows", [FEW, MANY], ids=["inline", "file"])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM t WHERE k = 2",
        "DELETE FROM t",
        "TRUNCATE t",
        "UPDATE t SET v = 'new' WHERE k < 3",
        "UPDATE t SET k = k + 10000",
        "INSERT INTO t VALUES (-77, 'more')",
        "INSERT OVERWRITE t VALUES (-77, 'other')",
        "CREATE OR REPLACE TABLE t (k VARCHAR, other DOUBLE)",
        "CREATE OR REPLACE TABLE t AS SELECT 7 AS z",
        "SELECT 1",
    ],
)
@pytest.mark.parametrize("first", ["DELETE FROM t WHERE k = 1", "UPDATE t SET v = 'old' WHERE k = 1"])
def test_everything_is_as_it_was(first: str, change: str, rows: str, con: Any) -> None:
    con.execute(rows)
    con.execute(first)
    version = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0]
    before, described, ids = answer(con, "FROM t"), answer(con, "DESCRIBE t"), row_ids(con)
    con.execute(change)
    cursor = con.execute("RESTORE TABLE t TO VERSION AS OF ?", [version])
    assert cursor.rowcount == -1
    assert answer(con, "FROM t") == before
    assert answer(con, "DESCRIBE t") == described
    if "REPLACE" not in change:
        assert row_ids(con) == ids
    again = con.last_commit.snapshot_id
    assert answer(con, f"FROM t AT (VERSION => {again})") == before
    con.execute("INSERT INTO t (k) VALUES (900000)")  # defaults and NOT NULL are those of then
    assert con.execute("SELECT v FROM t WHERE k = 900000").fetchall() == [("d",)]
    with pytest.raises(lakelite.IntegrityError, match="NOT NULL"):
        con.execute("INSERT INTO t VALUES (NULL, 'x')")


def test_history_goes_on_and_can_be_gone_back_in_again(con: Any) -> None:
    con.execute(MANY)  # 2
    con.execute("DELETE FROM t WHERE k % 2 = 0")  # 3
    con.execute("RESTORE TABLE t TO VERSION AS OF 2")  # 4
    con.execute("UPDATE t SET v = 'later' WHERE k < 10")  # 5
    con.execute("RESTORE TABLE t TO VERSION AS OF 3")  # 6
    con.execute("RESTORE t TO VERSION AS OF 5")  # 7
    counts = [con.execute(f"SELECT count(*), count(*) FILTER (v = 'later') FROM t AT (VERSION => {v})").fetchone() for v in range(2, 8)]
    assert counts == [(2000, 0), (1000, 0), (2000, 0), (2000, 10), (1000, 0), (2000, 10)]
    operations = con.execute("SELECT operation FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 4").fetchall()
    assert [row[0] for row in operations] == ["RESTORE", "RESTORE", "UPDATE", "RESTORE"]
    with lakelite.connect(":memory:", autocommit=True) as fresh:
        fresh.execute("CREATE TABLE t AS SELECT 1 AS a; DELETE FROM t; RESTORE TABLE t TO VERSION AS OF 1")
        assert fresh.execute("FROM t").fetchall() == [(1,)]


def test_to_a_time(con: Any) -> None:
    con.execute(FEW)
    (moment,) = con.execute("SELECT committed_at FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 1").fetchone()
    con.execute("DELETE FROM t")
    con.execute(f"RESTORE TABLE t TO TIMESTAMP AS OF TIMESTAMPTZ '{moment.isoformat(' ')}+00'")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    con.execute("RESTORE TABLE t TO TIMESTAMP AS OF now()")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


def test_after_a_flush(con: Any) -> None:
    con.execute(FEW)  # 2
    con.execute("DELETE FROM t WHERE k = 1")  # 3
    ids = row_ids(con)
    flush(con, "t")  # 4
    con.execute("UPDATE t SET v = 'new'")  # 5
    con.execute("RESTORE TABLE t TO VERSION AS OF 3")  # 6
    assert answer(con, "FROM t")[1] == ["(2, 'b')", "(3, None)"]
    assert row_ids(con) == ids
    found = con.execute("SELECT change_type, k, v FROM table_changes('t', 4, 6) WHERE snapshot_id <> 5").fetchall()
    assert sorted(found, key=repr) == [
        ("update_postimage", 2, "b"),
        ("update_postimage", 3, None),
        ("update_preimage", 2, "new"),
        ("update_preimage", 3, "new"),
    ]


# What it costs, and what it leaves behind.


def test_no_data_is_written_and_the_catalog_stays_right(con: Any, path: Path) -> None:
    con.execute(MANY)  # 2
    con.execute("INSERT INTO t SELECT range + 10000, 'y' FROM range(3000)")  # 3
    old = files(path)
    con.execute("DELETE FROM t WHERE k < 100")  # 4
    con.execute("RESTORE TABLE t TO VERSION AS OF 3")  # 5
    new = {name: status for name, status in files(path).items() if name not in old}
    assert len(new) == 1, "the second file is the same at both ends and stays"
    assert {status.st_ino for status in new.values()} <= {status.st_ino for status in old.values()}
    live = catalogued(path, live=True)
    assert len(live) == 2
    for _, name, size, sha256, _, _ in live:
        content = next(path.glob(f"data/*/{name}")).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (size, sha256)
    assert len({row[4] for row in live}) == 2


def test_what_is_the_same_is_not_touched(con: Any, path: Path) -> None:
    con.execute(MANY)  # 2
    con.execute("DELETE FROM t WHERE k = 7")  # 3
    before = catalogued(path)
    con.execute("RESTORE TABLE t TO VERSION AS OF 3")  # 4
    assert catalogued(path) == before
    con.execute("INSERT INTO t VALUES (-1, 'new')")  # 5
    con.execute("RESTORE TABLE t TO VERSION AS OF 4")
    assert [row[:2] for row in catalogued(path, live=True)] == [row[:2] for row in before]


def test_where_the_file_system_has_no_links_files_are_copied(con: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMLINK, "Too many links")

    con.execute(MANY)
    before = files(path)
    con.execute("DELETE FROM t WHERE k < 100")
    monkeypatch.setattr(os, "link", no_link)
    con.execute("RESTORE TABLE t TO VERSION AS OF 2")
    new = [status for name, status in files(path).items() if name not in before]
    assert [status.st_size for status in new] == [status.st_size for status in before.values()]
    assert {status.st_ino for status in new}.isdisjoint(status.st_ino for status in before.values())
    assert con.execute("SELECT count(*) FROM t").fetchone() == (2000,)


def test_a_link_that_fails_leaves_nothing(con: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    con.execute(MANY)
    con.execute("DELETE FROM t WHERE k < 100")
    before = files(path)
    monkeypatch.setattr(os, "link", full)
    with pytest.raises(lakelite.OperationalError, match="disk is full"):
        con.execute("RESTORE TABLE t TO VERSION AS OF 2")
    assert files(path).keys() == before.keys()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1900,)


def test_in_a_transaction(con: Any, path: Path) -> None:
    con.execute(MANY)  # 2
    con.execute("DELETE FROM t WHERE k < 1500")  # 3
    before = files(path)
    con.execute("BEGIN; RESTORE TABLE t TO VERSION AS OF 2; DELETE FROM t WHERE k < 10; UPDATE t SET v = 'mine' WHERE k < 20")
    con.execute("INSERT INTO t VALUES (-1, 'new')")
    assert con.execute("SELECT count(*), count(*) FILTER (v = 'mine') FROM t").fetchone() == (1991, 10)
    con.execute("RESTORE TABLE t TO VERSION AS OF 2")
    assert con.execute("SELECT count(*) FROM t").fetchone() == (2000,)
    con.execute("ROLLBACK")
    assert files(path).keys() == before.keys()
    con.execute("BEGIN; RESTORE TABLE t TO VERSION AS OF 2; UPDATE t SET v = 'mine' WHERE k < 20; DELETE FROM t WHERE k = 0; COMMIT")  # 4
    assert con.execute("SELECT count(*), count(*) FILTER (v = 'mine') FROM t").fetchone() == (1999, 19)
    kinds = con.execute("SELECT change_type, count(*) FROM table_changes('t', 4, 4) GROUP BY ALL ORDER BY 1").fetchall()
    assert kinds == [("insert", 1499)]  # rows that were gone in version 3, the updated ones among them
    assert row_ids(con)[19] == 20, "an updated row keeps the id that it had before it was restored"


def test_vacuum_takes_links_as_any_file(con: Any, other: Any, path: Path) -> None:
    con.execute(MANY)
    con.execute("DELETE FROM t WHERE k < 100")
    con.execute("RESTORE TABLE t TO VERSION AS OF 2")  # 4
    assert len(files(path)) == 2
    con.execute("VACUUM RETAIN 0 HOURS")
    assert len(files(path)) == 1
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2000,)
    con.execute("DROP TABLE t")
    con.execute("VACUUM RETAIN 0 HOURS")
    assert not files(path)


def test_tables_that_are_not_there(con: Any) -> None:
    con.execute("CREATE TABLE u (a INTEGER)")  # 2
    con.execute(FEW)  # 3
    with pytest.raises(lakelite.ProgrammingError, match="table u was not there in version 1") as caught:
        con.execute("RESTORE TABLE u TO VERSION AS OF 1")
    assert caught.value.position.column == 15
    con.execute("DROP TABLE t")  # 4
    with pytest.raises(lakelite.ProgrammingError, match='table "t" does not exist') as caught:
        con.execute("RESTORE TABLE t TO VERSION AS OF 3")
    assert caught.value.hint is not None
    define, take = caught.value.hint.removeprefix("it was dropped: ").removesuffix(" takes its rows").split(" defines it again, ")
    con.execute(con.execute(define).fetchone()[0])  # 5
    con.execute(take)  # 6
    assert con.execute("SELECT count(*) FROM t").fetchone() == (3,)
    with pytest.raises(lakelite.ProgrammingError, match="the table t of version 3 is another one") as caught:
        con.execute("RESTORE TABLE t TO VERSION AS OF 3")
    con.execute("TRUNCATE t")  # 7
    con.execute((caught.value.hint or "").removesuffix(" takes its rows"))
    assert con.execute("SELECT count(*) FROM t").fetchone() == (3,)


@pytest.mark.parametrize(
    ("statement", "kind", "words"),
    [
        ("RESTORE TABLE tt TO VERSION AS OF 1", lakelite.ProgrammingError, 'table "tt" does not exist'),
        ("RESTORE TABLE t TO VERSION AS OF 99", lakelite.ProgrammingError, "no version 99"),
        ("RESTORE TABLE t TO VERSION AS OF (NULL)", lakelite.DataError, "NULL"),
        ("RESTORE TABLE t TO VERSION AS OF 'x'", lakelite.DataError, "whole number"),
        ("RESTORE TABLE t TO TIMESTAMP AS OF TIMESTAMP '2001-01-01'", lakelite.ProgrammingError, "younger"),
        ("RESTORE TABLE t TO 1", lakelite.ProgrammingError, "syntax error"),
        ("RESTORE TABLE t VERSION AS OF 1", lakelite.ProgrammingError, "syntax error"),
        ("RESTORE TABLE t TO VERSION AS OF 1 WHERE k = 1", lakelite.ProgrammingError, "syntax error"),
        ("RESTORE TABLE lake.snapshots TO VERSION AS OF 1", lakelite.ProgrammingError, "system view"),
    ],
)
def test_errors(statement: str, kind: type[lakelite.Error], words: str, con: Any) -> None:
    with pytest.raises(kind, match=words) as caught:
        con.execute(statement)
    assert caught.value.position is not None
    assert con.execute("SELECT count(*) FROM lake.snapshots").fetchone() == (2,)


def test_read_only_and_expired(con: Any, path: Path) -> None:
    con.execute(FEW)  # 2
    con.execute("DELETE FROM t")  # 3
    with lakelite.connect(path, autocommit=True, read_only=True) as reader, pytest.raises(lakelite.OperationalError, match="read-only"):
        reader.execute("RESTORE TABLE t TO VERSION AS OF 2")
    con.execute("VACUUM t RETAIN 0 HOURS")
    with pytest.raises(lakelite.OperationalError, match="version 2 of t has expired; the oldest kept one is 3"):
        con.execute("RESTORE TABLE t TO VERSION AS OF 2")


# Meetings.

WINNERS = [
    "INSERT INTO t VALUES (50, 'theirs')",
    "DELETE FROM t WHERE k = 2",
    "UPDATE t SET v = 'theirs' WHERE k <> 1",
    "TRUNCATE t",
    "INSERT OVERWRITE t VALUES (50, 'theirs')",
    "RESTORE TABLE t TO VERSION AS OF 1",
    "CREATE OR REPLACE TABLE t AS SELECT 7 AS z",
    "FLUSH",
]


@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("explicit", [False, True])
def test_it_is_the_last_one(winner: str, explicit: bool, con: Any, other: Any) -> None:
    """Whatever others did to the table meanwhile: the table is what it was."""
    con.execute(FEW)  # 2
    before = answer(con, "FROM t")
    con.execute("DELETE FROM t WHERE k = 1")  # 3
    if explicit:
        con.execute("BEGIN")
    with meeting(lambda: flush(other, "t") if winner == "FLUSH" else other.execute(winner)):
        con.execute("RESTORE TABLE t TO VERSION AS OF 2")
        if explicit:
            con.execute("COMMIT")
    assert answer(con, "FROM t") == before
    assert con.last_commit.attempts == 2 or winner == "FLUSH"  # where rows only moved, nothing has to run again


MINE = [
    ("INSERT INTO t VALUES (60, 'mine')", {(1, "a"), (2, "b"), (3, None), (60, "mine")}),
    ("INSERT INTO t SELECT count(*), 'mine' FROM t", {(1, "a"), (2, "b"), (3, None), (3, "mine")}),
    ("DELETE FROM t WHERE k = 1", {(2, "b"), (3, None)}),
    ("DELETE FROM t WHERE k = 2", {(1, "a"), (3, None)}),
    ("UPDATE t SET v = 'mine' WHERE k < 3", {(1, "mine"), (2, "mine"), (3, None)}),
    ("UPDATE t SET v = v || '!' WHERE v = 'b'", {(1, "a"), (2, "b!"), (3, None)}),
    ("INSERT OVERWRITE t VALUES (60, 'mine')", {(60, "mine")}),
    ("TRUNCATE t", set()),
    ("RESTORE TABLE t TO VERSION AS OF 1", set()),
]


@pytest.mark.parametrize(("statement", "expected"), MINE)
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("setting", [1000, 0], ids=["inline", "file"])
def test_a_stale_writer_meets_it(statement: str, expected: set[Any], explicit: bool, setting: int, con: Any, other: Any) -> None:
    """RESTORE brings a fragment back with a smaller deletion vector; who changed the table meanwhile comes out as if it had come later."""
    con.execute(f"SET inline_rows = {setting}")
    con.execute(FEW)  # 2
    con.execute("DELETE FROM t WHERE k = 1")  # 3
    con.execute("UPDATE t SET v = 'later' WHERE k = 2")  # 4
    if explicit:
        con.execute("BEGIN")
    with meeting(lambda: other.execute("RESTORE TABLE t TO VERSION AS OF 2")):
        con.execute(statement)
        if explicit:
            con.execute("COMMIT")
    assert con.execute("FROM t ORDER BY k").rowcount == -1
    assert set(con.execute("FROM t").fetchall()) == expected
    assert len(con.execute("FROM t").fetchall()) == len(expected)


def test_what_was_shown_conflicts_with_it(con: Any, other: Any) -> None:
    con.execute(FEW)
    con.execute("DELETE FROM t WHERE k = 1; CREATE TABLE u (n BIGINT)")
    con.execute("BEGIN")
    (count,) = con.execute("SELECT count(*) FROM t").fetchone()
    con.execute("INSERT INTO u VALUES (?)", [count])
    other.execute("RESTORE TABLE t TO VERSION AS OF 2")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        con.execute("COMMIT")
    assert "RESTORE TABLE" in caught.value.conflicts[0].winner_statement


def test_the_table_was_dropped_meanwhile(con: Any, other: Any) -> None:
    con.execute(FEW)
    con.execute("DELETE FROM t")
    with meeting(lambda: other.execute("DROP TABLE t")), pytest.raises(lakelite.ProgrammingError, match="dropped"):
        con.execute("RESTORE TABLE t TO VERSION AS OF 2")
    assert not con.execute("SHOW TABLES").fetchall()
