"""Values and results as text, in every output mode."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelite.cells import width
from lakelite.interfaces.render import MODES, Style, show
from lakelite.interfaces.values import as_json, elide, is_numeric, message, plain, visible


class Result:
    """A finished query: `columns` are (name, type) pairs."""

    def __init__(self, columns, rows):
        self.description = None if columns is None else [(name, type_name, None, None, None, None, None) for name, type_name in columns]
        self._rows = iter(rows)
        self.sizes = []

    def fetchmany(self, size, /):
        batch = list(islice(self._rows, size))
        self.sizes.append(len(batch))
        return batch


def shown(columns, rows, mode="box", *, cells=None, color=False):
    out = io.StringIO()
    show(Result(columns, rows), out, Style(mode, cells, color))
    return out.getvalue()


@pytest.mark.parametrize(
    ("value", "type_name", "text", "as_json_text"),
    [
        (None, "INTEGER", "NULL", "null"),
        (True, "BOOLEAN", "true", "true"),
        (2**64 + 1, "HUGEINT", "18446744073709551617", "18446744073709551617"),
        (1e-07, "DOUBLE", "1e-07", "1e-07"),
        (0.10000000149011612, "FLOAT", "0.1", "0.1"),
        (3.4028234663852886e38, "FLOAT", "3.4028235e+38", "3.4028235e+38"),
        (float("nan"), "FLOAT", "nan", '"NaN"'),
        (float("inf"), "DOUBLE", "inf", '"Infinity"'),
        (float("-inf"), "DOUBLE", "-inf", '"-Infinity"'),
        (Decimal("1E+3"), "DECIMAL(10,2)", "1000", "1000"),
        (Decimal("12345678901234567890.1234567890"), "DECIMAL(38,10)", "12345678901234567890.1234567890", "12345678901234567890.1234567890"),
        ('a "b"\n', "VARCHAR", 'a "b"\n', '"a \\"b\\"\\n"'),
        ("\x9b1m", "VARCHAR", "\x9b1m", '"\\u009b1m"'),
        (b"a'\\\x00\xff", "BLOB", "a\\x27\\x5C\\x00\\xFF", '"a\\\\x27\\\\x5C\\\\x00\\\\xFF"'),
        (date(2020, 1, 2), "DATE", "2020-01-02", '"2020-01-02"'),
        (time(1, 2, 3, 500_000), "TIME", "01:02:03.5", '"01:02:03.500000"'),
        (datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC), "TIMESTAMP WITH TIME ZONE", "2020-01-02 03:04:05+00:00", '"2020-01-02T03:04:05+00:00"'),
        (datetime(2020, 1, 2, 3, 4, 5, 120, tzinfo=UTC), "TIMESTAMP WITH TIME ZONE", "2020-01-02 03:04:05.00012+00:00", None),
        (timedelta(days=3), "INTERVAL", "3 days", '"3 days"'),
        (timedelta(days=1, hours=1, microseconds=5), "INTERVAL", "1 day 01:00:00.000005", None),
        (timedelta(hours=-1), "INTERVAL", "-01:00:00", None),
        (timedelta(days=-1, hours=-1), "INTERVAL", "-1 day -01:00:00", None),
        (timedelta(0), "INTERVAL", "00:00:00", None),
        (UUID(int=1), "UUID", "00000000-0000-0000-0000-000000000001", '"00000000-0000-0000-0000-000000000001"'),
        ([1, None, "it's"], "VARCHAR[]", "[1, NULL, 'it''s']", '[1, null, "it\'s"]'),
        ((1, 2), "INTEGER[2]", "[1, 2]", "[1, 2]"),
        ({"a": date(2020, 1, 1), "b": [Decimal("1.50")]}, "STRUCT", "{'a': '2020-01-01', 'b': [1.50]}", '{"a": "2020-01-01", "b": [1.50]}'),
        ({1: "x"}, "MAP(INTEGER, VARCHAR)", "{1: 'x'}", '{"1": "x"}'),
        ('{"a":\n[1, 2.50]}', "JSON", '{"a":\n[1, 2.50]}', '{"a": [1, 2.50]}'),
        ("{no json", "JSON", "{no json", '"{no json"'),
        ("NaN", "JSON", "NaN", '"NaN"'),
    ],
)
def test_value(value, type_name, text, as_json_text):
    assert plain(value, type_name) == text
    if as_json_text is not None:
        assert as_json(value, type_name) == as_json_text
        json.loads(as_json_text)


def test_is_numeric():
    assert [is_numeric(t) for t in ("BIGINT", "DECIMAL(10,2)", "DOUBLE")] == [True] * 3
    assert [is_numeric(t) for t in ("VARCHAR", "INTEGER[]", "DECIMAL(3,1)[2]", "STRUCT(a INTEGER)", "INTERVAL")] == [False] * 5


@given(st.text())
def test_visible_text_has_no_control_character(text):
    assert not any(unicodedata.category(c) == "Cc" for c in visible(text))
    assert visible(text).count("\u202e") == 0
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in message(text))


@given(st.text(), st.integers(1, 30))
def test_elided_text_fits(text, cells):
    short = elide(text, cells)
    assert width(short) <= cells
    assert short == text or short.endswith("…")


def test_width_counts_wide_and_combining_characters():
    assert [width(t) for t in ("abc", "日本", "e\u0301", "\uff21", "\u200d")] == [3, 4, 1, 2, 0]


def test_box_has_types_and_aligns_numbers():
    columns = [("n", "BIGINT"), ("city", "VARCHAR"), ("s", "STRUCT(A INTEGER)")]
    assert shown(columns, [(7, "東京", None), (1234567, "Oslo", {"A": 1})]) == (
        "┌─────────┬─────────┬───────────────────┐\n"
        "│       n │ city    │ s                 │\n"
        "│  bigint │ varchar │ STRUCT(A INTEGER) │\n"
        "├─────────┼─────────┼───────────────────┤\n"
        "│       7 │ 東京    │ NULL              │\n"
        "│ 1234567 │ Oslo    │ {'A': 1}          │\n"
        "└─────────┴─────────┴───────────────────┘\n"
    )


def test_box_without_rows_is_a_heading():
    assert shown([("a", "INTEGER")], []).count("\n") == 5


def test_no_result_set_prints_nothing():
    assert show(Result(None, []), out := io.StringIO(), Style()) == 0
    assert out.getvalue() == ""


def test_null_is_dim_only_in_color():
    assert "\x1b[2mNULL\x1b[0m" in shown([("a", "VARCHAR")], [(None,), ("NULL",)], cells=80, color=True)
    assert shown([("a", "VARCHAR")], [(None,), ("NULL",)], cells=80, color=True).count("\x1b[2m") == 1
    assert "\x1b" not in shown([("a", "VARCHAR")], [(None,)], cells=80)


@pytest.mark.parametrize("cells", [20, 40, 80, 200])
@pytest.mark.parametrize("count", [1, 2, 3, 12, 300])
def test_box_fits_the_terminal(cells, count):
    columns = [(f"column_{i}", "VARCHAR" if i % 2 else "BIGINT") for i in range(count)]
    text = shown(columns, [[f"日本 {'long ' * 30}" if i % 2 else 2**40 for i in range(count)]], cells=cells)
    frame = text[: text.index("┘") + 1].splitlines()
    assert {width(line) for line in frame} == {width(frame[0])}
    assert width(frame[0]) <= cells
    assert ("not shown" in text) == (f"column_{count // 2}"[:7] not in text or "│ … │" in text)


def test_box_on_a_terminal_shows_the_first_and_last_rows():
    text = shown([("i", "BIGINT")], [(i,) for i in range(1000, 2041)], cells=80)
    numbers = [int(line.strip("│ ")) for line in text.splitlines() if line.strip("│ ").isdigit()]
    assert numbers == [*range(1000, 1020), *range(2021, 2041)]
    assert text.endswith("1,041 rows, 1,001 of them not shown. .all shows all\n")
    assert "not shown" not in shown([("i", "BIGINT")], [(i,) for i in range(40)], cells=80)


@pytest.mark.parametrize("rows", [41, 45, 59, 61])
def test_box_ends_meet(rows):
    text = shown([("i", "BIGINT")], [(i,) for i in range(rows)], cells=80)
    numbers = [int(line.strip("│ ")) for line in text.splitlines() if line.strip("│ ").isdigit()]
    assert numbers == [*range(20), *range(rows - 20, rows)]
    assert f"{rows} rows, {rows - 40} of them not shown" in text


def test_box_elsewhere_shows_all_of_all_rows():
    rows = [(i, "x") for i in range(10_000)] + [(10_000, "longer than the sample")]
    text = shown([("i", "BIGINT"), ("t", "VARCHAR")], rows)
    assert text.count("\n") == 5 + 10_001
    assert "longer than the sample" in text


@pytest.mark.parametrize("mode", ["box", "markdown", "line"])
def test_nothing_steers_the_terminal(mode):
    bad = "a\x1b[2Jb\nc\rd\x9be\u202e|"
    text = shown([(bad, "VARCHAR"), ("j", f"ENUM('{bad}')")], [(bad, None), (b"\x1b", [bad])], mode)
    assert not any(unicodedata.category(c) in ("Cc", "Zl") for c in text.replace("\n", ""))
    assert "\u202e" not in text
    assert "a\\x1b[2Jb\\nc\\rd\\x9be\\u202e" in text
    assert text.count("\n") == {"box": 7, "markdown": 4, "line": 5}[mode]


def test_markdown_escapes_pipes():
    assert shown([("a|b", "INTEGER"), ("c", "VARCHAR")], [(1, "x|y")], "markdown") == "| a\\|b | c |\n| ---: | --- |\n| 1 | x\\|y |\n"


def test_line():
    assert shown([("a", "INTEGER"), ("name", "VARCHAR")], [(1, "x"), (2, None)], "line") == "   a = 1\nname = x\n\n   a = 2\nname = NULL\n"


def test_csv_tells_null_from_empty_text():
    text = shown([("a,b", "VARCHAR"), ("c", "BIGINT")], [("", 1), (None, None), ('say "x"\r\ny', 2)], "csv")
    assert text == '"a,b",c\n"",1\n,\n"say ""x""\r\ny",2\n'


@given(st.lists(st.tuples(st.text(), st.text()), max_size=8))
def test_csv_reads_back(rows):
    text = shown([("a", "VARCHAR"), ("b", "VARCHAR")], rows, "csv")
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [list(row) for row in rows]


@given(st.lists(st.tuples(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans() | st.none()), max_size=8))
@pytest.mark.parametrize("mode", ["json", "jsonl"])
def test_json_reads_back(mode, rows):
    text = shown([(name, "ANY") for name in "abcd"], rows, mode)
    objects = json.loads(text) if mode == "json" else [json.loads(line) for line in text.split("\n")[:-1]]
    assert [tuple(o.values()) for o in objects] == rows


def test_json_without_rows_is_an_empty_array():
    assert shown([("a", "INTEGER")], [], "json") == "[]\n"
    assert shown([("a", "INTEGER")], [], "jsonl") == ""


def test_json_keys_are_unique():
    (row,) = json.loads(shown([(n, "INTEGER") for n in ("a", "a", "a_1", "a")], [(1, 2, 3, 4)], "json"))
    assert row == {"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}


def test_json_embeds_deep_json_as_text_when_it_cannot_be_checked():
    deep = "[" * 200_000
    assert json.loads(as_json(deep, "JSON")) == deep


@pytest.mark.parametrize("mode", ["csv", "json", "jsonl", "markdown", "line"])
def test_streaming_modes_fetch_in_batches(mode):
    result = Result([("i", "BIGINT")], ((i,) for i in range(2_500)))
    assert show(result, io.StringIO(), Style(mode)) == 2_500
    assert result.sizes == [1_000, 1_000, 500, 0]


def test_every_mode_counts_rows():
    assert {mode: show(Result([("i", "BIGINT")], [(1,), (2,), (3,)]), io.StringIO(), Style(mode)) for mode in MODES} == dict.fromkeys(MODES, 3)
