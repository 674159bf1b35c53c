"""Views, comments, and tables LIKE others. Where a statement is DuckDB's own, plain DuckDB runs the same and has to answer the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lakelite
from lakelite.errors import NotSupportedError, OperationalError, ProgrammingError


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as opened:
        yield opened


def rows(con: Any, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    return con.execute(text, parameters).fetchall()  # type: ignore[no-any-return]


def answer(con: Any, statement: str) -> Any:
    """Names, types and rows; or that it failed."""
    try:
        done = con.execute(statement)
        if not statement.lower().startswith(("from", "select", "describe", "show", "with", "summarize", "pivot", "table")):
            return "done"
        return [(d[0], str(d[1])) for d in done.description], sorted(done.fetchall(), key=repr)
    except (lakelite.Error, duckdb.Error):
        return "an error"


LISTED = """select schema_name, view_name, column_count, sql, comment from duckdb_views() where not internal and schema_name <> 'lake';
select schema_name, table_name, comment from duckdb_tables() where not internal;
select table_name, column_name, data_type, comment from duckdb_columns() where not internal and schema_name <> 'lake';
select table_schema, table_name, table_type, is_insertable_into, TABLE_COMMENT from information_schema.tables where table_schema in ('main', 's');
select table_name, view_definition from information_schema.views where table_schema = 's' or table_name in ('v', 'w', 'x', 'y');
select name from sqlite_master where type = 'view' and name in ('v', 'w', 'x', 'y');
show tables"""

SCRIPTS = {
    "names are bound when the view is used": """create table t (a integer, b varchar); insert into t values (1, 'x'), (2, 'y');
create view v as select * from t where a > 1; create view w (c) as select a + 1, b from v; from v; from w; describe v; describe w; show w;
select count(*) from v; select w.c, v.b from w join v on w.b = v.b; with q as (from v) select * from q; summarize v;
alter table t add column d integer; from v; describe v; alter table t drop column d; from v; alter table t alter a type bigint; describe v;
update t set a = a + 5; from w; delete from t where b = 'x'; from w; alter table t rename a to z; from v; from w; describe w; alter table t rename z to a;
from w; drop table t; from v; create table t (a varchar, b integer); from v; describe v; insert into t values ('9', 9); from v; from w""",
    "what may be a view": """create table t (a integer, g varchar); insert into t values (3, 'p'), (1, 'q'), (2, 'p');
create view v1 as select 1 as a, 2 as a; from v1; describe v1; create view v2 (x, y, z) as select 1, 2; create view v3 (x) as select 1, 2; from v3;
create view v4 (a, a) as select 1, 2; from v4; create view v5 as values (1, 'x'), (2, 'y'); from v5; create view v6 as describe select 1; from v6;
create view v7 as with recursive r as (select 1 as n union all select n + 1 from r where n < 5) from r; from v7; create view v8 as from t; from v8;
create view v9 as pivot (select 1 a, 2 b) on a using sum(b); create view v10 as pivot t on g in ('p', 'q') using sum(a); from v10;
create view v11 as table t; from v11; create view v12 as (select 1); from v12; create view v13 as from t order by a limit 2; from v13;
create view v14 as select g, sum(a) over (partition by g) as s from t qualify row_number() over (order by a) < 3; from v14;
create view v15 as select a from t union all select a + 10 from t; from v15; create view v16 as select * exclude (g), upper(g) as "G g" from t; from v16;
create view v17 as (with x as (select 1 as o) from x); from v17; create view v18 as select unnest([1, 2]) as u; from v18; create view v19 as select a from nope;
create view v20 as select nope from t; create view v21 as insert into t values (1); create view v22 as; create view v23 as summarize t; from v23;
create view "odd ""name" ("a b", "select") as select 1, 2; from "odd ""name"; describe "odd ""name"; create view v24 as select t.a, t from t; from v24;
create view V25 as select a from T; from v25; create view v26 as select /* a comment; */ 1 as a -- another
; from v26; create view v27 as select (select max(a) from t) as m; from v27; create view v28 as select * from t a natural join t b; from v28""",
    "one namespace": """create view v as select 1 as a; create table t (a integer); create table v (a integer); create table if not exists v (a integer); from v;
