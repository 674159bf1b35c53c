"""What is offered behind what is typed, by context; `|` is the cursor."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import lakelite
from lakelite.interfaces.repl.completion import LakeCompleter, candidates
from lakelite.interfaces.repl.context import context_at
from lakelite.interfaces.repl.vocabulary import Vocabulary

TABLES = """
create table flights (flight_id integer, carrier varchar, "dep delay" integer, year integer);
create table airlines (carrier varchar, name varchar);
create table "my table" (x integer);
create schema other;
create table other.planes (tailnum varchar, seats integer);
create view late as select * from flights where "dep delay" > 0"""


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    con = lakelite.connect(tmp_path_factory.mktemp("lake") / "x", autocommit=True)
    con.executescript(TABLES)
    con.execute("create branch dev")
    vocabulary = Vocabulary(con)
    vocabulary._warm({})
    yield vocabulary
    con.close()


@pytest.fixture
def offered(vocabulary):
    def offered(marked):
        cursor = marked.index("|")
        return [one.text for one in candidates(marked.replace("|", ""), cursor, vocabulary)]

    return offered


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ("sel|", ["select"]),
        ("SEL|", ["SELECT"]),
        ("select 1; opt|", ["optimize"]),
        ("select * from fl|", ["flights"]),
        ("select * from FL|", ["flights"]),
        ("select * from flights, air|", ["airlines"]),
        ("select * from my|", ['"my table"']),
        ('select * from "my|', ['"my table"']),
        ("select * from other.|", ["planes"]),
        ("select * from oth|", ["other.planes", "other."]),
        ("select * from lake.snap|", ["snapshots"]),
        ("describe la|", ["late"]),
        ("drop table air|", ["airlines"]),
        ("insert into air|", ["airlines"]),
        ("optimize fl|", ["flights"]),
        ("select y| from flights", ["year"]),
        ("select |from airlines", ["carrier", "name", "airlines"]),
        ("select * from flights f where f.|", ["flight_id", "carrier", '"dep delay"', "year"]),
        ("select * from flights as f join airlines a on f.carrier = a.n|", ["name"]),
        ("select * from flights f where f.dep|", ['"dep delay"']),
        ("select p.s| from other.planes p", ["seats"]),
        ("select * from flights at (version => 3) f where f.y|", ["year"]),
        ("update airlines set n|", ["name"]),
        ("select * from late where late.f|", ["flight_id"]),
        ("with early as (select 1) select * from ear|", ["early"]),
        ("select (select n| from airlines) from flights", ["name"]),
        ("select coun|", ["count(", "count_if(", "count_star(", "countif("]),
        ("select * from table_ch|", ["table_changes("]),
        ("from flights at (version => |)", ["6", "5", "4", "3", "2", "1", "0"]),
        ("from flights for version as of |", ["6", "5", "4", "3", "2", "1", "0"]),
        ("from table_changes('flights', 1|", ["1"]),
        ("set upkeep_f|", ["upkeep_files"]),
        ("set global inline_b|", ["inline_bytes"]),
        ("reset auth|", ["author"]),
        ("show cr|", ["create table", "create view"]),
        ("drop schema o|", ["other"]),
        ("use branch |", ["main", "dev"]),
        ("merge branch d|", ["dev"]),
        ("select x::time|", ["time", "timestamp", "timestamptz", "timestamp_ms"]),
        ("select cast(x as big|", ["bigint"]),
        ("select * from flights whe|", ["where"]),
        ("select * from flights f le|", ["left join"]),
        (".mo|", [".mode"]),
        (".mode j|", ["json", "jsonl"]),
        (".mode insert air|", ["airlines"]),
        (".at |", ["6", "5", "4", "3", "2", "1", "0"]),
        (".diff 2 4|", ["4"]),
        (".diff 2 4 air|", ["airlines"]),
        (".help .di|", [".diff"]),
        (".help optim|", ["OPTIMIZE"]),
        (".help lake.ta|", ["lake.tables", "lake.table_options", "lake.tags"]),
        ("\\d fl|", ["flights"]),
        (".timer o|", ["on", "off"]),
    ],
)
def test_contexts(offered, marked, first):
    assert offered(marked)[: len(first)] == first


@pytest.mark.parametrize(
    "marked",
    ["select 'fl|'", "select 1 -- fl|", "select /* fl|", "select $$ fl|", "select nowhere.|", "select 1.|", ".nope x|", "from flights f where g.|"],
)
def test_where_nothing_is_offered(offered, marked):
    assert offered(marked) == []


def test_columns_come_with_their_types(vocabulary):
    text = "select * from flights f where f."
    assert [one.about for one in candidates(text, len(text), vocabulary)] == ["INTEGER", "VARCHAR", "INTEGER", "INTEGER"]
    text = "select * from airlines where "
    assert candidates(text, len(text), vocabulary)[1].about == "VARCHAR · airlines"


def test_files(offered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    for name in ("data/a b.csv", "data/it's.csv", "day.parquet", ".hidden"):
        (tmp_path / name).touch()
    assert offered("copy flights from 'da|'") == ["data/", "day.parquet"]
    assert offered("copy flights from 'data/|") == ["data/a b.csv", "data/it''s.csv"]
    assert offered("select * from read_parquet('day|')") == ["day.parquet"]
    assert offered("select * from read_csv(['day.parquet', 'da|") == ["data/", "day.parquet"]
    assert offered("select * from 'day|") == ["day.parquet"]
    assert offered("copy flights to '~/da|") == ["~/data/", "~/day.parquet"]
    assert offered("copy flights to '.h|") == [".hidden"]
    assert offered(".read da|") == ["data/", "day.parquet"]
    assert offered("import database 'nowhere/|") == []
    assert offered("select * from flights where carrier = 'da|") == []


def test_what_is_shown_cannot_steer_the_terminal(tmp_path):
    con = lakelite.connect(tmp_path / "x", autocommit=True)
    try:
        con.execute('create table "a\x1b[2J" (x integer)')
        text = "select * from a"
        found = list(LakeCompleter(Vocabulary(con)).get_completions(Document(text, len(text)), CompleteEvent()))
        assert found[0].display_text == '"a\\x1b[2J"'
    finally:
        con.close()


def test_a_lake_that_cannot_be_asked_offers_what_is_known_without(tmp_path):
    con = lakelite.connect(tmp_path / "x", autocommit=True)
    con.close()
    assert [one.text for one in candidates("select ac", 9, Vocabulary(con))] == []
    assert [one.text for one in candidates("sel", 3, Vocabulary(con))] == ["select"]


def test_names_are_asked_for_anew_at_each_prompt(tmp_path):
    con = lakelite.connect(tmp_path / "x", autocommit=True)
    try:
        completer = LakeCompleter(Vocabulary(con))
        document = Document("from new", 8)
        assert list(completer.get_completions(document, CompleteEvent())) == []
        con.execute("create table new_one (x integer)")
        completer.begin()
        assert [one.text for one in completer.get_completions(document, CompleteEvent())] == ["new_one"]
    finally:
        con.close()


def test_of_500_tables_the_first_completion_takes_less_than_50_ms(tmp_path):
    con = lakelite.connect(tmp_path / "x", autocommit=True)
    try:
        with con.transaction():
            for number in range(500):
                con.execute(f"create table table_{number} (a integer, b varchar, c_{number} date)")
        vocabulary = Vocabulary(con)
        vocabulary.warm_up()
        (thread,) = [one for one in threading.enumerate() if one.name == "lakelite names"]
        thread.join()
        begin = time.thread_time()
        assert len(candidates("select * from tab", 17, vocabulary)) == 501
        assert time.thread_time() - begin < 0.05
        begin = time.thread_time()
        assert candidates("select c from table_77", 8, vocabulary)[0].text == "c_77"
        assert time.thread_time() - begin < 0.05
    finally:
        con.close()


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            "select from where flights f . , ( ) ' \" :: ; -- /* $$ at version => table_changes with as join on set copy to 'x' 1 a $1 \n".split(" ")
        ),
        max_size=12,
    ),
    st.integers(0, 60),
)
def test_any_text_has_a_context(vocabulary, words, cursor):
    text = " ".join(words)
    cursor = min(cursor, len(text))
    for one in candidates(text, cursor, vocabulary):
        assert 0 <= one.length <= cursor
    assert text[:cursor].endswith(context_at(text, cursor).prefix)


def test_a_long_text_is_read_fast(vocabulary):
    text = "insert into airlines values " + ", ".join(["('UA', 'United')"] * 5_000) + "; select * from fl"
    begin = time.thread_time()
    assert candidates(text, len(text), vocabulary)[0].text == "flights"
    assert time.thread_time() - begin < 1
