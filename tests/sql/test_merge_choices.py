"""UPDATE lake.merge_conflicts SET resolution: a side chosen for single rows, which counts as long as both are as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from racing import meeting

import lakelite

CHOOSE = "UPDATE lake.merge_conflicts SET resolution = "
ALL_THEIRS, ALL_OURS = CHOOSE + "'theirs' WHERE row_id IS NOT NULL", CHOOSE + "'ours' WHERE row_id IS NOT NULL"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake") / "lake"


@pytest.fixture(scope="module")
def lake(path: Path) -> Iterator[Any]:
    """A table of which each test makes two branches of its own."""
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t SELECT r, r * 10 FROM range(6) q(r); CREATE TAG start")
        yield con


@pytest.fixture
def con(lake: Any, request: pytest.FixtureRequest) -> Any:
    """On `ours`, after 1: both updated; 2: updated here, deleted there; 3: the other way round; 4: theirs alone."""
    for branch in ("ours", "theirs", "other"):
        lake.execute(f"USE BRANCH main; DROP BRANCH IF EXISTS {branch}; CREATE BRANCH {branch} AT TAG start")
    lake.execute("USE BRANCH theirs; UPDATE t SET v = -1 WHERE k IN (1, 3, 4); DELETE FROM t WHERE k = 2")
    lake.execute("USE BRANCH ours; UPDATE t SET v = 99 WHERE k IN (1, 2); DELETE FROM t WHERE k = 3")
    return lake


def answer(con: Any, sql: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = con.execute(sql).fetchall()
    return found


def there(con: Any, script: str) -> None:
    con.executescript(f"USE BRANCH theirs; {script}; USE BRANCH ours")


def chosen(con: Any) -> dict[str, str | None]:
    """What a dry run finds, by kind, with what was chosen."""
    con.execute("MERGE BRANCH theirs DRY RUN")
    return dict(answer(con, "SELECT kind, resolution FROM lake.merge_conflicts"))


BOTH, HERE, THERE = "both updated", "updated here, deleted there", "deleted here, updated there"
REST = {0: 0, 4: -1, 5: 50}


def test_each_row_goes_as_it_was_chosen(con: Any) -> None:
    with pytest.raises(lakelite.TransactionConflict, match="UPDATE lake"):
        con.execute("MERGE BRANCH theirs")
    assert con.execute(CHOOSE + "? WHERE kind = ? AND ours::JSON ->> 'v' = '99'", ["theirs", BOTH]).rowcount == 1
    assert con.execute("UPDATE lake.merge_conflicts AS c SET resolution = 'OURS' WHERE c.theirs IS NULL").rowcount == 1
    assert answer(con, "MERGE BRANCH theirs DRY RUN") == [("t", 0, 2, 0, 1, "")]
    with pytest.raises(lakelite.TransactionConflict, match="1 row was changed on both") as caught:
        con.execute("MERGE BRANCH theirs")
    assert caught.value.conflicts[0].rows == 1
    assert chosen(con) == {BOTH: "theirs", HERE: "ours", THERE: None}
    with_keys = "WITH few AS (SELECT k FROM t AT (TAG => 'start') WHERE k = 3) "
    assert con.execute(with_keys + CHOOSE + "'ours' WHERE (theirs::JSON ->> 'k')::INT IN (FROM few)").rowcount == 1
    assert con.execute("MERGE BRANCH theirs").fetchall() == [("t", 0, 2, 0, 0, "")]
    assert dict(answer(con, "FROM t")) == {**REST, 1: -1, 2: 99}
    assert dict(answer(con, "SELECT kind, resolution FROM lake.merge_conflicts")) == {BOTH: "theirs", HERE: "ours", THERE: "ours"}
    assert answer(con, "MERGE BRANCH theirs") == []
    assert answer(con, "CHECK LAKE") == []


@pytest.mark.parametrize(("one", "side", "expected"), [("theirs", "OURS", {1: -1, 2: 99}), ("ours", "THEIRS", {1: 99, 3: -1})])
def test_what_is_left_goes_by_on_conflict(con: Any, one: str, side: str, expected: dict[int, int]) -> None:
    chosen(con)
    con.execute(CHOOSE + f"'{one}' WHERE kind = '{BOTH}'")
    con.execute(f"MERGE BRANCH theirs ON CONFLICT {side}")
    assert dict(answer(con, "FROM t")) == {**REST, **expected}


def test_a_choice_for_versions_that_are_no_more_does_not_count(con: Any) -> None:
    chosen(con)
    con.execute(ALL_THEIRS)
    con.execute("UPDATE t SET v = 98 WHERE k = 1")
    assert chosen(con) == {BOTH: None, HERE: "theirs", THERE: "theirs"}
    con.execute("UPDATE t SET v = 99 WHERE k = 1")  # as it was when it was chosen
    assert chosen(con) == {BOTH: "theirs", HERE: "theirs", THERE: "theirs"}
    there(con, "UPDATE t SET v = -2 WHERE k = 3")
    assert chosen(con) == {BOTH: "theirs", HERE: "theirs", THERE: None}
    con.execute("ALTER TABLE t RENAME v TO value; OPTIMIZE t")
    assert chosen(con) == {BOTH: "theirs", HERE: "theirs", THERE: None}  # another name is no other value
    con.execute(ALL_THEIRS + "; ALTER TABLE t ADD COLUMN w INTEGER")
    assert set(chosen(con).values()) == {None}  # the row has one more value
    con.execute(ALL_THEIRS + "; ALTER TABLE t DROP COLUMN w; ALTER TABLE t ADD COLUMN w INTEGER")
    assert set(chosen(con).values()) == {None}  # it is another column
    con.execute(ALL_THEIRS + "; MERGE BRANCH theirs")
    assert dict(answer(con, "SELECT k, value FROM t")) == {**REST, 1: -1, 3: -2}


def test_a_choice_is_the_lakes_and_of_one_merge(con: Any, path: Path) -> None:
    chosen(con)
    con.execute(ALL_OURS)
    with lakelite.connect(path, autocommit=True, branch="ours") as second:
        assert answer(second, "FROM lake.merge_conflicts") == []
        assert set(chosen(second).values()) == {"ours"}
    con.execute("USE BRANCH theirs; MERGE BRANCH ours DRY RUN")  # the other way round
    assert answer(con, "SELECT DISTINCT resolution FROM lake.merge_conflicts") == [(None,)]
    con.execute("USE BRANCH other; UPDATE t SET v = 99 WHERE k = 1; MERGE BRANCH theirs DRY RUN")
    assert answer(con, "SELECT kind, resolution FROM lake.merge_conflicts") == [(BOTH, None)]
    con.execute("USE BRANCH main; CREATE BRANCH again AT BRANCH theirs; DROP BRANCH theirs; CREATE BRANCH theirs AT BRANCH again; USE BRANCH ours")
    assert set(chosen(con).values()) == {None}  # another branch of that name
    con.execute("VACUUM RETAIN 0 HOURS; DROP BRANCH again")
    assert answer(con, "CHECK LAKE") == []


def test_a_choice_is_taken_back_with_null(con: Any) -> None:
    chosen(con)
    con.execute(ALL_OURS)
    assert con.execute(CHOOSE + f"NULL WHERE kind = '{HERE}'").rowcount == 1
    assert con.execute(CHOOSE + f"DEFAULT WHERE kind = '{THERE}'").rowcount == 1
    assert dict(answer(con, "SELECT kind, resolution FROM lake.merge_conflicts")) == {BOTH: "ours", HERE: None, THERE: None}
    assert con.executemany(CHOOSE + "? WHERE kind = ?", [(None, BOTH), ("ours", BOTH), ("theirs", "none")]).rowcount == 2
    assert chosen(con) == {BOTH: "ours", HERE: None, THERE: None}


def test_a_merge_that_meets_winners_uses_what_still_counts(con: Any, path: Path) -> None:
    chosen(con)
    con.execute(ALL_THEIRS)
    with lakelite.connect(path, autocommit=True, branch="ours") as other:
        winner = lambda: other.execute("UPDATE t SET v = 97 WHERE k = 1")  # noqa: E731
        with meeting(winner), pytest.raises(lakelite.TransactionConflict, match="1 row was changed"):
            con.execute("MERGE BRANCH theirs")
        other.execute("UPDATE t SET v = 99 WHERE k = 1")
        with meeting(lambda: other.execute("INSERT INTO t VALUES (7, 7)")):
            con.execute("MERGE BRANCH theirs")
    assert dict(answer(con, "FROM t")) == {**REST, 1: -1, 3: -1, 7: 7}


def test_versions_are_told_apart_exactly(con: Any) -> None:
    con.execute("USE BRANCH main; CREATE TABLE f (x DOUBLE, s VARCHAR, l VARCHAR[], b BLOB, i INTERVAL); INSERT INTO f VALUES (1, 'a', [], '', NULL)")
    there(con, "MERGE BRANCH main; UPDATE f SET x = 2")
    con.execute("MERGE BRANCH main")
    versions = (
        "0.0::DOUBLE, NULL, [NULL], NULL, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, NULL, [NULL], NULL, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, 'NULL', [NULL], NULL, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, '', ['NULL'], NULL, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, '', ['a, b'], NULL, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, '', ['a', 'b'], NULL, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, '', ['a', 'b'], '\\x00'::BLOB, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, '', ['a', 'b'], '\\x5Cx00'::BLOB, INTERVAL 1 MONTH",
        "'-0.0'::DOUBLE, '', ['a', 'b'], '\\x5Cx00'::BLOB, INTERVAL 30 DAYS",
    )
    for version in versions:
        con.execute(f"UPDATE f SET (x, s, l, b, i) = ({version})")
        con.execute("MERGE BRANCH theirs DRY RUN")
        assert answer(con, "SELECT resolution FROM lake.merge_conflicts WHERE table_name = 'f'") == [(None,)], version
        con.execute(ALL_OURS)
    con.execute("USE BRANCH main; DROP TABLE f; USE BRANCH ours")


def test_what_is_refused(con: Any, path: Path) -> None:
    chosen(con)
    for statement, error, words in (
        (CHOOSE + "'mine'", lakelite.DataError, "a resolution is 'ours' or 'theirs'"),
        (CHOOSE + "1 + 1", lakelite.DataError, "a resolution is 'ours' or 'theirs'"),
        (CHOOSE + "nothere", lakelite.ProgrammingError, 'column "nothere" does not exist'),
        ("UPDATE lake.merge_conflicts SET kind = 'ours'", lakelite.ProgrammingError, 'the column "kind" of lake.merge_conflicts cannot be set'),
        (CHOOSE + "'ours' FROM t", lakelite.NotSupportedError, "FROM in an UPDATE of lake.merge_conflicts"),
        (CHOOSE + "'ours' RETURNING *", lakelite.NotSupportedError, "RETURNING in an UPDATE of lake.merge_conflicts"),
        ("DELETE FROM lake.merge_conflicts", lakelite.ProgrammingError, "system view"),
    ):
        with pytest.raises(error, match=words):
            con.execute(statement)
    with pytest.raises(lakelite.ProgrammingError, match="inside a transaction"):
        con.execute("BEGIN; " + ALL_OURS)
    con.execute("ROLLBACK")
    assert set(chosen(con).values()) == {None}
    there(con, "ALTER TABLE t ALTER v TYPE VARCHAR")
    con.execute("MERGE BRANCH theirs DRY RUN")
    with pytest.raises(lakelite.NotSupportedError, match="table's definition"):
        con.execute(CHOOSE + "'ours'")
    with lakelite.connect(path, autocommit=True) as other:
        cursor = other.execute(ALL_OURS)
        assert (cursor.rowcount, "DRY RUN shows" in str(cursor.messages)) == (0, True)
        other.execute("USE BRANCH ours; MERGE BRANCH other DRY RUN; DROP BRANCH theirs")
    with lakelite.connect(path, autocommit=True, read_only=True) as reader, pytest.raises(lakelite.OperationalError, match="read-only"):
        reader.execute(ALL_OURS)
    with pytest.raises(lakelite.OperationalError, match="was dropped"):
        con.execute(ALL_OURS)


def test_a_row_is_shown_in_three_versions_with_its_choice(con: Any) -> None:
    chosen(con)
    con.execute(CHOOSE + f"'theirs' WHERE kind = '{BOTH}'")
    (row,) = answer(con, f"SELECT table_name, base, ours, theirs, resolution FROM lake.merge_conflicts WHERE kind = '{BOTH}'")
    shown = ("t", *({"k": 1, "v": v} for v in (10, 99, -1)), "theirs")
    assert (row[0], *map(json.loads, row[1:4]), row[4]) == shown
