"""table_changes as a table function: where it may stand, what its arguments may be, and what it refuses. What it gives: property tests."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from comparing import answer
from racing import flush, meeting

import lakelite

CALL = "table_changes('t', 1, 5)"
ROWS = {
    (2, 1, "insert", 1, "a"),
    (2, 2, "insert", 2, "b"),
    (3, 1, "update_preimage", 1, "a"),
    (3, 1, "update_postimage", 1, "c"),
    (5, 2, "delete", 2, "b"),
}


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER, v VARCHAR)")  # 1
        con.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")  # 2
        con.execute("UPDATE t SET v = 'c' WHERE k = 1")  # 3
        con.execute("CREATE TABLE u AS SELECT 2 AS k")  # 4
        con.execute("DELETE FROM t WHERE k = 2")  # 5
        yield con


@pytest.fixture
def other(tmp_path: Path, con: Any) -> Iterator[Any]:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        yield other


def test_its_columns_and_rows(con: Any) -> None:
    cursor = con.execute(f"FROM {CALL}")
    assert [(d[0], str(d[1])) for d in cursor.description] == [
        ("snapshot_id", "BIGINT"), ("row_id", "BIGINT"), ("change_type", "VARCHAR"), ("k", "INTEGER"), ("v", "VARCHAR"),
    ]  # fmt: skip
    assert set(cursor.fetchall()) == ROWS
    for first in range(6):
        for last in range(max(1, first), 6):
            found = con.execute("FROM table_changes('t', ?, ?)", [first, last]).fetchall()
            assert sorted(found) == sorted(row for row in ROWS if first <= row[0] <= last)


@pytest.mark.parametrize(
    "query",
    [
        "FROM {call}",
        "SELECT * FROM {call} WHERE change_type LIKE 'update%'",
        "SELECT c.k, u.k AS other FROM {call} AS c JOIN u ON u.k = c.k",
        "SELECT table_changes.k, u.k AS other FROM {call}, u",
        "SELECT x.row_id FROM u, {call} x",
        "SELECT x.row_id FROM x: {call}",
        "SELECT a, b, c, d, e FROM {call} AS x(a, b, c, d, e)",
        "SELECT u.k, (SELECT count(*) FROM {call} c WHERE c.k = u.k) AS n FROM u",
        "FROM u WHERE k IN (SELECT k FROM {call}) AND EXISTS (FROM {call} c WHERE c.k = u.k)",
        "WITH c AS (FROM {call}) SELECT change_type, count(*) AS n FROM c GROUP BY ALL",
        "FROM {call} UNION ALL FROM {call} EXCEPT FROM {call} WHERE k = 1",
        "SELECT n FROM u, LATERAL (SELECT count(*) AS n FROM {call} c WHERE c.k > u.k)",
        "PIVOT (SELECT change_type, k FROM {call}) ON change_type USING count(*)",
        "SUMMARIZE SELECT k FROM {call}",
        "DESCRIBE FROM {call}",
        "TABLE c_1_5",
        "SELECT c.k, t.v AS before FROM {call} c JOIN t AT (VERSION => 2) USING (k)",
        "SELECT k, sum(count(*)) OVER (ORDER BY k) AS s FROM {call} GROUP BY k ORDER BY k DESC LIMIT 3",
    ],
)
def test_where_a_table_may_stand(query: str, con: Any) -> None:
    con.execute(f"CREATE TABLE c_1_5 AS FROM {CALL}")
    expected = answer(con, query.format(call="c_1_5 AS table_changes" if "table_changes." in query else "c_1_5"))
    assert answer(con, query.format(call=CALL)) == expected
    assert answer(con, query.format(call="TABLE_CHANGES ( 'main.T' , '1', 2 + 3 )")) == expected


def test_in_changes_and_copies(con: Any, tmp_path: Path) -> None:
    con.execute(f"CREATE TABLE made AS SELECT row_id, change_type FROM {CALL}")
    assert con.execute(f"INSERT INTO made SELECT row_id, change_type FROM {CALL}").rowcount == 5
    assert con.execute(f"DELETE FROM made WHERE row_id IN (SELECT row_id FROM {CALL} WHERE change_type = 'delete')").rowcount == 4
    assert con.execute(f"UPDATE made SET change_type = (SELECT max(v) FROM {CALL} c WHERE c.row_id = made.row_id)").rowcount == 6
    assert set(con.execute("FROM made").fetchall()) == {(1, "c")}
    assert con.execute(f"COPY (FROM {CALL}) TO '{tmp_path / 'changes.csv'}'").rowcount == 5
    assert "Scan" in con.execute(f"EXPLAIN FROM {CALL}").fetchall()[0][1]


def test_names_and_columns_that_need_quotes(con: Any) -> None:
    con.execute('CREATE SCHEMA "odd.s"; CREATE TABLE "odd.s"."my ""t" (snapshot_id INTEGER, "ROW_ID" INTEGER)')  # 7
    con.execute('INSERT INTO "odd.s"."my ""t" VALUES (1, 2)')  # 8
    cursor = con.execute("FROM table_changes(?, 8, 8)", ['"odd.s"."my ""t"'])
    assert [d[0] for d in cursor.description] == ["snapshot_id", "row_id", "change_type", "snapshot_id_1", "ROW_ID_1"]
    assert cursor.fetchall()[0][2:] == ("insert", 1, 2)
    con.execute('CREATE TABLE "my t" AS SELECT 1 AS a')  # 9
    assert con.execute("SELECT a FROM table_changes('my t', 9, 9)").fetchall() == [(1,)]


def test_columns_are_those_of_the_last_version(con: Any) -> None:
    con.execute("CREATE OR REPLACE TABLE t (w DOUBLE, v VARCHAR)")  # 6
    con.execute("INSERT INTO t VALUES (1.5, 'new')")  # 7
    assert set(con.execute("FROM table_changes('t', 5, 7)").fetchall()) == {
        (5, 2, "delete", None, "b"),
        (6, 1, "delete", None, "c"),
        (7, con.execute("SELECT row_id FROM table_changes('t', 7, 7)").fetchone()[0], "insert", 1.5, "new"),
    }
    assert [d[0] for d in con.execute("FROM table_changes('t', 5, 5)").description][3:] == ["k", "v"]
    con.execute("DROP TABLE t; CREATE TABLE t AS SELECT 1 AS one")  # 8, 9
    assert con.execute("SELECT snapshot_id, one FROM table_changes('t', 8, 9)").fetchall() == [(9, 1)]
    assert set(con.execute(f"FROM {CALL}").fetchall()) == ROWS
    with pytest.raises(lakelite.ProgrammingError, match='table "t" does not exist in version 8'):
        con.execute("FROM table_changes('t', 1, 8)")


def test_values_of_a_column_that_was_of_another_type_are_cast_and_that_is_said(con: Any) -> None:
    con.execute("CREATE OR REPLACE TABLE t (k VARCHAR, v INTEGER, w STRUCT(a INTEGER), x DATE)")  # 6
    con.execute("INSERT INTO t VALUES ('one', 9, {'a': 1}, DATE '2026-01-31')")  # 7
    cursor = con.execute("FROM table_changes('t', 3, 7)")
    assert [str(d[1]) for d in cursor.description][3:] == ["VARCHAR", "INTEGER", "STRUCT(a INTEGER)", "DATE"]
    row_id = con.execute("SELECT row_id FROM table_changes('t', 7, 7)").fetchone()[0]
    assert sorted(cursor.fetchall(), key=repr) == sorted(
        [
            (3, 1, "update_preimage", "1", None, None, None),
            (3, 1, "update_postimage", "1", None, None, None),
            (5, 2, "delete", "2", None, None, None),
            (6, 1, "delete", "1", None, None, None),
            (7, row_id, "insert", "one", 9, {"a": 1}, dt.date(2026, 1, 31)),
        ],
        key=repr,
    )
    warned = [
        (lakelite.Warning, f'column "{name}" was {old} before version 6 and is {new} now: its older values are cast, and NULL where that fails')
        for name, old, new in [("k", "INTEGER", "VARCHAR"), ("v", "VARCHAR", "INTEGER")]
    ]
    assert cursor.messages == warned
    assert con.execute("CREATE TABLE log AS FROM table_changes('t', 6, 7)").messages == warned  # 8
    assert con.execute("FROM table_changes('t', 7, 7)").messages == [], "only rows that were of the other type are spoken of"
    assert con.execute("SELECT 1").messages == []
    con.execute("CREATE OR REPLACE TABLE t (w STRUCT(b INTEGER), x DATE)")  # 9
    cursor = con.execute("SELECT w, x FROM table_changes('t', 9, 9)")
    assert cursor.fetchall() == [(None, dt.date(2026, 1, 31))]
    no_cast = 'column "w" was STRUCT(a INTEGER) before version 9 and is STRUCT(b INTEGER) now: its older values are NULL, since there is no such cast'
    assert cursor.messages == [(lakelite.Warning, no_cast)]


def test_a_restore_across_a_change_of_type(con: Any) -> None:
    con.execute("CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER)")  # 6
    con.execute("INSERT INTO t VALUES (7, 70), (8, 80)")  # 7
    con.execute("DELETE FROM t WHERE k = 8")  # 8
    con.execute("RESTORE TABLE t TO VERSION AS OF 2")  # 9
    found = con.execute("SELECT snapshot_id, change_type, k, v FROM table_changes('t', 6, 9) ORDER BY ALL").fetchall()
    assert found == [
        (6, "delete", 1, "c"),
        (7, "insert", 7, "70"), (7, "insert", 8, "80"),
        (8, "delete", 8, "80"),
        (9, "delete", 7, "70"), (9, "insert", 1, "a"), (9, "insert", 2, "b"),
    ]  # fmt: skip


def test_another_table_of_the_name_is_not_passed_over(con: Any) -> None:
    con.execute("DROP TABLE t; CREATE TABLE t AS SELECT 1 AS one; CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 2 AS two")  # 6, 7, 8, 9
    with pytest.raises(lakelite.ProgrammingError, match="the table t of version 3 is another one than that of version 9") as caught:
        con.execute("FROM table_changes('T', 3, 9)")
    assert caught.value.position.column == 6
    assert caught.value.hint == "ask for each by itself: table_changes('t', 3, 5) and table_changes('t', 6, 9)"
    assert len(con.execute("FROM table_changes('t', 3, 5)").fetchall()) == 3
    assert con.execute("SELECT snapshot_id, one FROM table_changes('t', 6, 9)").fetchall() == [(7, 1)]
    assert con.execute("SELECT snapshot_id, two FROM table_changes('s.t', 0, 9)").fetchall() == [(9, 2)]
    con.execute("BEGIN; DROP TABLE t; CREATE TABLE t AS SELECT 3 AS three; COMMIT")  # 10
    with pytest.raises(lakelite.ProgrammingError, match="the table t of version 7 is another one"):
        con.execute("FROM table_changes('t', TIMESTAMP '2001-01-01', 10)")
    assert con.execute("SELECT three FROM table_changes('t', 10, 10)").fetchall() == [(3,)]


def test_one_net_change_per_row_and_transaction(con: Any) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO t VALUES (10, 'x'), (11, 'y')")
    con.execute("UPDATE t SET v = v || '!'")
    con.execute("UPDATE t SET v = v || '!'")
    con.execute("DELETE FROM t WHERE k = 11")
    assert not con.execute("FROM table_changes('t', 5, 5) WHERE k > 9").fetchall(), "what is not committed is not shown"
    con.execute("COMMIT")  # 6
    found = con.execute("SELECT change_type, k, v FROM table_changes('t', 6, 6)").fetchall()
    assert set(found) == {("insert", 10, "x!!"), ("update_preimage", 1, "c"), ("update_postimage", 1, "c!!")}
    con.execute("BEGIN; UPDATE t SET v = 'gone' WHERE k = 1; DELETE FROM t WHERE k = 1; COMMIT")  # 7
    assert con.execute("SELECT change_type, k, v FROM table_changes('t', 7, 7)").fetchall() == [("delete", 1, "c!!")]


def test_what_moves_rows_is_no_change(con: Any) -> None:
    flush(con, "t")  # 6
    con.execute("UPDATE t SET v = 'after' WHERE k = 1")  # 7
    assert set(con.execute("SELECT snapshot_id, row_id, change_type, v FROM table_changes('t', 6, 7)").fetchall()) == {
        (7, 1, "update_preimage", "c"),
        (7, 1, "update_postimage", "after"),
    }
    assert set(con.execute(f"FROM {CALL}").fetchall()) == ROWS


def test_arguments_may_be_times(con: Any) -> None:
    times = [row[0].replace(tzinfo=dt.UTC) for row in con.execute("SELECT committed_at FROM lake.snapshots ORDER BY snapshot_id").fetchall()]
    shown = {
        (first, last): set(con.execute("FROM table_changes('t', ?, ?)", [times[first], times[last]]).fetchall()) for first, last in [(1, 5), (3, 4)]
    }
    assert shown == {(1, 5): ROWS, (3, 4): {row for row in ROWS if row[0] == 3}}
    after = times[2] + dt.timedelta(microseconds=1)
    assert {row[0] for row in con.execute("FROM table_changes('t', ?, ?)", [after, 5]).fetchall()} == {3, 5}
    assert not con.execute("FROM table_changes('t', now(), now())").fetchall()
    assert not con.execute("FROM table_changes('t', now() + INTERVAL 1 HOUR, now() + INTERVAL 2 HOUR)").fetchall()
    assert set(con.execute("FROM table_changes('t', $from, $to)", {"from": dt.datetime(2001, 1, 1), "to": "5"}).fetchall()) == ROWS
    with pytest.raises(lakelite.ProgrammingError, match="the lake is younger than that"):
        con.execute("FROM table_changes('t', 1, TIMESTAMP '2001-01-01')")


@pytest.mark.parametrize(
    ("query", "kind", "words", "column"),
    [
        ("FROM table_changes('t', 3, 2)", lakelite.ProgrammingError, "from version 3 back to 2", 6),
        ("FROM table_changes('t', now(), 2)", lakelite.ProgrammingError, "from version 6 back to 2", 6),
        ("FROM table_changes('t', 1, 99)", lakelite.ProgrammingError, "no version 99; the newest one that this statement sees is 5", 6),
        ("FROM table_changes('t', -1, 2)", lakelite.ProgrammingError, "no version -1", 6),
        ("FROM table_changes('t', NULL, 2)", lakelite.DataError, "NULL", 6),
        ("FROM table_changes(NULL, 1, 2)", lakelite.DataError, "the name of a table is NULL", 6),
        ("FROM table_changes(7, 1, 2)", lakelite.DataError, "the name of a table is a text", 6),
        ("FROM table_changes('t', 1.5, 2)", lakelite.DataError, "whole number", 6),
        ("FROM table_changes('t', 'a', 2)", lakelite.DataError, "whole number", 6),
        ("FROM table_changes('tt', 1, 2)", lakelite.ProgrammingError, 'table "tt" does not exist in version 2', 6),
        ("FROM table_changes('u', 1, 2)", lakelite.ProgrammingError, 'table "u" does not exist in version 2', 6),
        ("FROM table_changes('x.t', 1, 2)", lakelite.ProgrammingError, 'schema "x" does not exist', 6),
        ("FROM table_changes('', 1, 2)", lakelite.ProgrammingError, 'table "" does not exist', 6),
        ("FROM table_changes('a b.c d', 1, 2)", lakelite.ProgrammingError, 'table "a b.c d" does not exist', 6),
        ("FROM table_changes('lake.snapshots', 1, 2)", lakelite.ProgrammingError, "system view", 6),
        ("FROM table_changes('t', 1)", lakelite.ProgrammingError, "three arguments, not 2", 6),
        ("FROM table_changes('t', 1, 2, 3)", lakelite.ProgrammingError, "three arguments, not 4", 6),
        ("FROM table_changes()", lakelite.ProgrammingError, "an argument of table_changes is missing", 20),
        ("FROM table_changes('t', , 2)", lakelite.ProgrammingError, "an argument of table_changes is missing", 25),
        ("SELECT table_changes('t', 1, 2)", lakelite.ProgrammingError, "stands where a table may stand", 8),
        ("SELECT k, table_changes('t', 1, 2) FROM t", lakelite.ProgrammingError, "stands where a table may stand", 11),
        ("FROM table_changes('t', (SELECT 1 FROM u), 2)", lakelite.ProgrammingError, "where no table can be seen", 6),
        ("FROM table_changes('t', k, 2)", lakelite.ProgrammingError, "k", 6),
    ],
)
def test_errors(query: str, kind: type[lakelite.Error], words: str, column: int, con: Any) -> None:
    with pytest.raises(kind, match=re.escape(words)) as caught:
        con.execute(query)
    assert caught.value.position.column == column


def test_a_column_or_table_of_that_name_is_left_alone(con: Any) -> None:
    con.execute("CREATE TABLE table_changes AS SELECT 1 AS table_changes")
    assert con.execute("SELECT table_changes, t.table_changes FROM table_changes t WHERE table_changes IN (1)").fetchall() == [(1, 1)]


def test_what_has_expired(con: Any) -> None:
    con.execute("VACUUM t RETAIN 0 HOURS")
    with pytest.raises(lakelite.OperationalError, match="the changes of t in version 5 have expired; the oldest kept ones are those of version 6"):
        con.execute("FROM table_changes('t', 5, 5)")
    assert con.execute("SELECT change_type FROM table_changes('u', 0, 5)").fetchall() == [("insert",)]
    con.execute("INSERT INTO t VALUES (3, 'd')")  # 6
    assert con.execute("SELECT change_type, k FROM table_changes('t', 6, 6)").fetchall() == [("insert", 3)]
    con.execute("CREATE TABLE young AS SELECT 1 AS a")  # 7
    con.execute("INSERT INTO young VALUES (2)")  # 8
    con.execute("VACUUM RETAIN 0 HOURS")
    with pytest.raises(lakelite.OperationalError, match="the changes of t in version 6 have expired; the oldest kept ones are those of version 9"):
        con.execute("FROM table_changes('t', 6, 8)")
    with pytest.raises(lakelite.OperationalError, match="version 7 has expired; the oldest kept one is 8"):
        con.execute("FROM table_changes('t', 1, 7)")
    with pytest.raises(lakelite.OperationalError, match="have expired"):
        con.execute("FROM table_changes('t', TIMESTAMP '2001-01-01', 8)")
    con.execute("CREATE TABLE newest AS SELECT 1 AS a")  # 9
    con.execute("DELETE FROM newest")  # 10
    assert len(con.execute("FROM table_changes('newest', 0, 10)").fetchall()) == 2, "nothing happened to the table before it was made"


def test_what_is_being_read_does_not_expire(con: Any, other: Any) -> None:
    con.execute("INSERT INTO t SELECT range, 'x' FROM range(300000)")  # 6
    con.execute("TRUNCATE t")  # 7
    reading = con.execute("SELECT k FROM table_changes('t', 6, 7)")
    reading.fetchone()
    other.execute("VACUUM RETAIN 0 HOURS")
    assert len(reading.fetchall()) == 600_000
    reading.close()
    other.execute("VACUUM RETAIN 0 HOURS")
    with pytest.raises(lakelite.OperationalError, match="expired"):
        con.execute("FROM table_changes('t', 6, 7)")


def test_by_numbers_it_is_no_read_and_by_a_time_that_is_now_it_is(con: Any, other: Any) -> None:
    con.execute("BEGIN")
    con.execute("FROM table_changes('t', 1, 5)").fetchall()
    con.execute("INSERT INTO u SELECT count(*) FROM table_changes('t', 1, 5)")
    other.execute("UPDATE t SET v = 'theirs'")  # 6
    con.execute("COMMIT")  # 7
    assert con.last_commit.attempts == 1
    con.execute("BEGIN")
    con.execute("FROM table_changes('t', 1, now())").fetchall()
    con.execute("INSERT INTO u VALUES (1)")
    other.execute("UPDATE t SET v = 'again'")
    with pytest.raises(lakelite.TransactionConflict):
        con.execute("COMMIT")


def test_a_write_that_runs_again_asks_again(con: Any, other: Any) -> None:
    with meeting(lambda: other.execute("INSERT INTO t VALUES (9, 'theirs')")):
        con.execute("INSERT INTO u SELECT count(*) FROM table_changes('t', 1, TIMESTAMP '2999-01-01')")
    assert con.execute("SELECT max(k) FROM u").fetchone() == (6,)


def test_fields_inside_of_a_column_that_were_renamed_are_not_guessed(con: Any) -> None:
    con.execute("CREATE TABLE n (s STRUCT(a INTEGER, b INTEGER)); INSERT INTO n VALUES ({'a': 1, 'b': 2})")
    first = con.last_commit.snapshot_id
    con.execute("ALTER TABLE n RENAME s.a TO t; ALTER TABLE n RENAME s.b TO a; DELETE FROM n")
    with pytest.raises(lakelite.NotSupportedError, match="inside of column") as error:
        con.execute(f"FROM table_changes('n', {first}, {first + 3})")
    assert f"up to version {first + 1}, and from version {first + 3}" in str(error.value)  # the later of the two changes
    with pytest.raises(lakelite.NotSupportedError, match=f"in version {first + 1}"):
        con.execute(f"FROM table_changes('n', {first}, {first + 1})")
    con.execute("CREATE TABLE o (s STRUCT(a INTEGER, b INTEGER)); INSERT INTO o VALUES ({'a': 1, 'b': 2}); ALTER TABLE o ADD COLUMN x INTEGER")
    torn = con.last_commit.snapshot_id + 1
    con.execute("ALTER TABLE o RENAME s.a TO t")
    with pytest.raises(lakelite.NotSupportedError, match=f"in version {torn}"):
        con.execute(f"FROM table_changes('o', {torn - 2}, {torn})")
    found = con.execute(f"SELECT change_type, s FROM table_changes('n', {first + 3}, {first + 3})").fetchall()
    assert found == [("delete", {"t": 1, "a": 2})]
    assert con.execute(f"SELECT s FROM table_changes('n', {first}, {first})").fetchall() == [({"a": 1, "b": 2},)]


def test_many_rows_and_snapshots(con: Any) -> None:
    """More deleted rows than are listed in a scan, several times in one file, and many snapshots."""
    con.execute("SET inline_rows = 0; SET upkeep = off")
    con.execute("CREATE TABLE big AS SELECT range AS a FROM range(200000)")  # 6
    for rest in range(5):
        con.execute("DELETE FROM big WHERE a % 11 = ?", [rest])  # 7 to 11
    con.execute("UPDATE big SET a = -a WHERE a % 11 = 7")  # 12
    found = con.execute("SELECT snapshot_id, change_type, count(*), sum(a) FROM table_changes('big', 1, 12) GROUP BY ALL ORDER BY 1, 2").fetchall()
    sums = [(sum(range(rest, 200_000, 11)), len(range(rest, 200_000, 11))) for rest in range(11)]
    assert found == [
        (6, "insert", 200_000, sum(range(200_000))),
        *((7 + rest, "delete", sums[rest][1], sums[rest][0]) for rest in range(5)),
        (12, "update_postimage", sums[7][1], -sums[7][0]),
        (12, "update_preimage", sums[7][1], sums[7][0]),
    ]
    pairs = "SELECT count(*) FROM {0} a JOIN {0} b USING (snapshot_id, row_id) WHERE a.change_type = 'update_preimage' AND b.a = -a.a AND b.a < 0"
    assert con.execute(pairs.format("table_changes('big', 12, 12)")).fetchone() == (sums[7][1],)