create view t as select 1; create or replace view t as select 1; create view if not exists t as select 1; from t; create or replace table v (b integer); from v;
create table v as select 1; drop table v; drop table if exists v; drop view t; drop view if exists t; create or replace view v as select 2 as b; from v;
create view if not exists v as select 3 as c; from v; insert into v values (1); update v set b = 2; delete from v; truncate v; alter table v add column x integer;
alter table v alter b type bigint; alter view v rename to t; alter view v rename to w; from w; from v; alter table w rename to x; from x; alter view t rename to z;
alter view nope rename to z; alter view if exists nope rename to z; drop view nope; drop view if exists nope; drop view x; from x; create table x (a integer); from x;
create or replace view if not exists v as select 2; create view nope.v as select 1; alter view x rename column a to b""",
    "schemas": """create schema s; create table t (a integer); insert into t values (1); create view s.v as from t; from s.v; create table s.t (b integer);
from s.v; insert into s.t values (7); from s.v; create view w as from s.t; from w; create view s.w as select * from main.t; from s.w; from w; drop view s.w;
create view s.x as select * from v; from s.x; create view y as select * from v; drop table s.t; from s.v; from s.x; create view v as select 5 as main; from s.x;
drop schema s; drop schema s cascade; from s.v; from w; from v""",
    "comments": """create table t (a integer, g integer); create view v as select 1 as a; comment on table t is 'T''s'; comment on column t.a is 'col a';
comment on view v is 'shown'; comment on column v.a is 'of a view'; comment on column v.nope is 'x'; alter table t rename a to z; alter table t alter z type bigint; alter table t alter z type varchar; alter table t add column q integer;
alter table t alter q set default 4; alter table t rename to u; comment on column u.nope is 'x'; comment on table nope is 'x'; comment on column nope.z is 'x';
comment on table u is 3; comment on table u is 'a' || 'b'; comment on column main.u.g is $$dollar$$; comment on column u.q is 'tab\t'; comment on table main.u is '';
comment on column z is 'x'; alter view v rename to w; comment on table w is 'a view too'; comment on column main.w.A is 'other'; select 1; create or replace view w as select 2 as a; comment on schema main is 'x'""",
    "comments that go": """create table t (a integer, b integer); comment on table t is 'x'; comment on column t.a is 'y'; comment on column t.b is 'z';
comment on column t.b is null; alter table t drop column a; comment on table t is null; comment on table t is 'again'; create or replace table t (b integer);
comment on column t.b is 'w'; alter table t alter b set not null; create or replace table t as select 1 as b""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_in_duckdb(con: Any, name: str) -> None:
    """Each statement, and what metadata says after each definition that is still whole."""
    with duckdb.connect() as plain:
        for number, statement in enumerate(SCRIPTS[name].replace(" a comment; ", " a comment ").split(";")):
            text = statement.strip()
            assert answer(con, text) == answer(plain, text), text
            if number % 4 == 3 and not name.startswith(("names", "schemas", "what")):
                for look in LISTED.split(";"):
                    assert answer(con, look.strip()) == answer(plain, look.strip()), (text, look)
        if name.startswith("what"):
            for look in LISTED.split(";"):
                assert answer(con, look.strip()) == answer(plain, look.strip()), look


def test_the_comment_of_a_replaced_view_goes(con: Any) -> None:
    con.executescript("CREATE VIEW v AS SELECT 1 AS a; COMMENT ON VIEW v IS 'x'; CREATE OR REPLACE VIEW v AS SELECT 2 AS a")
    assert rows(con, "SELECT comment FROM lake.views") == [(None,)]


# In transactions.


