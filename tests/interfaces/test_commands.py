"""The dot commands over a real lake: what they print, what they write, what they refuse."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import threading
from contextlib import contextmanager
from html.parser import HTMLParser

import pyarrow.parquet as pq
import pytest

import lakelite
from lakelite.interfaces import runner as running
from lakelite.interfaces.commands.registry import COMMANDS
from lakelite.interfaces.delivery import BY_ENDING
from lakelite.interfaces.render import MODES
from lakelite.interfaces.runner import DONE, FAILED, INTERRUPTED, Runner

TYPES = """
CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x', c DECIMAL(8,2), d TIMESTAMP, e INTEGER[], f STRUCT(x INTEGER, y VARCHAR), g BLOB,
    h INTERVAL, i UUID, j DOUBLE, k BOOLEAN, l MAP(VARCHAR, INTEGER), m TIME, n DATE, o FLOAT, p HUGEINT, q VARCHAR[], u STRUCT(z MAP(INTEGER[], VARCHAR), "it's" DATE[2])[], r TIMESTAMPTZ, s JSON);
INSERT INTO t VALUES (1, 'it''s \t<b>&\\', 1.5, '2020-01-02 03:04:05.678', [1, NULL, 3], {'x': 1, 'y': 'a, ''b'''}, '\\x00\\xFFz'::BLOB,
    INTERVAL '1 day 2 hours', '11111111-2222-3333-4444-555555555555', 1e300, true, MAP {'k': 1, 'it''s': 2}, '12:13:14.5', '2021-02-03', 0.1,
    12345678901234567890123456789012345678, ['a', NULL, 'b, c', ''],
    [{'z': MAP {[1]: 'it''s', [2, NULL]: NULL}, 'it''s': ['2020-01-01', NULL]}, NULL], '2020-01-02 03:04:05+00', '{"a": [1, null]}');
