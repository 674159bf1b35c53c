"""Views, comments and tables LIKE others against other transactions: what commits is as one after the other, and what was shown stays true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from racing import flush, meeting

import lakelite
from lakelite.errors import ProgrammingError, TransactionConflict

START = """
CREATE TABLE t (a INTEGER, v INTEGER);
CREATE TABLE u (a INTEGER, n BIGINT);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
DELETE FROM t WHERE a = 3;
CREATE VIEW few AS SELECT a, v FROM t WHERE a < 10;
CREATE VIEW total AS SELECT sum(v) AS n FROM few
"""


@pytest.fixture
def pair(tmp_path: Path, request: Any) -> Iterator[tuple[Any, Any]]:
    """M and W. Rows are inline, unless the test asks for files."""
    inline_rows = 0 if getattr(request, "param", "") == "files" else 1000
    with lakelite.connect(tmp_path / "lake", autocommit=True) as m, lakelite.connect(tmp_path / "lake", autocommit=True) as w:
        for con in (m, w):
            con.execute(f"SET inline_rows = {inline_rows}")
        m.executescript(START)
        w.execute("SELECT 1")
        yield m, w


def rows(con: Any, text: str) -> list[tuple[Any, ...]]:
    return con.execute(text).fetchall()  # type: ignore[no-any-return]


def meet(pair: tuple[Any, Any], mine: str, theirs: str, level: str = "WRITE SERIALIZABLE") -> None:
    """M runs `mine`, in a transaction if it is more than one statement; W lands `theirs` before M takes the lock."""
    m, w = pair
    with meeting(lambda: w.executescript(theirs)):
        if ";" in mine:
            m.executescript(f"BEGIN ISOLATION LEVEL {level}; {mine}")
            m.commit()
        else:
            m.execute(mine)


SUMMED = "INSERT INTO u SELECT 1, n FROM total"
WINNERS = [
    ("INSERT INTO t VALUES (4, 10)", 13),
    ("INSERT INTO t VALUES (40, 10)", 3),
    ("DELETE FROM t WHERE a = 2", 1),
    ("UPDATE t SET v = 5 WHERE a = 1", 7),
    ("INSERT OVERWRITE t SELECT 7, 70", 70),
    ("TRUNCATE t", None),
    ("OPTIMIZE t", 3),
    ("ALTER TABLE t ADD c INTEGER", 3),
    ("ALTER TABLE t ALTER v TYPE BIGINT", 3),
    ("ALTER TABLE t ALTER v TYPE VARCHAR USING '5'; ALTER TABLE t ALTER v TYPE INTEGER", 10),
    ("ALTER TABLE t RENAME TO other; ALTER TABLE other RENAME TO t", 3),
    ("CREATE OR REPLACE VIEW few AS SELECT a, 100 AS v FROM t", 200),
    ("ALTER VIEW few RENAME TO fewer; ALTER VIEW fewer RENAME TO few", 3),
    ("COMMENT ON VIEW few IS 'few of them'", 3),
    ("CREATE OR REPLACE VIEW total AS SELECT 9 AS n", 9),
]


@pytest.mark.parametrize(("theirs", "expected"), WINNERS)
@pytest.mark.parametrize(("pair", "mine"), [("inline", f"{SUMMED}; INSERT INTO u VALUES (2, 2)"), ("files", SUMMED)], indirect=["pair"])
def test_what_is_written_from_a_view_is_what_it_shows_on_the_head(pair: tuple[Any, Any], mine: str, theirs: str, expected: int | None) -> None:
    meet(pair, mine, theirs)
    assert rows(pair[1], "SELECT n FROM u WHERE a = 1") == [(expected,)]
    assert rows(pair[0], "CHECK LAKE") == []


CHANGING = ["DELETE FROM t WHERE a = 2", "UPDATE t SET v = 5 WHERE a = 1", "TRUNCATE t", "INSERT OVERWRITE t SELECT 7, 70",
            "CREATE OR REPLACE VIEW few AS SELECT a, 100 AS v FROM t", "CREATE OR REPLACE VIEW total AS SELECT 9 AS n"]  # fmt: skip
LEAVING = ["OPTIMIZE t", "ALTER TABLE t ADD c INTEGER", "COMMENT ON VIEW few IS 'x'", "COMMENT ON TABLE t IS 'x'", "ALTER VIEW few RENAME TO fewer",
           "CREATE OR REPLACE VIEW few AS SELECT a, v FROM t WHERE a < 11", "INSERT INTO t VALUES (40, 4)", "INSERT INTO u VALUES (7, 7)"]  # fmt: skip
SHOWN = "SELECT * FROM total; INSERT INTO u VALUES (2, 2)"


@pytest.mark.parametrize("theirs", CHANGING)
def test_rows_shown_through_a_view_that_are_others_now_are_a_conflict(pair: tuple[Any, Any], theirs: str) -> None:
    with pytest.raises(TransactionConflict):
        meet(pair, SHOWN, theirs)
    assert rows(pair[1], "FROM u") == []


@pytest.mark.parametrize("level", ["WRITE SERIALIZABLE", "SERIALIZABLE"])
@pytest.mark.parametrize("theirs", LEAVING)
def test_rows_shown_through_a_view_that_are_the_same_are_none(pair: tuple[Any, Any], theirs: str, level: str) -> None:
    meet(pair, SHOWN, theirs, level)
    assert (2, 2) in rows(pair[1], "FROM u")


def test_at_snapshot_nothing_that_was_shown_counts(pair: tuple[Any, Any]) -> None:
    meet(pair, SHOWN, "UPDATE t SET v = 5 WHERE a = 1", "SNAPSHOT")
    assert rows(pair[1], "FROM u") == [(2, 2)]


def test_a_blind_append_counts_for_what_was_shown_at_serializable_only(pair: tuple[Any, Any]) -> None:
    meet(pair, SHOWN, "INSERT INTO t VALUES (4, 10)")
    with pytest.raises(TransactionConflict):
        meet(pair, SHOWN, "INSERT INTO t VALUES (5, 10)", "SERIALIZABLE")
    assert rows(pair[1], "FROM u") == [(2, 2)]


def test_a_condition_of_the_query_says_nothing_of_what_a_view_in_it_reads(pair: tuple[Any, Any]) -> None:
    """The scan of t alone is known, and no new row meets it; the view reads t too."""
    with pytest.raises(TransactionConflict):
        meet(pair, "SELECT t.a, total.n FROM t, total WHERE t.a = 2; INSERT INTO u VALUES (2, 2)", "UPDATE t SET v = 5 WHERE a = 1")


def test_a_view_that_draws_or_keeps_any_rows_counts_as_different(pair: tuple[Any, Any]) -> None:
    for query in ("SELECT a, random() AS r FROM t", "SELECT a FROM t LIMIT 1"):
        pair[0].execute(f"CREATE OR REPLACE VIEW drawn AS {query}")
        with pytest.raises(TransactionConflict):
            meet(pair, "SELECT * FROM drawn; INSERT INTO u VALUES (2, 2)", "DELETE FROM t WHERE a = 2; INSERT INTO t VALUES (2, 2)")


@pytest.mark.parametrize("theirs", ["DROP VIEW few", "DROP VIEW total", "DROP TABLE t", "ALTER TABLE t RENAME v TO w; UPDATE t SET w = 9"])
def test_what_a_view_reads_is_gone(pair: tuple[Any, Any], theirs: str) -> None:
    """As for a table: in a transaction a conflict, or right under the names of the base; in autocommit the error of the statement."""
    is_renamed = theirs.startswith("ALTER")
    if is_renamed:
        meet(pair, f"{SUMMED}; INSERT INTO u VALUES (2, 2)", theirs)
        assert rows(pair[1], "FROM u ORDER BY a") == [(1, 18), (2, 2)]
        return
    with pytest.raises(TransactionConflict):
        meet(pair, f"{SUMMED}; INSERT INTO u VALUES (2, 2)", theirs)
    assert rows(pair[1], "FROM u") == []


def test_in_autocommit_it_is_the_error_of_the_statement(pair: tuple[Any, Any]) -> None:
    with pytest.raises(ProgrammingError, match="dropped"):
        meet(pair, SUMMED, "DROP VIEW few")
    with pytest.raises(ProgrammingError, match="view total cannot be read"):
        pair[0].execute(SUMMED)
    assert rows(pair[1], "FROM u") == []


# Definitions against definitions: CREATE and DROP of one name as for tables.


@pytest.mark.parametrize("theirs", ["CREATE VIEW x AS SELECT 1 AS a", "CREATE TABLE x (a INTEGER)", "ALTER VIEW few RENAME TO x"])
@pytest.mark.parametrize("mine", ["CREATE VIEW x AS SELECT 2 AS a", "CREATE TABLE x (b INTEGER)", "ALTER VIEW total RENAME TO x"])
def test_tables_and_views_share_their_names(pair: tuple[Any, Any], mine: str, theirs: str) -> None:
    for one in (mine, f"INSERT INTO u VALUES (1, 1); {mine}"):
        with pytest.raises(ProgrammingError, match="already exists"):
            meet(pair, one, theirs)
        theirs = "COMMENT ON TABLE u IS 'a winner'"
    assert rows(pair[1], "FROM u") == []


def test_if_not_exists_and_if_exists_go_by_the_head(pair: tuple[Any, Any]) -> None:
    meet(pair, "CREATE VIEW IF NOT EXISTS x AS SELECT 2 AS a", "CREATE VIEW x AS SELECT 1 AS a")
    assert rows(pair[0], "FROM x") == [(1,)]
    meet(pair, "CREATE VIEW IF NOT EXISTS x AS SELECT 2 AS a", "DROP VIEW x")
    assert rows(pair[0], "FROM x") == [(2,)]
    meet(pair, "DROP VIEW IF EXISTS y", "CREATE VIEW y AS SELECT 1 AS a")
    assert [name for (name,) in rows(pair[1], "SHOW TABLES")] == ["few", "t", "total", "u", "x"]


def test_the_later_replacement_stands(pair: tuple[Any, Any]) -> None:
    meet(pair, "CREATE OR REPLACE VIEW few AS SELECT 2 AS a", "CREATE OR REPLACE VIEW few AS SELECT 1 AS a")
    assert rows(pair[1], "FROM few") == [(2,)]
    meet(pair, "CREATE OR REPLACE VIEW few AS SELECT 4 AS a", "DROP VIEW few")
    assert rows(pair[1], "FROM few") == [(4,)]


@pytest.mark.parametrize(
    "theirs", ["DROP TABLE t", "ALTER TABLE t DROP v", "ALTER TABLE t RENAME v TO w", "DROP VIEW few", "CREATE OR REPLACE VIEW few AS SELECT 1 AS z"]
)
def test_a_view_whose_query_fails_on_the_head_is_not_made(pair: tuple[Any, Any], theirs: str) -> None:
    with pytest.raises(ProgrammingError):
        meet(pair, "CREATE VIEW x AS SELECT few.v, t.a FROM few, t", theirs)
    assert "x" not in [name for (name,) in rows(pair[1], "SHOW TABLES")]


def test_a_table_that_comes_between_a_view_and_the_one_of_main(pair: tuple[Any, Any]) -> None:
    pair[0].execute("CREATE SCHEMA s")
    with pytest.raises(ProgrammingError, match='"v" does not exist'):
        meet(pair, "CREATE VIEW s.x AS SELECT v FROM t", "CREATE TABLE s.t (z INTEGER)")
    meet(pair, "CREATE VIEW s.y AS SELECT * FROM few", "CREATE TABLE s.few (z INTEGER)")
    assert [row[0] for row in rows(pair[1], "DESCRIBE s.y")] == ["z"]


def test_two_replacements_that_would_read_each_other(pair: tuple[Any, Any]) -> None:
    pair[0].executescript("CREATE VIEW p AS SELECT 1 AS a; CREATE VIEW q AS SELECT 2 AS a")
    with pytest.raises(ProgrammingError, match="reads itself"):
        meet(pair, "CREATE OR REPLACE VIEW p AS SELECT a FROM q", "CREATE OR REPLACE VIEW q AS SELECT a FROM p")
    assert rows(pair[1], "FROM q") == [(1,)]


COMMENTED = ["INSERT INTO t VALUES (9, 9)", "UPDATE t SET v = 0", "DELETE FROM t WHERE a = 1", "INSERT OVERWRITE t SELECT 1, 1", "OPTIMIZE t",
             "ALTER TABLE t ADD c INTEGER", "ALTER TABLE t RENAME v TO w", "ALTER TABLE t RENAME TO other", "ALTER TABLE t ALTER v TYPE VARCHAR"]  # fmt: skip


@pytest.mark.parametrize("change", COMMENTED)
def test_a_comment_stands_beside_whatever_meets_it(pair: tuple[Any, Any], change: str) -> None:
    meet(pair, change, "COMMENT ON TABLE t IS 'mine'; COMMENT ON COLUMN t.v IS 'value'")
    name = "other" if change.endswith("other") else "t"
    column = "w" if change.endswith("w") else "v"
    assert rows(pair[0], f"SELECT comment FROM lake.tables WHERE table_name = '{name}'") == [("mine",)]
    assert rows(pair[0], f"SELECT comment FROM lake.columns WHERE table_name = '{name}' AND column_name = '{column}'") == [("value",)]


@pytest.mark.parametrize("change", COMMENTED)
def test_a_comment_that_lands_later(pair: tuple[Any, Any], change: str) -> None:
    """Where the table has another name by then, it fails as it would behind it."""
    if change.endswith("other"):
        with pytest.raises(ProgrammingError, match='"t" does not exist'):
            meet(pair, "COMMENT ON COLUMN t.a IS 'key'", change)
        return
    meet(pair, "COMMENT ON COLUMN t.a IS 'key'", change)
    assert rows(pair[1], "SELECT comment FROM lake.columns WHERE table_name = 't' AND column_name = 'a'") == [("key",)]
    assert rows(pair[1], "CHECK LAKE") == []


@pytest.mark.parametrize(("theirs", "columns"), [
    ("ALTER TABLE t ADD c INTEGER", ["a", "v", "c"]), ("ALTER TABLE t DROP v", ["a"]), ("ALTER TABLE t RENAME v TO w", ["a", "w"]), ("DELETE FROM t", ["a", "v"]),
])  # fmt: skip
def test_a_table_like_another_has_the_columns_of_the_head(pair: tuple[Any, Any], theirs: str, columns: list[str]) -> None:
    meet(pair, "CREATE TABLE x (LIKE t)", theirs)
    assert [row[0] for row in rows(pair[1], "DESCRIBE x")] == columns


def test_views_stand_through_a_flush(pair: tuple[Any, Any]) -> None:
    m, w = pair
    flush(w, "t")
    assert rows(m, "FROM total") == [(3,)]
