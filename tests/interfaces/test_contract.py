"""The contract (interface.md): its Python block and what it says about errors, in that order.

What is shown here is shown once; the details, and the lines on exports (`df`, `pl`, `to_arrow`), `append` and `duckdb()`, are tested where
their part is (test_exchange*.py).
"""

# ruff: noqa: PT012  (what a block leaves behind is what is tested)

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import racing

import lakelite


@pytest.fixture
def con(tmp_path: Path) -> Iterator[lakelite.Connection]:
    """As PEP 249 has it: without autocommit."""
    con = lakelite.connect(tmp_path / "flights.lake")
    con.execute("create table flights (year integer, carrier varchar, delay integer not null)")
    con.execute("insert into flights values (2013, 'UA', 5), (2013, 'AA', -3), (2014, 'UA', 0)")
    con.commit()
    yield con
    con.close()


def other(tmp_path: Path) -> lakelite.Connection:
    return lakelite.connect(tmp_path / "flights.lake", autocommit=True)


# connect


def test_connect_makes_the_directory(tmp_path: Path) -> None:
    with pytest.raises(lakelite.CannotOpen):
        lakelite.connect(tmp_path / "flights.lake", create=False)
    assert not (tmp_path / "flights.lake").exists()
    lakelite.connect(tmp_path / "flights.lake").close()
    assert (tmp_path / "flights.lake" / "catalog.sqlite").is_file()
    lakelite.connect(str(tmp_path / "flights.lake"), create=False).close()


def test_connect_to_a_temporary_lake() -> None:
    with lakelite.connect(":memory:") as con:
        root = con._session.lake.paths.root
        con.execute("create table t as select 1 as a")
        assert root.is_dir()
    assert not root.exists()


def test_connect_with_its_options(tmp_path: Path) -> None:
    con = lakelite.connect(
        tmp_path / "flights.lake", autocommit=False, isolation="write serializable", read_only=False, author="Ada", branch="main", create=True
    )
    assert (con.autocommit, con.isolation) == (False, "write serializable")
    con.execute("create table t as select 1 as a")
    con.commit()
    assert con.execute("describe history limit 1").fetchone()[2] == "Ada"
    con.close()
    for isolation in ("WRITE_SERIALIZABLE", "Write Serializable"):
        with lakelite.connect(tmp_path / "flights.lake", isolation=isolation, autocommit=True) as con:
            assert (con.autocommit, con.isolation) == (True, "write serializable")
    with lakelite.connect(tmp_path / "flights.lake", read_only=True) as con, pytest.raises(lakelite.OperationalError, match="read-only"):
        con.execute("delete from t")
    with pytest.raises(lakelite.ProgrammingError, match="branch"):
        lakelite.connect(tmp_path / "flights.lake", branch="dev")


def test_autocommit_is_off_by_default(con: lakelite.Connection, tmp_path: Path) -> None:
    assert not con.autocommit
    con.execute("delete from flights")
    with other(tmp_path) as second:
        assert second.execute("select count(*) from flights").fetchone() == (3,)
        con.commit()
        assert second.execute("select count(*) from flights").fetchone() == (0,)


# cursor, execute, fetching


def test_execute_returns_the_cursor(con: lakelite.Connection) -> None:
    cur = con.cursor()
    assert isinstance(cur, lakelite.Cursor)
    assert cur.execute("select 1") is cur
    assert con.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("year = ? and carrier = ?", (2013, "UA")),
        ("year = $1 and carrier = $2", (2013, "UA")),
        ("year = $year and carrier = $carrier", {"year": 2013, "carrier": "UA"}),
        ("year = :year and carrier = :carrier", {"year": 2013, "carrier": "UA"}),
    ],
)
def test_parameters_are_bound(con: lakelite.Connection, condition: str, values: Any) -> None:
    assert con.execute(f"delete from flights where {condition}", values).rowcount == 1
    assert con.execute("select year, carrier from flights order by all").fetchall() == [(2013, "AA"), (2014, "UA")]


