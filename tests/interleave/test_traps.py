"""The traps of concurrent change, one test each: what other systems get wrong, and the right answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from racing import flush, meeting

import lakelite

Connect = Callable[..., Any]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def connect(connect: Connect) -> Connect:
    """Opens connections to one lake, whose table t (k, v) holds k 0 to 9 with v = k."""
    connect().execute("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t SELECT range, range FROM range(10)")
    return connect


def rows(con: Any, sql: str = "FROM t") -> Rows:
    return sorted(con.execute(sql).fetchall())


def base(**changed: int | None) -> Rows:
    """The rows of t as they were made; `k3=7`: with v 7 at k 3; `k3=None`: without it."""
    values = {k: changed.get(f"k{k}", k) for k in range(10)}
    return [(k, v) for k, v in values.items() if v is not None]


def history(con: Any) -> str:
    """How the newest snapshot was reconciled."""
    return str(con.execute("DESCRIBE HISTORY t LIMIT 1").fetchall()[0][7])


def test_1_a_delete_catches_the_row_that_an_update_moved_into_its_range(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("UPDATE t SET v = 15 WHERE k = 5")):
        cursor = m.execute("DELETE FROM t WHERE v > 10")
    assert cursor.rowcount == 1
    assert rows(m) == base(k5=None)
    assert m.last_commit.attempts == 1
    assert m.last_commit.resolutions[0].rung == 3


def test_2_a_delete_against_an_update_of_the_same_row_is_not_lost(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("UPDATE t SET v = v + 100 WHERE k = 1")):
        m.execute("DELETE FROM t WHERE k IN (1, 2)")
    assert rows(w) == base(k1=None, k2=None)


def test_2_an_update_of_a_row_that_was_deleted_does_not_bring_it_back(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("DELETE FROM t WHERE k = 1")):
        cursor = m.execute("UPDATE t SET v = v + 100 WHERE k IN (1, 2)")
    assert cursor.rowcount == 1
    assert rows(w) == base(k1=None, k2=102)


@pytest.mark.parametrize("change", ["DELETE FROM t WHERE k < 5", "DELETE FROM t", "TRUNCATE t"])
def test_7_an_append_after_a_committed_delete_stands_and_nothing_returns(connect: Connect, change: str) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute(change)):
        m.execute("INSERT INTO t VALUES (100, 1)")
    left = [(k, v) for k, v in base() if "k < 5" in change and k >= 5]
    assert rows(w) == [*left, (100, 1)]
    assert m.last_commit.attempts == 1


def test_7_an_append_against_an_overwrite_is_kept_where_it_is_not_superseded(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("SET overwrite_append = keep")
    with meeting(lambda: w.execute("INSERT OVERWRITE t SELECT 1, 1")):
        m.execute("INSERT INTO t VALUES (100, 1)")
    assert rows(w) == [(1, 1), (100, 1)]
    assert "stands beside the overwrite" in history(w)


def test_10_a_stale_writer_does_not_write_into_a_new_table_of_the_same_name(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN")
    m.execute("INSERT INTO t VALUES (100, 1)")
    w.execute("BEGIN; DROP TABLE t; CREATE TABLE t (k INTEGER, v INTEGER); COMMIT")
    with pytest.raises(lakelite.TransactionConflict, match="dropped by snapshot 3") as caught:
        m.execute("COMMIT")
    assert caught.value.conflicts[0].kind == "table dropped"
    assert not m.in_transaction
    assert rows(w) == []
    with (
        meeting(lambda: w.execute("BEGIN; DROP TABLE t; CREATE TABLE t (k INTEGER, v INTEGER); COMMIT")),
        pytest.raises(lakelite.ProgrammingError, match="dropped"),
    ):
        m.execute("INSERT INTO t VALUES (100, 1)")
    assert rows(w) == []


def test_10_a_table_that_was_replaced_takes_the_rows_of_a_stale_writer_only_where_they_fit(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("SET overwrite_append = keep")
    with (
        meeting(lambda: w.execute("CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER NOT NULL)")),
        pytest.raises(lakelite.IntegrityError, match="NOT NULL"),
    ):
        m.execute("INSERT INTO t VALUES (1, NULL)")
    assert rows(w) == []
    w.execute("CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER)")
    with meeting(lambda: w.execute("CREATE OR REPLACE TABLE t (k INTEGER, v INTEGER DEFAULT 77)")):
        m.execute("INSERT INTO t (k) VALUES (1)")
    assert rows(w) == [(1, 77)]


def test_10_rows_written_into_ones_own_new_table_survive_a_replay(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN; DROP TABLE t; CREATE TABLE t (k INTEGER, d DATE); INSERT INTO t VALUES (1, '2024-02-29')")
    w.execute("DELETE FROM t WHERE k = 1")
    m.execute("COMMIT")
    assert [(k, str(d)) for k, d in rows(w)] == [(1, "2024-02-29")]
    m.execute("BEGIN; CREATE OR REPLACE TABLE t (k INTEGER, e DOUBLE); INSERT INTO t VALUES (2, 0.5)")
    w.execute("INSERT INTO t VALUES (9, NULL)")
    m.execute("COMMIT")
    assert rows(w) == [(2, 0.5)]


def test_12_three_deletes_on_a_fragment_that_has_a_deletion_vector(connect: Connect) -> None:
    m, w1, w2 = connect(), connect(), connect()
    w1.execute("DELETE FROM t WHERE k = 0")

    def both_win() -> None:
        w1.execute("DELETE FROM t WHERE k = 1")
        w2.execute("DELETE FROM t WHERE k IN (2, 3)")

    with meeting(both_win):
        cursor = m.execute("DELETE FROM t WHERE k IN (3, 4)")
    assert rows(m) == base(k0=None, k1=None, k2=None, k3=None, k4=None)
    assert m.last_commit.attempts == 1
    assert cursor.rowcount == 1, "the row that the second winner had deleted does not count"
    told = [text for _, text in cursor.messages]
    assert "1 row was already deleted by snapshot 5" in told
    assert not any("snapshot 4" in text and "already" in text for text in told), "the first winner deleted none of them"
    assert "1 row was already deleted by snapshot 5" in history(m)


def test_12_two_deletes_of_the_same_rows_are_one(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("DELETE FROM t WHERE k < 4")):
        cursor = m.execute("DELETE FROM t WHERE k < 4")
    assert cursor.rowcount == 0
    assert rows(m) == base(k0=None, k1=None, k2=None, k3=None)
    assert [text for _, text in cursor.messages] == ["4 rows were already deleted by snapshot 3"]


def test_13_write_skew_is_a_conflict_where_the_rows_were_handed_out(connect: Connect) -> None:
    a, b = connect(), connect()
    for con in (a, b):
        con.execute("BEGIN")
        assert con.execute("SELECT count(*) FROM t WHERE v < 2").fetchall() == [(2,)]
    a.execute("UPDATE t SET v = 50 WHERE k = 0")
    b.execute("UPDATE t SET v = 50 WHERE k = 1")
    a.execute("COMMIT")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        b.execute("COMMIT")
    conflict = caught.value.conflicts[0]
    assert (conflict.kind, conflict.table, conflict.winner_snapshot_id) == ("read changed", "t", 3)
    assert caught.value.sqlstate == "40001"
    assert "UPDATE t SET v = 50 WHERE k = 0" in str(caught.value)
    assert rows(b) == base(k0=50)


def test_14_read_modify_write_through_the_application(connect: Connect) -> None:
    a, b = connect(), connect()
    for con in (a, b):
        con.execute("BEGIN")
        value = con.execute("SELECT v FROM t WHERE k = 3").fetchone()[0]
        con.execute("UPDATE t SET v = ? WHERE k = 3", [value + 1])
    a.execute("COMMIT")
    with pytest.raises(lakelite.TransactionConflict):
        b.execute("COMMIT")
    b.execute("BEGIN")
    b.execute("UPDATE t SET v = ? WHERE k = 3", [b.execute("SELECT v FROM t WHERE k = 3").fetchone()[0] + 1])
    b.execute("COMMIT")
    assert rows(a) == base(k3=5)


def test_14_without_looking_the_same_update_twice_adds_up(connect: Connect) -> None:
    a, b = connect(), connect()
    for con in (a, b):
        con.execute("BEGIN")
        con.execute("UPDATE t SET v = v + 1 WHERE k = 3")
    a.execute("COMMIT")
    b.execute("COMMIT")
    assert rows(a) == base(k3=5)


def test_a_blind_append_is_no_conflict_for_what_was_handed_out(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN")
    assert m.execute("SELECT count(*) FROM t").fetchall() == [(10,)]
    m.execute("UPDATE t SET v = 0 WHERE v > 5")
    w.execute("INSERT INTO t VALUES (10, 10)")
    m.execute("COMMIT")
    assert rows(w) == [*base(k6=0, k7=0, k8=0, k9=0), (10, 0)]


def test_15_a_commit_whose_answer_was_lost_is_applied_once(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    m, w = connect(), connect()
    catalog = m._session.lake.catalog
    real = catalog._sqlite

    class Answers:
        """A connection whose next COMMIT lands, but seems to fail."""

        lost = 0

        def execute(self, sql: str, *parameters: Any) -> Any:
            found = real.execute(sql, *parameters)
            if sql == "COMMIT" and not self.lost:
                self.lost += 1
                raise sqlite3.OperationalError("disk I/O error")
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    flaky = Answers()
    monkeypatch.setattr(catalog, "_sqlite", flaky)
    with meeting(lambda: w.execute("DELETE FROM t WHERE k = 9")):
        assert m.execute("DELETE FROM t WHERE k = 8").rowcount == 1
    assert flaky.lost == 1
    m.execute("INSERT INTO t VALUES (8, 80)")
    assert rows(w) == base(k8=80, k9=None)
    ids = [row[12] for row in w.execute("DESCRIBE HISTORY").fetchall()]
    assert len(ids) == len(set(ids)) == 6


def test_16_winners_that_land_while_m_resolves(connect: Connect) -> None:
    """Each attempt meets one more; the last one runs under the commit lock, so that it ends."""
    m, w = connect(), connect()
    m.execute("SET reevaluate_locked_rows = 0")
    win = [lambda: w.execute("UPDATE t SET v = v * 2 WHERE k = 1")] * 4
    with meeting(*win):
        assert m.execute("UPDATE t SET v = v + 1 WHERE k = 1").rowcount == 1
    assert rows(w) == base(k1=17)
    assert m.last_commit.attempts == 4
    assert [r.winner_snapshot_id for r in m.last_commit.resolutions] == [3, 4, 5, 6]


def test_17_vacuum_keeps_what_an_open_transaction_needs(connect: Connect) -> None:
    m, w = connect(), connect()
    m.execute("BEGIN")
    m.execute("UPDATE t SET v = v + 1 WHERE k = 1")
    w.execute("UPDATE t SET v = v * 2")
    w.execute("VACUUM RETAIN 0 HOURS")
    assert m.execute("SELECT sum(v) FROM t WHERE k > 1").fetchall() == [(44,)]
    m.execute("ROLLBACK; BEGIN; UPDATE t SET v = v + 1 WHERE k = 1")
    w.execute("UPDATE t SET v = v * 2")
    w.execute("VACUUM RETAIN 0 HOURS")
    m.execute("COMMIT")
    assert rows(w) == [(k, 4 * k + (k == 1)) for k in range(10)]


def _prune(lake: Path) -> None:
    """What a foreign hand could do: the records of all winners but the newest are gone."""
    (catalog,) = lake.rglob("catalog.sqlite")
    with closing(sqlite3.connect(catalog)) as con, con:
        con.execute("PRAGMA foreign_keys = ON")
        con.execute("DELETE FROM snapshots WHERE snapshot_id > 2 AND snapshot_id < (SELECT max(snapshot_id) FROM snapshots)")


def test_17_a_base_that_was_pruned_is_refused_or_in_autocommit_run_on_the_head(connect: Connect, tmp_path: Path) -> None:
    m, w = connect(), connect()

    def win_and_prune() -> None:
        w.execute("UPDATE t SET v = v * 2 WHERE k = 3")
        w.execute("UPDATE t SET v = v * 2 WHERE k = 1")
        _prune(tmp_path / "lake")

    m.execute("BEGIN")
    m.execute("UPDATE t SET v = v + 1 WHERE k = 1")
    win_and_prune()
    with pytest.raises(lakelite.OperationalError, match="expired") as caught:
        m.execute("COMMIT")
    assert not isinstance(caught.value, lakelite.TransactionConflict)
    assert caught.value.hint
    assert rows(m) == base(k1=2, k3=6)
    with meeting(win_and_prune):
        assert m.execute("UPDATE t SET v = v + 1 WHERE k = 1").rowcount == 1
    assert rows(m) == base(k1=5, k3=12)


def test_17_where_compositions_do_not_tell_where_rows_went_a_statement_runs_again(connect: Connect, tmp_path: Path) -> None:
    m, w = connect(), connect()
    w.execute("DELETE FROM t WHERE k = 5")

    def win_and_prune() -> None:
        w.execute("INSERT INTO t VALUES (10, 10); OPTIMIZE t")
        (catalog,) = (tmp_path / "lake").rglob("catalog.sqlite")
        with closing(sqlite3.connect(catalog)) as con, con:
            assert con.execute("DELETE FROM deletion_vectors").rowcount > 0

    with meeting(win_and_prune):
        assert m.execute("UPDATE t SET v = v + 1 WHERE k IN (1, 10)").rowcount == 2
    assert rows(m) == [*base(k1=2, k5=None), (10, 11)]


def test_17_a_source_that_is_emptied_and_expires_while_its_compaction_is_on_the_way(connect: Connect) -> None:
    m, w, upkeep = connect(), connect(), connect()
    w.execute("INSERT INTO t VALUES (20, 20), (21, 21); DELETE FROM t WHERE k = 20")

    def empty_and_begin() -> None:
        w.execute("DELETE FROM t WHERE k = 21")
        m.execute("BEGIN; UPDATE t SET v = v + 1 WHERE k = 1")

    with meeting(empty_and_begin):
        upkeep.execute("OPTIMIZE t")
    w.execute("VACUUM RETAIN 0 HOURS")
    m.execute("COMMIT")
    assert m.last_commit.attempts == 1, "where each row went is known"
    assert rows(m) == base(k1=2)


def _flusher(connect: Connect) -> Callable[[], None]:
    con = connect()
    con.execute("SET flush_fragments = 0")

    return lambda: flush(con, "t")


@pytest.mark.parametrize(
    "change", ["DELETE FROM t WHERE k IN (3, 10)", "UPDATE t SET v = v + 1 WHERE k IN (3, 10)", "INSERT INTO t VALUES (11, 11)", "TRUNCATE t"]
)
def test_18_a_flush_against_a_change_in_both_orders(connect: Connect, change: str) -> None:
    for flush_first in (True, False):
        m, flush_now = connect(), _flusher(connect)
        m.execute("INSERT OVERWRITE t SELECT range, range FROM range(10)")
        m.execute("SET inline_rows = 1000; INSERT INTO t VALUES (10, 10); DELETE FROM t WHERE k IN (5, 12)")
        if flush_first:
            with meeting(flush_now):
                m.execute(change)
        else:
            with meeting(lambda m=m: m.execute(change)):
                flush_now()
        whole = [*base(k5=None), (10, 10)]
        want = {
            "DELETE": [r for r in whole if r[0] not in (3, 10)],
            "UPDATE": [(k, v + (k in (3, 10))) for k, v in whole],
            "INSERT": [*whole, (11, 11)],
            "TRUNCATE": [],
        }
        assert rows(m) == want[change.split()[0]]


def test_20_an_overwrite_that_reads_its_own_table_leaves_the_rows_of_an_append(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("INSERT OVERWRITE t SELECT k, v + 1 FROM t WHERE k < 2")):
        m.execute("INSERT INTO t VALUES (100, 1)")
    assert rows(w) == [(0, 1), (1, 2), (100, 1)]


def test_20_a_transaction_that_wrote_two_tables_keeps_its_rows_against_an_overwrite(connect: Connect) -> None:
    m, w = connect(), connect()
    w.execute("CREATE TABLE s (k INTEGER)")
    m.execute("BEGIN; INSERT INTO t VALUES (100, 1); INSERT INTO s VALUES (1)")
    w.execute("INSERT OVERWRITE t SELECT 1, 1")
    m.execute("COMMIT")
    assert rows(w) == [(1, 1), (100, 1)]
    assert rows(w, "FROM s") == [(1,)]


def test_28_a_statement_that_matched_nothing_changes_the_rows_that_winners_added(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("INSERT INTO t VALUES (20, 99)")):
        assert m.execute("UPDATE t SET v = 0 WHERE v = 99").rowcount == 1
    assert rows(w) == [*base(), (20, 0)]


def test_29_a_row_that_came_and_went_again_and_one_that_moved_twice(connect: Connect) -> None:
    m, w = connect(), connect()

    def win() -> None:
        for sql in ("INSERT INTO t VALUES (50, 1)", "UPDATE t SET v = 70 WHERE k = 50", "DELETE FROM t WHERE k = 50"):
            w.execute(sql)
        for value in (60, 1, 70):
            w.execute("UPDATE t SET v = ? WHERE k = 4", [value])

    with meeting(win):
        assert m.execute("DELETE FROM t WHERE v > 50").rowcount == 1
    assert rows(w) == base(k4=None)


def test_31_an_append_that_counted_what_a_winner_appended_to(connect: Connect) -> None:
    m, w = connect(), connect()
    with meeting(lambda: w.execute("INSERT INTO t VALUES (0, 2)")):
        m.execute("INSERT INTO t SELECT 77, count(*) FROM t WHERE k = 0")
    assert rows(w) == [(0, 0), (0, 2), *base()[1:], (77, 2)]


def test_34_a_blind_append_of_a_row_equal_to_one_that_was_deleted(connect: Connect) -> None:
    m, w = connect(), connect()

    def win() -> None:
        w.execute("DELETE FROM t WHERE k = 2")
        w.execute("INSERT INTO t VALUES (2, 2)")

    with meeting(win):
        assert m.execute("DELETE FROM t WHERE k = 2").rowcount == 1
    assert rows(w) == base(k2=None)
    m.execute("BEGIN")
    assert m.execute("SELECT v FROM t WHERE k = 3").fetchall() == [(3,)]
    m.execute("INSERT INTO t VALUES (30, 3)")
    w.execute("DELETE FROM t WHERE k = 3")
    w.execute("INSERT INTO t VALUES (3, 3)")
    m.execute("COMMIT")  # the row is another one, and yet what was shown would come out the same
    assert rows(w) == [*base(k2=None), (30, 3)]
    m.execute("BEGIN")
    assert m.execute("SELECT v FROM t WHERE k = 4").fetchall() == [(4,)]
    m.execute("INSERT INTO t VALUES (40, 4)")
    w.execute("DELETE FROM t WHERE k = 4")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        m.execute("COMMIT")
    assert "(delete)" in str(caught.value)
    assert rows(w) == [*base(k2=None, k4=None), (30, 3)]
