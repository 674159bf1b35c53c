"""The same work on DuckLake with a SQLite catalog; run by single.py under an interpreter that has it. Prints medians as JSON."""

from __future__ import annotations

import glob
import importlib
import json
import os
import sys
import tempfile

import duckdb
from measure import median_ms


def main() -> None:
    rows, times = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="bench-ducklake-") as folder:
        con = duckdb.connect()
        for name in ("sqlite_scanner", "ducklake"):
            module = importlib.import_module("duckdb_extension_" + name)
            for extension in glob.glob(os.path.dirname(module.__file__ or "") + "/extensions/*/*.duckdb_extension"):
                con.execute(f"LOAD '{extension}'")
        con.execute(f"ATTACH 'ducklake:sqlite:{folder}/meta.sqlite' AS l (DATA_PATH '{folder}/files/'); USE l")
        con.execute(f"CREATE TABLE t AS SELECT range::BIGINT AS id, (range % 1000)::BIGINT AS k, 'name_' || (range % 5000) AS s FROM range({rows})")
        found = {
            "select": median_ms(lambda i: con.execute(f"SELECT * FROM t WHERE id = {abs(i) * 31 + 7}").fetchall(), times),
            "insert": median_ms(lambda i: con.execute(f"INSERT INTO t VALUES ({10**9 + i}, -1, 'new')"), times),
            "delete": median_ms(lambda i: con.execute(f"DELETE FROM t WHERE id = {(i + 10) * 37}"), times),
            "update": median_ms(lambda i: con.execute(f"UPDATE t SET k = -7 WHERE id = {(i + 10) * 41 + 5}"), times),
        }
        con.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
