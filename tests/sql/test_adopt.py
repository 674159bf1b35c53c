"""COPY t FROM 'x.parquet' (ADOPT): files of others become fragments as they are, and behave as any fragment from then on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import multiset
from racing import flush, meeting

import lakelite
from lakelite.catalog.store import Catalog
from lakelite.storage import adoption, files

NAN = float("nan")
ROWS = {
    "k": [1, 2, 3, 4, 5],
    "name": ["a", "b", None, "dé", ""],
    "s": [{"x": 1, "y": ["q"]}, None, {"x": 3, "y": None}, {"x": 4, "y": []}, {"x": None, "y": ["z", None]}],
    "f": [1.5, NAN, -0.0, float("inf"), None],
}
TABLE = "CREATE TABLE t (k BIGINT, name VARCHAR, s STRUCT(x BIGINT, y VARCHAR[]), f DOUBLE)"


def rows(con: Any, text: str) -> list[tuple[Any, ...]]:
    return con.execute(text).fetchall()  # type: ignore[no-any-return]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of pyarrow's, of three row groups; without bounds of the numbers that may be NaN, so that it is taken as it is."""
    pq.write_table(pa.table(ROWS), tmp_path / "theirs.parquet", row_group_size=2, write_statistics=["k", "name"])
    return tmp_path / "theirs.parquet"


def adopt(con: Any, file: Path, table: str = "t") -> int:
    return con.execute(f"COPY {table} FROM '{file}' (FORMAT parquet, ADOPT)").rowcount  # type: ignore[no-any-return]


def same(con: Any, expected: list[tuple[Any, ...]], text: str = "FROM t") -> None:
    assert multiset(rows(con, text)) == multiset(expected)
    assert rows(con, "CHECK LAKE") == []


def test_a_file_is_linked_and_stays_the_users(lake: Any, file: Path) -> None:
    lake.execute(TABLE)
    before = file.read_bytes()
    assert adopt(lake, file) == 5
    assert file.stat().st_nlink == 2
    same(lake, rows(duckdb.connect(), f"FROM '{file}'"))
    assert rows(lake, "SELECT storage, row_count, size_bytes FROM lake.fragments") == [("parquet", 5, file.stat().st_size)]
    lake.execute("DELETE FROM t WHERE k < 4; OPTIMIZE t; VACUUM t RETAIN 0 HOURS")
    assert file.read_bytes() == before
    assert file.stat().st_nlink == 1
    same(lake, [(4, "dé", {"x": 4, "y": []}, float("inf")), (5, "", {"x": None, "y": ["z", None]}, None)])


