"""Errors never show the values of parameters, whatever way they took into the message."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

import lakelite
from lakelite.errors import DataError
from lakelite.mapping.withheld import withhold

SECRET = "hunter2secret"
NUMBER = 7654321
WAYS: list[tuple[str, Any]] = [
    *((f"select ?::{kind}", (SECRET,)) for kind in ("integer", "date", "timestamp", "timestamptz", "time", "uuid", "interval", "boolean", "json")),
    ("select ?::json", ('{"a": ' + SECRET,)), ("select ?::json", ('{"a": ' + SECRET * 99,)), ("select ?::integer", (SECRET * 30,)),
    ("select ?::integer", (SECRET + "'" + SECRET,)), ("select ?::integer", (f"{SECRET}\n{SECRET}",)), ("select ?::blob", ("\\x" + SECRET,)),
    ("select ?::integer[]", (f"[{SECRET}]",)), ("select ?::struct(a integer)", (f"{{'a': {SECRET}}}",)), ("select cast(? as enum('a'))", (SECRET,)),
    ("select $a::integer", {"a": SECRET}), ("select :a::integer", {"a": SECRET}), ("select $1::integer", [SECRET]),
    ("select (?)[1]::integer", ([SECRET],)), ("select (?).a::integer", ({"a": SECRET},)), ("select ?::tinyint", (NUMBER,)),
    ("select ?::decimal(4, 1)", (Decimal("7654321.5"),)), ("select ?::decimal(4, 1)", (7654321.5,)), ("select make_date(?, 1, 1)", (NUMBER,)),
    ("select ?::varchar::integer", (datetime.date(1971, 2, 3),)), ("select ?::varchar::integer", (uuid.UUID(int=7654321),)),
    ("select strptime(?, '%Y')", (SECRET,)), ("select strptime('abc', ?)", ("%" + SECRET,)), ("select regexp_matches('a', ?)", ("(" + SECRET,)),
    ("select regexp_matches('a', ?)", (f"{SECRET}[{SECRET}",)), ("select json_extract('{}', ?)", ("$[" + SECRET,)), ("select error(?)", (SECRET,)),
    ("select date_trunc(?, current_date)", (SECRET,)), ("select 1 limit ?", (SECRET,)), ("select case when ? then 1 end", (SECRET,)),
    ("insert into t (k, v) values (1, ?)", (SECRET,)), ("insert into t (k, v) select 9, ?", (SECRET,)), ("update t set v = ?", (SECRET,)),
    ("delete from t where k = ?::integer", (SECRET,)), ("insert into t (k) values (?), (?)", (NUMBER, NUMBER)),
    ("merge into t using (select ? as a) s on t.k = s.a::integer when matched then delete", (SECRET,)),
    ("set statement_timeout_ms = ?", (SECRET,)), ("set compression = ?", (SECRET,)), ("set timezone = ?", (SECRET,)), ("set threads = ?", (SECRET,)),
    ("set isolation_level = ?", (SECRET,)), ("set author = ?", (SECRET * 99,)), ("select * from t at (timestamp => ?)", (SECRET,)),
    ("select * from query_table(?)", (SECRET,)), ("select * from query(?)", ("select from " + SECRET,)), ("import database ?", (SECRET,)),
    *((f"select * from {reader}(?)", (f"{SECRET}.x",)) for reader in ("read_csv", "read_parquet", "read_json", "read_text")),
    ("copy t from ?", (f"{SECRET}/no",)), ("copy (select 1) to ?", (f"{SECRET}/no",)),
]  # fmt: skip


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    lake.execute("create table t (k integer primary key, v integer check (v > 0), w varchar); insert into t values (1, 1, 'one')")
    return lake


def _shows(error: lakelite.Error) -> bool:
    said = f"{error} {error.args} {error.message} {error.hint}"
    return any(piece in said for piece in (SECRET[:9], SECRET[-9:], "7654321", "1971", "74cbb1"))


def _says(con: lakelite.Connection, sql: str, values: Any) -> lakelite.Error | None:
    try:
        con.execute(sql, values).fetchall()
    except lakelite.Error as error:
        return error
    return None


def test_no_way_into_a_message(con: lakelite.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = [(sql, _says(con, sql, values)) for sql, values in WAYS]
    assert [(sql, str(error)) for sql, error in said if error is not None and _shows(error)] == []
    assert {sql for sql, error in said if error is None} <= {"select * from read_text(?)"}


@pytest.mark.parametrize("sql", ["insert into t (k, v) values (?, ?)", "update t set k = ?, v = ?::integer"])
def test_executemany_withholds_and_says_the_set(con: lakelite.Connection, sql: str) -> None:
    con.execute("insert into t values (2, 2, 'two')")
    sets = [(n + 100, n) for n in range(1, 41)]
    where = 1 if "update" in sql else 7
    sets[where - 1] = (1, SECRET)  # type: ignore[call-overload]
    with pytest.raises(lakelite.DataError, match=rf"^could not convert the value of \?2 to INTEGER.* \(parameter set {where} of 40\)") as caught:
        con.executemany(sql, sets)
    assert not _shows(caught.value)
    assert con.execute("select count(*) from t").fetchone() == (2,)


def test_executemany_says_the_set_with_which_a_key_is_there_twice(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.IntegrityError, match=r"^Duplicate key.*\(parameter set 5 of 6\)"):
        con.executemany("insert into t (k) values (?)", [(n,) for n in (10, 11, 12, 13, 11, 15)])


def test_executemany_says_which_set_has_not_enough_values_and_explains_a_colon(con: lakelite.Connection) -> None:
    with pytest.raises(lakelite.ProgrammingError, match=r"^the statement has 1 parameter.*\(parameter set 2 of 3\)"):
        con.executemany("insert into t (k) values (?)", [(10,), (), (11,)])
    with pytest.raises(lakelite.ProgrammingError) as caught:
        con.executemany("insert into t (k) values (:k)", [{"name": 10}, {"name": 11}])
    assert caught.value.hint == "the values have no k; their names are: name"


def test_while_rows_are_read_and_in_a_stream(con: lakelite.Connection) -> None:
    sql = "select case when range = 300000 then ? else '1' end::integer from range(400000)"
    with pytest.raises(lakelite.DataError, match=r"the value of \?1 to INTEGER") as caught:
        con.execute(sql, (SECRET,)).fetchall()
    with pytest.raises(lakelite.DataError, match=r"the value of \?1 to INTEGER") as streamed:
        con.execute(sql, (SECRET,)).fetch_record_batch(1000).read_all()
    assert not _shows(caught.value)
    assert not _shows(streamed.value)


def test_at_commit_and_in_what_the_lake_keeps(con: lakelite.Connection, tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        con.execute("begin")
        con.execute("update t set v = case when w = 'one' then 2 else ?::integer end", (SECRET,))
        other.execute("insert into t values (?, 3, ?)", (NUMBER, "x"))
        with pytest.raises(lakelite.DataError, match=r"the value of \?1 to INTEGER") as caught:
            con.commit()
        assert not _shows(caught.value)
        con.execute("begin isolation level serializable")
        assert con.execute("select count(*) from t where w = ?", (SECRET,)).fetchone() == (0,)
        con.execute("delete from t where w = ?", (SECRET,))
        other.execute("update t set w = ? where k = 1", (SECRET,))
        with pytest.raises(lakelite.TransactionConflict) as conflict:
            con.commit()
        assert not _shows(conflict.value)
        con.execute("begin; delete from t where k = 1")
        other.execute("delete from t where k = ? or w = ?", (1, SECRET))
        con.execute("insert into t values (5, 5, 'five')")
        con.commit()
    assert con.last_commit is not None
    kept = con.execute("select * from lake.snapshots").fetchall() + con.execute("select * from lake.resolutions").fetchall()
    assert "?" in str(kept)
    assert SECRET not in str(kept)
    assert str(NUMBER) not in str(kept)


PLAIN = "could not convert 'abc' to INTEGER: table \"t\" has 12 columns"


@pytest.mark.parametrize("value", ["c", "to", "has", "table", "columns", 1, 12, "", None, True, [], "abc", "t", "INTEGER"])
def test_short_values_and_words_of_the_statement_leave_a_message_as_it_is(value: object) -> None:
    error = DataError(PLAIN, hint="12")
    withhold(error, "select 'abc'::INTEGER, columns from t", (value,))
    assert (error.message, error.hint) == (PLAIN, "12")


@given(some.text(min_size=1), some.integers(0, 3))
@example("\n", 0)
@example("a\nb", 1)
def test_a_quoted_value_is_never_left(value: str, around: int) -> None:
    error = DataError(f"{'no ' * around}'{value}'")
    withhold(error, "", {"name": value})
    assert value == "'" or f"'{value}'" not in error.message or value in "$name"


def test_words_of_our_own_stay() -> None:
    """Also where a value happens to hold them."""
    error = lakelite.OperationalError("interrupted")
    error.__cause__ = duckdb.InterruptException("INTERRUPT Error: Interrupted!")
    withhold(error, "select ?, ?", ("interrupted", "it was interrupted"))
    assert error.message == "interrupted"
