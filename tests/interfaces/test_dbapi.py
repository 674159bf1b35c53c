"""The Python interface: PEP 249 and what the contract adds to it."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import gc
import math
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lakelite


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("create table t (a integer, b varchar); insert into t values (1, 'one'), (2, 'two'), (3, null)")
    return lake


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


# Connections.


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


# Cursors.


def test_fetching(con: lakelite.Connection) -> None:
    cursor = con.cursor()
    assert cursor.execute("select a from t order by a") is cursor
    assert cursor.connection is con
    assert (cursor.fetchone(), cursor.fetchone(), cursor.fetchone(), cursor.fetchone(), cursor.fetchone()) == ((1,), (2,), (3,), None, None)
    cursor.execute("select range as n from range(10)")
    assert cursor.fetchmany() == [(0,)]
    assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(4,), (5,)]
    assert next(iter(cursor)) == (6,)
    assert cursor.fetchall() == [(7,), (8,), (9,)]
    assert cursor.fetchall() == []
    assert cursor.fetchmany(5) == []
    assert list(con.execute("from t order by a")) == [(1, "one"), (2, "two"), (3, None)]
    assert [n for (n,) in con.execute("select range from range(5000)")] == list(range(5000))
    assert con.execute("select 1 where false").fetchall() == []
    cursor.setinputsizes([1])
    cursor.setoutputsize(1, 2)
    assert cursor.execute("select range from range(5)").fetchmany(0) == []
    assert cursor.fetchmany(np.int64(2)) == [(0,), (1,)]
    for wrong in (-1, 1.5, "2"):
        with pytest.raises(lakelite.InterfaceError, match="whole number, 0 or more"):
            cursor.fetchmany(wrong)
    cursor.arraysize = -1
    with pytest.raises(lakelite.InterfaceError, match="whole number, 0 or more"):
        cursor.fetchmany()
    assert cursor.fetchall() == [(2,), (3,), (4,)]


def test_a_cursor_is_its_own_iterator(con: lakelite.Connection) -> None:
    cursor = con.execute("select a from t order by a")
    assert iter(cursor) is cursor
    assert next(cursor) == (1,)
    assert [row for row in cursor] == [(2,), (3,)]  # noqa: C416  (the protocol, not list())
    with pytest.raises(StopIteration):
        next(cursor)
    with pytest.raises(lakelite.InterfaceError, match="no result"):
        next(con.cursor())


def test_the_context_manager_of_a_cursor_closes_it(con: lakelite.Connection) -> None:
    with con.cursor() as cursor:
        assert cursor.execute("select count(*) from t").fetchone() == (3,)
    with pytest.raises(lakelite.InterfaceError, match="cursor is closed"):
        cursor.fetchone()
    assert con.execute("select 1").fetchone() == (1,)


def test_rownumber_is_the_index_of_the_next_row(con: lakelite.Connection) -> None:
    cursor = con.cursor()
    assert cursor.rownumber is None
    for sql, size in (("select range from range(10)", 10), ("show all", len(con.execute("show all").fetchall()))):
        cursor.execute(sql)
        assert cursor.rownumber == 0
        cursor.fetchone()
        assert cursor.rownumber == 1
        cursor.fetchmany(3)
        assert cursor.rownumber == 4
        next(cursor)
        assert cursor.rownumber == 5
        cursor.fetchall()
        cursor.fetchone()
        cursor.fetchmany()
        assert cursor.rownumber == size
    cursor.execute("insert into t values (4, 'x')")
    assert cursor.rownumber is None
    assert cursor.lastrowid is None
    with pytest.raises(AttributeError):
        cursor.rownumber = 3  # type: ignore[misc]


def test_what_pep_249_leaves_out_where_it_is_not_there(con: lakelite.Connection) -> None:
    """ "The preferred approach is to not implement the method": an AttributeError."""
    assert [name for name in ("callproc", "nextset", "scroll") if hasattr(con.cursor(), name)] == []
    assert [name for name in ("xid", "tpc_begin", "tpc_prepare", "tpc_recover") if hasattr(con, name)] == []


def test_fetching_without_a_result(con: lakelite.Connection) -> None:
    cursor = con.cursor()
    for _ in range(2):
        for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
            with pytest.raises(lakelite.InterfaceError, match="no result"):
                fetch()
        assert cursor.description is None
        cursor.execute("insert into t values (9, 'x')")
    assert cursor.rowcount == 1


def test_an_error_takes_the_old_result_away(con: lakelite.Connection) -> None:
    cursor = con.execute("select a from t")
    with pytest.raises(lakelite.ProgrammingError):
        cursor.execute("select nosuch from t")
    assert cursor.description is None
    assert cursor.execute("select count(*) from t").fetchone() == (3,)


def test_description(con: lakelite.Connection) -> None:
    cursor = con.execute("select a, b as \"B b\", a / 2, [a] as l, {'x': 1.5} as s, null as n, 1::hugeint as h, timestamptz '2020-01-01' as z from t")
    assert [d[0] for d in cursor.description] == ["a", "B b", "(a / 2)", "l", "s", "n", "h", "z"]
    assert [str(d[1]) for d in cursor.description] == [
        "INTEGER",
        "VARCHAR",
        "DOUBLE",
        "INTEGER[]",
        "STRUCT(x DECIMAL(2,1))",
        '"NULL"',
        "HUGEINT",
        "TIMESTAMP WITH TIME ZONE",
    ]
    assert all(len(d) == 7 for d in cursor.description)
    for sql, name in (
        ("show tables", "name"),
        ("describe t", "column_name"),
        ("describe history", "version"),
        ("explain select 1", "explain_key"),
        ("vacuum dry run", "dry_run"),
    ):
        assert con.execute(sql).description[0][0] == name
    for sql in ("insert into t values (5, 'x')", "create table u (a int)", "begin", "commit", "set threads = 2", "drop table u"):
        assert con.execute(sql).description is None


def test_rowcount(con: lakelite.Connection) -> None:
    assert con.cursor().rowcount == -1
    for sql, count in (
        ("insert into t values (4, 'x'), (5, 'y')", 2),
        ("insert into t select 6, 'z' where false", 0),
        ("update t set b = 'n' where a > 3", 2),
        ("update t set b = 'n' where a > 99", 0),
        ("delete from t where a = 4", 1),
        ("create table u as select * from t", 4),
        ("create table v (a int)", -1),
        ("select * from t", -1),
        ("begin", -1),
        ("insert into v from range(7)", 7),
        ("commit", -1),
        ("insert overwrite v select 1", 1),
        ("truncate v", 1),
        ("delete from u", 4),
        ("drop table u", -1),
        ("copy t to '/dev/null' (format csv)", 4),
    ):
        assert con.execute(sql).rowcount == count, sql


def test_the_rowcount_is_that_of_the_final_effect(con: lakelite.Connection, tmp_path: Path) -> None:
    """Rows that another transaction deleted first are not counted: the commit found them gone."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        con.execute("begin; delete from t where a <= 2")
        other.execute("delete from t where a = 2")
        con.execute("commit")
        assert con.last_commit is not None
        assert con.last_commit.resolutions[0].row_count == 1
        assert con.execute("select a from t").fetchall() == [(3,)]


