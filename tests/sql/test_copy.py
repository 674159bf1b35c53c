"""COPY FROM and TO: files of all formats, as plain DuckDB reads and writes them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from comparing import answer

import lakelite


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_copy_there_and_back(lake: lakelite.Connection, tmp_path: Path, form: str) -> None:
    lake.execute("create table t (id integer, code varchar, day date, price decimal(9, 2), noted timestamp, ok boolean)")
    lake.execute(
        "insert into t values (1, '007', '2020-02-29', 1.50, '2020-01-01 12:34:56.789', true), "
        "(2, 'a,\"b\nc', null, -0.01, null, false), (3, null, '1999-12-31', 0, null, null)"
    )
    path = tmp_path / f"out.{form}"
    assert lake.execute(f"copy t to '{path}'").rowcount == 3
    lake.execute("create table back as from t with no data")
    assert lake.execute(f"copy back from '{path}'").rowcount == 3
    assert lake.execute("from t except all from back").fetchall() == []
    lake.execute("copy (select id, code from t where id < 3 order by id) to ? ", [str(tmp_path / f"part.{form}")])
    lake.execute(f"create table part (code varchar, x integer, id bigint); copy part (id, code) from '{tmp_path}/part.{form}'")
    assert lake.execute("select id, code, x from part order by id").fetchall() == [(1, "007", None), (2, 'a,"b\nc', None)]


CSV = {
    "a header": ("id,code,n\n1,007,5\n2,00,6\n", ""),
    "no header": ("1,007,5\n2,00,6\n", ""),
    "no header, said": ("1,007,5\n2,00,6\n", "(header false)"),
    "a header, said": ("x,y,z\n1,007,5\n", "(header)"),
    "a header of text only": ("id,code,n\n", "(header true)"),
    "semicolons": ("1;007;5\n", "(delimiter ';', header false)"),
    "tabs found": ("id\tcode\tn\n1\t007\t5\n", ""),
    "null as a word": ("1,NA,5\nNA,x,NA\n", "(null 'NA', header 0)"),
    "quotes": ("1,'a,b',5\n", "(quote '''', header false)"),
    "empty and quoted empty": ('1,,5\n2,"",6\n', "(header false)"),
    "skip": ("junk\n1,007,5\n", "(skip 1, header false)"),
    "dates": ("1,2020-01-01,5\n2,01/02/2020,6\n", "(header false)"),
    "spaces": ("1, a b ,5\n", "(header false)"),
    "crlf": ("1,007,5\r\n2,008,6\r\n", "(header false)"),
    "bom": ("\ufeffid,code,n\n1,007,5\n", ""),
    "only text": ("code\n", "(header false, null_padding true)"),
    "true": ("1,true,5\n", "(format csv, header false)"),
}


@pytest.mark.parametrize("case", CSV.values(), ids=CSV.keys())
def test_copy_from_csv_does_what_duckdb_does(lake: lakelite.Connection, tmp_path: Path, case: tuple[str, str]) -> None:
    content, options = case
    path = tmp_path / "in.csv"
    path.write_text(content, newline="")
    plain = duckdb.connect()
    for con in (plain, lake):
        con.execute("create table t (id integer, code varchar, n double)")
    sql = f"copy t from '{path}' {options}"
    try:
        plain.execute(sql)
    except duckdb.Error:
        with pytest.raises(lakelite.Error):
            lake.execute(sql)
    else:
        lake.execute(sql)
    assert answer(lake, "from t") == answer(plain, "from t")
    plain.close()


def test_copy_options_and_other_files(lake: lakelite.Connection, tmp_path: Path) -> None:
    lake.execute("create table t as select range as a, 'x' || range as b from range(3)")
    lake.execute(f"copy t to '{tmp_path}/a.txt' (format csv, delimiter '|', header false, force_quote (b))")
    assert (tmp_path / "a.txt").read_text() == '0|"x0"\n1|"x1"\n2|"x2"\n'
    lake.execute(f"copy t to '{tmp_path}/z.parquet' (compression zstd); copy t to '{tmp_path}/a.csv.gz'; copy t (b) to '{tmp_path}/b.csv'")
    assert (tmp_path / "b.csv").read_text() == "b\nx0\nx1\nx2\n"
    lake.execute(
        f"create table u as from t with no data; copy u from '{tmp_path}/*.parquet'; copy u from '{tmp_path}/a.csv.gz'; "
        f"copy u from '{tmp_path}/a.txt' (delim '|')"
    )
    assert lake.execute("select a, b, count(*) from u group by all order by all").fetchall() == [(i, f"x{i}", 3) for i in range(3)]
    (tmp_path / "rows.ndjson").write_text('{"b": "j", "a": 9}\n{"a": 10}\n')
    lake.execute(f"copy u from '{tmp_path}/rows.ndjson'")
    assert lake.execute("from u where a > 8 order by a").fetchall() == [(9, "j"), (10, None)]
    assert lake.execute(f"select count(*) from '{tmp_path}/z.parquet' p join t using (a)").fetchall() == [(3,)]
    lake.execute(f"create table w as from read_csv('{tmp_path}/b.csv', all_varchar = true)")
    assert lake.execute("select count(*) from w").fetchall() == [(3,)]


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
@pytest.mark.parametrize("text", ["CREATE TABLE t AS FROM '{0}'", "CREATE TABLE t AS SELECT a, b FROM '{0}'", "CREATE TEMP TABLE t AS FROM '{0}'"])
def test_a_table_of_a_file(lake: lakelite.Connection, tmp_path: Path, form: str, text: str) -> None:
    plain = duckdb.connect()
    path = tmp_path / f"x.{form}"
    plain.execute(f"COPY (SELECT range AS a, 'word ' || range AS b FROM range(20)) TO '{path}'")
    plain.execute(text.format(path))
    lake.execute(text.format(path))
    path.unlink()
    assert lake.execute("DESCRIBE t").fetchall() == plain.execute("DESCRIBE t").fetchall()
    assert lake.execute("FROM t").fetchall() == plain.execute("FROM t").fetchall()
