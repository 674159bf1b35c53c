"""Safe mode: what is inside of the lake works, and no file outside of it is read or written, whichever way one asks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import typing

import pytest
import terminal

import lakelite
from lakelite import standalone
from lakelite.language import statements as st

SECRET = "the secret of the house"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "secret.csv").write_text(f"a\n{SECRET}\n")
    (tmp_path / "out").mkdir()
    return tmp_path


@pytest.fixture
def con(place):
    con = lakelite.connect(place / "x.lake", autocommit=True)
    con.execute("CREATE TABLE t AS SELECT range AS a FROM range(10000)")
    con.confine()
    yield con
    con.close()


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A place and a connection in safe mode for all attacks: none of them may leave anything behind."""
    place = tmp_path_factory.mktemp("attacked")
    (place / "secret.csv").write_text(f"a\n{SECRET}\n")
    (place / "out").mkdir()
    con = lakelite.connect(place / "x.lake", autocommit=True)
    con.execute("CREATE TABLE t AS SELECT range AS a FROM range(10000)")
    (place / "x.lake" / "data" / "link").symlink_to(place / "secret.csv")
    (place / "hard").symlink_to(place / "x.lake" / "data")
    con.confine()
    yield place, con
    con.close()


def entries(place):
    return {str(p.relative_to(place)) for p in place.rglob("*") if "x.lake" not in p.parts}


def test_a_lake_works_within_itself(con):
    con.executescript("""
        CREATE TABLE u (a INTEGER PRIMARY KEY, b VARCHAR); INSERT INTO u SELECT a, 'x' || a FROM t; UPDATE u SET b = 'y' WHERE a < 5; DELETE FROM t WHERE a > 9000;
        BEGIN; INSERT INTO u VALUES (-1, 'z'); SAVEPOINT s; DELETE FROM u WHERE a = -1; ROLLBACK TO s; COMMIT; ALTER TABLE u ADD COLUMN c INTEGER DEFAULT 3;
        MERGE INTO u USING t USING (a) WHEN MATCHED AND a = 7 THEN DELETE; CREATE VIEW v AS SELECT count(*) AS n FROM u; OPTIMIZE u ZORDER BY (b); VACUUM; CHECK LAKE""")
    assert con.execute("SELECT n FROM v").fetchall() == [(10_000,)]
    assert con.execute("SELECT count(*) FROM t AT (VERSION => 1)").fetchall() == [(10_000,)]
    assert con.execute("SELECT count(*) FROM lake.snapshots").fetchall()[0][0] > 5
    assert con.execute("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'main'").fetchall() == [(3,)]
    assert con.execute("CHECK LAKE").fetchall() == []
    con.execute("SET threads = 1")
    con.execute("SET timezone = 'UTC'")


def test_what_spills_stays_in_the_lake(con):
    con.execute("SET memory_limit = '60MB'")
    query = "SELECT count(*), max(b) FROM (SELECT DISTINCT a, repeat('x', 40) || a AS b FROM range(600000) AS r(a) ORDER BY b DESC)"
    assert con.execute(query).fetchone()[0] == 600_000


