"""Random statements on one connection, in autocommit and in transactions, against the same statements on plain DuckDB tables.

After each statement every table has to hold the same multiset of rows, and both have to say the same row count or both to
fail. What each version held is kept, so that time travel is checked too. Limits are small, so that rows lie inline, in
Parquet files, behind deletion vectors and in flushed files.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from oracle import Oracle, Rows, multiset

import lakelite

LIMITS = {"inline_rows": 3, "flush_fragments": 2, "row_group_rows": 8}
NAMES = ("a", "b", "c")
VALUES = {
    "BIGINT": ("7", "-9000000000", "NULL"),
    "DOUBLE": ("1.5", "'nan'::DOUBLE", "'-infinity'::DOUBLE", "-0.0::DOUBLE", "NULL"),
    "DECIMAL(9,2)": ("1.25", "-3", "NULL"),
    "BOOLEAN": ("true", "false", "NULL"),
    "DATE": ("DATE '2024-02-29'", "DATE '1900-01-01'", "NULL"),
    "TIMESTAMP": ("TIMESTAMP '2024-02-29 12:00:00.000001'", "NULL"),
    "INTEGER[]": ("[1, 2]", "[]", "[NULL]", "NULL"),
    "STRUCT(m INTEGER, n VARCHAR)": ("{'m': 1, 'n': 'x'}", "{'m': NULL, 'n': NULL}", "NULL"),
    "BLOB": ("'\\x00\\xFF'::BLOB", "''::BLOB", "NULL"),
    "UUID": ("'00000000-0000-0000-0000-00000000000f'::UUID", "NULL"),
    "HUGEINT": ("99999999999999999999999999999999999999", "0", "NULL"),
    "VARCHAR": ("'x'", "''", "'é''\"'", "NULL"),
}
PHASES = set(Phase) - {Phase.shrink, Phase.explain}  # a failing run is reported at once: shrinking it takes many minutes
SEEDS = st.binary(min_size=6, max_size=6)  # integers would be small ones most of the time
reached: Counter[str] = Counter()


class Draw:
    """Makes a statement out of a seed of hypothesis's, which can leave steps out of a failing run and reports the texts."""

    def __init__(self, seed: bytes, oracle: Oracle) -> None:
        self._random = random.Random(seed)
        self.oracle = oracle
        self.tables = oracle.tables()

    def one(self, choices: Sequence[Any]) -> Any:
        return self._random.choice(choices)

    def chance(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0

    def number(self, most: int = 9) -> int:
        return self._random.randint(0, most)

    def table(self) -> str:
        """One that is there, and now and then one that is not."""
        return self.one(NAMES) if not self.tables or self.chance(12) else self.one(self.tables)

    def type_of_x(self, table: str) -> str:
        found = self.oracle.duck.execute("SELECT data_type FROM duckdb_columns() WHERE table_name = ? AND column_name = 'x'", [table]).fetchall()
        return found[0][0] if found and found[0][0] in VALUES else "VARCHAR"

    def k(self) -> str:
        return self.one(("NULL", "2147483647", "-1")) if self.chance(6) else str(self.number())

    def s(self) -> str:
        return self.one(("'one'", "'two'", "''", "NULL"))

    def x(self, table: str) -> str:
        return self.one(VALUES[self.type_of_x(table)])

    def condition(self, table: str) -> str:
        simple = self._simple(table)
        shape = self.number(9)
        if shape < 6:
            return simple
        other = self._simple(table)
        return {6: f"NOT ({simple})", 7: f"({simple}) AND ({other})", 8: f"({simple}) OR ({other})", 9: f"({simple}) IS NULL"}[shape]

    def _simple(self, table: str) -> str:
        other = self.table()
        return self.one(
            (
                f"k = {self.k()}",
                f"k > {self.k()}",
                f"k BETWEEN 2 AND {self.number()}",
                f"k IN ({self.k()}, {self.k()})",
                "k IS NULL",
                f"{table}.k <> {self.k()}",
                f"s = {self.s()}",
                "s IS NOT NULL",
                "s LIKE 'o%'",
                f"x = {self.x(table)}",
                f"x IS DISTINCT FROM {self.x(table)}",
                "x IS NULL",
                "k % 2 = 0",
                "s = 'one' AND k < 5",
                f"k IN (SELECT k FROM {other})",
                f"k NOT IN (SELECT k FROM {other})",
                f"k = (SELECT max(k) FROM {table})",
                f"k < (SELECT avg(k) FROM {other})",
                f"EXISTS (SELECT 1 FROM {other} o WHERE o.k = {table}.k AND o.s IS NOT NULL)",
                "CAST(s AS INTEGER) = 1",
                "k + k > 8",
                "true",
            )
        )

    def query(self, target: str) -> str:
        """Rows of the three columns."""
        source = self.table()
        where = f" WHERE {self.condition(source)}" if self.chance(2) else ""
        return self.one(
            (
                f"SELECT k, s, x FROM {source}{where}",
                f"SELECT * FROM {source}{where}",
                f"SELECT k + 1 AS k, upper(s) AS s, {self.x(target)} AS x FROM {source}{where}",
                f"SELECT range::INTEGER AS k, 'r' || range AS s, {self.x(target)} AS x FROM range({self.number(12)})",
                f"SELECT k, min(s) AS s, max(x) AS x FROM {source}{where} GROUP BY k",
            )
        )

    # One function per kind of statement.

    def create(self) -> str:
        name, kind = self.one(NAMES), self.one(tuple(VALUES))
        how = self.one(("CREATE TABLE", "CREATE TABLE", "CREATE TABLE", "CREATE OR REPLACE TABLE", "CREATE TABLE IF NOT EXISTS"))
        default = self.one(("", f" DEFAULT {VALUES[kind][0]}", " DEFAULT NULL"))
        text = self.one(("", " DEFAULT 'd'"))
        columns = [f"k INTEGER{self.one(('', ' NOT NULL', ' DEFAULT 3'))}", f"s VARCHAR{text}", f"x {kind}{default}"]
        return f"{how} {name} ({', '.join(columns)})"

    def create_as(self) -> str:
        name = self.one(NAMES)
        return f"CREATE {self.one(('', '', 'OR REPLACE '))}TABLE {name} AS {self.query(name)}"

    def drop(self) -> str:
        return f"DROP TABLE {self.one(('', 'IF EXISTS '))}{self.table()}"

    def insert_values(self) -> str:
        table = self.table()
        rows = ", ".join(f"({self.k()}, {self.s()}, {self.x(table)})" for _ in range(self.one((1, 1, 1, 2, 5))))
        return f"INSERT INTO {table} VALUES {rows}"

    def insert_columns(self) -> str:
        table = self.table()
        return self.one(
            (
                f"INSERT INTO {table} (s, k) VALUES ({self.s()}, {self.k()})",
                f"INSERT INTO {table} (x) VALUES ({self.x(table)})",
                f"INSERT INTO {table} DEFAULT VALUES",
                f"INSERT INTO {table} VALUES ({self.k()}, DEFAULT, DEFAULT)",
                f"INSERT INTO {table} (k) SELECT k FROM {self.table()}",
                f"INSERT INTO {table} (k, k) VALUES (1, 2)",
                f"INSERT INTO {table} (k, s) VALUES (1)",
                f"INSERT INTO {table} (k, nothing) VALUES (1, 2)",
                f"INSERT INTO {table} (k) VALUES ('no number')",
            )
        )

    def insert_by_name(self) -> str:
        table = self.table()
        return self.one(
            (
                f"INSERT INTO {table} BY NAME SELECT {self.s()} AS s, {self.k()} AS k",
                f"INSERT INTO {table} BY NAME SELECT x, k FROM {self.table()}",
                f"INSERT INTO {table} BY NAME SELECT 1 AS nothing",
            )
        )

    def insert_select(self) -> str:
        table = self.table()
        return f"INSERT INTO {table} {self.query(table)}"

    def overwrite(self) -> str:
        table = self.table()
        return f"INSERT OVERWRITE {table} {self.query(table)}"

    def delete(self) -> str:
        table = self.table()
        return f"DELETE FROM {table} WHERE {self.condition(table)}"

    def delete_all(self) -> str:
        return self.one(("DELETE FROM {}", "TRUNCATE {}")).format(self.table())

    def update(self) -> str:
        table = self.table()
        target = self.one(
            (
                "k = k + 1",
                f"s = {self.s()}",
                f"x = {self.x(table)}",
                "s = left(s, 3) || '!'",
                "x = DEFAULT, s = DEFAULT",
                f"k = (SELECT count(*) FROM {self.table()})",
                f"k = {self.k()}",
                "k = k * 1000000000",
                "k = s",
                f"s = k, k = {self.number()}",
                f"x = (SELECT max(x) FROM {table})",
                "k = NULL",
            )
        )
        where = "" if self.chance(5) else f" WHERE {self.condition(table)}"
        return f"UPDATE {table} SET {target}{where}"


KINDS = (
    "create",
    "create_as",
    "drop",
    "insert_values",
    "insert_values",
    "insert_values",
    "insert_values",
    "insert_columns",
    "insert_columns",
    "insert_by_name",
    "insert_select",
    "insert_select",
    "overwrite",
    "delete",
    "delete",
    "delete",
    "delete_all",
    "update",
    "update",
    "update",
    "many",
    "query",
    "travel",
    "travel",
)
MANY = (
    ("INSERT INTO {} (k, s) VALUES (?, ?)", 2),
    ("INSERT INTO {} VALUES (?, ?, DEFAULT)", 2),
    ("UPDATE {} SET k = k + ? WHERE k = ?", 2),
    ("DELETE FROM {} WHERE k = ?", 1),
)


class Statements(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.lake = lakelite.connect(f"{self.folder.name}/lake", autocommit=True)
        self.oracle = Oracle()
        self.versions: dict[int, dict[str, Rows]] = {0: {}}
        for name, value in LIMITS.items():
            self.lake.execute(f"SET {name} = {value}")

    def teardown(self) -> None:
        self.lake.close()
        self.oracle.close()
        look_at_catalog(Path(self.folder.name) / "lake")
        self.folder.cleanup()

    @initialize(seed=SEEDS)
    def some_tables(self, seed: bytes) -> None:
        for name, null in zip(NAMES[:2], ("", " NOT NULL"), strict=True):
            self.step(f"CREATE TABLE {name} (k INTEGER{null}, s VARCHAR DEFAULT 'd', x {Draw(seed, self.oracle).one(tuple(VALUES))})")
            self.step(f"INSERT INTO {name} (k, s) SELECT range, CASE WHEN range % 3 > 0 THEN 'one' END FROM range(10)")
            self.step(f"INSERT INTO {name} (k, s) VALUES (3, 'one'), (4, NULL)")

    @rule(seed=SEEDS)
    def statement(self, seed: bytes) -> None:
        draw = Draw(seed, self.oracle)
        if self.lake.in_transaction and draw.chance(6):
            self.end(draw.one(("COMMIT", "COMMIT", "ROLLBACK")))
        elif not self.lake.in_transaction and draw.chance(8):
            note("BEGIN")
            self.lake.execute("BEGIN")
            self.oracle.begin()
        else:
            self.choose(draw)

    def choose(self, draw: Draw) -> None:
        kind = draw.one(KINDS)
        reached[f"{kind} in transaction" if self.lake.in_transaction else kind] += 1
        if kind == "travel":
            self.travel(draw.one(sorted(self.versions)))
        elif kind == "query":
            table = draw.table()
            self.query(table, draw.condition(table))
        elif kind == "many":
            self.many(draw)
        else:
            self.step(getattr(draw, kind)())

    def step(self, sql: str) -> None:
        note(sql)
        counted = sql.split()[0] in ("INSERT", "DELETE", "UPDATE", "TRUNCATE")
        self.both(lambda: self.lake.execute(sql).rowcount, lambda: self.oracle.run(sql), counted=counted)

    def many(self, draw: Draw) -> None:
        text, width = draw.one(MANY)
        sql = text.format(draw.table())
        rows = [[draw.one((1, 2, 3, 4, None)) for _ in range(width)] for _ in range(draw.one((1, 2, 4)))]
        note(f"executemany {sql} {rows}")
        self.both(lambda: self.lake.executemany(sql, rows).rowcount, lambda: self.oracle.many(sql, rows), counted=True)

    def both(self, mine: Callable[[], int], theirs: Callable[[], int], *, counted: bool) -> None:
        got, want = self.outcome(mine, lakelite.Error), self.outcome(theirs, duckdb.Error)
        assert isinstance(got, Exception) == isinstance(want, Exception), f"lakelite: {got!r}, DuckDB: {want!r}"
        if isinstance(got, Exception):
            reached[type(got).__name__] += 1
        elif counted:
            assert got == want, f"rowcount {got}, of DuckDB {want}"
        self.compare()

    @staticmethod
    def outcome(run: Callable[[], int], kind: type[Exception]) -> int | Exception:
        try:
            return run()
        except kind as error:
            return error

    def end(self, how: str) -> None:
        note(how)
        reached[how] += 1
        self.lake.execute(how)
        if how == "COMMIT":
            self.oracle.commit()
        else:
            self.oracle.rollback()
        self.compare()

    def contents(self) -> dict[str, Rows]:
        names = [name for (name,) in self.lake.execute("SHOW TABLES").fetchall()]
        found = {name: multiset(self.lake.execute(f"SELECT * FROM {name}").fetchall()) for name in names}
        counts = {name: self.lake.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in names}
        assert counts == {name: rows.total() for name, rows in found.items()}
        return found

    def compare(self) -> None:
        got, want = self.contents(), self.oracle.contents()
        assert got.keys() == want.keys()
        assert got == want, "\n".join(f"{t}: too much {got[t] - want[t]}, missing {want[t] - got[t]}" for t in want)
        if not self.lake.in_transaction:
            head = self.lake.execute("DESCRIBE HISTORY LIMIT 1").fetchall()[0][0]
            for version in range(max(self.versions) + 1, head + 1):
                self.versions[version] = want

    def travel(self, version: int) -> None:
        note(f"AT (VERSION => {version})")
        for name in NAMES:
            sql = f"SELECT * FROM {name} AT (VERSION => {version})"
            got = self.outcome(lambda sql=sql: multiset(self.lake.execute(sql).fetchall()), lakelite.Error)
            want = self.versions[version].get(name)
            assert (want is None and isinstance(got, lakelite.ProgrammingError)) or got == want, f"{sql}: {got}, it was {want}"

    def query(self, table: str, condition: str) -> None:
        """A condition, its opposite and its NULLs: each the same rows as in DuckDB."""
        for where in (condition, f"NOT ({condition})", f"({condition}) IS NULL"):
            sql = f"SELECT * FROM {table} WHERE {where}"
            note(sql)
            got = self.outcome(lambda sql=sql: multiset(self.lake.execute(sql).fetchall()), lakelite.Error)
            want = self.outcome(lambda sql=sql: multiset(self.oracle.duck.execute(sql).fetchall()), duckdb.Error)
            assert got == want or (isinstance(got, Exception) and isinstance(want, Exception)), f"{sql}: {got!r}, DuckDB: {want!r}"


def look_at_catalog(lake: Path) -> None:
    """Which kinds of storage the lake came to use."""
    (catalog,) = lake.rglob("catalog.sqlite")
    with sqlite3.connect(catalog) as con:
        for storage, count in con.execute("SELECT storage, count(*) FROM fragments GROUP BY 1"):
            reached[f"{storage} fragments"] += count
        for storage, count in con.execute("SELECT storage, count(*) FROM deletion_vectors JOIN fragments USING (fragment_id) GROUP BY 1"):
            reached[f"vectors of {storage}"] += count
        reached["compositions"] += con.execute("SELECT count(*) FROM compositions").fetchone()[0]
    con.close()


def test_statements_as_in_duckdb() -> None:
    reached.clear()
    checks = settings(max_examples=20, stateful_step_count=35, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Statements, settings=checks)
    wanted = {*KINDS, "COMMIT", "ROLLBACK", "insert_values in transaction", "delete in transaction", "update in transaction"}
    wanted |= {"inline fragments", "parquet fragments", "vectors of parquet", "vectors of inline", "compositions"}
    wanted |= {"IntegrityError", "ProgrammingError", "DataError"}
    missing = {what for what in wanted if not reached[what]}
    assert not missing, f"never reached: {sorted(missing)}; reached: {dict(reached)}"
