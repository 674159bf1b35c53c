"""Results as Excel workbooks, read back with another library."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, time
from types import SimpleNamespace

import pytest
from python_calamine import CalamineWorkbook

from lakelite.errors import InterfaceError
from lakelite.interfaces import excel, extras
from lakelite.interfaces.delivery import Display
from lakelite.interfaces.runner import DONE, FAILED, Runner


@pytest.fixture
def session(lake, tmp_path, monkeypatch):
    """Runs a script on the lake, in `tmp_path`; (exit code, results, what was said)."""
    monkeypatch.chdir(tmp_path)
    out, err = io.StringIO(), io.StringIO()
    runner = Runner(lake, out, err, "csv")

    def session(script):
        out.seek(0), out.truncate(), err.seek(0), err.truncate()
        code = runner.run(script)
        return code, out.getvalue(), err.getvalue()

    yield session
    runner.display.to_out()


def sheets(path):
    book = CalamineWorkbook.from_path(path)
    return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}


def markup(path):
    """The XML of a workbook's sheets and styles."""
    with zipfile.ZipFile(path) as file:
        return "".join(file.read(name).decode() for name in file.namelist() if name.startswith("xl/"))


VALUES = [
    ("1::TINYINT", 1.0),
    ("-7", -7.0),
    ("999999999999999", 999999999999999.0),
    ("1000000000000000", "1000000000000000"),
    ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"),
    ("1.50::DECIMAL(8, 2)", 1.5),
    ("1234567890123.45::DECIMAL(38, 2)", 1234567890123.45),
    ("12345678901234.56::DECIMAL(38, 2)", "12345678901234.56"),
    ("0.1::FLOAT", 0.1),
    ("2.5e-300::DOUBLE", 2.5e-300),
    ("'nan'::DOUBLE", "nan"),
    ("'-inf'::FLOAT", "-inf"),
    ("true", True),
    ("NULL", ""),
    ("''", ""),
    ("DATE '2024-02-29'", date(2024, 2, 29)),
    ("DATE '1899-12-31'", "1899-12-31"),
    ("DATE '12000-01-01'", "12000-01-01"),
    ("TIMESTAMP '2024-02-29 12:34:56.789'", datetime(2024, 2, 29, 12, 34, 56, 789000)),
    ("TIMESTAMP '2024-02-29 12:34:56.123456'", "2024-02-29 12:34:56.123456"),
    ("DATE '1900-02-28'", "1900-02-28"),
    ("DATE '1900-03-01'", date(1900, 3, 1)),
    ("DATE '9999-12-31'", date(9999, 12, 31)),
    ("TIMESTAMP '1900-01-01'", "1900-01-01 00:00:00"),
    ("TIMESTAMP '1900-02-28 23:59:59.999'", "1900-02-28 23:59:59.999"),
    ("TIMESTAMP '1900-03-01 06:00:00'", datetime(1900, 3, 1, 6)),
    ("TIMESTAMP '9999-12-31 23:59:59'", datetime(9999, 12, 31, 23, 59, 59)),
    ("TIMESTAMP '9999-12-31 23:59:59.999999'", "9999-12-31 23:59:59.999999"),
    ("TIMESTAMP 'infinity'", "9999-12-31 23:59:59.999999"),  # as Python has it
    ("TIMESTAMP_NS '2024-02-29 12:34:56.123456789'", "2024-02-29 12:34:56.123456"),  # as Python has it
    ("TIMESTAMP_S '2024-02-29 12:34:56'", datetime(2024, 2, 29, 12, 34, 56)),
    ("TIMESTAMPTZ '2024-02-29 12:00:00+00'", "2024-02-29 12:00:00+00:00"),
    ("TIME '12:34:56.000001'", "12:34:56.000001"),
    ("TIME '12:34:56.5'", time(12, 34, 56, 500000)),
    ("TIMETZ '12:00:00+02'", "12:00:00+02:00"),
    ("INTERVAL 36 HOUR", "1 day 12:00:00"),
    ("'0099'", "0099"),
    ("'https://example.org'", "https://example.org"),
    ("'2024-02-29'", "2024-02-29"),
    ("'=1+1'", "=1+1"),
    ("'{=1+1}'", "{=1+1}"),
    ("'+1'", "+1"),
    ("'-1'", "-1"),
    ("'@SUM(A1)'", "@SUM(A1)"),
    ("E'\\t=1'", "\t=1"),
    ("'a' || chr(1) || 'b'", "a\x01b"),
    ("'_x0041_'", "_x0041_"),
    ("'<b>&\"'", '<b>&"'),
    ("'ä😀'", "ä😀"),
    ("'\\xAA'::BLOB", "\\xAA"),
    ("[1, NULL]", "[1, NULL]"),
    ("{'a': 'x'}", "{'a': 'x'}"),
]


