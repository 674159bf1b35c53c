"""Every error of DuckDB, SQLite, pyarrow, sqlglot, the operating system and Python: its class, its words, and a next step."""

from __future__ import annotations

import ast
import errno
import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot.errors
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelite
from lakelite import errors
from lakelite.language import analyse, conjuncts
from lakelite.mapping.catalog_errors import catalog_error, found_damaged
from lakelite.mapping.names import Names, did_you_mean, listed, near
from lakelite.mapping.ours import mapped, opening, ours
from lakelite.mapping.system_errors import file_error, os_error

NOISE = re.compile(
    r"(?:Binder|Catalog|Parser|Conversion|Constraint|Invalid Input|IO|INTERNAL|FATAL|Out of \w+|Not implemented|Mismatch Type|TransactionContext"
    r"|Dependency|Permission|Sequence|Serialization|HTTP|Connection|INTERRUPT) Error|sqlite3?\.|pyarrow\.|sqlglot|Traceback|Errno|INT32",
)


def told(error: BaseException, text: str = "", names: Names | None = None) -> errors.Error:
    seen = ours(error, text, names or Names())
    assert isinstance(seen, errors.Error), seen
    assert seen.message
    assert not NOISE.search(str(seen)), seen
    return seen


def family(root: type) -> set[type]:
    return {root} | {below for one in root.__subclasses__() for below in family(one)}


# DuckDB.

