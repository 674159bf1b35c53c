"""OPTIMIZE: which fragments it joins, what it keeps, and what it says. (Against other transactions: tests/interleave/test_compaction.py.)"""

from __future__ import annotations

from typing import Any

import pytest
from oracle import multiset
from racing import flush, meeting

import lakelite
from lakelite import errors

_ZEROS = (0,) * 8


def optimize(con: Any, rest: str = "") -> dict[str, int]:
    found = con.execute(f"OPTIMIZE t {rest}")
    names = [d[0] for d in found.description]
    (row,) = found.fetchall()
    return dict(zip(names, row, strict=True))


def fragments(con: Any) -> list[tuple[Any, ...]]:
    """Storage, rows and deleted rows of each, by id."""
    return con.execute("SELECT storage, row_count, deleted_count FROM lake.fragments WHERE table_name = 't' ORDER BY fragment_id").fetchall()


def content(con: Any) -> Any:
    return multiset(con.execute("SELECT * FROM t").fetchall())


def is_sound(con: Any) -> bool:
    found = con.execute("CHECK LAKE").fetchall()
    assert [f for f in found if f[0] != "info"] == []
    return True


@pytest.fixture
def con(lake: Any) -> Any:
    lake.execute("SET inline_rows = 10; CREATE TABLE t (k INTEGER, v VARCHAR)")
    return lake


def test_small_inline_and_worn_fragments_become_one_file(con: Any) -> None:
    con.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    con.execute("INSERT INTO t SELECT range, 'w' || range FROM range(10, 1010)")
    con.execute("INSERT INTO t VALUES (3, 'c')")
    con.execute("DELETE FROM t WHERE k % 2 = 0")
    before = content(con)
    did = optimize(con)
    assert (did["bins"], did["files_removed"], did["files_added"], did["rows"], did["deleted_rows_purged"]) == (1, 3, 1, 502, 501)
    assert did["bytes_before"] > did["bytes_after"] > 0
    assert fragments(con) == [("parquet", 502, 0)]
    assert content(con) == before
    assert is_sound(con)


def test_a_plain_one_keeps_the_order_of_rows(con: Any) -> None:
    for start in (500, 0, 900):
        con.execute("INSERT INTO t SELECT range, NULL FROM range(?, ?)", [start, start + 50])
    before = con.execute("SELECT k FROM t").fetchall()
    optimize(con)
    assert con.execute("SELECT k FROM t").fetchall() == before


def test_nothing_to_do_is_a_row_of_zeros_and_no_snapshot(con: Any) -> None:
    assert tuple(optimize(con).values()) == _ZEROS
    con.execute("INSERT INTO t SELECT range, NULL FROM range(100)")
    snapshots = con.execute("SELECT count(*) FROM lake.snapshots").fetchall()
    assert tuple(optimize(con).values()) == _ZEROS
    assert con.execute("SELECT count(*) FROM lake.snapshots").fetchall() == snapshots


def test_a_lone_file_with_many_deletions_is_written_anew_and_one_with_few_is_not(con: Any) -> None:
    con.execute("INSERT INTO t SELECT range, NULL FROM range(100)")
    con.execute("DELETE FROM t WHERE k < 19")
    assert optimize(con)["bins"] == 0
    con.execute("DELETE FROM t WHERE k = 19")
    assert optimize(con)["deleted_rows_purged"] == 20
    assert fragments(con) == [("parquet", 80, 0)]


def test_bins_are_cut_at_the_target_and_large_files_are_left_alone(con: Any) -> None:
    con.execute("SET target_file_rows = 100")
    for start, count in ((0, 40), (100, 80), (200, 40), (300, 40), (400, 30)):
        con.execute("INSERT INTO t SELECT range, NULL FROM range(?, ?)", [start, start + count])
    before = content(con)
    did = optimize(con)
    assert (did["bins"], did["files_removed"], did["files_added"], did["rows"]) == (2, 4, 2, 150)
    assert fragments(con) == [("parquet", 80, 0), ("parquet", 80, 0), ("parquet", 70, 0)]
    assert content(con) == before
    assert optimize(con)["bins"] == 0


def test_where_chooses_fragments_by_their_statistics(con: Any) -> None:
    for start in (0, 100, 200, 300):
        con.execute("INSERT INTO t SELECT range, NULL FROM range(?, ?)", [start, start + 20])
    found = con.execute("OPTIMIZE t WHERE k BETWEEN ? AND 210", [110]).fetchone()
    assert found[:5] == (1, 0, 2, 1, 40)
    assert fragments(con) == [("parquet", 20, 0), ("parquet", 20, 0), ("parquet", 40, 0)]
    assert optimize(con, "WHERE k > 1000")["bins"] == 0


