"""The command line as a process: exit codes, streams, modes, pipes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "lakelite"]
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture
def run(tmp_path):
    """Run `lakelite` with these arguments and this standard input, in `tmp_path`."""

    def run(*arguments, stdin="", **environment):
        return subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            timeout=60,
            env=os.environ | environment,
        )

    return run


def test_statements_in_order(run, tmp_path):
    (tmp_path / "b.sql").write_text("\ufeffINSERT INTO t VALUES (2); SELECT count(*) AS n FROM t;\n")
    done = run("x.lake", "--csv", "-c", "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)", "-f", "b.sql", "-c", "SELECT a FROM t ORDER BY a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n2\na\n1\n2\n", "")
    assert run("x.lake", "--json", "-f", "-", stdin="SELECT sum(a) AS s FROM t").stdout == '[{"s": 3}]\n'


def test_box_is_the_default_and_does_not_elide_in_a_pipe(run):
    done = run("-c", f"SELECT {'x' * 300!r} AS t, 1 AS n")
    assert "x" * 300 in done.stdout
    assert done.stdout.startswith("┌")
    assert "\x1b" not in done.stdout


def test_command_stops_and_standard_input_goes_on(run):
    script = "SELECT 1 AS a; SELECT * FROM nowhere; SELECT 2 AS a;"
    stopped = run("--csv", "-c", script, "-c", "SELECT 3 AS a")
    assert (stopped.returncode, stopped.stdout) == (1, "a\n1\n")
    assert stopped.stderr.startswith("error: ")
    assert "nowhere" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    went_on = run("--csv", stdin=script)
    assert (went_on.returncode, went_on.stdout) == (1, "a\n1\na\n2\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "xml"], "invalid choice"),
        (["--isolation", "chaos"], "no isolation level 'chaos'"),
        (["a", "b"], "unrecognized arguments"),
        (["-f", "missing.sql"], "cannot read missing.sql: No such file"),
        (["-f", "latin.sql"], "latin.sql is not UTF-8 text (byte 8)"),
        (["--csv", "demo"], "opened as ./demo"),
        ([""], "name of the lake is empty"),
        (["demo", "a", "b"], "unrecognized arguments"),
    ],
)
def test_usage(run, tmp_path, arguments, words):
    (tmp_path / "latin.sql").write_bytes(b"select '\xe4'")
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_help_and_version(run):
    assert run("--version").stdout.startswith("lakelite ")
    text = run("--help")
    assert text.returncode == 0
    for option in ("-c", "-f", "--mode", "--json", "--csv", "--read-only", "--safe", "--isolation", "demo", "exit codes"):
        assert option in text.stdout


def test_a_lake_that_cannot_be_opened(run, tmp_path):
    (tmp_path / "file").write_text("no lake")
    for arguments in (["file"], ["missing", "--read-only"], ["missing", "--no-create"], ["file/below"]):
        done = run(*arguments, "-c", "SELECT 1")
        assert (done.returncode, done.stdout) == (3, ""), arguments
        assert done.stderr.startswith("error: ")
    assert not (tmp_path / "missing").exists()


def test_read_only(run):
    run("x.lake", "-c", "CREATE TABLE t (a INTEGER)")
    done = run("x.lake", "--read-only", "-c", "INSERT INTO t VALUES (1)")
    assert done.returncode == 1
    assert run("x.lake", "--read-only", "--csv", "-c", "SELECT count(*) AS n FROM t").stdout == "n\n0\n"


def test_isolation(run):
    done = run("--csv", "--isolation", "Write_Serializable", "-c", "SELECT 1 AS a")
    assert (done.returncode, done.stdout) == (0, "a\n1\n")


def test_an_open_transaction_is_rolled_back_and_said(run):
    done = run("x.lake", "-c", "CREATE TABLE t (a INTEGER); BEGIN; INSERT INTO t VALUES (1)")
    assert done.returncode == 0
    assert "rolled back" in done.stderr
    assert run("x.lake", "--csv", "-c", "SELECT count(*) AS n FROM t").stdout == "n\n0\n"


def test_a_conflict_has_its_own_code(run, tmp_path):
    run("x.lake", "-c", "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2)")
    change = "BEGIN; SELECT a FROM t WHERE a = 1; UPDATE t SET a = 11 WHERE a = 1; SELECT 'ready' AS s"
    command = [*COMMAND, "x.lake", "--csv", "-c", change, "-f", "-"]
    with subprocess.Popen(command, cwd=tmp_path, text=True, **PIPES) as loser:
        assert [loser.stdout.readline() for _ in range(4)] == ["a\n", "1\n", "s\n", "ready\n"]
        assert run("x.lake", "-c", "UPDATE t SET a = 10 WHERE a = 1").returncode == 0
        _, said = loser.communicate("COMMIT; SELECT 'not reached'", timeout=60)
    assert loser.returncode == 5
    assert said.startswith("error: transaction conflict")
    assert run("x.lake", "--csv", "-c", "SELECT a FROM t ORDER BY a").stdout == "a\n2\n10\n"


@pytest.mark.parametrize("mode", ["csv", "json", "jsonl"])
def test_a_thousand_rows_parse_back(run, mode):
    query = (
        "SELECT i::BIGINT AS i, CASE WHEN i % 3 > 0 THEN 'text, \"' || i END AS t, (i / 8)::DECIMAL(12,3) AS d FROM range(1000) AS r(i) ORDER BY i"
    )
    done = run("--mode", mode, "-c", query)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    if mode == "csv":
        got = [(int(r["i"]), r["t"] or None, float(r["d"])) for r in csv.DictReader(text.splitlines())]
    else:
        rows = json.loads(text) if mode == "json" else map(json.loads, text.splitlines())
        got = [(r["i"], r["t"], r["d"]) for r in rows]
    assert got == [(i, f'text, "{i}' if i % 3 else None, i / 8) for i in range(1000)]


def test_a_broken_pipe_ends_quietly(tmp_path):
    command = [*COMMAND, "--csv", "-c", "SELECT * FROM range(10000000)"]
    with subprocess.Popen(command, cwd=tmp_path, text=True, **PIPES) as process:
        assert process.stdout.readline() == "range\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == 141


def test_a_full_disk_is_an_error(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "-c", "SELECT 1"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the disk is full: ")
    assert "Traceback" not in done.stderr


def test_an_interrupted_script(tmp_path):
    long = "SELECT 1 AS a; SELECT count(*) FROM range(100000000000) AS r(i) WHERE sqrt(i) < 0; SELECT 2 AS a"
    with subprocess.Popen([*COMMAND, "--csv"], cwd=tmp_path, text=True, **PIPES) as process:
        process.stdin.write(long)
        process.stdin.close()
        assert process.stdout.readline() == "a\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stdout.read() == "1\n"
        assert process.stderr.read() == "interrupted\n"


def test_demo(run, tmp_path):
    begin = time.monotonic()
    done = run("demo", "demo")
    assert (done.returncode, time.monotonic() - begin < 30) == (0, True), done.stdout + done.stderr
    assert "5 of 5 tables" in done.stderr
    for words in ("The lake of this demonstration is the directory demo", "A> DELETE FROM flights", "Nobody had to try again", "lakelite ./demo"):
        assert words in done.stdout
    assert run("./demo", "--csv", "-c", "SELECT count(*) AS n FROM airlines").stdout == "n\n16\n"
    again = run("demo", "demo")
    assert again.returncode == 3
    assert "not empty" in again.stderr


def test_standard_input_goes_on_behind_a_syntax_error(run):
    done = run("--csv", stdin="SELEC 1;\nSELECT 4 AS a;\n")
    assert (done.returncode, done.stdout) == (1, "a\n4\n")
    assert done.stderr.startswith('error: syntax error at or near "SELEC"')


def test_author(run):
    assert run("x.lake", "--author", "Zoë", "-c", "CREATE TABLE t (a INTEGER)").returncode == 0
    done = run("x.lake", "--json", "-c", "DESCRIBE HISTORY t")
    assert json.loads(done.stdout)[0]["author"] == "Zoë"


@pytest.mark.parametrize("option", ["--read-only", "--no-create"])
def test_hint_for_a_missing_lake_fits_the_command_line(run, tmp_path, option):
    (tmp_path / "empty").mkdir()
    for lake in ("missing", "empty"):
        done = run(lake, option, "-c", "SELECT 1")
        assert done.returncode == 3
        assert option in done.stderr


def test_plan_is_printed_as_it_is(run):
    done = run("-c", "CREATE TABLE t (a VARCHAR); INSERT INTO t VALUES ('x\x1b\x07y'); EXPLAIN SELECT * FROM t WHERE contains(a || a, 'y\x1b\x07')")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 3
    assert "\\n" not in done.stdout
    assert "\x1b" not in done.stdout
    assert "explain_key" not in done.stdout
    assert "explain_key" in run("--csv", "-c", "EXPLAIN SELECT 1").stdout


def test_an_error_in_a_file_names_the_file_the_statement_and_the_line(run, tmp_path):
    (tmp_path / "load.sql").write_text("CREATE TABLE t (a INTEGER);\nINSERT INTO t VALUES (1);\n\nSELECT\n  b\nFROM t;\nSELECT 'not reached';\n")
    done = run("x.lake", "-f", "load.sql")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        'error: load.sql: column "b" does not exist',
        "STATEMENT 3, LINE 5, COLUMN 3:   b",
        " " * len("STATEMENT 3, LINE 5, COLUMN 3:   ") + "^",
        "Hint: the columns of t are: a",
    ]


def test_dot_commands_in_a_pipe(run):
    """Each takes its line and no more, wherever statements come from."""
    script = ".mode csv\nSELECT 1 AS a;\n.mode json\n-- a comment\n  .mode\nSELECT\n  2\n  AS a; SELECT 3 AS b;\n.mode line;\nSELECT 4 AS c"
    done = run(stdin=script)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'a\n1\n[{"a": 2}]\n[{"b": 3}]\nc = 4\n', "json\n")
    assert run("-c", ".mode csv\nSELECT 1 AS a", "-c", ".mode", "-c", "SELECT 2 AS a").stdout == "a\n1\na\n2\n"


def test_a_line_with_a_dot_inside_a_statement_is_no_command(run):
    script = "SELECT 1\n+\n.5 AS a, '\n.mode csv\n' AS b, $$;\n.quit\n$$ AS c /* ;\n.quit\n*/;\n.mode\n"
    done = run("--json", stdin=script)
    assert (done.returncode, json.loads(done.stdout)) == (0, [{"a": 1.5, "b": "\n.mode csv\n", "c": ";\n.quit\n"}])
    assert done.stderr == "json\n"


def test_dot_commands_that_fail(run):
    done = run("--csv", stdin="SELECT 1 AS a;\n.nope\n.mode xml\n.read missing.sql\n.read\n\\y\nSELECT 2 AS a;\nSELECT b;\n")
    assert (done.returncode, done.stdout) == (1, "a\n1\na\n2\n")
    said = ("no command .nope", "no mode xml", "no such file or directory: could not read missing.sql", ".read takes one file", "no command \\y")
    for words in said:
        assert words in done.stderr
    assert "STATEMENT 3, LINE 8, COLUMN 8" in done.stderr, "places count in the whole text"
    stopped = run("--csv", "-c", "SELECT 1 AS a;\n.nope\nSELECT 2 AS a", "-c", "SELECT 3 AS a")
    assert (stopped.returncode, stopped.stdout) == (1, "a\n1\n")


def test_read_and_quit_in_a_script(run, tmp_path):
    (tmp_path / "inner.sql").write_text("SELECT 1 AS a;\n.mode json\nSELECT nowhere;\nSELECT 'not reached';\n")
    (tmp_path / "outer.sql").write_text(".mode csv\n.read inner.sql\nSELECT 'not reached'")
    done = run("-f", "outer.sql")
    assert (done.returncode, done.stdout) == (1, "a\n1\n")
    assert done.stderr.startswith("error: inner.sql: ")
    went_on = run(stdin=".mode csv\n.read inner.sql\nSELECT 2 AS a;\n.quit\nSELECT 'not reached';")
    assert (went_on.returncode, went_on.stdout) == (1, 'a\n1\n[{"a": 2}]\n')
    assert run("-c", ".quit", "-c", "SELECT 'not reached'").stdout == ""


def test_tables_lists_all_schemas(run):
    made = 'CREATE SCHEMA s; CREATE TABLE b (a INTEGER); CREATE TABLE s."my t" (a INTEGER); CREATE TABLE "select" (a INTEGER); CREATE TABLE s.a (a INTEGER)'
    done = run("--mode", "line", "-c", made, "-c", ".tables")
    assert done.returncode == 0
    assert [line.removeprefix("name = ") for line in done.stdout.splitlines() if line] == ["b", '"select"', "s.a", 's."my t"']


def test_a_statement_that_is_shown_can_be_copied(run):
    create = "CREATE TABLE t (\n    a INTEGER NOT NULL,\n    b VARCHAR DEFAULT ('x\x1b')\n);"
    done = run("-c", create, "-c", "SHOW CREATE TABLE t")
    assert (done.returncode, done.stdout) == (0, create.replace("\x1b", "\\x1b") + "\n")
    assert json.loads(run("--json", "-c", create, "-c", "SHOW CREATE TABLE t").stdout) == [{"sql": create}]


def test_bail_stops_standard_input_too(run):
    script = "SELECT 1 AS a; SELECT * FROM nowhere; SELECT 2 AS a;"
    done = run("--csv", "--bail", stdin=script)
    assert (done.returncode, done.stdout) == (1, "a\n1\n")


def test_a_file_of_output_is_whole_at_the_end(run, tmp_path):
    done = run("-c", ".output x.csv\nSELECT range AS n FROM range(3);\nSELECT * FROM nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert (tmp_path / "x.csv").read_text() == "n\n0\n1\n2\n"
    assert run("--json", "-c", ".once y.parquet\nSELECT 1 AS a", "-c", "FROM 'y.parquet'").stdout == '[{"a": 1}]\n'


def test_the_persons_own_settings_are_for_the_prompt_only(run, tmp_path):
    (tmp_path / "lakelite").mkdir()
    (tmp_path / "lakelite" / "rc").write_text(".mode json\n")
    assert run("--csv", "-c", "SELECT 1 AS a", XDG_CONFIG_HOME=str(tmp_path)).stdout == "a\n1\n"


def test_check_lake_that_finds_errors_ends_with_1(run, tmp_path):
    run("x.lake", "-c", "SET inline_rows = 0; CREATE TABLE t AS SELECT 1 AS a")
    sound = run("x.lake", "--csv", "-c", "CHECK LAKE")
    assert (sound.returncode, sound.stderr) == (0, "")
    [file] = (tmp_path / "x.lake/data").glob("*/*.parquet")
    file.unlink()
    for arguments, script in ((("-c", "CHECK LAKE; SELECT 7"), ""), ((), "CHECK LAKE; SELECT 7;")):
        done = run("x.lake", "--csv", *arguments, stdin=script)
        assert (done.returncode, done.stderr) == (1, "error: CHECK LAKE found 1 error\n")
        assert "missing" in done.stdout
        assert done.stdout.endswith("7\n"), "what comes behind it runs"
    (tmp_path / "check.sql").write_text("CHECK LAKE;")
    (tmp_path / "ok.sql").write_text("SELECT 7;")
    for script in ("CHECK LAKE;\n.read ok.sql\n", ".read check.sql\nSELECT 7;\n"):
        done = run("x.lake", "--csv", stdin=script)
        assert (done.returncode, done.stderr) == (1, "error: CHECK LAKE found 1 error\n")
        assert done.stdout.endswith("7\n")


def test_the_end_of_a_transaction_that_was_not_begun_is_told(run):
    done = run("-c", "COMMIT; BEGIN; COMMIT; ROLLBACK")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "warning: no transaction was open: COMMIT did nothing\nwarning: no transaction was open: ROLLBACK did nothing\n"
