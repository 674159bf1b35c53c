"""`con.transaction()` blocks, and what autocommit and isolation mean for them."""

# ruff: noqa: PT012  (what a block leaves behind is what is tested)

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import lakelite


class Oops(Exception):
    pass


@pytest.fixture(params=[True, False], ids=["autocommit", "manual"])
def con(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[lakelite.Connection]:
    con = lakelite.connect(tmp_path / "lake", autocommit=request.param)
    con.execute("create table t (a integer)")
    con.commit()
    yield con
    con.close()


def rows(con: lakelite.Connection) -> list[Any]:
    """What is committed, as another connection sees it."""
    with lakelite.connect(con._session.lake.paths.root, autocommit=True) as other:
        return [a for (a,) in other.execute("from t order by a").fetchall()]


def put(con: lakelite.Connection, *values: int) -> None:
    con.executemany("insert into t values (?)", [[value] for value in values])


def test_a_block_commits_as_one_snapshot(con: lakelite.Connection) -> None:
    with con.transaction() as given:
        assert given is con
        assert con.in_transaction
        put(con, 1)
        put(con, 2)
        assert rows(con) == []
    assert not con.in_transaction
    assert rows(con) == [1, 2]
    assert con.last_commit is not None
    assert con.execute("describe history limit 1").fetchone()[0] == con.last_commit.snapshot_id
    con.commit()


@pytest.mark.parametrize("error", [Oops, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_block_rolls_back_on_an_exception(con: lakelite.Connection, error: type[BaseException]) -> None:
    with pytest.raises(error), con.transaction():
        put(con, 1)
        con.execute("create table u (b integer)")
        raise error
    assert not con.in_transaction
    assert rows(con) == []
    assert con.execute("show tables").fetchall() == [("t",)]


def test_blocks_nest_as_savepoints(con: lakelite.Connection) -> None:
    with con.transaction():
        put(con, 1)
        with con.transaction():
            put(con, 2)
            with pytest.raises(Oops), con.transaction():
                put(con, 3)
                with con.transaction():
                    put(con, 4)
                raise Oops
            put(con, 5)
        assert con.in_transaction
        assert rows(con) == []
        with pytest.raises(lakelite.DataError), con.transaction():
            put(con, 6)
            con.execute("insert into t values ('abc')")
        assert con.execute("from t order by a").fetchall() == [(1,), (2,), (5,)]
    assert rows(con) == [1, 2, 5]


def test_an_inner_block_that_fails_whole(con: lakelite.Connection) -> None:
    with pytest.raises(Oops), con.transaction():
        with con.transaction():
            put(con, 1)
        raise Oops
    assert rows(con) == []


def test_a_block_inside_an_open_transaction_leaves_it_open(con: lakelite.Connection) -> None:
    """A BEGIN, or without autocommit any statement in front of it, has opened that one."""
    if con.autocommit:
        con.execute("begin")
    put(con, 1)
    with con.transaction():
        put(con, 2)
    assert con.in_transaction
    assert rows(con) == []
    with pytest.raises(Oops), con.transaction():
        put(con, 3)
        raise Oops
    assert con.in_transaction
    con.commit()
    assert rows(con) == [1, 2]


def test_a_statement_that_fails_undoes_itself_only(con: lakelite.Connection) -> None:
    with con.transaction():
        put(con, 1)
        with pytest.raises(lakelite.ProgrammingError):
            con.execute("insert into nosuch values (1)")
        with pytest.raises(lakelite.DataError):
            con.executemany("insert into t values (?)", [[2], ["x"]])
        put(con, 3)
    assert rows(con) == [1, 3]


ENDS: dict[str, Callable[[lakelite.Connection], Any]] = {
    "commit()": lambda con: con.commit(),
    "rollback()": lambda con: con.rollback(),
    "COMMIT": lambda con: con.execute("commit"),
    "ROLLBACK": lambda con: con.execute("rollback"),
    "a script": lambda con: con.executescript("insert into t values (7); end"),
}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("end", ENDS)
def test_commit_and_rollback_are_refused_inside_a_block(con: lakelite.Connection, end: str, depth: int) -> None:
    with contextlib.ExitStack() as blocks:
        for _ in range(depth):
            blocks.enter_context(con.transaction())
        put(con, 1)
        with pytest.raises(lakelite.ProgrammingError, match=r"(?s)inside a transaction\(\) block.*Hint: leave the block"):
            ENDS[end](con)
        assert con.in_transaction
        put(con, 2)
        assert rows(con) == []
    assert rows(con) == ([1, 2, 7] if end == "a script" else [1, 2])
    put(con, 3)
    con.commit()
    assert 3 in rows(con)


def test_they_are_refused_in_a_block_inside_an_open_transaction_and_from_other_threads(con: lakelite.Connection) -> None:
    put(con, 0)
    if con.autocommit:
        con.execute("begin")
    found: list[BaseException] = []

    def end() -> None:
        try:
            con.commit()
        except lakelite.Error as error:
            found.append(error)

    with con.transaction():
        put(con, 1)
        for act in (con.commit, con.rollback):
            with pytest.raises(lakelite.ProgrammingError, match="inside a transaction"):
                act()
        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
    assert [type(error) for error in found] == [lakelite.ProgrammingError]
    con.commit()
    assert rows(con) == [0, 1]


def test_a_failure_behind_a_refused_commit_undoes_the_block(con: lakelite.Connection) -> None:
    with pytest.raises(Oops), con.transaction():
        put(con, 3)
        with contextlib.suppress(lakelite.ProgrammingError):
            con.commit()
        put(con, 4)
        raise Oops
    assert not con.in_transaction
    assert rows(con) == []


@pytest.mark.parametrize("statement", ["rollback to s", "release s"])
@pytest.mark.parametrize("fails", [False, True])
def test_an_inner_block_outlasts_the_savepoint_around_it(con: lakelite.Connection, statement: str, fails: bool) -> None:
    """What an exception undoes is the block's, and it is the user's exception that is raised."""
    with con.transaction():
        put(con, 1)
        con.execute("savepoint s")
        put(con, 2)
        with contextlib.suppress(Oops), con.transaction():
            put(con, 3)
            con.execute("savepoint inner_one")
            con.execute(statement)
            put(con, 4)
            if fails:
                raise Oops
        found = {a for (a,) in con.execute("from t").fetchall()}
        with pytest.raises(lakelite.ProgrammingError, match="does not exist"):
            con.execute("release inner_one")
    kept = {1, 2, 3, 4} if statement == "release s" else {1, 4}
    assert found == (kept - {3, 4} if fails else kept)
    assert set(rows(con)) == found


def test_the_beginning_of_a_block_has_no_name(con: lakelite.Connection) -> None:
    with con.transaction(), con.transaction():
        for sql in ('rollback to ""', "rollback to s", "release nosuch"):
            with pytest.raises(lakelite.ProgrammingError) as raised:
                con.execute(sql)
            assert "block" not in str(raised.value)


def test_blocks_that_end_in_the_wrong_order(con: lakelite.Connection) -> None:
    """As those that generators hold open can. An exception of the user's is not hidden."""
    for failure in (None, Oops()):
        outer, inner = con.transaction(), con.transaction()
        outer.__enter__()
        inner.__enter__()
        put(con, 1)
        outer.__exit__(None, None, None)
        if failure is None:
            with pytest.raises(lakelite.InterfaceError, match="ended before it"):
                inner.__exit__(None, None, None)
        else:
            assert inner.__exit__(type(failure), failure, None) is None
        assert not con.in_transaction
    assert rows(con) == [1, 1]
    con.commit()


def test_a_connection_that_is_closed_inside_a_block(con: lakelite.Connection, tmp_path: Path) -> None:
    with pytest.raises(lakelite.InterfaceError, match="closed"), con.transaction():
        put(con, 1)
        con.close()
    with pytest.raises(lakelite.InterfaceError, match="closed"), con.transaction():
        pass
    other = lakelite.connect(tmp_path / "lake")
    assert other.execute("from t").fetchall() == []
    other.commit()
    with pytest.raises(Oops), other.transaction():
        other.close()
        raise Oops
    with pytest.raises(lakelite.InterfaceError, match="closed"), lakelite.connect(tmp_path / "lake") as third:
        third.close()  # what the block did could not be committed


def test_a_conflict_at_the_end_of_a_block(con: lakelite.Connection) -> None:
    put(con, 1)
    con.commit()
    with pytest.raises(lakelite.TransactionConflict), con.transaction():
        shown = con.execute("select sum(a) from t").fetchone()
        con.execute("delete from t where a = ?", shown)
        with lakelite.connect(con._session.lake.paths.root) as other:
            other.execute("update t set a = 7")
    assert not con.in_transaction
    assert con.messages
    assert con.messages[0][0] is lakelite.TransactionConflict
    assert rows(con) == [7]


def test_a_block_is_entered_once(con: lakelite.Connection) -> None:
    block = con.transaction()
    with block, pytest.raises(lakelite.InterfaceError, match="entered once"), block:
        pass
    with pytest.raises(lakelite.InterfaceError, match="entered once"), block:
        pass
    with con.transaction():
        put(con, 1)
    assert rows(con) == [1]


def test_a_block_ends_in_its_own_thread(con: lakelite.Connection) -> None:
    found: list[BaseException] = []
    block = con.transaction()
    block.__enter__()
    put(con, 1)

    def end() -> None:
        try:
            block.__exit__(None, None, None)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert [type(error) for error in found] == [lakelite.InterfaceError]
    assert rows(con) == []
    block.__exit__(None, None, None)
    assert rows(con) == [1]


def test_a_block_that_is_not_entered_does_nothing(con: lakelite.Connection) -> None:
    con.transaction()
    assert not con.in_transaction


def test_blocks_of_threads_queue(con: lakelite.Connection) -> None:
    """Each is whole: all of its rows or none, however the threads come."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            barrier.wait()
            for n in range(5):
                with contextlib.suppress(Oops), con.transaction():
                    put(con, number * 100 + n * 10)
                    with contextlib.suppress(Oops), con.transaction():
                        put(con, number * 100 + n * 10 + 1)
                        if n % 2:
                            raise Oops
                    assert con.execute("select count(*) from t where a // 10 = ?", [number * 10 + n]).fetchone() == (2 - n % 2,)
                    if n == 4:
                        raise Oops
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert not con.in_transaction
    assert rows(con) == [number * 100 + k for number in range(4) for k in (0, 1, 10, 20, 21, 30)]


def test_threads_help_inside_a_block(con: lakelite.Connection) -> None:
    """Statements of other threads are part of the block that is open, and do not wait for its end."""
    with con.transaction():
        threads = [threading.Thread(target=put, args=(con, n)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert rows(con) == []
    assert rows(con) == [0, 1, 2, 3, 4]


SCRIPTS = st.recursive(
    st.integers(0, 9),
    lambda inner: st.tuples(st.booleans(), st.lists(inner, max_size=4)),
    max_leaves=12,
)


@hypothesis.given(st.lists(SCRIPTS, max_size=5), st.booleans())
@hypothesis.settings(max_examples=25)
def test_blocks_against_a_model(script: list[Any], autocommit: bool) -> None:
    """Any nesting of blocks, each of which may fail at its end; the model copies a list at each beginning."""

    def run(con: lakelite.Connection, items: list[Any], kept: list[int]) -> list[int]:
        for item in items:
            if isinstance(item, int):
                con.execute("insert into t values (?)", [item])
                kept = [*kept, item]
                continue
            fails, inside = item
            try:
                with con.transaction():
                    after = run(con, inside, kept)
                    if fails:
                        raise Oops
                kept = after
            except Oops:
                pass
            assert con.execute("from t order by a").fetchall() == [(a,) for a in sorted(kept)]
        return kept

    with lakelite.connect(autocommit=autocommit) as con:
        con.execute("create table t (a integer)")
        con.commit()
        kept = run(con, script, [])
        con.commit()
        assert con.execute("from t order by a").fetchall() == [(a,) for a in sorted(kept)]


# isolation and autocommit.


def test_isolation_can_be_set(con: lakelite.Connection) -> None:
    assert con.isolation == "write serializable"
    con.isolation = "WRITE_SERIALIZABLE"
    assert con.isolation == "write serializable"
    with pytest.raises(lakelite.ProgrammingError, match="no isolation level"):
        con.isolation = "chaos"
    with pytest.raises(lakelite.InterfaceError, match="is a str"):
        con.isolation = 5  # type: ignore[assignment]
    assert con.execute("show isolation_level").fetchall() == [("write serializable",)]


def test_autocommit_is_a_truth_value(con: lakelite.Connection) -> None:
    before = con.autocommit
    for wrong in (None, "yes", 2):
        with pytest.raises(lakelite.InterfaceError, match="True or False"):
            con.autocommit = wrong  # type: ignore[assignment]
    assert con.autocommit is before