@pytest.mark.parametrize("where", ["", "WHERE k >= 0 "])
def test_zorder_brings_near_rows_together(con: Any, where: str) -> None:
    con.execute("CREATE OR REPLACE TABLE t AS SELECT (range * 7919) % 4096 // 64 AS k, (range * 7919) % 64 AS v FROM range(4096)")
    before = content(con)
    did = optimize(con, f"{where}ZORDER BY (k, v)")
    assert (did["bins"], did["rows"]) == (1, 4096)
    assert content(con) == before
    first = con.execute("SELECT max(k), max(v), min(k), min(v) FROM (SELECT * FROM t LIMIT 256)").fetchone()
    assert first == (15, 15, 0, 0)
    assert is_sound(con)
    assert con.execute("SELECT bool_or(ordered) FROM lake.compositions").fetchone() == (False,)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("DOUBLE", "'nan', -1.5, NULL, 'inf', -0.0, 2"),
        ("VARCHAR", "'b', '', NULL, 'ä', 'a long text that differs late 1', 'a long text that differs late 0'"),
        ("TIMESTAMP WITH TIME ZONE", "'2020-01-01', NULL, 'infinity', '1900-05-05', '2020-01-02', '2020-01-01'"),
        ("UUID", "uuid(), NULL, uuid(), uuid(), uuid(), uuid()"),
        ("DECIMAL(38, 5)", "1.5, NULL, -99999999999999999999.5, 0, 7, 2"),
        ("ENUM('z', 'a')", "'a', 'z', NULL, 'a', 'z', 'z'"),
        ("INTERVAL", "INTERVAL 1 DAY, NULL, INTERVAL 25 HOUR, INTERVAL 1 MONTH, INTERVAL 0 DAY, INTERVAL 2 DAY"),
        ("BLOB", "'a'::BLOB, NULL, ''::BLOB, '\\xFF'::BLOB, 'b'::BLOB, 'c'::BLOB"),
        ("HUGEINT", "99999999999999999999999999999999999999, NULL, -5, 0, 1, 2"),
        ("BOOLEAN", "true, NULL, false, true, false, NULL"),
        ("STRUCT(x INTEGER, y VARCHAR)", "{'x':2}, {'x':1}, NULL, {'x':NULL}, {'x':7}, {'x':1}"),
        ("INTEGER[]", "[2], [], NULL, [NULL], [7], [1]"),
    ],
)
def test_zorder_takes_any_type_that_has_an_order(con: Any, type: str, values: str) -> None:
    rows = ", ".join(f"({v}, {i})" for i, v in enumerate(values.split(", ")))
    con.execute(f"CREATE OR REPLACE TABLE t (a {type}, b INTEGER); INSERT INTO t VALUES {rows}; INSERT INTO t VALUES {rows}")
    before = content(con)
    assert optimize(con, "ZORDER BY (a)")["rows"] == 12
    assert content(con) == before
    assert repr(con.execute("SELECT a FROM t").fetchall()) == repr(con.execute("SELECT a FROM t ORDER BY a NULLS FIRST").fetchall())
    assert is_sound(con)


def test_a_zorder_is_one_order_over_all_its_outputs(con: Any) -> None:
    con.execute("SET target_file_rows = 100")
    for start in (0, 1, 2):
        con.execute("INSERT INTO t SELECT range * 3 + ?, 'x' FROM range(90)", [start])
    con.execute("DELETE FROM t WHERE k % 10 = 0")
    before = content(con)
    did = optimize(con, "ZORDER BY (k)")
    assert (did["bins"], did["files_removed"], did["files_added"], did["rows"], did["deleted_rows_purged"]) == (1, 3, 3, 243, 27)
    assert fragments(con) == [("parquet", 81, 0)] * 3
    assert con.execute("SELECT k FROM t").fetchall() == [(k,) for k in range(270) if k % 10]
    assert content(con) == before
    assert con.execute("SELECT count(*) FROM lake.compositions").fetchone() == (9,), "each source has rows in each output"
    assert is_sound(con)
    con.execute("DELETE FROM t WHERE k BETWEEN 20 AND 60")
    optimize(con, "ZORDER BY (v, k)")
    assert con.execute("SELECT k FROM t ORDER BY k").fetchall() == [(k,) for k in range(270) if k % 10 and not 20 <= k <= 60]
    assert is_sound(con)


def test_row_ids_stay(con: Any) -> None:
    con.execute("INSERT INTO t SELECT range, NULL FROM range(30)")
    con.execute("UPDATE t SET v = 'new' WHERE k < 5")
    con.execute("DELETE FROM t WHERE k > 20")
    optimize(con, "ZORDER BY (v, k)")
    version = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0]
    con.execute("UPDATE t SET v = 'newer' WHERE k = 3")
    assert con.execute(f"SELECT count(*) FROM table_changes('t', {version}, {version + 1})").fetchone()[0] == 2
    optimize(con)
    assert is_sound(con)


def test_time_travel_and_restore_reach_behind_it(con: Any) -> None:
    con.execute("INSERT INTO t SELECT range, NULL FROM range(30)")
    con.execute("DELETE FROM t WHERE k < 10")
    version = con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0]
    before = content(con)
    optimize(con)
    con.execute("DELETE FROM t")
    assert multiset(con.execute(f"SELECT * FROM t AT (VERSION => {version})").fetchall()) == before
    con.execute(f"RESTORE TABLE t TO VERSION AS OF {version}")
    assert content(con) == before
    assert is_sound(con)