@pytest.mark.parametrize(
    "sql",
    [
        "FROM '{}/secret.csv'", "FROM read_csv('{}/secret.csv')", "FROM read_csv(['{}/secret.csv'])", "FROM read_csv_auto('{}/secret.csv')", "FROM read_text('{}/secret.csv')",
        "FROM read_blob('{}/secret.csv')", "FROM read_json('{}/secret.csv')", "FROM read_ndjson_objects('{}/secret.csv')", "FROM read_parquet('{}/secret.csv')",
        "FROM parquet_metadata('{}/secret.csv')", "FROM parquet_schema('{}/secret.csv')", "FROM sniff_csv('{}/secret.csv')", "FROM glob('{}/*')", "FROM glob('{}/x.lake/../*')",
        "FROM read_text('{}/x.lake/../secret.csv')", "FROM read_text('{}/x.lake/data/../../secret.csv')", "FROM read_text('{}/x.lake/data/link')", "FROM read_text('{}/hard/../secret.csv')",
        "FROM read_text('{}/x.lake/catalog.sqlite')", "FROM query('FROM read_text(''{}/secret.csv'')')", "FROM query_table('{}/secret.csv')", "SELECT (SELECT content FROM read_text('{}/secret.csv'))",
        "WITH q AS (FROM read_text('{}/secret.csv')) FROM q", "SELECT * FROM t, LATERAL read_text('{}/secret.csv')", "CREATE TABLE n AS FROM '{}/secret.csv'", "INSERT INTO t SELECT 1 FROM '{}/secret.csv'",
        "DELETE FROM t WHERE a IN (SELECT 1 FROM '{}/secret.csv')", "UPDATE t SET a = 1 FROM '{}/secret.csv'", "MERGE INTO t USING '{}/secret.csv' AS s ON true WHEN MATCHED THEN DELETE",
        "CREATE VIEW n AS FROM '{}/secret.csv'", "COPY t FROM '{}/secret.csv'", "COPY t TO '{}/out/t.csv'", "COPY (SELECT 1) TO '{}/out/t.parquet'", "COPY (SELECT 1) TO '{}/x.lake/data/t.parquet'",
        "COPY t TO '/dev/stdout'", "FROM read_csv('/dev/stdin')", "FROM read_text('/proc/self/environ')", "EXPORT DATABASE '{}/out/e'", "IMPORT DATABASE '{}/secret.csv'", "ATTACH '{}/out/x.db'",
        "ATTACH '{}/x.lake/catalog.sqlite'", "INSTALL httpfs", "LOAD httpfs", "LOAD '{}/secret.csv'", "FROM 'http://localhost:1/x.csv'", "FROM sqlite_scan('{}/x.lake/catalog.sqlite', 'tables')",
        "SET enable_external_access = true", "SET allowed_directories = ['/']", "SET GLOBAL allowed_directories = ['/']", "RESET enable_external_access", "SET temp_directory = '{}/out'",
        "SET log_query_path = '{}/out/log'", "SET home_directory = '{}'", "PRAGMA enable_profiling", "SET profiling_output = '{}/out/p'", "CREATE SECRET s (TYPE s3)", "CALL enable_logging()",
        "FROM duckdb_secrets()", "BACKUP TO '{}/out/b'", "SELECT getenv('HOME')", "EXPLAIN ANALYZE COPY t TO '{}/out/t.csv'", "SELECT * FROM read_duckdb('{}/x.db')", "FROM read_xlsx('{}/secret.csv')",
    ],
)  # fmt: skip
def test_attacks(attacked, sql):
    place, con = attacked
    before = entries(place)
    with pytest.raises(lakelite.Error) as error:
        con.execute(sql.format(place)).fetchall()
    assert SECRET not in str(error.value)
    assert "by configuration" not in str(error.value), "that is DuckDB's, and none of the user's"
    assert entries(place) == before
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(10_000,)]


def test_there_is_no_way_out_by_another_connection(con):
    with pytest.raises(lakelite.InterfaceError, match="safe mode"):
        con.duckdb()


def test_a_view_that_reads_a_file_is_of_no_use(place):
    with lakelite.connect(place / "x.lake", autocommit=True) as free:
        free.execute(f"CREATE VIEW v AS FROM '{place}/secret.csv'")
    with lakelite.connect(place / "x.lake", autocommit=True) as con:
        con.confine()
        for sql in ("FROM v", "DESCRIBE v", "SHOW ALL TABLES", "CREATE TABLE n AS FROM v", "FROM v AT (VERSION => 1)"):
            with contextlib.suppress(lakelite.Error):
                assert SECRET not in str(con.execute(sql).fetchall())


def command(place, script, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "lakelite", "x.lake", "--safe", "--csv", *arguments],
        input=script, capture_output=True, text=True, cwd=place, timeout=60, env=os.environ | {"XDG_CONFIG_HOME": str(place / "config")},
    )  # fmt: skip


def test_commands(place):
    script = ".read secret.csv\n.import secret.csv n\n.once out/a.csv\n.output out/b.csv\n.edit\n.pager on\nCREATE TABLE t AS SELECT 1 AS a;\n.dump\n.tables\n.history 1"
    done = command(place, script)
    assert done.returncode == 1
    assert done.stderr.count("is not there in safe mode") == 6
    assert "(1);" in done.stdout
    assert "n\n" not in done.stdout.splitlines()
    assert not list((place / "out").iterdir())
    assert SECRET not in done.stdout + done.stderr


def test_a_file_of_statements_is_whoever_starts_it_s(place):
    (place / "ok.sql").write_text("SELECT 1 AS a")
    assert command(place, "", "-f", "ok.sql").stdout == "a\n1\n"


def test_the_prompt_writes_no_history_reads_no_rc_and_offers_no_files(place):
    (place / "config" / "lakelite").mkdir(parents=True)
    (place / "config" / "lakelite" / "rc").write_text("SELECT 'from the rc';")
    session = terminal.Terminal(place, "x.lake", "--safe")
    try:
        session.until("x>")
        session.type("select * from 'sec\t")
        session.type("' where 1;\r")
        session.shows("error: ")
        assert "secret" not in "\n".join(session.lines)
        assert "from the rc" not in "\n".join(session.lines)
        session.type(".all select 1 as a;\r")
        session.shows("1 row, ")
        session.type("\x04")
        assert session.ends() == 0
    finally:
        session.close()
    assert not (place / "state").exists()


def test_every_statement_is_within_the_lake_or_has_a_name_for_its_refusal():
    every = {*typing.get_args(st.Operation)}
    assert every == {*standalone._WITHIN_THE_LAKE, *standalone._OUTSIDE}
    assert not {*standalone._WITHIN_THE_LAKE} & standalone._OUTSIDE.keys()