def test_a_copy_where_the_file_system_has_no_links(lake: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    lake.execute(TABLE)
    monkeypatch.setattr(os, "link", refuse)
    assert adopt(lake, file) == 5
    assert file.stat().st_nlink == 1
    file.unlink()
    same(lake, [(1,), (2,), (3,), (4,), (5,)], "SELECT k FROM t")


def test_everything_goes_on_with_its_rows(lake: Any, file: Path) -> None:
    plain = duckdb.connect()
    plain.execute(TABLE + f"; INSERT INTO t FROM '{file}'")
    lake.execute(TABLE)
    adopt(lake, file)
    for statement in [
        "UPDATE t SET name = 'new' WHERE k IN (2, 3)",
        "DELETE FROM t WHERE f > 1e300 OR k = 2",
        "ALTER TABLE t RENAME COLUMN name TO label",
        "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7",
        "INSERT INTO t (k, label) SELECT k + 10, label FROM t",
        "ALTER TABLE t DROP COLUMN f",
        "ALTER TABLE t ADD COLUMN name VARCHAR",
        "UPDATE t SET name = label || k WHERE s IS NOT NULL",
        "DELETE FROM t USING (VALUES (1), (11)) v(k) WHERE v.k = t.k",
    ]:
        lake.execute(statement)
        plain.execute(statement)
        same(lake, rows(plain, "FROM t"))
    version = rows(lake, "SELECT max(snapshot_id) FROM lake.snapshots")[0][0]
    lake.execute("OPTIMIZE t ZORDER BY (k)")
    same(lake, rows(plain, "FROM t"))
    same(lake, rows(plain, f"SELECT k, name FROM '{file}'"), "SELECT k, name FROM t AT (VERSION => 2)")
    assert [r[2] for r in rows(lake, "FROM table_changes('t', 2, 2)")] == ["insert"] * 5
    lake.execute("RESTORE TABLE t TO VERSION AS OF 2")
    same(lake, rows(plain, f"FROM '{file}'"))
    lake.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
    same(lake, rows(plain, "FROM t"))


def test_columns_by_name_and_what_is_missing(lake: Any, tmp_path: Path) -> None:
    lake.execute(
        "CREATE TABLE t (a INTEGER, \"B c\" VARCHAR DEFAULT 'none', n BIGINT, at DATE DEFAULT '2020-02-02', r FLOAT DEFAULT 0.1)".replace(
            " at ", ' "at" '
        )
    )
    pq.write_table(pa.table({"b C": ["x", None], "A": pa.array([1, 2], pa.int32())}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"n": [5], "a": pa.array([3], pa.int32())}), tmp_path / "two.parquet")
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    pq.ParquetWriter(tmp_path / "nothing.parquet", pa.schema([("n", pa.int64())])).close()
    assert lake.execute("COPY t FROM ? (ADOPT)", [str(tmp_path / "*.parquet")]).rowcount == 3
    lake.execute("ALTER TABLE t ALTER r TYPE DOUBLE; ALTER TABLE t ALTER a TYPE BIGINT; ALTER TABLE t ALTER COLUMN \"B c\" SET DEFAULT 'other'")
    short = rows(duckdb.connect(), "SELECT 0.1::FLOAT::DOUBLE, DATE '2020-02-02'")[0]
    same(lake, [(1, "x", None, short[1], short[0]), (2, None, None, short[1], short[0]), (3, "none", 5, short[1], short[0])])
    assert rows(lake, "SELECT a FROM t WHERE r = 0.1::FLOAT AND \"B c\" = 'none' AND n > 4") == [(3,)]
    lake.execute("OPTIMIZE t")
    same(lake, [(1, "x", None, short[1], short[0]), (2, None, None, short[1], short[0]), (3, "none", 5, short[1], short[0])])


REFUSED = {
    "CREATE TABLE t (k BIGINT, name VARCHAR, s STRUCT(x BIGINT, y VARCHAR[]))": 'column "f"',
    "CREATE TABLE t (k INTEGER, name VARCHAR, s STRUCT(x BIGINT, y VARCHAR[]), f DOUBLE)": "k is INTEGER",
    "CREATE TABLE t (k BIGINT, name VARCHAR, s STRUCT(x BIGINT, z VARCHAR[]), f DOUBLE)": "STRUCT",
    "CREATE TABLE t (k BIGINT, name VARCHAR NOT NULL, s STRUCT(x BIGINT, y VARCHAR[]), f DOUBLE)": "NOT NULL constraint failed: t.name",
    TABLE[:-1] + ", more INTEGER NOT NULL)": "NOT NULL constraint failed: t.more",
    TABLE[:-1] + ", more DOUBLE DEFAULT random())": "no constant",
    TABLE[:-1] + ", more TIMESTAMPTZ DEFAULT now())": "no constant",
    TABLE[:-1] + ", CHECK (k < 5))": "CHECK constraint",
    TABLE[:-1] + ", UNIQUE (k))": "violates unique constraint",
}


@pytest.mark.parametrize("table", REFUSED)
def test_what_does_not_fit_is_refused_and_leaves_nothing(lake: Any, file: Path, tmp_path: Path, table: str) -> None:
    lake.execute(table)
    if "UNIQUE" in table:
        lake.execute("INSERT INTO t (k) VALUES (5)")
    with pytest.raises(lakelite.Error, match=REFUSED[table].replace("(", r"\(")):
        adopt(lake, file)
    assert file.stat().st_nlink == 1
    same(lake, [], "FROM t WHERE name IS NOT NULL")
    lake.execute("DROP TABLE t; VACUUM RETAIN 0 HOURS")
    assert not list((tmp_path / "lake" / "data").rglob("*.parquet"))


