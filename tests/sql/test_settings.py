"""Settings of a lake and of a connection: bounds, transactions, catalogs that were tampered with; and closing after an error."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.bounds import _BOUNDS, _CHOICES
from lakelite.settings import _ABOUT


def value(con: Any, name: str) -> str:
    return str(con.execute(f"SHOW {name}").fetchone()[0])


def stored(path: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(path / "catalog.sqlite") as sqlite:
        found = sqlite.execute("SELECT name, value FROM settings").fetchall()
    sqlite.close()
    return found


def test_every_setting_has_bounds_that_it_works_with(lake: lakelite.Connection) -> None:
    assert _ABOUT.keys() == _BOUNDS.keys() | _CHOICES.keys()
    for name, choices in _CHOICES.items():
        for choice in (*choices, choices[0].upper()):
            lake.execute(f"SET {name} = '{choice}'")
            assert value(lake, name) == choice.lower()
        with pytest.raises(lakelite.DataError, match=choices[0]):
            lake.execute(f"SET {name} = '{'9' * 5000}'")
    for end in (0, 1):
        for name, bounds in _BOUNDS.items():
            lake.execute(f"SET {name} = {bounds[end]}")
            assert value(lake, name) == str(bounds[end])
            for wrong in (bounds[0] - 1, bounds[1] + 1, -(2**70), "9" * 5000):
                with pytest.raises(lakelite.DataError) as caught:
                    lake.execute(f"SET {name} = {wrong}")
                assert len(caught.value.message) < 200
            assert value(lake, name) == str(bounds[end])
        lake.execute("CREATE OR REPLACE TABLE t AS SELECT range AS a FROM range(10)")
        lake.execute("INSERT INTO t VALUES (10)")
        lake.execute("DELETE FROM t WHERE a < 3")
        lake.execute("VACUUM")
        assert lake.execute("SELECT count(*) FROM t").fetchall() == [(8,)]


def test_the_longest_retention_and_limit(lake: lakelite.Connection) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert lake.execute("VACUUM RETAIN 8760000 HOURS DRY RUN").fetchone()[1] == 0
    assert lake.execute("VACUUM t RETAIN 1_000.5 HOURS").fetchone()[1] == 0
    assert len(lake.execute(f"DESCRIBE HISTORY LIMIT {'9' * 18}").fetchall()) == 2
    for sql in (f"DESCRIBE HISTORY t LIMIT {'9' * 5000}", "VACUUM RETAIN 8760001 HOURS", f"VACUUM RETAIN {'9' * 5000} HOURS"):
        with pytest.raises(lakelite.ProgrammingError, match="at most"):
            lake.execute(sql)


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN READ ONLY"])
def test_set_global_is_refused_in_a_transaction(lake: lakelite.Connection, tmp_path: Path, begin: str) -> None:
    lake.execute(begin)
    with pytest.raises(lakelite.ProgrammingError, match="SET GLOBAL cannot run inside a transaction"):
        lake.execute("SET GLOBAL inline_rows = 7")
    assert value(lake, "inline_rows") == "1000"
    lake.execute("ROLLBACK")
    assert stored(tmp_path / "lake") == []
    lake.execute("SET GLOBAL inline_rows = 7")
    assert stored(tmp_path / "lake") == [("inline_rows", "7")]


@pytest.mark.parametrize("tampered", ["abc", "", "-1", "1e3", "9" * 30])
def test_a_lake_whose_settings_were_tampered_with_is_not_opened(lake: lakelite.Connection, tmp_path: Path, tampered: str) -> None:
    path = tmp_path / "lake"
    lake.execute("SET GLOBAL inline_rows = 7")
    lake.close()
    with sqlite3.connect(path / "catalog.sqlite") as sqlite:
        sqlite.execute("UPDATE settings SET value = ?", (tampered,))
        sqlite.execute("INSERT INTO settings VALUES ('of_a_newer_version', 'x'), ('statement_bytes', '5')")
        sqlite.commit()
        with pytest.raises(lakelite.CannotOpen, match="inline_rows"):
            lakelite.connect(path)
        sqlite.execute("UPDATE settings SET value = '8' WHERE name = 'inline_rows'")
    sqlite.close()
    with lakelite.connect(path) as con:
        assert value(con, "inline_rows") == "8"
    con.close()


def test_close_frees_everything_though_the_open_transaction_cannot_be_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lake"
    con = lakelite.connect(path)
    con.execute("CREATE TABLE t AS SELECT 1 AS a")
    session = con._session
    assert session._tx is not None
    result = con.execute("SELECT * FROM t")  # holds a cursor and a pin

    def refuse() -> None:
        raise lakelite.OperationalError("the file cannot be removed")

    monkeypatch.setattr(session._tx, "discard", refuse)
    monkeypatch.setattr(session.lake.lease, "close", _after(session.lake.lease.close))
    with pytest.raises(lakelite.OperationalError, match="the file cannot be removed") as caught:
        con.close()
    assert caught.value.__notes__ == ["after it: 0"]
    con.close()
    assert os.listdir(path / "leases") == []
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        session.lake.catalog._sqlite.execute("SELECT 1")
    result.close()


def _after(act: Any) -> Any:
    def close() -> None:
        act()
        raise KeyError(0)

    return close


def test_a_set_global_that_fails_changes_nothing(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con, lakelite.connect(tmp_path / "lake") as other:
        con.execute("SET lock_timeout_ms = 0; SET inline_rows = 7")
        with other._session.lake.locked():
            for sql in ("SET GLOBAL inline_rows = 5", "SET GLOBAL lock_timeout_ms = 100"):
                with pytest.raises(lakelite.OperationalError, match="commit lock"):
                    con.execute(sql)
        assert (value(con, "inline_rows"), value(con, "lock_timeout_ms")) == ("7", "0")
        con.execute("SET lock_timeout_ms = 1000; SET GLOBAL inline_rows = 5")
        assert value(con, "inline_rows") == "5"
    assert stored(tmp_path / "lake") == [("inline_rows", "5")]
    with lakelite.connect(tmp_path / "lake", autocommit=True, read_only=True) as con:
        with pytest.raises(lakelite.OperationalError, match=r"(?s)this connection is read-only.*without read_only"):
            con.execute("SET GLOBAL inline_rows = 6")
        assert value(con, "inline_rows") == "5"


@pytest.mark.parametrize("name", ["isolation_level", "inline_rows", "upkeep"])
def test_a_setting_is_reset_by_reset_and_not_by_null(lake: lakelite.Connection, name: str) -> None:
    before = value(lake, name)
    with pytest.raises(lakelite.DataError, match=f"(?s){name} cannot be NULL.*RESET {name}"):
        lake.execute(f"SET {name} = NULL")
    assert value(lake, name) == before


def test_what_is_read_only_is_named(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        for sql in ("INSERT INTO t VALUES (1)", "DELETE FROM t", "DROP TABLE t"):
            with pytest.raises(lakelite.OperationalError, match="this transaction is read-only: it began with READ ONLY") as caught:
                con.execute(f"BEGIN READ ONLY; {sql}")
            assert "read_only" not in str(caught.value)
            assert caught.value.sqlstate == "25006"
            con.execute("ROLLBACK")
        con.execute("INSERT INTO t VALUES (1)")
    with lakelite.connect(tmp_path / "lake", read_only=True) as con, pytest.raises(lakelite.OperationalError, match="this connection is read-only"):
        con.execute("INSERT INTO t VALUES (2)")
