"""What the isolation levels promise: each against a model of its own, and the traps of resolver.md that tell them apart.

At `snapshot` the model is a table of rows by key: M is run on a copy of its base, and what it did to each row is laid over
what the winners left. Two of them that changed the same row are a conflict, or in autocommit M runs on the head.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from racing import flush, meeting

import lakelite

SERIALIZABLE, DEFAULT, SNAPSHOT = "serializable", "write serializable", "snapshot"
LEVELS = (SERIALIZABLE, DEFAULT, SNAPSHOT)
Connect = Callable[..., Any]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def connect(connect: Connect) -> Connect:
    """Opens connections to one lake with a table t (k, v) with k 0 to 5 and v = k, and an empty one, s."""

    def open_one(level: str = DEFAULT, *, autocommit: bool = True) -> Any:
        return connect(autocommit=autocommit, isolation=level)

    con = open_one()
    con.execute("CREATE TABLE t (k INTEGER, v INTEGER); CREATE TABLE s (k INTEGER, v INTEGER)")
    con.execute("INSERT INTO t SELECT range, range FROM range(6)")
    return open_one


def rows(con: Any, name: str = "t") -> Rows:
    return sorted(con.execute(f"FROM {name}").fetchall())


def conflict(con: Any) -> lakelite.Conflict | None:
    """Commits; the first conflict, if that is one."""
    try:
        con.execute("COMMIT")
    except lakelite.TransactionConflict as error:
        assert not con.in_transaction
        return error.conflicts[0]
    return None


# How a level is chosen.


def test_a_level_is_an_option_a_setting_and_a_clause(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True, isolation="Serializable") as con:
        assert con.isolation == SERIALIZABLE
        con.execute("CREATE TABLE t (a INTEGER); SET isolation_level = 'snapshot'; INSERT INTO t VALUES (1)")
        assert con.isolation == SNAPSHOT
        con.execute("BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO t VALUES (2); COMMIT")
        con.isolation = "WRITE_SERIALIZABLE"
        con.execute("INSERT INTO t VALUES (3); RESET isolation_level; INSERT INTO t VALUES (4)")
        found = con.execute("SELECT isolation FROM lake.snapshots ORDER BY snapshot_id").fetchall()
    assert [level for (level,) in found[1:]] == [SERIALIZABLE, SNAPSHOT, SERIALIZABLE, DEFAULT, DEFAULT]


def test_a_level_that_is_set_inside_a_transaction_is_for_the_next_one_and_that_is_said(connect: Connect) -> None:
    con = connect(autocommit=False)
    con.execute("INSERT INTO s VALUES (1, 1)")
    said = "it is for transactions that begin from now on: this one is write serializable"
    for sql in ("SET isolation_level = 'serializable'", "SHOW isolation_level"):
        assert [text for _, text in con.execute(sql).messages] == [said]
    con.commit()
    assert con.execute("SHOW isolation_level").messages == []
    con.execute("INSERT INTO s VALUES (2, 2)")
    con.commit()
    found = con.execute("SELECT isolation FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 2").fetchall()
    assert found == [(SERIALIZABLE,), (DEFAULT,)]


@pytest.mark.parametrize(("insert", "kept"), [("INSERT INTO s SELECT k, k FROM t", True), ("INSERT INTO s SELECT * FROM t", False)])
def test_a_column_that_nobody_names_may_go_also_where_another_table_is_written_by_place(connect: Connect, insert: str, kept: bool) -> None:
    m, w = connect(SERIALIZABLE), connect()
    m.execute(f"BEGIN; DELETE FROM t WHERE k < 4; {insert}")
    w.execute("ALTER TABLE t DROP COLUMN v")
    assert (conflict(m) is None) is kept
    assert rows(w, "s") == ([(4, 4), (5, 5)] if kept else [])
    assert len(rows(w)) == (2 if kept else 6)


# Traps of resolver.md, section 7.


@pytest.mark.parametrize("level", LEVELS)
def test_13_write_skew(connect: Connect, level: str) -> None:
    """Each sees that the other is on call and leaves: only `snapshot` lets both."""
    m, w = connect(level), connect(level)
    for con, k in ((m, 1), (w, 2)):
        con.execute("BEGIN")
        assert con.execute("SELECT count(*) FROM t WHERE k IN (1, 2)").fetchall() == [(2,)]
        con.execute(f"DELETE FROM t WHERE k = {k}")
    assert conflict(w) is None
    lost = conflict(m)
    assert (lost is None) == (level == SNAPSHOT)
    assert [k for k, _ in rows(w)] == ([0, 3, 4, 5] if level == SNAPSHOT else [0, 1, 3, 4, 5])


@pytest.mark.parametrize("level", LEVELS)
def test_21_a_number_of_rows_that_was_told(connect: Connect, level: str) -> None:
    m, w = connect(level), connect()
    m.execute("BEGIN")
    assert m.execute("UPDATE t SET v = v + 1").rowcount == 6
    m.execute("INSERT INTO s SELECT 1, count(*) FROM t WHERE v = 1")
    w.execute("INSERT INTO t VALUES (9, 0)")
    lost = conflict(m)
    if level == SERIALIZABLE:
        assert lost is not None
        assert (lost.kind, lost.accepted_at, lost.winner_snapshot_id) == ("row count changed", DEFAULT, 4)
        assert rows(w, "s") == []
    else:
        assert lost is None
        assert rows(w, "s") == [(1, 2 if level == DEFAULT else 1)]
        assert (9, 1 if level == DEFAULT else 0) in rows(w)


@pytest.mark.parametrize("level", LEVELS)
def test_24_an_error_that_would_not_come_again(connect: Connect, level: str) -> None:
    m, w = connect(level), connect()
    w.execute("INSERT INTO s VALUES (1, 1), (2, 2)")
    m.execute("BEGIN")
    with pytest.raises(lakelite.Error, match="more than one row"):
        m.execute("UPDATE t SET v = (SELECT v FROM s)")
    m.execute("INSERT INTO t VALUES (7, 7)")
    w.execute("DELETE FROM s WHERE k = 1")
    lost = conflict(m)
    assert (lost is None) == (level != SERIALIZABLE)
    if lost is not None:
        assert (lost.kind, lost.accepted_at) == ("error changed", DEFAULT)
    assert ((7, 7) in rows(w)) == (lost is None)
    assert (0, 0) in rows(w)  # it stays failed


def test_24_an_error_that_comes_again_is_no_conflict(connect: Connect) -> None:
    m, w = connect(SERIALIZABLE), connect()
    m.execute("BEGIN")
    with pytest.raises(lakelite.ProgrammingError, match="nosuch"):
        m.execute("INSERT INTO nosuch VALUES (1)")
    with pytest.raises(lakelite.DataError):
        m.execute("INSERT INTO t SELECT k, 'x'::INTEGER FROM t")
    m.execute("INSERT INTO t VALUES (7, 7)")
    w.execute("INSERT INTO t VALUES (8, 8); CREATE TABLE nosuchone (a INTEGER)")
    assert conflict(m) is None
    assert {(7, 7), (8, 8)} <= set(rows(w))


@pytest.mark.parametrize("level", LEVELS)
def test_28_a_statement_that_matched_nothing_and_matches_what_a_winner_wrote(connect: Connect, level: str) -> None:
    m, w = connect(level), connect()
    m.execute("BEGIN")
    assert m.execute("DELETE FROM t WHERE k = 9").rowcount == 0
    w.execute("INSERT INTO t VALUES (9, 9)")
    lost = conflict(m)
    assert (lost is None) == (level != SERIALIZABLE)
    assert ((9, 9) in rows(w)) == (level != DEFAULT)


@pytest.mark.parametrize("level", LEVELS)
def test_30_rows_that_were_shown_within_a_savepoint_that_was_undone(connect: Connect, level: str) -> None:
    m, w = connect(level), connect()
    m.execute("BEGIN; SAVEPOINT a; INSERT INTO t VALUES (7, 7)")
    assert m.execute("SELECT count(*) FROM t").fetchall() == [(7,)]
    m.execute("ROLLBACK TO a; INSERT INTO s VALUES (1, 1)")
    w.execute("DELETE FROM t WHERE k = 1")
    lost = conflict(m)
    assert (lost is None) == (level == SNAPSHOT)
    assert rows(w, "s") == ([(1, 1)] if lost is None else [])


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_a_blind_append_count_for_what_was_shown_only_at_serializable(connect: Connect, level: str) -> None:
    m, w = connect(level), connect()
    m.execute("BEGIN")
    assert m.execute("SELECT count(*) FROM t").fetchall() == [(6,)]
    m.execute("INSERT INTO s VALUES (1, 1)")
    w.execute("INSERT INTO t VALUES (9, 9)")
    assert (conflict(m) is None) == (level != SERIALIZABLE)


@pytest.mark.parametrize("level", LEVELS)
def test_what_was_told_of_an_undone_statement_counts_only_at_serializable(connect: Connect, level: str) -> None:
    m, w = connect(level), connect()
    m.execute("BEGIN; SAVEPOINT a")
    assert m.execute("UPDATE t SET v = 0 WHERE k > 3").rowcount == 2
    m.execute("ROLLBACK TO a; INSERT INTO s VALUES (1, 1)")
    w.execute("DELETE FROM t WHERE k = 4")
    assert (conflict(m) is None) == (level != SERIALIZABLE)


@pytest.mark.parametrize("level", LEVELS)
def test_autocommit_never_conflicts(connect: Connect, level: str) -> None:
    m, w = connect(level), connect()
    with meeting(lambda: w.execute("UPDATE t SET v = v + 1")):
        assert m.execute("UPDATE t SET v = v + 1").rowcount == 6
    assert rows(w) == [(k, k + 2) for k in range(6)]


# Superseded appends.


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("overwrite", ["INSERT OVERWRITE t SELECT 1, 1", "CREATE OR REPLACE TABLE t AS SELECT 1 AS k, 1 AS v"])
def test_a_blind_append_is_superseded_by_an_overwrite(connect: Connect, overwrite: str, explicit: bool) -> None:
    m, w = connect(), connect()
    if explicit:
        m.execute("BEGIN; INSERT INTO t VALUES (7, 7); INSERT INTO t VALUES (8, 8)")
        w.execute(overwrite)
        cursor = m.execute("COMMIT")
    else:
        with meeting(lambda: w.execute(overwrite)):
            cursor = m.execute("INSERT INTO t VALUES (7, 7)")
        assert cursor.rowcount == 0
    assert rows(w) == [(1, 1)]
    assert [text for _, text in cursor.messages] == ["rows superseded by the overwrite in snapshot 4"]
    assert w.execute("SELECT rung, explanation FROM lake.resolutions").fetchall() == [(1, "rows superseded by the overwrite in snapshot 4")]
    assert w.execute("SELECT rows_added FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 1").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "winner",
    [
        "INSERT OVERWRITE t SELECT 1, max(v) FROM t",
        "BEGIN; INSERT INTO t VALUES (6, 6); INSERT OVERWRITE t SELECT 1, 5; COMMIT",
        "BEGIN; SELECT * FROM t; INSERT OVERWRITE t SELECT 1, 5; COMMIT",
        "BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 5); COMMIT",
    ],
)
def test_20_an_overwrite_that_looked_or_did_not_come_first_supersedes_nothing(connect: Connect, winner: str) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN; INSERT INTO t VALUES (7, 7)")
    w.execute(winner)
    assert conflict(m) is None
    assert rows(w) == [(1, 5), (7, 7)]


@pytest.mark.parametrize(
    "mine",
    [
        "INSERT INTO t VALUES (7, 7); INSERT INTO s VALUES (7, 7)",
        "INSERT INTO t SELECT 7, 7 FROM s HAVING count(*) = 0",
        "DELETE FROM t WHERE k = 99; INSERT INTO t VALUES (7, 7)",
    ],
)
def test_20_one_that_wrote_two_tables_or_read_one_is_not_superseded(connect: Connect, mine: str) -> None:
    m, w = connect(), connect()
    m.execute(f"BEGIN; {mine}")
    w.execute("INSERT OVERWRITE t SELECT 1, 1")
    assert conflict(m) is None
    assert rows(w) == [(1, 1), (7, 7)]


def test_appended_rows_are_kept_where_the_setting_or_the_level_says_so(connect: Connect) -> None:
    w = connect()
    for number, m in enumerate((connect(), connect(SERIALIZABLE))):
        if number == 0:
            m.execute("SET overwrite_append = keep")
        with meeting(lambda: w.execute("INSERT OVERWRITE t SELECT 1, 1")):
            assert m.execute("INSERT INTO t VALUES (7, 7)").rowcount == 1
        assert rows(w) == [(1, 1), (7, 7)]
    with pytest.raises(lakelite.DataError, match="overwrite_append cannot be"):
        w.execute("SET overwrite_append = 'drop'")


def test_an_append_after_the_overwrite_is_there(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("INSERT OVERWRITE t SELECT 1, 1; INSERT INTO t VALUES (2, 2)")):
        m.execute("INSERT INTO t VALUES (7, 7)")
    assert rows(w) == [(1, 1), (2, 2)]


# Snapshot, against its model.


def changes_of(r: random.Random, first_key: int) -> list[str]:
    """One to three statements; keys of new rows are new, and no statement changes a key."""
    made = []
    for number in range(r.randrange(1, 4)):
        t, u = r.choice(("t", "s")), r.choice(("t", "s"))
        k, v, new = r.randrange(7), r.randrange(5), first_key + 10 * number
        made.append(
            r.choice(
                (
                    f"INSERT INTO {t} VALUES ({new}, {v})",
                    f"INSERT INTO {t} SELECT {new}, count(*) FROM {u} WHERE v < {v}",
                    f"DELETE FROM {t} WHERE k IN ({k}, {v})",
                    f"DELETE FROM {t} WHERE v > {v}",
                    f"DELETE FROM {t} WHERE v = (SELECT max(v) FROM {u})",
                    f"UPDATE {t} SET v = v + 1 WHERE k IN ({k}, {v})",
                    f"UPDATE {t} SET v = (SELECT count(*) FROM {u}) WHERE k < {v}",
                    f"UPDATE {t} SET v = 2 WHERE v = {v}",
                    f"TRUNCATE {t}",
                )
            )
        )
    return made


class Model:
    """Tables by key, and which rows of them have been changed since `mark`."""

    def __init__(self, tables: dict[str, dict[int, int]]) -> None:
        self.duck = duckdb.connect()
        self.changed: dict[str, set[int]] = {"t": set(), "s": set()}
        for name, found in tables.items():
            self.duck.execute(f"CREATE TABLE {name} (k INTEGER, v INTEGER)")
            if found:
                self.duck.executemany(f"INSERT INTO {name} VALUES (?, ?)", list(found.items()))

    def run(self, sql: str) -> None:
        name = sql.split()[2 if sql.startswith(("INSERT", "DELETE")) else 1]
        where = sql.split(" WHERE ", 1)[1] if " WHERE " in sql else "true"
        if not sql.startswith("INSERT"):
            self.changed[name] |= {k for (k,) in self.duck.execute(f"SELECT k FROM {name} WHERE {where}").fetchall()}
        self.duck.execute(sql)

    def tables(self) -> dict[str, dict[int, int]]:
        return {name: dict(self.duck.execute(f"FROM {name}").fetchall()) for name in self.changed}

    def close(self) -> None:
        self.duck.close()


def laid_over(base: dict[int, int], mine: dict[int, int], changed: set[int], head: dict[int, int]) -> dict[int, int]:
    """What M did to each row, done to the rows that the winners left."""
    kept = {k: v for k, v in head.items() if k not in changed}
    return {**kept, **{k: v for k, v in mine.items() if k in changed or k not in base}}


@pytest.mark.timeout(300)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.binary(min_size=8, max_size=8))
def test_snapshot_is_what_its_model_says(seed: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    r = random.Random(seed)
    path = tmp_path_factory.mktemp("levels") / "lake"
    with lakelite.connect(path, autocommit=True, isolation=SNAPSHOT) as m, lakelite.connect(path, autocommit=True) as w:
        w.execute("CREATE TABLE t (k INTEGER, v INTEGER); CREATE TABLE s (k INTEGER, v INTEGER)")
        for con in (m, w):
            con.execute("SET flush_fragments = 1000")
            if r.random() < 0.5:
                con.execute("SET inline_rows = 0")
        w.execute("INSERT INTO t SELECT range, range % 4 FROM range(4); INSERT INTO t VALUES (4, 1), (5, 0); INSERT INTO s VALUES (0, 3), (1, 1)")
        if r.random() < 0.4:
            w.execute("DELETE FROM t WHERE k = 2")
        mine, wins = changes_of(r, 100), [changes_of(r, 200 + 100 * i) for i in range(r.randrange(1, 4))]
        follows_its_model(m, w, mine, wins, lambda: flush(w, r.choice(("t", "s"))) if r.random() < 0.4 else None)


def follows_its_model(m: Any, w: Any, mine: list[str], wins: list[list[str]], after_each: Callable[[], None]) -> None:
    """`mine` as a transaction of m, at `snapshot`, that w's transactions `wins` overtake: what lands and what conflicts is what the model says."""
    base = {name: dict(w.execute(f"FROM {name}").fetchall()) for name in ("t", "s")}
    m.execute("BEGIN")
    view, theirs = Model(base), Model(base)
    for sql in mine:
        m.execute(sql)
        view.run(sql)
    assert {name: dict(m.execute(f"FROM {name}").fetchall()) for name in base} == view.tables()
    for statements in wins:
        w.execute("; ".join(["BEGIN", *statements, "COMMIT"]))
        for sql in statements:
            theirs.run(sql)
        after_each()
    head, done = theirs.tables(), view.tables()
    both = {n: view.changed[n] & theirs.changed[n] & base[n].keys() for n in base}
    is_contested = any(k in done[n] or k in head[n] for n, keys in both.items() for k in keys)
    lost = conflict(m)
    assert (lost is not None) == is_contested, (base, mine, wins, lost)
    want = head if is_contested else {n: laid_over(base[n], done[n], view.changed[n] & base[n].keys(), head[n]) for n in base}
    assert {name: dict(w.execute(f"FROM {name}").fetchall()) for name in base} == want, (base, mine, wins)
    assert [len(w.execute(f"FROM {n}").fetchall()) for n in base] == [len(want[n]) for n in base]
    if lost is not None:
        assert (lost.kind, lost.accepted_at) == ("changed first", DEFAULT)
    view.close()
    theirs.close()


