"""The adapter for Harlequin: through its headless runner, and as its IDE uses it."""

from __future__ import annotations

import json
import threading
import tomllib
from decimal import Decimal
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from harlequin import plugins
from harlequin.exception import HarlequinConfigError, HarlequinConnectionError, HarlequinQueryError
from harlequin.hsql import cli

import lakelite
from lakelite.interfaces.harlequin import LakeliteAdapter

ROOT = Path(__file__).parents[2]
STOCK = """
CREATE SCHEMA "old one"; CREATE TABLE stock (item VARCHAR NOT NULL, amount INTEGER, price DECIMAL(8, 2), since TIMESTAMPTZ, "a b" INTEGER[]);
INSERT INTO stock VALUES ('bolt', 40, 0.10, '2026-01-01 00:00:00+00', [1]), ('nut', 70, NULL, NULL, NULL);
CREATE VIEW dear AS FROM stock WHERE price > 0.05; CREATE TABLE "old one"."select" (u UUID, h HUGEINT)
"""


@pytest.fixture
def path(lake, tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    lake.execute(STOCK)
    return str(tmp_path / "lake")


@pytest.fixture
def connection(path):
    connection = LakeliteAdapter((path,)).connect()
    yield connection
    connection.close()


def test_the_headless_runner(path, capsys, monkeypatch):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["harlequin.adapter"]
    found = [EntryPoint(name, value, "harlequin.adapter") for name, value in declared.items()]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found if group == "harlequin.adapter" else [])

    def hsql(*words):
        code = cli.run(["-a", "lakelite", path, *words])
        return code, *capsys.readouterr()

    code, out, said = hsql(
        "-c", "UPDATE stock SET amount = amount + 1; SELECT item, amount, price FROM stock ORDER BY item", "--json", "--author", "ann"
    )
    assert (code, said) == (0, "")
    assert json.loads(out) == [{"item": "bolt", "amount": 41, "price": 0.1}, {"item": "nut", "amount": 71, "price": None}]
    with lakelite.connect(path) as con:
        assert con.execute("SELECT author FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT 1").fetchall() == [("ann",)]
    assert hsql("--catalog", "--path", "main", "--csv")[1].splitlines()[1:] == ["main.dear,dear,dear,VIEW,v", "main.stock,stock,stock,BASE TABLE,t"]
    code, _, said = hsql("-c", "SELECT amuont FROM stock")
    assert code == 1
    assert 'column "amuont" does not exist' in said
    assert "did you mean amount?" in said
    assert hsql("--read-only", "-c", "DELETE FROM stock")[0] == 1


def test_the_catalog_has_schemas_tables_and_columns_with_their_types(connection):
    schemas = {item.label: item for item in connection.get_catalog().items}
    assert sorted(schemas) == ["lake", "main", "old one"]
    assert "snapshots" in [item.label for item in schemas["lake"].children]
    relations = {item.label: item for item in schemas["main"].children}
    assert [(item.label, item.type_label) for item in relations.values()] == [("dear", "v"), ("stock", "t")]
    columns = [(item.query_name, item.type_label, item.type_name) for item in relations["stock"].children]
    assert columns == [
        ("item", "s", "VARCHAR"),
        ("amount", "#", "INTEGER"),
        ("price", "#.#", "DECIMAL(8,2)"),
        ("since", "ttz", "TIMESTAMP WITH TIME ZONE"),
        ('"a b"', "[]", "INTEGER[]"),
    ]
    (quoted,) = schemas["old one"].children
    assert (quoted.query_name, quoted.children[0].qualified_identifier) == ('"old one"."select"', '"old one"."select".u')
    assert connection.execute(f"SELECT {columns[-1][0]} FROM {relations['stock'].query_name}").fetchall().num_rows == 2


