"""Statements that are put together wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable

from lakelite.mapping.names import near
from lakelite.mapping.words import Rule, Said, Words, rule

_CLAUSES = """SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET UNION INTERSECT EXCEPT QUALIFY WINDOW VALUES RETURNING DISTINCT BETWEEN
    PARTITION INNER LEFT RIGHT OUTER CROSS JOIN USING INTERVAL EXISTS DEFAULT PRIMARY REFERENCES INTO TABLE AND LIKE CASE WHEN THEN ELSE
    CAST NULL NOT BY ON AS""".split()

_OTHER_WORDS = "OVER PIVOT UNPIVOT IN IS OR SET ALL ANY ASC DESC FOR END FILTER FIRST LAST ROWS RANGE WITH WITHIN USE SHOW".split()

_PAST = re.compile(r"\b(?:AT\s*\(\s*\w+|AT\s+(?:VERSION|TIMESTAMP)|AS\s+OF|FOR\s+(?:SYSTEM_\w+|VERSION|TIMESTAMP))\b", re.IGNORECASE)
_PAST_HINT = "a past version is t AT (VERSION => 3) or t FOR VERSION AS OF 3; for a time, the word TIMESTAMP and its text in quotes"


def _syntax(found: re.Match[str], said: Said) -> Words:
    """A slip of a keyword is often the word before the one that does not fit."""
    message = found[0].rstrip()
    if said.at is None:
        return Words(message, None, found[1])
    name = found[1] if found[1][0].isalnum() else None
    lines = said.text.split("\n")
    offset = sum(len(line) + 1 for line in lines[: said.at.line - 1]) + said.at.column - 1
    if any(past.start() <= offset <= past.end() + 2 for past in _PAST.finditer(said.text)):
        return Words(message, _PAST_HINT, name)
    before, here = re.search(r"([^\W\d]\w*)\W*\Z", said.text[:offset]), re.match(r"[^\W\d]\w*", said.text[offset:])
    for word in (before[1] if before else "", here[0] if here else ""):
        meant = near(word, _CLAUSES) if len(word) > 2 and not _is_known(word) else []
        if meant:
            return Words(message, f"did you mean {meant[0]} in place of {word}?", name)
    if before and before[1].upper() in ("GROUP", "ORDER", "PARTITION"):
        return Words(message, f"write {before[1].upper()} BY", name)
    last = found[1] if not said.text[offset + len(found[1]) :].strip(" \t\r\n;") else ""
    goes_on = last and (_is_known(last) or not (last[-1].isalnum() or last[-1] in "'\"_)"))
    return Words(message, "the statement ends here, but something is missing" if goes_on else None, name)


def _is_known(word: str) -> bool:
    return word.upper() in _CLAUSES or word.upper() in _OTHER_WORDS


def _grouping(found: re.Match[str], said: Said) -> Words:
    hint = f"add it to GROUP BY, or use any_value({found[1]}) if any of its values will do"
    return Words(f'column "{found[1]}" must appear in the GROUP BY clause or be used in an aggregate function', hint, found[1])


def _window(found: re.Match[str], said: Said) -> Words:
    return Words("a window function is not allowed here", "it needs OVER (…); to filter by one, use QUALIFY in place of WHERE")


def _aggregate(found: re.Match[str], said: Said) -> Words:
    instead = "HAVING filters groups, after GROUP BY" if found[2] == "aggregates" else "QUALIFY filters by window functions"
    return Words(f"the {found[1]} clause cannot contain {found[2]}", instead if found[1] == "WHERE" else "compute it in a subquery")


def _with_hint(hint: str) -> Callable[[re.Match[str], Said], Words]:
    """DuckDB's own words, with what to do."""
    return lambda found, said: Words(found[0].splitlines()[0].rstrip("!."), hint)


def _no_parameter(found: re.Match[str], said: Said) -> Words:
    return Words("a parameter cannot stand here: it stands for a value", "write it into the text", thing="?")


def _no_versions(found: re.Match[str], said: Said) -> Words:
    return Words("only a table of the lake has versions", "put the clause behind its name: t AT (VERSION => 3)")


def _deep(found: re.Match[str], said: Said) -> Words:
    return Words(f"an expression is nested more than {found[1]} levels deep", "compute parts of it in a subquery, or sum up a list: list_sum([…])")


def _said(message: str, hint: str) -> Callable[[re.Match[str], Said], Words]:
    return lambda found, said: Words(message, hint)


def _set_sizes(found: re.Match[str], said: Said) -> Words:
    return Words("the queries of a set operation give different numbers of columns", "give both the same columns, or use UNION BY NAME")


RULES: tuple[Rule, ...] = (
    rule(r"^syntax error at or near \"\$\"", _no_parameter),
    rule(r"^syntax error at or near \"(.*)\"", _syntax),
    rule(r"^Catalog type does not support time travel", _no_versions),
    rule(r"^Max expression depth limit of (\d+)", _deep),
    rule(r"^column \"(.+?)\" must appear in the GROUP BY clause", _grouping),
    rule(r"^Window functions are not supported here|^window functions are not allowed", _window),
    rule(r"^Aggregate functions are not supported here", _said("an aggregate function is not allowed here", "compute it with a SELECT")),
    rule(
        r"^SUBQUERY is not supported in returning",
        _said("a subquery is not allowed in RETURNING", "return columns, and ask for the rest with a SELECT"),
    ),
    rule(r"^(\w+(?: \w+)?) clause cannot contain (aggregates|window functions)", _aggregate),
    rule(r"^aggregate function calls cannot be nested.*", _with_hint("compute the inner one in a subquery")),
    rule(r"^Cannot extract field .* because it is not a struct.*", _with_hint("check the column's type: a dot also takes a field of a struct")),
    rule(r"^GROUP BY term out of range.*", _with_hint("a number in GROUP BY counts the columns of the SELECT")),
    rule(r"^ORDER term out of range.*", _with_hint("a number in ORDER BY counts the columns of the SELECT")),
    rule(r"^UNNEST\(\) can only be applied to.*", _with_hint("give it a list or a struct")),
    rule(r"^Subquery returns \d+ columns.*", _with_hint("select one column, or compare with a row: (a, b) IN (SELECT …)")),
    rule(r"^SELECT clause without selection list.*", _with_hint("name columns, or write SELECT *")),
    rule(r"^DEFAULT value cannot contain.*", _with_hint("a DEFAULT is a constant, or a call such as now() or uuid()")),
    rule(r"^Map keys must be unique.*", _with_hint("give each key once")),
    rule(r"^Memory must have a number.*", _with_hint("such as SET memory_limit = '4GB'")),
    rule(r"^DISTINCT requires at least one argument.*", _with_hint("such as count(DISTINCT column)")),
    rule(r"^Set operations can only apply to expressions with the same number of result columns", _set_sizes),
)
