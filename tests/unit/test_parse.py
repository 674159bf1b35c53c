"""Parsing: which statements there are, what is refused and where, and that the user's own characters stay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lakelite import errors
from lakelite.language import statements as st
from lakelite.language.parse import iter_statements, parse_script
from lakelite.language.statements import Name, Sql, TableChanges, TimeTravel
from lakelite.language.travel import name_in


def one(text: str, named: frozenset[str] | None = None) -> st.Statement:
    (statement,) = parse_script(text, named)
    return statement


def op(text: str, named: frozenset[str] | None = None) -> Any:
    return one(text, named).operation


def sql(text: str, offset: int, *parameters: str) -> Sql:
    return Sql((text,), parameters, offset)


def sources(text: str, offset: int, **items: int) -> st.Sources:
    return st.Sources(sql(text, offset), tuple(st.SourceItem(name, sql(name, place)) for name, place in items.items()))


T = Name(None, "t", 0)


def t(offset: int) -> Name:
    return Name(None, "t", offset)


ACCEPTED: list[tuple[str, st.Operation]] = [
    ("SELECT count(*) FROM t", st.Query(sql("SELECT count(*) FROM t", 0), t(21))),
    ('select COUNT ( * ) from "S"."T";', st.Query(sql('select COUNT ( * ) from "S"."T"', 0), Name("S", "T", 24))),
    ("SELECT count(*) FROM t x", st.Query(sql("SELECT count(*) FROM t x", 0))),
    ("SELECT count(*) FROM a.b.c", st.Query(sql("SELECT count(*) FROM a.b.c", 0))),
    ("SELECT count(*) FROM 'f.csv'", st.Query(sql("SELECT count(*) FROM 'f.csv'", 0))),
    ("SELECT count(a) FROM t", st.Query(sql("SELECT count(a) FROM t", 0))),
    ("CREATE SCHEMA s", st.CreateSchema("s", False)),
    ('create schema if not exists "a b"', st.CreateSchema("a b", True)),
    ("DROP SCHEMA s", st.DropSchema("s", False, False)),
    ("DROP SCHEMA IF EXISTS s CASCADE", st.DropSchema("s", True, True)),
    ("DROP SCHEMA s RESTRICT", st.DropSchema("s", False, False)),
    ("CREATE TABLE t (a INT, b DECIMAL(10, 2) NOT NULL)", st.CreateTable(t(13), False, False, "(a INT, b DECIMAL(10, 2) NOT NULL)")),
    ("CREATE OR REPLACE TABLE s.t (a INT)", st.CreateTable(Name("s", "t", 24), True, False, "(a INT)")),
    ("CREATE TABLE IF NOT EXISTS t(a INT)", st.CreateTable(t(27), False, True, "(a INT)")),
    ("CREATE TABLE t AS FROM u", st.CreateTableAs(t(13), False, False, None, sql("FROM u", 18), True)),
    ("CREATE TABLE t (a, b) AS (SELECT 1, 2) WITH NO DATA", st.CreateTableAs(t(13), False, False, ("a", "b"), sql("(SELECT 1, 2)", 25), False)),
    ("CREATE OR REPLACE TABLE t AS VALUES (1) WITH DATA", st.CreateTableAs(t(24), True, False, None, sql("VALUES (1)", 29), True)),
    ("DROP TABLE t", st.DropTable((t(11),), False)),
    ("DROP TABLE IF EXISTS a, s.b", st.DropTable((Name(None, "a", 21), Name("s", "b", 24)), True)),
    ("INSERT INTO t VALUES (1), (2)", st.Insert(t(12), False, None, False, sql("VALUES (1), (2)", 14), True, None)),
    ('INSERT INTO t ("a b", c) VALUES (1, ?)', st.Insert(t(12), False, ("a b", "c"), False, sql("VALUES (1, $1)", 25, "1"), True, None)),
    ("INSERT INTO t FROM x", st.Insert(t(12), False, None, False, sql("FROM x", 14), False, None)),
    ("INSERT INTO t (a) FROM x", st.Insert(t(12), False, ("a",), False, sql("FROM x", 18), False, None)),
    ("INSERT INTO t (FROM x)", st.Insert(t(12), False, None, False, sql("(FROM x)", 14), False, None)),
    ("INSERT INTO t ((SELECT 1))", st.Insert(t(12), False, None, False, sql("((SELECT 1))", 14), False, None)),
    ("INSERT INTO t (a) (SELECT 1)", st.Insert(t(12), False, ("a",), False, sql("(SELECT 1)", 18), False, None)),
    ("INSERT INTO t BY NAME SELECT 1 AS a", st.Insert(t(12), False, None, True, sql("SELECT 1 AS a", 22), False, None)),
    ("INSERT INTO t BY POSITION (SELECT 1)", st.Insert(t(12), False, None, False, sql("(SELECT 1)", 26), False, None)),
    ("INSERT INTO t DEFAULT VALUES", st.Insert(t(12), False, None, False, None, False, None)),
    ("INSERT OVERWRITE t SELECT 1", st.Insert(t(17), True, None, False, sql("SELECT 1", 19), False, None)),
    ("INSERT OVERWRITE TABLE t SELECT 1", st.Insert(t(23), True, None, False, sql("SELECT 1", 25), False, None)),
    ("INSERT OVERWRITE INTO t VALUES (1)", st.Insert(t(22), True, None, False, sql("VALUES (1)", 24), True, None)),
    ("INSERT INTO t VALUES (1) UNION ALL SELECT 2", st.Insert(t(12), False, None, False, sql("VALUES (1) UNION ALL SELECT 2", 14), False, None)),
    ("INSERT INTO t VALUES (1) ORDER BY 1", st.Insert(t(12), False, None, False, sql("VALUES (1) ORDER BY 1", 14), False, None)),
    (
        "INSERT INTO t WITH q AS (SELECT 1) FROM q",
        st.Insert(t(12), False, None, False, sql("WITH q AS (SELECT 1) FROM q", 14), False, None),
    ),
    (
        "WITH q AS (SELECT 1) INSERT INTO t FROM q",
        st.Insert(t(33), False, None, False, sql("FROM q", 35), False, sql("WITH q AS (SELECT 1)", 0)),
    ),
    ("DELETE FROM t", st.Delete(t(12), None, None, True, None)),
    ("DELETE FROM t RETURNING a, b", st.Delete(t(12), None, None, True, None, None, sql("a, b", 24))),
    ("DELETE FROM t USING s, u WHERE a = 1", st.Delete(t(12), None, sql("a = 1", 31), False, None, sources("s, u", 20, s=20, u=23))),
    ("DELETE FROM t USING s RETURNING *", st.Delete(t(12), None, None, False, None, sources("s", 20, s=20), sql("*", 32))),
    ("INSERT INTO t VALUES (1) RETURNING *", st.Insert(t(12), False, None, False, sql("VALUES (1)", 14), True, None, sql("*", 35))),
    ("INSERT INTO t DEFAULT VALUES RETURNING a", st.Insert(t(12), False, None, False, None, False, None, sql("a", 39))),
    (
        "INSERT INTO t SELECT 1 AS returning, x.returning FROM x RETURNING a",
        st.Insert(t(12), False, None, False, sql("SELECT 1 AS returning, x.returning FROM x", 14), False, None, sql("a", 66)),
    ),
    (
        "UPDATE t SET a = s.a FROM s JOIN u USING (k) WHERE a > 1 RETURNING a AS b",
        st.Update(
            t(7),
            None,
            (st.Assignment("a", sql("s.a", 17), 13),),
            sql("a > 1", 51),
            False,
            None,
            sources("s JOIN u USING (k)", 26, s=26, u=33),
            sql("a AS b", 67),
        ),
    ),
    (
        "UPDATE t SET a = 1 WHERE a = 2 RETURNING (a)",
        st.Update(t(7), None, (st.Assignment("a", sql("1", 17), 13),), sql("a = 2", 25), True, None, None, sql("(a)", 41)),
    ),
    ("DELETE FROM s.t AS x WHERE x.a = 1", st.Delete(Name("s", "t", 12), "x", sql("x.a = 1", 27), True, None)),
    ("DELETE FROM t x WHERE a IS DISTINCT FROM 1", st.Delete(t(12), "x", sql("a IS DISTINCT FROM 1", 22), True, None)),
    ("DELETE FROM t WHERE a IS NOT DISTINCT FROM b", st.Delete(t(12), None, sql("a IS NOT DISTINCT FROM b", 20), True, None)),
    (
        "WITH q AS (SELECT 1 AS a) DELETE FROM t WHERE a IN (FROM q)",
        st.Delete(t(38), None, sql("a IN (FROM q)", 46), False, sql("WITH q AS (SELECT 1 AS a)", 0)),
    ),
    (
        "UPDATE t SET a = a + 1, b = DEFAULT WHERE c",
        st.Update(t(7), None, (st.Assignment("a", sql("a + 1", 17), 13), st.Assignment("b", None, 24)), sql("c", 42), True, None),
    ),
    (
        "UPDATE t SET a = CASE WHEN b THEN 1 ELSE 2 END, b = (1, 2)",
        st.Update(
            t(7),
            None,
            (st.Assignment("a", sql("CASE WHEN b THEN 1 ELSE 2 END", 17), 13), st.Assignment("b", sql("(1, 2)", 52), 48)),
            None,
            True,
            None,
        ),
    ),
    ("UPDATE set SET set = 1", st.Update(Name(None, "set", 7), None, (st.Assignment("set", sql("1", 21), 15),), None, False, None)),
    ("UPDATE t AS x SET a = x.b,", st.Update(t(7), "x", (st.Assignment("a", sql("x.b", 22), 18),), None, True, None)),
    ("TRUNCATE t", st.Truncate(t(9))),
    ("TRUNCATE TABLE s.t", st.Truncate(Name("s", "t", 15))),
    ("COPY t FROM 'it''s.csv'", st.CopyFrom(t(5), None, "it's.csv", None, ())),
    ("COPY t (a, b) FROM ? (FORMAT csv, HEADER)", st.CopyFrom(t(5), ("a", "b"), None, "1", (("format", "csv"), ("header", None)))),
    ("COPY t FROM $f WITH (DELIM ';', null_padding true,)", st.CopyFrom(t(5), None, None, "f", (("delim", "';'"), ("null_padding", "true")))),
    ("COPY t TO 'x' (HEADER)", st.CopyTo(sql("COPY (SELECT * FROM \"t\") TO 'x' (HEADER)", 0), sql('SELECT * FROM "t"', 5))),
    ("COPY s.t (a) TO $1", st.CopyTo(Sql(('COPY (SELECT "a" FROM "s"."t") TO $1',), ("1",), 0), sql('SELECT "a" FROM "s"."t"', 5))),
    ("COPY (FROM t) TO 'x'", st.CopyTo(sql("COPY (FROM t) TO 'x'", 0), sql("FROM t", 6))),
    ("BEGIN", st.Begin(None, False)),
    ("begin transaction read only", st.Begin(None, True)),
    ("BEGIN WORK ISOLATION LEVEL WRITE SERIALIZABLE READ WRITE", st.Begin("write serializable", False)),
    ("START TRANSACTION ISOLATION LEVEL 'Write_Serializable', READ ONLY", st.Begin("write serializable", True)),
    ("BEGIN READ ONLY ISOLATION LEVEL snapshot", st.Begin("snapshot", True)),
    ('BEGIN ISOLATION LEVEL "SERIALIZABLE"', st.Begin("serializable", False)),
    ("COMMIT", st.Commit()),
    ("END TRANSACTION", st.Commit()),
    ("ROLLBACK WORK", st.Rollback()),
    ("ABORT", st.Rollback()),
    ("RESTORE TABLE t TO VERSION AS OF 3", st.RestoreTable(t(14), TimeTravel(t(14), "version", "3"))),
    ("restore s.t to timestamp as of ?", st.RestoreTable(Name("s", "t", 8), TimeTravel(Name("s", "t", 8), "timestamp", "$1"))),
    ("RESTORE t TO VERSION AS OF ($n + 1)", st.RestoreTable(t(8), TimeTravel(t(8), "version", "($n + 1)"))),
    ("SAVEPOINT a", st.Savepoint("a")),
    ('SAVEPOINT "a b"', st.Savepoint("a b")),
    ("RELEASE a", st.Release("a", 8)),
    ("RELEASE SAVEPOINT a", st.Release("a", 18)),
    ("ROLLBACK TO a", st.RollbackTo("a", 12)),
    ("ROLLBACK WORK TO SAVEPOINT a", st.RollbackTo("a", 27)),
    ("ROLLBACK TRANSACTION TO savepoint", st.RollbackTo("savepoint", 24)),
    ("ROLLBACK TO SAVEPOINT savepoint", st.RollbackTo("savepoint", 22)),
    ("SET commit_message = ?", st.SetOption("commit_message", "$1")),
    ("SET Isolation_Level = 'snapshot'", st.SetOption("isolation_level", "'snapshot'")),
    ("SET SESSION a TO -1", st.SetOption("a", "-1")),
    ("SET GLOBAL a = true", st.SetOption("a", "true", for_lake=True)),
    ("SET TIME ZONE 'UTC'", st.SetOption("timezone", "'UTC'")),
    ("RESET a", st.SetOption("a", None)),
    ("SHOW TABLES", st.ShowTables(None, False)),
    ("SHOW TABLES FROM s", st.ShowTables("s", False)),
    ("SHOW ALL TABLES", st.ShowTables(None, True)),
    ("SHOW SCHEMAS", st.ShowSchemas()),
    ("SHOW CREATE TABLE s.t", st.ShowCreateTable(Name("s", "t", 18))),
    ("DESCRIBE lake.tables", st.Query(sql("DESCRIBE lake.tables", 9))),
    ("SHOW ALL", st.ShowSettings(None)),
    ("SHOW threads", st.ShowSettings("threads")),
    ("SHOW SELECT 1", st.Query(sql("SHOW SELECT 1", 0))),
    ("DESCRIBE s.t", st.DescribeTable(Name("s", "t", 9))),
    ("DESC TABLE t", st.DescribeTable(t(11))),
    ("DESCRIBE SELECT 1", st.Query(sql("DESCRIBE SELECT 1", 0))),
    ("DESCRIBE HISTORY", st.DescribeHistory(None, None)),
    ("DESCRIBE HISTORY LIMIT 5", st.DescribeHistory(None, 5)),
    ("DESCRIBE HISTORY t LIMIT 5", st.DescribeHistory(t(17), 5)),
    ('DESCRIBE "history"', st.DescribeTable(Name(None, "history", 9))),
    ("VACUUM", st.Vacuum(None, None, False)),
    ("VACUUM t RETAIN 1.5 HOURS DRY RUN", st.Vacuum(t(7), 1.5, True)),
    ("VACUUM RETAIN 0 HOURS", st.Vacuum(None, 0.0, False)),
    ("VACUUM retain", st.Vacuum(Name(None, "retain", 7), None, False)),
]


@pytest.mark.parametrize(("text", "operation"), ACCEPTED, ids=[text for text, _ in ACCEPTED])
def test_accepted(text: str, operation: st.Operation) -> None:
    assert op(text) == operation
    assert op(f"-- c;\n/* a /* b; */ */{text} /* ; */ ;; -- x;").__class__ is operation.__class__


def test_a_broken_statement_does_not_stop_those_before_it() -> None:
    statements = iter_statements("SELECT 1; COMMIT; SELECT 'x; SELECT 2")
    assert [next(statements).text, next(statements).text] == ["SELECT 1", "COMMIT"]
    with pytest.raises(errors.ProgrammingError, match="unterminated"):
        next(statements)


V3 = TimeTravel(t(14), "version", "3")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SELECT * FROM t AT (VERSION => 3)", ("SELECT * FROM ", V3)),
        ("SELECT * FROM t FOR VERSION AS OF 3 WHERE a", ("SELECT * FROM ", V3, " WHERE a")),
        ("SELECT * FROM t at(version=>3)LEFT JOIN u", ("SELECT * FROM ", V3, "LEFT JOIN u")),
        ("SELECT * FROM t AT (VERSION => 3) x", ("SELECT * FROM ", TimeTravel(t(14), "version", "3"), " x")),
        ('SELECT * FROM t AT (VERSION => 3) AS "x"', ("SELECT * FROM ", TimeTravel(t(14), "version", "3"), ' AS "x"')),
        ("FROM x: t AT (VERSION => 3)", ("FROM x: ", TimeTravel(t(8), "version", "3"))),
        ('FROM "s" . "a t" AT (VERSION => (1 + 2))', ("FROM ", TimeTravel(Name("s", "a t", 5), "version", "(1 + 2)"))),
        (
            "FROM t FOR TIMESTAMP AS OF '2020-01-01'::DATE UNION FROM u",
            ("FROM ", TimeTravel(t(5), "timestamp", "'2020-01-01'::DATE"), " UNION FROM u"),
        ),
        ("FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01' o", ("FROM ", TimeTravel(t(5), "timestamp", "TIMESTAMP '2020-01-01'"), " o")),
        ("FROM t FOR TIMESTAMP AS OF now() ORDER BY 1", ("FROM ", TimeTravel(t(5), "timestamp", "now()"), " ORDER BY 1")),
        ("FROM t FOR TIMESTAMP AS OF (now() - INTERVAL 1 DAY)", ("FROM ", TimeTravel(t(5), "timestamp", "(now() - INTERVAL 1 DAY)"))),
        (
            "FROM t AT (VERSION => 1), t AT (VERSION => 2) /* AT (VERSION => 9) */ b",
            ("FROM ", TimeTravel(t(5), "version", "1"), ", ", TimeTravel(t(26), "version", "2"), " /* AT (VERSION => 9) */ b"),
        ),
    ],
)
def test_time_travel_becomes_a_hole(text: str, parts: tuple[str | TimeTravel, ...]) -> None:
    assert op(text).sql.parts == parts


CHANGES = TableChanges("'t'", "1", "2 + 3", 5)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("FROM table_changes('t', 1, 2 + 3)", ("FROM ", CHANGES)),
        ("FROM Table_Changes('t',1,2 + 3)c WHERE a", ("FROM ", CHANGES, "c WHERE a")),
        ("FROM table_changes(?, abs(1, 2), $$x$$) JOIN u", ("FROM ", TableChanges("$1", "abs(1, 2)", "$$x$$", 5), " JOIN u")),
        ("FROM u, table_changes('t', 1, 2)", ("FROM u, ", TableChanges("'t'", "1", "2", 8))),
        ("FROM u JOIN v ON f(u.a, v.a), table_changes('t', 1, 2)", ("FROM u JOIN v ON f(u.a, v.a), ", TableChanges("'t'", "1", "2", 30))),
        ("SELECT table_changes FROM table_changes AS t(table_changes)", ("SELECT table_changes FROM table_changes AS t(table_changes)",)),
    ],
)
def test_table_changes_becomes_a_hole(text: str, parts: tuple[str | TableChanges, ...]) -> None:
    assert op(text).sql.parts == parts


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SELECT table_changes('t', 1, 2)", 8),
        ("SELECT a, table_changes('t', 1, 2) FROM t", 11),
        ("SELECT count(table_changes('t', 1, 2)) FROM t", 14),
        ("FROM t ORDER BY a, table_changes('t', 1, 2)", 20),
        ("FROM t WHERE a = table_changes('t', 1, 2)", 18),
        ("VALUES (1, table_changes('t', 1, 2))", 12),
        ("FROM table_changes('t', 1)", 6),
        ("FROM table_changes('t', 1, 2, 3)", 6),
        ("FROM table_changes('t', 1, )", 28),
    ],
)
def test_table_changes_where_it_cannot_stand(text: str, column: int) -> None:
    with pytest.raises(errors.ProgrammingError, match="table_changes") as caught:
        op(text)
    assert caught.value.position.column == column


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("t", Name(None, "t")), ("s.t", Name("s", "t")), ('"a.b" . "c ""d"', Name("a.b", 'c "d')), ("", None), ("a b", None), ("a.", None), (".a", None),
        ("a.b.c", None), ("'t'", None), ("t;", None), ('"', None), ('""', None), ("a-b", None), ("t -- x", Name(None, "t")),
    ],
)  # fmt: skip
def test_the_name_that_a_text_is(text: str, name: Name | None) -> None:
    assert name_in(text) == name


def test_time_travel_in_every_kind_of_query() -> None:
    hole = "t AT (VERSION => 3)"
    assert isinstance(op(f"CREATE TABLE u AS FROM {hole}").query.parts[1], TimeTravel)
    assert isinstance(op(f"INSERT INTO u SELECT * FROM {hole}").source.parts[1], TimeTravel)
    assert isinstance(op(f"COPY (FROM {hole}) TO 'x'").reads.parts[1], TimeTravel)
    assert isinstance(op(f"COPY (FROM {hole}) TO 'x'").sql.parts[1], TimeTravel)
    assert isinstance(op(f"WITH q AS (FROM {hole}) INSERT INTO u FROM q").ctes.parts[1], TimeTravel)
    delete = op(f"DELETE FROM u WHERE a IN (SELECT a FROM {hole})")
    assert isinstance(delete.where.parts[1], TimeTravel)
    assert not delete.row_local
    assert isinstance(op(f"UPDATE u SET a = (SELECT max(a) FROM {hole})").assignments[0].value.parts[1], TimeTravel)


def test_a_hole_takes_its_parameters_with_it() -> None:
    statement = one("SELECT ? FROM t AT (VERSION => ?) WHERE a = ?")
    assert statement.operation == st.Query(Sql(("SELECT $1 FROM ", TimeTravel(t(14), "version", "$2"), " WHERE a = $3"), ("1", "3"), 0))
    assert statement.parameters == ("1", "2", "3")
    statement = one("FROM t FOR VERSION AS OF :v x", frozenset("v"))
    assert statement.operation == st.Query(Sql(("FROM ", TimeTravel(t(5), "version", "$v"), " x"), (), 0))
    assert statement.parameters == ("v",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ts AT TIME ZONE 'UTC' FROM t",
        "SELECT version, timestamp FROM t version",
        "SELECT version AS version FROM t AS timestamp",
        "SELECT [x FOR x IN l] FROM t",
        "SELECT ts AT TIME ZONE (SELECT 'UTC')",
        "SELECT 'FROM t AT (VERSION => 3)' -- t AT (VERSION => 3)\n, 2",
    ],
)
def test_what_is_no_time_travel(text: str) -> None:
    assert op(text).sql.parts == (text,)


@pytest.mark.parametrize(
    ("text", "named", "expected", "parameters"),
    [
        ("SELECT ?, '?', \"?\", ? -- ?\n", None, "SELECT $1, '?', \"?\", $2", ("1", "2")),
        ("SELECT ?2, ?1", None, "SELECT $2, $1", ("2", "1")),
        ("SELECT $2, $1, $2", None, "SELECT $2, $1, $2", ("2", "1")),
        ("SELECT $a, $B, $a", None, "SELECT $a, $B, $a", ("a", "B")),
        ('SELECT $"a b"', None, 'SELECT $"a b"', ("a b",)),
        ("SELECT :a, b::a, ':a'", "a", "SELECT $a, b::a, ':a'", ("a",)),
        ("SELECT :a, :b", "a", "SELECT $a, :b", ("a",)),
        ("SELECT :a", None, "SELECT :a", ()),
        ("SELECT x[1:a], x[:a], {k:a}, f(:a), [f(:a)]", "a", "SELECT x[1:a], x[:a], {k:a}, f($a), [f(:a)]", ("a",)),
        ("SELECT x:a, x: a, f(x := a)", "a", "SELECT x:a, x: a, f(x := a)", ()),
        ("SELECT $$?$$, $x$ :a $x$, a$b", "a", "SELECT $$?$$, $x$ :a $x$, a$b", ()),
    ],
)
def test_parameters(text: str, named: str | None, expected: str, parameters: tuple[str, ...]) -> None:
    statement = one(text, None if named is None else frozenset(named))
    assert "".join(statement.operation.sql.parts) == expected
    assert statement.operation.sql.parameters == statement.parameters == parameters


def test_question_marks_count_per_statement() -> None:
    assert [s.operation.sql.parts for s in parse_script("SELECT ?; SELECT ?, ?")] == [("SELECT $1",), ("SELECT $1, $2",)]
    update = one("UPDATE t SET a = ?, b = b WHERE c = ?")
    assert update.operation.assignments[0].value.parameters == ("1",)
    assert update.operation.where == sql("c = $2", 32, "2")
    assert update.parameters == ("1", "2")
    assert one("COPY t FROM :p", frozenset("p")).operation.path_parameter == "p"


@given(some.sampled_from(ACCEPTED), some.data())
def test_keywords_in_any_case_and_space_of_any_kind(case: tuple[str, st.Operation], data: some.DataObject) -> None:
    text, operation = case
    if "'" not in text and '"' not in text:
        space = data.draw(some.sampled_from(["\n", "\t", " /* ; */ ", " -- ;\n", "\u00a0"]))
        assert op(text.replace(" ", space)).__class__ is operation.__class__
