"""Commands that look at history: .history .at .diff .conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakelite.errors import Error, NotSupportedError, ProgrammingError
from lakelite.interfaces.commands.command import Asking, Command, Held, at_version, number_of, table_of, words, written
from lakelite.interfaces.values import elide, visible

if TYPE_CHECKING:
    from lakelite.interfaces.runner import Runner

SHOWN = 20
STATEMENT_CELLS = 72
_CONFLICTS = """
SELECT snapshot_id AS version, winner_snapshot_id AS met, schema_name || '.' || table_name AS "table", row_count AS "rows", explanation
FROM lake.resolutions ORDER BY ALL DESC LIMIT {}"""
_CHANGES = """
SELECT count(*) FILTER (change_type = 'insert'), count(*) FILTER (change_type = 'delete'), count(*) FILTER (change_type = 'update_postimage')
FROM table_changes({}, {}, {})"""
_DIFF_COLUMNS = (("table", "VARCHAR"), ("inserted", "BIGINT"), ("deleted", "BIGINT"), ("updated", "BIGINT"), ("note", "VARCHAR"))


def _history(runner: Runner, argument: str) -> int:
    count = number_of(".history", argument) if argument else SHOWN
    if runner.display.mode != "box":
        return runner.run(f"DESCRIBE HISTORY LIMIT {count}")
    from lakelite.interfaces.delivery import columns_of

    columns = columns_of(runner.display.out) if runner.display.file is None else None
    for row in runner.rows(f"DESCRIBE HISTORY LIMIT {count}"):
        for line in _drawn(row):
            runner.display.text(line if columns is None else elide(line, columns))
    runner.display.flush()
    return 0


def _drawn(row: Sequence[Any]) -> list[str]:
    """One version of the graph: number, time, who and what; then its message, and how it was carried past others."""
    version, when, author, operation, added, removed, statements, resolution, message, base, attempts, *_ = row
    rows = f"  +{added:,} -{removed:,}" if added or removed else ""
    lines = [f"● {version}  {when:%Y-%m-%d %H:%M:%S}  {author or '-'}  {operation}{rows}"]
    lines += [elide(visible(text), STATEMENT_CELLS) for text in (message, statements) if text]
    if resolution:
        met = f"began on {base}" + (f", {attempts} attempts" if attempts and attempts > 1 else "")
        lines += [f"├─╮ {met}", *(f"├─╯ {visible(line)}" for line in resolution.splitlines())]
    head, *rest = lines
    return [visible(head), *(line if line.startswith("├") else f"│   {line}" for line in rest)]


def _at(runner: Runner, argument: str) -> int:
    connection: Any = runner.connection
    version = number_of(".at", argument) if argument else None
    if version is None and connection.pinned_version is None:
        runner.note("the session reads the newest version; .at N pins it to version N")
        return 0
    if connection.in_transaction:
        raise ProgrammingError("a transaction is open", hint="COMMIT or ROLLBACK it first")
    connection.pinned_version = version
    runner.note("the newest version again" if version is None else f"pinned to version {version}, which can be read; .at ends it")
    return 0


def _diff(runner: Runner, argument: str) -> int:
    usage = "two versions, and a table if you want its rows"
    first, second, *named = words(".diff", argument, 2, 3, usage) if '"' not in argument else _quoted(argument, usage)
    older, newer = number_of(".diff", first), number_of(".diff", second)
    if named:
        return runner.run(rows_changed(table_of(".diff", named[0]), older, newer))
    return runner.go_through(iter([tables_changed(runner, older, newer)]))


def rows_changed(table: str, older: int, newer: int) -> str:
    """A query of what came between two versions in a table, whose name is as it is written in SQL. ProgrammingError: they are not in order."""
    from lakelite.model import literal

    _check_order(older, newer)
    return f"FROM table_changes({literal(table)}, {older + 1}, {newer}) ORDER BY snapshot_id, row_id, change_type DESC"


def tables_changed(lake: Asking, older: int, newer: int) -> Held:
    """How many rows were changed between two versions, a row for each table of the newer one, and for each that was dropped.

    A table is what it was made as, whatever its name: one that was dropped and made again is two.
    ProgrammingError: they are not in order, or one cannot be read.
    """
    _check_order(older, newer)
    before = _tables_at(lake, older)
    with at_version(lake, newer):
        after = _tables_of(lake)
        found = (_changed(lake, name, older + 1, newer, is_new=number not in before) for number, name in after.items())
        rows = [row for row in found if row is not None]
    dropped = [(name, None, None, None, "dropped") for number, name in before.items() if number not in after]
    return Held(_DIFF_COLUMNS, [*rows, *dropped])


def _tables_at(lake: Asking, version: int) -> dict[int, str]:
    with at_version(lake, version):
        return _tables_of(lake)


def _tables_of(lake: Asking) -> dict[int, str]:
    """The names of the tables by their ids, in the order of the names."""
    return {row[2]: written(row[0], row[1]) for row in lake.rows("SELECT schema_name, table_name, table_id FROM lake.tables ORDER BY ALL")}


def _check_order(older: int, newer: int) -> None:
    if older >= newer:
        hint = "exchange the two" if older > newer else ".history lists the versions"
        raise ProgrammingError(f"a diff goes forward, from an older version to a newer one, not from {older} to {newer}", hint=hint)


def _quoted(argument: str, usage: str) -> list[str]:
    """The arguments where the name of a table stands in SQL's quotes."""
    parts = argument.split(None, 2)
    if len(parts) < 2:
        raise ProgrammingError(f".diff takes {usage}", hint=".help .diff")
    return parts


def _changed(lake: Asking, name: str, first: int, last: int, *, is_new: bool) -> Sequence[Any] | None:
    """How many rows of a table were changed; None where none were. What cannot be compared says why.

    `is_new`: the table was made later than the first version; before, its name may have been another one's, which it is not compared with.
    """
    from lakelite.model import literal

    try:
        inserted, deleted, updated = lake.rows(_CHANGES.format(literal(name), first, last))[0]
    except (ProgrammingError, NotSupportedError) as error:
        made = lake.rows(f"DESCRIBE HISTORY {name}")[-1][0] if is_new else first
        return _changed(lake, name, made, last, is_new=False) if made > first else (name, None, None, None, _why(error))
    return (name, inserted, deleted, updated, None) if inserted or deleted or updated else None


def _why(error: Error) -> str:
    return error.message.partition("\n")[0]


def _conflicts(runner: Runner, argument: str) -> int:
    return runner.run(_CONFLICTS.format(number_of(".conflicts", argument) if argument else SHOWN))


_VERSION = ("version",)
COMMANDS = (
    Command((".history",), "[N]", f"the newest {SHOWN}, or N, versions: who, what, and how each was carried past others", _history, shows=True),
    Command((".at",), "[VERSION]", "the session reads one version, and changes nothing; without VERSION the newest again", _at, (_VERSION,)),
    Command(
        (".diff",),
        "OLDER NEWER [TABLE]",
        "what came between two versions: by table, or the rows of one",
        _diff,
        (_VERSION, _VERSION, ("table",)),
        shows=True,
    ),
    Command((".conflicts",), "[N]", f"the newest {SHOWN}, or N, times that transactions met, and what was done", _conflicts, shows=True),
)