ENGINE: dict[str, tuple[type[errors.Error], str, str | None]] = {
    "Error": (errors.OperationalError, "Error: odd", None),
    "DatabaseError": (errors.OperationalError, "Error: odd", None),
    "FatalException": (errors.InternalError, "FATAL Error: database has been invalidated because of a previous fatal error", "open the lake again"),
    "InterruptException": (errors.OperationalError, "INTERRUPT Error: Interrupted!", "run it again"),
    "PermissionException": (errors.OperationalError, "Permission Error: not allowed", None),
    "SequenceException": (errors.DataError, "Sequence Error: nextval: reached maximum value of sequence", None),
    "DependencyException": (errors.ProgrammingError, "Dependency Error: Cannot drop entry", None),
    "DataError": (errors.DataError, "Error: odd", None),
    "OutOfRangeException": (errors.DataError, "Out of Range Error: Overflow in addition of INT64 (1 + 2)!", "wider type"),
    "ConversionException": (errors.DataError, "Conversion Error: Could not convert string 'x' to INT32", "TRY_CAST"),
    "TypeMismatchException": (errors.DataError, "Mismatch Type Error: odd", None),
    "OperationalError": (errors.OperationalError, "Error: odd", None),
    "TransactionException": (errors.OperationalError, "TransactionContext Error: odd", None),
    "OutOfMemoryException": (errors.OperationalError, "Out of Memory Error: could not allocate block (1 MiB/1 MiB used)\n\nPossible solutions:\n* x", "memory_limit"),
    "ConnectionException": (errors.OperationalError, "Connection Error: Connection already closed!", None),
    "ResourceInUseException": (errors.OperationalError, "Error: in use", None),
    "IOException": (errors.OperationalError, 'IO Error: Cannot open file "x": No such file or directory', "check the path"),
    "HTTPException": (errors.OperationalError, "HTTP Error: 404", None),
    "SerializationException": (errors.OperationalError, "Serialization Error: odd", None),
    "IntegrityError": (errors.IntegrityError, "Error: odd", None),
    "ConstraintException": (errors.IntegrityError, "Constraint Error: NOT NULL constraint failed: t.a", "DEFAULT"),
    "InternalError": (errors.InternalError, "Error: odd", "report it"),
    "InternalException": (errors.InternalError, "INTERNAL Error: odd\nStack Trace:\n/usr/lib/x.so", "report it"),
    "ProgrammingError": (errors.ProgrammingError, "Error: odd", None),
    "ParserException": (errors.ProgrammingError, 'Parser Error: syntax error at or near "x"', None),
    "SyntaxException": (errors.ProgrammingError, "Syntax Error: odd", None),
    "BinderException": (errors.ProgrammingError, 'Binder Error: Referenced column "x" not found in FROM clause!\nCandidate bindings: "xx"', "did you mean xx"),
    "InvalidInputException": (errors.DataError, "Invalid Input Error: Map keys must be unique.", "each key once"),
    "InvalidTypeException": (errors.ProgrammingError, "Invalid type Error: odd", None),
    "CatalogException": (errors.ProgrammingError, "Catalog Error: Table with name x does not exist!", "SHOW ALL TABLES"),
    "NotSupportedError": (errors.NotSupportedError, "Error: odd", None),
    "NotImplementedException": (errors.NotSupportedError, "Not implemented Error: Unimplemented type for cast", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(family(duckdb.Error), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_every_class_of_duckdb(kind: type[duckdb.Error]) -> None:
    expected, raw, hint = ENGINE[kind.__name__]
    error = told(kind(raw), "select 1")
    assert type(error) is expected
    assert "Stack" not in error.message
    assert hint is None or hint in (error.hint or "")
    assert told(kind(""), "select 1").message  # and whatever it says, or does not


@pytest.mark.parametrize("name", [name for name in ENGINE if name.endswith("Exception") and name != "ResourceInUseException"])
def test_what_arrow_hands_on_of_duckdb_is_the_same(name: str) -> None:
    expected, raw, hint = ENGINE[name]
    for kind in (OSError, pa.ArrowInvalid, RuntimeError):
        error = told(kind(raw), "select 1")
        assert (type(error), hint is None or hint in (error.hint or "")) == (expected, True)


# SQLite.

PRIMARY = {name: code for name, code in vars(sqlite3).items() if name.startswith("SQLITE_") and isinstance(code, int) and 0 < code < 100}
CODES = {  # the result codes; the module also has numbers of other things
    "ERROR": "Internal", "INTERNAL": "Internal", "PERM": "Operational", "ABORT": "Operational", "BUSY": "Operational", "LOCKED": "Operational",
    "NOMEM": "Operational", "READONLY": "Operational", "INTERRUPT": "Operational", "IOERR": "Operational", "CORRUPT": "Operational",
    "NOTFOUND": "Internal", "FULL": "Operational", "CANTOPEN": "Operational", "PROTOCOL": "Operational", "EMPTY": "Internal", "SCHEMA": "Internal",
    "TOOBIG": "Data", "CONSTRAINT": "Internal", "MISMATCH": "Internal", "MISUSE": "Internal", "NOLFS": "Operational", "AUTH": "Operational",
    "FORMAT": "Internal", "RANGE": "Internal", "NOTADB": "Operational", "NOTICE": "Internal", "WARNING": "Internal",
}  # fmt: skip


@pytest.mark.parametrize("code", range(1, 29))
@pytest.mark.parametrize("extended", [0, 3 << 8])
def test_every_code_of_sqlite(code: int, extended: int) -> None:
    error = sqlite3.OperationalError("odd")
    error.sqlite_errorcode = code | extended
    name = next(n for n in CODES if PRIMARY.get(f"SQLITE_{n}") == code)
    seen = catalog_error(error, "reading it")
    assert type(seen).__name__ == f"{CODES[name]}Error"
    assert "while reading it" in seen.message
    assert seen.hint
    assert "restore" in seen.hint or name not in ("CORRUPT", "NOTADB")


@pytest.mark.parametrize(
    ("finding", "message", "hint"),
    [
        ("*** in database main ***\nTree 5 page 6: unable to get the page. error code=266", "cannot be read", "check the disk"),
        ("*** in database main ***\nTree 5 page 6: unable to get the page. error code=11", "is damaged", "restore"),
        ("row 3 missing from index i", "is damaged", "restore"),
    ],
)
def test_a_page_that_the_disk_does_not_give_is_no_damage(finding: str, message: str, hint: str) -> None:
    seen = found_damaged("x/catalog.sqlite", finding)
    assert message in seen.message
    assert finding in seen.message
    assert (seen.hint or "").startswith(hint)


def test_errors_of_the_module_sqlite3_without_a_code() -> None:
    for kind in family(sqlite3.Error):
        assert isinstance(told(kind("Cannot operate on a closed database.")), errors.InternalError)


# The operating system and Python.

NUMBERS = "ENOSPC EDQUOT EIO EFBIG EROFS EACCES EPERM EMFILE ENFILE ENOENT EEXIST EISDIR ENOTDIR ENOTEMPTY ENAMETOOLONG ELOOP ENOTSUP ENOSYS ENOLCK ESTALE ETIMEDOUT EBUSY ENODEV ENXIO ENOMEM EAGAIN".split()


@pytest.mark.parametrize("name", NUMBERS)
def test_every_errno_that_matters(name: str) -> None:
    number = getattr(errno, name)
    for error in (os_error(OSError(number, os.strerror(number)), "write the file x"), told(OSError(number, os.strerror(number), "x"))):
        assert type(error) is errors.OperationalError
        assert error.hint
        assert " could not " in error.message
        assert error.message.endswith(" x")
    by_words = file_error(None, os.strerror(number), "open x")
    assert by_words.message == file_error(number, "?", "open x").message


def test_other_errors_of_the_system_keep_its_words() -> None:
    assert told(OSError(errno.EXDEV, "Invalid cross-device link", "x")).message == "Invalid cross-device link: could not use x"
    assert told(OSError("odd")).message == "odd: could not read or write"
    assert told(OSError()).message == "OSError: could not read or write"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MemoryError(), errors.OperationalError, "no memory"),
        (RecursionError("maximum recursion depth exceeded"), errors.ProgrammingError, "nested too deeply"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), errors.DataError, "Unicode"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), errors.DataError, "Unicode"),
        (OverflowError("Python int too large to convert to C int"), errors.DataError, "too large"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), errors.OperationalError, "permission denied: could not use /x"),
    ],
)
def test_errors_of_python_that_data_can_cause(error: BaseException, kind: type[errors.Error], words: str) -> None:
    seen = told(error)
    assert type(seen) is kind
    assert words in seen.message
    assert seen.hint


