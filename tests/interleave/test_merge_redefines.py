"""A definition that comes with MERGE BRANCH is met as the ALTER that made it: at each level, by what writes to its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from racing import meeting

import lakelite

EXTENDS = {  # what stands in no one's way, by the name of the table that it is done to
    "added": "ALTER TABLE added ADD COLUMN w INTEGER",
    "filled": "ALTER TABLE filled ADD COLUMN w INTEGER DEFAULT 7",
    "named": "ALTER TABLE named RENAME v TO value",
    "swapped": "ALTER TABLE swapped RENAME v TO x; ALTER TABLE swapped RENAME k TO v; ALTER TABLE swapped RENAME x TO k",
    "checked": "ALTER TABLE checked RENAME v TO value",
    "wider": "ALTER TABLE wider ALTER v TYPE BIGINT",
    "told": "COMMENT ON TABLE told IS 'told'; COMMENT ON COLUMN told.v IS 'v'",
    "divided": "ALTER TABLE divided SET PARTITIONED BY (k); ALTER TABLE divided SET (inline_rows = 3)",
    "moved": "ALTER TABLE moved RENAME TO elsewhere",
}
SHRINKS = {
    "dropped": "ALTER TABLE dropped DROP COLUMN v",
    "other": "ALTER TABLE other ADD COLUMN w INTEGER; ALTER TABLE other DROP COLUMN v; ALTER TABLE other RENAME w TO x",
}
OTHERS = {
    "late": "ALTER TABLE late ADD COLUMN w INTEGER; ALTER TABLE late ALTER w SET DEFAULT 5",
    "later": "ALTER TABLE later ADD COLUMN w INTEGER DEFAULT 4; ALTER TABLE later ALTER w SET DEFAULT 5",
    "bare": "ALTER TABLE bare ADD COLUMN w INTEGER DEFAULT 4; ALTER TABLE bare ALTER w DROP DEFAULT",
    "default": "ALTER TABLE \"default\" ALTER v SET DEFAULT 3",
    "given": "ALTER TABLE given ALTER v SET NOT NULL",
    "small": "ALTER TABLE small ADD CONSTRAINT few CHECK (v < 1000)",
    "free": "ALTER TABLE free DROP CONSTRAINT few",
    "keyed": "ALTER TABLE keyed ADD CONSTRAINT key UNIQUE (k)",
    "retyped": "ALTER TABLE retyped ALTER v TYPE VARCHAR",
    "again": "ALTER TABLE again DROP COLUMN v; ALTER TABLE again ADD COLUMN v INTEGER",
}  # fmt: skip
GROUPS = {"extends": EXTENDS, "shrinks": SHRINKS, "others": OTHERS}
ALL = {**EXTENDS, **SHRINKS, **OTHERS}
MINE = {"append": "INSERT INTO {} VALUES (70, 7)", "update": "UPDATE {} SET v = v + 1 WHERE k = 2"}


def script(names: dict[str, str], of: str) -> str:
    return "; ".join(of.format(f'"{name}"') for name in names)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table for each change, as it is, and a branch for each group of changes."""
    path = tmp_path_factory.mktemp("lake") / "lake"
    with lakelite.connect(path, autocommit=True) as con:
        con.executescript(f"BEGIN; {script(ALL, 'CREATE TABLE {0} (k INTEGER, v INTEGER); INSERT INTO {0} VALUES (1, 10), (2, 20)')}; COMMIT")
        for name in ("checked", "free"):
            con.execute(f"ALTER TABLE {name} ADD CONSTRAINT few CHECK (v < 100 AND k < 100)")
        con.execute("CREATE TAG before")
        for branch, changes in GROUPS.items():
            con.executescript(f"CREATE BRANCH {branch} AT TAG before; USE BRANCH {branch}; BEGIN; {'; '.join(changes.values())}; COMMIT")
    return path


def met(lake: Path, winner: str, level: str, names: dict[str, str], mine: str) -> dict[str, Any]:
    """What becomes of each table where `mine` is done to all of them in one transaction, and meets the winner: a conflict, or its rows."""
    branch = "".join(filter(str.isalnum, f"{level}{mine}{winner[:5]}{len(names)}{next(iter(names))}"))
    with lakelite.connect(lake, autocommit=True) as con, lakelite.connect(lake, autocommit=True) as other:
        for one in (other, con):
            one.execute(f"CREATE BRANCH IF NOT EXISTS {branch} AT TAG before; USE BRANCH {branch}")
        con.execute(f"BEGIN ISOLATION LEVEL {level}")
        con.executescript(script(names, MINE[mine]))
        try:
            with meeting(lambda: other.executescript(winner)):
                con.execute("COMMIT")
        except lakelite.TransactionConflict as error:
            return dict.fromkeys((c.table for c in error.conflicts), "conflict")
        except lakelite.Error as error:
            return {"": str(error).splitlines()[0]}
        shown = ({"moved": "elsewhere"}.get(name, name) for name in names)
        return {name: sorted(map(repr, con.execute(f'FROM "{name}"').fetchall())) for name in shown}


@pytest.mark.parametrize(
    ("level", "mine"), [("snapshot", "append"), ("snapshot", "update"), ("write serializable", "append"), ("serializable", "update")]
)
def test_a_definition_that_is_merged_is_met_as_the_alter_that_made_it(lake: Path, level: str, mine: str) -> None:
    outcomes = []
    for branch, changes in GROUPS.items():
        outcomes.append(met(lake, f"MERGE BRANCH {branch}", level, changes, mine))
        assert outcomes[-1] == met(lake, f"BEGIN; {'; '.join(changes.values())}; COMMIT", level, changes, mine)
    extends, shrinks, others = outcomes
    assert extends["added"] == ["(1, 10, None)", *(["(2, 20, None)", "(70, 7, None)"] if mine == "append" else ["(2, 21, None)"])]
    assert extends["swapped"] == ["(1, 10)", *(["(2, 20)", "(70, 7)"] if mine == "append" else ["(2, 21)"])]
    if level == "snapshot":
        assert shrinks == dict.fromkeys(SHRINKS, "conflict")
        assert others == dict.fromkeys(OTHERS, "conflict")


def test_what_a_branch_took_back_is_no_change(lake: Path) -> None:
    """NOT NULL came later to a column that has had a value in each row from the beginning."""
    with lakelite.connect(lake, autocommit=True) as con, lakelite.connect(lake, autocommit=True) as other:
        con.execute("CREATE BRANCH there AT TAG before; CREATE BRANCH here AT TAG before; USE BRANCH there")
        con.execute("ALTER TABLE added ADD COLUMN w INTEGER DEFAULT 7; ALTER TABLE added ALTER w SET NOT NULL")
        con.execute("ALTER TABLE filled ALTER v SET NOT NULL; ALTER TABLE filled ALTER v DROP NOT NULL")
        for one in (con, other):
            one.execute("USE BRANCH here")
        con.execute("BEGIN ISOLATION LEVEL snapshot; INSERT INTO added VALUES (70, 7); INSERT INTO filled VALUES (70, 7)")
        with meeting(lambda: other.execute("MERGE BRANCH there")):
            con.execute("COMMIT")
        assert con.execute("SELECT w FROM added").fetchall() == [(7,)] * 3
        assert con.execute("SELECT count(*) FROM filled").fetchall() == [(3,)]
