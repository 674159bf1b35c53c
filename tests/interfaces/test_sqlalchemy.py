"""SQLAlchemy over a lake: engines, transactions, ORM sessions, numbered keys, statements of our own. Reflection: test_sqlalchemy_schema.py."""

from __future__ import annotations

import datetime
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc, orm
from sqlalchemy.orm.exc import StaleDataError

import lakelite
from lakelite.interfaces.sqlalchemy import at_version, insert, needed
from lakelite.interfaces.sqlalchemy.ddl import LeftOut


class Base(orm.DeclarativeBase):
    pass


class Depot(Base):
    __tablename__ = "depot"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]
    version: orm.Mapped[int] = orm.mapped_column()
    items: orm.Mapped[list[Item]] = orm.relationship(back_populates="depot", cascade="all, delete-orphan", order_by="Item.number")
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012


class Item(Base):
    __tablename__ = "item"
    number: orm.Mapped[int] = orm.mapped_column("id", primary_key=True)
    depot_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("depot.id"))
    what: orm.Mapped[str]
    depot: orm.Mapped[Depot] = orm.relationship(back_populates="items")


DEPOT: Any = Depot.__table__
ITEM: Any = Item.__table__


def url(path: Path, **query: str) -> sa.URL:
    return sa.URL.create("lakelite", database=str(path / "lake"), query=query)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url(tmp_path))
    with pytest.warns(LeftOut, match=r"foreign key \(depot_id\) of table item"):
        Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


def insert_into_t(place: sa.URL) -> None:
    engine = sa.create_engine(place)
    try:
        with engine.connect() as connection:
            connection.execute(sa.text("INSERT INTO t VALUES (1)"))
    finally:
        engine.dispose()


def names(engine: sa.Engine) -> list[str]:
    with orm.Session(engine) as session:
        return list(session.scalars(sa.select(Depot.name).order_by(Depot.id)))


def test_a_unit_of_work(engine: sa.Engine) -> None:
    flushed: list[str] = []
    with orm.Session(engine) as session:
        sa.event.listen(session, "after_flush", lambda session, _: flushed.extend(type(one).__name__ for one in session.new))
        session.add_all([Depot(name="north", items=[Item(what="bolt"), Item(what="nut")]), Depot(name="south", items=[Item(what="gear")])])
        session.commit()
        assert sorted(flushed) == ["Depot", "Depot", "Item", "Item", "Item"]
        assert session.execute(sa.select(Item.number, Item.depot_id, Item.what).order_by(Item.number)).all() == [
            (1, 1, "bolt"),
            (2, 1, "nut"),
            (3, 2, "gear"),
        ]
        north = session.get_one(Depot, 1)
        north.name, north.items[0].what = "far north", "screw"
        del north.items[1]
        session.delete(session.get_one(Depot, 2))
        session.merge(Depot(id=7, name="east"))
        session.add(Depot(name="west"))
        session.commit()
        assert session.execute(sa.select(Depot.id, Depot.name, Depot.version).order_by(Depot.id)).all() == [
            (1, "far north", 2),
            (7, "east", 1),
            (8, "west", 1),
        ]
        assert session.scalars(sa.select(Item.what)).all() == ["screw"]
        many = session.execute(sa.update(Item).values(what=Item.what + "!").where(Item.depot.has(name="far north")))
        assert many.rowcount == 1
        session.execute(sa.update(Depot), [{"id": 7, "name": "e", "version": 1}, {"id": 8, "name": "w", "version": 1}])
        assert session.execute(sa.delete(Item).returning(Item.what)).all() == [("screw!",)]
        session.rollback()
        assert session.scalars(sa.select(Item.what)).all() == ["screw"]


