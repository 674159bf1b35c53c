"""What is run under strace, as `crash_workload.py LAKE`: a session that marks in the trace what is under way, by writing to /dev/null."""

from __future__ import annotations

import os
import sys

import numpy  # noqa: F401  (so that no child has to import it)
import pyarrow.types  # noqa: F401
import pyroaring  # noqa: F401
import sqlglot  # noqa: F401

import lakelite
import lakelite.interfaces.dbapi

WATCHED = {
    "inline insert": "INSERT INTO t VALUES (1)",
    "file insert": "INSERT INTO t SELECT range FROM range(100000)",
    "create table as": "CREATE TABLE u AS SELECT range AS a FROM range(100000)",
    "update": "UPDATE t SET a = a + 1 WHERE a < 50000",
    "delete": "DELETE FROM t WHERE a % 2 = 0",
    "restore": "RESTORE TABLE t TO VERSION AS OF 3",
}
UNWATCHED = (
    "FROM t",
    "SHOW TABLES",
    "DESCRIBE t",
    "DESCRIBE HISTORY",
    "FROM t AT (VERSION => 2)",
    "VACUUM RETAIN 0 HOURS",
    "SELECT 1",
    "DROP TABLE u",
)


def watched(lake: str) -> None:
    marks = os.open("/dev/null", os.O_WRONLY)

    def mark(text: str) -> None:
        os.write(marks, text.encode())

    con = lakelite.connect(lake, autocommit=True)
    con.execute("CREATE TABLE t (a BIGINT); SET upkeep = off")
    mark("opened")
    for name, sql in WATCHED.items():
        mark(f"begin {name}")
        con.execute(sql)
        mark(f"end {name}")
    for sql in UNWATCHED:
        con.execute(sql).close()
    mark("closing")
    con.close()


if __name__ == "__main__":
    watched(sys.argv[1])
