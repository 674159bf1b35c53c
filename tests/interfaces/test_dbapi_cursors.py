"""The DB-API: cursors, their results, scripts and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lakelite


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