def test_savepoints(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        with session.begin_nested():
            session.add(Depot(name="kept"))
        undone = session.begin_nested()
        session.add(Depot(name="undone"))
        session.flush()
        undone.rollback()
        session.commit()
    assert names(engine) == ["kept"]


def test_an_integer_key_is_numbered(engine: sa.Engine) -> None:
    def what() -> list[tuple[int, str]]:
        return [(number, text) for number, text in connection.execute(sa.select(ITEM.c.id, ITEM.c.what).order_by(ITEM.c.id))]

    with engine.connect() as connection:
        assert connection.execute(ITEM.insert().values(depot_id=1, what="a")).inserted_primary_key == (1,)
        assert connection.execute(ITEM.insert(), {"depot_id": 1, "what": "b"}).inserted_primary_key == (2,)
        given = [{"depot_id": 1, "what": text} for text in "cdefg"]
        assert connection.execute(ITEM.insert().returning(ITEM.c.what, ITEM.c.id), given).all() == list(zip("cdefg", range(3, 8), strict=True))
        assert connection.execute(ITEM.insert(), [{"depot_id": 2, "what": text} for text in "hi"]).all() == []
        connection.execute(ITEM.insert().values([{"depot_id": 3, "what": text} for text in "jkl"]))
        connection.execute(ITEM.insert().from_select(["depot_id", "what"], sa.select(ITEM.c.depot_id, ITEM.c.what + "!").where(ITEM.c.depot_id == 2)))
        assert [number for number, _ in what()] == list(range(1, 15))
        assert [text for _, text in what()][:12] == list("abcdefghijkl")
        assert {text for _, text in what()[12:]} == {"h!", "i!"}
        connection.execute(ITEM.insert(), [{"id": 40, "depot_id": 1, "what": "given"}, {"id": 50, "depot_id": 1, "what": "given"}])
        assert connection.execute(sa.insert(Item).values(depot_id=1, what="next")).inserted_primary_key == (51,)
    with orm.Session(engine) as session:
        session.execute(sa.insert(Item), [{"depot_id": 1, "what": text} for text in "xy"])
        assert session.execute(sa.insert(Item).values(number=9, depot_id=1, what="z").returning(Item.number)).scalar_one() == 9
        returned = session.scalars(sa.insert(Item).returning(Item, sort_by_parameter_order=True), [{"depot_id": 1, "what": text} for text in "pq"])
        assert [(one.number, one.what) for one in returned] == [(10, "p"), (11, "q")]
        assert session.scalars(sa.select(Item.number).order_by(Item.number)).all() == [1, 2, 9, 10, 11]


def test_other_keys_and_rows_that_are_nothing_but_a_number(tmp_path: Path) -> None:
    metadata = sa.MetaData()
    only = sa.Table("only", metadata, sa.Column("id", sa.Integer, primary_key=True))
    unlike = sa.Table("unlike", metadata, sa.Column("id", sa.Uuid, primary_key=True, default=uuid.uuid4), sa.Column("n", sa.Integer))
    marked = sa.Table(
        "marked",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("n", sa.Integer),
        sa.Column("s", sa.Integer, insert_sentinel=True, nullable=False),
    )
    bare = sa.Table(
        "bare", metadata, sa.Column("id", sa.Integer, sa.Identity(), primary_key=True), sa.Column("n", sa.Integer), implicit_returning=False
    )
    fixed = sa.Table("fixed", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False), sa.Column("n", sa.Integer))
    engine = sa.create_engine(url(tmp_path))
    metadata.create_all(engine)
    with engine.connect() as connection:
        connection.execute(only.insert())
        connection.execute(only.insert(), [{}, {}, {}])
        assert connection.scalars(sa.select(only).order_by(only.c.id)).all() == [1, 2, 3, 4]
        made = connection.execute(
            unlike.insert().returning(unlike.c.id, unlike.c.n, sort_by_parameter_order=True), [{"n": n} for n in range(3)]
        ).all()
        assert [n for _, n in made] == [0, 1, 2]
        assert all(isinstance(key, uuid.UUID) for key, _ in made)
        connection.execute(marked.insert().returning(marked.c.id, sort_by_parameter_order=True), [{"n": n, "s": n} for n in range(3)])
        assert connection.execute(sa.select(marked.c.id, marked.c.n).order_by(marked.c.id)).all() == [(1, 0), (2, 1), (3, 2)]
        connection.execute(bare.insert(), {"n": 5})
        assert connection.execute(sa.select(bare)).all() == [(1, 5)]
        with pytest.raises(exc.CompileError, match="table bare has implicit_returning=False"):
            connection.execute(bare.insert(), [{"n": 5}, {"n": 6}])
        with pytest.warns(exc.SAWarning, match="no Python-side or server-side default"), pytest.raises(exc.IntegrityError, match="NOT NULL"):
            connection.execute(fixed.insert(), {"n": 5})
    assert str(fixed.insert().compile(engine)) == "INSERT INTO fixed (id, n) VALUES ($1, $2)"
    engine.dispose()


