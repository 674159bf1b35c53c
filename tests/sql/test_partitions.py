"""PARTITIONED BY: which rows a file holds, which files a statement reads, and that the table is the same to everybody else.

That a file is not read is shown by taking it away. (Against other transactions: tests/interleave/test_partitions_meet.py.)
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from oracle import Oracle, multiset
from racing import flush

import lakelite
from lakelite import errors
from lakelite.storage.buckets import bucket_of


@pytest.fixture
def con(lake: Any) -> Any:
    lake.execute("SET inline_rows = 4; SET upkeep = off")
    return lake


def partitions(con: Any, table: str = "t") -> list[tuple[Any, ...]]:
    """Partition and rows of each fragment, sorted."""
    return con.execute(f"SELECT partition, row_count - deleted_count FROM lake.fragments WHERE table_name = '{table}' ORDER BY ALL").fetchall()


@contextmanager
def only(con: Any, root: Path, *wanted: str) -> Iterator[None]:
    """Takes away the files of all partitions but those."""
    rows = con.execute("SELECT path, partition FROM lake.fragments WHERE storage = 'parquet'").fetchall()
    gone = [root / "lake" / path for path, partition in rows if partition not in wanted]
    assert gone
    assert len(gone) < len(rows)
    for path in gone:
        path.rename(path.with_suffix(".away"))
    try:
        yield
    finally:
        for path in gone:
            path.with_suffix(".away").rename(path)


def sound(con: Any) -> None:
    assert [f for f in con.execute("CHECK LAKE").fetchall() if f[0] != "info"] == []


def test_every_write_makes_a_file_for_each_partition(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER, r VARCHAR) PARTITIONED BY (r)")
    con.execute("INSERT INTO t SELECT range, ['eu', 'us', NULL][1 + range % 3] FROM range(30)")
    assert partitions(con) == [("r = NULL", 10), ("r = eu", 10), ("r = us", 10)]
    con.executemany("INSERT INTO t VALUES (?, ?)", [(i, "asia") for i in range(100, 106)])
    con.execute("INSERT INTO t VALUES (200, 'eu'), (201, 'us')")
    assert partitions(con)[0] == ("r = NULL", 10)
    assert (None, 2) in partitions(con)  # small writes stay inline
    con.execute("UPDATE t SET r = 'moved' WHERE k % 2 = 0")
    assert ("r = moved", 19) in partitions(con)
    con.execute("DELETE FROM t WHERE r = 'moved'")
    assert con.execute("SELECT r, count(*) FROM t GROUP BY r ORDER BY r NULLS FIRST").fetchall() == [(None, 5), ("asia", 3), ("eu", 5), ("us", 6)]
    flush(con, "t")
    assert not [row for row in partitions(con) if row[0] is None]
    sound(con)


def test_all_ways_of_writing(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t PARTITIONED BY (p) AS SELECT range AS k, range % 3 AS p FROM range(30)")
    con.execute(f"COPY t TO '{tmp_path / 'f.parquet'}'; COPY t FROM '{tmp_path / 'f.parquet'}'")
    con.append("t", con.execute("SELECT k + 100 AS k, p FROM t").df())
    con.execute(
        "MERGE INTO t USING (SELECT range AS k, 7 AS p FROM range(25, 45)) s USING (k) WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT *"
    )
    returned = con.execute("INSERT INTO t SELECT range, range % 2 FROM range(1000, 1020) RETURNING k, p").fetchall()
    assert sorted(returned) == [(k, k % 2) for k in range(1000, 1020)]
    assert sorted(con.execute("UPDATE t SET p = p + 10 WHERE k >= 1000 RETURNING k, p").fetchall()) == [(k, k % 2 + 10) for k in range(1000, 1020)]
    found = con.execute("SELECT partition, sum(row_count - deleted_count)::INTEGER FROM lake.fragments GROUP BY 1").fetchall()
    wanted = con.execute("SELECT 'p = ' || p, count(*)::INTEGER FROM t GROUP BY 1").fetchall()
    assert sorted(found) == sorted(wanted)
    con.execute("INSERT OVERWRITE t SELECT range, range % 2 FROM range(20)")
    assert partitions(con) == [("p = 0", 10), ("p = 1", 10)]
    con.execute("CREATE TABLE keyed (k INTEGER PRIMARY KEY, p INTEGER) PARTITIONED BY (p); INSERT INTO keyed SELECT range, range % 2 FROM range(20)")
    con.execute("INSERT INTO keyed SELECT range, 5 FROM range(10, 40) ON CONFLICT DO NOTHING")
    assert partitions(con, "keyed") == [("p = 0", 10), ("p = 1", 10), ("p = 5", 20)]
    con.execute("INSERT INTO keyed SELECT range, range % 3 FROM range(50) ON CONFLICT (k) DO UPDATE SET p = excluded.p")
    assert con.execute("SELECT bool_and(p = k % 3), count(*) FROM keyed").fetchone() == (True, 50)
    assert {p for p, _ in partitions(con, "keyed")} == {"p = 0", "p = 1", "p = 2"}
    with pytest.raises(errors.IntegrityError):
        con.execute("INSERT INTO keyed VALUES (3, 9)")
    sound(con)


def test_queries_and_changes_read_only_the_partitions_they_need(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (k INTEGER, r VARCHAR) PARTITIONED BY (r); CREATE TABLE other AS SELECT 'eu' AS r")
    con.execute("INSERT INTO t SELECT range, ['eu', 'us', 'asia', NULL][1 + range % 4] FROM range(40)")
    with only(con, tmp_path, "r = eu"):
        assert con.execute("SELECT count(*) FROM t WHERE r = 'eu'").fetchone() == (10,)
        assert con.execute("SELECT count(*) FROM t AS x WHERE x.r = ? AND k > 3", ["eu"]).fetchone() == (9,)
        assert con.execute("WITH c AS (SELECT * FROM t WHERE r = 'eu') SELECT count(*) FROM c").fetchone() == (10,)
        assert con.execute("SELECT count(*) FROM t, other WHERE t.r = 'eu'").fetchone() == (10,)
        con.execute("CREATE TABLE c AS SELECT * FROM t WHERE r = 'eu'; INSERT INTO c SELECT * FROM t WHERE r = 'eu'")
        assert con.execute("UPDATE t SET k = k + 1 WHERE r = 'eu'").rowcount == 10
        assert con.execute("DELETE FROM t WHERE r = 'eu' AND k = 5").rowcount == 1
        con.execute("OPTIMIZE t WHERE r = 'eu'")
        for text in (
            "SELECT count(*) FROM t",
            "SELECT count(*) FROM t WHERE r = 'eu' OR k = 1",
            "SELECT count(k) FROM t WHERE r = 'eu' UNION ALL FROM t SELECT sum(k)",
        ):
            if text != "SELECT count(*) FROM t":  # which the catalog answers
                with pytest.raises(errors.OperationalError):
                    con.execute(text).fetchall()
    with only(con, tmp_path, "r = us", "r = asia"):
        assert con.execute("SELECT count(*) FROM t WHERE r IN ('us', 'asia')").fetchone() == (20,)
        assert con.execute("SELECT count(*) FROM t WHERE r = 'us' UNION ALL SELECT count(*) FROM t WHERE r = 'asia'").fetchall() == [(10,), (10,)]
    with only(con, tmp_path, "r = NULL"):
        assert con.execute("SELECT count(*) FROM t WHERE r IS NULL").fetchone() == (10,)
    con.execute("CREATE VIEW v AS SELECT * FROM t")
    joined = con.execute("SELECT count(*) FROM v AS a, v AS b WHERE b.r = 'us' AND a.k = b.k").fetchone()
    assert con.execute("SELECT count(*) FROM v, t WHERE t.r = 'us' AND v.k = t.k").fetchone() == joined == (19,)
    assert con.execute("SELECT (SELECT count(*) FROM v) FROM t WHERE r = 'us' LIMIT 1").fetchone() == (39,)


@pytest.mark.parametrize(
    ("key", "partition", "condition"),
    [
        ("year(ts)", "year(ts) = 2024", "ts >= '2024-01-01' AND ts < '2025-01-01'"),
        ("year(ts)", "year(ts) = 2024", "year(ts) = 2024"),
        ("month(ts)", "month(ts) = 2024-03", "ts BETWEEN '2024-03-02' AND '2024-03-09'"),
        ("day(ts)", "day(ts) = 2024-03-05", "ts >= TIMESTAMP '2024-03-05 00:00:00' AND ts < TIMESTAMP '2024-03-06 00:00:00'"),
        ("hour(ts)", "hour(ts) = 2024-03-05-00", "ts = '2024-03-05 00:00:00'"),
        ("day(d)", "day(d) = 2024-03-05", "d = '2024-03-05'"),
        ("month(d)", "month(d) = 2024-03", "d > '2024-03-01' AND d <= '2024-03-31'"),
    ],
)
def test_ranges_rule_out_times(con: Any, tmp_path: Path, key: str, partition: str, condition: str) -> None:
    con.execute(f"CREATE TABLE t (ts TIMESTAMP, d DATE) PARTITIONED BY ({key})")
    moments = "SELECT unnest(range(TIMESTAMP '2024-02-20', TIMESTAMP '2024-04-05', INTERVAL 12 HOURS)) AS x UNION ALL SELECT TIMESTAMP '2022-05-05'"
    con.execute(f"INSERT INTO t SELECT x, x::DATE FROM ({moments})")
    wanted = con.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchone()
    assert wanted[0] > 0
    with only(con, tmp_path, partition):
        assert con.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchone() == wanted


def test_buckets_rule_out(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (k BIGINT, w VARCHAR, d DATE) PARTITIONED BY (bucket(4, k), bucket(2, w), bucket(2, d))")
    con.execute("INSERT INTO t SELECT range, 'w' || range, DATE '2024-01-01' + range::INTEGER FROM range(200) UNION ALL SELECT NULL, NULL, NULL")
    names = [p for p, _ in partitions(con)]
    assert len(names) == 17
    for column, value, text in (("k", 42, "42"), ("w", "w42", "w42"), ("d", date(2024, 2, 12), "2024-02-12")):
        n = {"k": 4, "w": 2, "d": 2}[column]
        bucket = int.from_bytes(hashlib.md5(text.encode()).digest()[8:], "little") % n  # as it is documented: it must never change
        there = [name for name in names if f"bucket({n}, {column}) = {bucket}" in name]
        with only(con, tmp_path, *there):
            assert con.execute(f"SELECT k FROM t WHERE {column} = ?", [value]).fetchall() == [(42,)]
            assert con.execute(f"DELETE FROM t WHERE {column} = ? AND k < 0", [value]).rowcount == 0
    assert con.execute("SELECT count(*) FROM t WHERE k IN (1, 5, 9) AND k > 3").fetchone() == (2,)
    assert con.execute("SELECT count(*) FROM t WHERE k IS NULL").fetchone() == (1,)


@given(some.one_of(some.integers(-(2**63), 2**63 - 1), some.text(max_size=20).filter(lambda t: "\0" not in t), some.dates()), some.integers(1, 1000))
@settings(max_examples=100)
def test_a_bucket_is_the_same_here_and_in_duckdb(value: Any, buckets: int) -> None:
    declared = {int: "BIGINT", str: "VARCHAR", date: "DATE"}[type(value)]
    here = bucket_of(value, declared, buckets)
    (there,) = DUCK.run_one(f"SELECT md5_number_lower(CAST(?::{declared} AS VARCHAR)) % {buckets}", value)
    assert here == there


class _Duck:
    def __init__(self) -> None:
        self.oracle = Oracle()

    def run_one(self, text: str, value: Any) -> Any:
        return self.oracle.duck.execute(text, [value]).fetchone()


DUCK = _Duck()


def test_time_zones_do_not_matter(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (z TIMESTAMPTZ) PARTITIONED BY (day(z), bucket(3, z))")
    text = "INSERT INTO t SELECT TIMESTAMPTZ '2024-03-05 22:00:00+00' + INTERVAL (i) HOUR FROM range(6) r(i)"
    con.execute("SET timezone = 'UTC'")
    con.execute(text)
    first = partitions(con)
    con.execute("TRUNCATE t; SET timezone = 'Asia/Tokyo'")
    con.execute(text)
    assert partitions(con) == first
    assert {p.partition(",")[0] for p, _ in first} == {"day(z) = 2024-03-05", "day(z) = 2024-03-06"}
    con.execute("ALTER TABLE t SET PARTITIONED BY (day(z)); OPTIMIZE t")
    moment = datetime(2024, 3, 6, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))  # midnight in UTC
    with only(con, tmp_path, "day(z) = 2024-03-06"):
        for condition in (
            "z >= ?",
            "z > '2024-03-05 23:59:59.999999Z' AND z <= TIMESTAMPTZ '2024-03-07T00:00:00+09:00'",
            "z IN (?, TIMESTAMPTZ '2024-03-06 01:00:00+00')",
        ):
            wanted = con.execute(f"SELECT count(*) FROM t WHERE {condition}", [moment] * condition.count("?")).fetchone()
            assert wanted[0] > 1, condition
    with pytest.raises(errors.OperationalError), only(con, tmp_path, "day(z) = 2024-03-06"):
        con.execute("SELECT count(*) FROM t WHERE z >= '2024-03-06 09:00:00'").fetchone()  # in the session's time zone, which is not known here


def test_values_that_are_odd(con: Any) -> None:
    values = "('nan'::DOUBLE), ('-inf'), ('inf'), (0.0), ('-0.0'), (NULL), (1.5), (1e300)"
    con.execute(
        f'CREATE TABLE t (f DOUBLE, "a/b=c ""é" VARCHAR) PARTITIONED BY (f, "a/b=c ""é"); INSERT INTO t SELECT f, \'/../\' || repeat(\'é=\', 300) || f FROM (VALUES {values}) v(f)'
    )
    assert len(partitions(con)) == 8
    for condition, count in (("f = 'nan'", 1), ("f > 1e300", 2), ("f = 0", 2), ("f IS NULL", 1), ("f < 0", 1), ("f >= 1.5", 4), ("f <> 0", 5)):
        assert con.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchone() == (count,), condition
    con.execute("OPTIMIZE t ZORDER BY (f)")
    assert len(partitions(con)) == 8
    moments = "VALUES ('infinity'::TIMESTAMP), ('-infinity'), ('0044-03-15 (BC)'), (NULL), ('2024-01-01'), ('2023-12-31 23:59:59.999999'), ('9999-12-31 10:00:00')"
    con.execute(f"CREATE TABLE u (ts TIMESTAMP) PARTITIONED BY (year(ts), bucket(2, ts)); INSERT INTO u {moments}")
    assert len(partitions(con, "u")) == 7
    oracle = Oracle()
    oracle.run(f"CREATE TABLE u AS SELECT * FROM ({moments}) m(ts)")
    conditions = ["ts > '2020-01-01'", "ts IS NULL", "ts = 'infinity'", "ts < '0001-01-01'", "year(ts) IN (2024, 1)", "2024 > year(ts)"]
    for condition in (*conditions, *(f"year(ts) {op} {y}" for op in ("=", "<", "<=", ">", ">=") for y in (1, 2023, 2024, 9998))):
        text = f"SELECT * FROM u WHERE {condition}"
        assert multiset(con.execute(text).fetchall()) == multiset(oracle.duck.execute(text).fetchall()), condition
    oracle.close()
    sound(con)


def test_optimize_stays_within_a_partition(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER, p INTEGER) PARTITIONED BY (p)")
    for i in range(6):
        con.execute("INSERT INTO t SELECT range + ?, range % 3 FROM range(30)", [100 * i])
    con.execute("INSERT INTO t VALUES (1, 0), (2, 5)")
    con.execute("INSERT INTO t VALUES (3, 0), (4, NULL)")
    con.execute("DELETE FROM t WHERE k % 10 = 3")
    before = multiset(con.execute("SELECT * FROM t").fetchall())
    con.execute("OPTIMIZE t")
    assert {p for p, _ in partitions(con)} == {"p = 0", "p = 1", "p = 2", "p = 5", "p = NULL"}
    con.execute("SET rewrite_percent = 1; OPTIMIZE t")  # what was inline is in files by now, which are joined with the others
    assert [p for p, _ in partitions(con)] == ["p = 0", "p = 1", "p = 2", "p = 5", "p = NULL"]
    assert multiset(con.execute("SELECT * FROM t").fetchall()) == before
    assert con.execute("OPTIMIZE t").fetchone()[0] == 0
    con.execute("SET target_file_rows = 20; OPTIMIZE t ZORDER BY (k)")
    assert multiset(con.execute("SELECT * FROM t").fetchall()) == before
    assert len(partitions(con)) == 3 * 3 + 2
    sound(con)


def test_upkeep_divides_what_goes_to_few_partitions(con: Any) -> None:
    con.execute("SET upkeep = on; SET flush_fragments = 5; CREATE TABLE t (k INTEGER, p INTEGER) PARTITIONED BY (p)")
    for i in range(12):
        con.execute("INSERT INTO t VALUES (?, 0), (?, 1), (?, 2)", [i, i, i])
    assert [p for p, _ in partitions(con)] == ["p = 0", "p = 0", "p = 1", "p = 1", "p = 2", "p = 2"]
    con.execute("SET upkeep_files = 6; INSERT INTO t SELECT range, 3 FROM range(10)")
    assert [p for p, _ in partitions(con)] == ["p = 0", "p = 1", "p = 2", "p = 3"]
    con.execute("SET flush_fragments = 11")
    for i in range(12):
        con.execute("INSERT INTO t SELECT range, range FROM range(?, ?)", [4 * i, 4 * i + 4])
    assert [row for row in partitions(con) if row[0] is None] == [(None, 48)]  # of many it makes one file, that OPTIMIZE divides
    con.execute("OPTIMIZE t")
    assert {p for p, _ in partitions(con)} == {f"p = {p}" for p in range(48)}
    assert con.execute("SELECT sum(k), count(*) FROM t").fetchone() == (3 * 66 + 45 + 1128, 36 + 10 + 48)
    sound(con)


def test_another_partitioning_leaves_files_alone_until_they_are_optimized(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (k INTEGER, p INTEGER); INSERT INTO t SELECT range, range % 3 FROM range(30)")
    con.execute("ALTER TABLE t SET PARTITIONED BY (p)")
    assert partitions(con) == [(None, 30)]
    con.execute("INSERT INTO t SELECT range, range % 3 FROM range(30)")
    assert con.execute("SELECT count(*) FROM t WHERE p = 1").fetchone() == (20,)
    con.execute("OPTIMIZE t")
    con.execute("OPTIMIZE t")
    assert partitions(con) == [("p = 0", 20), ("p = 1", 20), ("p = 2", 20)]
    con.execute("ALTER TABLE t RENAME p TO q; ALTER TABLE t SET PARTITIONED BY (bucket(2, k), q)")
    assert partitions(con) == [("q = 0", 20), ("q = 1", 20), ("q = 2", 20)]
    con.execute("OPTIMIZE t")
    assert len(partitions(con)) == 6
    con.execute("ALTER TABLE t RESET PARTITIONED BY; ALTER TABLE t DROP q; OPTIMIZE t")
    assert partitions(con) == [(None, 60)]
    sound(con)


def test_a_column_that_divides_stays(con: Any) -> None:
    con.execute(
        "CREATE TABLE t (k INTEGER, p INTEGER, v INTEGER) PARTITIONED BY (p, bucket(3, k)); INSERT INTO t SELECT range, range % 2, 0 FROM range(12)"
    )
    for change in ("DROP p", "DROP COLUMN K", "ALTER p TYPE BIGINT", "ALTER k TYPE VARCHAR"):
        with pytest.raises(errors.ProgrammingError, match="is partitioned by") as caught:
            con.execute(f"ALTER TABLE t {change}")
        assert "RESET PARTITIONED BY" in caught.value.hint
    con.execute("ALTER TABLE t RENAME p TO part; ALTER TABLE t ADD p INTEGER DEFAULT 5; ALTER TABLE t DROP v; ALTER TABLE t ALTER p TYPE VARCHAR")
    con.execute("INSERT INTO t SELECT range, 1, 'x' FROM range(12, 24)")
    assert con.execute("SELECT count(*) FROM t WHERE part = 1").fetchone() == (18,)
    assert {p.partition(",")[0] for p, _ in partitions(con)} == {"part = 0", "part = 1"}
    con.execute("ALTER TABLE t RESET PARTITIONED BY; ALTER TABLE t DROP part")
    sound(con)


def test_time_travel_and_restore(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER, p INTEGER) PARTITIONED BY (p); INSERT INTO t SELECT range, range % 3 FROM range(30)")
    version = con.last_commit.snapshot_id
    con.execute("DELETE FROM t WHERE p = 1; ALTER TABLE t SET PARTITIONED BY (bucket(2, k)); INSERT INTO t SELECT range, 9 FROM range(20)")
    assert con.execute(f"SELECT count(*) FROM t AT (VERSION => {version}) WHERE p = 1").fetchone() == (10,)
    assert con.execute(f"SELECT (SELECT count(*) FROM t AT (VERSION => {version})), count(*) FROM t WHERE p = 9").fetchone() == (30, 20)
    con.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert partitions(con) == [("p = 0", 10), ("p = 1", 10), ("p = 2", 10)]
    con.execute("INSERT INTO t SELECT range, 7 FROM range(20)")
    assert ("p = 7", 20) in partitions(con)
    sound(con)


def test_check_lake_looks_at_them(con: Any, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (k INTEGER, p INTEGER) PARTITIONED BY (p, bucket(2, k)); INSERT INTO t SELECT range, range % 2 FROM range(20)")
    con.execute("DELETE FROM t WHERE k = 4; ALTER TABLE t SET PARTITIONED BY (bucket(5, k)); INSERT INTO t SELECT range, NULL FROM range(20)")
    assert con.execute("CHECK LAKE").fetchall() == []
    con.close()
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog, catalog:
        changed = catalog.execute("UPDATE fragment_partitions SET value = '4' WHERE position = 0 AND buckets = 5 AND value = '1'")
        assert changed.rowcount == 1
    with lakelite.connect(tmp_path / "lake") as again:
        ((severity, _, finding, _),) = again.execute("CHECK LAKE").fetchall()
        assert (severity, finding.partition(" of its")[2][-46:]) == ("error", "are not of the partition that it is said to hold"[-46:])


def test_many_partitions(con: Any) -> None:
    con.execute("CREATE TABLE t (k INTEGER, p INTEGER) PARTITIONED BY (p); INSERT INTO t SELECT range, range % 250 FROM range(2000)")
    found = partitions(con)
    assert len(found) == 250
    assert {rows for _, rows in found} == {8}
    assert con.execute("SELECT sum(k), count(DISTINCT p) FROM t").fetchone() == (1_999_000, 250)
    with pytest.raises(lakelite.Error):
        con.execute("INSERT INTO t SELECT range, CASE WHEN range = 1999 THEN error('no') ELSE range END FROM range(2000)")
    con.execute("BEGIN; INSERT INTO t SELECT range, range FROM range(150); ROLLBACK")
    assert len(partitions(con)) == 250
    assert con.execute("CHECK LAKE").fetchall() == []  # no file is left
