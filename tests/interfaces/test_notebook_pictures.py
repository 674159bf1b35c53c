"""What a notebook shows as HTML and SVG: whole for who does not see it, in the colours of the page, and nothing in it can break out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notebooks import parsed

import lakelite
from lakelite.errors import InterfaceError, ProgrammingError
from lakelite.interfaces.notebook import fragments, history
from lakelite.interfaces.notebook.html import SHOWN_CHARACTERS, SHOWN_COLUMNS, STYLE, Shown, page
from lakelite.interfaces.notebook.lake import Lake
from lakelite.interfaces.notebook.result import SEE_ALL
from lakelite.interfaces.render import Ends
from lakelite.interfaces.values import plain, visible

OF_EVERY_TYPE = (
    r"""true|1::tinyint|1::utinyint|-5::smallint|1::usmallint|1|1::uinteger|1::bigint|18446744073709551615::ubigint|"""
    r"""170141183460469231731687303715884105727::hugeint|1::uhugeint|1.5::float|1.5::double|'nan'::double|'inf'::float|1.25::decimal(10,2)|"""
    r"""12345678901234567890123456789012345678::decimal(38,0)|'x'|''|'a'::blob|'\x00\xff'::blob|date '2026-01-01'|date 'infinity'|"""
    r"""time '12:00:00.5'|timetz '12:00:00+05:30'|timestamp '2026-01-01 12:00:00.123456'|timestamp_s '2026-01-01 12:00:00'|"""
    r"""timestamp_ms '2026-01-01 12:00:00.5'|timestamp_ns '2026-01-01 12:00:00.123456789'|timestamp 'infinity'|"""
    r"""interval '14 months 3 days 5 microseconds'|uuid '11111111-1111-1111-1111-111111111111'|'{"a": 1}'::json|[1,null,3]|[1,2]::integer[2]|"""
    r"""{'a': 1, 'b': {'c': [uuid '11111111-1111-1111-1111-111111111111']}}|map {'k': 1::hugeint}|map {[1]: 2}|union_value(a := 1)|"""
    r"""'a'::enum('a','b')|null|'101'::bit|'1'::bignum|row(1,'x')|[]|null::integer|{'a': interval '1 day'}|[timetz '12:00:00+02']|'x'::variant|"""
    r"""time_ns '12:00:00.123456789'"""
).split("|")
EVIL = "</td></table><script>alert(1)</script>\"'&amp;\x1b[31m\u202e"
COLOURS = re.compile(
    r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(|(?:color|background(?:-color)?|fill|stroke)\s*[:=]\s*[\"']?(?!inherit|none|currentColor|url)\w+"
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelite.connect(tmp_path_factory.mktemp("lake") / "x.lake", autocommit=True, author="<b>ann</b>") as con:
        opened = Lake(con, "x.lake", lambda text: None)
        opened.sql("CREATE TABLE stock (item VARCHAR, amount INTEGER); INSERT INTO stock SELECT 'x' || range, range FROM range(40)")
        with lakelite.connect(con._session.lake.paths.root, autocommit=True, author="bob") as bob:
            opened.sql("BEGIN; UPDATE stock SET amount = 0 WHERE item = 'x1'")
            bob.execute("DELETE FROM stock WHERE item IN ('x2', 'x3')")
            opened.sql("COMMIT")
        opened.sql(f"SET commit_message = '{EVIL.replace(chr(39), chr(39) * 2)}'; INSERT INTO stock VALUES ('<svg onload=x>', 1)")
        opened.sql("CREATE TAG clean; CREATE BRANCH trial; USE BRANCH trial; INSERT INTO stock VALUES ('b', 1); USE BRANCH main; MERGE BRANCH trial")
        opened.sql('CREATE TABLE "<i>t" (a INTEGER)')
        yield opened


def shown(columns: list[tuple[str, str]], rows: list[tuple[Any, ...]], hidden: int = 0, whole: bool = False) -> Element:
    return parsed(page(Shown(tuple(columns), Ends(rows, rows if hidden else [], hidden), "2 rows, 1 ms", whole, SEE_ALL)))


def texts(tree: Element, tag: str) -> list[str]:
    return ["".join(one.itertext()) for one in tree.iter(tag)]


# Tables.


def test_values_of_every_type_are_those_of_the_connection(lake: Lake) -> None:
    query = "SELECT " + ", ".join(f"{value} AS c{i}" for i, value in enumerate(OF_EVERY_TYPE))
    cursor = lake.connection.execute(query)
    result = lake.sql(query)
    (wanted,), columns = cursor.fetchall(), [(name, str(kind)) for name, kind, *_ in cursor.description]
    assert list(result.columns or ()) == columns
    assert texts(parsed(result.show_all()._repr_html_()), "td") == [visible(plain(v, kind)) for v, (_, kind) in zip(wanted, columns, strict=True)]


def test_a_table_says_what_it_is_to_who_does_not_see_it() -> None:
    tree = shown([("n", "INTEGER"), ("name", "VARCHAR")], [(1, "a"), (None, "NULL")])
    (region,) = tree.iter("div")
    assert (region.get("role"), region.get("aria-label"), region.get("tabindex")) == ("region", "result", "0")
    assert [(one.get("scope"), "".join(one.itertext())) for one in tree.iter("th")] == [("col", "ninteger"), ("col", "namevarchar")]
    assert texts(tree, "caption") == ["2 rows, 1 ms"]
    assert texts(tree, "td") == ["1", "a", "NULL", "NULL"]
    assert texts(tree, "em") == ["NULL"], "the value that is none is told from the text by more than its colour"
    assert [one.get("class") for one in tree.iter("td")] == ["n", None, "n", None]


def test_what_is_left_out_is_said_with_how_to_see_it() -> None:
    columns = [(f"c{i}", "VARCHAR") for i in range(SHOWN_COLUMNS + 10)]
    row = ("x" * (SHOWN_CHARACTERS + 1), *"y" * (SHOWN_COLUMNS + 9))
    tree = shown(columns, [row], hidden=1_998)
    assert texts(tree, "caption") == [f"2 rows, 1 ms\n1,998 rows not shown; 10 columns not shown; long values are cut: {SEE_ALL}"]
    assert texts(tree, "td").count("… 1,998 rows not shown …") == 1
    assert len(list(tree.iter("th"))) == SHOWN_COLUMNS + 1
    assert texts(tree, "td")[0] == "x" * (SHOWN_CHARACTERS - 1) + "…"
    assert next(tree.iter("span")).get("title") == row[0]
    whole = shown(columns, [row], whole=True)
    assert texts(whole, "caption") == ["2 rows, 1 ms"]
    assert texts(whole, "td") == list(row)


@given(
    st.text(max_size=300), st.text(max_size=30), st.one_of(st.text(max_size=300), st.binary(max_size=5), st.lists(st.text(max_size=5), max_size=3))
)
@settings(max_examples=60)
def test_no_name_and_no_value_leaves_its_cell(name: str, outcome: str, value: Any) -> None:
    html = page(Shown(((name, f'STRUCT("{name}" INTEGER)'), ("b", "INTEGER")), Ends([(value, 1)], [], 0), outcome, True, SEE_ALL))
    tree = parsed(html)
    assert texts(tree, "td") == [visible(plain(value)), "1"]
    assert texts(tree, "th")[0].startswith(visible(name))
    assert {one.tag for one in tree.iter() if isinstance(one.tag, str)} <= set(
        "DOCUMENT_FRAGMENT style div table caption thead tbody tr th td small span em".split()
    )
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)


def test_pictures_and_tables_have_the_colours_of_the_page(lake: Lake) -> None:
    for html in (
        page(Shown((("a", "INTEGER"),), Ends([(1,)], [], 0), "", False, "")),
        lake.history_plot()._repr_html_(),
        lake.plot_table("stock")._repr_html_(),
    ):
        assert not COLOURS.findall(html), COLOURS.findall(html)
    assert COLOURS.search("a { color: black }")
    assert COLOURS.search('fill="#123"')
    assert "currentColor" in STYLE


def test_a_result_of_many_rows_shows_its_ends_and_all_when_asked(lake: Lake) -> None:
    result = lake.sql("SELECT range AS n, 'it' AS it FROM range(50)")
    tree = parsed(result._repr_html_())
    numbers = [text for text in texts(tree, "td") if text.isdecimal()]
    assert numbers == [*map(str, range(10)), *map(str, range(40, 50))]
    assert texts(tree, "caption")[0].startswith("50 rows, ")
    assert "30 rows not shown" in texts(tree, "caption")[0]
    assert [text for text in texts(parsed(result.show_all()._repr_html_()), "td") if text.isdecimal()] == list(map(str, range(50)))
    assert "\n│     25 │" in repr(result.show_all())
    many = lake.sql("SELECT range AS n FROM range(10_003)").show_all()
    assert "\n3 rows not shown: .df() has all</caption>" in many._repr_html_(), "no more than 10,000 are ever shown"


def test_a_plan_and_a_statement_are_text(lake: Lake) -> None:
    for sql in ("EXPLAIN SELECT 1", "SHOW CREATE TABLE stock"):
        assert lake.sql(sql)._repr_html_() is None
    assert "CREATE TABLE stock (\n    item VARCHAR,\n" in repr(lake.sql("SHOW CREATE TABLE stock"))


# The graph of versions.


def test_the_graph_of_versions(lake: Lake) -> None:
    picture = lake.history_plot()
    tree = parsed(picture._repr_html_())
    (svg,) = tree.iter("svg")
    assert svg.get("role") == "img"
    assert texts(svg, "title")[0] == "the newest 10 versions of the lake, on 2 branches"
    points = {text.partition(" ")[2].partition(" ")[0]: text for text in texts(svg, "title")[1:]}
    assert points.keys() == set(map(str, range(10)))
    assert "carried past 3" in points["4"]
    assert "UPDATE stock SET amount = 0 WHERE item = 'x1'" in points["4"]
    assert "past version 3: update on stock was carried over the delete of snapshot 3" in points["4"]
    assert "5 (tag clean)" in points["5"]
    assert visible(EVIL) in points["5"]
    assert "<b>ann</b>" in points["5"]
    assert "9 [main]" in points["9"]
    assert "6 of branch trial" in points["6"]
    assert [one.get("r") for one in svg.iter("circle")].count("8") == 1, "the version that was carried past another has a ring"
    assert sum(one.get("stroke-dasharray") is not None for one in svg.iter("path")) == 1, "what was merged is a dashed line"
    assert not list(svg.iter("script"))
    assert len(repr(picture).splitlines()) == 11, "in text, a line for each"


def test_of_a_long_history_the_newest_versions_are_drawn(lake: Lake) -> None:
    picture = lake.history_plot(2)
    assert repr(picture).splitlines()[0].startswith("the newest 2 versions")
    assert 'stroke-dasharray="4 3"' in picture.svg, "what is older is not drawn, and that is seen"
    for wrong in (0, -1, True, "9", 10_000):
        with pytest.raises(InterfaceError, match="the number of versions is one from 1 to 1000"):
            lake.history_plot(wrong)


def test_a_history_that_has_nothing_in_it_is_drawn() -> None:
    assert "the newest 0 versions" in repr(history.drawn(history.History([], {}, {})))
    one = history.Version(5, 4, None, "a" * 300, datetime(2026, 1, 1), None, None, "X", "y" * 5_000, 0, 0)
    assert len(history.drawn(history.History([one], {}, {})).svg) < 5_000


# The fragments of a table.


def test_the_fragments_of_a_table(lake: Lake) -> None:
    picture = lake.plot_table("stock")
    tree = parsed(picture._repr_html_())
    heading, *bars = texts(tree, "title")
    assert re.match(r"stock: \d+ fragments, 40 rows, 3 deleted, [\d.]+ \w+$", heading)
    assert re.match(r"fragment 1: 40 rows, 8 % deleted, \S+ \w+, inline, version 2$", bars[0])
    assert sum(one.get("fill") == "url(#lakelite-hatch)" for one in tree.iter("rect")) == 1, "what is deleted is hatched"
    assert repr(picture).startswith(heading)
    assert '"<i>t": 0 fragments, 0 rows, 0 deleted, 0 bytes' in texts(parsed(lake.plot_table('"<i>t"')._repr_html_()), "title")
    with pytest.raises(ProgrammingError, match='table "stok" does not exist'):
        lake.plot_table("stok")


def test_of_many_fragments_the_largest_are_drawn() -> None:
    many = [fragments.Fragment(i, "parquet", i % 100 * 1_000, 0, 10**i % 10**13, 1, "region = <EU>") for i in range(1, 101)]
    picture = fragments.drawn("t", many)
    bars = [line for line in repr(picture).splitlines()[1:] if "deleted" in line]
    assert len(bars) == fragments.MOST_BARS
    assert bars[-1].startswith("  99: 99,000 rows")
    assert "  and 40 smaller ones" in repr(picture)
    assert "region = &lt;EU&gt;" in picture.svg
    (rare,) = [fragments.Fragment(1, "parquet", 1_000_000, 3, 5 * 10**12, 1, None)]
    assert "less than 1 % deleted, 5.0 TB" in repr(fragments.drawn("t", [rare]))
