"""CHECK, PRIMARY KEY and UNIQUE within one connection, side by side with plain DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from comparing import both
from hypothesis import given, settings
from hypothesis import strategies as some

import lakelite
from lakelite.errors import IntegrityError, NotSupportedError, ProgrammingError

TABLE = (
    "CREATE TABLE t (k INTEGER PRIMARY KEY, u INTEGER UNIQUE, v INTEGER NOT NULL DEFAULT 5 CHECK (v < 100), w VARCHAR, UNIQUE (v, w), CHECK (k <> v))"
)


@pytest.fixture
def con(connect: Callable[..., Any]) -> Any:
    return connect()


SCRIPT = """
INSERT INTO t VALUES (1, 1, 1000, 'a')
INSERT INTO t VALUES (1, 1, 2, 'a')
INSERT INTO t VALUES (1, 2, 3, 'b')
INSERT INTO t VALUES (2, 1, 3, 'b')
INSERT INTO t VALUES (2, 2, 2, 'a')
INSERT INTO t VALUES (2, 2, 2, NULL), (3, 3, 2, NULL), (4, NULL, 6, 'c'), (5, NULL, 6, 'd')
INSERT INTO t VALUES (7, 7, 7, 'x')
INSERT INTO t VALUES (NULL, 7, 8, 'x')
INSERT INTO t VALUES (8, 8, NULL, 'x')
INSERT INTO t (k, u) VALUES (9, 9), (9, 10)
INSERT INTO t (k, w) VALUES (9, 'e')
INSERT INTO t SELECT range + 20, range + 20, 50, range::VARCHAR FROM range(5)
INSERT INTO t SELECT range + 24, range + 30, 50, 'f' || range FROM range(5)
INSERT INTO t SELECT 40 + range % 2, NULL, 51, NULL FROM range(3)
UPDATE t SET v = 200 WHERE k = 1
UPDATE t SET k = 2 WHERE k = 1
UPDATE t SET k = k + 1
UPDATE t SET u = -u
UPDATE t SET u = 3
UPDATE t SET k = NULL WHERE k = 2
UPDATE t SET w = 'a', v = 2
UPDATE t SET v = v + 1, w = w || '!'
DELETE FROM t WHERE k = 3
INSERT INTO t VALUES (3, -3, 3333 % 97, 'again')
UPDATE t SET k = 3 WHERE k = 3
UPDATE t SET k = v WHERE k = 3
"""


def test_a_script_does_here_what_it_does_in_duckdb(con: Any) -> None:
    duck = duckdb.connect()
    for statement in [TABLE, *SCRIPT.strip().splitlines()]:
        both(con, duck, statement)


@pytest.mark.parametrize(
    ("kind", "values"),
    [("DOUBLE", "('nan'), (0.0), (1.5)"), ("VARCHAR", "('a'), ('A'), ('')"), ("BLOB", "('a'), ('\\x00')"), ("DATE", "('2020-01-01')"),
     ("DECIMAL(10,2)", "(1.5), (-1.5)"), ("HUGEINT", "(17014118346046923173168730371588410572)"), ("BOOLEAN", "(true), (false)"),
     ("UUID", "('00000000-0000-0000-0000-000000000001')"), ("TIMESTAMPTZ", "('2020-01-01 00:00:00+00')"), ("TIME", "('12:00:00')"),
     ("ENUM('a', 'b')", "('b')"), ("UBIGINT", "(18446744073709551615)"), ("FLOAT", "(0.1), ('nan')")],
)  # fmt: skip
def test_keys_of_every_type_that_duckdb_takes(con: Any, kind: str, values: str) -> None:
    duck = duckdb.connect()
    for statement in (
        f"CREATE TABLE t (k {kind} UNIQUE)",
        f"INSERT INTO t VALUES {values}",
        f"INSERT INTO t VALUES {values}",
        "INSERT INTO t VALUES (NULL), (NULL)",
    ):
        both(con, duck, statement)


def test_what_was_written_in_the_same_transaction_counts(con: Any) -> None:
    con.execute(TABLE)
    con.execute("INSERT INTO t VALUES (1, 1, 2, 'a')")
    con.execute("BEGIN")
    con.execute("DELETE FROM t WHERE k = 1")
    con.execute("INSERT INTO t VALUES (1, 1, 3, 'b')")
    with pytest.raises(IntegrityError, match='Duplicate key "k: 1" violates primary key constraint'):
        con.execute("INSERT INTO t VALUES (1, 2, 4, 'c')")
    con.execute("INSERT INTO t VALUES (2, 2, 4, 'c')")
    con.execute("COMMIT")
    assert con.execute("FROM t ORDER BY k").fetchall() == [(1, 1, 3, "b"), (2, 2, 4, "c")]


def test_every_way_in_is_guarded(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER CHECK (v > 0))")
    con.execute("INSERT INTO t VALUES (1, 1)")
    (tmp_path / "bad.csv").write_text("1,5\n")
    (tmp_path / "worse.csv").write_text("5,-5\n")
    wrong = [
        lambda: con.execute(f"COPY t FROM '{tmp_path / 'bad.csv'}'"), lambda: con.execute(f"COPY t FROM '{tmp_path / 'worse.csv'}'"),
        lambda: con.append("t", duckdb.sql("SELECT 1 AS k, 2 AS v").to_arrow_table()), lambda: con.append("t", duckdb.sql("SELECT 9 AS k, 0 AS v").to_arrow_table()),
        lambda: con.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(3, 3), (3, 4)]),
        lambda: con.execute("INSERT OVERWRITE t SELECT 7, range FROM range(1, 3)"), lambda: con.execute("INSERT OVERWRITE t SELECT 7, 0"),
    ]  # fmt: skip
    for write in wrong:
        with pytest.raises(IntegrityError):
            write()
    assert con.execute("FROM t").fetchall() == [(1, 1)]
    con.execute("INSERT OVERWRITE t SELECT 1, 2")
    assert con.execute("FROM t").fetchall() == [(1, 2)]


def test_a_restored_table_has_the_constraints_of_then(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES (1)")
    version = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0]
    con.execute("ALTER TABLE t DROP CONSTRAINT t_k_pkey")
    con.execute("INSERT INTO t VALUES (1)")
    con.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
    with pytest.raises(IntegrityError, match="primary key"):
        con.execute("INSERT INTO t VALUES (1)")
    assert con.execute("FROM t").fetchall() == [(1,)]


def test_adding_a_constraint_looks_at_the_rows_there_are(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
    con.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, NULL)")
    with pytest.raises(IntegrityError, match=r'CHECK constraint "small" failed on table "t" with expression CHECK\(\(k < 3\)\)'):
        con.execute("ALTER TABLE t ADD CONSTRAINT small CHECK (k < 3)")
    with pytest.raises(IntegrityError, match='Duplicate key "v: 1" violates unique constraint'):
        con.execute("ALTER TABLE t ADD UNIQUE (v)")
    with pytest.raises(IntegrityError, match=r"NOT NULL constraint failed: t\.v"):
        con.execute("ALTER TABLE t ADD PRIMARY KEY (k, v)")
    con.execute("ALTER TABLE t ADD CONSTRAINT big CHECK (k < 10)")
    con.execute("ALTER TABLE t ADD PRIMARY KEY (k)")
    for wrong in ("INSERT INTO t VALUES (10, 1)", "INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (NULL, 1)"):
        with pytest.raises(IntegrityError):
            con.execute(wrong)
    con.execute("ALTER TABLE t DROP CONSTRAINT big")
    con.execute("ALTER TABLE t DROP CONSTRAINT IF EXISTS big")
    con.execute("INSERT INTO t VALUES (10, 1)")
    with pytest.raises(ProgrammingError, match='has no constraint "big"'):
        con.execute("ALTER TABLE t DROP CONSTRAINT big")
    with pytest.raises(ProgrammingError, match="more than one primary key"):
        con.execute("ALTER TABLE t ADD PRIMARY KEY (v)")
    with pytest.raises(NotSupportedError, match="FOREIGN KEY"):
        con.execute("ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES t (k)")


def test_what_alters_a_column_of_a_constraint_does_as_duckdb_does(con: Any) -> None:
    duck = duckdb.connect()
    for statement in (
        "CREATE TABLE t (a INTEGER CHECK (a > 0), b INTEGER, c INTEGER, k INTEGER PRIMARY KEY, CHECK (b < c))",
        "ALTER TABLE t ALTER a TYPE BIGINT", "ALTER TABLE t ALTER k TYPE BIGINT", "ALTER TABLE t DROP COLUMN b", "ALTER TABLE t DROP COLUMN k",
        "ALTER TABLE t ALTER k DROP NOT NULL", "ALTER TABLE t ALTER a SET DEFAULT 4", "ALTER TABLE t RENAME COLUMN b TO \"b b\"",
        "ALTER TABLE t RENAME COLUMN k TO kk", "INSERT INTO t VALUES (1, 5, 4, 1)", "INSERT INTO t VALUES (1, 4, 5, 1)", "INSERT INTO t VALUES (1, 4, 5, 1)",
    ):  # fmt: skip
        both(con, duck, statement)
    texts = "SELECT constraint_type, constraint_text, constraint_column_names FROM duckdb_constraints() WHERE table_name = 't' ORDER BY ALL"
    assert con.execute(texts).fetchall() == duck.execute(texts).fetchall()
    con.execute("ALTER TABLE t DROP COLUMN a")  # its CHECK goes with it
    assert "CHECK" in con.execute("SHOW CREATE TABLE t").fetchone()[0]
    con.execute("ALTER TABLE t RENAME TO s")
    with pytest.raises(IntegrityError, match='on table "s" with expression CHECK'):
        con.execute("INSERT INTO s VALUES (5, 4, 2)")


def test_the_definition_is_shown_and_makes_the_same_table_again(con: Any) -> None:
    con.execute(TABLE.replace("CHECK (k", 'CONSTRAINT "My check" CHECK (k'))
    shown = con.execute("SHOW CREATE TABLE t").fetchone()[0]
    assert 'CONSTRAINT "My check" CHECK((k != v))' in shown
    assert con.execute("DESCRIBE t").fetchall()[0][2:4] == ("NO", "PRI")
    assert con.execute("DESCRIBE t").fetchall()[1][2:4] == ("YES", "UNI")
    con.execute("CREATE SCHEMA s")
    con.execute(shown.replace("TABLE t", "TABLE s.t"))
    assert con.execute("SHOW CREATE TABLE s.t").fetchone()[0] == shown.replace("TABLE t", "TABLE s.t")
    duck = duckdb.connect()
    duck.execute(TABLE)
    kinds = "SELECT constraint_type, count(*) FROM information_schema.table_constraints WHERE table_schema = 'main' GROUP BY ALL ORDER BY ALL"
    assert con.execute(kinds).fetchall() == duck.execute(kinds).fetchall()


def test_a_check_that_names_its_table_outlives_that_name(con: Any) -> None:
    con.execute('CREATE TABLE "t t" (a INTEGER CHECK ("t t".a > 0 AND length(\'t t.\') = 4))')
    con.execute('ALTER TABLE "t t" RENAME TO s')
    with pytest.raises(IntegrityError, match='on table "s"'):
        con.execute("INSERT INTO s VALUES (0)")
    con.execute("INSERT INTO s VALUES (1)")


def test_names_of_constraints(con: Any) -> None:
    con.execute(
        "CREATE TABLE t (a INTEGER CONSTRAINT pos CHECK (a > 0) CONSTRAINT one UNIQUE, b INTEGER CHECK (b IN (1, 2)), CONSTRAINT couple PRIMARY KEY (a, b))"
    )
    names = "SELECT constraint_name FROM duckdb_constraints() WHERE constraint_type <> 'NOT NULL' ORDER BY ALL"
    assert con.execute(names).fetchall() == [("couple",), ("one",), ("pos",), ("t_b_check",)]
    assert con.execute("SELECT count(*) FROM information_schema.table_constraints WHERE constraint_name = 'couple'").fetchone() == (1,)
    con.execute("CREATE TABLE s (a INTEGER NOT NULL, b INTEGER NOT NULL CONSTRAINT low CHECK (b < 9), CONSTRAINT high CHECK (a > 5), UNIQUE (b))")
    con.execute("CREATE TEMP TABLE a (a INTEGER UNIQUE)")
    of_each = (
        "SELECT constraint_text, constraint_name FROM duckdb_constraints() WHERE constraint_type <> 'NOT NULL' AND table_name = 's' ORDER BY ALL"
    )
    assert con.execute(of_each).fetchall() == [("CHECK((a > 5))", "high"), ("CHECK((b < 9))", "low"), ("UNIQUE(b)", "s_b_key")]
    assert con.execute(names).fetchall() == [(n,) for n in ("a_a_key", "couple", "high", "low", "one", "pos", "s_b_key", "t_b_check")]
    con.execute("DROP TABLE s; DROP TABLE a")
    for name in ("POS", "t_b_check", "couple", "one"):
        con.execute(f"ALTER TABLE t DROP CONSTRAINT {name}")
    con.execute("INSERT INTO t VALUES (-1, 7), (-1, 7)")
    con.execute("ALTER TABLE t ADD CONSTRAINT pos CHECK (a < 0)")
    with pytest.raises(ProgrammingError, match='already has a constraint "POS"'):
        con.execute('ALTER TABLE t ADD CONSTRAINT "POS" CHECK (b > 0)')


def test_names_go_with_their_constraints_in_whatever_order_duckdb_lists_these(con: Any) -> None:
    con.execute("CREATE TABLE t (a INTEGER CONSTRAINT one UNIQUE CONSTRAINT pos CHECK (a > 0) PRIMARY KEY, UNIQUE (a), CONSTRAINT low CHECK (a < 9))")
    shown = con.execute("SHOW CREATE TABLE t").fetchone()[0]
    assert all(
        text in shown for text in ("CONSTRAINT one UNIQUE(a)", "CONSTRAINT pos CHECK((a > 0))", " PRIMARY KEY(a)", " UNIQUE(a)", "low CHECK((a < 9))")
    )


def test_constraints_go_with_the_version_and_with_the_table(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (k INTEGER UNIQUE)")
    con.execute("INSERT INTO t VALUES (1)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other, pytest.raises(IntegrityError):
        other.execute("INSERT INTO t VALUES (1)")
    con.execute("CREATE OR REPLACE TABLE t (k INTEGER)")
    con.execute("INSERT INTO t VALUES (1), (1)")
    con.execute("CREATE TABLE copy AS FROM t")
    con.execute("DROP TABLE t")
    con.execute("VACUUM RETAIN 0 HOURS")
    assert con.execute("SELECT count(*) FROM duckdb_constraints()").fetchone() == (0,)
    assert con.execute("CHECK LAKE").fetchall() == []


def test_keys_are_found_in_files_with_deleted_rows_and_other_ranges(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, w VARCHAR)")
    for start in range(0, 5000, 1000):
        con.execute(f"INSERT INTO t SELECT range, range::VARCHAR FROM range({start}, {start + 1000})")
    con.execute("DELETE FROM t WHERE k % 2 = 0")
    con.execute("INSERT INTO t SELECT range, '' FROM range(0, 5000, 2)")
    for k in (0, 1, 2500, 4999):
        with pytest.raises(IntegrityError, match=f'"k: {k}"'):
            con.execute(f"INSERT INTO t VALUES ({k}, 'x')")
    con.execute("OPTIMIZE t")
    with pytest.raises(IntegrityError):
        con.execute("INSERT INTO t SELECT range, '' FROM range(4999, 6000)")
    con.execute("INSERT INTO t SELECT range, '' FROM range(5000, 6000)")
    assert con.execute("SELECT count(*), count(DISTINCT k) FROM t").fetchone() == (6000, 6000)


cells = some.one_of(some.none(), some.integers(0, 4))
changes = some.one_of(
    some.builds(lambda rows: f"INSERT INTO t VALUES {', '.join(rows)}", some.lists(some.builds(lambda *c: "(" + ", ".join("NULL" if v is None else str(v) for v in c) + ")", cells, cells, cells), min_size=1, max_size=3)),
    some.builds("DELETE FROM t WHERE {} = {}".format, some.sampled_from("abc"), some.integers(0, 4)),
    some.builds("UPDATE t SET {0} = {1} {2} WHERE {3} >= {4}".format, some.sampled_from("abc"), some.sampled_from("abc"), some.sampled_from(["+ 1", "- 1", "* 2"]), some.sampled_from("abc"), some.integers(0, 4)),
)  # fmt: skip


@settings(max_examples=12)
@given(some.lists(changes, min_size=1, max_size=12), some.booleans())
def test_any_changes_of_a_small_domain(statements: list[str], is_inline: bool) -> None:
    with lakelite.connect(":memory:", autocommit=True) as con:
        if not is_inline:
            con.execute("SET inline_rows = 0")
        duck = duckdb.connect()
        for statement in ("CREATE TABLE t (a INTEGER UNIQUE, b INTEGER, c INTEGER, UNIQUE (b, c), CHECK (a + b < 7))", *statements):
            both(con, duck, statement)


def test_a_table_like_another_has_its_constraints_where_all_is_included(lake: Any) -> None:
    lake.execute("CREATE TABLE t (a INTEGER PRIMARY KEY DEFAULT 5, b INTEGER, CONSTRAINT low CHECK (b < 10), UNIQUE (a, b))")
    lake.execute("CREATE TABLE plain (LIKE t); CREATE TABLE whole (LIKE t INCLUDING ALL)")
    lake.execute("INSERT INTO plain VALUES (1, 11), (1, 11); INSERT INTO whole (b) VALUES (1)")
    for values, words in (("(5, 2)", "primary key"), ("(6, 10)", '"low"')):
        with pytest.raises(lakelite.IntegrityError, match=words):
            lake.execute(f"INSERT INTO whole VALUES {values}")
    assert lake.execute("FROM whole").fetchall() == [(5, 1)]
