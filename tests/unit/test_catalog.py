"""The catalog's SQLite file: errors that never come alone, and what its queries cost (lakelite.catalog.store)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.catalog import opened
from lakelite.catalog.opened import open_catalog
from lakelite.catalog.queries import migrations, queries
from lakelite.catalog.store import Catalog, CommitFailed
from lakelite.errors import CannotOpen, DataError, InternalError, OperationalError
from lakelite.storage.locks import CommitLock

EACH_STATEMENT = ("head", "effects", "newest", "oldest_kept", "fragments", "fragments_born", "fragments_gone", "statistics", "vectors")
EACH_COMMIT = ("winners", "row_counts", "snapshot_of_transaction", "inline_rows", "end_fragment", "end_vector", "end_columns", "add_snapshot")
EACH_HEAD = ("schemas", "tables", "columns", "constraints", "views", "comments", "options", "partition_keys", "torn_tables")
GROWING = (
    "snapshots", "effects", "fragments", "fragment_lives", "fragment_statistics", "deletion_vectors", "inline_rows", "columns", "tables", "table_lives",
    "table_names", "schema_lives", "constraints", "views", "comments", "table_options", "partition_keys",
)  # fmt: skip
COPIES = tuple(name for name in queries() if name.startswith("copy_"))


class Failing:
    """A sqlite3 connection that refuses some statements."""

    code, words = sqlite3.SQLITE_IOERR, "disk I/O error"

    def __init__(self, connection: sqlite3.Connection, *refused: str) -> None:
        self._connection = connection
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql in self._refused:
            error = sqlite3.OperationalError(self.words)
            error.sqlite_errorcode = self.code
            raise error
        return self._connection.execute(sql, *parameters)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    made = open_catalog(tmp_path / "catalog.sqlite", create=True)
    yield made
    made.close()


def refuse(catalog: Catalog, *refused: str) -> Failing:
    catalog._sqlite = failing = Failing(catalog._sqlite, *refused)  # type: ignore[assignment]
    return failing


def check_given_up(catalog: Catalog, failing: Failing) -> None:
    """Another connection can write at once, and sees nothing of what was not committed; this one is closed, and another takes its place."""
    other = open_catalog(catalog.path, create=False)
    with other.transaction("trying") as writer:
        assert writer.reserve("row", 1) == 1
    other.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        failing.execute("SELECT 1")
    with catalog.transaction("trying") as writer:
        assert writer.reserve("row", 1) == 2


def test_a_number_beyond_64_bits(catalog: Catalog) -> None:
    with pytest.raises(DataError, match="too large"):
        catalog.rows("history", base=0, table_id=None, limit=2**63)


def test_the_error_of_a_rollback_does_not_hide_the_one_before(catalog: Catalog) -> None:
    failing = refuse(catalog, "ROLLBACK")
    with pytest.raises(InternalError, match="CHECK") as caught, catalog.transaction("trying") as writer:
        writer.run_many("reserve", [{"name": "row", "count": 100}, {"name": "row", "count": -1000}])
    assert caught.value.__cause__.__notes__ == ["ROLLBACK failed as well: disk I/O error"]
    check_given_up(catalog, failing)


def test_the_error_of_a_rollback_does_not_hide_that_commit_failed(catalog: Catalog) -> None:
    failing = refuse(catalog, "COMMIT", "ROLLBACK")
    with pytest.raises(CommitFailed) as caught, catalog.publication("committing") as writer:
        writer.reserve("row", 100)
    assert isinstance(caught.value.args[0], OperationalError)
    check_given_up(catalog, failing)


def test_a_page_that_is_damaged_is_found_before_the_commit_lock_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lake"
    con = lakelite.connect(path, autocommit=True)
    con.execute("create table t as select range as a from range(500)")
    con.close()
    catalog = path / "catalog.sqlite"
    content = catalog.read_bytes()
    monkeypatch.setattr(CommitLock, "acquire", lambda *_: pytest.fail("the commit lock was taken"))
    with sqlite3.connect(catalog) as sqlite:
        page = sqlite.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'fragment_lives_born'").fetchone()[0]
    sqlite.close()
    damaged = bytearray(content)
    damaged[(page - 1) * 4096 : page * 4096] = bytes(4096)
    catalog.write_bytes(damaged)
    with pytest.raises(CannotOpen, match="damaged"):
        lakelite.connect(path)
    monkeypatch.undo()
    monkeypatch.setattr(opened, "CHECKED_BYTES", len(content) - 1)  # a large one is not read as a whole
    lakelite.connect(path).close()


def plan(query: str) -> list[str]:
    with sqlite3.connect(":memory:") as sqlite:
        for script in migrations():
            sqlite.executescript(script)
        text = queries()[query]
        rows = sqlite.execute(f"EXPLAIN QUERY PLAN {text}", dict.fromkeys(re.findall(r":(\w+)", text), 1)).fetchall()
    sqlite.close()
    return [row[3] for row in rows]


@pytest.mark.parametrize("query", [*EACH_STATEMENT, *EACH_COMMIT, *EACH_HEAD, *COPIES, "snapshot_at_time", "branch_states"])
def test_no_growing_table_is_read_as_a_whole(query: str) -> None:
    steps = plan(query)
    assert not [s for s in steps if re.match(rf"SCAN ({'|'.join(GROWING)}|[a-z])\b", s)], steps
    if query.endswith("_time"):
        assert any("snapshots_by_time (committed_at_us<?)" in s for s in steps), steps


@pytest.mark.parametrize("query", ["head", "newest", "snapshot_at_time"])
def test_the_ends_of_a_long_history_are_found_at_once(query: str, catalog: Catalog) -> None:
    sqlite = catalog._sqlite
    sqlite.execute("BEGIN")
    sqlite.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO snapshots SELECT i, i - 1, NULL, 1, 4000000000000000 + i, NULL, NULL, 'x', '[]', 'x', i - 1, 1, 't' || i, 0 FROM n"
    )
    sqlite.execute("COMMIT")
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    sqlite.set_progress_handler(count, 100)
    given = {"head": {"branch": 1}, "newest": {}, "snapshot_at_time": {"time_us": 4_000_000_000_000_005, "base": 20_000}}
    found = catalog.row(query, **given[query])
    sqlite.set_progress_handler(None, 0)
    assert found == {"head": (20_000,), "newest": (20_000,), "snapshot_at_time": (5,)}[query]
    assert steps < 5, "hundreds of SQLite's instructions"


def test_every_named_query_can_be_prepared() -> None:
    """Against a migrated catalog, with all of its parameters bound to NULL."""
    connection = sqlite3.connect(":memory:")
    for script in migrations():
        connection.executescript(script)
    for name, sql in queries().items():
        assert connection.execute(f"EXPLAIN {sql}", dict.fromkeys(re.findall(r":(\w+)", sql))).fetchall(), name
    connection.close()


def test_the_head_of_a_branch_is_one_read(catalog: Catalog) -> None:
    """Between two, the branch might be dropped, and its snapshots removed."""
    read: list[str] = []
    catalog._sqlite.set_trace_callback(read.append)
    assert catalog.head() == 0
    with pytest.raises(OperationalError, match="was dropped"):
        catalog.head(7)
    assert len(read) == 2


class Lost:
    """A connection whose locks are lost: SQLite says so of every statement from then on."""

    in_transaction = False
    closed = 0

    def execute(self, statement: str, parameters: object = None) -> None:
        error = sqlite3.OperationalError("locking protocol")
        error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
        raise error

    def close(self) -> None:
        self.closed += 1


def test_a_connection_that_lost_its_locks_is_replaced(tmp_path: Path) -> None:
    """Seen where one fcntl that frees a lock failed: nothing of that session worked any more."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        catalog = con._session.lake.catalog
        for statement in ("INSERT INTO t VALUES (1)", "SHOW TABLES", "CREATE TABLE u (a INTEGER)"):
            catalog._sqlite.close()
            catalog._sqlite = lost = Lost()
            con.execute(statement)
            assert lost.closed == 1
        assert con.execute("SELECT * FROM t").fetchall() == [(1,)]
        assert con.execute("CHECK LAKE").fetchall() == []


