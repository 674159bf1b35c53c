"""Safe mode against all that DuckDB has: every function and every setting that this version of it knows, not those that somebody thought of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import lakelite
from lakelite.settings import DUCKDB_SETTINGS

SECRET = "the-secret-of-the-house"
Attacked = tuple[Path, lakelite.Connection]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A folder with secrets beside a lake that is open in safe mode. Nothing may come to be in it."""
    place = tmp_path_factory.mktemp("attacked")
    (place / "secret.csv").write_text(f"a\n{SECRET}\n")
    (place / "secret.json").write_text(f'{{"a": "{SECRET}"}}')
    with duckdb.connect() as maker:
        maker.execute(f"COPY (SELECT '{SECRET}' AS a) TO '{place}/secret.parquet'")
    with duckdb.connect(str(place / "secret.db")) as maker:
        maker.execute(f"CREATE TABLE secret AS SELECT '{SECRET}' AS a")
    lakelite.connect(place / "x.lake").close()
    (place / "x.lake" / "data" / "link").symlink_to(place)
    with lakelite.connect(place / "x.lake", autocommit=True, safe=True) as con:
        con.execute("CREATE TABLE t AS SELECT 7 AS a")
        yield place, con


def names(kind: str) -> list[str]:
    with duckdb.connect() as con:
        found = con.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = ? ORDER BY ALL", [kind]).fetchall()
    return [name for (name,) in found]


def outside(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if "x.lake" not in path.parts}


def test_patterns_see_nothing_outside(attacked: Attacked) -> None:
    place, _ = attacked
    inside = f"{place}/x.lake"
    check_closed(
        attacked,
        f"FROM read_text('{inside}/data/%2e%2e/%2e%2e/secret.csv')",
        f"FROM read_blob('{inside}/data/**/secret.csv')",
        f"FROM glob('{inside}/**')",
    )


def check_closed(attacked: Attacked, *statements: str) -> None:
    """None of them gives the secret away, or leaves anything; only errors of lakelite come, and the lake is as it was."""
    place, con = attacked
    before = outside(place)
    for sql in statements:
        try:
            shown = str(con.execute(sql).fetchmany(1000))
        except lakelite.Error as error:
            shown = str(error)
        assert SECRET not in shown, sql
        assert "secret.csv" not in shown or "secret.csv" in sql or "secret" in sql, sql
    assert outside(place) == before, statements
    assert con.execute("SELECT a FROM t").fetchall() == [(7,)]


def test_every_function_is_one_that_was_looked_at() -> None:
    known: dict[str, set[str]] = {}
    for line in Path(__file__).with_name("duckdb_functions.txt").read_text().splitlines():
        if line.startswith("[") and line.endswith("]"):
            known[line[1:-1]] = set()
        elif not line.startswith("#"):
            known[list(known)[-1]].update(line.split())
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT DISTINCT function_type, lower(function_name) FROM duckdb_functions() WHERE function_name !~ '^(icu_)?collate_'"
        ).fetchall()
    new = sorted((kind, name) for kind, name in found if not known.get(kind, set()).issuperset(name.split()))
    assert new == [], "does it read or write files, or anything else outside of the lake? Then safe mode has to refuse it; add it to the list"


@pytest.mark.parametrize("kind", ["table", "table_macro", "pragma"])
def test_no_function_in_a_from_gives_a_file(attacked: Attacked, kind: str) -> None:
    place, _ = attacked
    inside = f"{place}/x.lake"
    for name in names(kind):
        files = [f"'{place}/secret.{ending}'" for ending in ("csv", "json", "parquet", "db")]
        calls = [
            f"{name}()", f"{name}({files[0]})", f"{name}('{place}/*')", f"{name}([{files[0]}])", f"{name}('{inside}/data/link/secret.csv')",
            f"{name}('{inside}/data/../../secret.csv')", f"system.main.{name}({files[0]})", f"{name}('file://{place}/secret.csv')", f"{name}('/proc/self/environ')",
            f"{name}({files[2]}, 'a', '{SECRET[:1]}')", f"{name}({files[3]}, table_name = 'secret')", f"{name}('{inside}/catalog.sqlite')",
        ]  # fmt: skip
        statements = [f"FROM {call}" for call in calls] if kind == "table" else [f"PRAGMA {name}({files[0]})"]
        check_closed(attacked, *statements, f"CALL {name}({files[0]})")


