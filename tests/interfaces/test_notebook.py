"""lakelite in a notebook: cells of SQL, what they show, and what they leave in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from notebooks import Cells, values

from lakelite.interfaces.notebook.lake import Lake

# Opening, and where one is.


def test_without_a_lake_the_error_says_how_to_open_one(cells: Cells) -> None:
    notebook_of = cells.shell._lakelite_notebook
    notebook_of.close()
    assert "lake" not in cells.shell.user_ns
    for cell in ("%lake", "%lake SELECT 1", "%%lake\nSELECT 1"):
        assert cells.fails(cell) == "InterfaceError: no lake is open\nHint: %lake PATH opens one, %lake :memory: a temporary one\n"


def test_alone_it_tells_where_one_is(cells: Cells) -> None:
    assert cells("%lake") is cells["lake"]
    assert repr(cells["lake"]).startswith("lake shop.lake: version ")
    assert repr(cells["lake"]).endswith(", 1 table")
    cells("%lake BEGIN")
    assert repr(cells["lake"]).endswith(", 1 table, a transaction is open")
    assert cells.fails("%lake other.lake").startswith("ProgrammingError: a transaction is open in shop.lake\nHint: %lake COMMIT keeps it")
    assert not Path("other.lake").exists()


def test_a_lake_is_opened_as_its_options_say(cells: Cells) -> None:
    cells("path = 'shop.lake'")
    cells("%lake :path --read-only")
    cells.fails("%lake DELETE FROM stock")
    assert "read-only" in cells.said
    assert repr(cells("%lake --at 1 'shop.lake'")).endswith("version 1 (pinned: nothing can be changed), 1 table")
    assert "%lake --at newest" in cells.fails("%lake DELETE FROM stock")
    assert cells("%lake --at newest").connection.pinned_version is None
    cells("%lake shop.lake")
    cells("%lake CREATE BRANCH trial")
    assert ", branch trial: " in repr(cells("%lake --branch trial"))
    assert ", branch trial: " in repr(cells("%lake shop.lake --branch trial"))
    assert "CannotOpen" in cells.fails("%lake nowhere.lake --no-create")
    assert cells["lake"].connection.branch == "trial", "the lake that was open still is"
    assert cells("%lake --branch main").connection.branch == "main"


def test_a_path_can_be_a_variable(cells: Cells) -> None:
    cells("from pathlib import Path\nplace, number = Path('shop.lake'), 3")
    assert cells("%lake :place").path == "shop.lake"
    assert "there is no variable plac in Python, which :plac would be\nHint: did you mean place?" in cells.fails("%lake :plac")
    assert "the variable number holds no path, but a value of the type int" in cells.fails("%lake :number")


def test_a_variable_of_the_users_is_not_overwritten(cells: Cells) -> None:
    cells("lake = 'mine'")
    named = cells("there = %lake shop.lake\nthere")
    assert cells["lake"] == "mine"
    assert "note: your variable lake stays what it is" in cells.said
    assert isinstance(named, Lake)
    cells("del lake")
    cells("%lake shop.lake")
    assert "closed" in repr(named)


# What cells show.


def test_each_statement_shows_what_it_did_when_it_did_it(cells: Cells) -> None:
    last = cells("%%lake\nCREATE TEMP TABLE t (a INTEGER);\nINSERT INTO t VALUES (1), (2);\nSELECT sum(a) AS total FROM t;")
    first, second = (one["text/plain"] for one in cells.shown)
    assert first.startswith("done, ")
    assert second.startswith("2 rows changed, ")
    assert values(last) == [(3,)]
    assert last.columns == (("total", "HUGEINT"),)
    assert "│       3 │" in repr(last)
    assert "1 row, " in repr(last)
    assert cells("%%lake\n-- nothing") is None


def test_a_cell_stops_at_the_first_error(cells: Cells) -> None:
    said = cells.fails("%%lake\nCREATE TEMP TABLE half (a INTEGER);\nSELECT nope FROM half;\nDROP TABLE half")
    assert [one["text/plain"][:6] for one in cells.shown] == ["done, "]
    assert said.startswith('ProgrammingError: column "nope" does not exist')
    assert "STATEMENT 2, LINE 2, COLUMN 8: SELECT nope FROM half;\n" in said
    assert "Traceback" not in said
    assert len(said.splitlines()) < 8
    cells("%lake DROP TABLE half")


def test_the_whole_traceback_is_there_when_it_is_wanted(cells: Cells) -> None:
    cells.fails("%lake SELECT * FRM stock")
    cells.shell.run_cell("%tb")
    cells("%tb")
    assert "Traceback (most recent call last)" in cells.said
    assert "ParserException" in cells.said
    assert "ZeroDivisionError" in cells.fails("1 / 0")
    assert "Traceback" in cells.said, "errors of others are shown as ever"


def test_an_error_of_a_python_cell_is_as_short(cells: Cells) -> None:
    said = cells.fails("def ask(text):\n    return lake.sql(text)\nask('SELECT amout FROM stock')")
    assert said.splitlines()[0] == 'ProgrammingError: column "amout" does not exist'
    assert said.endswith("Hint: did you mean amount?\n")


def test_control_characters_of_an_error_do_not_reach_the_screen(cells: Cells) -> None:
    assert "\x1b" not in cells.fails("cell = 'SELECT error(' + chr(39) + chr(27) + '[31m' + chr(39) + ')'\nlake.sql(cell)")
    assert "\\x1b[31m" in cells.said


def test_a_commit_says_how_it_was_carried_past_others(cells: Cells, bob: Any) -> None:
    bob.execute("INSERT INTO stock VALUES ('pin', 1), ('peg', 1)")
    cells("%%lake\nBEGIN;\nUPDATE stock SET amount = amount + 1 WHERE item = 'pin'")
    bob.execute("DELETE FROM stock WHERE item = 'peg'")
    outcome = repr(cells("%lake COMMIT"))
    version = cells["lake"].connection.last_commit.snapshot_id
    assert outcome.startswith(f"done, version {version} (update on stock was carried over the delete of snapshot {version - 1}), ")
    assert "\n" not in outcome


def test_a_conflict_says_what_both_did(cells: Cells, bob: Any) -> None:
    cells("%%lake\nBEGIN;\nSELECT amount FROM stock WHERE item = 'bolt'")
    bob.execute("UPDATE stock SET amount = amount + 1 WHERE item = 'bolt'")
    cells("%lake UPDATE stock SET amount = 0 WHERE item = 'nut'")
    said = cells.fails("%lake COMMIT")
    assert said.startswith("TransactionConflict: transaction conflict (read changed) on table ")
    assert " by bob:" in said
    assert not cells["lake"].connection.in_transaction


def test_notes_stand_on_lines_of_their_own(cells: Cells) -> None:
    cells("%lake CREATE OR REPLACE TABLE notes (a INTEGER)")
    first = cells["lake"].connection.last_commit.snapshot_id
    cells("%%lake\nINSERT INTO notes VALUES (1);\nALTER TABLE notes ALTER COLUMN a TYPE VARCHAR")
    shown = repr(cells(f"%lake FROM table_changes('notes', {first}, {first + 2})"))
    assert '\nnote: column "a" was INTEGER' in shown
    cells("%lake DROP TABLE notes")


# Python's variables, and results for Python.


def test_parameters_are_bound_and_never_pasted(cells: Cells) -> None:
    cells('name, least = "x\'; DROP TABLE stock; --", 15')
    assert values(cells("%lake SELECT :name AS a, :least + 1 AS b")) == [("x'; DROP TABLE stock; --", 16)]
    assert values(cells("%lake SELECT [10, 20, 30][1:2] AS a, '{least} $least' AS b, 1::BIGINT AS c")) == [([10, 20], "{least} $least", 1)]
    cells("nothing = None")
    assert values(cells("%lake SELECT :nothing IS NULL AS a")) == [(True,)]


@pytest.mark.parametrize("cell", ["%lake SELECT :lest", "%lake SELECT $lest", "%%lake\nSELECT 1;\nSELECT 2 + :lest"])
def test_a_parameter_without_a_variable(cells: Cells, cell: str) -> None:
    cells("least = 15")
    said = cells.fails(cell)
    assert said.startswith("ProgrammingError: there is no variable lest in Python, which :lest would be\n")
    assert said.endswith("Hint: did you mean least?\n")
    cells("from io import open\nfrom os import path as nopt")
    assert cells.fails("%lake SELECT :nope").endswith("Hint: nope = … makes it\n")  # functions and modules are no values


def test_the_value_of_a_parameter_is_in_no_message(cells: Cells) -> None:
    cells("secret = 'hunter2hunter2'")
    assert "hunter2" not in cells.fails("%lake SELECT :secret::INTEGER")


def test_tables_of_python_are_tables_of_sql(cells: Cells) -> None:
    cells("import pandas as pd, pyarrow as pa\nframe, rows = pd.DataFrame({'item': ['bolt', 'gear']}), pa.table({'item': ['gear']})")
    assert values(cells("%lake SELECT item FROM frame JOIN rows USING (item)")) == [("gear",)]
    assert values(cells("%lake SELECT count(*) AS n FROM _")) == [(1,)], "the result before is one, too"
    inside = "def f():\n    rows = pa.table({'item': ['a', 'b']})\n    least = 2\n"
    assert values(cells(f"{inside}    return lake.sql('SELECT count(*) AS n FROM rows HAVING n >= :least')\nf()")) == [(2,)]
    assert values(cells(f"{inside}    return get_ipython().run_line_magic('lake', 'SELECT count(*) AS n FROM rows')\nf()")) == [(2,)]
    assert values(cells("lake.sql('SELECT :a + 1 AS b', {'a': 1})")) == [(2,)]
    assert "there is no statement" in cells.fails("lake.sql(' ')")


def test_the_result_of_a_cell_becomes_a_variable(cells: Cells) -> None:
    assert cells("%%lake --out found\nSELECT 'a' AS x UNION ALL SELECT 'b' ORDER BY x") is None
    assert cells.said.startswith("found is a pandas DataFrame: 1 column, 2 rows, ")
    assert type(cells["found"]).__module__.startswith("pandas")
    assert values(cells("%lake SELECT max(x) AS last FROM found")) == [("b",)]
    cells("%lake --out found --as pl SELECT 1 AS a")
    assert type(cells["found"]).__module__.startswith("polars")
    cells("%lake --out=found --as=arrow SELECT 1 AS a")
    assert cells["found"].to_pylist() == [{"a": 1}]


def test_what_gives_no_rows_for_a_variable_does_not_run(cells: Cells) -> None:
    before = values(cells("%lake DESCRIBE HISTORY LIMIT 1"))
    cells("wanted = 'bolt'")
    for script in (
        "INSERT INTO stock SELECT * FROM stock", "SELECT 1; DELETE FROM stock", "UPDATE stock SET item = :wanted", "CREATE TABLE made AS SELECT 1 AS a",
        "BEGIN", "SET threads = 1", "INSERT INTO stock SELECT * FROM stock RETURNING item; CREATE TAG x",
    ):  # fmt: skip
        assert "gives no rows for --out" in cells.fails(f"%%lake --out found\n{script}"), script
    assert values(cells("%lake DESCRIBE HISTORY LIMIT 1")) == before
    for script in ("SHOW TABLES", "SHOW ALL", "DELETE FROM stock WHERE false RETURNING item", "SHOW TAGS", "CHECK LAKE", "VACUUM DRY RUN", ".tables"):
        cells(f"%%lake --out found\n{script}")
        assert type(cells["found"]).__name__ == "DataFrame", script


def test_a_result_can_be_taken_as_often_as_one_likes_and_outlives_its_lake(cells: Cells) -> None:
    result = cells("%lake :memory:\nx = %lake SELECT range AS n, range * 2 AS n FROM range(1000)\nx")
    cells("%lake shop.lake")
    for _ in range(2):
        assert len(result) == len(result.df()) == result.to_arrow().num_rows == pa.table(result).num_rows == 1000
    assert sum(batch.num_rows for batch in result.fetch_record_batch(100)) == 1000
    assert bool(cells("%lake SELECT 1 WHERE false"))


EXACT = {
    "170141183460469231731687303715884105727::HUGEINT": "170141183460469231731687303715884105727",
    "TIMETZ '12:00:00+02'": "12:00:00+02:00",
    "'101'::BIT": "101",
    "12345678901234567890123456789::BIGNUM": "12345678901234567890123456789",
    "INTERVAL '1 day 1 microsecond'": "1 day 00:00:00.000001",
    "{'a': 9007199254740993::UHUGEINT}": "{'a': 9007199254740993}",
    "'a'::ENUM ('a', 'b')": "a",
    "NULL": "NULL",
}


def test_what_arrow_would_round_is_shown_exactly(cells: Cells) -> None:
    result = cells("%%lake\nSELECT " + ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(EXACT)))
    html = result._repr_html_()
    assert '<table class="tex2jax_ignore mathjax_ignore">' in html  # or $…$ in a value would be set as a formula
    for shown in EXACT.values():
        assert f">{shown.replace(chr(39), '&#x27;')}<" in html, shown
    direct = cells["lake"].connection.execute("SELECT sum(amount) AS total FROM stock").to_arrow()
    assert result.to_arrow().schema.field("c0").type == direct.schema.field("total").type, "to_arrow() is as ever"


def test_moments_are_shown_in_the_time_zone_of_the_session(cells: Cells) -> None:
    moment = "TIMESTAMPTZ '2026-01-01 12:00:00+00'"
    result = cells(f"%%lake\nSET TimeZone = 'America/New_York';\nSELECT {moment} AS a, [{moment}] AS b, {{'c': {moment}}} AS c")
    assert result._repr_html_().count("2026-01-01 07:00:00-05:00") == 3
    assert str(result.to_arrow().schema.field("a").type) == "timestamp[us, tz=America/New_York]"
    cells("%lake RESET TimeZone")
    assert "2026-01-01 12:00:00+00:00" in cells(f"%lake SET TimeZone = 'UTC'\nx = %lake SELECT {moment} AS a\nx")._repr_html_()


def test_a_cell_reads_an_older_version(cells: Cells) -> None:
    assert values(cells("%%lake --at 1\nSELECT count(*) AS n FROM stock")) == [(0,)]
    assert cells["lake"].connection.pinned_version is None
    assert "pinned" in cells.fails("%%lake --at 1\nDELETE FROM stock")
    assert cells["lake"].connection.pinned_version is None
    assert "a transaction is open" in (cells("%lake BEGIN"), cells.fails("%%lake --at 1\nFROM stock"))[1]


def test_what_came_between_versions(cells: Cells) -> None:
    assert values(cells("lake.diff(0, 2)")) == [("stock", 3, 0, 0, None)]
    assert [row[2] for row in values(cells("lake.diff(1, 2, 'stock')"))] == ["insert"] * 3
    assert "goes forward" in cells.fails("lake.diff(2, 1)")
    assert "a version is a whole number" in cells.fails("lake.diff(1, '2')")
    assert "takes the name of a table" in cells.fails("lake.diff(1, 2, 'a; b')")