def test_files_that_are_none(lake: Any, file: Path, tmp_path: Path) -> None:
    lake.execute(TABLE)
    (tmp_path / "text.parquet").write_text("no parquet at all, but longer than a footer")
    (tmp_path / "cut.parquet").write_bytes(file.read_bytes()[:-40])
    (tmp_path / "folder.parquet").mkdir()
    duckdb.connect().execute(
        f"SET force_mbedtls_unsafe = 'true'; PRAGMA add_parquet_key('key', '0123456789112345'); COPY (SELECT 1::BIGINT AS k) TO '{tmp_path}/secret.parquet' (ENCRYPTION_CONFIG {{footer_key: 'key'}})"
    )
    for name in ("text", "cut", "folder", "secret", "missing"):
        with pytest.raises(lakelite.Error):
            adopt(lake, tmp_path / f"{name}.parquet")
    for options in ("(ADOPT false)", "(ADOPT, FORMAT csv)", "(ADOPT, HEADER)"):
        with pytest.raises(lakelite.Error, match="ADOPT"):
            lake.execute(f"COPY t FROM '{file}' {options}")
    with pytest.raises(lakelite.ProgrammingError, match="by name"):
        lake.execute(f"COPY t (k) FROM '{file}' (ADOPT)")
    pq.write_table(pa.table({"file_row_number": [1]}), tmp_path / "number.parquet")
    lake.execute("CREATE TABLE n (file_row_number BIGINT)")
    with pytest.raises(lakelite.Error):
        adopt(lake, tmp_path / "number.parquet", "n")
    assert rows(lake, "FROM t") == []
    assert rows(lake, "CHECK LAKE") == []


def test_who_wrote_it(lake: Any, tmp_path: Path) -> None:
    """The same rows by pandas, Polars, DuckDB and pyarrow, in several forms of the format."""
    frame = pd.DataFrame({"k": [1, 2, 3], "word": ["a", "b" * 300, None], "ok": [True, False, True]})
    frame.to_parquet(tmp_path / "pandas.parquet", index=False)
    pl.DataFrame({"k": [1, 2, 3], "word": ["a", "b" * 300, None], "ok": [True, False, True]}).write_parquet(
        tmp_path / "polars.parquet", compression="zstd"
    )
    duckdb.connect().execute(f"COPY (SELECT k, word, ok FROM frame) TO '{tmp_path}/duckdb.parquet' (FIELD_IDS {{k: 9, word: 1, ok: 2147483540}})")
    written = pa.table({"k": [1, 2, 3], "word": ["a", "b" * 300, None], "ok": [True, False, True]})
    pq.write_table(written, tmp_path / "v1.parquet", version="1.0", use_dictionary=False, write_statistics=False, compression="gzip")
    pq.write_table(written, tmp_path / "v2.parquet", data_page_version="2.0", store_decimal_as_integer=True, write_page_index=True)
    lake.execute("CREATE TABLE t (k BIGINT, word VARCHAR, ok BOOLEAN)")
    for number, name in enumerate(("pandas", "polars", "duckdb", "v1", "v2"), 1):
        assert adopt(lake, tmp_path / f"{name}.parquet") == 3, name
        assert rows(lake, "SELECT count(*) FROM t WHERE k = 2 AND word > 'b' AND NOT ok") == [(number,)]
        assert lake.execute("UPDATE t SET ok = ok WHERE k = 3 AND word IS NULL").rowcount == number
    same(lake, [(1, "a", True), (2, "b" * 300, False), (3, None, True)] * 5)


TYPES = ["BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL(4,1)",
         "DECIMAL(18,3)", "DECIMAL(38,10)", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMPTZ", "UUID",
         "INTEGER[]", "MAP(VARCHAR, INTEGER)", "STRUCT(a DATE, b DECIMAL(5,2)[])"]  # fmt: skip


def test_types_and_pruning(lake: Any, tmp_path: Path) -> None:
    """A file of DuckDB's with values of each type; each value is found again by a WHERE that statistics prune, and none that is not there."""
    plain = duckdb.connect()
    plain.execute("SELECT setseed(0.5)")
    for number, kind in enumerate(TYPES):
        plain.execute(f"CREATE OR REPLACE TABLE v AS SELECT v FROM (FROM test_all_types() SELECT {_source(kind)}::{kind} AS v)")
        plain.execute(f"COPY v TO '{tmp_path}/t{number}.parquet' (ROW_GROUP_SIZE 2048)")
        lake.execute(f"CREATE OR REPLACE TABLE t (v {kind})")
        adopt(lake, tmp_path / f"t{number}.parquet")
        same(lake, rows(plain, "FROM v"))
        if kind.startswith(("MAP", "STRUCT")):
            continue
        for (text,) in rows(plain, "SELECT DISTINCT v::VARCHAR FROM v WHERE v IS NOT NULL"):
            for operator in ("=", ">"):
                where = f"v {operator} CAST($1 AS {kind})"
                expected = plain.execute(f"SELECT count(*) FROM v WHERE {where}", [text]).fetchone()
                assert lake.execute(f"SELECT count(*) FROM t WHERE {where}", [text]).fetchone() == expected, (kind, operator, text)
                assert lake.execute(f"UPDATE t SET v = v WHERE {where}", [text]).rowcount == expected[0], (kind, operator, text)
            lake.execute(f"CREATE OR REPLACE TABLE t (v {kind})")
            adopt(lake, tmp_path / f"t{number}.parquet")


