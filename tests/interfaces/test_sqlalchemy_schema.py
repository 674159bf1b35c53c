"""SQLAlchemy's metadata over a lake: types both ways, and what the inspector tells. The rest: test_sqlalchemy.py."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from lakelite.interfaces.sqlalchemy import HUGEINT, MAP, STRUCT, TINYINT, UBIGINT, UHUGEINT, UINTEGER, USMALLINT, UTINYINT, Native
from lakelite.interfaces.sqlalchemy.types import type_of


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sa.Connection]:
    engine = sa.create_engine(f"lakelite:///{tmp_path}/lake")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


MOMENT = datetime.datetime(2026, 1, 31, 12, 30, 15, 123456)
TYPES: list[tuple[Any, str, Any]] = [
    (sa.Boolean(), "BOOLEAN", True),
    (TINYINT(), "TINYINT", -128),
    (sa.SmallInteger(), "SMALLINT", -32768),
    (sa.Integer(), "INTEGER", -(2**31)),
    (sa.BigInteger(), "BIGINT", 2**63 - 1),
    (HUGEINT(), "HUGEINT", 2**126),
    (UTINYINT(), "UTINYINT", 255),
    (USMALLINT(), "USMALLINT", 65535),
    (UINTEGER(), "UINTEGER", 2**32 - 1),
    (UBIGINT(), "UBIGINT", 2**64 - 1),
    (UHUGEINT(), "UHUGEINT", 2**100),
    (sa.Float(), "DOUBLE", 0.1),
    (sa.Float(24), "FLOAT", 0.5),
    (sa.Double(), "DOUBLE", 1e300),
    (sa.Numeric(10, 2), "DECIMAL(10,2)", decimal.Decimal("12345678.91")),
    (sa.Numeric(38, 10), "DECIMAL(38,10)", decimal.Decimal("1234567890123456789012345678.0123456789")),
    (sa.Numeric(10, 2, asdecimal=False), "DECIMAL(10,2)", 0.25),
    (sa.String(20), "VARCHAR", "bolt"),
    (sa.Text(), "VARCHAR", "nut 🔩"),
    (sa.Unicode(), "VARCHAR", "ü"),
    (sa.LargeBinary(), "BLOB", b"\x00\xff"),
    (sa.Date(), "DATE", MOMENT.date()),
    (sa.Time(), "TIME", MOMENT.time()),
    (sa.DateTime(), "TIMESTAMP", MOMENT),
    (sa.DateTime(timezone=True), "TIMESTAMP WITH TIME ZONE", MOMENT.replace(tzinfo=datetime.UTC)),
    (sa.Time(timezone=True), "TIME WITH TIME ZONE", MOMENT.time().replace(tzinfo=datetime.UTC)),
    (sa.Interval(), "INTERVAL", datetime.timedelta(days=400, microseconds=5)),
    (sa.Uuid(), "UUID", uuid.UUID(int=5)),
    (sa.Uuid(as_uuid=False), "UUID", str(uuid.UUID(int=5))),
    (sa.JSON(), "JSON", {"a": [1, None, "x"]}),
    (sa.Enum("small", "it's", name="size"), "ENUM('small', 'it''s')", "it's"),
    (sa.ARRAY(sa.Integer), "INTEGER[]", [1, None, 3]),
    (sa.ARRAY(sa.String, dimensions=2), "VARCHAR[][]", [["a"], []]),
    (STRUCT({"n": sa.Integer, 'a "b"': sa.ARRAY(sa.Numeric(4, 1))}), "STRUCT(n INTEGER, \"a \"\"b\"\"\" DECIMAL(4,1)[])", {"n": 1, 'a "b"': [decimal.Decimal("1.5")]}),
    (MAP(sa.String, sa.Integer), "MAP(VARCHAR, INTEGER)", {"x": 1}),
    (Native("INTEGER[3]"), "INTEGER[3]", (1, 2, 3)),
    (Native("TIMESTAMP_NS"), "TIMESTAMP_NS", MOMENT),
]  # fmt: skip


def test_each_type_is_made_and_read_and_keeps_its_values(connection: sa.Connection) -> None:
    key = sa.Column("id", sa.Integer, primary_key=True)
    table = sa.Table("t", sa.MetaData(), key, *(sa.Column(f"c{n}", kind) for n, (kind, *_) in enumerate(TYPES)))
    table.create(connection)
    values, nothing = {f"c{n}": value for n, (*_, value) in enumerate(TYPES)}, {f"c{n}": None for n in range(len(TYPES))}
    connection.execute(table.insert(), values)
    connection.execute(table.insert(), [nothing, nothing])
    connection.execute(table.insert(), [nothing, values])
    stored = dict(connection.execute(sa.text("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 't'")).all())
    first, second, *more = connection.execute(sa.select(table).order_by(key)).all()
    assert [row[1:] for row in more] == [second[1:], second[1:], first[1:]]
    again = sa.Table("t", sa.MetaData(), autoload_with=connection)
    for n, (kind, text, value) in enumerate(TYPES):
        name = f"c{n}"
        assert stored[name] == text, kind
        assert (first._mapping[name], type(first._mapping[name])) == (value, type(value)), kind
        assert second._mapping[name] is None, kind
        assert again.c[name].type.compile(connection.dialect).replace(", ", ",") == text.replace(", ", ","), kind
        assert isinstance(
            again.c[name].type.as_generic() if not isinstance(again.c[name].type, STRUCT | MAP | Native) else kind, kind._type_affinity
        ), kind
    assert connection.execute(sa.select(again)).first() is not None
    with pytest.raises(exc.CompileError, match="mysterious"):
        sa.Table("u", sa.MetaData(), sa.Column("mysterious", sa.types.NullType())).create(connection)


def test_a_type_without_a_class_keeps_its_text() -> None:
    for text in ("BIT", "BIGNUM", "UNION(n INTEGER, t VARCHAR)", "TIMESTAMP_S", "INTEGER[2][]"):
        assert isinstance(type_of(text), Native | sa.ARRAY)
    assert type_of("UNION(n INTEGER, t VARCHAR)").compile(dialect=sa.create_engine("lakelite://").dialect) == "UNION(n INTEGER, t VARCHAR)"


def test_what_the_inspector_tells(connection: sa.Connection) -> None:
    for statement in (
        "CREATE SCHEMA old",
        """CREATE TABLE "order" ("select" INTEGER, "at" VARCHAR DEFAULT 'x', "Name" DECIMAL(8, 2) DEFAULT 5 NOT NULL, b INTEGER,
            CONSTRAINT pk PRIMARY KEY ("select", b), CONSTRAINT "both" UNIQUE ("at", b), UNIQUE ("Name"), CONSTRAINT low CHECK (b > 0 AND b < 9))""",
        "CREATE TABLE old.past (id INTEGER CHECK ((id) > 0))",
        'CREATE VIEW v AS SELECT "at" AS word FROM "order"',
        "CREATE TEMP TABLE mine (id INTEGER PRIMARY KEY, UNIQUE (id))",
        "CREATE TEMP VIEW seen AS SELECT 1 AS one",
        "COMMENT ON TABLE \"order\" IS 'what was ordered'",
        'COMMENT ON COLUMN "order"."Name" IS \'of it\'',
        "COMMENT ON VIEW v IS 'words'",
    ):
        connection.execute(sa.text(statement))
    look = sa.inspect(connection)
    assert look.default_schema_name == "main"
    assert look.get_schema_names() == ["lake", "main", "old"]
    assert (look.get_table_names(), look.get_view_names(), look.get_table_names("old")) == (["order"], ["v"], ["past"])
    assert (look.get_temp_table_names(), look.get_temp_view_names()) == (["mine"], ["seen"])
    assert "snapshots" in look.get_view_names("lake")
    assert [look.has_table(*name) for name in (("order",), ("v",), ("mine",), ("past",), ("past", "old"), ("mine", "main"))] == [
        True,
        True,
        True,
        False,
        True,
        False,
    ]
    assert look.has_schema("old")
    assert not look.has_schema("none")
    columns = [(c["name"], str(c["type"]), c["nullable"], c["default"], c["comment"]) for c in look.get_columns("order")]
    assert columns == [
        ("select", "INTEGER", False, None, None),
        ("at", "VARCHAR", True, "'x'", None),
        ("Name", "DECIMAL(8, 2)", False, "5", "of it"),
        ("b", "INTEGER", False, None, None),
    ]
    assert look.get_pk_constraint("order") == {"name": "pk", "constrained_columns": ["select", "b"]}
    assert look.get_unique_constraints("order") == [
        {"name": "both", "column_names": ["at", "b"]},
        {"name": "order_name_key", "column_names": ["Name"]},
    ]
    assert look.get_check_constraints("order") == [{"name": "low", "sqltext": "(b > 0) AND (b < 9)"}]
    assert look.get_check_constraints("past", "old") == [{"name": "past_id_check", "sqltext": "id > 0"}]
    assert look.get_table_comment("order") == {"text": "what was ordered"}
    assert look.get_table_comment("v") == {"text": "words"}
    assert (look.get_indexes("order"), look.get_foreign_keys("order")) == ([], [])
    assert look.get_pk_constraint("mine")["constrained_columns"] == ["id"]
    assert look.get_pk_constraint("v")["constrained_columns"] == []
    assert look.get_view_definition("v").startswith("CREATE VIEW v AS SELECT")
    assert "1 AS one" in look.get_view_definition("seen")
    for missing in (
        lambda: look.get_columns("none"),
        lambda: look.get_view_definition("none", "old"),
        lambda: look.get_pk_constraint("mine", "main"),
    ):
        with pytest.raises(exc.NoSuchTableError):
            missing()


def test_a_temporary_table_hides_one_of_the_lake(connection: sa.Connection) -> None:
    connection.execute(sa.text("CREATE TABLE t (a INTEGER)"))
    connection.execute(sa.text("CREATE TEMP TABLE t (b VARCHAR)"))
    look = sa.inspect(connection)
    assert [c["name"] for c in look.get_columns("t")] == ["b"]
    assert [c["name"] for c in look.get_columns("t", "main")] == ["a"]


def test_a_lake_is_made_again_from_what_was_reflected(connection: sa.Connection, tmp_path: Path) -> None:
    made = sa.MetaData()
    columns = (
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("size", sa.Enum("s", "m"), comment="of it"),
        sa.Column("price", sa.Numeric(8, 2), server_default=sa.text("1.5")),
    )
    sa.Table("item", made, *columns, sa.CheckConstraint("price > 0", name="dear"), sa.UniqueConstraint("size", name="one"), comment="things")
    made.create_all(connection)
    read = sa.MetaData()
    read.reflect(connection)
    other = sa.create_engine(f"lakelite:///{tmp_path}/other")
    read.create_all(other)
    with other.connect() as there:
        looks = [sa.inspect(one) for one in (connection, there)]
        for ask in ("columns", "pk_constraint", "unique_constraints", "check_constraints", "table_comment"):
            here, again = (getattr(look, f"get_{ask}")("item") for look in looks)
            assert repr(here) == repr(again)
        there.execute(read.tables["item"].insert(), {"size": "s"})
        assert there.execute(sa.select(read.tables["item"])).all() == [(1, "s", decimal.Decimal("1.50"))]
    other.dispose()