def test_a_script_gives_the_last_result(con: lakelite.Connection) -> None:
    assert con.execute("insert into t values (4, 'x'); select count(*) from t;").fetchall() == [(4,)]
    assert [
        c.fetchall() if c.description else c.rowcount for c in con.statements("select 1; insert into t values (5, 'y'); select max(a) from t")
    ] == [[(1,)], 1, [(5,)]]


def test_executescript(con: lakelite.Connection, tmp_path: Path) -> None:
    """Each statement is run to its end, its rows are not kept, and what stood before an error stays."""
    script = """-- a comment; with a semicolon
        create table u (a integer); insert into u select range from range(100000);
        select * from u; ;
        copy (select max(a) m from u) to '{}' (format csv);
    """.format(tmp_path / "max.csv")
    cursor = con.executescript(script)
    assert isinstance(cursor, lakelite.Cursor)
    assert (cursor.description, cursor.rowcount) == (None, -1)
    assert (tmp_path / "max.csv").read_text().split() == ["m", "99999"]
    assert con.cursor().executescript("").description is None
    with pytest.raises(lakelite.DataError, match="ould not convert"):
        con.executescript("insert into u values (-1); select a::varchar || 'x' from u where (a::varchar || 'x')::int < 0; insert into u values (-2)")
    assert con.execute("select min(a) from u").fetchone() == (-1,)
    with pytest.raises(lakelite.DataError):  # in a row that nobody would have fetched
        con.executescript("select case when a < 99999 then 1 else ('x' || a)::int end from u order by a")