def _source(kind: str) -> str:
    named = {"BOOLEAN": "bool", "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint", "UTINYINT": "utinyint",
             "USMALLINT": "usmallint", "UINTEGER": "uint", "UBIGINT": "ubigint", "FLOAT": "float", "DOUBLE": "double", "DECIMAL(4,1)": "dec_4_1",
             "DECIMAL(18,3)": "dec_9_4", "DECIMAL(38,10)": "dec38_10", "VARCHAR": "varchar", "BLOB": "blob", "DATE": "date", "TIME": "time",
             "TIMESTAMP": "timestamp", "TIMESTAMP_NS": "timestamp_ns", "TIMESTAMPTZ": "timestamp_tz", "UUID": "uuid", "INTEGER[]": "int_array"}  # fmt: skip
    if kind.startswith("MAP"):
        return "MAP {'a': 1, 'b': NULL}"
    return named.get(kind, "{'a': DATE '2020-01-01', 'b': [1.5, NULL]}")


@pytest.mark.parametrize("kind", ["INTERVAL", "HUGEINT", "ENUM('a', 'b')", "JSON", "BIT", "TIMETZ"])
def test_types_that_files_of_others_hold_otherwise(lake: Any, tmp_path: Path, kind: str) -> None:
    duckdb.connect().execute(f"COPY (SELECT NULL::{kind} AS v) TO '{tmp_path}/x.parquet'")
    lake.execute(f"CREATE TABLE t (v {kind})")
    with pytest.raises(lakelite.Error, match="ADOPT"):
        adopt(lake, tmp_path / "x.parquet")


def test_the_original_changed_in_place_is_found(lake: Any, file: Path) -> None:
    lake.execute(TABLE)
    adopt(lake, file)
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 255
    with file.open("r+b") as theirs:
        theirs.write(content)
    assert [row[0] for row in rows(lake, "CHECK LAKE")] == ["error"]


# Beside others.

WINNERS = ("INSERT INTO t (k) VALUES (77)", "DELETE FROM t WHERE k = 50", "UPDATE t SET name = 'w' WHERE k = 51", "OPTIMIZE t", "FLUSH", "TRUNCATE t",
           "INSERT OVERWRITE t SELECT 9, 'over', NULL, NULL", "ALTER TABLE t RENAME COLUMN name TO label", "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 3",
           "ALTER TABLE t DROP COLUMN f", "ALTER TABLE t ADD CHECK (k < 5)", "ALTER TABLE t ALTER k SET NOT NULL", "DROP TABLE t")  # fmt: skip


@pytest.fixture(params=["inline", "files"])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as m, lakelite.connect(tmp_path / "lake", autocommit=True) as w:
        for con in (m, w):
            con.execute(f"SET overwrite_append = keep; SET inline_rows = {1000 if request.param == 'inline' else 0}")
        yield m, w


def win(w: Any, winner: str) -> None:
    if winner == "FLUSH":
        flush(w, "t")
    else:
        w.execute(winner)


def test_adopting_beside_winners(pair: tuple[Any, Any], file: Path) -> None:
    """It is an append: both stay, or the error that COPY gives there; in autocommit and in a transaction in turn."""
    m, w = pair
    for number, winner in enumerate(WINNERS):
        explicit = (number + (m.execute("SHOW inline_rows").fetchone() == ("0",))) % 2
        found = []
        for how in ("(FORMAT parquet)", "(ADOPT)"):
            w.execute("DROP TABLE IF EXISTS t; " + TABLE)
            w.execute("INSERT INTO t (k) VALUES (50), (51); INSERT INTO t (k) VALUES (52); DELETE FROM t WHERE k = 52")
            m.execute("SELECT 1")
            try:
                with meeting(lambda winner=winner: win(w, winner)):
                    m.execute("BEGIN" if explicit else "SELECT 1")
                    m.execute(f"COPY t FROM '{file}' {how}")
                    m.execute("COMMIT")
                found.append(multiset(rows(m, "FROM t")))
            except lakelite.Error as error:
                found.append(type(error))
        assert found[0] == found[1], winner
        assert rows(w, "CHECK LAKE") == []


