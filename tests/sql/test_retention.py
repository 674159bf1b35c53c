"""VACUUM RETAIN: by time, by number, and what either keeps; on every branch."""

from __future__ import annotations

from typing import Any

import pytest

import lakelite


@pytest.fixture
def con(lake: Any) -> Any:
    lake.execute("SET inline_rows = 0; SET upkeep = off; CREATE TABLE t (k INTEGER)")
    for k in range(5):
        lake.execute("INSERT OVERWRITE t SELECT ?::INTEGER", [k])
    return lake


def kept(con: Any) -> list[int]:
    """The versions that can be read."""
    found = []
    for version in range(con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0] + 1):
        try:
            con.execute(f"SELECT 1 FROM t AT (VERSION => {version})").fetchall()
        except lakelite.Error:
            continue
        found.append(version)
    return found


@pytest.mark.parametrize(
    ("clause", "want"),
    [
        ("0 HOURS", [6]), ("1 VERSION", [6]), ("2 VERSIONS", [5, 6]), ("4 versions", [3, 4, 5, 6]), ("99 VERSIONS", [1, 2, 3, 4, 5, 6]),
        ("0 HOURS AND 3 VERSIONS", [4, 5, 6]), ("3 VERSIONS AND 0 HOURS", [4, 5, 6]), ("24 HOURS AND 1 VERSION", [1, 2, 3, 4, 5, 6]),
        (f"{2**62} VERSIONS", [1, 2, 3, 4, 5, 6]),
    ],
)  # fmt: skip
def test_what_stays(con: Any, clause: str, want: list[int]) -> None:
    dry = con.execute(f"VACUUM RETAIN {clause} DRY RUN").fetchone()
    assert kept(con) == [1, 2, 3, 4, 5, 6]
    done = con.execute(f"VACUUM RETAIN {clause}").fetchone()
    assert dry[1:] == done[1:]
    assert kept(con) == want
    assert done[3] == 5 - sum(version > 1 for version in want), "files of the versions that went"
    assert con.execute("FROM t").fetchall() == [(4,)]
    assert con.execute("CHECK LAKE").fetchall() == []


def test_parameters_and_a_table(con: Any) -> None:
    assert con.execute("VACUUM t RETAIN ? VERSIONS DRY RUN", [2]).fetchone()[3] == 3
    assert con.execute("VACUUM RETAIN $h HOURS AND $n VERSIONS", {"h": 0, "n": 5}).fetchone()[1] == 2
    for wrong in (0, -1, 1.5, "2", None, True, 2**63):
        with pytest.raises(lakelite.DataError, match="whole number of versions"):
            con.execute("VACUUM RETAIN ? VERSIONS", [wrong])
    for wrong in (
        "0 VERSIONS",
        "1.5 VERSIONS",
        "VERSIONS",
        "2",
        "2 VERSIONS AND",
        "2 VERSIONS AND 3 VERSIONS",
        "1 HOURS 2 VERSIONS",
        "9e99 VERSIONS",
    ):
        with pytest.raises(lakelite.ProgrammingError) as caught:
            con.execute(f"VACUUM RETAIN {wrong}")
        assert caught.value.hint
    assert kept(con) == [2, 3, 4, 5, 6]


def test_of_each_branch_and_tags_and_readers(con: Any) -> None:
    con.execute(
        "CREATE BRANCH dev AT VERSION 3; USE BRANCH dev; INSERT INTO t VALUES (10); INSERT INTO t VALUES (11); USE BRANCH main; CREATE TAG old AT VERSION 2"
    )
    con.execute("VACUUM RETAIN 1 VERSION")
    assert con.execute("SELECT k FROM t AT (TAG => 'old')").fetchall() == [(0,)]
    assert con.execute("SELECT k FROM t AT (BRANCH => 'dev') ORDER BY k").fetchall() == [(1,), (10,), (11,)]
    assert {3, 6} <= set(kept(con)), "since the two met all stays, which a merge needs"
    con.execute("DROP BRANCH dev; VACUUM RETAIN 2 VERSIONS")
    assert kept(con) == [2, 5, 6]


def test_a_reader_keeps_more(con: Any, tmp_path: Any) -> None:
    with lakelite.connect(tmp_path / "lake") as reader:
        assert reader.execute("FROM t").fetchall() == [(4,)]
        con.execute("INSERT INTO t VALUES (7)")
        con.execute("INSERT INTO t VALUES (8)")
        con.execute("VACUUM RETAIN 1 VERSION")
        assert reader.execute("FROM t").fetchall() == [(4,)]
    con.execute("VACUUM RETAIN 1 VERSION")
    assert kept(con) == [8]