def test_executescript_does_not_end_the_transaction(con: lakelite.Connection) -> None:
    con.execute("begin; insert into t values (4, 'x')")
    con.executescript("insert into t values (5, 'y'); insert into t values (6, 'z')")
    assert con.in_transaction
    con.rollback()
    assert con.execute("select count(*) from t").fetchone() == (3,)


@pytest.mark.parametrize("sql", [None, b"select 1", 5, ["select 1"]], ids=str)
def test_a_statement_is_a_text(con: lakelite.Connection, sql: Any) -> None:
    for use in (con.execute, con.executescript, con.statements, lambda text: con.executemany(text, [[1]])):
        with pytest.raises(lakelite.InterfaceError, match="a statement is a str"):
            use(sql)
    assert con.execute("").description is None
    assert con.execute(" -- nothing\n;").description is None


def test_several_cursors_at_once_while_others_write(con: lakelite.Connection, tmp_path: Path) -> None:
    """Each keeps reading the snapshot that it began with."""
    con.execute("create table big as select range as n, repeat('x', 50) as pad from range(30000)")
    con.execute("insert into big values (30000, 'inline')")
    first = con.execute("select n from big order by n")
    assert first.fetchmany(10) == [(n,) for n in range(10)]
    second = con.execute("select n, (select count(*) from t) from big order by n desc")
    assert second.fetchone() == (30000, 3)
    con.execute("delete from big where n % 2 = 0; insert into big values (-1, 'new'); update t set b = 'changed'")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("delete from big where n < 20000; set retention_hours = 0; vacuum; create or replace table t as select 1 as z")
    third = con.execute("select n from big order by n")
    assert third.fetchone() == (20001,)
    con.execute("drop table big")
    assert len(first.fetchall()) == 30001 - 10
    assert second.fetchmany(2) == [(29999, 3), (29998, 3)]
    assert len(third.fetchall()) == 4999
    assert len(second.fetchall()) == 29998
    with pytest.raises(lakelite.ProgrammingError, match="does not exist"):
        con.execute("from big")


def test_messages_tell_how_a_commit_met_others(con: lakelite.Connection, tmp_path: Path) -> None:
    assert con.execute("insert into t values (7, 'x')").messages == []
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        con.execute("begin; delete from t where a = 1")
        other.execute("delete from t where a = 2")
        cursor = con.execute("commit")
    assert all(issubclass(kind, lakelite.Warning) and isinstance(text, str) for kind, text in cursor.messages)
    assert con.last_commit is not None
    assert [r.rung for r in con.last_commit.resolutions] != []
    assert con.execute("select a from t order by a").fetchall() == [(3,), (7,)]


def test_messages_are_those_of_the_last_call(con: lakelite.Connection, tmp_path: Path) -> None:
    """An error is one too; the connection has those of commit() and rollback()."""
    cursor = con.cursor()
    with pytest.raises(lakelite.ProgrammingError):
        cursor.execute("select nosuch from t")
    ((kind, text),) = cursor.messages
    assert kind is lakelite.ProgrammingError
    assert "nosuch" in text
    assert cursor.execute("select 1").messages == []
    with pytest.raises(lakelite.DataError):
        cursor.executemany("insert into t values (?, 'x')", [["abc"]])
    assert [kind for kind, _ in cursor.messages] == [lakelite.DataError]
    del cursor.messages[:]
    assert cursor.messages == []
    con.execute("begin; delete from t where a <= 2")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("delete from t where a = 2")
    con.commit()
    assert con.last_commit is not None
    assert [text for kind, text in con.messages if issubclass(kind, lakelite.Warning)] == [
        r.explanation for r in con.last_commit.resolutions if r.noticeable
    ]
    con.rollback()
    assert con.messages == []