def test_it_stands_alone(con: Any) -> None:
    con.execute("BEGIN; INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(errors.ProgrammingError, match="OPTIMIZE cannot run inside a transaction"):
        con.execute("OPTIMIZE t")
    con.execute("COMMIT")
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_not_on_a_read_only_connection(con: Any, tmp_path: Any) -> None:
    with lakelite.connect(tmp_path / "lake", read_only=True) as reader, pytest.raises(errors.OperationalError, match="read-only"):
        reader.execute("OPTIMIZE t")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("OPTIMIZE nothing", errors.ProgrammingError, "does not exist"),
        ("OPTIMIZE t ZORDER BY (kk)", errors.ProgrammingError, 'no column "kk"'),
        ("OPTIMIZE t ZORDER BY (k, K)", errors.ProgrammingError, "twice"),
        ("OPTIMIZE t ZORDER BY ()", errors.ProgrammingError, "expected the name of a column"),
        ("OPTIMIZE t ZORDER (k)", errors.ProgrammingError, "syntax error"),
        ("OPTIMIZE t WHERE", errors.ProgrammingError, "expected an expression"),
        ("OPTIMIZE t WHERE x = 1", errors.ProgrammingError, "x"),
        ("OPTIMIZE t WHERE k IN (SELECT 1)", errors.NotSupportedError, "conditions on the row's own columns"),
        ("OPTIMIZE", errors.ProgrammingError, "the name of a table"),
        ("OPTIMIZE t FULL", errors.ProgrammingError, "FULL"),
    ],
)
def test_errors_have_their_place(con: Any, text: str, error: type[errors.Error], words: str) -> None:
    with pytest.raises(error) as raised:
        con.execute(text)
    assert words in str(raised.value)
    assert raised.value.position is not None


def test_settings_have_bounds(con: Any) -> None:
    for wrong in ("target_file_bytes = 0", "target_file_rows = 0", "rewrite_percent = 101", "rewrite_percent = 0"):
        with pytest.raises(errors.DataError):
            con.execute(f"SET {wrong}")


def test_history_names_it_with_the_message(con: Any) -> None:
    con.execute("INSERT INTO t VALUES (1, 'a'); SET commit_message = 'nightly'")
    optimize(con)
    assert con.execute("SELECT operation, message, rows_added, rows_removed FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 1").fetchone() == (
        "OPTIMIZE",
        "nightly",
        0,
        0,
    )


def test_a_bin_whose_rows_a_flush_took_is_dropped_with_a_note(con: Any, tmp_path: Any) -> None:
    con.execute("SET target_file_rows = 100; INSERT INTO t SELECT range, 'x' FROM range(40)")
    con.execute("INSERT INTO t SELECT range, 'x' FROM range(40)")
    con.execute("INSERT INTO t SELECT range, 'y' FROM range(30)")
    con.execute("INSERT INTO t SELECT 1, 'inline' FROM range(6)")
    before = content(con)
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        with meeting(lambda: flush(other, "t")):
            done = con.execute("OPTIMIZE t")
        (row,) = done.fetchall()
        assert row[:2] == (1, 1)
        assert any("1 of 2 bins were dropped" in str(text) for _, text in done.messages)
        assert content(con) == before
        assert is_sound(con)


def test_a_dropped_table_is_an_error_that_says_so(con: Any, tmp_path: Any) -> None:
    con.execute("INSERT INTO t VALUES (1, 'a')")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        with meeting(lambda: other.execute("DROP TABLE t")), pytest.raises(errors.ProgrammingError, match="was dropped"):
            con.execute("OPTIMIZE t")
        assert is_sound(other)


@pytest.mark.parametrize(("rest", "steps"), [("", [(78, 156), (156, 156)]), ("ZORDER BY (k)", [(78, 156), (156, 156)])])
def test_it_tells_how_far_it_is(con: Any, rest: str, steps: list[tuple[int, int]]) -> None:
    con.execute("SET target_file_rows = 99")
    for _ in range(4):
        con.execute("INSERT INTO t SELECT range, NULL FROM range(40)")
    con.execute("DELETE FROM t WHERE k = 0")
    told: list[tuple[int, int]] = []
    con.on_progress = lambda done, total: told.append((done, total))
    optimize(con, rest)
    assert told == steps
    con.on_progress = None
    optimize(con, "ZORDER BY (v)")
    assert told == steps


def test_an_error_of_who_is_told_undoes_it(con: Any) -> None:
    con.execute("INSERT INTO t VALUES (1, 'a')")

    def fail(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    con.on_progress = fail
    with pytest.raises(RuntimeError, match="1 of 1"):
        con.execute("OPTIMIZE t")
    con.on_progress = None
    assert fragments(con) == [("inline", 1, 0)]
    assert is_sound(con)
