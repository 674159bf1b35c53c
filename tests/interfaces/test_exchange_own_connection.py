"""Rows that come from code which uses the very connection that reads them: each would wait for the other, so that is refused."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

import lakelite

SCHEMA = pa.schema([("i", pa.int64())])
WORDS = r"(?s)come from code that uses its own connection.*Hint: .*a connection of its own"


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("CREATE TABLE t (i BIGINT); CREATE TABLE u (i BIGINT); INSERT INTO u VALUES (1), (2)")
    return lake


Use = Callable[[], Any]


def batches(use: Use, number: int = 3) -> Iterator[pa.RecordBatch]:
    for i in range(number):
        use()
        yield pa.record_batch([pa.array([i] * 10)], schema=SCHEMA)


def reader(use: Use) -> Any:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches(use))


class Stream:
    """An Arrow stream that asks when it is opened."""

    def __init__(self, use: Use) -> None:
        self.use = use

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self.use()
        return pa.table({"i": [1]}).__arrow_c_stream__(requested_schema)


class StreamOfReader(Stream):
    """An Arrow stream whose rows ask when they are read."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return reader(self.use).__arrow_c_stream__(requested_schema)


def dataset(use: Use) -> Any:
    return pa.dataset.Scanner.from_batches(batches(use), schema=SCHEMA)


def lazy(use: Use) -> Any:
    polars = pytest.importorskip("polars")

    def asks(frame: Any) -> Any:
        use()
        return frame

    return polars.LazyFrame({"i": [1, 2]}).map_batches(asks, schema={"i": polars.Int64})


SOURCES: dict[str, Callable[[Use], Any]] = {"reader": reader, "stream": StreamOfReader, "scanner": dataset, "LazyFrame": lazy}
USES: dict[str, Callable[[lakelite.Connection], Any]] = {
    "query": lambda con: con.execute("SELECT max(i) FROM u").fetchall(),
    "change": lambda con: con.execute("INSERT INTO u VALUES (3)"),
    "commit": lambda con: con.commit(),
    "append": lambda con: con.append("u", pa.table({"i": [3]})),
    "duckdb": lambda con: con.duckdb(),
    "close": lambda con: con.close(),
}
STATEMENTS = {
    "append": lambda con, source: con.append("t", source),
    "insert": lambda con, source: con.execute("INSERT INTO t FROM source"),
    "insert that may run again": lambda con, source: con.execute("INSERT INTO t SELECT i FROM source WHERE i NOT IN (FROM u)"),
    "query": lambda con, source: con.execute("SELECT sum(i) FROM source").fetchall(),
    "delete": lambda con, source: con.execute("DELETE FROM u WHERE i IN (FROM source)"),
}


def ends(act: Callable[[], Any], seconds: float = 20) -> BaseException | None:
    """What `act` raises, in a thread that must end in time."""
    raised: list[BaseException | None] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "each waits for the other"
    return raised[0]


def refused(act: Callable[[], Any]) -> None:
    error = ends(act)
    assert isinstance(error, lakelite.InterfaceError), repr(error)
    with pytest.raises(lakelite.InterfaceError, match=WORDS):
        raise error


def usable(con: lakelite.Connection) -> None:
    assert con.execute("SELECT i FROM t UNION ALL SELECT i FROM u ORDER BY i").fetchall() == [(1,), (2,)]
    con.append("t", reader(lambda: None))
    assert con.execute("SELECT count(*) FROM t").fetchone() == (30,)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("source", SOURCES)
def test_rows_that_ask_the_connection_that_reads_them(con: lakelite.Connection, source: str, statement: str) -> None:
    for threads in (1, 2):  # of DuckDB's: one is the thread that runs the statement
        con.execute(f"SET threads = {threads}")
        rows = SOURCES[source](lambda: USES["query"](con))
        refused(partial(STATEMENTS[statement], con, rows))
    usable(con)


@pytest.mark.parametrize("use", USES)
def test_whatever_they_ask(con: lakelite.Connection, use: str) -> None:
    refused(lambda: con.append("t", reader(lambda: USES[use](con))))
    usable(con)


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("use", [use for use in USES if use != "append"])
def test_a_variable_that_asks_when_it_is_opened(con: lakelite.Connection, use: str, explicit: bool) -> None:
    """What it changed would be lost: the statement goes on from what there was before."""
    if explicit:
        con.execute("BEGIN")
    refused(lambda: STATEMENTS["insert"](con, Stream(lambda: USES[use](con))))
    assert con.in_transaction == explicit
    con.rollback()
    usable(con)


def test_what_is_appended_is_opened_before_the_statement_begins(con: lakelite.Connection) -> None:
    con.append("t", Stream(lambda: con.execute("INSERT INTO u VALUES (9)")))
    assert con.execute("SELECT i FROM t UNION ALL SELECT i FROM u ORDER BY i").fetchall() == [(1,), (1,), (2,), (9,)]


def test_code_that_goes_on_without_an_answer(con: lakelite.Connection) -> None:
    told: list[str] = []

    def ask() -> None:
        try:
            con.execute("FROM u")
        except lakelite.InterfaceError as error:
            told.append(str(error))

    assert ends(lambda: con.append("t", reader(ask))) is None
    assert len(told) == 3
    assert con.execute("SELECT count(*) FROM t").fetchone() == (30,)


def test_another_connection_and_the_rows_of_a_result_may_be_asked(con: lakelite.Connection, tmp_path: Any) -> None:
    with lakelite.connect(con._session.lake.paths.root) as other:
        con.append("t", reader(lambda: other.execute("FROM u").fetchall()))
    begun = con.execute("SELECT range FROM range(100000)")
    con.append("t", reader(begun.fetchone))
    result = con.execute("SELECT i + 100 AS i FROM u")  # noqa: F841  (SQL names it)
    assert con.execute("INSERT INTO t FROM result").rowcount == 2
    con.append("t", con.execute("SELECT i + 200 AS i FROM u"))
    assert con.execute("SELECT count(*) FROM t").fetchone() == (64,)


def test_other_threads_queue(con: lakelite.Connection) -> None:
    """They wait for nobody who waits for them."""
    begun, found = threading.Event(), []

    def work() -> None:
        begun.wait()
        found.append(con.execute("SELECT count(*) FROM t").fetchall())

    thread = threading.Thread(target=work)
    thread.start()

    def slow() -> None:
        begun.set()
        thread.join(0.05)

    con.append("t", reader(slow))
    thread.join()
    assert found == [[(30,)]]


class Proxy:
    """As a proxy of something that is not there behaves: whatever it is asked, it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("working outside of its context")


def test_a_proxy_of_nothing_is_no_table(lake: lakelite.Connection) -> None:
    proxy = Proxy()
    with pytest.raises(lakelite.ProgrammingError, match=r"the variable proxy is a Proxy of \w+, and no table"):
        lake.execute("FROM proxy")
    with pytest.raises(lakelite.ProgrammingError, match="is not a table"):
        lake.append("t", proxy)
    assert type(proxy) is Proxy
    assert sys.exc_info() == (None, None, None)
