"""table_changes and RESTORE against a log that the test keeps itself: after every snapshot, the rows that were there, by a name of their own.

A row's name (`id`) is never used twice and never updated, so that the log needs no row ids; those are checked against it.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from racing import flush

import lakelite

Row = dict[str, Any]  # by field: the column's name, how often a new column was made by then, and its type
COLUMNS = ("v", "w")
TYPES = ("BIGINT", "VARCHAR")


@dataclass
class Version:
    """What the table was after a snapshot. `updated`: rows that the snapshot's UPDATEs matched; None where it may have put rows back."""

    rows: dict[int, Row] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)  # column → field
    updated: set[int] | None = field(default_factory=set)

    def copy(self) -> Version:
        return Version({i: dict(row) for i, row in self.rows.items()}, dict(self.fields), set())


def shown(version: Version, row: int, last: Version) -> list[Any]:
    """A row as the columns of the last version show it: by field; else what the column of that name was then, cast, if it is no other column now."""
    values = []
    for column, wanted in last.fields.items():
        then = version.fields.get(column, wanted)
        source = then if wanted not in version.fields.values() and then not in last.fields.values() else wanted
        value = version.rows[row].get(source)
        values.append(None if value is None else str(value) if wanted.endswith("VARCHAR") else int(value))
    return values


def changes(log: list[Version], first: int, last: int) -> Counter[str]:
    """What table_changes has to give, without row ids."""
    found: Counter[str] = Counter()
    for number in range(max(first, 1), last + 1):
        before, after = log[number - 1], log[number]

        def count(version: Version, row: int, kind: str, number: int = number) -> None:
            found[repr((number, kind, row, *shown(version, row, log[last])))] += 1

        for row in before.rows.keys() - after.rows.keys():
            count(before, row, "delete")
        for row in after.rows.keys() - before.rows.keys():
            count(after, row, "insert")
        for row in before.rows.keys() & after.rows.keys():
            changed = shown(before, row, log[last]) != shown(after, row, log[last])
            if row in after.updated if after.updated is not None else changed:
                count(before, row, "update_preimage")
                count(after, row, "update_postimage")
    return found


def _stored(value: int, field: str) -> Any:
    return str(value) if field.endswith("VARCHAR") else value