def test_parameters_are_never_pasted(con: lakelite.Connection) -> None:
    evil = "UA'; drop table flights; --"
    assert con.execute("delete from flights where carrier = ?", [evil]).rowcount == 0
    assert con.execute("select ?, $$?$$, '?', \"carrier\" from flights limit 1 -- ?", [evil]).fetchone() == (evil, "?", "?", "UA")


@pytest.mark.parametrize("condition", ["year = ? and carrier = $1", "year = $1 and carrier = $c", "year = $year and carrier = :carrier"])
def test_a_statement_takes_one_style_of_parameters(con: lakelite.Connection, condition: str) -> None:
    for values in ((2013, "UA"), {"year": 2013, "carrier": "UA", "c": "UA"}):
        with pytest.raises(lakelite.ProgrammingError):
            con.execute(f"delete from flights where {condition}", values)


def test_fetching(con: lakelite.Connection) -> None:
    cur = con.execute("select delay from flights order by delay")
    assert (cur.fetchone(), cur.fetchmany(1), cur.fetchall(), cur.fetchone()) == ((-3,), [(0,)], [(5,)], None)
    assert list(con.execute("select delay from flights order by delay")) == [(-3,), (0,), (5,)]
    cur.execute("select year, carrier from flights")
    assert [(d[0], str(d[1])) for d in cur.description] == [("year", "INTEGER"), ("carrier", "VARCHAR")]
    assert (cur.rowcount, cur.messages) == (-1, [])
    assert cur.execute("delete from flights").rowcount == 3


def test_executemany_is_one_snapshot(con: lakelite.Connection) -> None:
    con.autocommit = True

    def snapshots() -> int:
        return len(con.execute("describe history").fetchall())

    for sql, sets in (
        ("insert into flights values (?, ?, ?)", [(2015, "B6", n) for n in range(100)]),
        ("update flights set delay = $d where year = $y", [{"d": n, "y": 2013} for n in range(3)]),
        ("delete from flights where delay = ?", [[n] for n in range(10)]),
    ):
        before = snapshots()
        con.executemany(sql, sets)
        assert snapshots() == before + 1
    assert con.execute("select count(*) from flights").fetchone() == (103 - 10 - 3,)


# Scripts, transactions, interruption


def test_executescript(con: lakelite.Connection) -> None:
    con.executescript("create table a as select 1 x; insert into a values (2); select * from a;")
    assert con.execute("from a order by x").fetchall() == [(1,), (2,)]


def test_commit_and_rollback(con: lakelite.Connection) -> None:
    assert not con.in_transaction
    con.execute("delete from flights")
    assert con.in_transaction
    con.rollback()
    assert not con.in_transaction
    assert con.execute("select count(*) from flights").fetchone() == (3,)
    con.execute("delete from flights")
    con.commit()
    assert not con.in_transaction
    assert con.execute("select count(*) from flights").fetchone() == (0,)


def test_autocommit_and_isolation_can_be_set(con: lakelite.Connection, tmp_path: Path) -> None:
    con.autocommit = True
    for spelled in ("write serializable", "WRITE_SERIALIZABLE", "Write Serializable"):
        con.isolation = spelled
        assert con.isolation == "write serializable"
    with pytest.raises(lakelite.ProgrammingError, match="there is no isolation level"):
        con.isolation = "nosuch"
    con.execute("delete from flights")
    assert con.execute("select isolation from lake.snapshots order by snapshot_id desc limit 1").fetchall() == [("write serializable",)]
    assert not con.in_transaction
    with other(tmp_path) as second:
        assert second.execute("select count(*) from flights").fetchone() == (0,)


def test_interrupt(con: lakelite.Connection) -> None:
    con.execute("delete from flights where year = 2014")
    done = threading.Event()

    def stop() -> None:
        while not done.wait(0.1):
            con.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(lakelite.OperationalError, match="interrupted"):
            con.execute("select sum(hash(a.range, b.range)) from range(10000000) a, range(10000000) b").fetchall()
    finally:
        done.set()
        thread.join()
    con.commit()
    assert con.execute("select count(*) from flights").fetchone() == (2,)