INSERT INTO t (a) VALUES (2);
INSERT INTO t (a, j, b) VALUES (3, 'nan', E'line\nend'), (4, '-inf', '');
"""


@pytest.fixture
def session(lake, tmp_path, monkeypatch):
    """Runs a script on the lake, in `tmp_path`; (exit code, results, what was said)."""
    monkeypatch.chdir(tmp_path)
    runner = Runner(lake, io.StringIO(), io.StringIO(), "csv")

    def session(script, **options):
        runner.out.seek(0), runner.out.truncate(), runner.err.seek(0), runner.err.truncate()
        code = runner.run(script, **options)
        return code, runner.out.getvalue(), runner.err.getvalue()

    session.runner = runner
    session.lake = lake
    return session


def test_modes_round_trip(session):
    assert session(TYPES)[::2] == (DONE, "")
    for mode in ("csv", "tsv", "json", "jsonl", "markdown", "line", "html", "latex", "insert", "box"):
        assert mode in MODES
        code, out, said = session(f".mode {mode}\nSELECT a, b FROM t ORDER BY a")
        assert (code, said) == (DONE, ""), mode
        assert out
    assert session(".mode tsv\nSELECT a, b FROM t ORDER BY a")[1].splitlines() == ["a\tb", "1\tit's \\t<b>&\\\\", "2\tx", "3\tline\\nend", "4\t"]
    assert session(".mode tsv\nSELECT NULL AS n, '' AS e")[1] == "n\te\n\\N\t\n"
    assert session('.mode\n.mode insert other."my t"\nSELECT a, b FROM t WHERE a = 4')[1:] == (
        "INSERT INTO other.\"my t\" VALUES\n(4, '');\n",
        "tsv\n",
    )


def test_html_keeps_values_in_their_cells(session):
    evil = "</td></tr></table><script>alert(1)</script>"
    out = session(f".mode html\nSELECT '{evil}' AS \"<b>name\", NULL AS n, 1 AS i, '\x1b[2J' AS c")[1]

    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.tags, self.texts = [], []

        def handle_starttag(self, tag, attributes):
            self.tags.append(tag)

        def handle_data(self, data):
            self.texts += [data] if data.strip() else []

    reader = Reader()
    reader.feed(out)
    assert reader.tags == ["table", "thead", "tr", *["th"] * 4, "tbody", "tr", *["td"] * 4]
    assert reader.texts == ["<b>name", "n", "i", "c", evil, "NULL", "1", "\\x1b[2J"]
    assert "\x1b" not in out


def test_latex_escapes_what_it_would_read(session):
    out = session(".mode latex\nSELECT 'a_b & 50% of $1 #{x} ~^\\' AS \"n_m\", 2 AS i")[1]
    assert out.splitlines()[0] == "\\begin{tabular}{lr}"
    assert "a\\_b \\& 50\\% of \\$1 \\#\\{x\\} \\textasciitilde{}\\textasciicircum{}\\textbackslash{} & 2 \\\\" in out


TIMES = """CREATE TABLE times AS SELECT INTERVAL '1 month -2 days' AS i, 'infinity'::TIMESTAMP AS t, '-infinity'::DATE AS d,
    '2020-01-01 00:00:00.123456789'::TIMESTAMP_NS AS n, {'a': INTERVAL '3 months', 'b': MAP {'x,=''': 'infinity'::DATE}} AS s"""


UNIONS = """CREATE TABLE u (u UNION(n INTEGER, v VARCHAR), l UNION(a INTEGER, "b 'c" DATE)[], s STRUCT("x'" UNION(h HUGEINT, t VARCHAR[]), y INTERVAL),
    m MAP(VARCHAR, UNION(n TINYINT, i INTEGER)), a UNION(n INTEGER, v VARCHAR)[2], o UNION(l INTEGER[], u UNION(x DATE, y VARCHAR)));
    INSERT INTO u VALUES (3, [union_value(a := 1), NULL, union_value(a := 2)], {'x''': union_value(t := ['it''s', NULL]), 'y': INTERVAL '1 month'},
        MAP {'k''': union_value(i := 5::INTEGER), 'l': NULL}, ['3', NULL], union_value(u := union_value(y := chr(0) || '''x'))),
        ('3', [], NULL, MAP {}, NULL, union_value(l := [])), (union_value(n := NULL::INTEGER), NULL, NULL, NULL, [NULL, 'x'], NULL);
    INSERT INTO u (u) VALUES (NULL), ('NULL'), ('');
    INSERT INTO u (l, m) VALUES ([union_value("b 'c" := DATE '2020-01-01')], MAP {'m': union_value(n := 5::TINYINT)})"""
NULS = """CREATE TABLE z (t VARCHAR, s STRUCT(a VARCHAR, b VARCHAR[]));
    INSERT INTO z VALUES ('a''' || chr(0) || '''b', {'a': chr(0), 'b': ['x' || chr(0) || 'y', '']}), (chr(0), NULL)"""


@pytest.mark.parametrize(
    "script", [TYPES, TIMES, UNIONS, NULS, "CREATE TABLE e (a INTEGER)", 'CREATE SCHEMA s; CREATE TABLE s."a;b" AS SELECT range AS n FROM range(250)']
)
def test_a_dump_makes_the_same_lake(session, tmp_path, script):
    session(script)
    session("CREATE SCHEMA v; CREATE VIEW v.w AS SELECT 1 AS one; CREATE VIEW v2 AS SELECT one FROM v.w; CREATE TEMP TABLE mine (a INTEGER)")
    (tmp_path / "dump.sql").write_text(session(".dump")[1])
    with lakelite.connect(tmp_path / "again", autocommit=True) as again:
        assert Runner(again, io.StringIO(), io.StringIO()).run(".read dump.sql") == DONE
        assert again.last_commit.snapshot_id == 1, "all of it is one version"
        tables = session.lake.execute("SELECT schema_name, table_name FROM lake.tables ORDER BY ALL").fetchall()
        assert again.execute("SELECT schema_name, table_name FROM lake.tables ORDER BY ALL").fetchall() == tables
        for schema, name in tables:
            query = f'SELECT COLUMNS(*)::VARCHAR FROM {schema}."{name}" ORDER BY ALL'
            assert str(again.execute(query).fetchall()) == str(session.lake.execute(query).fetchall())
            query = f'SELECT to_json(COLUMNS(*))::VARCHAR FROM {schema}."{name}" ORDER BY ALL'
            assert str(again.execute(query).fetchall()) == str(session.lake.execute(query).fetchall())
            create = f'SHOW CREATE TABLE {schema}."{name}"'
            assert again.execute(create).fetchall() == session.lake.execute(create).fetchall()
        assert again.execute("FROM v2").fetchall() == [(1,)]
        assert "mine" not in (tmp_path / "dump.sql").read_text()
    assert not session.lake.in_transaction


def test_a_dump_is_of_one_version_and_within_a_transaction_of_that(session):
    session("CREATE TABLE t (a INTEGER); BEGIN; INSERT INTO t VALUES (1)")
    assert "(1)" in session(".dump t")[1]
    assert session.lake.in_transaction
    session("ROLLBACK")
    assert "(1)" not in session(".dump t")[1]
    assert session(".dump nowhere")[0] == FAILED
    assert not session.lake.in_transaction


def test_results_go_to_files(session, tmp_path):
    session(TYPES)
    query = "SELECT a, b, c, d, e, f, q, n FROM t ORDER BY a"
    assert session(f".once 'a b.parquet'\n{query}") == (DONE, "", "")
    assert pq.read_table(tmp_path / "a b.parquet").num_rows == 4
    back = session.lake.execute("SELECT * FROM 'a b.parquet' ORDER BY a").fetchall()
    assert back == session.lake.execute(query).fetchall()
    for ending, mode in BY_ENDING.items():
        wanted = session(f".mode {mode}\n{query}")[1]
        assert session(f".mode box\n.once out{ending}\n{query}") == (DONE, "", "")
        assert (tmp_path / f"out{ending}").read_bytes().decode() == wanted
    assert next(csv.reader((tmp_path / "out.csv").read_text().splitlines()))[:2] == ["a", "b"]
    assert [row["a"] for row in json.loads((tmp_path / "out.json").read_text())] == [1, 2, 3, 4]


def test_once_is_for_one_result_and_output_for_all(session, tmp_path):
    session(".mode csv")
    assert session(".once one.txt\nSELECT 1 AS a; SELECT 2 AS a")[1] == "a\n2\n"
    assert (tmp_path / "one.txt").read_text() == "a\n1\n"
    assert session(".output all.csv\nSELECT 1 AS a; SELECT 2 AS a;\n.tables\n.output\nSELECT 3 AS a")[1] == "a\n3\n"
    assert (tmp_path / "all.csv").read_text() == "a\n1\na\n2\nname\n"
    session(".once untouched.csv\nSELECT nowhere")
    assert not (tmp_path / "untouched.csv").exists(), "a file is opened once there is a result for it"
    session("SELECT 1")
    assert session(".once no/such/dir.csv\nSELECT 1")[0] == FAILED
    assert session("SELECT 1 AS a")[1] == "a\n1\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (".output x.parquet", "a Parquet file holds one result"),
        (".output no/such/dir.csv", "no such file or directory"),
        (".once x.parquet\nSELECT 1::HUGEINT AS h", 'a Parquet file would round "h", which is HUGEINT'),
        (".once x.parquet\n.tables", "this result cannot be written as Parquet"),
        (".once no/x.parquet\nSELECT 1", "no such file or directory"),
        (".once", ".once takes one file name"),
        (".mode insrt", "did you mean insert?"),
        (".mode csv t", "mode csv takes no table"),
        (".mode insert t; drop", "takes the name of a table"),
        (".schema t; DROP TABLE t", "takes the name of a table"),
        (".schema nowhere", 'table "nowhere" does not exist'),
        ("\\d a b", "takes the name of a table"),
        (".import x.csv", ".import takes a file and a table"),
        (".import 'x", "No closing quotation"),
        (".import x.csv t;u", "takes the name of a table"),
        (".import missing.csv t", "missing.csv"),
        (".timer maybe", ".timer is on or off, not maybe"),
        (".pager 1", ".pager is on or off, not 1"),
        (".at x", ".at takes a whole number, not x"),
        (".at 99", "there is no version 99"),
        (".at -1", "a whole number, not -1"),
        (".at 99999999999999999999", "takes a whole number"),
        (".diff 2", ".diff takes two versions"),
        (".diff 1 1", "goes forward"),
        (".diff 0 99 t", "there is no version 99"),
        (".history x", "takes a whole number"),
        (".diff 0 99", "there is no version 99"),
        (".diff 98 99", "there is no version 98"),
        (".files nowhere;", 'table "nowhere" does not exist'),
        (".dump nowhere", 'table "nowhere" does not exist'),
        (".watch", "takes a number of seconds first"),
        (".watch 0 SELECT 1", "takes a number of seconds first"),
        (".watch nan SELECT 1", "takes a number of seconds first"),
        (".watch 1", "seconds and a statement"),
        (".all", "there was none yet"),
        (".all DELETE FROM t", "runs a query again"),
        (".hlep", "did you mean .help?"),
        (".help .nope", "there is no command .nope"),
        ("\\z", "there is no command \\z"),
    ],
)
def test_commands_that_cannot_be(session, script, words):
    session("CREATE TABLE t (a INTEGER)")
    code, shown, said = session(script)
    assert (code, shown) == (FAILED, "")
    assert words in said
    assert "internal" not in said
    assert session.lake.execute("SHOW TABLES").fetchall() == [("t",)]


def test_looking_at_tables(session):
    session('CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR); CREATE SCHEMA s; CREATE TABLE s."my t" AS SELECT 1 AS x; CREATE VIEW v AS FROM t')
    assert session(".tables")[1] == 'name\nt\nv\n"s.""my t"""\n'
    assert session("\\dt")[1] == session("\\d")[1] == session(".tables")[1]
    assert session("\\d t")[1].splitlines()[1:] == ["a,INTEGER,NO,,,", "b,VARCHAR,YES,,,"]
    assert session('.schema s."my t"')[1] == 'CREATE TABLE s."my t" (\n    x INTEGER\n);\n'
    assert session(".schema v")[1] == "CREATE VIEW v AS FROM t;\n"
    assert session(".schema")[1].count("CREATE ") == 3
    session("INSERT INTO t VALUES (1, 'x'); DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (2, 'y')")
    assert [row["table_name"] for row in csv.DictReader(io.StringIO(session('.files S."MY T"')[1]))] == ["my t"]
    assert [row["row_count"] for row in csv.DictReader(io.StringIO(session(".files t")[1]))] == ["1"]


def test_imports_make_the_table_or_add_to_it(session, tmp_path):
    (tmp_path / "a b.csv").write_text("x,y\n1,one\n2,two\n")
    session(".import 'a b.csv' new")
    session(".import 'a b.csv' NEW")
    assert session.lake.execute("SELECT count(*), sum(x) FROM new").fetchall() == [(4, 6)]
    session(".once x.parquet\nFROM new")
    session("CREATE SCHEMA s;\n.import x.parquet s.copy")
    assert session.lake.execute("SELECT count(*) FROM s.copy").fetchall() == [(4,)]


def test_history_draws_who_what_and_how(session, tmp_path):
    session(".mode box\nSET author = 'ann'; SET commit_message = 'first \x1b[2J'; CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2), (3)")
    with lakelite.connect(tmp_path / "lake", author="ben", autocommit=True) as other:
        session("BEGIN; UPDATE t SET a = 30 WHERE a = 3")
        other.execute("DELETE FROM t WHERE a = 1")
        session("COMMIT")
    out = session(".history 3")[1]
    lines = out.splitlines()
    assert re.fullmatch(r"● 4  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ann  UPDATE  \+1 -1", lines[0])
    assert lines[1] == "│   UPDATE t SET a = 30 WHERE a = 3"
    assert lines[2].startswith("├─╮ began on 2")
    assert lines[3].startswith("├─╯ ")
    assert any(re.search("ben  DELETE", line) for line in lines)
    assert "\x1b" not in out
    assert "│   first \\x1b[2J" in session(".history")[1]
    assert session(".history 0")[1] == ""
    conflicts = session(".mode csv\n.conflicts")[1].splitlines()
    assert conflicts[0] == "version,met,table,rows,explanation"
    assert conflicts[1].startswith("4,3,main.t,")
    assert session(".history 1")[1].startswith("version,committed_at,author")


def test_diff(session):
    session(
        "CREATE TABLE t (a INTEGER); CREATE TABLE u (a INTEGER); INSERT INTO t VALUES (1), (2), (3); UPDATE t SET a = 9 WHERE a = 1; DELETE FROM t WHERE a = 2"
    )
    session("CREATE VIEW v AS FROM t")
    assert session(".diff 2 5")[1].splitlines() == ["table,inserted,deleted,updated,note", "t,3,1,1,"]
    assert session(".diff 5 6")[1].splitlines() == ["table,inserted,deleted,updated,note"]
    rows = list(csv.DictReader(io.StringIO(session(".diff 3 5 t")[1])))
    assert [(r["change_type"], r["a"]) for r in rows] == [("update_preimage", "1"), ("update_postimage", "9"), ("delete", "2")]
    session('CREATE TABLE "my t" AS SELECT 1 AS a')
    assert "insert" in session('.diff 6 7 "my t"')[1]
    session("DROP TABLE t; ALTER TABLE u RENAME TO w; CREATE TABLE later AS SELECT 1 AS a; INSERT INTO w VALUES (1)")
    assert session(".diff 3 5")[1].splitlines()[1:] == ["t,0,1,1,"]  # what was there then, by its name then
    assert session(".diff 6 11")[1].splitlines()[1:] == ["later,1,0,0,", '"""my t""",1,0,0,', "w,1,0,0,", "t,,,,dropped"]
    session("BEGIN")
    assert session(".diff 9 11")[1].splitlines()[1:] == ["later,1,0,0,", "w,1,0,0,"]


def test_diff_of_a_table_that_was_dropped_and_made_again(session):
    """It is two tables, wherever the range begins."""
    session("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); DROP TABLE t; CREATE TABLE t AS SELECT 7 AS a; INSERT INTO t VALUES (3)")
    for older, wanted in (
        (0, ["t,2,0,0,"]),
        (1, ["t,2,0,0,", "t,,,,dropped"]),
        (2, ["t,2,0,0,", "t,,,,dropped"]),
        (3, ["t,2,0,0,"]),
        (4, ["t,1,0,0,"]),
    ):
        assert session(f".diff {older} 5")[1].splitlines()[1:] == wanted, older
    session("CREATE OR REPLACE TABLE t AS SELECT 8 AS a")
    assert session(".diff 4 6")[1].splitlines()[1:] == ["t,2,2,0,"], "one that is replaced goes on"


def test_a_session_is_pinned_to_a_version(session):
    session("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); CREATE TABLE u (a INTEGER); DROP TABLE u")
    count = "SELECT count(*) AS n FROM t"
    assert session(f".at 2\n{count}") == (DONE, "n\n1\n", "pinned to version 2, which can be read; .at ends it\n")
    assert session.lake.pinned_version == 2
    assert session(".tables")[1] == "name\nt\n"
    assert session("SELECT max(snapshot_id) AS n FROM lake.snapshots")[1] == "n\n2\n"
    assert session(f".at 4\n{count};\n.tables")[1] == "n\n2\nname\nt\nu\n"
    assert session("SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = 'main'")[1] == "n\n2\n"
    for change in (
        "INSERT INTO t VALUES (3)",
        "DELETE FROM t",
        "DROP TABLE t",
        "CREATE TABLE x (a INTEGER)",
        "BEGIN",
        "OPTIMIZE t",
        "VACUUM",
        "COMMIT",
    ):
        code, _, said = session(change)
        assert code == FAILED, change
        assert "pinned to version 4, and only reads" in said
    session.lake.execute("SELECT 1")
    with pytest.raises(lakelite.OperationalError, match="pinned to version 4"):
        session.lake.append("t", session.lake.execute("FROM t").to_arrow())
    with pytest.raises(lakelite.OperationalError, match="pinned to version 4"):
        session.lake.executemany("INSERT INTO t VALUES (?)", [(1,)])
    assert session(f".at\n{count};\n.at")[1:] == (
        "n\n2\n",
        "the newest version again\nthe session reads the newest version; .at N pins it to version N\n",
    )
    assert session("INSERT INTO t VALUES (3);\nSELECT count(*) AS n FROM t")[1] == "n\n3\n"


def test_pinning_waits_for_no_transaction_and_outlasts_others(session, tmp_path):
    session("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2)")
    assert "a transaction is open" in session(".at 1")[2]
    session("ROLLBACK;\n.at 2")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.executescript(
            "UPDATE t SET a = 5; INSERT INTO t VALUES (6); OPTIMIZE t; ALTER TABLE t ADD COLUMN b INTEGER; VACUUM RETAIN 0 HOURS; DROP TABLE t; VACUUM RETAIN 0 HOURS"
        )
        assert session("FROM t")[1] == "a\n1\n", "what a session is pinned to is kept"
        assert session(".at\nFROM t")[0] == FAILED
        other.execute("VACUUM RETAIN 0 HOURS")
    assert "has expired" in session(".at 2")[2]


def test_a_pinned_version_is_a_whole_number(lake):
    for value in ("1", 1.0, True):
        with pytest.raises(lakelite.InterfaceError, match="a version is a whole number"):
            lake.pinned_version = value
    lake.pinned_version = 0
    assert lake.execute("SHOW TABLES").fetchall() == []
    assert lake.duckdb().execute("SELECT lake_snapshot_id()").fetchall() == [(0,)]


def test_pinned_within_another_mode(tmp_path):
    with lakelite.connect(tmp_path / "x") as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        con.commit()
        con.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(lakelite.InterfaceError, match="a transaction is open"):
            con.pinned_version = 1
        con.commit()
        con.pinned_version = 1
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        con.rollback()
        con.pinned_version = None
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(1,)]


def test_edit_makes_a_draft(session, tmp_path, monkeypatch):
    editor = tmp_path / "my editor"
    editor.write_text("#!/bin/sh\nsed -i 's/1/2/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{editor}'")
    session.runner.last = "SELECT 1;"
    assert ".edit is for the prompt" in session(".edit")[2], "elsewhere nobody would see what was edited"
    session.runner.draft = ""
    assert session(".edit") == (DONE, "", "")
    assert session.runner.draft == "SELECT 2;"
    session("\\e SELECT 1 + 1;")
    assert session.runner.draft == "SELECT 2 + 1;", "Enter runs what stands at the prompt"
    monkeypatch.setenv("EDITOR", "false")
    assert "false ended with code 1, and nothing is run" in session(".edit")[2]
    monkeypatch.setenv("EDITOR", "no-such-editor")
    assert "could not run no-such-editor" in session(".edit")[2]


def test_watch_ends_with_ctrl_c_and_with_an_error(session):
    runs = threading.Semaphore(0)
    statements = session.lake.statements

    class Counting:
        def __getattr__(self, name):
            return getattr(session.lake, name)

        def statements(self, script):
            runs.release()
            return statements(script)

    session.runner.connection = Counting()

    def press():
        for _ in range(4):
            assert runs.acquire(timeout=20)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    code, out, said = session(".watch 0.05 SELECT 1 AS a")
    presser.join()
    assert code == INTERRUPTED
    assert out.count("a\n1\n") >= 2
    assert said.count("every 0.05 s") >= 2
    assert session(".watch 0.05 SELECT nowhere")[0] == FAILED


def test_timer(session):
    session.runner.verbose = True
    assert session("SELECT 1")[2].endswith(" ms\n")
    assert session("\\timing\nSELECT 1")[2] == "timer off\n1 row\n"
    assert session(".timer on\nSELECT 1")[2].endswith(" ms\n")


def test_expanded(session):
    assert session("\\x\nSELECT 1 AS a")[1] == "a = 1\n"
    assert session("\\x\n.mode")[2] == "box\n"


def test_help_tells_of_every_command(session):
    said = session(".help")[2]
    for command in COMMANDS:
        assert f"  {command.title} " in said
        assert command.about in session(f".help {command.names[0]}")[2]
    assert session(".help mode")[2] == session("\\? .mode")[2]
    assert "also \\timing" in session(".help .timer")[2]
    for asked, told in {
        "upsert": "DO UPDATE",
        "on conflict": "DO UPDATE",
        "time travel": "AT (VERSION",
        "adopt": "ADOPT",
        "partitioned by": "bucket(",
        "temp": "TEMP TABLE",
    }.items():
        assert told in session(f".help {asked}")[2]


def test_an_ending_that_names_no_format_is_told(session, tmp_path):
    for command in (".once", ".output"):
        code, _, said = session(f"{command} stock.foo\nSELECT 1 AS a;\n.output")
        assert code == DONE
        assert '".foo" names no format' in said
        assert session(f"{command} stock.txt\nSELECT 1 AS a;\n.output")[2] == ""
    assert (tmp_path / "stock.foo").read_text() == "a\n1\n"


@pytest.mark.parametrize(
    "winner", ["INSERT INTO t VALUES (7)", "DELETE FROM t", "UPDATE t SET a = 8", "OPTIMIZE t", "ALTER TABLE t ADD COLUMN b INTEGER", "DROP TABLE t"]
)
def test_a_pinned_session_disturbs_nobody_and_is_disturbed_by_nobody(session, tmp_path, winner):
    session("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);\n.at 2")
    with lakelite.connect(tmp_path / "lake", autocommit=True) as other:
        other.execute(winner)
        assert not other.last_commit.resolutions
        assert session("SELECT sum(a) AS s FROM t")[1] == "s\n3\n"


@pytest.mark.parametrize(
    "constant",
    [
        "[]::INTEGER[]", "[[1], NULL, []]::INTEGER[][]", "MAP {}::MAP(VARCHAR, DATE)", "{'a': NULL}::STRUCT(a DATE)", "row(1, 'x')", "'a,''b'::ENUM('a,''b', 'c')",
        "'1010'::BIT", "123456789012345678901234567890::BIGNUM", "'12:00:00+02'::TIMETZ",
        "[0.1::FLOAT, 'nan'::FLOAT]", "['2020-01-01'::DATE]::DATE[1]", "E'a\\tb'", "true", "-1", "1.50::DECIMAL(4,2)",
        "union_value(a := 'x')::UNION(a VARCHAR)", "'a' || chr(0) || 'b'", "['a' || chr(0)]",
    ],
)  # fmt: skip
def test_a_constant_is_what_it_stands_for(session, constant):
    out = session(f".mode insert x\nSELECT {constant} AS v")[1]
    written = out.removeprefix("INSERT INTO x VALUES\n(").removesuffix(");\n")
    assert written.count("UNION") <= 1, "no cast is doubled"
    same = f"SELECT typeof({constant}) = typeof({written}), ({constant})::VARCHAR IS NOT DISTINCT FROM ({written})::VARCHAR"
    assert session.lake.execute(same).fetchall() == [(True, True)], written


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_result_that_fails_half_way_leaves_the_file_as_it_was(session, tmp_path, ending):
    session(f".once x.{ending}\nSELECT 1 AS a")
    before = (tmp_path / f"x.{ending}").read_bytes()
    failing = "SELECT CASE WHEN i < 900000 THEN 1 ELSE error('half way') END AS a FROM range(1000000) AS r(i)"
    code, _, said = session(f".once x.{ending}\n{failing}")
    assert code == FAILED
    assert "half way" in said
    assert (tmp_path / f"x.{ending}").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", f"x.{ending}"]
    assert session(".once /dev/null\nSELECT 1")[0] == DONE
    assert not (tmp_path / "/dev/null").is_file()


def test_a_session_on_a_branch(session):
    session(
        "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); CREATE BRANCH dev; USE BRANCH dev; INSERT INTO t VALUES (2); CREATE TEMP TABLE mine AS SELECT 7 AS x"
    )
    assert session(".at 2\nSELECT count(*) AS n FROM t;\nSELECT x FROM mine")[1] == "n\n1\nx\n7\n"
    assert "pinned to version 2" in session("USE BRANCH main")[2]
    assert session(".at\nSELECT count(*) AS n FROM t")[1] == "n\n2\n", "on the branch again"
    assert "INSERT INTO t VALUES (2)" in session(".mode box\n.history 1")[1]
    assert session("USE BRANCH main;\n.at 4\n.mode csv\nSELECT count(*) AS n FROM t;\n.at\nSELECT count(*) AS n FROM t")[1] == "n\n2\nn\n1\n", (
        "a version of another branch"
    )


def test_ctrl_c_in_the_moment_in_which_a_statement_ends_is_not_lost(monkeypatch):
    """It was, and a .watch or a script went on."""
    real = running._ctrl_c

    @contextmanager
    def late(came):
        with real(came):
            yield
            came()

    monkeypatch.setattr(running, "_ctrl_c", late)
    with pytest.raises(KeyboardInterrupt):
        running.supervised(lambda: True, lambda: None)
