"""What is shipped: versions, licences, sample data, examples, and imports that stay light."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import duckdb
import pytest

import lakelite
from lakelite.resources import folder

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROWS = {"flights": 336_776, "planes": 3_322, "airports": 1_458, "airlines": 16, "weather": 26_115}
KEYS = {"flights": "flight_id", "planes": "tailnum", "airports": "faa", "airlines": "carrier", "weather": "(origin, time_hour)"}
HEAVY = ("duckdb", "numpy", "pandas", "polars", "pyarrow", "pyroaring", "sqlglot", "prompt_toolkit", "pygments", "sqlalchemy")


def query(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as con:
        return con.execute(sql).fetchall()


def table(name: str) -> str:
    return f"read_parquet('{folder('sample_data') / name}.parquet')"


def test_the_version_is_in_the_changelog() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", lakelite.__version__)
    assert f"\n## {lakelite.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_an_installed_lakelite_is_the_one_that_is_imported() -> None:
    try:
        installed = metadata.version("lakelite")
    except metadata.PackageNotFoundError:
        installed = lakelite.__version__  # run from the source tree
    assert installed == lakelite.__version__


def test_the_command_is_declared() -> None:
    assert PROJECT["project"]["scripts"] == {"lakelite": "lakelite.__main__:main"}


def test_nothing_that_is_shipped_is_ignored_by_git() -> None:
    rules = [line for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert not [rule for rule in rules if re.search(r"parquet|\.sql|sample_data|\*\.\*", rule)]


def test_licences() -> None:
    assert "Apache License\n                           Version 2.0, January 2004" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    sample = (folder("sample_data") / "LICENSE").read_text(encoding="utf-8")
    assert "CC0 1.0 Universal" in sample
    assert "https://creativecommons.org/publicdomain/zero/1.0/" in sample


def test_resources_are_found_in_a_wheel_and_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sql", "sample_data"):
        assert folder(name).is_dir()
    package = tmp_path / "site" / "lakelite"
    package.mkdir(parents=True)
    monkeypatch.setattr("lakelite.resources.__file__", str(package / "resources.py"))
    assert folder("sql") == tmp_path / "site" / "sql"
    (package / "sql").mkdir()
    assert folder("sql") == package / "sql"


@pytest.mark.parametrize("name", ROWS)
def test_sample_table(name: str) -> None:
    assert query(f"SELECT count(*), count(DISTINCT {KEYS[name]}) FROM {table(name)}") == [(ROWS[name], ROWS[name])]
    described = (folder("sample_data") / "README.md").read_text(encoding="utf-8")
    row = next(line for line in described.splitlines() if line.startswith(f"| `{name}.parquet`"))
    assert f"{ROWS[name]:,}" in row
    documented = [column.split()[0] for part in row.split("|")[3].split(" · ") for column in part.split(", ")]
    assert documented == [column[0] for column in query(f"DESCRIBE SELECT * FROM {table(name)}")]


def test_sample_data_is_small_and_typed() -> None:
    assert sum(file.stat().st_size for file in folder("sample_data").glob("*.parquet")) < 6_000_000
    types = {str(kind) for _, kind, *_ in query(f"DESCRIBE SELECT * FROM {table('flights')}")}
    assert types == {"INTEGER", "SMALLINT", "TINYINT", "VARCHAR", "TIMESTAMP"}
    assert query(f"SELECT min(flight_id), max(flight_id) FROM {table('flights')}") == [(1, ROWS["flights"])]


def test_sample_tables_belong_together() -> None:
    flights = table("flights")
    assert query(f"SELECT count(*) FROM {flights} SEMI JOIN {table('airlines')} USING (carrier)") == [(ROWS["flights"],)]
    assert query(f"SELECT count(*) FROM {flights} SEMI JOIN {table('weather')} USING (origin, time_hour, month, day, hour)") == [(335_220,)]


def test_demo_script() -> None:
    script = (folder("sql") / "examples" / "demo.sql").read_text(encoding="utf-8")
    assert re.findall(r"^-- act: (.*)$", script, flags=re.MULTILINE) == ["two_connections"]
    steps = [step for step in re.split(r"^-- say: ", script, flags=re.MULTILINE)[1:] if "-- act:" not in step]
    assert [step.count(";\n") for step in steps] == [1] * len(steps), "one statement behind each narration"
    for word in ("JOIN", "UPDATE", "DELETE", "AT (VERSION => 5)", "DESCRIBE HISTORY"):
        assert word in script


def test_import_is_light(tmp_path: Path) -> None:
    code = f"import lakelite, sys; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_statements_without_a_terminal_load_no_line_editing(tmp_path: Path) -> None:
    code = "import sys; from lakelite.__main__ import main; main(['-c', 'select 1']); main([]); "
    code += "print([m for m in ('prompt_toolkit', 'pygments') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, input="select 2;", capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
