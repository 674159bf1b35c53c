"""MERGE BRANCH: tables, views, schemas and columns that came, went or changed on either branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from branched import BASE, answer, made, on, shown, table

import lakelite


@pytest.fixture
def con() -> Iterator[Any]:
    with made(deletes=True) as con:
        yield con


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