def test_numbers_when_two_meet(engine: sa.Engine) -> None:
    """What was not told is numbered anew on top of the winner; what was told is a conflict."""
    one = {"name": "north", "version": 1}
    with engine.connect() as mine, engine.connect().execution_options(isolation_level="AUTOCOMMIT") as other:
        mine.execute(DEPOT.insert().inline(), one)
        assert other.execute(DEPOT.insert(), one).inserted_primary_key == (1,)
        mine.commit()
        assert mine.scalars(sa.select(DEPOT.c.id).order_by(DEPOT.c.id)).all() == [1, 2]
        mine.commit()
        assert mine.execute(DEPOT.insert(), one).inserted_primary_key == (3,)
        assert other.execute(DEPOT.insert(), one).inserted_primary_key == (3,)
        with pytest.raises(exc.OperationalError) as caught:
            mine.commit()
        assert isinstance(caught.value.orig, lakelite.TransactionConflict)
        assert caught.value.orig.sqlstate == "40001"
        assert not caught.value.connection_invalidated
        mine.rollback()
        assert mine.execute(DEPOT.insert(), one).inserted_primary_key == (4,)
        mine.commit()


def test_who_was_told_a_number_of_rows_can_rely_on_it(engine: sa.Engine, tmp_path: Path) -> None:
    with orm.Session(engine) as session:
        session.add(Depot(name="north"))
        session.commit()
    with orm.Session(engine, expire_on_commit=False) as mine, orm.Session(engine) as other:
        depot = mine.get_one(Depot, 1)
        mine.commit()
        other.get_one(Depot, 1).name = "theirs"
        depot.name = "mine"
        mine.flush()  # one row, it was told
        other.commit()
        with pytest.raises(exc.OperationalError, match="another number of rows than you were told"):
            mine.commit()
        mine.rollback()
        depot.name = "mine again"
        mine.expunge(depot)
        mine.merge(Depot(id=1, name="by merge", version=2))
        mine.commit()
        mine.add(depot)
        orm.attributes.set_committed_value(depot, "version", 1)
        depot.name = "late"
        with pytest.raises(StaleDataError):
            mine.flush()
    assert names(engine) == ["by merge"]


