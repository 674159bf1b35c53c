"""What a replay cannot repeat exactly is a conflict; what it can, is not. And nothing after the commit point is an error."""

from __future__ import annotations

import duckdb
import pytest
from racing import meeting

import lakelite
from lakelite import steps
from lakelite.errors import OperationalError, ProgrammingError, TransactionConflict
from lakelite.transaction import reconcile


@pytest.fixture
def pair(tmp_path):
    """Two connections to a lake with t(a) = 1, 2 and o(a), empty; the first one for explicit transactions."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as mine, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        mine.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); CREATE TABLE o (a INTEGER)")
        yield mine, other


def rows(con, table="t"):
    return sorted(con.execute(f"FROM {table}").fetchall())


def test_rows_drawn_at_random_and_shown_are_not_drawn_again(pair):
    mine, other = pair
    mine.execute("BEGIN; UPDATE t SET a = (random() * 1000)::INTEGER")
    shown = rows(mine)
    other.execute("INSERT INTO t VALUES (-3)")
    mine.execute("COMMIT")
    found = rows(mine)
    assert len(found) == 3
    assert set(shown) <= set(found)
    assert (-3,) not in found


def test_rows_drawn_at_random_and_shown_are_a_conflict_where_the_statement_has_to_run_again(pair):
    mine, other = pair
    mine.execute("BEGIN; UPDATE t SET a = (random() * 1000)::INTEGER + (SELECT count(*) FROM o); SELECT * FROM t")
    other.execute("INSERT INTO o VALUES (3)")
    with pytest.raises(TransactionConflict):
        mine.execute("COMMIT")
    assert rows(mine) == [(1,), (2,)]


@pytest.mark.parametrize(("statement", "table"), [("CREATE TABLE x AS SELECT * FROM '{f}'", "x"), ("INSERT OVERWRITE o SELECT * FROM '{f}'", "o")])
def test_a_file_is_not_read_a_second_time(pair, tmp_path, statement, table):
    mine, other = pair
    (tmp_path / "f.csv").write_text("a\n1\n")
    for runs_again in (False, True):
        mine.execute("BEGIN; DELETE FROM t WHERE a = 2" + (" AND a > (SELECT min(a) FROM t)" if runs_again else ""))
        mine.execute(statement.format(f=tmp_path / "f.csv"))
        (tmp_path / "f.csv").write_text("a\n2\n")
        other.execute("INSERT INTO t VALUES (3)")
        if not runs_again:
            mine.execute("COMMIT")
            assert rows(mine, table) == [(1,)]
            mine.execute("DROP TABLE IF EXISTS x")
            continue
        with pytest.raises(TransactionConflict) as raised:
            mine.execute("COMMIT")
        assert raised.value.conflicts[0].kind == "external data"


def test_a_table_of_ones_own_does_not_mind_other_tables(pair, tmp_path):
    mine, other = pair
    (tmp_path / "f.csv").write_text("a\n1\n")
    mine.execute(f"BEGIN; CREATE TABLE x (a INTEGER); COPY x FROM '{tmp_path / 'f.csv'}'")
    (tmp_path / "f.csv").write_text("a\n2\n")
    other.execute("CREATE TABLE y (a INTEGER)")
    mine.execute("COMMIT")
    assert rows(mine, "x") == [(1,)]


def test_rows_inserted_into_a_new_table_survive_a_replay(pair):
    mine, other = pair
    mine.execute("BEGIN; CREATE TABLE x (a INTEGER); INSERT INTO x VALUES (7); DELETE FROM t WHERE a = 1")
    other.execute("INSERT INTO t VALUES (1)")
    mine.execute("COMMIT")
    assert rows(mine, "x") == [(7,)]
    assert rows(mine) == [(2,)]


def test_a_failed_statement_leaves_the_files_that_a_replay_needs(pair):
    mine, other = pair
    mine.execute("BEGIN; INSERT INTO t SELECT range + 10 FROM range(5000); UPDATE t SET a = a + 1")
    with pytest.raises(ProgrammingError):
        mine.execute("INSERT INTO t VALUES (1, 2, 3)")
    other.execute("INSERT INTO t VALUES (5)")
    mine.execute("COMMIT")
    assert rows(mine)[:3] == [(2,), (3,), (6,)]
    assert len(rows(mine)) == 5003


def test_time_travel_stays_within_the_base(pair):
    mine, other = pair
    mine.execute("BEGIN")
    newest = mine.execute("SELECT count(*) FROM t AT (TIMESTAMP => '2999-01-01')").fetchall()
    other.execute("INSERT INTO t VALUES (3)")
    assert mine.execute("SELECT count(*) FROM t AT (TIMESTAMP => '2999-01-01')").fetchall() == newest == [(2,)]
    with pytest.raises(ProgrammingError, match="no version 4"):
        mine.execute("SELECT count(*) FROM t AT (VERSION => 4)")


def test_a_moment_sees_no_table(pair):
    mine, _ = pair
    with pytest.raises(ProgrammingError):
        mine.execute("SELECT * FROM t AT (VERSION => (SELECT max(a) FROM t))")


def test_many_versions_in_one_statement(pair):
    mine, _ = pair
    for _ in range(70):
        mine.execute("UPDATE t SET a = a + 1")
    newest = mine.last_commit.snapshot_id
    parts = " UNION ALL ".join(f"SELECT min(a) FROM t AT (VERSION => {v})" for v in range(newest - 69, newest + 1))
    assert sorted(mine.execute(parts).fetchall()) == [(i,) for i in range(2, 72)]
    assert mine.execute(f"SELECT count(*) FROM t AT (VERSION => 2) JOIN t AT (VERSION => {newest}) x ON true").fetchall() == [(4,)]


@pytest.mark.parametrize("statement", ["DROP TABLE IF EXISTS t", "CREATE OR REPLACE TABLE t (z DOUBLE)", "TRUNCATE t", "DELETE FROM t"])
def test_autocommit_that_names_no_lost_column_runs_on_the_head(pair, statement, monkeypatch):
    mine, other = pair
    before_lock(monkeypatch, lambda: other.execute("CREATE OR REPLACE TABLE t (b VARCHAR)"))
    mine.execute(statement)
    assert other.last_commit is not None
    assert mine.last_commit.snapshot_id == other.last_commit.snapshot_id + 1


def test_an_error_after_the_commit_point_is_a_warning(pair, monkeypatch):
    mine, other = pair

    def fails(*_):
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    monkeypatch.setattr(mine._session.lake.engine, "renumber", fails)
    cursor = mine.execute("INSERT INTO t VALUES (9)")
    assert any("cache" in text for _, text in cursor.messages)
    assert mine.last_commit is not None
    assert rows(other) == [(1,), (2,), (9,)]


def test_history_that_has_expired_is_no_conflict_in_words_only(pair, monkeypatch):
    mine, other = pair
    mine.execute("BEGIN; DELETE FROM t WHERE a = 1")
    other.execute("INSERT INTO t VALUES (3)")
    monkeypatch.setattr(reconcile, "_winners", lambda *_: [])
    with pytest.raises(OperationalError, match="expired"):
        mine.execute("COMMIT")


def before_lock(monkeypatch, act):
    """Runs `act` once, when the next commit is about to take its lock."""
    from lakelite import steps

    waiting = [act]

    def hook(step):
        if step == "sync_directory" and waiting:
            waiting.pop()()

    monkeypatch.setattr(steps, "hook", hook)


def test_a_conflict_names_the_winner_and_its_rows(tmp_path):
    with lakelite.connect(tmp_path / "lake", autocommit=True, author="bob") as mine, lakelite.connect(tmp_path / "lake", author="ann") as other:
        mine.execute("CREATE TABLE t AS SELECT range AS id, 0 AS v FROM range(100)")
        mine.execute("BEGIN; SELECT * FROM t; DELETE FROM t WHERE id = 3")
        other.execute("UPDATE t SET v = 1 WHERE id IN (5, 6)")
        other.commit()
        with pytest.raises(TransactionConflict) as raised:
            mine.execute("COMMIT")
        (conflict,) = raised.value.conflicts
        assert (raised.value.sqlstate, conflict.kind, conflict.table, conflict.winner_snapshot_id) == ("40001", "read changed", "t", 2)
        assert (conflict.winner_author, conflict.rows, conflict.keys) == ("ann", 2, ("row id 6", "row id 7"))
        assert "UPDATE t SET v = 1" in str(raised.value)
        assert "ann" in str(raised.value)
        assert conflict.statement == "SELECT * FROM t"
        assert conflict.what_to_do


@pytest.mark.parametrize(
    ("winner", "attempts"),
    [("UPDATE t SET a = 9 WHERE a = 2", 1), ("INSERT INTO t VALUES (5), (NULL)", 1), ("UPDATE t SET a = 1 WHERE a = 2", 2), ("DELETE FROM t", 2)],
)
@pytest.mark.parametrize(
    "mine", ["INSERT INTO o SELECT a FROM t WHERE a = 1", "INSERT INTO o SELECT x.a FROM t x, o RIGHT JOIN t y ON true WHERE x.a = 1"]
)
def test_a_subquery_whose_rows_nobody_touched_does_not_run_again(pair, mine, winner, attempts):
    mine_, other = pair
    is_known = "RIGHT" not in mine
    with meeting(lambda: other.execute(winner)):
        mine_.execute(mine)
    assert mine_.last_commit.attempts == (attempts if is_known else 2)
    if is_known:
        assert rows(mine_, "o") == {"UPDATE t SET a = 1 WHERE a = 2": [(1,), (1,)], "DELETE FROM t": []}.get(winner, [(1,)])


def test_a_query_that_was_shown_is_not_compared_where_nobody_touched_its_rows(pair, monkeypatch):
    mine, other = pair
    compared = []
    monkeypatch.setattr("lakelite.transaction.transaction.comes_out_the_same", lambda *a, **k: compared.append(a) or True)
    mine.execute("BEGIN; SELECT * FROM t WHERE a = 1; INSERT INTO o VALUES (1)")
    other.execute("UPDATE t SET a = 9 WHERE a = 2")
    mine.execute("COMMIT; BEGIN; SELECT * FROM t WHERE a = 1; INSERT INTO o VALUES (1)")
    assert compared == []
    other.execute("UPDATE t SET a = 1 WHERE a = 9")
    mine.execute("COMMIT")
    assert len(compared) == 1


@pytest.mark.parametrize(("settings", "locks"), [("SET commit_backoff_ms = 1", 2), ("SET commit_time_ms = 0", 1), ("SET commit_attempts = 1", 1)])
def test_the_last_attempt_runs_under_the_commit_lock(pair, settings, locks):
    """The others are bounded by their number and by time, and run outside."""
    mine, other = pair
    mine.execute(settings)
    reached = []

    def winner():
        other.execute("INSERT INTO t VALUES (7)")

    before = steps.hook
    with meeting(winner):
        inner = steps.hook

        def hook(step):
            reached.append(step)
            inner(step)

        steps.hook = hook
        mine.execute("INSERT INTO o SELECT max(a) FROM t")
    assert steps.hook is before
    assert rows(mine, "o") == [(7,)]
    assert mine.last_commit.attempts == 2
    own = reached.count("lock") - 1  # one was the winner's
    assert own == locks


@pytest.mark.parametrize(
    "mine",
    [
        "INSERT INTO o SELECT count(*) FROM 't'",
        "INSERT INTO o SELECT count(*) FROM 'T' x, t WHERE t.a = 1",
        "INSERT INTO o SELECT sum(count) FROM histogram_values('t', a), t WHERE t.a = 1",
        "INSERT INTO o SELECT count(*) FROM query('FROM ' || 't')",
        "INSERT INTO o SELECT count(*) FROM (FROM t WHERE a < 2 USING SAMPLE 100 ROWS) UNION ALL SELECT max(a) FROM t",
        "CREATE TABLE p AS SELECT count(*) AS a FROM 't'",
    ],
)
def test_a_table_that_is_read_in_no_usual_way_is_read(pair, mine):
    m, other = pair
    with meeting(lambda: other.execute("DELETE FROM t WHERE a = 2")):
        m.execute(mine)
    assert m.last_commit.attempts == 2
    assert 2 not in [a for (a,) in rows(m, "p" if "TABLE p" in mine else "o")]


def test_a_table_whose_name_only_the_run_tells_is_that_of_now(pair):
    m, other = pair
    m.execute("BEGIN; INSERT INTO t VALUES (7); SELECT * FROM t; ROLLBACK")
    query = "SELECT count(*) FROM query('FROM ' || chr(116))"
    assert m.execute(query).fetchall() == [(2,)]
    other.execute("INSERT INTO t VALUES (8)")
    assert m.execute(query).fetchall() == [(3,)]
    assert other.execute("SELECT sum(count) FROM histogram_values('t', a)").fetchall() == [(3,)]


def test_the_time_zone_stays_once_rows_were_shown(pair):
    m, _ = pair
    m.execute("BEGIN; SET TimeZone = 'UTC'; SELECT * FROM t")
    with pytest.raises(ProgrammingError, match="was shown rows"):
        m.execute("SET TimeZone = 'Asia/Tokyo'")
    m.execute("ROLLBACK; RESET TimeZone")


@pytest.mark.parametrize("past", ["t AT (VERSION => 2)", "v", "t AT (BRANCH => 'dev')", "table_changes('t', 1, 2)"])
@pytest.mark.parametrize("inline_rows", [0, 1000])
def test_a_past_state_in_files_is_no_file_of_the_users(tmp_path, past, inline_rows):
    """Whatever it lies in, it stays as it is: M need not read it again."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as mine, lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        mine.execute(f"SET inline_rows = {inline_rows}; CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); CREATE TABLE o (a INTEGER)")
        mine.execute("CREATE VIEW v AS SELECT a FROM t AT (VERSION => 2); INSERT INTO o VALUES (7); CREATE BRANCH dev; DELETE FROM o")
        mine.execute(f"BEGIN; SELECT a FROM {past}")
        mine.execute(f"INSERT INTO o SELECT a FROM {past}")
        other.execute("INSERT INTO t VALUES (3); DELETE FROM t WHERE a = 1; OPTIMIZE t")
        mine.execute("COMMIT")
        assert rows(mine, "o") == [(1,), (2,)]
        assert rows(mine) == [(2,), (3,)]


def test_a_past_view_of_a_file_reads_that_file(pair, tmp_path):
    mine, other = pair
    (tmp_path / "f.csv").write_text("a\n1\n")
    mine.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path / 'f.csv'}'); CREATE VIEW w AS SELECT * FROM v AT (VERSION => 4)")
    for name in ("v AT (VERSION => 4)", "w"):
        mine.execute(f"BEGIN; INSERT INTO o SELECT x.a FROM {name} x, t")
        other.execute("INSERT INTO t VALUES (3)")
        with pytest.raises(TransactionConflict, match="external data"):
            mine.execute("COMMIT")
