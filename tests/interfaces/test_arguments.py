"""What `connect` refuses, numbers that are given as parameters, and a signal that interrupts."""

from __future__ import annotations

import os
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.model import ISOLATION_LEVELS, level_of
from lakelite.timeouts import Watch


@pytest.mark.parametrize("name", ["autocommit", "read_only", "create", "preload"])
@pytest.mark.parametrize("value", ["no", "", None, 2, [], "False"])
def test_a_switch_is_true_or_false(tmp_path: Path, name: str, value: object) -> None:
    switches: dict[str, Any] = {name: value}
    with pytest.raises(lakelite.InterfaceError, match=f"^{name} is True or False\n"):
        lakelite.connect(tmp_path / "lake", **switches)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_path_is_no_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lakelite.InterfaceError, match="the path of the lake is empty"):
        lakelite.connect("")
    assert list(tmp_path.iterdir()) == []
    lakelite.connect(".").close()


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("create table t (a integer); insert into t values (1); insert into t values (2)")
    return lake


def test_the_limit_of_a_history_is_a_parameter(con: lakelite.Connection) -> None:
    for sql in ("describe history t limit {}", "describe history limit {}"):
        whole = con.execute(sql.format(9)).fetchall()
        for parameter, given in (("?", lambda n: (n,)), ("$1", lambda n: [n]), ("$n", lambda n: {"n": n}), (":n", lambda n: {"n": n})):
            assert con.execute(sql.format(parameter), given(2)).fetchall() == whole[:2]
        assert con.execute(sql.format("?"), (0,)).fetchall() == []


@pytest.mark.parametrize("value", [-1, 1.5, "2", None, True, 10**18])
def test_a_limit_is_a_whole_number(con: lakelite.Connection, value: object) -> None:
    with pytest.raises(lakelite.DataError, match="the LIMIT of DESCRIBE HISTORY is a whole number, 0 or more"):
        con.execute("describe history t limit ?", (value,))


@pytest.mark.parametrize("value", [0, 1.5, 10, Decimal("0.25")])
@pytest.mark.parametrize("sql", ["vacuum retain {} hours dry run", "vacuum t retain {} hours dry run"])
def test_the_hours_of_a_vacuum_are_a_parameter(con: lakelite.Connection, sql: str, value: object) -> None:
    expected = con.execute(sql.format(value)).fetchall()
    assert con.execute(sql.format("?"), (value,)).fetchall() == expected
    assert con.execute(sql.format(":hours"), {"hours": value}).fetchall() == expected


@pytest.mark.parametrize("value", [-1, "2", None, True, float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), 10**9, []])
def test_hours_are_a_number(con: lakelite.Connection, value: object) -> None:
    with pytest.raises(lakelite.DataError, match="RETAIN takes a number of hours from 0 to"):
        con.execute("vacuum retain ? hours", (value,))
    with pytest.raises(lakelite.ProgrammingError, match="syntax error"):
        con.execute("vacuum retain ? days", (value,))


@pytest.mark.parametrize("name", ["write serializable", "WRITE_SERIALIZABLE", " Write-Serializable ", "write   serializable"])
def test_one_rule_for_the_names_of_isolation_levels(tmp_path: Path, name: str) -> None:
    assert level_of(name) == "write serializable"
    with lakelite.connect(tmp_path / "lake", isolation="snapshot") as con:
        con.isolation = name
        assert con.isolation == "write serializable"
    assert [level_of(level) for level in ISOLATION_LEVELS] == list(ISOLATION_LEVELS)
    assert level_of("chaos") is None


def test_a_signal_may_interrupt_where_the_watch_is_at_work() -> None:
    watch, stopped = Watch(), []
    before = signal.signal(signal.SIGUSR1, lambda *_: watch.interrupt(lambda: stopped.append(True)))
    try:
        with watch._lock:
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert stopped
