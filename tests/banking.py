"""A bank on a lake, for processes that race: money moves between accounts in every way there is, and its sum never changes.

`accounts` (id, balance, hits): the first ACCOUNTS ids are the bank's, of which nobody makes or deletes one; others come and go with
nothing in them. `hits` counts how often a row was changed. `audits`: sums that statements found, each of which is the whole.
`plain` reads a table of the newest version without lakelite.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyroaring import BitMap

import lakelite

ACCOUNTS = 40
START = 1000
WHOLE = ACCOUNTS * START


@dataclass
class Clerk:
    """One process at work. `hits`: how often it changed each of the bank's accounts. `done`: what it did, by the name of the action.

    `conflicts`: of transactions that had been shown rows; all others never have one.
    """

    con: Any
    r: random.Random
    own: int
    hits: Counter[int] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    conflicts: int = 0

    def two(self) -> list[int]:
        return self.r.sample(range(ACCOUNTS), 2)

    def transfer(self) -> None:
        """In two steps of one transaction."""
        a, b = self.two()
        amount = self.r.randrange(1, 50)
        with self.con.transaction():
            assert self.con.execute("UPDATE accounts SET balance = balance - ?, hits = hits + 1 WHERE id = ?", [amount, a]).rowcount == 1
            assert self.con.execute("UPDATE accounts SET balance = balance + ?, hits = hits + 1 WHERE id = ?", [amount, b]).rowcount == 1
        self.hits.update((a, b))

    def transfer_at_once(self) -> None:
        a, b = self.two()
        text = "UPDATE accounts SET balance = balance + CASE id WHEN $a THEN -$n ELSE $n END, hits = hits + 1 WHERE id IN ($a, $b)"
        assert self.con.execute(text, {"a": a, "b": b, "n": self.r.randrange(1, 50)}).rowcount == 2
        self.hits.update((a, b))

    def transfer_after_looking(self) -> None:
        """Half of what is there, again after each conflict."""
        a, b = self.two()
        while True:
            try:
                with self.con.transaction():
                    ((balance,),) = self.con.execute("SELECT balance FROM accounts WHERE id = ?", [a]).fetchall()
                    self.con.execute("UPDATE accounts SET balance = ?, hits = hits + 1 WHERE id = ?", [balance - balance // 2, a])
                    self.con.execute("UPDATE accounts SET balance = balance + ?, hits = hits + 1 WHERE id = ?", [balance // 2, b])
            except lakelite.TransactionConflict:
                self.conflicts += 1
            else:
                break
        self.hits.update((a, b))

    def touch_all(self) -> None:
        assert self.con.execute("UPDATE accounts SET hits = hits + 1 WHERE id < ?", [ACCOUNTS]).rowcount == ACCOUNTS
        self.hits.update(range(ACCOUNTS))

    def come_and_go(self) -> None:
        """Makes some empty accounts of its own, and deletes those of before."""
        self.con.execute("DELETE FROM accounts WHERE id BETWEEN ? AND ?", [self.own, self.own + 999])
        rows = [(self.own + i, 0, 0) for i in range(self.r.randrange(1, 6))]
        self.con.executemany("INSERT INTO accounts (id, balance, hits) VALUES (?, ?, ?)", rows)

    def audit(self) -> None:
        """By a statement that reads what the others write, so that it runs again on the head."""
        assert self.con.execute("INSERT INTO audits SELECT sum(balance) FROM accounts").rowcount == 1

    def look(self) -> None:
        found = self.con.execute("SELECT sum(balance), count(*) FROM accounts WHERE id < ?", [ACCOUNTS]).fetchall()
        assert found == [(WHOLE, ACCOUNTS)]

    def optimize(self) -> None:
        self.con.execute(self.r.choice(("OPTIMIZE accounts", "OPTIMIZE accounts ZORDER BY (balance, id)", "OPTIMIZE accounts WHERE id < 10")))

    def alter(self) -> None:
        """Columns that nobody means come and go."""
        changes = (
            "ADD COLUMN IF NOT EXISTS note VARCHAR",
            "DROP COLUMN IF EXISTS note",
            "ALTER COLUMN hits SET DEFAULT 0",
            "ALTER COLUMN hits DROP DEFAULT",
        )
        self.con.execute(f"ALTER TABLE accounts {self.r.choice(changes)}")


ACTIONS: dict[Callable[[Clerk], None], int] = {  # with weights
    Clerk.transfer: 6,
    Clerk.transfer_at_once: 6,
    Clerk.transfer_after_looking: 2,
    Clerk.touch_all: 1,
    Clerk.come_and_go: 3,
    Clerk.audit: 2,
    Clerk.look: 2,
    Clerk.optimize: 1,
    Clerk.alter: 1,
}


def found(con: Any) -> None:
    """Makes the bank."""
    con.execute("CREATE TABLE accounts (id BIGINT, balance BIGINT, hits BIGINT); CREATE TABLE audits (total HUGEINT)")
    con.execute(f"INSERT INTO accounts SELECT range, {START}, 0 FROM range({ACCOUNTS})")


def work(barrier: Any, path: str, number: int, seconds: float) -> tuple[Counter[int], Counter[str], int]:
    """Random actions until the time is over; see Clerk."""
    with lakelite.connect(path, autocommit=True, author=f"clerk {number}") as con:
        con.execute("SET inline_rows = 20; SET flush_fragments = 30; SET target_file_rows = 30; SET rewrite_percent = 10")
        clerk = Clerk(con, random.Random(number), own=1000 * (number + 1))
        barrier.wait(seconds + 100)
        end = time.monotonic() + seconds
        first = [[*ACTIONS][(2 * number + n) % len(ACTIONS)] for n in range(2)]  # five clerks do each kind, however busy the machine is
        while first or time.monotonic() < end:
            action = first.pop() if first else clerk.r.choices([*ACTIONS], [*ACTIONS.values()])[0]
            action(clerk)
            clerk.done[action.__name__] += 1
    return clerk.hits, clerk.done, clerk.conflicts


def plain(lake: Path, name: str) -> list[tuple[Any, ...]]:
    """The rows of a table of the newest version, sorted: read by DuckDB from the files that the catalog names, without lakelite."""
    with closing(sqlite3.connect(lake / "catalog.sqlite")) as catalog, closing(duckdb.connect()) as duck:
        ((table_id,),) = catalog.execute("SELECT table_id FROM table_names WHERE name = ? AND end_snapshot_id IS NULL", [name])
        live = f"table_id = {table_id} AND end_snapshot_id IS NULL"
        lives = f"SELECT fragment_id, path FROM fragment_lives JOIN fragments USING (fragment_id, table_id) WHERE {live}"
        fields = catalog.execute(f"SELECT field_id, stored_type FROM columns WHERE {live} AND parent_field_id IS NULL ORDER BY position").fetchall()
        columns = ", ".join(f"f{field_id}" for field_id, _ in fields)
        by_id = ", ".join(f"{i}: {{name: 'f{i}', type: '{kind}', default_value: NULL}}" for i, kind in fields)
        vectors = dict(catalog.execute(f"SELECT fragment_id, bits FROM deletion_vectors WHERE {live}").fetchall())
        fragments = catalog.execute(f"SELECT fragment_id, path, ipc FROM ({lives}) LEFT JOIN inline_rows USING (fragment_id)").fetchall()
        rows: list[tuple[Any, ...]] = []
        for fragment_id, path, ipc in fragments:
            if path is None:
                inline = pa.ipc.open_stream(ipc).read_all()
                for missing in {f"f{i}" for i, _ in fields} - {*inline.column_names}:  # a column that was added later
                    inline = inline.append_column(missing, pa.nulls(inline.num_rows))
                duck.register("inline", inline.append_column("file_row_number", pa.array(range(inline.num_rows), pa.int64())))
                source = "inline"
            else:
                source = f"read_parquet('{lake / 'data' / str(table_id) / path}', schema => MAP {{{by_id}}}, file_row_number => true)"
            dead = [*BitMap.deserialize(vectors[fragment_id])] if fragment_id in vectors else []
            rows += duck.execute(f"SELECT {columns} FROM {source} WHERE NOT list_contains(?::BIGINT[], file_row_number)", [dead]).fetchall()
    return sorted(rows)


def work_or_back_up(barrier: Any, path: str, number: int, seconds: float, folder: str) -> int:
    """`work`, or for the first process backups, with a VACUUM of all that is old beside each other one; how many backups there are."""
    if number:
        work(barrier, path, number, seconds)
        return 0
    with lakelite.connect(path, autocommit=True) as con:
        barrier.wait(seconds + 100)
        end, made = time.monotonic() + seconds, 0
        while time.monotonic() < end or made < 3:
            con.execute("BACKUP TO ?", [f"{folder}/{made}"])
            made += 1
            if made % 2:
                con.execute("VACUUM RETAIN 0 HOURS")
    return made
