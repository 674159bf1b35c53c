"""What a text of SQL looks at: row-local changes, names, the clock, chance."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from lakelite.language.parse import is_volatile, mentions, parse_script, uses_clock


def op(text: str) -> Any:
    (statement,) = parse_script(text)
    return statement.operation


ROW_LOCAL = """
a = 1
a IN (1, 2, -3) AND NOT (b BETWEEN ? AND ?) OR c IS NULL
name LIKE 'x%' ESCAPE '!' AND t.a > 3
x.a * 2 > 3
upper(name) = 'X' AND coalesce(a, b) = 1
list_contains(l, 3)
l[1] = 2 AND s.x = 1 AND {'a': a} = s
a::DECIMAL(10, 2) > 1.5
ts > now() - INTERVAL 1 DAY
EXTRACT(year FROM ts) = 2013
ts AT TIME ZONE 'UTC' > TIMESTAMP WITH TIME ZONE '2020-01-01'
a IS DISTINCT FROM b
CASE WHEN a THEN b ELSE c END
list_filter(l, lambda y: y > 1) = []
user = 'me'
"""
NOT_ROW_LOCAL = """
a IN (SELECT a FROM u)
a IN (FROM u)
EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
a = (VALUES (1))
a > (SELECT max(a) FROM t)
a = ANY (SELECT 1)
a > max(a)
row_number() OVER () = 1
random() < 0.5
"RANDOM"() < 0.5
uuid() = a
rowid = 1
t._row_id = 1
filename = 'x'
file_row_number = 1
getvariable('x') = a
current_setting('x') = a
nextval('s') = a
COLUMNS(*) > 1
t = {'a': 1}
x IS NULL
stats(a) = 'x'
#1 = 2
unnest(l) = 1
"""


@pytest.mark.parametrize("where", ROW_LOCAL.strip().splitlines())
def test_row_local(where: str) -> None:
    assert op(f"DELETE FROM t AS x WHERE {where}").row_local
    assert op(f"UPDATE t SET a = {where}, b = 1 WHERE {where}").row_local


@pytest.mark.parametrize("where", NOT_ROW_LOCAL.strip().splitlines())
def test_not_row_local(where: str) -> None:
    assert not op(f"DELETE FROM t AS x WHERE {where}").row_local
    assert not op(f"DELETE FROM t AS x WHERE a = 1 AND ({where})").row_local


def test_chance_may_stand_in_set_but_not_in_where() -> None:
    assert op("UPDATE t SET a = random(), b = uuid()").row_local
    assert not op("UPDATE t SET a = 1 WHERE random() < 0.5").row_local
    assert not op("UPDATE t SET a = (SELECT random())").row_local
    assert not op("UPDATE t SET a = nextval('s')").row_local


def test_what_only_duckdb_can_parse_is_kept() -> None:
    delete = op("DELETE FROM t WHERE some_function(a, b => 2, *COLUMNS(x)) <=> a")
    assert delete.where is not None
    assert not delete.row_local


@pytest.mark.parametrize("depth", [10, 43, 100, 800])
def test_nesting(depth: int) -> None:
    before = threading.stack_size()
    limit = sys.getrecursionlimit()
    assert op("DELETE FROM t WHERE " + "(" * depth + "some_scalar" + ")" * depth + " = 1").row_local
    text = "DELETE FROM t WHERE " + "list_sort(" * depth + "a" + ")" * depth + " = 1"
    assert op(text).where.parts == (text[20:],)
    assert op(text).row_local
    assert op("DELETE FROM t WHERE " + "list_sort(" * (depth - 1) + "(FROM u)" + ")" * (depth - 1) + " = 1").row_local is False
    assert op("SELECT " + "(" * depth + "1" + ")" * depth).sql is not None
    assert (threading.stack_size(), sys.getrecursionlimit()) == (before, limit)


def test_mentions() -> None:
    assert mentions("SELECT A, \"B b\" FROM S.t /* no */ WHERE x = 'str'") == {"select", "a", "b b", "from", "s", "t", "where", "x"}
    assert {"secret", "u"} <= mentions("SELECT * FROM query('SELECT * FROM secret') JOIN query_table(['u'])")


def test_clock_and_chance() -> None:
    for text in (
        "SELECT now()",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT today() - d",
        "SELECT age(d)",
        'SELECT "get_current_timestamp"()',
        "SELECT localtime",
    ):
        assert uses_clock(text), text
    assert not uses_clock("SELECT 'now()', age FROM t -- current_date")
    for text in ("SELECT random()", "SELECT Gen_Random_UUID ()", "SELECT nextval('s')", "FROM t USING SAMPLE 10%", "FROM t TABLESAMPLE 10%"):
        assert is_volatile(text), text
    assert not is_volatile("SELECT uuid, random, sample FROM t WHERE a = 'uuid()'")


def test_sqlglot_is_loaded_only_for_what_needs_it() -> None:
    code = (
        "import sys; from lakelite.language.parse import parse_script;"
        "parse_script('SELECT 1; INSERT INTO t VALUES (1); DELETE FROM t WHERE a = 1; UPDATE t SET a = upper(b) WHERE c IN (1, 2)');"
        "assert not {'sqlglot', 'duckdb', 'pyarrow', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
