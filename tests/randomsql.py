"""Random schemas, changes and queries in DuckDB's dialect, whose answers do not depend on the order of rows or on the clock.

Left out is what two right engines may answer differently: sums of DOUBLE, LIMIT without an order, errors that depend on which row is
looked at first, and -0.0, which equals 0.0 and may stand for it. `Writer(random).schema()` first, then `change()` and `query()`, for ever.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

LITERALS = {
    "INTEGER": ("0", "1", "(-1)", "7", "41", "2147483647", "(-2147483648)"),
    "BIGINT": ("0", "3", "(-9)", "9007199254740993", "(-9223372036854775808)"),
    "DECIMAL(9, 2)": ("0", "1.50", "(-0.01)", "1234567.89"),
    "DOUBLE": ("0", "1.5", "(-2.25)", "'nan'::DOUBLE", "'inf'::DOUBLE"),
    "VARCHAR": ("''", "'a'", "'b'", "'It''s'", "'ä€😀'", "'NULL'", "'a%'"),
    "DATE": ("DATE '2020-02-29'", "DATE '1969-12-31'", "DATE '2024-01-01'"),
    "TIMESTAMP": ("TIMESTAMP '2020-02-29 12:00:00.000001'", "TIMESTAMP '1969-12-31 23:59:59'"),
    "BOOLEAN": ("true", "false"),
    "INTEGER[]": ("[]", "[1, NULL, 2]", "[7]"),
    "STRUCT(x INTEGER, y VARCHAR)": ("{'x': 1, 'y': 'p'}", "{'x': NULL, 'y': ''}"),
}
NUMBERS = ("INTEGER", "BIGINT", "DECIMAL(9, 2)")
ORDERED = (*NUMBERS, "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN", "DOUBLE")
COLUMNS = ("a", "b", "c", '"select"', '"A b"', "d_1", "é", '"x.y"')
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@dataclass
class Table:
    name: str
    columns: dict[str, str]
    needed: set[str] = field(default_factory=set)  # NOT NULL


class Writer:
    """Writes SQL about the tables that it has made up."""

    def __init__(self, draw: random.Random) -> None:
        self.r = draw
        self.tables: list[Table] = []

    def schema(self) -> list[str]:
        found: list[str] = []
        for number in range(self.r.randint(1, 3)):
            names = self.r.sample(COLUMNS, self.r.randint(2, 5))
            table = Table(f"t{number}", {name: self.r.choice([*LITERALS, *NUMBERS]) for name in names})
            table.needed = {name for name in names if self.r.random() < 0.15}
            self.tables.append(table)
            columns = ", ".join(f"{n} {kind}{' NOT NULL' if n in table.needed else ''}" for n, kind in table.columns.items())
            found.append(f"CREATE TABLE {table.name} ({columns})")
        return found

    # Expressions. `scope`: (text, type) of each column that can be named.

    def value(self, kind: str, *, needed: bool = False) -> str:
        return "NULL" if not needed and self.r.random() < 0.2 else f"{self.r.choice(LITERALS[kind])}::{kind}"

    def expression(self, kind: str, scope: list[tuple[str, str]], depth: int = 2) -> str:
        there = [text for text, of in scope if of == kind]
        if depth == 0 or self.r.random() < 0.3:
            return self.r.choice(there) if there and self.r.random() < 0.8 else self.value(kind)

        def of(which: str) -> str:
            return self.expression(which, scope, depth - 1)

        general = [
            lambda: f"CASE WHEN {self.condition(scope, depth - 1)} THEN {of(kind)} ELSE {of(kind)} END",
            lambda: f"coalesce({of(kind)}, {of(kind)})",
            lambda: f"nullif({of(kind)}, {of(kind)})",
        ]
        own = {
            "INTEGER": [lambda: f"length({of('VARCHAR')})::INTEGER", lambda: f"(year({of('DATE')}) % 100)::INTEGER", lambda: f"len({of('INTEGER[]')})::INTEGER"],
            "BIGINT": [lambda: f"({of('INTEGER')}::BIGINT + {of('INTEGER')})", lambda: f"({of('INTEGER')}::BIGINT * 3)"],
            "DECIMAL(9, 2)": [lambda: f"(({of('INTEGER')} % 1000) / 4)::DECIMAL(9, 2)"],
            "DOUBLE": [lambda: f"({of('INTEGER')}::DOUBLE / 2)"],
            "VARCHAR": [lambda: f"upper({of('VARCHAR')})", lambda: f"({of('VARCHAR')} || {of('INTEGER')}::VARCHAR)", lambda: f"substr({of('VARCHAR')}, 2, 2)"],
            "DATE": [lambda: f"({of('DATE')} + INTERVAL ({of('INTEGER')} % 50) DAY)::DATE"],
            "TIMESTAMP": [lambda: f"{of('DATE')}::TIMESTAMP"],
            "BOOLEAN": [lambda: f"({self.condition(scope, depth - 1)})"],
            "INTEGER[]": [lambda: f"list_append({of('INTEGER[]')}, {of('INTEGER')})"],
        }  # fmt: skip
        return self.r.choice([*general, *own.get(kind, ())])()

    def condition(self, scope: list[tuple[str, str]], depth: int = 2) -> str:
        if depth > 0 and self.r.random() < 0.4:
            left, right = (self.condition(scope, depth - 1) for _ in range(2))
            return self.r.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
        column, kind = self.r.choice(scope)
        roll = self.r.random()
        if roll < 0.15:
            return f"{column} IS {self.r.choice(['NULL', 'NOT NULL'])}"
        if kind not in ORDERED:
            return f"{column} IS NOT DISTINCT FROM {self.value(kind)}"
        if roll < 0.25:
            return f"{column} IN ({', '.join(self.value(kind) for _ in range(3))})"
        if roll < 0.35:
            return f"{column} BETWEEN {self.value(kind)} AND {self.value(kind)}"
        if roll < 0.45 and kind == "VARCHAR":
            return f"{column} LIKE {self.r.choice(['''a%''', '''%''', '''_''', '''%€%'''])}"
        return f"{column} {self.r.choice(['=', '<>', '<', '<=', '>', '>='])} {self.expression(kind, scope, depth - 1 if depth else 0)}"

    def with_subquery(self, scope: list[tuple[str, str]]) -> str:
        """A condition, half of the time one with a subquery over some table."""
        other = self.r.choice(self.tables)
        pairs = [(mine, theirs) for mine, kind in scope for theirs, of in other.columns.items() if of == kind and kind in ORDERED]
        if not pairs or self.r.random() < 0.5:
            return self.condition(scope)
        mine, theirs = self.r.choice(pairs)
        inner = self.condition([(f"q.{n}", kind) for n, kind in other.columns.items()], 1)
        return self.r.choice(
            [
                f"{mine} IN (SELECT q.{theirs} FROM {other.name} q WHERE {inner})",
                f"EXISTS (SELECT 1 FROM {other.name} q WHERE q.{theirs} = {mine} AND {inner})",
                f"{mine} = (SELECT max(q.{theirs}) FROM {other.name} q WHERE {inner})",
                f"{mine} NOT IN (SELECT q.{theirs} FROM {other.name} q WHERE q.{theirs} IS NOT NULL AND {inner})",
            ]
        )

    # Statements.

    def change(self) -> str:
        table = self.r.choice(self.tables)
        scope = list(table.columns.items())
        roll = self.r.random()
        if roll < 0.35:
            return self._insert_values(table)
        if roll < 0.5:
            return self._insert_query(table)
        if roll < 0.75:
            chosen = self.r.sample(scope, self.r.randint(1, len(scope)))
            sets = ", ".join(f"{n} = {self._new_value(table, n, kind, scope)}" for n, kind in chosen)
            return f"UPDATE {table.name} SET {sets} WHERE {self.with_subquery(scope)}"
        if roll < 0.93:
            return f"DELETE FROM {table.name} WHERE {self.with_subquery(scope)} AND {self.condition(scope)}"
        return self._alter(table)

    def _new_value(self, table: Table, name: str, kind: str, scope: list[tuple[str, str]]) -> str:
        value = self.expression(kind, scope)
        return f"coalesce({value}, {self.value(kind, needed=True)})" if name in table.needed else value

    def _insert_values(self, table: Table) -> str:
        names = [n for n in table.columns if n in table.needed or self.r.random() < 0.8] or list(table.columns)
        rows = [", ".join(self.value(table.columns[n], needed=n in table.needed) for n in names) for _ in range(self.r.choice([1, 1, 2, 5]))]
        return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join(f'({row})' for row in rows)}"

    def _insert_query(self, table: Table) -> str:
        source = self.r.choice(self.tables)
        scope = [(f"q.{n}", kind) for n, kind in source.columns.items()]
        values = ", ".join(f"{self._new_value(table, n, kind, scope)} AS {n}" for n, kind in table.columns.items())
        more = f", range({self.r.choice([1, 2, 40])})" if self.r.random() < 0.3 else ""
        return f"INSERT INTO {table.name} BY NAME SELECT {values} FROM {source.name} q{more} WHERE {self.condition(scope)}"

    def _alter(self, table: Table) -> str:
        new = [n for n in COLUMNS if n not in table.columns]
        roll = self.r.random()
        if roll < 0.4 and new:
            name, kind = self.r.choice(new), self.r.choice(list(LITERALS))
            table.columns[name] = kind
            return f"ALTER TABLE {table.name} ADD COLUMN {name} {kind} DEFAULT {self.value(kind)}"
        name = self.r.choice(list(table.columns))
        if roll < 0.7 and len(table.columns) > 2:
            del table.columns[name]
            table.needed.discard(name)
            return f"ALTER TABLE {table.name} DROP COLUMN {name}"
        if not new:
            return f"DELETE FROM {table.name} WHERE false"
        to = self.r.choice(new)
        table.columns = {to if n == name else n: kind for n, kind in table.columns.items()}
        table.needed = {to if n == name else n for n in table.needed}
        return f"ALTER TABLE {table.name} RENAME COLUMN {name} TO {to}"

    def query(self) -> str:
        text = self._select()
        if self.r.random() < 0.15:
            text = f"{text} {self.r.choice(['UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT'])} {text}"
        if self.r.random() < 0.15:
            text = f"WITH w AS ({text}) SELECT count(*) FROM w"
        return text

    def _select(self) -> str:
        first = self.r.choice(self.tables)
        scope = [(f"x.{n}", kind) for n, kind in first.columns.items()]
        source = f"{first.name} x"
        if self.r.random() < 0.4:
            second = self.r.choice(self.tables)
            more = [(f"y.{n}", kind) for n, kind in second.columns.items()]
            pairs = [(mine, theirs) for mine, kind in scope for theirs, of in more if of == kind and kind in ORDERED]
            if pairs:
                mine, theirs = self.r.choice(pairs)
                source += f" {self.r.choice(JOINS)} {second.name} y ON {mine} = {theirs}"
                scope += more
        where = f" WHERE {self.with_subquery(scope)}" if self.r.random() < 0.7 else ""
        roll = self.r.random()
        if roll < 0.3:
            keys = self.r.sample(scope, min(len(scope), self.r.randint(1, 2)))
            return (
                f"SELECT {', '.join([*(k for k, _ in keys), *self._aggregates(scope)])} FROM {source}{where} GROUP BY {', '.join(k for k, _ in keys)}"
            )
        if roll < 0.45:
            return f"SELECT {', '.join(self._aggregates(scope))} FROM {source}{where}"
        if roll < 0.55:
            values = ", ".join(text for text, _ in scope)
            return f"SELECT * FROM (SELECT {values} FROM {source}{where} ORDER BY ALL NULLS LAST LIMIT {self.r.randint(1, 9)} OFFSET {self.r.randint(0, 2)})"
        if roll < 0.65:
            key, over = self.r.choice(scope)[0], self.r.choice(scope)[0]
            return f"SELECT {over}, count(*) OVER (PARTITION BY {key}), rank() OVER (PARTITION BY {key} ORDER BY {over}) FROM {source}{where}"
        values = ", ".join(self.expression(self.r.choice(list(LITERALS)), scope) for _ in range(self.r.randint(1, 3)))
        return f"SELECT {'DISTINCT ' if self.r.random() < 0.2 else ''}{values}, {self.r.choice(scope)[0]} FROM {source}{where}"

    def _aggregates(self, scope: list[tuple[str, str]]) -> list[str]:
        found = ["count(*)"]
        for text, kind in self.r.sample(scope, min(2, len(scope))):
            choices = [f"count({text})", f"count(DISTINCT {text})"]
            choices += [f"min({text})", f"max({text})"] if kind in ORDERED else []
            choices += [f"sum({text}::HUGEINT)"] if kind in ("INTEGER", "BIGINT") else []
            found.append(self.r.choice(choices))
        return found
