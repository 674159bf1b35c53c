"""Another program that writes to the catalog's file: before each statement of each of our transactions it tries to commit something.

It must be refused from the first statement to the last: a transaction that had begun as a reader could not write behind its commit
(SQLITE_BUSY_SNAPSHOT), and would have decided by what is old. In between it may write, and no commit of ours may fail for it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import lakelite
from trust import bugs
from trust.figures import Failure, Figures, again
from trust.places import folder_in_memory

PROMISE = (
    "Nobody else writes to the catalog between the beginning of a commit and its end, not even another program; no busy error comes of one that tries"
)
HOW = "a plain sqlite3 connection tries to commit before each statement that lakelite runs on the catalog"
SIZES = (1, 2, 50)  # rounds

STATEMENTS = (
    "CREATE TABLE t{n} AS SELECT range AS a FROM range(2000)",
    "INSERT INTO t{n} VALUES (1), (2)",
    "INSERT INTO t{n} SELECT range FROM range(1500)",
    "DELETE FROM t{n} WHERE a < 20",
    "UPDATE t{n} SET a = -a WHERE a < 30",
    "ALTER TABLE t{n} ADD COLUMN b INTEGER DEFAULT 7",
    "OPTIMIZE t{n}",
    "CREATE BRANCH dev{n}",
    "USE BRANCH dev{n}",
    "INSERT INTO t{n} VALUES (-7, 7)",
    "USE BRANCH main",
    "MERGE BRANCH dev{n}",
    "CREATE TAG tag{n}",
    "COMMENT ON TABLE t{n} IS 'foreign'",
    "VACUUM RETAIN 0 HOURS",
    "DROP TABLE t{n}",
)


class Foreigner:
    """The other program; `got_in` counts its commits inside of a transaction of ours, `between` those outside."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        self.inside = False
        self.got_in, self.between, self.refused = 0, 0, 0

    def see(self, sql: str) -> None:
        """Called with each statement before it runs."""
        if sql.startswith("PRAGMA"):
            return
        landed = self.try_to_commit()
        if self.inside:
            self.got_in += landed
            self.refused += not landed
        else:
            self.between += landed
        self.inside = sql.startswith("BEGIN") or (self.inside and sql not in ("COMMIT", "ROLLBACK"))

    def try_to_commit(self) -> bool:
        try:
            self.connection.execute("UPDATE snapshots SET author = author WHERE snapshot_id = 0")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True


def run(seed: int, size: int, bug: str | None = None) -> Figures:
    """`size` rounds of the statements; `seed` changes nothing: every statement is met."""
    failures: list[str] = []
    with folder_in_memory() as folder, bugs.bug(bug), closing(lakelite.connect(folder / "lake", autocommit=True)) as con:
        foreigner = Foreigner(str(folder / "lake" / "catalog.sqlite"))
        with closing(foreigner.connection):
            con._session.lake.catalog._sqlite.set_trace_callback(foreigner.see)
            for n in range(size):
                for sql in STATEMENTS:
                    try:
                        con.execute(sql.format(n=n)).close()
                    except lakelite.Error as error:
                        failures.append(f"{sql}: {type(error).__name__}: {error}")
            con._session.lake.catalog._sqlite.set_trace_callback(None)
            failures += [f"CHECK LAKE: {damage}" for damage in con.execute("CHECK LAKE").fetchall()]
    if foreigner.got_in:
        failures.append(f"the other program committed {foreigner.got_in} times inside of a transaction")
    counted = {
        "statements": size * len(STATEMENTS),
        "refused commits inside": foreigner.refused,
        "got in": foreigner.got_in,
        "between": foreigner.between,
    }
    return Figures(counted, tuple(Failure(what, again("foreign", seed, size)) for what in failures))
