"""The DB-API: the module and its connections."""

from __future__ import annotations

import copy
import gc
from pathlib import Path
from typing import Any

import pytest

import lakelite


def test_the_module_has_what_pep_249_names() -> None:
    assert (lakelite.apilevel, lakelite.threadsafety, lakelite.paramstyle) == ("2.0", 2, "qmark")
    tree = {
        "Warning": Exception,
        "Error": Exception,
        "InterfaceError": lakelite.Error,
        "DatabaseError": lakelite.Error,
        "DataError": lakelite.DatabaseError,
        "OperationalError": lakelite.DatabaseError,
        "IntegrityError": lakelite.DatabaseError,
        "InternalError": lakelite.DatabaseError,
        "ProgrammingError": lakelite.DatabaseError,
        "NotSupportedError": lakelite.DatabaseError,
        "TransactionConflict": lakelite.OperationalError,
        "CommitUnknown": lakelite.OperationalError,
        "CannotOpen": lakelite.OperationalError,
    }
    for name, base in tree.items():
        assert issubclass(getattr(lakelite, name), base)


def test_connect_makes_a_lake_and_opens_it_again(tmp_path: Path) -> None:
    for path in (tmp_path / "a", str(tmp_path / "b")):
        with lakelite.connect(path) as con:
            con.execute("create table t as select 1 as a")
        with lakelite.connect(path, create=False) as con:
            assert con.execute("from t").fetchall() == [(1,)]


def test_a_connection_is_not_copied(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.InterfaceError, match="cannot be copied"):
        copy.copy(con)
    gc.collect()
    assert con.execute("select count(*) from t").fetchone() == (3,)


@pytest.mark.parametrize("size", [3, 10**9, 10**20, 10**30])
def test_more_rows_than_there_are(con: lakelite.Connection, size: int) -> None:
    for sql in ("select a from t order by a", "show tables"):
        cursor = con.execute(sql)
        assert cursor.fetchmany(size) == con.execute(sql).fetchall()
        assert cursor.fetchmany(size) == []


def test_a_temporary_lake_is_gone_afterwards() -> None:
    con = lakelite.connect(":memory:")
    root = con._session.lake.paths.root
    con.execute("create table t as select range as a from range(5000)")
    con.commit()
    assert con.execute("select count(*) from t").fetchone() == (5000,)
    other = lakelite.connect()
    assert other.execute("show tables").fetchall() == []
    con.close()
    other.close()
    assert not root.exists()


