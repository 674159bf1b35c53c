"""MERGE BRANCH: rows that come over, conflicts and who decides them, and what must hold afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from branched import BASE, answer, made, on, table
from racing import meeting

import lakelite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def con() -> Iterator[Any]:
    with made(deletes=True) as con:
        yield con


# Rows.


def test_what_only_theirs_did_comes_over(con: Any) -> None:
    on(con, "dev", "INSERT INTO t VALUES (20, 1), (21, 2); UPDATE t SET v = -1 WHERE k IN (1, 2); DELETE FROM t WHERE k = 3; OPTIMIZE t")
    con.execute("UPDATE t SET v = 55 WHERE k = 5; DELETE FROM t WHERE k = 6; INSERT INTO t VALUES (30, 3)")
    dry = answer(con, "MERGE BRANCH dev DRY RUN")
    assert dry == [("t", 2, 2, 1, 0, "")]
    assert table(con) == {**{k: v for k, v in BASE.items() if k != 6}, 5: 55, 30: 3}
    cursor = con.execute("MERGE BRANCH dev")
    assert [c[0] for c in cursor.description] == ["table_name", "rows_added", "rows_updated", "rows_deleted", "conflicts", "what"]
    assert cursor.fetchall() == dry
    merged = {**{k: v for k, v in BASE.items() if k not in (3, 6)}, 1: -1, 2: -1, 5: 55, 20: 1, 21: 2, 30: 3}
    assert table(con) == merged
    last = "SELECT operation, merge_parent_id, rows_added, rows_removed FROM lake.snapshots WHERE snapshot_id = ?"
    head = answer(con, "SELECT head_snapshot_id FROM lake.branches WHERE name = 'dev'")[0][0]
    assert answer(con, last, [con.last_commit.snapshot_id]) == [("MERGE BRANCH", head, 4, 3)]
    assert answer(con, "SELECT * FROM lake.merge_conflicts") == []
    assert answer(con, "CHECK LAKE") == []


def test_a_conflict_names_what_changed_that_table(con: Any) -> None:
    con.execute("CREATE TABLE other (x INTEGER)")
    on(con, "dev", "MERGE BRANCH main; UPDATE t SET v = -1 WHERE k = 1; INSERT INTO other VALUES (5)")
    con.execute("UPDATE t SET v = -2 WHERE k = 1")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        con.execute("MERGE BRANCH dev")
    assert [c.winner_statement for c in caught.value.conflicts] == ["UPDATE t SET v = -1 WHERE k = 1"]


def test_a_second_merge_takes_only_what_is_new(con: Any) -> None:
    on(con, "dev", "UPDATE t SET v = -1 WHERE k = 1; INSERT INTO t VALUES (20, 1)")
    con.execute("MERGE BRANCH dev")
    before = con.last_commit.snapshot_id
    assert answer(con, "MERGE BRANCH dev") == []
    assert con.last_commit.snapshot_id == before
    con.execute("UPDATE t SET v = 7 WHERE k = 1; DELETE FROM t WHERE k = 20")  # ours goes on from there
    on(con, "dev", "UPDATE t SET v = -2 WHERE k = 2")
    assert answer(con, "MERGE BRANCH dev") == [("t", 0, 1, 0, 0, "")]
    assert (table(con)[1], table(con)[2], 20 in table(con)) == (7, -2, False)
    on(con, "dev", "MERGE BRANCH main")
    assert answer(con, "SELECT * FROM t AT (BRANCH => 'dev') EXCEPT SELECT * FROM t") == []
    assert answer(con, "MERGE BRANCH dev") == []  # the merge there brought nothing that is not here
    assert answer(con, "CHECK LAKE") == []


def test_rows_keep_their_ids(con: Any) -> None:
    on(con, "dev", "UPDATE t SET v = -1 WHERE k = 1")
    con.execute("MERGE BRANCH dev")
    on(con, "dev", "UPDATE t SET v = -2 WHERE k = 1")  # the same row still, on both
    con.execute("MERGE BRANCH dev")
    changes = answer(con, "SELECT change_type, v FROM table_changes('t', ?, ?) ORDER BY 1", [con.last_commit.snapshot_id] * 2)
    assert changes == [("update_postimage", -2), ("update_preimage", -1)]


def test_rows_that_were_deleted_or_changed_alike_are_no_conflict(con: Any) -> None:
    both = "DELETE FROM t WHERE k = 1; UPDATE t SET v = 5 WHERE k = 2"
    on(con, "dev", both + "; UPDATE t SET v = v + 1 WHERE k = 3; UPDATE t SET v = v - 1 WHERE k = 3")
    con.execute(both)
    con.execute("UPDATE t SET v = 0 WHERE k = 3")
    assert answer(con, "MERGE BRANCH dev") == []  # theirs brought 3 back to what it was
    assert con.last_commit.snapshot_id == answer(con, "SELECT max(snapshot_id) FROM lake.snapshots")[0][0]
    assert table(con) == {**{k: v for k, v in BASE.items() if k != 1}, 2: 5, 3: 0}


# Conflicts.


@pytest.fixture
def torn(con: Any) -> Any:
    """1: both updated; 2: updated here, deleted there; 3: the other way round; 4, 20: theirs alone."""
    on(con, "dev", "UPDATE t SET v = -1 WHERE k IN (1, 3, 4); DELETE FROM t WHERE k = 2; INSERT INTO t VALUES (20, 1)")
    con.execute("UPDATE t SET v = 99 WHERE k IN (1, 2); DELETE FROM t WHERE k = 3")
    return con


def test_a_conflict_names_what_both_changed_and_nothing_happens(torn: Any) -> None:
    before = table(torn)
    with pytest.raises(lakelite.TransactionConflict) as caught:
        torn.execute("MERGE BRANCH dev")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.table, conflict.rows, conflict.keys) == ("merge conflict", "t", 3, ("k: 1", "k: 2", "k: 3"))
    assert conflict.explanation == "3 rows were changed on both branches, and not alike (k: 1, k: 2, k: 3)"
    assert "ON CONFLICT OURS or THEIRS" in str(caught.value)
    assert caught.value.sqlstate == "40001"
    assert table(torn) == before
    shown = answer(torn, "SELECT table_name, kind, base, ours, theirs FROM lake.merge_conflicts ORDER BY row_id")
    assert [(name, kind, *(text and json.loads(text) for text in versions)) for name, kind, *versions in shown] == [
        ("t", "both updated", {"k": 1, "v": 10}, {"k": 1, "v": 99}, {"k": 1, "v": -1}),
        ("t", "updated here, deleted there", {"k": 2, "v": 20}, {"k": 2, "v": 99}, None),
        ("t", "deleted here, updated there", {"k": 3, "v": 30}, None, {"k": 3, "v": -1}),
    ]
    assert answer(torn, "SELECT count(*) FROM lake.merge_conflicts WHERE ours IS NULL") == [(1,)]
    with pytest.raises(lakelite.TransactionConflict):
        torn.execute("MERGE BRANCH dev ON CONFLICT FAIL")


@pytest.mark.parametrize(("side", "expected"), [("OURS", {1: 99, 2: 99}), ("THEIRS", {1: -1, 3: -1})])
def test_one_side_decides_all(torn: Any, side: str, expected: dict[int, int]) -> None:
    assert answer(torn, f"MERGE BRANCH dev DRY RUN ON CONFLICT {side}") == [("t", 1, 1, 0, 3, "")]
    torn.execute(f"MERGE BRANCH dev ON CONFLICT {side}")
    rest = {k: v for k, v in BASE.items() if k not in (1, 2, 3)}
    assert table(torn) == {**rest, 4: -1, 20: 1, **expected}
    assert answer(torn, "SELECT count(*) FROM lake.merge_conflicts") == [(3,)]
    assert answer(torn, "MERGE BRANCH dev") == []
    assert answer(torn, "CHECK LAKE") == []


def test_single_rows_are_decided_by_making_them_alike(torn: Any) -> None:
    torn.execute("UPDATE t SET v = d.v FROM t AT (BRANCH => 'dev') AS d WHERE t.k = d.k AND t.k = 1; DELETE FROM t WHERE k = 2")  # theirs
    on(torn, "dev", "DELETE FROM t WHERE k = 3")  # ours
    torn.execute("MERGE BRANCH dev")
    assert table(torn) == {**{k: v for k, v in BASE.items() if k not in (2, 3)}, 1: -1, 4: -1, 20: 1}


def test_values_that_are_equal_and_not_the_same(path: Path) -> None:
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE f (k INTEGER, x DOUBLE, i INTERVAL, s STRUCT(a DOUBLE))")
        con.execute("INSERT INTO f VALUES (1, 0.0, INTERVAL 1 MONTH, {'a': 0.0}), (2, 'nan', NULL, NULL), (3, 0, INTERVAL 1 MONTH, NULL)")
        con.execute("CREATE BRANCH dev")
        on(
            con,
            "dev",
            "UPDATE f SET x = '-0.0'::DOUBLE WHERE k = 1; UPDATE f SET x = 'nan' WHERE k = 2; UPDATE f SET i = INTERVAL 30 DAYS WHERE k = 3",
        )
        con.execute("UPDATE f SET i = INTERVAL 2 DAYS WHERE k = 2")
        con.execute("MERGE BRANCH dev")
        assert answer(con, "SELECT x::VARCHAR, i::VARCHAR FROM f ORDER BY k") == [("-0.0", "1 month"), ("nan", "2 days"), ("0.0", "30 days")]


# What must hold.


def test_a_key_that_both_gave_is_a_conflict(con: Any) -> None:
    on(con, "dev", "INSERT INTO t VALUES (40, 1), (50, 5)")
    con.execute("INSERT INTO t VALUES (40, 2), (50, 5); UPDATE t SET v = 7 WHERE k = 1")
    with pytest.raises(lakelite.TransactionConflict, match=r"row has on the other branch \(k: 40\)"):
        con.execute("MERGE BRANCH dev")
    shown = "SELECT table_name, kind, key, base, ours::JSON, theirs::JSON FROM lake.merge_conflicts"
    assert answer(con, shown) == [("t", "key taken on both", "k: 40", None, '{"k":40,"v":2}', '{"k":40,"v":1}')]
    assert answer(con, "MERGE BRANCH dev DRY RUN") == [("t", 0, 0, 0, 1, "")]  # (50, 5) is the same on both
    con.execute("CREATE BRANCH kept; MERGE BRANCH dev ON CONFLICT THEIRS")
    assert table(con) == {**BASE, 1: 7, 40: 1, 50: 5}
    con.execute("USE BRANCH kept; MERGE BRANCH dev ON CONFLICT OURS")
    assert table(con) == {**BASE, 1: 7, 40: 2, 50: 5}
    con.execute("USE BRANCH main")


def test_a_row_that_meets_two_rows(con: Any) -> None:
    con.execute("CREATE TABLE u (a INTEGER, b INTEGER, c INTEGER UNIQUE, s VARCHAR, UNIQUE (a, b)); DROP BRANCH dev; CREATE BRANCH dev")
    on(con, "dev", "INSERT INTO u VALUES (1, 1, 5, 'dev'), (1, NULL, NULL, 'x')")
    con.execute("INSERT INTO u VALUES (1, 1, 4, 'one'), (1, 2, 5, 'two'), (1, NULL, NULL, 'y')")
    assert answer(con, "MERGE BRANCH dev DRY RUN") == [("u", 1, 0, 0, 1, "")]
    ((key, ours),) = answer(con, "SELECT key, ours FROM lake.merge_conflicts")
    assert (key, [row["s"] for row in json.loads(ours)]) == ("a: 1, b: 1; c: 5", ["one", "two"])
    con.execute("UPDATE lake.merge_conflicts SET resolution = 'theirs'")
    con.execute("UPDATE u SET s = 'three' WHERE s = 'two'")  # what the choice was made between is no more
    with pytest.raises(lakelite.TransactionConflict):
        con.execute("MERGE BRANCH dev")
    con.execute("UPDATE lake.merge_conflicts SET resolution = 'theirs'; MERGE BRANCH dev")
    assert answer(con, "SELECT s FROM u ORDER BY s") == [("dev",), ("x",), ("y",)]
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(("side", "three"), [("OURS", 33), ("THEIRS", 3)])
def test_all_rows_replaced_there_and_one_changed_here(con: Any, side: str, three: int) -> None:
    on(con, "dev", "INSERT OVERWRITE t SELECT r, r FROM range(4) q(r)")
    con.execute("UPDATE t SET v = 33 WHERE k = 3")
    con.execute(f"MERGE BRANCH dev ON CONFLICT {side}")
    assert table(con) == {0: 0, 1: 1, 2: 2, 3: three}


def test_a_key_that_a_winner_gives_during_the_merge(path: Path) -> None:
    with made(path) as con, lakelite.connect(path, autocommit=True) as other:
        on(con, "dev", "INSERT INTO t VALUES (40, 1)")
        with meeting(lambda: other.execute("INSERT INTO t VALUES (40, 2)")), pytest.raises(lakelite.TransactionConflict, match="k: 40"):
            con.execute("MERGE BRANCH dev")
        with meeting(lambda: other.execute("UPDATE t SET v = 3 WHERE k = 40")):
            con.execute("MERGE BRANCH dev ON CONFLICT THEIRS")
        assert table(con)[40] == 1
        assert answer(con, "CHECK LAKE") == []


def test_constraints_of_either_side_hold_for_the_rows_of_both(con: Any) -> None:
    on(con, "dev", "INSERT INTO t VALUES (41, NULL)")
    con.execute("UPDATE t SET v = 1 WHERE k = 1; ALTER TABLE t ALTER v SET NOT NULL")
    with pytest.raises(lakelite.IntegrityError, match=r't\.v: the row {"k":41,"v":null} of branch dev breaks it'):
        con.execute("MERGE BRANCH dev")
    con.execute("ALTER TABLE t ALTER v DROP NOT NULL; ALTER TABLE t ADD CONSTRAINT small CHECK (v < 1000)")
    on(con, "dev", "INSERT INTO t VALUES (42, 2000)")
    with pytest.raises(lakelite.IntegrityError, match=r'"small" failed on table "t" .*: the row {"k":42,"v":2000} of branch dev breaks it') as caught:
        con.execute("MERGE BRANCH dev")
    assert "on branch dev first" in str(caught.value)
    on(con, "dev", "DELETE FROM t WHERE k = 42")
    con.execute("MERGE BRANCH dev; INSERT INTO t VALUES (43, NULL)")
    on(con, "dev", "UPDATE t SET v = 0 WHERE v IS NULL; ALTER TABLE t ALTER v SET NOT NULL")
    with pytest.raises(lakelite.IntegrityError, match=r'the row {"k":43,"v":null} of the branch that you are on breaks it'):
        con.execute("MERGE BRANCH dev")
    con.execute("DELETE FROM t WHERE k = 43; MERGE BRANCH dev")
    with pytest.raises(lakelite.IntegrityError, match="NOT NULL"):
        con.execute("INSERT INTO t VALUES (44, NULL)")
    with pytest.raises(lakelite.IntegrityError, match="small"):  # ours added a CHECK, and theirs NOT NULL: both hold
        con.execute("INSERT INTO t VALUES (44, 2000)")
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        ("INSERT INTO t VALUES (60, 5), (61, 5)", "ALTER TABLE t ADD UNIQUE (v)", "v: 5.*rows of branch dev share it"),
        ("ALTER TABLE t ADD UNIQUE (v)", "INSERT INTO t VALUES (60, 5), (61, 5)", "v: 5.*rows of the branch that you are on share it"),
        ("INSERT INTO t VALUES (60, 5000)", "ALTER TABLE t ADD CHECK (v < 5000)", '{"k":60,"v":5000} of branch dev breaks it'),
        ("ALTER TABLE t ADD CHECK (v < 5000)", "INSERT INTO t VALUES (60, 5000)", '{"k":60,"v":5000} of the branch that you are on breaks it'),
        ("INSERT INTO t VALUES (60, NULL)", "ALTER TABLE t ALTER v SET NOT NULL", '{"k":60,"v":null} of branch dev breaks it'),
    ],
)
def test_a_dry_run_lists_what_rows_break(con: Any, theirs: str, ours: str, told: str) -> None:
    on(con, "dev", theirs)
    con.execute(ours)
    (line,) = answer(con, "MERGE BRANCH dev DRY RUN")
    assert line[4] == 1
    assert re.search(told, line[5])
    ((table_name, row_id, kind),) = answer(con, "SELECT table_name, row_id, kind FROM lake.merge_conflicts")
    assert (table_name, row_id) == ("t", None)
    assert re.search(told, kind)
    with pytest.raises(lakelite.NotSupportedError, match="is not decided"):
        con.execute("UPDATE lake.merge_conflicts SET resolution = 'ours'")
    for how in ("", "ON CONFLICT THEIRS"):
        with pytest.raises(lakelite.IntegrityError, match=told):
            con.execute(f"MERGE BRANCH dev {how}")