def test_each_value_is_what_it_is_or_its_text(session, tmp_path):
    columns = ", ".join(f"{sql} AS c{number}" for number, (sql, _) in enumerate(VALUES))
    assert session(f".once x.XLSX\nSELECT {columns}") == (DONE, "", "")
    found = sheets(tmp_path / "x.XLSX")["Sheet1"]
    assert found[0] == [f"c{number}" for number in range(len(VALUES))]
    for (sql, wanted), value in zip(VALUES, found[1], strict=True):
        assert (value, type(value)) == (wanted, type(wanted)), sql
    written = markup(tmp_path / "x.XLSX")
    assert "<f>" not in written
    assert "hyperlink" not in written
    assert 'quotePrefix="1"' in written
    for look in ("yyyy\\-mm\\-dd", "0.00"):
        assert look.replace("\\", "") in written.replace("\\", ""), look


def test_output_has_a_sheet_for_each_result(session, tmp_path):
    assert session(".output all.xlsx\nSELECT range AS n FROM range(2500);\nSELECT 'b' AS b WHERE false;\n.tables\n.output\nSELECT 3 AS a") == (
        DONE,
        "a\n3\n",
        "",
    )
    found = sheets(tmp_path / "all.xlsx")
    assert found["Sheet1"] == [["n"], *([float(n)] for n in range(2500))]
    assert (found["Sheet2"], found["Sheet3"]) == ([["b"]], [["name"]])
    assert session(".output none.xlsx\n.output\n.output later.xlsx\nSELECT 1 AS a;\n.output x.csv") == (DONE, "", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["all.xlsx", "lake", "later.xlsx", "x.csv"]


def test_too_much_for_excel_is_an_error_and_no_file(session, tmp_path, monkeypatch):
    monkeypatch.setattr(excel, "MOST_ROWS", 1500)
    session(".once x.xlsx\nSELECT range AS n FROM range(1500)")
    before = (tmp_path / "x.xlsx").read_bytes()
    for query, words in [
        ("SELECT range AS n FROM range(1501)", "more than the 1,500 rows that a sheet of Excel holds"),
        ("SELECT repeat('😀', 16384) AS t", '"t" has a text of 32,768 characters, and a cell of Excel holds 32,767'),
        ("SELECT error('half way') FROM range(10)", "half way"),
    ]:
        code, _, said = session(f".once x.xlsx\n{query}")
        assert code == FAILED
        assert words in said
        assert (tmp_path / "x.xlsx").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "x.xlsx"]
    session(".once y.xlsx\nSELECT repeat('é', 32767) AS t")
    assert sheets(tmp_path / "y.xlsx")["Sheet1"][1] == ["é" * 32767]
    assert len(sheets(tmp_path / "x.xlsx")["Sheet1"]) == 1501
    rows = SimpleNamespace(description=[(f"c{n}", "INTEGER") for n in range(16385)], fetchmany=lambda size: [])
    with pytest.raises(Exception, match="16,385 columns, and a sheet of Excel holds 16,384"):
        Display(io.StringIO(), once=tmp_path / "wide.xlsx").show(rows, rows)


def test_a_result_that_fails_is_a_sheet_that_says_so(session, tmp_path, monkeypatch):
    monkeypatch.setattr(excel, "MOST_ROWS", 3)
    assert session(".output x.xlsx\nSELECT 1 AS a;\nSELECT range AS n FROM range(4)")[0] == FAILED
    assert session("SELECT 2 AS b;\n.output")[0] == DONE
    found = sheets(tmp_path / "x.xlsx")
    assert {name: len(rows) for name, rows in found.items()} == {"Sheet1": 2, "Sheet2 (incomplete)": 4, "Sheet3": 2}


def test_a_file_that_cannot_be_written(session, tmp_path):
    (tmp_path / "full.xlsx").mkdir()
    for script in (".output no/x.xlsx", ".once no/x.xlsx\nSELECT 1"):
        code, _, said = session(script)
        assert code == FAILED
        assert "no such file or directory" in said
    for script in (".output full.xlsx", ".once full.xlsx\nSELECT 1"):
        code, _, said = session(script)
        assert code == FAILED
        assert "a directory is where a file should be" in said
    assert session("SELECT 1 AS a") == (DONE, "a\n1\n", "")


def test_without_the_library(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(InterfaceError, match="xlsxwriter is not installed") as raised:
        excel.Book()
    assert raised.value.hint == 'pip install "lakelite[excel]"'