@pytest.mark.parametrize("error", [KeyError("x"), AssertionError("x"), TypeError("x"), ValueError("x"), RuntimeError("x"), ZeroDivisionError("x")])
def test_a_bug_stays_what_it_is(error: Exception) -> None:
    assert ours(error) is error
    with pytest.raises(type(error)) as caught, mapped():
        raise error
    assert caught.value is error
    assert error.__cause__ is None


def test_ctrl_c_in_duckdb_is_ctrl_c() -> None:
    assert isinstance(ours(RuntimeError("Query interrupted")), KeyboardInterrupt)


# pyarrow and sqlglot.

ARROW = {
    "ArrowException": errors.InternalError, "ArrowInvalid": errors.DataError, "ArrowTypeError": errors.DataError,
    "ArrowKeyError": errors.InternalError, "ArrowIndexError": errors.InternalError, "ArrowNotImplementedError": errors.NotSupportedError,
    "ArrowMemoryError": errors.OperationalError, "ArrowCapacityError": errors.DataError, "ArrowCancelled": errors.OperationalError,
    "ArrowSerializationError": errors.OperationalError,
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(family(pa.ArrowException), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_every_class_of_pyarrow(kind: type[Exception]) -> None:
    for seen in (told(kind("odd")), told(kind(""))):
        assert type(seen) is ARROW[kind.__name__]
        assert seen.hint
    assert isinstance(told(pa.lib.ArrowIOError(errno.ENOSPC, "full")), errors.OperationalError)


@pytest.mark.parametrize(
    "kind", sorted(family(sqlglot.errors.SqlglotError) | {RecursionError}, key=lambda kind: kind.__name__), ids=lambda k: k.__name__
)
def test_an_error_of_sqlglot_never_leaves_the_analysis(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise kind("odd")

    monkeypatch.setattr(sqlglot, "parse_one", fail)
    monkeypatch.setattr(sqlglot, "parse", fail)
    con = lakelite.connect(autocommit=True)
    con.execute("create table t (a int, b varchar); insert into t values (1, 'x'), (2, 'y')")
    assert con.execute("delete from t where list_contains([b], 'x') and a = (select 1)").rowcount == 1
    assert con.execute("update t set b = array_to_string([b], '') where (a = 2) is true").rowcount == 1
    assert analyse.is_volatile("select 1") is False
    assert conjuncts is not None
    con.close()


# The door.


def test_the_cause_is_kept() -> None:
    first = duckdb.BinderException("Binder Error: odd")
    with pytest.raises(errors.ProgrammingError) as caught, mapped("select 1"):
        raise first
    assert caught.value.__cause__ is first


def test_what_is_wrong_with_the_world_while_a_lake_is_opened_is_cannot_open() -> None:
    for error in (OSError(errno.EACCES, "Permission denied", "x"), sqlite3.OperationalError("odd"), duckdb.IOException("IO Error: odd")):
        with pytest.raises(errors.CannotOpen) as caught, opening():
            raise error
        assert caught.value.__cause__ is error
        assert not NOISE.search(str(caught.value))


def test_no_memory_in_the_middle_of_a_statement_leaves_the_transaction_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    con = lakelite.connect()
    con.execute("create table t (a int)")
    for error in (MemoryError(), RecursionError(), OSError(errno.ENOSPC, "No space left on device"), sqlite3.OperationalError("odd")):
        with monkeypatch.context() as patch:

            def fail(*_: Any, error: BaseException = error, **__: Any) -> None:
                raise error

            patch.setattr("lakelite.storage.fragment.write_arrow", fail)
            with pytest.raises(errors.Error) as caught:
                con.execute("insert into t values (1)")
            assert caught.value.__cause__ is error
    con.execute("insert into t values (2)")
    assert con.execute("from t").fetchall() == [(2,)]
    con.close()


# Near names.


def test_near_names() -> None:
    assert near("flihgts", ["flights", "airlines", "s.flights2"]) == ["flights", "s.flights2"]
    assert near("U", ["s.uu", "t"]) == ["s.uu"]
    assert near("yr", ["origin", "year"]) == ["year"]
    assert near("x", ["a", "b"]) == []
    assert did_you_mean("carier", ["carrier", "carer", "year"], "none") == "did you mean carrier or carer?"
    assert did_you_mean("zz", ["a"], "none") == "none"
    assert listed(f"c{i}" for i in range(15)) == "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 3 more"


# How they are shown.


def test_a_caret_below_tabs_wide_and_combining_characters() -> None:
    for line, word in (
        ("\ta,\tzz from t", "zz"), ("select '日本語', zz", "zz"), ("select 'e\u0301', zz", "zz"), ("select '🎉', zz", "zz"), ("a\x1b[1mzz", "zz"),
    ):  # fmt: skip
        shown, caret = errors.Position.at(f"select 1,\n{line}", 10 + line.index(word)).render().split("\n")
        from lakelite.cells import width

        assert shown.startswith("LINE 2, COLUMN ")
        assert shown.isprintable()
        assert len(caret) - 1 == width(shown[: shown.index(word)])


@settings(max_examples=200)
@given(st.text("a日e\u0301 ,'", max_size=300), st.integers(0, 300), st.integers(20, 120))
def test_on_a_terminal_the_caret_is_below_its_place_in_lines_that_fit(text: str, offset: int, columns: int) -> None:
    from lakelite.cells import width

    position = errors.Position.at(text, offset)
    *above, shown, caret = position.render(columns).split("\n")
    assert all(width(line) <= columns for line in [*above, shown, caret])
    at = caret.index("^")
    behind = next((i for i in range(len(shown) + 1) if width(shown[:i]) == at), None)
    assert behind is not None
    there = position.source[position.column - 1 :].lstrip("\u0301")
    assert shown[behind:].lstrip("\u0301").startswith(there[:1])


def test_a_long_line_is_cut_on_both_sides() -> None:
    text = "select " + "a, " * 200 + "zz, " + "b, " * 200
    shown, caret = errors.Position.at(text, text.index("zz")).render().split("\n")
    assert shown[caret.index("^") :].startswith("zz, ")
    assert shown.endswith("...")
    assert len(shown) < 160


@pytest.mark.parametrize(
    ("script", "place", "shown"),
    [
        ("select 1;\nselect 2;\n\nselect\n  zz from t", (5, 3, 3, True), "STATEMENT 3, LINE 5, COLUMN 3:   zz from t"),
        ("select 1; select zz from t; select 2", (1, 18, 2, True), "STATEMENT 2, LINE 1, COLUMN 18: select 1; select zz from t; select 2"),
        ("select zz from t; -- why\n/* ; */ ;", (1, 8, None, True), "LINE 1, COLUMN 8: select zz from t; -- why"),
        ("select 1;\n-- why\nselec 2", (3, 1, 2, True), "STATEMENT 2, LINE 3, COLUMN 1: selec 2"),
        ("\n\n  select zz from t", (3, 10, None, True), "LINE 3, COLUMN 10:   select zz from t"),
        ("select 1;\ninsert into t\n select null", (2, 13, 2, True), "STATEMENT 2, LINE 2, COLUMN 13: insert into t"),
        ("select 1;\nselect\n error('no')", (2, 1, 2, False), "STATEMENT 2, LINE 2: select"),
        ("select 1;\r\nselect zz from t", (2, 8, 2, True), "STATEMENT 2, LINE 2, COLUMN 8: select zz from t"),
    ],
)
def test_the_place_counts_in_the_whole_script(script: str, place: tuple[Any, ...], shown: str) -> None:
    con = lakelite.connect(autocommit=True)
    con.execute("create table t (a int not null)")
    with pytest.raises(errors.Error) as caught:
        con.execute(script)
    at = caught.value.position
    assert at is not None
    assert (at.line, at.column, at.statement, at.exact) == place
    assert shown in str(caught.value)
    assert ("^" in str(caught.value)) == at.exact
    con.close()


def test_the_place_of_an_error_that_a_fetch_finds(tmp_path: Path) -> None:
    con = lakelite.connect(autocommit=True)
    failing = "select case when i = 900000 then 'x' else '1' end::int\nfrom range(1000000) t(i)"
    found = list(con.statements(f"select 1;\n{failing};\nselect 2"))
    with pytest.raises(errors.DataError) as caught:
        found[1].fetchall()
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.statement) == (2, 2)
    assert found[2].fetchall() == [(2,)]
    con.close()


def conflict(**changes: Any) -> errors.Conflict:
    values = {
        "kind": "read changed", "table": "flights", "winner_snapshot_id": 17, "winner_committed_at": "2026-11-30 12:00:00", "winner_author": "ann",
        "winner_statement": "update flights\n   set dep_delay = 0\n where year = 2013", "statement": "delete from flights where dep_delay > 60",
        "explanation": "rows that this transaction had handed out were changed by another transaction that committed first",
        "what_to_do": "run the transaction again", "rows": 12, "keys": tuple(f"row id {i}" for i in range(10)), "accepted_at": "snapshot",
    }  # fmt: skip
    return errors.Conflict(**{**values, **changes})


def test_a_conflict_reads_well_in_80_columns() -> None:
    long = conflict(statement="select " + "some_column, " * 300 + "1", table="t")
    error = errors.TransactionConflict((conflict(), long))
    lines = error.message.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 40
    text = " ".join(error.message.split())
    for words in ("(read changed) on table flights", "snapshot 17, committed 2026-11-30 12:00:00 by ann: update flights set dep_delay = 0 where year = 2013",
                  "yours: delete from flights", "rows changed by the winner: 12 (row id 0, row id 1,", "isolation level snapshot would have accepted it", "…"):  # fmt: skip
        assert words in text
    assert error.hint == "run the transaction again"


def test_conflicts_that_want_different_things_say_both() -> None:
    assert errors.TransactionConflict((conflict(), conflict(what_to_do="drop it"), conflict())).hint == "run the transaction again; drop it"


def test_the_advice_of_a_lost_answer_is_a_statement_that_runs() -> None:
    con = lakelite.connect(autocommit=True)
    con.execute("create table t (a int)")
    result = con.last_commit
    assert result is not None
    for transaction_id, rows in ((result.transaction_id, [(result.snapshot_id,)]), ("none-1", [])):
        advice = str(errors.CommitUnknown(transaction_id, "the disk is full"))
        found = re.search(r"SELECT snapshot_id .*?'(?=;)", advice)
        assert found is not None
        assert con.execute(found[0]).fetchall() == rows
    con.close()


@pytest.mark.parametrize(
    ("raw", "message", "hint"),
    [
        ('Could not write file "/l/data/3/abcdefghijklmnop-1-2.parquet": No space left on device', "the disk is full: could not write a data file of the lake", "free some space"),
        ('Failed to get stats for file "/l/data/3/abcdefghijklmnop-1-2.parquet": Input/output error', "the disk reported an input/output error: could not read a data file of the lake", "look at the system log"),
        ('Cannot open file "/l/data/3/abcdefghijklmnop-1-2.parquet": No such file or directory', 'Cannot open file "/l/data/3/abcdefghijklmnop-1-2.parquet": No such file or directory', "the file was damaged, changed or removed: restore it from a copy"),
        ('Could not write file "/l/tmp/abcdefghijklmnop/duckdb_temp_storage.tmp": No space left on device', "the disk is full: could not spill to the lake's folder tmp", "memory_limit"),
        ("No magic bytes found at end of file '/l/data/3/abcdefghijklmnop-1-2.parquet'", "abcdefghijklmnop-1-2.parquet", "restore it from a copy"),
        ('Cannot open file "/x/y.csv": Permission denied', 'permission denied: could not open "/x/y.csv"', "of the file and of its directories"),
    ],
)  # fmt: skip
def test_files_of_the_lake_are_told_from_those_of_the_user(raw: str, message: str, hint: str) -> None:
    error = told(duckdb.IOException(f"IO Error: {raw}"), "select 1")
    assert type(error) is errors.OperationalError
    assert message in error.message
    assert ("/l/" in error.message) == ("restore" in hint)
    assert hint in (error.hint or "")


def _without_hint(path: Path) -> list[str]:
    """Where a module makes an error of ours that does not say what to do."""
    names = {cls.__name__ for cls in family(errors.Error)} - {"InternalError", "TransactionConflict", "CommitUnknown"}
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = {keyword.arg for keyword in node.keywords}
            least = 2 if called in ("wrong", "unsupported") else None if called not in names else 99
            if least == 2 and isinstance(node.func, ast.Name):  # of language/source.py, with the text and the place in front
                least = 4
            if least is not None and len(node.args) < least and not given & {"hint", None}:
                found.append(f"{path.name}:{node.lineno} {called}")
    return found


def test_each_error_that_is_made_says_what_to_do() -> None:
    modules = sorted(Path(lakelite.__path__[0]).rglob("*.py"))
    assert len(modules) > 100
    assert [line for path in modules for line in _without_hint(path)] == []
    assert errors.InternalError("x").hint


def test_an_error_without_a_hint_is_found(tmp_path: Path) -> None:
    lines = ['errors.DataError("no")', 'reader.wrong("no")', 'DataError("no", hint="so")', 'wrong(text, 0, "no")', 'wrong(text, 0, "no", "so")']
    (tmp_path / "m.py").write_text("".join(f"raise {line}\n" for line in lines))
    assert _without_hint(tmp_path / "m.py") == ["m.py:1 DataError", "m.py:2 wrong", "m.py:4 wrong"]
