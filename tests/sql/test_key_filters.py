"""Key filters: keys that are there are found, whatever became of the files, and files that surely hold none of them are not read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from comparing import both
from hypothesis import given, settings
from hypothesis import strategies as some
from racing import meeting

import lakelite
from lakelite.errors import IntegrityError
from lakelite.storage.engine import Engine
from lakelite.transaction import key_lookup

ROWS = 30_000  # in a file: more than have to be there for a filter


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Any]:
    """A table of two files, of even keys in no order, one of which has rows that were deleted: 0 to 18."""
    con = lakelite.connect(tmp_path / "lake", autocommit=True)
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, w VARCHAR)")
    for first in (0, 2):
        con.execute(f"INSERT INTO t SELECT range * 4 + {first}, 'row ' || range FROM range({ROWS}) ORDER BY hash(range)")
    con.execute("DELETE FROM t WHERE k < 20")
    yield con
    con.close()


def filters(lake: Path) -> list[Path]:
    return sorted((lake / "lake" / "data").glob("*/*.keys"))


def files_read(con: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, sql: str) -> set[str]:
    """The data files of the table that the SQL names which a statement makes DuckDB run."""
    names = {path.name for path in (lake / "lake" / "data").glob("*/*.parquet")}
    texts: list[str] = []
    run = Engine.run
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "run", lambda self, text, *more: texts.append(text) or run(self, text, *more))
        con.execute(sql)
    return {name for name in names if any(name in text for text in texts)}


def test_a_file_that_holds_none_of_the_keys_is_not_read(large: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(filters(tmp_path)) == 2
    assert files_read(large, tmp_path, monkeypatch, "INSERT INTO t SELECT range * 601 + 1, 'new' FROM range(99) WHERE range % 2 = 0") == set()
    assert files_read(large, tmp_path, monkeypatch, "INSERT INTO t SELECT range * 600, 'no' FROM range(99) ON CONFLICT DO NOTHING") != set()
    assert large.execute("SELECT count(*) FROM t").fetchall() == [(2 * ROWS - 10 + 50 + 1,)]


@pytest.mark.parametrize("count", [1, 40, 2_000])
def test_keys_that_are_there_are_found(large: Any, count: int) -> None:
    with pytest.raises(IntegrityError, match='Duplicate key "k: 40"'):
        large.execute("INSERT INTO t VALUES (7, ''), (40, '')")
    with pytest.raises(IntegrityError):
        large.execute(f"INSERT INTO t SELECT 1_000 + range * 2, '' FROM range({count})")
    assert large.execute(f"INSERT INTO t SELECT range * 3, 'new' FROM range({count}) ON CONFLICT DO NOTHING").rowcount == sum(
        k % 2 == 1 or k < 20 for k in range(0, 3 * count, 3)
    )
    found = large.execute(f"INSERT INTO t SELECT range * 2, 'other' FROM range({count}) ON CONFLICT (k) DO UPDATE SET w = excluded.w")
    assert found.rowcount == count
    assert large.execute("SELECT count(*), count(DISTINCT k), count(*) FILTER (w = 'other') FROM t").fetchall()[0][1:] == (
        large.execute("SELECT count(*) FROM t").fetchall()[0][0],
        count,
    )


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t RENAME k TO id",
        "ALTER TABLE t DROP CONSTRAINT t_k_pkey; ALTER TABLE t ALTER k TYPE BIGINT; ALTER TABLE t ADD PRIMARY KEY (k)",
        "OPTIMIZE t ZORDER BY (w)",
        "DELETE FROM t WHERE k % 8 = 0",
    ],
)
def test_filters_beside_other_changes(large: Any, change: str) -> None:
    large.execute(change)
    for k in (1_002, 1_004):
        with pytest.raises(IntegrityError):
            large.execute(f"INSERT INTO t VALUES ({k}, '')")
    with pytest.raises(IntegrityError):
        large.execute("INSERT INTO t SELECT range * 3 + 900, '' FROM range(1_000)")
    assert large.execute("INSERT INTO t SELECT range * 2 + 1, '' FROM range(1_000)").rowcount == 1_000
    assert large.execute("INSERT INTO t VALUES (8, 'deleted, and here again')").rowcount == 1


@pytest.mark.parametrize("content", [None, b"", b"\0" * 1_000, "cut off", "another's"])
def test_filters_that_are_missing_or_damaged(large: Any, tmp_path: Path, content: bytes | str | None) -> None:
    large.close()
    one, other = filters(tmp_path)
    if content is None:
        one.unlink()
    elif content == "another's":
        one.write_bytes(other.read_bytes())
    else:
        one.write_bytes(one.read_bytes()[:-1] if content == "cut off" else content)
    before = one.read_bytes() if one.exists() else b""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        for k in (1_002, 1_004):
            with pytest.raises(IntegrityError):
                con.execute(f"INSERT INTO t VALUES ({k}, '')")
        assert con.execute("INSERT INTO t SELECT range * 601 + 1, 'new' FROM range(99) WHERE range % 2 = 0").rowcount == 50
        assert len(one.read_bytes()) > len(before)  # so many keys that it was made again


def test_filters_come_with_their_files_and_go_with_them(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute(f"CREATE TABLE t AS SELECT range AS k, range % 100 AS v FROM range({ROWS})")
        assert filters(tmp_path) == []
        con.execute("ALTER TABLE t ADD PRIMARY KEY (k)")
        assert len(filters(tmp_path)) == 1
        con.execute("BEGIN")
        con.execute(f"INSERT INTO t SELECT range + {ROWS}, 0 FROM range({ROWS})")
        assert len(filters(tmp_path)) == 2
        con.execute("ROLLBACK")
        assert len(filters(tmp_path)) == 1
        con.execute(f"INSERT INTO t SELECT range + {ROWS}, 0 FROM range({ROWS})")
        con.execute("OPTIMIZE t")
        assert len(filters(tmp_path)) == 3
        con.execute("ALTER TABLE t ADD UNIQUE (v, k)")
        assert len(filters(tmp_path)) == 3  # one file for both keys of a file
        con.execute("VACUUM RETAIN 0 HOURS")
        assert len(filters(tmp_path)) == 1
        assert filters(tmp_path)[0].with_suffix(".parquet").exists()
        assert con.execute("CHECK LAKE").fetchall() == []


@pytest.mark.parametrize(
    "script",
    [
        "DELETE FROM t WHERE k = 1; RESTORE TABLE t TO VERSION AS OF 2",
        "ALTER TABLE t ADD UNIQUE (v, k); RESTORE TABLE t TO VERSION AS OF 2; ALTER TABLE t ADD UNIQUE (v, k)",
        "ALTER TABLE t ADD COLUMN s STRUCT(a INTEGER); INSERT INTO t SELECT r, 0, NULL FROM range(50, 60) q(r); ALTER TABLE t ADD COLUMN s.b INTEGER",
        "CREATE BRANCH dev; CREATE TABLE u (k INTEGER UNIQUE); INSERT INTO u FROM range(9); USE BRANCH dev; MERGE BRANCH main",
    ],
)
def test_files_that_come_without_a_new_row_have_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr("lakelite.transaction.key_lookup.FILTERED_ROWS", 1)
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("SET inline_rows = 0; CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t SELECT r, r FROM range(9) q(r)")
        con.executescript(script)
        assert con.execute("CHECK LAKE").fetchall() == []


def test_small_files_have_none(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY); INSERT INTO t SELECT range FROM range(9_999)")
        assert filters(tmp_path) == []
        with pytest.raises(IntegrityError):
            con.execute("INSERT INTO t SELECT range + 9_998 FROM range(1_000)")


# Between transactions.


@pytest.mark.parametrize("level", ["serializable", "write serializable"])
def test_rows_of_a_winner_in_a_file_with_a_filter(large: Any, tmp_path: Path, level: str) -> None:
    with lakelite.connect(tmp_path / "lake", autocommit=True, isolation=level) as m:
        with (
            meeting(lambda: large.execute(f"INSERT INTO t SELECT range * 4 + 1, '' FROM range({ROWS}) ORDER BY hash(range)")),
            pytest.raises(IntegrityError),
        ):
            m.execute("INSERT INTO t SELECT range * 100 + 1, '' FROM range(300)")
        with meeting(lambda: large.execute(f"INSERT INTO t SELECT range * 4 + 3, '' FROM range({ROWS}) ORDER BY hash(range)")):
            assert m.execute("INSERT INTO t SELECT -1 - range, '' FROM range(300)").rowcount == 300
        with meeting(lambda: large.execute("OPTIMIZE t; UPDATE t SET w = '' WHERE k < 9_000")):
            assert m.execute("INSERT INTO t SELECT -2_000 - range, '' FROM range(300)").rowcount == 300
        with meeting(lambda: large.execute("INSERT INTO t VALUES (-1_000, '')")):
            assert m.execute("INSERT INTO t SELECT -1_000 - range, '' FROM range(20) ON CONFLICT DO NOTHING").rowcount == 19
        assert m.execute("SELECT count(*) - count(DISTINCT k) FROM t").fetchall() == [(0,)]


# Types, against DuckDB.


@pytest.fixture
def con(connect: Callable[..., Any]) -> Any:
    return connect()


VALUES = {
    "TINYINT": ["-128", "0", "1", "127"],
    "UBIGINT": ["0", "1", "18446744073709551615"],
    "HUGEINT": ["-1", "0", "99999999999999999999999999999999999999"],
    "DECIMAL(9,2)": ["0", "-0.01", "1.5", "1234567.89"],
    "VARCHAR": ["''", "'a'", "'A'", "'a '", "'twelve bytes'", "'longer than twelve bytes'", "'é'", "'e' || chr(769)"],
    "BLOB": [r"'\x00'", r"'\x00\x00'", "''", r"'a'"],
    "DATE": ["'2020-02-29'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'"],
    "TIMESTAMP": ["'2020-02-29'", "'2020-02-29 00:00:00.000001'", "'infinity'"],
    "TIMESTAMP_NS": ["'2020-02-29 00:00:00.000000001'", "'2020-02-29'"],
    "UUID": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "BOOLEAN": ["true", "false"],
    "DOUBLE": ["0", "'-0'", "1.5", "'nan'", "'-nan'", "'inf'"],
    "TIMESTAMP WITH TIME ZONE": ["'2020-02-29 00:00:00+00'", "'2020-02-29 01:00:00+01'"],
}


@pytest.mark.parametrize("type_", VALUES)
def test_each_type(con: Any, type_: str) -> None:
    values = [f"CAST({value} AS {type_})" for value in VALUES[type_]]
    create = f"CREATE TABLE t (a {type_}, b {type_}, UNIQUE (a, b))"
    with duckdb.connect() as duck:
        for each in (duck, con):
            each.execute(create)
        both(con, duck, f"INSERT INTO t VALUES {', '.join(f'({value}, {values[0]})' for value in [*values, 'NULL'])}")
        con.execute("SET inline_rows = 1_000")  # a key that is inline has the hash that it has in a file
        for value in values:
            both(con, duck, f"INSERT INTO t VALUES ({value}, {values[0]})")
            both(con, duck, f"INSERT INTO t VALUES ({values[0]}, {value})")
        pairs = itertools.product([*values, "NULL"], values)
        both(con, duck, f"INSERT INTO t VALUES {', '.join(f'({a}, {b})' for a, b in pairs)} ON CONFLICT DO NOTHING")


@settings(max_examples=15)
@given(
    statements=some.lists(
        some.tuples(
            some.sampled_from(["INSERT", "OR IGNORE", "OR REPLACE", "UPDATE", "DELETE", "OPTIMIZE"]),
            some.lists(some.integers(0, 40), min_size=1, max_size=12),
        ),
        max_size=6,
    ),
    tables=some.sampled_from(["k INTEGER PRIMARY KEY, v INTEGER", "k INTEGER, v INTEGER, UNIQUE (k, v)", "k INTEGER PRIMARY KEY, v INTEGER UNIQUE"]),
)
def test_any_statements_against_duckdb(statements: list[tuple[str, list[int]]], tables: str) -> None:
    with pytest.MonkeyPatch.context() as patch, lakelite.connect(autocommit=True) as con, duckdb.connect() as duck:
        patch.setattr(key_lookup, "FILTERED_ROWS", 1)
        con.execute("SET inline_rows = 0")
        for each in (duck, con):
            each.execute(f"CREATE TABLE t ({tables})")
        for what, keys in statements:
            rows = ", ".join(f"({k}, {k % 7})" for k in keys)
            if what == "OPTIMIZE":
                con.execute("OPTIMIZE t")
            elif what == "DELETE":
                both(con, duck, f"DELETE FROM t WHERE k IN ({', '.join(map(str, keys))})")
            elif what == "UPDATE":
                both(con, duck, f"UPDATE t SET v = {keys[-1]} WHERE k = {keys[0]}")
            elif "v INTEGER UNIQUE" not in tables and what != "OR REPLACE":
                both(con, duck, f"INSERT {what if what != 'INSERT' else ''} INTO t VALUES {rows}")
            else:
                both(con, duck, f"INSERT INTO t VALUES {rows}")
