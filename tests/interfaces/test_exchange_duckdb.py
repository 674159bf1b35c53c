"""con.duckdb(): a DuckDB connection with the tables of one snapshot, for other libraries."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from exchanging import pinned

import lakelite


@pytest.fixture
def con(lake: Any) -> Any:
    lake.execute("CREATE SCHEMA s; CREATE TABLE t AS SELECT range AS i, 's' || range AS s FROM range(5000)")
    lake.execute("CREATE TABLE s.few (d DECIMAL(9, 2) NOT NULL, e ENUM('a', 'b'), at_ TIMETZ); INSERT INTO s.few VALUES (1.5, 'b', '10:00:00+02')")
    lake.execute("DELETE FROM t WHERE i % 2 = 0")
    return lake


def test_all_tables_of_all_schemas_with_their_types(con: Any) -> None:
    view = con.duckdb()
    assert isinstance(view, duckdb.DuckDBPyConnection)
    assert view.execute(
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND database_name = 'memory' ORDER BY ALL"
    ).fetchall() == [
        ("main", "t"),
        ("s", "few"),
    ]
    for table in ("t", "s.few"):
        assert view.sql(f"FROM {table}").to_arrow_table() == con.execute(f"FROM {table}").to_arrow()
        assert [str(kind) for kind in view.table(table).types] == [str(kind) for _, kind, *_ in con.execute(f"FROM {table}").description]
    assert view.execute("SELECT lake_snapshot_id()").fetchall() == [(con.last_commit.snapshot_id,)]
    assert view.sql("FROM t JOIN s.few ON i = d + 1.5").aggregate("count(*)").fetchall() == [(1,)]
    view.close()


def test_it_shows_one_snapshot_while_others_write_and_vacuum(con: Any, tmp_path: Path) -> None:
    view = con.duckdb()
    con.execute("UPDATE t SET i = -i; DROP TABLE s.few; CREATE TABLE new AS SELECT 1 AS a; INSERT OVERWRITE t SELECT 0, ''")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        for _ in range(2):
            other.execute("VACUUM RETAIN 0 HOURS")
    assert view.execute("SELECT count(*), sum(i) FROM t").fetchone() == (2500, 6250000)
    assert view.execute("SELECT count(*) FROM s.few").fetchone() == (1,)
    with pytest.raises(duckdb.CatalogException):
        view.execute("FROM new")
    assert con.execute("FROM t").fetchall() == [(0, "")]
    view.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine AS SELECT 1 AS a",
        "CREATE TABLE memory.s.mine (a INTEGER)",
        "CREATE OR REPLACE VIEW t AS SELECT 1 AS one",
        "DROP VIEW t",
        "DROP SCHEMA s CASCADE",
        "ALTER VIEW t RENAME TO u",
        "CREATE MACRO f() AS 1",
        "BEGIN; CREATE SEQUENCE one",
    ],
)
def test_it_is_read_only(con: Any, statement: str) -> None:
    view = con.duckdb()
    with pytest.raises(duckdb.InvalidInputException, match="read-only"):
        view.execute(statement)
    view.close()


@pytest.mark.parametrize("statement", ["DELETE FROM t", "INSERT INTO t VALUES (1, '')", "UPDATE s.few SET d = 0"])
def test_its_tables_are_views_that_cannot_be_changed(con: Any, statement: str) -> None:
    view = con.duckdb()
    with pytest.raises((duckdb.BinderException, duckdb.CatalogException)):
        view.execute(statement)
    view.close()


def test_what_is_made_in_it_is_temporary(con: Any) -> None:
    view = con.duckdb()
    view.execute(
        "CREATE TEMP TABLE mine AS SELECT i FROM t LIMIT 3; INSERT INTO mine VALUES (5); CREATE TEMP VIEW once AS SELECT count(*) AS n FROM t"
    )
    assert view.execute("SELECT count(*), n FROM mine, once GROUP BY n").fetchone() == (4, 2500)
    frame = pa.table({"x": [1]})
    assert view.execute("FROM frame").fetchall() == [(1,)]
    assert frame.num_rows == 1
    other = con.duckdb()
    for another in (other, con):
        with pytest.raises((duckdb.CatalogException, lakelite.ProgrammingError)):
            another.execute("FROM mine")
    other.close()
    view.close()


@pytest.mark.parametrize("end", ["closed", "collected", "connection"])
def test_its_snapshot_is_pinned_until_the_end(con: Any, tmp_path: Path, end: str) -> None:
    place = tmp_path / "lake"
    snapshot = con.last_commit.snapshot_id
    assert pinned(place) is None
    view, second = con.duckdb(), con.duckdb()
    con.execute("INSERT INTO t VALUES (1, '')")
    second.close()
    assert pinned(place) == snapshot
    if end == "closed":
        view.close()
    elif end == "collected":
        del view
        gc.collect()
    else:
        con.close()
        with pytest.raises(duckdb.ConnectionException):
            view.execute("FROM t")
        assert not list((place / "leases").iterdir())
        assert not list((place / "tmp").iterdir())
        return
    assert pinned(place) is None


def test_in_a_transaction_it_shows_the_base(tmp_path: Path) -> None:
    with lakelite.connect(tmp_path / "lake") as con, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute("CREATE TABLE t AS SELECT 1 AS i")
        con.execute("INSERT INTO t VALUES (2)")
        other.execute("INSERT INTO t VALUES (3)")
        view = con.duckdb()
        assert view.execute("FROM t").fetchall() == [(1,)]
        con.commit()
        assert con.last_commit.attempts == 1
        assert view.execute("FROM t").fetchall() == [(1,)]
        after = con.duckdb()
        assert after.execute("FROM t ORDER BY i").fetchall() == [(1,), (2,), (3,)]


def test_it_can_spill(con: Any) -> None:
    view = con.duckdb()
    view.execute("SET memory_limit = '60MB'")
    view.execute("CREATE TEMP TABLE big AS SELECT range AS i, random() AS r FROM range(1500000)")
    assert view.execute("SELECT count(*) FROM (FROM big ORDER BY r OFFSET 1)").fetchone() == (1499999,)
    view.close()


def test_an_empty_lake(lake: Any) -> None:
    view = lake.duckdb()
    assert view.execute("SHOW ALL TABLES").fetchall() == []
    view.close()
