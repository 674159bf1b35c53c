"""What is typed behind `%lake` and `%%lake`: options, then a path or one line of SQL. Pure functions.

A line is SQL where it begins with a word that begins a statement, and a dot command where it begins as one; a lake that is called so is
opened as ./commit, or in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from keyword import iskeyword

from lakelite.errors import ProgrammingError
from lakelite.interfaces.repl.words import STATEMENTS
from lakelite.language.tokens import folded
from lakelite.mapping.names import did_you_mean
from lakelite.records import dataclass

NEWEST = "newest"
TEMPORARY = ":memory:"
USAGE = """\
%lake                      where one is
%lake PATH                 opens a lake, and makes it if it is not there; :memory: is a temporary one, :name a variable of Python's
      --read-only          refuses every change        --no-create  refuses a lake that is not there
      --at N               reads version N             --branch B   works on a branch
      --author NAME        goes with every version     --isolation LEVEL
%lake --at N, --branch B   the same for the lake that is open; --at newest ends it
%lake SELECT …             runs one line of SQL
%%lake                     runs the statements and dot commands of a cell; :name is a variable of Python's
      --out df             the result of the last one becomes the variable df: a pandas DataFrame, or with
      --as pl|arrow        a Polars DataFrame, a pyarrow Table
      --at N               the cell reads version N"""

_FLAGS = frozenset(("read-only", "no-create", "help"))
_VALUED = frozenset(("at", "branch", "author", "isolation", "out", "as"))
_OF_LAKE = frozenset(("read-only", "no-create", "at", "branch", "author", "isolation"))
_OF_SESSION = frozenset(("at", "branch"))
_OF_SQL = frozenset(("at", "out", "as"))
_KINDS = ("df", "pl", "arrow")
_OPTION = re.compile(r"--([A-Za-z][\w-]*)(=?)")
_WORD = re.compile(r"'([^']*)'|\"([^\"]*)\"|(\S+)")
_COMMAND = re.compile(r"[.\\][A-Za-z?]+(?:[\s;]|$)")
_FIRST = re.compile(r"[A-Za-z]+\b")


@dataclass(frozen=True, slots=True)
class Line:
    """`path` or `sql`, or neither. `given`: the options by name; those without a value have an empty one."""

    path: str | None = None
    sql: str | None = None
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What `--out` makes: df, pl or arrow."""
        return self.given.get("as", _KINDS[0])


def read_line(text: str) -> Line:
    """What `%lake` was given. ProgrammingError for options that are none, or do not go with what stands there."""
    given, rest = _options(text)
    if not rest:
        return _checked(Line(given=given), _OF_SESSION, "without a path")
    if _is_statement(rest):
        return _checked(Line(sql=rest, given=given), _OF_SQL, "with SQL")
    path, rest = _word(rest)
    more, rest = _options(rest)
    if rest:
        raise ProgrammingError(f"%lake takes one path, and then options: {rest} is neither", hint="a path with spaces goes in quotes")
    return _checked(Line(path, given={**given, **more}), _OF_LAKE, "with a path")


def read_cell(text: str, cell: str) -> Line:
    """What `%%lake` was given: options, and the cell below. ProgrammingError as above."""
    given, rest = _options(text)
    if rest:
        raise ProgrammingError(f"%%lake takes options, and SQL from the next line on, not {rest}", hint="%lake PATH opens a lake")
    return _checked(Line(sql=cell, given=given), _OF_SQL, "with SQL")


def version_of(text: str) -> int | None:
    """The version that `--at` names; None: the newest. ProgrammingError: it is none."""
    if folded(text) == NEWEST:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ProgrammingError(f"--at takes the number of a version, or {NEWEST}, not {text}", hint="DESCRIBE HISTORY lists the versions")
    return int(text)


def _is_statement(text: str) -> bool:
    """Whether it is SQL, or a dot command, rather than a path."""
    if _COMMAND.match(text):
        return True
    word = _FIRST.match(text)
    behind = text[word.end() : word.end() + 1] if word else ""
    return word is not None and word[0].upper() in STATEMENTS and (not behind or behind.isspace() or behind in ";(*'\"")


def _options(text: str) -> tuple[dict[str, str], str]:
    """The options that a text begins with, and what is behind them."""
    given: dict[str, str] = {}
    rest = text.strip()
    while found := _OPTION.match(rest):
        name, rest = found[1].lower(), rest[found.end() :]
        if name not in _FLAGS | _VALUED:
            raise ProgrammingError(f"there is no option --{found[1]}", hint=did_you_mean(name, _FLAGS | _VALUED, "%lake --help lists them"))
        if name in _VALUED and not rest.strip():
            raise ProgrammingError(f"--{name} takes a value", hint="%lake --help lists the options")
        given[name], rest = _word(rest.strip()) if name in _VALUED else ("", rest)
        rest = rest.strip()
    return given, rest


def _word(text: str) -> tuple[str, str]:
    """The word that a text begins with, without its quotes, and what is behind it."""
    found = _WORD.match(text)
    assert found is not None, "only a text that is not empty has a word"
    return next(part for part in found.groups() if part is not None), text[found.end() :].strip()


def _checked(line: Line, allowed: Iterable[str], where: str) -> Line:
    for name in line.given:
        if name not in allowed and name != "help":
            raise ProgrammingError(f"--{name} means nothing {where}", hint="%lake --help says where it does")
    if line.kind not in _KINDS:
        raise ProgrammingError(f"--as takes df, pl or arrow, not {line.kind}", hint=did_you_mean(line.kind, _KINDS, "--out df --as pl"))
    if "as" in line.given and "out" not in line.given:
        raise ProgrammingError("--as says what --out makes: a variable is missing", hint="--out df --as pl")
    name = line.given.get("out", "_")
    if not name.isidentifier() or iskeyword(name):
        raise ProgrammingError(f"--out takes the name of a variable, not {name}", hint="--out df")
    return line