@pytest.mark.parametrize(
    "sql",
    [
        "FROM enable_logging(storage = 'file', storage_path = '{}/log')", "FROM enable_logging(storage = 'file', storage_config = {{'path': '{}/log'}})", "FROM enable_logging()",
        "FROM query('FROM enable_logging(storage = ''file'', storage_path = ''{}/log'')')", "FROM enable_profiling(save_location = '{}/profile')", "FROM disable_logging()",
        "FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{}/secret.csv'')'))", "FROM read_csv('{}/secret.csv', store_rejects = true)",
        "FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM enable_profiling(save_location = ''{}/profile'')'))", "FROM add_grammar_extension('x')",
        "FROM read_parquet('{}/secret.parquet', encryption_config = {{footer_key: 'k'}})", "FROM read_duckdb('{}/secret.db', table_name = 'secret')", "FROM duckdb_secrets()",
        "FROM which_secret('{}/secret.csv', 's3')", "FROM '{}/secret.db'", "FROM '{}/secret.json'", "FROM '{}/secret.parquet'", "FROM 'file:{}/secret.csv'", "FROM '~/.bashrc'", "FROM read_text('~/.bashrc')",
        "FROM read_text('/proc/self/root{}/secret.csv')", "FROM read_text('/proc/self/cwd')", "FROM read_text('/proc/self/maps')", "FROM read_text('/dev/fd/0')", "FROM read_text('{}/x.lake/tmp/../../secret.csv')",
        "FROM read_text('{}/x.lake/data/link/secret.csv')", "FROM glob('{}/x.lake/data/link/*')", "FROM read_text('{}//x.lake//data//..//..//secret.csv')",
        "FROM read_text('{}/x.lake/data/./../../secret.csv')", "FROM read_text(['{}/x.lake/data/none', '{}/secret.csv'])", "FROM read_text('{}/x.lake/data2/../secret.csv')",
        "FROM read_csv('https://localhost:1/x.csv')", "FROM read_parquet('s3://bucket/x.parquet')", "FROM read_parquet('hf://datasets/a/b.parquet')", "FROM sqlite_scan('{}/x.lake/catalog.sqlite', 'tables')",
        "FROM postgres_scan('host=localhost', 'public', 't')", "FROM iceberg_scan('{}')", "FROM delta_scan('{}')", "FROM st_read('{}/secret.csv')", "FROM read_xlsx('{}/secret.xlsx')", "FROM shellfs('ls')",
        "FROM read_csv('ls |')", "SELECT getenv('HOME')", "SELECT current_setting('secret_directory') || getenv('HOME')", "SELECT read_text('{}/secret.csv')", "SELECT http_get('http://localhost:1')",
        "CREATE MACRO m() AS TABLE FROM read_text('{}/secret.csv')", "CREATE TEMP MACRO m() AS TABLE FROM read_text('{}/secret.csv')", "CREATE TEMP VIEW w AS FROM read_text('{}/secret.csv')",
        "CREATE TEMP TABLE w AS FROM read_text('{}/secret.csv')", "CREATE TABLE w (a INTEGER DEFAULT (getenv('HOME')))", "CREATE TABLE w (a INTEGER CHECK (getenv('HOME') = a::VARCHAR))",
        "CREATE TABLE w (a VARCHAR DEFAULT ((SELECT content FROM read_text('{}/secret.csv'))))", "EXPLAIN ANALYZE FROM read_text('{}/secret.csv')", "EXPLAIN (FORMAT json) FROM read_text('{}/secret.csv')",
        "DESCRIBE FROM read_csv('{}/secret.csv')", "SUMMARIZE FROM read_csv('{}/secret.csv')", "PIVOT '{}/secret.csv' ON a", "UNPIVOT '{}/secret.csv' ON a", "SHOW TABLES FROM '{}/secret.db'",
        "ATTACH '{}/secret.db' AS s (READ_ONLY)", "USE '{}/secret.db'", "DETACH memory", "COPY (SELECT 1) TO '{}/x.lake/data/new.csv'", "COPY t TO '{}/x.lake/tmp/new.csv'", "COPY FROM DATABASE memory TO x",
        "INSERT INTO t FROM read_text('{}/secret.csv') RETURNING *", "SELECT * FROM t AT (VERSION => (SELECT 1 FROM read_text('{}/secret.csv')))", "SET author = (SELECT content FROM read_text('{}/secret.csv'))",
        "SET commit_message = (SELECT content FROM read_text('{}/secret.csv'))", "DELETE FROM t USING read_text('{}/secret.csv') AS s WHERE s.content = t.a::VARCHAR", "CALL dbgen(sf = 1)", "CALL checkpoint()",
        "EXECUTE x", "PREPARE x AS FROM read_text('{}/secret.csv')", "LOAD '{}/secret.csv'", "INSTALL x FROM '{}'", "FORCE INSTALL httpfs", "UPDATE EXTENSIONS", "CREATE SECRET (TYPE http)", "DROP SECRET x",
        "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')", "EXPORT DATABASE '{}/e' (FORMAT parquet)", "IMPORT DATABASE '{}'", "BACKUP TO '{}/x.lake/data/b'", "COPY t FROM '{}/secret.parquet' (ADOPT)",
    ],
)  # fmt: skip
def test_ways_out(attacked: Attacked, sql: str) -> None:
    place, con = attacked
    filled = sql.format(*[place] * 3)
    with pytest.raises(lakelite.Error):
        con.execute(filled).fetchall()
    check_closed(attacked, filled)