def test_results_with_a_limit_and_without(connection):
    query = "SELECT range AS n, 170141183460469231731687303715884105727 AS h, uuid() AS u, 1.5 AS d, [1] AS l, NULL AS e FROM range(300000)"
    cursor = connection.execute(query)
    assert [label for _, label in cursor.columns()] == ["##", "###", "uid", "#.#", "[]", "?"]
    table = cursor.set_limit(3).fetchall()
    assert table.column_names == ["n", "h", "u", "d", "l", "e"]
    assert table.select(["n", "h", "d", "l", "e"]).to_pylist()[2] == {
        "n": 2, "h": "170141183460469231731687303715884105727", "d": Decimal("1.5"), "l": [1], "e": None,
    }  # fmt: skip
    assert connection.execute(query).fetchall().num_rows == 300000
    assert connection.execute("SELECT 1 AS a WHERE false").set_limit(5).fetchall().column_names == ["a"]
    assert connection.execute("CREATE TABLE t (a INTEGER)") is None
    assert connection.execute("INSERT INTO t VALUES (1) RETURNING a").fetchall().to_pylist() == [{"a": 1}]


def test_transactions(connection, path):
    with lakelite.connect(path, autocommit=True) as other:
        rows = lambda: other.execute("SELECT count(*) FROM stock").fetchall()[0][0]  # noqa: E731
        assert (connection.transaction_mode.label, connection.transaction_mode.commit) == ("Auto", None)
        assert connection.toggle_transaction_mode().label == "Manual"
        connection.execute("DELETE FROM stock")
        connection.get_catalog()
        assert rows() == 2
        connection.transaction_mode.rollback()
        connection.execute("DELETE FROM stock WHERE item = 'nut'")
        connection.transaction_mode.commit()
        assert rows() == 1
        connection.execute("DELETE FROM stock")
        assert connection.toggle_transaction_mode().label == "Auto", "which commits"
        assert rows() == 0
        connection.toggle_transaction_mode()
        other.execute("INSERT INTO stock (item, amount) VALUES ('bolt', 1)")
        assert connection.execute("SELECT amount FROM stock").fetchall().to_pylist() == [{"amount": 1}]
        connection.execute("UPDATE stock SET amount = 3")
        other.execute("UPDATE stock SET amount = 2")
        with pytest.raises(HarlequinQueryError, match="snapshot"):
            connection.transaction_mode.commit()


def test_a_branch_and_what_is_wrong(path):
    with lakelite.connect(path, autocommit=True) as con:
        con.execute("CREATE BRANCH dev; USE BRANCH dev; DROP VIEW dear")
    connection = LakeliteAdapter((path,), branch="dev", nonsense=1).connect()
    assert [item.label for item in connection.get_catalog().items[1].children] == ["stock"]
    connection.execute("USE BRANCH main")
    assert [item.label for item in connection.get_catalog().items[1].children] == ["dear", "stock"]
    with pytest.raises(HarlequinQueryError, match='table "nowhere" does not exist'):
        connection.execute("FROM nowhere")
    half_way = connection.execute("SELECT CASE WHEN range < 200000 THEN 1 ELSE error('half way') END AS a FROM range(300000)")
    with pytest.raises(HarlequinQueryError, match="half way"):
        half_way.fetchall()
    connection.close()
    for options in ({"branch": "nowhere"}, {"isolation": "chaos"}):
        with pytest.raises(HarlequinConnectionError):
            LakeliteAdapter((path,), **options).connect()
    with pytest.raises(HarlequinConfigError, match="one lake"):
        LakeliteAdapter((path, path))


def test_without_a_path_it_is_a_temporary_lake(path):
    adapter = LakeliteAdapter(("",))
    connection = adapter.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert [item.label for item in connection.get_catalog().items[1].children] == ["t"]
    assert (adapter.connection_id, LakeliteAdapter((path,)).connection_id) == ("", path)
    connection.close()


def test_a_query_can_be_cancelled_and_the_catalog_read_meanwhile(connection):
    raised, begun = [], threading.Event()

    def run():
        begun.set()
        try:
            connection.execute("SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b").fetchall()
        except HarlequinQueryError as error:
            raised.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    assert len(connection.get_catalog().items) == 3
    while thread.is_alive():
        connection.cancel()
        thread.join(0.05)
    assert "interrupted" in raised[0]


def test_completions(connection):
    found = {(one.label, one.type_label) for one in connection.get_completions()}
    assert {("select", "kw"), ("zorder", "kw"), ("varchar", "type"), ("table_changes", "fn"), ("regexp_replace", "fn")} <= found
