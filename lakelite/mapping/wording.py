"""DuckDB's messages in the user's words: what is wrong, the name or value it is about, and what to do next.

Owns the order of the tables of patterns; a message that none knows stays as it is, without DuckDB's noise. Promises: no setting of
DuckDB's that is none of ours is advised, and a list of candidates stays short. Pure functions.
"""

from __future__ import annotations

import re

import duckdb

from lakelite.cells import fitted
from lakelite.errors import Position
from lakelite.mapping import call_wording, file_wording, grammar_wording, name_wording, value_wording, world_wording
from lakelite.mapping.clauses import call
from lakelite.mapping.names import Names, did_you_mean, listed
from lakelite.mapping.words import Rule, Said, Words, offered, sql_types

_READER = re.compile(r"(read_\w+|\w+_scan)\s*\(", re.IGNORECASE)  # a function that reads files
_FILE = re.compile(r"\b(?:read_\w+|\w+_scan)\s*\(|\b(?:FROM|JOIN)\s*'|^\s*COPY\b", re.IGNORECASE)
LONGEST = 1_500  # characters of a message
_ADVICE = re.compile(r"(?:, or|[\n ]*Use \"?|\n\* )\s*SET \w+\s*(?:=|TO\b).*", re.DOTALL)  # settings of DuckDB's that are none of ours
_OFFER = re.compile(r"\s*(?:Did you mean|Candidate [a-z ]+|Candidate Entries)\s*:*\s*((?:\"[^\"]*\"(?:, )?)+)\??\s*\Z")
_TRACE = re.compile(r"(?:(?<=failed: )[^\n]*? Detail: Python exception: )?Traceback \(most recent call last\):.*\n(\S[^\n]*)\s*\Z", re.DOTALL)
_RULES: tuple[Rule, ...] = (
    *world_wording.RULES,
    *file_wording.RULES,
    *value_wording.RULES,
    *name_wording.RULES,
    *call_wording.RULES,
    *grammar_wording.RULES,
)


def worded(kind: type[duckdb.Error], message: str, text: str, names: Names, at: Position | None) -> Words:
    """The message, without DuckDB's prefix and quoted line, in the user's words."""
    said = Said(kind, text, names, at)
    plain = _TRACE.sub(r"\1", message)
    for pattern, words in _RULES:
        found = pattern.search(plain)
        if found is not None:
            return _bounded(words(found, said))
    return _bounded(_generic(plain, said))


def _bounded(words: Words) -> Words:
    return Words(fitted(words.message, LONGEST), words.hint and fitted(words.hint, LONGEST), words.name, words.thing, words.kind, words.is_item)


def _generic(message: str, said: Said) -> Words:
    """What no pattern knows: an offer of names becomes the hint."""
    message = _ADVICE.sub("", message).strip()
    if issubclass(said.kind, duckdb.InternalError | duckdb.FatalException):
        return Words(f"DuckDB failed: {message.splitlines()[0] if message else 'it does not say why'}", world_wording.REPORT)
    offer = _OFFER.search(message)
    message = sql_types(message[: offer.start()] if offer else message)
    if issubclass(said.kind, duckdb.ProgrammingError):
        message = message.rstrip("!")
    if offer is None:
        return Words(message or "DuckDB does not say why", _advice(message, said))
    there = offered(offer[1])
    about = re.search(r"[\"']([^\"']+)[\"']", message)
    hint = (did_you_mean(about[1], there) if about else None) or f"there are: {listed(there)}"
    return Words(message, hint, thing=about[1] if about else None)


def _advice(message: str, said: Said) -> str | None:
    """What to do about a value or a call of which no pattern knows more."""
    reader = None if said.at is None else _READER.match(said.at.source, said.at.column - 1)
    if reader is None and issubclass(said.kind, duckdb.DataError | duckdb.InvalidInputException):
        if re.search(r"\berror\s*\(", said.text, re.IGNORECASE):
            return "the statement's own error(…) says so"
        reads = said.at is None and _FILE.search(said.text)
        return "look at the file, and at the options that it is read with" if reads else "TRY(…) around the expression gives NULL instead of an error"
    called = reader[1].lower() if reader else (call(message, said.text) or (None,))[0]
    return f"what it takes: SELECT parameters, description FROM duckdb_functions() WHERE function_name = '{called}'" if called else None
