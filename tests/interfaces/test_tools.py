"""Other tools over a lake, each with the real package. The README shows the same lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

import lakelite

ROOT = Path(__file__).parents[2]
ROWS = [("bolt", 40, Decimal("0.10")), ("nut", 70, Decimal("0.05")), ("washer", None, None)]
DOCUMENTS = "\n".join(path.read_text("utf-8") for path in (ROOT / "README.md", *(ROOT / "lakelite").glob("docs/*.md")))


@pytest.fixture
def con(lake: Any) -> Any:
    lake.execute("CREATE TABLE stock (item VARCHAR, amount INTEGER, price DECIMAL(8, 2)); CREATE SCHEMA old")
    lake.execute("INSERT INTO stock VALUES ('bolt', 40, 0.10), ('nut', 70, 0.05), ('washer', NULL, NULL)")
    return lake


@pytest.fixture
def engine(con: Any, tmp_path: Path) -> Iterator[Any]:
    made = sqlalchemy.create_engine(f"lakelite:///{tmp_path / 'lake'}")
    yield made
    made.dispose()


def shown(code: str, con: Any, **modules: Any) -> Any:
    """What an example of the documents gives."""
    assert f"`{code}`" in DOCUMENTS, code
    return eval(code, {"con": con, **modules})


def test_polars(con: Any, engine: Any) -> None:
    import polars

    assert shown('con.execute("FROM stock").pl()', con).rows() == ROWS
    frame = shown('polars.read_database("FROM stock", con)', con, polars=polars)
    assert frame.rows() == ROWS
    assert frame.schema["amount"] == polars.Int64, "by rows, and types are guessed"
    few = polars.read_database("SELECT item FROM stock WHERE amount > ?", con.cursor(), execute_options={"parameters": (50,)})
    assert few.rows() == [("nut",)]
    batches = polars.read_database("SELECT range AS n FROM range(5)", con, iter_batches=True, batch_size=2)
    assert [batch["n"].to_list() for batch in batches] == [[0, 1], [2, 3], [4]]
    con.append("stock", frame)
    assert con.execute("SELECT count(*) FROM stock").fetchall() == [(6,)]
    plain = frame.drop("price")  # pandas, through which Polars goes here, has no decimals
    shown('df.write_database("new", engine)', con, df=plain, engine=engine)
    plain.write_database("new", engine, if_table_exists="append")
    assert con.execute("FROM new").fetchall() == [row[:2] for row in ROWS] * 2
    with engine.connect() as connection:
        assert polars.read_database("FROM new", connection).height == 6


def test_pandas(con: Any, engine: Any) -> None:
    import pandas

    frame = shown('con.execute("FROM stock").df()', con)
    assert frame["item"].to_list() == ["bolt", "nut", "washer"]
    shown('con.append("stock", df)', con, df=frame.head(1))
    assert con.execute("SELECT item FROM stock ORDER BY ALL LIMIT 2").fetchall() == [("bolt",), ("bolt",)]
    new = pandas.DataFrame(
        {"a": [1, 2], "b": ["x", None], "at": pandas.to_datetime(["2026-01-01 00:00:00", "2026-01-02 03:04:05"]), "c": [True, False]}
    )
    shown('df.to_sql("new", engine, index=False)', con, df=new, engine=engine)
    new.to_sql("new", engine, index=False, if_exists="append", method="multi")
    assert con.execute("FROM new").fetchall() == [(1, "x", datetime(2026, 1, 1), True), (2, None, datetime(2026, 1, 2, 3, 4, 5), False)] * 2
    assert [row[1] for row in con.execute("DESCRIBE new").fetchall()] == ["BIGINT", "VARCHAR", "TIMESTAMP", "BOOLEAN"]
    new.to_sql("new", engine, index=False, if_exists="replace", schema="old")
    pandas.testing.assert_frame_equal(pandas.read_sql_table("new", engine, schema="old"), new)
    assert len(shown('pandas.read_sql("FROM stock", engine)', con, pandas=pandas, engine=engine)) == 4
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        assert pandas.read_sql("SELECT item FROM stock WHERE amount = ?", con, params=(70,)).to_dict("list") == {"item": ["nut"]}


def test_narwhals(con: Any) -> None:
    import narwhals

    frame = shown('narwhals.from_arrow(con.execute("FROM stock"), backend="polars")', con, narwhals=narwhals)
    assert frame.filter(narwhals.col("amount") > 50)["item"].to_list() == ["nut"]
    lazy = shown('narwhals.from_native(con.duckdb().table("stock"))', con, narwhals=narwhals)
    con.execute("DELETE FROM stock")
    counted = lazy.select(narwhals.col("amount").sum()).collect()
    assert counted["amount"].to_list() == [110], "the snapshot of its connection"


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated:DeprecationWarning")  # asked by Ibis, of pandas
def test_ibis(con: Any, tmp_path: Path) -> None:
    import ibis

    con.execute("CREATE TABLE old.sold AS SELECT 'bolt' AS item, 5::BIGINT AS n; CREATE VIEW much AS FROM stock WHERE amount > 50")
    version = con.last_commit.snapshot_id
    tables = con.ibis()
    assert (tables.list_tables(), "old" in tables.list_databases()) == (["much", "stock"], True)
    stock = shown('con.ibis().table("stock")', con)
    assert [str(kind) for kind in stock.schema().types] == ["string", "int32", "decimal(8, 2)"]
    stock, sold = tables.table("stock"), tables.table("sold", database="old")
    joined = stock.left_join(sold, "item").group_by("item").agg(left=(stock.amount - sold.n.fill_null(0)).sum()).order_by("item")
    assert joined.to_pyarrow().to_pydict() == {"item": ["bolt", "nut", "washer"], "left": [35, 70, None]}
    assert tables.table("much").to_polars().rows() == ROWS[1:2]
    assert stock.order_by("item").price.execute().to_list()[:2] == [Decimal("0.10"), Decimal("0.05")]
    assert sum(batch.num_rows for batch in stock.to_pyarrow_batches(chunk_size=2)) == 3
    assert stock.join(ibis.memtable({"item": ["nut"]}), "item").count().to_pyarrow().as_py() == 1
    assert tables.sql("SELECT max(amount) AS most FROM stock").to_polars().item() == 70

    con.execute("DELETE FROM stock WHERE item = 'nut'")
    assert stock.count().to_pyarrow().as_py() == 3, "the snapshot that it was made for"
    assert con.ibis().table("stock").count().to_pyarrow().as_py() == 2
    con.pinned_version = version
    assert con.ibis().table("stock").count().to_pyarrow().as_py() == 3
    tables.disconnect()
    with pytest.raises(ibis.common.exceptions.TableNotFound):
        con.ibis().table("nowhere")
    con.confine()
    with pytest.raises(lakelite.InterfaceError, match="safe mode"):
        con.ibis()


def test_great_tables_and_altair(con: Any) -> None:
    import altair
    import great_tables

    page = shown('great_tables.GT(con.execute("FROM stock").df())', con, great_tables=great_tables).as_raw_html()
    cells = re.findall("<td[^>]*>(.*?)</td>", page)
    assert [*cells[0:3:2], *cells[3:6:2]] == ["bolt", "0.1", "nut", "0.05"], cells
    assert [float(cell) for cell in cells[1:5:3]] == [40, 70]
    code = 'altair.Chart(con.execute("FROM stock").df()).mark_bar().encode(x="item", y="amount")'
    chart = json.loads(shown(code, con, altair=altair).to_json())
    (values,) = chart["datasets"].values()
    assert [(row["item"], row["amount"]) for row in values] == [("bolt", 40), ("nut", 70), ("washer", None)]
    assert chart["encoding"]["y"]["type"] == "quantitative"


@pytest.mark.parametrize("over", ["autocommit", "con", "engine"])
def test_jupysql(con: Any, engine: Any, over: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setenv("PLOOMBER_STATS_ENABLED", "false")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    con.autocommit = over != "con"
    shell.user_ns |= {"con": con, "engine": engine}

    def run(line: str) -> Any:
        done = shell.run_cell(line)
        assert done.error_in_exec is None, line
        return done.result

    for line in ("%load_ext sql", "%sql engine" if over == "engine" else "%sql con"):
        assert f"`{line}`" in DOCUMENTS
        run(line)
    assert "`%sql SELECT * FROM stock`" in DOCUMENTS
    assert list(run("%sql SELECT * FROM stock")) == ROWS
    assert list(run("%%sql\nCREATE TABLE mine AS FROM stock")) == []
    assert list(run("%%sql\nINSERT INTO mine VALUES ('gear', 1, 2)")) == []
    assert not con.in_transaction
    assert con.execute("SELECT count(*) FROM mine").fetchall() == [(4,)]
    con.rollback()
    run("least = 50")
    assert run("%sql SELECT item FROM stock WHERE amount > {{least}}").DataFrame()["item"].to_list() == ["nut"]
    failed = shell.run_cell("%sql SELECT nix FROM stock")
    assert not failed.success
    assert 'column "nix" does not exist' in str(failed.error_in_exec or "") + capsys.readouterr().err
    if over == "engine":
        assert "stock" in str(run("%sqlcmd tables"))
    run("%sql --close " + (str(engine.url) if over == "engine" else "Connection"))


def test_marimo(con: Any, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import marimo
    from marimo._sql.get_engines import get_engines_from_variables

    view = con.duckdb()
    found = get_engines_from_variables([("con", con), ("view", view), ("engine", engine)])
    assert [(name, one.source) for name, one in found] == [("con", "dbapi"), ("view", "duckdb"), ("engine", "sqlalchemy")]
    for name, one in found[1:]:
        databases = one.get_databases(include_schemas=True, include_tables=True, include_table_details=False)
        assert "stock" in [table.name for database in databases for schema in database.schemas for table in schema.tables], name
    assert marimo.sql("SELECT item FROM stock ORDER BY item", engine=engine, output=False)["item"].to_list() == ["bolt", "nut", "washer"]
    assert shown('mo.sql("FROM stock", engine=con)', con, mo=marimo).rows() == ROWS
    assert marimo.sql("FROM stock WHERE amount > 50", engine=view, output=False).rows() == ROWS[1:2]
    assert marimo.sql("UPDATE stock SET amount = 0", engine=con, output=False) is None
    con.autocommit = False
    assert marimo.sql("SELECT sum(amount) AS s FROM stock", engine=con, output=False).item() == 0
    assert not con.in_transaction

    monkeypatch.setenv("LAKE", str(tmp_path / "lake"))
    app = marimo.App()

    @app.cell
    def opened() -> Any:
        import os

        import marimo as mo

        import lakelite

        lake = lakelite.connect(os.environ["LAKE"], autocommit=True)
        return lake, mo

    @app.cell
    def asked(lake: Any, mo: Any) -> Any:
        found = mo.sql("SELECT item FROM stock ORDER BY item LIMIT 1", engine=lake)
        return (found,)

    _, made = app.run()
    assert made["found"].rows() == [("bolt",)]
    made["lake"].close()


def test_arrow_capsules(con: Any) -> None:
    import pyarrow

    assert shown('pyarrow.table(con.execute("FROM stock"))', con, pyarrow=pyarrow).to_pydict()["item"] == ["bolt", "nut", "washer"]
    con.append("stock", con.execute("FROM stock LIMIT 1"))
    assert con.execute("SELECT count(*) FROM stock").fetchall() == [(4,)]
