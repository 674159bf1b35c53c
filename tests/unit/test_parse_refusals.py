"""Statements that are refused by name, and wrong ones: each error shows its place."""

from __future__ import annotations

import pytest

from lakelite import errors
from lakelite.language.parse import parse_script

REFUSED = """
ATTACH 'x' | ATTACH
DETACH x | DETACH
USE x | USE
INSTALL x | INSTALL
LOAD x | LOAD
COMMENT ON SCHEMA s IS 'x' | COMMENT ON SCHEMA
PREPARE p AS SELECT 1 | PREPARE
EXECUTE p(1) | EXECUTE
DEALLOCATE p | DEALLOCATE
PRAGMA version | PRAGMA
CALL pragma_version() | CALL
CHECKPOINT | CHECKPOINT
ANALYZE t | ANALYZE
SHOW DATABASES | SHOW DATABASES
LOCK TABLE t | LOCK
GRANT SELECT ON t TO u | GRANT
SET VARIABLE a = 1 | SET VARIABLE
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE | SET TRANSACTION
RESET ALL | RESET ALL
CREATE UNLOGGED TABLE t (a INT) | UNLOGGED TABLE
CREATE TEMP SEQUENCE s | TEMP SEQUENCE
CREATE TEMP TABLE t (a INT) ON COMMIT DELETE ROWS | ON COMMIT
CREATE TEMP TABLE n (LIKE o) | TEMP TABLE
CREATE TEMP TABLE n (a INT) PARTITIONED BY (a) | temporary table
CREATE TEMP TABLE n WITH (x = 1) AS SELECT 1 | temporary table
CREATE MATERIALIZED VIEW v AS SELECT 1 | MATERIALIZED VIEW
CREATE UNIQUE INDEX i ON t (a) | UNIQUE INDEX
CREATE TYPE x AS ENUM ('a') | TYPE
CREATE MACRO m(a) AS a | MACRO
CREATE FUNCTION m(a) AS a | FUNCTION
CREATE SEQUENCE s | SEQUENCE
CREATE SECRET (TYPE s3) | SECRET
CREATE TABLE t (LIKE u INCLUDING DEFAULTS) | LIKE
CREATE TABLE t LIKE u | LIKE
CREATE TABLE t (a INT) PARTITIONED BY (truncate(a)) | truncate
CREATE TABLE t PARTITIONED BY (a) SORTED BY (a) AS SELECT 1 a | SORTED
DROP TABLE t CASCADE | CASCADE
DROP VIEW v CASCADE | CASCADE
DROP SCHEMA a, b | several
UPDATE t SET a = 1 RETURNING a + ? | a parameter in RETURNING
INSERT INTO t VALUES (1) ON CONFLICT ON CONSTRAINT c DO NOTHING | ON CONSTRAINT
INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE a > 0 DO NOTHING | WHERE
UPDATE t SET s.x = 1 | field
UPDATE t SET l[1] = 1 | element
COPY t FROM STDIN | STDIN
COPY t FROM 'x' CSV HEADER | parentheses
COPY FROM DATABASE a TO b | COPY FROM DATABASE
BEGIN ISOLATION LEVEL READ COMMITTED | READ COMMITTED
EXPLAIN DELETE FROM t | EXPLAIN DELETE
EXPLAIN ANALYZE WITH q AS (SELECT 1) UPDATE t SET a = 1 | EXPLAIN UPDATE
WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x | DELETE inside WITH
SELECT * FROM (WITH x AS MATERIALIZED (INSERT INTO t VALUES (1) RETURNING *) FROM x) | INSERT inside WITH
WITH x AS (WITH y AS (SELECT 1) UPDATE t SET a = 1 RETURNING *) FROM x | UPDATE inside WITH
VACUUM FULL | VACUUM
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_refused_by_name_with_a_place_and_a_hint(line: str) -> None:
    text, _, word = line.rpartition(" | ")
    with pytest.raises(errors.NotSupportedError) as caught:
        parse_script(text)
    assert word in caught.value.message
    assert "not supported yet" in caught.value.message
    assert caught.value.hint
    assert caught.value.position is not None
    assert caught.value.position.source == text


WRONG = """
SELEC 1 | 1 | SELECT
UPDTE t SET a = 1 | 1 | UPDATE
hello world | 1 | hello
42 | 1 | 42
SELECT (1 | 8 | never closed
SELECT 1) | 9 | closes nothing
SELECT [1) | 10 | closes nothing
SELECT 'abc | 8 | unterminated quoted string
SELECT 1, "abc | 11 | quoted identifier
SELECT /* a /* b */ | 8 | unterminated comment
SELECT $x$ abc | 8 | dollar
DELETE t | 8 | FROM
DELETE FROM t WHERE | 20 | end of the statement
DELETE FROM t WHERE a = 1 ORDER BY a | 27 | ORDER
DELETE FROM t WHERE a = 1, b = 2 | 26 | ,
DELETE FROM t WHERE a = 1 UNION SELECT 1 | 27 | UNION
DELETE FROM t WHERE a = 1 GROUP BY a | 27 | GROUP
DELETE FROM t LIMIT 1 | 15 | LIMIT
DELETE FROM a.b.c | 16 | two parts
DELETE FROM "" | 13 | one character
DELETE FROM t AT (VERSION => 1) WHERE a | 15 | cannot be changed
UPDATE t SET a = 1, A = 2 | 21 | set twice
UPDATE t SET t.a = 1 | 14 | without its table
UPDATE t SET a = | 17 | expression
UPDATE t SET a = 1 b = 2 WHERE RETURNING | 32 | RETURNING
UPDATE t SET | 13 | end of the statement
INSERT t VALUES (1) | 8 | INTO
INSERT INTO t | 14 | query
INSERT INTO t (a) | 18 | query
INSERT INTO t (a) DEFAULT VALUES | 1 | DEFAULT VALUES
INSERT INTO t BY NAME VALUES (1) | 23 | VALUES has none
INSERT INTO t (a, A) VALUES (1, 2) | 20 | twice
INSERT INTO t (a) BY NAME SELECT 1 a | 19 | BY
INSERT INTO t SET a = 1 | 15 | SET
CREATE TABLE t | 15 | AS
CREATE TABLE t (a INT) AS SELECT 1 | 19 | INT
CREATE TABLE t (a INT DEFAULT ?) | 31 | parameter
CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT) | 1 | not both
CREATE TABLE t AS DELETE FROM u | 19 | query
CREATE TABLE select (a INT) | 14 | double quotes
CREATE SCHEMA a.b | 16 | one part
CREATE t | 8 | TABLE
DROP t | 6 | TABLE
TRUNCATE a, b | 11 | ,
COPY t | 7 | TO
COPY t FROM x | 13 | path
COPY t FROM 'x' (HEADER, header) | 26 | twice
COPY (DELETE FROM t) TO 'x' | 7 | query
BEGIN ISOLATION LEVEL | 22 | isolation level
BEGIN READ | 11 | READ ONLY
BEGIN IMMEDIATE | 7 | ISOLATION
COMMIT now | 8 | now
SET a | 6 | =
SET a = | 8 | value
SET a = 1, 2 | 10 | value
SET a = (FROM t AT (VERSION => 1)) | 9 | past version
SAVEPOINT a, b | 12 | ","
ROLLBACK TO SAVEPOINT a b | 25 | "b"
RELEASE | 8 | end of the statement
VACUUM t RETAIN x HOURS | 17 | hours
VACUUM RETAIN 3 DAYS | 17 | HOURS
DESCRIBE HISTORY t LIMIT x | 26 | whole number
EXPLAIN | 8 | query
SELECT ?, $1 | 11 | one style
SELECT $a, $1 | 12 | one style
SELECT * FROM t AS x AT (VERSION => 1) | 22 | no table
SELECT * FROM t AT (VERSION => ) | 32 | version
SELECT * FROM t FOR VERSION AS OF a | 35 | number
SELECT * FROM a.b.c AT (VERSION => 1) | 18 | two parts
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_wrong_statements_show_the_place(line: str) -> None:
    text, column, word = (part.strip() for part in line.split(" | "))
    with pytest.raises(errors.ProgrammingError) as caught:
        parse_script(text)
    assert word in str(caught.value)
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (1, int(column))


def test_the_place_counts_in_the_statement_and_its_lines() -> None:
    with pytest.raises(errors.ProgrammingError) as caught:
        parse_script("SELECT 1;\n\n DELETE FROM t\n  WHERE a = 1 LIMIT 2")
    assert caught.value.position == errors.Position(2, 15, "  WHERE a = 1 LIMIT 2")
