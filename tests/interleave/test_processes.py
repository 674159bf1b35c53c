"""Real processes and threads on one lake: nothing lost, nothing doubled, and autocommit never meets a conflict."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import banking
import pytest
import racing

import lakelite

WORKERS = 4
CLERKS = 8
BANK_S = float(os.environ.get("LAKELITE_BANK_SECONDS", "8"))  # by hand: minutes


def rows(con: Any, sql: str) -> list[tuple[Any, ...]]:
    return sorted(con.execute(sql).fetchall())


def history_is_a_chain(con: Any) -> None:
    versions = [row[0] for row in con.execute("DESCRIBE HISTORY").fetchall()]
    assert versions == list(range(len(versions) - 1, -1, -1))


def test_processes_that_append_delete_and_update_one_table(lake: Any, tmp_path: Path) -> None:
    rounds = 8
    lake.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
    lake.execute("INSERT INTO t SELECT range, 0 FROM range(200)")
    found = racing.race(racing.mixed, [(str(tmp_path / "lake"), i, rounds) for i in range(WORKERS)])
    assert rows(lake, "SELECT * FROM t WHERE k < 3") == [(k, WORKERS * rounds) for k in range(3)]
    assert sum(f["shared deletes"] for f in found) == 5 * rounds, "each shared row was deleted by exactly one"
    kept = [k for k in range(3, 200) if not 100 <= k < 100 + 5 * rounds]
    assert rows(lake, "SELECT k FROM t WHERE k BETWEEN 3 AND 999") == [(k,) for k in kept]
    own = [(1000 * (n + 1) + 10 * i + j, 1) for n in range(WORKERS) for i in range(rounds) for j in range(1, 2 + i % 4)]
    assert rows(lake, "SELECT * FROM t WHERE k > 999") == own
    assert sum(f["own"] for f in found) == len(own)
    history_is_a_chain(lake)


def test_a_process_that_compacts_lands_between_others_that_write(lake: Any, tmp_path: Path) -> None:
    rounds = 8
    lake.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
    lake.execute("INSERT INTO t SELECT range, 0 FROM range(200)")
    bins, *found = racing.race(racing.work_or_optimize, [(str(tmp_path / "lake"), i, rounds) for i in range(WORKERS)])
    assert sum(landed for landed, _ in bins) >= 2, bins
    writers = range(1, WORKERS)
    assert rows(lake, "SELECT * FROM t WHERE k < 3") == [(k, len(writers) * rounds) for k in range(3)]
    assert sum(f["shared deletes"] for f in found) == 5 * rounds, "each shared row was deleted by exactly one"
    own = [(1000 * (n + 1) + 10 * i + j, 1) for n in writers for i in range(rounds) for j in range(1, 2 + i % 4)]
    assert rows(lake, "SELECT * FROM t WHERE k > 999") == own
    assert [f for f in lake.execute("CHECK LAKE").fetchall() if f[0] == "error"] == []
    history_is_a_chain(lake)


@pytest.mark.timeout(200 + 2 * BANK_S)
def test_a_bank_whose_money_is_moved_while_its_files_are_compacted(lake: Any, tmp_path: Path) -> None:
    banking.found(lake)
    seen = racing.race(banking.work, [(str(tmp_path / "lake"), n, BANK_S) for n in range(CLERKS)], racing.PATIENCE_S + BANK_S)
    hits, done = sum((h for h, _, _ in seen), Counter()), sum((d for _, d, _ in seen), Counter())
    print(f"{done.total()} actions, {sum(c for _, _, c in seen)} conflicts of transactions that had looked: {dict(done)}")
    assert done.keys() == {action.__name__ for action in banking.ACTIONS}, "each kind of action met the others"
    bank = rows(lake, f"SELECT id, hits FROM accounts WHERE id < {banking.ACCOUNTS}")
    assert bank == [(i, hits[i]) for i in range(banking.ACCOUNTS)], "no change of a row was lost or done twice"
    assert rows(lake, "SELECT sum(balance) FROM accounts") == [(banking.WHOLE,)]
    assert rows(lake, "SELECT total, count(*) FROM audits GROUP BY ALL") == [(banking.WHOLE, done["audit"])]
    assert rows(lake, f"SELECT sum(balance), max(hits) FROM accounts WHERE id >= {banking.ACCOUNTS}") in ([(0, 0)], [(None, None)])
    assert [f for f in lake.execute("CHECK LAKE").fetchall() if f[0] == "error"] == []
    history_is_a_chain(lake)
    for name in ("accounts", "audits"):
        assert banking.plain(tmp_path / "lake", name) == rows(lake, f"FROM {name}")


def test_counters_add_up_exactly(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 0 AS v")
    met = racing.race(racing.count_up, [(str(tmp_path / "lake"), 20)] * WORKERS)
    assert lake.execute("SELECT v FROM t").fetchall() == [(20 * WORKERS,)]
    assert sum(map(sum, met)) > 0, "the processes never met"
    history_is_a_chain(lake)


def test_counters_through_the_application_add_up_with_conflicts(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 0 AS v")
    conflicts = racing.race(racing.count_up_looking, [(str(tmp_path / "lake"), 6)] * 3)
    assert lake.execute("SELECT v FROM t").fetchall() == [(18,)]
    assert sum(conflicts) > 0, "the processes never met"


def test_processes_create_the_same_lake_at_once(tmp_path: Path) -> None:
    found = racing.race(racing.create, [(str(tmp_path / "lake"), i) for i in range(3)])
    assert sorted(found) == ["first", "second", "second"]
    with lakelite.connect(tmp_path / "lake", create=False) as con:
        assert rows(con, "SHOW TABLES") == [("own_0",), ("own_1",), ("own_2",), ("wanted",)]
        assert rows(con, "FROM own_0 UNION ALL FROM own_1 UNION ALL FROM own_2") == [(0,), (1,), (2,)]


def test_threads_share_a_connection(lake: Any) -> None:
    lake.execute("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t VALUES (0, 0)")
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(5):
                lake.execute("INSERT INTO t VALUES (?, ?)", [number, i])
                lake.execute("UPDATE t SET v = v + 1 WHERE k = 0")
                assert lake.execute("SELECT count(*) FROM t WHERE k = ?", [number]).fetchone() == (i + 1,)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert rows(lake, "FROM t") == [(0, 20), *((n, i) for n in range(1, 5) for i in range(5))]


def test_threads_with_a_connection_each(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t AS SELECT 0 AS v")
    failed: list[BaseException] = []
    barrier = threading.Barrier(3)

    def work() -> None:
        try:
            racing.count_up(barrier, str(tmp_path / "lake"), 8)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert lake.execute("SELECT v FROM t").fetchall() == [(24,)]


def test_a_long_transaction_behind_fifty_winners(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t SELECT range, 0 FROM range(100)")
    changes = ("INSERT INTO t VALUES (?, 0)", "DELETE FROM t WHERE k = ?", "UPDATE t SET v = v + 5 WHERE k = ?")
    with lakelite.connect(tmp_path / "lake") as m:
        m.execute("DELETE FROM t WHERE k % 2 = 1")
        m.execute("UPDATE t SET v = v + 1 WHERE k < 10")
        m.execute("INSERT INTO t SELECT 1000, count(*) FROM t")
        for i in range(50):
            lake.execute(changes[i % 3], [i if i % 3 else 200 + i])
        m.commit()
        assert m.last_commit.snapshot_id - m.last_commit.base_snapshot_id >= 51
        assert m.last_commit.attempts == 2
        assert len(m.last_commit.resolutions) >= 50
    deleted, moved = set(range(1, 50, 3)), set(range(2, 50, 3))
    want = [(k, (5 if k in moved else 0) + (k < 10)) for k in range(0, 100, 2) if k not in deleted]
    want += [(200 + i, 0) for i in range(0, 50, 3) if (200 + i) % 2 == 0]
    assert rows(lake, "FROM t") == [*want, (1000, len(want))]


def test_a_long_transaction_that_only_deletes_needs_no_replay(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (k INTEGER); INSERT INTO t SELECT range FROM range(100)")
    with lakelite.connect(tmp_path / "lake") as m:
        assert m.execute("DELETE FROM t WHERE k < 60").rowcount == 60
        for i in range(50):
            lake.execute("DELETE FROM t WHERE k = ?", [i])
        m.commit()
        assert m.last_commit.attempts == 1
        assert {r.row_count for r in m.last_commit.resolutions} == {1}
    assert rows(lake, "FROM t") == [(k,) for k in range(60, 100)]


def test_a_long_transaction_whose_rows_were_handed_out_conflicts_with_each_winner_named(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (1), (2), (3)")
    with lakelite.connect(tmp_path / "lake") as m:
        m.execute("SELECT * FROM t").fetchall()
        m.execute("INSERT INTO t VALUES (4)")
        for k in (1, 2):
            lake.execute("DELETE FROM t WHERE k = ?", [k])
        with pytest.raises(lakelite.TransactionConflict) as caught:
            m.commit()
    assert [c.winner_snapshot_id for c in caught.value.conflicts] == [3, 4]
    assert rows(lake, "FROM t") == [(3,)]


def test_processes_that_upsert_the_same_keys(lake: Any, tmp_path: Path) -> None:
    keys, times = 3, 12
    lake.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)")
    racing.race(racing.upsert, [(str(tmp_path / "lake"), keys, times) for _ in range(3)])
    assert rows(lake, "FROM t") == [(k, 3 * times // keys) for k in range(keys)] + [(100 + i, 0) for i in range(times)]
    assert rows(lake, "CHECK LAKE") == []