@pytest.mark.parametrize(
    "mine",
    ["DELETE FROM t WHERE k > 3", "UPDATE t SET name = name || '!' WHERE k > 1", "OPTIMIZE t", "INSERT INTO t SELECT k + 100, name, s, f FROM t"],
)
def test_an_adopted_file_as_what_winners_did(pair: tuple[Any, Any], file: Path, mine: str) -> None:
    m, w = pair
    m.execute(TABLE)
    adopt(m, file)
    m.execute("DELETE FROM t WHERE k = 1; INSERT INTO t (k) VALUES (50), (51)")
    plain = duckdb.connect()
    plain.execute(
        f"{TABLE}; INSERT INTO t FROM '{file}' WHERE k > 1; INSERT INTO t (k) VALUES (50), (51); INSERT INTO t FROM '{file}'; DELETE FROM t WHERE k = 2"
    )
    if mine != "OPTIMIZE t":
        plain.execute(mine)
    with meeting(lambda: (adopt(w, file), w.execute("DELETE FROM t WHERE k = 2"))):
        m.execute(mine)
    same(m, rows(plain, "FROM t"))


def test_undone_with_its_transaction(pair: tuple[Any, Any], file: Path, tmp_path: Path) -> None:
    m, _ = pair
    m.execute(TABLE)
    m.execute("BEGIN; SAVEPOINT a")
    adopt(m, file)
    assert rows(m, "SELECT count(*) FROM t") == [(5,)]
    m.execute("ROLLBACK TO a")
    adopt(m, file)
    m.execute("DELETE FROM t WHERE k = 2; ROLLBACK")
    assert file.stat().st_nlink == 1
    same(m, [])
    m.execute("BEGIN")
    adopt(m, file)
    m.execute("DELETE FROM t WHERE k > 2; COMMIT")
    same(m, [(1,), (2,)], "SELECT k FROM t")
    m.execute(f"CREATE TABLE o AS FROM t WITH NO DATA; EXPORT DATABASE '{tmp_path / 'out'}'")
    with lakelite.connect(":memory:", autocommit=True) as other:
        other.execute(f"IMPORT DATABASE '{tmp_path / 'out'}'")
        assert multiset(rows(other, "FROM t")) == multiset(rows(m, "FROM t"))


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    values=st.lists(st.tuples(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), st.one_of(st.none(), st.text(max_size=5)),
                              st.one_of(st.none(), st.floats(width=32))), min_size=1, max_size=12),
    groups=st.integers(1, 4), wanted=st.integers(0, 11),
)  # fmt: skip
def test_random_rows_are_found_again(tmp_path_factory: pytest.TempPathFactory, values: list[tuple[Any, ...]], groups: int, wanted: int) -> None:
    folder = tmp_path_factory.mktemp("random")
    values = [(a, None if b is None else b.replace("\0", ""), c) for a, b, c in values]
    a, b, c = zip(*values, strict=True)
    written = pa.table({"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.string()), "c": pa.array(c, pa.float32())})
    pq.write_table(written, folder / "x.parquet", row_group_size=groups)
    x, y, z = values[wanted % len(values)]
    with lakelite.connect(folder / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (a BIGINT, b VARCHAR, c FLOAT)")
        adopt(con, folder / "x.parquet")
        expected = sum(v[0] == x and x is not None for v in values)
        assert con.execute("UPDATE t SET a = a WHERE a = ?", [x]).rowcount == expected
        assert con.execute("UPDATE t SET a = a WHERE b >= ? AND b <= ?", [y, y]).rowcount == sum(v[1] == y and y is not None for v in values)
        here = duckdb.connect().execute("SELECT count(*) FROM written WHERE c >= ?::FLOAT", [z]).fetchone()[0]
        assert con.execute("DELETE FROM t WHERE c >= ?::FLOAT", [z]).rowcount == here


WINNING_DDL = {
    "ADD COLUMN more INTEGER DEFAULT 3": [(42, 4, 3)],
    "DROP COLUMN n": [(42,)],
    "DROP COLUMN a": [(4,)],  # at write serializable what it was given is gone
    "RENAME COLUMN a TO b": [(42, 4)],
    "RENAME COLUMN n TO m": [(42, 4)],
    "ALTER n SET DEFAULT 9": [(42, 9)],
    "ALTER n DROP DEFAULT": [(42, None)],
    "ALTER a SET DEFAULT 9": [(42, 4)],
    "ALTER a SET NOT NULL": [(42, 4)],
    "ALTER n SET NOT NULL": [(42, 4)],
    "ALTER n DROP DEFAULT; ALTER TABLE t ALTER n SET NOT NULL": lakelite.IntegrityError,
    "ALTER a TYPE BIGINT": [(42, 4)],
    "ALTER n TYPE BIGINT": [(42, 4)],
    "ALTER n TYPE VARCHAR": [(42, "4")],
    "ALTER a TYPE VARCHAR": lakelite.ProgrammingError,
}


@pytest.mark.parametrize("winner", WINNING_DDL)
def test_a_file_without_a_column_beside_ddl(pair: tuple[Any, Any], tmp_path: Path, winner: str) -> None:
    """As the winner's statement, then ADOPT: of columns that the file has not, the default of then."""
    m, w = pair
    pq.write_table(pa.table({"a": pa.array([42], pa.int32())}), tmp_path / "x.parquet")
    m.execute("CREATE TABLE t (a INTEGER, n INTEGER DEFAULT 4)")
    m.execute("SELECT 1")
    expected = WINNING_DDL[winner]
    with meeting(lambda: w.execute(f"ALTER TABLE t {winner}")):
        if isinstance(expected, type):
            with pytest.raises(expected):
                adopt(m, tmp_path / "x.parquet")
        else:
            assert adopt(m, tmp_path / "x.parquet") == 1
    same(m, [] if isinstance(expected, type) else expected)


@pytest.mark.parametrize(
    "winner", ["INSERT INTO t VALUES (7.0, 7)", "ALTER TABLE t ALTER n SET DEFAULT 9", "ALTER TABLE t RENAME v TO w", "OPTIMIZE t"]
)
def test_a_file_that_is_written_anew_beside_winners(pair: tuple[Any, Any], tmp_path: Path, winner: str) -> None:
    m, w = pair
    pq.write_table(pa.table({"v": [1.0, NAN]}), tmp_path / "x.parquet")
    m.execute("CREATE TABLE t (v DOUBLE, n INTEGER DEFAULT 4); INSERT INTO t VALUES (1.0, 1); INSERT INTO t VALUES (2.0, 2)")
    m.execute("FROM t")
    with meeting(lambda: w.execute(winner)):
        assert adopt(m, tmp_path / "x.parquet") == 2
    n = 9 if "DEFAULT" in winner else 4
    same(m, [(1.0, 1), (2.0, 2), (1.0, n), (NAN, n)] + [(7.0, 7)] * ("INSERT" in winner))


def test_a_new_default_beside_a_transaction_that_adopted(pair: tuple[Any, Any], tmp_path: Path) -> None:
    """Files may be others by now: a statement of a transaction cannot run again, where one of its files lacks the column."""
    m, w = pair
    for name, columns in {"one": {"a": [1]}, "two": {"a": [2], "n": [5]}}.items():
        pq.write_table(pa.table({k: pa.array(v, pa.int32()) for k, v in columns.items()}), tmp_path / f"{name}.parquet")
    m.execute("CREATE TABLE t (a INTEGER, n INTEGER DEFAULT 4)")
    for pattern, is_whole in {"*": False, "one": False, "two": True}.items():
        m.execute(f"BEGIN; COPY t FROM '{tmp_path}/{pattern}.parquet' (ADOPT)")
        w.execute("ALTER TABLE t ALTER n SET DEFAULT 9; ALTER TABLE t ALTER n SET DEFAULT 4")
        w.execute("ALTER TABLE t ALTER n SET DEFAULT 9")
        if is_whole:
            m.execute("COMMIT")
        else:
            with pytest.raises(lakelite.TransactionConflict):
                m.execute("COMMIT")
        w.execute("ALTER TABLE t ALTER n SET DEFAULT 4")
    same(m, [(2, 5)])


# Not a number.

DEEP = {
    "DOUBLE": (NAN, 1.0, "v > 2"),
    "FLOAT": (NAN, 1.0, "v > 2"),
    "STRUCT(x DOUBLE, y VARCHAR)": ({"x": NAN, "y": "a"}, {"x": 1.0, "y": "a"}, "v.x > 2"),
    "DOUBLE[]": ([1.0, NAN], [1.0], "list_max(v) > 2"),
    "STRUCT(x FLOAT[])[]": ([{"x": [NAN]}, None], [{"x": [1.0]}], "v[1].x[1] > 2"),
    "MAP(VARCHAR, DOUBLE)": ([("a", NAN)], [("a", 1.0)], "v['a'] > 2"),
    "MAP(DOUBLE, VARCHAR)": ([(NAN, "a")], [(1.0, "a")], "map_keys(v)[1] > 2"),
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_nan_that_bounds_leave_out_is_found(lake: Any, tmp_path: Path, kind: str) -> None:
    """Such a file is written anew; one without a NaN, or without bounds, is not."""
    odd, plain, where = DEEP[kind]
    lake.execute(f'CREATE TABLE t (k INTEGER, "a, ""v" DOUBLE, v {kind})')
    schema = duckdb.connect().sql(f'SELECT 1::INTEGER AS k, 1::DOUBLE AS "a, ""v", NULL::{kind} AS v').to_arrow_table().schema
    for name, values, statistics in (("odd", [plain, odd, None], True), ("plain", [plain] * 3, True), ("loose", [plain, odd, None], False)):
        table = pa.Table.from_pydict({"k": [1, 2, 3], 'a, "v': [0.5] * 3, "v": values}, schema)
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=2, write_statistics=statistics)
        assert adopt(lake, tmp_path / f"{name}.parquet") == 3
    assert [(tmp_path / f"{name}.parquet").stat().st_nlink for name in ("odd", "plain", "loose")] == [1, 2, 2]
    assert rows(lake, f"SELECT k FROM t WHERE {where}") == [(2,), (2,)]
    if kind == "DOUBLE":
        assert rows(lake, "SELECT max(v) = 'nan', count_if(isnan(v)) FROM t") == [(True, 2)]
    assert lake.execute(f"DELETE FROM t WHERE {where}").rowcount == 2
    same(lake, [(1,)] * 2 + [(2,)] + [(3,)] * 3 + [(1,)], "SELECT k FROM t")


def test_a_nan_in_one_of_many_files(lake: Any, tmp_path: Path) -> None:
    for name, values in {"a": [1.0], "b": [NAN, 2.0], "c": [3.0]}.items():
        pq.write_table(pa.table({"V": values}), tmp_path / f"{name}.parquet")
    lake.execute("CREATE TABLE t (k INTEGER DEFAULT 7, v DOUBLE)")
    assert adopt(lake, tmp_path / "*.parquet") == 4
    same(lake, [(7, NAN), (7, 3.0)], "FROM t WHERE v > 2")
    assert [(tmp_path / f"{name}.parquet").stat().st_nlink for name in "abc"] == [2, 1, 2]


# What the footer says, and whose it is.


def test_the_footer_is_read_a_few_times_however_many_columns_there_are(lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ["BIGINT", "VARCHAR", "DATE", "BOOLEAN"]
    columns = [f"c{i} {kinds[i % 4]}" for i in range(60)]
    values = ", ".join(
        f"{['range', 'range::VARCHAR', 'DATE ' + repr('2020-01-01') + ' + range::INTEGER', 'range > 1'][i % 4]} AS c{i}" for i in range(60)
    )
    duckdb.connect().execute(f"COPY (SELECT {values} FROM range(3)) TO '{tmp_path}/x.parquet'")
    lake.execute(f"CREATE TABLE t ({', '.join(columns)})")
    asked: list[str] = []
    read = adoption.File.read
    monkeypatch.setattr(adoption.File, "read", lambda file, engine, sql: (asked.append(sql), read(file, engine, sql))[1])
    assert adopt(lake, tmp_path / "x.parquet") == 3
    assert sum(sql.count("parquet_") for sql in asked) <= 4
    assert lake.execute("UPDATE t SET c0 = c0 WHERE c56 > 1 AND c57 = '2' AND c58 >= '2020-01-03'").rowcount == 1
    assert lake.execute("DELETE FROM t WHERE c56 > 2 OR c57 < '0'").rowcount == 0


def test_a_file_that_is_replaced_meanwhile(lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at is what was taken."""
    pq.write_table(pa.table({"k": [1, 2]}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"k": pa.array([None], pa.int64()), "other": ["a"]}), tmp_path / "y.parquet")
    take = files.take_data_file

    def swapped(paths: Any, table_id: int, source: str, name: str) -> None:
        take(paths, table_id, source, name)
        os.replace(tmp_path / "y.parquet", source)

    lake.execute("CREATE TABLE t (k BIGINT NOT NULL)")
    with monkeypatch.context() as patch:
        patch.setattr(files, "take_data_file", swapped)
        assert adopt(lake, tmp_path / "x.parquet") == 2
    same(lake, [(1,), (2,)])
    with pytest.raises(lakelite.ProgrammingError, match='a column "other"'):
        adopt(lake, tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_nlink == 1


def test_what_is_said_of_files_that_are_none(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "junk.parquet").write_bytes(b"PAR1" + b"junk" * 20 + b"PAR1")
    (tmp_path / "footer.parquet").write_bytes(b"PAR1" + b"junk" * 20 + b"\x08\0\0\0PAR1")
    lake.execute("CREATE TABLE t (k BIGINT)")
    for name in ("empty", "junk", "footer"):
        path = tmp_path / f"{name}.parquet"
        with pytest.raises(lakelite.DataError, match="is no Parquet file that can be read: ") as found:
            adopt(lake, path)
        assert found.value.message.startswith(str(path))
        assert "/data/" not in found.value.message
        assert found.value.hint == "check the path and how the file was made"
        assert path.stat().st_nlink == 1


def test_two_columns_that_a_table_cannot_tell_apart(lake: Any, tmp_path: Path) -> None:
    nested = pa.array([{"k": 1, "K": 2}], pa.struct([("k", pa.int64()), ("K", pa.int64())]))
    pq.write_table(pa.table([nested, pa.array([1]), pa.array([2])], ["s", "k", "K"]), tmp_path / "x.parquet")
    lake.execute("CREATE TABLE t (k BIGINT)")
    with pytest.raises(lakelite.ProgrammingError, match='cannot tell apart: "k" and "K"'):
        adopt(lake, tmp_path / "x.parquet")


def test_into_a_temporary_table(lake: Any, file: Path) -> None:
    lake.execute(TABLE.replace("TABLE", "TEMP TABLE"))
    with pytest.raises(lakelite.NotSupportedError, match="ADOPT into a temporary table"):
        adopt(lake, file)
    assert rows(lake, "FROM t") == []


def test_of_adopted_files_only_the_new_ones_are_read_from_the_catalog(pair: tuple[Any, Any], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a branch too, where the fragments are those of another one."""
    m, w = pair
    m.execute(TABLE)
    for _ in range(5):
        adopt(m, file)
    for con in (m, w):
        con.execute("SELECT k FROM t")
    found: list[int] = []
    read = Catalog.rows

    def counted(catalog: Catalog, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        there = read(catalog, query, **parameters)
        if query.startswith("adopted_columns"):
            found.append(len(there))
        return there

    monkeypatch.setattr(Catalog, "rows", counted)
    for statement in ("DELETE FROM t WHERE k = 1", "INSERT INTO t (k) VALUES (9)"):
        m.execute(statement)
        w.execute("SELECT k FROM t")
    assert sum(found) == 0
    adopt(m, file)
    assert len(rows(w, "SELECT k FROM t")) == len(rows(m, "SELECT k FROM t")) == 26
    assert sum(found) == 8  # 4 columns, for each of two connections
    m.execute("CREATE BRANCH dev; USE BRANCH dev")
    adopt(m, file)
    m.execute("DELETE FROM t WHERE k = 2")
    same(m, [(k,) for k in [1] * 2 + [3, 4, 5] * 7 + [9]], "SELECT k FROM t")
    m.execute("USE BRANCH main; MERGE BRANCH dev")
    same(w, [(k,) for k in [1] * 2 + [3, 4, 5] * 7 + [9]], "SELECT k FROM t")
