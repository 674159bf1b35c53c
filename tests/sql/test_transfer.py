"""EXPORT DATABASE and IMPORT DATABASE: what comes out goes in again, here and in DuckDB; DuckDB and SQLite files come in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest

import lakelite

VALUES = {
    "h": ("HUGEINT", "-99999999999999999999999999999999999999::HUGEINT"),
    "iv": ("INTERVAL", "INTERVAL '1 year 3 days 00:00:00.000007'"),
    "tz": ("TIMETZ", "'10:00:00.123456+02'"),
    "e": ("ENUM('a', 'it''s')", "'it''s'"),
    "b": ("BIT", "'0101'"),
    "bn": ("BIGNUM", "'123456789012345678901234567890123456789012345678901'"),
    "ts": ("TIMESTAMP_NS", "'2020-01-01 00:00:00.000000001'"),
    "tm": ("TIMESTAMP_MS", "'2020-01-01 00:00:00.123'"),
    "stamp": ("TIMESTAMPTZ", "'2020-01-01 00:00:00.123456+00'"),
    "ar": ("INTEGER[3]", "[1, NULL, 3]"),
    "un": ("UNION(n INTEGER, t VARCHAR)[]", "[union_value(t := '5'), union_value(n := 5), NULL]"),
    "li": ("HUGEINT[]", "[1, NULL]"),
    "st": ("STRUCT(a INTERVAL, b VARCHAR)", "{'a': INTERVAL 5 MINUTES, 'b': 'x, ''y'' { NULL'}"),
    "ma": ("MAP(VARCHAR, INTERVAL)", "MAP {'k=,1': INTERVAL 1 DAY}"),
    "js": ("JSON", """'{"a": [1, null]}'"""),
    "uu": ("UUID", "'00000000-0000-0000-0000-000000000001'"),
    "bl": ("BLOB", r"'\x00\xFF'::BLOB"),
    "de": ("DECIMAL(9, 2)", "-1.50"),
    "fl": ("DOUBLE", "'-inf'"),
    "odd name": ("VARCHAR", "''"),
}


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Any]:
    with lakelite.connect(tmp_path / "other", autocommit=True) as con:
        yield con


def everything(con: Any, names: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    found = {}
    for name in names:
        cursor = con.execute(f"SELECT * FROM {name} ORDER BY ALL")
        columns = [(d[0], str(d[1])) for d in cursor.description]
        found[name] = (columns, cursor.fetchall())
    return found


def test_all_types_tables_and_schemas_come_back_here_and_in_duckdb(lake: Any, other: Any, tmp_path: Path) -> None:
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in VALUES.items())
    lake.executescript(f"""
        CREATE TABLE t ({columns}); CREATE SCHEMA "my schema";
        INSERT INTO t SELECT {", ".join(value for _, value in VALUES.values())};
        INSERT INTO t ("odd name") VALUES ('only'); DELETE FROM t WHERE "odd name" = 'nothing';
        CREATE TABLE "my schema"."a.b" (a INTEGER NOT NULL DEFAULT 3, "select" VARCHAR DEFAULT 'it''s');
        INSERT INTO "my schema"."a.b" SELECT range, range::VARCHAR FROM range(3000); DELETE FROM "my schema"."a.b" WHERE a % 2 = 0;
        CREATE TABLE "A B" (x INTEGER); CREATE TABLE a_b (x INTEGER); INSERT INTO a_b VALUES (1);
    """)
    names = ("t", '"my schema"."a.b"', '"A B"', "a_b")
    before = everything(lake, names)
    cursor = lake.execute("EXPORT DATABASE ?", [str(tmp_path / "out")])
    assert [d[0] for d in cursor.description] == ["tables", "rows", "directory"]
    assert cursor.fetchall() == [(4, 1503, str(tmp_path / "out"))]
    assert other.execute("IMPORT DATABASE ?", [tmp_path / "out"]).fetchall() == [(4, 1503)]
    assert everything(other, names) == before
    for sql in ("SHOW CREATE TABLE t", 'SHOW CREATE TABLE "my schema"."a.b"'):
        assert other.execute(sql).fetchall() == lake.execute(sql).fetchall()
    with closing(duckdb.connect()) as duck:
        duck.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        theirs = everything(duck, names)
    assert {n: rows for n, (_, rows) in theirs.items()} == {n: rows for n, (_, rows) in before.items()}
    assert len(other.execute("FROM lake.snapshots").fetchall()) == 2, "the whole import is one version"


def test_what_duckdb_exported_comes_in_wherever_it_lies_now(lake: Any, tmp_path: Path) -> None:
    with closing(duckdb.connect()) as duck:
        duck.execute(
            "CREATE SCHEMA s; CREATE TABLE s.t AS SELECT range AS i, 'v' || range AS v FROM range(2000); CREATE TABLE u (d DATE DEFAULT '2020-01-01')"
        )
        for form in ("parquet", "csv"):
            duck.execute(f"EXPORT DATABASE '{tmp_path / form}' (FORMAT {form})")
        rows = duck.execute("FROM s.t ORDER BY i").fetchall()
    for form in ("parquet", "csv"):
        (tmp_path / form).rename(tmp_path / "moved")
        assert lake.execute(f"IMPORT DATABASE '{tmp_path / 'moved'}'").fetchall() == [(2, 2000)]
        assert lake.execute("FROM s.t ORDER BY i").fetchall() == rows
        lake.execute("DROP SCHEMA s CASCADE; DROP TABLE u")
        (tmp_path / "moved").rename(tmp_path / f"{form} was")


def test_an_import_is_all_or_nothing_and_says_where_it_failed(lake: Any, other: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE a (i INTEGER); INSERT INTO a VALUES (1); CREATE TABLE b (i INTEGER)")
    lake.execute(f"EXPORT DATABASE '{tmp_path / 'out'}'")
    (tmp_path / "out" / "schema.sql").write_text("CREATE TABLE a (i INTEGER);\nCREATE SEQUENCE q;\n")
    with pytest.raises(lakelite.NotSupportedError, match=r"(?s)schema.sql: CREATE SEQUENCE is not supported.*STATEMENT 2, LINE 2"):
        other.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
    assert other.execute("SHOW TABLES").fetchall() == []
    other.execute("BEGIN; CREATE TABLE mine (a INTEGER)")
    with pytest.raises(lakelite.NotSupportedError):
        other.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
    other.execute("COMMIT")
    assert other.execute("SHOW TABLES").fetchall() == [("mine",)]
    (tmp_path / "out" / "schema.sql").write_text("CREATE TABLE a (i INTEGER); CREATE TABLE b (i INTEGER)")
    (tmp_path / "out" / "b.parquet").write_bytes(b"no Parquet")
    with pytest.raises(lakelite.Error, match=r"load\.sql: "):
        other.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
    assert other.execute("SHOW TABLES").fetchall() == [("mine",)]


def test_inside_of_a_transaction_they_are_part_of_it(lake: Any, other: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE a (i INTEGER); BEGIN; INSERT INTO a VALUES (1)")
    lake.execute(f"EXPORT DATABASE '{tmp_path / 'out'}'")
    lake.execute("ROLLBACK")
    other.execute("BEGIN")
    assert other.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'").fetchall() == [(1, 1)]
    assert other.execute("FROM a").fetchall() == [(1,)]
    other.execute("ROLLBACK")
    assert other.execute("SHOW TABLES").fetchall() == []
    with lakelite.connect(tmp_path / "third") as third:
        third.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        assert third.in_transaction
        third.rollback()
        assert third.execute("SHOW TABLES").fetchall() == []
    with lakelite.connect(tmp_path / "other", read_only=True) as reader:
        with pytest.raises(lakelite.OperationalError, match="this connection is read-only"):
            reader.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        reader.execute(f"EXPORT DATABASE '{tmp_path / 'again'}'")


def test_an_export_that_fails_leaves_nothing(lake: Any, tmp_path: Path) -> None:
    lake.execute(
        "CREATE TABLE a (i INTEGER); CREATE TABLE b (u UNION(n INTERVAL, t VARCHAR)); INSERT INTO b VALUES (union_value(n := INTERVAL 1 DAY))"
    )
    with pytest.raises(lakelite.DataError, match=r"1 of the values in b.u \(UNION"):
        lake.execute(f"EXPORT DATABASE '{tmp_path / 'out'}'")
    assert not (tmp_path / "out").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(lakelite.DataError):
        lake.execute(f"EXPORT DATABASE '{tmp_path / 'there'}'")
    assert list((tmp_path / "there").iterdir()) == []
    (tmp_path / "there" / "mine.txt").write_text("x")
    for place in ("there", "there/mine.txt"):
        with pytest.raises(lakelite.OperationalError, match="not an empty directory"):
            lake.execute(f"EXPORT DATABASE '{tmp_path / place}'")
    assert not lake.in_transaction


@pytest.mark.parametrize(
    ("sql", "kind", "words"),
    [
        ("EXPORT", lakelite.ProgrammingError, "expected DATABASE"),
        ("EXPORT DATABASE", lakelite.ProgrammingError, "expected the path of a directory"),
        ("EXPORT DATABASE x TO 'y'", lakelite.NotSupportedError, "a connection is to one lake"),
        ("EXPORT DATABASE 'x' (FORMAT csv)", lakelite.NotSupportedError, "COPY t TO"),
        ("EXPORT DATABASE 'x' (DELIMITER '|')", lakelite.NotSupportedError, "other than FORMAT"),
        ("EXPORT DATABASE 'x' now", lakelite.ProgrammingError, "now"),
        ("IMPORT DATABASE", lakelite.ProgrammingError, "or of a DuckDB or SQLite file"),
        ("IMPORT DATABASE 'no/where'", lakelite.OperationalError, "there is no no/where"),
    ],
)
def test_errors(lake: Any, sql: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        lake.execute(sql)


def test_paths_that_are_none(lake: Any, tmp_path: Path) -> None:
    for value in (None, 5, ""):
        with pytest.raises(lakelite.ProgrammingError, match="has to be a text"):
            lake.execute("IMPORT DATABASE ?", [value])
    (tmp_path / "empty").mkdir()
    with pytest.raises(lakelite.OperationalError, match=r"schema\.sql"):
        lake.execute("IMPORT DATABASE ?", [tmp_path / "empty"])
    for name, content in (("a.txt", b"hello"), ("nothing", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(lakelite.OperationalError, match="neither a DuckDB nor a SQLite file"):
            lake.execute("IMPORT DATABASE ?", [tmp_path / name])


def test_a_duckdb_file(lake: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in VALUES.items())
    with closing(duckdb.connect(str(path))) as duck:
        duck.execute("CREATE TYPE mood AS ENUM ('ok', 'sad'); CREATE SEQUENCE q; CREATE SCHEMA s")
        duck.execute(
            f"CREATE TABLE t ({columns}); INSERT INTO t SELECT {', '.join(value for _, value in VALUES.values())}; INSERT INTO t (h) VALUES (NULL)"
        )
        duck.execute(
            "CREATE TABLE s.k (i INTEGER PRIMARY KEY DEFAULT nextval('q'), m mood NOT NULL DEFAULT 'ok', CHECK (i > 0)); CREATE VIEW v AS FROM t"
        )
        duck.execute("INSERT INTO s.k (m) SELECT 'sad' FROM range(25_000)")
        before = everything(duck, ("t", "s.k"))
    cursor = lake.execute("IMPORT DATABASE ?", [path])
    assert cursor.fetchall() == [(2, 25_002)]
    assert [text for _, text in cursor.messages] == [
        f"{what} was left out" for what in ("s.k: i DEFAULT nextval('q')", "sequence main.q", "type main.mood", "view main.v")
    ]
    after = everything(lake, ("t", "s.k"))
    assert {n: rows for n, (_, rows) in after.items()} == {n: rows for n, (_, rows) in before.items()}
    assert [kind for _, kind in after["s.k"][0]] == ["INTEGER", "ENUM('ok', 'sad')"]
    for value, words in ((-1, "CHECK"), (7, "primary key")):
        with pytest.raises(lakelite.IntegrityError, match=words):
            lake.execute("INSERT INTO s.k (i) VALUES (?)", [value])
    lake.execute("INSERT INTO s.k (i) VALUES (100_000)")
    assert lake.execute("SELECT m FROM s.k WHERE i = 100_000").fetchall() == [("ok",)]
    with pytest.raises(lakelite.ProgrammingError, match="already exists"):
        lake.execute("IMPORT DATABASE ?", [path])


def test_a_sqlite_file(lake: Any, tmp_path: Path) -> None:
    path = tmp_path / "x y.db"
    with closing(sqlite3.connect(path)) as other:
        other.executescript("""
            CREATE TABLE people (
                id INTEGER PRIMARY KEY, name TEXT NOT NULL, born DATE, seen DATETIME, is_in BOOLEAN, share REAL DEFAULT 1, photo BLOB, odd, none INT
            );
            CREATE TABLE "select" ("a b" NUMERIC);
            CREATE TABLE "nullable" (k TEXT PRIMARY KEY); INSERT INTO nullable VALUES (NULL), ('x');
            CREATE INDEX i ON people (name);
        """)
        other.execute("INSERT INTO people VALUES (1, 'Ann', '1990-01-02', '2020-01-01 10:00:00.5', 1, 2, x'00ff', 'x', NULL)")
        other.execute("INSERT INTO people VALUES (2, 'Bob', NULL, NULL, 0, NULL, NULL, 5, NULL)")
        other.executemany('INSERT INTO "select" VALUES (?)', [(n / 2,) for n in range(25_001)])
        other.commit()
    cursor = lake.execute("IMPORT DATABASE ?", [path])
    assert cursor.fetchall() == [(3, 25_005)]
    assert [text for _, text in cursor.messages] == [
        'main.nullable: PRIMARY KEY("k") was left out',
        "main.people: share DEFAULT 1 was left out",
        "index main.i of people was left out",
    ]
    with pytest.raises(lakelite.IntegrityError, match="primary key"):
        lake.execute("INSERT INTO people (id, name) VALUES (1, 'again')")
    cursor = lake.execute("FROM people ORDER BY id")
    kinds = ["BIGINT", "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN", "DOUBLE", "BLOB", "VARCHAR", "BIGINT"]
    assert [str(d[1]) for d in cursor.description] == kinds
    assert cursor.to_arrow().to_pylist()[0] | {"born": "", "seen": ""} == {
        "id": 1, "name": "Ann", "born": "", "seen": "", "is_in": True, "share": 2.0, "photo": b"\x00\xff", "odd": "x", "none": None,
    }  # fmt: skip
    assert lake.execute("SELECT born::VARCHAR, seen::VARCHAR FROM people ORDER BY id").fetchall()[0] == ("1990-01-02", "2020-01-01 10:00:00.5")
    assert lake.execute("SELECT odd FROM people ORDER BY id").fetchall() == [("x",), ("5",)]
    assert lake.execute('SELECT count(*), sum("a b") FROM "select"').fetchall() == [(25_001, sum(n / 2 for n in range(25_001)))]


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("x'00', 1", lakelite.DataError, 'column "a" of t holds blobs and other values'),
        ("CAST(x'ff' AS TEXT), 1", lakelite.Error, "UTF-8"),
    ],
)
def test_values_of_sqlite_that_no_type_holds(lake: Any, tmp_path: Path, value: str, error: type[Exception], words: str) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as other:
        other.execute("CREATE TABLE t (a)")
        other.execute(f"INSERT INTO t SELECT column1 FROM (VALUES ({value.replace(', 1', '), (1')}))")
        other.commit()
    with pytest.raises(error, match=words):
        lake.execute("IMPORT DATABASE ?", [tmp_path / "x.db"])
    assert lake.execute("SHOW TABLES").fetchall() == []


def left_out(lake: Any, path: Path) -> list[str]:
    cursor = lake.execute("IMPORT DATABASE ?", [path])
    return [str(text).removesuffix(" was left out") for _, text in cursor.messages]


def test_what_duckdb_has_and_a_lake_has_not_is_said(lake: Any, tmp_path: Path) -> None:
    with closing(duckdb.connect(str(tmp_path / "x.duckdb"))) as duck:
        for statement in (
            'CREATE TABLE p (id INTEGER PRIMARY KEY, a VARCHAR COLLATE NOCASE.NOACCENT, "b, COLLATE c" VARCHAR COLLATE de)',
            "CREATE TABLE t (i INTEGER REFERENCES p (id), g INTEGER GENERATED ALWAYS AS (i + 1), s VARCHAR DEFAULT ' COLLATE de')",
            "INSERT INTO p (id) VALUES (1)",
            "INSERT INTO t (i) VALUES (1)",
            "CREATE INDEX one ON p (a)",
            "CREATE UNIQUE INDEX two ON p (lower(a))",
            "CREATE MACRO plus(x) AS x + 1",
            "CREATE MACRO rows_of(x) AS TABLE SELECT x",
            "CREATE SCHEMA bare",
            "COMMENT ON TABLE t IS 'it''s'",
            "COMMENT ON COLUMN t.g IS 'more'",
        ):
            duck.execute(statement).fetchall()
    assert left_out(lake, tmp_path / "x.duckdb") == [
        "main.p: COLLATE NOCASE.NOACCENT of a",
        'main.p: COLLATE de of "b, COLLATE c"',
        "main.t: FOREIGN KEY (i) REFERENCES p(id)",
        "main.t: GENERATED ALWAYS AS CAST((i + 1) AS INTEGER) of g (a plain column now, with the values that it had)",
        "index main.one of p",
        "macro main.plus",
        "macro main.rows_of",
        "unique index main.two of p",
    ]
    assert lake.execute("FROM t").fetchall() == [(1, 2, " COLLATE de")]
    assert lake.execute("SELECT comment FROM lake.columns WHERE column_name = 'g'").fetchall() == [("more",)]
    assert lake.execute("SELECT comment FROM lake.tables WHERE table_name = 't'").fetchall() == [("it's",)]
    assert "bare" in [name for _, name, _ in lake.execute("SHOW SCHEMAS").fetchall()]


def test_a_value_of_a_file_that_a_lake_cannot_hold(lake: Any, tmp_path: Path) -> None:
    with closing(duckdb.connect(str(tmp_path / "x.duckdb"))) as duck:
        duck.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 170141183460469231731687303715884105727 AS h").fetchall()
    with pytest.raises(lakelite.DataError, match=r"s\.t: 1701.* out of range: a lake holds numbers of up to 38 digits.*\(column h\)"):
        lake.execute("IMPORT DATABASE ?", [tmp_path / "x.duckdb"])
    assert lake.execute("SHOW ALL TABLES").fetchall() == []


@pytest.mark.parametrize("value", ["170141183460469231731687303715884105727", "'340282366920938463463374607431768211455'"])
def test_more_digits_than_a_lake_holds(lake: Any, value: str) -> None:
    lake.execute("CREATE TABLE big (h HUGEINT, u UHUGEINT, d DECIMAL(38, 2))")
    with pytest.raises(lakelite.DataError, match=r"up to 38 digits.*\(column u\)\nHint: VARCHAR holds every digit"):
        lake.execute(f"INSERT INTO big (u) VALUES ({value})")
    with pytest.raises(lakelite.DataError, match=r"Hint: (use a wider type|TRY_CAST)"):
        lake.execute(f"INSERT INTO big (d) VALUES ({value})")


def test_what_sqlite_has_and_a_lake_has_not_is_said(lake: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as other:
        other.executescript("""
            CREATE TABLE p (id INTEGER PRIMARY KEY AUTOINCREMENT, f INT CHECK (f > 0 AND f IN (1, 2)), -- CHECK (none)
                [n, m] TEXT UNIQUE COLLATE NOCASE DEFAULT ') CHECK (', /* COLLATE x */ v AS (id + 1), s INT GENERATED ALWAYS AS (id+2) STORED,
                CONSTRAINT c CHECK (f < 9), UNIQUE (f, id));
            CREATE TABLE q (x INT REFERENCES p ON DELETE CASCADE, y TEXT, FOREIGN KEY (x, y) REFERENCES p (id, f));
            CREATE INDEX one ON q (y); CREATE UNIQUE INDEX two ON q (x) WHERE x > 3;
            CREATE VIEW seen AS SELECT * FROM p; CREATE TRIGGER fired AFTER INSERT ON p BEGIN INSERT INTO q VALUES (1, 'a'); END;
            INSERT INTO p (id, f) VALUES (1, 2);
        """)
    plain = "(a plain column now, with the values that it had)"
    assert left_out(lake, tmp_path / "x.db") == [
        "main.p: n, m DEFAULT ') CHECK ('",
        "main.p: AUTOINCREMENT of id",
        "main.p: CHECK (f > 0 AND f IN (1, 2)) of f",
        "main.p: COLLATE NOCASE of [n, m]",
        f"main.p: GENERATED ALWAYS AS (id + 1) of v {plain}",
        f"main.p: GENERATED ALWAYS AS (id+2) of s {plain}",
        "main.p: CHECK (f < 9)",
        "main.p: UNIQUE (n, m)",
        "main.p: UNIQUE (f, id)",
        "main.q: FOREIGN KEY (x) REFERENCES p",
        "main.q: FOREIGN KEY (x, y) REFERENCES p",
        "index main.one of q",
        "trigger main.fired of p",
        "unique index main.two of q",
        "view main.seen",
    ]
    assert lake.execute("FROM p").fetchall() == [(1, 2, ") CHECK (", 2, 3)]


def test_dates_that_are_no_dates_stay_text(lake: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as other:
        other.execute("CREATE TABLE t (a DATE, b DATE, c TIMESTAMP, d BOOLEAN, e TIMESTAMP)")
        other.execute("INSERT INTO t VALUES ('2020-02-30', 'soon', '2020-01-01', 2, '2020-01-01 00:00:00+02')")
        other.execute("INSERT INTO t VALUES ('2020-02-28', '2020-01-01', '2020-01-01 00:00:00', 1, '2020-01-01T00:00:00')")
        other.commit()
    lake.execute("IMPORT DATABASE ?", [tmp_path / "x.db"])
    assert [str(d[1]) for d in lake.execute("FROM t").description] == ["VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "VARCHAR"]


def test_an_export_in_a_transaction_was_shown(lake: Any, tmp_path: Path) -> None:
    lake.execute("CREATE TABLE a AS SELECT 1 AS i; CREATE TABLE b (i INTEGER)")
    lake.execute("BEGIN")
    lake.execute(f"EXPORT DATABASE '{tmp_path / 'out'}'")
    lake.execute("INSERT INTO b VALUES (1)")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as winner:
        winner.execute("UPDATE a SET i = 2")
    with pytest.raises(lakelite.TransactionConflict):
        lake.execute("COMMIT")
    assert pyarrow.parquet.read_table(tmp_path / "out" / "a.parquet").to_pylist() == [{"i": 1}]


def test_views_and_comments_go_with_it_here_and_to_duckdb(lake: Any, other: Any, tmp_path: Path) -> None:
    lake.executescript("""CREATE SCHEMA s; CREATE TABLE s.t (a INTEGER); INSERT INTO s.t VALUES (1); CREATE VIEW b AS SELECT 1 AS z;
        CREATE VIEW s.a (n) AS SELECT a + 1 FROM t; CREATE OR REPLACE VIEW b AS FROM s.a; CREATE VIEW old AS FROM s.t AT (VERSION => 3);
        CREATE TABLE gone (a INTEGER); CREATE VIEW broken AS FROM gone; DROP TABLE gone;
        COMMENT ON TABLE s.t IS 'it''s'; COMMENT ON COLUMN s.t.a IS 'key'; COMMENT ON VIEW b IS 'shown'; COMMENT ON COLUMN s.a.n IS 'one more'""")
    done = lake.execute(f"EXPORT DATABASE '{tmp_path}/out'")
    assert [str(message) for _, message in done.messages] == [
        f"view {name} was left out: its query fails, or reads history, which is not exported" for name in ("broken", "old")
    ]
    other.execute(f"IMPORT DATABASE '{tmp_path}/out'")
    with duckdb.connect() as plain:
        plain.execute(f"IMPORT DATABASE '{tmp_path}/out'")
        for con in (other, plain):
            assert con.execute("SELECT * FROM b").fetchall() == [(2,)]
            assert con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 't'").fetchall() == [("it's",)]
            assert con.execute("SELECT comment FROM duckdb_columns() WHERE table_name = 't'").fetchall() == [("key",)]
            assert con.execute("SELECT comment FROM duckdb_columns() WHERE table_name = 'a'").fetchall() == [("one more",)]
            assert con.execute("SELECT comment FROM duckdb_views() WHERE view_name = 'b'").fetchall() == [("shown",)]