def test_read_only(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("create table t as select 1 as a")
    with lakelite.connect(tmp_path / "lake", read_only=True) as con:
        assert con.execute("from t").fetchall() == [(1,)]
        with pytest.raises(lakelite.OperationalError, match="read-only"):
            con.execute("delete from t")
        con.commit()
    with pytest.raises(lakelite.CannotOpen):
        lakelite.connect(tmp_path / "other", read_only=True)


def test_the_author_is_recorded(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", author="Ada", autocommit=True) as con:
        con.execute("create table t (a int)")
        assert con.execute("describe history").fetchone()[2] == "Ada"


def test_without_autocommit_a_statement_opens_a_transaction(tmp_path: Path) -> None:
    con = lakelite.connect(tmp_path / "lake")
    other = lakelite.connect(tmp_path / "lake", autocommit=True)
    assert not con.autocommit
    assert not con.in_transaction
    con.execute("create table t (a integer)")
    assert con.in_transaction
    assert other.execute("show tables").fetchall() == []
    con.commit()
    assert not con.in_transaction
    con.execute("insert into t values (1)")
    con.rollback()
    assert not con.in_transaction
    con.execute("insert into t values (2)")
    con.commit()
    con.commit()
    con.rollback()
    assert other.execute("from t").fetchall() == [(2,)]
    con.execute("select * from t").fetchall()
    assert con.in_transaction
    other.execute("insert into t values (3)")
    assert con.execute("select count(*) from t").fetchone() == (1,)
    con.commit()
    assert con.execute("select count(*) from t").fetchone() == (2,)
    con.execute("insert into t values (4)")
    con.close()
    assert other.execute("select count(*) from t").fetchone() == (2,)
    other.close()


def test_autocommit_can_be_switched(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("create table t (a integer)")
        with pytest.raises(lakelite.InterfaceError, match="transaction is open"):
            con.autocommit = True
        con.commit()
        con.autocommit = True
        con.execute("insert into t values (1)")
        assert not con.in_transaction
        con.execute("begin")
        assert con.in_transaction
        con.execute("insert into t values (2)")
        con.rollback()
        con.autocommit = False
        con.execute("insert into t values (3)")
        assert con.in_transaction
    with lakelite.connect(tmp_path / "lake") as con:
        assert con.execute("from t order by a").fetchall() == [(1,), (3,)]


def test_the_context_manager_commits_or_rolls_back_and_closes(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("create table t (a integer)")
    with pytest.raises(lakelite.InterfaceError, match="closed"):
        con.execute("select 1")
    with pytest.raises(ZeroDivisionError), lakelite.connect(tmp_path / "lake") as con:
        fail_after_insert(con)
    with lakelite.connect(tmp_path / "lake") as con:
        assert con.execute("select count(*) from t").fetchone() == (0,)


def fail_after_insert(con: lakelite.Connection) -> None:
    con.execute("insert into t values (1)")
    raise ZeroDivisionError


def test_what_is_closed_says_so(con: lakelite.Connection) -> None:
    cursor = con.execute("select a from t order by a")
    cursor.close()
    cursor.close()
    for use in (
        cursor.fetchone,
        cursor.fetchall,
        cursor.fetchmany,
        lambda: cursor.execute("select 1"),
        lambda: cursor.executemany("delete from t where a = ?", [[1]]),
        lambda: cursor.executescript("select 1"),
        lambda: cursor.setinputsizes([1]),
        lambda: cursor.setoutputsize(1),
        lambda: list(cursor),
        cursor.__enter__,
    ):
        with pytest.raises(lakelite.InterfaceError, match="cursor is closed"):
            use()
    half, held, none = con.execute("select a from t order by a"), con.execute("show tables"), con.cursor()
    assert half.fetchone() == (1,)
    con.close()
    con.close()
    for use in (
        con.commit,
        con.rollback,
        con.cursor,
        con.interrupt,
        con.__enter__,
        lambda: con.transaction().__enter__(),
        lambda: con.execute("select 1"),
        lambda: con.executemany("delete from t where a = ?", [[1]]),
        lambda: con.executescript("select 1"),
        lambda: next(con.statements("select 1")),
        lambda: setattr(con, "autocommit", True),
        lambda: setattr(con, "isolation", "write serializable"),
        *(
            use
            for cursor in (half, held, none)
            for use in (
                cursor.fetchone,
                cursor.fetchmany,
                cursor.fetchall,
                cursor.__next__,
                cursor.__enter__,
                lambda cursor=cursor: cursor.execute("select 1"),
                lambda cursor=cursor: cursor.executemany("delete from t where a = ?", [[1]]),
                lambda cursor=cursor: cursor.executescript("select 1"),
                lambda cursor=cursor: cursor.setinputsizes([1]),
                lambda cursor=cursor: cursor.setoutputsize(1),
            )
        ),
    ):
        with pytest.raises(lakelite.InterfaceError, match="connection is closed"):
            use()
    half.close()
    assert not con.in_transaction


def test_a_connection_that_is_forgotten_is_closed(tmp_path: Path) -> None:
    con = lakelite.connect(tmp_path / "lake")
    con.execute("create table t (a int)")
    lease = list((tmp_path / "lake" / "leases").iterdir())
    assert lease
    del con
    gc.collect()
    assert list((tmp_path / "lake" / "leases").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"path": None}, lakelite.InterfaceError, "the path of a lake is a str"),
        ({"path": 5}, lakelite.InterfaceError, "not int"),
        ({"path": b"lake"}, lakelite.InterfaceError, "the path of a lake is a str"),
        ({"path": "a\0b"}, lakelite.CannotOpen, "cannot hold a NUL character"),
        ({"autocommit": "yes"}, lakelite.InterfaceError, "autocommit is True or False"),
        ({"autocommit": None}, lakelite.InterfaceError, "autocommit is True or False"),
        ({"isolation": None}, lakelite.InterfaceError, "an isolation level is a str, not NoneType"),
        ({"isolation": "none"}, lakelite.ProgrammingError, "no isolation level"),
        ({"author": 5}, lakelite.InterfaceError, "an author is a str, not int"),
        ({"branch": "dev"}, lakelite.CannotOpen, "there is no lake"),
        ({"branch": None}, lakelite.InterfaceError, "a branch is a str, not NoneType"),
    ],
    ids=str,
)
def test_wrong_arguments_of_connect(tmp_path: Path, arguments: dict[str, Any], error: type[lakelite.Error], words: str) -> None:
    with pytest.raises(error, match=words):
        lakelite.connect(**{"path": tmp_path / "lake", **arguments})
    assert list(tmp_path.iterdir()) == []


def test_a_connection_is_on_a_branch(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", branch="main", autocommit=True) as con:
        assert con.branch == "main"
        con.execute("create branch dev")
    with lakelite.connect(tmp_path / "lake", branch="DEV", autocommit=True) as con:
        assert con.branch == "dev"
        con.execute("use branch main")
        assert con.branch == "main"
    with pytest.raises(lakelite.ProgrammingError, match='branch "dve" does not exist') as caught:
        lakelite.connect(tmp_path / "lake", branch="dve")
    assert caught.value.hint == "did you mean dev?"


def test_the_exceptions_are_attributes_of_the_connection(con: lakelite.Connection) -> None:
    for name in (
        "Warning Error InterfaceError DatabaseError DataError OperationalError IntegrityError InternalError ProgrammingError NotSupportedError"
    ).split():
        assert getattr(con, name) is getattr(lakelite, name)
    with pytest.raises(con.ProgrammingError):
        con.execute("selec 1")