def test_no_setting_can_be_changed_but_those_that_are_passed_on(attacked: Attacked) -> None:
    """By SET, and, behind lakelite's own list, in DuckDB: whatever else runs there cannot change one either."""
    _, con = attacked
    engine = con._session.lake.engine
    settings = engine.do("SELECT name, value FROM duckdb_settings()")
    assert len(settings) > 100
    may_change = DUCKDB_SETTINGS | {"enable_progress_bar", "enable_progress_bar_print", "arrow_lossless_conversion"}
    for name, value in settings:
        if name.lower() in may_change:
            continue
        for text in (f"SET {name} = '{value}'", f"SET GLOBAL {name} = '{value}'", f"RESET {name}", f"PRAGMA {name} = '{value}'"):
            with pytest.raises(lakelite.Error):
                con.execute(text)
        # Where names are looked up, of one cursor; and other names of what may be changed.
        if name.lower() not in ("schema", "search_path", "null_order", "worker_threads"):
            with pytest.raises(duckdb.InvalidInputException, match=r"locked|[Cc]annot"):
                engine.do(f"SET {name} = {value!r}" if value is not None else f"SET {name} = ''")


def test_those_that_are_passed_on_can_be_changed_still(attacked: Attacked) -> None:
    _, con = attacked
    con.confine()  # once more: nothing happens
    for name, value in {
        "threads": "1",
        "memory_limit": "500MB",
        "timezone": "Europe/Paris",
        "default_order": "DESC",
        "calendar": "gregorian",
    }.items():
        con.execute(f"SET {name} = '{value}'")
        con.execute(f"RESET {name}")
    con.follow_progress()
    assert con.execute("SELECT a FROM t").to_arrow().num_rows == 1


def test_variables_of_the_caller_are_not_there(attacked: Attacked) -> None:
    _, con = attacked
    secret_frame = pd.DataFrame({"a": [SECRET]})
    assert len(secret_frame) == 1
    for sql in (
        "FROM secret_frame",
        "SELECT * FROM t JOIN secret_frame USING (a)",
        "DESCRIBE secret_frame",
        "INSERT INTO t FROM secret_frame",
        "FROM query_table('secret_frame')",
    ):
        with pytest.raises(lakelite.Error) as caught:
            con.execute(sql)
        assert "DataFrame" not in str(caught.value)
    with pytest.raises(lakelite.Error):
        list(con.statements("FROM secret_frame", variables=None))


def test_what_a_result_is_given_as_stays_inside_too(attacked: Attacked) -> None:
    _, con = attacked
    for give in (con.duckdb, con.ibis):
        with pytest.raises(lakelite.InterfaceError, match="safe mode"):
            give()
