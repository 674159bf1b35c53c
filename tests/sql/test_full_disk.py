"""A disk that is full, as DuckDB itself says it: no damage, and what helps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lakelite

STATEMENTS = {
    "insert into t select a, md5(s || 'x') from t": "could not write a data file of the lake",
    "create table v as select a, md5(s || 'x') s from t": "could not write a data file of the lake",
    "update t set s = md5(s)": "could not write a data file of the lake",
    "optimize u": "could not write a data file of the lake",
    "copy t to 'x.parquet'": 'could not write "x.parquet"',
    "copy t to 'x.csv'": 'could not write "x.csv"',
    "copy t to 'x.json'": 'could not write "x.json"',
}
LIMITED = """
import resource, signal, sys
import lakelite

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
con = lakelite.connect("lake", autocommit=True)
con.executescript('''
    set inline_rows = 0;
    create table t as select range a, md5(range::varchar) s from range(200000);
    create table u as from t limit 100000; insert into u from t limit 100000
''')
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
for statement in sys.argv[1:]:
    try:
        con.execute(statement)
        print("no error")
    except lakelite.OperationalError as error:
        print(str(error).replace("\\n", " | "))
print(con.execute("select count(*), (select count(*) from u) from t").fetchone(), con.execute("check lake").fetchall())
"""


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", LIMITED, *STATEMENTS], cwd=tmp_path, capture_output=True, text=True, check=True)
    *told, after = run.stdout.splitlines()
    for statement, line, what in zip(STATEMENTS, told, STATEMENTS.values(), strict=True):
        expected = f"the file would be larger than this process may write: {what} | Hint: raise the limit (ulimit -f), then run it again"
        assert line == expected, statement
    assert after == "(200000, 200000) []"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_no_space_left(form: str) -> None:
    with lakelite.connect(":memory:") as con, pytest.raises(lakelite.OperationalError) as caught:
        con.execute(f"copy (select range from range(100)) to '/dev/full' (format {form})")
    assert caught.value.message == 'the disk is full: could not write "/dev/full"'
    assert caught.value.hint == "free some space, then run it again"


def test_no_space_to_spill() -> None:
    """DuckDB's own limit of what it spills is what is free on the disk."""
    with lakelite.connect(":memory:", autocommit=True) as con:
        con._session.lake.engine.do("SET max_temp_directory_size = '100KB'")
        con.execute("SET memory_limit = '60MB'")
        with pytest.raises(lakelite.OperationalError, match="the disk has no room for what the statement has to spill") as caught:
            con.execute("select count(*) from (select distinct md5(range::varchar) from range(3_000_000))").fetchall()
    assert str(caught.value.hint).startswith("free some space; SET memory_limit")


def test_what_only_looks_like_an_error_of_another_thread() -> None:
    with lakelite.connect(":memory:") as con, pytest.raises(lakelite.Error, match="exception_type"):
        con.execute("""select error('x: {"exception_type":"IO","exception_message":"Could not write file"}')""").fetchall()