@pytest.mark.parametrize(
    ("winner", "mine", "want"),
    [
        ("DELETE FROM t WHERE k < 2", "DELETE FROM t WHERE k < 3", [(3, 3), (4, 4), (5, 5)]),  # both deleted two rows
        ("INSERT INTO t VALUES (9, 0)", "UPDATE t SET v = 1 WHERE v = 0", [(0, 1), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (9, 0)]),
        ("UPDATE t SET v = 1 WHERE k = 0", "DELETE FROM t WHERE v = 0", None),
        ("DELETE FROM t WHERE k = 0", "UPDATE t SET v = 7 WHERE k = 0", None),
        ("INSERT OVERWRITE t SELECT 1, 1", "INSERT INTO t VALUES (7, 7)", None),
        ("INSERT OVERWRITE t SELECT 1, 1", "DELETE FROM t WHERE k = 99", None),
        ("CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER DEFAULT 5)", "INSERT INTO t (k) VALUES (7)", None),
        ("INSERT INTO t VALUES (9, 9)", "INSERT OVERWRITE t SELECT 1, 1", [(1, 1)]),
        ("UPDATE t SET v = 9 WHERE k = 1", "CREATE OR REPLACE TABLE t AS SELECT 1 AS k, 1 AS v", [(1, 1)]),
        ("UPDATE t SET v = 9 WHERE k = 1", "CREATE OR REPLACE TABLE t AS SELECT k, v FROM t WHERE k = 1", None),
    ],
)
def test_snapshot_named(connect: Connect, winner: str, mine: str, want: Rows | None) -> None:
    m, w = connect(SNAPSHOT), connect()
    m.execute(f"BEGIN; {mine}")
    w.execute(winner)
    lost = conflict(m)
    assert (lost is None) == (want is not None)
    if want is not None:
        assert rows(w) == want