def test_last_commit(con: lakelite.Connection) -> None:
    version = con.execute("describe history limit 1").fetchone()[0]
    assert con.last_commit is not None
    assert con.last_commit.snapshot_id == version
    con.execute("select 1; begin; commit; delete from t where false")
    con.execute("insert into t values (4, 'x')")
    assert con.last_commit.snapshot_id == con.execute("describe history limit 1").fetchone()[0] > version
    assert con.last_commit.attempts == 1
    assert con.last_commit.resolutions == ()
    with lakelite.connect() as fresh:
        assert fresh.last_commit is None


# Parameters.


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("select a from t where a = ? and b = ?", [2, "two"]),
        ("select a from t where a = ? and b = ?", (2, "two")),
        ("select a from t where a = $1 and b = $2", [2, "two"]),
        ("select a from t where b = $2 and a = $1", [2, "two"]),
        ("select a from t where a = $a and b = $b and a = $a", {"a": 2, "b": "two", "more": 5}),
        ("select a from t where a = :a and b = :b", {"a": 2, "b": "two"}),
        ("select a from t where a=:a", {"a": 2}),
        ("select a from t where a::integer = :a -- :b ?", {"a": 2}),
        ("select a from t where a = $a and '? $1 :a' <> \"b\" /* ? */", {"a": 2}),
    ],
)
def test_styles_of_parameters(con: lakelite.Connection, sql: str, parameters: Any) -> None:
    assert con.execute(sql, parameters).fetchall() == [(2,)]


@pytest.mark.parametrize("first", ["?", "$1", "$a", ":a"])
@pytest.mark.parametrize("second", ["?", "$1", "$a", ":a"])
def test_a_statement_takes_one_style(con: lakelite.Connection, first: str, second: str) -> None:
    sql = f"select a from t where a = {first} or a = {second}"
    named = first[1:] == "a" or second[1:] == "a"
    values: Any = {"a": 2} if named else [2, 2] if (first, second) == ("?", "?") else [2]
    if first == second:
        assert con.execute(sql, values).fetchall() == [(2,)]
        return
    with pytest.raises(lakelite.ProgrammingError, match="takes one style of parameters") as caught:
        con.execute(sql, values)
    assert caught.value.position is not None
    assert caught.value.position.column == sql.rindex(second) + 1


@pytest.mark.parametrize(
    ("sql", "values", "words"),
    [
        ("select ?", None, "has 1 parameter, but the number of values is 0"),
        ("select ?", [], "has 1 parameter, but the number of values is 0"),
        ("select ?", [1, 2], "has 1 parameter, but the number of values is 2"),
        ("select 1", [1], "has 0 parameters, but the number of values is 1"),
        ("select $2", [1], "has 2 parameters, but the number of values is 1"),
        ("select $0", [1], r"there is no parameter \$0"),
        ("select $0, $1", [1], r"there is no parameter \$0"),
        ("select $99999999999999999999", [1], r"there is no parameter \$9999"),
        ("select ?", "x", "a sequence or a mapping"),
        ("select ?", b"x", "a sequence or a mapping"),
        ("select ?", {1}, "a sequence or a mapping"),
        ("select ?", 5, "a sequence or a mapping"),
        ("select ?", iter([1]), "a sequence or a mapping"),
        ("select ?", {"a": 1}, "the parameters have no names"),
        ("select $a", [1], "has a name"),
        ("select $a", {"b": 1}, "no value was given for the parameter a"),
        ("select :a", [1], "or with a mapping [$]name or :name"),
        ("select :a", {"b": 1}, "syntax error"),
    ],
)
def test_values_that_do_not_fit(con: lakelite.Connection, sql: str, values: Any, words: str) -> None:
    with pytest.raises(lakelite.ProgrammingError, match=words):
        con.execute(sql, values)
    assert con.execute("select count(*) from t").fetchone() == (3,)


