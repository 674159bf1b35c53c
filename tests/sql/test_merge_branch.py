"""MERGE BRANCH: rows and tables that come over, conflicts and who decides them, what must hold afterwards, and winners that it meets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from racing import flush, meeting

import lakelite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def made(path: Path | str = ":memory:", *, inline_rows: int = 1000, deletes: bool = False) -> Any:
    """A lake with a table of ten rows and a branch of it; its connection is on main."""
    con = lakelite.connect(path, autocommit=True)
    con.execute(f"SET inline_rows = {inline_rows}")
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)")
    con.execute("INSERT INTO t SELECT r, r * 10 FROM range(12) q(r)")
    if deletes:
        con.execute("DELETE FROM t WHERE k IN (10, 11)")
    con.execute("CREATE BRANCH dev")
    return con


@pytest.fixture
def con() -> Iterator[Any]:
    with made(deletes=True) as con:
        yield con


def on(con: Any, branch: str, script: str) -> None:
    """Runs a script on a branch, and comes back to main."""
    con.execute(f"USE BRANCH {branch}")
    con.executescript(script)
    con.execute("USE BRANCH main")


def answer(con: Any, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = con.execute(sql, parameters).fetchall()
    return found


def table(con: Any, name: str = "t") -> dict[Any, Any]:
    return {row[0]: row[1] if len(row) == 2 else row[1:] for row in answer(con, f"SELECT * FROM {name}")}


BASE = {k: k * 10 for k in range(10)}


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


# Tables, columns, schemas and views.


def test_tables_and_views_come_and_go_with_it(con: Any) -> None:
    con.execute("CREATE TABLE gone (a INTEGER); CREATE TABLE stays (a INTEGER); CREATE SCHEMA empty; CREATE SCHEMA filled")
    on(con, "dev", "MERGE BRANCH main")
    script = (
        "CREATE SCHEMA s; CREATE TABLE s.made AS SELECT r AS a FROM range(3000) q(r); DELETE FROM s.made WHERE a = 0; CREATE TABLE e (a INTEGER);"
    )
    script += (
        "CREATE VIEW w AS SELECT count(*) AS n FROM s.made; DROP TABLE gone; DROP SCHEMA empty; DROP SCHEMA filled; COMMENT ON TABLE t IS 'told'"
    )
    on(con, "dev", script)
    con.execute("INSERT INTO stays VALUES (1); CREATE TABLE filled.here (a INTEGER)")
    assert sorted(answer(con, "MERGE BRANCH dev")) == [
        ("e", 0, 0, 0, 0, "created"),
        ("gone", 0, 0, 0, 0, "dropped"),
        ("s.made", 2999, 0, 0, 0, "created"),
        ("t", 0, 0, 0, 0, "redefined"),
        ("w", 0, 0, 0, 0, "created"),
    ]
    assert answer(con, "SHOW TABLES") == [("e",), ("stays",), ("t",), ("w",)]
    assert answer(con, "SELECT n, (SELECT min(a) FROM s.made) FROM w") == [(2999, 1)]
    assert answer(con, "SELECT comment FROM lake.tables WHERE table_name = 't'") == [("told",)]
    assert [row[1] for row in answer(con, "SHOW SCHEMAS") if row[1] in ("empty", "filled", "s")] == ["filled", "s"]
    on(con, "dev", "INSERT INTO s.made VALUES (-1)")
    assert answer(con, "MERGE BRANCH dev") == [("s.made", 1, 0, 0, 0, "")]
    assert answer(con, "CHECK LAKE") == []


def test_a_table_that_one_dropped_and_the_other_changed(con: Any) -> None:
    con.execute("CREATE TABLE a (x INTEGER); CREATE TABLE b (x INTEGER); INSERT INTO a VALUES (1); INSERT INTO b VALUES (1), (2)")
    on(con, "dev", "MERGE BRANCH main; DROP TABLE a; DELETE FROM b WHERE x = 1")
    con.execute("INSERT INTO a VALUES (2); OPTIMIZE b; DROP TABLE b")
    with pytest.raises(lakelite.TransactionConflict) as caught:
        con.execute("MERGE BRANCH dev")
    assert {(c.table, c.explanation) for c in caught.value.conflicts} == {
        ("a", "it was dropped there and changed here (here: rows changed; there: dropped)"),
        ("b", "it was dropped here and changed there (here: dropped; there: rows changed)"),
    }
    assert answer(con, "SELECT table_name, row_id FROM lake.merge_conflicts ORDER BY 1") == [("a", None), ("b", None)]
    con.execute("CREATE BRANCH kept")
    con.execute("MERGE BRANCH dev ON CONFLICT OURS")
    assert answer(con, "SHOW TABLES") == [("a",), ("t",)]
    con.execute("USE BRANCH kept; MERGE BRANCH dev ON CONFLICT THEIRS")
    assert answer(con, "SHOW TABLES") == [("b",), ("t",)]
    assert answer(con, "SELECT * FROM b") == [(2,)]
    assert answer(con, "CHECK LAKE") == []


def test_a_table_that_was_only_compacted_here_may_go(con: Any) -> None:
    con.execute("INSERT INTO t VALUES (50, 1)")
    on(con, "dev", "MERGE BRANCH main; DROP TABLE t")
    con.execute("OPTIMIZE t")
    assert answer(con, "MERGE BRANCH dev") == [("t", 0, 0, 0, 0, "dropped")]


def test_one_name_for_two_tables(con: Any) -> None:
    on(con, "dev", "CREATE TABLE n AS SELECT 1 AS theirs")
    con.execute("CREATE TABLE n AS SELECT 2 AS ours")
    with pytest.raises(lakelite.TransactionConflict, match="to this name"):
        con.execute("MERGE BRANCH dev")
    con.execute("CREATE BRANCH kept; MERGE BRANCH dev ON CONFLICT OURS")
    assert answer(con, "SELECT ours FROM n") == [(2,)]
    con.execute("USE BRANCH kept; MERGE BRANCH dev ON CONFLICT THEIRS")
    assert answer(con, "SELECT theirs FROM n") == [(1,)]
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("ALTER TABLE a RENAME TO x; ALTER TABLE b RENAME TO a; ALTER TABLE x RENAME TO b", {"a": [(2,)], "b": [(1,)], "c": [(3,)]}),
        ("ALTER TABLE c RENAME TO d; ALTER TABLE b RENAME TO c; ALTER TABLE a RENAME TO b", {"b": [(1,)], "c": [(2,)], "d": [(3,)]}),
        ("DROP TABLE b; ALTER TABLE a RENAME TO b; CREATE TABLE a AS SELECT 4 AS x", {"a": [(4,)], "b": [(1,)], "c": [(3,)]}),
    ],
)
def test_names_that_tables_pass_on(con: Any, script: str, expected: dict[str, Any]) -> None:
    con.execute("CREATE TABLE a AS SELECT 1 AS x; CREATE TABLE b AS SELECT 2 AS x; CREATE TABLE c AS SELECT 3 AS x; CREATE BRANCH d2")
    on(con, "d2", script)
    con.execute("MERGE BRANCH d2")
    assert {name: answer(con, f"FROM {name}") for (name,) in answer(con, "SHOW TABLES") if name != "t"} == expected
    assert answer(con, "CHECK LAKE") == []


def test_a_chain_of_names_of_which_one_is_taken(con: Any) -> None:
    con.execute("CREATE TABLE a AS SELECT 1 AS x; CREATE TABLE b AS SELECT 2 AS x; CREATE BRANCH d2")
    on(con, "d2", "ALTER TABLE b RENAME TO c; ALTER TABLE a RENAME TO b; INSERT INTO c VALUES (20)")
    con.execute("CREATE TABLE c AS SELECT 3 AS x")
    with pytest.raises(lakelite.TransactionConflict, match="to this name"):
        con.execute("MERGE BRANCH d2")
    con.execute("CREATE BRANCH kept; MERGE BRANCH d2 ON CONFLICT OURS")
    assert [answer(con, f"FROM {name}") for name in "abc"] == [[(1,)], [(2,), (20,)], [(3,)]]
    con.execute("USE BRANCH kept; MERGE BRANCH d2 ON CONFLICT THEIRS")
    assert [answer(con, f"FROM {name}") for name in "bc"] == [[(1,)], [(2,), (20,)]]
    assert answer(con, "SHOW TABLES") == [("b",), ("c",), ("t",)]
    assert answer(con, "CHECK LAKE") == []


def test_columns_that_either_side_added(con: Any) -> None:
    on(con, "dev", "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7; UPDATE t SET w = 8 WHERE k = 1; INSERT INTO t VALUES (20, 2, 9)")
    con.execute("ALTER TABLE t ADD COLUMN x VARCHAR DEFAULT 'd'; UPDATE t SET x = 'e' WHERE k = 2; INSERT INTO t VALUES (30, 3, 'f')")
    assert answer(con, "MERGE BRANCH dev") == [("t", 1, 1, 0, 0, "redefined")]
    found = answer(con, "SELECT k, v, w, x FROM t WHERE k IN (1, 2, 3, 20, 30) ORDER BY k")
    assert found == [(1, 10, 8, "d"), (2, 20, 7, "e"), (3, 30, 7, "d"), (20, 2, 9, "d"), (30, 3, 7, "f")]
    assert answer(con, "CHECK LAKE") == []


def test_what_only_theirs_redefined_comes_over(con: Any) -> None:
    on(
        con,
        "dev",
        "ALTER TABLE t RENAME v TO value; ALTER TABLE t RENAME TO u; ALTER TABLE u ALTER value TYPE BIGINT; UPDATE u SET value = 1 WHERE k = 1",
    )
    con.execute("UPDATE t SET v = 5 WHERE k = 2")
    assert answer(con, "MERGE BRANCH dev") == [("u", 0, 1, 0, 0, "redefined")]
    assert answer(con, "SELECT value FROM u WHERE k IN (1, 2) ORDER BY k") == [(1,), (5,)]
    on(con, "dev", "MERGE BRANCH main; ALTER TABLE u DROP COLUMN value")
    con.execute("MERGE BRANCH dev")
    assert [row[0] for row in con.execute("SELECT * FROM u").description] == ["k"]
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(
    "alter",
    [
        "ALTER TABLE t ALTER v TYPE VARCHAR",
        "ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 5; ALTER TABLE t ADD CONSTRAINT c CHECK (x > 0); ALTER TABLE t ADD UNIQUE (k, x)",
        "ALTER TABLE t ADD COLUMN s STRUCT(a INTEGER); ALTER TABLE t ADD COLUMN s.b INTEGER; UPDATE t SET s = {'a': k, 'b': v}",
        "DELETE FROM t; ALTER TABLE t DROP COLUMN v; ALTER TABLE t ADD COLUMN v DOUBLE",
    ],
)
def test_definitions_that_both_changed_alike(con: Any, alter: str) -> None:
    on(con, "dev", alter)
    con.executescript(alter)
    assert answer(con, "MERGE BRANCH dev") == [("t", 0, 0, 0, 0, "changed alike")]
    on(con, "dev", "INSERT INTO t (k, v) VALUES (70, 7)")  # and both know the same column from here on
    con.execute("INSERT INTO t (k, v) VALUES (71, 8); MERGE BRANCH dev")
    on(con, "dev", "MERGE BRANCH main")
    assert sorted(answer(con, "FROM t AT (BRANCH => 'dev')"), key=str) == sorted(answer(con, "FROM t"), key=str)
    assert [row[:2] for row in answer(con, "SELECT k, v::INTEGER FROM t WHERE k >= 70 ORDER BY k")] == [(70, 7), (71, 8)]
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ALTER TABLE t ALTER v TYPE VARCHAR USING v + 1", "ALTER TABLE t ALTER v TYPE VARCHAR"),
        ("ALTER TABLE t ALTER v TYPE VARCHAR; UPDATE t SET v = 'other' WHERE k = 1", "ALTER TABLE t ALTER v TYPE VARCHAR"),
        ("ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 5", "ALTER TABLE t ADD COLUMN x INTEGER; ALTER TABLE t ALTER x SET DEFAULT 5"),
    ],
)
def test_definitions_alike_and_rows_that_are_not(con: Any, theirs: str, ours: str) -> None:
    on(con, "dev", theirs)
    con.executescript(ours)
    before = table(con)
    with pytest.raises(lakelite.TransactionConflict, match="both branches added a column"):
        con.execute("MERGE BRANCH dev")
    con.execute("MERGE BRANCH dev ON CONFLICT OURS")
    assert table(con) == before


@pytest.mark.parametrize(("side", "columns"), [("OURS", ["k", "v", "x"]), ("THEIRS", ["k", "renamed", "x"])])
def test_definitions_that_do_not_go_together(con: Any, side: str, columns: list[str]) -> None:
    on(con, "dev", "ALTER TABLE t RENAME v TO renamed; ALTER TABLE t ADD COLUMN x INTEGER; UPDATE t SET x = 1")
    con.execute("ALTER TABLE t ADD COLUMN x VARCHAR; ALTER TABLE t ALTER x SET DEFAULT 'd'; ALTER TABLE t ADD CONSTRAINT c CHECK (v < 1000)")
    with pytest.raises(lakelite.TransactionConflict, match="definition"):
        con.execute("MERGE BRANCH dev")
    here = 'column x VARCHAR added, CONSTRAINT "c" CHECK((v < 1000)) added'
    there = "column v renamed to renamed, column x INTEGER added, rows changed"
    (line,) = answer(con, "MERGE BRANCH dev DRY RUN")
    assert line[:5] == ("t", 0, 0, 0, 1)
    assert line[5] == f"both branches added a column x to its definition: DROP it on one of them first (here: {here}; there: {there})"
    assert answer(con, "SELECT row_id, base, ours, theirs FROM lake.merge_conflicts") == [(None, None, here, there)]
    con.execute(f"MERGE BRANCH dev ON CONFLICT {side}")
    assert [row[0] for row in con.execute("SELECT * FROM t").description] == columns
    assert answer(con, "SELECT count(*), count(x) FROM t") == [(10, 0 if side == "OURS" else 10)]
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize("side", ["OURS", "THEIRS"])
def test_rows_that_one_wrote_anew_for_another_type(con: Any, side: str) -> None:
    on(con, "dev", "ALTER TABLE t ALTER v TYPE VARCHAR")
    con.execute("CREATE BRANCH untouched; UPDATE t SET v = 1 WHERE k = 1")
    with pytest.raises(lakelite.TransactionConflict, match="written anew"):
        con.execute("MERGE BRANCH dev")
    con.execute(f"MERGE BRANCH dev ON CONFLICT {side}")
    assert answer(con, "SELECT count(*), max(v) FILTER (k = 1) FROM t") == [(10, 1 if side == "OURS" else "10")]
    con.execute("USE BRANCH untouched; MERGE BRANCH dev")
    assert answer(con, "SELECT v FROM t WHERE k = 1") == [("10",)]
    assert answer(con, "CHECK LAKE") == []


RETYPE = "ALTER TABLE t ALTER v TYPE VARCHAR"
REPLACE = "CREATE OR REPLACE TABLE t AS SELECT k, v::VARCHAR AS v FROM t"


def shown(con: Any, branch: str) -> tuple[list[str], list[Any]]:
    """Columns and rows of t on a branch."""
    con.execute(f"USE BRANCH {branch}")
    cursor = con.execute("FROM t ORDER BY k")
    return [c[0] for c in cursor.description], cursor.fetchall()


@pytest.fixture(scope="module")
def pairs() -> Iterator[Callable[[str, str], tuple[Any, str]]]:
    """Makes a branch `theirs…`, `ours…` and `kept…` (as ours) of one table, by what is done on them; gives the connection, and what their names end in."""
    numbers = count()
    with lakelite.connect(autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER, v INTEGER, w VARCHAR); INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')")

        def make(theirs: str, ours: str) -> tuple[Any, str]:
            n = str(next(numbers))
            con.executescript(f"CREATE BRANCH theirs{n} AT BRANCH main; USE BRANCH theirs{n}; {theirs}")
            con.executescript(f"CREATE BRANCH ours{n} AT BRANCH main; USE BRANCH ours{n}; {ours}; CREATE BRANCH kept{n}")
            return con, n

        yield make


@pytest.mark.parametrize(
    "other",
    [
        "ALTER TABLE t RENAME v TO vv",
        "ALTER TABLE t ALTER v TYPE BIGINT; UPDATE t SET v = 5000000000",
        "ALTER TABLE t ADD COLUMN z INTEGER; INSERT INTO t (k) VALUES (9)",
        "DELETE FROM t WHERE k = 1",
        "UPDATE t SET v = 7 WHERE k = 1",
    ],
)
@pytest.mark.parametrize("anew", [RETYPE, REPLACE])
@pytest.mark.parametrize("there", [True, False])
def test_rows_go_with_the_definition_that_they_were_written_for(pairs: Any, anew: str, other: str, there: bool) -> None:
    con, n = pairs(anew, other) if there else pairs(other, anew)
    alone = {"THEIRS": shown(con, f"theirs{n}"), "OURS": shown(con, f"ours{n}")}
    with pytest.raises(lakelite.TransactionConflict):
        con.execute(f"MERGE BRANCH theirs{n}")
    for branch, side in (("ours", "OURS"), ("kept", "THEIRS")):
        con.execute(f"USE BRANCH {branch}{n}; MERGE BRANCH theirs{n} ON CONFLICT {side}")
        assert shown(con, branch + n) == alone[side]
    con.execute(f"USE BRANCH theirs{n}; MERGE BRANCH ours{n}")  # what ours decided comes back without a conflict
    assert shown(con, f"theirs{n}") == alone["OURS"]
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize("other", ["ALTER TABLE t DROP COLUMN w; OPTIMIZE t", "ALTER TABLE t SET PARTITIONED BY (k)", "COMMENT ON TABLE t IS 'x'"])
@pytest.mark.parametrize("anew", [RETYPE, REPLACE])
@pytest.mark.parametrize("there", [True, False])
def test_rows_that_were_written_anew_go_with_what_the_other_did_to_the_definition(pairs: Any, anew: str, other: str, there: bool) -> None:
    con, n = pairs(anew, other) if there else pairs(other, anew)
    con.execute(f"MERGE BRANCH theirs{n}")
    columns = ["k", "v"] if anew == REPLACE or "DROP" in other else ["k", "v", "w"]
    rows = [(1, "1", "a"), (2, "2", "b")]
    assert shown(con, f"ours{n}") == (columns, [row[: len(columns)] for row in rows])
    told = "".join(row[0] for row in answer(con, "SHOW CREATE TABLE t")) + str(answer(con, "SELECT comment FROM lake.tables"))
    assert ("PARTITIONED BY (k)" in told, "'x'" in told) == ("PARTITIONED" in other, "COMMENT" in other)
    con.execute(f"INSERT INTO t (k, v) VALUES (3, 'c'); USE BRANCH theirs{n}; MERGE BRANCH ours{n}")
    assert shown(con, f"theirs{n}") == shown(con, f"ours{n}")
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(
    ("theirs", "ours", "columns"),
    [
        ("RENAME v TO x", "RENAME w TO y", ["k", "x", "y"]),
        ("RENAME w TO y; RENAME v TO w", "RENAME w TO y", ["k", "w", "y"]),  # a name that is passed on
        ("RENAME v TO x; RENAME w TO v; RENAME x TO w", "ALTER v TYPE BIGINT; ALTER w SET DEFAULT 'd'", ["k", "w", "v"]),  # swapped
        ("RENAME v TO x", "ALTER v SET DEFAULT 5; ALTER v SET NOT NULL", ["k", "x", "w"]),
        ("DROP COLUMN w; ADD COLUMN a INTEGER", "ADD COLUMN b INTEGER; RENAME v TO x", ["k", "x", "b", "a"]),
        ("ADD CONSTRAINT a CHECK (v > 0)", "ADD CONSTRAINT b CHECK (k > 0); RENAME w TO x", ["k", "v", "x"]),
        ("DROP COLUMN w", "DROP COLUMN w; ADD COLUMN w INTEGER", ["k", "v", "w"]),
        ("ALTER w TYPE INTEGER USING k", "ADD COLUMN x INTEGER; RENAME v TO y", ["k", "y", "w", "x"]),
    ],
)
def test_definitions_that_go_together(pairs: Any, theirs: str, ours: str, columns: list[str]) -> None:
    con, n = pairs(*("; ".join(f"ALTER TABLE t {one}" for one in script.split("; ")) for script in (theirs, ours)))
    con.execute(f"MERGE BRANCH theirs{n}")
    names, rows = shown(con, f"ours{n}")
    assert (names, [row[0] for row in rows]) == (columns, [1, 2])
    con.execute(f"INSERT INTO t ({columns[0]}, {columns[1]}) VALUES (3, 3); USE BRANCH theirs{n}; MERGE BRANCH ours{n}")
    assert shown(con, f"theirs{n}") == shown(con, f"ours{n}")
    assert answer(con, "SHOW CREATE TABLE t") == answer(con, "SHOW CREATE TABLE t AT (BRANCH => 'ours" + n + "')")
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("RENAME v TO x", "RENAME v TO y"),
        ("RENAME v TO x", "RENAME w TO x"),  # one name for two columns
        ("RENAME v TO x", "DROP COLUMN v"),
        ("RENAME v TO x", "ADD CONSTRAINT a CHECK (v > 0)"),  # it says v
        ("ALTER v SET DEFAULT 1", "ALTER v SET DEFAULT 2"),
        ("ADD CONSTRAINT a CHECK (v > 0)", "ADD CONSTRAINT a CHECK (k > 0)"),
        ("ADD PRIMARY KEY (k)", "ADD PRIMARY KEY (v)"),
        ("SET PARTITIONED BY (v)", "DROP COLUMN v"),
        ("SET PARTITIONED BY (bucket(4, v))", "ALTER v TYPE BIGINT"),
        ("SET (inline_rows = 1)", "SET (inline_rows = 2)"),
    ],
)
def test_definitions_of_which_one_has_to_go(pairs: Any, theirs: str, ours: str) -> None:
    con, n = pairs(f"ALTER TABLE t {theirs}", f"ALTER TABLE t {ours}")
    made = {side: answer(con, f"SHOW CREATE TABLE t AT (BRANCH => '{side}{n}')") for side in ("ours", "theirs")}
    with pytest.raises(lakelite.TransactionConflict, match="definition"):
        con.execute(f"MERGE BRANCH theirs{n}")
    for branch, side in (("ours", "OURS"), ("kept", "THEIRS")):
        con.execute(f"USE BRANCH {branch}{n}; MERGE BRANCH theirs{n} ON CONFLICT {side}")
        assert answer(con, "SHOW CREATE TABLE t") == made[side.lower()]


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ("b c; a b", "", {"b": 1, "c": 2}),
        ("a x", "b y", {"x": 1, "y": 2}),
        ("b c; a b", "b c", {"b": 1, "c": 2}),  # one of a chain, on both
        ("a x; b a; x b", "", {"a": 2, "b": 1}),
        ("INSERT INTO a VALUES (10)", "a x; b a; x b", {"a": 2, "b": 1}),  # rows follow the table
        ("a x", "a y", None),
        ("b c; a b", "b d", None),
    ],
)
def test_names_of_tables_that_both_pass_on(con: Any, theirs: str, ours: str, expected: dict[str, int] | None) -> None:
    def script(text: str) -> str:
        return "; ".join(s if " INTO " in s else "ALTER TABLE {} RENAME TO {}".format(*s.split()) for s in text.split("; ") if s)

    con.execute("DROP TABLE t; CREATE TABLE a AS SELECT 1 AS x; CREATE TABLE b AS SELECT 2 AS x; CREATE BRANCH d2")
    on(con, "d2", script(theirs))
    con.executescript(script(ours))
    if expected is None:
        with pytest.raises(lakelite.TransactionConflict):
            con.execute("MERGE BRANCH d2")
        con.execute("MERGE BRANCH d2 ON CONFLICT THEIRS")
        expected = {name: answer(con, f"SELECT min(x) FROM {name} AT (BRANCH => 'd2')")[0][0] for (name,) in answer(con, "SHOW TABLES")}
    else:
        con.execute("MERGE BRANCH d2")
    assert {name: answer(con, f"SELECT min(x) FROM {name}")[0][0] for (name,) in answer(con, "SHOW TABLES")} == expected
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(
    "drop", ["ALTER TABLE t DROP COLUMN v", "CREATE OR REPLACE TABLE t (k INTEGER)", "ALTER TABLE t DROP COLUMN v; DELETE FROM t"]
)
@pytest.mark.parametrize("there", [True, False])
def test_a_column_dropped_that_the_other_branch_gave_values(con: Any, drop: str, there: bool) -> None:
    con.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM t; CREATE BRANCH d2")  # no key
    update = "UPDATE t SET v = 9 WHERE k = 1"
    on(con, "d2", drop if there else update)
    con.execute(update if there else drop)
    con.execute("CREATE BRANCH kept")
    alone = {"THEIRS": shown(con, "d2"), "OURS": shown(con, "main")}
    with pytest.raises(lakelite.TransactionConflict, match="v was dropped on one branch"):
        con.execute("MERGE BRANCH d2")
    for branch, side in (("main", "OURS"), ("kept", "THEIRS")):
        con.execute(f"USE BRANCH {branch}; MERGE BRANCH d2 ON CONFLICT {side}")
        assert shown(con, branch) == alone[side]
    assert answer(con, "CHECK LAKE") == []


def test_a_column_dropped_with_other_changes_on_the_other_branch(con: Any) -> None:
    con.execute("ALTER TABLE t ADD COLUMN w INTEGER; CREATE BRANCH d2")
    on(con, "d2", "ALTER TABLE t DROP COLUMN w; INSERT INTO t VALUES (20, 2)")
    con.execute("UPDATE t SET v = 9 WHERE k = 1; INSERT INTO t VALUES (30, 3, 4); DELETE FROM t WHERE k = 2; OPTIMIZE t")
    con.execute("MERGE BRANCH d2")
    assert table(con) == {**{k: v for k, v in BASE.items() if k != 2}, 1: 9, 20: 2, 30: 3}


def test_a_table_replaced_through_another_branch_is_known_as_replaced(con: Any) -> None:
    con.execute("CREATE BRANCH third")
    on(con, "dev", RETYPE)
    on(con, "third", "INSERT INTO t VALUES (70, 7)")
    con.execute("MERGE BRANCH dev")
    assert table(con)[1] == "10"
    with pytest.raises(lakelite.TransactionConflict, match="written anew"):
        con.execute("MERGE BRANCH third")


def test_restored_to_another_definition(con: Any) -> None:
    version = con.last_commit.snapshot_id
    con.execute("ALTER TABLE t ALTER v TYPE VARCHAR USING v || 'x'; CREATE BRANCH later")
    on(con, "later", f"RESTORE TABLE t TO VERSION AS OF {version}")
    con.execute("CREATE BRANCH quiet; INSERT INTO t VALUES (70, 'new')")
    with pytest.raises(lakelite.TransactionConflict, match="written anew"):
        con.execute("MERGE BRANCH later")
    con.execute("USE BRANCH quiet; MERGE BRANCH later")
    assert table(con) == BASE


# Winners.

WINNERS = {
    "append": "INSERT INTO t VALUES (60, 6)",
    "delete": "DELETE FROM t WHERE k IN (5, 8)",
    "update": "UPDATE t SET v = v + 1 WHERE k IN (4, 6)",
    "same rows": "UPDATE t SET v = -1 WHERE k = 1; DELETE FROM t WHERE k = 3",
    "overwrite": "INSERT OVERWRITE t SELECT * FROM t WHERE k <> 7",
    "optimize": "OPTIMIZE t",
    "sort": "OPTIMIZE t ZORDER BY (v)",
    "add column": "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 3",
    "rename": "ALTER TABLE t RENAME TO u",
    "drop column": "ALTER TABLE t ADD COLUMN w INTEGER; ALTER TABLE t DROP COLUMN v",
    "wider type": "ALTER TABLE t ALTER v TYPE BIGINT",
    "another type": "ALTER TABLE t ALTER v TYPE VARCHAR",
    "check": "UPDATE t SET v = 9; ALTER TABLE t ADD CONSTRAINT small CHECK (v < 10)",
    "not null": "ALTER TABLE t ALTER v SET NOT NULL",
    "the same merge": "MERGE BRANCH dev",
    "another table": "CREATE TABLE other AS SELECT 1 AS a",
    "a table of that name": "CREATE TABLE new (b VARCHAR)",
    "drop": "DROP TABLE t",
    "conflict": "UPDATE t SET v = 1000 WHERE k = 1",
}
THEIRS = "INSERT INTO t VALUES (20, 1), (21, 2); UPDATE t SET v = -1 WHERE k IN (1, 2); DELETE FROM t WHERE k = 3; CREATE TABLE new AS SELECT 1 AS a"


def outcome(con: Any, merge: Any) -> Any:
    """What a merge leads to: the content of all tables, or its error."""
    try:
        merge()
    except lakelite.Error as error:
        return type(error).__name__, getattr(error, "conflicts", ())[:1] and error.conflicts[0].explanation
    names = [row[0] for row in answer(con, "SHOW TABLES")]
    return {name: sorted(map(repr, answer(con, f"FROM {name}"))) for name in names}


class Both:
    """A lake on which each case has two branches of its own: on one, a statement comes behind the winner; on the other, it meets it."""

    def __init__(self, path: Path, *, inline_rows: int, deletes: bool = False) -> None:
        self.con = made(path, inline_rows=inline_rows, deletes=deletes)
        self.other = lakelite.connect(path, autocommit=True)
        on(self.con, "dev", THEIRS)
        self.branches: dict[str, str] = {}

    def theirs(self, script: str) -> str:
        """A branch on which a script was run."""
        if script not in self.branches:
            self.branches[script] = f"theirs{len(self.branches)}"
            on(self.con, "main", f"CREATE BRANCH {self.branches[script]}")
            on(self.con, self.branches[script], script)
        return self.branches[script]

    def outcomes(self, winner: str, mine: str, before: str = "", *, flushes: bool = False) -> list[Any]:
        """What becomes of the tables, behind the winner and beside it."""
        found = []
        for way in ("behind", "meets"):
            branch = f"{way}{len(self.branches)}"
            self.branches[branch] = branch
            for one in (self.con, self.other):
                one.executescript(f"CREATE BRANCH IF NOT EXISTS {branch} AT BRANCH main; USE BRANCH {branch}")
            self.con.executescript(before)
            if flushes:
                flush(self.con, "t")
            if way == "behind":
                self.other.executescript(winner)
                found.append(outcome(self.con, lambda: self.con.execute(mine)))
            else:
                with meeting(lambda: self.other.executescript(winner)):
                    found.append(outcome(self.con, lambda: self.con.execute(mine)))
            assert answer(self.con, "CHECK LAKE") == []
        return found


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[int, bool], Both]]:
    """By how many rows are inline, and whether there are deleted ones."""
    folder = tmp_path_factory.mktemp("lakes")
    found = {
        (rows, deletes): Both(folder / f"{rows}{deletes}", inline_rows=rows, deletes=deletes)
        for rows, deletes in ((1000, False), (0, True), (0, False))
    }
    yield found
    for lake in found.values():
        lake.con.close()
        lake.other.close()


@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("kind", [(1000, False), (0, True)])
def test_a_merge_that_meets_winners_is_as_if_it_came_behind_them(lakes: dict[tuple[int, bool], Both], winner: str, kind: tuple[int, bool]) -> None:
    before = "UPDATE t SET v = 90 WHERE k = 9" if kind[0] else ""
    behind, meets = lakes[kind].outcomes(WINNERS[winner], "MERGE BRANCH dev", before, flushes=bool(kind[0]))
    assert behind == meets


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("winner", ["append", "same rows", "optimize", "another type", "drop column", "the same merge"])
def test_a_merge_that_meets_winners_at_the_other_levels(lakes: dict[tuple[int, bool], Both], isolation: str, winner: str) -> None:
    lake = lakes[1000, False]
    lake.con.execute(f"SET isolation_level = '{isolation}'")
    behind, meets = lake.outcomes(WINNERS[winner], "MERGE BRANCH dev")
    lake.con.execute("RESET isolation_level")
    assert behind == meets


REDEFINED = {  # what theirs did, and winners that decide what becomes of it
    "ALTER TABLE t ALTER v TYPE VARCHAR": ("append", "update", "optimize", "rename", "drop column", "another type"),
    "ALTER TABLE t DROP COLUMN v": ("append", "update", "optimize"),
    "ALTER TABLE t RENAME TO x; CREATE TABLE t AS SELECT 1 AS a": ("append", "rename", "drop"),
}


@pytest.mark.parametrize(("theirs", "winner"), [(theirs, winner) for theirs, winners in REDEFINED.items() for winner in winners])
@pytest.mark.parametrize("side", ["OURS", "THEIRS"])
def test_a_merge_of_another_definition_that_meets_winners(lakes: dict[tuple[int, bool], Both], theirs: str, winner: str, side: str) -> None:
    lake = lakes[0, False]
    behind, meets = lake.outcomes(WINNERS[winner], f"MERGE BRANCH {lake.theirs(theirs)} ON CONFLICT {side}")
    assert behind == meets


@pytest.mark.parametrize("winner", ["MERGE BRANCH dev", "CREATE BRANCH late; DROP BRANCH late; CREATE TAG x; DROP TAG x"])
@pytest.mark.parametrize(
    "mine",
    [
        "INSERT INTO t VALUES (70, 7)",
        "DELETE FROM t WHERE k IN (2, 20, 5)",
        "UPDATE t SET v = v + 1",
        "OPTIMIZE t ZORDER BY (v)",
        "INSERT OVERWRITE t FROM t",
    ],
)
def test_a_merge_that_wins_is_met_as_any_other(lakes: dict[tuple[int, bool], Both], mine: str, winner: str) -> None:
    behind, meets = lakes[0, False].outcomes(winner, mine, "INSERT INTO t VALUES (30, 3)")
    assert behind == meets
    assert "t" in meets  # and is no error


@pytest.mark.parametrize("mine", ["INSERT INTO t VALUES (70, 7)", "UPDATE t SET v = v + 1", "DELETE FROM t WHERE k = 1", "OPTIMIZE t ZORDER BY (v)"])
def test_a_merge_that_only_decided_a_definition_stands_in_no_ones_way(lakes: dict[tuple[int, bool], Both], mine: str) -> None:
    lake = lakes[0, False]
    theirs, con, n = lake.theirs(RETYPE), lake.con, len(lake.branches)
    lake.branches[f"decided{n}"] = f"decided{n}"
    con.execute(f"USE BRANCH main; CREATE BRANCH theirs_{n} AT BRANCH {theirs}; CREATE BRANCH ours_{n}; USE BRANCH ours_{n}")
    con.execute(f"INSERT INTO t VALUES (30, 3); CREATE BRANCH same_{n}; USE BRANCH same_{n}")
    con.executescript(f"{mine}; USE BRANCH ours_{n}")
    lake.other.execute(f"USE BRANCH ours_{n}")
    with meeting(lambda: lake.other.execute(f"MERGE BRANCH theirs_{n} ON CONFLICT OURS")):
        con.execute(mine)
    assert shown(con, f"ours_{n}") == shown(con, f"same_{n}")
    con.execute(f"USE BRANCH theirs_{n}; MERGE BRANCH ours_{n}")
    assert shown(con, f"theirs_{n}") == shown(con, f"same_{n}")
    assert answer(con, "CHECK LAKE") == []


@pytest.fixture
def kept(path: Path) -> Iterator[Any]:
    """As `con`, at a path."""
    with made(path, deletes=True) as con:
        yield con


def test_what_lands_there_meanwhile_is_for_the_next_merge(path: Path, kept: Any) -> None:
    on(kept, "dev", "INSERT INTO t VALUES (20, 1)")
    with lakelite.connect(path, autocommit=True, branch="dev") as dev:
        with meeting(lambda: (dev.execute("INSERT INTO t VALUES (21, 1)"), con_wins(path))):
            kept.execute("MERGE BRANCH dev")
        assert {20, 61} < table(kept).keys()
        assert 21 not in table(kept)
        kept.execute("MERGE BRANCH dev")
        assert 21 in table(kept)


def con_wins(path: Path) -> None:
    with lakelite.connect(path, autocommit=True) as other:
        other.execute("INSERT INTO t VALUES (61, 1)")


def test_a_branch_that_is_dropped_while_it_is_merged(path: Path, kept: Any) -> None:
    on(kept, "dev", "INSERT INTO t VALUES (20, 1)")

    def drop() -> None:
        with lakelite.connect(path, autocommit=True) as other:
            other.execute("INSERT INTO t VALUES (61, 1); DROP BRANCH dev; VACUUM RETAIN 0 HOURS")

    with meeting(drop), pytest.raises(lakelite.ProgrammingError, match='branch "dev" does not exist'):
        kept.execute("MERGE BRANCH dev")
    assert answer(kept, "CHECK LAKE") == []
