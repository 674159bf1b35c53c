"""A COMMIT that fails: whether the transaction is still open, what the error says of that, and what the next COMMIT does."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from racing import meeting

import lakelite
from lakelite import opening
from lakelite.storage import fragment

LONG = f"OR '{'x' * 3_900}' = ''"  # history keeps it, in a page of its own
OPEN = "The transaction is still open, with all that it did: COMMIT tries again, ROLLBACK gives it up."
OVER = "The whole transaction was rolled back: run it again from its beginning."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture(params=[True, False], ids=["autocommit", "manual"])
def con(path: Path, request: pytest.FixtureRequest) -> Iterator[lakelite.Connection]:
    con = lakelite.connect(path, autocommit=request.param)
    con.executescript("create table t (a integer); insert into t values (1), (2); commit; set lock_timeout_ms = 0")
    con.commit()
    yield con
    con.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Somebody else holds the commit lock."""
    with (path / "commit.lock").open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another program writes to the catalog."""
    other = sqlite3.connect(path / "catalog.sqlite", isolation_level=None)
    other.execute("begin immediate")
    yield
    other.close()


@contextmanager
def full(con: lakelite.Connection) -> Iterator[None]:
    """SQLite itself finds no room for another page."""
    catalog = con._session.lake.catalog._sqlite
    assert catalog.execute("pragma freelist_count").fetchone() == (0,)
    (before,) = catalog.execute("pragma max_page_count").fetchone()
    catalog.execute("pragma max_page_count = 1")
    yield
    catalog.execute(f"pragma max_page_count = {before}")


Fault = Callable[[lakelite.Connection, Path], AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, str]] = {
    "commit lock": (lambda con, path: locked(path), "has held the commit lock for 0 s"),
    "another program": (lambda con, path: held(path), "the catalog is held by another program"),
    "full": (lambda con, path: full(con), "the disk is full while committing"),
}
faults = pytest.mark.parametrize(("fault", "message"), FAULTS.values(), ids=FAULTS)


def rows(path: Path) -> list[Any]:
    """What is committed, as another connection sees it."""
    with lakelite.connect(path, autocommit=True) as other:
        return [a for (a,) in other.execute("from t order by a").fetchall()]


def change(con: lakelite.Connection) -> None:
    """A transaction that deletes, and adds rows of a file and of the catalog."""
    con.execute("begin")
    con.execute(f"delete from t where a = 1 {LONG}")
    con.execute("insert into t values (3)")
    con.execute("insert into t select 4 + range from range(2)")


@faults
def test_a_commit_can_be_tried_again(fault: Fault, message: str, con: lakelite.Connection, path: Path) -> None:
    change(con)
    before = con.last_commit
    with fault(con, path):
        for commit in (con.commit, lambda: con.execute("commit")):
            with pytest.raises(lakelite.OperationalError, match=message) as caught:
                commit()
            assert OPEN in str(caught.value)
            assert caught.value.hint is not None
            assert con.in_transaction
    assert con.last_commit is before
    assert con.execute("select list(a order by a) from t").fetchone() == ([2, 3, 4, 5],)
    con.execute("insert into t values (6)")  # it goes on as ever
    assert rows(path) == [1, 2]
    con.commit()
    assert not con.in_transaction
    assert rows(path) == [2, 3, 4, 5, 6]
    assert con.execute("check lake").fetchall() == []


@faults
def test_it_can_be_given_up(fault: Fault, message: str, con: lakelite.Connection, path: Path) -> None:
    files = set((path / "data").rglob("*.parquet"))
    change(con)
    with fault(con, path), pytest.raises(lakelite.OperationalError, match=message):
        con.commit()
    con.rollback()
    assert not con.in_transaction
    con.execute("commit")
    assert rows(path) == [1, 2]
    assert set((path / "data").rglob("*.parquet")) == files


@faults
def test_a_statement_of_its_own_is_undone(fault: Fault, message: str, path: Path) -> None:
    with lakelite.connect(path, autocommit=True) as con:
        con.executescript("create table t (a integer); insert into t values (1), (2); set lock_timeout_ms = 0")
        with fault(con, path), pytest.raises(lakelite.OperationalError, match=message) as caught:
            con.execute(f"delete from t where a = 1 {LONG}")
        assert caught.value.context is None
        assert not con.in_transaction
        assert rows(path) == [1, 2]


def test_where_the_transaction_cannot_stay_open(con: lakelite.Connection, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of a block, and of the connection, it is rolled back, and the error says so."""
    monkeypatch.setattr(opening, "CLOSE_LOCK_MS", 0)
    with locked(path), pytest.raises(lakelite.OperationalError, match="commit lock") as caught, con.transaction():
        con.execute("delete from t where a = 1")
    assert OVER in str(caught.value)
    assert not con.in_transaction
    with pytest.raises(lakelite.OperationalError, match="commit lock") as caught, lakelite.connect(path) as other:  # noqa: PT012
        other.executescript("set lock_timeout_ms = 0; delete from t where a = 1")
        lock = locked(path)
        lock.__enter__()
    lock.__exit__(None, None, None)
    assert OVER in str(caught.value)
    assert rows(path) == [1, 2]


def test_a_commit_that_had_begun_to_meet_others_is_over(con: lakelite.Connection, path: Path) -> None:
    """It may have been changed already. The next COMMIT does not look as if it had landed after all."""
    con.execute("begin")
    con.execute("select sum(a) from t").fetchall()
    con.execute("insert into t values (9)")

    def win() -> None:
        with lakelite.connect(path, autocommit=True) as other:
            other.execute("insert into t values (3)")

    win()
    held_now: list[AbstractContextManager[None]] = []

    def hold() -> None:
        held_now.append(locked(path))
        held_now[0].__enter__()

    with meeting(hold), pytest.raises(lakelite.OperationalError, match="commit lock") as caught:
        con.commit()
    held_now[0].__exit__(None, None, None)
    assert OVER in str(caught.value)
    assert not con.in_transaction
    con.commit()
    assert con.messages == [(lakelite.Warning, "nothing was committed: the transaction was over when its COMMIT failed")]
    con.commit()
    assert con.messages == []
    assert rows(path) == [1, 2, 3]


def test_a_sync_that_failed_is_not_trusted_a_second_time(con: lakelite.Connection, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise lakelite.OperationalError("the disk is full: could not sync it")

    change(con)
    with monkeypatch.context() as patched:
        patched.setattr(fragment, "make_durable", fail)
        with pytest.raises(lakelite.OperationalError, match="disk is full") as caught:
            con.commit()
    assert OVER in str(caught.value)
    assert not con.in_transaction
    cursor = con.execute("commit")
    assert cursor.messages == [(lakelite.Warning, "nothing was committed: the transaction was over when its COMMIT failed")]
    assert rows(path) == [1, 2]