def test_last_commit(con: lakelite.Connection, tmp_path: Path) -> None:
    base = con.last_commit
    assert base is not None
    con.execute("delete from flights where year = 2014")
    with other(tmp_path) as second:
        second.execute("delete from flights where year = 2013")
    con.commit()
    found = con.last_commit
    assert found is not None
    assert (found.base_snapshot_id, found.snapshot_id, found.attempts) == (base.snapshot_id, base.snapshot_id + 2, 1)
    assert [(r.winner_snapshot_id, r.table) for r in found.resolutions] == [(base.snapshot_id + 1, "flights")]


def test_transaction_blocks(con: lakelite.Connection, tmp_path: Path) -> None:
    with con.transaction():
        con.execute("delete from flights where year = 2014")
        with pytest.raises(ZeroDivisionError), con.transaction():
            con.execute("delete from flights")
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), con.transaction():
        con.execute("delete from flights")
        raise ZeroDivisionError
    with other(tmp_path) as second:
        assert second.execute("select count(*) from flights").fetchone() == (2,)


def test_the_connection_as_a_context_manager(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "flights.lake") as con:
        con.execute("create table t as select 1 as a")
    with pytest.raises(ZeroDivisionError), lakelite.connect(tmp_path / "flights.lake") as con:
        con.execute("delete from t")
        raise ZeroDivisionError
    with pytest.raises(lakelite.InterfaceError, match="closed"):
        con.execute("select 1")
    with other(tmp_path) as second:
        assert second.execute("from t").fetchall() == [(1,)]


# What is said below the block


def test_a_colon_and_a_name(con: lakelite.Connection) -> None:
    """A parameter only where a mapping holds the name, and never inside [] or {}."""
    values = {"x": 1, "y": 3}
    assert con.execute("select :x, [10, 20, 30][:y], {'y':y}, z:7 from (select 9 y)", values).fetchall() == [(1, [10, 20, 30], {"y": 9}, 7)]


def test_the_base_is_taken_at_begin_or_at_the_first_statement(con: lakelite.Connection, tmp_path: Path) -> None:
    with other(tmp_path) as second:
        second.execute("delete from flights where year = 2014")
        assert con.execute("select count(*) from flights").fetchone() == (2,)
        second.execute("delete from flights where carrier = 'AA'")
        assert con.execute("select count(*) from flights").fetchone() == (2,)
        con.commit()
        con.execute("begin")
        second.execute("delete from flights")
        assert con.execute("select count(*) from flights").fetchone() == (1,)


def test_a_statement_that_fails_undoes_only_itself(con: lakelite.Connection) -> None:
    con.execute("delete from flights where year = 2014")
    with pytest.raises(lakelite.IntegrityError):
        con.execute("insert into flights values (2015, 'B6', 1), (2015, 'B6', null)")
    con.execute("insert into flights values (2016, 'B6', 1)")
    con.commit()
    assert con.execute("select year from flights order by year").fetchall() == [(2013,), (2013,), (2016,)]


def test_threads_share_a_connection(con: lakelite.Connection) -> None:
    def work(number: int) -> None:
        for n in range(5):
            con.execute("insert into flights values (?, 'T', ?)", [number, n])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert con.execute("select count(*) from flights where carrier = 'T'").fetchone() == (20,)


def test_processes_share_a_lake(con: lakelite.Connection, tmp_path: Path) -> None:
    assert racing.race(racing.append_flights, [(str(tmp_path / "flights.lake"), n) for n in range(2)]) == [0, 1]
    assert con.execute("select count(*) from flights where carrier = 'P'").fetchone() == (10,)


def test_the_constants_of_pep_249() -> None:
    assert (lakelite.apilevel, lakelite.threadsafety, lakelite.paramstyle) == ("2.0", 2, "qmark")


# Errors


def test_the_tree_of_errors() -> None:
    assert issubclass(lakelite.TransactionConflict, lakelite.OperationalError)
    assert issubclass(lakelite.CommitUnknown, lakelite.OperationalError)
    for name in "DataError OperationalError IntegrityError InternalError ProgrammingError NotSupportedError".split():
        assert getattr(lakelite, name).__mro__[1:4] == (lakelite.DatabaseError, lakelite.Error, Exception)
    assert lakelite.InterfaceError.__mro__[1] is lakelite.Error
    assert not issubclass(lakelite.Warning, lakelite.Error)