def test_a_transaction_sees_its_own_views_and_rolls_them_back(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        con.executescript("CREATE TABLE t (a INTEGER); CREATE VIEW v AS SELECT a + 1 AS b FROM t; INSERT INTO t VALUES (1)")
        assert rows(con, "FROM v") == [(2,)]
        assert rows(con, "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal") == [("v",)]
        assert rows(other, "SHOW TABLES") == []
        con.executescript("SAVEPOINT s; CREATE OR REPLACE VIEW v AS SELECT 5 AS b; ALTER VIEW v RENAME TO w")
        assert rows(con, "FROM w") == [(5,)]
        con.execute("ROLLBACK TO s")
        assert rows(con, "FROM v") == [(2,)]
        con.commit()
        assert rows(other, "FROM v") == [(2,)]
        con.execute("DROP VIEW v")
        with pytest.raises(ProgrammingError, match='table "v" does not exist'):
            con.execute("FROM v")
        con.rollback()
        assert rows(con, "FROM v") == [(2,)]


def test_a_definition_that_fails_leaves_the_one_before(con: Any) -> None:
    con.executescript("CREATE TABLE t (a INTEGER); CREATE VIEW v AS SELECT 1 AS a")
    for wrong in ("SELECT nope FROM t", "SELECT 1 FROM nope", "SELECT * FROM v", "SELECT * FROM t AT (VERSION => 99)"):
        with pytest.raises(ProgrammingError):
            con.execute(f"CREATE OR REPLACE VIEW v AS {wrong}")
        assert rows(con, "FROM v") == [(1,)]


def test_the_moment_of_a_transaction_is_the_one_of_its_views(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con:
        con.execute("CREATE VIEW clock AS SELECT now() AS t")
        con.execute("CREATE VIEW outer_clock AS FROM clock")
        first = rows(con, "FROM outer_clock")
        assert rows(con, "FROM clock") == first == rows(con, "SELECT now()")


def test_errors_name_the_view(con: Any) -> None:
    con.executescript("CREATE TABLE t (a INTEGER); CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a FROM v; ALTER TABLE t RENAME a TO b")
    with pytest.raises(ProgrammingError, match='view v cannot be read: column "a" does not exist') as caught:
        con.execute("SELECT * FROM w")
    assert "SHOW CREATE VIEW v" in (caught.value.hint or "")
    assert rows(con, "SELECT view_name, column_count FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal") == [("v", 1), ("w", 1)]
    assert rows(con, "SELECT column_name FROM duckdb_columns() WHERE table_name = 'v'") == []
    assert [(row[2], row[3]) for row in rows(con, "SHOW ALL TABLES")] == [("t", ["b"]), ("v", []), ("w", [])]
    assert rows(con, "SHOW CREATE VIEW v") == rows(con, "SHOW CREATE TABLE v") == [("CREATE VIEW v AS SELECT a FROM t;",)]


def test_a_name_that_is_no_column_of_a_view(con: Any) -> None:
    con.executescript("CREATE TABLE t (a INTEGER, b INTEGER); CREATE VIEW v (x) AS FROM t")
    with pytest.raises(ProgrammingError, match='column "zz" does not exist') as caught:
        con.execute("SELECT zz FROM v")
    assert caught.value.hint == "the columns of v are: x, b"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO v VALUES (1)", "INSERT OVERWRITE v SELECT 1", "UPDATE v SET a = 1", "DELETE FROM v", "TRUNCATE v", "OPTIMIZE v", "VACUUM v",
        "RESTORE TABLE v TO VERSION AS OF 2", "FROM table_changes('v', 1, 2)", "FROM table_changes('main.v', 1, 2)", "ALTER TABLE v DROP a",
        "COPY v FROM 'x.csv'", "CREATE TABLE n (LIKE v)",
    ],
)  # fmt: skip
def test_a_view_has_no_rows_of_its_own(con: Any, statement: str) -> None:
    con.executescript("CREATE TABLE t (a INTEGER); CREATE VIEW v AS FROM t")
    with pytest.raises(ProgrammingError, match=r'"v" is a view: it has no rows of its own'):
        con.execute(statement)


# History.


def test_a_version_of_a_view_is_its_query_of_then_over_what_that_read_then(con: Any) -> None:
    con.executescript("""CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); CREATE VIEW v (n) AS SELECT sum(a) FROM t; CREATE VIEW w AS SELECT n + 100 AS n FROM v;
        INSERT INTO t VALUES (10); CREATE OR REPLACE VIEW v AS SELECT 7 AS n; DELETE FROM t; ALTER TABLE t RENAME TO u; DROP TABLE u""")
    expected = {3: 3, 4: 3, 5: 13, 6: 7, 7: 7, 8: 7, 9: 7}
    for version, n in expected.items():
        assert rows(con, f"FROM v AT (VERSION => {version})") == [(n,)]
        if version > 3:
            assert rows(con, f"SELECT w.n, q.n FROM w AT (VERSION => {version}), v FOR VERSION AS OF {version} AS q") == [(n + 100, n)]
    assert rows(con, "DESCRIBE w AT (VERSION => 5)") == [("n", "HUGEINT", "YES", None, None, None)]
    assert rows(con, "SHOW CREATE VIEW v AT (VERSION => 5)") == [("CREATE VIEW v (n) AS SELECT sum(a) FROM t;",)]
    with pytest.raises(ProgrammingError, match='"v" does not exist in version 2'):
        con.execute("FROM v AT (VERSION => 2)")