def test_one_that_lost_its_locks_at_commit_is_closed_before_another_looks_what_landed(catalog: Catalog) -> None:
    """Where one fcntl failed that frees a lock at COMMIT, no other connection of the process could write, and each answer was lost."""
    failing = refuse(catalog, "COMMIT")
    failing.code, failing.words = sqlite3.SQLITE_PROTOCOL, "locking protocol"
    with pytest.raises(CommitFailed), catalog.publication("committing") as writer:
        writer.reserve("row", 100)
    check_given_up(catalog, failing)


def test_an_error_of_another_that_is_not_had_is_told_as_it_is(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was given up is closed, and asked nothing more."""
    failing = refuse(catalog, "COMMIT")
    failing.code = sqlite3.SQLITE_PROTOCOL

    def again() -> sqlite3.Connection:
        error = sqlite3.OperationalError("locking protocol")
        error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
        raise error

    monkeypatch.setattr(catalog, "_again", again)
    with pytest.raises(CommitFailed), catalog.publication("committing") as writer:
        writer.reserve("row", 100)
    with pytest.raises(OperationalError, match="locks of the catalog"):
        catalog.head()
    with pytest.raises(OperationalError, match="locks of the catalog") as caught, catalog.transaction("trying"):
        pass
    assert not getattr(caught.value.__cause__, "__notes__", [])
    catalog.close()
    with pytest.raises(InternalError, match="closed"):
        catalog.head()


@pytest.mark.parametrize("statement", ["INSERT INTO t VALUES (1)", "SHOW TABLES"])
def test_where_no_other_can_be_had_the_next_statement_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        catalog = con._session.lake.catalog
        another, tries = catalog._again, []

        def again() -> sqlite3.Connection:
            tries.append(1)
            if len(tries) < 3:
                error = sqlite3.OperationalError("unable to open database file")
                error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
                raise error
            return another()

        monkeypatch.setattr(catalog, "_again", again)
        catalog._sqlite.close()
        catalog._sqlite = Lost()
        for _ in range(2):
            with pytest.raises(OperationalError, match="the catalog cannot be opened"):
                con.execute(statement)
        con.execute(statement)
        con.execute("INSERT INTO t VALUES (2)")
        assert (2,) in con.execute("FROM t").fetchall()
        assert con.execute("CHECK LAKE").fetchall() == []


def test_it_is_not_replaced_by_one_to_a_new_file(tmp_path: Path) -> None:
    """Where the catalog was removed meanwhile, nothing is made in its place."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        catalog = con._session.lake.catalog
        catalog._sqlite.close()
        catalog._sqlite = Lost()
        catalog.path.unlink()
        with pytest.raises(OperationalError, match="was removed or replaced"):
            catalog.rows("settings")
        assert not catalog.path.exists()