def test_a_conflict(con: lakelite.Connection, tmp_path: Path) -> None:
    (total,) = con.execute("select sum(delay) from flights").fetchone()
    con.execute("insert into flights values (2016, 'SUM', ?)", [total])
    with other(tmp_path) as second:
        second.execute("update flights set delay = 50 where year = 2013")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        con.commit()
    (conflict,) = caught.value.conflicts
    assert (conflict.table, conflict.kind) == ("flights", "read changed")
    assert "update flights" in conflict.winner_statement
    assert caught.value.hint
    assert not con.in_transaction


def test_keys_and_checks_give_an_integrity_error(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.IntegrityError, match="NOT NULL") as caught:
        con.execute("insert into flights values (2013, 'UA', null)")
    assert caught.value.sqlstate == "23000"


@pytest.mark.parametrize(
    ("sql", "line", "column", "near"),
    [
        ("selec 1", 1, 1, "SELECT"),
        ("select *\nfrom flihgts", 2, 6, "flights"),
        ("select carier\nfrom flights", 1, 8, "carrier"),
        ("delete from flights\nwhere carier = 'UA'", 2, 7, "carrier"),
        ("insert into flihgts values (1)", 1, 13, "flights"),
        ("select 1 +\n\n  from flights", 3, 3, None),
    ],
)
def test_what_cannot_be_parsed_or_bound(con: lakelite.Connection, sql: str, line: int, column: int, near: str | None) -> None:
    with pytest.raises(lakelite.ProgrammingError) as caught:
        con.execute(sql)
    position = caught.value.position
    assert position is not None
    assert (position.line, position.column) == (line, column)
    text = str(caught.value)
    shown, caret = text.splitlines()[1:3]
    assert sql.splitlines()[line - 1] in shown
    assert shown[caret.index("^") :].startswith(sql.splitlines()[line - 1][column - 1 :][:4])
    assert near is None or near in text


def test_what_is_refused_says_what_to_use_instead(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.NotSupportedError, match="not supported") as caught:
        con.execute("pragma table_info('flights')")
    assert caught.value.hint


@pytest.mark.parametrize(
    "sql", ["select nosuch from flights", "select 'abc'::integer", "delete from flights where carrier > 5", "select * from 'nosuch.csv'"]
)
def test_the_cause_is_chained_and_not_shown(con: lakelite.Connection, sql: str) -> None:
    with pytest.raises(lakelite.Error) as caught:
        con.execute(sql).fetchall()
    assert type(caught.value).__module__ == "lakelite.errors"
    assert type(caught.value.__cause__).__module__.startswith(("duckdb", "_duckdb"))
    for word in ("Binder", "Conversion Error", "duckdb", "sqlglot", "sqlite"):
        assert word not in str(caught.value)


def test_import_is_cheap() -> None:
    code = "import sys, lakelite; print(*({'duckdb', 'pyarrow', 'sqlglot', 'numpy', 'pandas', 'polars', 'sqlite3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_last_commit_is_of_public_classes(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "l", autocommit=True) as one, lakelite.connect(tmp_path / "l", autocommit=True) as two:
        assert one.last_commit is None
        one.execute("CREATE TABLE t AS SELECT 1 AS a")
        two.execute("BEGIN; UPDATE t SET a = a + 1")
        one.execute("UPDATE t SET a = a + 10")
        two.execute("COMMIT")
        commit = two.last_commit
        assert isinstance(commit, lakelite.CommitResult)
        assert (commit.snapshot_id, commit.base_snapshot_id, commit.attempts) == (3, 1, 1)
        (line,) = commit.resolutions
        assert isinstance(line, lakelite.Resolution)
        assert (line.winner_snapshot_id, line.table, line.rung) == (2, "t", 3)
        assert two.execute("SELECT transaction_id FROM lake.snapshots WHERE snapshot_id = 3").fetchone() == (commit.transaction_id,)
        assert one.execute("FROM t").fetchall() == [(12,)]
    for public in (lakelite.CommitResult, lakelite.Resolution):
        assert all(f"`{name}`" in (public.__doc__ or "") for name in public.__dataclass_fields__), "the docstring tells of each"
