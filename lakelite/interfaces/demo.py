"""`lakelite demo`: loads a lake with real flights and plays sql/examples/demo.sql, with its narration and its acts.

Promises: works in a new or empty directory only, leaves the lake there, and fails if the two connections that meet lost
or doubled a row. What a line `-- say: …` says is printed, a line `-- act: …` calls the function of that name in `ACTS`.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import lakelite
from lakelite.errors import CannotOpen, InternalError
from lakelite.interfaces.progress import drawn, fitted
from lakelite.interfaces.runner import DONE, Connection, Runner
from lakelite.model import literal
from lakelite.resources import folder

TABLES = ("flights", "planes", "airports", "airlines", "weather")
UNITED, CHICAGO = "carrier = 'UA'", "dest = 'ORD'"
NEXT = """\
The lake stays. Have a look yourself:
  lakelite {directory}
and there, for example:
  SELECT origin, count(*) AS flights FROM flights GROUP BY ALL;
  SELECT count(*) FROM flights AT (VERSION => 5);
  DESCRIBE HISTORY flights LIMIT 3;
"""


def run(directory: str | None, out: TextIO, err: TextIO) -> int:
    """Play the demonstration in `directory` (None: a temporary one); return the exit code. Raises CannotOpen."""
    path = _place(directory)
    _say(f"The lake of this demonstration is the directory {path}", out)
    connection = lakelite.connect(path, autocommit=True)
    try:
        code = _load(Runner(connection, out, err), err) or _play(path, Runner(connection, out, err, verbose=True, notes=out))
    finally:
        connection.close()
    if code == DONE:
        out.write("\n" + NEXT.format(directory=shlex.quote("./demo" if path == "demo" else path)))
    return code


def _place(directory: str | None) -> str:
    if directory is None:
        return tempfile.mkdtemp(prefix="lakelite-demo-")
    path = Path(directory)
    if path.is_dir():
        if any(path.iterdir()):
            raise CannotOpen(f"{directory} is not empty", hint="the demonstration makes a lake of its own: name a new directory")
    elif path.exists():
        raise CannotOpen(f"{directory} is a file", hint="name a new directory")
    return directory


def _load(runner: Runner, err: TextIO) -> int:
    """Make a table of each file of the sample data: one snapshot per table."""
    for number, name in enumerate(TABLES):
        _progress(number, f"loading {name}", err)
        code = runner.run(f"CREATE TABLE {name} AS FROM {literal(str(folder('sample_data') / f'{name}.parquet'))}")
        if code:
            return code
    _progress(len(TABLES), "loaded", err)
    if err.isatty():
        err.write("\n")
    return DONE


def _progress(done: int, what: str, err: TextIO) -> None:
    """A bar that is redrawn in its place on a terminal; else one line per step."""
    bar = "\r" + fitted(f"{drawn(done, len(TABLES))} {done} of {len(TABLES)} tables, {what:<20}")
    err.write(bar if err.isatty() else f"{done} of {len(TABLES)} tables, {what}\n")
    err.flush()


def _play(path: str, runner: Runner) -> int:
    from lakelite.language.parse import is_complete

    for kind, text in scenes((folder("sql") / "examples" / "demo.sql").read_text("utf-8"), is_complete):
        if kind == "say":
            _say(text, runner.out)
        elif kind == "act":
            ACTS[text](path, runner)
        else:
            runner.out.write("lake> " + text.replace("\n", "\n  ...> ") + "\n")
            code = runner.run(text)
            if code:
                return code
    return DONE


def scenes(script: str, is_complete: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """The script in order: ("say", text), ("act", name) and ("sql", one statement with its semicolon)."""
    statement = ""
    for line in script.splitlines():
        if not statement and line.startswith(("-- say: ", "-- act: ")):
            yield line[3:6], line[8:].strip()
        elif statement or (line.strip() and not line.startswith("--")):
            statement = f"{statement}\n{line}" if statement else line
            if is_complete(statement):
                yield "sql", statement
                statement = ""
    assert not statement, "the script of the demonstration ends with a whole statement"


def _say(text: str, out: TextIO) -> None:
    columns = min(100, shutil.get_terminal_size().columns)
    out.write("\n" + textwrap.fill(text, columns) + "\n\n")
    out.flush()


def two_connections(path: str, runner: Runner) -> None:
    """A and B begin on the same snapshot, delete overlapping rows of the same file, and both commit.

    Raises InternalError if a row was lost or doubled.
    """
    before, both = _count(runner, "true"), _count(runner, f"{UNITED} AND {CHICAGO}")
    united, chicago = _count(runner, UNITED), _count(runner, CHICAGO)
    a, b = lakelite.connect(path, autocommit=True), lakelite.connect(path, autocommit=True)
    try:
        for name, connection, sql in (
            ("A", a, "BEGIN"),
            ("B", b, "BEGIN"),
            ("A", a, f"DELETE FROM flights WHERE {UNITED}"),
            ("B", b, f"DELETE FROM flights WHERE {CHICAGO}"),
            ("A", a, "COMMIT"),
            ("B", b, "COMMIT"),
        ):
            _perform(name, connection, sql, runner)
    finally:
        a.close()
        b.close()
    after, gone = _count(runner, "true"), united + chicago - both
    runner.note(f"\nA deleted {united:,} flights, B {chicago:,}; {both:,} of them are the same ones, so {gone:,} are gone.")
    runner.note(f"There were {before:,}: {before - gone:,} are to be left, and {after:,} are. Nobody had to try again.")
    distinct, left = _count(runner, "true", "DISTINCT flight_id"), _count(runner, f"{UNITED} OR {CHICAGO}")
    if after != before - gone or distinct != after or left:
        raise InternalError(f"{before - gone} flights were to be left: there are {after}, {distinct} different ones, {left} of them deleted")


def _perform(name: str, connection: Connection, sql: str, runner: Runner) -> None:
    (cursor,) = connection.statements(sql)
    changed = f"   -- {cursor.rowcount:,} rows" if cursor.rowcount > 0 else ""
    runner.note(f"{name}> {sql};{changed}")
    for _, text in cursor.messages:
        runner.note(f"   {text}")


def _count(runner: Runner, condition: str, what: str = "*") -> int:
    (cursor,) = runner.connection.statements(f"SELECT count({what}) FROM flights WHERE {condition}")
    return int(cursor.fetchmany(1)[0][0])


ACTS: dict[str, Callable[[str, Runner], None]] = {"two_connections": two_connections}