def test_what_counts_as_a_sequence_of_values(con: lakelite.Connection) -> None:
    """ "A sequence is anything with __getitem__ and a length", in PEP 249's words; so are the sets of an executemany."""

    class Row:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            return (7, 8)[index]

    for values in ((7, 8), [7, 8], range(7, 9), Row(), np.array([7, 8]), np.array([7, 8], dtype=object)):
        assert con.execute("select ? + 0, ? + 0", values).fetchall() == [(7, 8)]
    assert con.executemany("insert into t values (?, ?)", np.array([[7, 8], [9, 10]])).rowcount == 2
    assert con.executemany("insert into t values (?, ?)", ((n, None) for n in range(2))).rowcount == 2
    for wrong in ({"a": 1}, "ab", 5, None):
        with pytest.raises(lakelite.ProgrammingError, match="parameter sets"):
            con.executemany("insert into t values (?, ?)", wrong)


def test_an_error_of_the_callers_own_sets_is_the_callers(con: lakelite.Connection) -> None:
    def sets() -> Iterator[list[Any]]:
        yield [1, "x"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        con.executemany("insert into t values (?, ?)", sets())
    assert con.execute("select count(*) from t").fetchone() == (3,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([np.int64(1), np.int8(2)], [1, 2]),
        ((np.float32(1.5), None), [1.5, None]),
        ({"a": np.int64(1), "b": [np.bool_(True)]}, {"a": 1, "b": [True]}),
        (np.array([1, 2]), [1, 2]),
        (np.array([[1], [2]]), [[1], [2]]),
        (np.float16(0.5), 0.5),
        (np.timedelta64(5, "s"), dt.timedelta(seconds=5)),
        (np.timedelta64(1500, "ns"), dt.timedelta(microseconds=1)),
        (np.timedelta64("NaT"), None),
        (np.datetime64("NaT"), None),
        (np.datetime64("2020-01-01T00:00:00.000001", "ns"), dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
        (np.datetime64("NaT", "ns"), None),
        (np.ma.masked, None),
        (memoryview(b"ab"), b"ab"),
        (decimal.Decimal("NaN"), None),
        ((1, 2), [1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_as_they_come_from_elsewhere(con: lakelite.Connection, value: Any, expected: Any) -> None:
    (found,) = con.execute("select ?", [value]).fetchone()
    assert found == expected or (isinstance(value, decimal.Decimal) and math.isnan(found))


@pytest.mark.parametrize(
    ("value", "type_name", "text"),
    [
        (np.datetime64("2020-01-01T00:00:00.000000001"), "TIMESTAMP_NS", "2020-01-01 00:00:00.000000001"),
        (np.datetime64("1969-12-31T23:59:59.999999999999", "ps").astype("datetime64[ns]"), "TIMESTAMP_NS", "1969-12-31 23:59:59.999999999"),
        (np.datetime64("20000-01-01T00:00:00.5"), "TIMESTAMP", "20000-01-01 00:00:00.5"),
        (np.datetime64("2020-01-01T00:00:00.25", "ms"), "TIMESTAMP", "2020-01-01 00:00:00.25"),
    ],
    ids=str,
)
def test_moments_of_numpy(con: lakelite.Connection, value: Any, type_name: str, text: str) -> None:
    """numpy gives a bare number for one that datetime cannot hold: it must not become one here."""
    con.execute(f"create table m (a {type_name})")
    con.execute("insert into m values (?)", [value])
    con.execute("insert into m select $v", {"v": value})
    con.executemany("insert into m values (?)", [[value], [None]])
    assert con.execute("select typeof(?), a::varchar, count(*) from m group by a order by a", [value]).fetchall() == [
        (type_name, text, 3),
        (type_name, None, 1),
    ]
    assert con.execute("delete from m where a = ?", [value]).rowcount == 3


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        1 + 2j,
        Path("/x"),
        (n for n in ()),
        2**200,
        "half \ud800",
        np.timedelta64(1, "M"),
        np.datetime64(1, "fs"),
        np.complex64(1),
        [object()],
        {"a": {1}},
        print,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_sql_cannot_hold(con: lakelite.Connection, value: Any) -> None:
    for sql in ("select ?", "insert into t values (1, ?)", "insert into t select 1, ?", "delete from t where b = ?"):
        with pytest.raises(lakelite.DatabaseError):
            con.execute(sql, [value])
        with pytest.raises(lakelite.DatabaseError):
            con.execute(sql.replace("?", "[$v]"), {"v": value})
    assert con.execute("select count(*) from t").fetchone() == (3,)


def test_a_colon_is_a_parameter_only_where_the_mapping_has_the_name(con: lakelite.Connection) -> None:
    assert con.execute("select [10, 20, 30][2:a] from t where a = 3", {"b": 1}).fetchall() == [([20, 30],)]
    assert con.execute("select {a: 5}, x: a from t where a = :n", {"n": 1, "a": 9}).fetchall() == [({"a": 5}, 1)]
    assert con.execute("select [1, 2, 3][:a] from t where a = :n", {"n": 2, "a": 1}).fetchall() == [([1, 2],)]
    assert con.execute("select b: a from t where a = :a", {"a": 1}).fetchall() == [(1,)]
    assert con.execute("select time '01:02:03'::varchar", {"02": 1}).fetchall() == [("01:02:03",)]


NOW = dt.datetime.fromisoformat("2020-02-29T12:34:56.789012")
VALUES: list[tuple[Any, str]] = [
    (None, "INTEGER"),
    (True, "BOOLEAN"),
    (False, "BOOLEAN"),
    (0, "INTEGER"),
    (-(2**31), "INTEGER"),
    (2**63 - 1, "BIGINT"),
    (-(2**63), "BIGINT"),
    (2**64 - 1, "UBIGINT"),
    (10**37, "HUGEINT"),
    (-(10**37), "HUGEINT"),
    (1.5, "DOUBLE"),
    (-0.0, "DOUBLE"),
    (math.inf, "DOUBLE"),
    (5e-324, "DOUBLE"),
    (0.1, "FLOAT"),
    (decimal.Decimal("123.45"), "DECIMAL(5,2)"),
    (decimal.Decimal("-0.00000000000000000001"), "DECIMAL(38,20)"),
    (decimal.Decimal("1E+5"), "DECIMAL(10,2)"),
    ("", "VARCHAR"),
    ("it's 😀 \0 x", "VARCHAR"),
    ("null", "VARCHAR"),
    ("x" * 100_000, "VARCHAR"),
    (b"", "BLOB"),
    (b"\x00\xff'", "BLOB"),
    (bytearray(b"ab"), "BLOB"),
    (dt.date(2020, 2, 29), "DATE"),
    (dt.date(1, 1, 1), "DATE"),
    (dt.date(9999, 12, 31), "DATE"),
    (dt.time(23, 59, 59, 999999), "TIME"),
    (NOW, "TIMESTAMP"),
    (dt.datetime.fromisoformat("0001-01-01"), "TIMESTAMP"),
    (NOW.replace(tzinfo=dt.UTC), "TIMESTAMP WITH TIME ZONE"),
    (NOW.replace(tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))), "TIMESTAMP WITH TIME ZONE"),
    (dt.timedelta(days=3, seconds=5, microseconds=7), "INTERVAL"),
    (dt.timedelta(0), "INTERVAL"),
    (uuid.UUID(int=2**127 + 5), "UUID"),
    ([1, None, 3], "INTEGER[]"),
    ([], "INTEGER[]"),
    ([[1], []], "INTEGER[][]"),
    (["a", "b"], "VARCHAR[]"),
    ({"x": 1, "y": "z"}, "STRUCT(x INTEGER, y VARCHAR)"),
    ({"x": None, "y": [1]}, "STRUCT(x INTEGER, y INTEGER[])"),
    ([{"a": 1}, {"a": None}], "STRUCT(a INTEGER)[]"),
    (np.int8(-5), "TINYINT"),
    (np.int64(2**62), "BIGINT"),
    (np.uint16(9), "USMALLINT"),
    (np.float32(1.5), "FLOAT"),
    (np.float64(2.5), "DOUBLE"),
    (np.bool_(True), "BOOLEAN"),
    (np.str_("s"), "VARCHAR"),
    (np.datetime64("2020-02-29"), "DATE"),
    (np.datetime64("2020-02-29T12:34:56.789012"), "TIMESTAMP"),
]


def plain_python(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize(("value", "kind"), VALUES, ids=lambda v: ascii(v)[:30])
def test_a_python_value_goes_in_and_comes_back(lake: lakelite.Connection, value: Any, kind: str) -> None:
    """By INSERT VALUES, executemany, INSERT SELECT, UPDATE, and as a condition."""
    lake.execute(f"create table v (id integer, v {kind})")
    lake.execute("insert into v values (1, ?)", [value])
    lake.executemany("insert into v values (?, ?)", [(2, value), (3, value), (4, None)])
    lake.execute("insert into v select 5, $v", {"v": value})
    lake.execute("insert into v (v, id) values ($v, 6)", {"v": value})
    lake.execute("update v set v = ? where id = 4", [value])
    rows = lake.execute("select id, v from v order by id").fetchall()
    expected = plain_python(value)
    if kind == "FLOAT":
        expected = float(np.float32(expected))
    assert rows == [(i, expected) for i in range(1, 7)]
    assert all(type(v) is type(expected) or isinstance(v, dt.datetime | dt.date) for _, v in rows)
    assert not isinstance(expected, float) or all(math.copysign(1, v) == math.copysign(1, expected) for _, v in rows)
    assert lake.execute(f"select count(*) from v where v is not distinct from ?::{kind}", [value]).fetchone() == (6,)
    assert lake.execute(f"delete from v where v is not distinct from ?::{kind}", [value]).rowcount == 6


def test_nan_as_a_parameter(con: lakelite.Connection) -> None:
    con.execute("create table n (v double)")
    con.execute("insert into n values (?)", [math.nan])
    con.executemany("insert into n values (?)", [[math.nan], [None]])
    assert [v if v is None else math.isnan(v) for (v,) in con.execute("select v from n").fetchall()] == [True, True, None]


def test_executemany_is_one_snapshot(con: lakelite.Connection) -> None:
    def versions() -> int:
        return len(con.execute("describe history").fetchall())

    before = versions()
    assert con.executemany("insert into t values (?, ?)", [(n, str(n)) for n in range(10, 1010)]).rowcount == 1000
    assert con.executemany("update t set b = $b where a = $a", [{"a": n, "b": "new"} for n in range(10, 15)]).rowcount == 5
    assert con.executemany("delete from t where a = ?", [[10], [11], [99999]]).rowcount == 2
    assert con.executemany("insert into t select ?, 's'", iter([[2000], [2001]])).rowcount == 2
    assert con.executemany("insert into t (b) values (:b)", [{"b": "x"}, {"b": "y"}]).rowcount == 2
    assert versions() == before + 5
    assert con.executemany("insert into t values (?, ?)", []).rowcount == 0
    assert versions() == before + 5
    assert con.execute("select count(*), count(a), max(a) from t").fetchone() == (3 + 1000 - 2 + 2 + 2, 3 + 1000 - 2 + 2, 2001)


def test_executemany_is_all_or_nothing(con: lakelite.Connection) -> None:
    con.execute("create table n (a integer not null)")
    before = con.execute("describe history limit 1").fetchall()
    for sql, sets, kind in (
        ("insert into n values (?)", [[1], [None], [2]], lakelite.IntegrityError),
        ("insert into n values (?)", [[1], ["abc"]], lakelite.DataError),
        ("insert into n values (?)", [[1], [1, 2]], lakelite.ProgrammingError),
        ("insert into n select ?::integer", [["1"], ["abc"]], lakelite.DataError),
        ("update t set a = ?::integer", [["1"], ["abc"]], lakelite.DataError),
        ("select ?", [[1]], lakelite.ProgrammingError),
        ("insert into n values (?); insert into n values (?)", [[1]], lakelite.ProgrammingError),
    ):
        with pytest.raises(kind):
            con.executemany(sql, sets)
        assert con.execute("describe history limit 1").fetchall() == before
    con.execute("begin; insert into n values (7)")
    with pytest.raises(lakelite.IntegrityError):
        con.executemany("insert into n values (?)", [[8], [None]])
    con.execute("commit")
    assert con.execute("from n").fetchall() == [(7,)]
    assert con.execute("select sum(a) from t").fetchone() == (6,)