def test_isolation_levels(engine: sa.Engine, tmp_path: Path) -> None:
    with engine.connect() as connection:
        assert connection.default_isolation_level == connection.get_isolation_level() == "SERIALIZABLE"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(DEPOT.insert(), {"name": "at once", "version": 1})
        assert names(engine) == ["at once"]
    for level in ("SNAPSHOT", "WRITE SERIALIZABLE", "SERIALIZABLE"):
        with engine.connect().execution_options(isolation_level=level) as connection:
            assert connection.get_isolation_level() == level
            driver: Any = connection.connection.driver_connection
            assert (driver.isolation, driver.autocommit) == (level.lower(), False)
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "SERIALIZABLE"
    with pytest.raises(exc.ArgumentError, match="SNAPSHOT"):
        engine.connect().execution_options(isolation_level="READ COMMITTED")
    engine = sa.create_engine(url(tmp_path, isolation="snapshot"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        assert (connection.get_isolation_level(), connection.default_isolation_level) == ("AUTOCOMMIT", "SNAPSHOT")
    engine.dispose()


def test_the_url(tmp_path: Path) -> None:
    path = url(tmp_path, author="ann", statement_timeout_ms="60000", preload="no")
    assert path.render_as_string() == f"lakelite:///{tmp_path}/lake?author=ann&preload=no&statement_timeout_ms=60000"
    engine = sa.create_engine(path)
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE t (a INTEGER)"))
        assert connection.execute(sa.text("SELECT value FROM lake.settings WHERE name = 'statement_timeout_ms'")).scalar() == "60000"
        connection.commit()
        assert connection.execute(sa.text("SELECT author FROM lake.snapshots WHERE snapshot_id = 1")).scalar() == "ann"
        connection.execute(sa.text("SELECT a FROM t"))
        connection.commit()
        raw: Any = connection.connection.driver_connection
        raw.autocommit = True
        raw.execute("CREATE BRANCH dev")
    engine.dispose()
    for query, error, message in (
        ({"read_only": "true"}, exc.OperationalError, "read-only"),
        ({"branch": "dev", "read_only": "1"}, exc.OperationalError, "read-only"),
        ({"isolation": "none"}, exc.ProgrammingError, "no isolation level"),
        ({"branch": "prod"}, exc.ProgrammingError, 'branch "prod" does not exist'),
        ({"statement_timeout": "5"}, exc.NotSupportedError, "did you mean"),
        ({"create": "perhaps"}, ValueError, "not true/false"),
    ):
        with pytest.raises(error, match=message):
            insert_into_t(url(tmp_path, **query))
    with pytest.raises(exc.ArgumentError, match="a lake has no host"):
        sa.create_engine("lakelite://host/lake").connect()
    with pytest.raises(exc.OperationalError, match="no lake"):
        sa.create_engine(f"lakelite:///{tmp_path}/none?create=false").connect()


def test_a_temporary_lake_and_connections_that_were_closed(engine: sa.Engine, tmp_path: Path) -> None:
    temporary = sa.create_engine("lakelite://")
    with temporary.begin() as connection:
        connection.execute(sa.text("CREATE TABLE t AS SELECT 5 AS a"))
    with temporary.connect() as connection:
        assert connection.execute(sa.text("SELECT a FROM t")).scalar() == 5
    temporary.dispose()
    assert isinstance(temporary.pool, sa.StaticPool)
    with engine.connect() as first, engine.connect() as second:
        assert first.connection.driver_connection is not second.connection.driver_connection
    with engine.connect() as connection:
        closed: Any = connection.connection.driver_connection
        closed.close()
        with pytest.raises(exc.InterfaceError) as caught:
            connection.execute(sa.text("SELECT 1"))
        assert caught.value.connection_invalidated
    careful = sa.create_engine(url(tmp_path), pool_pre_ping=True)
    with careful.connect() as connection:
        closed = connection.connection.driver_connection
    closed.close()
    with careful.connect() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
    careful.dispose()


def test_on_conflict(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.execute(DEPOT.insert(), [{"id": n, "name": f"d{n}", "version": 1} for n in (1, 2)])
        base = insert(DEPOT).values(id=2, name="new", version=5)
        changed = base.on_conflict_do_update(index_elements=[DEPOT.c.id], set_={"name": base.excluded.name, DEPOT.c.version: DEPOT.c.version + 1})
        assert connection.execute(changed.returning(DEPOT.c.name, DEPOT.c.version)).all() == [("new", 2)]
        unchanged = base.on_conflict_do_update(index_elements=["id"], set_={"name": "never"}, where=DEPOT.c.version > 9)
        counted = {"preserve_rowcount": True}
        assert connection.execute(unchanged, execution_options=counted).rowcount == 0
        assert connection.execute(base.on_conflict_do_nothing(), execution_options=counted).rowcount == 0
        many = insert(DEPOT)
        many = many.on_conflict_do_update(index_elements=["id"], set_={"name": many.excluded.name}).returning(DEPOT.c.id, DEPOT.c.name)
        rows = [{"id": n, "name": f"again {n}", "version": 1} for n in (1, 2, 3)]
        assert sorted(connection.execute(many, rows).all()) == [(1, "again 1"), (2, "again 2"), (3, "again 3")]
        for wrong, message in (
            (base.on_conflict_do_update(index_elements=["id"], set_={"nam": "x"}), "no column of table depot"),
            (base.on_conflict_do_nothing(index_elements=["id"], index_where=DEPOT.c.id > 5), "no index_where"),
        ):
            with pytest.raises(exc.CompileError, match=message):
                connection.execute(wrong)


def test_time_travel(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        for name in ("north", "south"):
            session.add(Depot(name=name, items=[Item(what=name)]))
            session.commit()
        then = session.execute(sa.text("SELECT max(snapshot_id), max(committed_at) FROM lake.snapshots")).one()
        session.execute(sa.update(Item).values(what="changed"))
        session.commit()
        past = at_version(ITEM, then[0])
        assert session.scalars(sa.select(past.c.what).order_by(past.c.id)).all() == ["north", "south"]
        assert session.scalars(sa.select(at_version(ITEM, then[0] - 1).c.what)).all() == ["north"]
        old = orm.aliased(Item, at_version(Item, then[0], "old"))
        changes = sa.select(old.what, Item.what).join(Item, Item.number == old.number).order_by(old.number)
        assert session.execute(changes).all() == [("north", "changed"), ("south", "changed")]
        moment = at_version(ITEM, then[1].replace(tzinfo=datetime.UTC))
        assert session.scalar(sa.select(sa.func.count()).select_from(moment).where(moment.c.what != "changed")) == 2
        branch = at_version(ITEM, "main")
        assert session.scalars(sa.select(branch.c.what).distinct()).all() == ["changed"]
    assert "FROM depot AT (VERSION => " in str(sa.select(at_version(DEPOT, 4, "old").c.id))


def test_what_a_lake_does_not_have_is_refused_by_name_or_left_out_with_a_warning(tmp_path: Path) -> None:
    metadata = sa.MetaData()
    columns = [sa.Column("id", sa.Integer, primary_key=True), sa.Column("a", sa.Integer, index=True), sa.Column("b", sa.Integer)]
    table = sa.Table("t", metadata, *columns, sa.Index("one", "a", "b", unique=True))
    engine = sa.create_engine(url(tmp_path))
    with pytest.warns(LeftOut, match="the index ix_t_a is left out"):
        metadata.create_all(engine)
    with engine.connect() as connection:
        connection.execute(table.insert(), {"a": 1, "b": 1})
        with pytest.raises(exc.IntegrityError):
            connection.execute(table.insert(), {"a": 1, "b": 1})
        other = sa.Table("u", sa.MetaData(), sa.Column("a", sa.Integer), sa.Column("b", sa.Integer, sa.Computed("a + 1")))
        key = sa.ForeignKeyConstraint([table.c.a], [table.c.id])
        table.append_constraint(key)
        for statement, message in (
            (sa.schema.CreateTable(other), "no generated columns"),
            (sa.schema.AddConstraint(key), "no foreign keys"),
            (sa.schema.CreateIndex(sa.Index("e", table.c.a + 1, unique=True, _table=table)), "UNIQUE of columns only"),
            (sa.select(table).with_for_update(), "locks no rows"),
            (sa.select(table).fetch(5, with_ties=True), "no WITH TIES"),
            (sa.select(sa.Sequence("s").next_value()), "no sequences"),
        ):
            with pytest.raises(exc.CompileError, match=message):
                connection.execute(statement)
        connection.execute(sa.schema.DropIndex(sa.Index("ix_t_a", _table=table)))
        connection.execute(sa.schema.DropIndex(next(index for index in table.indexes if index.name == "one")))
        connection.execute(table.insert(), {"a": 1, "b": 1})
        connection.commit()
    with warnings.catch_warnings(action="error"):
        metadata.drop_all(engine)
    engine.dispose()


def test_partitions_and_options(tmp_path: Path) -> None:
    columns = (sa.Column("region", sa.String), sa.Column("sold", sa.Date))
    table = sa.Table(
        "sales", sa.MetaData(), *columns, lakelite_partitioned_by="region, year(sold)", lakelite_with={"compression": "zstd", "inline_rows": 5}
    )
    engine = sa.create_engine(url(tmp_path))
    table.create(engine)
    with engine.connect() as connection:
        (text,) = connection.execute(sa.text("SHOW CREATE TABLE sales")).one()
        assert "PARTITIONED BY (region, year(sold))" in text
        assert "compression = 'zstd'" in text
    engine.dispose()


def test_expressions(engine: sa.Engine) -> None:
    document = sa.literal({"a": [1, {"b": "x", 'quo"te': True}]}, sa.JSON)
    words = sa.literal("Bolt")
    cases: list[tuple[Any, Any]] = [
        (sa.cast(document, sa.JSON)["a"][0].as_integer(), 1),
        (sa.cast(document, sa.JSON)[("a", 1, "b")].as_string(), "x"),
        (sa.cast(document, sa.JSON)[("a", 1, 'quo"te')].as_boolean(), True),
        (sa.cast(document, sa.JSON)["a"][1], {"b": "x", 'quo"te': True}),
        (words.ilike("b%"), True),
        (words.not_ilike("b/%", escape="/"), True),
        (words.regexp_match("^b", "i"), True),
        (~words.regexp_match("^b"), True),
        (words.regexp_replace("[a-z]", "-"), "B-lt"),
        (sa.literal(-7) // 2, -4),
        (sa.literal(-7) / 2, -3.5),
        (sa.literal(7).bitwise_xor(2), 5),
        (sa.func.char_length(words), 4),
        (sa.cast([1, 2, 3], sa.ARRAY(sa.Integer))[2], 2),
        (sa.cast([1, 2, 3], sa.ARRAY(sa.Integer))[2:3], [2, 3]),
        (sa.literal(2) == sa.any_(sa.cast([1, 2], sa.ARRAY(sa.Integer))), True),
        (sa.literal(5).in_([]), False),
        (sa.tuple_(sa.literal(1), sa.literal("x")).in_([(1, "x"), (2, "y")]), True),
        (sa.literal(datetime.timedelta(days=1, seconds=5)), datetime.timedelta(days=1, seconds=5)),
        (sa.literal("100%") + sa.literal(":no"), "100%:no"),
    ]
    with engine.connect() as connection:
        for expression, value in cases:
            assert connection.scalar(sa.select(expression)) == value, str(expression.compile(engine))
        numbers = sa.values(sa.column("n", sa.Integer), name="v").data([(n,) for n in range(5)])
        assert connection.scalars(sa.select(numbers).order_by(numbers.c.n).offset(3)).all() == [3, 4]
        assert connection.scalars(sa.select(numbers).order_by(numbers.c.n).fetch(1).offset(2)).all() == [2]
        text = sa.func.aggregate_strings(sa.cast(numbers.c.n, sa.String), ",").aggregate_order_by(numbers.c.n)
        assert connection.scalar(sa.select(text)) == "0,1,2,3,4"


def test_changes_with_a_source(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.execute(DEPOT.insert(), [{"id": n, "name": f"d{n}", "version": n} for n in (1, 2)])
        connection.execute(ITEM.insert(), [{"id": n, "depot_id": n % 2 + 1, "what": "x"} for n in range(4)])
        named = sa.update(ITEM).values(what=DEPOT.c.name).where(ITEM.c.depot_id == DEPOT.c.id)
        assert connection.execute(named).rowcount == 4
        late = sa.select(DEPOT.c.id).where(DEPOT.c.version > 1).cte("late")
        assert connection.execute(sa.delete(ITEM).where(ITEM.c.depot_id == late.c.id).returning(ITEM.c.what)).all() == [("d2",), ("d2",)]
        changed = connection.execute(
            sa.update(DEPOT).where(DEPOT.c.id == sa.bindparam("key")).values(version=9), [{"key": 1}, {"key": 2}, {"key": 3}]
        )
        assert changed.rowcount == 2


def test_schemas_are_translated_and_upserts_are_numbered(tmp_path: Path) -> None:
    metadata = sa.MetaData()
    columns = (sa.Column("id", sa.Integer, primary_key=True), sa.Column("x", sa.String, unique=True))
    table = sa.Table("t", metadata, *columns, schema="per")
    engine = sa.create_engine(url(tmp_path)).execution_options(schema_translate_map={"per": "other"})
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("other"))
        metadata.create_all(connection)
        connection.execute(table.insert(), {"x": "a"})
        assert connection.execute(table.insert().returning(table.c.id), [{"x": "b"}, {"x": "c"}]).all() == [(2,), (3,)]
        upsert = insert(table)
        upsert = upsert.on_conflict_do_update(index_elements=["x"], set_={"x": upsert.excluded.x + "!"})
        assert connection.execute(upsert.returning(table.c.id, table.c.x), [{"x": "b"}, {"x": "d"}]).all() == [(2, "b!"), (5, "d")]
        connection.execute(insert(table).on_conflict_do_nothing(index_elements=["x"]), [{"x": "d"}, {"x": "e"}])
        assert connection.scalars(sa.select(table.c.id).order_by(table.c.id)).all() == [1, 2, 3, 5, 7]
    engine.dispose()


def test_threads_that_insert_at_once_get_numbers_of_their_own(engine: sa.Engine) -> None:
    def insert_three(number: int) -> list[int]:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            return [connection.execute(DEPOT.insert(), {"name": str(number), "version": 1}).inserted_primary_key[0] for _ in range(3)]

    with ThreadPoolExecutor(3) as threads:
        given = [number for numbers in threads.map(insert_three, range(3)) for number in numbers]
    assert sorted(given) == list(range(1, 10))


def test_what_has_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    needed.check()
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.0.51")
    with pytest.raises(ImportError, match=r"made for SQLAlchemy 2\.1, and this is 2\.0\.51: pip install"):
        needed.check()

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    with pytest.raises(ImportError, match="SQLAlchemy is not installed"):
        needed.check()