class Machine(RuleBasedStateMachine):
    """A second connection writes in turn with the first one, so that no cache of one session is what makes it right."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.cons = [lakelite.connect(self.folder / "lake", autocommit=True) for _ in range(2)]
        self.names = itertools.count(1)
        self.generations = itertools.count(1)
        self.log = [Version()]
        self.now = Version()
        self.inside = False
        self.turn = 0
        self.checked = 0
        self.row_ids: dict[int, int] = {}

    def teardown(self) -> None:
        self.check(0, len(self.log) - 1)
        for con in self.cons:
            con.close()
        shutil.rmtree(self.folder)

    @property
    def con(self) -> Any:
        return self.cons[self.turn]

    def run(self, sql: str, parameters: Any = None, *, puts_back: bool = False) -> None:
        self.con.execute(sql, parameters)
        if puts_back:
            self.now.updated = None
        if not self.inside:
            self.landed()

    def landed(self) -> None:
        self.log.append(self.now)
        self.now = self.now.copy()
        self.turn = 1 - self.turn

    @initialize(inline=st.sampled_from([0, 3, 1000]))
    def create(self, inline: int) -> None:
        for con in self.cons:
            con.execute(f"SET inline_rows = {inline}")
        self.con.execute("CREATE TABLE t (id BIGINT, v BIGINT)")
        self.now = Version({}, {"id": "id BIGINT", "v": "v0 BIGINT"})
        self.landed()

    # Statements.

    @precondition(lambda self: not self.inside)
    @rule()
    def begin(self) -> None:
        self.con.execute("BEGIN")
        self.inside = True
        self.saved = self.now.copy()

    @precondition(lambda self: self.inside)
    @rule(keep=st.booleans())
    def end(self, keep: bool) -> None:
        before = self.con.last_commit
        self.con.execute("COMMIT" if keep else "ROLLBACK")
        self.inside = False
        if not keep:
            self.now = self.saved
        elif self.con.last_commit is not before:
            self.landed()

    @rule(count=st.sampled_from([1, 2, 5, 40]), value=st.integers(0, 9))
    def insert(self, count: int, value: int) -> None:
        names = [next(self.names) for _ in range(count)]
        column = list(self.now.fields)[1]
        for name in names:
            self.now.rows[name] = {self.now.fields["id"]: name, self.now.fields[column]: _stored(value, self.now.fields[column])}
        self.run(f"INSERT INTO t (id, {column}) SELECT ? + range, ? FROM range(?)", [names[0], value, count])

    @rule(divisor=st.sampled_from([1, 2, 3, 7]), rest=st.integers(0, 6), more=st.integers(0, 2))
    def update(self, divisor: int, rest: int, more: int) -> None:
        column = list(self.now.fields)[-1]
        name = self.now.fields[column]
        for row in [i for i in self.now.rows if i % divisor == rest]:
            value = self.now.rows[row].get(name)
            self.now.rows[row][name] = None if value is None else _stored(int(value) + more, name)
            if self.now.updated is not None:
                self.now.updated.add(row)
        self.run(f"UPDATE t SET {column} = {column}::BIGINT + ? WHERE id % ? = ?", [more, divisor, rest])

    @rule(divisor=st.sampled_from([1, 2, 3, 7]), rest=st.integers(0, 6))
    def delete(self, divisor: int, rest: int) -> None:
        self.now.rows = {i: row for i, row in self.now.rows.items() if i % divisor != rest}
        self.run("DELETE FROM t WHERE id % ? = ?", [divisor, rest])

    @rule()
    def truncate(self) -> None:
        self.now.rows = {}
        self.run("TRUNCATE t")

    @rule(count=st.sampled_from([0, 1, 20]))
    def overwrite(self, count: int) -> None:
        names = [next(self.names) for _ in range(max(count, 1))][:count]
        column = list(self.now.fields)[1]
        self.now.rows = {name: {self.now.fields["id"]: name, self.now.fields[column]: _stored(5, self.now.fields[column])} for name in names}
        self.run(f"INSERT OVERWRITE t BY NAME SELECT ? + range AS id, 5 AS {column} FROM range(?)", [names[0] if names else 0, count], puts_back=True)

    @rule(columns=st.dictionaries(st.sampled_from(COLUMNS), st.sampled_from(TYPES), min_size=1, max_size=2))
    def replace(self, columns: dict[str, str]) -> None:
        kept = {c: field for c, field in self.now.fields.items() if field.endswith(f" {columns.get(c)}")}
        self.now.fields = {"id": "id BIGINT"} | {c: kept.get(c) or f"{c}{next(self.generations)} {kind}" for c, kind in columns.items()}
        self.now.rows = {}
        self.run(f"CREATE OR REPLACE TABLE t (id BIGINT, {', '.join(f'{c} {kind}' for c, kind in columns.items())})", puts_back=True)

    @precondition(lambda self: len(self.log) > 2)
    @rule(data=st.data())
    def restore(self, data: Any) -> None:
        seen = len(self.log) - 1
        version = data.draw(st.integers(1, seen))
        then = self.log[version].copy()
        self.now.rows, self.now.fields = then.rows, then.fields
        self.run("RESTORE TABLE t TO VERSION AS OF ?", [version], puts_back=True)

    @precondition(lambda self: not self.inside)
    @rule()
    def flush(self) -> None:
        flush(self.con, "t")
        if self.con.execute("SELECT max(snapshot_id) FROM lake.snapshots").fetchone()[0] == len(self.log):
            self.landed()

    # What is asked.

    @invariant()
    def the_table_is_what_it_should_be(self) -> None:
        if self.now.fields:
            shown = list(self.now.fields.values())
            expected = sorted((tuple(row.get(f) for f in shown) for row in self.now.rows.values()), key=repr)
            assert sorted(self.con.execute("FROM t").fetchall(), key=repr) == expected

    @invariant()
    def what_just_happened_is_told(self) -> None:
        last = len(self.log) - 1
        if last > self.checked:
            self.check(max(0, last - 1), last)
            self.checked = last

    @rule(data=st.data())
    def ask(self, data: Any) -> None:
        last = data.draw(st.integers(1, len(self.log) - 1))
        first = data.draw(st.integers(0, last))
        self.check(first, last)

    def check(self, first: int, last: int) -> None:
        cursor = self.con.execute("FROM table_changes('t', ?, ?)", [first, last])
        assert [d[0] for d in cursor.description] == ["snapshot_id", "row_id", "change_type", *self.log[last].fields]
        rows = cursor.fetchall()
        assert Counter(repr((r[0], r[2], r[3], *r[3:])) for r in rows) == changes(self.log, first, last)
        for row in rows:  # one name is one row id, for ever
            assert self.row_ids.setdefault(row[3], row[1]) == row[1]
        assert len(set(self.row_ids.values())) == len(self.row_ids)

    @rule(data=st.data())
    def look_back(self, data: Any) -> None:
        version = data.draw(st.integers(1, len(self.log) - 1))
        shown = list(self.log[version].fields.values())
        expected = sorted((tuple(row.get(f) for f in shown) for row in self.log[version].rows.values()), key=repr)
        assert sorted(self.con.execute("FROM t AT (VERSION => ?)", [version]).fetchall(), key=repr) == expected


TestTableChanges = Machine.TestCase
TestTableChanges.settings = settings(max_examples=20, stateful_step_count=25)
