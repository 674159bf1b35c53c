"""MERGE BRANCH that meets other commits: it comes out as if it had come behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from branched import answer, made, on, shown, table
from racing import flush, meeting

import lakelite

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


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
    theirs, con, n = lake.theirs("ALTER TABLE t ALTER v TYPE VARCHAR"), lake.con, len(lake.branches)
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
