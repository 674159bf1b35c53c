"""Calls of functions and operators with arguments that they do not take."""

from __future__ import annotations

import re

from lakelite.mapping.words import Rule, Said, Words, rule, sql_types

MOST_SIGNATURES = 4
_OPERATORS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE", "~~~": "GLOB"}


def _no_match(found: re.Match[str], said: Said) -> Words:
    name, given = found[1].strip('"'), sql_types(found[2])
    what = f"{_OPERATORS.get(name, name)} does not take ({given})" if given else f"{_OPERATORS.get(name, name)} takes arguments"
    return Words(what, _signatures(name, given, found[3]))


def _unclear(found: re.Match[str], said: Said) -> Words:
    name, given = found[1].strip('"'), sql_types(found[2])
    return Words(f"it is not clear which {_OPERATORS.get(name, name)} is meant for ({given})", _signatures(name, given, found[3]))


def _macro(found: re.Match[str], said: Said) -> Words:
    name = found[1].strip('"')
    takes = " or ".join(re.findall(r"\(.*?\)", found[2]))
    return Words(f"{name} does not take these arguments", f"{name} takes {takes}" if takes else None)


def _signatures(name: str, given: str, candidates: str) -> str:
    """The ways to call it, those with as many arguments first; and that a cast chooses one."""
    takes = [line.strip() for line in candidates.strip().splitlines() if "(" in line]
    shapes = [sql_types(_shape(line)) for line in takes]
    count = _count(given)
    fitting = [s for s in shapes if _count(s) == count] or shapes
    first = list(dict.fromkeys(fitting))
    more = len(first) - MOST_SIGNATURES
    shown = " or ".join(f"({s})" for s in first[:MOST_SIGNATURES]) + (f" and {more} more" if more > 0 else "")
    cast = "cast an argument with x::TYPE" if count else "give it arguments"
    return f"{cast}; {_OPERATORS.get(name, name)} takes {shown}" if shown else cast


def _shape(signature: str) -> str:
    """`"substring"(string VARCHAR, "start" BIGINT, /) -> VARCHAR` → `VARCHAR, BIGINT`."""
    inside = signature[signature.index("(") + 1 : signature.rindex(" -> ") if " -> " in signature else None].rstrip().removesuffix(")")
    arguments = [a.strip() for a in _split(inside) if a.strip() not in ("/", "*", "")]
    return ", ".join(re.sub(r'^(?:"[^"]*"|\*?\w+) (?=[A-Z])', "", a) for a in arguments)


def _split(arguments: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _count(arguments: str) -> int:
    return len(_split(arguments)) if arguments.strip() else 0


_CANDIDATES = r"[^\n]*(?:\n\s*Candidate functions:(.*))?"
RULES: tuple[Rule, ...] = (
    rule(r"^Macro (.+?)\(\) does not support the supplied arguments\..*?Candidate macros:(.*)", _macro),
    rule(rf"^No function matches the given name and argument types '(.+?)\((.*?)\)'\.{_CANDIDATES}", _no_match),
    rule(rf"^Could not choose a best candidate function for the function call \"(.+?)\((.*?)\)\"\.{_CANDIDATES}", _unclear),
)
