"""What a text's FROM clauses name, as far as that can be told from its words: whose columns a hint may list.

Promises: a table counts only where the name is sure to mean it, now, at the place of the error: not a query of WITH, an alias of something
else, a past version, or a table of another subquery. What is in doubt is left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from lakelite.mapping.clauses import blanked
from lakelite.mapping.keywords import is_known
from lakelite.records import dataclass

_WORD = r"(?:\w+|\"[^\"]*\")"
_SOURCE = re.compile(
    rf"(?:\b(?P<intro>FROM|JOIN|UPDATE|USING|INTO|PIVOT|UNPIVOT|COPY|SUMMARIZE)\b|,)\s*(?P<name>{_WORD}(?:\s*\.\s*{_WORD}){{0,2}})"
    rf"(?=(?P<else>\s*\(|\s+AT\s*\(|\s+FOR\s+(?:VERSION|TIMESTAMP|SYSTEM_\w+)\b)?(?:\s+(?:AS\s+)?(?P<alias>{_WORD}))?)",
    re.IGNORECASE,
)
_DERIVED = re.compile(rf"\)\s*(?:AS\s+)?(?P<alias>{_WORD})", re.IGNORECASE)
_QUERY = re.compile(r"(?P<before>\b\w+|[^\w\s])?\s*\(\s*(?=(?:SELECT|FROM|WITH|VALUES|PIVOT|UNPIVOT)\b)", re.IGNORECASE)
_ARM = re.compile(r"\b(?:UNION|EXCEPT|INTERSECT)\b", re.IGNORECASE)
_CTE = re.compile(rf"(?P<name>{_WORD})\s*(?:\([^()]*\)\s*)?AS\s+(?:NOT\s+)?(?:MATERIALIZED\s+)?\(", re.IGNORECASE)
_FEEDS_A_TABLE = ("FROM", "JOIN", ",", "AS", "USING", "MATERIALIZED")
_OF_TARGET = re.compile(r"\b(?:INSERT|OVERWRITE|REPLACE|IGNORE)\s*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """`table`: its name in Names; None: something whose columns are not known. `called`: what stands in front of its columns, in lower case.

    `is_target`: it is what an INSERT writes to, whose rows have the name `excluded`, and whose columns cannot be named without it.
    """

    table: str | None
    called: str
    at: int
    is_target: bool = False


@dataclass(frozen=True, slots=True)
class _Scope:
    """A query in brackets, or an arm of a set operation. `derived`: it stands where a table does, and sees nothing of what is around it."""

    start: int
    end: int
    derived: bool

    def holds(self, place: int) -> bool:
        return self.start <= place < self.end


def visible(text: str, place: int | None, tables: Mapping[str, Sequence[str]]) -> list[Source]:
    """What can be named at a place; where the place is not known, nothing if there is more than one query in the text."""
    plain = blanked(text)
    scopes = list(_scopes(plain))
    if place is None:
        return [] if scopes else list(_sources(plain, tables))
    return [
        source
        for source in _sources(plain, tables)
        if all(s.holds(place) if s.holds(source.at) else not (s.derived and s.holds(place)) for s in scopes)
    ]


def _sources(plain: str, tables: Mapping[str, Sequence[str]]) -> Iterator[Source]:
    queries = {_bare(found["name"]) for found in _CTE.finditer(plain)}
    known = {name.lower(): name for name in tables}
    for found in _SOURCE.finditer(plain):
        if (found["intro"] or "").upper() == "INTO" and _OF_TARGET.search(plain[: found.start()]):
            yield Source(known.get(_name(found["name"])), "excluded", found.start("name"), is_target=True)
            continue
        name = _name(found["name"])
        alias = found["alias"] if found["alias"] and not is_known(found["alias"]) and not found["else"] else None
        table = None if found["else"] or name in queries else known.get(name)
        yield Source(table, _bare(alias or found["name"].rpartition(".")[2]), found.start("name"))
    for found in _DERIVED.finditer(plain):
        if not is_known(found["alias"]):
            yield Source(None, _bare(found["alias"]), found.start())


def _scopes(plain: str) -> Iterator[_Scope]:
    whole = _Scope(0, len(plain) + 1, derived=False)
    queries = [
        _Scope(found.end(), _closing(plain, found.end()), derived=(found["before"] or "").upper() in _FEEDS_A_TABLE)
        for found in _QUERY.finditer(plain)
    ]
    yield from queries
    for query in (whole, *queries):
        inner = [q for q in queries if q is not query and query.holds(q.start)]
        cuts = [c.start() for c in _ARM.finditer(plain, query.start, query.end) if not any(q.holds(c.start()) for q in inner)]
        if cuts:
            edges = [query.start, *cuts, query.end]
            yield from (_Scope(start, end, derived=False) for start, end in pairwise(edges))


def _closing(plain: str, start: int) -> int:
    """Where the bracket closes that is open at `start`."""
    depth = 1
    for found in re.finditer(r"[()]", plain[start:]):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return start + found.start()
    return len(plain) + 1


def _name(written: str) -> str:
    """As Names has it: a table of main without its schema."""
    parts = [_bare(part) for part in written.split(".")]
    return ".".join(parts[1:] if parts[0] == "main" and len(parts) == 2 else parts)


def _bare(name: str) -> str:
    return name.strip().strip('"').lower()
