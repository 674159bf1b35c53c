"""MERGE BRANCH where one branch added or dropped a field inside of a column, which writes all rows anew, and the other changed rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from racing import meeting

import lakelite
from lakelite.model import Column
from lakelite.storage import types
from lakelite.storage.fields import dropped_fields, inherited, is_descendant

ROWS = "UPDATE t SET v = 10 WHERE k = 1; DELETE FROM t WHERE k = 2; INSERT INTO t (k, v) VALUES (9, 9); UPDATE t SET s = struct_update(s, a := 30) WHERE k = 3"
_NUMBERS = count()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake") / "lake"


@pytest.fixture(scope="module")
def con(path: Path) -> Iterator[Any]:
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER, s STRUCT(a INTEGER, b VARCHAR, x STRUCT(y HUGEINT), l STRUCT(p INTEGER, q INTEGER)[]), v INTEGER)")
        con.execute("INSERT INTO t SELECT r, {'a': r, 'b': 'x', 'x': {'y': r}, 'l': [{'p': r, 'q': 0}]}, r FROM range(6) q(r)")
        con.execute("INSERT INTO t VALUES (6, NULL, 6); DELETE FROM t WHERE k = 5")
        yield con


def branches(con: Any, **scripts: str) -> list[str]:
    """A branch of main for each script, which was run on it."""
    found = [f"{name}{next(_NUMBERS)}" for name in scripts]
    for name, script in zip(found, scripts.values(), strict=True):
        con.executescript(f"CREATE BRANCH {name} AT BRANCH main; USE BRANCH {name}; {script}")
    return found


def rows(con: Any, branch: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = con.execute(f"FROM t AT (BRANCH => '{branch}') ORDER BY k").fetchall()
    return found


def refused(con: Any, branch: str) -> str:
    with pytest.raises(lakelite.TransactionConflict) as caught:
        con.execute(f"MERGE BRANCH {branch}")
    return " ".join(c.explanation for c in caught.value.conflicts)


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN s.z INTEGER",
        "DROP COLUMN s.b",
        "ADD COLUMN s.x.z VARCHAR",
        "ADD COLUMN s.l.element.z INTEGER",
        "DROP COLUMN s.l.element.q",
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_rows_that_do_not_touch_the_field_go_with_it(con: Any, change: str, there: bool) -> None:
    alter = f"ALTER TABLE t {change}"
    one, both, other = branches(con, one=alter, both=f"{alter}; {ROWS}", other=ROWS)
    theirs, ours = (one, other) if there else (other, one)
    con.execute(f"USE BRANCH {ours}; MERGE BRANCH {theirs}")
    assert rows(con, ours) == rows(con, both)
    con.execute("UPDATE t SET v = 40 WHERE k = 4")
    con.execute(f"USE BRANCH {theirs}; UPDATE t SET v = 0 WHERE k = 0; MERGE BRANCH {ours}; USE BRANCH {ours}; MERGE BRANCH {theirs}")
    assert rows(con, theirs) == rows(con, ours)
    assert {(row[0], row[2]) for row in rows(con, ours)} == {(0, 0), (1, 10), (3, 3), (4, 40), (6, 6), (9, 9)}
    assert con.execute("CHECK LAKE").fetchall() == []


@pytest.mark.parametrize("there", [True, False])
def test_a_row_that_both_changed_is_a_conflict_of_that_row(con: Any, there: bool) -> None:
    one, other = branches(con, one="ALTER TABLE t ADD COLUMN s.z INTEGER; UPDATE t SET v = 5 WHERE k = 1", other=ROWS)
    theirs, ours = (one, other) if there else (other, one)
    (same,) = branches(con, same="")
    con.execute(f"USE BRANCH {same}; MERGE BRANCH {ours}; USE BRANCH {ours}")
    assert "1 row was changed on both branches" in refused(con, theirs)
    shown = con.execute("SELECT kind, ours::JSON ->> 'v', theirs::JSON ->> 'v' FROM lake.merge_conflicts").fetchall()
    assert shown == [("both updated", *(("10", "5") if there else ("5", "10")))]
    con.execute(f"MERGE BRANCH {theirs} ON CONFLICT THEIRS")
    assert rows(con, ours)[1][2] == (5 if there else 10)
    con.execute(f"USE BRANCH {same}; MERGE BRANCH {theirs} DRY RUN")
    con.execute("UPDATE lake.merge_conflicts SET resolution = 'ours'")
    con.execute(f"MERGE BRANCH {theirs}")
    assert rows(con, same)[1][2] == (10 if there else 5)
    assert [row for row in rows(con, same) if row[0] != 1] == [row for row in rows(con, ours) if row[0] != 1]


@pytest.mark.parametrize("there", [True, False])
def test_a_dropped_field_that_the_other_branch_gave_a_value(con: Any, there: bool) -> None:
    given = "UPDATE t SET s = struct_update(s, b := 'given') WHERE k = 3"
    one, other = branches(con, one="ALTER TABLE t DROP COLUMN s.b", other=given)
    theirs, ours = (one, other) if there else (other, one)
    con.execute(f"USE BRANCH {ours}")
    assert "a field of s was dropped on one branch" in refused(con, theirs)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("ALTER TABLE t ADD COLUMN s.z INTEGER", "ALTER TABLE t ADD COLUMN s.w INTEGER"),
        ("ALTER TABLE t ADD COLUMN s.z INTEGER", "ALTER TABLE t ALTER v TYPE VARCHAR"),
        ("ALTER TABLE t ADD COLUMN s.z INTEGER DEFAULT 4", ROWS),
    ],
)
def test_what_does_not_go_together_is_a_conflict(con: Any, here: str, there: str) -> None:
    ours, theirs, kept = branches(con, ours=here, theirs=there, kept=here)
    con.execute(f"USE BRANCH {ours}")
    assert refused(con, theirs)
    con.execute(f"MERGE BRANCH {theirs} ON CONFLICT OURS")
    assert [row for row in rows(con, ours) if row[0] in (0, 4)] == [row for row in rows(con, kept) if row[0] in (0, 4)]
    assert con.execute("CHECK LAKE").fetchall() == []


def test_what_the_other_branch_demands_holds_for_rows_that_were_written_anew(con: Any) -> None:
    """NOT NULL here, and rows that were taken as a whole there."""
    ours, theirs = branches(
        con, ours="ALTER TABLE t ALTER v SET NOT NULL", theirs="ALTER TABLE t ADD COLUMN s.z INTEGER; INSERT INTO t (k) VALUES (8)"
    )
    con.execute(f"USE BRANCH {ours}")
    with pytest.raises(lakelite.IntegrityError, match=r"the row .* of branch theirs[0-9]* breaks it"):
        con.execute(f"MERGE BRANCH {theirs}")


def test_a_merge_of_a_field_that_meets_a_winner(con: Any, path: Path) -> None:
    theirs, ours, both = branches(con, theirs="ALTER TABLE t ADD COLUMN s.z INTEGER", ours=ROWS, both=f"{ROWS}; UPDATE t SET v = 7 WHERE k = 0")
    con.execute(f"MERGE BRANCH {theirs}; USE BRANCH {ours}")
    with lakelite.connect(path, autocommit=True, branch=ours) as other, meeting(lambda: other.execute("UPDATE t SET v = 7 WHERE k = 0")):
        con.execute(f"MERGE BRANCH {theirs}")
    assert rows(con, ours) == rows(con, both)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    ("change", "inserted"),
    [
        ("RENAME COLUMN s.a TO aa", {"aa": 1, "b": "n", "x": {"y": 2}, "l": [{"p": 3, "q": 4}]}),
        ("RENAME COLUMN s.x.y TO yy", {"a": 1, "b": "n", "x": {"yy": 2}, "l": [{"p": 3, "q": 4}]}),
        (
            "RENAME COLUMN s.l.element.p TO o; RENAME COLUMN s.l.element.q TO p; RENAME COLUMN s.l.element.o TO q",
            {"a": 1, "b": "n", "x": {"y": 2}, "l": [{"q": 3, "p": 4}]},
        ),
        ("RENAME COLUMN s.a TO a_old; ADD COLUMN s.a INTEGER", {"a_old": 1, "b": "n", "x": {"y": 2}, "l": [{"p": 3, "q": 4}], "a": None}),
        ("DROP COLUMN s.a; ADD COLUMN s.a BIGINT", {"b": "n", "x": {"y": 2}, "l": [{"p": 3, "q": 4}], "a": None}),
        ("RENAME COLUMN s TO u; RENAME COLUMN u.a TO s", {"s": 1, "b": "n", "x": {"y": 2}, "l": [{"p": 3, "q": 4}]}),
    ],
)
def test_a_field_is_known_by_its_identity_and_not_by_its_name(con: Any, change: str, inserted: dict[str, Any], there: bool) -> None:
    alter = "; ".join(f"ALTER TABLE t {part}" for part in change.split("; "))
    given = "{'a': 1, 'b': 'n', 'x': {'y': 2}, 'l': [{'p': 3, 'q': 4}]}"
    one, other = branches(con, one=alter, other=f"INSERT INTO t (k, s) VALUES (9, {given}); UPDATE t SET v = 10 WHERE k = 1")
    before = {row[0]: row[1] for row in rows(con, one)}
    theirs, ours = (one, other) if there else (other, one)
    con.execute(f"USE BRANCH {ours}; MERGE BRANCH {theirs}")
    found = {row[0]: row[1:] for row in rows(con, ours)}
    assert found.pop(9)[0] == inserted
    assert {k: row[0] for k, row in found.items()} == before
    assert found[1][1] == 10
    assert con.execute("CHECK LAKE").fetchall() == []


def test_a_field_of_a_map_with_another_name(con: Any) -> None:
    con.execute("USE BRANCH main; CREATE TABLE m (k INTEGER, m MAP(VARCHAR, STRUCT(p INTEGER, q INTEGER)))")
    con.execute("INSERT INTO m VALUES (1, MAP {'a': {'p': 1, 'q': 2}}), (2, NULL)")
    ours, theirs = branches(
        con,
        ours="ALTER TABLE m RENAME COLUMN m.value.q TO r",
        theirs="INSERT INTO m VALUES (3, MAP {'b': {'p': 3, 'q': 4}, 'c': NULL}); UPDATE m SET m = MAP {} WHERE k = 2",
    )
    con.execute(f"USE BRANCH {ours}; MERGE BRANCH {theirs}")
    assert con.execute("FROM m ORDER BY k").fetchall() == [(1, {"a": {"p": 1, "r": 2}}), (2, {}), (3, {"b": {"p": 3, "r": 4}, "c": None})]


def test_the_versions_of_a_row_are_shown_with_their_fields(con: Any) -> None:
    ours, theirs = branches(
        con, ours="ALTER TABLE t RENAME COLUMN s.a TO aa; UPDATE t SET v = 5 WHERE k = 1", theirs="UPDATE t SET v = 6 WHERE k = 1"
    )
    con.execute(f"USE BRANCH {ours}")
    assert refused(con, theirs)
    shown = con.execute("SELECT base::JSON -> 's' ->> 'aa', theirs::JSON -> 's' ->> 'aa' FROM lake.merge_conflicts").fetchall()
    assert shown == [("1", "1")]
    con.execute(f"MERGE BRANCH {theirs} ON CONFLICT THEIRS")
    assert rows(con, ours)[1] == (1, rows(con, ours)[1][1] | {"aa": 1}, 6)


def test_a_column_of_the_same_name_is_not_the_same_column(con: Any) -> None:
    anew = "ALTER TABLE t DROP COLUMN s; ALTER TABLE t ADD COLUMN s STRUCT(a INTEGER, w INTEGER); INSERT OVERWRITE t SELECT * FROM t"
    ours, theirs, kept = branches(con, ours=anew, theirs=ROWS, kept=anew)
    con.execute(f"USE BRANCH {ours}")
    assert "written anew" in refused(con, theirs)
    assert rows(con, ours) == rows(con, kept)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    ("change", "dropped"),
    [
        ("ALTER TABLE t ALTER v TYPE VARCHAR", "ALTER TABLE t DROP COLUMN v"),
        ("ALTER TABLE t ADD COLUMN s.z INTEGER", "ALTER TABLE t DROP COLUMN s"),
        ("ALTER TABLE t RENAME COLUMN s TO u; ALTER TABLE t RENAME COLUMN u.a TO aa", "ALTER TABLE t DROP COLUMN s"),
        ("ALTER TABLE t ALTER v TYPE BIGINT", "ALTER TABLE t DROP COLUMN v"),
    ],
)
def test_a_column_that_one_dropped_and_the_other_made_anew(con: Any, change: str, dropped: str, there: bool) -> None:
    one, other, kept, gone = branches(con, one=change, other=dropped, kept=change, gone=dropped)
    theirs, ours = (one, other) if there else (other, one)
    con.execute(f"USE BRANCH {ours}")
    assert "changed on both branches" in refused(con, theirs)
    con.execute(f"CREATE BRANCH {ours}_2; MERGE BRANCH {theirs} ON CONFLICT THEIRS")
    assert rows(con, ours) == rows(con, kept if there else gone)
    con.execute(f"USE BRANCH {ours}_2; MERGE BRANCH {theirs} ON CONFLICT OURS")
    assert rows(con, f"{ours}_2") == rows(con, gone if there else kept)
    assert con.execute("CHECK LAKE").fetchall() == []


def test_what_both_did_to_fields_alike_is_no_conflict(con: Any) -> None:
    alter = "ALTER TABLE t RENAME COLUMN s.a TO aa; ALTER TABLE t DROP COLUMN s.b"
    ours, theirs = branches(con, ours=f"{alter}; UPDATE t SET v = 5 WHERE k = 1", theirs=f"{alter}; UPDATE t SET v = 6 WHERE k = 2")
    con.execute(f"USE BRANCH {ours}; MERGE BRANCH {theirs}")
    assert [(row[1]["aa"], row[2]) for row in rows(con, ours)[:3]] == [(0, 0), (1, 5), (2, 6)]
    con.execute(f"USE BRANCH {theirs}; UPDATE t SET v = 7 WHERE k = 3; MERGE BRANCH {ours}; USE BRANCH {ours}; MERGE BRANCH {theirs}")
    assert rows(con, ours) == rows(con, theirs)
    assert [row[2] for row in rows(con, ours)[:4]] == [0, 5, 6, 7]


def test_a_default_against_another_type(con: Any) -> None:
    ours, theirs = branches(con, ours="ALTER TABLE t ALTER v SET DEFAULT 5", theirs="ALTER TABLE t ALTER v TYPE VARCHAR")
    con.execute(f"USE BRANCH {ours}")
    assert refused(con, theirs)
    con.execute(f"CREATE BRANCH {ours}_2; MERGE BRANCH {theirs} ON CONFLICT OURS")
    assert "v INTEGER DEFAULT (5)" in con.execute("SHOW CREATE TABLE t").fetchall()[0][0]
    assert [row[2] for row in rows(con, ours)] == [0, 1, 2, 3, 4, 6]
    con.execute(f"USE BRANCH {ours}_2; MERGE BRANCH {theirs} ON CONFLICT THEIRS")
    assert [row[2] for row in rows(con, f"{ours}_2")] == ["0", "1", "2", "3", "4", "6"]


@pytest.mark.parametrize(
    ("both", "mode", "outcome"),
    [
        (("COMMENT ON TABLE t IS 'ours'", "COMMENT ON TABLE t IS 'theirs'"), "THEIRS", ["k", "s", "v", "m", "n"]),
        (("ALTER TABLE t RENAME v TO v1", "ALTER TABLE t RENAME v TO v2"), "OURS", ["k", "s", "v1", "n", "m"]),
        (("ALTER TABLE t RENAME v TO v1", "ALTER TABLE t RENAME v TO v2"), "THEIRS", ["k", "s", "v2", "m", "n"]),
        (("ALTER TABLE t ALTER v SET DEFAULT 5", "ALTER TABLE t ALTER v SET DEFAULT 6"), "OURS", ["k", "s", "v", "n", "m"]),
        (("ALTER TABLE t DROP COLUMN v", "UPDATE t SET v = 9 WHERE k = 1"), "OURS", ["k", "s", "n", "m"]),
    ],
)
def test_a_conflict_decides_the_parts_that_both_changed(con: Any, both: tuple[str, str], mode: str, outcome: list[str]) -> None:
    """What each of them did beside that is there, with its values."""
    added = "ALTER TABLE t ADD COLUMN {0} INTEGER; UPDATE t SET {0} = k * 10 WHERE k = {1}"
    ours, theirs = branches(con, ours=f"{both[0]}; {added.format('n', 2)}", theirs=f"{both[1]}; {added.format('m', 4)}")
    con.execute(f"USE BRANCH {ours}")
    assert refused(con, theirs)
    con.execute(f"MERGE BRANCH {theirs} ON CONFLICT {mode}")
    assert [row[0] for row in con.execute("DESCRIBE t").fetchall()] == outcome
    assert con.execute("SELECT k, n, m FROM t WHERE n IS NOT NULL OR m IS NOT NULL ORDER BY k").fetchall() == [(2, 20, None), (4, None, 40)]
    assert con.execute(f"MERGE BRANCH {theirs}").fetchall() == []


def column(kind: str, ids: int = 100) -> Column:
    numbers = count(ids)
    return Column("c", kind, types.stored_tree(kind, "c", lambda: next(numbers)))


OLD = column("STRUCT(a INTEGER, b VARCHAR, l STRUCT(p INTEGER, q DATE)[], m MAP(VARCHAR, STRUCT(r INTEGER, s BLOB)))", 1)


def test_a_column_that_was_made_of_another_one() -> None:
    assert not is_descendant(OLD, OLD)
    assert not is_descendant(inherited(column("BIGINT"), column("INTEGER", 1)), column("INTEGER", 1))
    for new, dropped in (
        ("STRUCT(a BIGINT, b VARCHAR, l STRUCT(p INTEGER, q DATE)[], m MAP(VARCHAR, STRUCT(r INTEGER, s BLOB)), z INTEGER)", None),
        ("STRUCT(A INTEGER, l STRUCT(q DATE)[])", 'STRUCT("b" VARCHAR, "l" STRUCT("p" INTEGER)[], "m" MAP(VARCHAR, STRUCT("r" INTEGER, "s" BLOB)))'),
        (
            "STRUCT(b VARCHAR, m MAP(VARCHAR, STRUCT(r INTEGER)))",
            'STRUCT("a" INTEGER, "l" STRUCT("p" INTEGER, "q" DATE)[], "m" MAP(VARCHAR, STRUCT("s" BLOB)))',
        ),
    ):
        made = inherited(column(new), OLD)
        assert is_descendant(made, OLD)
        assert dropped_fields(OLD, made) == dropped
        assert not is_descendant(column(new), OLD)  # of the same names only
    for new in ("STRUCT(z INTEGER)", "STRUCT(a VARCHAR)", "STRUCT(a INTEGER)[]", "VARCHAR", "STRUCT(m MAP(INTEGER, STRUCT(r INTEGER)))"):
        assert not is_descendant(inherited(column(new), OLD), OLD)
    lists = "[]" * 7
    deep = column(f"STRUCT(a INTEGER, l STRUCT(p INTEGER, q INTEGER){lists})", 1)
    assert not is_descendant(inherited(column(f"STRUCT(a INTEGER, l STRUCT(p INTEGER){lists})"), deep), deep)