def test_a_version_of_a_view_in_another_schema(con: Any) -> None:
    """A name without a schema means a table of the view's schema, or else one of main, as of the version."""
    con.executescript("""CREATE SCHEMA s; CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); CREATE VIEW s.v AS SELECT * FROM t;
        INSERT INTO t VALUES (2); CREATE TABLE s.t (b VARCHAR); INSERT INTO s.t VALUES ('x')""")
    assert rows(con, "FROM s.v") == [("x",)]
    assert rows(con, "FROM s.v AT (VERSION => 7)") == [("x",)]
    assert rows(con, "FROM s.v AT (VERSION => 6)") == []
    assert rows(con, "FROM s.v AT (VERSION => 5)") == [(1,), (2,)]
    assert rows(con, "FROM s.v AT (VERSION => 4)") == [(1,)]


def test_a_view_may_read_history(con: Any, tmp_path: Path) -> None:
    con.executescript("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
    con.execute("CREATE VIEW old AS SELECT * FROM t AT (VERSION => 2)")
    con.execute("CREATE VIEW news AS SELECT a FROM t EXCEPT FROM t FOR VERSION AS OF 2")
    con.execute("CREATE VIEW log AS SELECT change_type, a FROM table_changes('t', 2, 3)")
    con.execute("INSERT INTO t VALUES (3)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        for one in (con, other):
            assert rows(one, "FROM old") == [(1,)]
            assert sorted(rows(one, "FROM news")) == [(2,), (3,)]
            assert rows(one, "FROM log ORDER BY a") == [("insert", 1), ("insert", 2)]
            assert rows(one, "SELECT sql FROM duckdb_views() WHERE view_name = 'old'") == [("CREATE VIEW old AS SELECT * FROM t AT (VERSION => 2);",)]
            assert rows(one, "SELECT column_name FROM duckdb_columns() WHERE table_name = 'log'") == [("change_type",), ("a",)]
    con.execute("VACUUM RETAIN 0 HOURS")
    with pytest.raises(OperationalError, match="view old cannot be read: version 2 has expired"):
        con.execute("FROM old")


def test_views_expire_with_their_versions(con: Any) -> None:
    con.executescript(
        "CREATE VIEW v AS SELECT 1 AS a; COMMENT ON VIEW v IS 'x'; CREATE OR REPLACE VIEW v AS SELECT 2 AS a; DROP VIEW v; CREATE VIEW v AS SELECT 3 AS a"
    )
    con.execute("VACUUM RETAIN 0 HOURS")
    assert con._session.lake.catalog.rows("views", snapshot=5) == [(2, "SELECT 3 AS a", "[]", "[]")]
    assert rows(con, "FROM v") == [(3,)]
    assert rows(con, "CHECK LAKE") == []


# Elsewhere.


def test_system_views_inside_of_a_view(con: Any) -> None:
    con.executescript(
        "CREATE TABLE t (a INTEGER); CREATE VIEW names AS SELECT table_name FROM lake.tables; CREATE VIEW said AS SELECT table_name FROM information_schema.tables"
    )
    assert rows(con, "FROM names") == [("t",)]
    con.execute("CREATE TABLE u (a INTEGER)")
    assert rows(con, "FROM names ORDER BY 1") == [("t",), ("u",)]
    assert {("t",), ("u",), ("said",)} <= set(rows(con, "FROM said"))
    with pytest.raises(NotSupportedError, match="past version of view names"):
        con.execute("FROM names AT (VERSION => 3)")


def test_duckdb_shows_them(con: Any) -> None:
    con.executescript(
        "CREATE SCHEMA s; CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); CREATE VIEW s.b AS FROM t; CREATE VIEW a AS SELECT a + 1 AS n FROM s.b"
    )
    con.executescript(
        "CREATE VIEW old AS FROM t AT (VERSION => 2); CREATE VIEW broken AS FROM t; CREATE TABLE u (a INTEGER); CREATE OR REPLACE VIEW broken AS FROM u; DROP TABLE u"
    )
    view = con.duckdb()
    assert view.execute("FROM a").fetchall() == [(2,)]
    assert view.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall() == [("a",), ("b",), ("t",)]


def test_files_and_variables(con: Any, tmp_path: Path) -> None:
    """A file is read whenever the view is; a variable is the caller's, and a view outlives it."""
    (tmp_path / "x.csv").write_text("n\n1\n2\n")
    con.execute(f"CREATE VIEW v AS SELECT sum(n) AS n FROM read_csv('{tmp_path}/x.csv')")
    assert rows(con, "FROM v") == [(3,)]
    (tmp_path / "x.csv").write_text("n\n5\n")
    assert rows(con, "FROM v") == [(5,)]
    frame = duckdb.sql("SELECT 1 AS a").to_arrow_table()
    assert con.execute("FROM frame").fetchall() == [(1,)]
    with pytest.raises(ProgrammingError, match='"frame" does not exist'):
        con.execute("CREATE VIEW w AS FROM frame")
    assert frame.num_rows == 1


def test_many_views_on_views(con: Any) -> None:
    con.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)".split(";")[0])
    con.execute("INSERT INTO t VALUES (1)")
    with con.transaction():
        con.execute("CREATE VIEW v0 AS FROM t")
        for i in range(1, 20):
            con.execute(f"CREATE VIEW v{i} AS SELECT a + 1 AS a FROM v{i - 1}")
    assert rows(con, "FROM v19") == [(20,)]
    assert rows(con, "SELECT count(*) FROM v3 JOIN v4 ON v3.a + 1 = v4.a") == [(1,)]
    assert rows(
        con, "SELECT column_name, count(*) FROM information_schema.columns WHERE table_name LIKE 'v%' AND table_schema = 'main' GROUP BY 1"
    ) == [("a", 20)]


# COMMENT ON and LIKE.


def test_comments_stay_through_optimize_restore_and_reopening(con: Any, tmp_path: Path) -> None:
    con.executescript(
        "CREATE TABLE t (a INTEGER); COMMENT ON TABLE t IS 'x'; COMMENT ON COLUMN t.a IS 'y'; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); OPTIMIZE t"
    )
    con.executescript("COMMENT ON COLUMN t.a IS 'z'; RESTORE TABLE t TO VERSION AS OF 4")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        assert rows(other, "SELECT table_name, comment FROM lake.tables") == [("t", "x")]
        assert rows(other, "SELECT column_name, comment FROM lake.columns") == [("a", "y")]
        assert rows(other, "SELECT operation FROM lake.snapshots WHERE operation = 'COMMENT'") == [("COMMENT",)] * 3


def test_a_table_like_another(con: Any) -> None:
    """DuckDB has no LIKE: as in PostgreSQL, names, types and NOT NULL, and with INCLUDING ALL defaults and comments too."""
    con.executescript(
        "CREATE TABLE t (a INTEGER NOT NULL DEFAULT 3, \"B b\" STRUCT(x INTEGER)); COMMENT ON TABLE t IS 'x'; COMMENT ON COLUMN t.a IS 'y'"
    )
    con.executescript("CREATE TABLE n (LIKE t); CREATE TABLE m (LIKE t INCLUDING ALL); CREATE TABLE IF NOT EXISTS n (LIKE m INCLUDING ALL)")
    assert rows(con, "DESCRIBE n") == [("a", "INTEGER", "NO", None, None, None), ("B b", "STRUCT(x INTEGER)", "YES", None, None, None)]
    assert rows(con, "DESCRIBE m") == rows(con, "DESCRIBE t")
    assert rows(con, "SELECT table_name, comment FROM lake.tables ORDER BY 1") == [("m", "x"), ("n", None), ("t", "x")]
    assert rows(con, "SELECT comment FROM lake.columns WHERE table_name = 'm'") == [("y",), (None,)]
    con.executescript("INSERT INTO m DEFAULT VALUES; CREATE OR REPLACE TABLE m (LIKE n)")
    assert rows(con, "FROM m") == []
    with pytest.raises(lakelite.IntegrityError):
        con.execute("INSERT INTO m DEFAULT VALUES")


def test_the_past_of_views_that_read_history(lake: Any) -> None:
    lake.execute("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2)")
    lake.execute("CREATE VIEW v AS FROM t AT (VERSION => 1); CREATE VIEW w AS SELECT a, 'lake' AS lake FROM v")
    lake.execute("CREATE VIEW x AS FROM table_changes('t', 1, 2); CREATE VIEW now AS SELECT count(*) AS n FROM lake.snapshots")
    version = lake.last_commit.snapshot_id
    lake.execute("CREATE OR REPLACE VIEW v AS FROM t AT (VERSION => 2); DELETE FROM t")
    assert lake.execute(f"FROM v AT (VERSION => {version})").fetchall() == [(1,)]
    assert lake.execute(f"FROM w AT (VERSION => {version})").fetchall() == [(1, "lake")]
    assert lake.execute("FROM w ORDER BY a").fetchall() == [(1, "lake"), (2, "lake")]
    assert [row[-1] for row in lake.execute(f"FROM x AT (VERSION => {version}) ORDER BY ALL").fetchall()] == [1, 2]
    with pytest.raises(lakelite.NotSupportedError, match="reads system views"):
        lake.execute(f"FROM now AT (VERSION => {version})")
